"""The exported slides and pages: they need no network, lose nothing, lead nowhere wrong, and refuse bad input."""

import base64
import importlib.util
import io
import re
import sys
import tomllib
from collections import Counter
from itertools import pairwise
from urllib.parse import unquote

import nbformat
import pytest
from bs4 import BeautifulSoup
from fontTools.ttLib import TTFont
from matplotlib import get_data_path
from nbformat.v4 import new_markdown_cell, new_notebook

from helpers import export
from helpers.export.__main__ import main
from helpers.export.cells import markdown
from tests.tools import browser, slides
from tests.tools.course import NOTEBOOKS, ROOT, exercises, read

pytestmark = pytest.mark.skipif(bool(export.missing("slides")), reason="the extra 'teach' is not installed")
KINDS = ("slides", "pages")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """What the command writes: all pages, and for the sake of time one deck."""
    found = {kind: tmp_path_factory.mktemp(kind) / "new" for kind in KINDS}
    export.write("pages", NOTEBOOKS, found["pages"])
    export.write("slides", NOTEBOOKS[:1], found["slides"])
    return found


@pytest.fixture(scope="module")
def documents(folders):
    """The text of all pages, all decks and both indices, by kind and notebook; the index is ""."""
    texts = {("slides", path.stem): slides.deck(path) for path in NOTEBOOKS}
    for kind, folder in folders.items():
        texts[kind, ""] = (folder / "index.html").read_text("utf-8")
    for path in NOTEBOOKS:
        texts["pages", path.stem] = (folders["pages"] / f"{path.stem}.html").read_text("utf-8")
    return {name: BeautifulSoup(text, "html.parser") for name, text in texts.items()}


@pytest.fixture(params=[(kind, path) for kind in KINDS for path in NOTEBOOKS], ids=lambda p: f"{p[0]}-{p[1].stem}")
def exported(request, documents):
    """A notebook, less the cells that are skipped on slides, and what became of it."""
    kind, path = request.param
    notebook = read(path)
    if kind == "slides":
        notebook.cells = [cell for cell in notebook.cells if export.slide_type(cell) != "skip"]
    return kind, notebook, documents[kind, path.stem]


def outputs(notebook):
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


def prose(notebook):
    return [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]


def test_there_is_one_file_for_each_notebook_and_an_index(folders):
    names = {kind: {path.name for path in folder.iterdir()} for kind, folder in folders.items()}
    assert names["pages"] == {"index.html", *(f"{path.stem}.html" for path in NOTEBOOKS)}
    assert names["slides"] == {"index.html", f"{NOTEBOOKS[0].stem}.slides.html"}


def test_nothing_is_loaded_from_anywhere(documents):
    for name, document in documents.items():
        for tag in document.find_all(True):
            for attribute in ("src", "srcset", "data", "poster"):
                assert tag.get(attribute, "data:").startswith("data:"), (name, tag.name, tag[attribute][:80])
        assert not document.find_all(["link", "iframe", "object", "embed", "base"]), name
        css = "\n".join(style.string for style in document.find_all("style"))
        assert "@import" not in css
        assert set(re.findall(r"url\(\s*['\"]?([a-z]+)", css)) <= {"data"}, name


def test_decks_and_pages_have_their_styles(documents):
    for (kind, name), document in documents.items():
        own = "slides.css" if kind == "slides" and name else "page.css"
        text = (ROOT / "helpers" / "export" / "templates" / own).read_text("utf-8").strip()
        assert text in "\n".join(style.string for style in document.find_all("style")), (kind, name)


def test_the_fonts_of_a_deck_are_what_they_are_called_and_have_its_letters(documents):
    deck = documents["slides", NOTEBOOKS[1].stem]
    styles = "\n".join(style.string for style in deck.find_all("style"))
    rules = re.findall(r'@font-face \{ font-family: "(.+?)";(.*?)src: url\(data:font/woff;base64,(.+?)\)', styles)
    letters = {*map(chr, range(32, 127)), *filter(str.isprintable, deck.body.get_text())}
    wanted = {"Book": "", "Bold": "font-weight: bold;", "Oblique": "font-style: italic;"}
    found = []
    for family, style, data in rules:
        font = TTFont(io.BytesIO(base64.b64decode(data)))
        name, face, file = map(font["name"].getDebugName, (1, 2, 6))
        assert (family, style.strip()) == (name, wanted[face])
        whole = TTFont(f"{get_data_path()}/fonts/ttf/{file}.ttf").getBestCmap()
        assert {chr(code) for code in font.getBestCmap()} >= letters & {chr(code) for code in whole}
        found.append((family, face))
    assert sorted(found) == [(f"DejaVu Sans{mono}", face) for mono in ("", " Mono") for face in sorted(wanted)]


