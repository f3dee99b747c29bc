"""The spec table: device names as drivers report them, figures as two sources have them, and no guesses."""

import math
import re
from dataclasses import replace

import pytest
import torch

from helpers import specs
from helpers.explore.plan import trains

ROWS = pytest.mark.parametrize("spec", specs.table(), ids=lambda spec: spec.name)


@pytest.mark.parametrize(
    ("device", "row"),
    [
        ("NVIDIA H100 80GB HBM3", "NVIDIA H100 SXM5"),
        ("NVIDIA H200", "NVIDIA H200 SXM"),
        ("NVIDIA B200", "NVIDIA B200 (HGX, per GPU)"),
        ("A100-SXM4-40GB", "NVIDIA A100 SXM4 40GB"),
        ("NVIDIA A100 80GB PCIe", "NVIDIA A100 PCIe 80GB"),
        ("Tesla V100-SXM2-32GB", "NVIDIA V100 SXM2 32GB"),
        ("AMD Instinct MI300X", "AMD Instinct MI300X"),
        ("  nvidia h100  pcie ", "NVIDIA H100 PCIe"),
        ("Google TPU v5e", "Google TPU v5e"),  # no driver name: found by the row's own
    ],
)
def test_a_device_is_found_by_the_name_that_its_driver_reports(device, row):
    assert specs.find(device).name == row


@pytest.mark.parametrize(
    "device",
    [
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA H100",
        "NVIDIA GH200 480GB",
        "NVIDIA L40",
        "cpu",
        "",
        "NVIDIA H100 80GB HBM3 MIG 1g.10gb",  # a seventh of an H100 has no H100's peak
        "Tesla V100-SXM3-32GB",  # higher clocks than the SXM2
    ],
)
def test_an_unknown_device_is_none(device):
    assert specs.find(device) is None


def test_no_name_belongs_to_two_rows():
    names = [name.casefold() for spec in specs.table() for name in {spec.name, *spec.devices}]
    twice = {name for name in names if names.count(name) > 1}
    assert not twice, f"a device belongs to one row, but these names stand in two: {twice}"


# Dense TFLOP/s of the vector and of the matrix unit, GB/s and GB, typed from the vendors' sheets a second time, so that
# a slip of the finger in specs.toml differs from it; "-" is a rate that the sheet does not give.

VECTOR = ["float64", "float32"]
MATRIX = [
    "float64",
    "float32",
    "tfloat32",
    "bfloat16",
    "float16",
    "float8_e4m3fn",
    "float8_e5m2",
    "int8",
    "float4_e2m1fn",
]
DATASHEETS = """
  NVIDIA V100 SXM2 32GB      |  7.8  15.7 |     -     -     -      -    125      -      -      -     - |  900  32
  NVIDIA T4                  |    -   8.1 |     -     -     -      -     65      -      -    130     - |  320  16
  NVIDIA A100 SXM4 40GB      |  9.7  19.5 |  19.5     -   156    312    312      -      -    624     - | 1555  40
  NVIDIA A100 SXM4 80GB      |  9.7  19.5 |  19.5     -   156    312    312      -      -    624     - | 2039  80
  NVIDIA A100 PCIe 80GB      |  9.7  19.5 |  19.5     -   156    312    312      -      -    624     - | 1935  80
  NVIDIA H100 SXM5           |   34    67 |    67     - 494.5  989.5  989.5   1979   1979   1979     - | 3350  80
  NVIDIA H100 PCIe           |   26    51 |    51     -   378    756    756   1513   1513   1513     - | 2000  80
  NVIDIA H200 SXM            |   34    67 |    67     - 494.5  989.5  989.5   1979   1979   1979     - | 4800 141
  NVIDIA B200 (HGX, per GPU) |   37    75 |    37     -  1125   2250   2250   4500   4500      -  9000 | 7700 180
  NVIDIA L4                  |    -  30.3 |     -     -    60    121    121  242.5  242.5  242.5     - |  300  24
  NVIDIA GeForce RTX 3090    |    -  35.6 |     -     -  35.6     71     71      -      -      -     - |  936  24
  NVIDIA GeForce RTX 4090    |    -  82.6 |     -     -  82.6  165.2  165.2  330.3  330.3      -     - | 1008  24
  NVIDIA GeForce RTX 5090    |    - 104.8 |     -     - 104.8  209.5  209.5    419    419      -     - | 1792  32
  AMD Instinct MI300X        | 81.7 163.4 | 163.4 163.4 653.7 1307.4 1307.4 2614.9 2614.9 2614.9     - | 5300 192
  Google TPU v5e             |    -     - |     -     -     -    197      -      -      -    393     - |  819  16
  Google TPU v5p             |    -     - |     -     -     -    459      -      -      -    918     - | 2765  95
  Google TPU v6e             |    -     - |     -     -     -    918      -      -      -   1836     - | 1638  32
"""

