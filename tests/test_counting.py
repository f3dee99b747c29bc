"""Counts against closed forms, hand derivations and XLA. That a count changes nothing: test_counting_opdb.py."""

import functools
import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.flop_counter import register_flop_formula

from helpers.counting import Cost, OpCost, Trace, count

ITEM = 4  # bytes of a float32


def randn(*shape: int, grad: bool = False, device: str = "cpu") -> Tensor:
    return torch.randn(*shape, device=device, requires_grad=grad)


def flops(fn, *args, **kwargs) -> float:
    cost = count(fn, *args, **kwargs)
    assert not cost.uncounted
    return cost.flops


def by_op(cost: Cost) -> dict[str, float]:
    return {row.op: row.flops for row in cost.ops}


# ---- Products


def test_a_product_of_m_k_by_k_n_costs_2mnk_however_it_is_spelled() -> None:
    b, m, k, bias = 3, 4, 5, randn(4)
    assert flops(torch.matmul, randn(b, 1, m, k), randn(3, k, 2)) == 2 * (b * 3) * m * k * 2
    assert flops(torch.mv, randn(m, k), randn(k)) == 2 * m * k
    for dot in (torch.dot, torch.vdot):
        assert flops(dot, randn(k), randn(k)) == 2 * k
    assert flops(torch.einsum, "bmk,bkn->bmn", randn(b, m, k + 1), randn(b, k + 1, 2)) == 2 * b * m * (k + 1) * 2
    assert flops(F.linear, randn(b, k), randn(m, k)) == 2 * b * m * k
    linear = flops(F.linear, randn(b, k), randn(m, k), bias)
    assert linear == flops(lambda: randn(b, k) @ randn(m, k).T + bias) == 2 * b * m * k + b * m


@pytest.mark.parametrize(("alpha", "beta", "more"), [(1, 1, 1), (2, 1, 2), (1, 0, 0), (1, 3, 2), (2, 0, 1), (2, 3, 3)])
def test_adding_to_a_product_costs_one_per_output_and_a_factor_one_more(alpha: int, beta: int, more: int) -> None:
    a, b, stack = randn(4, 5), randn(5, 6), randn(3, 4, 5)
    scaled = {"alpha": alpha, "beta": beta}
    assert flops(torch.addmm, randn(4, 6), a, b, **scaled) == 24 * (10 + more)
    assert flops(torch.addmv, randn(4), a, randn(5), **scaled) == 4 * (10 + more)
    assert flops(torch.baddbmm, randn(3, 4, 6), stack, randn(3, 5, 6), **scaled) == 72 * (10 + more)
    assert flops(torch.addbmm, randn(4, 6), stack, randn(3, 5, 6), **scaled) == 24 * (3 * 10 + more)


def test_the_backward_costs_twice_the_forward_but_not_for_the_first_layer() -> None:
    b, d, k = 8, 16, 32
    x, w1, w2 = randn(b, d), randn(d, d, grad=True), randn(d, k, grad=True)

    def step() -> None:
        y = x @ w1 @ w2
        y.backward(torch.ones_like(y))

    forward = 2 * b * d * d + 2 * b * d * k
    assert flops(step) == forward + 2 * b * d * d + 2 * (2 * b * d * k)  # no gradient of x
    x.requires_grad_()
    w1.grad = w2.grad = None
    assert flops(step) == 3 * forward


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


# ---- Elementwise, reductions, moves


