"""The block card, with what every lesson says about each box; the heads of attention; an einsum as a box of loops."""

import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyBboxPatch, Polygon, Rectangle

from helpers import specs, units
from helpers.budget import Box, block_costs
from helpers.draw.drawing import BLACK, BLUE, GREY, INKS, TINTS, VERMILLION, Made, Place, arrow, drawn, figure
from helpers.model import Config
from helpers.roofline import Roofline

_WIDE, _TOP, _LINE, _MIDDLE = 704, 110, 31, 86  # pixels as shown: the page, the first row, a row, the boxes' centre
_AREAS = {2: (146, 186), 3: (192, 242), 4: (248, 374), 5: (380, 492), 6: (500, 618), 7: (626, 698)}  # of each lesson
_COLUMNS = {  # which lesson fills it, its head, and its left or right edge
    "layout": (2, "layout", 148, "left"),
    "shape": (3, "shape", 194, "left"),
    "parameters": (4, "parameters", 314, "right"),
    "FLOPs": (4, "FLOPs", 370, "right"),
    "bytes": (5, "bytes", 434, "right"),
    "FLOP/B": (5, "FLOP/B", 490, "right"),
    "time": (6, "least time", 504, "left"),
    "kept": (7, "kept for\nbackward", 696, "right"),
}
_PLAIN = {"label": "_", "marker": ""}
_TIP = {"arrowstyle": "-|>,head_length=0.25,head_width=0.14", "linewidth": 1.0}
_BOUNDS = {"compute": (VERMILLION, TINTS[1]), "memory": (BLUE, TINTS[0]), "": (GREY, "white")}


@drawn("Block card")
def block(
    config: Config,
    batch: int,
    tokens: int,
    *,
    upto: int = 7,
    decode: bool = False,
    fused: bool = True,
    machine: str = "NVIDIA H100 SXM5",
) -> Made:
    """The block of a model as boxes, and beside each what the lessons up to number `upto` say about it, in bfloat16.

    Over whole texts or, with `decode`, for one new token of each of `batch` texts of `tokens` tokens. The columns of
    later lessons are empty and bear their number. Costs are `budget.block_costs`; boxes that run as one kernel share
    their bytes and their time. Least times are those of the machine's datasheet: peak in bfloat16, and bandwidth.
    """
    boxes, spec = block_costs(config, batch, tokens, decode=decode, fused=fused), specs.find(machine)
    roof = Roofline(spec.peak("bfloat16"), spec.bandwidth)
    kernels = [_summed(list(group), roof) for _, group in groupby(boxes, key=lambda box: box.kernel)]
    texts = f"{batch} text{'s' if batch > 1 else ''} of {tokens} tokens"
    task = f"a new token for {'each of ' if batch > 1 else ''}{texts}" if decode else texts
    fig, ax = _sheet(_TOP + _LINE * (len(boxes) + 1) + 10, f"One block of {config.name}: {task}")
    letters = {"b": batch, "t": 1 if decode else tokens, "s": tokens, "d": config.width, "h": config.heads}
    letters |= {"kv": config.key_heads} if config.key_heads != config.heads else {}
    letters |= {"c": config.channels, "f": config.hidden}
    legend = "   ".join(f"{letter} {size}" for letter, size in letters.items())
    legend += f"   ·   bfloat16{f', {spec.name}' if upto >= 6 else ''}"
    _write(ax, 12, 40, legend, color=INKS[GREY], fontsize=8, label="")
    _heads(ax, upto, _TOP + _LINE * len(boxes))
    lines, row = [], 0
    for kernel in kernels:
        for box in kernel["boxes"]:
            _box(ax, box, row, kernel["bound"] if upto >= 6 else "")
            own = {"shape": box.shape.replace(", ", "\n"), "layout": box.layout}
            own |= {"parameters": _short(box.parameters), "FLOPs": _short(box.flops)}
            lines.append([box.name, *_cells(ax, own, row, upto)])
            row += 1
        middle = row - (len(kernel["boxes"]) + 1) / 2
        lines[-1] += _cells(ax, {name: kernel[name] for name in ("bytes", "FLOP/B", "time", "kept")}, middle, upto)
        if len(kernel["boxes"]) > 1 and upto >= 5:
            high, low = _row(middle - 1.3), _row(middle + 1.3)
            ax.plot([382, 378, 378, 382], [high, high, low, low], color=INKS[GREY], linewidth=0.9, **_PLAIN)
            _write(ax, 384, _row(middle - 1), "one kernel", color=INKS[GREY], fontsize=8)
        if upto >= 6:
            y, ink = _row(middle), _BOUNDS[kernel["bound"]][0]
            length = 110 * kernel["seconds"] / max(kernel["seconds"] for kernel in kernels)
            ax.add_patch(Rectangle((504, y + 8), length, 3, color=ink, linewidth=0))
            _write(ax, 614, y, kernel["bound"], "right", fontsize=8, color=INKS[ink])
    seconds = sum(kernel["seconds"] for kernel in kernels)
    whole = _summed(boxes, roof) | {"time": units.duration(seconds)}
    ax.plot([30, 698], [_row(row - 0.5)] * 2, color=BLACK, linewidth=0.8, **_PLAIN)
    _write(ax, _MIDDLE, _row(row), "the block", "center", weight="bold")
    sums = {name: whole[name] for name in ("parameters", "FLOPs", "bytes", "FLOP/B", "kept", "time")}
    lines.append(["the block", *_cells(ax, sums, row, upto, weight="bold")])
    _arrows(ax, boxes)
    fig.set_label("\n".join(" | ".join(cell for cell in line if cell) for line in lines))
    waiting = [kernel["seconds"] for kernel in kernels if kernel["bound"] == "memory"]
    share = f"{len(waiting)} of {len(kernels)} kernels wait for memory, for {sum(waiting) / seconds:.0%}"
    return fig, f"{share} of the least time." if upto >= 6 else ""


