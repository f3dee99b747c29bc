"""Marks: a folder of students' notebooks becomes a table of who solved what, as CSV and as a page.

Each notebook runs in a kernel of its own, in a copy of the student's folder, with limits of time and memory. The checks
run here, where none of a student's code does: what a notebook has stored, or has made of `check`, earns nothing.
"""

import argparse
import ast
import asyncio
import atexit
import csv
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from helpers import check
from helpers.exercises import EXERCISES
from helpers.export.handout import SOLUTION, checks, lesson_of

HERE = Path(__file__).resolve().parent
MARKS = {"correct": "✓", "partly": "◐", "not yet": "✗", "not attempted": "○", "not run": "!", "look": "?"}
_MOST_TEXT = 2**20  # characters that a cell may print
_MOST_OUTPUT = 2**25  # characters that a cell may show; what is more is thrown away
_PATIENCE = 60  # seconds that a kernel may take to come back from an interrupt, after what it still shows
_CHECK = 150  # seconds for the calls of a check, which ends them after ten of their own
_LARGEST_FILE = 2**30  # bytes
_LARGEST_FOLDER = 2**28  # bytes
_LONG_ANSWER = 80  # characters of code; shorter right answers are often the same
# Where the right answers are, to a student who looks for them.
_PEEKS = re.compile(r"EXERCISES|\boracle\b|helpers[./]exercises|helpers[./]check[./]|sys\.modules|site-packages")
_NOTED = "noted"  # a file that stands in the kernel's folder when one with answers was read
_BEFORE = r"""
import sys
def show_less(stream):  # else an endless cell floods its kernel, which then hears no interrupt
    write, shown = stream.write, 0
    def begin(*_):
        nonlocal shown
        shown = 0
    def write_less(text):
        nonlocal shown
        shown += len(text)
        return write(text) if shown < {text} else len(text)
    stream.write = write_less
    get_ipython().events.register("pre_run_cell", begin)
show_less(sys.stdout)
show_less(sys.stderr)
del sys, show_less
import helpers.exercises
helpers.exercises.EXERCISES.clear()
def hide_answers():
    import re, sys
    for module in [sys.modules[name] for name in sys.modules if name.startswith("helpers.exercises.nb")]:
        for name in [name for name in vars(module) if not name.startswith("__")]:
            delattr(module, name)
    def note(event, arguments):
        if event == "open" and re.search(r"exercises\W.*nb\d\d", str(arguments[0])):
            open({noted!r}, "a").close()
    sys.addaudithook(note)
hide_answers()
del hide_answers
try:
    import resource
    for limit, most in [(resource.RLIMIT_DATA, {memory}), (resource.RLIMIT_FSIZE, {file})]:
        resource.setrlimit(limit, (most, most))
    del resource, limit, most
except (ImportError, ValueError):
    pass
del helpers
"""


@dataclass(frozen=True)
class Row:
    """What is said of one exercise of one student; of a notebook that cannot be marked, with "" for the exercise.

    exercise: as the lesson counts it. name: that of the check.
    verdict: that of the check; "partly" where some of its parts are right, "not run" where there is nothing to check,
        "look" for a right answer in a notebook that names the place where the answers are, or read it.
    right, parts: how many of its parts are right, and of how many; most exercises have one.
    same_text_as: who wrote the same code, where it is long: other students, or the course in its solution.
    code: what was added to the stub, where it is long; it is in no table.
    """

    student: str
    notebook: str
    exercise: str
    name: str
    verdict: str
    right: int
    parts: int
    sentence: str
    same_text_as: str = ""
    code: str = ""


class Found(NamedTuple):
    """What is found of one exercise in a kernel."""

    verdict: str
    sentence: str
    right: int = 0


@dataclass(frozen=True)
class Limits:
    """What a notebook may take: seconds for one cell and for all, bytes of memory. `jail` is what runs it, if any."""

    cell: float
    total: float
    memory: int
    jail: str


# ---- The kernel


