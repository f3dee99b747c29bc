"""The course in JupyterLab in a browser: all cells run, figures have alt texts, views stay alive, checks speak.

Skipped without the package playwright and a Chromium, unless COURSE_BROWSER=required.
"""

import contextlib
import decimal
import math
import random
import re

import nbformat
import pytest
from nbformat.v4 import new_code_cell

from helpers import explore, formats, machine, specs
from helpers.explore.views import OPS
from helpers.export import documents
from helpers.export.cells import folded, slide_type
from helpers.roofline import Roofline
from helpers.units import si
from tests.tools import browser
from tests.tools.course import NOTEBOOKS, read
from tests.tools.pictures import VIEWS, fragment, numbers, numbers_of, shown, walk

with contextlib.suppress(ImportError):  # then every test is skipped
    from playwright.sync_api import expect

pytestmark = pytest.mark.slow
PICTURES = ".jp-OutputArea-output.jp-RenderedImage img"


@pytest.fixture(scope="module")
def desk(chromium, tmp_path_factory):
    with browser.desk(chromium, tmp_path_factory.mktemp("jupyter")) as found:
        yield found


def test_what_is_stored_is_shown_before_anything_has_run(desk):
    """All pictures and views of the course in one notebook, which is not trusted: pictures with words, living views."""
    cells = [cell for path in NOTEBOOKS for cell in read(path).cells if cell.cell_type == "code"]
    drawn = [cell for cell in cells if any("image/png" in output.get("data", {}) for output in cell.outputs)]
    outputs = [output for cell in drawn for output in cell.outputs if "image/png" in output.get("data", {})]
    alts = [output.metadata["image/png"]["alt"] for output in outputs if explore.MIME not in output.data]
    desk.write("drawn.ipynb", *(new_code_cell(cell.source, outputs=cell.outputs) for cell in drawn))
    desk.open("drawn.ipynb")
    expect(desk.page.locator(VIEWS)).to_have_count(len(outputs) - len(alts))
    pictures = desk.page.locator(PICTURES)
    expect(pictures).to_have_count(len(alts))
    assert pictures.evaluate_all("pictures => pictures.map(picture => picture.alt)") == alts
    assert len(alts) > 20 and len(outputs) - len(alts) > 10


