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
    (2, "Of most of them the bytes take far longer: put the two times side by side."),
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
    (295, "That is for the weights alone: inputs and outputs have bytes, too."),
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
    ((5, 15), "The weights, 15 GB, are read once for all 64: a step for 64 is not so much longer."),
    ((26, 60), "The weights are shared, but each of the 64 brings a cache of 0.54 GB to read."),
    (64, "So it would be if all bytes were weights: each user's cache is read as well."),
    (4343, "Those are tokens per second: how many times as many as for one?"),
    (1, "So it would be if all bytes were caches: the weights are read once for all users."),
    (lambda right: right / 64, "That is what each of them gets, beside one alone."))

exercise("saxpy_intensity",
    lambda n, itemsize: 2 * n / (3 * n * itemsize), [
    (lambda n, itemsize: 1 / (3 * itemsize),
     "Half of the right one: is a multiply-add one FLOP or two? Or did you let each byte move twice?"),
    (lambda n, itemsize: 2 / (2 * itemsize),
     "Half as much again: did you leave out that the result moves, too, or count it as a FLOP?"),
    (lambda n, itemsize: 2 / (5 * itemsize),
     "Five vectors move where a·x is stored and read again, op by op: a single kernel keeps it on the chip."),
    (lambda n, itemsize: 2 / 3, "That is FLOPs per number that moves: intensity is per byte."),
    ],
    cases=[(1, 4), (1000, 2), (2**20, 8)], draw=lambda r: (r.randint(1, 10**6), r.choice((1, 2, 4, 8))))


exercise("grouped_attention",
    lambda T, S, heads, dim, itemsize: 4 * heads * T * S * dim / (itemsize * (2 * heads * T * dim + 2 * S * dim)), [
    (lambda T, S, heads, dim, itemsize: heads * T * S / (itemsize * (heads * T + S)),
     "Half of the right one: one matmul of two, MACs, or half of the pairs, as behind a causal mask?"),
    (lambda T, S, heads, dim, itemsize: 4 * heads * T * S / (itemsize * (heads * T + T + 2 * S)),
     "You gave the group one head of queries, or one of results: only keys and values are shared."),
    (lambda T, S, heads, dim, itemsize: 2 * T * S / (itemsize * (T + S)),
     "So it is with keys and values for each query head, or with one head: the group shares one copy."),
    (lambda T, S, heads, dim, itemsize: 2 * T * S / (itemsize * (heads * T + S)),
     "You counted the FLOPs of one head: the group shares its keys, but not the work."),
    (lambda T, S, heads, dim, itemsize: 2 * heads * T * S / (itemsize * (heads * T + S)) / dim,
     "You counted a FLOP or two for each score: each of them is a sum over all of `dim`."),
    ],
    over=lambda T, S, heads, dim, itemsize: 4 * heads * T * S * dim,
    terms={"the queries and the output": lambda T, S, heads, dim, itemsize: itemsize * 2 * heads * T * dim,
           "keys and values": lambda T, S, heads, dim, itemsize: itemsize * 2 * S * dim},
    cases=[(1, 4096, 4, 128, 2), (4096, 4096, 8, 128, 2), (64, 1000, 2, 64, 1)],
    draw=lambda r: (r.randint(1, 5000), r.randint(1, 5000), r.randint(1, 16), r.choice((64, 128)), r.choice((1, 2, 4))))


def _batch(
    D: int, F: int, ridge: float, weight_bytes: float, *, activation_bytes: float = 2,
    rounded: Callable[[float], float] = math.ceil, none: Callable[[float], bool] = lambda room: room <= 0,
) -> float:
    """`none` says for which denominators no batch is large enough."""
    room = 2 * D * F - activation_bytes * ridge * (D + F)
    return math.inf if none(room) else rounded(ridge * weight_bytes * D * F / room)


exercise("critical_batch",
    lambda D, F, ridge, weight_bytes: _batch(D, F, ridge, weight_bytes), [
    (lambda *given: _batch(*given, rounded=float),
     "A batch is a whole number: which of the two neighbours is compute-bound?"),
    (lambda *given: _batch(*given, rounded=math.floor), "At that batch the layer is still a little below the ridge."),
    (lambda *given: _batch(*given, rounded=lambda batch: math.floor(batch) + 1),
     "Where the batch comes out whole, the layer is at the ridge already, and one more is not needed."),
    (lambda *given: _batch(*given, activation_bytes=1),
     "You gave the activations 1 byte a number: they are in bfloat16, and inputs and outputs both move."),
    (lambda *given: _batch(*given, activation_bytes=-2),
     "A sign: activations are bytes on top, so the batch that is needed grows with them."),
    (lambda *given: math.inf if _batch(*given) > 9998 else _batch(*given),
     "A search up to some thousands stops too early for some layers: solve for B.", math.isinf),
    (lambda *given: _batch(*given, none=lambda room: not room),
     "What you divide by may be negative, too: then each row brings more bytes than its FLOPs can hide.", math.isinf),
    ],
    cases=[(4096, 16384, 240.5, 2), (4096, 14336, 295.4, 1), (1024, 768, 153.02, 0.5), (512, 512, 295.4, 2),
           (600, 600, 295.4, 2), (512, 512, 256, 2), (4096, 4096, 295.37, 4), (1024, 1024, 256, 2),
           (4096, 512, 300, 2), (512, 690, 295.4, 2), (1024, 1024, 511.93, 2),
           (512, 512, 295.4, 1), (640, 640, 240.37, 4)],
    draw=lambda r: (r.randint(5, 64) * 64 + r.randint(0, 3), r.randint(5, 64) * 64, r.randint(50, 300) + 0.37,
                    r.choice((0.5, 1, 2, 4))),
    equivalent_slips={"return math.ceil(ridge * weight_bytes * D * F / room) if room > 1 else math.inf":
          "room lies between 0 and 1 for no layer that one would build"})

