"""The exported pages and slides: they need no network, lose nothing, give no answer away and lead nowhere wrong."""

import re
import sys
from itertools import pairwise
from urllib.parse import unquote

import nbformat
import pytest
from bs4 import BeautifulSoup
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from helpers.export import cells
from helpers.export.__main__ import main
from helpers.export.code import Definitions, asked_code, lesson_code
from tests.tools import browser, course
from tests.tools.course import NOTEBOOKS, ROOT, exercises, read, tags

pytest.importorskip("latex2mathml", reason="the extra 'teach' is not installed")
from helpers.export import documents, glossary

pytestmark = pytest.mark.slow
STEMS = [*(path.stem for path in NOTEBOOKS), "glossary", "index"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The pages of the course."""
    out = tmp_path_factory.mktemp("course") / "pages"
    documents.write("pages", NOTEBOOKS, out)
    return out


@pytest.fixture(scope="module")
def pages(folder):
    """The pages by the notebook they come from, and the start page as "index"."""
    return {file.stem: BeautifulSoup(file.read_text("utf-8"), "html.parser") for file in folder.iterdir()}


@pytest.fixture(scope="module", params=NOTEBOOKS, ids=lambda path: path.stem)
def both(request, pages):
    """A notebook, its page and its deck."""
    deck = documents.deck(request.param, {}, request.param.stem)
    return read(request.param), pages[request.param.stem], BeautifulSoup(deck, "html.parser")


def exported(tmp_path, *given, kind="slides", notes=False):
    """What becomes of a notebook that opens as the course's do and goes on with these cells."""
    path, opening = tmp_path / "00_a.ipynb", text("# 00 A\n\n**Why?** 5 minutes", "slide")
    nbformat.write(new_notebook(cells=[opening, *given]), path)
    lessons = [documents.lesson(path, kind)]
    html = documents.deck(path, {}, "A") if kind == "slides" else documents.pages(lessons, notes)[lessons[0].file]
    return BeautifulSoup(html, "html.parser")


def text(source, kind=""):
    return new_markdown_cell(source, metadata={"slideshow": {"slide_type": kind}} if kind else {})


def test_nothing_is_loaded_from_anywhere(both, pages):
    for document in (*both[1:], pages["index"]):
        loaded = [tag.get(attribute) for tag in document.find_all(True) for attribute in ("src", "srcset", "data")]
        assert all(address is None or address.startswith("data:") for address in loaded)
        assert not document.find_all(["link", "iframe", "object", "embed", "base"])
        css = "\n".join(style.string for style in document.find_all("style"))
        assert "@import" not in css and set(re.findall(r"url\(\s*['\"]?([a-z]+)", css)) <= {"data"}


def test_every_cell_output_picture_and_formula_is_on_the_page(both):
    notebook, page, _ = both
    shown, alts = page.get_text(), [image["alt"] for image in page.find_all("img")]
    formulas = 0
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and cells.slide_type(cell) != "notes":
            prose = re.sub(r"```.*?```|`[^`]*`", "", cell.source, flags=re.DOTALL)
            formulas += len(re.findall(r"\$\$.+?\$\$|\$[^$]+\$", prose, re.DOTALL))
        elif cell.cell_type == "code":
            assert cell.source in shown
            asked = "exercise" in tags(cell) or "guess = ..." in cell.source
            for output in [] if asked else cell.outputs:
                data = output.get("data", {"text/plain": output.get("text") or output.get("ename")})
                html = BeautifulSoup(data["text/html"], "html.parser").get_text() if "text/html" in data else ""
                if "image/png" in data:
                    assert output.metadata["image/png"]["alt"] in alts
                else:
                    assert (html or data["text/plain"]) in shown
    found = page.find_all("math")
    assert len(found) == formulas
    assert not any(re.search(r"[\\$]", formula.get_text()) for formula in found)  # a command not understood


def test_notes_and_hints_are_the_speakers_and_a_solution_has_the_slide_below_its_exercise(both):
    notebook, page, talk = both
    folds = [fold.summary.get_text() for fold in page.find_all("details") if not fold.has_attr("open")]
    notes = [fold.summary.get_text() for fold in talk.select("aside details[open]")]
    assert len(folds) == len(page.find_all("details")) and "For the teacher" not in page.get_text()
    solutions = talk.select(".solution")
    assert folds.count("Hint") == folds.count("Solution") == len(exercises(notebook)) == len(solutions)
    assert notes.count("Hint") == len(solutions) and "Solution" not in notes
    for solution in solutions:
        number = solution.find_previous("h3").get_text().partition(".")[0]
        assert solution.h3.get_text() == f"{number}: a solution"
    kinds = [cells.slide_type(cell) for cell in notebook.cells]
    assert sum(words.startswith("For the teacher") for words in notes) == kinds.count("notes")
    assert len(talk.find_all("details")) == len(notes)


def test_a_deck_loses_no_word_of_the_lesson(both):
    notebook, page, talk = both
    left_out = [course.plain(cell.source) for cell in notebook.cells if cells.slide_type(cell) == "skip"]
    told, left_out = (re.sub(r"\W+", "", part) for part in (talk.select_one(".slides").get_text(), "".join(left_out)))
    for paragraph in page.select("main > p, main > blockquote > p, main > ul > li"):
        assert re.sub(r"\W+", "", paragraph.get_text()) in told + left_out, paragraph


def test_pages_have_the_notes_if_asked(tmp_path):
    given = text("<details><summary>For the teacher</summary>\n\nAsk.\n\n</details>", "notes")
    assert not exported(tmp_path, given, kind="pages").details
    assert not exported(tmp_path, given, kind="pages", notes=True).details.has_attr("open")


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("x = 1\nassert x == 1\nx", "x = 1\nx"),
        ("draw.bits(\n    3,\n)", ""),
        ("n = 2\nexplore.roofline(n)", "n = 2"),
        ("assert a\nassert b", "assert a\nassert b"),
        ("withdraw.all()", "withdraw.all()"),
        ("guess = ...  # GB\n\nx = 1\ncompare(guess, x)", "x = 1"),
    ],
)
def test_slides_show_neither_asserts_nor_guesses_nor_the_call_that_draws(tmp_path, source, shown):
    assert lesson_code(source) == shown


