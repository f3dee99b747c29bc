"""The nearest slip: the one place of a learner's own source where a single edit makes it right in every case."""

import ast
import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from helpers.check.answers import difference
from helpers.check.attempt import Attempt, Call
from helpers.check.costs import counted_cost, known_costs, scored
from helpers.check.edits import (
    Place,
    Replacement,
    additions_at,
    called,
    ends_at,
    factors_at,
    mends_at,
    misplaced_at,
    needless_at,
    places,
    slips_at,
)
from helpers.check.run import SECONDS as RUN_SECONDS
from helpers.check.run import call, memory_limited
from helpers.check.runner import OutOfTime
from helpers.check.source import Source, source_of
from helpers.check.wording import printable

SECONDS = 4.0  # of its own that the search may take, and on a clock at most three times as many
_SHARE = 0.6  # of the time that is left for a diagnosis: the rules that come after it need some, too
_OF_ONE = 0.3  # seconds of its own that one edited program may take
_OF_RIGHT_ONE = 3.0  # and one that is right in all calls that were judged, in further ones
_TELLING = 6  # characters of a place that is found again: -1 is not
_MEMORY = 2 * 2**30  # bytes that the edited programs may take
_TELLING_OF = {
    "operator": "look at the {} once more.",
    "condition": "look at the condition once more.",
    "comparison": "look at the {} once more.",
    "sign": "is its sign right?",
    "number": "look at the {} once more.",
    "transpose": "does it need turning, or not?",
    "slice": "look at the slice once more.",
    "call": "is {} the one that belongs there?",
    "superfluous": "is all of it needed?",
    "unit": "which unit does it have already?",
    "order": "which of the two comes first?",
    "brackets": "what is computed first there? Mind the brackets.",
    "unpacked": "in which order do they come?",
    "reshape": "a reshape moves no number: are the dimensions in the right order before and behind it?",
    "size": "which name has that size?",
    "caret": "in Python ^ is no power: a power is written **.",
    "ends": "is a comparison with one end enough?",
    "name": "is {} the one that belongs there?",
    "pattern": "look at the pattern once more.",
    "rounding": "how is it rounded?",
    "reduction": "which reduction is it?",
    "factor": "is a factor missing, or one too many?",
    "end": "one more or one less: where does it begin and end?",
    "exponent": "look at the exponent once more.",
    "case": "is that a case of its own?",
    "loop": "does the loop end too early there?",
}
_LEFT_OUT = ("superfluous", "unit", "case")  # kinds of edits that leave something out
_ADDED = ("sign", "factor")  # kinds of edits that may work by luck within a comparison or an index


class _Deadline(NamedTuple):
    cpu: float
    clock: float

    @property
    def is_over(self) -> bool:
        return time.process_time() > self.cpu or time.perf_counter() > self.clock


class _Found(NamedTuple):
    kind: str
    place: ast.AST
    is_all: bool  # whether it costs no more than it may, too
    left_out: list[ast.AST]  # what is in the place, and not in what stands there instead


_Edits = Callable[[ast.AST], Iterator[Replacement]]


def misplaced(attempt: Attempt) -> str | None:
    """What is all there, but in the wrong order: brackets, names, calls. Few edits, and telling ones."""
    source = source_of(attempt)
    return _nearest(attempt, source, [partial(misplaced_at, letters=source.letters)]) if source else None


def nearest_slip(attempt: Attempt) -> str | None:
    """The place where one edit of the source makes the answer right in every case, and its kind; never the edit."""
    source = source_of(attempt)
    if not source:
        return None
    likeliest_first: list[_Edits] = [
        _slips_at,
        ends_at,
        partial(mends_at, names=source.names),
        additions_at,
        partial(_local_factors_at, source=source),
    ]
    return _nearest(attempt, source, likeliest_first)


def _slips_at(node: ast.AST) -> Iterator[Replacement]:
    yield from needless_at(node)
    yield from slips_at(node)


def _local_factors_at(node: ast.AST, source: Source) -> Iterator[Replacement]:
    """A factor that the function has computed itself, missing in what it returns."""
    arguments = [argument.arg for argument in source.function.args.args]
    returned = [inner.value for inner in ast.walk(source.function) if isinstance(inner, ast.Return)]
    if any(node is value for value in returned):
        yield from factors_at(node, [name for name in source.names if name not in arguments])


