"""The exercises and the guesses of notebook 02."""

import copy
import itertools
import math
import operator
import random
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F

from helpers.exercises.costs import allocated_bytes
from helpers.exercises.exercise import Exercise, function, guess, part, parts, value, whole

# fmt: off


_SEVEN = ("1 does not copy: m is contiguous, and has a view in any shape of 24.",
          "2 copies: reshape looks for a view, but here finds none.", "3 copies: a list as index always does.",
          "4 copies: flip would need a negative stride, which PyTorch does not have.",
          "5 does not copy: m is float32 already, so float() returns m itself.",
          "6 copies: each number is converted to another dtype.",
          "7 does not copy: numpy() and from_numpy() both use the memory that is there.")
guess("seven_lines", "", *(
    (lambda right, missed=missed: sorted({*right} ^ {*missed}), " ".join(_SEVEN[line - 1] for line in missed))
    for count in range(1, 8) for missed in itertools.combinations(range(1, 8), count)))

guess("three_words", "`contiguous` writes every number once more; the other two write none.",
      (18.9, "That is one copy for each word."), (0, "One of the words does write."),
      (12.6, "That is two copies, or reading counted as well: one word writes."), (1.57, "Each number has 4 bytes."),
      (3.15, "Each number has 4 bytes."), (25.2, "You took the 4 bytes twice, or counted four tensors: one is new."),
      (6291456, "That is in bytes: the question asks for MB."))
guess("permuted_note", "Each stride comes along with its dimension.",
      ((6, 3, 1), "So it would be in a fresh tensor of that shape, but nothing has moved."),
      ((12, 4, 1), "That is the stride of z itself."), ((4, 2, 3), "That is the new shape."),
      ((2, 0, 1), "That is the order of the dimensions; the question asks for their strides."),
      ((4, 12, 1), "You exchanged the first two: 2, 0, 1 says from which old place each one comes."),
      ((4, 1, 12), "You sent dimension 0 to place 2: permute(2, 0, 1) fetches dimension 2 to place 0."),
      ((12, 1, 4), "You exchanged the last two: permute(2, 0, 1) moves all three."),
      ((1, 4, 12), "You reversed all three: behind the last come the first two, in their old order."))
guess("all_windows", "These are the million numbers, each counted once.",
      (2.05e9, "That is numel × element size: most cells count 512 times."), (2048, "That is one window."),
      (1e6, "That counts numbers or windows: a number has 4 bytes."), (512, "That is one window, without its bytes."),
      (8e6, "A float32 has 4 bytes."), (2e6, "A float32 has 4 bytes."),
      (0, "No byte is new, but the question is how many the windows reach."))
guess("cache_repeated", "The line writes the whole cache, four times over.",
      (1.07, "That is the cache itself."), (0.537, "Those are the keys alone, once."),
      (2.15, "That is for the keys or the values alone."),
      (0, "expand is free; the reshape behind it is not."), (0.134, "That is one layer of 32."),
      (0.0671, "Those are the keys or the values of one layer of 32."),
      (3.22, "The copy holds the first of the four, too."), (4294967296, "That is in bytes: the question asks for GB."),
      (5.37, "The cache is read, too, but the question is what is written."),
      (17.2, "The 32 heads that are written are 8 · 4 already: you took the 4 twice."),
      (8.59, "A bfloat16 has 2 bytes, and only what is written counts."), (4, "That is in GiB: a GB has 10⁹ bytes."))

