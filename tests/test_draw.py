"""Figures are tested by their labels, counts and data, not by pixels; the display by its bundle."""

import io
import itertools

import matplotlib
import pytest
import torch
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image
from torch.utils.flop_counter import FlopCounterMode

from helpers import counting, draw, formats, units
from helpers.draw.drawing import GROUNDS
from helpers.model import MODELS, Block
from helpers.roofline import Roofline
from tests.tools.contrast import contrast

GPT2, LLAMA = MODELS["GPT-2 small"], MODELS["Llama 3 8B"]
MATRIX = torch.arange(10, 22).view(3, 4)
ROWS = torch.zeros(16, 16)  # a row is a line of 64 bytes
H100, CPU = Roofline(989.5e12, 3.35e12), Roofline(180e9, 40e9)
TWO_ROOFS = {"40 GB": Roofline(312e12, 1.555e12), "80 GB": Roofline(312e12, 2.039e12)}
OPS = [
    draw.Point(name, x, measured=CPU.attainable(x) * share)
    for name, x, share in [
        ("ReLU", 1 / 8, 0.5), ("GELU, fused", 9 / 8, 0.4), ("GELU, eager", 1 / 9, 0.1), ("softmax", 5 / 8, 0.3),
        ("layer norm", 6 / 8, 0.4), ("dot", 1 / 4, 0.95), ("matrix-vector", 1 / 2, 0.9), ("matmul 64", 10.7, 0.2),
        ("matmul 256", 42.7, 0.8), ("matmul 1024", 171, 0.97), ("attention", 176, 0.6), ("MLP step", 107, 0.8),
    ]
]  # fmt: skip
TIMES, ROLES = {"a": (1e-9, 2e-6), "b": (4e-6, 2e-6)}, ("arithmetic", "memory")
SWEEP = {2**14: 3e11, 2**20: 1e9, 2**24: 1e11}
GALLERY = {
    "bits": lambda: draw.bits(0x3F80, "bfloat16"), "layouts": draw.layouts, "ranges": lambda: draw.ranges(mark=1e-8),
    "spacing": lambda: draw.spacing(["bfloat16", "float16"], 2**-28, 2**12, "title", marks=[1e-8, 1000]),
    "storage": lambda: draw.storage(MATRIX, "title", trace=(2, 1)),
    "storage of views": lambda: draw.storage({"x": MATRIX, "x[1]": MATRIX[1], "x.t()": MATRIX.t()}, "title"),
    "storage of an expand": lambda: draw.storage(torch.arange(4).expand(2, 3, 4), "title"),
    "merging": lambda: draw.merging({"x": MATRIX, "the transpose of x": MATRIX.t()}, "title"),
    "walk": lambda: draw.walk({"rows": torch.zeros(8, 8)}, "title"),
    "strips": lambda: draw.strips({"(a b)": [0, 0, 1, 1]}, "title", "position"), "lines": lambda: chart(),
    "bars": lambda: draw.bars({"a": 0.4, "b": 6.0}, "title", "MFU", ("limit", 1.0)),
    "bars of parts": lambda: draw.bars({"r": {"p": 2, "q": 4}, "s": {"q": 0.01}}, "title", "bytes", ("all", 8)),
    "dots": lambda: draw.dots({"a": 1e20, "b": 2e25}, "title", "FLOP", limits={"line": 1e26}),
    "dots in pairs": lambda: draw.dots(TIMES, "title", "time", ROLES),
    "memory_over_time": lambda: draw.memory_over_time({"a": [1e9, 3e9, 2e9]}, "title", {"forward": 0, "backward": 2}),
    "roofline": lambda: draw.roofline({"H100": H100}),
    "roofline of many": lambda: draw.roofline({"CPU": CPU}, OPS, "many points", height=4.5),
    "roofline of dtypes": lambda: draw.roofline({f"{10**i}": Roofline(10.0 ** (12 + i), 1e11) for i in range(3)}),
    "bandwidth_sweep": lambda: draw.bandwidth_sweep({2**p: 1e12 / p for p in range(14, 31)}, {"L1": 2**16}, [2**20]),
    "block": lambda: draw.block(LLAMA, 8, 8192, decode=True),
    "one_box": lambda: draw.one_box(GPT2, 1, 1024, "q k v"),
    "einsum_box": lambda: draw.einsum_box("t c, s c -> t s", {"t": 3, "s": 20, "c": 5}),
    "patterns": lambda: draw.patterns({"sum": "t (h c), s -> s t"}, {"t": 3, "s": 20, "h": 2, "c": 5}, "title"),
}  # fmt: skip