def _nearest(attempt: Attempt, source: Source, kinds: Sequence[_Edits]) -> str | None:
    left = attempt.answer.place.until - time.perf_counter() if attempt.answer else math.inf
    deadline = _Deadline(time.process_time() + SECONDS, time.perf_counter() + min(3 * SECONDS, _SHARE * left))
    try:
        with warnings.catch_warnings(), memory_limited(_MEMORY):
            warnings.simplefilter("ignore")
            found = next(filter(None, (_mending(attempt, source, edits, deadline) for edits in kinds)), None)
    except OutOfTime:
        return None
    finally:
        if attempt.answer:
            attempt.answer.place.renew(RUN_SECONDS)  # for the rules that come after this one
    return _sentence(source, found) if found else None


def _mending(attempt: Attempt, source: Source, edits: _Edits, deadline: _Deadline) -> list[_Found]:
    """The edits of one kind that make it right. Raises OutOfTime where not all could be tried."""
    found = []
    for place in places(ast.Module(source.function.body, [])):
        for edit in edits(place.node):
            if deadline.is_over:
                raise OutOfTime
            found += _mended(attempt, source, place, edit)
    if deadline.is_over:  # so that the last ones may have been refused for that
        raise OutOfTime
    return _without_degenerate(found)


def _mended(attempt: Attempt, source: Source, place: Place, edit: Replacement) -> list[_Found]:
    """The edit, if it makes the answer right."""
    place.holder[place.key] = edit.node
    try:
        function = source.compiled()
    except (SyntaxError, ValueError, TypeError, NameError):
        return []
    finally:
        place.holder[place.key] = place.node
    if attempt.answer:
        function = attempt.answer.picked(function)
    if attempt.costs and not _is_cheap(attempt, function):
        return []
    judged, further = attempt.calls[: len(attempt.outcomes)], attempt.calls[len(attempt.outcomes) :]
    wrong_first = sorted(judged, key=lambda one: one.is_right)  # most edits fail there
    if not _holds(attempt, partial(_is_right, attempt, function, wrong_first)):
        return []
    if not _holds(attempt, partial(_is_right, attempt, function, further), _OF_RIGHT_ONE):
        return []
    is_all = not attempt.exercise.cost or bool(attempt.costs) or _is_cheap(attempt, function)
    shown = place.node.test if isinstance(place.node, ast.If) else place.node
    return [_Found(edit.kind, shown, is_all, _left_out(place.node, edit))]


def _left_out(node: ast.AST, edit: Replacement) -> list[ast.AST]:
    """What is in a node, and not in what stands there instead: a condition, or the smaller part of an expression."""
    is_condition = isinstance(node, ast.If | ast.BoolOp)
    if not is_condition and 2 * len(ast.unparse(edit.node)) < len(ast.unparse(node)):
        return []
    kept = set() if edit.kind == "case" else set(map(id, ast.walk(edit.node)))
    return [inner for inner in ast.walk(node) if id(inner) not in kept] if edit.kind in _LEFT_OUT else []


def _without_degenerate(found: list[_Found]) -> list[_Found]:
    """Without edits inside of what may as well be left out: these only take away its effect."""
    needless = {id(node): one.kind for one in found for node in one.left_out}
    return [one for one in found if needless.get(id(one.place), one.kind) == one.kind]


def _holds(attempt: Attempt, condition: Callable[[], bool], seconds: float = _OF_ONE) -> bool:
    """Whether something holds of an edited program, as far as a short time tells."""
    try:
        return bool(attempt.answer and attempt.answer.place.run_briefly(condition, seconds))
    except Exception:
        return False


def _is_right(attempt: Attempt, function: Callable[..., Any], calls: Sequence[Call]) -> bool:
    exercise = attempt.exercise
    return all(difference(call(exercise, function, one.arguments), one.right, exercise) is None for one in calls)


