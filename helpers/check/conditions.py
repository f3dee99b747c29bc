"""Rules that say where an answer is right, or wrong: a condition on the arguments, or on what is right there."""

import itertools
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch

from helpers.check.answers import is_number, plain
from helpers.check.attempt import Attempt
from helpers.check.wording import call_text, quoted

_FEWEST_WRONG = 5  # calls that a condition is read from
_MOSTLY = 0.6  # of the calls in which a condition holds, or of those that are wrong

Condition = tuple[str, set[int]]  # in words, and the calls in which it holds


def edge(attempt: Attempt) -> str | None:
    """The condition under which alone it is right, or wrong."""
    right, wrong = _right_and_wrong(attempt)
    if min(len(right), len(wrong)) < (2 if len(attempt.calls) > 20 else 3):
        return None
    for words, true in _conditions(attempt):
        if true == right:
            return f"In the calls tried it is right only where {words}."
        if true == wrong:
            return f"In the calls tried it is wrong only where {words}."
    return None


def around(attempt: Attempt) -> str | None:
    """The narrowest condition that holds wherever it is wrong, and seldom elsewhere."""
    right, wrong = _right_and_wrong(attempt)
    most = len(attempt.calls) / 2
    wider = [(len(true), words) for words, true in _conditions(attempt) if wrong < true and len(true) <= most]
    size, words = min(wider, default=(0, ""))
    is_telling = len(wrong) >= max(_FEWEST_WRONG, _MOSTLY * size)
    if not (size and right and is_telling):
        return None
    return f"In the calls tried it is wrong only where {words}, and there not always."


def mostly(attempt: Attempt) -> str | None:
    """The widest condition under which it is right and else mostly wrong, or wrong and else mostly right."""
    calls = attempt.calls
    right, wrong = _right_and_wrong(attempt)
    if len(right) < 3 or len(wrong) < 2:
        return None
    conditions = _of_each(_things(attempt))
    for words, true in sorted(conditions, key=lambda condition: -len(condition[1])):
        others = len(calls) - len(true)
        if true < right and len(true) >= 3 and len(wrong) >= _MOSTLY * others:
            return f"In the calls tried it is right where {words}, and mostly wrong elsewhere."
        if true < wrong and len(true) >= _MOSTLY * len(wrong):
            return f"In the calls tried it is wrong wherever {words}."
    return None


def _right_and_wrong(attempt: Attempt) -> tuple[set[int], set[int]]:
    """The calls in which it is right, and the others."""
    right = {index for index, one in enumerate(attempt.calls) if one.is_right}
    return right, set(range(len(attempt.calls))) - right


def one_right(attempt: Attempt) -> str | None:
    """The simplest call in which it is right, where it often is."""
    right = [call_text(attempt.exercise.name, one.arguments) for one in attempt.calls if one.is_right]
    if not attempt.exercise.name or not right:
        return None
    simplest = min(right, key=len)
    often = "in most calls" if len(right) > len(attempt.calls) / 2 else "in some calls"
    else_ = _side(attempt)
    return f"It is right {often}, as {simplest}{else_}: what differs?" if len(simplest) < 60 else None


def _side(attempt: Attempt) -> str:
    """The end of a sentence: on which side it is wrong, where that is always the same."""
    wrong = [(plain(one.mine), one.right) for one in attempt.calls if not one.is_right]
    if not all(is_number(mine) and is_number(right) and mine != right for mine, right in wrong):
        return ""
    sides = {mine > right for mine, right in wrong}
    return (", else too large" if sides.pop() else ", else too small") if len(sides) == 1 else ""


# ---- What may hold in some calls.


def parts(attempt: Attempt) -> Iterator[Condition]:
    """Conditions under which a formula may be another one: a usual answer, an argument that is or is not 1."""
    yield _where("the right answer is finite and not 0", (_is_usual(one.right) for one in attempt.calls))
    for name, column in _numbers(attempt).items():
        yield _where(f"{name} is not 1", (number != 1 for number in column))
        yield _where(f"{name} is 1", (number == 1 for number in column))


def _is_usual(right: Any) -> bool:
    return is_number(right) and math.isfinite(right) and right != 0


_Columns = Mapping[str, Sequence[Any]]  # of something that has a name, what it is in each call


