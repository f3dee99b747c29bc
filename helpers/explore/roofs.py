"""A roofline, to be moved."""

import html
import math
from collections.abc import Callable
from typing import Any

import ipywidgets as widgets
from matplotlib.figure import Figure

from helpers import draw, units
from helpers.explore.view import HINT, View
from helpers.roofline import Roofline, intensity

_CACHED = 1024  # tokens in each sequence's cache


# FLOPs and bytes in bfloat16, for a batch and a width.
_OPS: dict[str, Callable[[int, int], tuple[float, float]]] = {
    "ReLU": lambda batch, width: (batch * width, 2 * 2 * batch * width),
    "GELU, fused": lambda batch, width: (9 * batch * width, 2 * 2 * batch * width),
    "linear layer": lambda batch, width: (2 * batch * width**2, 2 * (2 * batch * width + width**2)),
    "a matrix per example": lambda batch, width: (2 * batch * width**2, 2 * (2 * batch * width + batch * width**2)),
    "decoding attention": lambda batch, width: (
        4 * batch * _CACHED * width,
        2 * (2 * batch * _CACHED * width + 2 * batch * width),
    ),
}


class RooflineView(View):
    """Move the roof and the ops under it; the verdict on one op in words. Without a mouse: Tab and the arrow keys."""

    def __init__(self, roof: Roofline) -> None:
        super().__init__()
        self._start = roof
        wide = {"style": {"description_width": "100px"}, "layout": {"width": "520px"}, "tooltip": HINT}
        self.peak = _log_slider(roof.peak, 10, 16, description="peak, FLOP/s", **wide)
        self.bandwidth = _log_slider(roof.bandwidth, 9, 13.5, description="bandwidth, B/s", **wide)
        self.batch = widgets.SelectionSlider(
            options=[2**power for power in range(17)], value=64, description="batch", **wide
        )
        self.width = widgets.SelectionSlider(
            options=[2**power for power in range(6, 15)], value=4096, description="width", **wide
        )
        self.op = widgets.RadioButtons(
            options=list(_OPS), value="linear layer", description="op", orientation="horizontal",
            tooltip="the op of the words below", layout={"width": "auto", "display": "flex", "flex_flow": "row wrap"},
            style={"description_width": "100px"},
        ).add_class("widget-inline-hbox")  # fmt: skip
        self.reset = widgets.Button(description="back to the start", layout={"width": "170px"})
        for control in (self.peak, self.bandwidth, self.batch, self.width, self.op):
            control.observe(lambda _: self._update(), "value")
        self.reset.on_click(lambda _: self._back())
        self._update()
        self._open(
            [self.op, self.peak, self.bandwidth, self.batch, self.width, self.reset],
            self._figure,
            "Interactive roofline with five ops",
        )

    @property
    def roof(self) -> Roofline:
        """The machine that the sliders describe."""
        # A browser sends back what it was given through a logarithm, with the last digits gone.
        start, sliders = (self._start.peak, self._start.bandwidth), (self.peak.value, self.bandwidth.value)
        pairs = zip(sliders, start, strict=True)
        return Roofline(*(first if math.isclose(now, first, rel_tol=1e-6) else now for now, first in pairs))

    def _back(self) -> None:
        with self._quietly():
            self.peak.value, self.bandwidth.value = self._start.peak, self._start.bandwidth
        self._update()

    def _update(self) -> None:
        if self._quiet:
            return
        first, verdict, *others = map(html.escape, self._verdict())
        self._say([f"<b>{verdict}</b>", first, *others])
        self._drawn = figure = self._figure(self._drawn)
        self._show(figure, f"Roofline with five ops. {figure.axes[0].get_title(loc='left')}.")

    def _verdict(self) -> tuple[str, str, str, str]:
        roof, op = self.roof, self.op.value
        flops, nbytes = _OPS[op](self.batch.value, self.width.value)
        found, seconds = intensity(flops, nbytes), roof.seconds(flops, nbytes)
        bound = roof.bound(flops, nbytes)
        share = roof.attainable(found) / roof.peak
        helps = "more bandwidth helps, a higher peak does not"
        if bound == "compute":
            helps = "a higher peak helps, more bandwidth does not"
        return (
            f"batch {self.batch.value}, width {self.width.value}, bfloat16: "
            f"{units.si(flops, 'FLOP')}, {units.si(nbytes, 'B')}, intensity {units.si(found, 'FLOP/B')}",
            f"{op[0].upper()}{op[1:]}: {bound}-bound, the ridge is at {units.si(roof.ridge, 'FLOP/B')}; {helps}.",
            f"to compute {units.si(flops / roof.peak, 's')}, to move {units.si(nbytes / roof.bandwidth, 's')}: "
            f"at least {units.si(seconds, 's')}",
            f"attainable {units.si(roof.attainable(found), 'FLOP/s')}, {share:.1%} of the peak",
        )

    def _figure(self, again: Figure | None = None) -> Figure:
        roofs = {"now": self.roof} | ({"at the start": self._start} if self.roof != self._start else {})
        points = []
        for name, cost in _OPS.items():
            x = intensity(*cost(self.batch.value, self.width.value))
            points.append(draw.Point(f"▸ {name}" if name == self.op.value else name, x, self.roof.attainable(x)))
        bound = self.roof.bound(*_OPS[self.op.value](self.batch.value, self.width.value))
        return draw.roofline(
            roofs,
            points,
            f"{self.op.value}, batch {self.batch.value}: {bound}-bound",
            intensities=(0.05, 2e5),
            rates=(3e9, 1e17),
            datasheet=["at the start"],
            again=again,
        ).figure


def _log_slider(value: float, low: float, high: float, **style: Any) -> widgets.FloatLogSlider:
    """A slider over powers of ten, its steps laid so that the value is one of them: a browser moves it to a step."""
    step, place = 0.05, math.log10(value)
    low = place - step * math.floor((place - low) / step)
    high = place + step * math.floor((high - place) / step)
    return widgets.FloatLogSlider(value=value, min=low, max=high, step=step, readout_format=".4s", **style)


def roofline(peak: float = 989.5e12, bandwidth: float = 3.35e12) -> RooflineView:
    """A roofline to be moved: sliders for peak, bandwidth, batch and width, an op to select, the verdict in words.

    It starts with an H100's bfloat16. Raises ValueError or TypeError for a peak or bandwidth that is none, and for one
    that the sliders do not reach.
    """
    roof = Roofline(peak, bandwidth)
    if not (1e10 <= roof.peak <= 1e16 and 1e9 <= roof.bandwidth <= 10**13.5):
        raise ValueError(
            f"the sliders go from 10 GFLOP/s to 10 PFLOP/s and from 1 GB/s to 31.6 TB/s; got "
            f"{units.si(roof.peak, 'FLOP/s')} and {units.si(roof.bandwidth, 'B/s')}"
        )
    return RooflineView(roof)
