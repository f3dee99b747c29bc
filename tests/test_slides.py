"""Every notebook is a talk: slide types and notes as the course has them, and no slide that scrolls at 1280 × 720."""

import re
from itertools import pairwise

import pytest
from nbformat import NotebookNode

from helpers.export.cells import answer, is_exercise, is_guess, slide_type
from helpers.export.code import Definitions
from tests.tools import browser
from tests.tools.course import NOTEBOOKS, is_further, plain, read, sections

pytest.importorskip("pyreveal", reason="the extra 'teach' is not installed")
from helpers.export import documents

NOTES = re.compile(
    r"<details><summary>For the teacher · (\d+) min</summary>\n\n\*\*Ask\.\*\* \S.*?\n\n\*\*Expect\.\*\* \S.*?\n\n"
    r"\*\*Usual wrong answer\.\*\* \S.*?\n\n</details>",
    re.DOTALL,
)
# Of each slide where it is, whether it opens with a heading, how far what it holds runs over it, down and to the right
# (a Range also sees text that runs out of its element), the width and the height of its pictures and views, and what is
# written in a view in smaller letters than the last row can read.
SEEN = """() => [...document.querySelectorAll('.slides > section > section')].map(slide => {
  const {h, v} = Reveal.getIndices(slide), range = document.createRange(), box = part => part.getBoundingClientRect();
  Reveal.slide(h, v, 99);
  range.selectNodeContents(slide);
  const {paddingBottom, paddingRight} = getComputedStyle(slide);
  const seen = [...slide.querySelectorAll('.outputs')].filter(part => part.getClientRects().length);
  const low = Math.max(box(range).bottom, ...seen.map(part => box(part).bottom));
  const pictures = [...slide.querySelectorAll('.output > img, [data-view]')].map(part => {
    const {width, height} = box(part), {naturalWidth, naturalHeight} = part;
    const scale = Math.min(width / naturalWidth, height / naturalHeight);
    return part.dataset.view ? [width, height] : [scale * naturalWidth, scale * naturalHeight];
  });
  const small = [...slide.querySelectorAll('.course-view *')].filter(part => part.getClientRects().length
    && !part.closest('.calm') && [...part.childNodes].some(node => node.nodeType == Node.TEXT_NODE && node.data.trim())
    && parseFloat(getComputedStyle(part).fontSize) < 18).map(part => part.textContent);
  return {
    small, name: `${h + 1}/${v + 1} ${slide.innerText.slice(0, 60)}`, kind: slide.classList[0], pictures,
    titled: slide.firstElementChild.matches('h1, h2, h3'),
    down: low - box(slide).bottom + parseFloat(paddingBottom),
    right: box(range).right - box(slide).right + parseFloat(paddingRight),
  };
})"""
WIDTH, HEIGHT = 1280, 720


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
    minutes = [0, 0]  # of the lesson, and of what goes further
    for part in sections(NotebookNode(cells=[cell for cell, _ in cells])):
        for note in (NOTES.fullmatch(cell.source) for cell in part if slide_type(cell) == "notes"):
            assert note and int(note[1]), part[0].source
            minutes[is_further(part)] += int(note[1])
    stated = re.search(r"(\d+) minutes(?:, (\d+) more)?", cells[0][0].source)
    assert minutes == [int(stated[1]), int(stated[2] or 0)]


@pytest.fixture(scope="module")
def context():
    """A browser without a network, where there is one."""
    browser.skip(browser.lacking())
    with browser.chromium() as found:
        context = found.new_context(viewport={"width": WIDTH, "height": HEIGHT}, offline=True)
        context.set_default_timeout(1000 * browser.PATIENCE)
        yield context


