"""Cells that stop half-way, or that Python cannot read: a half-written answer stops no Run All.

IPython hands each cell to `readable` before it reads it, and its tree to `guarded` before it runs it.

- A guess such as `guess = 38 to 43`, `guess = 10^9`, `guess = passes` or `guess = 1 / 0` becomes a text, which
  `compare` reads, and `guess =` becomes `guess = ...`;
- a cell with a check that cannot be read, or that raises, shows the verdict that names the line and the error.

A cell that is whole does what it would do without, and any other cell shows its error.
"""

import ast
import re
import sys
import traceback
import warnings

from helpers.check.errors import in_quotes, meaning, missing_name, of_values
from helpers.check.judge import Verdict
from helpers.check.wording import error_text, first_short, printable
from helpers.exercises import EXERCISES

_GUESS = re.compile(r"guess\s*=(?!=)(?P<written>[^#\n]*)(?P<rest>.*)")
_CHECK = re.compile(r"^check\(\s*[\"']?(?P<name>\w+)", re.MULTILINE)
_HERE = "__import__('helpers.check').check"


def install() -> None:
    """Read all cells of the running notebook in this way; outside of IPython do nothing."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if not shell:
        return

    def read(lines: list[str]) -> list[str]:
        try:
            return readable("".join(lines)).splitlines(keepends=True)
        except Exception:
            return lines

    transformers = shell.input_transformers_cleanup
    if not any(getattr(one, "__module__", "") == __name__ for one in transformers):
        transformers.append(read)
        shell.ast_transformers.append(_Guard())


class _Guard(ast.NodeTransformer):
    def visit_Module(self, tree: ast.Module) -> ast.Module:
        try:
            return guarded(tree)
        except Exception:
            return tree


# ---- Before a cell is read.


def readable(cell: str) -> str:
    """The cell, or what runs in its place.

    >>> print(readable('guess = 38 to 43  # per cent\\ncompare(guess, 40)'))
    guess = '38 to 43'  # per cent
    compare(guess, 40)
    """
    first, newline, others = cell.partition("\n")
    guess = _GUESS.fullmatch(first)
    if guess and ("^" in guess["written"] or _unread(first)):
        written = guess["written"]
        value = repr(written.strip()) if written.strip() else "..."
        space = written[len(written.rstrip()) :]
        return f"guess = {value}{space}{guess['rest']}{newline}{others}"
    checked = _CHECK.search(cell)
    problem = _unread(cell) if checked else ""
    if checked and problem:
        return f"{_HERE}.unreadable({checked['name']!r}, {problem!r})\n"
    return cell


def unreadable(name: str, problem: str) -> Verdict:
    """The verdict on an answer that could not run."""
    return Verdict(name, "not yet", problem)


def _unread(cell: str) -> str:
    """Why Python cannot read a cell, as a sentence; empty if it can."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(cell, "<cell>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except SyntaxError as error:
        if re.search(r"^\s*[%!?]", cell, re.MULTILINE):  # not Python, but IPython
            return ""
        number = error.lineno or 1
        line = printable((error.text or cell.splitlines()[number - 1]).strip(), str, 60)
        return f"Python cannot read line {number}, `{line}`: {error.msg}. Finish it, or put the dots back."
    return ""


# ---- Before it runs.


def guarded(tree: ast.Module) -> ast.Module:
    """The cell, with a verdict in the place of an error where it has a check, and with a text for a guess that fails.

    A check is a statement of its own, as `check(name)`. Only the last expression of a cell is shown, as without.
    """
    first = tree.body[0] if tree.body else None
    match first:
        case ast.Assign(targets=[ast.Name(id="guess")], value=value):
            tree.body[0] = _tried([first], f"except Exception: guess = {ast.unparse(value)!r}")
    names = [_checked(statement) for statement in tree.body]
    name = next(filter(None, names), "")
    if name:
        *before, last = tree.body
        shown = [ast.Expr(ast.Name("_shown", ast.Load()))]
        if isinstance(last, ast.Expr):
            last = ast.Assign([ast.Name("_shown", ast.Store())], last.value)
        else:
            before = [*ast.parse("_shown = None").body, *before]
        handler = f"except Exception as _error: _shown = {_HERE}.stopped({name!r}, _error)"
        tree.body = [_tried([*before, last], handler), *shown]
    return ast.fix_missing_locations(tree)


def _tried(body: list[ast.stmt], handler: str) -> ast.stmt:
    """The statements in a `try`, with that handler."""
    (tried,) = ast.parse(f"try: pass\n{handler}").body
    assert isinstance(tried, ast.Try)
    tried.body = body
    return tried


def _checked(statement: ast.stmt) -> str:
    """The exercise that a statement checks; empty if it checks none."""
    match statement:
        case ast.Expr(ast.Call(ast.Name("check"), [ast.Constant(str() as name) | ast.Name(name), *_])):
            return name
        case _:
            return ""


def _words(name: str) -> set[str]:
    """The words that an exercise, or a part of it, may be answered with."""
    whole = EXERCISES.get(name)
    several = [whole, *whole.parts.values()] if whole else []
    return {word for one in several for word in one.words}


def stopped(name: str, error: Exception) -> Verdict:
    """The verdict on an answer that raised before it could be checked: the error, and the line of the cell."""
    steps = traceback.extract_tb(error.__traceback__)
    step = [step for step in steps if step.filename == steps[0].filename][-1]
    where = f"line {step.lineno}, `{printable(step.line or '', str, 60)}`"
    said = error_text(error)
    forms = []
    if isinstance(error, NameError) and error.name in _words(name):
        forms.append(f"{where}: {in_quotes(str(error.name))}")
    elif isinstance(error, NameError) and error.name and error.__traceback__:
        forms.append(f"{where}: {missing_name(error.name, error.__traceback__.tb_frame.f_globals)}")
    whole = f"{type(error).__name__}: {error}"
    known = of_values(whole) or meaning(whole, steps[-1].filename == steps[0].filename)
    if known:
        forms += [f"the cell stopped in {where}: {said}. {known}", f"the cell stopped in {where}. {known}"]
    return unreadable(name, first_short(*forms, f"the cell stopped in {where}: {said}.", f"the cell stopped: {said}."))