def _conditions(attempt: Attempt) -> Iterator[Condition]:
    rights = [one.right for one in attempt.calls]
    yield from _of_each({"the right answer": rights})
    for said in sorted({right for right in rights if isinstance(right, str | bool)}, key=repr):
        yield _where(f"the right answer is {said!r}", (right == said for right in rights))
    numbers = _numbers(attempt)
    yield from _of_each(numbers)
    for (one, first), (other, second) in itertools.permutations(numbers.items(), 2):
        for words, test in _OF_TWO_NUMBERS.items():
            yield _where(words.format(one, other), map(test, first, second))
    yield from _of_each(_things(attempt))


def _numbers(attempt: Attempt) -> _Columns:
    """What varies from call to call."""
    rows = [attempt.variables(one.arguments) for one in attempt.calls]
    names = [name for name in rows[0] if all(name in row for row in rows)]
    return {quoted(name): [row[name] for row in rows] for name in names}


def _things(attempt: Attempt) -> _Columns:
    """The arguments that are tuples or tensors."""
    places = [place for place, thing in enumerate(attempt.exercise.inputs[0]) if not is_number(thing)]
    return {quoted(attempt.names[place]): [one.arguments[place] for one in attempt.calls] for place in places}


def _of_each(columns: _Columns) -> Iterator[Condition]:
    for name, column in columns.items():
        for is_kind, tests in _TESTS:
            if all(map(is_kind, column)):
                yield from (_where(words.format(name), map(test, column)) for words, test in tests.items())


def _where(words: str, holds: Iterable[bool]) -> Condition:
    return words, {index for index, it_holds in enumerate(holds) if it_holds}


_OF_NUMBERS: dict[str, Callable[[Any], bool]] = {
    "{} is 0": lambda number: number == 0, "{} is 1": lambda number: number == 1, "{} is 2": lambda number: number == 2,
    "{} is infinite": math.isinf,
    "{} is even": lambda number: number % 2 == 0, "{} is odd": lambda number: number % 2 == 1,
    "{} is below 0": lambda number: number < 0, "{} is below 1": lambda number: number < 1,
    "{} is below 2": lambda number: number < 2, "{} is below 3": lambda number: number < 3,
    "{} is a power of two": lambda number: number > 0 and math.frexp(number)[0] == 0.5,
}  # fmt: skip
_OF_TWO_NUMBERS: dict[str, Callable[[Any, Any], bool]] = {
    "{0} is {1}": operator.eq, "{0} is larger than {1}": operator.gt,
    "{1} divides {0}": lambda one, other: bool(other) and math.isfinite(one / other) and one % other == 0,
}  # fmt: skip
_OF_TUPLES: dict[str, Callable[[Any], bool]] = {
    "{} has one entry": lambda several: len(several) == 1,
    "{} has at most two entries": lambda several: len(several) <= 2,
    "{} has more than two entries": lambda several: len(several) > 2,
    "an entry of {} is 0": lambda several: 0 in several,
    "an entry of {} is 1": lambda several: 1 in several,
    "the last entry of {} is 1": lambda several: several[-1:] == (1,),
    "two entries of {} are equal": lambda several: len(set(several)) < len(several),
    "the entries of {} never rise": lambda several: list(several) == sorted(several, reverse=True),
    "an entry of {} is larger than the one before":
        lambda several: any(one < other for one, other in itertools.pairwise(several)),
}  # fmt: skip
_OF_TENSORS: dict[str, Callable[[Any], bool]] = {
    "{} has a negative number": lambda x: bool((x < 0).any()),
    "all of {} is 0": lambda x: not x.any(),
    "{} is of whole numbers": lambda x: not x.is_floating_point(),
    "{} is not of float32": lambda x: x.dtype != torch.float32,
    "{} is not contiguous": lambda x: not x.is_contiguous(),
    "{} is a slice that starts further on": lambda x: x.storage_offset() > 0,
    "{} has one number": lambda x: x.numel() == 1,
}  # fmt: skip
_TESTS: tuple[tuple[Callable[[Any], bool], dict[str, Callable[[Any], bool]]], ...] = (
    (is_number, _OF_NUMBERS),
    (lambda thing: isinstance(thing, tuple), _OF_TUPLES),
    (lambda thing: isinstance(thing, torch.Tensor), _OF_TENSORS),
)
