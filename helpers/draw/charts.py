"""Charts of any lesson: lines, bars, dots on a logarithmic axis, pairs with their ratio, timings, memory."""

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator, NullLocator, ScalarFormatter

from helpers import units
from helpers.draw.drawing import (
    BLACK,
    BLUE,
    GREY,
    INKS,
    LOOKS,
    PLATE,
    TINTS,
    VERMILLION,
    canvas,
    drawn,
    note,
    number,
    page,
    past_ends,
)  # fmt: skip


@drawn("Line chart")
def lines(
    series: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    title: str,
    xlabel: str,
    ylabel: str,
    log: str = "",
    marks: Mapping[str, tuple[float, float]] | None = None,
) -> Figure:
    """Lines with their names at the right end: `series` maps a name to its x and its y values.

    `log` names the logarithmic axes, as in "xy"; `marks` maps a text to the point (x, y) that it stands beside. Short
    series carry markers. Raises ValueError for a series whose x and y differ in length or that is empty.
    """
    fig, ax = canvas(3.1, title, xlabel, ylabel)
    for (name, (x, y)), (colour, marker, dash) in zip(series.items(), itertools.cycle(LOOKS)):
        if len(x) != len(y) or not len(x):
            raise ValueError(f"{name} has {len(x)} x and {len(y)} y; a line has as many of both, at least one")
        ax.plot(x, y, label=name, color=colour, linestyle=dash, marker=marker if 2 < len(x) <= 12 else "")
    ax.set(xscale="log" if "x" in log else "linear", yscale="log" if "y" in log else "linear")
    places = sorted({place for x, _ in series.values() for place in x})
    if "x" in log and len(places) <= 8:  # few enough to mark each, in place of powers of ten
        ax.set_xticks(places)
        ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_major_formatter(ScalarFormatter())
    past_ends(ax)
    for text, at in (marks or {}).items():
        ax.plot(*at, "o", color=BLACK, markerfacecolor="white", markersize=7, zorder=4, label=text)
        note(ax, text, at, (7, -9), label="_mark", bbox=PLATE, weight="bold")
    return fig


@drawn("Bars")
def bars(
    sizes: Mapping[str, float], title: str, xlabel: str, limit: tuple[str, float] | None = None
) -> tuple[Figure, str]:
    """A bar per row from 0, on a linear axis, with its size beside it; `dots` is for a logarithmic one.

    `limit` is a name and a place for a line. What lies beyond it is vermillion, and a bar of more than 1.5 times the
    limit is cut off at the edge. Raises ValueError for no bars and for negative sizes.
    """
    if not sizes or min(sizes.values()) < 0:
        raise ValueError(f"bars have sizes of 0 or more, got {dict(sizes)}")
    fig, ax = canvas((1.15 if limit else 0.85) + 0.34 * len(sizes), title, xlabel)
    least = limit[1] if limit else math.inf
    within = [size for size in sizes.values() if size <= 1.5 * least]
    far = max([*within, *([1.2 * limit[1]] if limit else [])])
    for row, (name, size) in enumerate(sizes.items()):
        beyond, cut = size > least, size > far
        look = {"color": TINTS[1], "edgecolor": VERMILLION} if beyond else {"color": TINTS[0], "edgecolor": BLUE}
        ax.barh(row, min(size, far * 1.12), height=0.68, label=f"_{name}", **look)
        at, shift, side = (far * 1.1, (0, 0), "right") if cut else (size, (5, 0), "left")
        note(
            ax,
            f"{size:.3g}{' ▸' if cut else ''}",
            (at, row),
            shift,
            ha=side,
            weight="bold",
            bbox=None if cut else PLATE,
        )
    ax.set(xlim=(0, far * 1.12), ylim=(len(sizes) - (0.1 if limit else 0.4), -0.6))
    if limit:
        ax.axvline(limit[1], color=BLACK, linewidth=1.2, label=limit[0], zorder=1.5)
        note(ax, limit[0], (limit[1], len(sizes) - 0.3), (-4, 0), fontsize=8.5, ha="right")
    _rows(ax, sizes)
    return fig, _listed(sizes, xlabel)


