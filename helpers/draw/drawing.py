"""What every figure has: one style, one palette, its words, and how it displays itself."""

import functools
import io
import itertools
import math
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, cast

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import PathCollection
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.path import Path as Outline
from matplotlib.text import Annotation, Text
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from matplotlib.transforms import Bbox
from PIL import Image
from PIL.PngImagePlugin import PngInfo

# Parsed once. The backend is no matter of style, and resetting it would load pyplot.
_STYLE = {key: value for key, value in matplotlib.rcParamsDefault.items() if not key.startswith("backend")}
_STYLE |= matplotlib.rc_params_from_file(Path(__file__).with_name("course.mplstyle"), use_default_template=False)
_styled = matplotlib.rc_context(_STYLE)  # a decorator: whatever the reader's own settings are

WIDTH = 6.4  # inches: at 110 dpi a figure is shown 704 pixels wide
# Blue waits for memory, vermillion computes: in the whole course.
BLUE, VERMILLION, GREEN, PURPLE, BLACK = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000"
GREY = "#666666"
GROUNDS = ("#E3F0F9", "#E0F3EC", "#FCE9DD", "#E8E8E8")  # regions: memory-bound, in between, compute-bound, out of reach
TINTS = ("#9FD0F0", "#F5B88C", "#9EDCC5", "#E4B5D0", "#CFCFCF", "#F0E28C")  # for black digits on top
# Words in a colour are darker than its lines and marks: thin strokes need more contrast with white.
INKS = {BLUE: "#00639C", VERMILLION: "#A84600", GREEN: "#006B4F", PURPLE: "#8F3D6C", BLACK: BLACK, GREY: "#595959"}
LINES: tuple[
    dict[str, Any], ...
] = (  # the styles of the lines of a chart; blue and vermillion, which have a meaning, last
    {"color": GREEN, "marker": "o", "linestyle": "-"},
    {"color": PURPLE, "marker": "s", "linestyle": (0, (5, 2))},
    {"color": BLACK, "marker": "^", "linestyle": (0, (1.5, 1.2))},
    {"color": BLUE, "marker": "D", "linestyle": (0, (5, 1.5, 1, 1.5))},
    {"color": VERMILLION, "marker": "v", "linestyle": (0, (8, 2, 2, 2))},
)
DASHES = (0, (4, 3))  # of a guide
PLATE = {"boxstyle": "square,pad=0.12", "facecolor": "white", "linewidth": 0}  # behind a text that lies on a line

Spot = tuple[float, float]  # x and y in a plot
Sizes = Mapping[str, float]
Series = Mapping[str, tuple[Sequence[float], Sequence[float]]]  # x and y by name


class Made(NamedTuple):
    """What a drawing function gives: a figure, the finding in its data, and what else its words shall say."""

    figure: Figure
    finding: str = ""
    details: str = ""


