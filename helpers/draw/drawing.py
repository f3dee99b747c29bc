"""What every figure has: one style, one palette, its words, and how it displays itself."""

import functools
import io
import itertools
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Annotation
from matplotlib.ticker import FuncFormatter
from PIL import Image
from PIL.PngImagePlugin import PngInfo

# Parsed once. The backend is no matter of style, and resetting it would load pyplot.
_STYLE = {key: value for key, value in matplotlib.rcParamsDefault.items() if not key.startswith("backend")}
_STYLE |= matplotlib.rc_params_from_file(Path(__file__).with_name("course.mplstyle"), use_default_template=False)
_styled = matplotlib.rc_context(_STYLE)  # a decorator: whatever the learner's own settings are

WIDTH = 6.4  # inches: at 110 dpi a figure is shown 704 pixels wide
LONGEST_ALT = 200  # characters
BLUE, VERMILLION, GREEN, PURPLE, BLACK = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000"
GREY = "#666666"
GROUNDS = ("#E3F0F9", "#E0F3EC", "#FCE9DD", "#E8E8E8")  # regions: memory-bound, in between, compute-bound, out of reach
TINTS = ("#BBDDF2", "#F6C9A8", "#BDE8D8", "#EBCBDD", "#DDDDDD", "#F3E9A8")  # for black digits on top
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
        """The picture in at most 200 characters: its kind, title and finding, then its axes where they find room."""
        first, *others = _sentences(self)
        alt = first if len(first) <= LONGEST_ALT else first[: LONGEST_ALT - 2].rsplit(" ", 1)[0] + " …"
        for sentence in others:
            if len(alt) + 1 + len(sentence) <= LONGEST_ALT:
                alt += f" {sentence}"
        return alt

    @property
    def words(self) -> str:
        """The whole drawing in words: the alt text, then axes, series with a few points, bars, marks and texts."""
        alt = self.alt
        missing = [sentence for sentence in _sentences(self)[1:] if sentence not in alt]
        return "\n".join([alt, *missing, *_contents(self.figure)])

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
    kinds = {"images": "Picture", "containers": "Bar chart", "lines": "Line chart", "collections": "Scatter plot"}
    there = (kind for part, kind in kinds.items() if any(len(getattr(ax, part)) for ax in figure.axes))
    return Drawing(figure, next(there, "Figure"))


