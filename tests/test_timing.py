"""Timing logic under a clock that the test turns itself; a real clock only where the real clock is the point."""

import itertools
import math
import statistics

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


def test_the_first_call_is_warm_up():
    clock = Clock(5.0, 0.25)
    found = measure(clock.work, clock=clock, seconds=2)
    assert found == Timing(0.25, 0.25, 0.25, 8, 0.0, 1, torch.get_num_threads())
    assert not found.noisy


def test_short_calls_are_timed_in_blocks():
    clock = Clock(1e-6)
    found = measure(clock.work, clock=clock, seconds=0.1)
    assert found.calls >= 100 and found.median == pytest.approx(1e-6)


def test_a_call_longer_than_the_budget_runs_twice():
    clock = Clock(7.0)
    found = measure(clock.work, clock=clock, seconds=1)
    assert (clock.calls, found.runs, found.median) == (2, 1, 7.0)
    assert found.noisy  # one sample has no spread to trust


def test_a_call_as_long_as_the_budget_runs_twice():
    clock = Clock(1.0)
    assert measure(clock.work, clock=clock, seconds=1) == Timing(1.0, 1.0, 1.0, 1, 0.0, 1, torch.get_num_threads())
    assert clock.calls == 2


def test_a_cold_call_longer_than_the_budget_runs_five_times():
    clock = Clock(9.0, 8.0, 7.0)
    found = measure(clock.work, clock=clock, seconds=1, cold=True)
    assert (clock.calls, found.runs, found.median) == (5, 3, 7.0)


def test_there_is_an_end_to_short_cold_calls(monkeypatch):
    monkeypatch.setattr(timing, "_FLUSH", 8)
    monkeypatch.setattr(timing, "_PATIENCE", 50)
    clock = Clock(1e-6)
    assert measure(clock.work, clock=clock, seconds=1, cold=True).runs == 50


def test_the_fastest_sample_is_a_timing_of_its_own():
    assert Timing(2.0, 1.0, 3.0, 9, 0.5, 100, 2).fastest == Timing(1.0, 1.0, 1.0, 1, 0.0, 100, 2)


@pytest.mark.parametrize(
    ("runs", "spread", "noisy"), [(2, 0.0, True), (3, 0.0, False), (3, 0.1, False), (3, 0.11, True)]
)
def test_a_timing_is_noisy_from(runs, spread, noisy):
    assert Timing(1.0, 1.0, 1.0, runs, spread).noisy is noisy


@pytest.mark.parametrize("seconds", [0.5, 1, 4])
def test_the_budget_is_kept(seconds):
    clock = Clock(0.01)
    measure(clock.work, clock=clock, seconds=seconds)
    assert seconds <= clock.now <= 1.3 * seconds


def test_a_third_of_a_second_is_spent_where_nobody_says():
    clock = Clock(0.01)
    measure(clock.work, clock=clock)
    assert 0.3 <= clock.now <= 0.4


def test_cold_calls_end_with_the_budget():
    clock = Clock(0.25)
    assert measure(clock.work, clock=clock, cold=True, seconds=1).runs == 4


def test_two_samples_have_a_spread_and_one_has_none():
    assert timing.summary([1.0, 3.0], 1, 1).spread > 0 == timing.summary([1.0], 1, 1).spread


@pytest.mark.parametrize("cold", [False, True])
def test_median_extremes_and_spread_are_those_of_the_samples(cold):
    samples = [1 + 0.1 * (i * 7 % 10) for i in range(20)]
    warm_up = [1.0] if cold else [1.0, 1.0]  # the first call, and the one that finds the length of a block
    clock = Clock(*warm_up, *samples)
    found = measure(clock.work, clock=clock, cold=cold, seconds=sum(samples) - 0.01)
    first, _, third = statistics.quantiles(samples, n=4)
    assert found.runs == 20
    assert (found.median, found.low, found.high) == pytest.approx(
        (statistics.median(samples), min(samples), max(samples))
    )
    assert found.spread == pytest.approx((third - first) / found.median)
    assert found.noisy


@pytest.mark.parametrize(("wobble", "noisy"), [(0.02, False), (0.2, True)])
def test_noisy_means_that_the_middle_half_spreads(wobble, noisy):
    clock = Clock(*(1 + wobble * (i % 2) for i in range(100)))
    assert measure(clock.work, clock=clock, seconds=40).noisy is noisy


def test_one_outlier_is_no_noise():
    clock = Clock(1, 1, 1, 1, 30, *[1] * 100)
    found = measure(clock.work, clock=clock, seconds=80)
    assert found.high == 30 and found.median == 1 and not found.noisy


def test_inputs_take_turns():
    clock, seen = Clock(1.0), []

    def fn(a, b):
        seen.append((a, b))
        clock.work()

    measure(fn, inputs=[(1, 2), (3, 4), (5, 6)], clock=clock, seconds=5)
    assert seen == [pair for _, pair in zip(seen, itertools.cycle([(1, 2), (3, 4), (5, 6)]), strict=False)]
    assert len(seen) >= 6


