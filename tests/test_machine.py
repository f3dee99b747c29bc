"""What `peak` runs and reports, with a fake stopwatch where time decides; and that it is near what plain torch gets."""

import time
import types

import pytest
import torch

from helpers import machine
from helpers.timing import Timing


@pytest.fixture
def stopwatch(monkeypatch):
    """Matmuls that run at a rate by size, and a clock that they move; nothing is multiplied."""

    class Stopwatch:
        def __init__(self):
            self.now, self.asked = 0.0, []
            self.rates = {64: 1e9, 128: 4e9, 256: 3e9, 512: 2e9}

        def read(self):
            return self.now

        def time(self, size, label, dtype, where, seconds):
            self.asked.append(size)
            once = 2 * size**3 / self.rates[size]
            runs = max(1, int(seconds / once))
            self.now += once * (runs + 1)
            return Timing(once, once, once, runs)

    found = Stopwatch()
    monkeypatch.setattr(machine, "_time", found.time)
    return found


def run(stopwatch, seconds, sizes=(64, 128, 256, 512)):
    return machine.peak(torch.float32, "cpu", seconds=seconds, sizes=sizes, now=stopwatch.read)


def test_the_best_size_wins_and_the_three_best_are_measured_twice(stopwatch):
    found = run(stopwatch, seconds=10)
    assert (found.flop_per_s, found.size, found.dtype) == (pytest.approx(4e9), 128, "float32")
    assert stopwatch.asked == [64, 128, 256, 512, 128, 256, 512]
    assert [size for size, _ in found.tried] == stopwatch.asked
    assert stopwatch.now == pytest.approx(10, rel=0.2)


def test_a_peak_is_that_of_the_device_and_dtype_that_are_named(stopwatch, monkeypatch):
    asked = set()

    def time(size, label, dtype, where, seconds):
        asked.add((label, dtype, where))
        return stopwatch.time(size, label, dtype, where, seconds)

    monkeypatch.setattr(machine, "_time", time)
    monkeypatch.setattr(machine, "free_memory", {torch.device("cuda"): 80e9}.__getitem__)
    monkeypatch.setattr(machine, "name", {torch.device("cuda"): "a GPU"}.__getitem__)
    found = machine.peak("tfloat32", "cuda", seconds=10, sizes=(64, 128), now=stopwatch.read)
    assert (found.device, found.dtype) == ("a GPU", "tfloat32")
    assert asked == {("tfloat32", torch.float32, torch.device("cuda"))}


def test_main_memory_is_a_quarter_of_what_is_free_on_the_device(monkeypatch):
    monkeypatch.setattr(machine, "free_memory", {torch.device("cpu"): 2**20}.__getitem__)
    assert machine._main_memory(torch.device("cpu")) == 2**18


def test_a_size_that_takes_too_long_is_not_tried(stopwatch):
    found = run(stopwatch, seconds=0.3)
    assert 512 not in stopwatch.asked and found.size == 128


def test_memory_bounds_the_sizes(stopwatch, monkeypatch):
    monkeypatch.setattr(machine, "free_memory", lambda where: 2 * 3 * 4 * 128**2)
    run(stopwatch, seconds=10)
    assert set(stopwatch.asked) == {64, 128}


def test_one_size_is_always_tried(stopwatch, monkeypatch):
    monkeypatch.setattr(machine, "free_memory", lambda where: 0)
    assert run(stopwatch, seconds=1e-9).size == 64


@pytest.fixture
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # several wait for each other, which on a busy machine takes any time
    yield
    torch.set_num_threads(before)


def test_peak_is_near_what_a_plain_loop_gets_for_the_same_size(one_thread):
    found = machine.peak(torch.float32, "cpu", seconds=1.0, sizes=(128, 256))
    a = torch.randn(found.size, found.size)
    best = min(_once(a) for _ in range(100))
    # Only a wrong count or unit could be this far off; a closer bound would be a matter of luck.
    assert 0.2 < found.flop_per_s * best / (2 * found.size**3) < 5


def _once(a):
    start = time.perf_counter()
    a @ a
    return time.perf_counter() - start


def test_the_float32_setting_is_left_as_it_was():
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("medium")
        machine.peak(torch.float32, "cpu", seconds=0.05, sizes=(32,))
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(before)


