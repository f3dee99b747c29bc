"""Marks: a folder of students' notebooks becomes a table of who solved what, as CSV and as a page.

Each notebook runs in a kernel of its own, in a copy of the student's folder, with limits of time and memory. The checks
run here, where none of a student's code does: what a notebook has stored, or has made of `check`, earns nothing.
"""

import argparse
import asyncio
import atexit
import csv
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, fields
from itertools import groupby
from pathlib import Path
from typing import Any

import jinja2
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from helpers import check
from helpers.export.handout import checks, lesson_of

HERE = Path(__file__).resolve().parent
MARKS = {"correct": "✓", "not yet": "✗", "not attempted": "○", "not run": "!", "look": "?"}
_MOST_TEXT = 2**20  # characters that a cell may print
_MOST_OUTPUT = 2**25  # characters that a cell may show; what is more is thrown away
_PATIENCE = 60  # seconds that a kernel may take to come back from an interrupt, after what it still shows
_CHECK = 150  # seconds for the calls of a check, which ends them after ten of their own
_LARGEST_FILE = 2**30  # bytes
_LARGEST_FOLDER = 2**28  # bytes
# Where the right answers are, to a student who looks for them.
_PEEKS = re.compile(r"EXERCISES|\boracle\b|helpers[./]exercises|helpers[./]check[./]|sys\.modules|site-packages")
_BEFORE = """
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

    verdict: that of the check, "not run" where there is nothing to check, "look" for a right answer in a notebook that
        names the place where the answers are.
    """

    student: str
    notebook: str
    exercise: str
    verdict: str
    sentence: str


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
                await self.run(
                    _BEFORE.format(memory=self.limits.memory, file=_LARGEST_FILE, text=_MOST_TEXT), _PATIENCE
                )
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


async def _judged(kernel: Kernel, name: str, answers: str) -> tuple[str, str]:
    """Verdict and sentence for the answers that these expressions have in the kernel."""
    given = f"({answers},)" if answers else "()"
    call = f"__import__('helpers.check').check.record({given}, {check.request(name)!r})"
    outputs = await kernel.run(call, _CHECK)
    if error := _error(outputs):
        return "not run", f"There is nothing to check: {error}."
    try:
        recorded = next(output.data[check.MIME] for output in outputs if check.MIME in output.get("data", {}))
        verdict = check.check(name, *check.answers(name, recorded))
    except Exception as error:
        return "not run", f"What it shows is no answer ({type(error).__name__})."
    return verdict.status, verdict.message


async def _verdicts(kernel: Kernel, notebook: NotebookNode, asked: dict[str, str]) -> dict[str, tuple[str, str]]:
    """Verdict and sentence by exercise: after each cell that checks some, or at the end, if none does."""
    found: dict[str, tuple[str, str]] = {}
    end = ""
    for number, cell in enumerate((c for c in notebook.cells if c.cell_type == "code"), start=1):
        here = {name: answers for name, answers in checks(cell.source).items() if name in asked}
        try:
            if error := _error(await kernel.run(cell.source)):
                found |= dict.fromkeys(here, ("not yet", f"Its cell raised {error}."))
                continue
            for name, answers in here.items():
                verdict, sentence = await _judged(kernel, name, answers)
                found[name] = ("not yet" if verdict == "not run" else verdict), sentence
            continue
        except CellTimeoutError:
            end = f"code cell {number} had not come to an end after {kernel.timeout} seconds"
        except DeadKernelError:
            return found | {"": ("not run", f"The kernel ended in code cell {number} or right before it.")}
        found |= dict.fromkeys(here, ("not yet", f"It had not come to an end after {kernel.timeout} seconds."))
        if kernel.left <= 1 or not await _goes_on(kernel):
            return found | {"": ("not run", f"The notebook was stopped: {end}.")}
    for name in asked.keys() - found.keys():
        found[name] = await _judged(kernel, name, asked[name])
    return found


async def _goes_on(kernel: Kernel) -> bool:
    """Interrupt the cell that runs, and say whether the kernel runs another one."""
    await kernel.manager.interrupt_kernel()
    try:
        await kernel.run("pass", _PATIENCE)
    except (CellTimeoutError, DeadKernelError):
        return False
    return True


