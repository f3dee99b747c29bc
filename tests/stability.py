"""Does the test command pass elsewhere, too? `python -m tests.stability [condition ...]`, all of them without a name.

For each condition the last commit is cloned into an empty folder, the whole test command runs there with this Python,
and a line says how it ended and in how many seconds. Ends with status 1 where a test fails or git sees a changed file.
Needs Linux: without a network and read-only are namespaces of the kernel (`unshare` of util-linux), and a locale other
than English must have been made (on Debian: `localedef -i de_DE -f UTF-8 de_DE.UTF-8`). The random order is that of
pytest-randomly, which is installed for it into a folder of its own.
"""

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.course import ROOT

# It keeps a core and the memory busy.
_BUSY = """
import torch
torch.set_num_threads(1)
matrix, vector = torch.rand(1500, 1500), torch.rand(2**25)
while True:
    vector.add_((matrix @ matrix)[0, 0])
"""
_NAMESPACE = ["unshare", "--map-root-user"]  # a user of its own, who may make the other namespaces


class Place:
    """Where and how a command runs: the clone in `folder`, the environment, and what stands before the command."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.folder = base / "course"
        self.environment = dict(os.environ)
        self.before: list[str] = []
        self.while_it_runs = ExitStack()

    def clone(self) -> None:
        """Clone the last commit, with all that the condition has changed so far."""
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(self.folder)], check=True)
        path = [str(self.folder), *filter(None, [self.environment.get("PYTHONPATH")])]
        self.environment["PYTHONPATH"] = os.pathsep.join(path)

    def run(self, command: list[str]) -> "subprocess.CompletedProcess[str]":
        """Run a command there."""
        with self.while_it_runs:
            return subprocess.run(
                [*self.before, *command], cwd=self.folder, env=self.environment, capture_output=True, text=True
            )


def _threads(count: int) -> Callable[[Place], None]:
    def change(place: Place) -> None:
        place.environment |= {"OMP_NUM_THREADS": str(count), "MKL_NUM_THREADS": str(count)}

    return change


@contextmanager
def _busy() -> Iterator[None]:
    processes = [subprocess.Popen([sys.executable, "-c", _BUSY], start_new_session=True) for _ in range(2)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _load(place: Place) -> None:
    place.while_it_runs.enter_context(_busy())


def _locale(place: Place) -> None:
    known = subprocess.run(["locale", "-a"], capture_output=True, text=True, check=True).stdout.split()
    other = [name for name in known if name.lower().endswith("utf8") and not name.startswith(("C.", "en_"))]
    if not other:
        raise OSError("no locale but English here; make one: localedef -i de_DE -f UTF-8 de_DE.UTF-8")
    place.environment |= {"TZ": "Pacific/Kiritimati", "LC_ALL": other[0], "LANG": other[0]}


def _path(place: Place) -> None:
    place.folder = place.base / "Kurs für Anfänger 课程"


def _read_only(place: Place) -> None:
    here = 'mount --bind . . && mount -o remount,ro,bind . && cd "$PWD" && exec "$@"'
    place.before = [*_NAMESPACE, "--mount", "sh", "-c", here, "sh"]


def _no_network(place: Place) -> None:
    place.before = [*_NAMESPACE, "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]


def _no_home(place: Place) -> None:
    place.environment.pop("HOME", None)


def _random_order(place: Place) -> None:
    folder = str(place.base / "randomly")
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder, "pytest-randomly"]
    subprocess.run(install, check=True)
    place.environment["PYTHONPATH"] = folder


CONDITIONS: dict[str, Callable[[Place], None]] = {
    "plain": lambda place: None,
    "one-thread": _threads(1),
    "two-threads": _threads(2),
    "load": _load,
    "locale": _locale,
    "path": _path,
    "read-only": _read_only,
    "no-network": _no_network,
    "no-home": _no_home,
    "random-order": _random_order,
}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.stability", description=__doc__)
    parser.add_argument("conditions", nargs="*", metavar="condition", help=", ".join(CONDITIONS))
    parser.add_argument("--run", nargs="+", default=[], metavar="PATH", help="only these tests or notebooks")
    options = parser.parse_args()
    if unknown := set(options.conditions) - set(CONDITIONS):
        parser.error(f"no such condition: {', '.join(sorted(unknown))}; there are {', '.join(CONDITIONS)}")
    failed = False
    for name in options.conditions or CONDITIONS:
        with tempfile.TemporaryDirectory() as base:
            place = Place(Path(base))
            CONDITIONS[name](place)
            place.clone()
            start = time.perf_counter()
            done = place.run([sys.executable, "-m", "pytest", "-q", *options.run])
            seconds = time.perf_counter() - start
            status = ["git", "status", "--porcelain"]
            changed = subprocess.run(status, cwd=place.folder, capture_output=True, text=True, check=True).stdout
        if done.returncode or changed:
            failed = True
            print(done.stdout[-5000:] + done.stderr[-2000:] + changed)
        last = (done.stdout.strip().splitlines() or [shlex.join(place.before)])[-1]
        print(f"{name:13}{last.strip('= ')}, {seconds:.0f} s with the start, load {os.getloadavg()[0]:.1f}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
