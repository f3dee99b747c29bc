"""Numbers with their units, for people to read.

Everywhere else the course keeps base units: bytes, FLOPs, seconds, FLOP/s, bytes/s. Prefixes appear here, in print.
What prints raises TypeError for anything but a real number; `digits` counts significant digits.
"""

import html
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real

# SI prefixes, powers of 1000. Above E (10^18) the field writes 3.14e23 rather than "314 Z".
_LARGE = ("", "k", "M", "G", "T", "P", "E")
_SMALL = ("p", "n", "µ", "m", "")
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")

DAY = 24 * 60 * 60  # seconds


def si(value: float, unit: str, digits: int = 3) -> str:
    """The value with a decimal prefix: k = 10^3, M = 10^6, G = 10^9. Only seconds get one below 1.

    >>> si(2_415_919_104, "B"), si(2, "B")
    ('2.42 GB', '2 bytes')
    >>> si(989.5e12, "FLOP/s"), si(3.14e23, "FLOP")
    ('990 TFLOP/s', '3.14e+23 FLOP')
    >>> si(0.125, "FLOP/B"), si(1.25e-6, "s")
    ('0.125 FLOP/B', '1.25 µs')
    """
    quantity = _as_float(value)
    if unit == "s" and 0 < abs(quantity) < 1:
        return _scaled(quantity * 1e12, 1000, _SMALL, unit, digits)
    return _scaled(quantity, 1000, _LARGE, unit, digits)


def iec(nbytes: float, digits: int = 3) -> str:
    """A number of bytes with a binary prefix: KiB = 2^10, MiB = 2^20, GiB = 2^30.

    >>> iec(2_415_919_104)
    '2.25 GiB'
    """
    return _scaled(_as_float(nbytes), 1024, _BINARY, "B", digits)


def duration(seconds: float, digits: int = 3) -> str:
    """A time in the unit that a person would choose: µs, ms, s, min, h or days.

    >>> duration(143.9 * DAY, digits=4), duration(90), duration(0.002)
    ('143.9 days', '1.5 min', '2 ms')
    """
    quantity = _as_float(seconds)
    for name, span in (("day", DAY), ("h", 3600), ("min", 60)):
        if span <= abs(quantity) < math.inf:
            text = _significant(quantity / span, digits)
            plural = name == "day" and text != "1"
            return f"{text} {name}s" if plural else f"{text} {name}"
    return si(quantity, "s", digits)


@dataclass(frozen=True)
class Table:
    """A small table: aligned text in a terminal, a real table in a notebook."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __repr__(self) -> str:
        widths = [max(map(len, column)) for column in zip(self.columns, *self.rows, strict=True)]
        lines = [self.columns, tuple("-" * width for width in widths), *self.rows]
        return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)

    def _repr_html_(self) -> str:
        head, *body = (
            "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in line) + "</tr>"
            for tag, line in (("th", self.columns), *(("td", row) for row in self.rows))
        )
        return f"<table><thead>{head}</thead><tbody>{''.join(body)}</tbody></table>"


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """A table to end a cell with. Pass quantities through `si`, so that they carry a unit; a float gets six digits.

    >>> table(["dtype", "size"], [["bfloat16", si(2, "B")], ["float32", si(4, "B")]])
    dtype     size
    --------  -------
    bfloat16  2 bytes
    float32   4 bytes

    Raises ValueError for a row that is longer or shorter than the columns.
    """
    lines = tuple(tuple(f"{cell:.6g}" if isinstance(cell, float) else str(cell) for cell in row) for row in rows)
    if wrong := [list(line) for line in lines if len(line) != len(columns)]:
        raise ValueError(f"the table has {len(columns)} columns {list(columns)}, but a row has {wrong[0]}")
    return Table(tuple(columns), lines)


def whole_number(value: object, name: str, least: int = 1) -> int:
    """The value as an int, if it is a whole number of at least that.

    >>> whole_number(8, "batch")
    8

    Raises TypeError for anything else, also for True and 1.0; ValueError for a smaller one. NumPy's integers are fine.
    """
    if isinstance(value, bool) or not isinstance(value, Integral):
        kind = type(value).__name__
        hint = f"; write int({value!r})" if isinstance(value, float) and value.is_integer() else ""
        raise TypeError(f"{name} is a whole number, got {value!r} ({kind}){hint}")
    number = int(value)
    if number < least:
        raise ValueError(f"{name} is a whole number of at least {least}, got {number}")
    return number


def _as_float(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"a quantity is a real number, got {value!r} ({type(value).__name__}); pass t.item()")
    return float(value)


def _significant(value: float, digits: int) -> str:
    """The value with that many significant digits, but every digit before the point; no trailing zeros."""
    magnitude = math.floor(math.log10(abs(value))) if value else 0
    decimals = max(digits - 1 - magnitude, 0)
    text = f"{value or 0.0:.{decimals}f}"  # never -0
    return text.rstrip("0").rstrip(".") if "." in text else text


def _scaled(value: float, base: int, prefixes: Sequence[str], unit: str, digits: int) -> str:
    """The value under the largest prefix that keeps it at least 1; a byte without a prefix is written out."""
    text, prefix = _prefixed(value, base, prefixes, digits)
    if prefix + unit == "B":
        unit = "byte" if text in ("1", "-1") else "bytes"
    return f"{text} {prefix}{unit}"


def _prefixed(value: float, base: int, prefixes: Sequence[str], digits: int) -> tuple[str, str]:
    """The digits and the prefix; beyond the prefixes, and for what is not finite, digits with an exponent and none."""
    if math.isfinite(value):
        for power, prefix in enumerate(prefixes):
            text = _significant(value / base**power, digits)
            if abs(float(text)) < base:  # compared after rounding, so that 999.9996 becomes 1 k and never 1000
                return text, prefix
    return f"{value:.{digits - 1}e}", ""