@dataclass(frozen=True, eq=False)
class Drawing:
    """A figure that displays itself as the last line of a cell, as a picture and in words.

    `kind` says what kind of figure it is, `finding` what its data say. The words are made from them and from what is
    drawn, `details` last: a terminal and a screen reader get them, and the tests compare them.
    """

    figure: Figure
    kind: str
    finding: str = ""
    details: str = ""

    @property
    def alt(self) -> str:
        """The picture in at most 200 characters: its kind, its title, its finding."""
        return textwrap.shorten(" ".join(self._opening()), 200, placeholder=" …")

    @property
    @_styled  # the ticks that an axis has room for depend on the size of their text
    def words(self) -> str:
        """The whole drawing in words: kind, title and finding, then axes, lines with a few points, bars and texts."""
        contents = itertools.chain.from_iterable(map(_contents, self.figure.axes))
        return "\n".join(filter(None, [*self._opening(), *contents, self.details]))

    def _opening(self) -> list[str]:
        titles = [self.figure.get_suptitle()]
        for ax in self.figure.axes:
            titles += [ax.get_title(loc="left"), ax.get_title()]
        title = _flat(next(filter(None, titles), ""))
        if not title:
            return [f"{self.kind}.", self.finding]
        stop = "" if title.endswith("?") else "."
        return [f"{self.kind}: {title}{stop}", self.finding]

    @_styled
    def png(self) -> bytes:
        """The picture as a PNG file, twice as sharp as it is shown, with its words as its description."""
        drawn, stored = io.BytesIO(), io.BytesIO()
        self.figure.savefig(drawn, dpi=2 * self.figure.dpi, facecolor="white", pil_kwargs={"compress_level": 0})
        # 64 colours hold a chart and its soft edges, and make a stored notebook a third as large. An octree keeps the
        # colour also of a few pixels, such as a marker or a word.
        few = Image.open(drawn).convert("RGB").quantize(64, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
        description = PngInfo()
        description.add_itxt("Description", self.words)
        few.save(stored, format="png", optimize=True, pnginfo=description)
        return stored.getvalue()

    def __repr__(self) -> str:
        return self.words

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        words = self.words  # first: to make them settles the limits of the axes
        width, height = (int(size * self.figure.dpi) for size in self.figure.get_size_inches())
        metadata = {"image/png": {"alt": self.alt, "width": width, "height": height}}
        return {"image/png": self.png(), "text/plain": words}, metadata


def show(figure: Figure) -> Drawing:
    """A learner's own matplotlib figure, to be displayed like the course's: end the cell with `draw.show(figure)`."""
    if not isinstance(figure, Figure):
        raise TypeError(f"show takes a matplotlib Figure, got {type(figure).__name__}; a Drawing shows itself")
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close(figure)  # else the notebook would show it a second time
    return Drawing(figure, "Figure")


def drawn(kind: str) -> Callable[[Callable[..., Made]], Callable[..., Drawing]]:
    """Make of a function that returns what it made one that returns a Drawing, in the course's style."""

    def decorate(function: Callable[..., Made]) -> Callable[..., Drawing]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Drawing:
            made = _styled(function)(*args, **kwargs)
            return Drawing(made.figure, kind, made.finding, made.details)

        return wrapper

    return decorate


@_styled
def figure(width: float = WIDTH, height: float = 3.0, **panels: Any) -> tuple[Figure, Any]:
    """An empty figure in the course's style, sizes in inches, with one pair of axes: `fig, ax = draw.figure()`.

    More axes by matplotlib's own names: `fig, (left, right) = draw.figure(ncols=2)`.
    """
    fig = Figure(figsize=(min(width, WIDTH), height))
    return fig, fig.subplots(**panels)


def canvas(height: float, title: str, xlabel: str = "", ylabel: str = "") -> tuple[Figure, Axes]:
    """A figure of the full width with a title, higher for a second line; without labels for its axes it has none."""
    more_lines = (title + xlabel).count("\n")
    fig, ax = figure(height=height + 0.16 * more_lines)
    ax.set(title=title, xlabel=xlabel, ylabel=ylabel)
    ax.axis("on" if xlabel or ylabel else "off")
    return fig, ax


def rows(ax: Axes, names: Iterable[str]) -> None:
    """Name the rows of a chart, the first at the top."""
    names = list(names)
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.grid(axis="y", visible=False)
    ax.tick_params(axis="y", length=0)


def log_ticks(axis: Axis, form: Any = "{x:g}") -> None:
    """Ticks of a logarithmic axis at powers of ten alone, or where these are few at 1, 2, 5, 10, or more of them."""
    low, high = axis.get_view_interval()
    steps: tuple[float, ...] = (1,)
    if high < 10 * low:
        steps = (1, 1.5, 2, 3, 5, 7)
    elif high < 200 * low:
        steps = (1, 2, 5)
    axis.set_major_locator(LogLocator(subs=steps))
    axis.set_major_formatter(form)
    axis.set_minor_locator(NullLocator())


def legend(fig: Figure) -> None:
    """The labelled series of a plot, named below it."""
    fig.legend(loc="outside lower center", ncols=5)


def cell(
    ax: Axes,
    at: Spot,
    text: str = "",
    face: str = "white",
    size: Spot = (1.0, 1.0),
    *,
    said: bool = False,
    **style: Any,
) -> None:
    """A box with a text in it, from its lower left corner; its width and height as `size`."""
    (x, y), (width, height) = at, size
    ax.add_patch(Rectangle(at, width, height, facecolor=face, edgecolor=GREY, linewidth=0.6))
    usual: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 8, "label": "" if said else "_unsaid"}
    ax.text(x + width / 2, y + height / 2 - 0.03, text, **usual | style)


