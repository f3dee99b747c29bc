"""Checks that a learner runs: `check(exercise, answer)` and `compare(guess, measured)`.

Neither raises, whatever it is given: a half-written answer must not stop Run All.
"""

import copy
import difflib
import html
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Real
from typing import Any

import torch

from helpers import units
from helpers.exercises import EXERCISES, Exercise

_MARKS = {"correct": ("✓", "#009E73"), "not attempted": ("○", "#767676"), "not yet": ("✗", "#D55E00")}


@dataclass(frozen=True)
class Verdict:
    """What a check has to say. `status` is "correct", "not attempted" or "not yet"."""

    exercise: str
    status: str
    message: str

    def __repr__(self) -> str:
        return f"{_MARKS[self.status][0]} {self.exercise}: {self.message}"

    def _repr_html_(self) -> str:
        mark, colour = _MARKS[self.status]
        return (
            f'<div role="status" style="border-left:4px solid {colour};padding:2px 8px">{mark} '
            f"<b>{html.escape(self.exercise)}</b>: {html.escape(self.message)}</div>"
        )


def check(exercise: str | Callable[..., Any], *answers: Any) -> Verdict:
    """Say whether an answer is right, and if not, which mistake it was.

    `check("checkpoint", checkpoint)` and `check(checkpoint)` are the same for a function named like its exercise.
    An exercise whose answer is a value takes the value, or the several values it asks for: `check("name", a, b)`.
    `None` and `...` mean "not attempted yet". Never raises.
    """
    name = exercise if isinstance(exercise, str) else getattr(exercise, "__name__", None)
    try:
        name = name if isinstance(name, str) else _short(exercise)
        if not isinstance(exercise, str):
            answers = (exercise, *answers)
        if name not in EXERCISES:
            return Verdict(name, "not yet", _no_such_exercise(exercise, name))
        return _judge(EXERCISES[name], answers)
    except Exception as error:
        return Verdict(str(name), "not yet", f"the answer could not be compared ({_described(error)}).")


def _no_such_exercise(exercise: object, name: str) -> str:
    if not isinstance(exercise, str) and not callable(exercise):
        return 'there is no exercise of this name. Write check(function), without calling it, or check("name", value).'
    near = difflib.get_close_matches(name, EXERCISES, n=1)
    return "there is no exercise of this name" + (f"; did you mean {near[0]!r}?" if near else ".")


@dataclass(frozen=True)
class _Raised:
    """The outcome of a call that raised."""

    sentence: str


def _judge(exercise: Exercise, answers: tuple[Any, ...]) -> Verdict:
    def verdict(status: str, message: str) -> Verdict:
        return Verdict(exercise.name, status, message)

    todo = verdict("not attempted", "not attempted yet. Replace the ... above and run the cell again.")
    if not answers or any(map(_untouched, answers)):
        return todo
    if exercise.cases:
        if len(answers) != 1 or not callable(answers[0]):
            found = ", ".join(map(_short, answers))
            return verdict("not yet", f"expected a function, got {found}. Pass it without calling it.")
        outcomes = [_call(answers[0], arguments) for arguments in exercise.cases]
    else:
        outcomes = [answers if len(answers) > 1 else answers[0]]
    wanted = list(_outcomes(exercise, exercise.oracle))
    if exercise.cases and all(outcome is None for outcome in outcomes):
        return verdict("not attempted", "not attempted yet: the function returns nothing. Does it end in a return?")
    if all(map(_untouched, outcomes)):
        return verdict("not attempted", _progress(exercise, outcomes[0], wanted[0]) or todo.message)

    for arguments, outcome, right in zip(exercise.cases or ((),), outcomes, wanted, strict=True):
        difference = _difference(outcome, right, exercise.tolerance, tell=bool(exercise.cases))
        if difference:
            call = f"{exercise.name}({', '.join(map(_argument, arguments))}): " if exercise.cases else ""
            mistake = _mistake(exercise, outcomes) or _mistake_in_part(exercise, outcomes, wanted)
            return verdict("not yet", f"{call}{difference}. {mistake or 'Hint: ' + exercise.hint}")
    waste = _waste(exercise, answers[0], outcomes) if exercise.cost and exercise.cases else None
    if waste:
        return verdict("not yet", waste)
    return verdict("correct", "correct.")


def _progress(exercise: Exercise, found: Any, right: Any) -> str | None:
    """What to say of a function's answer in parts, of which some are still dots; None if all are."""
    if not isinstance(right, tuple) or not isinstance(found, tuple) or len(found) != len(right):
        return None
    done = [place for place, part in enumerate(found) if part is not ...]
    if not done:
        return None
    for place in done:
        difference = _difference(found[place], right[place], exercise.tolerance)
        if difference:
            advice = _mistake_in_part(exercise, [found], [right], place)
            return f"value {place + 1} of {len(right)}: {difference}. {advice or 'The others can wait.'}"
    return f"{len(done)} of {len(right)} are right, and the others are still to do."


