"""Rules for an answer that is a function of numbers: what is wrong with its formula."""

import dis
import inspect
import itertools
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import torch

from helpers.check.answers import Failed, difference, flat, is_number, plain
from helpers.check.attempt import Attempt, Call
from helpers.check.monomials import Monomial, fitted, fraction_text, is_plain, is_simple
from helpers.check.run import call
from helpers.check.wording import quoted, sentence_list
from helpers.exercises import Exercise

_BASES = 6  # calls of which a tensor is varied
_MOST_ELEMENTS = 100_000
_CLOSE = 1e-9  # relative: two results are the same
_LOST_DIGITS = 1e-9  # of the larger number, where two nearly equal ones are subtracted


def _same(first: Any, second: Any) -> bool:
    if is_number(first) and is_number(second):
        return math.isclose(first, second, rel_tol=_CLOSE) or first == second
    if isinstance(first, torch.Tensor) and isinstance(second, torch.Tensor):
        is_like = first.shape == second.shape and first.dtype == second.dtype
        return is_like and torch.allclose(first, second, rtol=_CLOSE, atol=0, equal_nan=True)
    if isinstance(first, list | tuple) and isinstance(second, list | tuple):
        return len(first) == len(second) and all(map(_same, first, second))
    return type(first) is type(second) and repr(first) == repr(second)


# ---- Which arguments it depends on.


def dependence(attempt: Attempt) -> str | None:
    """An argument that changes nothing, or one that should not change anything."""
    return _dependence_text(attempt, *_dependences(attempt))


def ignored(attempt: Attempt) -> str | None:
    """An argument that changes nothing, and should."""
    missing, _ = _dependences(attempt)
    return _dependence_text(attempt, missing, []) if missing else None


def _dependences(attempt: Attempt) -> tuple[list[str], list[str]]:
    """The arguments that change nothing and should, and those that should not change anything and do."""
    missing: list[str] = []
    wrong: list[str] = []
    answer, exercise = attempt.answer, attempt.exercise
    first = exercise.inputs[0]
    if not answer or len(exercise.inputs) < 2 or not all(map(_can_vary, first)):
        return missing, wrong
    if not _are_alike(attempt.outcomes[0], attempt.rights[0]):  # a result of another kind says enough
        return missing, wrong
    for place, name in enumerate(attempt.names):
        varied = list(_varied(exercise.inputs, place))
        mine = _is_moved(lambda arguments: answer.outcome(exercise, arguments), varied)
        right = _is_moved(lambda arguments: call(exercise, exercise.oracle, arguments), varied)
        if right and mine is False:
            missing.append(name)
        if mine and right is False and is_number(first[place]):
            wrong.append(name)
    return missing, wrong


def _are_alike(mine: Any, right: Any) -> bool:
    """Whether a result is of the kind that is asked for, and small enough to be compared often."""
    if isinstance(right, torch.Tensor):
        return isinstance(mine, torch.Tensor) and mine.dtype == right.dtype and mine.numel() <= _MOST_ELEMENTS
    mine, right = plain(mine), plain(right)
    kinds = (bool, str, list | tuple, int | float)
    return next((isinstance(mine, kind) for kind in kinds if isinstance(right, kind)), False)


def _can_vary(argument: Any) -> bool:
    return (
        is_number(argument)
        or isinstance(argument, tuple)
        or (isinstance(argument, torch.Tensor) and not argument.is_meta)
    )


_Pair = tuple[tuple[Any, ...], tuple[Any, ...]]