@drawn("Dots")
def dots(
    values: Mapping[str, float], title: str, xlabel: str, limits: Mapping[str, float] | None = None
) -> tuple[Figure, str]:
    """A dot per row on a logarithmic axis, with its value; `limits` are vertical lines with a name each.

    Raises ValueError for no values and for values of 0 or less, which a logarithmic axis does not have.
    """
    limits = dict(limits or {})
    if not values or min([*values.values(), *limits.values()]) <= 0:
        raise ValueError(f"a logarithmic axis has only values above 0, got {dict(values) | limits}")
    fig, ax = canvas((1.15 if limits else 0.85) + 0.32 * len(values), title, xlabel)
    for row, (name, value) in enumerate(values.items()):
        ax.plot([value], [row], "o", color=BLUE, markersize=7, label=f"_{name}", zorder=4)
        note(ax, f"{value:.3g}", (value, row), (8, 0), weight="bold", bbox=PLATE)
    everything = [*values.values(), *limits.values()]
    low, high = min(everything), max(everything)
    room = max(high / low, 10)
    ax.set(
        xscale="log", xlim=(low / room**0.05, high * room**0.12), ylim=(len(values) - 0.4, -0.6 - 0.75 * bool(limits))
    )
    for place, (name, value) in enumerate(limits.items()):
        ax.axvline(value, color=BLACK, linewidth=1.2, linestyle=LOOKS[place % 5][2], label=name, zorder=1.5)
        note(ax, f"{name} ", (value, -0.95), (-3, 0), fontsize=8.5, ha="right", bbox=PLATE)
    _rows(ax, values)
    ax.grid(axis="y", visible=True)
    return fig, _listed(values, xlabel)


def _rows(ax: Axes, names: Mapping[str, object]) -> None:
    ax.set_yticks(range(len(names)), list(names))
    ax.grid(axis="y", visible=False)
    ax.tick_params(axis="y", length=0)


def _listed(values: Mapping[str, float], unit: str) -> str:
    return f"{', '.join(f'{name} {number(value)}' for name, value in values.items())} ({unit})."


@drawn("Stacked bars")
def stacked_bars(
    rows: Mapping[str, Mapping[str, float]], title: str, xlabel: str, limit: tuple[str, float] | None = None
) -> tuple[Figure, str]:
    """A bar per row, stacked from named parts (six at most) with their sizes, and the total at its end.

    A part too small for its number has it above, with a thin line. `limit` is a name and a place for a line. Raises
    ValueError for more than six parts and for negative sizes.
    """
    parts = list(dict.fromkeys(part for row in rows.values() for part in row))
    if len(parts) > len(TINTS) or any(size < 0 for row in rows.values() for size in row.values()):
        raise ValueError(f"stacked bars have at most {len(TINTS)} parts, of 0 or more each, got {parts}")
    fig, ax = canvas((1.35 if limit else 1.1) + 0.55 * len(rows), title, xlabel)
    totals = {name: sum(row.values()) for name, row in rows.items()}
    far, left = max([*totals.values(), *([limit[1]] if limit else [])]), [0.0] * len(rows)
    for index, part in enumerate(parts):
        sizes = [row.get(part, 0.0) for row in rows.values()]
        edge = {"edgecolor": tuple(INKS)[index], "linewidth": 0.8}
        ax.barh(range(len(rows)), sizes, height=0.5, left=left, label=part, color=TINTS[index], **edge)
        for row, (start, size) in enumerate(zip(left, sizes, strict=True)):
            up = 7 + 10 * (index % 2)  # neighbours stand at two heights
            if size > far * (0.016 + 0.013 * len(f"{size:.3g}")):  # wide enough for its number
                ax.text(start + size / 2, row, f"{size:.3g}", ha="center", va="center", fontsize=8.5)
            elif size:
                tip = {"arrowstyle": "-", "linewidth": 0.6, "color": GREY, "shrinkA": 0, "shrinkB": 0}
                note(
                    ax, f"{size:.2g}", (start + size / 2, row - 0.25), (0, up), fontsize=8, ha="center", arrowprops=tip
                )
        left = [start + size for start, size in zip(left, sizes, strict=True)]
    for row, total in enumerate(totals.values()):
        note(ax, f"{total:.4g}", (total, row), weight="bold", bbox=PLATE)
    if limit:
        ax.axvline(limit[1], color=BLACK, linewidth=1.2, label=limit[0])
        note(ax, limit[0], (limit[1], len(rows) - 0.35), (-4, 0), fontsize=8.5, ha="right")
    ax.set(xlim=(0, far * 1.1), ylim=(len(rows) - (0.1 if limit else 0.4), -0.65))
    if all(float(size).is_integer() for row in rows.values() for size in row.values()):
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    _rows(ax, rows)
    fig.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=6, fontsize=8.5)
    return fig, f"In all {_listed(totals, xlabel)}"


