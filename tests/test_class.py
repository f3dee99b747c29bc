"""A class: hand-outs give nothing away and lose nothing; marks are for answers alone, whatever a notebook does."""

import csv
import re
import subprocess
import sys
import tomllib
from dataclasses import asdict, replace

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from helpers.check import answers, check, record, request
from helpers.exercises import EXERCISES
from helpers.export import handout, marks, plan
from helpers.export.__main__ import main
from helpers.progress import progress
from tests.tools.course import NOTEBOOKS, ROOT, exercises, read, tags

START = NOTEBOOKS[0]


def command(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["export", *map(str, arguments)])
    main()


def stub(notebook, name):
    return next(cell for cell in notebook.cells if cell.cell_type == "code" and name in handout.checks(cell.source))


# ---- Hand-outs


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_hand_out_gives_nothing_away_and_the_way_back_gives_the_lesson(path):
    lesson = read(path)
    given = handout.for_students(read(path))
    text = nbformat.writes(given)
    assert not any(secret in text for secret in ("For the teacher", "<summary>Solution", '"answer":'))
    assert not any(task.solution in cell.source for task in exercises(lesson) for cell in given.cells)
    assert [cell.source for cell in given.cells if "outputs" in cell] == [
        c.source for c in lesson.cells if "outputs" in c
    ]
    assert text.count("<summary>Hint") == len(exercises(lesson))
    assert handout.for_teacher(given, lesson) == lesson


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_nbgrader_finds_a_solution_cell_and_a_test_cell_for_each_exercise(path):
    given = handout.for_nbgrader(handout.for_students(read(path)))
    nbformat.validate(given)
    roles = [(cell.metadata.nbgrader, cell.source) for cell in given.cells if "nbgrader" in cell.metadata]
    assert len({role.grade_id for role, _ in roles}) == len(roles) == 2 * len(exercises(read(path)))
    for (solution, source), (test, code) in zip(roles[::2], roles[1::2], strict=True):
        assert (solution.solution, solution.grade, test.solution, test.grade) == (True, False, False, True)
        [(name, call)] = handout.checks(source).items()
        assert name in EXERCISES and handout.checks(code) == {name: call}


def test_what_a_student_wrote_comes_back_with_the_solutions(tmp_path, monkeypatch, capsys):
    folder, out = tmp_path / "in" / "ann", tmp_path / "out"
    given = handout.for_nbgrader(handout.for_students(read(START)))
    stub(given, "card_in_gb").source = 'answer = 80\n\ncheck("card_in_gb", answer)'
    given.cells.insert(20, new_code_cell("mine = 1"))
    folder.mkdir(parents=True)
    nbformat.write(given, folder / "renamed.ipynb")
    (folder / "none.ipynb").write_text("no notebook")
    command(monkeypatch, "handout", "--back", tmp_path / "in", "--out", out)
    printed = capsys.readouterr().out
    assert "none.ipynb is no hand-out of the course: left out" in printed and "1 notebooks" in printed
    sources = [cell.source for cell in read(out / "ann" / "renamed.ipynb").cells]
    assert len(sources) == len(read(START).cells) + 1 and "mine = 1" in sources
    assert 'answer = 80\n\ncheck("card_in_gb", answer)' in sources
    with pytest.raises(SystemExit, match="stay as they are"):
        command(monkeypatch, "handout", "--back", tmp_path / "in", "--out", folder)


