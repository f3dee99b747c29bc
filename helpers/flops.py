"""How many floating-point operations one call of an op takes: the rules behind `counting.count`.

- *one prim, one FLOP*: an elementary operation (+, ×, a comparison, a rounding, exp, tanh, erf ...: the elementwise
  ops of `torch._prims`) costs 1 per output element, for integers as for floats.
- *2mnk*: a product of m × k by k × n costs 2mnk, exactly mn(2k − 1). Adding a bias costs mn more.
- *n − 1*: reducing n numbers to one takes n − 1 operations.
- *moving is free*: copies, conversions, choosing (where, masked_fill), indexing and random numbers cost 0.
- *whole windows*: a convolution or pooling counts padding like data; attention does not discount a causal mask.
- *5 N log₂ N* for a Fourier transform of N numbers, half of it for a real one (the convention of FFTW).
- All else is counted through PyTorch's own decomposition into these, run on meta tensors.
"""

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
import torch.utils._python_dispatch as modes
from torch import Tensor
from torch._C import DispatchKey
from torch._decomp import decomposition_table
from torch._ops import OpOverload
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.flop_counter import flop_registry

aten = torch.ops.aten
Number = int | float


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# ---- The rules, as data. Names are those of aten (and prims) ops, without overload and without the _ of in-place.

ELEMENTARY = _names("""
    relu threshold_backward add sub rsub mul div neg reciprocal abs sign sgn signbit floor ceil round trunc fmod
    remainder maximum minimum clamp_min clamp_max fmax fmin eq ne lt le gt ge isfinite logical_and logical_or
    logical_xor logical_not bitwise_and bitwise_or bitwise_xor bitwise_not bitwise_left_shift bitwise_right_shift
    shift_left shift_right_arithmetic __lshift__ __rshift__ gcd lcm nextafter frexp pow sqrt rsqrt cbrt hypot exp
    exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan atan2 angle sinh cosh tanh asinh acosh atanh erf erfc
    erfinv erf_inv erfcx lgamma digamma polygamma igamma igammac zeta ndtri i0 bessel_i0 bessel_i0e bessel_i1
    bessel_i1e bessel_j0 bessel_j1 spherical_bessel_j0 special_ndtri special_zeta special_erfcx special_airy_ai
    special_i0e special_i1 special_i1e special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1
    special_spherical_bessel_j0 special_modified_bessel_i0 special_modified_bessel_i1 special_modified_bessel_k0
    special_modified_bessel_k1 special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1
""")
REDUCTIONS = _names("sum prod amax amin max min argmax argmin aminmax all any xor_sum")
SCANS = _names("cumsum cumprod cummax cummin")
# Real operations in one operation on complex numbers; what is not here is not counted. mul: by a real number 2.
COMPLEX = {"add": 2, "sub": 2, "rsub": 2, "neg": 2, "mul": 6, "abs": 4, "sum": 2, "cumsum": 2}
# One operation per element of that argument: values that are combined with what is already in their place.
ACCUMULATES = {
    **{"index_add": "source", "index_reduce": "source", "scatter_add": "src", "scatter_reduce": "src"},
    **{"index_put": "values", "_index_put_impl": "values", "_unsafe_index_put": "values", "put": "source"},
    "scatter": "index",
    **{f"max_pool{d}d_with_indices_backward": "grad_output" for d in (2, 3)},
    **{f"{kind}_max_pool{d}d_backward": "grad_output" for kind in ("adaptive", "fractional") for d in (2, 3)},
    **{f"{kind}_pad{d}d_backward": "grad_output" for kind in ("reflection", "replication") for d in (1, 2, 3)},
    **{f"upsample_nearest{d}d_backward": "grad_output" for d in (1, 2, 3)},
    **{f"_upsample_nearest_exact{d}d_backward": "grad_output" for d in (1, 2, 3)},
}  # fmt: skip
# The argument that holds the left matrix; k is the length of its rows.
MATMULS = {
    **dict.fromkeys(("mm", "bmm", "mv", "dot", "vdot", "_int_mm", "_scaled_mm"), "self"),
    **{"addmm": "mat1", "addmv": "mat", "baddbmm": "batch1", "addbmm": "batch1"},
}
MOVES = _names("""
    copy clone lift lift_fresh_copy _to_copy _copy_from convert_element_type device_put copy_to cat stack _chunk_cat
    block_diag constant_pad_nd roll flip rev rot90 tril triu tril_indices triu_indices repeat fill zero zeros ones
    full eye zeros_like ones_like full_like new_zeros new_ones new_full scalar_tensor arange iota where masked_fill
    masked_select masked_scatter gather index _unsafe_index index_select take embedding index_copy index_fill
    slice_scatter select_scatter diagonal_scatter as_strided_scatter nonzero nonzero_static im2col pixel_shuffle
    pixel_unshuffle channel_shuffle complex conj_physical _conj_physical rand randn randint randperm rand_like
    randn_like randint_like normal uniform bernoulli random exponential cauchy log_normal geometric
    _local_scalar_dense item split_with_sizes_copy
""")
# Nothing is read or written. (Views are known by their schema and by the storage that they share.)
EMPTY = _names("""
    empty empty_like empty_strided empty_permuted new_empty new_empty_strided resize resize_as set is_pinned
    _efficientzerotensor _linalg_check_errors is_same_size record_stream _assert_async _assert_scalar
    _record_function_enter _record_function_enter_new _record_function_exit
""")
# In place, without reading what was there.
OVERWRITES = _names("""
    copy fill zero normal uniform bernoulli random exponential cauchy log_normal geometric index_copy index_fill
    scatter put index_put _index_put_impl _unsafe_index_put
""")
# Of `self` only the shape is used.
LIKES = _names("zeros_like ones_like full_like rand_like randn_like randint_like new_zeros new_ones new_full")
# Read no more than they return.
GATHERS = _names("gather index _unsafe_index index_select take embedding")
# In place, reach no more of `self` than that argument has elements.
SCATTERS = {
    "index_copy": "source",
    "index_add": "source",
    "scatter": "src",
    "scatter_add": "src",
    "index_put": "values",
}

