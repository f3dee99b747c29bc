"""What a transformer costs: a block box by box, and a step of training or decoding: bytes, FLOPs and the least time.

B texts of T tokens; D, H, F, L, V, N as in `helpers.model`. FLOPs of elementwise ops follow `helpers.flops`.
"""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from numbers import Real
from types import SimpleNamespace
from typing import Any

import torch

from helpers.counting import Trace
from helpers.model import GPT, MODELS, Config, loss_of  # noqa: F401 (MODELS for the examples)
from helpers.units import whole_number

# Bytes for one parameter by term, AdamW's moments being two; an activation has as many as a weight.
PRECISIONS: Mapping[str, Mapping[str, int]] = {
    "float32": {"weights": 4, "gradients": 4, "moments": 8},
    "mixed bfloat16": {"weights": 2, "gradients": 2, "moments": 8, "master copy": 4},  # Rajbhandari et al. 2020 (ZeRO)
    "bfloat16": {"weights": 2, "gradients": 2, "moments": 4},  # torch.optim.AdamW makes them in the weights' dtype
}
RECOMPUTATIONS = ("none", "selective", "full")


@dataclass(frozen=True)
class Box:
    """One box of a block: the named shape of its result, and what it costs and keeps; boxes of one `kernel` run fused.

    layout: "view" or "copy" where heads are split, merged or laid out anew. bytes: each input and the result moved once
    and nothing of what stays inside a kernel. kept: the bytes that this box adds for the backward pass.
    """

    name: str
    shape: str
    layout: str
    parameters: int
    flops: int
    bytes: int
    kept: int
    kernel: str


@dataclass(frozen=True)
class _Part:
    """A box in numbers, before it is known how many bytes one has."""

    name: str
    shape: str
    flops: int
    moved: int  # inputs and result
    kept: int = 0
    parameters: int = 0
    used: int | None = None  # of the parameters, if not all
    statistics: int = 0  # bytes kept besides, whatever the dtype
    layout: str = ""


