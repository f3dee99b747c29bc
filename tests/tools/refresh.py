"""Run notebooks on a fresh kernel and store clean outputs: `python -m tests.tools.refresh [NN ...]`.

Without numbers, all of them. What is stored is what nbval compares, plus the pictures; a second run changes no byte
outside cells that show timings or this device. Printed beside it: how long the lesson takes a reader. The picture of
the README is drawn anew, too.
"""

import argparse
import time
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from tests.tools import cover
from tests.tools.course import NOTEBOOKS, pace, read, run, tags

_KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
_WIDGET = "application/vnd.jupyter.widget-view+json"


def clean(notebook: NotebookNode) -> NotebookNode:
    """Bring a notebook, in place, into the one form that is stored: nothing of this run but what it showed."""
    notebook.metadata = NotebookNode(kernelspec=_KERNEL, language_info={"name": "python"})
    for cell in notebook.cells:
        kept = {"tags": tags(cell), "slideshow": cell.metadata.get("slideshow")}
        cell.metadata = NotebookNode({key: value for key, value in kept.items() if value})
        if cell.cell_type == "code":
            for output in cell.outputs:
                _strip(output)
    return notebook


def _strip(output: NotebookNode) -> None:
    if "data" in output:
        # A stored model id points at a widget that is gone; the picture and the words beside it remain.
        output.data.pop(_WIDGET, None)
        output.metadata = NotebookNode({k: v for k, v in output.metadata.items() if k.startswith("image/")})
    if output.output_type == "error":  # the traceback names files of this machine
        output.traceback = [f"{output.ename}: {output.evalue}"]


def refresh(path: Path) -> float:
    """Run one notebook and store it clean; returns the seconds it took. A cell that fails leaves the file alone."""
    notebook = read(path)
    start = time.perf_counter()
    run(notebook, path.parent)
    nbformat.write(clean(notebook), path)
    return time.perf_counter() - start


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.refresh", description=__doc__)
    parser.add_argument("numbers", nargs="*", metavar="NN", help="notebook numbers, such as 01; default: all")
    numbers = parser.parse_args().numbers
    known = {path.name[:2]: path for path in NOTEBOOKS}
    for number in numbers:
        if number not in known:
            parser.error(f"there is no notebook {number}; there are {', '.join(known)}")
    for number in numbers or known:
        seconds = refresh(known[number])
        print(f"{known[number].name} ran for {seconds:.1f} s. Lesson: {pace(read(known[number]))}", flush=True)
    cover.store()


if __name__ == "__main__":
    main()
