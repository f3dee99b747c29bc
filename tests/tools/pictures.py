"""Living pictures in a page of their own, without a kernel and a network, touched as a reader touches them."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from helpers import explore
from tests.tools import browser

VIEWS = ".course-view"
ROLES = ("button", "checkbox", "combobox", "slider", "spinbutton", "textbox")
_HEAD = """<!doctype html><html style="background: Canvas">
<meta charset="utf-8"><meta name="color-scheme" content="light dark">"""
_NUMBERS = """(view) => [...view.querySelectorAll("[data-shown]")].map(
    (part) => [part.dataset.shown, part.value ?? part.textContent])"""
# One after the other, in one page: a page for each would spend its time on reading the same scripts.
_NUMBERS_OF = f"""(view, states) => states.map((state) => {{
    Object.entries(state).forEach(([name, value]) => view.model.set(name, value));
    view.model.save_changes();
    return ({_NUMBERS})(view);
}})"""


def fragment(view: explore.view.View, state: dict[str, Any] | None = None) -> str:
    """A view in some state, as an exported page holds it."""
    stored = view._repr_mimebundle_()[0][explore.MIME]
    return explore.live({"data": {explore.MIME: stored | {"state": state or view.state}, "text/plain": ""}})


class Sheet:
    """A page that is opened on fragments, one time after another, and remembers what it complains of."""

    def __init__(self, context: Any, path: Path) -> None:
        self.page, self.path = context.new_page(), path
        self.complaints: list[str] = []
        self.page.set_default_timeout(1000 * browser.PATIENCE)
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", self._requested)

    def _requested(self, request: Any) -> None:
        if request.url != self.path.as_uri():
            self.complaints.append(request.url)

    def open(self, *fragments: str, width: int = 1280) -> Any:
        """Show these fragments, and give Playwright's page."""
        self.path.write_text("\n".join([_HEAD, *fragments]), encoding="utf-8")
        self.page.set_viewport_size({"width": width, "height": 720})
        self.page.goto(self.path.as_uri())
        return self.page


@contextmanager
def sheet(chromium: Any, folder: Path) -> Iterator[Sheet]:
    """A sheet in a browser, for a finger, too."""
    context = chromium.new_context(viewport={"width": 1280, "height": 720}, offline=True, has_touch=True)
    try:
        yield Sheet(context, folder / "page.html")
    finally:
        context.close()


def numbers(view: Any) -> dict[str, str]:
    """All that a view shows and Python can tell, by name."""
    return dict(view.evaluate(_NUMBERS))


def numbers_of(view: Any, states: Sequence[dict[str, Any]]) -> list[dict[str, str]]:
    """The same in each of these states."""
    return [dict(pairs) for pairs in view.evaluate(_NUMBERS_OF, states)]


def shown(view: Any, name: str) -> Any:
    """Where a view shows a number."""
    return view.locator(f"[data-shown='{name}']")


def part(view: Any, name: str) -> Any:
    """A control by role and name, such as "slider offset", or what a CSS selector finds, also within a control.

    The name may be the beginning of a longer one; with a full stop after it, it is all of it.
    """
    control, _, inside = name.partition(" >> ")
    role, _, label = control.partition(" ")
    if role not in ROLES:
        return view.locator(name)
    found = view.get_by_role(role, name=label.removesuffix("."), exact=label.endswith("."))
    return found.locator(inside or ":scope")


def touch(target: Any, how: str, value: Any = "") -> None:
    """Do something to a part of a view: tap its left end, type, press.

    Or drag it so many pixels to the right and down, by the mouse, or swipe it, by a finger.
    """
    target.scroll_into_view_if_needed()
    box = target.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    if how == "drag":
        mouse = target.page.mouse
        mouse.move(x, y)
        mouse.down()
        mouse.move(x + value[0], y + value[1], steps=4)
        mouse.up()
    elif how == "swipe":
        finger = target.page.context.new_cdp_session(target.page)
        way = [[{"x": x + value[0] * part / 8, "y": y + value[1] * part / 8}] for part in range(9)]
        for kind, points in [("touchStart", way[0]), *(("touchMove", points) for points in way[1:]), ("touchEnd", [])]:
            finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
        finger.detach()
    elif how == "tap":
        target.page.touchscreen.tap(box["x"] + 3, box["y"] + box["height"] / 2)
    elif how == "type":
        target.fill(value)
        target.press("Enter")
    elif how == "choose":
        target.select_option(value)
    else:
        getattr(target, how)(*[value] if value else [])


def walk(view: Any, steps: Sequence[tuple[str, str, Any, str | dict[str, str | None]]]) -> None:
    """Take steps, each a part, how it is touched, a value and what the view then says: words anywhere, or by place.

    A place is the name of a number; or "alert"; or a slider, for how its value is read out; None: it is not shown.
    """
    for number, step in enumerate(steps):
        name, how, value, says = step
        try:
            touch(part(view, name), how, value)
            for place, words in (says if isinstance(says, dict) else {"all": says}).items():
                _expect(view, place, words)
        except Exception as error:
            error.add_note(f"This was step {number} of the walk: {step}")
            raise


def _expect(view: Any, place: str, words: str | None) -> None:
    from playwright.sync_api import expect

    if words is None:
        expect(shown(view, place)).to_have_count(0)
    elif place == "alert":
        expect(view.locator(".problem")).to_have_text(re.compile(re.escape(words) if words else "^$"))
    elif place == "value":
        expect(shown(view, place)).to_have_value(words)
    elif place.startswith("slider"):
        expect(part(view, place)).to_have_attribute("aria-valuetext", words)
    else:
        expect(view if place == "all" else shown(view, place)).to_contain_text(words)
