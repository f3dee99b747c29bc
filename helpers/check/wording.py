"""Things in words, each short enough for a verdict of two lines."""

import re
from collections.abc import Callable, Sequence
from typing import Any

import torch

LONGEST = 200  # characters of a verdict, about two lines in a notebook


def printable(thing: Any, render: Callable[[Any], str] = repr, longest: int = 80) -> str:
    """A printable form of anything, of at most that many characters, also when its own repr fails.

    What is left out is the middle: many error messages begin with the context and end with the reason.
    """
    if isinstance(thing, torch.Tensor):
        return f"a tensor of shape {tuple(thing.shape)} and dtype {thing.dtype}"
    try:
        text = re.sub(r" at 0x[0-9a-fA-F]+", "", " ".join(render(thing).split()))
    except Exception:
        text = f"an object of type {type(thing).__name__}"
    if len(text) <= longest:
        return text
    return f"{text[: longest // 2 - 3]} ... {text[2 - longest // 2 :]}"


def numeral(number: Any) -> str:
    """A number as one would type it, with seven digits at most; an integer with all of its digits.

    >>> numeral(989.5e12), numeral(2.0), numeral(16777217)
    ('9.895e14', '2', '16777217')
    """
    if isinstance(number, float):
        return f"{number:.7g}".replace("e+0", "e").replace("e+", "e")
    return printable(number)


def numerals(found: Any, right: Any) -> tuple[str, str]:
    """Two numbers in one form, in which they can be told apart.

    >>> numerals(667392000, 621312000.0), numerals(16777216.0, 16777217), numerals(1.0, 989.5e12)
    (('667392000', '621312000'), ('16777216', '16777217'), ('1', '9.895e14'))
    """
    if isinstance(found, int) or isinstance(right, int):
        found, right = (_as_integer(number) for number in (found, right))
    texts = numeral(found), numeral(right)
    if texts[0] == texts[1]:
        return repr(found), repr(right)
    return texts


def _as_integer(number: Any) -> Any:
    is_short_and_whole = isinstance(number, float) and abs(number) < 1e15 and number.is_integer()
    return int(number) if is_short_and_whole else number


def first_short(*forms: str, longest: int = LONGEST) -> str:
    """The first of these forms of one verdict that fits into two lines; the last one if none does."""
    return next((form for form in forms if len(form) <= longest), forms[-1])


def error_text(error: BaseException) -> str:
    """The kind of error, and what it says."""
    text = printable(error, str, 100).removesuffix(".")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def call_text(name: str, arguments: Sequence[Any], longest: int = 70) -> str:
    """A call as one would type it; where that is long, tensors by their shapes, and then without the last arguments."""
    texts = [_argument(thing) for thing in arguments]
    if len(", ".join(texts)) > longest:
        texts = [_tensor_text(thing) if isinstance(thing, torch.Tensor) else _argument(thing) for thing in arguments]
    while len(texts) > 1 and len(", ".join(texts)) > longest:
        texts = [*texts[: -2 if texts[-1] == "..." else -1], "..."]
    return f"{name}({', '.join(texts)})"


def _tensor_text(tensor: torch.Tensor) -> str:
    return f"a {tuple(tensor.shape)} {str(tensor.dtype).removeprefix('torch.')} tensor"


def _argument(thing: Any) -> str:
    if isinstance(thing, torch.Tensor):
        is_readable = tensor_is_small(thing) and not thing.is_meta
        return f"tensor({thing.tolist()})" if is_readable else _tensor_text(thing)
    if not isinstance(thing, float):
        return printable(thing)
    text = numeral(thing)
    loses_digits = text.isdigit() and float(text) != thing
    return repr(thing) if loses_digits else text


def quoted(name: str) -> str:
    """A name as it is set off in a sentence: one of the code in backticks, words as they are."""
    return name if " " in name else f"`{name}`"


def tensor_is_small(tensor: torch.Tensor) -> bool:
    """Whether all its numbers fit into a sentence."""
    return tensor.numel() <= 6


def sentence_list(words: Sequence[str]) -> str:
    """Words as a sentence lists them.

    >>> sentence_list(["windows"]), sentence_list(["windows", "swap_rows", "index_at"])
    ('windows', 'windows, swap_rows and index_at')
    """
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last
