"""The roofline model against numbers worked out by hand, and its laws."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.roofline import Roofline

# peak 100 FLOP/s, bandwidth 10 bytes/s: ridge 10 FLOP/byte.
MACHINE = Roofline(100, 10)
rates = st.floats(1e6, 1e16)
amounts = st.floats(1, 1e20)


@pytest.mark.parametrize(
    ("flops", "nbytes", "seconds", "bound"),
    [
        (100, 1, 1.0, "compute"),
        (100, 10, 1.0, "compute"),  # on the ridge both times are equal
        (100, 11, 1.1, "memory"),
        (0, 5, 0.5, "memory"),
        (50, 0, 0.5, "compute"),
        (np.int64(100), np.float32(1), 1.0, "compute"),
    ],
)
def test_by_hand(flops, nbytes, seconds, bound):
    assert MACHINE.seconds(flops, nbytes) == pytest.approx(seconds)
    assert MACHINE.bound(flops, nbytes) == bound


@given(rates, rates, amounts, amounts)
def test_laws(peak, bandwidth, flops, nbytes):
    roof = Roofline(peak, bandwidth)
    # The time of the model is the FLOPs over the attainable rate.
    assert roof.seconds(flops, nbytes) == pytest.approx(flops / roof.attainable(flops / nbytes), rel=1e-9)
    assert roof.attainable(roof.ridge) == pytest.approx(peak)
    if abs(flops / nbytes / roof.ridge - 1) > 1e-9:
        assert roof.bound(flops, nbytes) == ("compute" if flops / nbytes > roof.ridge else "memory")


@pytest.mark.parametrize("sizes", [{"bytes": 20}, {"bytes_eager": 90, "bytes_ideal": 20}], ids=str)
def test_a_cost_may_be_an_object(sizes):
    cost = SimpleNamespace(flops=400, **sizes)
    assert (MACHINE.seconds(cost), MACHINE.bound(cost)) == (4.0, "compute")


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: Roofline(0, 1), ValueError, r"a peak is a finite number of FLOP/s above 0, got 0"),
        (lambda: Roofline(math.nan, 1), ValueError, r"the peak is at least 0, got nan"),
        (lambda: Roofline("989 T", 1), TypeError, r"the peak is a number, got '989 T' \(str\)"),
        (lambda: MACHINE.attainable(True), TypeError, r"the intensity is a number, got True"),
        (lambda: MACHINE.seconds(5), TypeError, r"two numbers, FLOPs and bytes, or a counted cost; got only 5 \(int\)"),
        (lambda: MACHINE.seconds(SimpleNamespace(flops=5)), TypeError, r"got only namespace\(flops=5\)"),
        (lambda: MACHINE.seconds(math.inf, 1), ValueError, "^the FLOPs and bytes of a cost are finite, got inf and 1$"),
        (lambda: MACHINE.bound(0, 0), ValueError, r"bound by nothing: count an op that does something$"),
    ],
)
def test_what_is_no_machine_and_no_cost(call, error, words):
    with pytest.raises(error, match=words):
        call()
