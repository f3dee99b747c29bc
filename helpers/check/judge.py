"""`check(exercise, answer)`: whether an answer is right, and if not, which mistake it was."""

import html
import itertools
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

from helpers.check import run
from helpers.check.answers import Failed, difference, is_number, plain, untouched
from helpers.check.attempt import Answer, Attempt
from helpers.check.costs import Uncountable, costs, waste
from helpers.check.diagnose import NOTHING, explain, usual_mistake
from helpers.check.names import exercise_named, name_of, no_exercise
from helpers.check.run import Sandbox, known
from helpers.check.runner import WHY_COMPUTING, OutOfTime
from helpers.check.wording import call_text, error_text, first_short, printable, sentence_list
from helpers.exercises import Exercise

Status = Literal["correct", "not attempted", "not yet"]
_MARKS: dict[Status, tuple[str, str]] = {
    "correct": ("✓", "#009E73"),
    "not attempted": ("○", "#767676"),
    "not yet": ("✗", "#D55E00"),
}


@dataclass(frozen=True)
class Verdict:
    """What a check has to say. `status` is "correct", "not attempted" or "not yet".

    right_parts: how many parts are right, of an exercise of several that is not right as a whole.
    """

    exercise: str
    status: Status
    message: str
    right_parts: int = 0

    def __repr__(self) -> str:
        return f"{_MARKS[self.status][0]} {self.exercise}: {self.message}"

    def _repr_html_(self) -> str:
        mark, colour = _MARKS[self.status]
        return (
            f'<div role="status" style="border-left:4px solid {colour};padding:2px 8px">{mark} '
            f"<b>{html.escape(self.exercise)}</b>: {html.escape(self.message)}</div>"
        )


# How a difference begins that leaves nothing to ask.
_TELLING = (
    "write ", "expected a number, got the text", "expected a tensor", "expected dtype", "expected one tensor",
    "expected a tuple", "expected a list", "what you return is ", "it changed what it was given",
)  # fmt: skip


class _Judgement(NamedTuple):
    status: Status
    message: str
    right_parts: int = 0


_CORRECT = _Judgement("correct", "correct.")
_TODO = _Judgement("not attempted", "not attempted yet. Replace the ... above and run the cell again.")
_NONE = _Judgement("not attempted", "the answer is None so far. What is printed is not kept: write the value itself.")
_NOTHING = _Judgement(
    "not attempted", "the function returns None, as print() and append() do. Does it end in a return?"
)


_SECONDS_OF_A_LOOK = 3.0  # at the calls of an answer that was out of time


def _not_yet(*sentences: str) -> _Judgement:
    return _Judgement("not yet", " ".join(filter(None, sentences)))


def check(exercise: str | Callable[..., Any], *answers: Any) -> Verdict:
    """Say whether an answer is right, and if not, which mistake it was.

    `check("checkpoint", checkpoint)` and `check(checkpoint)` are the same for a function named like its exercise.
    An exercise whose answer is a value takes the value, or the several values it asks for: `check("name", a, b)`.
    So are both for a lambda, or whatever else has no such name, in a variable that is named like it.
    `None` and `...` mean "not attempted yet". Never raises. The answer's own code may take ten seconds, as
    `helpers.check.runner` measures them, and leaves no trace.
    """
    name = exercise if isinstance(exercise, str) else name_of(exercise, sys._getframe(1).f_globals)
    if name is None:
        name = printable(exercise)
    if not isinstance(exercise, str):
        answers = (exercise, *answers)
    asked = exercise_named(name)
    if not asked:
        return Verdict(name, "not yet", no_exercise(exercise))
    try:
        with run.sandbox(run.SECONDS) as place:
            judgement = _judge(asked, answers, place)
    except OutOfTime as why:
        judgement = _not_yet(str(why))
    except KeyboardInterrupt:
        judgement = _not_yet("you stopped it before it came to an end.")
    except Exception as error:
        judgement = _not_yet(f"the answer could not be compared ({error_text(error)}).")
    return Verdict(name, *judgement)


def _judge(exercise: Exercise, answers: tuple[Any, ...], place: Sandbox) -> _Judgement:
    if exercise.parts:
        return _judge_parts(exercise, answers, place)
    if not answers or any(map(untouched, answers)):
        return _NONE if any(answer is None for answer in answers) else _TODO
    if not exercise.cases:
        return _judge_value(exercise, answers[0] if len(answers) == 1 else answers)
    if len(answers) != 1 or not callable(answers[0]):
        found = ", ".join(printable(answer, longest=40) for answer in answers)
        expected = "a function" if len(answers) == 1 else "one answer, a function"
        return _not_yet(f"expected {expected}, got {found}. Pass it without calling it.")
    return _judge_function(exercise, answers[0], place)


