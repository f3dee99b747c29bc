"""What a call costs, as `count` says of it."""

import copy
from collections.abc import Callable
from functools import cache
from typing import Any

from torch.overrides import TorchFunctionMode

from helpers import units
from helpers.check.answers import described, written
from helpers.counting import count
from helpers.exercises import Exercise


class _Uncountable(Exception):
    """Says why a cost is unknown."""


class _Leaving(TorchFunctionMode):
    """Notes when numbers leave PyTorch for a place where nobody counts."""

    name: str | None = None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name in ("numpy", "tolist", "item", "__array__", "__float__", "__int__", "__dlpack__"):
            self.name = name
        return func(*args, **(kwargs or {}))


def waste(exercise: Exercise, function: Callable[..., Any], advise: Callable[[list[float]], str]) -> str | None:
    """What there is to say of a right answer that costs more than it must, or that nobody can count; else None.

    `advise` says what to do about such costs.
    """
    try:
        used = costs(exercise, function)
    except _Uncountable as reason:
        return f"what it costs cannot be counted: {reason}"
    allowed = known_costs(exercise, exercise.oracle)
    for arguments, mine, enough in zip(exercise.at or exercise.cases, used, allowed, strict=True):
        digits = 4 if abs(mine - enough) > 1e-3 * enough else 7
        amounts = [units.si(amount, exercise.unit or "B", digits) for amount in (mine, enough)]
        if mine < enough / 10:
            return f"only {amounts[0]} were seen of the {amounts[1]} that it takes. Where is the rest computed?"
        if mine > exercise.room * enough:
            # A statement that leaves so much room names its limit; else it asks for what is enough.
            limit = units.si(exercise.room * enough, exercise.unit or "B", digits) if exercise.room > 2 else amounts[1]
            return f"{written(exercise, arguments)} takes {amounts[0]} where {limit} would do. {advise(used)}"
    return None


def costs(exercise: Exercise, function: Callable[..., Any]) -> list[float]:
    """What that exercise asks for, of each call that is scored. Raises an exception that says why it is unknown."""
    found = []
    for case in exercise.at or exercise.cases:
        leaving = _Leaving()
        try:
            with leaving:
                cost = count(function, *copy.deepcopy(case))
        except Exception as error:
            elsewhere = "a tensor made on the way is not on the device of the inputs. Use the numbers as they are."
            if not leaving.name:
                mixed = "device" in str(error) and "meta" in str(error)
                raise _Uncountable(elsewhere if mixed else f"it raised {described(error)}.") from None
        if leaving.name:
            raise _Uncountable(f"it leaves PyTorch ({leaving.name}). Stay with tensors.")
        if cost.uncounted:
            raise _Uncountable(f"there is no rule for {', '.join(cost.uncounted)}. Use other operations.")
        found.append(getattr(cost, exercise.cost))
    return found


known_costs = cache(costs)  # those of the oracle and of the wrong formulas, which do not change
