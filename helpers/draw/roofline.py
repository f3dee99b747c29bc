"""Rooflines with ops under them, intensity against a size, and the bandwidth by working set."""

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.ticker import EngFormatter, LogLocator, NullFormatter, NullLocator, StrMethodFormatter

from helpers import units
from helpers.draw.drawing import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    GROUNDS,
    INKS,
    LOOKS,
    PLATE,
    VERMILLION,
    WIDTH,
    canvas,
    drawn,
    note,
    number,
    past_ends,
)  # fmt: skip
from helpers.roofline import Roofline

# A region's tint below the roof, and its ink.
_REGIONS = dict(
    zip(
        ("memory-bound", "in between", "compute-bound"),
        zip(GROUNDS, (BLUE, GREEN, VERMILLION), strict=False),
        strict=True,
    )
)
_ABOVE = GROUNDS[-1]


@dataclass(frozen=True)
class Point:
    """An op on a roofline plot: its intensity in FLOP/byte, and its FLOP/s, predicted, measured, or both."""

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
    rates: tuple[float, float] | None = None,
    datasheet: Collection[str] = (),
    height: float = 3.8,
) -> tuple[Figure, str]:
    """Attainable FLOP/s against intensity in FLOP/byte, both logarithmic: a roof per machine, dtype, unit or memory.

    A roof is blue where the bandwidth limits it and vermillion where the peak does, with its ridge marked; several
    differ by their dashes, and those named in `datasheet` are thin and black. Above all roofs it is grey. The regions
    have names where the roofs share one peak: memory-bound, compute-bound, and in between what depends on the
    bandwidth. A point is open where predicted, filled where measured; a thin line joins the two. `moves` names pairs of
    points: an arrow leads from the first to the second. `intensities` and `rates` are the ends of the axes.

    Raises ValueError where there is no roof to draw, and for a move between points that are not there.
    """
    if not roofs:
        raise ValueError("a roofline plot has at least one roof: pass {'name': Roofline(peak, bandwidth)}")
    places = {point.label: point for point in points}
    if missing := {name for pair in moves for name in pair} - set(places):
        raise ValueError(f"there is no point {', '.join(sorted(missing))} to draw a move of; there are {list(places)}")
    ridges = sorted({roof.ridge for roof in roofs.values()})
    one = next(iter(roofs.values()))
    title = title or f"{', '.join(roofs)}: ridge at {', '.join(f'{number(ridge)}' for ridge in ridges)} FLOP/byte"
    fig, ax = canvas(height, title, "arithmetic intensity (FLOP/byte)", "FLOP/s")
    spots = [point.intensity for point in points] + ridges
    low, high = intensities or (min(spots) / 8, max(spots) * 8)
    heights = [rate for point in points for rate in (point.predicted, point.measured) if rate]
    heights += [rate for roof in roofs.values() for rate in (roof.attainable(low), roof.peak)]
    room = (max(heights) / min(heights)) ** 0.16
    floor, ceiling = rates or (min(heights) / 2.5, max(heights) * max(room, 1.6))
    ax.set(xscale="log", yscale="log", xlim=(low, high), ylim=(floor, ceiling))
    ax.grid(visible=False)
    ax.yaxis.set_major_formatter(EngFormatter(sep=" "))
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    for axis, (start, stop) in ((ax.xaxis, (low, high)), (ax.yaxis, (floor, ceiling))):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if stop / start < 100 else (1,)))
        axis.set_minor_locator(NullLocator())
    fig.set_layout_engine("none")  # the labels are placed in pixels, so the axes must stay
    bottom = 0.75 if any(point.predicted for point in points) and any(point.measured for point in points) else 0.48
    ax.set_position((0.62 / WIDTH, bottom / height, 1 - 0.75 / WIDTH, 1 - (bottom + 0.28) / height))
    taken: list[tuple[float, float, float, float]] = []
    _shade(ax, roofs, ridges, taken)
    for (name, roof), (_, _, dash) in zip(roofs.items(), itertools.cycle(LOOKS)):
        _roof(ax, name, roof, dash, name in datasheet)
    _name_roofs(ax, roofs, taken)
    _mark_ridges(ax, ridges, roofs, taken)
    for point in points:
        x, y = ax.transData.transform((point.intensity, point.measured or point.predicted))
        taken.append((x - 6, y - 6, x + 6, y + 6))
    for point in points:
        _point(ax, point, _region(point.intensity, ridges), taken)
    for start, end in moves:
        (x0, y0), (x1, y1) = ((p.intensity, p.measured or p.predicted) for p in (places[start], places[end]))
        arrow = {"arrowstyle": "-|>", "color": BLACK, "linewidth": 1.6, "shrinkA": 7, "shrinkB": 7}
        ax.annotate("", (x1, y1), (x0, y0), arrowprops=arrow | {"connectionstyle": "arc3,rad=0.15"}, zorder=7)
    if bottom > 0.5:
        look = {"linestyle": "", "marker": "o", "markersize": 7, "color": BLACK}
        handles = [
            Line2D([], [], label="predicted", markerfacecolor="white", **look),
            Line2D([], [], label="measured", **look),
        ]
        fig.legend(handles=handles, loc="lower center", ncols=2, borderaxespad=0.2)
    return fig, _finding(points, one, ridges)


