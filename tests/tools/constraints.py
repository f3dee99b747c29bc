"""Pin what the course's packages bring, for every platform and Python: `python -m tests.tools.constraints [--upgrade]`.

Needs uv. Versions in `.github/constraints.txt` stay where they can; what follows the command goes to `uv pip compile`:
`--upgrade` takes the newest of all, `-P ipython` of one. What `requirements.txt` pins stands there alone, so that pip
says what it lacks, numpy for an old Python or torch for an old Mac, and not that two lists disagree.
"""

import re
import subprocess
import sys

from tests.tools.course import ROOT

PATH = ROOT / ".github" / "constraints.txt"
REQUIREMENTS = ROOT / "requirements.txt"
HOW = "python -m tests.tools.constraints"


def pins() -> list[str]:
    """The lines of `requirements.txt` with a version, as `numpy==2.4.6`."""
    return re.findall(r"^[\w.-]+==\S+", REQUIREMENTS.read_text(encoding="utf-8"), re.MULTILINE)


def main() -> None:
    """Resolve the pins and all extras at once, for all platforms, and write what is not pinned already."""
    left_out = ["resource-accounting", *(pin.partition("==")[0] for pin in pins())]
    command = ["uv", "pip", "compile", "pyproject.toml", "-", "--all-extras", "--universal", "--fork-strategy=fewest"]
    command += [f"--no-emit-package={name}" for name in left_out]
    command += ["--no-annotate", f"--custom-compile-command={HOW}", "--quiet", f"--output-file={PATH}", *sys.argv[1:]]
    subprocess.run(command, input="\n".join(pins()), text=True, check=True, cwd=ROOT)


if __name__ == "__main__":
    main()
