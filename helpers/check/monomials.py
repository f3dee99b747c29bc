"""Numbers as a constant times powers of variables: found by logarithms, and believed only if exact in every call."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from helpers.check.wording import numeral, quoted, sentence_list

_EXACTLY = 1e-9  # relative
_MOST_NAMES = 5
_LARGEST_POWER = 3
_NICE_DIGITS = 3  # of a constant or its inverse, behind the point
_DENOMINATOR = 12  # of a plain fraction, at most
_POWERS = {0.5: "the root of ", 1.5: "", 2: "²", 3: "³", 2.5: ""}


@dataclass(frozen=True)
class Monomial:
    """`constant` times each variable to its power."""

    constant: float
    powers: Mapping[str, float]

    def at(self, variables: Mapping[str, float]) -> float:
        """Its value."""
        return self.constant * math.prod(variables[name] ** power for name, power in self.powers.items())

    def factors(self, tells: bool = True) -> str:
        """In words, what it makes of something: "times 2 and `a`, divided by `b`²"; or "times a constant and `a`"."""
        above = [_power(name, power) for name, power in self.powers.items() if power > 0]
        below = [_power(name, -power) for name, power in self.powers.items() if power < 0]
        size = abs(self.constant)
        if not tells and not math.isclose(size, 1, rel_tol=_EXACTLY):
            above.insert(0, "a constant")
        elif not math.isclose(size, 1, rel_tol=_EXACTLY):
            is_divisor = size < 1 and "/" not in fraction_text(size)
            (below if is_divisor else above).insert(0, fraction_text(1 / size if is_divisor else size))
        parts = [f"times {sentence_list(above)}"] if above else []
        if below:
            parts.append(f"divided by {sentence_list(below)}")
        return ", ".join(parts)

    @property
    def exchange(self) -> str:
        """The end of a sentence: a question where it is one variable over another."""
        is_ratio = sorted(self.powers.values()) == [-1, 1] and math.isclose(self.constant, 1, rel_tol=_EXACTLY)
        return ": is one taken for the other?" if is_ratio else "."

    def growth(self) -> str:
        """In words, what it grows with and what it falls with."""
        above = [_power(name, power) for name, power in self.powers.items() if power > 0]
        below = [_power(name, -power) for name, power in self.powers.items() if power < 0]
        parts = [f"grows with {sentence_list(above)}"] if above else []
        if below:
            parts.append(f"falls with {sentence_list(below)}")
        return " and ".join(parts)


def is_plain(number: float) -> bool:
    """Whether somebody would write this number, or divide by it, or write it as a fraction."""
    size = abs(number)
    if not size:
        return False
    fraction = Fraction(size).limit_denominator(_DENOMINATOR)
    forms = (size, 1 / size)
    has_few_digits = any(
        form >= 0.5 and math.isclose(form, round(form, _NICE_DIGITS), rel_tol=_EXACTLY) for form in forms
    )
    return has_few_digits or math.isclose(size, fraction, rel_tol=_EXACTLY)


def is_simple(number: float) -> bool:
    """Whether it is a whole number, one over it, or a fraction of numbers up to 4: what one forgets, or has twice."""
    size = abs(number)
    fraction = Fraction(size).limit_denominator(4)
    if 0 < fraction.numerator <= 4 and math.isclose(size, fraction, rel_tol=_EXACTLY):
        return True
    return any(form >= 1 and math.isclose(form, round(form), rel_tol=_EXACTLY) for form in (size, 1 / size))


def fraction_text(number: float) -> str:
    """A plain number as one would write it.

    >>> fraction_text(0.75), fraction_text(2.5), fraction_text(1 / 86400), fraction_text(3.0)
    ('3/4', '2.5', '1.157407e-05', '3')
    """
    fraction = Fraction(number).limit_denominator(_DENOMINATOR)
    is_fraction = fraction.numerator > 1 and math.isclose(number, fraction, rel_tol=_EXACTLY)
    has_few_digits = number > 1 and math.isclose(number, round(number, _NICE_DIGITS), rel_tol=_EXACTLY)
    if is_fraction and fraction.denominator > 1 and not has_few_digits:
        return f"{fraction.numerator}/{fraction.denominator}"
    return numeral(float(f"{number:.7g}"))


def _power(name: str, power: float) -> str:
    if power == 1:
        return quoted(name)
    if power == 0.5:
        return f"√{quoted(name)}"
    return f"{quoted(name)}{_POWERS.get(power) or f'^{power:g}'}"


def fitted(
    rows: Sequence[Mapping[str, float]], values: Sequence[float], allowed: Sequence[float] | None = None
) -> Monomial | None:
    """The values as a monomial of the variables, if they are one in every row; `allowed` is how far off each may be."""
    signs = {math.copysign(1, value) for value in values if value}
    if len(signs) != 1 or not all(values) or len(rows) < 3:
        return None
    names = _usable(rows)
    logs = np.array([[1.0, *(math.log(row[name]) for name in names)] for row in rows])
    solution, _, rank, _ = np.linalg.lstsq(logs, np.log(np.abs(values)), rcond=None)
    if rank < logs.shape[1] or len(rows) < len(names) + 2:
        return None
    powers = {name: round(2 * power) / 2 for name, power in zip(names, solution[1:], strict=True)}
    powers = {name: power for name, power in powers.items() if power}
    if len(powers) > _MOST_NAMES or any(abs(power) > _LARGEST_POWER for power in powers.values()):
        return None
    shape = Monomial(1.0, powers)
    sizes = [shape.at(row) for row in rows]
    constants = [value / size for value, size in zip(values, sizes, strict=True)]
    monomial = Monomial(float(np.median(constants)), powers)
    if allowed is None:
        allowed = [_EXACTLY * abs(value) for value in values]
    is_exact = all(
        abs(value - monomial.constant * size) <= room for value, size, room in zip(values, sizes, allowed, strict=True)
    )
    return monomial if is_exact else None


def _usable(rows: Sequence[Mapping[str, float]]) -> list[str]:
    """The variables that are positive in all rows and vary, without those that only repeat another."""
    names: dict[Any, str] = {}
    for name in set.intersection(*(set(row) for row in rows)):
        column = tuple(row[name] for row in rows)
        if all(0 < value < math.inf for value in column) and len(set(column)) > 1:
            kept = names.get(column, name)
            names[column] = min(kept, name, key=list(rows[0]).index)
    return sorted(names.values(), key=list(rows[0]).index)
