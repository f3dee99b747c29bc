"""What a piece of PyTorch code costs: floating-point operations and bytes, op by op.

`count(fn, *args)` runs `fn` once and looks at every op that PyTorch launches, forward and backward alike. What an op
costs in FLOPs is in `helpers.flops`; here is what it moves, and the sum.

An op moves each byte of its inputs once and each byte of its outputs once (`bytes_eager` adds that up over the ops). A
view moves nothing, an op in place reads and writes; what is expanded or overlaps counts once; indexing reads no more
than it returns. If everything were fused, only the inputs from outside and the results would move (`bytes_ideal`).
"""

import gc
import html
import math
import sys
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from numbers import Real
from typing import Any

import torch
from torch import Tensor
from torch._C import DispatchKey
from torch._C._dynamo import eval_frame
from torch._ops import HigherOrderOperator
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import tree_leaves

from helpers import units
from helpers.flops import (
    EMPTY,
    GATHERS,
    SCATTERS,
    Number,
    Op,
    Rules,
    Watch,
    accumulates,
    named_arguments,
    without_modes,
)
from helpers.storage import marked, merged

_SHOWN = 12  # ops in a printed table


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

    def __add__(self, other: "OpCost") -> "OpCost":
        sums = {name: getattr(self, name) + getattr(other, name) for name in ("calls", "flops", "bytes")}
        return replace(self, counted=self.counted and other.counted, **sums)