@pytest.mark.parametrize("dtype", [torch.int32, "int8", "bool", "floaty", "tfloat32", 3])
def test_what_is_no_float_has_no_peak(dtype):
    with pytest.raises(ValueError, match="give a floating-point dtype such as bfloat16"):
        machine.peak(dtype, "cpu")


def test_a_dtype_that_the_device_cannot_multiply_is_named(monkeypatch):
    def refuse(*args):
        raise NotImplementedError('"addmm" not implemented for this\nmore')

    monkeypatch.setattr(machine, "_matmul", lambda *args: refuse)
    with pytest.raises(ValueError, match=r'cannot multiply float32 matrices of 32 × 32: "addmm" not implemented for t'):
        machine.peak(torch.float32, "cpu", sizes=(32,))


def test_the_machine_has_a_name_and_memory():
    assert machine.name("cpu").strip()
    assert machine.free_memory("cpu") > 2**27
    assert machine.spec("cpu") is None
    assert machine.device() in ("cpu", "cuda")


@pytest.fixture
def system(monkeypatch, tmp_path):
    """A folder in place of the root of the file system; returns a function that writes a file in it."""

    def write(path, text):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(text if isinstance(text, bytes) else text.encode())

    monkeypatch.setattr(machine, "Path", lambda path: tmp_path / path.removeprefix("/"))
    return write


def test_the_name_of_a_cpu_is_its_model_name(system, monkeypatch):
    monkeypatch.setattr(machine.platform, "processor", lambda: "x86")
    monkeypatch.setattr(machine.platform, "machine", lambda: "amd64")
    assert machine.name("cpu") == "x86"
    system("proc/cpuinfo", "processor\t: 0\nModel Name\t:  Fast: 3 GHz \nmodel name\t: another\n")
    assert machine.name("cpu") == machine.name(torch.device("cpu")) == "Fast: 3 GHz"
    assert machine.name("meta") == "x86"  # nothing is known about it from there
    system("proc/cpuinfo", b"model name: M\xfc 1\n")  # no UTF-8
    assert machine.name("cpu") == "M\N{REPLACEMENT CHARACTER} 1"
    system("proc/cpuinfo", "processor\t: 0\n")
    assert machine.name("cpu") == "x86"
    monkeypatch.setattr(machine.platform, "processor", lambda: "")
    assert machine.name("cpu") == "amd64"
    monkeypatch.setattr(machine.platform, "machine", lambda: "")
    assert machine.name("cpu") == "cpu"


