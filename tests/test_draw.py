"""Figures fit, can be read and display themselves. Their words in the notebooks are compared by nbval."""

import io
import itertools

import matplotlib
import numpy as np
import pytest
import torch
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import StepPatch
from matplotlib.text import Text
from PIL import Image

from helpers import draw, formats
from helpers.counting import Trace
from helpers.draw.palette import GROUNDS
from helpers.roofline import Roofline

H100, CPU = Roofline(989.5e12, 3.35e12), Roofline(180e9, 40e9)
OPS = [
    draw.Point(name, x, measured=CPU.attainable(x) * share)
    for name, x, share in [
        ("ReLU", 1 / 8, 0.5),
        ("GELU, fused", 9 / 8, 0.4),
        ("GELU, eager", 1 / 9, 0.1),
        ("softmax", 5 / 8, 0.3),
        ("layer norm", 6 / 8, 0.4),
        ("dot", 1 / 4, 0.95),
        ("matrix-vector", 1 / 2, 0.9),
        ("matmul 64", 10.7, 0.2),
        ("matmul 256", 42.7, 0.8),
        ("matmul 1024", 171, 0.97),
        ("attention", 176, 0.6),
        ("MLP step", 107, 0.8),
    ]
]
SWEEP = {2**14: 3e11, 2**20: 1e9, 2**24: 1e11}
GALLERY = {
    "bits": lambda: draw.bits(0x3F80, "bfloat16"),
    "ranges": lambda: draw.ranges(mark=1e-8),
    "spacing": lambda: draw.spacing(["bfloat16", "float16"], 2**-28, 2**12, "title", marks=[1e-8, 1000]),
    "exponents": lambda: draw.exponents({"small": 2.0 ** torch.arange(-30, 0), "one": torch.ones(1)}, "float16", "t"),
    "strips": lambda: draw.strips({"(a b)": [0, 0, 1, 1]}, "title", "position"),
    "strips with ends": lambda: draw.strips(
        {"a": [0, 1], "b": [1, 0]}, "title", parts=["p"], ends={"b": "16.8 MB written"}
    ),
    "partners": lambda: draw.partners({"near": [0, 0, 1, 1], "far": [0, 1, 0, 1]}, "title", "place"),
    "moves": lambda: draw.moves(("(a b)", [0, 1, 2]), ("(b a)", [2, 0, 1]), "title", lambda text: text),
    "lines": lambda: chart(),
    "wide range": lambda: draw.lines({"a": (range(30), [10.0**-p for p in range(30)])}, "t", "x", "y", log="y"),
    "bars": lambda: draw.bars({"a": 0.4, "b": 6.0}, "title", "MFU", ("limit", 1.0)),
    "bars of parts": lambda: draw.bars({"r": {"p": 2, "q": 4}, "s": {"q": 0.01}}, "title", "bytes", ("all", 8)),
    "waterfall": lambda: draw.waterfall({"first": {"a": 9}, "small": {"b": 0.1}}, "title", "days"),
    "dots": lambda: draw.dots({"a": 1e20, "b": 2e25}, "title", "FLOP", limits={"line": 1e26}),
    "dots in pairs": lambda: draw.dots({"a": (1e-9, 2e-6)}, "title", "time", ("arithmetic", "memory")),
    "memory_over_time": lambda: draw.memory_over_time({"a": trace(), "b": trace(2)}, "title", {"level": 3e3}),
    "memory_rises": lambda: draw.memory_rises(trace(), "title", 4e3, [["a", "b"]]),
    "roofline": lambda: draw.roofline({"H100": H100}),
    "roofline of many": lambda: draw.roofline({"CPU": CPU}, OPS, "many points"),
    "roofline of dtypes": lambda: draw.roofline({f"{10**i}": Roofline(10.0 ** (12 + i), 1e11) for i in range(3)}),
    "bandwidth_sweep": lambda: draw.bandwidth_sweep({2**p: 1e12 / p for p in range(14, 31)}, {"L1": 2**16}, [2**20]),
}


