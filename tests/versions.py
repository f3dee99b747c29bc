"""What changes with another version of a dependency? `python -m tests.versions torch==2.15.0 [nbval==0.10.0 ...]`

Makes an environment of its own with everything as requirements.txt and the test extra pin it, but for the versions that
are named, runs the whole test command there, and lists what fails: a cell that shows something else, with the
difference, or a test. The environment is removed at the end, unless `--keep FOLDER` says where it stays to be used
again. torch from PyPI brings its CUDA libraries on Linux: several GB. Ends with status 1 where something fails.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import tomllib
import xml.etree.ElementTree as ET
from pathlib import Path

from tests.course import ROOT

_COLOURS = re.compile(r"(\x1b|#x1B)\[[0-9;]*m")
_LINES = 8  # the last ones of each failure: there the difference stands


def pins(wanted: list[str]) -> str:
    """The lines of requirements.txt and of the extras for tests, with the versions that are wanted instead.

    Raises ValueError for what is not of the form name==version, or is pinned nowhere.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    own = f"{project['name']}["
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    lines += [line for extra in ("test", "teach") for line in extras[extra] if not line.startswith(own)]
    for requirement in wanted:
        name = requirement.partition("==")[0]
        places = [place for place, line in enumerate(lines) if line.partition("==")[0] == name]
        if not re.fullmatch(r"[\w.-]+==[\w.+!-]+", requirement) or not places:
            known = ", ".join(line.partition("==")[0] for line in lines if "==" in line)
            raise ValueError(f"{requirement!r}: expected name==version, with a name that the project pins: {known}")
        lines[places[0]] = requirement
    return "\n".join(lines)


def prepare(folder: Path, wanted: list[str]) -> Path:
    """An environment with these versions in that folder; returns its Python."""
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    listed = folder / "requirements.txt"
    listed.write_text(pins(wanted), encoding="utf-8")
    subprocess.run([python, "-m", "pip", "install", "--quiet", "-r", listed], cwd=ROOT, check=True)
    return python


def failures(report: Path) -> dict[str, str]:
    """What failed according to a report in JUnit's format: the names of tests and cells, with what was said."""
    found = {}
    for case in ET.parse(report).iter("testcase"):
        for problem in (*case.findall("failure"), *case.findall("error")):
            text = _COLOURS.sub("", problem.text or problem.get("message", "")).strip().splitlines()
            found[f"{case.get('classname')} {case.get('name')}"] = "\n".join(text[-_LINES:])
    return found


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.versions", description=__doc__)
    parser.add_argument("wanted", nargs="+", metavar="name==version")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where the environment is made, and stays")
    parser.add_argument("--run", nargs="+", default=[], metavar="PATH", help="only these tests or notebooks")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        try:
            python = prepare(options.keep or Path(temporary) / "environment", options.wanted)
        except ValueError as problem:
            parser.error(str(problem))
        except subprocess.CalledProcessError:
            sys.exit(f"{' '.join(options.wanted)}: not possible with the other pins; pip says why above")
        report = Path(temporary) / "report.xml"
        command = [python, "-m", "pytest", "-q", "--tb=short", "-o", "junit_family=xunit2", f"--junitxml={report}"]
        done = subprocess.run([*command, *options.run], cwd=ROOT, capture_output=True, text=True)
        if not report.exists():
            sys.exit(f"{done.stdout}{done.stderr}\n{' '.join(options.wanted)}: the tests did not run")
        found = failures(report)
    for name, text in found.items():
        print(f"{name}\n{text}\n")
    print(f"{' '.join(options.wanted)}: {done.stdout.strip().splitlines()[-1]}")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
