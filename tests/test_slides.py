"""Every notebook is a talk: slide types and notes as the course has them, and no slide that scrolls at 1280 × 720."""

import re
from itertools import pairwise

import pytest

from helpers import export
from tests.tools import browser, slides
from tests.tools.course import NOTEBOOKS, read

NOTES = re.compile(
    r"<details><summary>For the teacher · (\d+) min</summary>\n\n\*\*Ask\.\*\* \S.*?\n\n\*\*Expect\.\*\* \S.*?\n\n"
    r"\*\*Usual wrong answer\.\*\* \S.*?\n\n</details>",
    re.DOTALL,
)


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def cells(request):
    """The cells of a notebook with their slide types."""
    return [(cell, export.slide_type(cell)) for cell in read(request.param).cells]


def sections(cells):
    """The cells by section: what a slide starts, to the next."""
    found = []
    for cell, kind in cells:
        if kind == "slide":
            found.append([])
        found[-1].append((cell, kind))
    return found


def test_every_cell_has_its_place(cells):
    assert cells[0][1] == "slide"
    for cell, kind in cells:
        assert kind in ("", *export.SLIDE_TYPES), cell.source
        assert "slide_type" not in cell.metadata.get("slideshow", {}) or kind, cell.source


def test_sections_and_slides_start_with_their_headings(cells):
    for cell, kind in cells:
        if cell.cell_type == "markdown":
            text = re.sub(r"^```.*?^```", "", cell.source, flags=re.DOTALL | re.MULTILINE)
            headings = [(match.start(), match[1]) for match in re.finditer(r"^(#+) ", text, re.MULTILINE)]
            assert all(start == 0 for start, _ in headings), f"a heading must open its cell:\n{cell.source}"
            if headings:
                allowed = {"#": {"slide"}, "##": {"slide"}, "###": {"slide", "subslide", "skip"}}[headings[0][1]]
                assert kind in allowed, cell.source


def test_every_section_has_notes_for_the_teacher_in_their_place(cells):
    for section in sections(cells):
        kinds = [kind for _, kind in section]
        assert kinds[1:2] == ["notes"], f"no notes after:\n{section[0][0].source}"
        for (before, _), (cell, kind) in pairwise(section):
            if kind == "notes":
                assert cell.cell_type == "markdown" and NOTES.fullmatch(cell.source), cell.source
                assert export.slide_type(before) in ("slide", "subslide"), cell.source


def test_minutes_add_up_to_those_of_the_notebook(cells):
    minutes = [int(NOTES.fullmatch(cell.source)[1]) for cell, kind in cells if kind == "notes"]
    assert sum(minutes) == int(re.search(r"(\d+) minutes", cells[0][0].source)[1]), minutes
    assert all(minutes)


def test_hint_and_solution_share_a_slide_of_their_own(cells):
    for (cell, kind), (following, next_kind) in pairwise(cells):
        if cell.source.startswith("<details><summary>Hint<"):
            assert (kind, next_kind) == ("subslide", ""), cell.source
            assert following.source.startswith("<details><summary>Solution<")


@pytest.fixture(scope="module")
def context():
    """A browser, where there is one."""
    browser.skip(slides.missing())
    with slides.browser() as found:
        yield found


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_slide_is_larger_than_the_screen(path, context, tmp_path):
    file = tmp_path / f"{path.stem}.html"
    file.write_text(slides.deck(path), encoding="utf-8")
    measured = slides.measure(context, file)
    assert len(measured) > len(sections([(cell, export.slide_type(cell)) for cell in read(path).cells]))
    too_large = [str(slide) for slide in measured if not slide.fits]
    assert not too_large, "\n".join(too_large)


