"""Calls what a learner wrote: on copies, in a sandbox that leaves no trace."""

import builtins
import copy
import functools
import gc
import inspect
import locale
import math
import os
import random
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from helpers.check.answers import Failed
from helpers.check.runner import OutOfTime, Runner
from helpers.check.wording import error_text, printable
from helpers.exercises import Exercise

SECONDS = 10.0  # of its own that an answer may take, all its calls together


class _Output:
    """The cell's output, without what the thread `muted` prints."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.muted: int | None = None

    def write(self, text: str) -> int:
        """Print, or not."""
        if threading.get_ident() == self.muted:
            return len(text)
        return self.stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


class Sandbox:
    """Where a learner's calls run. What they print is wanted once, not thirty times: only the first one prints.

    until: on the clock of `time.perf_counter`, when nobody waits for further calls any more.
    """

    def __init__(self, seconds: float, output: _Output) -> None:
        self._runner = Runner(seconds)
        self._output = output
        self._has_run = False
        self.until = math.inf
        self._settings = [(get, set_again, get()) for get, set_again in _SETTINGS]

    def run(self, job: Callable[[], Any]) -> Any:
        """What the job returns or raises. Raises OutOfTime when the budget is used up, or nobody waits any more."""
        self.hurry()
        self._output.muted = self._runner.ident if self._has_run else None
        self._has_run = True
        try:
            return self._runner.run(job, self.until)
        finally:
            self.restore()  # the right answers are computed between the calls

    def hurry(self) -> None:
        """Raise OutOfTime where nobody waits for further calls."""
        if self.is_late:
            raise OutOfTime("nobody waits for it any more")

    @property
    def is_late(self) -> bool:
        """Whether nobody waits for further calls."""
        return time.perf_counter() > self.until

    @contextmanager
    def hurried(self, seconds: float) -> Iterator[None]:
        """Let all calls together be over so many seconds from now, on a clock."""
        self.until = time.perf_counter() + seconds
        try:
            yield
        finally:
            is_late = self.is_late
            self.until = math.inf
            if is_late:  # a call may have been stopped, with its thread
                self.renew(SECONDS)

    def restore(self) -> None:
        """Set again what a call has set for the whole process."""
        for get, set_again, value in self._settings:
            if get() != value:
                set_again(value)

    def call(self, exercise: Exercise, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """The result on a private copy of the arguments, or what went wrong as a sentence."""
        return call(exercise, function, arguments, self.run)

    def run_briefly(self, job: Callable[[], Any], seconds: float) -> Any:
        """What the job returns or raises, with a budget of its own. Raises OutOfTime when that is used up."""
        self._runner.grant(seconds)
        try:
            return self.run(job)
        except OutOfTime:
            self.renew(seconds)
            raise

    def call_briefly(
        self, exercise: Exercise, function: Callable[..., Any], arguments: tuple[Any, ...], seconds: float
    ) -> Any:
        """What `call` gives, with a budget of its own. Raises OutOfTime when that is used up."""
        return call(exercise, function, arguments, lambda job: self.run_briefly(job, seconds))

    def renew(self, seconds: float) -> None:
        """Begin a new budget."""
        self.close()
        self._runner = Runner(seconds)

    def close(self) -> None:
        """Let the thread end."""
        self._runner.close()


_Setting = tuple[Callable[[], Any], Callable[[Any], Any]]
_GENERATORS: list[_Setting] = [(random.getstate, random.setstate), (np.random.get_state, np.random.set_state)]
# How to get what an answer may set for the whole process, and how to set it again.
_SETTINGS: list[_Setting] = [
    (os.getcwd, os.chdir),
    (os.environ.copy, lambda before: _set_environment(before)),
    (partial(locale.setlocale, locale.LC_ALL), partial(locale.setlocale, locale.LC_ALL)),
    (gc.isenabled, lambda was_on: gc.enable() if was_on else gc.disable()),
    (sys.path.copy, lambda path: sys.path.__setitem__(slice(None), path)),
    (sys.getswitchinterval, sys.setswitchinterval),
    (torch.get_num_threads, torch.set_num_threads),
    (torch.get_default_dtype, torch.set_default_dtype),
    (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
    (torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode),
    (torch.is_anomaly_enabled, torch.set_anomaly_enabled),
    (sys.getrecursionlimit, sys.setrecursionlimit),
    (vars(builtins).copy, vars(builtins).update),  # print may be another
]


def _set_environment(before: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(before)


@contextmanager
def sandbox(seconds: float) -> Iterator[Sandbox]:
    """A place for a learner's calls. What it leaves behind, in time or out of time, is as it was before.

    That are `_SETTINGS`, random generators, filters of warnings, matplotlib's parameters, the output, and what einops
    remembers.
    """
    states = [(set_again, get()) for get, set_again in _GENERATORS]
    matplotlib = sys.modules.get("matplotlib")
    drawing = matplotlib.rc_context() if matplotlib else nullcontext()
    stdout, stderr = sys.stdout, sys.stderr
    output = _Output(stdout)
    place = Sandbox(seconds, output)
    _forget_patterns()
    try:
        if stdout is not None:
            sys.stdout = output  # type: ignore[assignment]
        # Inputs are drawn on the CPU, whatever the default device is.
        with warnings.catch_warnings(), drawing, torch.random.fork_rng(devices=[]), torch.device("cpu"):
            yield place
    finally:
        sys.stdout, sys.stderr = stdout, stderr
        place.close()
        place.restore()
        for set_again, state in states:
            set_again(state)
        _forget_patterns()


@contextmanager
def memory_limited(room: int) -> Iterator[None]:
    """Let this process take so many bytes more at most, where the system can see to that: more raises an error."""
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except (ImportError, OSError):
        yield
        return
    before, most = resource.getrlimit(resource.RLIMIT_AS)
    limit = pages * resource.getpagesize() + room
    is_tighter = before == resource.RLIM_INFINITY or limit < before
    resource.setrlimit(resource.RLIMIT_AS, (limit if is_tighter else before, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (before, most))


_CACHED = type(functools.lru_cache(lambda: None))


def _forget_patterns() -> None:
    """Clear the caches of einops, to which 2.0 is the same as 2: it would repeat the error of `heads / kv` for //."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "einops":
            for thing in list(vars(module).values()):
                if isinstance(thing, _CACHED):
                    thing.cache_clear()


