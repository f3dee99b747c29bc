"""Rooflines with ops under them, and the bandwidth by working set."""

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter

from helpers import units

from helpers.draw.drawing import (  # isort: skip
    BLACK, BLUE, DASHES, GREEN, GREY, GROUNDS, INKS, LOOKS, PLATE, VERMILLION, WIDTH, Made, Place, arrow, canvas,
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

    @property
    def place(self) -> Place:
        """Where it is drawn."""
        return self.intensity, self.measured or self.predicted


@drawn("Roofline plot")
def roofline(
    roofs: Mapping[str, Roofline],
    points: Sequence[Point] = (),
    title: str = "",
    *,
    moves: Sequence[tuple[str, str]] = (),
    intensities: tuple[float, float] | None = None,
    datasheet: Collection[str] = (),
    height: float = 3.8,
    half: bool = False,
) -> Made:
    """Attainable FLOP/s against intensity in FLOP/byte, both logarithmic: a roof per machine, dtype, unit or memory.

    A roof is blue where the bandwidth limits it and vermillion where the peak does, with its ridge marked; several
    differ by their dashes, and those named in `datasheet` are thin and black. Above all roofs it is grey. The regions
    have names where the roofs share one peak: memory-bound, compute-bound, and in between what depends on the
    bandwidth; a point that is named like a roof belongs to that one. A point is open where predicted, filled where
    measured; with `half`, which draws a dashed line at half of a single roof, those above this line are small and grey.
    `moves` names pairs of points: an arrow leads from first to second, with the gain. `intensities`: ends of the axis.

    Raises ValueError where there is no roof to draw, and for a move between points that are not there.
    """
    if not roofs:
        raise ValueError("a roofline plot has at least one roof: pass {'name': Roofline(peak, bandwidth)}")
    places = {point.label: point.place for point in points}
    if missing := {name for pair in moves for name in pair} - set(places):
        raise ValueError(f"there is no point {', '.join(sorted(missing))} to draw a move of; there are {list(places)}")
    ridges = sorted({roof.ridge for roof in roofs.values()})
    title = title or f"{', '.join(roofs)}: ridge at {', '.join(map(number, ridges))} FLOP/byte"
    fig, ax = canvas(height, title, "arithmetic intensity (FLOP/byte)", "FLOP/s")
    spots = [p.intensity for p in points] + ridges
    low, high = intensities or (min(spots) / 8, max(spots) * 16)
    heights = [p.place[1] for p in points] + [y for r in roofs.values() for y in (r.attainable(low), r.peak)]
    span = max(heights) / min(heights)
    floor, ceiling = min(heights) / (2.5 if span > 3 else 1.2), max(heights) * max(span**0.16, 1.25)
    ax.set(xscale="log", yscale="log", xlim=(low, high), ylim=(floor, ceiling))
    ax.grid(visible=False)
    log_ticks(ax.xaxis, few=high < 100 * low)
    log_ticks(ax.yaxis, EngFormatter(sep=" "), few=ceiling < 100 * floor)
    fig.set_layout_engine("none")  # the labels are placed in pixels, so the axes must stay
    ax.set_position((0.62 / WIDTH, 0.48 / height, 1 - 0.75 / WIDTH, 1 - 0.76 / height))
    _shade(ax, roofs, ridges, gains=not any(point.measured for point in points))
    for (name, roof), (_, _, dash) in zip(roofs.items(), itertools.cycle(LOOKS)):
        _roof(ax, name, roof, dash, name in datasheet)
    _name_roofs(ax, roofs, half)
    _mark_ridges(ax, ridges, roofs)
    halved = list(roofs.values()) if half else []
    for roof in halved:
        _roof(ax, "half", Roofline(roof.peak / 2, roof.bandwidth / 2), DASHES, True)
        left = low * (roof.ridge / low) ** 0.64
        note(ax, "half the roof", (left, roof.attainable(left) / 2), (6, -6), fontsize=8.5)
    loud = [point for point in points if all(2 * point.place[1] < roof.attainable(point.intensity) for roof in halved)]
    for point in points:
        _point(ax, point, _region(point, roofs), point not in loud)
    for (x, rate), (right, better) in ([places[name] for name in pair] for pair in moves):
        look = {"shift": (12, -14)} if right > x else {"shift": (-2, -4), "ha": "right"}
        middle = math.sqrt(x * right), math.sqrt(rate * better)
        ax.plot([x, right], [rate, better], linewidth=0, marker="", label="_move")  # labels keep off
        note(ax, f"× {number(better / rate)}", middle, fontsize=8.5, weight="bold", **look)
    parts = [(roof, part) for roof in halved for part in (1, 1, 2)]  # to cross the roof is twice as bad
    limits = [lambda x, roof=roof, part=part: roof.attainable(x) / part for roof, part in parts]
    labels = label_points(ax, places, limits, fontsize=8.5 - half / 2, zorder=7)
    if half:
        for label, point in zip(labels, points, strict=True):
            if point in loud:
                label.set(color=INKS[_REGIONS[_region(point, roofs)][1]], weight="bold")
    for start, end in moves:
        style = {"arrowstyle": "-|>", "linewidth": 1.6, "shrinkA": 7, "shrinkB": 7, "connectionstyle": "arc3,rad=0.15"}
        arrow(ax, places[start], places[end], BLACK, **style)
    return fig, _finding(points, roofs, ridges)


def _finding(points: Sequence[Point], roofs: Mapping[str, Roofline], ridges: Sequence[float]) -> str:
    """The region of each op."""
    found: dict[str, list[str]] = {}
    for point in points:
        found.setdefault(_region(point, roofs).capitalize(), []).append(point.label)
    ridge = f"Ridge{'s' if len(ridges) > 1 else ''} at {', '.join(map(number, ridges))} FLOP/byte."
    return " ".join([ridge, *(f"{region}: {', '.join(ops)}." for region, ops in found.items())])


def _region(point: Point, roofs: Mapping[str, Roofline]) -> str:
    own = [roofs[point.label]] if point.label in roofs else roofs.values()
    under = {point.intensity < roof.ridge for roof in own}
    return "in between" if len(under) > 1 else "memory-bound" if under.pop() else "compute-bound"


def _shade(ax: Axes, roofs: Mapping[str, Roofline], ridges: Sequence[float], gains: bool) -> None:
    """Tint the regions and name them along the foot, with what they gain; grey above the highest roof."""
    (low, high), (floor, ceiling) = ax.get_xlim(), ax.get_ylim()
    ends = [low, *(min(max(ridge, low), high) for ridge in (ridges[0], ridges[-1])), high]
    ends *= len({roof.peak for roof in roofs.values()}) == 1  # which of several peaks counts, no intensity says
    slopes = [roof.bandwidth for roof in roofs.values()]
    gain = {"memory-bound": max(slopes) / min(slopes), "compute-bound": 1} if gains and len(roofs) > 1 else {}
    for (name, (tint, ink, _)), (left, right) in zip(_REGIONS.items(), itertools.pairwise(ends), strict=False):
        ax.axvspan(left, right, color=tint, linewidth=0, zorder=0, label=f"_{name}")
        if math.log(right / left) > 0.18 * math.log(high / low):
            text = f"{name} × {number(gain[name])}" if name in gain else name
            note(ax, text, (math.sqrt(left * right), floor), (0, 8), color=INKS[ink], ha="center", weight="bold")
    xs = [low, *(ridge for ridge in ridges if low < ridge < high), high]
    tops = [max(roof.attainable(x) for roof in roofs.values()) for x in xs]
    ax.fill_between(xs, tops, ceiling, color=GROUNDS[-1], linewidth=0, zorder=0.5, label="_out of reach")


def _roof(ax: Axes, name: str, roof: Roofline, dash: Any, thin: bool) -> None:
    """The slanted part and the flat part."""
    low, high = ax.get_xlim()
    ridge = min(max(roof.ridge, low), high)
    style = {"linestyle": dash, "linewidth": 1.1 if thin else 2.6, "marker": "", "zorder": 3, "solid_capstyle": "butt"}
    for part, ink, ends in (("memory roof", BLUE, (low, ridge)), ("peak", VERMILLION, (ridge, high))):
        if ends[0] < ends[1]:
            rates = [roof.attainable(x) for x in ends]
            ax.plot(ends, rates, color=BLACK if thin else ink, label=f"{name}, {part}", **style)


def _name_roofs(ax: Axes, roofs: Mapping[str, Roofline], full: bool) -> None:
    """Each peak above the end of its flat part, each bandwidth along its slope; unless full, a roof's name."""
    low, high = ax.get_xlim()
    peaks, slopes = ([getattr(roof, part) for roof in roofs.values()] for part in ("peak", "bandwidth"))
    for place, (name, roof) in enumerate(roofs.items()):
        own_peak, own_slope = peaks.count(roof.peak) == 1, slopes.count(roof.bandwidth) == 1
        if roof.peak not in peaks[:place] and roof.ridge < high:
            flat = f"{name}: " if (own_peak or not own_slope) and not full else ""
            note(ax, flat + units.si(roof.peak, "FLOP/s"), (high, roof.peak), (-4, 8), ha="right", zorder=8)
        if roof.bandwidth not in slopes[:place] and roof.ridge > low:
            right = min(roof.ridge, high)
            start, end = (ax.transData.transform((x, roof.attainable(x))) for x in (low, right))
            above = roof.bandwidth == max(slopes)
            part = 0.75 if full else 0.42 if above else 0.38  # below, a long name ends left of the next ridge
            part = part if len(set(slopes)) < 3 else (0.62, 0.3)[place % 2]  # two slopes may all but coincide
            x = low * (right / low) ** part
            slant = f"{name}: " if own_slope and len(roofs) > 1 else ""
            look = {"ha": "center", "va": "bottom" if above else "top", "rotation_mode": "anchor", "zorder": 8}
            look |= {"rotation": math.degrees(math.atan2(*(end - start)[::-1]))}
            shift = (-3, 4) if above else (3, -4)
            note(ax, slant + units.si(roof.bandwidth * (1 + 1e-9), "B/s"), (x, roof.attainable(x)), shift, **look)


def _mark_ridges(ax: Axes, ridges: Sequence[float], roofs: Mapping[str, Roofline]) -> None:
    """A dot on each ridge and a dotted line to the axis, with its value; values side by side stand at two heights."""
    (low, high), (floor, _) = ax.get_xlim(), ax.get_ylim()
    for place, ridge in enumerate(ridge for ridge in ridges if low < ridge < high):
        top = max(roof.peak for roof in roofs.values() if roof.ridge == ridge)
        ax.plot([ridge, ridge], [floor, top], ":", color=BLACK, linewidth=0.9, marker="", label="_ridge", zorder=2)
        ax.plot([ridge], [top], "D", color=BLACK, label="_ridge", zorder=4)
        left, text = place == 0 and len(ridges) > 1, f"{'' if place else 'ridge '}{number(ridge)}"
        look = {"fontsize": 8.5, "weight": "bold", "zorder": 8, "ha": "right" if left else "left"}
        note(ax, text, (ridge, floor), (-4 if left else 4, 22 + 13 * (place % 3)), **look)


def _point(ax: Axes, point: Point, region: str, quiet: bool) -> None:
    """The mark of an op: open where predicted, filled where measured."""
    _, ink, marker = _REGIONS[region]
    ink, size = (GREY, 5) if quiet else (ink, 7.5)
    face, edge, width, role = (ink, "white", 0.8, "measured") if point.measured else ("white", ink, 1.6, "predicted")
    look = {"markerfacecolor": face, "markeredgecolor": edge, "markeredgewidth": width, "markersize": size}
    x, rate = point.place
    ax.plot([x], [rate], marker, label=f"{point.label} {role}", zorder=5 + (role == "measured"), **look)


@drawn("Line chart")
def bandwidth_sweep(
    bandwidths: Mapping[int, float], caches: Mapping[str, int], disturbed: Collection[int] = ()
) -> Made:
    """Bandwidth in byte/s against the working set in bytes, both logarithmic, with a line at the size of each cache.

    `bandwidths` maps a working set to the bandwidth measured with it. `disturbed` are the working sets of which no
    quiet sample was taken: they stand as crosses aside of the line. Raises ValueError for disturbed ones that were not
    measured, and where no quiet one is left.
    """
    sizes = sorted(bandwidths)
    quiet = [size for size in sizes if size not in disturbed]
    if not quiet or not set(disturbed) <= set(sizes):
        raise ValueError(f"disturbed are some of the {len(sizes)} working sets, got {sorted(disturbed)}")
    gain = number(bandwidths[quiet[0]] / bandwidths[quiet[-1]])
    title = f"A working set of {units.iec(quiet[0])} is {gain} times as fast as one of {units.iec(quiet[-1])}"
    fig, ax = canvas(3.2, title, "working set", "byte/s")
    ax.plot(quiet, [bandwidths[size] for size in quiet], color=BLUE, marker="o", label="measured")
    if disturbed:
        look = {"color": GREY, "markeredgewidth": 1.8, "label": "disturbed"}
        ax.plot(sorted(disturbed), [bandwidths[size] for size in sorted(disturbed)], "x", **look)
        legend(ax)
    low, high, small = min(bandwidths.values()), max(bandwidths.values()), {"fontsize": 8.5, "bbox": PLATE}
    ax.set_xscale("log", base=2)
    ax.set(yscale="log", ylim=(low / 1.6, high * 2.4), xmargin=0.07)
    for name, size in caches.items():
        ax.axvline(size, color=BLACK, linewidth=1, linestyle=DASHES, marker="", label=f"_{name}")
        note(ax, f"{name} {units.iec(size)}", (size, 2.2 * high), (-3, 0), **small, ha="right", va="top")
    if caches:
        note(ax, "main\nmemory", (max(caches.values()), 2.2 * high), (3, 0), **small, va="top")
    levels = [[size for size in quiet if low_ < size < high_] for low_, high_ in itertools.pairwise(caches.values())]
    middles = [level[len(level) // 2] for level in levels if level]  # a rate for each step, far from its edges
    for size in {quiet[0], quiet[-1], *middles}:
        shift, rate = (0, 11 if size < quiet[-1] else -11), bandwidths[size]
        note(ax, units.si(rate, "B/s"), (size, rate), shift, **small, ha="center")
    ticks = sizes[:: max(1, len(sizes) // 6)]
    ax.set_xticks(ticks, map(units.iec, ticks))
    log_ticks(ax.yaxis, EngFormatter(sep=" "))
    named = ", ".join(map(units.iec, sorted(disturbed)))
    return fig, f"{len(disturbed)} of {len(sizes)} points are disturbed: {named}." if disturbed else ""
