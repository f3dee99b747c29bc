"""Boxes with numbers in them, many at once and quickly: a widget redraws them at every change."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.collections import PathCollection, PolyCollection
from matplotlib.path import Path
from matplotlib.textpath import TextPath
from matplotlib.transforms import Affine2D

from helpers.draw.drawing import GREY, HATCHES, TINTS


@dataclass(frozen=True)
class Cell:
    """A box with a number in it, from its lower left corner. `lane` chooses colour and hatch, None is white."""

    x: float
    y: float
    height: float
    text: str
    lane: int | None = None


@functools.lru_cache(maxsize=1024)
def _glyphs(text: str, size: float) -> Path:
    """The outline of a short text, centred, in points."""
    outline = TextPath((0, 0), text, size=size)
    box = outline.get_extents()
    middle = size * 0.365 if any(letter.isalnum() for letter in text) else (box.y0 + box.y1) / 2
    return outline.transformed(Affine2D().translate(-(box.x0 + box.x1) / 2, -middle))


def draw_numbers(
    ax: Axes, texts: Sequence[str], places: Sequence[tuple[float, float]], size: float, colour: str
) -> None:
    """Short texts, each centred at its place, in one collection."""
    points = Affine2D().scale(1 / 72) + ax.figure.dpi_scale_trans
    marks = PathCollection(
        [_glyphs(text, size) for text in texts],
        offsets=places,
        offset_transform=ax.transData,
        facecolor=colour,
        zorder=3,
    )
    marks.set_transform(points)
    ax.add_collection(marks, autolim=False)


def draw_cells(ax: Axes, cells: Sequence[Cell]) -> None:
    """All boxes in a few collections and all numbers in one."""
    for lane in {cell.lane: None for cell in cells}:
        colour, hatch = ("white", "") if lane is None else (TINTS[lane], HATCHES[lane] + HATCHES[lane][:1])
        mine = [cell for cell in cells if cell.lane == lane]
        boxes = [_box(cell.x, cell.y, 1, cell.height) for cell in mine]
        ax.add_collection(PolyCollection(boxes, facecolor=colour, edgecolor=GREY, linewidth=0.6), autolim=False)
        if hatch:
            lines = {"facecolor": "none", "hatch": hatch, "edgecolor": GREY, "linewidth": 0, "alpha": 0.5}
            ax.add_collection(PolyCollection(boxes, **lines), autolim=False)
            backs = [_box(cell.x + 0.17, cell.y + cell.height / 2 - 0.27, 0.66, 0.54) for cell in mine]
            ax.add_collection(PolyCollection(backs, facecolor=colour, linewidth=0), autolim=False)
    places = [(cell.x + 0.5, cell.y + cell.height / 2) for cell in cells]
    draw_numbers(ax, [cell.text for cell in cells], places, 8, "black")


def _box(x: float, y: float, width: float, height: float) -> list[tuple[float, float]]:
    return [(x, y), (x + width, y), (x + width, y + height), (x, y + height)]
