"""The course as slides or as pages, for where no JupyterLab is: `python -m helpers.export slides --out DIR [NN ...]`.

Nothing is run: what is shown are the stored outputs. Each file that is written stands alone: it opens from a disk,
without a network, in any current browser. Needs the extra `teach`.
"""

import argparse
import base64
import importlib.util
import io
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

import nbformat
from jinja2 import Environment, FileSystemLoader, pass_context
from nbconvert import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbformat import NotebookNode
from pygments.formatters import HtmlFormatter

_HERE = Path(__file__).resolve().parent
_TEMPLATES = _HERE / "templates"
NOTEBOOKS = sorted((_HERE.parent / "notebooks").glob("[0-9][0-9]_*.ipynb"))
_WHAT = {
    "slides": "Each deck opens in this browser, without a network. S opens the speaker's view, ? lists all keys.",
    "pages": "These pages show the course as it was run. To predict, run and check yourself, open it in JupyterLab.",
}
_CHARACTERS = 95  # in a line of prose on a slide
SLIDE_TYPES = ("slide", "subslide", "fragment", "notes", "skip")


def slide_type(cell: NotebookNode) -> str:
    """The slide type of a cell: one of SLIDE_TYPES, or "" where the cell goes on with the slide above it."""
    return cell.metadata.get("slideshow", {}).get("slide_type", "")


def _height(cell: NotebookNode) -> float:
    """About how many px a cell takes on a slide, code with its outputs; slides.css has the sizes."""
    if slide_type(cell) == "notes":
        return 0
    if cell.cell_type == "markdown":
        parts = [part.splitlines() for part in cell.source.split("\n\n")]
        return sum(12 + 30.8 * sum(math.ceil(len(line) / _CHARACTERS) for line in part) for part in parts)
    return 22 + 23.4 * len(cell.source.splitlines()) + _shown(cell)


def _shown(cell: NotebookNode) -> float:
    """About how many px the outputs of a code cell take."""
    height = 0.0
    for output in cell.outputs:
        data = output.get("data", {"text/plain": output.get("text", "")})
        if "image/png" in data:
            tall = int.from_bytes(base64.b64decode(data["image/png"])[20:24])  # of the header of a PNG
            height += 12 + min(400, tall)
        elif rows := data.get("text/html", "").count("<tr"):
            height += 12 + 32.4 * rows
        else:
            height += 12 + 23.4 * len(data.get("text/plain", "").splitlines())
    return height


def _read(path: Path) -> NotebookNode:
    """The notebook, with a mark on the cells whose picture stands for an interactive view."""
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        cell.metadata.interactive = cell.cell_type == "code" and bool(re.search(r"\bexplore\.\w+\(", cell.source))
    return notebook


def stage(notebook: NotebookNode) -> NotebookNode:
    """The notebook as reveal.js wants it, changed in place: sections of slides, fragments in them, notes aside.

    Every cell gets the tags that go before, between (code and outputs) and after it; cells to skip are gone. A cell
    that alone is too tall for a slide shows its outputs on the next one, and so does one with a picture where the
    slide is too tall with what follows: that speaks of the picture. ValueError where the first cell starts no slide.
    """
    notebook.cells = cells = [cell for cell in notebook.cells if slide_type(cell) != "skip"]
    if not cells or slide_type(cells[0]) != "slide":
        raise ValueError("the first cell that is shown must have the slide type 'slide'")
    fragment, end = "", ""  # what would close the fragment and the sections that are open
    above = 0.0  # px of the slide that are taken
    for index, cell in enumerate(cells):
        before, between, after = "", "", ""
        if slide_type(cell) in ("slide", "subslide"):
            above = 0
        match slide_type(cell):
            case "slide":
                before, fragment, end = fragment + end + "<section><section>", "", "</section></section>"
            case "subslide":
                before, fragment = fragment + "</section><section>", ""
            case "fragment":
                before, fragment = fragment + '<div class="fragment">', "</div>"
            case "notes":
                before, after = '<aside class="notes">', "</aside>"
                cell.source = cell.source.replace("<details>", "<details open>", 1)
        if cell.cell_type == "code":
            rest = takewhile(lambda following: slide_type(following) not in ("slide", "subslide"), cells[index + 1 :])
            pictured = any("image/png" in output.get("data", {}) for output in cell.outputs)
            whole = above + _height(cell) + sum(map(_height, rest)) if pictured else _height(cell)
            if whole > 640:
                between, fragment, above = fragment + "</section><section>", "", _shown(cell) - _height(cell)
        above += _height(cell)
        cell.metadata.update(before=before, between=between, after=after)
    cells[-1].metadata.after += fragment + end
    return notebook


class _Renderer(IPythonRenderer):
    """Markdown for a file that stands alone: formulas as MathML, headings with ids, links among what is exported.

    files are the files to link to, by the notebook that they come from; links to others become plain text.
    """

    def __init__(self, files: dict[str, str]) -> None:
        super().__init__(escape=False, exclude_anchor_links=True)
        self._files = files
        self.headings: list[tuple[int, str, str]] = []  # level, id, HTML

    def heading(self, text: str, level: int, **attrs: Any) -> str:
        slug = re.sub(r"\W+", "-", re.sub(r"<[^>]+>", "", text).lower()).strip("-")
        taken = {anchor for _, anchor, _ in self.headings}
        anchor = slug if slug not in taken else f"{slug}-{len(taken)}"
        self.headings.append((level, anchor, text))
        return f'<h{level} id="{anchor}">{text}</h{level}>\n'

    def link(self, text: str, url: str, title: str | None = None) -> str:
        path, mark, anchor = url.partition("#")
        if not path.endswith(".ipynb"):
            return super().link(text, url, title)
        return super().link(text, self._files[path] + mark + anchor, title) if path in self._files else text

    def table(self, text: str) -> str:
        # The table at the top of a notebook has an empty head, which a screen reader would announce.
        text = re.sub(r"<thead>\s*<tr>(\s*<th[^>]*>\s*</th>)+\s*</tr>\s*</thead>", "", text)
        return f'<div class="wide"><table>\n{text}</table></div>\n'

    def inline_math(self, body: str) -> str:
        return _mathml(body, "inline")

    def block_math(self, body: str) -> str:
        return _mathml(body, "block")


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
    return Entry(_file(path, kind), title, _markdown(question).removeprefix("<p>").removesuffix("</p>\n"), int(minutes))


