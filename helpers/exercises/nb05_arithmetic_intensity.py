"""The exercises of notebook 05."""

import math
from collections.abc import Callable
from typing import Any

import torch

from helpers.exercises.exercise import function, guess, part, parts, whole

# fmt: off

guess("race", "", (2048, "That is the ratio of the FLOPs."),
    *((times, "An H100 may come to that: here it is your machine.") for times in (1.5, 1.73, 2)))
guess("relu_bytes", "2 bytes in and 2 bytes out for each number.",
    (lambda right: right / 2, "You forgot the write."),
    (lambda right: right * 2, "A number has 2 bytes here, not 4."),
    (lambda right: right / 4, "That is how many numbers there are: each has 2 bytes, and is read and written."))
guess("square_matmul", "It is n/3: 2n³ FLOPs, and three matrices of 2n² bytes each.",
    (1024, "Three matrices move, not one."), (512, "The result is written, too."),
    (1024 / 6, "Half of it: a multiply-add is two FLOPs, and a number has 2 bytes here."),
    (2048 / 3, "A number has 2 bytes."), (256, "Two matrices are read and one is written: three, not four."),
    (2048, "Those are the FLOPs for each number of the result."), (2 * 1024**3, "Those are the FLOPs."))
guess("relu_seconds", "4.19 MB at 3.35 TB/s. At its peak the arithmetic takes 15.7 ns, 80 times less.",
    (lambda right: right / 2, "You forgot the write."), (lambda right: right * 2, "A number has 2 bytes here, not 4."),
    (2**20 / 67e12, "That is the arithmetic."),
    *((lambda right, by=by: right * by, "A microsecond is 1e-6 s.") for by in (1e-3, 1e3)),
    (2**20 / 989.5e12, "That is the arithmetic, and of the matrix units."))
guess("my_ridge", "", *((ridge, "An H100 has 295 and 20: here it is your machine.") for ridge in (295, 20)))
guess("gelu_bytes", "Eight operators move 18 tensors; the fused one moves 2.",
    (8, "Two of the eight read two tensors."), (18, "The fused one moves 2."),
    (16, "Two of the eight read two tensors, and the fused one moves 2."),
    (1, "Each result in between goes to memory and comes back."))
guess("critical_rows", "A little more than the ridge, since the activations have bytes, too.",
    *((rows, "That is for the weights alone.") for rows in (295, 296)),
    *((rows, "A multiply-add is two FLOPs, and a weight has two bytes.") for rows in (147, 148, 150, 590, 591)),
    (163, "That would be right for weights of one byte."), (20, "That is the ridge of the vector units."))
guess("prefill_intensity", "About T/2, and a little for the softmax.",
    (4096, "Queries and results move, too."), (1024, "Half of it: here each query meets each key, and a multiply-add "
    "is two FLOPs."), (128, "That is C, which all four matrices have: it drops out."), (1, "That is a single query."))
guess("kv_bytes", "Key and value × 32 layers × 8 heads × 128 numbers × 2 bytes.",
    (65536, "Key and value, of 2 bytes a number: a 2 is missing."), (32768, "Both factors of 2 are missing."),
    (524288, "8 key heads, not 32."), (262144, "A number has 2 bytes."), (4096, "That is one layer of 32."),
    (16384, "That is one head of 8."), (1024, "Each head has 128 numbers."),
    (128, "That is how many numbers one key has, in one head."))

