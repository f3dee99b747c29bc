"""The exercises of notebook 05."""

import math
from collections.abc import Callable
from typing import Any

import torch

from helpers.exercises.exercise import function, part, parts

# fmt: off

function("saxpy_intensity",
    lambda n, itemsize: 2 * n / (3 * n * itemsize), [
    (lambda n, itemsize: n / (3 * n * itemsize), "A multiply-accumulate is two FLOP: you counted each as one."),
    (lambda n, itemsize: (2 * n / (2 * n * itemsize)),
     "Three vectors move: x and y are read, and y is written. You counted two."),
    (lambda n, itemsize: 2 * n / (5 * n * itemsize),
     "Five vectors move if the product a·x is stored on the way; saxpy is one op and keeps it in a register."),
    (lambda n, itemsize: 3 * itemsize / 2, "That is bytes per FLOP: intensity is FLOP per byte."),
    (lambda n, itemsize: 2 / (3 * itemsize * 8), "Those are bits: itemsize is in bytes already."),
    (lambda n, itemsize: 2 / 3, "That is FLOP per element moved: an element has itemsize bytes."),
    ], cases=[(1, 4), (1000, 2), (2**20, 8)])


def _layer_norm_intensity(each: int, shared: int = 2, bits: int = 1) -> Callable[..., float]:
    def intensity(rows: int, cols: int, itemsize: int) -> float:
        return 8 * rows * cols / (bits * itemsize * (each * rows * cols + shared * cols))

    return intensity


function("layer_norm_intensity",
    _layer_norm_intensity(2), [
    (_layer_norm_intensity(1), "You forgot the write: the output is as large as the input."),
    (_layer_norm_intensity(3),
     "You read the input twice, once for the mean: a fused layer norm keeps the row on the chip in between."),
    (_layer_norm_intensity(4, 0), "You counted weight and bias once for each row: all rows share one copy of them."),
    (_layer_norm_intensity(2, 0), "You forgot that weight and bias are read, too; with few rows that shows."),
    (_layer_norm_intensity(2, bits=8), "Those are bits: itemsize is in bytes already."),
    ], cases=[(1, 1024, 4), (16, 512, 2), (4096, 768, 2)])


def _grouped_attention(
    flops: int = 4, queries: int = 2, keys: int = 2, scores: int = 0, shared: bool = True
) -> Callable[..., float]:
    def intensity(s: int, t: int, heads: int, dim: int, itemsize: int) -> float:
        copies = 1 if shared else heads
        numbers = queries * heads * s * dim + keys * copies * t * dim + scores * heads * s * t
        return flops * heads * s * t * dim / (itemsize * numbers)

    return intensity


function("grouped_attention",
    _grouped_attention(), [
    (_grouped_attention(flops=2),
     "You counted one of the two matmuls: queries with keys, and then weights with values."),
    (_grouped_attention(queries=1), "You forgot the write: the output has a row of dim numbers per query."),
    (_grouped_attention(keys=1), "You forgot the values: they are as large as the keys."),
    (_grouped_attention(scores=2),
     "You wrote the scores to memory and read them back: the fused kernel never stores them."),
    (_grouped_attention(shared=False), "You gave each query head its own keys and values: the group shares one copy."),
    (lambda s, t, heads, dim, itemsize: s * t / (s + t),
     "That is S·T/(S + T), for one head in a 2-byte format: here heads share, and itemsize varies."),
    (lambda s, t, heads, dim, itemsize: 4 * s * t / (itemsize * (2 * heads * s + 2 * t)),
     "You counted the FLOPs of one query head: each of them does both matmuls."),
    (lambda s, t, heads, dim, itemsize: _grouped_attention()(s, t, heads, dim, 8 * itemsize),
     "Those are bits: itemsize is in bytes already."),
    ], cases=[(1, 4096, 4, 128, 2), (4096, 4096, 8, 128, 2), (64, 1000, 2, 64, 1)])


def _critical_batch(
    d: int, f: int, ridge: float, weight_bytes: float, rounded: Callable[[float], float] = math.ceil
) -> float:
    room = 2 * d * f - 2 * ridge * (d + f)
    return rounded(ridge * weight_bytes * d * f / room) if room > 0 else math.inf


