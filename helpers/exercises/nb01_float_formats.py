"""The exercises of notebook 01."""

import math

import torch

from helpers.exercises.exercise import function, part, parts, value

# fmt: off

value("decode_pattern", -5.0, [
    (-1.0, "You forgot the hidden 1: the significand is 1.fraction, not 0.fraction."),
    (5.0, "The sign bit is 1: the number is negative."),
    (-2.5, "Your bias is 128; with 8 exponent bits it is 2^(8-1) - 1 = 127."),
    (-10.0, "Your bias is 126; with 8 exponent bits it is 2^(8-1) - 1 = 127."),
    (-132.0, "You read the fraction as an integer: it is 32/128, since the field has 7 bits."),
    (-1.25, "You left out the power of two: the exponent field is 129, so multiply by 2^(129 - 127)."),
    (0b1_10000001_0100000,
     "That is the pattern as an unsigned integer: cut it into sign, exponent and fraction first."),
])

_IEEE_CASES = ((5, 10), (8, 7), (8, 23), (5, 2), (4, 3))
function("largest_finite",
    lambda e, f: (2 - 2.0**-f) * 2.0 ** (2 ** (e - 1) - 1), [
    (lambda e, f: ((2 - 2.0**-f) * 2.0 ** (2 ** (e - 1))),
     "Twice the right power: the exponent of all ones is reserved, and the bias is 2^(E−1) − 1."),
    (lambda e, f: (2.0 ** (2 ** (e - 1) - 1)),
     "You forgot the fraction: with all its bits set the significand is almost 2."),
    (lambda e, f: 2.0 ** (2 ** (e - 1)), "You took the significand for exactly 2: it is 2 − 2^(−fraction bits)."),
    (lambda e, f: ((1 - 2.0**-f) * 2.0 ** (2 ** (e - 1) - 1)),
     "You forgot the hidden 1: the significand is 1.111…, not 0.111…."),
    (lambda e, f: 2 ** (e - 1) - 1, "That is the largest power of two, in the exponent: raise 2 to it."),
    ], cases=_IEEE_CASES)

_FORMATS = ("float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn_x2")
_TOO_LARGE = "It would do, but it has 4 bytes, and the budget is 2."
parts("choose_format",
    a=part("bfloat16", [
        ("float32", _TOO_LARGE),
        ("float16", "float16 ends at 65504: 10^38 needs more exponent bits."),
    ], words=_FORMATS),
    b=part("float16", [
        ("float32", _TOO_LARGE),
        ("bfloat16", "bfloat16 near 1 is spaced 2^-7 = 0.0078: 1.001 rounds to 1."),
    ], words=_FORMATS),
    c=part("float8_e4m3fn", [
        ("float8_e5m2", "It holds 400, too, but with two fraction bits; another one-byte format has three."),
    ], words=_FORMATS),
    d=part("float8_e5m2", [
        ("float8_e4m3fn", "E4M3 ends at 448."),
    ], words=_FORMATS))

function("gap",
    lambda value, f: 2.0 ** (math.frexp(value)[1] - 1 - f), [
    (lambda v, f: 2.0**-f, "That is the gap at 1, whatever the value: the gap doubles at every power of two."),
    (lambda v, f: (v * 2.0**-f),
     "You multiplied the value itself by eps: between two powers of two the gap stays the same."),
    (lambda v, f: 2.0 ** (math.floor(math.log2(v)) - f - 1), "That is half the gap, the largest rounding error."),
    (lambda v, f: (2.0 ** (round(math.log2(v)) - f)),
     "You rounded log2 to the nearest: take the power of two at or below the value."),
    (lambda v, f: (2.0 ** (math.ceil(math.log2(v)) - f)),
     "You rounded log2 up: take the power of two at or below the value."),
    (lambda v, f: (2.0 ** (int(math.log2(v)) - f)),
     "Python's int() rounds towards zero, which is up for values below 1: use math.floor."),
    (lambda v, f: (2.0 ** (math.floor(math.log2(v)) + 1 - f)),
     "You took the power of two above the value: take the one at or below it."),
    ], cases=[(1.0, 7), (1.0, 10), (256.0, 7), (1000.0, 10), (0.75, 7), (1.25, 7), (3e-3, 23)])

function("checkpoint",
    lambda n, bits: (n * bits / 8 / 1e9, n * bits / 8 / 2**30), [
    (lambda n, bits: (n * bits / 1e9, n * bits / 2**30), "You forgot to go from bits to bytes: a byte has 8 bits."),
    (lambda n, bits: (n * bits / 8 / 2**30,) * 2, "You used 2^30 for GB: GB is 10^9 byte, GiB is 2^30."),
    (lambda n, bits: (n * bits / 8 / 1e9,) * 2, "You used 10^9 for GiB: GB is 10^9 byte, GiB is 2^30."),
    (lambda n, bits: (n * bits / 8 / 2**30, n * bits / 8 / 1e9), "You swapped the two: return GB first, then GiB."),
    (lambda n, bits: (n / 1e9, n / 2**30), "You counted one byte per parameter, whatever the format."),
    (lambda n, bits: (n * bits / 8,) * 2, "Those are bytes: divide by 10^9 for GB and by 2^30 for GiB."),
    ], cases=[(7_000_000_000, 16), (124_337_664, 32), (70_000_000_000, 8), (175_000_000_000, 4)], tolerance=0.001)

