"""The exercises of notebook 01."""

import math
import random
from collections.abc import Callable
from fractions import Fraction
from math import ceil, floor, log2

import torch

from helpers.exercises.exercise import function, guess, part, parts, value

# fmt: off

guess("float16_run", "In float16 it is still the loss of the first step: nothing has moved.",
    (5.5e-13, "You named the loss of float32."), (0.0, "A loss of 0 would be a perfect fit."),
    (math.nan, "It stays finite, and no error is raised."), (math.inf, "It stays finite, and no error is raised."))
guess("decoded", "−(1 + 1/2) · 2⁻¹, as 126 − 127 = −1.",
    (0.75, "The first bit is the sign."), (-0.25, "You left out the hidden 1."), (-0.5, "The fraction counts, too."),
    (-1.25, "The first fraction bit is worth 1/2."), (-1.5, "126 is one less than the bias."),
    (-0.375, "The bias is 127."), (-3.0, "The power is 2⁻¹, not 2."), (-1.5 * 2.0**126, "Subtract the bias, 127."))
guess("smallest_float16", "One step of the fraction, 1/2¹⁰, times the power of exponent field 1.",
    (2.0**-14, "That is normal; exponent field 0 has no hidden 1."), (2.0**-10, "That step is the one at 1."),
    (2.0**-15, "The power stays 2⁻¹⁴, and there is no hidden 1."), (2.0**-25, "The power stays 2⁻¹⁴."),
    (0.0, "Zero is not positive."))
guess("tie_at_257", "Of two numbers equally near, the one with the even code is taken.",
    *[(grown, "bfloat16 has nothing between 256 and 258.") for grown in (1, 0.5)],
    (2, "At school halves always go up, not here."), (256, "That is the sum: it has not grown at all."),
    (257, "bfloat16 has no 257, and the question is the growth."), (258, "That would be a growth by 2, as at school."))
guess("outlier_in_int8", "All weights of a row share its scale, and so its step, 1/127 of the largest of them.",
    *[(percent, "The step of their row has grown.") for percent in (0, 0.79, 1)],
    (7.9, "Tenfold is typical, but the norm adds up squares: rows whose scale grew more count more."),
    (lambda right: right / 100, "That is a fraction: write it in %."), (100, "Then all of them would be 0."),
    *[(percent, "The outlier grew fiftyfold, but it was hardly ever the largest of its row before.")
      for percent in (39.4, 50)])
guess("bytes_all_bfloat16", "The moments have the dtype of the weight.",
    (12, "You took the moments for float32."), (16, "That is all float32."), (6, "There are two moments."),
    (4, "That is without the moments."), (2, "That is the weight alone."),
    *[(count, "Nothing is float32 here.") for count in (10, 14, 18, 20)])

parts("decode_patterns",
    a=part(-5.0, [  # -(1 + 32/128) * 2^(129 - 127)
        (-1.0, "You forgot the hidden 1: the significand is 1 + fraction/128."),
        (5.0, "Look at the first bit again: the number is negative."),
        (-2.5, "Either your bias is one too large, or you multiplied by 2 instead of by 2^2."),
        (-10.0, "Your bias is 126; with 8 exponent bits it is 2^(8-1) - 1 = 127."),
        (-132.0, "You read the fraction as an integer: it is 32/128, since the field has 7 bits."),
        (-5.28, "The fraction field is not decimal: 32 stands for 32/128, so the significand is not 1.32."),
        *[(wrong, "The fraction is 32/128, a quarter: its field has 7 bits.") for wrong in (-4.5, -4.04)],
        (-1.25, "You left out the power of two: the exponent field minus the bias is the exponent."),
        (-(1.25 * 2.0**129), "You forgot the bias: the exponent is the field minus 127."),
        (-6.0, "0100000 is 32 of 128, which is a quarter: the first fraction bit is worth 1/2, the second 1/4."),
        *[(wrong, "The power is 2^(129 - 127): multiply by 4.") for wrong in (-3.0, -20.0, -40.0)],
        (-4.0, "You left out the fraction, a quarter."),
        (-161.25, "The exponent is that of a power of two: 2^(129 - 127)."),
        (-0.3125, "The exponent is 129 - 127, which is positive."),
        (3 / 8 * 2**-6, "That is the second number; the first one comes first."),
    ]),
    b=part(3 / 8 * 2**-6, [
        ((1 + 3 / 8) * 2**-6, "An exponent field of all zeros has no hidden 1."),
        ((1 + 3 / 8) * 2**-7, "An exponent field of all zeros has no hidden 1, and the power of exponent field 1."),
        (3 / 8 * 2**-7, "The hidden 1 is gone, as it should; but the power stays that of exponent field 1."),
        (3 / 8, "You left out the power of two: it is that of exponent field 1."),
        (1 + 3 / 8, "You left out the power of two; and an exponent field of all zeros has no hidden 1."),
        *[(3 / 8 * 2.0**-power, "The bias of this format is 7, and the power 1 - 7.") for power in (8, 14, 15, 126)],
        *[(wrong, "The fraction is 3/8, the power 2^(1 - 7).") for wrong in (3 * 2**-7, 2**-9)],
        (3 * 2**-6, "You read the fraction as an integer: it is 3/8, since the field has 3 bits."),
        (3 / 8 * 2**6, "The power is 1 minus the bias, which is negative."),
        (3.0, "That is the code as an integer: cut it into sign, exponent and fraction first."),
        (3 / 4 * 2**-6, "The power is 2^(1 - 7), and 011 is 3/8: the last of three bits is worth 1/8."),
        (0.0, "The exponent field is 0, but the fraction is not: the number is subnormal, not zero."),
        *[(rounded, "That is rounded: write all its digits, or a product.")
          for rounded in (0.006, 0.0059, 0.0058, 0.00586, 0.00585, 0.005859)],
        (-5.0, "That is the first number; the second one comes second."),
    ]),
    same={
        "in_bfloat16_it_is = -(1 + 32 / 128) * (2 * (129 - 127))": "2 · 2 = 2²",
        "in_bfloat16_it_is = -(1 + 32 / 128) * (129 - 127) ** 2": "2 · 2 = 2²"})

