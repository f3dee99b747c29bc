"""What a piece of PyTorch code costs: floating-point operations and bytes, op by op.

`count(fn, *args)` runs `fn` once and looks at every op that PyTorch dispatches, forward and backward alike.

The conventions, by name:

- *one prim, one FLOP*: an elementary operation (+, ×, a comparison, a rounding, exp, tanh, erf ...; the elementwise
  ops of `torch._prims`) costs 1 per output element, for integers as for floats. `prices={"tanh": 12}` sets another
  price per element; so does `prices={"gelu": 20}` for any other aten op.
- *2mnk*: a product of m × k by k × n costs 2mnk, with `exact=True` mn(2k − 1); adding a bias costs mn more.
- *n − 1*: reducing n numbers to one takes n − 1 operations.
- *moving is free*: copies, conversions, choosing (where, masked_fill), indexing and random numbers cost 0.
- All else (softmax, norms, GELU, losses, attention, and their backwards) is counted through PyTorch's own
  decomposition into these. What no rule covers is listed in `uncounted`, never silently zero.
"""

import gc
import html
import math
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

import torch
from torch import Tensor
from torch._C import DispatchKey
from torch._decomp import decomposition_table
from torch._ops import HigherOrderOperator, OpOverload
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.flop_counter import flop_registry

from helpers import units

aten = torch.ops.aten

# The names below are those of aten ops, without overload and without the _ of the in-place form.
ELEMENTARY = frozenset(
    """add sub rsub mul div neg reciprocal abs sign sgn signbit floor ceil round trunc fmod remainder maximum minimum
    fmax fmin eq ne lt le gt ge isfinite logical_and logical_or logical_xor logical_not bitwise_and bitwise_or
    bitwise_xor bitwise_not bitwise_left_shift bitwise_right_shift shift_left shift_right_arithmetic __lshift__
    __rshift__ gcd lcm nextafter pow sqrt rsqrt cbrt hypot exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos
    atan atan2 sinh cosh tanh asinh acosh atanh erf erfc erfinv erf_inv erfcx lgamma digamma polygamma igamma igammac
    zeta ndtri i0 bessel_i0 bessel_i0e bessel_i1 bessel_i1e bessel_j0 bessel_j1 spherical_bessel_j0 special_ndtri
    special_i0e special_i1 special_i1e special_zeta special_erfcx special_bessel_j0 special_bessel_j1
    special_spherical_bessel_j0""".split()
)
REDUCTIONS = frozenset("sum prod amax amin max min argmax argmin aminmax all any xor_sum".split())
SCANS = frozenset("cumsum cumprod cummax cummin _cummax_helper _cummin_helper".split())
SCATTER_ADDS = {"index_add": "source", "scatter_add": "src", "index_put": "values", "_index_put_impl": "values"}
# Ops that move or make data: memory traffic, no arithmetic.
MOVES = frozenset(
    """copy clone lift lift_fresh_copy _to_copy _copy_from convert_element_type device_put copy_to cat stack
    constant_pad_nd roll flip rev tril triu tril_indices triu_indices repeat fill zero zeros ones full eye zeros_like
    ones_like full_like new_zeros new_ones new_full scalar_tensor arange iota where masked_fill masked_select
    masked_scatter gather index index_select take embedding scatter index_copy index_fill put slice_scatter
    select_scatter diagonal_scatter as_strided_scatter nonzero im2col pixel_shuffle pixel_unshuffle channel_shuffle
    complex _conj_physical conj_physical rand randn randint randperm rand_like randn_like randint_like normal uniform
    bernoulli random exponential cauchy log_normal geometric _local_scalar_dense item""".split()
)
# Ops that touch no data at all (views are found by their schema and by what they share).
EMPTY = frozenset(
    """empty empty_like empty_strided empty_permuted new_empty new_empty_strided resize resize_as_ set_ is_pinned
    is_same_size _has_compatible_shallow_copy_type record_stream""".split()
)


def _named(func: OpOverload, args: tuple, kwargs: dict) -> dict[str, Any]:
    return dict(zip((a.name for a in func._schema.arguments), args, strict=False)) | kwargs


