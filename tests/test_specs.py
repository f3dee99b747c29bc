"""The spec table: device names as drivers report them, rates by clock × units × FLOPs per cycle, and no guesses."""

import math

import pytest
import torch

from helpers import specs

ROWS = pytest.mark.parametrize("spec", specs.table(), ids=lambda spec: spec.name)


@pytest.mark.parametrize(("device", "row"), [
    ("NVIDIA H100 80GB HBM3", "NVIDIA H100 SXM5"),
    ("NVIDIA H200", "NVIDIA H200 SXM"),
    ("NVIDIA B200", "NVIDIA B200 (HGX, per GPU)"),
    ("A100-SXM4-40GB", "NVIDIA A100 SXM4 40GB"),
    ("NVIDIA A100 80GB PCIe", "NVIDIA A100 PCIe 80GB"),
    ("Tesla V100-SXM2-32GB", "NVIDIA V100 SXM2 32GB"),
    ("AMD Instinct MI300X", "AMD Instinct MI300X"),
    ("  nvidia h100  pcie ", "NVIDIA H100 PCIe"),
    ("Google TPU v5e", "Google TPU v5e"),  # no driver name: found by the row's own
])  # fmt: skip
def test_a_device_is_found_by_the_name_that_its_driver_reports(device, row):
    assert specs.find(device).name == row


def test_an_unknown_device_is_none():
    for device in [
        "NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA H100", "NVIDIA GH200 480GB", "NVIDIA L40", "cpu", "",
        "NVIDIA H100 80GB HBM3 MIG 1g.10gb",  # a seventh of an H100 has no H100's peak
        "Tesla V100-SXM3-32GB",  # higher clocks than the SXM2
    ]:  # fmt: skip
        assert specs.find(device) is None


def test_no_name_belongs_to_two_rows():
    names = [name.casefold() for spec in specs.table() for name in {spec.name, *spec.devices}]
    assert len(names) == len(set(names))


@ROWS
def test_rates_are_clock_times_units_times_flops_per_cycle(spec):
    assert spec.derived or spec.name.startswith(("Google", "NVIDIA B200")) or spec.name.endswith("NVL")
    for dtype, unit, units, clock, flops in spec.derived:
        # Datasheets print two or three digits, and the H100's 33.45 float64 TFLOP/s as 34.
        assert math.isclose(units * clock * flops, getattr(spec, unit)[dtype], rel_tol=0.02), (dtype, unit)


@ROWS
def test_a_row_is_complete_and_in_base_units(spec):
    assert 2016 < spec.year < 2027 and len(spec.source) > 15
    assert 1e11 < spec.bandwidth < 1e13 and 1e10 < spec.memory < 3e11
    assert spec.vector.keys() <= {"float64", "float32"}
    assert spec.elementwise == spec.vector.get("float32")
    assert spec.elementwise or spec.name.startswith("Google")
    for rate in (*spec.matrix.values(), *spec.vector.values()):
        assert 5e12 < rate < 1e16


@pytest.mark.parametrize(("name", "dtype", "rate", "ridge"), [
    ("NVIDIA H100 SXM5", torch.bfloat16, 989.5e12, 295),
    ("NVIDIA H100 SXM5", torch.float32, 67e12, 20),  # the vector unit
    ("NVIDIA H100 SXM5", torch.float64, 67e12, 20),  # the matrix unit, twice the vector unit
    ("NVIDIA H100 SXM5", "tfloat32", 494.5e12, 148),
    ("NVIDIA H200 SXM", "bfloat16", 989.5e12, 206),
    ("NVIDIA A100 SXM4 80GB", "bfloat16", 312e12, 153),
    ("Tesla V100-SXM2-32GB", torch.float64, 7.8e12, 9),
    ("AMD Instinct MI300X", torch.float32, 163.4e12, 31),  # the matrix unit
    ("Google TPU v5e", "bfloat16", 197e12, 241),
])  # fmt: skip
def test_peaks_and_ridges_as_they_are_published(name, dtype, rate, ridge):
    spec = specs.find(name)
    assert (spec.peak(dtype), round(spec.peak(dtype) / spec.bandwidth)) == (rate, ridge)


def test_a_rate_that_the_vendor_does_not_give_is_an_error():
    with pytest.raises(ValueError, match=r"16GB has no rate for bfloat16 on its spec sheet, only for float16, fl"):
        specs.find("Tesla V100-SXM2-16GB").peak(torch.bfloat16)


def test_mfu_is_a_ratio_of_rates_and_needs_a_peak_and_a_time():
    assert (specs.mfu(156e12, 312e12), specs.mfu(0, 312e12)) == (0.5, 0)
    assert specs.mfu(5e15, 1e15) == 5  # shows that a denominator is wrong, and how far
    for peak in [None, 0, -1.0, math.nan, math.inf, True]:
        with pytest.raises(
            ValueError, match=r" this very device, or measure one with machine\.peak\(dtype\) and say so$"
        ):
            specs.mfu(1e12, peak)
    with pytest.raises(ValueError, match="was the time zero"):
        specs.mfu(math.inf, 1e12)
