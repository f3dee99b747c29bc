"""The block card: a transformer block as boxes, and beside each what every lesson says about it."""

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyBboxPatch, Rectangle

from helpers import specs, units
from helpers.budget import Box, block_costs
from helpers.draw.drawing import BLACK, BLUE, GREY, INKS, TINTS, VERMILLION, drawn, page
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
) -> tuple[Figure, str]:
    """The block of a model as boxes, and beside each what the lessons up to number `upto` say about it, in bfloat16.

    Over whole texts or, with `decode`, for one new token of each of `batch` texts of `tokens` tokens. The columns of
    later lessons are empty and bear their number. Costs are `budget.block_costs`; boxes that run as one kernel share
    their bytes and their time. Least times are those of the machine's datasheet: peak in bfloat16, and bandwidth.
    """
    boxes, spec = block_costs(config, batch, tokens, decode=decode, fused=fused), specs.find(machine)
    roof = Roofline(spec.peak("bfloat16"), spec.bandwidth)
    kernels = [_summed(list(group), roof) for _, group in groupby(boxes, key=lambda box: box.kernel)]
    whole = _summed(boxes, roof) | {"seconds": sum(kernel["seconds"] for kernel in kernels)}
    fig, ax = sheet(_TOP + _LINE * (len(boxes) + 1) + 10)
    texts = f"{batch} text{'s' if batch > 1 else ''} of {tokens} tokens"
    task = f"a new token for {'each of ' if batch > 1 else ''}{texts}" if decode else texts
    fig.suptitle(f"One block of {config.name}: {task}", x=12 / _WIDE, ha="left", weight="bold")
    letters = {"b": batch, "t": 1 if decode else tokens, "s": tokens, "d": config.width, "h": config.heads}
    letters |= {"kv": config.key_heads} if config.key_heads != config.heads else {}
    letters |= {"c": config.channels, "f": config.hidden}
    legend = "   ".join(f"{letter} {size}" for letter, size in letters.items())
    legend += f"   ·   bfloat16{f', {spec.name}' if upto >= 6 else ''}"
    write(ax, 12, 40, legend, color=INKS[GREY], fontsize=8, label="")
    _heads(ax, upto, _TOP + _LINE * len(boxes))
    lines, row = [], 0
    for kernel in kernels:
        for box in kernel["boxes"]:
            _box(ax, box, row, kernel["bound"] if upto >= 6 else "")
            cells = {"shape": box.shape.replace(", ", "\n"), "layout": box.layout, "parameters": _short(box.parameters)}
            lines.append([box.name, *_cells(ax, cells | {"FLOPs": _short(box.flops)}, row, upto)])
            row += 1
        shared, middle = len(kernel["boxes"]) > 1, row - (len(kernel["boxes"]) + 1) / 2
        lines[-1] += _cells(ax, {name: kernel[name] for name in ("bytes", "FLOP/B", "time", "kept")}, middle, upto)
        if shared and upto >= 5:
            high, low = _row(middle - 1.3), _row(middle + 1.3)
            ax.plot([382, 378, 378, 382], [high, high, low, low], color=INKS[GREY], linewidth=0.9, **_PLAIN)
            write(ax, 384, _row(middle - 1), "one kernel", color=INKS[GREY], fontsize=8)
        if upto >= 6:
            _time(ax, middle, kernel, max(kernel["seconds"] for kernel in kernels))
    sums = {
        "parameters": _short(sum(box.parameters for box in boxes)),
        "FLOPs": _short(sum(box.flops for box in boxes)),
    }
    sums |= {name: whole[name] for name in ("bytes", "FLOP/B", "kept")} | {"time": units.duration(whole["seconds"])}
    ax.plot([30, 698], [_row(row - 0.5)] * 2, color=BLACK, linewidth=0.8, **_PLAIN)
    write(ax, _MIDDLE, _row(row), "the block", "center", weight="bold")
    lines.append(["the block", *_cells(ax, sums, row, upto, weight="bold")])
    _arrows(ax, boxes)
    fig.set_label("\n".join(" | ".join(cell for cell in line if cell) for line in lines))
    return fig, _finding(kernels, whole) if upto >= 6 else ""


def _finding(kernels: list[dict], whole: Mapping) -> str:
    waiting = [kernel for kernel in kernels if kernel["bound"] == "memory"]
    share = sum(kernel["seconds"] for kernel in waiting) / whole["seconds"]
    return f"{len(waiting)} of {len(kernels)} kernels wait for memory, for {share:.0%} of the least time."


def _summed(boxes: list[Box], roof: Roofline) -> dict[str, Any]:
    flops, nbytes, kept = (sum(getattr(box, name) for box in boxes) for name in ("flops", "bytes", "kept"))
    cells = {"bytes": units.si(nbytes, "B"), "FLOP/B": _ratio(flops / nbytes)}
    seconds, kept = roof.seconds(flops, nbytes), units.si(kept, "B") if kept else ""
    cells |= {"time": units.duration(seconds), "kept": kept, "seconds": seconds}
    return cells | {"bound": roof.bound(flops, nbytes), "boxes": boxes}


def _short(count: float) -> str:
    return units.si(count, "").strip() if count else ""


