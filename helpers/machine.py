"""This machine: what its device is called, and the best that it can do, measured.

`python -m helpers.machine --out FILE` writes down a whole run, for others to compare with.
"""

import argparse
import datetime
import itertools
import math
import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.utils import benchmark

from helpers import records, specs, timing, units
from helpers.records import Record
from helpers.specs import Spec
from helpers.timing import Timing
from helpers.workloads import Workload, workloads

# Square matmuls; the largest that memory and time allow is tried last. Halves of powers of two fit some caches better.
SIZES = (256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384)
_FINALISTS = 3
# What a container may take; the system's own number knows nothing of it.
_CGROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


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
    """The bytes that are free on the device now, as far as a hub or a container lets this process have them."""
    where = torch.device(where or device())
    if where.type == "cuda":
        return torch.cuda.mem_get_info(where)[0]
    info = Path("/proc/meminfo")
    if info.exists():
        for line in info.read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return min(int(line.split()[1]) * 1024, _left())
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4
    except (AttributeError, OSError, ValueError):
        return 2**30  # nothing to ask: a gibibyte is there nearly everywhere


def _left() -> int:
    """What a limit leaves to this Linux process: MEM_LIMIT, which JupyterHub and Binder set, or its container's."""
    texts = [os.environ.get("MEM_LIMIT", ""), *(Path(file).read_text() for file in _CGROUPS if Path(file).exists())]
    limits = [int(text) for text in texts if text.strip().isdigit()]  # a cgroup without a limit says "max"
    if not limits:
        return 2**63
    held = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return max(0, min(limits) - held)


@dataclass(frozen=True)
class Peak:
    """The best matmul rate that was found, and everything that was run to find it.

    flop_per_s: by the fastest sample, since disturbances only ever add time. size: of the n × n matrices. tried: each
    size with its timing, in the order in which they ran; the best few run a second time, longer.
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
    memory that has been touched before; then the three best sizes once more, for longer. Sizes stop where half of the
    free memory or half of the time would not do. "tfloat32" stands for float32 with the matrix unit's shortcut, which
    "float32" never takes.
    Raises ValueError for a dtype that is not a float, or that this device cannot multiply.
    """
    where = torch.device(where or device())
    label = str(dtype).removeprefix("torch.")
    real = torch.float32 if label == "tfloat32" else getattr(torch, label, None)
    if not isinstance(real, torch.dtype) or not real.is_floating_point or (label == "tfloat32" and where.type == "cpu"):
        raise ValueError(f"no matmul peak for {label} on {where.type}: give a floating-point dtype such as bfloat16")
    start, tried = now(), []
    with _float32_as(label):
        for size in sizes:
            guess = 2 * size**3 / max(map(_rate, tried)) if tried else 0.0  # seconds for one call
            # A size takes a warm-up and a run or two. Half of the time is for the finals.
            if tried and (now() + 3 * guess > start + seconds / 2 or _needs(size, real) > free_memory(where) / 2):
                break
            tried.append((size, _time(size, label, real, where, seconds / 40)))
        finals = sorted(tried, key=_rate, reverse=True)[:_FINALISTS]
        for waiting, (size, _) in zip(range(len(finals), 0, -1), finals, strict=True):
            share = max((start + seconds - now()) / waiting, seconds / 40)
            tried.append((size, _time(size, label, real, where, share)))
    size, found = max(tried, key=_rate)
    return Peak(_rate((size, found)), label, name(where), size, found, tuple(tried))


def _needs(size: int, dtype: torch.dtype) -> int:
    return 3 * size**2 * max(dtype.itemsize, 4)  # byte; random numbers are made in float32


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


# --- memory --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bandwidth:
    """The best byte/s that was found in a working set of `nbytes`, and everything that was run to find it.

    byte_per_s: by the fastest sample. kernel: "read" (a sum), "copy" or "add"; a byte read counts once and a byte
    written once. tried: each kernel with the bytes that a call moves and its timing.
    """

    byte_per_s: float
    nbytes: int
    kernel: str
    device: str
    timing: Timing
    tried: tuple[tuple[str, int, Timing], ...]

    def __repr__(self) -> str:
        rate, size = units.si(self.byte_per_s, "B/s"), units.iec(self.nbytes)
        return f"{rate} in {size} on {self.device}, {self.kernel}: {self.timing}"


