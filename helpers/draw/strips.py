"""Tensors on their storage: grids of elements above a strip of cells."""

import itertools
import math
from dataclasses import dataclass
from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from helpers.draw.cells import Cell, draw_cells, draw_numbers
from helpers.draw.drawing import BLUE, GREEN, GREY, INKS, TINTS, VERMILLION, WIDTH, canvas, drawn
from helpers.storage import layout, offset_of, same_storage

MOST_CELLS = 96

_DIM_COLOURS = (BLUE, VERMILLION, GREEN)
_LANE = 0.85  # height of a view's lane under the strip; lengths here are in storage cells

_MARGIN = 2.4  # room for the names at the left


@drawn("Grids of elements above their storage")
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
    fig, ax = canvas(height, title)
    fig.set_layout_engine("none")  # it would measure every cell, twice
    ax.set_position((0.01, 0, 0.98, 1 - 0.35 / height))
    ax.axis("off")
    ax.set(xlim=(0, width + 0.1), ylim=(bottom, 0))
    boxes = _draw_strip(ax, strip, cells)
    for lane, (name, (x, y)) in enumerate(zip(views, places, strict=True)):
        boxes += _draw_grid(ax, name, views[name], lane, x, y)
        boxes += _draw_lane(ax, strip, name, views[name], lane, len(cells))
    draw_cells(ax, boxes)
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


def _draw_grid(ax: Axes, name: str, view: torch.Tensor, lane: int, x: float, y: float) -> list[Cell]:
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
        Cell(left + s * (columns + 0.6) + c, top - r - 1, 1, _text(value), lane)
        for (s, r, c), value in zip(places, view.flatten().tolist(), strict=True)
    ]


def _draw_axis(ax: Axes, k: int, left: float, top: float, right: float, down: float, lift: float) -> None:
    """An arrow from the first element of a grid to its neighbour in dimension k, outside of the grid."""
    x, y = (left - lift, top - 0.5) if down else (left + 0.5, top + lift)
    style = {"arrowstyle": "->", "color": _DIM_COLOURS[k], "linewidth": 1.3, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", (x + right, y + down), (x, y), arrowprops=style)


def _draw_strip(ax: Axes, strip: _Strip, cells: list[Any]) -> list[Cell]:
    """The storage with its offsets, in rows."""
    corners = [strip.at(offset) for offset in range(len(cells))]
    for x, y in corners[:: strip.columns]:
        name = {"ha": "right", "va": "center", "label": "_name"}
        ax.text(x - 0.15, y - 0.5, "storage", fontsize=8, **name)
        ax.text(x - 0.15, y - 1.33, "offset", fontsize=7, color=GREY, **name)
    draw_numbers(ax, [str(k) for k in range(len(cells))], [(x + 0.5, y - 1.33) for x, y in corners], 7, GREY)
    return [Cell(x, y - 1, 1, _text(value)) for (x, y), value in zip(corners, cells, strict=True)]


def _draw_lane(ax: Axes, strip: _Strip, name: str, view: torch.Tensor, lane: int, count: int) -> list[Cell]:
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
        boxes.append(Cell(x, y - below, 0.75, str(order[0]) if len(order) == 1 else f"×{len(order)}", lane))
    return boxes


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
