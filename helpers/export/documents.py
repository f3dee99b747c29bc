"""A page, a deck of slides and a start page: whole files with all they need in them."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import nbformat
from jinja2 import pass_context
from latex2mathml.converter import convert
from nbconvert import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbformat import NotebookNode
from pygments.formatters import HtmlFormatter

from helpers import explore
from helpers.export.cells import for_page
from helpers.export.glossary import Term, as_notebook, glossary, pattern
from helpers.export.slides import for_slides

HERE = Path(__file__).resolve().parent
GLOSSARY = "glossary.html"
NOTEBOOKS = sorted((HERE.parent.parent / "notebooks").glob("[0-9][0-9]_*.ipynb"))


class Renderer(IPythonRenderer):
    """Markdown for a file that stands alone: formulas as MathML, links only to what is exported with it.

    `names` are the files that notebooks become, by the name of the notebook; links to others become plain text. `terms`
    are the words of the glossary: where `notebook` explains one it can be linked to, and its first use in any other
    section is linked to the glossary and brings its sentence along.
    """

    def __init__(self, names: dict[str, str], terms: dict[str, Term], notebook: str = "") -> None:
        super().__init__(escape=False)
        self.names, self.terms, self.notebook = names, terms, notebook
        self.pattern = pattern(terms)
        self.defined: set[str] = set()  # anchors of words that are explained above
        self.used: set[str] = set()  # words in this section
        self.headings: list[tuple[int, str, str]] = []  # level, id, HTML
        self.texts: list[str] = [""]  # what can be searched: before the first heading, and below each

    def heading(self, text: str, level: int, **attrs: Any) -> str:
        """With an id, for the table of contents."""
        text = _unlinked(text)
        plain = re.sub(r"<[^>]+>", "", text)
        anchor = re.sub(r"\W+", "-", plain.lower()).strip("-")
        self.headings.append((level, anchor, text))
        self.texts[-1] = self.texts[-1].removesuffix(plain)
        self.texts.append("")
        self.used.clear()
        return f'<h{level} id="{anchor}">{text}</h{level}>\n'

    def text(self, text: str) -> str:
        """With the words of the glossary."""
        self.texts[-1] += text
        return self.pattern.sub(self._explained, super().text(text))

    def paragraph(self, text: str) -> str:
        """A space after it, for the search."""
        self.texts[-1] += " "
        return super().paragraph(text)

    def block_text(self, text: str) -> str:
        """An entry of a list."""
        self.texts[-1] += " "
        return super().block_text(text)

    def codespan(self, text: str) -> str:
        """Code within a line."""
        self.texts[-1] += text
        return super().codespan(text)

    def _explained(self, found: re.Match[str]) -> str:
        term = self.terms[found[1].lower()]
        if term.word in self.used:
            return found[1]
        self.used.add(term.word)
        place = f"{GLOSSARY}#{term.anchor.removeprefix('word-')}"
        return f'<a class="term" href="{place}" data-says="{escape(term.plain)}">{found[1]}</a>'

    def strong(self, text: str) -> str:
        """In bold."""
        return super().strong(self._defined(text))

    def emphasis(self, text: str) -> str:
        """In italics."""
        return super().emphasis(self._defined(text))

    def _defined(self, text: str) -> str:
        """A word in bold or italics: where its notebook explains it, with an id."""
        text = _unlinked(text)
        term = self.terms.get(text.lower())
        if term is None or term.notebook != self.notebook or term.anchor in self.defined:
            return text
        self.used.add(term.word)
        self.defined.add(term.anchor)
        return f'<dfn id="{term.anchor}">{text}</dfn>'

    def link(self, text: str, url: str, title: str | None = None) -> str:
        """To the file that a notebook becomes, or nowhere."""
        text = _unlinked(text)
        path, mark, anchor = url.partition("#")
        if path.endswith(".ipynb") and path not in self.names:
            return text
        return super().link(text, self.names.get(path, path) + mark + anchor, title)

    def inline_math(self, body: str) -> str:
        """Within a line."""
        return convert(body.strip())

    def block_math(self, body: str) -> str:
        """On a line of its own."""
        return convert(body.strip(), display="block")


def _unlinked(html: str) -> str:
    """The text without its links to the glossary."""
    return re.sub(r'<a class="term"[^>]*>(.*?)</a>', r"\1", html)


class Document(HTMLExporter):
    """nbconvert's HTML exporter with the templates of this folder, for one notebook; `names` and `terms` as above."""

    def __init__(self, names: dict[str, str], terms: dict[str, Term] | None = None, notebook: str = "") -> None:
        # The folder of the templates is found by its name in the folder of this file.
        super().__init__(extra_template_basedirs=[str(HERE)], template_name="templates", template_file="cells.html.j2")
        self.renderer = Renderer(names, terms or {}, notebook)
        self.register_filter("live", explore.live)

    @pass_context
    def markdown2html(self, context: Any, source: str) -> str:
        """The filter of nbconvert that its templates call."""
        return MarkdownWithMath(renderer=self.renderer).render(source)

    def body(self, notebook: NotebookNode) -> str:
        """The cells of a notebook."""
        return self.from_notebook_node(notebook)[0]

    @property
    def sections(self) -> list[tuple[str, str, str]]:
        """What can be searched: the anchor, the heading and the text of each section."""
        plain = [(anchor, re.sub(r"<[^>]+>", "", heading)) for _, anchor, heading in self.renderer.headings]
        return [(*place, " ".join(text.split())) for place, text in zip(plain, self.renderer.texts[1:], strict=True)]

    def fill(self, template: str, **values: Any) -> str:
        """A template filled."""
        # On the backgrounds of the course these two styles of code have a contrast of 4.5 or more.
        styles = {name: HtmlFormatter(style=name).get_style_defs(".highlight") for name in ("xcode", "one-dark")}
        return self.environment.get_template(template).render(code=styles, headings=self.renderer.headings, **values)


