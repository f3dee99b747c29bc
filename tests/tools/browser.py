"""A browser for tests, and JupyterLab in it as a learner has it: a server with a copy of the notebooks, and one page.

What server and browser write lies in one temporary folder: the checkout, the home folder and other servers are left
alone. They talk over the loopback device, and nothing is downloaded.
"""

import contextlib
import importlib.util
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
import pytest
from nbformat import NotebookNode

from tests.tools.course import HURRY, ROOT

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 120  # seconds for a thing to appear; it takes one, and many on a busy machine
LONGEST = 300  # seconds for a notebook to run


def lacking() -> str:
    """Why no browser can run here, or ""."""
    if not importlib.util.find_spec("playwright"):
        return "the package playwright is missing: pip install -e '.[test]'"
    if not any(map(shutil.which, BROWSERS)):
        return f"none of {', '.join(BROWSERS)} is on the PATH; on Debian: apt-get install chromium"
    return ""


def skip(reason: str) -> None:
    """Skip a test for a reason, if there is one, such as `lacking()`; fail it where COURSE_BROWSER=required."""
    if reason:
        (pytest.fail if os.environ.get("COURSE_BROWSER") == "required" else pytest.skip)(reason)


@contextmanager
def chromium() -> Iterator[Any]:
    """A headless Chromium, as playwright's browser, which asks nobody for news and keeps nothing."""
    from playwright.sync_api import sync_playwright

    path = next(found for name in BROWSERS if (found := shutil.which(name)))
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=path)
        try:
            yield found
        finally:
            found.close()


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """JupyterLab with `folder` as its world, on a free port; yields the address of its page with the token."""
    shutil.copytree(ROOT / "notebooks", folder / "course" / "notebooks", ignore=shutil.ignore_patterns(".*"))
    names = ("_CONFIG", "_DATA", "_RUNTIME", "LAB_SETTINGS", "LAB_WORKSPACES")
    homes = {f"JUPYTER{name}_DIR": str(folder / name) for name in names}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = secrets.token_hex(16)
    # JUPYTER_PATH: the extension and the settings of this checkout, also where an older copy is installed.
    environment = (
        os.environ
        | homes
        | {
            "IPYTHONDIR": str(folder / "ipython"),
            "JUPYTER_PATH": str(ROOT / ".jupyter" / "share" / "jupyter"),
            "JUPYTER_TOKEN": token,
        }
    )
    options = [
        f"--ServerApp.port={port}",
        "--ServerApp.port_retries=0",
        "--ServerApp.ip=127.0.0.1",
        "--no-browser",
        "--allow-root",
        f"--ServerApp.root_dir={folder / 'course'}",
        "--LabApp.expose_app_in_browser=True",
    ]
    startup = folder / "ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "hurry.py").write_text(HURRY)  # nobody reads what the kernels measure here
    log = folder / "log"
    with log.open("w") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", *options], env=environment, cwd=folder, stdout=out, stderr=out
        )
    try:
        _wait_for(f"http://127.0.0.1:{port}/api?token={token}", process, log)
        yield f"http://127.0.0.1:{port}/lab?token={token}"
    finally:
        process.terminate()  # which also ends its kernels
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()


def _wait_for(address: str, process: subprocess.Popen, log: Path) -> None:
    end = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < end:
        with contextlib.suppress(urllib.error.URLError):
            return urllib.request.urlopen(address, timeout=PATIENCE).close()
        time.sleep(0.1)
    raise RuntimeError(f"JupyterLab did not start:\n{log.read_text()}")


class Desk:
    """A page with JupyterLab. One notebook is open at a time; `page` is Playwright's."""

    def __init__(self, page: Any, address: str, folder: Path) -> None:
        self.page, self.folder = page, folder / "course" / "notebooks"
        page.set_default_timeout(1000 * PATIENCE)
        page.goto(address)
        self.until("() => window.jupyterapp && jupyterapp.restored.then(() => true)")

    def until(self, script: str, argument: Any = None, seconds: float = PATIENCE) -> Any:
        """Wait for the script, a function, to return something true, and return that."""
        found = self.page.wait_for_function(script, arg=argument, timeout=1000 * seconds, polling=100)
        return found.json_value()

    def do(self, command: str, **arguments: Any) -> Any:
        """Execute one of JupyterLab's commands; waits for its end."""
        script = "([name, args]) => jupyterapp.commands.execute(name, args).then(() => null)"
        return self.page.evaluate(script, [command, arguments])

    def open(self, name: str) -> None:
        """Open a notebook, one of the course as it is stored, with a kernel that is ready, in place of the last one."""
        self.close()
        if (original := ROOT / "notebooks" / name).exists():
            shutil.copy(original, self.folder)
        self.page.evaluate(
            """async (path) => {
            // The widget that the command gives: what is current may on a busy machine still be another.
            const panel = await jupyterapp.commands.execute("docmanager:open", { path });
            await Promise.all([panel.context.ready, panel.revealed, panel.sessionContext.ready]);
            await panel.sessionContext.session.kernel.info;
            // The widgets' own first question has its answer then, too: a kernel that is busy before loses a view.
            await panel.sessionContext.session.kernel.requestCommInfo({target_name: "jupyter.widget"});
            jupyterapp.shell.activateById(panel.id);
        }""",
            f"notebooks/{name}",
        )

    def close(self) -> None:
        """Save and close the open notebook, and end its kernel."""
        self.page.evaluate("""async () => {
            const panel = jupyterapp.shell.currentWidget;
            if (!panel?.sessionContext) return;
            await panel.context.save();
            await panel.sessionContext.shutdown();
            panel.close();
        }""")

    def write(self, name: str, *cells: str | NotebookNode) -> None:
        """Make a notebook of these cells, when the open one, which may have its name, is saved and closed.

        A text is a code cell.
        """
        self.close()
        made = [cell if isinstance(cell, NotebookNode) else nbformat.v4.new_code_cell(cell) for cell in cells]
        notebook = nbformat.v4.new_notebook(cells=made)
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
            count,
            LONGEST,
        )

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
def desk(browser: Any, folder: Path) -> Iterator[Desk]:
    """A server and a page in a browser; the server ends with the block."""
    with server(folder) as address:
        yield Desk(browser.new_page(viewport={"width": 1280, "height": 900}), address, folder)