@drawn("Timing")
def runs(seconds: Sequence[float], title: str) -> tuple[Figure, str]:
    """Every single run in its order, and beside it how often each time came; a line at the median of all.

    Runs far above the rest stand as triangles at the edge of the axis. Raises ValueError for no runs.
    """
    if not len(seconds):
        raise ValueError("there is no run to draw; pass the seconds of at least one")
    unit, scale = ("s", 1) if max(seconds) >= 1 else ("ms", 1e3) if max(seconds) >= 1e-3 else ("µs", 1e6)
    times = np.asarray(seconds) * scale
    first, median, third = np.quantile(times, (0.25, 0.5, 0.75))
    low = times.min() * 0.97
    high = min(times.max() * 1.03, max(third + 8 * (third - first), 1.2 * median))
    slow, order = times > high, np.arange(1, len(times) + 1)
    fig, ax = canvas(2.8, title, "run", f"time / {unit}")
    side = ax.inset_axes((1.03, 0, 0.25, 1), sharey=ax)
    ax.set_box_aspect(0.5)
    ax.axhspan(first, third, color=TINTS[0], linewidth=0, label="_middle half")
    ax.axhline(median, color=BLUE, linewidth=1.4, label="_median")
    ax.plot(order[~slow], times[~slow], "o", markersize=3.5, color=BLACK, label="one run")
    ax.plot(order[slow], np.full(slow.sum(), high), "^", markersize=6, color=VERMILLION, clip_on=False, label="_slow")
    side.hist(times[~slow], bins=np.linspace(low, high, 25), orientation="horizontal", color=TINTS[0], edgecolor=BLUE)
    side.axhline(median, color=BLUE, linewidth=1.4)
    side.tick_params(labelleft=False)
    side.set_xlabel("runs")
    ax.set(ylim=(low, high))
    words = f"Median {number(median)} {unit}, the middle half from {number(first)} to {number(third)} {unit}"
    beyond = f"; {slow.sum()} of {len(times)} runs took more than {number(high)} {unit}" if slow.any() else ""
    return fig, f"{words}{beyond}."


_ROLES = {  # how the two times of a pair look: colour, marker, filled
    "arithmetic": (VERMILLION, "s", True),
    "memory": (BLUE, "o", True),
    "predicted": (BLACK, "o", False),
    "measured": (BLACK, "o", True),
}


