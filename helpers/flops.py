"""How many floating-point operations one call of an op takes: the rules behind `counting.count`, which states them.

What PyTorch tags as pointwise and does not decompose is elementary. Products, reductions, windows and moves have rules
here. Everything else is taken apart on meta tensors, by PyTorch's own decompositions or by a definition in plain torch.
What cannot be taken apart has no rule, nor has arithmetic with complex numbers: `count` names it as uncounted.

To add a rule for an op that `count` names: if other ops make the same result, write these down as a function in
`DEFINITIONS`, which is taken apart on meta tensors (see `_ways`); if it has a closed form, put it into `RULES`. Only
ops that combine no numbers are free, `MOVES` and `EMPTY`. Take the name out of `UNCOUNTED` in
tests/test_counting_opdb.py, and test its number, worked out by hand, in tests/test_counting.py.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

# ---- All that the course uses of PyTorch's unstable API is here, since PyTorch has no stable way to see each op as it
# runs, to read its schema, or to take it apart; torch.utils.flop_counter.FlopCounterMode stands on the same names.
from torch._C import DispatchKey
from torch._C import _dispatch_has_kernel_for_dispatch_key as has_kernel
from torch._decomp import decomposition_table
from torch._ops import OpOverload
from torch._subclasses import FakeTensor
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode, _pop_mode, _push_mode, is_traceable_wrapper_subclass  # noqa: F401 (for counting)
from torch.utils._python_dispatch import _disable_current_modes as without_modes  # noqa: F401 (for counting)
from torch.utils._pytree import tree_leaves, tree_map  # noqa: F401 (leaves for counting)
from torch.utils.flop_counter import flop_registry

Number = int | float
aten = torch.ops.aten


@contextmanager
def as_written() -> Iterator[None]:
    """Compiled functions run as they are written. What torch.cond and its like compile by themselves, they still do."""
    # Late: it takes seconds, which PyTorch takes with the first op under a mode anyway.
    from torch._dynamo.eval_frame import _set_stance
    from torch._higher_order_ops import utils

    class Stance:
        backend, skip_guard_eval_unsafe = None, False
        stance = property(lambda self: "default" if utils._in_hop_compile() else "force_eager")

    before = _set_stance(Stance())  # type: ignore[arg-type]
    try:
        yield
    finally:
        _set_stance(before)


@contextmanager
def pushed(mode: TorchDispatchMode) -> Iterator[None]:
    """Enter a mode that another thread has entered; `with mode` would keep its notes for both in one place."""
    _push_mode(mode)
    try:
        yield
    finally:
        _pop_mode()


# ---- An op, and how each op that runs is seen.


class Op:
    """What PyTorch says of an op. `writes` and `outs` are names among its `arguments`."""

    def __init__(self, func: Any) -> None:
        self.func = func
        self.plain = isinstance(func, OpOverload)  # torch.cond and its like are not
        namespace, _, full = func.name().rpartition("::")
        full, _, overload = full.partition(".")
        self.label = f"{namespace}.{full}" if namespace not in ("", "aten") else full
        # As the rules know it: mul for mul_ and prims.mul, but __and__; of other namespaces with its namespace.
        base = full if full.startswith("__") else full.removesuffix("_")
        self.name = base if namespace in ("", "aten", "prims", "profiler") else self.label
        schema = func._schema.arguments if self.plain else []
        self.arguments = [argument.name for argument in schema]
        self.outs = {argument.name for argument in schema if argument.is_out}
        self.writes = {a.name for a in schema if a.alias_info is not None and a.alias_info.is_write}
        # prim::device and its like are known to Python only and move nothing.
        is_question = namespace == "prim"
        self.is_view = is_question or (self.plain and (func.is_view or torch.Tag.inplace_view in func.tags))
        self.is_composite = self.plain and not is_question and _is_composite(func)
        self.pure = _pure_form(func, base, overload) if self.writes else func

    def named(self, args: Sequence, kwargs: dict[str, Any]) -> dict[str, Any]:
        """All arguments of a call under their names, in the order of the schema."""
        known = self.arguments or map(str, itertools.count())
        return dict(zip(known, args, strict=False)) | kwargs

    @property
    def is_elementary(self) -> bool:
        """Whether it is pointwise and no composite: PyTorch takes it for one piece, or for the prim of its name."""
        if self.label.startswith("prims."):
            packet = getattr(aten, self.name, None)
            return packet is not None and any(
                torch.Tag.pointwise in getattr(packet, form).tags for form in packet.overloads()
            )
        if "." in self.name or not self.plain:
            return False
        whole = hasattr(torch.ops.prims, self.name) or self.pure not in decomposition_table
        return whole and torch.Tag.pointwise in self.pure.tags


def _is_composite(func: Any) -> bool:
    """Whether no device has a kernel of its own: silu_backward has one on the CPU, so that one runs, and no parts."""
    kernels = ("CPU", "CUDA", "Meta", "CompositeExplicitAutograd")
    has_parts = has_kernel(func.name(), "CompositeImplicitAutograd")
    return has_parts and not any(has_kernel(func.name(), key) for key in kernels)


def _pure_form(func: Any, base: str, overload: str) -> Any:
    """The form of the op that writes nothing: add for add_ and for add.out."""
    packet = getattr(aten, base, None)
    for form in (overload or "default", overload.removesuffix("_out"), "default"):
        found = getattr(packet, form, None)
        if found is not None and not found._schema.is_mutable:
            return found
    return func


op_of = cache(Op)


class Watch(TorchDispatchMode):
    """Runs each op and shows it to `see`; an op that is only a composite of others is taken apart first."""

    supports_higher_order_operators = True  # otherwise torch.cond and its like refuse to run

    def __init__(self, see: Callable[[Op, tuple, dict, Any], None]) -> None:
        super().__init__()
        self.see = see  # called with the op, its args and kwargs, and its output

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Lets torch.cond and its like compile; otherwise they refuse to, and remember it."""
        return True

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        if any(t.__torch_dispatch__ is not Tensor.__torch_dispatch__ and not issubclass(t, FakeTensor) for t in types):
            return NotImplemented  # a tensor subclass unfolds itself into ops that come here again
        op = op_of(func)
        if op.is_composite and not any(tensor.is_nested for tensor in tensors((args, kwargs))):
            with self:
                return func.decompose(*args, **kwargs)
        out = func(*args, **kwargs)
        self.see(op, args, kwargs, out)
        return out