_OWN, _SIZE = "A stride multiplies the sizes to its right, not its own.", "That is a size: multiply those to its right."
_RIGHT = "{}, but what counts are all the sizes to its right, and only these."
_BYTES, _ENDS = "That is in bytes: a stride counts elements.", "permute(0, 2, 1, 3) leaves the first and last alone."
parts("permuted_stride", **{
    "1": part(60, [(120, _OWN), (240, _BYTES), (2, _SIZE), (3, _SIZE), (4, _SIZE), (5, _ENDS), (20, _ENDS),
                   (0, "A stride of 0 does not move at all, and the order of the dimensions is not the question."),
                   (1, "You reversed the order, or let the first index run fastest: in a fresh tensor it is the last."),
                   (12, "12 is 3 + 4 + 5, and also 3 · 4: multiply all three sizes to its right."),
                   (24, _RIGHT.format("24 = 2 · 3 · 4")), (6, _RIGHT.format("6 = 2 · 3")),
                   (30, _RIGHT.format("30 = 2 · 3 · 5")), (40, _RIGHT.format("40 = 2 · 4 · 5"))]),
    "2": part(5, [(20, "That is the second stride before the permute: each moves along with its dimension."),
                  (15, "So it would be in a fresh tensor of the new shape: permute moves no data."),
                  (60, _ENDS), (1, _ENDS), (4, _SIZE), (3, _SIZE), (12, "Size 4 comes here, with its old stride.")]),
    "3": part(20, [(5, "The two in the middle change places."), (60, _OWN), (80, _BYTES), (4, _SIZE), (3, _SIZE),
                   (15, "The sizes to its right are those of before the permute."), (1, _ENDS), (12, _OWN),
                   (9, "You added the sizes: multiply them.")]),
    "4": part(1, [(0, "The last index has a stride, too: its next element is one cell further."), (5, _OWN),
                  (4, _BYTES), (60, _ENDS), (20, _ENDS), (24, "In a fresh tensor the last index runs fastest.")]),
})


def _digits(offset: float, sizes: Sequence[int], take: Callable = operator.mod, keep: Callable = operator.floordiv):
    """One size after the other: what `take` gives of offset and size; `keep` gives the offset for the next."""
    digits = []
    for size in sizes:
        digits.append(take(offset, size))
        offset = keep(offset, size)
    return tuple(digits)