def _pairs(ax: Axes, rows: Mapping[str, tuple[float, float]], roles: tuple[str, str]) -> None:
    """Two dots per row on a logarithmic axis of seconds, each with its time, and a gap between them with its factor."""
    times = [time for pair in rows.values() for time in pair]
    if not times or min(times) <= 0:
        raise ValueError(f"a logarithmic axis has only times above 0, got {dict(rows)}")
    room = max(max(times) / min(times), 10)
    ax.set(xscale="log", xlim=(min(times) / room**0.2, max(times) * room**0.2), ylim=(len(rows) - 0.45, -0.7))
    for row, pair in enumerate(rows.values()):
        ax.plot(pair, [row, row], color=GREY, linewidth=1.2, marker="", label="_gap", zorder=2)
        factor = max(pair) / min(pair)
        if math.log(factor) > 0.22 * math.log(room):  # the gap has room for its factor
            ax.text(
                math.sqrt(pair[0] * pair[1]), row - 0.12, f"{number(factor)}×", ha="center", va="bottom", fontsize=8.5
            )
        for role, time in zip(roles, pair, strict=True):
            left = time < max(pair) or (pair[0] == pair[1] and role == roles[0])
            bold = "bold" if time == max(pair) else "normal"
            ink = INKS[_ROLES[role][0]]
            look = {"ha": "right" if left else "left", "weight": bold, "color": ink, "fontsize": 8.5}
            note(ax, units.si(time, "s"), (time, row), (-8 if left else 8, 0), **look)
    for role, times in zip(roles, zip(*rows.values(), strict=True), strict=True):
        colour, marker, filled = _ROLES[role]
        look = {"color": colour, "markerfacecolor": colour if filled else "white", "markersize": 7.5, "zorder": 4}
        ax.plot(times, range(len(rows)), marker, markeredgewidth=1.6, label=role, **look)
    ax.xaxis.set_major_formatter(EngFormatter("s"))
    ax.xaxis.set_minor_locator(NullLocator())
    _rows(ax, rows)


@drawn("Dots and gaps")
def two_times(rows: Mapping[str, tuple[float, float]], title: str) -> tuple[Figure, str]:
    """The two times of each op on a logarithmic axis, joined by a gap with their ratio, the longer in bold.

    `rows` maps a name to (FLOP / peak, bytes / bandwidth) in seconds. Raises ValueError for times that are not above 0.
    """
    fig, ax = canvas(1.05 + 0.46 * len(rows), title, "least time")
    _pairs(ax, rows, ("arithmetic", "memory"))
    fig.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    bound = {"arithmetic": [], "memory": []}
    for name, (compute, memory) in rows.items():
        bound["arithmetic" if compute >= memory else "memory"].append(name)
    return fig, " ".join(f"The {kind} takes longer for {', '.join(names)}." for kind, names in bound.items() if names)


@drawn("Dots and gaps")
def predicted_and_measured(rows: Mapping[str, tuple[float, float]], title: str) -> tuple[Figure, str]:
    """Predicted time (open) and measured time (filled) of each row on a logarithmic axis, with measured / predicted.

    `rows` maps a name to (predicted, measured) in seconds. Raises ValueError for times that are not above 0.
    """
    fig, ax = canvas(1.05 + 0.42 * len(rows), title, "time")
    _pairs(ax, rows, ("predicted", "measured"))
    ratios = {name: measured / predicted for name, (predicted, measured) in rows.items()}
    for row, ratio in enumerate(ratios.values()):
        note(
            ax, f"ratio {ratio:.3g}", (1, row), (6, 0), xycoords=("axes fraction", "data"), weight="bold", fontsize=8.5
        )
    fig.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return fig, f"Measured / predicted: {', '.join(f'{name} {number(ratio)}' for name, ratio in ratios.items())}."


