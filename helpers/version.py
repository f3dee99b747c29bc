"""The version of the helpers, and whether a notebook and the installed packages go with it."""

from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from pathlib import Path

from helpers import __version__

_FOLDER = Path(__file__).resolve().parents[1]


class TooOldError(ImportError):
    """The helpers are older than the notebook. Shown in a notebook as its sentence, without a traceback."""

    def _render_traceback_(self) -> list[str]:  # IPython asks for this
        return [str(self)]


def at_least(needed: str) -> None:
    """What the first cell of a notebook asks for: helpers of this version, such as "0.1", or of a later one.

    Raises TooOldError where they are older, since later cells would fail for reasons that nobody can guess. Prints a
    sentence where only the packages are those of another version, as after a `git pull`.
    """
    if _numbers(__version__) < _numbers(needed):
        raise TooOldError(
            f"This notebook needs version {needed} of the course's helpers, and those in {_FOLDER} are {__version__}: "
            "bring that folder up to date (git pull, then pip install -r requirements.txt) and restart the kernel."
        )
    try:
        installed = installed_version("resource-accounting")
    except PackageNotFoundError:  # the folder is on the path, and nothing was installed
        return
    if installed != __version__:
        print(
            f"The course is of version {__version__}, and its packages were installed for {installed}: "
            f"run pip install -r requirements.txt in {_FOLDER} and restart the kernel."
        )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
