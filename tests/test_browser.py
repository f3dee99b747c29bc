"""The course in JupyterLab in a browser: all cells run, figures have their alt texts, the views answer, checks speak.

Skipped without the package playwright and a Chromium, unless COURSE_BROWSER=required.
"""

import re

import pytest

from tests.tools import browser
from tests.tools.contrast import contrast
from tests.tools.course import NOTEBOOKS, read, tags

CONTROLS = "button, input, select, [role=slider], [role=textbox]"
PICTURES = ".jp-OutputArea-output.jp-RenderedImage img"
VIEWS = ".jp-OutputArea-output .course-view"


try:
    from playwright.sync_api import expect
except ImportError:  # then every test is skipped
    pass
else:
    expect.set_options(timeout=1000 * browser.PATIENCE)


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    browser.skip(browser.lacking())
    with browser.desk(tmp_path_factory.mktemp("jupyter")) as found:
        yield found


def figures(notebook):
    """The alt texts of the stored figures in order, and the number of views, which store one too."""
    outputs = (output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs)
    alts = [output.metadata["image/png"]["alt"] for output in outputs if "image/png" in output.get("data", {})]
    return alts, sum("explore." in cell.source for cell in notebook.cells if cell.cell_type == "code")


def alts(desk):
    """The alt texts of the pictures in outputs."""
    return desk.page.locator(PICTURES).evaluate_all("pictures => pictures.map((picture) => picture.alt)")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_run_all(desk, path):
    notebook = read(path)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    stored, views = figures(notebook)
    desk.open(path.name)
    desk.run_all(len(code))

    page, errors = desk.page, sum("raises-exception" in tags(cell) for cell in code)
    assert page.locator("[data-mime-type$=stderr]").all_text_contents() == []
    assert len(page.locator("[data-mime-type$=error]").all_text_contents()) == errors
    prompts = page.locator(".jp-CodeCell .jp-InputPrompt").all_text_contents()
    assert [prompt.strip() for prompt in prompts] == [f"[{k + 1}]:" for k in range(len(code))]
    expect(page.locator(VIEWS)).to_have_count(views)
    expect(page.locator(PICTURES)).to_have_count(len(stored) - views)
    assert all(alts(desk))
    assert page.locator(".jp-Dialog, .Toastify__toast").count() == 0


@pytest.fixture
def views(desk):
    """The four views by name, as they are at first, whatever an earlier test did to them."""
    names = ("float_bits", "strides", "roofline", "transformer_budget")
    if desk.opened != "views.ipynb":
        desk.write("views.ipynb", "from helpers import explore", *(f"explore.{name}()" for name in names))
        desk.open("views.ipynb")
        desk.run_all(1 + len(names))
    else:
        desk.do("notebook:run-all-cells")
    found = desk.page.locator(VIEWS)
    expect(found).to_have_count(len(names))
    return {name: found.nth(place) for place, name in enumerate(names)}


def words(view):
    """What a view says below its controls; a screen reader is told of each change."""
    return view.locator(".widget-html-content[aria-live=polite]")


def drag(desk, slider, share):
    """Drag a slider's handle with the mouse to this share of its track."""
    slider.scroll_into_view_if_needed()
    track, handle = slider.locator("xpath=ancestor::*[contains(@class, 'noUi-base')]"), slider.bounding_box()
    box, mouse = track.bounding_box(), desk.page.mouse
    mouse.move(handle["x"] + handle["width"] / 2, handle["y"] + handle["height"] / 2)
    mouse.down()
    mouse.move(box["x"] + share * box["width"], handle["y"] + handle["height"] / 2, steps=5)
    mouse.up()


def test_the_bits_of_a_number(desk, views):
    view, press = views["float_bits"], desk.page.keyboard.press
    value, bits = view.get_by_role("textbox", name="value"), view.get_by_role("checkbox")
    bits.nth(0).click()
    expect(value).to_have_value(str(-1.0))
    bits.nth(9).click()  # the first bit of the fraction
    expect(value).to_have_value(str(-(1 + 1 / 2)))
    expect(view.get_by_role("img")).to_have_attribute("alt", re.compile("-1.5 between its neighbours in bfloat16"))

    value.click()
    press("Tab")
    expect(view.get_by_role("checkbox", name="bit 15, sign", checked=True)).to_be_focused()
    press("Space")
    expect(value).to_have_value("1.5")
    press("Shift+Tab")
    press("ControlOrMeta+A")
    desk.page.keyboard.type("0.1")
    press("Enter")
    nearest = round(0.1 * 16 * 128) / 128 / 16  # between 1/16 and 1/8, with seven bits of a fraction
    expect(value).to_have_value(str(nearest))
    expect(words(view)).to_contain_text(f"fraction {round(0.1 * 16 * 128) - 128} of 128")

    press("Shift+Tab")
    press("ArrowUp")
    chosen = view.get_by_role("combobox", name="format")
    expect(chosen).to_have_value("float16")
    expect(words(view)).to_contain_text("of 1024; bias 15")
    expect(value).to_have_value(str(nearest))
    expect(chosen).to_be_focused()  # after all bits were made anew


