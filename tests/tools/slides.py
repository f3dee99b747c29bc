"""See the slides as a class will, and measure them: `python -m tests.tools.slides [NN ...] [--shots DIR]`.

Every deck is exported and opened in a headless Chromium of 1280 × 720. What ends below or beside its slide is printed;
--shots keeps a picture of every slide, all unfolded. Needs the extra `teach`, playwright and a chromium.
"""

import argparse
import functools
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from helpers import export
from tests.tools.browser import chromium, lacking
from tests.tools.course import NOTEBOOKS

WIDTH, HEIGHT = 1280, 720

# What a slide holds, from its upper left corner; a Range also sees text that runs out of its element.
_MEASURE = """([slide, open]) => {
  slide.querySelectorAll('details').forEach(details => { if (!details.closest('aside')) details.open = open; });
  const range = document.createRange();
  range.selectNodeContents(slide);
  const held = range.getBoundingClientRect(), box = slide.getBoundingClientRect();
  const {paddingBottom, paddingRight} = getComputedStyle(slide);
  return [held.bottom - box.bottom + parseFloat(paddingBottom), held.right - box.right + parseFloat(paddingRight)];
}"""


@dataclass(frozen=True)
class Slide:
    """A slide as measured: its place as in the address bar, its first words, and the px by which it is too large."""

    deck: str
    place: str
    words: str
    unfolded: bool
    down: int
    right: int

    @property
    def fits(self) -> bool:
        """Whether all of it is seen without scrolling."""
        return self.down <= 0 and self.right <= 0

    def __str__(self) -> str:
        how = " with its folds open" if self.unfolded else ""
        over = [f"{px} px too {what}" for px, what in ((self.down, "tall"), (self.right, "wide")) if px > 0]
        return f"{self.deck} slide {self.place} ({self.words}){how}: {' and '.join(over) or 'fits'}"


@functools.cache
def deck(path: Path) -> str:
    """A notebook as slides, made once however many tests look at it."""
    return export.slides(path, {path.name: f"{path.stem}.slides.html" for path in NOTEBOOKS})


def missing() -> str:
    """Why slides cannot be looked at here, or ""."""
    if names := export.missing("slides"):
        return f"not installed: {', '.join(names)}"
    return lacking()


@contextmanager
def browser() -> Iterator[Any]:
    """A headless Chromium without a network, as playwright's browser context of 1280 × 720."""
    with chromium() as found:
        yield found.new_context(viewport={"width": WIDTH, "height": HEIGHT}, offline=True)


def measure(context: Any, file: Path, shots: Path | None = None) -> list[Slide]:
    """Every slide of an exported deck, measured folded and unfolded; shots is a folder for pictures."""
    page = context.new_page()
    page.goto(file.as_uri())
    page.wait_for_function("window.Reveal && Reveal.isReady()")
    page.evaluate("document.fonts.ready")
    found = []
    for slide in page.query_selector_all(".slides > section > section"):
        h, v = slide.evaluate(
            "slide => { const {h, v} = Reveal.getIndices(slide); Reveal.slide(h, v, 99); return [h, v]; }"
        )
        words = " ".join(slide.inner_text().split()[:7])
        folds = slide.evaluate(
            "slide => slide.querySelectorAll(':scope :not(aside) > details, :scope > details').length"
        )
        for unfolded in (False, True) if folds else (False,):
            down, right = slide.evaluate(f"slide => ({_MEASURE})([slide, {str(unfolded).lower()}])")
            found.append(Slide(file.stem, f"{h + 1}/{v + 1}", words, unfolded, round(down), round(right)))
        if shots:
            page.screenshot(path=shots / f"{file.stem[:2]}_{h + 1:02}_{v + 1:02}.png")
    page.close()
    return found


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.slides", description=__doc__)
    parser.add_argument("numbers", nargs="*", metavar="NN", help="notebook numbers, such as 01; default: all")
    parser.add_argument("--notebooks", type=Path, metavar="DIR", help="take the notebooks from there")
    parser.add_argument("--shots", type=Path, metavar="DIR", help="keep a picture of every slide there")
    arguments = parser.parse_args()
    found = sorted(arguments.notebooks.glob("[0-9][0-9]_*.ipynb")) if arguments.notebooks else NOTEBOOKS
    known = {path.name[:2]: path for path in found}
    for number in arguments.numbers:
        if number not in known:
            parser.error(f"there is no notebook {number}; there are {', '.join(known)}")
    if reason := missing():
        parser.error(reason)
    if arguments.shots:
        arguments.shots.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, browser() as context:
        too_large = 0
        for number in arguments.numbers or known:
            file = Path(folder) / f"{known[number].stem}.html"
            file.write_text(deck(known[number]), encoding="utf-8")
            slides = measure(context, file, arguments.shots)
            over = [slide for slide in slides if not slide.fits]
            too_large += len(over)
            print(
                *over,
                f"{file.stem}: {len({s.place for s in slides})} slides, {len(over)} too large",
                sep="\n",
                flush=True,
            )
    sys.exit(too_large > 0)


if __name__ == "__main__":
    main()