def test_folded_code_unfolds_on_a_page_and_is_not_on_a_slide(tmp_path):
    given = new_code_cell("bars = {}\ndraw.bars(bars)", metadata={"jupyter": {"source_hidden": True}})
    folds = exported(tmp_path, given, kind="pages").select("details:not([open]) .code")
    assert [code.get_text().split()[0] for code in folds] == ["bars"]
    assert not exported(tmp_path, given).select(".code")


PNG = new_output("display_data", {"image/png": ""}, metadata={"image/png": {"alt": "", "width": 1}})


def code(source, *outputs, **metadata):
    return new_code_cell(source, outputs=list(outputs), metadata=metadata)


def guess(answer="It is 3, since."):
    asked = new_output("display_data", {"text/plain": "Predict first"}, metadata={"answer": answer} if answer else {})
    return code("guess = ...\n\nn = 3\ncompare(guess, n)", asked)


def test_a_guess_asks_for_a_pencil_and_hides_its_answer(tmp_path):
    page = exported(tmp_path, guess(), kind="pages")
    assert page.select_one(".output").get_text() == "Write your guess down before you go on."
    assert page.select_one("details:not([open])").get_text() == "What comes outIt is 3, since."
    assert not exported(tmp_path, guess(""), kind="pages").details
    slide = exported(tmp_path, guess()).select_one(".guess")
    hidden = slide.select_one(".fragment").extract()
    assert [" ".join(part.get_text().split()) for part in slide.select(".code, .output")] == [PENCIL]
    assert [" ".join(part.get_text().split()) for part in hidden.select(".code, .output")] == [
        "n = 3",
        "It is 3, since.",
    ]


def test_an_answer_is_code_where_it_is_code(tmp_path):
    given = guess("It is '(a b)'. As `w` < 2 does.")
    assert str(exported(tmp_path, given).select_one(".fragment p")) == (
        "<p>It is <code>(a b)</code>. As <code>w</code> &lt; 2 does.</p>"
    )


