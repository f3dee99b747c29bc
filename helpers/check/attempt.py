"""A wrong answer, as the rules that explain it look at it: its calls beside the right ones, and further calls."""

import functools
import inspect
import math
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch.overrides import TorchFunctionMode

from helpers.check.answers import Failed, difference, flat, is_number
from helpers.check.run import Sandbox, call, known
from helpers.check.runner import OutOfTime
from helpers.exercises import Exercise

_MORE_DRAWS = 60  # beside those that are judged, so that a pattern in few of them does not deceive


class Step(NamedTuple):
    """An operation of PyTorch: its name, the shapes of the tensors that it was given, and what came of it.

    dtype: of a result of floats. not_finite: "NaN" or "infinity", where that is in it.
    """

    name: str
    shapes: list[tuple[int, ...]]
    has_raised: bool = False
    dtype: torch.dtype | None = None
    not_finite: str = ""


class Steps(TorchFunctionMode):
    """Notes each operation of PyTorch."""

    def __init__(self) -> None:
        super().__init__()
        self.noted: list[Step] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "an operation").strip("_")
        shapes = [tuple(thing.shape) for thing in args if isinstance(thing, torch.Tensor)]
        try:
            result = func(*args, **(kwargs or {}))
        except Exception:
            self.noted.append(Step(name, shapes, has_raised=True))
            raise
        if isinstance(result, torch.Tensor) and result.is_floating_point():
            self.noted.append(Step(name, shapes, dtype=result.dtype, not_finite=_not_finite(result)))
        return result


def _not_finite(result: torch.Tensor) -> str:
    with suppress(RuntimeError):  # of what has no numbers, or cannot be asked for them, as float8
        if bool(result.isnan().any()):
            return "NaN"
        if bool(result.isinf().any()):
            return "infinity"
    return ""