def _file(path: Path, kind: str) -> str:
    """The name of what a notebook becomes."""
    return f"{path.stem}.slides.html" if kind == "slides" else f"{path.stem}.html"


def _markdown(source: str, renderer: _Renderer | None = None) -> str:
    return MarkdownWithMath(renderer=renderer or _Renderer({})).render(source)


def _mathml(body: str, display: str) -> str:
    from latex2mathml.converter import convert

    try:
        return convert(body.strip(), display=display)
    except Exception as error:  # latex2mathml has a class for each mistake, and no common one
        raise ValueError(f"the formula {body} is not understood: {type(error).__name__}") from error


class _Cells(HTMLExporter):
    """nbconvert's HTML exporter with the course's template of cells and its renderer of markdown."""

    def __init__(self, files: dict[str, str]) -> None:
        # The template's folder is found by its name in the folder of this file.
        super().__init__(extra_template_basedirs=[str(_HERE)], template_name="templates", template_file="cells.html.j2")
        self.renderer = _Renderer(files)

    @pass_context
    def markdown2html(self, context: Any, source: str) -> str:
        return _markdown(source, self.renderer)


def _shell(name: str, **values: Any) -> str:
    """A template that is no notebook, filled."""
    return Environment(loader=FileSystemLoader(_TEMPLATES), trim_blocks=True).get_template(name).render(**values)


def _css(name: str) -> str:
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
    cells = _Cells(files or {})
    body, _ = cells.from_notebook_node(stage(_read(path)))
    letters = {chr(code) for code in range(32, 127)} | {letter for letter in body if ord(letter) > 126}
    return _shell(
        "slides.html.j2",
        title=entry(path, "slides").title,
        body=body,
        reveal=_reveal(),
        fonts=_fonts(letters),
        code_css=_style("xcode"),
        css=_css("slides.css"),
    )


def page(path: Path, files: dict[str, str] | None = None, around: Sequence[Entry | None] = (None, None)) -> str:
    """One notebook as a page to read: HTML with all it needs in it.

    files are the files that links may lead to, by the notebook they come from; around: the notebooks before and after.
    """
    cells = _Cells(files or {})
    body, _ = cells.from_notebook_node(_read(path))
    return _shell(
        "page.html.j2",
        title=entry(path, "pages").title,
        body=body,
        headings=cells.renderer.headings,
        previous=around[0],
        next=around[1],
        code_css=_style("xcode"),
        code_css_dark=_style("one-dark"),
        css=_css("page.css"),
    )


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """A complaint about a notebook says which."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{path.name}: {error}") from error


def export(kind: str, notebooks: Sequence[Path], out: Path) -> list[Path]:
    """Write decks or pages and their index into a folder, and return the files; all or, where one fails, none.

    ValueError where the folder holds anything that such an export does not write, or a notebook is not as it must be.
    """
    index = out / "index.html"
    files = {path.name: _file(path, kind) for path in notebooks}
    ours = {index.name, *(_file(path, kind) for path in NOTEBOOKS)}
    if out.exists() and (not out.is_dir() or {path.name for path in out.iterdir()} - ours):
        raise ValueError(f"{out} exists and holds other things; name a new folder")
    written, entries = {}, []
    for path in notebooks:
        with _naming(path):
            entries.append(entry(path, kind))
    for path, before, after in zip(notebooks, [None, *entries], [*entries[1:], None], strict=False):
        with _naming(path):
            html = slides(path, files) if kind == "slides" else page(path, files, (before, after))
        written[out / files[path.name]] = html
    written[index] = _shell("index.html.j2", entries=entries, what=_WHAT[kind], css=_css("page.css"))
    out.mkdir(parents=True, exist_ok=True)
    for file, html in written.items():
        file.write_text(html, encoding="utf-8")
    return list(written)


def missing(kind: str) -> list[str]:
    """The packages that such an export needs and that are not installed, as pip calls them."""
    needed = ["latex2mathml"] + ["sphinx_revealjs"] * (kind == "slides")
    return [name.replace("_", "-") for name in needed if not importlib.util.find_spec(name)]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m helpers.export", description=__doc__)
    parser.add_argument("kind", choices=_WHAT, help="decks of slides with notes for the speaker, or pages to read")
    parser.add_argument("numbers", nargs="*", metavar="NN", help="notebook numbers, such as 01; default: all")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the folder to write to")
    arguments = parser.parse_intermixed_args()
    known = {path.name[:2]: path for path in NOTEBOOKS}
    for number in arguments.numbers:
        if number not in known:
            parser.error(f"there is no notebook {number}; there are {', '.join(known) or 'none'}")
    if names := missing(arguments.kind):
        parser.error(
            f"{' and '.join(names)} not installed; run: python -m pip install -r requirements.txt -e '.[teach]'"
        )
    try:
        written = export(
            arguments.kind, [known[number] for number in sorted(set(arguments.numbers)) or known], arguments.out
        )
    except ValueError as error:
        parser.error(str(error))
    print(f"{len(written) - 1} {arguments.kind}; open {written[-1]}")


if __name__ == "__main__":
    main()