def test_free_memory_is_what_the_system_tells(system, monkeypatch):
    parts = {"SC_PHYS_PAGES": 40, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(machine.os, "sysconf", parts.__getitem__, raising=False)
    assert machine.free_memory("cpu") == 40 * 4096 // 4
    system("proc/meminfo", "MemTotal:  9 kB\nMemAvailable:   5 kB\nMemFree: 3 kB\n")
    assert machine.free_memory("cpu") == 5 * 1024
    system("proc/meminfo", "MemTotal:  9 kB\n")
    assert machine.free_memory("cpu") == 40 * 4096 // 4
    monkeypatch.delattr(machine.os, "sysconf")
    assert machine.free_memory("cpu") == 2**30


def test_free_memory_is_what_a_hub_or_a_container_leaves(system, monkeypatch):
    monkeypatch.setattr(machine.os, "sysconf", {"SC_PAGE_SIZE": 4096}.__getitem__, raising=False)
    system("proc/meminfo", "MemAvailable:   1000 kB\n")
    system("proc/self/statm", "9999 25 7 1 0 8 0\n")  # 25 pages of 4 KiB are in use
    monkeypatch.setenv("MEM_LIMIT", str(700 * 1024))
    assert machine.free_memory("cpu") == 600 * 1024
    system("sys/fs/cgroup/memory.max", "max\n")
    assert machine.free_memory("cpu") == 600 * 1024
    system("sys/fs/cgroup/memory/memory.limit_in_bytes", f"{300 * 1024}\n")
    assert machine.free_memory("cpu") == 200 * 1024
    system("sys/fs/cgroup/memory.max", f"{99 * 1024}\n")  # less than it has: the system will take it away
    assert machine.free_memory("cpu") == 0
    monkeypatch.setenv("MEM_LIMIT", "2G")  # no number of bytes: not what a hub writes
    for limit in ("memory.max", "memory/memory.limit_in_bytes"):
        system(f"sys/fs/cgroup/{limit}", f"{2**62}\n")
    assert machine.free_memory("cpu") == 1000 * 1024


def test_caches_are_those_of_all_cores_together(system, monkeypatch):
    def cache(index, kind, level, size, shared):
        told = {"type": kind, "level": level, "size": size, "shared_cpu_map": shared}
        for key, text in told.items():
            system(f"sys/devices/system/cpu/cpu0/cache/index{index}/{key}", f"{text}\n")

    monkeypatch.setattr(machine.os, "cpu_count", lambda: 48)
    cache(0, "Data", 1, "48K", "1")
    cache(1, "Instruction", 1, "32K", "1")
    cache(2, "Unified", 2, "2048K", "3")
    cache(3, "Unified", 7, "broken", "1")
    cache(4, "Unified", 3, "32768K", "ffff,ffffffff")
    assert machine.caches("cpu") == {"L1": 48 * 48 * 1024, "L2": 24 * 2048 * 1024, "L3": 32768 * 1024}
    cache(5, "Unified", 4, "1K", "0")  # shared by nobody: nonsense
    assert "L4" not in machine.caches("cpu")
    monkeypatch.setattr(machine.os, "cpu_count", lambda: None)
    assert machine.caches("cpu")["L3"] == 32768 * 1024


def test_a_gpu_is_described_by_its_driver(monkeypatch):
    told = types.SimpleNamespace(L2_cache_size=50)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", {torch.device("cuda"): "NVIDIA H100 PCIe"}.__getitem__)
    monkeypatch.setattr(torch.cuda, "mem_get_info", {torch.device("cuda"): (5, 80)}.__getitem__)
    monkeypatch.setattr(torch.cuda, "get_device_properties", {torch.device("cuda"): told}.__getitem__)
    assert machine.device() == "cuda"
    assert machine.name() == "NVIDIA H100 PCIe"
    assert machine.spec().memory == 80e9
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert machine.device() == "cpu"
    assert machine.spec("cuda").memory == 80e9
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert (machine.free_memory(), machine.caches()) == (5, {"L2": 50})
    del told.L2_cache_size
    assert machine.caches() == {}


def test_float8_is_multiplied_with_scales():
    product = machine._matmul(32, torch.float8_e4m3fn, torch.device("cpu"))()
    assert product.shape == (32, 32) and product.dtype == torch.bfloat16 and product.any()


def test_a_product_is_written_into_one_memory_of_the_device():
    for where in ("cpu", "meta"):
        call = machine._matmul(32, torch.bfloat16, torch.device(where))
        assert call() is call()
        assert (call().dtype, call().device.type) == (torch.bfloat16, where)


def test_tfloat32_is_float32_by_another_setting():
    before = torch.get_float32_matmul_precision()
    for label, setting in (("tfloat32", "high"), ("float32", "highest"), ("bfloat16", "highest")):
        with machine._float32_as(label):
            assert torch.get_float32_matmul_precision() == setting
        assert torch.get_float32_matmul_precision() == before


def test_what_a_record_measures_are_floats_and_tfloat32_where_there_is_a_matrix_unit():
    floats = {str(value).removeprefix("torch.") for value in vars(torch).values() if isinstance(value, torch.dtype)}
    assert set(machine._DTYPES["cpu"]) <= floats
    assert set(machine._DTYPES["cuda"]) - floats == {"tfloat32"}


def test_the_sizes_are_powers_of_two_and_what_lies_in_between():
    assert list(machine.SIZES) == sorted([2**p for p in range(8, 15)] + [3 * 2**p for p in range(7, 13)])


def test_what_a_matmul_needs():
    assert machine._needs(10, torch.float64) == 3 * 100 * 8
    assert machine._needs(10, torch.bfloat16) == 3 * 100 * 4  # made in float32


def test_a_peak_reads_as_a_sentence():
    timing = Timing(2.0, 1.0, 3.0, 9)
    assert repr(machine.Peak(2e12, "float32", "x", 64, timing, ())) == (
        "2 TFLOP/s in float32 on x, 64 × 64 matmul: 2 s (from 1 s to 3 s; 9 runs, 1 thread)"
    )


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("dtype", ["float32", "tfloat32", "bfloat16"])
def test_a_known_gpu_stays_below_its_spec_sheet(dtype):
    row = machine.spec("cuda")
    found = machine.peak(dtype, "cuda", seconds=2)
    assert row is None or 0.3 < found.flop_per_s / row.peak(dtype) < 1.05
