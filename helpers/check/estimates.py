"""What a guess says, however it is written: a number, a range of numbers, or several of them."""

import math
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from helpers.check.amounts import amount
from helpers.check.answers import is_number, plain

_HEDGE = r"(?:about|around|roughly|approximately|approx\.?|circa|ca\.?|some|maybe|perhaps|nearly|almost|say|[~≈])"
_BEFORE = re.compile(rf"^{_HEDGE}\s*", re.IGNORECASE)
_BEHIND = re.compile(r"\s*(?:or so|[?!.])$", re.IGNORECASE)
_BETWEEN = re.compile(r"^(?:between|from)\s+", re.IGNORECASE)
_TO = re.compile(r"\s+(?:to|and|or|-)\s+|\s*(?:[–—]|\.\.\.?)\s*|(?<=[\d%])-(?=\d)")
_ABOVE = re.compile(r"^(?:over|above|more than|at least|>=?)\s*", re.IGNORECASE)
_BELOW = re.compile(r"^(?:under|below|less than|at most|up to|<=?)\s*", re.IGNORECASE)
_NO_UNIT = re.compile(r"[-+\d.,_ ]+")


class Estimate(NamedTuple):
    """All that a guess allows: the numbers from `low` to `high`, which for a plain number are the same.

    Of a bound, as "over 90", the other end is infinite.
    """

    low: float
    high: float

    @property
    def is_range(self) -> bool:
        """Whether it leaves a choice."""
        return self.low < self.high

    def nearest_to(self, right: float) -> float:
        """The number in it that is nearest to the right one."""
        return min(max(right, self.low), self.high) if self.is_range else self.low


def estimate(thing: Any, unit: str) -> Estimate | None:
    """The numbers of that unit which a guess allows; None for anything else.

    >>> estimate("about 40", "%"), estimate("38 to 43 GB", "B")
    (Estimate(low=40.0, high=40.0), Estimate(low=38000000000.0, high=43000000000.0))
    >>> estimate("less than a quarter", "")
    Estimate(low=-inf, high=0.25)

    Two numbers are no range, since Python reads the 27,6 of a German so.
    """
    thing = _single(plain(thing))
    ends = next(_ends(_unhedged(thing), unit), []) if isinstance(thing, str) else [number(thing, unit)]
    found = [end for end in ends if end is not None]
    return Estimate(min(found), max(found)) if found and len(found) == len(ends) else None


def number(thing: Any, unit: str) -> float | None:
    """The one number of that unit, however it is spelled; None for anything else."""
    thing = _single(plain(thing))
    if isinstance(thing, str):
        return amount(thing, unit)
    if not is_number(thing):
        return None
    if isinstance(thing, int | float) and abs(thing) < 1e300:
        return thing
    try:
        return float(thing)  # a fraction
    except OverflowError:
        return math.inf if thing > 0 else -math.inf


def several(thing: Any) -> list[Any] | None:
    """The words and numbers of a list, a set, or a text such as "view, copy" or "(2, 3)"; None for anything else."""
    thing = plain(thing)
    if isinstance(thing, str):
        words = [word.strip(" ()[]{}'\"") for word in re.split(r",|\band\b", thing)]
        numbers = [(word, amount(word, "")) for word in words if word and word != "none"]
        return [word if found is None else found for word, found in numbers]
    if isinstance(thing, set | frozenset | list | tuple):
        return list(thing)
    return [thing] if is_number(thing) else None


def _single(thing: Any) -> Any:
    """The one thing in a list, a set or a list of lists of one."""
    while isinstance(thing, list | tuple | set) and len(thing) == 1:
        (thing,) = thing
    return thing


def _unhedged(text: str) -> str:
    """A text without the words that say that it is a guess."""
    return _BEHIND.sub("", _BEFORE.sub("", text.strip()))


def _ends(text: str, unit: str) -> Iterator[list[float | None]]:
    """The numbers of a text: of the whole, or at both sides of what says "to"; a unit behind them is that of both."""
    whole = amount(text, unit)
    if whole is not None:
        yield [whole]
    for bound, end in ((_ABOVE, math.inf), (_BELOW, -math.inf)):
        if bound.match(text):
            yield [amount(bound.sub("", text), unit), end]
    text = _BETWEEN.sub("", text)
    for match in _TO.finditer(text):
        first, second = text[: match.start()], text[match.end() :]
        if _NO_UNIT.fullmatch(first):
            first += re.sub(r"^[-+\d.,_ ]+(?:e[-+]?\d+)?", " ", second)
        ends = [amount(end.strip(), unit) for end in (first, second)]
        if None not in ends:
            yield ends
