"""What every figure has: one style, one palette, its words, and how it displays itself."""

import functools
import io
import math
import sys
from collections.abc import Callable, Iterable, Sequence
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
from matplotlib.text import Annotation
from matplotlib.ticker import FuncFormatter
from PIL import Image
from PIL.PngImagePlugin import PngInfo

_FILE = Path(__file__).with_name("course.mplstyle")
# Parsed once. The backend is no matter of style, and resetting it would load pyplot.
_STYLE = {key: value for key, value in matplotlib.rcParamsDefault.items() if not key.startswith("backend")}
_STYLE |= matplotlib.rc_params_from_file(_FILE, use_default_template=False)

WIDTH = 6.4  # inches: at 110 dpi a figure is shown 704 pixels wide
SHARPNESS = 2  # stored pixels per pixel shown
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

    def png(self) -> bytes:
        """The picture as a PNG file, twice as sharp as it is shown, with its words as the file's description."""
        return _png(self.figure, self.words)

    def __repr__(self) -> str:
        return self.words

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        words = self.words  # first: to make them settles the limits of the axes
        data = {"image/png": _png(self.figure), "text/plain": words}
        width, height = (int(size * self.figure.dpi) for size in self.figure.get_size_inches())
        return data, {"image/png": {"alt": self.alt, "width": width, "height": height}}


def show(figure: Figure) -> Drawing:
    """A learner's own matplotlib figure, to be displayed like the course's: end the cell with `draw.show(figure)`."""
    if not isinstance(figure, Figure):
        raise TypeError(f"show takes a matplotlib Figure, got {type(figure).__name__}; a Drawing shows itself")
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close(figure)  # else the notebook would show it a second time
    kinds = {
        "Picture": any(ax.images for ax in figure.axes),
        "Bar chart": any(ax.containers for ax in figure.axes),
        "Line chart": any(ax.lines for ax in figure.axes),
        "Scatter plot": any(ax.collections for ax in figure.axes),
    }
    return Drawing(figure, next((kind for kind, there in kinds.items() if there), "Figure"))


def styled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Run a drawing function in the course's style, whatever the learner's own settings are."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with matplotlib.rc_context(_STYLE):
            return function(*args, **kwargs)

    return wrapper


def drawn(kind: str) -> Callable[[Callable[..., Any]], Callable[..., Drawing]]:
    """Make of a function that returns a figure, or a figure and the finding in its data, one that returns a Drawing."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Drawing]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Drawing:
            result = styled(function)(*args, **kwargs)
            fig, finding = result if isinstance(result, tuple) else (result, "")
            return Drawing(fig, kind, finding)

        wrapper.__annotations__ = function.__annotations__ | {"return": Drawing}
        return wrapper

    return decorate


@styled
def figure(width: float = WIDTH, height: float = 3.0) -> tuple[Figure, Axes]:
    """An empty figure in the course's style, sizes in inches, with one pair of axes: `fig, ax = draw.figure()`."""
    fig = page(height, width)
    return fig, fig.subplots()


def page(height: float, width: float = WIDTH, **options: Any) -> Figure:
    """An empty figure without axes, no wider than the course's page; sizes in inches."""
    fig = Figure(figsize=(min(width, WIDTH), height), **options)
    FigureCanvasAgg(fig)
    return fig


def canvas(height: float, title: str, xlabel: str = "", ylabel: str = "") -> tuple[Figure, Axes]:
    """A figure of the full width with a title and labels on its axes."""
    fig, ax = figure(height=height)
    ax.set(title=title, xlabel=xlabel, ylabel=ylabel)
    return fig, ax


def note(ax: Axes, text: str, at: tuple[float, float], shift: tuple[float, float] = (5, 0), **style: Any) -> Annotation:
    """A text beside a place of the plot, shifted from it by so many points."""
    return ax.annotate(text, at, xytext=shift, textcoords="offset points", **{"va": "center"} | style)


