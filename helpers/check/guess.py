"""`compare(guess, value)`: a prediction beside what came out, and how far apart they are."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from helpers import units
from helpers.check.amounts import scale
from helpers.check.answers import difference, plain, untouched
from helpers.check.estimates import Estimate, estimate, number, several
from helpers.check.names import guess_named, no_guess
from helpers.check.wording import error_text, first_short, printable
from helpers.exercises import Exercise, Guess

_SAME_RATIO = 5e-3  # relative, within which a guess is as good as right
_COUNT_RATIO = 0.02  # relative, for counts above `_LARGE_COUNT`
_MISTAKE_RATIO = 0.05  # relative, within which a guess is a mistake on the list
_LARGE_COUNT = 100
_LARGEST_COUNT = 1000  # whole numbers from here on are no counts, but amounts
_TWO_LINES = 240  # characters of a plain text in a notebook; the reason gives way to what the guess did
_MEASURED_RATIO = 0.25  # relative, since measurements scatter
_SPELLINGS = "a decimal has a point, as 27.6, thousands have no comma, and a range is written 6 to 27"


class Comparison(str):
    """A guess beside what came out, and how far apart they are: a sentence, shown without quotes.

    Before there is a guess, `answer` says what came out. It goes with the output, where no front end shows it, to the
    slides and pages that are made of a stored notebook.
    """

    answer = ""
    __repr__ = str.__str__

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, str], dict[str, str]]:
        return {"text/plain": str(self)}, {"answer": self.answer} if self.answer else {}


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

    Without a guess, or with one of another kind, value and `because` stay hidden, so that looking costs a guess. `unit`
    is the unit of the value and of a guess that is a number; it may have a prefix, as "GB" or "KiB". A text may bring
    its own, as "40 MB", and be rough, as "about 40", or a range, as "38 to 43".
    A `measured` value scatters, so a guess within a quarter of it is near enough: give True, or a list of the
    measurements that it comes from, and it is said if one was disturbed.
    `about` names the guess on the list `GUESSES`, whose sentences are said after one was made: in the cell they would
    give it away. Never raises.
    """
    listed = guess_named(about) if about else Guess()
    if _is_missing(guess):
        in_unit = f" in {unit}" if unit else ""
        ask = Comparison(f"Predict first: replace the ... by your guess{in_unit} and run the cell again.")
        ask.answer = _answer(value, unit, bool(measured), [listed.because, because] if listed else [])
        return ask
    if listed is None:
        return Comparison(no_guess(about))
    try:
        if isinstance(guess, str) and isinstance(value, str):
            guess = re.sub(r"^(?:it is|it's|an?|the)\s+", "", guess.strip(), flags=re.IGNORECASE)
        asked_again = _asked_again(guess, plain(value), unit, listed)
        if asked_again:
            return Comparison(asked_again)
        prediction = _Prediction.of(guess, plain(value), unit, bool(measured), listed.mistakes)
        is_disturbed = isinstance(measured, list) and any(run.disturbed for run in measured)
        disturbed = "The measurement was disturbed: run it again." if is_disturbed else ""
        said = [prediction.verdict(), disturbed, prediction.mistake(listed.mistakes)]
        forms = ([*said, listed.because, because], [*said, listed.because], said)
        return Comparison(first_short(*(" ".join(filter(None, form)) for form in forms), longest=_TWO_LINES))
    except Exception as error:
        return Comparison(f"Your guess {printable(guess)} cannot be compared ({error_text(error)}): write another one.")


def _answer(value: Any, unit: str, measured: bool, why: list[str]) -> str:
    """What came out, and why; "" for what cannot be said or measured."""
    try:
        found = number(value, unit)
        if found is not None and math.isnan(found):
            return ""
        text = printable(plain(value)) if found is None else _with_unit(found, unit)
        where = "Where this was measured, it" if measured else "It"
        return " ".join(filter(None, [f"{where} is {text}.", *why]))
    except Exception:
        return ""


def _is_missing(guess: Any) -> bool:
    is_empty = isinstance(guess, str) and not guess.strip(" .…?")
    return is_empty or untouched(guess) or (isinstance(guess, list) and any(entry is ... for entry in guess))