@dataclass(frozen=True)
class _Pass:
    """A forward pass of one block: `batch` texts, of each `new` tokens, which look at `seen` of all `tokens`."""

    config: Config
    batch: int
    tokens: int
    new: int
    seen: int
    fused: bool
    least: Callable[..., int] = min

    @property
    def rows(self) -> int:
        """The tokens that are worked on."""
        return self.batch * self.new

    def norm(self, name: str = "norm", heads: int = 1, width: int = 0) -> _Part:
        """A norm of each token, or of each of its heads."""
        rows, width = self.rows * heads, width or self.config.width
        vectors = 2 if self.config.family == "GPT-2" else 1  # layer norm: weight and bias, mean and deviation
        flops = rows * (4 * vectors * width + 2)
        return _Part(
            name, "b t d", flops, 2 * rows * width, rows * width, vectors * width, statistics=4 * vectors * rows
        )

    def linear(self, name: str, shape: str, inner: int, outer: int, bias: int = 0, layout: str = "") -> _Part:
        """A matrix product with each token; `bias` numbers are added to it."""
        rows = self.rows
        return _Part(
            name,
            shape,
            flops=rows * (2 * inner * outer + bias),
            moved=rows * (inner + outer),
            kept=rows * inner,
            parameters=inner * outer + bias,
            layout=layout,
        )

    def attention(self) -> list[_Part]:
        """From the normalized input to what is added to the residual."""
        config, rows = self.config, self.rows
        # einsum lays operands out anew where texts and heads, or heads and tokens, do not merge into one dimension.
        apart, several, shared = not self.fused, self.batch != 1, config.key_heads != config.heads
        scores_layout = "copy" if apart and (several or shared) else ""
        sum_layout = "copy" if apart and several else ""
        d, q, k, heads = config.width, config.query_width, config.key_width, config.heads
        biases = {"query": q, "key": k, "value": k}
        bias = sum(size for name, size in biases.items() if name in config.biases)
        split = "b t h c" if config.key_heads == heads else "b t h c, b t kv c"
        parts = [self.linear("q k v", split, d, q + 2 * k, bias, "view")]
        if config.qk_norm:
            normed = self.norm("norm q k", heads + config.key_heads, config.channels)
            parts.append(replace(normed, shape=split, parameters=2 * config.channels))
        if config.family == "Llama":
            angles = 2 * self.new * config.channels
            parts.append(_Part("rotate", split, 3 * rows * (q + k), 2 * rows * (q + k), angles))
        scores = rows * heads * self.seen
        written = 0 if self.fused else scores  # fused, they stay inside the kernel
        sums = rows * heads
        keys = self.batch * k * (self.seen if self.new == 1 else self.tokens)
        products, queries = 2 * scores * config.channels, rows * q
        statistics = 4 * sums if self.fused else self.new * self.tokens  # logarithms of the sums, or a mask
        sinks = heads if config.sinks else 0
        parts += [
            _Part("scores", "b h t s", products, queries + keys + written, queries + keys, layout=scores_layout),
            _Part("softmax", "b h t s", 6 * scores - 2 * sums, 2 * written, written, sinks, statistics=statistics),
            _Part("weighted sum", "b t h c", products, queries + keys + written, keys, layout=sum_layout),
        ]
        out = d if "output" in config.biases else 0
        return [*parts, self.linear("output", "b t d", q, d, out, "copy" if apart else "view")]

    def mlp(self) -> list[_Part]:
        """From the normalized input to what is added to the residual: one MLP, or the chosen experts."""
        config = self.config
        if not config.experts:
            return self._gated("mlp" in config.biases)
        biased = "experts" in config.biases
        router = self.linear("router", "b t e", config.width, config.experts, config.experts if biased else 0)
        # A token is handed to each of its experts, so that they work on `chosen` times as many.
        each = replace(self, batch=self.batch * config.chosen)
        used = self.least(config.experts, each.rows)  # as many as the tokens can choose
        experts = [
            replace(part, parameters=config.experts * part.parameters, used=used * part.parameters)
            for part in each._gated(biased)
        ]
        added = (2 * config.chosen - 1) * self.rows * config.width
        moved = (each.rows + self.rows) * config.width
        return [router, *experts, _Part("add experts", "b t d", added, moved, each.rows * config.width)]

    def _gated(self, biased: bool) -> list[_Part]:
        """Up, the function in the middle, and down."""
        d, f, llama = self.config.width, self.config.hidden, self.config.family == "Llama"
        gates = 2 if llama else 1  # matrices that lead up
        name = f"gated {self.config.activation}" if llama else self.config.activation
        flops = {"SiLU": 5, "GELU": 9}[self.config.activation] + gates - 1
        numbers = self.rows * f
        return [
            self.linear("gate, up" if llama else "up", "b t f", d, gates * f, gates * f if biased else 0),
            _Part(name, "b t f", flops * numbers, (gates + 1) * numbers, (2 * gates - 1) * numbers),
            self.linear("down", "b t d", f, d, d if biased else 0),
        ]

    def add(self) -> _Part:
        """The residual."""
        numbers = self.rows * self.config.width
        return _Part("add", "b t d", numbers, 3 * numbers)

    def block(self) -> list[_Part]:
        """All of it, in order."""
        inner = [self.norm()] if self.config.norms > 2 else []  # Gemma norms what it adds, too
        first, second = [self.norm(), *self.attention()], [self.norm(), *self.mlp()]
        return [*first, *inner, self.add(), *second, *inner, self.add()]

    def kernel(self, part: _Part, number: int) -> str:
        """The name of the kernel that a part runs in."""
        in_attention = self.fused and part.name in ("scores", "softmax", "weighted sum")
        return "attention" if in_attention else f"{part.name} {number}"


def block_costs(
    config: Config,
    batch: int,
    tokens: int,
    *,
    decode: bool = False,
    itemsize: float = 2,
    fused: bool = True,
    window: int = 0,
) -> list[Box]:
    """The boxes of one block in the order of the forward pass, over whole texts or, in decoding, one new token of each.

    >>> boxes = block_costs(MODELS["GPT-2 small"], batch=8, tokens=1024)
    >>> sum(box.flops for box in boxes if box.kernel == "attention"), boxes[1].name, boxes[1].bytes
    (26373586944, 'q k v', 53875200)

    Kept is what autograd saves, as Korthikanti et al. 2022 (equation 1) count it, 34 · B·T·D bytes for GPT-2's block
    in half precision, less their two dropout masks of B·T·D bytes, and what they neglect: in float32 the two
    statistics of a layer norm per token (RMSNorm: one; on a CPU PyTorch keeps its normalized input, too) and fused
    attention's logarithm of each softmax sum (Dao 2023). Unfused, the softmax, H·T numbers per token, and a mask.

    With `window`, a token looks back on so many (Beltagy et al. 2020), not on all. Experts (Shazeer et al. 2017) work
    on the tokens handed to them; their weights are read where tokens can choose them, at most all. What a router does
    beside its product, and what it keeps, is left out.
    Raises TypeError and ValueError for sizes that are none, as `training` does.
    """
    _require(config, tokens=tokens, batch=batch, itemsize=itemsize)
    whole_number(window, "window", least=0)
    work = _Pass(config, batch, tokens, 1 if decode else tokens, min(tokens, window or tokens), fused)
    boxes = []
    for number, part in enumerate(work.block()):
        read = part.parameters if part.used is None else part.used
        boxes.append(
            Box(
                part.name,
                part.shape,
                part.layout,
                part.parameters,
                part.flops,
                bytes=_whole(itemsize * (read + part.moved)),
                kept=0 if decode else _whole(itemsize * part.kept) + part.statistics,
                kernel=work.kernel(part, number),
            )
        )
    return boxes