ELEMENTWISE = {
    # name: function, operations per element
    "exp": (torch.exp, 1),
    "erf": (torch.erf, 1),
    "comparison": (lambda x: x > 0, 1),
    "i0e": (torch.special.i0e, 1),
    "logical_and": (lambda x: torch.logical_and(x, x), 1),
    "or": (lambda x: x.bool() | True, 1),
    "two ops": (lambda x: 2 * x + 1, 2),
    "in place": (lambda x: x.add_(1), 1),
    "add with a factor": (lambda x: torch.add(x, x, alpha=2), 2),
    "clamp": (lambda x: x.clamp(-1, 1), 2),
    "clamp, one bound": (lambda x: x.clamp(min=0), 1),
    "silu": (F.silu, 5),
    "addcmul": (lambda x: torch.addcmul(x, x, x, value=0.5), 3),
    "leaky_relu": (F.leaky_relu, 2),
    "equal": (lambda x: x.equal(x + 0), 2),
    "gelu": (F.gelu, 5),
    "whole numbers": (lambda x: x.to(torch.int32) // 2, 1),
}


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise(name: str) -> None:
    (fn, each), x = ELEMENTWISE[name], randn(3, 7)
    assert flops(fn, x) // x.numel() == each


@pytest.mark.parametrize(
    ("name", "each", "more"), [("addcmul", 3, 2), ("xlogy", 4, 1), ("frac", 2, 0), ("sigmoid", 4, 0)]
)
def test_it_costs_the_same_in_place_and_into_a_tensor(name: str, each: int, more: int) -> None:
    x, rest, op = torch.rand(3, 7), [torch.rand(3, 7) for _ in range(more)], getattr(torch.ops.aten, name)
    assert flops(op, x, *rest) == flops(op, x, *rest, out=torch.empty(3, 7)) == each * 21
    assert flops(getattr(torch.ops.aten, f"{name}_"), x, *rest) == each * 21


REDUCED = {
    **{f.__name__: (f, 41) for f in (torch.sum, torch.amax, torch.max, torch.argmax, torch.prod, torch.all)},
    "rows": (lambda x: x.sum(1), 6 * 6),
    "cumsum": (lambda x: x.cumsum(1), 6 * 6),
    "cumprod": (lambda x: x.cumprod(1), 6 * 6),
    "cummax": (lambda x: x.cummax(1), 6 * 6),
    "cummin": (lambda x: x.cummin(-2), 5 * 7),
    "max of columns": (lambda x: x.max(0), 5 * 7),
    "cumsum of one number": (lambda x: x[0, 0].cumsum(0), 0),
    "mean": (lambda x: x.mean(1), 6 * 7),  # a division per row
    "norm": (lambda x: x.norm(), 42 + 41 + 1),  # square and root
    "var": (lambda x: x.var(1), 6 * 4 * 7),  # mean, subtract, square, mean
}


@pytest.mark.parametrize("name", REDUCED)
def test_what_becomes_one_number_costs_one_less(name: str) -> None:
    fn, expected = REDUCED[name]
    assert flops(fn, randn(6, 7)) == expected


def test_pools() -> None:
    image = randn(2, 3, 8, 8)
    assert flops(F.max_pool2d, image, 2) == flops(F.max_pool2d, image, [2]) == 2 * 3 * 4 * 4 * 3
    assert flops(F.max_pool2d, image, (1, 4)) == 2 * 3 * 8 * 2 * 3
    assert flops(F.max_pool3d, randn(1, 4, 4, 4), 2) == 8 * 7
    assert flops(F.adaptive_avg_pool2d, image, 1) == 2 * 3 * 64
    image.requires_grad_()
    cost = by_op(count(lambda: F.max_pool2d(image, 2).backward(torch.ones(2, 3, 4, 4))))
    assert cost["max_pool2d_with_indices_backward"] == 2 * 3 * 4 * 4  # each is added where it belongs


PLACES, SOURCE = torch.tensor([0, 0, 1]), torch.ones(3)
SCATTERS = {
    "index_add_": (lambda x: x.index_add_(0, PLACES, SOURCE), 3),
    "scatter_add_": (lambda x: x.scatter_add_(0, PLACES, SOURCE), 3),
    "index_put_, accumulate": (lambda x: x.index_put_((PLACES,), SOURCE, accumulate=True), 3),
    "put_, accumulate": (lambda x: x.put_(PLACES, SOURCE, accumulate=True), 3),
    "scatter_": (lambda x: x.scatter_(0, PLACES, SOURCE), 0),
    "index_put_": (lambda x: x.index_put_((PLACES,), SOURCE), 0),
    "sum": (lambda x: x.scatter_reduce_(0, PLACES, SOURCE, "sum"), 3),
    "amax": (lambda x: x.scatter_reduce_(0, PLACES, SOURCE, "amax"), 3),
    "mean": (lambda x: x.scatter_reduce_(0, PLACES, SOURCE, "mean"), 3 + 4),  # one division each
    "index_reduce_": (lambda x: x.index_reduce_(0, PLACES, SOURCE, "mean"), 3 + 4),
}


@pytest.mark.filterwarnings("ignore:index_reduce")
@pytest.mark.parametrize("name", SCATTERS)
def test_scatters_add_what_they_bring(name: str) -> None:
    fn, expected = SCATTERS[name]
    assert flops(fn, torch.zeros(4)) == expected


COMPLEX = {"mul": torch.mul, "matmul": torch.matmul, "sum": lambda a, b: a.sum(), "fft": lambda a, b: torch.fft.fft(a)}


@pytest.mark.parametrize("name", [*COMPLEX, "equal"])
def test_arithmetic_with_complex_numbers_is_named_and_not_counted(name: str) -> None:
    fn = COMPLEX.get(name, torch.equal)
    cost = count(fn, torch.ones(4, 4, dtype=torch.complex64), torch.ones(4, 4, dtype=torch.complex64))
    assert cost.flops == 0
    assert sum(cost.uncounted.values()) == 1


def test_moving_complex_numbers_is_free() -> None:
    assert flops(torch.ones(4, dtype=torch.complex64).clone) == 0


def test_a_composite_of_which_a_part_has_no_rule_is_named() -> None:
    assert count(F.silu, torch.ones(2, dtype=torch.complex64)).uncounted == {"silu": 1}
    # Nor is one free whose parts only move.
    assert count(F.adaptive_max_pool2d, randn(1, 7, 7), 3).uncounted == {"adaptive_max_pool2d": 1}


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
    loss = by_op(count(F.cross_entropy, x, torch.arange(rows)))
    assert loss["_log_softmax"] == rows * (5 * n - 1)
    assert 0 < loss["nll_loss_forward"] < 10 * rows
    assert flops(F.mse_loss, x, torch.zeros(rows, n)) == rows * n * 3


@pytest.mark.parametrize("grouped", [False, True])
def test_the_backward_of_fused_attention_counts_five_products(grouped: bool) -> None:
    b, h, t, d = 2, 4, 32, 16
    q = randn(b, h, t, d, grad=True)
    k, v = (randn(b, 1 if grouped else h, t, d, grad=True) for _ in range(2))
    cost = count(lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=grouped).sum().backward())
    (backward,) = (row.flops for row in cost.ops if row.op.startswith("_scaled") and "backward" in row.op)
    product, scores = 2 * b * h * t * t * d, b * h * t * t
    # One of them the scores again; and scaling, exponential, derivative of the softmax.
    assert 5 * product + 4 * scores < backward < 5 * product + 8 * scores


