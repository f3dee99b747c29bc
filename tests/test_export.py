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
from tests.tools import browser, slides
from tests.tools.course import NOTEBOOKS, ROOT, exercises, read

pytest.importorskip("latex2mathml", reason="the extra 'teach' is not installed")
from helpers.export import documents


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The pages of the course, as the command writes them."""
    documents.write("pages", NOTEBOOKS, tmp_path_factory.mktemp("course") / "pages")
    return tmp_path_factory.getbasetemp() / "course0" / "pages"


@pytest.fixture(scope="module")
def pages(folder):
    """The pages by the notebook they come from, and the start page as "index"."""
    return {file.stem: BeautifulSoup(file.read_text("utf-8"), "html.parser") for file in folder.iterdir()}


@pytest.fixture(scope="module", params=NOTEBOOKS, ids=lambda path: path.stem)
def both(request, pages):
    """A notebook, its page and its deck."""
    return read(request.param), pages[request.param.stem], BeautifulSoup(slides.deck(request.param), "html.parser")


def deck(tmp_path, *given, kind="slides", **options):
    """What becomes of a notebook that opens as the course's do and goes on with these cells."""
    opening = new_markdown_cell("# 00 A\n\n**Why?** 5 minutes", metadata={"slideshow": {"slide_type": "slide"}})
    path = tmp_path / "00_a.ipynb"
    nbformat.write(new_notebook(cells=[opening, *given]), path)
    return BeautifulSoup(documents.document(kind, path, {}, title="A", **options), "html.parser")


def text(source, kind=""):
    return new_markdown_cell(source, metadata={"slideshow": {"slide_type": kind}} if kind else {})


def test_nothing_is_loaded_from_anywhere(both, pages):
    for document in (*both[1:], pages["index"]):
        for tag in document.find_all(True):
            for attribute in ("src", "srcset", "data", "poster"):
                assert tag.get(attribute, "data:").startswith("data:"), (tag.name, tag[attribute][:80])
        assert not document.find_all(["link", "iframe", "object", "embed", "base"])
        css = "\n".join(style.string for style in document.find_all("style"))
        assert "@import" not in css and set(re.findall(r"url\(\s*['\"]?([a-z]+)", css)) <= {"data"}


def test_every_cell_and_output_is_on_the_page(both):
    notebook, page, _ = both
    shown, alts = page.get_text(), [image["alt"] for image in page.find_all("img")]
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert cell.source in shown
            if "exercise" in cell.metadata.get("tags", []) or "guess = ..." in cell.source:
                continue
            for output in cell.outputs:
                data = output.get("data", {"text/plain": output.get("text")})
                if "image/png" in data:
                    assert output.metadata["image/png"]["alt"] in alts or "explore." in cell.source
                elif "text/html" in data:
                    assert BeautifulSoup(data["text/html"], "html.parser").get_text() in shown
                else:
                    assert data["text/plain"] in shown


def test_every_formula_is_mathml(both):
    notebook, page, _ = both
    prose = [
        cell.source for cell in notebook.cells if cell.cell_type == "markdown" and cells.slide_type(cell) != "notes"
    ]
    prose = [re.sub(r"```.*?```|`[^`]*`", "", source, flags=re.DOTALL) for source in prose]
    formulas = page.find_all("math")
    assert len(formulas) == sum(len(re.findall(r"\$\$.+?\$\$|\$[^$]+\$", source, re.DOTALL)) for source in prose)
    assert not any(re.search(r"[\\$]", formula.get_text()) for formula in formulas)  # a command not understood


def test_pages_hold_no_notes_and_their_answers_are_folded(both):
    notebook, page, _ = both
    summaries = [fold.summary.get_text() for fold in page.find_all("details")]
    assert summaries.count("Hint") == summaries.count("Solution") == len(exercises(notebook))
    assert not any(fold.has_attr("open") for fold in page.find_all("details"))
    assert "For the teacher" not in page.get_text()


def test_the_notes_come_if_asked(tmp_path):
    given = text("<details><summary>For the teacher</summary>\n\nAsk.\n\n</details>", "notes")
    assert not deck(tmp_path, given, kind="pages").details
    assert not deck(tmp_path, given, kind="pages", notes=True).details.has_attr("open")


def test_on_slides_the_speaker_has_notes_hints_and_solutions_and_the_class_has_not(both):
    notebook, _, talk = both
    notes = [fold.summary.get_text() for fold in talk.select("aside details[open]")]
    kinds = [cells.slide_type(cell) for cell in notebook.cells]
    assert sum(words.startswith("For the teacher") for words in notes) == kinds.count("notes")
    assert notes.count("Hint") == notes.count("Solution") == len(exercises(notebook))
    assert not {fold.summary.get_text() for fold in talk.find_all("details") if not fold.find_parent("aside")} & set(
        notes
    )


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("x = 1\nassert x == 1\nx", "x = 1\nx"),
        ("draw.bits(\n    3,\n)", ""),
        ("assert x\nexplore.roofline()", ""),
        ("n = 2\ndraw.bits(n)", "n = 2"),
        ("assert a\nassert b", "assert a\nassert b"),
        ("withdraw.all()", "withdraw.all()"),
    ],
)
def test_slides_show_neither_asserts_nor_the_call_that_draws(tmp_path, source, shown):
    assert cells.lesson_code(source) == shown
    kept = new_code_cell(source, metadata={"tags": ["show-code"]})
    assert deck(tmp_path, kept).select_one(".code").get_text().strip() == source
    assert deck(tmp_path, new_code_cell(source), kind="pages").select_one(".code").get_text().strip() == source


