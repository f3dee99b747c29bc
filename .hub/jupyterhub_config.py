"""One JupyterHub for a class: `jupyterhub -f .hub/jupyterhub_config.py`, as root. The guide is this folder's README.md.

Every student is a Unix user of this machine, so that the system itself keeps their files and processes apart. All run
the one environment that this hub was installed into.
"""

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
STATE = Path(os.environ.get("STATE_DIRECTORY", "/var/lib/course-hub"))  # systemd's variable, if it starts the hub
STATE.mkdir(mode=0o700, parents=True, exist_ok=True)

c = get_config()  # noqa: F821 (JupyterHub puts it here)

# --- The hub and its proxy, on loopback. Before a network sees it, put a web server with TLS in front.
c.JupyterHub.bind_url = "http://127.0.0.1:8000"
c.ConfigurableHTTPProxy.command = [str(Path(sys.prefix, "bin", "configurable-http-proxy"))]
c.ConfigurableHTTPProxy.pid_file = str(STATE / "proxy.pid")
c.JupyterHub.db_url = f"sqlite:///{STATE / 'hub.sqlite'}"
c.JupyterHub.cookie_secret_file = str(STATE / "cookie_secret")

# --- Who may come in: the members of two Unix groups, with the password that they have on this machine.
c.JupyterHub.authenticator_class = "pam"
c.PAMAuthenticator.allowed_groups = {"students", "teachers"}
c.PAMAuthenticator.admin_groups = {"teachers"}

# --- A server for each, as that user. SimpleLocalProcessSpawner would run all of them as one user: then every student
# can read, change and stop what belongs to the others.
c.JupyterHub.spawner_class = "jupyterhub.spawner.LocalProcessSpawner"
c.Spawner.cmd = [sys.executable, str(HERE / "start.py")]  # brings the notebooks, then becomes the student's server
c.Spawner.default_url = "/lab/tree/notebooks/00_start_here.ipynb"
c.Spawner.start_timeout = c.Spawner.http_timeout = 180  # seconds: thirty students press Start at once
c.Spawner.disable_user_config = True
# LocalProcessSpawner only passes it on. start.py sets it for each process, and the notebooks measure in what it leaves.
c.Spawner.mem_limit = "2G"
c.Spawner.environment = {
    "JUPYTER_CONFIG_PATH": str(HERE),  # labconfig: a notebook's kernel ends when its tab is closed
    "OMP_NUM_THREADS": str(min(2, os.cpu_count() or 1)),  # thirty kernels of 16 threads would only wait for each other
}
c.Spawner.args = [
    # Sockets in the student's own folder. On TCP, every user of the machine can listen to what a kernel prints.
    "--KernelManager.transport=ipc",
    # What is forgotten ends: kernels after an hour without a cell running, servers after an hour without a kernel.
    "--MappingKernelManager.cull_idle_timeout=3600",
    "--MappingKernelManager.cull_connected=True",
    "--ServerApp.shutdown_no_activity_timeout=3600",
    "--ServerApp.terminals_enabled=False",
]
