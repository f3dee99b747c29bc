"""The exercises of notebook 01."""

import math

import torch

from helpers.exercises.exercise import add

add(
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

_IEEE_CASES = ((5, 10), (8, 7), (8, 23), (5, 2), (4, 3))
add(
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

add(
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

add(
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

add(
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

add(
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


def _running_sum(values: torch.Tensor, accumulator: torch.dtype, result: torch.dtype) -> torch.Tensor:
    total = torch.zeros((), dtype=accumulator)
    for value in values:
        total = total + value.to(accumulator)
    return total.to(result)


add(
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

add(
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


def _loss_scale(gradients: torch.Tensor, limit: float = 65504.0) -> float:
    return 2.0 ** math.floor(math.log2(limit / gradients.abs().max().item()))


add(
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
