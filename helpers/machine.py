"""This machine: what its device is called, and the best that it can do, measured."""

import itertools
import math
import os
import platform
import re
from collections import deque
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
    if where.type == "cpu":
        found = re.search(r"model name\s*:\s*(.*\S)", _read("/proc/cpuinfo"))
        if found:
            return found[1]
    return platform.processor() or platform.machine() or where.type


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
        folder = f"/sys/devices/system/cpu/cpu0/cache/index{index}"
        kind, level, size = (_read(f"{folder}/{key}").strip() for key in ("type", "level", "size"))
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

    @property
    def disturbed(self) -> bool:
        """Whether no quiet sample supports it."""
        return self.timing.disturbed

    def __repr__(self) -> str:
        mark = ", disturbed" if self.disturbed else ""
        return f"{units.si(self.flop_per_s, 'FLOP/s')} ({self.dtype}{mark})"


@dataclass(frozen=True)
class Bandwidth:
    """The best byte/s in a working set of `nbytes`, the fastest of "read" (a sum), "dot", "copy" and "add"."""

    byte_per_s: float
    nbytes: int
    kernel: str
    timing: Timing

    @property
    def disturbed(self) -> bool:
        """Whether no quiet sample supports it."""
        return self.timing.disturbed

    def __repr__(self) -> str:
        mark = ", disturbed" if self.disturbed else ""
        return f"{units.si(self.byte_per_s, 'B/s')} ({self.kernel}{mark})"


def peak(
    dtype: str | torch.dtype = torch.float32,
    where: Device = None,
    *,
    seconds: float = 3.0,
    sizes: Sequence[int] = SIZES,
    threads: int | None = None,
) -> Peak:
    """The best FLOP/s of a matmul of this dtype on this device, found in about that many seconds.

    >>> found = peak(torch.float32, "cpu", seconds=0.1, sizes=(64, 128))
    >>> found.flop_per_s > 0 and found.size in (64, 128)
    True

    A product of n × n matrices is 2n³ FLOPs. Square matrices of growing size with random numbers (zeros would be kinder
    than real data); then the best of them once more, for longer. Sizes stop where half of the free memory or half of
    the time would not do. "tfloat32" stands for float32 with the matrix unit's shortcut, which "float32" never takes.
    Without `threads`, all that torch has; if one alone is faster, others have the cores, and the result is one core's,
    disturbed.
    Raises ValueError for a dtype that is not a float, or that this device cannot multiply.
    """
    where = torch.device(where or device())
    threads = threads or torch.get_num_threads()
    label = str(dtype).removeprefix("torch.")
    stored = _stored_dtype(label, where)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if label == "tfloat32" else "highest")
    try:
        size, best = _best_matmul(stored, where, seconds, sizes, threads)
    finally:
        torch.set_float32_matmul_precision(before)
    return Peak(2 * size**3 / best.low, label, size, best)


def _stored_dtype(label: str, where: torch.device) -> torch.dtype:
    """The dtype in which matrices are stored that are multiplied in this one."""
    possible = label != "tfloat32" or where.type != "cpu"
    dtype = torch.float32 if label == "tfloat32" else getattr(torch, label, None)
    if not possible or not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise ValueError(f"no matmul peak for {label} on {where.type}: give a floating-point dtype such as bfloat16")
    return dtype


def _best_matmul(
    dtype: torch.dtype, where: torch.device, seconds: float, sizes: Sequence[int], threads: int
) -> tuple[int, Timing]:
    """The best size and its time: each size for a moment, then the three best for longer."""
    end, moment = perf_counter() + seconds, seconds / 40
    times, late = _all_matmuls(dtype, where, seconds, sizes, threads)

    def rate(size: int) -> float:
        return size**3 / times[size].low

    best = sorted(times, key=rate, reverse=True)[:3]
    for done, size in enumerate(best):
        share = (end - perf_counter()) / (len(best) - done)
        longer = _matmul_time(size, dtype, where, max(share, moment), threads)
        times[size] = timing.fastest([times[size], longer])
    size = max(best, key=rate)
    disturbed = late or any(times[one].disturbed for one in best)  # another size might have been better
    if disturbed and threads > 1 and where.type == "cpu":  # and so might one thread alone
        small = min(size, 512)
        alone = _matmul_time(small, dtype, where, seconds / 10, 1)
        if small**3 / alone.low > rate(size):
            return small, replace(alone, disturbed=True)
    return size, replace(times[size], disturbed=disturbed)


