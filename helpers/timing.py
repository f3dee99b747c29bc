"""How long a function takes: warmed up, synchronised, repeated, and with its spread."""

import itertools
import math
import statistics
import timeit
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import benchmark
from torch.utils.benchmark.utils.common import set_torch_threads

from helpers import units

_PATIENCE = 10_000  # calls
_FLUSH = 256 * 2**20  # byte; more than the last cache of nearly every machine


@dataclass(frozen=True)
class Timing:
    """The seconds that one call takes.

    median, low and high: of all samples, where a sample is the mean over a block of calls. runs: how many samples;
    calls: how many calls each. spread: the middle half of the samples, from the first to the third quartile, over the
    median. threads: what torch could use on the CPU.
    """

    median: float
    low: float
    high: float
    runs: int
    spread: float = 0.0
    calls: int = 1
    threads: int = 1

    @property
    def noisy(self) -> bool:
        """Whether to distrust it: fewer than three samples, or the middle half of them spreads over 10 %."""
        return self.runs < 3 or self.spread > 0.1

    def rate(self, amount: float) -> float:
        """That amount per second, such as FLOP/s, by the median.

        >>> Timing(median=0.5, low=0.4, high=0.6, runs=9).rate(2e9)
        4000000000.0

        Raises ValueError for a time of zero: nothing that was done takes no time.
        """
        return _per_second(amount, self.median)

    @property
    def fastest(self) -> "Timing":
        """The fastest sample as a timing of its own: what the machine can do when nothing disturbs it."""
        return Timing(self.low, self.low, self.low, 1, 0.0, self.calls, self.threads)

    def __repr__(self) -> str:
        median, low, high = (units.duration(seconds) for seconds in (self.median, self.low, self.high))
        threads = "1 thread" if self.threads == 1 else f"{self.threads} threads"
        runs = "1 run" if self.runs == 1 else f"{self.runs} runs"
        blocks = f" of {self.calls} calls" if self.calls > 1 else ""
        noisy = ", noisy" if self.noisy else ""
        return f"{median} (from {low} to {high}; {runs}{blocks}, {threads}{noisy})"


def _per_second(amount: float, seconds: float) -> float:
    if not math.isfinite(seconds) or seconds <= 0:
        raise ValueError(f"no rate from a time of {seconds!r} s: measure more calls at once, or a larger problem")
    return amount / seconds


def measure(
    fn: Callable[..., Any],
    *,
    inputs: Sequence[tuple[Any, ...]] = (),
    cold: bool = False,
    seconds: float = 0.3,
    threads: int | None = None,
    clock: Callable[[], float] | None = None,
) -> Timing:
    """The time of one call of `fn`, after a warm-up, as a median with its spread.

    >>> x = torch.ones(256, 256)
    >>> measure(lambda: x @ x, seconds=0.05).median > 0
    True

    It is built on torch.utils.benchmark: the device is synchronised before each reading of the clock, and calls are
    timed in blocks long enough for the clock. `seconds` is the time to spend; a call that takes longer runs twice, once
    to warm up (with `cold`, five times). `threads` are those that torch has now if not given.

    `inputs` is a sequence of argument tuples that take turns, so that no call finds its data in a cache by chance.
    `cold=True` clears the caches before each call instead, and times calls one by one.

    An error of `fn` is passed on. Raises ValueError for a clock that stands still, and for a budget or a number of
    threads that is not positive.
    """
    threads = torch.get_num_threads() if threads is None else threads
    if not seconds > 0 or threads < 1:
        raise ValueError(f"a measurement needs time and a thread, got seconds={seconds!r} and threads={threads!r}")
    call = _rotating(fn, inputs) if inputs else fn
    clock = clock or benchmark.timer
    calls = 1
    with set_torch_threads(threads):
        once = _first(call, clock)
        if once >= seconds:  # slow, or was that the first call only?
            once = timeit.Timer(call, timer=clock).timeit(1)
        if cold:
            samples = _one_by_one(call, seconds, clock)
        elif once >= seconds:
            samples = [once]
        else:
            timer = benchmark.Timer("call()", globals={"call": call}, num_threads=threads, timer=clock)
            found = timer.blocked_autorange(min_run_time=seconds)
            samples, calls = found.raw_times, found.number_per_run
    return summary([sample / calls for sample in samples], calls, threads)


def _first(call: Callable[[], Any], clock: Callable[[], float]) -> float:
    """The seconds until the clock moves, normally one call: the warm-up. A clock that never moves is an error."""
    begin = clock()
    for _ in range(_PATIENCE):
        call()
        seconds = clock() - begin
        if seconds > 0:
            return seconds
    raise ValueError(f"the clock stood still over {_PATIENCE} calls: give fn more work, or measure with another clock")


def _rotating(fn: Callable[..., Any], inputs: Sequence[tuple[Any, ...]]) -> Callable[[], Any]:
    turns = itertools.cycle([tuple(arguments) for arguments in inputs])
    return lambda: fn(*next(turns))


def _one_by_one(call: Callable[[], Any], seconds: float, clock: Callable[[], float]) -> list[float]:
    """A sample per call, the caches cleared before each; clearing counts for the budget, not for the samples."""
    devices = {torch.device("cpu")}
    if torch.accelerator.is_available():
        devices.add(torch.accelerator.current_accelerator())
    buffers = [torch.empty(_FLUSH, dtype=torch.uint8, device=device) for device in devices]

    def clear() -> None:
        for buffer in buffers:
            buffer.fill_(1)

    timer = timeit.Timer(call, clear, clock)
    samples, begin = [], clock()
    while len(samples) < 3 or (clock() - begin < seconds and len(samples) < _PATIENCE):
        samples.append(timer.timeit(1))
        if samples[-1] <= 0:
            raise ValueError("the clock saw a call take no time: give fn more work, or measure it without cold=True")
    return samples


def summary(samples: list[float], calls: int, threads: int) -> Timing:
    """The timing that samples give, each the mean of so many calls."""
    median = statistics.median(samples)
    first, third = (statistics.quantiles(samples, n=4)[::2]) if len(samples) > 1 else (median, median)
    return Timing(median, min(samples), max(samples), len(samples), (third - first) / median, calls, threads)
