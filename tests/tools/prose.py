"""The numbers of the prose, and where each comes from: the cells of its section, the spec table, or a cited source.

`python -m tests.tools.prose [NN ...]` lists the numbers without an origin, and then how many of the others would be
noticed if they were wrong: each is changed, one at a time, and looked for again.
"""

import argparse
import ast
import copy
import math
import operator
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType

import torch
from nbformat import NotebookNode
from torch.utils._pytree import tree_leaves

from helpers import specs
from helpers.exercises import EXERCISES, Exercise
from tests.tools.course import NOTEBOOKS, asked, read, tags

# Numbers that no cell computes, each with the paper or datasheet that prints it.
CITED = tomllib.loads(Path(__file__).with_name("cited.toml").read_text(encoding="utf-8"))
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻−", "0123456789+--")
# A number of its own, not a part of a name (float16, H100, GPT-3), with its power or its power of ten.
_NUMBER = re.compile(
    r"(?<![\w.,#_-])(?P<whole>\d{1,3}(?:[ \u00a0\u202f,]\d{3})+(?!\d)|\d+)(?P<part>\.\d+)?(?P<exponent>e[+−-]?\d+)?"
    r"(?!\w*_)(?P<power>\*\*\d+|[⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+(?!\w))?(?:\s?[·×]\s?10(?P<ten>[⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+))?"
)
# What numbers a thing and measures nothing: list marks, headings, links, "Table 2", "Exercise 3. ... (5 min)", years.
_STRUCTURE = re.compile(
    r"^ *\d+\. |^#+ \d+\b|\[\d\d [A-Z]"
    r"|\b(?:notebooks?|exercises?|sections?|steps?|figure|table|lecture|chapter|appendix)\s\d+(?:\.\d+)?"
    r"(?:(?:,| and| to)\s\d+)*|\(\d+ min\)|\d+ min(?:utes?)?\b|arXiv:[\d.]+"
    r"|\b(?:19[5-9]\d|20(?:0[1-9]|[12]\d))\b(?! (?:byte|tokens|FLOP))",
    re.IGNORECASE | re.MULTILINE,
)
_PREFIXES = {float(base**power) for base in (1000, 1024) for power in range(1, 5)}  # known everywhere: GB is 10⁹
_EXACT = 15  # digits of a power such as 2³⁰
_LITTLE = 12  # whole numbers up to this one are words: "the 2 inputs", "8 GPUs"
_SCALED = re.compile(r"\s?(?:billion|million|thousand|trillion|[kMGTPEmµn](?:i?B|FLOP|s|tokens)\b|[kMGTPEmµn]\b)")
_FOLD = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}


@dataclass(frozen=True)
class Number:
    """A number of a text: as written, its value, its significant digits, and what follows it."""

    text: str
    value: float
    digits: int
    after: str

    @property
    def little(self) -> bool:
        """Whether it is a small whole number, which is rather a word."""
        return self.text.isdigit() and self.value <= _LITTLE

    def is_near(self, value: float) -> bool:
        """Whether a value, rounded to as many digits, is this number: plain, in per cent, or with another prefix."""
        value = abs(value)
        if _rounded(value, self.digits) == self.value:
            return True
        if self.after.lstrip().startswith("%"):
            return _rounded(100 * value, self.digits) == self.value
        if (
            0 < value < math.inf
            and 0 < self.value < math.inf
            and (_SCALED.match(self.after) or 2 < self.digits < _EXACT)
        ):
            thousands = round((math.log10(self.value) - math.log10(value)) / 3)
            return abs(thousands) < 9 and _rounded(value * 1000.0**thousands, self.digits) == self.value
        return False


def _rounded(value: float, digits: int) -> float:
    return float(f"{value:.{digits - 1}e}")


