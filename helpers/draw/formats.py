"""Float formats: the bits of a number, the range of each format, and the gaps between its numbers."""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from helpers import formats
from helpers.draw.charts import lines
from helpers.draw.drawing import Made, Series, canvas, drawn
from helpers.draw.labels import cell, note, rows
from helpers.draw.palette import BLUE, DASHES, GREY, GROUNDS, INKS, LINES, TINTS, VERMILLION
from helpers.formats import FloatFormat

FIELDS = {"sign": TINTS[1], "exponent": TINTS[0], "fraction": TINTS[2]}
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_ROW_HEIGHT = 2.1  # of cells with their place values above and their meaning below
_FIRST, _LAST = -50, 42  # the axis of ranges, in powers of ten
_POWERS = (-44, 24)  # that of exponents, in powers of two


@drawn("Bits of a number")
def bits(code: int, fmt: FloatFormat | str | torch.dtype) -> Made:
    """The pattern of a number, a cell per bit with its place value above, and below each field what it stands for.

    Formats of more than 32 bits take two rows. Raises ValueError for a code that the format does not have.
    """
    fmt = formats.format_of(fmt)
    meanings, digits = _meanings(formats.decode(code, fmt), fmt), f"{code:0{fmt.bits}b}"
    row = min(fmt.bits, 32)
    below = _ROW_HEIGHT * (math.ceil(fmt.bits / row) - 1)
    fig, ax = canvas(1.42 + 0.38 * below, f"{fmt.name}: {formats.formula(code, fmt)}")
    position, shown = 0, []
    for name, width in zip(FIELDS, (1, fmt.exponent_bits, fmt.fraction_bits), strict=True):
        _write_meaning(ax, meanings[name] if width else "", position, min(position + width, row), row)
        shown.append(digits[position : position + width])
        for digit in shown[-1]:
            x, y = position % row, -_ROW_HEIGHT * (position // row)
            cell(ax, (x, y), digit, FIELDS[name], family="DejaVu Sans Mono", fontsize=11)
            if name != "sign":
                style: dict[str, Any] = {"ha": "center", "va": "baseline", "fontsize": 7.5, "color": INKS[GREY]}
                note(ax, _place_value(position, fmt), (x + 0.5, y + 1.1), (0, 0), said=False, **style)
            position += 1
    ax.set(xlim=(0, row), ylim=(-max(below, 0.95), 1.45))
    return Made(fig, f"The bits are {' '.join(filter(None, shown))}.")


def _write_meaning(ax: Axes, text: str, start: int, end: int, row: int) -> None:
    """Below a field, in its middle; where a cell is narrow, the sign's words are wider than it."""
    style: dict[str, Any] = {"va": "top", "linespacing": 1.25}
    if start == 0 and row > 16:
        ax.text(0.05, -0.1, text, ha="left", **style)
    else:
        ax.text((start + end) / 2, -0.1, text, ha="center", **style)


def _place_value(position: int, fmt: FloatFormat) -> str:
    """What a bit of exponent or fraction stands for; where cells are narrow, every fourth and those at the ends."""
    power = fmt.exponent_bits - position
    if fmt.bits <= 16:
        return str(2**power) if power >= 0 else f"1/{2**-power}"
    at_end = position in (1, fmt.bits - 1)
    fourth = power % 4 == (0 if power >= 0 else 3)
    return _power(2, power) if fourth or at_end else ""


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


@drawn("Ranges")
def ranges(mark: float) -> Made:
    """From the smallest to the largest positive number of each format, its subnormal part grey, on a log axis.

    `mark`, from 1e-50 to 1e42, has a dot where it is in range, a cross where not. float64 reaches beyond the axis.
    """
    widest_first = sorted(formats.FORMATS.values(), key=lambda fmt: -fmt.exponent_bits)
    fig, ax = canvas(1.05 + 0.34 * len(widest_first), "Exponent bits set the range", "positive numbers")
    found: dict[str, list[str]] = {}
    for row, fmt in enumerate(widest_first):
        _draw_range(ax, row, fmt)
        kind = _kind(mark, fmt)
        found.setdefault(kind, []).append(fmt.name)
        marker = "x" if kind == "lost" else "o"
        ax.plot(math.log10(mark), row, marker, markersize=6, markeredgewidth=1.8, zorder=4, color=VERMILLION)
    fig.legend(ax.patches[1::-1], ["normal", "subnormal"], loc="outside lower center", ncols=2)
    rows(ax, [fmt.name for fmt in widest_first])
    powers = range(_FIRST, _LAST, 10)
    ax.set_xticks(powers, [_power(10, power) if power else "1" for power in powers])
    ax.set_xlim(_FIRST, _LAST)
    ax.axvline(math.log10(mark), color=VERMILLION, linewidth=1, linestyle=DASHES, marker="", zorder=3)
    style: dict[str, Any] = {"ha": "center", "va": "bottom", "color": INKS[VERMILLION], "weight": "bold"}
    note(ax, short(mark), (math.log10(mark), 1), (0, 2), xycoords=ax.get_xaxis_transform(), **style)
    return Made(fig, " ".join(f"{short(mark)} is {kind} in {', '.join(names)}." for kind, names in found.items()))


def _draw_range(ax: Axes, row: int, fmt: FloatFormat) -> None:
    """The range of a format as a bar, with its ends and its decimal digits in words."""
    start, normal, end = (math.log10(x) for x in (fmt.smallest_subnormal, fmt.smallest_normal, fmt.max))
    style: dict[str, Any] = {"height": 0.6, "edgecolor": BLUE, "linewidth": 0.9}
    ax.barh(row, normal - start, left=start, facecolor=TINTS[4], **style)
    ax.barh(row, end - normal, left=normal, facecolor=TINTS[0], **style)
    digits = (fmt.fraction_bits + 1) * math.log10(2)
    precision = f"{digits:.0f}" if digits > 10 else f"{digits:.2f}"
    text = f"{short(fmt.smallest_subnormal)} to {short(fmt.max)}, {precision} digits"
    if end > _LAST:  # beyond the axis, on both sides
        text = f"← {text} →"
    wide = end - start > 45
    ax.text(2 if wide else end + 1, row, text, va="center", fontsize=8)  # right of small numbers


def _kind(value: float, fmt: FloatFormat) -> str:
    """What becomes of a value in a format: normal, subnormal, or lost, as infinity or as 0."""
    if value > fmt.max:
        return "lost"
    stored = formats.decode(formats.encode(value, fmt), fmt)
    return stored.kind if stored.value else "lost"


def short(value: float) -> str:
    """A number as a person writes it: 65504, 6e-8, 3.4e38."""
    if 0.01 <= value < 1e5:
        return f"{value:.5g}"
    digits, power = f"{value:.1e}".split("e")
    return f"{digits.removesuffix('.0')}e{int(power)}"


@drawn("Line chart")
def spacing(names: Sequence[str], low: float, high: float, title: str, marks: Sequence[float] = ()) -> Made:
    """The gap to the next number against the number, a stair per format; at each of `marks` the gap is written.

    Between two stairs it is shaded, where the one is finer and where the other.
    """
    powers = range(math.floor(math.log2(low)), math.ceil(math.log2(high)))
    numbers = [end * 2.0**power for power in powers for end in (1, 2 - 1e-9)]  # the two ends of each step
    stairs = {name: (numbers, [_gap(2.0**power, name) for power in powers for _ in range(2)]) for name in names}
    points = {f"{short(_gap(x, name))} at {short(x)}": (x, _gap(x, name)) for x in marks for name in names}
    drawing = lines(stairs, title, "number", "gap to the next number", "xy", points)
    for stair in drawing.figure.axes[0].lines[: len(stairs)]:
        stair.set(linestyle="-", linewidth=1.8)  # dashes would hide the steps
    if len(stairs) == 2:
        _shade_finer(drawing.figure, stairs)
    return Made(drawing.figure, drawing.finding)


@drawn("Histogram")
def exponents(values: Mapping[str, torch.Tensor], fmt: FloatFormat | str | torch.dtype, title: str) -> Made:
    """How many numbers lie at each power of two, a hill for every tensor, over what becomes of them in a format.

    The share of the last tensor in each band is written. Numbers that are 0 do not count. Raises ValueError for a
    format without infinity, and for a tensor of zeros.
    """
    fmt = formats.format_of(fmt)
    fig, ax = canvas(3.1, title, "power of two of a number", "% of the numbers")
    found, highest = [], 0.0
    for (name, tensor), line in zip(values.items(), LINES, strict=False):
        powers, shares = _shares_by_power(name, tensor)
        style = {"color": line["color"], "linestyle": line["linestyle"]}
        ax.stairs(shares, powers, linewidth=2, **style)
        ax.stairs(shares, powers, fill=True, alpha=0.25, color=line["color"])
        top = int(shares.argmax())
        words: dict[str, Any] = {"ha": "center", "va": "bottom", "weight": "bold", "color": INKS[line["color"]]}
        note(ax, name, (powers[top] + 0.5, shares[top]), (0, 3), **words)
        highest = max(highest, shares[top])
        found.append(f"{name}: most at {_power(2, powers[top])}.")
    ax.set(xlim=_POWERS, ylim=(0, 5 * math.ceil(1.3 * highest / 5)))
    # The shares of the last tensor, whose name, numbers and line the loop has left.
    kept = {band: f"{100 * share:.2g} %" for band, share in formats.kept(tensor, fmt).items()}
    _draw_bands(ax, fmt, kept | {"zero": f"{name}: {kept['zero']}"}, INKS[line["color"]])
    return Made(fig, " ".join(found))


def _shares_by_power(name: str, tensor: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Powers of two, one more than the shares, in per cent, of the numbers between each and the next."""
    powers = tensor[tensor != 0].abs().double().log2().floor()
    if not len(powers):
        raise ValueError(f"{name!r} holds nothing but zeros, which have no power of two")
    edges = np.arange(_POWERS[0], _POWERS[1] + 1)
    counts, _ = np.histogram(powers.numpy(), edges)
    return edges, 100 * counts / len(powers)


def _draw_bands(ax: Axes, fmt: FloatFormat, shares: Mapping[str, str], ink: str) -> None:
    """What becomes of numbers between which powers, and of how many; the ground tinted where something is lost."""
    if fmt.inf_code is None:
        raise ValueError(f"{fmt.name} has no infinity: take a format that follows the IEEE rule")
    lost, coarse = GROUNDS[3], GROUNDS[2]
    zero, normal, infinite = (math.log2(x) for x in (fmt.smallest_subnormal / 2, fmt.smallest_normal, fmt.max))
    ends = (_POWERS[0], zero, normal, infinite, _POWERS[1])
    for name, tint, (start, end) in zip(
        formats.BANDS, (lost, coarse, "white", lost), itertools.pairwise(ends), strict=True
    ):
        ax.axvspan(start, end, color=tint, linewidth=0, zorder=0)
        middle = ((start + end) / 2, 1)
        places: dict[str, Any] = {"xycoords": ax.get_xaxis_transform(), "ha": "center"}
        note(ax, name, middle, (0, -8), said=False, **places)
        note(ax, shares[name], middle, (0, -21), said=False, color=ink, **places)


def _shade_finer(fig: Figure, stairs: Series) -> None:
    """Tint the ground between two stairs in the colour of the lower, and say so in a legend."""
    (ax,) = fig.axes
    names, ((x, first), (_, second)) = list(stairs), stairs.values()
    lower = {names[0]: np.less(first, second), names[1]: np.less(second, first)}
    for (name, where), tint in zip(lower.items(), TINTS[2:], strict=False):
        ax.fill_between(x, first, second, where=where, color=tint, alpha=0.5, linewidth=0, label=f"{name} is finer")
    fig.legend(handles=ax.collections, loc="outside lower center", ncols=2)


def _gap(value: float, name: str) -> float:
    near = formats.neighbours(value, name)
    if near.above is None or near.nearest is None:
        raise ValueError(f"{name} has no number above {value:g}")
    return float(near.above - near.nearest)