def _judge_value(exercise: Exercise, answer: Any) -> _Judgement:
    found = difference(answer, known(exercise, exercise.oracle, 0), exercise, tell=False)
    if not found:
        return _CORRECT
    return _not_yet(f"{found}.", _unless_said(found, explain(Attempt(exercise, [answer]))))


def _unless_said(difference: str, sentence: str) -> str:
    """The sentence about an answer, without a word of hints where the difference tells what to do."""
    return "" if sentence == NOTHING and difference.startswith(_TELLING) else sentence


def _judge_function(
    exercise: Exercise, learner: Callable[..., Any], place: Sandbox, pick: Callable[[Any], Any] = lambda result: result
) -> _Judgement:
    """What to say of a learner's function; `pick` takes from its result the part that is judged."""
    answer = Answer(learner, place, pick)
    function = answer.picked(learner)
    try:
        outcomes = [place.call(exercise, function, arguments) for arguments in exercise.inputs]
    except OutOfTime as why:
        return _judge_slow(exercise, function, place, str(why))
    if all(outcome is None for outcome in outcomes):
        return _NOTHING
    if all(map(untouched, outcomes)):
        return _TODO

    found = _readable_difference(exercise, outcomes)
    if found:
        sentence = explain(Attempt(exercise, outcomes, answer, shown=found.place))
        return _phrased(found, _unless_said(found.words, sentence))
    if exercise.cost:
        return _judge_cost(exercise, function, outcomes, place)
    return _CORRECT


def _judge_slow(exercise: Exercise, function: Callable[..., Any], place: Sandbox, why: str) -> _Judgement:
    """What to say of a function that is out of time: where it computes, whether it is right in what it ends soon."""
    if WHY_COMPUTING not in why:
        return _not_yet(why)
    place.renew(run.SECONDS)
    deadline = time.perf_counter() + _SECONDS_OF_A_LOOK
    ended: list[bool] = []
    slow: list[str] = []
    for index, arguments in enumerate(exercise.inputs):
        if time.perf_counter() > deadline:
            break
        try:
            outcome = place.call_briefly(exercise, function, arguments, _SECONDS_OF_A_LOOK / 10)
        except OutOfTime:
            slow.append(call_text(exercise.name, arguments))
            continue
        ended.append(difference(outcome, known(exercise, exercise.oracle, index), exercise) is None)
    if len(ended) < 3 or not all(ended) or not slow:
        return _not_yet(why)
    verdict = f"right in {len(ended)} other calls, but too slow for {slow[0]}: is there a shorter way?"
    return _Judgement("not attempted", verdict)


class _Difference(NamedTuple):
    place: int
    call: str
    words: str
    line: str


def _readable_difference(exercise: Exercise, outcomes: list[Any]) -> _Difference | None:
    """What is wrong in one call, and which: that of the shortest text, of the cases before those drawn at random."""
    failed = []
    for index, (arguments, outcome) in enumerate(zip(exercise.inputs, outcomes, strict=True)):
        words = difference(outcome, known(exercise, exercise.oracle, index), exercise)
        if words:
            is_drawn = index >= len(exercise.cases)
            call = call_text(exercise.name, arguments) if exercise.name else ""  # a part has no function of its own
            line = outcome.line if isinstance(outcome, Failed) else ""
            failed.append((is_drawn, len(call), index, _Difference(index, call, words, line)))
    return min(failed)[-1] if failed else None


def _phrased(found: _Difference, sentence: str) -> _Judgement:
    """The verdict; where it would be too long, without the call, the middle of an error, or the line."""
    where = f"{found.call}: " if found.call else ""
    line = f" in the line `{found.line}`" if found.line else ""
    clipped = printable(found.words, str)
    forms = [f"{where}{found.words}{line}.", f"{found.words}{line}.", f"{clipped}{line}.", f"{found.words}."]
    forms.append(f"{clipped}.")
    return _not_yet(first_short(*(f"{form} {sentence}".rstrip() for form in forms)))


def _judge_cost(exercise: Exercise, function: Callable[..., Any], outcomes: list[Any], place: Sandbox) -> _Judgement:
    """Of a right answer, whether it costs no more than it may."""
    try:
        used = costs(exercise, function, place)
    except Uncountable as reason:
        return _not_yet(f"the result is right, but what it costs cannot be counted: {reason}")
    wasteful = waste(exercise, used)
    if not wasteful:
        return _CORRECT
    sentence = explain(Attempt(exercise, outcomes, Answer(function, place), costs=used))
    forms = [f"for {wasteful.call} {wasteful.words}", wasteful.words]
    return _not_yet(first_short(*(f"the result is right, but {form} {sentence}" for form in forms)))


# ---- Exercises of several parts: each is judged by itself.