def numbers(text: str) -> Iterator[Number]:
    """The numbers of a text, in order."""
    for match in _NUMBER.finditer(text):
        digits = re.sub(r"[ ,\u00a0\u202f]", "", match["whole"]) + (match["part"] or "")
        value = float(digits + (match["exponent"] or "").replace("−", "-"))
        if match["power"]:
            value **= _sum(match["power"])
        if match["ten"]:
            value *= 10.0 ** _sum(match["ten"])
        written = digits.replace(".", "").lstrip("0")
        kept = len(written if match["part"] else written.rstrip("0")) or 1
        exact = _EXACT if match["power"] and not match["ten"] else kept
        yield Number(match.group(), _rounded(value, exact), exact, text[match.end() : match.end() + 12])


def _sum(power: str) -> int:
    """An exponent as written: ³, ⁻⁸, or a small sum such as ¹⁻¹⁵."""
    return sum(map(int, re.findall(r"-?\d+", power.translate(_SUPERSCRIPTS))))


def prose(source: str) -> str:
    """The text of a markdown cell that a reader reads: no code fences, link targets, tags, structure or sources."""
    text = re.sub(r"```.*?```", " ", source, flags=re.DOTALL)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    text = re.sub(r"<[^>]*>", " ", text)
    text = re.sub(r"^\*\*Sources\.\*\*.*?(?:\n\n|\Z)", "", text, flags=re.DOTALL | re.MULTILINE)
    return _STRUCTURE.sub(" ", text)


def values(source: str) -> set[float]:
    """The numbers of Python code: literals, what literals give with + − × / and powers, and numbers in its texts."""
    found: set[float] = set()

    def fold(node: ast.AST) -> float | None:
        match node:
            case ast.Constant(value=bool() | None):
                return None
            case ast.Constant(value=int() | float() as value):
                found.add(float(value))
                return value
            case ast.Constant(value=str() as text):
                found.update(number.value for number in numbers(text))
            case ast.UnaryOp(ast.USub(), operand):
                value = fold(operand)
                return None if value is None else -value
            case ast.BinOp(left, op, right):
                sides = fold(left), fold(right)
                if None not in sides and type(op) in _FOLD:
                    try:
                        value = _FOLD[type(op)](*sides)
                        found.add(float(value))
                    except (ArithmeticError, TypeError, ValueError):
                        return None
                    return value
            case _:
                for child in ast.iter_child_nodes(node):
                    fold(child)
        return None

    fold(ast.parse(source))
    return found


def shown(cell: NotebookNode) -> set[float]:
    """The numbers of a code cell and of what it shows, if that is compared."""
    found = values(cell.source)
    if "nbval-ignore-output" not in tags(cell):
        for output in cell.outputs:
            text = output.get("text", "") + output.get("data", {}).get("text/plain", "")
            found |= {number.value for number in numbers(text)}
    return found


def sections(notebook: NotebookNode) -> list[list[NotebookNode]]:
    """The cells by section: what stands before the first `## ` heading, and from each such heading to the next.

    Each exercise is a section of its own.
    """
    parts: list[list[NotebookNode]] = [[]]
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and re.match(r"## |### Exercise ", cell.source):
            parts.append([])
        parts[-1].append(cell)
    return parts


def origins(notebook: NotebookNode) -> Iterator[tuple[str, Number, set[float]]]:
    """Each number of the prose that needs an origin, with its text and the values that it may come from.

    Those are the values of its section; for the opening and the recap, which speak of the whole, all of them; and for
    what stands before the first exercise those of the exercises.
    """
    parts = sections(notebook)
    by_part = [_values(part) for part in parts]
    for index, part in enumerate(parts):
        known = set(by_part[index])
        if index in (0, len(parts) - 1):
            known = known.union(*by_part)
        elif part[0].source.startswith("## Exercises"):
            known = known.union(*by_part[index + 1 : -1])
        for cell in part:
            if cell.cell_type == "markdown":
                text = prose(cell.source)
                for number in numbers(text):
                    if not number.little:
                        yield text, number, known | _specified(text) | _PREFIXES