def test_a_class_gets_a_folder_that_runs_and_gives_nothing_away(tmp_path, monkeypatch, capsys):
    two = [NOTEBOOKS[2].name, NOTEBOOKS[3].name]
    command(monkeypatch, "handout", "--out", tmp_path / "class", "02", "03")
    assert capsys.readouterr().out == f"Without solutions and notes, in {tmp_path / 'class'}: 02, 03\n"
    command(monkeypatch, "handout", "--out", tmp_path / "class", "03")  # again, over the old one
    assert capsys.readouterr().out.endswith("From before, there are also: 02\n")
    command(monkeypatch, "handout", "--out", tmp_path / "class", "02", "03")
    files = [file for file in (tmp_path / "class").rglob("*") if file.is_file() and "static" not in file.parts]
    assert sorted(file.name for file in files if file.suffix == ".ipynb") == two
    texts = {file: file.read_text("utf-8") for file in files if file.suffix != ".pyc"}
    secrets = [task.solution for path in NOTEBOOKS for task in exercises(read(path)) if task.solution.count("\n") > 2]
    assert not [file for file, text in texts.items() if any(secret in text for secret in secrets)]
    for name in two:
        words = "\n".join(cell.source for cell in read(tmp_path / "class" / "notebooks" / name).cells)
        assert set(re.findall(r"\]\((\w+\.ipynb)\)", words)) == set(two) - {name}
    ours = (ROOT / "README.md").read_text("utf-8")
    (start,) = re.findall(r"<!-- open -->\n(```.*?```)", ours, re.DOTALL)
    assert start.replace(START.name, two[0]) in texts[tmp_path / "class" / "README.md"]
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.chdir(tmp_path / "class")  # where Python finds these helpers before any others
    ran = subprocess.run([sys.executable, "-m", "helpers.progress"], capture_output=True, text=True)
    assert NOTEBOOKS[2].stem in ran.stdout and START.stem not in ran.stdout
    listed = tomllib.loads((tmp_path / "class" / "pyproject.toml").read_text("utf-8"))
    needed = [listed["project"]["readme"], listed["tool"]["flit"]["external-data"]["directory"]]
    needed += [".hub/jupyterhub_config.py"]
    needed += re.findall(r"^-[cr] (.+)$", (tmp_path / "class" / "requirements.txt").read_text("utf-8"), re.MULTILINE)
    assert all((tmp_path / "class" / name).exists() for name in needed)


def test_the_way_back_finds_the_lesson_of_a_hand_out_without_its_links(tmp_path, monkeypatch):
    command(monkeypatch, "handout", "--out", tmp_path / "class", "03")
    command(monkeypatch, "handout", "--back", tmp_path / "class" / "notebooks", "--out", tmp_path / "back")
    assert read(tmp_path / "back" / NOTEBOOKS[3].name) == read(NOTEBOOKS[3])


def test_hand_outs_are_written_elsewhere(tmp_path, monkeypatch, capsys):
    with pytest.raises(SystemExit, match="a notebook of the course itself"):
        command(monkeypatch, "handout", "--out", ROOT, "00")
    command(monkeypatch, "handout", "--nbgrader", "--out", tmp_path, "00", "03")
    assert capsys.readouterr().out == f"Without solutions and notes, in {tmp_path}: 00, 03\n"
    assert {path.parent.name for path in tmp_path.rglob("*.ipynb")} == {START.stem, NOTEBOOKS[3].stem}
    assert not any(".ipynb)" in file.read_text("utf-8") for file in tmp_path.rglob("*.ipynb"))
    assert (tmp_path / "nbgrader_config.py").exists()
    with pytest.raises(SystemExit, match="2"):
        command(monkeypatch, "handout", "--out", tmp_path, "99")
    assert "there is no notebook 99; there are 00," in capsys.readouterr().err


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_plan_has_the_whole_lesson_and_the_exercises_that_fit(path):
    rows, home, too_long = plan.plan(read(path))
    assert (75 <= rows[-1][2] <= 90 or path == START) and not too_long
    assert sum(minutes for _, minutes, _ in rows) == rows[-1][2]
    tasks = [name for name in [*(row[0] for row in rows), *home] if name.startswith("Exercise ")]
    assert len(tasks) == len(exercises(read(path))) and rows[-2][0] == "Recap"
    short = plan.plan(read(path), minutes=20)
    assert short.too_long == short.rows[-1][2] - 20 > 0
    assert not any(name.startswith("Exercise ") or "Going further" in name for name, *_ in short.rows)
    everything = plan.plan(read(path), minutes=999)
    assert all("Going further" in name for name in everything.home) and not everything.too_long