@dataclass(frozen=True, repr=False)
class Cost:
    """What a run costs; in a notebook, a table by op.

    flops: operations that a rule covers; where `uncounted` is not empty, the run takes at least these.
    bytes_eager: what the ops move one by one, each reading its inputs and writing its outputs.
    bytes_ideal: inputs from outside that are read, and outputs that remain, each once.
    ops: a row per op, shapes and dtype, in the order of the first calls; views are not among them.
    uncounted: the ops that no rule covers, and how often they ran.

    Costs add up with `+` and `sum`; the ideal bytes of a sum are those of separate runs.
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

    def __add__(self, other: object) -> "Cost":
        if not isinstance(other, Cost):
            return NotImplemented
        return Cost(
            self.flops + other.flops,
            self.bytes_eager + other.bytes_eager,
            self.bytes_ideal + other.bytes_ideal,
            _merged(self.ops + other.ops, lambda row: (row.op, row.shapes, row.dtype)),
            dict(Counter(self.uncounted) + Counter(other.uncounted)),
        )

    def __radd__(self, other: object) -> "Cost":
        return self if other == 0 else NotImplemented  # sum() starts from 0

    def _table(self) -> units.Table:
        by_op = sorted(_merged(self.ops, lambda row: row.op), key=lambda row: (-row.flops, -row.bytes, row.op))
        shown = by_op if len(by_op) <= _SHOWN + 1 else by_op[:_SHOWN]
        if rest := by_op[len(shown) :]:
            shown.append(replace(sum(rest[1:], rest[0]), op=f"{len(rest)} more"))
        if len(by_op) > 1:
            shown.append(replace(sum(by_op[1:], by_op[0]), op="total"))
        lines = [
            (row.op, row.calls, ("" if row.counted else "≥ ") + units.si(row.flops, "FLOP"), units.si(row.bytes, "B"))
            for row in shown
        ]
        return units.table(["op", "calls", "FLOPs", "bytes"], lines)

    def _sentences(self) -> list[str]:
        names = [f"{op} × {times}" for op, times in self.uncounted.items()]
        names = names if len(names) <= _SHOWN + 1 else [*names[:_SHOWN], f"{len(names) - _SHOWN} more ops"]
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


def _merged(rows: Iterable[OpCost], key: Callable[[OpCost], Any]) -> tuple[OpCost, ...]:
    merged: dict[Any, OpCost] = {}
    for row in rows:
        merged[key(row)] = merged[key(row)] + row if key(row) in merged else row
    return tuple(merged.values())


# A region is where the elements of a tensor lie in its storage, in bytes: a start, and (step, size) pairs, the first
# with step 1. An address is the start plus some of each step.
Region = tuple[int, tuple[tuple[int, int], ...]]
Place = tuple[tuple[int, ...], tuple[int, ...], int, int]  # shape, stride, itemsize, offset
_SPAN = 1 << 24  # units that the exact union of irregular regions may span


def _place(tensor: Tensor) -> Place:
    return tensor.shape, tensor.stride(), tensor.itemsize, tensor.storage_offset()


@lru_cache(maxsize=4096)
def _region(shape: tuple[int, ...], stride: tuple[int, ...], itemsize: int, offset: int) -> Region:
    steps = sorted((step * itemsize, size) for size, step in zip(shape, stride, strict=True) if size > 1 and step)
    return offset * itemsize, tuple(merged([(1, itemsize), *steps]))


@lru_cache(maxsize=4096)
def _distinct(regions: frozenset[Region]) -> int:
    """How many different bytes the regions of one storage cover together."""
    if not regions:
        return 0
    ends = [(start, start + 1 + sum((size - 1) * step for step, size in steps)) for start, steps in regions]
    sizes = [math.prod(size for _, size in steps) for _, steps in regions]
    ((_, steps), *others) = regions
    if not others and _separate(steps):
        return sizes[0]
    low, high = min(ends)[0], max(end for _, end in ends)
    numbers = [number for start, ((_, run), *rest) in regions for number in (start - low, run, *(s for s, _ in rest))]
    unit = math.gcd(*numbers)
    if (high - low) // unit > _SPAN:  # an upper bound
        return min(high - low, sum(sizes))
    covered = 0
    for start, ((_, run), *rest) in regions:
        covered |= marked([(unit, run // unit), *rest], unit) << (start - low) // unit
    return covered.bit_count() * unit


def _separate(steps: Iterable[tuple[int, int]]) -> bool:
    """Whether each step goes beyond the reach of all finer ones, so that no address comes up twice."""
    reach = 0
    for step, size in steps:
        if step <= reach:
            return False
        reach += (size - 1) * step
    return True


def _bytes(places: Iterable[Place]) -> int:
    return _distinct(frozenset(_region(*place) for place in places if 0 not in place[0]))


class _Storage:
    """What the run did to one storage: which places it read and wrote, and how much at places that it cannot know."""

    __slots__ = ("nbytes", "produced", "read_some", "reads", "ref", "writes", "wrote_some")

    def __init__(self, storage: torch.UntypedStorage, produced: bool) -> None:
        # PyTorch keeps the Python object of a storage for as long as the storage lives, so a weak reference tells
        # whether it is gone, and whether an id belongs to it or to a later storage at the same address.
        self.ref, self.produced, self.nbytes = weakref.ref(storage), produced, storage.nbytes()
        self.reads: set[Place] = set()  # of what comes from outside: nothing is noted of what the run produced
        self.writes: set[Place] = set()
        self.read_some = self.wrote_some = 0

    def ideal(self) -> int:
        read = min(_bytes(self.reads) + self.read_some, self.nbytes)
        remains = 0 if self.ref() is None else min(_bytes(self.writes) + self.wrote_some, self.nbytes)
        return read + remains


@dataclass(eq=False)
class _Call:
    """What one call costs; calls of the same op on tensors that look the same share it."""

    row: OpCost
    reads: list[tuple[int, int | None]] = field(default_factory=list)  # which tensor; bytes, if not all of it
    writes: list[tuple[int, int | None]] = field(default_factory=list)
    creates: list[int] = field(default_factory=list)  # without writing: empty
    calls: int = 0


# Of other floats only the type goes into the key of a call: they do not change the count, and a learning rate that
# changes every step must not fill the memo. These do: a factor of 1 costs nothing, and norms of these orders cost less.
_SPECIAL = frozenset((0.0, 1.0, 2.0, -2.0, math.inf, -math.inf))


def _flatten(values: Iterable[Any], tensors: list[Tensor], key: list) -> None:
    for value in values:
        if isinstance(value, Tensor):
            tensors.append(value)
            key += (value.shape, value.stride() if value.layout is torch.strided else value.layout, value.dtype)
        elif isinstance(value, list | tuple):
            key.append(len(value))
            _flatten(value, tensors, key)
        elif type(value) is float and value not in _SPECIAL:
            key.append(float)
        else:
            key.append(value)


def _unfolds(kind: type) -> bool:
    return kind.__torch_dispatch__ is not torch._C._disabled_torch_dispatch_impl and not issubclass(kind, FakeTensor)


class _Run(Watch):
    """Watches every op, and keeps what it costs and which storages it touches; never a tensor."""

    supports_higher_order_operators = True

    def __init__(self, rules: Rules) -> None:
        super().__init__()
        self.rules = rules
        self.memo: dict[tuple, _Call] = {}
        self.storages: dict[int, _Storage] = {}
        self.closed: list[_Storage] = []
        self.limit = 1024

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        if isinstance(func, HigherOrderOperator):
            return self.higher_order(func, args, kwargs or {})
        if types and any(map(_unfolds, types)):
            return NotImplemented  # a tensor subclass unfolds itself into ops that come here again
        return super().__torch_dispatch__(func, types, args, kwargs)

    def higher_order(self, func: HigherOrderOperator, args: tuple, kwargs: dict) -> Any:
        if func is torch.ops.higher_order.cond:  # its eager form refuses to run under any mode
            pred, if_true, if_false, operands = args
            with self:
                return (if_true if pred else if_false)(*operands)
        if DispatchKey.CompositeExplicitAutograd in func.py_kernels:  # the eager form, made of plain ops
            with self:
                return func.py_kernels[DispatchKey.CompositeExplicitAutograd](*args, **kwargs)
        self.unknown((func,), func._name)
        return func(*args, **kwargs)

    def unknown(self, key: tuple, name: str) -> None:
        self.memo.setdefault(key, _Call(OpCost(name, (), "", 1, 0, 0, False))).calls += 1

    def see(self, op: Op, args: tuple, kwargs: dict, out: Any) -> None:
        if op.view:
            return None
        tensors: list[Tensor] = []
        key: list = [op]
        _flatten(args, tensors, key)
        if kwargs:
            key += kwargs
            _flatten(kwargs.values(), tensors, key)
        inputs = len(tensors)
        _flatten((out,), tensors, key)
        try:
            storages = [tensor.untyped_storage() for tensor in tensors]
        except (NotImplementedError, RuntimeError):  # sparse and the like: no strides, no single storage
            return self.unknown((op,), op.label) if op.name not in EMPTY else None
        ids = [id(storage) for storage in storages]
        if len(set(ids)) < len(ids):
            key += [(ids.index(i), tensor.storage_offset()) for i, tensor in zip(ids, tensors, strict=True)]
        call = self.memo.get(key := tuple(key))
        if call is None:
            call = self.memo[key] = self.first(op, args, kwargs, out, tensors, inputs, ids)
        call.calls += 1

        for i, some in call.reads:
            storage = self.find(ids[i], storages[i], False)
            if not storage.produced:
                place = _place(tensors[i])
                if place not in storage.writes:
                    if some is None:
                        storage.reads.add(place)
                    else:
                        storage.read_some += some
        for i, some in call.writes:
            storage = self.find(ids[i], storages[i], i >= inputs)
            if some is None:
                storage.writes.add(_place(tensors[i]))
            else:
                storage.wrote_some += some
        for i in call.creates:
            self.find(ids[i], storages[i], True)

    def find(self, key: int, storage: torch.UntypedStorage, produced: bool) -> _Storage:
        """The record of a storage. One that was never seen is from outside, unless it is an output."""
        known = self.storages.get(key)
        if known is not None:
            if known.ref() is storage:
                return known
            if not known.produced:  # it is gone and its id used again, but what was read from it still counts
                self.closed.append(known)
        elif len(self.storages) > self.limit:
            self.storages = {k: s for k, s in self.storages.items() if not s.produced or s.ref() is not None}
            self.limit = 2 * len(self.storages) + 1024
        self.storages[key] = _Storage(storage, produced)
        return self.storages[key]

    def first(
        self, op: Op, args: tuple, kwargs: dict, out: Any, tensors: list[Tensor], inputs: int, ids: list[int]
    ) -> _Call:
        """The cost of a call that was not seen before."""
        named = named_arguments(op.func, args, kwargs)
        roles = [name for name, value in named.items() for leaf in tree_leaves(value) if isinstance(leaf, Tensor)]
        places = [_place(t) for t in tensors]
        fresh = [i for i in range(inputs, len(tensors)) if ids[i] not in ids[:inputs]]
        dtypes = [str(t.dtype).removeprefix("torch.") for t in (*tensors[inputs:], *tensors)]
        row = OpCost(op.label, tuple(tuple(t.shape) for t in tensors[:inputs]), (dtypes or [""])[0], 1, 0, 0)
        if op.name in EMPTY:
            return _Call(row, creates=fresh)
        if len(fresh) < len(tensors) - inputs and not op.writes:
            return _Call(row)  # a view: its output is the memory of an input
        with without_modes():
            whole = [_bytes([place]) for place in places]
            some = sum(whole[i] for i in fresh) if op.name in GATHERS else _scattered(op, named)
            part = {i: some for i, name in enumerate(roles) if name in ("self", "weight") and (some or 0) < whole[i]}
            unread = op.outs if accumulates(named) else op.unread
            reads = [(i, part.get(i)) for i, name in enumerate(roles) if name not in unread]
            writes = [(i, part.get(i)) for i, name in enumerate(roles) if name in op.writes]
            writes += [(i, None) for i in fresh]
            nbytes = _moved(reads, places, ids) + _moved(writes, places, ids)
            flops, known = self.rules.flops(op.func, args, kwargs, out)
        return _Call(replace(row, flops=flops, bytes=nbytes, counted=known), reads, writes)

    def cost(self) -> Cost:
        """The sum over all calls. What remains is what is alive now."""
        calls = list(self.memo.values())
        rows = [
            replace(c.row, calls=c.calls, flops=c.calls * c.row.flops, bytes=c.calls * c.row.bytes)
            for c in calls
            if c.reads or c.writes or not c.row.counted
        ]
        uncounted: Counter[str] = Counter()
        for row in rows:
            uncounted[row.op] += 0 if row.counted else row.calls
        ideal = sum(storage.ideal() for storage in (*self.closed, *self.storages.values()))
        return Cost(
            sum(row.flops for row in rows),
            sum(row.bytes for row in rows),
            ideal,
            _merged(rows, lambda row: (row.op, row.shapes, row.dtype, row.counted)),
            dict(+uncounted),
        )


# torch.cond and its like call the compiler even in eager mode: it is to leave the count alone, and all that runs in it.
if hasattr(eval_frame, "set_code_exec_strategy"):  # torch 2.6 has no such thing; there torch.cond refuses to be counted
    _SKIP = eval_frame._FrameExecStrategy(eval_frame._FrameAction.SKIP, eval_frame._FrameAction.SKIP)
    eval_frame.set_code_exec_strategy(_Run.__torch_dispatch__.__code__, _SKIP)


def _scattered(op: Op, named: dict[str, Any]) -> int | None:
    """Bytes of `self` that an indexed write in place touches at most; None where it is not one, or is not known."""
    values = named.get(SCATTERS.get(op.name, ""))
    if not op.writes or op.outs or not isinstance(values, Tensor):
        return None
    if op.name == "index_put":
        indices = [i for i in named["indices"] if i is not None]
        if any(i.dtype in (torch.bool, torch.uint8) for i in indices):
            return None
        self = named["self"]
        rest = [n for n, i in zip(self.shape, [*named["indices"], *[None] * self.dim()], strict=False) if i is None]
        return math.prod(torch.broadcast_shapes(*(i.shape for i in indices))) * math.prod(rest) * self.itemsize
    return values.numel() * values.itemsize


def _moved(moved: list[tuple[int, int | None]], places: list[Place], ids: list[int]) -> int:
    """Distinct bytes of several tensors, some of which may share a storage."""
    whole: dict[int, list[Place]] = {}
    for i, some in moved:
        if some is None:
            whole.setdefault(ids[i], []).append(places[i])
    return sum(map(_bytes, whole.values())) + sum(some for _, some in moved if some is not None)


def _rules(exact: bool, prices: Mapping[str, Number] | None) -> Rules:
    for name, price in (prices or {}).items():
        if not hasattr(torch.ops.aten, name):
            raise ValueError(
                f"prices names {name!r}, which is no op of torch.ops.aten; write it as in 'tanh' or 'gelu'"
            )
        if isinstance(price, bool) or not isinstance(price, Real) or not 0 <= price < math.inf:
            raise ValueError(f"the price of {name!r} is a number of FLOPs per element, got {price!r}")
    return Rules(exact, dict(prices or {}))


def count(
    fn: Callable[..., Any], *args: Any, exact: bool = False, prices: Mapping[str, Number] | None = None, **kwargs: Any
) -> Cost:
    """What `fn(*args, **kwargs)` costs: FLOPs and bytes, op by op.

    >>> a, b = torch.ones(2, 3), torch.ones(3, 5)
    >>> count(torch.matmul, a, b).flops  # 2 · 2 · 3 · 5
    60
    >>> count(torch.matmul, a, b, exact=True).flops  # 2 · 5 · (2 · 3 − 1)
    50
    >>> count(lambda: torch.nn.functional.gelu(a @ b, approximate="tanh"), prices={"tanh": 12})
    op     calls  FLOPs     bytes
    -----  -----  --------  ---------
    gelu   1      200 FLOP  80 bytes
    mm     1      60 FLOP   124 bytes
    total  2      260 FLOP  204 bytes
    260 FLOP
    op by op 204 bytes, 1.27 FLOP/B
    ideally 124 bytes, 2.1 FLOP/B

    `fn` runs once, as it would without the count: same results, gradients and random numbers. It may call backward;
    its result may be anything. Tensors may be on the CPU, on CUDA or on meta, where nothing is allocated. What `fn`
    raises comes through. `exact` and `prices` are for the count; wrap an `fn` that has arguments of that name.

    A price is per output element, of a reduction per number that is combined. What a graph for a later backward pass
    saves is among the outputs that remain; count inference under `torch.no_grad()`. Tensors made from Python or NumPy
    data inside `fn` are inputs from outside. The conventions for FLOPs are those of `helpers.flops`. While any dispatch
    mode is active, PyTorch computes svdvals and eigvalsh in another way: there results differ in the last bit.

    Raises TypeError if `fn` cannot be called, ValueError for a price of an op that does not exist or is no number.
    """
    if not callable(fn):
        raise TypeError(
            f"count takes a function and its arguments, as in count(torch.matmul, a, b); got a {type(fn).__name__}"
        )
    run = _Run(_rules(exact, prices))
    gc.collect(1)  # so that all that dies in `fn` is young, and collecting it afterwards cheap
    before = gc.get_stats()
    with run:
        result = fn(*args, **kwargs)
    _drop_cycles(run, result, before)
    cost = run.cost()
    del result
    return cost


def _drop_cycles(run: _Run, result: Any, before: list[dict]) -> None:
    """Free what only cyclic garbage still holds: it does not remain, and when it would go is up to chance."""
    kept = {id(leaf.untyped_storage()) for leaf in tree_leaves(result) if isinstance(leaf, Tensor) and _strided(leaf)}
    if all(not s.produced or s.ref() is None or key in kept for key, s in run.storages.items()):
        return
    grown_old = any(gc.get_stats()[i]["collections"] != before[i]["collections"] for i in (1, 2))
    gc.collect(2 if grown_old or sys.version_info >= (3, 14) else 1)  # 3.14 collects in increments


def _strided(tensor: Tensor) -> bool:
    return tensor.layout is torch.strided
