"""The list of mutants that may live fits the code as it is; and how a mutant is made and named."""

import shutil
import tomllib

import pytest

from tests import mutate
from tests.course import ROOT

ENTRIES = tomllib.loads(mutate.EXPLAINED.read_text(encoding="utf-8"))["because"]
DIFFS = [diff.strip() for entry in ENTRIES for diff in entry["diffs"]]


def test_every_survivor_has_one_reason():
    assert all(entry["reason"].strip().endswith(".") and entry["diffs"] for entry in ENTRIES)
    assert len(set(DIFFS)) == len(DIFFS)
    assert mutate.explained().keys() == set(DIFFS)


@pytest.mark.parametrize("diff", DIFFS)
def test_what_a_survivor_changes_is_still_there(diff):
    place, *changes = diff.splitlines()
    file, where = place.split(": ", 1)
    source = (ROOT / "helpers" / file).read_text(encoding="utf-8")
    assert where.split(" #")[0] in {name for name, *_ in mutate.scopes(source)}
    old = [line[2:] for line in changes if line.startswith("- ")]
    lines = [line.strip() for line in source.splitlines()]
    assert any(lines[i : i + len(old)] == old for i in range(len(lines)))
    assert [line[2:] for line in changes if line.startswith("+ ")] != old


SOURCE = '''
"""A module."""

LIMIT = 3

@cached
def f(x: int = 1) -> int:
    """Its words."""
    return x + LIMIT


class C:
    size: int = 0

    def g(self):
        return [
            len("a"),
            not self.size,
        ]
'''


def test_scopes_are_functions_methods_and_statements():
    found = {name: (first, body, last) for name, first, body, last in mutate.scopes(SOURCE)}
    assert found["LIMIT"] == (4, 4, 4)
    assert found["f"] == (6, 8, 9)  # from its decorator
    assert found["C"] == (12, 12, 19) and found["C.g"] == (15, 16, 19)


def test_a_mutant_differs_in_one_place(monkeypatch, tmp_path):
    pytest.importorskip("mutmut")
    (tmp_path / "helpers").mkdir()
    (tmp_path / "helpers" / "m.py").write_text(SOURCE, encoding="utf-8")
    monkeypatch.setattr(mutate, "ROOT", tmp_path)
    found = mutate.mutants("m.py")
    assert {mutant.diff for mutant in found} == {
        "m.py: LIMIT\n- LIMIT = 3\n+ LIMIT = 4",
        "m.py: LIMIT\n- LIMIT = 3\n+ LIMIT = None",
        "m.py: f\n- def f(x: int = 1) -> int:\n+ def f(x: int = 2) -> int:",
        "m.py: f\n- return x + LIMIT\n+ return x - LIMIT",
        "m.py: C\n- size: int = 0\n+ size: int = 1",
        "m.py: C\n- size: int = 0\n+ size: int = None",
        "m.py: C.g\n- not self.size,\n+ self.size,",
    }
    for mutant in found:
        compile(mutant.source, "m.py", "exec")
        assert mutant.source != SOURCE and mutant.original == SOURCE


def test_a_copy_of_the_project_has_all_that_the_tests_read():
    leave = shutil.ignore_patterns(*mutate.LEFT_OUT)
    for folder in ("helpers", "notebooks", "tests"):
        kinds = (".py", ".txt", ".ipynb", ".toml", ".mplstyle")
        files = [path for path in (ROOT / folder).rglob("*") if path.suffix in kinds]
        names = {part for path in files for part in path.relative_to(ROOT).parts} - {".ipynb_checkpoints"}
        assert "kv_cache.txt" in names or folder != "tests"
        assert leave(folder, sorted(names)) == set()