def _finding(points: Sequence[Point], roof: Roofline, ridges: Sequence[float]) -> str:
    """The region of each op, and the ratio to the prediction where both are known."""
    found: dict[str, list[str]] = {}
    for point in points:
        ratio = (
            f" at {point.measured / point.predicted:.0%} of the prediction"
            if point.measured and point.predicted
            else ""
        )
        found.setdefault(_region(point.intensity, ridges), []).append(f"{point.label}{ratio}")
    ridge = f"{'Ridge' if len(ridges) == 1 else 'Ridges'} at {', '.join(map(number, ridges))} FLOP/byte."
    return " ".join([ridge, *(f"{name.capitalize()}: {', '.join(ops)}." for name, ops in found.items())])


def _region(intensity: float, ridges: Sequence[float]) -> str:
    if intensity < ridges[0]:
        return "memory-bound"
    return "in between" if intensity < ridges[-1] else "compute-bound"


def _shade(ax: Axes, roofs: Mapping[str, Roofline], ridges: Sequence[float], taken: list) -> None:
    """Tint the regions below the highest roof, grey above it, and the names of the regions along the foot."""
    (low, high), (floor, ceiling) = ax.get_xlim(), ax.get_ylim()
    if len({roof.peak for roof in roofs.values()}) > 1:
        bounds, names = (low, high), [""]  # which of several peaks an op is under is not a question of its intensity
    else:
        bounds, names = (low, *ridges, high), [name for name in _REGIONS if len(ridges) > 1 or name != "in between"]
        bounds = (low, ridges[0], *((ridges[-1],) if len(ridges) > 1 else ()), high)
    for name, (left, right) in zip(names, itertools.pairwise(bounds), strict=True):
        left, right = max(left, low), min(right, high)
        if left >= right:
            continue
        tint, ink = _REGIONS.get(name, ("white", BLACK))
        inner = [ridge for ridge in ridges if left < ridge < right]
        xs = [left, *inner, right]
        tops = [max(roof.attainable(x) for roof in roofs.values()) for x in xs]
        ax.fill_between(xs, floor, tops, color=tint, linewidth=0, zorder=0, label=f"_{name}")
        ax.fill_between(xs, tops, ceiling, color=_ABOVE, linewidth=0, zorder=0, label="_out of reach")
        if name and math.log(right / left) > 0.14 * math.log(high / low):
            look = {"color": INKS[ink], "ha": "center", "weight": "bold"}
            _take(ax, note(ax, name, (math.sqrt(left * right), floor), (0, 8), **look), taken)


def _roof(ax: Axes, name: str, roof: Roofline, dash: Any, thin: bool) -> None:
    """The slanted part and the flat part."""
    low, high = ax.get_xlim()
    ridge = min(max(roof.ridge, low), high)
    top = roof.attainable(ridge)
    style = {"linestyle": dash, "linewidth": 1.1 if thin else 2.6, "marker": "", "zorder": 3, "solid_capstyle": "butt"}
    if low < ridge:
        line = (low, ridge), (roof.attainable(low), top)
        ax.plot(*line, color=BLACK if thin else BLUE, label=f"{name}, memory roof", **style)
    if ridge < high:
        ax.plot((ridge, high), (top, roof.peak), color=BLACK if thin else VERMILLION, label=f"{name}, peak", **style)


