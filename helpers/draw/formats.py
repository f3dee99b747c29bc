"""Float formats: the bits of a number, the range of each format, and the gaps between its numbers."""

import math
from collections.abc import Sequence

import torch

from helpers import formats

from helpers.draw.drawing import (  # isort: skip
    BLUE, DASHES, GREY, INKS, TINTS, VERMILLION, Drawing, Made, canvas, cell, drawn, note, rows,
)  # fmt: skip
from helpers.draw.charts import lines
from helpers.draw.storage import strips
from helpers.formats import FloatFormat

FIELDS = {"sign": TINTS[1], "exponent": TINTS[0], "fraction": TINTS[2]}
_WIDEST_FIRST = dict(sorted(formats.FORMATS.items(), key=lambda pair: -pair[1].exponent_bits))
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@drawn("Bits of a number")
def bits(code: int, fmt: FloatFormat | str | torch.dtype) -> Made:
    """The pattern of a number, a cell per bit with its place value above, and below each field what it stands for.

    Formats of more than 32 bits take two rows. Raises ValueError for a code that the format does not have.
    """
    fmt = formats.format_of(fmt)
    meanings, digits = _meanings(formats.decode(code, fmt), fmt), f"{code:0{fmt.bits}b}"
    row, position, shown = min(fmt.bits, 32), 0, []
    below = 2.1 * (math.ceil(fmt.bits / row) - 1)
    fig, ax = canvas(1.42 + 0.38 * below, f"{fmt.name}: {formats.formula(code, fmt)}")
    for name, width in zip(FIELDS, (1, fmt.exponent_bits, fmt.fraction_bits), strict=True):
        narrow = name == "sign" and row > 16  # its words are wider than its cell
        middle, side = (0.05, "left") if narrow else ((position + min(position + width, row)) / 2, "center")
        ax.text(middle, -0.1, meanings[name] if width else "", ha=side, va="top", linespacing=1.25)
        shown.append(digits[position : position + width])
        for digit in shown[-1]:
            x, y, power = position % row, -2.1 * (position // row), fmt.exponent_bits - position
            cell(ax, x, y, digit, FIELDS[name], family="DejaVu Sans Mono", fontsize=11, label="_bit")
            often = row <= 16 or power % 4 == (0 if power >= 0 else 3) or position in (1, fmt.bits - 1)
            if name != "sign" and often:
                value = _power(2, power) if row > 16 else str(2**power) if power >= 0 else f"1/{2**-power}"
                ax.text(x + 0.5, y + 1.1, value, ha="center", fontsize=7.5, color=INKS[GREY], label="_place")
            position += 1
    ax.set(xlim=(0, row), ylim=(-below if below else -0.95, 1.45))
    return fig, f"The bits are {' '.join(filter(None, shown))}."


def _meanings(stored: formats.Decoded, fmt: FloatFormat) -> dict[str, str]:
    """Of each field its stored integer, and what that stands for."""
    power = max(stored.exponent, 1)
    exponent = f"{power} − {fmt.bias} = {power - fmt.bias}".replace("-", "−")
    hidden = "1" if stored.exponent else "0"  # below the smallest normal number no 1 is hidden
    texts = "−" if stored.sign else "+", exponent, f"{hidden} + {stored.fraction}/{1 << fmt.fraction_bits}"
    if not math.isfinite(stored.value):
        texts = "", "all ones", stored.kind
    return {name: f"{name} {getattr(stored, name)}\n{text}" for name, text in zip(FIELDS, texts, strict=True)}


def _power(base: int, power: int) -> str:
    return f"{base}{str(power).translate(_SUPERSCRIPTS)}"


def layouts() -> Drawing:
    """A strip per format, a cell per bit: how many are sign, exponent and fraction."""
    counts = {name: (fmt.exponent_bits, fmt.fraction_bits) for name, fmt in _WIDEST_FIRST.items()}
    rows_ = {f"{name}  1 + {e} + {f}": "s" + "e" * e + "f" * f for name, (e, f) in counts.items()}
    return strips(rows_, "bfloat16 has float32's exponent bits", "s sign, e exponent, f fraction", tint="esf".index)


@drawn("Ranges")
def ranges(mark: float) -> Made:
    """From the smallest to the largest positive number of each format, its subnormal part grey, on a log axis.

    `mark`, from 1e-50 to 1e42, has a dot where it is in range, a cross where not. float64 reaches beyond the axis.
    """
    fig, ax = canvas(1.05 + 0.34 * len(_WIDEST_FIRST), "Exponent bits set the range", "positive numbers")
    found = {}
    for row, fmt in enumerate(_WIDEST_FIRST.values()):
        start, normal, end = (math.log10(x) for x in (fmt.smallest_subnormal, fmt.smallest_normal, fmt.max))
        look = {"height": 0.6, "edgecolor": BLUE, "linewidth": 0.9}
        ax.barh(row, normal - start, left=start, facecolor=TINTS[4], **look)
        ax.barh(row, end - normal, left=normal, facecolor=TINTS[0], **look)
        ends = f"{_short(fmt.smallest_subnormal)} to {_short(fmt.max)}"
        words = f"{'← ' * (end > 42)}{ends}, {(fmt.fraction_bits + 1) * math.log10(2):.2f} digits{' →' * (end > 42)}"
        ax.text(2 if end - start > 45 else end + 1, row, words, va="center", fontsize=8)  # right of small numbers
        stored = formats.decode(formats.encode(mark, fmt), fmt) if mark <= fmt.max else None
        kind = stored.kind if stored and stored.value else "lost"
        found.setdefault(kind, []).append(fmt.name)
        look = {"markersize": 6, "markeredgewidth": 1.8, "zorder": 4, "label": "_mark", "color": VERMILLION}
        ax.plot([math.log10(mark)], [row], "x" if kind == "lost" else "o", **look)
    fig.legend(ax.patches[1::-1], ["normal", "subnormal"], loc="outside lower center", ncols=2)
    rows(ax, _WIDEST_FIRST, head=0.45)
    ax.set_xticks(range(-50, 41, 10), [_power(10, power) if power else "1" for power in range(-50, 41, 10)])
    ax.set_xlim(-50, 42)
    ax.axvline(math.log10(mark), color=VERMILLION, linewidth=1, linestyle=DASHES, zorder=3, label="_mark")
    note(ax, _short(mark), (math.log10(mark), -0.75), color=INKS[VERMILLION], weight="bold")
    return fig, " ".join(f"{_short(mark)} is {kind} in {', '.join(found[kind])}." for kind in found)


def _short(value: float) -> str:
    """A number as a person writes it: 65504, 6e-8, 3.4e38."""
    if 0.01 <= value < 1e5:
        return f"{value:.5g}"
    digits, power = f"{value:.1e}".split("e")
    return f"{digits.removesuffix('.0')}e{int(power)}"


def spacing(names: Sequence[str], low: float, high: float, title: str, marks: Sequence[float] = ()) -> Drawing:
    """The gap to the next number against the number, a stair per format; at each of `marks` the gap is written."""
    powers = range(math.floor(math.log2(low)), math.ceil(math.log2(high)))
    numbers = [end * 2.0**power for power in powers for end in (1, 2 - 1e-9)]  # the two ends of each step
    stairs = {name: (numbers, [_gap(2.0**power, name) for power in powers for _ in range(2)]) for name in names}
    points = {f"{_short(_gap(x, name))} at {_short(x)}": (x, _gap(x, name)) for x in marks for name in names}
    drawing = lines(stairs, title, "number", "gap to the next number", "xy", points)
    for stair in drawing.figure.axes[0].lines[: len(stairs)]:
        stair.set(linestyle="-", linewidth=1.8)  # dashes would hide the steps
    return drawing


def _gap(value: float, name: str) -> float:
    near = formats.neighbours(value, name)
    return near.above - near.nearest