def trace(times=1):
    with Trace([x := torch.ones(1000)]) as found:
        for _ in range(times):
            x.sum()
            y = (x + 1) * 2
        y += 1
    return found


def chart(title="title"):
    return draw.lines({"a": ([1, 10], [1, 2]), "b": ([1, 10], [3, 4])}, title, "x / s", "y / B", log="y")


def boxes_of(drawing, names):
    """The places of some texts, in pixels."""
    drawing.figure.draw_without_rendering()
    found = (text for ax in drawing.figure.axes for text in ax.texts if text.get_text() in names)
    return {text.get_text(): Text.get_window_extent(text) for text in found}


def test_a_title_that_is_too_long_is_broken_and_stays_in_the_picture():
    title = "9 of 14 take more than 1.5 times as long as predicted, some disturbed"
    limits = {"as predicted": 1, "× 1.5": 1.5}
    ratios = {"GELU, eager (disturbed)": 4.7, "softmax": 2.61, "dot": 1.04}
    drawing = draw.dots(ratios, title, "measured / predicted", limits=limits)
    pixels = np.asarray(Image.open(io.BytesIO(drawing.png())).convert("L"))
    assert pixels[:, -6:].min() > 250 and title in drawing.words  # no letter is cut at the right edge


def test_a_drawing_displays_itself_as_a_picture_and_in_words():
    data, metadata = chart()._repr_mimebundle_()
    picture = Image.open(io.BytesIO(data["image/png"]))
    assert set(data) == {"image/png", "text/plain"}
    assert data["text/plain"] == repr(chart()) == chart().words
    assert metadata["image/png"] == {"alt": chart().alt, "width": 704, "height": 341}
    assert picture.size == (2 * 704, 2 * 341) and picture.mode == "P" and "transparency" not in picture.info


def test_a_learners_own_figure_is_shown_the_same_way():
    figure = Figure(figsize=(4, 3), dpi=100)
    figure.subplots().bar(["x", "y"], [1, 2], label="heights")
    data, metadata = draw.show(figure)._repr_mimebundle_()
    assert data["text/plain"].startswith("Figure.") and "heights: 1 2" in data["text/plain"]
    assert (metadata["image/png"]["width"], metadata["image/png"]["height"]) == (400, 300)
    with pytest.raises(TypeError, match="show takes a matplotlib Figure, got int"):
        draw.show(3)


READERS = {  # what a reader's own matplotlibrc may say
    "font.size": 30,
    "font.family": "serif",
    "xtick.labelsize": 20,
    "ytick.labelsize": 20,
    "text.usetex": True,
    "figure.dpi": 40,
    "savefig.bbox": "tight",
    "savefig.dpi": 300,
    "savefig.facecolor": "black",
    "axes.facecolor": "red",
    "axes.xmargin": 0.4,
    "axes.autolimit_mode": "round_numbers",
    "axes.unicode_minus": False,
    "axes.formatter.limits": (-1, 1),
    "axes.formatter.use_locale": True,
    "axes.formatter.use_mathtext": True,
    "xtick.minor.visible": True,
    "ytick.major.size": 20,
    "axes.grid.which": "both",
    "legend.loc": "upper left",
    "figure.constrained_layout.use": False,
    "figure.autolayout": True,
}


@pytest.mark.parametrize("kind", ["wide range", "bars of parts", "roofline"])
def test_picture_and_words_are_the_same_whatever_the_readers_own_style(kind):
    with matplotlib.rc_context(READERS):
        data, metadata = GALLERY[kind]()._repr_mimebundle_()
        assert matplotlib.rcParams["font.size"] == 30
    ours = GALLERY[kind]()._repr_mimebundle_()
    assert data["text/plain"] == ours[0]["text/plain"]
    assert (data, metadata) == ours


