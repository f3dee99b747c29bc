"""A rule for single values: which number of the statement, or which unit, may be left out or taken for another.

All that it says is a question, or true whatever was done: a value can have come about in many ways.
"""

import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from helpers.check.amounts import amount, scale
from helpers.check.answers import is_number, plain
from helpers.check.attempt import Attempt
from helpers.check.wording import sentence_list
from helpers.exercises import Exercise

_SMALL = 6  # whole numbers up to this one are taken for each other
# Small factors; several have one question, as one of them alone would give the answer away.
_FACTORS = (4 / 3, 1.5, 2, 3, 4, 6, 8)
_PREFIXES = tuple(1e3**power for power in range(1, 5))
_BINARY = ((2.0**10, "one step"), (2.0**20, "two steps"), (2.0**30, "three steps"))
_PREFIX = "Is its prefix the one that is asked for?"
_ZEROS = "Is a power of ten missing, or one too many? Count the zeros once more."
_NEAR = "That is near: is something rounded too far, here or on the way?"
_WORDS = "Write the number alone, without quotes."


def quantity(attempt: Attempt) -> str | None:
    """What a value that is one step away may mean, as a question."""
    exercise = attempt.exercise
    found, right = plain(attempt.outcomes[0]), attempt.rights[0]
    if isinstance(found, str) and is_number(right):
        found = amount(found, exercise.unit)
        if found is None:
            return _WORDS
    if not is_number(found) or not is_number(right) or not right or not math.isfinite(found) or found * right < 0:
        return None
    if not found:
        return "Is something left out, rounded away, or taken for nothing?"
    return _of_ratio(exercise, float(found), float(right))


def _of_ratio(exercise: Exercise, found: float, right: float) -> str | None:
    room = _room(exercise, found, right)
    if _is_rounded(found, right):
        return _NEAR
    small = _small_factor(exercise, found / right, room)
    if small:
        return small
    questions = {question for factor, question in _steps(exercise, found, right) if _agree(factor, 1, room)}
    if questions:
        return questions.pop() if len(questions) == 1 else None
    if exercise.unit == "%" and right <= 100 < found:
        return "That is more than 100 %: a share of what would it be? Is a ratio upside down?"
    if not exercise.unit and _is_share(exercise, right) and found > 1:
        return "That is more than 1: a share of what would it be?"
    return _which_numbers(exercise)


def _agree(one: float, other: float, room: float) -> bool:
    return math.isclose(one, other, rel_tol=room)


def _is_rounded(found: float, right: float) -> bool:
    """Whether a value may be the right one, rounded too far: off by no more than its last digit."""
    return abs(found - right) <= max(min(1.01 * _last_digit(found), 0.05 * abs(right)), 2e-3 * abs(right))


def _last_digit(number: float) -> float:
    """What its last digit counts: 10 of 120, 0.001 of 0.123."""
    return 10.0 ** int(Decimal(repr(number)).normalize().as_tuple().exponent)


def _room(exercise: Exercise, found: float, right: float) -> float:
    """How far off a ratio may be: by the digits that the value is written with, within what the exercise allows.

    Where a small whole number is right, it may have been rounded, and what is found came about before.
    """
    rounded = 0.5 * _last_digit(found) / abs(found)
    if 10 <= right < 1000 and float(right).is_integer():
        return max(rounded, 0.5 / right)
    return min(max(rounded, 1e-3), max(exercise.tolerance or 0, 1e-3))


def _small_factor(exercise: Exercise, ratio: float, room: float) -> str | None:
    """A question for all small factors together, with those numbers of the statement that may be one of them."""
    if not any(_agree(ratio, times, room) for factor in _FACTORS for times in (factor, 1 / factor)):
        return None
    suspects = [words for words, number in exercise.quantities.items() if _may_be_wrong(number, ratio, room)]
    if "B" in scale(exercise.unit)[1] and any(_agree(ratio, times, room) for times in (8, 1 / 8)):
        suspects.append("the 8 bits of a byte")
    if suspects:
        return f"Is a small factor missing, in there twice, or another one: what of {sentence_list(suspects)}?"
    return "Is a small factor missing, in there once too often, or another one, as a 4 for a 2?"


def _may_be_wrong(number: float, ratio: float, room: float) -> bool:
    """Whether a number left out, there twice, on the wrong side, or another small one in its place gives the ratio."""
    if any(_agree(ratio, number**power, room) for power in (1, -1, 2, -2)):
        return True
    is_small = float(number).is_integer() and number <= _SMALL
    others = [other for other in range(1, _SMALL + 1) if is_small and other != number]
    return any(_agree(ratio, other / number, room) for other in others)


def _steps(exercise: Exercise, found: float, right: float) -> Iterator[tuple[float, str]]:
    """Numbers that are 1 if what is asked is so, each with its question."""
    ratio = found / right
    for factor, question in _powers_of_the_statement(exercise):
        yield from ((ratio / factor, question), (ratio * factor, question))
    question = _ZEROS if _is_share(exercise, right) else _PREFIX
    for factor in _PREFIXES:
        yield from ((ratio / factor, question), (ratio * factor, question))
    digits = round(math.log10(abs(ratio)))
    if abs(digits) % 3 and (abs(digits) != 2 or not _is_share(exercise, right)):
        yield ratio / 10.0**digits, _ZEROS
    if _is_share(exercise, right):
        yield from ((times, "Is it a fraction or in percent?") for times in (ratio / 100, ratio * 100))
    yield from _binary(exercise, ratio)
    whole = 100.0 if exercise.unit == "%" else 1.0
    yield found * right / whole**2, "Is it upside down?"
    for words, number in exercise.quantities.items():
        yield found / number, f"That is {words}, as the statement gives it: what is asked for?"


def _is_share(exercise: Exercise, right: float) -> bool:
    return exercise.unit == "%" or (abs(right) < 1 and bool(exercise.tolerance))


def _powers_of_the_statement(exercise: Exercise) -> Iterator[tuple[float, str]]:
    quantities = list(exercise.quantities.items())
    for place, (words, number) in enumerate(quantities):
        yield number, f"What of {words}: is it in there, and on the right side?"
        yield number**2, f"Is {words} on the wrong side, or in there twice?"
        for other, another in quantities[place + 1 :]:
            yield number / another, f"Is {words} taken for {other}, or the other way round?"


def _binary(exercise: Exercise, ratio: float) -> Iterator[tuple[float, str]]:
    """Units of 1024 where bytes are asked for; and powers of two where no unit is."""
    if "B" in scale(exercise.unit)[1]:
        for factor, steps in _BINARY:
            question = f"Is it a unit of 1024, {steps} too far or too few?"
            yield from ((ratio / factor, question), (ratio * factor, question))
        if (exercise.tolerance or 0) < 5e-3:  # else they cannot be told apart
            mixed = "Are units of 1000 and of 1024 mixed?"
            yield from ((ratio * 1.024**steps, mixed) for steps in (-3, -2, -1, 1, 2, 3))
    elif not exercise.unit and not exercise.quantities:
        power = round(math.log2(abs(ratio)))
        yield ratio / 2.0**power, "Only a power of two is wrong: what of the exponent, and of what you divide by?"


def _which_numbers(exercise: Exercise) -> str | None:
    """A list to look through, where nothing fits."""
    names: list[Any] = list(exercise.quantities)
    return f"Is each number this question's: {sentence_list(names)}?" if len(names) > 2 else None
