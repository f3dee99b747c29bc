"""What every view is: traits that a module draws in the browser, and words where there is none.

The modules are JavaScript, one a view on one toolkit, whose first lines say how to write another. They lie where
JupyterLab looks for them, in .jupyter, so that the course's extension draws a stored view before anything has run.
Elsewhere (VS Code, Colab) anywidget draws the same modules, and an exported page holds a copy of them.
"""

import html
import json
import math
import os
import re
import sys
import sysconfig
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import anywidget
from traitlets import Dict, List, TraitError, Unicode, validate

from helpers import draw

MIME = "application/vnd.resource-accounting.view+json"  # in a stored output: what is needed to draw the view
STATE = {"sync": True, "state": True}  # tags of a trait that the browser shows and changes
GIVEN = {"sync": True, "given": True}  # tags of one that it needs, and only Python sets
_FOLDER = Path("share", "jupyter", "labextensions", "resource-accounting", "static", "explore")
_CHECKOUT = Path(__file__).resolve().parents[2] / ".jupyter" / _FOLDER
_HERE = _CHECKOUT if _CHECKOUT.is_dir() else Path(sysconfig.get_path("data")) / _FOLDER


def _text(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./(\w+)\.js";\n', re.MULTILINE)


def _module(kind: str) -> str:
    """A view's module as one text, with the modules that it imports in front: each becomes an object of its exports."""
    parts: dict[str, str] = {}

    def add(stem: str) -> str:
        text = _text(f"{stem}.js")
        for _, other in _IMPORT.findall(text):
            if other not in parts:
                parts[other] = _as_object(other, add(other))
        return _IMPORT.sub(r"const \1 = \2_module;\n", text)

    view = add(kind)
    return "\n".join([*parts.values(), view])


def _as_object(stem: str, text: str) -> str:
    exported = re.findall(r"^export (?:const|function) (\w+)", text, re.MULTILINE)
    body = re.sub(r"^export ", "", text, flags=re.MULTILINE)
    return f"const {stem}_module = (() => {{\n{body}\nreturn {{ {', '.join(exported)} }};\n}})();"


class StateError(TraitError, ValueError):
    """A state that a view cannot have; the one that it had stays."""


def require_one_of(known: Collection[str], name: str, what: str) -> None:
    """Raise StateError for a name that is not among those known; `what` says what it names."""
    if name not in known:
        raise StateError(f"there is no {what} {name!r}; there are {', '.join(known)}")


class View(anywidget.AnyWidget):
    """A view: its state are traits, to be read and set from Python. Traits that must fit together are set by `set`.

    A subclass names its module, `kind = "bits"` for bits.js, and says in `_words` what its first state shows.
    That is what a terminal and a screen reader get, and the tests compare. No picture is drawn in Python: the one that
    stands for a view where no scripts run is taken from the living one, by `python -m tests.tools.refresh`.
    Predictions that the reader has made are in `predicted`, by name; `revealed` names those with their answer shown.
    """

    kinds: ClassVar[dict[str, type["View"]]] = {}
    kind: ClassVar[str]  # not a keyword of the class, which Colab's traitlets, 5.7, refuse
    answers: ClassVar[dict[str, tuple[float, float]]] = {}  # by name, the ends of a prediction that is a number
    _css = _text("style.css")

    predicted, revealed = Dict().tag(**STATE), List(Unicode()).tag(**STATE)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        if "kind" in vars(cls):  # else it is a class that anywidget makes of one
            cls._esm = _module(cls.kind)
            cls.kinds[cls.kind] = cls
        super().__init_subclass__(**kwargs)

    def __init__(self, **values: Any) -> None:
        self._require_known(values, self.trait_names(given=True))
        super().__init__(**values)
        given = {name: getattr(self, name) for name in self.trait_names(given=True)}
        stored = {"view": self.kind, "state": self.state, "given": _json(given)}
        self._data = {"text/plain": f"Interactive view. {self._words()}", MIME: stored}

    def _require_known(self, values: Mapping[str, Any], given: Iterable[str] = ()) -> None:
        if unknown := values.keys() - {*self.trait_names(state=True), *given}:
            raise TypeError(f"this view has no {min(unknown)}, only {', '.join(self.trait_names(state=True))}")

    @property
    def state(self) -> dict[str, Any]:
        """The values of the traits that the browser shows and changes."""
        return {name: getattr(self, name) for name in self.trait_names(state=True)}

    @validate("predicted")
    def _predictable(self, proposal: Mapping[str, Any]) -> dict[str, Any]:
        for name, value in proposal["value"].items():
            least, most = self.answers.get(name, (-math.inf, math.inf))
            if name in self.answers and not (isinstance(value, int | float) and least <= value <= most):
                raise StateError(f"the prediction of {name} is a number from {least} to {most}, got {value!r}")
        return proposal["value"]

    def _proposed(self, proposal: Mapping[str, Any]) -> dict[str, Any]:
        """The state with what a validator is asked about."""
        return self.state | {proposal["trait"].name: proposal["value"]}

    def set(self, **state: Any) -> None:
        """Set several traits at once, such as a shape and its stride.

        Raises StateError, a ValueError, if they do not fit together, and TraitError for what is no value of a trait;
        then nothing has changed.
        """
        self._require_known(state)
        with self.hold_trait_notifications():
            for name, value in state.items():
                setattr(self, name, value)

    def _words(self) -> str:
        """The first state in words: a line that says what is to be seen, then lines with its numbers."""
        return self._drawing().words

    def _drawing(self) -> draw.Drawing:
        """A figure whose words are those of the first state, for a view that has no `_words` of its own yet."""
        raise NotImplementedError

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        # The extension keeps in step with the widget of this id while its kernel lives.
        metadata = {MIME: {"model": self.model_id}}
        if _drawn_by_the_extension():
            return self._data, metadata
        data, needed = super()._repr_mimebundle_(**kwargs) or ({}, {})
        return data | self._data, needed | metadata


def _drawn_by_the_extension() -> bool:
    """Whether a Jupyter server has started this kernel, as its variable tells.

    Its front end draws the stored view with the course's extension, and where that is not installed, it shows the
    picture. A widget it would prefer to both, and without anywidget on the server show an error in its place.
    Colab and VS Code know no such extensions, but anywidget.
    """
    return "JPY_SESSION_NAME" in os.environ and "google.colab" not in sys.modules


def _json(values: Mapping[str, Any]) -> str:
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"))


def live(output: Mapping[str, Any]) -> str:
    """A stored output that is a view as HTML, alive without a kernel and a network; "" for any other output.

    Any number of them fit on a page. Where no scripts run, the stored picture is shown, or the words if there is none.
    """
    stored = output.get("data", {}).get(MIME)
    if not stored:
        return ""
    view = View.kinds[stored["view"]]
    values = _json(json.loads(stored["given"]) | stored["state"])
    script = f'{view._esm}\nconst VIEW = "{view.kind}", STATE = {values};\n{_text("page.js")}'
    script = script.replace("export default", "const module =").replace("</", "<\\/")  # which would end the script
    return (
        f'<style>{view._css}</style><div data-view="{view.kind}" data-prevent-swipe>'
        f"<noscript>{_still(output)}</noscript></div>"
        f'<script type="module">{script}</script>'
    )


def _still(output: Mapping[str, Any]) -> str:
    """What stands for a view where no scripts run."""
    data = output["data"]
    if "image/png" not in data:
        return f"<pre>{html.escape(data['text/plain'])}</pre>"
    png, alt = data["image/png"].replace("\n", ""), html.escape(output["metadata"]["image/png"]["alt"])
    return f'<img src="data:image/png;base64,{png}" alt="{alt}">'