def _values(cells: list[NotebookNode]) -> set[float]:
    found: set[float] = set()
    for cell in cells:
        if cell.cell_type == "code":
            found |= shown(cell)
            if "exercise" in tags(cell):
                found |= _asked(EXERCISES[asked(cell)])
        else:
            for fence in re.findall(r"```python\n(.*?)```", cell.source, re.DOTALL):
                found |= values(fence)
    return found


def _asked(exercise: Exercise) -> set[float]:
    """The numbers of an exercise's cases, and of the answers: of the right ones, and of those that mistakes give."""
    found: set[float] = set()
    for case in exercise.cases or ((),):
        found |= _leaves(case)
        for answer in (exercise.oracle, *exercise.mistakes.values()):
            if isinstance(answer, FunctionType):
                found |= _leaves(answer.__code__.co_consts)
            try:
                found |= _leaves(answer(*copy.deepcopy(case)))
            except Exception:
                continue  # some mistakes are calls that fail
    return found


def _leaves(thing: object) -> set[float]:
    found: set[float] = set()
    for leaf in tree_leaves(thing):
        if isinstance(leaf, torch.Tensor):
            found |= {*map(float, leaf.shape)}
            if leaf.numel() <= 16 and not leaf.is_meta:
                found |= {*map(float, leaf.flatten().tolist())}
        elif isinstance(leaf, int | float) and math.isfinite(leaf):
            found.add(float(leaf))
        elif isinstance(leaf, str):
            found |= {number.value for number in numbers(leaf)}
    return found


def _specified(text: str) -> set[float]:
    """The figures of the spec table for the machines that a text names: H100, RTX 4090, TPU v5e."""
    found: set[float] = set()
    for spec in specs.table():
        model = next(word for word in spec.name.split() if any(letter.isdigit() for letter in word))
        if re.search(rf"\b{model}\b", text):
            found |= {*spec.matrix.values(), *spec.vector.values(), spec.bandwidth, spec.memory}
    return found


def _cited(path: Path) -> set[float]:
    """The numbers that a notebook quotes."""
    return {number.value for quoted in CITED.get(path.stem, ()) for number in numbers(quoted)}


def without_origin(path: Path, notebook: NotebookNode) -> Iterator[tuple[str, Number]]:
    """The numbers of the prose that nothing vouches for, each with the text around it."""
    cited = _cited(path)
    for text, number, known in origins(notebook):
        if number.value not in cited and not any(map(number.is_near, known)):
            yield text, number


def wrong(number: Number) -> Iterator[Number]:
    """The same number with one digit changed, for each of its digits that counts."""
    digits = [at for at, letter in enumerate(number.text) if letter.isdecimal()]
    for at in digits[: number.digits]:
        digit = str((int(number.text[at]) + 1) % 10)
        yield next(numbers(number.text[:at] + digit + number.text[at + 1 :] + number.after))


def changes(path: Path, notebook: NotebookNode) -> Iterator[tuple[Number, bool]]:
    """Each number of the prose with each of its digits changed, and whether that would be noticed."""
    cited = _cited(path)
    for _, number, known in origins(notebook):
        for changed in wrong(number):
            yield changed, changed.value not in cited and not any(map(changed.is_near, known))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.prose", description=__doc__)
    parser.add_argument("numbers", nargs="*", metavar="NN", help="notebook numbers, such as 01; default: all")
    chosen = parser.parse_args().numbers
    for path in NOTEBOOKS:
        if chosen and path.name[:2] not in chosen:
            continue
        notebook = read(path)
        missing = list(without_origin(path, notebook))
        for text, number in missing:
            at = text.index(number.text + number.after)
            print(f"  {number.text:>12}  {' '.join(text[max(0, at - 60) : at + 40].split())}")
        tried = [noticed for _, noticed in changes(path, notebook)]
        print(f"{path.name}: {len(missing)} without an origin; {sum(tried)} of {len(tried)} wrong digits noticed")


if __name__ == "__main__":
    main()
