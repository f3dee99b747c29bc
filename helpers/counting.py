"""What a piece of PyTorch code costs: floating-point operations and bytes, op by op.

`count(fn, *args)` runs `fn` once and looks at every op that PyTorch launches, forward and backward alike. What an op
costs in FLOPs is in `helpers.flops`; here is what it moves, and the sum.
"""

import gc
import html
import itertools
import math
import threading
import weakref
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from multiprocessing.dummy import DummyProcess
from typing import Any, NamedTuple

import torch
from torch import Tensor

from helpers import flops as rules
from helpers import units
from helpers.flops import Number, Op
from helpers.storage import distinct_offsets


@dataclass(frozen=True)
class OpCost:
    """One op as it was called: how often with inputs of these shapes, and what all these calls cost together.

    counted, bytes_counted: whether `flops` and `bytes` are all of it; otherwise it costs at least these.
    """

    op: str
    shapes: tuple[tuple[int, ...], ...]
    dtype: str
    calls: int
    flops: Number
    bytes: int
    counted: bool = True
    bytes_counted: bool = True


def _total(rows: list[OpCost], **names: Any) -> OpCost:
    whole: dict[str, Any] = {name: sum(getattr(row, name) for row in rows) for name in ("calls", "flops", "bytes")}
    whole |= {name: all(getattr(row, name) for row in rows) for name in ("counted", "bytes_counted")}
    return replace(rows[0], **whole, **names)


def _at_least(text: str, known: bool, mark: str = "at least ") -> str:
    return text if known else mark + text


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
        cells = []
        for row in rows:
            flops = _at_least(units.si(row.flops, "FLOP"), row.counted, "≥ ")
            moved = _at_least(units.si(row.bytes, "B"), row.bytes_counted, "≥ ")
            cells.append((row.op, row.calls, flops, moved))
        return units.table(["op", "calls", "FLOPs", "bytes"], cells)

    def _sentences(self) -> list[str]:
        all_bytes = all(row.bytes_counted for row in self.ops)
        sentences = [_at_least(units.si(self.flops, "FLOP"), not self.uncounted)]
        for how, nbytes, intensity in (
            ("op by op", self.bytes_eager, self.intensity_eager),
            ("ideally", self.bytes_ideal, self.intensity),
        ):
            moved = f"{how} {_at_least(units.si(nbytes, 'B'), all_bytes)}"
            sentences.append(f"{moved}, {units.si(intensity, 'FLOP/B')}" if all_bytes else moved)
        if self.uncounted:
            sentences.append("not counted: " + ", ".join(f"{op} × {times}" for op, times in self.uncounted.items()))
        return sentences

    def __repr__(self) -> str:
        return "\n".join([repr(self._table()), *self._sentences()] if self.ops else self._sentences())

    def _repr_html_(self) -> str:
        table = self._table()._repr_html_() if self.ops else ""
        return f"{table}<p>{'<br>'.join(map(html.escape, self._sentences()))}</p>"


# ---- Which bytes an op touches.

# In place, without reading what was there.
OVERWRITES = rules.ON_REQUEST | rules.names("""
    copy fill zero normal uniform bernoulli random exponential cauchy log_normal geometric index_copy index_fill
""")
# Read no more than they return.
GATHERS = rules.names("gather index _unsafe_index index_select take embedding")
# In place, reach no more of `self` than that argument has elements.
SCATTERS = {"index_copy": "source", "index_add": "source", "scatter": "src", "scatter_add": "src"}
SCATTERS |= {"index_put": "values"}


