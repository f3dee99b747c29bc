"""A plan for teaching a lesson in 90 minutes, from the minutes in its notes and at its exercises."""

import argparse
import re

import nbformat
from nbformat import NotebookNode

from helpers import units
from helpers.export.handout import NOTEBOOKS


def plan(notebook: NotebookNode, minutes: int = 90) -> list[tuple[str, int, int]]:
    """What to do, for how many minutes, and how many have passed then: the sections, then the exercises that fit.

    Sections named "Going further" are left out, and so are exercises for which no time is left: they are for home.
    """
    section = "Opening"
    sections, exercises = {section: 0}, {}
    for cell in notebook.cells:
        if heading := re.match(r"## (.+)", cell.source):
            section = heading[1]
            sections[section] = 0
        elif exercise := re.match(r"### (Exercise .+?) ★+ \((\d+) min\)", cell.source):
            exercises[exercise[1]] = int(exercise[2])
        elif note := re.match(r"<details><summary>For the teacher · (\d+) min", cell.source):
            sections[section] += int(note[1])
    lesson = {name: needed for name, needed in sections.items() if needed and "Going further" not in name}
    rows, passed = [], 0
    for name, needed in (lesson | exercises).items():
        if name in exercises and passed + needed > minutes:
            continue
        passed += needed
        rows.append((name, needed, passed))
    return rows


def main(arguments: list[str]) -> None:
    """The command line of `python -m helpers.export plan`."""
    parser = argparse.ArgumentParser(prog="python -m helpers.export plan", description=__doc__)
    parser.add_argument("numbers", nargs="*", metavar="NN", help="notebook numbers, such as 01; default: all")
    parser.add_argument("--minutes", type=int, default=90, help="that there are; default 90")
    given = parser.parse_args(arguments)
    for path in NOTEBOOKS:
        if not given.numbers or path.name[:2] in given.numbers:
            print(units.table([path.stem, "minutes", "passed"], plan(nbformat.read(path, as_version=4), given.minutes)))
            print()