def _asked_again(guess: Any, value: Any, unit: str, listed: Guess) -> str | None:
    """What to say of a guess of another kind than the value, without telling that; None for one of its kind."""
    words = [wrong for wrong, _ in listed.mistakes if isinstance(wrong, str)]  # such as "error"
    if any(_is_spelling(guess, word) for word in words):
        return None
    if number(value, unit) is not None:
        if estimate(guess, unit) is not None:
            return None
        if isinstance(guess, list | tuple):
            return f"{printable(guess)} is no single number: {_SPELLINGS}."
        of_unit = f" of {unit}" if unit else ""
        return f"{printable(guess)} cannot be read as a number{of_unit}: write one, such as {_example(unit)}."
    if isinstance(value, str):
        return _asked_for_words(guess, sorted({value, *words}))
    if several(guess) is None:
        return f"Several numbers are asked for, and {printable(guess)} is none: write them as (1, 2)."
    return None


def _example(unit: str) -> str:
    """A number of that unit, as a guess may be written."""
    factor, base = scale(unit)
    if not unit:
        return "3, 1/2 or 4e-7"
    is_large = factor == 1 and base in ("B", "FLOP", "B/s", "FLOP/s")
    return "2.5e9" if is_large else "3"


def _asked_for_words(guess: Any, words: Sequence[str]) -> str | None:
    if any(_is_spelling(guess, word) for word in words) or (len(words) == 1 and isinstance(guess, str)):
        return None
    which = " or ".join(map(repr, words)) if len(words) > 1 else "a word"
    return f"Write {which}, not {printable(guess)}."


def _is_spelling(found: Any, right: Any) -> bool:
    """Whether one thing is another, as a check would accept it."""
    entries = right if isinstance(right, list | tuple) else [right]
    words = [entry for entry in entries if isinstance(entry, str)]
    return difference(found, plain(right), Exercise("compare", plain, words=words)) is None


