"""Where the time of the test command goes: `python -m tests.bench_suite [NN ...]`.

Each notebook on a fresh kernel, as nbval runs it: the start of the kernel, the imports (the first code cell), all other
cells, and the three longest of them. Without numbers also what a view takes to follow a control, and the tests by file,
one after the other. Seconds of the clock, and in brackets of the processors, which say more on a busy machine.
"""

import argparse
import os
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from nbclient import NotebookClient

from helpers import explore, units
from tests.course import NOTEBOOKS, ROOT, TIMEOUT, read


@dataclass(frozen=True)
class Spent:
    """Seconds of the clock and of the processors."""

    clock: float = 0.0
    processors: float = 0.0

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(self.clock + other.clock, self.processors + other.processors)

    def __repr__(self) -> str:
        return f"{self.clock:.1f} ({self.processors:.1f})"


class Stopwatch:
    """What a process spends from one look to the next; children count when they have ended."""

    def __init__(self, process: psutil.Process) -> None:
        self.process = process
        self.before = Spent()
        self.look()

    def look(self) -> Spent:
        """What was spent since the last look."""
        now = Spent(time.perf_counter(), sum(self.process.cpu_times()[:4]))
        passed = Spent(now.clock - self.before.clock, now.processors - self.before.processors)
        self.before = now
        return passed


def run(path: Path) -> tuple[Spent, list[tuple[Spent, str]]]:
    """The start of a kernel, and each code cell of a notebook with its first line."""
    client = NotebookClient(read(path), kernel_name="python3", timeout=TIMEOUT, record_timing=False)
    client.extra_arguments = ["--Application.log_level=ERROR"]
    client.resources = {"metadata": {"path": str(path.parent)}}
    begin, cells = time.perf_counter(), []
    with client.setup_kernel():
        watch = Stopwatch(psutil.Process(client.km.provisioner.pid))
        start = Spent(time.perf_counter() - begin, watch.before.processors)
        for index, cell in enumerate(client.nb.cells):
            if cell.cell_type == "code":
                client.execute_cell(cell, index)
                cells.append((watch.look(), cell.source.splitlines()[0]))
    return start, cells


def notebooks(paths: list[Path]) -> units.Table:
    """A row per notebook."""
    rows, total = [], Spent()
    for path in paths:
        start, ((imports, _), *cells) = run(path)
        own = sum((spent for spent, _ in cells), Spent())
        longest = sorted(cells, key=lambda cell: -cell[0].clock)[:3]
        rows.append((path.stem, start, imports, own, "; ".join(f"{spent} {line[:30]}" for spent, line in longest)))
        total += start + imports + own
    rows.append(("all", "", "", total, ""))
    return units.table(["notebook", "kernel", "imports", "own cells", "the longest"], rows)


class ByFile:
    """A pytest plugin that adds up what the tests of each file take."""

    def __init__(self) -> None:
        self.spent: dict[str, Spent] = defaultdict(Spent)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[Any]:
        watch = Stopwatch(psutil.Process())
        result = yield
        self.spent[item.location[0]] += watch.look()
        return result


def tests() -> units.Table:
    """A row per file of tests."""
    by_file, watch = ByFile(), Stopwatch(psutil.Process())
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        code = pytest.main([str(ROOT / "tests"), str(ROOT / "helpers"), "-q", "-p", "no:cacheprovider"], [by_file])
    total = watch.look()
    known = sum(by_file.spent.values(), Spent())
    rest = Spent(total.clock - known.clock, total.processors - known.processors)
    rows = sorted(by_file.spent.items(), key=lambda row: -row[1].clock)
    failed = [] if code == 0 else [("some failed", "")]
    return units.table(["file", "seconds"], [*rows, ("collecting and reporting", rest), ("all", total), *failed])


def views() -> units.Table:
    """A row per view: the median over many moves of a control, with words and picture made anew at each."""
    bits, cells, roof, budget = (
        explore.float_bits(),
        explore.strides(),
        explore.roofline(),
        explore.transformer_budget(),
    )
    examples, watch, rows = list(cells.PRESETS), Stopwatch(psutil.Process()), []
    moves: dict[str, Callable[[int], None]] = {
        "float_bits": lambda turn: setattr(bits.bits[turn % 16], "value", not bits.bits[turn % 16].value),
        "strides": lambda turn: setattr(cells.preset, "value", examples[turn % len(examples)]),
        "roofline": lambda turn: setattr(roof.batch, "value", 2 ** (turn % 16)),
        "transformer_budget": lambda turn: setattr(budget.tokens, "value", 2 ** (8 + turn % 8)),
    }
    for name, move in moves.items():
        spent = []
        for turn in range(1, 42):
            watch.look()
            move(turn)
            spent.append(watch.look())
        clock, processors = (statistics.median(x) for x in zip(*map(astuple, spent), strict=True))
        rows.append((name, f"{clock:.3f} ({processors:.3f})"))
    return units.table(["view", "a move"], rows)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench_suite", description=__doc__)
    parser.add_argument(
        "numbers", nargs="*", metavar="NN", help="notebook numbers, such as 01; default: all, and tests"
    )
    numbers = parser.parse_args().numbers
    print(notebooks([path for path in NOTEBOOKS if not numbers or path.name[:2] in numbers]))
    if not numbers:
        print(views(), tests(), sep="\n\n")


if __name__ == "__main__":
    main()