_FORMATS = ("float64", "float32", "tfloat32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn")
_LONG = ("tfloat32", "A tfloat32 has 19 bits, and is never stored: in memory it takes the 4 bytes of float32.")
_EIGHT = ("float64", "It would do, but it has 8 bytes, and the budget is 2.")
_SMALL = [("float4_e2m1fn", "float4 ends at 6."), ("int8", "It is no float format, and ends at 127."),
          ("float16", "float16 would do, but it has two bytes."), ("bfloat16", "bfloat16 has two bytes."),
          *[(eight, "There are two float8 formats, E4M3 and E5M2: which one?") for eight in ("float8", "fp8")]]
_FOUR = "It would do, but it has 4 bytes, and the budget is 2."
parts("choose_format",
    a=part("bfloat16", [
        ("float32", _FOUR), ("float16", "float16 ends at 65504: 10^38 needs more exponent bits."), _LONG, _EIGHT,
        ("float8_e5m2", "E5M2 has the exponent bits of float16, and ends at 57344."),
    ], words=_FORMATS),
    b=part("float16", [
        ("float32", _FOUR), ("bfloat16", "bfloat16 near 1 is spaced 2^-7 = 0.0078: 1.001 rounds to 1."),
        _LONG, _EIGHT, ("float8_e5m2", "E5M2 near 1 is spaced 1/4: 1.001 rounds to 1."),
        ("float8_e4m3fn", "E4M3 ends at 448, and near 1 it is spaced 1/8."),
    ], words=_FORMATS),
    c=part("float8_e4m3fn", [
        ("float8_e5m2", "It holds 400, too, but with two fraction bits; another one-byte format has three."), *_SMALL,
    ], words=_FORMATS),
    d=part("float8_e5m2", [("float8_e4m3fn", "E4M3 ends at 448."), *_SMALL], words=_FORMATS))

function("first_missing_integer",
    lambda f: 2 ** (f + 1) + 1, [
    *[(lambda f, two=two: two ** (f + 1), "That one is still there: it is a power of two. The next one is not.")
      for two in (2, 2.0)],
    *[(lambda f, more=more: 2**f + more, "The hidden 1 counts: 2 ** (fraction_bits + 1), in brackets.")
      for more in (-1, 0, 1, 2)],
    (lambda f: 2 ** (f + 1) - 1,
     "That one is still there, and so is the next: all integers up to a power of two exist."),
    (lambda f: 2 ** (f + 1) + 2, "Above 2^(f+1) even numbers still exist: look for the first odd one."),
    *[(lambda f, more=more: 2 ** (f + 2) + more, "You went one power of two too far: where does the gap become 2?")
      for more in (-1, 0, 1)],
    (lambda f: 2 ** (f + 1) + 3, "It is missing, but a smaller one is missing, too."),
    (lambda f: 10 ** (f + 1) + 1, "These are binary digits: take a power of 2, not of 10."),
    *[(power, "In Python ^ is not a power (it compares bits): write **.")
      for power in (lambda f: 2 ^ (f + 1) + 1, lambda f: (2 ^ (f + 1)) + 1)],
    (lambda f: 2.0**-f, "That is eps."),
    (lambda f: f + 1, "That is how many significant bits there are. Which integer is the first to need more?"),
    (lambda f: 2 * (f + 1) + 1, "That is 2 times f + 1, plus 1: it takes a power of two."),
    (lambda f: (torch.tensor(2.0) ** (f + 1) + 1).item(),
     "The formula is right, but from 23 on float32 itself misses it: use Python integers."),
    (lambda f: 2.0 ** (f + 1) + 1,
     "The formula is right, and from 52 on a Python float misses it, too: use integers, as in 2 ** n."),
    ],
    cases=[(7,), (10,), (23,), (2,), (52,)], draw=lambda r: (r.randint(1, 60),), tolerance=0)


