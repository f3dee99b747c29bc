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

from helpers.draw.drawing import (  # isort: skip
    BLACK, BLUE, DASHES, GREEN, GREY, GROUNDS, INKS, LOOKS, PLATE, VERMILLION, WIDTH, Made, arrow, canvas,
    drawn, label_points, legend, log_ticks, note, number,
)  # fmt: skip
from helpers.roofline import Roofline

_REGIONS = {  # the tint below the roof, ink and marker
    "memory-bound": (GROUNDS[0], BLUE, "o"),
    "in between": (GROUNDS[1], GREEN, "D"),
    "compute-bound": (GROUNDS[2], VERMILLION, "s"),
}


@dataclass(frozen=True)
class Point:
    """An op on a roofline plot: its intensity in FLOP/byte, and its FLOP/s, predicted or measured."""

    label: str
    intensity: float
    predicted: float | None = None
    measured: float | None = None


@drawn("Roofline plot")
def roofline(
    roofs: Mapping[str, Roofline],
    points: Sequence[Point] = (),
    title: str = "",
    *,
    moves: Sequence[tuple[str, str]] = (),
    intensities: tuple[float, float] | None = None,
    height: float = 3.8,
    thin: Mapping[str, Roofline] | None = None,
) -> Made:
    """Attainable FLOP/s against intensity in FLOP/byte, both logarithmic: a roof per machine, dtype, unit or memory.

    A roof is blue where the bandwidth limits it and vermillion where the peak does, with its ridge marked; several
    differ by their dashes. Above all roofs it is grey. The regions below have names: memory-bound under all roofs,
    compute-bound under all, and in between what depends on the roof. A point is open where predicted, filled where
    measured. `thin` are further slopes, dashed or dotted, with their names; beside them each point has a line to the
    lowest of the roofs.
    `moves` names pairs of points: an arrow leads from first to second, with the gain. `intensities`: ends of the axis.
    Raises ValueError without a roof, and for a move between points that are not there.
    """
    if not roofs:
        raise ValueError("a roofline plot needs a roof at least, such as {'H100': Roofline(989.5e12, 3.35e12)}")
    places = {point.label: (point.intensity, point.measured or point.predicted) for point in points}
    if missing := {name for pair in moves for name in pair} - set(places):
        raise ValueError(f"there is no point {', '.join(sorted(missing))} to draw a move of; there are {list(places)}")
    ridges = sorted({roof.ridge for roof in roofs.values()})
    title = title or f"{', '.join(roofs)}: ridge at {', '.join(map(number, ridges))} FLOP/byte"
    fig, ax = canvas(height, title, "arithmetic intensity (FLOP/byte)", "FLOP/s")
    spots = [p.intensity for p in points] + ridges
    low, high = intensities or (min(spots) / 8, max(spots) * 16)
    heights = [rate for _, rate in places.values()] + [y for r in roofs.values() for y in (r.attainable(low), r.peak)]
    span = max(heights) / min(heights)
    floor, ceiling = min(heights) / (2.5 if span > 3 else 1.2), max(heights) * max(span**0.16, 1.25)
    ax.set(xscale="log", yscale="log", xlim=(low, high), ylim=(floor, ceiling))
    ax.grid(visible=False)
    log_ticks(ax.xaxis)
    log_ticks(ax.yaxis, EngFormatter(sep=" "))
    fig.set_layout_engine("none")  # the labels are placed in pixels, so the axes must stay
    ax.set_position((0.62 / WIDTH, 0.48 / height, 1 - 0.75 / WIDTH, 1 - 0.76 / height))
    _shade(ax, roofs, ridges)
    for (name, roof), (_, _, dash) in zip(roofs.items(), itertools.cycle(LOOKS)):
        _roof(ax, name, roof, dash)
    _name_roofs(ax, roofs, sorted(point.intensity for point in points), bool(thin))
    _mark_ridges(ax, ridges, roofs)
    for (name, roof), dash in zip((thin or {}).items(), itertools.cycle([DASHES, ":"])):
        _roof(ax, name, roof, dash, thin=True)
        _on_slope(ax, name, roof, 1.15 * low, "left")
    for point in points:
        _, ink, marker = _REGIONS[_region(point, roofs)]
        look = {"markerfacecolor": "white", "markeredgecolor": ink, "markeredgewidth": 1.6, "zorder": 5}
        if point.measured:
            look = {"markerfacecolor": ink, "markeredgecolor": "white", "markeredgewidth": 0.8, "zorder": 6}
        label = f"{point.label} {'measured' if point.measured else 'predicted'}"
        ax.plot(*places[point.label], marker, label=label, markersize=7.5, **look)
    for point in points if thin else ():  # how far it is from the lowest roof
        x, rate = places[point.label]
        roof = min(roof.attainable(x) for roof in roofs.values())
        ink = INKS[_REGIONS[_region(point, roofs)][1]]
        ax.plot([x, x], [rate, roof], ":", color=ink, linewidth=1.2, marker="", label="_gap", zorder=2)
    for (x, rate), (right, better) in ([places[name] for name in pair] for pair in moves):
        style = {"arrowstyle": "-|>", "linewidth": 1.6, "shrinkA": 7, "shrinkB": 7, "connectionstyle": "arc3,rad=0.15"}
        arrow(ax, (x, rate), (right, better), BLACK, **style)
        start, end = ax.transData.transform([(x, rate), (right, better)])
        bend = ax.transData.inverted().transform((start + end) / 2 + 0.075 * (end - start)[::-1] * (1, -1))
        ax.plot([x, bend[0], right], [rate, bend[1], better], linewidth=0, marker="", label="_move")  # labels keep off
        label_points(ax, {f"× {number(better / rate)}": bend}, weight="bold")
    look = {"fontsize": 8, "zorder": 7, "weight": "bold" if thin else "normal"}
    order = sorted(points, key=lambda p: p.intensity) if thin else points
    labels = label_points(ax, {point.label: places[point.label] for point in order}, **look)
    for label, point in zip(labels, order if thin else (), strict=False):
        label.set(color=INKS[_REGIONS[_region(point, roofs)][1]], bbox=PLATE | {"alpha": 0.7})  # over thin roofs
    found: dict[str, list[str]] = {}
    for point in points:
        found.setdefault(_region(point, roofs).capitalize(), []).append(point.label)
    ridge = f"Ridge{'s' if len(ridges) > 1 else ''} at {', '.join(map(number, ridges))} FLOP/byte."
    return fig, " ".join([ridge, *(f"{region}: {', '.join(ops)}." for region, ops in found.items())])


