"""Which lines of a cell a slide shows, and which of them wait for a key."""

import ast
from collections.abc import Iterable

# Calls that only reckon with what is there. What a line makes of it, a class can work out, and so it waits.
_RECKONS = {"abs", "enumerate", "float", "int", "len", "math.prod", "max", "min", "next", "range", "round", "sorted"}
_RECKONS |= {"specs.mfu", "str", "sum", "units.si", "zip"}
_RECALLED_LINES = 4  # of a definition: a longer one is not shown once more
_DATA = (ast.Dict, ast.List, ast.Set, ast.Tuple)


def lesson_code(source: str) -> str:
    """The code less its asserts, its guess, and its calls of `draw` and `explore`, whose picture says it all."""
    statements = ast.parse(source).body
    if all(isinstance(statement, ast.Assert) for statement in statements):  # then they are what the cell says
        return source
    hidden = {number for statement in statements if _is_hidden(statement) for number in _lines(statement)}
    return _squeezed(line for number, line in enumerate(source.splitlines(), start=1) if number not in hidden)


def asked_code(source: str) -> tuple[str, str]:
    """The code of a guess in two parts: what a class must see to answer, and what waits for a key with the answer.

    What is asked about is what the lines make and run; they are shown, with the data that they take. A line that only
    reckons with numbers gives the way to the answer, and waits.

    >>> asked_code("guess = ...  # a shape\\n\\nn = 3\\nx = torch.ones(n)\\nsize = 4 * n\\ncompare(guess, size)")
    ('n = 3\\nx = torch.ones(n)', 'size = 4 * n')
    """
    lines = dict(enumerate(source.splitlines(), start=1))
    tree = ast.parse(source)
    body = tree.body
    begins = [1, *(_lines(one).stop for one in body)]  # with the comments above it
    own = {one: range(begin, _lines(one).stop) for one, begin in zip(body, begins, strict=False)}
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    value = next(call.args[1] for call in calls if ast.unparse(call.func) == "compare")
    needed = _names(value) if _runs(value) else set()
    asked: list[int] = []  # numbers of lines
    waiting: list[int] = []
    for statement in reversed(body):
        if _is_hidden(statement) or ast.unparse(statement).endswith("= []"):
            continue
        is_asked = _is_asked(statement) or bool(_bound(statement) & needed)
        needed |= _names(statement) if is_asked else set()
        (asked if is_asked else waiting).extend(own[statement])
    first, second = (_squeezed(lines[number] for number in sorted(part)) for part in (asked, waiting))
    return first, second


class Definitions:
    """What the code so far has defined, to be shown once more where a guess is about it."""

    def __init__(self) -> None:
        self.statements: dict[str, str] = {}  # by the name that is defined

    def add(self, source: str) -> None:
        """Remember what the code of a cell defines."""
        lines = source.splitlines()
        for statement in ast.parse(source).body:
            for name in _defined(statement):
                self.statements[name] = _squeezed(lines[number - 1] for number in _lines(statement))

    def recalled(self, names: set[str]) -> list[str]:
        """The statements that define these names, and the numbers that they are made with, in their order."""
        found = [self.statements[name] for name in names if name in self.statements]
        inner = {name for statement in found for name in _names(ast.parse(statement)) if self._is_number(name)}
        wanted = {self.statements[name] for name in inner | (names & self.statements.keys())}
        in_order = dict.fromkeys(one for one in self.statements.values() if one in wanted)
        return [one for one in in_order if one.count("\n") < _RECALLED_LINES and "device = " not in one]

    def _is_number(self, name: str) -> bool:
        """Whether a name stands for a number, or is one of several that were given numbers together."""
        defined = ast.parse(self.statements.get(name, "")).body
        value = defined[0].value if defined and isinstance(defined[0], ast.Assign) else None
        parts = value.elts if isinstance(value, ast.Tuple) else [value]
        return all(isinstance(part, ast.Constant) for part in parts)


def free_names(source: str) -> set[str]:
    """The names that code uses, but does not define."""
    tree = ast.parse(source)
    defined = {name for statement in tree.body for name in _defined(statement)}
    return _names(tree) - _bound(tree) - defined


def _defined(statement: ast.stmt) -> set[str]:
    """The names that a statement defines."""
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return {statement.name}
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return {name for target in targets for name in _names(target)} if all(map(_is_plain, targets)) else set()


def _is_plain(target: ast.expr) -> bool:
    """Whether an assignment gives something a name, and does not change a part of it."""
    return isinstance(target, (ast.Name, ast.Tuple))


def _is_hidden(statement: ast.stmt) -> bool:
    """Whether a slide never shows it."""
    calls = ("draw.", "explore.", "guess = ...", "compare(", "title = ")
    return isinstance(statement, ast.Assert) or ast.unparse(statement).startswith(calls)


def _is_asked(statement: ast.stmt) -> bool:
    """Whether a guess asks about what a statement does: it runs something, or it lists data."""
    if not isinstance(statement, ast.Assign):
        return True
    is_list = isinstance(statement.value, _DATA) and not isinstance(statement.targets[0], ast.Tuple)
    return _runs(statement.value) or (is_list and bool(list(ast.iter_child_nodes(statement.value))[1:]))


def _runs(expression: ast.expr) -> bool:
    """Whether an expression calls more than what reckons."""
    calls = [ast.unparse(node.func) for node in ast.walk(expression) if isinstance(node, ast.Call)]
    return any(call not in _RECKONS and not call.endswith("'.join") for call in calls)


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def _bound(node: ast.AST) -> set[str]:
    """The names to which something is assigned, loops included."""
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}


def _lines(statement: ast.stmt) -> range:
    """The numbers of the lines of a statement."""
    first = min([statement.lineno, *(one.lineno for one in getattr(statement, "decorator_list", []))])
    return range(first, (statement.end_lineno or first) + 1)


def _squeezed(lines: Iterable[str]) -> str:
    """The lines, with no more than one empty line between two."""
    kept: list[str] = []
    for line in lines:
        if line.strip() or (kept and kept[-1].strip()):
            kept.append(line)
    return "\n".join(kept).strip("\n")
