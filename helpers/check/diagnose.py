"""What a wrong answer did: rules that look at its outcomes beside the right ones, each of which may say a sentence.

A rule takes an `Attempt` and returns one true sentence, or None where it has nothing to say. `RULES` and
`RULES_OF_CALLS` list them; the first that speaks is heard. So a new rule is a function and its place on a list: those
for the formula of an answer are in `formulas`, for tensors in `tensors`, for errors in `errors`, for single values in
`values`; `conditions` say where it is right, `reading` reads the source, and `nearest` looks for one edit of it.
"""

import math
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from decimal import Decimal
from functools import partial
from itertools import starmap
from typing import Any

import torch

from helpers.check import conditions, errors, formulas, reading, tensors
from helpers.check.amounts import amount
from helpers.check.answers import Failed, difference, is_number, meaning, plain
from helpers.check.attempt import Answer, Attempt
from helpers.check.costs import by_op, known_costs, scored
from helpers.check.monomials import fraction_text, is_simple
from helpers.check.nearest import misplaced, nearest_slip
from helpers.check.values import quantity
from helpers.check.wording import numeral, printable, sentence_list
from helpers.exercises import Exercise, Mistake

NOTHING = "The hint below may help."
SECONDS = 5.0  # on a clock that somebody waits for a diagnosis, after the cases
_EXACTLY = 1e-6  # relative
_ROUNDED = 0.05  # relative: no more is lost by rounding
_TIMES = {2: "twice the right one", 0.5: "half of the right one", -1: "right but for its sign"}
_OF_A_DAY = (24, 60, 3600, 86400)
# From seconds, minutes, hours or days to another, or one step too many.
_BETWEEN_TIMES = (2 / 5, 5 / 2, 60, 1 / 60, 24, 1 / 24, 3600, 1 / 3600, 1440, 1 / 1440, 86400, 1 / 86400)


def explain(attempt: Attempt) -> str:
    """One sentence about what is wrong; where nothing is found in `SECONDS` on a clock, that the hint may help."""
    rules = RULES
    if attempt.costs:
        rules += RULES_OF_COSTS
    elif not attempt.exercise.cases:
        rules += RULES_OF_VALUES
    else:
        rules += RULES_OF_CALLS
    waiting = attempt.answer.place.hurried(SECONDS) if attempt.answer else nullcontext()
    with waiting:
        return next(filter(None, (_said(rule, attempt) for rule in rules)), NOTHING)


