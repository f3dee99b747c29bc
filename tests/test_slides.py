"""Every notebook is a talk: slide types and notes as the course has them, and no slide that scrolls at 1280 × 720."""

import re
from itertools import pairwise

import pytest

from helpers.export.cells import slide_type
from tests.tools import browser, slides
from tests.tools.course import NOTEBOOKS, read

pytest.importorskip("pyreveal", reason="the extra 'teach' is not installed")
NOTES = re.compile(
    r"<details><summary>For the teacher · (\d+) min</summary>\n\n\*\*Ask\.\*\* \S.*?\n\n\*\*Expect\.\*\* \S.*?\n\n"
    r"\*\*Usual wrong answer\.\*\* \S.*?\n\n</details>",
    re.DOTALL,
)


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def cells(request):
    """The cells of a notebook with their slide types."""
    return [(cell, slide_type(cell)) for cell in read(request.param).cells]


def test_sections_and_slides_start_with_their_headings(cells):
    assert cells[0][1] == "slide"
    for cell, kind in cells:
        assert kind in ("", "slide", "subslide", "fragment", "notes", "skip"), cell.source
        if cell.cell_type == "markdown":
            text = re.sub(r"^```.*?^```", "", cell.source, flags=re.DOTALL | re.MULTILINE)
            headings = [(match.start(), match[1]) for match in re.finditer(r"^(#+) ", text, re.MULTILINE)]
            assert all(start == 0 for start, _ in headings), f"a heading must open its cell:\n{cell.source}"
            if headings:
                allowed = {"#": {"slide"}, "##": {"slide"}, "###": {"slide", "subslide", "skip"}}[headings[0][1]]
                assert kind in allowed, cell.source


def test_every_section_has_notes_and_their_minutes_are_those_of_the_lesson(cells):
    for (cell, kind), (_, following) in pairwise(cells):
        assert kind != "slide" or following == "notes", f"no notes after:\n{cell.source}"
        assert following != "notes" or kind in ("slide", "subslide"), (
            f"notes must follow what starts a slide:\n{cell.source}"
        )
    notes = [NOTES.fullmatch(cell.source) for cell, kind in cells if kind == "notes"]
    assert all(notes) and all(int(note[1]) for note in notes)
    assert sum(int(note[1]) for note in notes) == int(re.search(r"(\d+) minutes", cells[0][0].source)[1])


@pytest.fixture(scope="module")
def context():
    """A browser, where there is one."""
    browser.skip(browser.lacking())
    with slides.browser() as found:
        yield found


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_slide_is_larger_than_the_screen(path, context, tmp_path):
    file = tmp_path / f"{path.stem}.html"
    file.write_text(slides.deck(path), encoding="utf-8")
    measured = slides.measure(context, file)
    assert len(measured) > 10
    too_large = [str(slide) for slide in measured if not slide.fits]
    assert not too_large, "\n".join(too_large)


def deck(tmp_path, body):
    """A deck with that body in place of a notebook's."""
    path, text = tmp_path / "deck.html", slides.deck(NOTEBOOKS[0])
    start, end = text.index("<section>"), text.rindex("</section>") + len("</section>")
    path.write_text(f"{text[:start]}<section>{body}</section>{text[end:]}", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("body", "down", "right"),
    [
        ("<div style='height: 660px'></div>", 0, 0),
        ("<div style='height: 700px'></div>", 32, 0),
        ("<div style='width: 1200px'>x</div>", 0, 32),
        ("<details><summary style='height: 40px'>a</summary><div style='height: 660px'></div></details>", 32, 0),
    ],
)
def test_what_is_too_large_is_measured(tmp_path, context, body, down, right):
    (slide, *_) = slides.measure(context, deck(tmp_path, f"<section>{body}</section>"))
    assert (max(slide.down, 0), max(slide.right, 0)) == (pytest.approx(down, abs=8), right)
    assert slide.fits == (not down and not right)


def code(lines, height):
    table = f"<div class='outputs'><table><tr><td style='height: {height}px'>y</table></div>"
    return f"<div class='code'><pre>{'x<br>' * lines}</pre></div>{table}"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (code(10, 300), ["h x y"]),
        (code(20, 300) + "<p>z</p>", ["h x", "h y z"]),
        (code(12, 400) + code(3, 300), ["h x", "h y x", "h y"]),
        ("<p style='height: 800px'>a</p>", ["h a"]),
    ],
)
def test_what_does_not_fit_goes_on_from_a_picture_under_the_same_heading(tmp_path, context, body, expected):
    page = context.new_page()
    page.goto(deck(tmp_path, f"<section><aside class='notes'>n</aside><h2>h</h2>{body}</section>").as_uri())
    page.wait_for_function("window.Reveal && Reveal.isReady()")
    found = page.evaluate("""[...document.querySelectorAll(".slides > section > section")].map(slide =>
        [...slide.querySelectorAll("h2, p, pre, td")].map(part => part.textContent[0]).join(" "))""")
    assert found == expected
    assert page.locator(".slides .notes").count() == len(expected)  # notes hold for the section
    page.close()


def test_a_deck_opens_without_a_request_and_shows_notes_to_the_speaker(tmp_path, context):
    path = tmp_path / "deck.html"
    path.write_text(slides.deck(NOTEBOOKS[0]), encoding="utf-8")
    asked = []
    context.on("request", lambda request: asked.append(request.url))
    page = context.new_page()
    page.goto(path.as_uri())
    page.wait_for_function("window.Reveal && Reveal.isReady()")
    with context.expect_page() as popup:
        page.keyboard.press("s")
    popup.value.locator(".speaker-controls-notes").get_by_text("Usual wrong answer.").wait_for()
    assert not page.get_by_text("Usual wrong answer.").first.is_visible()
    assert page.evaluate("[...document.querySelectorAll('section section')].every(one => one.querySelector('.notes'))")
    assert all(url.startswith((path.as_uri(), "data:", "about:", "blob:")) for url in asked), asked
    popup.value.close()
    page.close()


def test_live_slides_are_walked_by_one_key(tmp_path):
    browser.skip(browser.lacking())
    cells = read(NOTEBOOKS[0]).cells
    shown = [place for place, cell in enumerate(cells) if slide_type(cell) not in ("notes", "skip")]
    starts = {place for place in shown if slide_type(cells[place]) in ("slide", "subslide")}
    code = {place for place in shown if cells[place].cell_type == "code"}
    with browser.desk(tmp_path) as desk:
        desk.open(NOTEBOOKS[0].name)
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
