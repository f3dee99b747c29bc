"""The count over PyTorch's own operator database: no crash, no changed result, nothing silently zero."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from helpers import flops
from helpers.counting import Cost, count

SAMPLES, GRADIENT_SAMPLES = 2, 1
# For these PyTorch itself takes another algorithm as soon as any dispatch mode is active: it computes the vectors,
# too, and the values differ in the last bit.
CHANGED_BY_ANY_MODE = ("norm.nuc", "linalg.cond", "linalg.eigvalsh", "linalg.svdvals")

# What no rule covers: factorisations, sorting and selecting (the work depends on the algorithm or on the data), Fourier
# transforms, complex and sparse numbers, and a few kernels that PyTorch does not decompose.
UNCOUNTED = flops.names("""
    _adaptive_avg_pool2d_backward _adaptive_avg_pool3d _ctc_loss _ctc_loss_backward _embedding_bag_backward
    _embedding_bag_per_sample_weights_backward _fft_c2c _fft_c2r _fft_r2c _histogramdd_bin_edges
    _histogramdd_from_bin_cts _histogramdd_from_bin_tensors _linalg_det _linalg_eigh _linalg_slogdet
    _linalg_solve_ex _linalg_svd _segment_reduce_backward _sparse_mm_reduce_impl _sparse_mm_reduce_impl_backward
    _to_sparse _unique2 _upsample_bilinear2d_aa _upsample_bilinear2d_aa_backward abs adaptive_max_pool2d
    adaptive_max_pool3d avg_pool2d_backward avg_pool3d_backward bucketize cholesky div_ fractional_max_pool2d
    fractional_max_pool3d geqrf grid_sampler_2d_backward grid_sampler_3d grid_sampler_3d_backward
    hardshrink_backward hash_tensor histc histogram isin kthvalue linalg_cholesky_ex linalg_eig
    linalg_householder_product linalg_inv_ex linalg_ldl_factor_ex linalg_ldl_solve linalg_lstsq linalg_lu
    linalg_lu_factor_ex linalg_lu_solve linalg_matrix_exp linalg_matrix_sqrth linalg_pinv linalg_polar linalg_qr
    linalg_solve_triangular linspace logcumsumexp lu_unpack masked_scatter_backward median mm mode mul mul_
    multi_margin_loss_backward multilabel_margin_loss_backward multinomial nanmedian ormqr rrelu_with_noise
    segment_reduce sgn softshrink_backward sort sparse_mask sparse_sampled_addmm sub sum topk
    torch_nn._linear_cross_entropy_batch_chunked torch_nn._linear_cross_entropy_batch_chunked_no_reduction
    triangular_solve unique_consecutive upsample_bicubic2d_backward upsample_bilinear2d_backward
    upsample_linear1d_backward upsample_trilinear3d_backward
""")
pytestmark = pytest.mark.filterwarnings("ignore")


class Log(TorchDispatchMode):
    """What is dispatched, written down without any rule: name, elements in, elements out, whether memory is shared."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, int, int, bool]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        inputs = [t for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor)]
        out = func(*args, **(kwargs or {}))
        results = [t for t in tree_leaves(out) if isinstance(t, Tensor)]
        strided = all(t.layout is torch.strided for t in inputs + results)
        held = {t.untyped_storage()._cdata for t in inputs} if strided else set()
        alias = strided and not func._schema.is_mutable and any(t.untyped_storage()._cdata in held for t in results)
        self.calls.append((func, *(ts[0].numel() if ts else 0 for ts in (inputs, results)), alias))
        return out


def copied(tree: Any, device: str | None = None) -> Any:
    def leaf(value: Any) -> Any:
        if isinstance(value, Tensor):
            fresh = value.detach().to(device) if device else value.detach().clone()
            return fresh.requires_grad_(value.requires_grad)
        return torch.device(device) if device and isinstance(value, torch.device) else value

    return tree_map(leaf, tree)


def samples(op: Any, number: int, grad: bool = False) -> list[Any]:
    torch.default_generator.manual_seed(0)
    # Not op.sample_inputs: it looks for a unittest in the source of every caller, which takes half of the sweep.
    return list(itertools.islice(op.sample_inputs_func(op, "cpu", torch.float32, grad), number))


def outcome(run: Callable[[], Any]) -> tuple[Any, Any]:
    """What it returns, and the state of the random numbers after it; None if it does not run at all."""
    torch.default_generator.manual_seed(1)
    try:
        return run(), torch.get_rng_state()
    except Exception:
        return None, None


def same(a: Any, b: Any) -> bool:
    def equal(x: Any, y: Any) -> bool:
        if not isinstance(x, Tensor):
            return not isinstance(y, Tensor)
        if x.layout is not torch.strided:
            x, y = x.to_dense(), y.to_dense()
        if x.dtype is torch.complex32:
            x, y = x.to(torch.complex64), y.to(torch.complex64)
        return x.shape == y.shape and x.dtype == y.dtype and torch.equal(torch.nan_to_num(x), torch.nan_to_num(y))

    first, second = tree_leaves(a), tree_leaves(b)
    return len(first) == len(second) and all(map(equal, first, second))


