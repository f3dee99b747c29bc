"""Storage arithmetic against torch's own indexing and addresses."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from helpers import storage

DTYPES = [torch.complex128, torch.float64, torch.float32, torch.bfloat16, torch.float8_e5m2, torch.int32, torch.bool]


@st.composite
def strided(draw, max_dims=4):
    """Any strided tensor: zero, overlapping and large strides, an offset, no dimensions, no elements, any dtype."""
    shape = draw(st.lists(st.integers(0, 5), max_size=max_dims))
    stride = draw(st.lists(st.integers(0, 40), min_size=len(shape), max_size=len(shape)))
    offset = draw(st.integers(0, 7))
    span = sum((size - 1) * step for size, step in zip(shape, stride, strict=True)) if 0 not in shape else 0
    base = torch.zeros(offset + span + 1 + draw(st.integers(0, 5)), dtype=draw(st.sampled_from(DTYPES)))
    return torch.as_strided(base, shape, stride, offset)


ANY = strided()


def addresses(t):
    """The address of every element, from torch alone, by index."""
    return {index: t[index].data_ptr() for index in itertools.product(*map(range, t.shape))}


@given(ANY)
def test_the_index_law_gives_the_address_of_every_element(t):
    start = t.untyped_storage().data_ptr()
    for index, address in addresses(t).items():
        assert start + storage.offset_of(index, t) * t.element_size() == address
        negative = tuple(i - size for i, size in zip(index, t.shape, strict=True))
        assert storage.offset_of(negative, t) == storage.offset_of(index, t)


@given(ANY)
def test_touched_bytes_counts_distinct_bytes(t):
    taken = {start + byte for start in addresses(t).values() for byte in range(t.element_size())}
    assert storage.touched_bytes(t) == len(taken)


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 30)), max_size=5))
@example([(2, 2), (2, 3), (3, 5)])  # the third step is as long as the others together: the ends meet
@example([(4, 2), (9, 3)])  # many steps, each of them short
def test_distinct_offsets_against_enumeration(dims):
    cells = {
        sum(i * step for i, (_, step) in zip(index, dims, strict=True))
        for index in itertools.product(*(range(size) for size, _ in dims))
    }
    assert storage.distinct_offsets([size for size, _ in dims], [step for _, step in dims]) == len(cells)


@given(ANY)
def test_layout_is_torchs_own(t):
    found = storage.layout(t)
    assert (found.shape, found.stride, found.offset) == (tuple(t.shape), t.stride(), t.storage_offset())
    assert (found.itemsize, found.storage_bytes) == (t.element_size(), t.untyped_storage().nbytes())
    assert found.contiguous == t.is_contiguous()


@pytest.mark.parametrize(
    ("shape", "stride", "expected"),
    [
        ((40_000, 30_000), (1, 40_000), 1_200_000_000),
        ((10**6, 16, 64), (64, 64, 1), (10**6 + 15) * 64),  # windows of rows
        ((1000, 10**6, 16), (2 * 10**6, 1, 1), 1000 * (10**6 + 15)),  # windows in batches
        ((10**6, 10**6), (2, 3), 5 * (10**6 - 1) + 1 - 2),
    ],
)
def test_large_tensors_are_counted_at_once(shape, stride, expected):
    assert storage.distinct_offsets(shape, stride) == expected  # a billion steps would take minutes


def test_same_storage_sees_through_views():
    x = torch.arange(24.0).view(2, 3, 4)
    views = [x, x[1], x[1, 2, 3], x.mT, x.expand(5, 2, 3, 4), x.view(torch.int32), x[2:], x.detach(), x.flatten()[20:]]
    for a, b in itertools.product(views, views):
        assert storage.same_storage(a, b)


@pytest.mark.parametrize(
    "copy",
    [
        lambda x: x.clone(),
        lambda x: x.mT.reshape(-1),
        lambda x: x[[0, 1]],
        lambda x: x + 0,
        lambda x: torch.empty(0),
        lambda x: x.mT.contiguous(),
    ],
)
def test_a_copy_has_a_storage_of_its_own(copy):
    x = torch.arange(24.0).view(2, 3, 4)
    copied = copy(x)
    assert not storage.same_storage(x, copied) and not storage.same_storage(copied, x)


def test_two_wrappers_of_one_memory_are_one_storage():
    numbers = np.zeros(6)
    assert storage.same_storage(torch.from_numpy(numbers), torch.from_numpy(numbers[:3]))


@pytest.mark.parametrize(
    "function", [storage.layout, storage.touched_bytes, lambda t: storage.same_storage(torch.zeros(2), t)]
)
@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: torch.empty(2, 2, device="meta"), ValueError, r"^a meta tensor has no storage, .* needs none$"),
        (lambda: torch.eye(2).to_sparse(), ValueError, r"layout torch.sparse_coo .* use \.to_dense\(\)"),
        (
            lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
            ValueError,
            r"a nested tensor .* \.unbind",
        ),
        (lambda: torch.nested.nested_tensor([torch.ones(2)], layout=torch.jagged), ValueError, r"^a nested tensor is"),
        (lambda: np.zeros(2), TypeError, "expected a tensor, got ndarray"),
    ],
)
def test_what_has_no_storage_is_refused(function, make, error, words):
    with pytest.raises(error, match=words):
        function(make())


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: storage.offset_of((0,), x), IndexError, r"shape \(3, 4\) takes 2 indices, got 1"),
        (lambda x: storage.offset_of((3, 0), x), IndexError, "index 3 is outside a dimension of size 3"),
        (lambda x: storage.offset_of((0, -5), x), IndexError, "index -5 is outside a dimension of size 4"),
        (lambda x: storage.offset_of((0.5, 0), x), TypeError, "integer"),
        (lambda x: storage.distinct_offsets(x.shape, (1,)), ValueError, "one stride per dimension is needed"),
        (lambda x: storage.distinct_offsets((3,), (-1,)), ValueError, "no negative sizes or strides"),
    ],
)
def test_what_torch_refuses_is_refused(call, error, words):
    with pytest.raises(error, match=words):
        call(torch.zeros(3, 4))
