"""What every view is: traits that a module draws in the browser; a picture and words where there is none."""

import base64
import dataclasses
import html
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import anywidget

MIME = "application/vnd.resource-accounting.view+json"  # in a stored output: what a page needs to draw the view
STATE = {"sync": True, "state": True}  # tags of a trait that the browser shows and changes
CONSTANT = {"sync": True, "constant": True}  # tags of one that it needs, and nobody changes
_HERE = Path(__file__).parent


def _text(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


class View(anywidget.AnyWidget):
    """A view: its state are traits, to be read and set from Python. The browser says where they do not fit together.

    A subclass names its module, `class Bits(View, module="bits.js")`, and draws in `_drawing` what is stored of it.
    """

    kinds: ClassVar[dict[str, type["View"]]] = {}
    kind: ClassVar[str]
    _css = _text("style.css")

    def __init_subclass__(cls, module: str = "", **kwargs: Any) -> None:
        if module:  # else it is a class that anywidget makes of one
            cls._esm, cls.kind = _text("shared.js") + _text(module), module.removesuffix(".js")
            cls.kinds[cls.kind] = cls
        super().__init_subclass__(**kwargs)

    def __init__(self, **values: Any) -> None:
        if unknown := set(values).difference(self.trait_names(state=True)):
            raise TypeError(f"this view has no {min(unknown)}, only {', '.join(self.trait_names(state=True))}")
        super().__init__(**values)
        picture = self._drawing()
        first = dataclasses.replace(picture, kind=f"Interactive view. {picture.kind}")
        data, self._metadata = first._repr_mimebundle_()
        self._data = data | {MIME: {"view": self.kind, "state": self.state}}

    @property
    def state(self) -> dict[str, Any]:
        """The values of the traits that the browser shows and changes."""
        return {name: getattr(self, name) for name in self.trait_names(state=True)}

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        live, _ = super()._repr_mimebundle_(**kwargs)
        return live | self._data, self._metadata


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
    values = json.dumps(constants | stored["state"], ensure_ascii=False)
    script = f'{view._esm}\nconst VIEW = "{view.kind}", STATE = {values};\n{_text("page.js")}'
    script = script.replace("export default", "const module =").replace("</", "<\\/")  # which would end the script
    return (
        f'<style>{view._css}</style><div data-view="{view.kind}" data-prevent-swipe>'
        f'<noscript><img src="data:image/png;base64,{png}" alt="{alt}"></noscript></div>'
        f'<script type="module">{script}</script>'
    )
