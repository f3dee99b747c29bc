"""The cells of a notebook as HTML: nbconvert with the course's templates and its own renderer of markdown."""

import re
from pathlib import Path
from typing import Any

from jinja2 import pass_context
from nbconvert import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

HERE = Path(__file__).resolve().parent


class Renderer(IPythonRenderer):
    """Markdown for a file that stands alone: formulas as MathML, headings with ids, links among what is exported.

    files are the files to link to, by the notebook that they come from; links to others become plain text.
    """

    def __init__(self, files: dict[str, str]) -> None:
        super().__init__(escape=False)
        self._files = files
        self.headings: list[tuple[int, str, str]] = []  # level, id, HTML

    def heading(self, text: str, level: int, **attrs: Any) -> str:
        """With an id, for the table of contents."""
        slug = re.sub(r"\W+", "-", re.sub(r"<[^>]+>", "", text).lower()).strip("-")
        taken = {anchor for _, anchor, _ in self.headings}
        anchor = slug if slug not in taken else f"{slug}-{len(taken)}"
        self.headings.append((level, anchor, text))
        return f'<h{level} id="{anchor}">{text}</h{level}>\n'

    def link(self, text: str, url: str, title: str | None = None) -> str:
        """To the file that a notebook becomes, or nowhere."""
        path, mark, anchor = url.partition("#")
        if not path.endswith(".ipynb"):
            return super().link(text, url, title)
        return super().link(text, self._files[path] + mark + anchor, title) if path in self._files else text

    def table(self, text: str) -> str:
        """In a box that can scroll where the screen is narrow."""
        # The table at the top of a notebook has an empty head, which a screen reader would announce.
        text = re.sub(r"<thead>\s*<tr>(\s*<th[^>]*>\s*</th>)+\s*</tr>\s*</thead>", "", text)
        return f'<div class="wide"><table>\n{text}</table></div>\n'

    def inline_math(self, body: str) -> str:
        """Within a line."""
        return _mathml(body, "inline")

    def block_math(self, body: str) -> str:
        """On a line of its own."""
        return _mathml(body, "block")


def markdown(source: str, renderer: Renderer | None = None) -> str:
    """Markdown as HTML; the renderer collects its headings."""
    return MarkdownWithMath(renderer=renderer or Renderer({})).render(source)


def _mathml(body: str, display: str) -> str:
    from latex2mathml.converter import convert

    try:
        return convert(body.strip(), display=display)
    except Exception as error:  # latex2mathml has a class for each mistake, and no common one
        raise ValueError(f"the formula {body} is not understood: {type(error).__name__}") from error


class Cells(HTMLExporter):
    """nbconvert's HTML exporter with the course's template of cells and its renderer of markdown."""

    def __init__(self, files: dict[str, str]) -> None:
        # The template's folder is found by its name in the folder of this file.
        super().__init__(extra_template_basedirs=[str(HERE)], template_name="templates", template_file="cells.html.j2")
        self.renderer = Renderer(files)

    @pass_context
    def markdown2html(self, context: Any, source: str) -> str:
        """The filter of nbconvert that its templates call."""
        return markdown(source, self.renderer)
