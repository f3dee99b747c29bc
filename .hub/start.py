"""What a student's server begins with: bring the notebooks, set the limit, and become the server.

The hub runs this as the student, so nothing here can touch what a student could not touch anyway.
"""

import hashlib
import json
import os
import resource
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

COURSE = Path(__file__).resolve().parent.parent / "notebooks"
_SEEN = ".course.json"  # in the student's folder: by file name, the version that was delivered there


def digest(notebook: Path) -> str:
    """What identifies a version: the cells, without outputs and counts. To run a notebook is not to edit it."""
    content = notebook.read_bytes()
    try:
        cells = [(cell["cell_type"], "".join(cell["source"])) for cell in json.loads(content)["cells"]]
        content = json.dumps(cells).encode()
    except (ValueError, KeyError, TypeError):
        pass  # not a notebook (any more): then every byte counts
    return hashlib.sha256(content).hexdigest()


def deliver(course: Path, folder: Path) -> list[str]:
    """Bring every notebook of the course into a student's folder; returns a line for each file that was written.

    What the student has edited is never written again. A new version replaces a notebook whose cells are as they were
    delivered, and comes beside one that was edited: 01_x.ipynb, then 01_x (2).ipynb. A notebook that was deleted or
    renamed is brought again: so one starts over. Raises OSError where the folder or the disk does not let it.
    """
    folder.mkdir(exist_ok=True)
    record = folder / _SEEN
    try:
        seen = dict(json.loads(record.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        seen = {}
    written = []
    for new in sorted(course.glob("*.ipynb")):
        target = _place(new, folder, seen)
        if target:
            part = target.with_suffix(".part")
            shutil.copyfile(new, part)
            part.replace(target)  # all of it or nothing
            seen[target.name] = digest(new)
            written.append(f"{new.name} -> {target.name}")
    if written:
        record.write_text(json.dumps(seen, indent=1), encoding="utf-8")
    return written


def _place(new: Path, folder: Path, seen: dict[str, str]) -> Path | None:
    """Where a notebook is to be written, or None if this version is there, or was and is no longer wanted."""
    version = digest(new)
    for name in _names(new):
        mine, delivered = folder / name, seen.get(name)
        if not mine.exists():
            return mine if delivered != version or name == new.name else None
        if version in (delivered, now := digest(mine)):
            return None
        if now == delivered:
            return mine
    return None


def _names(new: Path) -> Iterator[str]:
    yield new.name
    yield from (f"{new.stem} ({number}){new.suffix}" for number in range(2, 1000))


def limit(nbytes: int) -> None:
    """Let this process and each that it starts allocate that much: then a cell fails, not the machine.

    It holds for each process alone. What a student may take with all of them needs a spawner that sets a cgroup.
    """
    resource.setrlimit(resource.RLIMIT_DATA, (nbytes, nbytes))


def main() -> None:
    """Run in the student's home, with the arguments for the server."""
    os.umask(0o077)
    home = Path.home()
    try:
        home.chmod(0o700)
        print(*deliver(COURSE, home / "notebooks"), sep="\n")
    except OSError as error:  # a full disk must not keep a student out
        print(f"the notebooks were not brought: {error}", file=sys.stderr)
    if os.environ.get("MEM_LIMIT"):
        limit(int(os.environ["MEM_LIMIT"]))
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "jupyterhub.singleuser", *sys.argv[1:]])


if __name__ == "__main__":
    main()