def _name_roofs(ax: Axes, roofs: Mapping[str, Roofline], taken: list) -> None:
    """Each peak above the end of its flat part, each bandwidth along its slope; a roof's name where it differs."""
    low, high = ax.get_xlim()
    peaks, slopes = ([getattr(roof, part) for roof in roofs.values()] for part in ("peak", "bandwidth"))
    for place, (name, roof) in enumerate(roofs.items()):
        own_peak, own_slope = peaks.count(roof.peak) == 1, slopes.count(roof.bandwidth) == 1
        flat, slant = units.si(roof.peak, "FLOP/s"), units.si(roof.bandwidth, "B/s")
        if roof.peak not in peaks[:place] and roof.ridge < high:
            text = f"{name}: {flat}" if own_peak or not own_slope else flat
            _take(ax, note(ax, text, (high, roof.peak), (-4, 8), ha="right", zorder=8), taken)
        if roof.bandwidth not in slopes[:place] and roof.ridge > low:
            right = min(roof.ridge, high)
            start, end = (ax.transData.transform((x, roof.attainable(x))) for x in (low, right))
            angle = math.degrees(math.atan2(*(end - start)[::-1]))
            along = 0.42 if len(set(slopes)) < 3 else (0.62, 0.3)[place % 2]  # two slopes may all but coincide
            x, above = low * (right / low) ** along, roof.bandwidth == max(slopes)
            text = f"{name}: {slant}" if own_slope and len(roofs) > 1 else slant
            look = {"rotation": angle, "rotation_mode": "anchor", "ha": "center", "va": "bottom" if above else "top"}
            note(ax, text, (x, roof.attainable(x)), (-3, 4) if above else (3, -4), zorder=8, **look)


def _mark_ridges(ax: Axes, ridges: Sequence[float], roofs: Mapping[str, Roofline], taken: list) -> None:
    """A dot on each ridge and a dotted line to the axis, with its value; values side by side stand at two heights."""
    low, high = ax.get_xlim()
    floor = ax.get_ylim()[0]
    for place, ridge in enumerate(ridge for ridge in ridges if low < ridge < high):
        top = max(roof.peak for roof in roofs.values() if roof.ridge == ridge)
        ax.plot(
            [ridge, ridge], [floor, top], color=BLACK, linewidth=0.9, linestyle=":", marker="", label="_ridge", zorder=2
        )
        ax.plot([ridge], [top], "D", color=BLACK, markersize=5, label="_ridge", zorder=4)
        text = f"ridge {number(ridge)}" if place == 0 else f"{number(ridge)}"
        left = place == 0 and len(ridges) > 1
        look = {"fontsize": 8.5, "weight": "bold", "zorder": 8, "ha": "right" if left else "left"}
        text = note(ax, text, (ridge, floor), (-4 if left else 4, 22 + 13 * (place % 3)), **look)
        _take(ax, text, taken)


def _point(ax: Axes, point: Point, region: str, taken: list) -> None:
    """The marks of an op, and its label at the first place around it that is free."""
    colour, marker = _REGIONS[region][1], {"memory-bound": "o", "in between": "D", "compute-bound": "s"}[region]
    x = point.intensity
    if point.predicted and point.measured:
        ax.plot([x, x], [point.predicted, point.measured], color=GREY, linewidth=0.9, marker="", label="_gap", zorder=4)
    if point.predicted:
        look = {"facecolor": "white", "edgecolor": colour, "linewidth": 1.6, "label": f"{point.label} predicted"}
        ax.scatter([x], [point.predicted], s=52, marker=marker, zorder=5, **look)
    if point.measured:
        look = {"facecolor": colour, "edgecolor": "white", "linewidth": 0.8, "label": f"{point.label} measured"}
        ax.scatter([x], [point.measured], s=56, marker=marker, zorder=6, **look)
    best = None
    for away in (9, 20, 34):
        for right, up in ((1, 0), (1, -1), (-1, 0), (-1, -1), (0, -1), (1, 1), (-1, 1), (0, 1)):
            look = {"ha": {1: "left", 0: "center", -1: "right"}[right], "fontsize": 8.5, "zorder": 7}
            if away > 9:
                look["arrowprops"] = {"arrowstyle": "-", "linewidth": 0.6, "color": GREY, "shrinkA": 0, "shrinkB": 4}
            shift = (right * away * (0.8 if up else 1), up * away * (0.9 if right else 1.2))
            label = note(ax, point.label, (x, point.measured or point.predicted), shift, **look)
            hidden = _overlap(ax, label, taken)
            if best is None or hidden < best[0]:
                if best:
                    best[1].remove()
                best = (hidden, label)
            else:
                label.remove()
            if not hidden:
                _take(ax, label, taken)
                return
    _take(ax, best[1], taken)


