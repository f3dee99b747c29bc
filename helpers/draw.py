"""Every figure of the course, and `show`, which displays one with a summary in words.

A drawing function returns a matplotlib Figure and displays nothing; end the cell with `draw.show(figure, alt)`.
"""

import functools
import io
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import torch
from IPython.display import display
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import EngFormatter, FuncFormatter, ScalarFormatter
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from helpers import formats, units
from helpers.formats import FloatFormat

_FILE = Path(__file__).with_name("course.mplstyle")
# Parsed once: a widget redraws often. The backend is no matter of style, and resetting it would load pyplot.
_STYLE = {key: value for key, value in matplotlib.rcParamsDefault.items() if not key.startswith("backend")}
_STYLE |= matplotlib.rc_params_from_file(_FILE, use_default_template=False)

WIDTH = 6.4  # inches; at 110 dpi a figure is at most 704 pixels wide
BLUE, VERMILLION, GREEN, PURPLE, BLACK = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000"
FIELDS = {"sign": "#F6C9A8", "exponent": "#BBDDF2", "fraction": "#BDE8D8"}  # tints, for black digits on top
_MARKERS = "os^Dv"


def styled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Run a drawing function in the course's style, whatever the learner's own settings are."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with matplotlib.rc_context(_STYLE):
            return function(*args, **kwargs)

    return wrapper


# --- showing -------------------------------------------------------------------------------------------------------


def show(figure: Figure, alt: str) -> None:
    """Display a figure as a picture and in words.

    `alt` (at most 200 characters) says what kind of chart it is, its axes and its finding. The words are alt and
    `summary(figure)`: a terminal and a screen reader get them, and the tests compare them.
    """
    display(_Shown(*bundle(figure, alt)))


@dataclass(frozen=True)
class _Shown:
    """Display data; outside a notebook its words."""

    data: dict[str, Any]
    metadata: dict[str, Any]

    def __repr__(self) -> str:
        return self.data["text/plain"]

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        return self.data, self.metadata


