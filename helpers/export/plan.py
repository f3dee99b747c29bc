"""A plan for teaching a lesson in 90 minutes, from the minutes in its notes and at its exercises.

The minutes are those of a careful reader. What a class needs besides, for votes on guesses, questions and logging in,
are ten minutes of the plan.
"""

import argparse
import re
from typing import NamedTuple

import nbformat
from nbformat import NotebookNode

from helpers import units
from helpers.export.handout import NOTEBOOKS

_SLACK = 10  # minutes
_FURTHER = "Going further"


class Plan(NamedTuple):
    """What to do, for how many minutes, and how many have passed then; what is left for home; the minutes too many."""

    rows: list[tuple[str, int, int]]
    home: list[str]
    too_long: int


def plan(notebook: NotebookNode, minutes: int = 90) -> Plan:
    """The sections of a lesson, and the exercises that fit, in the order of the notebook.

    What is named "Going further", and exercises for which no time is left, are for home.
    """
    parts = _minutes(notebook)
    further = {name for name in parts if _FURTHER in name}
    lesson = sum(needed for name, needed in parts.items() if name not in further and not _is_exercise(name))
    left = minutes - _SLACK - lesson
    rows, home, passed = [], [], 0
    for name, needed in parts.items():
        if name in further or (_is_exercise(name) and needed > left):
            home.append(f"{name} ({needed} min)")
            continue
        if _is_exercise(name):
            left -= needed
        passed += needed
        rows.append((name, needed, passed))
    rows.append(("Votes, questions, logging in", _SLACK, passed + _SLACK))
    return Plan(rows, home, max(0, -left))


def _is_exercise(name: str) -> bool:
    return name.startswith("Exercise ")


def _minutes(notebook: NotebookNode) -> dict[str, int]:
    """The sections of a notebook that have minutes, and its exercises, in order."""
    section = "Opening"
    found = {section: 0}
    for cell in notebook.cells:
        if heading := re.match(r"## (.+)", cell.source):
            section = heading[1]
            found[section] = 0
        elif exercise := re.match(r"### (Exercise .+?) ★+ \((\d+) min\)", cell.source):
            found[exercise[1]] = int(exercise[2])
        elif note := re.match(r"<details><summary>For the teacher · (\d+) min", cell.source):
            found[section] += int(note[1])
    return {name: needed for name, needed in found.items() if needed}


def main(arguments: list[str]) -> None:
    """The command line of `python -m helpers.export plan`."""
    parser = argparse.ArgumentParser(prog="python -m helpers.export plan", description=__doc__)
    parser.add_argument("numbers", nargs="*", metavar="NN", help="notebook numbers, such as 01; default: all")
    parser.add_argument("--minutes", type=int, default=90, help="that there are; default 90")
    given = parser.parse_args(arguments)
    for path in NOTEBOOKS:
        if given.numbers and path.name[:2] not in given.numbers:
            continue
        rows, home, too_long = plan(nbformat.read(path, as_version=4), given.minutes)
        print(units.table([path.stem, "minutes", "passed"], rows))
        if too_long:
            print(f"The sections alone are {too_long} minutes too long: leave some out, or take two sessions.")
        if home:
            print("\n  ".join(["For home:", *home]))
        print()
