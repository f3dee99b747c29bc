"""The notebooks as data: where they are, how one is run, and where its exercises are."""

import re
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


def run(notebook: NotebookNode, folder: Path) -> None:
    """Execute all cells in order on a fresh kernel started in that folder; an error in an untagged cell raises."""
    resources = {"metadata": {"path": str(folder)}}
    # record_timing would write the time of day into every cell
    NotebookClient(notebook, kernel_name="python3", timeout=TIMEOUT, resources=resources, record_timing=False).execute()


@dataclass(frozen=True)
class Task:
    """An exercise of a notebook: the index of its stub among the cells, and its texts."""

    index: int
    name: str
    statement: str
    stub: str
    hint: str
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
        found.append(Task(index, name, statement, cell.source, hint, fences[0]))
    return found
