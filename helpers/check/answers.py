"""An outcome beside the right one: every spelling of the right one counts, and a difference is put in words."""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from difflib import SequenceMatcher
from fractions import Fraction
from numbers import Real
from typing import Any, TypeGuard

import torch

from helpers.check.amounts import amount
from helpers.check.wording import numeral, numerals, printable, tensor_is_small
from helpers.exercises import Exercise

_USUAL_TOLERANCE = 1e-6
_LONGEST_RANGE = 10_000
_LIKE = 0.6  # the ratio of a `SequenceMatcher` from which on words are forms of one
_MOST_NUMBERS = 10_000  # of a tensor that is looked through
# How far off a value is, in words: the largest factor for which they hold.
_HOW_FAR = [
    (1.1, "at most a tenth"),
    (2, "at most a factor of two"),
    (10, "at most a factor of ten"),
    (1000, "more than a factor of ten"),
    (math.inf, "more than a factor of a thousand"),
]


@dataclass(frozen=True)
class Failed:
    """The outcome of a call that raised, or that cannot be judged. `kind` is the same for the same mistake.

    line: that of the learner's function where it happened, if it is known. whole: the error, uncut.
    is_own: whether the learner's own code raised it, and not what that called, or the call of the check.
    """

    kind: str
    sentence: str
    line: str = ""
    whole: str = ""
    is_own: bool = False


def untouched(answer: Any) -> bool:
    """Whether the dots of the stub are still there."""
    return answer is None or answer is ... or (isinstance(answer, tuple) and any(entry is ... for entry in answer))


def is_number(thing: Any) -> TypeGuard[float]:
    """Whether it is a real number, and no boolean."""
    return isinstance(thing, Real) and not isinstance(thing, bool)


def plain(thing: Any) -> Any:
    """A number or a list in Python's own types, if it is one of NumPy's, PyTorch's or of `decimal`."""
    if isinstance(thing, torch.Tensor):
        has_numbers = thing.layout == torch.strided and not thing.is_meta
        return thing.tolist() if has_numbers else thing
    if isinstance(thing, Decimal):
        return _from_decimal(thing)
    if type(thing).__module__ == "numpy" and hasattr(thing, "tolist"):
        return thing.tolist()
    if isinstance(thing, range) and len(thing) <= _LONGEST_RANGE:
        return list(thing)
    return thing


def _from_decimal(number: Decimal) -> int | float | Fraction:
    if not number.is_finite():
        return float(number)
    exact = Fraction(number)
    return exact.numerator if exact.denominator == 1 else exact


def flat(outcome: Any) -> list[float]:
    """The numbers of an outcome in their order. Raises TypeError for another, ValueError for NaN, inf or too many."""
    if isinstance(outcome, torch.Tensor):
        if outcome.numel() > _MOST_NUMBERS:
            raise ValueError("too many numbers to look through")
        outcome = outcome.detach().cpu()
    outcome = plain(outcome)
    if isinstance(outcome, list | tuple):
        return [value for entry in outcome for value in flat(entry)]
    if not is_number(outcome):
        raise TypeError(f"no number: {type(outcome).__name__}")
    if not math.isfinite(outcome):
        raise ValueError("not finite")
    return [float(outcome)]


def difference(found: Any, right: Any, exercise: Exercise, tell: bool = True) -> str | None:
    """What is wrong with an outcome, in words; None if nothing is. `tell` allows naming what is right."""
    if isinstance(found, Failed):
        return found.sentence
    if found is None and right is None:
        return None
    if isinstance(right, torch.Tensor):
        return _tensor_difference(found, right, exercise.tolerance)
    if exercise.tolerance != 0:
        exercise = _allowing_roundings(exercise, found)
    given, found = found, plain(found)
    if isinstance(right, tuple | list):
        return _sequence_difference(found, right, exercise, tell, given)
    if is_number(right):
        return _number_difference(found, right, exercise, tell)
    return _word_difference(found, right, exercise.words, tell)


