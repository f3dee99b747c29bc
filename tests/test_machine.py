"""What the machine's ceilings and ops run, report and refuse, with times that the test invents."""

import dataclasses
import math
import types

import psutil
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from helpers import counting, machine, timing
from helpers.timing import Timing


@pytest.fixture
def stopwatch(monkeypatch):
    """In place of `timing.measure`: runs each call once, asks `seconds(call, inputs, threads)` how long it took."""
    found = types.SimpleNamespace(now=0.0, asked=[], seconds=None, disturbed=lambda threads: False)

    def measure(fn, *, inputs=(), seconds, threads):
        took = found.seconds(fn, inputs, threads)
        found.asked.append((took, seconds, threads))
        found.now += max(took, seconds)
        return Timing(took, took, took, 3, threads=threads, disturbed=found.disturbed(threads))

    monkeypatch.setattr(timing, "measure", measure)
    monkeypatch.setattr(machine, "perf_counter", lambda: found.now)
    return found


def flops(fn):
    with FlopCounterMode(display=False) as counter:
        fn()
    return counter.get_total_flops()


RATES = {64: 2e9, 128: 4e9, 256: 3e9, 512: 1e9}


@pytest.fixture
def matmuls(stopwatch):
    """Matmuls at a rate by size, by one thread at 0.4 of it; `sizes` are those that ran."""

    def seconds(fn, inputs, threads):
        size = round((flops(fn) / 2) ** (1 / 3))
        stopwatch.sizes.append(size)
        return 2 * size**3 / RATES[size] / (1 if threads == 2 else 0.4)

    stopwatch.seconds, stopwatch.sizes = seconds, []
    usual = {"sizes": (64, 128, 256, 512), "threads": 2, "seconds": 10}
    return lambda **more: machine.peak("float32", "cpu", **usual | more)


def test_the_best_size_wins_and_the_three_best_are_measured_twice(matmuls, stopwatch):
    found = matmuls()
    assert (found.flop_per_s, found.size, found.dtype) == (pytest.approx(4e9), 128, "float32")
    assert stopwatch.sizes[:4] == [64, 128, 256, 512] and sorted(stopwatch.sizes[4:]) == [64, 128, 256]
    assert stopwatch.now == pytest.approx(10, rel=0.2) and not found.disturbed


@pytest.mark.parametrize(
    ("seconds", "free", "tried"),
    [
        (0.3, 2**40, {64, 128, 256}),  # eight of 512 would take a second
        (10, 2 * 3 * 4 * 128**2, {64, 128}),
        (1e-9, 0, {64}),  # one always is
    ],
)
def test_a_size_that_takes_too_long_or_too_much_memory_is_not_tried(
    matmuls, stopwatch, monkeypatch, seconds, free, tried
):
    monkeypatch.setattr(machine, "free_memory", lambda where: free)
    matmuls(seconds=seconds)
    assert set(stopwatch.sizes) == tried


@pytest.mark.parametrize(("together", "threads", "rate"), [(1, 2, 4e9), (0.1, 1, 0.4 * 4e9)])
def test_where_others_have_the_cores_one_thread_may_be_the_best(matmuls, stopwatch, together, threads, rate):
    alone = stopwatch.seconds
    stopwatch.disturbed = lambda threads: threads == 2
    stopwatch.seconds = lambda fn, its, n: alone(fn, its, n) / (together if n == 2 else 1)
    found = matmuls()
    assert found.disturbed and (found.timing.threads, found.flop_per_s) == (threads, pytest.approx(rate))
    assert not matmuls(threads=1).disturbed


def test_a_peak_is_disturbed_where_time_ran_out_before_a_larger_size(matmuls, stopwatch):
    plain = stopwatch.seconds
    stopwatch.seconds = lambda fn, *its: setattr(stopwatch, "now", stopwatch.now + 4) or plain(fn, *its)
    found = matmuls()
    assert (found.size, found.disturbed) == (128, True) and repr(found).endswith(", disturbed)")
    assert 512 not in stopwatch.sizes[:-1]  # but at last by one thread


def test_a_peak_runs_on_the_device_and_by_the_setting_of_its_dtype(stopwatch):
    ran = []

    def seconds(fn, inputs, threads):
        out = fn()
        assert fn() is out  # written into one memory
        ran.append((out.dtype, out.device.type, torch.get_float32_matmul_precision()))
        return 1.0

    stopwatch.seconds, before = seconds, torch.get_float32_matmul_precision()
    for dtype in ("tfloat32", torch.float32, "bfloat16"):
        machine.peak(dtype, "meta", sizes=(32,), seconds=1)
        assert torch.get_float32_matmul_precision() == before
    assert set(ran) == {
        (torch.float32, "meta", "high"),
        (torch.float32, "meta", "highest"),
        (torch.bfloat16, "meta", "highest"),
    }


