"""The block and the GPT of the course, in lines that name their dimensions, and published models of these shapes.

b batch, t token (s: the tokens it may look at), d width, h heads of c channels, kv key heads, f hidden width.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
from einops import einsum, rearrange
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from helpers.units import whole_number

FAMILIES = ("GPT-2", "Llama")


@dataclass(frozen=True)
class Config:
    """A decoder as a few numbers; without `hidden` it is 4 × width, without `key_heads` as `heads`.

    >>> Config("tiny", layers=2, width=64, heads=4, vocabulary=500, context=128).parameters
    140288

    family: "GPT-2" has layer norms, biases, GELU and learned positions; "Llama" RMSNorm, a gated MLP and rotary
    positions, whose angles have the base `theta`. tied: the head is the token embedding once more. channels: the width
    of one head, C, without which it is width / heads.

    Of the newer models: windows, for each block how many tokens one looks back on, itself included, 0 being all;
    experts, of which each token uses `chosen`, with `hidden` the width of one; biases of these projections, with
    "experts" for those of router and experts; norms of the width in a block; activation of the MLP, if it is not the
    family's; qk_norm, one more norm for queries and keys of a head; sinks, a learned score for each head.

    Raises TypeError for sizes that are not whole numbers, ValueError for impossible ones and for an unknown family.
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
    channels: int = 0
    windows: tuple[int, ...] = ()
    experts: int = 0
    chosen: int = 0
    biases: frozenset[str] = frozenset()
    norms: int = 2
    activation: Literal["", "SiLU", "GELU"] = ""
    qk_norm: bool = False
    sinks: bool = False

    def __post_init__(self) -> None:
        for name in ("layers", "width", "heads", "vocabulary", "context", "norms"):
            self._set(name, whole_number(getattr(self, name), name))
        for name in ("hidden", "key_heads", "channels", "experts", "chosen"):
            self._set(name, whole_number(getattr(self, name), name, least=0))
        if self.family not in FAMILIES:
            raise ValueError(f"no family {self.family!r}: take one of {', '.join(FAMILIES)}")
        self._set("hidden", self.hidden or 4 * self.width)
        self._set("key_heads", self.key_heads or self.heads)
        divides = self.channels or self.width % self.heads == 0
        if not divides or self.heads % self.key_heads:
            raise ValueError(f"without channels heads divide the width, and key heads the heads; got {self!r}")
        self._set("channels", self.channels or self.width // self.heads)
        self._set("activation", self.activation or ("GELU" if self.family == "GPT-2" else "SiLU"))
        if self.family == "GPT-2":
            self._set("biases", frozenset({"query", "key", "value", "output", "mlp"}))
        self._require_new_models()

    def _require_new_models(self) -> None:
        """Refuse what no newer model can be."""
        if self.family == "Llama" and self.channels % 2:
            raise ValueError(f"rotary positions turn pairs of channels, so a head has an even number; got {self!r}")
        for window in self.windows:
            whole_number(window, "a window", least=0)
        if self.windows and len(self.windows) != self.layers:
            raise ValueError(f"one window for each of {self.layers} blocks is needed, got {len(self.windows)}")
        least = 1 if self.experts else 0
        if not least <= self.chosen <= self.experts:
            raise ValueError(f"each token chooses from 1 to all experts, got {self.chosen} of {self.experts}")

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)  # while it is made

    query_width = property(
        lambda self: self.heads * self.channels, doc="The numbers of a token's queries in one block."
    )
    key_width = property(lambda self: self.key_heads * self.channels, doc="The numbers of a token's keys in one block.")

    @property
    def attention_matrices(self) -> int:
        """The weights of a block's projections to queries, keys and values, and from the heads to the output."""
        return self.width * (2 * self.query_width + 2 * self.key_width)

    @property
    def mlp_matrices(self) -> int:
        """The weights of a block's MLP, or of one expert: up and down, and with a gate three."""
        number = 3 if self.family == "Llama" else 2
        return number * self.width * self.hidden

    @property
    def matrices(self) -> int:
        """The weights that each token is multiplied with: those of the blocks, of chosen experts only, and the head."""
        block = self.attention_matrices + self.width * self.experts + (self.chosen or 1) * self.mlp_matrices
        return self.layers * block + self.vocabulary * self.width

    @property
    def parameters(self) -> int:
        """All parameters, N: the matrices, all experts, norms, biases, embedding if not tied, GPT-2's positions."""
        layer_norm = self.family == "GPT-2"
        unused = (self.experts - self.chosen) * self.mlp_matrices
        norm = 2 * self.width if layer_norm else self.width
        small = self.norms * norm + self._bias_numbers
        small += 2 * self.channels if self.qk_norm else 0
        small += self.heads if self.sinks else 0
        ends = norm + (0 if self.tied else self.vocabulary * self.width)
        positions = self.context * self.width if layer_norm else 0
        return self.matrices + self.layers * (unused + small) + ends + positions

    @property
    def active(self) -> int:
        """The parameters that one token makes use of: all but the experts that it did not choose."""
        return self.parameters - self.layers * (self.experts - self.chosen) * self.mlp_matrices

    @property
    def _bias_numbers(self) -> int:
        lead_up = 2 if self.family == "Llama" else 1
        mlp = lead_up * self.hidden + self.width
        sizes = {
            "query": self.query_width,
            "key": self.key_width,
            "value": self.key_width,
            "output": self.width,
            "mlp": mlp,
            "experts": self.experts * (mlp + 1),  # and one of the router
        }
        return sum(size for name, size in sizes.items() if name in self.biases)


