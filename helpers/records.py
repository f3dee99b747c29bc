"""Recorded machines: what `python -m helpers.machine --out FILE` measured on a device, kept with its provenance.

The committed ones lie in helpers/recorded. Each was run on the device that it names; what was never run is not there.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from helpers.roofline import Roofline

METHOD = 1  # raise it whenever what is measured, or how, changes
FOLDER = Path(__file__).with_name("recorded")


@dataclass(frozen=True)
class Record:
    """One run on one device. Rates in FLOP/s and byte/s, by the fastest sample; seconds of an op are medians.

    kind: "cpu" or "cuda". date: of the run, ISO. software: names and versions. caches: byte, all cores together.
    peaks: a row per dtype (dtype, flop_per_s, size, seconds, spread). bandwidths: a row per working set, the last one
    in main memory (nbytes, byte_per_s, kernel, spread). link: byte/s from host to device; None without a device apart.
    ops: a row per op (name, shapes, dtype, flops, bytes, seconds, fastest, spread).
    """

    method: int
    device: str
    kind: str
    threads: int
    date: str
    software: Mapping[str, str]
    caches: Mapping[str, int]
    peaks: tuple[Mapping[str, Any], ...]
    bandwidths: tuple[Mapping[str, Any], ...]
    link: float | None
    ops: tuple[Mapping[str, Any], ...]

    def peak(self, dtype: str) -> float:
        """The matmul FLOP/s in a dtype. Raises ValueError for one that was not measured."""
        found = {row["dtype"]: row["flop_per_s"] for row in self.peaks}
        if dtype not in found:
            raise ValueError(f"{self.device} was not measured in {dtype}, only in {', '.join(found)}")
        return found[dtype]

    @property
    def bandwidth(self) -> float:
        """Byte/s of main memory: of the largest working set."""
        return self.bandwidths[-1]["byte_per_s"]

    def roofline(self, dtype: str) -> Roofline:
        """The measured ceilings as a machine."""
        return Roofline(self.peak(dtype), self.bandwidth)

    def save(self, path: str | Path) -> None:
        """Write it as JSON, a row of numbers per line."""
        lines = []
        for name, value in asdict(self).items():
            rows = value if isinstance(value, tuple | list) else None
            text = json.dumps(value) if not rows else "[\n" + ",\n".join(f"  {json.dumps(x)}" for x in rows) + "\n ]"
            lines.append(f" {json.dumps(name)}: {text}")
        Path(path).write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def load(path: str | Path) -> Record:
    """The record in a file. Raises ValueError for a file that holds no record, or one of a later method."""
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
        names = {field.name for field in fields(Record)}
        if not isinstance(data, dict) or set(data) != names:
            raise ValueError(f"its fields are not {', '.join(sorted(names))}")
        if not 1 <= data["method"] <= METHOD:
            raise ValueError(f"its method is {data['method']}, this course knows 1 to {METHOD}")
    except ValueError as error:
        raise ValueError(f"{Path(path).name} is no record of a machine: {error}") from error
    return Record(**{name: tuple(value) if isinstance(value, list) else value for name, value in data.items()})


def recorded() -> tuple[Record, ...]:
    """The machines whose runs come with the course.

    >>> all(record.bandwidth > 0 and record.date for record in recorded())
    True
    """
    return tuple(load(path) for path in sorted(FOLDER.glob("*.json")))
