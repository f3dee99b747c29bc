"""A block of weights that share a scale: one is dragged outwards, and the others pay for it."""

import math
import struct
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import torch
from traitlets import Dict, Enum, Float, Int, List, validate

from helpers import formats
from helpers.explore.view import GIVEN, STATE, StateError, View

SHOWN = 64  # weights: four rows of 16
_LANE = 16
_REACH = 64  # standard deviations, to the end of the axis


@dataclass(frozen=True)
class Quantiser:
    """How numbers of few bits are stored: the levels from 0 up, and the rule of the scale that a block shares.

    "power" brings the largest magnitude to between the largest power of two among the levels and its double; what then
    exceeds the largest level becomes it (OCP Microscaling Formats 1.0). "float32" brings it to the largest
    level. So does "e4m3", with a scale rounded to E4M3, times one float32 number for the whole matrix, which brings its
    largest scale to 448 (NVIDIA's NVFP4). `bits` are those of a number, `scale_bits` those of a scale; `block` is how
    many numbers share one, 0 for a row.
    """

    levels: tuple[float, ...]
    bits: int
    rule: str
    scale_bits: int
    block: int
    standard: bool = False  # whether its block size is part of its definition

    @property
    def largest(self) -> float:
        """The largest level."""
        return self.levels[-1]


def _levels(name: str) -> tuple[float, ...]:
    return tuple(value for value in formats.values(name) if value >= 0)


_E2M1, _E4M3 = _levels("float4_e2m1fn"), _levels("float8_e4m3fn")
QUANTISERS = {
    "MXFP4": Quantiser(_E2M1, 4, "power", 8, 32, standard=True),
    "NVFP4": Quantiser(_E2M1, 4, "e4m3", 8, 16, standard=True),
    "int4": Quantiser(tuple(map(float, range(8))), 4, "float32", 32, 32),
    "int8": Quantiser(tuple(map(float, range(128))), 8, "float32", 32, 0),
    "E4M3": Quantiser(_E4M3, 8, "float32", 32, 0),
}


def _float32(x: float) -> float:
    return struct.unpack("f", struct.pack("f", x))[0]


def _nearest(x: float, levels: tuple[float, ...]) -> float:
    """The level nearest to a magnitude; of two equally near ones that with the even code, as in `formats.encode`."""
    return min(enumerate(levels), key=lambda pair: (abs(x - pair[1]), pair[0] % 2))[1]


def scale_of(largest: float, fmt: Quantiser, whole: float) -> float:
    """The scale of a block with this largest magnitude, in a matrix whose largest is `whole`.

    >>> scale_of(7.0, QUANTISERS["MXFP4"], 7.0), scale_of(8.0, QUANTISERS["MXFP4"], 8.0)
    (1.0, 2.0)
    """
    if largest == 0:
        return 0.0
    if fmt.rule == "power":
        return 2.0 ** (math.frexp(largest)[1] - math.frexp(fmt.largest)[1])
    if fmt.rule == "float32":
        return _float32(largest / fmt.largest)
    of_all = _float32(whole / (fmt.largest * _E4M3[-1]))
    return _nearest(largest / fmt.largest / of_all, _E4M3) * of_all


def store(value: float, scale: float, fmt: Quantiser) -> float:
    """What is kept of a number under a scale."""
    if scale == 0:
        return 0.0
    return math.copysign(_nearest(abs(value) / scale, fmt.levels) * scale, value)


