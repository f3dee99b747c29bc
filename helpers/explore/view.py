"""What every view is: controls above words and a picture, and something to show wherever it cannot run."""

import base64
import html
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import ipywidgets as widgets
from matplotlib.figure import Figure

from helpers import draw

# Where the focus is must be seen, also on a slider, which has no sign of it. In the dark theme a drop-down list has its
# arrow in black, and a problem needs a lighter colour.
_CSS = (
    ".course-view :is(button, input, select, .noUi-handle, .widget-readout):focus-visible "
    "{outline: 3px solid var(--jp-brand-color1, #0072B2) !important; outline-offset: 1px}"
    f".course-problem {{color: {draw.INKS[draw.VERMILLION]}}}"
    "[data-jp-theme-light=false] .course-view select {appearance: auto; background-image: none !important}"
    f"[data-jp-theme-light=false] .course-problem {{color: {draw.TINTS[1]}}}"
)
HINT = "drag it, or use the arrow keys"  # a slider without one says "null"


class View(widgets.VBox):
    """A box of controls with words and a picture below, and a static picture of its first state."""

    def __init__(self) -> None:
        super().__init__()
        self.add_class("course-view")
        self.text = widgets.HTML()
        self.picture = widgets.HTML()  # ipywidgets has an Image, but without alt text
        self._quiet = False
        self._drawn: Figure | None = None  # to be drawn on again

    def _open(self, controls: Sequence[widgets.Widget], figure: Callable[[], Figure], what: str, css: str = "") -> None:
        """Show the controls; the figure and what it shows are for where no widget runs."""
        look = widgets.HTML(f"<style>{_CSS}{css}</style>", layout={"display": "none"})
        self.children = [look, *controls, self.text, self.picture]
        self._static = draw.Drawing(figure(), what)._repr_mimebundle_()

    def _say(self, lines: Sequence[str]) -> None:
        """Put these lines of HTML below the controls; the class asks the course's extension to have them read out."""
        self.text.value = f'<div class="course-words">{"<br>".join(lines)}</div>'

    def _show(self, figure: Figure | None, alt: str = "") -> None:
        """Put a figure below the words, or nothing."""
        self.picture.layout.display = None if figure else "none"
        if figure:
            code = base64.b64encode(draw.show(figure)._repr_mimebundle_()[0]["image/png"]).decode()
            width, height = (int(size * figure.dpi) for size in figure.get_size_inches())
            # With its size known and decoded at once, the page does not jump while a slider moves.
            self.picture.value = (
                f'<img src="data:image/png;base64,{code}" alt="{html.escape(alt)}" width="{width}" height="{height}" '
                'decoding="sync" style="max-width: 100%; height: auto">'
            )

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
    return f'<span role="alert" class="course-problem">{html.escape(problem)}</span>'
