"""A block of weights: it quantises as the lesson does, and as torch and `formats` round; a browser shows the same."""

import math
import random

import pytest
import torch
from traitlets import TraitError

from helpers import explore, formats
from helpers.explore.weights import QUANTISERS, SHOWN, scale_of, store
from helpers.units import si
from tests.tools.pictures import VIEWS, fragment, numbers_of, walk

torch.manual_seed(0)
MATRIX = 0.02 * torch.randn(256, 1024)
ROW, ALL = MATRIX.shape[1], MATRIX.numel()


def test_mxfp4_is_that_of_the_lesson():
    numbers = torch.tensor(formats.values("float4_e2m1fn"), dtype=torch.float64)
    view = explore.weights(MATRIX)
    blocks = torch.tensor(view.values, dtype=torch.float64).view(-1, 32)
    scales = 2 ** (blocks.abs().amax(1, keepdim=True) / 4).log2().floor()
    nearest = ((blocks / scales).unsqueeze(-1) - numbers).abs().argmin(-1)
    assert view.stored == (numbers[nearest] * scales).flatten().tolist()
    assert view.bits == 4 + 8 / 32


@pytest.mark.parametrize(("name", "largest"), [("int8", 127), ("E4M3", 448)])
def test_a_row_is_quantised_as_in_the_lesson(name, largest):
    view = explore.weights(MATRIX, format=name, block=ROW)
    row = torch.tensor(view.values + MATRIX[0, SHOWN:].tolist())
    scaled = row / (row.abs().max() / largest)
    rounded = scaled.round() if name == "int8" else scaled.to(torch.float8_e4m3fn).float()
    expected = (rounded * row.abs().max() / largest)[:SHOWN]
    assert torch.allclose(torch.tensor(view.stored), expected, rtol=1e-5, atol=0)


@pytest.mark.parametrize("name", QUANTISERS)
def test_a_number_is_rounded_as_in_its_format(name):
    fmt = QUANTISERS[name]
    known = {"MXFP4": "float4_e2m1fn", "NVFP4": "float4_e2m1fn", "E4M3": "float8_e4m3fn"}.get(name)
    middles = [(one + other) / 2 for one, other in zip(fmt.levels, fmt.levels[1:], strict=False)]
    rng = random.Random(0)
    for value in [*fmt.levels, *middles, *(rng.uniform(-1, 1) * fmt.largest for _ in range(200))]:
        expected = formats.decode(formats.encode(value, known), known).value if known else round(value)
        assert store(value, 1.0, fmt) == expected
    assert (store(7.9, 1.0, QUANTISERS["MXFP4"]), store(-7.9, 1.0, QUANTISERS["MXFP4"])) == (6.0, -6.0)


def test_the_scale_of_mxfp4_is_a_power_of_two_and_that_of_nvfp4_an_e4m3_number():
    rng = random.Random(0)
    for _ in range(200):
        largest = 2 ** rng.uniform(-20, 20)
        scale = scale_of(largest, QUANTISERS["MXFP4"], largest)
        assert math.log2(scale).is_integer() and 4 <= largest / scale < 8
        whole = largest * 2 ** rng.uniform(0, 8)
        of_all = torch.tensor(whole / (6 * 448), dtype=torch.float32).item()
        found = scale_of(largest, QUANTISERS["NVFP4"], whole) / of_all
        stored = torch.tensor(largest / 6 / of_all, dtype=torch.float64).to(torch.float8_e4m3fn).double().item()
        assert found == pytest.approx(stored, rel=1e-12)
    assert explore.weights(MATRIX, format="NVFP4", block=16).bits == 4 + 8 / 16 + 32 / ALL


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"matrix": MATRIX[0]}, ValueError, "at least 2 rows and 65 columns; this has shape \\(1024,\\)"),
        ({"matrix": MATRIX[:, :64]}, ValueError, "65 columns"),
        ({"matrix": torch.zeros(2, 100)}, ValueError, "all weights are the same number"),
        ({"matrix": MATRIX * math.nan}, ValueError, "the matrix holds infinity or NaN"),
        ({"matrix": MATRIX, "times": math.inf}, ValueError, "times is a finite factor above 0, got inf"),
        ({"matrix": MATRIX, "format": "MXFP3"}, TraitError, "'format' trait"),
        ({"matrix": MATRIX, "block": 48}, ValueError, "a block has 16, 32, 64, 1024, 262144 weights; got 48"),
        ({"matrix": MATRIX, "values": [0.0] * 63}, ValueError, "values are 64 weights from -1.28 to 1.28"),
        ({"matrix": MATRIX, "values": [2.0] * 64}, ValueError, "values are 64 weights"),
        ({"matrix": MATRIX, "chosen": 64}, TraitError, "chosen"),
    ],
)
def test_what_cannot_be_shown_is_refused(arguments, error, words):
    with pytest.raises(error, match=words):
        explore.weights(**arguments)


