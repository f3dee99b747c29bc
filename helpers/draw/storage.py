"""Tensors on their storage: grids above strips, steps, merging; strips of any cells."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from helpers.draw.drawing import (  # isort: skip
    BLACK, BLUE, GREEN, GREY, INKS, PLATE, TINTS, VERMILLION, WIDTH, Made, Place, arrow, canvas, cell, drawn, rows,
)  # fmt: skip
from helpers.storage import layout, offset_of, plan_view, same_storage

_DIM_COLOURS = (BLUE, GREEN, INKS[VERMILLION])
_MARGIN = 2.2  # room for the names at the left; lengths here are in storage cells
Views = Mapping[str, torch.Tensor]


def offsets(view: torch.Tensor) -> list[int]:
    """The storage offset of each element, in the order of the elements."""
    return [offset_of(index, view) for index in itertools.product(*map(range, view.shape))]


@drawn("Tensors above their storage")
def storage(views: torch.Tensor | Views, title: str, *, trace: Sequence[int] | None = None) -> Made:
    """Tensors as grids, and below them the one storage that they share, as a strip with a lane per tensor.

    A lane marks the cells that its tensor touches, with the position of the element: 0 for the first, 1 for the next;
    `3, 4` or `×3` where some share the cell; a single tensor has no lane if these are the offsets. For one, arrows
    show the step of each dimension, and `trace` is the index of one element to be followed from the grid to the strip.
    Up to six tensors of at most three dimensions and 96 elements, on a storage of at most 24 cells; raises ValueError
    for tensors that do not fit or are of different storages, and for a trace of several tensors.
    """
    single = isinstance(views, torch.Tensor)
    views = {"": views} if single else dict(views)
    if trace is not None and not single:
        raise ValueError(f"a trace follows one element of one tensor, got {len(views)} tensors")
    cells = _cells(views)
    width = max(len(cells), 13 if single else 18) + _MARGIN
    scale = (WIDTH - 0.15) / (width + 0.1)  # inches for a cell
    fig, ax = canvas(1, title)
    x = y = deep = right = 0.0
    for (name, view), tint in zip(views.items(), TINTS, strict=False):
        wide = _width(name, view, scale)
        if x and x + wide > width:
            x, y, deep = 0.0, y - deep, 0.0
        corner = _grid(ax, name, view, tint, (x, y), scale)
        x, deep = x + wide, max(deep, y - corner[1] + (view.shape[-2] if view.dim() > 1 else 1) + 0.55)
        right = max(right, x)
    moving = [k for k, size in enumerate(view.shape) if size > 1 and view.numel()] if single else []
    lanes = {} if single and offsets(view) == [*range(len(cells))] else views  # the offsets say it all
    top, bottom = y - deep - 0.85 * len(moving), y - deep - 0.85 * (len(moving) + len(lanes)) - 1.8
    _strip(ax, top, cells, lanes)
    for level, k in enumerate(sorted(moving, key=lambda k: (-view.stride(k), k)), 1):  # the longest step on top
        _step(ax, top, view, k, 0.4 + 0.85 * (len(moving) - level))
    orders = {name or "tensor": [*map(str, offsets(view))] for name, view in views.items()}
    touched = (f"{name} in order: {' '.join(order[:32])}{' …' * (len(order) > 32)}" for name, order in orders.items())
    fig.set_label(f"Cells touched: {'; '.join(touched)}")
    law = _trace(ax, top, view, tuple(trace), corner, scale) if trace is not None else ""
    used = max(right + (5 if single else 0), len(cells) + _MARGIN + 0.2)  # a small tensor makes a small picture
    height = 0.4 - bottom * scale
    fig.set_size_inches(max(min(WIDTH, used * scale + 0.15), 4.4), height)
    fig.set_layout_engine("none")
    ax.set_position((0.01, 0, 0.98, 1 - 0.35 / height))
    ax.set(xlim=(0, (fig.get_figwidth() * 0.98) / scale), ylim=(bottom, 0))
    return fig, f"Element {list(trace)} lies in cell {law}." if law else ""


def _cells(views: Views) -> list[Any]:
    """The values on the storage that all the views share, in order; refuses what cannot be drawn."""
    first = next(iter(views.values()))
    count = layout(first).storage_bytes // first.element_size()
    if not 1 <= count <= 24 or len(views) > len(TINTS):
        limits = f"a strip has 1 to 24 cells and at most {len(TINTS)} tensors"
        raise ValueError(f"{limits}, got {count} and {len(views)}")
    for name, view in views.items():
        if view.dim() > 3 or view.numel() > 96:
            limits = "a grid has at most 3 dimensions and 96 elements"
            raise ValueError(f"{limits}, {name or 'this tensor'} has shape {tuple(view.shape)}")
        if not same_storage(first, view) or view.dtype != first.dtype:
            raise ValueError(f"{name} has another storage or dtype: a strip shows the views of one storage")
    return torch.as_strided(first.detach(), (count,), (1,), 0).tolist()


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _law(view: torch.Tensor, index: Sequence[Any]) -> str:
    """The cell of an element as a sum of steps."""
    return " + ".join([str(view.storage_offset()), *(f"{i} × {s}" for i, s in zip(index, view.stride(), strict=True))])


def _words(name: str, view: torch.Tensor) -> list[str]:
    words = [f"shape {tuple(view.shape)}", f"stride {view.stride()}, offset {view.storage_offset()}"]
    index = "ijk"[: view.dim()]
    return [name, *words] if name else [*words, f"cell of [{', '.join(index)}] = {_law(view, index)}"]


def _width(name: str, view: torch.Tensor, scale: float) -> float:
    """How many cells wide a tensor is, its words included where they stand above it."""
    slices, _, columns = (1,) * (3 - view.dim()) + tuple(view.shape)
    words = max(map(len, _words(name, view))) * 0.06 / scale + 0.6 if name else 0
    return max(slices * (columns + 0.6) + 0.4, words)


def _grid(ax: Axes, name: str, view: torch.Tensor, tint: str, at: Place, scale: float) -> Place:
    """The words and the elements of a tensor; a third dimension stands side by side. Gives the grid's upper left."""
    (x, y), line, wide = at, 0.165 / scale, _width(name, view, scale)
    words, shape = _words(name, view), (1,) * (3 - view.dim()) + tuple(view.shape)
    left, top, start = x + 0.1, y - 3 * line - 0.2, (x + 0.1, y - 0.1)
    if not name and (wide + 0.6) * scale + 2.6 < WIDTH:  # the only tensor has room for its words at the right
        left, top, start = x + 0.6, y - 0.7, (x + wide + 0.6, y - 0.7)
    elif not name:
        left, top, words = x + 0.6, y - 0.7 - 2 * line, [", ".join(words[:2]), words[2]]
    for row, text in enumerate(words):
        weight = "bold" if text == name else "normal"
        ax.text(start[0], start[1] - line * row, text, va="top", fontsize=8.5, weight=weight)
    for (s, r, c), value in zip(itertools.product(*map(range, shape)), view.flatten().tolist(), strict=True):
        cell(ax, left + s * (shape[2] + 0.6) + c, top - r - 1, _text(value), tint)
    ends = ((shape[2] + 0.6, 0, 0.45), (0, -1.0, 0.2), (1.0, 0, 0.15))[3 - view.dim() :]
    for k, (right, down, off) in enumerate(ends):  # an arrow to the neighbour in each dimension, outside of the grid
        if not name and view.shape[k] > 1:
            x, y = (left - off, top - 0.5) if down else (left + 0.5, top + off)
            arrow(ax, (x, y), (x + right, y + down), _DIM_COLOURS[k])
    return left, top


