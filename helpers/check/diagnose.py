"""What a wrong answer has in common in every case, where no named mistake explains it: only facts, never a guess."""

import math
from collections.abc import Iterator, Sequence
from numbers import Real
from typing import Any

import torch

from helpers.check.answers import number, plain

_TIMES = {2: "twice the right one", 0.5: "half of the right one", -1: "right but for its sign"}


def pattern(found: Sequence[Any], right: Sequence[Any]) -> str | None:
    """One sentence about outcomes beside the right ones; None where they have nothing simple in common.

    Tensors, tuples and lists are compared entry by entry, in their order.
    """
    if len(found) > 2 and all(type(one) is bool for one in right):
        if all(type(one) is bool and one is not true for one, true in zip(found, right, strict=True)):
            return "It says yes where the answer is no, and no where it is yes."
        return None
    try:
        results = [tuple(map(_flat, pair)) for pair in zip(found, right, strict=True)]
    except (TypeError, ValueError, RuntimeError):  # no numbers, or none at hand
        return None
    pairs = [pair for mine, true in results for pair in zip(mine, true, strict=False)]
    if len(results) < 2 or len({true for _, true in pairs}) < 2:
        return None
    if all(mine == true for mine, true in results):
        return "The numbers are right."
    if all(sorted(mine) == sorted(true) for mine, true in results):
        return "These are the right numbers, in the wrong places."
    if any(len(mine) != len(true) for mine, true in results):
        return None
    return next(_relations(pairs, whole=all(float(true).is_integer() for _, true in pairs)), None)


def _relations(pairs: Sequence[tuple[float, float]], whole: bool) -> Iterator[str]:
    if len({mine for mine, _ in pairs}) == 1:
        yield f"It is {number(pairs[0][0])} in every case."
    ratios = [mine / true for mine, true in pairs if true]
    times = round(ratios[0], 6) if _constant(ratios) else 1
    if times not in (0, 1) and all(not mine for mine, true in pairs if not true):
        factor = times if abs(times) >= 1 else round(1 / ratios[0], 6)
        words = (
            f"{number(factor)} times the right one" if factor == times else f"the right one divided by {number(factor)}"
        )
        if factor == round(factor, 3):  # and not the root of something
            yield f"In every case it is {_TIMES.get(times, words)}."
    apart = [mine - true for mine, true in pairs]
    if _constant(apart) and apart[0]:
        yield f"In every case it is {number(abs(round(apart[0], 6)))} too {'large' if apart[0] > 0 else 'small'}."
    if all(math.isclose(mine * true, 1, rel_tol=1e-6) for mine, true in pairs):
        yield "In every case it is one divided by the right one."
    if whole and any(mine != int(mine) for mine, _ in pairs):
        for turn, word in ((math.ceil, "up"), (math.floor, "down"), (round, "to the nearest whole number")):
            if all(turn(mine) == true for mine, true in pairs):
                yield f"In every case the right one is yours, rounded {word}."
    if whole and all(0 <= mine - true <= 1 for mine, true in pairs):
        yield "It is sometimes right and sometimes 1 too large."
    if whole and all(0 <= true - mine <= 1 for mine, true in pairs):
        yield "It is sometimes right and sometimes 1 too small."


def _constant(values: Sequence[float]) -> bool:
    return bool(values) and all(math.isclose(value, values[0], rel_tol=1e-6) for value in values)


def _flat(outcome: Any) -> list[float]:
    """The numbers of an outcome in their order. Raises TypeError for another, ValueError for NaN, inf or too many."""
    if isinstance(outcome, torch.Tensor) and outcome.numel() > 10_000:
        raise ValueError("too many numbers to look through")
    outcome = plain(outcome.detach().cpu() if isinstance(outcome, torch.Tensor) else outcome)
    if isinstance(outcome, list | tuple):
        return [value for part in outcome for value in _flat(part)]
    if isinstance(outcome, bool) or not isinstance(outcome, Real):
        raise TypeError(f"no number: {type(outcome).__name__}")
    if not math.isfinite(outcome):
        raise ValueError("not finite")
    return [float(outcome)]