def test_on_paper_a_guess_asks_for_a_pencil(tmp_path):
    cell = new_code_cell(
        "guess = ...\ncompare(guess, 3)", outputs=[new_output("display_data", {"text/plain": "run it"})]
    )
    for kind in ("pages", "slides"):
        assert deck(tmp_path, cell, kind=kind).select_one(".output").get_text().startswith("Write your guess down")


def test_slide_types_make_sections_slides_and_fragments(tmp_path):
    given = (
        ("a", "slide"),
        ("note", "notes"),
        ("b", ""),
        ("c", "fragment"),
        ("d", ""),
        ("e", "fragment"),
        ("f", "subslide"),
    )
    talk = deck(
        tmp_path,
        *(text(*one) for one in given),
        text("gone", "skip"),
        new_code_cell("import torch"),
        text("g", "slide"),
    )
    for fragment in talk.select(".fragment"):
        fragment.insert(0, "["), fragment.append("]")
    for aside in talk.select("aside"):
        aside.replace_with(f"({aside.get_text(strip=True)})")
    sections = talk.select_one(".slides").find_all("section", recursive=False)
    shown = [[" ".join(slide.get_text(" ").split()) for slide in section.find_all("section")] for section in sections]
    assert shown[1:] == [["a (note) b [ c d ] [ e ]", "f"], ["g"]]


def test_a_notebook_that_opens_otherwise_is_named(tmp_path):
    nbformat.write(new_notebook(cells=[text("# 00 A", "slide")]), tmp_path / "00_a.ipynb")
    with pytest.raises(ValueError, match=r"^00_a\.ipynb must open with a title, a question"):
        documents.write("pages", [tmp_path / "00_a.ipynb"], tmp_path)


def test_links_lead_to_what_was_exported(pages):
    for stem, document in pages.items():
        for link in document.find_all("a"):
            if not link["href"].startswith("https://"):
                path, _, anchor = unquote(link["href"]).partition("#")
                target = pages[path.removesuffix(".html") if path else stem]
                assert not anchor or target.find(id=anchor), (stem, link)
    alone = documents.document("pages", NOTEBOOKS[1], {}, title="")
    assert ".ipynb" not in " ".join(link["href"] for link in BeautifulSoup(alone, "html.parser").find_all("a"))


def test_the_start_page_has_the_table_of_the_readme(pages):
    rows = re.findall(
        r"^\| \[(.+?)\]\(notebooks/(.+?)\.ipynb\) \| (.+?) \| (\d+)", (ROOT / "README.md").read_text("utf-8"), re.M
    )
    for link, (title, stem, question, minutes) in zip(pages["index"].select(".lessons a"), rows, strict=True):
        assert link["href"] == f"{stem}.html" and link.strong.get_text().startswith(title)
        assert [link.span.get_text(), link.small.get_text()] == [question.replace("`", ""), f"{minutes} minutes"]


def test_pages_can_be_read_by_everyone(pages):
    for page in pages.values():
        assert page.html["lang"] == "en" and page.title.get_text()
        ids = [tag["id"] for tag in page.find_all(id=True)]
        assert len(ids) == len(set(ids)) and "main" in ids
        levels = [int(heading.name[1]) for heading in page.find_all(re.compile(r"^h\d$"))]
        assert (
            levels[0] == 1 and levels.count(1) == 1 and all(after <= before + 1 for before, after in pairwise(levels))
        )


def test_pages_need_no_sideways_scrolling_on_a_phone(folder):
    browser.skip(browser.lacking())
    with slides.browser() as context:
        page = context.new_page()
        page.set_viewport_size({"width": 390, "height": 844})
        for file in sorted(folder.iterdir()):
            page.goto(file.as_uri())
            assert page.evaluate("document.documentElement.scrollWidth") == 390, file.name


def test_the_command_line(monkeypatch, capsys, tmp_path):
    def command(*arguments):
        monkeypatch.setattr(sys, "argv", ["export", *map(str, arguments)])
        main()

    command("slides", "--out", tmp_path / "a" / "b", "02", "00")
    start = tmp_path / "a" / "b" / "index.html"
    names = {"index.html", "00_start_here.slides.html", "02_tensor_storage_and_views.slides.html"}
    assert {path.name for path in start.parent.iterdir()} == names
    assert capsys.readouterr().out == f"2 slides; open {start}\n"
    for arguments, message in (
        (["pages", "99"], "there is no notebook 99; there are 00,"),
        (["book"], "invalid choice"),
    ):
        with pytest.raises(SystemExit, match="2"):
            command("--out", tmp_path / "new", *arguments)
        assert message in capsys.readouterr().err and not (tmp_path / "new").exists()
