"""Named shapes as pictures: the heads of attention, and an einsum as a box of loops."""

import math
from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Polygon, Rectangle

from helpers import units
from helpers.draw.block import sheet, write
from helpers.draw.drawing import BLACK, GREY, INKS, TINTS, drawn
from helpers.model import Config

Pair = tuple[float, float]
_FLOW = (("q k v", "b t h c"), ("scores", "b h t s"), ("weighted sum", "b t h c"), ("merged", "b t (h c)"))


@drawn("Shapes")
def attention_shapes(*configs: Config) -> tuple[Figure, str]:
    """The heads of each model, each key head under the query heads that it serves, and the shapes of attention."""
    fig, ax = sheet(94 + 132 * len(configs))
    fig.suptitle(
        "Query heads, and the key and value heads that serve them",
        x=12 / 704,
        ha="left",
        weight="bold",
    )
    for row, config in enumerate(configs):
        top, groups = 44 + 132 * row, config.heads // config.key_heads
        text = f"{config.name}: d {config.width} = h {config.heads} × c {config.channels}, kv {config.key_heads}"
        write(ax, 12, top, text, color=INKS[GREY], label="")
        for line, (name, heads) in enumerate((("q", config.heads), ("k", config.key_heads), ("v", config.key_heads))):
            y, wide = top + 18 + 30 * line, 590 / heads
            write(ax, 20, y + 11, name, "center", weight="bold")
            for head in range(heads):
                tint = TINTS[(head // groups if name == "q" else head) % 4]
                look = {"facecolor": tint, "edgecolor": INKS[GREY], "linewidth": 0.7}
                ax.add_patch(Rectangle((36 + wide * head, y), wide - 2, 22, **look))
            shape = "b t h c" if name == "q" else "b s h c" if groups == 1 else "b s kv c"
            write(ax, 636, y + 11, shape)
    _flow(ax, 54 + 132 * len(configs))
    return fig, " ".join(
        f"{config.name}: {config.heads} query heads, {config.key_heads} key heads, "
        f"each for {config.heads // config.key_heads}."
        for config in configs
    )


def _flow(ax: Axes, y: float) -> None:
    for place, (name, shape) in enumerate(_FLOW):
        x = 36 + 152 * place
        look = {"facecolor": "white", "edgecolor": INKS[GREY], "linewidth": 1.0}
        ax.add_patch(FancyBboxPatch((x, y - 9), 124, 34, boxstyle="round,pad=0,rounding_size=5", **look))
        write(ax, x + 62, y + 1, name, "center")
        write(ax, x + 62, y + 15, shape, "center", color=INKS[GREY], fontsize=8)
        if place:
            arrow = {
                "arrowstyle": "-|>,head_length=0.3,head_width=0.16",
                "color": INKS[GREY],
                "shrinkA": 0,
                "shrinkB": 0,
            }
            ax.annotate("", (x - 1, y + 8), (x - 27, y + 8), arrowprops=arrow, label="_")


@drawn("Box of loops")
def einsum_box(pattern: str, sizes: Mapping[str, int]) -> tuple[Figure, str]:
    """An einsum of two tensors as a box: its edges are the named dimensions, its sides the two inputs and the result.

    Needs a name that is summed, one that only the left input brings to the result, and one that only the right one
    does; names that all three share make more such boxes. Raises ValueError otherwise. FLOPs are twice the volume.
    """
    inputs, _, result = pattern.partition("->")
    left, right, out = (part.split() for part in (*inputs.split(","), result))
    summed = [name for name in left if name in right and name not in out]
    rows, columns = ([name for name in own if name in out and name not in other] for own, other in _both(left, right))
    if not (summed and rows and columns):
        raise ValueError(f"a name is summed, and each input brings one of its own to the result; got {pattern!r}")
    shared = [name for name in out if name in left and name in right]
    flops = 2 * math.prod(sizes[name] for name in {*left, *right})
    (i, high), (j, broad), (k, far) = (
        (" ".join(names), math.prod(sizes[name] for name in names)) for names in (rows, columns, summed)
    )
    fig, ax = sheet(330)
    fig.suptitle(f"{pattern}: each cell multiplies and adds once", x=12 / 704, ha="left", weight="bold")
    scaled = ((high, 80), (broad, 150), (far, 60))
    tall, wide, deep = (90 + most * math.sqrt(size / max(high, broad, far)) for size, most in scaled)
    x, y, dx, dy = 90.0, 290.0, 0.75 * deep, -0.5 * deep
    sides = [
        ("result", out, (broad, high), (x, y), (wide, 0), (0, -tall)),
        ("right input", right, (broad, far), (x, y - tall), (wide, 0), (dx, dy)),
        ("left input", left, (far, high), (x + wide, y), (dx, dy), (0, -tall)),
    ]
    for tint, (name, names, *side) in zip(TINTS, sides, strict=False):
        _side(ax, f"{name}\n{' '.join(names)}", tint, *side)
    write(ax, x - 10, y - tall / 2, f"{i}\n{high}", "right", weight="bold")
    write(ax, x + wide / 2, y + 12, f"{j} {broad}", "center", weight="bold")
    write(ax, x + wide + dx / 2 + 8, y + dy / 2 + 10, f"{k} {far}", weight="bold")
    factors = " × ".join(("2", *shared, *rows, *columns, *summed))
    note = f"{k} is summed\n\n{factors}\n= {units.si(flops, 'FLOP')}"
    if shared:
        note += f"\n\n{' × '.join(f'{name} {sizes[name]}' for name in shared)}\nsuch boxes"
    write(ax, x + wide + dx + 40, 150, note, label="")
    return fig, f"{factors} = {units.si(flops, 'FLOP')}."


def _both(left: list[str], right: list[str]) -> tuple[tuple[list[str], list[str]], ...]:
    return (left, right), (right, left)


_PLATE = {"boxstyle": "round,pad=0.2", "facecolor": "white", "linewidth": 0, "alpha": 0.85}


def _side(ax: Axes, text: str, tint: str, cells: Pair, corner: Pair, along: Pair, up: Pair) -> None:
    """A side of the box, with the lines between its cells where they are few."""

    def point(a: float, b: float) -> Pair:
        return corner[0] + a * along[0] + b * up[0], corner[1] + a * along[1] + b * up[1]

    outline = [point(0, 0), point(1, 0), point(1, 1), point(0, 1)]
    ax.add_patch(Polygon(outline, facecolor=tint, edgecolor=BLACK, linewidth=1.1, zorder=1))
    lines = [(point(n / cells[0], 0), point(n / cells[0], 1)) for n in range(1, cells[0]) if cells[0] <= 16]
    lines += [(point(0, n / cells[1]), point(1, n / cells[1])) for n in range(1, cells[1]) if cells[1] <= 16]
    for start, end in lines:
        ax.plot(*zip(start, end, strict=True), color=INKS[GREY], linewidth=0.5, marker="", label="_")
    write(ax, *point(0.5, 0.5), text, "center", bbox=_PLATE)
