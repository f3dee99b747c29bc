"""The exercises of notebook 02."""

import math
from collections.abc import Callable

import torch

from helpers.exercises.costs import allocated_bytes
from helpers.exercises.exercise import Exercise, function, part, parts, value

# fmt: off

value("permuted_stride", torch.empty(2, 3, 4, 5).permute(0, 2, 1, 3).stride(), [
    (torch.empty(2, 4, 3, 5).stride(), "Those are the strides of a fresh tensor of that shape: permute moves no data."),
    (torch.empty(2, 3, 4, 5).stride(),
     "Those are the strides before the permute: they move along with their dimensions."),
    ((2, 4, 3, 5), "That is the new shape; the question asks for the stride."),
    ((240, 20, 80, 4), "Those are bytes: a stride counts elements."),
    ((1, 5, 20, 60), "You reversed all dimensions: permute(0, 2, 1, 3) swaps the two in the middle."),
])

function("offset_at",
    lambda index, stride, offset: offset + sum(i * s for i, s in zip(index, stride, strict=True)), [
    (lambda index, stride, offset: sum(i * s for i, s in zip(index, stride, strict=True)),
     "You forgot the offset: a slice starts later on its storage."),
    (lambda index, stride, offset: (offset + sum(index) + sum(stride)),
     "You added index and stride: each index is multiplied by its stride."),
    (lambda index, stride, offset: (offset + sum(i * s for i, s in zip(index, reversed(stride), strict=True))),
     "You paired the indices with the strides in reverse order."),
    (lambda index, stride, offset: offset + sum(i * s for i, s in zip(index, (*stride[:-1], 1), strict=False)),
     "You took the last stride for 1: it counts like the others."),
    (lambda index, stride, offset: (4 * (offset + sum(i * s for i, s in zip(index, stride, strict=True)))),
     "That is in bytes of float32; the offset counts elements."),
    ], cases=[((2, 1), (4, 1), 0), ((1, 2, 3), (12, 4, 1), 5), ((3, 2), (1, 6), 1), ((5, 2), (0, 1), 4), ((), (), 7)])