def chart(title="title"):
    return draw.lines({"a": ([1, 10], [1, 2]), "b": ([1, 10], [3, 4])}, title, "x / s", "y / B", log="y")


def texts(drawing):
    return [text.get_text() for ax in drawing.figure.axes for text in ax.texts]


def lines_of(drawing):
    """The labelled lines of a drawing by their names: x and y."""
    return {line.get_label(): line.get_xydata().tolist() for ax in drawing.figure.axes for line in ax.lines}


def boxes_of(drawing, names):
    """The places of some texts, in pixels."""
    drawing.figure.canvas.draw()
    found = (text for ax in drawing.figure.axes for text in ax.texts if text.get_text() in names)
    return {text.get_text(): Text.get_window_extent(text) for text in found}


def test_a_drawing_displays_itself_as_a_picture_and_in_words():
    data, metadata = chart()._repr_mimebundle_()
    picture = Image.open(io.BytesIO(data["image/png"]))
    assert set(data) == {"image/png", "text/plain"}
    assert data["text/plain"] == repr(chart()) == chart().words
    assert metadata["image/png"] == {"alt": chart().alt, "width": 704, "height": 341}
    assert picture.size == (2 * 704, 2 * 341) and picture.mode == "P" and "transparency" not in picture.info


def test_the_words_are_made_from_what_is_drawn():
    assert chart().words.splitlines() == [
        "Line chart: title.", "a: 1 to 2; b: 3 to 4", "x: x / s (linear, 0.55 to 10.4)",
        "y: y / B (log, 0.933 to 4.29)", "a: (1, 1) (10, 2)", "b: (1, 3) (10, 4)",
    ]  # fmt: skip


@pytest.mark.parametrize("title", ["short", "a title of more than two hundred characters " * 6])
def test_an_alt_text_has_at_most_200_characters(title):
    assert 20 <= len(chart(title).alt) <= 200 and chart(title).alt.startswith(f"Line chart: {title[:40]}")


def test_a_learners_own_figure_is_shown_the_same_way():
    figure = Figure(figsize=(4, 3), dpi=100)
    figure.subplots().bar(["x", "y"], [1, 2], label="heights")
    data, metadata = draw.show(figure)._repr_mimebundle_()
    assert data["text/plain"].startswith("Figure.") and "heights: 1 2" in data["text/plain"]
    assert (metadata["image/png"]["width"], metadata["image/png"]["height"]) == (400, 300)
    figure, ax = draw.figure()
    ax.imshow(torch.zeros(4, 6))
    ax.set_title("patches")
    assert "Picture patches: 4 × 6" in draw.show(figure).words
    with pytest.raises(TypeError, match="show takes a matplotlib Figure, got int"):
        draw.show(3)


def test_the_same_drawing_gives_the_same_picture_in_any_style():
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red", "savefig.facecolor": "black"}):
        other = chart().png()
        assert matplotlib.rcParams["font.size"] == 30
    assert other == chart().png()


@pytest.mark.parametrize("name", GALLERY)
def test_every_figure_has_a_title_and_words_and_no_text_leaves_the_picture(name):
    drawing = GALLERY[name]()
    drawing.png()
    drawn, (width, height) = drawing.figure.get_tightbbox(), drawing.figure.get_size_inches()
    assert drawn.x0 > -0.05 and drawn.y0 > -0.05 and drawn.x1 < width + 0.05 and drawn.y1 < height + 0.05
    assert width <= 6.4 and drawing.alt.startswith(f"{drawing.kind}: ") and 50 < len(drawing.words) < 2200


def test_ink_can_be_read_on_every_ground_and_black_on_every_tint():
    assert min(contrast(ink, ground) for ink in draw.INKS.values() for ground in ("white", *GROUNDS)) >= 4.5
    assert min(contrast("black", tint) for tint in draw.TINTS) >= 4.5


def test_long_lines_are_thinned_out_in_words():
    words = draw.lines({"a": (range(101), range(101))}, "t", "x", "y").words
    assert "a: (0, 0) (25, 25) (50, 50) (75, 75) (100, 100) of 101 points" in words


