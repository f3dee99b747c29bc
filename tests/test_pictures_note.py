"""The note and the walk: what Python hands over, and that the browser computes the same in random states."""

import itertools
import math
import random
import re

import pytest
import torch
from traitlets import TraitError

from helpers import explore, storage, units
from helpers.explore.note import note_of
from helpers.explore.walk import LINE, SIZE, misses, places
from tests.tools.pictures import VIEWS, fragment, numbers_of, shown, walk

X = torch.arange(10, 22).view(3, 4)
TABLE = torch.arange(24).view(4, 6)
SMALL = TABLE.view(2, 3, 4).transpose(0, 1)


@pytest.mark.parametrize("seed", range(40))
def test_a_note_is_found_where_a_view_exists(seed):
    rng = random.Random(seed)
    shape = [rng.randint(1, 4) for _ in range(rng.randint(0, 3))]
    stride = [rng.choice((0, 1, 2, 3, 5, 8)) if size > 1 else 1 for size in shape]
    cells = torch.as_strided(torch.arange(100), shape, stride, rng.randint(0, 20))
    note, why = note_of(cells.clone())
    assert note is not None and (note["shape"], note["stride"], why) == (shape, stride, "")
    assert note["offset"] == cells.storage_offset()


@pytest.mark.parametrize(
    ("grid", "why"),
    [
        (X[[2, 0, 2]], "in dimension 0 it is −8 and 8 cells"),
        (X.flip(0), "dimension 0 would need a stride of −4, and PyTorch has none below 0"),
        (torch.cat([X[:, :1], X[:, 2:]], 1), "in dimension 1 it is 1 and 2 cells"),
    ],
)
def test_a_grid_without_a_note_says_why(grid, why):
    task = explore.note(X, grids={"it": grid}).tasks["it"]
    assert task["answer"] is None and why in task["why"]


def test_words_do_not_give_the_note_away():
    words = explore.note(X, grids={"column": X[:, 2]})._repr_mimebundle_()[0]["text/plain"]
    assert "column: shape (3,), 12 16 20" in words and "stride" not in words.partition("\n")[2]


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"tensors": torch.zeros(25)}, ValueError, "a storage of 1 to 24 cells, got 25"),
        ({"tensors": torch.zeros(4)}, ValueError, "each number may be in one cell only"),
        ({"tensors": X, "grids": {"y": X + 50}}, ValueError, "y holds 60, which is in no cell"),
        ({"tensors": X, "grids": {"none": X[:0]}}, ValueError, "has no elements"),
        ({"tensors": {"x": X, "y": X.clone()}, "view": (12,)}, ValueError, "y has another storage"),
        ({"tensors": X.expand(5, 3, 4)}, ValueError, "at most 3 dimensions and 48 elements"),
        ({"tensors": X, "find": (3, 0)}, IndexError, "outside a dimension of size 3"),
        ({"tensors": X, "task": "y"}, ValueError, "there is no task 'y'; there are x"),
        ({"tensors": X, "shape": [3]}, ValueError, "shape and stride have 1 and 2 numbers"),
        ({"tensors": X, "shape": [13, 1]}, ValueError, "3 dimensions of at most 12 and 48 elements, got \\(13, 1\\)"),
        ({"tensors": X, "shape": [-1, 1]}, ValueError, "no size is below 0"),
        ({"tensors": X, "view": [-2, 6]}, ValueError, "view is a shape, with -1 at most once"),
        ({"tensors": X, "offset": -1}, TraitError, "'offset' trait"),
    ],
)
def test_what_cannot_be_drawn_is_refused(arguments, error, words):
    with pytest.raises(error, match=words):
        explore.note(**arguments)


def test_a_note_is_changed_together_or_not_at_all():
    view = explore.note(X)
    before = view.state
    for wrong in ({"shape": [12]}, {"shape": [2, 2, 3], "stride": [1, 1]}, {"shape": [4], "stride": ["1"]}):
        with pytest.raises(TraitError):
            view.set(**wrong)
        assert view.state == before
    with pytest.raises(ValueError, match="set them together, set\\(shape=…, stride=…\\)"):
        view.stride = [1]
    view.set(shape=[12], stride=[1])
    assert view.tensor.tolist() == X.flatten().tolist()