# ---- The rules, as data. Names are those of aten (and prims) ops, without overload and without the _ of in-place.


def names(text: str) -> frozenset[str]:
    """Several names as a set."""
    return frozenset(text.split())


# Elementary although PyTorch decomposes them; then the special functions that only its decompositions know.
ELEMENTARY = names("""
    clamp_min clamp_max logical_and logical_or logical_xor lcm
    bessel_i0 bessel_i0e bessel_i1 bessel_i1e bessel_j0 bessel_j1 cbrt erf_inv erfcx ndtri shift_left
    shift_right_arithmetic spherical_bessel_j0 zeta
""")
REDUCTIONS = names("sum prod amax amin max min argmax argmin aminmax all any xor_sum")
SCANS = names("cumsum cumprod cummax cummin")
# Each result is one of the inputs.
CHOOSERS = names("reflection_pad replication_pad upsample_nearest _upsample_nearest_exact")
# One operation per element of that argument: values that are combined with what is already in their place.
ACCUMULATES = {
    **dict.fromkeys(("index_add", "index_reduce", "put"), "source"),
    **dict.fromkeys(("scatter_add", "scatter_reduce"), "src"),
    **dict.fromkeys(("index_put", "_index_put_impl", "_unsafe_index_put"), "values"),
    **{"scatter": "index", "embedding_dense_backward": "grad_output"},
    **{f"max_pool{d}d_with_indices_backward": "grad_output" for d in (2, 3)},
    **{
        f"{kind}{d}d_backward": "grad_output"
        for kind in CHOOSERS | {"adaptive_max_pool", "fractional_max_pool"}
        for d in (1, 2, 3)
    },
}
# These write over what is there, unless they are asked to combine.
ON_REQUEST = names("scatter put index_put _index_put_impl _unsafe_index_put")
# The argument that holds the left matrix; k is the length of its rows. Scales and zeros of what is quantised are free.
MATMULS = {
    **dict.fromkeys(("mm", "bmm", "mv", "dot", "vdot", "_int_mm", "_scaled_mm", "_scaled_mm_v2"), "self"),
    **{"addmm": "mat1", "addmv": "mat", "baddbmm": "batch1", "addbmm": "batch1"},
    **dict.fromkeys(("_weight_int8pack_mm", "_weight_int4pack_mm", "_weight_int4pack_mm_for_cpu"), "self"),
    **{"_weight_int4pack_mm_with_scales_and_zeros": "self", "_dyn_quant_matmul_4bit": "inp"},
    **dict.fromkeys((f"quantized.linear{kind}_dynamic{bits}" for kind in ("", "_relu") for bits in ("", "_fp16")), "X"),
    **{"quantized.linear": "X", "quantized.linear_relu": "X", "quantized.linear_dynamic_fp16_unpacked_weight": "X"},
}
GROUPED = names("_grouped_mm _scaled_grouped_mm _scaled_grouped_mm_v2")
CONVOLUTIONS = names("""
    convolution _convolution convolution_backward convolution_overrideable mkldnn_convolution thnn_conv2d
    cudnn_convolution cudnn_convolution_transpose cudnn_convolution_relu cudnn_convolution_add_relu
    miopen_convolution miopen_convolution_transpose miopen_convolution_relu miopen_convolution_add_relu
    miopen_depthwise_convolution _slow_conv2d_forward slow_conv3d slow_conv3d_forward slow_conv_transpose2d
    slow_conv_transpose3d slow_conv_dilated2d slow_conv_dilated3d _conv_depthwise2d conv_depthwise3d
""")
POOLS = names("max_pool2d_with_indices max_pool3d_with_indices avg_pool2d avg_pool3d")
# Free. Of what is not among these, nothing is believed to be free: see `_taken_apart`.
MOVES = names("""
    copy _copy_from copy_to clone lift lift_fresh_copy _to_copy convert_element_type device_put conj_physical complex
    _conj_physical cat stack rev flip rot90 roll tril triu tril_indices triu_indices im2col fill full full_like new_full
    zero zeros zeros_like new_zeros ones ones_like new_ones scalar_tensor arange iota eye where masked_fill gather index
    _unsafe_index index_select index_copy index_fill take embedding masked_select masked_scatter as_strided_scatter
    select_scatter slice_scatter diagonal_scatter slice_backward select_backward diagonal_backward unfold_backward
    repeat nonzero nonzero_static constant_pad_nd block_diag pixel_shuffle pixel_unshuffle channel_shuffle _chunk_cat
    split_with_sizes_copy rand rand_like randint randint_like randn randn_like randperm random normal uniform bernoulli
    cauchy exponential geometric log_normal _local_scalar_dense item _new_zeros_with_same_feature_meta diag_embed
    max_unpool2d max_unpool3d _pack_padded_sequence
""") | {f"{kind}{d}d" for kind in CHOOSERS for d in (1, 2, 3)}
# Nothing is computed, read or written. (Views are known by their schema and by the storage that they share.)
EMPTY = names("""
    empty empty_like empty_strided empty_permuted new_empty new_empty_strided resize resize_as set is_pinned
    _efficientzerotensor _linalg_check_errors is_same_size record_stream _assert_async _assert_scalar
    _record_function_enter _record_function_enter_new _record_function_exit _unsafe_view _reshape_alias
    _has_same_storage_numel _make_dual _unpack_dual _fw_primal _debug_has_internal_overlap
""")

