"""Contrast on the figures, measured on what is drawn: text, lines and marks against the pixels around them."""

import io

import numpy as np
import pytest
import torch
from matplotlib.collections import PathCollection
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D
from PIL import Image

from helpers import draw
from tests.contrast import contrast
from tests.test_draw import FIGURES

TEXT, SHAPE = 4.5, 3.0  # WCAG 2.2, 1.4.3 and 1.4.11; no text of a figure is large
SERIES = {str(k): ([1, 2, 3], [k, k + 1, k]) for k in range(1, 6)}
MORE = {
    "lines of five colours": lambda: draw.lines(SERIES, "title", "x", "y"),
    "intensity curves of five colours": lambda: draw.intensity_curves(SERIES, {"ridge": 2}, "title", "n"),
    "number lines of five colours": lambda: draw.number_line(["float4_e2m1fn"] * 5, 0, 6, "title"),
    "groups of five": lambda: draw.groups({"row": range(5)}, "title", "head"),
    "storage of five": lambda: draw.storage(dict(zip("abcde", torch.arange(50).split(10), strict=True)), "title"),
}


class Watch:
    """Draws a figure; for each text, line and mark keeps its name, the contrast that it needs and the one it has."""

    def __init__(self, figure):
        self.found = []
        figure.canvas.draw()
        self.renderer = figure.canvas.get_renderer()
        plain = self.renderer.draw_text

        def draw_text(gc, x, y, text, *args, **kwargs):
            around = self.around(lambda: plain(gc, x, y, text, *args, **kwargs))
            if text.strip():
                self.keep(text, TEXT, [contrast(gc.get_rgb()[:3], around)], 0.1)  # a line may cross a label

        self.renderer.draw_text = draw_text
        artists = [artist for ax in figure.axes for artist in (*ax.lines, *ax.collections)]
        for artist in artists:
            self.wrap(artist)
        figure.draw(self.renderer)
        for thing in (self.renderer, *artists):  # as it was
            for name in ("draw", "draw_text"):
                vars(thing).pop(name, None)

    def wrap(self, artist):
        name, plain = str(artist.get_label()), artist.draw

        def line(renderer):
            colour = artist.get_markeredgecolor() if artist.get_linestyle() == "None" else artist.get_color()
            behind = [to_rgb(effect._gc["foreground"]) for effect in artist.get_path_effects()[:1]]
            around = self.around(lambda: plain(renderer))
            # It is enough to be seen from one side: a line may lie along another.
            self.keep(name, SHAPE, [contrast(to_rgb(colour), behind or around)], 0.75)

        def marks(renderer):
            edge, inside = artist.get_edgecolor()[0, :3], artist.get_facecolor()[:1, :3]
            around = self.around(lambda: plain(renderer))
            seen = [contrast(edge, around), *(contrast(face, [edge]) for face in inside)]
            self.keep(name, SHAPE, [*seen, *(contrast(face, around) for face in inside)], 0.5)

        def digits(renderer):
            around = self.around(lambda: plain(renderer))
            self.keep("digits", TEXT, [contrast(artist.get_facecolor()[0, :3], around)], 0.1)

        if not name.startswith("_"):
            artist.draw = line if isinstance(artist, Line2D) else marks
        elif isinstance(artist, PathCollection):  # without a name: numbers drawn as outlines
            artist.draw = digits

    def keep(self, name, least, contrasts, share):
        self.found.append((name, least, round(max(float(np.quantile(ratios, share)) for ratios in contrasts), 2)))

    def around(self, draw_it):
        """The colours that were within two pixels of where this draws something."""
        before = np.array(self.renderer.buffer_rgba())
        draw_it()
        mask = (np.asarray(self.renderer.buffer_rgba()).view("u4") != before.view("u4"))[..., 0]
        assert mask.any(), "what is drawn cannot be seen"
        rows, columns = (np.flatnonzero(mask.any(axis)) for axis in (1, 0))
        part = tuple(slice(max(where[0] - 2, 0), where[-1] + 3) for where in (rows, columns))
        mask = mask[part]
        for axis in (0, 1):
            mask = np.any([np.roll(mask, step, axis) for step in range(-2, 3)], axis=0)
        return before[part][mask][:, :3] / 255


@pytest.fixture(params=[*FIGURES, *MORE], scope="module")
def figure(request):
    return (FIGURES | MORE)[request.param]()


def test_text_lines_and_marks_stand_out(figure):
    found = Watch(figure).found
    assert found
    assert not [(what, least, ratio) for what, least, ratio in found if ratio < least]


def test_the_stored_picture_keeps_the_colours(figure):
    full, stored = (
        np.asarray(Image.open(io.BytesIO(draw.png(figure, quick=quick))).convert("RGB")).astype(int)
        for quick in (True, False)
    )
    for colour in (*draw.INKS, *draw.INKS.values(), *draw.TINTS):
        pixels = (full == np.round(np.multiply(to_rgb(colour), 255))).all(-1)
        if pixels.sum() >= 8:  # more than where two edges happen to mix it
            assert np.abs(stored - full)[pixels].max() <= 25, colour
