"""The configuration for a class: a hub starts with it, and a student on it gets a server and a kernel."""

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest
from traitlets.config import PyFileConfigLoader

from tests.tools.browser import PATIENCE
from tests.tools.course import ROOT

pytestmark = pytest.mark.slow

# In place of what The Littlest JupyterHub brings: users without passwords, one system user, no proxy in front.
CONFIG = """
from jupyterhub.proxy import Proxy
class NoProxy(Proxy):
    should_start, routes = False, {{}}
    async def add_route(self, routespec, target, data): self.routes[routespec] = dict(target=target, data=data)
    async def delete_route(self, routespec): self.routes.pop(routespec, None)
    async def get_all_routes(self): return self.routes
c = get_config()
load_subconfig({course!r})
c.JupyterHub.update(authenticator_class="dummy", spawner_class="simple", proxy_class=NoProxy, hub_port={hub},
    bind_url="http://127.0.0.1:{public}", services=[dict(name="test", api_token="{token}")],
    load_roles=[dict(name="test", scopes=["admin:users", "admin:servers", "access:servers"], services=["test"])])
c.Authenticator.allow_all = True
c.SimpleLocalProcessSpawner.home_dir_template = {home!r}
c.Spawner.update(port={port}, cmd=[{python!r}, "-m", "jupyterhub.singleuser"])
c.Spawner.args.append("--allow-root")
"""


@pytest.fixture
def hub():
    """How to ask a hub with the configuration for a class, and the only student's server; and the student's home."""
    pytest.importorskip("jupyterhub", reason="the extra 'hub' is not installed")
    home, token = Path(tempfile.mkdtemp()), secrets.token_hex(16)  # short: the name of a socket has at most 107 letters
    free = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
    ports = dict(zip(("public", "hub", "port"), (one.getsockname()[1] for one in free), strict=True))
    for one in free:
        one.close()
    course = str(ROOT / ".hub" / "jupyterhub_config.py")
    config = CONFIG.format(**ports, token=token, course=course, home=str(home), python=sys.executable)
    (home / "config.py").write_text(config)

    def ask(path, data=None):
        """The answer to a request; tried again where nobody listens yet."""
        address = f"http://127.0.0.1:{ports['hub' if path.startswith('/hub') else 'port']}{path}"
        request = Request(address, data, {"Authorization": f"token {token}"})
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                with urlopen(request, timeout=PATIENCE) as answer:
                    return json.loads(answer.read() or "null")
            except URLError:
                assert process.poll() is None, (home / "log").read_text()
                time.sleep(0.2)
        raise AssertionError((home / "log").read_text())

    with (home / "log").open("w") as log:
        command = [sys.executable, "-m", "jupyterhub", "-f", "config.py"]
        process = subprocess.Popen(command, cwd=home, stdout=log, stderr=log)
    yield ask, home
    process.terminate()  # which also ends the student's server
    process.wait(PATIENCE)
    shutil.rmtree(home, ignore_errors=True)


def test_a_student_gets_a_server_whose_kernels_nobody_else_can_listen_to(hub):
    ask, home = hub
    ask("/hub/api/users/ada", b"")
    ask("/hub/api/users/ada/server", b"")
    kernel = ask("/user/ada/api/kernels", b"{}")["id"]
    (connection,) = home.rglob(f"kernel-{kernel}.json")
    assert json.loads(connection.read_text())["transport"] == "ipc"


def test_a_kernel_takes_the_helpers_above_its_notebook(tmp_path):
    (config,) = (ROOT / ".hub").glob("*.py")
    environment = os.environ | dict(PyFileConfigLoader(config.name, config.parent).load_config().Spawner.environment)
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "helpers.py").touch()
    command = [sys.executable, "-c", "import helpers; print(helpers.__file__)"]
    ran = subprocess.run(
        command, cwd=tmp_path / "notebooks", env=environment, capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == str(tmp_path / "helpers.py")
