"""Tensors on their storage: grids above strips, steps, merging, cache lines, and what named dimensions do to cells."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from helpers.draw.drawing import BLUE, GREEN, GREY, INKS, TINTS, VERMILLION, WIDTH, canvas, drawn, page
from helpers.storage import layout, offset_of, plan_view, same_storage

MOST_CELLS = 96
_DIM_COLOURS = (BLUE, GREEN, INKS[VERMILLION])
_LANE = 0.85  # height of a view's lane below the strip; lengths here are in storage cells
_MARGIN = 2.2  # room for the names at the left


def offsets(view: torch.Tensor) -> list[int]:
    """The storage offset of each element, in the order of the elements."""
    return [offset_of(index, view) for index in itertools.product(*map(range, view.shape))]


@drawn("Tensors above their storage")
def storage(
    views: torch.Tensor | Mapping[str, torch.Tensor], title: str, *, trace: Sequence[int] | None = None
) -> tuple[Figure, str]:
    """Tensors as grids, and below them the one storage that they share, as a strip with a lane per tensor.

    A lane marks the cells that its tensor touches, with the position of the element: 0 for the first, 1 for the next;
    `×3` where three elements share the cell. For a single tensor, arrows show the step of each dimension, and `trace`
    is the index of one element to be followed from the grid to the strip. Up to five tensors of at most three
    dimensions and 96 elements, on a storage of at most 96 cells; raises ValueError for tensors that do not fit or are
    of different storages, and for a trace of several tensors.
    """
    single = isinstance(views, torch.Tensor)
    views = {"": views} if single else dict(views)
    if trace is not None and not single:
        raise ValueError(f"a trace follows one element of one tensor, got {len(views)} tensors")
    cells = _cells(views)
    columns = math.ceil(len(cells) / math.ceil(len(cells) / 24))
    width = max(columns, 13 if single else 18) + _MARGIN
    scale = (WIDTH - 0.15) / (width + 0.1)  # inches for a cell
    places, head = _place_grids(views, width, scale)
    steps = _steps(views[""]) if single else []
    strip = _Strip(columns, -head - 0.85 * len(steps), 2.05 + _LANE * len(views))
    bottom = strip.at(len(cells) - 1)[1] - strip.height + 0.25
    height = 0.4 - bottom * scale
    fig, ax = canvas(height, title)
    fig.set_layout_engine("none")
    ax.set_position((0.01, 0, 0.98, 1 - 0.35 / height))
    ax.axis("off")
    ax.set(xlim=(0, width + 0.1), ylim=(bottom, 0))
    _draw_strip(ax, strip, cells)
    for lane, (name, (x, y)) in enumerate(zip(views, places, strict=True)):
        corner = _draw_grid(ax, name, views[name], lane, x, y, scale)
        _draw_lane(ax, strip, name, views[name], lane, len(cells))
    for level, k in enumerate(steps):
        _draw_step(ax, strip, views[""], k, 0.4 + 0.85 * (len(steps) - 1 - level))
    touched = (f"{name or 'tensor'} in order: {_numbers(offsets(view))}" for name, view in views.items())
    fig.set_label("Offsets touched: " + "; ".join(touched))
    if trace is None:
        return fig, ""
    law = _draw_trace(ax, strip, views[""], tuple(trace), corner, 0.165 / scale)
    return fig, f"Element {list(trace)} lies at offset {law}."


@dataclass(frozen=True)
class _Strip:
    """Where the storage strip lies: its cells in a row, the top of the first row, and the height of a row."""

    columns: int
    top: float
    height: float

    def at(self, offset: int) -> tuple[float, float]:
        """The upper left corner of a cell."""
        return _MARGIN + offset % self.columns, self.top - self.height * (offset // self.columns)


def _cells(views: Mapping[str, torch.Tensor]) -> list[Any]:
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


def _numbers(numbers: Sequence[int], most: int = 32) -> str:
    return " ".join(map(str, numbers[:most])) + (" …" if len(numbers) > most else "")


def _cell(ax: Axes, x: float, y: float, text: str, face: str = "white", height: float = 1.0, **look: Any) -> None:
    """A box with a text in it, from its lower left corner."""
    ax.add_patch(Rectangle((x, y), 1, height, facecolor=face, edgecolor=GREY, linewidth=0.6))
    look = {"ha": "center", "va": "center", "fontsize": 8, "label": "_cell"} | look
    ax.text(x + 0.5, y + height / 2 - 0.03, text, **look)


def _grid_words(name: str, view: torch.Tensor) -> list[str]:
    words = [f"shape {tuple(view.shape)}", f"stride {view.stride()}, offset {view.storage_offset()}"]
    return [name, *words] if name else words


def _place_grids(
    views: Mapping[str, torch.Tensor], width: float, scale: float
) -> tuple[list[tuple[float, float]], float]:
    """The upper left corner of each grid, set like words on lines, and the height of all."""
    corners, x, y, line = [], 0.0, 0.0, 0.0
    for name, view in views.items():
        slices, rows, columns = (1,) * (3 - view.dim()) + tuple(view.shape)
        lines = 3 if name else 0 if _beside(view, scale) else 2
        words, above = max(map(len, _grid_words(name, view))) * 0.06 / scale, 0.165 * lines / scale
        wide = max(slices * (columns + 0.6) + 0.4, words + 0.6 if name else 0)
        if x and x + wide > width:
            x, y, line = 0.0, y - line, 0.0
        corners.append((x, y))
        x, line = x + wide, max(line, rows + above + (0.75 if name else 1.1))
    return corners, line - y


def _beside(view: torch.Tensor, scale: float) -> bool:
    """Whether there is room for the words of a single tensor to the right of its grid."""
    slices, _, columns = (1,) * (3 - view.dim()) + tuple(view.shape)
    return (slices * (columns + 0.6) + 1) * scale + 2.6 < WIDTH


def _draw_grid(
    ax: Axes, name: str, view: torch.Tensor, lane: int, x: float, y: float, scale: float
) -> tuple[float, float]:
    """The words and the elements of a tensor; a third dimension stands side by side. Gives the grid's upper left."""
    shape = (1,) * (3 - view.dim()) + tuple(view.shape)
    columns, line = shape[-1], 0.165 / scale
    left, top = (x + 0.1, y - 3 * line - 0.2) if name else (x + 0.6, y - 0.7)
    words = _grid_words(name, view)
    if not name:  # the only one: its words stand beside it or above, with the law of its offsets
        law = " + ".join(
            [str(view.storage_offset()), *(f"{i} × {step}" for i, step in zip("ijk", view.stride(), strict=False))]
        )
        words.append(f"offset of [{', '.join('ijk'[: view.dim()])}] = {law}")
    if name or not _beside(view, scale):
        at = (x + 0.1, y - 0.1)
        words = words if name else [", ".join(words[:2]), words[2]]
        top -= 0 if name else 2 * line
    else:
        at = (left + shape[0] * (columns + 0.6) + 0.4, top)
    for number, text in enumerate(words):
        bold = "bold" if name and not number else "normal"
        ax.text(at[0], at[1] - line * number, text, ha="left", va="top", fontsize=8.5, weight=bold)
    if not name:
        for k, size in enumerate(view.shape):
            if size > 1:
                ends = {1: (1.0, 0, 0.15), 2: (0, -1.0, 0.2), 3: (columns + 0.6, 0, 0.45)}[view.dim() - k]
                _draw_neighbour(ax, k, left, top, *ends)
    places = itertools.product(*map(range, shape))
    for (s, r, c), value in zip(places, view.flatten().tolist(), strict=True):
        _cell(ax, left + s * (columns + 0.6) + c, top - r - 1, _text(value), TINTS[lane])
    return left, top


