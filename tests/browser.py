"""JupyterLab in a browser, as a learner has it: a server with a copy of the notebooks, and one page for all tests.

What server and browser write lies in one temporary folder: the checkout, the home folder and other servers are left
alone. They talk over the loopback device, and nothing is downloaded.
"""

import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat

from tests.course import ROOT

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 60  # seconds for a thing to appear; it takes one, or several on a busy machine
LONGEST = 300  # seconds for a notebook to run


def lacking() -> str | None:
    """What this machine lacks to run a browser; None if nothing."""
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "the package playwright is missing: pip install -e '.[test]'"
    if not any(map(shutil.which, BROWSERS)):
        return f"none of {', '.join(BROWSERS)} is installed; on Debian: apt-get install chromium"
    return None


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """JupyterLab with `folder` as its world, on a free port; yields the address of its page with the token."""
    shutil.copytree(ROOT / "notebooks", folder / "course" / "notebooks")
    homes = {
        f"{name}_DIR": str(folder / name)
        for name in (
            "JUPYTER_CONFIG",
            "JUPYTER_DATA",
            "JUPYTER_RUNTIME",
            "JUPYTERLAB_SETTINGS",
            "JUPYTERLAB_WORKSPACES",
        )
    }
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = secrets.token_hex(16)
    # JUPYTER_PATH: the extension and the settings of this checkout, also where an older copy is installed.
    environment = os.environ | homes | {
        "IPYTHONDIR": str(folder / "ipython"), "JUPYTER_PATH": str(ROOT / ".jupyter" / "share" / "jupyter"),
        "JUPYTER_TOKEN": token,
    }  # fmt: skip
    options = [
        f"--ServerApp.port={port}", "--ServerApp.port_retries=0", "--ServerApp.ip=127.0.0.1", "--no-browser",
        "--allow-root", f"--ServerApp.root_dir={folder / 'course'}", "--LabApp.expose_app_in_browser=True",
    ]  # fmt: skip
    log = folder / "log"
    with log.open("w") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", *options], env=environment, cwd=folder, stdout=out, stderr=out
        )
    try:
        _wait_for(f"http://127.0.0.1:{port}/api?token={token}", process, log)
        yield f"http://127.0.0.1:{port}/lab/tree/notebooks/00_start_here.ipynb?token={token}"
    finally:
        process.terminate()  # which also ends its kernels
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()


def _wait_for(address: str, process: subprocess.Popen, log: Path) -> None:
    end = time.monotonic() + PATIENCE
    while True:
        try:
            urllib.request.urlopen(address, timeout=PATIENCE).close()
            return
        except urllib.error.URLError:
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"JupyterLab did not start:\n{log.read_text()}") from None
            time.sleep(0.1)


class Desk:
    """A page with JupyterLab. One notebook is open at a time; `page` is Playwright's."""

    def __init__(self, page: Any, address: str, folder: Path) -> None:
        self.page, self.folder = page, folder / "course" / "notebooks"
        self.opened = "00_start_here.ipynb"
        page.set_default_timeout(1000 * PATIENCE)
        page.goto(address)
        self.until("() => window.jupyterapp?.shell.currentWidget?.context?.isReady")

    def until(self, script: str, argument: Any = None, seconds: float = PATIENCE) -> Any:
        """Wait for the script, a function, to return something true, and return that."""
        found = self.page.wait_for_function(script, arg=argument, timeout=1000 * seconds, polling=100)
        return found.json_value()

    def do(self, command: str, **arguments: Any) -> Any:
        """Execute one of JupyterLab's commands; waits for its end."""
        script = "([name, args]) => jupyterapp.commands.execute(name, args).then(() => null)"
        return self.page.evaluate(script, [command, arguments])

    def open(self, name: str) -> None:
        """Open a notebook with a kernel that is ready, in place of the one that is open."""
        self.close()
        self.opened = name
        self.do("docmanager:open", path=f"notebooks/{name}")
        self.page.evaluate("""async () => {
            const panel = jupyterapp.shell.currentWidget;
            await Promise.all([panel.context.ready, panel.revealed, panel.sessionContext.ready]);
            await panel.sessionContext.session.kernel.info;
        }""")

    def close(self) -> None:
        """Save and close the open notebook, and end its kernel."""
        self.page.evaluate("""async () => {
            const panel = jupyterapp.shell.currentWidget;
            if (!panel?.sessionContext) return;
            await panel.context.save();
            await panel.sessionContext.shutdown();
            panel.close();
        }""")

    def write(self, name: str, *cells: str) -> None:
        """Make a notebook of these code cells."""
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in cells])
        notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3 (ipykernel)"}
        nbformat.write(notebook, self.folder / name)

    def run_all(self, count: int) -> None:
        """Clear all outputs and run all cells from the menu, until `count` code cells have run or one has failed."""
        self.do("notebook:clear-all-cell-outputs")
        self.page.get_by_role("menuitem", name="Run", exact=True).click()
        self.page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        self.until(
            """count => document.querySelector(".jp-RenderedText[data-mime-type$=error]")
            || [...document.querySelectorAll(".jp-InputPrompt")].some((prompt) => prompt.textContent == `[${count}]:`)
            && jupyterapp.shell.currentWidget.sessionContext.session.kernel.status == "idle" """,
            count, LONGEST,
        )  # fmt: skip

    def cell(self, text: str) -> Any:
        """The code cell that holds this text."""
        return self.page.locator(".jp-CodeCell").filter(has=self.page.locator(".cm-content", has_text=text))

    def replace(self, cell: Any, source: str) -> None:
        """Type another source into a cell, and run it."""
        cell.locator(".cm-content").click()
        self.page.keyboard.press("ControlOrMeta+A")
        self.page.keyboard.insert_text(source)
        self.page.keyboard.press("Shift+Enter")


@contextmanager
def desk(folder: Path) -> Iterator[Desk]:
    """A server, a browser and a page, all of which end with the block."""
    from playwright.sync_api import sync_playwright

    browser = next(path for name in BROWSERS if (path := shutil.which(name)))
    quiet = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
    quiet += ["--disable-component-update", "--disable-sync"]
    with server(folder) as address, sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=browser, args=quiet)
        yield Desk(running.new_page(viewport={"width": 1280, "height": 900}), address, folder)
        running.close()
