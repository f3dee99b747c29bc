"""What a right answer costs, beside what it may cost."""

import copy
import inspect
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import torch
from torch.overrides import TorchFunctionMode

from helpers import units
from helpers.check.run import Sandbox
from helpers.check.runner import OutOfTime
from helpers.check.wording import call_text, error_text
from helpers.counting import count
from helpers.exercises import Exercise

# What a tensor of zeros takes is forgiven: an answer may make one, as it may make an empty one, to write into it.
_BLANK = ("zeros", "zeros_like", "new_zeros")
SECONDS = 10.0  # that counting may take: each operation is looked at, which takes longer than running it
_MOST_OPERATIONS = 10_000  # of one call: more are a loop over numbers
_TOO_LONG = "that takes too long. Use few operations, on whole tensors."


class Uncountable(Exception):
    """Says why a cost is unknown."""


class _Leaving(TorchFunctionMode):
    """Notes when numbers leave PyTorch for a place where nobody counts, and ends what has too many operations."""

    name: str | None = None
    operations = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name in ("numpy", "tolist", "item", "__array__", "__float__", "__int__", "__dlpack__"):
            self.name = name
        self.operations += 1
        if self.operations > _MOST_OPERATIONS:
            raise Uncountable(_TOO_LONG)
        return func(*args, **(kwargs or {}))


def costs(exercise: Exercise, function: Callable[..., Any], place: Sandbox) -> list[float]:
    """What the exercise asks for, of each call that is scored. Raises Uncountable."""
    learner = inspect.unwrap(function)
    if hasattr(learner, "recorded_costs"):  # it ran elsewhere
        return learner.recorded_costs()
    known_costs(exercise, exercise.oracle)  # so that what counting imports is there, and takes none of the time
    place.renew(SECONDS)
    try:
        return [place.run(partial(counted_cost, exercise, function, case)) for case in scored(exercise)]
    except OutOfTime:
        raise Uncountable(_TOO_LONG) from None


@cache
def known_costs(exercise: Exercise, formula: Callable[..., Any]) -> list[float]:
    """The costs of the oracle, or of one of the wrong formulas, which do not change."""
    return [counted_cost(exercise, formula, case) for case in scored(exercise)]


def by_op(exercise: Exercise, function: Callable[..., Any], arguments: tuple[Any, ...]) -> list[str]:
    """What each op of a call costs, as "2 × `mul` 16 MB", the dearest first."""
    totals: dict[str, tuple[float, int]] = {}
    arguments = copy.deepcopy(arguments)
    with next(thing.device for thing in arguments if isinstance(thing, torch.Tensor)):
        rows = count(function, *arguments).ops
    for row in rows:
        cost, calls = totals.get(row.op, (0, 0))
        totals[row.op] = cost + (row.flops if exercise.cost == "flops" else row.bytes), calls + row.calls
    dearest_first = sorted(totals.items(), key=lambda item: item[1], reverse=True)
    return [f"{calls} × `{op}` {units.si(cost, exercise.unit or 'B')}" for op, (cost, calls) in dearest_first if cost]


def scored(exercise: Exercise) -> Sequence[tuple[Any, ...]]:
    """The arguments of the calls that are counted."""
    return exercise.counted_at or exercise.cases


def counted_cost(exercise: Exercise, function: Callable[..., Any], arguments: tuple[Any, ...]) -> float:
    """The cost of one call. A tensor that the function makes is on the device of its inputs, unless it says where."""
    arguments = copy.deepcopy(arguments)
    device = next((thing.device for thing in arguments if isinstance(thing, torch.Tensor)), torch.device("cpu"))
    leaving = _Leaving()
    try:
        with device, leaving:
            cost = count(function, *arguments)
    except Uncountable:
        raise
    except Exception as error:
        if not leaving.name:
            raise Uncountable(_reason(error)) from None
    if leaving.name:
        raise Uncountable(f"it leaves PyTorch ({leaving.name}), where nothing is counted. Use its own operations.")
    if cost.uncounted:
        raise Uncountable(f"there is no rule for {', '.join(cost.uncounted)}. Use other operations.")
    blank = sum(row.bytes for row in cost.ops if row.op in _BLANK) if exercise.cost == "bytes_eager" else 0
    return getattr(cost, exercise.cost) - blank


def _reason(error: Exception) -> str:
    text = str(error)
    if "meta" in text and ("device" in text or "no data" in text):
        return "it asks for another device, or for the numbers themselves. Make tensors on the device of the inputs."
    return f"it raised {error_text(error)}."


class Waste(NamedTuple):
    """A call that costs more than it may, or less than can be, and what to say of that."""

    call: str
    words: str


def waste(exercise: Exercise, used: Sequence[float]) -> Waste | None:
    """The first call whose cost is larger than it may be, or too small to be all; None if there is none."""
    allowed = known_costs(exercise, exercise.oracle)
    for arguments, mine, enough in zip(scored(exercise), used, allowed, strict=True):
        unit = exercise.unit or "B"
        digits = 4 if abs(mine - enough) > 1e-3 * enough else 7
        mine_text, enough_text = (units.si(amount, unit, digits) for amount in (mine, enough))
        call = call_text(exercise.name, arguments)
        if mine < enough / 10:
            missing = f"only {mine_text} were seen of the {enough_text} that it takes. Where is the rest computed?"
            return Waste(call, missing)
        limit = exercise.allowed_ratio * enough
        if mine > limit:
            # A statement that leaves so much room names its limit; else it asks for what is enough.
            wanted = units.si(limit, unit, digits) if exercise.allowed_ratio > 2 else enough_text
            return Waste(call, f"it takes {mine_text} where {wanted} would do.")
    return None
