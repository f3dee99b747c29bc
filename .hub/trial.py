"""Try the hub, as root: `python .hub/trial.py [--students N] [--notebooks NN ...] [--shots DIR] [--plain]`.

Students who are made for it, and removed again, log in, get the course and run notebooks at the same time; one of them
tries to reach what belongs to another; an edit has to outlive a restart; what they take is printed at each step. With
playwright and a Chromium installed, two of them also work in browsers, and --shots keeps pictures of that.
--plain takes JupyterHub's own settings for the servers, to compare with; then some of the tries succeed.
"""

import argparse
import asyncio
import importlib.util
import json
import os
import pwd
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import memory
from students import HERE, PATIENCE, Student, class_of, hub, together, wait

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
NOTEBOOKS = sorted((HERE.parent / "notebooks").glob("[0-9][0-9]_*.ipynb"))
IMPORTS = "from helpers import budget, counting, draw, explore, machine\nfrom helpers.selfcheck import check"

# What one student does to another from a notebook, and how it is refused.
TRIES = {
    "list the other's home": ("os.listdir(home)", "PermissionError"),
    "read the other's notebook": ("open(f'{home}/notebooks/00_start_here.ipynb')", "PermissionError"),
    "read it with a command": (
        "subprocess.run(['cat', f'{home}/notebooks/00_start_here.ipynb'], check=True)",
        "CalledProcessError",
    ),
    "write a file there": ("open(f'{home}/notebooks/mine.txt', 'w')", "PermissionError"),
    "find the files of the other's kernels": ("os.listdir(f'{home}/.local/share/jupyter/runtime')", "PermissionError"),
    "read the token of the other's server": ("open(f'/proc/{server}/environ')", "PermissionError"),
    "stop the other's server": ("os.kill(server, 15)", "PermissionError"),
    "ask the other's server through the hub": (
        "web.urlopen(web.Request(f'{through_hub}/api/contents', headers=mine))",
        "HTTPError: HTTP Error 403",
    ),
    "ask it past the hub": (
        "web.urlopen(web.Request(f'{address}api/contents', headers=mine))",
        "HTTPError: HTTP Error 403",
    ),
    "listen to what the other's kernel prints": ("assert heard(ports), 'nothing'", "AssertionError: nothing"),
    "change the course for all": ("import helpers; open(helpers.__file__, 'a')", "PermissionError"),
    "change the environment for all": ("open(f'{sys.prefix}/mine.txt', 'w')", "PermissionError"),
    "read the hub's database": ("open(f'{state}/hub.sqlite')", "PermissionError"),
    "take 8 GB": ("import torch; torch.empty(2 * 10**9)", "RuntimeError: "),
}
# A kernel on TCP sends its output to whoever connects and subscribes.
PRELUDE = """
import os, subprocess, sys, time, urllib.request as web, zmq

def heard(ports):
    listener = zmq.Context.instance().socket(zmq.SUB)
    listener.subscribe(b"")
    for port in ports:
        listener.connect(f"tcp://127.0.0.1:{port}")
    end = time.monotonic() + 10
    while time.monotonic() < end:
        if listener.poll(100) and b"my answer is 42" in b"".join(listener.recv_multipart()):
            return True

"""
# In JupyterLab: the prompts of the code cells, and the tab of the notebook that is shown.
PROMPT = ".jp-NotebookPanel:visible .jp-CodeCell .jp-InputPrompt"
TAB = ".lm-DockPanel-tabBar .lm-TabBar-tab.lm-mod-current"
PRINT = "import time\nfor _ in range(200):\n    print('my answer is 42', flush=True)\n    time.sleep(0.1)"

failed: list[str] = []


def say(good: bool, what: str, found: object = "") -> None:
    """Print a line of the report."""
    print(f"{'ok    ' if good else 'FAILED'} {what} {' '.join(str(found).split())[:100]}".rstrip(), flush=True)
    if not good:
        failed.append(what)


def code_of(path: Path) -> list[dict[str, Any]]:
    """The code cells of a notebook."""
    return [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]