function("first_missing_integer",
    lambda f: 2 ** (f + 1) + 1, [
    (lambda f: (2 ** (f + 1)),
     "That one is still there: it is a power of two, and its fraction is 0. The next one is not."),
    (lambda f: 2**f + 1, "You forgot the hidden 1: with it a number has fraction_bits + 1 significant bits."),
    (lambda f: 2 ** (f + 1) - 1,
     "That one is still there, and so is the next: every integer up to a power of two exists."),
    (lambda f: (2 ** (f + 1) + 2),
     "Above 2^(f+1) the gap is 2, so even numbers still exist: look for the first odd one."),
    ], cases=[(7,), (10,), (23,), (3,), (2,)])


def _running_sum(values: torch.Tensor, accumulator: torch.dtype, result: torch.dtype) -> torch.Tensor:
    total = torch.zeros((), dtype=accumulator)
    for element in values:
        total = total + element.to(accumulator)
    return total.to(result)


function("stable_sum",
    lambda values: values.double().sum().to(values.dtype), [
    (lambda values: _running_sum(values, values.dtype, values.dtype),
     "The accumulator still has the dtype of the values, so the sum stops growing."),
    (lambda values: _running_sum(values, values.dtype, torch.float32),
     "You changed the dtype after the loop: by then the small terms are gone. Change the accumulator."),
    (lambda values: (values.float().sum()),
     "The sum is right, but its dtype is float32: return it in the dtype of the values."),
    (lambda values: (values.double().sum()),
     "The sum is right, but its dtype is float64: return it in the dtype of the values."),
    ],
    cases=[
        (torch.ones(1000, dtype=torch.bfloat16),), (torch.full((2000,), 0.01, dtype=torch.bfloat16),),
        (torch.full((5000,), 1.0, dtype=torch.float16),), (torch.linspace(0, 1, 3001).to(torch.bfloat16),),
    ],
    tolerance=0.01)

def _loss_scale(gradients: torch.Tensor, limit: float = 65504.0) -> float:
    return 2.0 ** math.floor(math.log2(limit / gradients.abs().max().item()))


function("loss_scale",
    _loss_scale, [
    (lambda g: (2.0 ** math.floor(math.log2(65504 / g.max().item()))),
     "You looked at the largest gradient with its sign: a large negative one overflows too."),
    (lambda g: (2.0 ** math.floor(math.log2(65504 / g.abs().min().item()))),
     "You looked at the smallest gradient: it is the largest that overflows first."),
    (lambda g: (2 * _loss_scale(g)),
     "Twice too large: the largest gradient becomes infinity. Round the exponent down."),
    (lambda g: _loss_scale(g, 65536.0), "float16 ends at 65504, not at 65536: 65536 / 1.9999 allows a power too many."),
    (lambda g: (2.0 ** round(math.log2(65504 / g.abs().max().item()))),
     "You rounded log2 to the nearest: rounded up, the largest gradient becomes infinity."),
    (lambda g: math.floor(math.log2(65504 / g.abs().max().item())), "That is the exponent: raise 2 to it."),
    (lambda g: 65504 / g.abs().max().item(), "That is no power of two: multiplying by it rounds the gradients."),
    (lambda g: _loss_scale(g, torch.finfo(torch.bfloat16).max),
     "That is bfloat16's or float32's limit; the gradients are stored in float16."),
    ],
    cases=[
        (torch.tensor([1e-8, 2e-5, -3e-4]),), (torch.tensor([5e-9, -0.7, 0.01]),), (torch.tensor([-3.0, 2.0, 1e-7]),),
        (torch.tensor([1e-7, -9e-7]),), (torch.tensor([1.9999]),), (torch.tensor([1e6]),),
    ])

value("training_state", 7e9 * (2 + 2 + 4 + 1 + 1) / 1e9, [
    (63, "AdamW keeps two moments per parameter, the mean and the square; you counted one."),
    (42, "You forgot the float32 master copy of the weights."),
    (56, "You forgot the gradients."),
    (112, "You took the moments for float32: in this recipe each has 8 bits."),
    (84, "You took the gradient for float32: in this recipe it is bfloat16."),
    (14, "That is the weights alone: training also keeps gradients, a master copy and two moments."),
    (560, "That is in bits: divide by 8."),
    (70e9, "That is a number of bytes; the question asks for GB."),
    (70e9 / 2**30, "You used 2^30 for GB: GB is 10^9 byte."),
    ], tolerance=0.001)