def rotate(x: Tensor, theta: float = 10_000.0) -> Tensor:
    """Rotary positions (Su et al. 2021) of `b t h c`: token t turns channels i and i + c/2 by t · theta^(−2i/c).

    The pairs are the halves, as at Hugging Face; the paper and Meta's code pair neighbours instead.
    """
    token, half = torch.arange(x.shape[1], device=x.device, dtype=torch.float32), x.shape[-1] // 2
    angle = einsum(token, theta ** (-torch.arange(half, device=x.device) / half), "t, i -> t i")
    cos, sin = (rearrange(wave.to(x.dtype), "t i -> t 1 i") for wave in (angle.cos(), angle.sin()))
    left, right = rearrange(x, "b t h (two i) -> two b t h i", two=2)
    return torch.cat([left * cos - right * sin, right * cos + left * sin], dim=-1)


def rotary_scores(x: Tensor, wq: Tensor, wk: Tensor, heads: int, pairing: str) -> Tensor:
    """The scores `h t s` of the tokens of a text `t d` with rotary positions, not divided by √c.

    `wq` and `wk` are `(h c) d`, as `nn.Linear` stores weights. `pairing` says which two channels of a head are rotated
    together: "neighbours" as in Meta's code and llama2.c, "halves" as at Hugging Face. Raises ValueError for another.
    """
    if pairing not in ("neighbours", "halves"):
        raise ValueError(f"a pairing is 'neighbours' or 'halves', got {pairing!r}")
    q, k = (rearrange(x @ w.T, "t (h c) -> 1 t h c", h=heads) for w in (wq, wk))
    if pairing == "neighbours":  # the same change of both leaves their products as they are
        q, k = (rearrange(y, "1 t h (pair two) -> 1 t h (two pair)", two=2) for y in (q, k))
    return einsum(rotate(q), rotate(k), "one t h c, one s h c -> h t s")


def attention(q: Tensor, k: Tensor, v: Tensor, *, fused: bool = True) -> Tensor:
    """Causal attention of the last t of s tokens: q is `b t h c`, k and v are `b s kv c`, the result is `b t h c`.

    Each key head serves h / kv heads. Fused, it is PyTorch's one op, which never writes the scores to memory.
    """
    t, s, kv = q.shape[1], k.shape[1], k.shape[2]
    if fused and t in (1, s):  # where PyTorch's mask is ours, or none is needed
        query, key, value = (rearrange(x, "b t h c -> b h t c") for x in (q, k, v))
        grouped = q.shape[2] != kv
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=t == s, enable_gqa=grouped)
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
        _require_plain(config)
        d, f, q, k = config.width, config.hidden, config.query_width, config.key_width
        llama = config.family == "Llama"
        self.config = config
        self.norm1, self.norm2 = (nn.RMSNorm(d, eps=1e-5) if llama else nn.LayerNorm(d) for _ in range(2))
        self.query = nn.Linear(d, q, bias="query" in config.biases)
        self.output = nn.Linear(q, d, bias="output" in config.biases)
        self.key = nn.Linear(d, k, bias="key" in config.biases)
        self.value = nn.Linear(d, k, bias="value" in config.biases)
        self.up = nn.Linear(d, f, bias="mlp" in config.biases)
        self.down = nn.Linear(f, d, bias="mlp" in config.biases)
        self.gate = nn.Linear(d, f, bias="mlp" in config.biases) if llama else None

    def forward(self, x: Tensor, *, fused: bool = True) -> Tensor:
        """The block's result, `b t d`; GELU by tanh, as GPT-2."""
        y = self.norm1(x)
        projections = self.query, self.key, self.value
        q, k, v = (rearrange(w(y), "b t (h c) -> b t h c", c=self.config.channels) for w in projections)
        if self.gate:
            q, k = (rotate(heads, self.config.theta) for heads in (q, k))
        x = x + self.output(rearrange(attention(q, k, v, fused=fused), "b t h c -> b t (h c)"))
        y = self.norm2(x)
        y = F.silu(self.gate(y)) * self.up(y) if self.gate else F.gelu(self.up(y), approximate="tanh")
        return x + self.down(y)