def arrow(ax: Axes, start: Spot, end: Spot, color: str, **style: Any) -> None:
    """An arrow between two places of the plot."""
    style = {"arrowstyle": "->", "color": color, "linewidth": 1.5, "shrinkA": 0, "shrinkB": 0} | style
    ax.annotate("", end, start, arrowprops=style, zorder=5)


def note(ax: Axes, text: str, at: Spot, shift: Spot = (5, 0), *, said: bool = True, **style: Any) -> Annotation:
    """A text beside a place of the plot, shifted from it by so many points; the words of the drawing can leave it out.

    As in a legend of matplotlib, what has a label that begins with an underscore is left out.
    """
    style = {"va": "center", "label": "" if said else "_unsaid"} | style
    return ax.annotate(text, at, xytext=shift, textcoords="offset points", **style)


def number(value: float) -> str:
    """A number in words and labels: three digits, and no power of ten up to a million."""
    return f"{value:.0f}" if 1000 <= abs(value) < 1e6 else f"{value:.3g}"


def past_ends(ax: Axes) -> None:
    """Write the name of each line beside its right end, moved up where two would be closer than 11 points."""
    ax.autoscale_view()  # which waits until the limits are asked for
    points = 72 / ax.figure.dpi  # for a pixel
    ends = []
    for line in filter(_said, ax.lines):
        x, y = np.asarray(line.get_xydata())[-1]
        ends.append((ax.transData.transform((x, y))[1] * points, (x, y), line))
    lowest = -math.inf
    for height, end, line in sorted(ends, key=lambda entry: entry[0]):
        place = max(height, lowest)
        lowest = place + 11
        ink = INKS[str(line.get_color())]
        note(ax, str(line.get_label()), end, (7, place - height), said=False, color=ink, annotation_clip=False)


class _Place(NamedTuple):
    """Where a label might stand: how many points from its point, to the right and up (−1, 0, 1); the rest in pixels."""

    distance: float
    right: int
    up: int
    box: Bbox
    lead: Outline  # from the point to the middle of the label

    @property
    def alignment(self) -> dict[str, str]:
        """How to align the label, so that it stands beyond the distance."""
        horizontal = {-1: "right", 0: "center", 1: "left"}
        vertical = {-1: "top", 0: "center", 1: "bottom"}
        return {"ha": horizontal[self.right], "va": vertical[self.up]}


_AROUND = ((1, 0), (1, 1), (1, -1), (-1, 0), (-1, -1), (0, -1), (-1, 1), (0, 1))  # right and up, the best first


def _places(point: np.ndarray, size: np.ndarray, dpi: float) -> Iterator[_Place]:
    """All places for a label of this size, around a point and at several distances."""
    for distance, (right, up) in itertools.product((6, 18, 32, 50, 70), _AROUND):
        direction = np.array([right, up])
        middle = point + direction * (distance * dpi / 72 + size / 2)
        box = Bbox([middle - size / 2 - 2, middle + size / 2 + 2])
        yield _Place(distance, right, up, box, Outline([point + 8 * direction, middle]))


