"""Mutation tests of helpers: `python -m tests.mutate [module ...] [--sample N]`.

A mutant is a helper with one small mistake in it, made by the operators of mutmut. Each is written into a copy of the
project, where the tests that reach the changed function run until one fails; if all pass, the notebooks that reach it
run, as they are and with their solutions. A mutant that still lives is a gap in the tests, or makes no difference that
anyone can see: then `tests/survivors.toml` holds it with the reason. Needs Linux or macOS and the extra `mutation`.

mutmut's own runner leaves out what this course has most of: tables at module level, decorated functions, notebooks.
"""

import argparse
import ast
import contextlib
import gc
import hashlib
import importlib
import io
import itertools
import json
import math
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
STATE = ROOT / ".mutation"  # what is known already, so that a run can be stopped and taken up again
EXPLAINED = ROOT / "tests" / "survivors.toml"
PROCESSES = 2
# These start a kernel or a process of their own for nearly everything they do, or look at the files of the project.
NOT_RUN = {"test_notebooks", "test_project", "test_refresh", "test_layers", "test_mutate"}
# Of the copies of the project.
LEFT_OUT = (".git", ".venv", ".mutation", "__pycache__", ".*_cache", ".hypothesis", ".ipynb_checkpoints")
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "MPLBACKEND": "agg"}


# --- The mutants ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mutant:
    """A helper with one mistake: `where` is the function or table, `was` and `now` are the lines that differ."""

    file: str
    where: str
    was: str
    now: str
    twin: int  # the same change can be possible in several places: 0, 1, …
    original: str
    start: int  # where in the original
    end: int
    text: str  # and what replaces it

    @property
    def source(self) -> str:
        """The text of the module with the mistake in it."""
        return self.original[: self.start] + self.text + self.original[self.end :]

    @property
    def diff(self) -> str:
        """The change as it is stored and shown; it is the mutant's name."""
        place = f"{self.file}: {self.where}" + f" #{self.twin + 1}" * bool(self.twin)
        lines = [f"- {line}" for line in self.was.splitlines()] + [f"+ {line}" for line in self.now.splitlines()]
        return "\n".join([place, *lines])


def scopes(source: str) -> list[tuple[str, int, int, int]]:
    """The functions, methods and other statements of a module: name, first line, first line of the body, last line."""
    found = []
    for node in ast.parse(source).body:
        inner = node.body if isinstance(node, ast.ClassDef) else []
        methods = [part for part in inner if isinstance(part, ast.FunctionDef)]
        for name, part in [*((f"{node.name}.{part.name}", part) for part in methods), (_name(node), node)]:
            decorators = [decorator.lineno for decorator in getattr(part, "decorator_list", [])]
            first = min([part.lineno, *decorators])
            body = part.body[0].lineno if isinstance(part, ast.FunctionDef) else part.lineno
            found.append((name, first, body, part.end_lineno))
    return found


def _name(node: ast.stmt) -> str:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return node.name
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):  # one of many calls that fill a table
        words = [
            part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str)
        ]
        return f"{ast.unparse(node.value.func)}({words[0] if words else ''})"
    return ast.unparse(getattr(node, "targets", [getattr(node, "target", node)])[0]).splitlines()[0]


def mutants(file: str) -> list[Mutant]:
    """Every mutant of a file of helpers: mutmut's operators, at every place but annotations, imports and docstrings."""
    import libcst
    from libcst.metadata import MetadataWrapper, PositionProvider
    from mutmut.mutation.mutators import mutation_operators

    source = (ROOT / "helpers" / file).read_text(encoding="utf-8")
    lines = source.splitlines(keepends=True)
    known = scopes(source)
    changes: list[tuple[int, int, int, int, str]] = []

    class Visitor(libcst.CSTVisitor):
        METADATA_DEPENDENCIES = (PositionProvider,)

        def on_visit(self, node: libcst.CSTNode) -> bool:
            skipped = libcst.Annotation | libcst.Decorator | libcst.Import | libcst.ImportFrom
            if isinstance(node, skipped):
                return False
            if isinstance(node, libcst.Call) and getattr(node.func, "value", "") in ("isinstance", "len"):
                return False  # as mutmut does
            for kind, operator in mutation_operators:
                if isinstance(node, kind):
                    for mutated in operator(node):
                        place = self.get_metadata(PositionProvider, node)
                        if type(mutated) is type(node) and getattr(mutated, "lpar", None):
                            mutated = mutated.with_changes(lpar=[], rpar=[])  # they are not part of the position
                        text = libcst.Module([]).code_for_node(mutated)
                        start, end = place.start, place.end
                        changes.append((start.line, start.column, end.line, end.column, text))
            return True

    MetadataWrapper(libcst.parse_module(source)).visit(Visitor())
    begins = [0, *itertools.accumulate(map(len, lines))]
    found, seen = [], Counter()
    for first, left, last, right, text in sorted(set(changes)):
        where = min((s for s in known if s[1] <= first <= s[3]), key=lambda s: s[3] - s[1])[0]
        new = (lines[first - 1][:left] + text + lines[last - 1][right:]).splitlines()
        was, now = _changed([line.rstrip("\n") for line in lines[first - 1 : last]], new)
        if was != now:
            start, end = begins[first - 1] + left, begins[last - 1] + right
            found.append(Mutant(file, where, was, now, seen[where, was, now], source, start, end, text))
            seen[where, was, now] += 1
    return found


