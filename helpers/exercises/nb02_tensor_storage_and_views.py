"""The exercises of notebook 02."""

import copy
import itertools
import math
import operator
import random
from collections.abc import Callable, Sequence

import torch

from helpers.exercises.costs import allocated_bytes
from helpers.exercises.exercise import Exercise, function, part, parts, value, whole

# fmt: off

value("permuted_stride", (60, 5, 20, 1), [
    ((60, 15, 5, 1), "Those are the strides of a fresh tensor of that shape: permute moves no data."),
    ((60, 20, 5, 1), "Those are the strides before the permute: they move along with their dimensions."),
    ((2, 4, 3, 5), "That is the new shape; the question asks for the stride."),
    ((240, 20, 80, 4), "Those are bytes: a stride counts elements."),
    ((1, 5, 20, 60), "You reversed all dimensions: permute(0, 2, 1, 3) swaps the two in the middle."),
    ((1, 6, 2, 24), "You let the first index run fastest: in a fresh tensor it is the last."),
    ((1, 20, 5, 60), "You reversed all dimensions: permute(0, 2, 1, 3) swaps the two in the middle."),
    ((120, 20, 60, 5), "A stride multiplies the sizes to its right, without its own."),
    ((120, 60, 20, 5), "A stride multiplies the sizes to its right, without its own; and then comes the permute."),
    ((120, 60, 15, 5), "A stride multiplies the sizes to its right, without its own; and a permute moves no data."),
    ((12, 4, 3, 5), "A stride is the product of all sizes to its right, not of one of them."),
    ((3, 5, 4, 1), "A stride is the product of all sizes to its right, not the next size alone."),
    ((3, 4, 5, 1), "A stride is the product of all sizes to its right, not the next size alone."),
    ((4, 3, 5, 1), "A stride is the product of all sizes to its right, not the next size alone."),
    ((0, 2, 1, 3), "That is the order of the dimensions; the question asks for their strides."),
    ((240, 80, 20, 4), "Those are bytes, and from before the permute: a stride counts elements."),
    ((240, 60, 20, 4), "Those are bytes, of a fresh tensor of the new shape: strides count elements and move along."),
    ((1, 2, 8, 24), "You let the first index run fastest, in a fresh tensor of the new shape: no number moves."),
    ((1, 2, 6, 24), "You let the first index run fastest: in a fresh tensor it is the last."),
    ((60, 5, 20, 0), "The last index has a stride, too: its next element is one cell further."),
    ((5, 60, 20, 1), "The first and the last dimension stay: permute(0, 2, 1, 3) exchanges the middle ones."),
    ((20, 60, 5, 1), "The first and the last dimension stay: permute(0, 2, 1, 3) exchanges the middle ones."),
    ((60, 20, 1, 5), "The first and the last dimension stay: permute(0, 2, 1, 3) exchanges the middle ones."),
    ((60, 5, 12, 1), "A stride multiplies the sizes to its right: for the last but two these are 4 and 5."),
])


