"""Runs what a learner wrote: on copies, in a thread that can be stopped, within a budget of time, without a trace."""

import contextvars
import copy
import ctypes
import functools
import inspect
import queue
import random
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

import numpy as np
import torch

from helpers.check.answers import Failed
from helpers.check.wording import error_text, printable
from helpers.exercises import Exercise

SECONDS = 10.0  # of its own that an answer may take, all its calls together
PATIENCE = 120.0  # that may pass on a clock while one call runs, however busy the machine is
_WINDOW = 0.1  # of the budget: in each such window the answer is seen to compute, to wait or to import
_WAITING = 0.05  # share of a window in which what waits computes at most
_TRIES = 10  # to stop an answer; it may swallow what stops it
_STOPPING = 0.1  # seconds from one to the next


_NO_END = "it had not come to an end after"
_WHY_COMPUTING = "Does a loop in it never end, or is there a shorter way?"
_WHY_WAITING = "It waits and computes nothing: for a lock, an input, a sleep?"
_WHY_SLOW = "Is this machine busy with something else? Run the cell again."


class OutOfTime(Exception):
    """Says why an answer was stopped."""


class _Stop(BaseException):
    """Raised inside the learner's code, in its own thread."""


class Runner:
    """Runs a learner's calls one after the other, in a thread of its own: only another thread can be stopped anywhere.

    The budget is of seconds that the answer itself uses. What the check does between the calls (copies, the right
    answers, comparisons) is outside of it. In each window of a tenth of the budget

    - an answer that computes uses the CPU time of this process, at most what passes on a clock: beside busy processes
      it may take several times as long on the clock;
    - one that waits, for a lock, an input, a sleep, uses what passes on a clock, since its CPU time stands still;
    - one that imports a module uses nothing, and is never stopped while it does: half a module would stay behind.

    After `PATIENCE` seconds on a clock a call is over in any case.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.used = 0.0
        self._jobs: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = queue.SimpleQueue()
        # In the context of the cell, so that what it prints belongs to the cell.
        serve = functools.partial(contextvars.copy_context().run, self._serve)
        self._thread = threading.Thread(target=serve, daemon=True)
        self._thread.start()

    @property
    def ident(self) -> int | None:
        """The thread that runs the calls."""
        return self._thread.ident

    def run(self, job: Callable[[], Any]) -> Any:
        """What the job returns; what it raises is raised here. Raises OutOfTime when the budget is used up."""
        done: Future[Any] = Future()
        self._jobs.put((job, done))
        try:
            self._watch(done)
        except BaseException:  # out of time, or a learner who interrupts the kernel
            self._stop(done)
            raise
        return done.result()

    def close(self) -> None:
        """Let the thread end."""
        self._jobs.put(None)

    def _serve(self) -> None:
        with suppress(_Stop):
            while (task := self._jobs.get()) is not None:
                job, done = task
                try:
                    done.set_result(job())
                except BaseException as error:
                    done.set_exception(error)

    def _watch(self, done: Future[Any]) -> None:
        begin, window = time.perf_counter(), min(_WINDOW * self.seconds, 1.0)
        while True:
            clock, cpu = time.perf_counter(), time.process_time()
            wait([done], window)
            passed, computed = time.perf_counter() - clock, time.process_time() - cpu
            is_waiting = computed < _WAITING * passed and passed > window / 10  # and has not just been delayed
            if not self._is_importing():
                self.used += passed if is_waiting else min(computed, passed)
            if done.done():
                return
            if self.used >= self.seconds:
                question = _WHY_WAITING if is_waiting else _WHY_COMPUTING
                raise OutOfTime(f"{_NO_END} {self.seconds:g} seconds of its own{self._line()}. {question}")
            if time.perf_counter() - begin > PATIENCE:
                raise OutOfTime(f"{_NO_END} {PATIENCE:g} seconds on the clock{self._line()}. {_WHY_SLOW}")

    def _frames(self) -> Iterator[FrameType]:
        """What runs in the thread, from the innermost function outwards."""
        frame = sys._current_frames().get(self._thread.ident or 0)
        while frame:
            yield frame
            frame = frame.f_back

    def _is_importing(self) -> bool:
        return any(frame.f_code.co_filename.startswith("<frozen importlib") for frame in self._frames())

    def _line(self) -> str:
        """The innermost line of the learner's that runs, if its source is known: the outermost file but this one."""
        frames = [frame for frame in self._frames() if frame.f_code.co_filename not in _ENGINE]
        mine = [frame for frame in frames if frame.f_code.co_filename == frames[-1].f_code.co_filename]
        line = traceback.extract_stack(mine[0], limit=1)[-1].line if mine else ""
        return f", in the line `{printable(line, str, 60)}`" if line else ""

    def _stop(self, done: Future[Any]) -> None:
        """End what runs, unless it sits in compiled code or swallows all exceptions: that is left alone after a while.

        An exception that is sent while compiled code runs is raised when that returns.
        """
        sent = 0
        for _ in range(60 * _TRIES):  # a minute, should an import last as long
            if done.done() or sent == _TRIES:
                return
            if not self._is_importing():
                thread, error = ctypes.c_ulong(self._thread.ident or 0), ctypes.py_object(_Stop)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, error)
                sent += 1
            wait([done], _STOPPING)


