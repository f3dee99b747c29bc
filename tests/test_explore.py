"""The interactive views, driven through their controls as a browser would."""

import functools
import html
import itertools
import math
import random
import re

import ipywidgets as widgets
import pytest
import torch

from helpers import budget, counting, draw, explore, formats, specs, storage, units

WIDGET = "application/vnd.jupyter.widget-view+json"


@pytest.fixture
def view():
    return explore.float_bits(1.0, "bfloat16")


def shown(view):
    """The code that the buttons show."""
    return int("".join(str(int(bit.value)) for bit in view.bits), 2)


def alt(view):
    """The alt text of the picture that is shown; None where there is none."""
    start, end = '<img src="data:image/png;base64,iVBOR', 'style="max-width: 100%; height: auto">'
    assert view.picture.value.startswith(start) and view.picture.value.endswith(end)
    return html.unescape(re.search(r' alt="([^"]+)"', view.picture.value).group(1))


def test_first_state(view):
    assert (view.format.value, view.number.value, shown(view)) == ("bfloat16", "1.0", 0x3F80)
    assert "2⁰ × 1 = 1" in view.text.value
    assert "next number below: 0.99609375; above: 1.0078125" in view.text.value
    assert alt(view) == "Number line: 1 between its neighbours in bfloat16, with the gaps."


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
    assert [bit.description for bit in view.bits][:2] == ["bit 15, sign", "bit 14, exponent"]
    assert view.bits[-1].description == "bit 0, fraction"


def test_the_bundle_has_a_widget_a_picture_and_words(view):
    data, metadata = view._repr_mimebundle_()
    assert data[WIDGET] == widgets.VBox._repr_mimebundle_(view)[WIDGET]
    assert data["image/png"].startswith(b"\x89PNG")
    assert data["text/plain"].startswith("Interactive view, bits to be clicked: bfloat16")
    assert metadata["image/png"]["alt"] == data["text/plain"].splitlines()[0]


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="no floating-point format 'float17'"):
        explore.float_bits(1.0, "float17")
    with pytest.raises(TypeError, match="encode takes a real number"):
        explore.float_bits("1", "float16")


@pytest.fixture
def steps():
    return explore.strides()


def test_strides_first_state(steps):
    assert (steps.shape.value, steps.stride.value, steps.offset.value, steps.view.value) == ("4, 6", "6, 1", 0, "24")
    assert "offset of an element = 0 + i0 × 6 + i1 × 1" in steps.text.value
    assert "touched in order: 0 1 2 3 4 5 6 7" in steps.text.value
    assert "<b>contiguous</b>" in steps.text.value
    assert "✓ view(24) exists, with stride (1,)" in steps.text.value
    assert alt(steps).endswith("above its storage of 24 cells: 24 elements, contiguous, touch 24.")


def test_every_example_agrees_with_torch(steps):
    base = torch.arange(24)
    assert len(steps.PRESETS) >= 8
    for name, (shape, stride, offset, wanted) in steps.PRESETS.items():
        steps.preset.value = name
        t = base.as_strided(eval(f"({shape},)"), eval(f"({stride},)"), offset)
        assert f"touched in order: {' '.join(map(str, t.flatten().tolist()))}<br>" in steps.text.value
        assert ("not contiguous" not in steps.text.value) == t.is_contiguous()
        assert f"{storage.touched_bytes(t)} B touched of 192 B" in steps.text.value
        try:
            view = t.view(eval(f"({wanted},)"))
        except RuntimeError:
            assert f"✗ view({wanted}) does not exist: dimensions " in steps.text.value
        else:
            assert f"✓ view({wanted}) exists, with stride {view.stride()}" in steps.text.value


def test_an_example_can_be_chosen_again_after_a_change(steps):
    steps.preset.value = "the diagonal"
    steps.offset.value = 1
    assert steps.preset.value == steps.NO_PRESET
    assert "touched in order: 1 8 15 22" in steps.text.value
    steps.preset.value = "the diagonal"
    assert "touched in order: 0 7 14 21" in steps.text.value


def test_the_examples_hold_views_of_both_kinds(steps):
    verdicts = set()
    for name in steps.PRESETS:
        steps.preset.value = name
        verdicts.add("✓ view" in steps.text.value)
    assert verdicts == {True, False}