def _strip(ax: Axes, top: float, cells: Sequence[Any], views: Views) -> None:
    """The storage as a row of cells with their offsets, and a lane per tensor with the position of each element."""
    lanes = {name or "element": 2.18 + 0.85 * i for i, name in enumerate(views)}
    for name, below in {"storage": 0.5, "cell": 1.33, **lanes}.items():
        ax.text(_MARGIN - 0.15, top - below, name, ha="right", va="center", fontsize=8, label="_name")
    for offset, value in enumerate(cells):
        cell(ax, _MARGIN + offset, top - 1, _text(value))
        look = {"fontsize": 7.5, "ha": "center", "va": "center", "color": INKS[GREY], "label": "_offset"}
        ax.text(_MARGIN + offset + 0.5, top - 1.33, str(offset), **look)
    for view, below, tint in zip(views.values(), lanes.values(), TINTS, strict=False):
        found: dict[int, list[int]] = {}
        for position, offset in enumerate(offsets(view)):
            found.setdefault(offset, []).append(position)
        for offset, here in found.items():
            text = ", ".join(map(str, here))
            cell(ax, _MARGIN + offset, top - below - 0.37, text if len(text) < 5 else f"×{len(here)}", tint, 0.75)


def _step(ax: Axes, top: float, view: torch.Tensor, k: int, level: float) -> None:
    """The step along the strip from the first element to its neighbour in dimension k, with its label above it."""
    left, colour = _MARGIN + view.storage_offset() + 0.3 + 0.2 * k, _DIM_COLOURS[k]  # two of one length: side by side
    right = left + (view.stride(k) or 0.4)  # a step of 0 leads back to its own cell
    ax.plot([left, left, right], [top, top + level, top + level], linewidth=1.5, marker="", color=colour, label="_step")
    arrow(ax, (right, top + level), (right, top), colour)
    look = {"va": "bottom", "fontsize": 8.5, "color": INKS.get(colour, colour), "bbox": PLATE, "zorder": 6}
    ax.text(left + 0.5 - 0.2 * k, top + level + 0.12, f"dim {k}: +{view.stride(k)}", **look)


