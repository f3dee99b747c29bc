"""A transformer's budget: parameters, bytes by term, FLOPs and the least time of a step, from a handful of numbers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from helpers.roofline import Roofline

# Bytes per parameter: weight, gradient, all that the optimizer keeps; and per number of an activation.
PRECISIONS: Mapping[str, tuple[int, int, int, int]] = {
    "float32": (4, 4, 8, 4),  # AdamW: two moments
    "mixed bfloat16": (2, 2, 12, 2),  # and a float32 master copy
}


@dataclass(frozen=True)
class Transformer:
    """A decoder of equal layers, as six numbers; biases and the few parameters of norms are left out.

    >>> gpt3 = Transformer("GPT-3", layers=96, width=12288, heads=96, vocabulary=50257)
    >>> gpt3.parameters, gpt3.kv_bytes(itemsize=2)
    (174563733504, 4718592)

    hidden: width of the MLP, four times `width` if not given. kv_heads: as many as `heads` if not given. gated: three
    matrices in the MLP in place of two. tied: the unembedding is the token embedding again.
    """

    name: str
    layers: int
    width: int
    heads: int
    vocabulary: int
    hidden: int | None = None
    kv_heads: int | None = None
    gated: bool = False
    tied: bool = True

    def __post_init__(self) -> None:
        if min(self.layers, self.width, self.heads, self.vocabulary) < 1 or self.width % self.heads:
            raise ValueError(f"{self.name}: sizes are at least 1, and the heads share the width evenly: {self!r}")
        object.__setattr__(self, "hidden", self.hidden or 4 * self.width)
        object.__setattr__(self, "kv_heads", self.kv_heads or self.heads)

    @property
    def kv_width(self) -> int:
        """The numbers of a token's keys, and as many of its values, in a layer."""
        return self.width // self.heads * self.kv_heads

    @property
    def matrices(self) -> int:
        """The parameters that each token is multiplied with: those of the layers and of the unembedding."""
        layer = self.width * (2 * self.width + 2 * self.kv_width + (3 if self.gated else 2) * self.hidden)
        return self.layers * layer + self.vocabulary * self.width

    @property
    def parameters(self) -> int:
        """All parameters but biases, norms and learned positions."""
        return self.matrices + (0 if self.tied else self.vocabulary * self.width)

    def forward_flops(self, tokens: int) -> int:
        """The FLOP of the matrix products for one sequence of so many tokens, scores included and not halved."""
        return 2 * self.matrices * tokens + 4 * self.layers * self.width * tokens**2

    def kv_bytes(self, itemsize: int) -> int:
        """The bytes that one token adds to the KV cache."""
        return 2 * self.layers * self.kv_width * itemsize

    def activations(self, batch: int, tokens: int, itemsize: int = 4, *, recompute: bool = False) -> int:
        """The bytes that the layers keep for the backward pass, with fused attention and all else op by op.

        Recomputing keeps the input of each layer, and all of one layer at a time. The statistics of norms and softmax
        stay in float32.
        """
        inputs = batch * tokens * self.width * itemsize
        inside = batch * tokens * (5 * self.width + 2 * self.kv_width + (4 if self.gated else 2) * self.hidden)
        layer = inputs + inside * itemsize + batch * tokens * (self.heads + 4) * 4
        return self.layers * inputs + layer if recompute else self.layers * layer


@dataclass(frozen=True)
class Budget:
    """What a step needs on each device: bytes by term, FLOP, and the bytes that must at least move."""

    memory: Mapping[str, float]
    flops: float
    bytes: float

    @property
    def total(self) -> float:
        """The bytes of all terms."""
        return sum(self.memory.values())

    def times(self, roof: Roofline) -> tuple[float, float]:
        """The seconds of the arithmetic and of the memory."""
        return self.flops / roof.peak, self.bytes / roof.bandwidth

    def bound(self, roof: Roofline) -> Literal["memory", "compute"]:
        """The longer of the two times."""
        return roof.bound(self.flops, self.bytes)


def training(
    model: Transformer,
    batch: int,
    tokens: int,
    *,
    devices: int = 1,
    precision: str = "mixed bfloat16",
    recompute: bool = False,
) -> Budget:
    """A training step with AdamW: each device takes `batch` sequences, and all share the states evenly.

    >>> gpt2 = Transformer("GPT-2 small", layers=12, width=768, heads=12, vocabulary=50257)
    >>> step = training(gpt2, batch=8, tokens=1024, precision="float32")
    >>> round(step.memory["optimizer"] / 1e9, 2), round(step.memory["activations"] / 1e9, 2)
    (0.99, 4.84)

    Bytes moved: weights for each pass, gradients and states once more by the optimizer, activations there and back.
    """
    weight, gradient, states, itemsize = _precision(precision)
    share = model.parameters / devices
    activations = model.activations(batch, tokens, itemsize, recompute=recompute)
    memory = {
        "parameters": weight * share,
        "gradients": gradient * share,
        "optimizer": states * share,
        "activations": activations,
        "logits": 4 * batch * tokens * model.vocabulary,
    }
    passes = 4 if recompute else 3
    # The optimizer reads and writes weight and states and reads the gradient, which the backward pass has written.
    optimizer = (2 * weight + 2 * gradient + 2 * states) * share
    kept = model.activations(batch, tokens, itemsize) + memory["logits"]
    moved = passes * weight * model.parameters + optimizer + 2 * kept
    return Budget(memory, passes * batch * model.forward_flops(tokens), moved)


def decoding(model: Transformer, batch: int, tokens: int, *, devices: int = 1, itemsize: int = 2) -> Budget:
    """A decoding step: each of `batch` texts of `tokens` tokens gets one more; all devices share weights and caches.

    >>> llama = Transformer("8B", 32, 4096, 32, 128256, hidden=14336, kv_heads=8, gated=True, tied=False)
    >>> step = decoding(llama, batch=1, tokens=4096)
    >>> round(step.total / 1e9, 1), step.bound(Roofline(989.5e12, 3.35e12))
    (16.6, 'memory')
    """
    weights = model.parameters * itemsize / devices
    caches = batch * tokens * model.kv_bytes(itemsize) / devices
    flops = batch * (2 * model.matrices + 4 * model.layers * model.width * tokens) / devices
    return Budget({"weights": weights, "KV cache": caches}, flops, model.matrices * itemsize / devices + caches)


def _precision(name: str) -> tuple[int, int, int, int]:
    if name not in PRECISIONS:
        raise ValueError(f"no precision {name!r}: take one of {', '.join(PRECISIONS)}")
    return PRECISIONS[name]


MODELS: Mapping[str, Transformer] = {
    model.name: model
    for model in (
        Transformer("GPT-2 small", 12, 768, 12, 50257),
        Transformer("GPT-3 175B", 96, 12288, 96, 50257),
        Transformer("Llama 3 8B", 32, 4096, 32, 128256, hidden=14336, kv_heads=8, gated=True, tied=False),
        Transformer("Llama 3 70B", 80, 8192, 64, 128256, hidden=28672, kv_heads=8, gated=True, tied=False),
        Transformer("Llama 3 405B", 126, 16384, 128, 128256, hidden=53248, kv_heads=8, gated=True, tied=False),
    )
}
