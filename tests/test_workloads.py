"""The formulas of the workloads against the counted ops, and that each can be run."""

import pytest
import torch

from helpers import counting
from helpers.workloads import gelu, workloads

SMALL = workloads(torch.float32, rows=128, sizes=(16, 64))


@pytest.mark.parametrize("work", SMALL, ids=lambda work: work.name)
def test_formulas_agree_with_the_count(work):
    cost = counting.count(work.make("cpu"))
    # Of attention the formula has the matmuls alone.
    assert work.flops == pytest.approx(cost.flops, rel=0.08 if work.name == "attention" else 0)
    assert work.bytes == (cost.bytes_eager if "eager" in work.name else cost.bytes_ideal)
    assert not cost.uncounted
    assert work.intensity == work.flops / work.bytes
    assert all(1 <= dimension <= 128**2 for shape in work.shapes for dimension in shape)


def test_the_ops_of_the_design_are_there():
    names = [work.name for work in SMALL]
    for name in ("ReLU", "GELU, eager", "GELU, fused", "softmax", "layer norm", "dot", "matrix-vector", "attention"):
        assert names.count(name) == 1
    assert "MLP step" in names and "matmul 16" in names and "matmul 64" in names


def test_gelu_is_gelu():
    x = torch.linspace(-4, 4, 101)
    torch.testing.assert_close(gelu(x), torch.nn.functional.gelu(x, approximate="tanh"))


def test_halving_the_itemsize_halves_the_bytes():
    for wide, narrow in zip(SMALL, workloads("bfloat16", rows=128, sizes=(16, 64)), strict=True):
        assert (wide.flops, wide.bytes) == (narrow.flops, 2 * narrow.bytes)
        assert narrow.dtype == "bfloat16"


@pytest.mark.parametrize("dtype", ["int8", "bool", "float8_e4m3fn", "nonsense", None, torch.int32])
def test_what_is_no_dtype_for_this_is_refused(dtype):
    with pytest.raises(ValueError, match=r"no workloads in .*: give a floating-point dtype"):
        workloads(dtype)


def test_too_few_rows_are_refused():
    with pytest.raises(ValueError, match="at least 64 rows, got 8"):
        workloads("float32", rows=8)
