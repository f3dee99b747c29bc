"""Float formats: the bits of a number, which numbers there are, and what rounding to few bits costs."""

import itertools
import math
from collections.abc import Mapping, Sequence

import torch
from matplotlib.ticker import FixedLocator, NullLocator

from helpers import formats

from helpers.draw.drawing import (  # isort: skip
    BLUE, DASHES, GREY, INKS, LOOKS, TINTS, VERMILLION, Made, Place, canvas, cell, drawn, legend, note, number,
    past_ends, rows,
)  # fmt: skip
from helpers.formats import FloatFormat

FIELDS = {"sign": TINTS[1], "exponent": TINTS[0], "fraction": TINTS[2]}
ALL = tuple(formats.FORMATS)
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def _widths(fmt: FloatFormat) -> dict[str, int]:
    return {"sign": 1, "exponent": fmt.exponent_bits, "fraction": fmt.fraction_bits}


@drawn("Bits of a number")
def bits(code: int, fmt: FloatFormat | str | torch.dtype) -> Made:
    """The pattern of a number, a cell per bit with its place value above, and below each field what it stands for.

    `code` is the pattern as an integer. Formats of more than 32 bits take two rows. Raises ValueError for a code that
    the format does not have.
    """
    fmt = formats.find(fmt)
    meanings, digits = _meanings(formats.decode(code, fmt), fmt), f"{code:0{fmt.bits}b}"
    row, position, shown = min(fmt.bits, 32), 0, []
    below = 2.1 * (math.ceil(fmt.bits / row) - 1)
    fig, ax = canvas(1.42 + 0.38 * below, f"{fmt.name}: {formats.formula(code, fmt)}")
    for name, width in _widths(fmt).items():
        narrow = name == "sign" and row > 16  # its words are wider than its cell
        middle, side = (0.05, "left") if narrow else ((position + min(position + width, row)) / 2, "center")
        ax.text(middle, -0.1, meanings[name] if width else "", ha=side, va="top", fontsize=8.5, linespacing=1.25)
        shown.append(digits[position : position + width])
        for digit in shown[-1]:
            x, y, power = position % row, -2.1 * (position // row), fmt.exponent_bits - position
            cell(ax, x, y, digit, FIELDS[name], edge="white", family="DejaVu Sans Mono", fontsize=11, label="_bit")
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


@drawn("Stacked bars")
def layouts(names: Sequence[str] = ALL) -> Made:
    """A bar per format, in bits, cut into sign, exponent and fraction: where the bits go."""
    fig, ax = canvas(0.95 + 0.29 * len(names), "Where the bits go: sign, exponent, fraction", "bits")
    left = [0] * len(names)
    for field, tint in FIELDS.items():
        widths = [_widths(formats.find(name))[field] for name in names]
        bars = ax.barh(range(len(names)), widths, left=left, color=tint, label=field, edgecolor="white")
        texts = [str(width or "") if field != "sign" else "" for width in widths]
        ax.bar_label(bars, texts, label_type="center", fontsize=8.5)
        left = [start + width for start, width in zip(left, widths, strict=True)]
    rows(ax, names)
    ax.set(xlim=(0, max(left)), xticks=sorted({0, *left} - {6}))
    legend(ax)
    return fig, ""


@drawn("Number lines")
def number_line(names: Sequence[str], low: float, high: float, title: str) -> Made:
    """A row of marks per format: each number that it can represent between low and high."""
    fig, ax = canvas(0.8 + 0.42 * len(names), title, "value")
    counts, room = [], 0.02 * (high - low)
    for row, name in enumerate(names):
        inside = [value for value in formats.values(name) if low <= value <= high]
        counts.append(f"{name} has {len(inside)}")
        ax.axhline(row, color="#bbbbbb", linewidth=0.8, zorder=1, label="_row")
        ax.scatter(inside, [row] * len(inside), marker="|", s=150, linewidths=1.4, color=LOOKS[row % 5][0], label=name)
        note(ax, f"{len(inside)} numbers", (high, row), (10, 0), fontsize=8, annotation_clip=False)
    rows(ax, names)
    ax.grid(visible=False)
    ax.set_xlim(low - room, high + room)
    return fig, f"Numbers from {number(low)} to {number(high)}: {', '.join(counts)}."


@drawn("Ranges")
def ranges(names: Sequence[str] = ALL, mark: float | None = None) -> Made:
    """From the smallest to the largest positive number of each format, its subnormal part white, on a log axis.

    `mark` is a positive number that is looked up in each format: a dot where it is in range, a cross where it becomes
    zero or infinity. A format that reaches beyond 1e-50 or 1e42, as float64 does, is cut off there with its limit.
    """
    if mark is not None and not 1e-50 < mark < 1e42:
        raise ValueError(f"the axis goes from 1e-50 to 1e42, and {mark} is not on it")
    title = "Exponent bits set the range, fraction bits the digits"
    fig, ax = canvas(1.05 + 0.34 * len(names), title, "positive numbers")
    low, high, found = -50.0, 42.0, {}
    for row, fmt in enumerate(map(formats.find, names)):
        limits = [math.log10(x) for x in (fmt.smallest_subnormal, fmt.smallest_normal, fmt.max)]
        start, normal, end = (min(max(x, low), high) for x in limits)
        look = {"height": 0.6, "edgecolor": BLUE, "linewidth": 0.9}
        ax.barh(row, normal - start, left=start, facecolor="white", **look)
        ax.barh(row, end - normal, left=normal, facecolor=TINTS[0], **look)
        if start > limits[0] or end < limits[2]:
            look = {"va": "center", "color": BLUE, "label": "_cut"}
            ax.text(low, row, "◂" if start > limits[0] else "", **look)
            ax.text(high, row, "▸" if end < limits[2] else "", ha="right", **look)
        digits = (fmt.fraction_bits + 1) * math.log10(2)
        words = f"{_short(fmt.smallest_subnormal)} to {_short(fmt.max)}, {digits:.2f} digits"
        ax.text(2 if end - start > 45 else end + 1, row, words, va="center", fontsize=8)  # right of small numbers
        if mark is not None:
            stored = formats.decode(formats.encode(mark, fmt), fmt) if mark <= fmt.max else None
            kind = stored.kind if stored and stored.value else "lost"
            found.setdefault(kind, []).append(fmt.name)
            look = {"markersize": 6, "markeredgewidth": 1.8, "zorder": 4, "label": "_mark", "color": VERMILLION}
            ax.plot([math.log10(mark)], [row], "x" if kind == "lost" else "o", **look)
    fig.legend(ax.patches[1::-1], ["normal", "subnormal"], loc="outside lower center", ncols=2)
    rows(ax, names, head=0 if mark is None else 0.45)
    powers = range(-50, 41, 10)
    ax.set_xticks(powers, [_power(10, power) if power else "1" for power in powers])
    ax.set_xlim(low, high)
    if mark is not None:
        ax.axvline(math.log10(mark), color=VERMILLION, linewidth=1, linestyle=DASHES, zorder=3, label="_mark")
        note(ax, _short(mark), (math.log10(mark), -0.75), color=INKS[VERMILLION], weight="bold")
    return fig, " ".join(f"{_short(mark)} is {kind} in {', '.join(found[kind])}." for kind in found)


def _short(value: float) -> str:
    """A number as a person writes it: 65504, 6e-8, 3.4e38."""
    if 0.01 <= value < 1e5:
        return f"{value:.5g}"
    digits, power = f"{value:.1e}".split("e")
    return f"{digits.removesuffix('.0')}e{int(power)}"


@drawn("Stairs")
def spacing(names: Sequence[str], low: float, high: float, marks: Sequence[float] = ()) -> Made:
    """The gap to the next number against the number, both in powers of two, a stair per format.

    At each of `marks`, numbers between low and high, a point per format has its gap in words.
    """
    fig, ax = canvas(3.4, "The gap doubles at every power of two", "number", "gap to the next number")
    powers = range(math.floor(math.log2(low)), math.ceil(math.log2(high)) + 1)
    for (colour, _, _), fmt in zip(itertools.cycle(LOOKS), map(formats.find, names)):
        points = [(2.0**power, _gap(2.0**power, fmt)) for power in powers if 2.0**power <= fmt.max]
        ax.step(*zip(*points, strict=True), where="post", label=fmt.name, marker="", color=colour)
        for mark in (mark for mark in marks if mark <= fmt.max):
            gap = _gap(mark, fmt)
            ax.plot([mark], [gap], "o", color=colour, label=f"_{fmt.name}")
            note(ax, number(gap), (mark, gap), (5, -7), fontsize=8, color=INKS[colour])
    for mark in marks:
        ax.axvline(mark, color=GREY, linewidth=0.8, linestyle=DASHES, label="_mark")
        left = math.log2(mark) > (powers[0] + powers[-1]) / 2  # of its line, where that is on the right
        look = {"xycoords": ("data", "axes fraction"), "fontsize": 8.5, "weight": "bold"}
        note(ax, _short(mark), (mark, 1), (-3 if left else 3, -6), ha="right" if left else "left", **look)
    gaps = [y for line in ax.lines if not line.get_label().startswith("_") for y in line.get_ydata()]
    ax.set_xscale("log", base=2)
    ax.set_yscale("log", base=2)
    ax.set(xlim=(2.0 ** powers[0], 2.0 ** powers[-1]), ylim=(min(gaps) / 16, max(gaps) * 16))
    for axis in (ax.xaxis, ax.yaxis):  # the same steps on both, so that the slope of 1 is seen
        axis.set_major_locator(FixedLocator([2.0**power for power in range(-1076, 1024, 4)]))
        axis.set_minor_locator(NullLocator())
    past_ends(ax, gap=10)
    return fig, ""


def _gap(value: float, fmt: FloatFormat) -> float:
    power = max(math.frexp(value)[1] - 1, 1 - fmt.bias)  # below the smallest normal number it stays
    return 2.0 ** (power - fmt.fraction_bits)


@drawn("Scatter plot")
def quantisers(errors: Mapping[str, Place], title: str, ylabel: str = "relative error") -> Made:
    """What rounding to few bits costs: error (logarithmic) against bits per number, a labelled point per quantiser.

    `errors` maps a name to (bits per number, error), both above 0.
    """
    fig, ax = canvas(3.2, title, "bits per number", ylabel)
    for (name, (size, error)), (colour, marker, _) in zip(errors.items(), itertools.cycle(LOOKS)):
        ax.plot([size], [error], marker, color=colour, markersize=7, label=f"{name}: {error:.2g}")
    sizes, values = zip(*errors.values(), strict=True)
    ax.set(yscale="log", xlim=(0, max(sizes) * 1.25), ylim=(min(values) / 2, max(values) * 2))
    past_ends(ax)
    ends = dict.fromkeys(pick(errors, key=lambda name: errors[name][1]) for pick in (min, max))
    return fig, f"{', '.join(f'{name} errs by {errors[name][1]:.2g} at {errors[name][0]:g} bits' for name in ends)}."
