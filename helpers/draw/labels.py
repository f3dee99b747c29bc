"""What stands in a plot beside its data: named rows, ticks, cells, arrows, and texts where nothing else stands."""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.path import Path as Outline
from matplotlib.text import Annotation, Text
from matplotlib.ticker import LogLocator, NullLocator
from matplotlib.transforms import Bbox

from helpers.draw.drawing import Spot, is_said
from helpers.draw.palette import GREY, INKS


def rows(ax: Axes, names: Iterable[str]) -> None:
    """Name the rows of a chart, the first at the top."""
    names = list(names)
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.grid(axis="y", visible=False)
    ax.tick_params(axis="y", length=0)


def log_ticks(axis: Axis, form: Any = "{x:g}") -> None:
    """Ticks of a logarithmic axis at powers of ten alone, or where these are few at 1, 2, 5, 10, or more of them."""
    low, high = axis.get_view_interval()
    steps: tuple[float, ...] = (1,)
    if high < 10 * low:
        steps = (1, 1.5, 2, 3, 5, 7)
    elif high < 200 * low:
        steps = (1, 2, 5)
    axis.set_major_locator(LogLocator(subs=steps))
    axis.set_major_formatter(form)
    axis.set_minor_locator(NullLocator())


def legend(fig: Figure) -> None:
    """The labelled series of a plot, named below it."""
    fig.legend(loc="outside lower center", ncols=5)


def cell(
    ax: Axes,
    at: Spot,
    text: str = "",
    face: str = "white",
    size: Spot = (1.0, 1.0),
    *,
    said: bool = False,
    **style: Any,
) -> None:
    """A box with a text in it, from its lower left corner; its width and height as `size`."""
    (x, y), (width, height) = at, size
    ax.add_patch(Rectangle(at, width, height, facecolor=face, edgecolor=GREY, linewidth=0.6))
    usual: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 8, "label": "" if said else "_unsaid"}
    ax.text(x + width / 2, y + height / 2 - 0.03, text, **usual | style)


def arrow(ax: Axes, start: Spot, end: Spot, color: str, **style: Any) -> None:
    """An arrow between two places of the plot."""
    style = {"arrowstyle": "->", "color": color, "linewidth": 1.5, "shrinkA": 0, "shrinkB": 0} | style
    ax.annotate("", end, start, arrowprops=style, zorder=5)


def note(ax: Axes, text: str, at: Spot, shift: Spot = (5, 0), *, said: bool = True, **style: Any) -> Annotation:
    """A text beside a place of the plot, shifted from it by so many points; the words of the drawing can leave it out.

    As in a legend of matplotlib, what has a label that begins with an underscore is left out.
    """
    style = {"va": "center", "label": "" if said else "_unsaid"} | style
    return ax.annotate(text, at, xytext=shift, textcoords="offset points", **style)


def past_ends(ax: Axes) -> None:
    """Write the name of each line beside its right end, moved up where two would be closer than 11 points."""
    ax.autoscale_view()  # which waits until the limits are asked for
    points = 72 / ax.figure.dpi  # for a pixel
    ends = []
    for line in filter(is_said, ax.lines):
        x, y = np.asarray(line.get_xydata())[-1]
        ends.append((ax.transData.transform((x, y))[1] * points, (x, y), line))
    lowest = -math.inf
    for height, end, line in sorted(ends, key=lambda entry: entry[0]):
        place = max(height, lowest)
        lowest = place + 11
        ink = INKS[str(line.get_color())]
        note(ax, str(line.get_label()), end, (7, place - height), said=False, color=ink, annotation_clip=False)


class _Place(NamedTuple):
    """Where a label might stand: how many points from its point, to the right and up (−1, 0, 1); the rest in pixels."""

    distance: float
    right: int
    up: int
    box: Bbox
    lead: Outline  # from the point to the middle of the label

    @property
    def alignment(self) -> dict[str, str]:
        """How to align the label, so that it stands beyond the distance."""
        horizontal = {-1: "right", 0: "center", 1: "left"}
        vertical = {-1: "top", 0: "center", 1: "bottom"}
        return {"ha": horizontal[self.right], "va": vertical[self.up]}


_AROUND = ((1, 0), (1, 1), (1, -1), (-1, 0), (-1, -1), (0, -1), (-1, 1), (0, 1))  # right and up, the best first


def _places(point: np.ndarray, size: np.ndarray, dpi: float) -> Iterator[_Place]:
    """All places for a label of this size, around a point and at several distances."""
    for distance, (right, up) in itertools.product((6, 18, 32, 50, 70), _AROUND):
        direction = np.array([right, up])
        middle = point + direction * (distance * dpi / 72 + size / 2)
        box = Bbox([middle - size / 2 - 2, middle + size / 2 + 2])
        yield _Place(distance, right, up, box, Outline([point + 8 * direction, middle]))


class _Occupied:
    """What a label of a plot should not lie on, in pixels: lines, marks and texts."""

    def __init__(self, ax: Axes) -> None:
        cast(Figure, ax.figure).draw_without_rendering()  # settles where the axes lie
        self.frame = ax.bbox
        self.lines: list[Outline] = []
        self.inked = np.empty((0, 2))
        self.boxes = [Text.get_window_extent(text).padded(3) for text in ax.texts]  # of an arrow its start
        for line in ax.lines:
            outline = line.get_transform().transform_path(line.get_path())
            self._add_line(outline)
            if line.get_marker() not in ("", "None"):
                self.boxes += [Bbox([vertex - 7, vertex + 7]) for vertex in np.asarray(outline.vertices)]

    def add(self, place: _Place) -> None:
        """A label stands here."""
        self.boxes.append(place.box.padded(8))
        self._add_line(place.lead)

    def cost(self, place: _Place) -> float:
        """How far away a label would be, how much of it would leave the plot, what it would hide and its lead cross."""
        outside = sum(not self.frame.contains(*corner) for corner in place.box.get_points())
        crossed = sum(map(place.lead.intersects_path, self.lines)) + sum(map(place.lead.intersects_bbox, self.boxes))
        hidden_texts = place.box.count_overlaps(self.boxes)
        hidden_ink = place.box.count_contains(self.inked)
        return 900 * outside + 90 * crossed + 60 * hidden_texts + 4 * hidden_ink + place.distance / 5

    def _add_line(self, outline: Outline) -> None:
        self.lines.append(outline)
        ink = outline.interpolated(1 + 300 // len(outline)).vertices
        self.inked = np.concatenate([self.inked, np.asarray(ink)])


def label_points(ax: Axes, points: Mapping[str, Spot], *, said: bool = True, **style: Any) -> list[Annotation]:
    """Name points where nothing else stands, with a thin lead from further away."""
    occupied = _Occupied(ax)
    lead = {"arrowstyle": "-", "linewidth": 0.6, "color": GREY, "shrinkA": 0, "shrinkB": 4}
    labels = []
    for text, at in points.items():
        label = note(ax, text, at, (0, 0), said=said, arrowprops=lead, **style)
        size = Text.get_window_extent(label).size
        point: np.ndarray = np.array(ax.transData.transform(at))
        place = min(_places(point, np.array(size), ax.figure.dpi), key=occupied.cost)
        label.set(position=(place.distance * place.right, place.distance * place.up), **place.alignment)
        if place.distance <= 6 and label.arrow_patch:
            label.arrow_patch.set_visible(False)
        occupied.add(place)
        labels.append(label)
    return labels
