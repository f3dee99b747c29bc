"""Counts against closed forms, hand derivations, FlopCounterMode and XLA; and what a count must leave alone."""

import functools
import gc
import math
import subprocess
import sys
import weakref

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch._C import DispatchKey
from torch._ops import HigherOrderOperator
from torch.utils.flop_counter import FlopCounterMode, register_flop_formula

from helpers.counting import Cost, OpCost, count
from helpers.flops import RULES

side = st.integers(1, 9)
ITEM = 4  # bytes of a float32


def randn(*shape: int, grad: bool = False, device: str = "cpu") -> Tensor:
    return torch.randn(*shape, device=device, requires_grad=grad)


def flops(fn, *args, **kwargs) -> float:
    cost = count(fn, *args, **kwargs)
    assert not cost.uncounted
    return cost.flops


def by_op(cost: Cost) -> dict[str, float]:
    found: dict[str, float] = {}
    for row in cost.ops:
        found[row.op] = found.get(row.op, 0) + row.flops
    return found


def their_flops(fn) -> int:
    with FlopCounterMode(display=False) as mode:
        fn()
    return mode.get_total_flops()


# ---- Products


@settings(deadline=None)
@given(side, side, side)
def test_a_product_costs_2mnk_and_exactly_one_addition_less_per_output(m: int, k: int, n: int) -> None:
    a, b = randn(m, k), randn(k, n)
    products = additions = 0
    for _ in range(m * n):
        products += k
        additions += k - 1
    assert flops(torch.matmul, a, b) == 2 * m * n * k
    assert flops(torch.matmul, a, b, exact=True) == products + additions


@settings(deadline=None)
@given(side, side, side)
def test_batches_vectors_and_einsum_follow_the_same_law(b: int, m: int, k: int) -> None:
    assert flops(torch.matmul, randn(b, 1, m, k), randn(3, k, 2)) == 2 * (b * 3) * m * k * 2
    assert flops(torch.mv, randn(m, k), randn(k)) == 2 * m * k
    assert flops(torch.dot, randn(k), randn(k)) == 2 * k
    for dot in (torch.dot, torch.vdot):
        assert flops(dot, randn(k), randn(k)) == 2 * k
        assert flops(dot, randn(k), randn(k), exact=True) == 2 * k - 1
    assert flops(torch.einsum, "bmk,bkn->bmn", randn(b, m, k + 1), randn(b, k + 1, 2)) == 2 * b * m * (k + 1) * 2
    assert flops(torch.addbmm, randn(m, 2), randn(b, m, k), randn(b, k, 2), exact=True) == m * 2 * 2 * b * k


@settings(deadline=None)
@given(side, side, side)
def test_a_linear_layer_is_a_product_and_a_bias_in_either_spelling(b: int, d: int, k: int) -> None:
    x, w, bias = randn(b, d), randn(k, d), randn(k)
    assert flops(F.linear, x, w) == 2 * b * d * k
    assert flops(F.linear, x, w, bias) == flops(lambda: x @ w.T + bias) == 2 * b * d * k + b * k
    assert flops(torch.addmm, bias, x, w.T, beta=0) == 2 * b * d * k
    assert flops(torch.addmm, bias, x, w.T, alpha=3, beta=2) == 2 * b * d * k + 3 * b * k


def test_the_backward_costs_twice_the_forward_but_not_for_the_first_layer() -> None:
    b, d, k = 8, 16, 32
    x, w1, w2 = randn(b, d), randn(d, d, grad=True), randn(d, k, grad=True)

    def step() -> None:
        y = x @ w1 @ w2
        y.backward(torch.ones_like(y))

    forward = 2 * b * d * d + 2 * b * d * k
    backward = 2 * b * d * d + 2 * (2 * b * d * k)  # no gradient of x
    assert flops(step) == forward + backward
    x.requires_grad_()
    w1.grad = w2.grad = None
    assert flops(step) == 3 * forward


def test_the_lectures_two_layer_net() -> None:
    b, d = 16384, 1024 // 16  # narrower here; the first weight's gradient costs 2·B·D·D, not 4
    x, w1, w2 = (t.to("meta") for t in (randn(b, d), randn(d, d), randn(d, 1)))
    w1.requires_grad_()
    w2.requires_grad_()
    cost = count(lambda: (x @ w1 @ w2).backward(torch.ones(b, 1, device="meta")))
    backward = cost.flops - 2 * b * d * d - 2 * b * d
    assert backward == 2 * b * d * d + 4 * b * d


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("transposed", [False, True])
def test_convolution(groups: int, transposed: bool) -> None:
    n, c_in, c_out, size, kernel = 2, 4, 6, 9, 3
    layer = (nn.ConvTranspose2d if transposed else nn.Conv2d)(c_in, c_out, kernel, groups=groups)
    x = randn(n, c_in, size, size, grad=True)
    out_size = size + kernel - 1 if transposed else size - kernel + 1
    positions = size if transposed else out_size
    product = 2 * n * positions**2 * kernel**2 * c_in * c_out // groups
    bias = n * c_out * out_size**2
    cost = by_op(count(lambda: layer(x).backward(torch.ones(n, c_out, out_size, out_size))))
    assert cost["convolution"] == product + bias
    assert cost["convolution_backward"] == 2 * product + bias - c_out  # input, weight; the bias sums n·H·W numbers
    assert flops(layer, x, exact=True) == product  # the bias is the addition that a product saves
    x.grad = layer.weight.grad = layer.bias.grad = None
    exact = by_op(count(lambda: layer(x).backward(torch.ones(n, c_out, out_size, out_size)), exact=True))
    assert exact["convolution_backward"] == cost["convolution_backward"] - x.numel() - layer.weight.numel()


def test_convolution_backward_of_the_first_layer() -> None:
    layer, x = nn.Conv2d(3, 4, 3, bias=False), randn(1, 3, 8, 8)
    cost = by_op(count(lambda: layer(x).sum().backward()))
    assert cost["convolution"] == cost["convolution_backward"] == 2 * 36 * 9 * 3 * 4


# ---- Elementwise, reductions, moves


@pytest.mark.parametrize(
    ("fn", "each"),
    [
        (torch.exp, 1), (torch.tanh, 1), (torch.sqrt, 1), (torch.erf, 1), (F.relu, 1), (lambda x: x > 0, 1),
        (lambda x: 2 * x + 1, 2), (lambda x: x.add_(1), 1), (lambda x: torch.add(x, x, alpha=2), 2),
        (lambda x: x.clamp(-1, 1), 2), (lambda x: x.clamp(min=0), 1), (torch.sigmoid, 4), (F.silu, 5),
        (lambda x: torch.addcmul(x, x, x, value=0.5), 3), (lambda x: x.to(torch.int32) // 2, None),
        (F.gelu, 5), (functools.partial(F.gelu, approximate="tanh"), 9), (F.leaky_relu, 2),
    ],
)  # fmt: skip
def test_elementwise(fn, each: int | None) -> None:
    x = randn(3, 7)
    got = flops(fn, x) / x.numel()
    assert got == each if each else got > 0


@pytest.mark.parametrize(
    ("name", "each", "more"),
    [("addcmul", 3, 2), ("xlogy", 4, 1), ("logit", 5, 0), ("frac", 2, 0), ("heaviside", 4, 1), ("sigmoid", 4, 0)],
)
def test_it_costs_the_same_in_place_and_into_a_tensor(name: str, each: int, more: int) -> None:
    x, rest, op = torch.rand(3, 7), [torch.rand(3, 7) for _ in range(more)], getattr(torch.ops.aten, name)
    assert flops(op, x, *rest) == flops(op, x, *rest, out=torch.empty(3, 7)) == each * 21
    assert flops(getattr(torch.ops.aten, f"{name}_"), x, *rest) == each * 21


def test_a_normalization_into_three_tensors_costs_what_it_costs_without_them() -> None:
    x, w, b = randn(6, 5), randn(5), randn(5)
    into = dict(zip(("out", "save_mean", "save_invstd"), (torch.empty(n) for n in (0, 0, 0)), strict=True))
    norm = torch.ops.aten._native_batch_norm_legit
    assert flops(norm.no_stats_out, x, w, b, True, 0.1, 1e-5, **into) == flops(norm.no_stats, x, w, b, True, 0.1, 1e-5)


def test_of_nothing_nothing_is_computed() -> None:
    for fn in (lambda x: x.clamp(0, 1), lambda x: torch.equal(x, x), torch.sigmoid):
        assert flops(fn, randn(0)) == 0


def test_broadcasting_counts_outputs() -> None:
    assert flops(torch.add, randn(5, 1), randn(1, 7)) == 35


@pytest.mark.parametrize(
    "fn",
    [torch.sum, torch.amax, torch.max, torch.argmax, torch.prod, torch.all, lambda x: x.sum((0, 1))],
)
def test_a_reduction_to_one_number_costs_one_less_than_the_numbers(fn) -> None:
    assert flops(fn, randn(6, 7)) == 41


def test_reductions_along_a_dimension() -> None:
    x = randn(6, 7)
    assert flops(lambda: x.sum(1)) == 6 * 6
    assert flops(lambda: x.max(0)) == 5 * 7
    assert flops(lambda: x.mean(1)) == 6 * 7  # a division per row
    assert flops(lambda: x.var(1)) == 6 * 4 * 7  # mean, subtract, square, mean
    assert flops(lambda: x.std(1)) == 6 * 4 * 7 + 6  # and a root per row
    assert flops(torch.std_mean, x, 1) == 6 * 4 * 7 + 6
    assert flops(lambda: x.cumsum(1)) == 6 * 6
    assert flops(lambda: x.norm()) == 42 + 41 + 1
    assert flops(torch.sum, randn(0, 3)) == 0


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x.clone(), lambda x: x.to(torch.float64), lambda x: x.t().contiguous(), lambda x: torch.cat([x, x]),
        lambda x: x[x.new_zeros(2, dtype=torch.long)], lambda x: torch.where(x.bool(), x, 0), lambda x: x.tril(),
        lambda x: x.masked_fill(x.bool(), 0), lambda x: F.pad(x, (1, 1)), torch.rand_like, lambda x: x.normal_(),
        lambda x: F.embedding(torch.tensor([1, 0]), x), lambda x: x.zero_(), lambda x: x.flip(0),
    ],
)  # fmt: skip
def test_moving_is_free_and_known_to_be(fn) -> None:
    cost = count(fn, randn(4, 4))
    assert (cost.flops, cost.uncounted) == (0, {})
    assert cost.bytes_eager > 0


