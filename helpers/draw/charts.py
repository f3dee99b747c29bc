"""Charts of any lesson: lines, bars, dots on a logarithmic axis, pairs with their ratio, timings, memory."""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator, NullLocator, ScalarFormatter

from helpers import units

from helpers.draw.drawing import (  # isort: skip
    BLACK, BLUE, DASHES, GREY, INKS, LOOKS, PLATE, TINTS, VERMILLION, FreePlaces, canvas, drawn, figure, legend,
    note, number, past_ends, rows,
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
    if marks:
        free = FreePlaces(ax, marks.values())
        for text, at in marks.items():
            ax.plot(*at, "o", color=BLACK, markerfacecolor="white", markersize=7, zorder=4, label=text)
            free.label(text, at, label="_mark", weight="bold")
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
    far = max([size for size in sizes.values() if size <= 1.5 * least] + ([1.2 * least] if limit else []))
    for row, (name, size) in enumerate(sizes.items()):
        look = {"color": TINTS[1], "edgecolor": VERMILLION} if size > least else {"color": TINTS[0], "edgecolor": BLUE}
        ax.barh(row, min(size, far * 1.12), height=0.68, label=f"_{name}", **look)
        if size > far:
            note(ax, f"{size:.3g} ▸", (far * 1.1, row), (0, 0), ha="right", weight="bold")
        else:
            note(ax, f"{size:.3g}", (size, row), weight="bold", bbox=PLATE)
    ax.set_xlim(0, far * 1.12)
    _rows(ax, sizes, dict([limit] if limit else []))
    return fig, _listed(sizes, xlabel)


@drawn("Dots")
def dots(
    values: Mapping[str, float], title: str, xlabel: str, limits: Mapping[str, float] | None = None
) -> tuple[Figure, str]:
    """A dot per row on a logarithmic axis, with its value; `limits` are vertical lines with a name each.

    Raises ValueError for no values and for values of 0 or less, which a logarithmic axis does not have.
    """
    limits = dict(limits or {})
    fig, ax = canvas((1.15 if limits else 0.85) + 0.32 * len(values), title, xlabel)
    _dots(ax, {name: [value] for name, value in values.items()}, ["_value"], number, limits)
    return fig, _listed(values, xlabel)


def _rows(ax: Axes, names: Mapping[str, object], limits: Mapping[str, float]) -> None:
    """Name the rows, and draw the limits as vertical lines, named above the first row."""
    rows(ax, names, head=0.75 if limits else 0)
    for (name, value), (_, _, dash) in zip(limits.items(), LOOKS, strict=False):
        ax.axvline(value, color=BLACK, linewidth=1.2, linestyle=dash, label=name, zorder=1.5)
        note(ax, name, (value, -0.95), (-5, 0), fontsize=8.5, ha="right", bbox=PLATE)


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
    fig, ax = canvas((1.35 if limit else 1.1) + 0.55 * len(rows), title, xlabel)
    totals = {name: sum(row.values()) for name, row in rows.items()}
    far = max([*totals.values(), *([limit[1]] if limit else [])])
    for index, (starts, sizes) in enumerate(_stack(ax, rows)):
        for row, (start, size) in enumerate(zip(starts, sizes, strict=True)):
            if size > far * (0.016 + 0.013 * len(f"{size:.3g}")):  # wide enough for its number
                ax.text(start + size / 2, row, f"{size:.3g}", ha="center", va="center", fontsize=8.5)
            elif size:
                at, up = (start + size / 2, row - 0.25), 7 + 10 * (index % 2)  # neighbours stand at two heights
                tip = {"arrowstyle": "-", "linewidth": 0.6, "color": GREY, "shrinkA": 0, "shrinkB": 0}
                note(ax, f"{size:.2g}", at, (0, up), fontsize=8, ha="center", arrowprops=tip)
    for row, total in enumerate(totals.values()):
        note(ax, f"{total:.4g}", (total, row), weight="bold", bbox=PLATE)
    ax.set_xlim(0, far * 1.1)
    if all(float(size).is_integer() for row in rows.values() for size in row.values()):
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    legend(ax, fontsize=8.5)
    _rows(ax, rows, dict([limit] if limit else []))
    return fig, f"In all {_listed(totals, xlabel)}"


def _stack(ax: Axes, rows: Mapping[str, Mapping[str, float]]) -> list[tuple[list[float], list[float]]]:
    """Draw the bars of each part; gives where they start and how long they are."""
    parts = list(dict.fromkeys(part for row in rows.values() for part in row))
    if len(parts) > len(TINTS) or any(size < 0 for row in rows.values() for size in row.values()):
        raise ValueError(f"stacked bars have at most {len(TINTS)} parts, of 0 or more each, got {parts}")
    left, places = [0.0] * len(rows), []
    for part, tint, ink in zip(parts, TINTS, INKS, strict=False):
        sizes = [row.get(part, 0.0) for row in rows.values()]
        look = {"color": tint, "edgecolor": ink, "linewidth": 0.8}
        ax.barh(range(len(rows)), sizes, height=0.5, left=left, label=part, **look)
        places.append((left, sizes))
        left = [start + size for start, size in zip(left, sizes, strict=True)]
    return places


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
    ax.plot(order[~slow], times[~slow], "o", markersize=3.5, color=BLACK, label="one run")
    ax.plot(order[slow], np.full(slow.sum(), high), "^", markersize=6, color=VERMILLION, clip_on=False, label="_slow")
    side.hist(times[~slow], bins=np.linspace(low, high, 25), orientation="horizontal", color=TINTS[0], edgecolor=BLUE)
    for half in (ax, side):
        half.axhline(median, color=BLUE, linewidth=1.4, label="_median")
    side.tick_params(labelleft=False)
    side.set_xlabel("runs")
    ax.set_ylim(low, high)
    words = f"Median {number(median)} {unit}, the middle half from {number(first)} to {number(third)} {unit}"
    beyond = f"; {slow.sum()} of {len(times)} runs took more than {number(high)} {unit}" if slow.any() else ""
    return fig, f"{words}{beyond}."


_ROLES = {  # how the dots of a row look: colour, marker, face
    "_value": (BLUE, "o", BLUE),
    "arithmetic": (VERMILLION, "s", VERMILLION),
    "memory": (BLUE, "o", BLUE),
    "predicted": (BLACK, "o", "white"),
    "measured": (BLACK, "o", BLACK),
}


def _dots(
    ax: Axes,
    rows: Mapping[str, Sequence[float]],
    roles: Sequence[str],
    text: Callable[[float], str],
    limits: Mapping[str, float],
) -> None:
    """Dots on a logarithmic axis, each with its value in words; a gap with its factor joins the two of a row."""
    everything = [*itertools.chain(*rows.values()), *limits.values()]
    if not rows or min(everything) <= 0:
        raise ValueError(f"a logarithmic axis has only values above 0, got {dict(rows) | dict(limits)}")
    low, high = min(everything), max(everything)
    room = max(high / low, 10)
    left, right = (0.05, 0.12) if len(roles) == 1 else (0.2, 0.2)
    ax.set(xscale="log", xlim=(low / room**left, high * room**right))
    for row, values in enumerate(rows.values()):
        factor = max(values) / min(values)
        ax.plot(values, [row] * len(values), color=GREY, linewidth=1.2, marker="", label="_gap", zorder=2)
        if math.log(factor) > 0.22 * math.log(room):  # the gap has room for its factor
            ax.text(math.sqrt(math.prod(values)), row - 0.12, f"{number(factor)}×", ha="center", fontsize=8.5)
        for place, (role, value) in enumerate(zip(roles, values, strict=True)):
            first = len(values) > 1 and (value < max(values) or (factor == 1 and place == 0))
            look = {"ha": "right" if first else "left", "color": INKS[_ROLES[role][0]], "fontsize": 8.5, "bbox": PLATE}
            weight = "bold" if value == max(values) else "normal"
            note(ax, text(value), (value, row), (-8 if first else 8, 0), weight=weight, **look)
    for role, values in zip(roles, zip(*rows.values(), strict=True), strict=True):
        colour, marker, face = _ROLES[role]
        look = {"markerfacecolor": face, "markersize": 7.5, "markeredgewidth": 1.6, "zorder": 4, "label": role}
        ax.plot(values, range(len(rows)), marker, color=colour, **look)
    _rows(ax, rows, limits)
    ax.grid(axis="y", visible=len(roles) == 1)


def _times(rows: Mapping[str, tuple[float, float]], title: str, xlabel: str, roles: Sequence[str]) -> tuple:
    fig, ax = canvas(1.05 + 0.44 * len(rows), title, xlabel)
    _seconds(ax, rows, roles)
    legend(ax)
    return fig, ax


def _seconds(ax: Axes, rows: Mapping[str, tuple[float, float]], roles: Sequence[str]) -> None:
    _dots(ax, rows, roles, lambda time: units.si(time, "s"), {})
    ax.xaxis.set_major_formatter(EngFormatter("s"))
    ax.xaxis.set_minor_locator(NullLocator())


@drawn("Dots and gaps")
def two_times(rows: Mapping[str, tuple[float, float]], title: str) -> tuple[Figure, str]:
    """The two times of each op on a logarithmic axis, joined by a gap with their ratio, the longer in bold.

    `rows` maps a name to (FLOP / peak, bytes / bandwidth) in seconds. Raises ValueError for times that are not above 0.
    """
    fig, _ = _times(rows, title, "least time", ("arithmetic", "memory"))
    bound = {"arithmetic": [], "memory": []}
    for name, (compute, memory) in rows.items():
        bound["arithmetic" if compute >= memory else "memory"].append(name)
    return fig, " ".join(f"The {kind} takes longer for {', '.join(names)}." for kind, names in bound.items() if names)


@drawn("Dots and gaps")
def predicted_and_measured(rows: Mapping[str, tuple[float, float]], title: str) -> tuple[Figure, str]:
    """Predicted time (open) and measured time (filled) of each row on a logarithmic axis, with measured / predicted.

    `rows` maps a name to (predicted, measured) in seconds. Raises ValueError for times that are not above 0.
    """
    fig, ax = _times(rows, title, "time", ("predicted", "measured"))
    ratios = {name: measured / predicted for name, (predicted, measured) in rows.items()}
    look = {"xycoords": ("axes fraction", "data"), "weight": "bold", "fontsize": 8.5}
    for row, ratio in enumerate(ratios.values()):
        note(ax, f"ratio {ratio:.3g}", (1, row), (6, 0), **look)
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
    late, words = peak > len(nbytes) / 2, f"peak {units.si(nbytes[peak], 'B')}"
    look = {"ha": "right" if late else "left", "weight": "bold", "bbox": PLATE}
    note(ax, words, (peak, nbytes[peak]), (-9 if late else 9, 6), **look)
    if capacity:
        ax.axhline(capacity[1], color=BLACK, linewidth=1.2, label=capacity[0])
        note(ax, f"{capacity[0]}: {units.si(capacity[1], 'B')}", (0, capacity[1]), (2, 7), fontsize=8.5)
    for name, start in (phases or {}).items():
        ax.axvline(start, color=GREY, linewidth=0.8, linestyle=DASHES, label="_phase")
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
    fig, whole = figure(height=3.0)
    whole.remove()
    top, bottom = fig.subplots(2, 1, height_ratios=(1.35, 1))
    top.set_title(title)
    _stack(top, {"memory": memory})
    total = sum(memory.values())
    verdict, bound = "fits" if total <= capacity else "does not fit", "arithmetic" if times[0] >= times[1] else "memory"
    ink = BLACK if total <= capacity else INKS[VERMILLION]
    note(top, f"{units.si(total, 'B')}: {verdict}", (total, 0), color=ink, weight="bold", bbox=PLATE)
    top.axvline(capacity, color=BLACK, linewidth=1.2, label="capacity")
    note(top, f"device: {units.si(capacity, 'B')}", (capacity, -0.6), (4, 0), fontsize=8.5)
    rows(top, ["memory"], head=0.25, foot=0.2)
    top.set_xlim(0, 1.35 * max(total, capacity))
    top.xaxis.set_major_formatter(EngFormatter("B"))
    _seconds(bottom, {"time of a step": times}, ("arithmetic", "memory"))
    handles = [*top.containers, *bottom.get_legend_handles_labels()[0]]
    fig.legend(handles, [*memory, "arithmetic", "moving bytes"], loc="outside lower center", ncols=4, fontsize=8.5)
    return fig, f"{units.si(total, 'B')} of {units.si(capacity, 'B')}: {verdict}. The {bound} bounds the step."