def _trace(ax: Axes, top: float, view: torch.Tensor, index: tuple, corner: Place, scale: float) -> str:
    """One element marked in the grid and on the strip, joined by an arrow; gives its offset as a sum."""
    law = f"{_law(view, index)} = {offset_of(index, view)}"
    s, r, c = (0,) * (3 - view.dim()) + index
    x, y, below = corner[0] + s * (view.shape[-1] + 0.6) + c, corner[1] - r - 1, _MARGIN + offset_of(index, view)
    for left, bottom in ((x, y), (below, top - 1)):
        ax.add_patch(Rectangle((left, bottom), 1, 1, fill=False, edgecolor=VERMILLION, linewidth=2.4, zorder=5))
    look = {"arrowstyle": "-|>", "linewidth": 1.8, "linestyle": "--", "connectionstyle": "arc3,rad=-0.08"}  # over steps
    arrow(ax, (x + 0.5, y), (below + 0.5, top), VERMILLION, **look)
    at, words = (corner[0] + _width("", view, scale), corner[1] - 4 * 0.165 / scale), f"{[*index]} → {law}"
    ax.text(*at, words, fontsize=9, weight="bold", color=INKS[VERMILLION], va="top")
    return law


@drawn("Strips of cells")
def merging(views: Views, title: str) -> Made:
    """When two dimensions merge into one: each view's storage, its elements in order, a tint per row of the view.

    Below a strip are the step inside a row and the jump from the end of the first row to the second: they merge where
    the two are equal, so that one stride serves all. Up to four views of two dimensions, each of at least 2 × 2
    elements, on storages of at most 24 cells; raises ValueError for others.
    """
    findings, cells = [], {name: layout(view).storage_bytes // view.element_size() for name, view in views.items()}
    for name, view in views.items():
        if view.dim() != 2 or min(view.shape) < 2 or cells[name] > 24 or len(views) > 4:
            limits = "merging shows up to 4 views of at least 2 × 2 on 24 cells"
            raise ValueError(f"{limits}, {name} is {tuple(view.shape)}")
    fig, ax = canvas(0.45 + 1.06 * len(views), title)
    for row, (name, view) in enumerate(views.items()):
        y, order, (height, width), (outer, inner) = -3.3 * row, offsets(view), view.shape, view.stride()
        for offset in range(cells[name]):
            position = order.index(offset) if offset in order else None
            tint = "white" if position is None else TINTS[position // width % 5]
            cell(ax, offset, y, "" if position is None else str(position), tint)
        merges = plan_view(view.shape, view.stride(), (height * width,)).stride is not None
        for (a, b), dash in (((order[0], order[1]), "-"), ((order[width - 1], order[width]), "-" if merges else "--")):
            bend = f"arc3,rad={0.35 if b > a else -0.35}"
            arrow(ax, (a + 0.5, y), (b + 0.5, y), BLACK, linewidth=1.8, linestyle=dash, connectionstyle=bend)
        rule = f"{outer} {'=' if merges else '≠'} {width} × {inner}"
        verdict = f"merges into ({height * width},), stride {inner}" if merges else "does not merge"
        findings.append(f"{name}: {verdict}, {rule}")
        words = f"{'✓' if merges else '✗'} step {inner:+d}, jump {order[width] - order[width - 1]:+d}: {verdict}"
        ax.text(0, y + 1.75, f"{name}  shape {tuple(view.shape)}, stride {view.stride()}: {rule}", fontsize=8.5)
        ax.text(0, y + 1.15, words.replace("-", "−"), weight="bold", fontsize=8.5)
    ax.set(xlim=(-0.1, max(cells.values()) + 0.1), ylim=(-3.3 * (len(views) - 1) - 1.4, 2.5))
    return fig, f"{'; '.join(findings)}."


@drawn("Strips of cells")
def strips(rows_: Mapping[str, Sequence[Any]], title: str, xlabel: str, tint: Callable[[Any], int | None] | None = None,
           parts: Sequence[str] = ()) -> Made:  # fmt: skip
    """A strip of cells per row, each with its text, wider by empty ones behind it.

    `tint` gives the number of a cell's tint, or None for a white one. `parts` names equal parts of the strips, with
    a bracket above each; with them the places have no numbers.
    """
    length = max(map(len, rows_.values()))
    fig, ax = canvas(0.72 + 0.34 * len(rows_) + 0.3 * bool(parts), title, xlabel)
    tint = tint or list(dict.fromkeys(itertools.chain(*rows_.values()))).index
    for row, strip in enumerate(rows_.values()):
        look = {"fontsize": 10 if length < 24 else 7, "va": "center_baseline"}
        for place, text in ((place, text) for place, text in enumerate(strip) if text != ""):
            wide = 1 + len([*itertools.takewhile(lambda text: text == "", strip[place + 1 :])])
            colour = "white" if (number := tint(text)) is None else TINTS[number % len(TINTS)]
            cell(ax, place, row - 0.36, str(text), colour, 0.72, wide, label=str(text), **look)
    for k, name in enumerate(parts):
        left, right = k * length / len(parts) + 0.03, (k + 1) * length / len(parts) - 0.03
        ax.plot([left, left, right, right], [-0.5, -0.6, -0.6, -0.5], color=GREY, linewidth=1, marker="", label="_part")
        ax.text((left + right) / 2, -0.72, name, ha="center", fontsize=8.5)
    rows(ax, rows_, head=0.75 * bool(parts))
    places = range(length) if length <= 12 and not parts else ()
    ax.set_xlim(-0.05, length + 0.05)
    ax.set_xticks([place + 0.5 for place in places], places)
    ax.tick_params(axis="x", length=0)
    ax.grid(visible=False)
    ax.spines[:].set_visible(False)
    return fig, ""