def _allowing_roundings(exercise: Exercise, found: Any) -> Exercise:
    """The exercise with a tolerance that allows a few roundings of the dtype that the outcome has."""
    dtype = getattr(torch, str(getattr(found, "dtype", "")).removeprefix("torch."), None)
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        return exercise
    gap = torch.finfo(dtype).eps
    if gap < 1e-9:  # float64, as Python's own
        return exercise
    return replace(exercise, tolerance=max(exercise.tolerance or _USUAL_TOLERANCE, 4 * gap))


def _sequence_difference(found: Any, right: Sequence[Any], exercise: Exercise, tell: bool, given: Any) -> str | None:
    if not isinstance(found, tuple | list) or len(found) != len(right):
        plural = "s" if len(right) != 1 else ""
        kind = f"a {type(right).__name__} of " if is_number(found) else ""
        return f"expected {kind}{len(right)} value{plural}, got {_several(given, found)}"
    for position, (mine, true) in enumerate(zip(found, right, strict=True), start=1):
        inside = difference(mine, true, exercise, tell)
        if inside and inside.startswith(("value ", "entry ")):
            return f"entry {position} of {len(right)}, {inside}"
        if inside:
            return f"value {position} of {len(right)}: {inside}"
    return None


def _several(given: Any, found: Any) -> str:
    """What is given in place of several values, without the numbers of large tensors."""
    if isinstance(given, torch.Tensor) and not tensor_is_small(given):
        return printable(given)
    if is_number(found):
        return f"the number {printable(found)}"
    has_tensors = isinstance(found, list | tuple) and any(isinstance(entry, torch.Tensor) for entry in found)
    return str(len(found)) if has_tensors else printable(found)


# ---- Words


def meaning(found: Any, exercise: Exercise) -> str | None:
    """What the exercise says that this word would mean; None if it says nothing, or it is no word of its."""
    if not isinstance(exercise.words, Mapping):
        return None
    return next(
        (sentence for word, sentence in exercise.words.items() if _word(word) == _word(found, exercise.words)), None
    )


def _word_difference(found: Any, right: Any, words: Collection[str], tell: bool) -> str | None:
    is_word = isinstance(found, str) or "dtype" in type(found).__name__.casefold()
    if is_word and isinstance(right, str) and _word(found, words or [right]) == _word(right):
        return None
    if words and not (is_word and _word(found, words) in map(_word, words)):
        return f"write {' or '.join(map(repr, words))}, not {printable(found)}"
    if type(found) is type(right) and found == right:
        return None
    return f"expected {right!r}, got {printable(found)}" if tell else f"{printable(found)} is not it"


def _word(found: Any, words: Collection[str] = ()) -> str:
    """A word without what does not matter in it; and where its beginning says which of the words it is, that one."""
    written = str.__str__(found) if isinstance(found, str) else str(found)  # of an enumeration's member, its value
    text = re.sub(r"[^a-z0-9]", "", written.casefold().rpartition("torch.")[2].replace("/s", "persecond"))
    text = re.sub(r"^([bt]?)fp?(?=\d)", r"\1float", text.replace("half", "float16"))  # bf16, fp8_e4m3
    text = re.sub(r"^e(?=\dm)", "float8e", text)  # E4M3
    known = [_word(word) for word in words]
    if text in known or len(text) < 3:
        return text
    meant = [word for word in known if word.startswith(text[:3]) and _is_form(text, word)]
    if len(meant) != 1:
        return text
    rest = text.removeprefix(meant[0])  # "MAC/FLOP" and "FLOP/s" say something else than their beginning
    return text if any(word in rest for word in [*known, "persecond"]) else meant[0]


def _is_form(text: str, word: str) -> bool:
    """Whether a text is a form of a word: its beginning, or one with another ending, as "copied" of "copy"."""
    if text.startswith(word) or word.startswith(text):
        return True
    return (text + word).isalpha() and SequenceMatcher(None, text, word).ratio() >= _LIKE


# ---- Numbers


