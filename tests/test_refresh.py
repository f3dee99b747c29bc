"""`python -m tests.tools.refresh`: what it stores, and that storing again changes nothing."""

import nbformat
import pytest
from nbclient.exceptions import CellExecutionError
from PIL import Image

from helpers import draw, explore
from tests.tools import cover, refresh
from tests.tools.course import read

CELLS = [
    "import sys\n\nfrom helpers import draw, explore, units\nfrom helpers.selfcheck import check",
    "print('a', flush=True)\nprint('b', flush=True)", "draw.bits(1, 'float8_e5m2')",
    "explore.float_bits(2.0, 'float8_e4m3fn')", "units.table(['a'], [[1]])", "check('round_to', ...)", "1 / 0",
]  # fmt: skip


def probe(folder, sources):
    """A notebook of these cells, the last of which raises on purpose."""
    cells = [nbformat.v4.new_code_cell(source, id=f"c{i}") for i, source in enumerate(sources)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebook.cells[-1].metadata = {
        "tags": ["raises-exception"],
        "collapsed": True,
        "slideshow": {"slide_type": "slide"},
    }
    notebook.metadata = {"language_info": {"name": "python", "version": "3.0"}, "widgets": {}}
    nbformat.write(notebook, folder / "probe.ipynb")
    return folder / "probe.ipynb"


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A notebook that was refreshed once."""
    path = probe(tmp_path_factory.mktemp("notebooks"), CELLS)
    refresh.refresh(path)
    return path


def test_a_second_refresh_changes_no_byte(path):
    first = path.read_bytes()
    refresh.refresh(path)
    assert path.read_bytes() == first


def test_what_is_stored(path):
    cells = read(path).cells
    assert [cell.execution_count for cell in cells] == [1, 2, 3, 4, 5, 6, 7]
    assert [output.text for output in cells[1].outputs] == ["a\nb\n"]
    assert set(cells[2].outputs[0].data) == {"image/png", "text/plain"}
    assert cells[2].outputs[0].metadata["image/png"]["alt"] == draw.bits(1, "float8_e5m2").alt
    assert set(cells[3].outputs[0].data) == {"image/png", "text/plain", explore.MIME}
    assert cells[6].outputs[0].traceback == ["ZeroDivisionError: division by zero"]
    assert cells[6].metadata == {"tags": ["raises-exception"], "slideshow": {"slide_type": "slide"}}
    assert read(path).metadata == {
        "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }


def test_a_failing_cell_leaves_the_file_alone(tmp_path):
    path = probe(tmp_path, CELLS[-1:])
    notebook = read(path)
    notebook.cells[-1].metadata = {}
    nbformat.write(notebook, path)
    before = path.read_bytes()
    with pytest.raises(CellExecutionError, match="ZeroDivisionError"):
        refresh.refresh(path)
    assert path.read_bytes() == before


def test_the_picture_of_the_readme_is_the_one_that_the_course_draws():
    with Image.open(cover.PATH) as picture:
        assert picture.info["Description"] == cover.figure().words
