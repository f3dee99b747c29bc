"""The notebooks as data: where they are, their sections and exercises, and the minutes that a lesson takes."""

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from helpers.export.cells import folded

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))
VIEW = "application/vnd.resource-accounting.view+json"  # explore.MIME, without torch
MEASURED = "Where this was measured, "  # so an answer of `compare` begins that a clock gave
# What a kernel runs first where nothing measured is compared: every measurement takes a twentieth of its time, in one
# round, and main memory is a sixteenth of what no cache holds, which takes as much less to fill.
HURRY = """
def hurry():
    from functools import wraps
    from helpers import machine, timing
    def quick(fn, usual):
        once = {"rounds": 1} if "rounds" in fn.__kwdefaults__ else {}
        return wraps(fn)(lambda *args, seconds=usual, **others: fn(*args, seconds=seconds / 20, **others | once))
    of_machine = ("peak", "bandwidth", "sweep", "time_ops")
    for module, name in [(timing, "measure")] + [(machine, name) for name in of_machine]:
        fn = getattr(module, name)
        setattr(module, name, quick(fn, fn.__kwdefaults__["seconds"]))
    machine._main_memory = lambda where: 2**26

hurry()
del hurry
"""
# And where nobody looks at a picture: its words are all that is made.
WORDS = f"""{HURRY}
from helpers import draw
draw.Drawing.png = lambda drawing: b""
del draw
"""


def read(path: Path) -> NotebookNode:
    """The notebook in that file."""
    return nbformat.read(path, as_version=4)


def chosen(numbers: list[str]) -> list[Path]:
    """The notebooks of these numbers, such as 01, or all of them; ends the program for a number that none has."""
    if unknown := set(numbers) - {path.name[:2] for path in NOTEBOOKS}:
        raise SystemExit(f"there is no notebook {', '.join(unknown)}; give numbers such as 01, or none for all")
    return [path for path in NOTEBOOKS if path.name[:2] in numbers or not numbers]


def tags(cell: NotebookNode) -> list[str]:
    """The tags of a cell."""
    return cell.metadata.get("tags", [])


def sections(notebook: NotebookNode) -> list[list[NotebookNode]]:
    """The cells by section: from one `## ` heading to the next, the opening before the first, and each exercise."""
    parts: list[list[NotebookNode]] = [[]]
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and re.match(r"## |### Exercise ", cell.source):
            parts.append([])
        parts[-1].append(cell)
    return parts


def plain(source: str) -> str:
    """The text of a markdown cell that a reader reads: no code fences, link targets, tags and sources."""
    text = re.sub(r"<details><summary>Sources<.*?</details>|```.*?```|<[^>]*>", " ", source, flags=re.DOTALL)
    return re.sub(r"\]\([^)]*\)", "]", text)


def is_further(section: list[NotebookNode]) -> bool:
    """Whether a section is one that a learner may skip, by its heading."""
    return "Going further" in section[0].source.split("\n")[0]


def lesson(notebook: NotebookNode, further: bool = False) -> list[NotebookNode]:
    """The cells that a reader goes through, or those named `Going further`; no exercises, notes or fine print."""
    parts = [part for part in sections(notebook) if not re.match(r"## Exercises|### Exercise ", part[0].source)]
    return [
        c
        for part in parts
        if is_further(part) == further
        for c in part
        if c.metadata.get("slideshow", {}).get("slide_type") != "notes"
        and not c.source.startswith("<details><summary>Fine print<")
    ]


def pace(cells: list[NotebookNode]) -> dict[str, int]:
    """What these cells of a lesson ask for, and the minutes that a strict reader needs for them, to the nearest 5.

    The rates are those of some sixty readings. Words are those of the markdown cells as `plain` reads them, tables and
    formulas included; lines of code those that are neither blank nor folded, less the one that asks for a version;
    guesses calls of `compare`; figures the pictures and views among the outputs.
    """
    text = "\n".join(plain(cell.source) for cell in cells if cell.cell_type == "markdown")
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code" and not folded(cell))
    shown = [output.get("data", {}) for cell in cells for output in cell.get("outputs", ())]
    words = sum(any(map(str.isalnum, word)) for word in text.split())
    lines = sum(bool(line.strip()) and not line.startswith("version.") for line in code.splitlines())
    guesses = len(re.findall(r"\bcompare\(", code))
    figures = sum("image/png" in data or VIEW in data for data in shown)
    minutes = 5 * round((words / 95 + lines * 12 / 60 + guesses + figures * 45 / 60) / 5)
    return {"words": words, "lines": lines, "guesses": guesses, "figures": figures, "minutes": minutes}


@dataclass(frozen=True)
class Task:
    """An exercise of a notebook: the index of its stub among the cells, and its texts."""

    index: int
    name: str
    statement: str
    solution: str


def asked(stub: NotebookNode) -> str:
    """The name of the exercise that a stub checks. Raises ValueError for a cell that does not end in one check."""
    called = re.findall(r"^check\(\"?(\w+)", stub.source, re.MULTILINE)
    if len(called) != 1 or not stub.source.splitlines()[-1].startswith("check("):
        raise ValueError(f"an exercise stub ends in its one check(...):\n{stub.source}")
    return called[0]


def answers(cell: NotebookNode) -> list[str]:
    """What pages show after a guess, of each output of a code cell; "" where it has none."""
    return [output.get("metadata", {}).get("answer", "") for output in cell.outputs]


def guessed(cell: NotebookNode) -> list[str]:
    """The names of the guesses that a cell compares."""
    return re.findall(r"\bcompare\(.*\babout=\"(\w+)\"", cell.source) if cell.cell_type == "code" else []


def exercises(notebook: NotebookNode) -> list[Task]:
    """The exercises in order. Raises ValueError for one that is not made of the cells that the course uses."""
    found = []
    for index, cell in enumerate(notebook.cells):
        if "exercise" not in tags(cell):
            continue
        name = asked(cell)
        spec = "exercise-spec" in tags(notebook.cells[index - 1])
        statement = notebook.cells[index - 2 if spec else index - 1].source
        hint, solution = (notebook.cells[index + step].source for step in (1, 2))
        fences = re.findall(r"^```python\n(.*?)^```", solution, re.MULTILINE | re.DOTALL)
        for part, text in (("Hint", hint), ("Solution", solution)):
            if not re.fullmatch(rf"<details><summary>{part}</summary>\n\n.*\n\n</details>", text, re.DOTALL):
                raise ValueError(f"exercise {name}: no folded {part} in its place after the stub:\n{text}")
        if len(fences) != 1:
            raise ValueError(f"exercise {name}: the solution has {len(fences)} Python fences, not one")
        found.append(Task(index, name, statement, fences[0]))
    return found


@cache
def keys(path: Path, guesses: bool = False) -> dict[str, list[ast.stmt]]:
    """For each exercise, or guess, of a notebook the code that judges it: its entry, and the functions that it uses."""
    file = ROOT / "helpers" / "exercises" / f"nb{path.stem}.py"
    body = ast.parse(file.read_text(encoding="utf-8")).body
    functions = {node.name: node for node in body if isinstance(node, ast.FunctionDef)}
    found = {}
    for node in body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            kinds = ("guess",) if guesses else ("exercise", "parts", "choices")
            if node.value.func.id not in kinds:
                continue
            used = {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
            found[node.value.args[0].value] = [node, *(functions[name] for name in used & functions.keys())]
    return found
