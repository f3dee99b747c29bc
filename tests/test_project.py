"""The files around the course: what the README promises, and the one list of dependencies."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.tools.course import NOTEBOOKS, ROOT, read

README = (ROOT / "README.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
REQUIREMENTS = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()


def tracked() -> list[str]:
    """The files that git tracks."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout, so nothing says which files belong to the project")
    return subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


def commands() -> dict[str, str]:
    """The README's commands by the comment that marks them."""
    return dict(re.findall(r"<!-- (\w+) -->\n```sh\n(.+)\n```", README))


def test_the_readme_has_its_commands():
    assert set(commands()) == {"open", "test", "live", "slides", "pages"}
    for name, command in commands().items():
        extra = {"open": "", "test": " -e '.[test]'"}.get(name, " -e '.[teach]'")
        setup = f"python3 -m venv .venv && .venv/bin/python -m pip install -r requirements.txt{extra} && "
        assert command.startswith(f"{setup}.venv/bin/python -m ")
    for name in ("open", "live"):
        assert commands()[name].endswith("jupyter lab --LabApp.default_url=/lab/tree/notebooks/00_start_here.ipynb")
    for name in ("slides", "pages"):
        assert commands()[name].endswith(f"python -m helpers.export {name} --out build/{name}")


def test_ci_runs_the_test_command_of_the_readme():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    extract = re.search(r"sed -n '([^']+)'", script).group(1)
    found = subprocess.run(["sed", "-n", extract, "README.md"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == commands()["test"]
    assert "\nexport COURSE_BROWSER=required\n" in script


def test_the_map_has_a_true_row_for_every_notebook():
    rows = re.findall(r"^\| \[(.+?)\]\((.+?)\) \| (.+?) \| (\d+) \| (\w+) \|$", README, re.MULTILINE)
    assert [row[1] for row in rows] == [f"notebooks/{path.name}" for path in NOTEBOOKS]
    for (title, _, question, minutes, _), path in zip(rows, NOTEBOOKS, strict=True):
        opening = read(path).cells[0].source
        assert opening.startswith(f"# {title}")
        assert question in opening
        assert f"{minutes} minutes" in opening


def test_links_of_the_readme_lead_somewhere():
    for target in re.findall(r"\]\(([^)]+)\)", README):
        assert target.startswith("https://") or (ROOT / target).exists(), target


def test_every_known_tag_is_explained():
    from tests.test_notebooks import KNOWN_TAGS

    assert set(re.findall(r"^\| `([\w-]+)` \|", README, re.MULTILINE)) == KNOWN_TAGS


def test_requirements_are_pinned_exactly_and_end_in_the_project():
    pins = [line for line in REQUIREMENTS if line and not line.startswith("#")]
    assert pins[-1] == "-e ."
    extras = PROJECT["project"]["optional-dependencies"]
    assert extras["test"][-1] == f"{PROJECT['project']['name']}[hub,teach]"
    for line in [*pins[:-1], *extras["test"][:-1], *extras["teach"]]:
        assert re.fullmatch(r"[\w.\[\]-]+==[\w.]+", line), line


def test_environment_is_python_pip_and_the_one_list():
    lines = (ROOT / "environment.yml").read_text(encoding="utf-8").splitlines()
    after = lines[lines.index("dependencies:") + 1 :]
    assert after == ["  - python=3.11", "  - pip", "  - pip:", "      - -r requirements.txt"]


def test_the_top_level_is_the_agreed_one():
    top = {name.split("/")[0] for name in tracked()}
    agreed = {"notebooks", "helpers", "tests", "requirements.txt", "environment.yml", "README.md", "pyproject.toml"}
    assert {name for name in top if not name.startswith(".")} == agreed | {"LICENSE"}


def test_jupyterlab_has_the_settings_that_the_project_ships():
    shipped = ROOT / ".jupyter/share/jupyter/lab/settings/overrides.d/resource-accounting.json"
    assert PROJECT["tool"]["flit"]["external-data"]["directory"] == ".jupyter"
    data = Path(sys.prefix, "share", "jupyter")
    for plugin in json.loads(shipped.read_text(encoding="utf-8")):
        package, _, name = plugin.partition(":")
        places = (data / "lab" / "schemas" / package, data / "labextensions" / package / "schemas" / package)
        if package.startswith("@jupyterlab/") or places[1].parents[2].exists():  # the extra may be absent
            assert any((place / f"{name}.json").exists() for place in places), plugin


def test_jupyterlab_has_the_files_that_the_project_ships():
    shipped = [file for file in (ROOT / ".jupyter").rglob("*") if file.is_file()]
    assert any(file.name == "remoteEntry.js" for file in shipped)
    for file in shipped:
        installed = Path(sys.prefix, file.relative_to(ROOT / ".jupyter"))
        same = installed.is_file() and installed.read_bytes() == file.read_bytes()
        assert same, f"{installed} is not that of the project; run: pip install -r requirements.txt"


@pytest.mark.parametrize("pattern", [r"\.\./shared", r"/work/", r"/root/", r"/home/"])
def test_no_file_names_a_place_outside_the_project(pattern):
    for name in tracked():
        if name.endswith((".py", ".md", ".toml", ".yml", ".ipynb", ".txt")) and not name.startswith("tests/"):
            assert not re.search(pattern, (ROOT / name).read_text(encoding="utf-8")), name


def test_no_words_on_stderr_where_cuda_is_installed_but_no_gpu():
    search = (
        "; from torch.utils import cpp_extension; cpp_extension._find_cuda_home()"  # as its import does in a CUDA build
    )
    environment = os.environ | {"CUDA_HOME": str(ROOT), "CUDA_VISIBLE_DEVICES": ""}
    for imports, warned in (("import torch", True), ("from helpers import timing", False)):
        command = [sys.executable, "-c", imports + search]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
        assert ("No CUDA runtime is found" in done.stderr) == warned
