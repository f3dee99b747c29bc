"""What a transformer costs: a block box by box, and a step of training or decoding: bytes, FLOPs and the least time.

B texts of T tokens; D, H, F, L, V, N as in `helpers.model`. FLOPs of elementwise ops follow `helpers.flops`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from helpers.counting import Trace
from helpers.model import GPT, MODELS, Config, loss_of  # noqa: F401 (MODELS for the examples)

# Bytes for one parameter by term, AdamW's moments being two; an activation has as many as a weight.
PRECISIONS: Mapping[str, Mapping[str, int]] = {
    "float32": {"weights": 4, "gradients": 4, "moments": 8},
    "mixed bfloat16": {"weights": 2, "gradients": 2, "moments": 8, "master copy": 4},  # Rajbhandari et al. 2020 (ZeRO)
    "bfloat16": {"weights": 2, "gradients": 2, "moments": 4},  # torch.optim.AdamW makes them in the weights' dtype
}


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


def block_costs(
    config: Config, batch: int, tokens: int, *, decode: bool = False, itemsize: int = 2, fused: bool = True
) -> list[Box]:
    """The boxes of one block in the order of the forward pass, over whole texts or, in decoding, one new token of each.

    >>> boxes = block_costs(MODELS["GPT-2 small"], batch=8, tokens=1024)
    >>> sum(box.flops for box in boxes if box.kernel == "attention"), boxes[1].name, boxes[1].bytes
    (26373586944, 'q k v', 53875200)

    Kept is what autograd saves, as Korthikanti et al. 2022 (equation 1) count it, 34 · B·T·D bytes for GPT-2's block
    in half precision, less their two dropout masks of B·T·D bytes, and what they neglect: in float32 the two
    statistics of a layer norm per token (RMSNorm: one; on a CPU PyTorch keeps its normalized input, too) and fused
    attention's logarithm of each softmax sum (Dao 2023). Unfused, the softmax, H·T numbers per token, and a mask.
    """
    d, k, f, t = config.width, config.key_width, config.hidden, 1 if decode else tokens
    n, keys, scores = batch * t, batch * tokens * k, batch * config.heads * t * tokens
    llama, products, written = config.family == "Llama", 2 * scores * config.channels, 0 if fused else scores
    gates, vectors = (2, 1) if llama else (1, 2)  # matrices that lead up; vectors of a norm
    copied = "" if fused else "copy"  # einsum lays its operands out anew before it multiplies
    boxes: list[Box] = []

    def box(name, shape, flops, moved, kept=0, layout="", parameters=0, stats=0):
        nbytes, saved = itemsize * (parameters + moved), 0 if decode else itemsize * kept + stats
        alone = not fused or name not in ("scores", "softmax", "weighted sum")
        kernel = f"{name} {len(boxes)}" if alone else "attention"
        boxes.append(Box(name, shape, layout, parameters, flops, nbytes, saved, kernel))

    def linear(name, shape, rows, columns, layout=""):
        parameters = rows * columns + (0 if llama else columns)
        box(name, shape, n * (rows * columns + parameters), n * (rows + columns), n * rows, layout, parameters)

    def norm():
        flops, stats = n * (4 * vectors * d + 2), 4 * vectors * n
        box("norm", "b t d", flops, 2 * n * d, n * d, parameters=vectors * d, stats=stats)

    norm()
    split = "b t h c" if config.key_heads == config.heads else "b t h c, b t kv c"
    linear("q k v", split, d, d + 2 * k, "view")
    if llama:
        box("rotate", split, 3 * n * (d + k), 2 * n * (d + k), 2 * t * config.channels)
    sums = n * config.heads
    box("scores", "b h t s", products, n * d + keys + written, n * d + keys, copied)
    box("softmax", "b h t s", 6 * scores - 2 * sums, 2 * written, written, stats=4 * sums if fused else t * tokens)
    box("weighted sum", "b t h c", products, n * d + keys + written, keys, copied)
    linear("output", "b t d", d, d, copied or "view")
    box("add", "b t d", n * d, 3 * n * d)
    norm()
    linear("gate, up" if llama else "up", "b t f", d, gates * f)
    name, flops = ("gated SiLU", 6 * n * f) if llama else ("GELU", 9 * n * f)
    box(name, "b t f", flops, (gates + 1) * n * f, (2 * gates - 1) * n * f)
    linear("down", "b t d", f, d)
    box("add", "b t d", n * d, 3 * n * d)
    return boxes


def forward_flops(config: Config, tokens: int) -> int:
    """The FLOPs of the matrix products for one text: 2 per weight and token, and the scores, 4·L·D·T², not halved.

    Kaplan et al. 2020, table 1; scores as in Chowdhery et al. 2022 (PaLM), appendix B, whose 12·L·D·T are three times
    these, per token, forward and backward.
    """
    return 2 * config.matrices * tokens + 4 * config.layers * config.width * tokens**2


def kv_bytes(config: Config, itemsize: int = 2) -> int:
    """The bytes that one token adds to the KV cache: a key and a value in each block (Pope et al. 2022)."""
    return 2 * config.layers * config.key_width * itemsize


@dataclass(frozen=True)
class Step:
    """What a step needs on each device: bytes by term and by moment, FLOPs, and the bytes that must at least move.

    alive: at each of the moments at which it may be most. flops: all that run, with what is recomputed; useful: those
    of the model, which an MFU counts.
    """

    memory: Mapping[str, float]
    alive: Mapping[str, float]
    flops: float
    useful: float
    bytes: float

    peak = property(lambda self: max(self.alive.values()), doc="The bytes that must fit.")
    total = property(lambda self: sum(self.memory.values()), doc="The bytes of all terms, at the same time or not.")


def training(
    config: Config, batch: int, tokens: int, *,
    devices: int = 1, precision: str = "mixed bfloat16", recompute: bool = False,
) -> Step:  # fmt: skip
    """A training step with AdamW: each device takes `batch` texts, and all share the states evenly (ZeRO, stage 3).

    >>> step = training(MODELS["GPT-2 small"], batch=8, tokens=1024, precision="float32")
    >>> {term: round(size / 1e9, 2) for term, size in step.memory.items()}, round(step.peak / 1e9, 2)
    ({'weights': 0.5, 'gradients': 0.5, 'moments': 1.0, 'activations': 4.89, 'logits': 1.65}, 11.32)

    Activations are what blocks and final norm keep for the backward pass, attention fused and all else op by op; when
    recomputing, the input of each block, and all of one block at a time (Chen et al. 2016).
    The peak is the largest of three moments: at the loss, where the logarithms of the probabilities, their gradient
    and that of the logits exist, in float32; after the head's gradient, with one recomputed block; and at the end, with
    one block and all gradients. Temporary results of other ops are left out; so are the optimizer's, of any kind.
    Bytes moved: weights read in each pass, activations, logits and gradients written and read, and the optimizer's
    reading and writing of all other states.
    """
    if precision not in PRECISIONS:
        raise ValueError(f"no precision {precision!r}: take one of {', '.join(PRECISIONS)}")
    states, share = PRECISIONS[precision], config.parameters / devices
    itemsize = states["weights"]
    boxes = block_costs(config, batch, tokens, itemsize=itemsize)
    block, inputs = sum(box.kept for box in boxes), batch * tokens * config.width * itemsize
    end = boxes[0].kept + inputs  # the final norm's, and the head's input
    saved = config.layers * block + end
    kept = config.layers * inputs + block + end if recompute else saved
    logits = 4 * batch * tokens * config.vocabulary
    memory = {term: size * share for term, size in states.items()} | {"activations": kept, "logits": logits}
    fixed = (sum(states.values()) - states["gradients"]) * share
    head = states["gradients"] * config.vocabulary * config.width / devices
    alive = {"at the loss": fixed + kept - recompute * block + 3 * logits}
    alive |= {"after the head": fixed + kept + head, "at the end": fixed + block + memory["gradients"]}
    useful = 3 * batch * forward_flops(config, tokens)
    unembedding = 2 * batch * tokens * config.vocabulary * config.width
    flops = useful + (useful // 3 - unembedding if recompute else 0)  # the blocks run forward once more
    # The optimizer reads and writes weight, moments and master copy and reads the gradient, which was written.
    optimizer = 2 * sum(states.values()) * share
    moved = (3 if recompute else 2) * itemsize * config.parameters + optimizer + 2 * (saved + logits)
    return Step(memory, alive, flops, useful, moved)


def traced_step(config: Config, batch: int, *, recompute: bool = False) -> tuple[Trace, int]:
    """A training step of a GPT in float32, and the number of the op with which its backward pass begins.

    It is the second step, so that AdamW has its moments, and AdamW's own work is left out.
    """
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


def decoding(config: Config, batch: int, tokens: int, *, devices: int = 1, itemsize: int = 2) -> Step:
    """A decoding step: each of `batch` texts of `tokens` tokens gets one more; all devices share weights and caches.

    >>> step = decoding(MODELS["Llama 3 8B"], batch=1, tokens=4096)
    >>> round(step.total / 1e9, 1), round(step.flops / step.bytes, 1)  # in FLOP/B
    (16.6, 1.1)

    It reads each weight once for all texts, of the embedding one row a text, and each text's cache (Pope et al. 2022).
    """
    memory = {"weights": config.parameters * itemsize / devices}
    memory["KV cache"] = batch * tokens * kv_bytes(config, itemsize) / devices
    flops = batch * (2 * config.matrices + 4 * config.layers * config.width * tokens) / devices
    table = 0 if config.tied else config.vocabulary * config.width
    moved = (config.parameters - table) * itemsize / devices + memory["KV cache"]
    return Step(memory, {"always": sum(memory.values())}, flops, flops, moved)
