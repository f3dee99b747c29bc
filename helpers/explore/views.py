"""The four views: their state, what is wrong with one, and the picture of the first."""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any

import torch
from traitlets import Bool, Dict, Float, Int, List, Unicode, validate

from helpers import budget, draw, formats, specs
from helpers.explore.view import View, constant, state
from helpers.formats import FloatFormat
from helpers.model import Config
from helpers.roofline import Roofline

_MACHINES = [
    {"name": spec.name, "rates": {**spec.vector, **spec.matrix}, "bandwidth": spec.bandwidth, "memory": spec.memory}
    for spec in specs.table()
]


class Bits(View, module="bits.js"):
    """A number as its bits: `format` is a name, `bits` the pattern as text. `show` sets both."""

    format, bits = state(Unicode()), state(Unicode())
    formats = constant(List(default_value=[asdict(fmt) for fmt in formats.FORMATS.values()]))
    _check = validate("format", "bits")(View.checked)

    def show(self, value: float, fmt: FloatFormat | str | torch.dtype | None = None) -> None:
        """Show a number, in this format or in another. Raises what `formats.encode` raises."""
        self.change(**_pattern(value, fmt or self.format))

    @property
    def value(self) -> float:
        """The number that the pattern stands for."""
        return formats.decode(int(self.bits, 2), self.format).value

    def problem(self, format: str, bits: str) -> str:
        """What is wrong with a state, or ""."""
        if format not in formats.FORMATS:
            return f"there is no format {format!r}; there are {', '.join(formats.FORMATS)}"
        count = formats.FORMATS[format].bits
        right = len(bits) == count and set(bits) <= set("01")
        return "" if right else f"{format} has {count} bits, each 0 or 1; this is {bits!r}; `show` sets format and bits"

    def drawing(self) -> draw.Drawing:
        """The pattern of the number."""
        return draw.bits(int(self.bits, 2), self.format)


def _pattern(value: float, fmt: FloatFormat | str | torch.dtype) -> dict[str, str]:
    fmt = formats.find(fmt)
    return {"format": fmt.name, "bits": f"{formats.encode(value, fmt):0{fmt.bits}b}"}


def float_bits(value: float = 1.0, fmt: FloatFormat | str | torch.dtype = "bfloat16") -> Bits:
    """The bits of a number in any format, to be clicked: each change shows the number it stands for and its neighbours.

    Raises what `formats.encode` raises for a value or format that there is not.
    """
    return Bits(**_pattern(value, fmt))


class Strides(View, module="strides.js"):
    """Shape, stride and offset on a storage of 24 int64 cells, and the shape of a view that is `wanted` of them."""

    shape, stride, wanted = (state(List(Int())) for _ in range(3))
    offset = state(Int())
    cells, most = constant(Int(24)), constant(Int(96))
    _check = validate("shape", "stride", "offset", "wanted")(View.checked)

    @property
    def tensor(self) -> torch.Tensor:
        """The tensor that the state describes; its values are the offsets."""
        return torch.as_strided(torch.arange(self.cells), self.shape, self.stride, self.offset)

    def problem(self, shape: Sequence[int], stride: Sequence[int], offset: int, wanted: Sequence[int]) -> str:
        """What is wrong with a state, or ""."""
        if len(shape) != len(stride):
            return f"shape has {len(shape)} numbers and stride {len(stride)}: each dimension has one stride"
        if min((*shape, *stride, offset)) < 0 or min(wanted, default=0) < -1:
            return "torch has no negative sizes, strides or offsets"
        if len(shape) > 3 or math.prod(shape) > self.most:
            return f"the picture holds 3 dimensions and {self.most} elements; make the shape smaller"
        last = offset + sum((n - 1) * step for n, step in zip(shape, stride, strict=True)) * (0 not in shape)
        return f"the last element would be at offset {last}; the storage ends at 23" if last >= self.cells else ""

    def drawing(self) -> draw.Drawing:
        """The tensor above its storage."""
        t = self.tensor
        return draw.storage(t, f"shape {tuple(t.shape)}, stride {t.stride()}, offset {t.storage_offset()}")


