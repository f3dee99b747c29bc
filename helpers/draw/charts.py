"""Charts of any lesson: lines, bars, dots on a logarithmic axis, memory over a step."""

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter, MaxNLocator

from helpers import units
from helpers.counting import Trace

from helpers.draw.drawing import (  # isort: skip
    BLACK, BLUE, DASHES, GREEN, GREY, INKS, LOOKS, PLATE, PURPLE, TINTS, VERMILLION, Drawing, Made, Place, Series,
    arrow, canvas, drawn, label_points, legend, log_ticks, note, number, past_ends, rows,
)  # fmt: skip

Sizes = Mapping[str, float]


@drawn("Line chart")
def lines(series: Series, title: str, xlabel: str, ylabel: str, log: str = "",
          marks: Mapping[str, Place] | None = None, levels: Sizes | None = None) -> Made:  # fmt: skip
    """Lines with their names at the right end: `series` maps a name to its x and its y values, as many of both.

    `log` names the logarithmic axes, as in "xy"; `marks` maps a text to the point (x, y) that it stands beside,
    with a dotted line down to the axis; `levels` are thin horizontal lines with a name each.
    """
    fig, ax = canvas(3.1, title, xlabel, ylabel)
    widths = itertools.chain((2.6, 2.0), itertools.repeat(1.4))  # so that a line is seen that lies under another
    for (name, (x, y)), (colour, marker, dash), width in zip(series.items(), itertools.cycle(LOOKS), widths):
        look = {"color": colour, "linestyle": dash, "linewidth": width, "marker": marker if 2 < len(x) <= 12 else ""}
        ax.plot(x, y, label=name, clip_on=False, **look)
    ax.set(xscale="log" if "x" in log else "linear", yscale="log" if "y" in log else "linear")
    for axis in [getattr(ax, f"{name}axis") for name in log]:
        log_ticks(axis, lambda x, _: f"{x:g}" if x < 1e4 else units.si(x, "").replace(" ", ""))
    if levels:  # which shall not run through the name of a line, nor their names through the title
        ax.margins(y=0.12)
        ax.set_xlim(right=max(x[-1] for x, _ in series.values()))
    _levels(ax, levels or {})
    for axis, values in zip("xy", zip(*series.values(), strict=True), strict=True):
        if axis not in log and log != "y" and min(map(min, values)) >= 0:
            ax.autoscale_view()
            ax.set(**{f"{axis}lim": (0, None)})
    past_ends(ax)
    for text, at in (marks or {}).items():
        ax.plot(*at, "o", color=BLACK, markerfacecolor="white", markersize=7, zorder=4, clip_on=False, label=text)
    if marks:
        ax.autoscale(False)
        for x, y in marks.values():
            ax.plot([x, x], [ax.get_ylim()[0], y], ":", color=GREY, linewidth=1.2, marker="", label="_drop", zorder=1)
        label_points(ax, marks, label="_mark", weight="bold")
    ends = {name: [number(values[0]), number(values[-1])] for name, (_, values) in series.items()}
    return fig, "; ".join(f"{name}: {' to '.join(dict.fromkeys(pair))}" for name, pair in ends.items())


