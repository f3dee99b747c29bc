"""The exercises: for each its cases, an oracle, the mistakes that learners really make, and a hint.

A file per notebook adds its exercises to `EXERCISES`. An oracle is plain Python or torch and imports nothing from the
course, so that a mistake in a helper cannot hide in it. A mistake is a sentence and a function that makes it: the tests
feed each of these functions to the check and require the sentence. The statements, stubs and solutions are in the
notebooks.
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
from helpers.exercises.exercise import EXERCISES, Exercise, allocated_bytes