@dataclass(frozen=True)
class _Prediction:
    """A guess and the value, as they are shown, and as numbers of the unit where both are; otherwise None."""

    guess: Any
    value: Any
    unit: str
    measured: bool
    estimate: Estimate | None
    right: float | None
    is_listed: bool  # the very number of a mistake, which is then none as good as right

    @classmethod
    def of(
        cls, guess: Any, value: Any, unit: str, measured: bool, mistakes: Sequence[tuple[Any, str]]
    ) -> "_Prediction":
        right = number(value, unit)
        if right is None:
            guess, value = _entries(guess, value)
            return cls(guess, value, unit, measured, None, None, False)
        said = estimate(guess, unit)
        is_listed = said is not None and said.low != right and any(wrong == said.low for wrong, _ in mistakes)
        return cls(guess, value, unit, measured, said, right, is_listed)

    @property
    def guessed(self) -> float | None:
        """The number that the guess is taken for: of a range the one nearest to the value."""
        return None if self.estimate is None or self.right is None else self.estimate.nearest_to(self.right)

    @property
    def numbers(self) -> tuple[float, float] | None:
        """Guess and value as numbers, where both are, and the value is finite."""
        if self.guessed is None or self.right is None or math.isnan(self.guessed) or not math.isfinite(self.right):
            return None
        return self.guessed, self.right

    @property
    def cannot_be_measured(self) -> bool:
        """Whether there is no value here."""
        return self.measured and self.right is not None and math.isnan(self.right)

    @property
    def is_right(self) -> bool:
        """Whether it is as good as right, or near enough for a measurement."""
        if not self.numbers:
            return _is_spelling(self.guess, self.value) or _both_nan(self.guessed, self.right)
        guessed, right = self.numbers
        if self.is_listed:
            return False
        is_near = self.measured and abs(guessed - right) <= _MEASURED_RATIO * abs(right)
        return is_near or _as_good(guessed, right)

    def verdict(self) -> str:
        """Both, and how far apart they are."""
        if self.cannot_be_measured:
            return f"You predicted {printable(self.guess)}; here it cannot be measured."
        if not self.numbers or not self.estimate or self.right is None:
            verdict = "as predicted" if self.is_right else "not as predicted"
            right = self.right
            found = printable(self.value) if right is None or math.isinf(right) else _with_unit(right, self.unit)
            return f"You predicted {printable(self.guess)}; it is {found}: {verdict}."
        guess_text, value_text = _estimate_text(self.estimate, self.unit), _with_unit(self.right, self.unit)
        return f"You predicted {guess_text}; it is {value_text}: {self._distance(*self.numbers)}."

    def _distance(self, guessed: float, right: float) -> str:
        if guessed == right:
            return "within your range" if self.estimate and self.estimate.is_range else "exactly right"
        if self.is_right and _as_good(guessed, right) and _may_be_compared(guessed, right):
            return "as good as right"
        if self.is_right:
            return "near enough for a measurement"
        side = "high" if guessed > right else "low"
        if not _may_be_compared(guessed, right):
            return f"too {side}"
        return self._how_far(guessed, right, side)

    def _how_far(self, guessed: float, right: float, side: str) -> str:
        if self.unit == "%":
            points = _rough(abs(guessed - right))
            plural = "" if points == "1" else "s"
            return f"{points} point{plural} too {side}"
        factor = max(guessed / right, right / guessed)
        if factor >= 2:
            return f"too {side} by a factor of {_rough(factor)}"
        scatters = self.measured and isinstance(self.value, float)  # so it is no count, even where it is whole
        if not self.unit and not scatters and _are_counts(guessed, right):
            return f"{abs(guessed - right):.0f} too {side}"
        return f"{_rough(abs(guessed / right - 1) * 100)} % too {side}"

    def mistake(self, mistakes: Sequence[tuple[Any, str]]) -> str | None:
        """The sentence of the listed mistake that is nearest to the guess, or what else the number may mean."""
        if self.cannot_be_measured or self.is_right:
            return None
        named = list(self._named(mistakes))
        if named:
            _, sentence = min(named, key=lambda distance_and_sentence: distance_and_sentence[0])
            return sentence
        if self.guessed and self.right and self.unit and not self._brings_unit:
            return _other_meaning(self.guessed, self.right, self.unit)
        return None

    @property
    def _brings_unit(self) -> bool:
        return isinstance(self.guess, str) and bool(re.search(r"[a-df-zA-DF-Z%]", self.guess))

    def _named(self, mistakes: Sequence[tuple[Any, str]]) -> Iterator[tuple[float, str]]:
        """How far the guess is from each mistake that it may be, and the mistake's sentence."""
        for wrong, sentence in mistakes:
            if callable(wrong):
                wrong = wrong(self.value)
            if isinstance(wrong, tuple) and self.guessed is not None:
                low, high = wrong
                if low <= self.guessed <= high:
                    yield math.inf, sentence  # one that is a number counts more
            elif self._is_mistake(wrong):
                yield self._distance_to(number(wrong, self.unit)), sentence

    def _distance_to(self, wrong: float | None) -> float:
        if self.guessed is None or wrong is None or math.isnan(wrong):
            return 0
        return abs(self.guessed - wrong)

    def _is_mistake(self, wrong: Any) -> bool:
        value = number(wrong, self.unit)
        if self.guessed is None or self.right is None or value is None:
            return _is_spelling(self.guess, wrong)
        if _both_nan(self.guessed, value) or self.guessed == value:
            return True
        if not self.unit and _are_counts(self.guessed, value):
            is_near = _as_good(self.guessed, value)
        else:
            is_near = math.isclose(self.guessed, value, rel_tol=_MISTAKE_RATIO)
        return is_near and 2 * abs(self.guessed - value) < abs(self.guessed - self.right)


def _estimate_text(estimate: Estimate, unit: str) -> str:
    low, high = (_with_unit(end, unit) if math.isfinite(end) else "" for end in estimate)
    if estimate.is_range and not (low and high):
        return f"more than {low}" if low else f"less than {high}"
    return " to ".join(_with_unit(end, unit) for end in dict.fromkeys(estimate))


