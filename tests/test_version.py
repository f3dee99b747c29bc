"""A notebook says in one sentence that the helpers, or the packages, are not those that it needs."""

import re

import pytest
from IPython.core.interactiveshell import InteractiveShell

import helpers
from helpers import version
from tests.tools.course import NOTEBOOKS, ROOT, read


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_first_cell_asks_for_the_helpers_of_this_release(path):
    first = next(cell for cell in read(path).cells if cell.cell_type == "code")
    release = helpers.__version__.rpartition(".")[0]
    assert f'version.at_least("{release}")' in first.source, "raise it in all notebooks with helpers.__version__"
    assert f'\n\nversion.at_least("{release}")' in first.source, "right below the imports"


@pytest.mark.parametrize("needed", ["0.2", "0.1.10", "1", "0.10"])
def test_older_helpers_are_told_in_one_sentence(monkeypatch, needed):
    monkeypatch.setattr(version, "__version__", "0.1.9")
    with pytest.raises(version.TooOldError, match=f"needs version {re.escape(needed)} of .* and those in .* are 0.1.9"):
        version.at_least(needed)


def test_in_a_notebook_there_is_no_traceback(capsys):
    shell = InteractiveShell()
    shell.run_cell("from helpers import version\nversion.at_least('999')")
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("This notebook needs version 999 of the course's helpers")


def test_packages_of_another_version_are_told(monkeypatch, capsys):
    monkeypatch.setattr(version, "installed_version", lambda name: helpers.__version__)
    version.at_least("0.0")
    assert capsys.readouterr().out == ""
    monkeypatch.setattr(version, "installed_version", lambda name: "0.0.9")
    version.at_least("0.0")
    assert re.fullmatch(
        r"The course is of .*, and its packages were installed for 0\.0\.9: .*\n", capsys.readouterr().out
    )


def test_one_version_stands_everywhere():
    assert f"\nversion: {helpers.__version__}\n" in (ROOT / ".github" / "CITATION.cff").read_text("utf-8")
    assert re.search(r"^## (\S+?),? ", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M)[1] == helpers.__version__
