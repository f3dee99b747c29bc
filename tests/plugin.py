"""A plugin of pytest, named in pyproject.toml, so that it is there whatever part is run.

How the suite runs: all of it in two processes, a part of it in one; the cells of a notebook in order, and again.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from nbformat import NotebookNode

# A grammar of internationalised addresses, which jsonschema takes where there is one: no notebook has an address to be
# checked by it, and each process would take a second or two to build it.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

from nbval.plugin import IPyNbCell, IPyNbFile, NbCellError  # noqa: E402

from tests.tools.course import MEASURED, WORDS, exercises, read, sections  # noqa: E402

WORKERS = 2  # a third was no faster on two cores, and notebooks time their own cells: they should find it quiet


@pytest.hookimpl(wrapper=True)
def pytest_cmdline_main(config: pytest.Config) -> Iterator[None]:
    """Without a path, for the whole suite, as if `-n 2` were given; `-n 0` and `--pdb` say otherwise.

    A file or a notebook stays within one process. They begin in the order of `testpaths`: notebooks last, since none of
    them takes long, so that both processes end together.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ:  # there this is one of the processes
        _choose_processes(config)
    return (yield)  # around xdist's own hook, which reads what is chosen here


def _choose_processes(config: pytest.Config) -> None:
    """Set the options of xdist."""
    whole = config.args_source is config.ArgsSource.TESTPATHS and not config.getoption("usepdb")
    if whole and config.getoption("numprocesses", 0) is None:
        config.option.numprocesses = WORKERS
    if config.getoption("numprocesses", 0):
        config.option.dist = "loadscope"
        config.option.loadscopereorder = False
        os.environ.setdefault("OMP_NUM_THREADS", "1")  # threads that wait for each other's core spin


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark notebooks as slow; put the cells of each together and in order, should a plugin have shuffled all tests."""
    for item in items:
        if " at 0x" in item.nodeid:
            raise pytest.UsageError(f"this name differs from process to process, so give its case an id: {item.nodeid}")
    for item in items:
        if isinstance(item.parent, Lesson):
            item.add_marker("slow")
    begin: dict[pytest.Item, int] = {}

    def key(place: int) -> tuple[int, int]:
        item = items[place]
        number = getattr(item, "cell_num", None)
        return (place, 0) if number is None else (begin.setdefault(item.parent, place), number)

    items[:] = [items[place] for place in sorted(range(len(items)), key=key)]


class Lesson(IPyNbFile):
    """A notebook whose kernel hurries: what it measures is not compared, and nbval looks at no picture."""

    def setup(self) -> None:
        """Start the kernel."""
        super().setup()
        self.failed: set[int] = set()  # the numbers of the cells that failed in their turn
        self.kernel.kc.execute(WORDS, silent=True)

    def collect(self) -> list[pytest.Item]:
        """A test for each cell, named as a reader finds it, and `Again`."""
        headings = [
            section[0].source.partition("\n")[0].lstrip("# ")
            for section in sections(read(self.path))
            for cell in section
            if cell.cell_type == "code"
        ]
        cells = [
            Cell.from_parent(
                self,
                name=f"In {cell.cell_num + 1}, {heading}",
                cell_num=cell.cell_num,
                cell=cell.cell,
                options=cell.options,
            )
            for cell, heading in zip(super().collect(), headings, strict=True)
        ]
        return [*cells, Again.from_parent(self, name="again", cell_num=len(cells))]


class Cell(IPyNbCell):
    """A cell, compared as nbval does; and what its guess is answered, which stands in the metadata for pages."""

    def compare_outputs(self, test: list, ref: list, skip_compare: tuple | None = None) -> bool:
        """Compare outputs that have their answers among their data."""
        return super().compare_outputs(_with_answers(test), _with_answers(ref), skip_compare)


def _with_answers(outputs: list) -> list:
    """Outputs with the answer of `compare` among their data, unless a clock gave it."""
    answers = [output.get("metadata", {}).get("answer", MEASURED) for output in outputs]
    return [
        output if answer.startswith(MEASURED) else NotebookNode(output, data=output["data"] | {"answer": answer})
        for output, answer in zip(outputs, answers, strict=True)
    ]


class Again(pytest.Item):
    """All cells of a notebook again in the same kernel, from the last to the first, with the exercises solved.

    A learner changes a guess and runs that cell: it must not need what a later cell or a solution has changed.
    """

    def __init__(self, cell_num: int, **rest: object) -> None:
        super().__init__(**rest)
        self.cell_num = cell_num

    def runtest(self) -> None:
        """Run all of them before failing."""
        from helpers.check import Verdict  # not before: the process that hands out the tests needs no torch

        cells, different = list(IPyNbFile.collect(self.parent)), []
        for task in exercises(self.parent.nb):
            stub, verdict = self.parent.nb.cells[task.index], Verdict(task.name, "correct", "correct.")
            stub.source = task.solution
            stub.outputs[0].data = {"text/plain": repr(verdict), "text/html": verdict._repr_html_()}
        for cell in reversed(cells):
            if cell.cell_num in self.parent.failed:  # it has been reported
                continue
            try:
                cell.runtest()
            except NbCellError as error:
                text = cell.repr_failure(pytest.ExceptionInfo.from_exception(error))
                different.append(f"In [{cell.cell_num + 1}]: {text}")
        if different:
            pytest.fail(
                f"{len(different)} cells do not give the same when all are run again from the last to the first: let "
                "each section have its own names, and let a cell that changes a thing also make it.\n\n"
                + "\n\n".join(different),
                pytrace=False,
            )


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> Iterator[None]:
    """A `Lesson` of a notebook, in place of nbval's own file."""
    found = yield
    return [Lesson.from_parent(parent, path=file_path) if isinstance(one, IPyNbFile) else one for one in found]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Say of a cell that failed where a reader finds it, and how a wrong stored output is mended."""
    report = yield
    if isinstance(item, IPyNbCell) and report.failed:
        item.parent.failed.add(item.cell_num)
        report.longrepr = (
            f"{item.path.name}, the cell that shows [{item.cell_num + 1}]: in JupyterLab.\n\n{report.longrepr}\n\n"
            "If what it shows now is right, store it and read the difference: "
            f"python -m tests.tools.refresh {item.path.name[:2]}"
        )
    return report