def test_pooling() -> None:
    x = randn(2, 3, 8, 8, grad=True)
    outputs = 2 * 3 * 4 * 4
    assert flops(F.max_pool2d, x, 2) == outputs * 3
    assert flops(F.avg_pool2d, x, 2) == outputs * 4  # 3 additions and a division
    assert flops(F.adaptive_avg_pool2d, x, 4) == outputs * 4
    reads = (3 + 4 + 3) ** 2  # windows of 8 to 3: 0-2, 2-5, 5-7
    assert flops(F.adaptive_avg_pool2d, x, 3) == 6 * reads
    assert flops(F.adaptive_max_pool2d, x, 3) == 6 * (reads - 9)
    assert flops(F.max_pool2d, x, [2]) == outputs * 3  # one number stands for all sides
    assert flops(F.avg_pool2d, x, [2]) == outputs * 4


def windows(size: int, n: int) -> int:
    """How many of so many numbers n adaptive windows read together."""
    return sum(math.ceil((i + 1) * size / n) - math.floor(i * size / n) for i in range(n))


@pytest.mark.parametrize(("d", "n"), [(2, 3), (2, 5), (3, 3), (3, 2)])
def test_adaptive_pooling_reads_overlapping_windows(d: int, n: int) -> None:
    x = randn(2, 3, *(7, 8, 5)[:d], grad=True)
    reads, outputs = 6 * math.prod(windows(size, n) for size in (7, 8, 5)[:d]), 6 * n**d
    largest, mean = (getattr(F, f"adaptive_{kind}_pool{d}d") for kind in ("max", "avg"))
    assert flops(largest, x, n) == reads - outputs
    assert flops(mean, x, n) == reads
    cost = by_op(count(lambda: mean(x, n).backward(torch.ones(2, 3, *[n] * d))))
    assert cost[f"_adaptive_avg_pool{d}d_backward"] == reads + outputs
    cost = by_op(count(lambda: largest(x, n).backward(torch.ones(2, 3, *[n] * d))))
    assert cost[f"adaptive_max_pool{d}d_backward"] > 0