def _index_at(offset: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    digits = []
    for size in reversed(shape):
        offset, digit = divmod(offset, size)
        digits.append(digit)
    return tuple(reversed(digits))


def _dense_strides(shape: tuple[int, ...]) -> list[int]:
    return [math.prod(shape[k + 1 :]) for k in range(len(shape))]


function("index_at",
    _index_at, [
    (lambda offset, shape: tuple(reversed(_index_at(offset, shape[::-1]))),
     "Your first index runs fastest: in a contiguous tensor it is the last."),
    (lambda offset, shape: tuple(reversed(_index_at(offset, shape))),
     "You collected the indices from the last to the first: turn them round."),
    (lambda offset, shape: tuple(offset // stride for stride in _dense_strides(shape)),
     "You divided by the strides but took no remainder: an index stays below its size."),
    (lambda offset, shape: tuple(offset % size for size in shape),
     "You took each remainder of the whole offset: divide by the stride first."),
    ], cases=[(7, (3, 4)), (23, (2, 3, 4)), (13, (2, 3, 4)), (0, (5,)), (1234, (10, 10, 20))])


def _windows(x: torch.Tensor, size: int, short: int = 0, step: int = 0, offset: int | None = None) -> torch.Tensor:
    step = step or x.stride(0)
    return torch.as_strided(x, (len(x) - size + 1 - short, size), (step, step), offset)


function("windows",
    lambda x, size: x.unfold(0, size, 1), [
    (lambda x, size: _windows(x, size, short=1), "One window too few: n elements have n − size + 1 windows."),
    (lambda x, size: _windows(x, size, step=1),
     "You assumed that neighbours are one cell apart; a column or x[::2] has another x.stride(0)."),
    (lambda x, size: _windows(x, size, offset=0),
     "You started at the beginning of the storage: x may be a slice, which starts at x.storage_offset()."),
    (lambda x, size: _windows(x, size).t(), "Each row is to be one window; yours are the columns."),
    (lambda x, size: x[: len(x) // size * size].reshape(-1, size),
     "Those windows do not overlap: neighbouring windows start one element apart."),
    (lambda x, size: torch.stack([x[i : i + size] for i in range(len(x) - size + 1)]),
     "The windows are right, but copied, as by stack, clone or contiguous; two equal strides need no copy."),
    (lambda x, size: x[torch.arange(len(x) - size + 1)[:, None] + torch.arange(size)],
     "An index tensor copies every window, and is itself in memory; two equal strides need neither."),
    ],
    cases=[
        (torch.arange(10.0), 3), (torch.arange(10), 10), (torch.arange(20.0)[4:12], 2), (torch.arange(24.0)[::2], 4),
        (torch.arange(12.0).view(3, 4)[:, 1], 2),
    ],
    cost=allocated_bytes)


def _shares(expression: Callable[[torch.Tensor], torch.Tensor], sentence: str) -> Exercise:
    """View or copy, as torch has it; the sentence is for the other answer."""
    x = torch.zeros(4, 6)
    words = ["view", "copy"]
    if expression(x).untyped_storage().data_ptr() != x.untyped_storage().data_ptr():
        words.reverse()
    return part(words[0], [(words[1], sentence)], words=("view", "copy"))


parts("view_or_copy", **{str(number): _shares(*pair) for number, pair in enumerate([
    (lambda x: x[1:3], "A slice moves the offset; no element moves."),
    (lambda x: x[[1, 2]], "A list as index always copies, also where a stride could describe these rows."),
    (lambda x: x.t(), "A transpose has only its strides exchanged; no element moves."),
    (lambda x: x.t().reshape(-1), "It merges the dimensions of a transpose, and their strides do not allow that."),
    (lambda x: x.reshape(2, 12), "A reshape copies only when it must; x is contiguous."),
    (lambda x: x.contiguous(), "What is contiguous already is returned as it is."),
    (lambda x: x.t().contiguous(), "A transpose of a matrix is not contiguous: its elements must change places."),
    (lambda x: x.expand(3, 4, 6), "An expand repeats with stride 0; repeat is the one that copies."),
    (lambda x: x.repeat(3, 1, 1), "A repeat writes every repetition into new memory; expand does not."),
    (lambda x: x.to(torch.float32), "The dtype is the same, so to() returns x itself."),
], start=1)})

value("really_touched", 500 * 64 * 4, [
    (32 * 500 * 64 * 4, "That is numel × element size: the 32 copies have stride 0 and are the same bytes."),
    (1000 * 64 * 4, "That is the whole storage: a[::2] leaves out every other row."),
    (500 * 64 * 2, "You took 2 byte per element: a float32 has 4."),
    (500 * 64, "That is a number of elements: each has 4 byte."),
    (999 * 64 * 4, "That is the stretch from the first byte to the last; the rows between are not touched."),
    (500 * 64 * 32, "Those are bits: a float32 has 4 byte."),
])


def _fewest(shape: tuple[int, ...], stride: tuple[int, ...]) -> int:
    """By trying torch's own view on every way to merge neighbours."""
    cells = 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))
    t = torch.empty(cells).as_strided(shape, stride)
    count = len(shape)
    for k in range(len(shape) - 1):
        try:
            t.view(*shape[:k], shape[k] * shape[k + 1], *shape[k + 2 :])
            count -= 1
        except RuntimeError:
            pass
    return count


def _count_runs(merge: Callable[[tuple[int, ...], tuple[int, ...], int], bool]) -> Callable[..., int]:
    return lambda shape, stride: len(shape) - sum(merge(shape, stride, k) for k in range(len(shape) - 1))


function("fewest_dimensions",
    _fewest, [
    (lambda shape, stride: 1,
     "One dimension would do for a contiguous tensor only: two neighbours merge if their strides fit."),
    (lambda shape, stride: (1 if list(stride) == _dense_strides(shape) else len(shape)),
     "Not contiguous, and yet some neighbours may merge: look at each pair."),
    (_count_runs(lambda shape, stride, k: stride[k] == shape[k] * stride[k + 1]),
     "You multiplied by size[k]; a step must jump over the whole next dimension, so by size[k + 1]."),
    (_count_runs(lambda shape, stride, k: stride[k] == shape[k + 1]),
     "You compared stride[k] with size[k + 1] alone; multiply it by stride[k + 1]."),
    (_count_runs(lambda shape, stride, k: stride[k] > stride[k + 1]),
     "A falling order of strides is not enough: there may be gaps between the rows."),
    (lambda shape, stride: (len(shape) - _fewest(shape, stride)),
     "You counted the pairs that merge; each of them leaves one dimension less."),
    ],
    cases=[
        ((3, 4), (4, 1)), ((4, 3), (1, 4)), ((2, 3, 4), (12, 4, 1)), ((3, 2, 4), (4, 12, 1)), ((2, 3, 4), (24, 8, 2)),
        ((2, 3, 4), (24, 4, 1)), ((5, 3), (0, 1)), ((5, 5), (1, 5)), ((4, 5), (5, 2)), ((2, 2, 3), (0, 0, 1)),
    ])


def _prepare(
    images: torch.Tensor, *, order: tuple[int, ...] = (0, 3, 1, 2), start: int = 4, keep: str = "", front: bool = True
) -> torch.Tensor:
    x = images.permute(order)
    x = x.contiguous() if "contiguous" in keep else x
    x = x[:, :, list(range(start, start + 8))] if "list" in keep else x[:, :, start : start + 8]
    x = x[..., ::2].clone() if "clone" in keep else x[..., ::2]
    x = x.reshape(*x.shape[:2], 4, 2, x.shape[3])
    if "stack" in keep:
        return torch.stack([x, x, x])
    return x.expand(3, *x.shape) if front else x[:, None].expand(-1, 3, -1, -1, -1, -1)


_IMAGES = torch.arange(2 * 16 * 16 * 3, dtype=torch.float32)
function("prepare",
    _prepare, [
    (lambda images: _prepare(images, keep="contiguous"),
     "The contiguous() is left over: the steps after it work on any strides."),
    (lambda images: _prepare(images, keep="list"),
     "The rows are still picked by a list, which copies them; a slice names the same rows."),
    (lambda images: _prepare(images, keep="clone"), "The clone() is left over: nobody writes into these images."),
    (lambda images: _prepare(images, keep="stack"),
     "Each image is written three times, by stack or repeat; expand shows it three times."),
    (lambda images: _prepare(images, keep="contiguous list clone stack"),
     "Nothing is saved yet: contiguous, the list index, clone and stack copy, one after the other."),
    (lambda images: _prepare(images.transpose(1, 2)),
     "Height and width are exchanged: the order is batch, channels, height, width."),
    (lambda images: _prepare(images, start=0), "The eight rows start at row 4: list(range(4, 12)) is the slice 4:12."),
    (lambda images: _prepare(images, front=False),
     "The three copies come first, before the batch: x.expand(3, *x.shape)."),
    ], cases=[(_IMAGES.view(2, 16, 16, 3),), (_IMAGES[: 16 * 12 * 4].view(1, 16, 12, 4),)], cost=allocated_bytes)


def _swapped(x: torch.Tensor, i: int, j: int) -> torch.Tensor:
    kept = x[i].clone()
    x[i] = x[j]
    x[j] = kept
    return x


def _swap_lost(x: torch.Tensor, i: int, j: int) -> torch.Tensor:
    x[i] = x[j]
    return x


def _swap_late(x: torch.Tensor, i: int, j: int) -> torch.Tensor:
    x[j] = x[i]
    return x


def _swap_two(x: torch.Tensor, i: int, j: int) -> torch.Tensor:
    x[i], x[j] = x[j].clone(), x[i].clone()
    return x


def _swap_by_list(x: torch.Tensor, i: int, j: int) -> torch.Tensor:
    x[[i, j]] = x[[j, i]]
    return x


function("swap_rows",
    _swapped, [
    (_swap_lost, "Row i is lost: x[i] is a view, so what you kept changed together with x. Keep a clone of it."),
    (_swap_late, "Row j is lost: by the time you read it, it has been overwritten. Keep a clone first."),
    (lambda x, i, j: _swapped(x.t(), i, j).t(), "You swapped columns: x[i] is row i, x[:, i] column i."),
    (lambda x, i, j: _swapped(x.clone(), i, j), "You cloned the whole matrix; only one row is in danger."),
    (_swap_two, "You cloned both rows; the second is safe once the first is."),
    (_swap_by_list, "A list as index copies both rows, and needs an index tensor on each side."),
    ],
    cases=[
        (torch.arange(20.0).view(4, 5), 0, 2),
        (torch.arange(12).view(3, 4), 2, 1),
        (torch.tensor([[1e9, 1.0], [1.0, 1e9], [2.0, 3.0]]), 0, 1),  # sums and differences of rows would round
    ],
    in_place=True,
    cost=allocated_bytes)


def _matmul_shape(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(torch.matmul(torch.empty(a, device="meta"), torch.empty(b, device="meta")).shape)


def _longer_batch(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    return a[:-2] if len(a) >= len(b) else b[:-2]


function("matmul_shape",
    _matmul_shape, [
    (lambda a, b: (*a[:-2], *b[:-2], a[-2], b[-1]),
     "You put the batch dimensions of both one after the other; they are aligned at the right and shared."),
    (lambda a, b: (*_matmul_shape(a, b)[-3::-1], a[-2], b[-1]),
     "Your batch dimensions are in reverse order: turn them round again."),
    (lambda a, b: (*a[:-2], a[-2], b[-1]),
     "You took the batch dimensions of the first alone; the second may have more."),
    (lambda a, b: (a[-2], b[-1]),
     "You left out the batch dimensions: only the last two are multiplied, the others stay."),
    (lambda a, b: (*_longer_batch(a, b), a[-2], b[-1]),
     "You took the batch of the longer shape; where it has a 1, the size of the other counts."),
    (lambda a, b: (*_matmul_shape(a, b)[:-2], b[-1], a[-2]),
     "Rows of the first, columns of the second: a[-2] and b[-1] remain, the inner two vanish."),
    (lambda a, b: (*_matmul_shape(a, b)[:-1], a[-1], b[-1]),
     "The inner dimension is summed over: it does not appear in the result."),
    ],
    cases=[
        ((2, 3), (3, 4)), ((4, 8, 16, 32), (32, 2)), ((3, 4), (6, 4, 2)), ((7, 2, 3), (1, 3, 5)),
        ((5, 1, 2, 3), (4, 3, 6)),
    ])
