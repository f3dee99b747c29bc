"""What must hold of every notebook besides its outputs, which nbval compares."""

import base64
import copy
import dis
import io
import re
from collections import defaultdict
from urllib.parse import unquote

import nbformat
import pytest
import torch
from nbformat.v4 import new_code_cell, new_notebook, new_output
from PIL import Image

from helpers.exercises import EXERCISES, GUESSES
from helpers.export.cells import folded
from tests.tools import refresh, slips
from tests.tools.course import (
    NOTEBOOKS,
    ROOT,
    VIEW,
    answers,
    exercises,
    guessed,
    keys,
    lesson,
    pace,
    read,
    sections,
    tags,
)

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
    """What a cell showed, as nbval compares it: the kind of each output and its text."""
    for output in cell.outputs:
        if output.output_type == "stream":
            yield output.name, output.text
        elif output.output_type == "error":
            yield output.ename, output.evalue
        for kind, text in output.get("data", {}).items():
            if kind.startswith("text/"):
                yield kind, text


def test_minutes(path, notebook):
    found, further = pace(lesson(notebook)), pace(lesson(notebook, further=True))
    needed = r"\*\*You will need\*\* \| (\d+) minutes(?:, (\d+) more for \*Going further\*)?, "
    stated = re.search(needed, notebook.cells[0].source)
    assert stated, "the header says: | **You will need** | NN minutes, NN more for *Going further*, ..."
    assert int(stated[1]) == found["minutes"], f"the header says {stated[1]} minutes, but the lesson has {found}"
    assert int(stated[2] or 0) == further["minutes"], f"*Going further* has {further}, the header says {stated[2]}"
    limit = 30 if path.name.startswith("00") else 70
    assert found["minutes"] + further["minutes"] <= limit, f"at most {limit} minutes; it has {found} and {further}"


def test_words_of_figures(notebook):
    for cell in code_cells(notebook):
        for output in cell.outputs:
            for kind in output.get("data", {}):
                if kind.startswith("image/"):
                    alt = output.metadata[kind]["alt"]
                    words = " ".join(output.data["text/plain"].split())
                    assert len(alt) >= 20 and words.startswith(alt.removesuffix(" …")), alt
                if kind == "image/png":
                    picture = Image.open(io.BytesIO(base64.b64decode(output.data[kind]))).convert("L")
                    edges = [picture.crop((x, 0, x + 2, picture.height)) for x in (0, picture.width - 2)]
                    assert min(edge.getextrema()[0] for edge in edges) > 128, f"a title or a label is cut off: {words}"


def test_stored(path, notebook):
    """The file is as a refresh leaves it, small, and executed from top to bottom."""
    nbformat.validate(notebook)
    assert refresh.clean(copy.deepcopy(notebook)) == notebook, f"run: python -m tests.tools.refresh {path.name[:2]}"
    counts = [cell.execution_count for cell in code_cells(notebook)]
    assert counts == list(range(1, len(counts) + 1)), f"run: python -m tests.tools.refresh {path.name[:2]}"
    assert path.stat().st_size <= 900_000, f"{path.stat().st_size} bytes: draw less, or smaller figures"


def test_a_guess_stores_what_is_said_after_it(path, notebook):
    for cell in code_cells(notebook):
        stored = " ".join(answers(cell))
        for name in guessed(cell):
            told = f"{cell.id} stores another answer than {name} has: run python -m tests.tools.refresh {path.name[:2]}"
            assert GUESSES[name].because in stored, told


def showing(text, answer="", **cell):
    metadata = {"answer": answer} if answer else {}
    output = new_output("execute_result", {"text/plain": text}, metadata=metadata)
    return new_code_cell(outputs=[output], **cell)


