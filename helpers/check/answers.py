"""A learner's outcome beside the right one: every spelling of it counts, and a difference is put in words."""

import math
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import torch

from helpers.exercises import Exercise

_PREFIXES = {"": 1.0, "m": 1e-3, "µ": 1e-6, "u": 1e-6, "n": 1e-9, "p": 1e-12, "k": 1e3, "K": 1e3} | {
    name + binary: 1024.0**power if binary else 1000.0**power
    for power, name in enumerate("KMGTPE", start=1) for binary in ("", "i") if (name + binary) != "K"
}  # fmt: skip
_SPANS = {"min": 60, "h": 3600, "hour": 3600, "d": 86400, "day": 86400, "week": 604_800} | {
    "month": 2_629_800, "year": 31_557_600,
}  # fmt: skip
_WORDS = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
_SIZES = [
    (1.1, "at most a tenth"), (2, "at most a factor of two"), (10, "at most a factor of ten"),
    (1000, "more than a factor of ten"), (math.inf, "more than a factor of a thousand"),
]  # fmt: skip


@dataclass(frozen=True)
class Failed:
    """The outcome of a call that raised, or that cannot be judged."""

    kind: str
    sentence: str


def difference(found: Any, right: Any, exercise: Exercise, tell: bool = True) -> str | None:
    """What is wrong with an outcome, in words; None if nothing is. `tell` allows naming what is right."""
    if isinstance(found, Failed):
        return found.sentence
    if found is None and right is None:
        return None
    if isinstance(right, torch.Tensor):
        return _tensor_difference(found, right, exercise.tolerance)
    if exercise.tolerance != 0 and (rounding := _rounding(found)):
        exercise = replace(exercise, tolerance=max(exercise.tolerance or 1e-6, rounding))
    found = plain(found)
    if isinstance(right, tuple | list):
        if not isinstance(found, tuple | list) or len(found) != len(right):
            return f"expected {len(right)} value{'s' * (len(right) != 1)}, got {short(found)}"
        for position, pair in enumerate(zip(found, right, strict=True), start=1):
            found_wrong = difference(*pair, exercise, tell)
            if found_wrong:
                inside = found_wrong.startswith(("value ", "entry "))
                return f"{'entry' if inside else 'value'} {position} of {len(right)}{',:'[not inside]} {found_wrong}"
        return None
    if isinstance(right, Real) and not isinstance(right, bool):
        while isinstance(found, list | tuple) and len(found) == 1:
            found = found[0]
        return _number_difference(found, right, exercise, tell)
    named = isinstance(found, str) or "dtype" in type(found).__name__.casefold()
    if named and isinstance(right, str) and _word(found, exercise.words or [right]) == _word(right):
        return None
    if exercise.words and not (named and _word(found, exercise.words) in map(_word, exercise.words)):
        return f"write {' or '.join(map(repr, exercise.words))}, not {short(found)}"
    if type(found) is type(right) and found == right:
        return None
    return f"expected {right!r}, got {short(found)}" if tell else f"{short(found)} is not it"


def plain(found: Any) -> Any:
    """A number or a list in Python's own types, if it is one of NumPy's or PyTorch's."""
    if isinstance(found, torch.Tensor):
        return found.tolist() if found.layout == torch.strided and not found.is_meta else found
    if type(found).__module__ == "numpy" and hasattr(found, "tolist"):
        found = found.tolist()
    return list(found) if isinstance(found, range) else found


def _rounding(found: Any) -> float:
    """How far a few roundings may move a number of that dtype, relative to it; 0 where Python's own have no more."""
    dtype = getattr(torch, str(getattr(found, "dtype", "")).removeprefix("torch."), None)
    gap = torch.finfo(dtype).eps if isinstance(dtype, torch.dtype) and dtype.is_floating_point else 0
    return 4 * gap if gap > 1e-9 else 0


def _word(found: Any, words: Any = ()) -> str:
    """A word without what does not matter in it; and where its beginning says which of the words it is, that one."""
    text = re.sub(r"[^a-z0-9]", "", str(found).casefold().rpartition("torch.")[2].replace("/s", "persecond"))
    text = re.sub(r"^([bt]?)fp?(?=\d)", r"\1float", text.replace("half", "float16"))  # bf16, fp8_e4m3
    text = re.sub(r"^e(?=\dm)", "float8e", text)  # E4M3
    known = [_word(word) for word in words]
    alike = [word for word in known if word.startswith(text[:3]) and (text.startswith(word) or word.startswith(text))]
    if text in known or len(text) < 3 or len(alike) != 1:
        return text
    rest = text[len(alike[0]) :]  # "MAC/FLOP" and "FLOP/s" say something else than their beginning
    return text if any(word in rest for word in [*known, "persecond"]) else alike[0]


