"""Figures are tested by their labels, counts and data, not by pixels; `show` by the bundle that it displays."""

import struct

import matplotlib
import pytest

from helpers import draw, formats

FIGURES = {
    "bits": lambda: draw.bits(0x3F80, "bfloat16"),
    "bits of 64": lambda: draw.bits(formats.encode(0.1, "float64"), "float64"),
    "layouts": draw.layouts,
    "number_line": lambda: draw.number_line(["float4_e2m1fn", "float8_e5m2"], 0, 6, "title"),
    "ranges": draw.ranges,
    "spacing": lambda: draw.spacing(["bfloat16", "float16"], 2**-16, 2**12),
    "neighbourhood": lambda: draw.neighbourhood(1.0, "bfloat16"),
    "lines": lambda: draw.lines({"a": ([1, 10], [1, 2]), "b": ([1, 10], [3, 4])}, "title", "x / s", "y / B", log="xy"),
    "two_times": lambda: draw.two_times({"a": (1e-9, 2e-6), "b": (3e-6, 2e-6)}, "title"),
    "intensity_curves": lambda: draw.intensity_curves(
        {"a": ([1, 10, 1000], [1, 10, 500]), "b": ([1, 10, 1000], [2, 20, 510])},
        {"ridge": 100},
        "title",
        "n",
        crossings=[(200, 100), (100, 100)],
    ),
    "intensity_curves, two ridges": lambda: draw.intensity_curves(
        {"a": ([1, 10], [1, 10])}, {"low": 2, "high": 8}, "title", "n"
    ),
    "stacked_bars": lambda: draw.stacked_bars({"r": {"p": 2, "q": 4}, "s": {"q": 4}}, "title", "byte"),
    "bars": lambda: draw.bars({"a": 0.4, "b": 6.0}, "title", "MFU", ("limit", 1.0)),
    "bars log": lambda: draw.bars({"a": 1e20, "b": 2e25}, "title", "FLOP", ("line", 1e26), log=True),
    "budget": lambda: draw.budget({"weights": 2e9, "KV cache": 5e9}, 8e9, (1e-3, 5e-2), "title"),
    "budget, all terms": lambda: draw.budget(
        dict.fromkeys(("parameters", "gradients", "optimizer", "activations", "logits"), 1e10), 8e9, (2.0, 0.001), "t"
    ),
    "runs": lambda: draw.runs([0.002, 0.001, 0.004, 0.002], "title"),
}


@pytest.fixture(params=FIGURES, ids=str)
def figure(request):
    return FIGURES[request.param]()


def test_a_figure_fits_the_page_and_has_a_title(figure):
    assert figure.get_figwidth() <= 6.4
    assert figure.axes[0].get_title(loc="left")


def test_no_text_leaves_the_picture(figure):
    draw.png(figure)
    drawn = figure.get_tightbbox()  # in inches, around everything that is drawn
    width, height = figure.get_size_inches()
    assert drawn.x0 > -0.02 and drawn.y0 > -0.02 and drawn.x1 < width + 0.02 and drawn.y1 < height + 0.02


def test_the_same_figure_gives_the_same_bytes_in_any_style(request, figure):
    first = draw.png(figure)
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red", "savefig.facecolor": "black"}):
        again = draw.png(FIGURES[request.node.callspec.params["figure"]]())
    assert again == first


def test_drawing_leaves_the_learners_style_alone(figure):
    with matplotlib.rc_context({"font.size": 30}):
        draw.png(draw.layouts())
        assert matplotlib.rcParams["font.size"] == 30


def test_the_picture_is_opaque_at_110_dpi(figure):
    data = draw.png(figure)
    width, height = struct.unpack(">II", data[16:24])
    assert (width, height) == tuple(int(110 * inches) for inches in figure.get_size_inches())
    assert figure.get_facecolor() == (1, 1, 1, 1)


def test_summary_says_what_the_figure_shows():
    text = draw.summary(FIGURES["lines"]())
    assert text.splitlines() == [
        "Title: title",
        "x: x / s (log, 0.891 to 11.2)",
        "y: y / B (log, 0.933 to 4.29)",
        "Line a: (1, 1) (10, 2)",
        "Line b: (1, 3) (10, 4)",
        "Text: a | b",
    ]
    bars = draw.summary(FIGURES["stacked_bars"]())
    assert "y: r, s\nBars p: 2 0\nBars q: 4 4\nText: 2 | 4 | 4 | 6 | 4" in bars


def test_summary_changes_with_the_data_and_stays_short(figure):
    assert len(draw.summary(figure)) < 1500
    changed = draw.summary(draw.lines({"a": ([1, 10], [1, 2.1])}, "title", "x", "y"))
    assert changed != draw.summary(draw.lines({"a": ([1, 10], [1, 2])}, "title", "x", "y"))


def test_summary_thins_out_long_lines():
    text = draw.summary(draw.lines({"a": (range(101), range(101))}, "t", "x", "y"))
    assert "Line a: (0, 0) (25, 25) (50, 50) (75, 75) (100, 100) of 101 points" in text


def test_bits_show_each_digit_in_its_field():
    figure = draw.bits(formats.encode(-5.0, "bfloat16"), "bfloat16")
    digits = [text.get_text() for text in figure.axes[0].texts if text.get_text() in "01"]
    assert "".join(digits) == f"{formats.encode(-5.0, 'bfloat16'):016b}"
    assert figure.axes[0].get_title(loc="left") == "bfloat16: −2² × 1.25 = −5"
    colours = [patch.get_facecolor() for patch in figure.axes[0].patches]
    assert [colours.count(colour) for colour in dict.fromkeys(colours)] == [1, 8, 7]


