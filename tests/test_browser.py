"""The course in JupyterLab in a browser: all cells run, figures have their alt texts, the views answer, checks speak.

Skipped without the package playwright and a Chromium, unless COURSE_BROWSER=required.
"""

import pytest

from tests.tools import browser
from tests.tools.contrast import contrast
from tests.tools.course import NOTEBOOKS, read, tags

CONTROLS = "button, input, select, [role=slider], [role=textbox]"
PICTURES = ".jp-OutputArea-output.jp-RenderedImage img"
VIEWS = ".course-view"


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