def _running_sum(values: torch.Tensor, accumulator: torch.dtype, result: torch.dtype) -> torch.Tensor:
    total = torch.zeros((), dtype=accumulator)
    for element in values:
        total = total + element.to(accumulator)
    return total.to(result)


def _halves(v: torch.Tensor) -> torch.Tensor:
    half = len(v) // 2
    return v[0] if len(v) == 1 else _halves(v[:half]) + _halves(v[half:])


def _compensated(v: torch.Tensor) -> torch.Tensor:
    total = lost = torch.zeros((), dtype=v.dtype)
    for element in v:
        wanted = element - lost
        lost, total = (total + wanted) - total - wanted, total + wanted
    return total


_WIDER = "Near 1e8 float32's gap is 8, so a float32 sum loses the 1: add in float64, and convert only the sum."


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
    (lambda v: v.double().sum().float(), "The sum is right, but its dtype is float32: return that of the values."),
    (lambda v: v.float().sum(), "Take float64, wider than float32 as well; and return the dtype of the values."),
    (lambda v: v.sum().double(), "You widened the sum: convert the values before you add."),
    (lambda v: v.double().sum(), "The sum is right, but its dtype is float64: return it in the dtype of the values."),
    (lambda v: v.mean() * len(v), "mean() adds in float32, and you round its result once more: add in float64."),
    (lambda v: v.sum() if v.dtype != torch.float32 else v.double().sum().float(),
     "16-bit values are still added in fewer than 64 bits, which loses a 1 beside 2^27: take float64 for them, too."),
    (lambda v: v.double().abs().sum().to(v.dtype), "Negative values count as they are."),
    (lambda v: v.sum(), _WIDER),
    (lambda v: v.float().sum().to(v.dtype), _WIDER),
    (lambda v: _running_sum(v, torch.float32, v.dtype), _WIDER),
    (lambda v: _running_sum(v, torch.float16, v.dtype), "A float16 accumulator stops growing, too."),
    (lambda v: _running_sum(v.sort().values, v.dtype, v.dtype),
     "Sorting the terms only delays it: the accumulator still has too few bits."),
    (_halves, "Adding in pairs loses less, but each partial sum is still rounded to the dtype of the values."),
    (lambda v: sum(part.sum() for part in v.split(100)), "Each partial sum is rounded to the dtype of the values."),
    (_compensated, "That may lose less, but a float64 accumulator finds more."),
    (lambda v: v, "Return one sum, not the values."),
    (lambda v: v[0] * len(v), "The values need not all be equal."),
    (lambda v: v.double().sum().to(torch.bfloat16), "The values are not always bfloat16: return their dtype."),
    (lambda v: v.double().sum().to(torch.float16), "The values are not always float16: return their dtype."),
    (lambda v: v.double().sum().item(), "Return a tensor with one element, in the dtype of the values."),
    ],
    cases=[(torch.ones(1000, dtype=torch.bfloat16),), (torch.full((2000,), 0.01, dtype=torch.bfloat16),),
           (torch.ones(5000, dtype=torch.float16),), (torch.tensor([2.0**24, 1.0, 1.0, -(2.0**24)]),),
           (torch.tensor([1e8, 1.0, -1e8]),), (torch.tensor([2.0**27, 1.0, -(2.0**27)], dtype=torch.bfloat16),)],
    draw=_draw_terms, tolerance=0)


def _loss_scale(largest: float | torch.Tensor, limit: float = 65504.0) -> float:
    return 2.0 ** floor(log2(limit / float(largest)))