# A shell script, as the root of a namespace of its own: all that is mounted is read-only but one folder, $0, and the
# command is run without the rights that could change that.
_READ_ONLY = """
mount --bind "$0" "$0" && mount -t tmpfs none /dev/shm || exit 1
cut -d " " -f 5 /proc/self/mountinfo | sort -u | while read -r place; do
  case "$place" in "$0" | /dev/shm) ;; *) mount -o remount,bind,ro "$place" ;; esac
done 2> /dev/null
cd "$PWD"  # into the folder as it is mounted now
exec setpriv --bounding-set=-all --inh-caps=-all --no-new-privs "$@"
"""


def jail() -> str:
    """What this system has to keep a notebook from the network and from files: "bwrap", "mount", "unshare" or ""."""
    return next(filter(_holds, ("bwrap", "mount", "unshare")), "")


def _holds(tool: str) -> bool:
    """Whether it runs a command, and whether that writes nowhere but into its folder."""
    with tempfile.TemporaryDirectory() as folder:
        room, outside = Path(folder).resolve() / "room", Path(folder).resolve() / "outside"
        room.mkdir()
        try:
            ran = subprocess.run([*_prefix(tool, room), "touch", room / "inside", outside], capture_output=True)
        except OSError:
            return False
        return (room / "inside").exists() and (outside.exists() if tool == "unshare" else ran.returncode == 1)


def _prefix(tool: str, room: Path) -> list[str]:
    """The beginning of a command that has no network, and, unless it is plain `unshare`, one folder to write to."""
    own = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/dev/shm", "--bind", room, room]
    alone = ["--unshare-net", "--unshare-pid", "--unshare-ipc", "--die-with-parent"]
    alone += ["--setenv", "JPY_PARENT_PID", "1"]  # whom the kernel would miss in there
    unshare = ["unshare", "--net", "--map-root-user"]
    prefixes = {
        "bwrap": ["bwrap", *map(str, own), *alone],
        "mount": [*unshare, "--mount", "sh", "-c", _READ_ONLY, str(room)],
        "unshare": unshare,
        "": [],
    }
    return prefixes[tool]


class Kernel(NotebookClient):
    """A kernel in a jail, and how long it may still take."""

    def __init__(self, room: Path, limits: Limits) -> None:
        super().__init__(nbformat.v4.new_notebook(), kernel_name="python3", allow_errors=True, record_timing=False)
        self.iopub_timeout = _PATIENCE  # what an endless cell has shown comes before what is asked next
        self.manager: Any = self.create_kernel_manager()
        if os.name != "nt":
            self.manager.transport = "ipc"  # sockets that are files, which need no network
        self.manager.connection_file = str(room / "k.json")
        spec = self.manager.kernel_spec
        if spec is None:
            raise RuntimeError("there is no kernel named python3: pip install -r requirements.txt")
        start = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        spec.interrupt_mode = "message"  # a signal would end bwrap
        spec.argv = [*_prefix(limits.jail, room), *start]
        self.room, self.limits, self.left = room, limits, limits.total
        self.shown = 0

    @asynccontextmanager
    async def started(self, folder: Path) -> Any:
        """Run it in that folder. What `HOME` names is there, too."""
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "SYSTEMROOT")}
        env = kept | {
            "HOME": str(self.room),
            "PYTHONPATH": str(HERE.parents[1]),
            "CUDA_VISIBLE_DEVICES": "",
            "OMP_NUM_THREADS": "1",
            "TMPDIR": str(self.room),
            "MPLBACKEND": "agg",
        }
        try:
            async with self.async_setup_kernel(cwd=str(folder), env=env, cleanup_kc=True):
                noted = str(self.room / _NOTED)
                limits = {"memory": self.limits.memory, "file": _LARGEST_FILE, "text": _MOST_TEXT}
                await self.run(_BEFORE.format(noted=noted, **limits), _PATIENCE)
                yield self
        finally:
            atexit.unregister(self._cleanup_kernel)  # it stays behind where the kernel did not start

    async def run(self, source: str, at_least: float = 0) -> list[NotebookNode]:
        """The outputs of a cell, which may take so many seconds. Raises CellTimeoutError and DeadKernelError."""
        cell, self.shown = new_code_cell(source), 0
        self.nb.cells = [cell]
        self.timeout = max(1, int(min(max(self.limits.cell, at_least), self.left)))
        clock = asyncio.get_running_loop().time
        begin, before = clock(), asyncio.all_tasks()
        try:
            await self.async_execute_cell(cell, 0, store_history=False)
        except CellTimeoutError:
            for listener in asyncio.all_tasks() - before:  # nbclient leaves one behind, which would hear the next cell
                listener.cancel()
            raise
        finally:
            self.left -= clock() - begin
        return cell.outputs

    def output(self, outs: list[NotebookNode], msg: dict[str, Any], display_id: str | None, cell_index: int) -> Any:
        """Keep an output, unless there were too many."""
        self.shown += len(str(msg["content"]))
        is_kept = self.shown < _MOST_OUTPUT or msg["msg_type"] == "error"
        return super().output(outs, msg, display_id, cell_index) if is_kept else None