# ---- What PyTorch decomposes into another composite only, in plain torch. Called with the op's arguments by name.


def _var(self: Tensor, dim: list[int] | None = None, **_: Any) -> Tensor:
    apart = self - self.mean(dim, keepdim=True)  # two passes, as torch._inductor decomposes it
    return (apart * apart).sum(dim) / 2


def _clamp(self: Tensor, min: Any = None, max: Any = None) -> None:
    for bound in (min, max):  # torch._refs spends two more operations on NaN
        _ = bound is not None and torch.maximum(self, self)


def _lstm(input: Tensor, hx_: Tensor, cx_: Tensor, has_biases: bool, reverse: bool, **rest: Any) -> None:
    from torch._decomp.decompositions import one_layer_lstm

    one_layer_lstm(input, (hx_, cx_), [rest[f"weight{i}"] for i in range(4 if has_biases else 2)], has_biases, reverse)


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


DEFINITIONS: dict[str, Callable] = {
    **dict.fromkeys(("var", "var_mean"), _var),  # the mean is a step on the way
    "clamp": _clamp,
    "allclose": lambda self, other, *_, **__: torch.isclose(self, other).all(),
    "equal": lambda self, other: (self == other).all(),
    "mkldnn_rnn_layer": _lstm,
    "hardshrink_backward": lambda grad_out, self, lambd: (self >= -lambd) & (self <= lambd),
    "softshrink_backward": lambda grad_output, self, lambd: (self >= -lambd) & (self <= lambd),
}
for _kind in ("flash_attention", "efficient_attention", "cudnn_attention", "fused_attention_overrideable"):
    for _device in ("", "_for_cpu"):
        DEFINITIONS[f"_scaled_dot_product_{_kind}{_device}"] = _attention
        DEFINITIONS[f"_scaled_dot_product_{_kind}{_device}_backward"] = _attention_backward

# ---- Closed forms. Each takes the rules in force, the op's name, its arguments by name and its output.


def _first(tree: Any) -> Tensor | None:
    return next((leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor)), None)


