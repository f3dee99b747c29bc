"""Charts of any lesson: lines, bars, dots on a logarithmic axis, memory over a step."""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from matplotlib.ticker import EngFormatter, MaxNLocator

from helpers import units
from helpers.counting import Trace
from helpers.draw.drawing import Made, Series, Sizes, Spot, canvas, drawn, number
from helpers.draw.labels import arrow, label_points, legend, log_ticks, note, past_ends, rows
from helpers.draw.palette import (
    BLACK,
    BLUE,
    DASHES,
    GREEN,
    GREY,
    GROUNDS,
    INKS,
    LINES,
    PLATE,
    PURPLE,
    TINTS,
    VERMILLION,
)

_EDGES = dict(zip(TINTS, INKS, strict=True))  # of bars, by their tint
_PART_TINTS = (*TINTS[2:4], TINTS[5], TINTS[4], *TINTS[:2])  # blue and vermillion, which have a meaning, last


@drawn("Line chart")
def lines(
    series: Series,
    title: str,
    xlabel: str,
    ylabel: str,
    log: str = "",
    marks: Mapping[str, Spot] | None = None,
    levels: Sizes | None = None,
) -> Made:
    """Lines with their names at the right end: `series` maps a name to its x and its y values, as many of both.

    `log` names the logarithmic axes, as in "xy"; `marks` maps a text to the point (x, y) that it stands beside,
    with a dotted line down to the axis; `levels` are thin horizontal lines with a name each, below the line where
    that begins with a new line.
    """
    fig, ax = canvas(3.1, title, xlabel, ylabel)
    ax.set(xscale="log" if "x" in log else "linear", yscale="log" if "y" in log else "linear")
    widths = itertools.chain((2.6, 2.0), itertools.repeat(1.4))  # so that a line is seen that lies under another
    for (name, (x, y)), style, width in zip(series.items(), itertools.cycle(LINES), widths, strict=False):
        few = 2 < len(x) <= 12
        ax.plot(x, y, label=name, clip_on=False, linewidth=width, **style | {"marker": style["marker"] if few else ""})
    if levels:  # which shall not run through the name of a line, nor their names through the title
        ax.margins(y=0.12)
        ax.set_xlim(right=max(x[-1] for x, _ in series.values()))
        _draw_levels(ax, levels)
    _settle_axes(ax, series, log)
    past_ends(ax)
    if marks:
        _draw_marks(ax, marks)
    found = []
    for name, (_, y) in series.items():
        ends = dict.fromkeys([number(y[0]), number(y[-1])])
        found.append(f"{name}: {' to '.join(ends)}")
    return Made(fig, "; ".join(found))


def _settle_axes(ax: Axes, series: Series, log: str) -> None:
    """The ticks of a logarithmic axis; any other from 0, where nothing is negative."""
    values = {"x": [x for x, _ in series.values()], "y": [y for _, y in series.values()]}
    for name, axis in (("x", ax.xaxis), ("y", ax.yaxis)):
        if name in log:
            log_ticks(axis, _short_tick)
        elif min(map(min, values[name])) >= 0:
            ax.autoscale_view()
            ax.set(**{f"{name}lim": (0, None)})


def _short_tick(value: float, _: int) -> str:
    return f"{value:g}" if value < 1e4 else units.si(value, "").replace(" ", "")


def _draw_marks(ax: Axes, marks: Mapping[str, Spot]) -> None:
    """Open dots with a text, and a dotted line from each down to the axis."""
    for text, at in marks.items():
        ax.plot(*at, "o", color=BLACK, markerfacecolor="white", markersize=7, zorder=4, clip_on=False, label=text)
    ax.autoscale(False)
    foot = ax.get_ylim()[0]
    for x, y in marks.values():
        ax.plot([x, x], [foot, y], ":", color=GREY, linewidth=1.2, marker="", zorder=1)
    label_points(ax, marks, said=False, weight="bold")


def _draw_levels(ax: Axes, levels: Sizes) -> None:
    """Thin horizontal lines, named at the left end: the first line of a name above it, the second below."""
    for name, height in levels.items():
        ax.axhline(height, color=GREY, linewidth=1.2, marker="", zorder=1.5)
        above, _, below = name.partition("\n")
        for text, shift in ((above, 7), (below, -8)):
            if text:
                note(ax, text, (0, height), (5, shift), xycoords=ax.get_yaxis_transform())