@pytest.mark.parametrize("name", GALLERY)
def test_every_figure_has_a_title_and_words_and_no_text_leaves_the_picture(name):
    drawing = GALLERY[name]()
    drawing.png()
    drawn, (width, height) = drawing.figure.get_tightbbox(), drawing.figure.get_size_inches()
    assert drawn.x0 > -0.05 and drawn.y0 > -0.05 and drawn.x1 < width + 0.05 and drawn.y1 < height + 0.05
    assert width <= 6.4 and drawing.alt.startswith(f"{drawing.kind}: ")
    assert len(drawing.alt) <= 200 and 50 < len(drawing.words) < 2200


def contrast(*colours):
    """The ratio of two colours as WCAG 2 defines it, from 1 to 21; text needs at least 4.5."""
    parts = np.array([to_rgb(colour) for colour in colours])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    low, high = sorted(linear @ [0.2126, 0.7152, 0.0722] + 0.05)
    return high / low


def test_ink_can_be_read_on_every_ground_and_black_on_every_tint():
    assert min(contrast(ink, ground) for ink in draw.INKS.values() for ground in ("white", *GROUNDS)) >= 4.5
    assert min(contrast("black", tint) for tint in draw.TINTS) >= 4.5


@pytest.mark.parametrize("log", ["", "xy"])
def test_names_of_lines_that_end_together_are_moved_apart(log):
    drawing = draw.lines({"high": ([1, 9], [1, 5.01]), "low": ([1, 9], [9, 5])}, "title", "x", "y", log)
    boxes = boxes_of(drawing, {"high", "low"})
    assert (boxes["high"].y0 - boxes["low"].y0) * 72 / drawing.figure.dpi >= 10  # points


@pytest.mark.parametrize("fmt", ["float4_e2m1fn", "bfloat16", "float32", "float64"])
def test_bits_show_each_digit_and_the_place_values(fmt):
    fmt = formats.format_of(fmt)
    code = formats.encode(1.5, fmt)
    (ax,) = draw.bits(code, fmt).figure.axes
    shown, digits = {text.get_text() for text in ax.texts}, [t for t in ax.texts if "Mono" in t.get_fontfamily()[0]]
    assert "".join(text.get_text() for text in digits) == f"{code:0{fmt.bits}b}"
    assert {"1", "1/2"} <= shown if fmt.bits <= 16 else {"2⁰", "2⁻¹"} <= shown


def test_exponents_are_shares_of_the_numbers_that_are_not_zero():
    numbers = torch.tensor([0, 0, 1, -1.5, 4, 5, 6, 7.9])
    (ax,) = draw.exponents({"a": numbers}, "float16", "t").figure.axes
    values, edges, _ = next(patch for patch in ax.patches if isinstance(patch, StepPatch)).get_data()
    shares = dict(zip(edges, values, strict=False))
    assert (shares[0], shares[1], shares[2], sum(values)) == pytest.approx((100 / 3, 0, 200 / 3, 100))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: draw.exponents({"a": torch.tensor([0.3, 0.4, 8])}, "float16", "t"), "a: most at 2⁻²."),
        (lambda: draw.strips({"a": [0, 1], "b": [1, 0]}, "t", ends={"b": "6 MB"}), "0 | 1 | 1 | 0 | 6 MB"),
        (lambda: draw.partners({"far": [0, 1, 0, 1]}, "t", "place"), "far: 0 and 2, 1 and 3."),
        (lambda: draw.ranges(mark=1e-7), "1e-7 is subnormal in float16."),
        (lambda: draw.ranges(mark=1e5), "1e5 is lost in float16"),
        (lambda: draw.bits(1, "float16"), "fraction 1 0 + 1/1024"),  # subnormal: no hidden 1
        (lambda: draw.bars({"r": {"p": 2, "q": 4, "tiny": 0.01}}, "t", "bytes"), "Text: 2 | 4 | 6.01"),
        (lambda: draw.bars({"r": 1388, "s": 12.345}, "t", "x"), "Text: 1388 | 12.3"),
        (lambda: draw.bars({"r": {"p": 2, "saved": 4}}, "t", "x", ghost="saved"), "r 2 (x)."),
        (lambda: draw.bars({"r": 2, "": {}, "s": 3}, "t", "x"), "Text: 2 | 3"),
        (lambda: draw.waterfall({"r": {"p": 9}, "s": {"q": 0.1}}, "t", "bytes"), "r 9, s 9.1 (bytes)."),
        (lambda: draw.dots({"a": (1, 2), "b": (1, 9)}, "t", "x", ("in", "out"), unit=""), "Out / in: a 2, b 9."),
        (lambda: draw.memory_rises(trace(), "t", 4e3), "of 4 (where memory rises most) (linear, 0 to 3)"),
    ],
)
def test_the_words_say_what_the_data_say(call, words):
    assert words in call().words


