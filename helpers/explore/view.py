"""What every view is: controls above words and a picture, and something to show wherever it cannot run."""

import html
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import ipywidgets as widgets
from matplotlib.figure import Figure

from helpers import draw


class View(widgets.VBox):
    """A box of controls with words and a picture below, and a static picture of its first state."""

    def __init__(self) -> None:
        super().__init__()
        self.text = widgets.HTML()
        self.picture = widgets.Image(format="png", layout={"max_width": "704px"})
        self._quiet = False

    def _open(self, controls: Sequence[widgets.Widget], figure: Callable[[], Figure], alt: str) -> None:
        """Show the controls; the figure and its alt text are for where no widget runs."""
        self.children = [*controls, self.text, self.picture]
        self._static = draw.bundle(figure(), alt)

    @contextmanager
    def _quietly(self) -> Iterator[None]:
        """Several controls change at once: their observers find `_quiet` and wait."""
        self._quiet = True
        try:
            yield
        finally:
            self._quiet = False

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        data, metadata = self._static
        live = {"version_major": 2, "version_minor": 0, "model_id": self.model_id}
        return {"application/vnd.jupyter.widget-view+json": live, **data}, metadata


def alert(problem: str) -> str:
    """A problem as HTML that a screen reader announces."""
    return f'<span role="alert" style="color:{draw.VERMILLION}">{html.escape(problem)}</span>'