FUSED = {
    # name: the arguments between the values and the dropout
    "flash_attention": [],
    "efficient_attention": [None, True],
    "cudnn_attention": [None, True],
    "fused_attention_overrideable": [None],
}


@pytest.mark.parametrize("name", FUSED)
@pytest.mark.parametrize("causal", [False, True])
def test_every_fused_attention_costs_the_same_and_a_causal_mask_is_free(name: str, causal: bool) -> None:
    q = torch.empty(2, 4, 32, 16, device="meta")
    scores, product = 2 * 4 * 32 * 32, 2 * 2 * 4 * 32 * 32 * 16
    attention = getattr(torch.ops.aten, f"_scaled_dot_product_{name}")
    # Each score is scaled; a softmax of n scores takes 5n − 2.
    assert flops(attention, q, q, q, *FUSED[name], 0.0, causal) == 2 * product + scores + 2 * 4 * 32 * (5 * 32 - 2)


def test_a_mask_that_is_a_tensor_is_added_to_the_scores() -> None:
    q, mask = randn(2, 4, 32, 16), randn(32, 32)
    attention = functools.partial(flops, F.scaled_dot_product_attention, q, q, q)
    assert attention(attn_mask=mask) == attention() + 2 * 4 * 32 * 32


def test_lists_of_tensors_cost_what_their_tensors_do() -> None:
    several = [randn(3), randn(4, 5)]
    assert flops(torch._foreach_add, several, several) == flops(torch._foreach_exp, several) == 23
    assert flops(torch._foreach_add_, several, several, alpha=2) == 2 * 23
    assert flops(torch._foreach_addcmul, several, several, several, 0.5) == 3 * 23
    assert flops(torch._foreach_zero_, several) == 0