@drawn("Bars")
def bars(sizes: Mapping[str, float | Sizes], title: str, xlabel: str, limit: tuple[str, float] | None = None,
         ends: Mapping[str, str] | None = None, ghost: str = "") -> Made:  # fmt: skip
    """A bar per row from 0, its size beside it: one number, or the sizes of its named parts (six at most), stacked.

    A part named "" is left empty, as in a waterfall; one too small for its number has none, or there one beside it.
    Parts that occur in several rows are named where they are widest, or in a legend if one has no room, but not in a
    waterfall. `limit` is a name and a place for a line, `ends` a text for a row in place of its size, `ghost` a part
    that is not there, which has a dashed outline. A row named "" is a gap. Raises ValueError for more parts, for
    negative sizes and for no bars.
    """
    stacks = {row: size if isinstance(size, Mapping) else {"_size": size} for row, size in sizes.items()}
    parts = sorted(dict.fromkeys(part for stack in stacks.values() for part in stack), key=bool)  # the empty one first
    looks = [("none", "none")] * ("" in parts) + [*zip(TINTS, INKS, strict=False)]
    if not 1 <= len(parts) <= len(TINTS) or min(size for stack in stacks.values() for size in stack.values()) < 0:
        raise ValueError(f"bars have 1 to {len(TINTS)} parts, of 0 or more each, got {dict(sizes)}")
    totals = {row: sum(stack.values()) for row, stack in stacks.items()}
    far, starts = max(*totals.values(), limit[1] if limit else 0), np.zeros(len(stacks))
    table = {part: np.array([stack.get(part, 0.0) for stack in stacks.values()]) for part in parts}
    several = len(parts) > 1 and "" not in table and any(part and sum(widths > 0) > 1 for part, widths in table.items())
    named = several and all(max(widths) > far * (0.03 + 0.014 * len(part)) for part, widths in table.items())
    room = 0.85 + 0.25 * (bool(limit) + (several and not named)) + 0.16 * (title + xlabel).count("\n")
    fig, ax = canvas(room + (0.48 if named else 0.4) * len(stacks), title, xlabel)
    for (part, widths), (tint, ink) in zip(table.items(), looks, strict=False):
        look = {"color": tint, "edgecolor": ink, "label": part or "_room"}
        if part and part == ghost:
            tint, look = "white", look | {"color": "white", "linestyle": "--"}
        stacked = ax.barh(range(len(stacks)), widths, 0.68 if named else 0.6, starts, **look)
        parted = [len(row) > 1 and not ("" in row and row[""] == 0) for row in stacks.values()]
        texts = [number(w) if part and more else "" for w, more in zip(widths, parted, strict=True)]
        shown = [*np.where(widths > [far * (0.016 + 0.013 * len(text)) for text in texts], texts, "")]
        if named:
            shown[widths.argmax()] = f"{part}\n{texts[widths.argmax()]}".strip()
        ground = {"facecolor": tint, "edgecolor": "none", "pad": 0.8}  # over a limit's line
        ax.bar_label(stacked, shown, label_type="center", linespacing=1.0, bbox=ground)
        for place, text in enumerate(texts if "" in table and part else ()):  # in a waterfall there is room at the left
            if text and not shown[place] and widths[place] > far / 100:
                note(ax, text, (starts[place], place), (-4, 0), ha="right")
        starts += widths
    there = {row: total - (stacks[row].get(ghost, 0) if ghost else 0) for row, total in totals.items() if row}
    for place, (row, total) in enumerate(totals.items()):
        if row and (text := (ends or {}).get(row, number(there[row]))):
            note(ax, text, (total, place), weight="bold", bbox=PLATE)
    for place, before in enumerate([*totals.values()][:-1] if "" in table else (), 1):
        if table[""][place] == before:  # it goes on where the bar before ended
            ax.vlines(before, place - 0.7, place - 0.3, GREY, linewidth=1.2)
    ax.set_xlim(0, far * (1.03 / (1 - 0.012 * max(map(len, ends.values()))) if ends else 1.1))  # room for the texts
    ax.xaxis.set_major_locator(MaxNLocator(steps=[1, 2, 5, 10]))
    if several and not named:
        legend(ax)
    for patch in ax.patches:  # after the legend, which copies the first of them
        patch.set_linewidth(1.2 * (patch.get_width() > 0))  # of a part of size 0 an edge would be left
    _rows(ax, sizes, dict([limit] if limit else []))
    told = (f"{' '.join(row.split())} {number(total)}" for row, total in there.items())
    return fig, f"{', '.join(told)} ({xlabel.splitlines()[0]})."


def _levels(ax: Axes, levels: Sizes, low: float = 0) -> None:
    """Thin horizontal lines, named at the left end; those up to `low` below it.

    The second line of a name stands below in any case.
    """
    for name, height in levels.items():
        ax.axhline(height, color=GREY, linewidth=1.2, marker="", zorder=1.5, label="_level")
        for text, shift in zip(name.split("\n"), (7 if height > low else -8, -8), strict=False):
            note(ax, text, (0, height), (5, shift), xycoords=ax.get_yaxis_transform())