def _untouched(answer: Any) -> bool:
    """Whether the dots of the stub are still there."""
    return answer is None or answer is ... or (isinstance(answer, tuple) and any(part is ... for part in answer))


def _call(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """The result on a private copy of the arguments, or the exception as a sentence."""
    try:
        return function(*copy.deepcopy(arguments))
    except (Exception, SystemExit) as error:
        return _Raised(f"it raised {_described(error)}")


def _outcomes(exercise: Exercise, function: Callable[..., Any]) -> Iterator[Any]:
    """The outcome of each case in turn: who sees a difference in the first need not wait for the others."""
    return (_call(function, arguments) for arguments in exercise.cases or ((),))


def _mistake(exercise: Exercise, outcomes: list[Any], costs: list[float] | None = None) -> str | None:
    """The sentence of the named mistake that gives the same outcome, and if asked for the same cost, in every case."""
    for sentence, wrong in exercise.mistakes.items():
        pairs = zip(outcomes, _outcomes(exercise, wrong), strict=True)
        alike = not any(_difference(*pair, exercise.tolerance) for pair in pairs)
        if alike and (costs is None or costs == _costs(exercise, wrong)):
            return sentence
    return None


def _mistake_in_part(
    exercise: Exercise, outcomes: list[Any], wanted: list[Any], place: int | None = None
) -> str | None:
    """The sentence of the mistake that spoils the first wrong part of an answer, and only that, in the same way.

    So a mistake in one of ten parts is named also while another part is wrong.
    """

    def wrong_parts(found: list[Any]) -> list[int]:
        pairs = zip(found, wanted, strict=False)
        if not all(isinstance(x, tuple | list) and isinstance(y, tuple) and len(x) == len(y) for x, y in pairs):
            return []
        return [
            part
            for part in range(len(wanted[0]))
            if any(_difference(x[part], y[part], exercise.tolerance) for x, y in zip(found, wanted, strict=False))
        ]

    wrong = wrong_parts(outcomes)
    if not wrong:
        return None
    place = wrong[0] if place is None else place
    for sentence, mistake in exercise.mistakes.items():
        theirs = list(itertools.islice(_outcomes(exercise, mistake), len(outcomes)))
        if wrong_parts(theirs) == [place] and not any(
            _difference(x[place], y[place], exercise.tolerance) for x, y in zip(outcomes, theirs, strict=True)
        ):
            return sentence
    return None


def _costs(exercise: Exercise, function: Callable[..., Any]) -> list[float]:
    return [_cost(exercise.cost, function, copy.deepcopy(arguments)) for arguments in exercise.cases]


def _cost(cost: Any, function: Callable[..., Any], arguments: tuple[Any, ...]) -> float:
    if callable(cost):
        return cost(function, arguments)
    from helpers import counting  # here, since only scored exercises need it

    return getattr(counting.count(function, *arguments), cost)


def _waste(exercise: Exercise, function: Callable[..., Any], outcomes: list[Any]) -> str | None:
    """What there is to say of a right answer that costs more than it must; None if it does not."""
    costs = _costs(exercise, function)
    for arguments, used, enough in zip(exercise.cases, costs, _costs(exercise, exercise.oracle), strict=True):
        if used > enough:
            call = f"{exercise.name}({', '.join(map(_argument, arguments))})"
            amounts = f"takes {units.si(used, exercise.unit)} where {units.si(enough, exercise.unit)} would do"
            advice = _mistake(exercise, outcomes, costs) or "Hint: " + exercise.hint
            return f"the result is right, but {call} {amounts}. {advice}"
    return None


def _difference(found: Any, right: Any, tolerance: float, tell: bool = True) -> str | None:
    """What is wrong with an outcome, in words; None if nothing is. `tell` allows naming the right number."""
    if isinstance(found, _Raised):
        return found.sentence
    if isinstance(right, torch.Tensor):
        return _tensor_difference(found, right, tolerance)
    if isinstance(right, tuple):
        if not isinstance(found, tuple | list) or len(found) != len(right):
            return f"expected {len(right)} values, got {_short(found)}"
        for position, pair in enumerate(zip(found, right, strict=True), start=1):
            difference = _difference(*pair, tolerance, tell)
            if difference:
                return f"value {position} of {len(right)}: {difference}"
        return None
    if isinstance(right, Real) and not isinstance(right, bool):
        return _number_difference(found, right, tolerance, tell)
    if isinstance(found, torch.dtype):
        found = str(found).removeprefix("torch.")
    if isinstance(found, str) and isinstance(right, str) and found.strip().casefold() == right.casefold():
        return None
    if type(found) is not type(right) or found != right:
        return f"expected {right!r}, got {_short(found)}" if tell else f"{_short(found)} is not it"
    return None


def _number_difference(found: Any, right: Real, tolerance: float, tell: bool) -> str | None:
    if isinstance(found, torch.Tensor):
        return f"expected a plain number, got {_short(found)}; for a tensor with one element write .item()"
    if isinstance(found, bool) or not isinstance(found, Real):
        return f"expected a number, got {_short(found)}"
    if math.isnan(found):
        return "expected a number, got NaN (not a number)"
    if math.isclose(found, right, rel_tol=tolerance):
        return None
    if tell:
        return f"expected {right:.7g}, got {found:.7g}"
    if found * right <= 0 or math.isinf(found):
        return f"{found:.7g} is not it"
    return f"{found:.7g} is {found / right:.5g} times the right number"


def _tensor_difference(found: Any, right: torch.Tensor, tolerance: float) -> str | None:
    if not isinstance(found, torch.Tensor):
        return f"expected a tensor, got {_short(found)}"
    if found.shape != right.shape:
        return f"expected shape {tuple(right.shape)}, got {tuple(found.shape)}"
    if found.dtype != right.dtype:
        return f"expected dtype {right.dtype}, got {found.dtype}"
    if found.is_meta:
        return "expected a tensor with data, got one on the meta device"
    theirs, ours = found.detach().cpu(), right.cpu()
    if theirs.isnan().any() and not ours.isnan().any():
        return "the result has NaN (not a number) in it"
    close = torch.isclose(theirs, ours, rtol=tolerance, atol=0.0, equal_nan=True)
    if close.all():
        return None
    where = tuple((~close).nonzero()[0].tolist())
    at = f" at {where}" if where else ""
    return f"expected {ours[where].item():.7g}{at}, got {theirs[where].item():.7g}"


def _described(error: BaseException) -> str:
    text = _short(error, str, 160).removesuffix(".")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _argument(thing: Any) -> str:
    """An argument of a call, shorter for tensors: a call may have several."""
    if isinstance(thing, torch.Tensor):
        return f"a {tuple(thing.shape)} {str(thing.dtype).removeprefix('torch.')} tensor"
    return _short(thing)


def _short(thing: Any, render: Callable[[Any], str] = repr, most: int = 80) -> str:
    """A printable form of anything, of at most that many characters, also when its own repr fails.

    What is left out is the middle: many error messages begin with the context and end with the reason.
    """
    if isinstance(thing, torch.Tensor):
        return f"a tensor of shape {tuple(thing.shape)} and dtype {thing.dtype}"
    try:
        text = " ".join(render(thing).split())
    except Exception:
        text = f"an object of type {type(thing).__name__}"
    return text if len(text) <= most else f"{text[: most // 2 - 3]} ... {text[2 - most // 2 :]}"


@dataclass(frozen=True)
class Comparison:
    """A guess beside what was measured, with the ratio of the two where they are numbers."""

    sentence: str

    def __repr__(self) -> str:
        return self.sentence


def compare(guess: Any, measured: Any, unit: str = "") -> Comparison:
    """Put a prediction beside the measured value, and say how far apart they are.

    >>> compare(2.5e9, 2_415_919_104, "B")
    You predicted 2.5 GB; it is 2.42 GB: ratio 1.035.
    >>> compare(..., 2_415_919_104, "B")
    Predict first: replace the ... by your guess in B and run the cell again.

    Without a guess the value stays hidden, so that looking costs a guess. `unit` is the unit of both; without one,
    anything may be compared. Never raises.
    """
    if guess is None or guess is ...:
        unit = f" in {unit}" if unit else ""
        return Comparison(f"Predict first: replace the ... by your guess{unit} and run the cell again.")
    digits = 3
    while digits < 9 and _quantity(guess, unit, digits) == _quantity(measured, unit, digits):
        digits += 1  # a guess that is close deserves to see how close
    guessed, shown = _quantity(guess, unit, digits), _quantity(measured, unit, digits)
    both = [x for x in (guess, measured) if isinstance(x, Real) and not isinstance(x, bool)]
    if len(both) < 2:
        same = type(guess) is type(measured) and _short(guess).casefold() == _short(measured).casefold()
        verdict = "as predicted" if same else "not as predicted"
        return Comparison(f"You predicted {guessed}; it is {shown}: {verdict}.")
    if guess == measured:
        return Comparison(f"You predicted {_quantity(guess, unit)}: exactly right.")
    try:
        ratio = f"ratio {guess / measured:.4g}" if measured else "no ratio to zero"
    except (ArithmeticError, ValueError) as error:
        ratio = f"no ratio ({_described(error)})"
    return Comparison(f"You predicted {guessed}; it is {shown}: {ratio}.")


def _quantity(value: Any, unit: str, digits: int = 3) -> str:
    if unit:
        try:
            return units.si(value, unit, digits)
        except Exception:
            return f"{_short(value)} (a number of {unit} is needed)"
    return f"{value:.{digits + 3}g}" if isinstance(value, float) else _short(value)
