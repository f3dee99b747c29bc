"""The exercises of notebook 06."""

import math
import random
from collections.abc import Callable

import torch

from helpers.exercises.exercise import choices, exercise, guess, notebook, part, parts, whole

notebook("06")

# fmt: off

guess("layer_of_8_on_h100", "Most of the peak is out of reach: the bytes arrive too slowly.",
    (989.5e12, "That takes 295 FLOPs for each byte."),
    (3.35e12, "That is the rate at 1 FLOP for each byte."),
    *((rate, "The peak does not come into it: multiply the bandwidth by 8.") for rate in (989.5e12 / 8, 989.5e12 * 8)),
    (3.35e12 / 8, "The intensity multiplies the bandwidth: bytes/s × FLOP/byte."),
    (8, "That is the intensity: how many FLOP/s does it allow?"), (295, "That is the ridge, in FLOP per byte."),
    (26.8, "In FLOP/s: × 10¹²."), (26.8e9, "A tera is 10¹², not 10⁹."))
guess("misses_of_fourteen", "Section 7 puts each miss into a bracket.",
    *((count, "There are fourteen operations: how many of them?") for count in ((14.1, math.inf), (-math.inf, -0.1))),
    (0, "Then two numbers would tell all fourteen, more or less."),
    (14, "The roof was measured with operations like these: some come close to it."))
guess("faster_a100", "The layer gains from the faster memory until it meets the ceiling.",
    (1.07, "So it would be if the intensity were the batch, 187: inputs and results are bytes, too, so it is 171."),
    (1.31, "That is about the memory's gain: the ceiling cuts it off."),
    (1, "With 40 GB it waits for its bytes: it gains."),
    (0.85, "How many times as fast: more than 1."), (2, "The memory is 1.31 times as fast: no more than that."),
    *((gain, "If you mean 17 % faster, that is 1.17 times.") for gain in ((15, 120), 0.17)),
    (31, "Not in per cent, and the ceiling cuts the memory's gain off."))
guess("bfloat16_here", "",
    (lambda right: None if 1.7 < right < 2.5 else 2,
     "Half the bits are half the bytes. For the FLOPs the chip needs a unit."),
    (1, "The bits alone do not tell: the chip's units decide."),
    (lambda right: 0.5 if right > 0.6 else None, "Slower is a chip without instructions for bfloat16."),
    (lambda right: (0.3, 0.9) if right < 0.2 else None, "Slower, but by far more: here it has no fast kernel."),
    ((3.5, 50), "Only matrix units give such a factor: how large it is depends on the chip."))
guess("attention_of_32", "Attention takes eight times as long, since each user has a KV cache; q k v hardly longer.",
    (78, "Their FLOPs grow alike, but left of the ridge the bytes decide: whose bytes grow with the users?"),
    ((20, 77), "It grows: each user brings a KV cache, while all share the weights of q k v."),
    ((87, 91), "Attention takes eight times as long, q k v hardly longer: 8 · 78 beside 22."),
    ((100.1, math.inf), "A share of both is below 100 %."), ((1.1, 19.9), "In percent: with 4 users it is 78."),
    (100, "Nearly: the weights of q k v are still read."),
    (97, "From the rounded 78 % you get 97: as good as right."), ((0.01, 1), "In percent, please."))
guess("gelu_in_a_cache", "What a cache does not make faster is the kernel's own work.",
    (lambda right: (0, 0.8) if right > 0.9 else None, "Slower, though its bytes come from a cache?"),
    (lambda right: (1.2, math.inf) if right < 1.3 else None,
     "So it might be if main memory were the reason: left of the ridge is a place, not yet a cause."))
guess("ridge_of_all_cores", "The peak grows with the cores, the bandwidth with what their one memory has left.",
    (lambda right: 1 if right > 1.2 else None, "Then the bandwidth would grow as the peak does: all share one memory."),
    (lambda right: (0, 0.95) if right > 1 else None,
     "To the left it goes only where the bandwidth grows by more than the peak."))
guess("strided_sum", "Each of those numbers lies in a cache line of its own, and lines move whole.",
    (lambda right: (0.5, 1.5) if right > 3 else None,
     "By its formula, yes: but how many of the matrix's cache lines hold one of those numbers?"),
    (lambda right: (0.01, 0.2) if right > 3 else None,
     "A sixteenth of the matrix is what the roof's time counts already."),
    (lambda right: 16 if right > 16 else None,
     "That is what whole lines explain; the rest is slower work, numbers taken one by one."))
guess("gelu_by_erf", "",
    (lambda right: 1 if right > 1.3 else None, "The same bytes, but not the same work: their kernels differ."),
    (lambda right: (0.01, 0.95) if right > 1.2 else None, "Here it is the faster one of the two."),
    (9, "That is the most that fusion can bring, and these two are both fused."))