@dataclass(frozen=True)
class Answer:
    """A learner's function, safe to call again.

    learner: the function as it was written, for its source and the names of its arguments.
    place: where it runs. pick: what of its result is judged, where an exercise has several parts.
    """

    learner: Callable[..., Any]
    place: Sandbox
    pick: Callable[[Any], Any] = lambda result: result

    def outcome(self, exercise: Exercise, arguments: tuple[Any, ...]) -> Any:
        """What it gives, on copies and within what is left of its time; a `Failed` where it raises or is out of it.

        Raises OutOfTime where nobody waits for it any more.
        """
        try:
            return self.place.call(exercise, self.picked(self.learner), arguments)
        except OutOfTime as why:
            self.place.hurry()
            return Failed("out of time", str(why))

    def steps(self, exercise: Exercise, arguments: tuple[Any, ...]) -> list[Step]:
        """What it has PyTorch do when it is called again."""
        steps = Steps()

        def noted(*arguments: Any) -> Any:
            with steps:
                return self.learner(*arguments)

        with suppress(OutOfTime):
            self.place.call(exercise, noted, arguments)
        return steps.noted

    def picked(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function that gives the part which is judged."""

        @functools.wraps(function)  # an error's line is looked for in what is wrapped
        def part(*arguments: Any) -> Any:
            return self.pick(function(*arguments))

        return part


class Call(NamedTuple):
    """One call: its arguments, what the answer gave, and what is right."""

    arguments: tuple[Any, ...]
    mine: Any
    right: Any
    is_right: bool


@dataclass(frozen=True)
class Attempt:
    """A wrong answer, or a right one that costs too much.

    outcomes: what it gave for each of `exercise.inputs`; a call that went wrong is a `Failed`.
    answer: the learner's function. None for a value.
    costs: of each scored call, for a right answer that costs too much; otherwise empty.
    shown: which of the calls the verdict shows.
    """

    exercise: Exercise
    outcomes: Sequence[Any]
    answer: Answer | None = None
    costs: Sequence[float] = ()
    shown: int = 0

    @cached_property
    def rights(self) -> list[Any]:
        """The right outcomes."""
        return self.of(self.exercise.oracle)

    def of(self, formula: Callable[..., Any]) -> list[Any]:
        """The outcomes of the oracle or of a wrong formula."""
        return [self._known(formula, place) for place in range(len(self.outcomes))]

    def _known(self, formula: Callable[..., Any], place: int) -> Any:
        self.hurry()
        return known(self.exercise, formula, place)

    def hurry(self) -> None:
        """Raise OutOfTime where nobody waits for a diagnosis any more."""
        if self.answer:
            self.answer.place.hurry()

    @cached_property
    def numbers(self) -> list[tuple[list[float], list[float]]]:
        """For each call the numbers found and the right ones, in their order; empty where some are no numbers."""
        try:
            return [(flat(mine), flat(true)) for mine, true in zip(self.outcomes, self.rights, strict=True)]
        except (TypeError, ValueError, RuntimeError, OverflowError):
            return []

    @cached_property
    def pairs(self) -> list[tuple[float, float]]:
        """Each number found with the right one; empty where their numbers differ, or nothing varies."""
        if any(len(mine) != len(true) for mine, true in self.numbers):
            return []
        pairs = [pair for mine, true in self.numbers for pair in zip(mine, true, strict=True)]
        varies = len(self.numbers) > 1 and len({true for _, true in pairs}) > 1
        return pairs if varies else []

    def is_right_with(self, outcomes: Sequence[Any]) -> bool:
        """Whether these outcomes would be right."""
        pairs = zip(outcomes, self.rights, strict=True)
        return all(difference(mine, right, self.exercise) is None for mine, right in pairs)

    def writes_any_of(self, numbers: Sequence[float]) -> bool:
        """Whether the code of the answer has one of these numbers in it."""
        code = getattr(inspect.unwrap(self.answer.learner), "__code__", None) if self.answer else None
        constants = [one for one in code.co_consts if is_number(one) and one] if code else []
        return any(math.isclose(one, number, rel_tol=1e-9) for one in constants for number in numbers)

    # ---- The answer as a function of its arguments.

    @cached_property
    def names(self) -> list[str]:
        """The arguments as the learner's own function names them; where it names others, as the stub does."""
        learner = self.answer.learner if self.answer else self.exercise.oracle
        count = len(self.exercise.inputs[0])
        for function in (learner, self.exercise.oracle):
            names = _parameters(function)
            if len(names) == count:
                return names
        return [f"argument {number}" for number in range(1, count + 1)]

    @cached_property
    def calls(self) -> list[Call]:
        """The calls that were judged and, where they are cheap, as many more."""
        judged = zip(self.exercise.inputs, self.outcomes, self.rights, strict=True)
        return [self._call(*call) for call in judged] + self._further_calls()

    def _further_calls(self) -> list[Call]:
        is_cheap = all(is_number(thing) or isinstance(thing, tuple) for thing in self.exercise.inputs[0])
        if not self.answer or not self.exercise.draw or not is_cheap:
            return []
        generator = random.Random(f"more of {self.exercise.name}")
        drawn = [self.exercise.draw(generator) for _ in range(_MORE_DRAWS)]
        calls = []
        for arguments in drawn:
            mine = self.answer.outcome(self.exercise, arguments)
            if isinstance(mine, Failed) and mine.kind == "out of time":
                break
            calls.append(self._call(arguments, mine, call(self.exercise, self.exercise.oracle, arguments)))
        return calls

    def _call(self, arguments: tuple[Any, ...], mine: Any, right: Any) -> Call:
        return Call(arguments, mine, right, difference(mine, right, self.exercise) is None)

    def variables(self, arguments: tuple[Any, ...]) -> Mapping[str, float]:
        """What varies from call to call, by its name: arguments that are numbers, and the sizes of tensors."""
        if self.exercise.variables:
            return self.exercise.variables(*arguments)
        found: dict[str, float] = {}
        for name, thing in zip(self.names, arguments, strict=True):
            if is_number(thing):
                found[name] = thing
            if isinstance(thing, torch.Tensor):
                found |= _sizes(name, thing)
        return found

    @cached_property
    def formula(self) -> list[tuple[Mapping[str, float], float, float]]:
        """Of each call the variables, the number found and the right one; empty if one is no single finite number."""
        rows = []
        for one in self.calls:
            with suppress(TypeError, ValueError, RuntimeError, OverflowError):
                (mine,), (right,) = flat(one.mine), flat(one.right)
                rows.append((self.variables(one.arguments), mine, right))
        is_function = len(rows) == len(self.calls) and len({right for *_, right in rows}) > 1
        return rows if is_function else []


def _sizes(name: str, tensor: torch.Tensor) -> dict[str, float]:
    found: dict[str, float] = {f"{name}.shape[{dim}]": size for dim, size in enumerate(tensor.shape)}
    if tensor.layout == torch.strided:
        found |= {f"{name}.stride({dim})": stride for dim, stride in enumerate(tensor.stride())}
        found[f"{name}.storage_offset()"] = int(tensor.storage_offset())
    return found


def _parameters(function: Callable[..., Any]) -> list[str]:
    """The names of the positional parameters; empty if it takes any number of them, or nobody knows."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    if any(one.kind in (one.VAR_POSITIONAL, one.KEYWORD_ONLY, one.VAR_KEYWORD) for one in parameters):
        return []
    return [one.name for one in parameters]
