"""What a call costs: what `count` says of it, or the new memory that it asks for."""

import copy
import tracemalloc
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from helpers.exercises.exercise import Exercise
from helpers.exercises.outcomes import described, written


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


def waste(
    exercise: Exercise, function: Callable[..., Any], count: Any, si: Any, advise: Callable[[list[float]], str]
) -> str | None:
    """What there is to say of a right answer that costs more than it must, or that nobody can count; else None.

    `count` is that of `helpers.counting`, `si` that of `helpers.units`, and `advise` says what to do about such costs.
    """
    try:
        used = costs(exercise, function, count)
    except _Uncountable as reason:
        return str(reason)
    allowed = known_costs(exercise, exercise.oracle, count)
    for arguments, mine, enough in zip(exercise.at or exercise.cases, used, allowed, strict=True):
        amounts = [si(amount, exercise.unit or "B") for amount in (mine, enough)]
        if not callable(exercise.cost) and mine < enough / 10:
            return f"only {amounts[0]} were seen of the {amounts[1]} that it takes. Where is the rest computed?"
        if mine > exercise.room * enough:
            return f"{written(exercise, arguments)} takes {amounts[0]} where {amounts[1]} would do. {advise(used)}"
    return None


def costs(exercise: Exercise, function: Callable[..., Any], count: Any) -> list[float]:
    """What that exercise asks for, of each call that is scored. Raises an exception that says why it is unknown."""
    return [_cost(exercise, function, copy.deepcopy(case), count) for case in exercise.at or exercise.cases]


known_costs = cache(costs)  # those of the oracle and of the wrong formulas, which do not change


def _cost(exercise: Exercise, function: Callable[..., Any], arguments: tuple[Any, ...], count: Any) -> float:
    if callable(exercise.cost):
        return exercise.cost(function, arguments)
    why, leaving = "what it costs cannot be counted", _Leaving()

    def watched(*args: Any) -> Any:
        with leaving:
            return function(*args)

    if hasattr(function, "_torchdynamo_orig_callable"):
        raise _Uncountable(f"{why}: it is compiled. Pass the function itself.")
    try:
        found = count(watched, *arguments)
    except Exception as error:
        if not leaving.name:
            empty = "meta tensor" in str(error) and "tensors without numbers are counted: work on whole tensors"
            raise _Uncountable(f"{why}: {empty or f'it raised {described(error)}'}.") from None
    if leaving.name:
        raise _Uncountable(f"{why}, since it leaves PyTorch ({leaving.name}). Stay with tensors.")
    if found.uncounted:
        raise _Uncountable(f"{why}: there is no rule for {', '.join(found.uncounted)}. Use other operations.")
    return getattr(found, exercise.cost)


def _storages(tree: Any) -> Iterator[torch.UntypedStorage]:
    """The storages of the tensors with strides and data in nested lists, tuples and dictionaries."""
    for tensor in tree_leaves(tree):
        if isinstance(tensor, torch.Tensor) and tensor.layout == torch.strided and not tensor.is_meta:
            yield tensor.untyped_storage()


class _NewMemory(TorchDispatchMode):
    """Adds up the bytes of every storage that turns up in an operation and does not lie in one that was there before.

    Apart from `counting`, which exercises do not import, and which does not look at what is allocated.
    """

    def __init__(self, known: Any) -> None:
        super().__init__()
        self._seen = list(_storages(known))  # kept alive, so that no address is used twice
        self.nbytes = self.foreign = 0  # foreign: made outside PyTorch, say by NumPy

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # the wrapper that True asks for imports torch._dynamo, which takes a second

    def see(self, tensors: Any) -> None:
        for new in _storages(tensors):
            if not any(0 <= new.data_ptr() - old.data_ptr() <= old.nbytes() - new.nbytes() for old in self._seen):
                self._seen.append(new)
                if new.resizable():
                    self.nbytes += new.nbytes()
                else:
                    self.foreign += new.nbytes()

    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = op(*args, **(kwargs or {}))
        self.see((args, kwargs, result))
        return result


_ASIDE = 50_000  # bytes of Python's own objects that nobody counts


def allocated_bytes(function: Callable[..., Any], arguments: tuple[Any, ...]) -> int:
    """A cost: the bytes of new memory that the call asks for, temporary tensors included; a view asks for none.

    Arrays and lists outside PyTorch count by their peak, where it is more than 50 kB, or what of them a tensor uses.
    """
    with _NewMemory(arguments) as memory:
        tracemalloc.start()
        try:
            result = function(*arguments)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    memory.see(result)
    return memory.nbytes + max(memory.foreign, peak if peak > _ASIDE else 0)
