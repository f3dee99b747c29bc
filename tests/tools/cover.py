"""The README's picture, drawn by the course's own code."""

from helpers import draw
from tests.tools.course import ROOT

PATH = ROOT / ".github" / "formats.png"


def figure() -> draw.Drawing:
    """What the picture shows."""
    return draw.ranges()


def store() -> None:
    """Write the picture, with its summary in words inside the file."""
    PATH.write_bytes(figure().png())
