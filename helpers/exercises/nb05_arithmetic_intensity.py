"""The exercises of notebook 05."""

import math
from collections.abc import Callable
from typing import Any

import torch

from helpers.exercises.exercise import function, part, parts, whole

# fmt: off

function("saxpy_intensity",
    lambda n, item: 2 * n / (3 * n * item), [
    (lambda n, item: n / (3 * n * item), "A multiply-accumulate is two FLOP: you counted each as one."),
    (lambda n, item: 2 / (2 * item), "Three vectors move: x and y are read, and y is written. You counted two."),
    (lambda n, item: 2 / item, "Three vectors move: x and y are read, and y is written. You counted one."),
    (lambda n, item: 2 / (4 * item), "Three vectors move: a is one number, and comes with the call."),
    (lambda n, item: 2 * n / ((3 * n + 1) * item), "The number a comes with the call: it moves no bytes."),
    (lambda n, item: 2 / (5 * item), "Five vectors move if a·x is stored on the way; saxpy keeps it in a register."),
    (lambda n, item: 3 * item / 2, "That is bytes per FLOP: intensity is FLOP per byte."),
    (lambda n, item: 3 / 2, "That is bytes per FLOP, and without itemsize: intensity is FLOP per byte."),
    (lambda n, item: 2 / (3 * item * 8), "Those are bits: itemsize is in bytes already."),
    (lambda n, item: 2 / 3, "That is FLOP per element moved: an element has itemsize bytes."),
    (lambda n, item: 2 / (3 * n * item), "You counted the FLOPs of one element and the bytes of all."),
    (lambda n, item: 2 * n / (3 * item), "You counted the FLOPs of all elements and the bytes of one."),
    ],
    cases=[(1, 4), (1000, 2), (2**20, 8)], draw=lambda r: (r.randint(1, 10**6), r.choice((1, 2, 4, 8))))


def _norm(each: float = 2, shared: float = 2, flop: float = 8, bits: float = 1) -> Callable[..., float]:
    return lambda rows, cols, item: flop * rows * cols / (bits * item * (each * rows * cols + shared * cols))


function("layer_norm_intensity",
    _norm(), [
    (_norm(1), "You forgot the write: the output is as large as the input."),
    (_norm(3), "You read the input twice; a fused layer norm keeps the row on the chip in between."),
    (_norm(4, 0), "You counted weight and bias once for each row: all rows share one copy of them."),
    (_norm(2, 0), "You forgot that weight and bias are read, too; with few rows that shows."),
    (_norm(2, 1), "You counted one of weight and bias: both are read."),
    (_norm(2, 2, 1), "You took one FLOP per number, or counted bits: it is 8 per number, and itemsize is in bytes."),
    (lambda rows, cols, item: 8 * rows * cols / (2 * rows * cols + 2 * cols), "An element has itemsize bytes."),
    (lambda rows, cols, item: item * (2 * rows + 2) / (8 * rows),
     "That is bytes per FLOP: intensity is FLOP per byte."),
    (lambda rows, cols, item: (2 * rows + 2) / (8 * rows), "That is upside down, and an element has itemsize bytes."),
    (lambda rows, cols, item: 8 * rows * cols / (item * (2 * rows * cols + 2 * rows)),
     "Weight and bias have cols numbers each, not rows."),
    (lambda rows, cols, item: 8 * rows * cols / (item * (2 * rows * cols + 2)),
     "Weight and bias have cols numbers each, not one."),
    ],
    cases=[(1, 1024, 4), (16, 512, 2), (4096, 768, 2), (3, 5, 1)],
    draw=lambda r: (r.randint(1, 5000), r.randint(1, 5000), r.choice((1, 2, 4, 8))))


def _group(
    flop: float = 4, queries: float = 2, keys: float = 2, scores: float = 0, *,
    work: bool = True, q: bool = True, kv: bool = False, bits: float = 1,
) -> Callable[..., float]:
    """The intensity of a group; `work`, `q` and `kv` say whether FLOPs, queries and keys count once per query head."""
    def intensity(S: int, T: int, heads: int, dim: int, item: int) -> float:
        times = {False: 1, True: heads}
        numbers = queries * times[q] * S * dim + keys * times[kv] * T * dim + scores * heads * S * T
        return flop * times[work] * S * T * dim / (bits * item * numbers)

    return intensity