@pytest.mark.parametrize(
    ("rates", "caches", "disturbed", "words"),
    [
        (SWEEP, {}, [2**20], "1 of 3 points are disturbed: 1 MiB."),
        ({2**14: 8e9, 2**15: 6e9, 2**16: 2e9}, {"L1": 2**15}, [], "about 4 times as fast in L1"),
        ({2**14: 8e9, 2**16: 6e9, 2**18: 2e9}, {"L1": 2**14}, [], "about 4 times as fast in L1"),
        ({2**14: 3e9, 2**18: 2e9}, {"L1": 2**14}, [], "about 1.5 times as fast in L1"),
        ({2**14: 3e9, 2**18: 2e9}, {}, [], "Bandwidth by working set."),
    ],
)
def test_a_sweep_compares_the_first_cache_with_main_memory(rates, caches, disturbed, words):
    assert words in draw.bandwidth_sweep(rates, caches, disturbed).words


def test_of_many_ops_no_label_lies_on_another():
    boxes = boxes_of(GALLERY["roofline of many"](), {op.label for op in OPS})
    assert len(boxes) == len(OPS)
    for one, other in itertools.combinations(boxes, 2):
        assert not boxes[one].padded(-2).overlaps(boxes[other].padded(-2)), (one, other)


@pytest.mark.parametrize(("names", "gains"), [("ab", {"× 0.5", "× 3"}), ("ba", {"× 2", "× 0.333"})])
def test_the_regions_tell_what_the_second_roof_gains_over_the_first(names, gains):
    both = {"a": Roofline(100, 10), "b": Roofline(300, 5)}
    drawing = draw.roofline({name: both[name] for name in names}, intensities=(0.1, 1e4))
    texts = [text.get_text() for text in drawing.figure.axes[0].texts]
    regions = dict(text.split("\n") for text in texts if "-bound\n" in text)
    assert {*regions.values()} == gains and [*regions] == ["memory-bound", "compute-bound"]


def test_beside_thin_roofs_the_names_are_apart():
    spots = {"slow": (1, 4), "fast": (1, 14)}
    points = [draw.Point(name, x, measured=rate) for name, (x, rate) in spots.items()]
    thin = {"half": Roofline(50, 5), "cache": Roofline(100, 20)}
    drawing = draw.roofline({"it": Roofline(100, 10)}, points, thin=thin)
    turned = {text.get_text(): text.get_rotation() for text in drawing.figure.axes[0].texts}
    assert turned["slow"] == turned["fast"] == 0 < turned["half"] == turned["cache"]  # on their slopes
    boxes = boxes_of(drawing, {"slow", "fast", *thin})
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes.values(), 2))


def test_quiet_rows_are_grey_and_every_row_has_its_value_at_the_right():
    (ax,) = draw.dots({"a": (1, 2), "b": (1, 9)}, "t", "x", ("in", "out"), quiet=["b"], unit="").figure.axes
    grey = [list(line.get_xdata()) for line in ax.lines if line.get_color() == draw.GREY and line.get_marker() != ""]
    assert grey == [[1], [9]]
    assert [text.get_text() for text in ax.texts if text.get_weight() == "bold"] == ["2.00", "9.00"]


def test_marks_stand_on_the_axis():
    (ax,) = draw.lines({"a": ([1, 9], [1, 9])}, "t", "x", "y", "xy", {"here": (3, 3)}).figure.axes
    assert [(3, ax.get_ylim()[0]), (3, 3)] in [list(zip(*line.get_data(), strict=True)) for line in ax.lines]