function("loss_scale",
    lambda g: _loss_scale(g.abs().max()), [
    (lambda g: _loss_scale(g.max()),
     "You looked at the largest gradient with its sign: a large negative one overflows too."),
    (lambda g: _loss_scale(abs(g.max())), "Take the magnitudes first, and then the largest of them."),
    (lambda g: _loss_scale(g.abs().min()),
     "You looked at the smallest gradient: it is the largest that overflows first."),
    (lambda g: _loss_scale(g.abs().mean()), "You looked at the mean: it is the largest gradient that overflows first."),
    (lambda g: _loss_scale(g.norm()),
     "The norm adds up all gradients, but each is stored by itself: take the largest."),
    (lambda g: _loss_scale(g.abs().sum()), "Each gradient is stored by itself: take the largest, not the sum."),
    (lambda g: 2.0 ** (ceil(log2(65504 / g.abs().max().item())) - 1), "65504 itself is still allowed."),
    (lambda g: _loss_scale(g.abs().max(), 65536.0), "float16 ends at 65504, not at 65536."),
    (lambda g: 2.0 ** (15 - floor(log2(g.abs().max().item()))), "float16 ends at 65504, not at 65536."),
    (lambda g: _loss_scale(g.half().abs().max()), "Do not convert first: in float16 65504.5 becomes 65504."),
    (lambda g: _loss_scale(g.abs().max(), 65519.99),
     "Up to 65520 a number rounds to 65504, but here none may exceed 65504 before it is rounded."),
    (lambda g: 2.0 ** round(log2(65504 / g.abs().max().item())),
     "You rounded log2 to the nearest: rounded up, the largest gradient becomes infinity."),
    (lambda g: 2.0 ** ceil(log2(65504 / g.abs().max().item())),
     "You rounded log2 up: then the largest gradient becomes infinity."),
    (lambda g: 2.0 ** int(log2(65504 / g.abs().max().item())),
     "Python's int() rounds towards zero, which is up where the scale is below 1: use math.floor."),
    (lambda g: 2.0 ** torch.floor(torch.log2(65504 / g.abs().max())).item(),
     "In float32 the ratio or its log2 is rounded, up where it lies just below a power of two: take .item() first."),
    (lambda g: max(1.0, 2.0 ** ceil(log2(65504 / g.abs().max().item()))),
     "That is one doubling too many: look before you double. And the scale may have to be less than 1."),
    *[(lambda g, log=log: 2.0 ** floor(log(65504 / g.abs().max().item())), f"That is the {kind} logarithm: take log2.")
      for log, kind in ((math.log, "natural"), (math.log10, "decimal"))],
    (lambda g: _loss_scale(1 / g.abs().max()), "Divide 65504 by the largest gradient; you multiplied."),
    (lambda g: _loss_scale(g[0].abs()), "That is the first gradient: take the largest."),
    (lambda g: g * _loss_scale(g.abs().max()), "Return the power of two, not the gradients multiplied by it."),
    (lambda g: max(1.0, _loss_scale(g.abs().max())), "The scale may have to be less than 1: yours never is."),
    (lambda g: 1 << floor(log2(65504 / g.abs().max().item())),
     "A shift, or //, gives no scale below 1: divide with /, and write 2.0 ** ..., which takes negative powers."),
    *[(lambda g, wide=wide: _loss_scale(g.abs().max(), torch.finfo(wide).max),
       "That is bfloat16's or float32's limit; the gradients are stored in float16.")
      for wide in (torch.float32, torch.bfloat16)],
    (lambda g: 2.0 ** (15 - ceil(log2(g.abs().max().item()))),
     "You rounded the gradient up to a power of two, or took 2**15 for float16's end: round 65504 / largest down."),
    (lambda g: 2.0 ** (int(65504 / g.abs().max().item()).bit_length() - 1),
     "Below 1 int() gives 0, and doubling from 1 never gets there: take math.floor(math.log2(ratio))."),
    (lambda g: min(65536.0, _loss_scale(g.abs().max())), "The scale may be larger than 65536."),
    (lambda g: floor(log2(65504 / g.abs().max().item())), "That is the exponent: raise 2 to it."),
    (lambda g: 65504 / g.abs().max().item(), "That is no power of two: multiplying by it rounds the gradients."),
    (lambda g: floor(65504 / g.abs().max().item()), "That is no power of two, and below 1 it gives 0."),
    (lambda g: _loss_scale(1 / g.abs().max(), 1 / 65504), "You divided the other way round: 65504 over the gradient."),
    ],
    cases=[(torch.tensor([1e-8, 2e-5, -3e-4]),), (torch.tensor([-3.0, 2.0, 1e-7]),), (torch.tensor([65504.0]),),
           (torch.tensor([65504.5]),), (torch.tensor([65510.0]),), (torch.tensor([1.9999]),),
           (torch.tensor([63.968754]),), (torch.tensor([2.0, -1.0]),), (torch.full((100,), 1e-3),)],
    draw=lambda r: (torch.tensor([r.gauss(0, 1) for _ in range(r.randint(2, 9))]) * 10 ** r.uniform(-7, 6),))