def test_the_rule_that_decides_is_named(steps):
    steps.shape.value, steps.stride.value = "6, 4", "1, 6"
    assert "✗ view(24) does not exist: dimensions 0 and 1 must merge, but stride 1 is not 4 × 6" in steps.text.value
    steps.view.value = "2, 3, -1"
    assert "✓ view(2, 3, -1) exists, with stride (3, 1, 6)" in steps.text.value
    steps.view.value = "5"
    assert "the shape (5,) does not have 24 elements" in steps.text.value


def test_shared_cells_are_counted(steps):
    steps.preset.value = "one row, expanded"
    assert "24 elements, 18 times a cell that another element has too; 48 B touched" in steps.text.value


@pytest.mark.parametrize(
    ("control", "value", "words"),
    [
        ("shape", "4, x", "shape is '4, x': write whole numbers with commas, like 4, 6."),
        ("shape", "2.5", "write whole numbers"),
        ("shape", "4", "shape has 1 numbers and stride 2"),
        ("stride", "6, -1", "no negative sizes or strides"),
        ("stride", "9, 1", "the last element would be at offset 32; the storage ends at 23"),
        ("offset", 1, "the last element would be at offset 24"),
        ("view", "many", "view as is 'many'"),
        ("view", "-2, 12", "view as is '-2, 12': torch has no negative sizes or strides."),
        ("shape", "<b>", "'<b>'"),
    ],
)
def test_impossible_settings_are_told_and_leave_no_old_picture(steps, control, value, words):
    before = getattr(steps, control).value
    getattr(steps, control).value = value
    assert words in html.unescape(steps.text.value) and 'role="alert"' in steps.text.value
    assert "<b>" not in steps.text.value
    assert steps.picture.layout.display == "none"
    getattr(steps, control).value = before
    assert "contiguous" in steps.text.value and steps.picture.layout.display is None


def test_too_much_for_the_picture_is_told(steps):
    steps.stride.value = "0, 0"
    steps.shape.value = "8, 12"
    assert "96 elements, 95 times a cell" in steps.text.value
    steps.shape.value = "1, 97"
    assert "the picture holds 3 dimensions and 96 elements; make the shape smaller." in steps.text.value
    steps.shape.value, steps.stride.value = "1, 1, 1, 1", "0, 0, 0, 0"
    assert "the picture holds 3 dimensions" in steps.text.value


def test_a_tensor_without_dimensions_or_elements(steps):
    steps.shape.value, steps.stride.value, steps.offset.value, steps.view.value = "()", "()", 5, "1"
    assert "touched in order: 5<br>1 elements" in steps.text.value
    steps.shape.value, steps.stride.value = "0", "1"
    assert "0 elements; 0 B touched" in steps.text.value


def test_strides_takes_its_first_state():
    view = explore.strides((3,), (2,), 1, (3, 1))
    assert "touched in order: 1 3 5<br>" in view.text.value
    data, _ = view._repr_mimebundle_()
    assert "Offsets touched: tensor in order: 1 3 5" in data["text/plain"]


def test_strides_refuses_a_first_state_that_does_not_fit():
    with pytest.raises(ValueError, match="the last element would be at offset 30"):
        explore.strides((4, 6), (6, 1), 7)


@pytest.fixture
def rooflines():
    return explore.roofline()


def test_the_roofline_starts_with_a_verdict(rooflines):
    assert "<b>Linear layer: memory-bound, the ridge is at 295 FLOP/B; more bandwidth" in rooflines.text.value
    assert alt(rooflines) == "Roofline with five ops. linear layer, batch 64: memory-bound."
    data, metadata = rooflines._repr_mimebundle_()
    assert data[WIDGET]["model_id"] == rooflines.model_id
    assert metadata["image/png"]["alt"] == data["text/plain"].splitlines()[0]


def test_a_larger_batch_brings_the_linear_layer_over_the_ridge(rooflines):
    before = rooflines.picture.value
    # 2·B·D² / (2·(2·B·D + D²)) for B = 1024, D = 4096 is 683
    rooflines.batch.value = 1024
    assert "Linear layer: compute-bound" in rooflines.text.value and "intensity 683 FLOP/B" in rooflines.text.value
    assert "100.0% of the peak" in rooflines.text.value
    assert rooflines.picture.value != before and "linear layer, batch 1024: compute-bound" in alt(rooflines)


