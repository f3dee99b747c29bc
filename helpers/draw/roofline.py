"""Rooflines with ops under them, and the bandwidth by working set."""

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter

from helpers import units
from helpers.draw.drawing import WIDTH, Made, Sizes, Spot, canvas, drawn, number
from helpers.draw.labels import arrow, label_points, legend, log_ticks, note
from helpers.draw.palette import BLACK, BLUE, DASHES, GREEN, GREY, GROUNDS, INKS, LINES, PLATE, VERMILLION
from helpers.roofline import Roofline

_REGIONS = {  # the tint below the roof, ink and marker
    "memory-bound": (GROUNDS[0], BLUE, "o"),
    "in between": (GROUNDS[1], GREEN, "D"),
    "compute-bound": (GROUNDS[2], VERMILLION, "s"),
}
Roofs = Mapping[str, Roofline]


@dataclass(frozen=True)
class Point:
    """An op on a roofline plot: its intensity in FLOP/byte, and its FLOP/s, predicted or measured."""

    label: str
    intensity: float
    predicted: float | None = None
    measured: float | None = None

    @property
    def spot(self) -> Spot:
        """Where it is in the plot: measured if it was, else predicted."""
        rate = self.measured or self.predicted
        if not rate:
            raise ValueError(f"{self.label} has no FLOP/s, neither predicted nor measured")
        return self.intensity, rate

    def region(self, roofs: Roofs) -> str:
        """What bounds it: memory under all roofs, compute under all, or one or the other."""
        left_of_ridge = [self.intensity < roof.ridge for roof in roofs.values()]
        if all(left_of_ridge):
            return "memory-bound"
        return "in between" if any(left_of_ridge) else "compute-bound"


@drawn("Roofline plot")
def roofline(
    roofs: Roofs,
    points: Sequence[Point] = (),
    title: str = "",
    *,
    moves: Sequence[Sequence[str]] = (),
    intensities: tuple[float, float] | None = None,
    thin: Roofs | None = None,
) -> Made:
    """Attainable FLOP/s against intensity in FLOP/byte, both logarithmic: a roof per machine, dtype, unit or memory.

    A roof is blue where the bandwidth limits it and vermillion where the peak does, with its ridge marked; several
    differ by their dashes. Above all roofs it is grey. The regions below have names: memory-bound under all roofs,
    compute-bound under all, and in between what depends on the roof; where bandwidths differ, each tells how many times
    the last roof is as high as the first. A point is open where predicted, filled where measured. `thin` are further
    slopes, dashed or dotted, with their names; beside them each point has a line to the lowest of the roofs.
    `moves` names pairs of points: an arrow leads from first to second, with the gain. `intensities`: ends of the axis.
    Raises ValueError without a roof, for a point without FLOP/s, and for a move between points that are not there.
    """
    if not roofs:
        raise ValueError("a roofline plot needs a roof at least, such as {'H100': Roofline(989.5e12, 3.35e12)}")
    spots = {point.label: point.spot for point in points}
    if missing := {name for pair in moves for name in pair} - set(spots):
        raise ValueError(f"there is no point {', '.join(sorted(missing))} to draw a move of; there are {list(spots)}")
    ridges = sorted({roof.ridge for roof in roofs.values()})
    ridge_text = ", ".join(map(number, ridges))
    title = title or f"{', '.join(roofs)}: ridge at {ridge_text} FLOP/byte"
    fig, ax = canvas(3.7, title, "arithmetic intensity (FLOP/byte)", "FLOP/s")
    _set_axes(ax, roofs, spots, intensities)
    fig.set_layout_engine("none")  # the labels are placed in pixels, so the axes must stay
    tall = fig.get_figheight()
    ax.set_position((0.62 / WIDTH, 0.48 / tall, 1 - 0.75 / WIDTH, 1 - 0.76 / tall))
    _shade(ax, roofs, ridges)
    for (name, roof), style in zip(roofs.items(), itertools.cycle(LINES), strict=False):
        _draw_slope(ax, name, roof, BLUE, 2.6, style["linestyle"])
        _draw_flat(ax, name, roof, style["linestyle"])
    _name_peaks(ax, roofs, full=bool(thin))
    _name_slopes(ax, roofs, sorted(point.intensity for point in points))
    _mark_ridges(ax, ridges, roofs)
    for (name, roof), dash in zip((thin or {}).items(), itertools.cycle([DASHES, ":"]), strict=False):
        _draw_slope(ax, name, roof, BLACK, 1.1, dash)
        _on_slope(ax, name, roof, 1.15 * ax.get_xlim()[0], (3, 6), ha="left", va="bottom")
    for point in points:
        _draw_point(ax, point, roofs)
    if thin:
        _drop_lines(ax, points, roofs)
    for start, end in moves:
        _draw_move(ax, spots[start], spots[end])
    _name_points(ax, points, roofs, over_lines=bool(thin))
    return Made(fig, _finding(ridge_text, points, roofs))