# ---- A notebook


def _error(outputs: list[NotebookNode]) -> str:
    """What a cell raised, in one line; empty if nothing."""
    raised = [output for output in outputs if output.output_type == "error"]
    return " ".join(f"{raised[0].ename}: {raised[0].evalue}".split())[:200].strip(" .:") if raised else ""


def _why_it_stopped(outputs: list[NotebookNode], name: str) -> str:
    """What the cell of a check shows where it came to no answer."""
    shown = [str(output.data.get("text/plain", "")) for output in outputs if output.output_type == "execute_result"]
    _, _, sentence = shown[-1].partition(f"✗ {name}: ") if shown else ("", "", "")
    return sentence[:300]


async def _judged(kernel: Kernel, name: str, answers: str) -> Found:
    """What is found of the answers that these expressions have in the kernel."""
    given = f"({answers},)" if answers else "()"
    call = f"__import__('helpers.check').check.record({given}, {check.request(name)!r})"
    outputs = await kernel.run(call, _CHECK)
    if error := _error(outputs):
        return Found("not run", f"There is nothing to check: {error}.")
    try:
        recorded = next(output.data[check.MIME] for output in outputs if check.MIME in output.get("data", {}))
        verdict = check.check(name, *check.answers(name, recorded))
    except Exception as error:
        return Found("not run", f"What it shows is no answer ({type(error).__name__}).")
    if verdict.status == "correct":
        return Found("correct", verdict.message, _parts(name))
    return Found("partly" if verdict.right_parts else verdict.status, verdict.message, verdict.right_parts)


def _parts(name: str) -> int:
    return len(EXERCISES[name].parts) or 1


async def _verdicts(kernel: Kernel, notebook: NotebookNode, asked: dict[str, "Task"]) -> dict[str, Found]:
    """What is found by exercise: after each cell that checks some, or at the end, if none does."""
    found: dict[str, Found] = {}
    unread: dict[str, Found] = {}  # what a cell that is no Python shows in the place of its verdict
    end = ""
    for number, cell in enumerate((c for c in notebook.cells if c.cell_type == "code"), start=1):
        here = {name: answers for name, answers in checks(cell.source).items() if name in asked}
        try:
            outputs = await kernel.run(cell.source)
            if not here:
                shown = {name: _why_it_stopped(outputs, name) for name in asked}
                unread |= {name: Found("not yet", why) for name, why in shown.items() if why}
            if error := _error(outputs):
                found |= dict.fromkeys(here, Found("not yet", f"Its cell raised {error}."))
                continue
            for name, answers in here.items():
                judged = await _judged(kernel, name, answers)
                if judged.verdict == "not run":  # a cell with a check that stops says why in the place of its error
                    judged = Found("not yet", _why_it_stopped(outputs, name) or judged.sentence)
                found[name] = judged
            continue
        except CellTimeoutError:
            end = f"code cell {number} had not come to an end after {kernel.timeout} seconds"
        except DeadKernelError:
            return found | {"": Found("not run", f"The kernel ended in code cell {number} or right before it.")}
        found |= dict.fromkeys(here, Found("not yet", f"It had not come to an end after {kernel.timeout} seconds."))
        if kernel.left <= 1 or not await _goes_on(kernel):
            return found | {"": Found("not run", f"The notebook was stopped: {end}.")}
    for name in asked.keys() - found.keys():
        judged = await _judged(kernel, name, asked[name].answers)
        found[name] = unread.get(name, judged) if judged.verdict == "not run" else judged
    return found