def _index_at(offset: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    return _digits(offset, shape[::-1])[::-1]


def _three(offset: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    _, b, c = shape
    return offset // (b * c), offset // c % b, offset % c


def _dense(shape: tuple[int, ...]) -> list[int]:
    return [math.prod(shape[k + 1 :]) for k in range(len(shape))]


def _draw_cell(r: random.Random) -> tuple[int, tuple[int, ...]]:
    shape = tuple(r.randint(1, 7) for _ in range(r.randint(1, 4)))
    return r.randrange(math.prod(shape)), shape


_ANY, _STRIDE = "Any number of dimensions may come: loop over the shape.", "Divide by the stride, not by the size."
_WHOLE = "An index is a whole number: divide with //, not with /."
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
    (lambda offset, shape: tuple(offset // size for size in shape), _STRIDE),
    (lambda offset, shape: tuple(offset % s for s in _dense(shape)),
     "The remainder is what is left for the next index: divide by the stride, too."),
    (lambda offset, shape: divmod(offset, shape[-1]), _ANY), (lambda offset, shape: divmod(offset, shape[1]), _ANY),
    (lambda offset, shape: divmod(offset, shape[0]), "That is for two dimensions, and the last index runs fastest."),
    (lambda offset, shape: tuple(offset // size % size for size in shape), _STRIDE),
    (lambda offset, shape: _digits(offset, shape[::-1], operator.floordiv)[::-1],
     "You kept the quotients: the index is the remainder, the quotient what is left for the others."),
    (_three, _ANY),
    (lambda offset, shape: _digits(offset, shape[::-1], keep=operator.truediv)[::-1], _WHOLE),
    (lambda offset, shape: _digits(offset, _dense(shape), operator.truediv, operator.mod), _WHOLE),
    (lambda offset, shape: _digits(offset, shape[::-1], keep=operator.sub)[::-1],
     "What is left for the others is the quotient by the size, not a difference."),
    (lambda offset, shape: _digits(offset, _dense(shape), operator.floordiv, operator.sub),
     "What is left for the others is the remainder by the stride: take away as many strides as fit."),
    (lambda offset, shape: _digits(offset, shape[::-1], operator.floordiv, operator.mod)[::-1],
     "You exchanged the two: the remainder is the index, the quotient is what is left for the others."),
    (lambda offset, shape: (*(offset // s for s in _dense(shape)[:-1]), offset % shape[-1]),
     "You took no remainder in the middle: each index stays below its size."),
    (lambda offset, shape: _digits(offset, shape, operator.floordiv, operator.mod), _STRIDE),
    (lambda offset, shape: _index_at(offset, shape)[:-1], "The last index is missing: its stride is 1."),
    (lambda offset, shape: _index_at(offset, shape)[1:], "The first index is missing: it is what is left at the end."),
    (lambda offset, shape: _digits(offset, [n * s for n, s in zip(shape, _dense(shape), strict=True)],
                                   operator.floordiv, operator.mod),
     "A stride is the product of the sizes to its right, without its own."),
    (lambda offset, shape: _digits(offset, (*shape[:-1], 1), operator.floordiv, operator.mod),
     "You divided by the size: divide by the stride, the product of the sizes to its right."),
    (lambda offset, shape: tuple(_dense(shape)), "Those are the strides: how many of each fit into the offset?"),
    (lambda offset, shape: tuple(i + 1 for i in _index_at(offset, shape)), "Indices start at 0."),
    (lambda offset, shape: _index_at(offset - 1, shape), "Cells count from 0, like indices."),
    (lambda offset, shape: _index_at(offset // 4, shape), "The offset counts elements, not bytes."),
    (lambda offset, shape: (offset // (shape[1] * shape[2]), *divmod(offset % (shape[1] * shape[2]), shape[2])), _ANY),
    (lambda offset, shape: torch.arange(math.prod(shape)).view(shape)[offset], "That indexes the first dimension."),
    ],
    cases=[(7, (3, 4)), (23, (2, 3, 4)), (13, (2, 3, 4)), (0, (5,)), (1234, (10, 10, 20))], draw=_draw_cell)


def _windows(x: torch.Tensor, size: int, more: int = 0, *strides: int | None, offset: int | None = None):
    """The windows, maybe with other strides: to the next window, and inside of one."""
    strides = [x.stride(0) if one is None else one for one in strides or (None, None)]
    return torch.as_strided(x, (len(x) - size + 1 + more, size), strides, offset)


_APART = "Those windows do not overlap: neighbouring windows start one element apart."
_FIRST = "Each of your rows is the first window: the next must start one element further."
_COPIED = "The windows are right, but copied, as by stack, clone or contiguous; strides alone can do it."
_NEXT = "The next window starts one element further, not one window further."


def _draw_line(r: random.Random) -> tuple[torch.Tensor, int]:
    x = torch.arange(r.randint(20, 60)) * r.randint(1, 9)
    x = x[r.randint(0, 5) :: r.randint(1, 3)]
    return x, r.randint(1, len(x))


function("windows",
    lambda x, size: x.unfold(0, size, 1), [
    (lambda x, size: _windows(x, size, more=-1), "One window too few: n elements have n − size + 1 windows."),
    (lambda x, size: _windows(x, size, 0, 1, 1),
     "You assumed that neighbours are one cell apart; a column or x[::2] has another x.stride(0)."),
    (lambda x, size: _windows(x, size, 0, 1, 1, offset=0),
     "You assumed that x begins at cell 0 and has neighbours one cell apart; it may be a slice with a step."),
    (lambda x, size: _windows(x, size, offset=0),
     "You started at the beginning of the storage: x may be a slice, which starts at x.storage_offset()."),
    (lambda x, size: _windows(x, size).t(), "Each row is to be one window; yours are the columns."),
    (lambda x, size: x[: len(x) // size * size].reshape(-1, size), _APART),
    (lambda x, size: _windows(x, size, more=1),
     "Too many windows: n elements have n − size + 1 of them, and the next would run beyond the end."),
    (lambda x, size: x.view(-1, size), _APART),
    (lambda x, size: x.expand(len(x) - size + 1, -1)[:, :size], _FIRST),
    (lambda x, size: x.expand(len(x) - size + 1, size), "expand repeats one row, but windows move on."),
    (lambda x, size: x.unfold(1, size, 1), "Read the error: x has one dimension, 0."),
    (lambda x, size: x.unfold(0, 1, size), "You exchanged two arguments: unfold(dimension, size, step)."),
    (lambda x, size: _windows(x, size, 0, size, 1), _NEXT),
    (lambda x, size: _windows(x, size, 0, size * x.stride(0), None), _NEXT),
    (lambda x, size: torch.as_strided(x, (len(x) - size + 1, size), (x.stride(), x.stride())),
     "Read the error: as_strided wants a shape and a stride, unfold three numbers; x.stride() is a tuple, no number."),
    (lambda x, size: _windows(x, size, 0, None, 1),
     "The next window is right, but elements inside a window are x.stride(0) apart, too."),
    (lambda x, size: _windows(x, size, 0, 1, None),
     "The elements inside a window are right, but the next window starts x.stride(0) further, too."),
    (lambda x, size: torch.as_strided(x, (len(x) // size, size), (size, 1)), _APART),
    (lambda x, size: _windows(x, size, 0, None, 0),
     "With stride 0 each window repeats its first element: inside it, too, the next is x.stride(0) further."),
    (lambda x, size: _windows(x, size, 0, 0, None), _FIRST),
    (lambda x, size: _windows(x, size, 0, 4, 4), "A stride counts cells, not bytes: take x.stride(0)."),
    (lambda x, size: torch.as_strided(x, (len(x) - size + 1, size), x.stride()),
     "Read the error: as_strided wants two strides, counted in elements."),
    (lambda x, size: _windows(x.contiguous(), size),
     "The windows are right, but contiguous() copies a slice with a step: use x.stride(0) instead."),
    (lambda x, size: _windows(x.clone(), size), "The windows are right, but x is copied first: use it as it is."),
    (lambda x, size: torch.stack([x[i : i + size] for i in range(len(x) - size + 1)]), _COPIED),
    (lambda x, size: _windows(x, size).contiguous(), _COPIED),
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
    (lambda x: x[:, ::2].flatten(), "Do they merge? Three elements, 2 apart, take 6 cells; the next row is 6 away."),
    (lambda x: x.contiguous(), "What is contiguous already is returned as it is."),
    (lambda x: x.t().contiguous(), "A transpose of a matrix is not contiguous: its elements must change places."),
    (lambda x: x.chunk(2, dim=1)[1], "Half of the columns is a slice: another offset, the same strides."),
    (lambda x: x[:, 1:4].flatten(), "Do they merge? Three elements, 1 apart, take 3 cells; the next row is 6 away."),
], start=1)})

value("really_touched", 500 * 64 * 4, [
    (10 * 500 * 64 * 4, "That is numel × element size: the 10 copies have stride 0 and are the same bytes."),
    (1000 * 64 * 4, "That is all of a, or 8 bytes for each element of a[::2]: half of the rows, 4 bytes each."),
    (500 * 64 * 2, "That is a.numel(), or 2 bytes for each element of a[::2]: half of the rows, 4 bytes each."),
    (500 * 64 * 4 / 1000, "That is in kB: the question asks for bytes."), (0.128, "That is in MB, not in bytes."),
    (500 * 64 * 4 / 1024, "That is in KiB: the question asks for bytes."), (131072, "A kB has 1000 bytes, not 1024."),
    (10 * 1000 * 64 * 4, "You counted all rows of a, ten times: a[::2] has half of them, and expand adds no cell."),
    (5000, "Those are rows, most of them the same ones."), (500, "Those are rows: each has 64 numbers."),
    (500 * 64 * 32, "Those are bits: a byte has eight."), (1000, "Those are the rows of a, each of 64 numbers."),
    (500 * 64 * 4 / 10, "You divided by ten: each of the repetitions needs all the bytes of a[::2]."),
    (499 * 64 * 4, "Count the rows 0, 2, 4, … of 1000 again."),
    (0, "A view takes no new memory, but its elements lie in bytes of a: in how many?"),
    (500 * 4, "That is one element of each row: a row has 64."), (500 * 64, "That counts elements, not bytes."),
    (10 * 64 * 4, "Those are 10 rows: expand repeats all 500 rows, and adds no new one."),
    (999 * 64 * 4, "That is the stretch from the first byte to the last; the rows between are not touched."),
    (10 * 500 * 64, "That is b.numel(): most of its elements share their bytes, and each has 4."),
    (500 * 64 * 16, "You multiplied by 4 twice: a float32 has 4 bytes."),
    (64 * 4, "That is one row: a[::2] has 500 of them."),
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


_FRESH = "You compared with a fresh tensor: what counts is the next dimension's own stride, whatever it is."


def _draw_strided(r: random.Random) -> tuple[tuple[int, ...], tuple[int, ...]]:
    shape = [r.randint(2, 5) for _ in range(r.randint(1, 5))]
    stride = [r.choice((0, 1, 1, 2, 3))]
    for size in shape[:0:-1]:
        stride.insert(0, size * stride[0] * r.choice((1, 1, 1, 2)) or r.choice((0, 0, 1, 4)))
    order = r.sample(range(len(shape)), len(shape)) if r.random() < 0.2 else range(len(shape))
    return tuple(shape[k] for k in order), tuple(stride[k] for k in order)


function("fewest_dimensions",
    _fewest, [
    (lambda n, s: 1, "Some neighbours do not merge: look at the strides of each pair."),
    (lambda n, s: 1 if list(s) == _dense(n) else len(n),
     "Not contiguous, and yet some neighbours may merge: look at each pair."),
    (lambda n, s: 1 if list(s) == _dense(n) else 2, "There is more than contiguous or not: look at each pair."),
    (_merging(lambda n, n1, s, s1: s == n * s1), "A step must jump over the whole next dimension: which size is that?"),
    (_merging(lambda n, n1, s, s1: s == n1), "You compared with the next size alone: the next stride counts, too."),
    (_merging(lambda n, n1, s, s1: s == n1 + s1), "Multiply the size by the stride, do not add them."),
    (_merging(lambda n, n1, s, s1: s > s1), "Falling strides are not enough: a step has to fit the row exactly."),
    (_merging(lambda n, n1, s, s1: s >= s1), "Falling strides are not enough: a step has to fit the row exactly."),
    (_merging(lambda n, n1, s, s1: s >= n1 * s1), "A longer step leaves gaps: it has to fit exactly."),
    (_merging(lambda n, n1, s, s1: s <= n1 * s1),
     "With a shorter step the next row begins before this one ends: it has to fit exactly."),
    (_merging(lambda n, n1, s, s1: s1 == n * s),
     "The other way round: a step of k has to jump over the whole dimension k + 1."),
    (_merging(lambda n, n1, s, s1: s / s1 == n1), "A stride may be 0: multiply instead of dividing."),
    (_merging(lambda n, n1, s, s1: s % s1 == 0), "A multiple is not enough: it may leave gaps. And a stride may be 0."),
    (_merging(lambda n, n1, s, s1: s % (s1 or 1) == 0), "A multiple is not enough: the step has to fit exactly."),
    (_merging(lambda n, n1, s, s1: s == n1 * s1 and s > 0), "Two dimensions of stride 0 merge, too."),
    (lambda n, s: _fewest(*zip(*moving, strict=True)) if (moving := [d for d in zip(n, s, strict=True) if d[1]]) else 1,
     "A dimension of stride 0 stays: it does not merge with a neighbour that moves."),
    (lambda n, s: len(n) - _fewest(n, s), "You counted the pairs that merge; each of them leaves one dimension less."),
    (lambda n, s: 1 + len(n) - _fewest(n, s), "You counted the pairs that merge, but those add no dimension."),
    (lambda n, s: len(n) - 1, "Not every tensor has exactly one pair that merges: look at each pair."),
    (lambda n, s: len(n) - any(_fits(n, s)), "You save one dimension in all: each pair that merges saves one."),
    (_merging(lambda n, n1, s, s1: s in (0, n1 * s1)), "A stride of 0 is no exception: it has to fit, too."),
    (lambda n, s: _fewest(n, s) - 1, "One too few: n dimensions have n − 1 pairs."),
    (lambda n, s: _fewest(n, s) + 1, "One too many: if all pairs merge, one dimension is left."),
    (lambda n, s: len(set(s)), "You counted different strides: what counts is whether neighbours merge."),
    (lambda n, s: len(n) - sum(s[k] == n[k + 1] * s[k + 1] for k in range(len(n))),
     "n dimensions have n − 1 pairs: the last has no right neighbour."),
    (lambda n, s: _fewest(*zip(*sorted(zip(n, s, strict=True), key=lambda d: -d[1]), strict=True)),
     "A view keeps the order of the dimensions: only neighbours as they stand may merge."),
    (lambda n, s: len(n) if s[-1] != 1 else _fewest(n, s), "The last stride need not be 1, as in every second column."),
    (_merging(lambda n, n1, s, s1: s1 and s % (n1 * s1) == 0),
     "A multiple is not enough, and 0 is a multiple of everything: the step has to fit exactly."),
    (lambda n, s: 1 + sum(map(operator.ne, s, _dense(n))), _FRESH),
    (lambda n, s: 1 + sum(map(operator.ne, s[:-1], _dense(n))), _FRESH),
    (_merging(lambda n, n1, s, s1: s % (n1 * s1) == 0), "A multiple is not enough; and 0 is a multiple of everything."),
    (lambda n, s: _fewest(n[:-1] or n, s[:-1] or s), "Your range ends too soon: the last pair is missing."),
    (lambda n, s: len(n) - sum(_fits(n, s)[:-1]), "Your range ends too soon: the last pair is missing."),
    (lambda n, s: len(n) - sum(_fits(n, s)[1:]), "Your range begins too late: the first pair is missing."),
    (lambda n, s: 1 if all(_fits(n, s)) else len(n), "It is not all or nothing: each pair that merges saves one."),
    (lambda n, s: len(n) - sum(itertools.takewhile(bool, _fits(n, s))),
     "You stopped at the first pair that does not merge; the pairs after it may."),
    (lambda n, s: len(n) - sum(itertools.takewhile(bool, _fits(n, s)[::-1])),
     "After a pair that does not merge, begin anew from there: the pairs before it may merge."),
    (lambda n, s: len(n) - _fits(n, s)[0] if len(n) > 1 else None,
     "Your return stands inside the loop, which ends after the first pair."),
    (lambda n, s: len(n) - sum((1 + len(list(run))) // 2 for fits, run in itertools.groupby(_fits(n, s)) if fits),
     "Three neighbours may become one: after a merge, go on with the next pair and with its own strides."),
    (lambda n, s: len(n), "Some neighbours merge into one dimension: compare the strides of each pair."),
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


_LOST = "Row {} is lost: overwritten before it was copied (detach() and contiguous() copy nothing), or not put back."
function("swap_rows",
    _swapped, [
    (_swap("x[i] = x[j]"), _LOST.format("i")), (_swap("x[j] = x[i]"), _LOST.format("j")),
    (lambda x, i, j: _swapped(x.t(), i, j).t(), "You swapped columns: x[i] is row i, x[:, i] column i."),
    (_swap("kept = x.clone(); x[i] = kept[j]; x[j] = kept[i]"),
     "You cloned the whole matrix; only one row is in danger."),
    (_swap("x[i], x[j] = x[j].clone(), x[i].clone()"),
     "Added up, that is two rows: keep one alone, in its own dtype. A number that you assign becomes a tensor, too."),
    (_swap("kept = copy.deepcopy(x[i]); x[i] = x[j]; x[j] = kept"),
     "A deepcopy copies the whole storage behind a view; clone() copies the row alone."),
    (lambda x, i, j: (_swapped(x, i, j)[i], x[j]), "The rows are exchanged: return x itself, not only these two."),
    (_swap("x[i] += x[j]; x[j] = x[i] - x[j]; x[i] -= x[j]"),
     "Sums and differences lose the row where i and j are equal, and they round."),
    (_swap("if i != j: x[i] += x[j]; x[j] = x[i] - x[j]; x[i] -= x[j]"),
     "Sums and differences round, and lose a number beside a much larger one: keep a row instead."),
    (_swap("x[[i, j]] = x[[j, i]]"), "A list as index copies both rows, and needs an index tensor on each side."),
    (lambda x, i, j: (x[i].clone(), _swapped(x, i, j))[0],
     "Return x itself, with its rows exchanged, not another tensor."),
    (lambda x, i, j: _swapped(x.clone(), i, j), "You swapped the rows of a copy: change x itself."),
    (_swap("x[i] ^= x[j]; x[j] ^= x[i]; x[i] ^= x[j]"), "That works for whole numbers only, and loses row i = j."),
    (_swap(""), "Nothing has changed."),
    (_swap("k = x[i].copy()"), "Read the error: what copies a tensor is clone()."),
    (_swap("x[j] = x[i].clone"), "Read the error: clone is called with brackets, clone()."),
    (_swap("k = x[i].double(); x[i] = x[j]; x[j] = k"), "Keep the row in its own dtype: that takes the least memory."),
    (_swap("k = x[i].float(); x[i] = x[j]; x[j] = k"), "float() of a float32 returns the row itself, not a copy."),
    (_swap("k = x[i].float().clone(); x[i] = x[j]; x[j] = k"), "Keep the row in its own dtype, or numbers are lost."),
    ],
    cases=[(torch.arange(12).view(3, 4), 2, 1), (torch.arange(20.0).view(4, 5), 0, 2),
           (torch.arange(9.0).view(3, 3), 1, 1), (torch.tensor([[1e300, 1], [2, 3]], dtype=torch.float64), 0, 1),
           (torch.tensor([[1e9, 1.0], [1.0, 1e9], [2.0, 3.0]]), 0, 1)],  # sums and differences of rows would round
    draw=lambda r: (whole(r, 5, 5, most=99), r.randint(0, 4), r.randint(0, 4)),
    in_place=True, tolerance=0, cost=allocated_bytes, at=[(torch.arange(40_000.0).view(400, 100), 3, 5)], room=1.05)


def _grouped(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    rows = q.view(*k.shape[:2], -1, k.shape[3])
    return (rows @ k.mT).view(*q.shape[:3], k.shape[2])


def _repeated(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    return q @ k.repeat_interleave(q.shape[1] // k.shape[1], 1).mT


_KEPT = "One score matrix for each query head is asked for: you kept one for each key head."
_GROUP = "Several query heads share a key head, and stretched keys have no such view: group the queries instead."
_OUTER = "The key head is the outer one, the head inside its group the inner one: (K, H // K), not (H // K, K)."
_ROWS = "The tokens of the queries are the rows and those of the keys the columns."
_LAST = "Exchange the last two dimensions of the keys, and only these: mT or transpose(2, 3)."
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
    (lambda q, k: q @ k[:, torch.arange(q.shape[1]) // (q.shape[1] // k.shape[1])].mT,
     "The scores are right, but an index writes each key head once for every query head that uses it."),
    (lambda q, k: torch.cat([each @ k[:, i : i + 1].mT for i, each in enumerate(q.chunk(k.shape[1], 1))], 1), _TWICE),
    (lambda q, k: _grouped(q, k).clone(), _TWICE),
    (lambda q, k: (q.view(*k.shape[:2], -1, k.shape[3]) @ k.mT.contiguous()).view(*q.shape[:3], -1),
     "The scores are right, but the keys are copied first: a product takes a transposed view as it is."),
    (lambda q, k: q @ k.repeat(1, q.shape[1] // k.shape[1], 1, 1).mT,
     "Query heads that are neighbours share a key head; yours take turns."),
    (lambda q, k: q.view(*k.shape[:2], -1, k.shape[3]) @ k.mT,
     "These are the scores, but still grouped: split the heads and the tokens again."),
    (lambda q, k: _grouped(q, k).mT, _ROWS),
    (lambda q, k: (q.clone().view(*k.shape[:2], -1, k.shape[3]) @ k.mT).view(*q.shape[:3], -1),
     "The scores are right, but the queries are copied first: they are contiguous, and have their view."),
    (lambda q, k: q.view(1, 8, 4, 128) @ k.mT,
     "Read the error: take the sizes from queries.shape, and turn the keys by mT, not by t()."),
    (lambda q, k: (q.view(len(q), -1, *k.shape[1:2], *q.shape[2:]).transpose(1, 2).flatten(2, 3) @ k.mT).view(
        *q.shape[:3], -1), _OUTER),
    (lambda q, k: (q.view(*k.shape[:2], -1, *q.shape[2:]) @ k.mT).view(*q.shape[:3], -1),
     "Five dimensions meet four, and the batch of the keys their heads: merge heads and tokens first."),
    (lambda q, k: (q.view(*k.shape[:2], -1, *q.shape[2:]) @ k.mT).view(*q.shape[:3], k.shape[2]),
     "Five dimensions meet four: they are aligned at the right, so a group meets the wrong key head."),
    (lambda q, k: q.view(*k.shape[:2], -1, k.shape[3]) @ k, "Exchange tokens and channels of the keys."),
    (lambda q, k: q.view(*k.shape[:2], -1, q.shape[2] * k.shape[3]) @ k.mT,
     "The tokens merge with the heads, not with the channels."),
    (lambda q, k: q.view(*k.shape[:2], q.shape[2], -1) @ k.mT, "The heads of a group join the rows, not the channels."),
    (lambda q, k: _grouped(q, k).view(q.shape[0], q.shape[2], q.shape[1], -1),
     "The heads come before the tokens, and a view does not exchange them."),
    (lambda q, k: _grouped(q, k).view(*q.shape[:2], k.shape[2], -1),
     "The tokens of the queries are the rows, and a view does not exchange them with the columns."),
    (lambda q, k: _grouped(q, k).view(*k.shape[:2], -1, *_grouped(q, k).shape[2:]).sum(2), _KEPT),
    (lambda q, k: q[:, : k.shape[1]] @ k.mT, _KEPT),
    (lambda q, k: _grouped(q, k) / math.sqrt(q.shape[3]), "The scores are asked for as they are, without the scale."),
    (lambda q, k: _grouped(q, k).softmax(-1), "The scores are asked for as they are, before the softmax."),
    (lambda q, k: (_grouped(q, k) / q.shape[3] ** 0.5).softmax(-1), "The softmax is not asked for: the scores alone."),
    (lambda q, k: torch.einsum("bhtc,bksc->bhts", q, k),
     "k stands only on the left, so you summed over all key heads: group the queries first."),
    (lambda q, k: F.scaled_dot_product_attention(q, k, k, enable_gqa=True),
     "That is all of attention: the scores alone are asked for."),
    (lambda q, k: q @ k[:, :1].mT, "You used the first key head alone."),
    (lambda q, k: q @ k.mT, _GROUP),
    (lambda q, k: q @ k.view(len(k), q.shape[1], -1, k.shape[3]).mT, _GROUP),
    (lambda q, k: (k @ q.view(*k.shape[:2], -1, k.shape[3]).mT).view(*q.shape[:3], -1), _ROWS),
    (lambda q, k: (q.view(*k.shape[:2], -1, k.shape[3]) @ k.transpose(1, 2)).view(*q.shape[:3], -1), _LAST),
    (lambda q, k: (q.view(*k.shape[:2], -1, k.shape[3]) @ k.permute(3, 2, 1, 0)).view(*q.shape[:3], -1), _LAST),
    (lambda q, k: (q.view(*k.shape[:2], -1, k.shape[3]) @ k).view(*q.shape[:3], -1),
     "A score multiplies channels with channels: the keys have to be transposed first."),
    (lambda q, k: (q.view(*k.shape[:2], -1, k.shape[3]) @ k.view(*k.shape[:2], k.shape[3], -1)).view(*q.shape[:3], -1),
     "A view keeps the order of the numbers: exchange tokens and channels of the keys by transpose or mT."),
    (lambda q, k: (q.view(*k.shape[:2], q.shape[1] // k.shape[1], k.shape[3]) @ k.mT).view(*q.shape[:2], 1, -1),
     "That is for one token: here the queries have many."),
    (lambda q, k: (q.transpose(1, 2).reshape(*k.shape[:2], -1, k.shape[3]) @ k.mT).view(*q.shape[:3], -1),
     "You put the tokens before the heads: what shares a key head are neighbouring heads, with all their tokens."),
    (lambda q, k: _grouped(q, k).view(*k.shape[:2], q.shape[2], -1, k.shape[2]).transpose(2, 3).flatten(1, 2),
     "Split the rows the way they were merged: in each group the heads come first, then the tokens."),
    (lambda q, k: _grouped(q, k).view(q.shape[0], q.shape[2], q.shape[1], -1).transpose(1, 2),
     "Split the rows the way they were merged: in each group the heads come first, then the tokens."),
    (lambda q, k: torch.cat([q.view(*k.shape[:2], -1, *q.shape[2:])[:, :, g] @ k.mT
                             for g in range(q.shape[1] // k.shape[1])], 1),
     "The heads come out in another order: first the first of each group, then the second of each."),
    (lambda q, k: (q.view(len(q), q.shape[1] // k.shape[1], -1, k.shape[3]) @ k.mT).view(*q.shape[:3], -1), _OUTER),
    (lambda q, k: (q.view(len(q), q.shape[1] // k.shape[1], -1, k.shape[3]) @ k.mT).view(*q.shape[:3], k.shape[2]),
     _OUTER),
    (lambda q, k: q.view(len(q), -1, *k.shape[1:2], *q.shape[2:]).transpose(1, 2).flatten(2, 3) @ k.mT, _OUTER),
    (lambda q, k: q @ k[:, :, None].expand(-1, -1, q.shape[1] // k.shape[1], -1, -1).view(
        len(k), -1, *k.shape[2:]).mT, _GROUP),
    (lambda q, k: _grouped(q, k).view(*k.shape[:2], -1, *_grouped(q, k).shape[2:]),
     "The heads are to be one dimension: merge the key heads and the heads of each group."),
    ],
    cases=[(torch.ones(1, 2, 1, 3), torch.ones(1, 1, 2, 3)), (_BY_TEN, _BY_SEVEN),
           (torch.arange(24.0).view(1, 4, 2, 3), torch.arange(24.0).view(1, 4, 2, 3))],
    draw=_draw_heads, cost=allocated_bytes, at=[(torch.ones(2, 16, 64, 16), torch.ones(2, 4, 128, 16))])
