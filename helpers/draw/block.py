"""The block card, with what every lesson says about each box; an einsum as a box of loops; patterns by their names."""

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Polygon, Rectangle
from matplotlib.transforms import Affine2D

from helpers import specs, units
from helpers.budget import Box, block_costs
from helpers.model import Config
from helpers.roofline import Roofline

from helpers.draw.drawing import (  # isort: skip
    BLACK, BLUE, GREY, GROUNDS, INKS, PLATE, TINTS, VERMILLION, Made, Place, arrow, canvas, cell, drawn, figure, note,
    rows,
)  # fmt: skip

_TOP, _ROW, _MIDDLE = 128, 31, 86  # in pixels as shown: the first row, the height of a row, the centre of the boxes
_COLUMNS = {  # the first and the last lesson that fills it, its left or right edge, its head
    "layout": (2, 7, 146, "left", "layout"),
    "shape": (3, 7, 194, "left", "shape"),
    "parameters": (4, 7, 318, "right", "parameters"),
    "FLOPs": (4, 7, 374, "right", "FLOPs"),
    "share": (4, 4, 386, "left", "share"),  # drawn as a bar
    "bytes": (5, 7, 443, "right", "bytes"),
    "FLOP/B": (5, 7, 496, "right", "FLOP/B"),
    "ridge": (5, 5, 516, "left", "the ridge of its\nunit on an H100"),
    "time": (6, 7, 508, "left", "least time"),
    "kept": (7, 7, 634, "left", "kept for\nbackward"),
}
# The left edge of what a lesson adds, and the right edge of its card.
_EDGES = {2: (142, 186), 3: (188, 240), 4: (238, 690), 5: (380, 620), 6: (500, 630), 7: (628, 698)}
Edge = tuple[int, float, float]  # of a box of loops: its cells, and its way to the right and down
_PLAIN = {"label": "_", "marker": ""}
_TIP = {"arrowstyle": "-|>,head_length=0.25,head_width=0.14", "linewidth": 1.0}
_VECTOR = {"norm", "rotate", "softmax", "add", "GELU", "gated SiLU"}  # boxes whose work the vector units do
_TOLD = {4: ("blue: with parameters", "orange: without"), 5: ("blue: memory", "orange: compute")}
_BOUNDS = {"compute": (VERMILLION, TINTS[1]), "memory": (BLUE, TINTS[0]), "": (GREY, "white")}


