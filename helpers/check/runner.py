"""A thread that runs a learner's calls within a budget of time, and that can be stopped."""

import contextvars
import ctypes
import functools
import math
import queue
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from helpers.check.wording import printable

PATIENCE = 120.0  # that may pass on a clock while one call runs, however busy the machine is
SILENCE = 2.0  # seconds on a clock after which a learner is told that it runs
_WINDOW = 0.1  # of the budget: in each such window the answer is seen to compute, to wait or to import
_WAITING = 0.02  # share of a window in which what waits computes at most
_TRIES = 10  # to stop an answer; it may swallow what stops it
_STOPPING = 0.1  # seconds from one to the next
_OURS = (str(Path(__file__).parent), threading.__file__)  # files that are not a learner's
_NO_END = "it had not come to an end after"
WHY_COMPUTING = "Does a loop in it never end, or is there a shorter way?"
_WHY_WAITING = "It computes nothing: does it sleep, or wait for a lock, an input, a compiler?"
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
    - one that sleeps, or waits for a lock, an input, a compiler, uses what passes on a clock, as its CPU stands still;
    - one that imports a module uses nothing, and is not stopped while it does: half a module would stay behind.

    After `PATIENCE` seconds on a clock a call is over in any case.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.computed = 0.0
        self.waited = 0.0
        self._begin = time.perf_counter()
        self._is_told = False
        self._jobs: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = queue.SimpleQueue()
        # In the context of the cell, so that what it prints belongs to the cell.
        serve = functools.partial(contextvars.copy_context().run, self._serve)
        self._thread = threading.Thread(target=serve, daemon=True)
        self._thread.start()

    @property
    def ident(self) -> int | None:
        """The thread that runs the calls."""
        return self._thread.ident

    def grant(self, seconds: float) -> None:
        """Begin a new budget in the same thread."""
        self.seconds = seconds
        self.computed = self.waited = 0.0

    def run(self, job: Callable[[], Any], until: float = math.inf) -> Any:
        """What the job returns; what it raises is raised here. Raises OutOfTime when the budget is used up.

        until: on the clock of `time.perf_counter`, when it is over in any case.
        """
        done: Future[Any] = Future()
        self._jobs.put((job, done))
        try:
            self._watch(done, until)
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

    def _watch(self, done: Future[Any], until: float) -> None:
        begin, window = time.perf_counter(), min(_WINDOW * self.seconds, 1.0)
        while True:
            clock, cpu = time.perf_counter(), time.process_time()
            wait([done], max(0, min(window, until - clock)))
            self._charge(time.perf_counter() - clock, time.process_time() - cpu, window)
            if done.done():
                return
            self._tell()
            if time.perf_counter() > until:
                raise OutOfTime("nobody waits for it any more")
            if self.computed + self.waited >= self.seconds:
                question = _WHY_WAITING if self.waited > self.computed else WHY_COMPUTING
                raise OutOfTime(f"{_NO_END} {self.seconds:g} seconds of its own{self._line()}. {question}")
            if time.perf_counter() - begin > PATIENCE:
                raise OutOfTime(f"{_NO_END} {PATIENCE:g} seconds on the clock{self._line()}. {_WHY_SLOW}")

    def _tell(self) -> None:
        """Say once that it still runs; not of a look that is short."""
        if not self._is_told and self.seconds > SILENCE < time.perf_counter() - self._begin:
            self._is_told = True
            print(f"Running: it may take {self.seconds:g} seconds of its own.", flush=True)

    def _charge(self, passed: float, computed: float, window: float) -> None:
        """Add to what the answer has used that many seconds on a clock, and of CPU time."""
        if self._is_importing():
            return
        is_delay = passed < window / 10  # too short to say that it waits
        if is_delay or computed > _WAITING * passed:
            self.computed += min(computed, passed)
        else:
            self.waited += passed

    def _frames(self) -> Iterator[FrameType]:
        """What runs in the thread, from the innermost function outwards."""
        frame = sys._current_frames().get(self._thread.ident or 0)
        while frame:
            yield frame
            frame = frame.f_back

    def _is_importing(self) -> bool:
        return any(frame.f_code.co_filename.startswith("<frozen importlib") for frame in self._frames())

    def _line(self) -> str:
        """The innermost line of the learner's that runs, if its source is known: of the outermost file but ours."""
        frames = [frame for frame in self._frames() if not frame.f_code.co_filename.startswith(_OURS)]
        mine = [frame for frame in frames if frame.f_code.co_filename == frames[-1].f_code.co_filename]
        line = traceback.extract_stack(mine[0], limit=1)[-1].line if mine else ""
        return f", in the line `{printable(line, str, 60)}`" if line else ""

    def _stop(self, done: Future[Any]) -> None:
        """End what runs, unless it sits in compiled code or swallows all exceptions: that is left alone after a while.

        An exception that is sent while compiled code runs is raised when that returns.
        """
        sent = 0
        with _quietly():
            for _ in range(60 * _TRIES):  # a minute, should an import last as long
                if done.done() or sent == _TRIES:
                    return
                if not self._is_importing():
                    thread, error = ctypes.c_ulong(self._thread.ident or 0), ctypes.py_object(_Stop)
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, error)
                    sent += 1
                wait([done], _STOPPING)


@contextmanager
def _quietly() -> Iterator[None]:
    """Print nothing where the stop is raised in what Python calls itself, as in a `__del__`, and ignored there."""
    before = sys.unraisablehook

    def hook(ignored: Any) -> None:
        if ignored.exc_type is not _Stop:
            before(ignored)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before