def counted(run: Callable[[], Any]) -> tuple[Cost, Any, Any]:
    kept: list[Any] = []
    torch.default_generator.manual_seed(1)
    cost = count(lambda: kept.append(run()) or kept[0])
    return cost, kept[0], torch.get_rng_state()


def silent(cost: Cost, log: Log) -> set[str]:
    """Launched ops that cost nothing, are not listed, and are not known to be free."""
    rows, free = {row.op for row in cost.ops}, {row.op for row in cost.ops if row.counted and row.flops == 0}
    combining = flops.REDUCTIONS | flops.SCANS | flops.ACCUMULATES.keys()
    found = set()
    for func, before, after, shares in log.calls:
        op = flops.Op(func)
        known = op.is_view or op.is_composite or op.name in flops.MOVES | flops.EMPTY or op.name.endswith("_copy")
        # Nothing to do: no elements; or nothing is combined, as in the sum of one number.
        idle = before == 0 or after == 0 or (before == after and ("pool" in op.name or op.name in combining))
        if not (known or shares or idle) and (op.label in free or op.label not in rows):
            found.add(op.label)
    return found


def forward(op: Any, sample: Any, device: str | None = None) -> Callable[[], Any]:
    """A fresh copy of the inputs, to be used once."""
    x, args, kwargs = copied((sample.input, sample.args, sample.kwargs), device)
    return lambda: op.op(x, *args, **kwargs)


def gradients(op: Any, sample: Any) -> Callable[[], Any]:
    x, args, kwargs = copied((sample.input, sample.args, sample.kwargs))
    inputs = [t for t in tree_leaves((x, args, kwargs)) if isinstance(t, Tensor) and t.requires_grad]

    def run() -> Any:
        outputs = [t for t in tree_leaves(op.op(x, *args, **kwargs)) if isinstance(t, Tensor) and t.requires_grad]
        sums = [t.abs().sum() if t.is_complex() else t.sum() for t in outputs]
        return torch.autograd.grad(sums, inputs, allow_unused=True) if sums else ()

    return run


def agrees_on_meta(op: Any, sample: Any, cost: Cost) -> bool:
    """Whether meta gives the same numbers; so it does where the op does not run there, or launches other ops."""
    if outcome(forward(op, sample, "meta"))[1] is None:
        return True
    meta, _, _ = counted(forward(op, sample, "meta"))
    if [(row.op, row.shapes, row.calls) for row in meta.ops] != [(row.op, row.shapes, row.calls) for row in cost.ops]:
        return True
    # The kernels for the CPU return some unused statistics empty, the rules for meta do not.
    extra = "batch_norm" in op.name or "embedding_bag" in op.name
    return meta.flops == cost.flops and (extra or meta.bytes_eager == cost.bytes_eager)


def ops() -> dict[str, Any]:
    """The ops of the database by name; late, since nothing else takes as long to import."""
    from torch.testing._internal.common_methods_invocations import op_db

    named = {op.name + (f".{op.variant_test_name}" if op.variant_test_name else ""): op for op in op_db}
    return {name: op for name, op in named.items() if torch.float32 in op.supported_dtypes("cpu")}


def swept(name: str, op: Any, backward: bool) -> set[str]:
    """Count an op, and check the count and that it changed nothing; the ops that no rule covers."""
    uncounted, fresh = set(), gradients if backward else forward
    for i, sample in enumerate(samples(op, GRADIENT_SAMPLES if backward else SAMPLES, backward)):
        plain, state = outcome(fresh(op, sample))
        if state is None:
            continue
        cost, result, counted_state = counted(fresh(op, sample))
        assert torch.equal(state, counted_state)
        run, log = fresh(op, sample), Log()
        with log:
            watched, _ = outcome(run)
        if "empty" not in name and "resize" not in name:  # whose result is what the memory held
            assert same(watched if name in CHANGED_BY_ANY_MODE and not backward else plain, result)
        assert backward or silent(cost, log) == set()
        assert backward or i > 0 or agrees_on_meta(op, sample, cost)
        uncounted |= set(cost.uncounted)
    return uncounted


@pytest.fixture(scope="module")
def found() -> dict[str, set[str]]:
    """The ops that no rule covers, by what was swept."""
    return {}


@pytest.mark.parametrize("backward", [False, True], ids=["forward", "gradients"])
def test_every_op_is_counted_or_named_and_runs_as_it_would(
    subtests: pytest.Subtests, found: dict[str, set[str]], backward: bool
) -> None:
    uncounted = found[f"{backward=}"] = set()
    for name, op in ops().items():
        if op.supports_autograd or not backward:
            with subtests.test(op=name):
                uncounted |= swept(name, op, backward)
    assert len(uncounted) > 40
    lost = uncounted - UNCOUNTED
    assert not lost, f"a rule is lost, or torch has new ops: {' '.join(sorted(lost))}"


def test_what_is_counted_by_now_is_not_listed(found: dict[str, set[str]]) -> None:
    if len(found) < 2:
        pytest.skip("both sweeps above tell")
    counted = UNCOUNTED.difference(*found.values())
    stale = {name for name in counted if hasattr(torch.ops.aten, name)}  # others are those of another release
    assert not stale, f"take out of UNCOUNTED: {' '.join(sorted(stale))}"
