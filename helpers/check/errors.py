"""Rules for an answer that raises: what the error means, in the terms of shapes and names."""

import ast
import inspect
import re
import sys
from collections.abc import Callable, Collection
from difflib import get_close_matches

from helpers.check.answers import Failed
from helpers.check.attempt import Attempt, Step
from helpers.check.source import source_of
from helpers.check.wording import sentence_list


def raised(attempt: Attempt) -> str | None:
    """What an error means."""
    arguments, outcome = attempt.exercise.inputs[attempt.shown], attempt.outcomes[attempt.shown]
    if not attempt.answer or not isinstance(outcome, Failed) or not outcome.whole:
        return None
    unknown = re.match(r"NameError: name '(\w+)' is not defined", outcome.whole)
    if unknown:
        if unknown[1] in attempt.exercise.words:
            return in_quotes(unknown[1])
        learner = inspect.unwrap(attempt.answer.learner)
        code = getattr(learner, "__code__", None)
        return missing_name(unknown[1], [*code.co_varnames, *learner.__globals__] if code else ())
    known = _of_dots(attempt, outcome) or _of_the_call(attempt, outcome) or meaning(outcome.whole, outcome.is_own)
    if known:
        return known
    failed = [step for step in attempt.answer.steps(attempt.exercise, arguments) if step.has_raised]
    return _of_shapes(attempt, failed[-1]) if failed and _ABOUT_SHAPES.search(outcome.whole) else None


def _of_dots(attempt: Attempt, outcome: Failed) -> str | None:
    """Dots of the stub that are left within an expression, and in which line."""
    if not re.search("ellipsis", outcome.whole, re.IGNORECASE):
        return None
    source = source_of(attempt)
    if not source:
        return meaning(outcome.whole)
    indices = [node.slice for node in ast.walk(source.tree) if isinstance(node, ast.Subscript)]
    indexing = {id(node) for index in indices for node in ast.walk(index)}
    dots = [
        node.lineno + source.before
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Constant) and node.value is ... and id(node) not in indexing
    ]
    return f"A `...` is still there: line {min(dots)}." if dots else meaning(outcome.whole)


def _of_the_call(attempt: Attempt, outcome: Failed) -> str | None:
    """What is wrong with the arguments of the learner's function, where the check could not call it with its own."""
    name = getattr(inspect.unwrap(attempt.answer.learner), "__name__", "") if attempt.answer else ""
    if outcome.line or not re.match(rf"TypeError: (?:\S*\.)?{re.escape(name)}\(\)", outcome.whole):
        return None
    if re.search(r"takes \d+ positional arguments? but \d+|missing \d+ required positional", outcome.whole):
        return f"Keep the arguments of the stub: it is called with {len(attempt.exercise.inputs[0])}."
    return None


def meaning(error: str, is_own: bool = True) -> str | None:
    """What an error means, from its kind and what it says; None for one that speaks for itself.

    is_own: whether the learner's own code raised it; if not, 0 is what a library divides by, whatever it was given.
    """
    if not is_own and error.startswith("ZeroDivisionError"):
        return None
    for pattern, explain in _MEANINGS:
        match = re.search(pattern, error, re.DOTALL)
        if match:
            return explain(match)
    return None


_ABOUT_SHAPES = re.compile(r"shape|size|dim|broadcast|subscript|operand", re.IGNORECASE)
_MOST_SHAPES = 3  # of a call that a learner did not write: more are mostly weights that it brings


def of_values(error: str) -> str | None:
    """What it means that several names were given more values, or fewer, in an answer that is values."""
    if match := re.search(r"too many values to unpack \(expected (\d+)\)", error):
        return f"There are more values than the {match[1]} names. Of one text, each character is a value."
    if match := re.search(r"not enough values to unpack \(expected (\d+), got (\d+)\)", error):
        return f"{match[2]} values for {match[1]} names: is one missing, or a comma?"
    return None


