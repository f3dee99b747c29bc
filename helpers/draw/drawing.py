"""What every figure has: one style, one palette, its words, and how it displays itself."""

import functools
import io
import itertools
import math
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.path import Path as Line
from matplotlib.text import Annotation, Text
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from matplotlib.transforms import Bbox
from PIL import Image
from PIL.PngImagePlugin import PngInfo

# Parsed once. The backend is no matter of style, and resetting it would load pyplot.
_STYLE = {key: value for key, value in matplotlib.rcParamsDefault.items() if not key.startswith("backend")}
_STYLE |= matplotlib.rc_params_from_file(Path(__file__).with_name("course.mplstyle"), use_default_template=False)
_styled = matplotlib.rc_context(_STYLE)  # a decorator: whatever the learner's own settings are

WIDTH = 6.4  # inches: at 110 dpi a figure is shown 704 pixels wide
BLUE, VERMILLION, GREEN, PURPLE, BLACK = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000"
GREY = "#666666"
GROUNDS = ("#E3F0F9", "#E0F3EC", "#FCE9DD", "#E8E8E8")  # regions: memory-bound, in between, compute-bound, out of reach
TINTS = ("#9FD0F0", "#F5B88C", "#9EDCC5", "#E4B5D0", "#CFCFCF", "#F0E28C")  # for black digits on top
# Words in a colour are darker than its lines and marks: thin strokes need more contrast with white.
INKS = {BLUE: "#00639C", VERMILLION: "#A84600", GREEN: "#006B4F", PURPLE: "#8F3D6C", BLACK: BLACK, GREY: "#595959"}
LOOKS = (  # of the lines of a chart: colour, marker, dashes
    (BLUE, "o", "-"), (VERMILLION, "s", (0, (5, 2))), (GREEN, "^", (0, (1.5, 1.2))),
    (PURPLE, "D", (0, (5, 1.5, 1, 1.5))), (BLACK, "v", (0, (8, 2, 2, 2))),
)  # fmt: skip
Made = tuple[Figure, str]  # a figure and the finding in its data
Place = tuple[float, float]
Series = Mapping[str, tuple[Sequence[float], Sequence[float]]]  # x and y by name
DASHES = (0, (4, 3))  # of a guide
PLATE = {"boxstyle": "square,pad=0.12", "facecolor": "white", "linewidth": 0}  # behind a text that lies on a line


