"""Programs that are one step away from another: the slips of a right one, and what mends a wrong one.

An edit puts another node of the syntax tree in the place of one. `slips_at` makes the likely slips of one node, with
what it knows alone; `misplaced_at` what is there, and in the wrong order; `mends_at` what else may mend one, with the
names of the function.
"""

import ast
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeGuard

# fmt: off
_OPERATORS: dict[type[ast.AST], tuple[type[Any], ...]] = {
    ast.Add: (ast.Sub,), ast.Sub: (ast.Add,), ast.Mult: (ast.Div, ast.Add), ast.Div: (ast.Mult, ast.FloorDiv),
    ast.FloorDiv: (ast.Div, ast.Mult), ast.Mod: (ast.FloorDiv,), ast.Pow: (ast.Mult,), ast.MatMult: (ast.Mult,),
    ast.Lt: (ast.LtE, ast.Gt), ast.LtE: (ast.Lt, ast.GtE), ast.Gt: (ast.GtE, ast.Lt), ast.GtE: (ast.Gt, ast.LtE),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.And: (ast.Or,), ast.Or: (ast.And,),
}
_MORE_OPERATORS: dict[type[ast.AST], tuple[type[ast.operator], ...]] = {
    ast.Add: (ast.Mult,), ast.Mult: (ast.Pow, ast.Sub, ast.MatMult), ast.Div: (ast.Sub,), ast.FloorDiv: (ast.Mod,),
    ast.Sub: (ast.Div, ast.Mult), ast.BitXor: (ast.Pow,),
}
# fmt: on
_EXCHANGED = {"floor": "ceil", "ceil": "floor", "max": "min", "min": "max"}
_SAME_CALLS = {"tuple", "list", "float", "set", "sorted"}  # any spelling of a value is accepted
_ROUNDINGS = {"floor": "math.floor", "ceil": "math.ceil", "int": "int", "round": "round"}
_REDUCTIONS = ("sum", "mean", "amax", "amin", "prod")
_EINOPS_REDUCTIONS = ("mean", "sum", "max", "min")
_LOGARITHMS = ("log", "log2", "log10")
_DIMENSIONS = range(-3, 4)


class Replacement(NamedTuple):
    """What may stand in the place of a node, and the kind of edit, as a learner would call it."""

    kind: str
    node: ast.AST


class Place(NamedTuple):
    """A node in a tree, with what holds it: its key and the list, or the fields of its parent."""

    key: int | str
    holder: Any
    node: ast.AST


def places(tree: ast.AST) -> Iterator[Place]:
    """Each node below the tree."""
    for parent in ast.walk(tree):
        for name, child in ast.iter_fields(parent):
            held = list(enumerate(child)) if isinstance(child, list) else [(name, child)]
            holder = child if isinstance(child, list) else vars(parent)
            yield from (Place(key, holder, node) for key, node in held if isinstance(node, ast.AST))


# ---- Slips.


def slips_at(node: ast.AST) -> Iterator[Replacement]:
    """The slips at one node: what stands in its place instead."""
    kind, slips = _SLIPS_OF.get(type(node), ("", None))
    if slips:
        yield from (Replacement(_kind(kind, node, other), other) for other in slips(node))


def _kind(kind: str, node: ast.AST, other: ast.AST) -> str:
    """Of an operation or a call, whether a part of it is left out, it is another one, or its parts are exchanged."""
    match node, other:
        case ast.BinOp(left=left, right=right), _ if other in (left, right):
            return "unit" if _is_unit(right if other is left else left) else "superfluous"
        case ast.BinOp(right=right), ast.BinOp(left=first):
            return "order" if first is right else "operator"
        case ast.Call(func=function), ast.Call(func=same) if same is function and other not in node.args:
            return "order"
        case ast.Call(func=function), ast.Call() if other not in node.args and other is not _called_on(function):
            return "rounding" if called(node) in ("floor", "ceil") else "call"
        case ast.Call(), _:
            return "superfluous"
        case _:
            return kind


def _called_on(function: ast.expr) -> ast.expr | None:
    return function.value if isinstance(function, ast.Attribute) else None


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
    others: list[float]
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
    name = called(node)
    if name in _EXCHANGED:
        other = ast.unparse(function).removesuffix(name) + _EXCHANGED[name]
        yield ast.Call(ast.parse(other, mode="eval").body, arguments, node.keywords)
    else:
        for one, other_argument in enumerate(arguments[1:]):
            exchanged = [*arguments[:one], other_argument, arguments[one], *arguments[one + 2 :]]
            yield ast.Call(function, exchanged, node.keywords)
    if len(arguments) == 1 and name not in _SAME_CALLS and not isinstance(arguments[0], ast.GeneratorExp | ast.Starred):
        yield arguments[0]
    if not arguments and isinstance(function, ast.Attribute):
        yield function.value


