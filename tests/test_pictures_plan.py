"""The plan: its numbers against helpers.budget and hand-made ones, what it refuses, how it asks and answers."""

import math
import random

import pytest
from traitlets import TraitError

from helpers import budget, explore, specs
from helpers.explore.plan import MACHINES, many
from helpers.model import MODELS, Config
from helpers.units import DAY, duration, si
from tests.tools.pictures import VIEWS, fragment, numbers_of, shown, touch

try:
    from playwright.sync_api import expect
except ImportError:  # then every test in a browser is skipped
    expect = None

H100 = 989.5e12


def plain(value, digits):
    """With so many significant digits, but every digit before the point."""
    decimals = max(digits - 1 - math.floor(math.log10(value)), 0)
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def span(days):
    """As the picture writes it."""
    value, unit, digits = (days / 365, "years", 2) if days >= 730 else (days, "days", 3)
    return f"{plain(value, digits)} {unit}"


def test_the_napkin_holds_70_billion_parameters_on_16_and_trains_for_25_years():
    plan = explore.napkin("Llama 3 70B", 70e9)
    assert [question["answer"] for question in plan.asked] == [16, plan.days]
    assert "16" not in plan._repr_mimebundle_()[0]["text/plain"]  # the answer is not given away
    assert plan.days == pytest.approx(6 * 70e9 * 15e12 / (16 * H100 * 0.5) / DAY) == pytest.approx(25.2 * 365, rel=0.01)
    plan.gpus = 1024
    assert plan.days == pytest.approx(143.9, abs=0.05) and plan.mfu == pytest.approx(0.5)


def test_a_published_run_lies_where_its_gpu_hours_say():
    plan = explore.napkin("Llama 3 70B", 70e9)
    run = next(run for run in plan.published if run["name"] == plan.model)
    plan.gpus, plan.utilization = run["gpus"], run["mfu"]
    assert plan.days == pytest.approx(run["days"]) == pytest.approx(260.4, abs=0.05)
    assert run["mfu"] == pytest.approx(0.276, abs=0.001)


def test_recomputing_whole_blocks_costs_a_third_more_days():
    plan = explore.plan("Llama 3 70B", shared=64)
    days, flops = plan.days, plan.step.flops
    plan.recompute = "full"
    assert plan.days / days == pytest.approx(plan.step.flops / flops) == pytest.approx(1.33, abs=0.01)
    assert plan.mfu == pytest.approx(0.41 / 1.33, rel=0.01)
    assert plan.asked[0]["answer"] == plan.days


def test_the_network_bounds_where_little_arithmetic_hides_it():
    plan = explore.plan("Llama 3 70B", text_gpus=8, utilization=0.41)
    arithmetic, network = plan.seconds
    assert network == 6 * MODELS["Llama 3 70B"].parameters / 400e9 < arithmetic  # the close case of lesson 07
    plan.utilization = 0.6
    arithmetic, network = plan.seconds
    assert arithmetic < network and plan.mfu < 0.6
    plan.gpus = 8
    assert plan.seconds[1] == 0  # within one server


def test_a_model_of_the_readers_own():
    own = Config("own", layers=2, width=64, heads=4, vocabulary=500, context=128)
    plan = explore.plan(own, gpus=1)
    assert plan.model == "own" and plan.step == budget.training(own, 1, 128)
    assert "own on 1 × H100" in plan._words() and explore.napkin(own).least == 1


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"model": "GPT-5"}, ValueError, "no model 'GPT-5': pass a Config, or take one of GPT-2 small"),
        ({"handles": ["days"]}, ValueError, "no handle 'days': take some of model, machine"),
        ({"machine": "abacus"}, TraitError, "'machine' trait"),
        ({"utilization": 1.2}, TraitError, "of a Plan instance|0.02"),
        ({"recompute": "some"}, TraitError, "'recompute' trait"),
        ({"days": 3}, TypeError, "this view has no days, only deadline"),
    ],
)
def test_what_cannot_be_planned_is_refused(arguments, error, words):
    with pytest.raises(error, match=words):
        explore.plan(**arguments)


def test_cards_without_bfloat16_train_in_float16():
    v100 = specs.find("NVIDIA V100 SXM2 32GB")
    assert MACHINES[v100.name] == {"memory": 32e9, "peak": 125e12, "dtype": "float16"}


def some_plan(rng, view):
    view.model, view.machine = rng.choice(list(MODELS)), rng.choice(list(MACHINES))
    view.gpus, view.shared, view.texts = 2 ** rng.randint(0, 14), 2 ** rng.randint(0, 14), 2 ** rng.randint(0, 8)
    view.text_gpus, view.recompute = rng.choice((1, 2, 4, 8)), rng.choice(budget.RECOMPUTATIONS)
    view.fused, view.utilization = rng.random() < 0.5, round(rng.uniform(0.02, 1), 2)
    view.run, view.price, view.deadline = rng.choice((1e9, 3e11, 15e12, 1e15)), 2.5, rng.choice((30.0, 180.0, 1e4))