@pytest.mark.parametrize("op", ["ReLU", "GELU, fused", "a matrix per example", "decoding attention"])
def test_no_batch_moves_what_shares_nothing(rooflines, op):
    rooflines.op.value = op
    rooflines.batch.value = 65536
    assert "memory-bound" in rooflines.text.value
    assert op in draw.show(rooflines._figure()).words


@pytest.mark.parametrize(
    ("op", "function", "sizes"),
    [
        ("ReLU", torch.relu, [(8, 128)]),
        ("GELU, fused", functools.partial(torch.nn.functional.gelu, approximate="tanh"), [(8, 128)]),
        ("linear layer", torch.matmul, [(8, 128), (128, 128)]),
        ("a matrix per example", torch.bmm, [(8, 1, 128), (8, 128, 128)]),
        ("decoding attention", lambda q, k, v: q @ k @ v, [(8, 1, 128), (8, 128, 1024), (8, 1024, 128)]),
    ],
)
def test_an_op_under_the_roof_costs_what_is_counted(rooflines, op, function, sizes):
    rooflines.op.value, rooflines.batch.value, rooflines.width.value = op, 8, 128
    cost = counting.count(function, *(torch.empty(size, dtype=torch.bfloat16, device="meta") for size in sizes))
    assert explore.roofs._OPS[op](8, 128) == (cost.flops, cost.bytes_ideal)
    compute, move = cost.flops / 989.5e12, cost.bytes_ideal / 3.35e12
    expected = (
        f"{units.si(cost.flops, 'FLOP')}, {units.si(cost.bytes_ideal, 'B')}, "
        f"intensity {units.si(cost.flops / cost.bytes_ideal, 'FLOP/B')}<br>"
        f"to compute {units.si(compute, 's')}, to move {units.si(move, 's')}: "
        f"at least {units.si(max(compute, move), 's')}<br>"
        f"attainable {units.si(cost.flops / max(compute, move), 'FLOP/s')}, {compute / max(compute, move):.1%} of"
    )
    assert expected in rooflines.text.value


def test_the_sliders_are_the_machine_and_the_button_leads_back(rooflines):
    rooflines.peak.value, rooflines.bandwidth.value = 1e15, 1e12
    assert "the ridge is at 1 kFLOP/B" in rooflines.text.value
    assert "Line at the start, peak" in draw.show(rooflines._figure()).words
    looks = {line.get_label(): (line.get_color(), line.get_linewidth()) for line in rooflines._figure().axes[0].lines}
    assert looks["at the start, peak"][0] == draw.BLACK != looks["now, peak"][0]
    assert looks["at the start, peak"][1] < looks["now, peak"][1]
    rooflines.reset.click()
    assert (rooflines.peak.value, rooflines.bandwidth.value) == (989.5e12, 3.35e12)
    assert "at the start" not in draw.show(rooflines._figure()).words


@pytest.mark.parametrize("sent", [10 ** math.log10(989.5e12), 989.5001e12])  # the last digits are gone
def test_a_value_that_a_browser_sends_back_is_where_it_was(rooflines, sent):
    rooflines.peak.value = sent
    assert rooflines.peak.value != 989.5e12
    assert "at the start" not in draw.show(rooflines._figure()).words
    assert "now: 990 TFLOP/s" in draw.show(rooflines._figure()).words


def test_each_end_of_each_slider_can_be_drawn(rooflines):
    for slider, ends in (
        (rooflines.peak, (1e10, 1e16)),
        (rooflines.bandwidth, (1e9, 10**13.5)),
        (rooflines.batch, (1, 65536)),
        (rooflines.width, (64, 16384)),
    ):
        for end in ends:
            slider.value = end
            assert "-bound" in rooflines.text.value


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((0, 1e12), ValueError, "a peak is a finite number"),
        ((1e12, "fast"), TypeError, "the bandwidth is a number"),
        ((9.9e9, 1e12), ValueError, "the sliders go from 10 GFLOP/s to 10 PFLOP/s"),
        ((1.1e16, 1e12), ValueError, "the sliders go from 10 GFLOP/s to 10 PFLOP/s"),
        ((1e12, 9.9e8), ValueError, "and from 1 GB/s to 31.6 TB/s; got 1 TFLOP/s and 990 MB/s"),
        ((1e12, 3.2e13), ValueError, "and from 1 GB/s to 31.6 TB/s; got 1 TFLOP/s and 32 TB/s"),
    ],
)
def test_no_machine_for_the_sliders(arguments, error, words):
    with pytest.raises(error, match=words):
        explore.roofline(*arguments)