@drawn("Block card")
def block(
    config: Config, batch: int, tokens: int, title: str = "", *, upto: int | None = None, fused: bool = True
) -> Made:
    """The block of a model as boxes, and beside each what the lessons 2 to `upto` say about it, in bfloat16.

    Those of lesson `upto` itself stand on a ground; without a number it is the finished card.
    Costs are `budget.block_costs`; boxes that run as one kernel share their bytes and their least time, an H100's by
    datasheet.
    """
    lesson, upto = upto, upto or 7
    boxes = block_costs(config, batch, tokens, fused=fused)
    kernels = [list(group) for _, group in itertools.groupby(boxes, key=lambda box: box.kernel)]
    sums, whole = [_sums(kernel) for kernel in kernels], _sums(boxes)
    flops, times = [box.flops for box in boxes], [own["seconds"] for own in sums]
    waits = [own["seconds"] for own in sums if own["bound"] == "memory"]
    finding = f"{len(waits)} of {len(sums)} kernels, {sum(waits) / sum(times):.0%} of the least time, are memory-bound"
    if lesson == 7:
        most = sorted(sorted(range(len(sums)), key=lambda place: sums[place]["keeps"])[-2:])
        kept = sum(sums[place]["keeps"] for place in most) / whole["keeps"]
        finding = f"{kept:.0%} of what is kept is in {' and '.join(kernels[place][0].name for place in most)}"
    finding = f"{config.name}: {finding}"
    if upto < 5:
        share = sum(box.flops for box in boxes if box.name in ("scores", "weighted sum")) / sum(flops)
        copies = sum(box.layout == "copy" for box in boxes)
        found = {3: f"{copies} of {len(boxes)} boxes copy", 4: f"{share:.0%} of the FLOPs in scores and weighted sum"}
        finding = f"A block of {config.name}: {found.get(upto, '')}".removesuffix(": ")
    left, right = _EDGES[2 if upto == 3 else upto][0], _EDGES[upto][1]
    height, letters = _TOP + _ROW * (len(boxes) + 1) + 8, _letters(config, batch, tokens)
    if upto < 4:  # at the right, where half of the card would stay empty
        fig, ax = _sheet(height, title or finding, 36, right + 224)
        for place, letter in enumerate(letters):
            _write(ax, right + 36, _y(1.5) + 20 * place, letter, label="")
    else:
        fig, ax = _sheet(height, title or finding)
        letters[3:3] = ["bfloat16" + ", NVIDIA H100 SXM5" * (upto >= 6)] * (upto >= 5)
        lines = f"{' · '.join(letters[:4])}\n{' · '.join(letters[4:])}"
        _write(ax, 12, 46, lines, color=INKS[GREY], fontsize=8, label="")
        for place, (ink, told) in enumerate(zip((BLUE, VERMILLION), _TOLD[min(upto, 5)], strict=True)):
            _write(ax, 12, 76 + 13 * place, told, color=INKS[ink], fontsize=7.5, label="")
    if lesson:
        size = right + 8 - left, _y(len(boxes) + 0.5) - _TOP + 64
        ax.add_patch(Rectangle((left, _TOP - 64), *size, color="#FCF2C7", linewidth=0, zorder=0))
    _heads(ax, upto, [upto >= 5 and one.kernel == other.kernel for one, other in itertools.pairwise(boxes)])
    words, looks, row = [], {}, 0
    for kernel, own in zip(kernels, sums, strict=True):
        first, middle = row, row + len(kernel) // 2
        ink, tint = _BOUNDS[own["bound"] if upto >= 5 else ""]
        for box in kernel:
            if upto == 4:
                ink, tint = _BOUNDS["memory" if box.parameters else "compute"]
                wide, part = 250 * box.flops / max(flops), box.flops / sum(flops)
                ax.add_patch(Rectangle((386, _y(row) - 6), wide, 12, color=ink, linewidth=0))
                _write(ax, 390 + wide, _y(row), f"{part:.0%}" if part >= 0.01 else "< 1%")
            looks[row] = ink, tint
            cells = {"layout": box.layout, "shape": box.shape.replace(", ", "\n")}
            cells |= {"parameters": _short(box.parameters), "FLOPs": _short(box.flops)}
            words.append(_cells(ax, box.name, cells | (own if row == middle else {}), row, upto, lesson))
            row += 1
        if len(kernel) > 1 and upto >= 5:
            size = right + 4 - 380, _ROW * len(kernel) - 6  # a frame around what belongs to all of them
            ax.add_patch(Rectangle((380, _y(first - 0.5) + 3), *size, fill=False, edgecolor=INKS[GREY]))
            _write(ax, 386, _y(first), "one kernel", fontsize=8)
        if upto >= 6:
            _write(ax, 624, _y(middle), own["bound"], "right", fontsize=8, color=INKS[ink])
        for x, part, colour in ((508, "seconds", ink), (634, "keeps", BLACK))[: max(upto - 5, 0)]:
            wide = 62 * own[part] / max(other[part] for other in sums)
            ax.add_patch(Rectangle((x, _y(middle) + 8), wide, 4, color=colour, linewidth=0))
    if upto == 4:  # the attention products together
        top, foot = (_y([box.name for box in boxes].index(name)) for name in ("scores", "weighted sum"))
        ax.plot([540, 548, 548, 540], [top, top, foot, foot], color=INKS[GREY], linewidth=1.2, **_PLAIN)
        _write(ax, 556, (top + foot) / 2, f"both products\ntogether {share:.0%}", weight="bold")
    ax.plot([30, right], [_y(row - 0.5)] * 2, color=BLACK, linewidth=0.8, **_PLAIN)
    _write(ax, _MIDDLE, _y(row), "the block", "center", weight="bold")
    total = whole | {"ridge": "no side", "parameters": _short(sum(box.parameters for box in boxes))}
    total |= {"FLOPs": _short(sum(flops)), "time": units.duration(sum(times))}
    words.append(_cells(ax, "the block", total, row, upto, lesson, weight="bold"))
    _stack(ax, boxes, looks)
    _write(ax, _MIDDLE, _TOP - 14, "b t d", "center", fontsize=8, color=INKS[GREY])
    fig.set_label("\n".join(words))
    return fig, ""


