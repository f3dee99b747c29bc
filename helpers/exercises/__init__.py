"""The exercises: for each its cases, an oracle, and the mistakes that learners really make.

A file per notebook puts its exercises on the list `EXERCISES`, as a table: each wrong formula, and after it the
sentence that names the mistake; and on the list `GUESSES` what is said of its guesses. An oracle is plain Python or
torch and imports nothing from the course but `Config`, which may be an argument, so that a mistake in a helper cannot
hide in it. Statements, stubs, hints and solutions are in the notebooks. `helpers.check` runs, compares, explains and
scores answers.
"""

from helpers.exercises import (
    nb00_start_here,
    nb01_float_formats,
    nb02_tensor_storage_and_views,
    nb03_named_dimensions,
    nb04_flop_counting,
    nb05_arithmetic_intensity,
    nb06_roofline,
    nb07_transformer_budget,
)
from helpers.exercises.exercise import EXERCISES, GUESSES, Exercise, Guess, Mistake
