"""The measured ceilings against independent code in the same run: `python -m tests.tools.bench_machine [--rounds N]`.

Bandwidth against the kernels of STREAM in C (stream.c beside this file, compiled with gcc) and NumPy; the matmul peak
of each dtype against plain loops over sizes in torch and NumPy. All take turns, and of each the best round counts: a
disturbance only ever takes time. On a quiet machine ours is to be at least 0.95 of the best other for bandwidth, and
0.97 for a peak. C's streamed copy is shown apart: its stores go around the caches and so save reading what they
overwrite, which no op of PyTorch on a CPU does.
"""

import argparse
import os
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch

from helpers import machine, units

SIZES = (256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096)


def best_rate(amount: float, calls: list[Callable[[], object]], seconds: float) -> float:
    """The amount per second of the fastest of many calls, which take turns."""
    calls[0]()
    fastest, end, turn = float("inf"), time.perf_counter() + seconds, 0
    while turn < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        calls[turn % len(calls)]()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        fastest, turn = min(fastest, time.perf_counter() - start), turn + 1
    return amount / fastest


def best_matmul(make: Callable[[int], object], seconds: float) -> float:
    """The best FLOP/s of plain `a @ b` over sizes."""
    best, end = 0.0, time.perf_counter() + seconds
    for n in SIZES:
        if best and time.perf_counter() + 4 * 2 * n**3 / best > end:
            break
        a, b = make(n), make(n)
        best = max(best, best_rate(2 * n**3, [lambda a=a, b=b: a @ b], seconds / len(SIZES)))
    return best


def other_bandwidths(nbytes: int, seconds: float, stream: Path) -> Iterator[tuple[str, float]]:
    """Byte/s by others: C and NumPy on a CPU, a plain copy on a GPU."""
    if machine.device() == "cuda":
        x, y = (torch.ones(nbytes // 8, device="cuda") for _ in range(2))
        yield "plain copy", best_rate(nbytes, [lambda: y.copy_(x)], seconds)
        return
    found = subprocess.run([stream, str(nbytes), str(seconds)], capture_output=True, text=True, check=True)
    for kernel, rate in (line.split("\t") for line in found.stdout.splitlines()):
        yield f"C {kernel}", float(rate)
    parts = np.array_split(np.ones(nbytes // 8), 64)
    yield "NumPy, one core", best_rate(parts[-1].nbytes, [part.sum for part in parts], seconds / 2)


def other_peaks(name: str, seconds: float) -> Iterator[tuple[str, float]]:
    """FLOP/s by others: plain torch, and NumPy with the BLAS that it brings, where it knows the dtype."""
    dtype, where = getattr(torch, name), machine.device()
    yield "plain torch", best_matmul(lambda n: torch.rand(n, n, device=where).to(dtype), seconds)
    if name != "bfloat16":
        numbers = np.random.default_rng(0)
        yield "NumPy", best_matmul(lambda n: numbers.random((n, n)).astype(name), seconds)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.bench_machine", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="for each measurement of a round")
    chosen = parser.parse_args()
    best: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))

    def note(what: str, who: str, rate: float) -> None:
        best[what][who] = max(best[what][who], rate)

    with tempfile.TemporaryDirectory() as folder:
        stream, each = Path(folder) / "stream", chosen.seconds
        options = ["-O3", "-march=native", "-ffast-math", "-fopenmp"]
        subprocess.run(["gcc", *options, str(Path(__file__).with_name("stream.c")), "-o", stream], check=True)
        for turn in range(chosen.rounds):
            ours = machine.bandwidth(seconds=each)
            note("bandwidth", "ours", ours.byte_per_s)
            for who, rate in other_bandwidths(ours.nbytes, each, stream):
                note("bandwidth", who, rate)
            for name in ("float64", "float32", "bfloat16"):
                note(name, "ours", machine.peak(name, seconds=each).flop_per_s)
                for who, rate in other_peaks(name, each):
                    note(name, who, rate)
            print(f"round {turn + 1} of {chosen.rounds}, load {os.getloadavg()[0]:.1f}", flush=True)
    for what, rates in best.items():
        ours, wanted, unit = rates.pop("ours"), *((0.95, "B/s") if what == "bandwidth" else (0.97, "FLOP/s"))
        ratio = ours / max(rate for who, rate in rates.items() if who != "C streamed copy")
        verdict = "good" if ratio >= wanted else "too low, if the machine was quiet"
        others = ", ".join(f"{who} {units.si(rate, unit)}" for who, rate in rates.items())
        print(f"{what}: ours {units.si(ours, unit)}, {ratio:.3f} of the best other ({verdict}): {others}")


if __name__ == "__main__":
    main()