def _require_plain(config: Config) -> None:
    """Refuse what these modules do not have, and `budget` can plan all the same."""
    missing = {
        "windows": any(config.windows),
        "experts": bool(config.experts),
        "norms": config.norms != 2,
        "gated GELU": config.family == "Llama" and config.activation == "GELU",
        "qk_norm": config.qk_norm,
        "sinks": config.sinks,
    }
    if names := [name for name, wanted in missing.items() if wanted]:
        raise ValueError(f"the module of the course has no {' and no '.join(names)}; `budget` plans {config.name}")


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


def gradients_of_a_run(steps: int = 10) -> Tensor:
    """The gradients at the outputs of all linear layers of a small GPT, in the last of its first steps, as one row.

    It learns to add: its texts are sums such as 3+4=7, one token a character, 32 texts of 64 tokens a step. The same on
    every call, whatever has been drawn before. Raises ValueError for less than one step.
    """
    if steps < 1:
        raise ValueError(f"a run has at least one step, got {steps}")
    text = "".join(f"{a}+{b}={a + b};" for a in range(100) for b in range(100))
    ids = torch.tensor(list(text.encode()))
    seen: list[Tensor] = []

    def keep(layer: nn.Module, of_inputs: tuple[Tensor, ...], of_outputs: tuple[Tensor, ...]) -> None:
        seen.append(of_outputs[0].flatten())

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        gpt = GPT(Config("small", 2, 64, 4, 128, 64))
        for layer in gpt.modules():
            if isinstance(layer, nn.Linear):
                layer.register_full_backward_hook(keep)
        optimizer = torch.optim.AdamW(gpt.parameters())
        for _ in range(steps):
            seen.clear()
            starts = torch.randint(len(ids) - 65, (32, 1))
            optimizer.zero_grad()
            loss_of(gpt, ids[starts + torch.arange(65)]).backward()
            optimizer.step()
    return torch.cat(seen)


_GPT = partial(Config, vocabulary=50_257)
_LLAMA_2 = partial(Config, family="Llama", tied=False, vocabulary=32_000, context=4096)
_LLAMA_3 = partial(Config, family="Llama", tied=False, vocabulary=128_256, key_heads=8, theta=500_000.0)
# Add a model: a line here, its source in this comment, what others count of it in PUBLISHED of tests/test_model.py, and
# `python -m tests.tools.refresh`, since living views store the table. For a single cell `read_config` is enough.
# GPT-2: openai/gpt-2 (hparams.json) and gpt2* at Hugging Face (config.json). GPT-3: Brown et al. 2020, table 2.1, as
# a dense model of that shape (theirs has banded layers, too). Llama: config.json of meta-llama/* at Hugging Face; for
# Llama 3 405B that of Llama-3.1-405B with 8 key heads (as first uploaded it had 16).
MODELS: Mapping[str, Config] = {
    config.name: config
    for config in (
        _GPT("GPT-2 small", layers=12, width=768, heads=12, context=1024),
        _GPT("GPT-2 medium", layers=24, width=1024, heads=16, context=1024),
        _GPT("GPT-2 large", layers=36, width=1280, heads=20, context=1024),
        _GPT("GPT-2 XL", layers=48, width=1600, heads=25, context=1024),
        _GPT("GPT-3 175B", layers=96, width=12_288, heads=96, context=2048),
        _LLAMA_2("Llama 2 7B", layers=32, width=4096, heads=32, hidden=11_008, key_heads=32),
        _LLAMA_2("Llama 2 70B", layers=80, width=8192, heads=64, hidden=28_672, key_heads=8),
        _LLAMA_3("Llama 3 8B", layers=32, width=4096, heads=32, context=8192, hidden=14_336),
        _LLAMA_3("Llama 3 70B", layers=80, width=8192, heads=64, context=8192, hidden=28_672),
        _LLAMA_3("Llama 3 405B", layers=126, width=16_384, heads=128, context=131_072, hidden=53_248),
    )
}