def bundle(figure: Figure, alt: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The display data and metadata of a figure. Raises ValueError for an alt text that is empty or too long."""
    if not alt.strip() or len(alt) > 200:
        raise ValueError(f"an alt text has 1 to 200 characters, this one has {len(alt)}; say kind, axes and finding")
    data = {"image/png": png(figure), "text/plain": f"{alt}\n{summary(figure)}".rstrip()}
    return data, {"image/png": {"alt": alt}}


@styled
def png(figure: Figure, description: str | None = None) -> bytes:
    """The figure as PNG bytes, the same bytes for the same figure; a description goes into the file's metadata."""
    figure.canvas.draw()
    picture = Image.fromarray(np.asarray(figure.canvas.buffer_rgba())).convert("RGB")
    words = PngInfo()
    if description:
        words.add_itxt("Description", description)
    buffer = io.BytesIO()
    # 64 colours hold a chart and its soft edges, and make the stored notebook a third as large.
    picture.quantize(64, dither=Image.Dither.NONE).save(buffer, format="png", optimize=True, pnginfo=words)
    return buffer.getvalue()


def summary(figure: Figure) -> str:
    """What a figure shows, in words: title, axes with scale and limits, each labelled line, mark and bar, texts.

    Artists without a label (matplotlib gives them one with a leading underscore) are left out: grid, guides, shades.
    """
    lines = []
    for ax in figure.axes:
        title = ax.get_title(loc="left") or ax.get_title()
        lines += [f"Title: {title}"] if title else []
        lines += [_axis(name, axis) for name, axis in (("x", ax.xaxis), ("y", ax.yaxis)) if ax.axison]
        for line in ax.lines:
            if not line.get_label().startswith("_"):
                lines.append(f"Line {line.get_label()}: {_points(line.get_xydata())}")
        for marks in ax.collections:
            if not str(marks.get_label()).startswith("_"):
                lines.append(f"Marks {marks.get_label()}: {_points(marks.get_offsets())}")
        for bars in ax.containers:
            if not bars.get_label().startswith("_"):
                sizes = [bar.get_width() if bars.orientation == "horizontal" else bar.get_height() for bar in bars]
                lines.append(f"Bars {bars.get_label()}: {' '.join(map(_number, sizes))}")
        texts = [" ".join(text.get_text().split()) for text in ax.texts if text.get_text().strip()]
        lines += [f"Text: {' | '.join(texts)}"] if texts else []
    return "\n".join(lines)


def _axis(name: str, axis: Axis) -> str:
    low, high = axis.get_view_interval()
    if isinstance(axis.get_major_formatter(), FuncFormatter):  # named ticks, say one per format
        return f"{name}: {', '.join(label.get_text() for label in axis.get_ticklabels())}"
    return f"{name}: {axis.get_label_text()} ({axis.get_scale()}, {_number(low)} to {_number(high)})"


def _points(points: Iterable[Sequence[float]], most: int = 5) -> str:
    """At most that many points, evenly picked, the first and the last among them."""
    points = list(points)
    step = max(1, math.ceil((len(points) - 1) / (most - 1)))
    picked = [*points[:-1][::step], *points[-1:]]
    text = " ".join(f"({_number(x)}, {_number(y)})" for x, y in picked)
    return text if len(picked) == len(points) else f"{text} of {len(points)} points"


def _number(value: float) -> str:
    return f"{value:.3g}"


@styled
def figure(width: float = WIDTH, height: float = 3.0) -> tuple[Figure, Axes]:
    """An empty figure in the course's style with one pair of axes: `fig, ax = draw.figure()`."""
    fig = Figure(figsize=(min(width, WIDTH), height))
    FigureCanvasAgg(fig)
    return fig, fig.subplots()


def _canvas(height: float, title: str, xlabel: str = "", ylabel: str = "") -> tuple[Figure, Axes]:
    fig, ax = figure(height=height)
    ax.set(title=title, xlabel=xlabel, ylabel=ylabel)
    return fig, ax


# --- float formats -------------------------------------------------------------------------------------------------


def fields(fmt: FloatFormat) -> list[str]:
    """The field of each bit, the most significant first."""
    return ["sign"] + ["exponent"] * fmt.exponent_bits + ["fraction"] * fmt.fraction_bits


@styled
def bits(code: int, fmt: FloatFormat | str | torch.dtype) -> Figure:
    """The pattern of a number, a cell per bit, fields coloured and named, and the product that they stand for.

    Formats of more than 32 bits take two rows.
    """
    fmt = formats.find(fmt)
    number = formats.decode(code, fmt)
    row = 32 if fmt.bits > 32 else fmt.bits
    rows = math.ceil(fmt.bits / row)
    fig, ax = _canvas(0.7 + 0.68 * rows, f"{fmt.name}: {formats.formula(code, fmt)}")
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


@styled
def layouts(names: Sequence[str] = tuple(formats.FORMATS)) -> Figure:
    """One bar per format, cut into sign, exponent and fraction: where the bits go."""
    fig, ax = _canvas(0.9 + 0.29 * len(names), "Sixteen bits can buy range or precision", "bits")
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


@styled
def number_line(names: Sequence[str], low: float, high: float, title: str) -> Figure:
    """A row of marks per format: each number that it can represent between low and high."""
    fig, ax = _canvas(0.9 + 0.42 * len(names), title, "value")
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


@styled
def ranges(names: Sequence[str] = tuple(formats.FORMATS)) -> Figure:
    """A bar per format from its smallest to its largest positive number, the subnormal part hatched.

    float64 is cut off at the edges: its range is eight times as wide as float32's, in powers of ten.
    """
    title = "Exponent bits set the range, fraction bits the digits"
    fig, ax = _canvas(1.0 + 0.32 * len(names), title, "positive numbers, power of ten")
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


@styled
def spacing(names: Sequence[str], low: float, high: float) -> Figure:
    """The gap to the next number against the number, a stair per format; both axes count powers of two."""
    fig, ax = _canvas(3.2, "The gap doubles at every power of two", "value", "gap to the next number")
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
            *zip(*points, strict=True), where="post", label=fmt.name, marker=_MARKERS[row], markevery=4, markersize=4
        )
    ax.set_xscale("log", base=2)
    ax.set_yscale("log", base=2)
    ax.legend()
    return fig


@styled
def neighbourhood(value: float, fmt: FloatFormat | str | torch.dtype) -> Figure:
    """The number that a format stores for a value, between its two neighbours, with both gaps."""
    fmt = formats.find(fmt)
    near = formats.neighbours(value, fmt)
    fig, ax = _canvas(1.25, f"{fmt.name} near {near.nearest:.6g}")
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


# --- plain charts --------------------------------------------------------------------------------------------------