@pytest.mark.parametrize("d", [2, 3])
def test_pooling_by_windows_of_any_shape(d: int) -> None:
    x, kernel = randn(2, 3, *[6] * d, grad=True), (2, 3, 1)[:d]
    outputs = 6 * math.prod(6 // k for k in kernel)
    largest, mean = (getattr(F, f"{kind}_pool{d}d") for kind in ("max", "avg"))
    assert flops(largest, x, kernel) == outputs * (math.prod(kernel) - 1)
    assert flops(mean, x, kernel) == outputs * math.prod(kernel)
    grad = torch.ones(2, 3, *(6 // k for k in kernel))
    cost = by_op(count(lambda: mean(x, kernel).backward(grad)))
    assert cost[f"avg_pool{d}d_backward"] == outputs * (math.prod(kernel) + 1)
    cost = by_op(count(lambda: largest(x, kernel).backward(grad)))
    assert cost[f"max_pool{d}d_with_indices_backward"] == outputs  # added where they belong
    fractional = getattr(F, f"fractional_max_pool{d}d")
    cost = by_op(count(lambda: fractional(x, 2, output_size=3).backward(torch.ones(2, 3, *[3] * d))))
    assert cost[f"fractional_max_pool{d}d_backward"] == 6 * 3**d


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize(
    ("mode", "op"), [("nearest", "upsample_nearest"), ("nearest-exact", "_upsample_nearest_exact")]
)
def test_the_gradient_of_a_repeated_number_is_a_sum(d: int, mode: str, op: str) -> None:
    x = randn(2, 3, *[4] * d, grad=True)
    cost = by_op(count(lambda: F.interpolate(x, scale_factor=2, mode=mode).backward(torch.ones(2, 3, *[8] * d))))
    assert cost[f"{op}{d}d_backward"] == 6 * 8**d  # every number of the larger image is added to one of the smaller


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize(("mode", "op"), [("reflect", "reflection_pad"), ("replicate", "replication_pad")])
def test_the_gradient_of_a_padded_edge_is_added_to_it(d: int, mode: str, op: str) -> None:
    x = randn(2, 3, *[4] * d, grad=True)
    cost = by_op(count(lambda: F.pad(x, (1, 1) * d, mode=mode).backward(torch.ones(2, 3, *[6] * d))))
    assert cost[f"{op}{d}d_backward"] == 6 * 6**d


@pytest.mark.parametrize("name", ["hardshrink", "softshrink"])
def test_the_gradient_of_a_shrinkage_asks_for_both_edges(name: str) -> None:
    x = randn(20, grad=True)
    cost = by_op(count(lambda: getattr(F, name)(x).backward(torch.ones(20))))
    assert cost[f"{name}_backward"] == 3 * 20  # two comparisons and an and


@pytest.mark.parametrize(("alpha", "beta", "more"), [(1, 1, 1), (2, 1, 2), (1, 0, 0), (1, 3, 2), (2, 0, 1), (2, 3, 3)])
def test_products_with_something_added(alpha: float, beta: float, more: int) -> None:
    """One more addition per output; and a product each where alpha and beta are no 1."""
    a, b, vector, stack = randn(4, 5), randn(5, 6), randn(5), randn(3, 4, 5)
    scaled = {"alpha": alpha, "beta": beta}
    assert flops(torch.addmm, randn(4, 6), a, b, **scaled) == 24 * (10 + more)
    assert flops(torch.addmv, randn(4), a, vector, **scaled) == 4 * (10 + more)
    assert flops(torch.baddbmm, randn(3, 4, 6), stack, randn(3, 5, 6), **scaled) == 72 * (10 + more)
    assert flops(torch.addbmm, randn(4, 6), stack, randn(3, 5, 6), **scaled) == 24 * (3 * 10 + more)
    assert flops(torch.addmm, randn(4, 6), a, b, exact=True, **scaled) == 24 * (9 + more)
    assert flops(torch.bmm, stack, randn(3, 5, 6), exact=True) == 72 * 9


def test_products_of_eight_bit_numbers() -> None:
    a, b = (torch.empty(*shape, dtype=torch.float8_e4m3fn, device="meta") for shape in ((16, 32), (48, 32)))
    scale = torch.empty((), device="meta")
    scaled = functools.partial(torch._scaled_mm, a, b.T, scale, scale, out_dtype=torch.bfloat16)
    assert flops(scaled) == 16 * 48 * 2 * 32
    assert flops(scaled, exact=True) == 16 * 48 * (2 * 32 - 1)
    ints = torch.ones(32, 16, dtype=torch.int8)
    assert flops(torch._int_mm, ints, ints.T, exact=True) == 32 * 32 * (2 * 16 - 1)


def test_scans_cost_one_less_than_the_numbers_of_each_row() -> None:
    x = randn(4, 6)
    for scan in (torch.cumsum, torch.cumprod, torch.cummax, torch.cummin):
        assert flops(scan, x, 1) == 4 * 5
        assert flops(scan, x, -2) == 3 * 6
        assert flops(scan, torch.tensor(1.0), 0) == 0
        assert flops(scan, randn(3, 0), 1) == 0
    assert flops(torch.cumsum, x, 1, prices={"cumsum": 7}) == 7 * 20


def test_a_convolution_in_one_and_three_dimensions_with_strides() -> None:
    assert flops(F.conv1d, randn(2, 3, 11), randn(5, 3, 4), stride=2) == 2 * (2 * 4) * 5 * 3 * 4
    assert flops(F.conv3d, randn(1, 2, 5, 5, 5), randn(3, 2, 2, 2, 2)) == 2 * 4**3 * 3 * 2 * 8
    x, w, b = randn(2, 3, 8, 8), randn(4, 3, 3, 3), randn(4)
    assert flops(F.conv2d, x, w, exact=True) == 2 * 4 * 36 * (2 * 27 - 1)
    assert flops(F.conv2d, x, w, b) == 2 * 4 * 36 * (2 * 27 + 1)
    older = [(1, 1), (0, 0), (1, 1), False, (0, 0), 1, False, False, True, True]
    assert flops(torch._convolution, x, w, b, *older) == 2 * 4 * 36 * (2 * 27 + 1)


def test_fourier_transforms() -> None:
    real, z = randn(3, 4, 8), torch.randn(3, 4, 8, dtype=torch.complex64)
    assert flops(torch.fft.fft2, z) == 5 * 96 * 5  # 5 N log₂ N with N = 32, three of them
    assert flops(torch.fft.rfft, real) == 2.5 * 96 * 3
    assert flops(torch.fft.irfft, z, n=8) == 2.5 * 96 * 3
    assert flops(torch.fft.fft, z, dim=1) == 5 * 96 * 2
    assert flops(torch.fft.fft, z[..., :1]) == 0


@pytest.mark.filterwarnings("ignore:index_reduce")
@pytest.mark.filterwarnings("ignore:The reduce argument of torch.scatter")  # deprecated, and still to be counted
def test_scatters_add_what_they_bring() -> None:
    index, source = torch.tensor([0, 0, 1]), randn(3)
    assert flops(torch.zeros(4).index_add_, 0, index, source) == 3
    assert flops(torch.zeros(4).scatter_add_, 0, index, source) == 3
    assert flops(torch.zeros(4).scatter_, 0, index, source) == 0
    assert flops(lambda: torch.zeros(4).scatter_(0, index, source, reduce="add")) == 3
    assert flops(lambda: torch.zeros(4).index_put_((index,), source, accumulate=True)) == 3
    assert flops(lambda: torch.zeros(4).index_put_((index,), source)) == 0
    for reduce, more in (("sum", 0), ("amax", 0), ("mean", 4)):  # one division each
        assert flops(torch.zeros(4).scatter_reduce_, 0, index, source, reduce) == 3 + more
    assert flops(torch.zeros(4).index_reduce_, 0, index, source, "mean") == 3 + 4
    assert flops(torch.zeros(4).put_, index, source, accumulate=True) == 3
    assert flops(torch.zeros(4).put_, index, source) == 0
    weight, tokens = randn(10, 4, grad=True), torch.tensor([[1, 2, 2]])
    cost = by_op(count(lambda: F.embedding(tokens, weight).backward(torch.ones(1, 3, 4))))
    assert cost["embedding"] == 0
    assert cost["embedding_dense_backward"] >= 3 * 4


def test_complex_numbers_count_their_real_operations() -> None:
    z = torch.ones(4, 5, dtype=torch.complex64)
    assert flops(torch.add, z, z) == 2 * 20
    assert flops(torch.mul, z, z) == 6 * 20
    assert flops(torch.mul, z, 2.0) == 2 * 20
    assert flops(torch.matmul, z, z.T) == 8 * 4 * 4 * 5
    assert flops(torch.matmul, z, z.T, exact=True) == (8 * 5 - 2) * 4 * 4
    assert flops(torch.sub, z, z) == flops(torch.rsub, z, z) == flops(torch.neg, z) == 2 * 20
    assert flops(torch.abs, z) == 4 * 20
    assert flops(torch.sum, z) == 2 * 19
    assert flops(torch.cumsum, z, 1) == 2 * 16
    assert flops(torch.mul, z, torch.ones(4, 5)) == 2 * 20
    assert flops(torch.mul, z, 2j) == 6 * 20
    assert flops(torch.add, z, z, alpha=2) == (2 + 2) * 20
    assert flops(torch.add, z, z, alpha=2j) == (2 + 6) * 20
    assert flops(torch.vdot, z[0], z[0]) == 8 * 5
    assert flops(torch.vdot, z[0], z[0], exact=True) == 8 * 5 - 2
    assert count(F.silu, z).uncounted == {"silu": 1}  # some of its parts are known, and not all
    assert count(torch.prod, z).uncounted == {"prod": 1}
    assert flops(torch.sum, randn(20), dtype=torch.complex64) == 2 * 19
    for unknown in (torch.tanh, torch.all):
        cost = count(unknown, z)
        assert (cost.flops, cost.uncounted) == (0, {unknown.__name__: 1})
    assert flops(torch.fft.fft, z[0]) == round(5 * 5 * math.log2(5))
    assert flops(torch.fft.rfft, randn(3, 64)) == 3 * 2.5 * 64 * 6


# ---- Composite functions, counted by hand from their definitions


def test_softmax_norms_and_losses() -> None:
    rows, n = 6, 10
    x, w, b = randn(rows, n), randn(n), randn(n)
    # maximum n − 1, subtract n, exp n, sum n − 1, divide n
    assert flops(F.softmax, x, -1) == rows * (5 * n - 2)
    # ... log of the sum instead of the division, one more subtraction
    assert flops(F.log_softmax, x, -1) == rows * (5 * n - 1)
    # variance 4n (with the mean), eps, rsqrt, subtract n, scale n, weight n, bias n
    assert flops(F.layer_norm, x, (n,), w, b) == rows * (8 * n + 2)
    target = torch.arange(rows)
    loss = by_op(count(F.cross_entropy, x, target))
    assert loss["_log_softmax"] == rows * (5 * n - 1)
    assert 0 < loss["nll_loss_forward"] < 10 * rows
    assert flops(F.mse_loss, x, torch.zeros(rows, n)) == rows * n * 3


def test_prices_reach_into_composites_and_replace_them() -> None:
    x = randn(8)
    gelu = functools.partial(F.gelu, approximate="tanh")
    assert flops(gelu, x, prices={"tanh": 12}) == 20 * 8  # 8 elementary operations and a tanh
    assert flops(gelu, x, prices={"gelu": 14}) == 14 * 8
    assert flops(torch.exp, x, prices={"exp": 0}) == 0
    assert flops(torch.sum, x, prices={"sum": 3}) == 3 * 7
    assert flops(torch.where, x > 0, x, x, prices={"where": 1}) == 8
    assert flops(torch.Tensor.exp_, x, prices={"exp": 2.5}) == 20
    assert flops(F.softmax, x, -1, prices={"exp": 10}) == 5 * 8 - 2 + 9 * 8


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("grouped", [False, True])
def test_fused_attention_counts_its_products_and_its_softmax(causal: bool, grouped: bool) -> None:
    b, h, t, d = 2, 4, 32, 16
    q = randn(b, h, t, d, grad=True)
    k, v = (randn(b, 1 if grouped else h, t, d, grad=True) for _ in range(2))

    def step() -> None:
        out = F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=grouped)
        out.backward(torch.ones_like(out))

    cost = count(step)
    assert not cost.uncounted
    product, scores = 2 * b * h * t * t * d, b * h * t * t
    forward = next(row.flops for row in cost.ops if row.op == "_scaled_dot_product_flash_attention_for_cpu")
    backward = next(row.flops for row in cost.ops if row.op.endswith("for_cpu_backward"))
    # Two products; a causal mask is not discounted. The rest is a softmax, scaling, masking.
    assert 2 * product + 4 * scores < forward < 2 * product + 12 * scores
    # Five products, one of them the scores again; scaling, exponential, derivative of the softmax.
    assert 5 * product + 4 * scores < backward < 5 * product + 8 * scores


def test_fused_attention_costs_no_more_than_the_same_in_steps() -> None:
    q = randn(2, 4, 32, 16)
    steps = flops(lambda: ((q @ q.mT) * 0.25).softmax(-1) @ q)
    assert steps == 2 * 2 * 8 * 32 * 32 * 16 + 8 * 32 * (32 + 5 * 32 - 2)
    assert flops(F.scaled_dot_product_attention, q, q, q) == pytest.approx(steps, rel=0.03)
    on_meta = flops(F.scaled_dot_product_attention, *[q.to("meta")] * 3)  # there it is not fused
    assert on_meta == pytest.approx(steps, rel=0.05)


def test_the_attention_of_a_gpu_counts_what_is_added_to_the_scores() -> None:
    q, bias = torch.empty(2, 4, 32, 16, device="meta"), torch.empty(2, 4, 32, 32, device="meta")
    scores, product = 2 * 4 * 32 * 32, 2 * 2 * 4 * 32 * 32 * 16
    forward = torch.ops.aten._scaled_dot_product_efficient_attention
    plain = flops(forward, q, q, q, None, True)
    assert 2 * product + 4 * scores < plain < 2 * product + 8 * scores
    assert flops(forward, q, q, q, bias, True) == plain + scores
    out, logsumexp, seed, offset = forward(q, q, q, None, True)

    def backward(added: Tensor | None) -> float:
        rest = (out, logsumexp, seed, offset, 0.0, [True, True, True, added is not None])
        return flops(torch.ops.aten._scaled_dot_product_efficient_attention_backward, out, q, q, q, added, *rest)

    assert 5 * product + 4 * scores < backward(None) < 5 * product + 8 * scores
    assert backward(bias) == backward(None) + scores


@pytest.mark.parametrize("kind", ["flash", "efficient", "cudnn", "fused"])
def test_every_fused_attention_costs_the_same_and_a_causal_mask_is_added_to_the_scores(kind: str) -> None:
    q = torch.empty(2, 4, 32, 16, device="meta")
    scores, product = 2 * 4 * 32 * 32, 2 * 2 * 4 * 32 * 32 * 16
    name = f"_scaled_dot_product_{kind}_attention" + "_overrideable" * (kind == "fused")
    some = {"flash": [], "efficient": [None, True], "cudnn": [None, True], "fused": [None]}[kind]
    plain, causal = (flops(getattr(torch.ops.aten, name), q, q, q, *some, 0.0, only) for only in (False, True))
    # Queries and keys are scaled apart. A softmax of n scores takes 5n − 2, and 2n − 1 to see whether all are masked.
    assert plain == 2 * product + 2 * q.numel() + 2 * 4 * 32 * ((5 * 32 - 2) + (2 * 32 - 1))
    assert causal == plain + scores
    pairs = q[:, :2]  # as many heads of keys as there are samples
    assert flops(getattr(torch.ops.aten, name), q, pairs, pairs, *some, 0.0, False) == plain


@pytest.mark.parametrize("samples", [2, 4])
def test_grouped_attention_costs_that_of_as_many_keys_as_queries(samples: int) -> None:
    def cost(heads: int, mask: Tensor | None = None) -> list[float]:  # as wide as there are heads of keys
        q, *pair = (randn(samples, h, 8, 2, grad=True) for h in (4, heads, heads))

        def step() -> None:
            out = F.scaled_dot_product_attention(q, *pair, mask, enable_gqa=heads != 4)
            out.backward(torch.ones_like(out))

        return [row.flops for row in count(step).ops if row.op.startswith("_scaled")]

    assert cost(4) == cost(2) == cost(1)
    scores = samples * 4 * 8 * 8
    assert cost(4, torch.zeros(8, 8)) == [each + scores for each in cost(4)]


def test_recurrent_networks() -> None:
    t, b, d = 5, 2, 8
    lstm = nn.LSTM(d, d).requires_grad_(False)
    products = 2 * t * b * 4 * d * (d + d)
    # Four gates: two biases, one sum of both products. Three sigmoids and two tanh; then f·c + i·g, and o·tanh(c).
    rest = t * b * d * (4 * (2 + 1) + 3 * 4 + 2 + 3 + 1)
    assert flops(lstm, randn(t, b, d)) == products + rest
    plain = nn.LSTM(d, d, bias=False).requires_grad_(False)
    assert flops(plain, randn(t, b, d)) == products + rest - t * b * 4 * d * 2
    both = nn.LSTM(d, d, bidirectional=True).requires_grad_(False)
    assert flops(both, randn(t, b, d)) == 2 * (products + rest)
    assert count(nn.GRU(d, d), randn(t, b, d)).uncounted == {}


def test_optimizers_count_alike_one_by_one_and_foreach() -> None:
    def update(foreach: bool) -> float:
        p = randn(10, 10, grad=True)
        p.grad = torch.ones_like(p)
        return flops(torch.optim.AdamW([p], foreach=foreach).step)

    assert update(True) == pytest.approx(update(False), rel=0.01)
    p = randn(100, grad=True)
    p.grad = torch.ones_like(p)
    assert flops(torch.optim.SGD([p], lr=0.1).step) == 2 * 100


# ---- Three independent counts

# XLA's HLO cost analysis, `jax.jit(f).lower(*args).cost_analysis()` on the CPU, jax and jaxlib 0.10.2, taken on
# 2026-11-21: "flops" plus "transcendentals" (XLA keeps exp, tanh, rsqrt, log apart), for float32 of these shapes.
X = (64, 32)
XLA = [
    ("matmul", torch.matmul, (X, (32, 128)), 524288),
    ("matmul, batched", torch.matmul, ((8, *X), (32, 128)), 4194304),
    ("bmm", torch.bmm, ((8, *X), (8, 32, 128)), 4194304),
    ("matrix-vector", torch.mv, (X, (32,)), 4096),
    ("dot", torch.dot, ((1024,), (1024,)), 2048),
    ("linear with bias", F.linear, (X, (128, 32), (128,)), 532480),
    ("add", torch.add, (X, X), 2048),
    ("relu", torch.relu, (X,), 2048),
    ("sigmoid", torch.sigmoid, (X,), 6144 + 2048),
    ("gelu, tanh", functools.partial(F.gelu, approximate="tanh"), (X,), 16384 + 2048),
    ("sum", lambda x: x.sum(-1), (X,), 1984),
    ("max", lambda x: x.amax(-1), (X,), 1984),
    ("conv 3x3, valid", F.conv2d, ((2, 3, 16, 16), (8, 3, 3, 3)), 169344),
    ("average pool", lambda x: F.avg_pool2d(x, 2), ((2, 3, 16, 16),), 1536),
    ("max pool", lambda x: F.max_pool2d(x, 2), ((2, 3, 16, 16),), 1152),
    ("MLP with sum", lambda x, v, w: ((x @ v).relu() @ w).sum(), (X, (32, 128), (128, 16)), 795647),
]


@pytest.mark.parametrize(("fn", "shapes", "theirs"), [row[1:] for row in XLA], ids=[row[0] for row in XLA])
def test_xla_agrees(fn, shapes: tuple, theirs: int) -> None:
    assert flops(fn, *(randn(*shape) for shape in shapes)) == theirs


def test_where_xla_differs_and_why() -> None:
    x = randn(*X)
    # jax guards the maximum against −inf: one more comparison per row.
    assert flops(F.softmax, x, -1) == 8128 + 2048 - 64
    # The layer norm as jax code subtracts the mean once; PyTorch's decomposition once for the variance and once more.
    assert flops(F.layer_norm, x, (32,), randn(32), randn(32)) == 14400 + 64 + 64 * 32
    # XLA leaves padding out.
    same = 2 * 8 * 16 * 16 * 27 * 2
    assert flops(F.conv2d, randn(2, 3, 16, 16), randn(8, 3, 3, 3), padding=1) == same > 203136
    # XLA expands erf into its polynomial, 66 operations an element; here erf is one function with a price.
    assert flops(F.gelu, x, prices={"erf": 63}) == pytest.approx(135168 + 2048, rel=0.01)
    # Gradients: the products are the same; jax masks the ReLU's gradient in more steps.
    w1, w2 = randn(32, 128, grad=True), randn(128, 16, grad=True)
    assert flops(lambda: ((x @ w1).relu() @ w2).sum().backward()) == 1893375 - 5 * 64 * 128


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_flop_counter_mode_agrees_on_the_products(device: str) -> None:
    x = randn(2, 3, 8, 8, device=device)
    model = nn.Sequential(
        nn.Conv2d(3, 6, 3, bias=False), nn.Flatten(), nn.Linear(216, 32, bias=False), nn.Linear(32, 4, bias=False)
    ).to(device)

    def step() -> None:
        out = model(x)
        out.backward(torch.ones_like(out))

    assert flops(step) == their_flops(step)


def test_what_flop_counter_mode_misses() -> None:
    x, v, q = randn(64, 64), randn(64), randn(1, 1, 64, 64)
    layer = nn.Linear(64, 64)
    for fn in (
        lambda: x.exp(), lambda: v @ v, lambda: x @ v, lambda: x.softmax(-1), lambda: F.layer_norm(x, (64,)),
        lambda: F.scaled_dot_product_attention(q, q, q),
    ):  # fmt: skip
        assert their_flops(fn) == 0 < flops(fn)
    assert flops(layer, x) - their_flops(lambda: layer(x)) == 64 * 64  # the bias


def test_flop_counter_mode_overcounts_the_weight_gradient_of_a_grouped_convolution() -> None:
    layer, x = nn.Conv2d(4, 4, 3, groups=4, bias=False), randn(1, 4, 5, 5)
    once = 2 * 3 * 3 * 9 * 4
    assert flops(layer, x) == their_flops(lambda: layer(x)) == once
    step = lambda: layer(x).backward(torch.ones(1, 4, 3, 3))  # noqa: E731
    assert flops(step) == 2 * once
    assert their_flops(step) == once + 4 * once


class Decoder(nn.Module):
    """One pre-norm transformer layer without biases."""

    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        self.heads, self.norms = heads, nn.ModuleList(nn.LayerNorm(d) for _ in range(2))
        self.qkv, self.proj = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d, bias=False)
        self.up, self.down = nn.Linear(d, 4 * d, bias=False), nn.Linear(4 * d, d, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        b, t, d = x.shape
        q, k, v = self.qkv(self.norms[0](x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = (q @ k.mT).softmax(-1)
        x = x + self.proj((scores @ v).transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.norms[1](x))))


def test_a_transformer_layer_against_closed_form_and_flop_counter_mode() -> None:
    b, t, d, h = 2, 16, 32, 4
    layer, x = Decoder(d, h), randn(b, t, d)
    products = 2 * b * t * 12 * d * d + 4 * b * t * t * d
    rest = (
        2 * b * t * (8 * d + 2)  # norms
        + b * h * t * (5 * t - 2)  # softmax
        + b * t * 4 * d * 5  # GELU
        + 2 * b * t * d  # residuals
    )
    assert their_flops(lambda: layer(x)) == products
    assert flops(layer, x) == products + rest


# ---- Bytes


def moved(fn, *args) -> tuple[int, int]:
    cost = count(fn, *args)
    return cost.bytes_eager / ITEM, cost.bytes_ideal / ITEM


def test_an_op_reads_its_inputs_and_writes_its_outputs_once() -> None:
    x, y = randn(8, 4), randn(8, 4)
    assert moved(torch.add, x, y) == (96, 96)
    assert moved(torch.add, x, x) == (64, 64)
    assert moved(torch.matmul, x, y.T) == (128, 128)
    assert moved(lambda: x.sum()) == (33, 33)
    assert moved(F.softmax, x, -1) == (64, 64)  # one kernel, whatever its arithmetic
    assert moved(lambda: x.bool()) == (32 + 8, 32 + 8)


def test_views_move_nothing() -> None:
    x = randn(4, 6)
    assert count(lambda: x.t()[1:]) == Cost()
    assert count(lambda: x.view(24)[None, ::2].unflatten(1, (3, 4)).movedim(0, 1).detach()) == Cost()
    assert moved(lambda: x.t().reshape(4, 6)) == (48, 48)  # this one is a copy


def test_a_view_counts_what_it_touches() -> None:
    x = randn(10, 10)
    assert moved(lambda: x[:, :3].clone()) == (60, 60)
    assert moved(lambda: x[2:4] + 1) == (40, 40)
    assert moved(lambda: randn(7).expand(5, 7) + 1)[0] == 7 + 7 + 35  # randn writes, the sum reads 7
    assert moved(lambda: x[:1, :1].expand(4, 4) * 2) == (17, 17)
    assert moved(lambda: x.as_strided((9, 2), (1, 1)) + 0) == (10 + 18, 28)  # windows of 2 over 10 numbers
    assert moved(lambda: x.view(100).unfold(0, 4, 2) + 0) == (100 + 49 * 4, 296)
    image = x[None, None]
    assert moved(lambda: image.unfold(2, 3, 1).unfold(3, 3, 1) + 0) == (100 + 64 * 9, 676)


def test_two_views_of_one_storage_in_one_op() -> None:
    x = randn(10)
    assert moved(lambda: x[:8] + x[2:]) == (10 + 8, 18)
    assert moved(lambda: x[::2] * x[1::2]) == (10 + 5, 15)
    # The same shapes again, sharing in another way: not the same call.
    assert moved(lambda: (x[:8] + x[2:], x[:8] + x[:8], x[:8] + randn(8)))[0] == (10 + 8) + (8 + 8) + (8 + 16 + 8)
    assert moved(lambda: (x[:1].expand(8) + 0, x[:8] + 0))[0] == (1 + 8) + (8 + 8)  # the same shapes, other strides
    a, b = randn(6, 8).chunk(2, dim=1)
    assert moved(torch.add, a, b) == (48 + 24, 72)
    big = torch.empty(2048, 3 * 12288, device="meta")
    q, k, v = big.chunk(3, dim=1)
    assert moved(lambda: torch.stack([q, k, v])) == (2 * big.numel(), 2 * big.numel())


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_touched_bytes_against_a_set_of_addresses(data: st.DataObject) -> None:
    def view() -> tuple[list[int], list[int], int]:
        dims = data.draw(st.integers(0, 3))
        shape = data.draw(st.lists(st.integers(0, 4), min_size=dims, max_size=dims))
        stride = data.draw(st.lists(st.integers(0, 9), min_size=dims, max_size=dims))
        return shape, stride, data.draw(st.integers(0, 5))

    base, views = randn(100), [view() for _ in range(data.draw(st.integers(1, 3)))]
    addresses = torch.arange(100)
    expected = {i for v in views for i in addresses.as_strided(*v).flatten().tolist()}
    tensors = [base.as_strided(*v) for v in views]
    outputs = sum(t.numel() for t in tensors)
    assert count(lambda: torch.cat([t.flatten() for t in tensors])).bytes_ideal / ITEM == len(expected) + outputs
    meta = torch.empty(100, device="meta")
    both = count(lambda: [meta.as_strided(*v) + 1 for v in views])
    assert both.bytes_ideal / ITEM == len(expected) + outputs


def test_progressions_that_meet_again_count_once() -> None:
    x = randn(20)
    # 0 2 5 7 and the same from 7 on: 7 comes up twice, though each step is longer than the one before.
    assert moved(lambda: x.as_strided((2, 2, 2), (2, 5, 7)) + 0) == (7 + 8, 15)
    # Bytes 0–3, 6–9, 12–15 and the same from 15 on, which comes up twice.
    places = torch.zeros(31, dtype=torch.uint8).as_strided((2, 3, 4), (15, 6, 1))
    assert count(lambda: places + 0).bytes_eager == 23 + 24


@pytest.mark.parametrize(("far", "distinct"), [(2**24 - 2, 5 + 2), (2**24 - 1, 4 + 4 + 2)])
def test_far_apart_regions_are_exact_up_to_a_span_and_bounded_beyond(far: int, distinct: int) -> None:
    x = torch.empty(2**25, device="meta")
    views = [x[8:12], x[9:13], x[8 + far : 10 + far]]
    assert moved(torch.cat, views) == (distinct + 10, distinct + 10)
    # Four numbers at a time reach four times as far, wherever they start. A dimension of size 1 adds no place.
    x = torch.empty(2**26, device="meta")
    rows = [x.as_strided((1, 8), (9, 1), 9), x[None, 9:13], x[None, 9 + 3 * 2**24 : 13 + 3 * 2**24]]
    assert moved(torch.cat, rows, 1) == (12 + 16, 12 + 16)
    # Beyond, the number that both have counts twice.
    assert moved(torch.cat, [x[:: 2**25], x[:2]]) == (4 + 4, 4 + 4)
    # The bound is never more than the span itself.
    long = [x[8 : 8 + far], x[9 : 12 + far]]
    assert moved(torch.cat, long)[0] == far + 4 + (2 * far + 3)


def test_touched_bytes_do_not_depend_on_the_default_device() -> None:
    with torch.device("meta"):
        assert moved(lambda: torch.empty(10).as_strided((9, 2), (1, 1)) + 0)[0] == 10 + 18
        assert moved(lambda: torch.empty(20).as_strided((2, 2, 2), (2, 5, 7)) + 0)[0] == 7 + 8


def test_in_place_reads_and_writes() -> None:
    x, y = randn(8), randn(8)
    assert moved(lambda: x.add_(1)) == (16, 16)
    assert moved(lambda: x.add_(y)) == (24, 24)
    assert moved(lambda: x.zero_()) == (8, 8)
    assert moved(torch.zeros_like, x) == moved(x.new_ones, (8,)) == (8, 8)  # of x only the shape is read
    assert moved(lambda: x.copy_(y)) == (16, 16)
    assert moved(lambda: x.uniform_()) == (8, 8)
    assert moved(lambda: torch.add(x, y, out=x)) == (24, 24)
    assert moved(lambda: torch.exp(y, out=x)) == (16, 16)
    assert moved(lambda: x[:4].mul_(2)) == (8, 8)


def test_indexing_touches_no_more_than_it_returns() -> None:
    table, index = randn(1000, 4), torch.tensor([3, 5, 5])
    assert moved(lambda: F.embedding(index, table)) == (12 + 6 + 12, 30)
    assert moved(lambda: table[index]) == (30, 30)
    small = randn(2, 4)
    with torch.no_grad():  # three rows of a table of two: the table, once
        assert moved(lambda: small[torch.tensor([0, 1, 1])].sum() + small[torch.tensor([1])].sum())[1] == 8 + 6 + 2 + 1
    assert moved(lambda: table.index_copy_(0, index[:2], randn(2, 4)))[0] == 8 + (8 + 4 + 8)
    assert moved(lambda: table.index_put_((index[:2],), torch.zeros(())))[0] == 1 + (1 + 4 + 8)
    assert moved(lambda: table.index_add_(0, index[:2], randn(2, 4)))[0] == 8 + (8 + 4 + 8 + 8)
    assert moved(lambda: table.scatter_(0, index[:2, None], randn(2, 1)))[0] == 2 + (2 + 4 + 2)
    assert moved(lambda: table.scatter_add_(0, index[:2, None], randn(2, 1)))[0] == 2 + (2 + 4 + 2 + 2)


def test_indexed_reads_and_writes_of_one_tensor_add_up() -> None:
    table, index, rows = randn(1000, 4), torch.tensor([3, 5, 7]), randn(2, 4)
    words = 6  # three indices of 8 bytes
    assert moved(lambda: (table[index], table[index]))[1] == 12 + 12 + words + 24
    twice = moved(lambda: (table.index_copy_(0, index[:2], rows), table.index_copy_(0, index[1:], rows), None)[2])
    assert twice[1] == words + 8 + 16
    part = randn(6, 4)[:3]  # all of it at once: the same bytes twice
    every = torch.tensor([0, 1, 2])
    assert moved(lambda: (part[every], part[every]))[1] == 12 + words + 24
    nothing, flag = torch.empty(0, dtype=torch.long), torch.ones(1, dtype=torch.bool)
    assert count(lambda: flag[nothing]).bytes_eager == 0
    # Not in place, all of it is read and written.
    assert moved(lambda: table.index_copy(0, index[:2], rows))[0] == 4000 + 4 + 8 + 4000
    # To add to what is there, it must be read.
    assert moved(lambda: table.index_put_((index[:2],), rows))[0] == 8 + 4 + 8
    assert moved(lambda: table.index_put_((index[:2],), rows, accumulate=True))[0] == 8 + 4 + 8 + 8


def test_ideal_bytes_are_inputs_read_and_outputs_that_remain() -> None:
    x, w = randn(8, 4), randn(4, 4)
    assert moved(lambda: (x.exp() + 1).tanh()) == (6 * 32, 64)  # six passes against two
    assert moved(lambda: (x @ w) @ w) == (2 * (32 + 16 + 32), 32 + 16 + 32)
    assert moved(lambda: (x.exp(), None)[1]) == (64, 32)  # nothing remains
    assert moved(lambda: (x.exp(), x.sin())) == (128, 96)
    assert moved(lambda: torch.zeros(5)) == (5, 5)
    assert moved(lambda: torch.empty(5)) == (0, 0)
    assert moved(lambda: torch.empty(5) + 1) == (10, 5)  # made inside, so nothing is read from outside
    kept = []
    assert moved(lambda: kept.append(x + 1)) == (64, 64)  # not returned, and yet it remains
    assert moved(lambda: x.zero_() + 1) == (32 + 64, 64)  # what is overwritten first is not read from outside


def test_ideal_bytes_of_a_training_step_are_weights_inputs_and_gradients() -> None:
    x, w = randn(8, 4), randn(4, 4, grad=True)
    assert count(lambda: (x @ w).tanh().sum().backward()).bytes_ideal / ITEM == 32 + 16 + 16
    with torch.no_grad():
        assert count(lambda: (x @ w).tanh().exp()).bytes_ideal / ITEM == 32 + 16 + 32
    # Without it the graph keeps what the backward pass will need: the results of tanh and exp.
    w.grad = None
    assert count(lambda: (x @ w).tanh().exp()).bytes_ideal / ITEM == 32 + 16 + 32 + 32


def test_an_address_used_again_is_not_taken_for_the_old_tensor() -> None:
    def reuse() -> Tensor:
        total = torch.zeros(1000)
        for _ in range(50):  # the temporaries take turns at one or two addresses
            external = torch.frombuffer(bytearray(4000), dtype=torch.float32)
            total += external.exp().sin()
            del external
        return total

    # Each of the 50 buffers is another input of 1000 numbers, one result remains.
    assert count(reuse).bytes_ideal / ITEM == 50 * 1000 + 1000


def test_cyclic_garbage_does_not_remain() -> None:
    x = randn(100)

    def cycle() -> Tensor:
        box: list = [x.exp()]
        box.append(box)
        return x + 1

    gc.disable()
    try:
        assert moved(cycle)[1] == 200
    finally:
        gc.enable()


@pytest.mark.parametrize("returned", [0, 10])
def test_cyclic_garbage_does_not_remain_where_nothing_comes_from_outside(returned: int) -> None:
    def cycle() -> Tensor | None:
        box: list = [torch.ones(100)]
        box.append(box)
        return torch.ones(returned) if returned else None

    gc.disable()
    try:
        assert moved(cycle)[1] == returned
    finally:
        gc.enable()


@pytest.mark.parametrize("collected", [(1,), (1, 2, 2)])
def test_cyclic_garbage_that_has_grown_old_does_not_remain(collected: tuple[int, ...]) -> None:
    x = randn(100)

    def cycle() -> Tensor:
        box: list = [x.exp()]
        box.append(box)
        for generation in collected:
            gc.collect(generation)
        # Now it is in the oldest generation.
        return x + 1

    assert moved(cycle)[1] == 200


def test_calls_that_differ_in_an_argument_are_not_taken_for_each_other() -> None:
    x = randn(4)
    calls = [
        lambda: x.clamp(0.7),
        lambda: x.clamp(0.7, 0.9),
        lambda: F.gelu(x),
        lambda: F.gelu(x, approximate="tanh"),
        lambda: torch.add(x, x, alpha=0.7),
        lambda: torch.add(x, x, alpha=1.0),
    ]
    image = randn(1, 1, 5, 5)
    calls += [lambda: x.clamp(None, 0.9)]
    calls += [lambda kernel=kernel: F.avg_pool2d(image, kernel, 1, kernel // 2) for kernel in (1, 3, 5)]
    powers = (0.7, 0.0, 0.5, 1.0, 2.0, 3.0, -0.5, -1.0, -2.0, math.inf, -math.inf)
    calls += [lambda power=power: torch.linalg.vector_norm(x, power) for power in powers]
    calls += [lambda power=power: x**power for power in powers]
    for order in (calls, calls[::-1]):
        assert flops(lambda order=order: [call() for call in order]) == sum(flops(call) for call in calls)


def test_fusing_a_gelu_written_out() -> None:
    x = randn(1000)
    with torch.no_grad():
        eager = count(lambda: 0.5 * x * (1 + torch.tanh(0.79788456 * (x + 0.044715 * x * x * x))))
        fused = count(lambda: F.gelu(x, approximate="tanh"))
    assert eager.flops == fused.flops == 9000
    assert eager.bytes_ideal == fused.bytes_ideal == fused.bytes_eager == 8000
    assert eager.bytes_eager == (5 * 2 + 4 * 3) * 4000  # five ops of one tensor, four of two


# ---- What a count must leave alone


def network() -> tuple[nn.Module, Tensor]:
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.GELU(), nn.Dropout(0.5), nn.Linear(8, 3))
    return model, torch.randn(5, 6)


def test_results_gradients_buffers_and_random_numbers_are_those_of_the_plain_run() -> None:
    def run(counted: bool) -> list[Tensor]:
        model, x = network()
        results = []

        def step() -> Tensor:
            loss = model(x).square().sum()
            loss.backward()
            results.append(loss.detach())
            return loss

        count(step) if counted else step()
        return [*results, *(p.grad for p in model.parameters()), *model.buffers(), torch.get_rng_state()]

    for plain, counted in zip(run(False), run(True), strict=True):
        assert torch.equal(plain, counted)


def test_lists_of_tensors_cost_what_their_tensors_do() -> None:
    several = [randn(3), randn(4, 5)]
    assert flops(torch._foreach_add, several, several) == flops(torch._foreach_exp, several) == 23
    assert flops(torch._foreach_add_, several, several, alpha=2) == 2 * 23
    assert flops(torch._foreach_zero_, several) == flops(torch._foreach_copy_, several, several) == 0
    assert flops(torch._foreach_addcmul, several, several, several, 0.5) == 3 * 23


def test_a_composite_that_shows_no_arithmetic_is_free_only_if_it_is_listed_as_such(monkeypatch) -> None:
    x = randn(2, 2)
    assert flops(torch.full_like, x, 3.0) == 0
    monkeypatch.delitem(RULES, "full_like")
    assert count(torch.full_like, x, 3.0).uncounted == {"full_like": 1}


def test_two_tensors_are_close_if_all_their_numbers_are() -> None:
    x, y = randn(4, 5), randn(4, 5)
    assert flops(torch.allclose, x, y) == flops(torch.isclose, x, y) + 19
    assert flops(torch.equal, x, x.clone()) == 20 + 19


def test_a_device_among_the_arguments_changes_nothing() -> None:
    numbers = flops(torch.linspace, 0, 1, 5)
    assert flops(torch.linspace, 0, 1, 5, device=torch.device("cpu")) == numbers > 0


def test_ops_of_prims_are_counted_under_their_own_name() -> None:
    cost = count(torch.ops.prims.add, randn(4), randn(4))
    assert by_op(cost) == {"prims.add": 4}
    assert not cost.uncounted


def test_the_kernel_of_the_device_runs_where_there_is_one_beside_a_composite() -> None:
    # Decomposing silu_backward, as FlopCounterMode does, changes the gradient in the last bit.
    x = randn(1000, grad=True)
    gradients = []
    step = lambda: gradients.append(torch.autograd.grad(F.silu(x).sum(), x)[0])  # noqa: E731
    step()
    cost = count(step)
    assert torch.equal(*gradients)
    assert by_op(cost)["silu_backward"] > 0


def test_no_tensor_is_kept_alive_and_none_dies_early() -> None:
    model, x = network()
    seen: list[weakref.ref] = []
    alive: list[int] = []

    def step() -> Tensor:
        for _ in range(20):
            y = model(x)
            seen.append(weakref.ref(y.untyped_storage()))
            alive.append(sum(ref() is not None for ref in seen))
        y.sum().backward()
        return y

    cost = count(step)
    assert max(alive) <= 2  # as in a plain loop: the one before goes when its name is taken
    gc.collect()
    assert [ref for ref in seen if ref() is not None] == []
    assert not any(isinstance(o, Tensor) for o in gc.get_referents(cost, *cost.ops))


def test_the_record_of_storages_stays_small() -> None:
    from helpers import counting

    runs: list[counting._Run] = []
    original = counting._Run.__init__

    def spy(self, rules) -> None:
        original(self, rules)
        runs.append(self)

    x = randn(10)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting._Run, "__init__", spy)
        count(lambda: [x.mul(i / 7919).sum().item() for i in range(3000)] and None)
    assert len(runs[0].storages) < 2000
    assert len(runs[0].memo) < 10  # a factor that changes every time is one entry


def test_what_is_alive_or_was_read_counts_however_many_storages_there_are() -> None:
    x = randn(10)
    assert moved(lambda: [x + i for i in range(2500)])[1] == 10 + 2500 * 10
    made = lambda i: torch.frombuffer(bytearray(40), dtype=torch.float32).sum().item()  # noqa: E731
    assert moved(lambda: [made(i) for i in range(2500)] and None)[1] == 2500 * 10


def test_a_storage_counts_when_its_id_has_been_used_again() -> None:
    from helpers import counting

    run, old, new = counting._Run(counting.Rules(False, {})), randn(10), randn(20)
    run.find(7, old.untyped_storage(), False).reads.add(counting._place(old))
    run.find(7, new.untyped_storage(), False).reads.add(counting._place(new))
    assert run.cost().bytes_ideal == (10 + 20) * ITEM


def test_what_was_made_and_is_gone_is_forgotten_after_a_while() -> None:
    from helpers import counting

    run = counting._Run(counting.Rules(False, {}))
    for key in range(3000):
        run.find(key, torch.ones(1).untyped_storage(), True)
        assert len(run.storages) < 1100


def test_exceptions_come_through_and_leave_no_mode_behind() -> None:
    class Mine(Exception):
        pass

    def fails() -> None:
        torch.ones(2) + 1
        raise Mine("untouched")

    with pytest.raises(Mine, match=r"^untouched$"):
        count(fails)
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
        count(torch.mm, randn(2, 3), randn(2, 3))
    assert torch.utils._python_dispatch._len_torch_dispatch_stack() == 0


@pytest.mark.parametrize("result", [None, 3, "text", {"a": [torch.ones(2)]}, object(), (torch.ones(1), None)])
def test_the_result_may_be_anything(result: object) -> None:
    assert count(lambda: result) == Cost()


def test_keyword_arguments_reach_the_function() -> None:
    assert flops(torch.sum, randn(2, 3), dim=1) == 4


def test_meta_allocates_nothing_and_counts_the_same() -> None:
    def run(device: str) -> Cost:
        model = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True, device=device)
        x = randn(2, 8, 32, device=device)
        return count(lambda: F.gelu(model.norm1(model.linear2(F.relu(model.linear1(x))))).sum().backward())

    cpu, meta = run("cpu"), run("meta")
    assert (cpu.flops, cpu.bytes_eager, cpu.bytes_ideal) == (meta.flops, meta.bytes_eager, meta.bytes_ideal)
    huge = torch.empty(1 << 20, 1 << 20, device="meta")  # 4 TiB
    assert count(torch.matmul, huge, huge).flops == 2 << 60
    assert count(lambda: (huge.exp() + huge.T).softmax(-1)).bytes_ideal == 2 * 4 << 40


def test_ops_that_arrive_whole_in_inference_mode_are_unfolded() -> None:
    x, w = randn(4, 8), randn(3, 8)
    with torch.inference_mode():
        assert [row.op for row in count(F.linear, x, w).ops] == ["mm"]


def test_checkpointing_counts_the_second_forward() -> None:
    x = randn(10, grad=True)
    again = torch.utils.checkpoint.checkpoint
    plain = by_op(count(lambda: x.exp().sin().sum().backward()))
    rerun = by_op(count(lambda: again(lambda y: y.exp().sin(), x, use_reentrant=False).sum().backward()))
    assert (plain["exp"], rerun["exp"]) == (10, 20)


def test_a_count_in_a_count_sees_its_own_and_disturbs_nothing() -> None:
    x = randn(3, 3)
    inner: list[Cost] = []
    outer = count(lambda: (inner.append(count(F.softmax, x, -1)), x.exp())[1])
    alone = count(F.softmax, x, -1)
    assert inner[0].flops == alone.flops
    assert outer.flops == alone.flops + 9


def test_beside_flop_counter_mode() -> None:
    x = randn(3, 3)
    with FlopCounterMode(display=False) as theirs:
        assert count(lambda: (x @ x).softmax(-1)).flops == 54 + 3 * 13
    assert theirs.get_total_flops() == 54


def test_tensor_subclasses_unfold_into_plain_ops() -> None:
    from torch.testing._internal.two_tensor import TwoTensor

    x = TwoTensor(randn(4, 4), randn(4, 4))
    cost = count(lambda: x @ x)
    assert cost.flops == 2 * 2 * 4**3
    assert not cost.uncounted


def test_a_fake_tensor_run() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        x = torch.randn(4, 4)
        assert flops(lambda: (x @ x).softmax(-1)) == 128 + 4 * 18


def test_sparse_tensors_are_listed_not_counted() -> None:
    x = torch.eye(4).to_sparse()
    y = randn(4, 4)
    cost = count(lambda: (torch.sparse.mm(x, y), x.abs(), x.abs(), torch.empty(3, 3, layout=torch.sparse_coo)))
    assert cost.uncounted["abs"] == 2
    assert cost.uncounted.keys() == {"_sparse_addmm", "abs"}
    assert repr(cost).endswith("\nnot counted: _sparse_addmm × 1, abs × 2")
    assert [row for row in cost.ops if row.op == "abs"] == [OpCost("abs", (), "", 2, 0, 0, False)]


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
def test_a_tensor_without_strides_is_listed_too() -> None:
    x, y = torch.eye(4).to_sparse_csr(), randn(4)
    assert count(lambda: x @ y).uncounted == {"mv": 1}


def test_higher_order_ops_run_and_are_counted_where_they_are_made_of_plain_ops() -> None:
    class Twice(HigherOrderOperator):
        def __call__(self, function, *args, **kwargs):
            return super().__call__(function, *args, **kwargs)

    def twice(function, x, *, scale):
        return function(function(x)) * scale

    def below_autograd(op: Twice, *args, **kwargs):
        with torch._C._AutoDispatchBelowAutograd():
            return op(*args, **kwargs)

    x = randn(5)
    ops = {}
    for name, key in (
        ("course_listed", DispatchKey.CPU),
        ("course_listed_too", DispatchKey.CPU),
        ("course_counted", DispatchKey.CompositeExplicitAutograd),
    ):
        op = ops[name] = Twice(name)
        op.py_impl(key)(twice)
        op.py_impl(DispatchKey.Autograd)(functools.partial(below_autograd, op))
        kept = []
        cost = count(lambda op=op, kept=kept: kept.append(op(torch.exp, x, scale=3)))
        torch.testing.assert_close(kept[0], x.exp().exp() * 3)
        assert cost.uncounted == ({name: 1} if key is DispatchKey.CPU else {})
        assert by_op(cost) == ({name: 0} if key is DispatchKey.CPU else {"exp": 10, "mul": 5})
    cost = count(lambda: [op(torch.exp, x, scale=3) for op in (*ops.values(), ops["course_listed"])])
    assert cost.uncounted == {"course_listed": 2, "course_listed_too": 1}


@pytest.mark.parametrize("chosen", [True, False])
def test_of_a_condition_the_branch_that_is_taken_is_counted(chosen: bool) -> None:
    x, kept = randn(3, 3), []

    def either() -> None:
        kept.append(torch.cond(torch.tensor(chosen), lambda t: t @ t, lambda t: t.exp() + 1, (x,)))

    cost = by_op(count(either))
    assert cost.pop("_local_scalar_dense") == 0  # the condition is read
    assert cost == ({"mm": 2 * 27} if chosen else {"exp": 9, "add": 9})
    torch.testing.assert_close(kept[0], x @ x if chosen else x.exp() + 1)


def test_the_gradient_of_a_condition_is_counted_with_the_forward_that_it_runs_again() -> None:
    x = randn(3, 4, grad=True)
    cost = count(
        lambda: torch.cond(torch.tensor(True), lambda t: (t.sin(),), lambda t: (-t,), (x,))[0].sum().backward()
    )
    assert torch.equal(x.grad, x.cos())
    assert by_op(cost)["sin"] == 2 * 12 and by_op(cost)["cos"] == 12
    assert not cost.uncounted and "neg" not in by_op(cost)


def test_a_loop_of_pytorch_is_counted_pass_by_pass() -> None:
    from torch._higher_order_ops.while_loop import while_loop

    x = randn(3, 3)
    cost = count(lambda: while_loop(lambda i, y: i < 4, lambda i, y: (i + 1, y @ x), (torch.tensor(0), x)))
    assert by_op(cost)["mm"] == 4 * 2 * 27


def test_an_op_of_your_own_is_listed_until_its_formula_is_registered() -> None:
    @torch.library.custom_op("course::triple", mutates_args=())
    def triple(x: Tensor) -> Tensor:
        return 3 * x

    x = randn(5)
    cost = count(triple, x)
    assert (cost.flops, cost.uncounted) == (0, {"course.triple": 1})
    assert cost.bytes_eager == 40
    assert repr(cost).splitlines()[-1] == "not counted: course.triple × 1"

    @torch.library.custom_op("course::tick", mutates_args=())
    def tick(times: int) -> int:
        return times + 1

    (row,) = count(tick, 2).ops
    assert (row.op, row.shapes, row.dtype, row.counted) == ("course.tick", (), "", False)
    register_flop_formula(torch.ops.course.triple)(lambda shape, out_shape=None: math.prod(shape))
    assert flops(triple, x) == 5


def test_counting_does_not_wait_for_the_compiler_to_load() -> None:
    code = "import sys, torch; from helpers.counting import count; x = torch.ones(3, 3)\n"
    code += "assert count(lambda: (x @ x + 1).relu_().sum()); assert 'torch._dynamo' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_cuda_counts_what_the_cpu_counts() -> None:
    def run(device: str) -> Cost:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.LayerNorm(128), nn.Linear(128, 8)).to(device)
        x = randn(16, 64, device=device)
        return count(lambda: model(x).softmax(-1).square().sum().backward())

    cpu, cuda = run("cpu"), run("cuda")
    assert not cuda.uncounted
    assert (cpu.flops, cpu.bytes_ideal) == (cuda.flops, cuda.bytes_ideal)