def _region(point: Point, roofs: Mapping[str, Roofline]) -> str:
    under = {point.intensity < roof.ridge for roof in roofs.values()}
    return "in between" if len(under) > 1 else "memory-bound" if under.pop() else "compute-bound"


def _shade(ax: Axes, roofs: Mapping[str, Roofline], ridges: Sequence[float]) -> None:
    """Tint the regions and name them along the foot, with what several roofs gain; grey above the highest roof."""
    (low, high), (floor, ceiling) = ax.get_xlim(), ax.get_ylim()
    slopes = {roof.bandwidth for roof in roofs.values()}
    ends = itertools.pairwise([low, ridges[0], ridges[-1], high])
    for (name, (tint, ink, _)), (left, right) in zip(_REGIONS.items(), ends, strict=True):
        ax.axvspan(left, right, color=tint, linewidth=0, zorder=0, label=f"_{name}")
        if math.log(right / left) > 0.18 * math.log(high / low):
            rates = [[roof.attainable(x) for roof in roofs.values()] for x in np.geomspace(left, right, 99)]
            gains = [number(gain) for gain in sorted(max(rate) / min(rate) for rate in rates)]
            text = f"{name}\n× {' to '.join(dict.fromkeys(gains[::98]))}" if len(slopes) > 1 else name
            look = {"color": INKS[ink], "ha": "center", "va": "bottom", "weight": "bold"}
            note(ax, text, (math.sqrt(left * right), floor), (0, 4), **look)
    xs = [low, *ridges, high]
    tops = [max(roof.attainable(x) for roof in roofs.values()) for x in xs]
    ax.fill_between(xs, tops, ceiling, color=GROUNDS[-1], linewidth=0, zorder=0.5, label="_out of reach")


