"""A page, a deck of slides and a start page: whole files with all they need in them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
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
from helpers.export.cells import for_page, for_slides

HERE = Path(__file__).resolve().parent
NOTEBOOKS = sorted((HERE.parent.parent / "notebooks").glob("[0-9][0-9]_*.ipynb"))


class Renderer(IPythonRenderer):
    """Markdown for a file that stands alone: formulas as MathML, links only to what is exported with it.

    `names` are the files that notebooks become, by the name of the notebook; links to others become plain text.
    """

    def __init__(self, names: dict[str, str]) -> None:
        super().__init__(escape=False)
        self.names = names
        self.headings: list[tuple[int, str, str]] = []  # level, id, HTML

    def heading(self, text: str, level: int, **attrs: Any) -> str:
        """With an id, for the table of contents."""
        anchor = re.sub(r"\W+", "-", re.sub(r"<[^>]+>", "", text).lower()).strip("-")
        self.headings.append((level, anchor, text))
        return f'<h{level} id="{anchor}">{text}</h{level}>\n'

    def link(self, text: str, url: str, title: str | None = None) -> str:
        """To the file that a notebook becomes, or nowhere."""
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


class Document(HTMLExporter):
    """nbconvert's HTML exporter with the templates of this folder."""

    def __init__(self, names: dict[str, str]) -> None:
        # The folder of the templates is found by its name in the folder of this file.
        super().__init__(extra_template_basedirs=[str(HERE)], template_name="templates", template_file="cells.html.j2")
        self.renderer = Renderer(names)
        self.register_filter("live", explore.live)

    @pass_context
    def markdown2html(self, context: Any, source: str) -> str:
        """The filter of nbconvert that its templates call."""
        return MarkdownWithMath(renderer=self.renderer).render(source)

    def fill(self, template: str, notebook: NotebookNode | None = None, **values: Any) -> str:
        """A template filled; the notebook's cells are its `body`."""
        if notebook is not None:
            values["body"], _ = self.from_notebook_node(notebook)
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


def document(kind: str, path: Path, names: dict[str, str], notes: bool = False, **around: Any) -> str:
    """One notebook as a page, or as a deck with notes for the speaker. ValueError if its cells make no deck.

    `names` are the files that notebooks become, as for `Renderer`; `around` is what else the template wants: `title`,
    and for a page the lessons `previous` and `next`.
    """
    notebook = nbformat.read(path, as_version=4)
    if kind == "pages":
        return Document(names).fill("page.html.j2", for_page(notebook, notes), **around)
    return Document(names).fill("slides.html.j2", for_slides(notebook), reveal=_reveal(), **around)


def _reveal() -> dict[str, str]:
    """What a deck needs of reveal.js: its style, its script, and the plugin for the speaker's view."""
    folder = files("pyreveal") / "revealjs" / "dist"  # the package is not imported: its reveal.js is all that is used
    parts = {"css": "reveal.css", "js": "reveal.js", "notes": "plugin/notes.js"}
    texts = {key: (folder / name).read_text("utf-8") for key, name in parts.items()}
    # The plugin holds the page of the speaker's window as a string, and its </script> must not end ours.
    return {key: text.replace("</script", "<\\/script") for key, text in texts.items()}


def write(kind: str, notebooks: Iterable[Path], out: Path, notes: bool = False) -> list[Path]:
    """Write pages or slides with their start page, the last one, into a folder, and return the files."""
    lessons = [lesson(path, kind) for path in notebooks]
    names = {one.path.name: one.file for one in lessons}
    out.mkdir(parents=True, exist_ok=True)
    for place, one in enumerate(lessons):
        previous = lessons[place - 1] if place > 0 else None
        following = lessons[place + 1] if place + 1 < len(lessons) else None
        text = document(kind, one.path, names, notes, title=one.title, previous=previous, next=following)
        (out / one.file).write_text(text, encoding="utf-8")
    start = out / "index.html"
    start.write_text(_start_page(kind, lessons), encoding="utf-8")
    return [*(out / one.file for one in lessons), start]


def _start_page(kind: str, lessons: list[Lesson]) -> str:
    """The page with the living block card of one model, and the list of lessons below it."""
    card, _ = explore.block_card("Llama 3 8B", batch=1, tokens=8192, asked=False)._repr_mimebundle_()
    return Document({}).fill("index.html.j2", card=explore.live({"data": card}), kind=kind, lessons=lessons)
