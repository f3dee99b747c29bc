"""The stored pictures of the views, taken from the living ones: what GitHub and others show that run no scripts."""

import io
import textwrap
from typing import Any

from nbformat import NotebookNode
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from helpers import explore

WIDTH, MARGIN = 860, 10  # pixels as shown, of the picture and around it
NOTE = "A still picture: it comes alive where the notebook runs, and on the course’s pages."
_HEAD = f"""<!doctype html><meta charset="utf-8"><meta name="color-scheme" content="light">
<body style="margin: 0; background: white"><div style="padding: {MARGIN}px; font: 16px sans-serif">"""


def take(browser: Any, output: Any, note: str = NOTE) -> tuple[bytes, dict[str, Any]]:
    """A picture of the view in an output, as a PNG file of twice the pixels, and its metadata: alt, width, height.

    A line above it is the note, for a reader who would else drag what cannot be dragged. The file holds the words of
    the view as its description. Raises RuntimeError where the view complains.
    """
    complaints: list[str] = []
    size = {"width": WIDTH + 2 * MARGIN, "height": 720}
    options = {"device_scale_factor": 2, "color_scheme": "light", "reduced_motion": "reduce", "offline": True}
    context = browser.new_context(viewport=size, **options)
    page = context.new_page()
    page.on("pageerror", lambda error: complaints.append(str(error)))
    line = f'<p style="margin: 0 0 {MARGIN}px; font-size: 14px; color: #595959">{note}</p>' if note else ""
    page.set_content(f"{_HEAD}{line}{explore.live(output)}</div>")
    page.wait_for_selector("[data-live] .body > *")
    shot = page.locator("body > div").screenshot(animations="disabled")
    complaints += page.locator(".problem:not(:empty)").all_text_contents()
    context.close()
    if complaints:
        raise RuntimeError(f"the view cannot be shown: {complaints[0]}")
    words = output["data"]["text/plain"]
    png, (width, height) = _small(shot, words)
    return png, {"alt": alt(words), "width": width // 2, "height": height // 2}


def alt(words: str) -> str:
    """The opening of the words, in at most 200 characters."""
    return textwrap.shorten(words.partition("\n")[0], 200, placeholder=" …")


def _small(shot: bytes, words: str) -> tuple[bytes, tuple[int, int]]:
    """The picture in 64 colours, as the course's figures are, with its words inside the file; and its size."""
    picture = Image.open(io.BytesIO(shot)).convert("RGB")
    few = picture.quantize(64, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    description = PngInfo()
    description.add_itxt("Description", words)
    stored = io.BytesIO()
    few.save(stored, format="png", optimize=True, pnginfo=description)
    return stored.getvalue(), picture.size


def views(notebook: NotebookNode) -> list[NotebookNode]:
    """The outputs of a notebook that are views."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    return [output for output in outputs if explore.MIME in output.get("data", {})]