class View(NamedTuple):
    """Where in a storage a tensor's elements are. `stride` and `offset` count elements, `itemsize` bytes."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    itemsize: int
    offset: int

    @property
    def nbytes(self) -> int:
        """The different bytes that its elements take."""
        return _distinct_bytes(self.shape, self.stride, self.itemsize)

    @property
    def end(self) -> int:
        """The byte after its last element."""
        last = sum((n - 1) * step for n, step in zip(self.shape, self.stride, strict=True))
        return self.itemsize * (self.offset + last + 1)


@lru_cache(maxsize=4096)
def _distinct_bytes(shape: tuple[int, ...], stride: tuple[int, ...], itemsize: int) -> int:
    return itemsize * distinct_offsets(shape, stride)


def _view(tensor: Tensor) -> View:
    """Raises what PyTorch raises for a tensor without sizes, strides or a single storage (nested, sparse, oneDNN's)."""
    return View(tensor.shape, tensor.stride(), tensor.itemsize, int(tensor.storage_offset()))


MOST_COMPARED = 64  # of views that begin at one place and are no corners of each other


class Footprint:
    """Which bytes of one storage several views touch together."""

    def __init__(self) -> None:
        self.views: set[View] = set()
        # Of views that begin at one place and take the same steps, those that are no corner of another, as the filled
        # part of a cache is of the cache.
        self.largest: dict[Hashable, list[View]] = {}

    def add(self, view: View) -> None:
        """Take note of a view, in a time that does not grow with how many there are."""
        if view in self.views:
            return
        self.views.add(view)
        if 0 in view.shape:
            return
        others = self.largest.setdefault(view[1:], [])
        if len(others) >= MOST_COMPARED:
            others.append(view)
        elif not any(_is_corner(view, other) for other in others):
            others[:] = [other for other in others if not _is_corner(other, view)] + [view]

    def nbytes(self) -> int:
        """Different bytes: the sum over the views or the span of all, whichever is less, as they may interlock."""
        views = [view for others in self.largest.values() for view in others]
        if not views:
            return 0
        span = max(view.end for view in views) - min(view.offset * view.itemsize for view in views)
        return min(sum(view.nbytes for view in views), span)


def _is_corner(view: View, other: View) -> bool:
    """Whether one view is a corner of another that begins at the same place and takes the same steps."""
    return all(n <= m for n, m in zip(view.shape, other.shape, strict=True))


class Access(NamedTuple):
    """What an op does to a tensor, which may be `new`, made by this op.

    nbytes: how much of the tensor where that is less than all of it, at places that an index decides.
    """

    tensor: Tensor
    reads: bool
    writes: bool
    new: bool = False
    nbytes: int | None = None


def _moved(accesses: Iterable[Access]) -> int:
    """Distinct bytes of several tensors, some of which may be views of one storage."""
    views, indexed = defaultdict(list), 0
    for access in accesses:
        if access.nbytes is None:
            views[access.tensor.untyped_storage()].append(_view(access.tensor))
        else:
            indexed += access.nbytes
    return indexed + sum(_together(group) for group in views.values())


def _together(views: list[View]) -> int:
    if len(views) == 1:
        return views[0].nbytes
    footprint = Footprint()
    for view in views:
        footprint.add(view)
    return footprint.nbytes()


def accesses(op: Op, args: tuple, kwargs: dict, out: Any) -> list[Access]:
    """What an op does to each tensor among its arguments and its results."""
    named = op.named(args, kwargs)
    arguments = [(name, tensor) for name, value in named.items() for tensor in rules.tensors(value)]
    given = {tensor.untyped_storage() for _, tensor in arguments}
    results = []
    for tensor in rules.tensors(out):
        is_new = tensor.untyped_storage() not in given
        results.append(Access(tensor, reads=False, writes=is_new, new=is_new))
    if op.name in rules.EMPTY:
        return [result._replace(nbytes=0) for result in results]
    is_view = not op.writes and any(not result.new for result in results)
    if is_view:
        return []
    part = _moved(results) if op.name in GATHERS else _scattered(op, named)
    unread = op.outs if rules.accumulates(named) else _unread(op)
    used = []
    for name, tensor in arguments:
        access = Access(tensor, reads=name not in unread, writes=name in op.writes)
        is_indexed = part is not None and name in ("self", "weight") and part < _moved([access])
        used.append(access._replace(nbytes=part) if is_indexed else access)
    return used + results


@cache
def _unread(op: Op) -> set[str]:
    """The arguments that an op does not read, unless it combines what it brings with what is there."""
    if op.name in OVERWRITES:
        return op.outs | op.writes
    only_shape = op.name.endswith("_like") or op.name.startswith("new_")
    return op.outs | {"self"} if only_shape else op.outs


def _scattered(op: Op, named: dict[str, Any]) -> int | None:
    """Bytes of `self` that an indexed write in place touches at most; None where it is not one, or is not known."""
    if op.name not in SCATTERS or not op.writes or op.outs:
        return None
    try:  # what an index reaches, it would also read
        index = tuple(slice(None) if i is None else rules.to_meta(i) for i in named.get("indices", ()))
        values = rules.to_meta(named["self"])[index] if index else named[SCATTERS[op.name]]
        return values.numel() * named["self"].itemsize
    except (KeyError, NotImplementedError, RuntimeError):  # one number for all, or a mask that chooses
        return None


def _parts(tensor: Tensor) -> list[Tensor]:
    """The tensors with a storage in which a sparse, nested or distributed one keeps its numbers; else itself."""
    if rules.is_traceable_wrapper_subclass(tensor):
        names = tensor.__tensor_flatten__()[0]  # type: ignore[attr-defined]
    elif tensor.layout is torch.sparse_coo:
        names = ["_indices", "_values"]
    elif tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        names = ["crow_indices", "col_indices", "values"]
    elif tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        names = ["ccol_indices", "row_indices", "values"]
    else:
        return [tensor]
    found = (getattr(tensor, name) for name in names)
    return [part for value in found for part in _parts(value() if callable(value) else value)]


def _storages(tree: Any) -> list[torch.UntypedStorage]:
    """The storages of all tensors that have some; what oneDNN lays out for itself has none that can be seen."""
    found = []
    with rules.without_modes(), torch.no_grad():
        for tensor in rules.tensors(tree):
            try:
                found += [part.untyped_storage() for part in _parts(tensor)]
            except (NotImplementedError, RuntimeError):
                continue
    return found


# ---- The run, in every thread that works for it.

_here = threading.local()  # the watchers of this thread
_lock = threading.RLock()
_following: list["Watcher"] = []  # those for which threads are followed


def _watchers() -> tuple["Watcher", ...]:
    return getattr(_here, "watchers", ())


class Watcher:
    """Shows the ops to `see` that run inside `with`, also in threads that are given work meanwhile.

    A mode of PyTorch sees the ops of the thread that entered it alone. So a thread that starts inside enters it, too,
    and so does a thread of a ThreadPoolExecutor while it does what was submitted inside. `unfinished`: how much of that
    is not done yet.
    """

    def __init__(self, see: Callable[[Op, tuple, dict, Any], None]) -> None:
        self.see = see
        self.unfinished = 0
        self.is_over = False
        self._mode = rules.Watch(self._saw)

    def __enter__(self) -> "Watcher":
        with ExitStack() as stack:
            stack.enter_context(rules.as_written())
            stack.enter_context(_threads_followed(self))
            stack.enter_context(_on_this_thread(self))
            stack.enter_context(self._mode)
            self._stack = stack.pop_all()
        self.is_over = False
        return self

    def __exit__(self, *error: Any) -> None:
        self.is_over = True
        self._stack.close()

    def _saw(self, op: Op, args: tuple, kwargs: dict, out: Any) -> None:
        with _lock:
            if not self.is_over:
                self.see(op, args, kwargs, out)

    @contextmanager
    def on_thread(self) -> Iterator[None]:
        """Watch another thread than the one that entered this."""
        with _on_this_thread(self), rules.pushed(self._mode):
            yield

    def hand_over(self, works: int) -> None:
        """So many works more are handed to another thread; less than 0: so many are done."""
        with _lock:
            self.unfinished += works


@contextmanager
def _on_this_thread(watcher: Watcher) -> Iterator[None]:
    before = _watchers()
    _here.watchers = (*before, watcher)
    try:
        yield
    finally:
        _here.watchers = before


@contextmanager
def _threads_followed(watcher: Watcher) -> Iterator[None]:
    """While anyone watches, work for another thread is wrapped; of threads that nobody watches, it is not."""
    with _lock:
        if not _following:
            _Followed.start, _Followed.submit = threading.Thread.start, ThreadPoolExecutor.submit
            threading.Thread.start = _start  # type: ignore[assignment, method-assign]
            ThreadPoolExecutor.submit = _submit  # type: ignore[assignment, method-assign]
        _following.append(watcher)
    try:
        yield
    finally:
        with _lock:
            _following.remove(watcher)
            if not _following:
                threading.Thread.start = _Followed.start  # type: ignore[method-assign]
                ThreadPoolExecutor.submit = _Followed.submit  # type: ignore[method-assign]


class _Followed:
    """What stands in the place of `_start` and `_submit` when nobody watches."""

    start: Callable[..., None] = threading.Thread.start
    submit: Callable[..., Any] = ThreadPoolExecutor.submit


def _start(thread: threading.Thread) -> None:
    if _watchers():
        # A thread of multiprocessing's pools waits for more when its work is done, so it never ends by itself.
        works = 0 if isinstance(thread, DummyProcess) else 1
        thread.run = _handed_over(thread.run, works)  # type: ignore[method-assign]
    _Followed.start(thread)


def _submit(pool: ThreadPoolExecutor, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    watchers = _watchers()
    work = _handed_over(fn, 1) if watchers else fn
    _here.watchers = ()  # a thread that the pool starts for it outlives the work
    try:
        return _Followed.submit(pool, work, *args, **kwargs)
    finally:
        _here.watchers = watchers


def _handed_over(fn: Callable[..., Any], works: int) -> Callable[..., Any]:
    """`fn`, watched by those who watch the thread that hands it over."""
    watchers = _watchers()
    for watcher in watchers:
        watcher.hand_over(works)

    def work(*args: Any, **kwargs: Any) -> Any:
        with ExitStack() as stack:
            for watcher in watchers:
                stack.callback(watcher.hand_over, -works)
                stack.enter_context(watcher.on_thread())
            return fn(*args, **kwargs)

    return work


class _Traffic:
    """What a run did to one storage: which places it read and wrote, and how many bytes at places it cannot know."""

    def __init__(self, new: bool) -> None:
        self.new = new  # made by an op of the run, not from outside
        self.nbytes = 0
        self.read, self.written = Footprint(), Footprint()
        self.indexed_read, self.indexed_written = 0, 0

    def add(self, access: Access) -> None:
        """Take note of an access. What the run itself wrote before, it does not read from outside."""
        self.nbytes = max(self.nbytes, access.tensor.untyped_storage().nbytes())  # a storage may grow
        if access.nbytes is not None:
            self.indexed_read += access.nbytes if access.reads else 0
            self.indexed_written += access.nbytes if access.writes else 0
            return
        view = _view(access.tensor)
        if access.reads and view not in self.written.views:
            self.read.add(view)
        if access.writes:
            self.written.add(view)

    def bytes_read(self) -> int:
        """Distinct bytes that were read."""
        return min(self.read.nbytes() + self.indexed_read, self.nbytes)

    def bytes_written(self) -> int:
        """Distinct bytes that were written."""
        return min(self.written.nbytes() + self.indexed_written, self.nbytes)


def _key(value: Any) -> Hashable:
    if isinstance(value, Tensor):
        return value.shape, value.stride(), value.dtype
    if isinstance(value, list | tuple):
        return tuple(map(_key, value))
    return value


def _flops(known: dict[Hashable, Number | None], op: Op, args: tuple, kwargs: dict, out: Any) -> Number | None:
    """The FLOPs of a call, looked up among those of calls that look the same, or added to them."""
    try:
        key = (op, _key(args), *kwargs, _key(tuple(kwargs.values())), _key(out))
        return known[key]
    except KeyError:
        known[key] = rules.flops(op, args, kwargs, out)
        return known[key]
    except (NotImplementedError, RuntimeError, TypeError):  # a tensor without strides; what cannot be a key
        return rules.flops(op, args, kwargs, out)


class _Run:
    """Keeps what each op costs and which storages it touches; never a tensor."""

    def __init__(self) -> None:
        self.flops: dict[Hashable, Number | None] = {}  # of calls that look the same
        self.rows: dict[tuple, list[Number]] = defaultdict(lambda: [0, 0, 0])  # calls, FLOPs and bytes
        self.alive: weakref.WeakKeyDictionary[torch.UntypedStorage, _Traffic] = weakref.WeakKeyDictionary()
        self.outside: list[_Traffic] = []  # of what no op made here, alive or not

    def see(self, op: Op, args: tuple, kwargs: dict, out: Any) -> None:
        """Account for an op that has just run."""
        if op.is_view:
            return
        with rules.without_modes():
            try:
                self._account(op, args, kwargs, out)
            except Exception:  # nested tensors have no sizes, sparse ones no storage; a device may have its own ways
                if op.name not in rules.EMPTY:
                    self.name(op.label)

    def _account(self, op: Op, args: tuple, kwargs: dict, out: Any) -> None:
        inputs, outputs = rules.tensors((args, kwargs)), rules.tensors(out)
        shapes = tuple([tuple(tensor.shape) for tensor in inputs])
        is_closed = not op.plain and _flops(self.flops, op, args, kwargs, out) is None  # torch.cond and its like
        if is_closed or not inputs + outputs:
            raise NotImplementedError(f"what {op.label} touches cannot be seen")
        touched = accesses(op, args, kwargs, out)
        moved = _moved(access for access in touched if access.reads)
        moved += _moved(access for access in touched if access.writes)
        for access in touched:
            self._record(access)
        if moved:  # not a view, and something to do
            flops = _flops(self.flops, op, args, kwargs, out)
            dtype = str((outputs + inputs)[0].dtype).removeprefix("torch.")
            row = self.rows[op.label, shapes, dtype, flops is not None, True]
            row[:] = row[0] + 1, row[1] + (flops or 0), row[2] + moved

    def name(self, label: str, calls: int = 1) -> None:
        """Name as uncounted what cannot be described, bytes and all."""
        self.rows[label, (), "", False, False][0] += calls

    def _record(self, access: Access) -> None:
        """Keep what the op did to a tensor: with its storage, which is from outside unless an op made it here."""
        if not access.reads and not access.writes:
            return
        storage = access.tensor.untyped_storage()
        traffic = self.alive.get(storage)
        if traffic is None:
            traffic = self.alive[storage] = _Traffic(access.new)
            if not traffic.new:
                self.outside.append(traffic)
        traffic.add(access)

    def cost(self) -> Cost:
        """The sum over all calls. What remains is what is alive now."""
        ideal = sum(traffic.bytes_read() for traffic in self.outside)
        ideal += sum(traffic.bytes_written() for traffic in self.alive.values())
        ops = tuple(OpCost(*key[:3], *sums, *key[3:]) for key, sums in self.rows.items())  # type: ignore[arg-type]
        uncounted: Counter[str] = Counter()
        for row in ops:
            if not row.counted:
                uncounted[row.op] += row.calls
        return Cost(sum(row.flops for row in ops), sum(row.bytes for row in ops), ideal, ops, dict(uncounted))


def count(fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Cost:
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

    - A product of m × k by k × n is 2mnk FLOPs, also of quantised numbers, whose scales and zeros are not counted.
    - An elementary function (+, exp, tanh, erf) is 1 FLOP per output element; to reduce n numbers to one is n − 1. So
      a GELU is 5 FLOPs per element, and 9 where tanh approximates it.
    - A fused op is one op: it has the FLOPs of its parts, and moves only its own inputs and outputs. Attention is its
      two products, the scaling of the scores and their softmax; a causal mask is not subtracted, nor does it add.
      Where PyTorch has no fused attention, as on meta, its parts run, which scale queries and keys instead.
    - Padding counts like data. Copies, conversions, choosing, indexing and random numbers are 0 FLOPs, and so is
      arithmetic on places inside an op; what is added to what is there (an embedding's backward) is 1 per number.
    - An op moves each byte of its inputs and of its outputs once, a view nothing, one in place reads and writes; what
      is expanded counts once, and indexing reads no more than it returns. Several views of one storage count their sum
      or the span from the first byte to the last, whichever is less.
    - `bytes_ideal` are the inputs from outside (NumPy data too) and what remains at the end, also what a graph keeps
      for a later backward pass: count inference under `torch.no_grad()`.

    What is seen:

    - A function under torch.compile is counted as it is written, and is not compiled by the count.
    - Threads that `fn` starts, and a ThreadPoolExecutor to which it hands work, are counted. What they have not done
      when `fn` returns is named in `uncounted`.
    - Copies are seen where an op of their own makes them: nn.Linear on a turned (B, T, D) first clones it if something
      requires gradients, and else multiplies text by text. Not seen is what a kernel copies for itself, as bmm does
      with a batch whose rows are strided, [:, :, ::2]: that only a profiler shows.
    - What does not pass PyTorch's dispatcher is not seen: NumPy, a kernel in Triton, another process, a thread of
      another pool that was there before, or one that _thread starts. PyTorch's plans on fake tensors are no work.
    - What no rule covers (torch.cond and its like, sparse and nested tensors, an op of your own) is named in
      `uncounted`; where its bytes cannot be told either, the sums of bytes are "at least", too.
    - PyTorch may compute svdvals and eigvalsh to another last bit when watched.
    """
    if not callable(fn):
        raise TypeError(f"count takes a function, as in count(torch.mm, a, b); got a {type(fn).__name__}")
    run, planned = _Run(), _Run()

    def see(op: Op, args: tuple, kwargs: dict, out: Any) -> None:
        ledger = planned if rules.is_planned((args, kwargs, out)) else run
        ledger.see(op, args, kwargs, out)

    watcher = Watcher(see)
    with _cheap_collections():
        with watcher:
            result = fn(*args, **kwargs)  # noqa: F841 (alive until all is counted)
        gc.collect()  # what only cyclic garbage holds is freed; whether it would be gone by now is chance
        if watcher.unfinished:
            run.name("work of a thread", watcher.unfinished)
        # Fake tensors beside no real ones are what was asked for.
        return (run if run.rows else planned).cost()


@contextmanager
def _cheap_collections() -> Iterator[None]:
    """What is there before is not searched for garbage."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def kept_bytes(fn: Callable[[], Any], parameters: Iterable[Tensor] = ()) -> int:
    """The bytes that autograd keeps of what `fn()` runs, for its backward pass; parameters left out.

    >>> layer, x = torch.nn.Linear(4, 8), torch.ones(3, 4)
    >>> kept_bytes(lambda: layer(x), layer.parameters())  # the input: 3 · 4 numbers of 4 bytes
    48

    Of a tensor that is kept its whole storage counts, once: what autograd saves
    (torch.autograd.graph.saved_tensors_hooks), the tensors that a torch.autograd.Function keeps on its `ctx` by itself,
    and what else `fn` makes and only the graph behind its result holds, as selective checkpointing does. `fn` must
    return the tensors that the graph hangs on. Not seen: what is kept on other devices, by hooks that offload, in
    other threads, or in a layout without a storage (oneDNN's). torch.func.grad and its like refuse to run inside.
    """
    saved: set[torch.UntypedStorage] = set()
    made: weakref.WeakSet[torch.UntypedStorage] = weakref.WeakSet()

    def pack(tensor: Tensor) -> Tensor:  # autograd calls this for each tensor that it saves
        saved.update(_storages(tensor))
        return tensor

    with (
        _cheap_collections(),
        torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor),
        rules.Watch(lambda op, args, kwargs, out: made.update(_storages(out))),
    ):
        result = fn()
        graph = [leaf.grad_fn for leaf in rules.tree_leaves(result) if getattr(leaf, "grad_fn", None) is not None]
        saved.update(_storages(_on_contexts(graph)))
        made.difference_update(saved)
        del result
        gc.collect()
        held = [(weakref.ref(storage), storage.nbytes()) for storage in made]
        del graph
        gc.collect()
    by_graph_alone = sum(nbytes for storage, nbytes in held if storage() is None)
    return by_graph_alone + sum(storage.nbytes() for storage in saved.difference(_storages(list(parameters))))


def _on_contexts(graph: Iterable[Any]) -> list[Tensor]:
    """The tensors that a torch.autograd.Function keeps on its `ctx` as attributes, in the graph that ends in these."""
    waiting, seen, found = list(graph), set(graph), []
    while waiting:
        node = waiting.pop()
        found += rules.tensors(list(getattr(node, "__dict__", {}).values()))
        new = {following for following, _ in node.next_functions if following is not None} - seen
        seen |= new
        waiting += new
    return found


class Trace:
    """What is alive while code runs, op by op: `tensors`, which are there before, and results until nobody holds them.

    >>> x = torch.ones(1000)
    >>> with Trace([x]) as trace:
    ...     y = (x + 1) * 2
    >>> trace.memory, trace.flops  # x, x + 1 and y are alive after the second op
    ([8000, 12000], [1000, 2000])

    flops: those of all ops so far, after each op; at least these where `uncounted` names ops that no rule covers.
    Scratch space inside an op is not seen, nor a layout without a storage (oneDNN's).
    """

    def __init__(self, tensors: Iterable[Tensor] = ()) -> None:
        self.flops: list[Number] = []
        self.uncounted: Counter[str] = Counter()
        self._changes: Counter[int] = Counter()  # bytes, by the op after which they are there or gone
        self._sizes: weakref.WeakKeyDictionary[torch.UntypedStorage, list[int]] = weakref.WeakKeyDictionary()
        self._known: dict[Hashable, Number | None] = {}
        self._watcher = Watcher(self._ran)
        self._add(list(tensors))

    def __enter__(self) -> "Trace":
        self._watcher.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._watcher.__exit__(*error)
        if self._watcher.unfinished:
            self.uncounted["work of a thread"] += self._watcher.unfinished

    def _add(self, tree: Any) -> None:
        """Take note of storages that are new, or have grown or shrunk."""
        for storage in _storages(tree):
            size = self._sizes.get(storage)
            if size is None:
                size = self._sizes[storage] = [0]
                weakref.finalize(storage, self._free, size)
            self._change(storage.nbytes() - size[0])
            size[0] = storage.nbytes()

    def _free(self, size: list[int]) -> None:
        self._change(-size[0])

    def _change(self, nbytes: int) -> None:
        self._changes[len(self.flops)] += nbytes

    def _ran(self, op: Op, args: tuple, kwargs: dict, out: Any) -> None:
        with rules.without_modes():
            flops = _flops(self._known, op, args, kwargs, out)
        named = op.named(args, kwargs)
        self._add((out, [named.get(name) for name in op.writes]))
        self.uncounted.update([op.label] if flops is None else [])
        self.flops.append((self.flops[-1] if self.flops else 0) + (flops or 0))

    @property
    def memory(self) -> list[int]:
        """The bytes alive after each op."""
        return list(itertools.accumulate(self._changes[op] for op in range(len(self.flops))))

    @property
    def peak(self) -> int:
        """The most bytes that are alive at once; without an op those that were there before."""
        return max(self.memory, default=self._changes[0])
