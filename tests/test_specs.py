"""The spec table: device names as drivers report them, rates by clock × units × FLOP per cycle, and no guesses."""

import math

import pytest
import torch

from helpers import specs

ROWS = pytest.mark.parametrize("spec", specs.table(), ids=lambda spec: spec.name)


@pytest.mark.parametrize(
    ("device", "row"),
    [
        ("NVIDIA H100 80GB HBM3", "NVIDIA H100 SXM5"),
        ("NVIDIA H100 PCIe", "NVIDIA H100 PCIe"),
        ("NVIDIA H100 NVL", "NVIDIA H100 NVL"),
        ("NVIDIA H200", "NVIDIA H200 SXM"),
        ("NVIDIA H200 NVL", "NVIDIA H200 NVL"),
        ("NVIDIA B200", "NVIDIA B200 (HGX, per GPU)"),
        ("NVIDIA L4", "NVIDIA L4"),
        ("NVIDIA L40S", "NVIDIA L40S"),
        ("NVIDIA A100-SXM4-40GB", "NVIDIA A100 SXM4 40GB"),
        ("A100-SXM4-40GB", "NVIDIA A100 SXM4 40GB"),
        ("NVIDIA A100-SXM4-80GB", "NVIDIA A100 SXM4 80GB"),
        ("NVIDIA A100-PCIE-40GB", "NVIDIA A100 PCIe 40GB"),
        ("NVIDIA A100 80GB PCIe", "NVIDIA A100 PCIe 80GB"),
        ("Tesla V100-SXM2-16GB", "NVIDIA V100 SXM2 16GB"),
        ("Tesla V100-SXM2-32GB", "NVIDIA V100 SXM2 32GB"),
        ("Tesla T4", "NVIDIA T4"),
        ("NVIDIA GeForce RTX 3090", "NVIDIA GeForce RTX 3090"),
        ("NVIDIA GeForce RTX 4090", "NVIDIA GeForce RTX 4090"),
        ("NVIDIA GeForce RTX 5090", "NVIDIA GeForce RTX 5090"),
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
        "NVIDIA GeForce RTX 4090 D",
        "NVIDIA GeForce RTX 3090 Ti",
        "NVIDIA H100",
        "NVIDIA H100 80GB HBM3 MIG 1g.10gb",  # a seventh of an H100 has no H100's peak
        "NVIDIA A100-SXM4-40GB MIG 3g.20gb",
        "NVIDIA GH200 480GB",
        "NVIDIA H20",
        "NVIDIA L40",
        "Tesla V100-SXM3-32GB",  # higher clocks than the SXM2
        "Tesla V100-PCIE-32GB",
        "AMD Instinct MI300A",
        "AMD EPYC 9575F",
        "cpu",
        "",
    ],
)
def test_an_unknown_device_is_none(device):
    assert specs.find(device) is None


def test_no_name_belongs_to_two_rows():
    names = [name.casefold() for spec in specs.table() for name in {spec.name, *spec.devices}]
    assert len(names) == len(set(names))


@ROWS
def test_rates_are_clock_times_units_times_flop_per_cycle(spec):
    for parts in spec.derived:
        promised = getattr(spec, parts.unit)[parts.dtype]
        # Datasheets print two or three digits, and the H100's 33.45 float64 TFLOP/s as 34.
        assert math.isclose(parts.flop_per_s, promised, rel_tol=0.02), parts


def test_most_rows_are_derived_and_a_sparse_rate_would_be_noticed():
    assert [spec.name for spec in specs.table() if not spec.derived] == [
        "NVIDIA H100 NVL",
        "NVIDIA H200 NVL",
        "NVIDIA B200 (HGX, per GPU)",
        "Google TPU v5e",
        "Google TPU v5p",
        "Google TPU v6e",
    ]


@ROWS
def test_a_row_is_complete_and_in_base_units(spec):
    assert 2016 < spec.year < 2027 and len(spec.source) > 15
    assert 1e11 < spec.bandwidth < 1e13 and 1e10 < spec.memory < 3e11
    assert spec.vector.keys() <= {"float64", "float32"}
    if not spec.name.startswith("Google"):
        assert spec.elementwise == spec.vector["float32"]
    for rate in (*spec.matrix.values(), *spec.vector.values()):
        assert 5e12 < rate < 1e16


