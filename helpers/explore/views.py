"""Two views: their state, and the picture of the first one."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import torch
from traitlets import Dict, Enum, Float, Int, List, TraitError, Unicode, validate

from helpers import draw, formats, specs
from helpers.explore.view import GIVEN, STATE, StateError, View
from helpers.formats import FloatFormat
from helpers.roofline import Roofline

_FIRST = "NVIDIA H100 SXM5"
_SPECS = {spec.name: spec for spec in specs.table()}
_MACHINES = {
    name: {
        "rates": {**spec.vector, **spec.matrix},
        "vector": spec.elementwise,
        "bandwidth": spec.bandwidth,
        "memory": spec.memory,
    }
    for name, spec in _SPECS.items()
}


def _rounded(asked: str, fmt: FloatFormat) -> str:
    """The bits of a number as it was typed. Raises StateError for what is none, or has none in the format."""
    try:
        number = float(asked)
    except ValueError:
        raise StateError(f"asked is a number as text, such as '0.1', or '', got {asked!r}") from None
    try:
        return f"{formats.encode(number, fmt):0{fmt.bits}b}"
    except ValueError as error:
        raise StateError(f"{error}") from None


class Bits(View):
    """The bits of a number in any format, to be clicked: each change shows the number it stands for and its neighbours.

    `format` is a name, `bits` the pattern as text; `asked` is the number as it was asked, rounded anew at each change
    of format, and "" once a bit was changed by hand. Raises what `formats.encode` raises, and StateError, a ValueError,
    where the three do not agree; `set` sets them together.
    """

    kind = "bits"
    format, bits, asked = Enum(list(formats.FORMATS)).tag(**STATE), Unicode().tag(**STATE), Unicode().tag(**STATE)
    formats: Dict = Dict(default_value={name: asdict(fmt) for name, fmt in formats.FORMATS.items()}).tag(**GIVEN)
    lost: Dict = Dict().tag(**GIVEN)  # the number that the first format has lost, and the format
    saturates: List = List(["float8_e4m3fn"]).tag(**GIVEN)  # in torch 2.13, where encode gives NaN

    def __init__(self, value: float = 1.0, fmt: FloatFormat | str | torch.dtype = "bfloat16") -> None:
        known = formats.format_of(fmt)
        pattern = f"{formats.encode(value, known):0{known.bits}b}"
        kept = formats.decode(int(pattern, 2), known).value
        is_number = value == value and value != kept
        gone = is_number and (kept == 0 or not math.isfinite(kept))
        lost = {"asked": f"{value}", "format": known.name} if gone else {}
        super().__init__(format=known.name, bits=pattern, asked=f"{value}", lost=lost)

    @validate("format", "bits", "asked")
    def _agree(self, proposal: dict[str, Any]) -> str:
        state = self._proposed(proposal)
        fmt, bits, asked = formats.format_of(state["format"]), state["bits"], state["asked"]
        if len(bits) != fmt.bits or not set(bits) <= {"0", "1"}:
            raise StateError(
                f"{fmt.name} has {fmt.bits} bits, each 0 or 1, got {bits!r}: set(format=…, bits=…, asked='')"
            )
        if asked and (rounded := _rounded(asked, fmt)) != bits:
            raise StateError(f"{asked} becomes {rounded} in {fmt.name}, not {bits}: set both, or asked to ''")
        return proposal["value"]

    def _drawing(self) -> draw.Drawing:
        return draw.bits(int(self.bits, 2), self.format)


ITEMSIZES = {"float64": 8, "float32": 4, "tfloat32": 4, "bfloat16": 2, "float16": 2} | {
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
    "int8": 1,
    "float4_e2m1fn": 0.5,
}
_CACHED = 1024  # tokens in each sequence's cache
# FLOPs and numbers moved, as terms [factor, power of the batch, power of the width], and the unit that computes.
OPS: dict[str, dict[str, Any]] = {
    "ReLU": {"terms": {"flops": [[1, 1, 1]], "numbers": [[2, 1, 1]]}, "unit": "vector"},
    "GELU, fused": {"terms": {"flops": [[9, 1, 1]], "numbers": [[2, 1, 1]]}, "unit": "vector"},
    "linear layer": {"terms": {"flops": [[2, 1, 2]], "numbers": [[2, 1, 1], [1, 0, 2]]}, "unit": "matrix"},
    "decoding attention": {
        "terms": {"flops": [[4 * _CACHED, 1, 1]], "numbers": [[2 * (_CACHED + 1), 1, 1]]},
        "unit": "matrix",
    },
}


def _beyond(most: float) -> float:
    """A power of ten that leaves room for ten times the most of the table."""
    return 10.0 ** math.ceil(math.log10(10 * most))


# How far each number of the roofline goes, in FLOP/B, FLOP/s and B/s: for Python, the axes and what is dragged.
LIMITS: dict[str, list] = {
    "intensity": [0.05, 5e4],
    "peak": [1e10, _beyond(max(max({**spec.vector, **spec.matrix}.values()) for spec in specs.table()))],
    "bandwidth": [1e9, _beyond(max(spec.bandwidth for spec in specs.table()))],
    "batch": [1, 2**16],
    "width": [1, 2**14],
}
_NARROW: dict[str, Any] = {"op": "linear layer", "batch": 2**16, "width": 512}
_MOVED: dict[str, Any] = {"peak": None, "bandwidth": None}
# What the roofline may ask: for an intensity, or for the ops that get faster; and the state that shows the answer.
_QUESTIONS: dict[str, dict[str, Any]] = {
    "ridge": {
        "kind": "intensity",
        "text": "Up to how many FLOPs per byte does it wait for its memory?",
        "why": "the ridge, where it computes as fast as it moves",
        "after": _MOVED,
    },
    "narrow": {
        "kind": "intensity",
        "text": "A layer of 512 × 512: how many FLOPs per byte does it get to, however large its batch?",
        "why": "as the activations are bytes, too",
        "after": _NARROW,
    },
    "peak": {
        "kind": "ops",
        "text": "If only the peak grows tenfold, which of them get faster?",
        "times": {"peak": 10},
    },
    "bandwidth": {
        "kind": "ops",
        "text": "If only the bandwidth doubles, which of them get faster?",
        "times": {"bandwidth": 2},
    },
}


def _rate(name: str) -> Float:
    """A trait for a rate that may be moved away from the machine's."""
    least, most = LIMITS[name]
    return Float(None, min=least, max=most, allow_none=True).tag(**STATE)