def test_a_refresh_keeps_timings_until_code_changes_and_says_what_changed():
    timed = {"metadata": {"tags": ["nbval-ignore-output"]}}
    clock = "Where this was measured, it is"

    def made(number, seconds, second_source="b", why="Why."):
        guess = showing("Predict", f"{clock} {seconds}. {why}", id="guess", source="a")
        own = showing(f"it is {number}", id="own", source=second_source)
        return new_notebook(cells=[guess, own, showing(f"{seconds} s", id="clock", source="c", **timed)])

    before, same, other = made(1, 5), made(2, 6, why="Why?"), made(1, "7 disturbed", second_source="d")
    refresh.keep_timings(same, before)
    assert list(refresh.changes(same, before)) == [
        "guess: …was measured, it is 5. Why.… → …was measured, it is 6. Why?…",
        "own: …it is 1… → …it is 2…",
    ]
    refresh.keep_timings(other, before)
    assert list(refresh.changes(other, before)) == [
        "clock was measured anew",
        "clock was disturbed: measure it with --timings when this machine is idle",
    ]


def test_tags(notebook):
    cells = code_cells(notebook)
    unknown = {tag for cell in notebook.cells for tag in tags(cell)} - KNOWN_TAGS
    assert not unknown, f"known are {KNOWN_TAGS}"
    ignored = sum("nbval-ignore-output" in tags(cell) for cell in cells)
    assert 4 * ignored <= len(cells), f"{ignored} of {len(cells)} outputs are not compared; at most a quarter may be so"


def test_outputs(notebook):
    for cell in code_cells(notebook):
        assert not cell.source.rstrip().endswith(";"), f"nbval does not honour a trailing ; in\n{cell.source}"
        for output in cell.outputs:
            assert output.get("name") != "stderr", f"a reader would see a warning: {output.get('text')}"
        drawn = any({"image/png", VIEW} & output.get("data", {}).keys() for output in cell.outputs)
        for _, text in texts(cell):
            assert drawn or len(text.encode()) <= 2000, f"too much to read: {text[:200]}"
            if "nbval-ignore-output" not in tags(cell):
                assert not VOLATILE.search(FIXED.sub("", text)), f"this differs on the next machine: {text}"


def test_code(notebook):
    for number, cell in enumerate(code_cells(notebook)):
        lines = cell.source.splitlines()
        limit = 30 if lines[0].startswith(("def ", "class ", "@")) else 20
        assert 0 < len(lines) <= limit, f"{len(lines)} lines, at most {limit}; split it:\n{cell.source}"
        wide = [line for line in lines if len(line) > 92 and not folded(cell)]
        assert not wide, f"a page or a slide would cut off {wide}"
        imports = [line for line in lines if number and re.match(r"\s*(import|from) ", line)]
        assert not imports, f"belongs in the first code cell: {imports}"


def test_folded_code_only_shows(notebook):
    """Who leaves it folded misses nothing: it ends in a picture or a table, and no other cell needs what it sets."""
    uses = [(cell, *stored_and_loaded(cell)) for cell in code_cells(notebook)]
    for cell, stored, _ in [use for use in uses if folded(use[0])]:
        heading, *_, last = cell.source.splitlines()
        kind = {"# The picture": "draw.", "# The table": "units.table("}[heading]
        assert last.startswith(kind) and not guessed(cell), cell.source
        needed = {name for other, own, loaded in uses if other is not cell for name in stored & (loaded - own)}
        assert not needed, f"other cells need {needed} of\n{cell.source}"


def stored_and_loaded(cell):
    """The names that a cell sets at its top level, and those that it reads there."""
    names = {"STORE_NAME": set(), "LOAD_NAME": set()}
    for step in dis.get_instructions(compile(cell.source, cell.id, "exec")):
        names.get(step.opname, set()).add(step.argval)
    return names["STORE_NAME"], names["LOAD_NAME"]


def test_a_guess_is_compared_with_what_its_own_section_measured(notebook):
    """A learner who runs an earlier section again shall not change what a later guess is compared with."""
    setters, guesses = defaultdict(set), []
    for number, section in enumerate(sections(notebook)):
        for cell in (cell for cell in section if cell.cell_type == "code"):
            stored, loaded = stored_and_loaded(cell)
            for name in stored:
                setters[name].add(number)
            if guessed(cell):
                guesses.append((cell.id, loaded - stored))
    twice = [(cell, name) for cell, names in guesses for name in names if len(setters[name]) > 1]
    assert guesses and not twice, f"set in several sections: {twice}"