def test_bars_beyond_the_limit_are_hatched_and_every_size_is_written():
    axes = FIGURES["bars"]().axes[0]
    assert [bool(bars[0].get_hatch()) for bars in axes.containers] == [False, True]
    assert [text.get_text() for text in axes.texts] == ["limit", "0.4", "6"]
    assert "Bars a: 1e+20\nBars b: 2e+25" in draw.summary(FIGURES["bars log"]())
    assert "Line limit: (1, 0) (1, 1)\nBars a: 0.4\nBars b: 6" in draw.summary(FIGURES["bars"]())


@pytest.mark.parametrize(("scale", "unit"), [(1, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-8, "µs")])
def test_runs_show_each_run_in_a_fitting_unit(scale, unit):
    axes = draw.runs([2 * scale, 1.5 * scale, 4 * scale], "title").axes[0]
    assert axes.get_ylabel() == f"time / {unit}"
    median, points = axes.lines
    factor = {"s": 1, "ms": 1e3, "µs": 1e6}[unit] * scale
    assert points.get_ydata().tolist() == pytest.approx([2 * factor, 1.5 * factor, 4 * factor])
    assert median.get_ydata()[0] == pytest.approx(2 * factor)


@pytest.mark.parametrize("value", [0.0, 1.0, -1.0, 65504.0, 6e-8])
def test_neighbourhood_marks_three_numbers(value):
    texts = [text.get_text() for text in draw.neighbourhood(value, "float16").axes[0].texts]
    near = formats.neighbours(value, "float16")
    assert texts[:3] == [f"{x:.9g}" for x in (near.below, near.nearest, near.above)]


def test_neighbourhood_at_the_end_of_a_format_without_infinity():
    texts = [text.get_text() for text in draw.neighbourhood(448, "float8_e4m3fn").axes[0].texts]
    assert "nothing" in texts


def test_spacing_draws_the_gap_of_the_format():
    for line in draw.spacing(["bfloat16", "float16"], 2**-16, 2**12).axes[0].lines:
        for value, gap in line.get_xydata():
            near = formats.neighbours(value, line.get_label())
            assert gap == near.above - near.nearest


def test_show_displays_picture_and_words(capsys):
    draw.show(FIGURES["lines"](), "Line chart of nothing much.")
    assert capsys.readouterr().out.startswith("Line chart of nothing much.\nTitle: title\nx: x / s (log")
    data, metadata = draw.bundle(FIGURES["lines"](), "Line chart of nothing much.")
    assert data["image/png"].startswith(b"\x89PNG")
    assert metadata == {"image/png": {"alt": "Line chart of nothing much."}}


@pytest.mark.parametrize("alt", ["", "  ", "x" * 201])
def test_show_wants_an_alt_text(alt):
    with pytest.raises(ValueError, match="an alt text has 1 to 200 characters, this one has"):
        draw.show(FIGURES["lines"](), alt)


def test_two_times_shows_both_and_marks_the_longer():
    figure = draw.two_times({"a": (1e-9, 2e-6), "b": (3e-6, 2e-6)}, "title")
    ax = figure.axes[0]
    memory, compute = ax.containers
    assert [bar.get_width() for bar in memory] == [2e-6, 2e-6]
    assert [bar.get_width() for bar in compute] == [1e-9, 3e-6]
    assert [bar.get_hatch() for bar in (*memory, *compute)] == [None, None, "//////", "//////"]
    assert {text.get_text() for text in ax.texts if text.get_weight() == "bold"} == {"2 µs", "3 µs"}
    assert ax.get_xscale() == "log" and [label.get_text() for label in ax.get_yticklabels()] == ["a", "b"]


def test_intensity_curves_have_ridges_crossings_and_sides():
    words = draw.summary(FIGURES["intensity_curves"]())
    assert "Line ridge: (0, 100) (1, 100)" in words
    assert "Text: ridge: 100 | a | b | 100 | 200 | compute-bound | memory-bound" in words
    several = draw.summary(FIGURES["intensity_curves, two ridges"]())
    assert "low: 2 | high: 8" in several and "memory-bound" not in several


def test_labels_of_lines_that_end_together_are_moved_apart():
    texts = FIGURES["intensity_curves"]().axes[0].texts
    a, b = (next(text for text in texts if text.get_text() == name).xyann for name in "ab")
    assert a == b == (6, 0)  # beside the end of the line
    places = draw._apart({"a": 2.0, "b": 2.01, "c": 1.0}, 0.2)
    assert places == {"c": 1.0, "a": 2.0, "b": 2.2}


def test_a_budget_says_what_fits_and_what_bounds():
    words = draw.summary(FIGURES["budget"]())
    assert "Text: 7 GB: fits | device: 8 GB" in words
    assert "Text: 1 ms | 50 ms: bounds the step" in words
    too_large = FIGURES["budget, all terms"]()
    assert "Text: 50 GB: does not fit | device: 8 GB" in draw.summary(too_large)
    hatches = [bars[0].get_hatch() for bars in too_large.axes[0].containers]
    assert len(set(hatches)) == len(hatches) == 5
