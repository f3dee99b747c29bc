"""What a wrong answer did: rules that look at its outcomes beside the right ones, each of which may say a sentence.

A rule takes an `Attempt` and returns one true sentence, or None where it has nothing to say. `RULES` and
`RULES_OF_CALLS` list them; the first that speaks is heard. So a new rule is a function and its place on a list.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from helpers.check.answers import Failed, difference, is_number, plain
from helpers.check.costs import known_costs
from helpers.check.run import known
from helpers.check.wording import numeral
from helpers.exercises import Exercise

NOTHING = "The hint below may help."
_MOST_NUMBERS = 10_000  # of a tensor that is looked through
_EXACTLY = 1e-6  # relative
_TIMES = {2: "twice the right one", 0.5: "half of the right one", -1: "right but for its sign"}
_ROUNDINGS = ((math.ceil, "up"), (math.floor, "down"), (round, "to the nearest whole number"))


@dataclass(frozen=True)
class Attempt:
    """A wrong answer, or a right one that costs too much.

    outcomes: what it gave for each of `exercise.inputs`; a call that went wrong is a `Failed`.
    function: the learner's own, wrapped so that more calls are safe: on copies, within what is left of its time, with
        a `Failed` where it raises or runs out of time. None for a value.
    costs: of each scored call, for a right answer that costs too much; otherwise empty.
    """

    exercise: Exercise
    outcomes: Sequence[Any]
    function: Callable[..., Any] | None = None
    costs: Sequence[float] = ()

    @cached_property
    def rights(self) -> list[Any]:
        """The right outcomes."""
        return self.of(self.exercise.oracle)

    def of(self, formula: Callable[..., Any]) -> list[Any]:
        """The outcomes of the oracle or of a wrong formula."""
        return [known(self.exercise, formula, place) for place in range(len(self.outcomes))]

    @cached_property
    def numbers(self) -> list[tuple[list[float], list[float]]]:
        """For each call the numbers found and the right ones, in their order; empty where some are no numbers."""
        try:
            return [(_flat(mine), _flat(true)) for mine, true in zip(self.outcomes, self.rights, strict=True)]
        except (TypeError, ValueError, RuntimeError, OverflowError):
            return []

    @cached_property
    def pairs(self) -> list[tuple[float, float]]:
        """Each number found with the right one; empty where their numbers differ, or nothing varies."""
        if any(len(mine) != len(true) for mine, true in self.numbers):
            return []
        pairs = [pair for mine, true in self.numbers for pair in zip(mine, true, strict=True)]
        varies = len(self.numbers) > 1 and len({true for _, true in pairs}) > 1
        return pairs if varies else []

    @property
    def asks_for_whole_numbers(self) -> bool:
        """Whether all right numbers are whole."""
        return all(true.is_integer() for _, true in self.pairs)


def _flat(outcome: Any) -> list[float]:
    """The numbers of an outcome in their order. Raises TypeError for another, ValueError for NaN, inf or too many."""
    if isinstance(outcome, torch.Tensor):
        if outcome.numel() > _MOST_NUMBERS:
            raise ValueError("too many numbers to look through")
        outcome = outcome.detach().cpu()
    outcome = plain(outcome)
    if isinstance(outcome, list | tuple):
        return [value for entry in outcome for value in _flat(entry)]
    if not is_number(outcome):
        raise TypeError(f"no number: {type(outcome).__name__}")
    if not math.isfinite(outcome):
        raise ValueError("not finite")
    return [float(outcome)]


def explain(attempt: Attempt) -> str:
    """One sentence about what is wrong; where nothing is known, that the hint may help."""
    rules = RULES
    if attempt.exercise.cases and not attempt.costs:
        rules += RULES_OF_CALLS
    return next(filter(None, (rule(attempt) for rule in rules)), NOTHING)


# ---- The rules.


def usual_mistake(attempt: Attempt) -> str | None:
    """The sentence of the one listed mistake that gives the same in every case, at the same costs if these matter."""
    sentences = {sentence for formula, sentence in attempt.exercise.mistakes if _gives_the_same(attempt, formula)}
    return sentences.pop() if len(sentences) == 1 else None


def _gives_the_same(attempt: Attempt, formula: Callable[..., Any]) -> bool:
    calls = zip(attempt.outcomes, attempt.of(formula), attempt.rights, strict=True)
    if not all(_same_outcome(attempt.exercise, *outcomes) for outcomes in calls):
        return False
    if not attempt.costs:
        return True
    costs = zip(attempt.costs, known_costs(attempt.exercise, formula), strict=True)
    return all(max(pair) <= attempt.exercise.same_cost_ratio * min(pair) for pair in costs)


def _same_outcome(exercise: Exercise, found: Any, theirs: Any, right: Any) -> bool:
    if isinstance(found, Failed) or isinstance(theirs, Failed):
        return isinstance(found, Failed) and isinstance(theirs, Failed) and found.kind == theirs.kind
    if isinstance(right, torch.Tensor) and isinstance(found, torch.Tensor) != isinstance(theirs, torch.Tensor):
        return False  # elsewhere a tensor is a spelling of a number
    return difference(found, theirs, exercise) is None


def opposite(attempt: Attempt) -> str | None:
    """Yes where the answer is no."""
    outcomes = list(zip(attempt.outcomes, attempt.rights, strict=True))
    is_opposite = all(type(mine) is type(true) is bool and mine is not true for mine, true in outcomes)
    return "It says yes where the answer is no, and no where it is yes." if len(outcomes) > 2 and is_opposite else None


def right_numbers(attempt: Attempt) -> str | None:
    """The right numbers in another form, or in other places."""
    varies = len(attempt.numbers) > 1 and len({number for _, true in attempt.numbers for number in true}) > 1
    if not varies:
        return None
    if all(mine == true for mine, true in attempt.numbers):
        return "The numbers are right."
    if all(sorted(mine) == sorted(true) for mine, true in attempt.numbers):
        return "These are the right numbers, in the wrong places."
    return None


def constant(attempt: Attempt) -> str | None:
    """The same number, whatever the arguments."""
    numbers = {mine for mine, _ in attempt.pairs}
    if len(numbers) != 1:
        return None
    first = plain(attempt.outcomes[0])
    number = first if is_number(first) else numbers.pop()
    return f"It is {numeral(number)} in every case."


def constant_ratio(attempt: Attempt) -> str | None:
    """A factor too many or too few."""
    ratios = [mine / true for mine, true in attempt.pairs if true]
    zeros_agree = all(not mine for mine, true in attempt.pairs if not true)
    if not ratios or not zeros_agree or not _all_equal(ratios):
        return None
    ratio = round(ratios[0], 6)
    if ratio in (0, 1):
        return None
    if ratio in _TIMES:
        return f"In every case it is {_TIMES[ratio]}."
    factor = ratio if abs(ratio) >= 1 else round(1 / ratios[0], 6)
    if factor != round(factor, 3):  # the root of something
        return None
    if factor == ratio:
        return f"In every case it is {numeral(factor)} times the right one."
    return f"In every case it is the right one divided by {numeral(factor)}."


def constant_difference(attempt: Attempt) -> str | None:
    """The same amount too many or too few."""
    differences = [mine - true for mine, true in attempt.pairs]
    if not differences or not differences[0] or not _all_equal(differences):
        return None
    side = "large" if differences[0] > 0 else "small"
    return f"In every case it is {numeral(abs(round(differences[0], 6)))} too {side}."


def _all_equal(values: Sequence[float]) -> bool:
    return all(math.isclose(value, values[0], rel_tol=_EXACTLY) for value in values)


def upside_down(attempt: Attempt) -> str | None:
    """One over the right number."""
    is_inverse = all(math.isclose(mine * true, 1, rel_tol=_EXACTLY) for mine, true in attempt.pairs)
    return "In every case it is one divided by the right one." if attempt.pairs and is_inverse else None


def not_rounded(attempt: Attempt) -> str | None:
    """The right number before it is rounded."""
    if not attempt.asks_for_whole_numbers or all(mine.is_integer() for mine, _ in attempt.pairs):
        return None
    for turn, word in _ROUNDINGS:
        if all(turn(mine) == true for mine, true in attempt.pairs):
            return f"In every case the right one is yours, rounded {word}."
    return None


def sometimes_off_by_one(attempt: Attempt) -> str | None:
    """Right in some cases, and one too many or too few in the others."""
    if not attempt.pairs or not attempt.asks_for_whole_numbers:
        return None
    for sign, side in ((1, "large"), (-1, "small")):
        if all(0 <= sign * (mine - true) <= 1 for mine, true in attempt.pairs):
            return f"It is sometimes right and sometimes 1 too {side}."
    return None


Rule = Callable[[Attempt], str | None]
RULES: tuple[Rule, ...] = (usual_mistake,)
# These need several calls: of a single value they would give the answer away, and of costs they say nothing.
RULES_OF_CALLS: tuple[Rule, ...] = (
    opposite,
    right_numbers,
    constant,
    constant_ratio,
    constant_difference,
    upside_down,
    not_rounded,
    sometimes_off_by_one,
)
