"""Run notebooks on a fresh kernel and store clean outputs: `python -m tests.tools.refresh [NN ...]`.

Without numbers, all of them. What is stored is what nbval compares, plus the pictures; a second run changes no byte
outside cells that show timings or this device. The pictures of the views are taken from the living ones, in a Chromium;
where there is none, a view is stored in words alone, and that is said. Printed beside it: how long the lesson takes a
reader. The picture of the README is drawn anew, too.
"""

import re
import sys
import time
from base64 import b64encode
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

from tests.tools import browser, cover, still
from tests.tools.course import chosen, lesson, pace, read

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
    views = still.views(notebook)
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


def refresh(path: Path) -> float:
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
    picture(notebook)
    nbformat.write(clean(notebook), path)
    return time.perf_counter() - start


if __name__ == "__main__":
    for file in chosen(sys.argv[1:]):
        seconds = refresh(file)
        told = [pace(lesson(read(file), further=further)) for further in (False, True)]
        print(f"{file.name} ran for {seconds:.1f} s. The lesson: {told[0]}, going further: {told[1]}", flush=True)
    cover.store()
