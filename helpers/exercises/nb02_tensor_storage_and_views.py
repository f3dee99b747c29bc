"""The exercises and the guesses of notebook 02."""

import math
import operator
import random
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
import torch

from helpers.exercises.exercise import choices, exercise, guess, notebook, whole

notebook("02")

# fmt: off


guess("seven_lines", "A list as index, `flip` and a new dtype always copy; 2 has no view; 1, 5 and 7 write nothing.",
      ([3, 4, 6], "`reshape` looks for a view, and copies in silence where it finds none."),
      ([1, 2, 3, 4, 6], "m is contiguous, and has a view in any shape of 24."),
      ([2, 3, 6], "`flip` would need a negative stride, which PyTorch does not have."),
      ([2, 3, 4, 5, 6], "m is float32 already: float() returns m itself."),
      ([2, 3, 4, 6, 7], "numpy() and from_numpy() both use the memory that is there."))
guess("three_words", "`contiguous` writes every number once more; the other two write none.",
      (18.9, "That is one copy for each word."), (0, "One of the words does write."),
      (12.6, "That is two copies, or reading counted as well: one word writes."), (1.57, "Each number has 4 bytes."),
      (6291456, "That is in bytes: the question asks for MB."))
guess("permuted_note", "Each stride comes along with its dimension.",
      ((6, 3, 1), "So it would be in a fresh tensor of that shape, but nothing has moved."),
      ((12, 4, 1), "That is the stride of z itself."), ((4, 2, 3), "That is the new shape."),
      ((2, 0, 1), "That is the order of the dimensions; the question asks for their strides."),
      ((4, 1, 12), "You sent dimension 0 to place 2: permute(2, 0, 1) fetches dimension 2 to place 0."))
guess("cache_repeated", "The line writes the whole cache, four times over.",
      (1.07, "That is the cache itself."),
      (3.22, "That is what it writes more than the cache: it writes all four."),
      (2.15, "That is for the keys or the values alone."),
      (0, "expand is free; the reshape behind it is not."), (0.134, "That is one layer of 32."),
      (8.59, "A bfloat16 has 2 bytes, and only what is written counts."), (4, "That is in GiB: a GB has 10⁹ bytes."))
guess("small_slice", "A view holds on to the whole storage: 40 MB for a slice that reports 12 bytes.",
      (12, "That is what `nbytes` says of the slice: whose storage does it read?"),
      (40, "That is in MB: the question asks for bytes."), (0, "The slice is still there, and reads from it."))
guess("sliding_windows", "No cell is new: the windows lie in those of the million numbers.",
      (2.05e9, "That counts most cells 512 times."), (2048, "That is one window."), (1e6, "Each number has 4 bytes."),
      (4, "That is in MB: the question asks for bytes."))
guess("clones_of_a_product", "Texts and heads of the turned q do not merge into one batch dimension, so both inputs "
      "are written anew. A fresh q would be taken as it is.",
      (0, "Texts and heads must become one dimension: has the turned q such a view?"),
      (1, "q plays both parts: its turned matrices are an input, too."),
      (3, "The result is written by the product itself."), (24, "The texts and heads are cloned together."))
guess("middle_word_free", "Turned back, it is in order. In most GPTs the query is turned already, so fused attention "
      "leaves the middle word nothing to do. Attention in two matmuls writes head after head, and the copy is real.",
      ("head after head", "Turned, its heads lie between the tokens: that has to be copied."),
      ("both", "The two results lie in memory in the order of their queries."),
      ("neither", "One query had been turned once already."))
guess("already_there", "1 and 3 find device and dtype as they are to be, and return the tensor itself.",
      ([1, 2, 3, 4], "What is on this device already, `to` returns as it is."),
      ([1, 2, 4], "1 names the device that it is on."), ([2, 3, 4], "3 names the dtype that it has."),
      ([2], "With `copy=True` it copies in any case."), ([4], "A float64 has other bytes: they must be written."),
      ([], "Two of them write new memory: for another dtype, and because it is asked for."))

def _index_at(offset: int, shape: Sequence[int], order: Literal["C", "F"] = "C") -> tuple[int, ...]:
    return tuple(map(int, np.unravel_index(offset, shape, order)))


def _exchanged(offset: int, shape: Sequence[int]) -> tuple[int, ...]:
    index: list[int] = []
    for size in reversed(shape):
        i, offset = divmod(offset, size)
        index.insert(0, i)
    return tuple(index)


def _dense(shape: tuple[int, ...]) -> list[int]:
    return [math.prod(shape[k + 1 :]) for k in range(len(shape))]


