"""The block card: its formulas are the costs of `budget`, and every number that it shows is Python's."""

import random

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from traitlets import TraitError

from helpers import budget, explore, specs, units
from helpers.explore import card
from helpers.model import MODELS, Block, Config
from tests.tools import browser

EXPERTS = Config("experts", layers=2, width=64, heads=4, vocabulary=99, context=64, family="Llama", experts=8, chosen=2)
NEWER = Config(
    "newer",
    layers=2,
    width=96,
    heads=6,
    key_heads=2,
    channels=32,
    vocabulary=99,
    context=64,
    family="Llama",
    norms=4,
    qk_norm=True,
    sinks=True,
)
VIEW = ".course-view"


@pytest.mark.parametrize("config", [*MODELS.values(), EXPERTS, NEWER], ids=lambda config: config.name)
@pytest.mark.parametrize("fused", [True, False])
def test_formulas_are_the_costs(config, fused):
    rng, formulas = random.Random(config.name), budget.block_formulas(config, fused=fused)
    for decode in (False, True):
        batch, tokens = rng.choice((1, 3, 8)), rng.randint(2, 64)
        letters = {"z": 2, "b": batch, "t": 1 if decode else tokens, "s": tokens, "d": config.width, "f": config.hidden}
        letters |= {"h": config.heads, "kv": config.key_heads, "c": config.channels}
        letters |= {"e": config.experts, "k": config.chosen}
        boxes = budget.block_costs(config, batch, tokens, decode=decode, fused=fused)
        for formula, box in zip(formulas, boxes, strict=True):
            for name in ("name", "shape", "kernel"):
                assert formula[name] == getattr(box, name)
            assert formula["layout of one text" if batch == 1 else "layout"] == box.layout
            for name in ("parameters", "flops", "bytes") if decode else ("parameters", "flops", "bytes", "kept"):
                found = formula[name]
                if not isinstance(found, int):
                    found = found.subs({symbol: letters[str(symbol)] for symbol in found.free_symbols})
                assert found == getattr(box, name), (box.name, name)


class Copies(TorchDispatchMode):
    """Counts what is copied."""

    count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += "clone" in str(func)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    ("family", "key_heads", "batch", "copies"),
    [
        ("GPT-2", 4, 1, 1),
        ("GPT-2", 4, 2, 4),
        ("Llama", 2, 1, 2),
        ("Llama", 2, 2, 4),
    ],
)
def test_boxes_copy_where_pytorch_does(family, key_heads, batch, copies):
    """The scores copy q and k, the weighted sum v, the output the joined heads: at most four copies in three boxes."""
    config = Config("a", layers=1, width=64, heads=4, key_heads=key_heads, vocabulary=9, context=16, family=family)
    with torch.no_grad(), Copies() as counted:
        Block(config)(torch.randn(batch, 16, 64), fused=False)
    boxes = {box.name for box in budget.block_costs(config, batch, 16, fused=False) if box.layout == "copy"}
    assert counted.count == copies
    assert ("weighted sum" in boxes, "scores" in boxes, "output" in boxes) == (copies > 2, copies > 1, True)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"model": "Llama 9"}, ValueError, "there is no model 'Llama 9'; there are GPT-2 small"),
        ({"machine": "abacus"}, TraitError, "'machine' trait"),
        ({"upto": 2}, TraitError, "'upto' trait"),
        ({"model": "GPT-2 small", "tokens": 4096}, ValueError, "learned positions for 1024 tokens"),
        ({"only": "gelu"}, ValueError, "has no box 'gelu'; it has norm 1, q k v"),
    ],
)
def test_what_is_no_card_is_refused(arguments, error, words):
    with pytest.raises(error, match=words):
        explore.block_card(**arguments)


def test_the_card_of_ones_own_model():
    view = explore.block_card(NEWER, tokens=32)
    assert view.model == "newer" and "norm q k" in [box.name for box in view.costs]
    assert "newer" in view.models and repr(view)