value("training_state", 7e9 * (2 + 2 + 4 + 1 + 1) / 1e9, [
    (63, "AdamW keeps two moments per parameter, the mean and the square; you counted one."),
    (42, "You forgot the float32 master copy of the weights."),
    (56, "That is 8 bytes per parameter: here the master copy has 4, weight and gradient 2 each, each moment 1."),
    (112, "You took the moments for float32: in this recipe each has 8 bits."),
    (84, "That is 12 bytes per parameter. Are your moments or gradients too long, or is there no master copy?"),
    *[(7 * n, f"That is {n} bytes per parameter, too many: besides the master copy nothing is in float32.")
      for n in (13, 14, 15, 18, 20)],
    (77, "That is 11 bytes per parameter, one too many. How many does each part have?"),
    *[(7 * n, f"That is {n} bytes per parameter: some of the five parts are missing.") for n in (3, 5, 7)],
    (7e10, "That is in bytes: a GB is 10^9 of them."), (0.07, "That is in TB."),
    (70_000, "That is in MB."), (7e9 * 8 / 2**30, "A part is missing, and you used 2^30 for GB: GB is 10^9 bytes."),
    (80, "That is the memory of an H100. Multiply the bytes of one parameter by 7 billion."),
    (28, "That is 4 bytes per parameter: add the master copy and the moments, or the gradients if you left them out."),
    (14, "That is the weights alone: training also keeps gradients, a master copy and two moments."),
    (168, "You counted 8 bytes for each moment: 8 bits are one byte."),
    (560, "That is in bits: divide by 8."), (8.75, "The parts are in bytes already: do not divide by 8."),
    *[(giga, "You used 2^30 for GB: GB is 10^9 bytes.") for giga in (7e10 / 2**30, 70 * 2**30 / 1e9)],
    (10, "Those are the bytes of one parameter: there are 7 billion."),
], unit="GB", tolerance=0.001,
    same={"answer = 7000000000.0 * per_parameter // 1000000000.0": "it is a whole number of GB"})

