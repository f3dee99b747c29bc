"""The block card, with what every lesson says about each box; one box of it."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Polygon, Rectangle

from helpers import specs, units
from helpers.budget import Box, block_costs
from helpers.draw.drawing import Made, drawn, figure
from helpers.draw.labels import arrow
from helpers.draw.palette import BLACK, BLUE, GREY, GROUNDS, INKS, TINTS, VERMILLION
from helpers.model import Config
from helpers.roofline import Roofline

_TOP, _ROW, _MIDDLE = 128, 31, 86  # in pixels as shown: the first row, the height of a row, the centre of the boxes
_DEVICE = "NVIDIA H100 SXM5"


@dataclass(frozen=True)
class _Column:
    """A column of the card: the lessons that show it, its left or right edge, its head."""

    first: int
    last: int
    x: float
    align: str
    head: str


# fmt: off
_COLUMNS = {
    "layout":     _Column(2, 7, 146, "left", "layout"),
    "shape":      _Column(3, 7, 194, "left", "shape"),
    "parameters": _Column(4, 7, 318, "right", "parameters"),
    "FLOPs":      _Column(4, 7, 374, "right", "FLOPs"),
    "share":      _Column(4, 4, 386, "left", "share"),  # drawn as a bar
    "bytes":      _Column(5, 7, 443, "right", "bytes"),
    "FLOP/B":     _Column(5, 7, 496, "right", "FLOP/B"),
    "ridge":      _Column(5, 5, 516, "left", "the ridge of its\nunit on an H100"),
    "time":       _Column(6, 7, 508, "left", "least time"),
    "kept":       _Column(7, 7, 634, "left", "kept for\nbackward"),
}
# The left edge of what a lesson adds, and the right edge of its card.
_EDGES = {2: (142, 186), 3: (188, 240), 4: (238, 690), 5: (380, 620), 6: (500, 630), 7: (628, 698)}
# fmt: on
_VECTOR = {"norm", "rotate", "softmax", "add", "GELU", "gated SiLU"}  # boxes whose work the vector units do
_BOUNDS = {"compute": (VERMILLION, TINTS[1]), "memory": (BLUE, TINTS[0]), "": (GREY, "white")}
_MARKED = (BLACK, TINTS[4])
_TIP = {"arrowstyle": "-|>,head_length=0.25,head_width=0.14", "linewidth": 1.0}


@dataclass(frozen=True)
class _Kernel:
    """Boxes that run together, from the row of the first: what they move and keep, and their least time on an H100."""

    boxes: tuple[Box, ...]
    row: int = 0

    @property
    def middle(self) -> int:
        return self.row + len(self.boxes) // 2

    @property
    def flops(self) -> float:
        return sum(box.flops for box in self.boxes)

    @property
    def nbytes(self) -> float:
        return sum(box.bytes for box in self.boxes)

    @property
    def kept(self) -> float:
        return sum(box.kept for box in self.boxes)

    @property
    def roof(self) -> Roofline:
        """Of the unit that does the work of the first box."""
        spec = specs.find(_DEVICE)
        assert spec and spec.elementwise, f"{_DEVICE} is in the table, with a vector unit"
        peak = spec.elementwise if self.boxes[0].name in _VECTOR else spec.peak("bfloat16")
        return Roofline(peak, spec.bandwidth)

    @property
    def seconds(self) -> float:
        return self.roof.seconds(self.flops, self.nbytes)

    @property
    def bound(self) -> str:
        return self.roof.bound(self.flops, self.nbytes)

    @property
    def cells(self) -> dict[str, str]:
        """What stands in its row."""
        intensity = self.flops / self.nbytes
        side = "▲ above" if intensity > self.roof.ridge else "▼ below"
        return {
            "bytes": units.si(self.nbytes, "B"),
            "FLOP/B": f"{intensity:.0f}" if intensity >= 100 else f"{intensity:.3g}",
            "ridge": f"{side} {self.roof.ridge:.0f}",
            "time": units.duration(self.seconds),
            "kept": units.si(self.kept, "B") if self.kept else "",
        }


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
    kernels = list(_kernels(boxes))
    title = title or f"{'A block of ' if upto < 5 else ''}{config.name}{_finding(boxes, kernels, lesson)}"
    fig, ax = _card(title, len(boxes), upto, _letters(config, batch, tokens))
    if lesson:
        left, right = _EDGES[2 if lesson == 3 else lesson][0], _EDGES[lesson][1]
        size = right + 8 - left, _y(len(boxes) + 0.5) - _TOP + 64
        ax.add_patch(Rectangle((left, _TOP - 64), *size, color="#FCF2C7", linewidth=0, zorder=0))
    _heads(ax, upto)
    _lines(ax, boxes, upto)
    words = []
    for kernel in kernels:
        for row, box in enumerate(kernel.boxes, kernel.row):
            cells = _box_cells(box) | (kernel.cells if row == kernel.middle else {})
            words.append(_cells(ax, box.name, cells, row, upto, lesson))
    if upto == 4:
        _shares(ax, boxes)
    if upto >= 5:
        _frames(ax, kernels, upto)
    if upto >= 6:
        _times(ax, kernels)
    if upto == 7:
        _keeps(ax, kernels)
    words.append(_total(ax, boxes, kernels, upto, lesson))
    _stack(ax, boxes, _colours(boxes, kernels, upto))
    _write(ax, _MIDDLE, _TOP - 14, "b t d", "center", fontsize=8, color=INKS[GREY])
    return Made(fig, details="\n".join(words))


def _kernels(boxes: Sequence[Box]) -> Iterator[_Kernel]:
    row = 0
    for _, group in itertools.groupby(boxes, key=lambda box: box.kernel):
        kernel = _Kernel(tuple(group), row)
        row += len(kernel.boxes)
        yield kernel


def _finding(boxes: Sequence[Box], kernels: Sequence[_Kernel], lesson: int | None) -> str:
    """What the numbers that a lesson adds say."""
    if lesson == 2:
        return ""
    if lesson == 3:
        copies = sum(box.layout == "copy" for box in boxes)
        return f": {copies} of {len(boxes)} boxes copy"
    if lesson == 4:
        return f": {_attention_share(boxes):.0%} of the FLOPs in scores and weighted sum"
    if lesson == 7:
        most = sorted(sorted(kernels, key=lambda kernel: kernel.kept)[-2:], key=lambda kernel: kernel.row)
        part = sum(kernel.kept for kernel in most) / sum(kernel.kept for kernel in kernels)
        return f": {part:.0%} of what is kept is in {' and '.join(kernel.boxes[0].name for kernel in most)}"
    waits = [kernel.seconds for kernel in kernels if kernel.bound == "memory"]
    part = sum(waits) / sum(kernel.seconds for kernel in kernels)
    return f": {len(waits)} of {len(kernels)} kernels, {part:.0%} of the least time, are memory-bound"


def _attention_share(boxes: Sequence[Box]) -> float:
    products = sum(box.flops for box in boxes if box.name in ("scores", "weighted sum"))
    return products / sum(box.flops for box in boxes)


def _card(title: str, count: int, upto: int, letters: list[str]) -> tuple[Figure, Axes]:
    """An empty card for so many boxes, with what the letters and the colours mean."""
    height = _TOP + _ROW * (count + 1) + 8
    if upto < 4:  # the letters at the right, where half of the card would stay empty
        right = _EDGES[upto][1]
        fig, ax = _sheet(height, title, 36, right + 224)
        for place, letter in enumerate(letters):
            _write(ax, right + 36, _y(1.5) + 20 * place, letter, said=True)
        return fig, ax
    fig, ax = _sheet(height, title)
    dtype = {4: [], 5: ["bfloat16"]}.get(upto, [f"bfloat16, {_DEVICE}"])
    first_line, second_line = letters[:3] + (dtype or letters[3:4]), letters[3 if dtype else 4 :]
    lines = f"{' · '.join(first_line)}\n{' · '.join(second_line)}"
    _write(ax, 12, 46, lines, color=INKS[GREY], fontsize=8, said=True)
    meanings = {"blue: memory": BLUE, "orange: compute": VERMILLION}
    if upto == 4:
        meanings = {"grey: with parameters": BLACK, "white: without": BLACK}
    for y, (meaning, ink) in zip((76, 89), meanings.items(), strict=True):
        _write(ax, 12, y, meaning, color=INKS[ink], fontsize=7.5, said=True)
    return fig, ax


def _box_cells(box: Box) -> dict[str, str]:
    return {
        "layout": box.layout,
        "shape": box.shape.replace(", ", "\n"),
        "parameters": _count(box.parameters),
        "FLOPs": _count(box.flops),
    }


def _colours(boxes: Sequence[Box], kernels: Sequence[_Kernel], upto: int) -> dict[int, tuple[str, str]]:
    """Ink and tint of rows: copies up to lesson 3, those with parameters in lesson 4, then by what bounds them."""
    if upto < 4:
        return {row: _MARKED for row, box in enumerate(boxes) if box.layout == "copy"}
    if upto == 4:
        return {row: _MARKED for row, box in enumerate(boxes) if box.parameters}
    return {row: _BOUNDS[kernel.bound] for kernel in kernels for row, _ in enumerate(kernel.boxes, kernel.row)}


def _shares(ax: Axes, boxes: Sequence[Box]) -> None:
    """Each box's share of the FLOPs as a bar, and that of the attention products together."""
    flops = [box.flops for box in boxes]
    for row, box in enumerate(boxes):
        width, share = 250 * box.flops / max(flops), box.flops / sum(flops)
        tint = TINTS[4] if box.parameters else "white"
        ax.add_patch(Rectangle((386, _y(row) - 6), width, 12, facecolor=tint, edgecolor=BLACK, linewidth=0.8))
        _write(ax, 390 + width, _y(row), f"{share:.0%}" if share >= 0.01 else "< 1%")
    names = [box.name for box in boxes]
    top, foot = _y(names.index("scores")), _y(names.index("weighted sum"))
    ax.plot([540, 548, 548, 540], [top, top, foot, foot], color=INKS[GREY], linewidth=1.2, marker="")
    text = f"both products\ntogether {_attention_share(boxes):.0%}"
    _write(ax, 556, (top + foot) / 2, text, weight="bold")


