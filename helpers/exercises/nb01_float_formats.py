"""The exercises of notebook 01."""

import math
import random
from collections.abc import Callable
from fractions import Fraction
from math import ceil, floor, log2

import torch

from helpers.exercises.exercise import choices, exercise, guess, notebook, part, parts

notebook("01")

# fmt: off

guess("float16_run", "In float16 it is still the loss of the first step: nothing has moved.",
    (5.5e-13, "You named the loss of float32."), (0.0, "A loss of 0 would be a perfect fit."),
    (math.nan, "It stays finite, and no error is raised."), (math.inf, "It stays finite, and no error is raised."))
guess("code_on_paper",
    "The exponent field holds 128, so the power is 2¹; the fraction is 73/128, after the hidden 1.",
    (1.140625, "You forgot the hidden 1: the significand is 1 + 73/128."), (3.14, "Write all its digits."),
    (math.pi, "π has no end in base two: write all the digits of this number."),
    (1.5703125, "The power is 128 − 127."), (6.28125, "The bias is 127, one less than the middle."),
    ((2.0**127, 2.0**129), "The bias is left out: the power is 2 to the field less 127."))
guess("smallest_float16", "One step of the fraction, 1/2¹⁰, times the power of exponent field 1.",
    (2.0**-14, "That is normal; exponent field 0 has no hidden 1."), (2.0**-10, "That step is the one at 1."),
    (2.0**-15, "The power stays 2⁻¹⁴, and there is no hidden 1."), (2.0**-25, "The power stays 2⁻¹⁴."))
guess("end_of_e4m3", "(2 − 1/8) · 2⁷: the exponent field 15 is spent on infinity and on seven NaNs of each sign.",
    (448, "That is the real format, which bends the rule: use the first of the three formulas."),
    (480, "That would use exponent field 15, too, which the rule spends on infinity and NaN."),
    (128, "With a fraction of all ones it is nearly twice the power."), (256, "The fraction has only three bits."))
guess("tie_at_257",
    "Of two numbers equally near, the one with the even code is taken: 257 goes down, and 259 up, to 260.",
    (1, "bfloat16 has nothing between 256 and 258."), (2, "At school halves always go up, not here."),
    (256, "That is the sum: it has not grown at all."),
    (257, "bfloat16 has no 257, and the question is the growth."))
guess("faint_number",
    "It is nearer to the smallest number than to 0, so it is doubled; 2.98e-8, less than half of it, is gone.",
    (0.0, "It would be 0 below half of the smallest number; this is a little more."),
    (2.99e-8, "There is no number between 0 and the smallest."), (2.98e-8, "Half of the smallest number is no number."))
guess("gradients_lost",
    "The left end of the hill reaches far below half of float16's smallest number. Nearly all others are subnormal: "
    "they have lost digits.",
    (80.3, "Those are subnormal: they have lost digits, and are still there."),
    (0.0, "What lies over the left ground becomes 0."))
guess("stagnating_ones", "There the gap becomes 2, so each further 1 is a tie, and goes back to the even code.",
    (1000, "From some sum on 1 is at most half of the gap."), (257, "257 lies in the middle of two numbers."),
    (258, "Each step starts from the sum so far, and adds 1."), (128, "At 128 the gap is still 1."),
    (512, "At 256 the gap is 2 already."))
guess("bytes_of_a_parameter", "AdamW gives the moments the weight's dtype: two bytes for each of the four.",
    (2, "That is the weight alone."), (4, "That is the weight and its gradient; AdamW keeps two moments."),
    (12, "Here the moments have the weight's dtype, too."), (16, "That would be in float32."))
guess("outlier_in_int8",
    "All numbers of a token share its scale, and so its step, 1/127 of the largest of them, which is now about five "
    "times as large.",
    (0.78, "The step of each token has grown."),
    (15.6, "The outlier grew twentyfold, but it was hardly ever the largest of its token before."))

parts("decode_patterns",
    in_bfloat16_it_is=part(-5.0, [  # -(1 + 32/128) * 2^(129 - 127)
        (-1.0, "That is the fraction alone, times the power: what stands before it in a normal number?"),
        (5.0, "The size is right: what does the first bit say?"),
        (-2.5, "Half of it, as with a bias of 128: it is one less than the middle of the field."),
        (-132.0, "You read the fraction field as an integer: with 7 bits it counts 128ths."),
        (-(1.25 * 2.0**129), "So large? The exponent field is stored with the bias added: take that off."),
    ]),
    in_float8_it_is=part(3 / 8 * 2**-6, [
        ((1 + 3 / 8) * 2**-6, "The power is right: but does an exponent field of all zeros have a hidden 1?"),
        ((1 + 3 / 8) * 2**-7, "You read it like a normal number: an exponent field of all zeros is read otherwise."),
        (3 / 8 * 2**-7, "No hidden 1, that is right. But the power is not field minus bias: it stays that of field 1."),
    ]),
    equivalent_slips={
        "in_bfloat16_it_is = -(1 + 32 / 128) * (2 * (129 - 127))": "2 · 2 = 2²",
        "in_bfloat16_it_is = -(1 + 32 / 128) * (129 - 127) ** 2": "2 · 2 = 2²"})