# ---- What PyTorch does not take apart as it is meant, in plain torch. Called with the op's arguments by name.


def _var(self: Tensor, dim: list[int] | None = None, **_: Any) -> Tensor:
    apart = self - self.mean(dim, keepdim=True)  # two passes, as torch._inductor decomposes it
    return (apart * apart).sum(dim) / 2


def _heads_of(keys: Tensor, query: Tensor) -> Tensor:
    """Keys or values of fewer heads than the queries have, once for each query head."""
    same = keys.shape[-3] == query.shape[-3]
    return keys if same else keys[..., :1, :, :].expand(*query.shape[:-2], *keys.shape[-2:])


def _attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    scores = query @ _heads_of(key, query).mT * 0.5
    weights = (scores if mask is None else scores + 1).softmax(-1)
    return weights @ _heads_of(value, query), weights


def _attention(query: Tensor, key: Tensor, value: Tensor, **rest: Any) -> None:
    _attend(query, key, value, rest.get("attn_mask", rest.get("attn_bias")))


def _attention_backward(query: Tensor, key: Tensor, value: Tensor, out: Tensor, logsumexp: Tensor, **rest: Any) -> None:
    # Flash attention (Dao 2023, algorithm 2): the weights are not stored, so the scores are computed once more.
    grad, mask = rest.get("grad_out", rest.get("grad_out_")), rest.get("attn_mask", rest.get("attn_bias"))
    assert grad is not None
    key, value = _heads_of(key, query), _heads_of(value, query)
    scores = query @ key.mT * 0.5
    weights = torch.exp((scores if mask is None else scores + 1) - logsumexp.new_empty(*scores.shape[:-1], 1))
    grad_scores = weights * (grad @ value.mT - (grad * out).sum(-1, keepdim=True))
    _ = weights.mT @ grad, grad_scores @ key * 0.5, grad_scores.mT @ query * 0.5


