"""Figures are tested by their labels, counts and data, not by pixels; `show` by the bundle that it displays."""

import io
import os
import struct
import subprocess
import sys

import matplotlib
import numpy as np
import pytest
import torch
from matplotlib.collections import PathCollection, PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.text import Annotation
from PIL import Image

from helpers import draw, formats
from helpers.draw.style import GREY, apart
from helpers.roofline import Roofline

H100, CPU = Roofline(989.5e12, 3.35e12), Roofline(180e9, 40e9)
A100 = {"40 GB": Roofline(312e12, 1.555e12), "80 GB": Roofline(312e12, 2.039e12)}
OPS = [
    draw.Point(name, x, CPU.attainable(x), CPU.attainable(x) * share)
    for name, x, share in [
        ("ReLU", 1 / 8, 0.5), ("GELU, fused", 9 / 8, 0.4), ("GELU, eager", 1 / 9, 0.1), ("softmax", 5 / 8, 0.3),
        ("layer norm", 6 / 8, 0.4), ("dot", 1 / 4, 0.95), ("matrix-vector", 1 / 2, 0.9), ("matmul 64", 10.7, 0.2),
        ("matmul 256", 42.7, 0.8), ("matmul 1024", 171, 0.97), ("attention", 176, 0.6), ("MLP step", 107, 0.8),
    ]
]  # fmt: skip

MATRIX = torch.arange(10, 22).view(3, 4)
FIGURES = {
    "bits": lambda: draw.bits(0x3F80, "bfloat16"),
    "bits of 64": lambda: draw.bits(formats.encode(0.1, "float64"), "float64"),
    "layouts": draw.layouts,
    "number_line": lambda: draw.number_line(["float4_e2m1fn", "float8_e5m2"], 0, 6, "title"),
    "ranges": draw.ranges,
    "spacing": lambda: draw.spacing(["bfloat16", "float16"], 2**-16, 2**12),
    "neighbourhood": lambda: draw.neighbourhood(1.0, "bfloat16"),
    "lines": lambda: draw.lines({"a": ([1, 10], [1, 2]), "b": ([1, 10], [3, 4])}, "title", "x / s", "y / B", log="xy"),
    "groups": lambda: draw.groups({"(a b)": [0, 0, 1, 1], "(b a)": [0, 1, 0, 1]}, "title", "head"),
    "images": lambda: draw.images({"grey": torch.eye(4), "colour": torch.ones(6, 4, 3)}, "title", columns=2),
    "images of three shapes": lambda: draw.images(
        {"h (b w) c": torch.zeros(40, 192, 3), "(b h) w": torch.zeros(240, 32), "h w": torch.zeros(8, 8)}, "title"
    ),
    "two_times": lambda: draw.two_times({"a": (1e-9, 2e-6), "b": (3e-6, 2e-6)}, "title"),
    "intensity_curves": lambda: draw.intensity_curves(
        {"a": ([1, 10, 1000], [1, 10, 500]), "b": ([1, 10, 1000], [2, 20, 510])},
        {"ridge": 100},
        "title",
        "n",
        crossings=[(200, 100), (100, 100)],
    ),
    "intensity_curves, two ridges": lambda: draw.intensity_curves(
        {"a": ([1, 10], [1, 10]), "b": ([1, 10], [4, 40])},
        {"low": 2, "high": 8},
        "title",
        "n",
        crossings=[(2, 2), (2, 8)],
    ),
    "stacked_bars": lambda: draw.stacked_bars({"r": {"p": 2, "q": 4}, "s": {"q": 4}}, "title", "byte"),
    "storage": lambda: draw.storage(MATRIX, "title"),
    "storage of four views": lambda: draw.storage(
        {"x": MATRIX, "x[1]": MATRIX[1], "x[:, 2]": MATRIX[:, 2], "x.t()": MATRIX.t()}, "title"
    ),
    "storage in rows": lambda: draw.storage(torch.arange(96).view(3, 4, 8), "title"),
    "storage of three dimensions": lambda: draw.storage(torch.arange(24).view(2, 3, 4).permute(2, 0, 1), "title"),
    "storage with overlaps": lambda: draw.storage(torch.arange(9.0).unfold(0, 4, 2), "title"),
    "storage of one number": lambda: draw.storage(torch.tensor(1.5), "title"),
    "storage without elements": lambda: draw.storage(torch.arange(6.0)[:0], "title"),
    "bars": lambda: draw.bars({"a": 0.4, "b": 6.0}, "title", "MFU", ("limit", 1.0)),
    "bars log": lambda: draw.bars({"a": 1e20, "b": 2e25}, "title", "FLOP", ("line", 1e26), log=True),
    "budget": lambda: draw.budget({"weights": 2e9, "KV cache": 5e9}, 8e9, (1e-3, 5e-2), "title"),
    "budget, all terms": lambda: draw.budget(
        dict.fromkeys(("parameters", "gradients", "optimizer", "activations", "logits"), 1e10), 8e9, (2.0, 0.001), "t"
    ),
    "runs": lambda: draw.runs([0.002, 0.001, 0.004, 0.002], "title"),
    "roofline": lambda: draw.roofline({"H100": H100}),
    "roofline of two memories": lambda: draw.roofline(A100, [draw.Point("matmul 512", 170.7, predicted=2.65e14)], "t"),
    "roofline of many": lambda: draw.roofline({"CPU": CPU}, OPS, "many points", height=4.5),
    "roofline of five machines": lambda: draw.roofline(
        {f"machine {i}": Roofline(10.0 ** (12 + i), 10.0 ** (11 + i / 2)) for i in range(5)}
    ),
    "memory_steps": lambda: draw.memory_steps({2**p: 1e12 / p for p in range(14, 31)}, {"L1": 2**16, "L3": 2**25}),
}