@pytest.mark.parametrize(("peak", "bandwidth"), [(1e10, 1e9), (1e16, 10**13.5)])
def test_a_machine_may_be_at_the_ends_of_the_sliders(peak, bandwidth):
    view = explore.roofline(peak, bandwidth)
    assert (view.peak.value, view.bandwidth.value) == (peak, bandwidth)


@pytest.fixture
def plan():
    return explore.transformer_budget()


def test_a_budget_is_that_of_the_controls(plan):
    step = budget.training(budget.MODELS["Llama 3 8B"], 1, 4096, devices=8)
    assert plan.budget == step
    assert "39.7 GB left" in plan.text.value
    plan.recompute.value, plan.batch.value = True, 4
    assert plan.budget == budget.training(budget.MODELS["Llama 3 8B"], 4, 4096, devices=8, recompute=True)
    assert alt(plan).endswith("the two times of a step. Llama 3 8B, training: fits, bound by arithmetic.")


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


def test_every_model_on_every_machine(plan, monkeypatch):
    monkeypatch.setattr(draw.Drawing, "_repr_mimebundle_", lambda self: ({"image/png": b""}, {}))
    for machine, model in itertools.product(plan.machine.options, plan.model.options):
        plan.machine.value, plan.model.value = machine, model
        assert "A step takes at least" in plan.text.value


@pytest.mark.parametrize(("task", "made"), [("training", 2 * 4096 * 8), ("decoding", 2)])
def test_the_sentences_of_a_budget_follow_from_its_numbers(plan, task, made):
    plan.task.value, plan.batch.value = task, 2
    step, memory = plan.budget, 80e9  # an H100: 989.5 TFLOP/s and 3.35 TB/s
    compute, move = step.flops / 989.5e12, step.bytes / 3.35e12
    seconds, bound = max((compute, "arithmetic"), (move, "memory"))
    assert f"{units.si(step.total, 'B')} of 80 GB, <b>{units.si(memory - step.total, 'B')} left</b>" in plan.text.value
    assert f"at least {units.duration(seconds)} for {units.si(made, 'tokens')}: at most " in plan.text.value
    share = 100 * compute / seconds
    assert f"{units.si(made / seconds, 'tokens/s')}, arithmetic at {share:.1f}% of its peak" in plan.text.value
    assert alt(plan).endswith(f"Llama 3 8B, {task}: fits, bound by {bound}.")


def test_a_budget_has_a_picture_and_words(plan):
    data, metadata = plan._repr_mimebundle_()
    assert data["text/plain"].startswith("Interactive view, memory by term against a device")
    assert 20 <= len(metadata["image/png"]["alt"]) <= 200


def test_unknown_models_are_refused():
    with pytest.raises(ValueError, match="'GPT-9' is not on the list; take one of GPT-2 small"):
        explore.transformer_budget("GPT-9")


def test_one_change_draws_one_picture_and_the_movable_ones_on_the_same_figure(monkeypatch):
    drawn = []
    picture = {"image/png": b""}
    monkeypatch.setattr(draw.Drawing, "_repr_mimebundle_", lambda self: drawn.append(self.figure) or (picture, {}))
    bits, steps, roof, plan = (
        getattr(explore, name)() for name in ("float_bits", "strides", "roofline", "transformer_budget")
    )
    for view, control, value in [
        (bits, bits.number, "2.5"), (bits, bits.format, "float16"), (bits, bits.bits[3], True),
        (steps, steps.preset, "the diagonal"), (steps, steps.offset, 1), (steps, steps.view, "4"),
        (roof, roof.op, "ReLU"), (roof, roof.batch, 1), (roof, roof.peak, 1e12),
        (plan, plan.task, "decoding"), (plan, plan.batch, 16), (plan, plan.model, "GPT-2 small"),
    ]:  # fmt: skip
        figure, drawn[:] = view._drawn, []
        control.value = value
        assert len(drawn) == 1
        assert figure in (None, drawn[0])
    figure, drawn[:] = roof._drawn, []
    roof.reset.click()
    assert drawn == [figure] == [roof._drawn]
    assert plan._drawn is not None