@pytest.mark.parametrize("log", ["", "xy"])
def test_names_of_lines_that_end_together_are_moved_apart(log):
    drawing = draw.lines({"high": ([1, 9], [1, 5.01]), "low": ([1, 9], [9, 5])}, "title", "x", "y", log)
    boxes = boxes_of(drawing, {"high", "low"})
    assert (boxes["high"].y0 - boxes["low"].y0) * 72 / drawing.figure.dpi >= 10  # points


@pytest.mark.parametrize("fmt", ["float4_e2m1fn", "bfloat16", "float32", "float64"])
def test_bits_show_each_digit_and_the_place_values(fmt):
    fmt = formats.find(fmt)
    code = formats.encode(1.5, fmt)
    (ax,) = draw.bits(code, fmt).figure.axes
    shown, digits = {text.get_text() for text in ax.texts}, [t for t in ax.texts if "Mono" in t.get_fontfamily()[0]]
    assert "".join(text.get_text() for text in digits) == f"{code:0{fmt.bits}b}"
    assert {"1", "1/2"} <= shown if fmt.bits <= 16 else {"2⁰", "2⁻¹"} <= shown


@pytest.mark.parametrize(("drawing", "written"), [
    (lambda: draw.bits(0b0_10000000_1001001, "bfloat16"),
     {"exponent 128\n128 − 127 = 1", "fraction 73\n1 + 73/128"}),
    (lambda: draw.bits(1, "float16"), {"fraction 1\n0 + 1/1024"}),  # subnormal: no hidden 1
    (lambda: draw.lines({"sum": ([0, 9], [0, 9])}, "t", "x", "y", marks={"knee": (4, 4)}), {"sum", "knee"}),
    (lambda: draw.spacing(["float16", "bfloat16"], 1, 2**12, "t", marks=[1000]), {"0.5 at 1000", "4 at 1000"}),
    (lambda: draw.bars({"r": {"p": 2, "q": 4, "tiny": 0.01}}, "t", "bytes"), {"2", "4", "tiny 0.01", "6.01"}),
    (lambda: draw.roofline({"H100": H100}), {"ridge 295", "memory-bound", "compute-bound"}),
])  # fmt: skip
def test_what_a_figure_tells_is_written_in_it(drawing, written):
    assert written <= set(texts(drawing()))


def test_layouts_have_a_cell_per_bit_and_strips_per_position():
    assert "".join(texts(draw.layouts())).count("seeeeeeeefffffff") == 3  # tfloat32, bfloat16, and float32 again
    drawing = draw.strips({"(a b)": [0, 0, 1, 1], "(b a)": [0, 1, 0, 1]}, "title", "position")
    assert texts(drawing) == list("00110101")


@pytest.mark.parametrize(("call", "finding"), [
    (lambda: draw.ranges(mark=1e-7), "1e-7 is subnormal in float16."),
    (lambda: draw.ranges(mark=1e-8), "1e-8 is normal in float64, float32, tfloat32, bfloat16. 1e-8 is lost"),
    (lambda: draw.ranges(mark=1e5), "1e5 is lost in float16"),
    (lambda: draw.storage(MATRIX, "t", trace=(2, 1)), "Element [2, 1] lies in cell 0 + 2 × 4 + 1 × 1 = 9."),
    (lambda: draw.merging({"x": MATRIX}, "t"), "x: merges into (12,), stride 1, 4 = 4 × 1."),
    (lambda: draw.merging({"x": MATRIX.t()}, "t"), "x: does not merge, 1 ≠ 3 × 4."),
    (lambda: draw.walk({"x": ROWS}, "t"), "x: 16 steps touch 1 line, of 64 bytes each."),
    (lambda: draw.walk({"x": ROWS.t()}, "t"), "x: 16 steps touch 16 lines, of 64 bytes each."),
    (lambda: draw.bars({"a": {"p": 1, "q": 2}, "b": 4}, "t", "GB"), "a 3, b 4 (GB)."),
    (lambda: draw.dots({"a": 1.0, "b": 20.0}, "t", "FLOP"), "a 1, b 20."),
    (lambda: draw.dots(TIMES, "t", "time", ROLES), "Memory / arithmetic: a 2000, b 0.5."),
    (lambda: draw.memory_over_time({"a": [1e9, 5e9, 2e9], "b": [1, 2]}, "t"),
     "a 5 GB at operation 1 of 3; b 2 bytes at operation 1 of 2."),
    (lambda: draw.roofline(TWO_ROOFS, [draw.Point("a", 170, 2.65e14)]),
     "Ridges at 153, 201 FLOP/byte. In between: a."),
    (lambda: draw.roofline({"CPU": CPU}, [draw.Point("a", 4.4, 20e9), draw.Point("b", 4.5, 20e9)]),
     "Ridge at 4.5 FLOP/byte. Memory-bound: a. Compute-bound: b."),
    (lambda: draw.bandwidth_sweep(SWEEP, {}, disturbed=[2**20]),
     "1 of 3 points are disturbed: 1 MiB."),
])  # fmt: skip
def test_the_finding_is_in_the_data(call, finding):
    assert finding in call().finding


