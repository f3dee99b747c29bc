"""The count on code as people write it: compiled, in threads, with tensors that no rule describes. Nothing is raised,
nothing is silently zero, and the code runs as it would without the count."""

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.pool import ThreadPool
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.profiler import ProfilerActivity, profile
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts
from torch.utils.flop_counter import FlopCounterMode

from helpers import storage
from helpers.budget import block_costs
from helpers.counting import Trace, count, kept_bytes
from helpers.model import Config

pytestmark = pytest.mark.filterwarnings("ignore")
ITEM = 4  # bytes of a float32
PRODUCT = 2 * 16**3  # of two matrices of 16 × 16


def randn(*shape: int, grad: bool = False) -> Tensor:
    return torch.randn(*shape, requires_grad=grad)


def square() -> Tensor:
    x = torch.ones(16, 16)
    return x @ x


# ---- Compiled functions


class Graphs:
    """A backend of torch.compile that keeps the graphs and runs them as they are."""

    def __init__(self) -> None:
        self.graphs: list[Any] = []

    def __call__(self, graph: Any, inputs: Any) -> Callable[..., Any]:
        self.graphs.append(graph)
        return graph.forward


def relu_square(t: Tensor) -> Tensor:
    return torch.relu(t @ t)


COMPILED = {
    "fullgraph": lambda backend: torch.compile(relu_square, fullgraph=True, backend=backend),
    "graph breaks allowed": lambda backend: torch.compile(relu_square, backend=backend),
    "dynamic": lambda backend: torch.compile(relu_square, dynamic=True, fullgraph=True, backend=backend),
    "a module": lambda backend: torch.compile(Square(), fullgraph=True, backend=backend).eval(),
    "a module compiled in place": lambda backend: compiled_in_place(Square(), backend),
    "compiled twice": lambda backend: torch.compile(torch.compile(relu_square, backend=backend), backend=backend),
    "called by another": lambda backend: called_by_another(torch.compile(relu_square, fullgraph=True, backend=backend)),
}


class Square(nn.Module):
    def forward(self, t: Tensor) -> Tensor:
        return relu_square(t)


def compiled_in_place(module: nn.Module, backend: Any) -> nn.Module:
    module.compile(fullgraph=True, backend=backend)
    return module


def called_by_another(f: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    return lambda t: f(t)


@pytest.fixture
def fresh_compiler():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.mark.parametrize(("name", "used_before"), [*((name, False) for name in COMPILED), ("fullgraph", True)])
def test_a_compiled_function_is_counted_as_written_and_stays_compiled(name, used_before, fresh_compiler):
    backend, x = Graphs(), randn(16, 16)
    f = COMPILED[name](backend)
    if used_before:
        f(x)
    graphs = len(backend.graphs)
    for _ in range(2):
        cost = count(f, x)
        assert (cost.flops, cost.uncounted) == (PRODUCT + 256, {})
    assert len(backend.graphs) == graphs  # the count compiles nothing,
    torch.testing.assert_close(f(x), relu_square(x))
    assert len(backend.graphs) == 1  # and the function is compiled afterwards, once


def test_what_a_function_compiles_inside_is_counted(fresh_compiler):
    x = randn(16, 16)
    assert count(lambda: torch.compile(relu_square, fullgraph=True, backend=Graphs())(x)).flops == PRODUCT + 256


def compiled_flex() -> Callable[..., Any]:
    return torch.compile(flex_attention, fullgraph=True, backend="eager")


@pytest.mark.parametrize("make", [lambda: flex_attention, compiled_flex], ids=["eager", "compiled"])
@pytest.mark.parametrize("masked", [False, True])
def test_flex_attention_is_counted_by_pytorchs_formula(make, masked, fresh_compiler):
    attention, q = make(), randn(1, 2, 128, 16)
    mask = create_block_mask(lambda b, h, i, j: i >= j, 1, 2, 128, 128, device="cpu") if masked else None
    kept: list[Tensor] = []
    cost = count(lambda: kept.append(attention(q, q, q, block_mask=mask)))
    (row,) = (row for row in cost.ops if row.op == "flex_attention")
    assert row.counted
    assert row.flops == 2 * 2 * 2 * 128 * 128 * 16
    torch.testing.assert_close(attention(q, q, q, block_mask=mask), kept[0])
    torch.testing.assert_close(kept[0], F.scaled_dot_product_attention(q, q, q, is_causal=masked))


def test_the_branches_of_cond_keep_their_gradients_and_are_named(fresh_compiler):
    x, w = randn(16, 16), randn(16, 16, grad=True)

    def step() -> None:
        torch.cond(torch.tensor(True), lambda t: t @ w, lambda t: t.exp() + w, (x,)).sum().backward()

    step()
    plain, w.grad = w.grad, None
    cost = count(step)
    assert set(cost.uncounted) == {"cond"}
    assert not any(row.bytes_counted for row in cost.ops if row.op == "cond")
    torch.testing.assert_close(w.grad, plain)
    w.grad = None
    step()
    torch.testing.assert_close(w.grad, plain)


# ---- What no rule describes


def nested(layout: torch.layout) -> Tensor:
    return torch.nested.nested_tensor([torch.ones(2, 8), torch.ones(3, 8)], layout=layout)


def quantised() -> Tensor:
    return torch.quantize_per_tensor(torch.ones(8, 8), 0.1, 0, torch.qint8)


def encoder(**settings: Any) -> nn.Module:
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, **settings), 2)