def _box(ax: Axes, text: Any) -> tuple[float, float, float, float]:
    text.update_positions(ax.figure.canvas.get_renderer())
    box = Text.get_window_extent(text)  # without the line that leads to it
    return box.x0, box.y0, box.x1, box.y1


def _take(ax: Axes, text: Any, taken: list) -> None:
    taken.append(_box(ax, text))


def _overlap(ax: Axes, text: Any, taken: Sequence[tuple[float, float, float, float]]) -> float:
    """How many square pixels of a text are hidden by what is taken, by roofs, or lie outside the plot."""
    x0, y0, x1, y1 = _box(ax, text)
    hidden = sum(max(min(x1, c) - max(x0, a), 0) * max(min(y1, d) - max(y0, b), 0) for a, b, c, d in taken)
    frame = ax.bbox
    outside = max(frame.x0 - x0, 0) + max(x1 - frame.x1, 0) + max(frame.y0 - y0, 0) + max(y1 - frame.y1, 0)
    for line in ax.lines:
        if line.get_linewidth() > 1 and len(line.get_xdata()) == 2:  # a part of a roof
            (a, b), (c, d) = ax.transData.transform(line.get_xydata())
            for step in range(101):
                u, v = a + (c - a) * step / 100, b + (d - b) * step / 100
                hidden += 30 * (x0 - 2 < u < x1 + 2 and y0 - 1 < v < y1 + 1)
    return hidden + 200 * outside


@drawn("Line chart")
def intensity_curves(
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    ridges: Mapping[str, float],
    title: str,
    xlabel: str,
    crossings: Sequence[tuple[float, float]] = (),
) -> tuple[Figure, str]:
    """Intensity in FLOP/byte against a size, both logarithmic, and a line at each ridge, below which memory limits.

    `curves` maps a name to its sizes and its intensities. With as many ridges as curves, each ridge has the colour of
    its curve; with a single ridge the two sides are tinted. `crossings` are points (size, intensity) to be marked.
    """
    fig, ax = canvas(3.4, title, xlabel, "intensity (FLOP/byte)")
    left, right = min(min(x) for x, _ in curves.values()), max(max(x) for x, _ in curves.values())
    values = [value for _, y in curves.values() for value in y] + list(ridges.values())
    bottom, top = min(values) / 1.6, max(values) * 2.5
    ax.set(xscale="log", yscale="log", xlim=(left, right), ylim=(bottom, top))
    ax.grid(visible=False)
    looks = list(itertools.islice(itertools.cycle(LOOKS), max(len(curves), len(ridges))))
    for (name, (x, y)), (colour, marker, dash) in zip(curves.items(), looks, strict=False):
        look = {"marker": marker if len(x) <= 12 else "", "clip_on": False, "zorder": 3}
        ax.plot(x, y, label=name, color=colour, linestyle=dash, **look)
    past_ends(ax)
    for (name, ridge), (colour, _, _) in zip(ridges.items(), looks, strict=False):
        colour = colour if len(ridges) == len(curves) > 1 else BLACK
        ax.axhline(ridge, color=colour, linewidth=1, label=name, zorder=2)
        note(ax, f"{name}: {number(ridge)}", (left, ridge), (4, 6), fontsize=8.5, color=INKS[colour], label="_ridge")
    for x, y in crossings:
        ax.plot(
            [x], [y], "o", color=BLACK, markerfacecolor="white", markersize=7, zorder=5, label=f"crossing at {x:.3g}"
        )
    for text in dict.fromkeys(f"{x:.0f}" for x, _ in crossings):
        same = [(x, y) for x, y in crossings if f"{x:.0f}" == text]
        x, y = max(same, key=lambda point: point[1])
        ax.plot([x, x], [bottom, y], color=BLACK, linewidth=0.9, linestyle=":", marker="", label="_guide")
        note(ax, text, (x, bottom), (4, 22), weight="bold", zorder=6, label="_crossing")
    if len(ridges) == 1:
        (ridge,) = ridges.values()
        for (name, (tint, ink)), (start, end), va in zip(
            (("memory-bound", _REGIONS["memory-bound"]), ("compute-bound", _REGIONS["compute-bound"])),
            ((bottom, ridge), (ridge, top)), ((0, 8), (0, -8)), strict=True,
        ):  # fmt: skip
            ax.axhspan(start, end, color=tint, linewidth=0, zorder=0, label="_region")
            edge = bottom if name == "memory-bound" else top
            note(ax, name, (right, edge), (-5, va[1]), ha="right", color=INKS[ink], weight="bold", label=name)
    words = ", ".join(f"{x:.0f} (intensity {number(y)})" for x, y in crossings)
    return fig, f"A ridge is crossed at {xlabel} = {words}." if crossings else ""


