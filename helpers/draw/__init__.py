"""Every figure of the course. End a cell with the call, and the figure displays itself, as a picture and in words.

What a function returns is a `Drawing`, whose words are made from what is drawn. Each line names a file of this folder:

- drawing: Drawing, show (for your own matplotlib figure), figure, and the colours
- floats: bits, fields, layouts, number_line, ranges, spacing, neighbourhood
- pictures: groups, images
- strips: storage, offsets
- charts: lines, bars, stacked_bars, runs
- intensities: two_times, intensity_curves
- roofs: roofline, Point, memory_steps
- budgets: budget
- block: block, the block card
- attention: attention_shapes, einsum_box
- cells, labels: parts of strips and roofs
"""

from helpers.draw.attention import attention_shapes, einsum_box
from helpers.draw.block import block
from helpers.draw.budgets import budget
from helpers.draw.charts import bars, lines, runs, stacked_bars
from helpers.draw.drawing import BLACK, BLUE, GREEN, INKS, PURPLE, TINTS, VERMILLION, Drawing, figure, show
from helpers.draw.floats import FIELDS, bits, fields, layouts, neighbourhood, number_line, ranges, spacing
from helpers.draw.intensities import intensity_curves, two_times
from helpers.draw.pictures import groups, images
from helpers.draw.roofs import Point, memory_steps, roofline
from helpers.draw.strips import MOST_CELLS, offsets, storage