def _draw_neighbour(ax: Axes, k: int, left: float, top: float, right: float, down: float, lift: float) -> None:
    """An arrow from the first element of a grid to its neighbour in dimension k, outside of the grid."""
    x, y = (left - lift, top - 0.5) if down else (left + 0.5, top + lift)
    style = {"arrowstyle": "->", "color": _DIM_COLOURS[k], "linewidth": 1.5, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", (x + right, y + down), (x, y), arrowprops=style)


def _draw_strip(ax: Axes, strip: _Strip, cells: Sequence[Any]) -> None:
    """The storage with its offsets, in rows."""
    for offset, value in enumerate(cells):
        x, y = strip.at(offset)
        _cell(ax, x, y - 1, _text(value))
        ax.text(
            x + 0.5, y - 1.33, str(offset), fontsize=7.5, ha="center", va="center", color=INKS[GREY], label="_offset"
        )
        if offset % strip.columns == 0:
            name = {"ha": "right", "va": "center", "label": "_name"}
            ax.text(x - 0.15, y - 0.5, "storage", fontsize=8, **name)
            ax.text(x - 0.15, y - 1.33, "offset", fontsize=7.5, color=INKS[GREY], **name)


def _draw_lane(ax: Axes, strip: _Strip, name: str, view: torch.Tensor, lane: int, count: int) -> None:
    """The cells that a tensor touches, with the position of the element in each."""
    below = 1.7 + _LANE * (lane + 1)
    for start in range(0, count, strip.columns):
        x, y = strip.at(start)
        ax.text(x - 0.15, y - below + 0.37, name or "element", ha="right", va="center", fontsize=8, label="_name")
    found: dict[int, list[int]] = {}
    for position, offset in enumerate(offsets(view)):
        found.setdefault(offset, []).append(position)
    for offset, order in found.items():
        x, y = strip.at(offset)
        _cell(ax, x, y - below, str(order[0]) if len(order) == 1 else f"×{len(order)}", TINTS[lane], 0.75)


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _steps(view: torch.Tensor) -> list[int]:
    """The dimensions in which there is a neighbour, the longest step first."""
    moving = [k for k, size in enumerate(view.shape) if size > 1 and view.numel()]
    return sorted(moving, key=lambda k: (-view.stride(k), k))


def _draw_step(ax: Axes, strip: _Strip, view: torch.Tensor, k: int, level: float) -> None:
    """The step along the strip from the first element to its neighbour in dimension k, with its label at the right."""
    start, colour = view.storage_offset(), _DIM_COLOURS[k]
    (x0, y0), (x1, y1) = strip.at(start), strip.at(start + view.stride(k))
    shift = 0.3 + 0.2 * k  # so that two steps of one length lie beside each other
    up, width = y0 + level, {"linewidth": 1.5, "marker": "", "color": colour, "label": "_step"}
    arrow = {"arrowstyle": "->", "color": colour, "linewidth": 1.5, "shrinkA": 0, "shrinkB": 0}
    if y0 == y1:
        right = x1 + shift if x1 != x0 else x0 + 0.9 + 0.05 * k  # a step of 0 leads back to its own cell
        ax.plot([x0 + shift, x0 + shift, right], [y0, up, up], **width)
        ax.annotate("", (right, y1), (right, up), arrowprops=arrow)
    else:  # to another row: straight down, beside the digits
        right = x0 + shift
        ax.plot([right, right], [y0, up], **width)
        ax.annotate("", (x1 + 0.1, y1), (x0 + 0.1, y0 - 1), arrowprops=arrow)
    label = f"dim {k}: +{view.stride(k)}"
    ax.text(right + 0.2, up, label, ha="left", va="center", fontsize=8.5, color=INKS.get(colour, colour))


def _draw_trace(
    ax: Axes, strip: _Strip, view: torch.Tensor, index: tuple[int, ...], corner: tuple[float, float], line: float
) -> str:
    """One element marked in the grid and on the strip, joined by an arrow; gives its offset as a sum."""
    offset = offset_of(index, view)
    law = " + ".join([str(view.storage_offset()), *(f"{i} × {s}" for i, s in zip(index, view.stride(), strict=True))])
    s, r, c = (0,) * (3 - view.dim()) + index
    x, y = corner[0] + s * (view.shape[-1] + 0.6) + c, corner[1] - r - 1
    at, top = strip.at(offset)
    for left, bottom in ((x, y), (at, top - 1)):
        ax.add_patch(Rectangle((left, bottom), 1, 1, fill=False, edgecolor=VERMILLION, linewidth=2.4, zorder=5))
    arrow = {"arrowstyle": "-|>", "color": VERMILLION, "linewidth": 1.8, "linestyle": "--", "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", (at + 0.5, top), (x + 0.5, y), arrowprops=arrow, zorder=5)
    words = f"[{', '.join(map(str, index))}] → {law} = {offset}"
    right = corner[0] + (view.shape[0] if view.dim() == 3 else 1) * (view.shape[-1] + 0.6) + 0.4
    look = {"fontsize": 9, "weight": "bold", "color": INKS[VERMILLION], "va": "top"}
    ax.text(right, corner[1] - 4 * line, words, **look)
    return f"{law} = {offset}"


@drawn("Strips of cells")
def merging(views: Mapping[str, torch.Tensor], title: str) -> tuple[Figure, str]:
    """When two dimensions merge into one: each view's storage, its elements in order, a tint per row of the view.

    Below a strip are the step inside a row and the jump from the end of the first row to the second: they merge where
    the two are equal, so that one stride serves all. Up to four views of two dimensions, each of at least 2 × 2
    elements, on at most 24 cells; raises ValueError for others.
    """
    for name, view in views.items():
        if view.dim() != 2 or min(view.shape) < 2 or max(offsets(view)) >= 24 or len(views) > 4:
            raise ValueError(
                f"merging shows up to 4 views of at least 2 × 2 on 24 cells, {name} is {tuple(view.shape)}"
            )
    columns, findings = max(max(offsets(view)) + 1 for view in views.values()), []
    fig, ax = canvas(0.45 + 1.15 * len(views), title)
    ax.axis("off")
    for row, (name, view) in enumerate(views.items()):
        y, (height, width), (outer, inner) = -3.4 * row, view.shape, view.stride()
        order = {offset: position for position, offset in enumerate(offsets(view))}
        for offset in range(columns):
            position = order.get(offset)
            face = "white" if position is None else TINTS[position // width % 5]
            _cell(ax, offset, y, "" if position is None else str(position), face)
        start = view.storage_offset()
        end = start + (width - 1) * inner
        merges = plan_view(view.shape, view.stride(), (height * width,)).stride is not None
        for a, b, colour in ((start, start + inner, BLUE), (end, start + outer, BLUE if merges else VERMILLION)):
            bend = 0.35 if b > a else -0.35
            arrow = {"arrowstyle": "->", "color": colour, "linewidth": 1.8, "connectionstyle": f"arc3,rad={bend}",
                     "shrinkA": 0, "shrinkB": 0}  # fmt: skip
            ax.annotate("", (b + 0.5, y), (a + 0.5, y), arrowprops=arrow)
        jump = start + outer - end
        rule = f"{outer} {'=' if merges else '≠'} {width} × {inner}"
        verdict = f"merges into ({height * width},), stride {inner}" if merges else "does not merge"
        findings.append(f"{name}: {verdict}, {rule}")
        ax.text(0, y + 1.2, f"{name}  shape {tuple(view.shape)}, stride {view.stride()}", fontsize=9, va="bottom")
        ink = INKS[BLUE if merges else VERMILLION]
        look = {"fontsize": 9, "va": "bottom", "ha": "right", "weight": "bold", "color": ink}
        ax.text(columns, y + 1.2, f"step {inner:+d}, jump {jump:+d}: {rule}, {verdict}".replace("-", "−"), **look)
    ax.set(xlim=(-0.1, columns + 0.1), ylim=(-3.4 * (len(views) - 1) - 1.6, 2.1))
    return fig, f"{'; '.join(findings)}."


@drawn("Cache lines")
def walk(views: Mapping[str, torch.Tensor], title: str, *, steps: int = 16, line: int = 64) -> tuple[Figure, str]:
    """The cache lines that the first steps of a walk touch: a row per line of memory, a cell per element.

    `views` maps the name of a walk to a tensor whose elements are visited in order; they share a storage, and the
    cells carry the number of the step. `line` is the size of a cache line in bytes. Raises ValueError for more than
    three walks, and for walks beyond 24 lines of 32 elements.
    """
    first = next(iter(views.values()))
    wide = line // first.element_size()
    orders = {name: offsets(view)[:steps] for name, view in views.items()}
    tall = max(max(order) for order in orders.values()) // wide + 1
    if len(views) > 3 or not 1 <= wide <= 32 or tall > 24 or any(not same_storage(first, v) for v in views.values()):
        raise ValueError(f"up to 3 walks of one storage on 24 lines of 32 elements, got {len(views)}, {tall} × {wide}")
    fig, ax = canvas(0.75 + tall * WIDTH / len(views) / (wide + 2) * 0.8, title)
    ax.axis("off")
    counts = []
    for panel, (name, order) in enumerate(orders.items()):
        lines, left = {offset // wide for offset in order}, panel * (wide + 2.0)
        for offset in range(tall * wide):
            x, y = left + offset % wide, -(offset // wide)
            tint = TINTS[1] if offset in order else "#FBEBDD" if offset // wide in lines else "white"
            _cell(ax, x, y, str(order.index(offset)) if offset in order else "", tint, fontsize=7)
        word = "line" if len(lines) == 1 else "lines"
        counts.append(f"{name}: {len(order)} steps touch {len(lines)} {word}")
        ax.text(left, 2.3, name, fontsize=9, weight="bold")
        ax.text(left, 1.3, f"{len(order)} steps, {len(lines)} {word} ({len(lines) * line} bytes)", fontsize=8.5)
    ax.set(xlim=(-0.1, len(views) * (wide + 2) - 1.9), ylim=(-tall + 0.9, 3.3))
    return fig, f"{'; '.join(counts)}, of {line} bytes each."


@drawn("Strips of cells")
def groups(rows: Mapping[str, Sequence[int]], title: str, group: str) -> Figure:
    """A strip of cells per row, in the order of memory: each cell carries the number of its group, below its position.

    `group` names what the numbers count, such as head. Same number, same tint.
    """
    length = max(map(len, rows.values()))
    fig, ax = canvas(0.75 + 0.62 * len(rows), title, f"position in memory; the cell says which {group}")
    for row, members in enumerate(rows.values()):
        for position, member in enumerate(members):
            _cell(ax, position, row - 0.32, str(member), TINTS[member % 5], 0.64, fontsize=10, label=str(member))
    ax.set_xticks([position + 0.5 for position in range(length)], map(str, range(length)))
    ax.set_yticks(range(len(rows)), list(rows), family="DejaVu Sans Mono")
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.grid(visible=False)
    ax.set(xlim=(0, length), ylim=(len(rows) - 0.55, -0.45))
    return fig


@drawn("Pictures")
def images(pictures: Mapping[str, torch.Tensor], title: str, columns: int = 1) -> Figure:
    """Pictures side by side at one scale, each with its name and its shape.

    A picture is a tensor of shape (height, width), drawn in greys, or (height, width, 3); 0 is black and 1 is white.
    Raises ValueError for any other shape.
    """
    for name, picture in pictures.items():
        if picture.ndim not in (2, 3) or (picture.ndim == 3 and picture.shape[2] != 3):
            shapes = "(height, width) or (height, width, 3)"
            raise ValueError(f"a picture has the shape {shapes}, {name!r} has {tuple(picture.shape)}")
    rows = math.ceil(len(pictures) / columns)
    tall, wide = (max(picture.shape[side] for picture in pictures.values()) for side in (0, 1))
    height = min((WIDTH / columns - 0.2) * tall / wide, 2.4)
    fig = page(0.4 + rows * (height + 0.4))
    fig.suptitle(title, x=0.01, ha="left", fontsize=10.5, weight="bold")
    axes = fig.subplots(rows, columns, squeeze=False).flat
    for ax, (name, picture) in itertools.zip_longest(axes, pictures.items(), fillvalue=("", None)):
        ax.axis("off")
        if picture is not None:
            pixels = picture.detach().cpu().clamp(0, 1).numpy()
            ax.imshow(pixels, cmap="gray", vmin=0, vmax=1, interpolation="nearest", label=name)
            ax.set(xlim=(-0.5, wide - 0.5), ylim=(tall - 0.5, -0.5), anchor="NW")  # one scale for all
            edge = {"fill": False, "edgecolor": GREY, "linewidth": 0.8, "clip_on": False}
            ax.add_patch(Rectangle((-0.5, -0.5), picture.shape[1], picture.shape[0], **edge))
            ax.set_title(f"{name}   {tuple(picture.shape)}", fontsize=8.5, weight="normal", family="DejaVu Sans Mono")
    return fig
