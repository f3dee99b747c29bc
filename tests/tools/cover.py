"""The README's picture, drawn by the course's own code."""

from matplotlib.figure import Figure

from helpers import draw
from tests.tools.course import ROOT

PATH = ROOT / ".github" / "formats.png"


def figure() -> Figure:
    """What the picture shows."""
    return draw.ranges()


def store() -> None:
    """Write the picture, with its summary in words inside the file."""
    PATH.write_bytes(draw.png(figure(), draw.summary(figure())))
