"""What you have done: the exercises that are right and the guesses that are made, in all notebooks as they are saved.

`python -m helpers.progress` prints it; in a notebook `from helpers.progress import progress`, then `progress()`.
Nothing is run: a check and a guess left their words in the notebook.
"""

import argparse
import ast
import re
import textwrap
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from helpers import units

_NAMES = "[0-9][0-9]_*.ipynb"
_WIDTH = 50  # characters of the last column; the table then has a hundred at most
_COURSE = Path(__file__).resolve().parents[1] / "notebooks"


def progress(folder: Path | str | None = None) -> Any:
    """A table of the notebooks in a folder: guesses made, exercises right, and what is left of both.

    What you wrote, and no cell has shown since, as after a *Run All* that stopped, is *not run since*: run it again.
    Without a folder it is the current one, which for a notebook is its own, or else that of the course. Counted is what
    was saved: save a notebook, and what you did in it counts. Raises FileNotFoundError where no notebook is.
    """
    if folder is None:
        folder = Path() if any(Path().glob(_NAMES)) else _COURSE
    files = sorted(Path(folder).glob(_NAMES))
    if not files:
        raise FileNotFoundError(f"there is no notebook of the course in {Path(folder).resolve()}; name their folder")
    rows = [row for file in files for row in _rows(file)]
    return units.table(["notebook", "guesses", "exercises", "left"], rows)


def _rows(file: Path) -> list[list[str]]:
    """The line of a notebook, and as many more as what is left needs."""
    try:
        guesses, exercises = _states(nbformat.read(file, as_version=4))
    except Exception as error:  # whatever a file may be
        return [[file.stem, "?", "?", f"cannot be read ({type(error).__name__})"]]
    counts = [f"{len(_of(states, 'done'))} of {len(states)}" for states in (guesses, exercises)]
    kinds = {
        "guesses to make in section": _of(guesses, "to do"),
        "guesses not run since in section": _of(guesses, "not run"),
        "to do:": _of(exercises, "to do"),
        "not right yet:": _of(exercises, "wrong"),
        "not run since:": _of(exercises, "not run"),
    }
    left = "; ".join(f"{kind} {', '.join(dict.fromkeys(names))}" for kind, names in kinds.items() if names)
    if all(state == "to do" for _, state in guesses + exercises):
        left = "everything"
    first, *others = textwrap.wrap(left, _WIDTH) or [""]
    return [[file.stem, *counts, first], *(["", "", "", line] for line in others)]


def _of(states: list[tuple[str, str]], wanted: str) -> list[str]:
    return [name for name, state in states if state == wanted]


def _states(notebook: NotebookNode) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Guesses by their section, and exercises by their name, each "done", "wrong", "to do" or "not run"."""
    guesses, exercises = [], []
    section = ""
    for cell in notebook.cells:
        if heading := re.match(r"## (\d+)", cell.source):
            section = heading[1]
        if cell.cell_type != "code":
            continue
        if checked := re.search(r'^check\("?(\w+)', cell.source, re.MULTILINE):
            exercises.append((checked[1], _state(cell)))
        elif re.search(r"^compare\(", cell.source, re.MULTILINE):
            guesses.append((section, _state(cell)))
    return guesses, exercises


def _state(cell: NotebookNode) -> str:
    """What has become of a cell, by what it shows; where it shows nothing, by whether the dots are still there."""
    shown = _words(cell)
    for beginning, state in (("✓", "done"), ("You predicted", "done"), ("✗", "wrong")):
        if shown.startswith(beginning):
            return state
    return "to do" if shown or _has_dots(cell.source) else "not run"


def _has_dots(source: str) -> bool:
    """Whether an answer is still `...`; the dots of an index, as in `x[..., 0]`, are none."""
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError, RecursionError):
        return False
    indices = [part for node in nodes if isinstance(node, ast.Subscript) for part in ast.walk(node.slice)]
    return any(isinstance(node, ast.Constant) and node.value is ... and node not in indices for node in nodes)


def _words(cell: NotebookNode) -> str:
    """What the last line of a cell has shown, as text."""
    results = [output for output in cell.outputs if output.output_type == "execute_result"]
    return results[-1].get("data", {}).get("text/plain", "") if results else ""


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m helpers.progress", description=__doc__.partition("\n\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, help="that of your notebooks")
    try:
        print(progress(parser.parse_args().folder))
    except FileNotFoundError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