def _draw_limits(ax: Axes, limits: Sizes) -> None:
    """Vertical lines with their names on top, below the title: of several, left of the first and right of the last."""
    sides = {0: "right", len(limits) - 1: "left"} if len(limits) > 1 else {}
    for place, ((name, value), style) in enumerate(zip(limits.items(), LINES, strict=False)):
        ax.axvline(value, color=BLACK, linewidth=1.2, linestyle=style["linestyle"], marker="", label=name, zorder=1.5)
        side = sides.get(place, "center")
        note(ax, name, (value, 1), (0, 2), xycoords=ax.get_xaxis_transform(), ha=side, va="bottom")
    if limits:
        ax.set_title(ax.get_title(loc="left"), pad=18)


@drawn("Bars")
def bars(
    sizes: Mapping[str, float | Sizes],
    title: str,
    xlabel: str,
    limit: tuple[str, float] | None = None,
    ends: Mapping[str, str] | None = None,
    ghost: str | None = None,
    tints: Mapping[str, str] | None = None,
) -> Made:
    """A bar per row from 0, its size beside it: one number, or the sizes of its named parts (six at most), stacked.

    Several parts are named in a legend. Each has its size in it, where there is room. `limit` is a name and a place for
    a line, `ends` a text for a row in place of its size, `ghost` a part that is not there, which has a dashed outline,
    `tints` the tint of a part. A row named "" is a gap. Raises ValueError for more parts, for negative sizes and for no
    bars.
    """
    stacks = {row: size if isinstance(size, Mapping) else {"": size} for row, size in sizes.items()}
    styles = _part_styles(stacks, tints or {}, ghost)
    several = len(styles) > 1
    head, foot = 0.25 if limit else 0, 0.25 if several else 0
    fig, ax = canvas(0.85 + head + foot + 0.4 * len(stacks), title, xlabel)
    inside = _stack(ax, stacks, np.zeros(len(stacks)), styles)
    totals = {row: sum(size for part, size in stack.items() if part != ghost) for row, stack in stacks.items()}
    lengths = [sum(stack.values()) for stack in stacks.values()]
    texts = {row: number(total) if row else "" for row, total in totals.items()} | dict(ends or {})
    rows(ax, stacks)
    _write_ends(ax, lengths, list(texts.values()))
    ax.set_xlim(0, 1.1 * max(*lengths, limit[1] if limit else 0))
    ax.xaxis.set_major_locator(MaxNLocator(steps=[1, 2, 5, 10]))
    if several:
        legend(fig)
    _draw_limits(ax, dict([limit]) if limit else {})
    _hide_empty(ax)
    fig.draw_without_rendering()  # settles how wide the bars are
    for text, bar in inside:
        if text.get_window_extent().width > bar.get_window_extent().width:
            text.remove()
    return Made(fig, _totals_in_words(totals, xlabel))


@drawn("Bars")
def waterfall(sizes: Mapping[str, Sizes], title: str, xlabel: str) -> Made:
    """Bars that begin where the one before ends: a row has one part, whose size is added to those above."""
    styles = _part_styles(sizes, {}, None)
    fig, ax = canvas(0.85 + 0.4 * len(sizes), title, xlabel)
    steps = [sum(parts.values()) for parts in sizes.values()]
    ends = list(itertools.accumulate(steps))
    starts = [0, *ends[:-1]]
    for text, _ in _stack(ax, sizes, np.array(starts, dtype=float), styles):
        text.remove()
    for row in range(1, len(sizes)):
        note(ax, f"+{number(steps[row])}", (starts[row], row), (-4, 0), ha="right")
        ax.vlines(starts[row], row - 0.7, row - 0.3, GREY, linewidth=1.2)
    _hide_empty(ax)
    rows(ax, sizes)
    _write_ends(ax, ends, [number(end) for end in ends])
    ax.set_xlim(0, 1.1 * ends[-1])
    ax.xaxis.set_major_locator(MaxNLocator(steps=[1, 2, 5, 10]))
    return Made(fig, _totals_in_words(dict(zip(sizes, ends, strict=True)), xlabel))