def _frames(ax: Axes, kernels: Sequence[_Kernel], upto: int) -> None:
    """A frame around what belongs to several boxes that run as one kernel."""
    right = _EDGES[upto][1]
    for kernel in kernels:
        if len(kernel.boxes) > 1:
            size = right + 4 - 380, _ROW * len(kernel.boxes) - 6
            ax.add_patch(Rectangle((380, _y(kernel.row - 0.5) + 3), *size, fill=False, edgecolor=INKS[GREY]))
            _write(ax, 386, _y(kernel.row), "one kernel", fontsize=8)


def _times(ax: Axes, kernels: Sequence[_Kernel]) -> None:
    """What bounds each kernel, and its least time as a bar."""
    longest = max(kernel.seconds for kernel in kernels)
    for kernel in kernels:
        ink, _ = _BOUNDS[kernel.bound]
        _write(ax, 624, _y(kernel.middle), kernel.bound, "right", fontsize=8, color=INKS[ink])
        bar = Rectangle((508, _y(kernel.middle) + 8), 62 * kernel.seconds / longest, 4, color=ink, linewidth=0)
        ax.add_patch(bar)


def _keeps(ax: Axes, kernels: Sequence[_Kernel]) -> None:
    """What each kernel keeps, as a bar."""
    most = max(kernel.kept for kernel in kernels)
    for kernel in kernels:
        bar = Rectangle((634, _y(kernel.middle) + 8), 62 * kernel.kept / most, 4, color=BLACK, linewidth=0)
        ax.add_patch(bar)


