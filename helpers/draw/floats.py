"""Float formats: the bits of a number, and which numbers there are."""

import itertools
import math
from collections.abc import Sequence

import torch
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from helpers import formats
from helpers.draw.drawing import BLACK, BLUE, GREEN, MARKERS, PURPLE, TINTS, VERMILLION, canvas, drawn
from helpers.formats import FloatFormat

FIELDS = {"sign": TINTS[1], "exponent": TINTS[0], "fraction": TINTS[2]}


def fields(fmt: FloatFormat) -> list[str]:
    """The field of each bit, the most significant first."""
    return ["sign"] + ["exponent"] * fmt.exponent_bits + ["fraction"] * fmt.fraction_bits


@drawn("Bits of a number")
def bits(code: int, fmt: FloatFormat | str | torch.dtype) -> Figure:
    """The pattern of a number, a cell per bit, fields coloured and named, and the product that they stand for.

    Formats of more than 32 bits take two rows.
    """
    fmt = formats.find(fmt)
    number = formats.decode(code, fmt)
    row = 32 if fmt.bits > 32 else fmt.bits
    rows = math.ceil(fmt.bits / row)
    fig, ax = canvas(0.7 + 0.68 * rows, f"{fmt.name}: {formats.formula(code, fmt)}")
    ax.axis("off")
    names = fields(fmt)
    for position, (digit, name) in enumerate(zip(f"{code:0{fmt.bits}b}", names, strict=True)):
        x, y = position % row, -1.85 * (position // row)
        ax.add_patch(Rectangle((x, y), 1, 1, facecolor=FIELDS[name], edgecolor="white", linewidth=1.5))
        ax.text(x + 0.5, y + 0.5, digit, ha="center", va="center", family="DejaVu Sans Mono", fontsize=10)
        if position in (0, 1, 1 + fmt.exponent_bits):  # a field starts here
            stored = {"sign": number.sign, "exponent": number.exponent, "fraction": number.fraction}[name]
            # In narrow cells the sign's label goes a line lower, clear of the exponent's.
            drop = 0.42 if name == "sign" and row > 16 else 0.08
            ax.text(x + 0.05, y - drop, f"{name} {stored}", ha="left", va="top", fontsize=8)
    width = max(row, 16)
    ax.set(xlim=(0, width), ylim=(-1.85 * (rows - 1) - 0.75, 1.05))
    return fig


@drawn("Bars")
def layouts(names: Sequence[str] = tuple(formats.FORMATS)) -> Figure:
    """One bar per format, cut into sign, exponent and fraction: where the bits go."""
    fig, ax = canvas(0.9 + 0.29 * len(names), "Sixteen bits can buy range or precision", "bits")
    chosen = [formats.find(name) for name in names]
    left = [0] * len(chosen)
    hatches = {"sign": "", "exponent": "///", "fraction": ""}
    for field in FIELDS:
        widths = [fields(fmt).count(field) for fmt in chosen]
        bars = ax.barh(range(len(chosen)), widths, left=left, color=FIELDS[field], label=field, hatch=hatches[field])
        for bar, width in zip(bars, widths, strict=True):
            bar.set_edgecolor("white")
            if field != "sign":
                centre = bar.get_x() + width / 2
                ax.text(
                    centre, bar.get_y() + 0.4, width, ha="center", va="center", fontsize=8,
                    bbox={"boxstyle": "square,pad=0", "facecolor": FIELDS[field], "linewidth": 0},
                )  # fmt: skip
        left = [start + width for start, width in zip(left, widths, strict=True)]
    ax.set_yticks(range(len(chosen)), [fmt.name for fmt in chosen])
    ax.set(xlim=(0, max(fmt.bits for fmt in chosen)))
    ax.invert_yaxis()
    ax.grid(axis="y", visible=False)
    ax.set_xticks([0, 8, 16, 32, 64])
    ax.legend(loc="lower right", ncols=1)
    return fig


@drawn("Number lines")
def number_line(names: Sequence[str], low: float, high: float, title: str) -> Figure:
    """A row of marks per format: each number that it can represent between low and high."""
    fig, ax = canvas(0.9 + 0.42 * len(names), title, "value")
    for row, name in enumerate(names):
        inside = [value for value in formats.values(name) if low <= value <= high]
        ax.axhline(row, color="#bbbbbb", linewidth=0.8, zorder=1)
        ax.scatter(
            inside, [row] * len(inside), marker="|", s=150, linewidths=1.3, zorder=2,
            color=(BLUE, VERMILLION, GREEN, PURPLE, BLACK)[row % 5], label=f"{name}, {len(inside)} numbers",
        )  # fmt: skip
    ax.set_yticks(range(len(names)), names)
    ax.set(xlim=(low - 0.02 * (high - low), high + 0.02 * (high - low)), ylim=(len(names) - 0.5, -0.5))
    ax.grid(visible=False)
    return fig


@drawn("Bars")
def ranges(names: Sequence[str] = tuple(formats.FORMATS)) -> Figure:
    """A bar per format from its smallest to its largest positive number, the subnormal part hatched.

    float64 is cut off at the edges: its range is eight times as wide as float32's, in powers of ten.
    """
    title = "Exponent bits set the range, fraction bits the digits"
    fig, ax = canvas(1.0 + 0.32 * len(names), title, "positive numbers, power of ten")
    low, high = -50, 42
    for row, fmt in enumerate(map(formats.find, names)):
        start, normal, end = (math.log10(x) for x in (fmt.smallest_subnormal, fmt.smallest_normal, fmt.max))
        start, normal, stop = max(start, low), max(normal, low), min(end, high)
        if normal > start:
            subnormal = {"facecolor": "white", "edgecolor": BLUE, "hatch": "////", "linewidth": 0.8}
            ax.barh(row, normal - start, left=start, height=0.62, **subnormal)
        ax.barh(row, stop - normal, left=normal, height=0.62, color=BLUE)
        digits = fmt.fraction_bits * math.log10(2)
        limits = f"{_short(fmt.smallest_subnormal)} to {_short(fmt.max)}; about {digits:.1f} digits"
        if end > high:
            ax.text(0, row, limits, color="white", ha="center", va="center", fontsize=8)
        elif start < -20:
            ax.text((start + stop) / 2, row, limits, color="white", ha="center", va="center", fontsize=8)
        else:
            ax.text(stop + 1, row, limits, ha="left", va="center", fontsize=8)
    ax.set_yticks(range(len(names)), names)
    ax.set(xlim=(low, high))
    ax.invert_yaxis()
    ax.grid(axis="y", visible=False)
    handles = [
        Patch(facecolor=BLUE, label="normal"),
        Patch(facecolor="white", edgecolor=BLUE, hatch="////", label="subnormal"),
    ]
    ax.legend(handles=handles, loc="lower left")
    return fig


def _short(value: float) -> str:
    """A number as a person writes it: 65504, 6e-8, 3.4e38."""
    if 0.001 <= value < 1e6:
        return f"{value:.5g}"
    digits, power = f"{value:.1e}".split("e")
    return f"{digits.removesuffix('.0')}e{int(power)}"


@drawn("Stairs")
def spacing(names: Sequence[str], low: float, high: float) -> Figure:
    """The gap to the next number against the number, a stair per format; both axes count powers of two."""
    fig, ax = canvas(3.2, "The gap doubles at every power of two", "value", "gap to the next number")
    powers = range(math.floor(math.log2(low)), math.ceil(math.log2(high)) + 1)
    for row, fmt in enumerate(map(formats.find, names)):
        points = [
            (2.0**power, fmt.smallest_subnormal)
            if power < 1 - fmt.bias
            else (2.0**power, 2.0 ** (power - fmt.fraction_bits))
            for power in powers
            if 2.0**power <= fmt.max
        ]
        ax.step(
            *zip(*points, strict=True), where="post", label=fmt.name, marker=MARKERS[row], markevery=4, markersize=4
        )
    ax.set_xscale("log", base=2)
    ax.set_yscale("log", base=2)
    ax.legend()
    return fig


@drawn("Number line")
def neighbourhood(value: float, fmt: FloatFormat | str | torch.dtype) -> Figure:
    """The number that a format stores for a value, between its two neighbours, with both gaps."""
    fmt = formats.find(fmt)
    near = formats.neighbours(value, fmt)
    fig, ax = canvas(1.25, f"{fmt.name} near {near.nearest:.6g}")
    ax.axis("off")
    finite = [x if x is not None and math.isfinite(x) else None for x in (near.below, near.nearest, near.above)]
    gaps = [b - a for a, b in itertools.pairwise(finite) if a is not None and b is not None]
    scale = max(gaps, default=1.0)
    ax.axhline(0, color="#bbbbbb", linewidth=1)
    for place, x in zip((-1, 0, 1), (near.below, near.nearest, near.above), strict=True):
        if x is None:
            ax.text(place, 0.1, "nothing", ha="center", fontsize=8)
            continue
        at = place if not math.isfinite(x) or finite[1] is None else (x - finite[1]) / scale
        ax.plot([at], [0], "|", color=BLUE if place else VERMILLION, markersize=18, markeredgewidth=2)
        ax.text(at, 0.55, f"{x:.9g}", ha="center", fontsize=8, weight="normal" if place else "bold")
    for a, b in itertools.pairwise(finite):
        if a is not None and b is not None:
            ax.text(((a + b) / 2 - finite[1]) / scale, -0.8, f"gap {b - a:.3g}", ha="center", fontsize=8)
    ax.set(xlim=(-1.5, 1.5), ylim=(-1.1, 1.1))
    return fig