def padded_encoder() -> Tensor:
    mask = torch.zeros(3, 5, dtype=torch.bool)
    mask[0, 3:] = True
    with torch.no_grad():
        return encoder().eval()(torch.ones(3, 5, 8), src_key_padding_mask=mask)


INDESCRIBABLE = {
    "nested, linear": lambda: nn.Linear(8, 4)(nested(torch.strided)),
    "nested, sum": lambda: nested(torch.strided) * 2,
    "nested, softmax": lambda: torch.softmax(nested(torch.strided), -1),
    "padded encoder": padded_encoder,
    "to a nested tensor and back": lambda: nested(torch.strided).to_padded_tensor(0.0),
    "quantised": quantised,
    "dequantised": lambda: quantised().dequantize(),
    "quantised by channel": lambda: torch.quantize_per_channel(
        torch.ones(4, 4), torch.ones(4), torch.zeros(4), 0, torch.qint8
    ).dequantize(),
    "quantised sum": lambda: torch.ops.quantized.add(quantised(), quantised(), 0.1, 0),
    "sparse, COO": lambda: torch.sparse.mm(torch.eye(8).to_sparse(), torch.ones(8, 4)),
    "sparse, CSR": lambda: torch.eye(8).to_sparse_csr() @ torch.ones(8, 4),
    "sparse, CSC": lambda: torch.eye(8).to_sparse_csc() @ torch.ones(8, 4),
    "sparse, sum": lambda: torch.sparse.sum(torch.eye(8).to_sparse()),
    "sparse gradient": lambda: nn.Embedding(9, 3, sparse=True)(torch.tensor([1, 2])).sum().backward(),
    "oneDNN": lambda: torch.relu(torch.ones(8, 8).to_mkldnn()).to_dense(),
    "sorting": lambda: torch.ones(8, 8).sort(),
    "complex": lambda: torch.fft.fft(torch.ones(8)).abs(),
}


@pytest.mark.parametrize("name", INDESCRIBABLE)
def test_what_no_rule_describes_runs_and_is_named(name):
    cost = count(INDESCRIBABLE[name])
    assert cost.uncounted
    assert "at least" in repr(cost)
    with Trace() as trace:
        INDESCRIBABLE[name]()
    assert trace.uncounted.keys() == cost.uncounted.keys()
    assert kept_bytes(INDESCRIBABLE[name]) >= 0


@pytest.mark.parametrize("name", ["sparse, COO", "nested, linear", "oneDNN"])
def test_where_the_bytes_are_unknown_the_sums_of_bytes_are_at_least(name):
    cost = count(INDESCRIBABLE[name])
    (row, *_) = (row for row in cost.ops if not row.bytes_counted)
    assert row.bytes == 0
    assert not row.counted
    assert "≥ 0 bytes" in repr(cost)
    assert "op by op at least" in repr(cost)
    assert "ideally at least" in repr(cost)
    assert "FLOP/B" not in repr(cost)  # a ratio of two sums that are at least so much is nothing


def test_where_the_bytes_are_known_they_are_shown_as_they_are():
    cost = count(torch.ones(8, 8).sort)
    assert "op by op 1.02 kB" in repr(cost)
    assert all(row.bytes_counted for row in cost.ops)


def test_a_jagged_tensor_is_counted_by_its_parts():
    x, layer = nested(torch.jagged), nn.Linear(8, 4)
    assert count(layer, x).flops == 5 * 4 * (2 * 8 + 1)
    assert count(lambda: F.relu(x) * 2).flops == 2 * 5 * 8