parts("read_roofline",
    ridge=part(100e12 / 2e12, [
        (0.02, "It is upside down: the ridge is in FLOP per byte."),
        (2e12, "That is the slope, in bytes per second: at which intensity does it meet the ceiling?"),
        (2, "That is the slope, in TB/s: at which intensity does it meet the ceiling?"),
        (100, "That is the height of the place, in TFLOP/s: read the intensity below it."),
    ], unit="FLOP/B", tolerance=0.09, quantities={"the bandwidth": 2e12}),
    at_10=part(2e12 * 10, [
        (100e12, "That is the ceiling. At 10 FLOP/B you are left of the ridge: the bytes arrive too slowly for it."),
        (2e12, "That is the bandwidth, the height at 1 FLOP/B: what do ten FLOPs for each byte make of it?"),
    ], unit="FLOP/s", tolerance=0.09, quantities={"the intensity": 10, "the bandwidth": 2e12}),
    at_200=part(100e12, [
        (400e12, "You went on up the slope. At 200 FLOP/B you are right of the ridge: what is the most there?"),
        (20e12, "That is what is attainable at 10: is 200 left of the ridge, too?"),
    ], unit="FLOP/s", tolerance=0.09, quantities={"the intensity": 200}),
    equivalent_slips={"ridge = 100000000000000.0 // 2000000000000.0": "the quotient is whole"})


def _points(peak: float, bandwidth: float, *places: float) -> list[tuple[float, float]]:
    """What is attainable at each of these intensities."""
    return [(place, min(peak, bandwidth * place)) for place in places]


def _corners(peak: float, bandwidth: float, low: float, high: float) -> list[tuple[float, float]]:
    ridge = peak / bandwidth
    return _points(peak, bandwidth, low, *([ridge] if low < ridge < high else []), high)


def _places(points: list[tuple[float, float]]) -> list[float]:
    return sorted(place for place, _ in points)


def _heights(points: list[tuple[float, float]]) -> list[float]:
    return [height for _, height in points]


exercise("roof_points",
    _corners, [
    (lambda peak, bandwidth, low, high: _points(peak, bandwidth, low, peak / bandwidth, high),
     "You always draw the ridge: outside of the axis, or at its end, it is no point of its own.", _places),
    (lambda peak, bandwidth, low, high: _points(peak, bandwidth, low, high)
        if not low <= peak / bandwidth <= high else _points(peak, bandwidth, low, peak / bandwidth, high),
     "Where the ridge is an end of the axis, that end is already in the list.", _places),
    (lambda peak, bandwidth, low, high: _points(peak, bandwidth, low, high),
     "Two points make one straight line: where the ridge lies between the ends, the line has a corner.", _places),
    (lambda peak, bandwidth, low, high: _points(peak, bandwidth, low, bandwidth / peak, high)
        if low < bandwidth / peak < high else _points(peak, bandwidth, low, high),
     "The ridge is where the two rates meet, in FLOP per byte: yours is upside down.", _places),
    (lambda *given: [(place, given[1] * place) for place, _ in _corners(*given)],
     "Your slope goes on for ever: beyond the ridge the peak is the most.", _heights),
    (lambda peak, bandwidth, low, high: [(low, bandwidth * low), *_corners(peak, bandwidth, low, high)[1:]],
     "An axis need not begin on the slope: its first point may lie under the ceiling.", lambda points: points[0][1]),
    (lambda peak, bandwidth, low, high: [*_corners(peak, bandwidth, low, high)[:-1], (high, peak)],
     "An axis need not end at the peak: its last point may lie on the slope.", lambda points: points[-1][1]),
    (lambda *given: _heights(_corners(*given)), "Those are the heights alone: a point is a pair."),
    ],
    cases=[(100e12, 2e12, 1, 1000), (100e12, 2e12, 1, 10), (100e12, 2e12, 100, 1000), (8, 4, 2, 4), (8, 4, 1, 2),
           (8, 4, 0.25, 4), (989.5e12, 3.35e12, 1, 1000)],
    draw=lambda r: (2.0 ** r.randint(30, 50), 2.0 ** r.randint(30, 42), low := 2.0 ** r.randint(-5, 10),
                    low * 2.0 ** r.randint(1, 12)))