async def _goes_on(kernel: Kernel) -> bool:
    """Interrupt the cell that runs, and say whether the kernel runs another one."""
    await kernel.manager.interrupt_kernel()
    try:
        await kernel.run("pass", _PATIENCE)
    except (CellTimeoutError, DeadKernelError):
        return False
    return True


@dataclass(frozen=True)
class Task:
    """An exercise of a lesson, such as "Exercise 1": its answers as its stub names them, the stub, and its solution."""

    title: str
    answers: str
    stub: str
    solution: str


def _tasks(lesson: NotebookNode) -> dict[str, Task]:
    """The exercises of a lesson by their names."""
    found: dict[str, Task] = {}
    title = stub = ""
    for cell in lesson.cells:
        if heading := re.match(r"### (Exercise \d+)", cell.source):
            title = heading[1]
        elif "exercise" in cell.metadata.get("tags", []):
            stub = cell.source
        elif cell.source.startswith(SOLUTION):
            code = re.search(r"```python\n(.*?)```", cell.source, re.DOTALL)
            solution = _added(code[1] if code else "", stub)
            found |= {name: Task(title, answers, stub, solution) for name, answers in checks(stub).items()}
    return found


def _added(source: str, stub: str) -> str:
    """The code that was added to a stub, without comments and layout; "" for what Python cannot read."""
    try:
        lines, before = (ast.unparse(ast.parse(text)).splitlines() for text in (source, stub))
    except (SyntaxError, ValueError, RecursionError):
        return ""
    return "\n".join(line for line in lines if line not in before)


def _long_answer(notebook: NotebookNode, name: str, task: Task) -> str:
    """The code of an exercise, where it is long, and no choice among words, in which many are alike."""
    if any(part.words for part in EXERCISES[name].parts.values()):
        return ""
    cells = [cell.source for cell in notebook.cells if cell.cell_type == "code" and name in checks(cell.source)]
    code = _added(cells[-1], task.stub) if cells else ""
    return code if len(code) >= _LONG_ANSWER else ""


def _peeks(notebook: NotebookNode) -> str:
    """Which code cells name the places where the answers are, in words."""
    first: dict[str, int] = {}
    for number, cell in enumerate((c for c in notebook.cells if c.cell_type == "code"), start=1):
        for peek in _PEEKS.findall(cell.source):
            first.setdefault(peek.strip("./"), number)
    return ", ".join(f"code cell {number} names {peek}" for peek, number in first.items())


def _not_marked(file: Path, error: Exception) -> str:
    """Why a notebook could not be read."""
    if file.is_dir():
        inside = sorted(path.name for path in file.rglob("*") if path.is_file())
        return f"The folder holds no .ipynb, but {', '.join(inside[:3])}." if inside else "The folder is empty."
    if file.suffix != ".ipynb":
        return "This is no .ipynb."
    return f"The file is cut off or damaged ({type(error).__name__}): ask for it again."