def test_every_figure_is_there_with_its_alt_text(exported):
    _, notebook, document = exported
    stored = [o for o in outputs(notebook) if "image/png" in o.get("data", {})]
    assert [(image["alt"], image["src"].split(",")[1].strip()) for image in document.find_all("img")] == [
        (output.metadata["image/png"]["alt"], output.data["image/png"].strip()) for output in stored
    ]


def test_every_output_and_all_code_is_there(exported):
    _, notebook, document = exported
    text = document.get_text()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert cell.source in text
    for output in outputs(notebook):
        data = output.get("data", {"text/plain": output.get("text")})
        if not {"image/png", "text/html"} & set(data):
            assert data["text/plain"] in text
        elif "text/html" in data:
            assert BeautifulSoup(data["text/html"], "html.parser").get_text() in text
    assert not re.search(r"\b(In|Out)\s?\[\d*\]:", text)


def test_every_formula_is_mathml(exported):
    _, notebook, document = exported
    texts = [re.sub(r"```.*?```|`[^`]*`", "", source, flags=re.DOTALL) for source in prose(notebook)]
    count = sum(len(re.findall(r"\$\$.+?\$\$|\$[^$]+\$", text, re.DOTALL)) for text in texts)
    formulas = document.find_all("math")
    assert len(formulas) == count
    for formula in formulas:
        assert not re.search(r"[\\$]", formula.get_text()), formula  # a command that was not understood


def test_headings_have_ids_of_their_words_and_no_two_the_same():
    text = markdown("## Bytes, *FLOPs* & `x.t()`!\n\n## Bytes, FLOPs & x.t()\n\n### Time")
    found = [(heading.name, heading["id"]) for heading in BeautifulSoup(text, "html.parser").find_all(["h2", "h3"])]
    assert found == [("h2", "bytes-flops-amp-x-t"), ("h2", "bytes-flops-amp-x-t-1"), ("h3", "time")]


def test_without_files_to_link_to_a_link_to_a_notebook_is_text():
    assert markdown("[04](04_flop_counting.ipynb#x) [a](https://example.org/#b)") == (
        '<p>04 <a href="https://example.org/#b">a</a></p>\n'
    )


def test_formulas_have_their_parts():
    text = markdown(r"$$\frac{F}{2^{k}}$$")
    formula = BeautifulSoup(text, "html.parser").math
    assert formula["display"] == "block"
    assert [part.get_text() for part in formula.find("mfrac").find_all(recursive=False)] == ["F", "2k"]
    assert formula.find("msup").get_text() == "2k"


def test_hints_solutions_and_notes_are_folded_where_they_should_be(exported):
    kind, notebook, document = exported
    details = document.find_all("details")
    assert len(details) == sum(source.count("<details>") for source in prose(notebook))
    for fold in details:
        in_notes = kind == "slides" and fold.summary.get_text().startswith("For the teacher")
        assert fold.has_attr("open") == in_notes
        assert bool(fold.find_parent("aside", class_="notes")) == in_notes
    shown = Counter(fold.summary.get_text() for fold in details)
    assert shown["Hint"] == shown["Solution"] == len(exercises(notebook))


def test_a_still_of_an_interactive_view_says_so(exported):
    _, notebook, document = exported
    calls = [cell for cell in notebook.cells if cell.cell_type == "code" and re.search(r"\bexplore\.", cell.source)]
    assert len(document.select("p.interactive")) == len(calls)


def test_links_lead_to_what_was_exported(documents):
    for (kind, stem), document in documents.items():
        for link in document.find_all("a"):
            if link["href"].startswith("https://"):
                continue
            path, _, anchor = unquote(link["href"]).partition("#")
            assert path in ("", "index.html") or path.endswith(".slides.html") == (kind == "slides"), (stem, link)
            target = documents[kind, path.split(".")[0].removeprefix("index") if path else stem]
            assert not anchor or target.find(id=anchor), (stem, link)


def test_links_to_notebooks_that_are_not_exported_are_text(tmp_path):
    export.write("pages", NOTEBOOKS[1:2], tmp_path)
    page = BeautifulSoup((tmp_path / f"{NOTEBOOKS[1].stem}.html").read_text("utf-8"), "html.parser")
    local = {link["href"].split("#")[0] for link in page.find_all("a") if not link["href"].startswith("https://")}
    assert local == {"", "index.html"}
    assert "notebook 00" in page.get_text()


