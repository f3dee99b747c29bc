"""The files around the course: what the README promises, what is declared, what is installed."""

import ast
import json
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, packages_distributions, requires, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version
from PIL import Image

from tests.test_notebooks import KNOWN_TAGS
from tests.tools import constraints, cover
from tests.tools.course import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
GUIDE = (ROOT / ".github" / "MAINTAINING.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PINS = [line for line in (ROOT / "requirements.txt").read_text("utf-8").splitlines() if not line.startswith("#")]
LOCKED = [line for line in constraints.PATH.read_text("utf-8").splitlines() if not line.startswith("#")]
COMMANDS = dict(re.findall(r"<!-- (\w+) -->\n```sh\n(.+?)\n```", README, re.DOTALL))


@pytest.mark.slow
def test_the_commands_of_the_readme_are_shell_and_name_what_exists():
    assert set(COMMANDS) == {"open", "update", "test"}
    for command in re.findall(r"```sh\n(.+?)\n```", README, re.DOTALL):
        subprocess.run(["bash", "-n", "-c", command], check=True)
        assert max(map(len, command.splitlines())) <= 88
        for name in re.findall(r"[\w/]+\.(?:txt|ipynb|yml)", command):
            assert (ROOT / name.removeprefix("/lab/tree/")).exists(), name
        for extra in re.findall(r"\.\[(\w+)\]", command):
            assert extra in PROJECT["optional-dependencies"]
        for pin in re.findall(r"torch==\S+", command):
            assert pin in PINS
    for module in set(re.findall(r"python -m (helpers[\w.]*)", README)):
        subprocess.run([sys.executable, "-m", module, "--help"], cwd=ROOT, check=True, capture_output=True)


def test_the_picture_of_the_readme_is_the_one_that_the_course_draws():
    with Image.open(cover.PATH) as picture:
        assert picture.info["Description"] == cover.card()["text/plain"]


@pytest.mark.parametrize("file", ["README.md", ".github/CONTRIBUTING.md", ".github/MAINTAINING.md", ".hub/README.md"])
def test_links_and_commands_lead_somewhere(file):
    text = (ROOT / file).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)]+)\)", text):
        path = (ROOT / file).parent / target.partition("#")[0]
        assert target.startswith("https://") or path.exists(), target
    for module in re.findall(r"python -m (tests\.tools\.\w+|helpers\.\w+)", text):
        path = ROOT / module.replace(".", "/")
        assert path.with_suffix(".py").exists() or path.is_dir(), module


def test_every_known_tag_is_explained():
    assert set(re.findall(r"^\| `([\w-]+)` \|", GUIDE, re.MULTILINE)) == KNOWN_TAGS


def test_every_package_that_helpers_imports_is_declared_and_every_pin_is_exact():
    assert PINS[0] == f"-c {constraints.PATH.relative_to(ROOT).as_posix()}" and PINS[-1] == "-e ."
    extras = PROJECT["optional-dependencies"]
    for line in [*PINS[1:-1], *extras["teach"], *extras["hub"], *extras["test"][:-1]]:
        assert re.fullmatch(r"[\w.\[\]-]+==[\w.]+", line), line
    declared = {"core": PROJECT["dependencies"], "export": extras["teach"] + requires("nbconvert")}
    declared["export"] = declared["export"] + declared["core"]
    known = {kind: {re.match(r"[\w.-]+", one)[0].lower() for one in lines} for kind, lines in declared.items()}
    distributions = packages_distributions()
    used = set()
    for file in (ROOT / "helpers").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and not node.level else []
            for name in {name.partition(".")[0] for name in names} - sys.stdlib_module_names - {"helpers"}:
                kind = "export" if "export" in file.parts else "core"
                found = {one.lower() for one in distributions.get(name, [name])}
                assert found & known[kind], f"{file.name} imports {name}"
                used |= found
    assert known["core"] <= used  # a bound on what nothing needs, such as IPython, would replace what Colab has


