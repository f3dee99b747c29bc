"""Charts of any lesson: lines, bars, dots on a logarithmic axis, pairs with their ratio, timings, memory."""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter, MaxNLocator, NullLocator, ScalarFormatter

from helpers import units

from helpers.draw.drawing import (  # isort: skip
    BLACK, BLUE, DASHES, GREY, INKS, LOOKS, PLATE, TINTS, VERMILLION, Made, Place, Series, canvas, drawn, figure,
    label_points, legend, note, number, past_ends, rows,
)  # fmt: skip

Sizes = Mapping[str, float]
Limit = tuple[str, float] | None
Times = Mapping[str, tuple[float, float]]


@drawn("Line chart")
def lines(
    series: Series, title: str, xlabel: str, ylabel: str, log: str = "", marks: Mapping[str, Place] | None = None
) -> Made:
    """Lines with their names at the right end: `series` maps a name to its x and its y values, as many of both.

    `log` names the logarithmic axes, as in "xy"; `marks` maps a text to the point (x, y) that it stands beside. Short
    series carry markers.
    """
    fig, ax = canvas(3.1, title, xlabel, ylabel)
    for (name, (x, y)), (colour, marker, dash) in zip(series.items(), itertools.cycle(LOOKS)):
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
    if marks:
        label_points(ax, marks, label="_mark", weight="bold")
    return fig, ""


@drawn("Bars")
def bars(sizes: Sizes, title: str, xlabel: str, limit: Limit = None) -> Made:
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
        bar = ax.barh(row, min(size, far * 1.12), height=0.68, label=f"_{name}", **look)
        text, pad = (f"{size:.3g}", 5) if size <= far else (f"{size:.3g} ▸", -28)
        ax.bar_label(bar, [text], padding=pad, weight="bold", bbox=PLATE if size <= far else None)
    ax.set_xlim(0, far * 1.12)
    _rows(ax, sizes, [limit] if limit else [])
    return fig, _listed(sizes, xlabel)


@drawn("Dots")
def dots(values: Sizes, title: str, xlabel: str, limits: Sizes | None = None) -> Made:
    """A dot per row on a logarithmic axis, with its value; `limits` are vertical lines with a name each.

    Raises ValueError for no values and for values of 0 or less, which a logarithmic axis does not have.
    """
    limits = dict(limits or {})
    fig, ax = canvas((1.15 if limits else 0.85) + 0.32 * len(values), title, xlabel)
    _dots(ax, {name: [value] for name, value in values.items()}, ["_value"], number, limits)
    return fig, _listed(values, xlabel)


def _rows(ax: Axes, names: Sizes, limits: Sequence[tuple[str, float]]) -> None:
    """Name the rows, and draw the limits as vertical lines, named above the first row."""
    rows(ax, names, head=0.75 if limits else 0)
    for (name, value), (_, _, dash) in zip(limits, LOOKS, strict=False):
        ax.axvline(value, color=BLACK, linewidth=1.2, linestyle=dash, label=name, zorder=1.5)
        note(ax, name, (value, -0.95), (-5, 0), fontsize=8.5, ha="right", bbox=PLATE)


def _listed(values: Sizes, unit: str) -> str:
    return f"{', '.join(f'{name} {number(value)}' for name, value in values.items())} ({unit})."


@drawn("Stacked bars")
def stacked_bars(stacks: Mapping[str, Sizes], title: str, xlabel: str, limit: Limit = None) -> Made:
    """A bar per row, stacked from named parts (six at most) with their sizes, and the total at its end.

    A part too small for its number has it above, with a thin line. `limit` is a name and a place for a line. Raises
    ValueError for more than six parts and for negative sizes.
    """
    fig, ax = canvas((1.35 if limit else 1.1) + 0.55 * len(stacks), title, xlabel)
    totals = {name: sum(parts.values()) for name, parts in stacks.items()}
    far = max([*totals.values(), *([limit[1]] if limit else [])])
    _stack(ax, stacks)
    for index, part in enumerate(ax.containers):
        for bar in part:
            size, (middle, row) = bar.get_width(), bar.get_center()
            if size > far * (0.016 + 0.013 * len(f"{size:.3g}")):  # wide enough for its number
                ax.text(middle, row, f"{size:.3g}", ha="center", va="center", fontsize=8.5)
            elif size:
                tip = {"arrowstyle": "-", "linewidth": 0.6, "color": GREY, "shrinkA": 0, "shrinkB": 0}
                up = 7 + 10 * (index % 2)  # neighbours stand at two heights
                note(ax, f"{size:.2g}", (middle, row - 0.25), (0, up), fontsize=8, ha="center", arrowprops=tip)
    for row, total in enumerate(totals.values()):
        note(ax, f"{total:.4g}", (total, row), weight="bold", bbox=PLATE)
    ax.set_xlim(0, far * 1.1)
    if all(float(size).is_integer() for parts in stacks.values() for size in parts.values()):
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    legend(ax, fontsize=8.5)
    _rows(ax, stacks, [limit] if limit else [])
    return fig, f"In all {_listed(totals, xlabel)}"