def _finding(ridge_text: str, points: Sequence[Point], roofs: Roofs) -> str:
    """Where the ridges are, and which points lie in which region."""
    found: dict[str, list[str]] = {}
    for point in points:
        found.setdefault(point.region(roofs).capitalize(), []).append(point.label)
    ridge = "Ridges" if "," in ridge_text else "Ridge"
    return " ".join(
        [f"{ridge} at {ridge_text} FLOP/byte.", *(f"{region}: {', '.join(ops)}." for region, ops in found.items())]
    )


def _set_axes(ax: Axes, roofs: Roofs, spots: Mapping[str, Spot], intensities: tuple[float, float] | None) -> None:
    """Both axes logarithmic, with room around what is drawn."""
    places = [x for x, _ in spots.values()] + [roof.ridge for roof in roofs.values()]
    low, high = intensities or (min(places) / 8, max(places) * 16)
    rates = [rate for _, rate in spots.values()]
    for roof in roofs.values():
        rates += [roof.attainable(low), roof.peak]
    span = max(rates) / min(rates)
    floor = min(rates) / (2.5 if span > 3 else 1.2)
    ceiling = max(rates) * max(span**0.16, 1.25)
    ax.set(xscale="log", yscale="log", xlim=(low, high), ylim=(floor, ceiling))
    ax.grid(visible=False)
    log_ticks(ax.xaxis)
    log_ticks(ax.yaxis, EngFormatter(sep=" "))


def _shade(ax: Axes, roofs: Roofs, ridges: Sequence[float]) -> None:
    """Tint the regions and name them along the foot, with what several roofs gain; grey above the highest roof."""
    (low, high), (floor, ceiling) = ax.get_xlim(), ax.get_ylim()
    differ = len({roof.bandwidth for roof in roofs.values()}) > 1
    ends = itertools.pairwise([low, ridges[0], ridges[-1], high])
    for (name, (tint, ink, _)), (left, right) in zip(_REGIONS.items(), ends, strict=True):
        ax.axvspan(left, right, color=tint, linewidth=0, zorder=0)
        room = math.log(right / left) / math.log(high / low)
        if room > 0.18:
            text = f"{name}\n× {_gains(roofs, left, right)}" if differ else name
            style: dict[str, Any] = {"color": INKS[ink], "ha": "center", "va": "bottom", "weight": "bold"}
            note(ax, text, (math.sqrt(left * right), floor), (0, 4), **style)
    xs = [low, *ridges, high]
    tops = [max(roof.attainable(x) for roof in roofs.values()) for x in xs]
    ax.fill_between(xs, tops, ceiling, color=GROUNDS[-1], linewidth=0, zorder=0.5)


def _gains(roofs: Roofs, left: float, right: float) -> str:
    """How many times the last roof is as high as the first, from one intensity to another: 1 to 1.31."""
    first, *_, last = roofs.values()
    gains = [last.attainable(x) / first.attainable(x) for x in np.geomspace(left, right, 99)]
    return " to ".join(dict.fromkeys([number(min(gains)), number(max(gains))]))


def _draw_slope(ax: Axes, name: str, roof: Roofline, color: str, width: float, dash: Any) -> None:
    ends = ax.get_xlim()[0], roof.ridge
    style = {"linestyle": dash, "linewidth": width, "marker": "", "zorder": 3, "solid_capstyle": "butt"}
    ax.plot(ends, [roof.attainable(x) for x in ends], color=color, label=f"{name}, memory roof", **style)


def _draw_flat(ax: Axes, name: str, roof: Roofline, dash: Any) -> None:
    ends = roof.ridge, ax.get_xlim()[1]
    style = {"linestyle": dash, "linewidth": 2.6, "marker": "", "zorder": 3, "solid_capstyle": "butt"}
    ax.plot(ends, [roof.peak, roof.peak], color=VERMILLION, label=f"{name}, peak", **style)


def _name_peaks(ax: Axes, roofs: Roofs, full: bool) -> None:
    """Each peak at the end of its flat part, with the name of the roof unless roofs share it or the plot is full."""
    sharing: dict[float, list[str]] = {}
    for name, roof in roofs.items():
        sharing.setdefault(roof.peak, []).append(name)
    right = ax.get_xlim()[1]
    highest = max(sharing)
    for peak, names in sharing.items():
        name = f"{names[0]}: " if len(names) == 1 and not full else ""
        (_, top), (_, place) = ax.transData.transform([(right, highest), (right, peak)])
        points_below = (top - place) * 72 / ax.figure.dpi
        crowded = 0 < points_below < 16  # else the name of this one would lie on the line of the highest
        height = -8 if crowded else 8
        note(ax, name + units.si(peak, "FLOP/s"), (right, peak), (-4, height), ha="right", zorder=8)


