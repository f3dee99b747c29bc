"""The export of several notebooks into a folder."""

import importlib.util
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from helpers.export.cells import HERE
from helpers.export.documents import css, entry, file_name, fill, page, slides

NOTEBOOKS = sorted((HERE.parent.parent / "notebooks").glob("[0-9][0-9]_*.ipynb"))
WHAT = {
    "slides": "Each deck opens in this browser, without a network. S opens the speaker's view, ? lists all keys.",
    "pages": "These pages show the course as it was run. To predict, run and check yourself, open it in JupyterLab.",
}


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """A complaint about a notebook says which."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{path.name}: {error}") from error


def write(kind: str, notebooks: Sequence[Path], out: Path) -> list[Path]:
    """Write decks or pages and their index into a folder, and return the files; all or, where one fails, none.

    ValueError where the folder holds anything that such an export does not write, or a notebook is not as it must be.
    """
    index = out / "index.html"
    files = {path.name: file_name(path, kind) for path in notebooks}
    ours = {index.name, *(file_name(path, kind) for path in NOTEBOOKS)}
    if out.exists() and (not out.is_dir() or {path.name for path in out.iterdir()} - ours):
        raise ValueError(f"{out} exists and holds other things; name a new folder")
    written, entries = {}, []
    for path in notebooks:
        with _naming(path):
            entries.append(entry(path, kind))
    for path, before, after in zip(notebooks, [None, *entries], [*entries[1:], None], strict=False):
        with _naming(path):
            html = slides(path, files) if kind == "slides" else page(path, files, (before, after))
        written[out / files[path.name]] = html
    written[index] = fill("index.html.j2", entries=entries, what=WHAT[kind], css=css("page.css"))
    out.mkdir(parents=True, exist_ok=True)
    for file, html in written.items():
        file.write_text(html, encoding="utf-8")
    return list(written)


def missing(kind: str) -> list[str]:
    """The packages that such an export needs and that are not installed, as pip calls them."""
    needed = ["latex2mathml"] + ["sphinx_revealjs"] * (kind == "slides")
    return [name.replace("_", "-") for name in needed if not importlib.util.find_spec(name)]