def _multihead(
    query: Tensor, key: Tensor, value: Tensor, num_head: int, qkv_weight: Tensor, qkv_bias: Tensor, **rest: Any
) -> Tensor:
    """nn.MultiheadAttention in one op; a mask chooses."""
    parts = zip((query, key, value), qkv_weight.chunk(3), qkv_bias.chunk(3), strict=True)
    heads = [F.linear(x, weight, bias).unflatten(-1, (num_head, -1)).transpose(1, 2) for x, weight, bias in parts]
    attended, weights = _attend(*heads)
    if rest.get("need_weights", True) and rest.get("average_attn_weights", True):
        weights.mean(1)
    return F.linear(attended.transpose(1, 2).flatten(2), rest["proj_weight"], rest["proj_bias"])


def _encoder_layer(src: Tensor, num_heads: int, use_gelu: bool, **rest: Any) -> None:
    """nn.TransformerEncoderLayer in one op. Where the norms stand does not change the sum."""
    x = src + _multihead(src, src, src, num_heads, need_weights=False, **rest)
    x = F.layer_norm(x, x.shape[-1:], rest["norm_weight_1"], rest["norm_bias_1"])
    up = F.linear(x, rest["ffn_weight_1"], rest["ffn_bias_1"])
    x = x + F.linear(F.gelu(up) if use_gelu else F.relu(up), rest["ffn_weight_2"], rest["ffn_bias_2"])
    F.layer_norm(x, x.shape[-1:], rest["norm_weight_2"], rest["norm_bias_2"])


