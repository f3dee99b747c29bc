"""A rule for single values: which number of the statement, or which unit, may be left out or taken for another.

All that it says is a question, or true whatever was done: a value can have come about in many ways.
"""

import itertools
import math
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, NamedTuple

from helpers.check.amounts import amount, scale
from helpers.check.answers import is_number, plain
from helpers.check.attempt import Attempt
from helpers.check.wording import sentence_list
from helpers.exercises import Exercise

_SMALL = (0.5, 1, 2, 3, 4, 5, 6)  # one of them is easily taken for another, or for 8
# Small factors; several have one question, as one of them alone would give the answer away.
_FACTORS = (4 / 3, 1.5, 2, 3, 4, 6, 8)
_MOST_SUSPECTS = 3
_SURE = 0.015  # relative: a ratio is known so well
_EXACT = 5e-3  # relative: a ratio that is known less well may come from any two numbers
# Peaks of cards, dense or sparse, of their matrix or their vector units.
_PEAKS = (
    19.5e12, 51e12, 67e12, 125e12, 156e12, 312e12, 494.7e12, 624e12, 756e12, 989.5e12, 1513e12, 1979e12, 2250e12,
)  # fmt: skip
_TIMES = (60, 24, 1440, 3600, 86_400)  # between seconds, minutes, hours and days
_PREFIX = "Is its prefix the one that is asked for?"
_ZEROS = "Is a power of ten missing, or one too many: a million for a billion, or a zero?"
_NEAR = "That is near: is something rounded too far, here or on the way?"
_WORDS = "Write the number alone, without quotes."


class _Ratio(NamedTuple):
    """How many times the right value was found, and how far off that may be."""

    value: float
    room: float

    def is_one_of(self, *factors: float) -> bool:
        """Whether it may be one of these, or one over it."""
        return any(
            math.isclose(self.value, times, rel_tol=self.room) for one in factors if one for times in (one, 1 / one)
        )


def quantity(attempt: Attempt) -> str | None:
    """What a value that is one step away may mean, as a question."""
    exercise = attempt.exercise
    found, right = plain(attempt.outcomes[0]), attempt.rights[0]
    if not is_number(right):
        return None
    if isinstance(found, str):
        found = amount(found, exercise.unit)
        if found is None:
            return _WORDS
    if not is_number(found):
        return _of_another_kind(found)
    if not right or not math.isfinite(found) or found * right < 0:
        return None
    if not found:
        return "Is something left out, rounded away, or taken for nothing?"
    return _of_number(exercise, float(found), float(right))


def _of_another_kind(found: Any) -> str | None:
    if callable(found):
        return "That is a function: call it, with parentheses behind its name."
    if isinstance(found, tuple | list) and len(found) > 1 and all(isinstance(one, int) for one in found):
        return "With a comma between them they are several numbers: the decimal sign is a point."
    return None


def _of_number(exercise: Exercise, found: float, right: float) -> str | None:
    if _is_rounded(found, right):
        return _NEAR
    if _is_exact(exercise):
        said = _of_power_of_two(found, right)
        if said:
            return said
    ratio = _ratio(exercise, found, right)
    suspects = [words for words, factors in _wrong(exercise).items() if ratio.is_one_of(*factors)]
    if _is_small_factor(ratio):
        return _of_small_factor(suspects)
    questions = set(_of_itself(exercise, ratio, found, right))
    if questions:
        return questions.pop() if len(questions) == 1 else None
    if not suspects:
        if _has_times(exercise) and ratio.is_one_of(*_TIMES):
            return "Is a unit of time another one, as minutes for seconds, or is a step between two of them missing?"
        pairs = list(_two_wrong(exercise, ratio))
        suspects = [*pairs[0]] if len(pairs) == 1 else []
    if 1 <= len(suspects) <= _MOST_SUSPECTS:
        each = "it" if len(suspects) == 1 else "each"
        return f"What of {sentence_list(suspects)}: is {each} in there, on the right side, and the right one?"
    return _of_size(exercise, found, right)


def _is_small_factor(ratio: _Ratio) -> bool:
    """Whether it surely is one: a small whole number that was rounded may be as near to a fraction by chance."""
    sure = ratio._replace(room=min(ratio.room, _SURE))
    return sure.is_one_of(*_FACTORS) or ratio.is_one_of(*(factor for factor in _FACTORS if factor >= 2))


def _of_small_factor(suspects: list[str]) -> str:
    """One question for all small factors, as one of them alone would give the answer away."""
    if suspects:
        return f"Is a small factor missing, in there twice, or another one: what of {sentence_list(suspects)}?"
    return "Is a small factor missing, in there once too often, or another one, as a 4 for a 2?"


def _is_rounded(found: float, right: float) -> bool:
    """Whether a value may be the right one, rounded too far: to the digits that it has, or off by its last one."""
    digits = len(Decimal(repr(found)).normalize().as_tuple().digits)
    is_near = abs(found - right) <= max(min(1.01 * _last_digit(found), _SURE * abs(right)), 2e-3 * abs(right))
    is_rounded_up = right >= 10 and right.is_integer() and found == right + 1
    has_fewer_digits = math.isclose(found, right, rel_tol=0.1) and float(f"{right:.{digits}g}") == found
    return is_near or is_rounded_up or has_fewer_digits


