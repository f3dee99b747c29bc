"""Rules for tensors: what found and right ones have in common."""

import copy
import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import torch

from helpers.check.answers import Failed, difference
from helpers.check.attempt import Attempt, Step, Steps
from helpers.check.formulas import wrong_terms
from helpers.check.monomials import fitted, is_plain
from helpers.check.wording import numeral, sentence_list

_MOST_DIMENSIONS = 5
_MOST_ELEMENTS = 100_000


def _tensors(attempt: Attempt) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """The tensors found and the right ones; empty if one is none, or too large."""
    pairs = list(zip(attempt.outcomes, attempt.rights, strict=True))
    for mine, right in pairs:
        for thing in (mine, right):
            if not isinstance(thing, torch.Tensor) or thing.is_meta or thing.numel() > _MOST_ELEMENTS:
                return []
    return pairs if any(right.numel() > 1 for _, right in pairs) else []


def _is(attempt: Attempt, made: torch.Tensor, other: torch.Tensor) -> bool:
    return made.shape == other.shape and difference(made, other, attempt.exercise) is None


def _holds(attempt: Attempt, turn: Callable[[torch.Tensor], torch.Tensor]) -> bool:
    """Whether that turns what is right into what was found in every call."""
    try:
        pairs = _tensors(attempt)
        return bool(pairs) and all(_is(attempt, turn(right), mine) for mine, right in pairs)
    except (RuntimeError, IndexError, TypeError):
        return False


def sizes(attempt: Attempt) -> str | None:
    """A dimension whose size is another one: of which inputs they are."""
    pairs = list(zip(attempt.outcomes, attempt.rights, strict=True))
    if len(pairs) < 3 or not all(isinstance(thing, torch.Tensor) for pair in pairs for thing in pair):
        return None
    ranks = {(mine.ndim, right.ndim) for mine, right in pairs}
    if len(ranks) != 1:
        return None
    (mine_rank, right_rank) = ranks.pop()
    if mine_rank != right_rank:
        return f"It has {_dimensions(mine_rank)}, and the right one {right_rank}."
    rows = [attempt.variables(arguments) for arguments in attempt.exercise.inputs]
    for dim in range(right_rank):
        mine, right = ([float(pair[which].shape[dim]) for pair in pairs] for which in (0, 1))
        found = _size(rows, mine) if mine != right else ""
        asked = _size(rows, right)
        if found and asked:
            return f"The size of dimension {dim} is {found}, and should be {asked}."
    return None


def _dimensions(count: int) -> str:
    return "1 dimension" if count == 1 else f"{count} dimensions"


def _size(rows: Sequence[Mapping[str, float]], values: Sequence[float]) -> str:
    """A size in words: a number, if it never varies; that of an input, if it is one in every call; or a product."""
    if len(set(values)) == 1:
        return numeral(values[0])
    for name in rows[0]:
        if all(row.get(name) == value for row, value in zip(rows, values, strict=True)):
            return f"`{name}`"
    shapes = [
        {name: value for name, value in row.items() if "stride" not in name and "offset" not in name} for row in rows
    ]
    monomial = fitted(shapes, values)
    if not monomial or not monomial.powers or not is_plain(monomial.constant):
        return ""
    return re.sub(r"^times ", "", monomial.factors()).replace(" and ", " × ").replace(",", "")


def turned(attempt: Attempt) -> str | None:
    """The right tensor with its dimensions in another order, or one of them backwards."""
    pairs = _tensors(attempt)
    if not pairs:
        return None
    dims = pairs[0][1].ndim
    if not 1 <= dims <= _MOST_DIMENSIONS:
        return None
    for order in itertools.islice(itertools.permutations(range(dims)), 1, None):
        if _holds(attempt, partial(torch.permute, dims=order)):
            moved = [dim for dim, old in enumerate(order) if dim != old]
            if len(moved) == 2:
                return f"It is right with dimensions {moved[0]} and {moved[1]} exchanged."
            return f"It is the right one permuted by {order}: the dimensions are in another order."
    for dim in range(dims):
        if _holds(attempt, partial(torch.flip, dims=(dim,))):
            return f"It is right, but backwards along dimension {dim}."
    return None


