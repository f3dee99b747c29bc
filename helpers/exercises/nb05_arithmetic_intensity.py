"""The exercises of notebook 05."""

import math
from collections.abc import Callable
from typing import Any

import torch

from helpers.exercises.exercise import exercise, guess, notebook, whole

notebook("05")

# fmt: off

guess("race", "Not two thousand times: time does not follow arithmetic alone.",
    ((1900, 2100), "That is the ratio of the FLOPs."), (1.73, "So it could be on an H100: this is your machine."))

guess("relu_bytes", "2 bytes in and 2 bytes out for each number.",
    ((1.9e6, 2.2e6), "You forgot the write."),
    ((3.9e6, 4.1e6), "The right idea: 1024 · 1024 is a little more than a million."),
    ((7.9e6, 8.5e6), "A number has 2 bytes here, not 4."),
    ((0.9e6, 1.1e6), "That is how many numbers there are: each has 2 bytes, and is read and written."))

guess("memory_bound_of_five", "All but the matmul.",
    (5, "The matmul uses each number that it reads a thousand times."),
    (1, "That one is compute-bound: the question is how many are not."),
    (3, "Was it GELU that you left out, or matrix-vector? Of both the bytes take far longer."))
guess("matmul_of_4096", "n/3: 2n³ FLOPs over three matrices of 2n² bytes.",
    (341, "It was that at n = 1024: FLOPs grow as n³, bytes as n²."),
    (4096 / 2, "Three matrices move, with 2 bytes a number."),
    (4096 / 6, "A multiply-add is two FLOPs, and a number has 2 bytes."),
    (1024 / 3 * 16, "The FLOPs grow 64 times, the bytes 16 times."))
guess("h100_ridge", "989.5 TFLOP/s over 3.35 TB/s.",
    (20, "That is the vector units' ridge."), (341, "That is the matmul's intensity: the ridge is the machine's."),
    (0.0034, "It is upside down: peak over bandwidth."), (989.5, "That is the peak: divide it by the bandwidth."))
guess("knee_here", "k over the bytes of a number is the intensity: the ridge times those bytes.",
    (lambda right: right / 4, "That is the ridge itself: what is the intensity of this product?"),
    (lambda right: right / 2, "How many bytes has a number here?"),
    (lambda right: 2 * right, "A multiply-add is two FLOPs, and each number is read and written: both twos cancel."))
guess("h200_ridge", "989.5 TFLOP/s over 4.8 TB/s: more bytes arrive for the same arithmetic.",
    (295, "That is the H100's: more bytes arrive here."), (423, "The other way: faster memory lowers the ridge."))
guess("users_that_fit", "80 GB less 16 GB of weights, in caches of 0.54 GB.",
    (149, "Then nothing would be left for the weights."), (28, "There the caches take as much as the weights."),
    (120, "Only whole users, and the embedding lies in memory, too."), (121, "The embedding lies in memory, too."),
    (134, "The weights take 2 bytes each: 16 GB."))
guess("race_by_bounds", "1024 over the bytes of a number and the ridge.",
    (lambda right: 2 * right, "A number has 4 bytes here, not 2."),
    (lambda right: right / 2, "A number has 2 bytes here."),
    (lambda right: 4 * right, "Divide by the bytes of a number, too."))

guess("gelu_bytes", "Eight operators move 18 tensors; the fused one moves 2.",
    (8, "Two of the eight read two tensors."),
    (16, "Sixteen would be tensors, two for each operator: two of them read two, and the fused one moves 2."),
    (18, "The fused one moves 2."),
    (1, "Each result in between goes to memory and comes back."))

guess("critical_rows", "A little more than the ridge, since the activations have bytes, too.",
    *((rows, "That is for the weights alone: inputs and outputs have bytes, too.") for rows in range(290, 300)),
    (301, "Near the ridge, inputs and outputs have bytes enough to matter, both of them."),
    (163, "Did you take one byte for a weight? These have two."),
    *((rows, "Did you take one FLOP for a multiply-add, or another number of bytes for a weight than two?")
      for rows in (148, 590)),
    (650, "Twice too many: a multiply-add is two FLOPs, and a weight has two bytes."),
    (20, "That is the ridge of the vector units."))

guess("decoding_attention", "2 bytes are read for 2 FLOPs; the query itself hardly counts.",
    (2048, "So it is in prefill, where thousands of queries share each key."),
    (4096, "Each of the 4096 keys is read, too."), (295, "That is the ridge."),
    (4, "So it is where four query heads share a key: here each has its own."),
    (2, "A number has 2 bytes here."), (0.5, "A multiply-add is two FLOPs."))