def test_a_plan_says_what_is_left_for_home_and_what_does_not_fit(monkeypatch, capsys):
    command(monkeypatch, "plan", "05", "--minutes", "45")
    printed = capsys.readouterr().out
    assert "The sections alone are 30 minutes too long" in printed
    assert "  Exercise 4. " in printed.partition("For home:\n")[2]


# ---- An answer that is recorded where it runs, and judged elsewhere


def right(exercise):
    """The right answers to an exercise, as `check` takes them."""
    if not exercise.parts:
        return (exercise.oracle,) if exercise.cases else (exercise.oracle(),)
    parts = exercise.parts.values()
    if all(part.cases for part in parts):
        return (lambda *given: [part.oracle(*given) for part in parts],)
    return tuple(part.oracle() for part in parts)


QUICK = {"card_in_gb", "roof_points", "swap_rows", "eight_rewrites", "momentum_step"}  # one of each kind
EACH = [pytest.param(one, id=name, marks=[] if name in QUICK else pytest.mark.slow) for name, one in EXERCISES.items()]


@pytest.mark.parametrize("exercise", EACH)
def test_a_right_answer_that_is_recorded_is_right(exercise):
    for given, status in ((right(exercise), "correct"), ((...,), "not attempted")):
        assert check(exercise.name, *answers(exercise.name, record(given, request(exercise.name)))).status == status


@pytest.mark.parametrize("name", ["card_in_gb", "devices_needed", "to_halves", "swap_rows"])
def test_a_wrong_answer_that_is_recorded_gets_the_sentence_of_the_answer_itself(name):
    exercise = EXERCISES[name]
    formula, sentence, *_ = exercise.mistakes[0]
    given = formula if exercise.cases else formula()
    verdict = check(name, *answers(name, record((given,), request(name))))
    assert verdict == check(name, given) and verdict.message.endswith(sentence)


def test_what_is_recorded_is_plain_data():
    class Right:
        def __eq__(self, other):
            return True

    recorded = record((lambda *_: Right(),), request("to_halves"))
    assert "an object of type Right, which no exercise asks for" in str(
        check("to_halves", *answers("to_halves", recorded))
    )
    with pytest.raises(Exception, match="eights"):  # "Weights only load failed", of a pickle that would run code
        answers("to_halves", _pickled_call())


def _pickled_call():
    import base64
    import io

    import torch

    class Runs:
        def __reduce__(self):
            return exec, ("raise SystemExit",)

    buffer = io.BytesIO()
    torch.save(Runs(), buffer)
    return base64.b64encode(buffer.getvalue()).decode()


# ---- Marks


LIMITS = marks.Limits(cell=300, total=900, memory=4 * 10**9, jail=marks.jail())


def test_a_file_that_is_no_notebook_of_the_course_is_a_row(tmp_path):
    for name in ("ann", "cyd", "dan"):
        (tmp_path / name).mkdir()
    (tmp_path / "ben.txt").write_text("My dog ate it.")
    nbformat.write(new_notebook(cells=[new_code_cell("1")]), tmp_path / "cyd" / "00_start_here.ipynb")
    (tmp_path / "dan" / "00.html").write_text("<p>")
    (tmp_path / "eve.ipynb").write_text('{"cells": [')
    rows = [row for one in marks.submissions(tmp_path) for row in marks.mark(one[1], one[2], one[0], LIMITS)]
    expected = {
        "ann": "The folder is empty.",
        "ben": "This is no .ipynb.",
        "cyd": "This is no notebook of the course.",
        "dan": "The folder holds no .ipynb, but 00.html.",
        "eve": "The file is cut off or damaged (NotJSONError): ask for it again.",
    }
    assert {row.student: row.sentence for row in rows} == expected
    assert {row.verdict for row in rows} == {"not run"}
    assert {(total.exercises, total.points) for total in marks.totals(rows)} == {(0, 0)}


