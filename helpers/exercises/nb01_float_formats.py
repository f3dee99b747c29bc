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
guess("smallest_float16", "One step of the fraction, 1/2¹⁰, times the power of exponent field 1.",
    (2.0**-14, "That is normal; exponent field 0 has no hidden 1."), (2.0**-10, "That step is the one at 1."),
    (2.0**-15, "The power stays 2⁻¹⁴, and there is no hidden 1."), (2.0**-25, "The power stays 2⁻¹⁴."))
guess("tie_at_257", "Of two numbers equally near, the one with the even code is taken.",
    (1, "bfloat16 has nothing between 256 and 258."), (2, "At school halves always go up, not here."),
    (256, "That is the sum: it has not grown at all."),
    (257, "bfloat16 has no 257, and the question is the growth."))
guess("outlier_in_int8", "All weights of a row share its scale, and so its step, 1/127 of the largest of them.",
    (0.79, "The step of their row has grown."),
    (50, "The outlier grew fiftyfold. By how much did the step of its row grow?"),
    (39.4, "The outlier grew fiftyfold, but it was hardly ever the largest of its row before."))

parts("decode_patterns",
    in_bfloat16_it_is=part(-5.0, [  # -(1 + 32/128) * 2^(129 - 127)
        (-1.0, "You forgot the hidden 1: the significand is 1 + fraction/128."),
        (5.0, "Look at the first bit again: the number is negative."),
        (-2.5, "The bias is 127, one less than the middle."),
        (-132.0, "You read the fraction as an integer: it is 32/128, since the field has 7 bits."),
        (-(1.25 * 2.0**129), "You forgot the bias: the exponent is the field minus 127."),
    ]),
    in_float8_it_is=part(3 / 8 * 2**-6, [
        ((1 + 3 / 8) * 2**-6, "An exponent field of all zeros has no hidden 1."),
        ((1 + 3 / 8) * 2**-7, "In an exponent field of all zeros the hidden 1 is gone, and the power is that of 1."),
        (3 / 8 * 2**-7, "The hidden 1 is gone, as it should; but the power stays that of exponent field 1."),
        *[(rounded, "That is rounded: write all its digits, or a product.") for rounded in (0.0059, 0.00586, 0.005859)],
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
    (lambda f: 2 ** (f + 1), "That one is still there: it is a power of two. The next one is not."),
    (lambda f: 2 ** (f + 1) - 1,
     "That one is still there, and so is the next: all integers up to a power of two exist."),
    (lambda f: 2**f + 1, "The hidden 1 counts: 2 ** (fraction_bits + 1), in brackets."),
    (lambda f: 2 ^ (f + 1) + 1, "In Python ^ is not a power (it compares bits): write **."),
    (lambda f: 2.0 ** (f + 1) + 1,
     "The formula is right, but from 52 on a Python float cannot hold it: use integers, as in 2 ** n."),
    ],
    cases=[(7,), (10,), (23,), (2,), (52,)], draw=lambda r: (r.randint(1, 60),), tolerance=0)


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
    lambda v: v.double().sum().to(v.dtype), [
    (lambda v: _running_sum(v, v.dtype, v.dtype),
     "The accumulator still has the dtype of the values, so the sum stops growing."),
    (lambda v: _running_sum(v, v.dtype, torch.float32),
     "You changed the dtype after the loop: by then the small terms are gone. Change the accumulator."),
    *[(add, "Near 1e8 float32's gap is 8, so a float32 sum loses the 1: add in float64, and convert only the sum.")
      for add in (torch.sum, lambda v: _running_sum(v, torch.float32, v.dtype))],
    (lambda v: v.sum().double(), "You widened the sum: convert the values before you add."),
    (lambda v: v.double().sum(), "The sum is right, but its dtype is float64: return it in the dtype of the values."),
    ],
    cases=[(torch.ones(1000, dtype=torch.bfloat16),), (torch.full((2000,), 0.01, dtype=torch.bfloat16),),
           (torch.ones(5000, dtype=torch.float16),), (torch.tensor([2.0**24, 1.0, 1.0, -(2.0**24)]),),
           (torch.tensor([1e8, 1.0, -1e8]),), (torch.tensor([2.0**27, 1.0, -(2.0**27)], dtype=torch.bfloat16),)],
    draw=_draw_terms, tolerance=0)


