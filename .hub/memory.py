"""What a class takes: the memory of every student who has a server now. Run it as root: `python .hub/memory.py`.

Four measures, in MB (10^6 byte). RSS counts every page that a process can see, so a library that thirty students share
is counted thirty times; peak is the highest RSS so far. USS counts what nobody else has: what comes free when the
student goes. PSS divides a shared page by the number of its users, so only PSS can be added up: its sum is what the
class takes. Linux only.
"""

import pwd
import sys
from collections import defaultdict
from dataclasses import dataclass, fields
from pathlib import Path


@dataclass(frozen=True)
class Memory:
    """Bytes by four measures; they add."""

    rss: int = 0
    uss: int = 0
    pss: int = 0
    peak: int = 0

    def __add__(self, other: "Memory") -> "Memory":
        return Memory(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


def of(process: Path) -> Memory:
    """The memory of the process with that folder in /proc."""
    lines = (process / "smaps_rollup").read_text().splitlines()[1:] + (process / "status").read_text().splitlines()
    found = {line.split()[0]: int(line.split()[1]) * 1024 for line in lines if line.endswith(" kB")}
    uss = found["Private_Clean:"] + found["Private_Dirty:"]
    return Memory(found["Rss:"], uss, found["Pss:"], found["VmHWM:"])


_KINDS = {
    "ipykernel_launcher": "kernel",
    "jupyterhub-singleuser": "server",
    "jupyterhub.singleuser": "server",
    "configurable-http-proxy": "proxy",
    "jupyterhub": "hub",
}


def kind_of(cmdline: str) -> str | None:
    """What the text of a /proc/PID/cmdline is: "kernel", "server" (a student's), "hub", "proxy", or None."""
    return next((_KINDS[name] for part in cmdline.split("\0")[:3] if (name := Path(part).name) in _KINDS), None)


def processes(proc: Path = Path("/proc")) -> dict[str, dict[str, list[Memory]]]:
    """By user and kind, the memory of each process that belongs to a hub."""
    found: dict[str, dict[str, list[Memory]]] = defaultdict(lambda: defaultdict(list))
    for folder in proc.glob("[0-9]*"):
        try:
            kind = kind_of((folder / "cmdline").read_text(errors="replace"))
            if kind:
                found[_name(folder.stat().st_uid)][kind].append(of(folder))
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended while we looked
    return found


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def table(found: dict[str, dict[str, list[Memory]]]) -> str:
    """A row for each student, their mean, and a row for the hub with its proxy."""
    students = {user: kinds for user, kinds in sorted(found.items()) if "server" in kinds}
    rows = [f"{'':16} {'kernels':>7} {'RSS':>7} {'USS':>7} {'PSS':>7} {'peak':>7}   of PSS server + kernels"]
    sums = []
    for user, kinds in students.items():
        server, kernels = sum(kinds["server"], Memory()), sum(kinds["kernel"], Memory())
        sums.append((len(kinds["kernel"]), server, kernels))
        rows.append(_row(user, *sums[-1]))
    if sums:
        count = len(sums)
        total = [sum((one[i] for one in sums), Memory()) for i in (1, 2)]
        mean = [Memory(*(getattr(one, f.name) // count for f in fields(one))) for one in total]
        rows.append(_row(f"mean of {count}", sum(one[0] for one in sums) / count, *mean))
    both = [one for kinds in found.values() for kind in ("hub", "proxy") for one in kinds.get(kind, [])]
    rows.append(_row("hub and proxy", 0, sum(both, Memory()), Memory()))
    return "\n".join(rows)


def _row(name: str, count: float, server: Memory, kernels: Memory) -> str:
    both = server + kernels
    cells = " ".join(f"{value / 1e6:7.0f}" for value in (both.rss, both.uss, both.pss, both.peak))
    return f"{name:16} {count:7.3g} {cells}   {server.pss / 1e6:.0f} + {kernels.pss / 1e6:.0f}"


if __name__ == "__main__":
    try:
        print(table(processes()))
    except PermissionError:
        sys.exit("the memory of other users' processes can only be read as root")
