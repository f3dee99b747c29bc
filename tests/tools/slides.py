"""The slides as a class sees them: exported, in a headless Chromium of 1280 × 720, and measured."""

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from helpers.export import documents
from tests.tools.browser import chromium
from tests.tools.course import NOTEBOOKS

# How far what a slide holds runs over it, down and to the right; a Range also sees text that runs out of its element.
_OVER = """(slide, open) => {
  slide.querySelectorAll('details').forEach(details => { if (!details.closest('aside')) details.open = open; });
  const range = document.createRange();
  range.selectNodeContents(slide);
  const seen = [...slide.querySelectorAll('.outputs')].filter(outputs => outputs.getClientRects().length);
  const low = Math.max(0, ...seen.map(outputs => outputs.getBoundingClientRect().bottom));
  const held = range.getBoundingClientRect(), box = slide.getBoundingClientRect();
  const {paddingBottom, paddingRight} = getComputedStyle(slide);
  const right = held.right - box.right + parseFloat(paddingRight);
  return [Math.max(held.bottom, low) - box.bottom + parseFloat(paddingBottom), right];
}"""
_SHOW = "slide => { const {h, v} = Reveal.getIndices(slide); Reveal.slide(h, v, 99); return [h + 1, v + 1]; }"


class Slide(NamedTuple):
    """A slide: deck and place, its first words, and by how many px it is too large, folded or unfolded."""

    place: str
    words: str
    down: int
    right: int

    @property
    def fits(self) -> bool:
        """Whether all of it is seen without scrolling."""
        return self.down <= 1 and self.right <= 12  # a space may hang at the end of a line


@functools.cache
def deck(path: Path) -> str:
    """A notebook as slides, made once however many tests look at it."""
    names = {path.name: f"{path.stem}.slides.html" for path in NOTEBOOKS}
    return documents.document("slides", path, names, title=path.stem)


@contextmanager
def browser() -> Iterator[Any]:
    """A headless Chromium without a network, as playwright's browser context of 1280 × 720."""
    with chromium() as found:
        yield found.new_context(viewport={"width": 1280, "height": 720}, offline=True)


def measure(context: Any, file: Path) -> list[Slide]:
    """Every slide of an exported deck."""
    page, found = context.new_page(), []
    page.goto(file.as_uri())
    page.wait_for_function("window.Reveal && Reveal.isReady()")
    for slide in page.query_selector_all(".slides > section > section"):
        h, v = slide.evaluate(_SHOW)
        over = [slide.evaluate(f"slide => ({_OVER})(slide, {state})") for state in ("false", "true")]
        down, right = (round(max(sizes)) for sizes in zip(*over, strict=True))
        found.append(Slide(f"{file.stem} {h}/{v}", " ".join(slide.inner_text().split()[:7]), down, right))
    page.close()
    return found
