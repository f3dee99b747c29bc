"""Cells that Python cannot read, or that need a name which does not exist: a half-written answer stops no Run All.

IPython hands each cell to `readable` before it runs it. A cell that is whole stays as it is. Of one that is not

- a guess such as `guess = 38 to 43`, `guess = 10^9` or `guess = passes` becomes a text, which `compare` reads, and
  `guess =` becomes `guess = ...`;
- one that ends in a check becomes the verdict that says what Python cannot read.

Any other cell shows its error.
"""

import ast
import builtins
import dis
import re
import sys
from collections.abc import Collection

from helpers.check.judge import Verdict
from helpers.check.wording import printable

_GUESS = re.compile(r"guess\s*=(?!=)(?P<written>[^#\n]*)(?P<rest>.*)")
_CHECK = re.compile(r"^check\(\s*[\"']?(?P<name>\w+)", re.MULTILINE)


def install() -> None:
    """Read all cells of the running notebook in this way; outside of IPython do nothing."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if not shell:
        return

    def read(lines: list[str]) -> list[str]:
        try:
            return readable("".join(lines), shell.user_ns).splitlines(keepends=True)
        except Exception:
            return lines

    transformers = shell.input_transformers_cleanup
    if not any(getattr(one, "__module__", "") == __name__ for one in transformers):
        transformers.append(read)


def readable(cell: str, known: Collection[str]) -> str:
    """The cell, or what runs in its place. `known` are the names that there are.

    >>> print(readable('guess = 38 to 43  # per cent\\ncompare(guess, 40)', ["compare"]))
    guess = '38 to 43'  # per cent
    compare(guess, 40)
    """
    first, newline, others = cell.partition("\n")
    guess = _GUESS.fullmatch(first)
    if guess and ("^" in guess["written"] or _problem(first, known)):
        written = guess["written"]
        value = repr(written.strip()) if written.strip() else "..."
        space = written[len(written.rstrip()) :]
        return f"guess = {value}{space}{guess['rest']}{newline}{others}"
    checked = _CHECK.search(cell)
    problem = _problem(cell, known) if checked else ""
    if checked and problem:
        return f"__import__('helpers.check').check.unreadable({checked['name']!r}, {problem!r})\n"
    return cell


def unreadable(name: str, problem: str) -> Verdict:
    """The verdict on an answer that could not run."""
    return Verdict(name, "not yet", problem)


def _problem(cell: str, known: Collection[str]) -> str:
    """Why a cell cannot run, as a sentence; empty if nothing is known that speaks against it."""
    try:
        tree = ast.parse(cell)
    except SyntaxError as error:
        if re.search(r"^\s*[%!?]", cell, re.MULTILINE):  # not Python, but IPython
            return ""
        line = printable((error.text or "").strip(), str, 60)
        return f"Python cannot read line {error.lineno}, `{line}`: {error.msg}. Finish it, or put the dots back."
    missing = _missing(tree, known)
    return (
        f"nothing is called `{missing}` here. Is it spelled right, or from a cell that has not run?" if missing else ""
    )


def _missing(tree: ast.Module, known: Collection[str]) -> str:
    """The first name that the cell needs at once, and that does not exist; empty if there is none."""
    names = {*known, *vars(builtins), "__file__", "get_ipython", "display"}
    for step in dis.get_instructions(compile(tree, "<cell>", "exec")):
        if step.opname == "STORE_NAME":
            names.add(step.argval)
        if step.opname == "LOAD_NAME" and step.argval not in names:
            return step.argval
    return ""
