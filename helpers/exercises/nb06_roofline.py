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
     "A sixteenth of the matrix is what the roof's time counts already."))
guess("gelu_by_erf", "",
    (lambda right: 1 if right > 1.3 else None, "The same bytes, but not the same work: their kernels differ."),
    (lambda right: (0.01, 0.95) if right > 1.2 else None, "Here it is the faster one of the two."),
    (9, "That is the most that fusion can bring, and these two are both fused."))

_SLOPE = "That is the bandwidth: at 1 FLOP/B this is what is attainable. Here it is more."
_TERA = "In FLOP/s, please: that is a number of TFLOP/s."
_GIGA = "A tera is 10¹², not 10⁹."
_INTENSITY = "That is the intensity, on the other axis: how many FLOP/s are there?"
parts("read_roofline",
    ridge=part(100e12 / 2e12, [
        (0.02, "It is upside down: peak over bandwidth, in FLOP per byte."),
        (2e12, "That is the slope, the bandwidth. The ridge is the intensity at which the slope meets the peak."),
        (100e12, "That is the peak, in FLOP/s. The ridge is the intensity at which it is reached, in FLOP/B."),
        (50e12, "The slope in TB/s, the peak in TFLOP/s: their prefixes cancel."),
        (2, "That is the slope, in TB/s: at which intensity does it meet the ceiling?"),
        (100, "That is the height, in TFLOP/s: read the intensity below the place where the lines cross."),
    ], unit="FLOP/B", tolerance=0.09),
    at_10=part(2e12 * 10, [
        (100e12, "At 10 FLOP/B you are left of the ridge, where the peak is out of reach."),
        (2e11, "You divided the bandwidth by the intensity: multiply them."),
        (2e12, _SLOPE),
        (20, _TERA),
        (10, _INTENSITY),
        (20e9, _GIGA),
    ], unit="FLOP/s", tolerance=0.09),
    at_200=part(100e12, [
        (400e12, "At 200 FLOP/B you are right of the ridge: no op goes beyond the peak."),
        (20e12, "That is what is attainable at 10. At 200 FLOP/B read the ceiling."),
        (2e12, _SLOPE),
        (100, _TERA),
        (200, _INTENSITY),
        (100e9, _GIGA),
    ], unit="FLOP/s", tolerance=0.09),
    equivalent_slips={"ridge = 100000000000000.0 // 2000000000000.0": "the quotient is whole"})


def _corners(
    peak: float, bandwidth: float, low: float, high: float, *, kept: bool = False, inverted: bool = False
) -> list[tuple[float, float]]:
    ridge = bandwidth / peak if inverted else peak / bandwidth
    middle = [ridge] if kept or low < ridge < high else []
    return [(x, min(peak, bandwidth * x)) for x in [low, *middle, high]]