def called(node: ast.Call) -> str:
    """The last name of what is called."""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


_SLIPS_OF: dict[type[ast.AST], tuple[str, Callable[[Any], Iterator[ast.AST]]]] = {
    ast.BinOp: ("operation", _of_operation), ast.BoolOp: ("condition", _of_and),
    ast.Compare: ("comparison", _of_comparison), ast.UnaryOp: ("sign", _of_sign),
    ast.IfExp: ("condition", _of_choice), ast.Constant: ("number", _of_constant),
    ast.Attribute: ("transpose", _of_attribute), ast.Subscript: ("slice", _of_slice), ast.Call: ("call", _of_call),
}  # fmt: skip


# ---- What is in the wrong place.

_UNITS = {1e3, 1e6, 1e9, 1e12, 2**10, 2**20, 2**30, 2**40}
_LARGEST_UNPACKED = 4  # names whose orders are tried
_RESHAPES = ("reshape", "view", "flatten", "unflatten")


def misplaced_at(node: ast.AST, letters: Sequence[str]) -> Iterator[Replacement]:
    """What may stand in the place of a node where all is there, but not in its order; or a unit too many.

    `letters` are the names in the program's patterns for einops, which a size may be given to.
    """
    misplaced = _MISPLACED_OF.get(type(node))
    if misplaced:
        yield from misplaced(node)
    if isinstance(node, ast.Call) and any(keyword.arg in letters for keyword in node.keywords):
        yield from _sizes_renamed(node, letters)


def _is_unit(node: ast.AST) -> bool:
    """Whether it is what one multiplies by to get to another unit: 1e9, 10**9, 2**30."""
    match node:
        case ast.Constant(value=int() | float() as number):
            return number in _UNITS
        case ast.BinOp(
            left=ast.Constant(value=int() | float() as base), op=ast.Pow(), right=ast.Constant(value=int() as exponent)
        ):
            return exponent < 50 and base**exponent in _UNITS
        case _:
            return False


def _operations_regrouped(node: ast.BinOp) -> Iterator[Replacement]:
    """a / b * c as a / (b * c), and a * (b + c) as a * b + c; units left out; a power for ^."""
    if isinstance(node.op, ast.BitXor):
        yield Replacement("caret", ast.BinOp(node.left, ast.Pow(), node.right))
        yield from _powers_within(node)
    if isinstance(node.op, ast.Mult | ast.Div | ast.FloorDiv):
        sides = ((node.left, node.right), (node.right, node.left))
        yield from (Replacement("unit", kept) for kept, dropped in sides if _is_unit(dropped))
    yield from (Replacement("brackets", other) for other in _brackets_behind(node.left, [(node.op, node.right)]))
    match node.right:
        case ast.BinOp(left=middle, op=operator, right=last):
            yield Replacement("brackets", ast.BinOp(ast.BinOp(node.left, node.op, middle), operator, last))


def _brackets_behind(left: ast.expr, behind: Sequence[tuple[ast.operator, ast.expr]]) -> Iterator[ast.BinOp]:
    """A chain of operations with all but its first operand in brackets; of a longer chain, each end of it."""
    match left:
        case ast.BinOp(left=first, op=operator, right=bracket):
            end: list[tuple[ast.operator, ast.expr]] = [(operator, bracket), *behind]
            for other, operand in behind:
                bracket = ast.BinOp(bracket, other, operand)
            yield ast.BinOp(first, operator, bracket)
            yield from _brackets_behind(first, end)


def _powers_within(node: ast.BinOp) -> Iterator[Replacement]:
    """2 ^ n - 1, which compares 2 with n - 1, as 2**n - 1."""
    match node.right:
        case ast.BinOp(left=exponent, op=operator, right=last):
            yield Replacement("caret", ast.BinOp(ast.BinOp(node.left, ast.Pow(), exponent), operator, last))


def _names_reordered(node: ast.Tuple) -> Iterator[Replacement]:
    if isinstance(node.ctx, ast.Store) and len(node.elts) <= _LARGEST_UNPACKED:
        orders = itertools.islice(itertools.permutations(node.elts), 1, None)
        yield from (Replacement("unpacked", ast.Tuple(list(order), ast.Store())) for order in orders)


def _numbers_moved(node: ast.Call) -> Iterator[Replacement]:
    """A dimension moved before, or behind, a reshape."""
    function = node.func
    if isinstance(function, ast.Attribute) and function.attr in _RESHAPES:
        yield from (Replacement("reshape", other) for other in _moved(node, function))


