"""The architecture: a module of helpers imports only modules of lower layers, and `import helpers` loads none."""

import ast
import subprocess
import sys

import pytest

from tests.course import ROOT

LAYERS = {
    "units": 0,
    "specs": 0,
    "roofline": 0,
    "formats": 1,
    "storage": 1,
    "flops": 1,
    "timing": 1,
    "workloads": 1,
    "records": 1,
    "exercises": 1,
    "counting": 2,
    "machine": 2,
    "budget": 1,
    "draw": 3,
    "explore": 3,
    "selfcheck": 3,
    "export": 3,
}
# Within the top layer the views build on the drawings.
ALLOWED = {("explore", "draw")}
MODULES = sorted(path.stem for path in (ROOT / "helpers").glob("*.py") if path.stem != "__init__")


def imported(module: str) -> set[str]:
    """The modules of helpers that a module imports."""
    found = set()
    for node in ast.walk(ast.parse((ROOT / "helpers" / f"{module}.py").read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "helpers":
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("helpers."):
            found.add(node.module.split(".")[1])
        elif isinstance(node, ast.Import):
            found |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("helpers.")}
    return found


def test_every_module_has_a_layer_and_a_line_on_the_map():
    assert set(MODULES) == set(LAYERS)
    page = ast.get_docstring(ast.parse((ROOT / "helpers" / "__init__.py").read_text(encoding="utf-8")))
    assert [line.split(":")[0].removeprefix("- ") for line in page.splitlines() if line.startswith("- ")] == list(
        LAYERS
    )


@pytest.mark.parametrize("module", MODULES)
def test_imports_go_down(module):
    for other in imported(module):
        assert LAYERS[other] < LAYERS[module] or (module, other) in ALLOWED, f"{module} imports {other}"


def test_oracles_use_nothing_of_the_course():
    assert imported("exercises") == set()


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import helpers", "torch"),
        ("import helpers.units, helpers.specs", "torch"),
        ("import helpers.formats, helpers.selfcheck", "matplotlib"),
        ("import helpers.draw", "matplotlib.pyplot ipywidgets"),
    ],
)
def test_nothing_is_loaded_before_it_is_needed(statement, absent):
    code = f"import sys; {statement}; sys.exit(any(name in sys.modules for name in {absent.split()}))"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
