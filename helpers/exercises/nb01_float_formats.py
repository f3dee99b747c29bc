"""The exercises of notebook 01."""

import math
import random
from math import ceil, floor, log2

import torch

from helpers.exercises.exercise import function, part, parts, value

# fmt: off

value("decode_pattern", -5.0, [  # -(1 + 32/128) * 2^(129 - 127)
    (-1.0, "You forgot the hidden 1: the significand is 1.fraction, not 0.fraction."),
    (5.0, "Look at the first bit again: the number is negative."),
    (-2.5, "Your bias is 128; with 8 exponent bits it is 2^(8-1) - 1 = 127."),
    (-10.0, "Your bias is 126; with 8 exponent bits it is 2^(8-1) - 1 = 127."),
    (-132.0, "You read the fraction as an integer: it is 32/128, since the field has 7 bits."),
    (-5.28, "The fraction field is not decimal: 32 stands for 32/128, so the significand is not 1.32."),
    (-1.25, "You left out the power of two: the exponent field minus the bias is the exponent."),
    (-(1.25 * 2.0**129), "You forgot the bias: the exponent is the field minus 127."),
    (0b1_10000001_0100000,
     "That is the pattern as an unsigned integer: cut it into sign, exponent and fraction first."),
], same={
    "answer = -(1 + 32 / 128) * (2 * (129 - 127))": "2 · 2 = 2²",
    "answer = -(1 + 32 / 128) * (129 - 127) ** 2": "2 · 2 = 2²"})

function("largest_finite",
    lambda e, f: (2 - 2.0**-f) * 2.0 ** (2 ** (e - 1) - 1), [
    (lambda e, f: (2 - 2.0**-f) * 2.0 ** (2 ** (e - 1)),
     "Twice the right power: the exponent of all ones is reserved, and the bias is 2^(E−1) − 1."),
    (lambda e, f: 2.0 ** (2 ** (e - 1) - 1),
     "You forgot the fraction: with all its bits set the significand is almost 2."),
    (lambda e, f: 2.0 ** (2 ** (e - 1)), "You took the significand for exactly 2: it is 2 − 2^(−fraction bits)."),
    (lambda e, f: (1 - 2.0**-f) * 2.0 ** (2 ** (e - 1) - 1),
     "You forgot the hidden 1: the significand is 1.111…, not 0.111…."),
    (lambda e, f: (2 - 2.0 ** -(f + 1)) * 2.0 ** (2 ** (e - 1) - 1),
     "You gave the fraction one bit too many: the last of its bits is worth 2^(−fraction bits)."),
    (lambda e, f: (2 - 2.0**-f) * 2.0 ** (2 ** (e - 1) - 2),
     "Half the right power: the largest field that you may use is 2^E − 2, and the bias is 2^(E−1) − 1."),
    (lambda e, f: (2 - 2.0**-f) * 2.0 ** (2**e - 2),
     "You forgot the bias: the exponent is the field minus 2^(E−1) − 1."),
    (lambda e, f: 2 ** (e - 1) - 1, "That is the largest power of two, in the exponent: raise 2 to it."),
    ],
    cases=[(5, 10), (8, 7), (8, 23), (5, 2), (4, 3)], draw=lambda r: (r.randint(3, 9), r.randint(1, 30)),
    same={"return significand * 2.0 ** bias": "2^E − 2 − bias is the bias again"})

_FORMATS = ("float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn_x2")
_FOUR = "It would do, but it has 4 bytes, and the budget is 2."
parts("choose_format",
    a=part("bfloat16", [
        ("float32", _FOUR), ("float16", "float16 ends at 65504: 10^38 needs more exponent bits."),
    ], words=_FORMATS),
    b=part("float16", [
        ("float32", _FOUR), ("bfloat16", "bfloat16 near 1 is spaced 2^-7 = 0.0078: 1.001 rounds to 1."),
    ], words=_FORMATS),
    c=part("float8_e4m3fn", [
        ("float8_e5m2", "It holds 400, too, but with two fraction bits; another one-byte format has three."),
    ], words=_FORMATS),
    d=part("float8_e5m2", [("float8_e4m3fn", "E4M3 ends at 448.")], words=_FORMATS))