def _of_shapes(attempt: Attempt, last: Step) -> str | None:
    """What does not fit together in an operation of PyTorch."""
    if len(last.shapes) == 2 and last.name in ("matmul", "mm", "bmm", "mv", "rmatmul"):
        first, second = last.shapes
        if first and second:
            inner = second[-2] if len(second) > 1 else second[-1]
            if first[-1] != inner:
                return f"A product of {first} and {second}: {first[-1]} meets {inner}, and they must be equal."
            return f"A product of {first} and {second}: the dimensions before the last two must fit, too."
    if len(last.shapes) == 2 and last.name in ("add", "sub", "mul", "truediv", "div", "rsub", "radd", "rmul"):
        return f"Aligned at the right, {last.shapes[0]} and {last.shapes[1]} differ in a size that is not 1."
    if last.name in ("view", "reshape", "unflatten") and last.shapes:
        return f"`{last.name}` of a tensor of shape {last.shapes[0]}: do the sizes multiply to its elements?"
    source, shapes = source_of(attempt), " and ".join(map(str, last.shapes))
    if last.name == "einsum" and source and source.letters and "torch.einsum" not in source.text:
        return f"`einsum` was given {shapes}: do they fit its names? (einops calls these a, b, c in their order.)"
    if len(last.shapes) > 1 and (not source or last.name in source.text):
        return f"`{last.name}` was given {shapes}: do these shapes fit?"
    if 1 < len(last.shapes) <= _MOST_SHAPES:
        return f"Tensors of shapes {shapes} meet there: do they fit?"
    return None


def in_quotes(word: str) -> str:
    """What to say of a word that is written as if it were a name."""
    return f'A word is written in quotes: "{word}".'


# Where a name lives that is often used without its import, or without what stands before its dot.
_ALIASES = {
    "np": "numpy as np",
    "F": "torch.nn.functional as F",
    "nn": "torch.nn as nn",
    "plt": "matplotlib.pyplot as plt",
}
_FUNCTIONS = ("rearrange", "reduce", "repeat")  # of einops, by their own names
_HOMES = ("torch", "math", "numpy")


def missing_name(name: str, known: Collection[str]) -> str:
    """What to say of a name that there is not: its import, its full name, or one that is spelled alike."""
    if name in _FUNCTIONS:
        return f"`{name}` is not imported here: from einops import {name}."
    if name in _ALIASES or name in sys.stdlib_module_names:
        return f"`{name}` is not imported here: import {_ALIASES.get(name, name)}."
    alike = get_close_matches(name, [one for one in known if not one.startswith("_")], n=1, cutoff=0.75)
    if alike:
        return f"Nothing is called `{name}` here. Is `{alike[0]}` meant?"
    homes = [home for home in _HOMES if callable(getattr(sys.modules.get(home), name, None))]
    if homes:
        imported = [home for home in homes if home in known]
        homes = [f"`{home}.{name}`" for home in imported or homes]
        return f"Nothing is called `{name}` here, but {sentence_list(homes)}."
    return f"Nothing is called `{name}` here. Is it spelled right, or from a cell that has not run?"


def _names(match: re.Match[str], group: int) -> str:
    """Names in quotes, as Python lists those of a set, in backticks, in the order of the pattern that einops shows."""
    shown = re.findall(r"\w+", match.string.partition('"')[2] + match[group])
    return ", ".join(f"`{name}`" for name in sorted(re.findall(r"\w+", match[group]), key=shown.index))


