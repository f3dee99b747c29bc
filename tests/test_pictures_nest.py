"""The nest of loops: its costs are those that are counted, its numbers in a browser those of Python."""

import itertools
import math
import random

import pytest
import torch
from traitlets import TraitError

from helpers import counting, explore
from helpers.explore.nest import ORDERS, products
from helpers.units import si
from tests.tools.pictures import VIEWS, fragment, numbers_of, walk


def some_einsum(rng, operands):
    """A pattern of few names, and sizes of at least 2."""
    names = "ijkl"[: rng.randint(2, 4)]
    parts = [rng.sample(names, rng.randint(1, min(3, len(names)))) for _ in range(operands)]
    known = sorted(set().union(*parts))
    result = rng.sample(known, rng.randint(0, len(known)))
    pattern = f"{', '.join(' '.join(part) for part in parts)} -> {' '.join(result)}"
    return pattern, {name: rng.randint(2, 10) for name in known}


def counted(left, right, result, sizes):
    """The FLOPs of a product of two, as PyTorch runs and the course counts it."""
    shapes = [[sizes[name] for name in names] for names in (left, right)]
    equation = f"{''.join(left)},{''.join(right)}->{''.join(result)}"
    return counting.count(torch.einsum, equation, *(torch.empty(shape, device="meta") for shape in shapes)).flops


@pytest.mark.parametrize("seed", range(60))
def test_a_product_of_two_costs_what_is_counted(seed):
    pattern, sizes = some_einsum(random.Random(seed), 2)
    (step,) = products(pattern, sizes)
    left, right, result = (part.split() for part in pattern.replace("->", ",").split(","))
    assert step.sums + step.flops == counted(left, right, result, sizes), (pattern, sizes)


@pytest.mark.parametrize(("seed", "order"), [*itertools.product(range(20), ORDERS)])
def test_an_order_of_three_costs_what_its_two_products_do(seed, order):
    pattern, sizes = some_einsum(random.Random(seed), 3)
    *operands, result = (part.split() for part in pattern.replace("->", ",").split(","))
    pair = ["ABC".index(letter) for letter in order.split()]
    (rest,) = {0, 1, 2}.difference(pair)
    # What is made in between has no name that nobody asks for any more.
    made = [name for name in sorted({*operands[pair[0]], *operands[pair[1]]}) if name in {*result, *operands[rest]}]
    expected = counted(*(operands[place] for place in pair), made, sizes), counted(made, operands[rest], result, sizes)
    assert tuple(step.sums + step.flops for step in products(pattern, sizes, order)) == expected, (pattern, sizes)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"pattern": "i j -> i"}, "two or three operands"),
        ({"pattern": "i j, j k"}, "two or three operands"),
        ({"pattern": "i i, i k -> k"}, "i occurs twice in 'i i'"),
        ({"pattern": "i j, j k -> m"}, "the result has m, and no operand has it"),
        ({"pattern": "i (a b), j k -> i"}, "'\\(a' is no name"),
        ({"pattern": "i m, m k -> i k"}, "m of 'i m, m k -> i k' has no size; there are i, j, k, l"),
        ({"sizes": {"i": 0, "j": 4, "k": 9}}, "a size is a whole number from 1 to 10; i is 0"),
        ({"sizes": {"i": 2.5, "j": 4, "k": 9}}, "i is 2.5"),
        ({"sizes": {"i": 2, "j": 4}}, "k of 'i j, j k -> i k' has no size; there are i, j"),
        ({"sizes": {"i": 5000, "j": 4, "k": 9}}, "sizes of at most 4096, got 5000"),
    ],
)
def test_what_cannot_be_shown_is_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        explore.nest(**arguments)


