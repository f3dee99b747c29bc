"""Timing logic under a clock that the test turns itself, and a system that takes cores when the test says so."""

import itertools
import math
import statistics
import types

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from helpers import timing
from helpers.timing import Timing, measure


class Clock:
    """Time passes only in `work`, by the next of the given durations; the last one repeats."""

    def __init__(self, *durations):
        self.now, self.calls, self.durations = 0.0, 0, durations

    def __call__(self):
        return self.now

    def work(self, *_):
        self.now += self.durations[min(self.calls, len(self.durations) - 1)]
        self.calls += 1


@pytest.fixture(autouse=True)
def system(monkeypatch):
    """How often the system took a core from this process: never, until a test changes `ru_nivcsw`."""
    usage = types.SimpleNamespace(ru_nivcsw=0)
    monkeypatch.setattr(timing, "resource", types.SimpleNamespace(getrusage=lambda who: usage, RUSAGE_SELF=0))
    return usage


def test_the_first_call_is_warm_up():
    clock = Clock(5.0, 0.25)
    found = measure(clock.work, clock=clock, seconds=2)
    assert found == Timing(0.25, 0.25, 0.25, 8, 0.0, 1, torch.get_num_threads(), disturbed=False)


@pytest.mark.parametrize("cold", [False, True])
def test_a_call_longer_than_the_budget_has_three_samples(cold):
    clock = Clock(9.0, 8.0, 7.0)
    found = measure(clock.work, clock=clock, seconds=1, cold=cold)
    assert (clock.calls, found.samples, found.median) == (4, 3, 7.0)


@pytest.mark.parametrize("seconds", [0.5, 1, 4])
def test_the_budget_is_kept(seconds):
    clock = Clock(0.01)
    measure(clock.work, clock=clock, seconds=seconds)
    assert seconds <= clock.now <= 1.3 * seconds


def test_short_calls_come_to_an_end():
    clock = Clock(1e-3)
    assert measure(clock.work, clock=clock, seconds=1e6).samples == 10_000


def test_median_extremes_and_spread_are_those_of_the_samples():
    samples = [1 + 0.1 * (i * 7 % 10) for i in range(20)]
    clock = Clock(1.0, *samples)
    found = measure(clock.work, clock=clock, seconds=sum(samples) - 0.01)
    first, median, third = statistics.quantiles(samples, n=4)
    assert found.samples == 20
    assert (found.median, found.low, found.high) == pytest.approx((median, min(samples), max(samples)))
    assert found.spread == pytest.approx((third - first) / median)


# Near is within 10 %.
@pytest.mark.parametrize("samples", [[1, 1, 1, 30, 30], [1, 1.09, 30, 1.09], [1, 1, 30, 30], [1, 1, 1.2, 1.2]])
def test_three_samples_near_the_fastest_confirm_it(samples):
    clock = Clock(1.0, *samples)
    found = measure(clock.work, clock=clock, seconds=sum(samples) - 0.5)
    assert (found.samples, found.disturbed) == (len(samples), sorted(samples)[2] > 1.1)


@pytest.mark.parametrize(("seconds", "every", "disturbed"), [(0.01, 1, True), (0.01, 2, False), (1.0, 1, False)])
def test_a_sample_in_which_a_core_was_lost_confirms_nothing(system, seconds, every, disturbed):
    """In a second, though, a quiet system takes a core several times for a moment."""
    clock = Clock(seconds)

    def work():
        clock.work()
        system.ru_nivcsw += clock.calls % every == 0

    assert measure(work, clock=clock, seconds=10 * seconds).disturbed is disturbed


def test_a_system_that_does_not_tell_is_trusted(monkeypatch):
    monkeypatch.setattr(timing, "resource", None)
    clock = Clock(0.01)
    assert not measure(clock.work, clock=clock).disturbed


def test_the_fastest_of_rounds_is_confirmed_by_a_quiet_round_near_it():
    quiet, near, lone = (Timing(1.2, low, 2, 9, disturbed=low < 1.1) for low in (1.1, 1.05, 1.0))
    assert timing.fastest([quiet, near]) == Timing(1.2, 1.05, 2, 9, disturbed=False)
    assert timing.fastest([Timing(1.2, 1.11, 2, 9), lone]) == lone