def test_the_index_is_the_table_of_the_readme(documents):
    pattern = r"^\| \[(.+?)\]\(notebooks/(.+?)\.ipynb\) \| (.+?) \| (\d+) \|"
    rows = re.findall(pattern, ROOT.joinpath("README.md").read_text("utf-8"), re.MULTILINE)
    for kind, suffix, expected in (("slides", ".slides.html", rows[:1]), ("pages", ".html", rows)):
        table = documents[kind, ""].tbody
        for row, (title, stem, question, minutes) in zip(table.find_all("tr"), expected, strict=True):
            name, asked, needed = row.find_all("td")
            assert name.a["href"] == stem + suffix
            assert name.get_text().startswith(title)
            assert (asked.get_text(), needed.get_text()) == (question.replace("`", ""), minutes)


def test_pages_are_in_a_chain_and_in_order(documents):
    for number, path in enumerate(NOTEBOOKS):
        page = documents["pages", path.stem]
        for relation, step in (("prev", -1), ("next", 1)):
            hrefs = {link["href"] for link in page.find_all("a", rel=relation)}
            there = 0 <= number + step < len(NOTEBOOKS)
            assert hrefs == ({f"{NOTEBOOKS[number + step].stem}.html"} if there else set())


def test_pages_can_be_read_by_everyone(documents):
    for (kind, stem), page in documents.items():
        assert page.html["lang"] == "en"
        assert page.title.get_text() and page.find("meta", attrs={"name": "viewport"})
        ids = [tag["id"] for tag in page.find_all(id=True)]
        assert len(ids) == len(set(ids))
        if kind == "pages" and stem:
            skip = page.body.find("a")
            assert skip["href"] == "#main" and page.main["id"] == "main"
            levels = [int(heading.name[1]) for heading in page.find_all(re.compile(r"^h\d$"))]
            assert levels[0] == 1 and levels.count(1) == 1
            assert all(after <= before + 1 for before, after in pairwise(levels))
            listed = [link["href"][1:] for link in page.select("nav.contents a")]
            assert listed == [heading["id"] for heading in page.find_all(["h2", "h3"])]
            assert all(th.get_text(strip=True) for th in page.find_all("th"))


def test_pages_need_no_sideways_scrolling_on_a_phone(folders):
    browser.skip(slides.missing())
    with slides.browser() as context:
        page = context.new_page()
        page.set_viewport_size({"width": 400, "height": 800})
        for file in sorted(folders["pages"].iterdir()):
            page.goto(file.as_uri())
            assert page.evaluate("document.documentElement.scrollWidth") == 400, file.name


def test_a_second_export_changes_no_byte(folders, tmp_path):
    export.write("slides", NOTEBOOKS[:1], tmp_path)
    for file in folders["slides"].iterdir():
        assert file.read_bytes() == (tmp_path / file.name).read_bytes()


def cell(text, kind=""):
    return new_markdown_cell(text, metadata={"slideshow": {"slide_type": kind}} if kind else {})


def sections(tmp_path, *cells):
    """The deck of those cells, as lists of slides in lists of sections: their shown texts, fragments in brackets."""
    first = "# 00 A title\n\n**Why?** | 5 minutes |"
    path = tmp_path / "00_x.ipynb"
    nbformat.write(new_notebook(cells=[cell(first, "slide"), *cells]), path)
    deck = BeautifulSoup(export.slides(path), "html.parser")
    for fragment in deck.select(".fragment"):
        fragment.insert(0, "[")
        fragment.append("]")
    for notes in deck.select("aside"):
        notes.replace_with(f"({notes.get_text(strip=True)})")
    shown = deck.select_one(".slides")
    return [
        [" ".join(slide.get_text(" ").split()) for slide in section.find_all("section", recursive=False)]
        for section in shown.find_all("section", recursive=False)
    ][1:]


def test_slide_types_make_sections_slides_and_fragments(tmp_path):
    assert sections(
        tmp_path,
        cell("a", "slide"),
        cell("note", "notes"),
        cell("b"),
        cell("c", "fragment"),
        cell("d"),
        cell("e", "fragment"),
        cell("hidden", "skip"),
        cell("f", "subslide"),
        cell("g", "fragment"),
        cell("h", "subslide"),
        cell("i", "fragment"),
        cell("j", "slide"),
    ) == [["a (note) b [ c d ] [ e ]", "f [ g ]", "h [ i ]"], ["j"]]
    assert sections(tmp_path, cell("a", "slide"), cell("b", "fragment"), cell("note", "notes")) == [["a [ b (note) ]"]]