function("grouped_attention",
    _group(), [
    (_group(2), "You counted one FLOP per multiply-add, or one of the two matmuls."),
    (_group(1), "There are two matmuls, and a multiply-add is two FLOP."),
    (_group(queries=1), "You forgot the write: the output has a row of dim numbers per query."),
    (_group(keys=1), "You forgot the values: they are as large as the keys."),
    (_group(queries=1, keys=1), "Four tensors move: queries, keys, values, and the output."),
    (_group(scores=1), "You wrote the scores to memory: the fused kernel never stores them."),
    (_group(scores=2), "You wrote the scores to memory and read them back: the fused kernel never stores them."),
    (_group(kv=True),
     "You gave each query head keys and values of its own, or took one head: the group shares one copy."),
    (_group(work=False), "You counted the FLOPs of one query head: each of them does both matmuls."),
    (_group(q=False), "You counted the bytes of one query head: each has queries and output of its own."),
    (_group(bits=8), "Those are bits: itemsize is in bytes already."),
    (lambda S, T, heads, dim, item: S * T / (S + T),
     "That is one head in a 2-byte format: heads and itemsize vary here."),
    (lambda S, T, heads, dim, item: heads * S * T / (heads * S + T), "That holds for 2 bytes: here itemsize varies."),
    (lambda *a: 1 / _group()(*a), "That is bytes per FLOP: intensity is FLOP per byte."),
    ],
    cases=[(1, 4096, 4, 128, 2), (4096, 4096, 8, 128, 2), (64, 1000, 2, 64, 1)],
    draw=lambda r: (r.randint(1, 5000), r.randint(1, 5000), r.randint(1, 16), r.choice((64, 128)), r.choice((1, 2, 4))))


def _critical(d: int, f: int, ridge: float, w: float, x: float = 1, y: float = 1, flop: float = 2) -> float:
    """The batch before rounding; `x` and `y` say whether input and output move."""
    room = flop * d * f - 2 * ridge * (x * d + y * f)
    return ridge * w * d * f / room if room > 0 else math.inf


def _whole(batch: float, rounded: Callable[[float], float] = math.ceil, none: float | None = math.inf) -> Any:
    return rounded(batch) if batch < math.inf else none


_NONE = "Where no batch is large enough, return math.inf."
function("critical_batch",
    lambda *a: _whole(_critical(*a)), [
    (lambda d, f, ridge, w: math.ceil(ridge * w / 2),
     "That is the approximation by the weights alone: the activations have bytes, too."),
    (lambda d, f, ridge, w: math.ceil(ridge),
     "The ridge alone is the answer for 2 bytes per weight and no activations."),
    (lambda *a: _whole(_critical(*a, y=0)), "You forgot the write: the output has B × F numbers."),
    (lambda *a: _whole(_critical(*a, x=0)), "You forgot to read the input: it has B × D numbers."),
    (lambda *a: _whole(_critical(*a, flop=1)), "A multiply-accumulate is two FLOP: you counted each as one."),
    (lambda *a: _whole(_critical(*a), math.floor), "At that batch the layer is still below the ridge: round up."),
    (lambda *a: _whole(_critical(*a), round), "Rounded to the nearest, the layer may be below the ridge: round up."),
    (lambda *a: _whole(_critical(*a), lambda b: math.floor(b) + 1),
     "Where the batch comes out whole, the layer is at the ridge already: use math.ceil."),
    (_critical, "A batch is a whole number: round up."),
    (lambda d, f, ridge, w: math.ceil(ridge * w * d * f / (2 * d * f - 2 * ridge * (d + f))),
     "What you divide by may be negative or zero; then no batch is large enough."),
    (lambda *a: _whole(_critical(*a), none=None), "Where no batch is large enough, return math.inf, not None."),
    (lambda *a: _whole(_critical(*a), none=0), _NONE),
    (lambda *a: _whole(_critical(*a), none=-1), _NONE),
    (lambda *a: b if (b := _whole(_critical(*a))) < 10_000 else math.inf,
     "Your search ends too early: a batch may be large. Solve for it instead."),
    (lambda d, f, ridge, w: _whole(_critical(d, f, ridge, 2)), "You took 2 bytes per weight: here it is weight_bytes."),
    (lambda d, f, ridge, w: _whole(_critical(d, f, ridge * w / 2, 2)),
     "You took weight_bytes for the activations, too: those stay in bfloat16."),
    ],
    cases=[(4096, 16384, 240.5, 2), (4096, 14336, 295.4, 1), (1024, 768, 153.02, 0.5), (512, 512, 295.4, 2),
           (600, 600, 295.4, 2), (512, 512, 256, 2), (4096, 4096, 295.37, 4), (1024, 1024, 256, 2)],
    draw=lambda r: (r.randint(5, 64) * 64 + r.randint(0, 3), r.randint(5, 64) * 64, r.randint(50, 300) + 0.37,
                    r.choice((0.5, 1, 2, 4))),
    same={"return math.ceil(ridge * weight_bytes * D * F / room) if room > 1 else math.inf":
          "room lies between 0 and 1 for no layer that one would build"})