def fails(cell: dict[str, Any]) -> bool:
    """Whether a cell shows an error on purpose."""
    return "raises-exception" in cell["metadata"].get("tags", [])


def run_all(students: list[Student], path: Path) -> None:
    """Run a whole notebook for everybody at the same time: the only errors are those that it shows on purpose."""
    cells, begin = code_of(path), time.monotonic()
    results = together(students, path.name, *("".join(cell["source"]) for cell in cells))
    seconds = time.monotonic() - begin
    wrong = [
        error for one in results for cell, (_, error) in zip(cells, one, strict=True) if bool(error) != fails(cell)
    ]
    say(not wrong, f"{len(students)} ran {path.name} at the same time in {seconds:.0f} s", wrong[:1] or "")
    print(memory.table(memory.processes()), flush=True)


def listening(uid: int) -> list[int]:
    """The TCP ports on which a user's processes listen; every user of a machine can see that."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [int(line[1].split(":")[1], 16) for line in lines if line[3] == "0A" and int(line[7]) == uid]


def server_of(uid: int) -> tuple[int, str]:
    """The process id of a user's server, and its own address."""
    for folder in Path("/proc").glob("[0-9]*"):
        if folder.stat().st_uid == uid and memory.kind_of((folder / "cmdline").read_text()) == "server":
            pairs = (pair.split("=", 1) for pair in (folder / "environ").read_text().split("\0") if "=" in pair)
            return int(folder.name), dict(pairs)["JUPYTERHUB_SERVICE_URL"]
    raise LookupError(f"user {uid} has no server")


def reach(thief: Student, victim: Student, state: Path) -> None:
    """All that TRIES says, from a notebook of the one against the other, whose kernel is printing."""
    kernels = thief.kernel(NOTEBOOKS[0].name), victim.kernel(NOTEBOOKS[1].name)
    asyncio.run(victim.run(kernels[1], "1"))  # then it listens
    user = pwd.getpwnam(victim.name)
    server, address = server_of(user.pw_uid)
    names = {"home": user.pw_dir, "server": server, "address": address, "ports": listening(user.pw_uid)}
    names |= {"through_hub": victim.server, "mine": thief.headers, "state": str(state)}
    prelude = PRELUDE + "\n".join(f"{name} = {value!r}" for name, value in names.items())

    async def both() -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
        codes = (code for code, _ in TRIES.values())
        return await asyncio.gather(thief.run(kernels[0], prelude, *codes), victim.run(kernels[1], PRINT))

    ((_, trouble), *results), _ = asyncio.run(both())
    say(not trouble, "the thief is ready", trouble)
    for (what, (_, refusal)), (_, error) in zip(TRIES.items(), results, strict=True):
        say(error.startswith(refusal), f"refused: {what}:", error or "it worked")


def keep(student: Student) -> None:
    """An edit is still there after a new start of the server."""
    path = f"contents/notebooks/{NOTEBOOKS[1].name}"
    notebook = student.ask("GET", path)["content"]
    notebook["cells"][0]["source"] = "my own words"
    student.ask("PUT", path, {"type": "notebook", "format": "json", "content": notebook})
    student.stop()
    student.start()
    wait("a server", student.runs)
    kept = student.ask("GET", path)["content"]["cells"][0]["source"]
    say(kept == "my own words", "an edit outlives a new start of the server", kept)


