"""What vendors promise: a row per accelerator, from specs.toml. What is not there is unknown, and has no MFU."""

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

_FILE = Path(__file__).with_name("specs.toml")


@dataclass(frozen=True)
class Spec:
    """One accelerator as its vendor describes it. Rates are dense, in FLOP/s; bandwidth in bytes/s, memory in bytes.

    matrix and vector: the rates of the two units by dtype name. Matmuls of a dtype run on the matrix unit where it
    takes that dtype, and everything else runs on the vector unit. devices: the names that its driver reports.
    """

    name: str
    devices: tuple[str, ...]
    year: int
    matrix: Mapping[str, float]
    vector: Mapping[str, float]
    bandwidth: float
    memory: float
    source: str

    def peak(self, dtype: object) -> float:
        """The dense FLOP/s that a matmul of this dtype can reach: a torch.dtype or its name.

        >>> find("NVIDIA H100 PCIe").peak("bfloat16")
        756000000000000.0

        "tfloat32" is what float32 matmuls become where that is allowed; "float32" is the full format.
        Raises ValueError where the vendor gives no rate for it.
        """
        name = str(dtype).removeprefix("torch.")
        for rates in (self.matrix, self.vector):
            if name in rates:
                return rates[name]
        known = ", ".join(dict.fromkeys((*self.matrix, *self.vector)))
        raise ValueError(f"{self.name} has no rate for {name} on its spec sheet, only for {known}")

    @property
    def elementwise(self) -> float | None:
        """The FLOP/s for elementwise ops: the vector unit in float32, in which torch also computes 16-bit ones."""
        return self.vector.get("float32")


@cache
def table() -> tuple[Spec, ...]:
    """All rows of the table, in its order."""
    rows = tomllib.loads(_FILE.read_text(encoding="utf-8"))["accelerator"]
    return tuple(_spec(**row) for row in rows)


def _spec(
    *, devices: list[str], matrix: dict[str, float], vector: dict[str, float] | None = None, **figures: Any
) -> Spec:
    """A row of the file; float8 is one figure there, and two formats here."""
    rates = dict(matrix)
    if "float8" in rates:
        rates["float8_e4m3fn"] = rates["float8_e5m2"] = rates.pop("float8")
    return Spec(
        devices=tuple(devices), matrix=MappingProxyType(rates), vector=MappingProxyType(vector or {}), **figures
    )


def find(device_name: str) -> Spec | None:
    """The row of a device, by the name that its driver reports or by the row's own name; None if it is not known.

    >>> find("NVIDIA H100 80GB HBM3").name
    'NVIDIA H100 SXM5'
    >>> find("NVIDIA GeForce RTX 4090 Laptop GPU") is None
    True

    Names are compared whole, in upper or lower case: a laptop's RTX 4090 and a slice of an A100 are other devices.
    """
    wanted = " ".join(str(device_name).split()).casefold()
    for spec in table():
        names = [name.casefold() for name in (spec.name, *spec.devices)]
        if wanted in names:
            return spec
    return None


def mfu(flop_per_s: float, peak: float | None) -> float:
    """The model FLOPs utilization, which is the share of a peak that was reached: FLOP/s over FLOP/s.

    >>> mfu(400e12, find("NVIDIA H100 PCIe").peak("bfloat16"))
    0.5291005291005291

    A share above 1 is returned as it is: that no machine reaches it tells that FLOPs were counted twice, or that the
    peak is another unit's or format's, or that of fewer devices. Raises ValueError where there is no peak to compare
    with: an unknown peak is unknown, and no number stands for it.
    """
    if peak is None or isinstance(peak, bool) or not math.isfinite(peak) or peak <= 0:
        raise ValueError(
            f"no MFU without a known peak, got {peak!r}: take a dense rate from the spec sheet of this very device, "
            "or measure one with machine.peak(dtype) and say so"
        )
    if not math.isfinite(flop_per_s) or flop_per_s < 0:
        raise ValueError(f"the FLOP/s achieved are a number of at least 0, got {flop_per_s!r}; was the time zero?")
    return flop_per_s / peak