def _experts(rows: bool = True, inputs: bool = True, outputs: bool = True, flop: float = 2) -> Callable[..., float]:
    """The intensity of all experts; `rows` says whether a token counts in the bytes once for each of its experts."""
    def intensity(B: int, D: int, F: int, experts: int, active: int, item: int) -> float:
        moved = B * active if rows else B
        return flop * B * active * D * F / (item * (inputs * moved * D + experts * D * F + outputs * moved * F))

    return intensity


function("experts_intensity",
    _experts(), [
    (_experts(rows=False), "A token that goes to several experts is read and written once for each of them."),
    (_experts(outputs=False), "You forgot the write: each expert writes its rows of the output."),
    (_experts(inputs=False), "You forgot to read the tokens: each expert reads its rows."),
    (_experts(inputs=False, outputs=False), "You left out the tokens: their rows are read, and others written."),
    (lambda B, D, F, e, k, item: _experts()(B, D, F, e, k, 2), "You took 2 bytes a number: here itemsize varies."),
    (_experts(flop=1), "A multiply-accumulate is two FLOP: you counted each as one."),
    (lambda B, D, F, e, k, item: _experts()(B, D, F, k, k, item),
     "A token goes to `active` experts, and the batch reads all `experts`: you took one number for both."),
    (lambda B, D, F, e, k, item: _experts()(B, D, F, 1, k, item), "You read one matrix: each expert has its own."),
    (lambda B, D, F, e, k, item: _experts()(B, D, F, e, 1, item),
     "You sent each token to one expert: it goes to `active` of them."),
    (lambda B, D, F, e, k, item: item * _experts()(B, D, F, e, k, item), "A number has itemsize bytes."),
    (lambda *a: _experts()(*a) / 8, "Those are bits: itemsize is in bytes already."),
    (lambda *a: 1 / _experts()(*a), "That is bytes per FLOP: intensity is FLOP per byte."),
    ],
    cases=[(64, 512, 1024, 8, 2, 2), (4096, 2048, 768, 128, 8, 1), (1000, 300, 500, 4, 1, 4)],
    draw=lambda r: (r.randint(50, 5000), r.randint(64, 4096), r.randint(64, 4096), r.randint(8, 64), r.randint(1, 6),
                    r.choice((1, 2, 4))))

_MACHINES = ("A100", "L40S")
parts("faster_machine",
    decodes=part("A100", [
        ("L40S", "At batch 1 the intensity is about 1: which of the machine's two rates decides then?"),
    ], words=_MACHINES),
    prefills=part("L40S", [
        ("A100", "A long prompt is far above both ridges: which of the machine's two rates decides then?"),
    ], words=_MACHINES),
    factor=part(1555 / 864, [
        (864 / 1555, "That is the slower over the faster: the factor is above 1."),
        (366.5 / 312, "That is the ratio of the FLOP/s. What limits decoding at batch 1?"),
        (312 / 366.5, "That is the ratio of the FLOP/s. What limits decoding at batch 1?"),
        (1555 / 864 * 312 / 366.5, "You multiplied both ratios: the longer of the two times counts, not both."),
    ], tolerance=0.01))