def _part_styles(stacks: Mapping[str, Sizes], tints: Mapping[str, str], ghost: str | None) -> dict[str, dict[str, Any]]:
    """The style of each part; refuses what bars cannot show."""
    parts = dict.fromkeys(itertools.chain.from_iterable(stacks.values()))
    smallest = min((size for stack in stacks.values() for size in stack.values()), default=0)
    if not 1 <= len(parts) <= len(TINTS) or smallest < 0:
        raise ValueError(f"bars have 1 to {len(TINTS)} parts, of 0 or more each, got {dict(stacks)}")
    styles = {}
    for part, usual in zip(parts, _PART_TINTS, strict=False):
        tint = tints.get(part, usual)
        styles[part] = {"facecolor": tint, "edgecolor": _EDGES[tint]}
    if ghost is not None and ghost in styles:
        styles[ghost] |= {"facecolor": "white", "linestyle": "--"}
    return styles


def _stack(
    ax: Axes, stacks: Mapping[str, Sizes], starts: np.ndarray, styles: Mapping[str, Mapping[str, Any]]
) -> list[tuple[Text, Rectangle]]:
    """A bar per row and part, each from the end of the one before; gives the sizes written in them, and the bars."""
    inside: list[tuple[Text, Rectangle]] = []
    for part, style in styles.items():
        widths = np.array([stack.get(part, 0.0) for stack in stacks.values()])
        bars = ax.barh(range(len(stacks)), widths, 0.6, starts, label=part or "_", linewidth=1.2, **style)
        parted = [number(width) if len(stack) > 1 else "" for width, stack in zip(widths, stacks.values(), strict=True)]
        plate = {"facecolor": style["facecolor"], "edgecolor": "none", "pad": 0.8}  # over a limit's line
        inside += zip(ax.bar_label(bars, parted, label_type="center", bbox=plate), bars, strict=True)
        starts = starts + widths
    return inside


def _hide_empty(ax: Axes) -> None:
    """Hide bars of size 0, of which the edges would be left; after a legend, which copies the first bar of a part."""
    for bar in ax.patches:
        bar.set_visible(bar.get_window_extent().width > 0)


def _write_ends(ax: Axes, ends: Sequence[float], texts: Sequence[str]) -> None:
    for row, (end, text) in enumerate(zip(ends, texts, strict=True)):
        if text:
            note(ax, text, (end, row), weight="bold", bbox=PLATE)


def _totals_in_words(totals: Sizes, xlabel: str) -> str:
    texts = [f"{' '.join(row.split())} {number(total)}" for row, total in totals.items() if row]
    return f"{', '.join(texts)} ({xlabel.splitlines()[0]})."


@drawn("Dots")
def dots(
    values: Mapping[str, float | Spot],
    title: str,
    xlabel: str,
    roles: Sequence[str] = (),
    limits: Sizes | None = None,
    quiet: Sequence[str] = (),
    unit: str = "s",
) -> Made:
    """A dot per row on a logarithmic axis, grey in `quiet` rows, its value at the right; `limits` are named lines.

    With `roles`, as ("arithmetic", "memory"), a row has two values, joined by a line, each written beside its mark if
    they have a unit, and at the right stands the second over the first. Raises ValueError for values up to 0.
    """
    table = {row: value if isinstance(value, tuple) else (value,) for row, value in values.items()}
    _refuse_log(table, limits or {})
    head = 0.3 if limits or roles else 0
    fig, ax = canvas(0.85 + head + 0.32 * len(table), title, xlabel)
    ax.set_xscale("log")
    if roles:
        ends = _draw_pairs(ax, table, roles, quiet, unit)
        note(
            ax,
            f"{roles[1]} /\n{roles[0]}",
            (1, 1),
            (8, 2),
            said=False,
            xycoords="axes fraction",
            va="bottom",
            fontsize=8,
        )
        legend(fig)
    else:
        ends = {row: pair[0] for row, pair in table.items()}
        _draw_column(ax, ends, quiet, "_value", {"color": PURPLE, "marker": "o", "markersize": 8})
    rows(ax, table)
    ax.grid(axis="y", visible=not roles)
    for row, value in enumerate(ends.values()):
        text = f"{value:.2f}" if 0.1 < value < 10 else number(value)
        note(ax, text, (1, row), (8, 0), said=False, xycoords=ax.get_yaxis_transform(), weight="bold")
    _draw_limits(ax, limits or {})
    ax.margins(x=0.2 if roles else 0.06)
    ax.autoscale_view()
    log_ticks(ax.xaxis, EngFormatter(unit) if roles and unit else "{x:g}")
    meaning = f"{roles[1].capitalize()} / {roles[0]}: " if roles else ""
    numbers = ", ".join(f"{row} {number(value)}" for row, value in ends.items())
    return Made(fig, f"{meaning}{numbers}.")


