"""An answer that is called in one process and judged in another: only plain data goes from one to the other.

`record` runs beside the answer, which may do there what it likes; `answers` are what `check` then takes in a process in
which none of the answer's code has run. So whatever an answer changes where it runs, it is judged by its outcomes.
"""

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from helpers.check.answers import Failed, plain
from helpers.check.costs import Uncountable, counted_cost, scored
from helpers.check.run import SECONDS, sandbox
from helpers.check.runner import OutOfTime
from helpers.exercises import EXERCISES, Exercise
from helpers.model import Config

MIME = "application/vnd.resource-accounting.record"
_DOTS = "\x1f..."  # stands for an Ellipsis, which is no plain data


class Record(str):
    """What a kernel shows of a recorded answer: a text, for whoever asked for it."""

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {MIME: str(self), "text/plain": "recorded"}


@dataclass(frozen=True, repr=False)
class Recorded:
    """A function of which some calls are known, each by its arguments, and what scored ones cost, or why not."""

    exercise: Exercise
    outcomes: Mapping[str, Any]
    costs: Sequence[float] | str
    stopped: str

    def __call__(self, *arguments: Any) -> Any:
        """The outcome of a recorded call. Raises OutOfTime for another."""
        if (called := _key(arguments)) not in self.outcomes:
            raise OutOfTime(self.stopped)
        outcome = self.outcomes[called]
        if self.exercise.in_place and isinstance(outcome, torch.Tensor):
            arguments[0].data = outcome
            return arguments[0]
        return outcome

    def __repr__(self) -> str:
        return "a function"

    def recorded_costs(self) -> list[float]:
        """What the scored calls cost. Raises Uncountable."""
        if isinstance(self.costs, str):
            raise Uncountable(self.costs)
        return list(self.costs)


def request(exercise: str) -> str:
    """What `record` is asked for: the calls whose outcomes, and those whose costs, decide on an exercise."""
    asked = EXERCISES[exercise]
    calls = [list(part.inputs) for part in (asked.parts or {"": asked}).values() if part.cases]
    scores = list(scored(asked)) if asked.cost else []
    return _pack([[call for several in calls for call in several], scores, asked.in_place, asked.cost])


def record(given: tuple[Any, ...], asked: str) -> Record:
    """These answers to an exercise, as plain data: the values, and for a function the outcomes that are asked for."""
    calls, scores, in_place, cost = _unpack(asked)
    asked_for = Exercise("", tuple, cases=calls, counted_at=scores, in_place=in_place, cost=cost)
    return Record(_pack([_calls(asked_for, one) if callable(one) else {"value": _portable(one)} for one in given]))


def answers(exercise: str, recorded: str) -> tuple[Any, ...]:
    """What was recorded of an exercise, as `check` takes it. Raises an error for what `record` cannot have made."""
    return tuple(_answer(EXERCISES[exercise], one) for one in _unpack(recorded))


def _answer(exercise: Exercise, one: Any) -> Any:
    if "value" in one:
        return _restored(one["value"])
    outcomes = {_key(arguments): _outcome(result) for arguments, result in one["outcomes"]}
    return Recorded(exercise, outcomes, one["costs"], one["stopped"])


def _outcome(result: Any) -> Any:
    return Failed(*result["failed"]) if "failed" in result else _restored(result["value"])


def _calls(exercise: Exercise, function: Any) -> dict[str, Any]:
    """The outcomes of a function's calls, and where it is scored and all went well, their costs."""
    outcomes: list[tuple[Any, Any]] = []
    costs: list[float] | str = "it was not counted."
    stopped = "it was called in another way."
    with sandbox(SECONDS) as place:
        try:
            for arguments in exercise.inputs:
                result = place.call(exercise, function, arguments)
                outcomes.append((arguments, _plain_outcome(result)))
            if exercise.cost and all("value" in result for _, result in outcomes):
                place.renew(60.0)
                costs = [place.run(partial(counted_cost, exercise, function, case)) for case in scored(exercise)]
        except OutOfTime as why:
            stopped = str(why)
        except Uncountable as why:
            costs = str(why)
    return {"outcomes": outcomes, "costs": costs, "stopped": stopped}


def _plain_outcome(result: Any) -> dict[str, Any]:
    if isinstance(result, Failed):
        return {"failed": [str(result.kind), str(result.sentence), str(result.line)]}
    try:
        return {"value": _portable(result)}
    except TypeError as error:
        return {"failed": ["TypeError", str(error), ""]}


def _portable(thing: Any) -> Any:
    """A thing as plain data. Raises TypeError for an object that is none."""
    if isinstance(thing, torch.Tensor):
        return thing.detach().as_subclass(torch.Tensor).clone()
    thing = plain(thing)
    if thing is ...:
        return _DOTS
    if isinstance(thing, list | tuple):
        return type(thing)(map(_portable, thing)) if type(thing) in (list, tuple) else tuple(map(_portable, thing))
    if thing is None or isinstance(thing, bool | int | str | torch.dtype):
        return thing
    if hasattr(thing, "__float__"):
        return float(thing)
    raise TypeError(f"it is an object of type {type(thing).__name__}, which no exercise asks for")


def _restored(thing: Any) -> Any:
    if isinstance(thing, list | tuple):
        return type(thing)(map(_restored, thing))
    return ... if isinstance(thing, str) and thing == _DOTS else thing


def _key(arguments: Sequence[Any]) -> str:
    """The same for the same arguments."""
    return repr(
        [
            (thing.shape, thing.dtype, thing.tolist()) if isinstance(thing, torch.Tensor) else thing
            for thing in arguments
        ]
    )


def _pack(thing: Any) -> str:
    buffer = io.BytesIO()
    torch.save(thing, buffer)
    return base64.b64encode(buffer.getvalue()).decode()


def _unpack(text: str) -> Any:
    """The plain data in a text, among which a model's shape is. Runs nothing that may be in it."""
    with torch.serialization.safe_globals([Config, *Config.__subclasses__(), frozenset]):
        return torch.load(io.BytesIO(base64.b64decode(text)), weights_only=True)
