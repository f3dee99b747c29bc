"""Tests of the helpers and of the notebooks; `python -m tests.refresh` rewrites the notebooks' outputs."""
