"""The block and the GPT of the course, in lines that name their dimensions, and published models of these shapes.

b batch, t token (s: the tokens it may look at), d width, h heads of c channels, kv key heads, f hidden width.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from einops import einsum, rearrange
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


@dataclass(frozen=True)
class Config:
    """A decoder of equal blocks as a few numbers; without `hidden` it is 4 × width, without `key_heads` as `heads`.

    >>> Config("tiny", layers=2, width=64, heads=4, vocabulary=500, context=128).parameters
    140288

    family: "GPT-2" has layer norms, biases, GELU and learned positions; "Llama" RMSNorm, a gated SiLU and rotary
    positions, whose angles have the base `theta`. tied: the head is the token embedding once more.
    """

    name: str
    layers: int
    width: int
    heads: int
    vocabulary: int
    context: int
    hidden: int = 0
    key_heads: int = 0
    family: Literal["GPT-2", "Llama"] = "GPT-2"
    tied: bool = True
    theta: float = 10_000.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", self.hidden or 4 * self.width)
        object.__setattr__(self, "key_heads", self.key_heads or self.heads)
        sizes = self.layers, self.width, self.heads, self.vocabulary, self.context, self.hidden, self.key_heads
        if min(sizes) < 1 or self.width % self.heads or self.heads % self.key_heads:
            raise ValueError(f"sizes are at least 1, heads divide the width, key heads the heads; got {self!r}")

    channels = property(lambda self: self.width // self.heads, doc="The width of one head: C = D / H.")
    key_width = property(lambda self: self.key_heads * self.channels, doc="The numbers of a token's keys in one block.")

    @property
    def matrices(self) -> int:
        """The weights that each token is multiplied with: the matrices of the blocks, and the head."""
        mlp = (3 if self.family == "Llama" else 2) * self.hidden
        return self.layers * self.width * (2 * self.width + 2 * self.key_width + mlp) + self.vocabulary * self.width

    @property
    def parameters(self) -> int:
        """All parameters, N: the matrices, norms, an embedding if not tied; for GPT-2 biases and positions, too."""
        llama, norms = self.family == "Llama", (2 * self.layers + 1) * self.width
        biases = self.layers * (3 * self.width + 2 * self.key_width + self.hidden) + norms
        rest = (0 if self.tied else self.vocabulary * self.width) + norms
        return self.matrices + rest + (0 if llama else biases + self.context * self.width)


def rotate(x: Tensor, theta: float = 10_000.0) -> Tensor:
    """Rotary positions (Su et al. 2021) of `b t h c`: token t turns channels i and i + c/2 by t · theta^(−2i/c).

    The pairs are the halves, as at Hugging Face; the paper and Meta's code pair neighbours instead.
    """
    token, half = torch.arange(x.shape[1], device=x.device, dtype=torch.float32), x.shape[-1] // 2
    angle = einsum(token, theta ** (-torch.arange(half, device=x.device) / half), "t, i -> t i")
    cos, sin = (rearrange(wave.to(x.dtype), "t i -> t 1 i") for wave in (angle.cos(), angle.sin()))
    left, right = rearrange(x, "b t h (two i) -> two b t h i", two=2)
    return torch.cat([left * cos - right * sin, right * cos + left * sin], dim=-1)


def attention(q: Tensor, k: Tensor, v: Tensor, *, fused: bool = True) -> Tensor:
    """Causal attention of the last t of s tokens: q is `b t h c`, k and v are `b s kv c`, the result is `b t h c`.

    Each key head serves h / kv heads. Fused, it is PyTorch's one op, which never writes the scores to memory.
    """
    t, s, kv = q.shape[1], k.shape[1], k.shape[2]
    if fused and t in (1, s):  # where PyTorch's mask is ours, or none is needed
        heads_first = (rearrange(x, "b t h c -> b h t c") for x in (q, k, v))
        mixed = F.scaled_dot_product_attention(*heads_first, is_causal=t == s, enable_gqa=q.shape[2] != kv)
        return rearrange(mixed, "b h t c -> b t h c")
    q = rearrange(q, "b t (kv group) c -> b t kv group c", kv=kv)
    scores = einsum(q, k, "b t kv group c, b s kv c -> b kv group t s") / q.shape[-1] ** 0.5
    later = torch.ones(t, s, dtype=torch.bool, device=q.device).triu(1 + s - t)
    weights = scores.masked_fill(later, -torch.inf).softmax(dim=-1)
    mixed = einsum(weights, v, "b kv group t s, b s kv c -> b kv group t c")
    return rearrange(mixed, "b kv group t c -> b t (kv group) c")


class Block(nn.Module):
    """One transformer block, `b t d -> b t d`: attention and an MLP, each after a norm and around it a residual."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config, d, f, llama = config, config.width, config.hidden, config.family == "Llama"
        self.norm1, self.norm2 = (nn.RMSNorm(d, eps=1e-5) if llama else nn.LayerNorm(d) for _ in range(2))
        self.query, self.output = (nn.Linear(d, d, bias=not llama) for _ in range(2))
        self.key, self.value = (nn.Linear(d, config.key_width, bias=not llama) for _ in range(2))
        self.up, self.down = nn.Linear(d, f, bias=not llama), nn.Linear(f, d, bias=not llama)
        self.gate = nn.Linear(d, f, bias=False) if llama else None

    def forward(self, x: Tensor, *, fused: bool = True) -> Tensor:
        """The block's result, `b t d`; GELU by tanh, as GPT-2."""
        y, split = self.norm1(x), "b t (h c) -> b t h c"
        q, k, v = (rearrange(w(y), split, c=self.config.channels) for w in (self.query, self.key, self.value))
        if self.gate:
            q, k = (rotate(heads, self.config.theta) for heads in (q, k))
        x = x + self.output(rearrange(attention(q, k, v, fused=fused), "b t h c -> b t (h c)"))
        y = self.norm2(x)
        y = F.silu(self.gate(y)) * self.up(y) if self.gate else F.gelu(self.up(y), approximate="tanh")
        return x + self.down(y)