def test_the_table_is_harmless_in_a_spreadsheet_and_in_a_browser(tmp_path):
    row = marks.Row("=1+1", "00.ipynb", "Exercise 1", "<b>", "not yet", 0, 1, "<script>alert(1)</script>")
    table, _, page = marks.write([row], tmp_path, "Nothing is protected.")
    with table.open(encoding="utf-8-sig") as file:
        (line,) = csv.DictReader(file)
    assert line["student"] == "'=1+1" and line["sentence"] == row.sentence and "code" not in line
    html = page.read_text("utf-8")
    assert "<script" not in html and "&lt;script&gt;" in html and "src=" not in html


def row(student, name, verdict, right=0, parts=1, code=""):
    return marks.Row(student, "03.ipynb", "Exercise 1", name, verdict, right, parts, "A sentence.", code=code)


def test_totals_take_the_better_of_two_and_the_share_of_what_is_partly_right(tmp_path):
    rows = [row("ann", "a", "correct", 1), row("ann", "b", "partly", 7, 8), row("ben", "a", "not yet")]
    rows += [row("ben", "b", "look", 8, 8), row("ann", "a", "not yet"), row("cyd", "", "not run", 0, 0)]
    assert [tuple(asdict(one).values()) for one in marks.totals(rows)] == [
        ("ann", 2, 1, 1, 0, 0, 1.88),
        ("ben", 2, 0, 0, 1, 0, 0),
        ("cyd", 2, 0, 0, 0, 1, 0),
    ]
    _, table, page = marks.write(rows, tmp_path, "")
    assert table.read_text("utf-8-sig").splitlines()[1] == "ann,2,1,1,0,0,1.88"
    assert "◐ 7/8" in page.read_text("utf-8") and "<td></td><td>A sentence.</td>" in page.read_text("utf-8")


def test_those_who_wrote_the_same_are_named():
    rows = [row(student, "a", "correct", 1, code="return x") for student in ("ann", "ben", "cyd", "ben")]
    rows += [row("dan", "a", "correct", 1, code="return y"), row("eve", "a", "not yet"), row("fay", "a", "not yet")]
    same = [one.same_text_as for one in marks.compared(rows)]
    assert same == ["ben, cyd", "ann, cyd", "ann, ben", "ann, cyd", "", "", ""]


def test_of_an_exercise_with_parts_the_right_ones_are_counted():
    given = list(right(EXERCISES["eight_rewrites"])[0](*EXERCISES["eight_rewrites"].parts["a"].inputs[0]))
    assert check("eight_rewrites", lambda *_: given).right_parts < len(given)
    words = right(EXERCISES["enforced"])
    assert check("enforced", *words).status == "correct"
    assert check("enforced", *words[:3], ..., ...).right_parts == 3
    assert check("enforced", *words[:3], "raises", "raises").right_parts >= 3


def lesson(**stubs):
    """The first lesson, short: its set-up and its exercises, some stubs replaced."""
    given = handout.for_students(read(START))
    given.cells = [c for c in given.cells if c.cell_type == "markdown" or "import" in c.source or "exercise" in tags(c)]
    for name, source in stubs.items():
        stub(given, name).source = source
    return given


def marked(tmp_path, notebook):
    """Verdict and sentence by exercise."""
    file = tmp_path / "ann" / "any name.ipynb"
    file.parent.mkdir()
    nbformat.write(notebook, file)
    rows = marks.mark(file, file.parent, "ann", LIMITS)
    assert [path.name for path in file.parent.iterdir()] == [file.name]
    return {row.name: (row.verdict, row.sentence) for row in rows}