def some_note(rng):
    """A view in a state that may not fit on the storage."""
    shape = [rng.choice((0, 1, 2, 3, 4, 6)) for _ in range(rng.randint(0, 3))]
    if rng.random() < 0.5:
        stride = [torch.empty(shape).stride(k) for k in range(len(shape))]
    else:
        stride = [rng.choice((-4, 0, 1, 2, 3, 4, 6, 8, 12)) for _ in shape]
    count = torch.Size(shape).numel()
    if count > 48:
        return some_note(rng)
    wanted = rng.choice(([count], shape[::-1], [2, -1], [shape[0] if shape else 1, -1], [3, 4, 2], []))
    return explore.note(
        TABLE, shape=shape, stride=stride, offset=rng.randint(0, 9), view=wanted, revealed=["x"], task="x"
    )


def of_note(view):
    """What the picture shows, from PyTorch on a storage that is large enough, and from helpers.storage."""
    ranges = map(range, view.shape)
    cells = [
        view.offset + sum(i * step for i, step in zip(index, view.stride, strict=True))
        for index in itertools.product(*ranges)
    ]
    inside = [cell for cell in cells if 0 <= cell < len(view.values)]
    steps = [max(step, 0) for step in view.stride]
    told = {"touched": str(8 * len(set(inside)))}
    if steps == view.stride:
        large = torch.as_strided(torch.zeros(500), view.shape, steps, view.offset)
        assert [storage.offset_of(i, large) for i in itertools.product(*map(range, view.shape))] == cells
        told["contiguous"] = "contiguous" if large.is_contiguous() else "not contiguous"
    if len(cells) > len(inside):
        told["outside"] = str(len(cells) - len(inside))
    if len(inside) > len(set(inside)):
        told["shared"] = str(len(inside) - len(set(inside)))
    if view.view and steps == view.stride:
        told |= of_view(large, view.view)
    for k in range(len(view.shape) - 1):
        outer, size, inner = view.stride[k], view.shape[k + 1], view.stride[k + 1]
        sign, may = ("=", "may merge") if outer == size * inner else ("≠", "may not")
        told[f"pair {k}"] = f"{outer} {sign} {size} × {inner}, {may}".replace("-", "−")
    return told


def of_view(tensor, wanted):
    """What PyTorch makes of `view(wanted)`; where it exists, of a dimension of size 1 any stride will do."""
    try:
        found = tensor.view(wanted)
    except RuntimeError:
        return {"view": f"✗ view{minus(wanted)} does not exist"}
    if not tensor.numel():
        return {"reason": "a tensor without elements has every view of 0 elements"}
    law = {"reason": "wherever dimensions must merge, stride[k] = size[k + 1] · stride[k + 1]"}
    one_stride = {"view": f"✓ view{minus(wanted)} exists, stride {minus(found.stride())}"}
    return law if 1 in found.shape else law | one_stride


def is_told_why_not(reason, view):
    """Whether a reason names two dimensions that really cannot merge, or a number of elements that is another one."""
    if merge := re.fullmatch(r"dimensions (\d) and (\d) must merge, but stride (\d+) is not (\d+) × (\d+)", reason):
        outer, inner, *shown = map(int, merge.groups())
        is_right = shown == [view.stride[outer], view.shape[inner], view.stride[inner]]
        return is_right and shown[0] != shown[1] * shown[2]
    count = math.prod(view.shape)
    return reason.endswith(f"does not have {count} elements") or (not count and "-1 cannot be told" in reason)


def minus(numbers):
    return str(tuple(numbers)).replace("-", "−")


@pytest.mark.slow
def test_every_number_of_random_notes_is_that_of_python(page):
    rng = random.Random(1)
    views = [some_note(rng) for _ in range(60)]
    found = numbers_of(page(fragment(views[0])).locator(VIEWS), [view.state for view in views])
    for view, numbers in zip(views, found, strict=True):
        told = of_note(view)
        assert {name: numbers.get(name) for name in told} == told, view.state
        assert "✗" not in told.get("view", "") or is_told_why_not(numbers["reason"], view), (view.state, numbers)
        assert ("outside" in numbers, "shared" in numbers) == ("outside" in told, "shared" in told)


