"""Every figure of the course. End a cell with the call, and the figure displays itself, as a picture and in words.

What a function returns is a `Drawing`, whose words are made from what is drawn. Each line names a file of this folder:

- drawing: Drawing, show (for your own matplotlib figure), figure, and the colours
- formats: bits, layouts, ranges, spacing, number_line, quantisers
- storage: storage, merging, walk, groups, images
- charts: lines, bars, dots, stacked_bars, runs, two_times, predicted_and_measured, memory_over_time, memory_and_time
- roofline: roofline, Point, intensity_curves, bandwidth_sweep
- block: block (the block card), attention_shapes, einsum_box
"""

from helpers.draw.block import attention_shapes, block, einsum_box
from helpers.draw.charts import (
    bars,
    dots,
    lines,
    memory_and_time,
    memory_over_time,
    predicted_and_measured,
    runs,
    stacked_bars,
    two_times,
)
from helpers.draw.drawing import BLACK, BLUE, GREEN, GREY, INKS, PURPLE, TINTS, VERMILLION, Drawing, figure, show
from helpers.draw.formats import bits, layouts, number_line, quantisers, ranges, spacing
from helpers.draw.roofline import Point, bandwidth_sweep, intensity_curves, roofline
from helpers.draw.storage import groups, images, merging, storage, walk