def _stack(ax: Axes, stacks: Mapping[str, Sizes]) -> None:
    """The bars of each part, in one tint."""
    names = list(dict.fromkeys(name for parts in stacks.values() for name in parts))
    if len(names) > len(TINTS) or any(size < 0 for parts in stacks.values() for size in parts.values()):
        raise ValueError(f"stacked bars have at most {len(TINTS)} parts, of 0 or more each, got {names}")
    left = np.zeros(len(stacks))
    for name, tint, ink in zip(names, TINTS, INKS, strict=False):
        sizes = np.array([parts.get(name, 0.0) for parts in stacks.values()])
        look = {"color": tint, "edgecolor": ink, "linewidth": 0.8, "label": name}
        ax.barh(range(len(stacks)), sizes, height=0.5, left=left, **look)
        left = left + sizes


@drawn("Timing")
def runs(seconds: Sequence[float], title: str) -> Made:
    """Every single run in its order, and beside it how often each time came; a line at the median of all.

    Runs far above the rest stand as triangles at the edge of the axis.
    """
    unit, scale = ("s", 1) if max(seconds) >= 1 else ("ms", 1e3) if max(seconds) >= 1e-3 else ("µs", 1e6)
    times, order = np.asarray(seconds) * scale, np.arange(1, len(seconds) + 1)
    first, median, third = np.quantile(times, (0.25, 0.5, 0.75))
    low, high = times.min() * 0.97, min(times.max() * 1.03, max(9 * third - 8 * first, 1.2 * median))
    slow = times > high
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


def _dots(ax: Axes, names: Mapping[str, Sequence[float]], roles: Sequence[str], text: Callable[[float], str],
          limits: Sizes) -> None:  # fmt: skip
    """Dots on a logarithmic axis, each with its value in words; a gap with its factor joins the two of a row."""
    everything = [*itertools.chain(*names.values()), *limits.values()]
    if not names or min(everything) <= 0:
        raise ValueError(f"a logarithmic axis has only values above 0, got {dict(names) | dict(limits)}")
    low, high = min(everything), max(everything)
    room, sides = max(high / low, 10), (0.05, 0.12) if len(roles) == 1 else (0.2, 0.2)
    ax.set(xscale="log", xlim=(low / room ** sides[0], high * room ** sides[1]))
    for row, values in enumerate(names.values()):
        least, most = min(values), max(values)
        ax.plot([least, most], [row, row], color=GREY, linewidth=1.2, marker="", label="_gap", zorder=2)
        if math.log(most / least) > 0.22 * math.log(room):  # the gap has room for its factor
            middle = math.sqrt(least * most)
            ax.text(middle, row - 0.12, f"{number(most / least)}×", ha="center", fontsize=8.5)
        for role, value in zip(roles, values, strict=True):
            left = value < most or (len(values) > 1 and least == most and role == roles[0])
            look = {"ha": "right" if left else "left", "color": INKS[_ROLES[role][0]], "fontsize": 8.5, "bbox": PLATE}
            look |= {"weight": "bold" if value == most else "normal"}
            note(ax, text(value), (value, row), (-8 if left else 8, 0), **look)
    for role, values in zip(roles, zip(*names.values(), strict=True), strict=True):
        colour, marker, face = _ROLES[role]
        look = {"markerfacecolor": face, "markersize": 7.5, "markeredgewidth": 1.6, "zorder": 4, "label": role}
        ax.plot(values, range(len(names)), marker, color=colour, **look)
    _rows(ax, names, list(limits.items()))
    ax.grid(axis="y", visible=len(roles) == 1)


def _seconds(ax: Axes, times: Times, roles: Sequence[str]) -> None:
    _dots(ax, times, roles, lambda time: units.si(time, "s"), {})
    ax.xaxis.set_major_formatter(EngFormatter("s"))
    ax.xaxis.set_minor_locator(NullLocator())