def test_inputs_take_turns():
    clock, seen = Clock(1.0), []

    def fn(a, b):
        seen.append((a, b))
        clock.work()

    measure(fn, inputs=[(1, 2), (3, 4), (5, 6)], clock=clock, seconds=5)
    assert seen == [pair for _, pair in zip(seen, itertools.cycle([(1, 2), (3, 4), (5, 6)]), strict=False)]
    assert len(seen) >= 6
    once, turns = len(seen), itertools.cycle([(1, 2), (3, 4), (5, 6)])
    for _ in range(2):  # the second goes on where the first has left it
        measure(fn, inputs=turns, clock=clock, seconds=5)
    assert seen[once:] == [
        pair for _, pair in zip(seen[once:], itertools.cycle([(1, 2), (3, 4), (5, 6)]), strict=False)
    ]


class Events(TorchDispatchMode):
    """A list of what happened: large memory written, or the function called."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        if op.overloadpacket is torch.ops.aten.fill_ and args[0].nbytes >= 2**28:
            self.seen.append(args[0].device.type)
            assert args[0].nbytes < 2**29  # on a class's server a kernel has 0.6 GB for everything
        return op(*args, **(kwargs or {}))


@pytest.mark.parametrize("devices", [["cpu"], ["cpu", "meta"]])
def test_every_cache_is_written_over_before_each_cold_call(monkeypatch, devices):
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: len(devices) > 1)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: torch.device("meta"))
    clock = Clock(1.0)
    with Events() as events:
        found = measure(lambda: (events.seen.append("call"), clock.work()), cold=True, clock=clock, seconds=1)
    assert events.seen == ["call"] + [*devices, "call"] * found.samples
    assert found.calls == 1


@pytest.mark.parametrize("threads", [1, 2, None])
def test_threads_are_what_was_asked_for_and_afterwards_as_before(threads):
    before, seen = torch.get_num_threads(), set()
    found = measure(lambda: seen.add(torch.get_num_threads()), threads=threads, seconds=0.01)
    assert seen == {threads or before} and found.threads == (threads or before)
    with pytest.raises(KeyError, match="mine"):  # an error of the function is its own
        measure(lambda: {}["mine"], threads=threads)
    assert torch.get_num_threads() == before


@pytest.mark.parametrize("make", [iter, lambda tuples: (one for one in tuples)])
@pytest.mark.parametrize("count", [1, 3, 10])
def test_inputs_that_come_to_their_end_are_named(make, count):
    clock, before = Clock(1.0), torch.get_num_threads()
    with pytest.raises(ValueError, match=r"^the inputs came to their end before the .* or itertools\.cycle\(…\)$"):
        measure(clock.work, inputs=make([(1,)] * count), clock=clock, seconds=20, threads=1)
    assert clock.calls == count and torch.get_num_threads() == before


def test_a_stop_iteration_of_the_function_is_its_own():
    with pytest.raises(StopIteration):
        measure(lambda x: next(iter([])), inputs=[(1,)])


@pytest.mark.parametrize("inputs", [[torch.ones(2)], (3, 4), "ab"], ids=str)
def test_inputs_are_tuples(inputs):
    with pytest.raises(TypeError, match=r"inputs are tuples of arguments, as in inputs=\[\(x,\), \(y,\)\]; got a "):
        measure(lambda x: x, inputs=inputs)


@pytest.mark.parametrize("cold", [False, True])
def test_a_clock_that_stands_still_is_refused(cold):
    with pytest.raises(ValueError, match=r"the clock stood still over \d+ calls: give fn more work, or take another"):
        measure(lambda: None, clock=lambda: 1.0, cold=cold)


@pytest.mark.parametrize(("seconds", "threads"), [(0, 1), (-1, 1), (math.nan, 1), (1, 0)])
def test_a_measurement_needs_time_and_a_thread(seconds, threads):
    with pytest.raises(ValueError, match=rf"needs time and a thread, got seconds={seconds} and threads={threads}"):
        measure(lambda: None, seconds=seconds, threads=threads)


def test_a_timing_reads_as_a_sentence():
    found = Timing(2e-3, 1e-3, 3e-3, 9, 0.0123, 100, 2)
    assert repr(found) == "2 ms (from 1 ms to 3 ms; 9 samples of 100 calls, 2 threads)"
    found = Timing(2.0, 1.0, 3.0, 3, disturbed=True)
    assert repr(found) == "2 s (from 1 s to 3 s; 3 samples, 1 thread, disturbed)"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_the_device_is_waited_for():
    x = torch.randn(4096, 4096, device="cuda")
    assert measure(lambda: x @ x, seconds=0.5).rate(2 * 4096**3) < 3e14  # a launch alone would look far faster
