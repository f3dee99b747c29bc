"""The interactive views. Each is an ipywidgets box that a notebook ends a cell with: `explore.float_bits()`.

Where a widget cannot run (GitHub, an exported page, a notebook not yet run) the box shows a picture and a summary.
"""

import html
import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import ipywidgets as widgets
import torch

from helpers import budget, draw, formats, specs, storage, units
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


class Strides(View):
    """Choose shape, stride and offset; see which cells of a storage they touch, and whether a wanted view exists."""

    CELLS = 24
    NO_PRESET = "choose …"
    PRESETS: ClassVar = {
        "4 rows of 6": ("4, 6", "6, 1", 0, "24"),
        "its transpose": ("6, 4", "1, 6", 0, "24"),
        "columns 1 to 3": ("4, 3", "6, 1", 1, "2, 2, 3"),
        "every other row": ("2, 6", "12, 1", 0, "12"),
        "every other column": ("4, 3", "6, 2", 0, "12"),
        "the diagonal": ("4", "7", 0, "2, 2"),
        "three dimensions": ("2, 3, 4", "12, 4, 1", 0, "6, 4"),
        "two of them swapped": ("3, 2, 4", "4, 12, 1", 0, "6, 4"),
        "one row, expanded": ("4, 6", "0, 1", 0, "24"),
        "sliding windows of 4": ("6, 4", "1, 1", 0, "24"),
    }

    def __init__(self, shape: Sequence[int], stride: Sequence[int], offset: int, view: Sequence[int]) -> None:
        self._base = torch.arange(self.CELLS)
        self._updating = False
        style = {"style": {"description_width": "60px"}, "layout": {"width": "220px"}}
        typed = {"continuous_update": False, **style}
        self.preset = widgets.Dropdown(options=[self.NO_PRESET, *self.PRESETS], description="example", **style)
        self.shape = widgets.Text(_listed(shape), description="shape", placeholder="4, 6", **typed)
        self.stride = widgets.Text(_listed(stride), description="stride", placeholder="6, 1", **typed)
        self.offset = widgets.BoundedIntText(offset, min=0, max=self.CELLS - 1, description="offset", **style)
        self.view = widgets.Text(_listed(view), description="view as", placeholder="24", **typed)
        self.text = widgets.HTML()
        self.picture = widgets.Image(format="png", layout={"max_width": "704px"})
        for control in (self.shape, self.stride, self.offset, self.view):
            control.observe(lambda _: self._edit(), "value")
        self.preset.observe(lambda change: self._choose(change["new"]), "value")
        self.tensor = self._made()
        self._update()
        super().__init__(
            [
                widgets.HBox([self.preset, self.view]),
                widgets.HBox([self.shape, self.stride, self.offset], layout={"flex_flow": "row wrap"}),
                self.text,
                self.picture,
            ],
            lambda: self._draw(self.tensor),
            f"Interactive view: shape, stride and offset on {self.CELLS} cells. Shown: {_described(self.tensor)}.",
        )

    def _choose(self, name: str) -> None:
        if name in self.PRESETS:
            self._updating = True
            self.shape.value, self.stride.value, self.offset.value, self.view.value = self.PRESETS[name]
            self._updating = False
            self._update()

    def _edit(self) -> None:
        if not self._updating:
            self.preset.value = self.NO_PRESET  # so that the same example can be chosen again
            self._update()

    def _update(self) -> None:
        """Bring words and picture in line with the controls; for impossible ones the words alone, and no picture."""
        try:
            self.tensor = self._made()
            lines = [*self._words(), self._view_words()]
        except ValueError as error:
            problem = html.escape(str(error))
            self.text.value = f'<span role="alert" style="color:{draw.VERMILLION}">{problem}</span>'
            self.picture.layout.display = "none"
            return
        self.text.value = "<br>".join(lines)
        self.picture.value = draw.png(self._draw(self.tensor), quick=True)
        self.picture.layout.display = None

    def _made(self) -> torch.Tensor:
        """The tensor that the controls ask for. Raises ValueError with a sentence for the learner."""
        shape, stride = _read(self.shape.value, "shape"), _read(self.stride.value, "stride")
        offset = self.offset.value
        if len(shape) != len(stride):
            raise ValueError(f"shape has {len(shape)} numbers and stride {len(stride)}: each dimension has one stride.")
        if len(shape) > 3 or math.prod(shape) > draw.MOST_CELLS:
            raise ValueError(f"the picture holds 3 dimensions and {draw.MOST_CELLS} elements; make the shape smaller.")
        last = offset + sum((size - 1) * step for size, step in zip(shape, stride, strict=True))
        if math.prod(shape) and last >= self.CELLS:
            raise ValueError(f"the last element would be at offset {last}; the storage ends at {self.CELLS - 1}.")
        return torch.as_strided(self._base, shape, stride, offset)

    def _draw(self, t: torch.Tensor) -> draw.Figure:
        return draw.storage(t, f"{_described(t)} of {self.CELLS} cells")

    def _words(self) -> list[str]:
        t = self.tensor
        touched = draw.offsets(t)
        law = " + ".join([str(t.storage_offset()), *(f"i{k} × {step}" for k, step in enumerate(t.stride()))])
        shared = t.numel() - len(set(touched))
        again = f", {shared} times a cell that another element has too" if shared else ""
        order = " ".join(map(str, touched[:24])) + (" …" if len(touched) > 24 else "")
        return [
            f"<b>offset of an element = {law}</b>",
            f"touched in order: {order}",
            f"{t.numel()} elements{again}; {storage.touched_bytes(t)} B touched of {self._base.nbytes} B "
            f"(int64); <b>{'contiguous' if t.is_contiguous() else 'not contiguous'}</b>",
        ]

    def _view_words(self) -> str:
        wanted = _read(self.view.value, "view as", lowest=-1)
        plan = storage.plan_view(self.tensor.shape, self.tensor.stride(), wanted)
        call = f"view({_listed(wanted)})"
        if plan.stride is None:
            return f"✗ {call} does not exist: {plan.reason}"
        return f"✓ {call} exists, with stride {plan.stride}: {plan.reason}"


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def _described(t: torch.Tensor) -> str:
    kind = "contiguous" if t.is_contiguous() else "not contiguous"
    return f"{t.numel()} elements, {kind}, touch {len(set(draw.offsets(t)))}"


