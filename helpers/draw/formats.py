"""Float formats: the bits of a number, which numbers there are, and what rounding to few bits costs."""

import itertools
import math
from collections.abc import Mapping, Sequence

import torch
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import FixedLocator, NullLocator

from helpers import formats
from helpers.draw.drawing import (
    BLACK,
    BLUE,
    GREY,
    INKS,
    LOOKS,
    TINTS,
    VERMILLION,
    canvas,
    drawn,
    note,
    number,
    past_ends,
)
from helpers.formats import FloatFormat

FIELDS = {"sign": TINTS[1], "exponent": TINTS[0], "fraction": TINTS[2]}
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def fields(fmt: FloatFormat) -> list[str]:
    """The field of each bit, the most significant first."""
    return ["sign"] + ["exponent"] * fmt.exponent_bits + ["fraction"] * fmt.fraction_bits


@drawn("Bits of a number")
def bits(code: int, fmt: FloatFormat | str | torch.dtype) -> tuple[Figure, str]:
    """The pattern of a number, a cell per bit with its place value above, and below each field what it stands for.

    `code` is the pattern as an integer. Formats of more than 32 bits take two rows. Raises ValueError for a code that
    the format does not have.
    """
    fmt = formats.find(fmt)
    stored = formats.decode(code, fmt)
    row = min(fmt.bits, 32)
    rows = math.ceil(fmt.bits / row)
    fig, ax = canvas(0.62 + 0.8 * rows, f"{fmt.name}: {formats.formula(code, fmt)}")
    ax.axis("off")
    names = fields(fmt)
    for position, (digit, name) in enumerate(zip(f"{code:0{fmt.bits}b}", names, strict=True)):
        x, y = position % row, -2.1 * (position // row)
        ax.add_patch(Rectangle((x, y), 1, 1, facecolor=FIELDS[name], edgecolor="white", linewidth=1.5))
        look = {"ha": "center", "label": "_bit"}
        ax.text(x + 0.5, y + 0.47, digit, va="center", family="DejaVu Sans Mono", fontsize=11, **look)
        power = fmt.exponent_bits - position  # 0 for the last bit of the exponent
        marked = row <= 16 or power % 4 == (0 if power >= 0 else 3) or position in (1, fmt.bits - 1)
        if name != "sign" and marked:
            value = _place_value(power, row <= 16)
            ax.text(x + 0.5, y + 1.1, value, va="bottom", fontsize=7.5, color=INKS[GREY], **look)
    meanings = _meanings(stored, fmt)
    for name, lines in meanings.items():
        first, last = names.index(name), min(len(names) - 1 - names[::-1].index(name), row - 1)
        narrow = (
            name == "sign" and row > 16
        )  # its words are wider than its cell, and the exponent's stand further right
        x, side = (first + 0.05, "left") if narrow else ((first + last + 1) / 2, "center")
        ax.text(x, -0.1, "\n".join(lines), ha=side, va="top", fontsize=8.5, linespacing=1.25)
    ax.set(xlim=(0, row), ylim=(-2.1 * (rows - 1) - 0.95 * (rows == 1), 1.45))
    return (
        fig,
        f"The bits are {' '.join(f'{code:0{fmt.bits}b}'[names.index(n) :][: names.count(n)] for n in meanings)}.",
    )


def _place_value(power: int, as_number: bool) -> str:
    if as_number:
        return str(2**power) if power >= 0 else f"1/{2**-power}"
    return f"2{str(power).translate(_SUPERSCRIPTS)}"


def _meanings(stored: formats.Decoded, fmt: FloatFormat) -> dict[str, tuple[str, str]]:
    """Of each field its stored integer, and what that stands for."""
    sign, exponent, fraction = (f"{name} {getattr(stored, name)}" for name in FIELDS)
    if not math.isfinite(stored.value):
        return {"sign": (sign, ""), "exponent": (exponent, "all ones"), "fraction": (fraction, stored.kind)}
    power = max(stored.exponent, 1)
    hidden = "1" if stored.exponent else "0"  # below the smallest normal number no 1 is hidden
    meanings = {
        "sign": (sign, "−" if stored.sign else "+"),
        "exponent": (exponent, f"{power} − {fmt.bias} = {power - fmt.bias}".replace("-", "−")),
    }
    if fmt.fraction_bits:
        meanings["fraction"] = (fraction, f"{hidden} + {stored.fraction}/{1 << fmt.fraction_bits}")
    return meanings


@drawn("Stacked bars")
def layouts(names: Sequence[str] = tuple(formats.FORMATS)) -> Figure:
    """A bar per format, in bits, cut into sign, exponent and fraction: where the bits go."""
    chosen = [formats.find(name) for name in names]
    fig, ax = canvas(0.95 + 0.29 * len(names), "Where the bits go: sign, exponent, fraction", "bits")
    left = [0] * len(chosen)
    for field, tint in FIELDS.items():
        widths = [fields(fmt).count(field) for fmt in chosen]
        bars = ax.barh(range(len(chosen)), widths, left=left, color=tint, label=field, edgecolor="white")
        if field != "sign":
            texts = [str(width or "") for width in widths]
            ax.bar_label(bars, texts, label_type="center", fontsize=8.5)
        left = [start + width for start, width in zip(left, widths, strict=True)]
    ax.set_yticks(range(len(chosen)), [fmt.name for fmt in chosen])
    ax.set(xlim=(0, max(fmt.bits for fmt in chosen)), xticks=sorted({0, *(fmt.bits for fmt in chosen)} - {6}))
    ax.invert_yaxis()
    ax.grid(axis="y", visible=False)
    fig.legend(loc="outside lower center", ncols=3)
    return fig


@drawn("Number lines")
def number_line(names: Sequence[str], low: float, high: float, title: str) -> tuple[Figure, str]:
    """A row of marks per format: each number that it can represent between low and high."""
    fig, ax = canvas(0.8 + 0.42 * len(names), title, "value")
    counts = []
    for row, name in enumerate(names):
        inside = [value for value in formats.values(name) if low <= value <= high]
        counts.append(f"{name} has {len(inside)}")
        ax.axhline(row, color="#bbbbbb", linewidth=0.8, zorder=1, label="_row")
        ax.scatter(inside, [row] * len(inside), marker="|", s=150, linewidths=1.4, color=LOOKS[row % 5][0], label=name)
        note(ax, f"{len(inside)} numbers", (high, row), (10, 0), fontsize=8, annotation_clip=False)
    ax.set_yticks(range(len(names)), names)
    ax.set(xlim=(low - 0.02 * (high - low), high + 0.02 * (high - low)), ylim=(len(names) - 0.5, -0.5))
    ax.grid(visible=False)
    return fig, f"Numbers from {number(low)} to {number(high)}: {', '.join(counts)}."


@drawn("Ranges")
def ranges(names: Sequence[str] = tuple(formats.FORMATS), mark: float | None = None) -> tuple[Figure, str]:
    """From the smallest to the largest positive number of each format, its subnormal part white, on a log axis.

    `mark` is a positive number that is looked up in each format: a dot where it is in range, a cross where it becomes
    zero or infinity. A format that reaches beyond 1e-50 or 1e42, as float64 does, is cut off there with its limit.
    """
    if mark is not None and not 1e-50 < mark < 1e42:
        raise ValueError(f"the axis goes from 1e-50 to 1e42, and {mark} is not on it")
    fig, ax = canvas(
        1.05 + 0.34 * len(names), "Exponent bits set the range, fraction bits the digits", "positive numbers"
    )
    low, high, found = -50.0, 42.0, {}
    for row, fmt in enumerate(map(formats.find, names)):
        start, normal, end = (math.log10(x) for x in (fmt.smallest_subnormal, fmt.smallest_normal, fmt.max))
        inside = [min(max(x, low), high) for x in (start, normal, end)]
        for left, right, face in ((*inside[:2], "white"), (*inside[1:], TINTS[0])):
            ax.barh(row, right - left, left=left, height=0.6, facecolor=face, edgecolor=BLUE, linewidth=0.9)
        for cut, at, arrow in ((start < low, low, "◂"), (end > high, high, "▸")):
            if cut:
                ax.text(at, row, arrow, ha="left" if at == low else "right", va="center", color=BLUE, label="_cut")
        digits = (fmt.fraction_bits + 1) * math.log10(2)
        limits = f"{_short(fmt.smallest_subnormal)} to {_short(fmt.max)}, {digits:.2f} digits"
        wide = inside[2] - inside[0] > 45
        x = 2 if wide else inside[2] + 1  # to the right of small numbers that one may mark
        ax.text(x, row, limits, ha="left", va="center", fontsize=8)
        if mark is not None:
            inside = mark <= fmt.max and formats.decode(formats.encode(mark, fmt), fmt)
            lost = not inside or not inside.value
            found.setdefault("lost" if lost else inside.kind, []).append(fmt.name)
            look = {"marker": "x" if lost else "o", "color": VERMILLION, "zorder": 4, "label": "_mark", "linestyle": ""}
            ax.plot([math.log10(mark)], [row], markersize=6, markeredgewidth=1.8, **look)
    handles = [Patch(facecolor=TINTS[0], edgecolor=BLUE, label="normal")]
    handles.append(Patch(facecolor="white", edgecolor=BLUE, label="subnormal"))
    fig.legend(handles=handles, loc="outside lower center", ncols=2)
    ax.set_yticks(range(len(names)), names)
    ticks = range(-50, 41, 10)
    ax.set_xticks(ticks, [f"10{str(power).translate(_SUPERSCRIPTS)}" if power else "1" for power in ticks])
    ax.set(xlim=(low, high), ylim=(len(names) - 0.45, -0.55 if mark is None else -1.0))
    ax.grid(axis="y", visible=False)
    if mark is None:
        return fig, ""
    ax.axvline(math.log10(mark), color=VERMILLION, linewidth=1, linestyle=(0, (4, 3)), zorder=3, label="_mark")
    note(ax, _short(mark), (math.log10(mark), -0.75), color=INKS[VERMILLION], weight="bold")
    return fig, " ".join(f"{_short(mark)} is {kind} in {', '.join(found[kind])}." for kind in found)


def _short(value: float) -> str:
    """A number as a person writes it: 65504, 6e-8, 3.4e38."""
    if 0.01 <= value < 1e5:
        return f"{value:.5g}"
    digits, power = f"{value:.1e}".split("e")
    return f"{digits.removesuffix('.0')}e{int(power)}"


@drawn("Stairs")
def spacing(names: Sequence[str], low: float, high: float, marks: Sequence[float] = ()) -> Figure:
    """The gap to the next number against the number, both in powers of two, a stair per format.

    At each of `marks`, numbers between low and high, a point per format has its gap in words.
    """
    fig, ax = canvas(3.4, "The gap doubles at every power of two", "number", "gap to the next number")
    powers = range(math.floor(math.log2(low)), math.ceil(math.log2(high)) + 1)
    for (colour, _, _), fmt in zip(itertools.cycle(LOOKS), map(formats.find, names)):

        def gap(value: float, fmt: FloatFormat = fmt) -> float:
            power = max(math.frexp(value)[1] - 1, 1 - fmt.bias)  # below the smallest normal number it stays
            return 2.0 ** (power - fmt.fraction_bits)

        points = [(2.0**power, gap(2.0**power)) for power in powers if 2.0**power <= fmt.max]
        ax.step(*zip(*points, strict=True), where="post", label=fmt.name, marker="", color=colour)
        for mark in (mark for mark in marks if mark <= fmt.max):
            ax.plot([mark], [gap(mark)], "o", color=colour, label=f"_{fmt.name} at {mark:g}")
            note(ax, number(gap(mark)), (mark, gap(mark)), (5, -7), fontsize=8, color=INKS[colour])
    for mark in marks:
        ax.axvline(mark, color=GREY, linewidth=0.8, linestyle=(0, (4, 3)), label="_mark")
        left = math.log2(mark) > (powers[0] + powers[-1]) / 2  # of its line, where that is on the right
        look = {
            "xycoords": ("data", "axes fraction"),
            "fontsize": 8.5,
            "weight": "bold",
            "ha": "right" if left else "left",
        }
        note(ax, _short(mark), (mark, 1), (-3 if left else 3, -6), **look)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log", base=2)
    for axis in (ax.xaxis, ax.yaxis):  # the same steps on both, so that the slope of 1 is seen
        axis.set_major_locator(FixedLocator([2.0**power for power in range(-1076, 1024, 4)]))
        axis.set_minor_locator(NullLocator())
    ax.set_xlim(2.0 ** powers[0], 2.0 ** powers[-1])
    gaps = [y for line in ax.lines if not line.get_label().startswith("_") for y in line.get_ydata()]
    ax.set_ylim(min(gaps) / 16, max(gaps) * 16)
    past_ends(ax, gap=10)
    return fig


@drawn("Number line")
def neighbourhood(value: float, fmt: FloatFormat | str | torch.dtype) -> Figure:
    """The number that a format stores for a value, between its two neighbours, with both gaps to scale."""
    fmt = formats.find(fmt)
    near = formats.neighbours(value, fmt)
    fig, ax = canvas(1.25, f"{fmt.name} near {near.nearest:.6g}")
    ax.axis("off")
    finite = [x if x is not None and math.isfinite(x) else None for x in (near.below, near.nearest, near.above)]
    gaps = [b - a for a, b in itertools.pairwise(finite) if a is not None and b is not None]
    scale = max(gaps, default=1.0)
    ax.axhline(0, color=GREY, linewidth=1, label="_line")
    for place, x in zip((-1, 0, 1), (near.below, near.nearest, near.above), strict=True):
        if x is None:
            ax.text(place, 0.1, "nothing", ha="center", fontsize=9)
            continue
        at = place if not math.isfinite(x) or finite[1] is None else (x - finite[1]) / scale
        ax.plot(
            [at], [0], "|", color=VERMILLION if not place else BLACK, markersize=18, markeredgewidth=2, label="_mark"
        )
        ax.text(at, 0.55, f"{x:.9g}", ha="center", fontsize=9, weight="normal" if place else "bold")
    for a, b in itertools.pairwise(finite):
        if a is not None and b is not None:
            ax.text(((a + b) / 2 - finite[1]) / scale, -0.8, f"gap {b - a:.3g}", ha="center", fontsize=9)
    ax.set(xlim=(-1.3, 1.3), ylim=(-1.1, 1.1))
    return fig


@drawn("Scatter plot")
def quantisers(
    errors: Mapping[str, tuple[float, float]], title: str, ylabel: str = "relative error"
) -> tuple[Figure, str]:
    """What rounding to few bits costs: error (logarithmic) against bits per number, a labelled point per quantiser.

    `errors` maps a name to (bits per number, error), both above 0. Raises ValueError for others.
    """
    if not errors or any(min(pair) <= 0 for pair in errors.values()):
        raise ValueError(f"a quantiser has bits per number and an error, both above 0, got {dict(errors)}")
    fig, ax = canvas(3.2, title, "bits per number", ylabel)
    for (name, (size, error)), (colour, marker, _) in zip(errors.items(), itertools.cycle(LOOKS)):
        ax.plot([size], [error], marker, color=colour, markersize=7, label=f"{name}: {error:.2g}")
    ax.set_yscale("log")
    sizes, values = zip(*errors.values(), strict=True)
    ax.set(xlim=(0, max(sizes) * 1.25), ylim=(min(values) / 2, max(values) * 2))
    past_ends(ax)
    least, most = sorted(errors, key=lambda name: errors[name][1])[:: len(errors) - 1 or 1][:2]
    ends = (f"{name} errs by {errors[name][1]:.2g} at {errors[name][0]:g} bits" for name in (least, most))
    return fig, f"{', '.join(ends)}."