_FORMATS = {
    "float64": "float64 has 8 bytes, reaches 1.8e308, and its gap at 1 is 2^-52.",
    "float32": "float32 has 4 bytes, reaches 3.4e38, and its gap at 1 is 2^-23.",
    "tfloat32": "A tfloat32 has 19 bits, and is never stored: in memory it takes the 4 bytes of float32.",
    "float16": "float16 has 2 bytes, ends at 65504, and its gap at 1 is 2^-10.",
    "bfloat16": "bfloat16 has 2 bytes, reaches 3.4e38, and its gap at 1 is 2^-7.",
    "float8_e4m3fn": "E4M3 has 1 byte, ends at 448, and its gap at 1 is 1/8.",
    "float8_e5m2": "E5M2 has 1 byte, ends at 57344, and its gap at 1 is 1/4.",
    "float4_e2m1fn": "E2M1 has 4 bits, and ends at 6.",
}
choices("choose_format", _FORMATS,
    a=("bfloat16", ("float16", "float16 ends at 65504: 10^38 needs more exponent bits.")),
    b=("float16", ("bfloat16", "bfloat16 near 1 is spaced 2^-7 = 0.0078: 1.001 rounds to 1.")),
    c=("float8_e4m3fn",
       ("float8_e5m2", "It holds 400, too, but with two fraction bits; another one-byte format has three.")),
    d=("float8_e5m2", ("float8_e4m3fn", "E4M3 ends at 448.")))

exercise("first_missing_integer",
    lambda fraction_bits: 2 ** (fraction_bits + 1) + 1, [
    (lambda fraction_bits: 2 ** (fraction_bits + 1),
     "The gap becomes 2 there, but that number itself is still there, as every power of two."),
    (lambda fraction_bits: 2 ** (fraction_bits + 1) - 1,
     "Is that the largest integer of so many bits? It is still there: which one is not?"),
    (lambda fraction_bits: 2**fraction_bits + 1,
     "From 2 ** fraction_bits on the gap is 1, and no integer is missing yet: the hidden 1 is a digit, too."),
    (lambda fraction_bits: 2 ^ (fraction_bits + 1) + 1,
     "In Python ^ is no power, it compares bits: a power is written **."),
    (lambda fraction_bits: 2.0 ** (fraction_bits + 1) + 1,
     "Python's own float is a format as well, and misses that integer from 52 bits on: keep to integers."),
    ],
    cases=[(7,), (10,), (23,), (2,), (52,), (0,)], draw=lambda r: (r.randint(1, 60),), tolerance=0)


def _running_sum(values: torch.Tensor, accumulator: torch.dtype, result: torch.dtype) -> torch.Tensor:
    total = torch.zeros((), dtype=accumulator)
    for element in values:
        total = total + element.to(accumulator)
    return total.to(result)


def _draw_terms(r: random.Random) -> tuple[torch.Tensor]:
    """Multiples of 1/64, so that every order of summation is exact in float32."""
    terms = torch.tensor([r.randint(-40, 127) / 64 for _ in range(r.randint(300, 500))])
    return (terms.to(r.choice((torch.bfloat16, torch.float16))),)


exercise("stable_sum",
    lambda values: values.double().sum().to(values.dtype), [
    (lambda values: _running_sum(values, values.dtype, values.dtype),
     "The running total has the dtype of the values: once it is large, its gaps swallow the small terms."),
    (lambda values: _running_sum(values, values.dtype, torch.float32),
     "You changed the dtype after the loop: by then the small terms are gone."),
    (torch.sum,
     "float32 is wide enough for 16-bit values, but not for its own: near 1e8 its gap is 8, and the 1 is lost."),
    (lambda values: _running_sum(values, torch.float32, values.dtype),
     "float32 is wide enough for 16-bit values, but not for its own: near 1e8 its gap is 8, and the 1 is lost."),
    (lambda values: values.double().sum().item(),
     "The sum is right, but a Python number: return a tensor of the dtype of the values."),
    (lambda values: values.sum().double(), "You widened the sum: what was lost on the way does not come back."),
    ],
    cases=[(torch.ones(1000, dtype=torch.bfloat16),), (torch.full((2000,), 0.01, dtype=torch.bfloat16),),
           (torch.ones(5000, dtype=torch.float16),), (torch.tensor([2.0**24, 1.0, 1.0, -(2.0**24)]),),
           (torch.tensor([1e8, 1.0, -1e8]),), (torch.tensor([2.0**27, 1.0, -(2.0**27)], dtype=torch.bfloat16),)],
    draw=_draw_terms, tolerance=0)


