"""That each condition of tests.stability holds where it says so: a probe runs there in place of the tests."""

import json
import shutil
import subprocess
import sys

import pytest

from tests.course import ROOT
from tests.stability import CONDITIONS, Place

PROBE = """
import importlib.util, json, locale, os, socket, sys, time
import psutil
def works(action):
    try:
        action()
    except OSError:
        return False
    return True
def connect():  # to an address for documentation, where nobody is: without a network there is not even a way to it
    found = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    found.connect(("192.0.2.1", 9))
def itself():
    server = socket.create_server(("127.0.0.1", 0))
    socket.create_connection(server.getsockname())
busy = ["vector" ".add_" in " ".join(other.cmdline()) for other in psutil.Process(os.getppid()).children()]
print(json.dumps({
    "folder": os.getcwd(), "helpers": importlib.util.find_spec("helpers").origin,
    "threads": os.environ.get("OMP_NUM_THREADS"), "zone": time.tzname[0],
    "language": locale.setlocale(locale.LC_ALL, "")[:2],
    "writes": works(lambda: open("written", "w").close()), "network": works(connect), "itself": works(itself),
    "home": os.environ.get("HOME"), "randomly": any("randomly" in part for part in sys.path), "busy": sum(busy),
}))
"""


def probe(tmp_path, name):
    """What the probe finds under a condition."""
    place = Place(tmp_path)
    try:
        CONDITIONS[name](place)
    except (OSError, subprocess.CalledProcessError) as problem:
        pytest.skip(f"not possible here: {problem}")
    place.clone()
    done = place.run([sys.executable, "-c", PROBE])
    if done.returncode and place.before:
        pytest.skip(f"no namespaces here: {done.stderr.strip()[-200:]}")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(autouse=True)
def checkout():
    if not (ROOT / ".git").exists() or not shutil.which("unshare"):
        pytest.skip("needs a git checkout and Linux")


@pytest.mark.parametrize(
    ("name", "holds"),
    [
        ("plain", lambda found: found["writes"] and found["itself"] and not found["randomly"] and not found["busy"]),
        ("one-thread", lambda found: found["threads"] == "1"),
        ("two-threads", lambda found: found["threads"] == "2"),
        ("load", lambda found: found["busy"] == 2),
        ("locale", lambda found: found["zone"] == "+14" and found["language"] not in ("C", "en")),
        ("path", lambda found: " " in found["folder"] and not found["folder"].isascii()),
        ("read-only", lambda found: not found["writes"]),
        ("no-network", lambda found: not found["network"] and found["itself"]),
        ("no-home", lambda found: found["home"] is None),
    ],
)
def test_the_condition_holds(tmp_path, name, holds):
    found = probe(tmp_path, name)
    assert (
        found["helpers"] == f"{found['folder']}/helpers/__init__.py"
    )  # the clone's own helpers, not those of another checkout
    assert holds(found), found
