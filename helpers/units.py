"""Numbers with their units, for people to read.

Inside the course everything is kept in base units: byte, FLOP, second, FLOP/s, byte/s. Prefixes appear here, in print.
"""

import html
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Real

# SI prefixes, powers of 1000. Above E (10^18) the field writes 3.14e23 rather than "314 Z".
_LARGE = ("", "k", "M", "G", "T", "P", "E")
_SMALL = ("m", "µ", "n", "p")
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")

DAY = 24 * 60 * 60  # seconds
_SPANS = (("days", DAY), ("h", 60 * 60), ("min", 60))


def _real(value: Real) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(
            f"a quantity is a real number, got {value!r} ({type(value).__name__}); for a tensor pass t.item()"
        )
    return float(value)


def _digits(value: float, digits: int) -> str:
    """The value with that many significant digits, or all of those before the point; no exponent, no trailing zeros."""
    if value == 0:
        return "0"
    decimals = max(digits - 1 - math.floor(math.log10(abs(value))), 0)
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _scaled(value: float, base: int, names: Sequence[str], digits: int) -> str | None:
    """The value under the largest of the prefixes that keeps it at least 1; None above the last prefix."""
    for power, name in enumerate(names):
        scaled = value / base**power
        # Compare after rounding, so that 999.9996 becomes 1 k and never 1000.
        if abs(float(_digits(scaled, digits))) < base:
            return f"{_digits(scaled, digits)} {name}"
    return None


def si(value: Real, unit: str, digits: int = 3) -> str:
    """The value with a decimal prefix: k = 10^3, M = 10^6, G = 10^9.

    >>> si(2_415_919_104, "B")
    '2.42 GB'
    >>> si(989.5e12, "FLOP/s")
    '990 TFLOP/s'
    >>> si(1.25e-6, "s")
    '1.25 µs'
    >>> si(0.125, "FLOP/B"), si(3.14e23, "FLOP")
    ('0.125 FLOP/B', '3.14e+23 FLOP')

    Seconds alone get prefixes below 1 (a millibyte says nothing). `digits` counts significant digits.
    Raises TypeError for anything but a real number.
    """
    number = _real(value)
    if not math.isfinite(number):
        return f"{number} {unit}"
    if unit == "s" and 0 < abs(number) < 1:
        for power, prefix in enumerate(_SMALL, start=1):
            scaled = number * 1000**power
            if abs(scaled) >= 1 or prefix == _SMALL[-1]:
                rounded = float(_digits(scaled, digits))
                if abs(rounded) >= 1000:  # 999.9996 µs is 1 ms
                    return f"1 {('', *_SMALL)[power - 1]}s"
                return f"{_digits(scaled, digits)} {prefix}s"
    text = _scaled(number, 1000, _LARGE, digits)
    return f"{text}{unit}" if text else f"{number:.{digits - 1}e} {unit}"


def iec(nbytes: Real, digits: int = 3) -> str:
    """A number of bytes with a binary prefix: KiB = 2^10, MiB = 2^20, GiB = 2^30.

    >>> iec(2_415_919_104)
    '2.25 GiB'

    Raises TypeError for anything but a real number.
    """
    number = _real(nbytes)
    text = _scaled(number, 1024, _BINARY, digits) if math.isfinite(number) else None
    return text or f"{number:.{digits - 1}e} B"


def duration(seconds: Real, digits: int = 3) -> str:
    """A time in the unit a person would use: µs, ms, s, min, h or days.

    >>> duration(143.9 * DAY, digits=4)
    '143.9 days'
    >>> duration(90), duration(0.002)
    ('1.5 min', '2 ms')

    Raises TypeError for anything but a real number.
    """
    number = _real(seconds)
    for name, span in _SPANS:
        if math.isfinite(number) and abs(number) >= span:
            return f"{_digits(number / span, digits)} {name}"
    return si(number, "s", digits)


@dataclass(frozen=True)
class Table:
    """A small table: aligned text in a terminal, a real table in a notebook."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __repr__(self) -> str:
        widths = [max(map(len, column)) for column in zip(self.columns, *self.rows, strict=True)]
        lines = [self.columns, tuple("-" * width for width in widths), *self.rows]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
        )

    def _repr_html_(self) -> str:
        def row(cells: Iterable[str], tag: str) -> str:
            return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

        body = "".join(row(cells, "td") for cells in self.rows)
        return f"<table><thead>{row(self.columns, 'th')}</thead><tbody>{body}</tbody></table>"


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """A table to end a cell with. Quantities carry a unit, so pass them through `si`; a bare float gets six digits.

    >>> table(["dtype", "size"], [["bfloat16", si(2, "B")], ["float32", si(4, "B")]])
    dtype     size
    --------  ----
    bfloat16  2 B
    float32   4 B

    Raises ValueError for a row of another length than the columns.
    """
    lines = tuple(tuple(f"{cell:.6g}" if isinstance(cell, float) else str(cell) for cell in row) for row in rows)
    for line in lines:
        if len(line) != len(columns):
            raise ValueError(f"the table has {len(columns)} columns {list(columns)}, a row has {list(line)}")
    return Table(tuple(columns), lines)