@dataclass(frozen=True)
class _Card:
    """What follows from the type of a published model, and is not in its config.json.

    defaults: what its configuration class in transformers 5 takes for a field that is left out. sliding: which blocks
    have the window, where the card does not list them: "none", "all", "all but every n-th" or "late". biases: fields
    that say which projections have one.
    """

    sliding: str = "none"
    every: int = 2
    biases: tuple[str, ...] = ("attention_bias",)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)


_QKV = frozenset({"query", "key", "value"})
_GEMMA = {"head_dim": 256, "tie_word_embeddings": True}
# By model_type: configuration_*.py and modeling_*.py of transformers 5.24.
_CARDS = {
    "llama": _Card(biases=("attention_bias", "mlp_bias")),
    "mistral": _Card("all", biases=(), defaults={"sliding_window": 4096, "num_key_value_heads": 8}),
    "ministral": _Card("all", biases=(), defaults={"sliding_window": 4096, "num_key_value_heads": 8}),
    "ministral3": _Card("all", biases=(), defaults={"head_dim": 128, "num_key_value_heads": 8}),
    "mixtral": _Card("all", biases=(), defaults={"num_key_value_heads": 8}),
    "qwen2": _Card("late", biases=(), settings={"biases": _QKV}),
    "qwen3": _Card("late", defaults={"head_dim": 128}, settings={"qk_norm": True}),
    "qwen3_moe": _Card("all", settings={"qk_norm": True}),
    "gemma": _Card(defaults=_GEMMA, settings={"activation": "GELU"}),
    "gemma2": _Card(
        "all but every n-th",
        defaults=_GEMMA | {"sliding_window": 4096, "num_attention_heads": 8, "num_key_value_heads": 4},
        settings={"activation": "GELU", "norms": 4},
    ),
    "gemma3_text": _Card(
        "all but every n-th",
        every=6,
        defaults=_GEMMA
        | {"sliding_window": 4096, "num_attention_heads": 8, "num_key_value_heads": 4, "vocab_size": 262_208}
        | {"max_position_embeddings": 131_072},
        settings={"activation": "GELU", "norms": 4, "qk_norm": True},
    ),
    "gpt_oss": _Card(
        "all but every n-th",
        defaults={"head_dim": 64, "sliding_window": 128, "attention_bias": True},
        settings={"sinks": True, "biases": frozenset({"experts"})},
    ),
}
# Fields of what a Config has no words for, and what they mean; a card may have them with 0, null or an empty list.
_BEYOND = {
    "kv_lora_rank": "latent attention, whose cache holds no keys and values of heads",
    "q_lora_rank": "latent attention",
    "state_size": "a state-space model, which has no cache that grows",
    "ssm_cfg": "a state-space model, which has no cache that grows",
    "mamba_d_state": "state-space layers",
    "linear_num_key_heads": "linear attention, which has no cache that grows",
    "layers_block_type": "blocks of several kinds",
    "hybrid_override_pattern": "blocks of several kinds",
    "n_shared_experts": "experts that all tokens share",
    "shared_expert_intermediate_size": "experts that all tokens share",
    "first_k_dense_replace": "first blocks without experts",
    "mlp_only_layers": "blocks without experts",
    "num_kv_shared_layers": "blocks that share keys and values",
    "text_config": "a part of a larger model; read that part alone, as in read_config(card['text_config'])",
    "is_encoder_decoder": "an encoder beside the decoder",
}