function("last_logits",
    lambda hidden, weight: hidden[-1] @ weight.T, [
    (lambda hidden, weight: (hidden @ weight.T)[-1],
     "You throw the other rows away after the matmul has written them: select the token first."),
    (lambda hidden, weight: (hidden[-1] * weight).sum(-1),
     "Something as large as the weight goes to memory and back: its transpose is a view, and @ stores no products."),
    (lambda hidden, weight: hidden[-1:] @ weight.T, "You kept a dimension of size 1: index with -1, not with -1:."),
    (lambda hidden, weight: hidden[0] @ weight.T, "That is the first token: index -1 is the last."),
    (lambda hidden, weight: hidden @ weight[-1], "That is the last entry of the vocabulary for each token."),
    ],
    cases=[(torch.arange(128.0).view(8, 16) - 60, torch.arange(768.0).view(48, 16) % 11)],
    draw=lambda r: (whole(r, r.randint(2, 9), width := r.randint(9, 20)), whole(r, r.randint(9, 40), width)),
    cost="bytes_eager", at=[(torch.empty(512, 4096, device="meta"), torch.empty(128_000, 4096, device="meta"))])


def _momentum(w: Any, g: Any, m: Any, beta: float, rate: float) -> tuple[Any, Any]:
    m = beta * m + g
    return w - rate * m, m


def _fused(w: Any, g: Any, m: Any, beta: float, rate: float) -> tuple[Any, Any]:
    m = torch.add(g, m, alpha=beta)
    return torch.add(w, m, alpha=-rate), m


_ONE = "One multiplication still goes to memory and back: torch.add(…, alpha=…) does both of them on the way."
_VECTORS = [torch.empty(10**6, device="meta")] * 3
function("momentum_step",
    _fused, [
    (_momentum,
     "Each multiplication goes to memory and back, in place or not: torch.add(…, alpha=…) does it on the way."),
    (lambda w, g, m, beta, rate: (w - rate * (new := torch.add(g, m, alpha=beta)), new), _ONE),
    (lambda w, g, m, beta, rate: (torch.add(w, new := beta * m + g, alpha=-rate), new), _ONE),
    (lambda w, g, m, beta, rate: (w - rate * m, beta * m + g), "You step along the old momentum: update it first."),
    (lambda w, g, m, beta, rate: (w - rate * g, beta * m + g),
     "You step along the gradient: the momentum moves the weight."),
    (lambda w, g, m, beta, rate: _momentum(w, g, m, beta, -rate),
     "You step uphill: the weight moves against the momentum."),
    (lambda w, g, m, beta, rate: _momentum(w, g, m, beta, rate)[::-1], "Return the weight first, then the momentum."),
    (lambda w, g, m, beta, rate: _momentum(w, beta * g, m / beta, beta, rate),
     "The momentum is damped, not the gradient."),
    (lambda w, g, m, beta, rate: _momentum(w, (1 - beta) * g, m, beta, rate),
     "That is a running mean: here the gradient is added as it is."),
    (lambda w, g, m, beta, rate: _momentum(w, g, m, beta, rate)[0],
     "Return both, the new weight and the new momentum."),
    (lambda w, g, m, beta, rate: _momentum(w, g, m, rate, beta), "You exchanged beta and the rate."),
    ],
    cases=[(torch.arange(64.0), torch.arange(64.0).flip(0), torch.arange(64.0) + 3, 0.5, 0.25)],
    draw=lambda r: (whole(r, 5, 3), whole(r, 5, 3), whole(r, 5, 3), r.choice((0.5, 0.25)), r.choice((0.125, 2.0))),
    cost="bytes_eager", at=[(*_VECTORS, 0.9, 0.1)])