class Weights(View):
    """The first 64 weights of a matrix over the levels of a format; each is dragged, and the edge of a block, too.

    `values` are the weights as they are now, `chosen` is the place of one of them; `format` is one of QUANTISERS, and
    `block` how many weights share a scale: 16, 32, 64, a row or the whole matrix. `times` is how much larger the first
    question makes the first weight. Raises ValueError for a matrix of fewer than 2 rows or 65 columns, for one whose
    weights are all the same or not finite, and for a value beyond the end of the axis, 64 standard deviations from 0.
    """

    kind = "weights"
    answers: ClassVar = {"zeros": (0, SHOWN)}
    format = Enum(list(QUANTISERS), "MXFP4").tag(**STATE)
    block, chosen = Int(32).tag(**STATE), Int(0, min=0, max=SHOWN - 1).tag(**STATE)
    values: List = List(Float()).tag(**STATE)
    weights: List = List(Float()).tag(**GIVEN)
    formats: Dict = Dict().tag(**GIVEN)
    scales: List = List(list(_E4M3)).tag(**GIVEN)  # that E4M3 has
    blocks: List = List().tag(**GIVEN)  # [weights, the largest magnitude among those that are not shown]
    spread, reach = Float(1.0).tag(**GIVEN), Float(math.inf).tag(**GIVEN)
    asked: Dict = Dict().tag(**GIVEN)

    def __init__(self, matrix: torch.Tensor, times: float = 10, **state: Any) -> None:
        if matrix.dim() != 2 or matrix.shape[0] < 2 or matrix.shape[1] <= SHOWN:
            shape = tuple(matrix.shape)
            raise ValueError(f"pass a matrix of at least 2 rows and {SHOWN + 1} columns; this has shape {shape}")
        numbers = matrix.detach().double().abs()
        if not numbers.isfinite().all():
            raise ValueError("the matrix holds infinity or NaN: no scale reaches so far")
        if not 0 < times < math.inf:
            raise ValueError(f"times is a finite factor above 0, got {times}")
        row, everything = numbers[0, SHOWN:].max().item(), numbers.flatten()[SHOWN:].max().item()
        blocks = [[16, 0.0], [32, 0.0], [64, 0.0], [numbers.shape[1], row], [numbers.numel(), everything]]
        known = {name: asdict(replace(fmt, block=fmt.block or numbers.shape[1])) for name, fmt in QUANTISERS.items()}
        # Its last digits depend on how many threads add up.
        spread = float(f"{matrix.double().std().item():.6g}")
        if not spread > 0:
            raise ValueError("all weights are the same number: there is nothing to choose a scale for")
        first = [float(f"{value:.6g}") for value in matrix[0, :SHOWN].double().tolist()]
        fixed: dict[str, Any] = {
            "blocks": blocks,
            "formats": known,
            "spread": spread,
            "reach": float(f"{_REACH * spread:.3g}"),
            "weights": first,
        }
        fixed["asked"] = {"times": times, "format": state.get("format", "MXFP4"), "block": state.get("block", 32)}
        super().__init__(**fixed, **{"values": first} | state)

    @validate("values")
    def _inside(self, proposal: dict[str, Any]) -> list[float]:
        values = proposal["value"]
        if len(values) != SHOWN or not all(abs(value) <= self.reach for value in values):
            raise StateError(f"values are {SHOWN} weights from {-self.reach:.3g} to {self.reach:.3g}")
        return values

    @validate("block")
    def _offered(self, proposal: dict[str, Any]) -> int:
        sizes = [size for size, _ in self.blocks]
        if sizes and proposal["value"] not in sizes:
            raise StateError(f"a block has {', '.join(map(str, sizes))} weights; got {proposal['value']}")
        return proposal["value"]

    @property
    def quantiser(self) -> Quantiser:
        """The format, with its levels."""
        return QUANTISERS[self.format]

    @property
    def scale(self) -> list[float]:
        """The scale of each weight's block."""
        rest, whole = dict(map(tuple, self.blocks))[self.block], self.blocks[-1][1]
        largest = max(map(abs, self.values))
        step = min(self.block, SHOWN)
        found: list[float] = []
        for start in range(0, SHOWN, step):
            group = self.values[start : start + step]
            scale = scale_of(max(*map(abs, group), rest), self.quantiser, max(largest, whole))
            found += [scale] * step
        return found

    @property
    def stored(self) -> list[float]:
        """What is kept of each weight."""
        return [store(value, scale, self.quantiser) for value, scale in zip(self.values, self.scale, strict=True)]

    @property
    def bits(self) -> float:
        """Bits of a weight, with its share of the scale."""
        fmt = self.quantiser
        of_all = 32 / self.blocks[-1][0] if fmt.rule == "e4m3" else 0
        return fmt.bits + fmt.scale_bits / self.block + of_all

    def _words(self) -> str:
        scales = ", ".join(f"{scale:.3g}" for scale in dict.fromkeys(self.scale))
        told = f"Block of weights: {SHOWN} weights over the levels of {self.format}, {self.block} to a scale."
        return f"{told}\nScales: {scales}. {self.bits:.4g} bits a weight. Weight 1: {self.values[0]:.3g}."