SHEETS = [[part.strip() for part in line.split("|")] for line in DATASHEETS.strip().splitlines()]


def printed(dtypes, cells):
    """The rates of a unit in FLOP/s, as the sheet has them."""
    pairs = zip(dtypes, cells.split(), strict=True)
    return {dtype: float(rate) * 1e12 for dtype, rate in pairs if rate != "-"}


@pytest.mark.parametrize(("name", "vector", "matrix", "memory"), SHEETS, ids=[name for name, *_ in SHEETS])
def test_a_row_says_what_the_datasheet_says(name, vector, matrix, memory):
    spec = specs.find(name)
    assert spec.vector == pytest.approx(printed(VECTOR, vector)), f"{name}: a vector rate is not the datasheet's"
    assert spec.matrix == pytest.approx(printed(MATRIX, matrix)), f"{name}: a matrix rate is not the datasheet's"
    bandwidth, capacity = map(float, memory.split())
    assert spec.bandwidth == pytest.approx(bandwidth * 1e9), f"{name}: the bandwidth is not the datasheet's"
    assert spec.memory == pytest.approx(capacity * 1e9), f"{name}: the memory is not the datasheet's"


# NVIDIA's architecture whitepapers (Volta, Turing, A100, H100, GA102, Ada, RTX Blackwell) and AMD's of CDNA 3.
@pytest.mark.parametrize(
    ("name", "dtype", "units", "clock", "flops"),
    [
        ("NVIDIA V100 SXM2 32GB", "float16", 640, 1.53e9, 128),
        ("NVIDIA V100 SXM2 32GB", "float32", 5120, 1.53e9, 2),
        ("NVIDIA T4", "float16", 320, 1.59e9, 128),
        ("NVIDIA T4", "float32", 2560, 1.59e9, 2),
        ("NVIDIA A100 SXM4 80GB", "bfloat16", 432, 1.41e9, 512),
        ("NVIDIA A100 SXM4 80GB", "float32", 6912, 1.41e9, 2),
        ("NVIDIA H100 SXM5", "bfloat16", 528, 1.83e9, 1024),
        ("NVIDIA H100 SXM5", "float32", 16896, 1.98e9, 2),
        ("NVIDIA H100 PCIe", "bfloat16", 456, 1.62e9, 1024),
        ("NVIDIA H100 PCIe", "float32", 14592, 1.755e9, 2),
        ("NVIDIA L4", "bfloat16", 232, 2.04e9, 256),
        ("NVIDIA L4", "float32", 7424, 2.04e9, 2),
        ("NVIDIA GeForce RTX 3090", "bfloat16", 328, 1.695e9, 128),
        ("NVIDIA GeForce RTX 4090", "bfloat16", 512, 2.52e9, 128),
        ("NVIDIA GeForce RTX 5090", "bfloat16", 680, 2.407e9, 128),
        ("AMD Instinct MI300X", "bfloat16", 304, 2.1e9, 2048),
        ("AMD Instinct MI300X", "float32", 304, 2.1e9, 256),
    ],
)
def test_a_rate_is_clock_times_units_times_flops_per_cycle(name, dtype, units, clock, flops):
    # Datasheets print two or three digits.
    assert specs.find(name).peak(dtype) == pytest.approx(units * clock * flops, rel=0.02)


def complaints(spec):
    """What cannot be right about a row, in sentences; a machine of any later year has room."""
    name, rates = spec.name, {**spec.vector, **spec.matrix}
    if spec.year < 2016 or spec.year != int(spec.year):
        yield f"{name}: the year is that in which it came to market, got {spec.year}"
    if len(spec.source) < 10:
        yield f"{name}: the source names a document and its edition, got {spec.source!r}"
    for dtype, rate in rates.items():
        if not 1e12 <= rate <= 1e18:
            yield f"{name}: a rate is in FLOP/s, a chip's between 1e12 and 1e18, got {rate:g} for {dtype}"
    for what, size, least, most in [("bandwidth", spec.bandwidth, 5e10, 1e15), ("memory", spec.memory, 4e9, 1e14)]:
        if not least <= size <= most:
            yield f"{name}: {what} is in bytes, a chip's between {least:g} and {most:g}, got {size:g}"
    if not spec.matrix:
        yield f"{name}: a matrix unit has a rate for at least one dtype"
    if unknown := rates.keys() - set(MATRIX):
        yield f"{name}: a dtype is one of {', '.join(MATRIX)}, got {', '.join(sorted(unknown))}"
    if wrong := spec.vector.keys() - {"float64", "float32"}:
        yield f"{name}: the vector unit's rates are those of float64 and float32, got {', '.join(wrong)}"
    yield from complaints_of_pairs(spec)


# (machine, wide, narrow) where a sheet does print another ratio, as some newer ones do for int8.
AS_PRINTED: set[tuple[str, str, str]] = set()