def test_cold_calls_are_timed_one_by_one_after_clearing():
    clock = Clock(1e-3)
    found = measure(clock.work, clock=clock, cold=True, seconds=0.05)
    assert found.calls == 1 and found.median == pytest.approx(1e-3)
    assert clock.calls == found.runs + 1


class Events(TorchDispatchMode):
    """A list of what happened: large memory written, or the function called."""

    def __init__(self):
        super().__init__()
        self.seen, self.flushed = [], []

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        if op.overloadpacket is torch.ops.aten.fill_ and args[0].nbytes >= 2**28:
            self.seen.append("flush")
            self.flushed.append((args[0].device.type, args[0].nbytes))
        return op(*args, **(kwargs or {}))


def test_the_caches_are_written_over_before_each_cold_call_and_outside_its_time():
    with Events() as events:
        found = measure(lambda: events.seen.append("call"), cold=True, seconds=0.01)
    flushes = 1 + torch.accelerator.is_available()
    assert events.seen == ["call"] + (["flush"] * flushes + ["call"]) * found.runs
    assert found.median < 1e-3  # writing 256 MiB takes longer


def test_the_caches_of_an_accelerator_are_written_over_too(monkeypatch):
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: torch.device("meta"))
    clock = Clock(1.0)
    with Events() as events:
        assert measure(clock.work, clock=clock, cold=True, seconds=1).runs == 3
    assert sorted(device for device, _ in events.flushed) == ["cpu"] * 3 + ["meta"] * 3
    assert all(nbytes < 2**29 for _, nbytes in events.flushed)  # on a class's server a kernel has 0.6 GB for everything


@pytest.mark.parametrize("cold", [False, True])
@pytest.mark.parametrize("threads", [1, 2])
def test_threads_are_what_was_asked_for_and_afterwards_as_before(cold, threads):
    before, seen = torch.get_num_threads(), set()
    found = measure(lambda: seen.add(torch.get_num_threads()), threads=threads, cold=cold, seconds=0.01)
    assert seen == {threads} and found.threads == threads
    assert torch.get_num_threads() == before


def test_threads_are_torchs_own_unless_asked():
    assert measure(lambda: None, seconds=0.01).threads == torch.get_num_threads()


@pytest.mark.parametrize("cold", [False, True])
def test_a_clock_that_stands_still_gives_no_timing(cold):
    with pytest.raises(ValueError, match=r"the clock stood still over 10000 calls: give fn more work, or"):
        measure(lambda: None, clock=lambda: 1.0, cold=cold)


def test_a_call_that_takes_no_time_gives_no_timing(monkeypatch):
    monkeypatch.setattr(timing, "_FLUSH", 8)
    clock = Clock(1.0, 0.0)
    with pytest.raises(
        ValueError, match=r"^the clock saw a call take no time: give fn more work, or measure it without cold=True$"
    ):
        measure(clock.work, clock=clock, cold=True, seconds=2)


@pytest.mark.parametrize("seconds", [0, -1, math.nan])
def test_a_budget_is_positive(seconds):
    with pytest.raises(ValueError, match=rf"needs time and a thread, got seconds={seconds} and threads=1"):
        measure(lambda: None, seconds=seconds, threads=1)


def test_threads_are_positive():
    with pytest.raises(ValueError, match=r"needs time and a thread, got seconds=1 and threads=0"):
        measure(lambda: None, seconds=1, threads=0)


@pytest.mark.parametrize("cold", [False, True])
def test_an_error_of_the_function_is_its_own(cold):
    with pytest.raises(KeyError, match="mine"):
        measure(lambda: {}["mine"], cold=cold)


def test_a_rate_needs_a_time():
    assert Timing(2.0, 1.0, 3.0, 9).rate(6) == 3.0
    assert Timing(2.0, 1.0, 3.0, 9).fastest.rate(6) == 6.0
    for seconds in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="no rate from a time of"):
            Timing(seconds, seconds, seconds, 9).rate(6)


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (Timing(2e-3, 1e-3, 3e-3, 9, 0.01, 100, 2), "2 ms (from 1 ms to 3 ms; 9 runs of 100 calls, 2 threads)"),
        (Timing(2e-3, 1e-3, 3e-3, 9, calls=2), "2 ms (from 1 ms to 3 ms; 9 runs of 2 calls, 1 thread)"),
        (Timing(2e-3, 1e-3, 3e-3, 9), "2 ms (from 1 ms to 3 ms; 9 runs, 1 thread)"),
        (Timing(2.0, 2.0, 2.0, 1, 0.0, 1, 1), "2 s (from 2 s to 2 s; 1 run, 1 thread, noisy)"),
    ],
)
def test_a_timing_reads_as_a_sentence(found, text):
    assert repr(found) == text


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_the_device_is_waited_for():
    x = torch.randn(4096, 4096, device="cuda")
    assert measure(lambda: x @ x, seconds=0.5).rate(2 * 4096**3) < 3e14  # a launch alone would look far faster