def test_spacing_draws_the_gap_of_the_format():
    drawn = lines_of(draw.spacing(["bfloat16", "float16"], 2**-16, 2**12, "t"))
    for name in ("bfloat16", "float16"):
        for value, gap in drawn[name][::2]:  # at a power of two; every other point is the end of its step
            near = formats.neighbours(value, name)
            assert gap == near.above - near.nearest


def test_a_part_without_a_name_is_room_and_nothing_is_said_of_it():
    drawing = draw.bars({"r": {"p": 2}, "s": {"": 2, "p": 1}}, "title", "bytes")
    (room, _), (ax,) = drawing.figure.axes[0].containers, drawing.figure.axes
    assert [bar.get_facecolor()[3] for bar in room] == [0, 0] and set(texts(drawing)) == {"2", "1", "3", ""}
    assert [text.get_text() for text in ax.figure.legends[0].get_texts()] == ["p"]


@pytest.mark.parametrize(("which", "ink"), [("hollow", "white"), ("quiet", draw.GREY)])
def test_a_row_may_have_an_open_dot_or_a_grey_one(which, ink):
    (ax,) = draw.dots({"a": 1.0, "b": 20.0}, "title", "MFU", **{which: ["b"]}).figure.axes
    assert [line.get_xydata().tolist() for line in ax.lines if line.get_color() == ink] == [[[20, 1]]]


def test_a_prediction_is_open_and_a_measurement_filled():
    drawing = draw.dots({"a": (1e-3, 2e-3)}, "title", "time", ("bound", "measured"))
    faces = {line.get_label(): line.get_markerfacecolor() for line in drawing.figure.axes[0].lines}
    assert faces["bound"] == "white" and faces["measured"] == draw.BLACK


def test_a_roof_has_a_slope_to_the_ridge_and_a_flat_part():
    drawn = lines_of(draw.roofline({"H100": H100}))
    (x0, y0), (x1, y1) = drawn["H100, memory roof"]
    assert y0 / x0 == pytest.approx(3.35e12) and (x1, y1) == pytest.approx((H100.ridge, 989.5e12))
    assert {y for _, y in drawn["H100, peak"]} == {989.5e12}


def test_a_move_is_an_arrow_between_two_points():
    points = [draw.Point("eager", 0.1, measured=1e9), draw.Point("fused", 1, measured=2e10)]
    (ax,) = draw.roofline({"CPU": CPU}, points, moves=[("eager", "fused")]).figure.axes
    assert ((0.1, 1e9), (1, 2e10)) in [(text.xyann, text.xy) for text in ax.texts if text.arrow_patch]
    assert "× 20" in [text.get_text() for text in ax.texts]


def test_below_half_the_roof_a_point_is_larger_than_the_others():
    points = [draw.Point(name, 1, measured=share * CPU.attainable(1)) for name, share in (("far", 0.4), ("near", 0.6))]
    (ax,) = draw.roofline({"CPU": CPU}, points, half=True).figure.axes
    sizes = {line.get_label(): line.get_markersize() for line in ax.lines}
    assert sizes["far measured"] > sizes["near measured"]


def test_of_many_ops_no_label_lies_on_another():
    boxes = boxes_of(GALLERY["roofline of many"](), {op.label for op in OPS})
    assert len(boxes) == len(OPS)
    for one, other in itertools.combinations(boxes, 2):
        assert not boxes[one].padded(-2).overlaps(boxes[other].padded(-2)), (one, other)


