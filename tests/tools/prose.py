"""The numbers of the prose, and where each comes from: the cells of its section, the spec table, or a cited source.

`python -m tests.tools.prose [NN ...]` lists those without an origin.
"""

import ast
import copy
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from nbformat import NotebookNode

from helpers import specs
from helpers.exercises import EXERCISES, Exercise
from tests.tools.course import MEASURED, answers, asked, chosen, guessed, keys, plain, read, sections, tags

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
_ARITHMETIC = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop)


@dataclass(frozen=True)
class Number:
    """A number of a text: as written, its value, its significant digits, and what follows it."""

    text: str
    value: float
    digits: int
    after: str

    def is_near(self, value: float) -> bool:
        """Whether a value, rounded to as many digits, is this number: plain, in per cent, or with another prefix."""
        value = abs(value)
        scales = [1.0, 100.0] if self.after.lstrip().startswith("%") else [1.0]
        if _SCALED.match(self.after) or 2 < self.digits < _EXACT:
            scales += [1000.0**power for power in range(-8, 9)]
        return any(_rounded(value * scale, self.digits) == self.value for scale in scales)


def _rounded(value: float, digits: int) -> float:
    return float(f"{value:.{digits - 1}e}")


def numbers(text: str) -> Iterator[Number]:
    """The numbers of a text, in order."""
    for match in _NUMBER.finditer(text):
        digits = re.sub(r"[ ,\u00a0\u202f]", "", match["whole"]) + (match["part"] or "")
        value = float(digits + (match["exponent"] or "").replace("−", "-"))
        value **= _sum(match["power"] or "1")
        value *= 10.0 ** _sum(match["ten"] or "0")
        written = digits.replace(".", "").lstrip("0")
        kept = len(written if match["part"] else written.rstrip("0")) or 1
        exact = _EXACT if match["power"] and not match["ten"] else kept
        yield Number(match.group(), _rounded(value, exact), exact, text[match.end() : match.end() + 12])


def _sum(power: str) -> int:
    """An exponent as written: ³, ⁻⁸, or a small sum such as ¹⁻¹⁵."""
    return sum(map(int, re.findall(r"-?\d+", power.translate(_SUPERSCRIPTS))))


def said(source: str) -> Iterator[Number]:
    """The numbers of a markdown cell that claim something: neither small whole ones nor those that number things."""
    for number in numbers(_STRUCTURE.sub(" ", plain(source))):
        if not (number.text.isdigit() and number.value <= _LITTLE):
            yield number


def values(code: ast.AST) -> set[float]:
    """The numbers of Python code: literals, what arithmetic with nothing but literals gives, and numbers in texts."""
    found: set[float] = set()
    for node in ast.walk(code):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found |= {number.value for number in numbers(node.value)}
        elif isinstance(node, ast.expr) and all(isinstance(part, _ARITHMETIC) for part in ast.walk(node)):
            with suppress(ArithmeticError, TypeError, ValueError):  # as for a text, None, or 10**400
                found.add(float(eval(ast.unparse(node))))
    return found


def shown(cells: Iterable[NotebookNode], path: Path) -> set[float]:
    """The numbers of code cells, of what they show if that is compared, of what is said after a guess, of solutions."""
    found: set[float] = set()
    for cell in cells:
        if cell.cell_type == "markdown":
            for fence in re.findall(r"```python\n(.*?)```", cell.source, re.DOTALL):
                found |= values(ast.parse(fence))
            continue
        found |= values(ast.parse(cell.source))
        if "nbval-ignore-output" not in tags(cell):
            for output in cell.outputs:
                text = output.get("text", "") + output.get("data", {}).get("text/plain", "")
                found |= {number.value for number in numbers(text)}
        told = " ".join(answer for answer in answers(cell) if not answer.startswith(MEASURED))
        found |= {number.value for number in numbers(told)}
        if "exercise" in tags(cell):
            found = found.union(*map(values, keys(path)[asked(cell)]), _answers(EXERCISES[asked(cell)]))
    return found


def _answers(exercise: Exercise) -> set[float]:
    """What the right answer and the named wrong ones give in each case of an exercise."""
    found: set[float] = set().union(*map(_answers, exercise.parts.values()))
    for answer in (exercise.oracle, *(mistake.formula for mistake in exercise.mistakes)):
        for case in exercise.cases or ((),):
            with suppress(Exception):  # some mistakes are calls that fail
                found |= {number.value for number in numbers(repr(answer(*copy.deepcopy(case))))}
    return found


def _speaks_of_guesses(cell: NotebookNode) -> bool:
    """Whether a cell asks for a guess, or tells the teacher what will be guessed."""
    return "?" in cell.source or cell.metadata.get("slideshow", {}).get("slide_type") == "notes"


def _guessed_wrong(cells: Iterable[NotebookNode], path: Path) -> set[float]:
    """What the guesses of a section may be taken for: numbers that no cell shows."""
    names = [name for cell in cells for name in guessed(cell)]
    return set().union(*(values(node) for name in names for node in keys(path, guesses=True).get(name, ())))


def _specified(text: str) -> set[float]:
    """The figures of the spec table for the machines that a text names: H100, RTX 4090, TPU v5e."""
    found: set[float] = set()
    for spec in specs.table():
        model = next(word for word in spec.name.split() if any(letter.isdigit() for letter in word))
        if re.search(rf"\b{model}\b", text):
            found |= {*spec.matrix.values(), *spec.vector.values(), spec.bandwidth, spec.memory}
    return found


def without_origin(path: Path) -> Iterator[tuple[str, Number]]:
    """The numbers of a notebook's prose that nothing vouches for, each with the text around it.

    A number may come from its section; in the opening and the recap, which speak of the whole, from any; in what stands
    before the first exercise, from the exercises.
    """
    cited = {number.value for quoted in CITED.get(path.stem, ()) for number in numbers(quoted)}
    parts = sections(read(path))
    by_part = [shown(part, path) for part in parts]
    for index, part in enumerate(parts):
        known = by_part[index] | cited | _PREFIXES
        if index in (0, len(parts) - 1):
            known = known.union(*by_part)
        elif part[0].source.startswith("## Exercises"):
            known = known.union(*by_part[index + 1 : -1])
        for cell in part:
            if cell.cell_type == "markdown":
                near = known | _specified(cell.source)
                if _speaks_of_guesses(cell):
                    near |= _guessed_wrong(part, path)
                yield from ((cell.source, number) for number in said(cell.source) if not any(map(number.is_near, near)))


if __name__ == "__main__":
    for file in chosen(sys.argv[1:]):
        for source, number in without_origin(file):
            print(f"{file.name[:2]} {number.text:>12}{number.after!r:16} in: {' '.join(source.split())[:80]}")
