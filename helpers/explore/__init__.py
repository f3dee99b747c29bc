"""The interactive views: end a cell with one of them. Each is drawn in the browser, and answers without a kernel.

Where nothing can be drawn (GitHub, a terminal) a stored picture and words stand for it. Each line names a file:

- views: Bits (as float_bits), Roof (as roofline)
- note: Note (as note), offset, shape and stride found by hand
- walk: Walk (as walk), a grid read in some order through a small cache
- any_mfu: AnyMfu (as any_mfu), the choices that hide in a utilization, as switches
- card: BlockCard (as block_card), one block with what every lesson says about its boxes
- plan: Plan (as plan), a training run: GB on each GPU beside days and dollars; napkin, the same with two handles
- timed_ops: TimedOps (as timed_ops), the reader's own ops under the measured roof
- nest: Nest (as nest), an einsum as a box of loops
- weights: Weights (as weights), a block that shares a scale
- view: live, MIME, and what the views have in common
"""

from helpers.explore.any_mfu import AnyMfu as any_mfu
from helpers.explore.card import BlockCard as block_card
from helpers.explore.nest import Nest as nest
from helpers.explore.note import Note as note
from helpers.explore.plan import Plan as plan
from helpers.explore.plan import napkin
from helpers.explore.timed_ops import TimedOps as timed_ops
from helpers.explore.view import MIME, live
from helpers.explore.views import Bits as float_bits
from helpers.explore.views import Roof as roofline
from helpers.explore.walk import Walk as walk
from helpers.explore.weights import Weights as weights
