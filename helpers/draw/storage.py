"""Tensors on their storage: grids above strips, steps, merging; strips of any cells."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from helpers.draw.drawing import WIDTH, Made, Spot, canvas, drawn
from helpers.draw.labels import arrow, cell, rows
from helpers.draw.palette import BLACK, BLUE, GREEN, GREY, INKS, PLATE, TINTS, VERMILLION
from helpers.storage import layout, offset_of, plan_view, same_storage

_DIM_COLOURS = (BLUE, GREEN, INKS[VERMILLION])
_MARGIN = 2.2  # room for the names at the left of a strip; lengths here are in storage cells
_LANE = 0.85  # from one lane, or level of steps, to the next
_APART = 0.6  # between the slices of a third dimension
Views = Mapping[str, torch.Tensor]


def offsets(view: torch.Tensor) -> list[int]:
    """The storage offset of each element, in the order of the elements."""
    return [offset_of(index, view) for index in itertools.product(*map(range, view.shape))]


@dataclass(frozen=True)
class _Grid:
    """A tensor of up to three dimensions as slices side by side, in cells, with words above them or at their right."""

    name: str
    view: torch.Tensor
    scale: float  # inches for a cell

    @property
    def shape(self) -> tuple[int, int, int]:
        slices, height, width = (1,) * (3 - self.view.dim()) + tuple(self.view.shape)
        return slices, height, width

    @property
    def line(self) -> float:
        """The height of a line of words."""
        return 0.165 / self.scale

    @property
    def words(self) -> list[str]:
        shape, stride = f"shape {tuple(self.view.shape)}", f"stride {self.view.stride()}"
        described = [shape, f"{stride}, offset {self.view.storage_offset()}"]
        if self.name:
            return [self.name, *described]
        index = "ijk"[: self.view.dim()]
        return [*described, f"cell of [{', '.join(index)}] = {_law(self.view, index)}"]

    @property
    def width(self) -> float:
        """Its words included, where they stand above it."""
        slices, _, columns = self.shape
        cells = slices * (columns + _APART) + 0.4
        words = max(map(len, self.words)) * 0.06 / self.scale + _APART
        return max(cells, words) if self.name else cells

    @property
    def beside(self) -> bool:
        """Whether the words have room at the right, as those of an only tensor may have."""
        return not self.name and (self.width + _APART) * self.scale + 2.6 < WIDTH

    def corner(self, at: Spot) -> Spot:
        """The upper left corner of the cells."""
        x, y = at
        if self.name:
            return x + 0.1, y - 3 * self.line - 0.2
        above = 0 if self.beside else 2 * self.line
        return x + _APART, y - 0.7 - above

    def cell_at(self, corner: Spot, index: Sequence[int]) -> Spot:
        """The lower left corner of an element."""
        s, r, c = (0,) * (3 - len(index)) + tuple(index)
        return corner[0] + s * (self.shape[2] + _APART) + c, corner[1] - r - 1

    def draw(self, ax: Axes, at: Spot, tint: str) -> None:
        x, y = at
        corner = self.corner(at)
        if self.beside:
            _write_lines(ax, (x + self.width + _APART, y - 0.7), self.words, self.line)
        elif self.name:
            _write_lines(ax, (x + 0.1, y - 0.1), self.words, self.line)
        else:
            shape, stride, law = self.words
            _write_lines(ax, (x + 0.1, y - 0.1), [f"{shape}, {stride}", law], self.line)
        for index in itertools.product(*map(range, self.view.shape)):
            cell(ax, self.cell_at(corner, index), _text(self.view[index].item()), tint)
        if not self.name:
            self._draw_neighbours(ax, corner)

    def _draw_neighbours(self, ax: Axes, corner: Spot) -> None:
        """An arrow to the neighbour in each dimension, outside of the grid."""
        left, top = corner
        starts = (left + 0.5, top + 0.45), (left - 0.2, top - 0.5), (left + 0.5, top + 0.15)
        ways = (self.shape[2] + _APART, 0), (0, -1), (1, 0)
        missing = 3 - self.view.dim()
        for k, ((x, y), (right, up)) in enumerate(zip(starts[missing:], ways[missing:], strict=True)):
            if self.view.shape[k] > 1:
                arrow(ax, (x, y), (x + right, y + up), _DIM_COLOURS[k])


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
    named = {"": views} if isinstance(views, torch.Tensor) else dict(views)
    if trace is not None and not single:
        raise ValueError(f"a trace follows one element of one tensor, got {len(named)} tensors")
    cells = _cells(named)
    width = max(len(cells), 13 if single else 18) + _MARGIN
    scale = (WIDTH - 0.15) / (width + 0.1)
    grids = [_Grid(name, view, scale) for name, view in named.items()]
    fig, ax = canvas(1, title)
    places, right, y = _flow(grids, width)
    for grid, at, tint in zip(grids, places, TINTS, strict=False):
        grid.draw(ax, at, tint)
    view = grids[0].view
    moving = [k for k, size in enumerate(view.shape) if single and size > 1 and view.numel()]
    in_order = single and offsets(view) == [*range(len(cells))]
    lanes = {} if in_order else named  # the offsets say it all
    top = y - _LANE * len(moving)
    _draw_strip(ax, top, cells, lanes)
    strides = [int(stride) for stride in view.stride()]
    longest_first = sorted(moving, key=lambda k: (-strides[k], k))
    for below, k in enumerate(longest_first, 1):  # the longest step on top
        _draw_step(ax, top, view, k, 0.4 + _LANE * (len(moving) - below))
    finding = ""
    if trace is not None:
        finding = f"Element {list(trace)} lies in cell {_draw_trace(ax, top, grids[0], places[0], tuple(trace))}."
    used = max(right + (5 if single else 0), len(cells) + _MARGIN + 0.2)  # a small tensor makes a small picture
    bottom = top - _LANE * len(lanes) - 1.8
    height = 0.4 - bottom * scale
    fig.set_size_inches(max(min(WIDTH, used * scale + 0.15), 4.4), height)
    fig.set_layout_engine("none")
    ax.set_position((0.01, 0, 0.98, 1 - 0.35 / height))
    ax.set(xlim=(0, (fig.get_figwidth() * 0.98) / scale), ylim=(bottom, 0))
    return Made(fig, finding, f"Cells touched: {'; '.join(_touched(named))}")


def _flow(grids: Sequence[_Grid], width: float) -> tuple[list[Spot], float, float]:
    """A place for each grid, from the left and line by line; how far right they reach, and how far down."""
    places: list[Spot] = []
    x = y = deep = right = 0.0
    for grid in grids:
        if x and x + grid.width > width:
            x, y, deep = 0.0, y - deep, 0.0
        places.append((x, y))
        _, top = grid.corner((x, y))
        x += grid.width
        deep = max(deep, y - top + grid.shape[1] + 0.55)
        right = max(right, x)
    return places, right, y - deep


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
    return list(torch.as_strided(first.detach(), (count,), (1,), 0).tolist())


def _touched(views: Views) -> Iterator[str]:
    """The cells that each view touches, in the order of its elements."""
    for name, view in views.items():
        cells = list(map(str, offsets(view)))
        more = " …" if len(cells) > 32 else ""
        yield f"{name or 'tensor'} in order: {' '.join(cells[:32])}{more}"


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _law(view: torch.Tensor, index: Sequence[Any]) -> str:
    """The cell of an element as a sum of steps."""
    return " + ".join([str(view.storage_offset()), *(f"{i} × {s}" for i, s in zip(index, view.stride(), strict=True))])


def _write_lines(ax: Axes, at: Spot, texts: Sequence[str], line: float) -> None:
    """Lines of words from their upper left corner; that of the name, the first of three, is bold."""
    x, y = at
    for row, text in enumerate(texts):
        named = row == 0 and not text.startswith("shape")
        ax.text(x, y - line * row, text, va="top", fontsize=8.5, weight="bold" if named else "normal")


def _draw_strip(ax: Axes, top: float, cells: Sequence[Any], views: Views) -> None:
    """The storage as a row of cells with their offsets, and a lane per tensor with the position of each element."""
    lanes = {name or "element": 2.18 + _LANE * lane for lane, name in enumerate(views)}
    small: dict[str, Any] = {"va": "center", "fontsize": 8, "label": "_unsaid"}
    for name, below in {"storage": 0.5, "cell": 1.33, **lanes}.items():
        ax.text(_MARGIN - 0.15, top - below, name, ha="right", **small)
    for offset, value in enumerate(cells):
        cell(ax, (_MARGIN + offset, top - 1), _text(value))
        style = small | {"fontsize": 7.5, "color": INKS[GREY]}
        ax.text(_MARGIN + offset + 0.5, top - 1.33, str(offset), ha="center", **style)
    for view, below, tint in zip(views.values(), lanes.values(), TINTS, strict=False):
        sharing: dict[int, list[str]] = {}
        for position, offset in enumerate(offsets(view)):
            sharing.setdefault(offset, []).append(str(position))
        for offset, positions in sharing.items():
            text = ", ".join(positions)
            text = text if len(text) < 5 else f"×{len(positions)}"
            cell(ax, (_MARGIN + offset, top - below - 0.37), text, tint, (1, 0.75))


def _draw_step(ax: Axes, top: float, view: torch.Tensor, k: int, level: float) -> None:
    """The step along the strip from the first element to its neighbour in dimension k, with its label above it."""
    step, colour = int(view.stride(k)), _DIM_COLOURS[k]
    left = _MARGIN + int(view.storage_offset()) + 0.3 + 0.2 * k  # two of one length: side by side
    right = left + (step or 0.4)  # a step of 0 leads back to its own cell
    ax.plot([left, left, right], [top, top + level, top + level], linewidth=1.5, marker="", color=colour)
    arrow(ax, (right, top + level), (right, top), colour)
    style: dict[str, Any] = {
        "va": "bottom",
        "fontsize": 8.5,
        "color": INKS.get(colour, colour),
        "bbox": PLATE,
        "zorder": 6,
    }
    ax.text(left + 0.5 - 0.2 * k, top + level + 0.12, f"dim {k}: +{step}", **style)


def _draw_trace(ax: Axes, top: float, grid: _Grid, at: Spot, index: tuple[int, ...]) -> str:
    """One element marked in the grid and on the strip, joined by an arrow; gives its offset as a sum."""
    offset = offset_of(index, grid.view)
    law = f"{_law(grid.view, index)} = {offset}"
    corner = grid.corner(at)
    x, y = grid.cell_at(corner, index)
    for left, bottom in ((x, y), (_MARGIN + offset, top - 1)):
        ax.add_patch(Rectangle((left, bottom), 1, 1, fill=False, edgecolor=VERMILLION, linewidth=2.4, zorder=5))
    style = {
        "arrowstyle": "-|>",
        "linewidth": 1.8,
        "linestyle": "--",
        "connectionstyle": "arc3,rad=-0.08",
    }  # over steps
    arrow(ax, (x + 0.5, y), (_MARGIN + offset + 0.5, top), VERMILLION, **style)
    words = corner[0] + grid.width, corner[1] - 4 * grid.line
    ax.text(*words, f"{[*index]} → {law}", fontsize=9, weight="bold", color=INKS[VERMILLION], va="top")
    return law


@drawn("Strips of cells")
def merging(views: Views, title: str) -> Made:
    """When two dimensions merge into one: each view's storage, its elements in order, a tint per row of the view.

    Below a strip are the step inside a row and the jump from the end of the first row to the second: they merge where
    the two are equal, so that one stride serves all. Up to four views of two dimensions, each of at least 2 × 2
    elements, on storages of at most 24 cells; raises ValueError for others.
    """
    cells = {name: layout(view).storage_bytes // view.element_size() for name, view in views.items()}
    for name, view in views.items():
        if view.dim() != 2 or min(view.shape) < 2 or cells[name] > 24 or len(views) > 4:
            limits = "merging shows up to 4 views of at least 2 × 2 on 24 cells"
            raise ValueError(f"{limits}, {name} is {tuple(view.shape)}")
    fig, ax = canvas(0.45 + 1.06 * len(views), title)
    findings = [_draw_merge(ax, -3.3 * row, name, view, cells[name]) for row, (name, view) in enumerate(views.items())]
    ax.set(xlim=(-0.1, max(cells.values()) + 0.1), ylim=(-3.3 * (len(views) - 1) - 1.4, 2.5))
    return Made(fig, f"{'; '.join(findings)}.")


def _draw_merge(ax: Axes, y: float, name: str, view: torch.Tensor, cells: int) -> str:
    """A strip with a step and the first jump, and in words above it whether they are equal; gives the finding."""
    order, (height, width), (outer, inner) = offsets(view), view.shape, view.stride()
    position_at = {offset: position for position, offset in enumerate(order)}
    for offset in range(cells):
        position = position_at.get(offset)
        if position is None:
            cell(ax, (offset, y))
        else:
            cell(ax, (offset, y), str(position), TINTS[position // width % 5])
    merges = plan_view(view.shape, view.stride(), (height * width,)).stride is not None
    _draw_hop(ax, y, order[0], order[1], "-")
    _draw_hop(ax, y, order[width - 1], order[width], "-" if merges else "--")
    sign, equals = ("✓", "=") if merges else ("✗", "≠")
    verdict = f"merges into ({height * width},), stride {inner}" if merges else "does not merge"
    rule = f"{outer} {equals} {width} × {inner}"
    step, jump = f"step {inner:+d}", f"jump {order[width] - order[width - 1]:+d}"
    ax.text(0, y + 1.75, f"{name}  shape {tuple(view.shape)}, stride {view.stride()}: {rule}", fontsize=8.5)
    ax.text(0, y + 1.15, f"{sign} {step}, {jump}: {verdict}".replace("-", "−"), weight="bold", fontsize=8.5)
    return f"{name}: {verdict}, {rule}"


def _draw_hop(ax: Axes, y: float, start: int, end: int, dash: str) -> None:
    """An arrow below a strip, from cell to cell."""
    bend = 0.35 if end > start else -0.35
    style = {"linewidth": 1.8, "linestyle": dash, "connectionstyle": f"arc3,rad={bend}"}
    arrow(ax, (start + 0.5, y), (end + 0.5, y), BLACK, **style)


@drawn("Strips of cells")
def strips(
    strips: Mapping[str, Sequence[Any]],
    title: str,
    xlabel: str = "",
    tint: Callable[[Any], int | None] | None = None,
    parts: Sequence[str] = (),
) -> Made:
    """A strip of cells per row, each with its text, wider by empty ones behind it.

    `tint` gives the number of a cell's tint, or None for a white one. `parts` names equal parts of the strips, with
    a bracket above each; with them, or without an `xlabel`, the places have no numbers.
    """
    length = max(map(len, strips.values()))
    head = 0.3 if parts else 0
    fig, ax = canvas(0.72 + 0.34 * len(strips) + head, title, xlabel)
    ax.axis("on")
    tint = tint or list(dict.fromkeys(itertools.chain(*strips.values()))).index
    style: dict[str, Any] = {"fontsize": 10 if length < 24 else 7, "va": "center_baseline", "said": True}
    for row, strip in enumerate(strips.values()):
        for place, text, width in _runs(strip):
            number = tint(text)
            face = "white" if number is None else TINTS[number % len(TINTS)]
            cell(ax, (place, row - 0.36), str(text), face, (width, 0.72), **style)
    rows(ax, strips)
    if parts:
        _draw_parts(ax, parts, length)
        ax.set_ylim(top=-1.35)
    ax.set_xlim(-0.05, length + 0.05)
    ax.set_xticks([])
    if xlabel and not parts and length <= 12:
        ax.set_xticks([place + 0.5 for place in range(length)], map(str, range(length)))
    ax.xaxis.set_visible(bool(xlabel))
    ax.tick_params(axis="x", length=0)
    ax.grid(visible=False)
    ax.spines[:].set_visible(False)
    return Made(fig)


def _runs(strip: Sequence[Any]) -> Iterator[tuple[int, Any, int]]:
    """Each text that is not empty, its place, and how many cells it takes with the empty ones behind it."""
    places = [place for place, text in enumerate(strip) if text != ""]
    for place, end in itertools.pairwise([*places, len(strip)]):
        yield place, strip[place], end - place


def _draw_parts(ax: Axes, parts: Sequence[str], length: int) -> None:
    """A bracket above each of the equal parts, with its name."""
    for k, name in enumerate(parts):
        left, right = k * length / len(parts) + 0.03, (k + 1) * length / len(parts) - 0.03
        ax.plot([left, left, right, right], [-0.5, -0.6, -0.6, -0.5], color=GREY, linewidth=1, marker="")
        ax.text((left + right) / 2, -0.72, name, ha="center", fontsize=8.5)