def test_an_op_whose_formula_fails_is_named():
    @torch.library.custom_op("course::broken", mutates_args=())
    def broken(x: Tensor) -> Tensor:
        return x + 1

    @torch.utils.flop_counter.register_flop_formula(torch.ops.course.broken)
    def formula(shape: Any, **_: Any) -> int:
        raise AssertionError("unsupported")

    assert count(broken, randn(3)).uncounted == {"course.broken": 1}


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: nested(torch.strided), "nested tensor"),
        (lambda: nested(torch.jagged), "nested tensor"),
        (lambda: torch.eye(3).to_sparse(), "several tensors"),
        (lambda: torch.eye(3).to_sparse_csr(), "several tensors"),
        (lambda: torch.ones(3, 3).to_mkldnn(), r"use .to_dense\(\)"),
        (lambda: torch.ones(3, device="meta"), "meta"),
    ],
    ids=["strided nested", "jagged", "COO", "CSR", "oneDNN", "meta"],
)
def test_a_tensor_without_one_storage_has_no_layout_and_is_told_why(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        storage.layout(make())


# ---- Nothing silently zero: threads, storages that grow, what autograd keeps


def in_a_thread() -> None:
    thread = threading.Thread(target=square)
    thread.start()
    thread.join()


def in_a_subclass() -> None:
    class Work(threading.Thread):
        def run(self) -> None:
            square()

    work = Work()
    work.start()
    work.join()


def in_a_thread_of_a_thread() -> None:
    thread = threading.Thread(target=in_a_thread)
    thread.start()
    thread.join()


def in_a_timer() -> None:
    timer = threading.Timer(0, square)
    timer.start()
    timer.join()


def in_a_new_pool() -> None:
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: square(), range(1)))


def in_a_pool_of_processes_that_are_threads() -> None:
    with ThreadPool(2) as pool:
        pool.map(lambda _: square(), range(1))


POOL = ThreadPoolExecutor(1)
THREADED = {
    "Thread": in_a_thread,
    "subclass of Thread": in_a_subclass,
    "thread of a thread": in_a_thread_of_a_thread,
    "Timer": in_a_timer,
    "new pool": in_a_new_pool,
    "pool of before": lambda: POOL.submit(square).result(),
    "multiprocessing's pool": in_a_pool_of_processes_that_are_threads,
    "asyncio": lambda: asyncio.run(asyncio.to_thread(square)),
}


@pytest.mark.parametrize("name", THREADED)
def test_work_in_threads_is_counted(name):
    POOL.submit(int).result()
    before = threading.Thread.start, ThreadPoolExecutor.submit
    for _ in range(2):
        cost = count(THREADED[name])
        assert (cost.flops, cost.uncounted) == (PRODUCT, {})
    with Trace() as trace:
        THREADED[name]()
    assert trace.flops[-1] == PRODUCT
    assert (threading.Thread.start, ThreadPoolExecutor.submit) == before


@pytest.mark.parametrize(
    "hand_over", [lambda work: threading.Thread(target=work).start(), lambda work: POOL.submit(work)]
)
def test_work_that_a_thread_has_not_done_at_the_end_is_named(hand_over):
    end = threading.Event()

    def work() -> None:
        end.wait()
        square()

    with Trace() as trace:
        cost = count(hand_over, work)
    end.set()
    assert cost.uncounted == trace.uncounted == {"work of a thread": 1}
    assert "at least 0 FLOP" in repr(cost)


def test_threads_that_do_not_work_for_the_function_are_not_counted():
    stop = threading.Event()
    other = threading.Thread(target=lambda: [in_a_thread() for _ in iter(stop.is_set, True)])
    other.start()
    try:
        assert count(lambda: [time.sleep(0.001) for _ in range(20)]).flops == 0
    finally:
        stop.set()
        other.join()


def test_what_a_thread_raises_comes_through():
    def fail() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        count(lambda: POOL.submit(fail).result())
    assert count(lambda: POOL.submit(square).result()).flops == PRODUCT


GROWING = {
    "out": lambda x, y: torch.mm(x, x, out=y),
    "resize_": lambda x, y: y.resize_(16, 16).copy_(x),
    "a view that grows": lambda x, y: y[:0].resize_(16, 16).copy_(x),
    "set_": lambda x, y: y.set_(torch.empty(16, 16)).copy_(x),
}


@pytest.mark.parametrize("name", GROWING)
def test_a_storage_that_grows_counts_as_large_as_it_is(name):
    x = randn(16, 16)

    def run() -> Tensor:
        y = torch.empty(0)
        GROWING[name](x, y)
        return y

    assert count(run).bytes_ideal == 2 * x.nbytes
    with Trace() as trace:
        y = torch.empty(0)
        GROWING[name](x, y)
    assert trace.memory[-1] == trace.peak == x.nbytes
    with trace:
        y.resize_(32, 32)
    assert trace.memory[-1] == 4 * x.nbytes


