"""What a class needs of its JupyterHub. README.md says where The Littlest JupyterHub wants it."""

import os

c = get_config()  # noqa: F821 (JupyterHub puts it here)

c.Spawner.default_url = "/lab"
c.Spawner.start_timeout = c.Spawner.http_timeout = 180  # seconds: thirty students press Start at once
c.Spawner.mem_limit = "3G"  # a cell that asks for more fails, and the machine does not; the spawner must enforce it
c.Spawner.environment = {
    "OMP_NUM_THREADS": str(min(2, os.cpu_count() or 1)),  # thirty kernels of 16 threads would only wait for each other
    "PYTHONPATH": "..",  # above the notebook: a student's notebooks meet the helpers of the same checkout
}
c.Spawner.args = [
    # Kernels talk through sockets of the student: on TCP, every user of the machine can listen to what one prints.
    "--KernelManager.transport=ipc",
    # What is forgotten ends: kernels after an hour without a cell running, servers after an hour without a kernel.
    "--MappingKernelManager.cull_idle_timeout=3600",
    "--MappingKernelManager.cull_connected=True",
    "--ServerApp.shutdown_no_activity_timeout=3600",
]