def _entries(guess: Any, value: Any) -> tuple[Any, Any]:
    """A guess at several things beside these, as lists where a text or a set gives them; a set in any order."""
    if isinstance(value, set):
        return sorted(several(guess) or [], key=str), sorted(value, key=str)
    entries = several(guess) if isinstance(value, list | tuple) and not isinstance(guess, list | tuple) else None
    is_word = isinstance(guess, str) and len(entries or []) == 1  # such as "error"
    return (guess if entries is None or is_word else entries), value


def _both_nan(first: float | None, second: float | None) -> bool:
    return first is not None and second is not None and math.isnan(first) and math.isnan(second)


def _may_be_compared(guessed: float, right: float) -> bool:
    """Whether their ratio says anything."""
    return bool(guessed and right) and (guessed < 0) == (right < 0) and math.isfinite(guessed)


def _as_good(guessed: float, right: float) -> bool:
    """Whether a prediction is as good as right: within 0.5 %, or in two digits, or a count above 100 within 2 %.

    Smaller counts and powers of two must be exact: 257 is not 256.
    """
    if guessed == right:
        return True
    if _are_counts(guessed, right):
        is_power_of_two = abs(math.frexp(right)[0]) == 0.5
        is_near = math.isclose(guessed, right, rel_tol=_COUNT_RATIO)
        return abs(right) > _LARGE_COUNT and not is_power_of_two and is_near
    return math.isclose(guessed, right, rel_tol=_SAME_RATIO) or math.isclose(guessed, float(f"{right:.1e}"))


def _are_counts(guessed: float, right: float) -> bool:
    """Whether both are whole numbers that somebody counts."""
    return float(guessed).is_integer() and float(right).is_integer() and abs(right) < _LARGEST_COUNT


def _other_meaning(guessed: float, right: float, unit: str) -> str | None:
    """What else the number may have been meant as, if so it would be near the value."""
    if unit == "%":
        return _percent_meaning(guessed, right)
    step = 1024.0 if "iB" in unit else 1000.0
    ratio = right / guessed
    if "/" in unit or not 0 < ratio < math.inf:
        return None
    steps = round(math.log(ratio, step))
    meant = guessed * step**steps
    factor, _ = scale(unit)
    # Numbers that somebody types: not 1e-9, but 40, or 40e9 where the unit is a billion.
    is_typed = 0.1 <= abs(guessed) < 1e4 or 1 < step**-steps <= factor
    if is_typed and 1 <= abs(steps) <= 5 and 0.5 < right / meant < 2:
        text = _with_unit(meant, unit)
        return f'If you mean {text}, write "{text}".'
    return None


def _percent_meaning(guessed: float, right: float) -> str | None:
    fraction, change = 100 * guessed, 100 * (guessed - 1)
    if 0.5 < fraction / right < 2:
        return f"If that is a fraction, it is {_digits(fraction)} %."
    if 0.5 < change / right < 2:
        word = "more" if change > 0 else "less"
        return f"If that is a factor, it is {_digits(abs(change))} % {word}."
    return None


def _digits(size: float) -> str:
    return f"{size:,.0f}" if 1000 <= abs(size) < 1e6 else f"{size:.3g}"


def _rough(size: float) -> str:
    """A distance in two digits: nobody predicts more.

    >>> [_rough(size) for size in (1, 2.947, 41.6, 108, 2048, 3e9)]
    ['1', '2.9', '42', '110', '2,000', '3e9']
    """
    size = float(f"{size:.2g}")
    return f"{size:,.0f}" if 10 <= size < 1e6 else f"{size:g}".replace("e+0", "e").replace("e+", "e")


def _with_unit(size: float, unit: str) -> str:
    factor, base = scale(unit)
    if not unit:
        return f"{size:.6g}" if isinstance(size, float) else str(size)
    if unit.endswith("iB"):
        return units.iec(size * factor)
    is_counted = unit.endswith(f" {base}")  # "billion parameters"
    if unit == "%" or is_counted or (base == "s" and not size):  # "0 days"
        return f"{_digits(size)} {unit}"
    if base == "s":
        return units.duration(size * factor)
    return units.si(size * factor, unit=base)