function("saxpy_intensity",
    lambda n, item: 2 * n / (3 * n * item), [
    (lambda n, item: n / (3 * n * item), "Half of the right one: a multiply-add is two FLOPs; no byte counts twice."),
    (lambda n, item: 2 / (2 * item), "It is two FLOPs and three vectors: x and y are read, and y is written."),
    (lambda n, item: 2 / item, "Three vectors move: x and y are read, and y is written. You counted one."),
    (lambda n, item: 2 / (4 * item), "It is two FLOPs, and three vectors: x and y are read, and y is written."),
    (lambda n, item: 2 * n / ((3 * n + 1) * item), "The number a comes with the call: it moves no bytes."),
    (lambda n, item: 2 / (5 * item), "Five vectors move if a·x is stored on the way; saxpy keeps it in a register."),
    (lambda n, item: 2 / 3, "That is FLOP per element moved: an element has itemsize bytes."),
    (lambda n, item: 2 / (3 * 2), "You took 2 bytes an element: here it is itemsize."),
    (lambda n, item: 2 / (3 * 4), "You took 4 bytes an element: here it is itemsize."),
    (lambda n, item: round(2 / (3 * item), 2), "Do not round."),
    (lambda n, item: 2 * item / 3, "You multiplied by itemsize: bytes belong below."),
    (lambda n, item: 2 * n // (3 * n * item), "Divide with /: the operator // drops what follows the point."),
    (lambda n, item: 2 * n / 3 * n * item, "Put brackets around the divisor: a / b * c multiplies by c."),
    (lambda n, item: 2 * n, "Those are the FLOPs: divide them by the bytes."),
    (lambda n, item: (2 * n, 3 * n * item), "Divide the one by the other."),
    (lambda n, item: 2 / (3 * n * item), "You counted the FLOPs of one element and the bytes of all."),
    (lambda n, item: 2 * n / (3 * item), "You counted the FLOPs of all elements and the bytes of one."),
    ],
    cases=[(1, 4), (1000, 2), (2**20, 8)], draw=lambda r: (r.randint(1, 10**6), r.choice((1, 2, 4, 8))))


def _norm(each: float = 2, shared: float = 2, flop: float = 8, row: float = 0) -> Callable[..., float]:
    return lambda rows, cols, item: flop * rows * cols / (item * (each * rows * cols + shared * cols + row * rows))


function("layer_norm_intensity",
    _norm(), [
    (_norm(1), "You forgot the write: the output is as large as the input."),
    (_norm(3), "You read the input twice; a fused layer norm keeps the row on the chip in between."),
    (_norm(4), "You stored the row in between; in a fused layer norm it stays on the chip."),
    (_norm(4, 0), "You counted weight and bias once for each row: all rows share one copy of them."),
    (_norm(2, 0), "You forgot that weight and bias are read, too; with few rows that shows."),
    (_norm(2, 1), "You counted one of weight and bias: both are read."),
    (_norm(1, 0), "Four tensors move: input, weight and bias are read, and the output is written."),
    (_norm(row=1), "Mean and variance of a row stay on the chip."),
    (_norm(row=2), "Mean and variance of a row stay on the chip."),
    (lambda r, c, item: 8 * r * c / (item * (2 * r * c + 2)), "Weight and bias have cols numbers each, not one."),
    (lambda rows, cols, item: 8 * rows * cols, "Those are the FLOPs: divide them by the bytes."),
    (lambda rows, cols, item: 8 * cols / (item * (2 * rows * cols + 2 * cols)),
     "Those are the FLOPs of one row, and the bytes of all."),
    (lambda rows, cols, item: 4 / item * rows / (rows + 2),
     "Weight and bias are read, and not written: they have 2 · cols numbers in all."),
    (lambda rows, cols, item: 8 * (rows * cols + 2 * cols) / (item * (2 * rows * cols + 2 * cols)),
     "It is 8 per number of the input: weight and bias have no FLOPs of their own."),
    (_norm(flop=1), "You took one FLOP per number, or counted bits: it is 8 per number, and itemsize is in bytes."),
    (_norm(flop=10), "The 8 FLOPs per number include the weight and the bias."),
    (lambda rows, cols, item: _norm()(rows, cols, 2), "You took 2 bytes a number: here it is itemsize."),
    (lambda rows, cols, item: _norm()(rows, cols, 4), "You took 4 bytes a number: here it is itemsize."),
    (lambda rows, cols, item: 8 * rows * cols / (2 * rows * cols * item + 2 * cols),
     "Weight and bias have itemsize bytes a number, too."),
    (lambda rows, cols, item: 8 * rows * cols // (item * (2 * rows * cols + 2 * cols)),
     "Divide with /: the operator // drops what follows the point."),
    (lambda rows, cols, item: _norm()(rows, cols, item) / (rows * cols),
     "You counted the FLOPs of one number and the bytes of all."),
    (lambda rows, cols, item: 8 * rows * cols / (2 * rows * cols + 2 * cols), "An element has itemsize bytes."),
    (lambda rows, cols, item: 8 * rows * cols / (item * (2 * rows * cols + 2 * rows)),
     "Weight and bias have cols numbers each, not rows."),
    ],
    cases=[(1, 1024, 4), (16, 512, 2), (4096, 768, 2), (3, 5, 1)],
    draw=lambda r: (r.randint(1, 5000), r.randint(1, 5000), r.choice((1, 2, 4, 8))))


def _group(
    flop: float = 4, queries: float = 2, keys: float = 2, scores: float = 0, *,
    work: bool = True, q: bool = True, kv: bool = False,
) -> Callable[..., float]:
    """The intensity of a group; `work`, `q` and `kv` say whether FLOPs, queries and keys count once per query head."""
    def intensity(T: int, S: int, heads: int, dim: int, item: int) -> float:
        times = {False: 1, True: heads}
        numbers = queries * times[q] * T * dim + keys * times[kv] * S * dim + scores * heads * T * S
        return flop * times[work] * T * S * dim / (item * numbers)

    return intensity


_SOFTMAX = "The FLOPs of the softmax do not count here: the two matmuls alone."
function("grouped_attention",
    _group(), [
    (_group(2), "You counted half: there are two matmuls, a multiply-add is two FLOPs, and all pairs count."),
    (_group(queries=1), "You forgot the write: the output has a row of dim numbers per query."),
    (_group(keys=1), "You forgot the values: they are as large as the keys."),
    (_group(1), "There are two matmuls, of two FLOPs for each multiply-add."),
    (_group(q=False, kv=True), "You exchanged them: queries are per head, keys and values shared."),
    (_group(queries=3, keys=1), "Queries and output belong to the query heads, keys and values to the shared head."),
    (_group(keys=4), "Two of each size move, queries and output, keys and values; and a multiply-add is two FLOPs."),
    (lambda T, S, heads, dim, item: 4 * heads * T * S * dim, "Those are the FLOPs: divide them by the bytes."),
    (lambda T, *others: _group()(1, *others), "That is decoding, T = 1: here T varies."),
    (lambda T, S, *others: _group()(S, S, *others), "That is prefill, T = S: here both vary."),
    (lambda T, S, *others: _group(4 * T / S)(T, S, *others), "Each query meets S keys, not T."),
    (_group(queries=0), "Queries and output move, too: each query head has its own."),
    (lambda T, S, heads, dim, item: _group()(T, S, heads, dim, item) // 1,
     "Divide with /: the operator // drops what follows the point."),
    (_group(scores=1), "You wrote the scores to memory: the fused kernel never stores them."),
    (_group(scores=2), "You wrote the scores to memory and read them back: the fused kernel never stores them."),
    (_group(kv=True),
     "You gave each query head keys and values of its own, or took one head: the group shares one copy."),
    (_group(work=False), "You counted the FLOPs of one query head: each of them does both matmuls."),
    (_group(q=False), "You counted the bytes of one query head: each has queries and output of its own."),
    (lambda T, S, heads, dim, item: T * S / (T + S),
     "That is one head in a 2-byte format: heads and itemsize vary here."),
    (lambda T, S, heads, dim, item: heads * T * S / (heads * T + S), "That holds for 2 bytes: here itemsize varies."),
    (lambda T, S, heads, dim, item: heads * T * S / (T + S),
     "That holds for 2 bytes; and each query head has queries and output of its own."),
    (lambda T, S, heads, dim, item: item * _group()(T, S, heads, dim, item), "A number has itemsize bytes."),
    (lambda T, S, heads, dim, item: dim * _group()(T, S, heads, dim, item),
     "Each query, key and value has dim numbers: multiply the bytes by it, too."),
    (lambda T, S, heads, dim, item: _group()(T, S, heads, dim, item) / dim,
     "Each dot product takes dim multiply-adds: multiply the FLOPs by it, too."),
    (lambda T, S, heads, dim, item: _group(4 + 5 / dim)(T, S, heads, dim, item), _SOFTMAX),
    (lambda T, S, heads, dim, item: _group(4 + 4 / dim)(T, S, heads, dim, item), _SOFTMAX),
    (lambda T, S, heads, dim, item: 4 * heads * T * S / (item * ((heads + 1) * T + 2 * S)),
     "Every query head has both, queries and an output of its own."),
    ],
    cases=[(1, 4096, 4, 128, 2), (4096, 4096, 8, 128, 2), (64, 1000, 2, 64, 1)],
    draw=lambda r: (r.randint(1, 5000), r.randint(1, 5000), r.randint(1, 16), r.choice((64, 128)), r.choice((1, 2, 4))))


def _critical(d: int, f: int, ridge: float, w: float, x: float = 1, y: float = 1, flop: float = 2) -> float:
    """The batch before rounding; `x` and `y` say whether input and output move."""
    room = flop * d * f - 2 * ridge * (x * d + y * f)
    return ridge * w * d * f / room if room > 0 else math.inf


def _solved(d: int, f: int, ridge: float, w: float) -> float:
    """The batch without a look at the sign of what it is divided by."""
    room = 2 * d * f - 2 * ridge * (d + f)
    return math.ceil(ridge * w * d * f / room) if room else math.inf


def _whole(batch: float, rounded: Callable[[float], float] = math.ceil, none: float | None = math.inf) -> Any:
    return rounded(batch) if batch < math.inf else none


_NONE = "Where no batch is large enough, return math.inf."
_ROUND = "A batch is a whole number: round up. And what you divide by may be zero."
_UP = " And round up."
_OWN = "weight_bytes belongs to the weights, the activations stay in bfloat16; and what you divide by may be zero."
_WEIGHTS = "That is the approximation by the weights alone: the activations have bytes, too."
function("critical_batch",
    lambda *a: _whole(_critical(*a)), [
    (lambda d, f, ridge, w: math.ceil(ridge * w / 2), _WEIGHTS),
    (lambda d, f, ridge, w: math.ceil(ridge),
     "The ridge alone is the answer for 2 bytes per weight and no activations."),
    (lambda *a: _whole(_critical(*a, y=0)), "You forgot the write: the output has B × F numbers."),
    (lambda *a: _whole(_critical(*a, x=0)), "You forgot to read the input: it has B × D numbers."),
    (lambda *a: _whole(_critical(*a, flop=1)), "A multiply-add is two FLOPs: you counted each as one."),
    (lambda *a: _whole(_critical(*a), math.floor), "At that batch the layer is still below the ridge: round up."),
    (lambda *a: _whole(_critical(*a), round), "Rounded to the nearest, the layer may be below the ridge: round up."),
    (lambda *a: _whole(_critical(*a), lambda b: math.floor(b) + 1),
     "Where the batch comes out whole, the layer is at the ridge already: use math.ceil."),
    (_critical, "A batch is a whole number: round up."),
    (lambda *a: _whole(_critical(*a), lambda b: math.ceil(2 * b)), "Twice the right one: a multiply-add is two FLOPs."),
    (lambda d, f, ridge, w: b if (b := ridge * w * d * f / (2 * d * f - 2 * ridge * (d + f))) > 0 else math.inf,
     _ROUND),
    (lambda *a: math.inf, "Some layers do get there: 1024 × 1024 at a ridge of 256, for one."),
    (lambda *a: _whole(_critical(*a), lambda b: 2 ** math.ceil(math.log2(b))), "You tried powers of two only."),
    (lambda d, f, ridge, w: _whole(_critical(d, f, ridge, 1)), "You left out weight_bytes."),
    (lambda d, f, ridge, w: _whole(_critical(d, f, ridge, 8 * w)), "weight_bytes is in bytes already."),
    *[(lambda d, f, ridge, w, rounded=rounded: rounded(ridge * w * d * f / (2 * d * f - 2 * ridge * (d + f))),
       f"What you divide by may be negative or zero; then no batch is large enough.{more}")
      for rounded, more in ((math.ceil, ""), (lambda b: max(1, math.ceil(b)), ""), (int, _UP), (float, _UP))],
    (lambda d, f, ridge, w: math.ceil(ridge * w * d * f / room) if (room := 2 * d * f - 2 * ridge * (d + f)) >= 0
     else math.inf,
     "What you divide by may be zero, too, and then no batch is large enough either."),
    (lambda d, f, ridge, w: math.ceil(ridge * w * d * f / (2 * d * f + 2 * ridge * (d + f))),
     "Solve for B once more: what the activations move takes away from 2DF, it does not add to it."),
    (lambda *a: _whole(_critical(*a, x=0.5, y=0.5)), "The activations are in bfloat16: 2 bytes a number."),
    (lambda d, f, ridge, w: math.ceil(ridge * w / 2) if d * f > ridge * (d + f) else math.inf, _WEIGHTS),
    (lambda d, f, ridge, w: math.ceil(ridge * w / 2) if d * f >= ridge * (d + f) else math.inf, _WEIGHTS),
    (lambda *a: _whole(_critical(*a), none=None), "Where no batch is large enough, return math.inf, not None."),
    (lambda *a: _whole(_critical(*a), none=0), _NONE),
    (lambda *a: _whole(_critical(*a), none=-1), _NONE),
    (lambda *a: _whole(_critical(*a), none="inf"), "Return math.inf, a number, and not the word."),
    (lambda d, f, ridge, w: max(_solved(d, f, ridge, w), 0), "A negative batch means that there is none: math.inf."),
    (lambda d, f, ridge, w: math.ceil(1 / (2 / (ridge * w) - 1 / d - 1 / f)), _OWN),
    *[(lambda *a, end=end, none=none: next((b for b in [_whole(_critical(*a))] if b < end), *none),
       "Your search ends: a batch may be larger still, or there may be none. Solve for it instead.")
      for end in (10_000, 100_000, 10**6) for none in ([math.inf], [])],
    *[(lambda d, f, ridge, w, half=half: math.inf if ridge >= half(d, f) / 2 else _solved(d, f, ridge, w),
       "Half the width holds for square layers: compare D·F / (D + F) with the ridge.")
      for half in (min, max, lambda d, f: (d + f) / 2)],
    (lambda *a: b if (b := _whole(_critical(*a), lambda b: math.floor(b) + 1)) < 10_000 else math.inf,
     "Exactly at the ridge counts, and a search that ends misses the large batches: solve for B."),
    (lambda d, f, ridge, w: math.ceil(b) if (b := 1 / (2 / (ridge * w) - 1 / d - 1 / f)) > 0 else math.inf, _OWN),
    (lambda d, f, ridge, w: _whole(_critical(d, f, ridge, 2)), "You took 2 bytes per weight: here it is weight_bytes."),
    (lambda d, f, ridge, w: _whole(_critical(d, f, ridge * w / 2, 2)),
     "You took weight_bytes for the activations, too: those stay in bfloat16."),
    ],
    cases=[(4096, 16384, 240.5, 2), (4096, 14336, 295.4, 1), (1024, 768, 153.02, 0.5), (512, 512, 295.4, 2),
           (600, 600, 295.4, 2), (512, 512, 256, 2), (4096, 4096, 295.37, 4), (1024, 1024, 256, 2),
           (4096, 512, 300, 2), (512, 690, 295.4, 2), (1024, 1024, 511.93, 2)],
    draw=lambda r: (r.randint(5, 64) * 64 + r.randint(0, 3), r.randint(5, 64) * 64, r.randint(50, 300) + 0.37,
                    r.choice((0.5, 1, 2, 4))),
    same={"return math.ceil(ridge * weight_bytes * D * F / room) if room > 1 else math.inf":
          "room lies between 0 and 1 for no layer that one would build"})


def _experts(
    inputs: float = 1, outputs: float = 1, flop: float = 2, *, one: str = "", work: str = "active"
) -> Callable[..., float]:
    """The intensity of all experts; `one` says what moves once for a token, `work` how many matrices multiply it."""
    def intensity(B: int, D: int, F: int, experts: int, active: int, item: int) -> float:
        times = {"": 1, "active": active, "experts": experts, "both": active * experts}[work]
        read, written = (inputs * (1 if "i" in one else active), outputs * (1 if "o" in one else active))
        return flop * B * times * D * F / (item * (read * B * D + experts * D * F + written * B * F))

    return intensity


_ONCE = "A token that goes to several experts is read and written once for each of them."
_MATRICES = "A token goes to `active` experts, the batch reads all `experts`: you took one number for both, or neither."
function("experts_intensity",
    _experts(), [
    (_experts(one="io"), _ONCE),
    (_experts(one="i"), _ONCE),
    (_experts(one="o"), _ONCE),
    (_experts(work=""), "Each token is multiplied by `active` matrices: that counts in the FLOPs, too."),
    (_experts(work="experts"), "A token is multiplied by `active` of the matrices, not by all of them."),
    (_experts(work="both"), "The experts share the B · active rows among them: do not multiply by experts again."),
    (_experts(outputs=0), "You forgot the write: each expert writes its rows of the output."),
    (_experts(inputs=0), "You forgot to read the tokens: each expert reads its rows."),
    (_experts(0, 0), "You left out the tokens: their rows are read, and others written."),
    (lambda B, D, F, e, k, item: B * k / e,
     "That is for 2 bytes, and without the tokens: their rows are read, and others written."),
    (lambda B, D, F, e, k, item: _experts()(B, D, F, e, k, 2), "You took 2 bytes a number: here itemsize varies."),
    (lambda *a: _experts()(*a) // 1, "Divide with /: the operator // drops what follows the point."),
    (_experts(flop=1), "Half of the right one: a multiply-add is two FLOPs, and no byte counts twice."),
    (lambda B, D, F, e, k, item: 2 * B * k * D * F, "Those are the FLOPs: divide them by the bytes."),
    (lambda B, D, F, e, k, item: _experts(e / k, e / k)(B, D, F, e, k, item),
     "Of B · active rows in all, an expert has B · active / experts: in its bytes, too."),
    (lambda B, D, F, e, k, item: _experts()(B, D, F, k, k, item), _MATRICES),
    (lambda B, D, F, e, k, item: _experts(one="i")(B, D, F, k, k, item), _MATRICES),
    (lambda B, D, F, e, k, item: _experts(one="io")(B, D, F, k, k, item), _MATRICES),
    (lambda B, D, F, e, k, item: _experts()(B, D, F, 1, k, item), "You read one matrix: each expert has its own."),
    (lambda B, D, F, e, k, item: _experts()(B, D, F, e, 1, item),
     "A token is `active` rows, for FLOPs and bytes, and a matrix is read once however many rows it gets."),
    (lambda B, D, F, e, k, item: _experts()(B, D, F, B * k, k, item),
     "An expert reads its matrix once for all of its rows, not once for each of them."),
    (lambda B, D, F, e, k, item: _experts(1 / e, 1 / e)(B, D, F, e, k, item),
     "Those are one expert's rows beside all matrices: all experts together have B · active rows."),
    (lambda B, D, F, e, k, item: item * _experts()(B, D, F, e, k, item), "A number has itemsize bytes."),
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
        ("A100", "The matmuls are far above both ridges: which of the machine's two rates decides then?"),
    ], words=_MACHINES),
    factor=part(1555 / 864, [
        (864 / 1555, "That is the slower over the faster: the factor is above 1."),
        *((times, "That is the ratio of the FLOP/s. What limits decoding at batch 1?")
          for times in (366.5 / 312, 312 / 366.5, 362.05 / 312, 1.2)),
        *((ridge, "That is a peak over a bandwidth, a ridge. What limits decoding at batch 1?")
          for ridge in (312 / 1555, 366.5 / 864)),
        (1555 / 366.5, "You divided the bandwidth of one by the FLOP/s of the other."),
        *((rate, "That is one machine's bandwidth: divide by the other's.") for rate in (1555, 864)),
        (1555 - 864, "That is the difference: a factor is one divided by the other."),
        (1555 / 864 - 1, "That much is added: 80 % faster is a factor of 1.8."),
        (100 * (1555 / 864 - 1), "That much is added: 80 % faster is a factor of 1.8."),
        (180, "That is in percent: 180 % is a factor of 1.8."),
        (312 / 1555 / (366.5 / 864), "That is the ratio of the ridges. What limits decoding at batch 1?"),
        ("1.8", "Give a number, without quotes."),
        ("1.8x", "Give a number, without quotes and x."),
        (2, "That is rounded too far: give two digits."),
        (366.5 / 864 * 1555 / 312, "That is the ratio of the ridges. What limits decoding at batch 1?"),
        (1555 / 864 * 312 / 366.5, "You multiplied both ratios: the longer of the two times counts, not both."),
    ], tolerance=0.01))

_SHAPES = "Write the shape of each operand beside it: hidden[-1] has width numbers, and weight.T is width × vocabulary."
function("last_logits",
    lambda hidden, weight: hidden[-1] @ weight.T, [
    (lambda hidden, weight: (hidden @ weight.T)[-1],
     "You throw the other rows away after the matmul has written them: select the token first."),
    (lambda hidden, weight: (hidden[-1] * weight).sum(-1),
     "Something as large as the weight goes to memory and back: its transpose is a view, and @ stores no products."),
    (lambda hidden, weight: hidden[-1:] @ weight.T,
     "There is a dimension of size 1 too many: [-1:] keeps it, [-1] drops it."),
    (lambda hidden, weight: weight @ hidden[-1][:, None],
     "You added a dimension of size 1: hidden[-1] is a vector already, and @ takes it as it is."),
    (lambda hidden, weight: hidden[:-1] @ weight.T, "Those are all tokens but the last: index with -1."),
    (lambda hidden, weight: hidden[-1],
     "That is the hidden state of the last token: its logits are products with weight."),
    (lambda hidden, weight: weight @ hidden, _SHAPES),
    (lambda hidden, weight: hidden[-1] @ weight, _SHAPES),
    (lambda hidden, weight: hidden[:, -1] @ weight.T, _SHAPES),
    (lambda hidden, weight: (hidden @ weight.T)[:1],
     "That is the first token, and chosen after the matmul: select the last one before it."),
    (lambda hidden, weight: hidden[-1].clone() @ weight.T.clone(), "A clone moves its bytes as well: .T is a view."),
    (lambda hidden, weight: hidden[-2] @ weight.T, "That is the last but one: index with -1."),
    (lambda hidden, weight: (hidden[-1] * weight).sum(0), "Sum over the width, which is dim 1, or use @."),
    (lambda hidden, weight: hidden[-1].bfloat16() @ weight.T.bfloat16(),
     "Keep the dtype: move fewer numbers, each with all of its digits."),
    (lambda hidden, weight: hidden[-2:] @ weight.T, "Those are two tokens: index with -1."),
    (lambda hidden, weight: hidden.mean(0) @ weight.T, "That is the mean of all tokens: index -1 is the last."),
    (lambda hidden, weight: (hidden[-1] @ weight.T).softmax(-1), "Those are probabilities: return the logits."),
    (lambda hidden, weight: (hidden[-1] @ weight.T).argmax(), "That is the likeliest token: return all logits."),
    (lambda hidden, weight: hidden[-1] @ weight[-1], "That is the logit of the last entry of the vocabulary alone."),
    (lambda hidden, weight: hidden[-1] * weight, "Those are the products: sum them, with @."),
    (lambda hidden, weight: (hidden[-1].bfloat16() @ weight.T.bfloat16()).float(),
     "The results are rounded: move fewer numbers, each with all of its digits."),
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


_ONE = ("Op by op, a product, a clone or a tensor of constants still goes to memory and back: "
        "torch.add(…, alpha=…) needs none of them.")
_TWICE = ("The check counts op by op, whatever torch.compile would do, and so the new momentum is computed twice: "
          "compute it once, and use it in both places.")
_VECTORS = [torch.empty(10**6, device="meta") for _ in range(3)]
function("momentum_step",
    _fused, [
    (_momentum,
     "Op by op, ten tensors move, where six would do: what is made on the way, such as a product, goes to memory and "
     "back. Is there one operation that multiplies and adds?"),
    (lambda w, g, m, beta, rate: (w.clone().sub_(n := m.clone().mul_(beta).add_(g), alpha=rate), n),
     "A clone moves two tensors, too: torch.add returns a new one by itself."),
    (lambda w, g, m, beta, rate: (w - rate * beta * m - rate * g, torch.add(g, m, alpha=beta)),
     "You multiply out, and w passes through twice: compute the new momentum once, and use it."),
    (lambda w, g, m, beta, rate: (w.sub_(m.mul_(beta).add_(g), alpha=rate), m),
     "In place an operation moves as many bytes as any other: make new tensors."),
    (lambda w, g, m, beta, rate: (w, m), "These are the old ones: torch.add returns a new tensor, give it a name."),
    (lambda w, g, m, beta, rate: (_momentum(w, g, m, beta, rate)[0], g),
     "The second is the gradient: return the momentum."),
    (lambda w, g, m, beta, rate: _momentum(w, g, m, beta, 1), "The rate is missing: the weight moves by rate · m."),
    (lambda w, g, m, beta, rate: _momentum(w, g, m, 1, rate), "The old momentum counts beta times: beta is missing."),
    (lambda w, g, m, beta, rate: (w - rate * g, g.clone()), "That starts from an empty momentum: m is the old one."),
    (lambda w, g, m, beta, rate: (w - rate * (new := torch.add(g, m, alpha=beta)), new), _ONE),
    (lambda w, g, m, beta, rate: (torch.add(w, new := beta * m + g, alpha=-rate), new), _ONE),
    (lambda w, g, m, beta, rate: (w - rate * (beta * m + g), beta * m + g), _TWICE),
    (lambda w, g, m, beta, rate: (_fused(w, g, m, beta, rate)[0], torch.add(g, m, alpha=beta)),
     "Nine tensors move, where six would do: compute the new momentum once, and step w with it once."),
    (lambda w, g, m, beta, rate: (w + beta * m - rate * g, beta * m - rate * g),
     "Here the momentum gathers gradients; the rate comes in only when the weight moves."),
    (lambda w, g, m, beta, rate: (w - rate * (g + beta * (g + beta * m)), beta * m + g),
     "You damp and add twice: the weight moves by the new momentum as it is."),
    (lambda w, g, m, beta, rate: _momentum(w, g, -m, beta, rate), "The old momentum is added, not subtracted."),
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
    draw=lambda r: (whole(r, 15), whole(r, 15), whole(r, 15), r.choice((0.5, 0.25)), r.choice((0.125, 2.0))),
    cost="bytes_eager", at=[(*_VECTORS, 0.9, 0.1)])
