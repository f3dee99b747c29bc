"""Shape, stride and offset on a storage, to be typed."""

import math
from collections.abc import Sequence
from typing import ClassVar

import ipywidgets as widgets
import torch
from matplotlib.figure import Figure

from helpers import draw, storage
from helpers.explore.view import View, alert


class Strides(View):
    """Choose shape, stride and offset; see which cells of a storage they touch, and whether a wanted view exists."""

    CELLS = 24
    NO_PRESET = "choose …"
    PRESETS: ClassVar = {
        "4 rows of 6": ("4, 6", "6, 1", 0, "24"),
        "its transpose": ("6, 4", "1, 6", 0, "24"),
        "columns 1 to 3": ("4, 3", "6, 1", 1, "2, 2, 3"),
        "every other row": ("2, 6", "12, 1", 0, "12"),
        "every other column": ("4, 3", "6, 2", 0, "12"),
        "the diagonal": ("4", "7", 0, "2, 2"),
        "three dimensions": ("2, 3, 4", "12, 4, 1", 0, "6, 4"),
        "two of them swapped": ("3, 2, 4", "4, 12, 1", 0, "6, 4"),
        "one row, expanded": ("4, 6", "0, 1", 0, "24"),
        "sliding windows of 4": ("6, 4", "1, 1", 0, "24"),
    }

    def __init__(self, shape: Sequence[int], stride: Sequence[int], offset: int, view: Sequence[int]) -> None:
        super().__init__()
        self._base = torch.arange(self.CELLS)
        style = {"style": {"description_width": "60px"}, "layout": {"width": "220px"}}
        typed = {"continuous_update": False, **style}
        self.preset = widgets.Dropdown(options=[self.NO_PRESET, *self.PRESETS], description="example", **style)
        self.shape = widgets.Text(_listed(shape), description="shape", placeholder="4, 6", **typed)
        self.stride = widgets.Text(_listed(stride), description="stride", placeholder="6, 1", **typed)
        self.offset = widgets.BoundedIntText(offset, max=self.CELLS - 1, description="offset", **style)
        self.view = widgets.Text(_listed(view), description="view as", placeholder="24", **typed)
        for control in (self.shape, self.stride, self.offset, self.view):
            control.observe(lambda _: self._edit(), "value")
        self.preset.observe(lambda change: self._choose(change["new"]), "value")
        self.tensor = self._made()
        self._update()
        self._open(
            [
                widgets.HBox([self.preset, self.view]),
                widgets.HBox([self.shape, self.stride, self.offset], layout={"flex_flow": "row wrap"}),
            ],
            lambda: self._draw(self.tensor),
            "Interactive view of shape, stride and offset",
        )

    def _choose(self, name: str) -> None:
        if name in self.PRESETS:
            with self._quietly():
                self.shape.value, self.stride.value, self.offset.value, self.view.value = self.PRESETS[name]
            self._update()

    def _edit(self) -> None:
        if not self._quiet:
            self.preset.value = self.NO_PRESET  # so that the same example can be chosen again
            self._update()

    def _update(self) -> None:
        """Bring words and picture in line with the controls; for impossible ones the words alone, and no picture."""
        try:
            self.tensor = self._made()
            lines = [*self._words(), self._view_words()]
        except ValueError as error:
            self._say([alert(str(error))])
            self._show(None)
            return
        self._say(lines)
        shown = _described(self.tensor)
        self._show(self._draw(self.tensor), f"The tensor as a grid above its storage of {self.CELLS} cells: {shown}.")

    def _made(self) -> torch.Tensor:
        """The tensor that the controls ask for. Raises ValueError with a sentence for the learner."""
        shape, stride = _read(self.shape.value, "shape"), _read(self.stride.value, "stride")
        offset = self.offset.value
        if len(shape) != len(stride):
            raise ValueError(f"shape has {len(shape)} numbers and stride {len(stride)}: each dimension has one stride.")
        if len(shape) > 3 or math.prod(shape) > draw.MOST_CELLS:
            raise ValueError(f"the picture holds 3 dimensions and {draw.MOST_CELLS} elements; make the shape smaller.")
        last = offset + sum((size - 1) * step for size, step in zip(shape, stride, strict=True))
        if math.prod(shape) and last >= self.CELLS:
            raise ValueError(f"the last element would be at offset {last}; the storage ends at {self.CELLS - 1}.")
        return torch.as_strided(self._base, shape, stride, offset)

    def _draw(self, t: torch.Tensor) -> Figure:
        return draw.storage(t, f"{_described(t)} of {self.CELLS} cells").figure

    def _words(self) -> list[str]:
        t = self.tensor
        touched = draw.offsets(t)
        law = " + ".join([str(t.storage_offset()), *(f"i{k} × {step}" for k, step in enumerate(t.stride()))])
        shared = t.numel() - len(set(touched))
        again = f", {shared} times a cell that another element has too" if shared else ""
        order = " ".join(map(str, touched[:24])) + (" …" if len(touched) > 24 else "")
        return [
            f"<b>offset of an element = {law}</b>",
            f"touched in order: {order}",
            f"{t.numel()} elements{again}; {storage.touched_bytes(t)} B touched of {self._base.nbytes} B "
            f"(int64); <b>{'contiguous' if t.is_contiguous() else 'not contiguous'}</b>",
        ]

    def _view_words(self) -> str:
        wanted = _read(self.view.value, "view as", lowest=-1)
        plan = storage.plan_view(self.tensor.shape, self.tensor.stride(), wanted)
        call = f"view({_listed(wanted)})"
        if plan.stride is None:
            return f"✗ {call} does not exist: {plan.reason}"
        return f"✓ {call} exists, with stride {plan.stride}: {plan.reason}"


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def _described(t: torch.Tensor) -> str:
    kind = "contiguous" if t.is_contiguous() else "not contiguous"
    return f"{t.numel()} elements, {kind}, touch {len(set(draw.offsets(t)))}"


def _read(text: str, name: str, lowest: int = 0) -> tuple[int, ...]:
    """The whole numbers in a text such as "4, 6" or "(4, 6)"; none for a tensor without dimensions."""
    parts = text.replace(",", " ").strip(" ()[]").split()
    try:
        numbers = tuple(int(part) for part in parts)
    except ValueError:
        raise ValueError(f"{name} is {text!r}: write whole numbers with commas, like 4, 6.") from None
    if any(number < lowest for number in numbers):
        raise ValueError(f"{name} is {text!r}: torch has no negative sizes or strides.")
    return numbers


def strides(
    shape: Sequence[int] = (4, 6), stride: Sequence[int] = (6, 1), offset: int = 0, view: Sequence[int] = (24,)
) -> Strides:
    """Shape, stride and offset as controls: the cells touched, in order, and whether a wanted view exists and why.

    Raises ValueError for a tensor that does not fit on the 24 cells of the storage.
    """
    return Strides(shape, stride, offset, view)
