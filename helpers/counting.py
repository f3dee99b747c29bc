"""What a piece of PyTorch code costs: floating-point operations and bytes, op by op.

`count(fn, *args)` runs `fn` once and looks at every op that PyTorch launches, forward and backward alike. What an op
costs in FLOPs is in `helpers.flops`; here is what it moves, and the sum.
"""

import gc
import html
import itertools
import math
import weakref
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from helpers import flops as rules
from helpers import units
from helpers.flops import Number, Op
from helpers.storage import distinct_offsets


@dataclass(frozen=True)
class OpCost:
    """One op as it was called: how often with inputs of these shapes, and what all these calls cost together."""

    op: str
    shapes: tuple[tuple[int, ...], ...]
    dtype: str
    calls: int
    flops: Number
    bytes: int
    counted: bool = True


def _total(rows: list[OpCost], **names: Any) -> OpCost:
    sums = {name: sum(getattr(row, name) for row in rows) for name in ("calls", "flops", "bytes")}
    return replace(rows[0], counted=all(row.counted for row in rows), **sums, **names)


@dataclass(frozen=True, repr=False)
class Cost:
    """What a run costs; in a notebook, a table by op.

    flops: operations that a rule covers; where `uncounted` is not empty, the run takes at least these.
    bytes_eager: what the ops move one by one, each reading its inputs and writing its outputs.
    bytes_ideal: inputs from outside that are read, and outputs that remain, each once.
    ops: a row per op, shapes and dtype, in the order of the first calls, without views and ops on nothing.
    uncounted: the ops that no rule covers, and how often they ran.
    """

    flops: Number = 0
    bytes_eager: int = 0
    bytes_ideal: int = 0
    ops: tuple[OpCost, ...] = ()
    uncounted: Mapping[str, int] = field(default_factory=dict)

    @property
    def intensity(self) -> float:
        """FLOP per byte if every byte moves once: flops / bytes_ideal. NaN if nothing moves."""
        return self.flops / self.bytes_ideal if self.bytes_ideal else math.nan

    @property
    def intensity_eager(self) -> float:
        """FLOP per byte as the ops run one by one: flops / bytes_eager. NaN if nothing moves."""
        return self.flops / self.bytes_eager if self.bytes_eager else math.nan

    def _table(self) -> units.Table:
        by_op = [_total([row for row in self.ops if row.op == op]) for op in {row.op for row in self.ops}]
        rows = sorted(by_op, key=lambda row: (-row.flops, -row.bytes, row.op))
        rows += [_total(rows, op="total")] if len(rows) > 1 else []
        cells = [
            (row.op, row.calls, ("" if row.counted else "≥ ") + units.si(row.flops, "FLOP"), units.si(row.bytes, "B"))
            for row in rows
        ]
        return units.table(["op", "calls", "FLOPs", "bytes"], cells)

    def _sentences(self) -> list[str]:
        names = [f"{op} × {times}" for op, times in self.uncounted.items()]
        return [
            f"{'at least ' if names else ''}{units.si(self.flops, 'FLOP')}",
            f"op by op {units.si(self.bytes_eager, 'B')}, {units.si(self.intensity_eager, 'FLOP/B')}",
            f"ideally {units.si(self.bytes_ideal, 'B')}, {units.si(self.intensity, 'FLOP/B')}",
            *([f"not counted: {', '.join(names)}"] if names else []),
        ]

    def __repr__(self) -> str:
        return "\n".join([repr(self._table()), *self._sentences()] if self.ops else self._sentences())

    def _repr_html_(self) -> str:
        table = self._table()._repr_html_() if self.ops else ""
        return f"{table}<p>{'<br>'.join(map(html.escape, self._sentences()))}</p>"


# ---- Which bytes an op touches.

Place = tuple[tuple[int, ...], tuple[int, ...], int, int]  # shape, stride, itemsize, offset in elements


class Access(NamedTuple):
    """What an op does to a tensor: `kind` is read, write, update (both), make (a new output) or pass.

    nbytes: how much of the tensor where that is less than all of it, at places that an index decides.
    """

    tensor: Tensor
    nbytes: int | None
    kind: str


READS, WRITES = ("read", "update"), ("write", "update", "make")


def _place(tensor: Tensor) -> Place:
    return tensor.shape, tensor.stride(), tensor.itemsize, tensor.storage_offset()


