"""The hub of a class, as far as it can be tested without one; `.hub/trial.py` starts one and tries it."""

import importlib
import importlib.util
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from traitlets.config import Config

from tests.tools.course import NOTEBOOKS, ROOT

HUB = ROOT / ".hub"
GUIDE = (HUB / "README.md").read_text(encoding="utf-8")


def script(name):
    """A file of the hub as a module."""
    spec = importlib.util.spec_from_file_location(f"hub_{name}", HUB / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module


start, memory = script("start"), script("memory")


def notebook(*sources, outputs=()):
    """The text of a notebook with these cells."""
    cells = [{"cell_type": "code", "source": source, "outputs": list(outputs)} for source in sources]
    return json.dumps({"cells": cells, "nbformat": 4})


@pytest.fixture
def folders(tmp_path):
    """The course with one notebook, and a student's folder that is not there yet."""
    course = tmp_path / "course"
    course.mkdir()
    (course / "01_a.ipynb").write_text(notebook("1"))
    return course, tmp_path / "home" / "notebooks"


def deliver(course, mine):
    mine.parent.mkdir(exist_ok=True)
    return start.deliver(course, mine)


def contents(folder):
    return {path.name: path.read_text() for path in folder.glob("*.ipynb")}


# --- the notebooks of a student --------------------------------------------------------------------------------------


def test_the_notebooks_arrive_once(folders):
    course, mine = folders
    assert deliver(course, mine) == ["01_a.ipynb -> 01_a.ipynb"]
    assert contents(mine) == {"01_a.ipynb": notebook("1")}
    assert deliver(course, mine) == []


def test_the_real_notebooks_arrive(tmp_path):
    deliver(start.COURSE, tmp_path / "notebooks")
    assert sorted(contents(tmp_path / "notebooks")) == [path.name for path in NOTEBOOKS]


def test_a_new_version_replaces_what_was_only_run(folders):
    course, mine = folders
    deliver(course, mine)
    (mine / "01_a.ipynb").write_text(notebook("1", outputs=[{"output_type": "stream", "text": "1"}]))
    assert deliver(course, mine) == []  # to run it is no reason to bring it again
    (course / "01_a.ipynb").write_text(notebook("2"))
    assert deliver(course, mine) == ["01_a.ipynb -> 01_a.ipynb"]
    assert contents(mine) == {"01_a.ipynb": notebook("2")}


@pytest.mark.parametrize("edited", [notebook("mine"), notebook("1", "mine"), notebook(), "{broken", ""])
def test_a_new_version_comes_beside_what_was_edited(folders, edited):
    course, mine = folders
    deliver(course, mine)
    (mine / "01_a.ipynb").write_text(edited)
    assert deliver(course, mine) == []  # no news, no second file
    (course / "01_a.ipynb").write_text(notebook("2"))
    assert deliver(course, mine) == ["01_a.ipynb -> 01_a (2).ipynb"]
    assert contents(mine) == {"01_a.ipynb": edited, "01_a (2).ipynb": notebook("2")}
    assert deliver(course, mine) == []
    (mine / "01_a (2).ipynb").unlink()  # looked at, and thrown away: it does not come again
    assert deliver(course, mine) == []
    (course / "01_a.ipynb").write_text(notebook("3"))
    assert deliver(course, mine) == ["01_a.ipynb -> 01_a (2).ipynb"]
    (mine / "01_a (2).ipynb").write_text(notebook("mine, too"))
    (course / "01_a.ipynb").write_text(notebook("4"))
    assert deliver(course, mine) == ["01_a.ipynb -> 01_a (3).ipynb"]
    assert contents(mine)["01_a (2).ipynb"] == notebook("mine, too")


def test_what_was_deleted_comes_again(folders):
    course, mine = folders
    deliver(course, mine)
    (mine / "01_a.ipynb").rename(mine / "old.ipynb")
    assert deliver(course, mine) == ["01_a.ipynb -> 01_a.ipynb"]


@pytest.mark.parametrize("record", ["", "{", "[1, 2]", '"x"', None])
def test_without_its_record_it_takes_everything_for_edited(folders, record):
    course, mine = folders
    deliver(course, mine)
    (mine / ".course.json").unlink() if record is None else (mine / ".course.json").write_text(record)
    assert deliver(course, mine) == []
    (course / "01_a.ipynb").write_text(notebook("2"))
    assert deliver(course, mine) == ["01_a.ipynb -> 01_a (2).ipynb"]
    assert contents(mine)["01_a.ipynb"] == notebook("1")


def test_a_copy_that_fails_half_way_leaves_the_old_one(folders, monkeypatch):
    course, mine = folders
    deliver(course, mine)

    def full(source, target):
        Path(target).write_text("ha")
        raise OSError("no space left")

    (course / "01_a.ipynb").write_text(notebook("2"))
    with monkeypatch.context() as patch, pytest.raises(OSError, match="no space"):
        patch.setattr(start.shutil, "copyfile", full)
        deliver(course, mine)
    assert contents(mine) == {"01_a.ipynb": notebook("1")}
    assert deliver(course, mine) == ["01_a.ipynb -> 01_a.ipynb"]


def test_no_order_of_events_loses_work(tmp_path_factory):
    """Teacher and student do what they like: what a student wrote is there until the student changes it."""

    class Term(RuleBasedStateMachine):
        def __init__(self):
            super().__init__()
            folder = tmp_path_factory.mktemp("term")
            self.course, self.mine, self.written, self.count = folder / "course", folder / "mine", {}, 0
            self.course.mkdir()
            self.publish()
            self.log_in()

        def _new(self):
            self.count += 1
            return notebook(f"version {self.count}")

        @rule()
        def publish(self):
            (self.course / "01_a.ipynb").write_text(self._new())

        @rule()
        def log_in(self):
            start.deliver(self.course, self.mine)
            latest = start.digest(self.course / "01_a.ipynb")
            assert latest in json.loads((self.mine / ".course.json").read_text()).values()

        @rule(data=st.data())
        def edit(self, data):
            if names := sorted(contents(self.mine)):
                name = data.draw(st.sampled_from(names))
                self.written[name] = self._new()
                (self.mine / name).write_text(self.written[name])

        @rule(data=st.data())
        def delete(self, data):
            if names := sorted(contents(self.mine)):
                name = data.draw(st.sampled_from(names))
                self.written.pop(name, None)
                (self.mine / name).unlink()

        @invariant()
        def work_is_there(self):
            assert self.written.items() <= contents(self.mine).items()

    run_state_machine_as_test(Term, settings=settings(max_examples=25, stateful_step_count=15, deadline=None))


# --- the start of a student's server ---------------------------------------------------------------------------------


@pytest.mark.parametrize("disk", ["fine", "full"])
def test_a_server_starts_in_a_private_home_whatever_the_disk_says(disk, tmp_path, monkeypatch, capfd):
    became, limits = [], []
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MEM_LIMIT", "1000")
    monkeypatch.setattr(start.sys, "argv", ["start.py", "--port=1"])
    monkeypatch.setattr(start.os, "execv", lambda program, arguments: became.append((program, arguments)))
    monkeypatch.setattr(start, "limit", limits.append)
    if disk == "full":
        monkeypatch.setattr(start.shutil, "copyfile", lambda *_: (_ for _ in ()).throw(OSError("no space left")))
    before = os.umask(0o022)
    try:
        start.main()
        assert os.umask(0o022) == 0o077  # what the server writes, nobody else reads
    finally:
        os.umask(before)
    assert became == [(sys.executable, [sys.executable, "-m", "jupyterhub.singleuser", "--port=1"])]
    assert limits == [1000]
    assert tmp_path.stat().st_mode & 0o777 == 0o700
    assert len(contents(tmp_path / "notebooks")) == (len(NOTEBOOKS) if disk == "fine" else 0)
    assert ("no space left" in capfd.readouterr().err) == (disk == "full")


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux, whose limit counts what a process allocates")
def test_beyond_the_limit_an_allocation_fails_and_the_process_lives():
    code = """
import runpy; runpy.run_path("start.py")["limit"](300 * 10**6)
try:
    bytearray(10**9)
except MemoryError:
    print("lives with", len(bytearray(10**8)))
"""
    run = subprocess.run([sys.executable, "-c", code], cwd=HUB, capture_output=True, text=True, check=True)
    assert run.stdout == "lives with 100000000\n"


# --- the configuration -----------------------------------------------------------------------------------------------


@pytest.fixture
def config(tmp_path, monkeypatch):
    """The configuration, executed as JupyterHub does."""
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    path, found = HUB / "jupyterhub_config.py", Config()
    exec(compile(path.read_text(encoding="utf-8"), path, "exec"), {"get_config": lambda: found, "__file__": str(path)})
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700
    return found


def test_the_hub_is_on_loopback_and_every_student_is_a_user_of_the_system(config):
    assert config.JupyterHub.bind_url.startswith("http://127.0.0.1:")
    assert config.JupyterHub.spawner_class == "jupyterhub.spawner.LocalProcessSpawner"
    assert config.JupyterHub.authenticator_class == "pam"
    assert config.PAMAuthenticator.allowed_groups == {"students", "teachers"}
    assert config.Spawner.cmd == [sys.executable, str(HUB / "start.py")]
    assert (ROOT / config.Spawner.default_url.removeprefix("/lab/tree/")).exists()


def options(config):
    """The options of a student's server as {class name: {trait: value}}."""
    pairs = [re.fullmatch(r"--(\w+)\.(\w+)=(\w+)", argument).groups() for argument in config.Spawner.args]
    return {name: {trait: value for owner, trait, value in pairs if owner == name} for name, _, _ in pairs}


def test_the_options_of_a_server_are_known_to_jupyter(config):
    found = options(config)
    homes = {
        "KernelManager": "jupyter_client.manager",
        "MappingKernelManager": "jupyter_server.services.kernels.kernelmanager",
        "ServerApp": "jupyter_server.serverapp",
    }
    assert set(found) == set(homes)
    for name, traits in found.items():
        known = getattr(importlib.import_module(homes[name]), name).class_traits(config=True)
        assert set(traits) <= set(known)
    assert found["KernelManager"]["transport"] == "ipc"
    assert int(found["MappingKernelManager"]["cull_idle_timeout"]) > 0
    assert int(found["ServerApp"]["shutdown_no_activity_timeout"]) > 0


def test_jupyterlab_knows_the_setting_that_ends_a_kernel_with_its_tab(config):
    defaults = json.loads((HUB / "labconfig" / "default_setting_overrides.json").read_text(encoding="utf-8"))
    assert config.Spawner.environment["JUPYTER_CONFIG_PATH"] == str(HUB)
    for plugin, values in defaults.items():
        package, name = plugin.split(":")
        schema = Path(sys.prefix, "share", "jupyter", "lab", "schemas", package, f"{name}.json")
        properties = json.loads(schema.read_text(encoding="utf-8"))["properties"]
        assert set(values) <= set(properties)
        assert all(properties[key]["default"] != value for key, value in values.items())


def test_the_options_of_the_hub_are_known_to_jupyterhub(config):
    pytest.importorskip("jupyterhub", reason="JupyterHub is not installed: pip install -e '.[hub]'")
    homes = {
        "JupyterHub": "jupyterhub.app",
        "ConfigurableHTTPProxy": "jupyterhub.proxy",
        "PAMAuthenticator": "jupyterhub.auth",
        "Spawner": "jupyterhub.spawner",
    }
    assert set(config) == set(homes)
    for name, values in config.items():
        assert set(values) <= set(getattr(importlib.import_module(homes[name]), name).class_traits(config=True))


# --- the measuring, and the guide ------------------------------------------------------------------------------------


def test_memory_is_summed_by_student(tmp_path):
    def process(number, command, pss, private):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "cmdline").write_text("\0".join(command) + "\0")
        rollup = f"55-7f ---p 00 00:00 0 [rollup]\nRss: 9000 kB\nPss: {pss} kB\nPss_Dirty: 1 kB\n"
        (folder / "smaps_rollup").write_text(f"{rollup}Private_Clean: 1000 kB\nPrivate_Dirty: {private} kB\n")
        (folder / "status").write_text("Name:\tpython\nUid:\t0\t0\nVmHWM:\t   20000 kB\n")

    process(1, ["python", "-m", "jupyterhub.singleuser", "--port=1"], 2000, 500)
    process(2, ["python", "-m", "ipykernel_launcher", "-f", "x"], 3000, 1500)
    process(3, ["python", "-m", "ipykernel_launcher", "-f", "jupyterhub"], 5000, 2500)
    process(4, ["node", "bin/configurable-http-proxy", "--ip"], 700, 0)
    process(5, ["python", "bin/jupyterhub", "-f", "x"], 800, 0)
    process(6, ["grep", "-r", "pattern", "jupyterhub"], 10**6, 0)
    (tmp_path / "7").mkdir()  # it ended meanwhile
    (tmp_path / "version").write_text("Linux")
    found = memory.processes(tmp_path)
    assert {kind: len(all_of_them) for kind, all_of_them in next(iter(found.values())).items()} == {
        "server": 1,
        "kernel": 2,
        "proxy": 1,
        "hub": 1,
    }
    _, student, mean, hub = memory.table(found).splitlines()
    megabytes = [round(kib * 1024 / 1e6) for kib in (27000, 7500, 10000, 60000)]
    assert [int(cell) for cell in student.split()[1:6]] == [2, *megabytes] == [2, 28, 8, 10, 61]
    assert student.endswith("2 + 8")
    assert mean.split()[3:8] == student.split()[1:6]
    assert hub.split()[6] == "2"


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="needs Linux, which counts shared pages")
def test_memory_of_this_process_is_what_the_system_says():
    resident = int(re.search(r"VmRSS:\s+(\d+) kB", Path("/proc/self/status").read_text()).group(1)) * 1024
    found = memory.of(Path("/proc/self"))
    assert found.rss == pytest.approx(resident, rel=0.05)
    assert 0 < found.uss <= found.pss <= found.rss <= found.peak


def test_the_guide_names_what_is_there():
    for target in re.findall(r"\]\(([^)]+)\)", GUIDE):
        assert target.startswith("https://") or (HUB / target).exists(), target
    for path in re.findall(r"\.hub/[\w.]+", GUIDE):
        assert (ROOT / path).exists(), path
    assert re.search(r"configurable-http-proxy@\d+\.\d+\.\d+\b", GUIDE)
    pins = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", pin) for pin in pins["hub"])
