"""Runs a learner's function: on copies, for a limited time, and without a trace."""

import contextvars
import copy
import ctypes
import functools
import inspect
import linecache
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from helpers.exercises.exercise import Exercise
from helpers.exercises.outcomes import Failed, described, difference, short


@contextmanager
def same_randomness() -> Iterator[None]:
    """Leaves the global random generators of Python, NumPy and PyTorch as they were."""
    generators = [(random.setstate, random.getstate()), (torch.set_rng_state, torch.get_rng_state())]
    if "numpy" in sys.modules:
        import numpy.random as theirs

        generators.append((theirs.set_state, theirs.get_state()))
    try:
        yield
    finally:
        for restore, state in generators:
            restore(state)


class _OutOfTime(BaseException):
    """Raised inside the learner's function, in its own thread."""


def in_time(judge: Callable[[], tuple[str, str]], seconds: float) -> tuple[str, str]:
    """The status and the message that `judge` returns, or those that say that it took too long."""
    found: list[Any] = []
    done = threading.Event()

    def work() -> None:
        try:
            found.append(judge())
        except BaseException as error:
            found.append(error)
        finally:
            done.set()

    # Only another thread can be stopped on every system, and what it prints still belongs to the cell.
    worker = threading.Thread(target=contextvars.copy_context().run, args=(work,), daemon=True)
    worker.start()
    end, why = time.monotonic() + seconds, f"your function had not come to an end after {seconds} seconds"
    try:
        while not done.wait(0.2) and time.monotonic() < end:
            pass
    except KeyboardInterrupt:
        why = "you stopped it before it came to an end"
    for _ in range(20):  # a bare except in the function may swallow one or the other
        if done.is_set():
            break
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(worker.ident), ctypes.py_object(_OutOfTime))
        done.wait(0.1)
    if not found or isinstance(found[0], _OutOfTime):
        return "not yet", f"{why}. Does a loop in it never end, or is there a shorter way?"
    if isinstance(found[0], BaseException):
        raise RuntimeError(described(found[0])) from found[0]
    return found[0]


def call(exercise: Exercise, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """The result on a private copy of the arguments, or the exception as a sentence."""
    given, arguments = arguments, copy.deepcopy(arguments)
    try:
        result = function(*arguments)
        result = tuple(result) if isinstance(result, Iterator) else result
    except (Exception, SystemExit) as error:
        return Failed(type(error).__name__, f"it raised {described(error)}{_line(error, function)}")
    if exercise.in_place and isinstance(result, torch.Tensor):
        if difference(arguments[0], result, exercise):
            return Failed("not in place", "what you return is not the tensor that you were given: change it in place")
        if result.data_ptr() != arguments[0].data_ptr():
            return Failed("a copy", "what you return is a copy of the tensor that you were given: return that one")
    if not exercise.in_place and any(map(_changed, given, arguments)):
        return Failed("changed", "it changed what it was given: leave the inputs as they are")
    return result


def _changed(before: Any, after: Any) -> bool:
    """Whether that is a tensor of which the function has changed a number, the shape or the strides."""
    if not isinstance(before, torch.Tensor) or before.layout != torch.strided or before.is_meta:
        return False
    same = (before.shape, before.stride()) == (after.shape, after.stride())
    return not same or not torch.equal(
        *(one.detach().contiguous().flatten().view(torch.uint8) for one in (before, after))
    )


def _line(error: BaseException, function: Any) -> str:
    """The line of the function where it raised, if its source is known."""
    home = getattr(getattr(inspect.unwrap(function), "__code__", None), "co_filename", None)
    trace = error.__traceback__
    lines = []
    while trace:
        if trace.tb_frame.f_code.co_filename == home != __file__:
            lines.append(linecache.getline(home, trace.tb_lineno).strip())
        trace = trace.tb_next
    return f" in the line `{short(lines[-1], str)}`" if lines and lines[-1] else ""


def item(answer: Any, place: int) -> Any:
    """That part of an answer: of a tuple, or of what a function returns."""
    if not callable(answer):
        return answer[place] if isinstance(answer, tuple | list) and place < len(answer) else answer

    @functools.wraps(answer)
    def part(*arguments: Any) -> Any:
        results = answer(*arguments)
        return results[place] if isinstance(results, tuple | list) else results

    return part
