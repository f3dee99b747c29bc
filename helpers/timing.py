"""How long a function takes: warmed up, synchronised, repeated, with its spread and whether to believe it."""

import itertools
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from helpers import units

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

_PATIENCE = 10_000  # calls
_FLUSH = 256 * 2**20  # bytes; more than the last cache of nearly every machine
_NEAR = 1.1  # a sample within 10 % of the fastest confirms it


@dataclass(frozen=True)
class Timing:
    """The seconds that one call takes.

    median, low and high: of all samples, where a sample is the mean over a block of calls. samples: how many there are;
    calls: how many calls each. spread: the middle half of the samples, from the first to the third quartile, over the
    median. threads: what torch could use on the CPU. disturbed: whether no quiet sample supports it, where three are
    asked for within 10 % of the fastest, and one is quiet if no thread lost its core meanwhile.
    """

    median: float
    low: float
    high: float
    samples: int
    spread: float = 0.0
    calls: int = 1
    threads: int = 1
    disturbed: bool = False

    def rate(self, amount: float) -> float:
        """That amount per second, such as FLOP/s, by the median.

        >>> Timing(median=0.5, low=0.4, high=0.6, samples=9).rate(2e9)
        4000000000.0
        """
        return amount / self.median

    def __repr__(self) -> str:
        median, low, high = (units.duration(seconds) for seconds in (self.median, self.low, self.high))
        threads = "1 thread" if self.threads == 1 else f"{self.threads} threads"
        samples = f"{self.samples} samples"
        if self.calls > 1:
            samples += f" of {self.calls} calls"
        mark = ", disturbed" if self.disturbed else ""
        return f"{median} (from {low} to {high}; {samples}, {threads}{mark})"


def measure(
    fn: Callable[..., Any],
    *,
    inputs: Iterable[tuple[Any, ...]] = (),
    cold: bool = False,
    seconds: float = 0.3,
    threads: int | None = None,
    clock: Callable[[], float] | None = None,
) -> Timing:
    """The time of one call of `fn`, after a warm-up, as a median with its spread.

    >>> x = torch.ones(256, 256)
    >>> measure(lambda: x @ x, seconds=0.05).median > 0
    True

    The device is waited for before each reading of the clock. Samples are many and short, since on a busy machine a
    short one has the best chance to be quiet: a block of calls that is just long enough for the clock, or one call.
    `seconds` is the time to spend, for three samples at least. `threads` are those that torch has now, if not given.

    `inputs` are argument tuples that take turns, so that no call finds its data in a cache by chance; an endless
    iterator of them goes on where the last measurement left it.
    `cold=True` clears the caches before each call instead, and times calls one by one; clearing counts for the budget.
    An error of `fn` is passed on. Raises ValueError for a clock that stands still, for no time or no thread, and for an
    iterator of inputs that comes to its end; TypeError for inputs that are no tuples.
    """
    threads = torch.get_num_threads() if threads is None else threads
    if not seconds > 0 or threads < 1:
        raise ValueError(f"a measurement needs time and a thread, got seconds={seconds!r} and threads={threads!r}")
    clock = clock or _now
    call = _call(fn, inputs)
    clear = _clearing() if cold else None
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        call()  # the warm-up
        calls, samples = _samples(call, clear, seconds, clock)
    finally:
        torch.set_num_threads(before)
    each = [sample for sample, _ in samples]
    low = min(each)
    first, median, third = statistics.quantiles(each, n=4)
    supporting = sum(quiet and sample <= _NEAR * low for sample, quiet in samples)
    spread = (third - first) / median
    return Timing(median, low, max(each), len(each), spread, calls, threads, disturbed=supporting < 3)


def _call(fn: Callable[..., Any], inputs: Iterable[tuple[Any, ...]]) -> Callable[[], Any]:
    """The function without arguments that is timed: `fn` on the next of the inputs."""
    if isinstance(inputs, Iterator):
        turns = inputs
    else:
        given = list(inputs)
        if not given:
            return fn
        if wrong := [type(one).__name__ for one in given if not isinstance(one, tuple | list)]:
            raise TypeError(f"inputs are tuples of arguments, as in inputs=[(x,), (y,)]; got a {wrong[0]}")
        turns = itertools.cycle(given)
    end = object()

    def call() -> Any:
        arguments: Any = next(turns, end)
        if arguments is end:
            raise ValueError(
                "the inputs came to their end before the measurement did: an iterator is used up, one tuple a call; "
                "give a list, whose tuples take turns, or itertools.cycle(…)"
            )
        return fn(*arguments)

    return call


def _samples(
    call: Callable[[], Any], clear: Callable[[], None] | None, seconds: float, clock: Callable[[], float]
) -> tuple[int, list[tuple[float, bool]]]:
    """How many calls are a sample; and of each sample the seconds of one call, and whether it was quiet."""
    enough = 2e-3 if torch.accelerator.is_available() else 1e-4  # seconds; a GPU is waited for after each block
    calls = 1
    samples: list[tuple[float, bool]] = []
    begin = clock()
    while len(samples) < 3 or (clock() - begin < seconds and len(samples) < _PATIENCE):
        if clear:
            clear()
        took, quiet = _block(call, calls, clock)
        too_short = took < enough and calls < _PATIENCE
        if too_short and not samples and not clear:
            calls *= 2
        elif took > 0:
            samples.append((took / calls, quiet))
        else:
            raise ValueError(f"the clock stood still over {calls} calls: give fn more work, or take another clock")
    return calls, samples


def fastest(rounds: Sequence[Timing]) -> Timing:
    """The fastest of several rounds, undisturbed if a quiet round came within 10 % of it."""
    best = min(rounds, key=lambda one: one.low)
    return replace(best, disturbed=all(one.disturbed or one.low > _NEAR * best.low for one in rounds))


def _block(call: Callable[[], Any], calls: int, clock: Callable[[], float]) -> tuple[float, bool]:
    """The seconds of so many calls, and whether this process kept its cores meanwhile."""
    before, begin = _losses(), clock()
    for _ in range(calls):
        call()
    took = clock() - begin
    return took, _losses() - before <= 10 * took  # a quiet system takes a core for a moment, a few times in a second


def _now() -> float:
    if torch.accelerator.is_available():
        torch.accelerator.synchronize()
    return time.perf_counter()


def _losses() -> int:
    """How often the system has taken a core from a thread of this process; Windows does not tell."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw if resource else 0


def _clearing() -> Callable[[], None]:
    """A function that writes over every cache."""
    devices = [torch.device("cpu")]
    accelerator = torch.accelerator.current_accelerator()
    if accelerator and torch.accelerator.is_available():
        devices.append(accelerator)
    buffers = [torch.empty(_FLUSH, dtype=torch.uint8, device=device) for device in devices]

    def clear() -> None:
        for buffer in buffers:
            buffer.fill_(1)

    return clear
