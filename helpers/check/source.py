"""A learner's own source as a tree: to be read, and to be run with an edit in it."""

import ast
import builtins
import copy
import inspect
import math
import re
import textwrap
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from types import FunctionType
from typing import Any

from helpers.check.attempt import Attempt

_LONGEST_RANGE = 1_000_000
_LARGEST_POWER = 10_000  # bits of an integer


@dataclass(frozen=True)
class Source:
    """A function's source as a tree, the line before its first, and the names that it finds when it runs."""

    tree: ast.Module
    function: ast.FunctionDef
    text: str
    before: int
    namespace: Mapping[str, Any]

    @classmethod
    def of(cls, learner: Any) -> "Source | None":
        """The source of a function, if it is known."""
        learner = inspect.unwrap(learner)
        if not isinstance(learner, FunctionType):
            return None
        try:
            lines, first = inspect.getsourcelines(learner)
            text = textwrap.dedent("".join(lines))
            tree = ast.parse(text)
        except (OSError, TypeError, SyntaxError, ValueError):
            return None
        function = _definition(tree, learner)
        if not function:
            return None
        function.decorator_list = []
        return cls(ast.Module([function], []), function, text, max(first - 1, 0), _namespace(learner))

    @property
    def names(self) -> list[str]:
        """The arguments, and what the function assigns."""
        arguments = [argument.arg for argument in self.function.args.args]
        nodes = [node for node in ast.walk(self.function) if isinstance(node, ast.Name)]
        return list(dict.fromkeys([*arguments, *(n.id for n in nodes if isinstance(n.ctx, ast.Store))]))

    @property
    def letters(self) -> list[str]:
        """The names on the left of all its patterns for einops."""
        texts = [node.value for node in ast.walk(self.function) if isinstance(node, ast.Constant)]
        patterns = [text.partition("->")[0] for text in texts if isinstance(text, str) and "->" in text]
        return list(dict.fromkeys(re.findall(r"\w+", " ".join(patterns))))

    def compiled(self) -> Callable[..., Any]:
        """The function as the tree has it now. Raises SyntaxError, ValueError or TypeError for what is no program."""
        tree = _Guarded().visit(copy.deepcopy(self.tree))
        namespace = dict(self.namespace)
        exec(compile(ast.fix_missing_locations(tree), "<edited>", "exec"), namespace)
        return namespace[self.function.name]


def source_of(attempt: Attempt) -> Source | None:
    """The source of the learner's function; None for a value, and where it is not known."""
    return Source.of(attempt.answer.learner) if attempt.answer else None


def _definition(tree: ast.Module, learner: FunctionType) -> ast.FunctionDef | None:
    """The function in its source; that of a lambda as if it had been written with `def`."""
    if len(tree.body) == 1 and isinstance(tree.body[0], ast.FunctionDef):
        return tree.body[0]
    names = learner.__code__.co_varnames[: learner.__code__.co_argcount]
    lambdas = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda)]
    found = [node for node in lambdas if tuple(argument.arg for argument in node.args.args) == names]
    if len(found) != 1:
        return None
    (definition,) = ast.parse("def answer(): return 0").body
    assert isinstance(definition, ast.FunctionDef)
    result = ast.copy_location(ast.Return(found[0].body), found[0].body)
    definition.args, definition.body = found[0].args, [result]
    return ast.copy_location(definition, found[0])


def _namespace(learner: FunctionType) -> dict[str, Any]:
    cells = zip(learner.__code__.co_freevars, learner.__closure__ or (), strict=True)
    closed = {}
    for name, cell in cells:
        with suppress(ValueError):
            closed[name] = cell.cell_contents
    return {"math": math, "range": _range, "_power": _power, "_times": _times} | learner.__globals__ | closed


# ---- Edited programs must not do what cannot be stopped: huge powers and lists, loops in compiled code.


class _Guarded(ast.NodeTransformer):
    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        guard = {ast.Pow: "_power", ast.Mult: "_times"}.get(type(node.op))
        return ast.Call(ast.Name(guard, ast.Load()), [node.left, node.right], []) if guard else node


def _power(base: Any, exponent: Any) -> Any:
    if isinstance(base, int | Fraction) and isinstance(exponent, int):
        bits = max(base.numerator.bit_length(), base.denominator.bit_length())
        if abs(exponent) * bits > _LARGEST_POWER:
            raise OverflowError("too large a power")
    return base**exponent


def _times(one: Any, other: Any) -> Any:
    if isinstance(one, tuple | list | str) or isinstance(other, tuple | list | str):
        raise TypeError("nothing is repeated here")
    return one * other


def _range(*arguments: Any) -> range:
    numbers = builtins.range(*arguments)
    if len(numbers) > _LONGEST_RANGE:
        raise OverflowError("too long a range")
    return numbers
