"""A page, a deck of slides and a start page: whole files with all they need in them."""

import re
from base64 import b64encode
from collections.abc import Iterable
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

from helpers import draw, explore, model
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
        values |= {"body": notebook and self.from_notebook_node(notebook)[0], "headings": self.renderer.headings}
        # On the backgrounds of the course these two styles of code have a contrast of 4.5 or more.
        styles = {name: HtmlFormatter(style=name).get_style_defs(".highlight") for name in ("xcode", "one-dark")}
        return self.environment.get_template(template).render(code=styles, **values)


def lesson(path: Path, kind: str) -> dict[str, str]:
    """The file that a notebook becomes, and what it opens with: title, question, minutes; else ValueError."""
    opening = nbformat.read(path, as_version=4).cells[0].source
    found = re.search(r"^# (?P<title>.+)\n+\*\*(?P<question>.+?)\*\*[\s\S]*?\b(?P<minutes>\d+) minutes", opening)
    if not found:
        raise ValueError(f"{path.name} must open with a title, a question in bold and how many minutes you need")
    return found.groupdict() | {"file": f"{path.stem}.slides.html" if kind == "slides" else f"{path.stem}.html"}


def document(kind: str, path: Path, names: dict[str, str], notes: bool = False, **around: Any) -> str:
    """One notebook as a page, or as a deck with notes for the speaker. ValueError if its cells make no deck."""
    notebook = nbformat.read(path, as_version=4)
    if kind == "pages":
        return Document(names).fill("page.html.j2", for_page(notebook, notes), **around)
    folder = files("pyreveal") / "revealjs" / "dist"  # the package is not imported: its reveal.js is all that is used
    parts = {"css": "reveal.css", "js": "reveal.js", "notes": "plugin/notes.js"}
    # The plugin holds the page of the speaker's window as a string, and its </script> must not end ours.
    reveal = {key: (folder / name).read_text("utf-8").replace("</script", "<\\/script") for key, name in parts.items()}
    return Document(names).fill("slides.html.j2", for_slides(notebook), reveal=reveal, **around)


def write(kind: str, notebooks: Iterable[Path], out: Path, notes: bool = False) -> list[Path]:
    """Write pages or slides with their start page, the last one, into a folder, and return the files."""
    lessons = {path: lesson(path, kind) for path in notebooks}
    names = {path.name: one["file"] for path, one in lessons.items()}
    out.mkdir(parents=True, exist_ok=True)
    order = [None, *lessons.values(), None]
    for path, before, one, after in zip(lessons, order, order[1:], order[2:], strict=False):
        around = {"title": one["title"], "previous": before, "next": after}
        (out / one["file"]).write_text(document(kind, path, names, notes, **around), encoding="utf-8")
    card = draw.block(model.MODELS["Llama 3 8B"], 1, 8192)
    page = {"card": {"png": b64encode(card.png()).decode(), "alt": card.alt}, "kind": kind, "lessons": lessons.values()}
    (out / "index.html").write_text(Document(names).fill("index.html.j2", **page), encoding="utf-8")
    return [out / name for name in [*names.values(), "index.html"]]
