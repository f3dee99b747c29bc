"""Figures are tested by their labels, counts and data, not by pixels; the display by its bundle."""

import io
import os
import subprocess
import sys

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from helpers import draw


def chart():
    return draw.lines({"a": ([1, 10], [1, 2]), "b": ([1, 10], [3, 4])}, "title", "x / s", "y / B", log="xy")


def test_a_drawing_displays_itself_as_a_picture_and_in_words():
    data, metadata = chart()._repr_mimebundle_()
    picture = Image.open(io.BytesIO(data["image/png"]))
    assert set(data) == {"image/png", "text/plain"}
    assert data["text/plain"] == repr(chart()) == chart().words
    assert metadata["image/png"] == {"alt": chart().alt, "width": 704, "height": 330}
    assert picture.size == (2 * 704, 2 * 330)


def test_the_words_are_made_from_what_is_drawn():
    assert chart().words.splitlines() == [
        "Line chart: title. a: 1 to 2; b: 3 to 4. Axes: y / B against x / s, both logarithmic.",
        "x: x / s (log, 0.891 to 11.2)",
        "y: y / B (log, 0.933 to 4.29)",
        "Line a: (1, 1) (10, 2)",
        "Line b: (1, 3) (10, 4)",
        "Text: a | b",
    ]


@pytest.mark.parametrize("title", ["short", "a title of more than two hundred characters " * 6])
def test_an_alt_text_has_at_most_200_characters_and_opens_the_words(title):
    drawing = draw.lines({"a": ([1, 10], [1, 2])}, title, "x", "y")
    assert 20 <= len(drawing.alt) <= 200 and drawing.words.startswith(drawing.alt)
    assert "a: 1 to 2." in drawing.words


def test_a_learners_own_figure_is_shown_the_same_way():
    figure = Figure(figsize=(4, 3), dpi=100)
    axes = figure.subplots()
    axes.bar(["x", "y"], [1, 2], label="heights")
    data, metadata = draw.show(figure)._repr_mimebundle_()
    assert data["text/plain"].startswith("Bar chart.") and "Bars heights: 1 2" in data["text/plain"]
    assert (metadata["image/png"]["width"], metadata["image/png"]["height"]) == (400, 300)


def test_show_refuses_what_is_no_figure():
    with pytest.raises(TypeError, match="show takes a matplotlib Figure, got int"):
        draw.show(3)


def test_the_same_drawing_gives_the_same_picture_in_any_style():
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red", "savefig.facecolor": "black"}):
        other = chart().png()
        assert matplotlib.rcParams["font.size"] == 30
    assert other == chart().png()


def test_drawing_does_not_load_pyplot():
    code = "import sys; from helpers import draw; draw.layouts().png(); sys.exit('matplotlib.pyplot' in sys.modules)"
    environment = {name: value for name, value in os.environ.items() if name != "MPLBACKEND"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


def test_a_picture_is_opaque_and_has_few_colours():
    picture = Image.open(io.BytesIO(chart().png()))
    colours = np.unique(np.asarray(picture.convert("RGBA")).reshape(-1, 4), axis=0)
    assert (colours[:, 3] == 255).all() and len(colours) <= 64
