"""The exercises: for each its cases, an oracle, the mistakes that learners really make, and a hint.

An oracle is plain Python or torch and imports nothing from the course, so that a mistake in a helper cannot hide in
it. A mistake is a sentence and a function that makes it: the tests feed each of these functions to the check and
require the sentence. The statements, stubs and solutions are in the notebooks.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


@dataclass(frozen=True)
class Exercise:
    """One exercise.

    `oracle(*arguments)` returns the right answer. `cases` holds the arguments of each call of the learner's function;
    without cases the answer is a value, and the oracle takes no arguments. Numbers may differ by `tolerance`, relative.
    `mistakes` maps a sentence to the function that makes that mistake, with the oracle's arguments.
    With a `cost`, a right answer must also cost no more than the oracle: `cost(function, arguments)` calls the function
    and returns what that took, in `unit`. A name, as "bytes_eager" or "flops", is that field of what `count` gives.
    """

    name: str
    oracle: Callable[..., Any]
    mistakes: dict[str, Callable[..., Any]]
    hint: str
    cases: tuple[tuple[Any, ...], ...] = ()
    tolerance: float = 1e-6
    cost: Callable[[Callable[..., Any], tuple[Any, ...]], float] | str | None = None
    unit: str = "B"


EXERCISES: dict[str, Exercise] = {}


def _add(exercise: Exercise) -> None:
    if exercise.name in EXERCISES:
        raise ValueError(f"there are two exercises named {exercise.name!r}")
    EXERCISES[exercise.name] = exercise


class _NewMemory(TorchDispatchMode):
    """Adds up the bytes of every storage that turns up in an operation and was not there before."""

    def __init__(self, known: Any) -> None:
        super().__init__()
        self._seen: dict[int, torch.UntypedStorage] = {}  # kept alive, so that no address is used twice
        self.nbytes = 0
        self.see(known)
        self.nbytes = 0

    def see(self, tensors: Any) -> None:
        for tensor in tree_leaves(tensors):
            if isinstance(tensor, torch.Tensor) and tensor.layout == torch.strided:
                storage = tensor.untyped_storage()
                if storage._cdata not in self._seen:
                    self._seen[storage._cdata] = storage
                    self.nbytes += storage.nbytes()

    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = op(*args, **(kwargs or {}))
        self.see((args, kwargs, result))
        return result


def allocated_bytes(function: Callable[..., Any], arguments: tuple[Any, ...]) -> int:
    """A cost: the bytes of new memory that the call asks for, temporary tensors included; a view asks for none."""
    with _NewMemory(arguments) as memory:
        result = function(*arguments)
    memory.see(result)
    return memory.nbytes


# --- 00 Start here -------------------------------------------------------------------------------------------------

_add(
    Exercise(
        "card_in_gb",
        oracle=lambda: 80 * 2**30 / 1e9,
        mistakes={
            "You went from GB to GiB. A GiB is the larger unit, so there are more GB than GiB.": lambda: 80e9 / 2**30,
            "That takes GiB and GB for the same thing; they differ by 7.4 %.": lambda: 80,
            "That is a number of bytes; the question asks for GB.": lambda: 80 * 2**30,
            "That is in bits: a byte has eight, but the question asks for GB (capital B).": lambda: 80 * 2**33 / 1e9,
        },
        hint="Go through bytes: first 80 GiB in bytes, then those bytes in units of 10^9.",
        tolerance=0.001,
    )
)


def _tokens_in(flop_per_token: float = 6, seconds: float = 24 * 60 * 60) -> Callable[..., float]:
    def tokens(parameters: float, devices: int, days: float, peak: float, mfu: float) -> float:
        return devices * days * seconds * peak * mfu / (flop_per_token * parameters)

    return tokens


_add(
    Exercise(
        "tokens_before_deadline",
        cases=((7e9, 8, 14, 989.5e12, 0.4), (70e9, 1024, 30, 989.5e12, 0.5), (1e9, 1, 1, 312e12, 0.3)),
        oracle=_tokens_in(),
        mistakes={
            "You forgot the backward pass: 2 FLOP per parameter and token is the forward pass alone.": _tokens_in(2),
            "Twice too many: a multiply-add is 2 FLOP (6 per parameter, not 3), and the peak given is dense already.": (
                _tokens_in(3)
            ),
            "A day has 24 hours of 3600 seconds: FLOP/s times days is not FLOP.": _tokens_in(seconds=1),
            "A day has 24 hours: you counted one hour per day.": _tokens_in(seconds=3600),
            "You left out the MFU: that assumes every device runs at its peak.": lambda n, c, d, p, mfu: _tokens_in()(
                n, c, d, p, 1
            ),
            "That is what a single device trains: multiply by the number of devices.": lambda n, c, d, p, m: (
                _tokens_in()(n, 1, d, p, m)
            ),
            "You found the compute, in FLOP: divide by the cost of one token.": lambda n, c, d, p, mfu: (
                c * d * 86400 * p * mfu
            ),
        },
        hint="Two quantities in FLOP: what the machines deliver in that time; what a token costs, 6 × parameters.",
    )
)

_add(
    Exercise(
        "devices_needed",
        cases=((70e9, 80e9, 16), (40e9, 80e9, 16), (7e9, 24e9, 16), (1e9, 80e9, 18)),
        oracle=lambda parameters, memory, per_parameter: math.ceil(parameters * per_parameter / memory),
        mistakes={
            "You rounded down: the last few parameters need a device too.": lambda n, m, b: int(n * b // m),
            "A device cannot be cut in pieces: round up to a whole number.": lambda n, m, b: n * b / m,
            "You counted one byte per parameter: multiply by the bytes that each one needs.": lambda n, m, b: math.ceil(
                n / m
            ),
            "You counted the weights alone, at 2 byte each: gradients and optimizer state need room too.": (
                lambda n, m, b: math.ceil(n * 2 / m)
            ),
        },
        hint="Bytes needed over bytes per device, rounded up: math.ceil.",
    )
)


# --- 01 Float formats ----------------------------------------------------------------------------------------------

_add(
    Exercise(
        "decode_pattern",
        oracle=lambda: -5.0,  # -(1 + 32/128) * 2^(129 - 127)
        mistakes={
            "You forgot the hidden 1: the significand is 1.fraction, not 0.fraction.": lambda: -1.0,
            "The sign bit is 1: the number is negative.": lambda: 5.0,
            "Your bias is 128; with 8 exponent bits it is 2^(8-1) - 1 = 127.": lambda: -2.5,
            "Your bias is 126; with 8 exponent bits it is 2^(8-1) - 1 = 127.": lambda: -10.0,
            "You read the fraction as an integer: it is 32/128, since the field has 7 bits.": lambda: -132.0,
            "You left out the power of two: the exponent field is 129, so multiply by 2^(129 - 127).": lambda: -1.25,
            "That is the pattern as an unsigned integer: cut it into sign, exponent and fraction first.": lambda: (
                0b1_10000001_0100000
            ),
        },
        hint="Sign 1, exponent 0b10000001 = 129, fraction 0b0100000 = 32. Then (−1)^s · (1 + f/128) · 2^(e − 127).",
    )
)

_IEEE_CASES = ((5, 10), (8, 7), (8, 23), (5, 2), (4, 3))
_add(
    Exercise(
        "largest_finite",
        cases=_IEEE_CASES,
        oracle=lambda e, f: (2 - 2.0**-f) * 2.0 ** (2 ** (e - 1) - 1),
        mistakes={
            "Twice the right power: the exponent of all ones is reserved, and the bias is 2^(E−1) − 1.": lambda e, f: (
                (2 - 2.0**-f) * 2.0 ** (2 ** (e - 1))
            ),
            "You forgot the fraction: with all its bits set the significand is almost 2.": lambda e, f: (
                2.0 ** (2 ** (e - 1) - 1)
            ),
            "You took the significand for exactly 2: it is 2 − 2^(−fraction bits).": lambda e, f: 2.0 ** (2 ** (e - 1)),
            "You forgot the hidden 1: the significand is 1.111…, not 0.111….": lambda e, f: (
                (1 - 2.0**-f) * 2.0 ** (2 ** (e - 1) - 1)
            ),
            "That is the largest power of two, in the exponent: raise 2 to it.": lambda e, f: 2 ** (e - 1) - 1,
        },
        hint="The largest exponent field that is not all ones, less the bias, and a fraction of all ones.",
    )
)

_add(
    Exercise(
        "choose_format",
        oracle=lambda: ("bfloat16", "float16", "float8_e4m3fn", "float8_e5m2"),
        mistakes={
            "You swapped the 16-bit formats: bfloat16 has the range (8 exponent bits), float16 the precision "
            "(10 fraction bits).": lambda: ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"),
            "You swapped the 8-bit formats: E4M3 ends at 448, E5M2 at 57344.": lambda: (
                "bfloat16",
                "float16",
                "float8_e5m2",
                "float8_e4m3fn",
            ),
            "float32 would do for a and b, but it has 4 byte and the budget is 2.": lambda: (
                "float32",
                "float32",
                "float8_e4m3fn",
                "float8_e5m2",
            ),
            "float16 ends at 65504: 10^38 needs more exponent bits.": lambda: (
                "float16",
                "float16",
                "float8_e4m3fn",
                "float8_e5m2",
            ),
            "float32 has the range for a, but it has 4 byte and the budget is 2.": lambda: (
                "float32",
                "float16",
                "float8_e4m3fn",
                "float8_e5m2",
            ),
            "bfloat16 near 1 is spaced 2^-7 = 0.0078: 1.001 rounds to 1.": lambda: (
                "bfloat16",
                "bfloat16",
                "float8_e4m3fn",
                "float8_e5m2",
            ),
        },
        hint="Use the names of the table in section 4; there, largest says how far, eps how fine.",
    )
)

_add(
    Exercise(
        "gap",
        cases=((1.0, 7), (1.0, 10), (256.0, 7), (1000.0, 10), (0.75, 7), (1.25, 7), (3e-3, 23)),
        oracle=lambda value, f: 2.0 ** (math.frexp(value)[1] - 1 - f),  # frexp is exact where log2 may round up
        mistakes={
            "That is the gap at 1, whatever the value: the gap doubles at every power of two.": lambda v, f: 2.0**-f,
            "You multiplied the value itself by eps: between two powers of two the gap stays the same.": lambda v, f: (
                v * 2.0**-f
            ),
            "That is half the gap, the largest rounding error.": lambda v, f: 2.0 ** (math.floor(math.log2(v)) - f - 1),
            "You rounded log2 to the nearest: take the power of two at or below the value.": lambda v, f: (
                2.0 ** (round(math.log2(v)) - f)
            ),
            "You rounded log2 up: take the power of two at or below the value.": lambda v, f: (
                2.0 ** (math.ceil(math.log2(v)) - f)
            ),
            "Python's int() rounds towards zero, which is up for values below 1: use math.floor.": lambda v, f: (
                2.0 ** (int(math.log2(v)) - f)
            ),
            "You took the power of two above the value: take the one at or below it.": lambda v, f: (
                2.0 ** (math.floor(math.log2(v)) + 1 - f)
            ),
        },
        hint="In [2^k, 2^(k+1)) the fraction field counts in steps of 2^k / 2^fraction_bits. Which k has your value?",
    )
)

_add(
    Exercise(
        "checkpoint",
        cases=((7_000_000_000, 16), (124_337_664, 32), (70_000_000_000, 8), (175_000_000_000, 4)),
        oracle=lambda n, bits: (n * bits / 8 / 1e9, n * bits / 8 / 2**30),
        mistakes={
            "You forgot to go from bits to bytes: a byte has 8 bits.": lambda n, bits: (
                n * bits / 1e9,
                n * bits / 2**30,
            ),
            "You used 2^30 for GB: GB is 10^9 byte, GiB is 2^30.": lambda n, bits: (n * bits / 8 / 2**30,) * 2,
            "You used 10^9 for GiB: GB is 10^9 byte, GiB is 2^30.": lambda n, bits: (n * bits / 8 / 1e9,) * 2,
            "You swapped the two: return GB first, then GiB.": lambda n, bits: (
                n * bits / 8 / 2**30,
                n * bits / 8 / 1e9,
            ),
            "You counted one byte per parameter, whatever the format.": lambda n, bits: (n / 1e9, n / 2**30),
            "Those are bytes: divide by 10^9 for GB and by 2^30 for GiB.": lambda n, bits: (n * bits / 8,) * 2,
        },
        hint="First bytes = parameters × bits / 8; then bytes / 10^9 and bytes / 2^30.",
        tolerance=0.001,
    )
)

_add(
    Exercise(
        "first_missing_integer",
        cases=((7,), (10,), (23,), (3,), (2,)),
        oracle=lambda f: 2 ** (f + 1) + 1,
        mistakes={
            "That one is still there: it is a power of two, and its fraction is 0. The next one is not.": lambda f: (
                2 ** (f + 1)
            ),
            "You forgot the hidden 1: with it a number has fraction_bits + 1 significant bits.": lambda f: 2**f + 1,
            "That one is still there, and so is the next: every integer up to a power of two exists.": (
                lambda f: 2 ** (f + 1) - 1
            ),
            "Above 2^(f+1) the gap is 2, so even numbers still exist: look for the first odd one.": lambda f: (
                2 ** (f + 1) + 2
            ),
        },
        hint="Integers stop being exact where the gap becomes 2. From which power of two on is that?",
    )
)


def _running_sum(values: torch.Tensor, accumulator: torch.dtype, result: torch.dtype) -> torch.Tensor:
    total = torch.zeros((), dtype=accumulator)
    for value in values:
        total = total + value.to(accumulator)
    return total.to(result)


_add(
    Exercise(
        "stable_sum",
        cases=(
            (torch.ones(1000, dtype=torch.bfloat16),),
            (torch.full((2000,), 0.01, dtype=torch.bfloat16),),
            (torch.full((5000,), 1.0, dtype=torch.float16),),
            (torch.linspace(0, 1, 3001).to(torch.bfloat16),),
        ),
        oracle=lambda values: values.double().sum().to(values.dtype),
        mistakes={
            "The accumulator still has the dtype of the values, so the sum stops growing.": lambda values: _running_sum(
                values, values.dtype, values.dtype
            ),
            "You changed the dtype after the loop: by then the small terms are gone. Change the accumulator.": (
                lambda values: _running_sum(values, values.dtype, torch.float32)
            ),
            "The sum is right, but its dtype is float32: return it in the dtype of the values.": lambda values: (
                values.float().sum()
            ),
            "The sum is right, but its dtype is float64: return it in the dtype of the values.": lambda values: (
                values.double().sum()
            ),
        },
        hint="Only the accumulator needs more bits: keep it in float32, and convert once, at the end.",
        tolerance=0.01,
    )
)

_add(
    Exercise(
        "training_state",
        oracle=lambda: 7e9 * (2 + 2 + 4 + 1 + 1) / 1e9,
        mistakes={
            "AdamW keeps two moments per parameter, the mean and the square; you counted one.": lambda: 63,
            "You forgot the float32 master copy of the weights.": lambda: 42,
            "You forgot the gradients.": lambda: 56,
            "You took the moments for float32: in this recipe each has 8 bits.": lambda: 112,
            "You took the gradient for float32: in this recipe it is bfloat16.": lambda: 84,
            "That is the weights alone: training also keeps gradients, a master copy and two moments.": lambda: 14,
            "That is in bits: divide by 8.": lambda: 560,
            "That is a number of bytes; the question asks for GB.": lambda: 70e9,
            "You used 2^30 for GB: GB is 10^9 byte.": lambda: 70e9 / 2**30,
        },
        hint="Add the bytes of one parameter first: weight, gradient, master copy, and two moments.",
        tolerance=0.001,
    )
)


def _loss_scale(gradients: torch.Tensor, limit: float = 65504.0) -> float:
    return 2.0 ** math.floor(math.log2(limit / gradients.abs().max().item()))


_add(
    Exercise(
        "loss_scale",
        cases=(
            (torch.tensor([1e-8, 2e-5, -3e-4]),),
            (torch.tensor([5e-9, -0.7, 0.01]),),
            (torch.tensor([-3.0, 2.0, 1e-7]),),
            (torch.tensor([1e-7, -9e-7]),),
            (torch.tensor([1.9999]),),
            (torch.tensor([1e6]),),
        ),
        oracle=_loss_scale,
        mistakes={
            "You looked at the largest gradient with its sign: a large negative one overflows too.": lambda g: (
                2.0 ** math.floor(math.log2(65504 / g.max().item()))
            ),
            "You looked at the smallest gradient: it is the largest that overflows first.": lambda g: (
                2.0 ** math.floor(math.log2(65504 / g.abs().min().item()))
            ),
            "Twice too large: the largest gradient becomes infinity. Round the exponent down.": lambda g: (
                2 * _loss_scale(g)
            ),
            "float16 ends at 65504, not at 65536: 65536 / 1.9999 allows a power too many.": lambda g: _loss_scale(
                g, 65536.0
            ),
            "You rounded log2 to the nearest: rounded up, the largest gradient becomes infinity.": lambda g: (
                2.0 ** round(math.log2(65504 / g.abs().max().item()))
            ),
            "That is the exponent: raise 2 to it.": lambda g: math.floor(math.log2(65504 / g.abs().max().item())),
            "That is no power of two: multiplying by it rounds the gradients.": lambda g: 65504 / g.abs().max().item(),
            "That is bfloat16's or float32's limit; the gradients are stored in float16.": lambda g: _loss_scale(
                g, torch.finfo(torch.bfloat16).max
            ),
        },
        hint="The largest magnitude times the scale may reach 65504, not more; log2 and floor give the power of two.",
    )
)


# --- 02 Tensor storage and views -----------------------------------------------------------------------------------

_add(
    Exercise(
        "permuted_stride",
        oracle=lambda: torch.empty(2, 3, 4, 5).permute(0, 2, 1, 3).stride(),
        mistakes={
            "Those are the strides of a fresh tensor of that shape: permute moves no data.": lambda: torch.empty(
                2, 4, 3, 5
            ).stride(),
            "Those are the strides before the permute: they move along with their dimensions.": lambda: torch.empty(
                2, 3, 4, 5
            ).stride(),
            "That is the new shape; the question asks for the stride.": lambda: (2, 4, 3, 5),
            "Those are bytes: a stride counts elements.": lambda: (240, 20, 80, 4),
            "You reversed all dimensions: permute(0, 2, 1, 3) swaps the two in the middle.": lambda: (1, 5, 20, 60),
        },
        hint="Write down the four strides before the permute; then put them in the order 0, 2, 1, 3.",
    )
)

_add(
    Exercise(
        "offset_at",
        cases=(((2, 1), (4, 1), 0), ((1, 2, 3), (12, 4, 1), 5), ((3, 2), (1, 6), 1), ((5, 2), (0, 1), 4), ((), (), 7)),
        oracle=lambda index, stride, offset: offset + sum(i * s for i, s in zip(index, stride, strict=True)),
        mistakes={
            "You forgot the offset: a slice starts later on its storage.": lambda index, stride, offset: sum(
                i * s for i, s in zip(index, stride, strict=True)
            ),
            "You added index and stride: each index is multiplied by its stride.": lambda index, stride, offset: (
                offset + sum(index) + sum(stride)
            ),
            "You paired the indices with the strides in reverse order.": lambda index, stride, offset: (
                offset + sum(i * s for i, s in zip(index, reversed(stride), strict=True))
            ),
            "You took the last stride for 1: it counts like the others.": lambda index, stride, offset: (
                offset + sum(i * s for i, s in zip(index[:-1], stride[:-1], strict=True)) + sum(index[-1:])
            ),
            "That is in bytes of float32; the offset counts elements.": lambda index, stride, offset: (
                4 * (offset + sum(i * s for i, s in zip(index, stride, strict=True)))
            ),
        },
        hint="The offset plus index · stride, one product per dimension.",
    )
)


def _index_at(offset: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    digits = []
    for size in reversed(shape):
        offset, digit = divmod(offset, size)
        digits.append(digit)
    return tuple(reversed(digits))


def _dense_strides(shape: tuple[int, ...]) -> list[int]:
    return [math.prod(shape[k + 1 :]) for k in range(len(shape))]


_add(
    Exercise(
        "index_at",
        cases=((7, (3, 4)), (23, (2, 3, 4)), (13, (2, 3, 4)), (0, (5,)), (1234, (10, 10, 20))),
        oracle=_index_at,
        mistakes={
            "Your first index runs fastest: in a contiguous tensor it is the last.": lambda offset, shape: tuple(
                reversed(_index_at(offset, shape[::-1]))
            ),
            "You collected the indices from the last to the first: turn them round.": lambda offset, shape: tuple(
                reversed(_index_at(offset, shape))
            ),
            "You divided by the strides but took no remainder: an index stays below its size.": lambda offset, shape: (
                tuple(offset // stride for stride in _dense_strides(shape))
            ),
            "You took each remainder of the whole offset: divide by the stride first.": lambda offset, shape: tuple(
                offset % size for size in shape
            ),
        },
        hint="Like the digits of a number: divmod by the last size gives what is left and the last index; then go on.",
    )
)


def _windows(x: torch.Tensor, size: int, short: int = 0, step: int = 0, offset: int | None = None) -> torch.Tensor:
    step = step or x.stride(0)
    return torch.as_strided(x, (len(x) - size + 1 - short, size), (step, step), offset)


_add(
    Exercise(
        "windows",
        cases=(
            (torch.arange(10.0), 3),
            (torch.arange(10), 10),
            (torch.arange(20.0)[4:12], 2),
            (torch.arange(24.0)[::2], 4),
            (torch.arange(12.0).view(3, 4)[:, 1], 2),
        ),
        oracle=lambda x, size: x.unfold(0, size, 1),
        mistakes={
            "One window too few: n elements have n − size + 1 windows.": lambda x, size: _windows(x, size, short=1),
            "You assumed that neighbours are one cell apart; a column or x[::2] has another x.stride(0).": (
                lambda x, size: _windows(x, size, step=1)
            ),
            "You started at the beginning of the storage: x may be a slice, which starts at x.storage_offset().": (
                lambda x, size: _windows(x, size, offset=0)
            ),
            "Each row is to be one window; yours are the columns.": lambda x, size: _windows(x, size).t(),
            "Those windows do not overlap: neighbouring windows start one element apart.": lambda x, size: x[
                : len(x) // size * size
            ].reshape(-1, size),
            "The windows are right, but copied, as by stack, clone or contiguous; two equal strides need no copy.": (
                lambda x, size: torch.stack([x[i : i + size] for i in range(len(x) - size + 1)])
            ),
            "An index tensor copies every window, and is itself in memory; two equal strides need neither.": (
                lambda x, size: x[torch.arange(len(x) - size + 1)[:, None] + torch.arange(size)]
            ),
        },
        hint="Try torch.as_strided(x, (count, size), (step, step)): the next window is as far away as the next number.",
        cost=allocated_bytes,
    )
)


def _kinds(*swapped: int) -> Callable[[], tuple[str, ...]]:
    """View or copy for the ten expressions of the exercise, as torch has it; those at `swapped` answered wrongly."""

    def kinds() -> tuple[str, ...]:
        x = torch.zeros(4, 6)
        results = (
            x[1:3], x[[1, 2]], x.t(), x.t().reshape(24), x.reshape(2, 12),
            x.contiguous(), x.t().contiguous(), x.expand(3, 4, 6), x.repeat(3, 1, 1), x.to(torch.float32),
        )  # fmt: skip
        start = x.untyped_storage().data_ptr()
        views = [result.untyped_storage().data_ptr() == start for result in results]
        return tuple("view" if view != (k in swapped) else "copy" for k, view in enumerate(views, start=1))

    return kinds


_add(
    Exercise(
        "view_or_copy",
        oracle=_kinds(),
        mistakes={
            "A list as index always copies: torch does not look whether a stride could describe these rows.": _kinds(2),
            "That reshape must copy: it merges the dimensions of a transpose, and their strides do not allow it.": (
                _kinds(4)
            ),
            "That reshape copies only when it must; splitting and merging a contiguous tensor needs no copy.": _kinds(
                5
            ),
            "Calling contiguous() on what is contiguous already returns the tensor itself.": _kinds(6),
            "A transpose has only its strides exchanged; no element moves.": _kinds(3),
            "The expand repeats with stride 0 and copies nothing; repeat is the one that copies.": _kinds(8, 9),
            "The repeat writes every repetition into new memory; expand is the one that does not.": _kinds(9),
            "Calling to() with the dtype and device that the tensor has already returns the tensor itself.": _kinds(10),
            "Two slips, both about contiguous(): it returns the tensor itself, unless the order must change.": _kinds(
                6, 7
            ),
        },
        hint="Ask of each: can one offset and one stride per dimension describe the result on the old storage?",
    )
)

_add(
    Exercise(
        "really_touched",
        oracle=lambda: 500 * 64 * 4,
        mistakes={
            "That is numel × element size: the 32 copies have stride 0 and are the same bytes.": lambda: (
                32 * 500 * 64 * 4
            ),
            "That is the whole storage: a[::2] leaves out every other row.": lambda: 1000 * 64 * 4,
            "You took 2 byte per element: a float32 has 4.": lambda: 500 * 64 * 2,
            "That is a number of elements: each has 4 byte.": lambda: 500 * 64,
            "That is the stretch from the first byte to the last; the rows between are not touched.": lambda: (
                999 * 64 * 4
            ),
            "Those are bits: a float32 has 4 byte.": lambda: 500 * 64 * 32,
        },
        hint="Which rows of the storage does a[::2] reach? Does expand reach any others?",
    )
)


def _fewest(shape: tuple[int, ...], stride: tuple[int, ...]) -> int:
    """By trying torch's own view on every way to merge neighbours."""
    cells = 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))
    t = torch.empty(cells).as_strided(shape, stride)
    count = len(shape)
    for k in range(len(shape) - 1):
        try:
            t.view(*shape[:k], shape[k] * shape[k + 1], *shape[k + 2 :])
            count -= 1
        except RuntimeError:
            pass
    return count