X = (64, 32)
XLA = {
    # name: function, shapes of its arguments, XLA's count
    "matmul": (torch.matmul, (X, (32, 128)), 524288),
    "bmm": (torch.bmm, ((8, *X), (8, 32, 128)), 4194304),
    "dot": (torch.dot, ((1024,), (1024,)), 2048),
    "linear": (F.linear, (X, (128, 32), (128,)), 532480),
    "add": (torch.add, (X, X), 2048),
    "relu": (torch.relu, (X,), 2048),
    "sigmoid": (torch.sigmoid, (X,), 6144 + 2048),
    "gelu": (functools.partial(F.gelu, approximate="tanh"), (X,), 16384 + 2048),
    "sum": (lambda x: x.sum(-1), (X,), 1984),
    "amax": (lambda x: x.amax(-1), (X,), 1984),
    "conv2d": (F.conv2d, ((2, 3, 16, 16), (8, 3, 3, 3)), 169344),  # 3 × 3, valid
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 2), ((2, 3, 16, 16),), 1536),
    "max_pool2d": (lambda x: F.max_pool2d(x, 2), ((2, 3, 16, 16),), 1152),
    "MLP": (lambda x, v, w: ((x @ v).relu() @ w).sum(), (X, (32, 128), (128, 16)), 795647),
}


@pytest.mark.parametrize("name", XLA)
def test_xla_agrees(name: str) -> None:
    """XLA's HLO cost analysis: `jax.jit(f).lower(*args).cost_analysis()` on the CPU, jax and jaxlib 0.10.2, 2026-11-21.

    "flops" plus "transcendentals", since XLA keeps exp, tanh, rsqrt and log apart; float32 of these shapes.
    """
    fn, shapes, theirs = XLA[name]
    assert flops(fn, *(randn(*shape) for shape in shapes)) == theirs


# ---- Bytes


def moved(fn, *args) -> tuple[float, float]:
    cost = count(fn, *args)
    return cost.bytes_eager / ITEM, cost.bytes_ideal / ITEM


def test_an_op_reads_its_inputs_and_writes_its_outputs_once() -> None:
    x, y = randn(8, 4), randn(8, 4)
    assert moved(torch.add, x, y) == (96, 96)
    assert moved(torch.add, x, x) == (64, 64)
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
    assert moved(lambda: x[:1, :1].expand(4, 4) * 2) == (17, 17)
    assert moved(lambda: x.as_strided((9, 2), (1, 1)) + 0) == (10 + 18, 28)  # windows of 2 over 10 numbers
    assert moved(lambda: x[None, None].unfold(2, 3, 1).unfold(3, 3, 1) + 0) == (100 + 64 * 9, 676)


