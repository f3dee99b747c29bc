"""`compare(guess, value)`: a prediction beside what came out, and how far apart they are."""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from numbers import Real
from operator import itemgetter
from typing import Any

from helpers import units
from helpers.check.answers import amount, described, difference, plain, scale, short
from helpers.check.judge import _untouched
from helpers.exercises import GUESSES, Exercise


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
            return Comparison(f"{short(guess)} cannot be read as a number{of}: write one, such as {example}.")
        said = _compared(guess, value, unit, wrong, bool(measured))
        disturbed = any(run.disturbed for run in (measured if isinstance(measured, list) else ()))
        again = "The measurement was disturbed: run it again." if disturbed else ""
        return Comparison(" ".join(filter(None, [*said, known, because, again])))
    except Exception as error:
        return Comparison(f"You predicted {short(guess)}, which cannot be compared ({described(error)}).")


def _compared(guess: Any, value: Any, unit: str, wrong: Sequence[tuple[Any, str]], measured: bool) -> Iterator[str]:
    value = plain(value)
    if isinstance(guess, str) and isinstance(value, list | tuple | set) and guess.count(",") == len(value) - 1:
        words = [word.strip(" ()[]{}'\"") for word in guess.split(",")]  # "view, copy" or "2, 3"
        guess = [word if (number := amount(word, "")) is None else number for word in words]
    if isinstance(value, set):  # in any order
        guess, value = sorted(guess) if isinstance(guess, set | list | tuple) else guess, sorted(value)
    asked, right = _measure(guess, unit), _measure(value, unit)
    if measured and right is not None and math.isnan(right):
        yield f"You predicted {short(guess)}; here it cannot be measured."
        return
    if asked is None or right is None or not math.isfinite(asked) or not math.isfinite(right):
        same = _same(guess, value) or _both_nan(asked, right)
        verdict = "as predicted" if same else "not as predicted"
        yield f"You predicted {short(guess)}; it is {short(value)}: {verdict}."
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
    typed = 0.1 <= abs(asked) < 1e4 or 1 < step**-steps <= scale(unit)[0]  # as nobody writes 1e-9
    near = typed and 1 <= abs(steps) <= 5 and 0.5 < ratio / step**steps < 2 and "/" not in unit
    meant = _quantity(asked * step**steps, unit) if near else ""
    return meant and f'If you mean {meant}, write "{meant}".'


def _measure(thing: Any, unit: str) -> float | None:
    """A number of that unit, however it is spelled; None for anything else."""
    thing = plain(thing)
    while isinstance(thing, list) and len(thing) == 1:
        thing = thing[0]
    thing = amount(thing, unit) if isinstance(thing, str) else thing
    return thing if isinstance(thing, Real) and not isinstance(thing, bool) else None


def _same(found: Any, right: Any) -> bool:
    words = [word for word in (right if isinstance(right, list | tuple) else [right]) if isinstance(word, str)]
    return difference(found, plain(right), Exercise("compare", plain, words=words)) is None


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
    factor, base = scale(unit)
    if unit.endswith("iB"):
        return units.iec(number * factor)
    if unit == "%" or unit.endswith(f" {base}") or (base == "s" and not number):  # "billion parameters", "0 days"
        return f"{_digits(number)} {unit}"
    if unit:
        return (units.duration if base == "s" else partial(units.si, unit=base))(number * factor)
    return f"{number:.6g}" if isinstance(number, float) else str(number)
