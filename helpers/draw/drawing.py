"""What every figure has: one style, one palette, its words, and how it displays itself."""

import functools
import io
import itertools
import math
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import PathCollection
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from PIL import Image
from PIL.PngImagePlugin import PngInfo

# Parsed once. The backend is no matter of style, and resetting it would load pyplot.
_STYLE = {key: value for key, value in matplotlib.rcParamsDefault.items() if not key.startswith("backend")}
_STYLE |= matplotlib.rc_params_from_file(Path(__file__).with_name("course.mplstyle"), use_default_template=False)
_styled = matplotlib.rc_context(_STYLE)  # a decorator: whatever the reader's own settings are

WIDTH = 6.4  # inches: at 110 dpi a figure is shown 704 pixels wide
TALLEST = 3.7  # inches: at the height of a slide of 720 pixels, letters of 8 points have 18
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
    """A figure of the full width with a title, higher for a second line; without labels for its axes it has none.

    A title that is too long, as of a measurement that was disturbed, is broken.
    """
    more_lines = (title + xlabel).count("\n")
    fig, ax = figure(height=min(height + 0.16 * more_lines, TALLEST))
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.set_title(title, wrap=True)
    ax.axis("on" if xlabel or ylabel else "off")
    return fig, ax


def number(value: float) -> str:
    """A number in words and labels: three digits, and no power of ten up to a million."""
    return f"{value:.0f}" if 1000 <= abs(value) < 1e6 else f"{value:.3g}"


def _flat(text: str) -> str:
    return " ".join(text.split())


def is_said(artist: Any) -> bool:
    """Whether the words name it; as in a legend of matplotlib, a label that begins with an underscore leaves it out."""
    return not str(artist.get_label()).startswith("_")


def _contents(ax: Axes) -> Iterator[str]:
    """Axes with unit, scale and limits; lines, bars, pictures, texts; none whose label begins with an underscore."""
    for name, axis in (("x", ax.xaxis), ("y", ax.yaxis)):
        if ax.axison and axis.get_visible():
            yield f"{name}: {_axis(axis)}"
    for line in filter(is_said, ax.lines):
        yield f"{line.get_label()}: {_points(line.get_xydata())}"
    for marks in filter(is_said, ax.collections):
        if isinstance(marks, PathCollection):
            yield f"{marks.get_label()}: {_points(marks.get_offsets())}"
    for bars in filter(is_said, ax.containers):
        if isinstance(bars, BarContainer):
            yield f"{bars.get_label()}: {' '.join(map(number, _lengths(bars)))}"
    for picture in ax.images:
        yield f"Picture {ax.get_title()}: {' × '.join(map(str, picture.get_size()))}"
    texts = [_flat(text.get_text()) for text in filter(is_said, ax.texts)]
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
