"""The course's measurements and counts against independent code: `python -m tests.tools.bench [ROUNDS]`.

All take turns, and of each the best round counts: a disturbance only ever takes time. Bandwidth against NumPy on every
core; the peak of each dtype against plain loops in torch and NumPy; the time to count GPT-3 175B, forward and backward
on meta, against FlopCounterMode. On a quiet machine ours is to be at least 0.95 of the best other for bandwidth, 0.97
for a peak, and 1 / 1.2 for counting. NumPy's copy is shown, but not compared: the C library's stores may go around the
caches, as no op of PyTorch on a CPU does.
"""

import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from helpers import machine, units
from helpers.counting import count
from helpers.model import GPT, MODELS

SECONDS = 1.0  # for each measurement of a round


def best_rate(amount: float, call: Callable[[], object], seconds: float) -> float:
    """The amount per second of the fastest of many calls."""
    call()
    fastest, end, turn = float("inf"), time.perf_counter() + seconds, 0
    while turn < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        fastest, turn = min(fastest, time.perf_counter() - start), turn + 1
    return amount / fastest


def best_matmul(make: Callable[[int], object]) -> float:
    """The best FLOP/s of plain `a @ b` over sizes."""
    best, end = 0.0, time.perf_counter() + SECONDS
    for n in (256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096):
        if best and time.perf_counter() + 4 * 2 * n**3 / best > end:
            break
        a, b = make(n), make(n)
        best = max(best, best_rate(2 * n**3, lambda a=a, b=b: a @ b, SECONDS / 9))
    return best


def bandwidths() -> Iterator[tuple[str, float]]:
    """Byte/s by us and by others."""
    ours = machine.bandwidth(seconds=SECONDS)
    yield "ours", ours.byte_per_s
    if machine.device() == "cuda":
        x, y = (torch.ones(ours.nbytes // 8, device="cuda") for _ in range(2))
        yield "plain copy", best_rate(ours.nbytes, lambda: y.copy_(x), SECONDS)
        return
    cores = torch.get_num_threads()
    with ThreadPoolExecutor(cores) as team:
        for arrays, (name, kernel) in enumerate((("read", np.sum), ("copy", np.copyto), ("add", np.add)), 1):
            parts = [np.array_split(np.ones(ours.nbytes // 8 // arrays), cores) for _ in range(arrays)]
            yield f"NumPy's {name}", best_rate(ours.nbytes, lambda: [*team.map(kernel, *parts)], SECONDS)  # noqa: B023


def peaks(name: str) -> Iterator[tuple[str, float]]:
    """FLOP/s of a dtype by us and by others; NumPy brings its own BLAS and knows no bfloat16."""
    dtype, where, numbers = getattr(torch, name), machine.device(), np.random.default_rng(0)
    yield "ours", machine.peak(name, seconds=SECONDS).flop_per_s
    yield "plain torch", best_matmul(lambda n: torch.rand(n, n, device=where).to(dtype))
    if name != "bfloat16":
        yield "NumPy", best_matmul(lambda n: numbers.random((n, n)).astype(name))


def counts() -> Iterator[tuple[str, float]]:
    """Counts per second of this process, of GPT-3 175B; on meta nothing else than bookkeeping takes time."""
    with torch.device("meta"):
        gpt, ids = GPT(MODELS["GPT-3 175B"]), torch.zeros(1, 2048, dtype=torch.long)

    def step() -> None:
        gpt.zero_grad()
        F.cross_entropy(gpt(ids).flatten(0, 1), ids.flatten()).backward()

    def theirs() -> None:
        with FlopCounterMode(display=False):
            step()

    step()
    for who, run in (("ours", lambda: count(step)), ("FlopCounterMode", theirs), ("not counted", step)):
        start = time.process_time()
        run()
        yield who, 1 / (time.process_time() - start)


def main(rounds: int = 5) -> None:
    """Print a line for each thing that is compared."""
    best: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    runs = {"bandwidth": bandwidths, "counts": counts}
    runs |= {name: lambda name=name: peaks(name) for name in ("float64", "float32", "bfloat16")}
    for _ in range(rounds):
        for what, run in runs.items():
            for who, rate in run():
                best[what][who] = max(best[what][who], rate)
    for what, rates in best.items():
        unit = {"bandwidth": "B/s", "counts": "/s"}.get(what, "FLOP/s")
        others = rates.keys() - {"ours", "NumPy's copy", "not counted"}
        ratio = rates["ours"] / max(rates[who] for who in others)
        told = ", ".join(f"{who} {units.si(rate, unit)}" for who, rate in rates.items())
        print(f"{what}: ours is {ratio:.3f} of the best other ({told})")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
