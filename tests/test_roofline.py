"""The roofline model against numbers worked out by hand, and its laws."""

import dataclasses
import math
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.roofline import Roofline, cost_of, intensity
from tests.tools.course import ROOT

# peak 100 FLOP/s, bandwidth 10 byte/s: ridge 10 FLOP/byte.
MACHINE = Roofline(100, 10)
rates = st.floats(1e6, 1e16)
amounts = st.floats(1, 1e20)


@pytest.mark.parametrize(
    ("flops", "nbytes", "lower", "upper", "bound"),
    [
        (100, 1, 1.0, 1.1, "compute"),
        (100, 10, 1.0, 2.0, "compute"),  # on the ridge both times are equal, and the sum is twice either
        (100, 11, 1.1, 2.1, "memory"),
        (0, 5, 0.5, 0.5, "memory"),
        (50, 0, 0.5, 0.5, "compute"),
    ],
)
def test_by_hand(flops, nbytes, lower, upper, bound):
    assert MACHINE.seconds(flops, nbytes) == pytest.approx(lower)
    assert MACHINE.seconds(flops, nbytes, overlap=False) == pytest.approx(upper)
    assert MACHINE.bound(flops, nbytes) == bound


@pytest.mark.parametrize(("x", "y"), [(0, 0), (0.25, 2.5), (9, 90), (10, 100), (1000, 100), (math.inf, 100)])
def test_attainable_by_hand(x, y):
    assert MACHINE.attainable(x) == y


@pytest.mark.parametrize(
    ("peak", "bandwidth", "ridge"),
    [
        (312e12, 2.039e12, 153),
        (989e12, 3.35e12, 295),
        (989e12, 4.8e12, 206),
        (67e12, 3.35e12, 20),
        (918e12, 1.64e12, 560),
    ],
)
def test_ridges_of_the_datasheets(peak, bandwidth, ridge):
    assert round(Roofline(peak, bandwidth).ridge) == ridge


def test_relu_on_an_h100():
    """2^20 elements in bfloat16: 1.252e-6 s to move them, 1.06e-9 s to compute, were the tensor cores any use."""
    n = 2**20
    h100 = Roofline(989e12, 3.35e12)
    assert h100.seconds(n, 4 * n) == pytest.approx(1.252e-6, rel=1e-3)
    assert h100.seconds(n, 4 * n, overlap=False) - h100.seconds(n, 4 * n) == pytest.approx(1.06e-9, rel=1e-2)


@given(rates, rates, amounts, amounts)
def test_laws(peak, bandwidth, flops, nbytes):
    roof = Roofline(peak, bandwidth)
    lower, upper = roof.seconds(flops, nbytes), roof.seconds(flops, nbytes, overlap=False)
    assert lower <= upper <= 2 * lower * (1 + 1e-12)
    # The time of the model is the FLOPs over the attainable rate.
    assert lower == pytest.approx(flops / roof.attainable(flops / nbytes), rel=1e-9)
    assert roof.bound(flops, nbytes) == ("compute" if flops / nbytes >= peak / bandwidth else "memory")
    assert roof.attainable(roof.ridge) == pytest.approx(peak)


@given(rates, rates, st.floats(0, 1e9), st.floats(0, 1e9))
def test_the_roof_never_falls(peak, bandwidth, a, b):
    roof = Roofline(peak, bandwidth)
    assert roof.attainable(min(a, b)) <= roof.attainable(max(a, b)) <= peak


@given(rates, rates, amounts, amounts, st.floats(1, 100))
def test_a_better_machine_is_never_slower(peak, bandwidth, flops, nbytes, factor):
    old = Roofline(peak, bandwidth).seconds(flops, nbytes)
    assert Roofline(peak * factor, bandwidth).seconds(flops, nbytes) <= old
    assert Roofline(peak, bandwidth * factor).seconds(flops, nbytes) <= old


def test_a_cost_may_be_an_object():
    assert cost_of(SimpleNamespace(flops=8, bytes=2)) == (8, 2)
    assert cost_of(SimpleNamespace(flops=8, bytes_eager=4, bytes_ideal=2)) == (8, 2)
    assert cost_of(np.int64(8), np.float32(2)) == (8, 2)
    assert MACHINE.seconds(SimpleNamespace(flops=400, bytes=20)) == 4.0
    assert MACHINE.bound(SimpleNamespace(flops=400, bytes=20)) == "compute"
    assert intensity(SimpleNamespace(flops=8, bytes=2)) == 4
    assert intensity(8, 0) == math.inf


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: Roofline(0, 1), ValueError, r"a peak is a finite number of FLOP/s above 0, got 0"),
        (lambda: Roofline(1, -3), ValueError, r"the bandwidth is at least 0, got -3"),
        (lambda: Roofline(math.nan, 1), ValueError, r"the peak is at least 0, got nan"),
        (lambda: Roofline(1, math.inf), ValueError, r"a bandwidth is a finite number of byte/s above 0"),
        (lambda: Roofline("989 T", 1), TypeError, r"the peak is a number, got '989 T' \(str\)"),
        (lambda: Roofline(None, 1), TypeError, r"the peak is a number, got None"),
        (lambda: MACHINE.attainable(-1), ValueError, r"the intensity is at least 0"),
        (lambda: MACHINE.attainable(True), TypeError, r"the intensity is a number, got True"),
        (lambda: MACHINE.seconds(5), TypeError, r"a cost is FLOPs and bytes, got 5 \(int\) alone: pass two numbers"),
        (lambda: MACHINE.seconds(5, -1), ValueError, r"the number of bytes is at least 0"),
        (lambda: MACHINE.seconds(SimpleNamespace(flops=5)), TypeError, r"a cost is FLOPs and bytes, got namespace"),
        (lambda: MACHINE.seconds(SimpleNamespace(bytes=5)), TypeError, r"a cost is FLOPs and bytes, got namespace"),
        (lambda: MACHINE.seconds(math.inf, 1), ValueError, r"^a cost is finite, got inf FLOP and 1 byte$"),
        (lambda: MACHINE.seconds([1], 1), TypeError, r"the number of FLOPs is a number, got \[1\]"),
        (lambda: MACHINE.bound(0, 0), ValueError, r"^this cost has no FLOP and no byte, .* does something$"),
    ],
)
def test_what_is_no_machine_and_no_cost(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_a_machine_is_a_value():
    assert Roofline(100, 10) == MACHINE
    with pytest.raises(dataclasses.FrozenInstanceError):
        MACHINE.peak = 1


def test_needs_no_torch():
    code = "import sys, helpers.roofline; sys.exit(bool({'torch', 'numpy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
