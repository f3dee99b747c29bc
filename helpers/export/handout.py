"""Hand-outs: a folder for a class, with the notebooks without solutions and teacher's notes, and the way back."""

import argparse
import ast
import copy
import re
import shutil
from collections.abc import Collection
from functools import cache
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from helpers import merge
from helpers.export.cells import slide_type

_COURSE = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((_COURSE / "notebooks").glob("[0-9][0-9]_*.ipynb"))
SOLUTION = "<details><summary>Solution<"
_LINK = re.compile(r"\[([^]]+)\]\((\d\d_\w+\.ipynb)\)")  # to another lesson
# What a class needs beside the notebooks, to install and to run them. The checks compare with what `helpers` holds.
_BESIDE = ["helpers", ".jupyter", "requirements.txt", ".github/constraints.txt", "pyproject.toml", "LICENSE"]
_BESIDE += ["environment.yml", ".binder", ".devcontainer", ".hub/jupyterhub_config.py", ".gitignore"]
_SHARED = 5  # cells that tell a notebook of the course from another; every lesson has seventy
_TEST = """# The marks of the exercise above are made here. Leave this cell as it is.
### BEGIN HIDDEN TESTS
from helpers.check import check
verdict = check({call})
assert verdict.status == "correct", verdict.message
### END HIDDEN TESTS"""
# A student's notebook stays whole, as it is, where both sides have changed it: git would merge lines.
_ATTRIBUTES = "*.ipynb -merge\n"
# Put beside the hand-outs: pictures stay, and stubs, which hold no solution, stay as they are.
_CONFIG = """c = get_config()
c.CourseDirectory.course_id = "resource-accounting"
c.ClearOutput.enabled = False
c.ClearSolutions.enabled = False
c.ExecutePreprocessor.timeout = 300  # seconds for a cell
"""


def checks(source: str) -> dict[str, str]:
    """What a cell checks: for each exercise that it names the answers, as they are written in the call.

    >>> checks('def f(x):\\n    return ...\\n\\n\\ncheck(f)\\ncheck("shapes", a, b)')
    {'f': 'f', 'shapes': 'a, b'}

    Empty for a cell that Python cannot read, a magic command included.
    """
    try:
        calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call) and node.args]
    except (SyntaxError, ValueError, RecursionError):
        return {}
    found = {}
    for call in calls:
        first, *rest = call.args
        if ast.unparse(call.func).rpartition(".")[2] != "check":
            continue
        if isinstance(first, ast.Constant):
            found[str(first.value)] = ", ".join(map(ast.unparse, rest))
        elif isinstance(first, ast.Name):
            found[first.id] = first.id
    return found


def for_students(notebook: NotebookNode) -> NotebookNode:
    """The notebook without solutions, answers and teacher's notes, changed in place.

    Stubs, hints, guesses and pictures stay.
    """
    notebook.cells = [
        cell for cell in notebook.cells if slide_type(cell) != "notes" and not cell.source.startswith(SOLUTION)
    ]
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            output.get("metadata", {}).pop("answer", None)  # what comes out of a guess
    return notebook


def linked(text: str, there: Collection[str]) -> str:
    """The text with links to these notebooks alone; of another link the words stay.

    >>> linked("[The start](00_start_here.ipynb), [formats](01_float_formats.ipynb)", there=["00_start_here.ipynb"])
    '[The start](00_start_here.ipynb), formats'
    """
    return _LINK.sub(lambda link: link[0] if link[2] in there else link[1], text)


def for_teacher(given: NotebookNode, lesson: NotebookNode) -> NotebookNode:
    """A hand-out with solutions, notes and links back in their places, and with all that was written into it."""
    complete = copy.deepcopy(lesson)
    given.cells = [cell for cell in given.cells if not cell.metadata.get("nbgrader", {}).get("grade")]
    texts = {linked(cell.source, ()): cell.source for cell in lesson.cells}
    for cell in given.cells:
        cell.source = texts.get(linked(cell.source, ()), cell.source)
    merge.merge(for_students(copy.deepcopy(lesson)), given, complete)
    return complete


def for_nbgrader(notebook: NotebookNode) -> NotebookNode:
    """The hand-out with what nbgrader wants, changed in place: each stub a solution cell, and after it a test cell."""
    cells = []
    for cell in notebook.cells:
        cells.append(cell)
        if "exercise" not in cell.metadata.get("tags", []):
            continue
        [(name, answers)] = checks(cell.source).items()
        call = answers if answers == name else f'"{name}", {answers}'
        test = new_code_cell(_TEST.format(call=call))
        cell.metadata.nbgrader = _roles(name, solution=True)
        test.metadata.nbgrader = _roles(f"{name}_test", grade=True) | {"points": 1}
        cells.append(test)
    notebook.cells = cells
    return notebook