def bandwidth(nbytes: int | None = None, where: str | torch.device | None = None, *, seconds: float = 0.6) -> Bandwidth:
    """The best byte/s when the same `nbytes` are used again and again; without a number, those of main memory.

    >>> bandwidth(2**16, "cpu", seconds=0.03).byte_per_s > 0
    True

    Every page is written before it is timed: untouched memory is one page of zeros that the system lends many times.
    A working set that fits a cache is found there from the second pass on. A large one is passed through in slices, so
    that each slice is long gone from the caches when its turn comes again, and a sample is too short to be disturbed
    often. Raises ValueError for fewer than 4096 bytes, and for more than half of what is free.
    """
    where = torch.device(where or device())
    nbytes = _main_memory(where) if nbytes is None else nbytes
    return _best_bandwidth(_touched(nbytes, where), nbytes, seconds)


def sweep(
    where: str | torch.device | None = None,
    *,
    seconds: float = 3.0,
    sizes: Sequence[int] | None = None,
    rounds: int = 3,
) -> tuple[Bandwidth, ...]:
    """The bandwidth by working set, in about that many seconds: caches show as steps, main memory comes last.

    All sizes are measured in turn, several times over, and the best of each is kept: a disturbance hits one round, not
    one size. Sizes are powers of two if not given. Raises ValueError as `bandwidth` does.
    """
    where = torch.device(where or device())
    largest = _main_memory(where)
    sizes = sizes or [2**power for power in range(14 if where.type == "cpu" else 20, largest.bit_length())]
    memory = _touched(max(sizes), where)
    end = time.perf_counter() + seconds
    found: dict[int, Bandwidth] = {}
    for turn in range(rounds):
        for size in sizes:
            if turn and time.perf_counter() > end:
                break
            new = _best_bandwidth(memory, size, seconds / rounds / len(sizes))
            found[size] = max(found.get(size, new), new, key=lambda one: one.byte_per_s)
    return tuple(found[size] for size in sizes)


def runs(
    work: Sequence[Workload], where: str | torch.device | None = None, *, seconds: float = 3.0
) -> tuple[Timing, ...]:
    """The time of each op, in about that many seconds for all and the time to make their inputs.

    A sample is one call, since on a busy machine a short sample has the best chance. Ops that would fit a cache have up
    to four sets of inputs that take turns; only what is much smaller finds its data there. Raises ValueError for an op
    that does not fit into half of the free memory.
    """
    where = torch.device(where or device())
    cache = max(caches(where).values(), default=2**26)
    found = []
    for one in work:
        sets, free = min(4, math.ceil(4 * cache / one.memory)), free_memory(where)
        if sets * one.memory > free // 2:
            raise ValueError(f"{one.name} takes {units.iec(one.memory)}, too much for {units.iec(free)} of free memory")
        found.append(_in_turns([one.make(where) for _ in range(sets)], seconds / len(work)))
    return tuple(found)


