"""This machine: what its device is called, and the best that it can do, measured."""

import os
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

from helpers import specs, timing, units
from helpers.specs import Spec
from helpers.timing import Timing

# Square matmuls; the largest that memory and time allow is tried last. Halves of powers of two fit some caches better.
SIZES = (256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384)


def device() -> str:
    """The device that the course uses here: "cuda" where there is one, else "cpu"."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def name(where: str | torch.device | None = None) -> str:
    """What the device is called: the driver's name of a GPU, the model name of a CPU."""
    where = torch.device(where or device())
    if where.type == "cuda":
        return torch.cuda.get_device_name(where)
    info = Path("/proc/cpuinfo")
    if where.type == "cpu" and info.exists():
        for line in info.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.lower().startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine() or where.type


def spec(where: str | torch.device | None = None) -> Spec | None:
    """The row of this device in the spec table, or None: then all that is known about it is what you measure."""
    return specs.find(name(where))


def free_memory(where: str | torch.device | None = None) -> int:
    """The bytes that are free on the device now."""
    where = torch.device(where or device())
    if where.type == "cuda":
        return torch.cuda.mem_get_info(where)[0]
    info = Path("/proc/meminfo")
    if info.exists():
        for line in info.read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4
    except (AttributeError, OSError, ValueError):
        return 2**30  # nothing to ask: a gibibyte is there nearly everywhere


@dataclass(frozen=True)
class Peak:
    """The best matmul rate that was found, and everything that was run to find it.

    flop_per_s: by the fastest sample, since disturbances only ever add time. size: of the n × n matrices. tried: each
    size with its timing, the best one last, measured twice.
    """

    flop_per_s: float
    dtype: str
    device: str
    size: int
    timing: Timing
    tried: tuple[tuple[int, Timing], ...]

    def __repr__(self) -> str:
        rate = units.si(self.flop_per_s, "FLOP/s")
        return f"{rate} in {self.dtype} on {self.device}, {self.size} × {self.size} matmul: {self.timing}"


def peak(
    dtype: str | torch.dtype = torch.float32,
    where: str | torch.device | None = None,
    *,
    seconds: float = 3.0,
    sizes: tuple[int, ...] = SIZES,
    now: Callable[[], float] = time.perf_counter,
) -> Peak:
    """The best FLOP/s of a matmul of this dtype on this device, found in about that many seconds.

    >>> found = peak(torch.float32, "cpu", seconds=0.1, sizes=(64, 128))
    >>> found.flop_per_s > 0 and found.size in (64, 128)
    True

    Square matrices of growing size with random numbers (zeros would be kinder than real data), the result written into
    memory that has been touched before; then the best size once more. Sizes stop where half of the free memory or the
    time would not do. "tfloat32" stands for float32 with the matrix unit's shortcut, which "float32" never takes.
    Raises ValueError for a dtype that is not a float, or that this device cannot multiply.
    """
    where = torch.device(where or device())
    label = str(dtype).removeprefix("torch.")
    real = torch.float32 if label == "tfloat32" else getattr(torch, label, None)
    if not isinstance(real, torch.dtype) or not real.is_floating_point or (label == "tfloat32" and where.type == "cpu"):
        raise ValueError(f"no matmul peak for {label} on {where.type}: give a floating-point dtype such as bfloat16")
    end, tried = now() + seconds, []
    with _float32_as(label):
        for size in sizes:
            last = tried[-1] if tried else None
            guess = last[1].low * (size / last[0]) ** 3 if last else 0.0  # seconds for one call
            # A size takes a warm-up and a run; the best one is run again at the end.
            if last and (now() + 3 * guess > end or 3 * size**2 * real.itemsize > free_memory(where) / 2):
                break
            tried.append((size, _time(size, label, real, where, seconds / 20)))
        best = max(tried, key=_rate)
        again = (best[0], _time(best[0], label, real, where, min(max(end - now(), seconds / 10), seconds / 3)))
    tried.append(again)
    size, found = max(best, again, key=_rate)
    return Peak(_rate((size, found)), label, name(where), size, found, tuple(tried))


def _rate(run: tuple[int, Timing]) -> float:
    size, found = run
    return found.fastest.rate(2 * size**3)


def _time(size: int, label: str, dtype: torch.dtype, where: torch.device, seconds: float) -> Timing:
    try:
        return timing.measure(_matmul(size, dtype, where), seconds=seconds)
    except (RuntimeError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"{name(where)} cannot multiply {label} matrices of {size} × {size}: {reason}") from error


def _matmul(size: int, dtype: torch.dtype, where: torch.device) -> Callable[[], object]:
    a, b = (torch.randn(size, size, device=where).to(dtype) for _ in range(2))
    if dtype.itemsize == 1:  # float8 is multiplied with scales, and wants the second matrix by columns
        one = torch.ones((), device=where)
        return lambda: torch._scaled_mm(a, b.t(), one, one, out_dtype=torch.bfloat16)
    out = torch.zeros(size, size, device=where, dtype=dtype)
    return lambda: torch.mm(a, b, out=out)


@contextmanager
def _float32_as(label: str) -> Iterator[None]:
    """Float32 matmuls in full, or on the matrix unit as tfloat32; afterwards as before."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if label == "tfloat32" else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