def _trilinear(
    i1: Tensor, i2: Tensor, i3: Tensor, expand1: list, expand2: list, expand3: list, sumdim: list, **_: Any
) -> Tensor:
    """nn.Bilinear: two sums of products; the first over the dimensions that the third factor does not have."""
    letters = "abcdefghij"[: i1.dim() + len(expand1)]
    first, second, third = (
        "".join(letter for dim, letter in enumerate(letters) if dim not in expand)
        for expand in (expand1, expand2, expand3)
    )
    summed = {letters[dim] for dim in sumdim}
    both = "".join(letter for letter in letters if letter in first + second and letter not in summed - set(third))
    rest = "".join(letter for letter in letters if letter not in summed)
    return torch.einsum(f"{both},{third}->{rest}", torch.einsum(f"{first},{second}->{both}", i1, i2), i3)


def _vector_norm(self: Tensor, ord: float = 2, dim: list[int] | None = None, keepdim: bool = False, **_: Any) -> Tensor:
    if ord == 1:  # which PyTorch would write with powers of 1
        return self.abs().sum(dim, keepdim)
    return decomposition_table[aten.linalg_vector_norm.default](self, ord, dim, keepdim)


def _distances(x1: Tensor, x2: Tensor, p: float, **_: Any) -> Tensor:
    return torch.linalg.vector_norm(x1[..., :, None, :] - x2[..., None, :, :], p, dim=-1)


def _distances_backward(grad: Tensor, x1: Tensor, x2: Tensor, p: float, cdist: Tensor) -> Tensor:
    apart = x1[..., :, None, :] - x2[..., None, :, :]
    each = grad if p == 1 else grad / cdist ** (p - 1)
    if p == 1:
        apart = apart.sign()
    elif p != 2:
        apart = apart * apart.abs() ** (p - 2)
    return (each[..., None] * apart).sum(-2)


def _pairs(self: Tensor) -> tuple[Tensor, Tensor]:
    """Each pair of rows once: (n · (n − 1) / 2, 1, columns)."""
    rows = self.new_empty(math.comb(self.shape[0], 2), 1, self.shape[1])
    return rows, torch.empty_like(rows)


def _pdist(self: Tensor, p: float = 2.0) -> None:
    _distances(*_pairs(self), p)


def _pdist_backward(grad: Tensor, self: Tensor, p: float, pdist: Tensor) -> None:
    both = _distances_backward(grad[:, None, None], *_pairs(self), p, pdist[:, None, None])
    torch.cat([both, both]).sum(0)  # to the one row and, less, to the other


def _by_place(definition: Callable[..., Any]) -> Callable[..., Any]:
    """The definition of an op whose arguments have other names in another release of PyTorch, in the same order."""
    return lambda **named: definition(*named.values())


DEFINITIONS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("var", "var_mean"), _var),  # the mean is a step on the way
    # One comparison per bound; torch._refs spends two more operations on NaN.
    "clamp": lambda self, min=None, max=None: [self.maximum(self) for bound in (min, max) if bound is not None],
    "allclose": lambda self, other, *_, **__: torch.isclose(self, other).all(),
    "linalg_vector_norm": _vector_norm,
    "equal": lambda self, other: (self == other).all(),
    **dict.fromkeys(("_native_multi_head_attention", "_triton_multi_head_attention"), _multihead),
    "_transformer_encoder_layer_fwd": _encoder_layer,
    "_trilinear": _trilinear,
    "_cdist_forward": _distances,
    "_cdist_backward": _by_place(_distances_backward),
    "_pdist_forward": _pdist,
    "_pdist_backward": _by_place(_pdist_backward),
}
for _kind in ("flash_attention", "efficient_attention", "cudnn_attention", "fused_attention_overrideable"):
    for _device in ("", "_for_cpu"):
        DEFINITIONS[f"_scaled_dot_product_{_kind}{_device}"] = _attention
        DEFINITIONS[f"_scaled_dot_product_{_kind}{_device}_backward"] = _attention_backward

# ---- Closed forms. Each takes the op's name, its arguments by name and its output.


def tensors(tree: Any) -> list[Tensor]:
    """The tensors in nested lists, tuples and dictionaries."""
    if isinstance(tree, Tensor):
        return [tree]
    if isinstance(tree, dict):
        tree = tree.values()
    elif not isinstance(tree, list | tuple):
        return []
    return [tensor for branch in tree for tensor in tensors(branch)]


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
    has_factor = named.get("alpha", 1) != 1
    return 2 * times if has_factor else times


