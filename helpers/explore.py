"""The interactive views. Each is an ipywidgets box that a notebook ends a cell with: `explore.float_bits()`.

Where a widget cannot run (GitHub, an exported page, a notebook not yet run) the box shows a picture and a summary.
"""

import html
import math
from collections.abc import Callable
from typing import Any

import ipywidgets as widgets
import torch

from helpers import draw, formats, units
from helpers.formats import FloatFormat
from helpers.roofline import Roofline, intensity


class View(widgets.VBox):
    """A box of controls that also carries a static picture of its first state, for wherever it cannot run."""

    def __init__(self, children: list[widgets.Widget], picture: Callable[[], draw.Figure], alt: str) -> None:
        super().__init__(children)
        self._static = draw.bundle(picture(), alt)

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        data, metadata = self._static
        live = {"version_major": 2, "version_minor": 0, "model_id": self.model_id}
        return {"application/vnd.jupyter.widget-view+json": live, **data}, metadata


_COLUMNS = 32  # bits in a row
# A bit that is set keeps its field's colour; JupyterLab would turn it grey.
_CSS = "".join(
    f"button.bit-{field}, button.bit-{field}.mod-active {{background: {colour} !important; color: black !important; "
    f"font-family: monospace; border: 1px solid transparent}}"
    f"button.bit-{field}.mod-active {{border-color: black !important; font-weight: bold}}"
    for field, colour in draw.FIELDS.items()
)


class FloatBits(View):
    """Click the bits of a number, type a value, or step to the next number; see what the pattern means."""

    def __init__(self, value: float, fmt: FloatFormat) -> None:
        self._format = fmt
        self._updating = False
        self.code = formats.encode(value, fmt)
        label = {"style": {"description_width": "50px"}}
        self.format = widgets.Dropdown(
            options=list(formats.FORMATS), value=fmt.name, description="format", layout={"width": "210px"}, **label
        )
        self.number = widgets.Text(
            description="value",
            continuous_update=False,
            layout={"width": "290px"},
            placeholder="type a number",
            **label,
        )
        self.row = widgets.HBox(layout={"flex_flow": "row wrap"})
        self.buttons = {
            name: widgets.Button(description=name, tooltip=tip, layout={"width": "auto"})
            for name, tip in (
                ("code −1", "the pattern before this one"),
                ("code +1", "the pattern after this one"),
                ("1", "the number one"),
                ("smallest", "the smallest positive number"),
                ("smallest normal", "the smallest number with a hidden 1"),
                ("largest", "the largest finite number"),
                ("infinity", "infinity, where the format has it"),
                ("NaN", "not a number, where the format has it"),
            )
        }
        for name, button in self.buttons.items():
            button.on_click(lambda _, name=name: self._press(name))
        self.text = widgets.HTML()
        self.picture = widgets.Image(format="png", layout={"max_width": "704px"})
        self.format.observe(lambda change: self._change_format(change["new"]), "value")
        self.number.observe(lambda change: self._type(change["new"]), "value")
        self._make_bits()
        self._update()
        head, steps = widgets.HBox([self.format, self.number]), widgets.HBox(list(self.buttons.values()))
        steps.layout.flex_flow = "row wrap"
        super().__init__(
            [
                widgets.HTML(f"<style>{_CSS}</style>", layout={"display": "none"}),
                head,
                self.row,
                steps,
                self.text,
                self.picture,
            ],
            lambda: draw.bits(self.code, self._format),
            f"Interactive view: the bits of a number in {fmt.name}, to be clicked. Shown: {value:g}.",
        )

    def _make_bits(self) -> None:
        fmt = self._format
        width = "42px" if fmt.bits <= 16 else "21px"
        for bit in self.row.children:
            bit.close()
        self.bits = []
        for position, field in enumerate(draw.fields(fmt)):
            weight = fmt.bits - 1 - position
            bit = widgets.ToggleButton(
                tooltip=f"bit {weight}, {field}", layout={"width": width, "padding": "0", "margin": "1px"}
            )
            bit.add_class(f"bit-{field}")
            bit.observe(lambda change, weight=weight: self._flip(weight), "value")
            self.bits.append(bit)
        self.row.layout.width = f"{_COLUMNS * 23 + 8}px" if fmt.bits > 16 else "100%"
        self.row.children = self.bits

    def _update(self, problem: str = "") -> None:
        """Bring every control and the picture in line with the code."""
        fmt, code = self._format, self.code
        self._updating = True
        for bit, digit in zip(self.bits, f"{code:0{fmt.bits}b}", strict=True):
            bit.value, bit.description = digit == "1", digit
        number = formats.decode(code, fmt)
        if not problem:
            self.number.value = repr(number.value)
        self.buttons["infinity"].disabled = fmt.inf_code is None
        self.buttons["NaN"].disabled = fmt.nan_code is None
        self._updating = False
        self.text.value = self._words(number, problem)
        finite = math.isfinite(number.value)
        self.picture.value = draw.png(draw.neighbourhood(number.value, fmt)) if finite else b""
        self.picture.layout.display = None if finite else "none"

    def _words(self, number: formats.Decoded, problem: str) -> str:
        fmt, code = self._format, self.code
        digits = math.ceil(fmt.bits / 4)
        stored = f"sign {number.sign}, exponent {number.exponent}, fraction {number.fraction}"
        lines = [
            f"<b>{html.escape(formats.formula(code, fmt))}</b> ({number.kind})",
            f"code 0x{code:0{digits}x}: {stored} of {1 << fmt.fraction_bits}; bias {fmt.bias}",
        ]
        if math.isfinite(number.value):
            near = formats.neighbours(number.value, fmt)
            below, above = ("none" if x is None else f"{x:.9g}" for x in (near.below, near.above))
            lines.append(f"next number below: {below}; above: {above}")
        if problem:
            lines.insert(0, f'<span role="alert" style="color:{draw.VERMILLION}">{html.escape(problem)}</span>')
        return "<br>".join(lines)

    def _flip(self, weight: int) -> None:
        if not self._updating:
            self.code ^= 1 << weight
            self._update()

    def _press(self, name: str) -> None:
        fmt, last = self._format, (1 << self._format.bits) - 1
        self.code = {
            "code −1": max(self.code - 1, 0),
            "code +1": min(self.code + 1, last),
            "1": formats.encode(1.0, fmt),
            "smallest": 1,
            "smallest normal": 1 << fmt.fraction_bits,
            "largest": fmt.max_code,
            "infinity": fmt.inf_code,
            "NaN": fmt.nan_code,
        }[name]
        self._update()

    def _change_format(self, name: str) -> None:
        """Keep the number, as far as the new format can, and show its bits there."""
        value = formats.decode(self.code, self._format).value
        self._format = formats.find(name)
        no_nan = math.isnan(value) and self._format.nan_code is None
        self.code = 0 if no_nan else formats.encode(value, self._format)
        self._make_bits()
        self._update(f"{name} has no NaN; showing 0 instead." if no_nan else "")

    def _type(self, text: str) -> None:
        if self._updating:
            return
        try:
            self.code = formats.encode(float(text), self._format)
        except ValueError as error:
            reason = str(error) if "has no NaN" in str(error) else f"{text!r} is no number; write it like 0.1 or 6e-8."
            self._update(reason)
        else:
            self._update()


