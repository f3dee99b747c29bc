"""A rule for single values: which number of the statement, or which unit, may be left out or taken for another."""

import math
from collections.abc import Iterator

from helpers.check.amounts import amount
from helpers.check.answers import is_number, plain
from helpers.check.attempt import Attempt

_USUAL = (
    (8, "Are bits and bytes taken for each other?"),
    (100, "Is it a fraction or in percent?"),
    (1e3, "Is its prefix the one that is asked for?"),
    (1e6, "Is its prefix the one that is asked for?"),
    (1e9, "Is its prefix the one that is asked for?"),
    (1e12, "Is its prefix the one that is asked for?"),
    (2**10, "Is it a unit of 1024, and one step too far or too few?"),
    (2**20, "Is it a unit of 1024, and two steps too far or too few?"),
    (2**30, "Is it in the unit that is asked for?"),
    # Several factors, as one of them alone would give the answer away.
    *((times, "Is a small factor missing, or in there once too often?") for times in (4 / 3, 1.5, 2, 3, 4, 6)),
)
_MIXED = "Are units of 1000 and of 1024 mixed?"
_NEAR = "That is near: is something rounded too far, here or on the way?"


def quantity(attempt: Attempt) -> str | None:
    """What a value that is one step away may mean, as a question."""
    exercise = attempt.exercise
    found, right = plain(attempt.outcomes[0]), attempt.rights[0]
    if isinstance(found, str):
        found = amount(found, exercise.unit)
    if not is_number(found) or not is_number(right) or not found or not right:
        return None
    if not math.isfinite(found) or found * right < 0:
        return None
    room = max(exercise.tolerance or 0, 1e-3)
    for factor, question in _steps(attempt):
        for ratio in (factor, 1 / factor):
            if math.isclose(found / right, ratio, rel_tol=room) and not math.isclose(1, ratio, rel_tol=2 * room):
                return question
    return _NEAR if math.isclose(found, right, rel_tol=0.1) else None


def _steps(attempt: Attempt) -> Iterator[tuple[float, str]]:
    quantities = attempt.exercise.quantities
    for words, number in quantities.items():
        yield number, f"What of {words}: is it in there, and on the right side?"
    for words, number in quantities.items():
        yield number**2, f"Is {words} on the wrong side, or in there twice?"
    yield from _USUAL
    if (attempt.exercise.tolerance or 0) < 5e-3:  # else they cannot be told apart
        yield from ((1.024**steps, _MIXED) for steps in (1, 2, 3))
    names = list(quantities)
    for place, words in enumerate(names):
        for other in names[place + 1 :]:
            ratio = quantities[words] / quantities[other]
            if ratio != 1:
                yield ratio, f"Is {words} taken for {other}, or the other way round?"
