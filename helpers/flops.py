"""How many floating-point operations one call of an op takes: the rules behind `counting.count`, which states them.

What PyTorch tags as pointwise and does not decompose is elementary. Products, reductions, windows and moves have rules
here. Everything else is taken apart by PyTorch's own decompositions, run on meta tensors. What they cannot take apart
has no rule, nor has arithmetic with complex numbers: `count` names it as uncounted.
"""

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor

# ---- All that the course uses of PyTorch's unstable API is here, since PyTorch has no stable way to see each op as it
# runs, to read its schema, or to take it apart; torch.utils.flop_counter.FlopCounterMode stands on the same names.
from torch._decomp import decomposition_table
from torch._ops import OpOverload
from torch._subclasses import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._python_dispatch import _disable_current_modes as without_modes  # noqa: F401 (for counting)
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.flop_counter import flop_registry


class Op:
    """What PyTorch says of an op, looked up once. `writes`, `outs` and `unread` are names among its `arguments`."""

    def __init__(self, func: Any) -> None:
        self.func, self.plain = func, isinstance(func, OpOverload)  # torch.cond and its like are not
        namespace, _, full = func.name().rpartition("::")
        full, _, overload = full.partition(".")
        name = full if full.startswith("__") else full.removesuffix("_")
        self.name = name if namespace in ("aten", "prims", "profiler") else ""  # as the rules know it
        self.label = f"{namespace}.{full}" if namespace not in ("", "aten") else full
        schema = {a.name: a for a in func._schema.arguments} if self.plain else {}
        self.arguments, self.outs = list(schema), {name for name, a in schema.items() if a.is_out}
        self.writes = {name for name, a in schema.items() if a.alias_info is not None and a.alias_info.is_write}
        unread = self.writes if name in OVERWRITES else {"self"} if name.endswith("_like") or name[:4] == "new_" else ()
        self.unread = self.outs.union(unread)
        asks = namespace == "prim"  # prim::device and its like are known to Python only and move nothing
        self.view = self.plain and (asks or func.is_view or torch.Tag.inplace_view in func.tags)
        # Where a device has its own kernel (silu_backward on the CPU), that one runs and not the composite.
        keys = "CPU", "CUDA", "Meta", "CompositeExplicitAutograd", "CompositeImplicitAutograd"
        has = [self.plain and not asks and torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), k) for k in keys]
        self.composite = has == [False, False, False, False, True]
        # The form that writes nothing: add for add_ and for add.out.
        packet, forms = getattr(aten, name, None), (overload or "default", overload.removesuffix("_out"), "default")
        pure = [getattr(packet, form) for form in forms if self.writes and hasattr(packet, form)]
        self.pure = next((form for form in pure if not form._schema.is_mutable), func)

    def named(self, args: tuple, kwargs: dict) -> dict[str, Any]:
        """All arguments of a call under their names, in the order of the schema."""
        return dict(zip(self.arguments, args, strict=False)) | kwargs

    @property
    def elementary(self) -> bool:
        """Whether it is pointwise and no composite: PyTorch takes it for one piece, or for the prim of its name."""
        if self.label.startswith("prims."):
            packet = getattr(aten, self.name, None)
            return packet and any(torch.Tag.pointwise in getattr(packet, o).tags for o in packet.overloads())
        whole = hasattr(torch.ops.prims, self.name) or self.pure not in decomposition_table
        return self.name and whole and torch.Tag.pointwise in self.pure.tags


facts = cache(Op)


class Watch(TorchDispatchMode):
    """Runs each op and shows it to `see`; an op that is only a composite of others is taken apart first."""

    supports_higher_order_operators = True  # otherwise torch.cond and its like refuse to run

    def __init__(self, see: Callable[..., None]) -> None:
        super().__init__()
        self.see = see  # called with an Op, its args and kwargs, and its output

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        if any(t.__torch_dispatch__ is not Tensor.__torch_dispatch__ and not issubclass(t, FakeTensor) for t in types):
            return NotImplemented  # a tensor subclass unfolds itself into ops that come here again
        op = facts(func)
        if op.composite:
            with self:
                return func.decompose(*args, **kwargs)
        out = func(*args, **kwargs)
        self.see(op, args, kwargs, out)
        return out