@dataclass(frozen=True, eq=False)
class Drawing:
    """A figure that displays itself as the last line of a cell, as a picture and in words.

    `kind` says what kind of figure it is, `finding` what its data say. The words are made from them and from what is
    drawn: a terminal and a screen reader get them, and the tests compare them.
    """

    figure: Figure
    kind: str
    finding: str = ""

    @property
    def alt(self) -> str:
        """The picture in at most 200 characters: its kind, its title, its finding."""
        return textwrap.shorten(" ".join(self._opening()), 200, placeholder=" …")

    @property
    @_styled  # the ticks that an axis has room for depend on the size of their text
    def words(self) -> str:
        """The whole drawing in words: kind, title and finding, then axes, lines with a few points, bars and texts."""
        contents = (line for ax in self.figure.axes for line in _contents(ax))
        return "\n".join(filter(None, [*self._opening(), *contents, self.figure.get_label()]))

    def _opening(self) -> list[str]:
        titles = self.figure.get_suptitle(), *(ax.get_title(loc="left") or ax.get_title() for ax in self.figure.axes)
        title = " ".join(next(filter(None, titles), "").split())
        return [f"{self.kind}: {title}.".replace("?.", "?") if title else f"{self.kind}.", self.finding]

    @_styled
    def png(self) -> bytes:
        """The picture as a PNG file, twice as sharp as it is shown, with its words as its description."""
        drawn, stored = io.BytesIO(), io.BytesIO()
        self.figure.savefig(drawn, dpi=2 * self.figure.dpi, facecolor="white", pil_kwargs={"compress_level": 0})
        # 64 colours hold a chart and its soft edges, and make a stored notebook a third as large. An octree keeps the
        # colour also of a few pixels, such as a marker or a word.
        few = Image.open(drawn).convert("RGB").quantize(64, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
        words = PngInfo()
        words.add_itxt("Description", self.words)
        few.save(stored, format="png", optimize=True, pnginfo=words)
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


def drawn(kind: str) -> Callable[[Callable[..., Any]], Callable[..., Drawing]]:
    """Make of a function that returns a figure and the finding in its data one that returns a Drawing."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Drawing]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Drawing:
            fig, finding = _styled(function)(*args, **kwargs)
            return Drawing(fig, kind, finding)

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
    """A figure of the full width with a title; without labels for its axes it has none."""
    fig, ax = figure(height=height)
    ax.set(title=title, xlabel=xlabel, ylabel=ylabel)
    ax.axis("on" if xlabel or ylabel else "off")
    return fig, ax


def rows(ax: Axes, names: Iterable[str], head: float = 0.0) -> None:
    """Name the rows of a chart, the first at the top, with room above and below them."""
    names = list(names)
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.4, -0.6 - head)
    ax.grid(axis="y", visible=False)
    ax.tick_params(axis="y", length=0)


def log_ticks(axis: Axis, form: Any = "{x:g}") -> None:
    """Ticks of a logarithmic axis at powers of ten alone, or where these are few at 1, 2, 5, 10, or more of them."""
    low, high = axis.get_view_interval()
    steps = (1, 1.5, 2, 3, 5, 7) if high < 10 * low else (1, 2, 5) if high < 200 * low else (1,)
    axis.set_major_locator(LogLocator(subs=steps))
    axis.set_major_formatter(form)
    axis.set_minor_locator(NullLocator())


def legend(ax: Axes) -> None:
    """The labelled series of a plot, named below it."""
    ax.figure.legend(loc="outside lower center", ncols=5)


def cell(ax: Axes, x: float, y: float, text: str = "", face: str = "white", height: float = 1.0, width: float = 1.0,
         **look: Any) -> None:  # fmt: skip
    """A box with a text in it, from its lower left corner."""
    ax.add_patch(Rectangle((x, y), width, height, facecolor=face, edgecolor=GREY, linewidth=0.6))
    look = {"ha": "center", "va": "center", "fontsize": 8, "label": "_cell"} | look
    ax.text(x + width / 2, y + height / 2 - 0.03, text, **look)


def arrow(ax: Axes, start: Place, end: Place, color: str, **style: Any) -> None:
    """An arrow between two places of the plot."""
    style = {"arrowstyle": "->", "color": color, "linewidth": 1.5, "shrinkA": 0, "shrinkB": 0} | style
    ax.annotate("", end, start, arrowprops=style, label="_arrow", zorder=5)


def note(ax: Axes, text: str, at: Place, shift: Place = (5, 0), **style: Any) -> Annotation:
    """A text beside a place of the plot, shifted from it by so many points."""
    return ax.annotate(text, at, xytext=shift, textcoords="offset points", **{"va": "center"} | style)


def past_ends(ax: Axes) -> None:
    """Write the name of each line beside its right end, moved up where two would be closer than 11 points."""
    ax.autoscale_view()  # which waits until the limits are asked for
    ends = [(tuple(line.get_xydata()[-1]), line) for line in ax.lines if _named(line)]
    height = -math.inf
    for end, line in sorted(ends, key=lambda pair: ax.transData.transform(pair[0])[1]):
        own = ax.transData.transform(end)[1] * 72 / ax.figure.dpi
        height = max(own, height + 11)
        look = {"color": INKS[line.get_color()], "label": "_end", "annotation_clip": False}
        note(ax, line.get_label(), end, (7, height - own), **look)


def label_points(ax: Axes, points: Mapping[str, Place], **style: Any) -> list[Annotation]:
    """Name points where nothing else stands, with a thin lead from further away."""
    ax.figure.draw_without_rendering()  # settles where the axes lie
    lines = [line.get_transform().transform_path(line.get_path()) for line in ax.lines]
    boxes = [Text.get_window_extent(text).padded(3) for text in ax.texts]  # of an arrow its start
    for line, path in zip(ax.lines, lines, strict=True):
        boxes += [Bbox([at - 7, at + 7]) for at in path.vertices if line.get_marker() not in ("", "None")]
    ways = np.array([(1, 0), (1, 1), (1, -1), (-1, 0), (-1, -1), (0, -1), (-1, 1), (0, 1)])  # right and up
    look = {"arrowstyle": "-", "linewidth": 0.6, "color": GREY, "shrinkA": 0, "shrinkB": 4}
    labels = []
    for text, at in points.items():
        label, least = note(ax, text, at, (0, 0), arrowprops=look, **style), math.inf
        start, size = ax.transData.transform(at), Text.get_window_extent(label).size
        inked = np.concatenate([line.interpolated(1 + 300 // len(line)).vertices for line in lines])
        for far, way in itertools.product((6, 18, 32, 50, 70), ways):
            middle = start + way * (far * ax.figure.dpi / 72 + size / 2)
            box, lead = Bbox([middle - size / 2 - 2, middle + size / 2 + 2]), Line([start + 8 * way, middle])
            outside = sum(not ax.bbox.contains(*corner) for corner in box.get_points())
            hidden = 60 * box.count_overlaps(boxes) + 4 * box.count_contains(inked)
            crossed = sum(map(lead.intersects_path, lines)) + sum(map(lead.intersects_bbox, boxes))
            if (cost := 900 * outside + hidden + 90 * crossed + far / 5) < least:
                least, best = cost, (box, lead)
                place = {"ha": ("center", "left", "right")[way[0]], "va": ("center", "bottom", "top")[way[1]]}
                label.set(position=far * way, **place)
                label.arrow_patch.set_visible(far > 6)
        boxes.append(best[0].padded(8))
        lines.append(best[1])
        labels.append(label)
    return labels


def number(value: float) -> str:
    """A number in words and labels: three digits, and no power of ten up to a million."""
    return f"{value:.0f}" if 1000 <= abs(value) < 1e6 else f"{value:.3g}"


def _contents(ax: Axes) -> Iterable[str]:
    """Axes with unit, scale and limits; lines, bars, pictures, texts; none whose label begins with an underscore."""
    if ax.axison:
        for name, axis in (("x", ax.xaxis), ("y", ax.yaxis)):
            limits = f"({axis.get_scale()}, {' to '.join(map(number, axis.get_view_interval()))})"
            if isinstance(axis.get_major_formatter(), FuncFormatter):  # named ticks, say one per format
                limits = ", ".join(" ".join(label.get_text().split()) for label in axis.get_ticklabels())
            yield f"{name}: {axis.get_label_text()} {limits}".replace(":  ", ": ")
    for marks in filter(_named, [*ax.lines, *(marks for marks in ax.collections if isinstance(marks, PathCollection))]):
        points = marks.get_xydata() if marks in ax.lines else marks.get_offsets()
        yield f"{marks.get_label()}: {_points(points)}"
    for bars in filter(_named, ax.containers):
        sizes = [bar.get_width() if bars.orientation == "horizontal" else bar.get_height() for bar in bars]
        yield f"{bars.get_label()}: {' '.join(map(number, sizes))}"
    yield from (f"Picture {ax.get_title()}: {' × '.join(map(str, picture.get_size()))}" for picture in ax.images)
    texts = [" ".join(text.get_text().split()) for text in ax.texts if _named(text) and text.get_text().strip()]
    yield f"Text: {' | '.join(texts)}" if texts else ""


def _named(artist: Any) -> bool:
    return not str(artist.get_label()).startswith("_")


def _points(points: np.ndarray) -> str:
    """At most five points, evenly picked, the first and the last among them."""
    step = max(1, math.ceil((len(points) - 1) / 4))
    picked = [*points[:-1][::step], *points[-1:]]
    text = " ".join(f"({number(x)}, {number(y)})" for x, y in picked)
    return text if len(picked) == len(points) else f"{text} of {len(points)} points"