def _count_runs(merge: Callable[[tuple[int, ...], tuple[int, ...], int], bool]) -> Callable[..., int]:
    return lambda shape, stride: len(shape) - sum(merge(shape, stride, k) for k in range(len(shape) - 1))


_add(
    Exercise(
        "fewest_dimensions",
        cases=(
            ((3, 4), (4, 1)),
            ((4, 3), (1, 4)),
            ((2, 3, 4), (12, 4, 1)),
            ((3, 2, 4), (4, 12, 1)),
            ((2, 3, 4), (24, 8, 2)),
            ((2, 3, 4), (24, 4, 1)),
            ((5, 3), (0, 1)),
            ((5, 5), (1, 5)),
            ((4, 5), (5, 2)),
            ((2, 2, 3), (0, 0, 1)),
        ),
        oracle=_fewest,
        mistakes={
            "One dimension would do for a contiguous tensor only: two neighbours merge if their strides fit.": (
                lambda shape, stride: 1
            ),
            "Not contiguous, and yet some neighbours may merge: look at each pair.": lambda shape, stride: (
                1 if list(stride) == _dense_strides(shape) else len(shape)
            ),
            "You multiplied by size[k]; a step must jump over the whole next dimension, so by size[k + 1].": (
                _count_runs(lambda shape, stride, k: stride[k] == shape[k] * stride[k + 1])
            ),
            "You compared stride[k] with size[k + 1] alone; multiply it by stride[k + 1].": _count_runs(
                lambda shape, stride, k: stride[k] == shape[k + 1]
            ),
            "A falling order of strides is not enough: there may be gaps between the rows.": _count_runs(
                lambda shape, stride, k: stride[k] > stride[k + 1]
            ),
            "You counted the pairs that merge; each of them leaves one dimension less.": lambda shape, stride: (
                len(shape) - _fewest(shape, stride)
            ),
        },
        hint="Start from all dimensions, and take one off for every pair with stride[k] = size[k + 1] · stride[k + 1].",
    )
)