# ---- The rules, as data. Names are those of aten (and prims) ops, without overload and without the _ of in-place.

aten = torch.ops.aten
Number = int | float


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Elementary although PyTorch decomposes them; then the special functions that only its decompositions know.
ELEMENTARY = _names("""
    clamp_min clamp_max logical_and logical_or logical_xor lcm
    bessel_i0 bessel_i0e bessel_i1 bessel_i1e bessel_j0 bessel_j1 cbrt erf_inv erfcx ndtri shift_left
    shift_right_arithmetic spherical_bessel_j0 zeta
""")
REDUCTIONS = _names("sum prod amax amin max min argmax argmin aminmax all any xor_sum")
SCANS = _names("cumsum cumprod cummax cummin")
_SPREAD = _names("""
    adaptive_max_pool fractional_max_pool reflection_pad replication_pad upsample_nearest _upsample_nearest_exact
""")
# One operation per element of that argument: values that are combined with what is already in their place.
ACCUMULATES = {
    **dict.fromkeys(("index_add", "index_reduce", "put"), "source"),
    **dict.fromkeys(("scatter_add", "scatter_reduce"), "src"),
    **dict.fromkeys(("index_put", "_index_put_impl", "_unsafe_index_put"), "values"),
    **{"scatter": "index", **{f"max_pool{d}d_with_indices_backward": "grad_output" for d in (2, 3)}},
    **{f"{kind}{d}d_backward": "grad_output" for kind in _SPREAD for d in (1, 2, 3)},
}
# The argument that holds the left matrix; k is the length of its rows.
MATMULS = {
    **dict.fromkeys(("mm", "bmm", "mv", "dot", "vdot", "_int_mm", "_scaled_mm"), "self"),
    **{"addmm": "mat1", "addmv": "mat", "baddbmm": "batch1", "addbmm": "batch1"},
}
# Free. Of what is not among these, nothing is believed to be free: see `_decomposed`.
MOVES = _names("""
    copy _copy_from copy_to clone lift lift_fresh_copy _to_copy convert_element_type device_put conj_physical complex
    _conj_physical cat stack rev flip rot90 roll tril triu tril_indices triu_indices im2col fill full full_like new_full
    zero zeros zeros_like new_zeros ones ones_like new_ones scalar_tensor arange iota eye where masked_fill gather index
    _unsafe_index index_select index_copy index_fill take embedding masked_select masked_scatter as_strided_scatter
    select_scatter slice_scatter diagonal_scatter slice_backward select_backward diagonal_backward unfold_backward
    repeat nonzero nonzero_static constant_pad_nd block_diag pixel_shuffle pixel_unshuffle channel_shuffle _chunk_cat
    split_with_sizes_copy rand rand_like randint randint_like randn randn_like randperm random normal uniform bernoulli
    cauchy exponential geometric log_normal _local_scalar_dense item
""")
# Nothing is read or written. (Views are known by their schema and by the storage that they share.)
EMPTY = _names("""
    empty empty_like empty_strided empty_permuted new_empty new_empty_strided resize resize_as set is_pinned
    _efficientzerotensor _linalg_check_errors is_same_size record_stream _assert_async _assert_scalar
    _record_function_enter _record_function_enter_new _record_function_exit _unsafe_view _reshape_alias
""")
# In place, without reading what was there.
OVERWRITES = _names("""
    copy fill zero normal uniform bernoulli random exponential cauchy log_normal geometric index_copy index_fill
    scatter put index_put _index_put_impl _unsafe_index_put
""")
# Read no more than they return.
GATHERS = _names("gather index _unsafe_index index_select take embedding")
# In place, reach no more of `self` than that argument has elements.
SCATTERS = dict.fromkeys(("index_copy", "index_add"), "source") | dict.fromkeys(("scatter", "scatter_add"), "src")
SCATTERS |= {"index_put": "values"}

# ---- What PyTorch does not take apart as it is meant, in plain torch. Called with the op's arguments by name.