def _number_difference(found: Any, right: Real, exercise: Exercise, tell: bool) -> str | None:
    if isinstance(found, str) and (exercise.unit or not exercise.cases):
        if exercise.unit and "iB" in found and "iB" not in exercise.unit:
            return f"write it in {exercise.unit}, not as {found!r}"
        scaled = amount(found, exercise.unit)
        found = found if scaled is None else scaled
    if isinstance(found, bool) or not isinstance(found, Real):
        return f"expected a number, got {'the text ' * isinstance(found, str)}{short(found)}"
    if math.isnan(found):
        return "expected a number, got NaN (not a number)"
    if _close(found, right, exercise.tolerance):
        return None
    shown = number(found) if number(found) != number(float(right)) else repr(found)  # with all its digits
    return f"expected {number(right)}, got {shown}" if tell else f"{number(found)} {_rough(found, right)}"


def scale(unit: str) -> tuple[float, str]:
    """How many base units a unit is, and its base: ("GB") is (1e9, "B"), ("days") is (86400, "s")."""
    head, slash, rest = unit.strip().replace(" per ", "/").partition("/")
    rest = re.sub(r"^sec(onds?)?$", "s", re.sub(r"^bytes?$", "B", rest.strip()))
    head = re.sub(r"sec(onds?)?$", "s", re.sub(r"FLOPs$", "FLOP", re.sub(r"bytes?$", "B", head.strip())))
    head = re.sub(r"^(kilo|mega|giga|tera)(?=B)", lambda name: name[1][0].upper(), head)
    head = head[:-1].upper() + "B" if head in ("kb", "mb", "gb", "tb") else head
    if (span := head.casefold() if head.casefold() in _SPANS else head.casefold().removesuffix("s")) in _SPANS:
        return float(_SPANS[span]), "s"
    for base in ("B", "FLOP", "s"):
        if head.endswith(base) and head.removesuffix(base) in _PREFIXES:
            return _PREFIXES[head.removesuffix(base)], base + slash + rest
    word, _, things = unit.strip().partition(" ")
    return (_WORDS[word], things) if word in _WORDS else (1.0, head + slash + rest)


def amount(text: str, unit: str) -> float | None:
    """The number of `unit` that a text gives, as "40 MB", "4e7", "inf" or "3/4"; None for another text.

    Where no unit is asked for, it may be any word but one that is a unit of something else: "22 requests".
    """
    text = text.strip()
    spelled = text[:1].isalpha()  # "an error" is no number
    text = re.sub(r"^(?:an?(?=\s+\S)|one\b)", "1", re.sub(r"^half an?\b", "0.5", text, flags=re.I), flags=re.I)
    text = re.sub(r"(?<=\d) (?=\d{3}\b)|(?<=\d) ?(?:times|x)$", "", re.sub(r" ?per ?cent$", "%", text))
    if re.fullmatch(r"[-+]?(nan|inf|infinity)", text, re.IGNORECASE):
        return float(text)
    if fraction := re.fullmatch(r"([-+]?\d+) ?/ ?(0*[1-9]\d*)", text):
        return int(fraction[1]) / int(fraction[2])
    match = re.fullmatch(r"([-+]?(?:\d[\d_,]*)?\.?\d+\.?(?:e[-+]?\d+)?) *(%?)(.*)", text, re.IGNORECASE)
    if not match or re.search(r",(?!\d{3}(?!\d)).*,", match[1]):  # "2,3,3" is a list
        return None
    digits = re.sub(r"_|,(?=\d{3}(?!\d))", "", match[1]).replace(",", ".")  # 1,000 and Europe's 85,9
    found = float(digits) / (100 if match[2] and unit != "%" else 1)
    factor, base = scale(unit)
    if base == "FLOP/s" and match[3].endswith("FLOPS"):
        return amount(f"{text.removesuffix('FLOPS')}FLOP/s", unit)
    if not match[3]:
        return found
    if match[3] in _PREFIXES:  # "140 G"
        return found * _PREFIXES[match[3]] / factor
    for word, power in (_WORDS | ({} if base.startswith("B") else {"B": 1e9})).items():  # "40 billion", "40B"
        if match[3].startswith(word) and match[3].removeprefix(word).strip() in ("", unit, f"{unit}s"):
            return found * power / factor
    theirs, same = scale(match[3])
    if not unit and not spelled and theirs == 1 and same not in ("B", "FLOP", "s"):
        return found if re.fullmatch(r"[A-Za-z]+(/[A-Za-z]+)?", same) else None
    return found * theirs / factor if same == base else None


