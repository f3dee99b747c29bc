"""Checks that a learner runs: `check(exercise, answer)` and `compare(guess, value)`.

Neither raises, whatever it is given: a half-written answer must not stop Run All.
"""

from helpers.check.guess import Comparison, compare
from helpers.check.judge import Verdict, check