def block_formulas(config: Config, *, fused: bool = True) -> list[dict[str, Any]]:
    """The boxes of `block_costs` as dictionaries, with sympy expressions of these letters in place of numbers.

    b texts, t tokens worked on of each, which look at s; d, f, h, kv, c: width, hidden width, heads, key heads,
    channels of a head; e experts, of which a token uses k; z bytes of one number. In decoding t is 1, nothing is kept.

    >>> block_formulas(MODELS["GPT-2 small"])[2]["flops"]  # the scores
    2*b*c*h*s*t
    """
    import sympy  # here, since it takes a while and only this needs it

    b, t, s, d, f, h, c, e, k, z = sympy.symbols("b t s d f h c e k z", integer=True, positive=True)
    kv = h if config.key_heads == config.heads else sympy.Symbol("kv", integer=True, positive=True)
    sizes = {"width": d, "hidden": f, "heads": h, "key_heads": kv, "channels": c, "chosen": k}
    sizes |= {"query_width": h * c, "key_width": kv * c, "experts": e if config.experts else 0}
    same = {name: getattr(config, name) for name in ("family", "biases", "norms", "activation", "qk_norm", "sinks")}
    letters: Any = SimpleNamespace(**sizes, **same)
    work, one = (_Pass(letters, texts, s, t, s, fused, sympy.Min) for texts in (b, 1))
    boxes = []
    for number, (part, of_one) in enumerate(zip(work.block(), one.block(), strict=True)):
        read = part.parameters if part.used is None else part.used
        costs = {"parameters": part.parameters, "flops": part.flops, "bytes": z * (read + part.moved)}
        costs["kept"] = z * part.kept + part.statistics
        same = {"name": part.name, "shape": part.shape, "layout": part.layout, "layout of one text": of_one.layout}
        same["kernel"] = work.kernel(part, number)
        boxes.append(same | costs)
    return boxes


def _whole(nbytes: float) -> int:
    """Of a format of less than a byte, such as float4, the bytes that are begun."""
    return math.ceil(nbytes)


def _require(config: Config, *, tokens: int, itemsize: float = 2, **counts: int) -> None:
    """Refuse what is no model, no number of things, no size; and more tokens than a model has positions for."""
    if not isinstance(config, Config):
        raise TypeError(f"a model is a Config, got {config!r}; take one of MODELS, such as MODELS['GPT-2 small']")
    for name, value in {**counts, "tokens": tokens}.items():
        whole_number(value, name)
    if config.family == "GPT-2" and tokens > config.context:
        raise ValueError(
            f"{config.name} has learned positions for {config.context} tokens, so a text of {tokens} is too long for it"
        )
    if isinstance(itemsize, bool) or not isinstance(itemsize, Real):
        raise TypeError(f"itemsize is the bytes of one number, got {itemsize!r} ({type(itemsize).__name__})")
    if not 0 < itemsize < math.inf:
        raise ValueError(f"itemsize is the bytes of one number, above 0, got {itemsize!r}")


def forward_flops(config: Config, tokens: int) -> int:
    """The FLOPs of the matrix products for one text: 2 per weight and token, and the scores, 4·L·H·C·T², not halved.

    Kaplan et al. 2020, table 1; scores as in Chowdhery et al. 2022 (PaLM), appendix B, whose 12·L·H·Q·T are three times
    these, per token, forward and backward; where windows are shorter than T, with them. Of experts those chosen.
    """
    _require(config, tokens=tokens)
    return 2 * config.matrices * tokens + 4 * config.query_width * tokens * _seen(config, tokens)


