"""The interactive views, driven through their controls as a browser would."""

import itertools
import random

import pytest

from helpers import budget, explore, formats, specs

WIDGET = "application/vnd.jupyter.widget-view+json"


@pytest.fixture
def view():
    return explore.float_bits(1.0, "bfloat16")


def shown(view):
    """The code that the buttons show."""
    return int("".join(bit.description for bit in view.bits), 2)


def test_first_state(view):
    assert (view.format.value, view.number.value, shown(view)) == ("bfloat16", "1.0", 0x3F80)
    assert "2⁰ × 1 = 1" in view.text.value
    assert "next number below: 0.99609375; above: 1.0078125" in view.text.value
    assert bytes(view.picture.value).startswith(b"\x89PNG")


@pytest.mark.parametrize("name", formats.FORMATS)
def test_clicking_any_bit_changes_the_number(name):
    view = explore.float_bits(1.0, name)
    order = list(range(len(view.bits)))
    random.Random(0).shuffle(order)
    for position in order[:8]:
        before = view.code
        view.bits[position].value = not view.bits[position].value
        assert view.code == before ^ (1 << (len(view.bits) - 1 - position)) == shown(view)
        assert formats.formula(view.code, name) in view.text.value
        number = formats.decode(view.code, name)
        assert view.number.value == repr(number.value)
        assert f"({number.kind})" in view.text.value


def test_a_typed_number_is_rounded_into_the_format(view):
    view.number.value = "0.1"
    assert (view.number.value, shown(view)) == ("0.10009765625", formats.encode(0.1, "bfloat16"))


@pytest.mark.parametrize("text", ["", "abc", "1,5", "0x10"])
def test_typed_rubbish_is_told_and_changes_nothing(view, text):
    view.number.value = "2"
    view.number.value = text
    assert "is no number; write it like 0.1" in view.text.value
    assert shown(view) == formats.encode(2, "bfloat16")
    view.number.value = "3"
    assert "is no number" not in view.text.value


@pytest.mark.parametrize("text", ["inf", "-inf", "nan"])
def test_values_that_are_not_finite_have_no_number_line(view, text):
    view.number.value = text
    assert view.number.value == text
    assert view.picture.layout.display == "none"
    view.number.value = "1"
    assert view.picture.layout.display is None


def test_changing_the_format_keeps_the_number(view):
    view.number.value = "1.5"
    for name, fmt in formats.FORMATS.items():
        view.format.value = name
        assert len(view.bits) == fmt.bits
        assert formats.decode(shown(view), fmt).value == 1.5


def test_a_nan_where_there_is_none(view):
    view.buttons["NaN"].click()
    view.format.value = "float4_e2m1fn"
    assert "has no NaN; showing 0 instead" in view.text.value
    assert view.buttons["NaN"].disabled and view.buttons["infinity"].disabled
    view.number.value = "nan"
    assert "float4_e2m1fn has no NaN" in view.text.value


def test_steps_and_landmarks(view):
    landmarks = {
        "smallest": 2**-133,
        "smallest normal": 2**-126,
        "largest": formats.FORMATS["bfloat16"].max,
        "infinity": float("inf"),
        "1": 1.0,
    }
    for name, value in landmarks.items():
        view.buttons[name].click()
        assert formats.decode(view.code, "bfloat16").value == value
    view.buttons["code +1"].click()
    assert shown(view) == 0x3F81
    view.buttons["code −1"].click()
    view.buttons["code −1"].click()
    assert shown(view) == 0x3F7F


def test_steps_stop_at_the_ends(view):
    view.number.value = "0"
    view.buttons["code −1"].click()
    assert view.code == 0
    for bit in view.bits:
        bit.value = True
    view.buttons["code +1"].click()
    assert view.code == 0xFFFF


def test_every_bit_says_what_it_is(view):
    assert [bit.tooltip for bit in view.bits][:2] == ["bit 15, sign", "bit 14, exponent"]
    assert view.bits[-1].tooltip == "bit 0, fraction"


def test_the_bundle_has_a_widget_a_picture_and_words(view):
    data, metadata = view._repr_mimebundle_()
    assert data[WIDGET]["model_id"] == view.model_id
    assert data["image/png"].startswith(b"\x89PNG")
    assert data["text/plain"].startswith("Interactive view: the bits of a number in bfloat16")
    assert metadata["image/png"]["alt"] == data["text/plain"].splitlines()[0]


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="no floating-point format 'float17'"):
        explore.float_bits(1.0, "float17")
    with pytest.raises(TypeError, match="encode takes a real number"):
        explore.float_bits("1", "float16")


@pytest.fixture
def plan():
    return explore.transformer_budget()


def test_a_budget_is_that_of_the_controls(plan):
    step = budget.training(budget.MODELS["Llama 3 8B"], 1, 4096, devices=8)
    assert plan.budget == step
    assert "39.8 GB left" in plan.text.value
    plan.recompute.value, plan.batch.value = True, 4
    assert plan.budget == budget.training(budget.MODELS["Llama 3 8B"], 4, 4096, devices=8, recompute=True)
    assert bytes(plan.picture.value).startswith(b"\x89PNG")


def test_what_does_not_fit_is_said_in_bytes(plan):
    plan.devices.value = 1
    room = specs.find(plan.machine.value).memory - plan.budget.total
    assert room < 0
    assert f"{-room / 1e9:.1f} GB too much" in plan.text.value


def test_decoding_has_no_recomputation_and_counts_texts_in_all(plan):
    plan.task.value = "decoding"
    assert plan.recompute.disabled
    assert plan.batch.description == "texts in all"
    assert plan.budget == budget.decoding(budget.MODELS["Llama 3 8B"], 1, 4096, devices=8)
    assert "for 1 token:" in plan.text.value


def test_every_model_on_every_machine(plan):
    for machine, model in itertools.product(plan.machine.options, plan.model.options):
        plan.machine.value, plan.model.value = machine, model
        assert "A step takes at least" in plan.text.value


def test_a_budget_has_a_picture_and_words(plan):
    data, metadata = plan._repr_mimebundle_()
    assert data["text/plain"].startswith("Interactive view: memory by term against a device")
    assert 20 <= len(metadata["image/png"]["alt"]) <= 200


def test_unknown_models_are_refused():
    with pytest.raises(ValueError, match="'GPT-9' is not on the list; take one of GPT-2 small"):
        explore.transformer_budget("GPT-9")
