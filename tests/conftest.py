"""How the suite runs: all of it in two processes, a part of it in one; the cells of a notebook in order, and again."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from nbval.plugin import IPyNbFile, NbCellError

from tests.tools.course import WORDS, exercises

WORKERS = 2  # a machine with more cores is not faster: notebooks time their own cells, and should find it quiet


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Without a path, for the whole suite, as if `-n 2` were given; `-n 0` and `--pdb` say otherwise.

    A file or a notebook stays within one process. They begin in the order of `testpaths`: notebooks last, since none of
    them takes long, so that both processes end together.
    """
    if "PYTEST_XDIST_WORKER" in os.environ:  # this is one of the processes
        return
    whole = config.args_source is config.ArgsSource.TESTPATHS and not config.getoption("usepdb")
    if whole and config.getoption("numprocesses", 0) is None:
        config.option.numprocesses = WORKERS
    if config.getoption("numprocesses", 0):
        config.option.dist = "loadscope"
        config.option.loadscopereorder = False
        os.environ.setdefault("OMP_NUM_THREADS", "1")  # two processes, two cores: threads that wait for each other spin


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the cells of each notebook together and in order, should a plugin have shuffled all tests."""
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
        self.kernel.kc.execute(WORDS, silent=True)

    def collect(self) -> list[pytest.Item]:
        """A test for each cell, and `Again`."""
        cells = list(super().collect())
        return [*cells, Again.from_parent(self, name="again", cell_num=len(cells))]


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
            try:
                cell.runtest()
            except NbCellError as error:
                different.append(cell.repr_failure(pytest.ExceptionInfo.from_exception(error)))
        if different:
            pytest.fail(
                f"{len(different)} cells do not give the same when all are run again from the last to the first: let "
                "each section have its own names, and let a cell that changes a thing also make it.\n\n"
                + "\n\n".join(different),
                pytrace=False,
            )


class Lessons:
    """What makes a `Lesson` of a notebook: a plugin, since hooks of this file are not asked about other folders."""

    @staticmethod
    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> Iterator[None]:
        """In place of nbval's own."""
        found = yield
        return [Lesson.from_parent(parent, path=file_path) if isinstance(one, IPyNbFile) else one for one in found]


def pytest_configure(config: pytest.Config) -> None:
    """Register it."""
    config.pluginmanager.register(Lessons)