def float_bits(value: float = 1.0, fmt: FloatFormat | str | torch.dtype = "bfloat16") -> FloatBits:
    """The bits of a number in any format, to be clicked: each change shows the number it stands for and its neighbours.

    Raises what `formats.encode` raises for a value or format that there is not.
    """
    return FloatBits(value, formats.find(fmt))


# --- roofline ------------------------------------------------------------------------------------------------------

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
        self._start = roof
        wide = {"style": {"description_width": "100px"}, "layout": {"width": "520px"}, "continuous_update": True}
        self.peak = _log_slider(roof.peak, 10, 16, description="peak, FLOP/s", **wide)
        self.bandwidth = _log_slider(roof.bandwidth, 9, 13.5, description="bandwidth, B/s", **wide)
        self.batch = widgets.SelectionSlider(
            options=[2**power for power in range(17)], value=64, description="batch", **wide
        )
        self.width = widgets.SelectionSlider(
            options=[2**power for power in range(6, 15)], value=4096, description="width", **wide
        )
        self.op = widgets.ToggleButtons(
            options=list(_OPS), value="linear layer", description="op", style={"button_width": "auto"}
        )
        self.reset = widgets.Button(description="back to the start", layout={"width": "170px"})
        self.text = widgets.HTML()
        self.picture = widgets.Image(format="png", layout={"max_width": "704px"})
        for control in (self.peak, self.bandwidth, self.batch, self.width, self.op):
            control.observe(lambda _: self._update(), "value")
        self.reset.on_click(lambda _: self._back())
        self._waiting = False
        self._update()
        super().__init__(
            [self.op, self.peak, self.bandwidth, self.batch, self.width, self.reset, self.text, self.picture],
            self._figure,
            "Interactive roofline: FLOP/s against intensity, both logarithmic, with five ops as points. "
            f"{self._verdict()[1]}",
        )

    @property
    def roof(self) -> Roofline:
        """The machine that the sliders describe."""
        return Roofline(self.peak.value, self.bandwidth.value)

    def _back(self) -> None:
        self._waiting = True  # two sliders, one redraw
        self.peak.value, self.bandwidth.value = self._start.peak, self._start.bandwidth
        self._waiting = False
        self._update()

    def _update(self) -> None:
        if self._waiting:
            return
        lines = self._verdict()
        self.text.value = f"<b>{html.escape(lines[1])}</b><br>" + "<br>".join(
            html.escape(line) for line in (lines[0], *lines[2:])
        )
        self.picture.value = draw.png(self._figure(), quick=True)

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

    def _figure(self) -> draw.Figure:
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
        )


def _log_slider(value: float, low: float, high: float, **style: Any) -> widgets.FloatLogSlider:
    """A slider over powers of ten, its steps laid so that the value is one of them: a browser moves it to a step."""
    step, place = 0.05, math.log10(value)
    low = place - step * math.floor((place - low) / step)
    high = place + step * math.floor((high - place) / step)
    return widgets.FloatLogSlider(value=value, min=low, max=high, step=step, readout_format=".3s", **style)


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
