"""Arithmetic intensity: the two times of an op, and intensity against a size."""

import math
from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.patheffects import Normal, Stroke
from matplotlib.ticker import EngFormatter

from helpers import units
from helpers.draw.drawing import BLACK, BLUE, GREEN, INKS, MARKERS, PURPLE, VERMILLION, apart, canvas, drawn, note


@drawn("Paired bars")
def two_times(rows: dict[str, tuple[float, float]], title: str) -> Figure:
    """Two bars per row, the seconds for the memory and for the arithmetic, each with its value, the longer in bold.

    `rows` maps a name to (FLOP / peak, byte / bandwidth). The axis is logarithmic.
    """
    fig, ax = canvas(0.95 + 0.5 * len(rows), title, "time")
    kinds = {
        "memory: byte / bandwidth": (1, {"color": BLUE}),
        "compute: FLOP / peak": (0, {"facecolor": "white", "edgecolor": VERMILLION, "hatch": "//////"}),
    }
    times = [time for pair in rows.values() for time in pair]
    low = min(times) / 4
    for label, (which, style) in kinds.items():
        places = [row + 0.2 * (1 - 2 * which) for row in range(len(rows))]
        bars = [pair[which] for pair in rows.values()]
        ax.barh(places, bars, height=0.36, label=label, **style)
        for place, time, pair in zip(places, bars, rows.values(), strict=True):
            weight = "bold" if time == max(pair) else "normal"
            ax.text(time * 1.15, place, units.si(time, "s"), va="center", fontsize=8, weight=weight)
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter(EngFormatter("s"))
    ax.set_yticks(range(len(rows)), list(rows))
    ax.set(xlim=(low, max(times) * 6), ylim=(len(rows) - 0.5, -0.5))
    ax.grid(axis="y", visible=False)
    fig.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=8)
    return fig


@drawn("Line chart")
def intensity_curves(
    curves: dict[str, tuple[Sequence[float], Sequence[float]]],
    ridges: dict[str, float],
    title: str,
    xlabel: str,
    crossings: Sequence[tuple[float, float]] = (),
) -> Figure:
    """Lines of intensity on logarithmic axes, and a thin line at each ridge, below which memory limits.

    With a single ridge the two sides are shaded. `crossings` are points (x, intensity) to be marked with their x.
    """
    fig, ax = canvas(3.5, title, xlabel, "intensity (FLOP/byte)")
    left, right = min(min(x) for x, _ in curves.values()), max(max(x) for x, _ in curves.values())
    values = [value for _, y in curves.values() for value in y] + list(ridges.values())
    bottom, top = min(values) / 1.6, max(values) * 2.5
    for name, ridge in ridges.items():
        ax.axhline(ridge, color=BLACK, linewidth=0.9, label=name)
        note(ax, f"{name}: {ridge:.0f}", (left, ridge), (3, 2), fontsize=8, va="bottom")
    labels = apart({name: math.log10(y[-1]) for name, (_, y) in curves.items()}, math.log10(top / bottom) / 16)
    for place, (name, (x, y)) in enumerate(curves.items()):
        colour = (GREEN, PURPLE, BLACK, BLUE, VERMILLION)[place % 5]
        ax.plot(x, y, label=name, marker=MARKERS[place % 5], markevery=max(1, len(x) // 6), color=colour,
                path_effects=[Stroke(linewidth=4, foreground="white"), Normal()])  # fmt: skip  # off the shades
        note(ax, name, (x[-1], 10 ** labels[name]), (6, 0), fontsize=8, color=INKS[colour])
    box = {"boxstyle": "round,pad=0.1", "facecolor": "white", "linewidth": 0}
    places = {f"{x:.0f}": x for x, _ in sorted(crossings)}
    for place, (text, x) in enumerate(places.items()):
        points = [(other, y) for other, y in crossings if f"{other:.0f}" == text]
        ax.plot(*zip(*points, strict=True), "o", color=BLACK, markerfacecolor="white", markersize=7, zorder=4)
        if len(points) > 1:  # one below the other: a guide, and the number at its foot
            ax.axvline(x, color=BLACK, linewidth=0.8, linestyle=":")
            where, shift, side = (x, bottom), (5, 10), "left"
        else:
            last = place + 1 == len(places)  # its number goes to the right, that of the others to the left
            where, shift, side = points[0], (30, 8) if last else (-7, 9), "left" if last else "right"
        note(ax, text, where, shift, ha=side, weight="bold", bbox=box)
    ax.set(xscale="log", yscale="log", xlim=(left, right), ylim=(bottom, top))
    if len(ridges) == 1:
        (ridge,) = ridges.values()
        ax.axhspan(bottom, ridge, color="#E3F0F9", linewidth=0, zorder=0)
        ax.axhspan(ridge, top, facecolor="#FDF3EA", edgecolor="#F6DCC6", hatch="//", linewidth=0, zorder=0)
        look = {"ha": "right", "weight": "bold", "bbox": box}
        ax.text(right / 1.1, top / 1.15, "compute-bound", color=INKS[VERMILLION], va="top", **look)
        ax.text(right / 1.1, bottom * 1.15, "memory-bound", color=BLUE, va="bottom", **look)
    ax.grid(visible=False)
    return fig