@dataclass(frozen=True)
class Lesson:
    """A notebook, what it opens with, and the name of the file that it becomes."""

    path: Path
    title: str
    question: str
    minutes: str
    file: str


def lesson(path: Path, kind: str) -> Lesson:
    """The lesson in a notebook. ValueError where it does not open as the course's notebooks do."""
    opening = nbformat.read(path, as_version=4).cells[0].source
    found = re.search(r"^# (?P<title>.+)\n+\*\*(?P<question>.+?)\*\*[\s\S]*?\b(?P<minutes>\d+) minutes", opening)
    if not found:
        raise ValueError(f"{path.name} must open with a title, a question in bold and how many minutes you need")
    ending = ".slides.html" if kind == "slides" else ".html"
    return Lesson(path, found["title"], found["question"], found["minutes"], path.stem + ending)


def deck(path: Path, names: dict[str, str], title: str) -> str:
    """One notebook as a deck with notes for the speaker; `names` as for `Renderer`. ValueError if it makes none."""
    made = Document(names)
    body = made.body(for_slides(nbformat.read(path, as_version=4)))
    return made.fill("slides.html.j2", body=body, reveal=_reveal(), title=title)


def _reveal() -> dict[str, str]:
    """What a deck needs of reveal.js: its style, its script, and the plugin for the speaker's view."""
    folder = files("pyreveal") / "revealjs" / "dist"  # the package is not imported: its reveal.js is all that is used
    parts = {"css": "reveal.css", "js": "reveal.js", "notes": "plugin/notes.js"}
    texts = {key: (folder / name).read_text("utf-8") for key, name in parts.items()}
    # The plugin holds the page of the speaker's window as a string, and its </script> must not end ours.
    return {key: text.replace("</script", "<\\/script") for key, text in texts.items()}


def pages(lessons: list[Lesson], notes: bool = False) -> dict[str, str]:
    """The pages by the names of their files: those of the lessons, the glossary and the start page."""
    terms = glossary(one.path for one in lessons)
    names = {one.path.name: one.file for one in lessons}
    notebooks = [for_page(nbformat.read(one.path, as_version=4), notes) for one in lessons]
    words = Lesson(Path(GLOSSARY), "Glossary", "", "", GLOSSARY)
    made: list[tuple[Lesson, Document, str]] = []
    for one, notebook in [*zip(lessons, notebooks, strict=True), (words, as_notebook(terms))]:
        document = Document(names, {} if one is words else terms, one.path.name)
        made.append((one, document, document.body(notebook)))
    found = [{"file": one.file, "title": one.title, "sections": document.sections} for one, document, _ in made]
    index = json.dumps(found, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    filled = {}
    for place, (one, document, body) in enumerate(made):
        previous = made[place - 1][0] if place > 0 else None
        following = lessons[place + 1] if place + 1 < len(lessons) else None
        filled[one.file] = document.fill(
            "page.html.j2", body=body, lesson=one, previous=previous, next=following, index=index
        )
    return filled | {"index.html": _start_page("pages", lessons, index)}


def write(kind: str, notebooks: Iterable[Path], out: Path, notes: bool = False) -> list[Path]:
    """Write pages or slides with their start page, the last one, into a folder, and return the files."""
    lessons = [lesson(path, kind) for path in notebooks]
    if kind == "pages":
        texts = pages(lessons, notes)
    else:
        names = {one.path.name: one.file for one in lessons}
        texts = {one.file: deck(one.path, names, one.title) for one in lessons}
        texts["index.html"] = _start_page(kind, lessons)
    out.mkdir(parents=True, exist_ok=True)
    for file, text in texts.items():
        (out / file).write_text(text, encoding="utf-8")
    return [out / file for file in texts]


def _start_page(kind: str, lessons: list[Lesson], index: str = "") -> str:
    """The page with the living block card of one model, and the list of lessons below it."""
    card, _ = explore.block_card("Llama 3 8B", batch=1, tokens=8192, asked=False)._repr_mimebundle_()
    live = explore.live({"data": card})
    return Document({}).fill("index.html.j2", card=live, kind=kind, lessons=lessons, index=index)