@lru_cache(maxsize=4096)
def _distinct_bytes(places: frozenset[Place]) -> int:
    """How many different bytes these views of one storage touch together; an upper bound if they interlock."""
    places = [place for place in places if 0 not in place[0]]
    whole = [place for place in places if not any(_inside(place, other) for other in places if place != other)]
    sizes = [itemsize * distinct_offsets(shape, stride) for shape, stride, itemsize, _ in whole]
    ends = [
        itemsize * (offset + 1 + sum((n - 1) * step for n, step in zip(shape, stride, strict=True)))
        for shape, stride, itemsize, offset in whole
    ]
    start = min((offset * itemsize for _, _, itemsize, offset in whole), default=0)
    return min(sum(sizes), max(ends, default=0) - start)


def _inside(place: Place, other: Place) -> bool:
    """Whether one view is a corner of another, as the filled part of a cache is of the cache."""
    smaller = len(place[0]) == len(other[0]) and all(n <= m for n, m in zip(place[0], other[0], strict=True))
    return smaller and place[1:] == other[1:]


def _moved(accesses: Iterable[Access]) -> int:
    """Distinct bytes of several tensors, some of which may be views of one storage."""
    places, indexed = defaultdict(set), 0
    for tensor, nbytes, _ in accesses:
        if nbytes is None:
            places[tensor.untyped_storage()].add(_place(tensor))
        else:
            indexed += nbytes
    return indexed + sum(_distinct_bytes(frozenset(views)) for views in places.values())


def accesses(op: Op, args: tuple, kwargs: dict, out: Any) -> list[Access]:
    """What an op does to each tensor among its arguments and its results."""
    named = op.named(args, kwargs)
    arguments = [(name, tensor) for name, value in named.items() for tensor in rules.tensors(value)]
    given = {tensor.untyped_storage() for _, tensor in arguments}
    made = [Access(t, None, "pass" if t.untyped_storage() in given else "make") for t in rules.tensors(out)]
    if op.name in rules.EMPTY:
        return [access._replace(nbytes=0) for access in made]
    if not op.writes and any(access.kind == "pass" for access in made):
        return []  # a view
    part = _moved(made) if op.name in rules.GATHERS else _scattered(op, named)
    unread = op.outs if rules.accumulates(named) else op.unread
    used = []
    for name, tensor in arguments:
        kinds = ("pass", "write") if name in unread else ("read", "update")
        access = Access(tensor, None, kinds[name in op.writes])
        indexed = part is not None and name in ("self", "weight") and part < _moved([access])
        used.append(access._replace(nbytes=part) if indexed else access)
    return used + made


def _scattered(op: Op, named: dict[str, Any]) -> int | None:
    """Bytes of `self` that an indexed write in place touches at most; None where it is not one, or is not known."""
    if op.name not in rules.SCATTERS or not op.writes or op.outs:
        return None
    try:  # what an index reaches, it would also read
        index = tuple(slice(None) if i is None else rules.to_meta(i) for i in named.get("indices", ()))
        values = rules.to_meta(named["self"])[index] if index else named[rules.SCATTERS[op.name]]
        return values.numel() * named["self"].itemsize
    except (KeyError, NotImplementedError, RuntimeError):  # one number for all, or a mask that chooses
        return None


# ---- The run.


class _Traffic:
    """What a run did to one storage: which places it read and wrote, and how many bytes at places it cannot know."""

    def __init__(self, nbytes: int, made: bool) -> None:
        self.nbytes, self.made = nbytes, made  # made by an op of the run, or from outside
        self.places: dict[str, set[Place]] = {"read": set(), "written": set()}
        self.indexed = {"read": 0, "written": 0}

    def total(self, how: str) -> int:
        """Distinct bytes read or written."""
        return min(_distinct_bytes(frozenset(self.places[how])) + self.indexed[how], self.nbytes)


def _key(value: Any) -> Hashable:
    if isinstance(value, Tensor):
        return value.shape, value.stride(), value.dtype
    if isinstance(value, list | tuple):
        return tuple(map(_key, value))
    return value


def _flops(known: dict[Hashable, Number | None], op: Op, args: tuple, kwargs: dict, out: Any) -> Number | None:
    """The FLOPs of a call, looked up among those of calls that look the same, or added to them."""
    key = (op, _key(args), *kwargs, _key(tuple(kwargs.values())), _key(out))
    if key not in known:
        known[key] = rules.flops(op, args, kwargs, out)
    return known[key]