def of_the_right_one(attempt: Attempt) -> str | None:
    """The diagonal of the right tensor, or its sum over a dimension, wherever the answer does not raise."""
    outcomes = zip(attempt.outcomes, attempt.rights, strict=True)
    pairs = [(mine, right) for mine, right in outcomes if not isinstance(mine, Failed)]
    if len(pairs) < 2 or not isinstance(attempt.outcomes[attempt.shown], torch.Tensor):
        return None
    parts: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
        "That is the diagonal of the right one: the pairs of equal index alone.": torch.diagonal,
        "That is the right one summed over dimension 0.": partial(torch.sum, dim=0),
        "That is the right one summed over dimension 1.": partial(torch.sum, dim=1),
    }
    return next((words for words, part in parts.items() if _are(attempt, pairs, part)), None)


def _are(
    attempt: Attempt, pairs: Sequence[tuple[object, object]], part: Callable[[torch.Tensor], torch.Tensor]
) -> bool:
    """Whether each thing found is that part of the right tensor, which has several dimensions."""
    return all(
        isinstance(mine, torch.Tensor)
        and isinstance(right, torch.Tensor)
        and right.ndim > 1
        and right.numel() <= _MOST_ELEMENTS
        and _is(attempt, mine, part(right))
        for mine, right in pairs
    )


def some_factor(attempt: Attempt) -> str | None:
    """The right tensor times a number, whatever that depends on."""
    ratios = _ratios(attempt)
    is_told = ratios and abs(ratios[attempt.shown] - 1) > 1e-3 and ratios[attempt.shown]
    return f"In every case it is the right one times a number, here {ratios[attempt.shown]:.4g}." if is_told else None


def _ratios(attempt: Attempt) -> list[float]:
    """What all numbers of each result are times the right ones; empty where they are not."""
    pairs = _tensors(attempt)
    if len(pairs) < 3 or any(mine.shape != right.shape or not right.any() for mine, right in pairs):
        return []
    ratios = [float((mine * right).double().sum() / right.double().square().sum()) for mine, right in pairs]
    are_ratios = all(
        _is(attempt, (right * ratio).to(mine.dtype), mine) for (mine, right), ratio in zip(pairs, ratios, strict=True)
    )
    return ratios if are_ratios and any(right.numel() > 2 for _, right in pairs) else []


def same_order(attempt: Attempt) -> str | None:
    """The right numbers in their order, in another shape."""
    pairs = _tensors(attempt)
    is_same = pairs and all(_is(attempt, mine.flatten(), right.flatten()) for mine, right in pairs)
    return "The numbers are right and in their order: only the shape is not." if is_same else None


def rounded_dtype(attempt: Attempt) -> str | None:
    """Right but for the digits that a narrow dtype loses, or but for the dtype alone."""
    pairs = _tensors(attempt) or [
        (mine, right)
        for mine, right in zip(attempt.outcomes, attempt.rights, strict=True)
        if isinstance(mine, torch.Tensor) and isinstance(right, torch.Tensor) and not mine.is_meta
    ]
    if len(pairs) < len(attempt.outcomes) or not any(mine.dtype != right.dtype for mine, right in pairs):
        return None
    if all(_is(attempt, mine.to(right.dtype), right) for mine, right in pairs):
        wrong = sorted({str(mine.dtype).removeprefix("torch.") for mine, right in pairs if mine.dtype != right.dtype})
        return f"The numbers are right, in another dtype: {sentence_list(wrong)}."
    return None


_NARROW = (torch.float32, torch.float16, torch.bfloat16)  # the widest first


def rounded_on_the_way(attempt: Attempt) -> str | None:
    """Right to the digits of a narrower dtype alone."""
    pairs = list(zip(attempt.outcomes, attempt.rights, strict=True))
    if not all(isinstance(thing, torch.Tensor) and thing.is_floating_point() for pair in pairs for thing in pair):
        return None
    if any(mine.shape != right.shape for mine, right in pairs):
        return None
    for dtype in _NARROW:
        gap = torch.finfo(dtype).eps
        if all(_is_within(gap, mine, right) for mine, right in pairs):
            name = str(dtype).removeprefix("torch.")
            return f"It agrees to the digits of {name} alone: what is rounded to so few, and where?"
    return None


def too_narrow(attempt: Attempt) -> str | None:
    """No step of it is as wide as the right answer needs."""
    answer, exercise = attempt.answer, attempt.exercise
    arguments = exercise.inputs[attempt.shown]
    given = [one for one in arguments if isinstance(one, torch.Tensor) and one.is_floating_point()]
    if not answer or not given:
        return None
    right = Steps()
    with right:
        exercise.oracle(*copy.deepcopy(arguments))
    given_gap = min(torch.finfo(one.dtype).eps for one in given)
    mine_gap, right_gap = (_smallest_gap(steps) for steps in (answer.steps(exercise, arguments), right.noted))
    if not right_gap < given_gap <= mine_gap < math.inf:
        return None
    name = str(given[0].dtype).removeprefix("torch.")
    return f"Each step of yours is rounded to {name} here: no dtype in it is wider than that of the values."