def browse(hub_url: str, students: list[Student], passwords: dict[str, str], shots: Path | None) -> None:
    """Log in, land in notebook 00, run all of it and then of 01, in a browser for each student."""
    from playwright.sync_api import expect, sync_playwright

    def picture(what: str) -> None:
        for student, page in pages.items():
            if shots:
                page.screenshot(path=shots / f"{student.name}_{what}.png")

    with sync_playwright() as playwright:
        options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        pages: dict[Student, Any] = {}
        for student in students:
            student.end_kernels()
            page = pages[student] = chromium.new_context(viewport={"width": 1280, "height": 800}).new_page()
            page.set_default_timeout(120_000)
            page.goto(hub_url)
            page.fill("#username_input", student.name)
            page.fill("#password_input", passwords[student.name])
            page.click("#login_submit")
            page.wait_for_url(f"**/user/{student.name}/lab/tree/notebooks/{NOTEBOOKS[0].name}*")
            page.wait_for_selector(".jp-NotebookPanel:visible .jp-Cell:visible")
            say(True, f"{student.name} logs in and lands in", page.url.split("/")[-1])
        picture("landed")
        for path in NOTEBOOKS[:2]:
            for page in pages.values():
                page.locator(".jp-DirListing-item", has_text=path.name[:8]).dblclick()
                page.wait_for_selector(f"{TAB}:has-text('{path.name[:8]}')")
                page.wait_for_selector(".jp-NotebookPanel:visible .jp-Notebook-ExecutionIndicator[data-status=idle]")
                _choose(page, "Edit", "Clear Outputs of All Cells")
            for page in pages.values():  # all begin before any has finished
                _choose(page, "Run", "Run All Cells")
                expect(page.locator(PROMPT).last).to_have_text("[*]:")
            code = code_of(path)
            for student, page in pages.items():
                expect(page.locator(PROMPT).last).to_have_text(f"[{len(code)}]:", timeout=1000 * PATIENCE)
                page.keyboard.press("Control+s")
                page.wait_for_selector(f"{TAB}:not(.jp-mod-dirty)")
                cells = student.ask("GET", f"contents/notebooks/{path.name}")["content"]["cells"]
                outputs = [cell["outputs"] for cell in cells if cell["cell_type"] == "code"]
                errors = ["error" in [output["output_type"] for output in one] for one in outputs]
                say(
                    errors == [fails(cell) for cell in code],
                    f"{student.name} runs all of {path.name} in a browser and saves it",
                )
            picture(path.stem)
        chromium.close()


def _choose(page: Any, *items: str) -> None:
    for item in items:
        page.get_by_role("menuitem", name=item, exact=True).click()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python .hub/trial.py", description=__doc__.partition("\n")[0])
    parser.add_argument("--students", type=int, default=2, help="how many, at least 2 (default 2)")
    parser.add_argument("--notebooks", nargs="*", default=["00", "06"], metavar="NN", help="which to run (00 06)")
    parser.add_argument("--shots", type=Path, help="a folder for pictures of the browsers")
    parser.add_argument("--plain", action="store_true", help="servers as JupyterHub starts them by default")
    arguments = parser.parse_args()
    if os.geteuid():
        sys.exit("only root can make users and start processes as them")
    with tempfile.TemporaryDirectory() as folder, class_of(max(2, arguments.students)) as passwords:
        state = Path(folder)
        with hub(state, arguments.plain) as url:
            students = [Student(url, name, password) for name, password in passwords.items()]
            for student in students:
                student.start()
            for student in students:
                wait("a server", student.runs)
            say(True, f"{len(students)} students log in with their passwords, and their servers run")
            for student in students:
                brought = [file["name"] for file in student.ask("GET", "contents/notebooks")["content"]]
                mode = Path(pwd.getpwnam(student.name).pw_dir).stat().st_mode & 0o777
                good = sorted(brought) == [path.name for path in NOTEBOOKS] and mode == 0o700
                say(good, f"{student.name} has the notebooks in a home of mode {mode:o}")
            print(memory.table(memory.processes()))
            for what, cell in (("a kernel at rest", "1"), ("the course imported", IMPORTS)):
                together(students, NOTEBOOKS[0].name, cell)
                print(f"{what}:\n{memory.table(memory.processes())}", flush=True)
            for path in NOTEBOOKS:
                if path.name[:2] in arguments.notebooks:
                    run_all(students, path)
            reach(students[0], students[1], state)
            keep(students[0])
            if CHROMIUM and importlib.util.find_spec("playwright"):
                browse(url, students[:2], passwords, arguments.shots)
            else:
                print("not tried: a browser, for want of playwright or of a Chromium")
    sys.exit(f"{len(failed)} of the tries above failed" if failed else None)


if __name__ == "__main__":
    main()