def _loss_scale(largest: float | torch.Tensor, limit: float = 65504.0) -> float:
    return 2.0 ** floor(log2(limit / float(largest)))


exercise("loss_scale",
    lambda g: _loss_scale(g.abs().max()), [
    (lambda g: _loss_scale(g.max()),
     "You looked at the largest gradient with its sign: a large negative one overflows too."),
    (lambda g: _loss_scale(g.abs().min()),
     "You looked at the smallest gradient: it is the largest that overflows first."),
    (lambda g: _loss_scale(g.abs().max(), 65519.99),
     "Up to 65520 a product rounds back to 65504, so it is not infinite; but it is beyond the largest number."),
    (lambda g: _loss_scale(g.abs().max(), 65536.0), "float16 ends at 65504, not at 65536."),
    *[(lambda g, turn=turn: 2.0 ** turn(log2(65504 / g.abs().max().item())),
       "Round log2 down: rounded up, the scale lets the largest gradient exceed 65504.") for turn in (ceil, round)],
    (lambda g: 2.0 ** torch.floor(torch.log2(65504 / g.abs().max())).item(),
     "In float32 the ratio or its log2 is rounded, up where it lies just below a power of two: take .item() first."),
    (lambda g: floor(log2(65504 / g.abs().max().item())), "That is the exponent: raise 2 to it."),
    (lambda g: 65504 / g.abs().max().item(), "That is no power of two: multiplying by it rounds the gradients."),
    (lambda g: 2.0 ** floor(log2(g.abs().max().item() / 65504)),
     "You divided the other way round: 65504 over the gradient."),
    ],
    cases=[(torch.tensor([1e-8, 2e-5, -3e-4]),), (torch.tensor([-3.0, 2.0, 1e-7]),), (torch.tensor([65504.0]),),
           (torch.tensor([65504.5]),), (torch.tensor([65510.0]),), (torch.tensor([1.9999]),),
           (torch.tensor([63.968754]),), (torch.tensor([2.0, -1.0]),), (torch.full((100,), 1e-3),)],
    draw=lambda r: (torch.tensor([r.gauss(0, 1) for _ in range(r.randint(2, 9))]) * 10 ** r.uniform(-7, 6),))