_Meaning = Callable[[re.Match[str]], str]
_MEANINGS: tuple[tuple[str, _Meaning], ...] = (
    (r"can't divide axis of length (\d+) in chunks of (\d+)",
     lambda m: f"A bracket of length {m[1]} cannot be split by {m[2]}: which name has which size?"),
    (r"Could not infer sizes for \{(.*?)\}",
     lambda m: f"einops cannot tell the sizes of {_names(m, 1)}: give all of a bracket's but one."),
    (r"Identifiers only on one side of expression.*?\{(.*?)\}",
     lambda m: f"The name {_names(m, 1)} is on one side only: rearrange needs each on both."),
    (r"expected (\d+) dims\. Received (\d+)-dim",
     lambda m: f"The left side names {m[1]} dimensions, and the tensor has {m[2]}: brackets count as one."),
    (r"Unexpected identifiers on the (left|right) side.*?\{(.*?)\}",
     lambda m: f"The name {_names(m, 2)} stands on the {m[1]} side alone: is it spelled alike?"),
    (r"(?:Shape mismatch|shape mismatch), (\d+) != (\d+)",
     lambda m: f"A bracket makes {m[2]}, and the dimension has {m[1]}: do the sizes multiply to it?"),
    (r"Specify sizes for new axes in repeat: \{(.*?)\}",
     lambda m: f"`repeat` needs the size of the new name {_names(m, 1)}."),
    (r"Axis (\w+) is not used in transform", lambda m: f"A size is given for `{m[1]}`, and no pattern has that name."),
    (r"Unknown axis (\w+) on right side", lambda m: f"`{m[1]}` is on the right side alone: is it spelled alike?"),
    (r"number of subscripts in the equation \((\d+)\) does not match the number of dimensions \((\d+)\)",
     lambda m: f"The pattern names {m[1]} dimensions of a tensor that has {m[2]}."),
    (r"Sizes of tensors must match except in dimension (\d+).*?Expected size (\d+) but got size (\d+)",
     lambda m: f"Joined along dimension {m[1]}, all other sizes must be equal, and {m[2]} meets {m[3]}."),
    (r"stack expects each tensor to be equal size",
     lambda m: "stack needs tensors of one shape: do the last ones have fewer numbers, or is cat meant?"),
    (r"same dtype|expected scalar type|dtypes? .*do(?:es)? not match",
     lambda m: "Tensors of two dtypes meet there, and need one: is one of them made anew, or converted on the way?"),
    (r"^StopIteration", lambda m: "next() found nothing: is the condition right, and does it look far enough?"),
    (r"found element of type tuple",
     lambda m: "One of its numbers is a tuple: `x.stride()` has all, `x.stride(0)` one."),
    (r"argument '(\w+)'.*? must be (.*?), not (\w+)",
     lambda m: f"Its `{m[1]}` must be {m[2]}, and is of type {m[3]}."),
    (r"builtin_function_or_method|method-wrapper|'(?:method|function)' object|type 'method'",
     lambda m: "What stands there is a function or a method: it gives nothing until it is called, with parentheses."),
    (r"cannot access local variable '(\w+)'", lambda m: f"`{m[1]}` is used before it has a value in every branch."),
    (r"Tensor type unknown to einops.*'str'",
     lambda m: "einops is given a text in place of a tensor: a name in quotes is no variable. The tensor comes first."),
    (r"rearrange\(\) takes 2 positional arguments",
     lambda m: "`rearrange` takes a tensor and a pattern, and sizes by name: it combines no numbers."),
    (r"TypeError.*[Ee]llipsis", lambda m: "A `...` is still there."),
    (r"unsupported operand type\(s\) for \^|\"bitwise_xor", lambda m: "In Python ^ is XOR: a power is written **."),
    (r"ZeroDivisionError.*(?:division|modulo|divmod)", lambda m: "What you divide by is 0 in this case."),
    (r"'float' object cannot be interpreted as an integer|type must be tuple of ints,but got float|must be int.*float",
     lambda m: "A size must be a whole number: / makes a float, // an int."),
    (r"OverflowError.*", lambda m: "That number is too large for a float: is a power, or its sign, wrong?"),
    (r"cannot convert float infinity to integer", lambda m: "Infinity cannot be rounded: ask for it before."),
    (r"out of bounds for storage", lambda m: "The last cell lies beyond the storage: too many, or too far?"),
    (r"view size is not compatible",
     lambda m: "Strides of that order cannot be merged into a view: which dimensions move?"),
    (r"math domain error|expected a positive input", lambda m: "The logarithm or root of what is 0 or negative."),
    (r"^SystemExit", lambda m: "exit() and quit() end a program: a function ends with return."),
    (r"^NotImplementedError", lambda m: "That line stands for what is still to be written."),
    (r"^AssertionError", lambda m: "That is your own assert: it does not hold in this case."),
    (r"an async function", lambda m: "Nothing waits for it here."),
    (r"RecursionError", lambda m: "It calls itself without an end."),
)  # fmt: skip