def _rows(ax: Axes, names: Sequence[str], limits: Sizes) -> None:
    """Name the rows, and draw the limits as vertical lines, named above the first row."""
    rows(ax, names, head=0.5 if limits else 0)
    for place, ((name, value), (_, _, dash)) in enumerate(zip(limits.items(), LOOKS, strict=False)):
        at = ax.transAxes.inverted().transform(ax.transData.transform((value, 0)))[0]
        left = at > 0.6 if len(limits) == 1 else at > 0.25 and place == 0  # so that two names do not meet
        ax.axvline(value, color=BLACK, linewidth=1.2, linestyle=dash, label=name, zorder=1.5)
        note(ax, name, (value, -0.75), (-5 if left else 5, 0), ha="right" if left else "left", bbox=PLATE)


def waterfall(sizes: Mapping[str, Sizes], title: str, xlabel: str) -> Drawing:
    """Bars that begin where the one before ends: a row has one part, whose size is added to those above."""
    ends = [0.0, *itertools.accumulate(sum(part.values()) for part in sizes.values())]
    return bars({row: {"": end} | part for (row, part), end in zip(sizes.items(), ends, strict=False)}, title, xlabel)


@drawn("Dots")
def dots(values: Mapping[str, float | Place], title: str, xlabel: str, roles: Sequence[str] = (),
         limits: Sizes | None = None, quiet: Sequence[str] = (), unit: str = "s") -> Made:  # fmt: skip
    """A dot per row on a logarithmic axis, grey in `quiet` rows, its value at the right; `limits` are named lines.

    With `roles`, as ("arithmetic", "memory"), a row has two values, joined by a line, each written beside its mark if
    they have a unit, and at the right stands the second over the first; two that would overlap stand a little apart.
    Raises ValueError for values up to 0.
    """
    table = {row: value if roles else (value,) for row, value in values.items()}
    spots = [*itertools.chain(*table.values()), *(limits or {}).values()]
    if not table or min(spots) <= 0:
        raise ValueError(f"a logarithmic axis has only values above 0, got {dict(values)}, {limits}")
    fig, ax = canvas(0.85 + 0.3 * bool(limits or roles) + 0.32 * len(table), title, xlabel)
    margin = max(max(spots) / min(spots), 10) ** (0.2 if roles else 0.06)
    ax.set(xscale="log", xlim=(min(spots) / margin, max(spots) * margin))
    log_ticks(ax.xaxis, EngFormatter(unit) if roles and unit else "{x:g}")
    first = VERMILLION if "arithmetic" in roles else GREEN  # everywhere in the course orange is the arithmetic
    looks = ((first, "s"), (BLUE, "o")) if roles else ((PURPLE, "o"),)
    near = (max(spots) / min(spots) * margin**2) ** 0.04
    aside = [0.16 if roles and max(row) < near * min(row) else 0 for row in table.values()]
    columns = zip(roles or ["_value"], looks, zip(*table.values(), strict=True), strict=True)
    for sign, (role, (colour, marker), column) in zip((-1, 1), columns, strict=False):
        heights = [place + sign * shift for place, shift in enumerate(aside)]
        for ink, size, name, silent in ((colour, 8, role, False), (GREY, 7, "_quiet", True)):
            mine = [place for place, row in enumerate(table) if (row in quiet) == silent]
            x, y = ([values[place] for place in mine] for values in (column, heights))
            ax.plot(x, y, marker, color=ink, markersize=size, zorder=4, label=name)
    for place, pair in enumerate(table.values()) if roles else ():
        ax.plot(pair, [place, place], color=GREY, linewidth=1.2, marker="", label="_gap", zorder=2)
        ends = sorted(zip(pair, looks, strict=True), key=lambda end: end[0])
        for (value, (colour, _)), shift in zip(ends if unit else (), (-8, 8), strict=False):
            look = {"ha": "right" if shift < 0 else "left", "color": INKS[colour], "bbox": PLATE}
            note(ax, units.si(value, unit), (value, place), (shift, 0), **look)
    right = {row: pair[-1] / pair[0] if roles else pair[0] for row, pair in table.items()}
    for place, value in enumerate(right.values()):
        look = {"xycoords": ax.get_yaxis_transform(), "weight": "bold", "label": "_right"}
        note(ax, f"{value:.2f}" if 0.1 < value < 10 else number(value), (1, place), (8, 0), **look)
    if roles:
        look = {"xycoords": "axes fraction", "va": "bottom", "fontsize": 8, "label": "_heading"}
        note(ax, f"{roles[1]} /\n{roles[0]}", (1, 1), (8, 2), **look)
        legend(ax)
    _rows(ax, table, limits or {})
    ax.grid(axis="y", visible=not roles)
    meaning = f"{roles[1].capitalize()} / {roles[0]}: " if roles else ""
    return fig, f"{meaning}{', '.join(f'{row} {number(value)}' for row, value in right.items())}."


