"""The exercises of notebook 06."""

import torch

from helpers.exercises.exercise import function, part, parts

# fmt: off

parts("read_roofline",
    ridge=part(50.0, [
        (0.02, "It is upside down: peak over bandwidth, in FLOP per byte."),
        (2e12, "That is the slope, the bandwidth. The ridge is the intensity at which the slope meets the peak."),
        (100e12, "That is the peak, in FLOP/s. The ridge is the intensity at which it is reached, in FLOP/B."),
        (55.0, "The axis is logarithmic: do not measure with a ruler, divide."),
        (31.6, "Halfway between two marks is a guess: divide one label by the other."),
    ], unit="FLOP/B", tolerance=0.02),
    at_10=part(20e12, [
        (100e12, "At 10 FLOP/B you are left of the ridge, where the peak is out of reach."),
        (2e11, "You divided the bandwidth by the intensity: multiply them."),
        (20, "In FLOP/s, please: that is a number of TFLOP/s."),
    ], unit="FLOP/s", tolerance=0.02),
    at_200=part(100e12, [
        (400e12, "At 200 FLOP/B you are right of the ridge: no op goes beyond the peak."),
        (1e10, "You divided the bandwidth by the intensity. Is the slope what counts at 200?"),
        (100, "In FLOP/s, please: that is a number of TFLOP/s."),
    ], unit="FLOP/s", tolerance=0.02))

_UPGRADES = ("bandwidth", "peak", "neither")
parts("which_upgrade",
    a=part("bandwidth", [
        ("peak", "A ReLU does a quarter of a FLOP per byte: its arithmetic waits for its bytes."),
        ("neither", "It runs as fast as its roof allows, so one of the two holds it back."),
    ], words=_UPGRADES),
    b=part("peak", [
        ("bandwidth", "A large matmul does 1365 FLOP per byte, far right of the ridge of 295."),
        ("neither", "It runs as fast as its roof allows, so one of the two holds it back."),
    ], words=_UPGRADES),
    c=part("bandwidth", [
        ("peak", "With a batch of 8 each weight is used 8 times: about 8 FLOP per byte, left of the ridge."),
        ("neither", "It runs as fast as its roof allows, so one of the two holds it back."),
    ], words=_UPGRADES),
    d=part("neither", [
        ("bandwidth", "It takes a thousand times as long as its bytes do."),
        ("peak", "It takes a thousand times as long as its bytes do, and its FLOPs take even less."),
    ], words=_UPGRADES))


def _bottleneck(
    flops: float, nbytes: float, seconds: float, peak: float, bandwidth: float, half: float = 0.5, above: bool = True
) -> str:
    times = flops / peak, nbytes / bandwidth
    if above and seconds < max(times):
        return "impossible"
    if max(times) < half * seconds:
        return "neither"
    return "memory" if times[1] > times[0] else "compute"


_POINTS = (
    (2**20, 2**22, 1.5e-6, 989e12, 3.35e12),
    (2**20, 2**22, 9e-6, 989e12, 3.35e12),
    (2 * 4096**3, 6 * 4096**2, 1.8e-4, 989e12, 3.35e12),
    (2 * 4096**3, 6 * 4096**2, 1e-4, 989e12, 3.35e12),
    (2 * 4096**3, 6 * 4096**2, 1e-3, 989e12, 3.35e12),
    (2e9, 2e8, 1.9e-2, 150e9, 30e9),
    (1e9, 8e8, 2.9e-2, 150e9, 30e9),
    (1000, 8000, 2e-6, 150e9, 30e9),
)

function("bottleneck",
    _bottleneck, [
    (lambda f, b, s, p, w: _bottleneck(f, b, s, p, w, above=False),
     "A point above the roof is impossible: look for the mistake before you name a bottleneck."),
    (lambda f, b, s, p, w: _bottleneck(f, b, s, p, w, half=0),
     "A point far below the roof waits for neither: it reaches less than half of what is attainable."),
    (lambda *a: {"memory": "compute", "compute": "memory"}.get(_bottleneck(*a), _bottleneck(*a)),
     "You swapped the two: the larger time is the bottleneck."),
    (lambda f, b, s, p, w:
        "impossible" if s < f / p else "neither" if f / p < s / 2 else "memory" if b / w > f / p else "compute",
     "You compared with the peak instead of the roof: left of the ridge less is attainable."),
    ], cases=_POINTS)