def _number_difference(found: Any, right: float, exercise: Exercise, tell: bool) -> str | None:
    given, found = found, _single(found)
    if isinstance(found, str) and (exercise.unit or not exercise.cases):
        if exercise.unit and "iB" in found and "iB" not in exercise.unit:
            return f"write it in {exercise.unit}, not as {found!r}"
        scaled = amount(found, exercise.unit)
        found = found if scaled is None else scaled
    if not is_number(found):
        what = "the text " if isinstance(found, str) else ""
        return f"expected a number, got {what}{printable(found)}"
    if math.isnan(found):
        return "expected a number, got NaN (not a number)"
    if _close(found, right, exercise.tolerance):
        return None
    mine, true = numerals(_decimal_form(found), right)
    if isinstance(given, tuple | list):
        mine = printable(given)
    return f"expected {true}, got {mine}" if tell else f"{_value_text(given, found)} {_direction(found, right)}"


def _value_text(given: Any, number: float) -> str:
    return printable(given) if isinstance(given, tuple | list) else numeral(_decimal_form(number))


def _single(found: Any) -> Any:
    """The one thing in a list, or in a list of lists, of one."""
    while isinstance(found, list | tuple) and len(found) == 1:
        found = found[0]
    return found


def _decimal_form(number: float) -> float:
    return float(number) if isinstance(number, Fraction) else number


def _close(found: float, right: float, tolerance: float | None) -> bool:
    if found == right or tolerance == 0:
        return found == right
    if tolerance is None and isinstance(right, int):  # 3.9776e7 and its last bits, but no other whole number
        return isinstance(found, float) and not found.is_integer() and abs(found - right) < 1e-3
    try:
        return math.isclose(found, right, rel_tol=_USUAL_TOLERANCE if tolerance is None else tolerance)
    except OverflowError:
        return False


def _direction(found: float, right: float) -> str:
    """In which direction a value is wrong, and about how far; no more, or one division would give the answer."""
    if not found or not right or math.isinf(found) or math.isinf(right):
        return "is not it"
    if (found < 0) != (right < 0):
        return "has the wrong sign"
    digits = math.log10(abs(found)) - math.log10(abs(right))
    how_far = next(words for factor, words in _HOW_FAR if abs(digits) < math.log10(factor) + 1e-9)
    side = "large" if digits > 0 else "small"
    if right < 0:
        side += " in magnitude"
    return f"is too {side}, by {how_far}"


# ---- Tensors


def _tensor_difference(found: Any, right: torch.Tensor, tolerance: float | None) -> str | None:
    if tolerance != 0 and right.numel() == 1:  # a number, which has other spellings
        found = _as_tensor(found, right.dtype)
    if type(found).__module__ == "numpy":
        return "expected a tensor, got an array of NumPy"
    if not isinstance(found, torch.Tensor):
        return f"expected a tensor, got {printable(found)}"
    if found.is_nested:
        return "expected one tensor of numbers, got a nested one"
    if found.shape != right.shape and not found.numel() == right.numel() == 1:
        return f"expected shape {tuple(right.shape)}, got {tuple(found.shape)}"
    if found.dtype != right.dtype:
        return f"expected dtype {right.dtype}, got {found.dtype}"
    if found.is_meta:
        return "expected a tensor with data, got one on the meta device"
    mine, true = found.detach().cpu().to_dense().reshape(right.shape), right.cpu()
    if mine.isnan().any() and not true.isnan().any():
        return "the result has NaN (not a number) in it"
    return _first_difference(mine, true, _USUAL_TOLERANCE if tolerance is None else tolerance)


def _as_tensor(found: Any, dtype: torch.dtype) -> Any:
    """A number, a list or an array of NumPy, which knows fewer dtypes, as a tensor; anything else as it is."""
    if isinstance(found, torch.Tensor):
        return found
    with suppress(TypeError, ValueError):
        tensor = torch.tensor(plain(found))
        return tensor.to(dtype) if tensor.is_floating_point() == dtype.is_floating_point else tensor
    return found


def _first_difference(mine: torch.Tensor, true: torch.Tensor, tolerance: float) -> str | None:
    finite = true[true.isfinite()]
    largest = finite.abs().max().item() if finite.numel() else 0.0
    close = torch.isclose(mine, true, rtol=tolerance, atol=tolerance * largest, equal_nan=True)
    if close.all():
        return None
    index = tuple((~close).nonzero()[0].tolist())
    where = f" at {index}" if index else ""
    found_text, right_text = numerals(mine[index].item(), true[index].item())
    return f"expected {right_text}{where}, got {found_text}"