@pytest.fixture(scope="module")
def chromium():
    browser.skip(browser.lacking())
    with browser.chromium() as found:
        yield found


@pytest.fixture
def page(chromium):
    """A function that opens cards in a page, and afterwards finds no complaint in it."""
    complaints = []
    found = chromium.new_page(viewport={"width": 1280, "height": 720})
    found.set_default_timeout(1000 * browser.PATIENCE)
    found.on("console", lambda message: complaints.append(message.text))
    found.on("pageerror", lambda error: complaints.append(str(error)))

    def opened(*views, width=1280):
        found.set_viewport_size({"width": width, "height": 720})
        stored = [view._repr_mimebundle_()[0] for view in views]
        data = [
            one | {explore.MIME: one[explore.MIME] | {"state": view.state}}
            for one, view in zip(stored, views, strict=True)
        ]
        found.set_content(
            '<!doctype html><meta charset="utf-8">' + "".join(explore.live({"data": one}) for one in data)
        )
        return found.locator(VIEW)

    yield opened
    found.close()
    assert complaints == []


def numbers(view):
    """All that a card shows and Python can tell, by name."""
    return dict(
        view.locator("[data-shown]").evaluate_all("parts => parts.map(part => [part.dataset.shown, part.textContent])")
    )


def count(number):
    return units.si(number, "").strip()


def of_python(view):
    """What it should show, told from `budget` and the roof."""
    boxes, kernels = view.costs, view.kernels
    labels = card._labels([box.name for box in boxes])
    told = {"batch": str(view.batch), "tokens": str(view.tokens)}
    for label, box in zip(labels, boxes, strict=True):
        told |= {f"parameters of {label}": count(box.parameters)} if box.parameters else {}
        told[f"FLOPs of {label}"] = count(box.flops)
    place = 0
    for kernel in kernels:
        label = labels[place] if len(kernel.boxes) == 1 else kernel.boxes[0].kernel
        place += len(kernel.boxes)
        told[f"bytes of {label}"] = units.si(kernel.bytes, "B")
        told[f"intensity of {label}"] = card._intensity(kernel.flops / kernel.bytes)
        told[f"least time of {label}"] = units.duration(kernel.seconds)
        told |= {f"kept of {label}": units.si(kernel.kept, "B")} if kernel.kept else {}
    total = {name: sum(getattr(box, name) for box in boxes) for name in ("parameters", "flops", "bytes", "kept")}
    seconds, waits = sum(one.seconds for one in kernels), [one for one in kernels if one.bound == "memory"]
    told |= {"total parameters": count(total["parameters"]), "total FLOPs": count(total["flops"])}
    told |= {"total bytes": units.si(total["bytes"], "B"), "total time": units.duration(seconds)}
    told["total FLOP/B"] = card._intensity(total["flops"] / total["bytes"])
    told |= {"total kept": units.si(total["kept"], "B")} if total["kept"] else {}
    told["waiting"] = f"{len(waits)} of {len(kernels)}"
    return told | {"part": f"{sum(one.seconds for one in waits) / seconds:.0%}"}


@pytest.mark.slow
def test_every_number_of_random_states_is_that_of_python(page):
    rng, views = random.Random(0), []
    machines = [spec.name for spec in specs.table() if spec.elementwise and "bfloat16" in spec.matrix]
    for _ in range(24):
        model = rng.choice([*MODELS.values(), NEWER, EXPERTS])
        tokens = 2 ** rng.randint(0, 10 if model.family == "GPT-2" else 17)
        state = {"machine": rng.choice(machines), "decode": rng.random() < 0.5, "fused": rng.random() < 0.5}
        views.append(explore.block_card(model, 2 ** rng.randint(0, 12), tokens, asked=False, **state))
    for some in (views[:8], views[8:16], views[16:]):
        shown = page(*some)
        for place, view in enumerate(some):
            assert numbers(shown.nth(place)) == of_python(view), view.state


