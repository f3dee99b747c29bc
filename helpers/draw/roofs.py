"""Rooflines with ops under them, and the bandwidth by working set."""

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter, LogLocator, NullFormatter, NullLocator, StrMethodFormatter

from helpers import units
from helpers.draw.drawing import BLACK, BLUE, GREEN, VERMILLION, WIDTH, canvas, drawn, note, wiped
from helpers.draw.labels import Labels, plate
from helpers.roofline import Roofline

# A region by colour, by hatch and by name; the marker of the points in it.
_REGIONS = {
    "memory-bound": ("#E3F0F9", BLUE, "/", "o"),
    "in between": ("#DDF3EB", GREEN, "x", "D"),
    "compute-bound": ("#FCE9DD", VERMILLION, ".", "s"),
}

_DASHES = ("-", (0, (6, 2)), (0, (2, 1.5)), (0, (7, 2, 1.5, 2)), (0, (1, 1)))


@dataclass(frozen=True)
class Point:
    """An op on a roofline plot: its intensity in FLOP/B, and the FLOP/s predicted for it, measured on it, or both."""

    label: str
    intensity: float
    predicted: float | None = None
    measured: float | None = None


@drawn("Roofline plot")
def roofline(
    roofs: Mapping[str, Roofline],
    points: Sequence[Point] = (),
    title: str = "Below the ridge bandwidth is the limit, above it the peak",
    *,
    intensities: tuple[float, float] | None = None,
    rates: tuple[float, float] | None = None,
    datasheet: Collection[str] = (),
    height: float = 4.0,
    again: Figure | None = None,
) -> Figure:
    """Attainable FLOP/s against intensity, both logarithmic: a roof per machine, dtype, unit or memory; ops as points.

    A roof is blue where the bandwidth limits it and vermillion where the peak does; several differ by their dashes, and
    those named in `datasheet` are thin and black. Behind them the regions: memory-bound below every ridge,
    compute-bound above every ridge, and in between what depends on the roof. A point is open and dashed where
    predicted, filled where measured; a thin line joins the two. `intensities` and `rates` are the ends of the axes.
    `again` is such a figure that nobody needs any more, of the same height: to draw on it is quicker.

    Raises ValueError where there is no roof to draw.
    """
    if not roofs:
        raise ValueError("a roofline plot has at least one roof: pass {'name': Roofline(peak, bandwidth)}")
    fig = wiped(again) if again else canvas(height, "", "arithmetic intensity (FLOP/B)", "FLOP/s")[0]
    (ax,) = fig.axes
    ax.set_title(title)
    ridges = [roof.ridge for roof in roofs.values()]
    places = [point.intensity for point in points] + ridges
    low, high = intensities or (min(places) / 8, max(places) * 8)
    heights = [rate for point in points for rate in (point.predicted, point.measured) if rate]
    heights += [rate for roof in roofs.values() for rate in (roof.attainable(low), roof.peak)]
    floor, ceiling = rates or (min(heights) / 1.5, max(heights) * (1.5 * max(heights) / min(heights)) ** 0.2)
    ax.grid(visible=False)  # under the hatches it would only be noise
    ax.set(xscale="log", yscale="log", xlim=(low, high), ylim=(floor, ceiling))
    ax.yaxis.set_major_formatter(EngFormatter(sep=" "))
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    for axis, (start, stop) in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if stop / start < 100 else (1,)))
        axis.set_minor_locator(NullLocator())  # half of the time of a redraw
    for (name, roof), dashes in zip(roofs.items(), itertools.cycle(_DASHES)):
        _roof(ax, name, roof, (low, high), "thin" if name in datasheet else dashes)
    edges = min(ridges), max(ridges)
    for point in points:
        _point(ax, point, _REGIONS[_region(point.intensity, *edges)])
    key = any(point.predicted for point in points) and any(point.measured for point in points)
    if key:
        _key(fig)
    # Margins in inches, instead of a layout that needs several passes: a widget redraws often.
    fig.set_layout_engine("none")
    bottom = 0.78 if key else 0.5
    ax.set_position((0.62 / WIDTH, bottom / height, 1 - 0.82 / WIDTH, 1 - (bottom + 0.28) / height))
    labels = Labels(ax)
    _name_regions(labels, (low, *edges, high))
    for point in points:
        labels.avoid_marks([(point.intensity, rate) for rate in (point.predicted, point.measured) if rate])
    _name_roofs(labels, roofs, (low, high))
    for point in points:
        labels.beside((point.intensity, point.measured or point.predicted), point.label)
    return fig


def _region(intensity: float, first: float, last: float) -> str:
    """The region of an intensity between the lowest and the highest ridge."""
    return "memory-bound" if intensity < first else "in between" if intensity < last else "compute-bound"