def _summed(boxes: list[Box], roof: Roofline) -> dict[str, Any]:
    """The columns of boxes that run together, and their time and what bounds it."""
    names = "parameters", "flops", "bytes", "kept"
    parameters, flops, nbytes, kept = (sum(getattr(box, name) for box in boxes) for name in names)
    ratio, seconds = flops / nbytes, roof.seconds(flops, nbytes)
    cells = {"parameters": _short(parameters), "FLOPs": _short(flops), "bytes": units.si(nbytes, "B")}
    cells |= {"FLOP/B": f"{ratio:.0f}" if ratio >= 100 else f"{ratio:.3g}", "time": units.duration(seconds)}
    cells |= {"kept": units.si(kept, "B") if kept else ""}
    return cells | {"seconds": seconds, "bound": roof.bound(flops, nbytes), "boxes": boxes}


def _short(count: float) -> str:
    return units.si(count, "").strip() if count else ""


def _sheet(height: float, title: str) -> tuple[Figure, Axes]:
    """A page whose coordinates are the pixels that are shown, from the upper left corner."""
    fig, ax = figure(height=height / 110)
    fig.set_layout_engine("none")  # not layout="none": to save a figure resets that to the style's own
    fig.suptitle(title, x=12 / _WIDE, ha="left", weight="bold")
    ax.set_position((0, 0, 1, 1))
    ax.set(xlim=(0, _WIDE), ylim=(height, 0))
    ax.axis("off")
    return fig, ax


def _write(ax: Axes, x: float, y: float, text: str, align: str = "left", **style: Any) -> None:
    """A text at a place; the words of the drawing leave it out unless it gets a label of its own."""
    ax.text(x, y, text, ha=align, **{"fontsize": 8.5, "va": "center", "label": "_"} | style)


def _plate(ax: Axes, x: float, y: float, wide: float, tall: float, **look: Any) -> None:
    """A box with round corners, from its upper left."""
    look = {"facecolor": "white", "edgecolor": INKS[GREY], "zorder": 3, "linewidth": 1.0} | look
    ax.add_patch(FancyBboxPatch((x, y), wide, tall, boxstyle="round,pad=0,rounding_size=5", **look))


def _row(row: float) -> float:
    return _TOP + _LINE * (row + 0.5)


def _heads(ax: Axes, upto: int, bottom: float) -> None:
    """The heads of the columns, and grey fields in place of later lessons."""
    for row in range(1, round((bottom - _TOP) / _LINE)):
        ax.plot([148, 698], [_row(row - 0.5)] * 2, color="#E0E0E0", linewidth=0.8, **_PLAIN)
    for lesson, (left, right) in _AREAS.items():
        ink, paper = ("white", INKS[GREY]) if lesson <= upto else (INKS[GREY], "white")
        chip = {"boxstyle": "round,pad=0.25", "facecolor": paper, "edgecolor": INKS[GREY], "linewidth": 0.8}
        _write(ax, (left + right) / 2, _TOP - 48, f"{lesson:02}", "center", fontsize=7.5, color=ink, bbox=chip)
        if lesson > upto:
            ax.add_patch(Rectangle((left, _TOP), right - left, bottom - _TOP, color="#EDEDED", linewidth=0))
            look = {"fontsize": 18, "color": "#8A8A8A", "weight": "bold"}
            _write(ax, (left + right) / 2, (_TOP + bottom) / 2, f"{lesson:02}", "center", **look)
    for lesson, head, x, align in _COLUMNS.values():
        ink = BLACK if lesson <= upto else INKS[GREY]
        _write(ax, x, _TOP - 10, head, align, weight="bold", va="bottom", fontsize=8, color=ink)