guess("users_64", "A step for 64 reads the weights once, and 64 caches.",
    (3.2, "That is how much longer a step takes: it makes 64 tokens."),
    *((span, "Weights and caches both count: a step for 64 reads 15 + 64 · 0.54 GB.") for span in ((5, 15), (26, 60))),
    (64, "So it would be if all bytes were weights: each user's cache is read as well."),
    (4343, "Those are tokens per second: how many times as many as for one?"),
    (1, "So it would be if all bytes were caches: the weights are read once for all users."),
    (lambda right: right / 64, "That is what each of them gets, beside one alone."))

exercise("saxpy_intensity",
    lambda n, item: 2 * n / (3 * n * item), [
    (lambda n, item: 1 / (3 * item), "Half of the right one: a multiply-add is two FLOPs; no byte counts twice."),
    (lambda n, item: 2 / (2 * item), "It is two FLOPs and three vectors: x and y are read, and y is written."),
    (lambda n, item: 1 / (2 * item), "Saxpy does two FLOPs for each three numbers that it moves."),
    (lambda n, item: 2 / (5 * item), "Five vectors move if a·x is stored on the way; saxpy keeps it on the chip."),
    (lambda n, item: 2 / 3, "That is FLOP per element moved: an element has itemsize bytes."),
    (lambda n, item: 2 / (3 * 2), "You took 2 bytes an element: here it is itemsize."),
    (lambda n, item: 2 / (3 * 4), "You took 4 bytes an element: here it is itemsize."),
    (lambda n, item: 2 * item / 3, "You multiplied by itemsize: bytes belong below."),
    ],
    cases=[(1, 4), (1000, 2), (2**20, 8)], draw=lambda r: (r.randint(1, 10**6), r.choice((1, 2, 4, 8))))


exercise("grouped_attention",
    lambda T, S, heads, dim, item: 4 * heads * T * S * dim / (item * (2 * heads * T * dim + 2 * S * dim)), [
    # in the wrong ones `dim` is cancelled
    (lambda T, S, heads, dim, item: heads * T * S / (item * (heads * T + S)),
     "You counted half: there are two matmuls, a multiply-add is two FLOPs, and all pairs count."),
    (lambda T, S, heads, dim, item: 4 * heads * T * S / (item * (heads * T + 2 * S)),
     "You forgot the output, or the queries: each has a row of dim numbers per query."),
    (lambda T, S, heads, dim, item: 4 * heads * T * S / (item * (heads * T + T + 2 * S)),
     "Each query head has queries and a result of its own, of the same size."),
    (lambda T, S, heads, dim, item: 4 * heads * T * S / (item * (2 * heads * T + S)),
     "You forgot the values: they are as large as the keys."),
    (lambda T, S, heads, dim, item: 2 * T * S / (item * (T + S)),
     "You gave each query head keys and values of its own, or took one head: the group shares one copy."),
    (lambda T, S, heads, dim, item: 2 * T * S / (item * (heads * T + S)),
     "You counted the FLOPs of one query head: each of them does both matmuls."),
    (lambda T, S, heads, dim, item: 2 * heads * T * S / (heads * T + S), "A number has itemsize bytes."),
    (lambda T, S, heads, dim, item: 2 * heads * T * S / (item * (heads * T + S)) / dim,
     "The FLOPs grow with dim, too: each score is a sum of dim products."),
    ],
    over=lambda T, S, heads, dim, item: 4 * heads * T * S * dim,
    terms={"the queries and the output": lambda T, S, heads, dim, item: item * 2 * heads * T * dim,
           "keys and values": lambda T, S, heads, dim, item: item * 2 * S * dim},
    cases=[(1, 4096, 4, 128, 2), (4096, 4096, 8, 128, 2), (64, 1000, 2, 64, 1)],
    draw=lambda r: (r.randint(1, 5000), r.randint(1, 5000), r.randint(1, 16), r.choice((64, 128)), r.choice((1, 2, 4))))


def _batch(
    d: int, f: int, ridge: float, w: float, *, flop: float = 2, inputs: float = 1, outputs: float = 1,
    rounded: Callable[[float], float] = math.ceil, none: float | None = math.inf,
) -> float | None:
    """`inputs` and `outputs` say whether these move, `none` is returned where no batch is large enough."""
    room = flop * d * f - 2 * ridge * (inputs * d + outputs * f)
    return rounded(ridge * w * d * f / room) if room > 0 else none