def deck(tmp_path, body):
    """A deck with that body in place of a notebook's."""
    path = tmp_path / "deck.html"
    text = slides.deck(NOTEBOOKS[0])
    start, end = text.index("<section>"), text.rindex("</section>") + len("</section>")
    path.write_text(f"{text[:start]}<section>{body}</section>{text[end:]}", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("body", "unfolded", "down", "right"),
    [
        ("<div style='height: 672px'></div>", False, 0, None),
        ("<div style='height: 700px'></div>", False, 28, None),
        ("<div class='fragment' style='height: 700px'></div>", False, 28, None),
        ("<div style='width: 1200px'>x</div>", False, None, 32),
        ("<pre>" + 200 * "x" + "</pre>", False, None, 999),
        (
            "<details><summary style='height: 40px'>a</summary><div style='height: 660px'></div></details>",
            True,
            36,
            None,
        ),
    ],
)
def test_what_is_too_large_is_measured(tmp_path, context, body, unfolded, down, right):
    measured = [s for s in slides.measure(context, deck(tmp_path, f"<section>{body}</section>")) if not s.fits]
    if not down and not right:
        assert not measured
        return
    (slide,) = measured
    assert (slide.place, slide.unfolded) == ("1/1", unfolded)
    assert down is None or slide.down == pytest.approx(down, abs=1)
    assert right is None or slide.right >= min(right, 300)


def code(lines, output, text="y"):
    inside = f"<div style='height: {output}px'>{text}</div>"
    return f"<div class='code'><pre>{'x<br>' * lines}</pre></div><div class='outputs'>{inside}</div>"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (code(10, 400), [["x", "y"]]),
        (code(20, 400) + "<p>z</p>", [["x"], ["y", "z"]]),
        ("<p>a</p><div class='fragment'>" + code(20, 400) + "<p>z</p></div>", [["a", "[x]"], ["y", "z"]]),
        (code(20, 400) + "<div class='fragment'><p>z</p></div>", [["x"], ["y", "[z]"]]),
        (code(3, 200) + code(3, 200, "z") + code(3, 200, "w"), [["x", "y", "x", "z", "x"], ["w"]]),
        (code(20, 400) + code(3, 300, "z"), [["x"], ["y", "x"], ["z"]]),
        (code(20, 90) + "<p style='height: 90px'>z</p>" * 2, [["x", "y", "z", "z"]]),  # no picture, so left as it is
        ("<p style='height: 800px'>a</p>" + code(1, 400), [["a", "x", "y"]]),
    ],
)
def test_what_does_not_fit_goes_on_from_a_picture_below(tmp_path, context, body, expected):
    page = context.new_page()
    page.goto(deck(tmp_path, f"<section>{body}<aside class='notes'>n</aside></section>").as_uri())
    page.wait_for_function("window.Reveal && Reveal.isReady()")
    found = page.evaluate("""[...document.querySelectorAll('.slides > section:first-child > section')].map(slide =>
      [...slide.querySelectorAll('p, pre, .outputs > div')].map(part => {
        const text = part.textContent[0];
        return part.closest('.fragment') ? `[${text}]` : text;
      }))""")
    assert found == expected
    assert page.evaluate("document.querySelectorAll('.slides > section:first-child .notes').length") == len(expected)
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
    notes = popup.value.locator(".speaker-controls-notes")
    notes.get_by_text("Usual wrong answer.").wait_for()
    expected = next(cell.source for cell in read(NOTEBOOKS[0]).cells if export.slide_type(cell) == "notes")
    assert re.search(r"For the teacher · \d+ min", expected)[0] in notes.inner_text()
    assert not page.get_by_text("Usual wrong answer.").first.is_visible()
    # The next slide of a section without notes of its own still has the section's.
    assert page.evaluate(
        "[...document.querySelectorAll('.slides section section')].every(s => s.querySelector('.notes'))"
    )
    assert all(url.startswith((path.as_uri(), "data:", "about:", "blob:")) for url in asked), asked
    popup.value.close()
    page.close()


def test_a_fold_opens_by_mouse_and_by_key_and_the_slide_stays(tmp_path, context):
    page = context.new_page()
    page.goto(
        deck(tmp_path, "<section><details><summary>a</summary>b</details></section><section>c</section>").as_uri()
    )
    page.wait_for_function("window.Reveal && Reveal.isReady()")
    page.locator("summary").click()
    assert page.locator("details[open]").count() == 1
    page.keyboard.press("Tab")
    page.locator("summary").focus()
    page.keyboard.press("Space")
    assert page.locator("details[open]").count() == 0
    assert page.evaluate("Reveal.getIndices().v") == 0
    page.locator("summary").click()
    page.keyboard.press("Space")
    assert page.evaluate("Reveal.getIndices().v") == 1
    page.close()
