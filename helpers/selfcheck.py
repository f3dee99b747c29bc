"""Checks that a learner runs: `check(exercise, answer)` and `compare(guess, value)`.

Neither raises, whatever it is given: a half-written answer must not stop Run All.
"""

import html
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cache, partial
from numbers import Real
from operator import itemgetter
from typing import Any

import torch

from helpers import exercises, units
from helpers.counting import count
from helpers.exercises import EXERCISES, GUESSES, Exercise, Failed

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
        name = name if isinstance(name, str) else exercises.short(exercise)
        if not isinstance(exercise, str):
            answers = (exercise, *answers)
        if name not in EXERCISES:
            return Verdict(name, "not yet", _UNKNOWN)
        with exercises.same_randomness():
            return Verdict(name, *exercises.in_time(lambda: _judge(EXERCISES[name], answers), SECONDS))
    except Exception as error:
        return Verdict(str(name), "not yet", f"the answer could not be compared ({exercises.described(error)}).")


def _judge(exercise: Exercise, answers: tuple[Any, ...]) -> tuple[str, str]:
    if exercise.parts and len(answers) == 1:
        answers = (exercises.plain(answers[0]),)
        listed = isinstance(answers[0], list | tuple) and len(answers[0]) == len(exercise.parts)
        functions = [one for one in exercise.parts.values() if one.cases]
        if listed or functions:
            if functions and callable(answers[0]):
                once = exercises.call(exercise, answers[0], functions[0].inputs[0])
                if isinstance(once, Failed):
                    return "not yet", f"{once.sentence}. Mend that line first: no part can be judged before."
                if once is None:
                    return "not attempted", _NOTHING
                if isinstance(once, list | tuple) and len(once) != len(exercise.parts):
                    return "not yet", f"expected {len(exercise.parts)} results, got {len(once)}."
            answers = tuple(exercises.item(answers[0], place) for place in range(len(exercise.parts)))
    if exercise.parts and len(answers) == len(exercise.parts):
        return _judge_parts(exercise, answers)
    if not answers or any(map(_untouched, answers)):
        return "not attempted", _TODO
    if exercise.parts:
        return "not yet", f"expected {len(exercise.parts)} answers, got {len(answers)}."
    if exercise.cases:
        if len(answers) != 1 or not callable(answers[0]):
            found = ", ".join(map(exercises.short, answers))
            return "not yet", f"expected a function, got {found}. Pass it without calling it."
        first, *others = exercise.inputs
        outcomes = [exercises.call(exercise, answers[0], first)]
        with redirect_stdout(None):  # what it prints is wanted once, not thirty times
            outcomes += [exercises.call(exercise, answers[0], arguments) for arguments in others]
    else:
        outcomes = [answers if len(answers) > 1 else answers[0]]
    if exercise.cases and all(outcome is None for outcome in outcomes):
        return "not attempted", _NOTHING
    if all(map(_untouched, outcomes)):
        return "not attempted", _TODO
    failed = []
    for place, (arguments, outcome) in enumerate(zip(exercise.inputs, outcomes, strict=True)):
        found = exercises.difference(outcome, _known(exercise, None, place), exercise, tell=bool(exercise.cases))
        if found:
            where = f"{exercises.written(exercise, arguments)}: " if exercise.cases else ""
            failed.append((place >= len(exercise.cases), len(where), f"{where}{found}."))
    if failed:
        return "not yet", f"{min(failed)[2]} {_mistake(exercise, outcomes)}"
    if exercise.cost and exercise.cases:
        advise = partial(_mistake, exercise, outcomes)
        if wasteful := exercises.waste(exercise, answers[0], count, units.si, advise):
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
    return exercises.call(exercise, formula, exercise.inputs[place])


def _mistake(exercise: Exercise, outcomes: list[Any], used: list[float] | None = None) -> str:
    """The sentence of the one mistake that gives the same in every case, and if asked for at the same costs."""
    found = set()
    for which, (formula, sentence) in enumerate(exercise.wrong):
        alike = all(_alike(exercise, which, place, mine) for place, mine in enumerate(outcomes))
        if alike and used:
            pairs = zip(used, exercises.known_costs(exercise, formula, count), strict=True)
            alike = all(max(pair) <= exercise.near * min(pair) for pair in pairs)
        if alike:
            found.add(sentence)
    if len(found) == 1:
        return found.pop()
    rights = [_known(exercise, None, place) for place in range(len(outcomes))]
    return (exercise.cases and not used and exercises.pattern(outcomes, rights)) or "The hint below may help."