def _sizes_renamed(node: ast.Call, letters: Sequence[str]) -> Iterator[Replacement]:
    """A size that is given to another name, or two that are exchanged."""
    function = node.func
    for (one, first), (other, second) in itertools.combinations(enumerate(node.keywords), 2):
        exchanged = list(node.keywords)
        exchanged[one], exchanged[other] = ast.keyword(first.arg, second.value), ast.keyword(second.arg, first.value)
        yield Replacement("size", ast.Call(function, node.args, exchanged))
    for place, keyword in enumerate(node.keywords):
        for name in letters:
            if name != keyword.arg:
                given = [*node.keywords[:place], ast.keyword(name, keyword.value), *node.keywords[place + 1 :]]
                yield Replacement("size", ast.Call(function, node.args, given))


def _moved(node: ast.Call, function: ast.Attribute) -> Iterator[ast.AST]:
    sizes = node.args
    for dim in range(4):
        turned = _transposed(function.value, dim)
        name = "reshape" if function.attr == "view" else function.attr
        yield ast.Call(ast.Attribute(turned, name, ast.Load()), sizes, node.keywords)
        if function.attr in ("reshape", "view") and dim + 1 < len(sizes):
            exchanged = [*sizes[:dim], sizes[dim + 1], sizes[dim], *sizes[dim + 2 :]]
            yield _transposed(ast.Call(function, exchanged, []), dim)


def _transposed(value: ast.expr, dim: int) -> ast.Call:
    return ast.Call(ast.Attribute(value, "transpose", ast.Load()), [ast.Constant(dim), ast.Constant(dim + 1)], [])


_MISPLACED_OF: dict[type[ast.AST], Callable[[Any], Iterator[Replacement]]] = {
    ast.BinOp: _operations_regrouped, ast.Tuple: _names_reordered, ast.Call: _numbers_moved,
}  # fmt: skip


# ---- What need not be there.


def needless_at(node: ast.AST) -> Iterator[Replacement]:
    """A condition, or a part of one, left out; a loop that does not end early. No slip of a right program."""
    match node:
        case ast.BoolOp(op=op, values=values):
            for place in range(len(values)):
                kept = [*values[:place], *values[place + 1 :]]
                yield Replacement("superfluous", ast.BoolOp(op, kept) if len(kept) > 1 else kept[0])
        case ast.If(body=body, orelse=orelse):
            yield Replacement("case", ast.If(ast.Constant(False), body, orelse))
        case ast.Break():
            yield Replacement("loop", ast.Continue())


# ---- What else may mend a wrong program.


def mends_at(node: ast.AST, names: Sequence[str]) -> Iterator[Replacement]:
    """What may stand in the place of a node where names, numbers or patterns were taken for others."""
    mends = _MENDS_OF.get(type(node))
    if mends:
        yield from mends(node, names)


def _operation_mends(node: ast.BinOp, names: Sequence[str]) -> Iterator[Replacement]:
    for other in _MORE_OPERATORS.get(type(node.op), ()):
        yield Replacement("operator", ast.BinOp(node.left, other(), node.right))
    if isinstance(node.op, ast.FloorDiv):
        yield Replacement("rounding", _rounded(ast.BinOp(node.left, ast.Div(), node.right), "ceil"))


def _augmented_mends(node: ast.AugAssign, names: Sequence[str]) -> Iterator[Replacement]:
    for other in _OPERATORS.get(type(node.op), ()):
        yield Replacement("operator", ast.AugAssign(node.target, other(), node.value))  # type: ignore[arg-type]


def _name_mends(node: ast.Name, names: Sequence[str]) -> Iterator[Replacement]:
    if isinstance(node.ctx, ast.Load) and node.id in names:
        for other in names:
            if other != node.id:
                yield Replacement("name", ast.Name(other, ast.Load()))
        for number in (1, 2):  # which may take away the effect of what is around it
            yield Replacement("value", ast.Constant(number))
        for other in names:
            if other != node.id:
                shape = ast.Attribute(ast.Name(other, ast.Load()), "shape", ast.Load())
                yield from (Replacement("name", ast.Subscript(shape, ast.Constant(dim), ast.Load())) for dim in (0, -1))


def _constant_mends(node: ast.Constant, names: Sequence[str]) -> Iterator[Replacement]:
    value = node.value
    if isinstance(value, str):
        kind = "pattern" if "->" in value else "reduction"
        yield from (Replacement(kind, ast.Constant(text)) for text in _patterns(value))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from (Replacement("number", ast.Name(name, ast.Load())) for name in names)
        others = {
            2 * value,
            value / 2,
            4 * value,
            value / 4,
            1.5 * value,
            0.75 * value,
            -value,
            value + 1,
            value - 1,
        } | set(_DIMENSIONS)
        others |= {1 / value} if value else set()
        yield from (Replacement("number", ast.Constant(_plain(other))) for other in others if other != value)