@drawn("One box")
def one_box(config: Config, batch: int, tokens: int, name: str) -> Made:
    """The block of a model as boxes, and written out beside them what each lesson says about the first of that name."""
    boxes = block_costs(config, batch, tokens)
    row = [box.name for box in boxes].index(name)
    box, own = boxes[row], _sums([boxes[row]])
    title = f"One operation of {config.name}: what you will be able to compute"
    fig, ax = _sheet(_y(len(boxes) + 0.2), title, _y(-1.9))
    _stack(ax, boxes, {row: _BOUNDS["compute"]})
    sizes = {"b": batch, "t": tokens, "s": tokens, "d": config.width, "f": config.hidden, "c": config.channels}
    sizes |= {"h": config.heads, "kv": config.key_heads}
    shape = ", ".join(" × ".join(f"{sizes[a]}" for a in part.split() if sizes[a] > 1) for part in box.shape.split(", "))
    said = {"shape of the result": (3, shape), "parameters": (4, _short(box.parameters))}
    said |= {"FLOPs": (4, _short(box.flops)), "bytes moved": (5, own["bytes"]), "FLOPs per byte": (5, own["FLOP/B"])}
    said |= {"least time on an H100": (6, own["time"]), "bytes kept for the backward pass": (7, own["kept"])}
    near, far, top, bottom = 230, 694, _y(0.2), _y(11.8)
    corners = [(138, _y(row) - 10), (near, top), (far, top), (far, bottom), (near, bottom), (138, _y(row) + 10)]
    ax.add_patch(Polygon(corners, facecolor=GROUNDS[2], zorder=0))
    tale = f"{batch * tokens} tokens, each a list of {config.width} numbers of 2 bytes"
    _write(ax, near, _y(-0.5), tale, color=INKS[GREY], fontsize=9.5, label="")
    for place, (text, (lesson, value)) in enumerate(said.items()):
        _chip(ax, near + 26, _y(1.2 + 1.6 * place), lesson)
        _write(ax, near + 50, _y(1.2 + 1.6 * place), text, fontsize=10.5)
        _write(ax, far - 14, _y(1.2 + 1.6 * place), value, "right", fontsize=10.5, weight="bold")
    fig.set_label("\n".join(f"{name} | {text}: {value}" for text, (_, value) in said.items()))
    return fig, ""


def _sums(boxes: list[Box]) -> dict[str, Any]:
    """What boxes that run together move and keep, their least time, and what bounds it on the unit of the first."""
    spec = specs.find("NVIDIA H100 SXM5")
    peak = spec.elementwise if boxes[0].name in _VECTOR else spec.peak("bfloat16")
    roof = Roofline(peak, spec.bandwidth)
    flops, nbytes, kept = (sum(getattr(box, name) for box in boxes) for name in ("flops", "bytes", "kept"))
    ratio, seconds = flops / nbytes, roof.seconds(flops, nbytes)
    cells = {"bytes": units.si(nbytes, "B"), "FLOP/B": f"{ratio:.0f}" if ratio >= 100 else f"{ratio:.3g}"}
    cells |= {"time": units.duration(seconds), "kept": units.si(kept, "B") if kept else ""}
    cells["ridge"] = f"{'▲ above' if ratio > roof.ridge else '▼ below'} {roof.ridge:.0f}"
    return cells | {"seconds": seconds, "keeps": kept, "bound": roof.bound(flops, nbytes)}


def _short(count: float) -> str:
    return units.si(count, "").strip() if count else ""


def _letters(config: Config, batch: int, tokens: int) -> list[str]:
    """What each letter stands for."""
    sizes = [f"b {batch} text{'s' * (batch > 1)}", f"t {tokens} tokens", f"s {tokens} tokens to look at"]
    sizes += [f"d {config.width} wide", f"h {config.heads} heads"]
    sizes += [f"kv {config.key_heads} key heads"] if config.key_heads != config.heads else []
    return [*sizes, f"c {config.channels} channels a head", f"f {config.hidden} wide inside the MLP"]


def _sheet(height: float, title: str, top: float = 0, width: float = 704) -> tuple[Figure, Axes]:
    """A page whose coordinates are the pixels that are shown, from the upper left corner, less a strip at the top."""
    fig, ax = figure(width / 110, (height - top) / 110)
    fig.set_layout_engine("none")  # not layout="none": to save a figure resets that to the style's own
    fig.suptitle(title, x=12 / width, ha="left", weight="bold")
    ax.set_position((0, 0, 1, 1))
    ax.set(xlim=(0, width), ylim=(height, top))
    ax.axis("off")
    return fig, ax


def _write(ax: Axes, x: float, y: float, text: str, align: str = "left", **style: Any) -> None:
    """A text at a place; the words of the drawing leave it out unless it gets a label of its own."""
    ax.text(x, y, text, ha=align, **{"va": "center", "label": "_"} | style)


def _chip(ax: Axes, x: float, y: float, lesson: int) -> None:
    """The number of a lesson."""
    look = {"boxstyle": "round,pad=0.25", "color": INKS[GREY], "linewidth": 0.8}
    _write(ax, x, y, f"{lesson:02}", "center", fontsize=7.5, color="white", bbox=look)


