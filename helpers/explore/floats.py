"""The bits of a number, to be clicked."""

import html
import math

import ipywidgets as widgets
import torch

from helpers import draw, formats
from helpers.explore.view import View, alert
from helpers.formats import FloatFormat

_COLUMNS = 32  # bits in a row


# A bit is a checkbox, which says its name and its state to a screen reader; it looks like a cell with a digit.
_CSS = """
.course-bit {position: relative; color: black}
.course-bit::before {content: "0"; position: absolute; inset: 0; display: grid; place-items: center;
  font-family: monospace; pointer-events: none}
.course-bit:has(:checked)::before {content: "1"; font-weight: bold; box-shadow: inset 0 0 0 1px black}
.course-bit:has(:focus-visible) {outline: 3px solid #0072B2; outline-offset: -3px}
.course-bit input {position: absolute; inset: 0; width: 100%; height: 100%; margin: 0; opacity: 0; cursor: pointer}
.course-bit span {position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%)}
""" + "".join(f".course-{field} {{background: {colour}}}" for field, colour in draw.FIELDS.items())


class FloatBits(View):
    """Click the bits of a number, type a value, or step to the next number; see what the pattern means."""

    def __init__(self, value: float, fmt: FloatFormat) -> None:
        super().__init__()
        self._format = fmt
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
        self.format.observe(lambda change: self._change_format(change["new"]), "value")
        self.number.observe(lambda change: self._type(change["new"]), "value")
        self._make_bits()
        self._update()
        head, steps = widgets.HBox([self.format, self.number]), widgets.HBox(list(self.buttons.values()))
        steps.layout.flex_flow = "row wrap"
        self._open(
            [head, self.row, steps],
            lambda: draw.bits(self.code, self._format).figure,
            "Interactive view, bits to be clicked",
            _CSS,
        )

    def _make_bits(self) -> None:
        fmt = self._format
        width = "42px" if fmt.bits <= 16 else "21px"
        for bit in self.row.children:
            bit.close()
        self.bits = []
        for position, field in enumerate(draw.fields(fmt)):
            weight = fmt.bits - 1 - position
            bit = widgets.Checkbox(
                description=f"bit {weight}, {field}", indent=False, layout={"width": width, "margin": "1px"}
            )
            bit.add_class("course-bit").add_class(f"course-{field}")
            bit.observe(lambda change, weight=weight: self._flip(weight), "value")
            self.bits.append(bit)
        self.row.layout.width = f"{_COLUMNS * 23 + 8}px" if fmt.bits > 16 else "100%"
        self.row.children = self.bits

    def _update(self, problem: str = "") -> None:
        """Bring every control and the picture in line with the code."""
        fmt, code = self._format, self.code
        number = formats.decode(code, fmt)
        with self._quietly():
            for bit, digit in zip(self.bits, f"{code:0{fmt.bits}b}", strict=True):
                bit.value = digit == "1"
            self.number.value = repr(number.value)
        self.buttons["infinity"].disabled = fmt.inf_code is None
        self.buttons["NaN"].disabled = fmt.nan_code is None
        self._say(self._words(number, problem))
        figure = draw.neighbourhood(number.value, fmt).figure if math.isfinite(number.value) else None
        self._show(figure, f"Number line: {number.value:.6g} between its neighbours in {fmt.name}, with the gaps.")

    def _words(self, number: formats.Decoded, problem: str) -> list[str]:
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
            lines.insert(0, alert(problem))
        return lines

    def _flip(self, weight: int) -> None:
        if not self._quiet:
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
        if self._quiet:
            return
        try:
            self.code = formats.encode(float(text), self._format)
        except ValueError as error:
            reason = str(error) if "has no NaN" in str(error) else f"{text!r} is no number; write it like 0.1 or 6e-8."
            self._say(self._words(formats.decode(self.code, self._format), reason))
        else:
            self._update()


def float_bits(value: float = 1.0, fmt: FloatFormat | str | torch.dtype = "bfloat16") -> FloatBits:
    """The bits of a number in any format, to be clicked: each change shows the number it stands for and its neighbours.

    Raises what `formats.encode` raises for a value or format that there is not.
    """
    return FloatBits(value, formats.find(fmt))