def _name_slopes(ax: Axes, roofs: Roofs, intensities: Sequence[float]) -> None:
    """Each bandwidth on its slope, far from points, with the name of its roof where there are several."""
    low, _ = ax.get_xlim()
    sharing: dict[float, list[str]] = {}
    for name, roof in roofs.items():
        sharing.setdefault(roof.bandwidth, []).append(name)
    for bandwidth, names in sharing.items():
        roof = roofs[names[0]]
        name = f"{names[0]}: " if len(names) == 1 and len(roofs) > 1 else ""
        stops = [low, *(x for x in intensities if low < x < roof.ridge), roof.ridge]
        left, right = max(itertools.pairwise(stops), key=lambda gap: gap[1] / gap[0])
        rate = units.si(bandwidth * (1 + 1e-9), "B/s")  # 3.345 rounds up
        x = math.sqrt(left * right)
        if len(sharing) > 1 and bandwidth == min(sharing):  # below, so that two close slopes have room
            _on_slope(ax, name + rate, roof, x, (3, -4), ha="center", va="top")
        else:
            _on_slope(ax, name + rate, roof, x, (-3, 4), ha="center", va="bottom")


def _on_slope(ax: Axes, text: str, roof: Roofline, x: float, shift: Spot, *, ha: str, va: str) -> None:
    """A text along the slanted part of a roof, aligned with its point at x."""
    low, _ = ax.get_xlim()
    left, bottom = ax.transData.transform((low, roof.attainable(low)))
    right, top = ax.transData.transform((roof.ridge, roof.peak))
    angle = math.degrees(math.atan2(top - bottom, right - left))
    style: dict[str, Any] = {"ha": ha, "va": va, "rotation": angle, "rotation_mode": "anchor", "zorder": 8}
    note(ax, text, (x, roof.attainable(x)), shift, **style)


def _mark_ridges(ax: Axes, ridges: Sequence[float], roofs: Roofs) -> None:
    """A dot on each ridge and a dotted line to the axis, with its value; values side by side stand at two heights."""
    floor, _ = ax.get_ylim()
    for place, ridge in enumerate(ridges):
        top = max(roof.peak for roof in roofs.values() if roof.ridge == ridge)
        ax.plot([ridge, ridge], [floor, top], ":", color=BLACK, linewidth=0.9, marker="", zorder=2)
        ax.plot(ridge, top, "D", color=BLACK, zorder=4)
        text, height = f"ridge {number(ridge)}", 30 + 13 * (place % 3)
        if place == 0 and len(ridges) > 1:
            note(ax, text, (ridge, floor), (-4, height), ha="right", weight="bold", zorder=8)
        else:
            note(ax, text, (ridge, floor), (4, height), ha="left", weight="bold", zorder=8)


def _draw_point(ax: Axes, point: Point, roofs: Roofs) -> None:
    """A point in the colour of its region, open where predicted."""
    _, ink, marker = _REGIONS[point.region(roofs)]
    kind = "measured" if point.measured else "predicted"
    styles: dict[str, dict[str, Any]] = {
        "predicted": {"markerfacecolor": "white", "markeredgecolor": ink, "markeredgewidth": 1.6, "zorder": 5},
        "measured": {"markerfacecolor": ink, "markeredgecolor": "white", "markeredgewidth": 0.8, "zorder": 6},
    }
    ax.plot(*point.spot, marker, label=f"{point.label} {kind}", markersize=7.5, **styles[kind])


def _drop_lines(ax: Axes, points: Sequence[Point], roofs: Roofs) -> None:
    """From each point a dotted line to the lowest roof."""
    for point in points:
        x, rate = point.spot
        roof = min(roof.attainable(x) for roof in roofs.values())
        _, ink, _ = _REGIONS[point.region(roofs)]
        ax.plot([x, x], [rate, roof], ":", color=INKS[ink], linewidth=1.2, marker="", zorder=2)


def _draw_move(ax: Axes, start: Spot, end: Spot) -> None:
    """An arrow from a point to another, with the gain."""
    bend = 0.15
    style = {"arrowstyle": "-|>", "linewidth": 1.6, "shrinkA": 7, "shrinkB": 7, "connectionstyle": f"arc3,rad={bend}"}
    arrow(ax, start, end, BLACK, **style)
    first, last = ax.transData.transform([start, end])
    right, up = last - first
    x, y = ax.transData.inverted().transform((first + last) / 2 + bend / 2 * np.array([up, -right]))
    ax.plot([start[0], x, end[0]], [start[1], y, end[1]], linewidth=0, marker="")  # labels keep off
    label_points(ax, {f"× {number(end[1] / start[1])}": (x, y)}, weight="bold")