@drawn("Line chart")
def bandwidth_sweep(
    bandwidths: Mapping[int, float], caches: Mapping[str, int], disturbed: Collection[int] = (), title: str = ""
) -> tuple[Figure, str]:
    """Bandwidth in byte/s against the working set in bytes, both logarithmic, with a line at the size of each cache.

    `bandwidths` maps a working set to the bandwidth measured with it. `disturbed` are the working sets of which no
    quiet sample was taken: they stand as crosses aside of the line. Raises ValueError for disturbed ones that were not
    measured, and where no quiet one is left.
    """
    quiet = {size: rate for size, rate in sorted(bandwidths.items()) if size not in set(disturbed)}
    if not quiet or not set(disturbed) <= set(bandwidths):
        raise ValueError(f"disturbed are some of the {len(bandwidths)} working sets, got {sorted(disturbed)}")
    (first, *_, last) = (*quiet, *quiet)
    fig, ax = canvas(3.2, title or "Bandwidth by working set", "working set", "byte/s")
    ax.plot(list(quiet), list(quiet.values()), color=BLUE, marker="o", label="measured")
    if disturbed:
        marks = sorted(disturbed)
        look = {"marker": "x", "linestyle": "", "color": GREY, "markeredgewidth": 1.8}
        ax.plot(marks, [bandwidths[size] for size in marks], label="disturbed", **look)
        fig.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    low, high = min(bandwidths.values()), max(bandwidths.values())
    ax.set_xscale("log", base=2)
    ax.set(yscale="log", ylim=(low / 1.6, high * 2.4))
    for name, size in caches.items():
        ax.axvline(size, color=BLACK, linewidth=1, linestyle=(0, (4, 3)), marker="", label=f"_{name}")
        note(ax, f"{name}\n{units.iec(size)}", (size, high * 2.2), (3, 0), va="top", fontsize=8.5, bbox=PLATE)
    for size, side in ((first, "left"), (last, "right")):
        note(ax, units.si(quiet[size], "B/s"), (size, quiet[size]), (0, -13), ha=side, weight="bold")
    sizes = sorted(bandwidths)
    step = max(1, len(sizes) // 6)
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.set_xticks(sizes[::step], [units.iec(size) for size in sizes[::step]])
    ax.yaxis.set_major_formatter(EngFormatter(sep=" "))
    ends = " to ".join(f"{units.si(quiet[size], 'B/s')} with {units.iec(size)}" for size in (first, last))
    count = (
        f" {len(disturbed)} of {len(bandwidths)} points are disturbed: {', '.join(map(units.iec, sorted(disturbed)))}."
    )
    return fig, f"From {ends}." + (count if disturbed else "")