@pytest.mark.parametrize(
    ("first", "message"),
    [
        ("# 00 A\n\n**Why?** 5 minutes", "the first cell that is shown must have the slide type 'slide'"),
        (
            "# 00 A\n\n**Why $\\left(x$?** 5 minutes",
            r"the formula \\left\(x is not understood: ExtraLeftOrMissingRightError",
        ),
        ("# 00 A", "the first cell must have a title, a question in bold and how many minutes you need"),
    ],
)
def test_a_notebook_that_makes_no_deck_is_named(tmp_path, first, message):
    path = tmp_path / "00_x.ipynb"
    nbformat.write(new_notebook(cells=[cell(first)]), path)
    with pytest.raises(ValueError, match=f"^00_x\\.ipynb: {message}$"):
        export.write("slides", [path], tmp_path / "new")
    assert not (tmp_path / "new").exists()


def command(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["export", *map(str, arguments)])
    main()


def test_the_command_line_writes_the_notebooks_named(monkeypatch, capsys, tmp_path):
    command(monkeypatch, "pages", "--out", tmp_path / "a" / "b", "00", "02")
    names = {path.name for path in (tmp_path / "a" / "b").iterdir()}
    assert names == {"index.html", "00_start_here.html", "02_tensor_storage_and_views.html"}
    assert capsys.readouterr().out == f"2 pages; open {tmp_path / 'a' / 'b' / 'index.html'}\n"
    command(monkeypatch, "pages", "--out", tmp_path / "a" / "b", "01")  # what an export wrote may be written again


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["pages", "09"], "there is no notebook 09; there are 00, 01, 02"),
        (["book"], "invalid choice: 'book'"),
    ],
)
def test_bad_arguments_are_named(monkeypatch, capsys, tmp_path, arguments, message):
    with pytest.raises(SystemExit, match="2"):
        command(monkeypatch, "--out", tmp_path / "new", *arguments)
    assert message in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_the_folder_must_be_given(monkeypatch, capsys):
    with pytest.raises(SystemExit, match="2"):
        command(monkeypatch, "pages")
    assert "required: --out" in capsys.readouterr().err


def test_where_there_is_no_notebook_the_message_says_none(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("helpers.export.__main__.NOTEBOOKS", [])
    with pytest.raises(SystemExit, match="2"):
        command(monkeypatch, "pages", "--out", tmp_path / "new", "01")
    assert "there is no notebook 01; there are none" in capsys.readouterr().err


def test_the_command_line_explains_its_arguments(monkeypatch, capsys):
    with pytest.raises(SystemExit, match="0"):
        command(monkeypatch, "--help")
    words = " ".join(capsys.readouterr().out.split())
    assert words.startswith("usage: python -m helpers.export [-h] --out DIR {slides,pages} [NN ...]")
    for explained in (
        "{slides,pages} decks of slides with notes for the speaker, or pages to read",
        "NN notebook numbers, such as 01; default: all",
        "--out DIR the folder to write to",
    ):
        assert explained in words


@pytest.mark.parametrize("other", ["notes.txt", "01_float_formats.slides.html"])
def test_a_folder_with_other_things_is_left_alone(monkeypatch, capsys, tmp_path, other):
    (tmp_path / other).write_text("mine")
    for out in (tmp_path, tmp_path / other):
        with pytest.raises(SystemExit, match="2"):
            command(monkeypatch, "pages", "--out", out)
        assert f"{out} exists and holds other things; name a new folder" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == [other]
    assert (tmp_path / other).read_text() == "mine"


@pytest.mark.parametrize(("kind", "absent"), [("slides", "sphinx_revealjs"), ("pages", "latex2mathml")])
def test_a_missing_package_is_named_with_the_command_that_installs_it(monkeypatch, capsys, tmp_path, kind, absent):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == absent else find(name))
    with pytest.raises(SystemExit, match="2"):
        command(monkeypatch, kind, "--out", tmp_path / "new")
    error = capsys.readouterr().err
    assert f"{absent.replace('_', '-')} not installed" in error and "-e '.[teach]'" in error
    assert not (tmp_path / "new").exists()


def test_the_extra_has_what_the_export_needs():
    extras = tomllib.loads(ROOT.joinpath("pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert {"sphinx-revealjs", "latex2mathml"} <= {pin.split("==")[0] for pin in extras["teach"]}