def _total(ax: Axes, boxes: Sequence[Box], kernels: Sequence[_Kernel], upto: int, lesson: int | None) -> str:
    """The last row, of the whole block; gives it in words."""
    row = len(boxes)
    ax.plot([30, _EDGES[upto][1]], [_y(row - 0.5)] * 2, color=BLACK, linewidth=0.8, marker="")
    _write(ax, _MIDDLE, _y(row), "the block", "center", weight="bold")
    cells = _Kernel(tuple(boxes)).cells | {
        "ridge": "no side",
        "parameters": _count(sum(box.parameters for box in boxes)),
        "FLOPs": _count(sum(box.flops for box in boxes)),
        "time": units.duration(sum(kernel.seconds for kernel in kernels)),
    }
    return _cells(ax, "the block", cells, row, upto, lesson, weight="bold")


@drawn("One box")
def one_box(config: Config, batch: int, tokens: int, name: str) -> Made:
    """The block of a model as boxes, and written out beside them what each lesson says about the first of that name."""
    boxes = block_costs(config, batch, tokens)
    row = [box.name for box in boxes].index(name)
    box, cells = boxes[row], _Kernel((boxes[row],)).cells
    fig, ax = _sheet(
        _y(len(boxes) + 0.2), f"One operation of {config.name}: what you will be able to compute", _y(-1.9)
    )
    _stack(ax, boxes, {row: _BOUNDS["compute"]})
    said = {
        "shape of the result": (3, _shape(box, config, batch, tokens)),
        "parameters": (4, _count(box.parameters)),
        "FLOPs": (4, _count(box.flops)),
        "bytes moved": (5, cells["bytes"]),
        "FLOPs per byte": (5, cells["FLOP/B"]),
        "least time on an H100": (6, cells["time"]),
        "bytes kept for the backward pass": (7, cells["kept"]),
    }
    near, far, top, bottom = 230, 694, _y(0.2), _y(11.8)
    corners = [(138, _y(row) - 10), (near, top), (far, top), (far, bottom), (near, bottom), (138, _y(row) + 10)]
    ax.add_patch(Polygon(corners, facecolor=GROUNDS[2], zorder=0))
    heading = f"{batch * tokens} tokens, each a list of {config.width} numbers of 2 bytes"
    _write(ax, near, _y(-0.5), heading, color=INKS[GREY], fontsize=9.5, said=True)
    for place, (text, (lesson, value)) in enumerate(said.items()):
        y = _y(1.2 + 1.6 * place)
        _chip(ax, near + 26, y, lesson)
        _write(ax, near + 50, y, text, fontsize=10.5)
        _write(ax, far - 14, y, value, "right", fontsize=10.5, weight="bold")
    return Made(fig, details="\n".join(f"{name} | {text}: {value}" for text, (_, value) in said.items()))


