"""The exercises of notebook 06."""

import math
import random
from collections.abc import Callable

import torch

from helpers.exercises.exercise import function, guess, part, parts, whole

# fmt: off

guess("layer_of_8_on_h100", "Most of the peak is out of reach: the bytes arrive too slowly.",
    (989.5e12, "That takes 295 FLOPs for each byte."), (8 * 989.5e12, "Nothing gets beyond the peak."),
    (3.35e12, "That is the rate at 1 FLOP for each byte."), (8e12, "That takes a bandwidth of 1 TB/s."),
    (26.8, "In FLOP/s: × 10¹²."), (26.8e9, "A T is 10¹²."),
    *((rate / 8, "The intensity multiplies the bandwidth: bytes/s × FLOP/byte.") for rate in (989.5e12, 3.35e12)),
    *((ratio, "That is a number of FLOPs per byte: the rate is in FLOP/s.") for ratio in (8, 295)))
guess("misses_of_fourteen", "Section 7 asks any miss for its reason.",
    (-1, "A number of operations is 0 or more."), *((many, "There are only fourteen.") for many in (15, 16, 20, 50)))
guess("faster_a100", "The layer gains from the faster memory until it meets the ceiling.",
    (1.31, "That is about the memory's gain: the ceiling cuts it off."),
    *((percent, f"Not in per cent: {percent} % faster is {1 + percent / 100} times.") for percent in (17, 31)),
    (1, "With 40 GB it waits for its bytes: it gains."), (171, "That is its number of FLOPs per byte."),
    *((inverse, "How many times as fast: more than 1.") for inverse in (0.76, 0.85, 0.17, 0.5)))
guess("bfloat16_here", "", (2, "Half the bits are half the bytes. For the FLOPs the chip needs a unit."),
    (1, "The bits alone do not tell: the chip's units decide."),
    (0.5, "Half as fast is a chip without instructions for bfloat16."),
    *((times, "Only matrix units give such a factor: how large it is depends on the chip.") for times in range(3, 101)))
guess("gelu_in_a_cache", "No byte came from main memory here.",
    *((1.1**-k, "So it would be if it had waited for its bytes.") for k in range(1, 40)),
    (1, "Exactly as long as its bytes from main memory would take: that would be chance."))
guess("launch_of_neg", "Almost all of it is Python, PyTorch and the start of a kernel.",
    *((1.1**-k, "The work alone is that quick: starting it takes far longer.") for k in range(194, 320)),
    (1e-3, "Time for hundreds of launches or more."),
    *((micro, f"In seconds, please: {micro} µs is {micro}e-6.") for micro in (1, 5, 10)),
    *((nano, f"In seconds, please: {nano} ns is {nano}e-9.") for nano in (100, 500, 1000)))
guess("attention_of_32_users", "Each user has a KV cache of its own: nothing is shared.",
    (32, "The users share weights: attention has none."), (30, "That is q k v, whose weights all users share."),
    (295, "That is the ridge: attention stands far to its left."), (1 / 32, "The FLOPs grow as well as the bytes."))