@pytest.mark.parametrize(
    ("lines", "asked", "waiting"),
    [
        (
            "a, b = 2, 3\nx = torch.ones(a, b)\nvalue = x.sum()",
            "a, b = 2, 3\nx = torch.ones(a, b)\nvalue = x.sum()",
            "",
        ),
        ("n = 3\nvalue = round(2 * n)", "", "n = 3\nvalue = round(2 * n)"),
        ("sizes = {1: 2}\nvalue = max(sizes)", "sizes = {1: 2}", "value = max(sizes)"),
        ("value = 0\nfor n in (1, 2):\n    value += n", "value = 0\nfor n in (1, 2):\n    value += n", ""),
        ("@f\ndef g(x):\n    return x\n\n\nvalue = g(1)", "@f\ndef g(x):\n    return x\n\nvalue = g(1)", ""),
        ("suspects = []\nvalue = 3", "", "value = 3"),
    ],
)
def test_a_class_sees_what_is_run_and_waits_for_what_is_only_reckoned(lines, asked, waiting):
    assert asked_code(f"guess = ...  # GB\n\n{lines}\ncompare(guess, value)") == (asked, waiting)


def test_what_a_guess_takes_from_above_is_recalled_with_its_numbers():
    above = Definitions()
    above.add("n, m = 3, 4\nk = 5\nx = torch.ones(n)\nlong = (\n\n1,\n2,\n3,\n4)")
    above.add("def f(x):\n    return x\n\nx[0] = 2\ndevice = machine.device()")
    assert above.recalled({"f", "x", "long", "device", "torch"}) == [
        "n, m = 3, 4",
        "x = torch.ones(n)",
        "def f(x):\n    return x",
    ]


def test_with_a_question_stand_the_paragraph_before_it_and_what_its_code_takes_from_above(tmp_path):
    given = [text("## a", "slide"), code("n = 3"), text(f"{LONG}\n\nHow large is `n` here?", "subslide"), guess("")]
    slide = exported(tmp_path, *given).select(".slides > section:last-child > section")[-1]
    slide.select_one(".fragment").decompose()
    assert " ".join(slide.get_text(" ").split()) == f"{LONG} How large is n here? n = 3 {PENCIL}"


LONG = "This explains in many words, and nobody needs them on a slide, what all have seen."
HINT = "<details><summary>Hint</summary>\n\nh\n\n</details>"
ANSWER = f"<details><summary>Answer</summary>\n\n{LONG}\n\n</details>"
PENCIL = "Write your guess down."


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([text("a", "slide"), text(f"Short.\n\n{LONG}\n\nIs **it**?")], [("text", "a Short. Is it ?", LONG)]),
        ([text("a", "slide"), text("n", "notes"), text("gone", "skip"), code("import x")], [("text", "a", "n")]),
        ([text("a", "slide"), text("b", "fragment"), text("c", "subslide")], [("text", "a b", ""), ("text", "c", "")]),
        ([text("a", "slide"), code("x = 1\nx", PNG), text(LONG)], [("text", "a x = 1 x", ""), ("picture", "", LONG)]),
        ([text("A:", "slide"), code("draw.x()", PNG), text("> T")], [("picture", "A:", ""), ("text", "T", "")]),
        (
            [text("## a\n\nb?", "slide"), guess(), text("> T")],
            [("guess", f"a b? {PENCIL} [ n = 3 It is 3, since. T ]", "")],
        ),
        (
            [text("## a\n\nb?", "slide"), guess(""), text(LONG)],
            [("guess", f"a b? {PENCIL} [ n = 3 ]", LONG)],
        ),
        ([text("a?", "slide"), code("x"), guess("")], [("guess", f"a? x {PENCIL} [ n = 3 ]", "")]),
        (
            [text("a", "slide"), code("x"), text("b?"), guess("")],
            [("text", "a x", ""), ("guess", f"b? {PENCIL} [ n = 3 ]", "")],
        ),
        (
            [text("a?", "slide"), text(ANSWER), code("", PNG)],
            [("text", "a?", ""), ("picture", "", ""), ("answer", LONG, "")],
        ),
        ([text("## Recap", "slide"), text(LONG)], [("text", f"Recap {LONG}", "")]),
        (
            [
                text("## Exercises\n\nSix.", "slide"),
                text(f"### Exercise 1. A\n\n{LONG}", "subslide"),
                text(HINT, "subslide"),
                text(HINT.replace("Hint", "Solution"), "subslide"),
                text("### Exercise 2. B", "subslide"),
            ],
            [
                ("exercise", f"Exercise 1. A {LONG}", "Six. Hint h"),
                ("solution", "Exercise 1: a solution h", ""),
                ("exercise", "Exercise 2. B", ""),
            ],
        ),
        (
            [text("a", "slide"), text("b.", "subslide"), text(LONG, "subslide"), text("n", "notes")],
            [("text", "a", ""), ("text", "b.", f"n {LONG}")],
        ),
    ],
)
def test_what_a_slide_shows_and_what_its_speaker_says(tmp_path, given, expected):
    talk, found = exported(tmp_path, *given), []
    for fragment in talk.select(".fragment"):
        fragment.insert(0, " [ "), fragment.append(" ] ")
    for slide in talk.select(".slides > section:last-child > section"):
        notes = " ".join(" ".join(note.extract().get_text(" ").split()) for note in slide.select("aside"))
        found.append((slide["class"][0], " ".join(slide.get_text(" ").split()), notes))
    assert found == expected


