"""Every figure of the course. End a cell with the call, and the figure displays itself, as a picture and in words.

What a function returns is a `Drawing`, whose words are made from what is drawn. Each line names a file of this folder:

- drawing: Drawing, show (for your own matplotlib figure), figure
- palette, labels: the colours; what stands in a plot beside its data
- formats: bits, ranges, spacing, exponents
- strips: strips, partners, moves
- charts: lines, bars, waterfall, dots, memory_over_time, memory_rises
- roofline: roofline, Point, bandwidth_sweep
"""

from helpers.draw.charts import bars, dots, lines, memory_over_time, memory_rises, waterfall
from helpers.draw.drawing import Drawing, figure, show
from helpers.draw.formats import FIELDS, bits, exponents, ranges, spacing
from helpers.draw.palette import BLACK, BLUE, GREEN, GREY, INKS, PURPLE, TINTS, VERMILLION
from helpers.draw.roofline import Point, bandwidth_sweep, roofline
from helpers.draw.strips import moves, partners, strips