def _varied(inputs: Sequence[tuple[Any, ...]], place: int) -> Iterator[_Pair]:
    """Pairs of arguments that differ in one place alone."""
    if isinstance(inputs[0][place], torch.Tensor):
        for base in inputs[:_BASES]:
            for other in (2 * base[place] + 1, -base[place], base[place].flip(0)):
                yield base, (*base[:place], other, *base[place + 1 :])
        return
    every = sorted({arguments[place] for arguments in inputs})
    for base in inputs:
        values = [value for value in every if _fits(value, base[place])]
        for value in (values[0], values[len(values) // 2], values[-1]):
            if value != base[place]:
                yield base, (*base[:place], value, *base[place + 1 :])


def _fits(value: Any, other: Any) -> bool:
    """Whether a value may stand in the place of another one: of several numbers, where they are as many."""
    return not isinstance(value, tuple) or len(value) == len(other)


def _is_moved(function: Callable[[tuple[Any, ...]], Any], varied: Sequence[_Pair]) -> bool | None:
    """Whether any pair of arguments gives different results; None if that is unknown."""
    unknown = not varied
    for first, second in varied:
        results = function(first), function(second)
        if any(isinstance(result, Failed) for result in results):
            unknown = True
        elif not _same(*results):
            return True
    return None if unknown else False


def _dependence_text(attempt: Attempt, missing: list[str], wrong: list[str]) -> str | None:
    if not missing and not wrong:
        return None
    monomial = _ratio(attempt)
    if not missing:
        more = term(attempt) or wrong_way(attempt) or ""
        return f"Your result depends on {_names(wrong)}, and should not. {more}".rstrip()
    text = f"Your result does not depend on {_varied_names(attempt, missing)}"
    if set(missing) <= _used(attempt):
        text += ", though it is in there" if len(missing) == 1 else ", though they are in there"
    if wrong:
        return f"{text}, but on {_names(wrong)}."
    if monomial and set(monomial.powers) <= set(missing):
        is_all = math.isclose(monomial.constant, 1, rel_tol=1e-6)
        return f"{text}: all else is right." if is_all or not is_plain(monomial.constant) else f"{text}."
    return f"{text}."


def _varied_names(attempt: Attempt, names: Sequence[str]) -> str:
    """Arguments by what was varied of them: of a tensor its numbers, and not its shape."""
    tensors = {
        name for name, thing in zip(attempt.names, attempt.exercise.inputs[0], strict=True) if not is_number(thing)
    }
    if set(names) <= tensors:
        return f"the numbers in {_names(names)}"
    return sentence_list([f"the numbers in `{name}`" if name in tensors else f"`{name}`" for name in names])


def _used(attempt: Attempt) -> set[str]:
    """The arguments that the code of the answer reads; empty where its code is not known."""
    code = getattr(inspect.unwrap(attempt.answer.learner), "__code__", None) if attempt.answer else None
    reads = [step.argval for step in dis.get_instructions(code) if step.opname.startswith("LOAD_FAST")] if code else []
    return {name for name in reads if isinstance(name, str)}


def _names(names: Sequence[str]) -> str:
    return sentence_list(list(map(quoted, names)))


# ---- Factors and terms.


def _ratio(attempt: Attempt) -> Monomial | None:
    rows = attempt.formula
    if not rows or not all(mine and right for _, mine, right in rows):
        return None
    return fitted([variables for variables, *_ in rows], [mine / right for _, mine, right in rows])


def factor(attempt: Attempt) -> str | None:
    """The right one times or over powers of the arguments and a constant."""
    monomial = _ratio(attempt)
    if not monomial or not monomial.powers:
        return None
    root = math.sqrt(max(abs(monomial.constant), 1 / abs(monomial.constant)))
    if all(power in (2, -2) for power in monomial.powers.values()) and math.isclose(root, round(root), rel_tol=_CLOSE):
        said = wrong_way(attempt)
        if said:
            return said
    sign = "minus " if monomial.constant < 0 else ""
    tells = is_simple(monomial.constant) or attempt.writes_any_of([monomial.constant, 1 / monomial.constant])
    return f"In every case it is {sign}the right one {monomial.factors(tells)}{monomial.exchange}"


def wrong_way(attempt: Attempt) -> str | None:
    """The arguments with which it grows and should fall, or the other way round."""
    answer, exercise = attempt.answer, attempt.exercise
    if not answer:
        return None
    wrong: dict[bool, list[str]] = {True: [], False: []}
    for place, name in enumerate(attempt.names):
        if not is_number(exercise.inputs[0][place]):
            continue
        varied = list(_varied(exercise.inputs, place))
        mine = _grows(lambda arguments: answer.outcome(exercise, arguments), varied, place)
        right = _grows(lambda arguments: call(exercise, exercise.oracle, arguments), varied, place)
        if None not in (mine, right) and mine is not right:
            wrong[bool(mine)].append(name)
    if all(wrong.values()):
        return f"Upside down: it grows with {_names(wrong[True])}, and falls with {_names(wrong[False])}."
    for grows, words in ((True, "grows with {}, and should fall"), (False, "falls with {}, and should grow")):
        if wrong[grows]:
            return f"It {words.format(_names(wrong[grows]))}: is a quotient upside down, or a sign wrong?"
    return None


def _grows(function: Callable[[tuple[Any, ...]], Any], varied: Sequence[_Pair], place: int) -> bool | None:
    """Whether a function always grows with an argument, or never falls; False for the opposite, None for neither."""
    signs = set()
    for first, second in varied:
        one, other = plain(function(first)), plain(function(second))
        if not is_number(one) or not is_number(other) or not math.isfinite(other - one):
            return None
        if one != other:
            signs.add((other > one) == (second[place] > first[place]))
    return signs.pop() if len(signs) == 1 else None


def term(attempt: Attempt) -> str | None:
    """A term too many or missing: what it grows with."""
    if _ratio(attempt):
        return None
    over = attempt.exercise.over
    tops = [over(*one.arguments) if over else 1.0 for one in attempt.calls]
    found = _difference(attempt, [right for *_, right in attempt.formula], lambda mine, right, top: (mine, right))
    if found:
        side = "too large" if found.constant > 0 else "too small"
        return f"In every case it is {side} by a term that {found.growth()}."
    below = _difference(attempt, tops, lambda mine, right, top: (top / mine, top / right))
    if below:
        what = "a term too many, that" if below.constant > 0 else "a term too few: one that"
        return f"What you divide by has {what} {below.growth()}."
    above = over and _difference(attempt, tops, lambda mine, right, top: (mine * top / right, top))
    if above:
        what = "a term too many, that" if above.constant > 0 else "a term too few: one that"
        return f"What you divide has {what} {above.growth()}."
    return None


def _difference(
    attempt: Attempt, tops: Sequence[float], turned: Callable[[float, float, float], tuple[float, float]]
) -> Monomial | None:
    """By what two numbers made of each result, the right one, and what is above its bar, differ."""
    rows = attempt.formula
    if not rows or not all(mine and right for _, mine, right in rows):
        return None
    pairs = [turned(mine, right, top) for (_, mine, right), top in zip(rows, tops, strict=True)]
    values = [mine - right for mine, right in pairs]
    rooms = [_LOST_DIGITS * max(abs(mine), abs(right)) for mine, right in pairs]
    # A term that can hardly be seen in most calls could be any.
    if sum(abs(value) > 1e4 * room for value, room in zip(values, rooms, strict=True)) < 0.8 * len(values):
        return None
    rooms = [
        max(room, 1e-7 * abs(value)) if abs(value) > room else room for value, room in zip(values, rooms, strict=True)
    ]
    found = fitted([variables for variables, *_ in rows], values, rooms)
    return found if found and found.powers else None


def named_terms(attempt: Attempt) -> str | None:
    """Which of the terms of a sum are missing, or counted wrongly."""
    exercise = attempt.exercise
    sums = _sums(attempt) if exercise.terms else []
    if not sums:
        return None
    table = np.array([[formula(*one.arguments) for formula in exercise.terms.values()] for one in attempt.calls])
    shares = table / np.array(sums)[:, None]
    solution, _, rank, _ = np.linalg.lstsq(shares, np.ones(len(sums)), rcond=None)
    counts = np.round(solution * 24) / 24
    is_sum = rank == len(counts) and np.allclose(shares @ counts, 1, rtol=0, atol=1e-7)
    if not is_sum or sum(counts != 1) > 1:  # of two readings the one with a single wrong term
        said = _one_term(attempt, table, sums)
        if said or not is_sum:
            return said
    return wrong_terms(exercise, counts.tolist())


def wrong_terms(exercise: Exercise, counts: Sequence[float]) -> str | None:
    """In words, the terms that are not counted once; None where all are alike, and a factor tells more."""
    wrong = {words: count for words, count in zip(exercise.terms, counts, strict=True) if count != 1}
    if not wrong or len(set(counts)) == 1:
        return None
    if len(wrong) > 1 and max(map(abs, wrong.values())) > 2:  # some combination often fits by coincidence
        return None
    if exercise.over and len(wrong) == 1 and 0 not in wrong.values():  # what is above the bar may be wrong as well
        ((words, count),) = wrong.items()
        return f"Below the bar, {words}: {_count(count)}; or all else, above it as well, {_count(1 / count)}."
    where = " below the bar" if exercise.over else ""
    return f"All is right{where} but {'; '.join(f'{words}: {_count(count)}' for words, count in wrong.items())}."


def _sums(attempt: Attempt) -> list[float]:
    """What the answer takes for the sum of the terms, in each call."""
    exercise = attempt.exercise
    sums = []
    with suppress(TypeError, ValueError, ZeroDivisionError, OverflowError):
        for one in attempt.calls:
            (mine,) = flat(one.mine)
            sums.append(exercise.over(*one.arguments) / mine if exercise.over else mine)
    return sums if len(sums) == len(attempt.calls) and all(sums) else []


def _count(count: float) -> str:
    usual = {0: "missing", 0.5: "half of it", 2: "twice", -1: "the wrong sign"}
    if count in usual:
        return usual[count]
    fraction = Fraction(count).limit_denominator(24)
    return f"{fraction} times" if abs(count) > 1 else f"{fraction} of it"


def _one_term(attempt: Attempt, table: np.ndarray, sums: list[float]) -> str | None:
    """The one term that is wrong by a factor of some arguments."""
    rows = [attempt.variables(one.arguments) for one in attempt.calls]
    for place, words in enumerate(attempt.exercise.terms):
        if not all(table[:, place]):
            continue
        mine = np.array(sums) - (table.sum(1) - table[:, place])
        rooms = [1e-9 * abs(total) / abs(term) for total, term in zip(sums, table[:, place], strict=True)]
        monomial = fitted(rows, (mine / table[:, place]).tolist(), [max(room, 1e-9) for room in rooms])
        if monomial and monomial.powers and is_plain(monomial.constant) and monomial.constant > 0:
            said = f"All is right but {words}: yours is the right one {monomial.factors()}{monomial.exchange}"
            depends = dependence(attempt) if len(monomial.powers) > 1 else None
            return depends if depends and "not depend on" in depends else said
    return None


def affine(attempt: Attempt) -> str | None:
    """The right one is a multiple of it and a constant more or less, which would give it away."""
    rows = attempt.formula
    if len(rows) < 5:
        return None
    (least, right_of_least), (most, right_of_most) = min(_numbers(rows)), max(_numbers(rows))
    if least == most:
        return None
    times = (right_of_most - right_of_least) / (most - least)
    more = right_of_least - times * least
    if not is_plain(times) or not more or more != round(more, 3):
        return None
    if any(not math.isclose(times * mine + more, right, rel_tol=_CLOSE) for mine, right in _numbers(rows)):
        return None
    factor_text = f"a factor of {fraction_text(max(times, 1 / times))}" if times > 0 else "a constant factor"
    return f"It is right but for {factor_text}, and for a constant that is added."


def _numbers(rows: Sequence[tuple[Any, float, float]]) -> list[tuple[float, float]]:
    """The numbers found and the right ones alone."""
    return [(mine, right) for _, mine, right in rows]


_Error = Callable[[float, float], float]


def one_term_errs(attempt: Attempt) -> str | None:
    """The one term of a sum that depends on all on which it depends how far the answer is off."""
    exercise = attempt.exercise
    if exercise.over or not exercise.terms:
        return None
    off = set(_errs_on(attempt, operator.sub))
    inputs, names = exercise.inputs, attempt.names
    on = {
        words: {
            name
            for place, name in enumerate(names)
            if _is_moved(lambda given, of=formula: of(*given), list(_varied(inputs, place)))  # type: ignore[misc]
        }
        for words, formula in exercise.terms.items()
    }
    blamed = [words for words, its in on.items() if off and off <= its]
    return f"All is right but {blamed[0]}." if len(blamed) == 1 else None


def _errs_on(attempt: Attempt, error: _Error) -> list[str]:
    """The arguments on which it depends how far the answer is off; empty where that is not known."""
    answer, exercise = attempt.answer, attempt.exercise
    if not answer or not attempt.formula or not all(map(is_number, exercise.inputs[0])):
        return []

    def pair(arguments: tuple[Any, ...]) -> tuple[float, float]:
        (mine,), (right,) = (
            flat(outcome)
            for outcome in (answer.outcome(exercise, arguments), call(exercise, exercise.oracle, arguments))
        )
        return mine, right

    return [name for place, name in enumerate(attempt.names) if _moves(error, pair, exercise.inputs, place)]


def where_it_errs(attempt: Attempt) -> str | None:
    """On which arguments alone it depends how far the answer is off, as a difference or as a factor."""
    for word, error in (("By how much", operator.sub), ("By which factor", operator.truediv)):
        on = _errs_on(attempt, error)
        if on and len(on) < len(attempt.names) - (len(attempt.names) > 3):
            return f"{word} it is off depends on {_names(on)} alone."
    return None


def _moves(
    error: _Error,
    pair: Callable[[tuple[Any, ...]], tuple[float, float]],
    inputs: Sequence[tuple[Any, ...]],
    place: int,
) -> bool:
    """Whether an argument changes how far the answer is off; True where that is not known."""
    try:
        for first, second in _varied(inputs, place):
            pairs = pair(first), pair(second)
            room = 1e-12 * max(abs(number) for numbers in pairs for number in numbers)
            one, other = (error(*numbers) for numbers in pairs)
            if not math.isclose(one, other, rel_tol=_CLOSE, abs_tol=room if error is not operator.truediv else 0):
                return True
    except (TypeError, ValueError, ZeroDivisionError, OverflowError, RuntimeError):
        return True
    return False


# ---- Exchanged arguments, rounding, and where it is right.


_Turned = Callable[[tuple[Any, ...]], tuple[Any, ...]]


def exchanged(attempt: Attempt) -> str | None:
    """What is right with two arguments exchanged."""
    return _right_for(attempt, _exchanges(attempt))


def for_another_amount(attempt: Attempt) -> str | None:
    """What is right for an argument that is twice as large, one more, or what it leaves of another one."""
    return _right_for(attempt, _other_amounts(attempt))


def _right_for(attempt: Attempt, others: Iterator[tuple[str, _Turned]]) -> str | None:
    calls = sorted(attempt.calls, key=lambda one: one.is_right)  # where it is wrong, most others fail at once
    if len(calls) < 3:
        return None
    return next((words for words, turned in others if all(_is_right_for(attempt, one, turned) for one in calls)), None)


def _exchanges(attempt: Attempt) -> Iterator[tuple[str, _Turned]]:
    """In words, and as a function of the arguments."""
    first, names = attempt.exercise.inputs[0], attempt.names
    for one, other in itertools.combinations(range(len(names)), 2):
        if type(first[one]) is type(first[other]):
            words = f"It would be right with {_names([names[one], names[other]])} exchanged."
            yield words, partial(_swapped, one=one, other=other)


def _other_amounts(attempt: Attempt) -> Iterator[tuple[str, _Turned]]:
    """In words, and as a function of the arguments."""
    first, names = attempt.exercise.inputs[0], attempt.names
    for place, name in enumerate(names):
        if not is_number(first[place]):
            continue
        turned = partial(_with, place=place, most=2 * max(abs(given[place]) for given in attempt.exercise.inputs))
        for words, function in _AMOUNTS.items():
            yield f"It is the right answer for {words.format(quoted(name))}.", partial(turned, function=function)
        for other, another in enumerate(names):
            if other != place and is_number(first[other]):
                words = f"It is the right answer for `{another}` - `{name}` in place of `{name}`."
                yield words, partial(turned, function=operator.sub, other=other)


_AMOUNTS: dict[str, Callable[[Any], Any]] = {
    "twice {}": lambda number: 2 * number, "half of {}": lambda number: number / 2,
    "one more than {}": lambda number: number + 1, "one less than {}": lambda number: number - 1,
    "1 / {}": lambda number: 1 / number, "1 - {}": lambda number: 1 - number,
    "{} rounded down": math.floor, "{} rounded up": math.ceil,
}  # fmt: skip


def _is_right_for(attempt: Attempt, one: Call, turned: _Turned) -> bool:
    answer, exercise = attempt.answer, attempt.exercise
    with suppress(ArithmeticError, ValueError):
        turned_arguments = turned(one.arguments)
        # In a place that can be stopped: of an exponent that is twice as large the right answer may take long.
        right = answer.place.call(exercise, exercise.oracle, turned_arguments) if answer else None
        return difference(one.mine, right, exercise) is None
    return False


def _with(
    arguments: tuple[Any, ...], place: int, most: float, function: Callable[..., Any], other: int | None = None
) -> tuple[Any, ...]:
    """The arguments with another number in a place. Raises ValueError for a large one: what if it is an exponent?"""
    number = function(arguments[place]) if other is None else function(arguments[other], arguments[place])
    if abs(number) > most:
        raise ValueError("no usual argument")
    return (*arguments[:place], number, *arguments[place + 1 :])


def _swapped(arguments: tuple[Any, ...], one: int, other: int) -> tuple[Any, ...]:
    swapped = list(arguments)
    swapped[one], swapped[other] = swapped[other], swapped[one]
    return tuple(swapped)


_TURNS: dict[str, Callable[[float], float]] = {
    "up": math.ceil, "down": math.floor, "to the nearest whole number": round,
}  # fmt: skip
_MOST_DIGITS = 6  # behind the point, that somebody rounds to


def rounded(attempt: Attempt) -> str | None:
    """Not rounded where it should be; or rounded where it should not be, or to too few digits."""
    pairs = _numbers(attempt.formula)
    if not pairs:
        return None
    found, right = map(list, zip(*pairs, strict=True))
    for word, turn in _TURNS.items():
        if not _are_whole(found) and list(map(turn, found)) == right:
            return "In every case only a rounding is missing: up, down, or to the nearest?"
        if not _are_whole(number for number in right if number > 1) and list(map(turn, right)) == found:
            return f"You round {word}: the right one need not be whole."
    for digits in range(1, _MOST_DIGITS + 1):
        if all(math.isclose(round(true, digits), mine, rel_tol=_CLOSE) for mine, true in pairs):
            return "It is rounded to too few digits: round, if at all, what you print."
    return None


def _are_whole(numbers: Iterable[float]) -> bool:
    return all(number.is_integer() for number in numbers)
