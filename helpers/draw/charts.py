"""Plain charts: lines, bars, stacked bars, and the runs of a measurement."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import ScalarFormatter

from helpers.draw.drawing import BLACK, BLUE, HATCHES, INKS, PLATE, TINTS, VERMILLION, apart, canvas, drawn, note


@drawn("Line chart")
def lines(
    series: dict[str, tuple[Sequence[float], Sequence[float]]],
    title: str,
    xlabel: str,
    ylabel: str,
    log: str = "",
) -> Figure:
    """Labelled lines: `series` maps a name to its x and its y values; `log` names the logarithmic axes, as in "xy".

    Each line carries its name at its right end.
    """
    fig, ax = canvas(3.0, title, xlabel, ylabel)
    labels = {}
    for name, (x, y) in series.items():
        (line,) = ax.plot(x, y, label=name, markevery=max(1, len(x) // 8))
        labels[name] = note(ax, name, (x[-1], y[-1]), fontsize=8, color=INKS[line.get_color()])
    if "x" in log:
        ax.set_xscale("log")
        places = sorted({place for x, _ in series.values() for place in x})
        if len(places) <= 8:  # few enough to mark each, in place of powers of ten
            ax.set_xticks(places)
            ax.set_xticks([], minor=True)
            ax.xaxis.set_major_formatter(ScalarFormatter())
    if "y" in log:
        ax.set_yscale("log")
    ax.autoscale_view()  # which waits until the limits are asked for
    heights = {name: ax.transData.transform(label.xy)[1] * 72 / fig.dpi for name, label in labels.items()}  # in points
    for name, height in apart(heights, 9).items():
        labels[name].xyann = (6, height - heights[name])
    return fig


@drawn("Stacked bars")
def stacked_bars(rows: dict[str, dict[str, float]], title: str, xlabel: str) -> Figure:
    """A bar per row, stacked from named parts, with the size in each part that has room, and the total at its end."""
    fig, ax = canvas(1.1 + 0.36 * len(rows), title, xlabel)
    parts = list(dict.fromkeys(part for row in rows.values() for part in row))
    left = [0.0] * len(rows)
    far = max(sum(row.values()) for row in rows.values())
    for index, part in enumerate(parts):
        sizes = [row.get(part, 0.0) for row in rows.values()]
        look = {"color": TINTS[index], "hatch": HATCHES[index], "edgecolor": "white"}
        bars = ax.barh(range(len(rows)), sizes, left=left, label=part, **look)
        for bar, size in zip(bars, sizes, strict=True):
            if size > far * (0.015 + 0.013 * len(f"{size:g}")):  # wide enough for its label
                ax.text(
                    bar.get_x() + size / 2, bar.get_y() + 0.4, f"{size:g}", ha="center", va="center", fontsize=8,
                    bbox={"boxstyle": "round,pad=0.15", "facecolor": "white", "linewidth": 0},
                )  # fmt: skip
        left = [start + size for start, size in zip(left, sizes, strict=True)]
    for row, total in enumerate(left):
        ax.text(total + max(left) * 0.01, row, f"{total:g}", va="center", weight="bold")
    ax.set_yticks(range(len(rows)), list(rows))
    ax.set(xlim=(0, max(left) * 1.08))
    ax.invert_yaxis()
    ax.grid(axis="y", visible=False)
    fig.legend(loc="outside lower center", ncols=len(parts), fontsize=8)
    return fig


@drawn("Bars")
def bars(
    sizes: dict[str, float], title: str, xlabel: str, limit: tuple[str, float] | None = None, log: bool = False
) -> Figure:
    """A bar per row with its size beside it; `limit` is a name and a place for a line, bars beyond it are hatched."""
    fig, ax = canvas((1.2 if limit else 0.95) + 0.34 * len(sizes), title, xlabel)
    low = min(sizes.values()) / 10 if log else 0.0
    far = max(*sizes.values(), limit[1] if limit else 0.0)
    if limit:
        ax.axvline(limit[1], color=BLACK, linewidth=1, label=limit[0])
        left = limit[1] > far / 2  # then the name has its room to the left of the line
        shift, side = ((-4, 0), "right") if left else ((4, 0), "left")
        note(ax, limit[0], (limit[1], len(sizes) - 0.25), shift, fontsize=8, ha=side)
    for row, (name, size) in enumerate(sizes.items()):
        beyond = limit is not None and size > limit[1]
        look = {"color": TINTS[1], "hatch": HATCHES[1], "edgecolor": VERMILLION} if beyond else {"color": TINTS[0]}
        ax.barh(row, size, label=name, **look)
        note(ax, f"{size:.3g}", (size, row), weight="bold", bbox=PLATE)
    if log:
        ax.set_xscale("log", nonpositive="clip")
    ax.set(xlim=(low, far * 30 if log else far * 1.12), ylim=(len(sizes) - (0.0 if limit else 0.4), -0.6))
    ax.set_yticks(range(len(sizes)), list(sizes))
    ax.grid(axis="y", visible=False)
    return fig


@drawn("Runs of a timing")
def runs(seconds: Sequence[float], title: str) -> Figure:
    """Every single run in its order, with the median and the band that holds the middle half of them."""
    unit, scale = next((u, s) for u, s in (("s", 1), ("ms", 1e3), ("µs", 1e6)) if max(seconds) * s >= 1 or u == "µs")
    times = np.asarray(seconds) * scale
    first, median, third = np.quantile(times, (0.25, 0.5, 0.75))
    fig, ax = canvas(2.6, title, "run", f"time / {unit}")
    ax.axhspan(first, third, color=TINTS[0], label="middle half")
    ax.axhline(median, color=BLUE, linewidth=1.2, label="median")
    ax.plot(range(1, len(times) + 1), times, "o", markersize=3, color=BLACK, label="one run")
    ax.set(ylim=(0, times.max() * 1.05))
    fig.legend(loc="outside lower center", ncols=3, fontsize=8)
    return fig
