"""For the trial: Unix users made for it, a running hub, and students who log in and run cells."""

import asyncio
import contextlib
import json
import os
import secrets
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import requests
from tornado.httpclient import HTTPRequest
from tornado.websocket import WebSocketClientConnection, websocket_connect

HERE = Path(__file__).resolve().parent
GROUP = "coursetry"
PATIENCE = 600  # seconds, for a loaded machine

# What differs from the configuration of this folder: ports, state and group; and with --plain, the settings of servers.
CONFIG = """
load_subconfig({config!r})
c = get_config()
c.JupyterHub.bind_url, c.JupyterHub.hub_port = "http://127.0.0.1:{ports[0]}", {ports[1]}
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{ports[2]}"
c.PAMAuthenticator.allowed_groups, c.PAMAuthenticator.admin_groups = {{{group!r}}}, set()
if {plain}:
    c.Spawner.environment, c.Spawner.args, c.Spawner.mem_limit = {{}}, [], None
"""


@contextlib.contextmanager
def class_of(number: int) -> Iterator[dict[str, str]]:
    """Unix users in a group of their own, made as in the guide; gives passwords by name. In the end they are gone."""
    subprocess.run(["groupadd", GROUP], check=True)  # fails if another trial runs, or one was killed
    passwords = {f"{GROUP}{i}": secrets.token_urlsafe() for i in range(1, number + 1)}
    try:
        for name in passwords:
            subprocess.run(["useradd", "-m", "-K", "HOME_MODE=0700", "-g", GROUP, name], check=True)
        lines = "".join(f"{name}:{password}\n" for name, password in passwords.items())
        subprocess.run(["chpasswd"], input=lines, text=True, check=True)
        yield passwords
    finally:
        for name in passwords:
            subprocess.run(["userdel", "--remove", name], check=False, stderr=subprocess.DEVNULL)  # no mail spool
        subprocess.run(["groupdel", GROUP], check=True)