def _without_an_activation(ridge: float, weight_bytes: float, size: int) -> float:
    """Where one of the two activations was left out, and `size` is the width of the other."""
    return math.ceil(ridge * weight_bytes * size / (2 * size - 2 * ridge)) if size > ridge else math.inf


function("critical_batch",
    _critical_batch, [
    (lambda d, f, ridge, w: (math.ceil(ridge * w / 2)),
     "That is the approximation by the weights alone: the activations have bytes, too."),
    (lambda d, f, ridge, w: _without_an_activation(ridge, w, f), "You forgot the write: the output has B × F numbers."),
    (lambda d, f, ridge, w: _without_an_activation(ridge, w, d), "You forgot to read the input: it has B × D numbers."),
    (lambda d, f, ridge, w: _critical_batch(d, f, ridge, w, math.floor),
     "At that batch the layer is still below the ridge: round up."),
    (lambda d, f, ridge, w: _critical_batch(d, f, ridge, w, float), "A batch is a whole number: round up."),
    (lambda d, f, ridge, w: math.ceil(ridge * w * d * f / (2 * d * f - 2 * ridge * (d + f))),
     "A negative batch says that no batch is large enough: return math.inf then."),
    (lambda d, f, ridge, w: _critical_batch(d, f, ridge, w) if d * f > ridge * (d + f) else None,
     "Where no batch is large enough, return math.inf; None stands for an answer that is still missing."),
    (lambda d, f, ridge, w: _critical_batch(d, f, ridge, 2), "You took 2 byte per weight: here it is weight_bytes."),
    (lambda d, f, ridge, w: (_critical_batch(d, f, ridge * w / 2, 2)),
     "You took weight_bytes for the activations, too: those stay in bfloat16."),
    ],
    cases=[
        (4096, 16384, 240.5, 2), (4096, 14336, 295.4, 1), (1024, 768, 153.02, 0.5), (512, 512, 295.4, 2),
        (8192, 1024, 206.1, 1),
    ])

function("saved_by_fusing",
    lambda n, itemsize: 4 * n * itemsize, [
    (lambda n, itemsize: 2 * n * itemsize, "You forgot the writes: every op also writes its result."),
    (lambda n, itemsize: 6 * n * itemsize, "You counted the view: it moves nothing."),
    (lambda n, itemsize: 3 * n * itemsize, "That is what the fused version moves; the question asks what it saves."),
    (lambda n, itemsize: (7 * n * itemsize),
     "That is what the ops move one by one; the question asks what fusing saves."),
    (lambda n, itemsize: 4 * n, "Those are elements: an element has itemsize bytes."),
    ], cases=[(10, 2), (2**20, 4), (1000, 1)])


def _kv_cache(matrices: int = 2, bits: int = 1) -> Callable[..., float]:
    def nbytes(layers: int, heads: int, kv_heads: int, head_dim: int, tokens: int, itemsize: int) -> float:
        return bits * matrices * layers * kv_heads * head_dim * tokens * itemsize

    return nbytes


function("kv_cache",
    _kv_cache(), [
    (_kv_cache(1), "You counted one of keys and values: the cache holds both."),
    (lambda layers, heads, kv_heads, head_dim, tokens, itemsize: (2 * layers * heads * head_dim * tokens * itemsize),
     "The cache has kv_heads heads: several query heads share one of them."),
    (lambda layers, heads, kv_heads, head_dim, tokens, itemsize: 2 * kv_heads * head_dim * tokens * itemsize,
     "That is one layer: each layer has a cache of its own."),
    (lambda layers, heads, kv_heads, head_dim, tokens, itemsize: 2 * layers * kv_heads * head_dim * itemsize,
     "That is what one token adds to the cache; a step reads all tokens so far."),
    (_kv_cache(bits=8), "Those are bits: itemsize is in bytes already."),
    (lambda layers, heads, kv_heads, head_dim, tokens, itemsize: 2 * layers * kv_heads * head_dim * tokens,
     "Those are numbers, not bytes: multiply by itemsize."),
    ], cases=[(32, 32, 8, 128, 4096, 2), (80, 64, 8, 128, 1000, 1), (12, 12, 4, 64, 3, 4)])