def _changed(old: list[str], new: list[str]) -> tuple[str, str]:
    """The lines that differ, without those before and after them that are the same."""
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    was, now = ("\n".join(line.strip() for line in part[head : len(part) - tail]) for part in (old, new))
    return was, now


# --- Tests and notebooks, each in a process of its own --------------------------------------------------------------


class Tests:
    """A pytest plugin: runs all tests but some, the quick ones first; keeps those that failed, and the seconds."""

    def __init__(
        self,
        seconds: dict[str, float],
        skipped: set[str],
        begin: Callable[[str], object] = lambda name: None,
    ) -> None:
        self.expected, self.skipped, self.begin = seconds, skipped, begin
        self.seconds: Counter[str] = Counter()
        self.failed: list[str] = []
        self.shared: dict[str, set[str]] = {}

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        for item in items:
            self.shared[item.nodeid] = set(_shared_fixtures(item)) if hasattr(item, "_fixtureinfo") else set()
        kept = (item for item in items if item.nodeid not in self.skipped)
        items[:] = sorted(kept, key=lambda item: self.expected.get(item.nodeid, 0.0))

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.begin(nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.seconds[report.nodeid] += report.duration
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.failed.append(report.nodeid)


def _shared_fixtures(item: Any) -> Iterator[str]:
    """What a test has in common with others: what such a fixture enters, each of them depends on."""
    chosen = item.callspec.indices if hasattr(item, "callspec") else {}
    for name, definitions in item._fixtureinfo.name2fixturedefs.items():
        if definitions[-1].scope != "function" and definitions[-1].func.__module__.startswith("tests."):
            yield f"{name} {chosen.get(name, 0)}"


def run_tests(files: list[str], plugin: Tests, *options: str) -> None:
    """Run files of tests, doctests included, in this process."""
    import hypothesis
    import pytest

    phases = [hypothesis.Phase.explicit, hypothesis.Phase.generate]  # which example is smallest does not matter
    hypothesis.settings.register_profile("mutation", deadline=None, derandomize=True, database=None, phases=phases)
    hypothesis.settings.load_profile("mutation")
    fixed = ["-q", "-p", "no:cacheprovider", "-o", "addopts=", "--doctest-modules", "--strict-markers"]
    code = pytest.main([*fixed, *options, *files], plugins=[plugin])
    if code not in (0, 1, 5) and not plugin.failed:  # 5: nothing was collected
        plugin.failed.append(f"pytest itself: {code}")


def play(name: str) -> str | None:
    """Run a notebook's cells in this process; returns the first cell that differs from what is stored, or None.

    The name is that of the file, and " with solutions" after it if they stand in for the stubs.
    """
    from IPython.core.displayhook import CapturingDisplayHook
    from IPython.core.displaypub import CapturingDisplayPublisher
    from IPython.core.interactiveshell import InteractiveShell

    from tests.course import exercises, read, tags

    path = Path("notebooks") / name.removesuffix(" with solutions")
    notebook = read(path)
    solutions = {}
    if name != path.name:
        solutions = {task.index: task for task in exercises(notebook)}
    os.chdir(path.parent)
    shell = InteractiveShell.instance()
    shell.showtraceback = lambda *args, **kwargs: None
    for index, cell in enumerate(notebook.cells):
        if cell.cell_type != "code":
            continue
        task = solutions.get(index)
        shell.display_pub = CapturingDisplayPublisher()
        shown = shell.display_pub.outputs
        shell.display_trap.hook = CapturingDisplayHook(shell=shell, outputs=shown)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            done = shell.run_cell(task.solution if task else cell.source, store_history=True)
        error = done.error_before_exec or done.error_in_exec
        raised = [] if error is None else [f"{type(error).__name__}: {error}"]
        if bool(raised) != ("raises-exception" in tags(cell)):
            return f"cell {index}: {raised}"
        if task:
            if not (shown and shown[-1]["data"]["text/plain"] == f"✓ {task.name}: correct."):
                return f"cell {index}: the solution is not correct"
        elif "nbval-ignore-output" not in tags(cell) and not solutions:
            stored = [output for output in cell.outputs if output.output_type not in ("stream", "error")]
            texts = [_texts(output["data"]) for output in stored]
            streams = "".join(output.text for output in cell.outputs if output.output_type == "stream")
            errors = [f"{output.ename}: {output.evalue}" for output in cell.outputs if output.output_type == "error"]
            found = [_texts(output["data"]) for output in shown]
            if (texts, streams, errors) != (found, printed.getvalue(), raised):
                return f"cell {index}: {(texts, streams, errors)} != {(found, printed.getvalue(), raised)}"
    return None


def _texts(data: dict[str, str]) -> dict[str, str]:
    return {kind: text.strip() for kind, text in data.items() if kind.startswith("text/")}


class Job:
    """A function that runs in a forked process, in a copy of the project, and whose result comes back as JSON."""

    def __init__(self, folder: Path, work: Callable[[], Any], limit: float) -> None:
        self.folder, self.answer = folder, folder / "answer.json"
        # On a busy machine much time can pass in which a process does not run; one that sleeps must end, too.
        self.end, self.late = time.monotonic() + 10 * limit, False
        self.answer.unlink(missing_ok=True)
        self.pid = os.fork()
        if self.pid == 0:
            self._child(work, limit)

    def _child(self, work: Callable[[], Any], limit: float) -> None:
        try:
            import resource  # not on Windows

            os.setsid()
            resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(limit), math.ceil(limit) + 5))
            log = os.open(self.folder / "log.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            for stream in (1, 2):
                os.dup2(log, stream)
            os.chdir(self.folder)
            for name in [name for name in sys.modules if name.split(".")[0] in ("tests", "helpers")]:
                del sys.modules[name]
            sys.path[:] = [str(self.folder), *(p for p in sys.path if Path(p or ROOT).resolve() != ROOT)]
            os.environ["PYTHONPATH"] = str(self.folder)
            answer = json.dumps(work())
            self.answer.write_text(answer, encoding="utf-8")
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(0)

    def done(self) -> bool:
        """Whether the process has ended; ends it at its limit."""
        if time.monotonic() > self.end:
            self.late = True
            self.kill()
            return True
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        self.late = pid == self.pid and os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU
        return pid == self.pid

    def kill(self) -> None:
        """End the process with all that it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)

    def result(self) -> Any:
        """What the function returned, or None if the process did not get that far."""
        return json.loads(self.answer.read_text(encoding="utf-8")) if self.answer.exists() else None


def run_all(jobs: Iterator[tuple[Any, Callable[[Path], Callable[[], Any]], float]]) -> Iterator[tuple[Any, Job]]:
    """Run jobs, each a name, a function that prepares the work in a folder, and a limit; yields what is done."""
    with tempfile.TemporaryDirectory(prefix="mutation-") as parent:
        free = []
        for number in range(PROCESSES):
            free.append(Path(parent).resolve() / f"copy{number}")
            shutil.copytree(ROOT, free[-1], ignore=shutil.ignore_patterns(*LEFT_OUT))
        busy: list[tuple[Any, Job]] = []
        more = True
        try:
            while more or busy:
                while more and free:
                    folder = free.pop()
                    try:
                        name, prepare, limit = next(jobs)
                    except StopIteration:
                        more = False
                        break
                    busy.append((name, Job(folder, prepare(folder), limit)))
                for name, job in list(busy):
                    if job.done():
                        busy.remove((name, job))
                        yield name, job
                        free.append(job.folder)
                time.sleep(0.01)
        finally:
            for _, job in busy:
                job.kill()


# --- Which test reaches which function -------------------------------------------------------------------------------


def units(level: int) -> list[str]:
    """What can kill a mutant: files of tests, of doctests, and at the last level notebooks in both states."""
    files = [f"tests/{path.name}" for path in sorted((ROOT / "tests").glob("test_*.py")) if path.stem not in NOT_RUN]
    files += [str(path.relative_to(ROOT)) for path in sorted((ROOT / "helpers").rglob("*.py")) if ">>> " in _text(path)]
    notebooks = [path.name for path in sorted((ROOT / "notebooks").glob("*.ipynb"))] if level == 2 else []
    return files + [name + state for name in notebooks for state in ("", " with solutions")]


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _reach(unit: str) -> dict[str, Any]:
    """Run a unit unchanged: for each test its seconds and the functions it enters; tests that fail are left out."""
    import coverage

    watch = coverage.Coverage(data_file=None, include=["helpers/*"], config_file=False)
    watch.start()
    if unit.endswith(".py"):
        plugin = Tests({}, set(), watch.switch_context)
        run_tests([unit], plugin)
        seconds, failed, shared = dict(plugin.seconds), plugin.failed, plugin.shared
    else:
        importlib.import_module("tests.course")
        watch.switch_context(unit)
        start, home = time.perf_counter(), Path.cwd()
        problem = play(unit)
        os.chdir(home)
        seconds, failed = {unit: time.perf_counter() - start}, [unit] if problem else []
        shared = {}
        if problem:
            print(problem)
    watch.stop()
    data = watch.get_data()
    entered: dict[str, set[str]] = {}
    for path in data.measured_files():
        file = str(Path(path).relative_to(Path.cwd() / "helpers"))
        lines = data.contexts_by_lineno(path)
        for name, _, body, last in scopes(_text(Path(path))):
            for line in range(body, last + 1):
                for test in lines.get(line, []):
                    entered.setdefault(test, set()).add(f"{file}: {name}")
    groups: dict[str, set[str]] = {}
    for test, fixtures in shared.items():
        for fixture in fixtures:
            groups.setdefault(fixture, set()).update(entered.get(test, ()))
    for test, fixtures in shared.items():
        entered.setdefault(test, set()).update(*(groups[fixture] for fixture in fixtures))
    tests = {
        name: {"seconds": spent, "enters": sorted(entered.get(name, ()))}
        for name, spent in seconds.items()
        if name not in failed
    }
    own = {"tests", "helpers", "__main__"}
    return {"tests": tests, "failed": failed, "modules": sorted(m for m in sys.modules if m.split(".")[0] not in own)}


def reach(level: int) -> dict[str, Any]:
    """What `_reach` finds for every unit, from the disk where it was found before: tests written since run always."""
    path = STATE / "reach.json"
    known = json.loads(_text(path)) if path.exists() else {}
    wanted = units(level)
    todo = [unit for unit in wanted if unit not in known]
    for unit, job in run_all((unit, lambda folder, unit=unit: lambda: _reach(unit), 1200.0) for unit in todo):
        found = job.result()
        if found is None:
            print(f"{unit} does not run here, and kills nothing:\n{_text(job.folder / 'log.txt')[-1000:]}")
            found = {"tests": {}, "failed": [], "modules": []}
        known[unit] = found
        path.write_text(json.dumps(known), encoding="utf-8")
        log = f", fails unchanged: {found['failed']}" if found["failed"] else ""
        print(f"{unit}: {len(found['tests'])} tests{log}", flush=True)
    return {unit: known[unit] for unit in wanted}


def warm_up(known: dict[str, Any]) -> None:
    """Import here, before any fork, what the tests import from elsewhere."""
    for name in sorted({module for found in known.values() for module in found["modules"]}):
        with contextlib.suppress(BaseException), contextlib.redirect_stderr(io.StringIO()):
            importlib.import_module(name)


# --- The fate of a mutant --------------------------------------------------------------------------------------------


_NEAR = 150  # seconds; what takes longer waits until the nearest tests have passed
Stage = dict[str, dict[str, float]]  # units, and of each the tests that reach the mutant, with their seconds


def stages(mutant: Mutant, known: dict[str, Any]) -> tuple[Stage, Stage, Stage]:
    """What may kill a mutant, in the order in which it is tried: its own tests, all other tests, and notebooks."""
    place = f"{mutant.file}: {mutant.where}"
    reached: Stage = {}
    for unit, found in known.items():
        if tests := {name: test["seconds"] for name, test in found["tests"].items() if place in test["enters"]}:
            reached[unit] = tests
    # What is made when the module is loaded can matter to all tests in a file that uses the module, and to those that
    # only read a table and enter no function.
    if mutant.where not in _functions(mutant.original) or not reached:
        for unit, found in known.items():
            entered = {function.split(": ")[0] for test in found["tests"].values() for function in test["enters"]}
            if mutant.file in entered:
                reached[unit] = {name: test["seconds"] for name, test in found["tests"].items()}
    own = {unit for unit in reached if Path(unit).stem.removeprefix("test_") == Path(mutant.file).stem}
    for unit in own:  # all of them: a cached function is entered once, perhaps before the first test
        reached[unit] = {name: test["seconds"] for name, test in known[unit]["tests"].items()}
    tests = {unit: names for unit, names in reached.items() if unit.endswith(".py")}
    if len(own) < 2:
        others = [unit for unit in tests.keys() - own if sum(tests[unit].values()) < _NEAR]
        own |= set(sorted(others, key=lambda unit: len(tests[unit]))[-2:])
    return (
        {unit: names for unit, names in tests.items() if unit in own},
        {unit: names for unit, names in tests.items() if unit not in own},
        {unit: names for unit, names in reached.items() if unit not in tests},
    )


@cache
def _functions(source: str) -> set[str]:
    """The functions and methods of a module, but not those that a cache answers for: which test enters is chance."""
    tree = ast.parse(source)
    other = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    other |= {
        node.name
        for node in tree.body
        if any("cache" in ast.unparse(part) for part in getattr(node, "decorator_list", []))
    }
    return {name for name, first, body, _ in scopes(source) if body > first and name not in other}


def kill(stage: Stage, known: dict[str, Any]) -> str | None:
    """Run a stage in this process, where a mutant is installed; returns the name of the test that fails, or None."""
    sys.dont_write_bytecode = True
    home = Path.cwd()
    files = [unit for unit in stage if unit.endswith(".py")]
    if files:
        seconds = dict(itertools.chain.from_iterable(stage[unit].items() for unit in files))
        named = {name for unit in files for name in (*known[unit]["tests"], *known[unit]["failed"])}
        plugin = Tests(seconds, named - seconds.keys())
        run_tests(files, plugin, "-x")
        if plugin.failed:
            return plugin.failed[0]
    for unit in stage.keys() - files:
        os.chdir(home)
        problem = play(unit)
        if problem:
            return f"{unit}, {problem[:300]}"
    return None


def try_all(chosen: list[Mutant], level: int, known: dict[str, Any]) -> Iterator[tuple[Mutant, str | None]]:
    """Each mutant with what killed it at that level of tests, or None."""

    def jobs() -> Iterator[tuple[Mutant, Callable[[Path], Callable[[], Any]], float]]:
        for mutant in chosen:
            stage = stages(mutant, known)[level]
            seconds = sum(map(sum, (tests.values() for tests in stage.values())))

            def prepare(folder: Path, mutant: Mutant = mutant, stage: Stage = stage) -> Callable[[], Any]:
                path = folder / "helpers" / mutant.file
                path.write_text(mutant.source, encoding="utf-8")
                os.utime(path, (0, 0))  # unlike any file that Python has compiled already
                return lambda: {"by": kill(stage, known)}

            yield mutant, prepare, 20 + 5 * seconds

    for mutant, job in run_all(jobs()):
        shutil.copy2(ROOT / "helpers" / mutant.file, job.folder / "helpers" / mutant.file)
        answer = job.result()
        yield mutant, answer["by"] if answer else "the clock" if job.late else "a crash"


# --- The command -----------------------------------------------------------------------------------------------------


LEVELS = ("near", "tests", "notebooks")


def explained() -> dict[str, str]:
    """The mutants that may live, by their diff, with the reason."""
    if not EXPLAINED.exists():
        return {}
    entries = tomllib.loads(_text(EXPLAINED))["because"]
    return {diff.strip(): entry["reason"] for entry in entries for diff in entry["diffs"]}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutate", description=__doc__)
    parser.add_argument("modules", nargs="*", metavar="module", help="such as units, draw or draw/charts; default: all")
    parser.add_argument("--sample", type=int, metavar="N", help="only N mutants of each module, with a fixed seed")
    parser.add_argument("--level", choices=LEVELS, default=LEVELS[-1], help="how far to go with a mutant that survives")
    parser.add_argument("--report", action="store_true", help="run nothing, show what is known")
    parser.add_argument("--fresh", action="store_true", help="forget what was found: fates, and who reaches what")
    options = parser.parse_args()
    files = [str(path.relative_to(ROOT / "helpers")) for path in sorted((ROOT / "helpers").rglob("*.py"))]
    chosen = [
        file
        for module in options.modules or files
        for file in files
        if file.removesuffix(".py") == module.removesuffix(".py") or file.startswith(f"{module}/")
    ]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what was started is ended, too
    if options.fresh:
        shutil.rmtree(STATE, ignore_errors=True)
    STATE.mkdir(exist_ok=True)
    store = STATE / "fates.jsonl"
    # A mutant that was killed stays killed; one that survived is tried again when any test or notebook has changed.
    today = hashlib.sha256(b"".join((ROOT / unit).read_bytes() for unit in _watched())).hexdigest()[:16]
    fates = {fate["diff"]: fate for fate in map(json.loads, _text(store).splitlines())} if store.exists() else {}

    os.environ.update(ENVIRONMENT)
    known = {}
    if not options.report:
        known = reach(LEVELS.index(options.level))
        warm_up(known)
        gc.collect()
        gc.freeze()
    rows = []
    reasons = explained()
    for file in chosen:
        all_mutants = mutants(file)
        if options.sample and options.sample < len(all_mutants):
            random.Random(file).shuffle(all_mutants)  # a larger sample holds the smaller one
            del all_mutants[options.sample :]
        for level in range(0 if options.report else LEVELS.index(options.level) + 1):
            todo = [mutant for mutant in all_mutants if _is_open(fates.get(mutant.diff), level, today)]
            random.Random(0).shuffle(todo)
            for number, (mutant, by) in enumerate(try_all(todo, level, known), start=1):
                fates[mutant.diff] = {"diff": mutant.diff, "by": by, "level": level, "with": today}
                with store.open("a", encoding="utf-8") as lines:
                    lines.write(json.dumps(fates[mutant.diff]) + "\n")
                if number % 100 == 0:
                    print(f"{file}, {LEVELS[level]}: {number} of {len(todo)}", flush=True)
        rows.append(_report(file, all_mutants, fates, reasons))
        gone = {diff for diff in reasons if diff.startswith(f"{file}: ")} - {mutant.diff for mutant in all_mutants}
        if gone and not options.sample:
            print(f"\n{EXPLAINED.name} explains what is no mutant any more:", *sorted(gone), sep="\n\n")
    _print_scores(rows)


def _watched() -> list[str]:
    folders = {"tests": "*.py", "notebooks": "*.ipynb"}
    return [str(path.relative_to(ROOT)) for folder in folders for path in sorted((ROOT / folder).glob(folders[folder]))]


def _is_open(fate: dict[str, Any] | None, level: int, today: str) -> bool:
    return fate is None or (fate["by"] is None and (fate["level"] < level or fate["with"] != today))


def _report(file: str, all_mutants: list[Mutant], fates: dict[str, Any], reasons: dict[str, str]) -> tuple[Any, ...]:
    """Print the survivors that nothing explains; returns a row of the table of scores."""
    by = {mutant.diff: fates[mutant.diff]["by"] for mutant in all_mutants if mutant.diff in fates}
    alive = [diff for diff, killer in by.items() if killer is None]
    for diff in alive:
        if diff not in reasons:
            print(f"\n{diff}")
    notebooks = sum(killer is not None and ".ipynb" in killer for killer in by.values())
    clock = sum(killer in ("the clock", "a crash") for killer in by.values())
    told = sum(diff in reasons for diff in alive)
    return file, len(all_mutants), len(by), len(by) - len(alive), notebooks, clock, told, len(alive) - told


def _print_scores(rows: list[tuple[Any, ...]]) -> None:
    head = ("module", "mutants", "tried", "killed", "by notebooks", "by the clock", "explained", "survive", "score")
    total = ("all", *(sum(column) for column in list(zip(*rows, strict=True))[1:]))
    lines = [head, *((*row, f"{row[3] / max(row[2], 1):.1%}") for row in [*rows, total])]
    print()
    for line in lines:
        print(f"{line[0]:20}" + "".join(f"{cell:>14}" for cell in line[1:]))


if __name__ == "__main__":
    main()
