"""What you have done: the exercises that are right and the guesses that are made, in all notebooks as they are saved.

`python -m helpers.progress` prints it; in a notebook `from helpers.progress import progress`, then `progress()`.
Nothing is run: a check and a guess left their words in the notebook.
"""

import argparse
import re
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from helpers import units

_NAMES = "[0-9][0-9]_*.ipynb"
_COURSE = Path(__file__).resolve().parents[1] / "notebooks"


def progress(folder: Path | str | None = None) -> Any:
    """A table of the notebooks in a folder: guesses made, exercises right, and those that are left.

    Without a folder it is the current one, which for a notebook is its own, or else that of the course. Counted is what
    was saved: save a notebook, and what you did in it counts. Raises FileNotFoundError where no notebook is.
    """
    if folder is None:
        folder = Path() if any(Path().glob(_NAMES)) else _COURSE
    files = sorted(Path(folder).glob(_NAMES))
    if not files:
        raise FileNotFoundError(f"there is no notebook of the course in {Path(folder).resolve()}; name their folder")
    return units.table(["notebook", "guesses made", "exercises right", "left"], [_row(file) for file in files])


def _row(file: Path) -> list[str]:
    try:
        cells = [cell for cell in nbformat.read(file, as_version=4).cells if cell.cell_type == "code"]
    except Exception as error:  # whatever a file may be
        return [file.stem, "?", "?", f"cannot be read ({type(error).__name__})"]
    guesses = [cell for cell in cells if re.search(r"^compare\(", cell.source, re.MULTILINE)]
    made = sum(_words(cell).startswith("You predicted") for cell in guesses)
    exercises = {found[1]: _words(cell).startswith("✓") for cell in cells if (found := _checked(cell))}
    left = ", ".join(name for name, is_right in exercises.items() if not is_right)
    return [file.stem, f"{made} of {len(guesses)}", f"{sum(exercises.values())} of {len(exercises)}", left]


def _checked(cell: NotebookNode) -> re.Match[str] | None:
    return re.search(r'^check\("?(\w+)', cell.source, re.MULTILINE)


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
