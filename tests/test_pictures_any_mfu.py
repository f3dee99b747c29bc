"""Any MFU: the published number, what can be defended, and every setting against Python's."""

import itertools

import pytest
from traitlets import TraitError

from helpers import explore
from helpers.model import MODELS
from tests.tools.pictures import VIEWS, fragment, numbers_of, shown

try:
    from playwright.sync_api import expect
except ImportError:  # then every test in a browser is skipped
    expect = None

RATE = 62_568.34  # tokens/s of the published run, as notebook 04 has it
SMALL = MODELS["GPT-2 small"]


def any_mfu(**state):
    return explore.any_mfu(SMALL, RATE, 0.5948, marks={"nanoGPT": 0.371}, **state)


def test_the_published_number_is_6n_over_the_float16_rate_of_the_vector_units():
    view = any_mfu(attention="none", peak="vector, float16")
    assert view.mfu == pytest.approx(6 * SMALL.matrices * RATE / (6912 * 1.41e9 * 8)) == pytest.approx(0.5948, abs=5e-5)


@pytest.mark.parametrize(
    ("state", "mfu"),
    [
        ({"attention": "none"}, 6 * 123_532_032 * RATE / 312e12),  # 12 · 12 · 768² + 50257 · 768
        ({"attention": "in full"}, (6 * 123_532_032 + 12 * 12 * 1024 * 768) * RATE / 312e12),
        ({"attention": "none", "weights": "blocks", "multiply": "1 MAC"}, 3 * 84_934_656 * RATE / 312e12),
        ({"attention": "none", "passes": "4 (the 8)", "peak": "matrix, sparse"}, 8 * 123_532_032 * RATE / 624e12),
    ],
)
def test_a_setting_by_hand(state, mfu):
    assert any_mfu(**state).mfu == pytest.approx(mfu)


def test_what_can_be_defended_ends_at_6n_of_the_blocks_and_at_all_products():
    blocks, all_products = 6 * 84_934_656, 6 * 123_532_032 + 12 * 12 * 1024 * 768
    assert any_mfu().ends == pytest.approx([blocks * RATE / 312e12, all_products * RATE / 312e12])
    assert any_mfu().ends == pytest.approx([0.102, 0.171], abs=5e-4)


def test_what_is_no_option_is_refused():
    with pytest.raises(TraitError, match="'attention' trait"):
        any_mfu(attention="twice")
    with pytest.raises(TypeError, match="this view has no peaks"):
        any_mfu(peaks="sparse")


def written(mfu):
    """With two decimals, and below 0.1 with two digits."""
    return f"{mfu:.2f}" if mfu >= 0.095 else f"{mfu:.2g}"


@pytest.mark.slow
def test_every_setting_shows_pythons_number(page):
    view = any_mfu()
    options = {switch["trait"]: [name for name, *_ in switch["options"]] for switch in view.switches}
    states = []
    for setting in itertools.product(*options.values()):
        for trait, name in zip(options, setting, strict=True):
            setattr(view, trait, name)
        states.append((view.state, written(view.mfu)))
    some = states[::5]  # 5 and 6 have no factor in common, so every option is among them
    found = numbers_of(page(fragment(view)).locator(VIEWS), [state for state, _ in some])
    assert [numbers["mfu"] for numbers in found] == [told for _, told in some]


@pytest.mark.slow
def test_it_is_found_defended_and_told(page):
    view = page(fragment(any_mfu())).locator(VIEWS)

    def press(name):
        view.get_by_role("button", name=name, exact=True).click()

    press("none")
    press("vector, float16")
    expect(view).to_contain_text("This prints 0.5948, as published.")
    press("This is the largest")
    expect(view.locator(".problem")).to_contain_text(
        "0.59 cannot be defended. “the peak is: vector, float16”: the run's"
    )
    press("matrix, bfloat16")
    press("This is the smallest")
    expect(view.get_by_role("button", name="smallest: 0.15 ✓")).to_have_count(1)
    press("in full")
    press("This is the largest")
    expect(shown(view, "smallest")).to_have_text("0.10")
    expect(view).to_contain_text("your smallest 0.15, your largest 0.17")
    press("1 MAC")
    expect(shown(view, "objections")).to_contain_text("the peak counts it as 2")
    press("Ask me again")
    press("Show the setting")
    expect(shown(view, "mfu")).to_have_text("0.59")
    press("Show the answer")
    expect(shown(view, "largest")).to_have_text("0.17")


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
def test_it_fits_on_the_screen(page, width):
    opened = page(fragment(any_mfu(revealed=["range"])), width=width)
    assert opened.evaluate("document.documentElement.scrollWidth") <= width