function("gap",
    lambda v, f: 2.0 ** (math.frexp(v)[1] - 1 - f), [  # frexp is exact where log2 may round up
    (lambda v, f: 2.0**-f, "That is the gap at 1, whatever the value: the gap doubles at every power of two."),
    (lambda v, f: v * 2.0**-f,
     "You multiplied the value itself by eps: between two powers of two the gap stays the same."),
    (lambda v, f: 2.0 ** (floor(log2(v)) - f - 1), "That is half the gap, the largest rounding error."),
    (lambda v, f: 2.0 ** (round(log2(v)) - f), "You rounded log2 to the nearest: round it down."),
    (lambda v, f: 2.0 ** (ceil(log2(v)) - f), "You rounded log2 up: take the power of two at or below the value."),
    (lambda v, f: 2.0 ** (int(log2(v)) - f),
     "Python's int() rounds towards zero, which is up for values below 1: use math.floor."),
    (lambda v, f: 2.0 ** (floor(log2(v)) + 1 - f), "You took the power of two above the value: take the one below it."),
    (lambda v, f: 2.0 ** floor(log2(v)),
     "That is the power of two below the value; from there on 2^F steps lead to the next."),
    (lambda v, f: 2.0 ** floor(log2(v)) / f, "There are 2^F steps up to the next power of two, not F."),
    ],
    cases=[(1.0, 7), (1.0, 10), (256.0, 7), (1000.0, 10), (0.75, 7), (1.25, 7), (3e-3, 23)],
    draw=lambda r: (r.uniform(1, 1.99) * 2.0 ** r.randint(-14, 15), r.choice((1, 2, 3, 7, 10, 23))))


def _sizes(n: float, bits: float, gb: float = 1e9, gib: float = 2**30) -> tuple[float, float]:
    return n * bits / 8 / gb, n * bits / 8 / gib


function("checkpoint",
    _sizes, [
    (lambda n, bits: _sizes(n, 8 * bits), "You forgot to go from bits to bytes: a byte has 8 bits."),
    (lambda n, bits: _sizes(n, bits, gb=2**30), "You used 2^30 for GB: GB is 10^9 bytes, GiB is 2^30."),
    (lambda n, bits: _sizes(n, bits, gib=1e9), "You used 10^9 for GiB: GB is 10^9 bytes, GiB is 2^30."),
    (lambda n, bits: _sizes(n, bits)[::-1], "You swapped the two: first GB, of 10^9 bytes, then GiB, of 2^30."),
    (lambda n, bits: _sizes(n, 8), "You counted one byte per parameter, whatever the format."),
    (lambda n, bits: _sizes(n, bits, 1, 1), "Those are bytes: divide by 10^9 for GB and by 2^30 for GiB."),
    (lambda n, bits: _sizes(n, bits, 1e6, 2**20), "Those are MB and MiB: GB is 10^9 bytes, GiB is 2^30."),
    (lambda n, bits: _sizes(n, bits, 1e9, 1000 * 2**20), "A GiB is 1024 MiB, not 1000."),
    ],
    cases=[(7_000_000_000, 16), (124_337_664, 32), (3, 4)],
    draw=lambda r: (r.randint(1, 10**6) * 10 ** r.randint(0, 5), r.choice((1, 2, 4, 8, 16, 32, 64))), tolerance=1e-4)

function("first_missing_integer",
    lambda f: 2 ** (f + 1) + 1, [
    (lambda f: 2 ** (f + 1),
     "That one is still there: it is a power of two, and its fraction is 0. The next one is not."),
    (lambda f: 2**f + 1, "You forgot the hidden 1: with it a number has fraction_bits + 1 significant bits."),
    (lambda f: 2**f, "You forgot the hidden 1: with it a number has fraction_bits + 1 significant bits."),
    (lambda f: 2 ** (f + 1) - 1,
     "That one is still there, and so is the next: all integers up to a power of two exist."),
    (lambda f: 2 ** (f + 1) + 2, "Above 2^(f+1) even numbers still exist: look for the first odd one."),
    (lambda f: 2 ** (f + 2) + 1, "You went one power of two too far: where does the gap become 2?"),
    (lambda f: 2.0 ** (f + 1) + 1,
     "The formula is right, and from 52 on a Python float misses it, too: write 2, not 2.0."),
    (lambda f: 2.0 ** (f + 1),
     "That one is still there: it is a power of two, and its fraction is 0. The next one is not."),
    ],
    cases=[(7,), (10,), (23,), (2,), (52,)], draw=lambda r: (r.randint(1, 60),))


def _running_sum(values: torch.Tensor, accumulator: torch.dtype, result: torch.dtype) -> torch.Tensor:
    total = torch.zeros((), dtype=accumulator)
    for element in values:
        total = total + element.to(accumulator)
    return total.to(result)


def _draw_terms(r: random.Random) -> tuple[torch.Tensor]:
    """Multiples of 1/64, so that every order of summation is exact in float32."""
    terms = torch.tensor([r.randint(-40, 127) / 64 for _ in range(r.randint(300, 500))])
    return (terms.to(r.choice((torch.bfloat16, torch.float16))),)