def _var(self: Tensor, dim: list[int] | None = None, **_: Any) -> Tensor:
    apart = self - self.mean(dim, keepdim=True)  # two passes, as torch._inductor decomposes it
    return (apart * apart).sum(dim) / 2


def _attention(query: Tensor, key: Tensor, value: Tensor, is_causal: bool = False, **rest: Any) -> None:
    mask, grouped = rest.get("attn_mask", rest.get("attn_bias")), query.shape[-3] != key.shape[-3]
    aten._scaled_dot_product_attention_math(query, key, value, mask, 0.0, is_causal, enable_gqa=grouped)


def _attention_backward(query: Tensor, key: Tensor, value: Tensor, out: Tensor, logsumexp: Tensor, **rest: Any) -> None:
    # Flash attention (Dao 2023, algorithm 2): the weights are not stored, so the scores are computed once more.
    grad, mask = rest.get("grad_out", rest.get("grad_out_")), rest.get("attn_mask", rest.get("attn_bias"))
    if query.shape[-3] != key.shape[-3]:
        key, value = (t[..., :1, :, :].expand(*query.shape[:-2], *t.shape[-2:]) for t in (key, value))
    scores = query @ key.mT * 0.5
    weights = torch.exp((scores if mask is None else scores + mask) - logsumexp.new_empty(*scores.shape[:-1], 1))
    grad_scores = weights * (grad @ value.mT - (grad * out).sum(-1, keepdim=True))
    _ = weights.mT @ grad, grad_scores @ key * 0.5, grad_scores.mT @ query * 0.5


DEFINITIONS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("var", "var_mean"), _var),  # the mean is a step on the way
    # One comparison per bound; torch._refs spends two more operations on NaN.
    "clamp": lambda self, min=None, max=None: [self.maximum(self) for bound in (min, max) if bound is not None],
    "allclose": lambda self, other, *_, **__: torch.isclose(self, other).all(),
    "equal": lambda self, other: (self == other).all(),
}
for _kind in ("flash_attention", "efficient_attention", "cudnn_attention", "fused_attention_overrideable"):
    for _device in ("", "_for_cpu"):
        DEFINITIONS[f"_scaled_dot_product_{_kind}{_device}"] = _attention
        DEFINITIONS[f"_scaled_dot_product_{_kind}{_device}_backward"] = _attention_backward

# ---- Closed forms. Each takes the op's name, its arguments by name and its output.


def tensors(tree: Any) -> list[Tensor]:
    """The tensors in nested lists, tuples and dictionaries."""
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor)]


def _numel(tree: Any) -> int:
    """Elements of the first tensor."""
    return next((tensor.numel() for tensor in tensors(tree)), 1)


def _elementary(name: str, named: dict, out: Any) -> Number:
    """One operation per output element; to combine n numbers into one, n − 1."""
    times = _numel(out)
    if name in REDUCTIONS:
        times = max(_numel(named) - times, 0)
    elif name in SCANS:
        times -= times // max(named["self"].shape[named["dim"]], 1) if named["self"].dim() else 1
    return times * (1 + (named.get("alpha", 1) != 1))


def accumulates(named: dict[str, Any]) -> bool:
    """Whether an indexed write is asked to combine what it brings with what is there."""
    return bool(named.get("accumulate")) or "reduce" in named


def _accumulate(name: str, named: dict, out: Any) -> Number:
    if name in OVERWRITES and not accumulates(named):
        return 0
    means = _numel(out) if named.get("reduce") == "mean" else 0  # one division each
    return named[ACCUMULATES[name]].numel() + means


def _matmul(name: str, named: dict, out: Tensor) -> Number:
    left = named[MATMULS[name]]
    k = left.shape[-1] * (left.shape[0] if name == "addbmm" else 1)
    alpha, beta = named.get("alpha", 1), named.get("beta", 1)
    bias = (beta != 0) + (beta not in (0, 1)) + (alpha != 1) if name.startswith(("add", "badd")) else 0
    return out.numel() * (2 * k + bias)