@pytest.fixture
def opened(context, tmp_path):
    """A function that opens the deck of a notebook, or one with that body in its place."""
    page, file = context.new_page(), tmp_path / "deck.html"

    def opened(path, body=""):
        text = documents.deck(path, {}, path.stem)
        if body:
            start, end = text.index("<section>"), text.rindex("</section>") + len("</section>")
            text = f"{text[:start]}<section>{body}</section>{text[end:]}"
        file.write_text(text, encoding="utf-8")
        page.goto(file.as_uri())
        page.wait_for_function("window.Reveal && Reveal.isReady()")
        return page

    yield opened
    page.close()


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_slide_has_a_heading_and_fits_and_is_read_from_the_last_row(path, opened):
    slides = opened(path).evaluate(SEEN)
    assert len(slides) > 10 and all(slide["titled"] for slide in slides)
    # A space may hang at the end of a line.
    assert not [slide for slide in slides if slide["down"] > 1.5 or slide["right"] > 12.5 or slide["small"]]
    for slide in slides:
        if slide["kind"] == "picture":
            [(width, height)] = slide["pictures"]
            assert width >= 0.8 * WIDTH or height >= 0.7 * HEIGHT, slide["name"]
        else:
            assert not slide["pictures"] or slide["kind"] in ("guess", "exercise"), slide["name"]


# Of each guess what its slide shows before a key is pressed, and in its code.
ASKED = """() => [...document.querySelectorAll('.slides section.guess')].map(slide => {
  const shown = slide.cloneNode(true);
  shown.querySelectorAll('.fragment, aside, [hidden]').forEach(part => part.remove());
  const code = [...shown.querySelectorAll('.code')].map(part => part.textContent).join('\\n');
  return [shown.textContent, code, shown.querySelectorAll('.code, table, img').length];
})"""


def questions(notebook):
    """Each guess of a notebook with the text that asks for it, and with what the code above it has defined."""
    question, defined = "", Definitions()
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and slide_type(cell) not in ("notes", "skip"):
            question = cell.source
        elif is_guess(cell):
            yield question, answer(cell), defined.recalled(set(re.findall(r"(?<=`)\w+(?=`)|\bw\d\b", question)))
        if cell.cell_type == "code" and not is_exercise(cell):
            defined.add(cell.source)


def letters(text):
    return re.sub(r"\W+", "", text)


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_guess_is_answered_from_its_slide_alone(path, opened):
    slides = opened(path).evaluate(ASKED)
    for (text, code, seen), (question, answered, definitions) in zip(slides, questions(read(path)), strict=True):
        for paragraph in question.split("\n\n"):
            is_told = re.match(r"<details|Replace the three dots|\||\$\$", paragraph)
            assert is_told or letters(plain(paragraph)) in letters(text), f"not on the slide:\n{paragraph}"
        leads_on = re.search(r"\bbelow\b(?! )|\blines?\b.* below|:$|\bread \w+ off\b", question, re.IGNORECASE)
        assert seen or not leads_on, f"nothing stands below:\n{question}"
        assert all(letters(definition) in letters(code) for definition in definitions), (
            f"undefined:\n{question}\n{code}"
        )
        assert not answered or letters(answered) not in letters(text), f"told too early:\n{answered}"


PARAGRAPHS = "<p style='height: 400px'>a</p><p style='height: 100px'>b</p><p style='height: 200px'>c</p>"
TABLE = """<p style='height: 300px'>a</p>
  <div class='outputs'><table><tr><td style='height: 300px'>b</table></div><p>c</p>"""


@pytest.mark.slow
@pytest.mark.parametrize(("body", "expected"), [(PARAGRAPHS, ["h a b", "h c"]), (TABLE, ["h a", "h b c"])])
def test_what_does_not_fit_goes_on_under_the_same_heading_with_the_same_notes(opened, body, expected):
    page = opened(NOTEBOOKS[0], f"<section><aside class='notes'>n</aside><h2>h</h2>{body}</section>")
    found = page.evaluate("""[...document.querySelectorAll(".slides > section > section")].map(slide =>
        [...slide.querySelectorAll("h2, p, td")].map(part => part.textContent[0]).join(" "))""")
    assert (found, page.locator(".slides .notes").count()) == (expected, 2)