def test_strides(desk, views):
    view, keyboard = views["strides"], desk.page.keyboard
    view.get_by_role("combobox", name="example").select_option("its transpose")
    order = " ".join(str(i + 6 * j) for i in range(6) for j in range(4))
    expect(words(view)).to_contain_text(f"touched in order: {order}")
    expect(words(view)).to_contain_text("view(24) does not exist")

    view.get_by_role("textbox", name="shape").click()
    for text in ("2, 3", "6, 2"):
        keyboard.press("ControlOrMeta+A")
        keyboard.type(text)
        keyboard.press("Tab")
    keyboard.press("ArrowUp")  # the offset
    order = " ".join(str(1 + 6 * i + 2 * j) for i in range(2) for j in range(3))
    expect(words(view)).to_contain_text(f"touched in order: {order}")
    expect(view.get_by_role("img")).to_have_attribute("alt", re.compile("6 elements, not contiguous, touch 6"))


def test_roofline(desk, views):
    view, press = views["roofline"], desk.page.keyboard.press
    batch, ridge, width = view.get_by_role("slider", name="batch"), 989.5e12 / 3.35e12, 4096

    def intensity(rows):  # two FLOP for each weight and row; two bytes for each weight, input and output
        return 2 * rows * width**2 / (2 * (rows * width + width**2 + rows * width))

    assert intensity(512) > ridge > intensity(128)
    drag(desk, batch, 10 / 16)  # of 1, 2, 4, ... 65536
    expect(words(view)).to_contain_text("Linear layer: compute-bound, the ridge is at 295 FLOP/B")
    expect(words(view)).to_contain_text(
        f"batch 1024, width 4096, bfloat16: 34.4 GFLOP, 50.3 MB, intensity {intensity(1024):.0f}"
    )
    for _ in range(3):
        press("ArrowDown")
    expect(batch).to_have_attribute("aria-valuetext", "128")
    expect(words(view)).to_contain_text(f"intensity {intensity(128):.0f} FLOP/B")
    expect(view.get_by_role("img")).to_have_attribute("alt", re.compile("linear layer, batch 128: memory-bound"))

    view.get_by_role("radio", name="ReLU").click()
    expect(words(view)).to_contain_text(f"intensity {1 / (2 + 2)} FLOP/B")  # read two bytes, write two
    press("Tab")
    press("Space")
    expect(view.get_by_role("radio", name="GELU, fused")).to_be_checked()
    expect(words(view)).to_contain_text(f"intensity {9 / (2 + 2)} FLOP/B")


def test_a_transformers_budget(desk, views):
    view, press = views["transformer_budget"], desk.page.keyboard.press
    # Llama 3 8B: embedding and head; per layer attention with 8 heads of 128 for keys and values, the MLP, two norms
    layer = 2 * 4096**2 + 2 * 4096 * 8 * 128 + 3 * 4096 * 14336 + 2 * 4096
    parameters = 2 * 128256 * 4096 + 32 * layer + 4096
    drag(desk, view.get_by_role("slider", name="devices"), 0)
    expect(words(view)).to_contain_text("too much")
    view.get_by_role("combobox", name="task").focus()
    press("ArrowDown")
    cache = 2 * 32 * 8 * 128 * 2 * 4096  # keys and values of each token, in bfloat16
    expect(words(view)).to_contain_text(f"Per device: {(2 * parameters + cache) / 1e9:.1f} GB of 80 GB")
    expect(view.get_by_role("combobox", name="task")).to_be_focused()
    expect(view.get_by_role("slider", name="texts in all")).to_be_visible()
    expect(view.get_by_role("checkbox", name="recompute activations")).to_be_disabled()
    expect(view.get_by_role("img")).to_have_attribute("alt", re.compile("Llama 3 8B, decoding: fits, bound by memory"))


@pytest.mark.parametrize("name", ["float_bits", "strides", "roofline", "transformer_budget"])
def test_every_control_has_a_name_and_a_visible_focus(desk, views, name):
    view = views[name]
    parts = re.findall(
        r"^- '?(button|checkbox|combobox|img|radio|slider|spinbutton|textbox)\b(.*)", view.aria_snapshot(), re.M
    )
    assert len(parts) > 5
    assert [part for part in parts if not part[1].startswith(' "')] == []

    controls = view.locator(f":is({CONTROLS}):not(:disabled)")
    controls.first.focus()
    for place in range(controls.count()):
        expect(controls.nth(place)).to_be_focused()
        # A bit is drawn around its checkbox.
        outline = controls.nth(place).evaluate("""control => {
            const {outlineStyle, outlineWidth} = getComputedStyle(control.closest(".course-bit") ?? control);
            return `${outlineStyle} ${outlineWidth}`;
        }""")
        assert outline == "solid 3px"
        desk.page.keyboard.press("Tab")