def _close(found: Real, right: Real, tolerance: float | None) -> bool:
    if found == right or tolerance == 0:
        return found == right
    if tolerance is None and isinstance(right, int):  # 3.9776e7 and its last bits, but no other whole number
        return isinstance(found, float) and not found.is_integer() and abs(found - right) < 1e-3
    try:
        return math.isclose(found, right, rel_tol=1e-6 if tolerance is None else tolerance)
    except OverflowError:
        return False


def _rough(found: Real, right: Real) -> str:
    """In which direction a value is wrong, and about how far; no more, or one division would give the answer."""
    if not found or not right or math.isinf(found) or math.isinf(right):
        return "is not it"
    if (found < 0) != (right < 0):
        return "has the wrong sign"
    apart = math.log10(abs(found)) - math.log10(abs(right))
    far = next(words for most, words in _SIZES if abs(apart) < math.log10(most) + 1e-9)
    return f"is too {'large' if apart > 0 else 'small'}{' in magnitude' if right < 0 else ''}, by {far}"


def _tensor_difference(found: Any, right: torch.Tensor, tolerance: float | None) -> str | None:
    spelled = isinstance(found, list | tuple) or type(found).__module__ == "numpy"  # which knows fewer dtypes
    if spelled and tolerance != 0:
        with suppress(TypeError, ValueError):
            found = torch.tensor(plain(found))
            found = found.to(right.dtype) if found.is_floating_point() == right.is_floating_point() else found
    if not isinstance(found, torch.Tensor):
        return f"expected a tensor, got {short(found)}"
    if found.shape != right.shape and not found.numel() == right.numel() == 1:
        return f"expected shape {tuple(right.shape)}, got {tuple(found.shape)}"
    if found.dtype != right.dtype:
        return f"expected dtype {right.dtype}, got {found.dtype}"
    if found.is_meta:
        return "expected a tensor with data, got one on the meta device"
    theirs, ours = found.detach().cpu().to_dense().reshape(right.shape), right.cpu()
    if theirs.isnan().any() and not ours.isnan().any():
        return "the result has NaN (not a number) in it"
    relative = 1e-6 if tolerance is None else tolerance
    largest = ours[ours.isfinite()].abs().max().item() if ours.isfinite().any() else 0.0
    close = torch.isclose(theirs, ours, rtol=relative, atol=relative * largest, equal_nan=True)
    if close.all():
        return None
    where = tuple((~close).nonzero()[0].tolist())
    at = f" at {where}" if where else ""
    return f"expected {number(ours[where].item())}{at}, got {number(theirs[where].item())}"


def described(error: BaseException) -> str:
    """The kind of error, and what it says."""
    text = short(error, str, 160).removesuffix(".")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def number(number: Any) -> str:
    """A number as one would type it, with seven digits at most."""
    return f"{number:.7g}".replace("e+0", "e").replace("e+", "e") if isinstance(number, float) else short(number)


def short(thing: Any, render: Callable[[Any], str] = repr, most: int = 80) -> str:
    """A printable form of anything, of at most that many characters, also when its own repr fails.

    What is left out is the middle: many error messages begin with the context and end with the reason.
    """
    if isinstance(thing, torch.Tensor):
        return f"a tensor of shape {tuple(thing.shape)} and dtype {thing.dtype}"
    try:
        text = " ".join(render(thing).split())
    except Exception:
        text = f"an object of type {type(thing).__name__}"
    return text if len(text) <= most else f"{text[: most // 2 - 3]} ... {text[2 - most // 2 :]}"


def written(exercise: Exercise, arguments: tuple[Any, ...]) -> str:
    """A call as one would type it."""
    return f"{exercise.name}({', '.join(map(_argument, arguments))})"


def _argument(thing: Any) -> str:
    """An argument of a call, shorter for tensors: a call may have several."""
    if isinstance(thing, torch.Tensor) and (thing.numel() > 6 or thing.is_meta):
        return f"a {tuple(thing.shape)} {str(thing.dtype).removeprefix('torch.')} tensor"
    if isinstance(thing, torch.Tensor):
        return f"tensor({thing.tolist()})"
    text = number(thing) if isinstance(thing, float) else short(thing)
    return repr(thing) if isinstance(thing, float) and text.isdigit() and float(text) != thing else text