def _said(rule: "Rule", attempt: Attempt) -> str | None:
    """What a rule says; nothing where it fails, since the verdict matters more."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return rule(attempt)
    except Exception:
        return None


# ---- The rules.


def usual_mistake(attempt: Attempt) -> str | None:
    """The sentence of the one listed mistake that explains every case; of two, none is said.

    The one that shows in a part of the outcomes is said where none gives all of them.
    """
    mistakes = attempt.exercise.mistakes
    for explains in (_gives_the_same, _gives_it_rounded):
        sentences = {mistake.sentence for mistake in mistakes if explains(attempt, mistake.formula)}
        if sentences:
            return sentences.pop() if len(sentences) == 1 else None
    in_parts = {mistake.sentence for mistake in mistakes if _shows_in_a_part(attempt, mistake)}
    return in_parts.pop() if len(in_parts) == 1 else None


def _gives_the_same(attempt: Attempt, formula: Callable[..., Any]) -> bool:
    """Whether it gives the same in every case, at the same costs if these matter."""
    calls = zip(attempt.outcomes, attempt.of(formula), attempt.rights, strict=True)
    if not all(_same_outcome(attempt.exercise, *outcomes) for outcomes in calls):
        return False
    if not attempt.costs:
        return True
    costs = zip(attempt.costs, known_costs(attempt.exercise, formula), strict=True)
    return all(max(pair) <= attempt.exercise.same_cost_ratio * min(pair) for pair in costs)


def _gives_it_rounded(attempt: Attempt, formula: Callable[..., Any]) -> bool:
    """Whether a single value is that of the formula, rounded to the digits that it has; whole ones also up or down."""
    if attempt.exercise.cases:  # a function has no single value, but may have given millions of numbers
        return False
    found, exact, right = plain(attempt.outcomes[0]), attempt.of(formula)[0], attempt.rights[0]
    if isinstance(found, str):
        found = amount(found, attempt.exercise.unit)
    if not is_number(found) or not is_number(exact) or not math.isfinite(found):
        return False
    last_digit = 10.0 ** int(Decimal(repr(float(found))).normalize().as_tuple().exponent)
    allowed = last_digit if float(right).is_integer() else last_digit / 2
    return abs(found - exact) < allowed and math.isclose(found, exact, rel_tol=_ROUNDED)


def _shows_in_a_part(attempt: Attempt, mistake: Mistake) -> bool:
    """Whether the part of the outcomes that the mistake changes is as it makes it, and not the right one."""
    if not mistake.seen_in or attempt.costs:
        return False
    exercise = replace(attempt.exercise, words=())
    try:
        mine, theirs, right = (
            [mistake.seen_in(plain(outcome)) for outcome in outcomes]
            for outcomes in (attempt.outcomes, attempt.of(mistake.formula), attempt.rights)
        )
    except (TypeError, ValueError, IndexError, AttributeError):
        return False
    is_theirs = all(difference(*pair, exercise) is None for pair in zip(mine, theirs, strict=True))
    is_wrong = any(difference(*pair, exercise) for pair in zip(mine, right, strict=True))
    return is_theirs and is_wrong and _errs_where(attempt, mistake.formula)


def _errs_where(attempt: Attempt, formula: Callable[..., Any]) -> bool:
    """Whether, of several results in the call that is shown, the same are wrong as by the formula."""
    outcomes = attempt.outcomes[attempt.shown], attempt.of(formula)[attempt.shown], attempt.rights[attempt.shown]
    mine, theirs, right = map(plain, outcomes)
    if not all(isinstance(several, list | tuple) for several in (mine, theirs, right)) or len(mine) != len(right):
        return True
    exercise = attempt.exercise
    return len(theirs) != len(right) or all(
        (difference(one, true, exercise) is None) == (difference(other, true, exercise) is None)
        for one, other, true in zip(mine, theirs, right, strict=True)
    )


def _same_outcome(exercise: Exercise, found: Any, theirs: Any, right: Any) -> bool:
    if isinstance(found, Failed) or isinstance(theirs, Failed):
        return isinstance(found, Failed) and isinstance(theirs, Failed) and found.kind == theirs.kind
    if isinstance(right, torch.Tensor) and isinstance(found, torch.Tensor) != isinstance(theirs, torch.Tensor):
        return False  # elsewhere a tensor is a spelling of a number
    return difference(found, theirs, exercise) is None


def chosen_word(attempt: Attempt) -> str | None:
    """What a word means: of a value the one that it is; of a call, which tells what is right, the right one."""
    chosen, right = attempt.outcomes[attempt.shown], attempt.rights[attempt.shown]
    said = right if attempt.exercise.cases and meaning(plain(chosen), attempt.exercise) else chosen
    return meaning(plain(said), attempt.exercise)


def broken_law(attempt: Attempt) -> str | None:
    """What holds of every right answer, and not of this one."""
    answer, exercise = attempt.answer, attempt.exercise
    if not answer:
        return None
    for holds, sentence in exercise.laws:
        with suppress(_Unknown):
            if not holds(partial(_known_outcome, answer, exercise)):
                return formulas.ignored(attempt) or sentence
    return None


class _Unknown(Exception):
    """A call gave nothing that a law can look at."""


def _known_outcome(answer: Answer, exercise: Exercise, *arguments: Any) -> Any:
    outcome = answer.outcome(exercise, arguments)
    if isinstance(outcome, Failed):
        raise _Unknown(outcome.sentence)
    return outcome


def wrong_kind(attempt: Attempt) -> str | None:
    """What an outcome is that can be no answer, and how it becomes one."""
    outcome, right = attempt.outcomes[attempt.shown], attempt.rights[attempt.shown]
    if callable(outcome):
        return "You return a function, not what it gives: call it, with its arguments in parentheses."
    if type(outcome).__module__ == "torch.return_types":
        return "It has values and indices: take `.values`, or a reduction that has no indices, such as amax."
    if is_number(right) and isinstance(outcome, bool):
        return "A comparison gives True or False."
    if is_number(right) and isinstance(outcome, list | tuple) and len(attempt.outcomes) > 1:
        return _too_many(attempt)
    if isinstance(right, list | tuple) and is_number(outcome) and len(attempt.outcomes) > 1:
        return "One number is not enough: return them all, in a tuple or a list."
    if isinstance(right, torch.Tensor) and isinstance(outcome, tuple) and outcome == tuple(right.shape):
        return "That is the shape of the result: return the tensor itself."
    if isinstance(outcome, dict | set) and isinstance(right, list | tuple):
        return f"That is a {type(outcome).__name__}: return a list."
    return None


def unchanged(attempt: Attempt) -> str | None:
    """An argument, as it was given, in every call."""
    for place, name in enumerate(attempt.names):
        given = [arguments[place] for arguments in attempt.exercise.inputs]
        if len(given) > 2 and all(starmap(_is_itself, zip(attempt.outcomes, given, strict=True))):
            return f"It is `{name}` in every case, as it was given."
    return None


def _is_itself(outcome: Any, given: Any) -> bool:
    if isinstance(given, torch.Tensor):
        return isinstance(outcome, torch.Tensor) and outcome.dtype == given.dtype and torch.equal(outcome, given)
    return type(outcome) is type(given) and bool(outcome == given)


_JOINED: dict[str, Callable[[Sequence[Any]], Any]] = {
    "their sum": sum, "their product": math.prod, "the first divided by the second": lambda pair: pair[0] / pair[1],
    "the second divided by the first": lambda pair: pair[1] / pair[0], "how many they are": len,
    "the first": lambda several: several[0], "the last": lambda several: several[-1],
    "the largest": max, "the smallest": min,
}  # fmt: skip


def _too_many(attempt: Attempt) -> str:
    """Of several numbers where one is asked for, what of them would be right."""
    for words, joined in _JOINED.items():
        with suppress(Exception):
            if attempt.is_right_with([joined(outcome) for outcome in attempt.outcomes]):
                return f"One number is asked for, and you return several: {words} would be right."
    return "One number is asked for, and you return several."


def sometimes_dear(attempt: Attempt) -> str | None:
    """In how many of the counted calls it costs too much, if not in all, and the smallest of these."""
    allowed = [attempt.exercise.allowed_ratio * cost for cost in known_costs(attempt.exercise, attempt.exercise.oracle)]
    calls = zip(attempt.costs, allowed, scored(attempt.exercise), strict=True)
    dear = [
        [thing for thing in arguments if isinstance(thing, torch.Tensor)]
        for mine, most, arguments in calls
        if mine > most
    ]
    if not 0 < len(dear) < len(allowed):
        return None
    smallest = min(dear, key=lambda tensors: sum(tensor.numel() for tensor in tensors))
    shapes = sentence_list([str(tuple(tensor.shape)) for tensor in smallest])
    return f"Too dear in {len(dear)} of {len(allowed)} calls, as for shapes {shapes}: what would be cheaper there?"


def counted_by_op(attempt: Attempt) -> str | None:
    """What its ops cost in the first call that costs too much."""
    exercise, answer = attempt.exercise, attempt.answer
    if not answer:
        return None
    allowed = [exercise.allowed_ratio * cost for cost in known_costs(exercise, exercise.oracle)]
    dear = next(index for index, cost in enumerate(attempt.costs) if cost > allowed[index])
    ops = answer.place.run(lambda: by_op(exercise, answer.learner, scored(exercise)[dear]))
    return f"Counted by op: {', '.join(ops[:3])}."


def right_numbers(attempt: Attempt) -> str | None:
    """The right numbers in another form, or in other places."""
    varies = len(attempt.numbers) > 1 and len({number for _, true in attempt.numbers for number in true}) > 1
    if not varies:
        return None
    if all(mine == true for mine, true in attempt.numbers):
        return "The numbers are right."
    return None


def same_numbers(attempt: Attempt) -> str | None:
    """The right numbers in other places."""
    is_several = any(len(true) > 1 for _, true in attempt.numbers)
    is_moved = any(mine != true for mine, true in attempt.numbers)
    if not is_several or not is_moved or not all(sorted(mine) == sorted(true) for mine, true in attempt.numbers):
        return None
    mine, right = attempt.outcomes[attempt.shown], attempt.rights[attempt.shown]
    if isinstance(right, torch.Tensor) and isinstance(mine, torch.Tensor) and mine.ndim > right.ndim:
        return f"The right numbers, in {mine.ndim} dimensions in place of {right.ndim}: which merge, in which order?"
    return "These are the right numbers, in the wrong places."


def constant(attempt: Attempt) -> str | None:
    """The same number or word, whatever the arguments."""
    words = {plain(outcome) for outcome in attempt.outcomes if isinstance(plain(outcome), str | bool)}
    is_one_word = len(words) == 1 and all(isinstance(plain(outcome), str | bool) for outcome in attempt.outcomes)
    if is_one_word and len(attempt.outcomes) > 2 and isinstance(attempt.rights[0], str | bool):
        return nearest_slip(attempt) or f"It says {printable(words.pop())} in every case."
    if len(attempt.outcomes) > 2 and all(plain(outcome) == math.inf for outcome in attempt.outcomes):
        return nearest_slip(attempt) or "It is infinite in every case."
    numbers = {mine for mine, _ in attempt.pairs}
    if len(numbers) != 1:
        return None
    slip = nearest_slip(attempt)
    if slip:
        return slip
    first = plain(attempt.outcomes[0])
    number = first if is_number(first) else numbers.pop()
    why = "" if number else ": does it keep what it computes, and is nothing rounded down to 0, as by //?"
    return f"It is {numeral(number)} in every case{why or '.'}"


def constant_ratio(attempt: Attempt) -> str | None:
    """A factor too many or too few."""
    ratios = [mine / true for mine, true in attempt.pairs if true]
    zeros_agree = all(not mine for mine, true in attempt.pairs if not true)
    if not ratios or not zeros_agree or not _all_equal(ratios):
        return None
    ratio = ratios[0]
    if math.isclose(ratio, 1, rel_tol=_EXACTLY):
        return None
    is_of_time = any(math.isclose(ratio, times, rel_tol=_EXACTLY) for times in _BETWEEN_TIMES)
    if is_of_time and attempt.writes_any_of(_OF_A_DAY):
        return "Only a unit of time is wrong: how many seconds, minutes and hours are in what is asked for?"
    if not is_simple(ratio) and not attempt.writes_any_of([ratio, 1 / ratio]):
        return "In every case it is the right one times a constant: only a constant is wrong."
    usual = next((words for times, words in _TIMES.items() if math.isclose(ratio, times, rel_tol=_EXACTLY)), None)
    if usual:
        return f"In every case it is {usual}."
    size = fraction_text(abs(ratio))
    sign = "-" if ratio < 0 else ""
    if abs(ratio) > 1 or "/" in size:
        return f"In every case it is {sign}{size} times the right one."
    return f"In every case it is the right one divided by {sign}{fraction_text(1 / abs(ratio))}."


def constant_difference(attempt: Attempt) -> str | None:
    """The same amount too many or too few."""
    differences = [mine - true for mine, true in attempt.pairs]
    if not differences or not differences[0] or not _all_equal(differences):
        return None
    side = "large" if differences[0] > 0 else "small"
    return f"In every case it is {numeral(abs(round(differences[0], 6)))} too {side}."


def _all_equal(values: Sequence[float]) -> bool:
    return all(math.isclose(value, values[0], rel_tol=_EXACTLY) for value in values)


def in_part(attempt: Attempt) -> str | None:
    """What is wrong in the calls in which something holds, where it says nothing of all of them."""
    calls = attempt.calls
    for words, places in conditions.parts(attempt):
        chosen = [calls[place] for place in sorted(places)]
        if not _FEWEST <= len(chosen) < len(calls) or all(one.is_right for one in chosen):
            continue
        mistakes = [mistake for mistake in attempt.exercise.mistakes if not mistake.seen_in]
        cases = [one.arguments for one in chosen]
        exercise = replace(attempt.exercise, cases=cases, draw=None, mistakes=mistakes)
        part = Attempt(exercise, [one.mine for one in chosen], attempt.answer)
        said = next(filter(None, (_said(rule, part) for rule in _RULES_OF_A_PART)), None)
        if said:
            return f"Where {words}: {said}"
    return None


Rule = Callable[[Attempt], str | None]
_FEWEST = 12  # calls from which something is read
_RULES_OF_A_PART: tuple[Rule, ...] = (
    usual_mistake,
    formulas.named_terms,
    constant_ratio,
    constant_difference,
    formulas.factor,
    formulas.exchanged,
    formulas.for_another_amount,
    formulas.rounded,
)
RULES: tuple[Rule, ...] = (usual_mistake,)
RULES_OF_COSTS: tuple[Rule, ...] = (misplaced, nearest_slip, sometimes_dear, counted_by_op)
RULES_OF_VALUES: tuple[Rule, ...] = (chosen_word, quantity)
# These need several calls: of a single value they would give the answer away, and of costs they say nothing.
RULES_OF_CALLS: tuple[Rule, ...] = (
    reading.taken_from_outside,
    errors.raised,
    wrong_kind,
    reading.returns_at_once,
    reading.without_return,
    unchanged,
    formulas.named_terms,
    tensors.named_terms,
    misplaced,
    broken_law,
    tensors.not_finite,
    tensors.turned,
    tensors.same_order,
    tensors.of_the_right_one,
    tensors.rounded_dtype,
    right_numbers,
    constant,
    formulas.dependence,
    constant_ratio,
    formulas.factor,
    formulas.exchanged,
    constant_difference,
    formulas.rounded,
    formulas.term,
    tensors.some_factor,
    nearest_slip,
    formulas.for_another_amount,
    formulas.affine,
    conditions.edge,
    conditions.around,
    in_part,
    formulas.wrong_way,
    tensors.moved,
    same_numbers,
    tensors.sizes,
    chosen_word,
    tensors.too_narrow,
    tensors.rounded_on_the_way,
    formulas.one_term_errs,
    formulas.where_it_errs,
    conditions.mostly,
    conditions.one_right,
)
