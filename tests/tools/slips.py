"""The one-step slips of every notebook's solutions, and which of them a check takes for right.

`python -m tests.tools.slips 03 05` prints, for these notebooks, the slips that are accepted and not listed in the
exercise's `equivalent_slips`, and those that are listed and refused.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

from helpers.check import Verdict, check, judge, run
from helpers.check.edits import places, slips_at
from helpers.exercises import EXERCISES
from tests.tools.course import Task, chosen, exercises, read

run.SECONDS = 120  # however busy the machine is


def slips(source: str) -> Iterator[tuple[str, str]]:
    """Each program that is one step away, with the line that is different. Checks and asserts are left as they are."""
    tree = ast.parse(source)
    tree.body = [node for node in tree.body if not isinstance(node, ast.Assert)]
    for node in reversed(tree.body.copy()):  # what only an assert used
        rest = "\n".join(ast.unparse(other) for other in tree.body if other is not node)
        if isinstance(node, ast.Assign) and not _given(node) & _asked(rest):
            tree.body.remove(node)
    seen = {ast.unparse(tree)}
    for statement in tree.body:
        if ast.unparse(statement).startswith("check("):
            continue
        for key, holder, node in places(statement):
            for slip in slips_at(node):
                holder[key] = slip.node
                text = ast.unparse(ast.fix_missing_locations(tree))
                line = _line(statement, slip.node)
                holder[key] = node
                if text not in seen:
                    seen.add(text)
                    yield text, line


def _line(statement: ast.stmt, other: ast.AST) -> str:
    """The changed line: the innermost statement that holds the slip, without what is nested in it."""
    held = [node for node in ast.walk(statement) if isinstance(node, ast.stmt) and other in ast.walk(node)]
    return ast.unparse(min(held, key=lambda node: len(ast.unparse(node)))).splitlines()[0]


def names(path: Path) -> list[tuple[Task, dict[str, Any]]]:
    """Each exercise with the names that its solution finds in the notebook; nothing else of it runs."""
    notebook = read(path)
    cells = [cell.source if cell.cell_type == "code" else "" for cell in notebook.cells]
    imports = next(filter(None, cells))
    prepared = []
    for task in exercises(notebook):
        earlier = [node for cell in cells[: task.index] for node in ast.parse(cell).body]
        found: dict[str, Any] = {}
        exec(imports, found)
        _fill(task.solution, earlier, found)
        prepared.append((task, found))
    return prepared


def _fill(source: str, earlier: list[ast.stmt], found: dict[str, Any]) -> None:
    """Run the last earlier statements that give the names which the source uses and does not define."""
    for name in sorted(_asked(source) - found.keys()):
        for place in reversed(range(len(earlier))):
            if name in _given(earlier[place]):
                text = ast.unparse(earlier[place])
                _fill(text, earlier[:place], found)
                exec(text, found)
                break


def _asked(source: str) -> set[str]:
    """The names that a piece of code reads, less those that it assigns or takes as arguments."""
    nodes = list(ast.walk(ast.parse(source)))
    names = [node for node in nodes if isinstance(node, ast.Name)]
    own = {name.id for name in names if isinstance(name.ctx, ast.Store)}
    return {name.id for name in names} - own - {node.arg for node in nodes if isinstance(node, ast.arg)}


def _given(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.FunctionDef):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else []
    return {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}


def status(source: str, found: dict[str, Any]) -> str:
    """What the check says of a solution: its status, or "raised" where the cell does not get that far."""
    said: list[Verdict] = []
    namespace = found | {"check": lambda *answers: said.append(check(*answers))}
    with patch.object(judge, "explain", lambda attempt: ""):  # nobody reads why a slip is refused
        try:
            exec(source, namespace)
        except Exception:
            return "raised"
    return said[-1].status


def findings(path: Path) -> tuple[int, list[str]]:
    """How many slips a notebook has, and what is to be mended.

    That is: a solution that is refused, or needs a name from further down; a slip that is accepted; a list that is out
    of date. Exercises that only choose among words are left out: there every other word is wrong.
    """
    total, wrong = 0, []
    for task, found in names(path):
        exercise = EXERCISES[task.name]
        choices = [part.words for part in exercise.parts.values()]
        passed = set()
        if status(task.solution, found) != "correct":
            wrong.append(f"{task.name} refuses its own solution")
        for source, line in () if choices and all(choices) else slips(task.solution):
            total += 1
            if status(source, found) == "correct":
                passed.add(line)
        wrong += [f"{task.name} accepts: {line}" for line in sorted(passed - set(exercise.equivalent_slips))]
        wrong += [
            f"{task.name} lists what is refused or no slip: {line}" for line in set(exercise.equivalent_slips) - passed
        ]
    return total, wrong


if __name__ == "__main__":
    results = {path.stem: findings(path) for path in chosen(sys.argv[1:])}
    for stem, (total, wrong) in results.items():
        print("\n".join([f"{stem}: {total} slips", *wrong]))
    sys.exit(any(wrong for _, wrong in results.values()))
