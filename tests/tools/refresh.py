"""Run notebooks on a fresh kernel and store clean outputs: `python -m tests.tools.refresh [--timings] [NN ...]`.

Without numbers, all of them. What is stored is what nbval compares, plus the pictures; a second run changes no byte.
Cells that show timings or this device keep what the last commit has, as long as no code up to them has changed since;
with `--timings` they are measured anew, which wants an idle machine. The pictures of the views are taken from the
living ones, in a Chromium; where there is none, a view is stored in words alone, and that is said.

Printed: how long the lesson takes a reader; what it shows otherwise than in the last commit, each perhaps a sentence of
the prose that has to change; and what was measured anew. The picture of the README is drawn anew, too.
"""

import argparse
import re
import subprocess
import time
from base64 import b64encode
from collections.abc import Iterator
from itertools import takewhile, zip_longest
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

from tests.tools import browser, cover, still
from tests.tools.course import MEASURED, answers, chosen, lesson, pace, read, tags

_KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
_WIDGET = "application/vnd.jupyter.widget-view+json"


def clean(notebook: NotebookNode) -> NotebookNode:
    """Bring a notebook, in place, into the one form that is stored: nothing of this run but what it showed."""
    notebook.metadata = NotebookNode(kernelspec=_KERNEL, language_info={"name": "python"})
    for cell in notebook.cells:
        kept = {key: cell.metadata.get(key) for key in ("tags", "slideshow", "jupyter")}
        cell.metadata = NotebookNode({key: value for key, value in kept.items() if value})
        for output in cell.get("outputs", ()):
            if "data" in output:
                # A stored model id points at a widget that is gone; the picture and the words beside it remain.
                output.data.pop(_WIDGET, None)
                is_kept = re.compile(r"image/|answer$").match
                output.metadata = NotebookNode({k: v for k, v in output.metadata.items() if is_kept(k)})
            if output.output_type == "error":  # the traceback names files of this machine
                output.traceback = [f"{output.ename}: {output.evalue}"]
    return notebook


def picture(notebook: NotebookNode) -> None:
    """Put a picture beside the words of each view, in place; without a Chromium say that there is none."""
    views = [output for output in still.views(notebook) if "image/png" not in output.data]
    if views and (reason := browser.lacking()):
        print(f"Views are stored in words alone: {reason}")
        return
    if not views:
        return
    with browser.chromium() as opened:
        for output in views:
            png, metadata = still.take(opened, output)
            output.data["image/png"] = b64encode(png).decode() + "\n"
            output.metadata["image/png"] = NotebookNode(metadata)


def committed(path: Path) -> NotebookNode:
    """The notebook as the last commit has it; an empty one where there is none."""
    shown = subprocess.run(
        ["git", "show", f"HEAD:./{path.name}"], cwd=path.parent, capture_output=True, check=False, encoding="utf-8"
    )
    return nbformat.reads(shown.stdout, as_version=4) if shown.returncode == 0 else nbformat.v4.new_notebook()


def keep_timings(notebook: NotebookNode, before: NotebookNode) -> None:
    """Give cells that show timings what they showed before, in place, as long as no code up to them has changed."""
    pairs = zip(_code(notebook), _code(before), strict=False)
    for cell, old in takewhile(lambda pair: pair[0].source == pair[1].source, pairs):
        if _shows_timings(cell) and _reasons(cell) == _reasons(old):
            cell.outputs = old.outputs
        for output, answer in zip(cell.outputs, answers(old), strict=False):
            if answer.startswith(MEASURED) and _reasons(cell) == _reasons(old):
                output.metadata["answer"] = answer


def _code(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def _shows_timings(cell: NotebookNode) -> bool:
    return "nbval-ignore-output" in tags(cell)


def _reasons(cell: NotebookNode) -> list[str]:
    """Why it is so, after what was measured."""
    return [answer.partition(". ")[2] for answer in answers(cell)]


def changes(notebook: NotebookNode, before: NotebookNode) -> Iterator[str]:
    """What a notebook shows otherwise than before, a line each: the cell, and what it showed and shows."""
    known = {cell.id: cell for cell in _code(before)}
    for cell in _code(notebook):
        new, old = _shown(cell), _shown(known.get(cell.id, cell))
        if cell.id not in known:
            yield f"{cell.id} is new"
        elif _shows_timings(cell) and old != new:
            yield f"{cell.id} was measured anew"
        elif old != new:
            yield from (
                f"{cell.id}: {_difference(*texts)}"
                for texts in zip_longest(old, new, fillvalue="")
                if len({*texts}) == 2
            )
        if re.search(r"disturbed(?!\W+false)", str(new)):  # a view names it as data
            yield f"{cell.id} was disturbed: measure it with --timings when this machine is idle"


def _shown(cell: NotebookNode) -> list[str]:
    """All that a cell shows but pictures, as texts."""
    found = answers(cell)
    for output in cell.outputs:
        data = output.get("data", {})
        found += [str(data[kind]) for kind in data if not kind.startswith("image/")]
        found += [output.get("text", ""), output.get("evalue", "")]
    return found


def _difference(old: str, new: str) -> str:
    """Two texts, from a little before where they part to a little behind it."""
    parted = next(
        (place for place, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new))
    )
    part = slice(max(parted - 20, 0), parted + 40)
    return " → ".join("…" + " ".join(text[part].split()) + "…" for text in (old, new))


def refresh(path: Path, timings: bool = False) -> float:
    """Run one notebook and store it clean; returns the seconds it took. A cell that fails leaves the file alone."""
    notebook = read(path)
    start = time.perf_counter()
    NotebookClient(
        notebook,
        kernel_name="python3",
        timeout=120,  # seconds for one cell
        resources={"metadata": {"path": str(path.parent)}},
        record_timing=False,  # it would write the time of day into every cell
        coalesce_streams=True,  # where a stream is cut is up to the clock
    ).execute()
    if not timings:
        keep_timings(notebook, committed(path))
    picture(notebook)
    nbformat.write(clean(notebook), path)
    return time.perf_counter() - start


def main() -> None:
    """Refresh, and say what came of it."""
    parser = argparse.ArgumentParser(description="Run notebooks and store clean outputs.")
    parser.add_argument("--timings", action="store_true", help="measure anew; this machine should be idle")
    parser.add_argument("numbers", nargs="*", metavar="NN", help="of notebooks, such as 05; all without one")
    asked = parser.parse_args()
    for file in chosen(asked.numbers):
        seconds = refresh(file, asked.timings)
        told = [pace(lesson(read(file), further=further)) for further in (False, True)]
        print(f"{file.name} ran for {seconds:.1f} s. The lesson: {told[0]}, going further: {told[1]}", flush=True)
        for line in changes(read(file), committed(file)):
            print(f"  {line}", flush=True)
    cover.store()


if __name__ == "__main__":
    main()
