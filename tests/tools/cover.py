"""The README's pictures, by the course's own code: the card, which `refresh` renews, and a view that moves.

`python -m tests.tools.cover` films the view anew.
"""

import io

from PIL import Image

from helpers import draw, explore, model
from tests.tools import browser
from tests.tools.course import ROOT

PATH, FILM = ROOT / ".github" / "block.png", ROOT / ".github" / "roofline.gif"


def figure() -> draw.Drawing:
    """What the picture shows: the block card, filled."""
    return draw.block(model.MODELS["Llama 3 8B"], 1, 8192)


def store() -> None:
    """Write the picture, with its words inside the file."""
    PATH.write_bytes(figure().png())


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