exercise("experts_intensity",
    lambda B, D, F, experts, active, itemsize:
        2 * B * active * D * F / (itemsize * (B * active * D + experts * D * F + B * active * F)), [
    (lambda B, D, F, experts, active, itemsize:
        2 * B * active * D * F / (itemsize * (B * D + experts * D * F + B * F)),
     "You read and wrote each token once: it is a row of every expert that it goes to."),
    (lambda B, D, F, experts, active, itemsize:
        2 * B * experts * D * F / (itemsize * (B * active * D + experts * D * F + B * active * F)),
     "You multiplied every token by all of the matrices: that would be a dense layer of that size."),
    (lambda B, D, F, experts, active, itemsize:
        2 * B * D * F / (itemsize * (B * D + experts * D * F + B * F)),
     "You left `active` out everywhere: is a token that goes to several experts no more work for them?"),
    ],
    over=lambda B, D, F, experts, active, itemsize: 2 * B * active * D * F,
    terms={"the rows read": lambda B, D, F, experts, active, itemsize: itemsize * B * active * D,
           "the matrices": lambda B, D, F, experts, active, itemsize: itemsize * experts * D * F,
           "the rows written": lambda B, D, F, experts, active, itemsize: itemsize * B * active * F},
    cases=[(64, 512, 1024, 8, 2, 2), (4096, 2048, 768, 128, 8, 1), (1000, 300, 500, 4, 1, 4)],
    draw=lambda r: (r.randint(50, 5000), r.randint(64, 4096), r.randint(64, 4096), r.randint(8, 64), r.randint(1, 6),
                    r.choice((1, 2, 4))))

exercise("last_logits",
    lambda hidden, weight: hidden[-1] @ weight.T, [
    (lambda hidden, weight: (hidden @ weight.T)[-1],
     "The matmul writes the rows of all tokens before you throw them away: what is chosen first costs less."),
    (lambda hidden, weight: (hidden[-2:] @ weight.T)[-1], "You multiply a second row, and throw it away."),
    (lambda hidden, weight: (hidden[-1] * weight).sum(-1),
     "Something as large as the weight goes to memory and back: its transpose is a view, and @ stores no products."),
    (lambda hidden, weight: hidden[0] @ weight.T, "That is the first token: the next word is asked of the last one."),
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
def _momentum_out(answer: tuple[Any, ...]) -> Any:
    return answer[1]


exercise("momentum_step",
    _fused, [
    (_momentum,
     "Op by op, ten tensors move where six would do: what is made on the way, as a product, goes to memory and back."),
    (lambda w, g, m, beta, rate: (w - rate * (new := torch.add(g, m, alpha=beta)), new),
     "Two more tensors move than must: a product, a clone or a tensor of constants still goes to memory and back."),
    (lambda w, g, m, beta, rate: (w - rate * (beta * m + g), beta * m + g),
     "Op by op, what is computed twice counts twice: the new momentum is needed in both places."),
    (lambda w, g, m, beta, rate: (w.sub_(m.mul_(beta).add_(g), alpha=rate), m),
     "In this count an operation in place moves as many bytes as any other: make new tensors."),
    (lambda w, g, m, beta, rate: (w, m), "The momentum that you return is the old one.", _momentum_out),
    (lambda w, g, m, beta, rate: _momentum(w, (1 - beta) * g, m, beta, rate),
     "You averaged, as Adam does: here the gradient is added as it is.", _momentum_out),
    (lambda w, g, m, beta, rate: (w - rate * m, beta * m + g), "You step along the old momentum: update it first."),
    (lambda w, g, m, beta, rate: _momentum(w, g, m, beta, -rate),
     "You step uphill: a weight moves against the momentum."),
    ],
    cases=[(torch.arange(64.0), torch.arange(64.0).flip(0), torch.arange(64.0) + 3, 0.5, 0.25)],
    draw=lambda r: (whole(r, 15), whole(r, 15), whole(r, 15), r.choice((0.5, 0.25)), r.choice((0.125, 2.0))),
    cost="bytes_eager", counted_at=[(*_VECTORS, 0.9, 0.1)])
