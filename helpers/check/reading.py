"""Rules that read the source of a wrong answer: what cannot have been meant, whatever it computes."""

import ast
import builtins
from collections.abc import Iterator
from difflib import get_close_matches

from helpers.check.attempt import Attempt
from helpers.check.source import Source, source_of
from helpers.check.wording import printable

_ALIKE = 0.75  # the ratio of a `SequenceMatcher` from which on names are taken for each other


def taken_from_outside(attempt: Attempt) -> str | None:
    """A name of the notebook's in the place of an argument that is spelled alike and not used."""
    source = source_of(attempt)
    if not source:
        return None
    names = [node for node in ast.walk(source.function) if isinstance(node, ast.Name)]
    written = {name.id for name in names}
    assigned = {name.id for name in names if not isinstance(name.ctx, ast.Load)}
    arguments = [argument.arg for argument in source.function.args.args]
    unused = [name for name in arguments if name not in written]
    own = {source.function.name, *arguments, *vars(builtins)}
    for name in sorted(written - assigned - own):
        alike = get_close_matches(name, unused, n=1, cutoff=_ALIKE)
        if alike and name in source.namespace:
            return f"`{name}` is the notebook's, and no argument: is `{alike[0]}` meant?"
    return None


def returns_at_once(attempt: Attempt) -> str | None:
    """A return that ends a loop in its first round."""
    source = source_of(attempt)
    if not source:
        return None
    for loop in _loops(source.tree):
        goes_on = any(isinstance(node, ast.Continue) for node in ast.walk(loop))
        last = loop.body[-1]
        if isinstance(last, ast.Return) and not goes_on:
            return f"{_place(source, last)} ends the loop in its first round: does it belong behind the loop?"
    return None


def without_return(attempt: Attempt) -> str | None:
    """A way through the function that ends without a return."""
    source = source_of(attempt)
    if not source or attempt.outcomes[attempt.shown] is not None or attempt.rights[attempt.shown] is None:
        return None
    returned = [node for node in ast.walk(source.tree) if isinstance(node, ast.Return)]
    bare = [node for node in returned if not node.value or "None" in ast.unparse(node.value)]
    if len(bare) == 1:
        return f"{_place(source, bare[0])} returns None: what is asked for there?"
    if bare:
        return None
    return "Here it comes to its end without a return: does each way through it have one?"


def _loops(tree: ast.Module) -> Iterator[ast.For | ast.While]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.For | ast.While))


def _place(source: Source, node: ast.stmt) -> str:
    text = ast.get_source_segment(source.text, node) or ast.unparse(node)
    return f"Line {node.lineno + source.before}, `{printable(text, str, 60)}`,"