def _elementwise(rules: "Rules", name: str, named: dict, out: Any) -> Number:
    price, scale = rules.price(name, named, out), rules.price("mul", named, out)
    return (price + (named.get("alpha", 1) != 1) * scale) * _first(out).numel()


def _reduction(rules: "Rules", name: str, named: dict, out: Any) -> Number:
    return rules.price(name, named, out) * max(_first(named).numel() - _first(out).numel(), 0)


def _scan(rules: "Rules", name: str, named: dict, out: Any) -> Number:
    source = named["self"]
    length = source.shape[named["dim"]] if source.dim() else 1
    return rules.price(name, named, out) * (source.numel() - source.numel() // max(length, 1))


def accumulates(named: dict[str, Any]) -> bool:
    """Whether an indexed write is asked to combine what it brings with what is there."""
    return bool(named.get("accumulate")) or "reduce" in named


def _accumulate(rules: "Rules", name: str, named: dict, out: Any) -> Number:
    if name in OVERWRITES and not accumulates(named):
        return 0
    means = _first(out).numel() if named.get("reduce") == "mean" else 0  # one division each
    return named[ACCUMULATES[name]].numel() + means


def _matmul(rules: "Rules", name: str, named: dict, out: Tensor) -> Number:
    left = named[MATMULS[name]]
    k = left.shape[-1] * (left.shape[0] if name == "addbmm" else 1)
    # A complex product is 4 real products and 2 additions, a complex sum 2.
    each = max((8 * k if out.is_complex() else 2 * k) - rules.exact * (1 + out.is_complex()), 0)
    alpha, beta = named.get("alpha", 1), named.get("beta", 1)
    bias = (beta != 0) + (beta not in (0, 1)) + (alpha != 1) if name.startswith(("add", "badd")) else 0
    return out.numel() * (each + bias)


def _convolution(rules: "Rules", name: str, named: dict, out: Any) -> Number:
    image, weight, grad = named["input"], named["weight"], named.get("grad_output")
    positions = (image if named.get("transposed") else out if grad is None else grad).shape[2:]
    product = 2 * weight.numel() * image.shape[0] * math.prod(positions)
    if grad is None:
        return product + out.numel() * ((named.get("bias") is not None) - rules.exact)
    flops = sum(product - rules.exact * t.numel() for t in out[:2] if t is not None)
    return flops + (0 if out[2] is None else grad.numel() - out[2].numel())


def _windows(rules: "Rules", name: str, named: dict, out: Any) -> Number:
    grad, d = named.get("grad_output"), 2 if "2d" in name else 3
    target = _first(out) if grad is None else grad
    if "adaptive" in name:  # output i of n takes inputs from floor(iN / n) to ceil((i + 1)N / n)
        pairs = zip(named["self"].shape[-d:], target.shape[-d:], strict=True)
        reads = math.prod(sum(-(-(i + 1) * size // n) - i * size // n for i in range(n)) for size, n in pairs)
        reads *= math.prod(target.shape[:-d])
    else:
        kernel = list(named["kernel_size"])
        reads = target.numel() * math.prod(kernel * d if len(kernel) == 1 else kernel)
    if "max" in name:
        return reads - target.numel()
    return reads + (0 if grad is None else grad.numel())  # an average: additions and one division


def _fourier(rules: "Rules", name: str, named: dict, out: Tensor) -> Number:
    full = named["self"] if name == "_fft_r2c" else out
    length = math.prod(full.shape[dim] for dim in named["dim"])
    return round(full.numel() * math.log2(max(length, 1)) * (5 if full.is_complex() else 2.5))


RULES: dict[str, Callable[..., Number]] = {
    **dict.fromkeys(ELEMENTARY, _elementwise),
    **dict.fromkeys(REDUCTIONS, _reduction),
    **dict.fromkeys(SCANS, _scan),
    **dict.fromkeys(MOVES | EMPTY, lambda *_: 0),
    **dict.fromkeys(ACCUMULATES, _accumulate),
    **dict.fromkeys(MATMULS, _matmul),
    **dict.fromkeys(("convolution", "_convolution", "cudnn_convolution", "convolution_backward"), _convolution),
    **dict.fromkeys(("max_pool2d_with_indices", "max_pool3d_with_indices"), _windows),
    **dict.fromkeys(("adaptive_max_pool2d", "adaptive_max_pool3d"), _windows),
    **{f"{kind}avg_pool{d}d{b}": _windows for kind in ("", "_adaptive_") for d in (2, 3) for b in ("", "_backward")},
    **dict.fromkeys(("_fft_r2c", "_fft_c2c", "_fft_c2r"), _fourier),
}
_PRICED = ELEMENTARY | REDUCTIONS | SCANS  # these look their price up themselves


class _Unknown(Exception):
    """No rule says what this costs."""


def _is_complex(value: Any) -> bool:
    return isinstance(value, complex) or (isinstance(value, Tensor) and value.is_complex())


@dataclass(frozen=True, eq=False)
class Op:
    """What the schema of an op says, looked up once."""

    func: OpOverload
    name: str
    label: str
    composite: bool
    view: bool
    writes: frozenset[str]
    outs: frozenset[str]
    unread: frozenset[str]


@cache
def facts(func: OpOverload) -> Op:
    """What the schema of an op says."""
    namespace, full = func._overloadpacket._qualified_op_name.split("::")
    name = full if full.startswith("__") else full.removesuffix("_")
    arguments = func._schema.arguments
    writes = frozenset(a.name for a in arguments if a.alias_info is not None and a.alias_info.is_write)
    outs = frozenset(a.name for a in arguments if a.is_out)
    unread = outs | (writes if name in OVERWRITES else set()) | ({"self"} if name in LIKES else set())
    asks = namespace == "prim"  # prim::device and its like are known to Python only and move nothing

    def has(key: str) -> bool:
        return not asks and torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), key)

    return Op(
        func,
        name if namespace in ("aten", "prims", "profiler", "torch_nn") else "",
        full if namespace == "aten" else f"{namespace}.{full}",
        # Where a device has its own kernel (silu_backward on the CPU), that one runs and not the composite.
        has("CompositeImplicitAutograd") and not any(map(has, ("CPU", "CUDA", "Meta", "CompositeExplicitAutograd"))),
        asks or func.is_view or torch.Tag.inplace_view in func.tags,
        writes,
        outs,
        frozenset(unread),
    )


def named_arguments(func: OpOverload, args: tuple, kwargs: dict) -> dict[str, Any]:
    """All arguments of a call under their names, in the order of the schema."""
    return dict(zip((a.name for a in func._schema.arguments), args, strict=False)) | kwargs


def _functional(func: OpOverload) -> OpOverload:
    """The form of an op that writes nothing: add for add_ and for add.out."""
    if not facts(func).writes:
        return func
    packet = getattr(aten, facts(func).name, None)
    for overload in (func._overloadname, func._overloadname.removesuffix("_out"), "default"):
        candidate = getattr(packet, overload, None)
        if candidate is not None and not facts(candidate).writes:
            return candidate
    return func


def _to_meta(value: Any) -> Any:
    if isinstance(value, Tensor):
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
    return torch.device("meta") if isinstance(value, torch.device) else value


@contextlib.contextmanager
def without_modes() -> Iterator[None]:
    """What happens inside is bookkeeping: no dispatch mode of the caller sees it."""
    popped = [modes._pop_mode() for _ in range(modes._len_torch_dispatch_stack())]
    try:
        yield
    finally:
        for mode in reversed(popped):
            modes._push_mode(mode)


class Watch(modes.TorchDispatchMode):
    """Runs each op and shows it to `see`; a composite op is taken apart first."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # the wrapper that True asks for imports torch._dynamo, which takes a second

    def __torch_dispatch__(self, func: OpOverload, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        op = facts(func)
        if op.composite:
            with self:
                return func.decompose(*args, **kwargs)
        out = func(*args, **kwargs)
        self.see(op, args, kwargs, out)
        return out

    def see(self, op: Op, args: tuple, kwargs: dict, out: Any) -> None:
        """What is to be done about an op that has just run."""
        raise NotImplementedError


class _Tally(Watch):
    """Adds up the FLOPs of a decomposition, which runs on meta tensors."""

    def __init__(self, rules: "Rules") -> None:
        super().__init__()
        self.rules, self.flops, self.known = rules, 0, True

    def see(self, op: Op, args: tuple, kwargs: dict, out: Any) -> None:
        flops, known = self.rules.flops(op.func, args, kwargs, out)
        self.flops += flops
        self.known &= known


class Rules:
    """The FLOPs of one call of an op, and whether they are all of them."""

    def __init__(self, exact: bool, prices: Mapping[str, Number]) -> None:
        self.exact, self.prices = exact, prices
        self.open: set[OpOverload] = set()

    def price(self, name: str, named: dict, out: Any) -> Number:
        """FLOPs of an elementary op on one element."""
        price = self.prices.get(name, 1)
        if not any(map(_is_complex, tree_leaves((named, out)))):
            return price
        if name not in COMPLEX:
            raise _Unknown(name)
        real = name == "mul" and not all(map(_is_complex, tree_leaves(named)))
        return price * (2 if real else COMPLEX[name])

    def flops(self, func: OpOverload, args: tuple, kwargs: dict, out: Any) -> tuple[Number, bool]:
        """FLOPs of a call, and whether they are all of them."""
        op, named = facts(func), named_arguments(func, args, kwargs)
        if op.view or op.name.endswith("_copy"):  # view_copy, expand_copy, ...
            return 0, True
        out = args[0] if out is None and args else out  # _foreach_add_ and its like return nothing
        try:
            if op.name in self.prices and op.name not in _PRICED:
                return self.prices[op.name] * _first(out).numel(), True
            if op.name in RULES:
                return RULES[op.name](self, op.name, named, out), True
        except _Unknown:
            return 0, False
        return self.decomposed(func, args, kwargs, out)

    def decomposed(self, func: OpOverload, args: tuple, kwargs: dict, out: Any) -> tuple[Number, bool]:
        """The same for an op without a rule: through its parts, or through torch's registry of FLOP formulas."""
        if (
            func._overloadpacket in flop_registry and facts(func).name not in DEFINITIONS
        ):  # also what a user registered for an op of their own
            return flop_registry[func._overloadpacket](*args, **kwargs, out_val=out), True
        best: tuple[Number, bool] = (0, False)
        if func in self.open:
            return best
        self.open.add(func)
        for way, trusted in self.ways(func):
            meta_args, meta_kwargs = tree_map(_to_meta, (args, kwargs))
            tally = _Tally(self)
            try:
                with tally:
                    way(meta_args, {name: v for name, v in meta_kwargs.items() if name not in facts(func).outs})
            except Exception:  # it needs values, or PyTorch's decomposition does not take these arguments
                continue
            known = tally.known and (trusted or tally.flops > 0)
            best = max(best, (tally.flops, known), key=lambda found: (found[1], found[0]))
            if known:
                break
        self.open.discard(func)
        return best

    def ways(self, func: OpOverload) -> Iterator[tuple[Callable[[tuple, dict], Any], bool]]:
        """Decompositions of an op, and whether one that shows no arithmetic is believed."""
        name, pure = facts(func).name, _functional(func)
        if name in DEFINITIONS:
            yield lambda args, kwargs: DEFINITIONS[name](**named_arguments(func, args, kwargs)), True
        if name.startswith("_foreach_"):
            yield lambda args, kwargs: _each(getattr(aten, name.removeprefix("_foreach_")), args, kwargs), True
        for form in dict.fromkeys((pure, func)):
            if form in decomposition_table:
                yield lambda args, kwargs, form=form: decomposition_table[form](*args, **kwargs), True
        # PyTorch's own kernels only: one of a user may do more than compute.
        if name and torch._C._dispatch_has_kernel_for_dispatch_key(pure.name(), "CompositeExplicitAutograd"):
            yield lambda args, kwargs: pure._op_dk(DispatchKey.CompositeExplicitAutograd, *args, **kwargs), False


def _each(op: Callable, args: tuple, kwargs: dict) -> None:
    for i in range(len(args[0])):
        op(*(arg[i] if isinstance(arg, list | tuple) else arg for arg in args), **kwargs)