# ---- Asking wrongly, and printing


def test_bad_questions() -> None:
    x = randn(2, 2)
    with pytest.raises(TypeError, match=r"as in count\(torch.matmul, a, b\); got a Tensor"):
        count(x @ x)
    with pytest.raises(ValueError, match="prices names 'tan_h', which is no op"):
        count(torch.tanh, x, prices={"tan_h": 12})
    for price in ("12", -1, math.nan, math.inf, True):
        with pytest.raises(ValueError, match="the price of 'tanh' is a number of FLOPs per element"):
            count(torch.tanh, x, prices={"tanh": price})


def test_costs_add() -> None:
    a, b = randn(4, 4), torch.tensor([3, 1, 2])
    one, two, three = count(torch.matmul, a, a), count(torch.sort, b), count(torch.exp, a)
    both = one + two
    assert (both.flops, both.bytes_eager) == (one.flops, one.bytes_eager + two.bytes_eager)
    assert both.uncounted == (two + one).uncounted == {"sort": 1}
    assert ((one + three).flops, (one + three).bytes_ideal) == (128 + 16, 4 * (32 + 32))
    assert [row.op for row in (one + three).ops] == ["mm", "exp"]
    assert sum([one, one]) == one + one
    assert [(row.op, row.calls, row.flops) for row in (one + one).ops] == [("mm", 2, 256)]
    assert count(lambda: (b.sort(), b[:2].sort())).uncounted == {"sort": 2}
    for wrong in (lambda: one + 1, lambda: 1 + one):
        with pytest.raises(TypeError):
            wrong()