def call(
    exercise: Exercise,
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    run: Callable[[Callable[[], Any]], Any] = lambda job: job(),
) -> Any:
    """The result on a private copy of the arguments, or what went wrong as a sentence."""
    copies = copy.deepcopy(arguments)

    def job() -> Any:
        result = function(*copies)
        if inspect.iscoroutine(result):
            result.close()
            raise TypeError("an async function returns a coroutine: write def without async")
        return result

    try:
        result = run(job)
    except (OutOfTime, KeyboardInterrupt):
        raise
    except BaseException as error:  # sys.exit() too
        if not exercise.in_place and _changes(arguments, copies):
            why = f"it changed what it was given, and then raised {type(error).__name__}"
            return Failed("changed", f"{why}: leave the inputs as they are")
        line, is_own = _line(error, function)
        return Failed(type(error).__name__, f"it raised {error_text(error)}", line, _whole(error), is_own)
    if isinstance(result, Iterator):
        kind = type(result).__name__
        return Failed("lazy", f"what you return is a {kind}, which holds no values yet: write tuple(...) around it")
    if exercise.in_place:
        if isinstance(result, torch.Tensor) and result.data_ptr() != copies[0].data_ptr():
            return Failed("a copy", "what you return is not the tensor that you were given: change it in place")
    elif _changes(arguments, copies):
        return Failed("changed", "it changed what it was given: leave the inputs as they are")
    return result


def _whole(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return ""


def _changes(arguments: tuple[Any, ...], copies: tuple[Any, ...]) -> bool:
    """Whether any tensor is another one than it was."""
    pairs = zip(arguments, copies, strict=True)
    return any(isinstance(given, torch.Tensor) and not given.equal(now) for given, now in pairs)


def _line(error: BaseException, function: Any) -> tuple[str, bool]:
    """The line of the function where it raised, empty if its source is not known; and whether it raised it itself."""
    home = getattr(getattr(inspect.unwrap(function), "__code__", None), "co_filename", None)
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.line for frame in frames if frame.filename == home]
    line = printable(lines[-1], str, 60) if lines and lines[-1] else ""
    return line, frames[-1].filename == home


@functools.cache
def known(exercise: Exercise, formula: Callable[..., Any], place: int) -> Any:
    """What the oracle, or one of the wrong formulas, gives for that input of the exercise."""
    return call(exercise, formula, exercise.inputs[place])