function("decode_rate",
    lambda weights, cache, batch, bandwidth: batch * bandwidth / (weights + batch * cache), [
    (lambda weights, cache, batch, bandwidth: batch * bandwidth / (batch * (weights + cache)),
     "You read the weights once for each sequence: the whole batch shares one reading."),
    (lambda weights, cache, batch, bandwidth: (batch * bandwidth / (weights + cache)),
     "You read one cache: each sequence of the batch has its own."),
    (lambda weights, cache, batch, bandwidth: batch * bandwidth / weights, "You forgot the cache."),
    (lambda weights, cache, batch, bandwidth: (bandwidth / cache),
     "You forgot the weights: each step reads all of them."),
    (lambda weights, cache, batch, bandwidth: bandwidth / (weights + batch * cache),
     "That is the rate of one sequence: a step gives a token to each sequence of the batch."),
    (lambda weights, cache, batch, bandwidth: (weights + batch * cache) / bandwidth,
     "That is the time of a step in seconds; the question asks for tokens per second."),
    ], cases=[(16e9, 0.5e9, 1, 3.35e12), (16e9, 0.5e9, 64, 3.35e12), (70e9, 0.2e9, 8, 4.8e12)])

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
        (1555 / 864 * 312 / 366.5, "You multiplied both ratios: the slower of the two times counts, not both."),
    ], tolerance=0.01))


def _integers(*shape: int) -> torch.Tensor:
    """Small whole numbers: their sums and products are exact in whatever order they are formed."""
    return (torch.arange(math.prod(shape)) * 7 % 11 - 5).float().reshape(shape)


function("last_logits",
    lambda hidden, weight: hidden[-1] @ weight.T, [
    (lambda hidden, weight: (hidden @ weight.T)[-1],
     "You throw the other rows away after the matmul has written them: select the token first."),
    (lambda hidden, weight: (hidden[-1] * weight).sum(-1),
     "Something as large as the weight goes to memory and back: @ stores no products."),
    (lambda hidden, weight: hidden[-1].clone() @ weight.T, "You copy the row first: a view of it is enough."),
    (lambda hidden, weight: hidden[-1:] @ weight.T, "You kept a dimension of size 1: index with -1, not with -1:."),
    (lambda hidden, weight: hidden[0] @ weight.T, "That is the first token: index -1 is the last."),
    ], cases=[(_integers(8, 16), _integers(48, 16)), (_integers(32, 4), _integers(100, 4))], cost="bytes_eager")


def _momentum_step(w: Any, g: Any, m: Any, beta: float, rate: float) -> tuple[torch.Tensor, torch.Tensor]:
    m = torch.add(g, m, alpha=beta)
    return torch.add(w, m, alpha=-rate), m


def _plain_momentum_step(w: Any, g: Any, m: Any, beta: float, rate: float) -> tuple[torch.Tensor, torch.Tensor]:
    m = beta * m + g
    return w - rate * m, m


def _half_plain_momentum_step(w: Any, m: Any, rate: float) -> tuple[torch.Tensor, torch.Tensor]:
    return w - rate * m, m


function("momentum_step",
    _momentum_step, [
    (_plain_momentum_step,
     "Each multiplication goes to memory and back, in place or not: torch.add(…, alpha=…) does it on the way."),
    (lambda w, g, m, beta, rate: _half_plain_momentum_step(w, torch.add(g, m, alpha=beta), rate),
     "One multiplication still goes to memory and back: torch.add(…, alpha=…) does both of them on the way."),
    (lambda w, g, m, beta, rate: (w - rate * m, beta * m + g), "You step along the old momentum: update it first."),
    (lambda w, g, m, beta, rate: (w - rate * g, beta * m + g),
     "You step along the gradient: the momentum is what moves the weight."),
    (lambda w, g, m, beta, rate: _plain_momentum_step(w, g, m, beta, -rate),
     "You step uphill: the weight moves against the momentum."),
    (lambda w, g, m, beta, rate: _plain_momentum_step(w, g, m, beta, rate)[::-1],
     "Return the weight first, then the momentum."),
    ],
    cases=[
        (_integers(64), _integers(64).flip(0), _integers(64) + 3, 0.5, 0.25),
        (_integers(8, 8), _integers(8, 8) * 2, _integers(8, 8) - 1, 0.25, 0.125),
    ],
    cost="bytes_eager")
