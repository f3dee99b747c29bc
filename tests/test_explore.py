"""The views from Python: their state, what they refuse, what is stored of them. How they answer: test_browser.py."""

import base64
import functools
import io
import math
import sys
import types

import pytest
import torch
from nbformat.v4 import new_code_cell, new_notebook, new_output
from PIL import Image
from traitlets import TraitError

from helpers import counting, explore, specs
from helpers.explore.views import LIMITS
from tests.tools import browser, refresh


def test_what_is_stored_shows_the_first_state():
    view = explore.roofline()
    first = dict(view.state)
    view.batch = 2
    stored = view._repr_mimebundle_()[0][explore.MIME]["state"]
    assert stored == first != view.state


def test_a_view_is_words_until_refresh_takes_its_picture():
    browser.skip(browser.lacking())
    view = explore.float_bits(1.0)
    data, _ = view._repr_mimebundle_()
    assert not any(kind.startswith("image/") for kind in data)
    notebook = new_notebook(cells=[new_code_cell(outputs=[new_output("display_data", data)])])
    refresh.picture(notebook)
    ((output,),) = (cell.outputs for cell in notebook.cells)
    taken = Image.open(io.BytesIO(base64.b64decode(output.data["image/png"])))
    told = output.metadata["image/png"]
    assert taken.info["Description"] == data["text/plain"] and data["text/plain"].startswith(told["alt"])
    assert taken.size == (2 * told["width"], 2 * told["height"])
    assert len(taken.convert("L").getcolors()) > 10  # not an empty page
    assert f'alt="{told["alt"]}"' in explore.live(output)


def test_without_a_chromium_a_view_is_stored_in_words(monkeypatch, capsys):
    monkeypatch.setattr(browser, "BROWSERS", ())
    data, _ = explore.float_bits(1.0)._repr_mimebundle_()
    notebook = new_notebook(cells=[new_code_cell(outputs=[new_output("display_data", data)])])
    refresh.picture(notebook)
    (output,) = notebook.cells[0].outputs
    assert "image/png" not in output.data and "<noscript><pre>Interactive view" in explore.live(output)
    assert "Views are stored in words alone: " in capsys.readouterr().out


def test_colab_gets_the_widget_and_is_told_what_draws_it(monkeypatch):
    colab = types.ModuleType("google.colab.output")
    colab.enable_custom_widget_manager = lambda: None
    colab._widgets = types.SimpleNamespace(_installed_url="manager.js")
    monkeypatch.setitem(sys.modules, "google.colab", colab)
    monkeypatch.setitem(sys.modules, "google.colab.output", colab)
    monkeypatch.setenv("JPY_SESSION_NAME", "00_start_here.ipynb")
    data, metadata = explore.float_bits(1.0)._repr_mimebundle_()
    widget = "application/vnd.jupyter.widget-view+json"
    assert widget in data and metadata[widget] == {"colab": {"custom_widget_manager": {"url": "manager.js"}}}


@pytest.mark.parametrize(
    ("op", "function", "sizes"),
    [
        ("ReLU", torch.relu, [(8, 128)]),
        ("GELU, fused", functools.partial(torch.nn.functional.gelu, approximate="tanh"), [(8, 128)]),
        ("linear layer", torch.matmul, [(8, 128), (128, 128)]),
        ("decoding attention", lambda q, k, v: q @ k @ v, [(8, 1, 128), (8, 128, 1024), (8, 1024, 128)]),
    ],
)
@pytest.mark.parametrize("dtype", ["bfloat16", "float64"])
def test_an_op_under_the_roof_costs_what_is_counted(op, function, sizes, dtype):
    view = explore.roofline(dtype=dtype)
    view.batch, view.width = 8, 128
    cost = counting.count(function, *(torch.empty(size, dtype=getattr(torch, dtype), device="meta") for size in sizes))
    assert view.cost(op) == (cost.flops, cost.bytes_ideal)


@pytest.mark.parametrize(
    ("make", "arguments", "error", "words"),
    [
        (explore.float_bits, {"value": 1.0, "fmt": "float17"}, ValueError, "no floating-point format 'float17'"),
        (explore.float_bits, {"value": math.nan, "fmt": "float4_e2m1fn"}, ValueError, "float4_e2m1fn has no NaN"),
        (explore.float_bits(0.1).set, {"bits": "01"}, ValueError, "bfloat16 has 16 bits, each 0 or 1, got '01'"),
        (
            explore.float_bits(0.1).set,
            {"asked": "2"},
            ValueError,
            "2 becomes 0100000000000000 in bfloat16",
        ),
        (explore.float_bits(0.1).set, {"asked": "two"}, ValueError, "asked is a number as text"),
        (explore.float_bits(0.1).set, {"value": 2}, TypeError, "this view has no value, only asked, bits, format"),
        (explore.walk, {"loops": "ij"}, TypeError, "this view has no loops, only lines, order, predicted"),
        (explore.roofline, {"machine": "abacus"}, TraitError, "'machine' trait"),
        (explore.roofline, {"machine": "Google TPU v5e", "dtype": "float64"}, ValueError, "no rate for float64 on its"),
        (explore.roofline, {"asked": ["slope"]}, ValueError, "no question 'slope': take some of ridge, narrow, peak"),
        (explore.roofline, {"asked": ["peak"], "peak": LIMITS["peak"][1]}, ValueError, "a peak of .* is beyond"),
        (explore.roofline, {"without": ["dot"]}, ValueError, "no op 'dot' to leave out: there are ReLU, GELU, fused"),
        (explore.roofline, {"without": ["ReLU"], "op": "ReLU"}, TraitError, "ReLU is left out; there are GELU, fused"),
    ],
)
def test_what_cannot_be_shown_is_refused(make, arguments, error, words):
    with pytest.raises(error, match=words):
        make(**arguments)


@pytest.mark.parametrize("spec", specs.table(), ids=lambda spec: spec.name)
def test_each_machine_of_the_table_has_room_to_grow_tenfold(spec):
    for dtype in {**spec.matrix, **spec.vector}:
        view = explore.roofline(machine=spec.name, dtype=dtype, asked=["peak", "bandwidth"])
        peak, bandwidth = (question["after"] for question in view.asked)
        assert (peak, bandwidth) == ({"peak": 10 * spec.peak(dtype)}, {"bandwidth": 2 * spec.bandwidth})
        view.set(**peak, bandwidth=10 * spec.bandwidth)


def test_a_roof_is_changed_as_a_whole_or_not_at_all():
    view = explore.roofline(dtype="float64")
    with pytest.raises(ValueError, match="Google TPU v5e has no rate for float64"):
        view.machine = "Google TPU v5e"
    assert view.machine == "NVIDIA H100 SXM5"
    with view.hold_trait_notifications():
        view.machine, view.dtype = "Google TPU v5e", "int8"
    assert view.roof.peak == 393e12