@drawn("Memory over time")
def memory_over_time(
    nbytes: Sequence[float],
    title: str,
    xlabel: str = "operation",
    *,
    capacity: tuple[str, float] | None = None,
    phases: Mapping[str, int] | None = None,
) -> tuple[Figure, str]:
    """Bytes in use after each event of a step, as a filled curve with its peak marked.

    `capacity` is the name and the bytes of a device, drawn as a line; `phases` maps a name to the index of the event
    with which it begins, such as {"forward": 0, "backward": 40}. Raises ValueError for fewer than two events.
    """
    if len(nbytes) < 2:
        raise ValueError(f"a curve has at least two events, got {len(nbytes)}")
    fig, ax = canvas(3.1, title, xlabel, "memory")
    events, top = range(len(nbytes)), max(*nbytes, capacity[1] if capacity else 0)
    peak = max(events, key=lambda event: nbytes[event])
    ax.fill_between(events, nbytes, step="post", color=TINTS[0], linewidth=0, label="_area")
    ax.step(events, nbytes, where="post", color=BLUE, marker="", label="in use")
    ax.plot([peak], [nbytes[peak]], "o", color=VERMILLION, markersize=7, zorder=4, label="peak")
    side = "right" if peak > len(nbytes) / 2 else "left"
    words = f"peak {units.si(nbytes[peak], 'B')}"
    note(ax, words, (peak, nbytes[peak]), (-9 if side == "right" else 9, 6), ha=side, weight="bold", bbox=PLATE)
    if capacity:
        ax.axhline(capacity[1], color=BLACK, linewidth=1.2, label=capacity[0])
        note(ax, f"{capacity[0]}: {units.si(capacity[1], 'B')}", (0, capacity[1]), (2, 7), fontsize=8.5)
    for name, start in (phases or {}).items():
        ax.axvline(start, color=GREY, linewidth=0.8, linestyle=(0, (4, 3)), label="_phase")
        note(ax, name, (start, top * 1.22), (3, 0), fontsize=8.5)
    ax.yaxis.set_major_formatter(EngFormatter("B"))
    ax.set(xlim=(0, len(nbytes) - 1), ylim=(0, top * (1.3 if phases else 1.15)))
    at = [name for name, start in (phases or {}).items() if start <= peak]
    fits = f"; {'fits' if nbytes[peak] <= capacity[1] else 'does not fit'} into {capacity[0]}" if capacity else ""
    return fig, f"The {words} comes at event {peak} of {len(nbytes)}{f', in {at[-1]}' if at else ''}{fits}."


@drawn("Memory and times")
def memory_and_time(
    memory: Mapping[str, float], capacity: float, times: tuple[float, float], title: str
) -> tuple[Figure, str]:
    """What fits and what bounds: the memory by term against a device's capacity, and below the two times of a step.

    `memory` maps a term (six at most) to its bytes; `capacity` in bytes; `times` are the seconds of the arithmetic and
    of moving the bytes. Raises ValueError for more terms, and for times that are not above 0.
    """
    if len(memory) > len(TINTS):
        raise ValueError(f"memory has at most {len(TINTS)} terms, got {list(memory)}")
    fig = page(3.0)
    top, bottom = fig.subplots(2, 1, height_ratios=(1.35, 1))
    top.set_title(title)
    total, left = sum(memory.values()), 0.0
    for (name, size), tint, ink in zip(memory.items(), TINTS, INKS, strict=False):
        top.barh(0, size, left=left, height=0.5, label=name, color=tint, edgecolor=ink, linewidth=0.8)
        left += size
    verdict, bound = "fits" if total <= capacity else "does not fit", "arithmetic" if times[0] >= times[1] else "memory"
    ink = BLACK if total <= capacity else INKS[VERMILLION]
    note(top, f"{units.si(total, 'B')}: {verdict}", (total, 0), color=ink, weight="bold", bbox=PLATE)
    top.axvline(capacity, color=BLACK, linewidth=1.2, label="capacity")
    note(top, f"device: {units.si(capacity, 'B')}", (capacity, 0.6), (4, 0), fontsize=8.5)
    top.set(xlim=(0, 1.35 * max(total, capacity)), ylim=(-0.4, 0.85))
    top.xaxis.set_major_formatter(EngFormatter("B"))
    _rows(top, {"memory": total})
    _pairs(bottom, {"time of a step": times}, ("arithmetic", "memory"))
    handles = dict(zip(*reversed(top.get_legend_handles_labels()), strict=True))
    fig.legend([*handles.values(), *bottom.get_legend_handles_labels()[0]], [*handles, "arithmetic", "moving bytes"],
               loc="outside lower center", ncols=5, fontsize=8.5)  # fmt: skip
    return fig, f"{units.si(total, 'B')} of {units.si(capacity, 'B')}: {verdict}. The {bound} bounds the step."