def _y(row: float) -> float:
    return _TOP + _ROW * (row + 0.5)


def _heads(ax: Axes, upto: int, joined: Sequence[bool]) -> None:
    """The heads of the columns, each under the number of its lesson; lines between rows, short if these are joined."""
    for row, short in enumerate(joined, 1):
        ax.plot([148, 378 if short else _EDGES[upto][1]], [_y(row - 0.5)] * 2, color="#E0E0E0", linewidth=0.8, **_PLAIN)
    for lesson in range(2, upto + 1):
        _chip(ax, _EDGES[lesson][0] + 24, _TOP - 50, lesson)
    for first, last, x, align, head in _COLUMNS.values():
        if first <= upto <= last:
            _write(ax, x, _TOP - 8, head, align, va="bottom", fontsize=8, weight="bold")


def _cells(
    ax: Axes, name: str, cells: Mapping[str, str], row: float, upto: int, lesson: int | None, **style: Any
) -> str:
    """Write what the lessons so far say in a row; gives it in words."""
    words = [name]
    for column, (first, last, x, align, _) in _COLUMNS.items():
        if (text := cells.get(column)) and first <= upto <= last:
            size = {"fontsize": 7.5 if "\n" in text else 9 if first == lesson else 8.5}
            _write(ax, x, _y(row), text, align, **size | style)
            words.append(f"{text} {column}".replace("\n", ", "))
    return " | ".join(words)


def _stack(ax: Axes, boxes: Sequence[Box], looks: Mapping[int, tuple[str, str]]) -> None:
    """The boxes in their colours, the way of the data down through them, and the two residuals beside it."""
    names, corner = [box.name for box in boxes], "round,pad=0,rounding_size=8"
    for row, name in enumerate(names):
        (ink, tint), (wide, text) = looks.get(row, _BOUNDS[""]), (20, "+") if name == "add" else (104, name)
        look = {"zorder": 3, "linewidth": 1.0, "facecolor": tint, "edgecolor": INKS[ink]}
        ax.add_patch(FancyBboxPatch((_MIDDLE - wide / 2, _y(row) - 10), wide, 20, corner, **look))
        _write(ax, _MIDDLE, _y(row), text, "center", zorder=4)
    for row in range(len(names) + 1):
        arrow(ax, (_MIDDLE, _y(row - 1) + 10), (_MIDDLE, _y(row) - 10), INKS[GREY], **_TIP)
    first, second = (row for row, name in enumerate(names) if name == "add")
    for start, add in ((-0.5, first), (first + 0.5, second)):
        look = {"color": INKS[GREY], "linewidth": 1, "zorder": 1, **_PLAIN}
        ax.plot([_MIDDLE, 16, 16], [_y(start), _y(start), _y(add)], **look)
        arrow(ax, (16, _y(add)), (_MIDDLE - 10, _y(add)), INKS[GREY], **_TIP)


@drawn("Box of loops")
def einsum_box(pattern: str, sizes: Mapping[str, int]) -> Made:
    """An einsum of two matrices as a box of loops: its edges are the names, its sides the two inputs and the result.

    One name is summed, and each input brings another one to the result, as in "i j, j k -> i k"; raises ValueError
    for other patterns. Every cell of the box multiplies and adds once.
    """
    left, right, out = (part.split() for part in pattern.replace("->", ",").split(","))
    summed = set(left) & set(right)
    if not (len(left) == len(right) == len(out) == 2 and len(summed) == 1 and set(out) == set(left) ^ set(right)):
        raise ValueError(f"a name is summed, and each input brings one of its own to the result; got {pattern!r}")
    (j,), (i,), (k,) = summed, set(left) - summed, set(right) - summed
    fig, ax = _sheet(320, "Each cell is one multiplication and one addition")
    x, y, wide, tall, over, up = 110.0, 284.0, 240, 155, 98, -65  # of the front, and to the back
    to_k, to_j, to_i = (sizes[k], wide, 0), (sizes[j], over, up), (sizes[i], 0, -tall)  # edges: their cells and way
    row = sizes[i] - 1  # of one number of the result, framed and followed into both inputs
    _side(ax, f"result\n{' '.join(out)}", TINTS[0], (x, y), to_k, to_i, (1, row, 1, 1))
    _side(ax, f"second input\n{' '.join(right)}", TINTS[1], (x, y - tall), to_k, to_j, (1, 0, 1, sizes[j]))
    _side(ax, f"first input\n{' '.join(left)}", TINTS[2], (x + wide, y), to_j, to_i, (0, row, sizes[j], 1))
    _write(ax, x - 10, y - tall / 2, f"{i} = {sizes[i]}", "right", weight="bold")
    _write(ax, x + wide / 2, y + 14, f"{k} = {sizes[k]}", "center", weight="bold")
    _write(ax, x + wide + over / 2 + 8, y + up / 2 + 10, f"{j} = {sizes[j]}, summed", weight="bold")
    cells = math.prod(sizes[name] for name in (i, j, k))
    law = f"{sizes[i]} × {sizes[j]} × {sizes[k]} = {cells} cells,\n2 × {cells} = {units.si(2 * cells, 'FLOP')}\n\n"
    law += f"Framed: one number of the\nresult adds up {sizes[j]} products."
    _write(ax, x + wide + over + 24, y + up - tall / 2, law, label="", fontsize=9.5)
    return fig, f"2 × {i} × {j} × {k} = {units.si(2 * cells, 'FLOP')}."


