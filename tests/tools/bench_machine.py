"""The measured ceilings against independent code in the same run: `python -m tests.tools.bench_machine [--rounds N]`.

Bandwidth against the kernels of STREAM in C (tests/stream.c, compiled here with gcc) and NumPy; the matmul peak of each
dtype against plain loops over sizes in torch and NumPy. All take turns, round by round, and of each the best round
counts: a disturbance only ever takes time. The ratio of ours to the best of the others is to be at least 0.95 for
bandwidth and 0.97 for a peak. C's streamed copy is shown apart: its stores go around the caches and so save reading
what they overwrite, which no op of PyTorch on a CPU does.
"""

import argparse
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from helpers import machine, units

SIZES = (256, 512, 768, 1024, 1536, 2048, 3072, 4096)


def best_rate(amount: float, call: Callable[[], object], seconds: float) -> float:
    """The amount per second of the fastest of many calls."""
    call()
    fastest, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        call()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        fastest = min(fastest, time.perf_counter() - start)
    return amount / fastest


def torch_matmul(dtype: torch.dtype, seconds: float) -> float:
    """The best of plain `a @ b` over sizes."""
    return best_matmul(lambda n: torch.rand(n, n, device=machine.device()).to(dtype), seconds)


def numpy_matmul(dtype: str, seconds: float) -> float:
    """The best of NumPy's `a @ b` over sizes, with the BLAS that NumPy brings."""
    return best_matmul(lambda n: np.random.default_rng(0).random((n, n)).astype(dtype), seconds)


def best_matmul(make: Callable[[int], object], seconds: float) -> float:
    best, end = 0.0, time.perf_counter() + seconds
    for n in SIZES:
        a, b = make(n), make(n)
        start = time.perf_counter()
        _ = a @ b
        if time.perf_counter() + 3 * (time.perf_counter() - start) > end:
            break
        best = max(best, best_rate(2 * n**3, lambda a=a, b=b: a @ b, seconds / len(SIZES)))
    return best


def numpy_bandwidth(nbytes: int, seconds: float) -> float:
    """The best of NumPy's copy and sum, a sixteenth of the memory at a time, on one core."""
    x = np.ones(nbytes // 8)
    parts = [x[start : start + x.size // 16] for start in range(0, x.size, x.size // 16)][:16]
    best, end, turn = 0.0, time.perf_counter() + seconds, 0
    while time.perf_counter() < end:
        part, half = parts[turn % 16], parts[turn % 16].size // 2
        for call in (part.sum, lambda half=half, part=part: np.copyto(part[:half], part[half : 2 * half])):
            start = time.perf_counter()
            call()
            best = max(best, part.nbytes / (time.perf_counter() - start))
        turn += 1
    return best


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.bench_machine", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="for each measurement of a round")
    chosen = parser.parse_args()
    where, each = machine.device(), chosen.seconds
    ours: dict[str, list[float]] = defaultdict(list)
    others: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    with tempfile.TemporaryDirectory() as folder:
        stream, nbytes = Path(folder) / "stream", machine.bandwidth(seconds=0.1).nbytes
        if where == "cpu":
            source = Path(__file__).with_name("stream.c")
            options = ["-O3", "-march=native", "-ffast-math", "-fopenmp"]
            subprocess.run(["gcc", *options, str(source), "-o", str(stream)], check=True)
        for turn in range(chosen.rounds):
            ours["bandwidth"].append(machine.bandwidth(seconds=each).byte_per_s)
            if where == "cpu":
                found = subprocess.run([stream, str(nbytes), str(each)], capture_output=True, text=True, check=True)
                for line in found.stdout.splitlines():
                    kernel, rate = line.split("\t")
                    others["bandwidth"][f"C {kernel}"].append(float(rate))
                others["bandwidth"]["NumPy, one core"].append(numpy_bandwidth(nbytes, each / 2))
            else:
                x, y = torch.ones(nbytes // 8, device=where), torch.ones(nbytes // 8, device=where)
                others["bandwidth"]["plain copy"].append(best_rate(nbytes, lambda x=x, y=y: y.copy_(x), each))
                others["bandwidth"]["plain sum"].append(best_rate(nbytes // 2, x.sum, each))
                del x, y
            for name in ("float64", "float32", "bfloat16") + (("float16",) if where == "cuda" else ()):
                ours[name].append(machine.peak(name, seconds=each).flop_per_s)
                others[name]["plain torch"].append(torch_matmul(getattr(torch, name), each))
                if name != "bfloat16":
                    others[name]["NumPy"].append(numpy_matmul(name, each))
            print(f"round {turn + 1} of {chosen.rounds}", flush=True)
    rows = []
    for name, rates in ours.items():
        unit = "B/s" if name == "bandwidth" else "FLOP/s"
        rivals = {key: max(found) for key, found in others[name].items() if key != "C streamed copy"}
        best_name, best = max(rivals.items(), key=lambda pair: pair[1])
        wanted = 0.95 if name == "bandwidth" else 0.97
        ratio = max(rates) / best
        verdict = "good" if ratio >= wanted else "too low"
        rows.append(
            [name, units.si(max(rates), unit), units.si(best, unit), best_name, f"{ratio:.3f}", wanted, verdict]
        )
    print(units.table(["what", "ours", "best other", "which", "ratio", "wanted", ""], rows))
    for name, found in others.items():
        unit = "B/s" if name == "bandwidth" else "FLOP/s"
        print(f"{name}: " + ", ".join(f"{key} {units.si(max(rates), unit)}" for key, rates in found.items()))


if __name__ == "__main__":
    main()