def _roof(ax: Axes, name: str, roof: Roofline, dash: Any, thin: bool = False) -> None:
    """The slanted part and, unless it is thin, the flat one."""
    low, high = ax.get_xlim()
    style = {"linestyle": dash, "linewidth": 1.1 if thin else 2.6, "marker": "", "zorder": 3, "solid_capstyle": "butt"}
    parts = ("memory roof", BLUE, (low, roof.ridge)), ("peak", VERMILLION, (roof.ridge, high))
    for part, ink, ends in parts[:1] if thin else parts:
        rates = [roof.attainable(x) for x in ends]
        ax.plot(ends, rates, color=BLACK if thin else ink, label=f"{name}, {part}", **style)


def _name_roofs(ax: Axes, roofs: Mapping[str, Roofline], spots: Sequence[float], full: bool) -> None:
    """Each peak above the end of its flat part, each bandwidth on its slope, far from points; unless full, its name."""
    low, high = ax.get_xlim()
    peaks, slopes = ([getattr(roof, part) for roof in roofs.values()] for part in ("peak", "bandwidth"))
    for place, (name, roof) in enumerate(roofs.items()):
        if roof.peak not in peaks[:place]:
            flat = f"{name}: " if peaks.count(roof.peak) == 1 and not full else ""
            note(ax, flat + units.si(roof.peak, "FLOP/s"), (high, roof.peak), (-4, 8), ha="right", zorder=8)
        if roof.bandwidth not in slopes[:place]:
            slant = f"{name}: " if slopes.count(roof.bandwidth) == 1 and len(roofs) > 1 else ""
            stops = itertools.pairwise([low, *(x for x in spots if low < x < roof.ridge), roof.ridge])
            x = math.sqrt(math.prod(max(stops, key=lambda gap: gap[1] / gap[0])))
            below = len(set(slopes)) > 1 and roof.bandwidth == min(slopes)  # so that two close slopes have room
            _on_slope(ax, slant + units.si(roof.bandwidth * (1 + 1e-9), "B/s"), roof, x, below=below)


def _on_slope(ax: Axes, text: str, roof: Roofline, x: float, side: str = "center", below: bool = False) -> None:
    """A text along the slanted part of a roof, above it or below: around x, or with its left end there."""
    low, _ = ax.get_xlim()
    start, end = (ax.transData.transform((x, roof.attainable(x))) for x in (low, roof.ridge))
    angle = math.degrees(math.atan2(*(end - start)[::-1]))
    look = {"ha": side, "va": "top" if below else "bottom", "rotation": angle, "rotation_mode": "anchor", "zorder": 8}
    shift = (3, -4) if below else (-3, 4) if side == "center" else (3, 6)
    note(ax, text, (x, roof.attainable(x)), shift, **look)


def _mark_ridges(ax: Axes, ridges: Sequence[float], roofs: Mapping[str, Roofline]) -> None:
    """A dot on each ridge and a dotted line to the axis, with its value; values side by side stand at two heights."""
    floor, _ = ax.get_ylim()
    for place, ridge in enumerate(ridges):
        top = max(roof.peak for roof in roofs.values() if roof.ridge == ridge)
        ax.plot([ridge, ridge], [floor, top], ":", color=BLACK, linewidth=0.9, marker="", label="_ridge", zorder=2)
        ax.plot([ridge], [top], "D", color=BLACK, label="_ridge", zorder=4)
        left, text = place == 0 and len(ridges) > 1, f"ridge {number(ridge)}"
        look = {"weight": "bold", "zorder": 8, "ha": "right" if left else "left"}
        note(ax, text, (ridge, floor), (-4 if left else 4, 30 + 13 * (place % 3)), **look)