def test_links(path, notebook):
    prose = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    assert not re.search(r"!\[|<img|<script", prose), "figures are drawn by code"
    for target in re.findall(r"\]\(([^)]+)\)", prose):
        if not target.startswith("https://"):
            assert (path.parent / unquote(target).split("#")[0]).exists(), f"the link leads nowhere: {target}"


def test_opening_and_close(notebook):
    first = notebook.cells[0].source
    assert re.match(r"# \d\d \S", first), "a notebook opens with: # NN Title"
    for row in ("do", "learn", "need"):
        assert f"**You will {row}**" in first, "the header has three rows: you will do, learn, need"
    numbered = [re.match(r"## (\d+)\. ", part[0].source) for part in sections(notebook)]
    numbers = [int(match[1]) for match in numbered if match]
    assert numbers == list(range(1, len(numbers) + 1)), f"sections are numbered in order; these are {numbers}"
    recap = [cell.source for cell in sections(notebook)[-1]]
    assert recap[0].startswith("## Recap") and any("<summary>Sources<" in source for source in recap), "recap, sources"


def test_exercises(path, notebook):
    tasks = exercises(notebook)
    assert len(tasks) >= (0 if path.name.startswith("00") else 5)
    for number, task in enumerate(tasks, start=1):
        form = rf"### Exercise {number}\. .+ ★{{1,3}} \(\d+ min\)\n\n"
        opens = f"a statement opens with: ### Exercise {number}. Title ★ (5 min)"
        assert re.match(form, task.statement), f"{opens}; renumber those below, also where text and notes name them"
        (output,) = notebook.cells[task.index].outputs
        assert output.data["text/plain"].startswith(f"○ {task.name}: not attempted yet"), "store the stub unsolved"


def test_each_exercise_is_asked_in_the_notebook_of_its_file():
    asked = {path.stem: sorted(task.name for task in exercises(read(path))) for path in NOTEBOOKS}
    judged = {path.stem: sorted(keys(path)) for path in NOTEBOOKS}
    assert asked == judged, "the stubs of a notebook and its file of exercises have the same names"
    made = {path.stem: sorted(name for cell in read(path).cells for name in guessed(cell)) for path in NOTEBOOKS}
    told = {path.stem: sorted(keys(path, guesses=True)) for path in NOTEBOOKS}
    assert made == told, "the guesses of a notebook and those of its file have the same names"
    assert EXERCISES.keys() == {name for names in judged.values() for name in names}
    files = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "helpers" / "exercises").glob("nb*.py"))
    names = re.findall(r'^(?:exercise|parts|choices|guess)\("(\w+)"', files, re.MULTILINE)
    assert len(names) == len(EXERCISES) + len(GUESSES), "each name stands in one place"


@pytest.fixture(scope="module")
def hunt():
    """What the cells of notebook 03 define for the hunt for silent bugs."""
    (path,) = (path for path in NOTEBOOKS if path.name.startswith("03"))
    return next(names for task, names in slips.names(path) if task.name == "silent_bugs")


@pytest.mark.parametrize("bug", "abcdef")
def test_a_silent_bug_is_caught_first_by_the_net_that_its_answer_names(hunt, bug):
    torch.manual_seed(0)
    q, k, v = torch.randn(2, 5, 6, 7), torch.randn(2, 5, 3, 7), torch.randn(2, 5, 3, 7)
    right = hunt["attention"](q, k, v)
    assert torch.allclose(hunt["hunted"](q, k, v), right, atol=1e-5)
    change = hunt["bugs"][bug]
    result = hunt["hunted"](q, k, v, **change)
    caught = {
        "name": bool(set(change.get("key", "").split()) - {"b", "t", "s", "kv", "group", "c"}),
        "shape": result.shape != q.shape,
        "nan": bool(result.isnan().any()),
        "comparison": result.shape != q.shape or not torch.allclose(result, right, atol=1e-5),
    }
    assert EXERCISES["silent_bugs"].parts[bug].oracle() == next(net for net, found in caught.items() if found)