def link(where: str | torch.device | None = None, *, seconds: float = 0.3) -> Bandwidth | None:
    """The byte/s from the host's memory to the device's; None where they are the same memory, as on a CPU."""
    where = torch.device(where or device())
    if where.type == "cpu":
        return None
    nbytes = min(2**28, free_memory(where) // 4, free_memory("cpu") // 4)
    # Pinned: memory that the system may not move, so that the device can fetch it by itself.
    host, there = (
        torch.ones(nbytes, dtype=torch.uint8).pin_memory(),
        torch.ones(nbytes, dtype=torch.uint8, device=where),
    )
    found = timing.measure(lambda: there.copy_(host, non_blocking=True), seconds=seconds)
    tried = (("host to device", nbytes, found),)
    return Bandwidth(found.fastest.rate(nbytes), nbytes, "host to device", name(where), found, tried)


def caches(where: str | torch.device | None = None) -> dict[str, int]:
    """The sizes of the caches in byte, all cores together, as far as the system tells: {"L1": …, "L2": …}."""
    where = torch.device(where or device())
    if where.type == "cuda":
        size = getattr(torch.cuda.get_device_properties(where), "L2_cache_size", 0)
        return {"L2": size} if size else {}
    found: dict[str, int] = {}
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            told = {key: (folder / key).read_text().strip() for key in ("type", "level", "size", "shared_cpu_map")}
            sharing = int(told["shared_cpu_map"].replace(",", ""), 16).bit_count()
            size = int(told["size"].removesuffix("K")) * 1024
        except (OSError, ValueError):
            continue
        if told["type"] != "Instruction" and sharing:
            found[f"L{told['level']}"] = size * max(1, (os.cpu_count() or 1) // sharing)
    return found


def _main_memory(where: torch.device) -> int:
    """A working set that no cache holds, a power of two, and no more than a quarter of what is free."""
    wanted = max(2**30 if where.type == "cpu" else 2**32, 4 * max(caches(where).values(), default=0))
    return 1 << max(0, min(wanted, free_memory(where) // 4).bit_length() - 1)


def _touched(nbytes: int, where: torch.device) -> Tensor:
    free = free_memory(where)
    if not isinstance(nbytes, int) or nbytes < 4096:
        raise ValueError(f"a working set has 4096 bytes or more, got {nbytes!r}: less is all overhead")
    if nbytes > free // 2:
        raise ValueError(
            f"a working set of {units.iec(nbytes)} is more than half of the {units.iec(free)} that are free on {where}"
        )
    return torch.ones(nbytes // 4, device=where)  # ones are written; zeros might not be


def _best_bandwidth(memory: Tensor, nbytes: int, seconds: float) -> Bandwidth:
    kernels = _kernels(memory[: nbytes // 4])
    tried = tuple(
        (kernel, moved, _in_turns(calls, seconds / len(kernels))) for kernel, (moved, calls) in kernels.items()
    )
    rates = [found.fastest.rate(moved) for _, moved, found in tried]
    best = rates.index(max(rates))
    kernel, _, found = tried[best]
    return Bandwidth(rates[best], nbytes, kernel, name(memory.device), found, tried)


def _in_turns(calls: Sequence[Callable[[], object]], seconds: float) -> Timing:
    """A timing with a sample per call. Each is long enough for the clock, and on a busy machine every call counts."""
    samples: list[float] = []
    calls[-1]()  # warm-up
    end = benchmark.timer() + seconds
    for call in itertools.cycle(calls):
        begin = benchmark.timer()  # waits for the device
        call()
        now = benchmark.timer()
        samples.append(now - begin)
        if len(samples) >= 3 and now > end:
            break
    return timing.summary(samples, 1, torch.get_num_threads())


def _kernels(memory: Tensor) -> dict[str, tuple[int, list[Callable[[], object]]]]:
    """By name, the bytes that a call moves, and the calls that take turns: one per slice of the memory."""
    on_cpu = memory.device.type == "cpu"
    enough = 2**24 if on_cpu else 2**32  # byte in a call, so that starting it and waiting for it cost little
    # A sixteenth of a large memory is long enough for that, and the other fifteen drive it out of every cache.
    slices = memory.chunk(16) if memory.nbytes >= 16 * enough else (memory,)
    kernels: dict[str, tuple[int, list[Callable[[], object]]]] = {}
    for part in slices:
        if part.numel() == slices[0].numel():
            for kernel, (moved, call) in _calls(part, torch.get_num_threads() if on_cpu else 1, enough).items():
                kernels.setdefault(kernel, (moved, []))[1].append(call)
    return kernels


def _calls(part: Tensor, lanes: int, enough: int) -> dict[str, tuple[int, Callable[[], object]]]:
    # Each thread sums its own lane, over and over: stride 0 in the middle reads the same bytes again in one call.
    lane = part.numel() // lanes
    again = max(1, math.ceil(enough / part.nbytes))
    rows = part[: lanes * lane].view(lanes, 1, lane).expand(lanes, again, lane)
    sums = torch.ones(lanes, again, device=part.device)
    calls = {"read": (rows.numel() * 4, lambda: torch.sum(rows, -1, out=sums))}
    if again > 4:  # what cannot be repeated within a call would only measure how long it takes to start one
        return calls
    (source, target), (a, b, c) = (part[: part.numel() // n * n].view(n, -1) for n in (2, 3))
    return calls | {
        "copy": (2 * source.nbytes, lambda: target.copy_(source)),
        "add": (3 * a.nbytes, lambda: torch.add(a, b, out=c)),
    }


# --- recorded runs -------------------------------------------------------------------------------------------------

_DTYPES = {
    "cpu": ("float64", "float32", "bfloat16", "float16"),
    "cuda": ("float64", "float32", "tfloat32", "bfloat16", "float16", "float8_e4m3fn"),
}


def record(where: str | torch.device | None = None, *, seconds: float = 40.0, today: str | None = None) -> Record:
    """Everything that the course measures on a device, in about that many seconds: peaks, bandwidths, and its ops.

    The ops run in float32, and on a GPU in bfloat16 as well. Raises nothing for a dtype that the device cannot
    multiply: it has no row then.
    """
    where = torch.device(where or device())
    gpu = where.type == "cuda"
    work = [*workloads("float32", 8192), *workloads("bfloat16", 8192)] if gpu else list(workloads("float32"))
    work = [one for one in work if one.memory < free_memory(where) // 2]
    peaks: dict[str, Peak] = {}
    bandwidths: dict[int, Bandwidth] = {}
    ops: dict[Workload, Timing] = {}
    rounds = 6
    for _ in range(rounds):  # in turns, and the best of all: a disturbance hits one of them
        for dtype in _DTYPES[where.type]:
            try:
                new = peak(dtype, where, seconds=seconds / 2 / rounds / len(_DTYPES[where.type]))
            except ValueError:
                continue
            peaks[dtype] = max(peaks.get(dtype, new), new, key=lambda found: found.flop_per_s)
        for one in sweep(where, seconds=seconds / 4 / rounds, rounds=1):
            bandwidths[one.nbytes] = max(bandwidths.get(one.nbytes, one), one, key=lambda found: found.byte_per_s)
        for op, run in zip(work, runs(work, where, seconds=seconds / 4 / rounds), strict=True):
            ops[op] = min(ops.get(op, run), run, key=lambda found: found.low)
    joined = link(where)
    return Record(
        method=records.METHOD,
        device=name(where),
        kind=where.type,
        threads=torch.get_num_threads(),
        date=today or datetime.datetime.now(datetime.UTC).date().isoformat(),
        software=_software(where),
        caches=caches(where),
        peaks=tuple(
            {"dtype": x.dtype, "flop_per_s": x.flop_per_s, "size": x.size} | _spread(x.timing) for x in peaks.values()
        ),
        bandwidths=tuple(
            {"nbytes": x.nbytes, "byte_per_s": x.byte_per_s, "kernel": x.kernel, "spread": x.timing.spread}
            for _, x in sorted(bandwidths.items())
        ),
        link=joined.byte_per_s if joined else None,
        ops=tuple(
            {"name": one.name, "shapes": one.shapes, "dtype": one.dtype, "flops": one.flops, "bytes": one.bytes}
            | _spread(run)
            for one, run in ops.items()
        ),
    )


def _spread(found: Timing) -> dict[str, float]:
    return {"seconds": found.median, "fastest": found.low, "spread": found.spread}


def _software(where: torch.device) -> dict[str, str]:
    """Names and versions; nothing that names this very machine."""
    told = {"system": platform.system(), "python": platform.python_version(), "torch": torch.__version__}
    return told | ({"cuda": str(torch.version.cuda)} if where.type == "cuda" else {})


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m helpers.machine", description="Measure this machine.")
    parser.add_argument("--out", metavar="FILE", type=Path, required=True, help="the JSON file to write")
    parser.add_argument("--seconds", type=float, default=40.0, help="about how long to measure; default: 40")
    parser.add_argument("--device", choices=sorted(_DTYPES), help="default: cuda where there is one")
    chosen = parser.parse_args()
    if not chosen.out.parent.is_dir():
        parser.error(f"there is no folder {chosen.out.parent}")
    found = record(chosen.device, seconds=chosen.seconds)
    found.save(chosen.out)
    best = ", ".join(f"{row['dtype']} {units.si(row['flop_per_s'], 'FLOP/s')}" for row in found.peaks)
    print(f"{found.device}: {best}; {units.si(found.bandwidth, 'B/s')}; {len(found.ops)} ops. Wrote {chosen.out.name}.")


if __name__ == "__main__":
    main()