def test_what_two_views_of_one_storage_share_counts_once() -> None:
    x = randn(10)
    assert moved(lambda: x[:8] + x[2:]) == (10 + 8, 18)
    assert moved(lambda: x[::2] * x[1::2]) == (10 + 5, 15)
    assert moved(lambda: (x[:8] + x[2:], x[:8] + x[:8], x[:8] + randn(8)))[0] == (10 + 8) + (8 + 8) + (8 + 16 + 8)
    q, k, v = torch.empty(2048, 3 * 12288, device="meta").chunk(3, dim=1)
    assert moved(lambda: torch.stack([q, k, v])) == (6 * q.numel(), 6 * q.numel())


def test_of_a_cache_that_fills_the_filled_part_is_read() -> None:
    cache = torch.zeros(4, 100, 8)
    assert moved(lambda: [cache[:, :t].sum() for t in range(1, 6)])[1] == 4 * 5 * 8 + 5


def test_in_place_reads_and_writes() -> None:
    x, y = randn(8), randn(8)
    assert moved(lambda: x.add_(1)) == (16, 16)
    assert moved(lambda: x.add_(y)) == (24, 24)
    assert moved(lambda: x.zero_()) == (8, 8)
    assert moved(torch.zeros_like, x) == moved(x.new_ones, (8,)) == (8, 8)  # of x only the shape is read
    assert moved(lambda: x.copy_(y)) == (16, 16)
    assert moved(lambda: x.uniform_()) == (8, 8)
    assert moved(lambda: torch.exp(y, out=x)) == (16, 16)
    assert moved(lambda: x[:4].mul_(2)) == (8, 8)


def test_indexing_touches_no_more_than_it_returns() -> None:
    table, index = randn(1000, 4), torch.tensor([3, 5, 5])
    assert moved(lambda: F.embedding(index, table)) == (12 + 6 + 12, 30)
    assert moved(lambda: table[index]) == (30, 30)
    assert moved(lambda: randn(2, 4)[torch.tensor([0, 1, 1])])[0] == 8 + (8 + 6 + 12)  # three rows of a table of two


def test_an_indexed_write_touches_no_more_than_it_brings() -> None:
    table, index, rows = randn(1000, 4), torch.tensor([3, 5]), randn(2, 4)
    assert moved(lambda: table.index_copy_(0, index, rows))[0] == 4 + 8 + 8
    assert moved(lambda: table.index_put_((index,), rows[0, 0]))[0] == 4 + 1 + 8
    assert moved(lambda: table.index_put_((index,), rows, accumulate=True))[0] == 4 + 8 + 8 + 8  # read as well
    assert moved(lambda: table.index_add_(0, index, rows))[0] == 4 + 8 + 8 + 8
    assert moved(lambda: table.scatter_(0, index[:, None], rows[:, :1]))[0] == 4 + 2 + 2
    assert moved(lambda: table.index_copy(0, index, rows))[0] == 4000 + 4 + 8 + 4000  # not in place


def test_ideal_bytes_are_inputs_read_and_outputs_that_remain() -> None:
    x, w, kept = randn(8, 4), randn(4, 4), []
    assert moved(lambda: (x.exp() + 1).tanh()) == (6 * 32, 64)  # six passes against two
    assert moved(lambda: (x @ w) @ w) == (2 * (32 + 16 + 32), 32 + 16 + 32)
    assert moved(lambda: (x.exp(), None)[1]) == (64, 32)  # nothing remains
    assert moved(lambda: torch.empty(5) + 1) == (10, 5)  # made inside, so nothing is read from outside
    assert moved(lambda: kept.append(x + 1)) == (64, 64)  # not returned, and yet it remains
    assert moved(lambda: x.zero_() + 1) == (32 + 64, 64)  # what is overwritten first is not read from outside


def test_ideal_bytes_of_a_training_step_are_weights_inputs_and_gradients() -> None:
    x, w = randn(8, 4), randn(4, 4, grad=True)
    assert count(lambda: (x @ w).tanh().sum().backward()).bytes_ideal / ITEM == 32 + 16 + 16
    w.grad = None
    # A graph keeps what the backward pass will need: the results of tanh and exp.
    assert count(lambda: (x @ w).tanh().exp()).bytes_ideal / ITEM == 32 + 16 + 32 + 32