class _Run:
    """Keeps what each op costs and which storages it touches; never a tensor."""

    def __init__(self) -> None:
        self.flops: dict[Hashable, Number | None] = {}  # of calls that look the same
        self.rows: dict[tuple, list[Number]] = defaultdict(lambda: [0, 0, 0])  # calls, FLOPs and bytes
        self.alive: weakref.WeakKeyDictionary[torch.UntypedStorage, _Traffic] = weakref.WeakKeyDictionary()
        self.outside: list[_Traffic] = []  # of what no op made here, alive or not

    def see(self, op: Op, args: tuple, kwargs: dict, out: Any) -> None:
        """Account for an op that has just run."""
        inputs = rules.tensors((args, kwargs))
        tensors = rules.tensors(out) + inputs
        if not op.plain or any(tensor.layout is not torch.strided for tensor in tensors) or not tensors:
            # torch.cond and its like; sparse tensors and their like, which have no single storage
            if not op.view and op.name not in rules.EMPTY:
                self.rows[op.label, (), "", False][0] += 1
            return
        if op.view:
            return
        with rules.without_modes():
            touched = accesses(op, args, kwargs, out)
            moved = sum(_moved(a for a in touched if a.kind in kinds) for kinds in (READS, WRITES))
            for access in touched:
                self.record(access)
            if not moved:  # a view, or nothing to do
                return
            flops = _flops(self.flops, op, args, kwargs, out)
        dtype = str(tensors[0].dtype).removeprefix("torch.")
        row = self.rows[op.label, tuple(tuple(t.shape) for t in inputs), dtype, flops is not None]
        row[:] = row[0] + 1, row[1] + (flops or 0), row[2] + moved

    def record(self, access: Access) -> None:
        """Keep what the op did to a tensor: with its storage, which is from outside unless an op made it here."""
        tensor, nbytes, kind = access
        if kind == "pass":
            return
        storage = tensor.untyped_storage()
        traffic = self.alive.get(storage)
        if traffic is None:
            traffic = self.alive[storage] = _Traffic(storage.nbytes(), kind == "make")
            if not traffic.made:
                self.outside.append(traffic)
        for how, kinds in (("read", READS), ("written", WRITES)):
            if kind in kinds and nbytes is not None:
                traffic.indexed[how] += nbytes
            elif kind in kinds and (how == "written" or _place(tensor) not in traffic.places["written"]):
                traffic.places[how].add(_place(tensor))

    def cost(self) -> Cost:
        """The sum over all calls. What remains is what is alive now."""
        ideal = sum(traffic.total("read") for traffic in self.outside)
        ideal += sum(traffic.total("written") for traffic in self.alive.values())
        ops = tuple(OpCost(*name, *sums, counted) for (*name, counted), sums in self.rows.items())
        uncounted: Counter[str] = Counter()
        for row in ops:
            if not row.counted:
                uncounted[row.op] += row.calls
        return Cost(sum(row.flops for row in ops), sum(row.bytes for row in ops), ideal, ops, dict(uncounted))