def strides(
    shape: Sequence[int] = (4, 6), stride: Sequence[int] = (6, 1), offset: int = 0, view: Sequence[int] = (24,)
) -> Strides:
    """Shape, stride and offset, to be moved: the cells touched, in order, and whether a wanted view exists and why.

    Raises ValueError for a tensor that does not fit on the 24 cells of the storage.
    """
    return Strides(shape=list(shape), stride=list(stride), offset=offset, wanted=list(view))


ITEMSIZES = {"float64": 8, "float32": 4, "tfloat32": 4, "bfloat16": 2, "float16": 2} | {
    "float8_e4m3fn": 1, "float8_e5m2": 1, "int8": 1, "float4_e2m1fn": 0.5,
}  # fmt: skip
_CACHED = 1024  # tokens in each sequence's cache

# FLOPs and numbers moved, of a batch and a width.
OPS: dict[str, Callable[[int, int], tuple[int, int]]] = {
    "ReLU": lambda batch, width: (batch * width, 2 * batch * width),
    "GELU, fused": lambda batch, width: (9 * batch * width, 2 * batch * width),
    "linear layer": lambda batch, width: (2 * batch * width**2, 2 * batch * width + width**2),
    "a matrix per example": lambda batch, width: (2 * batch * width**2, 2 * batch * width + batch * width**2),
    "decoding attention": lambda batch, width: (4 * batch * _CACHED * width, 2 * batch * width * (_CACHED + 1)),
}


class Roof(View, module="roofline.js"):
    """A machine and five ops under its roof, one of them looked at. `peak` and `bandwidth` are None until moved."""

    machine, dtype, op = (state(Unicode()) for _ in range(3))
    peak, bandwidth = (state(Float(None, allow_none=True)) for _ in range(2))
    batch, width = state(Int(64)), state(Int(4096))
    machines, itemsizes = constant(List(default_value=_MACHINES)), constant(Dict(default_value=ITEMSIZES))
    cached = constant(Int(_CACHED))
    _check = validate("machine", "dtype", "op", "peak", "bandwidth", "batch", "width")(View.checked)

    @property
    def roof(self) -> Roofline:
        """The machine as it is shown, in FLOP/s and B/s."""
        spec = specs.find(self.machine)
        return Roofline(self.peak or spec.peak(self.dtype), self.bandwidth or spec.bandwidth)

    def cost(self, op: str) -> tuple[float, float]:
        """The FLOPs and the bytes of an op."""
        flops, numbers = OPS[op](self.batch, self.width)
        return flops, numbers * ITEMSIZES[self.dtype]

    def problem(self, machine: str, dtype: str, op: str, peak: Any, bandwidth: Any, batch: int, width: int) -> str:
        """What is wrong with a state, or ""."""
        if not (spec := specs.find(machine)) or op not in OPS:
            return f"{machine!r} is no machine of helpers/specs.toml, or {op!r} none of {', '.join(OPS)}"
        try:
            peak, bandwidth = peak or spec.peak(dtype), bandwidth or spec.bandwidth
        except ValueError as error:
            return str(error)
        if not (1e10 <= peak <= 2e16 and 1e9 <= bandwidth <= 3.2e13 and 0.1 <= peak / bandwidth <= 1e5):
            return "the picture holds 10 GFLOP/s to 20 PFLOP/s, 1 GB/s to 32 TB/s, and a ridge of 0.1 to 100 kFLOP/B"
        fits = 1 <= batch <= 65536 and 1 <= width <= 16384
        return "" if fits else "a batch goes from 1 to 65536 and a width from 1 to 16384"

    def drawing(self) -> draw.Drawing:
        """The roof with its ops."""
        at = {op: flops / nbytes for op, (flops, nbytes) in ((op, self.cost(op)) for op in OPS)}
        points = [draw.Point(op, x, self.roof.attainable(x)) for op, x in at.items()]
        return draw.roofline({self.machine: self.roof}, points, f"{self.machine}, {self.dtype}, batch {self.batch}")


def roofline(
    machine: str = "NVIDIA H100 SXM5",
    dtype: str = "bfloat16",
    peak: float | None = None,
    bandwidth: float | None = None,
) -> Roof:
    """A roofline to be moved: ridge, peak and slope by hand, machine, dtype, op and batch by choice.

    Peak in FLOP/s and bandwidth in B/s, the machine's if not given. Raises ValueError for what the picture cannot hold.
    """
    return Roof(machine=machine, dtype=dtype, peak=peak, bandwidth=bandwidth, op="linear layer")


