"""The command that tries another version of a dependency: what it installs, and what it reads out of a report."""

import subprocess
import sys

import pytest

from tests.course import ROOT
from tests.versions import failures, pins


def test_pins_are_those_of_the_project_but_for_what_is_wanted():
    stored = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    torch = next(line for line in stored.splitlines() if line.startswith("torch=="))
    tried = pins(["torch==9.8.7", "pytest-xdist==3.0.0+local"])
    assert tried.startswith(stored.replace(torch, "torch==9.8.7").rstrip())
    lines = tried.splitlines()
    assert "pytest-xdist==3.0.0+local" in lines and "-e ." in lines
    assert [line.partition("==")[0] for line in lines].count("pytest-xdist") == 1
    assert any(line.startswith("sphinx-revealjs==") for line in lines)  # of the extra that the extra for tests contains
    assert not any("resource-accounting" in line for line in lines)


@pytest.mark.parametrize("wanted", ["torch", "torch>=2", "torchvision==1.0", "==1", "torch==", "-e .==1"])
def test_what_cannot_be_pinned_is_named(wanted):
    with pytest.raises(ValueError, match=r"expected name==version.*torch.*pytest") as problem:
        pins([wanted])
    assert repr(wanted) in str(problem.value)


def test_failures_are_read_with_their_last_lines(tmp_path):
    (tmp_path / "test_sample.py").write_text(
        "import pytest\n"
        "@pytest.fixture\n"
        "def broken():\n    raise OSError('no such thing')\n"
        "def test_right(): pass\n"
        "def test_wrong():\n    assert 1 + 1 == 3, '\\x1b[31mred'\n"
        "def test_error(broken): pass\n"
        "@pytest.mark.skip\n"
        "def test_skipped(): pass\n"
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--tb=short",
        "--junitxml=report.xml",
        ".",
    ]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True).returncode == 1
    found = failures(tmp_path / "report.xml")
    assert list(found) == ["test_sample test_wrong", "test_sample test_error"]
    assert "AssertionError: red" in found["test_sample test_wrong"]
    assert found["test_sample test_error"].endswith("OSError: no such thing")