def _shape(box: Box, config: Config, batch: int, tokens: int) -> str:
    """The shape of a result in numbers, without dimensions of size 1."""
    sizes = {"b": batch, "t": tokens, "s": tokens, "d": config.width, "f": config.hidden, "c": config.channels}
    sizes |= {"h": config.heads, "kv": config.key_heads}
    shapes = []
    for part in box.shape.split(", "):
        shapes.append(" × ".join(str(sizes[letter]) for letter in part.split() if sizes[letter] > 1))
    return ", ".join(shapes)


def _count(count: float) -> str:
    return units.si(count, "").strip() if count else ""


def _letters(config: Config, batch: int, tokens: int) -> list[str]:
    """What each letter stands for."""
    texts = "text" if batch == 1 else "texts"
    letters = [f"b {batch} {texts}", f"t {tokens} tokens", f"s {tokens} tokens to look at"]
    letters += [f"d {config.width} wide", f"h {config.heads} heads"]
    if config.key_heads != config.heads:
        letters.append(f"kv {config.key_heads} key heads")
    return [*letters, f"c {config.channels} channels a head", f"f {config.hidden} wide inside the MLP"]


def _sheet(height: float, title: str, top: float = 0, width: float = 704) -> tuple[Figure, Axes]:
    """A page whose coordinates are the pixels that are shown, from the upper left corner, less a strip at the top."""
    fig, ax = figure(width / 110, (height - top) / 110)
    fig.set_layout_engine("none")  # not layout="none": to save a figure resets that to the style's own
    fig.suptitle(title, x=12 / width, ha="left", weight="bold")
    ax.set_position((0, 0, 1, 1))
    ax.set(xlim=(0, width), ylim=(height, top))
    ax.axis("off")
    return fig, ax


