"""How the suite runs: all of it in two processes, a part of it in one; the cells of a notebook always in order."""

import os

import pytest
from nbval.plugin import IPyNbCell

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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the cells of each notebook together and in order, should a plugin have shuffled all tests."""
    begin: dict[pytest.Item, int] = {}

    def key(place: int) -> tuple[int, int]:
        item = items[place]
        return (begin.setdefault(item.parent, place), item.cell_num) if isinstance(item, IPyNbCell) else (place, 0)

    items[:] = [items[place] for place in sorted(range(len(items)), key=key)]