@pytest.mark.parametrize("stem", STEMS)
def test_links_lead_to_what_was_exported(pages, stem):
    for link in pages[stem].find_all("a", href=lambda address: not address.startswith("https://")):
        path, _, anchor = unquote(link["href"]).partition("#")
        target = pages[path.removesuffix(".html") if path else stem]
        assert not anchor or target.find(id=anchor), link


def test_a_page_alone_links_to_no_other():
    alone = documents.pages([documents.lesson(NOTEBOOKS[1], "pages")])
    links = BeautifulSoup(alone[f"{NOTEBOOKS[1].stem}.html"], "html.parser").find_all("a", href=True)
    inside = {link["href"].partition("#")[0] for link in links if not link["href"].startswith("https:")}
    assert inside <= {*alone, ""} and len(alone) == 3


def test_the_start_page_has_the_table_of_the_readme(pages):
    row = r"^\| \[(.+?)\]\(notebooks/(.+?)\.ipynb\) \| (.+?) \| (\d+)"
    rows = re.findall(row, (ROOT / "README.md").read_text("utf-8"), re.MULTILINE)
    for link, (title, stem, question, minutes) in zip(pages["index"].select(".lessons a"), rows, strict=True):
        assert link["href"] == f"{stem}.html" and link.strong.get_text().startswith(title)
        assert [link.span.get_text(), link.small.get_text()] == [question.replace("`", ""), f"{minutes} minutes"]


@pytest.mark.parametrize("stem", STEMS)
def test_a_page_has_a_language_a_title_and_headings_in_order(pages, stem):
    page = pages[stem]
    ids = [tag["id"] for tag in page.find_all(id=True)]
    levels = [int(heading.name[1]) for heading in page.find_all(re.compile(r"^h\d$"))]
    assert page.html["lang"] == "en" and page.title.get_text() and len(ids) == len(set(ids)) and "main" in ids
    assert levels[0] == 1 and levels.count(1) == 1 and all(b <= a + 1 for a, b in pairwise(levels))


@pytest.fixture(scope="module")
def phone():
    browser.skip(browser.lacking())
    with browser.chromium() as chromium:
        page = chromium.new_page(viewport={"width": 390, "height": 844}, offline=True)
        page.set_default_timeout(1000 * browser.PATIENCE)
        yield page


@pytest.mark.parametrize("stem", STEMS)
def test_a_page_fits_on_a_phone_and_its_figures_are_read(phone, folder, stem):
    phone.goto((folder / f"{stem}.html").as_uri())
    assert phone.evaluate("document.documentElement.scrollWidth") == 390
    scales = phone.evaluate(
        "[...document.querySelectorAll('.output > img')].map(i => i.getBoundingClientRect().width / i.naturalWidth)"
    )
    assert all(scale * 2 * 110 * 7 / 72 >= 12 for scale in scales)  # the smallest text has 7 points, at twice 110 dpi