@pytest.mark.parametrize(("call", "words"), [
    (lambda: draw.roofline({}), "at least one roof"),
    (lambda: draw.roofline({"CPU": CPU}, moves=[("a", "b")]), "there is no point a, b"),
    (lambda: draw.storage(torch.zeros(25), "t"), "1 to 24 cells and at most 6 tensors, got 25 and 1"),
    (lambda: draw.storage(torch.zeros(2, 2, 2, 2), "t"), "at most 3 dimensions"),
    (lambda: draw.storage({"x": MATRIX, "y": MATRIX.clone()}, "t"), "y has another storage"),
    (lambda: draw.storage({"x": MATRIX}, "t", trace=(0, 0)), "a trace follows one element of one tensor"),
    (lambda: draw.merging({"x": MATRIX[0]}, "t"), "at least 2 × 2"),
    (lambda: draw.walk({"x": torch.zeros(1000, 32).t()}, "t"), "on 24 lines"),
    (lambda: draw.bars({"a": -1.0}, "t", "x"), "of 0 or more each"),
    (lambda: draw.bars({"a": dict.fromkeys("pqrstuv", 1)}, "t", "x"), "1 to 6 parts"),
    (lambda: draw.dots({"a": 0.0}, "t", "x"), "only values above 0"),
    (lambda: draw.bandwidth_sweep({1024: 1e9}, {}, disturbed=[1024]), "disturbed are some of the 1 working sets"),
    (lambda: draw.einsum_box("b c, b c -> b c", {"b": 2, "c": 3}), "a name is summed, and each input brings one"),
])  # fmt: skip
def test_what_cannot_be_drawn_is_refused_in_a_sentence(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_the_card_sums_up_the_block():
    with torch.device("meta"):
        block, x = Block(LLAMA), torch.zeros(2, 512, 4096)
    *_, last = draw.block(LLAMA, 2, 512).words.splitlines()
    parameters, flops = sum(p.numel() for p in block.parameters()), counting.count(block, x, fused=False).flops
    assert last.startswith(f"the block | {units.si(parameters, '')} parameters | {units.si(flops, '')} FLOPs")


@pytest.mark.parametrize("upto", range(8))
def test_a_card_tells_no_more_than_the_lessons_so_far(upto):
    words = draw.block(GPT2, 8, 1024, upto=upto).words
    told = {2: "view layout", 3: "b h t s shape", 4: "1.77 M parameters"}
    told |= {5: "53.9 MB bytes", 6: " µs time", 7: "MB kept"}
    assert [lesson for lesson, text in told.items() if text in words] == [n for n in told if n <= upto]


def test_what_is_said_of_one_box_is_what_the_card_says():
    said = draw.one_box(GPT2, 1, 1024, "up").words
    assert "shape of the result: 1024 × 3072" in said
    row = next(row for row in draw.block(GPT2, 1, 1024).words.splitlines() if row.startswith("up |"))
    _, _, *cells = (cell.rpartition(" ")[0] for cell in row.split(" | "))
    assert [value for value in cells if f": {value}" not in said] == []


def test_decoding_waits_for_memory_and_one_large_batch_of_texts_for_arithmetic():
    assert "11 of 11 kernels wait for memory" in draw.block(LLAMA, 8, 8192, decode=True).alt
    nbytes = 2 * 8 * 8192 * 2 * 1024 + 2 * 2 * 8 * 4096  # keys and values of all tokens, queries, results
    assert f"{units.duration(nbytes / 3.35e12)} time" in draw.block(LLAMA, 8, 8192, decode=True).words
    assert "6 of 11 kernels wait for memory, for 9% of the least time" in draw.block(LLAMA, 8, 8192).alt


@pytest.mark.parametrize("pattern", ["t c, s c -> t s", "t d, d f -> t f", "d t, f d -> f t"])
def test_a_box_of_loops_has_the_flops_that_are_counted(pattern):
    sizes = dict(zip("tscdf", (3, 4, 5, 6, 7), strict=True))
    inputs, _ = pattern.split("->")
    tensors = [torch.zeros([sizes[name] for name in part.split()]) for part in inputs.split(",")]
    with FlopCounterMode(display=False) as counter:
        torch.einsum(pattern.replace(" ", ""), *tensors)
    sizes = {name: size for name, size in sizes.items() if name in pattern}
    assert f"= {units.si(counter.get_total_flops(), 'FLOP')}." in draw.einsum_box(pattern, sizes).alt


def test_patterns_frame_what_is_summed_and_say_how_many_numbers_come_out():
    drawing = draw.patterns({"scores": "t c, s c -> t s"}, {"t": 30, "s": 20, "c": 5}, "title")
    framed = [box for ax in drawing.figure.axes for box in ax.patches if box.get_linewidth() > 2]
    assert len(framed) == 2  # c, in both inputs
    assert f"{torch.einsum('tc,sc->ts', torch.ones(30, 5), torch.ones(20, 5)).numel()} numbers." in drawing.alt
