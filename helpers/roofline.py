"""The roofline model: how long must a cost take at least, on a machine with one peak and one bandwidth?

A cost is a number of FLOPs and a number of bytes, and so it has two times: FLOPs / peak and bytes / bandwidth. If the
two overlap perfectly, the larger one is the whole time; if they do not overlap at all, their sum is. Source: Williams,
Waterman and Patterson, "Roofline: An Insightful Visual Performance Model for Multicore Architectures", Communications
of the ACM 52 (4), 2009, doi.org/10.1145/1498765.1498785; there the ridge is the ridge point.
"""

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal


@dataclass(frozen=True)
class Roofline:
    """A machine as two numbers: peak in FLOP/s and bandwidth in bytes/s.

    >>> h100 = Roofline(peak=989e12, bandwidth=3.35e12)
    >>> round(h100.ridge), h100.attainable(100), h100.attainable(1000)
    (295, 335000000000000.0, 989000000000000.0)
    >>> relu = 2**20, 4 * 2**20  # FLOPs; bytes read and written in bfloat16
    >>> h100.seconds(*relu), h100.bound(*relu)
    (1.2520310447761193e-06, 'memory')

    A cost is passed as two numbers, FLOPs and bytes, or as one object that has `flops` and `bytes` (or `bytes_ideal`,
    as what `counting.count` returns has). Anything else raises ValueError or TypeError.
    """

    peak: float
    bandwidth: float

    def __post_init__(self) -> None:
        for name, unit in (("peak", "FLOP/s"), ("bandwidth", "bytes/s")):
            value = _at_least_zero(getattr(self, name), name)
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
        return min(float(self.peak), self.bandwidth * _at_least_zero(intensity, "intensity"))

    def seconds(self, cost: Any, nbytes: float | None = None) -> float:
        """The least time for a cost: the larger of FLOPs / peak and bytes / bandwidth.

        >>> Roofline(peak=100.0, bandwidth=10.0).seconds(400, 20)
        4.0
        """
        return max(self._times(cost, nbytes))

    def bound(self, cost: Any, nbytes: float | None = None) -> Literal["memory", "compute"]:
        """Which of the two times is the larger: "memory" below the ridge, "compute" from the ridge on.

        >>> machine = Roofline(peak=100.0, bandwidth=10.0)
        >>> machine.bound(400, 50), machine.bound(400, 40)
        ('memory', 'compute')

        Raises ValueError for a cost of no FLOPs and no bytes: nothing bounds it.
        """
        compute, memory = self._times(cost, nbytes)
        if compute == memory == 0:
            raise ValueError("a cost of no FLOPs and no bytes is bound by nothing: count an op that does something")
        return "compute" if compute >= memory else "memory"

    def _times(self, cost: Any, nbytes: float | None) -> tuple[float, float]:
        """The seconds of computing and of moving, which the model lets overlap."""
        if nbytes is None:
            cost, nbytes = _counted(cost)
        flops = _at_least_zero(cost, "number of FLOPs")
        moved = _at_least_zero(nbytes, "number of bytes")
        if math.inf in (flops, moved):
            raise ValueError(f"the FLOPs and bytes of a cost are finite, got {flops:g} and {moved:g}")
        return flops / self.peak, moved / self.bandwidth


def _counted(cost: Any) -> tuple[float, float]:
    """The FLOPs and bytes of an object that has them."""
    for name in ("bytes", "bytes_ideal"):
        if hasattr(cost, "flops") and hasattr(cost, name):
            return cost.flops, getattr(cost, name)
    kind = type(cost).__name__
    raise TypeError(f"a cost is two numbers, FLOPs and bytes, or a counted cost; got only {cost!r} ({kind})")


def _at_least_zero(value: object, name: str) -> float:
    """The value as a float, if it is a number of at least 0."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"the {name} is a number, got {value!r} ({type(value).__name__}); for a tensor pass t.item()")
    number = float(value)
    if not number >= 0:  # NaN is not, either
        raise ValueError(f"the {name} is at least 0, got {value}")
    return number