def complaints_of_pairs(spec):
    """What cannot be right about two rates of the matrix unit, which does half the bits at twice the rate."""
    halves = [("tfloat32", "bfloat16"), ("bfloat16", "float8_e4m3fn"), ("float16", "int8"), ("bfloat16", "int8")]
    for wide, narrow in halves:
        if {wide, narrow} - spec.matrix.keys() or (spec.name, wide, narrow) in AS_PRINTED:
            continue
        if not 0.45 < spec.matrix[wide] / spec.matrix[narrow] < 0.55:
            got = f"{spec.matrix[narrow]:g} and {spec.matrix[wide]:g}; if the sheet prints that, put it on AS_PRINTED"
            yield f"{spec.name}: a unit does {narrow} at twice its rate for {wide}, got {got}"


@ROWS
def test_nothing_looks_wrong_about_a_row(spec):
    assert not list(complaints(spec))


def test_a_machine_of_2027_has_room():
    rates = {"bfloat16": 8e15, "float8_e4m3fn": 16e15, "float4_e2m1fn": 48e15}
    later = replace(specs.find("NVIDIA B200"), year=2027, bandwidth=22e12, memory=288e9, matrix=rates)
    assert not list(complaints(later))
    assert trains(later) and not trains(replace(later, matrix={"float4_e2m1fn": 48e15}))


@pytest.mark.parametrize(
    ("slip", "words"),
    [
        ({"bandwidth": 3350}, "bandwidth is in bytes, a chip's between 5e.10 and 1e.15, got 3350"),
        ({"memory": 80}, "memory is in bytes"),
        (
            {"matrix": {"bfloat16": 989.5}},
            "a rate is in FLOP/s, a chip's between 1e12 and 1e18, got 989.5 for bfloat16",
        ),
        ({"matrix": {"bf16": 989.5e12}}, "a dtype is one of float64, .* got bf16"),
        ({"matrix": {"bfloat16": 1979e12, "float8_e4m3fn": 1979e12}}, "float8_e4m3fn at twice its rate for bfloat16"),
        ({"matrix": {}}, "a matrix unit has a rate"),
        ({"vector": {"float16": 1e14}}, "the vector unit's rates are those of float64 and float32, got float16"),
        ({"year": 22}, "the year is that in which it came to market, got 22"),
        ({"source": ""}, "the source names a document"),
    ],
)
def test_a_slip_in_a_new_row_is_told(slip, words):
    (complaint,) = complaints(replace(specs.find("NVIDIA H100 SXM5"), **slip))
    assert re.match(f"NVIDIA H100 SXM5: .*{words}", complaint)


@pytest.mark.parametrize(
    ("name", "dtype", "rate", "ridge"),
    [
        ("NVIDIA H100 SXM5", torch.bfloat16, 989.5e12, 295),
        ("NVIDIA H100 SXM5", torch.float32, 67e12, 20),  # the vector unit
        ("NVIDIA H100 SXM5", torch.float64, 67e12, 20),  # the matrix unit, twice the vector unit
        ("NVIDIA H100 SXM5", torch.float8_e5m2, 1979e12, 591),  # as the other float8
        ("NVIDIA H100 SXM5", "tfloat32", 494.5e12, 148),
        ("NVIDIA H200 SXM", "bfloat16", 989.5e12, 206),
        ("NVIDIA A100 SXM4 80GB", "bfloat16", 312e12, 153),
        ("Tesla V100-SXM2-32GB", torch.float64, 7.8e12, 9),
        ("AMD Instinct MI300X", torch.float32, 163.4e12, 31),  # the matrix unit
        ("Google TPU v5e", "bfloat16", 197e12, 241),
    ],
)
def test_peaks_and_ridges_as_they_are_published(name, dtype, rate, ridge):
    spec = specs.find(name)
    assert (spec.peak(dtype), round(spec.peak(dtype) / spec.bandwidth)) == (rate, ridge)


def test_a_rate_that_the_vendor_does_not_give_is_an_error():
    with pytest.raises(ValueError, match=r"32GB has no rate for bfloat16 on its spec sheet, only for float16, fl"):
        specs.find("Tesla V100-SXM2-32GB").peak(torch.bfloat16)


@pytest.mark.parametrize(
    ("rate", "peak", "share"),
    [
        (156e12, 312e12, 0.5),
        (0, 312e12, 0),
        (5e15, 1e15, 5),  # shows that a denominator is wrong, and how far
    ],
)
def test_mfu_is_a_ratio_of_rates(rate, peak, share):
    assert specs.mfu(rate, peak) == share


@pytest.mark.parametrize("peak", [None, 0, -1.0, math.nan, math.inf, True])
def test_mfu_needs_a_peak(peak):
    words = r" this very device, or measure one with machine\.peak\(dtype\) and say so$"
    with pytest.raises(ValueError, match=words):
        specs.mfu(1e12, peak)


def test_mfu_needs_a_time():
    with pytest.raises(ValueError, match="was the time zero"):
        specs.mfu(math.inf, 1e12)
