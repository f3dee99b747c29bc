"""Every figure of the course, and `show`, which displays one with a summary in words.

A drawing function returns a matplotlib Figure and displays nothing; end the cell with `draw.show(figure, alt)`.
Each line names a file of this folder:

- showing: show, bundle, png, summary
- floats: bits, fields, layouts, number_line, ranges, spacing, neighbourhood
- pictures: groups, images
- strips: storage, offsets
- charts: lines, bars, stacked_bars, runs
- intensities: two_times, intensity_curves
- roofs: roofline, Point, memory_steps
- budgets: budget
- style: figure, and the colours
- cells, labels: parts of strips and roofs
"""

from helpers.draw.budgets import budget
from helpers.draw.charts import bars, lines, runs, stacked_bars
from helpers.draw.floats import FIELDS, bits, fields, layouts, neighbourhood, number_line, ranges, spacing
from helpers.draw.intensities import intensity_curves, two_times
from helpers.draw.pictures import groups, images
from helpers.draw.roofs import Point, memory_steps, roofline
from helpers.draw.showing import bundle, png, show, summary
from helpers.draw.strips import MOST_CELLS, offsets, storage
from helpers.draw.style import BLACK, BLUE, GREEN, INKS, PURPLE, TINTS, VERMILLION, figure
