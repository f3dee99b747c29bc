"""A figure as a picture and in words: `show` displays both, `summary` makes the words."""

import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from IPython.display import display
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from helpers.draw.style import styled


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
    few = picture.quantize(40 if hatched else 64, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
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