def _plain(number: float) -> float:
    return int(number) if float(number).is_integer() else number


def _call_mends(node: ast.Call, names: Sequence[str]) -> Iterator[Replacement]:
    name, function = called(node), node.func
    for other in _LOGARITHMS if name in _LOGARITHMS and len(node.args) < 2 else ():
        text = ast.unparse(function).removesuffix(name) + other
        yield Replacement("call", ast.Call(ast.parse(text, mode="eval").body, node.args, []))
    if name in _REDUCTIONS:
        before = ast.unparse(function).removesuffix(name)
        texts = {other: before + other for other in _REDUCTIONS}
        kind = "reduction"
    elif name in _ROUNDINGS:
        texts, kind = _ROUNDINGS, "rounding"
    else:
        return
    if name in _ROUNDINGS and len(node.args) == 1:
        match node.args[0]:
            case ast.BinOp(left=left, op=ast.Add(), right=ast.Constant(value=0.5)):
                yield Replacement(kind, ast.Call(ast.Name("round", ast.Load()), [left], []))
    for other, text in texts.items():
        if other != name:
            yield Replacement(kind, ast.Call(ast.parse(text, mode="eval").body, node.args, node.keywords))


def _comparison_mends(node: ast.Compare, names: Sequence[str]) -> Iterator[Replacement]:
    """A second end: low < x < high."""
    if len(node.ops) == 1:
        for name in names:
            end = ast.Name(name, ast.Load())
            yield Replacement("ends", ast.Compare(node.left, node.ops * 2, [*node.comparators, end]))
            yield Replacement("ends", ast.Compare(end, node.ops * 2, [node.left, *node.comparators]))


_MENDS_OF: dict[type[ast.AST], Callable[[Any, Sequence[str]], Iterator[Replacement]]] = {
    ast.BinOp: _operation_mends, ast.AugAssign: _augmented_mends, ast.Name: _name_mends,
    ast.Constant: _constant_mends, ast.Call: _call_mends, ast.Compare: _comparison_mends,
}  # fmt: skip


def _patterns(text: str) -> Iterator[str]:
    """The patterns of einops with two names of one side exchanged, or one left out behind the arrow; reductions."""
    if text in _EINOPS_REDUCTIONS:
        yield from (other for other in _EINOPS_REDUCTIONS if other != text)
    if "->" not in text:
        return
    spans = [match.span() for match in re.finditer(r"[\w.]+", text)]
    arrow = text.index("->")
    for one, (start, end) in enumerate(spans):
        for later_start, later_end in spans[one + 1 :]:
            if (start < arrow) == (later_start < arrow):
                first, second = text[start:end], text[later_start:later_end]
                yield text[:start] + second + text[end:later_start] + first + text[later_end:]
        if start > arrow:
            yield text[:start] + text[end:]


# ---- What is missing.


def ends_at(node: ast.AST) -> Iterator[Replacement]:
    """A node with one more, or one less."""
    if _is_value(node):
        yield from (Replacement("end", ast.BinOp(node, turn, ast.Constant(1))) for turn in (ast.Add(), ast.Sub()))


def additions_at(node: ast.AST) -> Iterator[Replacement]:
    """A node with something added to it: a rounding of a quotient, a transpose, a sign."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        yield from (Replacement("rounding", _rounded(node, turn)) for turn in ("floor", "ceil"))
    if _is_value(node) and isinstance(node, ast.BinOp | ast.Name | ast.Call):
        yield Replacement("transpose", ast.Attribute(node, "mT", ast.Load()))
        yield Replacement("sign", ast.UnaryOp(ast.USub(), node))


def factors_at(node: ast.AST, names: Sequence[str]) -> Iterator[Replacement]:
    """A node times, or over, one of these names."""
    if _is_value(node):
        for name, operator in itertools.product(names, (ast.Mult(), ast.Div())):
            yield Replacement("factor", ast.BinOp(node, operator, ast.Name(name, ast.Load())))


def _is_value(node: ast.AST) -> TypeGuard[ast.expr]:
    """Whether it is an expression that something may be added to."""
    is_read = isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
    return is_read and isinstance(node, ast.BinOp | ast.Name | ast.Constant | ast.Call | ast.Subscript)


def _rounded(node: ast.expr, turn: str) -> ast.AST:
    return ast.Call(ast.parse(f"math.{turn}", mode="eval").body, [node], [])
