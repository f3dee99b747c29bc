"""Strips of cells, a row each."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes

from helpers.draw.drawing import Made, canvas, drawn
from helpers.draw.labels import cell, rows
from helpers.draw.palette import GREY, TINTS


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