def _refuse_log(table: Mapping[str, Sequence[float]], limits: Sizes) -> None:
    if not table or min(min(map(min, table.values())), *limits.values(), math.inf) <= 0:
        raise ValueError(f"a logarithmic axis has only values above 0, got {dict(table)}, {dict(limits)}")


def _draw_column(ax: Axes, column: Sizes, quiet: Sequence[str], label: str, style: dict[str, Any]) -> None:
    """A mark per row, grey in quiet rows."""
    places = {row: place for place, row in enumerate(column)}
    loud = [row for row in column if row not in quiet]
    silent = [row for row in column if row in quiet]
    marks: dict[str, Any] = {"linestyle": "", "zorder": 4, **style}
    ax.plot([column[row] for row in loud], [places[row] for row in loud], label=label, **marks)
    ax.plot([column[row] for row in silent], [places[row] for row in silent], **marks | {"color": GREY})


def _draw_pairs(
    ax: Axes, table: Mapping[str, Sequence[float]], roles: Sequence[str], quiet: Sequence[str], unit: str
) -> dict[str, float]:
    """Two marks per row, joined, with their values; the second, smaller, can be seen in the first. Gives the ratios."""
    computes = VERMILLION if "arithmetic" in roles else GREEN
    styles = ({"color": computes, "marker": "s", "markersize": 9}, {"color": BLUE, "marker": "o", "markersize": 6})
    for place, (role, style) in enumerate(zip(roles, styles, strict=True)):
        _draw_column(ax, {row: pair[place] for row, pair in table.items()}, quiet, role, style)
    for row, pair in enumerate(table.values()):
        ax.plot(pair, [row, row], color=GREY, linewidth=1.2, marker="", zorder=2)
        if unit:
            (low, low_ink), (high, high_ink) = sorted(zip(pair, (computes, BLUE), strict=True))
            note(ax, units.si(low, unit), (low, row), (-8, 0), ha="right", color=INKS[low_ink], bbox=PLATE)
            note(ax, units.si(high, unit), (high, row), (8, 0), ha="left", color=INKS[high_ink], bbox=PLATE)
    return {row: second / first for row, (first, second) in table.items()}


@drawn("Memory over time")
def memory_over_time(traces: Mapping[str, Trace], title: str, levels: Sizes | None = None, backward: int = -1) -> Made:
    """Bytes alive in a step, a filled curve for each way to run it, named at its peak, against the FLOPs so far.

    `levels` are thin horizontal lines with a name each. `backward` is the first op of the backward pass of the first;
    an arrow leads from the end of the first curve to that of the last.
    """
    fig, ax = canvas(3.1, title, "FLOPs so far", "memory")
    runs = list(traces.values())
    top = max(trace.peak for trace in runs)
    found: list[str] = []
    for (name, trace), tint in zip(traces.items(), _PART_TINTS, strict=False):
        lead = bool(found)  # above the curve before
        found.append(_draw_memory(ax, trace.flops, trace.memory, name, _EDGES[tint], tint, lead))
    first, last = runs[0].flops[-1], runs[-1].flops[-1]
    _memory_axes(ax, (0, 1.04 * max(first, last)), top, runs[0].flops[backward])
    ax.xaxis.set_major_formatter(EngFormatter("FLOP"))
    if last != first:
        ax.vlines([first, last], 0, 0.9 * top, GREY, linewidth=1, linestyle=":")
        arrow(ax, (first, 0.85 * top), (last, 0.85 * top), BLACK)
        note(ax, f"{last / first - 1:+.0%} FLOPs", ((first + last) / 2, 0.92 * top), (0, 0), ha="center")
    _draw_levels(ax, levels or {})
    return Made(fig, f"{'; '.join(found)}.")


