"""Every code of every format of at most 16 bits, and samples above, against torch's own bit casts and ml_dtypes."""

import math
import random
import struct
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
import torch

from helpers import formats
from helpers.formats import FORMATS, decode, encode

INTEGERS = {8: torch.uint8, 16: torch.uint16, 32: torch.int32, 64: torch.int64}


def each(chosen):
    """A test for each format that is chosen."""
    return pytest.mark.parametrize("fmt", chosen, ids=lambda fmt: fmt.name)


EACH = each(FORMATS.values())
NUMPY = {"float64": np.float64, "float32": np.float32, "float16": np.float16} | {
    name: getattr(ml_dtypes, name) for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn")
}


def same(a: float, b: float) -> bool:
    """Equal, with the sign of zero, and NaN equal to NaN."""
    return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))


def sample_codes(fmt) -> list[int]:
    """All codes up to 16 bits; above, 20,000 random ones and every edge."""
    if fmt.bits <= 16:
        return list(range(1 << fmt.bits))
    ends = [0, 1, 2, (1 << fmt.fraction_bits) - 1, 1 << fmt.fraction_bits]
    edges = [*ends, fmt.max_code, fmt.inf_code, fmt.inf_code + 1, fmt.nan_code, fmt.sign_bit - 1]
    draw = random.Random(0)
    some = [draw.getrandbits(fmt.bits) for _ in range(20_000)]
    return [code ^ sign for code in edges for sign in (0, fmt.sign_bit)] + some


def read(codes: list[int], fmt) -> list[float]:
    """The values of these codes by others: torch, struct (for tfloat32) and ml_dtypes (for float4_e2m1fn)."""
    if fmt.name == "tfloat32":  # float32 without its last 13 bits
        return [struct.unpack("<f", struct.pack("<I", code << 13))[0] for code in codes]
    if fmt.dtype is None:
        return np.array(codes, dtype=np.uint8).view(ml_dtypes.float4_e2m1fn).astype(float).tolist()
    wide = torch.tensor([code - (1 << fmt.bits) if fmt.bits >= 32 and code & fmt.sign_bit else code for code in codes])
    return wide.to(INTEGERS[fmt.bits]).view(fmt.dtype).double().tolist()


@EACH
def test_decode_and_its_inverse(fmt):
    codes = sample_codes(fmt)
    for code, expected in zip(codes, read(codes, fmt), strict=True):
        number, size = decode(code, fmt), abs(expected)
        assert same(number.value, expected), f"{code:#x}"
        assert (number.sign << fmt.exponent_bits | number.exponent) << fmt.fraction_bits | number.fraction == code
        finite = "zero" if size == 0 else "subnormal" if size < fmt.smallest_normal else "normal"
        assert number.kind == ("nan" if math.isnan(size) else "infinity" if math.isinf(size) else finite)
        assert encode(number.value, fmt) == (fmt.nan_code if number.kind == "nan" else code)


def awkward(fmt) -> list[float]:
    """Values where rounding is hard: midpoints between neighbours and their neighbours in float64, and the limits."""
    draw = random.Random(1)
    codes = range(fmt.max_code) if fmt.bits <= 8 else [draw.randrange(fmt.max_code) for _ in range(3000)]
    middles = [(decode(c, fmt).value + decode(c + 1, fmt).value) / 2 for c in codes]
    top = fmt.max + (fmt.max - decode(fmt.max_code - 1, fmt).value) / 2 if fmt.bits < 64 else math.inf
    limits = [0.0, fmt.max, top, fmt.smallest_normal, fmt.smallest_subnormal, fmt.smallest_subnormal / 2, math.inf]
    spread = [draw.lognormvariate(0, 8) for _ in range(3000)]
    near = [math.nextafter(x, to) for x in middles + limits for to in (0, math.inf)]
    return [s * x for x in [*middles, *limits, *near, *spread] for s in (1.0, -1.0)]