def _prepare(
    images: torch.Tensor, *, order: tuple[int, ...] = (0, 3, 1, 2), start: int = 4, keep: str = "", front: bool = True
) -> torch.Tensor:
    x = images.permute(order)
    x = x.contiguous() if "contiguous" in keep else x
    x = x[:, :, list(range(start, start + 8))] if "list" in keep else x[:, :, start : start + 8]
    x = x[..., ::2].clone() if "clone" in keep else x[..., ::2]
    x = x.reshape(*x.shape[:2], 4, 2, x.shape[3])
    if "stack" in keep:
        return torch.stack([x, x, x])
    return x.expand(3, *x.shape) if front else x[:, None].expand(-1, 3, -1, -1, -1, -1)


_IMAGES = torch.arange(2 * 16 * 16 * 3, dtype=torch.float32)
_add(
    Exercise(
        "prepare",
        cases=((_IMAGES.view(2, 16, 16, 3),), (_IMAGES[: 16 * 12 * 4].view(1, 16, 12, 4),)),
        oracle=_prepare,
        mistakes={
            "The contiguous() is left over: the steps after it work on any strides.": lambda images: _prepare(
                images, keep="contiguous"
            ),
            "The rows are still picked by a list, which copies them; a slice names the same rows.": lambda images: (
                _prepare(images, keep="list")
            ),
            "The clone() is left over: nobody writes into these images.": lambda images: _prepare(images, keep="clone"),
            "Each image is written three times, by stack or repeat; expand shows it three times.": lambda images: (
                _prepare(images, keep="stack")
            ),
            "Nothing is saved yet: contiguous, the list index, clone and stack copy, one after the other.": (
                lambda images: _prepare(images, keep="contiguous list clone stack")
            ),
            "Height and width are exchanged: the order is batch, channels, height, width.": lambda images: _prepare(
                images.transpose(1, 2)
            ),
            "The eight rows start at row 4: list(range(4, 12)) is the slice 4:12.": lambda images: _prepare(
                images, start=0
            ),
            "The three copies come first, before the batch: x.expand(3, *x.shape).": lambda images: _prepare(
                images, front=False
            ),
        },
        hint="You need permute, a slice for the list, a step without clone, the same reshape, and expand at the end.",
        cost=allocated_bytes,
    )
)


def _swapped(x: torch.Tensor, i: int, j: int) -> torch.Tensor:
    kept = x[i].clone()
    x[i] = x[j]
    x[j] = kept
    return x


def _swap_lost(x: torch.Tensor, i: int, j: int) -> torch.Tensor:
    x[i] = x[j]
    return x


def _swap_late(x: torch.Tensor, i: int, j: int) -> torch.Tensor:
    x[j] = x[i]
    return x


def _swap_two(x: torch.Tensor, i: int, j: int) -> torch.Tensor:
    x[i], x[j] = x[j].clone(), x[i].clone()
    return x


def _swap_by_list(x: torch.Tensor, i: int, j: int) -> torch.Tensor:
    x[[i, j]] = x[[j, i]]
    return x


_add(
    Exercise(
        "swap_rows",
        cases=(
            (torch.arange(20.0).view(4, 5), 0, 2),
            (torch.arange(12).view(3, 4), 2, 1),
            (torch.tensor([[1e9, 1.0], [1.0, 1e9], [2.0, 3.0]]), 0, 1),  # sums and differences of rows would round
        ),
        oracle=_swapped,
        mistakes={
            "Row i is lost: x[i] is a view, so what you kept changed together with x. Keep a clone of it.": _swap_lost,
            "Row j is lost: by the time you read it, it has been overwritten. Keep a clone first.": _swap_late,
            "You swapped columns: x[i] is row i, x[:, i] column i.": lambda x, i, j: _swapped(x.t(), i, j).t(),
            "You cloned the whole matrix; only one row is in danger.": lambda x, i, j: _swapped(x.clone(), i, j),
            "You cloned both rows; the second is safe once the first is.": _swap_two,
            "A list as index copies both rows, and needs an index tensor on each side.": _swap_by_list,
        },
        hint="Which of the three lines reads data that the line before has changed?",
        cost=allocated_bytes,
    )
)


