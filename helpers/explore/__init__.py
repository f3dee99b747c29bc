"""The interactive views: end a cell with one of them. Each is drawn in the browser, and answers without a kernel.

Where nothing can be drawn (GitHub, a terminal) a stored picture and words stand for it. Each line names a file:

- views: float_bits, strides, roofline, transformer_budget
- view: live, MIME, and what the views have in common
"""

from helpers.explore.view import MIME, live
from helpers.explore.views import float_bits, roofline, strides, transformer_budget
