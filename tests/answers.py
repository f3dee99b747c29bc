"""What every exercise asks and answers, in text: `python -m tests.answers` stores it.

Of each exercise its cases, the right results, and each mistake with the results that it leads to. A line that changed
after a change of the code is an answer that learners will be told: look at it before you commit.
"""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from helpers.exercises import EXERCISES, Exercise
from tests.figures import _array

FOLDER = Path(__file__).with_name("answers")


def describe(exercise: Exercise) -> str:
    """The exercise, a line for each case, each right result and each mistake."""
    cost = exercise.cost if isinstance(exercise.cost, str | None) else exercise.cost.__name__
    lines = [f"tolerance {exercise.tolerance:g}, cost {cost} in {exercise.unit}", f"Hint: {exercise.hint}"]
    lines += [f"case {_value(case)}" for case in exercise.cases]
    lines += [f"right: {result}" for result in _results(exercise, exercise.oracle)]
    for sentence, mistake in exercise.mistakes.items():
        lines += ["", sentence, *(f"  {result}" for result in _results(exercise, mistake))]
    return "\n".join(lines) + "\n"


def _results(exercise: Exercise, function: Callable[..., Any]) -> list[str]:
    results = []
    for case in exercise.cases or ((),):
        try:
            results.append(_value(function(*copy.deepcopy(case))))
        except Exception as error:  # a mistake may be one that fails
            results.append(f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
    return results


def _value(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        kind = f"{str(value.dtype).removeprefix('torch.')} {tuple(value.shape)} by {value.stride()}"
        return f"{kind}: {_array(value.detach().double())}" if not value.is_meta else f"{kind} on meta"
    if isinstance(value, tuple | list):
        return f"({', '.join(map(_value, value))})"
    if callable(value):
        return getattr(value, "__name__", type(value).__name__)
    return f"{value:.6g}" if isinstance(value, float) else repr(value)


def store() -> None:
    """Write the text of every exercise."""
    FOLDER.mkdir(exist_ok=True)
    for name, exercise in EXERCISES.items():
        (FOLDER / f"{name}.txt").write_text(describe(exercise), encoding="utf-8")


if __name__ == "__main__":
    store()