def count(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Cost:
    """What `fn(*args, **kwargs)` costs: FLOPs and bytes, op by op.

    >>> a, b = torch.ones(2, 3), torch.ones(3, 5)
    >>> count(torch.matmul, a, b).flops  # 2 · 2 · 3 · 5
    60
    >>> count(lambda: torch.nn.functional.gelu(a @ b, approximate="tanh"))
    op     calls  FLOPs     bytes
    -----  -----  --------  ---------
    gelu   1      90 FLOP   80 bytes
    mm     1      60 FLOP   124 bytes
    total  2      150 FLOP  204 bytes
    150 FLOP
    op by op 204 bytes, 0.735 FLOP/B
    ideally 124 bytes, 1.21 FLOP/B

    `fn` runs once, as it would without the count: same results, gradients and random numbers. It may call backward;
    its result may be anything. Tensors may be on the CPU, on CUDA or on meta, where nothing is allocated. What `fn`
    raises comes through. Raises TypeError if `fn` cannot be called.

    The conventions:

    - A product of m × k by k × n is 2mnk FLOPs.
    - An elementary function (+, exp, tanh, erf) is 1 FLOP per output element; to reduce n numbers to one is n − 1. So
      a GELU is 5 FLOPs per element, and 9 where tanh approximates it.
    - A fused op is one op: it has the FLOPs of its parts, and moves only its own inputs and outputs.
    - A causal mask is not subtracted: attention costs the same with it and without it.
    - Padding counts like data. Copies, conversions, choosing, indexing and random numbers are 0 FLOPs.
    - An op moves each byte of its inputs and of its outputs once, a view nothing, one in place reads and writes; what
      is expanded counts once, and indexing reads no more than it returns. Several views of one storage count their sum
      or the span from the first byte to the last, whichever is less.
    - `bytes_ideal` are the inputs from outside (NumPy data too) and what remains at the end, also what a graph keeps
      for a later backward pass: count inference under `torch.no_grad()`.
    - What an op copies inside itself is not seen, as bmm does where no stride of a matrix is 1: a profiler shows that.
    - What does not pass PyTorch's dispatcher (NumPy, a kernel in Triton) is not seen, nor what torch.cond and its like
      run: that is named in `uncounted`. PyTorch may compute svdvals and eigvalsh to another last bit when watched.
    """
    if not callable(fn):
        raise TypeError(f"count takes a function, as in count(torch.mm, a, b); got a {type(fn).__name__}")
    run = _Run()
    gc.freeze()  # what was there before is not searched when ...
    try:
        with rules.Watch(run.see):
            result = fn(*args, **kwargs)  # noqa: F841 (alive until all is counted)
        gc.collect()  # ... what only cyclic garbage holds is freed; whether it would be gone by now is chance
        return run.cost()
    finally:
        gc.unfreeze()


def kept_bytes(fn: Callable[[], Any], parameters: Iterable[Tensor] = ()) -> int:
    """The bytes that autograd keeps of what `fn()` runs, for its backward pass; parameters left out.

    >>> layer, x = torch.nn.Linear(4, 8), torch.ones(3, 4)
    >>> kept_bytes(lambda: layer(x), layer.parameters())  # the input: 3 · 4 numbers of 4 bytes
    48

    Of a tensor that is kept its whole storage counts, once (torch.autograd.graph.saved_tensors_hooks).
    """
    kept = set()

    def pack(tensor: Tensor) -> Tensor:  # autograd calls this for each tensor that it keeps
        kept.add(tensor.untyped_storage())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        fn()
    return sum(storage.nbytes() for storage in kept - {tensor.untyped_storage() for tensor in parameters})


class Trace(rules.Watch):
    """What is alive while code runs, op by op: `tensors`, which are there before, and results until nobody holds them.

    >>> x = torch.ones(1000)
    >>> with Trace([x]) as trace:
    ...     y = (x + 1) * 2
    >>> trace.memory, trace.flops  # x, x + 1 and y are alive after the second op
    ([8000, 12000], [1000, 2000])

    flops: those of all ops so far, after each op; at least these where `uncounted` names ops that no rule covers.
    Scratch space inside an op is not seen.
    """

    def __init__(self, tensors: Iterable[Tensor] = ()) -> None:
        super().__init__(self._ran)
        self.flops: list[Number] = []
        self.uncounted: Counter[str] = Counter()
        self._changes: Counter[int] = Counter()  # bytes, by the op after which they are there or gone
        self._seen, self._known = weakref.WeakSet(), {}
        self._add(tensors)

    def _add(self, tensors: Iterable[Tensor]) -> None:
        for tensor in tensors:
            if (storage := tensor.untyped_storage()) not in self._seen:
                self._seen.add(storage)
                self._change(storage.nbytes())
                weakref.finalize(storage, self._change, -storage.nbytes())

    def _change(self, nbytes: int) -> None:
        self._changes[len(self.flops)] += nbytes

    def _ran(self, op: Op, args: tuple, kwargs: dict, out: Any) -> None:
        with rules.without_modes():
            flops = _flops(self._known, op, args, kwargs, out) if op.plain else None
        self._add(tensor for tensor in rules.tensors(out) if tensor.layout is torch.strided)
        self.uncounted.update([op.label] if flops is None else [])
        self.flops.append((self.flops[-1] if self.flops else 0) + (flops or 0))

    @property
    def memory(self) -> list[int]:
        """The bytes alive after each op."""
        return list(itertools.accumulate(self._changes[op] for op in range(len(self.flops))))

    peak = property(lambda self: max(self.memory), doc="The most bytes that are alive at once.")
