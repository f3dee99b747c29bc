"""`check(exercise, answer)`: whether an answer is right, and if not, which mistake it was."""

import html
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import torch

from helpers.check.answers import Failed, described, difference, plain, short, written
from helpers.check.costs import known_costs, waste
from helpers.check.diagnose import pattern
from helpers.check.run import call, in_time, item, same_randomness
from helpers.exercises import EXERCISES, Exercise

SECONDS = 10  # what a check may take
_MARKS = {"correct": ("✓", "#009E73"), "not attempted": ("○", "#767676"), "not yet": ("✗", "#D55E00")}
_UNKNOWN = 'there is no exercise of this name; write check(function), without calling it, or check("name", value).'
_NOTHING = "the function returns None, as print() and append() do. Does it end in a return?"
_TODO = "not attempted yet. Replace the ... above and run the cell again."


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
    `None` and `...` mean "not attempted yet". Never raises, takes ten seconds at most, and leaves the state of the
    random generators as it was.
    """
    name = exercise if isinstance(exercise, str) else getattr(exercise, "__name__", None)
    try:
        name = name if isinstance(name, str) else short(exercise)
        if not isinstance(exercise, str):
            answers = (exercise, *answers)
        if name not in EXERCISES:
            return Verdict(name, "not yet", _UNKNOWN)
        with same_randomness():
            return Verdict(name, *in_time(lambda: _judge(EXERCISES[name], answers), SECONDS))
    except Exception as error:
        return Verdict(str(name), "not yet", f"the answer could not be compared ({described(error)}).")


def _judge(exercise: Exercise, answers: tuple[Any, ...]) -> tuple[str, str]:
    if exercise.parts and len(answers) == 1:
        answers = (plain(answers[0]),)
        listed = isinstance(answers[0], list | tuple) and len(answers[0]) == len(exercise.parts)
        functions = [one for one in exercise.parts.values() if one.cases]
        if listed or functions:
            if functions and callable(answers[0]):
                once = call(exercise, answers[0], functions[0].inputs[0])
                if isinstance(once, Failed):
                    return "not yet", f"{once.sentence}. Mend that line first: no part can be judged before."
                if once is None:
                    return "not attempted", _NOTHING
                if isinstance(once, list | tuple) and len(once) != len(exercise.parts):
                    return "not yet", f"expected {len(exercise.parts)} results, got {len(once)}."
            answers = tuple(item(answers[0], place) for place in range(len(exercise.parts)))
    if exercise.parts and len(answers) == len(exercise.parts):
        return _judge_parts(exercise, answers)
    if not answers or any(map(_untouched, answers)):
        return "not attempted", _TODO
    if exercise.parts:
        return "not yet", f"expected {len(exercise.parts)} answers, got {len(answers)}."
    if exercise.cases:
        if len(answers) != 1 or not callable(answers[0]):
            found = ", ".join(map(short, answers))
            return "not yet", f"expected a function, got {found}. Pass it without calling it."
        first, *others = exercise.inputs
        outcomes = [call(exercise, answers[0], first)]
        with redirect_stdout(None):  # what it prints is wanted once, not thirty times
            outcomes += [call(exercise, answers[0], arguments) for arguments in others]
    else:
        outcomes = [answers if len(answers) > 1 else answers[0]]
    if exercise.cases and all(outcome is None for outcome in outcomes):
        return "not attempted", _NOTHING
    if all(map(_untouched, outcomes)):
        return "not attempted", _TODO
    failed = []
    for place, (arguments, outcome) in enumerate(zip(exercise.inputs, outcomes, strict=True)):
        found = difference(outcome, _known(exercise, None, place), exercise, tell=bool(exercise.cases))
        if found:
            where = f"{written(exercise, arguments)}: " if exercise.cases else ""
            failed.append((place >= len(exercise.cases), len(where), f"{where}{found}."))
    if failed:
        return "not yet", f"{min(failed)[2]} {_mistake(exercise, outcomes)}"
    if exercise.cost and exercise.cases:
        advise = partial(_mistake, exercise, outcomes)
        if wasteful := waste(exercise, answers[0], advise):
            return "not yet", f"the result is right, but {wasteful}"
    return "correct", "correct."


def _judge_parts(exercise: Exercise, answers: tuple[Any, ...]) -> tuple[str, str]:
    """Each part by itself: the sentence of the first wrong one, and the names of the others."""
    judged = [(name, *_judge(one, (a,))) for (name, one), a in zip(exercise.parts.items(), answers, strict=True)]
    right, todo, wrong = ([name for name, status, _ in judged if status == kind] for kind in _MARKS)
    if len(right) == len(judged):
        return "correct", "correct."
    if len(todo) == len(judged):
        return "not attempted", _TODO
    named = {"right": right, "not right yet": wrong, "to do": todo}
    words = "; ".join(f"{head}: {', '.join(names)}" for head, names in named.items() if names)
    said = [f" {name}: {message}" for name, status, message in judged if status == "not yet"]
    return "not yet" if wrong else "not attempted", f"{words}.{''.join(said[:1])}"


def _untouched(answer: Any) -> bool:
    """Whether the dots of the stub are still there."""
    return answer is None or answer is ... or (isinstance(answer, tuple) and any(part is ... for part in answer))


@cache
def _known(exercise: Exercise, which: int | None, place: int) -> Any:
    """What the oracle, or that one of the wrong formulas, gives for that input."""
    formula = exercise.oracle if which is None else exercise.wrong[which][0]
    return call(exercise, formula, exercise.inputs[place])


def _mistake(exercise: Exercise, outcomes: list[Any], used: list[float] | None = None) -> str:
    """The sentence of the one mistake that gives the same in every case, and if asked for at the same costs."""
    found = set()
    for which, (formula, sentence) in enumerate(exercise.wrong):
        alike = all(_alike(exercise, which, place, mine) for place, mine in enumerate(outcomes))
        if alike and used:
            pairs = zip(used, known_costs(exercise, formula), strict=True)
            alike = all(max(pair) <= exercise.near * min(pair) for pair in pairs)
        if alike:
            found.add(sentence)
    if len(found) == 1:
        return found.pop()
    rights = [_known(exercise, None, place) for place in range(len(outcomes))]
    return (exercise.cases and not used and pattern(outcomes, rights)) or "The hint below may help."


def _alike(exercise: Exercise, which: int, place: int, found: Any) -> bool:
    theirs, right = _known(exercise, which, place), _known(exercise, None, place)
    if isinstance(found, Failed) or isinstance(theirs, Failed):
        return isinstance(found, Failed) and isinstance(theirs, Failed) and found.kind == theirs.kind
    if isinstance(right, torch.Tensor) and isinstance(found, torch.Tensor) != isinstance(theirs, torch.Tensor):
        return False  # elsewhere a tensor is a spelling of a number
    return difference(found, theirs, exercise) is None
