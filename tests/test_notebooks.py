"""What must hold of every notebook besides its outputs, which nbval compares."""

import copy
import re
from urllib.parse import unquote

import nbformat
import pytest

from helpers.exercises import EXERCISES
from tests.tools import refresh
from tests.tools.course import NOTEBOOKS, ROOT, exercises, read, run, tags
from tests.tools.prose import sections

KNOWN_TAGS = {"nbval-ignore-output", "raises-exception", "exercise", "exercise-spec"}
# A time of day, an object's address, a file's path or a version would differ on the next machine.
VOLATILE = re.compile(
    r"\d\d:\d\d:\d\d|\b20\d\d-\d\d-\d\d\b|\b0x[0-9a-f]{8,}\b"
    r"|(?<![\w.])/(?:home|root|tmp|usr|work|Users)/|\bPython \d|\+cpu|\+cu\d"
)
FIXED = re.compile(r"code 0x[0-9a-f]+")  # a bit pattern is no address


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def path(request):
    return request.param


@pytest.fixture
def notebook(path):
    return read(path)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def texts(cell):
    """The texts of a cell's outputs, as nbval compares them."""
    for output in cell.outputs:
        if output.output_type == "stream":
            yield output.text
        for kind, text in output.get("data", {}).items():
            if kind.startswith("text/"):
                yield text


def test_there_are_notebooks_in_an_unbroken_order():
    assert [int(path.name[:2]) for path in NOTEBOOKS] == list(range(len(NOTEBOOKS)))
    assert len(NOTEBOOKS) >= 2


def test_every_code_cell_was_executed_in_order(notebook):
    assert [cell.execution_count for cell in code_cells(notebook)] == list(range(1, len(code_cells(notebook)) + 1))


def test_cells_have_known_tags_and_the_file_is_clean(path, notebook):
    nbformat.validate(notebook)
    for cell in notebook.cells:
        assert set(tags(cell)) <= KNOWN_TAGS
        assert cell.source.strip()
    assert refresh.clean(copy.deepcopy(notebook)) == notebook, "run: python -m tests.tools.refresh"
    assert path.stat().st_size < 300_000


def test_outputs_are_plain(notebook):
    for cell in code_cells(notebook):
        assert not cell.source.rstrip().endswith(";"), "nbval does not honour a trailing ;"
        for output in cell.outputs:
            assert output.get("name") != "stderr", output.get("text")
            assert output.output_type != "error" or "raises-exception" in tags(cell)
        for text in texts(cell):
            assert len(text.encode()) <= 2000, text[:200]
            if "nbval-ignore-output" not in tags(cell):
                assert not VOLATILE.search(FIXED.sub("", text)), text


def test_outputs_that_are_not_compared_are_asserted(notebook):
    cells = code_cells(notebook)
    for cell, following in zip(cells, [*cells[1:], None], strict=True):
        if "nbval-ignore-output" in tags(cell):
            assert "assert " in cell.source or "assert " in following.source


def test_figures_have_words_beside_the_picture(notebook):
    for cell in code_cells(notebook):
        for output in cell.outputs:
            if "image/png" in output.get("data", {}):
                alt = output.metadata["image/png"]["alt"]
                assert 20 <= len(alt) <= 200
                assert output.data["text/plain"].startswith(alt)
                assert "\nTitle: " in output.data["text/plain"]


def test_no_picture_is_linked_and_every_link_leads_somewhere(path, notebook):
    prose = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    assert not re.search(r"!\[|<img|<script", prose)
    for target in re.findall(r"\]\(([^)]+)\)", prose):
        if not target.startswith("https://"):
            assert (path.parent / unquote(target).split("#")[0]).exists(), target


def test_prose_opens_and_closes_as_the_course_does(notebook):
    first = notebook.cells[0].source
    assert re.match(r"# \d\d \S", first)
    assert "**You will do**" in first and "**You will learn**" in first and "**You will need**" in first
    recap = [cell.source for cell in sections(notebook)[-1]]
    assert recap[0].startswith("## Recap") and any("**Sources.**" in source for source in recap)
    for cell in notebook.cells:
        limit = 30 if cell.source.startswith(("def ", "class ")) else 20
        assert cell.cell_type == "markdown" or len(cell.source.splitlines()) <= limit, cell.source


def test_code_imports_in_the_first_code_cell_only(notebook):
    for cell in code_cells(notebook)[1:]:
        assert not re.search(r"^(import|from) ", cell.source, re.MULTILINE), cell.source


def test_enough_exercises_with_stars_and_minutes(path, notebook):
    tasks = exercises(notebook)
    assert len(tasks) >= (0 if path.name.startswith("00") else 5)
    for number, task in enumerate(tasks, start=1):
        assert re.match(rf"### Exercise {number}\. .+ ★{{1,3}} \(\d+ min\)\n\n", task.statement), task.statement


def test_every_exercise_is_asked_once_in_the_notebook_of_its_file():
    asked = {path.stem: [task.name for task in exercises(read(path))] for path in NOTEBOOKS}
    kept = {name: exercise.oracle.__module__.rpartition(".nb")[2] for name, exercise in EXERCISES.items()}
    assert sorted((name, stem) for stem, names in asked.items() for name in names) == sorted(kept.items())


def test_stubs_run_and_are_not_attempted_yet(notebook):
    for task in exercises(notebook):
        (output,) = notebook.cells[task.index].outputs
        assert output.data["text/plain"].startswith(f"○ {task.name}: not attempted yet")


def test_with_every_solution_in_place_every_exercise_is_correct(path, notebook):
    tasks = exercises(notebook)
    for task in tasks:
        notebook.cells[task.index].source = task.solution
    run(notebook, path.parent)
    for task in tasks:
        result = notebook.cells[task.index].outputs[-1]
        assert result.data["text/plain"] == f"✓ {task.name}: correct."


def test_the_text_names_no_place_outside_the_project():
    for path in NOTEBOOKS:
        assert "../shared" not in path.read_text(encoding="utf-8")
    assert not list(ROOT.glob("shared"))