def past_ends(ax: Axes, gap: float = 11) -> None:
    """Write the name of each line beside its right end, moved up where two would be closer than the gap, in points."""
    ax.autoscale_view()  # which waits until the limits are asked for
    lines = [line for line in ax.lines if _named(line)]
    lines.sort(key=lambda line: ax.transData.transform(line.get_xydata()[-1])[1])
    height = -math.inf
    for line in lines:
        own = ax.transData.transform(line.get_xydata()[-1])[1] * 72 / ax.figure.dpi
        height = max(own, height + gap)
        shift = (7, height - own)
        note(ax, line.get_label(), tuple(line.get_xydata()[-1]), shift, color=INKS[line.get_color()], label="_end",
             annotation_clip=False)  # fmt: skip


def number(value: float) -> str:
    """A number in words and labels: three digits, and no power of ten up to a million."""
    return f"{value:.0f}" if 1000 <= abs(value) < 1e6 else f"{value:.3g}"


def _png(fig: Figure, description: str = "") -> bytes:
    """The figure as PNG bytes, the same bytes for the same figure."""
    buffer = io.BytesIO()
    with matplotlib.rc_context(_STYLE):
        fig.savefig(buffer, dpi=SHARPNESS * fig.dpi, facecolor="white", pil_kwargs={"compress_level": 0})
    picture = Image.open(buffer).convert("RGB")
    # 64 colours hold a chart and its soft edges, and make a stored notebook a third as large. An octree keeps the
    # colour also of a few pixels, such as a marker or a word.
    few = picture.quantize(64, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    words, stored = PngInfo(), io.BytesIO()
    if description:
        words.add_itxt("Description", description)
    few.save(stored, format="png", optimize=True, pnginfo=words)
    return stored.getvalue()


def _sentences(drawing: Drawing) -> list[str]:
    """Kind and title; the finding; what the axes show."""
    titles = [title for ax in drawing.figure.axes if (title := ax.get_title(loc="left") or ax.get_title())]
    title = drawing.figure.get_suptitle() or next(iter(titles), "")
    head = f"{drawing.kind}: {title}." if title else f"{drawing.kind}."
    finding = [drawing.finding] if drawing.finding else _trends(drawing.figure)
    axes = [_against(ax) for ax in drawing.figure.axes if ax.axison and ax.get_xlabel()]
    return [head, *finding, *axes]


def _trends(fig: Figure) -> list[str]:
    """From where to where each line goes."""
    lines = [line for ax in fig.axes for line in ax.lines if _named(line) and len(line.get_ydata())]
    ends = [(line.get_label(), *(number(line.get_ydata()[place]) for place in (0, -1))) for line in lines]
    trends = [f"{name}: {start} to {end}" if start != end else f"{name}: {end}" for name, start, end in ends]
    return [f"{'; '.join(trends)}."] if trends else []


def _against(ax: Axes) -> str:
    y, x = (axis.get_label_text() for axis in (ax.yaxis, ax.xaxis))
    logs = [name for name, axis in (("x", ax.xaxis), ("y", ax.yaxis)) if axis.get_scale() == "log"]
    scale = {0: "", 1: f", {logs[0] if logs else ''} logarithmic", 2: ", both logarithmic"}[len(logs)]
    return f"Axes: {f'{y} against {x}' if y else x}{scale}."


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
        images = filter(_named, ax.images)
        lines += [f"Picture {image.get_label()}: {_quarters(np.asarray(image.get_array()))}" for image in images]
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


def _quarters(pixels: np.ndarray) -> str:
    """The size of a picture, and how bright its quarters are, in reading order."""
    rows, columns = (size // 2 for size in pixels.shape[:2])
    parts = pixels[:rows, :columns], pixels[:rows, columns:], pixels[rows:, :columns], pixels[rows:, columns:]
    size = " × ".join(map(str, pixels.shape))
    return f"{size}, mean of each quarter {' '.join(number(part.mean()) for part in parts)}"