def _roles(name: str, solution: bool = False, grade: bool = False) -> dict[str, object]:
    return {
        "grade": grade,
        "grade_id": name,
        "locked": grade,
        "schema_version": 3,
        "solution": solution,
        "task": False,
    }


@cache
def _lessons() -> dict[Path, NotebookNode]:
    return {path: nbformat.read(path, as_version=4) for path in NOTEBOOKS}


def lesson_of(notebook: NotebookNode) -> NotebookNode | None:
    """The lesson that a notebook comes from, whatever its file is called: the one with most of its cells in common."""
    texts = {cell.source for cell in notebook.cells}

    def shared(lesson: NotebookNode) -> int:
        return sum(cell.source in texts for cell in lesson.cells)

    best = max(_lessons().values(), key=shared)
    return best if shared(best) > _SHARED else None


def _write(notebook: NotebookNode, file: Path) -> None:
    if file.resolve() in NOTEBOOKS:
        raise SystemExit(f"{file} is a notebook of the course itself: choose another folder to write to")
    file.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, file)


def _write_class(notebooks: dict[str, NotebookNode], out: Path) -> None:
    """A folder to be given to a class as it is, or to be made a repository of."""
    for name, notebook in notebooks.items():
        _write(notebook, out / "notebooks" / name)
    for name in _BESIDE:
        original, copied = _COURSE / name, out / name
        copied.parent.mkdir(parents=True, exist_ok=True)
        if original.is_dir():
            shutil.copytree(original, copied, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
        elif original.exists():
            shutil.copy(original, copied)
    blocks = re.findall(r"<!-- (open|update) -->\n(```.*?```)", (_COURSE / "README.md").read_text("utf-8"), re.DOTALL)
    text = (Path(__file__).parent / "templates" / "class.md").read_text("utf-8").format(**dict(blocks))
    (out / "README.md").write_text(text.replace(NOTEBOOKS[0].name, min(notebooks)), encoding="utf-8")
    (out / ".gitattributes").write_text(_ATTRIBUTES, encoding="utf-8")


def _write_nbgrader(notebooks: dict[str, NotebookNode], out: Path) -> None:
    """A course folder of nbgrader, with one assignment for each notebook."""
    for name, notebook in notebooks.items():
        _write(for_nbgrader(notebook), out / "source" / Path(name).stem / name)
    (out / "nbgrader_config.py").write_text(_CONFIG, encoding="utf-8")


def _back(folder: Path, out: Path) -> int:
    """Bring solutions and notes into all hand-outs of a folder; returns how many there were."""
    if out.resolve().is_relative_to(folder.resolve()):
        raise SystemExit(f"{out} lies in {folder}, whose notebooks stay as they are: choose another folder to write to")
    done = 0
    for file in sorted(folder.rglob("*.ipynb")):
        try:
            given = nbformat.read(file, as_version=4)
            lesson = lesson_of(given)
        except Exception:  # whatever a file may be
            lesson = None
        if lesson is None:
            print(f"{file} is no hand-out of the course: left out")
            continue
        _write(for_teacher(given, lesson), out / file.relative_to(folder))
        done += 1
    return done


def main(arguments: list[str]) -> None:
    """The command line of `python -m helpers.export handout`."""
    parser = argparse.ArgumentParser(prog="python -m helpers.export handout", description=__doc__)
    parser.add_argument("numbers", nargs="*", metavar="NN", help="notebook numbers, such as 01; default: all")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the folder to write to")
    parser.add_argument("--nbgrader", action="store_true", help="as a course folder of nbgrader: one assignment each")
    parser.add_argument("--back", type=Path, metavar="FOLDER", help="hand-outs that shall get solutions and notes back")
    given = parser.parse_args(arguments)
    if given.back:
        print(f"{_back(given.back, given.out)} notebooks with solutions and notes in {given.out}")
        return
    known = {path.name[:2]: path for path in NOTEBOOKS}
    if absent := set(given.numbers) - set(known):
        parser.error(f"there is no notebook {min(absent)}; there are {', '.join(known)}")
    chosen = [known[number] for number in sorted(set(given.numbers)) or known]
    notebooks = {}
    for path in chosen:
        notebooks[path.name] = for_students(nbformat.read(path, as_version=4))
        together = {path.name} if given.nbgrader else {other.name for other in chosen}
        for cell in notebooks[path.name].cells:
            cell.source = linked(cell.source, together)
    (_write_nbgrader if given.nbgrader else _write_class)(notebooks, given.out)
    print(f"Without solutions and notes, in {given.out}: {', '.join(path.stem[:2] for path in chosen)}")
    there = sorted((given.out / "notebooks").glob("*.ipynb"))
    if before := [path.stem[:2] for path in there if path.name not in notebooks]:
        print(f"From before, there are also: {', '.join(before)}")