def _all_matmuls(
    dtype: torch.dtype, where: torch.device, seconds: float, sizes: Sequence[int], threads: int
) -> tuple[dict[int, Timing], bool]:
    """A short time of each size that there is time and memory for, and whether that time was over too soon."""
    end = perf_counter() + seconds
    times: dict[int, Timing] = {}
    late = False
    for size in sizes:
        late = perf_counter() > end  # others have had the cores, since half of the time should be left
        if times:  # the first is always tried
            best = max(one**3 / times[one].low for one in times)
            call = size**3 / best  # seconds; a size takes a warm-up and a few runs
            memory = 3 * size**2 * max(dtype.itemsize, 4)  # bytes; random numbers are made in float32
            if late or 8 * call > seconds / 2 or memory > free_memory(where) / 2:
                break
        times[size] = _matmul_time(size, dtype, where, seconds / 40, threads)
    return times, late


def _matmul_time(size: int, dtype: torch.dtype, where: torch.device, seconds: float, threads: int) -> Timing:
    a, b = (torch.randn(size, size, device=where).to(dtype) for _ in range(2))
    out = torch.zeros(size, size, device=where, dtype=dtype)  # memory that was touched before
    one = torch.ones((), device=where)

    def multiply() -> Tensor:
        return torch.mm(a, b, out=out)

    def multiply_scaled() -> Tensor:  # float8 is multiplied with scales, and wants the second matrix by columns
        each = one, F.ScalingType.TensorWise
        return F.scaled_mm(a, b.t(), *each, *each, output_dtype=torch.bfloat16)

    call = multiply_scaled if dtype.itemsize == 1 else multiply
    try:
        return timing.measure(call, seconds=seconds, threads=threads)
    except (RuntimeError, NotImplementedError, AttributeError) as error:  # an older PyTorch has no scaled_mm
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
    that each is long gone from the caches when its turn comes again. A byte read counts once, a byte written once, as
    in the STREAM benchmark (McCalpin 1995), whose kernels "copy" and "add" are.
    Tried up to three times, if disturbed. Without `threads`, all that torch has. Raises ValueError for less than 4 KiB,
    or more than half of what is free.
    """
    where = torch.device(where or device())
    size = _main_memory(where) if nbytes is None else nbytes
    for _ in range(3):
        (best,) = sweep(where, seconds=seconds, sizes=[size], threads=threads or torch.get_num_threads())
        if not best.disturbed:  # a single fast sample is no bandwidth
            break
    return best


def sweep(
    where: Device = None, *, seconds: float = 3.0, rounds: int = 3, sizes: Sequence[int] = (), threads: int = 1
) -> tuple[Bandwidth, ...]:
    """The bandwidth by working set, powers of two: caches show as steps, main memory comes last.

    On a CPU it is one core's, which waits for no other: so it holds on a busy machine, and the steps are at the sizes
    that `caches` tells. All sizes are measured in turn, several times over: a disturbance hits a round, not a size.
    """
    where = torch.device(where or device())
    if not sizes:
        smallest = 14 if where.type == "cpu" else 20
        sizes = [2**power for power in range(smallest, _main_memory(where).bit_length())]
    largest, free = max(sizes), free_memory(where)
    if not 4096 <= largest <= free // 2:
        limits = f"from 4 KiB to half of the {units.iec(free)} that are free"
        raise ValueError(f"a working set has {limits} on {where}, got {units.iec(largest)}")
    memory = torch.ones(largest // 4, device=where)  # ones are written; zeros might not be
    turns = []
    for size in sizes:
        kernels = _kernels(memory[: size // 4], threads)
        share = seconds / rounds / len(sizes) / len(kernels)
        # Each kernel, and each round, goes on where the last one left off: that slice was used longest ago.
        place = itertools.cycle(range(len(kernels[0].slices)))
        turns += [(size, kernel, map(kernel.slices.__getitem__, place), share) for kernel in kernels]
    times: list[list[Timing]] = [[] for _ in turns]
    for _ in range(rounds):
        for (_, kernel, inputs, share), found in zip(turns, times, strict=True):
            found.append(_timed(kernel.call, inputs, where, share, threads))
    best: dict[int, Bandwidth] = {}
    for (size, kernel, *_), found in zip(turns, times, strict=True):
        fastest = timing.fastest(found)
        rate = kernel.nbytes / fastest.low
        if size not in best or rate > best[size].byte_per_s:
            best[size] = Bandwidth(rate, size, kernel.name, fastest)
    return tuple(best.values())


def _timed(
    call: Callable[..., object], inputs: Iterable[tuple[Tensor, ...]], where: torch.device, seconds: float, threads: int
) -> Timing:
    """Its time with so many threads; or if that was disturbed the time with one, where that is less."""
    together = timing.measure(call, inputs=inputs, seconds=seconds, threads=threads)
    if together.disturbed and threads > 1 and where.type == "cpu":
        alone = timing.measure(call, inputs=inputs, seconds=seconds / 4, threads=1)
        return replace(min(together, alone, key=lambda found: found.low), disturbed=True)
    return together


def _main_memory(where: torch.device) -> int:
    """A working set that no cache holds, a power of two, and no more than a quarter of what is free."""
    least = 2**30 if where.type == "cpu" else 2**32
    wanted = max(least, 4 * max(caches(where).values(), default=0))
    possible = min(wanted, free_memory(where) // 4)
    return 1 << max(0, possible.bit_length() - 1)


@dataclass(frozen=True)
class _Kernel:
    """A way to pass through memory: the bytes that a call moves, the call, and the slices that it is given in turn."""

    name: str
    nbytes: int
    call: Callable[..., object]
    slices: list[tuple[Tensor, ...]]


def _kernels(memory: Tensor, threads: int) -> list[_Kernel]:
    """The kernels for this working set: "read" for any, the others where it is large enough."""
    on_cpu = memory.device.type == "cpu"
    lanes = threads if on_cpu else 1
    least = 2**22 * threads if on_cpu else 2**30  # bytes that a call should move
    in_slice = min(least // 4, memory.numel())  # numbers of 4 bytes
    slices = [part for part in memory.split(in_slice) if part.numel() == in_slice]
    # Each thread sums its own lane; a small one over and over in one call (stride 0), since starting a call takes long.
    lane = in_slice // lanes
    again = math.ceil(4 * least / memory.nbytes) if memory.nbytes < least else 1
    sums = torch.ones(lanes, again, device=memory.device)
    rows: list[tuple[Tensor, ...]] = [
        (part[: lanes * lane].view(lanes, 1, lane).expand(lanes, again, lane),) for part in slices
    ]
    read = _Kernel("read", 4 * lanes * again * lane, lambda row: torch.sum(row, -1, out=sums), rows)
    if again > 1:  # what cannot be repeated within a call would only measure how long it takes to start one
        return [read]
    half, third = in_slice // 2, in_slice // 3
    halves = [part[: 2 * half].view(2, half).unbind() for part in slices]
    thirds = [part[: 3 * third].view(3, third).unbind() for part in slices]
    return [
        read,
        _Kernel("dot", 8 * half, torch.dot, halves),
        _Kernel("copy", 8 * half, lambda source, target: target.copy_(source), halves),
        _Kernel("add", 12 * third, lambda a, b, c: torch.add(a, b, out=c), thirds),
    ]


# --- the ops that are put under a roof -----------------------------------------------------------------------------


@dataclass(frozen=True)
class SizedOp:
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

    @property
    def intensity(self) -> float:
        """FLOP per byte."""
        return self.flops / self.bytes


def ops(dtype: str | torch.dtype = torch.float32, rows: int = 2048, width: int = 0) -> tuple[SizedOp, ...]:
    """The fourteen ops of notebook 06: elementwise ones and reductions on rows × width (or rows), and matmuls.

    >>> [(op.name, round(op.intensity, 2)) for op in ops()][:3]
    [('ReLU', 0.12), ('GELU, fused', 1.12), ('GELU, eager', 0.11)]

    Attention is 8 heads of rows/4 tokens by 64, of which only the two matmuls count; the MLP step is forward and
    backward of rows/16 examples through layers of rows/8, rows/2 and rows/8.
    """
    label = str(dtype).removeprefix("torch.")
    width = width or rows
    n, square = rows * width, (rows, width)
    tokens, batch, narrow, wide = rows // 4, rows // 16, rows // 8, rows // 2
    heads = (1, 8, tokens, 64)
    layers = ((batch, narrow), (narrow, wide), (wide, narrow))
    # Two matmuls forward, three backward (the input needs no gradient); ReLU, its backward, and the sum.
    step = 10 * batch * narrow * wide + 2 * batch * wide + batch * narrow - 1
    table: list[tuple[str, Callable[..., Any], tuple[tuple[int, ...], ...], int, int]] = [
        # name, function, shapes, FLOPs, numbers moved
        ("ReLU", torch.relu, (square,), n, 2 * n),
        ("GELU, fused", lambda x: F.gelu(x, approximate="tanh"), (square,), 9 * n, 2 * n),
        ("GELU, eager", _gelu, (square,), 8 * n, 18 * n),  # six ops with one input, two with two: 6 × 2 + 2 × 3
        ("softmax", lambda x: F.softmax(x, -1), (square,), 5 * n - 2 * rows, 2 * n),  # max, subtract, exp, sum, divide
        ("layer norm", lambda x: F.layer_norm(x, x.shape[-1:]), (square,), 6 * n + 2 * rows, 2 * n),
        ("dot", torch.dot, ((n,), (n,)), 2 * n, 2 * n + 1),
        ("matrix-vector", torch.mv, (square, (width,)), 2 * n, n + rows + width),
        *((f"matmul {m}", torch.mm, ((m, m), (m, m)), 2 * m**3, 3 * m**2) for m in (64, 128, 256, 512, 1024)),
        ("attention", F.scaled_dot_product_attention, (heads,) * 3, 2048 * tokens**2, 2048 * tokens),
        ("MLP step", _mlp_step, layers, step, batch * narrow + 4 * narrow * wide),
    ]
    itemsize = getattr(torch, label).itemsize
    return tuple(
        SizedOp(name, run, shapes, flops, moved * itemsize, label) for name, run, shapes, flops, moved in table
    )


def _gelu(x: Tensor) -> Tensor:  # in its tanh form; in place, since the time of fresh pages differs from run to run
    a = torch.pow(x, 3)
    return a.mul_(0.044715).add_(x).mul_(math.sqrt(2 / math.pi)).tanh_().add_(1).mul_(x).mul_(0.5)


def _mlp_step(x: Tensor, first: Tensor, second: Tensor) -> tuple[Tensor, ...]:
    first, second = first.detach().requires_grad_(), second.detach().requires_grad_()
    return torch.autograd.grad((torch.relu(x @ first) @ second).sum(), (first, second))


def time_ops(
    work: Sequence[SizedOp],
    where: Device = None,
    *,
    seconds: float = 3.0,
    rounds: int = 1,
    threads: int | None = None,
) -> tuple[Timing, ...]:
    """The time of each op, in about that many seconds for all and the time to make their inputs.

    All inputs lie in memory that no cache holds, and take turns; so do the outputs, as `_rotating` tells. What other
    programs disturb is timed once more, in as many seconds again.
    Without `threads`, all that torch has; where one alone is faster, its time, disturbed. Raises ValueError for an op
    whose inputs do not fit into a quarter of the free memory.
    """
    where = torch.device(where or device())
    threads = threads or torch.get_num_threads()
    numbers = torch.rand(2**20, device=where).repeat(max(1, _main_memory(where) // 2**22))
    inputs = [_inputs(op, numbers.to(getattr(torch, op.dtype))) for op in work]
    times: list[list[Timing]] = [[] for _ in work]
    share = seconds / rounds / len(work)
    for turn in range(2 * rounds):  # as many again for those that are still disturbed
        for op, sets, found in zip(work, inputs, times, strict=True):
            if turn < rounds or timing.fastest(found).disturbed:
                call = _rotating(op.run, sets[0], where)
                found.append(_timed(call, sets, where, share, threads))
    return tuple(timing.fastest(found) for found in times)


def _rotating(run: Callable[..., Any], example: tuple[Tensor, ...], where: torch.device) -> Callable[..., None]:
    """The call, which keeps its latest results, so that a new one is written where no cache holds anything.

    The oldest of them is given up, and the next result has its memory, which was touched before.
    """
    result = run(*example)
    tensors = result if isinstance(result, tuple) else (result,)
    nbytes = sum(tensor.nbytes for tensor in tensors)
    wanted = 2 * max(caches(where).values(), default=2**25)
    possible = min(wanted, free_memory(where) // 8)
    count = min(2**14, max(1, possible // nbytes))
    touched = (tuple(map(torch.ones_like, tensors)) for _ in range(count))
    kept: deque[Any] = deque(touched, maxlen=count)
    return lambda *inputs: kept.append(run(*inputs))


def _inputs(op: SizedOp, numbers: Tensor) -> list[tuple[Tensor, ...]]:
    """As many sets of inputs as there are numbers for."""
    sizes = [math.prod(shape) for shape in op.shapes]
    count = min(2**14, len(numbers) // sum(sizes))
    if not count:
        raise ValueError(f"the inputs of {op.name} are too much for the {units.iec(numbers.nbytes)} that there are")
    sets = numbers[: count * sum(sizes)].view(count, -1)
    return [tuple(map(Tensor.view, one.split(sizes), op.shapes)) for one in sets]


def time_from_cache(work: Sequence[SizedOp], rows: int, where: Device = None) -> tuple[float, ...]:
    """Seconds of a call of each of some of the `ops(dtype, rows)`, of one dtype, with data that come from a cache.

    Of ops that go row by row, a few rows are used over and over. What they take beyond their launch, which is the time
    on single numbers, counts as often as they are fewer; to that comes one launch. Others run whole, on the same data
    in every call. What is disturbed is timed up to three times. It is nan where that tells nothing: where a few rows
    take less than twice their launch, and where the inputs are more than half of the largest cache.
    """
    where = torch.device(where or device())
    sizes = caches(where) or {"L2": 2**20}  # 1 MiB if unknown
    few = max(16, sizes.get("L2", 2**20) // (16 * rows))  # in and out, 8 bytes a number, half of the cache
    smaller = {op.name: op for op in ops(work[0].dtype, few, rows)}
    pieces = []  # what is run, and how many times it fits into the op
    for op in work:
        times = op.flops / smaller[op.name].flops
        by_rows = math.isclose(times, rows / few, rel_tol=0.01)
        pieces.append((smaller[op.name], times) if by_rows else (op, 1.0))
    most = max(sizes.values()) / 2
    rounds = [[_piece_and_launch(*piece, most, where) for piece in pieces] for _ in range(3)]
    found = []
    for (_, times), measured in zip(pieces, zip(*rounds, strict=True), strict=True):
        seconds, launch = map(min, zip(*measured, strict=True))  # a disturbance hits a round, not an op
        tells = seconds >= 2 * launch
        found.append(launch + times * (seconds - launch) if tells else math.nan)
    return tuple(found)


def _piece_and_launch(op: SizedOp, times: float, most: float, where: torch.device) -> tuple[float, float]:
    """The seconds of a piece, and those of its launch, which are taken off; nan for more bytes than may be."""
    dtype = getattr(torch, op.dtype)
    if sum(map(math.prod, op.shapes)) * dtype.itemsize > most:
        return math.nan, math.nan

    def again(shapes: Iterable[tuple[int, ...]], seconds: float) -> float:
        data = tuple(torch.rand(shape, device=where).to(dtype) for shape in shapes)
        found = []
        for _ in range(3):
            found.append(timing.measure(op.run, inputs=[data], seconds=seconds, threads=torch.get_num_threads()))
            if not found[-1].disturbed:
                break
        return min(one.low for one in found)

    whole = again(op.shapes, 0.1)
    if times == 1:
        return whole, 0.0
    single = [(1,) * len(shape) for shape in op.shapes]
    return whole, again(single, 0.03)