def _read(text: str, name: str, lowest: int = 0) -> tuple[int, ...]:
    """The whole numbers in a text such as "4, 6" or "(4, 6)"; none for a tensor without dimensions."""
    parts = text.replace(",", " ").strip(" ()[]").split()
    try:
        numbers = tuple(int(part) for part in parts)
    except ValueError:
        raise ValueError(f"{name} is {text!r}: write whole numbers with commas, like 4, 6.") from None
    if any(number < lowest for number in numbers):
        raise ValueError(f"{name} is {text!r}: torch has no negative sizes or strides.")
    return numbers


def strides(
    shape: Sequence[int] = (4, 6), stride: Sequence[int] = (6, 1), offset: int = 0, view: Sequence[int] = (24,)
) -> Strides:
    """Shape, stride and offset as controls: the cells touched, in order, and whether a wanted view exists and why.

    Raises ValueError for a tensor that does not fit on the 24 cells of the storage.
    """
    return Strides(shape, stride, offset, view)


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


_MACHINES = (
    "NVIDIA A100 SXM4 80GB",
    "NVIDIA H100 SXM5",
    "NVIDIA H200 SXM",
    "NVIDIA B200 (HGX, per GPU)",
    "NVIDIA L40S",
    "NVIDIA GeForce RTX 4090",
    "AMD Instinct MI300X",
    "Google TPU v5e",
)