def accumulates(named: dict[str, Any]) -> bool:
    """Whether an indexed write is asked to combine what it brings with what is there."""
    return bool(named.get("accumulate")) or "reduce" in named


def _accumulate(name: str, named: dict, out: Any) -> Number:
    if name in ON_REQUEST and not accumulates(named):
        return 0
    brought = named[ACCUMULATES[name]].numel()
    if named.get("scale_grad_by_freq"):
        return 2 * brought
    is_mean = named.get("reduce") == "mean"  # one division each
    return brought + _numel(out) if is_mean else brought


def _matmul(name: str, named: dict, out: Tensor) -> Number:
    left = named[MATMULS[name]]
    k = left.shape[-1] * (left.shape[0] if name == "addbmm" else 1)
    product = 2 * k * out.numel()
    if not name.startswith(("add", "badd")):
        return product
    alpha, beta = named.get("alpha", 1), named.get("beta", 1)
    more = [beta != 0, beta not in (0, 1), alpha != 1]  # to add the bias, to scale it, to scale the product
    return product + more.count(True) * out.numel()


def _grouped_matmul(name: str, named: dict, out: Tensor) -> Number:
    """Rows, columns or the dimension that is summed in groups, or a stack: every element is in one group."""
    left, right = named["self"], named["mat2"]
    places = left.shape[0] * right.shape[1] if left.dim() == right.dim() == 2 else out.numel()
    product = 2 * left.shape[-1] * places
    return product if named.get("bias") is None else product + out.numel()


def _convolution(name: str, named: dict, out: Any) -> Number:
    image: Tensor = named["input"] if "input" in named else named["self"]
    weight, grad = named["weight"], named.get("grad_output")
    is_transposed = named.get("transposed") or "transpose" in name
    positions = (image if is_transposed else out if grad is None else grad).shape[2:]
    product = 2 * weight.numel() * image.shape[0] * math.prod(positions)
    if grad is None:
        has_bias = named.get("bias") is not None
        extras = [has_bias, "relu" in name, "_add_" in name, named.get("alpha") not in (None, 1)]
        return product + extras.count(True) * out.numel()
    products = product * sum(t is not None for t in out[:2])
    return products + (0 if out[2] is None else grad.numel() - out[2].numel())


def _windows(name: str, named: dict, out: Any) -> Number:
    """A maximum of n numbers is n − 1 comparisons, an average n − 1 additions and a division."""
    kernel, d = list(named["kernel_size"]), 2 if "2d" in name else 3
    window = math.prod(kernel * d if len(kernel) == 1 else kernel)
    return _numel(out) * (window - 1 if "max" in name else window)


def _bags(name: str, named: dict, out: Any) -> Number:
    """Sums of rows of a table, scaled by a weight each; a mean takes a division, a maximum comparisons."""
    rows = named["indices"].numel() * named["weight"].shape[1]
    is_mean, is_scaled = named.get("mode") == 1, named.get("per_sample_weights") is not None
    return max(rows - _numel(out), 0) + (_numel(out) if is_mean else 0) + (rows if is_scaled else 0)


class Cell(NamedTuple):
    """A recurrent cell: its gates, and its FLOPs for each number of the state, without products and biases."""

    gates: int
    forward: int
    backward: int


# By the mode of a recurrent op, as cuDNN numbers them. A sigmoid takes 4, the derivative of it or of a tanh 3.
CELLS = {
    0: Cell(1, 2, 4),  # with ReLU: sum of the gates, function; sum of the gradients, derivative
    1: Cell(1, 2, 4),  # with tanh
    2: Cell(4, 4 + 3 * 4 + 2 + 4, 1 + 5 + 5 + 4 * 3),  # LSTM: sums, 3 sigmoids, 2 tanh, memory and state
    3: Cell(3, 2 + 2 * 4 + 3 + 3, 1 + 5 + 2 + 3 * 3),  # GRU: sums, 2 sigmoids, the new state, its mix with the old
}