@ROWS
def test_halving_the_bits_at_least_keeps_the_rate(spec):
    order = ["float64", "tfloat32", "bfloat16", "float8_e4m3fn", "float4_e2m1fn"]
    rates = [spec.matrix[name] for name in order if name in spec.matrix]
    assert rates == sorted(rates)
    for wide, narrow in (("tfloat32", "bfloat16"), ("bfloat16", "float8_e4m3fn"), ("float8_e4m3fn", "int8")):
        if wide in spec.matrix and narrow in spec.matrix:
            assert spec.matrix[narrow] / spec.matrix[wide] == pytest.approx(1 if narrow == "int8" else 2, rel=0.02)
    if {"float16", "bfloat16"} <= spec.matrix.keys():
        assert spec.matrix["float16"] == spec.matrix["bfloat16"]


@pytest.mark.parametrize(
    ("device", "dtype", "unit", "rate"),
    [
        ("NVIDIA H100 80GB HBM3", torch.float64, "matrix", 67e12),
        ("NVIDIA H100 80GB HBM3", torch.float32, "vector", 67e12),
        ("NVIDIA H100 80GB HBM3", "tfloat32", "matrix", 494.5e12),
        ("NVIDIA H100 80GB HBM3", torch.bfloat16, "matrix", 989.5e12),
        ("Tesla V100-SXM2-32GB", torch.float64, "vector", 7.8e12),
        ("AMD Instinct MI300X", torch.float32, "matrix", 163.4e12),
        ("NVIDIA H100 PCIe", torch.bfloat16, "matrix", 756e12),
    ],
)
def test_the_peak_of_a_dtype_and_its_unit(device, dtype, unit, rate):
    spec = specs.find(device)
    assert (spec.unit(dtype), spec.peak(dtype)) == (unit, rate)


def test_the_vector_unit_does_float64_at_half_the_rate_where_the_matrix_unit_does_it_in_full():
    for name in ("NVIDIA A100 SXM4 80GB", "NVIDIA H100 SXM5", "NVIDIA H100 PCIe", "AMD Instinct MI300X"):
        spec = specs.find(name)
        assert spec.matrix["float64"] / spec.vector["float64"] == pytest.approx(2, rel=0.02)


@pytest.mark.parametrize(
    ("name", "dtype", "ridge"),
    [
        ("NVIDIA A100 SXM4 80GB", "bfloat16", 153),
        ("NVIDIA H100 SXM5", "bfloat16", 295),
        ("NVIDIA H200 SXM", "bfloat16", 206),
        ("NVIDIA GeForce RTX 4090", "bfloat16", 164),
        ("NVIDIA GeForce RTX 5090", "bfloat16", 117),
        ("Google TPU v5e", "bfloat16", 241),
        ("Google TPU v6e", "bfloat16", 560),
        ("NVIDIA H100 SXM5", "float32", 20),
    ],
)
def test_known_ratios_of_rate_and_bandwidth(name, dtype, ridge):
    spec = specs.find(name)
    assert round(spec.peak(dtype) / spec.bandwidth) == ridge


def test_a_rate_that_the_vendor_does_not_give_is_an_error():
    with pytest.raises(ValueError, match=r"V100 SXM2 16GB has no rate for bfloat16 .* only for float16, float64, fl"):
        specs.find("Tesla V100-SXM2-16GB").peak(torch.bfloat16)


@pytest.mark.parametrize("peak", [None, 0, -1.0, math.nan, math.inf, True])
def test_no_mfu_without_a_peak(peak):
    with pytest.raises(ValueError, match=r" this very device, or measure one with machine\.peak\(dtype\) and say so$"):
        specs.mfu(1e12, peak)


@pytest.mark.parametrize("achieved", [math.inf, math.nan, -1])
def test_no_mfu_of_a_rate_that_is_none(achieved):
    with pytest.raises(ValueError, match="was the time zero"):
        specs.mfu(achieved, 1e12)


def test_mfu_is_a_ratio_of_rates():
    assert specs.mfu(156e12, 312e12) == 0.5
    assert specs.mfu(0, 312e12) == 0
    assert specs.mfu(0.25, 0.5) == 0.5