exercise("roof_points",
    _corners, [
    *((lambda p, b, low, high, turn=turn, kept=kept: turn(_corners(p, b, low, high, kept=kept(p / b, low, high))),
       "Outside of the axis, or at its end, the ridge is no point of its own: keep it only between the ends.")
      for turn in (list, sorted)
      for kept in (lambda *a: True, lambda ridge, low, high: ridge < high, lambda ridge, low, high: ridge > low)),
    *((lambda p, b, low, high, kept=kept: _corners(p, b, low, high, kept=kept(p / b, low, high)),
       "Where the ridge is an end of the axis, that end is already in the list: leave it out there.")
      for kept in (lambda ridge, low, high: low <= ridge <= high, lambda ridge, low, high: low < ridge <= high,
                   lambda ridge, low, high: low <= ridge < high)),
    (lambda p, b, *a: [(x, 1 / (1 / p + 1 / (b * x))) for x, _ in _corners(p, b, *a)],
     "You added the two times: the roof allows that they overlap, so take the smaller of the two rates."),
    (lambda p, b, low, high: [(low, b * low), (p / b, p), (high, p)],
     "An axis need not begin on the slope, nor contain the ridge: look at the three places in turn."),
    (lambda p, b, low, high: [(low, b * low), (high, p)],
     "Where the ridge lies between the ends, the line has a corner; an axis need not begin on the slope, either."),
    (lambda p, b, low, high: [(low, b), (p / b, p), (high, p)],
     "The bandwidth is the height at 1 FLOP/B alone, and the axis need not contain the ridge."),
    *((lambda *a, ends=ends: [ends(*a)[0], *_corners(*a)[1:-1], ends(*a)[1]],
       "An axis need not begin on the slope, nor end at the peak: take the smaller of the two at either end.")
      for ends in (lambda p, b, low, high: [(low, b * low), (high, p)],
                   lambda *a: [_corners(*a)[0], (a[3], a[0])], lambda *a: [(a[2], a[1] * a[2]), _corners(*a)[-1]])),
    (lambda p, b, low, high: [(x, min(p, b * x)) for x in (low, min(max(p / b, low), high), high)],
     "Where the ridge lies outside of the axis there are two points, not one of them twice."),
    (lambda *a: [p for p in _corners(*a) if p[0] in a[2:]],
     "Two points make one straight line: where the ridge lies between the ends, the line has a corner there."),
    (lambda *a: [(x, a[1] * x) for x, _ in _corners(*a)], "Beyond the ridge the slope ends: the peak is the most."),
    (lambda *a: [(x, max(a[0], a[1] * x)) for x, _ in _corners(*a)], "Attainable is the smaller of the two: use min."),
    (lambda p, b, low, high: _corners(p, b, low, high) if low < p / b < high else [(low, b * low), (high, b * high)],
     "Where the axis begins right of the ridge, the peak is all there is."),
    (lambda p, b, low, high: [(low, b * low), *[(b / p, p)] * (low < b / p < high), (high, p)],
     "The ridge is peak over bandwidth: yours is upside down."),
    (lambda *a: _corners(*a, inverted=True), "The ridge is peak over bandwidth: yours is upside down."),
    *((lambda p, b, low, high, cut=cut: [(x, min(p, b * x)) for x in [low, *[cut(p / b)] * (low < p / b < high), high]],
       "The ridge need not be a whole number: do not round it.") for cut in (math.floor, round)),
    (lambda *a: [y for _, y in _corners(*a)], "Those are the heights alone: pair each with its intensity."),
    (lambda p, b, low, high: [(low, b * low), (p / b, p), (high, p)] if low < p / b else [(low, p), (high, p)],
     "An axis may also end before the ridge: then all of it is slope, and there are two points."),
    *((lambda p, b, *a, most=most: [(x, min(most(p), b / x)) for x, _ in _corners(p, b, *a)],
       "Left of the ridge the bandwidth is multiplied by the intensity.") for most in (float, lambda p: math.inf)),
    (lambda *a: [(y, x) for x, y in _corners(*a)], "Each point is (intensity, FLOP/s): yours are exchanged."),
    (lambda *a: list(map(list, zip(*_corners(*a), strict=True))),
     "You return two lists, intensities and heights: pair them, point by point."),
    ],
    cases=[(100e12, 2e12, 1, 1000), (100e12, 2e12, 1, 10), (100e12, 2e12, 100, 1000), (8, 4, 2, 4), (8, 4, 1, 2),
           (8, 4, 0.25, 4), (989.5e12, 3.35e12, 1, 1000)],
    draw=lambda r: (2.0 ** r.randint(30, 50), 2.0 ** r.randint(30, 42), low := 2.0 ** r.randint(-5, 10),
                    low * 2.0 ** r.randint(1, 12)))


_LOW = "Its time is that of the longer of the two: the other is hidden behind it."
_SUM = "W + M are 9.3 µs: nearly all of that was needed."
_HIGH = "M is 1.12 ms, so even W + M are only 1.42 ms."
_TOO_FAST = "M alone is 2.24 ms: how can it take less?"
choices("in_the_bracket", ("below", "overlap", "take turns", "above"),
    a=("overlap",
       ("below", "M is 2.24 ms: it took a little longer, within a tenth."),
       ("take turns", "W + M are 2.74 ms: it took less. " + _LOW), ("above", "W + M are 2.74 ms: it took less.")),
    b=("take turns",
       ("overlap", "Then it would take 6 µs, as from a cache. " + _SUM), ("below", "W alone is 6 µs: it took longer."),
       ("above", "M is 3.3 µs: what do W and M add up to?")),
    c=("above",
       ("overlap", _HIGH), ("take turns", _HIGH), ("below", "M is 1.12 ms: it took twice as long.")),
    d=("below",
       ("overlap", _TOO_FAST), ("take turns", _TOO_FAST), ("above", _TOO_FAST)),
    e=("overlap",
       ("take turns", "W + M are 7.2 ms: it took less. " + _LOW),
       ("above", "M is less than W here: the bracket begins at W, 5 ms."),
       ("below", "The bracket begins at W, 5 ms: it took a little longer.")))


