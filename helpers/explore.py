"""The interactive views. Each is an ipywidgets box that a notebook ends a cell with: `explore.float_bits()`.

Where a widget cannot run (GitHub, an exported page, a notebook not yet run) the box shows a picture and a summary.
"""

import html
import math
from collections.abc import Callable
from typing import Any

import ipywidgets as widgets
import torch

from helpers import budget, draw, formats, specs, units
from helpers.formats import FloatFormat
from helpers.roofline import Roofline


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