def _kept(config: Config, precision: str, recompute: bool = False) -> tuple[float, float]:
    """The bytes kept for the backward pass: so many per token of each text, and so many per token."""
    one, two = (
        budget.training(config, batch, 1, precision=precision, recompute=recompute).memory["activations"]
        for batch in (1, 2)
    )
    return two - one, 2 * one - two


def _facts(config: Config) -> dict[str, Any]:
    """What the browser needs of a model."""
    head, more = config.vocabulary * config.width, replace(config, layers=config.layers + 1)
    kept = {
        name: {"all": _kept(config, name), "more": _kept(more, name), "recomputed": _kept(config, name, True)}
        for name in budget.PRECISIONS
    }
    return {
        **{name: getattr(config, name) for name in ("name", "parameters", "matrices", "vocabulary")},
        **{"kept": kept, "kv": budget.kv_bytes(config, 1), "attention": config.layers * config.width},
        **{"head": head, "table": 0 if config.tied else head},
    }


_PRECISIONS = {name: asdict(precision) for name, precision in budget.PRECISIONS.items()}
_PRECISIONS["float8_e4m3fn"] = dict.fromkeys(_PRECISIONS["float32"], 0) | {"weight": 1}  # to decode with


class Plan(View, module="budget.js"):
    """A model on a machine in a precision: training or decoding, with so many devices, texts and tokens in each."""

    model, machine, task, precision = (state(Unicode()) for _ in range(4))
    devices, batch, tokens, recompute = state(Int(8)), state(Int(1)), state(Int(4096)), state(Bool())
    models = constant(List(default_value=[_facts(config) for config in budget.MODELS.values()]))
    machines, precisions = constant(List(default_value=_MACHINES)), constant(Dict(default_value=_PRECISIONS))
    _check = validate("model", "machine", "task", "precision", "devices", "batch", "tokens", "recompute")(View.checked)

    @property
    def roof(self) -> Roofline:
        """The roofline of one device, in FLOP/s and B/s."""
        spec = specs.find(self.machine)
        return Roofline(spec.peak(self.precision.removeprefix("mixed ")), spec.bandwidth)

    @property
    def step(self) -> budget.Step:
        """What a step needs on each device."""
        model, sizes = budget.MODELS[self.model], {"batch": self.batch, "tokens": self.tokens, "devices": self.devices}
        if self.task == "decoding":
            return budget.decoding(model, **sizes, itemsize=_PRECISIONS[self.precision]["weight"])
        return budget.training(model, **sizes, precision=self.precision, recompute=self.recompute)

    def problem(self, model: str, machine: str, task: str, precision: str, recompute: bool, **sizes: int) -> str:
        """What is wrong with a state, or ""."""
        for chosen, known in (
            (model, budget.MODELS), (machine, [spec.name for spec in specs.table()]), (task, ("training", "decoding")),
            (precision, budget.PRECISIONS if task == "training" else _PRECISIONS),
        ):  # fmt: skip
            if chosen not in known:
                return f"{chosen!r} is not on the list; take one of {', '.join(known)}"
        try:
            specs.find(machine).peak(precision.removeprefix("mixed "))
        except ValueError as error:
            return str(error)
        most = {"devices": 2**14, "batch": 2**14, "tokens": 2**17}
        over = [f"{name} goes from 1 to {most[name]}" for name, size in sizes.items() if not 1 <= size <= most[name]]
        return "; ".join(over)

    def drawing(self) -> draw.Drawing:
        """The memory against the device, and the two times."""
        title = f"{self.model} on {self.machine}, {self.task}"
        return draw.memory_and_time(
            self.step.memory, specs.find(self.machine).memory, self.step.times(self.roof), title
        )


def transformer_budget(model: str = "Llama 3 8B", machine: str = "NVIDIA H100 SXM5", task: str = "training") -> Plan:
    """A transformer's budget on a machine, to be changed: model, machine, precision, devices, batch, context.

    Raises ValueError for a model, a machine or a task that is not on the list.
    """
    return Plan(model=model, machine=machine, task=task, precision="mixed bfloat16")