def test_the_peak_without_an_op_is_what_was_there():
    assert Trace().peak == 0
    x = randn(8)
    with Trace([x]) as trace:
        pass
    assert trace.peak == 8 * ITEM


def keep_products(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
    return CheckpointPolicy.MUST_SAVE if op is torch.ops.aten.mm.default else CheckpointPolicy.PREFER_RECOMPUTE


def test_kept_bytes_of_checkpointing():
    x, w = randn(8, 8, grad=True), randn(8, 8)

    def body(t: Tensor) -> Tensor:
        return torch.tanh(t @ w) @ w

    def selective() -> Any:
        return create_selective_checkpoint_contexts(keep_products)

    assert kept_bytes(lambda: body(x)) == 2 * x.nbytes  # w and the tanh
    assert kept_bytes(lambda: checkpoint(body, x, use_reentrant=False)) == x.nbytes
    assert kept_bytes(lambda: checkpoint(body, x, use_reentrant=False, context_fn=selective)) == 3 * x.nbytes


class KeepsByItself(torch.autograd.Function):
    """Keeps on ctx its input, something made from it, and a list."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.given, ctx.made, ctx.several = x, x * 2, [x + 1, x + 2]
        return x.exp()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad * ctx.made


def test_kept_bytes_of_a_function_that_keeps_on_ctx_by_itself():
    x = randn(8, 8, grad=True)
    assert kept_bytes(lambda: KeepsByItself.apply(x)) == 4 * x.nbytes
    assert kept_bytes(lambda: KeepsByItself.apply(x) + 1, [x]) == 3 * x.nbytes  # in the middle of a graph
    assert kept_bytes(lambda: KeepsByItself.apply(x.detach())) == 0  # without gradients nothing is kept


def test_kept_bytes_of_a_sparse_tensor_are_its_values_and_indices():
    matrix, x = torch.eye(8).to_sparse(), randn(8, 4, grad=True)
    assert kept_bytes(lambda: torch.sparse.mm(matrix, x)) == 8 * ITEM + 2 * 8 * 8


# ---- Right numbers


def test_planning_on_fake_tensors_is_no_work(tmp_path):
    dist = torch.distributed
    dist.init_process_group("gloo", init_method=f"file://{tmp_path / 'store'}", rank=0, world_size=1)
    try:
        mesh = dist.init_device_mesh("cpu", (1,))
        shard = torch.distributed.tensor.Shard
        a = torch.distributed.tensor.distribute_tensor(randn(8, 8), mesh, [shard(0)])
        b = torch.distributed.tensor.distribute_tensor(randn(8, 9), mesh, [shard(1)])
        costs = [count(lambda: a @ b) for _ in range(2)]
        assert [cost.flops for cost in costs] == [2 * 8 * 8 * 9] * 2
        assert costs[0] == costs[1]
    finally:
        dist.destroy_process_group()


def test_work_on_fake_tensors_alone_is_counted():
    def inside() -> Tensor:
        with torch._subclasses.FakeTensorMode():
            return square()

    assert count(inside).flops == PRODUCT
    with torch._subclasses.FakeTensorMode():
        assert count(square).flops == PRODUCT


@pytest.mark.parametrize("key_heads", [1, 2, 8])
@pytest.mark.parametrize("tokens", [7, 8192])
def test_decoding_attention_is_what_the_budget_has(key_heads, tokens):
    config = Config("one block", 1, 512, 8, 10, tokens, key_heads=key_heads, family="Llama")
    boxes = block_costs(config, 1, tokens, decode=True)
    q, k = randn(1, 8, 1, 64), randn(1, key_heads, tokens, 64)
    cost = count(lambda: F.scaled_dot_product_attention(q, k, k, enable_gqa=True))
    assert not cost.uncounted
    assert cost.flops == sum(box.flops for box in boxes if box.kernel == "attention")
    assert cost.flops == 4 * 8 * tokens * 64 + 6 * 8 * tokens - 2 * 8


IMAGE, SIGNAL = (1, 1, 16, 16), (1, 1, 16)
FREE = {
    "reflect": lambda: F.pad(torch.ones(IMAGE), (8, 8, 1, 2), "reflect"),
    "reflect, one dimension": lambda: F.pad(torch.ones(SIGNAL), (8, 8), "reflect"),
    "replicate": lambda: F.pad(torch.ones(IMAGE), (8, 8, 1, 2), "replicate"),
    "circular": lambda: F.pad(torch.ones(IMAGE), (8, 8, 1, 2), "circular"),
    "constant": lambda: F.pad(torch.ones(IMAGE), (8, 8, 1, 2)),
    "nearest": lambda: F.interpolate(torch.ones(IMAGE), scale_factor=2),
    "nearest-exact": lambda: F.interpolate(torch.ones(SIGNAL), scale_factor=3, mode="nearest-exact"),
    "embedding": lambda: F.embedding(torch.tensor([1, 2]), torch.ones(5, 3)),
    "index": lambda: torch.ones(5, 3)[torch.tensor([1, 2])],
    "where": lambda: torch.where(torch.ones(5, dtype=torch.bool), 1.0, 0.0),
    "masked_fill": lambda: torch.ones(5).masked_fill(torch.ones(5, dtype=torch.bool), 0.0),
    "tril": lambda: torch.ones(5, 5).tril(),
    "roll": lambda: torch.ones(5, 5).roll(1),
    "unfold": lambda: F.unfold(torch.ones(IMAGE), 3),
    "pixel_shuffle": lambda: F.pixel_shuffle(torch.ones(1, 4, 2, 2), 2),
    "packing": lambda: nn.utils.rnn.pack_padded_sequence(torch.ones(4, 2, 3), torch.tensor([4, 2])),
    "packing and padding": lambda: nn.utils.rnn.pad_packed_sequence(
        nn.utils.rnn.pack_padded_sequence(torch.ones(2, 4, 3), torch.tensor([4, 1]), batch_first=True)
    ),
}


@pytest.mark.parametrize("name", FREE)
def test_choosing_padding_and_indexing_are_free(name):
    cost = count(FREE[name])
    assert (cost.flops, cost.uncounted) == (0, {})


ADDED = {
    # name: forward, the shape that it takes, numbers that the backward pass adds to what is there
    "embedding": (lambda table: F.embedding(torch.tensor([0, 1, 2]), table), (5, 3), 3 * 3),
    "index": (lambda table: table[torch.tensor([0, 0])], (5, 3), 2 * 3),
    "index_select": (lambda table: table.index_select(0, torch.tensor([0, 0])), (5, 3), 2 * 3),
    "gather": (lambda table: table.gather(0, torch.tensor([[0, 0, 1]])), (5, 3), 3),
    "reflect": (lambda image: F.pad(image, (8, 8), "reflect"), SIGNAL, 32),
    "replicate": (lambda image: F.pad(image, (8, 8), "replicate"), SIGNAL, 32),
    "nearest": (lambda image: F.interpolate(image, scale_factor=2), SIGNAL, 32),
}


@pytest.mark.parametrize("name", ADDED)
def test_the_backward_of_choosing_adds_what_it_brings(name):
    forward, shape, added = ADDED[name]
    x = randn(*shape, grad=True)
    out = forward(x)
    grad = torch.ones_like(out)
    cost = count(lambda: out.backward(grad))
    assert (cost.flops, cost.uncounted) == (added, {})


def copies(run: Callable[[], Any]) -> int:
    """What the profiler sees, also inside of ops."""
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        run()
    return sum(event.count for event in seen.key_averages() if event.key == "aten::clone")


TURNED = torch.rand(4, 64, 16).mT
COPYING = {
    # name: run, clones that the profiler sees, those that are counted
    "bmm of strided rows": (lambda: torch.rand(8, 128, 512)[:, :, ::2] @ torch.rand(8, 256, 64), 8, 0),
    "bmm of a turned batch": (lambda: torch.rand(8, 8, 12).mT @ torch.rand(8, 8, 4), 0, 0),
    "Linear, turned, with gradients": (lambda: nn.Linear(64, 32)(TURNED), 1, 1),
    "Linear, turned, without": (lambda: nn.Linear(64, 32).requires_grad_(False)(TURNED), 0, 0),
}


@pytest.mark.parametrize("name", COPYING)
def test_copies_are_seen_where_they_are_ops_of_their_own(name):
    run, profiled, counted = COPYING[name]
    assert copies(run) == profiled
    assert sum(row.calls for row in count(run).ops if row.op == "clone") == counted


# ---- Time


LOOPS = {
    "rows": lambda x, h: [h.add_(row) for row in x],
    "columns": lambda x, h: [x[:, t].sum() for t in range(x.shape[0])],
    "windows": lambda x, h: [x[t : t + 8].sum() for t in range(x.shape[0])],
    "a cache that fills": lambda x, h: [x[: t + 1].sum() for t in range(x.shape[0])],
    "corners": lambda x, h: [x[: t + 1, : x.shape[1] - t].sum() for t in range(x.shape[0])],
    "writing rows": lambda x, h: [x[t].copy_(h) for t in range(x.shape[0])],
}


@pytest.mark.parametrize("name", LOOPS)
def test_four_times_the_views_take_about_four_times_the_time(name):
    def seconds(rows: int) -> float:
        x, h = torch.zeros(rows, rows, device="meta"), torch.zeros(rows, device="meta")
        start = time.thread_time()
        count(LOOPS[name], x, h)
        return time.thread_time() - start

    seconds(10)
    short = min(seconds(125) for _ in range(3))
    assert min(seconds(500) for _ in range(3)) < 8 * short  # were it the square, it would be 16


# ---- Products and steps in one op, against the same without it


def products(fn: Callable[..., Any], *args: Any) -> float:
    """What PyTorch's own counter counts: products alone."""
    with FlopCounterMode(display=False) as counter:
        fn(*args)
    return counter.get_total_flops()


def counted(fn: Callable[..., Any], *args: Any) -> float:
    cost = count(fn, *args)
    assert not cost.uncounted
    return cost.flops


RECURRENT = {
    # name: layer, FLOPs for each number of the state beside the products and the biases
    "LSTM": (lambda: nn.LSTM(8, 16), 22),
    "LSTM, two layers": (lambda: nn.LSTM(8, 16, 2), 22),
    "LSTM, both directions": (lambda: nn.LSTM(8, 16, 2, bidirectional=True), 22),
    "LSTM, no bias": (lambda: nn.LSTM(8, 16, bias=False), 22),
    "LSTM, batch first": (lambda: nn.LSTM(8, 16, batch_first=True), 22),
    "LSTM, projected": (lambda: nn.LSTM(8, 16, proj_size=4), 22),
    "GRU": (lambda: nn.GRU(8, 16, 2, bidirectional=True), 16),
    "RNN": (lambda: nn.RNN(8, 16, 2), 2),
}


@pytest.mark.parametrize("name", RECURRENT)
def test_recurrent_layers_cost_the_same_in_one_op_in_many_and_packed(name):
    """Two FLOPs for each weight and row, one for each bias, and what the cell does."""
    make, each = RECURRENT[name]
    layer, x = make(), randn(4, 3, 8, grad=True)
    rows, states = 4 * 3, layer.num_layers * layer.hidden_size * (2 if layer.bidirectional else 1)
    sizes = {
        kind: sum(p.numel() for name, p in layer.named_parameters() if kind in name) for kind in ("weight", "bias")
    }
    whole = counted(layer, x)
    assert whole == rows * (2 * sizes["weight"] + sizes["bias"] + each * states)

    def step() -> None:
        layer(x)[0].sum().backward()

    training = counted(step)
    with torch.backends.mkldnn.flags(enabled=False):
        assert whole == counted(layer, x)
        assert training == pytest.approx(counted(step), rel=0.1)
    layer.batch_first = False
    packed = nn.utils.rnn.pack_padded_sequence(randn(5, 3, 8), torch.tensor([5, 4, 3]))
    assert counted(layer, packed) == whole


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_an_encoder_costs_the_same_on_its_fast_path(norm_first, activation):
    x = randn(3, 5, 8)
    layer = encoder(norm_first=norm_first, activation=activation, dropout=0.0)
    slow = counted(layer, x)
    with torch.no_grad():
        fast = count(layer.eval(), x)
    assert fast.flops == slow
    assert not fast.uncounted
    if not norm_first:
        assert {row.op for row in fast.ops} == {"_transformer_encoder_layer_fwd"}


@pytest.mark.parametrize("need_weights", [False, True])
def test_multihead_attention_costs_the_same_on_its_fast_path(need_weights):
    x, layer = randn(3, 5, 8), nn.MultiheadAttention(8, 2, batch_first=True)
    slow = counted(lambda: layer(x, x, x, need_weights=False))
    with torch.no_grad():
        fast = counted(lambda: layer.eval()(x, x, x, need_weights=need_weights))
    assert fast == slow + (3 * 2 * 5 * 5 if need_weights else 0)  # the mean over the heads


STEPS = {
    "AdamW": (torch.optim.AdamW, {}, 14),
    "AdamW, no decay": (torch.optim.AdamW, {"weight_decay": 0}, 13),
    "AdamW, amsgrad": (torch.optim.AdamW, {"amsgrad": True}, 15),
    "AdamW, maximize": (torch.optim.AdamW, {"maximize": True}, 15),
    "Adam": (torch.optim.Adam, {}, 13),
    "Adam, decay": (torch.optim.Adam, {"weight_decay": 0.1}, 15),
    "SGD": (torch.optim.SGD, {"lr": 0.1}, 2),
    "SGD, momentum": (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9}, 4),
    "SGD, Nesterov": (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True}, 6),
    "SGD, dampening, decay": (
        torch.optim.SGD,
        {"lr": 0.1, "momentum": 0.9, "dampening": 0.1, "weight_decay": 0.1},
        7,
    ),
    "Adagrad": (torch.optim.Adagrad, {}, 8),
    "Adagrad, decay": (torch.optim.Adagrad, {"weight_decay": 0.1}, 10),
}


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("name", STEPS)
def test_a_step_of_an_optimizer_costs_the_same_per_weight_in_every_form(name, fused):
    kind, settings, each = STEPS[name]
    weights = [nn.Parameter(torch.ones(n, 1000)) for n in (1, 2)]
    for weight in weights:
        weight.grad = torch.ones_like(weight)
    optimizer = kind(weights, **settings, **({"fused": True} if fused else {"foreach": False}))
    optimizer.step()
    assert counted(optimizer.step) // 3000 == each


