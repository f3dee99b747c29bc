"""The README's pictures, by the course's own code: the card, which `refresh` renews, and a view that moves.

`python -m tests.tools.cover` films the view anew.
"""

import io
from collections.abc import Iterator
from typing import Any

from PIL import Image

from helpers import explore
from tests.tools import browser, still
from tests.tools.course import ROOT

PATH, FILM = ROOT / ".github" / "block.png", ROOT / ".github" / "roofline.gif"
_LOOK, _STEP, _READ = 1800, 120, 3500  # milliseconds that a frame stands


def card() -> dict[str, str]:
    """What the picture shows, as a cell would show it: the block card, filled."""
    return explore.block_card("Llama 3 8B", batch=1, tokens=8192, asked=False)._repr_mimebundle_()[0]


def store() -> None:
    """Write the picture, with its words inside the file; without a Chromium leave it as it is, and say so."""
    if reason := browser.lacking():
        print(f"The README's picture stays as it is: {reason}")
        return
    with browser.chromium() as opened:
        png, _ = still.take(opened, {"data": card()}, note="")
    PATH.write_bytes(png)


def _play(tab: Any) -> Iterator[int]:
    """A reader places a prediction and sees the answer, then drags a layer along the roof; yields how long to look."""
    yield _LOOK
    yield from _drag(tab, tab.get_by_role("slider", name="your guess").locator(".knob"), 250)
    yield _LOOK
    tab.get_by_role("button", name="Show the answer").click()
    tab.mouse.move(0, 0)
    yield _READ
    yield from _drag(tab, tab.get_by_role("slider", name="by its batch").locator(".mark"), 130)
    yield _READ


def _drag(tab: Any, part: Any, right: float) -> Iterator[int]:
    box, steps = part.bounding_box(), 8
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    tab.mouse.move(x, y)
    tab.mouse.down()
    for step in range(1, steps + 1):
        tab.mouse.move(x + right * step / steps, y)
        yield _STEP
    tab.mouse.up()
    tab.mouse.move(0, 0)


def frames() -> list[tuple[Image.Image, int]]:
    """The roofline in a browser while its question is answered, each frame with the milliseconds that it stands."""
    page = f'<meta charset="utf-8"><body style="background:white;font-family:sans-serif">{explore.live(_output())}'
    with browser.chromium() as opened:
        tab = opened.new_page(viewport={"width": 900, "height": 470}, reduced_motion="reduce")
        tab.set_content(page)
        tab.wait_for_selector("[data-live] svg")
        return [(Image.open(io.BytesIO(tab.screenshot())), wait) for wait in _play(tab)]


def _output() -> dict[str, Any]:
    data, metadata = explore.roofline(machine="NVIDIA A100 SXM4 80GB", batch=16)._repr_mimebundle_()
    return {"data": data, "metadata": metadata}


if __name__ == "__main__":
    shots, waits = zip(*frames(), strict=True)
    first, *rest = (shot.convert("RGB").quantize(64, dither=Image.Dither.NONE) for shot in shots)
    first.save(FILM, save_all=True, append_images=rest, duration=waits, loop=0)