@drawn("Memory over time")
def memory_rises(
    trace: Trace,
    title: str,
    rise: float,
    alive: Sequence[Sequence[str]] = (),
    levels: Sizes | None = None,
    backward: int = -1,
) -> Made:
    """Bytes alive around the ops of a step that add at least `rise` bytes, each op equally wide.

    `alive` names, from the bottom up, the tensors of that size that are there after each op that makes or frees one:
    each is a band with its name. The rest is as in `memory_over_time`. Raises ValueError if no op adds as much.
    """
    memory = trace.memory
    steps = {op: memory[op] - memory[op - 1] for op in range(1, len(memory))}
    rises = [op for op, step in steps.items() if step >= rise]
    if not rises:
        raise ValueError(f"no op adds {units.si(rise, 'B')}: give a smaller rise")
    fig, ax = canvas(3.1, title, f"operations so far, of {len(memory)} (where memory rises most)", "memory")
    ops = range(len(memory))
    found = _draw_memory(ax, ops, memory, "", BLACK, GROUNDS[3])
    _memory_axes(ax, (max(rises[0] - 5, 0), min(rises[-1] + 9, ops[-1])), trace.peak, ops[backward])
    turns = [op for op, step in steps.items() if abs(step) > 0.99 * rise]
    _draw_bands(ax, _bands(memory, rise, turns, alive))
    _draw_levels(ax, levels or {})
    return Made(fig, f"{found}.")


def _bands(
    memory: Sequence[float], rise: float, turns: Sequence[int], alive: Sequence[Sequence[str]]
) -> dict[str, list[Rectangle]]:
    """For each name the rectangles, `rise` bytes high, in which that tensor lies; as wide as it stays at one height."""
    found: dict[str, list[Rectangle]] = {}
    for (start, end), names in zip(itertools.pairwise([*turns, len(memory) - 1]), alive, strict=False):
        for place, name in enumerate(names):
            bottom = memory[start] - (len(names) - place) * rise
            parts = found.setdefault(name, [])
            if parts and math.isclose(parts[-1].get_y(), bottom, abs_tol=0.1 * rise):
                parts[-1].set_width(end - parts[-1].get_x())
            else:
                parts.append(Rectangle((start, bottom), end - start, rise, linewidth=0.8))
    return found


def _draw_bands(ax: Axes, bands: Mapping[str, Sequence[Rectangle]]) -> None:
    """Each tensor in a tint of its own, with its name where it is first about as wide as anywhere."""
    for (name, parts), tint in zip(bands.items(), _PART_TINTS, strict=False):
        for part in parts:
            part.set(facecolor=tint, edgecolor=_EDGES[tint], zorder=1.2)
            ax.add_patch(part)
        widest = max(map(Rectangle.get_width, parts))
        named = next(part for part in parts if part.get_width() > 0.7 * widest)
        plate = {"facecolor": tint, "edgecolor": "none", "pad": 0.8}  # over a level
        x, y = named.get_center()
        note(ax, name, (x, y), (0, 0), ha="center", color=BLACK, fontsize=9, bbox=plate)


def _draw_memory(
    ax: Axes, x: Sequence[float], memory: Sequence[float], name: str, color: str, tint: str, lead: bool = False
) -> str:
    """A filled curve with its peak, and a text there, further above with a lead; gives the text."""
    peak = max(memory)
    at = x[memory.index(peak)], peak
    ax.fill_between(x, memory, step="post", color=tint, linewidth=0)
    ax.step(x, memory, where="post", color=color, linewidth=1.5, marker="", label=name or "memory")
    ax.plot(*at, "o", color=INKS[color], markersize=7, zorder=4, label="peak")
    text = f"{name}: peak {units.si(peak, 'B')}".removeprefix(": ")
    style: dict[str, Any] = {"color": INKS[color], "weight": "bold", "bbox": PLATE}
    if lead:
        style["arrowprops"] = {"arrowstyle": "-", "linewidth": 0.6, "color": GREY, "shrinkA": 0, "shrinkB": 4}
    height = 38 if lead else 10
    if at[0] > 0.7 * x[-1]:
        note(ax, text, at, (-9, height), ha="right", **style)
    else:
        note(ax, text, at, (9, height), ha="left", **style)
    return text


def _memory_axes(ax: Axes, ends: Spot, top: float, turn: float) -> None:
    """The limits of the axes, with room above the peak, and a line where the backward pass begins."""
    ax.yaxis.set_major_formatter(EngFormatter("B"))
    ax.set(xlim=ends, ylim=(0, top * 1.3))
    ax.axvline(turn, color=GREY, linewidth=0.8, linestyle=DASHES, marker="")
    note(ax, "forward", (turn, top * 1.22), (-5, 0), ha="right")
    note(ax, "backward", (turn, top * 1.22), (5, 0), ha="left")