@pytest.fixture(scope="module")
def half(desk):
    """The name of a notebook: half of the first lesson, a picture, an error, and the lesson's end."""
    cells = read(NOTEBOOKS[0]).cells
    error = new_code_cell("1 / 0", metadata={"tags": ["raises-exception"]})
    picture = new_code_cell("from helpers import draw\ndraw.bits(0x3F80, 'bfloat16')")
    view = next(cell for cell in cells if "explore." in cell.source and cell.cell_type == "code")
    desk.write("half.ipynb", *cells[: len(cells) // 2], view, picture, error, *cells[-3:])
    return "half.ipynb"


def test_run_all(desk, half):
    desk.open(half)
    code = [cell for cell in nbformat.read(desk.folder / half, as_version=4).cells if cell.cell_type == "code"]
    desk.run_all(len(code))
    page = desk.page
    (loud,) = page.locator("[data-mime-type$=stderr], [data-mime-type$=error]").all_text_contents()
    assert loud.startswith("-----")  # the traceback, and nothing else
    prompts = page.locator(".jp-CodeCell .jp-InputPrompt").all_text_contents()
    assert [prompt.strip() for prompt in prompts] == ["" if folded(c) else f"[{k}]:" for k, c in enumerate(code, 1)]
    assert any(map(folded, code))
    expect(page.locator(VIEWS)).to_have_count(1)
    expect(page.locator(PICTURES)).to_have_attribute("alt", re.compile("^Bits"))
    assert page.locator(".jp-Dialog, .Toastify__toast").count() == 0


@pytest.fixture(scope="module")
def live(desk):
    """The views in JupyterLab, made by a notebook that is open from here on."""
    names = ("float_bits", "note", "roofline", "plan")
    arguments = {"note": "torch.arange(24).view(4, 6)"}
    cells = [f"{name} = explore.{name}({arguments.get(name, '')})\n{name}" for name in names]
    desk.write("views.ipynb", "import time\nimport torch\nfrom helpers import explore", *cells, "pass")
    desk.open("views.ipynb")
    desk.run_all(2 + len(names))
    found = desk.page.locator(VIEWS)
    expect(found).to_have_count(len(names))
    return {name: found.nth(place) for place, name in enumerate(names)}


def run_last(desk, source):
    """Run something in the last cell; gives its output."""
    cell = desk.page.locator(".jp-CodeCell").nth(5)
    desk.replace(cell, source)
    return cell.locator(".jp-OutputArea-output")


def test_python_sees_a_click_and_the_browser_what_python_sets(desk, live):
    view = live["float_bits"]
    view.get_by_role("checkbox", name="bit 15, sign").click()
    expect(run_last(desk, "float_bits.bits")).to_have_text("'1011111110000000'")
    run_last(desk, "float_bits.set(asked='', bits='00111110', format='float8_e5m2')")
    expect(view.get_by_role("checkbox")).to_have_count(8)
    expect(shown(view, "formula")).to_have_text("2⁰ × 1.5 = 1.5")
    run_last(desk, "note.set(shape=[6, 2, 2], stride=[1, 12, 6])")
    expect(shown(live["note"], "pair 0")).to_have_text("1 ≠ 2 × 12, may not")


def test_a_view_answers_while_the_kernel_is_busy(desk, live):
    view = live["plan"]
    run_last(desk, "time.sleep(100)")
    prompt = desk.page.locator(".jp-CodeCell").nth(5).locator(".jp-InputPrompt")
    expect(prompt).to_have_text("[*]:")
    view.get_by_role("button", name="Show the answer").click()
    expect(shown(view, "answer days")).to_have_text("267 days")
    assert prompt.text_content() == "[*]:"  # it still is
    desk.do("notebook:interrupt-kernel")
    expect(prompt).not_to_have_text("[*]:")
    expect(run_last(desk, "plan.recompute")).to_have_text("'full'")


def test_plain_keys_stay_in_the_view(desk, live):
    cells, count = desk.page.locator(".jp-Cell"), desk.page.locator(".jp-Cell").count()
    live["roofline"].get_by_role("button", name="Show the answer").click()
    for role, name in (("combobox", "op"), ("slider", "ridge")):
        place = live["roofline"].get_by_role(role, name=name, exact=True)
        place.focus()
        for key in ("x", "a", "ArrowDown"):  # for JupyterLab: cut this cell, add one above, go to the next
            desk.page.keyboard.press(key)
        expect(place).to_be_focused()
    assert cells.count() == count


def test_a_view_lives_before_anything_has_run_and_after_a_restart(desk):
    desk.write("stored.ipynb", "from helpers import explore", "view = explore.float_bits(1.0)\nview", "view.bits")
    desk.open("stored.ipynb")
    desk.run_all(3)
    desk.close()  # which ends the kernel
    desk.open("stored.ipynb")
    view = desk.page.locator(VIEWS)
    for code in ("0xbf80", "0x3f80"):
        view.get_by_role("checkbox", name="bit 15, sign").click()
        expect(shown(view, "code")).to_have_text(code)
    desk.run_all(3)
    view.get_by_role("checkbox", name="bit 15, sign").click()
    desk.replace(desk.cell("view.bits"), "view.bits")
    expect(desk.cell("view.bits").locator(".jp-OutputArea-output")).to_have_text("'1011111110000000'")
    desk.page.evaluate("() => jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    desk.until("() => jupyterapp.shell.currentWidget.sessionContext.session.kernel.status == 'idle'")
    view.get_by_role("checkbox", name="bit 15, sign").click()
    expect(shown(view, "code")).to_have_text("0x3f80")


def test_a_mark_made_before_its_cell_is_run_stays_and_python_knows_it(desk):
    cells = "from helpers import explore", "view = explore.float_bits(1e-8, 'float16')\nview", "view.predicted"
    desk.write("marked.ipynb", *cells)
    desk.open("marked.ipynb")
    desk.run_all(3)
    desk.close()
    desk.open("marked.ipynb")
    mark = desk.page.locator(VIEWS).get_by_role("button", name="mark bfloat16")
    mark.click()
    desk.run_all(3)
    expect(mark).to_have_attribute("aria-pressed", "true")
    desk.replace(desk.cell("view.predicted"), "view.predicted")
    expect(desk.cell("view.predicted").locator(".jp-OutputArea-output")).to_have_text("{'lives': ['bfloat16']}")
    desk.write("unmarked.ipynb", *cells)  # the same picture in another notebook
    desk.open("unmarked.ipynb")
    desk.run_all(3)
    expect(mark).to_have_attribute("aria-pressed", "false")


def test_a_name_that_is_not_defined_offers_to_run_the_cells_above(desk):
    desk.write("again.ipynb", "x = 1", "x + 1")
    desk.open("again.ipynb")
    for source in ("x + ", "x + 1"):  # the first cell of a new kernel that fails, and a name; one note at a time
        desk.replace(desk.cell("x + "), source)
        expect(desk.page.get_by_text("run the cells above first")).to_have_count(1)
    desk.page.get_by_role("button", name="Run All Above").click()
    expect(desk.cell("x = 1").locator(".jp-InputPrompt")).to_have_text("[3]:")
    desk.replace(desk.cell("x + 1"), "x + 1")
    output = desk.cell("x + 1").locator(".jp-OutputArea-output pre")
    expect(output).to_have_text("2")
    expect(output).to_have_css("word-break", "normal")  # a line is broken between words


def test_another_front_end_has_the_widget_and_an_unknown_view_its_words(desk):
    desk.write(
        "other.ipynb",
        "import os\nfrom IPython.display import display\nfrom helpers import explore",
        "stored, metadata = explore.float_bits(1.0)._repr_mimebundle_()",
        "del os.environ['JPY_SESSION_NAME']",
        "live = explore.float_bits(1.0)._repr_mimebundle_()[0]; del live[explore.MIME]",  # a widget, and no stored view
        "unheard = stored | {explore.MIME: {'view': 'unheard', 'state': {}, 'given': '{}'}}",
        "display(live, metadata=metadata, raw=True)",
        "display(unheard, metadata=metadata, raw=True)",
    )
    desk.open("other.ipynb")
    desk.run_all(7)
    expect(desk.page.locator(f".jp-OutputArea-output {VIEWS}")).to_have_count(1)
    expect(desk.page.locator(".jp-OutputArea-output pre:has-text('Interactive view')")).to_have_count(1)


def test_a_check_names_the_mistake_and_hint_and_solution_unfold(desk):
    desk.open("00_start_here.ipynb")
    page, stub, guess = desk.page, desk.cell('check("card_in_gb"'), desk.cell('about="tebibyte"')
    desk.replace(desk.cell("from helpers"), "from helpers.check import check, compare")
    asked = 'compare(guess, 140e9, "B", about="tebibyte")'
    for cell, source, words in [
        (stub, 'check("card_in_gb", 80 / (2**30 / 1e9))', "You went from GB to GiB."),
        (stub, 'check("card_in_gb", 80 * 2**30 / 1e9)', "✓ card_in_gb: correct."),
        (guess, f"guess = ...\n{asked}", "Predict first: replace the ... by your guess"),
        (guess, f"guess = 70e9\n{asked}", "it is 140 GB: too low by a factor of 2."),
    ]:
        desk.replace(cell, source)
        expect(cell.locator(".jp-OutputArea-output")).to_contain_text(words)

    for summary, text in (("Hint", "Go through bytes"), ("Solution", "answer = 80 * 2**30 / 1e9")):
        folded = page.locator("details").filter(has_text=text).get_by_text(text)
        expect(folded).to_be_hidden()
        page.locator("details").filter(has_text=text).get_by_text(summary, exact=True).click()
        expect(folded).to_be_visible()


# Each view as a page without a kernel: in a file of its own, without a network.

MAKERS = {"bits": explore.float_bits, "roofline": explore.roofline}


def signed(text):
    """A number as the view of bits writes it: with a real minus before it."""
    return re.sub("^-", "−", text)


def distinct(x, other):
    """In nine digits, or as many more as tell it from the other."""
    if x in (None, math.inf, -math.inf):
        return {None: "none", math.inf: "∞", -math.inf: "−∞"}[x]
    return next(signed(f"{x:.{n}g}") for n in range(9, 18) if n == 17 or f"{x:.{n}g}" != f"{other:.{n}g}")


def exactly(x):
    """All decimal digits, at most sixty."""
    number = decimal.Decimal(x)
    shown = "".join(map(str, number.as_tuple().digits)).rstrip("0") or "0"
    more, power = "…" * (len(shown) > 60), number.adjusted()
    if x == 0:
        return "0"
    if -5 <= power <= 15:
        with decimal.localcontext(prec=60, rounding=decimal.ROUND_DOWN):
            text = f"{+number:f}"
        return signed(text.rstrip("0").rstrip(".") if "." in text else text) + more
    raised = str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{'−' * (x < 0)}{shown[0]}.{shown[1:60] or '0'}{more} × 10{raised}"


def of_bits(view):
    code, fmt = int(view.bits, 2), formats.FORMATS[view.format]
    number = formats.decode(code, fmt)
    told = {"formula": formats.formula(code, fmt), "kind": number.kind.replace("nan", "NaN")}
    told |= {"sign": number.sign, "exponent": number.exponent, "fraction": number.fraction, "bias": fmt.bias}
    told |= {"fractions": 2**fmt.fraction_bits, "code": f"0x{code:0{-(-fmt.bits // 4)}x}"}
    if number.kind != "nan":
        near = formats.neighbours(number.value, fmt) if number.kind != "infinity" else None
        ends = (fmt.max, None) if number.value > 0 else (None, -fmt.max)
        below, above = (near.below, near.above) if near else ends
        told["below"], told["above"] = distinct(below, number.value), distinct(above, number.value)
    return told | ({"exactly": exactly(number.value)} if math.isfinite(number.value) else {})


def of_roofline(view):
    (flops, nbytes), roof = view.cost(view.op), view.roof_of(view.op)
    rate = roof.attainable(flops / nbytes)
    sheet = specs.find(view.machine)
    return {
        "answer ridge": si(sheet.peak(view.dtype) / sheet.bandwidth, "FLOP/B"),
        "bound": {"memory": "waits for memory", "compute": "computes"}[roof.bound(flops, nbytes)],
        "flops": si(flops, "FLOP"),
        "bytes": si(nbytes, "B"),
        "intensity": si(flops / nbytes, "FLOP/B"),
        "compute": si(flops / roof.peak, "s"),
        "move": si(nbytes / roof.bandwidth, "s"),
        "attainable": si(rate, "FLOP/s"),
        "share": si(100 * rate / view.roof.peak, "%"),
        "batch": view.batch,
        "width": view.width,
    }


def some_bits(rng, view):
    fmt = rng.choice(list(formats.FORMATS.values()))
    special = [0, 1, fmt.sign_bit, fmt.max_code, fmt.sign_bit | fmt.max_code, fmt.sign_bit - 1, 1 << fmt.fraction_bits]
    code = rng.choice([*special, *(rng.getrandbits(fmt.bits) for _ in special)])
    view.set(format=fmt.name, bits=f"{code:0{fmt.bits}b}", asked="")


def some_roof(rng, view):
    spec, view.revealed = rng.choice(specs.table()), ["ridge"]
    with view.hold_trait_notifications():  # they belong together
        view.machine, view.dtype = spec.name, rng.choice([*spec.matrix, *spec.vector])
    view.op = rng.choice(list(OPS))
    view.batch, view.width = rng.choice((1, 100, 2 ** rng.randint(0, 16))), rng.choice((1, 2 ** rng.randint(6, 14)))
    if rng.random() < 0.5:
        least, most = view.limits["peak"]
        view.bandwidth = 10 ** rng.uniform(9, 13.5)
        view.peak = min(max(view.bandwidth * 10 ** rng.uniform(-1, 5), least), most)


class Timing:
    def __init__(self, low):
        self.low, self.disturbed = low, False


OPERATIONS, MEASURED = machine.ops(), Roofline(1e11, 2e10)
SLOWER = dict(zip((op.name for op in OPERATIONS), (1.05, 1.4, 6.0, 40.0) * 4, strict=False))
CLOCK = [
    Timing(slower * MEASURED.seconds(op.flops, op.bytes))
    for op, slower in zip(OPERATIONS, SLOWER.values(), strict=True)
]


def timed_ops():
    return explore.timed_ops(OPERATIONS, CLOCK, MEASURED, {op.name: 2 * op.flops / MEASURED.peak for op in OPERATIONS})


def of_timed_ops(view):
    place, op = next((k, op) for k, op in enumerate(OPERATIONS) if op.name == view.op)
    work, memory = 2 * op.flops / MEASURED.peak, op.bytes / MEASURED.bandwidth
    inside = sum(
        max(2 * op.flops / MEASURED.peak, op.bytes / MEASURED.bandwidth) / 1.1
        <= clock.low
        <= 1.1 * (2 * op.flops / MEASURED.peak + op.bytes / MEASURED.bandwidth)
        for op, clock in zip(OPERATIONS, CLOCK, strict=True)
    )
    return {
        "flops": si(op.flops, "FLOP"),
        "bytes": si(op.bytes, "B"),
        "compute": si(work, "s"),
        "move": si(memory, "s"),
        "low": si(max(work, memory), "s"),
        "high": si(work + memory, "s"),
        "seconds": si(CLOCK[place].low, "s"),
        "inside": f"{inside} of 14",
    }


def some_timed_ops(rng, view):
    view.op, view.revealed = rng.choice(OPERATIONS).name, ["clock"]


STATES = {"bits": (some_bits, of_bits)}
STATES["roofline"] = some_roof, of_roofline
STATES |= {"timed_ops": (some_timed_ops, of_timed_ops)}
MAKERS |= {"timed_ops": timed_ops}


@pytest.mark.parametrize("kind", MAKERS)
def test_every_number_of_random_states_is_that_of_python(page, kind):
    rng, view, (choose, told) = random.Random(0), MAKERS[kind](), STATES[kind]
    states, expected = [], []
    for _ in range(30):
        choose(rng, view)
        states.append(view.state)
        expected.append({name: str(value) for name, value in told(view).items()})
    found = numbers_of(page(fragment(view)).locator(VIEWS), states)
    for state, browsers, pythons in zip(states, found, expected, strict=True):
        if kind == "bits":  # as short as can be, in JavaScript's way of writing
            value = formats.decode(int(state["bits"], 2), state["format"]).value
            assert float(browsers.pop("value")) == value or math.isnan(value)
            browsers.pop("fate")
        assert browsers == pythons, f"a number that Python lacks is to be told by of_{kind}(view) above; in {state}"


# The code that is shown after each of these numbers is typed.
TYPED = """(view, numbers) => numbers.map((number) => {
    const field = view.querySelector("input[aria-label^=number]");
    field.value = number;
    field.dispatchEvent(new Event("change", {bubbles: true}));
    return view.querySelector("[data-shown=code]").textContent;
})"""


@pytest.mark.parametrize("name", formats.FORMATS)
def test_a_typed_number_is_rounded_as_in_python(page, name):
    fmt, rng = formats.FORMATS[name], random.Random(name)
    view = page(fragment(explore.float_bits(1.0, fmt))).locator(VIEWS)
    ties = [fmt.smallest_subnormal * half for half in (0.5, 1.5, 2.5) if fmt.bits < 64]
    powers = [rng.choice((-1, 1)) * rng.uniform(1, 2) * 2.0 ** rng.uniform(-fmt.bias, fmt.bias) for _ in range(6)]
    values = [*ties, 1 + fmt.eps / 2, 1 + 1.5 * fmt.eps, -0.0, fmt.max, fmt.max * 1.01, math.inf, *powers]
    codes = view.evaluate(TYPED, list(map(repr, values)))
    assert codes == [f"0x{formats.encode(value, fmt):0{-(-fmt.bits // 4)}x}" for value in values]


# By mouse, finger and key: what is touched, how, and what the view then says.
RIDGE = 989.5e12 / 3.35e12
WALKS = {
    "bits": (
        explore.float_bits,
        [
            ("checkbox bit 6,", "tap", "", {"value": "1.5"}),
            ("checkbox bit 6,", "press", "ArrowUp", {"value": "1.5078125"}),
            (":focus", "press", "ArrowDown", {"value": "1.5"}),
            (":focus", "press", "ArrowRight", {"value": "1.5"}),
            (":focus", "press", "Space", {"value": "1.75"}),
            ("textbox number", "type", "0,1", {"alert": "“0,1” is no number", "formula": "2⁰ × 1.75 = 1.75"}),
            ("textbox number", "type", "", {"alert": "“” is no number", "formula": "2⁰ × 1.75 = 1.75"}),
            ("textbox number", "type", "0.1", {"alert": "", "fate": "number is 9.77e-05 away, 0.098 % of it."}),
            (".chip[aria-label^=float16]", "click", "", {"fate": "You asked for 0.1", "all": "0.0999755859"}),
            ("button NaN.", "click", "", {"formula": "NaN", "fate": "equals nothing"}),
            (".chip[aria-label^=float4_e2m1fn]", "click", "", {"alert": "float4_e2m1fn has no NaN", "formula": "NaN"}),
            ("textbox number", "type", "1e-8", {"alert": "", "fate": "1e-08 is gone", "code": "0x0000"}),
            (".chip[aria-label^=bfloat16]", "click", "", {"exactly": "1.00117176771163940429687"}),
            ("textbox number", "type", "500", {"value": "500"}),
            (".chip[aria-label^=float8_e4m3fn]", "click", "", {"fate": "NaN; PyTorch takes the largest, 448"}),
            (".chip[aria-label^=float8_e5m2]", "click", "", {"fate": "You asked for 500", "formula": "512"}),
            (".chip[aria-label^=float4_e2m1fn]", "click", "", {"fate": "500 is beyond 6, the largest number"}),
            ("button next above", "click", "", {"alert": "float4_e2m1fn has no number beyond 6."}),
            ("button next below", "click", "", {"alert": "", "value": "4", "fate": ""}),
        ],
    ),
    "bits, lost": (
        lambda: explore.float_bits(1e-8, "float16"),
        [
            ("button mark bfloat16", "click", "", "1e-08 is gone in float16. In which other formats does it live?"),
            ("button mark float32.", "press", "Enter", ""),
            ("button mark float8_e5m2", "tap", "", ""),
            ("button mark float8_e5m2", "tap", "", ""),
            (
                "button Round it in all of them.",
                "click",
                "",
                "float64, float32, tfloat32, bfloat16: you marked 2 right and 0 wrong, and missed 2.",
            ),
            ("button bfloat16", "click", "", {"formula": "2⁻²⁷ × 1.34375 ≈ 1.00117177e-08"}),
            ("textbox number", "type", "∞", {"alert": "", "formula": "∞"}),
            ("button Ask me again", "click", "", {"fate": "1e-08 is gone: it is at most half of 5.96e-08"}),
            ("button mark float64", "click", "", "Mark them."),
        ],
    ),
    "roofline": (
        explore.roofline,
        [
            ("slider your guess of the intensity", "press", "ArrowRight", {"all": "0.13 FLOP/B"}),
            ("slider your guess of the intensity >> .knob", "drag", (0, 40), {"all": "0.13 FLOP/B"}),
            ("button Show the answer", "click", "", {"all": "as it moves: you said 0.13 FLOP/B, 2272 times too low."}),
            ("slider ridge. >> .knob", "drag", (-150, 0), {"bound": "computes"}),
            ("button as on the data sheet", "click", "", {"bound": "waits for memory"}),
            ("slider peak >> .wide", "drag", (0, 60), {"bound": "computes"}),
            ("button as on the data sheet", "click", "", {"slider ridge.": si(RIDGE, "FLOP/B")}),
            ("slider ridge.", "press", "ArrowRight", {"slider ridge.": si(RIDGE * 10**0.05, "FLOP/B")}),
            ("slider bandwidth", "press", "ArrowUp", {"slider ridge.": si(RIDGE, "FLOP/B")}),
            ("slider linear layer, by its batch", "press", "ArrowRight", {"batch": "128"}),
            ("slider linear layer, by its batch >> .mark", "drag", (150, -40), {"bound": "computes"}),
            (":focus", "press", "End", {"batch": "65536", "bound": "computes"}),
            (
                "slider linear layer, by its batch >> .mark",
                "drag",
                (-900, 0),
                {"batch": "1", "bound": "waits for memory"},
            ),
            ("spinbutton batch.", "press", "ArrowUp", {"batch": "2"}),
            ("spinbutton batch.", "click", "", {}),
            ("textbox batch.", "type", "1e3", {"batch": "1000"}),
            ("spinbutton batch.", "click", "", {}),
            ("textbox batch.", "type", "0", {"alert": "from 1 to 65536"}),
            ("button flops: ", "click", "", {"alert": "", "all": "2 · b · d · d= 2 · 1000 · 4096 · 4096 = 33.6 GFLOP"}),
            (
                "button bytes: ",
                "click",
                "",
                {"all": "(2 · b · d + d · d) · 2 bytes= (2 · 1000 · 4096 + 4096 · 4096) · 2"},
            ),
            (".point:has-text('ReLU') .mark", "tap", "", {"intensity": "0.25 FLOP/B"}),
            ("combobox dtype", "choose", "float64", {"intensity": f"{1 / 16} FLOP/B"}),
            ("combobox machine", "choose", "Google TPU v5e", {"alert": "v5e has no rate for float64"}),
            ("button Ask me again", "click", "", {"alert": "", "batch": None}),
        ],
    ),
    "roofline, questions": (
        lambda: explore.roofline(batch=512, asked=["peak", "bandwidth", "narrow"]),
        [
            (".point:has-text('ReLU') .mark", "tap", "", {}),
            ("checkbox linear layer", "click", "", {}),
            (
                "button Show the answer",
                "click",
                "",
                {"faster": "linear layer (1.4 times)", "all": "1 of 1, and ReLU."},
            ),
            ("checkbox none", "click", "", {}),
            ("button Show the answer", "click", "", {"all": "You marked 0 of 3."}),
            ("slider your guess of the intensity >> .spot", "tap", "", {}),
            (
                "button Show the answer",
                "click",
                "",
                {"answer narrow": "255 FLOP/B", "batch": "65536", "all": "too low."},
            ),
        ],
    ),
    "timed_ops": (
        timed_ops,
        [
            ("slider your time of ReLU >> .knob", "drag", (77, 0), {"all": "13 left."}),
            (":focus", "press", "Home", {"all": "You say 1.7 ms."}),
            (":focus", "press", "ArrowRight", {"all": "You say 1.8 ms."}),
            ("slider your time of softmax", "press", "End", {"all": "12 left."}),
            (
                "button Show the clock",
                "click",
                "",
                {"seconds": si(40 * 8 * 2**22 / 2e10, "s"), "all": "above its bracket"},
            ),
            (".point >> nth=0", "tap", "", {"all": "ReLU: "}),
            ("button Hide the clock", "click", "", {"seconds": None, "all": "You say 1.8 ms."}),
        ],
    ),
}


@pytest.mark.parametrize("kind", WALKS)
def test_a_view_answers_mouse_finger_and_key(page, kind):
    make, steps = WALKS[kind]
    opened = page(fragment(make()), fragment(make()))
    view, other = (opened.locator(VIEWS).nth(place) for place in (0, 1))
    before = numbers(other)
    walk(view, steps)
    assert numbers(other) == before  # another view on the page has not moved


def test_every_control_has_a_name_and_a_visible_focus(page):
    for make in (*MAKERS.values(), lambda: explore.roofline(revealed=["ridge"])):
        view = page(fragment(make())).locator(VIEWS)
        parts = re.findall(r"^ *- '?(button|checkbox|combobox|img|slider|textbox)\b(.*)", view.aria_snapshot(), re.M)
        assert len(parts) > 1 and [part for part in parts if not part[1].startswith(' "')] == []
        for control in view.locator(":is(button, input, select, [tabindex='0']):not(:disabled)").all():
            control.focus()
            view.page.keyboard.press("Shift")  # the keyboard was used last
            assert control.evaluate("control => getComputedStyle(control).outline").endswith("solid 3px")


def test_views_fit_on_the_screen(page):
    views = [fragment(make()) for make in MAKERS.values()] + [fragment(explore.roofline(revealed=["ridge"]))]
    for width, height in [(390, 900), (800, 560), (1280, 560)]:
        opened = page(*views, width=width)
        assert opened.evaluate("document.documentElement.scrollWidth") <= width
        assert max(view.bounding_box()["height"] for view in opened.locator(VIEWS).all()) <= height


@pytest.mark.parametrize(
    ("host", "scheme", "paper"),
    [
        ('<body class="vscode-dark" style="--vscode-editor-background: tan">', "dark", "rgb(210, 180, 140)"),
        ('<body class="vscode-high-contrast vscode-high-contrast-light">', "light", "rgba(0, 0, 0, 0)"),
        ('<body data-jp-theme-light="false" style="--jp-layout-color1: tan">', "dark", "rgb(210, 180, 140)"),
        ('<html theme="dark">', "dark", "rgb(20, 23, 26)"),  # Colab
    ],
)
def test_a_view_has_the_theme_of_its_host(page, host, scheme, paper):
    widgets = "<style>:root { --jp-layout-color1: white; --jp-content-font-color1: black; }</style>"  # of ipywidgets
    view = page(host, widgets, fragment(explore.float_bits())).locator(VIEWS)
    style = "view => [getComputedStyle(view).colorScheme, getComputedStyle(view).backgroundColor]"
    assert view.evaluate(style) == [scheme, paper]


@pytest.mark.parametrize("kind", ["pages", "slides"])
def test_an_exported_view_is_live(chromium, tmp_path, kind):
    path = next(path for path in NOTEBOOKS if path.name.startswith("06"))
    (file, *_) = documents.write(kind, [path], tmp_path / kind)
    opened = chromium.new_context(offline=True).new_page()
    opened.goto(file.as_uri())
    view = opened.locator(f'{VIEWS}[data-view="roofline"]')
    if kind == "slides":
        opened.wait_for_function("window.Reveal?.isReady()")
        view.evaluate("view => { const {h, v} = Reveal.getIndices(view.closest('section')); Reveal.slide(h, v); }")
    slide = opened.url
    for _ in range(2):
        view.get_by_role("button", name="Show the answer").click()
    view.get_by_role("slider", name="linear layer, by its batch").press("End")
    view.get_by_role("slider", name="ridge", exact=True).press("ArrowRight")
    expect(shown(view, "bound")).to_have_text("computes")
    assert opened.url == slide  # the keys have turned no slide


def test_live_slides_are_walked_by_one_key(desk, half):
    desk.open(half)
    cells = nbformat.read(desk.folder / half, as_version=4).cells
    shown = [place for place, cell in enumerate(cells) if slide_type(cell) not in ("notes", "skip")]
    starts = {place for place in shown if slide_type(cells[place]) in ("slide", "subslide")}
    code = {place for place in shown if cells[place].cell_type == "code"}
    desk.do("notebook:clear-all-cell-outputs")
    desk.do("deck:toggle")
    desk.until("() => document.querySelector('.jp-deck-mod-visible')")
    visited, notebook = [0], "jupyterapp.shell.currentWidget.content"
    while visited[-2:] != [shown[-1]] * 2 and len(visited) < 3 * len(cells):
        desk.page.keyboard.press("Shift+Enter")
        desk.page.wait_for_timeout(60)
        place, seen = desk.page.evaluate(
            f"""before => [{notebook}.activeCellIndex, [{notebook}.activeCellIndex, before].map(
            place => {notebook}.widgets[place].node.classList.contains('jp-deck-mod-visible'))]""",
            visited[-1],
        )
        assert seen[0], f"cell {place} is not to be seen"
        assert seen[1] or visited[-1] not in code - set(visited[:-1]), f"cell {visited[-1]} ran and nobody saw it"
        visited.append(place)
    assert starts | code <= set(visited) <= set(shown)
    desk.until(f"{notebook}.widgets[{max(code)}].model.executionCount == {len(code)}")
    assert desk.page.evaluate(f"{notebook}.widgets.length") == len(cells)
    assert desk.page.evaluate("getComputedStyle(document.querySelector('.jp-Deck')).overflowX") == "hidden"
    desk.page.keyboard.press("Escape")
    desk.until("() => !document.body.dataset.jpDeckMode")
