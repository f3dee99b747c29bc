"""Strips of cells, a row each; arcs between cells, and arrows from a strip to the next."""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from helpers.draw.drawing import Made, canvas, drawn
from helpers.draw.labels import arrow, cell, note, rows
from helpers.draw.palette import BLACK, GREY, TINTS

_FIRST_TINT = 2  # blue and vermillion have a meaning


@drawn("Strips of cells")
def strips(
    strips: Mapping[str, Sequence[Any]],
    title: str,
    xlabel: str = "",
    tint: Callable[[Any], int | None] | None = None,
    parts: Sequence[str] = (),
    ends: Mapping[str, str] | None = None,
) -> Made:
    """A strip of cells per row, each with its text, wider by empty ones behind it; `ends` writes a text after a row.

    `tint` gives the number of a cell's tint, or None for a white one. `parts` names equal parts of the strips, with
    a bracket above each; with them, or without an `xlabel`, the places have no numbers.
    """
    length = max(map(len, strips.values()))
    head = 0.3 if parts else 0
    fig, ax = canvas(0.72 + 0.34 * len(strips) + head, title, xlabel)
    tint = tint or list(dict.fromkeys(itertools.chain(*strips.values()))).index
    for row, strip in enumerate(strips.values()):
        _draw_cells(ax, row, strip, tint)
    rows(ax, strips)
    if parts:
        _draw_parts(ax, parts, length)
        ax.set_ylim(top=-1.35)
    for name, text in (ends or {}).items():
        note(ax, text, (length, list(strips).index(name)), (6, 0), weight="bold")
    _finish(ax, length, "" if parts else xlabel)
    return Made(fig)


@drawn("Arcs over cells")
def partners(groups: Mapping[str, Sequence[int]], title: str, xlabel: str) -> Made:
    """A strip of numbered cells per row; an arc joins two cells of the same group, which have one tint.

    `groups` gives for each cell of a row the number of its group, from 0. Raises ValueError for a group that is no
    pair.
    """
    pairs = {name: _pairs(row) for name, row in groups.items()}
    length = max(map(len, groups.values()))
    spaced: dict[str, Sequence[Any]] = {}
    for gap, (name, row) in enumerate(groups.items(), start=1):
        spaced |= {" " * gap: [], name: range(len(row))}
    fig, ax = canvas(0.7 + 0.75 * len(groups), title, xlabel)
    for place, (name, row) in enumerate(groups.items()):
        y = 2 * place + 1
        for channel, group in enumerate(row):
            face = TINTS[(_FIRST_TINT + group) % len(TINTS)]
            cell(ax, (channel, y - 0.36), str(channel), face, (1, 0.72), fontsize=10, va="center_baseline", said=True)
        for left, right in pairs[name]:
            _draw_arc(ax, left + 0.5, right + 0.5, y - 0.42, 2 * (right - left) / length)
    rows(ax, spaced)
    _finish(ax, length, xlabel)
    ax.set_xticks([])  # the cells have their numbers
    told = (f"{name}: {', '.join(f'{i} and {j}' for i, j in found)}." for name, found in pairs.items())
    return Made(fig, " ".join(told))


def _pairs(row: Sequence[int]) -> list[tuple[int, int]]:
    found = []
    for group in dict.fromkeys(row):
        places = [place for place, other in enumerate(row) if other == group]
        if len(places) != 2:
            raise ValueError(f"each group is a pair of cells; group {group} has {len(places)}")
        found.append((places[0], places[1]))
    return found


def _draw_arc(ax: Axes, left: float, right: float, foot: float, height: float) -> None:
    """Half an ellipse, upwards where the rows count down."""
    turn = np.linspace(0, math.pi, 40)
    x = (left + right) / 2 - (right - left) / 2 * np.cos(turn)
    ax.plot(x, foot - height * np.sin(turn), color=BLACK, linewidth=1.4, marker="", linestyle="-", label="_arc")


@drawn("Strips of cells")
def moves(
    before: tuple[str, Sequence[Any]],
    after: tuple[str, Sequence[Any]],
    title: str,
    tint: Callable[[Any], int | None],
) -> Made:
    """Two strips, each a name and its cells: an arrow leads from each cell of the first to the same in the second.

    Raises ValueError if the two do not hold the same different texts.
    """
    (first, cells), (second, moved) = before, after
    if len(set(cells)) != len(cells) or sorted(map(str, cells)) != sorted(map(str, moved)):
        raise ValueError(f"both strips hold the same texts, each once; got {list(cells)} and {list(moved)}")
    fig, ax = canvas(2.0, title)
    for row, strip in ((0, cells), (2, moved)):
        _draw_cells(ax, row, strip, tint)
    rows(ax, [first, "", second])
    for place, text in enumerate(cells):
        start, end = (place + 0.5, 0.42), (list(moved).index(text) + 0.5, 1.58)
        arrow(ax, start, end, BLACK if start[0] != end[0] else GREY, linewidth=1.2)
    _finish(ax, len(cells), "")
    return Made(fig)


def _draw_cells(ax: Axes, row: int, strip: Sequence[Any], tint: Callable[[Any], int | None]) -> None:
    """The cells of one row."""
    style: dict[str, Any] = {"fontsize": 10 if len(strip) < 24 else 7, "va": "center_baseline", "said": True}
    for place, text, width in _runs(strip):
        number = tint(text)
        face = "white" if number is None else TINTS[number % len(TINTS)]
        cell(ax, (place, row - 0.36), str(text), face, (width, 0.72), **style)


def _finish(ax: Axes, length: int, xlabel: str) -> None:
    """The limits, and the numbers of the places where they have a name and there is room."""
    ax.set_xlim(-0.05, length + 0.05)
    ax.set_xticks([])
    if xlabel and length <= 12:
        ax.set_xticks([place + 0.5 for place in range(length)], map(str, range(length)))
    ax.axis("on")
    ax.xaxis.set_visible(bool(xlabel))
    ax.tick_params(axis="x", length=0)
    ax.grid(visible=False)
    ax.spines[:].set_visible(False)


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