@pytest.mark.slow
def test_a_picture_is_as_large_in_print_as_on_the_screen(opened):
    page = opened(NOTEBOOKS[3])
    shown = [slide["pictures"] for slide in page.evaluate(SEEN) if slide["kind"] == "picture"]
    page.goto(page.url.partition("#")[0] + "?print-pdf")
    page.locator(".pdf-page").last.wait_for(state="attached")
    printed = page.evaluate("""[...document.querySelectorAll('.pdf-page > section.picture')].map(slide =>
        [...slide.querySelectorAll('.output > img, [data-view]')].map(part => part.getBoundingClientRect().width))""")
    assert [[width for width, _ in one] for one in shown if one] == [pytest.approx(one, rel=0.02) for one in printed]


@pytest.mark.slow
def test_on_paper_a_guess_has_a_page_before_its_answer_and_a_picture_shows_it(opened):
    page = opened(NOTEBOOKS[3])
    page.goto(page.url.partition("#")[0] + "?print-pdf")
    page.locator(".pdf-page").last.wait_for(state="attached")
    shown = page.evaluate("""[...document.querySelectorAll('.pdf-page > section.guess')].map(slide =>
        [...slide.querySelectorAll('.fragment')].filter(part => part.matches('.visible')).length)""")
    assert shown.count(0) == len([*questions(read(NOTEBOOKS[3]))]) and shown.count(1) >= shown.count(0)
    assert page.locator("[data-view] button", has_text="without a guess").count() == 0
    letters = page.evaluate("""[...document.querySelectorAll('.pdf-page > section')].map(slide =>
        [getComputedStyle(slide).fontSize, slide.style.getPropertyValue('--prose-size')])""")
    assert all(printed == shown for printed, shown in letters)


@pytest.mark.slow
@pytest.mark.parametrize(("key", "code"), [("?", 191), ("?", 219), ("F1", 112)])
def test_help_opens_on_any_keyboard(opened, key, code):
    page = opened(NOTEBOOKS[0])
    press = {"key": key, "keyCode": code, "shiftKey": key == "?", "bubbles": True}
    page.evaluate("press => document.dispatchEvent(new KeyboardEvent('keydown', press))", press)
    page.get_by_text("Keyboard Shortcuts").wait_for()


@pytest.mark.slow
def test_after_a_click_or_a_drag_in_a_picture_the_keys_are_for_the_slides(opened):
    page = opened(NOTEBOOKS[5])
    place = page.evaluate("""() => {
        const {h, v} = Reveal.getIndices(document.querySelector('[data-view="roofline"]').closest('section'));
        Reveal.slide(h, v);
        return Reveal.getSlidePastCount();
    }""")
    knob = page.locator("section.present [role=slider] .knob").first.bounding_box()
    page.mouse.move(knob["x"] + 4, knob["y"] + 4)
    page.mouse.down()
    page.mouse.move(knob["x"] + 150, knob["y"] + 4, steps=4)
    page.mouse.up()
    page.get_by_role("button", name="Show the answer").locator("visible=true").first.click()
    page.keyboard.press("n")
    page.wait_for_function("place => Reveal.getSlidePastCount() > place", arg=place)


@pytest.mark.slow
def test_a_speaker_reads_first_what_to_ask(opened):
    slides = opened(NOTEBOOKS[3]).evaluate("""[...document.querySelectorAll('.slides > section > section')].map(slide =>
        [...slide.querySelectorAll('aside')].map(note => note.matches('.teacher')))""")
    assert sum(len(notes) > 1 for notes in slides) > 5
    assert all(notes.index(True) == 0 for notes in slides if True in notes)


@pytest.mark.slow
def test_a_deck_opens_without_a_request_and_shows_notes_to_the_speaker(opened, context):
    asked = []
    context.on("request", lambda request: asked.append(request.url))
    page = opened(NOTEBOOKS[0])
    with context.expect_page() as popup:
        page.keyboard.press("s")
    popup.value.locator(".speaker-controls-notes").get_by_text("Usual wrong answer.").wait_for()
    assert not page.get_by_text("Usual wrong answer.").first.is_visible()
    assert all(url.startswith((page.url, "data:", "about:", "blob:")) for url in asked), asked
    popup.value.close()
