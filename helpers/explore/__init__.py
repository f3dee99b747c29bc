"""The interactive views. Each is an ipywidgets box that a notebook ends a cell with: `explore.float_bits()`.

Where a widget cannot run (GitHub, an exported page, a notebook not yet run) the box shows a picture and a summary.
Each line names a file of this folder:

- floats: float_bits
- strips: strides
- roofs: roofline
- budgets: transformer_budget
- view: what they have in common
"""

from helpers.explore.budgets import transformer_budget
from helpers.explore.floats import float_bits
from helpers.explore.roofs import roofline
from helpers.explore.strips import strides
