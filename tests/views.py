"""What the interactive views show, in text: `python -m tests.views` stores it.

Each file in `tests/views/` is a session with one view. Lines that begin with `>>> ` are steps in Python. Below a step
stands what it changes: of each widget what is not ipywidgets' default and its value, or the value alone if nothing else
changed; the sentences; and the picture in the words of `draw.summary`. To try one more step, write its line and run the
command. Look at the difference before you commit: each line that changed is something that a learner sees.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import ipywidgets as widgets
from matplotlib.figure import Figure

from helpers import draw, explore

FOLDER = Path(__file__).with_name("views")
_STEP = ">>> "
# Shown on lines of their own, or how ipywidgets transports what `value` and `options` say.
_APART = {"description", "value", "children", "layout", "style", "index", "_options_labels"}


@dataclass(frozen=True)
class Shown:
    """A widget in words: its kind and name, what is not the default, and its value, of many lines if it is HTML."""

    name: str
    look: str
    value: str

    def lines(self, before: "Shown | None") -> Iterator[str]:
        """What has changed since then."""
        same = before is not None and (self.name, self.look) == (before.name, before.look)
        told = before is not None and self.value == before.value
        if not (same and told):
            head = self.name if same else f"{self.name} {self.look}".rstrip()
            yield head if told or not self.value else f"{head}: {self.value}".replace(": \n", ":\n")


def replay(session: str) -> str:
    """The session with what each of its steps changes now."""
    return "\n".join(blocks(session))


def blocks(session: str) -> Iterator[str]:
    """Each step with what it changes now."""
    names: dict[str, Any] = {"explore": explore, "view": None}
    before: dict[str, Shown] = {}
    for step in (line for line in session.splitlines() if line.startswith(_STEP)):
        lines = [step]
        with mock.patch.object(draw, "png", _words), mock.patch("base64.b64encode", bytes):
            try:
                exec(step.removeprefix(_STEP), names)
            except Exception as error:
                lines.append(f"{type(error).__name__}: {error}")
        now = dict(_everything(names["view"])) if names["view"] else {}
        lines += [line for place, part in now.items() for line in part.lines(before.get(place))]
        before = now
        yield "\n".join(lines) + "\n"


def _words(figure: Figure, **options: Any) -> bytes:
    """Stands in for the picture of a figure."""
    chosen = " ".join(f"{name}={value}" for name, value in options.items())
    return "\n".join([chosen, draw.summary(figure)]).encode()


def _everything(view: widgets.VBox) -> Iterator[tuple[str, Shown]]:
    """What stands in for the view where no widget runs, and every widget, by its place."""
    data, metadata = view._static
    words = data["text/plain"].splitlines()
    yield "static", Shown("Where no widget runs", "", f"\n  {metadata['image/png']['alt']}\n  {words[1]}")
    yield from _below(view, "")


def _below(widget: widgets.Widget, place: str) -> Iterator[tuple[str, Shown]]:
    children = getattr(widget, "children", ())
    name = f"{type(widget).__name__} {getattr(widget, 'description', '') or len(children) or ''}".rstrip()
    value = _value(widget.value) if hasattr(widget, "value") else ""
    if isinstance(widget, widgets.HTML):
        lines = re.split(r"<br>|\n|(?<=})(?=\S)|(?<=base64,)|(?=\" alt)", widget.value)
        value = "".join(f"\n  {line}" for line in lines)
    yield place, Shown(name, " ".join(_look(widget)), value)
    for number, child in enumerate(children):
        yield from _below(child, f"{place}.{number}")


def _look(widget: widgets.Widget) -> Iterator[str]:
    """What of a widget, its style and its layout is not the default."""
    for owner in (widget, getattr(widget, "style", None), widget.layout):
        names = sorted({*owner.keys, "options"} & owner.traits().keys() - _APART) if owner else []
        for name in names:
            if getattr(owner, name) != owner.traits()[name].default(owner):
                yield f"{name}={_value(getattr(owner, name))}"


def _value(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else repr(value)


def store() -> None:
    """Bring every session up to date."""
    for path in FOLDER.glob("*.txt"):
        path.write_text(replay(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    store()