exercise("critical_batch",
    _batch, [
    (lambda *a: _batch(*a, rounded=float), "A batch is a whole number: round up."),
    (lambda *a: _batch(*a, rounded=math.floor), "At that batch the layer is still below the ridge: round up."),
    (lambda *a: _batch(*a, rounded=lambda b: math.floor(b) + 1),
     "Where the batch comes out whole, the layer is at the ridge already: use math.ceil."),
    *((lambda *a, moved=moved: _batch(*a, inputs=moved, outputs=moved), "Each number of the activations has 2 bytes.")
      for moved in (0.5, 2)),
    (lambda *a: _batch(*a, inputs=-1, outputs=-1),
     "A sign: the activations' bytes make the critical batch larger, so they are taken from what you divide by."),
    (lambda d, f, ridge, w: math.ceil(ridge * w * d * f / abs(2 * d * f - 2 * ridge * (d + f)))
     if d * f != ridge * (d + f) else math.inf, "What you divide by may be negative: then no batch is large enough."),
    *((lambda *a, most=most: b if (b := _batch(*a)) <= most else math.inf,
       "Your search stops too early: the batch may be larger. Solve for it.") for most in (9998, 99_999)),
    (lambda d, f, ridge, w: math.ceil(ridge * w * d * f / (2 * d * f - 2 * ridge * (d + f))),
     "What you divide by may be negative or zero; then no batch is large enough."),
    (lambda d, f, ridge, w: math.ceil(ridge * w * d * f / room) if (room := 2 * d * f - 2 * ridge * (d + f))
     else math.inf, "What you divide by may be negative, too: then no batch is large enough."),
    (lambda *a: _batch(*a, rounded=round), "To the nearest may be below the ridge: round up."),
    (lambda d, f, ridge, w: math.ceil(ridge * w * d * f / room) if (room := 2 * d * f - 2 * ridge * (d + f)) >= 0
     else math.inf,
     "What you divide by may be zero, too, and then no batch is large enough either."),
    ],
    cases=[(4096, 16384, 240.5, 2), (4096, 14336, 295.4, 1), (1024, 768, 153.02, 0.5), (512, 512, 295.4, 2),
           (600, 600, 295.4, 2), (512, 512, 256, 2), (4096, 4096, 295.37, 4), (1024, 1024, 256, 2),
           (4096, 512, 300, 2), (512, 690, 295.4, 2), (1024, 1024, 511.93, 2)],
    draw=lambda r: (r.randint(5, 64) * 64 + r.randint(0, 3), r.randint(5, 64) * 64, r.randint(50, 300) + 0.37,
                    r.choice((0.5, 1, 2, 4))),
    equivalent_slips={"return math.ceil(ridge * weight_bytes * D * F / room) if room > 1 else math.inf":
          "room lies between 0 and 1 for no layer that one would build"})

exercise("experts_intensity",
    lambda B, D, F, e, k, item: 2 * B * k * D * F / (item * (B * k * D + e * D * F + B * k * F)), [
    (lambda B, D, F, e, k, item: B * k * D * F / (item * (B * k * D + e * D * F + B * k * F)),
     "Half of the right one: a multiply-add is two FLOPs, and no byte counts twice."),
    (lambda B, D, F, e, k, item: 2 * B * k * D * F / (item * (B * D + e * D * F + B * F)),
     "A token that goes to several experts is read and written once for each of them."),
    (lambda B, D, F, e, k, item: 2 * B * k * D * F / (item * (B * k * D + e * D * F)),
     "You forgot the write: each expert writes its rows of the output."),
    (lambda B, D, F, e, k, item: 2 * B * k * D * F / (item * (e * D * F + B * k * F)), "You forgot the input."),
    *((lambda B, D, F, e, k, item, i=i, o=o: 2 * B * k * D * F / (item * (B * k**i * D + e * D * F + B * k**o * F)),
       "Each token is `active` rows, of the input and of the output.")
      for i, o in ((0, 1), (1, 0))),
    (lambda B, D, F, e, k, item: 2 * B * D * F / (item * (B * k * D + e * D * F + B * k * F)),
     "Each token is multiplied by `active` matrices: that counts in the FLOPs, too."),
    (lambda B, D, F, e, k, item: 2 * B * e * D * F / (item * (B * k * D + e * D * F + B * k * F)),
     "A token is multiplied by `active` of the matrices, not by all of them."),
    (lambda B, D, F, e, k, item: 2 * B * D * F / (item * (B * D + e * D * F + B * F)),
     "A token is `active` rows, for FLOPs and bytes, and a matrix is read once however many rows it gets."),
    ],
    over=lambda B, D, F, e, k, item: 2 * B * k * D * F,
    terms={"the rows read": lambda B, D, F, e, k, item: item * B * k * D,
           "the matrices": lambda B, D, F, e, k, item: item * e * D * F,
           "the rows written": lambda B, D, F, e, k, item: item * B * k * F},
    cases=[(64, 512, 1024, 8, 2, 2), (4096, 2048, 768, 128, 8, 1), (1000, 300, 500, 4, 1, 4)],
    draw=lambda r: (r.randint(50, 5000), r.randint(64, 4096), r.randint(64, 4096), r.randint(8, 64), r.randint(1, 6),
                    r.choice((1, 2, 4))))