def _alike(exercise: Exercise, which: int, place: int, found: Any) -> bool:
    theirs, right = _known(exercise, which, place), _known(exercise, None, place)
    if isinstance(found, Failed) or isinstance(theirs, Failed):
        return isinstance(found, Failed) and isinstance(theirs, Failed) and found.kind == theirs.kind
    if isinstance(right, torch.Tensor) and isinstance(found, torch.Tensor) != isinstance(theirs, torch.Tensor):
        return False  # elsewhere a tensor is a spelling of a number
    return exercises.difference(found, theirs, exercise) is None


class Comparison(str):
    """A guess beside what came out, and how far apart they are: a sentence, shown without quotes."""

    __repr__ = str.__str__


def compare(
    guess: Any, value: Any, unit: str = "", about: str = "", because: str = "", measured: Any = False
) -> Comparison:
    """Put a prediction beside the value, and say how far apart they are.

    >>> compare(2.5e9, 2_415_919_104, "B")
    You predicted 2.5 GB; it is 2.42 GB: 3.5 % too high.
    >>> compare("32 MB", 64e6, "B", because="A ReLU reads and writes.")
    You predicted 32 MB; it is 64 MB: too low by a factor of 2. A ReLU reads and writes.
    >>> compare(..., 2_415_919_104, "B", because="An H100 has 80 GB.")
    Predict first: replace the ... by your guess in B and run the cell again.

    Without a guess the value and `because` stay hidden, so that looking costs a guess. `unit` is the unit of the value
    and of a guess that is a number; it may have a prefix, as "GB" or "KiB". A text may bring its own, as "40 MB".
    A `measured` value scatters, so a guess within a quarter of it is near enough: give True, or a list of the
    measurements that it comes from, and it is said if one was disturbed.
    `about` names the guess on the list `GUESSES`, whose sentences are said after one was made: in the cell they would
    give it away. Never raises.
    """
    if _untouched(guess):
        unit = f" in {unit}" if unit else ""
        return Comparison(f"Predict first: replace the ... by your guess{unit} and run the cell again.")
    try:
        if about and about not in GUESSES:
            return Comparison(f"There is no guess named {about!r}. Is the name misspelt?")
        known, wrong = GUESSES.get(about, ("", ()))
        word = isinstance(guess, str) and _measure(guess, unit) is None and _measure(value, unit) is not None
        if word and not any(isinstance(one, str) and _same(guess, one) for one, _ in wrong):  # such as "error"
            of, example = f" of {unit}" if unit else "", "2.5e9" if unit in ("B", "FLOP", "B/s", "FLOP/s") else "3"
            return Comparison(f"{exercises.short(guess)} cannot be read as a number{of}: write one, such as {example}.")
        said = _compared(guess, value, unit, wrong, bool(measured))
        disturbed = any(run.disturbed for run in (measured if isinstance(measured, list) else ()))
        again = "The measurement was disturbed: run it again." if disturbed else ""
        return Comparison(" ".join(filter(None, [*said, known, because, again])))
    except Exception as error:
        return Comparison(
            f"You predicted {exercises.short(guess)}, which cannot be compared ({exercises.described(error)})."
        )


def _compared(guess: Any, value: Any, unit: str, wrong: Sequence[tuple[Any, str]], measured: bool) -> Iterator[str]:
    value = exercises.plain(value)
    if isinstance(guess, str) and isinstance(value, list | tuple | set) and guess.count(",") == len(value) - 1:
        words = [word.strip(" ()[]{}'\"") for word in guess.split(",")]  # "view, copy" or "2, 3"
        guess = [word if (number := exercises.amount(word, "")) is None else number for word in words]
    if isinstance(value, set):  # in any order
        guess, value = sorted(guess) if isinstance(guess, set | list | tuple) else guess, sorted(value)
    asked, right = _measure(guess, unit), _measure(value, unit)
    if measured and right is not None and math.isnan(right):
        yield f"You predicted {exercises.short(guess)}; here it cannot be measured."
        return
    if asked is None or right is None or not math.isfinite(asked) or not math.isfinite(right):
        same = _same(guess, value) or _both_nan(asked, right)
        verdict = "as predicted" if same else "not as predicted"
        yield f"You predicted {exercises.short(guess)}; it is {exercises.short(value)}: {verdict}."
    else:
        good = _good(asked, right)
        same = good or (measured and abs(asked - right) <= abs(right) / 4)
        rounded = measured and isinstance(value, float)  # and no count, even where it is whole
        apart = "near enough for a measurement" if same and not good else _apart(asked, right, unit, rounded)
        yield f"You predicted {_quantity(asked, unit)}; it is {_quantity(right, unit)}: {apart}."
    named = []  # how far the guess is from each mistake that it may be, and the mistake's sentence
    for prediction, sentence in () if same else wrong:
        prediction = prediction(value) if callable(prediction) else prediction
        if isinstance(prediction, tuple) and None not in (asked, right):
            named += [(math.inf, sentence)] * (prediction[0] <= asked <= prediction[1])  # a near one counts more
            continue
        theirs = _measure(prediction, unit)
        numbers = None not in (asked, theirs)
        counted = numbers and not unit and _counted(asked, theirs)
        near = numbers and (_good(asked, theirs) if counted else math.isclose(asked, theirs, rel_tol=0.02))
        near = near and (right is None or asked == theirs or 2 * abs(asked - theirs) < abs(asked - right))
        if near or _both_nan(asked, theirs) or (not numbers and _same(guess, prediction)):
            named.append((abs(asked - theirs) if numbers else 0, sentence))
    if named:
        yield min(named, key=itemgetter(0))[1]
    elif asked and right and unit and not same and not isinstance(guess, str):
        yield _meant(asked, right, unit)


