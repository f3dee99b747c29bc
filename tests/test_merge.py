"""An update: what a learner wrote is in the new notebooks, each of which is one."""

import subprocess
import sys

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from helpers.merge import merge

GUESS = 'guess = ...  # bytes\ncompare(guess, 4 * 2, "B", about="two_floats")'
STUB = "def double(x):\n    return ...\n\n\ncheck(double)"
LESSON = ["# 01 Title", "n = 4\nn", GUESS, "Read it.", STUB]


def notebook(*sources):
    """Cells of these sources; as in the course, an id is a number in the order of the cells."""
    made = [new_code_cell(text) if "=" in text or "def" in text else new_markdown_cell(text) for text in sources]
    for number, cell in enumerate(made):
        cell.id = f"01-{number:03}"
    return new_notebook(cells=made)


def changed(**sources):
    """LESSON with another source at some places, such as at2="...": the learner's notebook."""
    mine = notebook(*LESSON)
    for place, text in sources.items():
        mine.cells[int(place.removeprefix("at"))].source = text
    return mine


def merged(mine, *new):
    """The sources of the new notebook after the merge, and how many notes it has."""
    target = notebook(*new)
    notes = merge(notebook(*LESSON), mine, target)
    nbformat.validate(target)
    assert len({cell.id for cell in target.cells}) == len(target.cells)
    return [cell.source for cell in target.cells], notes


def test_answers_are_in_their_cells_wherever_these_are_now():
    guess, answer = GUESS.replace("...", "8"), STUB.replace("...", "2 * x")
    new = ["# 01 Title", "A new cell.", "n = 4\nn", "Read it.", STUB, GUESS]
    found, notes = merged(changed(at2=guess, at4=answer), *new)
    assert (found, notes) == ([*new[:4], answer, guess], [])


def test_a_line_that_the_course_has_changed_beside_an_answer_is_the_new_one():
    newer = GUESS.replace('"B"', '"GB"')
    found, notes = merged(changed(at2=GUESS.replace("...", "8")), *LESSON[:2], newer, *LESSON[3:])
    assert (found[2], notes) == (newer.replace("...", "8"), [])


@pytest.mark.parametrize("mine", ["guess = 8  # bytes", "guess = 8 # bytes", 'guess = "#8"  # bytes'])
def test_an_answer_stays_where_the_course_words_the_comment_beside_it_anew(mine):
    newer = GUESS.replace("# bytes", "# bytes of both")
    answered = GUESS.replace("guess = ...  # bytes", mine)
    found, notes = merged(changed(at2=answered), *LESSON[:2], newer, *LESSON[3:])
    assert (found[2], notes) == (answered.replace("# bytes", "# bytes of both"), [])


@pytest.mark.parametrize("new", [["# 01 Title", "n = 5\nn", *LESSON[2:]], ["# 01 Title", *LESSON[2:]]])
def test_what_has_no_place_stands_in_a_note_and_is_not_run(new):
    mine = changed(at1="n = 8  # mine, with a fence: ```\nn")
    target = notebook(*new)
    assert merge(notebook(*LESSON), mine, target) == ["the opening"]
    (note,) = [cell for cell in target.cells if "from before the update" in cell.source]
    assert note.cell_type == "markdown" and mine.cells[1].source in note.source
    assert [cell.source for cell in target.cells if cell is not note] == new


def test_notes_are_named_by_section_and_exercise():
    sections = ["# 01 Title", "## 1. First", "n = 4", "## 2. Second", "k = 4", "### Exercise 3. Third ★", "m = 4"]
    mine = notebook(*(text.replace("= 4", "= 5") for text in sections))
    assert merge(notebook(*sections), mine, notebook("# 01 Title")) == ["section 1", "section 2", "Exercise 3"]


def test_a_cell_of_ones_own_follows_the_cell_that_it_followed():
    mine = changed()
    mine.cells.insert(3, new_code_cell("x = 1  # mine"))
    found, notes = merged(mine, "Before.", *LESSON)
    assert (found, notes) == (["Before.", *LESSON[:3], "x = 1  # mine", *LESSON[3:]], [])


def test_a_second_merge_changes_nothing():
    mine = changed(at1="n = 8\nn", at2=GUESS.replace("...", "8"))
    mine.cells.append(new_code_cell("x = 1  # mine"))
    target = notebook(*LESSON)
    merge(notebook(*LESSON), mine, target)
    once = [cell.source for cell in target.cells]
    merge(notebook(*LESSON), mine, target)
    assert [cell.source for cell in target.cells] == once


@pytest.mark.slow
def test_stash_pull_merge(tmp_path):
    """The README's commands, in a repository with one notebook, which both sides have changed."""

    def run(*command, rc=0):
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert ran.returncode == rc, ran.stderr
        return ran.stdout + ran.stderr

    def commit(made, words):
        nbformat.write(made, file)
        run("git", "add", "-A")
        run("git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", words)

    file = tmp_path / "notebooks" / "01_title.ipynb"
    file.parent.mkdir()
    run("git", "init", "-q")
    commit(notebook(*LESSON), "old")
    commit(notebook("# 01 Another title", *LESSON[1:3], "Another text.", STUB), "new")
    run("git", "checkout", "-q", "HEAD~1")
    mine = changed(at2=GUESS.replace("...", "8"), at3="Read it. I did.")
    mine.cells[2].outputs = [new_output("stream", text="as predicted")]
    nbformat.write(mine, file)
    run("git", "-c", "user.name=a", "-c", "user.email=a@b", "stash")
    run("git", "checkout", "-q", "-")
    told = run(sys.executable, "-m", "helpers.merge")
    assert "notebooks/01_title.ipynb has your answers; those in the opening stand in a note beside their cell" in told
    found = nbformat.read(file, as_version=4)
    (note,) = [cell for cell in found.cells if "Read it. I did." in cell.source]
    others = [cell.source for cell in found.cells if cell is not note]
    assert others == ["# 01 Another title", LESSON[1], mine.cells[2].source, "Another text.", STUB]
    assert found.cells[2].outputs == mine.cells[2].outputs
    (kept,) = tmp_path.glob("answers/*/01_title.ipynb")
    assert nbformat.read(kept, as_version=4) == mine
    again = run(sys.executable, "-m", "helpers.merge", rc=1)
    assert again == "git stash has put nothing aside, so there is nothing to bring back.\n"
