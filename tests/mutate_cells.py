"""Would a wrong number in a notebook's code be noticed? `python -m tests.mutate_cells [NN ...]`

Each number that stands in a code cell is changed, one at a time. The notebook runs on from there until a cell fails,
or shows something else than what is stored, as nbval would see it, or no later cell uses what the changed one made.
Changes that nothing notices are printed, and those that tests/unnoticed_cells.toml explains are counted apart; a line
of that file that no cell has any more is printed, too.

It takes minutes a notebook, most of them for the changes that nothing notices.
"""

import argparse
import ast
import builtins
import os
import signal
import symtable
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


def _globals(table: symtable.SymbolTable) -> set[str]:
    """The names of the notebook that code uses, in functions and comprehensions too."""
    top = table.get_type() == "module"
    own = {name.get_name() for name in table.get_symbols() if name.is_referenced() and (top or name.is_global())}
    return own.union(*map(_globals, table.get_children()))


def _names(source: str) -> tuple[set[str], set[str], dict[str, set[str]]]:
    """The names that a cell uses as earlier cells left them, those that it binds, and what its functions use."""
    used, bound, functions = set(), set(), {}
    for statement in ast.parse(source).body:
        table = symtable.symtable(ast.unparse(statement), "", "exec")
        names = {name.get_name() for name in table.get_symbols() if name.is_assigned() or name.is_imported()}
        used |= _globals(table) - bound
        used |= names if isinstance(statement, ast.AugAssign) else set()
        bound |= names
        if isinstance(statement, ast.FunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom):
            functions |= dict.fromkeys(names, _globals(table))
    return used, bound, functions


def reach(sources: list[str], index: int) -> int:
    """The number of cells up to the last that may see, through a name, what the cell with that index does.

    It errs towards more: whatever a cell uses may be changed in place, and is taken to be. Only draws of random numbers
    are not followed: an assert that fails for other draws says nothing about the number.
    """
    parts = [_names(source) for source in sources]
    inside = {name: used for _, _, functions in parts for name, used in functions.items()}
    fixed = {*dir(builtins), *inside}
    touched, last = set(), index
    for place, (used, bound, _) in enumerate(parts[index:], start=index):
        calls = used | bound
        while more := set().union(*(inside.get(name, set()) for name in calls)) - calls:
            calls |= more  # what a function uses is used where it is called
        used = calls - (bound - used)
        if place == index or used & touched:
            touched |= (used - fixed) | bound
            last = place
        else:
            touched -= bound
    return last + 1


def agrees(shell: InteractiveShell, cell: NotebookNode, source: str) -> bool:
    """Run a cell's source; whether it ends as the stored cell did and shows what that shows."""
    signal.alarm(TIMEOUT)  # a change that makes it endless ends it
    with capture_output() as shown:
        shell.display_trap.hook = sys.displayhook  # which captures, too: run_cell would set its own
        result = shell.run_cell(source)
    signal.alarm(0)
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
        concerned = cells[index + 1 : reach([c.source for c in cells], index)]
        for source, line, old in mutants(cell.source):
            if len(running) == _WORKERS:
                yield finished()
            sys.stdout.flush()
            pid = os.fork()
            if not pid:
                same = agrees(shell, cell, source) and all(agrees(shell, c, c.source) for c in concerned)
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
    for line in sorted(explained - {line.strip() for cell in cells for line in cell.source.splitlines()}):
        print(f"  explained, but in no cell: {line}")
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
        if os.waitpid(pid, 0)[1]:
            sys.exit(f"{path.name}: stopped before its end")


if __name__ == "__main__":
    main()
