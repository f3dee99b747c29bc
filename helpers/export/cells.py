"""What the cells of a notebook show where nobody runs them: on a page and on a slide."""

import ast
import re

from nbformat import NotebookNode
from nbformat.v4 import new_output

_HELP = ("<details><summary>Hint<", "<details><summary>Solution<")  # how a cell begins that helps with an exercise


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
    shown = [cell for cell in notebook.cells if slide_type(cell) != "skip" and not _sets_up(cell)]
    notebook.cells = [_on_paper(cell) for cell in shown]
    end_of_fragment, end_of_section = "", ""  # the tags that close what is open
    for cell in notebook.cells:
        kind = "notes" if cell.source.startswith(_HELP) else slide_type(cell)
        before, after = "", ""
        if kind == "slide":
            before = f"{end_of_fragment}{end_of_section}<section><section>"
            end_of_fragment, end_of_section = "", "</section></section>"
        elif kind == "subslide":
            before = f"{end_of_fragment}</section><section>"
            end_of_fragment = ""
        elif kind == "fragment":
            before = f'{end_of_fragment}<div class="fragment">'
            end_of_fragment = "</div>"
        elif kind == "notes":
            before, after = '<aside class="notes">', "</aside>"
            cell.source = cell.source.replace("<details>", "<details open>", 1)
        cell.metadata.update(before=before, after=after)
        if cell.cell_type == "code":
            cell.source = "" if folded(cell) else lesson_code(cell.source)
    notebook.cells[-1].metadata.after += end_of_fragment + end_of_section
    return notebook


def _sets_up(cell: NotebookNode) -> bool:
    """Whether a cell is the one with the imports."""
    return cell.cell_type == "code" and bool(re.search(r"^(import|from) [\w., ]+$", cell.source, re.MULTILINE))


def lesson_code(source: str) -> str:
    """The code less its asserts and its calls of `draw` and `explore`, whose picture says it all."""
    statements = ast.parse(source).body
    if all(isinstance(statement, ast.Assert) for statement in statements):  # then they are what the cell says
        return source
    hidden: set[int] = set()  # numbers of lines
    for statement in statements:
        draws = ast.unparse(statement).startswith(("draw.", "explore."))
        if draws or isinstance(statement, ast.Assert):
            hidden.update(range(statement.lineno, (statement.end_lineno or statement.lineno) + 1))
    lines = source.splitlines()
    return "\n".join(line for number, line in enumerate(lines, start=1) if number not in hidden).strip("\n")


def _on_paper(cell: NotebookNode) -> NotebookNode:
    """The cell; a guess and an exercise ask for a pencil, and not for a kernel."""
    if "exercise" in cell.metadata.get("tags", []):
        task = "Try it before you look at the hint or the solution."
    elif cell.cell_type == "code" and re.search(r"^guess = \.\.\.", cell.source, re.MULTILINE):
        task = "Write your guess down before you go on."
    else:
        return cell
    cell.outputs = [new_output("display_data", {"text/html": f'<p class="task">{task}</p>'})]
    return cell