def _bottleneck(
    flops: float, nbytes: float, seconds: float, peak: float, bandwidth: float, *,
    roof: Callable[[float, float], float] = max, slow: float = 1.5,
    name: Callable[[float, float], str] = lambda compute, memory: "memory" if memory > compute else "compute",
) -> str:
    times = flops / peak, nbytes / bandwidth
    best = roof(*times)
    if seconds < best:
        return "impossible"
    return "neither" if seconds > slow * best else name(*times)


def _draw_point(r: random.Random) -> tuple[float, ...]:
    peak, bandwidth = r.choice(((989e12, 3.35e12), (150e9, 30e9), (67e12, 3.35e12)))
    nbytes = 2.0 ** r.randint(20, 36)
    flops = nbytes * peak / bandwidth * 2 ** r.uniform(-4, 4)
    best = max(flops / peak, nbytes / bandwidth)
    return flops, nbytes, best * r.choice((0.3, 0.92, 0.97, 0.995, 1.1, 1.4, 1.6, 2.5, 9)), peak, bandwidth


exercise("bottleneck",
    _bottleneck, [
    (lambda f, b, s, p, w: _bottleneck(f, b, max(s, f / p, b / w), p, w),
     "A point above the roof is impossible: look for the mistake before you name a bottleneck."),
    (lambda f, b, s, p, w: "memory" if b / w > f / p else "compute",
     "That is the roof alone: the measured seconds say whether either time explains it."),
    *((lambda f, b, s, p, w, room=room: _bottleneck(f, b, max(s, best) if s > room * (best := max(f / p, b / w)) else s,
                                                     p, w),
       "No tolerance: by these numbers, whatever is faster than the roof is impossible.")
      for room in (0.9, 0.95, 0.98, 0.99)),
    (lambda *a: _bottleneck(*a, slow=1e30),
     "Far below the roof neither time explains it: it takes more than 1.5 times as long."),
    *((lambda f, b, s, p, w, edges=edges: edges.get(s / max(f / p, b / w)) or _bottleneck(f, b, s, p, w),
       "At the limits: exactly on the roof is possible, and exactly 1.5 times is not yet more.")
      for edges in ({1.0: "impossible"}, {1.5: "neither"}, {1.0: "impossible", 1.5: "neither"})),
    (lambda *a: _bottleneck(*a, roof=lambda compute, memory: compute + memory),
     "You added the two times: the roof allows that they overlap."),
    (lambda f, b, s, p, w: "neither" if s > 1.5 * min(f / p, b / w) and s >= max(f / p, b / w)
     else _bottleneck(f, b, s, p, w),
     "It is neither only beyond 1.5 times the larger of the two times: the smaller may be far less."),
    (lambda *a: _bottleneck(*a, roof=min), "You took the smaller of the two times: the op is done when both are."),
    *((way, "You compared with the peak alone: left of the ridge less is attainable.") for way in (
        lambda *a: _bottleneck(*a, roof=lambda compute, _: compute),
        lambda f, b, s, p, w: _bottleneck(f, b, max(s, f / p, b / w) if s >= f / p else 0, p, w))),
    (lambda f, b, s, p, w: "impossible" if s > max(f / p, b / w) else "memory" if b / w > f / p else "compute",
     "A rate above the attainable one is impossible, not one below it."),
    (lambda f, b, s, p, w: _bottleneck(1 / f, 1 / b, s, 1 / p, 1 / w),
     "A time is FLOP over peak, or bytes over bandwidth: yours are upside down."),
    (lambda f, b, s, p, w: _bottleneck(f, b, s, p, w, name=lambda *_: "memory" if f / b < w / p else "compute"),
     "The ridge is peak over bandwidth: yours is upside down."),
    (lambda *a: _bottleneck(*a, roof=lambda _, memory: memory),
     "You compared with the memory alone: right of the ridge the arithmetic takes longer."),
    (lambda f, b, s, p, w: _bottleneck(f, b, s, p, w) if s < min(f / p, b / w) or s >= max(f / p, b / w)
     else "memory" if b / w > f / p else "compute",
     "Faster than one of the two times is enough to be impossible."),
    (lambda f, b, s, p, w: "impossible" if s < max(f / p, b / w) else "memory" if s <= 1.5 * b / w
     else "compute" if s <= 1.5 * f / p else "neither",
     "Both times may come near: then the longer of the two is the answer."),
    (lambda f, b, s, p, w: "impossible" if s < max(f / p, b / w) else "compute" if s <= 1.5 * f / p
     else "memory" if s <= 1.5 * b / w else "neither",
     "Both times may come near: then the longer of the two is the answer."),
    (lambda f, b, s, p, w: "impossible" if s > 1.5 * max(f / p, b / w) else "neither" if s < max(f / p, b / w)
     else _bottleneck(f, b, s, p, w), "You swapped impossible and neither: faster than the roof is impossible."),
    (lambda f, b, s, p, w: "neither" if s > 1.5 * f / p and s >= max(f / p, b / w) else _bottleneck(f, b, s, p, w),
     "Compare with what the roof allows, not with the peak alone."),
    *((lambda *a, slow=slow: _bottleneck(*a, slow=slow), "Neither is beyond 1.5 times the roof's time, and only there.")
      for slow in (1, 1.2, 2)),
    *((lambda *a, name=name: _bottleneck(*a, name=name), "You swapped the two: the larger time is the bottleneck.")
      for name in (lambda c, m: "memory" if m < c else "compute", lambda c, m: "compute" if m > c else "memory")),
    (lambda *a: _bottleneck(*a, name=lambda c, m: "memory" if m >= c else "compute"),
     "At the ridge the two times are equal: say compute there."),
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
    _distances, [
    *((way, "Counted by operators, this moves more than is needed: let a matmul of a and b sum over d.") for way in (
        lambda a, b: ((a[:, None] - b[None]) ** 2).sum(-1),
        lambda a, b: torch.einsum("nmd,nmd->nm", *2 * [a[:, None] - b]),
        lambda a, b: sum((a[:, k, None] - b[:, k]) ** 2 for k in range(a.shape[1])))),
    (lambda a, b: _distances(a.double(), b.double()).float(),
     "Near the limit: in float32, with fewer and smaller tables on the way, it moves less."),
    (lambda a, b: _distances(a, b, -1), "The middle term is −2·a·b: you left out the 2."),
    (lambda a, b: _distances(a, b, 2), "The middle term is −2·a·b: yours has a plus."),
    *((lambda a, b, k=k: k * (a @ b.T), "That is the matmul alone: add the squares of both.") for k in (1, -2)),
    (lambda a, b: (a * a).sum(1, keepdim=True) - 2 * (a @ b.T), "You left out the squares of b."),
    (lambda a, b: (b * b).sum(1) - 2 * (a @ b.T), "You left out the squares of a."),
    (lambda a, b: (a * a).sum(1, keepdim=True) - 2 * (a @ b.T) - (b * b).sum(1), "The squares of b are added, too."),
    (lambda a, b: _distances(a, b).clamp(min=0).sqrt(),
     "Those are the distances: the question asks for their squares."),
    (lambda a, b: (a * a).sum(1) + (b * b).sum(1) - 2 * (a @ b.T),
     "The squares of a belong to the rows: make them a column, with keepdim=True."),
    (lambda a, b: (a * a).sum(1, keepdim=True) + (b * b).sum(1, keepdim=True) - 2 * (a @ b.T),
     "The squares of b must be a row: no keepdim there."),
    (lambda a, b: (a * a).sum() + (b * b).sum() - 2 * (a @ b.T), "You summed over all: each row has a sum of its own."),
    (lambda a, b: (a * a).sum(1)[:, None] + (b * b).sum(1) - 2 * (a @ b), "Rows meet rows: a @ b.T."),
    *((lambda a, b, part=part: part(a)[:, None] + part(b) - 2 * (a @ b.T),
       "Each row needs the sum of the squares of its numbers: yours is another sum.")
      for part in (lambda x: x.sum(1), lambda x: x.sum(1) ** 2, lambda x: x.norm(dim=1))),
    (lambda a, b: (a * a).sum(1) + (b * b).sum(1, keepdim=True) - 2 * (a @ b.T),
     "The squares of a are the column, those of b the row: yours are exchanged."),
    (lambda a, b: _distances(b, a), "Rows belong to a, columns to b: yours are exchanged."),
    ],
    cases=[(torch.tensor([[1.0, 2, 0], [0, 3, 1], [2, 2, 5]]), torch.tensor([[4.0, 1, 0], [1, 0, 2], [3, 1, 1]])),
           (torch.arange(12.0).view(3, 4) % 5, torch.arange(20.0).view(5, 4) % 7),
           (torch.arange(12.0).view(4, 3) / 7, torch.arange(6.0).view(2, 3) / 11 + 3)],
    draw=lambda r: (whole(r, r.randint(1, 9), width := r.randint(2, 9)), whole(r, r.randint(2, 9), width)),
    tolerance=1e-4, cost="bytes_eager", allowed_ratio=2.3, same_cost_ratio=1.4,  # 26.5 MB of 11.5
    counted_at=[(torch.ones(512, 256), torch.ones(512, 256))])  # a loop over the rows ends in time
