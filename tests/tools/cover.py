"""The README's picture, drawn by the course's own code."""

from helpers import draw, model
from tests.tools.course import ROOT

PATH = ROOT / ".github" / "block.png"


def figure() -> draw.Drawing:
    """What the picture shows: the block card, filled."""
    return draw.block(model.MODELS["Llama 3 8B"], 1, 8192)


def store() -> None:
    """Write the picture, with its words inside the file."""
    PATH.write_bytes(figure().png())