_SLOPE = "That is the bandwidth: at 1 FLOP/B this is what is attainable. Here it is more."
_GIGA = "In FLOP/s, please: that is a number of GFLOP/s."
_TERA = "One T is 10¹²: your number is a thousand times too small."
parts("read_roofline",
    ridge=part(100e12 / 2e12, [
        (0.02, "It is upside down: peak over bandwidth, in FLOP per byte."),
        (2e12, "That is the slope, the bandwidth. The ridge is the intensity at which the slope meets the peak."),
        (100e12, "That is the peak, in FLOP/s. The ridge is the intensity at which it is reached, in FLOP/B."),
        *((times, "Peak over bandwidth leaves no prefix: TFLOP/s by TB/s is FLOP/B.") for times in (50e3, 50e12)),
        (100, "That is the peak's number. Where does the slope reach it?"),
        (2, "That is the bandwidth's number. How many FLOPs a byte make it as high as the peak?"),
        *((product, "Peak times bandwidth is no FLOP per byte: divide.") for product in (200, 2e14, 200e24)),
        *((read, "The axis is logarithmic: follow the grid down from the corner.") for read in (32, 40, 45, 60, 500)),
        (10, "At 10 FLOP/B the slope is still below the ceiling."),
    ], unit="FLOP/B", tolerance=0.09),
    at_10=part(2e12 * 10, [
        (100e12, "At 10 FLOP/B you are left of the ridge, where the peak is out of reach."),
        (2e11, "You divided the bandwidth by the intensity: multiply them."),
        (20, "In FLOP/s, please: that is a number of TFLOP/s."), (2e10, _TERA), (2e4, _GIGA), (2e12, _SLOPE),
        (2e14, "Ten times too much: 2 T × 10."), (2e16, "One T is 10¹²."),
        (5e12, "Left of the ridge multiply bandwidth and intensity."),
        (100e12 / 6, "You added the two times: they overlap, so the longer one counts alone."),
        (1e13, "Neither the mark at 10¹³ nor peak over 10: multiply bandwidth and intensity."),
    ], unit="FLOP/s", tolerance=0.09),
    at_200=part(100e12, [
        (400e12, "At 200 FLOP/B you are right of the ridge: no op goes beyond the peak."),
        (1e10, "You divided the bandwidth by the intensity. Is the slope what counts at 200?"),
        (100, "In FLOP/s, please: that is a number of TFLOP/s."), (1e11, _TERA), (1e5, _GIGA), (2e12, _SLOPE),
        (200e12, "That is the number of the intensity. At 200 FLOP/B read the ceiling."),
        (20e12, "That is what is attainable at 10. At 200 FLOP/B read the ceiling."),
        *((high, "That lies above the ceiling: nothing gets there.") for high in (1e15, 2e15, 2e16, 1e17)),
        (1e13, "Peak over 10 belongs to no place. At 200 FLOP/B read the ceiling."), (50, "That is the ridge."),
        (80e12, "You added the two times: they overlap, so the longer one counts alone."),
        (25e12, "Right of the ridge the ceiling stays flat: it does not fall again."),
        (5e11, "Peak over intensity is no rate. At 200 FLOP/B read the ceiling."),
    ], unit="FLOP/s", tolerance=0.09),
    same={"ridge = 100000000000000.0 // 2000000000000.0": "the quotient is whole"})

def _corners(
    peak: float, bandwidth: float, low: float, high: float, *, kept: bool = False, inverted: bool = False
) -> list[tuple[float, float]]:
    ridge = bandwidth / peak if inverted else peak / bandwidth
    middle = [ridge] if kept or low < ridge < high else []
    return [(x, min(peak, bandwidth * x)) for x in [low, *middle, high]]