def _loss_scale(largest: float | torch.Tensor, limit: float = 65504.0) -> float:
    return 2.0 ** floor(log2(limit / float(largest)))


exercise("loss_scale",
    lambda gradients: _loss_scale(gradients.abs().max()), [
    (lambda gradients: _loss_scale(gradients.max()),
     "You looked at the largest gradient with its sign: a large negative one overflows, too."),
    (lambda gradients: _loss_scale(gradients.abs().max(), 65519.99),
     "Up to 65520 a product rounds back to 65504 and stays finite. But it exceeds the largest number."),
    (lambda gradients: _loss_scale(gradients.abs().max(), 65536.0),
     "float16 ends one gap below 65536: at 65504."),
    (lambda gradients: 2.0 ** ceil(log2(65504 / gradients.abs().max().item())),
     "Rounded up, the scale takes the largest gradient beyond 65504."),
    (lambda gradients: 2.0 ** torch.floor(torch.log2(65504 / gradients.abs().max())).item(),
     "In float32 the ratio is rounded, up where it lies just below a power of two: take .item() first."),
    (lambda gradients: floor(log2(65504 / gradients.abs().max().item())),
     "That is the exponent: the scale is 2 to it."),
    (lambda gradients: 65504 / gradients.abs().max().item(),
     "That uses the range to the full, but it is no power of two: multiplying by it rounds every gradient."),
    (lambda gradients: 2.0 ** floor(log2(gradients.abs().max().item() / 65504)),
     "Upside down: small gradients need a large scale."),
    ],
    variables=lambda gradients: {"gradients.abs().max()": gradients.abs().max().item(),
                                 "gradients.abs().min()": gradients.abs().min().item()},
    cases=[(torch.tensor([1e-8, 2e-5, -3e-4]),), (torch.tensor([-3.0, 2.0, 1e-7]),), (torch.tensor([65504.0]),),
           (torch.tensor([65504.5]),), (torch.tensor([65510.0]),), (torch.tensor([1.9999]),),
           (torch.tensor([63.968754]),), (torch.tensor([2.0, -1.0]),), (torch.full((100,), 1e-3),),
           (torch.tensor([[-7.0, 1.5], [0.5, 3.0]]),)],
    draw=lambda r: (torch.tensor([r.gauss(0, 1) for _ in range(r.randint(2, 9))]) * 10 ** r.uniform(-7, 6),))