def test_rows_keep_op_shapes_and_dtype() -> None:
    x = torch.ones(4, 8, dtype=torch.bfloat16)
    cost = count(lambda: [x @ x.T, x @ x.T, x.T @ x])
    rows = [(row.op, row.shapes, row.dtype, row.calls, row.flops, row.bytes) for row in cost.ops]
    assert rows == [
        ("mm", ((4, 8), (8, 4)), "bfloat16", 2, 2 * 256, 2 * (64 + 32)),
        ("mm", ((8, 4), (4, 8)), "bfloat16", 1, 512, 64 + 128),
    ]
    assert sum(row.flops for row in cost.ops) == cost.flops
    assert sum(row.bytes for row in cost.ops) == cost.bytes_eager


def test_intensity() -> None:
    cost = count(torch.relu, torch.ones(1000, dtype=torch.bfloat16))
    assert cost.intensity == cost.intensity_eager == 1 / 4
    assert math.isnan(Cost().intensity)


def test_a_cost_prints_as_a_table_by_op() -> None:
    a = randn(8, 8)
    cost = count(lambda: (a @ a).exp().sort())
    assert (
        repr(cost)
        == """\
op     calls  FLOPs         bytes
-----  -----  ------------  ---------
mm     1      1.02 kFLOP    512 bytes
exp    1      64 FLOP       512 bytes
sort   1      ≥ 0 FLOP      1.02 kB
total  3      ≥ 1.09 kFLOP  2.05 kB
at least 1.09 kFLOP
op by op 2.05 kB, 0.531 FLOP/B
ideally 1.02 kB, 1.06 FLOP/B
not counted: sort × 1"""
    )
    html = cost._repr_html_()
    assert html.startswith("<table>")
    assert "<td>mm</td><td>1</td><td>1.02 kFLOP</td>" in html
    assert html.endswith("<p>at least 1.09 kFLOP<br>op by op 2.05 kB, 0.531 FLOP/B<br>ideally 1.02 kB, 1.06 FLOP/B"
                         "<br>not counted: sort × 1</p>")  # fmt: skip
    assert repr(Cost()).startswith("0 FLOP")
    assert Cost()._repr_html_() == "<p>0 FLOP<br>op by op 0 bytes, nan FLOP/B<br>ideally 0 bytes, nan FLOP/B</p>"