RECURRENT = names("""
    mkldnn_rnn_layer mkldnn_rnn_layer_backward _cudnn_rnn _cudnn_rnn_backward miopen_rnn miopen_rnn_backward
""")


def _recurrent(name: str, named: dict, out: Any) -> Number:
    """Layers over `rows` = texts · steps: each weight is a product, backward two; biases are added, or summed up."""
    weights = named.get("weight") or [value for key, value in named.items() if key.startswith("weight")]
    if named.get("has_biases") is False:  # oneDNN is given something in their place
        weights = weights[:2]
    cell, rows = CELLS[named["mode"]], named["input"].shape[:-1].numel()
    products = 2 * rows * sum(weight.numel() for weight in weights if weight.dim() == 2)
    biases = sum(bias.numel() for bias in weights if bias.dim() == 1)
    to_gates = weights[:: named.get("weight_stride0", len(weights))]  # the first of each layer
    states = rows * sum(weight.shape[0] for weight in to_gates) // cell.gates
    if "grad_output" in named:
        return 2 * products + (rows - 1) * biases + cell.backward * states
    return products + rows * biases + cell.forward * states


def _fused_cell(name: str, named: dict, out: Any) -> Number:
    """The cell of one step, given the products."""
    cell, numbers = CELLS[2 if "lstm" in name else 3], named["input_gates"].numel()
    biases = [named.get("input_bias"), named.get("hidden_bias")]
    return cell.forward * numbers // cell.gates + sum(bias is not None for bias in biases) * numbers


# One step of torch.optim for each weight, as its loop over the parameters takes it: plain, and what a setting adds.
STEPS: dict[str, tuple[int, dict[str, int]]] = {
    "_fused_adam": (13, {"weight_decay": 2, "amsgrad": 1}),
    "_fused_adamw": (13, {"weight_decay": 1, "amsgrad": 1}),
    "_fused_sgd": (2, {"weight_decay": 2, "momentum": 2, "dampening": 1, "nesterov": 2}),
    "_fused_adagrad": (8, {"weight_decay": 2}),
}
WITH_MOMENTUM = names("momentum dampening nesterov")  # what has no part in the first step


def _step(name: str, named: dict, out: Any) -> Number:
    """Gradients are negated to maximize, and divided if they were scaled."""
    each, more = STEPS[name]
    if named.get("is_first_step") or not named.get("momentum"):
        more = {setting: flops for setting, flops in more.items() if setting not in WITH_MOMENTUM}
    each += sum(flops for setting, flops in (more | {"maximize": 1}).items() if named[setting])
    if named.get("grad_scale") is not None:
        each += 1
    return each * sum(weight.numel() for weight in named["self"])


RULES: dict[str, Callable[..., Number]] = {
    **dict.fromkeys(ELEMENTARY | REDUCTIONS | SCANS, _elementary),
    **dict.fromkeys(MOVES | EMPTY, lambda *_: 0),
    **dict.fromkeys(ACCUMULATES, _accumulate),
    **dict.fromkeys(MATMULS, _matmul),
    **dict.fromkeys(GROUPED, _grouped_matmul),
    **dict.fromkeys(CONVOLUTIONS, _convolution),
    **dict.fromkeys(POOLS, _windows),
    **dict.fromkeys(("_embedding_bag", "_embedding_bag_forward_only"), _bags),
    **dict.fromkeys(RECURRENT, _recurrent),
    **dict.fromkeys(("_thnn_fused_lstm_cell", "_thnn_fused_gru_cell"), _fused_cell),
    **dict.fromkeys(STEPS, _step),
}

# ---- The FLOPs of a call.