def _judge_parts(exercise: Exercise, answers: tuple[Any, ...], place: Sandbox) -> _Judgement:
    parts = exercise.parts
    if len(answers) == 1:
        one = answers[0]
        if callable(one):
            return _judge_function_of_parts(exercise, one, place)
        several = plain(one)
        if isinstance(several, list | tuple) and len(several) == len(parts):  # all in one list
            answers = tuple(several)
    if len(answers) != len(parts):
        if not answers or any(map(untouched, answers)):
            return _TODO
        return _not_yet(f"expected {len(parts)} answers, got {len(answers)}.")
    judged = {name: _judge(parts[name], (answer,), place) for name, answer in zip(parts, answers, strict=True)}
    for name, answer in zip(parts, answers, strict=True):
        if judged[name].status == "not yet":
            judged[name] = _of_another_part(parts, judged, name, answer) or judged[name]
    summed_up = _summed_up(judged)
    exchanged = _exchanged(parts, answers)
    if exchanged:
        return summed_up._replace(status="not yet", message=f"{sentence_list(exchanged)} are exchanged.")
    return summed_up


def _of_another_part(
    parts: Mapping[str, Exercise], judged: Mapping[str, _Judgement], name: str, answer: Any
) -> _Judgement | None:
    """What to say of a number that the learner has right where another unit is asked for, if no mistake is listed."""
    exercise = parts[name]
    if not is_number(plain(answer)) or exercise.cases or usual_mistake(Attempt(exercise, [answer])):
        return None
    for other, its in parts.items():
        is_found = not its.cases and not its.words and judged[other].status == "correct"
        if is_found and its.unit != exercise.unit and _is_right(its, answer):
            found = difference(answer, known(exercise, exercise.oracle, 0), exercise, tell=False)
            return _not_yet(f"{found}.", f"That is the answer of {other}: what is asked for here?")
    return None


def _exchanged(parts: Mapping[str, Exercise], answers: tuple[Any, ...]) -> list[str]:
    """Two numbers each of which is the right one of the other, and wrong where it stands."""
    given = [
        (name, answer)
        for name, answer in zip(parts, answers, strict=True)
        if not parts[name].cases and not parts[name].words and not untouched(answer)
    ]
    for (one, mine), (other, theirs) in itertools.combinations(given, 2):
        is_exchanged = _is_right(parts[one], theirs) and _is_right(parts[other], mine)
        if is_exchanged and not _is_right(parts[one], mine):
            return [one, other]
    return []


def _is_right(exercise: Exercise, answer: Any) -> bool:
    return difference(answer, known(exercise, exercise.oracle, 0), exercise) is None


def _judge_function_of_parts(exercise: Exercise, function: Callable[..., Any], place: Sandbox) -> _Judgement:
    """Of a function that returns a result for each part, each result."""
    first = next(iter(exercise.parts.values()))
    once = place.call(exercise, function, first.inputs[0])
    if isinstance(once, Failed):
        if not once.line:
            return _not_yet(f"{once.sentence}. No part can be judged before.")
        line = f" in the line `{once.line}`"
        return _not_yet(f"{once.sentence}{line}. Mend that line first: no part can be judged before.")
    if once is None:
        return _NOTHING
    if isinstance(once, list | tuple) and len(once) != len(exercise.parts):
        return _not_yet(f"expected {len(exercise.parts)} results, got {len(once)}.")

    judged = {
        name: _judge_function(part, function, place, partial(_one_of, position))
        for position, (name, part) in enumerate(exercise.parts.items())
    }
    return _summed_up(judged)


def _one_of(position: int, results: Any) -> Any:
    return results[position] if isinstance(results, list | tuple) else results


def _summed_up(judged: dict[str, _Judgement]) -> _Judgement:
    """The names of the parts that are right, wrong and to do, and the sentence of the first wrong one."""
    names: dict[Status, list[str]] = {status: [] for status in _MARKS}
    for name, judgement in judged.items():
        names[judgement.status].append(name)
    if len(names["correct"]) == len(judged):
        return _CORRECT
    if len(names["not attempted"]) == len(judged):
        return _TODO
    heads: dict[str, Status] = {"right": "correct", "not right yet": "not yet", "to do": "not attempted"}
    if len(names["not yet"]) == 1 and names["correct"]:
        del heads["not right yet"]  # it is told by its sentence
    counts = "; ".join(f"{head}: {', '.join(names[status])}" for head, status in heads.items() if names[status])
    right_parts = len(names["correct"])
    if not names["not yet"]:
        return _Judgement("not attempted", f"{counts}.", right_parts)
    first = names["not yet"][0]
    said = f"{first}: {judged[first].message}"
    return _Judgement("not yet", first_short(f"{counts}. {said}", said), right_parts)