choices("in_the_bracket",
    {"below": "'below' says that it took less than the longer of W and M.",
     "overlap": "'overlap' says that it took about as long as the longer of W and M.",
     "take turns": "'take turns' says that it took about as long as W and M together.",
     "above": "'above' says that it took longer than W and M together."},
    a=("overlap", ("take turns", "W + M are 2.74 ms. It took less: the shorter one is hidden behind the longer.")),
    b=("take turns",
       ("overlap", "Then it would take 6 µs, as from a cache. Of the 9.3 µs of W + M nearly all was needed."),
       ("above", "M is 3.3 µs: what do W and M add up to?")),
    c=("above",
       ("overlap", "M is 1.12 ms, so even W + M are only 1.42 ms."),
       ("take turns", "W + M are only 1.42 ms: it took longer than both together.")),
    d=("below", ("overlap", "M alone is 2.24 ms: how can it take less?")),
    e=("overlap",
       ("above", "M is less than W here: the bracket begins at W, 5 ms."),
       ("take turns", "W + M are 7.24 ms. It took less: the shorter one is hidden behind the longer.")))


def _bottleneck(
    flops: float, nbytes: float, seconds: float, peak: float, bandwidth: float, *,
    impossible: Callable[..., bool] = lambda seconds, compute, memory: seconds < max(compute, memory),
    neither: Callable[..., bool] = lambda seconds, compute, memory: seconds > 1.5 * max(compute, memory),
    memory_waits: Callable[..., bool] = lambda compute, memory: memory > compute,
) -> str:
    compute, memory = flops / peak, nbytes / bandwidth
    if impossible(seconds, compute, memory):
        return "impossible"
    if neither(seconds, compute, memory):
        return "neither"
    return "memory" if memory_waits(compute, memory) else "compute"


def _is_impossible(said: str) -> bool:
    return said == "impossible"


def _times(said: str) -> str:
    """Which of the two times is named, where one is."""
    return said if said in ("memory", "compute") else ""


def _draw_point(r: random.Random) -> tuple[float, ...]:
    peak, bandwidth = r.choice(((989e12, 3.35e12), (150e9, 30e9), (67e12, 3.35e12)))
    nbytes = 2.0 ** r.randint(20, 36)
    flops = nbytes * peak / bandwidth * 2 ** r.uniform(-4, 4)
    best = max(flops / peak, nbytes / bandwidth)
    return flops, nbytes, best * r.choice((0.3, 0.92, 0.97, 0.995, 1.1, 1.4, 1.6, 2.5, 9)), peak, bandwidth


exercise("bottleneck",
    lambda flops, nbytes, seconds, peak, bandwidth: _bottleneck(flops, nbytes, seconds, peak, bandwidth), [
    (lambda *given: _bottleneck(*given, impossible=lambda seconds, compute, memory: seconds < compute),
     "Impossible is for you what beats the peak: left of the ridge the roof is lower than that.", _is_impossible),
    (lambda *given: _bottleneck(*given, impossible=lambda seconds, compute, memory: seconds < min(compute, memory)),
     "Impossible is for you what beats both times: an operation is done when the longer one is.", _is_impossible),
    (lambda *given: _bottleneck(*given, impossible=lambda seconds, compute, memory: seconds < compute + memory),
     "You added the two times up: the roof allows that they overlap.", _is_impossible),
    (lambda *given: _bottleneck(*given, impossible=lambda seconds, compute, memory: seconds > max(compute, memory)),
     "You compare the wrong way round: longer than the roof allows is slow, not impossible.", _is_impossible),
    (lambda *given: _bottleneck(*given, impossible=lambda seconds, compute, memory: seconds <= max(compute, memory)),
     "Exactly on the roof is possible: only what is faster is not.", _is_impossible),
    (lambda *given: _bottleneck(*given, neither=lambda seconds, compute, memory: seconds > 1.5 * min(compute, memory)),
     "It is neither only where both times are too short: you asked the shorter one.", lambda said: said == "neither"),
    (lambda *given: _bottleneck(*given, memory_waits=lambda compute, memory: memory < compute),
     "You named the shorter of the two times: the other one is still going on when it is over.", _times),
    (lambda *given: _bottleneck(*given, memory_waits=lambda compute, memory: memory >= compute),
     "At the ridge the two times are equal: say compute there.", _times),
    ],
    cases=[(2**20, 2**22, 1.5e-6, 989e12, 3.35e12), (2**20, 2**22, 9e-6, 989e12, 3.35e12),
           (2**20, 2**22, 1e-6, 989e12, 3.35e12), (2 * 4096**3, 6 * 4096**2, 1.8e-4, 989e12, 3.35e12),
           (2 * 4096**3, 6 * 4096**2, 1e-4, 989e12, 3.35e12), (2 * 4096**3, 6 * 4096**2, 1e-3, 989e12, 3.35e12),
           (2e9, 2e8, 1.9e-2, 150e9, 30e9), (3e9, 2e8, 1.95e-2, 150e9, 30e9),
           (1e9, 8e8, 2.9e-2, 150e9, 30e9), (1000, 8000, 2e-6, 150e9, 30e9),
           (3, 4, 1.1, 4, 4), (4, 3, 1.1, 4, 4),
           (2**20, 2**20, 1.5, 2**20, 2**20), (2**20, 2**20, 0.2, 2**20, 2**21),
           (2**20, 2**20, 0.5, 2**20, 2**21), (2**20, 2**20, 1.0, 2**20, 2**21), (2**20, 2**20, 1.5, 2**20, 2**21)],
    draw=_draw_point,
    words={"impossible": "'impossible' says that it was faster than the roof allows.",
           "neither": "'neither' says that it took more than 1.5 times as long as the roof allows.",
           "memory": "'memory' says that its bytes take longer than its FLOPs, and most of the time.",
           "compute": "'compute' says that its bytes take no longer than its FLOPs, which take most of the time."})