def rows_of_table(cost: Cost) -> list[str]:
    return [line.split("  ")[0] for line in repr(cost).splitlines()[2:-3]]


def test_a_table_goes_by_flops_then_bytes_then_name() -> None:
    rows = [
        OpCost(op, (), "float32", 1, *costs)
        for op, costs in {"b": (8, 1), "a": (8, 1), "c": (8, 5), "d": (9, 0)}.items()
    ]
    assert rows_of_table(Cost(33, 7, 7, tuple(rows))) == ["d", "c", "a", "b", "total"]
    assert rows_of_table(Cost(8, 1, 1, tuple(rows[:1]))) == ["b"]


@pytest.mark.parametrize(("ops", "last"), [(12, "op11"), (13, "op12"), (14, "2 more"), (15, "3 more")])
def test_a_table_has_at_most_thirteen_rows_and_a_total(ops: int, last: str) -> None:
    rows = tuple(OpCost(f"op{i:02}", (), "float32", 1, 100 - i, 0) for i in range(ops))
    found = rows_of_table(Cost(0, 0, 0, rows))
    assert len(found) == min(ops, 13) + 1
    assert found[-2:] == [last, "total"]
    if "more" in last:
        flops = sum(100 - i for i in range(12, ops))
        assert f"{last}  {ops - 12:<5}  {flops} FLOP" in repr(Cost(0, 0, 0, rows))


@pytest.mark.parametrize(
    ("ops", "named", "end"), [(12, 12, "op11 × 1"), (13, 13, "op12 × 1"), (14, 12, "op11 × 1, 2 more ops")]
)
def test_at_most_thirteen_uncounted_ops_are_named(ops: int, named: int, end: str) -> None:
    text = repr(Cost(uncounted={f"op{i:02}": 1 for i in range(ops)}))
    assert text.endswith(end) and text.count("×") == named


def test_a_long_table_is_cut_and_deterministic() -> None:
    model, x = Decoder(32, 4), randn(2, 16, 32)

    def step() -> None:
        model(x).square().mean().backward()

    first = count(step)
    model.zero_grad()
    assert repr(count(step)) == repr(first)
    text = repr(first)
    assert " more " in text
    assert len(text) < 2000
    assert len(text.splitlines()) <= 12 + 6 + 1