GROUPS = {
    # name: shapes of the two factors, where groups end, FLOPs
    "rows": ((16, 32), (2, 32, 8), [4, 16], 2 * 16 * 32 * 8),
    "stack": ((2, 16, 32), (2, 32, 8), None, 2 * 2 * 16 * 32 * 8),
    "columns": ((2, 16, 32), (32, 24), [8, 24], 2 * 16 * 32 * 24),
    "sums": ((16, 32), (32, 24), [8, 32], 2 * 16 * 32 * 24),
}


@pytest.mark.parametrize("name", GROUPS)
def test_a_grouped_product_takes_every_element_into_one_group(name):
    left, right, ends, expected = GROUPS[name]
    a, b = (torch.ones(shape, dtype=torch.bfloat16) for shape in (left, right))
    offsets = None if ends is None else torch.tensor(ends, dtype=torch.int32)
    assert counted(lambda: torch._grouped_mm(a, b, offs=offsets)) == expected


def test_the_gradients_of_a_grouped_product_cost_twice_the_product():
    a, b = (torch.ones(*shape, dtype=torch.bfloat16, requires_grad=True) for shape in ((16, 32), (2, 32, 8)))
    y = torch._grouped_mm(a, b, offs=torch.tensor([8, 16], dtype=torch.int32))
    grad = torch.ones_like(y)
    assert counted(lambda: y.backward(grad)) == 2 * 2 * 16 * 32 * 8