def _write(ax: Axes, x: float, y: float, text: str, align: str = "left", *, said: bool = False, **style: Any) -> None:
    """A text at a place; unless it is to be said, the words of the drawing leave it out."""
    ax.text(x, y, text, ha=align, **{"va": "center", "label": "" if said else "_unsaid"} | style)


def _chip(ax: Axes, x: float, y: float, lesson: int) -> None:
    """The number of a lesson."""
    style = {"boxstyle": "round,pad=0.25", "color": INKS[GREY], "linewidth": 0.8}
    _write(ax, x, y, f"{lesson:02}", "center", fontsize=7.5, color="white", bbox=style)


def _y(row: float) -> float:
    return _TOP + _ROW * (row + 0.5)


def _heads(ax: Axes, upto: int) -> None:
    """The heads of the columns, each under the number of its lesson."""
    for lesson in range(2, upto + 1):
        _chip(ax, _EDGES[lesson][0] + 24, _TOP - 50, lesson)
    for column in _COLUMNS.values():
        if column.first <= upto <= column.last:
            _write(ax, column.x, _TOP - 8, column.head, column.align, va="bottom", fontsize=8, weight="bold")


def _lines(ax: Axes, boxes: Sequence[Box], upto: int) -> None:
    """Lines between the rows, short within a kernel."""
    for row, (above, below) in enumerate(itertools.pairwise(boxes), 1):
        joined = upto >= 5 and above.kernel == below.kernel
        right = 378 if joined else _EDGES[upto][1]
        ax.plot([148, right], [_y(row - 0.5)] * 2, color="#E0E0E0", linewidth=0.8, marker="")


def _cells(
    ax: Axes, name: str, cells: Mapping[str, str], row: float, upto: int, lesson: int | None, **style: Any
) -> str:
    """Write what the lessons so far say in a row; gives it in words."""
    words = [name]
    for head, column in _COLUMNS.items():
        text = cells.get(head)
        if text and column.first <= upto <= column.last:
            size = 9 if column.first == lesson else 8.5
            if "\n" in text:
                size = 7.5
            _write(ax, column.x, _y(row), text, column.align, **{"fontsize": size} | style)
            words.append(f"{text} {head}".replace("\n", ", "))
    return " | ".join(words)


def _stack(ax: Axes, boxes: Sequence[Box], styles: Mapping[int, tuple[str, str]]) -> None:
    """The boxes in their colours, the way of the data down through them, and the two residuals beside it."""
    for row, box in enumerate(boxes):
        ink, tint = styles.get(row, _BOUNDS[""])
        width, text = (20, "+") if box.name == "add" else (104, box.name)
        style: dict[str, Any] = {"facecolor": tint, "edgecolor": INKS[ink], "linewidth": 1.0, "zorder": 3}
        corner = "round,pad=0,rounding_size=8"
        ax.add_patch(FancyBboxPatch((_MIDDLE - width / 2, _y(row) - 10), width, 20, corner, **style))
        _write(ax, _MIDDLE, _y(row), text, "center", zorder=4)
    for row in range(len(boxes) + 1):
        arrow(ax, (_MIDDLE, _y(row - 1) + 10), (_MIDDLE, _y(row) - 10), INKS[GREY], **_TIP)
    first, second = (row for row, box in enumerate(boxes) if box.name == "add")
    for start, add in ((-0.5, first), (first + 0.5, second)):
        heights = [_y(start), _y(start), _y(add)]
        ax.plot([_MIDDLE, 16, 16], heights, color=INKS[GREY], linewidth=1, zorder=1, marker="")
        arrow(ax, (16, _y(add)), (_MIDDLE - 10, _y(add)), INKS[GREY], **_TIP)
