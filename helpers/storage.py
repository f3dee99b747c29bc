"""Where the elements of a tensor are: the index law, shared storages and the bytes of a view."""

import math
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, SupportsIndex

import torch


@dataclass(frozen=True)
class Layout:
    """How a tensor lies in its storage. Stride and offset count elements; itemsize and storage_bytes count bytes."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    itemsize: int
    storage_bytes: int
    contiguous: bool


def layout(t: torch.Tensor) -> Layout:
    """The shape, stride and offset of a tensor, the size of an element, and the size of the whole storage.

    >>> layout(torch.zeros(3, 4)[1:].t())
    Layout(shape=(4, 2), stride=(1, 4), offset=4, itemsize=4, storage_bytes=48, contiguous=False)

    Raises TypeError for anything but a tensor, ValueError for a meta, sparse or nested tensor, which has no strided
    storage.
    """
    storage = _storage(t)
    offset = int(t.storage_offset())
    return Layout(tuple(t.shape), t.stride(), offset, t.element_size(), storage.nbytes(), t.is_contiguous())


def offset_of(index: SupportsIndex | Sequence[SupportsIndex], t: torch.Tensor) -> int:
    """Where in the storage the element `t[index]` is, counted in elements: offset + Σ index · stride.

    >>> offset_of((2, 1), torch.zeros(3, 4))
    9
    >>> offset_of((1, 2), torch.zeros(3, 4).t())  # the same element, seen through the transpose
    9

    One index per dimension, where negative ones count from the end; `()` for a tensor without dimensions.
    Raises IndexError for an index that the tensor does not have, and what `layout` raises.
    """
    where = layout(t)
    indices = tuple(index) if isinstance(index, Sequence) else (index,)
    if len(indices) != len(where.shape):
        raise IndexError(f"shape {where.shape} takes {len(where.shape)} indices, got {len(indices)}: {index}")
    position = where.offset
    for i, size, stride in zip(map(operator.index, indices), where.shape, where.stride, strict=True):
        if not -size <= i < size:
            raise IndexError(f"index {i} is outside a dimension of size {size} (shape {where.shape}, index {index})")
        position += i % size * stride
    return position


def same_storage(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors are views of one storage, so that a change in one can show in the other.

    >>> x = torch.zeros(3, 4)
    >>> same_storage(x, x[1].t()), same_storage(x, x.clone())
    (True, False)
    >>> same_storage(torch.empty(0), torch.empty(0))  # both start at address 0
    False

    Two halves of one storage share it, although no element is in both. Raises what `layout` raises.
    """
    first, second = _storage(a), _storage(b)
    if first is second:
        return True
    # Two wrappers of one memory, as from NumPy, are two storage objects that start at one address.
    one_address = first.data_ptr() == second.data_ptr() and first.device == second.device
    return one_address and min(first.nbytes(), second.nbytes()) > 0


def touched_bytes(t: torch.Tensor) -> int:
    """The number of distinct bytes that the elements of a tensor occupy; what several elements share counts once.

    >>> touched_bytes(torch.zeros(3, 4)), touched_bytes(torch.zeros(3, 4)[:, ::2])
    (48, 24)
    >>> touched_bytes(torch.zeros(4).expand(1000, 4)), touched_bytes(torch.zeros(10).unfold(0, 3, 1))
    (16, 40)

    Exact, and fast for large tensors too. Raises what `layout` raises.
    """
    where = layout(t)
    return where.itemsize * distinct_offsets(where.shape, where.stride)


def distinct_offsets(shape: Sequence[int], stride: Sequence[int]) -> int:
    """How many places in the storage a tensor of this shape and stride touches. It needs neither of the two.

    >>> distinct_offsets((8, 3), (1, 1))  # eight windows of three neighbours
    10

    Raises ValueError for negative numbers or different lengths.
    """
    _require_strided(shape, stride)
    if 0 in shape:
        return 0
    moving = [(step, size) for size, step in zip(shape, stride, strict=True) if size > 1 and step > 0]
    steps = _merged(sorted(moving))
    count = 1
    # A step longer than everything below it makes copies that cannot touch each other.
    while steps and steps[-1][0] > sum(step * (size - 1) for step, size in steps[:-1]):
        count *= steps.pop()[1]
    unit = math.gcd(*(step for step, _ in steps))
    return count * _marked(steps, unit).bit_count()  # what is left overlaps in no simple way


def _merged(steps: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same places from fewer (step, size) pairs, given by rising step: rows that meet or overlap become one.

    >>> _merged([(1, 4), (4, 3), (20, 2)])  # three rows of four, and the same again
    [(1, 12), (20, 2)]
    """
    found: list[tuple[int, int]] = []
    for step, size in steps:
        for i, (fine, length) in enumerate(found):
            if step % fine == 0 and step // fine <= length:
                found[i] = (fine, length + step // fine * (size - 1))
                break
        else:
            found.append((step, size))
    return found


def _marked(steps: Iterable[tuple[int, int]], unit: int = 1) -> int:
    """The places that (step, size) pairs reach from 0, counted in units, as the bits of one integer.

    >>> bin(_marked([(1, 2), (4, 3)]))
    '0b1100110011'
    """
    places = 1
    for step, size in steps:
        done = 1
        while done < size:  # doubling the copies
            more = min(done, size - done)
            places |= places << (more * (step // unit))
            done += more
    return places


def _require_strided(shape: Sequence[int], stride: Sequence[int]) -> None:
    if len(shape) != len(stride):
        raise ValueError(f"one stride per dimension is needed: shape {tuple(shape)}, stride {tuple(stride)}")
    if any(number < 0 for number in (*shape, *stride)):
        raise ValueError(f"torch has no negative sizes or strides: shape {tuple(shape)}, stride {tuple(stride)}")


def _storage(t: Any) -> torch.UntypedStorage:
    if not isinstance(t, torch.Tensor):
        raise TypeError(f"expected a tensor, got {type(t).__name__}")
    if t.is_nested:
        raise ValueError("a nested tensor is several tensors of different shapes; use .unbind() and take one of them")
    if t.layout != torch.strided:
        raise ValueError(f"a tensor of layout {t.layout} is several tensors, without one storage; use .to_dense()")
    storage = t.untyped_storage()
    if storage.device.type == "meta":
        raise ValueError("a meta tensor has no storage, only a shape; distinct_offsets(shape, stride) needs none")
    return storage
