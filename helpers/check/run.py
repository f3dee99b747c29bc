"""Runs a learner's function: on copies, for a limited time, and without a trace."""

import contextvars
import copy
import ctypes
import functools
import inspect
import random
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from helpers.check.answers import Failed, described, short
from helpers.exercises import Exercise


@contextmanager
def same_randomness() -> Iterator[None]:
    """Leaves the global random generators of Python, NumPy and PyTorch as they were."""
    python, numpy = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)


class _OutOfTime(BaseException):
    """Raised inside the learner's function, in its own thread."""


def in_time(judge: Callable[[], tuple[str, str]], seconds: float) -> tuple[str, str]:
    """The status and the message that `judge` returns, or those that say that it took too long."""
    found: Future[tuple[str, str]] = Future()

    def work() -> None:
        try:
            found.set_result(judge())
        except BaseException as error:
            found.set_exception(RuntimeError(described(error)))

    # Only another thread can be stopped on every system, and what it prints still belongs to the cell.
    worker = threading.Thread(target=contextvars.copy_context().run, args=(work,), daemon=True)
    worker.start()
    try:
        return found.result(seconds)
    except TimeoutError:
        why = f"your function had not come to an end after {seconds} seconds"
    except KeyboardInterrupt:
        why = "you stopped it before it came to an end"
    for _ in range(20):  # a bare except in the function may swallow one or the other
        if not found.done():
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(worker.ident), ctypes.py_object(_OutOfTime))
            worker.join(0.1)
    return "not yet", f"{why}. Does a loop in it never end, does it wait for a compiler, or is there a shorter way?"


def call(exercise: Exercise, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """The result on a private copy of the arguments, or the exception as a sentence."""
    given, arguments = arguments, copy.deepcopy(arguments)
    try:
        result = function(*arguments)
        result = tuple(result) if isinstance(result, Iterator) else result
    except (Exception, SystemExit) as error:
        return Failed(type(error).__name__, f"it raised {described(error)}{_line(error, function)}")
    if exercise.in_place:
        if isinstance(result, torch.Tensor) and result.data_ptr() != arguments[0].data_ptr():
            return Failed("a copy", "what you return is not the tensor that you were given: change it in place")
    elif any(isinstance(one, torch.Tensor) and not one.equal(now) for one, now in zip(given, arguments, strict=True)):
        return Failed("changed", "it changed what it was given: leave the inputs as they are")
    return result


def _line(error: BaseException, function: Any) -> str:
    """The line of the function where it raised, if its source is known."""
    home = getattr(getattr(inspect.unwrap(function), "__code__", None), "co_filename", None)
    lines = [frame.line for frame in traceback.extract_tb(error.__traceback__) if frame.filename == home]
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