function("roof_points",
    _corners, [
    *((lambda *a, turn=turn: turn(_corners(*a, kept=True)),
       "Outside of the axis nothing is drawn: keep the ridge only between its ends.") for turn in (list, sorted)),
    (lambda p, b, low, high: _corners(p, b, low, high, kept=low <= p / b <= high),
     "Where the ridge is an end of the axis, that end is already in the list: leave it out there."),
    *((lambda p, b, low, high, at=at, end=end: [*_corners(p, b, low, high, kept=at(float(low), p / b))[:-1], (high, end(
        p, b * high))], "The ridge may also lie right of `high`.") for at in (float.__lt__, float.__le__)
      for end in (min, lambda p, _: p)),
    (lambda p, b, low, high: _corners(p, b, low, high, kept=p / b < high), "The ridge may also lie left of `low`."),
    (lambda p, b, low, high: [*_corners(p, b, low, high)[:-1], (high, p)],
     "An axis that ends left of the ridge never meets the peak: at `high` take the smaller of the two, too."),
    (lambda p, b, low, high: [(low, b * low), *_corners(p, b, low, high)[1:]],
     "An axis that begins right of the ridge begins at the peak: at `low` take the smaller of the two, too."),
    (lambda p, b, low, high: [(low, b * low), *_corners(p, b, low, high)[1:-1], (high, p)],
     "An axis need not begin on the slope, nor end at the peak: take the smaller of the two at either end."),
    (lambda p, b, low, high: [(low, b * low), (p / b, p), (high, p)],
     "An axis need not begin on the slope, nor contain the ridge: look at the three places in turn."),
    (lambda p, b, low, high: [(low, b * low), *([(p / b, p), (high, p)] if p / b < high else [(high, b * high)])],
     "An axis need not begin on the slope: the ridge may also lie left of `low`."),
    (lambda p, b, low, high: [(x, b * x if x == high and low < p / b else y) for x, y in _corners(p, b, low, high)],
     "Right of the ridge the peak is the limit, at `high` as well."),
    (lambda p, b, low, high: [(x, max(p, b * x)) for x, _ in _corners(p, b, low, high)],
     "You took the larger of the two: what is attainable is the smaller."),
    (lambda p, b, low, high: sorted(_corners(p, b, low, high), key=lambda at: low < at[0] < high),
     "From left to right: the ridge belongs between the ends."),
    (lambda *a: list(map(list, zip(*_corners(*a), strict=True))),
     "You return two lists, intensities and heights: pair them, point by point."),
    (lambda p, b, low, high: [(1, b), (p / b, p), (high, p)],
     "Those are the three points of the lesson: here the axis begins at `low`, and the ridge may lie outside."),
    *((lambda p, b, low, high, end=end: [(low, b), *_corners(p, b, low, high)[1:-1], (high, min(p, end * b * high))],
       "The bandwidth is the height at 1 FLOP/B alone: at `low` it is what is attainable there.") for end in (1, 1e30)),
    (lambda *a: _corners(*a)[1:-1], "The two ends are missing."),
    (lambda *a: [x for x, _ in _corners(*a)], "Those are the intensities alone: each point needs its height, too."),
    (lambda p, b, low, high: [(low, p), (high, p)] if not low < p / b < high else _corners(p, b, low, high),
     "An axis that ends left of the ridge is all slope."),
    (lambda *a: [p for p in _corners(*a) if p[0] in a[2:]],
     "Two points make one straight line: where the ridge lies between the ends, the line has a corner there."),
    (lambda p, b, low, high: _corners(p, b, low, high) if low < p / b < high else [(low, b * low), (high, b * high)],
     "An axis that begins right of the ridge is all ceiling."),
    *((lambda p, b, low, high, cut=cut: [(x, min(p, b * x)) for x in (low, *[cut(p / b)] * (low < p / b < high), high)],
       "Do not round the ridge.") for cut in (math.floor, round)),
    (lambda *a: [(x, a[1] * x) for x, _ in _corners(*a)], "Beyond the ridge the slope ends: the peak is the most."),
    (lambda *a: [(x, a[0]) for x, _ in _corners(*a)], "You drew the ceiling alone: left of the ridge is a slope."),
    (lambda *a: _corners(*a, inverted=True), "The ridge is peak over bandwidth: yours is upside down."),
    (lambda p, b, low, high: [(low, min(p, b * low)), *[(b / p, p)] * (low < b / p < high), (high, min(p, b * high))],
     "The ridge is peak over bandwidth: yours is upside down."),
    (lambda p, b, low, high: [(x, b if x == p / b and low < x < high else y) for x, y in _corners(p, b, low, high)],
     "At the ridge the line has reached the peak: that is its height there."),
    (lambda p, b, low, high: [(x, p if low < x < high else min(p, b / x)) for x, _ in _corners(p, b, low, high)],
     "Bytes/s times FLOP/B is FLOP/s: multiply the bandwidth by the intensity."),
    (lambda p, b, low, high: [(x, min(p, b * x)) for x in (low, min(max(p / b, low), high), high)],
     "Moved to an end of the axis, the ridge makes that end appear twice: leave it out."),
    (lambda p, b, low, high: dict(_corners(p, b, low, high, kept=low <= p / b <= high)),
     "That is a dictionary: the question asks for a list of pairs."),
    (lambda *a: [(y, x) for x, y in _corners(*a)], "Each point is (intensity, FLOP/s): yours are exchanged."),
    (lambda *a: [y for _, y in _corners(*a)], "Those are the heights alone: each point needs its intensity, too."),
    ],
    cases=[(100e12, 2e12, 1, 1000), (100e12, 2e12, 1, 10), (100e12, 2e12, 100, 1000), (8, 4, 2, 4), (8, 4, 1, 2),
           (8, 4, 0.25, 4), (989.5e12, 3.35e12, 1, 1000)],
    draw=lambda r: (2.0 ** r.randint(30, 50), 2.0 ** r.randint(30, 42), low := 2.0 ** r.randint(-5, 10),
                    low * 2.0 ** r.randint(1, 12)))


_WAITS = ("memory", "compute", "neither")
parts("waits_for",
    a=part("memory", [
        ("bandwidth", 'Yes, for its bytes: that is "memory" here.'),
        ("compute", "A ReLU does a quarter of a FLOP per byte: its arithmetic waits for its bytes."),
        ("neither", "It runs nearly as fast as its roof allows, so one of the two holds it back."),
    ], words=_WAITS),
    b=part("compute", [
        ("memory", "A large matmul does 1365 FLOP per byte, far right of the ridge of 295."),
        ("neither", "It reaches three quarters of its roof, as good matmuls do: one of the two holds it back."),
    ], words=_WAITS),
    c=part("memory", [
        ("compute", "With a batch of 8 each weight is used 8 times: about 8 FLOP per byte, left of the ridge."),
        ("neither", "It runs nearly as fast as its roof allows, so one of the two holds it back."),
    ], words=_WAITS),
    d=part("neither", [
        ("launch", 'Yes, for the launch: that is "neither" here.'),
        ("memory", "It takes thousands of times as long as its bytes do: what else happens in a call?"),
        ("compute", "It takes thousands of times as long as its bytes do, and its FLOPs take even less."),
    ], words=_WAITS))