# What PyTorch decomposes only down to another composite, written out in plain torch. Called with the op's arguments.


def _var(self: Tensor, dim: list[int] | None = None, **_: Any) -> Tensor:
    apart = self - self.mean(dim, keepdim=True)  # two passes, as torch._inductor does it
    return (apart * apart).sum(dim) / 2


def _attention(query: Tensor, key: Tensor, value: Tensor, is_causal: bool = False, scale=None, **rest: Any) -> Tensor:
    mask = rest.get("attn_mask", rest.get("attn_bias"))
    gqa = query.shape[-3] != key.shape[-3]
    return aten._scaled_dot_product_attention_math(query, key, value, mask, 0.0, is_causal, enable_gqa=gqa)[0]


def _attention_backward(query: Tensor, key: Tensor, value: Tensor, out: Tensor, logsumexp: Tensor, **rest: Any) -> None:
    # FlashAttention-2 (Dao 2023), algorithm 2: the scores are not stored, they are computed once more.
    grad = rest.get("grad_out", rest.get("grad_out_"))
    mask = rest.get("attn_mask", rest.get("attn_bias"))
    if query.shape[-3] != key.shape[-3]:
        key, value = (t.expand(*query.shape[:-2], *t.shape[-2:]) for t in (key[..., :1, :, :], value[..., :1, :, :]))
    scores = query @ key.mT * 0.5
    scores = scores if mask is None else scores + mask
    p = (scores - scores[..., :1]).exp()
    p.mT @ grad
    ds = p * (grad @ value.mT - (grad * out).sum(-1, keepdim=True))
    (ds @ key * 0.5, ds.mT @ query * 0.5)


DEFINITIONS: dict[str, Callable] = {
    "var": _var,
    "var_mean": _var,  # the mean is a step on the way
    "std": lambda **a: _var(**a).sqrt(),
    "std_mean": lambda **a: _var(**a).sqrt(),
    "equal": lambda self, other: (self == other).all(),
    "cumsum": lambda self, dim, **_: self,
} | {
    f"_scaled_dot_product_{kind}{suffix}": definition
    for kind in ("flash_attention", "efficient_attention", "cudnn_attention", "fused_attention_overrideable")
    for suffix, definition in (("", _attention), ("_backward", _attention_backward))
}
DEFINITIONS["_scaled_dot_product_flash_attention_for_cpu"] = _attention
DEFINITIONS["_scaled_dot_product_flash_attention_for_cpu_backward"] = _attention_backward
del DEFINITIONS["cumsum"]

MATMULS = {"mm": 0, "bmm": 0, "mv": 0, "dot": 0, "vdot": 0, "_int_mm": 0, "addmm": 1, "baddbmm": 1, "addmv": 1}
CONVOLUTIONS = frozenset("convolution _convolution cudnn_convolution mkldnn_convolution convolution_backward".split())
WINDOWS = frozenset("max_pool2d_with_indices max_pool3d_with_indices avg_pool2d avg_pool3d".split())


def _numel(out: Any) -> int:
    return next((t.numel() for t in tree_leaves(out) if isinstance(t, Tensor)), 0)


def _to_meta(value: Any) -> Any:
    if isinstance(value, Tensor):
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
    return torch.device("meta") if isinstance(value, torch.device) else value


@dataclass(frozen=True, eq=False)
class _Op:
    """What the schema of an op says, looked up once."""

    func: OpOverload
    name: str
    label: str
    composite: bool
    view: bool
    writes: frozenset[str]
    unread: frozenset[str]


OVERWRITES = frozenset("copy fill zero normal uniform bernoulli random exponential cauchy log_normal geometric".split())
LIKES = frozenset("zeros_like ones_like full_like rand_like randn_like randint_like new_zeros new_ones new_full".split())
GATHERS = frozenset("gather index index_select take embedding".split())


