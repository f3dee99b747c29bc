"""What every view is: traits that a module draws in the browser; a picture and words where there is none."""

import base64
import html
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import anywidget
from traitlets import TraitError, TraitType

from helpers import draw

MIME = "application/vnd.resource-accounting.view+json"  # in a stored output: what a page needs to draw the view
_WIDGET = "application/vnd.jupyter.widget-view+json"
_HERE = Path(__file__).parent


def _text(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


class View(anywidget.AnyWidget):
    """A view: its state are traits, to be read and set from Python; what cannot be is refused in a sentence.

    A subclass names its module, `class Bits(View, module="bits.js")`; tags its traits with `state` or `constant`; says
    in `problem` what is wrong with a state, and in `drawing` what is stored as the picture of the first one.
    """

    kinds: ClassVar[dict[str, type["View"]]] = {}
    kind: ClassVar[str]
    _css = _text("style.css")

    def __init_subclass__(cls, module: str = "", **kwargs: Any) -> None:
        if module:  # else it is a class that anywidget makes of one
            cls._esm = _text("shared.js") + _text(module)
            cls.kind = module.removesuffix(".js")
            cls.kinds[cls.kind] = cls
        super().__init_subclass__(**kwargs)

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except TraitError as error:
            raise ValueError(str(error)) from None
        picture = self.drawing()
        first = draw.Drawing(picture.figure, f"Interactive view. {picture.kind}", picture.finding)
        data, self._metadata = first._repr_mimebundle_()
        self._data = data | {MIME: {"view": self.kind, "state": self.state}}

    @property
    def state(self) -> dict[str, Any]:
        """The values of the traits that the browser shows and changes."""
        return {name: getattr(self, name) for name in self.trait_names(state=True)}

    def change(self, **values: Any) -> None:
        """Set several traits at once: `view.change(shape=(6, 4), stride=(1, 6))`."""
        with self.hold_sync(), self.hold_trait_notifications():
            for name, value in values.items():
                setattr(self, name, value)

    def checked(self, proposal: Any) -> Any:
        """For `traitlets.validate`: raise TraitError, with the sentence of `problem`, for a state that cannot be."""
        if problem := self.problem(**self.state | {proposal.trait.name: proposal.value}):
            raise TraitError(problem)
        return proposal.value

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        live = {"version_major": 2, "version_minor": 0, "model_id": self.model_id}
        return {_WIDGET: live, **self._data}, self._metadata


def state(trait: TraitType) -> TraitType:
    """A trait that the browser shows and changes."""
    return trait.tag(sync=True, state=True)


def constant(trait: TraitType) -> TraitType:
    """A trait that the browser needs, and nobody changes."""
    return trait.tag(sync=True, constant=True)


def live(output: Mapping[str, Any]) -> str:
    """A stored output that is a view as HTML, alive without a kernel and a network; "" for any other output.

    Any number of them fit on a page. Where no scripts run, the stored picture is shown.
    """
    stored = output.get("data", {}).get(MIME)
    if not stored:
        return ""
    view = View.kinds[stored["view"]]
    constants = {name: trait.default() for name, trait in view.class_traits(constant=True).items()}
    png, alt = output["data"]["image/png"], html.escape(output["metadata"]["image/png"]["alt"])
    png = base64.b64encode(png).decode() if isinstance(png, bytes) else png.replace("\n", "")
    script = view._esm.replace("export default", "const module =") + _HOST % {
        "kind": view.kind,
        "state": json.dumps(constants | stored["state"], ensure_ascii=False),
    }
    script = script.replace("</", "<\\/")  # which would end it
    return (
        f'<style>{view._css}</style><div data-view="{view.kind}" data-prevent-swipe>'
        f'<noscript><img src="data:image/png;base64,{png}" alt="{alt}"></noscript></div>'
        f'<script type="module">{script}</script>'
    )


# The model of a page without a kernel. Scripts run in the order of the page, so each finds its own element.
_HOST = """
const place = document.querySelector('[data-view="%(kind)s"]:not([data-live])');
const state = %(state)s, listeners = new Set();
place.dataset.live = "";
module.render({ el: place, model: {
  get: (name) => state[name],
  set: (name, value) => void (state[name] = value),
  save_changes: () => listeners.forEach((listener) => listener()),
  on: (event, listener) => listeners.add(listener),
  off: (event, listener) => listeners.delete(listener),
} });
"""