def _tasks(lesson: NotebookNode) -> dict[str, str]:
    """The exercises of a lesson, each with its answers as its stub names them."""
    stubs = [cell for cell in lesson.cells if "exercise" in cell.metadata.get("tags", [])]
    return {name: answers for stub in stubs for name, answers in checks(stub.source).items()}


def mark(file: Path, folder: Path, student: str, limits: Limits) -> list[Row]:
    """The rows for one notebook of a student, whose files are in that folder."""
    try:
        notebook = nbformat.read(file, as_version=4)
        lesson = lesson_of(notebook)
    except Exception as error:  # whatever a file may be
        return [Row(student, file.name, "", "not run", f"This is no notebook ({type(error).__name__}).")]
    if lesson is None:
        return [Row(student, file.name, "", "not run", "This is no notebook of the course.")]
    asked = _tasks(lesson)
    peeks = sorted(
        {peek for cell in notebook.cells if cell.cell_type == "code" for peek in _PEEKS.findall(cell.source)}
    )
    try:
        found = asyncio.run(_run(notebook, asked, file, folder, limits))
    except (OSError, RuntimeError) as error:
        found = {"": ("not run", f"It could not be run ({type(error).__name__}: {str(error)[:150]}).")}
    rows = []
    for name in asked:
        verdict, sentence = found.get(name) or found.get("", ("not run", "It was not reached."))
        if peeks and verdict == "correct":
            verdict, sentence = "look", f"It would be correct, but the notebook names {', '.join(peeks)}: read it."
        rows.append(Row(student, file.name, name, verdict, sentence))
    return rows


async def _run(
    notebook: NotebookNode, asked: dict[str, str], file: Path, folder: Path, limits: Limits
) -> dict[str, tuple[str, str]]:
    """Run it in a copy of its folder; of a student who handed in a file alone, in an empty one."""
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
                return {"": ("not run", f"The folder has {size / 1e6:.0f} MB, more than a copy may have.")}
            shutil.copytree(folder, place, symlinks=True, ignore=shutil.ignore_patterns(".git", ".venv"))
            place = place / file.relative_to(folder).parent
        async with Kernel(room, limits).started(place) as kernel:
            return await _verdicts(kernel, notebook, asked)


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


def write(rows: Iterable[Row], out: Path, protection: str) -> tuple[Path, Path]:
    """The table as `marks.csv` and as `marks.html`."""
    rows = list(rows)
    out.mkdir(parents=True, exist_ok=True)
    table, page = out / "marks.csv", out / "marks.html"
    with table.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([field.name for field in fields(Row)])
        # A spreadsheet would compute what begins with one of these.
        writer.writerows([re.sub(r"^(?=[=+\-@\t\r])", "'", value) for value in asdict(row).values()] for row in rows)
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(HERE / "templates"), autoescape=True)
    template = environment.get_template("marks.html.j2")
    notebooks = [(key, list(given)) for key, given in groupby(rows, lambda row: (row.student, row.notebook))]
    text = template.render(rows=rows, notebooks=notebooks, marks=MARKS, protection=protection)
    page.write_text(text, encoding="utf-8")
    return table, page


_JAILED = "Each notebook ran without a network, and could write only into its copy; it could read what you can."
_PROTECTION = {
    "bwrap": _JAILED,
    "mount": _JAILED,
    "unshare": "Each notebook ran without a network, in a copy; it could read and change what you can change.",
    "": "Each notebook ran in a copy, with the network; it could read and change what you can change.",
}
_ALWAYS = (
    "An answer can still be copied from another student, or from the helpers, which every student has: right answers "
    "in a notebook that names them are marked ?, but who hides the name is not found. What a scored exercise costs is "
    "counted beside the student's code. Nothing limits how many processes it starts."
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
    for student, file, folder in submissions(given.folder):
        marked = mark(file, folder, student, limits)
        rows += marked
        right = sum(row.verdict == "correct" for row in marked)
        print(f"{student}, {file.name}: {right} of {len(marked)}", flush=True)
    protection = f"{_PROTECTION[limits.jail]} {_ALWAYS}"
    print("{} and {}".format(*write(rows, given.out, protection)))
    print(protection)
