"""What to say of a name that no exercise, or no guess, has: the names of this notebook."""

import os
import re
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import PurePath
from typing import Any

from helpers.check.wording import sentence_list
from helpers.exercises import EXERCISES, GUESSES, Exercise, Guess

_last_notebook = ""  # of the last exercise or guess that there is


def exercise_named(name: str) -> Exercise | None:
    """The exercise of that name, if there is one."""
    return _named(name, EXERCISES)


def name_of(function: Any, variables: Mapping[str, Any]) -> str | None:
    """The exercise that a function is the answer to: by its own name, or by that of the one variable that holds it."""
    own = getattr(function, "__name__", None)
    if not isinstance(own, str) or own not in EXERCISES:
        held = [name for name, thing in variables.items() if thing is function and name in EXERCISES]
        if len(held) == 1 and callable(function):
            return held[0]
    return own if isinstance(own, str) else None


def guess_named(name: str) -> Guess | None:
    """The guess of that name, if there is one."""
    return _named(name, GUESSES)


def _named(name: str, known: Mapping[str, Any]) -> Any:
    global _last_notebook
    found = known.get(name)
    if found:
        _last_notebook = found.notebook
    return found


def no_exercise(given: Any) -> str:
    """What to say of something that names no exercise."""
    if isinstance(given, str):
        return " ".join(["there is no exercise of this name.", *_names_here(given, EXERCISES)])
    name = getattr(given, "__name__", "")
    if callable(given) and name in ("", "<lambda>"):
        what = "a lambda" if name else "this"
        return " ".join([f'{what} has no name: write check("name", f).', *_names_here("", EXERCISES)])
    if callable(given):
        return " ".join(["there is no exercise with the name of this function.", *_names_here(name, EXERCISES)])
    return 'write check(function), without calling it, or check("name", value).'


def no_guess(name: str) -> str:
    """What to say of a name that no guess has."""
    return " ".join([f"There is no guess named {name!r}.", *_names_here(name, GUESSES)])


def _names_here(name: str, known: Mapping[str, Exercise] | Mapping[str, Guess]) -> list[str]:
    """The names of this notebook; where Jupyter does not say which one runs, of that with the most similar name."""
    similar = get_close_matches(name, known, n=1)
    notebook = _running_notebook() or (known[similar[0]].notebook if similar else _last_notebook)
    names = [name for name, thing in known.items() if thing.notebook == notebook]
    return [f"Notebook {notebook} has {sentence_list(names)}."] if notebook and names else []


def _running_notebook() -> str:
    """The number of the notebook that runs, as jupyter_server tells its kernels; empty where nobody does."""
    name = PurePath(os.environ.get("JPY_SESSION_NAME", "")).name
    number = re.match(r"\d\d(?=_)", name)
    return number.group() if number else ""
