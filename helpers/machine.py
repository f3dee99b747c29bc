"""This machine: what its device is called, and the best that it can do, measured."""

import itertools
import math
import os
import platform
import re
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import psutil
import torch
from torch import Tensor
from torch.nn import functional as F

from helpers import timing, units
from helpers.timing import Timing

Device = str | torch.device | None  # None: the device that the course uses here

# Square matmuls; the largest that memory and time allow is tried last. Halves of powers of two fit some caches better.
SIZES = (256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384)


def device() -> str:
    """The device that the course uses here: "cuda" where there is one, else "cpu"."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def name(where: Device = None) -> str:
    """What the device is called: the driver's name of a GPU, the model name of a CPU."""
    where = torch.device(where or device())
    if where.type == "cuda":
        return torch.cuda.get_device_name(where)
    told = re.search(r"model name\s*:\s*(.*\S)", _read("/proc/cpuinfo")) if where.type == "cpu" else None
    return told[1] if told else platform.processor() or platform.machine() or where.type


def free_memory(where: Device = None) -> int:
    """The bytes that are free on the device now, as far as a hub or a container lets this process have them."""
    where = torch.device(where or device())
    if where.type == "cuda":
        return torch.cuda.mem_get_info(where)[0]
    # What JupyterHub and Binder set, and what a container may take; without a limit that says "max".
    files = map(_read, ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"))
    limits = [int(text) for text in (os.environ.get("MEM_LIMIT", ""), *files) if text.strip().isdigit()]
    held = psutil.Process().memory_info().rss
    return max(0, min([psutil.virtual_memory().available, *(limit - held for limit in limits)]))


def caches(where: Device = None) -> dict[str, int]:
    """The bytes of the caches that one core sees, or a GPU, by name ("L1"); empty where the system does not tell."""
    where = torch.device(where or device())
    if where.type == "cuda":
        size = getattr(torch.cuda.get_device_properties(where), "L2_cache_size", 0)
        return {"L2": size} if size else {}
    found: dict[str, int] = {}
    for index in range(9):
        kind, level, size = (_read(f"/sys/devices/system/cpu/cpu0/cache/index{index}/{key}").strip()
                             for key in ("type", "level", "size"))  # fmt: skip
        if kind in ("Data", "Unified") and size.endswith("K"):
            found[f"L{level}"] = int(size[:-1]) * 1024
    return found


def _read(path: str) -> str:
    """What Linux tells in a file; nothing where there is none."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


# --- the best of this device ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Peak:
    """The best matmul rate that was found, of `size` × `size` matrices, by the fastest sample.

    Disturbances only ever add time; disturbed: whether no quiet sample supports it.
    """

    flop_per_s: float
    dtype: str
    size: int
    timing: Timing

    disturbed = property(lambda self: self.timing.disturbed)

    def __repr__(self) -> str:
        return f"{units.si(self.flop_per_s, 'FLOP/s')} ({self.dtype}{', disturbed' * self.disturbed})"


@dataclass(frozen=True)
class Bandwidth:
    """The best byte/s in a working set of `nbytes`, the fastest of "read" (a sum), "dot", "copy" and "add"."""

    byte_per_s: float
    nbytes: int
    kernel: str
    timing: Timing

    disturbed = property(lambda self: self.timing.disturbed)

    def __repr__(self) -> str:
        return f"{units.si(self.byte_per_s, 'B/s')} ({self.kernel}{', disturbed' * self.disturbed})"


def peak(
    dtype: str | torch.dtype = torch.float32, where: Device = None, *,
    seconds: float = 3.0, sizes: tuple[int, ...] = SIZES, threads: int | None = None,
) -> Peak:  # fmt: skip
    """The best FLOP/s of a matmul of this dtype on this device, found in about that many seconds.

    >>> found = peak(torch.float32, "cpu", seconds=0.1, sizes=(64, 128))
    >>> found.flop_per_s > 0 and found.size in (64, 128)
    True

    Square matrices of growing size with random numbers (zeros would be kinder than real data); then the best of them
    once more, for longer. Sizes stop where half of the free memory or half of the time would not do. "tfloat32"
    stands for float32 with the matrix unit's shortcut, which "float32" never takes. Without `threads`, all that torch
    has; if one alone is faster, others have the cores, and the result is one core's, disturbed.
    Raises ValueError for a dtype that is not a float, or that this device cannot multiply.
    """
    where, threads = torch.device(where or device()), threads or torch.get_num_threads()
    label = str(dtype).removeprefix("torch.")
    real = torch.float32 if label == "tfloat32" else getattr(torch, label, None)
    if not isinstance(real, torch.dtype) or not real.is_floating_point or (label == "tfloat32" and where.type == "cpu"):
        raise ValueError(f"no matmul peak for {label} on {where.type}: give a floating-point dtype such as bfloat16")
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if label == "tfloat32" else "highest")
    try:
        size, found = _best_matmul(real, where, seconds, sizes, threads)
    finally:
        torch.set_float32_matmul_precision(before)
    return Peak(2 * size**3 / found.low, label, size, found)


def _best_matmul(
    dtype: torch.dtype, where: torch.device, seconds: float, sizes: tuple[int, ...], threads: int
) -> tuple[int, Timing]:
    """The best size and its time: each size for a moment, then the three best for longer."""
    begin, tried = perf_counter(), {}

    def rate(size: int) -> float:
        return size**3 / tried[size].low

    for size in sizes:
        guess = size**3 / max(map(rate, tried)) if tried else 0.0  # seconds for one call
        memory = 3 * size**2 * max(dtype.itemsize, 4)  # bytes; random numbers are made in float32
        late = perf_counter() > begin + seconds  # others have had the cores, since half of the time should be left
        # A size takes a warm-up and a few runs.
        if tried and (late or 8 * guess > seconds / 2 or memory > free_memory(where) / 2):
            break
        tried[size] = _matmul_time(size, dtype, where, seconds / 40, threads)
    best = sorted(tried, key=rate, reverse=True)[:3]
    for done, size in enumerate(best):
        share = max((begin + seconds - perf_counter()) / (len(best) - done), seconds / 40)
        tried[size] = timing.fastest([tried[size], _matmul_time(size, dtype, where, share, threads)])
    size = max(best, key=rate)
    disturbed = late or any(tried[one].disturbed for one in best)  # another size might have been better
    if disturbed and threads > 1 and where.type == "cpu":  # and so might one thread alone
        small = min(size, 512)
        alone = _matmul_time(small, dtype, where, seconds / 10, 1)
        if small**3 / alone.low > rate(size):
            return small, replace(alone, disturbed=True)
    return size, replace(tried[size], disturbed=disturbed)


def _matmul_time(size: int, dtype: torch.dtype, where: torch.device, seconds: float, threads: int) -> Timing:
    a, b = (torch.randn(size, size, device=where).to(dtype) for _ in range(2))
    out, one = torch.zeros(size, size, device=where, dtype=dtype), torch.ones((), device=where)
    calls = {  # float8 is multiplied with scales, and wants the second matrix by columns
        True: lambda: torch._scaled_mm(a, b.t(), one, one, out_dtype=torch.bfloat16),
        False: lambda: torch.mm(a, b, out=out),  # into memory that was touched before
    }
    try:
        return timing.measure(calls[dtype.itemsize == 1], seconds=seconds, threads=threads)
    except (RuntimeError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"{name(where)} cannot multiply {dtype} matrices of {size} × {size}: {reason}") from error


def bandwidth(
    nbytes: int | None = None, where: Device = None, *, seconds: float = 0.6, threads: int | None = None
) -> Bandwidth:
    """The best byte/s when the same `nbytes` are used again and again; without a number, those of main memory.

    >>> bandwidth(2**16, "cpu", seconds=0.03).byte_per_s > 0
    True

    Every page is written before it is timed: untouched memory is one page of zeros that the system lends many times.
    A working set that fits a cache is found there from the second pass on. A large one is passed through in slices, so
    that each is long gone from the caches when its turn comes again. A byte read counts once, a byte written once.
    Tried up to three times, if disturbed. Without `threads`, all that torch has. Raises ValueError for less than 4 KiB,
    or more than half of what is free.
    """
    where = torch.device(where or device())
    size = _main_memory(where) if nbytes is None else nbytes
    for _ in range(3):
        (found,) = sweep(where, seconds=seconds, sizes=[size], threads=threads or torch.get_num_threads())
        if not found.disturbed:  # a single fast sample is no bandwidth
            break
    return found


def sweep(
    where: Device = None, *, seconds: float = 3.0, rounds: int = 3, sizes: Sequence[int] = (), threads: int = 1
) -> tuple[Bandwidth, ...]:
    """The bandwidth by working set, powers of two: caches show as steps, main memory comes last.

    On a CPU it is one core's, which waits for no other: so it holds on a busy machine, and the steps are at the sizes
    that `caches` tells. All sizes are measured in turn, several times over: a disturbance hits a round, not a size.
    """
    where = torch.device(where or device())
    sizes = sizes or [2**p for p in range(14 if where.type == "cpu" else 20, _main_memory(where).bit_length())]
    most, free = max(sizes), free_memory(where)
    if not 4096 <= most <= free // 2:
        limits = f"from 4 KiB to half of the {units.iec(free)} that are free"
        raise ValueError(f"a working set has {limits} on {where}, got {units.iec(most)}")
    memory, work = torch.ones(most // 4, device=where), []  # ones are written; zeros might not be
    for size in sizes:
        kernels = _kernels(memory[: size // 4], threads)
        # Each kernel, and each round, goes on where the last one left off: that slice was used longest ago.
        turn = itertools.cycle(range(len(kernels["read"][2])))
        for kernel, (moved, call, parts) in kernels.items():
            turns = map(parts.__getitem__, turn)
            work.append(((size, kernel, moved), call, turns, seconds / rounds / len(sizes) / len(kernels)))
    found = defaultdict(list)
    for _ in range(rounds):
        for one, call, turns, share in work:
            found[one].append(_timed(call, turns, where, share, threads))
    best = {size: [] for size in sizes}
    for (size, kernel, moved), its in found.items():
        run = timing.fastest(its)
        best[size].append(Bandwidth(moved / run.low, size, kernel, run))
    return tuple(max(kernels, key=lambda one: one.byte_per_s) for kernels in best.values())


def _timed(
    call: Callable[..., object], inputs: Iterable[tuple[Tensor, ...]], where: torch.device, seconds: float, threads: int
) -> Timing:
    """Its time with so many threads; or if that was disturbed the time with one, where that is less."""
    found = timing.measure(call, inputs=inputs, seconds=seconds, threads=threads)
    if found.disturbed and threads > 1 and where.type == "cpu":
        alone = timing.measure(call, inputs=inputs, seconds=seconds / 4, threads=1)
        return replace(min(found, alone, key=lambda one: one.low), disturbed=True)
    return found


def _main_memory(where: torch.device) -> int:
    """A working set that no cache holds, a power of two, and no more than a quarter of what is free."""
    wanted = max(2**30 if where.type == "cpu" else 2**32, 4 * max(caches(where).values(), default=0))
    return 1 << max(0, min(wanted, free_memory(where) // 4).bit_length() - 1)


def _kernels(memory: Tensor, threads: int) -> dict[str, tuple[int, Callable[..., object], list[tuple[Tensor, ...]]]]:
    """By name, the bytes that a call moves, the call, and what it is called with in turn: slices of the memory."""
    lanes, least = (threads, 2**22 * threads) if memory.device.type == "cpu" else (1, 2**30)
    parts = [part for part in memory.split(least // 4) if part.numel() == min(least // 4, memory.numel())]
    # Each thread sums its own lane; a small one over and over in one call (stride 0), since starting a call takes long.
    lane, again = parts[0].numel() // lanes, math.ceil(4 * least / memory.nbytes) if memory.nbytes < least else 1
    sums = torch.ones(lanes, again, device=memory.device)
    rows = [(part[: lanes * lane].view(lanes, 1, lane).expand(lanes, again, lane),) for part in parts]
    kernels = {"read": (rows[0][0].numel() * 4, lambda row: torch.sum(row, -1, out=sums), rows)}
    if again > 1:  # what cannot be repeated within a call would only measure how long it takes to start one
        return kernels
    halves, thirds = ([part[: part.numel() // n * n].view(n, -1).unbind() for part in parts] for n in (2, 3))
    return kernels | {
        "dot": (2 * halves[0][0].nbytes, torch.dot, halves),
        "copy": (2 * halves[0][0].nbytes, lambda source, target: target.copy_(source), halves),
        "add": (3 * thirds[0][0].nbytes, lambda a, b, c: torch.add(a, b, out=c), thirds),
    }


# --- the ops that are put under a roof -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Op:
    """An op on inputs of certain shapes, and its FLOPs and bytes by formula.

    FLOPs by the course's conventions, those of `counting`: a matmul is 2mnk, a function such as tanh 1 per element.
    Bytes: each input read once, each output written once; of the eager GELU, that for each of its eight ops.
    """

    name: str
    run: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    flops: int
    bytes: int
    dtype: str

    intensity = property(lambda self: self.flops / self.bytes, doc="FLOP per byte.")


def ops(dtype: str | torch.dtype = torch.float32, rows: int = 2048, width: int = 0) -> tuple[Op, ...]:
    """The fourteen ops of notebook 06: elementwise ones and reductions on rows × width (or rows), and matmuls.

    >>> [(op.name, round(op.intensity, 2)) for op in ops()][:3]
    [('ReLU', 0.12), ('GELU, fused', 1.12), ('GELU, eager', 0.11)]

    Attention is 8 heads of rows/4 tokens by 64, of which only the two matmuls count; the MLP step is forward and
    backward of rows/16 examples through layers of rows/8, rows/2 and rows/8.
    """
    label, width = str(dtype).removeprefix("torch."), width or rows
    n, square = rows * width, (rows, width)
    tokens, batch, narrow, wide = rows // 4, rows // 16, rows // 8, rows // 2
    layers = [(batch, narrow), (narrow, wide), (wide, narrow)]
    # Two matmuls forward, three backward (the input needs no gradient); ReLU, its backward, and the sum.
    step = 10 * batch * narrow * wide + 2 * batch * wide + batch * narrow - 1
    table = [  # name, function, shapes, FLOPs, numbers moved
        ("ReLU", torch.relu, [square], n, 2 * n),
        ("GELU, fused", lambda x: F.gelu(x, approximate="tanh"), [square], 9 * n, 2 * n),
        ("GELU, eager", _gelu, [square], 8 * n, 18 * n),  # six ops with one input, two with two: 6 × 2 + 2 × 3
        ("softmax", lambda x: F.softmax(x, -1), [square], 5 * n - 2 * rows, 2 * n),  # max, subtract, exp, sum, divide
        ("layer norm", lambda x: F.layer_norm(x, x.shape[-1:]), [square], 6 * n + 2 * rows, 2 * n),
        ("dot", torch.dot, [(n,), (n,)], 2 * n, 2 * n + 1),
        ("matrix-vector", torch.mv, [square, (width,)], 2 * n, n + rows + width),
        *((f"matmul {m}", torch.mm, [(m, m)] * 2, 2 * m**3, 3 * m**2) for m in (64, 128, 256, 512, 1024)),
        ("attention", F.scaled_dot_product_attention, [(1, 8, tokens, 64)] * 3, 2048 * tokens**2, 2048 * tokens),
        ("MLP step", _mlp_step, layers, step, batch * narrow + 4 * narrow * wide),
    ]
    item = getattr(torch, label).itemsize
    return tuple(Op(name, run, tuple(shapes), flops, moved * item, label) for name, run, shapes, flops, moved in table)


def _gelu(x: Tensor) -> Tensor:  # in its tanh form; in place, since the time of fresh pages differs from run to run
    a = torch.pow(x, 3)
    return a.mul_(0.044715).add_(x).mul_(math.sqrt(2 / math.pi)).tanh_().add_(1).mul_(x).mul_(0.5)


def _mlp_step(x: Tensor, first: Tensor, second: Tensor) -> tuple[Tensor, ...]:
    first, second = first.detach().requires_grad_(), second.detach().requires_grad_()
    return torch.autograd.grad((torch.relu(x @ first) @ second).sum(), (first, second))


def runs(
    work: Sequence[Op], where: Device = None, *, seconds: float = 3.0, rounds: int = 1, threads: int | None = None
) -> tuple[Timing, ...]:
    """The time of each op, in about that many seconds for all and the time to make their inputs.

    All inputs lie in memory that no cache holds, and take turns; so do the outputs, as `_rotating` tells. What other
    programs disturb is timed once more, in as many seconds again.
    Without `threads`, all that torch has; where one alone is faster, its time, disturbed. Raises ValueError for an op
    whose inputs do not fit into a quarter of the free memory.
    """
    where, threads = torch.device(where or device()), threads or torch.get_num_threads()
    numbers = torch.rand(2**20, device=where).repeat(max(1, _main_memory(where) // 2**22))
    inputs = [_inputs(one, numbers.to(getattr(torch, one.dtype))) for one in work]
    found: list[list[Timing]] = [[] for _ in work]
    for count in range(2 * rounds):  # as many again for those that are still disturbed
        for one, sets, its in zip(work, inputs, found, strict=True):
            if count < rounds or timing.fastest(its).disturbed:
                call = _rotating(one.run, sets[0], where)
                its.append(_timed(call, sets, where, seconds / rounds / len(work), threads))
    return tuple(timing.fastest(its) for its in found)


def _rotating(run: Callable[..., Any], example: tuple[Tensor, ...], where: torch.device) -> Callable[..., None]:
    """The call, which keeps its latest results, so that a new one is written where no cache holds anything.

    The oldest of them is given up, and the next result has its memory, which was touched before.
    """
    results = run(*example)
    each = results if isinstance(results, tuple) else (results,)
    wanted = min(2 * max(caches(where).values(), default=2**25), free_memory(where) // 8)
    count = min(2**14, max(1, wanted // sum(result.nbytes for result in each)))
    kept: deque[Any] = deque((tuple(map(torch.ones_like, each)) for _ in range(count)), maxlen=count)
    return lambda *inputs: kept.append(run(*inputs))


def cached(work: Sequence[Op], rows: int, where: Device = None) -> tuple[float, ...]:
    """Seconds of a call of each of some of the `ops(dtype, rows)`, of one dtype, with data that come from a cache.

    Of ops that go row by row, a few rows are used over and over. What they take beyond their launch, which is the time
    on single numbers, counts as often as they are fewer; to that comes one launch. Others run whole, on the same data
    in every call. It is nan where that tells nothing: where a few rows take less than twice their launch, and where the
    inputs are more than half of the largest cache.
    """
    where = torch.device(where or device())
    sizes = caches(where) or {"L2": 2**20}  # 1 MiB if unknown
    few = max(16, sizes.get("L2", 2**20) // (16 * rows))  # in and out, half of the cache
    smaller = {op.name: op for op in ops(work[0].dtype, few, rows)}
    pieces = []  # what is run, and how often it fits into the op
    for op in work:
        count = op.flops / smaller[op.name].flops
        pieces.append((smaller[op.name], count) if math.isclose(count, rows / few, rel_tol=0.01) else (op, 1.0))

    def again(op: Op, shapes: Iterable[tuple[int, ...]], seconds: float) -> float:
        data = [torch.rand(shape, device=where).to(getattr(torch, op.dtype)) for shape in shapes]
        return timing.measure(op.run, inputs=[data], seconds=seconds, threads=torch.get_num_threads()).low

    def both(op: Op, count: float) -> tuple[float, float]:  # a piece, and the launch that is taken off
        if sum(map(math.prod, op.shapes)) * getattr(torch, op.dtype).itemsize > max(sizes.values()) / 2:
            return math.nan, math.nan
        single = [(1,) * len(shape) for shape in op.shapes]
        return again(op, op.shapes, 0.1), again(op, single, 0.03) if count != 1 else 0.0

    rounds = [[both(*piece) for piece in pieces] for _ in range(3)]  # a disturbance hits a round, not an op
    times = []
    for (_, count), found in zip(pieces, zip(*rounds, strict=True), strict=True):
        piece, launch = map(min, zip(*found, strict=True))
        times.append(math.nan if piece < 2 * launch else launch + count * (piece - launch))
    return tuple(times)


def _inputs(op: Op, numbers: Tensor) -> list[tuple[Tensor, ...]]:
    sizes = [math.prod(shape) for shape in op.shapes]
    count = min(2**14, len(numbers) // sum(sizes))
    if not count:
        raise ValueError(f"the inputs of {op.name} are too much for the {units.iec(numbers.nbytes)} that there are")
    sets = numbers[: count * sum(sizes)].view(count, -1)
    return [tuple(map(Tensor.view, one.split(sizes), op.shapes)) for one in sets]