choices("above_the_roof", ("cache", "clock", "dtype", "count"),
    a=("cache",
       ("clock", "The time may be right: a core's cache is really that fast."),
       ("dtype", "A ReLU waits for bytes: no peak comes into it. Where do its bytes come from the thousandth time?"),
       ("count", "One FLOP a number is right. Where is 1 MB when it is read for the thousandth time?")),
    b=("clock",
       ("cache", "No cache does eight times the work in the same time. What does the clock measure here?"),
       ("dtype", "No format does eight times the work in the same time. What does the clock measure here?"),
       ("count", "2n³ is right for both, eight times as much for the larger. What about the time?")),
    c=("dtype",
       ("cache", "A matmul this fast does not wait for memory. Does it run on the unit whose peak is 67 TFLOP/s?"),
       ("clock", "The time is right. Does the work run on the unit whose peak is 67 TFLOP/s?"),
       ("count", "The FLOPs are right. Does the work run on the unit whose peak is 67 TFLOP/s?")),
    d=("count",
       ("cache", "Right of the ridge, faster memory does not help. What are the 6 FLOP made of?"),
       ("clock", "The time is right. What are the 6 FLOP made of?"),
       ("dtype", "The peak is the right one. What are the 6 FLOP made of?")))


def _distances(a: torch.Tensor, b: torch.Tensor, middle: float = -2) -> torch.Tensor:
    return (a * a).sum(1, keepdim=True) + middle * (a @ b.T) + (b * b).sum(1)


exercise("distances",
    lambda a, b: _distances(a, b), [
    (lambda a, b: ((a[:, None] - b[None]) ** 2).sum(-1),
     "Each difference goes to memory, n · m · d of them: a matmul sums over d on the chip."),
    (lambda a, b: _distances(a, b).clamp(min=0).sqrt(), "Those are the distances: their squares are asked for."),
    (lambda a, b: (a * a).sum(1) + (b * b).sum(1) - 2 * (a @ b.T),
     "The squares of a go along the rows of the table: as sum leaves them, they are a row, not a column."),
    (lambda a, b: (a * a).sum(1, keepdim=True) + (b * b).sum(1, keepdim=True) - 2 * (a @ b.T),
     "The squares of b are a column here: which of b's rows does a column of the table belong to?"),
    (lambda a, b: (a * a).sum() + (b * b).sum() - 2 * (a @ b.T),
     "You summed the squares of all rows together: each row has a sum of its own."),
    (lambda a, b: (a * a).sum(1) + (b * b).sum(1, keepdim=True) - 2 * (a @ b.T),
     "The squares of a belong to the rows of the table, those of b to its columns: yours are exchanged."),
    (lambda a, b: a.sum(1)[:, None] + b.sum(1) - 2 * (a @ b.T),
     "You summed the numbers of each row: it is their squares that are summed."),
    (lambda a, b: a.sum(1)[:, None] ** 2 + b.sum(1) ** 2 - 2 * (a @ b.T),
     "You squared the sum of each row: the square of a vector's length is the sum of the squares."),
    ],
    terms={"the squares of a": lambda a, b: (a * a).sum(1, keepdim=True), "the products": lambda a, b: -2 * (a @ b.T),
           "the squares of b": lambda a, b: (b * b).sum(1)},
    cases=[(torch.tensor([[1.0, 2, 0], [0, 3, 1], [2, 2, 5]]), torch.tensor([[4.0, 1, 0], [1, 0, 2], [3, 1, 1]])),
           (torch.arange(12.0).view(3, 4) % 5, torch.arange(20.0).view(5, 4) % 7),
           (torch.arange(12.0).view(4, 3) / 7, torch.arange(6.0).view(2, 3) / 11 + 3)],
    draw=lambda r: (whole(r, r.randint(1, 9), width := r.randint(2, 9)), whole(r, r.randint(2, 9), width)),
    tolerance=1e-4, cost="bytes_eager", allowed_ratio=2.3, same_cost_ratio=1.4,  # 26.5 MB of 11.5
    counted_at=[(torch.ones(512, 256), torch.ones(512, 256))])  # a loop over the rows ends in time