def _smallest_gap(steps: Sequence[Step]) -> float:
    """The smallest gap at 1 of the floating dtypes that are computed with."""
    return min((torch.finfo(step.dtype).eps for step in steps if step.dtype), default=math.inf)


def _is_within(gap: float, mine: torch.Tensor, right: torch.Tensor) -> bool:
    largest = right.abs().max().item() if right.numel() else 0.0
    return torch.allclose(mine.double(), right.double(), rtol=gap, atol=1e-3 * gap * largest)


def named_terms(attempt: Attempt) -> str | None:
    """Which of the tensors whose sum is the right one are missing, or counted wrongly."""
    exercise, pairs = attempt.exercise, _tensors(attempt)
    if not exercise.terms or not pairs or any(mine.shape != right.shape for mine, right in pairs):
        return None
    places = list(zip(exercise.inputs, pairs, strict=True))
    columns = [
        torch.cat([term(*arguments).double().expand_as(right).flatten() for arguments, (_, right) in places])
        for term in exercise.terms.values()
    ]
    table, mine = torch.stack(columns, 1), torch.cat([mine.double().flatten() for mine, _ in pairs])
    counts = (torch.linalg.lstsq(table, mine[:, None]).solution.flatten() * 24).round() / 24
    allowed = (exercise.tolerance or 1e-6) * table.abs().sum(1)
    is_sum = bool(((table @ counts - mine).abs() <= allowed).all())
    return wrong_terms(exercise, counts.tolist()) if is_sum else None


_MOST_SHOWN = 4


def moved(attempt: Attempt) -> str | None:
    """Which entries of an input are the result, from the first wrong one on; each result is of such entries alone."""
    arguments = attempt.exercise.inputs[attempt.shown]
    mine, right = attempt.outcomes[attempt.shown], attempt.rights[attempt.shown]
    if not isinstance(mine, torch.Tensor) or not isinstance(right, torch.Tensor) or mine.shape != right.shape:
        return None
    for name, given in zip(attempt.names, arguments, strict=True):
        for dim in range(right.ndim if isinstance(given, torch.Tensor) and given.ndim == right.ndim else 0):
            found, asked = (_order(given, one, dim) for one in (mine, right))
            if not found or found == asked:
                continue
            wrong = next(at for at, entry in enumerate(found) if [entry] != asked[at : at + 1])
            shown = sentence_list([str(number) for number in found[wrong : wrong + _MOST_SHOWN]])
            things = "rows" if dim == 0 else f"entries of dimension {dim}"
            unchanged = "" if asked else ", as they are"
            return f"From {wrong} on, yours has the {things} {shown} of `{name}`{unchanged}."
    return None


def _order(given: torch.Tensor, result: torch.Tensor, dim: int) -> list[int]:
    """Which entry of a dimension each of the result's is; empty where one is none, or several are alike."""
    if given.shape[:dim] + given.shape[dim + 1 :] != result.shape[:dim] + result.shape[dim + 1 :]:
        return []
    rows = [tuple(row.flatten().tolist()) for row in given.movedim(dim, 0)]
    places = {row: place for place, row in enumerate(rows)}
    found = [places.get(tuple(row.flatten().tolist()), -1) for row in result.movedim(dim, 0)]
    return found if len(places) == len(rows) and min(found, default=-1) >= 0 else []


# ---- NaN, and where it arises.


def not_finite(attempt: Attempt) -> str | None:
    """The operation that makes the first NaN or infinity."""
    if not attempt.answer:
        return None
    for arguments, mine, right in zip(attempt.exercise.inputs, attempt.outcomes, attempt.rights, strict=True):
        is_bad = isinstance(mine, torch.Tensor) and mine.is_floating_point() and not bool(mine.isfinite().all())
        if is_bad and isinstance(right, torch.Tensor) and bool(right.isfinite().all()):
            bad = [step for step in attempt.answer.steps(attempt.exercise, arguments) if step.not_finite]
            return f"The first {bad[0].not_finite} comes out of `{bad[0].name}`: what goes into it?" if bad else None
    return None