class _Occupied:
    """What a label of a plot should not lie on, in pixels: lines, marks and texts."""

    def __init__(self, ax: Axes) -> None:
        cast(Figure, ax.figure).draw_without_rendering()  # settles where the axes lie
        self.frame = ax.bbox
        self.lines: list[Outline] = []
        self.inked = np.empty((0, 2))
        self.boxes = [Text.get_window_extent(text).padded(3) for text in ax.texts]  # of an arrow its start
        for line in ax.lines:
            outline = line.get_transform().transform_path(line.get_path())
            self._add_line(outline)
            if line.get_marker() not in ("", "None"):
                self.boxes += [Bbox([vertex - 7, vertex + 7]) for vertex in np.asarray(outline.vertices)]

    def add(self, place: _Place) -> None:
        """A label stands here."""
        self.boxes.append(place.box.padded(8))
        self._add_line(place.lead)

    def cost(self, place: _Place) -> float:
        """How far away a label would be, how much of it would leave the plot, what it would hide and its lead cross."""
        outside = sum(not self.frame.contains(*corner) for corner in place.box.get_points())
        crossed = sum(map(place.lead.intersects_path, self.lines)) + sum(map(place.lead.intersects_bbox, self.boxes))
        hidden_texts = place.box.count_overlaps(self.boxes)
        hidden_ink = place.box.count_contains(self.inked)
        return 900 * outside + 90 * crossed + 60 * hidden_texts + 4 * hidden_ink + place.distance / 5

    def _add_line(self, outline: Outline) -> None:
        self.lines.append(outline)
        ink = outline.interpolated(1 + 300 // len(outline)).vertices
        self.inked = np.concatenate([self.inked, np.asarray(ink)])


def label_points(ax: Axes, points: Mapping[str, Spot], *, said: bool = True, **style: Any) -> list[Annotation]:
    """Name points where nothing else stands, with a thin lead from further away."""
    occupied = _Occupied(ax)
    lead = {"arrowstyle": "-", "linewidth": 0.6, "color": GREY, "shrinkA": 0, "shrinkB": 4}
    labels = []
    for text, at in points.items():
        label = note(ax, text, at, (0, 0), said=said, arrowprops=lead, **style)
        size = Text.get_window_extent(label).size
        point: np.ndarray = np.array(ax.transData.transform(at))
        place = min(_places(point, np.array(size), ax.figure.dpi), key=occupied.cost)
        label.set(position=(place.distance * place.right, place.distance * place.up), **place.alignment)
        if place.distance <= 6 and label.arrow_patch:
            label.arrow_patch.set_visible(False)
        occupied.add(place)
        labels.append(label)
    return labels


def _flat(text: str) -> str:
    return " ".join(text.split())


def _said(artist: Any) -> bool:
    return not str(artist.get_label()).startswith("_")


def _contents(ax: Axes) -> Iterator[str]:
    """Axes with unit, scale and limits; lines, bars, pictures, texts; none whose label begins with an underscore."""
    for name, axis in (("x", ax.xaxis), ("y", ax.yaxis)):
        if ax.axison and axis.get_visible():
            yield f"{name}: {_axis(axis)}"
    for line in filter(_said, ax.lines):
        yield f"{line.get_label()}: {_points(line.get_xydata())}"
    for marks in filter(_said, ax.collections):
        if isinstance(marks, PathCollection):
            yield f"{marks.get_label()}: {_points(marks.get_offsets())}"
    for bars in filter(_said, ax.containers):
        if isinstance(bars, BarContainer):
            yield f"{bars.get_label()}: {' '.join(map(number, _lengths(bars)))}"
    for picture in ax.images:
        yield f"Picture {ax.get_title()}: {' × '.join(map(str, picture.get_size()))}"
    texts = [_flat(text.get_text()) for text in filter(_said, ax.texts)]
    if any(texts):
        yield f"Text: {' | '.join(filter(None, texts))}"


def _axis(axis: Axis) -> str:
    """The name of an axis with its scale and limits, or with its ticks if these are named, say one per format."""
    ends = " to ".join(map(number, axis.get_view_interval()))
    scale = f"({axis.get_scale()}, {ends})"
    if isinstance(axis.get_major_formatter(), FuncFormatter):
        scale = ", ".join(_flat(label.get_text()) for label in axis.get_ticklabels())
    return f"{axis.get_label_text()} {scale}".strip()


def _lengths(bars: BarContainer) -> list[float]:
    if bars.orientation == "horizontal":
        return [bar.get_width() for bar in bars]
    return [bar.get_height() for bar in bars]


def _points(points: Any) -> str:
    """At most five points, evenly picked, the first and the last among them."""
    step = max(1, math.ceil((len(points) - 1) / 4))
    picked = [*points[:-1][::step], *points[-1:]]
    text = " ".join(f"({number(x)}, {number(y)})" for x, y in picked)
    return text if len(picked) == len(points) else f"{text} of {len(points)} points"