def test_pages_are_searched_and_followed_and_change_their_theme(phone, folder):
    errors: list[Exception] = []
    phone.on("pageerror", lambda error: errors.append(error))
    phone.goto((folder / f"{NOTEBOOKS[5].stem}.html").as_uri())
    phone.get_by_role("button", name="Switch between").click()
    assert phone.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 26)"
    phone.locator("h2").nth(3).evaluate("heading => heading.scrollIntoView()")
    heading = phone.locator("h2").nth(3).get_attribute("id")
    phone.locator(f'.contents a[href="#{heading}"][aria-current]').wait_for()
    phone.keyboard.press("/")
    phone.keyboard.insert_text("nowhere <i>")
    assert phone.locator("search ol").inner_text() == "Nothing is found."
    phone.get_by_role("searchbox").fill("cache line")
    phone.keyboard.press("Enter")
    phone.wait_for_url("**/glossary.html#cache-line")
    phone.get_by_role("link", name=NOTEBOOKS[2].stem[:2]).nth(1).wait_for()
    assert not errors


@pytest.mark.parametrize(("notes", "unfolded"), [(True, 3), (False, 0)])
def test_a_teachers_page_is_printed_unfolded_and_a_readers_is_not(phone, tmp_path, notes, unfolded):
    path, told = tmp_path / "00_a.ipynb", "<details><summary>For the teacher</summary>\n\nAsk.\n\n</details>"
    given = [text("# 00 A\n\n**Why?** 5 minutes", "slide"), text(told, "notes"), guess(), text(HINT)]
    nbformat.write(new_notebook(cells=given), path)
    [file, *_] = documents.write("pages", [path], tmp_path, notes)
    phone.goto(file.as_uri())
    for event, expected in (("beforeprint", unfolded), ("afterprint", 0)):
        phone.evaluate("event => { window.dispatchEvent(new Event(event)); }", event)
        assert phone.locator("details[open]").count() == expected


def test_a_word_is_explained_where_its_notebook_first_does_and_linked_from_elsewhere(pages):
    defined = [dfn["id"] for page in pages.values() for dfn in page.find_all("dfn")]
    words = [heading["id"] for heading in pages["glossary"].find_all("h2")]
    assert sorted(defined) == [f"word-{word}" for word in sorted(words)] and len(words) > 90
    for stem, page in pages.items():
        assert all(len(link["data-says"]) > 10 for link in page.select("a.term"))
        assert not page.select(":is(h1, h2, h3, a, pre) a.term")
        assert stem in ("index", "glossary") or page.select("a.term")


def test_the_glossary_takes_the_first_sentence_that_marks_a_word(tmp_path):
    given = text("## b\n\nA ridge.\n\nOf two: its **ridge**, say, `peak`:\n\n- Its *ridge*. More **none**.")
    path = tmp_path / "00_a.ipynb"
    nbformat.write(new_notebook(cells=[given, text("**LoRA**", "notes")]), path)
    [term] = glossary.glossary([path]).values()
    assert (term.word, term.plain, term.section) == ("ridge", "Of two: its ridge, say, peak.", "b")


def test_the_command_line(monkeypatch, capsys, tmp_path):
    def command(*arguments):
        monkeypatch.setattr(sys, "argv", ["export", *map(str, arguments)])
        main()

    command("slides", "--out", tmp_path / "a", "02", "00")
    names = {"index.html", "00_start_here.slides.html", "02_tensor_storage_and_views.slides.html"}
    assert {path.name for path in (tmp_path / "a").iterdir()} == names
    assert capsys.readouterr().out == f"2 decks; open {tmp_path / 'a' / 'index.html'}\n"
    with pytest.raises(SystemExit, match="2"):
        command("--out", tmp_path / "new", "pages", "99")
    assert "there is no notebook 99; there are 00," in capsys.readouterr().err and not (tmp_path / "new").exists()