def _name_points(ax: Axes, points: Sequence[Point], roofs: Roofs, over_lines: bool) -> None:
    """Each point's name; over thin roofs on a plate, bold and in its colour."""
    if not over_lines:
        label_points(ax, {point.label: point.spot for point in points}, fontsize=8, zorder=7)
        return
    ordered = sorted(points, key=lambda point: point.intensity)
    labels = label_points(ax, {point.label: point.spot for point in ordered}, fontsize=8, zorder=7, weight="bold")
    for label, point in zip(labels, ordered, strict=True):
        _, ink, _ = _REGIONS[point.region(roofs)]
        label.set(color=INKS[ink], bbox=PLATE | {"alpha": 0.7})


@drawn("Line chart")
def bandwidth_sweep(
    bandwidths: Mapping[int, float],
    caches: Mapping[str, int],
    disturbed: Collection[int] = (),
    levels: Sizes | None = None,
) -> Made:
    """Bandwidth in byte/s against the working set in bytes, both logarithmic, with a line at the size of each cache.

    A step marks the median of each level; `levels` are further bandwidths, as dotted lines with a name. `disturbed` are
    the working sets of which no quiet sample was taken: they stand as crosses aside of the line, unless all are.
    """
    sizes, noisy = sorted(bandwidths), sorted(disturbed)
    quiet = {size: bandwidths[size] for size in sizes if size not in disturbed} or dict(sorted(bandwidths.items()))
    shown = sizes[0] / 2.2, sizes[-1] * 1.6
    steps = _memory_steps(quiet, caches, shown)
    fig, ax = canvas(3.2, _sweep_title(steps), "working set", "byte/s")
    ax.plot(list(quiet), list(quiet.values()), color=BLUE, marker="o", label="measured")
    if noisy:
        crosses = [bandwidths[size] for size in noisy]
        ax.plot(noisy, crosses, "x", color=GREY, markeredgewidth=1.8, label="disturbed")
        legend(fig)
    floor, ceiling = min(bandwidths.values()) / 2, max(bandwidths.values()) * 2.4
    ax.set_xscale("log", base=2)
    ax.set(yscale="log", ylim=(floor, ceiling), xlim=shown)
    for name, size in caches.items():
        ax.axvline(size, color=BLACK, linewidth=1, linestyle=DASHES, marker="")
        note(ax, f"{name} {units.iec(size)}", (size, ceiling), (-3, -3), bbox=PLATE, ha="right", va="top")
    if caches:
        note(ax, "main\nmemory", (max(caches.values()), ceiling), (3, -3), bbox=PLATE, va="top")
    for left, right, rate in steps.values():
        ax.plot([left, right], [rate, rate], color=GREY, linewidth=5, alpha=0.35, marker="", zorder=1.5)
        note(ax, units.si(rate, "B/s"), (math.sqrt(left * right), floor), (0, 8), ha="center", weight="bold")
    for name, rate in (levels or {}).items():
        ax.axhline(rate, color=VERMILLION, linewidth=1.2, linestyle=":", marker="", label=name)
        note(ax, name, (shown[0], rate), (4, 7), color=INKS[VERMILLION])
    ticks = sizes[:: max(1, len(sizes) // 6)]
    ax.set_xticks(ticks, [units.iec(tick) for tick in ticks])
    log_ticks(ax.yaxis, EngFormatter(sep=" "))
    if not noisy:
        return Made(fig)
    return Made(fig, f"{len(noisy)} of {len(sizes)} points are disturbed: {', '.join(map(units.iec, noisy))}.")


def _memory_steps(
    bandwidths: Mapping[int, float], caches: Mapping[str, int], shown: Spot
) -> dict[str, tuple[float, float, float]]:
    """The working sets that each cache and main memory serve, from and to, and the median of their bandwidths."""
    edges = np.clip([shown[0], *caches.values(), shown[1]], *shown)
    steps = {}
    for name, (left, right) in zip([*caches, "main memory"], itertools.pairwise(edges), strict=True):
        if name == "main memory" and caches and 4 * left < max(bandwidths):
            left = 4 * left  # a part of less still comes from the last cache
        if rates := [rate for size, rate in bandwidths.items() if left < size <= right]:
            steps[name] = left, right, median(rates)
    return steps


def _sweep_title(steps: Mapping[str, tuple[float, float, float]]) -> str:
    if len(steps) < 2:
        return "Bandwidth by working set"
    first, *_, last = steps
    times = steps[first][2] / steps[last][2]
    rounded = f"{times:.0f}" if times >= 2 else f"{times:.1f}"
    return f"PyTorch moves bytes about {rounded} times as fast in {first} as in {last}"