def test_state_is_checked_after_the_start_too():
    view = explore.nest()
    with pytest.raises(ValueError, match="the result has m"):
        view.pattern = "i j, j k -> m"
    with pytest.raises(TraitError):
        view.order = "B A"
    with pytest.raises(ValueError, match="j of 'i j, j k -> i k' has no size; there are i, k: set"):
        view.sizes = {"i": 6, "k": 9}
    view.set(pattern="i j, j k, k -> i", order="B C", sizes={"i": 6, "j": 4, "k": 9})
    assert [step.flops for step in view.products] == [2 * 4 * 9, 2 * 6 * 4]


def total(steps):
    return sum(step.sums + step.flops for step in steps)


def of_nest(view):
    """All numbers that the picture shows, as Python has them."""
    steps = view.products
    told = {f"size of {name}": size for name, size in view.sizes.items()}
    for place, step in enumerate(steps, 1):
        number = f" {place}" if len(steps) > 1 else ""
        shape = " × ".join(str(view.sizes[name]) for name in step.result)
        told[f"flops{number}"] = si(step.sums + step.flops, "FLOP", 4)
        told[f"volume{number}"] = math.prod(view.sizes[name] for name in step.loops)
        told[f"shape{number}"] = shape or "one number"
        told[f"bytes{number}"] = si(4 * step.numbers, "B", 4)
    if len(steps) == 2:
        told["total"] = si(total(steps), "FLOP", 4)
        orders = [products(view.pattern, view.sizes, order) for order in ORDERS]
        told |= {f"order {place}": si(total(steps), "FLOP", 4) for place, steps in enumerate(orders, 1)}
    return told


@pytest.mark.slow
def test_every_number_of_random_states_is_that_of_python(page):
    rng, views = random.Random(0), []
    for _ in range(60):
        pattern, sizes = some_einsum(rng, rng.choice((2, 3)))
        sizes = {name: rng.choice((1, size)) for name, size in sizes.items()}
        views.append(explore.nest(pattern, sizes, order=rng.choice(ORDERS), revealed=["flops", "order"]))
    found = numbers_of(page(fragment(explore.nest())).locator(VIEWS), [view.state for view in views])
    for view, numbers in zip(views, found, strict=True):
        assert numbers == {name: str(value) for name, value in of_nest(view).items()}, view.state


STEPS = [
    ("textbox your guess, in FLOP", "type", "216", {}),
    ("button Count them", "click", "", {"flops": "432 FLOP", "all": "you said 216 FLOP, 2 times too low"}),
    ("slider name k >> .kept", "swipe", (0, 40), {"flops": "80 FLOP", "shape": "6", "all": "by itself: k of B"}),
    ("slider name k", "press", "ArrowUp", {"flops": "432 FLOP"}),
    ("slider name j >> .gone", "tap", "", {"flops": "216 FLOP", "shape": "6 × 4 × 9"}),
    ("slider name j", "press", "ArrowDown", {"flops": "432 FLOP"}),
    ("slider edge k >> .knob", "drag", (-36, 0), {"all": "Each adds up 4 products"}),
    ("slider edge k", "press", "Home", {"volume": "24"}),
    ("slider edge k", "press", "End", {"volume": "240"}),
    ("slider edge i", "press", "ArrowDown", {"volume": "200"}),
    ("spinbutton size of j", "click", "", {}),
    ("textbox size of j", "type", "11", {"alert": "j would be 11"}),
    ("textbox pattern", "type", "i j, j k -> m", {"alert": "The result has m, and no operand has it."}),
    ("combobox example", "choose", "three matrices", {"alert": "", "all": "Which order takes", "total": None}),
    ("button A · (B · C)", "click", "", {"volume 1": None}),
    ("button Count all three", "click", "", {"all": "You said A · (B · C)."}),
    ("button (A · C) · B", "click", "", {"total": "1.8 kFLOP"}),
    ("button Ask me again", "click", "", {"total": None}),
]


@pytest.mark.slow
def test_it_answers_mouse_finger_and_key(page):
    walk(page(fragment(explore.nest())).locator(VIEWS), STEPS)
