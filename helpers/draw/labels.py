"""Labels that keep out of each other's way in a roofline plot."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.text import Text

from helpers.draw.drawing import BLACK
from helpers.roofline import Roofline


def plate(colour: str = "white") -> dict[str, Any]:
    """What lies behind a label, so that hatches do not run through it."""
    return {"boxstyle": "square,pad=0.12", "facecolor": "white", "edgecolor": colour, "linewidth": 0.0, "alpha": 0.9}


class Labels:
    """Places labels in a plot one after the other: each at the first of its places that is free, or nearly so.

    What is taken is kept as an array of boxes in pixels (left, bottom, right, top), each with a weight.
    """

    def __init__(self, ax: Axes) -> None:
        self.ax = ax
        self._frame = ax.bbox
        self._renderer = ax.figure.canvas.get_renderer()
        self._boxes = np.empty((0, 5))
        for line in ax.lines:
            (x0, y0), (x1, y1) = self._pixels(line.get_xydata())[[0, -1]]
            steps = np.linspace(0, 1, max(2, int(math.hypot(x1 - x0, y1 - y0) / 5)))
            for step in steps:
                x, y = x0 + step * (x1 - x0), y0 + step * (y1 - y0)
                self._take((x - 2, y - 2, x + 2, y + 2), 1)

    def _pixels(self, points: Any) -> np.ndarray:
        return self.ax.transData.transform(np.asarray(points, dtype=float))

    def _take(self, box: tuple[float, float, float, float], weight: float) -> None:
        self._boxes = np.vstack([self._boxes, [*box, weight]])

    def avoid_marks(self, points: Sequence[tuple[float, float]]) -> None:
        """Keep later labels off these points."""
        for x, y in self._pixels(points):
            self._take((x - 6, y - 6, x + 6, y + 6), 30)

    def _trouble(self, boxes: Sequence[tuple[float, float, float, float]]) -> float:
        """How much is in the way of these boxes, and how far they leave the plot."""
        total, taken, frame = 0.0, self._boxes, self._frame
        for left, bottom, right, top in boxes:
            wide = np.minimum(taken[:, 2], right) - np.maximum(taken[:, 0], left)
            high = np.minimum(taken[:, 3], top) - np.maximum(taken[:, 1], bottom)
            hit = (wide > 0) & (high > 0)
            total += float(taken[hit, 4].sum())
            outside = max(frame.x0 - left, 0) + max(right - frame.x1, 0)
            total += 20 * (outside + max(frame.y0 - bottom, 0) + max(top - frame.y1, 0))
        return total

    def _size(self, text: Text) -> tuple[float, float]:
        """Width and height in pixels, as if the text were not turned."""
        angle = text.get_rotation()
        text.set_rotation(0)
        box = text.get_window_extent(self._renderer)
        text.set_rotation(angle)
        return box.width + 4, box.height + 2

    def _settle(
        self, text: Text, size: tuple[float, float], places: Sequence[tuple[float, float, float]]
    ) -> tuple[float, float]:
        """Move the text's centre to the best of (x, y, malus) in pixels."""
        angle, (width, height) = math.radians(text.get_rotation()), size

        def boxes(x: float, y: float) -> list[tuple[float, float, float, float]]:
            # A slanted label is covered by boxes along its length.
            count = 1 if not angle else max(1, round(width / height))
            w, h = (width, height) if count == 1 else (height, height)
            along = [(i + 0.5) / count - 0.5 for i in range(count)]
            centres = [(x + a * width * math.cos(angle), y + a * width * math.sin(angle)) for a in along]
            return [(cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2) for cx, cy in centres]

        best, x, y = math.inf, 0.0, 0.0
        for across, up, malus in sorted(places, key=lambda place: place[2]):
            if malus >= best:  # the others can only be worse
                break
            if (score := self._trouble(boxes(across, up)) + malus) < best:
                best, x, y = score, across, up
        for box in boxes(x, y):
            self._take(box, 40)
        text.set_position(self.ax.transData.inverted().transform((x, y)))
        return x, y

    def _text(self, content: str, **style: Any) -> Text:
        style = {"fontsize": 9, "ha": "center", "va": "center", "zorder": 7, "bbox": plate()} | style
        text = self.ax.text(1, 1, content, **style)
        text.set_in_layout(False)
        return text

    def on_top(self, text: Text) -> None:
        """At the top edge, moved sideways as far as the names already there ask for."""
        text.set(va="center", in_layout=False)
        width, height = self._size(text)
        centre = self._pixels([(text.get_position()[0], 1)])[0, 0]
        x0, x1 = self._frame.x0 + width / 2, self._frame.x1 - width / 2
        y = self._frame.y1 - height / 2 - 3
        shifts = [shift for step in range(0, 200, 4) for shift in (step, -step)]
        self._settle(text, (width, height), [(min(max(centre + s, x0), x1), y, abs(s) / 8) for s in shifts])

    def on_flat(self, roof: Roofline, ends: tuple[float, float], content: str) -> None:
        """Along the flat part of a roof: at its right end, or further left; above it, or below."""
        if roof.ridge >= ends[1]:
            return
        text = self._text(content, color=BLACK)
        width, height = self._size(text)
        (x0, y), (x1, _) = self._pixels([(max(roof.ridge, ends[0]), roof.peak), (ends[1], roof.peak)])
        x1 -= width / 2 + 3
        x0 = min(x0 + width / 2, x1)
        self._settle(
            text,
            (width, height),
            [
                (x1 + (x0 - x1) * step / 8, y + side * (height / 2 + 2), step / 4 + (side < 0) * 2)
                for step in range(9)
                for side in (1, -1)
            ],
        )

    def on_slant(self, roof: Roofline, ends: tuple[float, float], content: str) -> None:
        """Along the slanted part of a roof, turned with it: above it, or below."""
        right = min(roof.ridge, ends[1])
        if right <= ends[0]:
            return
        (x0, y0), (x1, y1) = self._pixels([(ends[0], roof.attainable(ends[0])), (right, roof.attainable(right))])
        angle = math.atan2(y1 - y0, x1 - x0)
        text = self._text(content, color=BLACK, rotation=math.degrees(angle), rotation_mode="anchor")
        places = []
        for step in (0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8, 0.15, 0.9):
            for side in (1, -1):
                x, y = x0 + step * (x1 - x0), y0 + step * (y1 - y0)
                off = side * 11
                places.append((x - off * math.sin(angle), y + off * math.cos(angle), abs(step - 0.5) + (side < 0) * 2))
        self._settle(text, self._size(text), places)

    def beside(self, point: tuple[float, float], content: str) -> None:
        """Next to a point, on a free side; further away with a thin line to it."""
        (x, y) = self._pixels([point])[0]
        text = self._text(content)
        width, height = self._size(text)
        places = []
        for distance in (8, 16, 28, 44, 64):
            for turn in range(16):
                angle = 2 * math.pi * turn / 16
                dx, dy = math.cos(angle), math.sin(angle)
                places.append((x + dx * (distance + width / 2), y + dy * (distance + height / 2), distance / 8))
        found = self._settle(text, (width, height), places)
        if math.hypot(max(abs(found[0] - x) - width / 2, 0), max(abs(found[1] - y) - height / 2, 0)) > 14:
            end = self.ax.transData.inverted().transform(found)
            self.ax.plot([point[0], end[0]], [point[1], end[1]], color="#555555", linewidth=0.7, marker="",
                         label="_leader", zorder=4.5)  # fmt: skip