def _layer_seconds(
    batch: int, d: int, f: int, peak: float, bandwidth: float, flop: int = 2, item: int = 2, parts: str = "xwy"
) -> tuple[float, float]:
    numbers = {"x": batch * d, "w": d * f, "y": batch * f}
    return flop * batch * d * f / peak, item * sum(numbers[part] for part in parts) / bandwidth


function("layer_seconds",
    lambda *a: max(_layer_seconds(*a)), [
    (lambda *a: sum(_layer_seconds(*a)),
     "You added the two times: that is the upper bound, if nothing overlaps. At best the larger one is all."),
    (lambda *a: min(_layer_seconds(*a)), "You took the smaller of the two times: the op is done when both are."),
    (lambda *a: max(_layer_seconds(*a, flop=1)), "A multiply-accumulate is two FLOP: you counted each as one."),
    (lambda *a: max(_layer_seconds(*a, item=4)), "You took 4 byte per number: bfloat16 has 2."),
    (lambda *a: max(_layer_seconds(*a, item=16)), "Those are bits: bandwidth is in bytes."),
    (lambda *a: max(_layer_seconds(*a, parts="xw")), "You forgot the write: the output has B × F numbers."),
    (lambda *a: max(_layer_seconds(*a, parts="wy")), "You forgot to read the input: it has B × D numbers."),
    (lambda *a: (_layer_seconds(*a)[0]),
     "That is the arithmetic, without the weights that must be read: a batch of 1 waits for them."),
    ],
    cases=[(batch, 4096, 16384, *machine) for batch in (1, 512)
           for machine in ((312e12, 2.039e12), (989.5e12, 3.35e12), (150e9, 30e9))],
    tolerance=1e-5)

_REASONS = ("cache", "clock", "dtype", "count")
_A = "Where is 1 MB when it is read for the thousandth time?"
_B = "Eight times the work in the same time: what does this time measure?"
_C = "The FLOPs and the time are right. Does the work run on the unit whose peak is 67 TFLOP/s?"
_D = "The time is right, and so is the peak. What are the 6 FLOP made of?"
parts("above_the_roof",
    a=part("cache", [(word, _A) for word in _REASONS if word != "cache"], words=_REASONS),
    b=part("clock", [(word, _B) for word in _REASONS if word != "clock"], words=_REASONS),
    c=part("dtype", [(word, _C) for word in _REASONS if word != "dtype"], words=_REASONS),
    d=part("count", [(word, _D) for word in _REASONS if word != "count"], words=_REASONS))


def _distances(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a * a).sum(1, keepdim=True) - 2 * (a @ b.T) + (b * b).sum(1)


def _whole(rows: int, cols: int, dim: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Two tensors of small whole numbers, so that every way to sum them gives the same result."""
    both = torch.arange((rows + cols) * dim).view(-1, dim)
    return tuple(((both * 7 + both // 5) % 9 - 4).float().split((rows, cols)))


function("distances",
    _distances, [
    (lambda a, b: ((a[:, None] - b[None]) ** 2).sum(-1),
     "It still makes every difference, n × m × d numbers, and stores them: expand the square first."),
    (lambda a, b: (torch.stack([((row - b) ** 2).sum(-1) for row in a])),
     "One row at a time is a smaller tensor, and moves as many bytes in all: use a matmul."),
    (lambda a, b: ((a * a).sum(1, keepdim=True) - a @ b.T + (b * b).sum(1)),
     "The middle term is −2·a·b: you left out the 2."),
    (lambda a, b: ((a * a).sum(1, keepdim=True) + 2 * (a @ b.T) + (b * b).sum(1)),
     "The middle term is −2·a·b: yours has a plus."),
    (lambda a, b: _distances(a, b).sqrt(), "Those are the distances: the question asks for their squares."),
    (lambda a, b: -2 * (a @ b.T), "That is the matmul alone: add the squares of both."),
    ], cases=[_whole(40, 60, 32), _whole(64, 64, 128), _whole(1, 50, 16)], tolerance=1e-4, cost="bytes_eager")