SOLUTIONS = {task.name: task.solution for task in exercises(read(START))}


@pytest.mark.slow
def test_right_and_wrong_answers_are_marked_as_the_check_would_and_nothing_leaves_the_machine(tmp_path):
    wrong = "def devices_needed(parameters, memory, per_parameter=16):\n    return 0\n\n\ncheck(devices_needed)"
    calls = 'socket.create_connection(("192.0.2.1", 80), timeout=5)'
    calls_home = f"import socket\nfastest_writing = {calls}\ncheck(fastest_writing)"
    given = lesson(**(SOLUTIONS | {"devices_needed": wrong, "fastest_writing": calls_home}))
    for cell in given.cells:
        if cell.cell_type == "code":  # what is stored earns nothing
            cell.outputs = [new_output("execute_result", {"text/plain": "✓ correct"})]
    found = marked(tmp_path, given)
    wrong_ones = ("devices_needed", "fastest_writing")
    expected = dict.fromkeys(SOLUTIONS, "correct") | dict.fromkeys(wrong_ones, "not yet")
    assert {name: verdict for name, (verdict, _) in found.items()} == expected
    assert "devices_needed(" in found["devices_needed"][1]
    assert found["fastest_writing"][1].startswith("the cell stopped")
    assert not LIMITS.jail or "Network is unreachable" in found["fastest_writing"][1]


@pytest.mark.skipif(LIMITS.jail not in ("bwrap", "mount"), reason="this system cannot keep a notebook from files")
def test_a_notebook_changes_nothing_of_the_teachers(tmp_path):
    room, file = tmp_path / "room", tmp_path / "marks.csv"
    room.mkdir()
    file.write_text("ann")
    hostile = f"rm -rf {tmp_path}/*; mount -o remount,bind,rw / ; umount {room}; echo 0 > {file}; echo 1 > {room}/own"
    subprocess.run([*marks._prefix(LIMITS.jail, room), "sh", "-c", hostile], capture_output=True)
    assert file.read_text() == "ann" and (room / "own").read_text() == "1\n"


TAMPER = """
import helpers.check, helpers.check.judge as judge, os, shutil, torch
judge._judge = lambda *_: judge._CORRECT
check = helpers.check.check = lambda *_: judge.Verdict("x", "correct", "correct.")
torch.isclose = torch.equal = lambda *_, **__: True
for name in os.listdir():
    os.remove(name)
check("card_in_gb", 1)
"""
PEEK = """
from helpers.exercises import EXERCISES
def tokens_before_deadline(*given):
    return EXERCISES["tokens_before_deadline"].oracle(*given)
check(tokens_before_deadline)
"""
ENDLESS = """
while True:
    print(1000 * "y")
check(devices_needed)
"""


@pytest.fixture
def impatient(monkeypatch):
    """An endless cell is given up after two seconds; any other may take as long as it takes on a busy machine."""

    async def run(kernel, source, at_least=0):
        kernel.limits = replace(LIMITS, cell=2 if source == ENDLESS else LIMITS.cell)
        return await original(kernel, source, at_least)

    original = marks.Kernel.run
    monkeypatch.setattr(marks.Kernel, "run", run)


@pytest.mark.slow
def test_a_hostile_notebook_earns_what_its_answers_earn(tmp_path, impatient):
    hostile = {"card_in_gb": TAMPER, "tokens_before_deadline": PEEK, "devices_needed": ENDLESS}
    found = marked(tmp_path, lesson(**(SOLUTIONS | hostile)))
    assert {name: verdict for name, (verdict, _) in found.items()} == dict.fromkeys(SOLUTIONS, "look") | dict.fromkeys(
        hostile, "not yet"
    )
    assert found["card_in_gb"][1] != "correct." and "KeyError" in found["tokens_before_deadline"][1]
    assert found["devices_needed"][1] == "It had not come to an end after 2 seconds."
    assert " names EXERCISES, " in found["fastest_writing"][1]