@drawn("Dots and gaps")
def two_times(times: Times, title: str) -> Made:
    """The two times of each op on a logarithmic axis, joined by a gap with their ratio, the longer in bold.

    `times` maps a name to (FLOP / peak, bytes / bandwidth) in seconds. Raises ValueError for times that are not above
    0.
    """
    fig, ax = canvas(1.05 + 0.46 * len(times), title, "least time")
    _seconds(ax, times, ("arithmetic", "memory"))
    legend(ax)
    bound = {"arithmetic": [], "memory": []}
    for name, (compute, memory) in times.items():
        bound["arithmetic" if compute >= memory else "memory"].append(name)
    return fig, " ".join(f"The {kind} takes longer for {', '.join(names)}." for kind, names in bound.items() if names)


@drawn("Dots and gaps")
def predicted_and_measured(times: Times, title: str) -> Made:
    """Predicted time (open) and measured time (filled) of each row on a logarithmic axis, with measured / predicted.

    `times` maps a name to (predicted, measured) in seconds. Raises ValueError for times that are not above 0.
    """
    fig, ax = canvas(1.05 + 0.42 * len(times), title, "time")
    _seconds(ax, times, ("predicted", "measured"))
    legend(ax)
    ratios = {name: measured / predicted for name, (predicted, measured) in times.items()}
    look = {"xycoords": ("axes fraction", "data"), "weight": "bold", "fontsize": 8.5}
    for row, ratio in enumerate(ratios.values()):
        note(ax, f"ratio {ratio:.3g}", (1, row), (6, 0), **look)
    return fig, f"Measured / predicted: {', '.join(f'{name} {number(ratio)}' for name, ratio in ratios.items())}."


@drawn("Memory over time")
def memory_over_time(nbytes: Sequence[float], title: str, xlabel: str = "operation", *, capacity: Limit = None,
                     phases: Mapping[str, int] | None = None) -> Made:  # fmt: skip
    """Bytes in use after each event of a step, as a filled curve with its peak marked.

    `capacity` is the name and the bytes of a device, drawn as a line; `phases` maps a name to the index of the event
    with which it begins, such as {"forward": 0, "backward": 40}.
    """
    fig, ax = canvas(3.1, title, xlabel, "memory")
    events, top = range(len(nbytes)), max(*nbytes, capacity[1] if capacity else 0)
    peak = max(events, key=lambda event: nbytes[event])
    ax.fill_between(events, nbytes, step="post", color=TINTS[0], linewidth=0, label="_area")
    ax.step(events, nbytes, where="post", color=BLUE, marker="", label="in use")
    ax.plot([peak], [nbytes[peak]], "o", color=VERMILLION, markersize=7, zorder=4, label="peak")
    side, shift = ("right", -9) if peak > len(nbytes) / 2 else ("left", 9)
    words = f"peak {units.si(nbytes[peak], 'B')}"
    note(ax, words, (peak, nbytes[peak]), (shift, 6), ha=side, weight="bold", bbox=PLATE)
    fits = ""
    if capacity:
        ax.axhline(capacity[1], color=BLACK, linewidth=1.2, label=capacity[0])
        note(ax, f"{capacity[0]}: {units.si(capacity[1], 'B')}", (0, capacity[1]), (2, 7), fontsize=8.5)
        fits = f"; {'fits' if nbytes[peak] <= capacity[1] else 'does not fit'} into {capacity[0]}"
    during = ""
    for name, start in (phases or {}).items():
        ax.axvline(start, color=GREY, linewidth=0.8, linestyle=DASHES, label="_phase")
        note(ax, name, (start, top * 1.22), (3, 0), fontsize=8.5)
        during = f", in {name}" if start <= peak else during
    ax.yaxis.set_major_formatter(EngFormatter("B"))
    ax.set(xlim=(0, len(nbytes) - 1), ylim=(0, top * (1.3 if phases else 1.15)))
    return fig, f"The {words} comes at event {peak} of {len(nbytes)}{during}{fits}."


@drawn("Memory and times")
def memory_and_time(memory: Sizes, capacity: float, times: tuple[float, float], title: str) -> Made:
    """What fits and what bounds: the memory by term against a device's capacity, and below the two times of a step.

    `memory` maps a term (six at most) to its bytes; `capacity` in bytes; `times` are the seconds of the arithmetic and
    of moving the bytes. Raises ValueError for more terms, and for times that are not above 0.
    """
    fig, (top, bottom) = figure(height=3.0, nrows=2, height_ratios=(1.35, 1))
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