class Budget(View):
    """Choose a model, a machine and a load; see what fits on each device and what bounds the step."""

    def __init__(self, model: str, machine: str, task: str) -> None:
        wide = {"style": {"description_width": "110px"}, "layout": {"width": "330px"}}
        self.model = widgets.Dropdown(options=list(budget.MODELS), value=model, description="model", **wide)
        self.machine = widgets.Dropdown(options=_MACHINES, value=machine, description="machine", **wide)
        self.task = widgets.Dropdown(options=("training", "decoding"), value=task, description="task", **wide)
        powers = {"options": [2**power for power in range(15)], "continuous_update": False}
        self.devices = widgets.SelectionSlider(description="devices", value=8, **powers, **wide)
        self.batch = widgets.SelectionSlider(description="", value=1, **powers, **wide)
        lengths = powers | {"options": [2**power for power in range(7, 18)]}
        self.tokens = widgets.SelectionSlider(description="tokens each", value=4096, **lengths, **wide)
        self.recompute = widgets.Checkbox(description="recompute activations", indent=True, **wide)
        self.text = widgets.HTML()
        self.picture = widgets.Image(format="png", layout={"max_width": "704px"})
        for control in (self.model, self.machine, self.task, self.devices, self.batch, self.tokens, self.recompute):
            control.observe(lambda _: self._update(), "value")
        self._update()
        rows = [(self.model, self.machine), (self.task, self.devices), (self.batch, self.tokens), (self.recompute,)]
        super().__init__(
            [*(widgets.HBox(row, layout={"flex_flow": "row wrap"}) for row in rows), self.text, self.picture],
            self._figure,
            f"Interactive view: memory by term against a device, and the two times of a step. Shown: {task} {model}.",
        )

    def _update(self) -> None:
        training = self.task.value == "training"
        self.batch.description = "texts per device" if training else "texts in all"
        self.recompute.disabled = not training
        self.text.value = self._words()
        self.picture.value = draw.png(self._figure(), quick=True)

    @property
    def budget(self) -> budget.Budget:
        """The budget of the step that the controls describe, per device."""
        model, batch = budget.MODELS[self.model.value], self.batch.value
        if self.task.value == "decoding":
            return budget.decoding(model, batch, self.tokens.value, devices=self.devices.value)
        return budget.training(
            model, batch, self.tokens.value, devices=self.devices.value, recompute=self.recompute.value
        )

    @property
    def roof(self) -> Roofline:
        """The roofline of one device, in dense bfloat16."""
        spec = specs.find(self.machine.value)
        return Roofline(spec.peak("bfloat16"), spec.bandwidth)

    def _figure(self) -> draw.Figure:
        step, spec = self.budget, specs.find(self.machine.value)
        fits = "fits" if step.total <= spec.memory else "does not fit"
        title = f"{self.model.value}, {self.task.value}: {fits}, bound by {_BOUND[step.bound(self.roof)]}"
        return draw.budget(step.memory, spec.memory, step.times(self.roof), title)

    def _words(self) -> str:
        step, spec = self.budget, specs.find(self.machine.value)
        room = spec.memory - step.total
        fits = f"{units.si(room, 'B')} left" if room >= 0 else f"{units.si(-room, 'B')} too much"
        seconds = max(step.times(self.roof))
        texts = self.batch.value
        made = texts * self.tokens.value * self.devices.value if self.task.value == "training" else texts
        word = "token" if made == 1 else "tokens"
        share = step.flops / seconds / self.roof.peak
        lines = [
            f"Per device: {units.si(step.total, 'B')} of {units.si(spec.memory, 'B')}, <b>{fits}</b>.",
            f"A step takes at least {units.duration(seconds)} for {units.si(made, word)}: "
            f"at most {units.si(made / seconds, 'tokens/s')}, arithmetic at {share:.2g} of its peak.",
        ]
        return "<br>".join(lines)


_BOUND = {"memory": "memory", "compute": "arithmetic"}


def transformer_budget(model: str = "Llama 3 8B", machine: str = "NVIDIA H100 SXM5", task: str = "training") -> Budget:
    """A transformer's budget on a machine, to be changed: model, machine, devices, batch, length and recomputation.

    Raises ValueError for a model, a machine or a task that is not on the list.
    """
    for chosen, known in ((model, budget.MODELS), (machine, _MACHINES), (task, ("training", "decoding"))):
        if chosen not in known:
            raise ValueError(f"{chosen!r} is not on the list; take one of {', '.join(known)}")
    return Budget(model, machine, task)