@pytest.fixture(params=FIGURES, ids=str, scope="module")
def figure(request):
    """Each figure, drawn once for all tests that only look at it."""
    return FIGURES[request.param]()


def test_a_figure_fits_the_page_and_has_a_title(figure):
    assert figure.get_figwidth() <= 6.4
    assert figure.get_suptitle() or figure.axes[0].get_title(loc="left")


def test_no_text_leaves_the_picture(figure):
    figure.canvas.draw()
    drawn = figure.get_tightbbox()  # in inches, around everything that is drawn
    width, height = figure.get_size_inches()
    assert drawn.x0 > -0.02 and drawn.y0 > -0.02 and drawn.x1 < width + 0.02 and drawn.y1 < height + 0.02


def test_the_same_figure_gives_the_same_bytes_in_any_style(request, figure):
    first = draw.png(figure)
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red", "savefig.facecolor": "black"}):
        again = draw.png(FIGURES[request.node.callspec.params["figure"]]())
    assert again == first


def test_drawing_leaves_the_learners_style_alone():
    with matplotlib.rc_context({"font.size": 30}):
        draw.png(draw.layouts())
        assert matplotlib.rcParams["font.size"] == 30


def test_drawing_does_not_load_pyplot():
    code = (
        "import sys; from helpers import draw; draw.png(draw.layouts()); sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    environment = {name: value for name, value in os.environ.items() if name != "MPLBACKEND"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


def test_the_picture_is_opaque_at_110_dpi(figure):
    data = draw.png(figure, quick=True)
    width, height = struct.unpack(">II", data[16:24])
    assert (width, height) == tuple(int(110 * inches) for inches in figure.get_size_inches())
    assert figure.get_facecolor() == (1, 1, 1, 1)


@pytest.mark.parametrize(("name", "most"), [("roofline of many", 40), ("spacing", 64)])
def test_a_stored_picture_has_few_colours_and_keeps_those_with_a_meaning(name, most):
    picture = np.asarray(Image.open(io.BytesIO(draw.png(FIGURES[name]()))).convert("RGB")).reshape(-1, 3)
    colours = np.unique(picture, axis=0).astype(int)
    assert len(colours) <= most
    for colour in (draw.BLUE, draw.VERMILLION):
        wanted = [round(255 * part) for part in to_rgb(colour)]
        assert abs(colours - wanted).max(axis=1).min() <= 8


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


def test_a_summary_stays_short(figure):
    assert len(draw.summary(figure)) < 1500


def test_summary_changes_with_the_data():
    changed = draw.summary(draw.lines({"a": ([1, 10], [1, 2.1])}, "title", "x", "y"))
    assert changed != draw.summary(draw.lines({"a": ([1, 10], [1, 2])}, "title", "x", "y"))


@pytest.mark.parametrize(("count", "marked"), [(8, True), (9, False)])
def test_on_a_logarithmic_axis_up_to_eight_places_are_marked_each(count, marked):
    places = [2**k for k in range(count)]
    ticks = draw.lines({"a": (places, places)}, "t", "x", "y", log="x").axes[0].get_xticks().tolist()
    assert (ticks == places) is marked


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


@pytest.mark.parametrize(("scale", "unit"), [(1, "s"), (0.3, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-8, "µs")])
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


def test_groups_draw_a_cell_per_position_with_its_group():
    ax = FIGURES["groups"]().axes[0]
    assert [text.get_text() for text in ax.texts] == list("00110101")
    colours = [patch.get_facecolor() for patch in ax.patches]
    assert len(set(colours)) == 2 and colours[0] == colours[1] == colours[4] != colours[2]
    assert "y: (a b), (b a)" in draw.summary(FIGURES["groups"]())


def test_images_show_their_pixels_and_say_so():
    picture = torch.zeros(4, 6)
    picture[:2, 3:] = 1  # the quarter in the upper right
    figure = draw.images({"h w": picture}, "A finding")
    assert figure.axes[0].images[0].get_array().tolist() == picture.tolist()
    assert draw.summary(figure).splitlines() == [
        "Title: A finding",
        "Title: h w   (4, 6)",
        "Picture h w: 4 × 6, mean of each quarter 0 1 0 0",
    ]


@pytest.mark.parametrize("shape", [(2, 2), (2, 2, 3)])
def test_images_beyond_black_and_white_are_cut_off_and_have_a_thin_edge(shape):
    (ax,) = draw.images({"x": torch.full(shape, 2.0)}, "title").axes
    assert (ax.images[0].get_array() == 1).all()
    assert (draw.images({"x": torch.full(shape, -1.0)}, "title").axes[0].images[0].get_array() == 0).all()
    assert {(spine.get_visible(), spine.get_linewidth()) for spine in ax.spines.values()} == {(True, 0.8)}
    assert {spine.get_edgecolor() for spine in ax.spines.values()} == {matplotlib.colors.to_rgba(GREY)}


@pytest.mark.parametrize("shape", [(3,), (2, 4, 4), (4, 4, 4), (1, 4, 4, 3)])
def test_images_refuse_what_is_no_picture(shape):
    with pytest.raises(ValueError, match=r"has the axes \(height, width\) or \(height, width, 3\), 'x' has"):
        draw.images({"x": torch.zeros(shape)}, "title")


def numbers(figure):
    """The count of boxes and of numbers on a storage figure."""
    parts = figure.axes[0].collections
    boxes = [p for p in parts if isinstance(p, PolyCollection) and p.get_linewidth()[0] > 0]
    return sum(len(p.get_paths()) for p in boxes), [len(p.get_paths()) for p in parts if isinstance(p, PathCollection)]


def test_a_storage_has_a_cell_for_each_element_on_strip_grid_and_lane():
    assert numbers(draw.storage(MATRIX, "title")) == (12 * 3, [12, 12 * 3])  # first the offsets, then all cells
    assert numbers(draw.storage({"row": MATRIX[1]}, "title")) == (12 + 4 + 4, [12, 20])
    # Twelve elements in the grid share four cells of the strip.
    assert numbers(draw.storage(torch.arange(4).expand(3, 4), "title")) == (4 + 12 + 4, [4, 20])


def test_a_storage_says_shape_stride_offset_and_the_cells_in_order():
    text = draw.summary(draw.storage({"x": MATRIX, "y": MATRIX[1:].t()}, "title"))
    assert "y | shape (4, 2) | stride (1, 4), offset 4" in text
    assert text.endswith("x in order: 0 1 2 3 4 5 6 7 8 9 10 11; y in order: 4 8 5 9 6 10 7 11")


def test_a_single_tensor_has_an_arrow_per_dimension_on_the_grid_and_on_the_strip():
    figure = draw.storage(torch.arange(24).view(2, 3, 4), "title")
    labels = [text.get_text() for text in figure.axes[0].texts if text.get_text().startswith("dim")]
    assert labels == ["dim 2: +1", "dim 1: +4", "dim 0: +12"]
    arrows = [text for text in figure.axes[0].texts if isinstance(text, Annotation)]
    assert len(arrows) == 6
    ends = sorted(arrow.xy[0] for arrow in arrows[3:])
    assert [round(end - ends[0], 6) for end in ends] == [0, 3, 11]  # one, four and twelve cells after the first


def test_a_dimension_of_one_element_has_no_arrow():
    texts = [text.get_text() for text in draw.storage(torch.arange(4).view(1, 4), "title").axes[0].texts]
    assert "dim 1: +1" in texts and not any(text.startswith("dim 0") for text in texts)


def test_lanes_differ_in_colour_and_hatch():
    x = torch.arange(10)
    figure = draw.storage({str(k): x[k:] for k in range(5)}, "title")
    hatches = {p.get_hatch() for p in figure.axes[0].collections if isinstance(p, PolyCollection)}
    assert len(hatches) == 5
    assert len(draw.TINTS) == len(set(draw.TINTS)) == 5


@pytest.mark.parametrize(
    ("views", "words"),
    [
        (torch.zeros(97), "a strip has 1 to 96 cells and at most 5 tensors, got 97 and 1"),
        (torch.zeros(0), "got 0 and 1"),
        ({str(k): MATRIX for k in range(6)}, "got 12 and 6"),
        (torch.zeros(2, 2, 2, 2), r"at most 3 dimensions and 96 elements, this tensor has shape \(2, 2, 2, 2\)"),
        ({"wide": torch.zeros(1).expand(97)}, r"wide has shape \(97,\)"),
        ({"x": MATRIX, "y": MATRIX.clone()}, "y has another storage or dtype"),
        ({"x": MATRIX, "y": MATRIX.view(torch.int32)}, "y has another storage or dtype"),
        (torch.empty(2, device="meta"), "a meta tensor has no storage"),
    ],
    ids=str,
)
def test_what_does_not_fit_on_a_strip_is_refused(views, words):
    with pytest.raises(ValueError, match=words):
        draw.storage(views, "title")


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
    assert "Text: low: 2 | high: 8 | a | b | 2" in several  # one number for both, and no sides


def test_labels_of_lines_that_end_together_are_moved_apart():
    texts = FIGURES["intensity_curves"]().axes[0].texts
    a, b = (next(text for text in texts if text.get_text() == name).xyann for name in "ab")
    assert a == b == (6, 0)  # beside the end of the line
    places = apart({"a": 2.0, "b": 2.01, "c": 1.0}, 0.2)
    assert places == {"c": 1.0, "a": 2.0, "b": 2.2}
    figure = draw.lines({"high": ([1, 9], [1, 5.01]), "low": ([1, 9], [9, 5])}, "title", "x", "y")
    figure.canvas.draw()
    high, low = (text.get_window_extent() for text in figure.axes[0].texts)
    assert low.y0 < high.y0 and high.y0 - low.y0 >= 8.9 * figure.dpi / 72  # points


def test_a_roof_has_a_slope_to_the_ridge_and_a_flat_part():
    (ax,) = draw.roofline({"H100": H100}).axes
    slope, flat = ax.lines
    (x0, y0), (x1, y1) = slope.get_xydata()
    assert y0 / x0 == pytest.approx(3.35e12) and (x1, y1) == pytest.approx((H100.ridge, 989.5e12))
    assert flat.get_xydata()[:, 1] == pytest.approx(989.5e12)
    assert (slope.get_color(), flat.get_color()) == (draw.BLUE, draw.VERMILLION)
    assert [text.get_text() for text in ax.texts] == [
        "memory-bound",
        "compute-bound",
        "H100: 990 TFLOP/s",
        "3.35 TB/s",
    ]


def regions(figure):
    """Each shaded band: its left and right end, and its hatch."""
    bands = [patch for patch in figure.axes[0].patches if patch.get_hatch()]
    return [(*patch.get_bbox().intervalx, patch.get_hatch()) for patch in bands]


def test_two_bandwidths_make_three_regions_each_with_a_name_and_a_hatch_of_its_own():
    figure = draw.roofline(A100, intensities=(1, 10_000))
    (a, b, first), (c, d, second), (e, f, third) = regions(figure)
    assert (a, b) == pytest.approx((1, 312 / 2.039)) and (c, d) == pytest.approx((312 / 2.039, 312 / 1.555))
    assert (e, f) == pytest.approx((312 / 1.555, 10_000))
    assert len({first, second, third}) == 3
    names = [text.get_text() for text in figure.axes[0].texts][:3]
    assert names == ["memory-bound", "in between", "compute-bound"]


def test_a_region_out_of_view_is_not_drawn():
    assert len(regions(draw.roofline({"H100": H100}, intensities=(0.1, 10)))) == 1
    assert len(regions(draw.roofline({"H100": H100}, intensities=(1000, 10_000)))) == 1


def test_predicted_is_open_and_dashed_and_measured_is_filled():
    (ax,) = draw.roofline({"CPU": CPU}, [draw.Point("op", 0.5, 20e9, 10e9)]).axes
    predicted, measured = ax.collections
    assert predicted.get_offsets().tolist() == [[0.5, 20e9]] and measured.get_offsets().tolist() == [[0.5, 10e9]]
    assert predicted.get_facecolor()[0].tolist() == [1, 1, 1, 1] and predicted.get_linestyle()[0][1] is not None
    assert tuple(measured.get_facecolor()[0]) == matplotlib.colors.to_rgba(draw.BLUE)
    texts = [text.get_text() for legend in ax.figure.legends for text in legend.get_texts()]
    assert texts == ["predicted (open, dashed)", "measured (filled)"]


def test_an_op_on_the_highest_ridge_is_compute_bound_as_the_roofline_says():
    (marks,) = draw.roofline({"CPU": CPU}, [draw.Point("op", CPU.ridge, measured=10e9)]).axes[0].collections
    assert CPU.bound(CPU.ridge, 1) == "compute"
    assert tuple(marks.get_facecolor()[0]) == matplotlib.colors.to_rgba(draw.VERMILLION)


def test_the_roof_of_a_datasheet_is_thin_and_black():
    measured, promised = ({"H100": H100}, []), ({"H100": H100}, ["H100"])
    colours = [
        {line.get_color() for line in draw.roofline(roofs, datasheet=names).axes[0].lines}
        for roofs, names in (measured, promised)
    ]
    assert colours == [{draw.BLUE, draw.VERMILLION}, {draw.BLACK}]


@pytest.mark.parametrize("name", [name for name in FIGURES if name.startswith("roofline")])
def test_no_label_lies_on_another_or_on_a_point(name):
    figure = FIGURES[name]()
    draw.png(figure)
    (ax,) = figure.axes
    flat = [text for text in ax.texts if not text.get_rotation()]
    boxes = [text.get_window_extent() for text in flat]
    for place, box in enumerate(boxes):
        for other in boxes[place + 1 :]:
            wide = min(box.x1, other.x1) - max(box.x0, other.x0)
            high = min(box.y1, other.y1) - max(box.y0, other.y0)
            assert not (wide > 2 and high > 3), (flat[place].get_text(), name)
        for marks in ax.collections:
            for x, y in ax.transData.transform(marks.get_offsets()):
                assert not (box.x0 + 1 < x < box.x1 - 1 and box.y0 + 1 < y < box.y1 - 1), flat[place].get_text()


def test_a_roofline_needs_a_roof():
    with pytest.raises(ValueError, match="at least one roof"):
        draw.roofline({})


def test_memory_steps_names_each_cache_and_both_ends():
    (ax,) = FIGURES["memory_steps"]().axes
    texts = [text.get_text() for text in ax.texts]
    assert texts == ["L1\n64 KiB", "L3\n32 MiB", "71.4 GB/s", "33.3 GB/s"]


def test_a_budget_says_what_fits_and_what_bounds():
    words = draw.summary(FIGURES["budget"]())
    assert "Text: 7 GB: fits | device: 8 GB" in words
    assert "Text: 1 ms | 50 ms: bounds the step" in words
    assert "Text: 8 GB: fits" in draw.summary(draw.budget({"weights": 8e9}, 8e9, (1, 1), "full to the last byte"))
    too_large = FIGURES["budget, all terms"]()
    assert "Text: 50 GB: does not fit | device: 8 GB" in draw.summary(too_large)
    hatches = [bars[0].get_hatch() for bars in too_large.axes[0].containers]
    assert len(set(hatches)) == len(hatches) == 5


@pytest.mark.parametrize("name", ["roofline", "budget"])
def test_drawing_on_an_old_figure_gives_the_picture_of_a_new_one(name):
    draws = {
        "roofline": [
            lambda **more: draw.roofline({"H100": H100}, **more),
            lambda **more: draw.roofline({"CPU": CPU}, OPS, "many points", **more),
            lambda **more: draw.roofline(A100, intensities=(1, 1e4), rates=(1e10, 1e15), **more),
        ],
        "budget": [
            lambda **more: draw.budget({"weights": 2e9, "KV cache": 5e9}, 8e9, (1e-3, 5e-2), "title", **more),
            lambda **more: draw.budget({"parameters": 2e12, "gradients": 1}, 8e9, (20, 5), "other title", **more),
            lambda **more: draw.budget({"weights": 2e3, "logits": 3e3}, 8e9, (1e-9, 5e-9), "title", **more),
        ],
    }[name]
    old = draws[0]()
    for again in (draws[1], draws[2], draws[0], draws[1]):
        old, new = again(again=old), again()
        assert draw.summary(old) == draw.summary(new)
        assert draw.png(old, quick=True) == draw.png(new, quick=True)