def dynamically_quantised() -> nn.Module:
    return torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(32, 16)), {nn.Linear})


def meta(*shape: int, dtype: torch.dtype = torch.bfloat16) -> Tensor:
    return torch.empty(shape, dtype=dtype, device="meta")


def int4_weights() -> Tensor:
    with torch._subclasses.FakeTensorMode():
        x, scales = torch.ones(4, 32, dtype=torch.bfloat16), torch.ones(1, 16, 2, dtype=torch.bfloat16)
        return aten._weight_int4pack_mm(x, torch.ones(2, 1, 32, 4, dtype=torch.int32), 32, scales)


aten = torch.ops.aten
QUANTISED = {
    "int8 weights": lambda: aten._weight_int8pack_mm(
        torch.ones(4, 32, dtype=torch.bfloat16), torch.ones(16, 32, dtype=torch.int8), torch.ones(16).bfloat16()
    ),
    "int4 weights": lambda: int4_weights(),
    "int4 weights, for CPUs": lambda: aten._weight_int4pack_mm_for_cpu(
        meta(4, 32), meta(16, 16, dtype=torch.uint8), 32, meta(1, 16, 2)
    ),
    "int4 weights, dynamic": lambda: aten._dyn_quant_matmul_4bit(
        meta(4, 32, dtype=torch.float32), meta(99, dtype=torch.uint8), 32, 32, 16
    ),
    "dynamic int8": lambda: dynamically_quantised()(torch.ones(4, 32)),
    "dynamic int8, ReLU": lambda: torch.ops.quantized.linear_relu_dynamic(
        torch.ones(4, 32), dynamically_quantised()[0]._packed_params._packed_params
    ),
    "int8 by int8": lambda: torch._int_mm(torch.ones(4, 32, dtype=torch.int8), torch.ones(32, 16, dtype=torch.int8)),
}