def test_calls_that_differ_in_an_argument_are_not_taken_for_each_other() -> None:
    x, image = randn(4), randn(1, 1, 5, 5)
    calls = [
        lambda: x.clamp(0.7),
        lambda: x.clamp(0.7, 0.9),
        lambda: x.clamp(None, 0.9),
        lambda: F.gelu(x),
        lambda: F.gelu(x, approximate="tanh"),
        lambda: torch.add(x, x, alpha=0.7),
        lambda: torch.add(x, x, alpha=1.0),
    ]
    calls += [lambda kernel=kernel: F.avg_pool2d(image, kernel, 1, kernel // 2) for kernel in (1, 3, 5)]
    powers = (0.7, 0.0, 0.5, 1.0, 2.0, 3.0, -0.5, -1.0, -2.0, math.inf, -math.inf)
    calls += [lambda power=power: torch.linalg.vector_norm(x, power) for power in powers]
    for order in (calls, calls[::-1]):
        assert flops(lambda order=order: [call() for call in order]) == sum(flops(call) for call in calls)


# ---- Other devices and ops, and printing


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


def test_control_flow_of_pytorch_runs_and_is_named() -> None:
    x, kept = randn(3, 3), []
    cost = count(lambda: kept.append(torch.cond(torch.tensor(True), lambda t: t @ t, lambda t: t.exp(), (x,))))
    assert cost.uncounted == {"cond": 1}
    torch.testing.assert_close(kept[0], x @ x)


def test_an_op_of_your_own_is_listed_until_its_formula_is_registered() -> None:
    @torch.library.custom_op("course::triple", mutates_args=())
    def triple(x: Tensor) -> Tensor:
        return 3 * x

    x = randn(5)
    cost = count(triple, x)
    assert (cost.flops, cost.uncounted, cost.bytes_eager) == (0, {"course.triple": 1}, 40)
    register_flop_formula(torch.ops.course.triple)(lambda shape, out_shape=None: math.prod(shape))
    assert flops(triple, x) == 5


def test_what_cannot_be_called_is_refused() -> None:
    with pytest.raises(TypeError, match=r"as in count\(torch.mm, a, b\); got a Tensor"):
        count(randn(2, 2))


def test_rows_keep_op_shapes_and_dtype() -> None:
    x = torch.ones(4, 8, dtype=torch.bfloat16)
    cost = count(lambda: [x @ x.T, x @ x.T, x.T @ x])
    assert cost.ops == (
        OpCost("mm", ((4, 8), (8, 4)), "bfloat16", 2, 2 * 256, 2 * (64 + 32)),
        OpCost("mm", ((8, 4), (4, 8)), "bfloat16", 1, 512, 64 + 128),
    )
    assert sum(row.flops for row in cost.ops) == cost.flops
    assert sum(row.bytes for row in cost.ops) == cost.bytes_eager


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
    assert "<td>mm</td><td>1</td><td>1.02 kFLOP</td>" in html
    assert html.endswith("<br>not counted: sort × 1</p>")
    assert repr(Cost()).startswith("0 FLOP")


# ---- What is alive


def test_a_trace_holds_each_storage_from_the_op_that_makes_it_to_the_last_that_holds_it() -> None:
    x = randn(1000)
    with Trace([x, x[1:]]) as trace:
        y = x + 1
        y.mul_(2)  # in place: nothing new
        z = y.view(10, 100).t()  # views: nothing new
        del y
        w = z * 2
        del z
        w += 1
        w.sort()
    assert trace.memory == [8000, 8000, 8000, 8000, 12000, 8000, 20000] and trace.peak == 20000
    assert trace.flops == [1000, 2000, 2000, 2000, 3000, 4000, 4000] and trace.uncounted == {"sort": 1}
