"""What `peak` runs and reports, with a fake stopwatch where time decides; and that it is near what plain torch gets."""

import time

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


def test_the_best_size_wins_and_is_measured_twice(stopwatch):
    found = run(stopwatch, seconds=10)
    assert (found.flop_per_s, found.size, found.dtype) == (pytest.approx(4e9), 128, "float32")
    assert stopwatch.asked == [64, 128, 256, 512, 128]
    assert [size for size, _ in found.tried] == stopwatch.asked
    assert stopwatch.now < 10


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


def test_peak_is_near_what_a_plain_loop_gets_for_the_same_size():
    found = machine.peak(torch.float32, "cpu", seconds=1.0, sizes=(256, 512))
    a = torch.randn(found.size, found.size)
    best = min(_once(a) for _ in range(30))
    # Only a wrong count or unit could be this far off; the shared machine makes any closer bound a matter of luck.
    assert 0.1 < found.flop_per_s * best / (2 * found.size**3) < 10


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


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("dtype", ["float32", "tfloat32", "bfloat16"])
def test_a_known_gpu_stays_below_its_spec_sheet(dtype):
    row = machine.spec("cuda")
    found = machine.peak(dtype, "cuda", seconds=2)
    assert row is None or 0.3 < found.flop_per_s / row.peak(dtype) < 1.05