function("quantised_bytes",
    lambda n, bits, block: n * bits // 8 + -(-n // block), [
    (lambda n, bits, block: n * bits // 8, "You forgot the scales: each block has one more byte."),
    (lambda n, bits, block: -(-n // block), "You forgot the weights: those are the scales."),
    (lambda n, bits, block: n * bits // 8 + ceil(n * bits / 8 / block), "A block is counted in weights, not in bytes."),
    (lambda n, bits, block: (n - (-n // block)) * bits // 8, "A scale has 8 bits, whatever the bits of a weight."),
    (lambda n, bits, block: n * bits // 8 + n // block, "The last block has a scale even where it is not full."),
    (lambda n, bits, block: n * bits // 8 + n // block + 1, "That is one scale too many where all blocks are full."),
    (lambda n, bits, block: n * bits / 8 + n / block, "The last block needs a whole byte even where it is not full."),
    (lambda n, bits, block: n * bits + 8 * -(-n // block), "That is in bits: a byte has 8."),
    (lambda n, bits, block: n * bits, "That is in bits, and without the scales."),
    (lambda n, bits, block: n * bits + -(-n // block), "The weights are still in bits: a byte has 8."),
    *[(lambda n, bits, block, k=k: n * bits // 8 + k * -(-n // block), f"A scale is one byte; you counted {k}.")
      for k in (2, 4, 8)],
    (lambda n, bits, block: n * bits // 8 + block, "Count the blocks: weights over the size of a block, rounded up."),
    (lambda n, bits, block: (n * bits + -(-n // block)) / 8, "A scale is one byte; you counted one bit."),
    (lambda n, bits, block: (n * bits + -(-n // block)) // 8, "A scale is one byte; you counted one bit."),
    (lambda n, bits, block: n * 4 // 8 + -(-n // block), "A weight has `bits` bits, not always 4."),
    (lambda n, bits, block: n * bits // 8 + 1, "You counted one scale in all: every block has one."),
    (lambda n, bits, block: n * bits // 8 + n, "You counted a scale for each weight: a block shares one."),
    (lambda n, bits, block: -(-n // block) * (block * bits // 8 + 1),
     "You filled up the last block: its scale is whole, but it stores only the weights that it has."),
    (lambda n, bits, block: n * (bits // 8) + -(-n // block),
     "Below 8 bits, bits // 8 is 0: multiply before you divide."),
    (lambda n, bits, block: n * bits // 8 + round(n / block),
     "A block that is not full still has a whole scale: round up, not to the nearest."),
    (lambda n, bits, block: n // 8 * bits + -(-n // block),
     "Multiply before you divide: weights need not be a multiple of 8."),
    (lambda n, bits, block: n * bits // 8 + max(1, n // block), "A last block that is not full has a scale, too."),
    (lambda n, bits, block: n // block * (block * bits // 8 + 1), "You dropped the last block where it is not full."),
    (lambda n, bits, block: n + -(-n // block), "You counted a byte for each weight, whatever its bits."),
    ],
    cases=[(64, 4, 32), (48, 4, 32), (10, 4, 32), (16, 8, 128), (70_000_000_000, 4, 16)],
    draw=lambda r: (8 * r.randint(1, 10 ** r.randint(1, 9)), r.choice((2, 3, 4, 6, 8)), r.choice((16, 32, 64, 100))),
    same={"return weights * bits / 8 + math.ceil(weights / block)": "the weights fill whole bytes"})


def _round_to(
    value: float, e: int, f: int, lowest: int = 0, bias: int = 0, limit: int = 0, count: Callable[..., int] = round
) -> float:
    """By the definition, in fractions, or with a mistake.

    `lowest` moves the end of the normal numbers down, `bias` is added to the bias, `limit` moves the largest number up
    by powers of two, and `count` rounds the magnitude to gaps.
    """
    bias, exact = 2 ** (e - 1) - 1 + bias, abs(Fraction(value))
    power = 1 - bias - lowest
    while exact >= Fraction(2) ** (power + 1):
        power += 1
    kept = count(exact / Fraction(2) ** (power - f)) * Fraction(2) ** (power - f)
    return math.copysign(math.inf if kept > (2 - Fraction(1, 2**f)) * 2 ** (bias + limit) else float(kept), value)


def _largest(e: int, f: int) -> float:
    return (2 - 2.0**-f) * 2.0 ** (2 ** (e - 1) - 1)


def _tiny(e: int) -> float:
    return 2.0 ** (2 - 2 ** (e - 1))


def _gap(value: float, e: int, f: int) -> float:
    return 2.0 ** (max(math.frexp(value)[1], 3 - 2 ** (e - 1)) - 1 - f)


def _counted(value: float, e: int, f: int, count: Callable[[float], int], gap: float | None = None) -> float:
    gap = gap or _gap(value, e, f)
    kept = count(value / gap) * gap
    return math.copysign(math.inf, value) if abs(kept) > _largest(e, f) else kept


def _log_up(x: float, e: int, f: int) -> float:
    """The gap, with the power of two at or above the magnitude."""
    return 2.0 ** (max(ceil(log2(abs(x))), 2 - 2 ** (e - 1)) - f) if x else _tiny(e)


def _no_end(x: float, e: int, f: int) -> float:
    return round(x / _gap(x, e, f)) * _gap(x, e, f)


def _draw_value(r: random.Random) -> tuple[float, int, int]:
    """A number from below the smallest subnormal to beyond the largest, and every other one a tie."""
    e, f = r.choice(((5, 10), (8, 7), (5, 2), (4, 3), (3, 2)))
    bias = 2 ** (e - 1) - 1
    value = r.choice((-1, 1)) * r.uniform(1, 2) * 2.0 ** r.randint(-bias - f, bias + 1)
    gap = _gap(value, e, f)
    return (math.floor(value / gap) + 0.5) * gap if r.random() < 0.5 else value, e, f


_SHRINKS = "Below the smallest normal number the gap stays the same; yours goes on shrinking."
_TIE = "A tie goes to the even code, and yours always goes"
function("round_to",
    _round_to, [
    (lambda x, e, f: _round_to(x, e, f, lowest=2000), _SHRINKS),
    (lambda x, e, f: round(x / 2.0 ** (math.frexp(x)[1] - 1 - f)) * 2.0 ** (math.frexp(x)[1] - 1 - f),
     f"{_SHRINKS} And beyond the largest number is infinity."),
    (lambda x, e, f: _round_to(x, e, f, lowest=1), "The smallest normal number is 2^(1 - bias): yours is half of it."),
    (lambda x, e, f: _round_to(x, e, f, lowest=-1), "The smallest normal number is 2^(1 - bias): yours is twice that."),
    *[(lambda x, e, f, bias=bias: _round_to(x, e, f, bias=bias(e) + 1 - 2 ** (e - 1)),
       f"Your bias is {words}: it is 2^(exponent_bits - 1) - 1.")
      for bias, words in ((lambda e: 2 ** (e - 1), "1 too large"), (lambda e: 2 ** (e - 1) - 2, "1 too small"),
                          (lambda e: 2**e - 2, "too large"), (lambda e: 2**e - 1, "too large"),
                          (lambda e: 2 ** (e - 2), "too small"), (lambda e: 127, "that of 8 exponent bits"),
                          (lambda e: 15, "that of 5 exponent bits"))],
    (lambda x, e, f: 0.0 if abs(x) < _tiny(e) else _round_to(x, e, f),
     "Below the smallest normal number there are subnormal numbers, 2^(1 - bias - F) apart: yours becomes 0."),
    (lambda x, e, f: math.copysign(_tiny(e), x) if 0 < abs(x) < _tiny(e) else _round_to(x, e, f),
     "You raised what is below the smallest normal number to it: there are subnormal numbers."),
    (lambda x, e, f: 0.0 if abs(x) < _tiny(e) * 2.0**-f else _round_to(x, e, f),
     "More than half of the smallest number rounds up to it; yours becomes 0."),
    (lambda x, e, f: _counted(x, e, f, lambda steps: math.floor(steps + 0.5)), f"{_TIE} up."),
    (lambda x, e, f: _counted(x, e, f, lambda steps: int(steps + 0.5)),
     f"{_TIE} up. And int() cuts negative values: take round."),
    (lambda x, e, f: _counted(x, e, f, lambda steps: math.ceil(steps - 0.5)), f"{_TIE} down."),
    (lambda x, e, f: _counted(x, e, f, lambda steps: int(steps + math.copysign(0.5, steps))),
     f"{_TIE} away from zero."),
    (lambda x, e, f: _round_to(x, e, f, count=lambda n: ceil(n - Fraction(1, 2))), f"{_TIE} towards zero."),
    (lambda x, e, f: _counted(x, e, f, int), "You cut off what does not fit: round to the nearest number."),
    (lambda x, e, f: _counted(x, e, f, math.floor), "You rounded down: round to the nearest number."),
    (lambda x, e, f: _counted(x, e, f, math.ceil), "You rounded up: round to the nearest number."),
    (lambda x, e, f: _round_to(x, e, f, count=ceil), "You rounded away from zero: round to the nearest number."),
    (lambda x, e, f: min(max(_round_to(x, e, f), -_largest(e, f)), _largest(e, f)),
     "What rounds beyond the largest number becomes infinity; yours stays at the largest."),
    (lambda x, e, f: math.copysign(min(abs(_no_end(x, e, f)), _largest(e, f)) if abs(x) < 2.0 ** 2 ** (e - 1)
                                   else math.inf, x),
     "Half a gap beyond the largest number infinity begins; yours begins at the next power of two."),
    *[(lambda x, e, f, end=end: end(x, e, f) if x < 0 else _round_to(x, e, f),
       "Beyond the largest negative number is −infinity.")
      for end in (_no_end, lambda x, e, f: max(_round_to(x, e, f), -_largest(e, f)))],
    (lambda x, e, f: abs(_round_to(x, e, f)) if math.isinf(_round_to(x, e, f)) else _round_to(x, e, f),
     "The infinity of a negative value is negative."),
    (lambda x, e, f: math.copysign(math.inf, x) if abs(x) > _largest(e, f) else _round_to(x, e, f),
     "Round first, then look whether the result is beyond the largest number."),
    (lambda x, e, f: math.copysign(math.inf, x) if abs(_round_to(x, e, f)) >= _largest(e, f) else _round_to(x, e, f),
     "The largest number itself is a number: only beyond it is infinity."),
    (lambda x, e, f: math.copysign(math.inf, x) if abs(_no_end(x, e, f)) > 2.0 ** (2 ** (e - 1) - 1)
     else _no_end(x, e, f), "The largest number is not 2^bias: its fraction is all ones, (2 - 2^-F) * 2^bias."),
    (lambda x, e, f: math.copysign(math.inf, x) if abs(_no_end(x, e, f)) > _largest(e, f) - 2.0 ** (2 ** (e - 1) - 1)
     else _no_end(x, e, f), "The largest number has a hidden 1, too: (2 - 2^-F) * 2^bias."),
    (_no_end, "You forgot the largest number: beyond it is infinity."),
    (lambda x, e, f: _round_to(x, e, f, limit=1),
     "Your largest number is one power of two too high: exponent field all ones is infinity."),
    (lambda x, e, f: _no_end(x, e, f) if abs(_no_end(x, e, f)) <= 2.0 ** 2 ** (e - 1) else math.copysign(math.inf, x),
     "The largest number lies one gap below a power of two; yours is the power."),
    (lambda x, e, f: abs(_round_to(x, e, f)), "A negative value stays negative."),
    (lambda x, e, f: max(0.0, _round_to(x, e, f)), "A negative value becomes 0 here: round its magnitude."),
    (lambda x, e, f: _counted(x, e, f, round, _gap(x, e, f) / 2), "Your gap is half of the right one."),
    (lambda x, e, f: _round_to(x, e, f + 1), "Your gap is half of the right one."),
    (lambda x, e, f: _counted(x, e, f, round, 2.0 ** (max(math.frexp(x)[1] - 2, 2 - 2 ** (e - 1)) - f)),
     "Your gap is half of the right one: math.frexp(x)[1] - 1 is k, not k + 1."),
    (lambda x, e, f: math.copysign(math.inf, x) if abs(round(x / _gap(x, e, f))) > _largest(e, f)
     else round(x / _gap(x, e, f)), "That is the number of gaps: multiply it by the gap."),
    (lambda x, e, f: _round_to(x, e, f - 1), "Your gap is twice the right one."),
    (lambda x, e, f: _counted(x, e, f, round, 2.0 ** (math.frexp(x)[1] - f)),
     "Your gap is twice the right one, as math.frexp gives k + 1. And among the subnormal numbers it stays the same."),
    (lambda x, e, f: math.copysign(math.inf, x) if abs(_no_end(x, e, f)) >= 2.0 ** (2 ** (e - 1) - 1)
     else _no_end(x, e, f), "The largest number is not 2^bias: its fraction is all ones, (2 - 2^-F) * 2^bias."),
    (lambda x, e, f: _counted(x, e, f, round, _log_up(x, e, f)),
     "The gap belongs to the power of two at or below the magnitude; yours is the one above."),
    (lambda x, e, f: _counted(x, e, f, round, _log_up(x, e, f) if abs(x) < 1 else None),
     "int() rounds a negative exponent up: take math.floor or math.frexp."),
    (lambda x, e, f: round(x * 2**f) / 2**f, "That is the gap at 1: it grows with the value."),
    (lambda x, e, f: _counted(x, e, f, round, 2.0**-f), "That is the gap at 1: it grows with the value."),
    *[(lambda x, e, f, end=end: math.copysign(math.inf, x) if abs(round(x, f)) > end * _largest(e, f) else round(x, f),
       "Python's round(value, n) keeps n decimal places: count gaps of the format instead.") for end in (1, math.inf)],
    (lambda x, e, f: x, "That is the value itself: round it to the nearest number of the format."),
    (lambda x, e, f: _round_to(x, 5, 10), "That is float16 whatever the two counts say."),
    (lambda x, e, f: _round_to(x, 8, 7), "That is bfloat16 whatever the two counts say."),
    (lambda x, e, f: _round_to(float(torch.tensor(x, dtype=torch.float32)), e, f),
     "You rounded twice, first to float32: what becomes a tie there was none."),
    (lambda x, e, f: torch.tensor(x).to(torch.float8_e4m3fn).item() if (e, f) == (4, 3) else _round_to(x, e, f),
     "By the IEEE rule a format of 4 and 3 bits ends at 240; torch's E4M3 bends it."),
    (lambda x, e, f: log2(x) and 0.0 if x <= 0 else _round_to(x, e, f),
     "Only a positive number has a logarithm: take the magnitude, and treat zero first."),
    (lambda x, e, f: _round_to(x, e, f) if x else log2(x), "Zero has no logarithm: treat it first."),
    (lambda x, e, f: log2(x) if x < 0 else _round_to(x, e, f), "A negative number has no logarithm: take abs."),
    (lambda x, e, f: log2(x) if x < 0 else _no_end(x, e, f),
     "A negative number has no logarithm: take the magnitude. And beyond the largest number is infinity."),
    ],
    cases=[(257.0, 8, 7), (259.0, 8, 7), (255.0, 8, 7), (-0.1, 4, 3), (0.0, 5, 10), (1e-6, 5, 10), (2.98e-8, 5, 10),
           (2.99e-8, 5, 10), (65504.0, 5, 10), (65519.0, 5, 10), (65520.0, 5, 10), (65530.0, 5, 10), (-70000.0, 5, 10),
           (200000.0, 5, 10), (40000.0, 5, 10), (300.0, 4, 3), (-300.0, 4, 3), (257 + 2**-16, 8, 7), (1e-39, 8, 7),
           (0.0025, 3, 2)],
    draw=_draw_value,
    same={"if abs(rounded) > (2 - 4.0 ** (-fraction_bits)) * 2.0 ** bias:":
          "what is rounded is a multiple of the gap, and the next one after the largest is 2 · 2^bias"})