def _meant(asked: float, right: float, unit: str) -> str:
    """What else the number may have been meant as, if so it would be near the value; else nothing."""
    if unit == "%":
        fraction, change = 100 * asked, 100 * (asked - 1)
        if 0.5 < fraction / right < 2:
            return f"If that is a fraction, it is {_digits(fraction)} %."
        more = f"{_digits(abs(change))} % {'more' if change > 0 else 'less'}"
        return f"If that is a factor, it is {more}." if 0.5 < change / right < 2 else ""
    ratio, step = right / asked, 1024.0 if "iB" in unit else 1000.0
    steps = round(math.log(ratio, step)) if 0 < ratio < math.inf else 0
    typed = 0.1 <= abs(asked) < 1e4 or 1 < step**-steps <= exercises.scale(unit)[0]  # as nobody writes 1e-9
    near = typed and 1 <= abs(steps) <= 5 and 0.5 < ratio / step**steps < 2 and "/" not in unit
    meant = _quantity(asked * step**steps, unit) if near else ""
    return meant and f'If you mean {meant}, write "{meant}".'


def _measure(thing: Any, unit: str) -> float | None:
    """A number of that unit, however it is spelled; None for anything else."""
    thing = exercises.plain(thing)
    while isinstance(thing, list) and len(thing) == 1:
        thing = thing[0]
    thing = exercises.amount(thing, unit) if isinstance(thing, str) else thing
    return thing if isinstance(thing, Real) and not isinstance(thing, bool) else None


def _same(found: Any, right: Any) -> bool:
    words = [word for word in (right if isinstance(right, list | tuple) else [right]) if isinstance(word, str)]
    return (
        exercises.difference(found, exercises.plain(right), Exercise("compare", exercises.plain, words=words)) is None
    )


def _both_nan(one: float | None, other: float | None) -> bool:
    return None not in (one, other) and math.isnan(one) and math.isnan(other)


def _apart(asked: float, right: float, unit: str, rounded: bool) -> str:
    if asked == right:
        return "exactly right"
    side = "high" if asked > right else "low"
    if not right or not asked or (asked < 0) != (right < 0):
        return f"too {side}"
    if unit == "%" and not _good(asked, right):
        far = _digits(abs(asked - right))
        return f"{far} point{'s' * (far != '1')} too {side}"
    factor = max(asked / right, right / asked)
    if factor >= 2:
        return f"too {side} by a factor of {_digits(factor)}"
    if not unit and not rounded and _counted(asked, right) and not _good(asked, right):
        return f"{abs(asked - right):.0f} too {side}"
    percent = abs(asked / right - 1) * 100
    return "as good as right" if _good(asked, right) else f"{percent:{'.0f' if percent >= 10 else '.2g'}} % too {side}"


def _good(asked: float, right: float) -> bool:
    """Whether a prediction is as good as right: within 0.5 %, or in two digits, or a count above 100 within 2 %.

    Smaller counts and powers of two must be exact: 257 is not 256.
    """
    if asked == right:
        return True
    if _counted(asked, right):
        return abs(right) > 100 and abs(math.frexp(right)[0]) != 0.5 and math.isclose(asked, right, rel_tol=0.02)
    return math.isclose(asked, right, rel_tol=5e-3) or math.isclose(asked, float(f"{right:.1e}"))


def _counted(asked: float, right: float) -> bool:
    """Whether both are whole numbers that somebody counts."""
    return float(asked).is_integer() and float(right).is_integer() and abs(right) < 1000


def _digits(number: float) -> str:
    return f"{number:{',.0f' if 1000 <= abs(number) < 1e6 else '.3g'}}"


def _quantity(number: float, unit: str) -> str:
    factor, base = exercises.scale(unit)
    if unit.endswith("iB"):
        return units.iec(number * factor)
    if unit == "%" or unit.endswith(f" {base}") or (base == "s" and not number):  # "billion parameters", "0 days"
        return f"{_digits(number)} {unit}"
    if unit:
        return (units.duration if base == "s" else partial(units.si, unit=base))(number * factor)
    return f"{number:.6g}" if isinstance(number, float) else str(number)