function("stable_sum",
    lambda v: v.double().sum().to(v.dtype), [
    (lambda v: _running_sum(v, v.dtype, v.dtype),
     "The accumulator still has the dtype of the values, so the sum stops growing."),
    (lambda v: _running_sum(v, v.dtype, torch.float32),
     "You changed the dtype after the loop: by then the small terms are gone. Change the accumulator."),
    (lambda v: v.float().sum(), "The sum is right, but its dtype is float32: return it in the dtype of the values."),
    (lambda v: v.double().sum(), "The sum is right, but its dtype is float64: return it in the dtype of the values."),
    (lambda v: v.mean() * len(v), "That rounds twice, the mean and then the product: add in more bits and round once."),
    (lambda v: v.float().sum().round().to(v.dtype),
     "You rounded to a whole number: only the change of dtype may round."),
    (lambda v: v.double().sum().item(), "Return a tensor with one element, in the dtype of the values."),
    ],
    cases=[(torch.ones(1000, dtype=torch.bfloat16),), (torch.full((2000,), 0.01, dtype=torch.bfloat16),),
           (torch.ones(5000, dtype=torch.float16),)],
    draw=_draw_terms, tolerance=0)


def _loss_scale(largest: float | torch.Tensor, limit: float = 65504.0) -> float:
    return 2.0 ** floor(log2(limit / float(largest)))


function("loss_scale",
    lambda g: _loss_scale(g.abs().max()), [
    (lambda g: _loss_scale(g.max()),
     "You looked at the largest gradient with its sign: a large negative one overflows too."),
    (lambda g: _loss_scale(g.abs().min()),
     "You looked at the smallest gradient: it is the largest that overflows first."),
    (lambda g: _loss_scale(g.abs().mean()), "You looked at the mean: it is the largest gradient that overflows first."),
    (lambda g: _loss_scale(g.norm()),
     "The norm adds up all gradients, but each is stored by itself: take the largest."),
    (lambda g: _loss_scale(g.abs().sum()), "Each gradient is stored by itself: take the largest, not the sum."),
    (lambda g: 2 * _loss_scale(g.abs().max()), "Twice too large: the largest gradient becomes infinity."),
    (lambda g: _loss_scale(g.abs().max()) / 2, "Twice as much would still fit: the largest power of two is asked for."),
    (lambda g: _loss_scale(g.abs().max(), 65536.0), "float16 ends at 65504, not at 65536."),
    (lambda g: _loss_scale(g.abs().max(), 65519.99),
     "Up to 65520 a number rounds to 65504, but here none may exceed 65504 before it is rounded."),
    (lambda g: 2.0 ** round(log2(65504 / g.abs().max().item())),
     "You rounded log2 to the nearest: rounded up, the largest gradient becomes infinity."),
    (lambda g: 2.0 ** ceil(log2(65504 / g.abs().max().item())),
     "You rounded log2 up: then the largest gradient becomes infinity."),
    (lambda g: 2.0 ** int(log2(65504 / g.abs().max().item())),
     "Python's int() rounds towards zero, which is up where the scale is below 1: use math.floor."),
    (lambda g: floor(log2(65504 / g.abs().max().item())), "That is the exponent: raise 2 to it."),
    (lambda g: 65504 / g.abs().max().item(), "That is no power of two: multiplying by it rounds the gradients."),
    (lambda g: _loss_scale(g.abs().max(), torch.finfo(torch.bfloat16).max),
     "That is bfloat16's or float32's limit; the gradients are stored in float16."),
    (lambda g: _loss_scale(1 / g.abs().max(), 1 / 65504), "You divided the other way round: 65504 over the gradient."),
    ],
    cases=[(torch.tensor([1e-8, 2e-5, -3e-4]),), (torch.tensor([-3.0, 2.0, 1e-7]),), (torch.tensor([65504.0]),),
           (torch.tensor([65504.5]),), (torch.tensor([65510.0]),), (torch.tensor([1.9999]),),
           (torch.full((100,), 1e-3),)],
    draw=lambda r: (torch.tensor([r.gauss(0, 1) for _ in range(r.randint(2, 9))]) * 10 ** r.uniform(-7, 6),),
    same={"largest = gradients.abs().max()": "a tensor with one element is a number, too"})

value("training_state", 7e9 * (2 + 2 + 4 + 1 + 1) / 1e9, [
    (63, "AdamW keeps two moments per parameter, the mean and the square; you counted one."),
    (42, "You forgot the float32 master copy of the weights."),
    (56, "That is 8 bytes per parameter. Did you count the weight and the gradient, too?"),
    (112, "You took the moments for float32: in this recipe each has 8 bits."),
    (84, "That is 12 bytes per parameter. Which has more than 2 bytes besides the master copy? None in this recipe."),
    (28, "That is 4 bytes per parameter: add the master copy and the moments, or the gradients if you left them out."),
    (14, "That is the weights alone: training also keeps gradients, a master copy and two moments."),
    (168, "You counted 8 bytes for each moment: 8 bits are one byte."),
    (560, "That is in bits: divide by 8."),
    (7e9 * 10 / 2**30, "You used 2^30 for GB: GB is 10^9 bytes."),
    (10, "Those are the bytes of one parameter: there are 7 billion."),
], unit="GB", tolerance=0.001,
    same={"answer = 7000000000.0 * per_parameter // 1000000000.0": "it is a whole number of GB"})