@pytest.mark.slow
@pytest.mark.parametrize(
    ("upto", "marks", "answer"),
    [
        (3, {"output", "softmax"}, "scores, weighted sum, output"),
        (4, {"up"}, "up, down"),
        (5, {"norm 1"}, "norm 1, softmax, add 1, norm 2, GELU, add 2"),
        (7, {"GELU", "scores"}, "softmax, weighted sum"),
    ],
)
def test_marks_are_judged(page, upto, marks, answer):
    view = page(explore.block_card("GPT-2 small", 2, 1024, upto=upto, fused=False))
    assert "?" in view.locator(".card").inner_text()
    for label in marks:
        view.get_by_role("button", name=f"mark {label}").click()
    view.get_by_role("button", name="Show the answer").click()
    told = view.locator("[data-shown=answer]").text_content()
    assert told == answer or upto in (5, 7), told
    hits = len(marks & set(told.split(", ")))
    assert f"You marked {hits} of {len(told.split(', '))}" in view.locator(".asks").text_content()
    assert "?" not in view.locator(".card").inner_text()
    view.get_by_role("button", name="Ask me again").click()
    assert "?" in view.locator(".card").inner_text()


@pytest.mark.slow
def test_time_is_guessed_and_numbers_open_and_are_dragged(page):
    view = page(explore.block_card("GPT-2 small", tokens=1024, upto=6))
    mark = view.get_by_role("slider", name="your guess of the least time")
    mark.press("Home")
    mark.press("ArrowRight")
    view.get_by_role("button", name="Show the answer").click()
    assert "26.5 µs: you said 130 ns, 204 times too low" in view.locator(".asks").text_content()
    view.get_by_role("button", name="FLOPs of up").click()
    assert view.locator(".law").nth(1).text_content() == "= 1 · 1024 · (2 · 768 · 3072 + 3072) = 4.83 G"
    view.get_by_role("spinbutton", name="tokens").press("ArrowLeft")
    assert view.locator("[data-shown=tokens]").text_content() == "512" and view.locator("circle.ghost").count() == 1
    view.get_by_role("button", name="decode").click()
    assert view.locator("[data-shown=waiting]").text_content() == "10 of 10"
    view.get_by_role("combobox", name="model").select_option("Llama 3 8B")
    view.get_by_role("spinbutton", name="tokens").press("End")
    view.get_by_role("combobox", name="model").select_option("GPT-3 175B")  # has fewer positions
    assert view.locator("[data-shown=tokens]").text_content() == "2048"
    assert view.locator(".problem").text_content() == ""


@pytest.mark.slow
def test_the_card_fits_a_screen_and_a_phone(page):
    for width, height in ((1280, 720), (390, 844)):
        view = page(explore.block_card(), width=width)
        assert view.bounding_box()["height"] <= height
        assert view.page.evaluate("document.documentElement.scrollWidth") == width
        sizes = (
            "view => [...view.querySelectorAll('*')].filter(e => e.innerText).map(e => getComputedStyle(e).fontSize)"
        )
        small = min(float(size.removesuffix("px")) for size in view.evaluate(sizes))
        assert small >= 12
        targets = view.locator("button, select, [tabindex='0']").evaluate_all(
            "all => all.map(e => e.getBoundingClientRect().height)"
        )
        assert min(targets) >= 24


def test_a_card_is_changed_as_a_whole_or_not_at_all():
    view = explore.block_card("GPT-2 small", tokens=1024)
    with pytest.raises(ValueError, match="learned positions for 1024 tokens, so 2048 are too many"):
        view.tokens = 2048
    with view.hold_trait_notifications():
        view.model, view.tokens = "Llama 3 8B", 2048
    assert view.costs == budget.block_costs(MODELS["Llama 3 8B"], 1, 2048)