def _last_digit(number: float) -> float:
    """What its last digit counts: 10 of 120, 0.001 of 0.123."""
    return 10.0 ** int(Decimal(repr(number)).normalize().as_tuple().exponent)


def _ratio(exercise: Exercise, found: float, right: float) -> _Ratio:
    """How far off it may be: by the digits that the value is written with, within what the exercise allows.

    Where a small whole number is right, it may have been rounded, or cut off, and what is found came about before.
    """
    rounded = 0.5 * _last_digit(found) / abs(found)
    if 10 <= right < 1000 and right.is_integer():
        return _Ratio(found / (right + 0.25), max(rounded, 0.75 / right))
    return _Ratio(found / right, min(max(rounded, 1e-3), max(exercise.tolerance or 0, 1e-3)))


# ---- Numbers of the statement.


def _wrong(exercise: Exercise) -> dict[str, list[float]]:
    """By which factors a value is wrong in which a number is left out, there twice, upside down, or another one."""
    wrong = {words: [*_of_statement(number), *_others(words, number)] for words, number in exercise.quantities.items()}
    return wrong | _units(exercise)


def _of_statement(number: float | tuple[float, ...]) -> list[float]:
    """A number and its square, and those that the exercise names in its place."""
    own, *others = number if isinstance(number, tuple) else (number,)
    named = [other / own for other in others]
    return [own, own**2, *named, *(factor**2 for factor in named)]


def _others(words: str, number: float | tuple[float, ...]) -> list[float]:
    """Other small numbers, or other peaks, in the place of one."""
    own = _of_statement(number)[0]
    others = _PEAKS if "peak" in words else (*_SMALL, 8) if own in _SMALL else ()
    return [other / own for other in others if other != own]


def _units(exercise: Exercise) -> dict[str, list[float]]:
    if "B" not in scale(exercise.unit)[1]:
        return {}
    mixed = [1.024**step for step in (1, 2, 3)]
    steps = [1024.0**step for step in (1, 2, 3)]
    can_be_told_apart = (exercise.tolerance or 0) < _EXACT
    return {
        "the 8 bits of a byte": [8],
        "the 1024 of each binary prefix": steps + mixed if can_be_told_apart else steps,
    }


def _two_wrong(exercise: Exercise, ratio: _Ratio) -> Iterator[tuple[str, str]]:
    """Two numbers of the statement that are both left out, upside down, or other ones."""
    if ratio.room > _EXACT:
        return
    wrong = {words: _of_statement(number) for words, number in exercise.quantities.items()} | _units(exercise)
    for (one, its), (other, theirs) in itertools.combinations(wrong.items(), 2):
        factors = [*theirs, *(1 / factor for factor in theirs)]
        if ratio.is_one_of(*(first * second for first, second in itertools.product(its, factors))):
            yield one, other


def _has_times(exercise: Exercise) -> bool:
    return any(re.search(r"second|hour|day|minute", words) for words in exercise.quantities)


def _of_itself(exercise: Exercise, ratio: _Ratio, found: float, right: float) -> Iterator[str]:
    """Questions about what the value is: of another prefix, upside down, or a number of the statement."""
    digits = round(math.log10(ratio.value))
    if digits and ratio.is_one_of(10.0**digits):
        yield _of_ten(digits, _is_share(exercise, right))
    numbers = {words: _of_statement(number)[0] for words, number in exercise.quantities.items()}
    whole = 100.0 if exercise.unit == "%" else 1.0
    if any(math.isclose(found * right, one**2, rel_tol=ratio.room) for one in (whole, *numbers.values())):
        yield "Is it upside down?"
    for words, number in numbers.items():
        if math.isclose(found, number, rel_tol=1e-3):
            yield f"That is {words}, as the statement gives it: what is asked for?"


def _is_share(exercise: Exercise, right: float) -> bool:
    return exercise.unit == "%" or (abs(right) < 1 and bool(exercise.tolerance))


def _of_ten(digits: int, is_share: bool) -> str:
    if is_share and abs(digits) == 2:
        return "Is it a fraction or in percent?"
    return _ZEROS if is_share or digits % 3 else _PREFIX


def _is_exact(exercise: Exercise) -> bool:
    """Whether all bits are asked for, and no number of a statement makes them up."""
    return not exercise.unit and not exercise.quantities and exercise.tolerance is None


def _of_power_of_two(found: float, right: float) -> str | None:
    (mine, my_power), (true, power) = math.frexp(found), math.frexp(right)
    if mine == true:
        return "Only a power of two is wrong: what of the exponent, and of what you divide by?"
    if my_power == power:
        return "It lies between the same two powers of two as the right one: what of the fraction?"
    return None


# ---- Where nothing fits.


def _of_size(exercise: Exercise, found: float, right: float) -> str | None:
    """What cannot be, or a list to look through."""
    if exercise.unit == "%" and right <= 100 < found:
        return "That is more than 100 %: a share of what would it be? Is a ratio upside down?"
    if not exercise.unit and _is_share(exercise, right) and found > 1:
        return "That is more than 1: a share of what would it be?"
    return _which_numbers(exercise)


def _which_numbers(exercise: Exercise) -> str | None:
    names = list(exercise.quantities)
    return f"Is each number this question's: {sentence_list(names)}?" if len(names) > 2 else None
