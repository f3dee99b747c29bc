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


def test_sizes_by_hand():
    """Shapes, FLOPs, bytes moved and bytes held of 64 rows in float64: attention of 16 tokens, an MLP of 4 examples."""
    n = 64 * 64
    heads, examples, inside, outside = (1, 8, 16, 64), (4, 8), (8, 32), (32, 8)
    product = 8 * 16 * 64  # the numbers of one of attention's four tensors
    step = 10 * 4 * 8 * 32 + 2 * 4 * 32 + 4 * 8 - 1
    assert {
        work.name: (work.shapes, work.flops, work.bytes // 8, work.memory // 8)
        for work in workloads(torch.float64, rows=64, sizes=(16,))
    } == {
        "ReLU": (((64, 64),), n, 2 * n, 2 * n),
        "GELU, fused": (((64, 64),), 9 * n, 2 * n, 2 * n),
        "GELU, eager": (((64, 64),), 8 * n, 18 * n, 4 * n),
        "softmax": (((64, 64),), 5 * n - 128, 2 * n, 2 * n),
        "layer norm": (((64, 64),), 6 * n + 128, 2 * n, 2 * n),
        "dot": (((n,), (n,)), 2 * n, 2 * n + 1, 2 * n + 1),
        "matrix-vector": (((64, 64), (64,)), 2 * n, n + 128, n + 128),
        "matmul 16": (((16, 16), (16, 16)), 2 * 16**3, 3 * 256, 3 * 256),
        "attention": ((heads,) * 3, 4 * 8 * 16 * 16 * 64, 4 * product, 4 * product),
        "MLP step": ((examples, inside, outside), step, 4 * 8 + 4 * 8 * 32, 4 * 8 * 32 + 4 * 4 * 32),
    }


def test_what_is_run_where_nothing_else_is_asked_for():
    names = [work.name for work in workloads()]
    assert [name for name in names if name.startswith("matmul")] == [f"matmul {2**p}" for p in range(6, 11)]
    assert workloads()[0].shapes == ((2048, 2048),) and workloads()[0].dtype == "float32"


@pytest.mark.parametrize("work", SMALL, ids=lambda work: work.name)
def test_inputs_are_written_and_the_op_is_that_of_the_name(work):
    made = []
    with pytest.MonkeyPatch.context() as patch:
        rand = torch.rand
        patch.setattr(torch, "rand", lambda *shape, **where: made.append(rand(*shape, **where)) or made[-1])
        run = work.make("cpu")
    assert tuple(tuple(t.shape) for t in made) == work.shapes and all(t.any() for t in made)
    first, *rest = made
    expected = {
        "ReLU": lambda: first.clamp(min=0),
        "GELU, fused": lambda: torch.nn.functional.gelu(first, approximate="tanh"),
        "GELU, eager": lambda: torch.nn.functional.gelu(first, approximate="tanh"),
        "softmax": lambda: first.exp() / first.exp().sum(1, keepdim=True),
        "layer norm": lambda: (first - first.mean(1, keepdim=True)) / (first.var(1, False, keepdim=True) + 1e-5).sqrt(),
        "dot": lambda: (first * rest[0]).sum(),
        "matrix-vector": lambda: (first * rest[0]).sum(1),
        "attention": lambda: (first @ rest[0].mT / 8).softmax(-1) @ rest[1],
    }
    if work.name == "MLP step":
        weights = [t.clone().requires_grad_() for t in rest]
        (first @ weights[0]).relu().matmul(weights[1]).sum().backward()
        torch.testing.assert_close(run(), tuple(t.grad for t in weights))
    else:
        torch.testing.assert_close(run(), expected.get(work.name, lambda: first @ rest[0])())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_an_op_runs_in_the_dtype_and_on_the_device_that_were_asked_for(dtype):
    for work in workloads(dtype, rows=64, sizes=(16,)):
        for out in torch.utils._pytree.tree_leaves(work.make("meta")()):
            assert (out.dtype, out.device.type) == (dtype, "meta")


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
    with pytest.raises(ValueError, match="at least 64 rows, got 63"):
        workloads("float32", rows=63)