def _draw_cell(r: random.Random) -> tuple[int, tuple[int, ...]]:
    shape = tuple(r.randint(1, 7) for _ in range(r.randint(1, 4)))
    return r.randrange(math.prod(shape)), shape


exercise("index_at",
    _index_at, [
    (lambda offset, shape: _index_at(offset, shape, "F"),
     "Your first index runs fastest, as if columns lay in a row: in a contiguous tensor it is the last."),
    (lambda offset, shape: _index_at(offset, shape, "F")[::-1],
     "You divided by the first size first: the last index runs fastest, so start there."),
    (lambda offset, shape: _index_at(offset, shape)[::-1],
     "The digits are right. The loop finds the last index first: which one does a tuple begin with?"),
    (lambda offset, shape: tuple(offset // stride for stride in _dense(shape)),
     "A quotient by the stride goes on counting where the dimension begins anew: an index stays below its size."),
    (lambda offset, shape: tuple(offset % size for size in shape),
     "You took each remainder of the whole offset: the indices behind have used up a part of it."),
    (lambda offset, shape: tuple(offset // math.prod(shape[k:]) % size for k, size in enumerate(shape)),
     "You took a dimension's own size into its stride: a step jumps over the dimensions behind it alone."),
    (_exchanged, "divmod gives quotient and remainder, in this order: which is the index, which is what is left?"),
    (lambda offset, shape: divmod(offset, shape[-1]),
     "That is right for two dimensions: any number of them may come, so go through the shape."),
    ],
    cases=[(7, (3, 4)), (23, (2, 3, 4)), (13, (2, 3, 4)), (0, (5,)), (1234, (10, 10, 20))], draw=_draw_cell)


def _windows(x: torch.Tensor, size: int, more: int = 0, strides: Sequence[int] = (), offset: int | None = None):
    """The windows, maybe with other strides: to the next window, and inside of one."""
    return torch.as_strided(x, (len(x) - size + 1 + more, size), strides or 2 * x.stride(), offset)


def _draw_line(r: random.Random) -> tuple[torch.Tensor, int]:
    x = torch.arange(r.randint(20, 60)) * r.randint(1, 9)
    x = x[r.randint(0, 5) :: r.randint(1, 3)]
    return x, r.randint(1, len(x))


exercise("windows",
    lambda x, size: x.unfold(0, size, 1), [
    (lambda x, size: _windows(x, size, -1), "A window is missing: count once more how many places it can start at."),
    (lambda x, size: _windows(x, size, strides=(1, 1)),
     "You assumed that neighbours are one cell apart. Of a column, or of x[::2], they are not: ask x."),
    (lambda x, size: _windows(x, size, offset=0),
     "You gave the offset 0, the beginning of the storage: x may be a slice that starts further on."),
    *((lambda x, size, step=step: _windows(x, size, strides=(size * step(x), step(x))),
       "Your next window starts where the last one ends, as a row of a matrix does: here they overlap.")
      for step in (lambda x: 1, lambda x: x.stride(0))),
    (lambda x, size: x.unfold(0, size, size),
     "Your next window starts where the last one ends: how far is it from one start to the next?"),
    (lambda x, size: torch.stack([x[i : i + size] for i in range(len(x) - size + 1)]),
     "Each window is written anew, as stack, cat and clone do: two strides on the old storage describe them all."),
    ],
    cases=[(torch.arange(10.0), 3), (torch.arange(10), 10), (torch.arange(20.0)[4:12], 2),
           (torch.arange(24.0)[::2], 4), (torch.arange(12.0).view(3, 4)[:, 1], 2)],
    draw=_draw_line, cost="bytes_eager", counted_at=[(torch.arange(4000.0)[::2], 1000)], same_cost_ratio=10,
    equivalent_slips={"step = x.stride(-1)": "x has one dimension"})


def _shares(expression: Callable[[torch.Tensor], torch.Tensor], sentence: str) -> tuple[str, tuple[str, str]]:
    """View or copy, as torch has it; the sentence is for the other answer."""
    x = torch.zeros(4, 6)
    copied = expression(x).untyped_storage().data_ptr() != x.untyped_storage().data_ptr()
    return ("copy", ("view", sentence)) if copied else ("view", ("copy", sentence))


choices("view_or_copy", ("view", "copy"), **{str(number): _shares(*pair) for number, pair in enumerate([
    (lambda x: x[1:3], "A slice moves the offset; no element moves."),
    (lambda x: x[:, [0, 1]], "A list as index always copies, also where a stride could describe these columns."),
    (lambda x: x.repeat(3, 1, 1), "A repeat writes every repetition into new memory; expand does not."),
    (lambda x: x.expand(3, 4, 6), "An expand repeats with stride 0; repeat is the one that copies."),
    (lambda x: x.t().reshape(-1), "It merges the dimensions of a transpose, and their strides do not allow that."),
    (lambda x: x[:, ::2].flatten(), "Do they merge? Three elements, 2 apart, take 6 cells; the next row is 6 away."),
    (lambda x: x.contiguous(), "What is contiguous already is returned as it is."),
    (lambda x: x.t().contiguous(), "A transpose of a matrix is not contiguous: its elements must change places."),
    (lambda x: x.chunk(2, dim=1)[1], "Half of the columns is a slice: another offset, the same strides."),
    (lambda x: x[:, 1:4].flatten(), "Do they merge? Three elements, 1 apart, take 3 cells; the next row is 6 away."),
], start=1)})

def _fewest(shape: tuple[int, ...], stride: tuple[int, ...]) -> int:
    """By trying torch's own view on every way to merge neighbours."""
    t = torch.empty(1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))).as_strided(shape, stride)
    count = len(shape)
    for k in range(len(shape) - 1):
        try:
            t.view(*shape[:k], shape[k] * shape[k + 1], *shape[k + 2 :])
            count -= 1
        except RuntimeError:
            pass
    return count