def of_weights(view):
    block, values, stored, scale = min(view.block, SHOWN), view.values, view.stored, view.scale[view.chosen]

    def percent(places):
        lost = math.hypot(*(stored[place] - values[place] for place in places))
        return si(100 * lost / math.hypot(*(values[place] for place in places)), "%")

    others = [place for place in range(SHOWN) if place != view.chosen]
    near = [place for place in others if place // block == view.chosen // block]
    far = [place for place in others if place not in near]
    zeros = sum(stored[place] == 0 for place in near)
    return {
        "weight": f"{view.chosen + 1}",
        "bits": f"{view.bits:.4g}",
        "scale": significant(scale),
        "kept": significant(stored[view.chosen]).replace("-", "−"),
        "zeros": f"{zeros} of the other {len(near)}",
        "near": percent(near),
        "far": percent(far) if far else "none in sight",
    }


def significant(x):
    """In three digits, not as a power of ten."""
    return f"{x:.{max(2 - math.floor(math.log10(abs(x))), 0)}f}".rstrip("0").rstrip(".") if x else "0"


def some_weights(rng, view):
    values = [float(f"{rng.gauss(0, 0.02):.6g}") for _ in range(SHOWN)]
    for _ in range(rng.randint(0, 3)):
        values[rng.randrange(SHOWN)] = float(f"{rng.choice((-1, 1)) * 2 ** rng.uniform(-12, 0.3):.6g}")
    block = rng.choice((16, 32, 64, ROW, ALL))
    view.set(values=values, format=rng.choice(list(QUANTISERS)), block=block, chosen=rng.randrange(SHOWN))
    return view.state, of_weights(view)


@pytest.mark.slow
def test_every_number_of_random_states_is_that_of_python(page):
    rng, view = random.Random(0), explore.weights(MATRIX, revealed=["zeros"])
    states, told = zip(*(some_weights(rng, view) for _ in range(60)), strict=True)
    found = numbers_of(page(fragment(view)).locator(VIEWS), states)
    for state, numbers, pythons in zip(states, found, told, strict=True):
        assert numbers == pythons, state


STEPS = [
    ("slider zeros", "press", "End", {"all": "31 of 31"}),
    ("button Make it 10 times", "click", "", {"all": "10 of the other 31 became 0; you said 31.", "scale": "0.0312"}),
    ("slider weight 1.", "press", "Home", {"zeros": "31 of the other 31", "kept": "−1.5"}),
    ("slider weights to a scale >> .knob", "drag", (0, -40), {"zeros": "15 of the other 15", "bits": "4.5"}),
    ("slider weights to a scale", "press", "ArrowDown", {"bits": "4.25", "all": "4 + 8/32"}),
    ("slider weights to a scale", "press", "End", {"all": "4 + 8/262144", "far": "none in sight"}),
    ("button NVFP4", "click", "", {"zeros": "15 of the other 15", "bits": "4.5"}),
    ("button int8", "click", "", {"bits": "8.031", "all": "of the other 63"}),
    ("button all as they were", "click", "", {"zeros": "0 of the other 63"}),
    ("textbox its value", "type", "3", {"alert": "A weight goes from −1.28 to 1.28.", "zeros": "0 of the other 63"}),
    ("textbox its value", "type", "-0.5", {"alert": ""}),
    ("spinbutton weight", "press", "End", {"weight": "64"}),
    ("slider weight 64", "press", "End", {"kept": "1.28"}),
    ("button Ask me again", "click", "", {"bits": None}),
]


@pytest.mark.slow
def test_it_answers_mouse_finger_and_key(page):
    walk(page(fragment(explore.weights(MATRIX))).locator(VIEWS), STEPS)


@pytest.mark.slow
def test_a_weight_is_dragged_by_the_mouse(page):
    view = page(fragment(explore.weights(MATRIX, revealed=["zeros"]))).locator(VIEWS)
    far = {"weight": "1", "zeros": "16 of the other 31"}
    walk(view, [(".weight.chosen .real", "drag", (-320, 0), far)])
