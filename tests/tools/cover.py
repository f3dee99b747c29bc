"""The README's pictures, by the course's own code: the card, which `refresh` renews, and a view that moves.

`python -m tests.tools.cover` films the view anew.
"""

import io

from PIL import Image

from helpers import explore
from tests.tools import browser, still
from tests.tools.course import ROOT

PATH, FILM = ROOT / ".github" / "block.png", ROOT / ".github" / "roofline.gif"


def card() -> dict[str, str]:
    """What the picture shows, as a cell would show it: the block card, filled."""
    return explore.block_card("Llama 3 8B", batch=1, tokens=8192, asked=False)._repr_mimebundle_()[0]


def store() -> None:
    """Write the picture, with its words inside the file; without a Chromium leave it as it is, and say so."""
    if reason := browser.lacking():
        print(f"The README's picture stays as it is: {reason}")
        return
    with browser.chromium() as opened:
        png, _ = still.take(opened, {"data": card()})
    PATH.write_bytes(png)


def frames() -> list[Image.Image]:
    """The view of the roofline in a browser, while the batch of a linear layer grows until it crosses the ridge."""
    data, metadata = explore.roofline()._repr_mimebundle_()
    head = '<meta charset="utf-8"><body style="background:white;font-family:sans-serif">'
    page = head + explore.live({"data": data, "metadata": metadata})
    with browser.chromium() as opened:
        tab = opened.new_page(viewport={"width": 760, "height": 420}, device_scale_factor=1.5)
        tab.set_content(page)
        shots, batch = [], tab.get_by_role("slider", name="batch")
        batch.press("Home")
        for _ in range(7):
            shots.append(Image.open(io.BytesIO(tab.screenshot())))
            for _ in range(2):
                batch.press("ArrowRight")
    return shots


if __name__ == "__main__":
    first, *rest = (shot.quantize(64, dither=Image.Dither.NONE) for shot in frames())
    first.save(FILM, save_all=True, append_images=rest, duration=[1200, *[700] * (len(rest) - 1), 2500], loop=0)