@drawn("Line chart")
def bandwidth_sweep(
    bandwidths: Mapping[int, float],
    caches: Mapping[str, int],
    disturbed: Collection[int] = (),
    levels: Mapping[str, float] | None = None,
) -> Made:
    """Bandwidth in byte/s against the working set in bytes, both logarithmic, with a line at the size of each cache.

    A step marks the median of each level; `levels` are further bandwidths, as dotted lines with a name. `disturbed` are
    the working sets of which no quiet sample was taken: they stand as crosses aside of the line, unless all are.
    """
    sizes = sorted(bandwidths)
    quiet = [size for size in sizes if size not in disturbed] or sizes
    shown = sizes[0] / 2.2, sizes[-1] * 1.6
    medians, ends = {}, np.clip([shown[0], *caches.values(), shown[1]], *shown)
    for name, (left, right) in zip([*caches, "main memory"], itertools.pairwise(ends), strict=True):
        if name == "main memory" and caches and 4 * left < quiet[-1]:
            left *= 4  # a part of less still comes from the last cache
        if level := [bandwidths[size] for size in quiet if left < size <= right]:
            medians[name] = left, right, median(level)
    first, *_, last = [*medians] * 2
    times = medians[first][2] / medians[last][2]
    title = f"PyTorch moves bytes about {times:.{int(times < 2)}f} times as fast in {first} as in {last}"
    title = title if len(medians) > 1 else "Bandwidth by working set"
    fig, ax = canvas(3.2, title, "working set", "byte/s")
    ax.plot(quiet, [bandwidths[size] for size in quiet], color=BLUE, marker="o", label="measured")
    if disturbed:
        look = {"color": GREY, "markeredgewidth": 1.8, "label": "disturbed"}
        ax.plot(sorted(disturbed), [bandwidths[size] for size in sorted(disturbed)], "x", **look)
        legend(ax)
    low, high, small = min(bandwidths.values()), max(bandwidths.values()), {"bbox": PLATE}
    ax.set_xscale("log", base=2)
    ax.set(yscale="log", ylim=(low / 2, high * 2.4), xlim=shown)
    for name, size in caches.items():
        ax.axvline(size, color=BLACK, linewidth=1, linestyle=DASHES, marker="", label=f"_{name}")
        note(ax, f"{name} {units.iec(size)}", (size, 2.2 * high), (-3, 0), **small, ha="right", va="top")
    if caches:
        note(ax, "main\nmemory", (max(caches.values()), 2.2 * high), (3, 0), **small, va="top")
    for left, right, rate in medians.values():
        ax.plot([left, right], [rate, rate], color=GREY, linewidth=5, alpha=0.35, marker="", label="_step", zorder=1.5)
        note(ax, units.si(rate, "B/s"), (math.sqrt(left * right), low / 2), (0, 8), ha="center", weight="bold")
    for name, rate in (levels or {}).items():
        ax.axhline(rate, color=VERMILLION, linewidth=1.2, linestyle=":", marker="", label=name)
        note(ax, name, (shown[0], rate), (4, 7), color=INKS[VERMILLION])
    ticks = sizes[:: max(1, len(sizes) // 6)]
    ax.set_xticks(ticks, map(units.iec, ticks))
    log_ticks(ax.yaxis, EngFormatter(sep=" "))
    named = ", ".join(map(units.iec, sorted(disturbed)))
    return fig, f"{len(disturbed)} of {len(sizes)} points are disturbed: {named}." if disturbed else ""
