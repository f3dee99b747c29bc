"""The exercises of notebook 02."""

import math
from collections.abc import Callable

import torch

from helpers.exercises.exercise import add, allocated_bytes

add(
    "permuted_stride",
    oracle=lambda: torch.empty(2, 3, 4, 5).permute(0, 2, 1, 3).stride(),
    mistakes={
        "Those are the strides of a fresh tensor of that shape: permute moves no data.": lambda: torch.empty(
            2, 4, 3, 5
        ).stride(),
        "Those are the strides before the permute: they move along with their dimensions.": lambda: torch.empty(
            2, 3, 4, 5
        ).stride(),
        "That is the new shape; the question asks for the stride.": lambda: (2, 4, 3, 5),
        "Those are bytes: a stride counts elements.": lambda: (240, 20, 80, 4),
        "You reversed all dimensions: permute(0, 2, 1, 3) swaps the two in the middle.": lambda: (1, 5, 20, 60),
    },
    hint="Write down the four strides before the permute; then put them in the order 0, 2, 1, 3.",
)

add(
    "offset_at",
    cases=(((2, 1), (4, 1), 0), ((1, 2, 3), (12, 4, 1), 5), ((3, 2), (1, 6), 1), ((5, 2), (0, 1), 4), ((), (), 7)),
    oracle=lambda index, stride, offset: offset + sum(i * s for i, s in zip(index, stride, strict=True)),
    mistakes={
        "You forgot the offset: a slice starts later on its storage.": lambda index, stride, offset: sum(
            i * s for i, s in zip(index, stride, strict=True)
        ),
        "You added index and stride: each index is multiplied by its stride.": lambda index, stride, offset: (
            offset + sum(index) + sum(stride)
        ),
        "You paired the indices with the strides in reverse order.": lambda index, stride, offset: (
            offset + sum(i * s for i, s in zip(index, reversed(stride), strict=True))
        ),
        "You took the last stride for 1: it counts like the others.": lambda index, stride, offset: (
            offset + sum(i * s for i, s in zip(index[:-1], stride[:-1], strict=True)) + sum(index[-1:])
        ),
        "That is in bytes of float32; the offset counts elements.": lambda index, stride, offset: (
            4 * (offset + sum(i * s for i, s in zip(index, stride, strict=True)))
        ),
    },
    hint="The offset plus index · stride, one product per dimension.",
)


