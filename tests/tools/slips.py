"""The one-step slips of every notebook's solutions, and which of them a check takes for right.

`python -m tests.tools.slips 03 05` prints, for these notebooks, the slips that are accepted and not listed in the
exercise's `equivalent_slips`, and those that are listed and refused.
"""

import ast
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from helpers.check import Verdict, check, run
from helpers.exercises import EXERCISES
from tests.tools.course import Task, chosen, exercises, read

_OPERATORS: dict[type[ast.AST], tuple[type[ast.AST], ...]] = {
    ast.Add: (ast.Sub,), ast.Sub: (ast.Add,), ast.Mult: (ast.Div, ast.Add), ast.Div: (ast.Mult, ast.FloorDiv),
    ast.FloorDiv: (ast.Div, ast.Mult), ast.Mod: (ast.FloorDiv,), ast.Pow: (ast.Mult,), ast.MatMult: (ast.Mult,),
    ast.Lt: (ast.LtE, ast.Gt), ast.LtE: (ast.Lt, ast.GtE), ast.Gt: (ast.GtE, ast.Lt), ast.GtE: (ast.Gt, ast.LtE),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.And: (ast.Or,), ast.Or: (ast.And,),
}  # fmt: skip
_EXCHANGED = {"floor": "ceil", "ceil": "floor", "max": "min", "min": "max"}
run.SECONDS = 120  # however busy the machine is
_SAME_CALLS = {"tuple", "list", "float", "set", "sorted"}  # any spelling of a value is accepted


def _replacements(node: ast.AST) -> Iterator[ast.AST]:
    """The slips at one node: what stands in its place instead."""
    slips_of = _SLIPS_OF.get(type(node))
    if slips_of:
        yield from slips_of(node)


def _of_operation(node: ast.BinOp) -> Iterator[ast.AST]:
    for other in _OPERATORS.get(type(node.op), ()):
        yield ast.BinOp(node.left, other(), node.right)
    yield node.left
    yield node.right
    if isinstance(node.op, ast.Sub | ast.Div | ast.FloorDiv | ast.MatMult | ast.Pow):
        yield ast.BinOp(node.right, node.op, node.left)


def _of_and(node: ast.BoolOp) -> Iterator[ast.AST]:
    for other in _OPERATORS[type(node.op)]:
        yield ast.BoolOp(other(), node.values)


def _of_comparison(node: ast.Compare) -> Iterator[ast.AST]:
    if len(node.ops) == 1:
        for other in _OPERATORS.get(type(node.ops[0]), ()):
            yield ast.Compare(node.left, [other()], node.comparators)


def _of_sign(node: ast.UnaryOp) -> Iterator[ast.AST]:
    yield node.operand


def _of_choice(node: ast.IfExp) -> Iterator[ast.AST]:
    yield node.body
    yield node.orelse
    yield ast.IfExp(node.test, node.orelse, node.body)


def _of_constant(node: ast.Constant) -> Iterator[ast.AST]:
    match node.value:
        case bool() as value:
            others = [not value]
        case int() as value if value < 100:
            others = [value + 1, value - 1]
        case int() as value:
            others = [2 * value, value // 2]
        case float() as value:
            others = [2 * value, value / 2]
        case _:
            others = []
    yield from map(ast.Constant, others)


def _of_attribute(node: ast.Attribute) -> Iterator[ast.AST]:
    if node.attr in ("T", "mT"):
        yield node.value


def _of_slice(node: ast.Subscript) -> Iterator[ast.AST]:
    if isinstance(node.slice, ast.Slice):
        yield node.value


def _of_call(node: ast.Call) -> Iterator[ast.AST]:
    function, arguments = node.func, node.args
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    if name in _EXCHANGED:
        other = ast.unparse(function).removesuffix(name) + _EXCHANGED[name]
        yield ast.Call(ast.parse(other, mode="eval").body, arguments, node.keywords)
    else:
        for one, other in enumerate(arguments[1:]):
            yield ast.Call(function, [*arguments[:one], other, arguments[one], *arguments[one + 2 :]], node.keywords)
    if len(arguments) == 1 and name not in _SAME_CALLS and not isinstance(arguments[0], ast.GeneratorExp | ast.Starred):
        yield arguments[0]
    if not arguments and isinstance(function, ast.Attribute):
        yield function.value


_SLIPS_OF: dict[type[ast.AST], Callable[[Any], Iterator[ast.AST]]] = {
    ast.BinOp: _of_operation, ast.BoolOp: _of_and, ast.Compare: _of_comparison, ast.UnaryOp: _of_sign,
    ast.IfExp: _of_choice, ast.Constant: _of_constant, ast.Attribute: _of_attribute, ast.Subscript: _of_slice,
    ast.Call: _of_call,
}  # fmt: skip


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
        for key, holder, node in _places(statement):
            for other in _replacements(node):
                holder[key] = other
                text = ast.unparse(ast.fix_missing_locations(tree))
                line = _line(statement, other)
                holder[key] = node
                if text not in seen:
                    seen.add(text)
                    yield text, line


def _places(statement: ast.stmt) -> Iterator[tuple[int | str, Any, ast.AST]]:
    """Each node in a statement with what holds it: its key and the list, or the fields of its parent."""
    for parent in ast.walk(statement):
        for name, child in ast.iter_fields(parent):
            held = list(enumerate(child)) if isinstance(child, list) else [(name, child)]
            holder = child if isinstance(child, list) else vars(parent)
            yield from ((key, holder, node) for key, node in held if isinstance(node, ast.AST))


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