def kv_bytes(config: Config, itemsize: float = 2, tokens: int = 1) -> int:
    """The bytes of the KV cache of so many tokens: a key and a value in each block (Pope et al. 2022).

    >>> kv_bytes(MODELS["Llama 3 8B"]), kv_bytes(MODELS["Llama 3 8B"], tokens=8192)
    (131072, 1073741824)

    A block with a window holds only those that the last token looks at (Jiang et al. 2023, Mistral 7B, "rolling buffer
    cache"); between two steps a library may hold one less.
    """
    _require(config, tokens=tokens, itemsize=itemsize)
    return _whole(2 * config.key_width * _seen(config, tokens) * itemsize)


def _seen(config: Config, tokens: int) -> int:
    """The tokens that the last one looks at, summed over the blocks."""
    windows = config.windows or (0,) * config.layers
    return sum(min(tokens, window or tokens) for window in windows)


@dataclass(frozen=True)
class Step:
    """What a step needs on each device: bytes by term and by moment, FLOPs, and the bytes that must at least move.

    alive: the bytes of each term at each of the moments at which they may be most. flops: all that run, with what is
    recomputed; useful: those of the model, which an MFU counts.
    """

    memory: Mapping[str, float]
    alive: Mapping[str, Mapping[str, float]]
    flops: float
    useful: float
    bytes: float

    peak = property(lambda self: max(map(_sum, self.alive.values())), doc="The bytes that must fit.")
    total = property(lambda self: _sum(self.memory), doc="The bytes of all terms, at the same time or not.")

    @property
    def fullest(self) -> str:
        """The moment of the peak."""
        return max(self.alive, key=lambda moment: _sum(self.alive[moment]))


def _sum(terms: Mapping[str, float]) -> float:
    return sum(terms.values())


def training(
    config: Config,
    batch: int,
    tokens: int,
    *,
    devices: int = 1,
    precision: str = "mixed bfloat16",
    recompute: str = "none",
    fused: bool = True,
    text_devices: int = 1,
) -> Step:
    """A training step with AdamW: each device takes `batch` texts, and all share the states evenly (ZeRO, stage 3).

    >>> step = training(MODELS["GPT-2 small"], batch=8, tokens=1024, precision="float32")
    >>> {term: round(size / 1e9, 2) for term, size in step.memory.items()}, round(step.peak / 1e9, 2)
    ({'weights': 0.5, 'gradients': 0.5, 'moments': 1.0, 'activations': 4.89, 'logits': 1.65}, 11.32)

    Activations are what blocks and final norm keep for the backward pass, attention fused or not, and all else op by
    op. recompute: "full" keeps the input of each block, and all of one block at a time (Chen et al. 2016); "selective"
    all but what softmax keeps where attention is not fused, and that for one block at a time (Korthikanti et al. 2022,
    section 5); fused attention keeps none of it anyway (Dao et al. 2022).
    text_devices: so many devices work on the same texts, and each has an equal part of the activations and logits, by
    tensor and sequence parallelism (Korthikanti et al. 2022, section 4).
    The peak is the largest of three moments: at the loss, where the logarithms of the probabilities, their gradient
    and that of the logits exist, in float32; after the head's gradient, with one recomputed block; and at the end, with
    one block and all gradients. Temporary results of other ops are left out; so are the optimizer's, of any kind.
    Bytes moved: weights read in each pass, activations, logits and gradients written and read, and the optimizer's
    reading and writing of all other states.
    Raises TypeError for what is no Config or no whole number, ValueError for less than one text, token or device, for
    more tokens than a model with learned positions has, and for an unknown precision or recomputation.
    """
    _require(config, tokens=tokens, batch=batch, devices=devices, text_devices=text_devices)
    _require_one_of(PRECISIONS, precision, "precision")
    _require_one_of(RECOMPUTATIONS, recompute, "recomputation")
    states = PRECISIONS[precision]
    itemsize = states["weights"]
    share = {term: size * config.parameters / devices for term, size in states.items()}
    part = 1 / text_devices
    held = _held(config, batch, tokens, itemsize, recompute, fused)
    logits = 4 * batch * tokens * config.vocabulary
    memory = share | {"activations": (held.waiting + held.rebuilt) * part, "logits": logits * part}

    lasting = {term: size for term, size in share.items() if term != "gradients"}
    head = states["gradients"] * config.vocabulary * config.width / devices
    alive = {
        "at the loss": lasting | {"activations": held.waiting * part, "loss": 3 * logits * part},
        "after the head": lasting | {"gradients": head, "activations": (held.waiting + held.rebuilt) * part},
        "at the end": share | {"activations": held.block * part},
    }

    forward = batch * forward_flops(config, tokens) * part
    again = batch * _recomputed_flops(config, tokens, recompute, fused) * part
    # The optimizer reads and writes weight, moments and master copy and reads the gradient, which was written.
    optimizer = 2 * _sum(share)
    passes = 3 if recompute == "full" else 2
    moved = passes * itemsize * config.parameters * part + optimizer + 2 * (held.all + logits) * part
    return Step(memory, alive, 3 * forward + again, 3 * forward, moved)