def _bottleneck(
    flops: float, nbytes: float, seconds: float, peak: float, bandwidth: float, *, half: float = 2, roof: str = "both"
) -> str:
    compute, memory = flops / peak, nbytes / bandwidth
    best = {"both": max(compute, memory), "peak": compute, "slope": memory, "min": min(compute, memory)}[roof]
    if seconds < best:
        return "impossible"
    return "neither" if seconds > half * best else "memory" if memory > compute else "compute"


def _named(
    flops: float, nbytes: float, seconds: float, peak: float, bandwidth: float, name: Callable[[float, float], str]
) -> str:
    """The right answer, but where it is memory or compute what `name` says from the two times."""
    right = _bottleneck(flops, nbytes, seconds, peak, bandwidth)
    return right if right in ("impossible", "neither") else name(flops / peak, nbytes / bandwidth)


def _draw_point(r: random.Random) -> tuple[float, ...]:
    peak, bandwidth = r.choice(((989e12, 3.35e12), (150e9, 30e9), (67e12, 3.35e12)))
    nbytes = 2.0 ** r.randint(20, 36)
    flops = nbytes * peak / bandwidth * 2 ** r.uniform(-4, 4)
    best = max(flops / peak, nbytes / bandwidth)
    return flops, nbytes, best * r.choice((0.3, 0.92, 0.97, 1.1, 1.9, 2.1, 2.9, 9)), peak, bandwidth