_ENGINE = {__file__, threading.__file__}


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
    """Where a learner's calls run. What they print is wanted once, not thirty times: only the first one prints."""

    def __init__(self, seconds: float, output: _Output) -> None:
        self._runner = Runner(seconds)
        self._output = output
        self._has_run = False

    def run(self, job: Callable[[], Any]) -> Any:
        """What the job returns or raises. Raises OutOfTime when the budget is used up."""
        self._output.muted = self._runner.ident if self._has_run else None
        self._has_run = True
        return self._runner.run(job)

    def call(self, exercise: Exercise, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """The result on a private copy of the arguments, or what went wrong as a sentence."""
        return call(exercise, function, arguments, self.run)

    def renew(self, seconds: float) -> None:
        """Begin a new budget."""
        self.close()
        self._runner = Runner(seconds)

    def close(self) -> None:
        """Let the thread end."""
        self._runner.close()


@contextmanager
def sandbox(seconds: float) -> Iterator[Sandbox]:
    """A place for a learner's calls. What it leaves behind, in time or out of time, is as it was before.

    That are the random generators of Python, NumPy and PyTorch, the output of the process, and what einops remembers.
    """
    python, numpy, stdout = random.getstate(), np.random.get_state(), sys.stdout
    output = _Output(stdout)
    place = Sandbox(seconds, output)
    _forget_patterns()
    try:
        if stdout is not None:
            sys.stdout = output  # type: ignore[assignment]
        with torch.random.fork_rng(devices=[]):
            yield place
    finally:
        sys.stdout = stdout
        place.close()
        random.setstate(python)
        np.random.set_state(numpy)
        _forget_patterns()


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
        return tuple(result) if isinstance(result, Iterator) else result

    try:
        result = run(job)
    except OutOfTime:
        raise
    except (Exception, SystemExit) as error:
        return Failed(type(error).__name__, f"it raised {error_text(error)}", _line(error, function))
    if exercise.in_place:
        if isinstance(result, torch.Tensor) and result.data_ptr() != copies[0].data_ptr():
            return Failed("a copy", "what you return is not the tensor that you were given: change it in place")
    elif any(_is_changed(given, now) for given, now in zip(arguments, copies, strict=True)):
        return Failed("changed", "it changed what it was given: leave the inputs as they are")
    return result


def _is_changed(given: Any, now: Any) -> bool:
    return isinstance(given, torch.Tensor) and not given.equal(now)


def _line(error: BaseException, function: Any) -> str:
    """The line of the function where it raised; empty if its source is not known."""
    home = getattr(getattr(inspect.unwrap(function), "__code__", None), "co_filename", None)
    lines = [frame.line for frame in traceback.extract_tb(error.__traceback__) if frame.filename == home]
    return printable(lines[-1], str, 60) if lines and lines[-1] else ""


@functools.cache
def known(exercise: Exercise, formula: Callable[..., Any], place: int) -> Any:
    """What the oracle, or one of the wrong formulas, gives for that input of the exercise."""
    return call(exercise, formula, exercise.inputs[place])