@drawn("Memory over time")
def memory_over_time(traces: Mapping[str, Trace], title: str, levels: Sizes | None = None, backward: int = -1,
                     rise: float = 0, alive: Sequence[str] = ()) -> Made:  # fmt: skip
    """Bytes alive in a step, a filled curve for each way to run it, named at its peak, against the FLOPs so far.

    `levels` are thin horizontal lines with a name each. `backward` is the first op of the backward pass of the first;
    an arrow leads from the end of the first curve to that of the last. With a `rise` in bytes, only the ops around
    those that add as much to the first curve are shown, each equally wide; `alive` says what is there after each rise
    or fall of that size.
    """
    fig, ax = canvas(3.1, title, "FLOPs so far", "memory")
    top, found = max(trace.peak for trace in traces.values()), []
    steps = [range(len(trace.flops)) if rise else trace.flops for trace in traces.values()]
    for place, (name, trace) in enumerate(traces.items()):
        x, memory, (colour, _, _) = steps[place], trace.memory, LOOKS[place]
        peak = max(memory)
        at = x[memory.index(peak)], peak
        found.append(f"{name}: peak {units.si(peak, 'B')}".removeprefix(": "))
        ax.fill_between(x, memory, step="post", color=TINTS[place], linewidth=0, label="_area")
        look = {"where": "post", "color": colour, "linewidth": 1.5, "marker": ""}
        ax.step(x, memory, **look, label=name or "memory")
        ax.plot(*at, "o", color=INKS[colour], markersize=7, zorder=4, label="peak")
        left = at[0] > 0.7 * x[-1]
        look = {"ha": "right" if left else "left", "color": INKS[colour], "weight": "bold", "bbox": PLATE}
        near = any(0 < level - peak < 0.1 * top for level in (levels or {}).values())
        if place:  # above the curve before
            look["arrowprops"] = {"arrowstyle": "-", "linewidth": 0.6, "color": GREY, "shrinkA": 0, "shrinkB": 4}
        note(ax, found[-1], at, (-9 if left else 9, 38 if place else 22 if near else 10), **look)
    turn, first, last = steps[0][backward], steps[0][-1], steps[-1][-1]
    ax.yaxis.set_major_formatter(EngFormatter("B"))
    ax.set(xlim=(0, 1.04 * max(first, last)), ylim=(0, top * 1.3))
    if rise:
        memory = next(iter(traces.values())).memory
        rises = [op for op in range(1, len(memory)) if memory[op] - memory[op - 1] >= rise]
        if not rises:
            raise ValueError(f"no op adds {units.si(rise, 'B')}: give a smaller rise")
        where = f"operations so far, of {len(memory)} (where memory rises most)"
        ax.set(xlim=(max(rises[0] - 8, 0), min(rises[-1] + 12, first)), xlabel=where)
        turns = [op for op in range(1, len(memory)) if abs(memory[op] - memory[op - 1]) > 0.99 * rise]
        for (op, end), name in zip(itertools.pairwise([*turns, len(memory)]), alive, strict=False):
            place = op if end > op + 1 or len(name) == 1 else end  # beside a step that is too short for it
            note(ax, name, (place, memory[op] - 0.06 * top), (4, 0), weight="bold", color=INKS[BLUE])
    else:
        ax.xaxis.set_major_formatter(EngFormatter("FLOP"))
    ax.axvline(turn, color=GREY, linewidth=0.8, linestyle=DASHES, label="_backward")
    for text, shift in (("forward", -5), ("backward", 5)):
        note(ax, text, (turn, top * 1.22), (shift, 0), ha="right" if shift < 0 else "left")
    if last != first:
        ax.vlines([first, last], 0, 0.9 * top, GREY, linewidth=1, linestyle=":", label="_ends")
        arrow(ax, (first, 0.85 * top), (last, 0.85 * top), BLACK)
        note(ax, f"{last / first - 1:+.0%} FLOPs", ((first + last) / 2, 0.92 * top), (0, 0), ha="center")
    _levels(ax, levels or {}, min(trace.memory[0] for trace in traces.values()))
    return fig, f"{'; '.join(found)}."