READS = """
import helpers
place = helpers.__path__[0] + "/exer" + "cises/nb00_start_here.py"
secret = open(place).read()
"""
HIDES = """
from importlib import import_module
devices_needed = import_module("helpers.exer" + "cises.nb00_start_here").devices
check(devices_needed)
"""


@pytest.mark.slow
def test_a_cell_that_is_no_python_is_marked_by_what_it_shows(tmp_path):
    found = marked(tmp_path, lesson(**(SOLUTIONS | {"card_in_gb": 'answer = 80 @@ 2\n\ncheck("card_in_gb", answer)'})))
    verdict, sentence = found.pop("card_in_gb")
    assert verdict == "not yet" and "80 @@ 2" in sentence
    assert {verdict for verdict, _ in found.values()} == {"correct"}


@pytest.mark.slow
def test_a_notebook_that_hides_where_it_reads_the_answers_is_to_be_looked_at(tmp_path):
    found = marked(tmp_path, lesson(card_in_gb=READS + SOLUTIONS["card_in_gb"], devices_needed=HIDES))
    assert found["card_in_gb"][0] == "look" and "read a file of helpers/exercises" in found["card_in_gb"][1]
    assert found["devices_needed"][0] == "not yet" and "has no attribute 'devices'" in found["devices_needed"][1]


@pytest.mark.slow
def test_what_ends_the_kernel_ends_the_marking_of_this_notebook_alone(tmp_path):
    found = marked(tmp_path, lesson(card_in_gb=SOLUTIONS["card_in_gb"], devices_needed="import os\nos._exit(0)"))
    given = ("card_in_gb", "tokens_before_deadline", "devices_needed", "fastest_writing")
    assert [found[name][0] for name in given] == ["correct", "not attempted", "not run", "not run"]
    assert "The kernel ended in code cell " in found["devices_needed"][1]


# ---- A student's own progress


def test_progress_counts_what_was_saved(tmp_path):
    given = handout.for_students(read(START))
    guesses = [cell for cell in given.cells if cell.source.startswith("guess = ...")]
    guesses[0].outputs = [new_output("execute_result", {"text/plain": "You predicted 1; it is 2."})]
    guesses[1].source = guesses[1].source.replace("...", "3", 1)
    guesses[1].outputs = []  # a Run All that stopped above has taken it
    card, tokens, napkin, *_ = (stub(given, name) for name in SOLUTIONS)
    card.outputs = [new_output("execute_result", {"text/plain": "✓ card_in_gb: correct."})]
    tokens.outputs = [new_output("execute_result", {"text/plain": "✗ tokens_before_deadline: it is too small."})]
    napkin.source, napkin.outputs = SOLUTIONS["napkin_of_another"].replace("return ", "return [1][..., 0] + "), []
    nbformat.write(given, tmp_path / START.name)
    nbformat.write(handout.for_students(read(NOTEBOOKS[2])), tmp_path / NOTEBOOKS[2].name)
    (tmp_path / "01_broken.ipynb").write_text("{")
    table = progress(tmp_path)
    started = [row for row in table.rows if row[0] != "01_broken"]
    untouched = started.pop()
    assert started[0][:3] == (START.stem, f"1 of {len(guesses)}", f"1 of {len(SOLUTIONS)}")
    assert " ".join(left for *_, left in started) == (
        "guesses to make in section 3, 4, 5; guesses not run since in section 2; to do: devices_needed, "
        "fastest_writing; not right yet: tokens_before_deadline; not run since: napkin_of_another"
    )
    assert untouched[0] == NOTEBOOKS[2].stem and untouched[-1] == "everything"
    assert "cannot be read" in str(table) and max(map(len, str(table).splitlines())) <= 100
    with pytest.raises(FileNotFoundError, match="name their folder"):
        progress(tmp_path / "none")