@contextlib.contextmanager
def hub(state: Path, plain: bool = False) -> Iterator[str]:
    """A hub with its proxy on free ports of loopback; gives its address. In the end it stops, with every server."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(3)]
        ports = [one.getsockname()[1] for one in sockets]
    config, log, url = state / "config.py", state / "log", f"http://127.0.0.1:{ports[0]}"
    ours = str(HERE / "jupyterhub_config.py")
    config.write_text(CONFIG.format(config=ours, ports=ports, group=GROUP, plain=plain), encoding="utf-8")
    with log.open("w") as out:
        command = [Path(sys.prefix, "bin", "jupyterhub"), "-f", config]
        environment = os.environ | {"STATE_DIRECTORY": str(state)}
        process = subprocess.Popen(command, cwd=state, stdout=out, stderr=subprocess.STDOUT, env=environment)
    try:
        wait("the hub", lambda: process.poll() is not None or _answers(f"{url}/hub/health"))
        if process.poll() is not None:
            raise RuntimeError("the hub did not start")
        yield url
    except BaseException:
        lines = log.read_text().splitlines()
        print(*(line for line in lines if line.startswith(("[E", "[C", " "))), sep="\n", file=sys.stderr)
        raise
    finally:
        process.terminate()
        process.wait()


def _answers(url: str) -> bool:
    with contextlib.suppress(requests.ConnectionError):
        return requests.get(url, timeout=10).ok
    return False


def wait(what: str, done: Callable[[], bool]) -> None:
    """Ask until it is done. Raises TimeoutError after ten minutes."""
    end = time.monotonic() + PATIENCE
    while not done():
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not after {PATIENCE} s")
        time.sleep(0.3)


class Student:
    """Somebody who has logged in with a password, and whose server can be started, used and stopped."""

    def __init__(self, hub_url: str, name: str, password: str):
        self.hub, self.name, self.server = hub_url, name, f"{hub_url}/user/{name}"
        self.http = requests.Session()
        self.http.get(f"{hub_url}/hub/login")
        form = {"username": name, "password": password}
        self.http.post(f"{hub_url}/hub/login", data=form | self._xsrf(), allow_redirects=False).raise_for_status()
        # From here on a token instead of cookies: no more pages to fetch before each call.
        token = self.http.post(f"{hub_url}/hub/api/users/{name}/tokens", json={}, params=self._xsrf())
        token.raise_for_status()
        self.headers = {"Authorization": f"token {token.json()['token']}"}
        self.http = requests.Session()
        self.http.headers.update(self.headers)

    def _xsrf(self) -> dict[str, str]:
        return {"_xsrf": next(one.value for one in self.http.cookies if one.name == "_xsrf")}

    def start(self) -> None:
        """Start the server, without waiting for it."""
        self.http.post(f"{self.hub}/hub/api/users/{self.name}/server").raise_for_status()

    def runs(self) -> bool:
        """Whether the server answers."""
        return self.http.get(f"{self.server}/api/status").ok

    def stop(self) -> None:
        """Stop the server, and wait for its end."""
        self.http.delete(f"{self.hub}/hub/api/users/{self.name}/server").raise_for_status()
        wait("the end of a server", lambda: not self.runs())

    def ask(self, method: str, what: str, body: Any = None) -> Any:
        """A call of the server's REST API."""
        answer = self.http.request(method, f"{self.server}/api/{what}", json=body)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def end_kernels(self) -> None:
        """End every kernel of this student."""
        for one in self.ask("GET", "kernels"):
            self.ask("DELETE", f"kernels/{one['id']}")

    def kernel(self, notebook: str) -> str:
        """The id of a new kernel for that notebook, the only one of this student."""
        self.end_kernels()
        body = {"path": f"notebooks/{notebook}", "name": notebook, "type": "notebook", "kernel": {"name": "python3"}}
        return self.ask("POST", "sessions", body)["kernel"]["id"]

    async def run(self, kernel: str, *cells: str) -> list[tuple[str, str]]:
        """Run cells; of each, its text and its error as "Name: message", or ""."""
        url = f"{self.server.replace('http', 'ws', 1)}/api/kernels/{kernel}/channels"
        channel = await websocket_connect(HTTPRequest(url, headers=self.headers), max_message_size=2**28)
        results = [await _execute(channel, cell) for cell in cells]
        channel.close()
        return results


async def _execute(channel: WebSocketClientConnection, cell: str) -> tuple[str, str]:
    number = uuid.uuid4().hex
    header = {"msg_id": number, "msg_type": "execute_request", "username": "", "session": "try", "version": "5.3"}
    content = {"code": cell, "silent": False, "allow_stdin": False, "stop_on_error": False}
    message = {"channel": "shell", "header": header, "parent_header": {}, "metadata": {}, "content": content}
    await channel.write_message(json.dumps(message))
    text, error, awaited = "", "", {"execute_reply", "idle"}
    while awaited:
        answer = await channel.read_message()
        if answer is None:
            raise ConnectionError("the server closed the channel")
        if isinstance(answer, bytes):
            continue
        answer = json.loads(answer)
        kind, content = answer["msg_type"], answer["content"]
        if kind == "status" and content["execution_state"] == "restarting":
            return text, "KernelDied: it was killed"
        if answer["parent_header"].get("msg_id") == number:
            text += content.get("text", "") if kind == "stream" else content.get("data", {}).get("text/plain", "")
            error = f"{content['ename']}: {content['evalue']}" if kind == "error" else error
            awaited -= {kind, content.get("execution_state")}
    return text, error


def together(students: list[Student], notebook: str, *cells: str) -> list[list[tuple[str, str]]]:
    """Run the same cells on a fresh kernel of each student, all at the same time."""
    kernels = [student.kernel(notebook) for student in students]

    async def everybody() -> list[list[tuple[str, str]]]:
        runs = (student.run(kernel, *cells) for student, kernel in zip(students, kernels, strict=True))
        return await asyncio.gather(*runs)

    return asyncio.run(everybody())