GRIDS = {
    "x[:, 2]": X[:, 2],
    "x.t()": X.t(),
    "twice": X[[2, 0, 2]],
    "down": X.flip(0),
    "windows": X.flatten().unfold(0, 4, 2),
}
WALKS = {
    "find": (
        lambda: explore.note(X, find=(2, 1)),
        [
            ("button cell 6", "click", "", "Cell 9, not 6: 0 + 2 × 4 + 1 × 1 = 9."),
            ("slider elements", "press", "End", "[2, 3] → 0 + 2 × 4 + 3 × 1 = 11"),
            ("textbox shape", "type", "2, 3, 2", "The shape has 3 numbers and the stride 2: type the other one, too."),
            ("textbox stride", "type", "6, 2, 1", "0 and 1: 6 = 3 × 2, may merge"),
            ("textbox shape", "type", "0, 2, 4", "0 of 96 bytes touched"),
            ("button remove dimension 0", "click", "", "0 and 1: 2 ≠ 4 × 1, may not"),
        ],
    ),
    "grids": (
        lambda: explore.note(X, grids=GRIDS),
        [
            ("button remove dimension 0", "click", "", "Which note reads x[:, 2]?"),
            ("slider shape", "press", "ArrowLeft", "your note reads"),
            ("slider stride of dimension 0", "press", "ArrowRight", ""),
            (":focus", "press", "ArrowRight", ""),
            (":focus", "press", "ArrowRight", ""),
            ("slider offset >> .knob", "drag", 2, "✓ x[:, 2] is offset 2, shape (3,), stride (4,)."),
            ("button x.t()", "click", "", "Which note reads x.t()?"),
            ("button There is no note", "click", "", "There is one: offset 0, shape (4, 3), stride (1, 4)."),
            ("button twice", "click", "", "Which note reads twice?"),
            ("button There is no note", "click", "", "✓ Right: twice has no note: from one element to the next"),
            ("button down", "click", "", "Which note"),
            ("textbox offset", "type", "8", "8 elements lie beyond"),
            ("textbox stride", "type", "-4, 1", "PyTorch has no negative strides."),
            ("button windows", "click", "", ""),
            ("textbox shape", "type", "5, 4", ""),
            ("textbox stride", "type", "2, 1", "✓ windows is offset 0, shape (5, 4), stride (2, 1)."),
        ],
    ),
    "view": (
        lambda: explore.note(SMALL, view=(3, 8)),
        [
            ("button Yes", "click", "", "It is the other way: x has none."),
            ("slider stride of dimension 1 >> .knob", "drag", -8, "elements share cells: it is another tensor"),
            (
                "slider stride of dimension 0 >> .knob",
                "drag",
                4,
                "✓ This tensor has it, and each element has a cell of its own.",
            ),
        ],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("kind", WALKS)
def test_a_note_is_found_by_mouse_and_keys(page, kind, width):
    make, steps = WALKS[kind]
    view = page(fragment(make()), width=width).locator(VIEWS)
    cells = view.locator("svg[aria-label='the storage'] .cell")
    unit = cells.nth(1).bounding_box()["x"] - cells.nth(0).bounding_box()["x"]
    walk(view, [(name, how, (value * unit, 0) if how == "drag" else value, says) for name, how, value, says in steps])


@pytest.mark.slow
def test_the_pictures_fit_on_the_screen(page):
    views = [explore.note(X, grids=GRIDS), explore.note(SMALL, view=(3, 8), revealed=["x"])]
    views += [explore.walk(9.3), explore.walk(9.3, revealed=["columns"], time=256)]
    for width, height in [(390, 900), (1280, 560)]:
        opened = page(*map(fragment, views), width=width)
        assert opened.evaluate("document.documentElement.scrollWidth") <= width
        assert max(view.bounding_box()["height"] for view in opened.locator(VIEWS).all()) <= height


# The walk.


@pytest.mark.parametrize(
    ("order", "tile", "lines", "ratio"),
    [
        ("row, column", (16, 16), 1, 1),
        ("column, row", (16, 16), 8, 8),
        ("column, row", (16, 16), 32, 1),
        ("column, row", (8, 8), 8, 1),
        ("column, row", (8, 4), 8, 2),
        ("row, column", (8, 4), 8, 1),
    ],
)
def test_bytes_fetched_for_each_byte_used(order, tile, lines, ratio):
    view = explore.walk(order=order, tile=list(tile), lines=lines)
    assert LINE * sum(view.fetched()) / SIZE**2 == ratio


@pytest.mark.parametrize("order", ["row, column", "column, row"])
@pytest.mark.parametrize("tile", [(16, 16), (1, 1), (3, 5), (8, 8)])
def test_a_walk_reads_each_number_once(order, tile):
    walked = list(places(order, tile))
    assert sorted(walked) == list(itertools.product(range(SIZE), repeat=2))


def test_misses_are_those_of_a_cache_searched_by_hand():
    rng = random.Random(2)
    addresses = [rng.randrange(80) for _ in range(400)]
    for place, missing in enumerate(misses(addresses, lines=3)):
        tags = [address // LINE for address in addresses[:place]]
        latest = list(dict.fromkeys(reversed(tags)))[:3]  # the three different lines used last
        assert missing == (addresses[place] // LINE not in latest)


@pytest.mark.parametrize(
    ("state", "error", "words"),
    [
        ({"tile": [4]}, ValueError, "two sides, rows and columns"),
        ({"tile": [0, 4]}, ValueError, "two sides, rows and columns, of 1 to 16"),
        ({"tile": [20, 4]}, ValueError, "of 1 to 16 numbers each, got \\[20, 4\\]"),
        ({"measured": float("nan")}, ValueError, "the ratio of two times, above 0"),
        (
            {"predicted": {"columns": "four"}},
            ValueError,
            "columns is a number from 1 to 16, got 'four'",
        ),
        ({"order": "diagonal"}, TraitError, "'order' trait"),
        ({"lines": 0}, TraitError, "'lines' trait"),
    ],
)
def test_a_walk_that_is_none_is_refused(state, error, words):
    with pytest.raises(error, match=words):
        explore.walk(**state)


def of_walk(view):
    fetched = view.fetched()[: view.time]
    missed = sum(fetched)
    ratio = LINE * missed / view.time if view.time else 0
    return {
        "hits": str(view.time - missed),
        "misses": str(missed),
        "fetched": str(64 * missed),
        "used": str(8 * view.time),
        "ratio": units.si(ratio, ""),
        "measured": "9.3",
        "lines": str(view.lines),
        "rows": "1",
        "columns": units.si(LINE * sum(explore.walk(lines=view.lines).fetched()) / SIZE**2, ""),
        "columns in tiles": units.si(LINE * sum(explore.walk(lines=view.lines, tile=[8, 8]).fetched()) / SIZE**2, ""),
    }


@pytest.mark.slow
def test_every_number_of_random_walks_is_that_of_python(page):
    rng = random.Random(3)
    views = []
    for _ in range(20):
        tile = [rng.randint(1, SIZE), rng.randint(1, SIZE)]
        order = rng.choice(("row, column", "column, row"))
        state = {"order": order, "tile": tile, "lines": rng.randint(1, 32), "time": rng.randint(0, SIZE**2)}
        views.append(explore.walk(9.3, **state, revealed=["columns", "rows", "columns in tiles"]))
    found = numbers_of(page(fragment(views[0])).locator(VIEWS), [view.state for view in views])
    for view, numbers in zip(views, found, strict=True):
        assert numbers == {name: text.strip() for name, text in of_walk(view).items()}, view.state


@pytest.mark.slow
def test_a_walk_is_asked_then_walked(page):
    view = page(fragment(explore.walk(9.3))).locator(VIEWS)
    assert shown(view, "ratio").count() == 0
    steps = [
        ("slider your guess", "press", "End", "Drag the ring."),
        (":focus", "press", "ArrowLeft", ""),
        ("button Walk it", "click", "", "By columns 8, you said 15.5, 1.9 times too high."),
        ("button swap the loops", "click", "", "224 hits, 32 misses"),
        ("slider tile >> .knob", "swipe", (-176, -176), "for each tile of 8 × 8"),
        ("slider tile", "press", "End", "224 hits, 32 misses"),
        ("slider tile >> .knob", "drag", (-160, 0), "for each tile of 16 × "),
        ("slider read", "press", "Home", "0 hits, 0 misses"),
        (":focus", "press", "ArrowRight", "0 hits, 1 miss"),
        ("spinbutton lines", "press", "End", "a cache of 32 lines"),
        ("button columns 1.", "click", "", "Fetched for each byte used: 1"),
        ("button columns in tiles ?", "click", "", "columns in tiles 1"),
        ("button Ask me again", "click", "", "the cache 8 lines. Drag the ring."),
        ("button Walk it without", "click", "", "0 hits, 256 misses"),
    ]
    walk(view, steps)