def _merging(merge: Callable[..., bool]) -> Callable[..., int]:
    """The count where two neighbours merge if `merge(size, next size, stride, next stride)` says so."""
    return lambda shape, stride: len(shape) - sum(map(merge, shape, shape[1:], stride, stride[1:]))


def _draw_strided(r: random.Random) -> tuple[tuple[int, ...], tuple[int, ...]]:
    shape = [r.randint(2, 5) for _ in range(r.randint(1, 5))]
    stride = [r.choice((0, 1, 1, 2, 3))]
    for size in shape[:0:-1]:
        stride.insert(0, size * stride[0] * r.choice((1, 1, 1, 2)) or r.choice((0, 0, 1, 4)))
    order = r.sample(range(len(shape)), len(shape)) if r.random() < 0.2 else range(len(shape))
    return tuple(shape[k] for k in order), tuple(stride[k] for k in order)


exercise("fewest_dimensions",
    _fewest, [
    (lambda shape, stride: 1 if list(stride) == _dense(shape) else len(shape),
     "You asked whether the whole is contiguous. It need not be: some neighbours may merge all the same."),
    (lambda shape, stride: 1 + sum(map(operator.ne, stride[:-1], _dense(shape))),
     "You compared with the strides of a fresh tensor: here the next dimension has a stride of its own."),
    (lambda shape, stride: len(shape) - (_fewest(shape, stride) < len(shape)),
     "You stopped at the first pair that merges: each of them takes one dimension away."),
    (_merging(lambda size, next_size, step, next_step: step == size * next_step),
     "A step must jump over the whole next dimension: you took the size of the dimension itself."),
    (_merging(lambda size, next_size, step, next_step: step == next_size),
     "That holds where the next elements are one cell apart: what if they are not?"),
    (_merging(lambda size, next_size, step, next_step: step > next_step),
     "Falling strides are the usual order, but there may be gaps: when does a step land right behind the row?"),
    (lambda shape, stride: len(shape) - _fewest(shape, stride),
     "You counted the pairs that merge: how many dimensions are left?"),
    (lambda shape, stride: _fewest(shape[:-1] or shape, stride[:-1] or stride) + (len(shape) > 1),
     "The last pair is missing: n dimensions have n − 1 pairs, so where must the range end?"),
    ],
    cases=[((3, 4), (4, 1)), ((4, 3), (1, 4)), ((2, 3, 4), (12, 4, 1)), ((3, 2, 4), (4, 12, 1)), ((4, 5), (5, 2)),
           ((2, 3, 4), (24, 8, 2)), ((2, 3, 4), (24, 4, 1)), ((5, 3), (0, 1)), ((2, 3, 2), (1, 5, 1)),
           ((2, 2, 3), (0, 0, 1)), ((7,), (3,))],
    draw=_draw_strided)


def _swap(lines: str) -> Callable[[torch.Tensor, int, int], torch.Tensor]:
    def swap(x: torch.Tensor, i: int, j: int) -> torch.Tensor:
        exec(lines, {"x": x, "i": i, "j": j})
        return x

    return swap


