"""Every figure of the course, and `show`, which displays one with a summary in words.

A drawing function returns a matplotlib Figure and displays nothing; end the cell with `draw.show(figure, alt)`.
"""

import functools
import io
import itertools
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
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
from matplotlib.collections import PathCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.path import Path as MplPath
from matplotlib.patheffects import Normal, Stroke
from matplotlib.text import Text
from matplotlib.textpath import TextPath
from matplotlib.ticker import (
    EngFormatter,
    FuncFormatter,
    LogLocator,
    NullFormatter,
    NullLocator,
    ScalarFormatter,
    StrMethodFormatter,
)
from matplotlib.transforms import Affine2D
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from helpers import formats, units
from helpers.formats import FloatFormat
from helpers.roofline import Roofline
from helpers.storage import layout, offset_of, same_storage

_FILE = Path(__file__).with_name("course.mplstyle")
# Parsed once: a widget redraws often. The backend is no matter of style, and resetting it would load pyplot.
_STYLE = {key: value for key, value in matplotlib.rcParamsDefault.items() if not key.startswith("backend")}
_STYLE |= matplotlib.rc_params_from_file(_FILE, use_default_template=False)

WIDTH = 6.4  # inches; at 110 dpi a figure is at most 704 pixels wide
BLUE, VERMILLION, GREEN, PURPLE, BLACK = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000"
TINTS = ("#BBDDF2", "#F6C9A8", "#BDE8D8", "#EBCBDD", "#DDDDDD")  # of the five colours, for black digits on top
# Words in a colour: darker than the lines and marks, since thin strokes need more contrast with white.
INKS = {BLUE: BLUE, VERMILLION: "#B04A00", GREEN: "#007A59", PURPLE: "#9C4676", BLACK: BLACK}
FIELDS = {"sign": TINTS[1], "exponent": TINTS[0], "fraction": TINTS[2]}
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
def png(figure: Figure, description: str | None = None, *, quick: bool = False) -> bytes:
    """The figure as PNG bytes, the same bytes for the same figure; a description goes into the file's metadata.

    `quick` is for pictures that a widget shows and nobody stores: larger, and made in half the time.
    """
    figure.canvas.draw()
    picture = Image.fromarray(np.asarray(figure.canvas.buffer_rgba())).convert("RGB")
    words = PngInfo()
    if description:
        words.add_itxt("Description", description)
    buffer = io.BytesIO()
    if quick:
        picture.save(buffer, format="png", compress_level=1, pnginfo=words)
        return buffer.getvalue()
    # 64 colours hold a chart and its soft edges, and make the stored notebook a third as large. Hatches are all edges:
    # they need fewer. An octree keeps the colour also of a few pixels, such as a marker or a word.
    hatched = any(patch.get_hatch() for ax in figure.axes for patch in ax.patches)
    colours = 40 if hatched else 64
    few = picture.quantize(colours, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    few.save(buffer, format="png", optimize=True, pnginfo=words)
    return buffer.getvalue()


def summary(figure: Figure) -> str:
    """What a figure shows, in words: title, axes with scale and limits, texts, each labelled line, mark, bar, picture.

    Artists without a label (matplotlib gives them one with a leading underscore) are left out: grid, guides, shades.
    A figure's own label, where it has one, is its last line.
    """
    lines = [f"Title: {figure.get_suptitle()}"] if figure.get_suptitle() else []
    for ax in figure.axes:
        title = ax.get_title(loc="left") or ax.get_title()
        lines += [f"Title: {title}"] if title else []
        lines += [
            _axis(name, axis)
            for name, axis in (("x", ax.xaxis), ("y", ax.yaxis))
            if ax.axison and len(axis.get_ticklocs())
        ]
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
        for picture in ax.images:
            if not picture.get_label().startswith("_"):
                lines.append(f"Picture {picture.get_label()}: {_quarters(np.asarray(picture.get_array()))}")
        named = [text for text in ax.texts if not str(text.get_label()).startswith("_")]
        texts = [" ".join(text.get_text().split()) for text in named if text.get_text().strip()]
        lines += [f"Text: {' | '.join(texts)}"] if texts else []
    return "\n".join([*lines, *([figure.get_label()] if figure.get_label() else [])])


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


def _quarters(pixels: np.ndarray) -> str:
    """The size of a picture, and how bright its quarters are, in reading order."""
    rows, columns = (size // 2 for size in pixels.shape[:2])
    parts = pixels[:rows, :columns], pixels[:rows, columns:], pixels[rows:, :columns], pixels[rows:, columns:]
    size = " × ".join(map(str, pixels.shape))
    return f"{size}, mean of each quarter {' '.join(_number(part.mean()) for part in parts)}"


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
            color=INKS[line.get_color()],
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
    """A bar per row, stacked from named parts, with the size in each part that has room, and the total at its end."""
    fig, ax = _canvas(1.1 + 0.36 * len(rows), title, xlabel)
    parts = list(dict.fromkeys(part for row in rows.values() for part in row))
    hatches = ("", "///", "...", "\\\\\\", "xxx")
    left = [0.0] * len(rows)
    far = max(sum(row.values()) for row in rows.values())
    for index, part in enumerate(parts):
        sizes = [row.get(part, 0.0) for row in rows.values()]
        bars = ax.barh(
            range(len(rows)),
            sizes,
            left=left,
            label=part,
            color=TINTS[index],
            hatch=hatches[index],
            edgecolor="white",
        )
        for bar, size in zip(bars, sizes, strict=True):
            if size > far * (0.015 + 0.013 * len(f"{size:g}")):  # wide enough for its label
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


# --- named dimensions ----------------------------------------------------------------------------------------------


@styled
def groups(rows: dict[str, Sequence[int]], title: str, group: str) -> Figure:
    """A strip of cells per row, in the order of memory: each cell carries its position and the number of its group.

    `group` names what the numbers count, such as head. Same number, same tint.
    """
    fig, ax = _canvas(0.75 + 0.62 * len(rows), title, f"position in memory; the cell says which {group}")
    for row, members in enumerate(rows.values()):
        for position, member in enumerate(members):
            ax.add_patch(
                Rectangle(
                    (position, row - 0.32), 1, 0.64,
                    facecolor=TINTS[member % 5], edgecolor="white", linewidth=1.5,
                )
            )  # fmt: skip
            ax.text(position + 0.5, row, str(member), ha="center", va="center", fontsize=10)
    length = max(map(len, rows.values()))
    ax.set_xticks([position + 0.5 for position in range(length)], map(str, range(length)))
    ax.set_yticks(range(len(rows)), list(rows), family="DejaVu Sans Mono")
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.grid(visible=False)
    ax.set(xlim=(0, length), ylim=(len(rows) - 0.55, -0.45))
    return fig


@styled
def images(pictures: dict[str, torch.Tensor], title: str, columns: int = 1) -> Figure:
    """Pictures side by side under one title, each with its name and its shape.

    A picture is a tensor of axes (height, width), drawn in greys, or (height, width, channel) with three channels;
    0 is black and 1 is white. Raises ValueError for any other shape.
    """
    for name, picture in pictures.items():
        if picture.ndim not in (2, 3) or (picture.ndim == 3 and picture.shape[2] != 3):
            raise ValueError(
                f"a picture has the axes (height, width) or (height, width, 3), {name!r} has {tuple(picture.shape)}"
            )
    rows = math.ceil(len(pictures) / columns)
    shapes = [tuple(picture.shape) for picture in pictures.values()]
    # The tallest picture of each row sets its height, at one scale for all columns.
    width = (WIDTH - 0.2) / columns - 0.15
    heights = [
        max(min(width * height / breadth, 2.2) for height, breadth, *_ in shapes[row * columns : (row + 1) * columns])
        for row in range(rows)
    ]
    fig = Figure(figsize=(WIDTH, 0.35 + sum(heights) + 0.42 * rows))
    FigureCanvasAgg(fig)
    fig.suptitle(title, x=0.01, ha="left", fontsize=10, weight="bold")
    axes = fig.subplots(rows, columns, squeeze=False, height_ratios=heights).flat
    for ax, (name, picture) in itertools.zip_longest(axes, pictures.items(), fillvalue=("", None)):
        ax.set(xticks=[], yticks=[])
        ax.grid(visible=False)
        ax.spines[:].set(visible=picture is not None, color=_GREY, linewidth=0.8)  # white pictures end somewhere
        if picture is not None:
            pixels = picture.detach().cpu().clamp(0, 1).numpy()
            ax.imshow(pixels, cmap="gray", vmin=0, vmax=1, interpolation="nearest", label=name)
            ax.set_anchor("NW")
            label = f"{name}   {tuple(picture.shape)}"
            ax.set_title(label, fontsize=8, weight="normal", family="DejaVu Sans Mono", loc="left")
    return fig


# --- storage and strides -------------------------------------------------------------------------------------------

_HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx")
MOST_CELLS = 96
_GREY = "#767676"
_LANE = 0.85  # height of a view's lane under the strip; lengths here are in storage cells
_MARGIN = 2.4  # room for the names at the left


@styled
def storage(views: torch.Tensor | dict[str, torch.Tensor], title: str) -> Figure:
    """Tensors as grids, and below them the one storage that they share, as a strip with a lane per tensor.

    A lane marks the cells that its tensor touches, with the position of the element: 0 for the first, 1 for the next;
    `×3` where three elements share the cell. For a single tensor, arrows show the step of each dimension.
    Up to five tensors of at most three dimensions and 96 elements, on a storage of at most 96 cells.
    Raises ValueError for tensors that do not fit or are of different storages.
    """
    single = isinstance(views, torch.Tensor)
    views = {"": views} if single else views
    cells = _cells(views)
    columns = math.ceil(len(cells) / math.ceil(len(cells) / 24))
    width = max(columns, 18) + _MARGIN
    scale = (WIDTH - 0.15) / (width + 0.1)  # inches for a cell
    places, head = _place_grids(views, width, 0.058 / scale)
    steps = _steps(views[""]) if single else []
    strip = _Strip(columns, -head - 0.9 * len(steps), 2.1 + _LANE * len(views))
    bottom = strip.at(len(cells) - 1)[1] - strip.height + 0.25
    height = 0.4 - bottom * scale
    fig, ax = _canvas(height, title)
    fig.set_layout_engine("none")  # it would measure every cell, twice
    ax.set_position((0.01, 0, 0.98, 1 - 0.35 / height))
    ax.axis("off")
    ax.set(xlim=(0, width + 0.1), ylim=(bottom, 0))
    boxes = _draw_strip(ax, strip, cells)
    for lane, (name, (x, y)) in enumerate(zip(views, places, strict=True)):
        boxes += _draw_grid(ax, name, views[name], lane, x, y)
        boxes += _draw_lane(ax, strip, name, views[name], lane, len(cells))
    _draw_cells(ax, boxes)
    for level, k in enumerate(steps):
        higher = [strip.at(views[""].storage_offset() + views[""].stride(other))[0] for other in steps[level + 1 :]]
        _draw_step(ax, strip, views[""], k, 0.4 + 0.9 * level, higher)
    touched = (f"{name or 'tensor'} in order: {_numbers(offsets(view))}" for name, view in views.items())
    fig.set_label("Offsets touched: " + "; ".join(touched))
    return fig


@dataclass(frozen=True)
class _Strip:
    """Where the storage strip lies: its cells in a row, the top of the first row, and the height of a row."""

    columns: int
    top: float
    height: float

    def at(self, offset: int) -> tuple[float, float]:
        """The upper left corner of a cell."""
        return _MARGIN + offset % self.columns, self.top - self.height * (offset // self.columns)


@dataclass(frozen=True)
class _Cell:
    """A box with a number in it, from its lower left corner. `lane` chooses colour and hatch, None is white."""

    x: float
    y: float
    height: float
    text: str
    lane: int | None = None


def _cells(views: dict[str, torch.Tensor]) -> list[Any]:
    """The values on the storage that all the views share, in order; refuses what cannot be drawn."""
    first = next(iter(views.values()))
    count = layout(first).storage_bytes // first.element_size()
    if not 1 <= count <= MOST_CELLS or len(views) > len(TINTS):
        raise ValueError(
            f"a strip has 1 to {MOST_CELLS} cells and at most {len(TINTS)} tensors, got {count} and {len(views)}"
        )
    for name, view in views.items():
        if view.dim() > 3 or view.numel() > MOST_CELLS:
            limits = f"a grid has at most 3 dimensions and {MOST_CELLS} elements"
            raise ValueError(f"{limits}, {name or 'this tensor'} has shape {tuple(view.shape)}")
        if not same_storage(first, view) or view.dtype != first.dtype:
            raise ValueError(f"{name} has another storage or dtype: a strip shows the views of one storage")
    return torch.as_strided(first.detach(), (count,), (1,), 0).tolist()


def offsets(view: torch.Tensor) -> list[int]:
    """The storage offset of each element, in the order of the elements."""
    return [offset_of(index, view) for index in itertools.product(*map(range, view.shape))]


def _numbers(numbers: list[int], most: int = 32) -> str:
    return " ".join(map(str, numbers[:most])) + (" …" if len(numbers) > most else "")


def _grid_words(name: str, view: torch.Tensor) -> list[str]:
    words = [f"shape {tuple(view.shape)}", f"stride {view.stride()}, offset {view.storage_offset()}"]
    return [name, *words] if name else words


def _place_grids(
    views: dict[str, torch.Tensor], width: float, letter: float
) -> tuple[list[tuple[float, float]], float]:
    """The upper left corner of each grid, set like words on lines, and the height of all. A letter is so many cells."""
    corners, x, y, line = [], 0.0, 0.0, 0.0
    for name, view in views.items():
        words = _grid_words(name, view)
        slices, rows, columns = (1,) * (3 - view.dim()) + tuple(view.shape)
        wide = max(slices * (columns + 0.6) + 0.5, max(map(len, words)) * letter + 0.8)
        tall = rows + 0.62 * len(words) + (0.8 if name else 1.3)
        if x and x + wide > width:
            x, y, line = 0.0, y - line, 0.0
        corners.append((x, y))
        x, line = x + wide, max(line, tall)
    return corners, line - y


def _draw_grid(ax: Axes, name: str, view: torch.Tensor, lane: int, x: float, y: float) -> list[_Cell]:
    """The words and the elements of a tensor; a third dimension stands side by side."""
    words = _grid_words(name, view)
    for number, line in enumerate(words):
        weight = "bold" if name and not number else "normal"
        ax.text(x + 0.1, y - 0.62 * number - 0.1, line, ha="left", va="top", fontsize=8, weight=weight)
    shape = (1,) * (3 - view.dim()) + tuple(view.shape)
    columns = shape[-1]
    left, top = x + (0.1 if name else 0.6), y - 0.62 * len(words) - (0.3 if name else 0.8)
    if not name:
        for k, size in enumerate(view.shape):
            if size > 1:
                ends = {1: (1.0, 0, 0.12), 2: (0, -1.0, 0.12), 3: (columns + 0.6, 0, 0.5)}[view.dim() - k]
                _draw_axis(ax, k, left, top, *ends)
    places = itertools.product(*map(range, shape))
    return [
        _Cell(left + s * (columns + 0.6) + c, top - r - 1, 1, _text(value), lane)
        for (s, r, c), value in zip(places, view.flatten().tolist(), strict=True)
    ]


def _draw_axis(ax: Axes, k: int, left: float, top: float, right: float, down: float, lift: float) -> None:
    """An arrow from the first element of a grid to its neighbour in dimension k, outside of the grid."""
    x, y = (left - lift, top - 0.5) if down else (left + 0.5, top + lift)
    style = {"arrowstyle": "->", "color": _DIM_COLOURS[k], "linewidth": 1.3, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", (x + right, y + down), (x, y), arrowprops=style)


_DIM_COLOURS = (BLUE, VERMILLION, GREEN)


def _draw_strip(ax: Axes, strip: _Strip, cells: list[Any]) -> list[_Cell]:
    """The storage with its offsets, in rows."""
    corners = [strip.at(offset) for offset in range(len(cells))]
    for x, y in corners[:: strip.columns]:
        name = {"ha": "right", "va": "center", "label": "_name"}
        ax.text(x - 0.15, y - 0.5, "storage", fontsize=8, **name)
        ax.text(x - 0.15, y - 1.33, "offset", fontsize=7, color=_GREY, **name)
    _draw_numbers(ax, [str(k) for k in range(len(cells))], [(x + 0.5, y - 1.33) for x, y in corners], 7, _GREY)
    return [_Cell(x, y - 1, 1, _text(value)) for (x, y), value in zip(corners, cells, strict=True)]


def _draw_lane(ax: Axes, strip: _Strip, name: str, view: torch.Tensor, lane: int, count: int) -> list[_Cell]:
    """The cells that a tensor touches, with the position of the element in each."""
    below = 1.72 + _LANE * (lane + 1)
    for start in range(0, count, strip.columns):
        x, y = strip.at(start)
        place = {"ha": "right", "va": "center", "fontsize": 8, "label": "_name"}
        ax.text(_MARGIN - 0.15, y - below + 0.37, name or "order", **place)
    found: dict[int, list[int]] = {}
    for position, offset in enumerate(offsets(view)):
        found.setdefault(offset, []).append(position)
    boxes = []
    for offset, order in found.items():
        x, y = strip.at(offset)
        boxes.append(_Cell(x, y - below, 0.75, str(order[0]) if len(order) == 1 else f"×{len(order)}", lane))
    return boxes


@functools.lru_cache(maxsize=1024)
def _glyphs(text: str, size: float) -> MplPath:
    """The outline of a short text, centred, in points."""
    outline = TextPath((0, 0), text, size=size)
    box = outline.get_extents()
    middle = size * 0.365 if any(letter.isalnum() for letter in text) else (box.y0 + box.y1) / 2
    return outline.transformed(Affine2D().translate(-(box.x0 + box.x1) / 2, -middle))


def _draw_numbers(
    ax: Axes, texts: Sequence[str], places: Sequence[tuple[float, float]], size: float, colour: str
) -> None:
    points = Affine2D().scale(ax.figure.dpi / 72)
    marks = PathCollection(
        [_glyphs(text, size) for text in texts],
        offsets=places,
        offset_transform=ax.transData,
        facecolor=colour,
        zorder=3,
    )
    marks.set_transform(points)
    ax.add_collection(marks, autolim=False)


def _draw_cells(ax: Axes, cells: Sequence[_Cell]) -> None:
    """All boxes in a few collections and all numbers in one: a widget redraws them at every change."""
    for lane in {cell.lane: None for cell in cells}:
        colour, hatch = ("white", "") if lane is None else (TINTS[lane], _HATCHES[lane])
        mine = [cell for cell in cells if cell.lane == lane]
        boxes = [_box(cell.x, cell.y, 1, cell.height) for cell in mine]
        ax.add_collection(PolyCollection(boxes, facecolor=colour, edgecolor=_GREY, linewidth=0.6), autolim=False)
        if hatch:
            lines = {"facecolor": "none", "hatch": hatch, "edgecolor": _GREY, "linewidth": 0, "alpha": 0.5}
            ax.add_collection(PolyCollection(boxes, **lines), autolim=False)
            backs = [_box(cell.x + 0.17, cell.y + cell.height / 2 - 0.27, 0.66, 0.54) for cell in mine]
            ax.add_collection(PolyCollection(backs, facecolor=colour, linewidth=0), autolim=False)
    places = [(cell.x + 0.5, cell.y + cell.height / 2) for cell in cells]
    _draw_numbers(ax, [cell.text for cell in cells], places, 8, "black")


def _box(x: float, y: float, width: float, height: float) -> list[tuple[float, float]]:
    return [(x, y), (x + width, y), (x + width, y + height), (x, y + height)]


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _steps(view: torch.Tensor) -> list[int]:
    """The dimensions in which there is a neighbour, the shortest step first."""
    moving = [k for k, size in enumerate(view.shape) if size > 1 and view.numel()]
    return sorted(moving, key=lambda k: (view.stride(k), -k))


def _draw_step(ax: Axes, strip: _Strip, view: torch.Tensor, k: int, level: float, higher: list[float]) -> None:
    """The step along the strip from the first element to its neighbour in dimension k; its label keeps off `higher`."""
    start, colour = view.storage_offset(), _DIM_COLOURS[k]
    (x0, y0), (x1, y1) = strip.at(start), strip.at(start + view.stride(k))
    arrow = {"arrowstyle": "->", "color": colour, "linewidth": 1.3, "shrinkA": 0, "shrinkB": 0}
    up, shift = y0 + level, 0.5 if y0 == y1 else 0.12  # on the way to another row, beside the digits
    rise = [x0, x0, x1] if y0 == y1 else [x0, x0]
    ax.plot([x + shift for x in rise], [y0, up, up][: len(rise)], color=colour, linewidth=1.3, marker="")
    ax.annotate("", (x1 + shift, y1), (rise[-1] + shift, up if y0 == y1 else y0 - 1), arrowprops=arrow)
    at = max(rise)
    for other in sorted(higher):
        if at <= other < at + 4:
            at = other
    label = f"dim {k}: +{view.stride(k)}"
    ax.text(at + shift + 0.2, up, label, ha="left", va="center", fontsize=8, color=INKS[colour])


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
        ax.plot(x, y, label=name, marker=_MARKERS[place % 5], markevery=max(1, len(x) // 6), color=colour,
                path_effects=[Stroke(linewidth=4, foreground="white"), Normal()])  # fmt: skip  # off the shades
        ax.annotate(
            name, (x[-1], 10 ** labels[name]), xytext=(6, 0), textcoords="offset points",
            va="center", fontsize=8, color=INKS[colour],
        )  # fmt: skip
    box = {"boxstyle": "round,pad=0.1", "facecolor": "white", "linewidth": 0}
    places = {f"{x:.0f}": x for x, _ in sorted(crossings)}
    for place, (text, x) in enumerate(places.items()):
        points = [(other, y) for other, y in crossings if f"{other:.0f}" == text]
        ax.plot(*zip(*points, strict=True), "o", color=BLACK, markerfacecolor="white", markersize=7, zorder=4)
        if len(points) > 1:  # one below the other: a guide, and the number at its foot
            ax.axvline(x, color=BLACK, linewidth=0.8, linestyle=":")
            where, side = (x, bottom), {"xytext": (5, 10), "ha": "left"}
        else:
            last = place + 1 == len(places)  # its number goes to the right, that of the others to the left
            where, side = points[0], {"xytext": (30, 8) if last else (-7, 9), "ha": "left" if last else "right"}
        ax.annotate(text, where, textcoords="offset points", va="center", weight="bold", bbox=box, **side)
    ax.set(xscale="log", yscale="log", xlim=(left, right), ylim=(bottom, top))
    if len(ridges) == 1:
        (ridge,) = ridges.values()
        ax.axhspan(bottom, ridge, color="#E3F0F9", linewidth=0, zorder=0)
        ax.axhspan(ridge, top, facecolor="#FDF3EA", edgecolor="#F6DCC6", hatch="//", linewidth=0, zorder=0)
        side = {"ha": "right", "weight": "bold", "bbox": box}
        ax.text(right / 1.1, top / 1.15, "compute-bound", color=INKS[VERMILLION], va="top", **side)
        ax.text(right / 1.1, bottom * 1.15, "memory-bound", color=BLUE, va="bottom", **side)
    ax.grid(visible=False)
    return fig


def _apart(places: dict[str, float], gap: float) -> dict[str, float]:
    """The same places, moved up where two are closer than the gap."""
    moved: dict[str, float] = {}
    for name, place in sorted(places.items(), key=lambda item: item[1]):
        moved[name] = max(place, max(moved.values(), default=-math.inf) + gap)
    return moved


# --- rooflines -----------------------------------------------------------------------------------------------------

# A region by colour, by hatch and by name; the marker of the points in it.
_REGIONS = {
    "memory-bound": ("#E3F0F9", BLUE, "/", "o"),
    "in between": ("#DDF3EB", GREEN, "x", "D"),
    "compute-bound": ("#FCE9DD", VERMILLION, ".", "s"),
}
_DASHES = ("-", (0, (6, 2)), (0, (2, 1.5)), (0, (7, 2, 1.5, 2)), (0, (1, 1)))


@dataclass(frozen=True)
class Point:
    """An op on a roofline plot: its intensity in FLOP/B, and the FLOP/s predicted for it, measured on it, or both."""

    label: str
    intensity: float
    predicted: float | None = None
    measured: float | None = None


@styled
def roofline(
    roofs: Mapping[str, Roofline],
    points: Sequence[Point] = (),
    title: str = "Below the ridge bandwidth is the limit, above it the peak",
    *,
    intensities: tuple[float, float] | None = None,
    rates: tuple[float, float] | None = None,
    datasheet: Collection[str] = (),
    height: float = 4.0,
) -> Figure:
    """Attainable FLOP/s against intensity, both logarithmic: a roof per machine, dtype, unit or memory; ops as points.

    A roof is blue where the bandwidth limits it and vermillion where the peak does; several differ by their dashes, and
    those named in `datasheet` are thin and black. Behind them the regions: memory-bound below every ridge,
    compute-bound above every ridge, and in between what depends on the roof. A point is open and dashed where
    predicted, filled where measured; a thin line joins the two. `intensities` and `rates` are the ends of the axes.

    Raises ValueError where there is no roof to draw.
    """
    if not roofs:
        raise ValueError("a roofline plot has at least one roof: pass {'name': Roofline(peak, bandwidth)}")
    fig, ax = _canvas(height, title, "arithmetic intensity (FLOP/B)", "FLOP/s")
    ridges = [roof.ridge for roof in roofs.values()]
    places = [point.intensity for point in points] + ridges
    low, high = intensities or (min(places) / 8, max(places) * 8)
    heights = [rate for point in points for rate in (point.predicted, point.measured) if rate]
    heights += [rate for roof in roofs.values() for rate in (roof.attainable(low), roof.peak)]
    floor, ceiling = rates or (min(heights) / 1.5, max(heights) * (1.5 * max(heights) / min(heights)) ** 0.2)
    ax.grid(visible=False)  # under the hatches it would only be noise
    ax.set(xscale="log", yscale="log", xlim=(low, high), ylim=(floor, ceiling))
    ax.yaxis.set_major_formatter(EngFormatter(sep=" "))
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    for axis, (start, stop) in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if stop / start < 100 else (1,)))
        axis.set_minor_locator(NullLocator())  # half of the time of a redraw
    for (name, roof), dashes in zip(roofs.items(), itertools.cycle(_DASHES)):
        _roof(ax, name, roof, (low, high), "thin" if name in datasheet else dashes)
    edges = min(ridges), max(ridges)
    for point in points:
        _point(ax, point, _REGIONS[_region(point.intensity, *edges)])
    key = any(point.predicted for point in points) and any(point.measured for point in points)
    if key:
        _key(fig)
    # Margins in inches, instead of a layout that needs several passes: a widget redraws often.
    fig.set_layout_engine("none")
    bottom = 0.78 if key else 0.5
    ax.set_position((0.62 / WIDTH, bottom / height, 1 - 0.82 / WIDTH, 1 - (bottom + 0.28) / height))
    labels = _Labels(ax)
    _name_regions(labels, (low, *edges, high))
    for point in points:
        labels.avoid_marks([(point.intensity, rate) for rate in (point.predicted, point.measured) if rate])
    _name_roofs(labels, roofs, (low, high))
    for point in points:
        labels.beside((point.intensity, point.measured or point.predicted), point.label)
    return fig


def _region(intensity: float, first: float, last: float) -> str:
    """The region of an intensity between the lowest and the highest ridge."""
    return "memory-bound" if intensity < first else "in between" if intensity < last else "compute-bound"


def _roof(ax: Axes, name: str, roof: Roofline, ends: tuple[float, float], dashes: Any) -> None:
    """The slanted part and the flat part."""
    thin = dashes == "thin"
    style = {"linestyle": "-" if thin else dashes, "linewidth": 1.0 if thin else 2.4, "marker": "", "zorder": 3}
    low, high = ends
    ridge = min(max(roof.ridge, low), high)
    top = roof.attainable(ridge)
    if low < ridge:
        line = (low, ridge), (roof.attainable(low), top)
        ax.plot(*line, color=BLACK if thin else BLUE, label=f"{name}, memory roof", **style)
    if ridge < high:
        ax.plot((ridge, high), (top, roof.peak), color=BLACK if thin else VERMILLION, label=f"{name}, peak", **style)


def _point(ax: Axes, point: Point, look: tuple[str, str, str, str]) -> None:
    _, colour, _, marker = look
    if point.predicted and point.measured:
        ax.plot([point.intensity] * 2, [point.predicted, point.measured], color="#555555", linewidth=0.9, marker="",
                label="_gap", zorder=4)  # fmt: skip
    if point.predicted:
        ax.scatter([point.intensity], [point.predicted], s=62, marker=marker, facecolor="white", edgecolor=colour,
                   linewidth=1.5, linestyle=(0, (1.6, 0.9)), zorder=5, label=f"{point.label} predicted")  # fmt: skip
    if point.measured:
        ax.scatter([point.intensity], [point.measured], s=52, marker=marker, facecolor=colour, edgecolor="white",
                   linewidth=0.8, zorder=6, label=f"{point.label} measured")  # fmt: skip


def _key(fig: Figure) -> None:
    look = {"linestyle": "", "marker": "o", "markersize": 7}
    predicted = Line2D([], [], markerfacecolor="white", markeredgecolor=BLACK, label="predicted (open, dashed)", **look)
    measured = Line2D([], [], color=BLACK, label="measured (filled)", **look)
    fig.legend(handles=[predicted, measured], loc="lower center", ncols=2, fontsize=9, borderaxespad=0.2)


def _name_regions(labels: "_Labels", bounds: tuple[float, float, float, float]) -> None:
    """Shade the regions that are in view and write their names along the top."""
    ax, (low, high) = labels.ax, (bounds[0], bounds[-1])
    for (name, (tint, colour, hatch, _)), (left, right) in zip(
        _REGIONS.items(), itertools.pairwise(bounds), strict=True
    ):
        left, right = max(left, low), min(right, high)
        if left < right:
            ax.axvspan(left, right, facecolor=tint, edgecolor=colour, alpha=0.55, hatch=hatch, linewidth=0, zorder=0)
            text = ax.text(math.sqrt(left * right), 0, name, color=BLACK, fontsize=9.5, weight="bold", va="top",
                           ha="center", zorder=8, bbox=_plate(colour))  # fmt: skip
            labels.on_top(text)


def _name_roofs(labels: "_Labels", roofs: Mapping[str, Roofline], ends: tuple[float, float]) -> None:
    """A roof has its name where it differs from the others, and its rates wherever they are not written yet."""
    peaks, slopes = ([getattr(roof, name) for roof in roofs.values()] for name in ("peak", "bandwidth"))
    for place, (name, roof) in enumerate(roofs.items()):
        own_peak = peaks.count(roof.peak) == 1
        own_slope = slopes.count(roof.bandwidth) == 1
        flat, slant = units.si(roof.peak, "FLOP/s"), units.si(roof.bandwidth, "B/s")
        if own_peak or roof.peak not in peaks[:place]:
            labels.on_flat(roof, ends, f"{name}: {flat}" if own_peak or not own_slope else flat)
        if own_slope or roof.bandwidth not in slopes[:place]:
            labels.on_slant(roof, ends, f"{name}: {slant}" if own_slope and not own_peak else slant)


def _plate(colour: str = "white") -> dict[str, Any]:
    """What lies behind a label, so that hatches do not run through it."""
    return {"boxstyle": "square,pad=0.12", "facecolor": "white", "edgecolor": colour, "linewidth": 0.0, "alpha": 0.9}


class _Labels:
    """Places labels in a plot one after the other: each at the first of its places that is free, or nearly so.

    What is taken is kept as an array of boxes in pixels (left, bottom, right, top), each with a weight.
    """

    def __init__(self, ax: Axes) -> None:
        self.ax = ax
        self._frame = ax.bbox
        self._renderer = ax.figure.canvas.get_renderer()
        self._boxes = np.empty((0, 5))
        for line in ax.lines:
            (x0, y0), (x1, y1) = self._pixels(line.get_xydata())[[0, -1]]
            steps = np.linspace(0, 1, max(2, int(math.hypot(x1 - x0, y1 - y0) / 5)))
            for step in steps:
                x, y = x0 + step * (x1 - x0), y0 + step * (y1 - y0)
                self._take((x - 2, y - 2, x + 2, y + 2), 1)

    def _pixels(self, points: Any) -> np.ndarray:
        return self.ax.transData.transform(np.asarray(points, dtype=float))

    def _take(self, box: tuple[float, float, float, float], weight: float) -> None:
        self._boxes = np.vstack([self._boxes, [*box, weight]])

    def avoid_marks(self, points: Sequence[tuple[float, float]]) -> None:
        """Keep later labels off these points."""
        for x, y in self._pixels(points):
            self._take((x - 6, y - 6, x + 6, y + 6), 30)

    def _trouble(self, boxes: Sequence[tuple[float, float, float, float]]) -> float:
        """How much is in the way of these boxes, and how far they leave the plot."""
        total, taken, frame = 0.0, self._boxes, self._frame
        for left, bottom, right, top in boxes:
            wide = np.minimum(taken[:, 2], right) - np.maximum(taken[:, 0], left)
            high = np.minimum(taken[:, 3], top) - np.maximum(taken[:, 1], bottom)
            hit = (wide > 0) & (high > 0)
            total += float(taken[hit, 4].sum())
            outside = max(frame.x0 - left, 0) + max(right - frame.x1, 0)
            total += 20 * (outside + max(frame.y0 - bottom, 0) + max(top - frame.y1, 0))
        return total

    def _size(self, text: Text) -> tuple[float, float]:
        box = text.get_window_extent(self._renderer)
        return box.width + 4, box.height + 2

    def _settle(self, text: Text, places: Sequence[tuple[float, float, float]]) -> tuple[float, float]:
        """Move the text's centre to the best of (x, y, malus) in pixels."""
        angle, text_angle = math.radians(text.get_rotation()), text.get_rotation()
        text.set_rotation(0)
        width, height = self._size(text)
        text.set_rotation(text_angle)

        def boxes(x: float, y: float) -> list[tuple[float, float, float, float]]:
            # A slanted label is covered by boxes along its length.
            count = 1 if not text_angle else max(1, round(width / height))
            w, h = (width, height) if count == 1 else (height, height)
            along = [(i + 0.5) / count - 0.5 for i in range(count)]
            centres = [(x + a * width * math.cos(angle), y + a * width * math.sin(angle)) for a in along]
            return [(cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2) for cx, cy in centres]

        best, x, y = math.inf, 0.0, 0.0
        for across, up, malus in sorted(places, key=lambda place: place[2]):
            if malus >= best:  # the others can only be worse
                break
            if (score := self._trouble(boxes(across, up)) + malus) < best:
                best, x, y = score, across, up
        for box in boxes(x, y):
            self._take(box, 40)
        text.set_position(self.ax.transData.inverted().transform((x, y)))
        return x, y

    def _text(self, content: str, **style: Any) -> Text:
        style = {"fontsize": 9, "ha": "center", "va": "center", "zorder": 7, "bbox": _plate()} | style
        text = self.ax.text(1, 1, content, **style)
        text.set_in_layout(False)
        return text

    def on_top(self, text: Text) -> None:
        """At the top edge, moved sideways as far as the names already there ask for."""
        text.set(va="center", in_layout=False)
        width, height = self._size(text)
        centre = self._pixels([(text.get_position()[0], 1)])[0, 0]
        x0, x1 = self._frame.x0 + width / 2, self._frame.x1 - width / 2
        y = self._frame.y1 - height / 2 - 3
        shifts = [shift for step in range(0, 200, 4) for shift in (step, -step)]
        self._settle(text, [(min(max(centre + s, x0), x1), y, abs(s) / 8) for s in shifts])

    def on_flat(self, roof: Roofline, ends: tuple[float, float], content: str) -> None:
        """Along the flat part of a roof: at its right end, or further left; above it, or below."""
        if roof.ridge >= ends[1]:
            return
        text = self._text(content, color=BLACK)
        width, height = self._size(text)
        (x0, y), (x1, _) = self._pixels([(max(roof.ridge, ends[0]), roof.peak), (ends[1], roof.peak)])
        x1 -= width / 2 + 3
        x0 = min(x0 + width / 2, x1)
        self._settle(
            text,
            [
                (x1 + (x0 - x1) * step / 8, y + side * (height / 2 + 2), step / 4 + (side < 0) * 2)
                for step in range(9)
                for side in (1, -1)
            ],
        )

    def on_slant(self, roof: Roofline, ends: tuple[float, float], content: str) -> None:
        """Along the slanted part of a roof, turned with it: above it, or below."""
        right = min(roof.ridge, ends[1])
        if right <= ends[0]:
            return
        (x0, y0), (x1, y1) = self._pixels([(ends[0], roof.attainable(ends[0])), (right, roof.attainable(right))])
        angle = math.atan2(y1 - y0, x1 - x0)
        text = self._text(content, color=BLACK, rotation=math.degrees(angle), rotation_mode="anchor")
        places = []
        for step in (0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8, 0.15, 0.9):
            for side in (1, -1):
                x, y = x0 + step * (x1 - x0), y0 + step * (y1 - y0)
                off = side * 11
                places.append((x - off * math.sin(angle), y + off * math.cos(angle), abs(step - 0.5) + (side < 0) * 2))
        self._settle(text, places)

    def beside(self, point: tuple[float, float], content: str) -> None:
        """Next to a point, on a free side; further away with a thin line to it."""
        (x, y) = self._pixels([point])[0]
        text = self._text(content)
        width, height = self._size(text)
        places = []
        for distance in (8, 16, 28, 44, 64):
            for turn in range(16):
                angle = 2 * math.pi * turn / 16
                dx, dy = math.cos(angle), math.sin(angle)
                places.append((x + dx * (distance + width / 2), y + dy * (distance + height / 2), distance / 8))
        found = self._settle(text, places)
        if math.hypot(max(abs(found[0] - x) - width / 2, 0), max(abs(found[1] - y) - height / 2, 0)) > 14:
            end = self.ax.transData.inverted().transform(found)
            self.ax.plot([point[0], end[0]], [point[1], end[1]], color="#555555", linewidth=0.7, marker="",
                         label="_leader", zorder=4.5)  # fmt: skip


@styled
def memory_steps(
    bandwidths: Mapping[int, float], caches: Mapping[str, int], title: str = "Each cache that overflows is a step down"
) -> Figure:
    """Byte/s against the working set in byte, both logarithmic, with a line at the size of each cache."""
    fig, ax = _canvas(3.1, title, "working set", "B/s")
    ax.plot(list(bandwidths), list(bandwidths.values()), color=BLUE, marker="o", label="measured")
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    low, high = min(bandwidths.values()), max(bandwidths.values())
    ax.set(ylim=(low / 2, high * 3))
    for name, size in caches.items():
        ax.axvline(size, color=BLACK, linewidth=1, linestyle=(0, (4, 3)), marker="", label=f"_{name}")
        ax.annotate(f"{name}\n{units.iec(size)}", (size, high * 2.8), xytext=(3, 0), textcoords="offset points",
                    va="top", fontsize=9)  # fmt: skip
    sizes = sorted(bandwidths)
    for size in (sizes[0], sizes[-1]):
        ax.annotate(units.si(bandwidths[size], "B/s"), (size, bandwidths[size]), xytext=(0, -14),
                    textcoords="offset points", ha="left" if size == sizes[0] else "right", fontsize=9)  # fmt: skip
    step = max(1, len(sizes) // 6)
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.set_xticks(sizes[::step], [units.iec(size) for size in sizes[::step]])
    ax.yaxis.set_major_formatter(EngFormatter(sep=" "))
    return fig


# --- a transformer's budget ----------------------------------------------------------------------------------------

_TERMS = {  # the look of each term of memory, by name
    "parameters": ("#BBDDF2", ""), "weights": ("#BBDDF2", ""), "gradients": ("#F6C9A8", "///"),
    "optimizer": ("#BDE8D8", "..."), "activations": ("#EBCBDD", "\\\\\\"), "KV cache": ("#EBCBDD", "\\\\\\"),
    "logits": ("#DDDDDD", "xxx"),
}  # fmt: skip


@styled
def budget(memory: Mapping[str, float], capacity: float, times: tuple[float, float], title: str) -> Figure:
    """What fits and what bounds: the memory by term against a device's capacity, above the two times of a step.

    `memory` maps the name of a term to its bytes; `times` are the seconds of the arithmetic and of the memory.
    """
    # A fixed layout, since the explorer redraws at every step of a slider.
    fig = Figure(figsize=(WIDTH, 3.2), layout="none")
    FigureCanvasAgg(fig)
    top, bottom = fig.subplots(2, 1, height_ratios=(1, 1.25))
    fig.subplots_adjust(left=0.125, right=0.975, top=0.92, bottom=0.19, hspace=0.5)
    top.set_title(title)
    total, left, far = sum(memory.values()), 0.0, 1.3 * max(*memory.values(), sum(memory.values()), capacity)
    for name, size in memory.items():
        colour, hatch = _TERMS[name]
        top.barh(0, size, left=left, label=name, color=colour, hatch=hatch, edgecolor="white")
        left += size
    top.axvline(capacity, color=BLACK, linewidth=1.2, label="capacity")
    verdict = "fits" if total <= capacity else "does not fit"
    top.annotate(
        f"{units.si(total, 'B')}: {verdict}", (total, 0), xytext=(5, 0), textcoords="offset points", va="center",
        weight="bold", color=BLACK if total <= capacity else INKS[VERMILLION],
        bbox={"boxstyle": "square,pad=0.1", "facecolor": "white", "linewidth": 0},
    )  # fmt: skip
    top.annotate(
        f"device: {units.si(capacity, 'B')}",
        (capacity, 0.68),
        xytext=(4, 0),
        textcoords="offset points",
        va="center",
        fontsize=8,
    )
    top.set(xlim=(0, far), ylim=(-0.5, 0.95), yticks=[0], yticklabels=["memory"])
    top.xaxis.set_major_formatter(EngFormatter("B"))
    kinds = {
        "arithmetic": {"facecolor": "white", "edgecolor": VERMILLION, "hatch": "//////"},
        "moving": {"color": BLUE},
    }
    for row, ((name, look), seconds) in enumerate(zip(kinds.items(), times, strict=True)):
        bottom.barh(row, seconds, height=0.6, label=name, **look)
        bound = ": bounds the step" if seconds == max(times) else ""
        bottom.annotate(
            f"{units.duration(seconds)}{bound}", (seconds, row), xytext=(5, 0), textcoords="offset points",
            va="center", fontsize=8, weight="bold" if bound else "normal",
        )  # fmt: skip
    bottom.set_xscale("log")
    bottom.set(xlim=(min(times) / 5, max(times) * 60), ylim=(1.5, -0.5), yticks=[0, 1], yticklabels=list(kinds))
    bottom.xaxis.set_major_formatter(EngFormatter("s"))
    bottom.xaxis.set_minor_locator(NullLocator())  # half of the time to draw went into minor ticks
    for ax in (top, bottom):
        ax.grid(axis="y", visible=False)
    fig.legend(*top.get_legend_handles_labels(), loc="lower center", ncols=6, fontsize=8)
    return fig
