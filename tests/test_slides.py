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
        assert following != "notes" or kind in ("slide", "subslide"), f"notes that start no slide:\n{cell.source}"
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


def test_what_does_not_fit_goes_on_under_the_same_heading_with_the_same_notes(tmp_path, context):
    tall = "<p style='height: 400px'>a</p><p style='height: 100px'>b</p><p style='height: 200px'>c</p>"
    table = "<p style='height: 300px'>a</p>"
    table += "<div class='outputs'><table><tr><td style='height: 300px'>b</table></div><p>c</p>"
    page = context.new_page()
    for body, expected in ((tall, ["h a b", "h c"]), (table, ["h a", "h b c"])):
        page.goto(deck(tmp_path, f"<section><aside class='notes'>n</aside><h2>h</h2>{body}</section>").as_uri())
        page.reload()
        page.wait_for_function("window.Reveal && Reveal.isReady()")
        found = page.evaluate("""[...document.querySelectorAll(".slides > section > section")].map(slide =>
            [...slide.querySelectorAll("h2, p, td")].map(part => part.textContent[0]).join(" "))""")
        assert (found, page.locator(".slides .notes").count()) == (expected, 2)
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
    assert all(url.startswith((path.as_uri(), "data:", "about:", "blob:")) for url in asked), asked
    popup.value.close()
    page.close()
