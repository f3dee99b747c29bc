"""The README's picture, drawn by the course's own code."""

from helpers import draw
from tests.course import ROOT

PATH = ROOT / ".github" / "formats.png"


def draw_cover() -> bytes:
    """The picture as PNG bytes."""
    return draw.png(draw.ranges())
