"""The architecture: a module of helpers imports only modules of lower layers, and `import helpers` loads none."""

import ast
import re
import subprocess
import sys
from functools import cache

import pytest

from tests.tools.course import ROOT

LAYERS = {
    "version": 0,
    "merge": 0,
    "units": 0,
    "progress": 1,
    "specs": 0,
    "roofline": 0,
    "formats": 1,
    "storage": 1,
    "flops": 1,
    "timing": 1,
    "model": 1,
    "exercises": 2,
    "counting": 2,
    "machine": 2,
    "budget": 3,
    "draw": 4,
    "explore": 4,
    "check": 4,
    "export": 5,
}
# Within the top layer the views build on the drawings.
ALLOWED = {("explore", "draw")}
HELPERS = ROOT / "helpers"
# The files of each module by their dotted name: one file, or those of a package of that name.
FILES = {
    ".".join(path.relative_to(HELPERS).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(HELPERS.rglob("*.py"))
}
FILES.pop("__init__")


@cache
def imported(file: str) -> set[str]:
    """The files of helpers that a file imports, as dotted names."""
    found = set()
    for node in ast.walk(ast.parse(FILES[file].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            # `from helpers.draw import floats` names a file, `from helpers.draw import bits` a function
            whole = [f"{node.module}.{alias.name}" for alias in node.names]
            found |= {name if name.removeprefix("helpers.") in FILES else node.module for name in whole}
    return {name.removeprefix("helpers.") for name in found if name.startswith("helpers.")}


def test_every_module_has_a_layer_and_a_line_on_the_map():
    assert {name.partition(".")[0] for name in FILES} == set(LAYERS)
    page = ast.get_docstring(ast.parse((HELPERS / "__init__.py").read_text(encoding="utf-8")))
    assert re.findall(r"^- (\w+): ", page, re.MULTILINE) == list(LAYERS)


@pytest.mark.parametrize("file", FILES)
def test_imports_go_down(file):
    module = file.partition(".")[0]
    for name in imported(file):
        other, _, part = name.partition(".")
        if other != module:
            assert not part, f"{file} imports {name}: from outside, a package is its face alone"
            assert LAYERS[other] < LAYERS[module] or (module, other) in ALLOWED, f"{file} imports {name}"


def test_oracles_use_nothing_of_the_course():
    for file in FILES:
        if file.startswith("exercises"):
            others = {name for name in imported(file) if not name.startswith("exercises")}
            assert others <= {"model"}, f"{file} imports {others}: of the course, an exercise may take a Config alone"


# In this order, in one process.
LATE = [
    ("helpers, helpers.units, helpers.specs", {"torch"}),
    ("helpers.formats, helpers.check", {"matplotlib"}),
    # It warns on stderr where CUDA's compiler is but no GPU, as on a cluster's login node.
    ("helpers.timing, helpers.machine, torch.utils.flop_counter", {"torch.utils.cpp_extension"}),
    ("helpers.draw; helpers.draw.ranges(1e-8).png()", {"matplotlib.pyplot", "ipywidgets"}),
]


@pytest.mark.slow
def test_nothing_is_loaded_before_it_is_needed():
    code = "\n".join(f"import sys, {names}\nassert not sys.modules.keys() & {absent}" for names, absent in LATE)
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