def _is_cheap(attempt: Attempt, function: Callable[..., Any]) -> bool:
    """Whether it costs no more than it may in any scored call, those first that cost the most too much."""
    exercise = attempt.exercise
    enough = known_costs(exercise, exercise.oracle)
    mine = attempt.costs or enough
    order = sorted(range(len(enough)), key=lambda index: -mine[index] / max(enough[index], 1))

    def all_cheap() -> bool:
        cases = [scored(exercise)[index] for index in order]
        costs = (counted_cost(exercise, function, case) for case in cases)
        allowed = (exercise.allowed_ratio * enough[index] for index in order)
        return all(cost <= most for cost, most in zip(costs, allowed, strict=True))

    return _holds(attempt, all_cheap)


# ---- What is said of it.


def _sentence(source: Source, found: Sequence[_Found]) -> str | None:
    place = _common(source.function, [one.place for one in found])
    if place is None:
        return None
    shown, is_exponent = _shown(source.function, place)
    words = _TELLING_OF["exponent"] if is_exponent else _words(source, found)
    segment = printable(ast.get_source_segment(source.text, shown) or ast.unparse(shown), str, 60)
    line = getattr(shown, "lineno", 1)
    where = f"Line {line + source.before}, " if len(source.function.body) > 1 else ""
    rest = "All else is right." if all(one.is_all for one in found) else "The rest makes the right numbers."
    return f"{where}`{segment}`: {words} {rest}"


def _words(source: Source, found: Sequence[_Found]) -> str:
    """What to look at: for several edits, no more than what they have in common; of a lucky one, the place alone."""
    kinds, places = {one.kind for one in found}, {id(one.place) for one in found}
    if kinds <= set(_ADDED) and _is_in_condition(source, found[0].place):
        return "look at it once more."
    words = _TELLING_OF.get(found[0].kind, "") if len(kinds) == 1 else ""
    thing = _thing(found[0].place) if len(places) == 1 else ""
    if not words or ("{}" in words and not thing):
        return "look at it once more, step by step."
    return words.replace("{}", f"`{thing}`")


def _is_in_condition(source: Source, place: ast.AST) -> bool:
    """Whether a place is in a comparison or an index."""
    nodes = [node for node in ast.walk(source.function) if isinstance(node, ast.Compare | ast.Subscript)]
    return any(_is_in(place, node.slice if isinstance(node, ast.Subscript) else node) for node in nodes)


def _thing(node: ast.AST) -> str:
    """The number, the name, or the sign of an operation, as it is written."""
    match node:
        case ast.Constant() | ast.Name():
            return ast.unparse(node)
        case ast.Call():
            return called(node)
        case ast.AugAssign(op=op):
            return f"{_sign(op)}="
        case ast.BinOp(op=op) | ast.Compare(ops=[op, *_]):
            return _sign(op)
        case _:
            return ""


def _sign(op: ast.operator | ast.cmpop) -> str:
    """An operator as it is written."""
    one, other = ast.Name("a"), ast.Name("b")
    whole = ast.BinOp(one, op, other) if isinstance(op, ast.operator) else ast.Compare(one, [op], [other])
    return ast.unparse(whole).removeprefix("a ").removesuffix(" b")


def _common(function: ast.FunctionDef, nodes: Sequence[ast.AST]) -> ast.AST | None:
    """The smallest expression that holds all these nodes; None where they are in several lines."""
    expressions = [node for node in ast.walk(function) if isinstance(node, ast.expr | ast.AugAssign | ast.Break)]
    holding = [node for node in expressions if all(_is_in(one, node) for one in nodes)]
    return holding[-1] if holding else None


def _is_exponent(place: ast.AST, exponent: ast.AST) -> bool:
    """Whether a place is in an exponent itself, and not in a call that it makes."""
    calls = [node for node in ast.walk(exponent) if isinstance(node, ast.Call)]
    return _is_in(place, exponent) and not any(_is_in(place, one) for one in calls)


def _is_in(place: ast.AST, node: ast.AST) -> bool:
    return any(one is place for one in ast.walk(node))


def _shown(function: ast.FunctionDef, place: ast.AST) -> tuple[ast.AST, bool]:
    """A place with the operation around it, so that one sees which is meant, and whether it is an exponent."""
    for node in ast.walk(function):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and _is_exponent(place, node.right):
            return node, True
    around = [node for node in ast.walk(function) if isinstance(node, ast.expr) and _is_in(place, node)]
    telling = (node for node in reversed(around) if len(ast.unparse(node)) >= _TELLING)
    return next(telling, place), False