exercise("quantised_bytes",
    lambda weights, bits, block: weights * bits // 8 + -(-weights // block), [
    (lambda weights, bits, block: weights * bits // 8 + weights // block,
     "weights // block counts the full blocks: the last one has a scale even where it is shorter."),
    (lambda weights, bits, block: weights * bits // 8 + weights // block + 1,
     "You add a scale for the rest. Where all blocks are full, there is no rest."),
    (lambda weights, bits, block: -(-weights // block) * (block * bits // 8 + 1),
     "You filled up the last block: its scale is whole, but it stores only the weights that it has."),
    (lambda weights, bits, block: weights * (bits // 8) + -(-weights // block),
     "bits // 8 is 0 below 8 bits: a weight may have less than a byte, and several share one."),
    ],
    cases=[(64, 4, 32), (48, 4, 32), (10, 4, 32), (16, 8, 128), (70_000_000_000, 4, 16)],
    terms={"the weights": lambda weights, bits, block: weights * bits // 8,
           "the scales": lambda weights, bits, block: -(-weights // block)},
    draw=lambda r: (8 * r.randint(1, 10 ** r.randint(1, 9)), r.choice((2, 3, 4, 6, 8)), r.choice((16, 32, 64, 100))),
    equivalent_slips={"return weights * bits / 8 + math.ceil(weights / block)": "the weights fill whole bytes"})


def _round_to(
    value: float, exponent_bits: int, fraction_bits: int, *,
    lowest: int = 0, limit: int = 0, count: Callable[..., int] = round,
) -> float:
    """By the definition, in fractions, or with a mistake.

    `lowest` moves the end of the normal numbers down and `limit` the largest number up, both by powers of two, and
    `count` rounds the magnitude to gaps.
    """
    bias, exact = 2 ** (exponent_bits - 1) - 1, abs(Fraction(value))
    power = 1 - bias - lowest
    while exact >= Fraction(2) ** (power + 1):
        power += 1
    gap = Fraction(2) ** (power - fraction_bits)
    kept = count(exact / gap) * gap
    largest = (2 - Fraction(1, 2**fraction_bits)) * 2 ** (bias + limit)
    return math.copysign(math.inf if kept > largest else float(kept), value)


def _largest(exponent_bits: int, fraction_bits: int) -> float:
    return (2 - 2.0**-fraction_bits) * 2.0 ** (2 ** (exponent_bits - 1) - 1)


def _gap(value: float, e: int, f: int) -> float:
    return 2.0 ** (max(math.frexp(value)[1], 3 - 2 ** (e - 1)) - 1 - f)


def _draw_value(r: random.Random) -> tuple[float, int, int]:
    """A number from below the smallest subnormal to beyond the largest, and every other one a tie."""
    e, f = r.choice(((5, 10), (8, 7), (5, 2), (4, 3), (3, 2)))
    bias = 2 ** (e - 1) - 1
    value = r.choice((-1, 1)) * r.uniform(1, 2) * 2.0 ** r.randint(-bias - f, bias + 1)
    gap = _gap(value, e, f)
    return (math.floor(value / gap) + 0.5) * gap if r.random() < 0.5 else value, e, f


_HALF = Fraction(1, 2)


def _up(gaps: Fraction, value: float) -> int:
    """A magnitude in gaps, rounded so that a tie raises the value."""
    return floor(gaps + _HALF) if value > 0 else ceil(gaps - _HALF)


exercise("round_to",
    lambda value, exponent_bits, fraction_bits: _round_to(value, exponent_bits, fraction_bits), [
    (lambda *given: _round_to(*given, lowest=2000),
     "Near zero your gaps go on shrinking: in the subnormal range all have the size of the last one."),
    (lambda *given: _round_to(*given, count=floor),
     "You cut off what does not fit, as int does: the format keeps the nearest number."),
    (lambda *given: _round_to(*given, count=lambda gaps: floor(gaps + _HALF)),
     "Halfway between two numbers yours goes away from zero, as at school: a tie goes to the even code."),
    (lambda value, *bits: _round_to(value, *bits, count=lambda gaps: _up(gaps, value)),
     "Halfway between two numbers yours always goes up, as floor(x + 0.5) does: a tie goes to the even code."),
    (lambda *given: _round_to(*given, limit=2000), "However large the value, yours keeps it: a format ends somewhere."),
    (lambda value, *bits: min(max(_round_to(value, *bits), -_largest(*bits)), _largest(*bits)),
     "Beyond the largest number yours stays there, as some float8 do: by the IEEE rule it becomes infinity."),
    (lambda *given: math.inf if _round_to(*given) == -math.inf else _round_to(*given),
     "Your infinity has no sign: what is too small for the format becomes minus infinity."),
    (lambda value, *bits: math.copysign(math.inf, value) if abs(value) > _largest(*bits) else _round_to(value, *bits),
     "What is a little beyond the largest number may still round down to it: round first, then look."),
    ],
    cases=[(257.0, 8, 7), (259.0, 8, 7), (255.0, 8, 7), (-0.1, 4, 3), (0.0, 5, 10), (1e-6, 5, 10), (2.98e-8, 5, 10),
           (2.99e-8, 5, 10), (65504.0, 5, 10), (65519.0, 5, 10), (65520.0, 5, 10), (65530.0, 5, 10), (-70000.0, 5, 10),
           (200000.0, 5, 10), (40000.0, 5, 10), (300.0, 4, 3), (-300.0, 4, 3), (257 + 2**-16, 8, 7), (1e-39, 8, 7),
           (0.0025, 3, 2), (23 * 2**-13, 4, 3)],
    draw=_draw_value,
    variables=lambda value, exponent_bits, fraction_bits: {
        "the value": value, "its magnitude": abs(value), "the gap there": _gap(value, exponent_bits, fraction_bits),
        "the smallest normal number": 2.0 ** (2 - 2 ** (exponent_bits - 1)),
        "the largest number": _largest(exponent_bits, fraction_bits)},
    equivalent_slips={"if abs(rounded) > (2 - 4.0 ** (-fraction_bits)) * 2.0 ** bias:":
          "what is rounded is a multiple of the gap, and the next one after the largest is 2 · 2^bias"})
