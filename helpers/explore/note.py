"""The note of a tensor, offset, shape and stride, on its storage: found by hand, or known not to exist."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from traitlets import Dict, Int, List, Unicode, validate

from helpers.explore.view import GIVEN, STATE, StateError, View, require_one_of
from helpers.storage import layout, offset_of, same_storage

_CELLS = 24  # of a storage, at most
_MOST, _LONGEST = 48, 12  # elements, in all and in a dimension
_Note = dict[str, Any]


def _note(t: torch.Tensor) -> _Note:
    where = layout(t)
    return {"offset": where.offset, "shape": list(where.shape), "stride": list(where.stride)}


def note_of(cells: torch.Tensor) -> tuple[_Note | None, str]:
    """The note that reads these storage cells, in the shape of the tensor, or None and the reason why there is none.

    >>> note_of(torch.tensor([[0, 4, 8], [1, 5, 9]]))
    ({'offset': 0, 'shape': [2, 3], 'stride': [1, 4]}, '')
    >>> note_of(torch.tensor([8, 0, 8]))
    (None, 'from one element to the next in dimension 0 it is −8 and 8 cells, and one stride cannot be both')
    >>> note_of(torch.tensor([3, 2, 1]))
    (None, 'dimension 0 would need a stride of −1, and PyTorch has none below 0')

    Raises ValueError for a tensor without elements.
    """
    if not cells.numel():
        raise ValueError(f"a grid of shape {tuple(cells.shape)} has no elements to look for")
    stride = []
    for k in range(cells.dim()):
        steps = [int(step) for step in cells.diff(dim=k).unique()] or [1]
        told = " and ".join(str(step).replace("-", "−") for step in steps)
        if len(steps) > 1:
            return None, (
                f"from one element to the next in dimension {k} it is {told} cells, and one stride cannot be both"
            )
        if steps[0] < 0:
            return None, f"dimension {k} would need a stride of {told}, and PyTorch has none below 0"
        stride += steps
    return {"offset": int(cells.flatten()[0]), "shape": list(cells.shape), "stride": stride}, ""


class Note(View):
    """Offset, shape and stride of a tensor on its storage, to be moved, and a question that comes first.

    The question is one of three. `find` is an index of the tensor: which cell holds that element? `grids` are tensors
    by name, of numbers in its storage, copies or not: which note reads each, or is there none? `view` is a shape: has
    the tensor, or each tensor of a mapping, a view of that shape, and with which stride would it have one?
    State: `task`, the name of the grid or tensor; `offset`, `shape`, `stride`, `view`, in elements. What they say need
    not fit on the storage: that is shown. `predicted` holds the cell, "note", "no note", "yes" or "no" by task.

    Raises StateError, a ValueError, where shape and stride differ in length; set both together, by `set`. Raises
    ValueError for a storage of more than 24 cells or with a number twice, for tensors of several storages, for
    more than 3 dimensions or 48 elements, and for a grid with a number that the storage does not hold.
    """

    kind = "note"
    task = Unicode().tag(**STATE)
    offset = Int(min=0).tag(**STATE)
    shape, stride, view = (List(Int()).tag(**STATE) for _ in range(3))
    tasks: Dict = Dict().tag(**GIVEN)
    values: List = List().tag(**GIVEN)
    itemsize, most = Int(8).tag(**GIVEN), Int(_MOST).tag(**GIVEN)

    def __init__(
        self,
        tensors: torch.Tensor | Mapping[str, torch.Tensor],
        *,
        find: Sequence[int] | None = None,
        grids: Mapping[str, torch.Tensor] | None = None,
        view: Sequence[int] = (),
        **state: Any,
    ) -> None:
        named = {"x": tensors} if isinstance(tensors, torch.Tensor) else dict(tensors)
        values = _values(named)
        first = next(iter(named.values()))
        tasks: dict[str, _Note] = {name: {"start": _note(t)} for name, t in named.items()}
        if find is not None:
            tasks = {f"[{', '.join(map(str, find))}]": {"start": _note(first), "cell": offset_of(tuple(find), first)}}
        elif grids:
            tasks = {name: {"start": _note(first), **_wanted(name, grid, values)} for name, grid in grids.items()}
        given = {"tasks": tasks, "values": values, "itemsize": first.element_size()}
        begin = {"task": state.get("task", next(iter(tasks))), "view": list(view)}
        self.tasks = tasks  # before the task is validated
        super().__init__(**begin | tasks.get(begin["task"], {"start": {}})["start"] | state, **given)

    @validate("task")
    def _known(self, proposal: dict[str, Any]) -> str:
        if self.tasks:
            require_one_of(self.tasks, proposal["value"], "task")
        return proposal["value"]

    @validate("view")
    def _shape_or_rest(self, proposal: dict[str, Any]) -> list[int]:
        if min(proposal["value"], default=0) < -1:
            raise StateError(f"view is a shape, with -1 at most once for what is left, got {proposal['value']}")
        return proposal["value"]

    @validate("shape", "stride")
    def _drawable(self, proposal: dict[str, Any]) -> list[int]:
        state = self._proposed(proposal)
        shape, stride = state["shape"], state["stride"]
        if len(shape) != len(stride):
            raise StateError(
                f"shape and stride have {len(shape)} and {len(stride)} numbers, and each dimension has one of both: "
                "set them together, set(shape=…, stride=…)"
            )
        if min(shape, default=0) < 0:
            raise StateError(f"no size is below 0, got {tuple(shape)}")
        if len(shape) > 3 or math.prod(shape) > _MOST or max(shape, default=0) > _LONGEST:
            raise StateError(
                f"the picture holds 3 dimensions of at most {_LONGEST} and {_MOST} elements, got {tuple(shape)}"
            )
        return proposal["value"]

    @property
    def tensor(self) -> torch.Tensor:
        """The tensor that the state describes. Raises RuntimeError, as PyTorch does, where there is none."""
        return torch.as_strided(torch.tensor(self.values), self.shape, self.stride, self.offset)

    def _words(self) -> str:
        known = self.tasks[self.task]
        first = f"offset {self.offset}, shape {tuple(self.shape)}, stride {tuple(self.stride)}"
        lines = [f"Storage: {' '.join(map(str, self.values))}"]
        if "cell" in known:
            question = f"Which cell holds element {self.task} of the tensor with {first}?"
        elif "grid" in known:
            question = "Which offset, shape and stride read each of these grids, or is there no note that does?"
            lines += [
                f"{name}: shape {tuple(task['shape'])}, {_listed(task, self)}" for name, task in self.tasks.items()
            ]
        elif self.view:
            question = f"Which of these tensors have a view of shape {tuple(self.view)}?"
            lines += [f"{name}: {_told(task['start'])}" for name, task in self.tasks.items()]
        else:
            question = f"A tensor on its storage: {first}."
        return "\n".join([question, *lines])


def _listed(task: _Note, note: Note) -> str:
    return " ".join(str(note.values[cell]) for cell in task["grid"])


def _told(note: _Note) -> str:
    return f"offset {note['offset']}, shape {tuple(note['shape'])}, stride {tuple(note['stride'])}"


def _wanted(name: str, grid: torch.Tensor, values: Sequence[int]) -> _Note:
    """A wanted grid as the cells of its numbers, and its note or the reason why there is none."""
    cell_of = {value: cell for cell, value in enumerate(values)}
    numbers = grid.flatten().tolist()
    _require_drawable(name, grid)
    if missing := [number for number in numbers if number not in cell_of]:
        raise ValueError(f"{name} holds {missing[0]}, which is in no cell of the storage: {values}")
    cells = torch.tensor([cell_of[number] for number in numbers]).view(grid.shape)
    answer, why = note_of(cells)
    return {"grid": cells.flatten().tolist(), "shape": list(grid.shape), "answer": answer, "why": why}


def _require_drawable(name: str, t: torch.Tensor) -> None:
    if t.dim() > 3 or t.numel() > _MOST:
        raise ValueError(f"a grid has at most 3 dimensions and {_MOST} elements, {name} has shape {tuple(t.shape)}")


def _values(tensors: Mapping[str, torch.Tensor]) -> list[int]:
    """The numbers on the storage that all the tensors share, in order; refuses what cannot be drawn."""
    first = next(iter(tensors.values()))
    count = layout(first).storage_bytes // first.element_size()
    if not 1 <= count <= _CELLS:
        raise ValueError(f"the picture shows a storage of 1 to {_CELLS} cells, got {count}")
    for name, t in tensors.items():
        _require_drawable(name, t)
        if not same_storage(first, t):
            raise ValueError(f"{name} has another storage: the picture shows tensors of one")
    values = torch.as_strided(first, (count,), (1,), 0).tolist()
    if len(set(values)) < count:
        raise ValueError(f"each number may be in one cell only, so that it tells the cell, got {values}")
    return values