def _ratio(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def sheet(height: float) -> tuple[Figure, Axes]:
    """An empty page whose coordinates are the pixels that are shown, from the upper left corner."""
    fig = page(height / 110)
    fig.set_layout_engine("none")  # not layout="none": to save a figure resets that to the style's own
    ax = fig.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, _WIDE), ylim=(height, 0))
    ax.axis("off")
    return fig, ax


def write(ax: Axes, x: float, y: float, text: str, align: str = "left", **style: Any) -> None:
    """A text at a place; the words of the drawing leave it out unless it gets a label of its own."""
    ax.text(x, y, text, ha=align, **{"fontsize": 8.5, "va": "center", "label": "_"} | style)


def _row(row: float) -> float:
    return _TOP + _LINE * (row + 0.5)


def _heads(ax: Axes, upto: int, bottom: float) -> None:
    for row in range(1, round((bottom - _TOP) / _LINE)):
        ax.plot([148, 698], [_row(row - 0.5)] * 2, color="#E0E0E0", linewidth=0.8, **_PLAIN)
    for lesson, (left, right) in _AREAS.items():
        ink, paper = ("white", INKS[GREY]) if lesson <= upto else (INKS[GREY], "white")
        chip = {"boxstyle": "round,pad=0.25", "facecolor": paper, "edgecolor": INKS[GREY], "linewidth": 0.8}
        write(ax, (left + right) / 2, _TOP - 48, f"{lesson:02}", "center", fontsize=7.5, color=ink, bbox=chip)
        if lesson > upto:
            ax.add_patch(Rectangle((left, _TOP), right - left, bottom - _TOP, color="#EDEDED", linewidth=0))
            style = {"fontsize": 18, "color": "#8A8A8A", "weight": "bold"}
            write(ax, (left + right) / 2, (_TOP + bottom) / 2, f"{lesson:02}", "center", **style)
    for lesson, head, x, align in _COLUMNS.values():
        write(
            ax,
            x,
            _TOP - 10,
            head,
            align,
            weight="bold",
            va="bottom",
            fontsize=8,
            color=BLACK if lesson <= upto else INKS[GREY],
        )


def _cells(ax: Axes, cells: Mapping[str, str], row: float, upto: int, **style: Any) -> list[str]:
    shown = {name: text for name, text in cells.items() if text and _COLUMNS[name][0] <= upto}
    for name, text in shown.items():
        _, _, x, align = _COLUMNS[name]
        write(ax, x, _row(row), text, align, **({"fontsize": 7.5} if "\n" in text else {}) | style)
    return [f"{text} {name}".replace("\n", ", ") for name, text in shown.items()]


def _box(ax: Axes, box: Box, row: int, bound: str) -> None:
    y, (ink, tint) = _row(row), _BOUNDS[bound]
    look = {"facecolor": tint, "edgecolor": INKS[ink], "linewidth": 1.0, "zorder": 3}
    if box.name == "add":
        ax.add_patch(Circle((_MIDDLE, y), 9, **look))
        write(ax, _MIDDLE, y - 0.5, "+", "center", fontsize=12, zorder=4)
    else:
        ax.add_patch(FancyBboxPatch((34, y - 10), 104, 20, boxstyle="round,pad=0,rounding_size=5", **look))
        write(ax, _MIDDLE, y, box.name, "center", zorder=4)


def _time(ax: Axes, row: float, kernel: Mapping, longest: float) -> None:
    y, ink = _row(row), _BOUNDS[kernel["bound"]][0]
    ax.add_patch(Rectangle((504, y + 8), 110 * kernel["seconds"] / longest, 3, color=ink, linewidth=0))
    write(ax, 614, y, kernel["bound"], "right", fontsize=8, color=INKS[ink])


def _arrows(ax: Axes, boxes: list[Box]) -> None:
    look = {"arrowstyle": "-|>,head_length=0.25,head_width=0.14", "color": INKS[GREY], "linewidth": 1, "shrinkA": 0}
    look |= {"shrinkB": 0, "zorder": 2}

    def arrow(start: tuple[float, float], end: tuple[float, float]) -> None:
        ax.annotate("", end, start, arrowprops=look, label="_")

    rows = range(len(boxes))
    for row in rows:
        top = 9 if boxes[row].name == "add" else 10
        arrow((_MIDDLE, _row(row) - _LINE + 10 if row else _TOP - 16), (_MIDDLE, _row(row) - top))
    arrow((_MIDDLE, _row(rows[-1]) + 9), (_MIDDLE, _row(rows[-1]) + 21))
    write(ax, _MIDDLE, _TOP - 24, "b t d", "center", fontsize=8, color=INKS[GREY])
    adds = [row for row in rows if boxes[row].name == "add"]
    for first, add in zip((0, adds[0] + 1), adds, strict=True):  # the residual leaves before the norm
        start = _row(first) - 16 if first else _TOP - 8
        ax.plot([_MIDDLE, 16, 16], [start, start, _row(add)], color=INKS[GREY], linewidth=1, zorder=1, **_PLAIN)
        arrow((16, _row(add)), (_MIDDLE - 9, _row(add)))
