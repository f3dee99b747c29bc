"""Tests of the helpers and of the notebooks; `python -m tests.tools.refresh` rewrites the notebooks' outputs."""