@pytest.mark.parametrize("name", QUANTISED)
def test_a_product_of_quantised_numbers_is_2mnk(name):
    cost = count(QUANTISED[name])
    assert (
        sum(row.flops for row in cost.ops if "mm" in row.op or "linear" in row.op or "matmul" in row.op)
        == 2 * 4 * 32 * 16
    )


def test_bilinear_is_two_products():
    x, y, layer = randn(3, 8, grad=True), randn(3, 7, grad=True), nn.Bilinear(8, 7, 4)
    forward = 4 * 3 * 7 * (2 * 8 + 2) + 3 * 4  # x by each matrix, by y, and the bias
    assert counted(layer, x, y) == forward
    training = counted(lambda: layer(x, y).sum().backward())
    assert 3 * forward < training < 6 * forward


NORMS = {1: 15, 2: 16, 3: 24, float("inf"): 15}  # of 8 numbers: |x|, powers, sum or maximum, root


@pytest.mark.parametrize("p", NORMS)
def test_a_norm_costs_its_steps(p):
    x = randn(8)
    assert counted(x.norm, p) == counted(torch.linalg.vector_norm, x, p) == NORMS[p]
    assert counted(torch._foreach_norm, [x, x], p) == 2 * NORMS[p]


@pytest.mark.parametrize("p", [0.0, 1.0, 1.5, 2.0, float("inf")])
def test_pairwise_distances_cost_each_pair_once(p):
    x, y, pairs, d = randn(9, 8), randn(5, 8), 9 * 5, 8
    per_pair = count(lambda: torch.linalg.vector_norm(x - x.flip(0), p, dim=1)).flops // 9
    assert counted(torch.cdist, x, y, p) // pairs == per_pair
    assert counted(lambda: F.pdist(x, p)) // 36 == per_pair
    assert counted(lambda: F.pairwise_distance(x, x, p)) // 9 == pytest.approx(per_pair, abs=d)
    x.requires_grad_()
    if p in (1.0, 2.0):
        assert counted(lambda: torch.cdist(x, y, p).sum().backward()) > 2 * pairs * d