def _convolution(name: str, named: dict, out: Any) -> Number:
    image, weight, grad = named["input"], named["weight"], named.get("grad_output")
    positions = (image if named.get("transposed") else out if grad is None else grad).shape[2:]
    product = 2 * weight.numel() * image.shape[0] * math.prod(positions)
    if grad is None:
        return product + (0 if named.get("bias") is None else out.numel())
    products = product * sum(t is not None for t in out[:2])
    return products + (0 if out[2] is None else grad.numel() - out[2].numel())


def _windows(name: str, named: dict, out: Any) -> Number:
    """A maximum of n numbers is n − 1 comparisons, an average n − 1 additions and a division."""
    kernel, d = list(named["kernel_size"]), 2 if "2d" in name else 3
    window = math.prod(kernel * d if len(kernel) == 1 else kernel)
    return _numel(out) * (window - ("max" in name))


_CONVOLUTIONS = ("convolution", "_convolution", "cudnn_convolution", "convolution_backward")
_POOLS = ("max_pool2d_with_indices", "max_pool3d_with_indices", "avg_pool2d", "avg_pool3d")
RULES: dict[str, Callable[..., Number]] = {
    **dict.fromkeys(ELEMENTARY | REDUCTIONS | SCANS, _elementary),
    **dict.fromkeys(MOVES | EMPTY, lambda *_: 0),
    **dict.fromkeys(ACCUMULATES, _accumulate),
    **dict.fromkeys(MATMULS, _matmul),
    **dict.fromkeys(_CONVOLUTIONS, _convolution),
    **dict.fromkeys(_POOLS, _windows),
}


def to_meta(value: Any) -> Any:
    """A tensor without its numbers, which costs nothing to compute with; anything else unchanged."""
    if isinstance(value, Tensor):
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
    return torch.device("meta") if isinstance(value, torch.device) else value


def flops(op: Op, args: tuple, kwargs: dict, out: Any, within: frozenset[Op] = frozenset()) -> Number | None:
    """FLOPs of one call of an op; None where no rule says. `within` are the ops that it is a part of."""
    if op.view or op.name.endswith("_copy"):  # view_copy, expand_copy, ...
        return 0
    named = op.named(args, kwargs)
    out = args[0] if out is None and args else out  # _foreach_add_ and its like return nothing
    rule = RULES.get(op.name)
    if rule is None and op.name not in DEFINITIONS and op.elementary:
        rule = _elementary
    if rule is None:
        return None if op in within else _decomposed(op, args, kwargs, out, within | {op})
    if any(tensor.is_complex() for tensor in tensors((named, out))) and op.name not in MOVES | EMPTY:
        return None
    return rule(op.name, named, out)


def _decomposed(op: Op, args: tuple, kwargs: dict, out: Any, within: frozenset[Op]) -> Number | None:
    """The same for an op without a rule: by a registered formula, or the sum over its parts."""
    formula = flop_registry.get(getattr(op.func, "overloadpacket", None))
    if formula and op.name not in DEFINITIONS:  # also what a user registered for an op of their own
        return formula(*args, **kwargs, out_val=out)
    args, kwargs = tree_map(to_meta, (args, {name: v for name, v in kwargs.items() if name not in op.outs}))
    ways = [decomposition_table[form] for form in (op.pure, op.func) if form in decomposition_table]
    if op.name in DEFINITIONS:
        ways = [lambda *args, **kwargs: DEFINITIONS[op.name](**op.named(args, kwargs))]
    elif op.name.startswith("_foreach_"):  # PyTorch's kernel for any device goes through the list
        ways = [partial(op.func._op_dk, torch._C.DispatchKey.CompositeExplicitAutograd)]
    for way in ways:
        parts: list[Number | None] = []
        try:
            with Watch(lambda *call, parts=parts: parts.append(flops(*call, within))):
                way(*args, **kwargs)
        except Exception:  # it needs values, or PyTorch's decomposition does not take these arguments
            continue
        free = not _numel(out) or op.name.removeprefix("_foreach_") in MOVES
        if None not in parts and (any(parts) or free):  # what shows no arithmetic is free only if it is known to be
            return sum(parts)
    return None