def is_planned(tree: Any) -> bool:
    """Whether these are fake tensors, which hold no numbers, as PyTorch uses them to plan what it will do."""
    return any(isinstance(tensor, FakeTensor) for tensor in tensors(tree))


def to_meta(value: Any) -> Any:
    """A tensor without its numbers, which costs nothing to compute with; anything else unchanged."""
    if isinstance(value, Tensor):
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
    return torch.device("meta") if isinstance(value, torch.device) else value


def flops(op: Op, args: tuple, kwargs: dict, out: Any, within: frozenset[Op] = frozenset()) -> Number | None:
    """FLOPs of one call of an op; None where no rule says. `within` are the ops that it is a part of."""
    if op.is_view or op.name.endswith("_copy"):  # view_copy, expand_copy, ...
        return 0
    out = args[0] if out is None and args else out  # _foreach_add_ and its like return nothing
    if any(tensor.layout is not torch.strided or tensor.is_nested for tensor in tensors((args, kwargs, out))):
        return 0 if op.name in EMPTY else None
    try:
        rule = _rule(op)
        if rule is None:
            return None if op in within else _taken_apart(op, args, kwargs, out, within | {op})
        named = op.named(args, kwargs)
        is_complex = any(tensor.is_complex() for tensor in tensors((named, out)))
        return None if is_complex and op.name not in MOVES | EMPTY else rule(op.name, named, out)
    except Exception:  # what a rule cannot describe: a quantised tensor, arguments of another release
        return None


def _rule(op: Op) -> Callable[..., Number] | None:
    rule = RULES.get(op.name)
    if rule is None and op.name not in DEFINITIONS and op.is_elementary:
        return _elementary
    return rule


def _taken_apart(op: Op, args: tuple, kwargs: dict, out: Any, within: frozenset[Op]) -> Number | None:
    """The same for an op without a rule: by a registered formula, or the sum over its parts."""
    formula = flop_registry.get(getattr(op.func, "overloadpacket", op.func))
    if formula and op.name not in DEFINITIONS:  # also what a user registered for an op of their own
        return formula(*args, **kwargs, out_val=out)
    if not op.plain:
        return None
    args, kwargs = tree_map(to_meta, (args, {name: v for name, v in kwargs.items() if name not in op.outs}))
    is_free = 0 in (_numel(args), _numel(out)) or op.name.removeprefix("_foreach_") in MOVES
    gives_floats = any(tensor.is_floating_point() for tensor in tensors(out))
    for way in _ways(op):
        parts: list[Number | None] = []

        def see(part: Op, args: tuple, kwargs: dict, out: Any, parts: list = parts) -> None:
            on_indices = gives_floats and _is_index_arithmetic((args, kwargs, out))
            parts.append(0 if on_indices else flops(part, args, kwargs, out, within))

        try:
            with Watch(see):
                way(*args, **kwargs)
        except Exception:  # it needs values, or PyTorch's decomposition does not take these arguments
            continue
        counted = [part for part in parts if part is not None]
        # What shows no arithmetic is free only if it is known to be.
        if len(counted) == len(parts) and (any(counted) or is_free):
            return sum(counted)
    return None


def _ways(op: Op) -> list[Callable[..., Any]]:
    """The ways to take an op apart."""
    if op.name in DEFINITIONS:
        return [lambda *args, **kwargs: DEFINITIONS[op.name](**op.named(args, kwargs))]
    if op.name.startswith("_foreach_"):  # PyTorch's kernel for any device goes through the list
        return [partial(op.func._op_dk, DispatchKey.CompositeExplicitAutograd)]
    return [decomposition_table[form] for form in (op.pure, op.func) if form in decomposition_table]


def _is_index_arithmetic(tree: Any) -> bool:
    """Whether all numbers are whole: in an op that gives floats they tell places."""
    dtypes = {tensor.dtype for tensor in tensors(tree)}
    return bool(dtypes - {torch.bool}) and not any(dtype.is_floating_point or dtype.is_complex for dtype in dtypes)