def _whole(name: str, value: int) -> Int:
    """A trait for a size."""
    least, most = LIMITS[name]
    return Int(value, min=least, max=most).tag(**STATE)


class Roof(View):
    """A roofline to be moved: ridge, peak and slope by hand; machine, dtype and op by choice, an op's batch by a drag.

    `asked` are the questions that come first: for the "ridge"; for the intensity that a "narrow" layer gets to; for the
    ops that get faster with ten times the "peak" or twice the "bandwidth". Peak in FLOP/s and bandwidth in B/s are the
    machine's while they are None. Elementwise ops stand under the machine's vector unit, where its rate is known.
    `without` names ops that are left out. Raises TraitError for an unknown machine or dtype, and for an op that is not
    shown, ValueError for an unknown question or op to leave out and, whenever they are set, where the machine has no
    rate for the dtype.
    """

    kind = "roofline"
    machine, dtype = Enum(list(_MACHINES), _FIRST).tag(**STATE), Enum(list(ITEMSIZES), "bfloat16").tag(**STATE)
    op = Enum(list(OPS), "linear layer").tag(**STATE)
    peak, bandwidth = _rate("peak"), _rate("bandwidth")
    batch, width = _whole("batch", 64), _whole("width", 4096)
    machines: Dict = Dict(default_value=_MACHINES).tag(**GIVEN)
    itemsizes: Dict = Dict(default_value=ITEMSIZES).tag(**GIVEN)
    ops: List = List().tag(**GIVEN)
    limits: Dict = Dict(default_value=LIMITS).tag(**GIVEN)
    asked: List = List().tag(**GIVEN)

    def __init__(self, *, asked: Sequence[str] = ("ridge",), without: Sequence[str] = (), **state: Any) -> None:
        if unknown := set(asked).difference(_QUESTIONS):
            raise ValueError(f"no question {min(unknown)!r}: take some of {', '.join(_QUESTIONS)}")
        if unknown := set(without).difference(OPS):
            raise ValueError(f"no op {min(unknown)!r} to leave out: there are {', '.join(OPS)}")
        questions = [Roof(asked=(), **state)._question(name) for name in asked]
        shown = [{"name": name} | op for name, op in OPS.items() if name not in without]
        super().__init__(**state, asked=questions, ops=shown)

    def _question(self, name: str) -> dict[str, Any]:
        question = {"name": name} | _QUESTIONS[name]
        times = question.pop("times", {})
        faster = {what: factor * getattr(self.roof, what) for what, factor in times.items()}
        for what, rate in faster.items():
            if rate > LIMITS[what][1]:
                raise ValueError(f"no question {name!r} here: a {what} of {rate:g} is beyond {LIMITS[what][1]:g}")
        after = question.get("after", faster)
        whole = ("machine", "dtype", "batch", "width", *_MOVED) if faster else after  # what the answer depends on
        before = {what: getattr(self, what) for what in whole}
        return question | {"before": before, "after": after}

    @validate("machine", "dtype")
    def _together(self, proposal: dict[str, Any]) -> str:
        state = self._proposed(proposal)
        _SPECS[state["machine"]].peak(state["dtype"])
        return proposal["value"]

    @validate("op")
    def _is_shown(self, proposal: dict[str, Any]) -> str:
        names = [op["name"] for op in self.ops]
        if names and proposal["value"] not in names:
            raise TraitError(f"{proposal['value']} is left out; there are {', '.join(names)}")
        return proposal["value"]

    @property
    def roof(self) -> Roofline:
        """The machine as it is shown, in FLOP/s and B/s."""
        spec = _SPECS[self.machine]
        peak: float | None = self.peak
        bandwidth: float | None = self.bandwidth
        return Roofline(peak or spec.peak(self.dtype), bandwidth or spec.bandwidth)

    def roof_of(self, op: str) -> Roofline:
        """The roof that an op stands under: with the ceiling of the unit that computes it."""
        vector = _SPECS[self.machine].elementwise
        on_vector = OPS[op]["unit"] == "vector"
        return Roofline(vector, self.roof.bandwidth) if vector and on_vector else self.roof

    def cost(self, op: str) -> tuple[float, float]:
        """The FLOPs and the bytes of an op."""
        flops, numbers = (
            sum(factor * self.batch**b * self.width**d for factor, b, d in OPS[op]["terms"][what])
            for what in ("flops", "numbers")
        )
        return flops, numbers * ITEMSIZES[self.dtype]

    def _words(self) -> str:
        return "\n".join([self._drawing().words, *(question["text"] for question in self.asked)])

    def _drawing(self) -> draw.Drawing:
        points = []
        for name in (op["name"] for op in self.ops):
            flops, nbytes = self.cost(name)
            points.append(draw.Point(name, flops / nbytes, self.roof_of(name).attainable(flops / nbytes)))
        return draw.roofline({self.machine: self.roof}, points, f"{self.machine}, {self.dtype}, batch {self.batch}")
