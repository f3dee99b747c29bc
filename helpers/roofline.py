"""The roofline model: how long can a cost take at least, on a machine with one peak and one bandwidth?

A cost is a number of FLOPs and a number of bytes. The model has two times, FLOP / peak and byte / bandwidth. If the
two overlap perfectly the larger one is the whole time; if they do not overlap at all, their sum is.
"""

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal


@dataclass(frozen=True)
class Roofline:
    """A machine as two numbers: peak in FLOP/s and bandwidth in byte/s.

    >>> h100 = Roofline(peak=989e12, bandwidth=3.35e12)
    >>> round(h100.ridge), h100.attainable(100), h100.attainable(1000)
    (295, 335000000000000.0, 989000000000000.0)
    >>> relu = 2**20, 4 * 2**20  # FLOPs; bytes read and written in bfloat16
    >>> h100.seconds(*relu), h100.bound(*relu)
    (1.2520310447761193e-06, 'memory')

    A cost is passed as two numbers, FLOPs and bytes, or as one object that has `flops` and `bytes` (or `bytes_ideal`,
    as a counted cost has). Raises ValueError or TypeError, in a sentence, for anything else.
    """

    peak: float
    bandwidth: float

    def __post_init__(self) -> None:
        for name, unit in (("peak", "FLOP/s"), ("bandwidth", "byte/s")):
            value = _quantity(getattr(self, name), name)
            if not 0 < value < math.inf:
                raise ValueError(f"a {name} is a finite number of {unit} above 0, got {value}")

    @property
    def ridge(self) -> float:
        """The intensity in FLOP/byte at which both times are equal: peak / bandwidth."""
        return self.peak / self.bandwidth

    def attainable(self, intensity: float) -> float:
        """The FLOP/s that no op of this intensity can exceed: min(peak, bandwidth × intensity).

        >>> Roofline(peak=100.0, bandwidth=10.0).attainable(2.5)
        25.0
        """
        return min(float(self.peak), self.bandwidth * _quantity(intensity, "intensity"))

    def seconds(self, cost: Any, nbytes: float | None = None, *, overlap: bool = True) -> float:
        """The least time for a cost, the larger of FLOP / peak and byte / bandwidth; without overlap their sum.

        >>> machine = Roofline(peak=100.0, bandwidth=10.0)
        >>> machine.seconds(400, 20), machine.seconds(400, 20, overlap=False)
        (4.0, 6.0)

        The two are the model's lower and upper bound, and never more than a factor 2 apart.
        """
        flops, nbytes = cost_of(cost, nbytes)
        times = flops / self.peak, nbytes / self.bandwidth
        return max(times) if overlap else sum(times)

    def bound(self, cost: Any, nbytes: float | None = None) -> Literal["memory", "compute"]:
        """Which of the two times is the larger: "memory" below the ridge, "compute" from the ridge on.

        >>> machine = Roofline(peak=100.0, bandwidth=10.0)
        >>> machine.bound(400, 50), machine.bound(400, 40)
        ('memory', 'compute')

        Raises ValueError for a cost of no FLOP and no byte: nothing bounds it.
        """
        return "compute" if intensity(cost, nbytes) >= self.ridge else "memory"


def intensity(cost: Any, nbytes: float | None = None) -> float:
    """FLOPs per byte of a cost; infinite where nothing is moved.

    >>> intensity(2**20, 4 * 2**20)
    0.25

    Raises ValueError for a cost of no FLOP and no byte.
    """
    flops, nbytes = cost_of(cost, nbytes)
    if flops == nbytes == 0:
        raise ValueError("this cost has no FLOP and no byte, so it has no intensity: count an op that does something")
    return flops / nbytes if nbytes else math.inf


def cost_of(cost: Any, nbytes: float | None = None) -> tuple[float, float]:
    """The FLOPs and the bytes of a cost, however it is given.

    >>> cost_of(8, 2)
    (8.0, 2.0)
    """
    if nbytes is not None:
        flops = cost
    elif hasattr(cost, "flops") and (hasattr(cost, "bytes") or hasattr(cost, "bytes_ideal")):
        flops, nbytes = cost.flops, cost.bytes if hasattr(cost, "bytes") else cost.bytes_ideal
    else:
        raise TypeError(
            f"a cost is FLOPs and bytes, got {cost!r} ({type(cost).__name__}) alone: "
            "pass two numbers, or one object with .flops and .bytes"
        )
    pair = _quantity(flops, "number of FLOPs"), _quantity(nbytes, "number of bytes")
    if math.inf in pair:
        raise ValueError(f"a cost is finite, got {pair[0]:g} FLOP and {pair[1]:g} byte")
    return pair


def _quantity(value: Real, name: str) -> float:
    """The value as a float, if it is a number of at least 0."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"the {name} is a number, got {value!r} ({type(value).__name__}); for a tensor pass t.item()")
    if not value >= 0:  # NaN is not, either
        raise ValueError(f"the {name} is at least 0, got {value}")
    return float(value)