def _side(ax: Axes, text: str, tint: str, corner: Place, first: Edge, second: Edge, frame: Any) -> None:
    """A side of the box from its corner along two edges, with lines between its cells where they are few, and a frame.

    The frame is around some of its cells: left, bottom, width and height, in cells.
    """
    (m, right, down), (n, over, up) = first, second
    cells = Affine2D.from_values(right / m, down / m, over / n, up / n, *corner)
    look = {"transform": cells + ax.transData}
    ax.add_patch(Rectangle((0, 0), m, n, facecolor=tint, edgecolor=BLACK, **look))
    ax.vlines(range(1, m if m <= 16 else 0), 0, n, INKS[GREY], linewidth=0.5, **look)
    ax.hlines(range(1, n if n <= 16 else 0), 0, m, INKS[GREY], linewidth=0.5, **look)
    left, bottom, width, height = frame
    outline = {"edgecolor": BLACK, "linewidth": 2.2, "joinstyle": "round"}
    ax.add_patch(Rectangle((left, bottom), width, height, fill=False, zorder=3, **outline, **look))
    _write(ax, *cells.transform((m / 2, n / 2)), text, "center", bbox=PLATE)


@drawn("Patterns")
def patterns(steps: Mapping[str, str], sizes: Mapping[str, int], title: str) -> Made:
    """Where each name goes: a row per pattern, a tinted cell per dimension, and how many numbers come out.

    A name has one tint in all rows, in the order of `sizes`, those in a bracket stand without a gap, and a name that
    is summed has a heavy frame. KeyError for a name without a size.
    """
    fig, ax = canvas(0.8 + 0.56 * len(steps), title, " ")
    ax.set_xlabel("heavy frame: summed  ·  no gap: in one bracket", loc="left", color=INKS[GREY])
    tints = dict(zip(sizes, itertools.cycle(TINTS)))
    sides = {step: [_spread(side) for side in pattern.split("->")] for step, pattern in steps.items()}
    result = 1.1 + max(end for (_, end), _ in sides.values())
    right = result + 0.1 + max(end for _, (_, end) in sides.values())
    found = [math.prod(sizes[name] for name, _ in output) for _, (output, _) in sides.values()]
    for row, (((inputs, end), (output, _)), count) in enumerate(zip(sides.values(), found, strict=True)):
        kept = {name for name, _ in output}
        for name, x in [*inputs, *((name, result + x) for name, x in output)]:
            cell(ax, x, row - 0.38, f"{name}\n{sizes[name]}", tints[name], 0.76, fontsize=6.4, label="_")
            if name not in kept:
                ax.add_patch(Rectangle((x, row - 0.38), 1, 0.76, fill=False, edgecolor=BLACK, linewidth=2.2, zorder=3))
        arrow(ax, (end + 0.15, row), (result - 0.15, row), GREY)
        note(ax, f"{_short(count)} numbers", (right, row), weight="bold" if count == max(found) > min(found) else None)
    rows(ax, sides)
    ax.set(xlim=(-0.05, right + 2.8), xticks=[])
    ax.spines[:].set_visible(False)
    told = zip(steps.items(), map(_short, found), strict=True)
    return fig, "; ".join(f"{step}: {pattern}, {count} numbers" for (step, pattern), count in told) + "."


def _spread(side: str) -> tuple[list[tuple[str, float]], float]:
    """Where the cells of a side of a pattern begin, and where the last one ends."""
    cells, x = [], 0.0
    for tensor in side.split(","):
        for group in re.findall(r"\([^)]*\)|\w+", tensor):
            for name in group.strip("()").split():
                cells.append((name, x))
                x += 1
            x += 0.14
        x += 0.5
    return cells, x - 0.5