def mark(file: Path, folder: Path, student: str, limits: Limits) -> list[Row]:
    """The rows for one notebook of a student, whose files are in that folder."""
    try:
        notebook = nbformat.read(file, as_version=4)
        lesson = lesson_of(notebook)
    except Exception as error:  # whatever a file may be
        return [Row(student, file.name, "", "", "not run", 0, 0, _not_marked(file, error))]
    if lesson is None:
        return [Row(student, file.name, "", "", "not run", 0, 0, "This is no notebook of the course.")]
    asked = _tasks(lesson)
    peeks = _peeks(notebook)
    try:
        found, has_read = asyncio.run(_run(notebook, asked, file, folder, limits))
    except (OSError, RuntimeError) as error:
        why = f"It could not be run ({type(error).__name__}: {str(error)[:150]})."
        found, has_read = {"": Found("not run", why)}, False
    if has_read:
        peeks = f"{peeks}, and it read a file of helpers/exercises".removeprefix(", and ")
    rows = []
    for name, task in asked.items():
        verdict, sentence, right = found.get(name) or found.get("", Found("not run", "It was not reached."))
        if peeks and right:
            verdict, sentence = "look", f"{sentence} But {peeks}: look at it."
        code = _long_answer(notebook, name, task)
        same = "the course's solution" if code and code == task.solution else ""
        rows.append(Row(student, file.name, task.title, name, verdict, right, _parts(name), sentence, same, code))
    return rows


async def _run(
    notebook: NotebookNode, asked: dict[str, Task], file: Path, folder: Path, limits: Limits
) -> tuple[dict[str, Found], bool]:
    """Run it in a copy of its folder; of a student who handed in a file alone, in an empty one.

    Returns what is found by exercise, and whether it was noted that a file with answers was read.
    """
    # A cell that was given up leaves a task behind, whose end nobody needs to hear of.
    asyncio.get_running_loop().set_exception_handler(lambda *_: None)
    with tempfile.TemporaryDirectory(prefix="m", ignore_cleanup_errors=True) as temporary:
        room = Path(temporary).resolve()
        place = room / "work"
        if folder == file:
            place.mkdir()
        else:
            size = sum(path.lstat().st_size for path in folder.rglob("*"))
            if size > _LARGEST_FOLDER:
                return {"": Found("not run", f"The folder has {size / 1e6:.0f} MB, more than a copy may have.")}, False
            shutil.copytree(folder, place, symlinks=True, ignore=shutil.ignore_patterns(".git", ".venv"))
            place = place / file.relative_to(folder).parent
        async with Kernel(room, limits).started(place) as kernel:
            found = await _verdicts(kernel, notebook, asked)
            return found, (room / _NOTED).exists()


# ---- A class


def submissions(folder: Path) -> Iterator[tuple[str, Path, Path]]:
    """Each notebook with its student and what else the student handed in: `ann/03.ipynb`, or `ann.ipynb` alone.

    A student whose folder has no notebook comes with that folder itself.
    """
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith(".") or entry.is_symlink():
            continue
        if entry.is_file():
            yield entry.stem, entry, entry
            continue
        inside = [path for path in sorted(entry.rglob("*.ipynb")) if ".ipynb_checkpoints" not in path.parts]
        for file in inside or [entry]:
            yield entry.name, file, entry


def compared(rows: Sequence[Row]) -> list[Row]:
    """The rows, each with the students who wrote the same code."""
    found = []
    for row in rows:
        others = {other.student for other in rows if row.code and (other.name, other.code) == (row.name, row.code)}
        same = [row.same_text_as, *sorted(others - {row.student})]
        found.append(replace(row, same_text_as=", ".join(filter(None, same))))
    return found


@dataclass(frozen=True)
class Total:
    """How much one student has right, of all exercises of the lessons that anybody handed in.

    Of an exercise in several notebooks the best counts. points: one for each that is correct, for one that is partly so
        the share of its parts; none for those to look at, before somebody has. unread: notebooks that could not be
        marked, whose points are not in there.
    """

    student: str
    exercises: int
    correct: int
    partly: int
    look: int
    unread: int
    points: float


def totals(rows: Sequence[Row]) -> list[Total]:
    """A line for each student."""
    exercises = len({row.name for row in rows} - {""})
    found = []
    for student, given in groupby(sorted(rows, key=lambda row: row.student), lambda row: row.student):
        best: dict[str, Row] = {}
        unread = 0
        for row in given:
            unread += not row.name
            if row.name and (row.name not in best or _points(row) > _points(best[row.name])):
                best[row.name] = row
        verdicts = [row.verdict for row in best.values()]
        correct, partly, look = map(verdicts.count, ("correct", "partly", "look"))
        points = round(sum(map(_points, best.values()), 0.0), 2)
        found.append(Total(student, exercises, correct, partly, look, unread, points))
    return found