@dataclass(frozen=True)
class _Held:
    """Bytes for the backward pass: all of it; what waits; what is rebuilt of a block when it is its turn; a block."""

    all: float
    waiting: float
    rebuilt: float
    block: float


def _held(config: Config, batch: int, tokens: int, itemsize: float, recompute: str, fused: bool) -> _Held:
    boxes = block_costs(config, batch, tokens, itemsize=itemsize, fused=fused)
    block = sum(box.kept for box in boxes)
    softmax = 0 if fused else sum(box.kept for box in boxes if box.name == "softmax")
    inputs = batch * tokens * config.width * itemsize
    end = boxes[0].kept + inputs  # the final norm's, and the head's input
    waiting = {"none": block, "selective": block - softmax, "full": inputs}[recompute]
    rebuilt = {"none": 0, "selective": softmax, "full": block}[recompute]
    return _Held(config.layers * block + end, config.layers * waiting + end, rebuilt, block)


def _recomputed_flops(config: Config, tokens: int, recompute: str, fused: bool) -> float:
    """The FLOPs that run once more for one text: none; the scores and the weighted sum; all but the head."""
    products = 2 * config.matrices * tokens
    forward = forward_flops(config, tokens)
    unembedding = 2 * tokens * config.vocabulary * config.width
    scores = 0 if fused else forward - products
    return {"none": 0, "selective": scores, "full": forward - unembedding}[recompute]


def _require_one_of(known: Collection[str], value: object, name: str) -> None:
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"no {name} {value!r}: take one of {', '.join(known)}")


def traced_step(config: Config, batch: int, *, recompute: bool = False) -> tuple[Trace, int]:
    """A training step of a GPT in float32, and the number of the op with which its backward pass begins.

    It is the second step, so that AdamW has its moments, and AdamW's own work is left out.
    """
    _require(config, tokens=config.context, batch=batch)
    gpt = GPT(config)
    adamw = torch.optim.AdamW(gpt.parameters())
    ids = torch.randint(config.vocabulary, (batch, config.context + 1))
    loss_of(gpt, ids).backward()
    adamw.step()  # makes the moments
    adamw.zero_grad()
    moments = [moment for state in adamw.state.values() for moment in state.values()]
    with Trace([*gpt.parameters(), *moments]) as trace:
        loss = loss_of(gpt, ids, recompute=recompute)
        backward = len(trace.flops)
        loss.backward()
    return trace, backward


def decoding(config: Config, batch: int, tokens: int, *, devices: int = 1, itemsize: float = 2) -> Step:
    """A decoding step: each of `batch` texts of `tokens` tokens gets one more; all devices share weights and caches.

    >>> step = decoding(MODELS["Llama 3 8B"], batch=1, tokens=4096)
    >>> round(step.total / 1e9, 1), round(step.flops / step.bytes, 1)  # in FLOP/B
    (16.6, 1.1)

    It reads each weight once for all texts, of the embedding one row a text, of experts as many as the texts can
    choose, and each text's cache (Pope et al. 2022). Raises TypeError and ValueError as `training` does.
    """
    _require(config, tokens=tokens, batch=batch, devices=devices, itemsize=itemsize)
    cache = batch * kv_bytes(config, itemsize, tokens) / devices
    memory = {"weights": config.parameters * itemsize / devices, "KV cache": cache}
    scores = 4 * config.query_width * _seen(config, tokens)
    flops = batch * (2 * config.matrices + scores) / devices
    table = 0 if config.tied else config.vocabulary * config.width
    unused = max(0, config.experts - batch * config.chosen) * config.layers * config.mlp_matrices
    moved = (config.parameters - table - unused) * itemsize / devices + cache
    return Step(memory, {"always": memory}, flops, flops, moved)
