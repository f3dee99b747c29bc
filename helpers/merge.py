"""An update: your answers, from the notebooks that `git stash` put aside, in those that `git pull` brought.

`python -m helpers.merge` merges them cell by cell. Git merges lines, and two changes in one notebook can leave a file
that JupyterLab cannot open. This leaves a notebook whatever has changed, and the old ones as they were in `answers/`.
"""

import argparse
import re
import subprocess
import tempfile
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell

_STASH = "refs/stash"
# Git takes changes of two neighbouring lines for one change, so while it merges, a line that is always the same stands
# between any two. And a comment has a line to itself, so that an answer survives where the course words that anew.
_BETWEEN = "\x1f\n"
_COMMENT = "\n\x1e\n#"
_NOTE = "**Yours, from before the update.** The course has changed this cell, or left it out: copy what you need.\n\n"


def merge(base: NotebookNode, mine: NotebookNode, new: NotebookNode) -> list[str]:
    """Bring into `new`, in place, what you wrote: what `mine` has and `base`, from which it began, has not.

    A cell that you changed is changed in `new`, too, and one that you added follows the cell that it followed. Where
    the course changed the same lines, or the cell is gone, your text stands in a note beside it. Returns where in
    `mine` each of these cells was, such as "section 2" or "Exercise 3".
    """
    began = {cell.id: cell for cell in base.cells}
    counterparts = {_key(cell): cell for cell in new.cells}
    texts = {cell.source for cell in new.cells}
    place = 0  # after the last cell that both have
    heading = "the opening"
    notes = []
    for cell in mine.cells:
        heading = _heading(cell) or heading
        before = began.get(cell.get("id"))
        after = counterparts.get(_key(before or cell))
        if after is not None:
            place = new.cells.index(after) + 1
        untouched = before is not None and before.source == cell.source
        if untouched or cell.source in texts:
            continue
        if before is not None and after is not None:
            merged = _merge_lines(before.source, cell.source, after.source)
            if merged is not None:
                _answer(after, merged, cell)
                continue
        added = _own(cell) if before is None else _note(cell)
        if added.source in texts:
            continue
        if before is not None:
            notes.append(heading)
        new.cells.insert(place, added)
        place += 1
    return notes


def _key(cell: NotebookNode) -> str:
    """What a cell has in every version: the name of its guess or exercise, else its text. Ids are numbers in order."""
    asked = re.search(r'^check\("?(\w+)|\babout="(\w+)"', cell.source, re.MULTILINE)
    return asked.group() if asked and cell.cell_type == "code" else cell.source


def _heading(cell: NotebookNode) -> str:
    """What begins with a cell, as "section 2" or "Exercise 3"; "" where nothing does."""
    begun = re.match(r"##+ (?:(\d+)\.|([^.\n]+))", cell.source) if cell.cell_type == "markdown" else None
    if not begun:
        return ""
    return f"section {begun[1]}" if begun[1] else begun[2]


def _merge_lines(base: str, mine: str, new: str) -> str | None:
    """The three-way merge of texts, as git makes it; None where both changed the same lines."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, name) for name in ("mine", "base", "new")]
        for file, text in zip(files, (mine, base, new), strict=True):
            spaced = "".join(f"{line}\n{_BETWEEN}" for line in text.replace("#", _COMMENT).split("\n"))
            file.write_bytes(spaced.encode())
        run = subprocess.run(["git", "merge-file", "-p", "-q", *map(str, files)], capture_output=True, check=False)
    if run.returncode:
        return None
    return run.stdout.decode().replace(_BETWEEN, "").replace(_COMMENT, "#").removesuffix("\n")


def _answer(cell: NotebookNode, source: str, mine: NotebookNode) -> None:
    """Give a cell of the course that source, and the outputs that it had for you."""
    cell.source = source
    if cell.cell_type == mine.cell_type == "code":
        cell.outputs, cell.execution_count = mine.outputs, mine.execution_count


def _own(cell: NotebookNode) -> NotebookNode:
    """A cell that you added, under an id that no other cell of the new notebook has."""
    copy = NotebookNode(cell)
    copy.id = new_code_cell().id
    return copy


def _note(cell: NotebookNode) -> NotebookNode:
    """Your text of a cell, to be read and not to be run."""
    longest = max(map(len, re.findall("`+", cell.source)), default=2)
    fence = "`" * max(3, longest + 1)
    return new_markdown_cell(f"{_NOTE}{fence}python\n{cell.source}\n{fence}")


def _git(*arguments: str) -> str:
    """What git prints. Raises SystemExit with its words where it fails."""
    run = subprocess.run(["git", *arguments], capture_output=True, encoding="utf-8", check=False)
    if run.returncode:
        raise SystemExit(f"git {' '.join(arguments)}: {run.stderr.strip()}")
    return run.stdout


def main() -> None:
    """The command line. It takes no arguments, and works on the git checkout in which it is called."""
    argparse.ArgumentParser(prog="python -m helpers.merge", description=__doc__).parse_args()
    root = Path(_git("rev-parse", "--show-toplevel").strip())
    if not _git("stash", "list").strip():
        raise SystemExit("git stash has put nothing aside, so there is nothing to bring back.")
    changed = _git("diff", "--name-only", f"{_STASH}^", _STASH).splitlines()
    names = [name for name in changed if re.fullmatch(r"notebooks/[^/]+\.ipynb", name)]
    kept = root / "answers" / _git("rev-parse", "--short", _STASH).strip()
    for name in names:
        text = _git("show", f"{_STASH}:{name}")
        copy = kept / Path(name).name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(text, encoding="utf-8", newline="\n")
        file = root / name
        if not file.exists():
            print(f"{name} is no more; yours is {copy.relative_to(root)}")
            continue
        new = nbformat.read(file, as_version=4)
        base = nbformat.reads(_git("show", f"{_STASH}^:{name}"), as_version=4)
        notes = merge(base, nbformat.reads(text, as_version=4), new)
        nbformat.write(new, file)
        told = f"; those in {', '.join(dict.fromkeys(notes))} stand in a note beside their cell" if notes else ""
        print(f"{name} has your answers{told}")
    if names == changed:
        _git("stash", "drop", "--quiet")
    else:
        print("What else you had changed is still put aside: git stash pop")
    if names:
        print(f"As they were, they are in {kept.relative_to(root)}")


if __name__ == "__main__":
    main()