@cache
def _op(func: OpOverload) -> _Op:
    namespace, name = func._overloadpacket._qualified_op_name.split("::")
    arguments = func._schema.arguments
    writes = frozenset(a.name for a in arguments if a.alias_info is not None and a.alias_info.is_write)
    base = name if name.startswith("__") else name.removesuffix("_")
    out = frozenset(a.name for a in arguments if a.is_out)
    unread = out | (writes if base in OVERWRITES else frozenset()) | ({"self"} if base in LIKES else frozenset())
    composite = torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd")
    label = name if namespace == "aten" else f"{namespace}.{name}"
    return _Op(func, base, label, composite, func.is_view or torch.Tag.inplace_view in func.tags, writes, unread)


def _functional(func: OpOverload) -> OpOverload:
    """The form of an op that writes nothing: add for add_ and for add.out."""
    name, overload = func._overloadpacket._qualified_op_name.split("::")[1], func._overloadname
    packet = getattr(aten, name.removesuffix("_"), func._overloadpacket)
    for candidate in (overload, overload.removesuffix("_out"), "default"):
        if hasattr(packet, candidate) and not _op(getattr(packet, candidate)).writes:
            return getattr(packet, candidate)
    return func


class _Tally(TorchDispatchMode):
    """Counts the FLOPs of a decomposition that runs on meta tensors."""

    def __init__(self, rules: "_Rules") -> None:
        super().__init__()
        self.rules, self.flops, self.known = rules, 0, True

    def __torch_dispatch__(self, func: OpOverload, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        if _op(func).composite:
            with self:
                return func.decompose(*args, **kwargs)
        out = func(*args, **kwargs)
        flops, known = self.rules.flops(func, args, kwargs, out)
        self.flops += flops
        self.known &= known
        return out


class _Rules:
    """FLOPs of one call of an op, and whether they are all of them."""

    def __init__(self, exact: bool, prices: Mapping[str, float]) -> None:
        self.exact, self.prices, self.open = exact, prices, []

    def flops(self, func: OpOverload, args: tuple, kwargs: dict, out: Any) -> tuple[float, bool]:
        op = _op(func)
        if op.view or op.name in EMPTY:
            return 0, True
        name, named = op.name, _named(func, args, kwargs)
        price = self.prices.get(name, 1)
        target = out if out is not None else args[0] if args else None
        if name in REDUCTIONS:
            return price * max(args[0].numel() - _numel(out), 0), True
        if name in SCANS:
            size = args[0].shape[args[1]] if args[0].dim() else 1
            return price * (args[0].numel() - args[0].numel() // max(size, 1)), True
        if name in ELEMENTARY and named.get("alpha", 1) == 1:
            return price * _numel(target), True
        if name in self.prices:
            return price * _numel(target), True
        if name in SCATTER_ADDS and named.get("accumulate", True):
            return named[SCATTER_ADDS[name]].numel(), True
        if name in MOVES or name in SCATTER_ADDS:
            return 0, True
        if name in MATMULS:
            return self.matmul(MATMULS[name], args, kwargs, out), True
        if name in CONVOLUTIONS:
            return self.convolution(named, out), True
        return self.decompose(func, args, kwargs, out)

    def matmul(self, left: int, args: tuple, kwargs: dict, out: Tensor) -> int:
        k = args[left].shape[-1]
        flops = out.numel() * max(2 * k - self.exact, 0)
        if left:
            beta, alpha = kwargs.get("beta", 1), kwargs.get("alpha", 1)
            flops += out.numel() * ((beta != 0) + (beta not in (0, 1)) + (alpha != 1))
        return flops

    def convolution(self, named: dict, out: Any) -> int:
        backward = "grad_output" in named
        image = named["grad_output"] if backward else out
        positions = (named["input"] if named.get("transposed") else image).shape[2:]
        one = 2 * named["weight"].numel() * named["input"].shape[0] * math.prod(positions)
        if not backward:
            return one - self.exact * out.numel() + (named.get("bias") is not None) * out.numel()
        flops = sum(one - self.exact * t.numel() for t in out[:2] if t is not None)
        return flops + (image.numel() - out[2].numel() if out[2] is not None else 0)

    def decompose(self, func: OpOverload, args: tuple, kwargs: dict, out: Any) -> tuple[float, bool]:
        if func in self.open:
            return 0, False
        best = (0, False)
        self.open.append(func)
        try:
            for way in self.ways(func):
                margs, mkwargs = tree_map(_to_meta, (args, kwargs))
                tally = _Tally(self)
                try:
                    with tally:
                        way(margs, mkwargs)
                except Exception:  # a decomposition that needs values, or does not take these arguments
                    continue
                best = max(best, (tally.flops, tally.known), key=lambda found: found[::-1])
                if tally.known:
                    break
        finally:
            self.open.pop()
        if not best[1] and func._overloadpacket in flop_registry:
            return flop_registry[func._overloadpacket](*args, **kwargs, out_val=out), True
        return best

    def ways(self, func: OpOverload) -> Iterator[Callable]:
        pure = _functional(func)
        outs = _op(func).writes & _op(func).unread
        name = _op(func).name
        if name in DEFINITIONS:
            yield lambda a, k: DEFINITIONS[name](**_named(func, a, k))
        if name.startswith("_foreach_"):
            each = getattr(aten, name.removeprefix("_foreach_"))
            yield lambda a, k: [
                each(*(x[i] if isinstance(x, list | tuple) else x for x in a), **k) for i in range(len(a[0]))
            ]
        for f in dict.fromkeys((pure, func)):
            if f in decomposition_table:
                yield lambda a, k, f=f: decomposition_table[f](*a, **{n: v for n, v in k.items() if n not in outs})
        if torch._C._dispatch_has_kernel_for_dispatch_key(pure.name(), "CompositeExplicitAutograd"):
            yield lambda a, k: pure._op_dk(
                DispatchKey.CompositeExplicitAutograd, *a, **{n: v for n, v in k.items() if n not in outs}
            )


# Bytes. A region is where the elements of a tensor lie in its storage: a start and progressions (count, stride), in
# bytes; the set of addresses is the start plus one term of each progression.
Region = tuple[int, tuple[tuple[int, int], ...]]


@lru_cache(maxsize=4096)
def _region(shape: tuple[int, ...], stride: tuple[int, ...], offset: int, itemsize: int) -> Region | None:
    if 0 in shape:
        return None
    terms = [(1, itemsize)] if False else [(itemsize, 1)]
    for count, step in sorted(((n, s * itemsize) for n, s in zip(shape, stride, strict=True) if n > 1 and s), key=lambda p: (p[1], p[0])):
        for i, (inner, fine) in enumerate(terms):
            if step % fine == 0 and step // fine <= inner:  # the progressions abut or overlap: one longer progression
                terms[i] = (inner + (count - 1) * (step // fine), fine)
                break
        else:
            terms.append((count, step))
    return offset * itemsize, tuple(terms)


def _span(region: Region) -> int:
    return 1 + sum((count - 1) * step for count, step in region[1])


@lru_cache(maxsize=4096)
def _distinct(regions: frozenset[Region]) -> int:
    """How many different bytes the regions cover together."""
    if not regions:
        return 0
    if len(regions) == 1:
        (region,) = regions
        size = math.prod(count for count, _ in region[1])
        extent = 0
        for count, step in region[1]:
            if step <= extent:
                break
            extent += (count - 1) * step
        else:
            return size
    low = min(start for start, _ in regions)
    unit = 0
    for start, terms in regions:
        unit = math.gcd(unit, start - low, terms[0][0], *(step for _, step in terms[1:]))
    high = max(start + _span((start, terms)) for start, terms in regions)
    if (high - low) // unit > 1 << 28:
        return min(high - low, sum(_distinct(frozenset([region])) for region in regions))
    mask = torch.zeros((high - low) // unit, dtype=torch.bool)
    for start, terms in regions:
        (run, _), rest = terms[0], terms[1:]
        shape, stride = (run // unit, *(n for n, _ in rest)), (1, *(s // unit for _, s in rest))
        mask.as_strided(shape, stride, (start - low) // unit).fill_(True)
    return int(mask.sum()) * unit


@dataclass(frozen=True)
class OpCost:
    """One op as it was called: how often with these shapes, and what all these calls together cost."""

    op: str
    shapes: tuple[tuple[int, ...], ...]
    dtype: str
    calls: int
    flops: float
    bytes: int
    counted: bool = True


@dataclass(frozen=True, repr=False)
class Cost:
    """What a run costs.

    flops: all floating-point operations that a rule covers; the true number is at least this if `uncounted` is not empty.
    bytes_eager: what the ops move one by one, each reading its inputs and writing its outputs.
    bytes_ideal: the external inputs that are read and the outputs that remain, once each.
    ops: a row per op, shapes and dtype, in the order of their first calls.
    uncounted: the ops that no rule covers, and how often they ran.
    """

    flops: float = 0
    bytes_eager: int = 0
    bytes_ideal: int = 0
    ops: tuple[OpCost, ...] = ()
    uncounted: Mapping[str, int] = field(default_factory=dict)

    @property
    def intensity(self) -> float:
        """FLOP per byte if every byte moved only once: flops / bytes_ideal."""
        return self.flops / self.bytes_ideal if self.bytes_ideal else math.nan

    @property
    def intensity_eager(self) -> float:
        """FLOP per byte as the ops run one by one: flops / bytes_eager."""
        return self.flops / self.bytes_eager if self.bytes_eager else math.nan

    def __add__(self, other: "Cost") -> "Cost":
        if not isinstance(other, Cost):
            return NotImplemented
        return Cost(
            self.flops + other.flops,
            self.bytes_eager + other.bytes_eager,
            self.bytes_ideal + other.bytes_ideal,
            _merged(self.ops + other.ops),
            dict(Counter(self.uncounted) + Counter(other.uncounted)),
        )

    def __radd__(self, other: object) -> "Cost":
        return self if other == 0 else NotImplemented  # sum() starts from 0

    def _table(self) -> units.Table:
        groups: dict[str, OpCost] = {}
        for row in self.ops:
            old = groups.get(row.op, OpCost(row.op, (), "", 0, 0, 0))
            groups[row.op] = OpCost(
                row.op, (), "", old.calls + row.calls, old.flops + row.flops, old.bytes + row.bytes,
                old.counted and row.counted,
            )  # fmt: skip
        order = sorted(groups.values(), key=lambda g: (-g.flops, -g.bytes, g.op))
        rest = order[_SHOWN:] if len(order) > _SHOWN + 1 else []
        lines = [(g.op, g.calls, g.flops, g.bytes, g.counted) for g in order[: len(order) - len(rest)]]
        for name, some in ((f"{len(rest)} more", rest), ("total", order)):
            if some:
                sums = (sum(getattr(g, what) for g in some) for what in ("calls", "flops", "bytes"))
                lines.append((name, *sums, all(g.counted for g in some)))
        return units.table(
            ["op", "calls", "FLOP", "bytes"],
            [(op, n, ("" if known else "≥ ") + units.si(f, "FLOP"), units.si(b, "B")) for op, n, f, b, known in lines],
        )

    def _sentence(self) -> str:
        text = (
            f"{'at least ' if self.uncounted else ''}{units.si(self.flops, 'FLOP')}; "
            f"{units.si(self.bytes_eager, 'B')} op by op ({units.si(self.intensity_eager, 'FLOP/B')}), "
            f"{units.si(self.bytes_ideal, 'B')} at best ({units.si(self.intensity, 'FLOP/B')})"
        )
        if self.uncounted:
            shown = [f"{op} × {times}" for op, times in self.uncounted.items()]
            more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
            text += f"\nnot counted: {', '.join(shown[:_SHOWN])}{more}"
        return text

    def __repr__(self) -> str:
        return f"{self._table()}\n{self._sentence()}" if self.ops else self._sentence()

    def _repr_html_(self) -> str:
        sentence = html.escape(self._sentence()).replace("\n", "<br>")
        return (self._table()._repr_html_() if self.ops else "") + f"<p>{sentence}</p>"


_SHOWN = 12


def _merged(rows: Iterable[OpCost]) -> tuple[OpCost, ...]:
    merged: dict[tuple, OpCost] = {}
    for row in rows:
        key = (row.op, row.shapes, row.dtype, row.counted)
        old = merged.get(key)
        merged[key] = row if old is None else OpCost(
            row.op, row.shapes, row.dtype, old.calls + row.calls, old.flops + row.flops, old.bytes + row.bytes, row.counted
        )
    return tuple(merged.values())


class _Storage:
    """What the run did to one storage."""

    __slots__ = ("partial", "produced", "reads", "ref", "writes")

    def __init__(self, storage: torch.UntypedStorage, produced: bool) -> None:
        self.ref, self.produced = weakref.ref(storage), produced
        self.reads: set[tuple] = set()
        self.writes: set[tuple] = set()
        self.partial = 0


@dataclass(eq=False)
class _Call:
    """A call seen before: the same op on tensors of the same layout that share storage in the same way."""

    row: tuple[str, tuple, str]
    flops: float
    known: bool
    nbytes: int
    reads: list[tuple[int, tuple, int | None]]
    writes: list[tuple[int, tuple]]
    calls: int = 0


_KEPT = frozenset((0.0, 0.5, 1.0, 2.0, -0.5, -1.0, -2.0, math.inf, -math.inf))


def _flatten(values: Iterable, tensors: list[Tensor], key: list) -> None:
    for value in values:
        if isinstance(value, Tensor):
            tensors.append(value)
            key += (value.shape, value.stride() if value.layout is torch.strided else None, value.dtype)
        elif isinstance(value, list | tuple):
            key.append(len(value))
            _flatten(value, tensors, key)
        elif type(value) is float:
            # Floats change the count only at special values (alpha = 1, p = 2); a learning rate must not fill the memo.
            key.append(value if value in _KEPT else float)
        else:
            key.append(value)


class _Run(TorchDispatchMode):
    supports_higher_order_operators = True

    def __init__(self, rules: _Rules) -> None:
        super().__init__()
        self.rules = rules
        self.memo: dict[tuple, _Call | None] = {}
        self.storages: dict[int, _Storage] = {}
        self.gone: list[_Storage] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        if isinstance(func, HigherOrderOperator):
            return func(*args, **kwargs)
        op = _op(func)
        if op.composite:
            with self:
                return func.decompose(*args, **kwargs)
        out = func(*args, **kwargs)
        if not op.view:
            self.record(op, args, kwargs, out)
        return out

    def record(self, op: _Op, args: tuple, kwargs: dict, out: Any) -> None:
        tensors: list[Tensor] = []
        key: list = [op]
        _flatten(args, tensors, key)
        if kwargs:
            key += kwargs
            _flatten(kwargs.values(), tensors, key)
        inputs = len(tensors)
        _flatten((out,), tensors, key)
        try:
            storages = [t.untyped_storage() for t in tensors]
        except (NotImplementedError, RuntimeError):  # sparse: no strides, no single storage
            row = (op.label, tuple(tuple(t.shape) for t in tensors[:inputs]), _dtype(tensors))
            self.memo.setdefault(tuple(key), _Call(row, 0, False, 0, [], [])).calls += 1
            return
        ids = [id(s) for s in storages]
        if len(set(ids)) < len(ids):
            key += [(ids.index(i), t.storage_offset()) for i, t in zip(ids, tensors, strict=True)]
        key = tuple(key)
        try:
            call = self.memo[key]
        except KeyError:
            call = self.memo[key] = self.meet(op, args, kwargs, out, tensors, inputs, ids)
        call.calls += 1
        for i, layout, part in call.reads:
            storage = self.storages.get(ids[i])
            if storage is None or storage.ref() is not storages[i]:
                storage = self.track(ids[i], storages[i], produced=False)
            if not storage.produced:
                place = (*layout, tensors[i].storage_offset())
                if part is not None:
                    storage.partial += part
                elif place not in storage.writes:
                    storage.reads.add(place)
        for i, layout in call.writes:
            storage = self.storages.get(ids[i])
            if storage is None or storage.ref() is not storages[i]:
                storage = self.track(ids[i], storages[i], produced=i >= inputs)
            if layout is not None:
                storage.writes.add((*layout, tensors[i].storage_offset()))

    def track(self, key: int, storage: torch.UntypedStorage, produced: bool) -> _Storage:
        # An id is used again once its storage is gone; what was read from an external one still counts.
        old = self.storages.get(key)
        if old is not None and not old.produced:
            self.gone.append(old)
        new = self.storages[key] = _Storage(storage, produced)
        return new

    def meet(self, op: _Op, args: tuple, kwargs: dict, out: Any, tensors: list[Tensor], inputs: int, ids: list[int]) -> _Call:
        from torch.utils._python_dispatch import _disable_current_modes

        named = _named(op.func, args, kwargs)
        roles: list[str] = []
        for name, value in named.items():
            roles += [name] * sum(isinstance(t, Tensor) for t in tree_leaves(value))
        layouts = [(tuple(t.shape), t.stride(), t.element_size()) for t in tensors]
        sizes = [_touched(t) for t in tensors]
        shared = [i for i in range(inputs, len(tensors)) if ids[i] in ids[:inputs]]
        fresh = [i for i in range(inputs, len(tensors)) if ids[i] not in ids[:inputs]]
        row = (op.label, tuple(tuple(t.shape) for t in tensors[:inputs]), _dtype(tensors))
        if op.name in EMPTY or (shared and not op.writes):
            return _Call(row, 0, True, 0, [], [(i, None) for i in fresh])
        reads, writes = [], []
        gathered = sum(sizes[i] for i in fresh)
        for i, name in enumerate(roles):
            if name not in op.unread:
                part = gathered if op.name in GATHERS and name in ("self", "weight") and gathered < sizes[i] else None
                reads.append((i, layouts[i], part))
            if name in op.writes:
                writes.append((i, layouts[i]))
        writes += [(i, layouts[i]) for i in fresh]
        with _disable_current_modes():
            flops, known = self.rules.flops(op.func, args, kwargs, out)
            nbytes = sum(
                _union([(ids[i], tensors[i], part) for i, _, part in reads])
            ) + sum(_union([(ids[i], tensors[i], None) for i, _ in writes]))
        return _Call(row, flops, known, nbytes, reads, writes)

    def cost(self) -> Cost:
        calls = [c for c in self.memo.values() if c.calls]
        rows = _merged(
            OpCost(*c.row, c.calls, c.flops * c.calls, c.nbytes * c.calls, c.known)
            for c in calls
            if c.nbytes or c.flops or not c.known
        )
        uncounted = Counter()
        for c in calls:
            if not c.known:
                uncounted[c.row[0]] += c.calls
        ideal = 0
        for storage in (*self.gone, *self.storages.values()):
            if not storage.produced:
                whole = _distinct(_regions(storage.reads)) if storage.reads else 0
                ideal += whole + storage.partial
            if storage.ref() is not None and storage.writes:
                ideal += _distinct(_regions(storage.writes))
        return Cost(sum(r.flops for r in rows), sum(r.bytes for r in rows), ideal, rows, dict(uncounted))


def _regions(places: Iterable[tuple]) -> frozenset[Region]:
    found = (_region(shape, stride, offset, size) for shape, stride, size, offset in places)
    return frozenset(region for region in found if region is not None)


def _touched(t: Tensor) -> int:
    region = _region(tuple(t.shape), t.stride(), 0, t.element_size())
    return _distinct(frozenset([region])) if region else 0


def _union(items: list) -> list[int]:
    by_storage: dict[int, list] = {}
    for key, t, part in items:
        by_storage.setdefault(key, []).append((t, part))
    found = []
    for group in by_storage.values():
        regions = _regions((tuple(t.shape), t.stride(), t.element_size(), t.storage_offset()) for t, part in group if part is None)
        found.append((_distinct(regions) if regions else 0) + sum(part for _, part in group if part is not None))
    return found


def _dtype(tensors: list[Tensor]) -> str:
    names = dict.fromkeys(str(t.dtype).removeprefix("torch.") for t in tensors)
    return ", ".join(names)


def count(
    fn: Callable, *args: Any, exact: bool = False, prices: Mapping[str, float] | None = None, **kwargs: Any
) -> Cost:
    """What `fn(*args, **kwargs)` costs: FLOPs and bytes, op by op.

    >>> a, b = torch.ones(2, 3), torch.ones(3, 5)
    >>> count(torch.matmul, a, b).flops
    60
    """
    run = _Run(_Rules(exact, dict(prices or {})))
    with run:
        result = fn(*args, **kwargs)
    gc.collect()
    cost = run.cost()
    del result
    return cost