@styled
def lines(
    series: dict[str, tuple[Sequence[float], Sequence[float]]],
    title: str,
    xlabel: str,
    ylabel: str,
    log: str = "",
) -> Figure:
    """Labelled lines: `series` maps a name to its x and its y values; `log` names the logarithmic axes, as in "xy".

    Each line carries its name at its right end.
    """
    fig, ax = _canvas(3.0, title, xlabel, ylabel)
    for name, (x, y) in series.items():
        (line,) = ax.plot(x, y, label=name, markevery=max(1, len(x) // 8))
        ax.annotate(
            name,
            (x[-1], y[-1]),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
            color=line.get_color(),
        )
    if "x" in log:
        ax.set_xscale("log")
        places = sorted({place for x, _ in series.values() for place in x})
        if len(places) <= 8:  # few enough to mark each, in place of powers of ten
            ax.set_xticks(places)
            ax.set_xticks([], minor=True)
            ax.xaxis.set_major_formatter(ScalarFormatter())
    if "y" in log:
        ax.set_yscale("log")
    return fig


@styled
def stacked_bars(rows: dict[str, dict[str, float]], title: str, xlabel: str) -> Figure:
    """A bar per row, stacked from named parts, with the size in each part and the total at its end."""
    fig, ax = _canvas(1.1 + 0.36 * len(rows), title, xlabel)
    parts = list(dict.fromkeys(part for row in rows.values() for part in row))
    colours = ("#BBDDF2", "#F6C9A8", "#BDE8D8", "#EBCBDD", "#DDDDDD")
    hatches = ("", "///", "...", "\\\\\\", "xxx")
    left = [0.0] * len(rows)
    for index, part in enumerate(parts):
        sizes = [row.get(part, 0.0) for row in rows.values()]
        bars = ax.barh(
            range(len(rows)),
            sizes,
            left=left,
            label=part,
            color=colours[index],
            hatch=hatches[index],
            edgecolor="white",
        )
        for bar, size in zip(bars, sizes, strict=True):
            if size:
                ax.text(
                    bar.get_x() + size / 2, bar.get_y() + 0.4, f"{size:g}", ha="center", va="center", fontsize=8,
                    bbox={"boxstyle": "round,pad=0.15", "facecolor": "white", "linewidth": 0},
                )  # fmt: skip
        left = [start + size for start, size in zip(left, sizes, strict=True)]
    for row, total in enumerate(left):
        ax.text(total + max(left) * 0.01, row, f"{total:g}", va="center", weight="bold")
    ax.set_yticks(range(len(rows)), list(rows))
    ax.set(xlim=(0, max(left) * 1.08))
    ax.invert_yaxis()
    ax.grid(axis="y", visible=False)
    fig.legend(loc="outside lower center", ncols=len(parts), fontsize=8)
    return fig


# --- arithmetic intensity ------------------------------------------------------------------------------------------


@styled
def two_times(rows: dict[str, tuple[float, float]], title: str) -> Figure:
    """Two bars per row, the seconds for the memory and for the arithmetic, each with its value, the longer in bold.

    `rows` maps a name to (FLOP / peak, byte / bandwidth). The axis is logarithmic.
    """
    fig, ax = _canvas(0.95 + 0.5 * len(rows), title, "time")
    kinds = {
        "memory: byte / bandwidth": (1, {"color": BLUE}),
        "compute: FLOP / peak": (0, {"facecolor": "white", "edgecolor": VERMILLION, "hatch": "//////"}),
    }
    times = [time for pair in rows.values() for time in pair]
    low = min(times) / 4
    for label, (which, style) in kinds.items():
        places = [row + 0.2 * (1 - 2 * which) for row in range(len(rows))]
        bars = [pair[which] for pair in rows.values()]
        ax.barh(places, bars, height=0.36, label=label, **style)
        for place, time, pair in zip(places, bars, rows.values(), strict=True):
            weight = "bold" if time == max(pair) else "normal"
            ax.text(time * 1.15, place, units.si(time, "s"), va="center", fontsize=8, weight=weight)
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter(EngFormatter("s"))
    ax.set_yticks(range(len(rows)), list(rows))
    ax.set(xlim=(low, max(times) * 6), ylim=(len(rows) - 0.5, -0.5))
    ax.grid(axis="y", visible=False)
    fig.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=8)
    return fig


@styled
def intensity_curves(
    curves: dict[str, tuple[Sequence[float], Sequence[float]]],
    ridges: dict[str, float],
    title: str,
    xlabel: str,
    crossings: Sequence[tuple[float, float]] = (),
) -> Figure:
    """Lines of intensity on logarithmic axes, and a thin line at each ridge, below which memory limits.

    With a single ridge the two sides are shaded. `crossings` are points (x, intensity) to be marked with their x.
    """
    fig, ax = _canvas(3.5, title, xlabel, "intensity (FLOP/byte)")
    left, right = min(min(x) for x, _ in curves.values()), max(max(x) for x, _ in curves.values())
    values = [value for _, y in curves.values() for value in y] + list(ridges.values())
    bottom, top = min(values) / 1.6, max(values) * 2.5
    for name, ridge in ridges.items():
        ax.axhline(ridge, color=BLACK, linewidth=0.9, label=name)
        ax.annotate(
            f"{name}: {ridge:.0f}", (left, ridge), xytext=(3, 2), textcoords="offset points", fontsize=8, va="bottom"
        )
    labels = _apart({name: math.log10(y[-1]) for name, (_, y) in curves.items()}, math.log10(top / bottom) / 16)
    for place, (name, (x, y)) in enumerate(curves.items()):
        colour = (GREEN, PURPLE, BLACK, BLUE, VERMILLION)[place % 5]
        ax.plot(x, y, label=name, marker=_MARKERS[place % 5], markevery=max(1, len(x) // 6), color=colour)
        ax.annotate(
            name, (x[-1], 10 ** labels[name]), xytext=(6, 0), textcoords="offset points",
            va="center", fontsize=8, color=colour,
        )  # fmt: skip
    box = {"boxstyle": "round,pad=0.2", "facecolor": "white", "linewidth": 0}
    for place, (x, y) in enumerate(sorted(crossings)):
        ax.plot([x], [y], "o", color=BLACK, markerfacecolor="white", markersize=7, zorder=4)
        side = {"xytext": (-7, 9), "ha": "right"} if place == 0 and len(crossings) > 1 else {"xytext": (30, 8)}
        ax.annotate(f"{x:.0f}", (x, y), textcoords="offset points", va="center", weight="bold", bbox=box, **side)
    ax.set(xscale="log", yscale="log", xlim=(left, right), ylim=(bottom, top))
    if len(ridges) == 1:
        (ridge,) = ridges.values()
        ax.axhspan(bottom, ridge, color="#E3F0F9", linewidth=0, zorder=0)
        ax.axhspan(ridge, top, facecolor="#FDF3EA", edgecolor="#F6DCC6", hatch="//", linewidth=0, zorder=0)
        ax.text(
            right / 1.1, top / 1.15, "compute-bound", color=VERMILLION, va="top", ha="right", weight="bold", bbox=box
        )
        ax.text(
            right / 1.1, bottom * 1.15, "memory-bound", color=BLUE, va="bottom", ha="right", weight="bold", bbox=box
        )
    ax.grid(visible=False)
    return fig


def _apart(places: dict[str, float], gap: float) -> dict[str, float]:
    """The same places, moved up where two are closer than the gap."""
    moved: dict[str, float] = {}
    for name, place in sorted(places.items(), key=lambda item: item[1]):
        moved[name] = max(place, max(moved.values(), default=-math.inf) + gap)
    return moved


# --- counting FLOPs ------------------------------------------------------------------------------------------------


@styled
def bars(
    sizes: dict[str, float], title: str, xlabel: str, limit: tuple[str, float] | None = None, log: bool = False
) -> Figure:
    """A bar per row with its size beside it; `limit` is a name and a place for a line, bars beyond it are hatched."""
    fig, ax = _canvas((1.2 if limit else 0.95) + 0.34 * len(sizes), title, xlabel)
    low = min(sizes.values()) / 10 if log else 0.0
    far = max(*sizes.values(), limit[1] if limit else 0.0)
    if limit:
        ax.axvline(limit[1], color=BLACK, linewidth=1, label=limit[0])
        left = limit[1] > far / 2  # then the name has its room to the left of the line
        ax.annotate(
            limit[0], (limit[1], len(sizes) - 0.25), xytext=(-4 if left else 4, 0), textcoords="offset points",
            fontsize=8, va="center", ha="right" if left else "left",
        )  # fmt: skip
    for row, (name, size) in enumerate(sizes.items()):
        beyond = limit is not None and size > limit[1]
        look = {"color": "#F6C9A8", "hatch": "///", "edgecolor": VERMILLION} if beyond else {"color": "#BBDDF2"}
        ax.barh(row, size, label=name, **look)
        text = ax.annotate(
            f"{size:.3g}", (size, row), xytext=(5, 0), textcoords="offset points", va="center", weight="bold"
        )
        text.set_bbox({"boxstyle": "square,pad=0.1", "facecolor": "white", "linewidth": 0})
    if log:
        ax.set_xscale("log", nonpositive="clip")
    ax.set(xlim=(low, far * 30 if log else far * 1.12), ylim=(len(sizes) - (0.0 if limit else 0.4), -0.6))
    ax.set_yticks(range(len(sizes)), list(sizes))
    ax.grid(axis="y", visible=False)
    return fig


@styled
def runs(seconds: Sequence[float], title: str) -> Figure:
    """Every single run in its order, with the median and the band that holds the middle half of them."""
    unit, scale = next((u, s) for u, s in (("s", 1), ("ms", 1e3), ("µs", 1e6)) if max(seconds) * s >= 1 or u == "µs")
    times = np.asarray(seconds) * scale
    first, median, third = np.quantile(times, (0.25, 0.5, 0.75))
    fig, ax = _canvas(2.6, title, "run", f"time / {unit}")
    ax.axhspan(first, third, color="#BBDDF2", label="middle half")
    ax.axhline(median, color=BLUE, linewidth=1.2, label="median")
    ax.plot(range(1, len(times) + 1), times, "o", markersize=3, color=BLACK, label="one run")
    ax.set(ylim=(0, times.max() * 1.05))
    fig.legend(loc="outside lower center", ncols=3, fontsize=8)
    return fig