def read_config(card: str | Path | Mapping[str, Any], name: str = "") -> Config:
    """The Config of a published model, from its `config.json` as Hugging Face has it: a path, or what is in it.

    >>> card = {"model_type": "qwen3", "hidden_size": 1024, "num_hidden_layers": 28, "intermediate_size": 3072}
    >>> card |= {"num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151_936}
    >>> read_config(card | {"max_position_embeddings": 40_960, "tie_word_embeddings": True}).parameters
    596049920

    Decoders, dense or of experts: the families of Llama, Mistral, Mixtral, Qwen 2 and 3, Gemma 1 to 3 and gpt-oss. A
    field that is left out has the value that transformers gives it. What has no share in parameters, cache or products
    is not read: scaled angles, caps of logits, dropout.
    Raises ValueError, naming the field, for what a Config cannot describe, for an unknown type and for a size that is
    missing; OSError and ValueError for what is no readable file or no JSON.
    """
    if isinstance(card, str | Path):
        path = Path(card)
        name = name or path.parent.name or path.stem
        card = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(card, Mapping):
        raise TypeError(f"a card is a path to a config.json, or a dict of what is in it, got {type(card).__name__}")
    _require_described(card)
    kind = str(card["model_type"])
    known = _CARDS[kind]
    fields = {**known.defaults, **card}
    layers, width, heads = (_size(fields, size) for size in ("num_hidden_layers", "hidden_size", "num_attention_heads"))
    rotary = fields.get("rope_parameters") or {}
    experts = fields.get("num_local_experts") or fields.get("num_experts") or 0
    hidden = "moe_intermediate_size" if kind == "qwen3_moe" else "intermediate_size"
    sizes: dict[str, Any] = {
        "vocabulary": _size(fields, "vocab_size"),
        "context": _size(fields, "max_position_embeddings"),
        "hidden": _size(fields, hidden),
        "key_heads": fields.get("num_key_value_heads") or heads,
        "channels": fields.get("head_dim") or 0,
        "experts": experts,
        "chosen": _size(fields, "num_experts_per_tok") if experts else 0,
    }
    settings: dict[str, Any] = {
        "tied": bool(fields.get("tie_word_embeddings", False)),
        "theta": fields.get("rope_theta") or rotary.get("rope_theta") or 10_000.0,
        **known.settings,
        "biases": _biases(fields, known),
        "windows": _windows(fields, known, layers),
    }
    return Config(name or kind, layers, width, heads, family="Llama", **sizes, **settings)


def _require_described(card: Mapping[str, Any]) -> None:
    for field_name, meaning in _BEYOND.items():
        if card.get(field_name):
            raise ValueError(f"the field {field_name!r} describes {meaning}; a Config has no words for that")
    kind = card.get("model_type")
    if kind not in _CARDS:
        raise ValueError(f"the field 'model_type' is {kind!r}; a Config describes {', '.join(_CARDS)}")
    if card.get("decoder_sparse_step", 1) != 1:
        raise ValueError("the field 'decoder_sparse_step' is not 1, so blocks are of two kinds; a Config has one")
    kinds = set(card.get("layer_types") or ()) - {"full_attention", "sliding_attention"}
    if kinds:
        names = ", ".join(sorted(map(str, kinds)))
        raise ValueError(f"the field 'layer_types' lists {names}; a Config has full_attention and sliding_attention")


def _size(fields: Mapping[str, Any], name: str) -> int:
    if fields.get(name) is None:
        raise ValueError(f"the field {name!r} is missing, and transformers has no value that all such models share")
    return whole_number(fields[name], name)


def _biases(fields: Mapping[str, Any], known: _Card) -> frozenset[str]:
    projections = {"attention_bias": _QKV | {"output"}, "mlp_bias": frozenset({"mlp"})}
    found = [projections[name] for name in known.biases if fields.get(name)]
    return frozenset().union(known.settings.get("biases", ()), *found)


def _windows(fields: Mapping[str, Any], known: _Card, layers: int) -> tuple[int, ...]:
    """The window of each block, 0 where it looks at all tokens; none where all do."""
    size = fields.get("sliding_window") or 0
    if fields.get("model_type", "").startswith("qwen") and not fields.get("use_sliding_window"):
        size = 0
    every = fields.get("sliding_window_pattern") or known.every
    first = fields.get("max_window_layers", 28)  # the default of Qwen 2 and 3
    rules = {
        "none": [False] * layers,
        "all": [True] * layers,
        "all but every n-th": [(block + 1) % every != 0 for block in range(layers)],
        "late": [block >= first for block in range(layers)],
    }
    slides = rules[known.sliding]
    if fields.get("layer_types"):
        slides = [kind == "sliding_attention" for kind in fields["layer_types"]]
    windows = tuple(size if slide else 0 for slide in slides)
    return windows if any(windows) else ()