def _points(row: Row) -> float:
    return row.right / row.parts if row.verdict in ("correct", "partly") else 0


def write(rows: Sequence[Row], out: Path, protection: str) -> list[Path]:
    """The tables as `marks.csv` and `totals.csv`, and both as `marks.html`."""
    out.mkdir(parents=True, exist_ok=True)
    files = [out / name for name in ("marks.csv", "totals.csv", "marks.html")]
    _write_table([{name: value for name, value in asdict(row).items() if name != "code"} for row in rows], files[0])
    _write_table([asdict(total) for total in totals(rows)], files[1])
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(HERE / "templates"), autoescape=True)
    template = environment.get_template("marks.html.j2")
    notebooks = [(key, list(given)) for key, given in groupby(rows, lambda row: (row.student, row.notebook))]
    text = template.render(rows=rows, notebooks=notebooks, totals=totals(rows), marks=MARKS, protection=protection)
    files[2].write_text(text, encoding="utf-8")
    return files


def _write_table(lines: Sequence[dict[str, Any]], file: Path) -> None:
    with file.open("w", encoding="utf-8-sig", newline="") as opened:
        writer = csv.writer(opened)
        writer.writerow(lines[0] if lines else [])
        for line in lines:
            # A spreadsheet would compute what begins with one of these.
            writer.writerow([re.sub(r"^(?=[=+\-@\t\r])", "'", str(value)) for value in line.values()])


_JAILED = "Each notebook ran without a network, and could write only into its copy; it could read what you can."
_PROTECTION = {
    "bwrap": _JAILED,
    "mount": _JAILED,
    "unshare": "Each notebook ran without a network, in a copy; it could read and change what you can change.",
    "": "Each notebook ran in a copy, with the network; it could read and change what you can change.",
}
_ALWAYS = (
    "An answer can still be copied from another student, or from the helpers, which every student has: right answers "
    "in a notebook that names or reads them are marked ?, but not every way is found. That two wrote the same proves "
    "nothing. What a scored exercise costs is counted beside the student's code. Nothing limits how many processes it "
    "starts."
)


def main(arguments: list[str]) -> None:
    """The command line of `python -m helpers.export marks`."""
    parser = argparse.ArgumentParser(prog="python -m helpers.export marks", description=__doc__, epilog=_ALWAYS)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="a folder, or a notebook, for each student")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the folder to write to")
    parser.add_argument("--cell", type=float, default=120, metavar="SECONDS", help="that a cell may take; default 120")
    parser.add_argument("--total", type=float, default=900, metavar="SECONDS", help="and a notebook; default 900")
    parser.add_argument("--memory", type=float, default=4, metavar="GB", help="that it may have; default 4")
    given = parser.parse_args(arguments)
    if not given.folder.is_dir():
        parser.error(f"{given.folder} is no folder")
    limits = Limits(given.cell, given.total, int(given.memory * 1e9), jail())
    rows: list[Row] = []
    handed_in = list(submissions(given.folder))
    begin = time.monotonic()
    for number, (student, file, folder) in enumerate(handed_in, start=1):
        marked = mark(file, folder, student, limits)
        rows += marked
        right = sum(row.verdict == "correct" for row in marked)
        told = f"{right} of {len(marked)} right" if marked[0].name else marked[0].sentence
        minutes = (time.monotonic() - begin) / number * (len(handed_in) - number) / 60
        print(f"{student}, {file.name}: {told} ({len(handed_in) - number} to go, {minutes:.0f} min)", flush=True)
    protection = f"{_PROTECTION[limits.jail]} {_ALWAYS}"
    print(*write(compared(rows), given.out, protection), sep="\n")
    print(protection)