def _cells(ax: Axes, cells: Mapping[str, str], row: float, upto: int, **style: Any) -> list[str]:
    """Write what the lessons so far say in a row; gives it in words."""
    shown = {name: text for name, text in cells.items() if text and _COLUMNS[name][0] <= upto}
    for name, text in shown.items():
        _, _, x, align = _COLUMNS[name]
        _write(ax, x, _row(row), text, align, **({"fontsize": 7.5} if "\n" in text else {}) | style)
    return [f"{text} {name}".replace("\n", ", ") for name, text in shown.items()]


def _box(ax: Axes, box: Box, row: int, bound: str) -> None:
    y, (ink, tint) = _row(row), _BOUNDS[bound]
    look = {"facecolor": tint, "edgecolor": INKS[ink], "zorder": 3}
    if box.name == "add":
        ax.add_patch(Circle((_MIDDLE, y), 9, **look))
        _write(ax, _MIDDLE, y - 0.5, "+", "center", fontsize=12, zorder=4)
    else:
        _plate(ax, 34, y - 10, 104, 20, **look)
        _write(ax, _MIDDLE, y, box.name, "center", zorder=4)


def _arrows(ax: Axes, boxes: list[Box]) -> None:
    """The way of the data down through the boxes, and the two residuals beside it."""
    for row, box in enumerate(boxes):
        start = _row(row) - _LINE + 10 if row else _TOP - 16
        arrow(ax, (_MIDDLE, start), (_MIDDLE, _row(row) - (9 if box.name == "add" else 10)), INKS[GREY], **_TIP)
    arrow(ax, (_MIDDLE, _row(len(boxes) - 1) + 9), (_MIDDLE, _row(len(boxes) - 1) + 21), INKS[GREY], **_TIP)
    _write(ax, _MIDDLE, _TOP - 24, "b t d", "center", fontsize=8, color=INKS[GREY])
    adds = [row for row, box in enumerate(boxes) if box.name == "add"]
    for first, add in zip((0, adds[0] + 1), adds, strict=True):  # the residual leaves before the norm
        start = _row(first) - 16 if first else _TOP - 8
        ax.plot([_MIDDLE, 16, 16], [start, start, _row(add)], color=INKS[GREY], linewidth=1, zorder=1, **_PLAIN)
        arrow(ax, (16, _row(add)), (_MIDDLE - 9, _row(add)), INKS[GREY], **_TIP)