CONVOLUTIONS = {
    # name: further arguments after image and weight, more FLOPs per output
    "cudnn_convolution": (([0, 0], [1, 1], [1, 1], 1, False, False, False), 0),
    "cudnn_convolution_relu": ((None, [1, 1], [0, 0], [1, 1], 1), 1),
    "miopen_convolution": ((None, [0, 0], [1, 1], [1, 1], 1, False, False), 0),
    "mkldnn_convolution": ((None, [0, 0], [1, 1], [1, 1], 1), 0),
    "_slow_conv2d_forward": (([3, 3], None, [1, 1], [0, 0]), 0),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_the_convolutions_of_every_library_have_a_rule(name):
    from helpers import flops

    rest, more = CONVOLUTIONS[name]
    image, weight, out = meta(2, 4, 9, 9), meta(6, 4, 3, 3), meta(2, 6, 7, 7)
    op = flops.op_of(getattr(aten, name).default)
    assert flops.flops(op, (image, weight, *rest), {}, out) == out.numel() * (2 * 4 * 9 + more)


FORWARD_MODE = {
    "jvp": lambda x: torch.func.jvp(lambda t: t.sin() * t, (x,), (x,)),
    "jvp of a product": lambda x: torch.func.jvp(lambda t: t @ t, (x,), (x,)),
    "jacfwd": lambda x: torch.func.jacfwd(lambda t: t.exp().sum(0))(x),
    "linearize": lambda x: torch.func.linearize(lambda t: t.sin(), x)[1](x),
    "dual numbers": lambda x: dual_square(x),
    "hessian": lambda x: torch.func.hessian(lambda t: (t * t).sum())(x[0]),
    "vmap": lambda x: torch.vmap(torch.dot)(x, x),
    "gradients by example": lambda x: torch.vmap(torch.func.grad(lambda t: (t * t).sum()))(x),
}


def dual_square(x: Tensor) -> Tensor:
    dual = torch.autograd.forward_ad
    with dual.dual_level():
        return dual.unpack_dual(dual.make_dual(x, torch.ones_like(x)) ** 2).tangent


@pytest.mark.parametrize("name", FORWARD_MODE)
def test_what_only_asks_about_tensors_is_nothing(name):
    cost = count(FORWARD_MODE[name], randn(4, 4))
    assert cost.flops > 0
    assert not cost.uncounted


def test_the_function_may_have_an_argument_of_any_name():
    assert count(lambda fn, run: fn + run, fn=randn(3), run=1).flops == 3