def _index_at(offset: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    digits = []
    for size in reversed(shape):
        offset, digit = divmod(offset, size)
        digits.append(digit)
    return tuple(reversed(digits))


def _dense_strides(shape: tuple[int, ...]) -> list[int]:
    return [math.prod(shape[k + 1 :]) for k in range(len(shape))]


add(
    "index_at",
    cases=((7, (3, 4)), (23, (2, 3, 4)), (13, (2, 3, 4)), (0, (5,)), (1234, (10, 10, 20))),
    oracle=_index_at,
    mistakes={
        "Your first index runs fastest: in a contiguous tensor it is the last.": lambda offset, shape: tuple(
            reversed(_index_at(offset, shape[::-1]))
        ),
        "You collected the indices from the last to the first: turn them round.": lambda offset, shape: tuple(
            reversed(_index_at(offset, shape))
        ),
        "You divided by the strides but took no remainder: an index stays below its size.": lambda offset, shape: tuple(
            offset // stride for stride in _dense_strides(shape)
        ),
        "You took each remainder of the whole offset: divide by the stride first.": lambda offset, shape: tuple(
            offset % size for size in shape
        ),
    },
    hint="Like the digits of a number: divmod by the last size gives what is left and the last index; then go on.",
)


def _windows(x: torch.Tensor, size: int, short: int = 0, step: int = 0, offset: int | None = None) -> torch.Tensor:
    step = step or x.stride(0)
    return torch.as_strided(x, (len(x) - size + 1 - short, size), (step, step), offset)


add(
    "windows",
    cases=(
        (torch.arange(10.0), 3),
        (torch.arange(10), 10),
        (torch.arange(20.0)[4:12], 2),
        (torch.arange(24.0)[::2], 4),
        (torch.arange(12.0).view(3, 4)[:, 1], 2),
    ),
    oracle=lambda x, size: x.unfold(0, size, 1),
    mistakes={
        "One window too few: n elements have n − size + 1 windows.": lambda x, size: _windows(x, size, short=1),
        "You assumed that neighbours are one cell apart; a column or x[::2] has another x.stride(0).": (
            lambda x, size: _windows(x, size, step=1)
        ),
        "You started at the beginning of the storage: x may be a slice, which starts at x.storage_offset().": (
            lambda x, size: _windows(x, size, offset=0)
        ),
        "Each row is to be one window; yours are the columns.": lambda x, size: _windows(x, size).t(),
        "Those windows do not overlap: neighbouring windows start one element apart.": lambda x, size: x[
            : len(x) // size * size
        ].reshape(-1, size),
        "The windows are right, but copied, as by stack, clone or contiguous; two equal strides need no copy.": (
            lambda x, size: torch.stack([x[i : i + size] for i in range(len(x) - size + 1)])
        ),
        "An index tensor copies every window, and is itself in memory; two equal strides need neither.": (
            lambda x, size: x[torch.arange(len(x) - size + 1)[:, None] + torch.arange(size)]
        ),
    },
    hint="Try torch.as_strided(x, (count, size), (step, step)): the next window is as far away as the next number.",
    cost=allocated_bytes,
)


def _kinds(*swapped: int) -> Callable[[], tuple[str, ...]]:
    """View or copy for the ten expressions of the exercise, as torch has it; those at `swapped` answered wrongly."""

    def kinds() -> tuple[str, ...]:
        x = torch.zeros(4, 6)
        results = (
            x[1:3], x[[1, 2]], x.t(), x.t().reshape(24), x.reshape(2, 12),
            x.contiguous(), x.t().contiguous(), x.expand(3, 4, 6), x.repeat(3, 1, 1), x.to(torch.float32),
        )  # fmt: skip
        start = x.untyped_storage().data_ptr()
        views = [result.untyped_storage().data_ptr() == start for result in results]
        return tuple("view" if view != (k in swapped) else "copy" for k, view in enumerate(views, start=1))

    return kinds


add(
    "view_or_copy",
    oracle=_kinds(),
    mistakes={
        "A list as index always copies: torch does not look whether a stride could describe these rows.": _kinds(2),
        "That reshape must copy: it merges the dimensions of a transpose, and their strides do not allow it.": (
            _kinds(4)
        ),
        "That reshape copies only when it must; splitting and merging a contiguous tensor needs no copy.": _kinds(5),
        "Calling contiguous() on what is contiguous already returns the tensor itself.": _kinds(6),
        "A transpose has only its strides exchanged; no element moves.": _kinds(3),
        "The expand repeats with stride 0 and copies nothing; repeat is the one that copies.": _kinds(8, 9),
        "The repeat writes every repetition into new memory; expand is the one that does not.": _kinds(9),
        "Calling to() with the dtype and device that the tensor has already returns the tensor itself.": _kinds(10),
        "Two slips, both about contiguous(): it returns the tensor itself, unless the order must change.": _kinds(6, 7),
    },
    hint="Ask of each: can one offset and one stride per dimension describe the result on the old storage?",
)

add(
    "really_touched",
    oracle=lambda: 500 * 64 * 4,
    mistakes={
        "That is numel × element size: the 32 copies have stride 0 and are the same bytes.": lambda: 32 * 500 * 64 * 4,
        "That is the whole storage: a[::2] leaves out every other row.": lambda: 1000 * 64 * 4,
        "You took 2 byte per element: a float32 has 4.": lambda: 500 * 64 * 2,
        "That is a number of elements: each has 4 byte.": lambda: 500 * 64,
        "That is the stretch from the first byte to the last; the rows between are not touched.": lambda: 999 * 64 * 4,
        "Those are bits: a float32 has 4 byte.": lambda: 500 * 64 * 32,
    },
    hint="Which rows of the storage does a[::2] reach? Does expand reach any others?",
)


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


add(
    "fewest_dimensions",
    cases=(
        ((3, 4), (4, 1)),
        ((4, 3), (1, 4)),
        ((2, 3, 4), (12, 4, 1)),
        ((3, 2, 4), (4, 12, 1)),
        ((2, 3, 4), (24, 8, 2)),
        ((2, 3, 4), (24, 4, 1)),
        ((5, 3), (0, 1)),
        ((5, 5), (1, 5)),
        ((4, 5), (5, 2)),
        ((2, 2, 3), (0, 0, 1)),
    ),
    oracle=_fewest,
    mistakes={
        "One dimension would do for a contiguous tensor only: two neighbours merge if their strides fit.": (
            lambda shape, stride: 1
        ),
        "Not contiguous, and yet some neighbours may merge: look at each pair.": lambda shape, stride: (
            1 if list(stride) == _dense_strides(shape) else len(shape)
        ),
        "You multiplied by size[k]; a step must jump over the whole next dimension, so by size[k + 1].": (
            _count_runs(lambda shape, stride, k: stride[k] == shape[k] * stride[k + 1])
        ),
        "You compared stride[k] with size[k + 1] alone; multiply it by stride[k + 1].": _count_runs(
            lambda shape, stride, k: stride[k] == shape[k + 1]
        ),
        "A falling order of strides is not enough: there may be gaps between the rows.": _count_runs(
            lambda shape, stride, k: stride[k] > stride[k + 1]
        ),
        "You counted the pairs that merge; each of them leaves one dimension less.": lambda shape, stride: (
            len(shape) - _fewest(shape, stride)
        ),
    },
    hint="Start from all dimensions, and take one off for every pair with stride[k] = size[k + 1] · stride[k + 1].",
)


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
add(
    "prepare",
    cases=((_IMAGES.view(2, 16, 16, 3),), (_IMAGES[: 16 * 12 * 4].view(1, 16, 12, 4),)),
    oracle=_prepare,
    mistakes={
        "The contiguous() is left over: the steps after it work on any strides.": lambda images: _prepare(
            images, keep="contiguous"
        ),
        "The rows are still picked by a list, which copies them; a slice names the same rows.": lambda images: _prepare(
            images, keep="list"
        ),
        "The clone() is left over: nobody writes into these images.": lambda images: _prepare(images, keep="clone"),
        "Each image is written three times, by stack or repeat; expand shows it three times.": lambda images: _prepare(
            images, keep="stack"
        ),
        "Nothing is saved yet: contiguous, the list index, clone and stack copy, one after the other.": (
            lambda images: _prepare(images, keep="contiguous list clone stack")
        ),
        "Height and width are exchanged: the order is batch, channels, height, width.": lambda images: _prepare(
            images.transpose(1, 2)
        ),
        "The eight rows start at row 4: list(range(4, 12)) is the slice 4:12.": lambda images: _prepare(
            images, start=0
        ),
        "The three copies come first, before the batch: x.expand(3, *x.shape).": lambda images: _prepare(
            images, front=False
        ),
    },
    hint="You need permute, a slice for the list, a step without clone, the same reshape, and expand at the end.",
    cost=allocated_bytes,
)


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


add(
    "swap_rows",
    cases=(
        (torch.arange(20.0).view(4, 5), 0, 2),
        (torch.arange(12).view(3, 4), 2, 1),
        (torch.tensor([[1e9, 1.0], [1.0, 1e9], [2.0, 3.0]]), 0, 1),  # sums and differences of rows would round
    ),
    oracle=_swapped,
    mistakes={
        "Row i is lost: x[i] is a view, so what you kept changed together with x. Keep a clone of it.": _swap_lost,
        "Row j is lost: by the time you read it, it has been overwritten. Keep a clone first.": _swap_late,
        "You swapped columns: x[i] is row i, x[:, i] column i.": lambda x, i, j: _swapped(x.t(), i, j).t(),
        "You cloned the whole matrix; only one row is in danger.": lambda x, i, j: _swapped(x.clone(), i, j),
        "You cloned both rows; the second is safe once the first is.": _swap_two,
        "A list as index copies both rows, and needs an index tensor on each side.": _swap_by_list,
    },
    hint="Which of the three lines reads data that the line before has changed?",
    cost=allocated_bytes,
)


def _matmul_shape(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(torch.matmul(torch.empty(a, device="meta"), torch.empty(b, device="meta")).shape)


def _longer_batch(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    return a[:-2] if len(a) >= len(b) else b[:-2]


add(
    "matmul_shape",
    cases=(
        ((2, 3), (3, 4)),
        ((4, 8, 16, 32), (32, 2)),
        ((3, 4), (6, 4, 2)),
        ((7, 2, 3), (1, 3, 5)),
        ((5, 1, 2, 3), (4, 3, 6)),
    ),
    oracle=_matmul_shape,
    mistakes={
        "You put the batch dimensions of both one after the other; they are aligned at the right and shared.": (
            lambda a, b: (*a[:-2], *b[:-2], a[-2], b[-1])
        ),
        "Your batch dimensions are in reverse order: turn them round again.": lambda a, b: (
            *_matmul_shape(a, b)[-3::-1],
            a[-2],
            b[-1],
        ),
        "You took the batch dimensions of the first alone; the second may have more.": lambda a, b: (
            *a[:-2],
            a[-2],
            b[-1],
        ),
        "You left out the batch dimensions: only the last two are multiplied, the others stay.": lambda a, b: (
            a[-2],
            b[-1],
        ),
        "You took the batch of the longer shape; where it has a 1, the size of the other counts.": lambda a, b: (
            *_longer_batch(a, b),
            a[-2],
            b[-1],
        ),
        "Rows of the first, columns of the second: a[-2] and b[-1] remain, the inner two vanish.": lambda a, b: (
            *_matmul_shape(a, b)[:-2],
            b[-1],
            a[-2],
        ),
        "The inner dimension is summed over: it does not appear in the result.": lambda a, b: (
            *_matmul_shape(a, b)[:-1],
            a[-1],
            b[-1],
        ),
    },
    hint="The last two give (a[-2], b[-1]). Align the rest at the right; nothing or a 1 takes the other's size.",
)