@drawn("Shapes")
def attention_shapes(*configs: Config) -> Made:
    """The heads of each model, each key head under the query heads that it serves, and the shapes of attention."""
    fig, ax = _sheet(94 + 132 * len(configs), "Query heads, and the key and value heads that serve them")
    found = []
    for row, config in enumerate(configs):
        top, groups = 44 + 132 * row, config.heads // config.key_heads
        text = f"{config.name}: d {config.width} = h {config.heads} × c {config.channels}, kv {config.key_heads}"
        found.append(f"{config.name}: {config.heads} query heads, {config.key_heads} key heads, each for {groups}.")
        _write(ax, 12, top, text, color=INKS[GREY], label="")
        for line, (name, heads) in enumerate((("q", config.heads), ("k", config.key_heads), ("v", config.key_heads))):
            y, wide = top + 18 + 30 * line, 590 / heads
            _write(ax, 20, y + 11, name, "center", weight="bold")
            for head in range(heads):
                tint = TINTS[(head // groups if name == "q" else head) % 4]
                look = {"facecolor": tint, "edgecolor": INKS[GREY], "linewidth": 0.7}
                ax.add_patch(Rectangle((36 + wide * head, y), wide - 2, 22, **look))
            _write(ax, 636, y + 11, "b t h c" if name == "q" else "b s h c" if groups == 1 else "b s kv c")
    flow = ("q k v", "b t h c"), ("scores", "b h t s"), ("weighted sum", "b t h c"), ("merged", "b t (h c)")
    for place, (name, shape) in enumerate(flow):
        x, y = 36 + 152 * place, 54 + 132 * len(configs)
        _plate(ax, x, y - 9, 124, 34)
        _write(ax, x + 62, y + 1, name, "center", zorder=4)
        _write(ax, x + 62, y + 15, shape, "center", color=INKS[GREY], fontsize=8, zorder=4)
        if place:
            arrow(ax, (x - 27, y + 8), (x - 1, y + 8), INKS[GREY], **_TIP)
    return fig, " ".join(found)


@drawn("Box of loops")
def einsum_box(pattern: str, sizes: Mapping[str, int]) -> Made:
    """An einsum of two tensors as a box: its edges are the named dimensions, its sides the two inputs and the result.

    Needs a name that is summed, one that only the left input brings to the result, and one that only the right one
    does; names that all three share make more such boxes. Raises ValueError otherwise. FLOPs are twice the volume.
    """
    inputs, _, result = pattern.partition("->")
    left, right, out = (part.split() for part in (*inputs.split(","), result))
    summed = [name for name in left if name in right and name not in out]
    rows = [name for name in left if name in out and name not in right]
    columns = [name for name in right if name in out and name not in left]
    shared = [name for name in out if name in left and name in right]
    if not (summed and rows and columns):
        raise ValueError(f"a name is summed, and each input brings one of its own to the result; got {pattern!r}")
    flops = 2 * math.prod(sizes[name] for name in {*left, *right})
    edges = [(" ".join(names), math.prod(sizes[name] for name in names)) for names in (rows, columns, summed)]
    (i, high), (j, broad), (k, far) = edges
    fig, ax = _sheet(330, f"{pattern}: each cell multiplies and adds once")
    scaled = ((high, 80), (broad, 150), (far, 60))
    tall, wide, deep = (90 + most * math.sqrt(size / max(high, broad, far)) for size, most in scaled)
    x, y, dx, dy = 90.0, 290.0, 0.75 * deep, -0.5 * deep
    _side(ax, ["result", *out], TINTS[0], (broad, high), (x, y), ((wide, 0), (0, -tall)))
    _side(ax, ["right input", *right], TINTS[1], (broad, far), (x, y - tall), ((wide, 0), (dx, dy)))
    _side(ax, ["left input", *left], TINTS[2], (far, high), (x + wide, y), ((dx, dy), (0, -tall)))
    _write(ax, x - 10, y - tall / 2, f"{i}\n{high}", "right", weight="bold")
    _write(ax, x + wide / 2, y + 12, f"{j} {broad}", "center", weight="bold")
    _write(ax, x + wide + dx / 2 + 8, y + dy / 2 + 10, f"{k} {far}", weight="bold")
    factors = " × ".join(("2", *shared, *rows, *columns, *summed))
    words = f"{k} is summed\n\n{factors}\n= {units.si(flops, 'FLOP')}"
    if shared:
        words += f"\n\n{' × '.join(f'{name} {sizes[name]}' for name in shared)}\nsuch boxes"
    _write(ax, x + wide + dx + 40, 150, words, label="")
    return fig, f"{factors} = {units.si(flops, 'FLOP')}."


def _side(ax: Axes, words: Sequence[str], tint: str, cells: Place, corner: Place, edges: tuple[Place, Place]) -> None:
    """A side of the box from its corner along two edges, with the lines between its cells where they are few."""
    (ax0, ay0), (ax1, ay1) = edges

    def point(a: float, b: float) -> Place:
        return corner[0] + a * ax0 + b * ax1, corner[1] + a * ay0 + b * ay1

    outline = [point(0, 0), point(1, 0), point(1, 1), point(0, 1)]
    ax.add_patch(Polygon(outline, facecolor=tint, edgecolor=BLACK, linewidth=1.1, zorder=1))
    lines = [(point(n / cells[0], 0), point(n / cells[0], 1)) for n in range(1, cells[0]) if cells[0] <= 16]
    lines += [(point(0, n / cells[1]), point(1, n / cells[1])) for n in range(1, cells[1]) if cells[1] <= 16]
    for start, end in lines:
        ax.plot(*zip(start, end, strict=True), color=INKS[GREY], linewidth=0.5, **_PLAIN)
    plate = {"boxstyle": "round,pad=0.2", "facecolor": "white", "linewidth": 0, "alpha": 0.85}
    _write(ax, *point(0.5, 0.5), f"{words[0]}\n{' '.join(words[1:])}", "center", bbox=plate)
