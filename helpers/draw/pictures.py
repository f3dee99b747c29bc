"""Named dimensions: groups of cells in memory, and images by the names of their axes."""

import itertools
import math
from collections.abc import Sequence

import torch
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from helpers.draw.drawing import GREY, TINTS, WIDTH, canvas, drawn, page


@drawn("Strips of cells")
def groups(rows: dict[str, Sequence[int]], title: str, group: str) -> Figure:
    """A strip of cells per row, in the order of memory: each cell carries its position and the number of its group.

    `group` names what the numbers count, such as head. Same number, same tint.
    """
    fig, ax = canvas(0.75 + 0.62 * len(rows), title, f"position in memory; the cell says which {group}")
    for row, members in enumerate(rows.values()):
        for position, member in enumerate(members):
            ax.add_patch(
                Rectangle(
                    (position, row - 0.32), 1, 0.64,
                    facecolor=TINTS[member % 5], edgecolor="white", linewidth=1.5,
                )
            )  # fmt: skip
            ax.text(position + 0.5, row, str(member), ha="center", va="center", fontsize=10)
    length = max(map(len, rows.values()))
    ax.set_xticks([position + 0.5 for position in range(length)], map(str, range(length)))
    ax.set_yticks(range(len(rows)), list(rows), family="DejaVu Sans Mono")
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.grid(visible=False)
    ax.set(xlim=(0, length), ylim=(len(rows) - 0.55, -0.45))
    return fig


@drawn("Pictures")
def images(pictures: dict[str, torch.Tensor], title: str, columns: int = 1) -> Figure:
    """Pictures side by side under one title, each with its name and its shape.

    A picture is a tensor of axes (height, width), drawn in greys, or (height, width, channel) with three channels;
    0 is black and 1 is white. Raises ValueError for any other shape.
    """
    for name, picture in pictures.items():
        if picture.ndim not in (2, 3) or (picture.ndim == 3 and picture.shape[2] != 3):
            raise ValueError(
                f"a picture has the axes (height, width) or (height, width, 3), {name!r} has {tuple(picture.shape)}"
            )
    rows = math.ceil(len(pictures) / columns)
    shapes = [tuple(picture.shape) for picture in pictures.values()]
    # The tallest picture of each row sets its height, at one scale for all columns.
    width = (WIDTH - 0.2) / columns - 0.15
    heights = [
        max(min(width * height / breadth, 2.2) for height, breadth, *_ in shapes[row * columns : (row + 1) * columns])
        for row in range(rows)
    ]
    fig = page(0.35 + sum(heights) + 0.42 * rows)
    fig.suptitle(title, x=0.01, ha="left", fontsize=10, weight="bold")
    axes = fig.subplots(rows, columns, squeeze=False, height_ratios=heights).flat
    for ax, (name, picture) in itertools.zip_longest(axes, pictures.items(), fillvalue=("", None)):
        ax.set(xticks=[], yticks=[])
        ax.grid(visible=False)
        ax.spines[:].set(visible=picture is not None, color=GREY)  # white pictures end somewhere
        if picture is not None:
            pixels = picture.detach().cpu().clamp(0, 1).numpy()
            ax.imshow(pixels, cmap="gray", vmin=0, vmax=1, interpolation="nearest", label=name)
            ax.set_anchor("NW")
            label = f"{name}   {tuple(picture.shape)}"
            ax.set_title(label, fontsize=8, weight="normal", family="DejaVu Sans Mono", loc="left")
    return fig
