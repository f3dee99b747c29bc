"""The notebooks as data: where they are, how one is run, its sections and exercises, and the minutes that it takes."""

import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))
TIMEOUT = 120  # seconds for one cell


def read(path: Path) -> NotebookNode:
    """The notebook in that file."""
    return nbformat.read(path, as_version=4)


def tags(cell: NotebookNode) -> list[str]:
    """The tags of a cell."""
    return cell.metadata.get("tags", [])


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    """The code cells in order."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


@contextmanager
def kernel(notebook: NotebookNode, folder: Path) -> Iterator[Callable[[int], None]]:
    """A fresh kernel in that folder; call it with a cell's index to run it. An error in an untagged cell raises."""
    client = NotebookClient(
        notebook,
        kernel_name="python3",
        timeout=TIMEOUT,
        resources={"metadata": {"path": str(folder)}},
        record_timing=False,  # it would write the time of day into every cell
        coalesce_streams=True,  # where a stream is cut is up to the clock
    )
    with client.setup_kernel():
        yield lambda index: client.execute_cell(notebook.cells[index], index)


def run(notebook: NotebookNode, folder: Path) -> None:
    """Execute all cells in order on a fresh kernel."""
    with kernel(notebook, folder) as execute:
        for index in range(len(notebook.cells)):
            execute(index)


def sections(notebook: NotebookNode) -> list[list[NotebookNode]]:
    """The cells by section: what stands before the first `## ` heading, and from each such heading to the next.

    Each exercise is a section of its own.
    """
    parts: list[list[NotebookNode]] = [[]]
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and re.match(r"## |### Exercise ", cell.source):
            parts.append([])
        parts[-1].append(cell)
    return parts


def plain(source: str) -> str:
    """The text of a markdown cell that a reader reads: no code fences, link targets, tags and sources."""
    text = re.sub(r"```.*?```|<[^>]*>", " ", source, flags=re.DOTALL)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    return re.sub(r"^\*\*Sources\.\*\*.*?(?:\n\n|\Z)", "", text, flags=re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Pace:
    """What the lesson of a notebook asks for, without its exercises and the teacher's notes.

    words: those of the markdown cells as `plain` reads them, tables and formulas included. lines: code lines that are
    not blank. guesses: calls of `compare`. figures: pictures among the outputs, the first states of views included.
    """

    words: int
    lines: int
    guesses: int
    figures: int

    @property
    def minutes(self) -> int:
        """What a strict reader needs, in steps of 5: 120 words a minute, 9 s a line, 1 min a guess, 45 s a figure."""
        return 5 * math.ceil((self.words / 120 + self.lines * 9 / 60 + self.guesses + self.figures * 45 / 60) / 5)

    def __str__(self) -> str:
        return (
            f"{self.words} words, {self.lines} lines of code, {self.guesses} guesses, {self.figures} figures: "
            f"{self.minutes} minutes"
        )


def lesson(notebook: NotebookNode) -> list[NotebookNode]:
    """The cells that a reader goes through: all but `## Exercises`, the exercises and the teacher's notes."""
    parts = [part for part in sections(notebook) if not re.match(r"## Exercises|### Exercise ", part[0].source)]
    return [c for part in parts for c in part if c.metadata.get("slideshow", {}).get("slide_type") != "notes"]


def pace(notebook: NotebookNode) -> Pace:
    """Count what the lesson asks for."""
    cells = lesson(notebook)
    text = "\n".join(plain(cell.source) for cell in cells if cell.cell_type == "markdown")
    code = [cell for cell in cells if cell.cell_type == "code"]
    return Pace(
        words=sum(any(map(str.isalnum, word)) for word in text.split()),
        lines=sum(bool(line.strip()) for cell in code for line in cell.source.splitlines()),
        guesses=sum(len(re.findall(r"\bcompare\(", cell.source)) for cell in code),
        figures=sum(any(kind.startswith("image/") for kind in o.get("data", {})) for c in code for o in c.outputs),
    )


@dataclass(frozen=True)
class Task:
    """An exercise of a notebook: the index of its stub among the cells, and its texts."""

    index: int
    name: str
    statement: str
    stub: str
    solution: str


def asked(stub: NotebookNode) -> str:
    """The name of the exercise that a stub checks. Raises ValueError for a cell that does not end in one check."""
    called = re.findall(r"^check\(\"?(\w+)", stub.source, re.MULTILINE)
    if len(called) != 1 or not stub.source.splitlines()[-1].startswith("check("):
        raise ValueError(f"an exercise stub ends in its one check(...):\n{stub.source}")
    return called[0]


def exercises(notebook: NotebookNode) -> list[Task]:
    """The exercises in order. Raises ValueError for one that is not made of the five cells that the course uses."""
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
            if not text.startswith(f"<details><summary>{part}</summary>\n\n") or not text.endswith("\n\n</details>"):
                raise ValueError(f"exercise {name}: no folded {part} in its place after the stub:\n{text}")
        if len(fences) != 1:
            raise ValueError(f"exercise {name}: the solution has {len(fences)} Python fences, not one")
        found.append(Task(index, name, statement, cell.source, fences[0]))
    return found
