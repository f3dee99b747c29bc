"""What the cells of a notebook are, and what they show where nobody runs them: on a page."""

import re
from html import escape

from nbformat import NotebookNode
from nbformat.v4 import new_output


def slide_type(cell: NotebookNode) -> str:
    """The slide type of a cell, or "" where it goes on with the slide above it."""
    return cell.metadata.get("slideshow", {}).get("slide_type", "")


def folded(cell: NotebookNode) -> bool:
    """Whether JupyterLab folds the code of a cell, since it is no part of the lesson: a picture, or a table."""
    return cell.metadata.get("jupyter", {}).get("source_hidden", False)


def is_guess(cell: NotebookNode) -> bool:
    """Whether a cell asks for a prediction."""
    return cell.cell_type == "code" and bool(re.search(r"^guess = \.\.\.", cell.source, re.MULTILINE))


def is_exercise(cell: NotebookNode) -> bool:
    """Whether a cell is the stub of an exercise."""
    return "exercise" in cell.metadata.get("tags", [])


def answer(cell: NotebookNode) -> str:
    """What comes out where a cell asks for a guess, as `compare` left it with its output, in HTML; "" if it did not."""
    told = next((output.metadata.answer for output in cell.outputs if "answer" in output.get("metadata", {})), "")
    told = re.sub(r"(?<=[Ii]t is )'(.*?)'(?=\.)", r"`\1`", told, count=1)  # a text, in Python's quotes
    return re.sub(r"`(.+?)`", r"<code>\1</code>", escape(told, quote=False))


def task(words: str) -> NotebookNode:
    """An output that asks for something."""
    return new_output("display_data", {"text/html": f'<p class="task">{words}</p>'})


# ---- A page


def for_page(notebook: NotebookNode, notes: bool = False) -> NotebookNode:
    """The notebook as a page shows it, changed in place: with the teacher's notes only if asked."""
    notebook.cells = [_on_paper(cell) for cell in notebook.cells if notes or slide_type(cell) != "notes"]
    return notebook


def _on_paper(cell: NotebookNode) -> NotebookNode:
    """The cell; a guess and an exercise ask for a pencil, and not for a kernel."""
    if is_exercise(cell):
        cell.outputs = [task("Try it before you look at the hint or the solution.")]
    elif is_guess(cell):
        cell.metadata.after = _folded_answer(answer(cell))
        cell.outputs = [task("Write your guess down before you go on.")]
    return cell


def _folded_answer(sentence: str) -> str:
    return f"<details><summary>What comes out</summary><p>{sentence}</p></details>" if sentence else ""
