"""Would a wrong number in a notebook's code be noticed? `python -m tests.mutate_cells [NN ...]`

Each number that stands in a code cell is changed, one at a time. The notebook runs on from there until a cell fails,
or shows something else than what is stored, as nbval would see it. Changes that nothing notices are printed, and those
that tests/unnoticed_cells.toml explains are counted apart.

It takes minutes a notebook, most of them for the changes that nothing notices: those run to the notebook's end.
"""

import argparse
import ast
import os
import signal
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from nbformat import NotebookNode

from tests.course import NOTEBOOKS, TIMEOUT, read, tags

EXPLAINED = tomllib.loads(Path(__file__).with_name("unnoticed_cells.toml").read_text(encoding="utf-8"))
_WORKERS = 2
_NOTICED, _UNNOTICED = 0, 1


def mutants(source: str) -> Iterator[tuple[str, int, str]]:
    """Each number of the code changed: the new source, and the line and the text of the number."""
    lines = source.splitlines(keepends=True)
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Constant) or type(node.value) not in (int, float) or node.lineno != node.end_lineno:
            continue
        line = lines[node.lineno - 1].encode()
        old = line[node.col_offset : node.end_col_offset].decode()
        try:
            if ast.literal_eval(old) != node.value:
                continue  # inside an f-string some Pythons give the place of the string
        except (SyntaxError, ValueError):
            continue
        new = repr(node.value + 1 if isinstance(node.value, int) else node.value * 1.5 or 0.5)
        changed = (line[: node.col_offset] + new.encode() + line[node.end_col_offset :]).decode()
        yield "".join([*lines[: node.lineno - 1], changed, *lines[node.lineno :]]), node.lineno, old


def agrees(shell: InteractiveShell, cell: NotebookNode, source: str) -> bool:
    """Run a cell's source; whether it ends as the stored cell did and shows what that shows."""
    with capture_output() as shown:
        shell.display_trap.hook = sys.displayhook  # which captures, too: run_cell would set its own
        result = shell.run_cell(source)
    if result.success == ("raises-exception" in tags(cell)):
        return False
    if "nbval-ignore-output" in tags(cell) or not result.success:
        return True
    stream = "".join(output.text for output in cell.outputs if output.output_type == "stream")
    stored = [output.data for output in cell.outputs if "data" in output]
    found = [output.data for output in shown.outputs]
    kinds = ("text/plain", "text/html")
    return shown.stdout == stream and [[d.get(k) for k in kinds] for d in found] == [
        [d.get(k) for k in kinds] for d in stored
    ]


def unnoticed(notebook: NotebookNode) -> Iterator[tuple[int, int, str, bool]]:
    """Every mutant of a notebook: the cell's number, the line, the number as written, and whether nothing noticed.

    Raises RuntimeError where the notebook as it is does not show what is stored.
    """
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    shell = InteractiveShell.instance()
    shell.run_line_magic("colors", "nocolor")
    running: dict[int, tuple[int, int, str]] = {}

    def finished() -> tuple[int, int, str, bool]:
        pid, status = os.wait()
        return *running.pop(pid), os.waitstatus_to_exitcode(status) == _UNNOTICED

    for index, cell in enumerate(cells):
        for source, line, old in mutants(cell.source):
            if len(running) == _WORKERS:
                yield finished()
            sys.stdout.flush()
            pid = os.fork()
            if not pid:
                signal.alarm(TIMEOUT)  # a change that makes it endless ends it
                same = agrees(shell, cell, source) and all(agrees(shell, c, c.source) for c in cells[index + 1 :])
                os._exit(_UNNOTICED if same else _NOTICED)
            running[pid] = index + 1, line, old
        if not agrees(shell, cell, cell.source):
            raise RuntimeError(f"cell {index + 1} does not show what is stored:\n{cell.source}")
    while running:
        yield finished()


def survey(path: Path) -> str:
    """Try every mutant of one notebook, print those that nothing notices, and return a line with the figures."""
    explained = {line for lines in EXPLAINED.get(path.stem, {}).values() for line in lines}
    cells = [cell for cell in read(path).cells if cell.cell_type == "code"]
    tried = survived = excused = 0
    start = time.perf_counter()
    for number, line, old, alone in unnoticed(read(path)):
        tried += 1
        if not alone:
            continue
        text = cells[number - 1].source.splitlines()[line - 1].strip()
        if text in explained:
            excused += 1
        else:
            survived += 1
            print(f"  cell {number}, line {line}, {old}: {text}", flush=True)
    seconds = time.perf_counter() - start
    return f"{path.name}: {tried} numbers changed, {survived} unnoticed, {excused} more explained, {seconds:.0f} s"


def main() -> None:
    """The command line: a process for each notebook, so that each starts empty and without threads."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutate_cells", description=__doc__)
    parser.add_argument("numbers", nargs="*", metavar="NN", help="notebook numbers, such as 01; default: all")
    chosen = parser.parse_args().numbers
    os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"  # a fork has no threads of its parent
    for path in NOTEBOOKS:
        if chosen and path.name[:2] not in chosen:
            continue
        sys.stdout.flush()
        pid = os.fork()
        if not pid:
            os.chdir(path.parent)
            print(survey(path), flush=True)
            os._exit(0)
        os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