function("bottleneck",
    _bottleneck, [
    (lambda f, b, s, p, w: _bottleneck(f, b, max(s, f / p, b / w), p, w),
     "A point above the roof is impossible: look for the mistake before you name a bottleneck."),
    (lambda *a: _bottleneck(*a, half=1e30),
     "A point far below the roof waits for neither: it takes more than twice the time."),
    (lambda *a: _bottleneck(*a, half=0.5),
     "A point close to the roof waits for one of the two; mind the factor of two."),
    *((lambda *a, names=names: names.get(said := _bottleneck(*a), said), sentence) for names, sentence in (
        ({"impossible": "neither", "neither": "impossible"}, "You exchanged impossible and neither."),
        ({"neither": "launch"}, 'It may be the launch, or something else: that is "neither" here.'))),
    (lambda f, b, s, p, w: "impossible" if s < b / w else _bottleneck(f, b, max(s, f / p, b / w), p, w),
     "You compared with the slope alone: what is faster than its arithmetic is impossible, too."),
    (lambda *a: _bottleneck(*a, half=1), "Up to twice the time still counts as memory or compute."),
    (lambda *a: _bottleneck(*a, half=3), "Neither is more than twice the larger time: not three, nor twice both."),
    (lambda f, b, s, p, w: "neither" if s == 2 * max(f / p, b / w) else _bottleneck(f, b, s, p, w),
     "Exactly twice the time is not more than twice."),
    (lambda f, b, s, p, w: "impossible" if s == max(f / p, b / w) else _bottleneck(f, b, s, p, w),
     "Exactly on the roof is possible: only what is faster than the roof is not."),
    (lambda f, b, s, p, w: "memory" if b / w > f / p else "compute",
     "Look at the measured time first: it may be impossible, or far more than the roof allows."),
    *((lambda f, b, s, p, w, n=n: "impossible" if s < f / p + b / w else "neither" if s > 2 * (f / p + b / w) - n * min(
        f / p, b / w) else "memory" if b / w > f / p else "compute",
       "You added the two times: the roof allows that they overlap.") for n in (0, 2)),
    (lambda f, b, s, p, w: _bottleneck(f, b, s, p, w) if s < max(f / p, b / w) or s <= 2 * f / p
     else "neither", "For more than twice, you compare with the time of the arithmetic: take the larger of the two."),
    (lambda f, b, s, p, w: _bottleneck(f, b, s, p, w) if s < max(f / p, b / w) or s <= 2 * b / w
     else "neither", "For more than twice, you compare with the time of the bytes: take the larger of the two."),
    *((lambda *a, swap=swap: _named(*a, swap), "You swapped the two: the larger time is the bottleneck.") for swap in (
        lambda c, m: "memory" if m < c else "compute", lambda c, m: "compute" if m > c else "memory")),
    *((lambda *a, test=test: test(*a), "You compared with the peak alone: left of the ridge less is attainable.")
      for test in (lambda *a: _bottleneck(*a, roof="peak"), lambda f, b, s, p, w: "impossible" if f / s > p
                   else _bottleneck(f, b, max(s, f / p, b / w), p, w))),
    (lambda *a: _bottleneck(*a, roof="slope"),
     "You compared with the slope alone: right of the ridge the peak is less."),
    (lambda *a: _bottleneck(*a, roof="min"), "You took the smaller of the two times: the op is done when both are."),
    (lambda f, b, s, p, w: _named(f, b, s, p, w, lambda *_: "compute" if b / f > p / w else "memory"),
     "Intensity is FLOP per byte: yours is upside down."),
    (lambda f, b, s, p, w: _named(f, b, s, p, w, lambda *_: "memory" if f / b < 1 else "compute"),
     "Compare the intensity with the machine's ridge, not with 1."),
    (lambda f, b, s, p, w: _named(f, b, s, p, w, lambda *_: "memory" if f / b < w / p else "compute"),
     "The ridge is peak over bandwidth: yours is upside down."),
    *((lambda f, b, s, p, w, first=first: _named(f, b, s, p, w, lambda c, m: first(s, c, m)),
       "Both times may be within a factor of two: the larger one counts, not the first that fits.") for first in (
        lambda s, c, m: "compute" if s <= 2 * c else "memory", lambda s, c, m: "memory" if s <= 2 * m else "compute")),
    (lambda *a: _named(*a, lambda *_: "memory"), "You never say compute: which of the two times is longer?"),
    (lambda *a: _named(*a, lambda *_: "compute"), "You never say memory: which of the two times is longer?"),
    (lambda *a: _named(*a, lambda c, m: "memory" if m >= c else "compute"),
     "At the ridge the two times are equal: say compute there."),
    (lambda *a: _named(*a, lambda c, m: "neither" if m == c else "memory" if m > c else "compute"),
     "At the ridge the two times are equal: that is compute, not neither."),
    *((lambda f, b, s, p, w, h=h: "impossible" if s > max(f / p, b / w) else "neither" if 2 * s < h * max(f / p, b / w)
       else "memory" if b / w > f / p else "compute",
       "Reversed: what is faster than the roof, in less time or at a higher rate, is impossible.") for h in (0, 1, 4)),
    (lambda f, b, s, p, w: "impossible" if s < max(f / p, b / w) else "neither" if s < 2 * max(f / p, b / w)
     else "memory" if b / w > f / p else "compute", "Reversed: neither is what takes more than twice the time."),
    (lambda f, b, s, p, w: _bottleneck(f * p, b * w, s, 1, 1), "Divide: FLOPs over FLOP/s are seconds."),
    (lambda f, b, s, p, w: _bottleneck(p / f, w / b, s, 1, 1), "Upside down: a time is an amount over a rate."),
    (lambda f, b, s, p, w: "impossible" if 2 * s < max(f / p, b / w) else _bottleneck(f, b, max(s, f / p, b / w), p, w),
     "Whatever is faster than the roof is impossible, not only what is twice as fast."),
    (lambda f, b, s, p, w: "impossible" if s < min(f / p, b / w) else "neither" if s > 2 * max(f / p, b / w)
     else "memory" if b / w > f / p else "compute", "Faster than one of the two times is enough to be impossible."),
    (lambda f, b, s, p, w: "impossible" if s < max(f / p, b / w) else "neither" if s > 2 * min(f / p, b / w)
     else "memory" if b / w > f / p else "compute", "For neither, compare with the larger of the two times alone."),
    (lambda f, b, s, p, w: _bottleneck(f // p, b // w, s, 1, 1), "You rounded down to whole seconds: use /, not //."),
    (lambda f, b, s, p, w: _bottleneck(f, b, s, w, p), "The FLOPs belong to the peak, the bytes to the bandwidth."),
    (lambda f, b, s, p, w: "impossible" if s < 0.9 * max(f / p, b / w) else
     _bottleneck(f, b, max(s, f / p, b / w), p, w), "No tolerance is asked for: whatever is faster is impossible."),
    ],
    cases=[(2**20, 2**22, 1.5e-6, 989e12, 3.35e12), (2**20, 2**22, 9e-6, 989e12, 3.35e12),
           (2**20, 2**22, 1e-6, 989e12, 3.35e12), (2 * 4096**3, 6 * 4096**2, 1.8e-4, 989e12, 3.35e12),
           (2 * 4096**3, 6 * 4096**2, 1e-4, 989e12, 3.35e12), (2 * 4096**3, 6 * 4096**2, 1e-3, 989e12, 3.35e12),
           (2e9, 2e8, 1.9e-2, 150e9, 30e9), (3e9, 2e8, 1.95e-2, 150e9, 30e9),
           (1e9, 8e8, 2.9e-2, 150e9, 30e9), (1000, 8000, 2e-6, 150e9, 30e9),
           (3, 4, 1.1, 4, 4), (4, 3, 1.1, 4, 4),
           (2**20, 2**20, 1.5, 2**20, 2**20), (2**20, 2**20, 0.2, 2**20, 2**21),
           (2**20, 2**20, 0.5, 2**20, 2**21), (2**20, 2**20, 1.0, 2**20, 2**21), (2**20, 2**20, 2.0, 2**20, 2**21)],
    draw=_draw_point, words=("impossible", "neither", "memory", "compute"))


def _layer(
    batch: int, d: int, f: int, peak: float, bandwidth: float, *, flop: int = 2, item: float = 2, parts: str = "xwy",
) -> tuple[float, float]:
    numbers = {"x": batch * d, "w": d * f, "y": batch * f, "v": batch * d * f, "q": d * d, "s": d + f}
    return flop * batch * d * f / peak, item * sum(numbers[part] for part in parts) / bandwidth


function("layer_seconds",
    lambda *a: max(_layer(*a)), [
    (lambda *a: sum(_layer(*a)), "You added the two times: at best they overlap, and the larger one is all."),
    (lambda *a: min(_layer(*a)), "You took the smaller of the two times: the op is done when both are."),
    (lambda *a: max(_layer(*a, flop=1)), "A multiply-accumulate is two FLOP: you counted each as one."),
    (lambda *a: max(_layer(*a, item=4)), "You took 4 bytes per number: bfloat16 has 2."),
    (lambda *a: max(_layer(*a, item=1)), "You took 1 byte per number: bfloat16 has 2."),
    (lambda *a: max(_layer(*a, item=16)), "Those are bits: bandwidth is in bytes."),
    (lambda *a: max(_layer(*a, parts="xw")), "You forgot the write: the output has batch × f numbers."),
    (lambda *a: max(_layer(*a, parts="wy")), "You forgot to read the input: it has batch × d numbers."),
    (lambda *a: max(_layer(*a, parts="xy")), "You forgot the weights: d × f numbers are read, too."),
    (lambda *a: max(_layer(*a, parts="w")), "That reads the weights alone: input and output move, too."),
    (lambda *a: max(_layer(*a, parts="xvy")), "The weights are read once for the whole batch, not once per example."),
    (lambda *a: _layer(*a)[0], "That is the arithmetic alone: a batch of 1 waits for the weights."),
    (lambda *a: _layer(*a)[1],
     "Your time never comes from the arithmetic: it is 2·batch·d·f FLOP, for which a large batch waits."),
    (lambda *a: max(_layer(*a)) // 1, "You rounded down to whole seconds: divide with /, and keep the fraction."),
    *((lambda *a, way=way: _layer(*a)[::way], "Those are both times: return the larger one.") for way in (1, -1)),
    (lambda b, d, f, p, w: max(_layer(b, d, d, p, w)), "The weights are d × f: where is f?"),
    *((lambda *a, parts=parts: max(_layer(*a)[0], _layer(*a, parts=parts)[1]),
       "The weights are d × f numbers, not d × d.") for parts in ("xqy", "xqx")),
    (lambda *a: max(_layer(*a, parts="xwx")), "The output has batch × f numbers, not batch × d."),
    (lambda *a: max(_layer(*a, parts="xsy")), "The weights are d × f numbers, not d + f."),
    (lambda *a: max(_layer(1, *a[1:])), "That is one example: there are `batch` of them."),
    (lambda *a: max(_layer(*a)[0], _layer(1, *a[1:])[1]), "Input and output have a row for each example of the batch."),
    *((lambda *a, parts=parts: max(_layer(*a, item=1, parts=parts)), "The 2 bytes of a number belong to all three "
       "matrices: mind the brackets.") for parts in ("xwwy", "xxwy", "xxwwy")),
    (lambda *a: _layer(*a)[a[0] <= a[3] / a[4]], "Compare both times, for all inputs, outputs and weights."),
    *((lambda *a, f=f: f * max(_layer(*a)), "Too long by a power of ten: return seconds.") for f in (1e3, 1e6)),
    (lambda b, d, f, p, w: max(_layer(b, d, f, p, w)[0], 2 * (b * d + d * f + b * f + f) / w),
     "You read a bias: this layer has none."),
    (lambda b, d, f, p, w: max((2 * d + 1) * b * f / p, 2 * (b * d + d * f + b * f + f) / w),
     "You count a bias: this layer has none."),
    (lambda b, d, f, p, w: max((2 * d - 1) * b * f / p, _layer(b, d, f, p, w)[1]),
     "Exact, but not the course's convention: a multiply-accumulate counts as 2 FLOP, the first one as well."),
    (lambda *a: max(_layer(*a, flop=6)), "6 is forward and backward together: the forward pass has 2."),
    (lambda b, d, f, p, w: 2 * b * d * f / min(p, w),
     "2 · b · d · f over bytes/s is no time: divide bytes by the bandwidth, the sizes of three matrices, added."),
    (lambda b, d, f, p, w: max(p / (2 * b * d * f), w / (2 * (b * d + d * f + b * f))),
     "Both quotients are upside down: a time is an amount over a rate."),
    (lambda b, d, f, p, w: min(p, w * b * d * f / (b * d + d * f + b * f)),
     "That is the attainable rate, in FLOP/s: the time is the FLOPs over it."),
    ],
    cases=[(batch, 4096, 16384, *machine) for batch in (1, 512)
           for machine in ((312e12, 2.039e12), (989.5e12, 3.35e12), (150e9, 30e9))]
           + [(512, 64, 96, 989.5e12, 3.35e12), (8, 64, 96, 989.5e12, 3.35e12)],
    draw=lambda r: (r.randint(1, 999), r.randint(1, 99), r.randint(1, 99), *r.choice(((15e12, 1e12), (150e9, 30e9)))))

_REASONS = ("cache", "clock", "dtype", "count")
parts("above_the_roof",
    a=part("cache", [
        ("clock", "The time may be right: a core's cache is really that fast."),
        ("dtype", "A ReLU waits for bytes: no peak comes into it. Where do its bytes come from the thousandth time?"),
        ("count", "One FLOP a number is right. Where is 1 MB when it is read for the thousandth time?"),
    ], words=_REASONS),
    b=part("clock", [
        ("sync", 'Yes, nobody waited for the GPU: that is "clock" here.'),
        ("cache", "No cache does eight times the work in the same time. What does the clock measure here?"),
        ("dtype", "No format does eight times the work in the same time. What does the clock measure here?"),
        ("count", "2n³ is right for both, eight times as much for the larger. What about the time?"),
    ], words=_REASONS),
    c=part("dtype", [
        ("tf32", 'Yes, that is how it is done: the peak is that of another "dtype".'),
        ("cache", "A matmul this fast does not wait for memory. Does it run on the unit whose peak is 67 TFLOP/s?"),
        ("clock", "The time is right. Does the work run on the unit whose peak is 67 TFLOP/s?"),
        ("count", "The FLOPs are right. Does the work run on the unit whose peak is 67 TFLOP/s?"),
    ], words=_REASONS),
    d=part("count", [
        ("cache", "Right of the ridge, faster memory does not help. What are the 6 FLOP made of?"),
        ("clock", "The time is right. What are the 6 FLOP made of?"),
        ("dtype", "The peak is the right one. What are the 6 FLOP made of?"),
    ], words=_REASONS))


def _distances(a: torch.Tensor, b: torch.Tensor, middle: float = -2) -> torch.Tensor:
    return (a * a).sum(1, keepdim=True) + middle * (a @ b.T) + (b * b).sum(1)


function("distances",
    _distances, [
    *((way, "A loop, or one large tensor, still makes all n × m × d numbers: let one matmul sum over d.") for way in (
        lambda a, b: ((a[:, None] - b[None]) ** 2).sum(-1),
        lambda a, b: (lambda x: torch.einsum("nmd,nmd->nm", x, x))(a[:, None] - b[None]),
        lambda a, b: sum((a[:, k, None] - b[:, k]) ** 2 for k in range(a.shape[1])))),
    (lambda a, b: _distances(a.bfloat16(), b.bfloat16()), "That is in bfloat16: the result has the dtype of a and b."),
    *((lambda a, b, back=back: _distances(a.double(), b.double()).to(back),
       "The values are right, but in float64: that doubles the bytes.") for back in (torch.float64, torch.float32)),
    (lambda a, b: ((a.bfloat16()[:, None] - b.bfloat16()[None]) ** 2).sum(-1),
     "Half the bytes, but still n × m × d numbers, and in another dtype: expand the square first."),
    (lambda a, b: (a.sum(1)[:, None] - b.sum(1)) ** 2, "Square the differences before you sum over d."),
    (lambda a, b: _distances(a, b, -1), "The middle term is −2·a·b: you left out the 2."),
    (lambda a, b: _distances(a, b, 2), "The middle term is −2·a·b: yours has a plus."),
    (lambda a, b: _distances(a, b).clamp(min=0).sqrt(),
     "Those are the distances: the question asks for their squares."),
    (lambda a, b: -2 * (a @ b.T), "That is the matmul alone: add the squares of both."),
    (lambda a, b: a @ b.T, "Those are the products alone: times −2, plus the squares of both."),
    (lambda a, b: a.norm(dim=1)[:, None] + b.norm(dim=1) - 2 * a @ b.T, "A norm is the root of the sum of squares."),
    *((lambda a, b, low=low: (a * a).sum(1)[:, None] + (b * b).sum(1) - 2 * (a.to(low) @ b.to(low).T).float(),
       "It changes the dtype: the product has lost digits, and the roof is another one.")
      for low in (torch.half, torch.bfloat16)),
    (lambda a, b: (a * a).sum(1, keepdim=True) + (b * b).sum(1, keepdim=True) - 2 * (a @ b.T),
     "The squares of b must be a row: no keepdim there."),
    (lambda a, b: (a * a).sum(1, keepdim=True) + (b * b).sum(1) - 2 * (b @ a.T), "Transposed: rows are those of a."),
    (lambda a, b: a @ a.T + b @ b.T - 2 * (a @ b.T), "a @ a.T pairs all rows of a: each row meets itself alone."),
    (lambda a, b: (a * a).sum() + (b * b).sum() - 2 * (a @ b.T), "You summed over all: each row has a sum of its own."),
    (lambda a, b: _distances(a, b) - (b * b).sum(1), "You left out the squares of b."),
    (lambda a, b: _distances(a, b) - (a * a).sum(1, keepdim=True), "You left out the squares of a."),
    (lambda a, b: _distances(b, a), "Rows belong to a, columns to b: yours are exchanged."),
    (lambda a, b: _distances(a, b) / a.shape[1], "That is the mean of the squares: the sum is asked for."),
    (lambda a, b: (a[:, None] - b[None]).abs().sum(-1), "Those are sums of absolute differences: square them."),
    (lambda a, b: (a * a).sum(1) + (b * b).sum(1) - 2 * (a @ b.T),
     "The squares of a belong to the rows: make them a column, with keepdim=True."),
    (lambda a, b: (a * a).sum(1) + (b * b).sum(1, keepdim=True) - 2 * (a @ b.T),
     "The squares of a are the column, those of b the row: yours are exchanged."),
    (lambda a, b: (a * a).sum(0)[:, None] + (b * b).sum(0) - 2 * (a @ b.T), "Sum along each row, over dimension 1."),
    *((lambda a, b, dot=dot: (a * a).sum(1)[:, None] + (b * b).sum(1) - 2 * dot(a, b), "Rows meet rows: a @ b.T.")
      for dot in (lambda a, b: a @ b, lambda a, b: a.T @ b)),
    (lambda a, b: (a * a).sum(1)[:, None] + (b * b).sum(1) - 2 * a * b,
     "Every row of a meets every row of b: that takes a matmul, a @ b.T."),
    (lambda a, b: ((a - b) ** 2).sum(-1), "That pairs each row with one other: every row of a meets every row of b."),
    (lambda a, b: (a * a).mean(1)[:, None] + (b * b).mean(1) - 2 * (a @ b.T), "Sum the squares: no mean."),
    (lambda a, b: a.sum(1)[:, None] ** 2 + b.sum(1) ** 2 - 2 * (a @ b.T), "First square, then sum."),
    (lambda a, b: (a * a).sum(1)[:, None] - (b * b).sum(1) - 2 * (a @ b.T), "The squares of b are added."),
    (lambda a, b: (a * a).sum(1)[:, None] - (b * b).sum(1), "Expand the square: (a − b)² is not a² − b²."),
    (lambda a, b: (a * a).sum(1)[:, None] + (b * b).sum(1), "The middle term is missing: −2·a·b."),
    ],
    cases=[(torch.tensor([[1.0, 2, 0], [0, 3, 1], [2, 2, 5]]), torch.tensor([[4.0, 1, 0], [1, 0, 2], [3, 1, 1]])),
           (torch.arange(12.0).view(3, 4) % 5, torch.arange(20.0).view(5, 4) % 7),
           (torch.arange(12.0).view(4, 3) / 7, torch.arange(6.0).view(2, 3) / 11 + 3)],
    draw=lambda r: (whole(r, r.randint(1, 9), width := r.randint(2, 9)), whole(r, r.randint(2, 9), width)),
    tolerance=1e-4, cost="bytes_eager", room=2.3, near=1.4,  # 425 MB of 185 at 2048 × 1024
    at=[(torch.ones(40, 20), torch.ones(40, 20))])  # as small, a loop over the rows ends in time