def test_binder_and_codespaces_take_the_pinned_torch_without_cuda():
    environment = (ROOT / ".binder" / "environment.yml").read_text(encoding="utf-8")
    (version,) = re.findall(r"^  - pytorch-cpu=([\d.]+)$", environment, re.MULTILINE)
    assert f"torch=={version}" in PINS
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8"))
    named = re.findall(r"\.binder/\w+(?:\.yml)?", container["onCreateCommand"])
    assert len(named) == 2
    for name in [*named, *container["customizations"]["codespaces"]["openFiles"]]:
        assert (ROOT / name).exists(), name


def asked_for_here(requirement):
    """What an installed distribution, with the extras that are wanted of it, itself asks for on this machine."""
    found = map(Requirement, requires(requirement.name) or [])
    extras = requirement.extras or {""}
    return [one for one in found if not one.marker or any(one.marker.evaluate({"extra": extra}) for extra in extras)]


def test_every_package_that_the_course_brings_is_pinned():
    here = [pin for pin in map(Requirement, PINS[1:-1] + LOCKED) if not pin.marker or pin.marker.evaluate()]
    pins = {canonicalize_name(pin.name): str(pin.specifier).removeprefix("==") for pin in here}
    assert len(pins) == len(here), "two versions of one package for the same machine"
    extras = PROJECT["optional-dependencies"]
    declared = [*PROJECT["dependencies"], *extras["teach"], *extras["hub"], *extras["test"][:-1]]
    wanted = dict.fromkeys(map(Requirement, PINS[1:-1] + declared), "the course")
    todo = list(wanted)
    for requirement in todo:  # it grows
        pin = pins.get(canonicalize_name(requirement.name), "")
        fits = pin and requirement.specifier.contains(pin)
        assert fits, f"{wanted[requirement]} asks for {requirement}; pinned: {pin}. Renew: {constraints.HOW}"
        try:
            installed = Version(version(requirement.name)).public
        except PackageNotFoundError:  # it belongs to an extra that is not installed here
            continue
        if installed == pin:  # another version may ask for other packages
            new = [one for one in asked_for_here(requirement) if one not in wanted]
            wanted |= dict.fromkeys(new, requirement.name)
            todo += new


@pytest.mark.slow
def test_workflows_and_citation_are_what_github_reads():
    checker = shutil.which("check-jsonschema", path=str(Path(sys.executable).parent))
    if not checker:
        pytest.skip("check-jsonschema is not installed")
    for schema, files in (("github-workflows", "workflows/*.yml"), ("citation-file-format", "CITATION.cff")):
        found = map(str, (ROOT / ".github").glob(files))
        subprocess.run([checker, "--builtin-schema", f"vendor.{schema}", *found], check=True)


def test_jupyterlab_has_the_files_that_the_project_ships():
    shipped = [file for file in (ROOT / ".jupyter").rglob("*") if file.is_file()]
    assert any(file.name == "remoteEntry.js" for file in shipped)
    for file in shipped:
        installed = Path(sys.prefix, file.relative_to(ROOT / ".jupyter"))
        same = installed.is_file() and installed.read_bytes() == file.read_bytes()
        assert same, f"{installed} is not that of the project; run: pip install -r requirements.txt"


def test_no_file_names_a_place_outside_the_project():
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout, so nothing says which files belong to the project")
    found = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    top = {name.split("/")[0] for name in found if not name.startswith(".")}
    agreed = {"notebooks", "helpers", "tests", "requirements.txt", "environment.yml", "README.md", "pyproject.toml"}
    assert top == agreed | {"LICENSE", "CHANGELOG.md"}
    for name in found:
        if name.endswith((".py", ".md", ".toml", ".yml", ".ipynb", ".txt")) and not name.startswith("tests/"):
            text = (ROOT / name).read_text(encoding="utf-8")
            assert not re.search(r"\.\./shared|(?<![\w.])/(work|root|home)/", text), name


@pytest.mark.slow
def test_types():
    pytest.importorskip("mypy", reason="the extra 'test' is not installed")
    found = subprocess.run([sys.executable, "-m", "mypy"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.returncode == 0, f"types are those of the pinned packages:\n{found.stdout}{found.stderr}"