_LOST = "Row {} is lost: overwritten before it was copied, or not put back? detach() and contiguous() need not copy."
exercise("swap_rows",
    _swap("kept = x[i].clone(); x[i] = x[j]; x[j] = kept"), [
    (_swap("x[i] = x[j]"), _LOST.format("i")),
    (_swap("x[j] = x[i]"), _LOST.format("j")),
    (_swap("kept = x.clone(); x[i] = kept[j]; x[j] = kept[i]"),
     "That copies the whole matrix to be safe: only one row is in danger."),
    *((_swap(lines), "Three copies of a row would do: one aside, one into its place, one back; all in x's dtype.")
      for lines in ("x[i], x[j] = x[j].clone(), x[i].clone()", "x[[i, j]] = x[[j, i]]")),
    (_swap("x[i] += x[j]; x[j] = x[i] - x[j]; x[i] -= x[j]"),
     "Sums and differences save the copy, but they round, and lose the row where i and j are equal."),
    ],
    cases=[(torch.arange(12).view(3, 4), 2, 1), (torch.arange(20.0).view(4, 5), 0, 2),
           (torch.arange(9.0).view(3, 3), 1, 1), (torch.tensor([[1e300, 1], [2, 3]], dtype=torch.float64), 0, 1),
           (torch.tensor([[1e9, 1.0], [1.0, 1e9], [2.0, 3.0]]), 0, 1)],  # sums and differences of rows would round
    draw=lambda r: (whole(r, 5, 5, most=99), r.randint(0, 4), r.randint(0, 4)),
    in_place=True, tolerance=0,
    cost="bytes_eager", counted_at=[(torch.arange(8000.0).view(20, 400), 3, 5)],
    allowed_ratio=1.05, same_cost_ratio=1.05)


def _rows(queries: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
    """The queries, with the heads and the tokens of each group merged."""
    return queries.view(*keys.shape[:2], -1, keys.shape[3])


def _grouped(queries: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
    return (_rows(queries, keys) @ keys.mT).view(*queries.shape[:3], keys.shape[2])


def _draw_heads(r: random.Random) -> tuple[torch.Tensor, torch.Tensor]:
    batch, key_heads, channels = r.randint(1, 2), r.randint(1, 3), r.randint(1, 4)
    heads, tokens, seen = key_heads * r.randint(1, 3), r.randint(1, 4), r.randint(1, 5)
    return whole(r, batch, heads, tokens, channels), whole(r, batch, key_heads, seen, channels)


_BY_TEN = torch.arange(2 * 6 * 5 * 4.0).view(2, 6, 5, 4) % 10
_BY_SEVEN = torch.arange(2 * 3 * 7 * 4.0).view(2, 3, 7, 4) % 7
exercise("grouped_scores",
    _grouped, [
    (lambda queries, keys: queries @ keys.repeat_interleave(queries.shape[1] // keys.shape[1], 1).mT,
     "Each key head is written once for every query head that uses it: a repetition, or a product that stretches the "
     "keys, copies them."),
    *((way, "The scores are written by the product, and once more to bring them into their places, as by stack, cat, "
            "clone or reshape.") for way in (
        lambda queries, keys: torch.cat(
            [each @ keys[:, i : i + 1].mT for i, each in enumerate(queries.chunk(keys.shape[1], 1))], 1),
        lambda queries, keys: torch.stack(
            [_rows(queries, keys)[:, i] @ keys[:, i].mT for i in range(keys.shape[1])], 1
        ).view(*queries.shape[:3], -1))),
    (lambda queries, keys: _grouped(queries.clone(), keys),
     "The queries are copied first: to group what is contiguous is a view."),
    (lambda queries, keys: (_rows(queries, keys) @ keys.mT.contiguous()).view(*queries.shape[:3], -1),
     "The keys are copied first: a product takes a transposed view as it is."),
    (lambda queries, keys: queries @ keys.repeat(1, queries.shape[1] // keys.shape[1], 1, 1).mT,
     "Yours take turns, as repeat lays copies out: query heads that are neighbours share a key head."),
    (lambda queries, keys: (queries.view(*keys.shape[:2], -1, *queries.shape[2:]) @ keys.mT).view(
        *queries.shape[:3], -1),
     "Five dimensions meet four, aligned at the right, so groups meet the wrong keys: what may merge first?"),
    (lambda queries, keys: _grouped(queries, keys) / math.sqrt(queries.shape[3]),
     "You scaled them, as attention does: the scores are asked for as they are."),
    ],
    cases=[(torch.ones(1, 2, 1, 3), torch.ones(1, 1, 2, 3)), (_BY_TEN, _BY_SEVEN),
           (torch.arange(24.0).view(1, 4, 2, 3), torch.arange(24.0).view(1, 4, 2, 3))],
    draw=_draw_heads, cost="bytes_eager",
    counted_at=[(torch.ones(2, 8, 32, 16), torch.ones(2, 4, 128, 16)),
                (torch.ones(1, 8, 64, 128), torch.ones(1, 2, 4, 128))],
    # a loop that writes each head in its place may read the keys of two heads twice
    allowed_ratio=1.25, same_cost_ratio=1.12)