def _matmul_shape(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(torch.matmul(torch.empty(a, device="meta"), torch.empty(b, device="meta")).shape)


def _longer_batch(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    return a[:-2] if len(a) >= len(b) else b[:-2]


_add(
    Exercise(
        "matmul_shape",
        cases=(
            ((2, 3), (3, 4)),
            ((4, 8, 16, 32), (32, 2)),
            ((3, 4), (6, 4, 2)),
            ((7, 2, 3), (1, 3, 5)),
            ((5, 1, 2, 3), (4, 3, 6)),
        ),
        oracle=_matmul_shape,
        mistakes={
            "You put the batch dimensions of both one after the other; they are aligned at the right and shared.": (
                lambda a, b: (*a[:-2], *b[:-2], a[-2], b[-1])
            ),
            "Your batch dimensions are in reverse order: turn them round again.": lambda a, b: (
                *_matmul_shape(a, b)[-3::-1],
                a[-2],
                b[-1],
            ),
            "You took the batch dimensions of the first alone; the second may have more.": lambda a, b: (
                *a[:-2],
                a[-2],
                b[-1],
            ),
            "You left out the batch dimensions: only the last two are multiplied, the others stay.": lambda a, b: (
                a[-2],
                b[-1],
            ),
            "You took the batch of the longer shape; where it has a 1, the size of the other counts.": lambda a, b: (
                *_longer_batch(a, b),
                a[-2],
                b[-1],
            ),
            "Rows of the first, columns of the second: a[-2] and b[-1] remain, the inner two vanish.": lambda a, b: (
                *_matmul_shape(a, b)[:-2],
                b[-1],
                a[-2],
            ),
            "The inner dimension is summed over: it does not appear in the result.": lambda a, b: (
                *_matmul_shape(a, b)[:-1],
                a[-1],
                b[-1],
            ),
        },
        hint="The last two give (a[-2], b[-1]). Align the rest at the right; nothing or a 1 takes the other's size.",
    )
)


# --- 03 Named dimensions -------------------------------------------------------------------------------------------

_add(
    Exercise(
        "enforced",
        oracle=lambda: ("passes", "passes", "raises", "raises", "passes"),
        mistakes={
            "An annotation on an assignment only documents: a passes, whatever its shape.": lambda: (
                "raises", "passes", "raises", "raises", "passes",
            ),
            "Without a type checker nobody reads the annotation of a parameter: b passes.": lambda: (
                "passes", "raises", "raises", "raises", "passes",
            ),
            "In one call a name has one size: seq cannot be 3 in x and 4 in w, so c raises.": lambda: (
                "passes", "passes", "passes", "raises", "passes",
            ),
            "The return value is checked, too: its shape is (2, 3), not (2,), so d raises.": lambda: (
                "passes", "passes", "raises", "passes", "passes",
            ),
            "Names mean nothing to the checker: where the sizes agree, e passes though its axes are swapped.": lambda: (
                "passes", "passes", "raises", "raises", "raises",
            ),
            "Only calls of a function decorated with a type checker are checked: a and b are none.": lambda: (
                "raises", "raises", "raises", "raises", "passes",
            ),
        },
        hint="Ask of each line: is it a call of a function that has a type checker? Then compare sizes, not names.",
    )
)  # fmt: skip


def _rewrites(**other: Callable[..., torch.Tensor]) -> Callable[..., tuple[torch.Tensor, ...]]:
    """The ten tensors; `other` replaces some, by letter."""
    ten = {
        "a": lambda x, y, w: x.transpose(1, 2),
        "b": lambda x, y, w: x.flatten(1),
        "c": lambda x, y, w: x.view(len(x), x.shape[1], 2, -1).transpose(1, 2),
        "d": lambda x, y, w: x.permute(1, 0, 2).flatten(1),
        "e": lambda x, y, w: x.mean(-1),
        "f": lambda x, y, w: x.amax((1, 2), keepdim=True),
        "g": lambda x, y, w: x[:, None].expand(-1, 3, -1, -1),
        "h": lambda x, y, w: x.repeat_interleave(2, dim=1),
        "i": lambda x, y, w: x @ w,
        "j": lambda x, y, w: x @ y.transpose(1, 2),
    } | other
    return lambda x, y, w: tuple(part(x, y, w) for part in ten.values())


def _counting(*shape: int, start: int = 0) -> torch.Tensor:
    """Different whole numbers in float64, where sums and products of them are exact."""
    return torch.arange(start, start + math.prod(shape), dtype=torch.float64).view(shape)


_add(
    Exercise(
        "ten_rewrites",
        cases=((_counting(2, 6, 8), _counting(2, 6, 8, start=7), _counting(8, 5)),),
        oracle=_rewrites(),
        mistakes={
            "In b the merged names are in the wrong order: (seq hidden) keeps the order of memory.": _rewrites(
                b=lambda x, y, w: x.transpose(1, 2).flatten(1)
            ),
            "In c you split hidden as (dim heads): view splits it with the head as the slow digit, (heads dim).": (
                _rewrites(c=lambda x, y, w: x.view(len(x), x.shape[1], -1, 2).permute(0, 3, 1, 2))
            ),
            "In c your output still has seq before heads: the transpose swapped them.": _rewrites(
                c=lambda x, y, w: x.view(len(x), x.shape[1], 2, -1)
            ),
            "In d the merged names are in the wrong order: after the permute batch comes before hidden.": _rewrites(
                d=lambda x, y, w: x.permute(1, 2, 0).flatten(1)
            ),
            "In e you took the sum: the old way is a mean, so the new way is one, too.": _rewrites(
                e=lambda x, y, w: x.sum(-1)
            ),
            "In e you averaged over seq: the name that is missing from the output is the one that goes.": _rewrites(
                e=lambda x, y, w: x.mean(1)
            ),
            "In f keepdim is lost: keep an axis of size one by writing a 1 in its place.": _rewrites(
                f=lambda x, y, w: x.amax((1, 2))
            ),
            "In g the new axis is in the wrong place: it comes right after batch.": _rewrites(
                g=lambda x, y, w: x[None].expand(3, -1, -1, -1)
            ),
            "In h you repeat the whole sequence, (copy seq): repeat_interleave repeats each element, (seq copy).": (
                _rewrites(h=lambda x, y, w: x.repeat(1, 2, 1))
            ),
            "In j the output names are swapped: rows belong to x, columns to y.": _rewrites(
                j=lambda x, y, w: y @ x.transpose(1, 2)
            ),
            "In j you gave the two sequences one name: that keeps only equal positions. They need two names.": (
                _rewrites(j=lambda x, y, w: (x * y).sum(-1))
            ),
        },
        hint="Write the shape of x with names on the left, the shape of the result on the right.",
    )
)


def _pairs(x: torch.Tensor) -> torch.Tensor:
    return torch.stack(x.chunk(2, dim=-1), dim=-1).flatten(-2)


_add(
    Exercise(
        "halves_to_pairs",
        cases=((_counting(8),), (_counting(3, 12),), (_counting(2, 3, 6),)),
        oracle=_pairs,
        mistakes={
            "That is the way back, from pairs to halves: here split is the slow digit of the input.": lambda x: (
                torch.cat((x[..., ::2], x[..., 1::2]), dim=-1)
            ),
            "Nothing moved: with the same brackets on both sides a pattern does nothing.": lambda x: x.clone(),
            "In each pair the second half came first: only the order of the digits changes.": lambda x: (
                _pairs(x).unflatten(-1, (-1, 2)).flip(-1).flatten(-2)
            ),
            "You left the pairs as an axis of their own: merge it with brackets on the right side.": lambda x: (
                torch.stack(x.chunk(2, dim=-1), dim=-1)
            ),
        },
        hint="Input (split c), output (c split), and split=2. Leading axes go into the three dots of the pattern.",
    )
)


def _patches(image: torch.Tensor, size: int, order: str, step: bool = False) -> torch.Tensor:
    """Patches with their axes in that order: i and j say which patch, k and l which of its pixels, c the channel.

    With `step` a patch has the pixels at equal distances, `size` of them from all over the image.
    """
    height, width, _ = image.shape
    rows, columns = height // size, width // size
    counts, axes = ((size, rows, size, columns), "kiljc") if step else ((rows, size, columns, size), "ikjlc")
    parts = image.view(*counts, -1).permute([axes.index(axis) for axis in order])
    return parts.reshape(height * width // size**2, -1)


_add(
    Exercise(
        "patchify",
        cases=((_counting(4, 6, 3), 2), (_counting(6, 3, 1), 3), (_counting(8, 4, 2), 2)),
        oracle=lambda image, size: _patches(image, size, "ijklc"),
        mistakes={
            "You split with the pixel as the slow digit: each patch has pixels from all over the image.": (
                lambda image, size: _patches(image, size, "ijklc", step=True)
            ),
            "Your patches come column by column; in reading order the row of the patch is the slow digit.": (
                lambda image, size: _patches(image, size, "jiklc")
            ),
            "Inside a patch your channel comes first; the order asked for is row, column, channel.": (
                lambda image, size: _patches(image, size, "ijckl")
            ),
            "Inside a patch you go down the columns; the order asked for is row, column, channel.": (
                lambda image, size: _patches(image, size, "ijlkc")
            ),
            "That cuts the image's memory in pieces: a patch is a square, and its rows lie apart in memory.": (
                lambda image, size: image.reshape(-1, size * size * image.shape[2])
            ),
            "One patch per row is asked for: merge the two axes that say which patch it is.": lambda image, size: (
                _patches(image, size, "ijklc").view(image.shape[0] // size, image.shape[1] // size, -1)
            ),
        },
        hint="Split both sides, (rows p) and (columns q) with p = q = size; then merge (rows columns) and (p q c).",
    )
)


def _standardised(
    axes: tuple[int, ...] = (0, 1, 2), centre: bool = True, root: bool = True, correction: int = 0
) -> Callable[[torch.Tensor], torch.Tensor]:
    def normalise(images: torch.Tensor) -> torch.Tensor:
        spread = images.var(axes, correction=correction, keepdim=True)
        centred = images - images.mean(axes, keepdim=True) if centre else images
        return centred / (spread.sqrt() if root else spread)

    return normalise


_add(
    Exercise(
        "channel_norm",
        cases=((_counting(2, 3, 4, 3) ** 1.5,), (_counting(3, 2, 5, 2) ** 2,)),
        oracle=_standardised(),
        mistakes={
            "You normalised each image by itself: the batch has to go from the output of reduce as well.": (
                _standardised((1, 2))
            ),
            "You normalised all channels together: each channel needs a mean of its own, so c stays.": _standardised(
                (0, 1, 2, 3)
            ),
            "You normalised each pixel over the batch: height and width have to go from the output as well.": (
                _standardised((0,))
            ),
            "You divided by the variance: the standard deviation is its square root.": _standardised(root=False),
            "You divided by n − 1, as torch.std does unless told otherwise; here the mean over all n is asked for.": (
                _standardised(correction=1)
            ),
            "You did not subtract the mean.": _standardised(centre=False),
            "You subtracted the mean and did not divide by the standard deviation.": lambda images: (
                images - images.mean((0, 1, 2))
            ),
        },
        hint='The pattern "b h w c -> 1 1 1 c" gives the means to subtract, and then the mean of the squares.',
    )
)


def _names(pattern: str) -> tuple[list[str], list[str]]:
    """The names of the inputs, with repetitions, and those of the output."""
    left, right = pattern.split("->")
    return left.replace(",", " ").split(), right.split()


def _product(names: Any, sizes: dict[str, int]) -> int:
    return math.prod(sizes[name] for name in names)


_add(
    Exercise(
        "einsum_flop",
        cases=(
            ("i j, j k -> i k", {"i": 3, "j": 5, "k": 7}),
            ("i j,j k->i k", {"i": 3, "j": 5, "k": 7}),
            (
                "batch seq hidden, hidden out -> batch seq out",
                {"batch": 4, "seq": 16, "hidden": 32, "heads": 4, "out": 8},
            ),
            ("b n q d, b n k d -> b n q k", {"b": 2, "n": 12, "q": 1024, "k": 1024, "d": 64}),
            ("i, i ->", {"i": 1000}),
        ),
        oracle=lambda pattern, sizes: 2 * _product(set(_names(pattern)[0]), sizes),
        mistakes={
            "You counted MAC: each is a multiplication and an addition, 2 FLOP.": lambda pattern, sizes: _product(
                set(_names(pattern)[0]), sizes
            ),
            "You multiplied a name once for each operand that has it: the loops run once over each name.": (
                lambda pattern, sizes: 2 * _product(_names(pattern)[0], sizes)
            ),
            "You counted the elements of the output: each of them is a sum over the names that are missing.": (
                lambda pattern, sizes: 2 * _product(_names(pattern)[1], sizes)
            ),
            "You counted only the names that are summed: that is the cost of one element of the output.": (
                lambda pattern, sizes: 2 * _product(set(_names(pattern)[0]) - set(_names(pattern)[1]), sizes)
            ),
            "You multiplied all the sizes given: take only the names that the pattern has.": lambda pattern, sizes: (
                2 * _product(sizes, sizes)
            ),
            "That leaves out the first addition of each sum. It is exact, but the convention is 2 for every step.": (
                lambda pattern, sizes: (
                    2 * _product(set(_names(pattern)[0]), sizes) - _product(_names(pattern)[1], sizes)
                )
            ),
        },
        hint="Write the loops in your head: one for each different name, and one multiply-add in the innermost.",
    )
)


def _attention(
    split: str = "heads dim", softmax: int = -1, width: str = "dim", merge: str = "heads dim"
) -> Callable[[torch.Tensor, torch.Tensor, torch.Tensor, int], torch.Tensor]:
    def apart(x: torch.Tensor, heads: int) -> torch.Tensor:  # (batch, heads, seq, dim)
        if split == "heads dim":
            return x.unflatten(-1, (heads, -1)).transpose(1, 2)
        return x.unflatten(-1, (-1, heads)).permute(0, 3, 1, 2)

    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, heads: int) -> torch.Tensor:
        scale = {"dim": q.shape[-1] // heads, "hidden": q.shape[-1], "none": 1}[width]
        weights = (apart(q, heads) @ apart(k, heads).mT / math.sqrt(scale)).softmax(softmax)
        result = weights @ apart(v, heads)  # (batch, heads, seq, dim)
        return result.permute((0, 2, 1, 3) if merge == "heads dim" else (0, 2, 3, 1)).flatten(2)

    return attend


def _waves(*shape: int) -> torch.Tensor:
    """Numbers between −1 and 1 without a pattern that an index could hide in."""
    return (_counting(*shape) * 1.7 + shape[1]).sin()


_add(
    Exercise(
        "repair_attention",
        cases=(
            (_waves(2, 5, 8), _waves(2, 6, 8), _waves(2, 6, 8) ** 2, 2),
            (_waves(1, 4, 12), _waves(1, 4, 12) ** 3, _waves(1, 4, 12) + 1, 3),
        ),
        oracle=_attention(),
        mistakes={
            "That is still the attention with both bugs.": _attention("dim heads", -2),
            "Your brackets agree, but hidden is (heads dim): the head is the slow digit in all of them.": (
                _attention("dim heads", merge="dim heads")
            ),
            "The weights of a query still do not add up to 1: the softmax runs over the wrong name.": _attention(
                softmax=-2
            ),
            "The softmax is right now. The heads are taken apart in one order and put together in another.": (
                _attention("dim heads")
            ),
            "The scale was right: divide by the square root of dim, the width of one head, not of all heads.": (
                _attention(width="hidden")
            ),
            "The scale was right: scores are divided by the square root of dim.": _attention(width="none"),
        },
        hint="Say aloud over which name the weights must add up to 1; then compare the brackets of both rearranges.",
    )
)


def _from_the_left(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> bool:
    """Whether (q kᵀ) v is the cheaper order."""
    queries, keys, dim, value = len(q), len(k), q.shape[1], v.shape[1]
    return queries * keys * (dim + value) <= dim * value * (queries + keys)


def _product_of(left: bool, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return (q @ k.T) @ v if left else q @ (k.T @ v)


_add(
    Exercise(
        "cheapest_order",
        cases=(
            (_counting(256, 8), _counting(256, 8, start=3), _counting(256, 8, start=1)),
            (_counting(4, 64), _counting(4, 64, start=3), _counting(4, 64, start=1)),
            (_counting(300, 16), _counting(20, 16, start=3), _counting(20, 2, start=1)),
        ),
        oracle=lambda q, k, v: _product_of(_from_the_left(q, k, v), q, k, v),
        mistakes={
            "You go from left to right, as one einsum of three tensors does: the first step makes every query meet "
            "every key.": lambda q, k, v: _product_of(True, q, k, v),
            "You always start with k and v: for short sequences and wide heads the other order is cheaper.": (
                lambda q, k, v: _product_of(False, q, k, v)
            ),
            "You compare the two orders and take the dearer one.": lambda q, k, v: _product_of(
                not _from_the_left(q, k, v), q, k, v
            ),
            "You applied a softmax: there is none here, and with one the order could not be changed.": lambda q, k, v: (
                (q @ k.T).softmax(-1) @ v
            ),
        },
        hint="Count the FLOP of both orders from the sizes, two contractions each, and take the smaller.",
        cost="flops",
        unit="FLOP",
    )
)


# --- 04 Counting FLOPs ---------------------------------------------------------------------------------------------

_MAC = "You counted MAC: each is a multiplication and an addition, 2 FLOP."


def _mlp_step(products: float) -> Callable[..., float]:
    return lambda batch, width, hidden: products * 2 * batch * width * hidden


_add(
    Exercise(
        "mlp_step",
        cases=((64, 512, 2048), (1, 8, 8), (32, 100, 300)),
        oracle=_mlp_step(5),  # two forward, two weight gradients, one gradient of the hidden layer
        mistakes={
            _MAC: _mlp_step(2.5),
            "You forgot the backward pass: the step is forward and backward.": _mlp_step(2),
            "That is the backward pass alone: the step is forward and backward.": _mlp_step(3),
            "You counted a gradient of x (6 FLOP per parameter and token): x is data, so the first layer needs none.": (
                _mlp_step(6)
            ),
            "You took the backward pass for as dear as the forward: the second layer needs two products, for its "
            "weight and for its input.": _mlp_step(4),
        },
        hint="List the products: two forward; backward a gradient for each weight, and for each input that needs one.",
    )
)


def _conv(batch: int, c_in: int, c_out: int, height: int, width: int, kernel: int) -> int:
    return 2 * batch * c_out * (height - kernel + 1) * (width - kernel + 1) * c_in * kernel**2


_add(
    Exercise(
        "conv_flop",
        cases=((1, 3, 64, 32, 32, 5), (8, 64, 128, 28, 20, 3), (2, 4, 6, 9, 7, 1)),
        oracle=_conv,
        mistakes={
            _MAC: lambda *sizes: _conv(*sizes) / 2,
            "You took the output for as large as the input: without padding it loses kernel − 1 rows and columns.": (
                lambda b, i, o, h, w, k: 2 * b * o * h * w * i * k**2
            ),
            "You forgot the input channels: each output element sums over all of them.": lambda b, i, o, h, w, k: _conv(
                b, 1, o, h, w, k
            ),
            "You forgot the output channels: each of them has a kernel of its own.": lambda b, i, o, h, w, k: _conv(
                b, i, 1, h, w, k
            ),
            "You took the kernel for a line: it has kernel × kernel weights per channel.": lambda b, i, o, h, w, k: (
                _conv(b, i, o, h, w, k) / k
            ),
            "You forgot the batch.": lambda b, i, o, h, w, k: _conv(1, i, o, h, w, k),
        },
        hint="How many output elements are there, and how many products does each of them sum?",
    )
)

_add(
    Exercise(
        "mac_or_flop",
        oracle=lambda: ("MAC", "FLOP", "MAC", "FLOP"),
        mistakes={
            "You took every number at its word: a and c are half of the operations.": lambda: ("FLOP",) * 4,
            "You doubted too much: b and d count multiplications and additions.": lambda: ("MAC",) * 4,
            "You have them all the other way round: 1 MAC is 2 FLOP, so the smaller number counts MAC.": lambda: (
                "FLOP",
                "MAC",
                "FLOP",
                "MAC",
            ),
            "Look at a again: 3 · 3 · 64 · 64 · 56 · 56 are the multiplications alone.": lambda: (
                "FLOP",
                "FLOP",
                "MAC",
                "FLOP",
            ),
            "Look at c again: a V100 reaches 125 TFLOP/s, twice this number.": lambda: (
                "MAC",
                "FLOP",
                "FLOP",
                "FLOP",
            ),
        },
        hint="Work out the number of multiplications of each. Is the number given this many, or twice as many?",
    )
)


def _transformer(
    products: float = 24, scores: float = 4, unembedding: float = 2, factor: float = 1
) -> Callable[..., float]:
    def flop(layers: int, width: int, tokens: int, vocabulary: int) -> float:
        layer = products * tokens * width**2 + scores * tokens**2 * width
        return factor * (layers * layer + unembedding * tokens * width * vocabulary)

    return flop


_add(
    Exercise(
        "transformer_flop",
        cases=((12, 768, 1024, 50257), (24, 1024, 512, 1000), (2, 64, 4096, 100)),
        oracle=_transformer(),
        mistakes={
            _MAC: _transformer(factor=0.5),
            "You forgot the scores: queries times keys and probabilities times values, 4T²D a layer.": _transformer(
                scores=0
            ),
            "You have half of the attention: there are two products of 2T²D, and a causal mask is not discounted.": (
                _transformer(scores=2)
            ),
            "You forgot the unembedding: the last product, D × V for each token.": _transformer(unembedding=0),
            "The MLP is four times as wide as the model: 16TD², not 4TD².": _transformer(12),
            "You forgot the projection after the attention: D × D for each token.": _transformer(22),
            "You counted the forward pass three times: forward alone was asked for.": _transformer(factor=3),
        },
        hint="Per layer: four D × D products for the attention, two of D × 4D for the MLP, and two of T × T × D.",
    )
)


def _training(plain: float, recomputed: float) -> Callable[..., float]:
    return lambda parameters, tokens, recompute: (recomputed if recompute else plain) * parameters * tokens


_add(
    Exercise(
        "training_flop",
        cases=((175e9, 300e9, False), (70e9, 15e12, True), (124e6, 1e10, True)),
        oracle=_training(6, 8),
        mistakes={
            _MAC: _training(3, 4),
            "You forgot the backward pass: 2 is the forward alone.": _training(2, 4),
            "The backward pass costs twice the forward: a gradient for the weight and one for the input.": _training(
                4, 6
            ),
            "Recomputing costs a second forward pass: 2 more per parameter and token.": _training(6, 6),
            "Recomputing repeats the forward pass, not the whole step.": _training(6, 12),
            "Without recomputation there is one forward pass, not two.": _training(8, 8),
        },
        hint="A forward pass costs 2, the backward pass 4. How many forward passes are there?",
    )
)


def _run_mfu(peak: float = 756e12, flop: float = 6, shared: bool = True) -> Callable[..., float]:
    def mfu(parameters: float, devices: int, tokens_per_second: float) -> float:
        return flop * parameters * tokens_per_second / ((devices if shared else 1) * peak)

    return mfu


_add(
    Exercise(
        "run_mfu",
        cases=((7e9, 64, 480_000), (70e9, 1024, 700_000), (1.3e9, 8, 350_000)),
        oracle=_run_mfu(),
        mistakes={
            _MAC: _run_mfu(flop=3),
            "You used the sparse peak: the datasheet's 1,513 TFLOP/s are for matrices that are half zeros.": _run_mfu(
                1513e12
            ),
            "Wrong SKU: 989.5 TFLOP/s is the H100 SXM5, and these cards are for PCIe.": _run_mfu(989.5e12),
            "Wrong SKU, and sparse: 1,979 TFLOP/s is the H100 SXM5 with half of the matrix zero.": _run_mfu(1979e12),
            "Wrong SKU: 835.5 TFLOP/s is the H100 NVL, and these cards are for PCIe.": _run_mfu(835.5e12),
            "Wrong unit: 51 TFLOP/s is the vector unit in float32; bfloat16 matmuls run on the matrix unit.": _run_mfu(
                51e12
            ),
            "You forgot the backward pass: training costs 6 FLOP per parameter and token.": _run_mfu(flop=2),
            "You compared the total with one device: the tokens per second are those of all devices together.": (
                _run_mfu(shared=False)
            ),
        },
        hint="FLOP/s achieved by all devices, over the peak of all devices. Which H100 is it, and which of its rates?",
        tolerance=2e-4,
    )
)

_add(
    Exercise(
        "two_weeks",
        oracle=lambda: 8 * 989.5e12 * 14 * 24 * 60 * 60,
        mistakes={
            "That is one week: 60 · 60 · 24 · 7 seconds. Two weeks have 14 days.": lambda: 8 * 989.5e12 * 7 * 86400,
            "You used the sparse peak, twice the dense one.": lambda: 8 * 1979e12 * 14 * 86400,
            "Wrong SKU: 756 TFLOP/s is the H100 for PCIe.": lambda: 8 * 756e12 * 14 * 86400,
            "That is one device: there are eight.": lambda: 989.5e12 * 14 * 86400,
            "A peak is per second, and a day has 86 400 of them.": lambda: 8 * 989.5e12 * 14,
        },
        hint="Devices · FLOP/s · seconds; how many seconds are in two weeks?",
        tolerance=2e-3,
    )
)

_add(
    Exercise(
        "printed_mfu",
        oracle=lambda: 0.59 * 77.97e12 / 312e12,
        mistakes={
            "That is what was printed: the FLOP/s stay, and the denominator changes.": lambda: 0.59,
            "The ratio is upside down: a larger peak makes a smaller MFU.": lambda: 0.59 * 312 / 77.97,
            "You used the sparse peak: 624 TFLOP/s, twice the dense one.": lambda: 0.59 * 77.97 / 624,
            "Wrong format: 156 TFLOP/s is for tfloat32, and these matmuls are in bfloat16.": lambda: 0.59 * 77.97 / 156,
            "Wrong SKU: 989.5 TFLOP/s is an H100, and this was an A100.": lambda: 0.59 * 77.97 / 989.5,
            "That is the FLOP/s achieved: divide it by the right peak.": lambda: 0.59 * 77.97e12,
            "You compared the peaks: how much of the right one was reached?": lambda: 77.97 / 312,
        },
        hint="First the FLOP/s that were achieved: 0.59 · 77.97e12. Then over the peak of a bfloat16 matmul.",
        tolerance=0.02,
    )
)


def _whole(rows: int, columns: int) -> torch.Tensor:
    """Small whole numbers, whose products float32 holds exactly, whatever the order of a sum."""
    return (torch.arange(rows * columns) * 7 % 5 - 2.0).reshape(rows, columns)


_add(
    Exercise(
        "low_rank",
        cases=(
            (_whole(4, 64), _whole(64, 64), _whole(64, 2), _whole(2, 64)),
            (_whole(16, 32), _whole(32, 48), _whole(32, 3), _whole(3, 48)),
        ),
        oracle=lambda x, w, a, b: x @ w + (x @ a) @ b,
        mistakes={
            "You formed the large matrix a @ b: go through the few columns of x @ a instead.": lambda x, w, a, b: (
                x @ (w + a @ b)
            ),
            "You multiply x by two large matrices: x @ a has few columns, so start with that.": lambda x, w, a, b: (
                x @ w + x @ (a @ b)
            ),
            "You left out the low-rank part.": lambda x, w, a, b: x @ w,
            "You left out x @ w.": lambda x, w, a, b: x @ a @ b,
        },
        hint="A product is associative: (x @ a) @ b is x @ (a @ b). Count 2mnk for each step of both.",
        cost="flops",
        unit="FLOP",
    )
)


# --- 05 Arithmetic intensity ---------------------------------------------------------------------------------------

_add(
    Exercise(
        "saxpy_intensity",
        cases=((1, 4), (1000, 2), (2**20, 8)),
        oracle=lambda n, itemsize: 2 * n / (3 * n * itemsize),
        mistakes={
            "A multiply-accumulate is two FLOP: you counted each as one.": lambda n, itemsize: n / (3 * n * itemsize),
            "Three vectors move: x and y are read, and y is written. You counted two.": lambda n, itemsize: (
                2 * n / (2 * n * itemsize)
            ),
            "Five vectors move if the product a·x is stored on the way; saxpy is one op and keeps it in a register.": (
                lambda n, itemsize: 2 * n / (5 * n * itemsize)
            ),
            "That is bytes per FLOP: intensity is FLOP per byte.": lambda n, itemsize: 3 * itemsize / 2,
            "Those are bits: itemsize is in bytes already.": lambda n, itemsize: 2 / (3 * itemsize * 8),
            "That is FLOP per element moved: an element has itemsize bytes.": lambda n, itemsize: 2 / 3,
        },
        hint="FLOPs: a multiplication and an addition per element. Bytes: which vectors are read, which is written?",
    )
)


def _layer_norm_intensity(each: int, shared: int = 2, bits: int = 1) -> Callable[..., float]:
    def intensity(rows: int, cols: int, itemsize: int) -> float:
        return 8 * rows * cols / (bits * itemsize * (each * rows * cols + shared * cols))

    return intensity


_add(
    Exercise(
        "layer_norm_intensity",
        cases=((1, 1024, 4), (16, 512, 2), (4096, 768, 2)),
        oracle=_layer_norm_intensity(2),
        mistakes={
            "You forgot the write: the output is as large as the input.": _layer_norm_intensity(1),
            "You read the input twice, once for the mean: a fused layer norm keeps the row on the chip in between.": (
                _layer_norm_intensity(3)
            ),
            "You counted weight and bias once for each row: all rows share one copy of them.": (
                _layer_norm_intensity(4, 0)
            ),
            "You forgot that weight and bias are read, too; with few rows that shows.": _layer_norm_intensity(2, 0),
            "Those are bits: itemsize is in bytes already.": _layer_norm_intensity(2, bits=8),
        },
        hint="Read: the input, rows × cols, and once the weight and the bias, cols each. Written: the output.",
    )
)


def _grouped_attention(
    flops: int = 4, queries: int = 2, keys: int = 2, scores: int = 0, shared: bool = True
) -> Callable[..., float]:
    def intensity(s: int, t: int, heads: int, dim: int, itemsize: int) -> float:
        copies = 1 if shared else heads
        numbers = queries * heads * s * dim + keys * copies * t * dim + scores * heads * s * t
        return flops * heads * s * t * dim / (itemsize * numbers)

    return intensity


_add(
    Exercise(
        "grouped_attention",
        cases=((1, 4096, 4, 128, 2), (4096, 4096, 8, 128, 2), (64, 1000, 2, 64, 1)),
        oracle=_grouped_attention(),
        mistakes={
            "You counted one of the two matmuls: queries with keys, and then weights with values.": (
                _grouped_attention(flops=2)
            ),
            "You forgot the write: the output has a row of dim numbers per query.": _grouped_attention(queries=1),
            "You forgot the values: they are as large as the keys.": _grouped_attention(keys=1),
            "You wrote the scores to memory and read them back: the fused kernel never stores them.": (
                _grouped_attention(scores=2)
            ),
            "You gave each query head its own keys and values: the group shares one copy.": (
                _grouped_attention(shared=False)
            ),
            "That is S·T/(S + T), for one head in a 2-byte format: here heads share, and itemsize varies.": (
                lambda s, t, heads, dim, itemsize: s * t / (s + t)
            ),
            "You counted the FLOPs of one query head: each of them does both matmuls.": (
                lambda s, t, heads, dim, itemsize: 4 * s * t / (itemsize * (2 * heads * s + 2 * t))
            ),
            "Those are bits: itemsize is in bytes already.": lambda s, t, heads, dim, itemsize: _grouped_attention()(
                s, t, heads, dim, 8 * itemsize
            ),
        },
        hint="Per query head: two matmuls of 2·S·T·dim, S queries, S rows of output. Per group: T keys and T values.",
    )
)


def _critical_batch(
    d: int, f: int, ridge: float, weight_bytes: float, rounded: Callable[[float], float] = math.ceil
) -> float:
    room = 2 * d * f - 2 * ridge * (d + f)
    return rounded(ridge * weight_bytes * d * f / room) if room > 0 else math.inf


def _without_an_activation(ridge: float, weight_bytes: float, size: int) -> float:
    """Where one of the two activations was left out, and `size` is the width of the other."""
    return math.ceil(ridge * weight_bytes * size / (2 * size - 2 * ridge)) if size > ridge else math.inf


_add(
    Exercise(
        "critical_batch",
        cases=(
            (4096, 16384, 240.5, 2),
            (4096, 14336, 295.4, 1),
            (1024, 768, 153.02, 0.5),
            (512, 512, 295.4, 2),
            (8192, 1024, 206.1, 1),
        ),
        oracle=_critical_batch,
        mistakes={
            "That is the approximation by the weights alone: the activations have bytes, too.": lambda d, f, ridge, w: (
                math.ceil(ridge * w / 2)
            ),
            "You forgot the write: the output has B × F numbers.": lambda d, f, ridge, w: _without_an_activation(
                ridge, w, f
            ),  # 2BDF = ridge (2BD + wDF)
            "You forgot to read the input: it has B × D numbers.": lambda d, f, ridge, w: _without_an_activation(
                ridge, w, d
            ),
            "At that batch the layer is still below the ridge: round up.": lambda d, f, ridge, w: _critical_batch(
                d, f, ridge, w, math.floor
            ),
            "A batch is a whole number: round up.": lambda d, f, ridge, w: _critical_batch(d, f, ridge, w, float),
            "A negative batch says that no batch is large enough: return math.inf then.": lambda d, f, ridge, w: (
                math.ceil(ridge * w * d * f / (2 * d * f - 2 * ridge * (d + f)))
            ),
            "Where no batch is large enough, return math.inf; None stands for an answer that is still missing.": (
                lambda d, f, ridge, w: _critical_batch(d, f, ridge, w) if d * f > ridge * (d + f) else None
            ),
            "You took 2 byte per weight: here it is weight_bytes.": lambda d, f, ridge, w: _critical_batch(
                d, f, ridge, 2
            ),
            "You took weight_bytes for the activations, too: those stay in bfloat16.": lambda d, f, ridge, w: (
                _critical_batch(d, f, ridge * w / 2, 2)
            ),
        },
        hint="Set 2·B·D·F = ridge · (2·B·D + weight_bytes·D·F + 2·B·F), solve for B. Is what you divide by positive?",
    )
)

_add(
    Exercise(
        "saved_by_fusing",
        cases=((10, 2), (2**20, 4), (1000, 1)),
        oracle=lambda n, itemsize: 4 * n * itemsize,
        mistakes={
            "You forgot the writes: every op also writes its result.": lambda n, itemsize: 2 * n * itemsize,
            "You counted the view: it moves nothing.": lambda n, itemsize: 6 * n * itemsize,
            "That is what the fused version moves; the question asks what it saves.": lambda n, itemsize: (
                3 * n * itemsize
            ),
            "That is what the ops move one by one; the question asks what fusing saves.": lambda n, itemsize: (
                7 * n * itemsize
            ),
            "Those are elements: an element has itemsize bytes.": lambda n, itemsize: 4 * n,
        },
        hint="Per op, count what it reads and what it writes. Fused: only x and z are read, and only y is written.",
    )
)


def _kv_cache(matrices: int = 2, bits: int = 1) -> Callable[..., float]:
    def nbytes(layers: int, heads: int, kv_heads: int, head_dim: int, tokens: int, itemsize: int) -> float:
        return bits * matrices * layers * kv_heads * head_dim * tokens * itemsize

    return nbytes


_add(
    Exercise(
        "kv_cache",
        cases=((32, 32, 8, 128, 4096, 2), (80, 64, 8, 128, 1000, 1), (12, 12, 4, 64, 3, 4)),
        oracle=_kv_cache(),
        mistakes={
            "You counted one of keys and values: the cache holds both.": _kv_cache(1),
            "The cache has kv_heads heads: several query heads share one of them.": (
                lambda layers, heads, kv_heads, head_dim, tokens, itemsize: (
                    2 * layers * heads * head_dim * tokens * itemsize
                )
            ),
            "That is one layer: each layer has a cache of its own.": (
                lambda layers, heads, kv_heads, head_dim, tokens, itemsize: 2 * kv_heads * head_dim * tokens * itemsize
            ),
            "That is what one token adds to the cache; a step reads all tokens so far.": (
                lambda layers, heads, kv_heads, head_dim, tokens, itemsize: 2 * layers * kv_heads * head_dim * itemsize
            ),
            "Those are bits: itemsize is in bytes already.": _kv_cache(bits=8),
            "Those are numbers, not bytes: multiply by itemsize.": (
                lambda layers, heads, kv_heads, head_dim, tokens, itemsize: 2 * layers * kv_heads * head_dim * tokens
            ),
        },
        hint="A key and a value per layer, key-value head and token, each of head_dim numbers.",
    )
)

_add(
    Exercise(
        "decode_rate",
        cases=((16e9, 0.5e9, 1, 3.35e12), (16e9, 0.5e9, 64, 3.35e12), (70e9, 0.2e9, 8, 4.8e12)),
        oracle=lambda weights, cache, batch, bandwidth: batch * bandwidth / (weights + batch * cache),
        mistakes={
            "You read the weights once for each sequence: the whole batch shares one reading.": (
                lambda weights, cache, batch, bandwidth: batch * bandwidth / (batch * (weights + cache))
            ),
            "You read one cache: each sequence of the batch has its own.": lambda weights, cache, batch, bandwidth: (
                batch * bandwidth / (weights + cache)
            ),
            "You forgot the cache.": lambda weights, cache, batch, bandwidth: batch * bandwidth / weights,
            "You forgot the weights: each step reads all of them.": lambda weights, cache, batch, bandwidth: (
                bandwidth / cache
            ),
            "That is the rate of one sequence: a step gives a token to each sequence of the batch.": (
                lambda weights, cache, batch, bandwidth: bandwidth / (weights + batch * cache)
            ),
            "That is the time of a step in seconds; the question asks for tokens per second.": (
                lambda weights, cache, batch, bandwidth: (weights + batch * cache) / bandwidth
            ),
        },
        hint="A step reads the weights once and every sequence's cache, and gives one token to each sequence.",
    )
)

_add(
    Exercise(
        "faster_machine",
        oracle=lambda: ("A100", "L40S", 1555e9 / 864e9),
        mistakes={
            "You compared FLOP/s for both: at batch 1 the intensity is about 1, and bandwidth decides.": lambda: (
                "L40S",
                "L40S",
                366.5e12 / 312e12,
            ),
            "You compared bandwidth for both: prefill is far above both ridges, and FLOP/s decide.": lambda: (
                "A100",
                "A100",
                1555e9 / 864e9,
            ),
            "You have it the wrong way round: which of the two is limited by memory, decoding or prefill?": lambda: (
                "L40S",
                "A100",
                1555e9 / 864e9,
            ),
            "The machines are right; the factor is the ratio of the bandwidths, the larger over the smaller.": lambda: (
                "A100",
                "L40S",
                864e9 / 1555e9,
            ),
            "The machines are right, but that is the ratio of FLOP/s: decoding at batch 1 is bound by memory.": (
                lambda: ("A100", "L40S", 366.5e12 / 312e12)
            ),
        },
        hint="Which of the two times decides at batch 1, and which at 4096 tokens? Compare the machines by that one.",
        tolerance=0.01,
    )
)


def _integers(*shape: int) -> torch.Tensor:
    """Small whole numbers: their sums and products are exact in whatever order they are formed."""
    return (torch.arange(math.prod(shape)) * 7 % 11 - 5).float().reshape(shape)


_add(
    Exercise(
        "last_logits",
        cases=((_integers(8, 16), _integers(48, 16)), (_integers(32, 4), _integers(100, 4))),
        oracle=lambda hidden, weight: hidden[-1] @ weight.T,
        mistakes={
            "You throw the other rows away after the matmul has written them: select the token first.": (
                lambda hidden, weight: (hidden @ weight.T)[-1]
            ),
            "Something as large as the weight goes to memory and back: @ stores no products.": lambda hidden, weight: (
                hidden[-1] * weight
            ).sum(-1),
            "You copy the row first: a view of it is enough.": lambda hidden, weight: hidden[-1].clone() @ weight.T,
            "You kept a dimension of size 1: index with -1, not with -1:.": lambda hidden, weight: (
                hidden[-1:] @ weight.T
            ),
            "That is the first token: index -1 is the last.": lambda hidden, weight: hidden[0] @ weight.T,
        },
        hint="Of hidden, only one row matters. Select it before the matmul; a row is a view and moves nothing.",
        cost="bytes_eager",
    )
)


def _momentum_step(w: Any, g: Any, m: Any, beta: float, rate: float) -> tuple[torch.Tensor, torch.Tensor]:
    m = torch.add(g, m, alpha=beta)
    return torch.add(w, m, alpha=-rate), m


def _plain_momentum_step(w: Any, g: Any, m: Any, beta: float, rate: float) -> tuple[torch.Tensor, torch.Tensor]:
    m = beta * m + g
    return w - rate * m, m


def _half_plain_momentum_step(w: Any, m: Any, rate: float) -> tuple[torch.Tensor, torch.Tensor]:
    return w - rate * m, m


_add(
    Exercise(
        "momentum_step",
        cases=(
            (_integers(64), _integers(64).flip(0), _integers(64) + 3, 0.5, 0.25),
            (_integers(8, 8), _integers(8, 8) * 2, _integers(8, 8) - 1, 0.25, 0.125),
        ),
        oracle=_momentum_step,
        mistakes={
            "Each multiplication goes to memory and back, in place or not: torch.add(…, alpha=…) does it on the way.": (
                _plain_momentum_step
            ),
            "One multiplication still goes to memory and back: torch.add(…, alpha=…) does both of them on the way.": (
                lambda w, g, m, beta, rate: _half_plain_momentum_step(w, torch.add(g, m, alpha=beta), rate)
            ),
            "You step along the old momentum: update it first.": lambda w, g, m, beta, rate: (
                w - rate * m,
                beta * m + g,
            ),
            "You step along the gradient: the momentum is what moves the weight.": lambda w, g, m, beta, rate: (
                w - rate * g,
                beta * m + g,
            ),
            "You step uphill: the weight moves against the momentum.": lambda w, g, m, beta, rate: _plain_momentum_step(
                w, g, m, beta, -rate
            ),
            "Return the weight first, then the momentum.": lambda w, g, m, beta, rate: _plain_momentum_step(
                w, g, m, beta, rate
            )[::-1],
        },
        hint="With alpha, torch.add(a, b, alpha=c) is a + c·b in one op. Two such ops are all that you need.",
        cost="bytes_eager",
    )
)


# --- 06 Roofline plots ---------------------------------------------------------------------------------------------

_add(
    Exercise(
        "read_roofline",
        oracle=lambda: (50.0, 20e12, 100e12),
        mistakes={
            "The ridge is upside down: it is peak over bandwidth, in FLOP per byte.": lambda: (0.02, 20e12, 100e12),
            "At 10 FLOP/B you are left of the ridge: there it is bandwidth × intensity, not the peak.": lambda: (
                50.0,
                100e12,
                100e12,
            ),
            "At 200 FLOP/B you are right of the ridge: no op goes beyond the peak.": lambda: (50.0, 20e12, 400e12),
            "At 10 FLOP/B you divided the bandwidth by the intensity: multiply them.": lambda: (50.0, 2e11, 100e12),
            "The axis is logarithmic: the middle between 10 and 100 is about 32, not 55.": lambda: (
                55.0,
                20e12,
                100e12,
            ),
        },
        hint="The ridge is where the slanted part meets the flat one. Left of it, FLOP/s = byte/s × FLOP/byte.",
        tolerance=0.02,
    )
)

_add(
    Exercise(
        "which_upgrade",
        oracle=lambda: ("bandwidth", "peak", "bandwidth", "neither"),
        mistakes={
            "A ReLU does a quarter of a FLOP per byte: its arithmetic waits for its bytes.": lambda: (
                "peak",
                "peak",
                "bandwidth",
                "neither",
            ),
            "A large matmul does 1365 FLOP per byte, far right of the ridge of 295.": lambda: (
                "bandwidth",
                "bandwidth",
                "bandwidth",
                "neither",
            ),
            "With a batch of 8 each weight is used 8 times: about 8 FLOP per byte, left of the ridge.": lambda: (
                "bandwidth",
                "peak",
                "peak",
                "neither",
            ),
            "The tiny op takes a thousand times as long as its bytes or its FLOPs: it waits for the launch.": lambda: (
                "bandwidth",
                "peak",
                "bandwidth",
                "bandwidth",
            ),
        },
        hint="Compare each intensity with 295. Then compare the time given with what the bytes take.",
    )
)


def _bottleneck(
    flops: float, nbytes: float, seconds: float, peak: float, bandwidth: float, half: float = 0.5, above: bool = True
) -> str:
    times = flops / peak, nbytes / bandwidth
    if above and seconds < max(times):
        return "impossible"
    if max(times) < half * seconds:
        return "neither"
    return "memory" if times[1] > times[0] else "compute"


_POINTS = (
    (2**20, 2**22, 1.5e-6, 989e12, 3.35e12),
    (2**20, 2**22, 9e-6, 989e12, 3.35e12),
    (2 * 4096**3, 6 * 4096**2, 1.8e-4, 989e12, 3.35e12),
    (2 * 4096**3, 6 * 4096**2, 1e-4, 989e12, 3.35e12),
    (2 * 4096**3, 6 * 4096**2, 1e-3, 989e12, 3.35e12),
    (2e9, 2e8, 1.9e-2, 150e9, 30e9),
    (1e9, 8e8, 2.9e-2, 150e9, 30e9),
    (1000, 8000, 2e-6, 150e9, 30e9),
)

_add(
    Exercise(
        "bottleneck",
        cases=_POINTS,
        oracle=_bottleneck,
        mistakes={
            "A point above the roof is impossible: look for the mistake before you name a bottleneck.": (
                lambda f, b, s, p, w: _bottleneck(f, b, s, p, w, above=False)
            ),
            "A point far below the roof waits for neither: it reaches less than half of what is attainable.": (
                lambda f, b, s, p, w: _bottleneck(f, b, s, p, w, half=0)
            ),
            "You swapped the two: the larger time is the bottleneck.": lambda f, b, s, p, w: {
                "memory": "compute",
                "compute": "memory",
            }.get(_bottleneck(f, b, s, p, w), _bottleneck(f, b, s, p, w)),
            "You compared with the peak instead of the roof: left of the ridge less is attainable.": (
                lambda f, b, s, p, w: (
                    "impossible"
                    if s < f / p
                    else "neither"
                    if f / p < s / 2
                    else "memory"
                    if b / w > f / p
                    else "compute"
                )
            ),
        },
        hint="Compute both times. The larger one is what the roof allows: compare the measured seconds with it.",
    )
)


def _layer_seconds(
    batch: int, d: int, f: int, peak: float, bandwidth: float, flop: int = 2, item: int = 2, parts: str = "xwy"
) -> tuple[float, float]:
    numbers = {"x": batch * d, "w": d * f, "y": batch * f}
    return flop * batch * d * f / peak, item * sum(numbers[part] for part in parts) / bandwidth


_add(
    Exercise(
        "layer_seconds",
        cases=tuple(
            (batch, 4096, 16384, peak, bandwidth)
            for batch in (1, 512)
            for peak, bandwidth in ((312e12, 2.039e12), (989.5e12, 3.35e12), (150e9, 30e9))
        ),
        oracle=lambda *a: max(_layer_seconds(*a)),
        mistakes={
            "You added the two times: that is the upper bound, if nothing overlaps. At best the larger one is all.": (
                lambda *a: sum(_layer_seconds(*a))
            ),
            "You took the smaller of the two times: the op is done when both are.": lambda *a: min(_layer_seconds(*a)),
            "A multiply-accumulate is two FLOP: you counted each as one.": lambda *a: max(_layer_seconds(*a, flop=1)),
            "You took 4 byte per number: bfloat16 has 2.": lambda *a: max(_layer_seconds(*a, item=4)),
            "Those are bits: bandwidth is in bytes.": lambda *a: max(_layer_seconds(*a, item=16)),
            "You forgot the write: the output has B × F numbers.": lambda *a: max(_layer_seconds(*a, parts="xw")),
            "You forgot to read the input: it has B × D numbers.": lambda *a: max(_layer_seconds(*a, parts="wy")),
            "That is the arithmetic, without the weights that must be read: a batch of 1 waits for them.": lambda *a: (
                _layer_seconds(*a)[0]
            ),
        },
        hint="FLOPs 2·B·D·F; bytes 2·(B·D + D·F + B·F). Divide each by its rate. Which of the two times counts?",
        tolerance=1e-5,
    )
)

_add(
    Exercise(
        "above_the_roof",
        oracle=lambda: ("cache", "clock", "dtype", "count"),
        mistakes={
            "Case a: 1 MB stays in the cache from one run to the next. Its roof is that of the cache.": (
                lambda: ("count", "clock", "dtype", "count")
            ),
            "Case b: 20 µs is what a launch takes. The clock stopped before the work was done.": (
                lambda: ("cache", "cache", "dtype", "count")
            ),
            "Case c: 67 TFLOP/s is the float32 rate of the vector unit; with tfloat32 the matrix unit did it.": (
                lambda: ("cache", "clock", "count", "count")
            ),
            "Case d: 6 FLOP per parameter and token are forward and backward. The forward pass has 2.": (
                lambda: ("cache", "clock", "dtype", "clock")
            ),
        },
        hint="A rate is amount over time, and a roof belongs to a unit and a memory. Which of the four is wrong here?",
    )
)


def _distances(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a * a).sum(1, keepdim=True) - 2 * (a @ b.T) + (b * b).sum(1)


def _whole(rows: int, cols: int, dim: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Two tensors of small whole numbers, so that every way to sum them gives the same result."""
    both = torch.arange((rows + cols) * dim).view(-1, dim)
    return tuple(((both * 7 + both // 5) % 9 - 4).float().split((rows, cols)))


_add(
    Exercise(
        "distances",
        cases=(_whole(40, 60, 32), _whole(64, 64, 128), _whole(1, 50, 16)),
        oracle=_distances,
        mistakes={
            "It still makes every difference, n × m × d numbers, and stores them: expand the square first.": (
                lambda a, b: ((a[:, None] - b[None]) ** 2).sum(-1)
            ),
            "One row at a time is a smaller tensor, and moves as many bytes in all: use a matmul.": lambda a, b: (
                torch.stack([((row - b) ** 2).sum(-1) for row in a])
            ),
            "The middle term is −2·a·b: you left out the 2.": lambda a, b: (
                (a * a).sum(1, keepdim=True) - a @ b.T + (b * b).sum(1)
            ),
            "The middle term is −2·a·b: yours has a plus.": lambda a, b: (
                (a * a).sum(1, keepdim=True) + 2 * (a @ b.T) + (b * b).sum(1)
            ),
            "Those are the distances: the question asks for their squares.": lambda a, b: _distances(a, b).sqrt(),
            "That is the matmul alone: add the squares of both.": lambda a, b: -2 * (a @ b.T),
        },
        hint="Expand the square: |a − b|² = |a|² − 2·a·b + |b|². All products a·b at once are one matmul, a @ b.T.",
        tolerance=1e-4,
        cost="bytes_eager",
    )
)


# --- 07 Transformer budget -----------------------------------------------------------------------------------------


def _activations(block: int = 16, itemsize: int = 4, depth: bool = True) -> Callable[..., int]:
    def nbytes(layers: int, width: int, batch: int, tokens: int) -> int:
        return (layers if depth else 1) * block * batch * tokens * width * itemsize

    return nbytes


_add(
    Exercise(
        "layer_activations",
        cases=((12, 768, 8, 1024), (2, 128, 4, 64), (96, 12288, 1, 2048)),
        oracle=_activations(),
        mistakes={
            "That is one layer: each keeps its own.": _activations(depth=False),
            "You counted the inside of the MLP once: the 4D numbers before the GELU are kept, and those after it.": (
                _activations(12)
            ),
            "You left out queries, keys and values: 3D numbers for each token.": _activations(13),
            "Those are numbers, not bytes: float32 has 4 byte.": _activations(itemsize=1),
            "The question asks for float32, which has 4 byte; you took 2.": _activations(itemsize=2),
            "That is for one text: multiply by the batch.": lambda layers, width, batch, tokens: _activations()(
                layers, width, 1, tokens
            ),
        },
        hint="Kept are 16 numbers per token and unit of width, in each layer: norms 2 + 2, attention 3 + 1, MLP 4 + 4.",
    )
)


def _step_memory(states: int = 16, keep: int = 16, logits: bool = True) -> Callable[..., float]:
    def nbytes(parameters: float, layers: int, width: int, vocabulary: int, batch: int, tokens: int) -> float:
        kept = keep * layers * width + (vocabulary if logits else 0)
        return states * parameters + 4 * batch * tokens * kept

    return nbytes


_add(
    Exercise(
        "step_memory",
        cases=((124e6, 12, 768, 50257, 8, 1024), (410_240, 2, 128, 64, 8, 64), (1e9, 24, 2048, 32000, 2, 512)),
        oracle=_step_memory(),
        mistakes={
            "You forgot the optimizer: AdamW keeps two moments, 8 byte per parameter.": _step_memory(8),
            "You took 12 byte per parameter: weight, gradient and two moments are four numbers.": (_step_memory(12)),
            "You forgot weights, gradients and moments: 16 byte per parameter.": _step_memory(0),
            "You forgot the activations.": _step_memory(keep=0),
            "You forgot the logits: a number for each token and each entry of the vocabulary.": _step_memory(
                logits=False
            ),
        },
        hint="States: 16 byte per parameter. Kept for each token: 4 · (16 · layers · width + vocabulary) byte.",
    )
)


def _largest_batch(rounded: Callable[[float], float] = math.floor, states: int = 16) -> Callable[..., float]:
    def batch(memory: float, devices: int, parameters: float, per_text: float) -> float:
        room = memory - states * parameters / devices
        return max(rounded(room / per_text), 0)

    return batch


_add(
    Exercise(
        "largest_batch",
        cases=((80e9, 8, 8e9, 9.1e9), (80e9, 64, 70e9, 5.5e9), (24e9, 1, 1.3e9, 0.9e9), (80e9, 1, 8e9, 9.1e9)),
        oracle=_largest_batch(),
        mistakes={
            "One text more than that fits: round down.": _largest_batch(math.ceil),
            "A batch is a whole number: round down.": _largest_batch(float),
            "You forgot the states: 16 byte per parameter, shared by the devices.": _largest_batch(states=0),
            "You took 2 byte per parameter, the weights alone: gradients and optimizer need their place, too.": (
                _largest_batch(states=2)
            ),
            "You put all the states on each device: here they are shared.": lambda memory, devices, parameters, each: (
                max(math.floor((memory - 16 * parameters) / each), 0)
            ),
            "Nothing fits when the states alone are too large: return 0, not a negative number.": (
                lambda memory, devices, parameters, each: math.floor((memory - 16 * parameters / devices) / each)
            ),
        },
        hint="Take the device's share of the states, 16 · parameters / devices, from its memory. How many texts fit?",
    )
)

_OFFERS = {  # name: (dense bfloat16 FLOP/s, made-up price of an hour in dollars)
    "T4": (65e12, 0.35),
    "L40S": (366.5e12, 1.0),
    "H100": (989.5e12, 3.0),
}


def _cheapest(work: float, days: float, mfu: float, most: float = 1024, by: str = "price") -> str | None:
    found = {}
    for name, (peak, price) in _OFFERS.items():
        hours = work / (peak * mfu) / 3600
        devices = math.ceil(hours / (24 * days))
        if devices <= most:
            found[name] = {"price": hours * price, "hour": price, "devices": devices}[by]
    return min(found, key=found.get) if found else None


_add(
    Exercise(
        "cheapest_machine",
        cases=(
            (2e22, 60, 0.4, 1024),
            (1.6e24, 90, 0.4, 1024),
            (6.3e24, 120, 0.5, 2048),
            (2e23, 4, 0.4, 1024),
            (1e25, 10, 0.5, 64),
        ),
        oracle=lambda work, days, mfu, most: _cheapest(work, days, mfu, most) or "none",
        mistakes={
            "You did not look at the deadline: some need more devices than there are.": lambda work, days, mfu, most: (
                _cheapest(work, days, mfu, math.inf)
            ),
            "You took the lowest price of an hour: a slower device needs more hours.": lambda work, days, mfu, most: (
                _cheapest(work, days, mfu, most, "hour") or "none"
            ),
            "You took the fewest devices: the question is what they cost.": lambda work, days, mfu, most: (
                _cheapest(work, days, mfu, most, "devices") or "none"
            ),
            'Where no offer meets the deadline, say "none".': lambda work, days, mfu, most: (
                _cheapest(work, days, mfu, most) or "H100"
            ),
        },
        hint="Device-hours are work / (peak · MFU) / 3600; devices are hours / (24 · days), rounded up.",
    )
)


def _affordable(flop: float = 6, mfu: bool = True, hours: float = 3600, days: float = 1) -> Callable[..., float]:
    def parameters(devices: int, days_: float, peak: float, share: float, tokens_each: float) -> float:
        work = devices * days_ * 24 * hours * peak * (share if mfu else 1) * days
        return math.sqrt(work / (flop * tokens_each))

    return parameters


_add(
    Exercise(
        "affordable_model",
        cases=((64, 30, 989.5e12, 0.4, 20), (8, 14, 989.5e12, 0.5, 200), (1, 1, 312e12, 0.3, 20)),
        oracle=_affordable(),
        mistakes={
            "You left out the MFU: nobody gets the peak.": _affordable(mfu=False),
            "Training takes 6 FLOP per parameter and token; 2 is the forward pass alone.": _affordable(2),
            "An hour has 3600 seconds.": _affordable(hours=60),
            "Tokens grow with the parameters, so the work is 6 · 20 · N²: take a square root.": (
                lambda devices, days, peak, mfu, tokens_each: devices * days * 86400 * peak * mfu / (6 * tokens_each)
            ),
            "That is the number of tokens; the question asks for parameters.": (
                lambda devices, days, peak, mfu, tokens_each: (
                    tokens_each * math.sqrt(devices * days * 86400 * peak * mfu / (6 * tokens_each))
                )
            ),
        },
        hint="Work = devices · seconds · peak · MFU, and work = 6 · N · D with D = tokens_each · N. Solve for N.",
    )
)


def _served(weights: float = 1, cache: int = 1, rounded: Callable[[float], float] = math.floor) -> Callable[..., float]:
    def users(memory: float, parameters: float, itemsize: int, per_token: float, tokens: int) -> float:
        room = memory - weights * parameters * itemsize
        return rounded(room / (per_token * (tokens if cache else 1)))

    return users


_add(
    Exercise(
        "users_served",
        cases=((8 * 80e9, 70e9, 2, 327_680, 4096), (4 * 80e9, 70e9, 1, 163_840, 8192), (24e9, 8e9, 1, 65_536, 2048)),
        oracle=_served(),
        mistakes={
            "You forgot the weights: they need their place first.": _served(weights=0),
            "You counted the cache of one token: each user has one for every token.": _served(cache=0),
            "One user more than that fits: round down.": _served(rounded=math.ceil),
            "Users are whole: round down.": _served(rounded=float),
            "That is the cache of a user with a single number per token: multiply, do not divide, by tokens.": (
                lambda memory, parameters, itemsize, per_token, tokens: math.floor(
                    (memory - parameters * itemsize) / per_token * tokens
                )
            ),
        },
        hint="First the weights, parameters · itemsize. What is left holds per_token · tokens for each user.",
    )
)

_PER_TOKEN = 2 * 80 * 8 * 128 * 2  # byte of cache: Llama 3 70B in bfloat16

_add(
    Exercise(
        "gpu_years",
        oracle=lambda: 3.14e23 / 125e12 / (365.25 * 24 * 3600),
        mistakes={
            "That is the claim itself: 28 TFLOP/s is not what the matrix unit of a V100 reaches.": lambda: (
                3.14e23 / 28e12 / (365.25 * 24 * 3600)
            ),
            "You took the vector unit in float32, 15.7 TFLOP/s; matmuls in float16 run on the matrix unit.": lambda: (
                3.14e23 / 15.7e12 / (365.25 * 24 * 3600)
            ),
            "That is an A100. The claim is about a V100.": lambda: 3.14e23 / 312e12 / (365.25 * 24 * 3600),
            "Those are days; the question asks for years.": lambda: 3.14e23 / 125e12 / (24 * 3600),
            "Those are hours; the question asks for years.": lambda: 3.14e23 / 125e12 / 3600,
        },
        hint='The dense float16 rate of a "NVIDIA V100 SXM2 16GB" is in specs; 3.14e23 FLOP over it are seconds.',
        tolerance=0.01,
    )
)

_add(
    Exercise(
        "requests_that_fit",
        oracle=lambda: math.floor((80e9 - 35e9) / (_PER_TOKEN * 4096)),
        mistakes={
            "That is the page's own count: check its cache of 160 MB for 4096 tokens.": lambda: 45e9 // 160e6,
            "That is the printed number: check the page's cache of 160 MB for 4096 tokens.": lambda: 280,
            "That is what 160 MiB give: the page's cache is still a factor of 8 too small.": lambda: (
                45e9 // (160 * 2**20)
            ),
            "You counted keys or values: the cache holds both.": lambda: 45e9 // (_PER_TOKEN / 2 * 4096),
            "You gave all 80 GB to the caches: the weights take 35 GB.": lambda: 80e9 // (_PER_TOKEN * 4096),
            "You took 64 heads: the cache has 8, each shared by 8 query heads.": lambda: (
                45e9 // (8 * _PER_TOKEN * 4096)
            ),
            "Requests are whole: round down.": lambda: 45e9 / (_PER_TOKEN * 4096),
        },
        hint="Per token: keys and values, 80 layers, 8 heads of 128 numbers, 2 byte. Times 4096 tokens.",
    )
)

_add(
    Exercise(
        "long_cache",
        oracle=lambda: _PER_TOKEN * 131_072 / 1e9,
        mistakes={
            "That is the claim again: 8192 numbers for each token are 64 heads, and the cache has 8.": lambda: (
                8 * _PER_TOKEN * 131_072 / 1e9
            ),
            "That is the printed number: it counts 64 heads for each token, and the cache has 8.": lambda: 340.0,
            "You counted keys or values: the cache holds both.": lambda: _PER_TOKEN * 131_072 / 2e9,
            "That is in GiB; the question asks for GB.": lambda: _PER_TOKEN * 131_072 / 2**30,
            "That is a number of bytes; the question asks for GB.": lambda: _PER_TOKEN * 131_072,
        },
        hint="Multiply 2 · layers · key-value heads · head size · tokens · 2 byte, with 8 such heads of 128 numbers.",
        tolerance=0.01,
    )
)

_add(
    Exercise(
        "same_compute",
        oracle=lambda: 70e9 * 1.4e12 / (280e9 * 300e9),
        mistakes={
            "That is the claim: exactly 4 times the data on a quarter of the parameters. How many tokens were it?": (
                lambda: 1
            ),
            "That is Gopher over Chinchilla; the question asks for Chinchilla over Gopher.": lambda: (
                280e9 * 300e9 / (70e9 * 1.4e12)
            ),
            "That is the ratio of the tokens; multiply by that of the parameters.": lambda: 1.4e12 / 300e9,
            "That is the ratio of the parameters; multiply by that of the tokens.": lambda: 70e9 / 280e9,
        },
        hint="Compute 6 · N · D for both, and the ratio: 70e9 and 1.4e12 against 280e9 and 300e9.",
        tolerance=0.01,
    )
)

_SCORES = 12 * 96 * 12288 * 2048 / (6 * 175e9)  # of GPT-3: attention over all else

_add(
    Exercise(
        "gpt3_mfu",
        oracle=lambda: 24.6e12 * (1 + _SCORES) / 125e12,
        mistakes={
            "That is what the table prints, and what 12 · L · D · T gives three times over; once is enough.": lambda: (
                0.213
            ),
            "You left out attention: 24.6 TFLOP/s are without it.": lambda: 24.6 / 125,
            "You took an A100; GPT-3 was trained on V100.": lambda: 24.6 / 312 * (1 + _SCORES),
            "You took the vector unit of a V100, 15.7 TFLOP/s; above 1 means a wrong denominator.": lambda: (
                24.6 / 15.7 * (1 + _SCORES)
            ),
        },
        hint="Take 24.6 TFLOP/s times (6N + 12·L·D·T) / 6N, over the 125 TFLOP/s of a V100. N = 175e9, T = 2048.",
        tolerance=0.002,
    )
)
