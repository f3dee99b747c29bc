"""The views from Python: their state, what they refuse, what is stored of them. How they answer: test_browser.py."""

import functools
import html
import json
import math

import nbformat
import pytest
import torch
from traitlets import TraitError

from helpers import budget, counting, explore, formats, specs
from helpers.model import MODELS

MAKERS = (explore.float_bits, explore.strides, explore.roofline, explore.transformer_budget)
WIDGET = "application/vnd.jupyter.widget-view+json"


@pytest.mark.parametrize("make", MAKERS)
def test_a_view_has_a_widget_a_picture_words_and_what_a_page_needs(make):
    data, metadata = make()._repr_mimebundle_()
    assert set(data) == {WIDGET, "image/png", "text/plain", explore.MIME}
    assert data["image/png"].startswith(b"\x89PNG")
    assert data["text/plain"].startswith("Interactive view. ")
    assert metadata["image/png"]["alt"].startswith("Interactive view. ")


@pytest.mark.parametrize(("make", "change"), [
    (explore.float_bits, {"bits": "0" * 16}), (explore.strides, {"shape": [2], "stride": [3]}),
    (explore.roofline, {"batch": 2}), (explore.transformer_budget, {"batch": 2}),
])  # fmt: skip
def test_what_is_stored_shows_the_first_state(make, change):
    view = make()
    first = dict(view.state)
    view.change(**change)
    stored = view._repr_mimebundle_()[0][explore.MIME]["state"]
    assert stored == first != view.state


def test_a_number_is_shown_in_a_format():
    view = explore.float_bits(0.1, torch.float16)
    assert (view.format, view.bits) == ("float16", f"{formats.encode(0.1, 'float16'):016b}")
    view.show(-2)
    assert (view.format, view.value) == ("float16", -2.0)
    view.show(6, "float4_e2m1fn")
    assert (view.format, view.bits) == ("float4_e2m1fn", "0111")


def test_strides_are_those_of_a_tensor():
    view = explore.strides(shape=[3, 2], stride=[2, 6], offset=1, wanted=[6])
    assert view.tensor.tolist() == [[1, 7], [3, 9], [5, 11]]
    view.change(shape=[2, 3], stride=[6, 2])
    assert view.tensor.tolist() == [[1, 3, 5], [7, 9, 11]]


@pytest.mark.parametrize(("op", "function", "sizes"), [
    ("ReLU", torch.relu, [(8, 128)]),
    ("GELU, fused", functools.partial(torch.nn.functional.gelu, approximate="tanh"), [(8, 128)]),
    ("linear layer", torch.matmul, [(8, 128), (128, 128)]),
    ("decoding attention", lambda q, k, v: q @ k @ v, [(8, 1, 128), (8, 128, 1024), (8, 1024, 128)]),
])  # fmt: skip
@pytest.mark.parametrize("dtype", ["bfloat16", "float64"])
def test_an_op_under_the_roof_costs_what_is_counted(op, function, sizes, dtype):
    view = explore.roofline(dtype=dtype)
    view.change(batch=8, width=128)
    cost = counting.count(function, *(torch.empty(size, dtype=getattr(torch, dtype), device="meta") for size in sizes))
    assert view.cost(op) == (cost.flops, cost.bytes_ideal)


def test_the_roof_is_the_machines_until_it_is_moved():
    view = explore.roofline(machine="NVIDIA L4", dtype="int8")
    assert (view.roof.peak, view.roof.bandwidth) == (242.5e12, 300e9)
    view.peak = 1e14
    assert (view.roof.peak, view.roof.bandwidth) == (1e14, 300e9)
    view.change(peak=None, machine="NVIDIA H100 SXM5")
    assert view.roof.peak == 1979e12


@pytest.mark.parametrize(("make", "arguments", "error", "words"), [
    (explore.float_bits, {"value": 1.0, "fmt": "float17"}, ValueError, "no floating-point format 'float17'"),
    (explore.float_bits, {"value": "1"}, TypeError, "encode takes a real number"),
    (explore.float_bits, {"value": math.nan, "fmt": "float4_e2m1fn"}, ValueError, "float4_e2m1fn has no NaN"),
    (explore.strides, {"offset": 7}, RuntimeError, "out of bounds for storage of size 192"),
    (explore.strides, {"shape": [4]}, RuntimeError, "mismatch in length of strides and shape"),
    (explore.strides, {"shape": [1, 97], "stride": [0, 0]}, ValueError, "at most 3 dimensions and 96 elements"),
    (explore.strides, {"stride": [6, -1]}, TraitError, "should not be less than 0"),
    (explore.strides, {"strides": [6, 1]}, TypeError, "this view has no strides, only offset, shape, stride, wanted"),
    (explore.roofline, {"peak": 9.9e9}, TraitError, "'peak' trait"),
    (explore.roofline, {"bandwidth": 3.3e13}, TraitError, "'bandwidth' trait"),
    (explore.roofline, {"machine": "abacus"}, TraitError, "'machine' trait"),
    (explore.roofline, {"dtype": "float17"}, TraitError, "'dtype' trait"),
    (explore.roofline, {"machine": "Google TPU v5e", "dtype": "float64"}, ValueError, "no rate for float64 on its"),
])  # fmt: skip
def test_what_cannot_be_shown_is_refused(make, arguments, error, words):
    with pytest.raises(error, match=words):
        make(**arguments)


def test_a_budget_is_that_of_the_state():
    view = explore.transformer_budget()
    model = MODELS["Llama 3 8B"]
    assert view.step == budget.training(model, 1, 4096, devices=8)
    view.change(recompute=True, batch=4, precision="float32")
    assert view.step == budget.training(model, 4, 4096, devices=8, precision="float32", recompute=True)
    assert view.roof.peak == specs.find("NVIDIA H100 SXM5").peak("float32")
    view.change(task="decoding", precision="float8_e4m3fn")
    assert view.step == budget.decoding(model, 4, 4096, devices=8, itemsize=1)


@pytest.mark.parametrize("make", MAKERS)
def test_a_fragment_stands_alone(make):
    data, metadata = make()._repr_mimebundle_()
    stored = json.loads(json.dumps({"data": data | {"image/png": "iVBOR"}, "metadata": metadata}))
    fragment = explore.live(nbformat.from_dict(stored))
    assert f'<img src="data:image/png;base64,iVBOR" alt="{html.escape(metadata["image/png"]["alt"])}">' in fragment
    assert fragment.count("<script") == fragment.count("</script") == 1
    assert fragment.count("<noscript>") == fragment.count("</noscript>") == 1
    assert "http" not in fragment.replace("http://www.w3.org/2000/svg", "")