@pytest.mark.parametrize("name", NUMPY)
def test_encode_rounds_like_ml_dtypes(name):
    fmt = FORMATS[name]
    # From float32 to the small formats: ml_dtypes, like torch, goes from float64 through float32 and rounds twice.
    with np.errstate(over="ignore"):
        values = np.array(awkward(fmt)).astype(np.float32 if fmt.bits < 32 else np.float64)
        expected = values.astype(NUMPY[name]).astype(float)
    for value, want in zip(values.tolist(), expected.tolist(), strict=True):
        assert same(decode(encode(value, fmt), fmt).value, want), value


def test_encode_rounds_once_where_two_roundings_differ():
    # Just above the midpoint of 1 and the next bfloat16: exact rounding goes up, by way of float32 it would tie to 1.
    value = 1 + Fraction(1, 2**8) + Fraction(1, 2**40)
    assert decode(encode(value, "bfloat16"), "bfloat16").value == 1 + 2**-7
    assert decode(encode(2**53 + 1, "float64"), "float64").value == 2**53


def test_the_nan_is_the_quiet_one():
    """All ones in the exponent, and of the fraction the first; float8_e4m3fn has but one NaN, of ones throughout."""
    quiet = {"float64": 0x7FF8 << 48, "float32": 0x7FC0 << 16, "tfloat32": 0b0_11111111_1000000000, "float16": 0x7E00}
    quiet |= {"bfloat16": 0x7FC0, "float8_e4m3fn": 0x7F, "float8_e5m2": 0x7E, "float4_e2m1fn": None}
    assert {name: fmt.nan_code for name, fmt in FORMATS.items()} == quiet
    assert encode(math.nan, "float16") == torch.tensor(math.nan).half().view(torch.int16).item() == 0x7E00


@each([fmt for fmt in FORMATS.values() if fmt.dtype is not None])
def test_limits_agree_with_finfo(fmt):
    info = torch.finfo(fmt.dtype)
    assert (fmt.max, fmt.eps, fmt.smallest_normal, fmt.bits) == (info.max, info.eps, info.tiny, info.bits)
    assert decode(1, fmt).value == fmt.smallest_subnormal


BEYOND = [464.1, 480.0, 1000.0, 61440.0, 1e6, math.inf]  # 464 is the middle between 448 and the NaN's place


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("value", BEYOND)
def test_beyond_e4m3_is_nan_here_and_in_ml_dtypes_and_448_in_torch(value, sign):
    assert encode(sign * value, "float8_e4m3fn") & 0x7F == 0x7F
    with np.errstate(over="ignore", invalid="ignore"):
        assert np.isnan(np.float32(sign * value).astype(ml_dtypes.float8_e4m3fn))
    assert torch.tensor(sign * value).to(torch.float8_e4m3fn).item() == sign * 448
    assert torch.full((64,), sign * value).to(torch.float8_e4m3fn).float().unique().item() == sign * 448


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("value", [61439.0, 61440.0, 1e6, math.inf])  # 61440 is the middle after 57344
def test_beyond_e5m2_is_infinity_here_and_in_torch_and_in_ml_dtypes(value, sign):
    found = decode(encode(sign * value, "float8_e5m2"), "float8_e5m2").value
    assert found == sign * (57344 if value < 61440 else math.inf)
    assert torch.tensor(sign * value).to(torch.float8_e5m2).item() == found
    with np.errstate(over="ignore"):
        assert np.float32(sign * value).astype(ml_dtypes.float8_e5m2) == found


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
def test_a_nan_of_8_bits_is_one_everywhere(name):
    assert torch.tensor(math.nan).to(getattr(torch, name)).isnan()
    assert math.isnan(decode(encode(math.nan, name), name).value)


@each([fmt for fmt in FORMATS.values() if fmt.bits <= 16])
def test_values_are_the_finite_numbers_in_order(fmt):
    finite = {decode(code, fmt).value for code in range(1 << fmt.bits)} - {math.inf, -math.inf}
    assert formats.values(fmt) == sorted(x for x in finite if not math.isnan(x))