exercise("last_logits",
    lambda hidden, weight: hidden[-1] @ weight.T, [
    (lambda hidden, weight: (hidden @ weight.T)[-1],
     "You throw the other rows away after the matmul has written them: select the token first."),
    (lambda hidden, weight: (hidden[-2:] @ weight.T)[-1], "You multiply a second row, and throw it away."),
    (lambda hidden, weight: (hidden[-1] * weight).sum(-1),
     "Something as large as the weight goes to memory and back: its transpose is a view, and @ stores no products."),
    (lambda hidden, weight: hidden[-1:] @ weight.T,
     "There is a dimension of size 1 too many: [-1:] keeps it, [-1] drops it."),
    (lambda hidden, weight: hidden[0] @ weight.T, "That is the first token: index -1 is the last."),
    (lambda hidden, weight: hidden[-1] @ weight,
     "Write the shape of each operand beside it: hidden[-1] has width numbers, and weight.T is width × vocabulary."),
    ],
    cases=[(torch.arange(128.0).view(8, 16) - 60, torch.arange(768.0).view(48, 16) % 11)],
    draw=lambda r: (whole(r, r.randint(2, 9), width := r.randint(9, 20)), whole(r, r.randint(9, 40), width)),
    cost="bytes_eager", allowed_ratio=1.0002,  # two rows of logits are 1.00025
    counted_at=[(torch.empty(512, 4096, device="meta"), torch.empty(128_000, 4096, device="meta"))])


def _momentum(w: Any, g: Any, m: Any, beta: float, rate: float) -> tuple[Any, Any]:
    m = beta * m + g
    return w - rate * m, m


def _fused(w: Any, g: Any, m: Any, beta: float, rate: float) -> tuple[Any, Any]:
    m = torch.add(g, m, alpha=beta)
    return torch.add(w, m, alpha=-rate), m


_VECTORS = [torch.empty(10**6, device="meta") for _ in range(3)]
exercise("momentum_step",
    _fused, [
    (_momentum,
     "Op by op, ten tensors move, where six would do: what is made on the way, such as a product or a stack, goes to "
     "memory and back. One operation can multiply and add."),
    (lambda w, g, m, beta, rate: (w - rate * (new := torch.add(g, m, alpha=beta)), new),
     "Op by op, a product, a clone or a tensor of constants still goes to memory and back: torch.add(…, alpha=…) needs "
     "none of them."),
    (lambda w, g, m, beta, rate: (_fused(w, g, m, beta, rate)[0], torch.add(g, m, alpha=beta)),
     "Nine tensors move, where six would do: two operations, each on two tensors, are enough."),
    (lambda w, g, m, beta, rate: (w - rate * (beta * m + g), beta * m + g),
     "Op by op, what is computed twice counts twice: compute the new momentum once, and use it in both places."),
    (lambda w, g, m, beta, rate: (w.sub_(m.mul_(beta).add_(g), alpha=rate), m),
     "In this count an operation in place moves as many bytes as any other: make new tensors."),
    (lambda w, g, m, beta, rate: _momentum(w, g, m, beta, -rate),
     "You step uphill: the weight moves against the momentum."),
    (lambda w, g, m, beta, rate: (_fused(w, g, m, beta, rate)[0], m), "Return the new momentum: that is the old one."),
    (lambda w, g, m, beta, rate: (w - rate * m, beta * m + g), "You step along the old momentum: update it first."),
    (lambda w, g, m, beta, rate: (w - rate * g, beta * m + g), "You step along the gradient: take the new momentum."),
    (lambda w, g, m, beta, rate: (torch.add(w, new := torch.add(m, g, alpha=beta), alpha=-rate), new),
     "alpha multiplies the second tensor: the momentum is what beta shrinks, not the gradient."),
    (lambda w, g, m, beta, rate: _momentum(w, (1 - beta) * g, m, beta, rate), "The gradient is added as it is."),
    (lambda w, g, m, beta, rate: _momentum(w, g, m, beta, rate)[::-1], "Return the weight first, then the momentum."),
    ],
    cases=[(torch.arange(64.0), torch.arange(64.0).flip(0), torch.arange(64.0) + 3, 0.5, 0.25)],
    draw=lambda r: (whole(r, 15), whole(r, 15), whole(r, 15), r.choice((0.5, 0.25)), r.choice((0.125, 2.0))),
    cost="bytes_eager", counted_at=[(*_VECTORS, 0.9, 0.1)])