class GPT(nn.Module):
    """Token ids `b t` in, logits `b t vocabulary` out."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        d, llama = config.width, config.family == "Llama"
        self.tokens = nn.Embedding(config.vocabulary, d)
        self.positions = None if llama else nn.Embedding(config.context, d)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = nn.RMSNorm(d, eps=1e-5) if llama else nn.LayerNorm(d)
        self.head = nn.Linear(d, config.vocabulary, bias=False)
        if config.tied:
            self.head.weight = self.tokens.weight
        for weight in (p for p in self.parameters() if p.dim() == 2):
            nn.init.normal_(weight, std=0.02)  # as GPT-2, so that the first loss is near log(vocabulary)

    def forward(self, ids: Tensor, *, recompute: bool = False) -> Tensor:
        """The logits of every token; with recomputation, which keeps only the input of each block and runs it again."""
        x = self.tokens(ids)
        if self.positions:
            x = x + self.positions.weight[: ids.shape[1]]
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if recompute else block(x)
        return self.head(self.norm(x))


def loss_of(gpt: GPT, ids: Tensor, *, recompute: bool = False) -> Tensor:
    """The mean loss of predicting each next token of `b t`. Only it is returned, so the logits are free by then."""
    logits = gpt(ids[:, :-1], recompute=recompute).flatten(0, 1)
    return F.cross_entropy(logits, ids[:, 1:].flatten())


# GPT-2: openai/gpt-2 (hparams.json) and gpt2* at Hugging Face (config.json). GPT-3: Brown et al. 2020, table 2.1, as
# a dense model of that shape (theirs has banded layers, too). Llama: config.json of meta-llama/* at Hugging Face; for
# Llama 3 405B that of Llama-3.1-405B with 8 key heads (as first uploaded it had 16).
MODELS: Mapping[str, Config] = {
    name: Config(name, *sizes)
    for name, *sizes in (
        ("GPT-2 small", 12, 768, 12, 50_257, 1024),
        ("GPT-2 medium", 24, 1024, 16, 50_257, 1024),
        ("GPT-2 large", 36, 1280, 20, 50_257, 1024),
        ("GPT-2 XL", 48, 1600, 25, 50_257, 1024),
        ("GPT-3 175B", 96, 12_288, 96, 50_257, 2048),
        ("Llama 2 7B", 32, 4096, 32, 32_000, 4096, 11_008, 32, "Llama", False),
        ("Llama 2 70B", 80, 8192, 64, 32_000, 4096, 28_672, 8, "Llama", False),
        ("Llama 3 8B", 32, 4096, 32, 128_256, 8192, 14_336, 8, "Llama", False, 500_000.0),
        ("Llama 3 70B", 80, 8192, 64, 128_256, 8192, 28_672, 8, "Llama", False, 500_000.0),
        ("Llama 3 405B", 126, 16_384, 128, 128_256, 131_072, 53_248, 8, "Llama", False, 500_000.0),
    )
}
