"""Floating-point formats as values: what a pattern of bits means, and which pattern stands for a number.

A finite number is (-1)^sign * 2^(e - bias) * 1.fraction, where e is the stored exponent. Where e is 0, the hidden bit
is 0 and the exponent is that of e = 1: these are the subnormal numbers. Sources: IEEE 754-2019 (float64, float32,
float16); Kalamkar et al. 2019 (bfloat16); NVIDIA A100 whitepaper (tfloat32); OCP 8-bit Floating Point Specification 1.0
(float8_e4m3fn, float8_e5m2); OCP Microscaling Formats 1.0 (float4_e2m1fn).
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from numbers import Rational, Real

import torch


@dataclass(frozen=True)
class FloatFormat:
    """A binary floating-point format.

    `nonfinite` says what the largest stored exponent is for: "ieee" (infinities and NaN), "nan only" (finite numbers,
    but NaN where exponent and fraction are all ones) or "none" (finite numbers only).
    """

    name: str
    exponent_bits: int
    fraction_bits: int
    bias: int
    nonfinite: str = "ieee"

    @property
    def bits(self) -> int:
        """Bits of one number: the sign, the exponent and the fraction."""
        return 1 + self.exponent_bits + self.fraction_bits

    @property
    def sign_bit(self) -> int:
        """The code with nothing but the sign set."""
        return 1 << (self.bits - 1)

    @property
    def max_code(self) -> int:
        """The code of the largest finite number."""
        special = {"ieee": (1 << self.fraction_bits) + 1, "nan only": 2, "none": 1}[self.nonfinite]
        return self.sign_bit - special

    @property
    def nan_code(self) -> int | None:
        """The code of a (quiet) NaN; None where the format has none."""
        beyond = {"ieee": 1 + (1 << self.fraction_bits) // 2, "nan only": 1, "none": None}[self.nonfinite]
        return None if beyond is None else self.max_code + beyond

    @property
    def inf_code(self) -> int | None:
        """The code of positive infinity; None where the format has none."""
        return self.max_code + 1 if self.nonfinite == "ieee" else None

    @property
    def max(self) -> float:
        """The largest finite number."""
        return decode(self.max_code, self).value

    @property
    def smallest_normal(self) -> float:
        """The smallest positive number with a hidden 1; `torch.finfo` calls it tiny."""
        return math.ldexp(1.0, 1 - self.bias)

    @property
    def smallest_subnormal(self) -> float:
        """The smallest positive number."""
        return math.ldexp(1.0, 1 - self.bias - self.fraction_bits)

    @property
    def eps(self) -> float:
        """The distance from 1 to the next larger number."""
        return math.ldexp(1.0, -self.fraction_bits)

    @property
    def dtype(self) -> torch.dtype | None:
        """The torch dtype that stores one number per element; None for tfloat32 and float4_e2m1fn."""
        return getattr(torch, self.name, None)


BANDS = ("zero", "subnormal", "normal", "infinite")
_SPECIAL = {"zero": "0", "infinity": "∞", "nan": "NaN"}
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

FORMATS: dict[str, FloatFormat] = {
    fmt.name: fmt
    for fmt in (
        FloatFormat("float64", 11, 52, 1023),
        FloatFormat("float32", 8, 23, 127),
        FloatFormat("tfloat32", 8, 10, 127),  # 19 bits inside the tensor core, stored as float32
        FloatFormat("float16", 5, 10, 15),
        FloatFormat("bfloat16", 8, 7, 127),
        FloatFormat("float8_e4m3fn", 4, 3, 7, "nan only"),
        FloatFormat("float8_e5m2", 5, 2, 15),
        FloatFormat("float4_e2m1fn", 2, 1, 1, "none"),
    )
}


@dataclass(frozen=True)
class Decoded:
    """What a code says: the three stored fields, the number they stand for, and which kind of number it is.

    `kind` is "zero", "subnormal", "normal", "infinity" or "nan". `exponent` and `fraction` are the integers stored
    in the fields, bias and hidden bit not applied.
    """

    sign: int
    exponent: int
    fraction: int
    value: float
    kind: str


@dataclass(frozen=True)
class Neighbours:
    """The number that a format stores for a value, and the next one on either side; None where there is none."""

    below: float | None
    nearest: float
    above: float | None


def format_of(fmt: FloatFormat | str | torch.dtype) -> FloatFormat:
    """The format of that name or torch dtype; a FloatFormat is returned as it is.

    >>> format_of("bfloat16") is format_of(torch.bfloat16)
    True

    Raises ValueError for a name or dtype that is not in FORMATS, TypeError for anything else.
    """
    if isinstance(fmt, FloatFormat):
        return fmt
    if not isinstance(fmt, str | torch.dtype):
        raise TypeError(f"a format is a name, a torch dtype or a FloatFormat, got {fmt!r}")
    name = str(fmt).removeprefix("torch.")
    if name not in FORMATS:
        raise ValueError(f"no floating-point format {name!r}; there are {', '.join(FORMATS)}")
    return FORMATS[name]


def decode(code: int, fmt: FloatFormat | str | torch.dtype) -> Decoded:
    """The fields and the exact value of a bit pattern.

    >>> decode(0b0_01111_1000000000, "float16")
    Decoded(sign=0, exponent=15, fraction=512, value=1.5, kind='normal')

    Raises TypeError for a code that is no integer, ValueError for one outside 0 to 2^bits - 1.
    """
    fmt = format_of(fmt)
    if isinstance(code, bool) or not isinstance(code, int):
        raise TypeError(f"a code is an integer, got {code!r}; encode(value, fmt) gives the code of a number")
    if not 0 <= code < 1 << fmt.bits:
        raise ValueError(f"code {code} does not fit {fmt.name}: {fmt.bits} bits hold 0 to {(1 << fmt.bits) - 1}")
    sign = code >> (fmt.bits - 1)
    exponent = (code >> fmt.fraction_bits) & ((1 << fmt.exponent_bits) - 1)
    fraction = code & ((1 << fmt.fraction_bits) - 1)
    magnitude = code & (fmt.sign_bit - 1)
    if magnitude > fmt.max_code:
        kind = "infinity" if magnitude == fmt.inf_code else "nan"
        value = math.inf if kind == "infinity" else math.nan
    else:
        hidden = 0 if exponent == 0 else 1 << fmt.fraction_bits
        value = math.ldexp(hidden + fraction, max(exponent, 1) - fmt.bias - fmt.fraction_bits)
        kind = "normal" if hidden else "subnormal" if fraction else "zero"
    return Decoded(sign, exponent, fraction, -value if sign else value, kind)


def encode(value: float | Fraction, fmt: FloatFormat | str | torch.dtype) -> int:
    """The code of the representable number nearest to the value; a tie goes to the even code.

    >>> encode(1.5, "float16") == 0b0_01111_1000000000
    True

    Integers and fractions of any size are rounded once, exactly. A value that rounds beyond the largest finite number
    becomes infinity; in a format without infinities (float8_e4m3fn) it becomes NaN, and in one without either
    (float4_e2m1fn) the largest finite number. Infinities are treated like such values. A NaN becomes the quiet NaN of
    the format.

    For 8 bits the OCP specification leaves the choice between this and saturation, the largest finite number. ml_dtypes
    does as here in both formats; PyTorch in float8_e5m2 alone. Since github.com/pytorch/pytorch/pull/178817 (2026) it
    saturates float8_e4m3fn: 1000 and infinity become 448, as torch 2.13 does it, where older versions gave NaN.

    Raises TypeError for anything but a real number, ValueError for a NaN where the format has none.
    """
    fmt = format_of(fmt)
    if isinstance(value, bool) or not isinstance(value, Real):
        kind = type(value).__name__
        raise TypeError(f"encode takes a real number, got {value!r} ({kind}); for a tensor pass t.item()")
    exact = value if isinstance(value, Rational) else float(value)
    if exact != exact:
        if fmt.nan_code is None:
            raise ValueError(f"{fmt.name} has no NaN; every one of its codes is a finite number")
        return fmt.nan_code
    negative = exact < 0 or (exact == 0 and math.copysign(1.0, exact) < 0)
    sign = fmt.sign_bit if negative else 0
    beyond = fmt.max_code  # the largest finite number, unless a code of another kind comes after it
    if fmt.nonfinite != "none":
        beyond += 1  # infinity, or the NaN of float8_e4m3fn
    if exact in (math.inf, -math.inf):
        return sign | beyond
    return sign | min(_round(abs(Fraction(exact)), fmt), beyond)


def _round(value: Fraction, fmt: FloatFormat) -> int:
    """The code of the nearest number, as if the exponent had no upper limit (the result may exceed max_code)."""
    if value == 0:
        return 0
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    if value < Fraction(2) ** exponent:
        exponent -= 1
    exponent = max(exponent, 1 - fmt.bias)  # below this, numbers are subnormal: the spacing no longer shrinks
    steps = round(value / Fraction(2) ** (exponent - fmt.fraction_bits))  # round() on a Fraction: ties to even
    # A normal number has 2^fraction_bits steps for its hidden 1, and those carry the exponent field up by one.
    return steps + ((exponent + fmt.bias - 1) << fmt.fraction_bits)


def neighbours(value: float | Fraction, fmt: FloatFormat | str | torch.dtype) -> Neighbours:
    """The number that the format stores for the value, with the next smaller and the next larger one.

    >>> neighbours(0.1, "bfloat16")
    Neighbours(below=0.099609375, nearest=0.10009765625, above=0.1005859375)

    Beyond the largest finite number lies infinity, or None in a format without it. Zero counts once: the neighbours
    of the smallest subnormal number are 0 and its double. Raises TypeError for anything but a real number, ValueError
    for a NaN and for a value that the format stores as one.
    """
    fmt = format_of(fmt)
    code = encode(value, fmt)
    nearest = decode(code, fmt)
    if nearest.kind == "nan":
        raise ValueError(f"{value!r} has no neighbours: {fmt.name} stores it as NaN")
    # Codes are sign and magnitude; as a signed integer they count through the numbers in order.
    position = -(code ^ fmt.sign_bit) if code & fmt.sign_bit else code

    def at(step: int) -> float | None:
        magnitude = abs(position + step)
        exists = magnitude <= (fmt.inf_code or fmt.max_code)
        return math.copysign(decode(magnitude, fmt).value, position + step) if exists else None

    return Neighbours(at(-1), nearest.value, at(1))


def values(fmt: FloatFormat | str | torch.dtype) -> list[float]:
    """All finite numbers of a format in ascending order, zero once.

    >>> values("float4_e2m1fn")[-4:]
    [2.0, 3.0, 4.0, 6.0]

    Raises ValueError for a format of more than 16 bits, which has too many.
    """
    fmt = format_of(fmt)
    if fmt.bits > 16:
        raise ValueError(f"{fmt.name} has 2^{fmt.bits} codes; values() lists formats of at most 16 bits")
    positive = [decode(code, fmt).value for code in range(1, fmt.max_code + 1)]
    return [-value for value in reversed(positive)] + [0.0, *positive]


def kept(tensor: torch.Tensor, fmt: FloatFormat | str | torch.dtype) -> dict[str, float]:
    """What becomes of the numbers of a tensor in a format: the share of each of BANDS.

    Those that are 0 do not count. A magnitude up to half of the smallest number becomes zero; one beyond the largest by
    half a gap or more becomes infinite.

    >>> kept(torch.tensor([0.0, 1e-9, 1e-6, 1.0, 1e6]), "float16")
    {'zero': 0.25, 'subnormal': 0.25, 'normal': 0.25, 'infinite': 0.25}

    Raises ValueError for a format without infinity and for a tensor in which every number is 0.
    """
    fmt = format_of(fmt)
    if fmt.inf_code is None:
        raise ValueError(f"{fmt.name} has no infinity: take a format that follows the IEEE rule")
    magnitudes = tensor[tensor != 0].abs().double()
    if not len(magnitudes):
        raise ValueError("every number of the tensor is 0: there is nothing that a format could lose")
    half_a_gap = fmt.max * fmt.eps / (2 - fmt.eps) / 2
    is_zero = magnitudes <= fmt.smallest_subnormal / 2
    is_infinite = magnitudes >= fmt.max + half_a_gap
    is_normal = (magnitudes >= fmt.smallest_normal) & ~is_infinite
    is_subnormal = ~(is_zero | is_normal | is_infinite)
    which = (is_zero, is_subnormal, is_normal, is_infinite)
    return {band: found.double().mean().item() for band, found in zip(BANDS, which, strict=True)}


def formula(code: int, fmt: FloatFormat | str | torch.dtype) -> str:
    """The product that a bit pattern stands for, as text.

    >>> formula(0b1_10000001_0100000, "bfloat16")
    '−2² × 1.25 = −5'
    """
    fmt = format_of(fmt)
    number = decode(code, fmt)
    sign = "−" if number.sign else ""
    if number.kind in _SPECIAL:
        return sign + _SPECIAL[number.kind]
    hidden = 1 if number.kind == "normal" else 0
    significand = hidden + number.fraction / 2**fmt.fraction_bits
    value = abs(number.value)
    exact = all(Fraction(f"{x:.9g}") == Fraction(x) for x in (significand, value))
    equals = "=" if exact else "≈"
    power = str(max(number.exponent, 1) - fmt.bias).translate(_SUPERSCRIPTS)
    return f"{sign}2{power} × {significand:.9g} {equals} {sign}{value:.9g}"
