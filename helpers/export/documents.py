"""A deck of slides and a page to read: whole files with all they need in them."""

import base64
import importlib.util
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from jinja2 import Environment, FileSystemLoader
from nbformat import NotebookNode
from pygments.formatters import HtmlFormatter

from helpers.export.cells import HERE, Cells, markdown
from helpers.export.talk import stage

_TEMPLATES = HERE / "templates"


@dataclass(frozen=True)
class Entry:
    """What links and the index say of a notebook: its file, its title, the question it opens with, the minutes."""

    file: str
    title: str
    question: str
    minutes: int


def entry(path: Path, kind: str) -> Entry:
    """What the first cell of a notebook says of it, in the form that the course gives that cell; else ValueError."""
    opening = nbformat.read(path, as_version=4).cells[0].source
    found = [re.search(pattern, opening) for pattern in (r"^# (.+)", r"\*\*(.+?)\*\*", r"(\d+) minutes")]
    if None in found:
        raise ValueError("the first cell must have a title, a question in bold and how many minutes you need")
    title, question, minutes = (match[1] for match in found)
    question = markdown(question).removeprefix("<p>").removesuffix("</p>\n")
    return Entry(file_name(path, kind), title, question, int(minutes))


def file_name(path: Path, kind: str) -> str:
    """The name of what a notebook becomes."""
    return f"{path.stem}.slides.html" if kind == "slides" else f"{path.stem}.html"


def _read(path: Path) -> NotebookNode:
    """The notebook, with a mark on the cells whose picture stands for an interactive view."""
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        cell.metadata.interactive = cell.cell_type == "code" and bool(re.search(r"\bexplore\.\w+\(", cell.source))
    return notebook


def fill(name: str, **values: Any) -> str:
    """A template that is no notebook, filled."""
    return Environment(loader=FileSystemLoader(_TEMPLATES), trim_blocks=True).get_template(name).render(**values)


def css(name: str) -> str:
    """A style sheet of the templates."""
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def _reveal() -> dict[str, str]:
    """reveal.js with its plugin for notes, as the package sphinx-revealjs carries it; Sphinx itself is not loaded."""
    folder = Path(importlib.util.find_spec("sphinx_revealjs").origin).parent / "_static" / "revealjs"
    files = {"css": "dist/reveal.css", "js": "dist/reveal.js", "notes": "plugin/notes/notes.js"}
    # The plugin holds the page of the speaker's window as a string, and its </script> must not end ours.
    return {key: (folder / name).read_text("utf-8").replace("</script", "<\\/script") for key, name in files.items()}


def _fonts(characters: Iterable[str]) -> str:
    """CSS with DejaVu, which comes with matplotlib, cut down to those characters.

    So the lines of a slide break alike on every machine, and a slide that fits here fits there.
    """
    from fontTools import subset
    from matplotlib import get_data_path

    rules = []
    for family, file, style in (
        ("DejaVu Sans", "DejaVuSans", ""),
        ("DejaVu Sans", "DejaVuSans-Bold", "font-weight: bold;"),
        ("DejaVu Sans", "DejaVuSans-Oblique", "font-style: italic;"),
        ("DejaVu Sans Mono", "DejaVuSansMono", ""),
        ("DejaVu Sans Mono", "DejaVuSansMono-Bold", "font-weight: bold;"),
        ("DejaVu Sans Mono", "DejaVuSansMono-Oblique", "font-style: italic;"),
    ):
        options = subset.Options(flavor="woff", drop_tables=[*subset.Options().drop_tables, "FFTM"])
        font = subset.load_font(f"{get_data_path()}/fonts/ttf/{file}.ttf", options)
        cutter = subset.Subsetter(options)
        cutter.populate(unicodes=sorted(map(ord, characters)))
        cutter.subset(font)
        subset.save_font(font, stored := io.BytesIO(), options)
        data = base64.b64encode(stored.getvalue()).decode()
        rules.append(f'@font-face {{ font-family: "{family}"; {style} src: url(data:font/woff;base64,{data}); }}')
    return "\n".join(rules) + "\n"


def _style(name: str) -> str:
    """CSS for highlighted code. On the backgrounds of the course the two styles used have a contrast of 4.5 or more."""
    return HtmlFormatter(style=name).get_style_defs(".highlight")


def slides(path: Path, files: dict[str, str] | None = None) -> str:
    """One notebook as a deck of slides: an HTML page with all it needs in it.

    files are the files that links may lead to, by the notebook they come from. ValueError where the slide types make
    no deck.
    """
    cells = Cells(files or {})
    body, _ = cells.from_notebook_node(stage(_read(path)))
    letters = {chr(code) for code in range(32, 127)} | {letter for letter in body if ord(letter) > 126}
    return fill(
        "slides.html.j2",
        title=entry(path, "slides").title,
        body=body,
        reveal=_reveal(),
        fonts=_fonts(letters),
        code_css=_style("xcode"),
        css=css("slides.css"),
    )


def page(path: Path, files: dict[str, str] | None = None, around: Sequence[Entry | None] = (None, None)) -> str:
    """One notebook as a page to read: HTML with all it needs in it.

    files are the files that links may lead to, by the notebook they come from; around: the notebooks before and after.
    """
    cells = Cells(files or {})
    body, _ = cells.from_notebook_node(_read(path))
    return fill(
        "page.html.j2",
        title=entry(path, "pages").title,
        body=body,
        headings=cells.renderer.headings,
        previous=around[0],
        next=around[1],
        code_css=_style("xcode"),
        code_css_dark=_style("one-dark"),
        css=css("page.css"),
    )