@pytest.mark.parametrize(
    "sizes", [{"r": {"long": 5, "p": 5}, "s": {"long": 4, "p": 4}}, {"r": {"a": 3}, "s": {"b": 9}}]
)
def test_several_parts_are_named_in_a_legend(sizes):
    (legend,) = draw.bars(sizes, "t", "x").figure.legends
    parts = dict.fromkeys(part for stack in sizes.values() for part in stack)
    assert [text.get_text() for text in legend.get_texts()] == list(parts)
    assert not draw.waterfall({"r": {"first": 5}, "s": {"second": 3}}, "t", "x").figure.legends


def test_a_part_has_the_tint_that_it_is_given_and_its_size_only_where_there_is_room():
    drawing = draw.bars({"r": {"sign": 1, "rest": 99}}, "t", "x", tints={"rest": draw.TINTS[1]})
    (ax,) = drawing.figure.axes
    assert [to_rgb(bar.get_facecolor()) for bar in ax.patches] == [to_rgb(draw.TINTS[2]), to_rgb(draw.TINTS[1])]
    assert drawing.words.endswith("Text: 99 | 100")


def test_bars_of_a_waterfall_begin_where_the_one_before_ends():
    (ax,) = draw.waterfall({"r": {"p": 5}, "s": {"q": 3}, "t": {"p": 1}}, "t", "x").figure.axes
    assert [(bar.get_x(), bar.get_width()) for bar in ax.patches if bar.get_visible()] == [(0, 5), (8, 1), (5, 3)]


def test_an_arrow_leads_from_each_cell_to_where_it_moves():
    (ax,) = draw.moves(("a", [0, 1, 2]), ("b", [2, 0, 1]), "t", lambda text: None).figure.axes
    arrows = [text for text in ax.texts if getattr(text, "arrow_patch", None)]
    assert [(arrow.xyann[0], arrow.xy[0]) for arrow in arrows] == [(0.5, 1.5), (1.5, 2.5), (2.5, 0.5)]


def test_an_empty_text_widens_the_cell_before_it():
    (ax,) = draw.strips({"names": ["a", "", "b"], "cells": [1, 2, 3]}, "t", "x").figure.axes
    assert [box.get_width() for box in ax.patches] == [2, 1, 1, 1, 1]
    (ax,) = draw.strips({"cells": [0, 1]}, "t", "x", tint=lambda cell: cell or None).figure.axes
    assert [to_rgb(box.get_facecolor()) for box in ax.patches] == [(1, 1, 1), to_rgb(draw.TINTS[1])]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: draw.roofline({}), "needs a roof at least"),
        (lambda: draw.roofline({"CPU": CPU}, moves=[("a", "b")]), "there is no point a, b"),
        (lambda: draw.bars({"a": -1.0}, "t", "x"), "of 0 or more each"),
        (lambda: draw.bars({"a": dict.fromkeys("pqrstuv", 1)}, "t", "x"), "1 to 6 parts"),
        (lambda: draw.dots({"a": 0.0}, "t", "x"), "only values above 0"),
        (lambda: draw.memory_rises(trace(), "t", 1e6), "no op adds 1 MB"),
        (lambda: draw.roofline({"CPU": CPU}, [draw.Point("x", 1)]), "x has no FLOP/s"),
        (lambda: draw.partners({"odd": [0, 0, 0]}, "t", "x"), "group 0 has 3"),
        (lambda: draw.moves(("a", [1, 2]), ("b", [1, 3]), "t", int), "both strips hold the same texts"),
        (lambda: draw.exponents({"a": torch.zeros(3)}, "float16", "t"), "'a' holds nothing but zeros"),
        (lambda: draw.exponents({"a": torch.ones(3)}, "float8_e4m3fn", "t"), "float8_e4m3fn has no infinity"),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_a_sentence(call, words):
    with pytest.raises(ValueError, match=words):
        call()