def test_float8_is_multiplied_with_scales():
    found = machine.peak("float8_e4m3fn", "cpu", sizes=(32,), seconds=0.01)
    assert (found.dtype, found.size) == ("float8_e4m3fn", 32)


@pytest.mark.parametrize("dtype", [torch.int32, "bool", "floaty", "tfloat32", 3], ids=str)
def test_what_is_no_float_has_no_peak(dtype):
    with pytest.raises(ValueError, match="give a floating-point dtype such as bfloat16"):
        machine.peak(dtype, "cpu")


def test_what_cannot_be_multiplied_has_no_peak(monkeypatch):

    def refuse(*args, **more):
        raise NotImplementedError('"addmm" not implemented for this\nmore')

    monkeypatch.setattr(torch, "mm", refuse)
    with pytest.raises(ValueError, match=r'cannot multiply \S+float32 matrices of 32 × 32: "addmm" not impl'):
        machine.peak(torch.float32, "cpu", sizes=(32,))


@pytest.mark.parametrize(("nbytes", "kernels"), [(2**16, {"read"}), (2**24, {"read", "dot", "copy", "add"})])
@pytest.mark.parametrize("fast", ["read", "dot", "copy", "add"])
def test_bandwidth_counts_the_bytes_that_the_best_kernel_moves(stopwatch, nbytes, kernels, fast):
    """A sum of ones, or of their products, has read four bytes for each; a dot product reads as many again."""
    moved, used = {}, []

    def seconds(fn, inputs, threads):
        turns = [next(inputs) for _ in range(8)]
        offsets = [its[0].storage_offset() for its in turns]
        assert len(set(offsets)) == max(1, nbytes // 2**23)  # slices take turns
        assert nbytes < 2**24 or used[-1:] != offsets[:1]  # also from one kernel to the next
        used.extend(offsets)
        assert {one.untyped_storage().nbytes() for its in turns for one in its} == {nbytes}
        out, count = fn(*turns[0]), len(turns[0])
        kind = "dot" if fn is torch.dot else ("read", "copy", "add")[count - 1]
        ones = {"read": 4, "dot": 8}.get(kind, 0)
        moved.setdefault(kind, float(out.sum()) * ones or sum(one.nbytes for one in turns[0]))
        assert ones or out is turns[0][-1 if kind == "add" else 1]
        return 1.0 if kind == fast or fast not in kernels else 5.0

    stopwatch.seconds = seconds
    found = machine.bandwidth(nbytes, "cpu", threads=2)
    assert set(moved) == kernels and found.nbytes == nbytes
    assert found.byte_per_s == pytest.approx(moved[fast] if fast in kernels else moved["read"])


def test_a_disturbed_bandwidth_is_tried_again(monkeypatch):
    late, quiet, more = (types.SimpleNamespace(disturbed=disturbed) for disturbed in (True, False, True))
    tries = iter([late, quiet, more])
    monkeypatch.setattr(machine, "sweep", lambda *args, **options: [next(tries)])
    assert machine.bandwidth(2**12, "cpu") is quiet and next(tries) is more


@pytest.mark.parametrize("nbytes", [0, -1, 4095, 2**26])
def test_a_working_set_is_neither_all_overhead_nor_most_of_what_is_free(monkeypatch, nbytes):
    monkeypatch.setattr(machine, "free_memory", lambda where: 2**26)
    with pytest.raises(ValueError, match="a working set has from 4 KiB to half of the 64 MiB that are free on cpu"):
        machine.bandwidth(nbytes, "cpu")


@pytest.mark.parametrize("cache, free, size", [(2**20, 2**40, 2**30), (2**29, 2**40, 2**31), (2**20, 2**31 + 5, 2**29)])
def test_main_memory_is_more_than_any_cache_and_no_more_than_a_quarter(monkeypatch, stopwatch, cache, free, size):
    monkeypatch.setattr(machine, "caches", lambda where: {"L1": 1, "L2": cache})
    monkeypatch.setattr(machine, "free_memory", lambda where: free)
    monkeypatch.setattr(torch, "ones", torch.empty)  # nothing is read here
    stopwatch.seconds = lambda *its: 1.0
    assert machine.bandwidth(where="cpu").nbytes == size
    assert [one.nbytes for one in machine.sweep("cpu")] == [2**p for p in range(14, size.bit_length())]


def test_a_sweep_is_one_cores_and_keeps_the_best_of_its_rounds(monkeypatch, stopwatch):
    monkeypatch.setattr(machine, "free_memory", lambda where: 2**18)
    times = iter([1.0, 1.0, 1.0, 0.5, 0.98, 1.0, 0.99, 0.25, 1.0])  # rounds of three sizes
    quiet = iter([1, 1, 1, 1, 1, 1, 1, 0, 1])
    stopwatch.seconds, stopwatch.disturbed = lambda *its: next(times), lambda threads: not next(quiet)
    found = machine.sweep("cpu", seconds=9)
    assert [(one.nbytes, one.timing.low, one.disturbed) for one in found] == [
        (2**14, 0.5, False),
        (2**15, 0.25, True),
        (2**16, 1.0, False),
    ]
    assert [threads for _, _, threads in stopwatch.asked] == [1] * 9
    assert sum(seconds for _, seconds, _ in stopwatch.asked) == pytest.approx(9)


SMALL = machine.ops("float64", rows=128, width=96)


@pytest.mark.parametrize("op", SMALL, ids=lambda op: op.name)
def test_formulas_agree_with_the_count(op):
    cost = counting.count(op.run, *(torch.rand(shape, dtype=getattr(torch, op.dtype)) for shape in op.shapes))
    # Of attention the formula has the matmuls alone.
    assert op.flops == pytest.approx(cost.flops, rel=0.08 if op.name == "attention" else 0)
    assert op.bytes == (cost.bytes_eager if "eager" in op.name else cost.bytes_ideal)
    assert not cost.uncounted and op.intensity == op.flops / op.bytes


def test_there_are_fourteen_ops_and_half_the_itemsize_halves_their_bytes():
    names = [op.name for op in machine.ops()]
    assert len(names) == len(set(names)) == 14
    short = machine.ops("bfloat16", rows=128, width=96)
    assert [(op.flops, op.bytes) for op in SMALL] == [(op.flops, 4 * op.bytes) for op in short]


def test_no_cache_has_the_inputs_of_an_op(monkeypatch, stopwatch):
    monkeypatch.setattr(machine, "caches", lambda where: {"L2": 2**20})
    monkeypatch.setattr(machine, "free_memory", lambda where: 2**24)
    seen = []

    def seconds(fn, inputs, threads):
        fn(*inputs[0])
        starts = {one.data_ptr() for its in inputs for one in its}
        assert len(starts) == sum(map(len, inputs))
        seen.append(tuple(tuple(one.shape) for one in inputs[-1]))
        # As much as fits: main memory is 4 MiB here.
        assert 2**21 < sum(one.nbytes for its in inputs for one in its) <= 2**22
        return float(len(seen))

    stopwatch.seconds = seconds
    found = machine.time_ops(machine.ops(rows=128)[:10], "cpu", seconds=20, threads=2)
    assert seen == [op.shapes for op in machine.ops(rows=128)[:10]]
    assert [run.low for run in found] == list(range(1, 11)) and {s for _, s, _ in stopwatch.asked} == {2.0}
    with pytest.raises(ValueError, match=r"the inputs of ReLU are too much for the 4 MiB that there are"):
        machine.time_ops(machine.ops(rows=2048), "cpu")


def test_a_result_is_written_where_none_of_the_latest_lies(stopwatch, monkeypatch):
    monkeypatch.setattr(machine, "caches", lambda where: {"L2": 2**20})
    monkeypatch.setattr(machine, "free_memory", lambda where: 2**24)
    places = []

    def run(x):
        result = torch.relu(x)
        places.append(result.data_ptr())
        return result

    def seconds(fn, inputs, threads):
        for one in inputs[:96]:
            fn(*one)
        return 1.0

    stopwatch.seconds = seconds
    machine.time_ops([dataclasses.replace(machine.ops(rows=128)[0], run=run)], "cpu")
    latest = 2 * 2**20 // (128 * 128 * 4)  # of twice the cache
    assert len(places) > 2 * latest
    for start in range(1, len(places) - latest):  # the first was an example, and is given up
        assert len({*places[start : start + latest]}) == latest


def test_a_disturbed_op_has_the_time_of_one_thread_where_that_is_less(stopwatch, monkeypatch):
    monkeypatch.setattr(machine, "free_memory", lambda where: 2**24)
    stopwatch.seconds, stopwatch.disturbed = (lambda fn, inputs, threads: {1: 2.0, 2: 9.0}[threads]), lambda n: n == 2
    (run,) = machine.time_ops(machine.ops(rows=128)[:1], "cpu", threads=2)
    assert (run.low, run.threads, run.disturbed) == (2.0, 1, True)
    assert [threads for *_, threads in stopwatch.asked] == [2, 1, 2, 1]  # as long as it is disturbed, once more
    assert not machine.time_ops(machine.ops(rows=128)[:1], "cpu", threads=1)[0].disturbed


@pytest.fixture
def system(monkeypatch, tmp_path):
    """A folder in place of the root of the file system, empty at first; returns a function that writes a file in it."""

    def write(path, text):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(text if isinstance(text, bytes) else text.encode())

    monkeypatch.setattr(machine, "Path", lambda path: tmp_path / path.removeprefix("/"))
    monkeypatch.delenv("MEM_LIMIT", raising=False)
    return write


def test_free_memory_is_what_a_hub_or_a_container_leaves(system, monkeypatch):
    monkeypatch.setattr(psutil, "virtual_memory", lambda: types.SimpleNamespace(available=1000))
    monkeypatch.setattr(psutil.Process, "memory_info", lambda process: types.SimpleNamespace(rss=100))
    assert machine.free_memory("cpu") == 1000
    monkeypatch.setenv("MEM_LIMIT", "700")
    system("sys/fs/cgroup/memory.max", "max\n")
    assert machine.free_memory("cpu") == 600
    system("sys/fs/cgroup/memory/memory.limit_in_bytes", "300\n")
    assert machine.free_memory("cpu") == 200
    system("sys/fs/cgroup/memory.max", "99\n")  # less than it has: the system will take it away
    assert machine.free_memory("cpu") == 0


def test_caches_are_those_that_a_core_sees(system):
    told = "Data 1 48K", "Instruction 1 32K", "Unified 2 2048K", "Unified 7 x", "Unified 3 9K"
    rows = [line.split() for line in told]
    for index, row in enumerate(rows):
        for key, text in zip(("type", "level", "size"), row, strict=True):
            system(f"sys/devices/system/cpu/cpu0/cache/index{index}/{key}", f"{text}\n")
    assert machine.caches("cpu") == {"L1": 48 * 1024, "L2": 2048 * 1024, "L3": 9 * 1024}


def test_in_a_cache_rows_take_what_a_few_of_them_take_beyond_their_launch(stopwatch, monkeypatch):
    monkeypatch.setattr(machine, "caches", lambda where: {"L2": 2**20, "L3": 2**23})
    work = machine.ops("float32", 2048)
    stopwatch.seconds = lambda fn, inputs, threads: 1 + inputs[0][0].numel() / 2**14
    # 32 of 2048 rows, in and out, are half of the cache
    assert machine.time_from_cache(work[:7], 2048) == pytest.approx([1 + 128 * 2] * 7, rel=0.001)
    stopwatch.seconds = lambda fn, inputs, threads: 1.0 + 0.9 * (inputs[0][0].numel() > 1)
    softmax, small, large = (op for op in work if op.name in ("softmax", "matmul 64", "matmul 1024"))
    by_launch, in_cache, too_large = machine.time_from_cache((softmax, small, large), 2048)
    assert in_cache == 1.9 and math.isnan(by_launch) and math.isnan(too_large)


@pytest.mark.parametrize(("disturbed", "tries"), [(False, 1), (True, 3)])
def test_a_disturbed_time_from_a_cache_is_measured_again(stopwatch, monkeypatch, disturbed, tries):
    monkeypatch.setattr(machine, "caches", lambda where: {"L2": 2**20, "L3": 2**23})
    (small,) = (op for op in machine.ops("float32", 2048) if op.name == "matmul 64")
    stopwatch.seconds, stopwatch.disturbed = (lambda *asked: 1.0), lambda threads: disturbed
    machine.time_from_cache((small,), 2048)
    assert len(stopwatch.asked) == 3 * tries


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_gpu_is_described_by_its_driver_and_measured():
    assert machine.device() == "cuda" and machine.name() == torch.cuda.get_device_name()
    assert machine.caches()["L2"] > 2**20 and machine.free_memory() > 2**30
    narrow, wide = (machine.peak(dtype, "cuda", seconds=1).flop_per_s for dtype in ("bfloat16", "float64"))
    assert narrow > wide
    assert machine.sweep("cuda", seconds=1)[-1].byte_per_s > 1e10
    assert all(run.low > 0 for run in machine.time_ops(machine.ops("bfloat16", 8192), "cuda"))
