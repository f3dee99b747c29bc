"""What the cells of a notebook show where nobody runs them: on a page and on a slide."""

import ast
import re

from nbformat import NotebookNode
from nbformat.v4 import new_output


def slide_type(cell: NotebookNode) -> str:
    """The slide type of a cell, or "" where it goes on with the slide above it."""
    return cell.metadata.get("slideshow", {}).get("slide_type", "")


def folded(cell: NotebookNode) -> bool:
    """Whether JupyterLab folds the code of a cell, since it is no part of the lesson: a picture, or a table."""
    return cell.metadata.get("jupyter", {}).get("source_hidden", False)


def for_page(notebook: NotebookNode, notes: bool = False) -> NotebookNode:
    """The notebook as a page shows it, changed in place: with the teacher's notes only if asked."""
    notebook.cells = [_on_paper(cell) for cell in notebook.cells if notes or slide_type(cell) != "notes"]
    return notebook


def for_slides(notebook: NotebookNode) -> NotebookNode:
    """The notebook as reveal.js wants it, changed in place: sections of slides, fragments in them, notes aside.

    The set-up is left out; hints and solutions become notes. Each cell gets the tags that go before and after it.
    ValueError where the first cell starts no slide.
    """
    if slide_type(notebook.cells[0]) != "slide":
        raise ValueError("the first cell must have the slide type 'slide'")
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    imports = [cell for cell in code if re.search(r"^(import|from) [\w., ]+$", cell.source, re.MULTILINE)]
    shown = (cell for cell in notebook.cells if slide_type(cell) != "skip" and cell not in imports)
    notebook.cells = list(map(_on_paper, shown))
    fragment, end = "", ""  # what would close the fragment and the sections that are open
    for cell in notebook.cells:
        before, after = "", ""
        helps = cell.source.startswith(("<details><summary>Hint<", "<details><summary>Solution<"))
        match "notes" if helps else slide_type(cell):
            case "slide":
                before, fragment, end = fragment + end + "<section><section>", "", "</section></section>"
            case "subslide":
                before, fragment = fragment + "</section><section>", ""
            case "fragment":
                before, fragment = fragment + '<div class="fragment">', "</div>"
            case "notes":
                before, after = '<aside class="notes">', "</aside>"
                cell.source = cell.source.replace("<details>", "<details open>", 1)
        cell.metadata.update(before=before, after=after)
        if cell.cell_type == "code":
            cell.source = "" if folded(cell) else lesson_code(cell.source)
    notebook.cells[-1].metadata.after += fragment + end
    return notebook


def lesson_code(source: str) -> str:
    """The code less its asserts and its calls of `draw` and `explore`, whose picture says it all."""
    body = ast.parse(source).body
    asserts = [part for part in body if isinstance(part, ast.Assert)]
    if asserts == body:  # then they are what the cell says
        return source
    drawn = [part for part in body if ast.unparse(part).startswith(("draw.", "explore."))]
    lines = {line for part in asserts + drawn for line in range(part.lineno, part.end_lineno + 1)}
    return "\n".join(text for line, text in enumerate(source.splitlines(), 1) if line not in lines).strip("\n")


def _on_paper(cell: NotebookNode) -> NotebookNode:
    """A guess and an exercise ask for a pencil, and not for a kernel."""
    exercise = "exercise" in cell.metadata.get("tags", [])
    if exercise or (cell.cell_type == "code" and re.search(r"^guess = \.\.\.", cell.source, re.MULTILINE)):
        first, then = ("Try it", "look at the hint or the solution") if exercise else ("Write your guess down", "go on")
        cell.outputs = [new_output("display_data", {"text/html": f'<p class="task">{first} before you {then}.</p>'})]
    return cell
