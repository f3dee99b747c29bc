"""What an exercise is made of, the list of all, and a cost that a check can ask for."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


@dataclass(frozen=True)
class Exercise:
    """One exercise.

    `oracle(*arguments)` returns the right answer. `cases` holds the arguments of each call of the learner's function;
    without cases the answer is a value, and the oracle takes no arguments. Numbers may differ by `tolerance`, relative.
    `mistakes` maps a sentence to the function that makes that mistake, with the oracle's arguments.
    With a `cost`, a right answer must also cost no more than the oracle: `cost(function, arguments)` calls the function
    and returns what that took, in `unit`. A name, as "bytes_eager" or "flops", is that field of what `count` gives.
    """

    name: str
    oracle: Callable[..., Any]
    mistakes: dict[str, Callable[..., Any]]
    hint: str
    cases: tuple[tuple[Any, ...], ...] = ()
    tolerance: float = 1e-6
    cost: Callable[[Callable[..., Any], tuple[Any, ...]], float] | str | None = None
    unit: str = "B"


EXERCISES: dict[str, Exercise] = {}


def add(name: str, **parts: Any) -> None:
    """Put an exercise on the list: its parts are the fields of `Exercise`. Raises ValueError for a name twice."""
    if name in EXERCISES:
        raise ValueError(f"there are two exercises named {name!r}")
    EXERCISES[name] = Exercise(name, **parts)


class _NewMemory(TorchDispatchMode):
    """Adds up the bytes of every storage that turns up in an operation and was not there before.

    Apart from `counting`, which exercises do not import, and which does not look at what is allocated.
    """

    def __init__(self, known: Any) -> None:
        super().__init__()
        self._seen: dict[int, torch.UntypedStorage] = {}  # kept alive, so that no address is used twice
        self.nbytes = 0
        self.see(known)
        self.nbytes = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # the wrapper that True asks for imports torch._dynamo, which takes a second

    def see(self, tensors: Any) -> None:
        for tensor in tree_leaves(tensors):
            if isinstance(tensor, torch.Tensor) and tensor.layout == torch.strided:
                storage = tensor.untyped_storage()
                if storage._cdata not in self._seen:
                    self._seen[storage._cdata] = storage
                    self.nbytes += storage.nbytes()

    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = op(*args, **(kwargs or {}))
        self.see((args, kwargs, result))
        return result


def allocated_bytes(function: Callable[..., Any], arguments: tuple[Any, ...]) -> int:
    """A cost: the bytes of new memory that the call asks for, temporary tensors included; a view asks for none."""
    with _NewMemory(arguments) as memory:
        result = function(*arguments)
    memory.see(result)
    return memory.nbytes