def of_plan(view):
    step, memory = view.step, MACHINES[view.machine]["memory"]
    room, late = memory - step.peak, view.days - view.deadline
    hours = view.gpus * view.days * 24
    arithmetic, network = view.seconds
    tokens = view.gpus // min(view.text_gpus, view.gpus) * view.texts * view.models[view.model]["length"]
    terms = ("weights", "gradients", "moments", "master copy", "activations", "loss")
    alive = step.alive[step.fullest]
    return {term: si(alive[term], "B") if term in alive else "none yet" for term in terms} | {
        "peak": si(step.peak, "B"),
        "moment": step.fullest,
        "days": span(view.days),
        "fits": f"fits, {si(room, 'B')} left" if room >= 0 else f"does not fit, {si(-room, 'B')} too much",
        "late": f"{span(late)} late" if late > 0 else f"{span(-late)} to spare",
        "hours": many(hours, "GPU-hours"),
        "dollars": many(hours * view.price, "dollars"),
        "mfu": plain(view.mfu, 2),
        "tokens": many(tokens, "tokens"),
        "arithmetic": duration(arithmetic),
        "network": duration(network),
    }


@pytest.mark.slow
def test_every_number_of_random_states_is_that_of_python(page):
    rng, view = random.Random(0), explore.plan(asked=[])
    states, expected = [], []
    for _ in range(40):
        some_plan(rng, view)
        states.append(view.state)
        expected.append(of_plan(view))
    found = numbers_of(page(fragment(view)).locator(VIEWS), states)
    for state, numbers, told in zip(states, found, expected, strict=True):
        assert {name: numbers[name] for name in told} == told, state


@pytest.mark.slow
def test_it_asks_then_moves_by_mouse_finger_and_key(page):
    view = page(fragment(explore.napkin("Llama 3 70B", 70e9))).locator(VIEWS)
    guess = view.get_by_role("slider", name="your guess of the GPUs")
    touch(guess.locator(".knob"), "drag", (-60, 0))
    touch(guess, "press", "ArrowRight")
    view.get_by_role("button", name="Show the answer").click()
    expect(shown(view, "answer gpus")).to_have_text("16 GPUs")
    guess = view.get_by_role("slider", name="your guess of the days")
    touch(guess, "press", "ArrowUp")
    view.get_by_role("button", name="Show the answer").click()
    expect(view).to_contain_text("It takes 25 years; you said 38 days")
    point = view.get_by_role("slider", name="GPUs and days")
    for _ in range(6):
        point.press("ArrowRight")
    expect(shown(view, "days")).to_have_text("144 days")
    touch(point.locator(".knob"), "drag", (0, -300))
    expect(shown(view, "mfu")).to_have_text("0.02")  # clamped, not refused
    touch(point.locator(".knob"), "drag", (-400, 0))
    expect(shown(view, "fits")).to_contain_text("does not fit")
    expect(shown(view, "answer days")).to_have_text("25 years")  # the answer stays that of the question
    view.get_by_role("button", name="Ask me again").nth(1).click()
    expect(view.get_by_role("slider", name="your guess of the days")).to_have_count(1)


@pytest.mark.slow
def test_a_point_dropped_beside_a_published_run_is_on_it_and_can_be_dragged_on(page):
    plan = explore.napkin("Llama 3 70B", 70e9)
    plan.revealed = ["gpus", "days"]
    view = page(fragment(plan)).locator(VIEWS)
    knob = view.get_by_role("slider", name="GPUs and days").locator(".knob")

    def drop_beside(there, by):
        start, end = (part.bounding_box() for part in (knob, there))
        across = end["x"] + end["width"] / 2 - start["x"] - start["width"] / 2
        down = end["y"] + end["height"] / 2 - start["y"] - start["height"] / 2
        touch(knob, "drag", (across + by[0], down + by[1]))

    drop_beside(view.locator("[data-link='Llama 3 70B'] .published"), (4, -5))
    expect(shown(view, "days")).to_have_text("260 days")
    expect(shown(view, "hours")).to_have_text("6.4 million GPU-hours")
    drop_beside(view.get_by_text("64", exact=True), (4, -150))
    expect(shown(view, "GPUs")).to_have_text("64 GPUs")


@pytest.mark.slow
def test_cures_are_switched_and_typed(page):
    view = page(fragment(explore.plan("Llama 3 70B", shared=64, asked=[]))).locator(VIEWS)
    expect(shown(view, "peak")).to_have_text("246 GB")
    view.get_by_role("button", name="whole blocks").click()
    expect(shown(view, "days")).to_have_text("267 days")
    view.get_by_role("button", name="the scores").click()
    expect(view).to_contain_text("Fused attention keeps no scores")
    view.get_by_role("spinbutton", name="GPUs on one text").press("End")
    expect(shown(view, "fits")).to_contain_text("fits")
    expect(shown(view, "tokens")).to_have_text("1.05 million tokens")
    view.get_by_role("spinbutton", name="of the peak").click()
    field = view.get_by_role("textbox", name="of the peak")
    field.fill("1.5")
    field.press("Enter")
    expect(view.locator(".problem")).to_contain_text("nothing is faster")
    view.get_by_role("combobox", name="GPU").select_option("NVIDIA V100 SXM2 32GB")
    expect(view).to_contain_text("It has no bfloat16: the run is one in mixed float16")


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 800, 1280])
def test_it_fits_on_the_screen(page, width):
    opened = page(fragment(explore.napkin()), fragment(explore.plan(asked=[])), width=width)
    assert opened.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.slow
def test_the_chart_holds_still_on_a_phone_whatever_the_words_say(page):
    view = page(fragment(explore.plan(asked=[])), width=390).locator(VIEWS)
    point, chart = view.get_by_role("slider", name="GPUs and days"), view.get_by_role("group", name="logarithmic")
    places = set()
    for key in ["ArrowUp"] * 9 + ["ArrowRight"] * 14 + ["ArrowLeft"] * 14:
        point.press(key)
        places.add(round(chart.bounding_box()["y"] - view.bounding_box()["y"]))
    assert len(places) == 1