@each([fmt for fmt in FORMATS.values() if fmt.bits <= 8])
def test_neighbours_walk_through_all_values(fmt):
    line = formats.values(fmt)
    ends = [-math.inf, math.inf] if fmt.inf_code else [None, None]
    for below, value, above in zip([ends[0], *line], line, [*line[1:], ends[1]], strict=False):
        assert formats.neighbours(value, fmt) == formats.Neighbours(below, value, above)
    if fmt.inf_code:
        assert formats.neighbours(math.inf, fmt) == formats.Neighbours(fmt.max, math.inf, None)


@pytest.mark.parametrize(
    ("code", "name", "text"),
    [
        (0, "float16", "0"),
        (0x8000, "float16", "−0"),
        (0x7C00, "float16", "∞"),
        (0x7E00, "float16", "NaN"),
        (1, "float16", "2⁻¹⁴ × 0.0009765625 ≈ 5.96046448e-08"),  # digits are left out
        (0xC0A0, "bfloat16", "−2² × 1.25 = −5"),
    ],
)
def test_formula(code, name, text):
    assert formats.formula(code, name) == text


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: decode(65536, "float16"), ValueError, "code 65536 does not fit float16: 16 bits hold 0 to 65535"),
        (lambda: decode(-1, "float16"), ValueError, "code -1 does not fit"),
        (lambda: decode(1.0, "float16"), TypeError, "a code is an integer, got 1.0; encode("),
        (lambda: decode(1, "float17"), ValueError, "no floating-point format 'float17'; there are float64, float32"),
        (lambda: decode(1, 16), TypeError, "a format is a name, a torch dtype or a FloatFormat, got 16"),
        (lambda: encode("1", "float16"), TypeError, "encode takes a real number, got '1' (str)"),
        (lambda: encode(torch.tensor(1.0), "float16"), TypeError, "pass t.item()"),
        (lambda: encode(math.nan, "float4_e2m1fn"), ValueError, "float4_e2m1fn has no NaN"),
        (lambda: formats.neighbours(math.nan, "float16"), ValueError, "nan has no neighbours"),
        (lambda: formats.neighbours(1e9, "float8_e4m3fn"), ValueError, "float8_e4m3fn stores it as NaN"),
        (lambda: formats.values("float32"), ValueError, "float32 has 2^32 codes"),
        (lambda: formats.kept(torch.zeros(3), "float16"), ValueError, "every number of the tensor is 0"),
        (lambda: formats.kept(torch.ones(3), "float8_e4m3fn"), ValueError, "float8_e4m3fn has no infinity"),
    ],
)
def test_bad_input_gets_one_clear_sentence(call, error, message):
    with pytest.raises(error) as caught:
        call()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_kept_is_what_a_conversion_leaves(dtype):
    torch.manual_seed(0)
    numbers = torch.cat([torch.zeros(7), torch.randn(10_000) * 2.0 ** torch.randint(-140, 128, (10_000,))])
    kept, info = numbers.to(dtype), torch.finfo(dtype)
    found = formats.kept(numbers, dtype)
    whole = (numbers != 0).sum()
    assert found["zero"] == ((kept == 0) & (numbers != 0)).sum() / whole
    assert found["infinite"] == kept.isinf().sum() / whole
    assert found["subnormal"] == ((kept != 0) & (numbers.abs() < info.tiny)).sum() / whole
    assert sum(found.values()) == pytest.approx(1)


@pytest.mark.parametrize("end", [65519.99, 65520.0])
def test_kept_tells_the_two_sides_of_half_a_gap_beyond_the_largest(end):
    share = formats.kept(torch.tensor([end], dtype=torch.float64), "float16")
    assert share["infinite"] == torch.tensor(end, dtype=torch.float64).to(torch.float16).isinf()