def test_plain_keys_stay_in_the_control(desk, views):
    cells = desk.page.locator(".jp-Cell")
    chosen, count = views["transformer_budget"].get_by_role("combobox", name="model"), cells.count()
    chosen.focus()
    for key in ("x", "a", "ArrowDown"):  # for JupyterLab: cut this cell, add one above, go to the next
        desk.page.keyboard.press(key)
    expect(chosen).to_be_focused()
    assert cells.count() == count


# For each text of an output, its contrast with the first opaque background behind it.
CONTRAST = """outputs => {
    const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
    const colour = (name) => {
        canvas.clearRect(0, 0, 1, 1), canvas.fillStyle = name, canvas.fillRect(0, 0, 1, 1);
        return [...canvas.getImageData(0, 0, 1, 1).data].map((value) => value / 255);
    };
    const behind = (element) => {
        const found = colour(getComputedStyle(element).backgroundColor);
        return found[3] == 1 || !element.parentElement ? found.slice(0, 3) : behind(element.parentElement);
    };
    const found = [];
    for (const output of document.querySelectorAll(outputs)) {
        const texts = document.createTreeWalker(output, NodeFilter.SHOW_TEXT);
        while (texts.nextNode()) {
            const text = texts.currentNode.textContent.trim(), element = texts.currentNode.parentElement;
            if (!text || element.closest("style, option, :disabled")) continue;
            if (element.getBoundingClientRect().width <= 1) continue;  // for screen readers alone
            found.push([text, colour(getComputedStyle(element).color).slice(0, 3), behind(element)]);
        }
        for (const bit of output.querySelectorAll(".course-bit"))
            found.push(["bit", colour(getComputedStyle(bit, "::before").color).slice(0, 3), behind(bit)]);
    }
    return found;
}"""


def faint(desk):
    """The texts of outputs with a contrast that is too low, in the dark theme and in the light one."""
    found = []
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        desk.do("apputils:change-theme", theme=theme)
        desk.until("theme => document.body.dataset.jpThemeName == theme", theme)
        texts = desk.page.evaluate(CONTRAST, ".jp-OutputArea-output")
        assert len(texts) > 50
        found += [(theme, text, ratio) for text, front, back in texts if (ratio := contrast(front, back)) < 4.5]
    return found


def test_views_are_legible_in_both_themes(desk, views):
    shape = views["strides"].get_by_role("textbox", name="shape")
    shape.fill("four")
    shape.press("Enter")
    expect(views["strides"].get_by_role("alert")).to_contain_text("write whole numbers")
    assert faint(desk) == []


def test_stored_outputs_have_their_alt_texts_and_are_legible_in_both_themes(desk):
    notebook = read(NOTEBOOKS[1])
    desk.open(NOTEBOOKS[1].name)
    outputs = sum(len(cell.outputs) for cell in notebook.cells if cell.cell_type == "code")
    expect(desk.page.locator(".jp-OutputArea-output")).to_have_count(outputs)
    assert alts(desk) == figures(notebook)[0]  # of a notebook that is not trusted
    assert faint(desk) == []


def test_a_check_names_the_mistake_and_hint_and_solution_unfold(desk):
    desk.open("00_start_here.ipynb")
    page, stub = desk.page, desk.cell('check("card_in_gb"')
    desk.replace(desk.cell("from helpers"), "from helpers.selfcheck import check, compare")
    said = stub.locator(".jp-OutputArea-output")
    desk.replace(stub, 'answer = 80 / (2**30 / 1e9)\ncheck("card_in_gb", answer)')
    expect(said).to_contain_text("✗ card_in_gb: ")
    expect(said).to_contain_text("You went from GB to GiB.")
    desk.replace(stub, 'answer = 80 * 2**30 / 1e9\ncheck("card_in_gb", answer)')
    expect(said).to_have_text("✓ card_in_gb: correct.")

    for summary, text in (("Hint", "Go through bytes"), ("Solution", "answer = 80 * 2**30 / 1e9")):
        folded = page.locator("details").filter(has_text=text).get_by_text(text)
        expect(folded).to_be_hidden()
        page.locator("details").filter(has_text=text).get_by_text(summary, exact=True).click()
        expect(folded).to_be_visible()

    guess = desk.cell("weights = 70e9 * 16 / 8")
    said = guess.locator(".jp-OutputArea-output")
    for source, answer in (
        ("...", "Predict first: replace the ... by your guess in B and run the cell again."),
        ("70e9", "You predicted 70 GB; it is 140 GB: too low by a factor of 2."),
    ):
        desk.replace(guess, f'guess = {source}\nweights = 70e9 * 16 / 8\ncompare(guess, weights, "B")')
        expect(said).to_have_text(answer)