exercise("quantised_bytes",
    lambda weights, bits, block: weights * bits // 8 + -(-weights // block), [
    (lambda n, bits, block: n * bits // 8, "You forgot the scales: each block has one more byte."),
    (lambda n, bits, block: n * bits // 8 + 1, "You counted one scale in all: every block has one."),
    (lambda n, bits, block: n * bits // 8 + n // block, "The last block has a scale even where it is not full."),
    (lambda n, bits, block: n * bits // 8 + n // block + 1, "That is one scale too many where all blocks are full."),
    (lambda n, bits, block: -(-n // block) * (block * bits // 8 + 1),
     "You filled up the last block: its scale is whole, but it stores only the weights that it has."),
    (lambda n, bits, block: n * bits + -(-n // block), "The weights are still in bits: a byte has 8."),
    (lambda n, bits, block: n * (bits // 8) + -(-n // block),
     "Below 8 bits, bits // 8 is 0: multiply before you divide."),
    ],
    cases=[(64, 4, 32), (48, 4, 32), (10, 4, 32), (16, 8, 128), (70_000_000_000, 4, 16)],
    terms={"the weights": lambda weights, bits, block: weights * bits // 8,
           "the scales": lambda weights, bits, block: -(-weights // block)},
    draw=lambda r: (8 * r.randint(1, 10 ** r.randint(1, 9)), r.choice((2, 3, 4, 6, 8)), r.choice((16, 32, 64, 100))),
    equivalent_slips={"return weights * bits / 8 + math.ceil(weights / block)": "the weights fill whole bytes"})


def _round_to(
    value: float, e: int, f: int, lowest: int = 0, limit: int = 0, count: Callable[..., int] = round
) -> float:
    """By the definition, in fractions, or with a mistake.

    `lowest` moves the end of the normal numbers down and `limit` the largest number up, both by powers of two, and
    `count` rounds the magnitude to gaps.
    """
    bias, exact = 2 ** (e - 1) - 1, abs(Fraction(value))
    power = 1 - bias - lowest
    while exact >= Fraction(2) ** (power + 1):
        power += 1
    kept = count(exact / Fraction(2) ** (power - f)) * Fraction(2) ** (power - f)
    return math.copysign(math.inf if kept > (2 - Fraction(1, 2**f)) * 2 ** (bias + limit) else float(kept), value)


def _largest(e: int, f: int) -> float:
    return (2 - 2.0**-f) * 2.0 ** (2 ** (e - 1) - 1)


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
_SHRINKS = "Below the smallest normal number the gap stays the same; yours goes on shrinking."
exercise("round_to",
    _round_to, [
    (lambda x, e, f: _round_to(x, e, f, lowest=2000), _SHRINKS),
    (lambda x, e, f: _round_to(x, e, f, lowest=1), "The lowest power is 2^(1 - bias): exponent field 0 has that of 1."),
    (lambda x, e, f: 0.0 if abs(x) < 2.0 ** (2 - 2 ** (e - 1)) else _round_to(x, e, f),
     "Below the smallest normal number there are subnormal numbers, 2^(1 - bias - F) apart: yours becomes 0."),
    (lambda x, e, f: _round_to(x, e, f, count=floor), "You cut off what does not fit: round to the nearest number."),
    (lambda x, e, f: _round_to(x, e, f, count=floor if x > 0 else ceil), "You round down: take the nearest number."),
    (lambda x, e, f: _round_to(x, e, f, count=lambda n: floor(n + _HALF)),
     "A tie goes to the even code, and yours always goes away from zero."),
    (lambda x, e, f: _round_to(x, e, f, count=lambda n: floor(n + _HALF) if x > 0 else ceil(n - _HALF)),
     "A tie goes to the even code, and yours always goes up."),
    (lambda x, e, f: _round_to(x, e, f, limit=2000), "You forgot the largest number: beyond it is infinity."),
    (lambda x, e, f: min(max(_round_to(x, e, f), -_largest(e, f)), _largest(e, f)),
     "What rounds beyond the largest number becomes infinity; yours stays at the largest."),
    (lambda x, e, f: math.copysign(math.inf, x) if abs(x) > _largest(e, f) else _round_to(x, e, f),
     "Round first, then look whether the result is beyond the largest number."),
    (lambda x, e, f: abs(_round_to(x, e, f)) if math.isinf(_round_to(x, e, f)) else _round_to(x, e, f),
     "The infinity of a negative value is negative."),
    ],
    cases=[(257.0, 8, 7), (259.0, 8, 7), (255.0, 8, 7), (-0.1, 4, 3), (0.0, 5, 10), (1e-6, 5, 10), (2.98e-8, 5, 10),
           (2.99e-8, 5, 10), (65504.0, 5, 10), (65519.0, 5, 10), (65520.0, 5, 10), (65530.0, 5, 10), (-70000.0, 5, 10),
           (200000.0, 5, 10), (40000.0, 5, 10), (300.0, 4, 3), (-300.0, 4, 3), (257 + 2**-16, 8, 7), (1e-39, 8, 7),
           (0.0025, 3, 2)],
    draw=_draw_value,
    equivalent_slips={"if abs(rounded) > (2 - 4.0 ** (-fraction_bits)) * 2.0 ** bias:":
          "what is rounded is a multiple of the gap, and the next one after the largest is 2 · 2^bias"})