def _roof(ax: Axes, name: str, roof: Roofline, ends: tuple[float, float], dashes: Any) -> None:
    """The slanted part and the flat part."""
    thin = dashes == "thin"
    style = {"linestyle": "-" if thin else dashes, "linewidth": 1.0 if thin else 2.4, "marker": "", "zorder": 3}
    low, high = ends
    ridge = min(max(roof.ridge, low), high)
    top = roof.attainable(ridge)
    if low < ridge:
        line = (low, ridge), (roof.attainable(low), top)
        ax.plot(*line, color=BLACK if thin else BLUE, label=f"{name}, memory roof", **style)
    if ridge < high:
        ax.plot((ridge, high), (top, roof.peak), color=BLACK if thin else VERMILLION, label=f"{name}, peak", **style)


def _point(ax: Axes, point: Point, look: tuple[str, str, str, str]) -> None:
    _, colour, _, marker = look
    if point.predicted and point.measured:
        ax.plot([point.intensity] * 2, [point.predicted, point.measured], color="#555555", linewidth=0.9, marker="",
                label="_gap", zorder=4)  # fmt: skip
    if point.predicted:
        ax.scatter([point.intensity], [point.predicted], s=62, marker=marker, facecolor="white", edgecolor=colour,
                   linewidth=1.5, linestyle=(0, (1.6, 0.9)), zorder=5, label=f"{point.label} predicted")  # fmt: skip
    if point.measured:
        ax.scatter([point.intensity], [point.measured], s=52, marker=marker, facecolor=colour, edgecolor="white",
                   linewidth=0.8, zorder=6, label=f"{point.label} measured")  # fmt: skip


def _key(fig: Figure) -> None:
    look = {"linestyle": "", "marker": "o", "markersize": 7}
    predicted = Line2D([], [], markerfacecolor="white", markeredgecolor=BLACK, label="predicted (open, dashed)", **look)
    measured = Line2D([], [], color=BLACK, label="measured (filled)", **look)
    fig.legend(handles=[predicted, measured], loc="lower center", ncols=2, fontsize=9, borderaxespad=0.2)


def _name_regions(labels: Labels, bounds: tuple[float, float, float, float]) -> None:
    """Shade the regions that are in view and write their names along the top."""
    ax, (low, high) = labels.ax, (bounds[0], bounds[-1])
    for (name, (tint, colour, hatch, _)), (left, right) in zip(
        _REGIONS.items(), itertools.pairwise(bounds), strict=True
    ):
        left, right = max(left, low), min(right, high)
        if left < right:
            ax.axvspan(left, right, facecolor=tint, edgecolor=colour, alpha=0.55, hatch=hatch, linewidth=0, zorder=0)
            text = ax.text(math.sqrt(left * right), 0, name, color=BLACK, fontsize=9.5, weight="bold", va="top",
                           ha="center", zorder=8, bbox=plate(colour))  # fmt: skip
            labels.on_top(text)


def _name_roofs(labels: Labels, roofs: Mapping[str, Roofline], ends: tuple[float, float]) -> None:
    """A roof has its name where it differs from the others, and its rates wherever they are not written yet."""
    peaks, slopes = ([getattr(roof, name) for roof in roofs.values()] for name in ("peak", "bandwidth"))
    for place, (name, roof) in enumerate(roofs.items()):
        own_peak = peaks.count(roof.peak) == 1
        own_slope = slopes.count(roof.bandwidth) == 1
        flat, slant = units.si(roof.peak, "FLOP/s"), units.si(roof.bandwidth, "B/s")
        if own_peak or roof.peak not in peaks[:place]:
            labels.on_flat(roof, ends, f"{name}: {flat}" if own_peak or not own_slope else flat)
        if own_slope or roof.bandwidth not in slopes[:place]:
            labels.on_slant(roof, ends, f"{name}: {slant}" if own_slope and not own_peak else slant)


@drawn("Line chart")
def memory_steps(
    bandwidths: Mapping[int, float], caches: Mapping[str, int], title: str = "Each cache that overflows is a step down"
) -> Figure:
    """Byte/s against the working set in byte, both logarithmic, with a line at the size of each cache."""
    fig, ax = canvas(3.1, title, "working set", "B/s")
    ax.plot(list(bandwidths), list(bandwidths.values()), color=BLUE, marker="o", label="measured")
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    low, high = min(bandwidths.values()), max(bandwidths.values())
    ax.set(ylim=(low / 2, high * 3))
    for name, size in caches.items():
        ax.axvline(size, color=BLACK, linewidth=1, linestyle=(0, (4, 3)), marker="", label=f"_{name}")
        note(ax, f"{name}\n{units.iec(size)}", (size, high * 2.8), (3, 0), va="top")
    sizes = sorted(bandwidths)
    for size, side in ((sizes[0], "left"), (sizes[-1], "right")):
        note(ax, units.si(bandwidths[size], "B/s"), (size, bandwidths[size]), (0, -14), ha=side, va="baseline")
    step = max(1, len(sizes) // 6)
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.set_xticks(sizes[::step], [units.iec(size) for size in sizes[::step]])
    ax.yaxis.set_major_formatter(EngFormatter(sep=" "))
    return fig