def _index_at(offset: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    digits = []
    for size in reversed(shape):
        offset, digit = divmod(offset, size)
        digits.append(digit)
    return tuple(reversed(digits))


def _dense(shape: tuple[int, ...]) -> list[int]:
    return [math.prod(shape[k + 1 :]) for k in range(len(shape))]


def _peeled(offset: int, by: Sequence[int], modulo: Sequence[int] = (), keep: Callable = operator.floordiv) -> tuple:
    """From the left: what `keep` gives of offset and divisor, then the remainder, by the divisor if not `modulo`."""
    digits = []
    for divisor, rest in zip(by, modulo or by, strict=True):
        digits.append(keep(offset, divisor))
        offset %= rest
    return tuple(digits)


def _halves(offset: float, shape: tuple[int, ...]) -> tuple[float, ...]:
    digits = []
    for size in reversed(shape):
        digits.append(offset % size)
        offset = offset / size
    return tuple(reversed(digits))


def _draw_cell(r: random.Random) -> tuple[int, tuple[int, ...]]:
    shape = tuple(r.randint(1, 7) for _ in range(r.randint(1, 4)))
    return r.randrange(math.prod(shape)), shape


function("index_at",
    _index_at, [
    (lambda offset, shape: _index_at(offset, shape[::-1])[::-1],
     "Your first index runs fastest: in a contiguous tensor it is the last."),
    (lambda offset, shape: _index_at(offset, shape)[::-1],
     "You collected the indices from the last to the first: turn them round."),
    (lambda offset, shape: _index_at(offset, shape[::-1]),
     "You divided by the first size first: the last index runs fastest, so start there."),
    (lambda offset, shape: tuple(offset // s for s in _dense(shape)),
     "You divided by the strides but took no remainder: an index stays below its size."),
    (lambda offset, shape: tuple(offset % size for size in shape),
     "You took each remainder of the whole offset: divide by the stride first."),
    (lambda offset, shape: tuple(offset // size for size in shape), "Divide by the stride, not by the size."),
    (lambda offset, shape: tuple(offset % s for s in _dense(shape)),
     "The remainder is what is left for the next index: divide by the stride, too."),
    (lambda offset, shape: divmod(offset, shape[-1]),
     "That is for two dimensions: go on dividing, one size after the other."),
    (lambda offset, shape: (offset // shape[1], offset % shape[1]),
     "That is for two dimensions: go on dividing, one size after the other."),
    (lambda offset, shape: _halves(offset, shape), "An index is a whole number: divide with //, not with /."),
    (lambda offset, shape: _peeled(offset, _dense(shape), keep=operator.truediv),
     "An index is a whole number: divide with //, not with /."),
    (lambda offset, shape: _index_at(offset, shape)[:-1], "The last index is missing: its stride is 1."),
    (lambda offset, shape: _index_at(offset, shape)[1:],
     "The first index is missing: it is what is left when all other sizes have been divided out."),
    (lambda offset, shape: _peeled(offset, [n * s for n, s in zip(shape, _dense(shape), strict=True)]),
     "A stride is the product of the sizes to its right, without its own."),
    (lambda offset, shape: _peeled(offset, shape), "Divide by the stride, not by the size."),
    (lambda offset, shape: _peeled(offset, _dense(shape), shape),
     "What is left for the next index is the remainder by the stride, not by the size."),
    (lambda offset, shape: torch.tensor([_index_at(offset, shape)]),
     "That is a matrix with one row, as nonzero() gives it: return the row itself."),
    (lambda offset, shape: sum(offset * s for s in _dense(shape)),
     "That goes from an index to a cell; here it is the other way round, to one index for each dimension."),
    (lambda offset, shape: tuple(i + 1 for i in _index_at(offset, shape)), "Indices start at 0."),
    ],
    cases=[(7, (3, 4)), (23, (2, 3, 4)), (13, (2, 3, 4)), (0, (5,)), (1234, (10, 10, 20))], draw=_draw_cell)


def _windows(x: torch.Tensor, size: int, more: int = 0, step: int = 0, offset: int | None = None) -> torch.Tensor:
    step = step or x.stride(0)
    return torch.as_strided(x, (len(x) - size + 1 + more, size), (step, step), offset)


_TOO_MANY = "Too many windows: n elements have n − size + 1 of them, and the next would run beyond the end."


def _draw_line(r: random.Random) -> tuple[torch.Tensor, int]:
    x = torch.arange(r.randint(20, 60)) * r.randint(1, 9)
    x = x[r.randint(0, 5) :: r.randint(1, 3)]
    return x, r.randint(1, len(x))


function("windows",
    lambda x, size: x.unfold(0, size, 1), [
    (lambda x, size: _windows(x, size, more=-1), "One window too few: n elements have n − size + 1 windows."),
    (lambda x, size: _windows(x, size, step=1),
     "You assumed that neighbours are one cell apart; a column or x[::2] has another x.stride(0)."),
    (lambda x, size: _windows(x, size, step=1, offset=0),
     "You assumed that x begins at cell 0 and has neighbours one cell apart; it may be a slice with a step."),
    (lambda x, size: _windows(x, size, offset=0),
     "You started at the beginning of the storage: x may be a slice, which starts at x.storage_offset()."),
    (lambda x, size: _windows(x, size).t(), "Each row is to be one window; yours are the columns."),
    (lambda x, size: x[: len(x) // size * size].reshape(-1, size),
     "Those windows do not overlap: neighbouring windows start one element apart."),
    (lambda x, size: _windows(x, size, more=1), _TOO_MANY),
    (lambda x, size: _windows(x, size, more=size - 1), _TOO_MANY),
    (lambda x, size: x.view(-1, size), "Those windows do not overlap: neighbouring windows start one element apart."),
    (lambda x, size: torch.as_strided(x, (len(x) - size + 1, size), (size * x.stride(0), x.stride(0))),
     "The next window starts one element further, not one window further."),
    (lambda x, size: torch.as_strided(x, (len(x) - size + 1, size), (size, 1)),
     "The next window starts one element further, not one window further; and elements are x.stride(0) apart."),
    (lambda x, size: torch.as_strided(x, (len(x) - size + 1, size), (x.stride(0), 1)),
     "The next window is right, but elements inside a window are x.stride(0) apart, too."),
    (lambda x, size: torch.as_strided(x, (len(x) - size + 1, size), (1, x.stride(0))),
     "The elements inside a window are right, but the next window starts x.stride(0) further, too."),
    (lambda x, size: x.unfold(0, 1, size), "The arguments of unfold are dimension, size and step: you exchanged two."),
    (lambda x, size: x.unfold(0, size, 2), "A step of 2 leaves every other window out."),
    (lambda x, size: x.expand(len(x) - size + 1, -1)[:, :size],
     "Each of your rows is the first window: the next must start one element further."),
    (lambda x, size: _windows(x, size).flip(1), "Your windows run backwards, and flip copies."),
    (lambda x, size: _windows(x, size).flip(0), "The last window comes first in yours, and flip copies."),
    (lambda x, size: torch.as_strided(x, (len(x) - size + 1, size), (4 * x.stride(0), 4 * x.stride(0))),
     "A stride counts elements, not bytes."),
    (lambda x, size: _windows(x.contiguous(), size),
     "The windows are right, but contiguous() copies a slice with a step: use x.stride(0) instead."),
    (lambda x, size: _windows(x.clone(), size), "The windows are right, but x is copied first: use it as it is."),
    (lambda x, size: torch.stack([x[i : i + size] for i in range(len(x) - size + 1)]),
     "The windows are right, but copied, as by stack, clone or contiguous; strides alone can do it."),
    (lambda x, size: _windows(x, size).contiguous(),
     "The windows are right, but copied, as by stack, clone or contiguous; strides alone can do it."),
    (lambda x, size: torch.stack([x.roll(-k) for k in range(len(x) - size + 1)])[:, :size],
     "The windows are right, but each roll copies all of x; strides alone can do it."),
    (lambda x, size: _windows(x.float(), size), "The windows are right, but in another dtype, which is a copy."),
    (lambda x, size: x[torch.arange(len(x) - size + 1)[:, None] + torch.arange(size)],
     "An index tensor copies every window, and is itself in memory; strides alone need neither."),
    ],
    cases=[(torch.arange(10.0), 3), (torch.arange(10), 10), (torch.arange(20.0)[4:12], 2),
           (torch.arange(24.0)[::2], 4), (torch.arange(12.0).view(3, 4)[:, 1], 2)],
    draw=_draw_line, cost=allocated_bytes,
    same={"step = x.stride(-1)": "x has one dimension"})


def _shares(expression: Callable[[torch.Tensor], torch.Tensor], sentence: str) -> Exercise:
    """View or copy, as torch has it; the sentence is for the other answer."""
    x = torch.zeros(4, 6)
    words = ["view", "copy"]
    if expression(x).untyped_storage().data_ptr() != x.untyped_storage().data_ptr():
        words.reverse()
    return part(words[0], [(words[1], sentence)], words=("view", "copy"))


parts("view_or_copy", **{str(number): _shares(*pair) for number, pair in enumerate([
    (lambda x: x[1:3], "A slice moves the offset; no element moves."),
    (lambda x: x[:, [0, 1]], "A list as index always copies, also where a stride could describe these columns."),
    (lambda x: x.repeat(3, 1, 1), "A repeat writes every repetition into new memory; expand does not."),
    (lambda x: x.expand(3, 4, 6), "An expand repeats with stride 0; repeat is the one that copies."),
    (lambda x: x.t().reshape(-1), "It merges the dimensions of a transpose, and their strides do not allow that."),
    (lambda x: x[:, ::2].flatten(), "Do they merge? Three steps of 2 inside a row, and a step of 6 to the next row."),
    (lambda x: x.contiguous(), "What is contiguous already is returned as it is."),
    (lambda x: x.t().contiguous(), "A transpose of a matrix is not contiguous: its elements must change places."),
    (lambda x: x.chunk(2, dim=1)[1], "Half of the columns is a slice: another offset, the same strides."),
    (lambda x: x[:, 1:4].flatten(), "Do they merge? Three steps of 1 inside a row, and a step of 6 to the next row."),
], start=1)})

value("really_touched", 500 * 64 * 4, [
    (10 * 500 * 64 * 4, "That is numel × element size: the 10 copies have stride 0 and are the same bytes."),
    (1000 * 64 * 4, "That is all of a, or 8 bytes for each element of a[::2]: half of the rows, 4 bytes each."),
    (500 * 64 * 2, "That is a.numel(), or 2 bytes for each element of a[::2]: half of the rows, 4 bytes each."),
    (500 * 64 * 4 / 1000, "That is in kB: asked for are bytes."),
    (500 * 64 * 4 / 1024, "That is in KiB: asked for are bytes."),
    (10 * 1000 * 64 * 4, "You counted all rows of a, ten times: a[::2] has half of them, and expand adds no cell."),
    (10 * 500 * 64 * 2, "The 10 copies have stride 0 and are the same bytes; and each float32 has 4 of them."),
    (500 * 64 * 4 / 10, "You divided by ten: each of the repetitions needs all the bytes of a[::2]."),
    (499 * 64 * 4, "Count the rows 0, 2, 4, … of 1000 again."),
    (0, "A view takes no new memory, but its elements lie in bytes of a: in how many?"),
    (500 * 4, "That is one element of each row: a row has 64."),
    (500 * 64, "That is a number of elements: each has 4 bytes."),
    (999 * 64 * 4, "That is the stretch from the first byte to the last; the rows between are not touched."),
    (10 * 500 * 64, "That is b.numel(): most of its elements share their bytes, and each has 4."),
    (500 * 64 * 32, "Those are bits: a byte has eight."),
    (64 * 4, "That is one row: a[::2] has 500 of them."),
    (10 * 64 * 4, "Those are 10 rows: expand repeats all 500 rows, and adds no new one."),
], unit="B")


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
    """The count where the neighbours k and k + 1 merge if `merge(their sizes and strides)` says so."""
    return lambda n, s: len(n) - sum(merge(n[k], n[k + 1], s[k], s[k + 1]) for k in range(len(n) - 1))


def _fits(n: Sequence[int], s: Sequence[int]) -> list[bool]:
    return [s[k] == n[k + 1] * s[k + 1] for k in range(len(n) - 1)]


def _merged(n: Sequence[int], s: Sequence[int]) -> list[int]:
    sizes = [n[0]]
    for size, fits in zip(n[1:], _fits(n, s), strict=True):
        sizes[-1:] = [sizes[-1] * size] if fits else [sizes[-1], size]
    return sizes


def _walked(n: Sequence[int], s: Sequence[int]) -> int:
    """A walk from the left that keeps the stride of the first dimension after a merge."""
    count, stride = 1, s[0]
    for n1, s1 in zip(n[1:], s[1:], strict=True):
        if stride != n1 * s1:
            count, stride = count + 1, s1
    return count


_THREE = "Three neighbours may become one: after a merge, go on with the next pair and with its own strides."
_FRESH = "You compared with a fresh tensor: a gap changes all strides to its left, and yet those may merge."


def _draw_strided(r: random.Random) -> tuple[tuple[int, ...], tuple[int, ...]]:
    shape = [r.randint(2, 5) for _ in range(r.randint(1, 5))]
    stride = [r.choice((0, 1, 1, 2, 3))]
    for size in shape[:0:-1]:
        stride.insert(0, size * stride[0] * r.choice((1, 1, 1, 2)) or r.choice((0, 0, 1, 4)))
    order = r.sample(range(len(shape)), len(shape)) if r.random() < 0.2 else range(len(shape))
    return tuple(shape[k] for k in order), tuple(stride[k] for k in order)


function("fewest_dimensions",
    _fewest, [
    (lambda n, s: 1, "One dimension would do for a contiguous tensor only: two neighbours merge if their strides fit."),
    (lambda n, s: 1 if list(s) == _dense(n) else len(n),
     "Not contiguous, and yet some neighbours may merge: look at each pair."),
    (_merging(lambda n, n1, s, s1: s == n * s1), "A step must jump over the whole next dimension: which size is that?"),
    (_merging(lambda n, n1, s, s1: s == n1), "You compared with the next size alone: the next stride counts, too."),
    (_merging(lambda n, n1, s, s1: s > s1),
     "A falling order of strides is not enough: there may be gaps between the rows."),
    (_merging(lambda n, n1, s, s1: s >= s1),
     "A falling order of strides is not enough: there may be gaps between the rows."),
    (_merging(lambda n, n1, s, s1: s >= n1 * s1), "A longer step leaves gaps: it has to fit exactly."),
    (_merging(lambda n, n1, s, s1: s <= n1 * s1), "With a shorter step the rows overlap: it has to fit exactly."),
    (_merging(lambda n, n1, s, s1: s1 == n * s),
     "The other way round: a step of k has to jump over the whole dimension k + 1."),
    (_merging(lambda n, n1, s, s1: s / s1 == n1), "A stride may be 0: multiply instead of dividing."),
    (_merging(lambda n, n1, s, s1: s // s1 == n1), "A stride may be 0: multiply instead of dividing."),
    (_merging(lambda n, n1, s, s1: s1 != 0 and s % s1 == 0), "A multiple is not enough: then there are gaps."),
    (_merging(lambda n, n1, s, s1: s == s1),
     "Equal strides are not the rule: ask where a step in the first of the two leads."),
    (_merging(lambda n, n1, s, s1: s % (n1 * s1 or 1) == 0), "A multiple is not enough: then there are gaps."),
    (_merging(lambda n, n1, s, s1: s == n1 * s1 and s > 0), "Two dimensions of stride 0 merge, too."),
    (lambda n, s: len(n) - _fewest(n, s), "You counted the pairs that merge; each of them leaves one dimension less."),
    (lambda n, s: _fewest(n, s) - 1, "One too few: n dimensions have n − 1 pairs."),
    (lambda n, s: _fewest(n, s) + 1, "One too many: if all pairs merge, one dimension is left."),
    (lambda n, s: _fewest(*zip(*sorted(zip(n, s, strict=True), key=lambda d: -d[1]), strict=True)),
     "You sorted the dimensions by stride: only neighbours in the given order may merge."),
    (lambda n, s: _fewest(*zip(*sorted(zip(n, s, strict=True), key=lambda d: d[::-1], reverse=True), strict=True)),
     "You sorted the dimensions by stride: only neighbours in the given order may merge."),
    (lambda n, s: 1 + sum(map(operator.ne, s, _dense(n))), _FRESH),
    (lambda n, s: max(1, sum(map(operator.ne, s, _dense(n)))), _FRESH),
    (lambda n, s: 1 + sum(map(operator.ne, s[:-1], _dense(n))), _FRESH),
    (lambda n, s: 1 + sum(a != b * s[-1] for a, b in zip(s[:-1], _dense(n), strict=False)),
     "A gap does not keep the pairs to its left from merging with each other."),
    (lambda n, s: len(n) - sum(itertools.takewhile(bool, _fits(n, s))),
     "You stopped at the first pair that does not merge; the pairs after it may."),
    (lambda n, s: len(n) - sum(itertools.takewhile(bool, _fits(n, s)[::-1])),
     "A gap does not keep the pairs to its left from merging with each other."),
    (lambda n, s: len(n) - _fits(n, s)[0] if len(n) > 1 else None,
     "Your return stands inside the loop, which ends after the first pair."),
    (lambda n, s: _fewest(n[:-1], s[:-1]) if len(n) > 1 else 1, "Your range ends too soon: the last pair is missing."),
    (lambda n, s: 1 + _fewest(n[:-1], s[:-1]) if len(n) > 1 else 1,
     "Your range ends too soon: the last pair is missing."),
    (lambda n, s: _fewest(n[1:], s[1:]) if len(n) > 1 else 1, "Your range begins too late: the first pair is missing."),
    (lambda n, s: len(n) - sum((1 + len(list(run))) // 2 for fits, run in itertools.groupby(_fits(n, s)) if fits),
     _THREE),
    (lambda n, s: _walked(n, s), _THREE),
    (lambda n, s: _merged(n, s), "Those are the sizes that are left: asked is how many."),
    (lambda n, s: len(n), "Some neighbours merge into one dimension: compare the strides of each pair."),
    (lambda n, s: len(set(s)), "You counted the different strides: what matters is how neighbours fit together."),
    (lambda n, s: _fewest(n[-2:], s[-2:]) + max(len(n) - 2, 0), "You looked at the last pair only."),
    (lambda n, s: _fewest(n[:2], s[:2]) + max(len(n) - 2, 0), "You looked at the first pair only."),
    ],
    cases=[((3, 4), (4, 1)), ((4, 3), (1, 4)), ((2, 3, 4), (12, 4, 1)), ((3, 2, 4), (4, 12, 1)), ((4, 5), (5, 2)),
           ((2, 3, 4), (24, 8, 2)), ((2, 3, 4), (24, 4, 1)), ((5, 3), (0, 1)), ((2, 3, 2), (1, 5, 1)),
           ((2, 2, 3), (0, 0, 1)), ((7,), (3,))],
    draw=_draw_strided)


def _swapped(x: torch.Tensor, i: int, j: int) -> torch.Tensor:
    kept = x[i].clone()
    x[i] = x[j]
    x[j] = kept
    return x


def _swap(lines: str) -> Callable[[torch.Tensor, int, int], torch.Tensor]:
    def swap(x: torch.Tensor, i: int, j: int) -> torch.Tensor:
        exec(lines, {"copy": copy, "x": x, "i": i, "j": j})
        return x

    return swap


function("swap_rows",
    _swapped, [
    (_swap("x[i] = x[j]"), "Row i is lost: it was overwritten before it was read, or what you kept of it is a view."),
    (_swap("x[j] = x[i]"), "Row j is lost: it was overwritten before it was read, or what you kept of it is a view."),
    (lambda x, i, j: _swapped(x.t(), i, j).t(), "You swapped columns: x[i] is row i, x[:, i] column i."),
    (_swap("kept = x.clone(); x[i] = kept[j]; x[j] = kept[i]"),
     "You cloned the whole matrix; only one row is in danger."),
    (_swap("x[i], x[j] = x[j].clone(), x[i].clone()"),
     "That is the memory of two rows: keep one alone, in its own dtype; the other is safe once the first is."),
    (_swap("kept = copy.deepcopy(x[i]); x[i] = x[j]; x[j] = kept"),
     "A deepcopy copies the whole storage behind a view; clone() copies the row alone."),
    (lambda x, i, j: (_swapped(x, i, j)[i], x[j]), "The rows are exchanged: return x itself, not only these two."),
    (_swap("x[i] += x[j]; x[j] = x[i] - x[j]; x[i] -= x[j]"),
     "Sums and differences lose the row where i and j are equal, and they round."),
    (_swap("x[i].add_(x[j]); x[j].neg_().add_(x[i]); x[i].sub_(x[j])"),
     "Sums and differences lose the row where i and j are equal, and they round."),
    (_swap("x[[i, j]] = x[[j, i]]"), "A list as index copies both rows, and needs an index tensor on each side."),
    (_swap(""), "Nothing has changed."),
    ],
    cases=[(torch.arange(12).view(3, 4), 2, 1), (torch.arange(20.0).view(4, 5), 0, 2),
           (torch.arange(9.0).view(3, 3), 1, 1),
           (torch.tensor([[1e9, 1.0], [1.0, 1e9], [2.0, 3.0]]), 0, 1)],  # sums and differences of rows would round
    draw=lambda r: (whole(r, 5, 5, most=99), r.randint(0, 4), r.randint(0, 4)),
    in_place=True, cost=allocated_bytes, at=[(torch.arange(40_000.0).view(200, 200), 3, 5)])


def _grouped(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    rows = q.view(*k.shape[:2], -1, k.shape[3])
    return (rows @ k.mT).view(*q.shape[:3], k.shape[2])


def _repeated(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    return q @ k.repeat_interleave(q.shape[1] // k.shape[1], 1).mT


def _by_head(q: torch.Tensor, k: torch.Tensor, which: Callable[[int, int], int]) -> torch.Tensor:
    each = q.shape[1] // k.shape[1]
    return torch.stack([q[:, h] @ k[:, which(h, each)].mT for h in range(q.shape[1])], 1)


def _tokens_first(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    return _grouped(q, k).view(*k.shape[:2], q.shape[2], -1, k.shape[2])


_GROUP = "Several query heads share a key head, and stretched keys have no such view: group the queries instead."
_TWICE = ("The scores are right, but written twice: first by the product, and then once more to bring them into their "
          "places, as by stack, cat, clone, reshape or an assignment.")


def _draw_heads(r: random.Random) -> tuple[torch.Tensor, torch.Tensor]:
    batch, key_heads, channels = r.randint(1, 2), r.randint(1, 3), r.randint(1, 4)
    heads, tokens, seen = key_heads * r.randint(1, 3), r.randint(1, 4), r.randint(1, 5)
    return whole(r, batch, heads, tokens, channels), whole(r, batch, key_heads, seen, channels)


_BY_TEN = torch.arange(2 * 6 * 5 * 4.0).view(2, 6, 5, 4) % 10
_BY_SEVEN = torch.arange(2 * 3 * 7 * 4.0).view(2, 3, 7, 4) % 7
function("grouped_scores",
    _grouped, [
    (_repeated, "The scores are right, but each key head is written out once for every query head that uses it: "
     "by a repetition, or by a matmul that stretches the keys."),
    (lambda q, k: torch.cat([each @ k[:, i : i + 1].mT for i, each in enumerate(q.chunk(k.shape[1], 1))], 1), _TWICE),
    (lambda q, k: _by_head(q, k, lambda h, each: h // each), _TWICE),
    (lambda q, k: _grouped(q, k).clone(), _TWICE),
    (lambda q, k: (q.view(*k.shape[:2], -1, k.shape[3]) @ k.mT.contiguous()).view(*q.shape[:3], -1),
     "The scores are right, but the keys are copied first: a product takes a transposed view as it is."),
    (lambda q, k: q @ k.repeat(1, q.shape[1] // k.shape[1], 1, 1).mT,
     "Query heads that are neighbours share a key head; yours take turns."),
    (lambda q, k: q.view(*k.shape[:2], -1, k.shape[3]) @ k.mT,
     "These are the scores, but still grouped: split the heads and the tokens again."),
    (lambda q, k: _grouped(q, k).mT, "The tokens of the queries are the rows and those of the keys the columns."),
    (lambda q, k: _grouped(q, k) / math.sqrt(q.shape[3]), "The scores are asked for as they are, without the scale."),
    (lambda q, k: _grouped(q, k).softmax(-1), "The scores are asked for as they are, before the softmax."),
    (lambda q, k: q @ k[:, :1].mT, "You used the first key head alone."),
    (lambda q, k: q @ k.mT, _GROUP),
    (lambda q, k: q @ k.sum(1, keepdim=True).mT,
     "You sum over the key heads: einsum does so with a letter that the result lacks."),
    (lambda q, k: (q.view(*k.shape[:2], -1, k.shape[3]) @ k).view(*q.shape[:3], -1),
     "A score multiplies channels with channels: the keys have to be transposed first."),
    (lambda q, k: (q.view(*k.shape[:2], -1, k.shape[3]) @ k.view(*k.shape[:2], k.shape[3], -1)).view(*q.shape[:3], -1),
     "A view keeps the order of the numbers: exchange tokens and channels of the keys by transpose or mT."),
    (lambda q, k: (q.view(*k.shape[:2], -1, k.shape[3]) @ k.mT).view(*q.shape[:2], 1, k.shape[2]),
     "That is for one token: here the queries have many."),
    (lambda q, k: (q.view(*k.shape[:2], q.shape[1] // k.shape[1], k.shape[3]) @ k.mT).view(*q.shape[:2], 1, -1),
     "That is for one token: here the queries have many."),
    (lambda q, k: (q.transpose(1, 2).reshape(*k.shape[:2], -1, k.shape[3]) @ k.mT).view(*q.shape[:3], -1),
     "You put the tokens before the heads: what shares a key head are neighbouring heads, with all their tokens."),
    (lambda q, k: _tokens_first(q, k).transpose(2, 3).reshape(*q.shape[:3], -1),
     "Split the rows the way they were merged: in each group the heads come first, then the tokens."),
    (lambda q, k: _grouped(q, k).view(q.shape[0], q.shape[2], q.shape[1], -1).transpose(1, 2),
     "Split the rows the way they were merged: in each group the heads come first, then the tokens."),
    (lambda q, k: torch.cat([q.view(*k.shape[:2], -1, *q.shape[2:])[:, :, g] @ k.mT
                             for g in range(q.shape[1] // k.shape[1])], 1),
     "The heads come out in another order: first the first of each group, then the second of each."),
    (lambda q, k: (q.view(len(q), q.shape[1] // k.shape[1], -1, k.shape[3]) @ k.mT).view(*q.shape[:3], -1),
     "Which is the outer one, the key head or the head inside its group? The queries of one key head are neighbours."),
    (lambda q, k: q @ k[:, :, None].expand(-1, -1, q.shape[1] // k.shape[1], -1, -1).view(
        len(k), -1, *k.shape[2:]).mT,
     _GROUP),
    (lambda q, k: _grouped(q, k).view(*k.shape[:2], -1, *_grouped(q, k).shape[2:]),
     "The heads are to be one dimension: merge the key heads and the heads of each group."),
    ],
    cases=[(torch.ones(1, 2, 1, 3), torch.ones(1, 1, 2, 3)), (_BY_TEN, _BY_SEVEN),
           (torch.arange(24.0).view(1, 4, 2, 3), torch.arange(24.0).view(1, 4, 2, 3))],
    draw=_draw_heads, cost=allocated_bytes, at=[(torch.ones(2, 16, 64, 16), torch.ones(2, 4, 128, 16))])