def drawn(kind: str) -> Callable[[Callable[..., Any]], Callable[..., Drawing]]:
    """Make of a function that returns a figure and the finding in its data one that returns a Drawing."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Drawing]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Drawing:
            fig, finding = _styled(function)(*args, **kwargs)
            return Drawing(fig, kind, finding)

        wrapper.__annotations__ = function.__annotations__ | {"return": Drawing}
        return wrapper

    return decorate


@_styled
def figure(width: float = WIDTH, height: float = 3.0, **panels: Any) -> tuple[Figure, Any]:
    """An empty figure in the course's style, sizes in inches, with one pair of axes: `fig, ax = draw.figure()`.

    More axes by matplotlib's own names: `fig, (left, right) = draw.figure(ncols=2)`.
    """
    fig = Figure(figsize=(min(width, WIDTH), height))
    FigureCanvasAgg(fig)
    return fig, fig.subplots(**panels)


def canvas(height: float, title: str, xlabel: str = "", ylabel: str = "") -> tuple[Figure, Axes]:
    """A figure of the full width with a title; without labels for its axes it has none."""
    fig, ax = figure(height=height)
    ax.set(title=title, xlabel=xlabel, ylabel=ylabel)
    ax.set_axis_on() if xlabel or ylabel else ax.set_axis_off()
    return fig, ax


def rows(ax: Axes, names: Iterable[str], head: float = 0.0, foot: float = 0.4) -> None:
    """Name the rows of a chart, the first at the top, with room above and below them."""
    names = list(names)
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 1 + foot + 0.2, -0.6 - head)
    ax.grid(axis="y", visible=False)
    ax.tick_params(axis="y", length=0)


def legend(ax: Axes, columns: int = 6, **style: Any) -> None:
    """The labelled series of a plot, named below it."""
    found = dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    ax.figure.legend(found.values(), found, loc="outside lower center", ncols=columns, **style)


def cell(ax: Axes, x: float, y: float, text: str = "", face: str = "white", height: float = 1.0, edge: str = GREY,
         **look: Any) -> None:  # fmt: skip
    """A box, one wide, with a text in it, from its lower left corner."""
    ax.add_patch(Rectangle((x, y), 1, height, facecolor=face, edgecolor=edge, linewidth=0.6 if edge == GREY else 1.5))
    look = {"ha": "center", "va": "center", "fontsize": 8, "label": "_cell"} | look
    ax.text(x + 0.5, y + height / 2 - 0.03, text, **look)


def arrow(ax: Axes, start: Place, end: Place, color: str, **style: Any) -> None:
    """An arrow between two places of the plot."""
    style = {"arrowstyle": "->", "color": color, "linewidth": 1.5, "shrinkA": 0, "shrinkB": 0} | style
    ax.annotate("", end, start, arrowprops=style, label="_arrow", zorder=5)


def note(ax: Axes, text: str, at: Place, shift: Place = (5, 0), **style: Any) -> Annotation:
    """A text beside a place of the plot, shifted from it by so many points."""
    return ax.annotate(text, at, xytext=shift, textcoords="offset points", **{"va": "center"} | style)


def past_ends(ax: Axes, gap: float = 11) -> None:
    """Write the name of each line beside its right end, moved up where two would be closer than the gap, in points."""
    ax.autoscale_view()  # which waits until the limits are asked for
    ends = [(tuple(line.get_xydata()[-1]), line) for line in ax.lines if _named(line)]
    height = -math.inf
    for end, line in sorted(ends, key=lambda pair: ax.transData.transform(pair[0])[1]):
        own = ax.transData.transform(end)[1] * 72 / ax.figure.dpi
        height = max(own, height + gap)
        look = {"color": INKS[line.get_color()], "label": "_end", "annotation_clip": False}
        note(ax, line.get_label(), end, (7, height - own), **look)


def label_points(ax: Axes, points: Mapping[str, Place], **style: Any) -> None:
    """Name points of a finished plot where nothing else stands: beside them, or further off with a thin line."""
    ax.figure.draw_without_rendering()  # settles where the axes lie
    pixels, scale = ax.transData.transform, ax.figure.dpi / 72
    taken = [_grid(*text.get_window_extent().get_points()) for text in ax.texts]
    taken += [_grid(pixels(at) - 6, pixels(at) + 6) for at in points.values()]
    for line in filter(_named, ax.lines):
        ends = itertools.pairwise(pixels(line.get_xydata()))
        taken += [np.linspace(start, end, 2 + int(np.hypot(*(end - start)) / 3)) for start, end in ends]
    for text, at in points.items():
        trial = note(ax, text, at, **style)
        size, places, options = trial.get_window_extent().size, np.concatenate(taken), []
        trial.remove()
        for far, side in itertools.product((8, 18, 32), ((1, 0), (1, 1), (1, -1), (-1, 0), (-1, -1), (0, -1), (-1, 1))):
            low = pixels(at) + np.array(side) * far * scale + (np.array(side) - 1) / 2 * size
            outside = np.maximum(ax.bbox.min - low, 0) + np.maximum(low + size - ax.bbox.max, 0)
            hidden = ((places > low - 2) & (places < low + size + 2)).all(1).sum() + 20 * outside.sum()
            options.append((hidden, far, tuple(low)))
        _, far, low = min(options, key=lambda option: option[:2])
        lead = {"arrowstyle": "-", "linewidth": 0.6, "color": GREY, "shrinkA": 0, "shrinkB": 4} if far > 8 else None
        note(ax, text, at, (low - pixels(at)) / scale, va="bottom", arrowprops=lead, **style)
        taken.append(_grid(low, low + size))


def _grid(low: Sequence[float], high: Sequence[float]) -> np.ndarray:
    """Points that fill a box of pixels."""
    return np.stack(np.meshgrid(*np.linspace(low, high, 12).T), -1).reshape(-1, 2)


def number(value: float) -> str:
    """A number in words and labels: three digits, and no power of ten up to a million."""
    return f"{value:.0f}" if 1000 <= abs(value) < 1e6 else f"{value:.3g}"


def _sentences(drawing: Drawing) -> list[str]:
    """Kind and title; the finding, or from where to where each line goes; what the axes show."""
    axes, kind = drawing.figure.axes, drawing.kind
    titles = (drawing.figure.get_suptitle(), *(ax.get_title(loc="left") or ax.get_title() for ax in axes))
    title = next(filter(None, titles), "")
    lines = [line for ax in axes for line in ax.lines if _named(line) and len(line.get_ydata())]
    ends = [(line.get_label(), *(number(line.get_ydata()[place]) for place in (0, -1))) for line in lines]
    trends = "; ".join(f"{name}: {start} to {end}" if start != end else f"{name}: {end}" for name, start, end in ends)
    finding = drawing.finding or (f"{trends}." if trends else "")
    sentences = [f"{kind}: {title}." if title else f"{kind}.", *([finding] if finding else [])]
    for ax in axes:
        if ax.axison and ax.get_xlabel():
            logs = [name for name, scale in (("x", ax.get_xscale()), ("y", ax.get_yscale())) if scale == "log"]
            scale = ("", f", {''.join(logs)} logarithmic", ", both logarithmic")[len(logs)]
            sentences.append(f"Axes: {' against '.join(filter(None, (ax.get_ylabel(), ax.get_xlabel())))}{scale}.")
    return sentences


def _contents(fig: Figure) -> list[str]:
    """Axes with scale and limits, texts, and each labelled line, mark, bar and picture.

    Artists without a label (matplotlib gives them one with a leading underscore) are left out: grid, guides, shades.
    A figure's own label, where it has one, is its last line.
    """
    lines = []
    for ax in fig.axes:
        if fig.get_suptitle() and ax.get_title(loc="left"):
            lines.append(f"Part: {ax.get_title(loc='left')}")
        axes = (("x", ax.xaxis), ("y", ax.yaxis))
        lines += [_axis(name, axis) for name, axis in axes if ax.axison and len(axis.get_ticklocs())]
        lines += [f"Line {line.get_label()}: {_points(line.get_xydata())}" for line in ax.lines if _named(line)]
        marks = [marks for marks in ax.collections if isinstance(marks, PathCollection) and _named(marks)]
        lines += [f"Marks {mark.get_label()}: {_points(mark.get_offsets())}" for mark in marks]
        for bars in filter(_named, ax.containers):
            sizes = [bar.get_width() if bars.orientation == "horizontal" else bar.get_height() for bar in bars]
            lines.append(f"Bars {bars.get_label()}: {' '.join(map(number, sizes))}")
        lines += [_picture(image.get_label(), np.asarray(image.get_array())) for image in filter(_named, ax.images)]
        texts = [" ".join(text.get_text().split()) for text in ax.texts if _named(text) and text.get_text().strip()]
        lines += [f"Text: {' | '.join(texts)}"] if texts else []
    return [*lines, *([fig.get_label()] if fig.get_label() else [])]


def _named(artist: Any) -> bool:
    return not str(artist.get_label()).startswith("_")


def _axis(name: str, axis: Axis) -> str:
    low, high = axis.get_view_interval()
    if isinstance(axis.get_major_formatter(), FuncFormatter):  # named ticks, say one per format
        return f"{name}: {', '.join(label.get_text() for label in axis.get_ticklabels())}"
    return f"{name}: {axis.get_label_text()} ({axis.get_scale()}, {number(low)} to {number(high)})"


def _points(points: Iterable[Sequence[float]], most: int = 5) -> str:
    """At most that many points, evenly picked, the first and the last among them."""
    points = list(points)
    step = max(1, math.ceil((len(points) - 1) / (most - 1)))
    picked = [*points[:-1][::step], *points[-1:]]
    text = " ".join(f"({number(x)}, {number(y)})" for x, y in picked)
    return text if len(picked) == len(points) else f"{text} of {len(points)} points"


def _picture(name: str, pixels: np.ndarray) -> str:
    """The size of a picture, and how bright its quarters are, in reading order."""
    quarters = [part for half in np.array_split(pixels, 2) for part in np.array_split(half, 2, axis=1)]
    means = " ".join(number(part.mean()) for part in quarters)
    return f"Picture {name}: {' × '.join(map(str, pixels.shape))}, mean of each quarter {means}"
