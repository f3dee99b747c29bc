"""The exercises of notebook 06."""

import torch

from helpers.exercises.exercise import add

add(
    "read_roofline",
    oracle=lambda: (50.0, 20e12, 100e12),
    mistakes={
        "The ridge is upside down: it is peak over bandwidth, in FLOP per byte.": lambda: (0.02, 20e12, 100e12),
        "At 10 FLOP/B you are left of the ridge: there it is bandwidth × intensity, not the peak.": lambda: (
            50.0,
            100e12,
            100e12,
        ),
        "At 200 FLOP/B you are right of the ridge: no op goes beyond the peak.": lambda: (50.0, 20e12, 400e12),
        "At 10 FLOP/B you divided the bandwidth by the intensity: multiply them.": lambda: (50.0, 2e11, 100e12),
        "The axis is logarithmic: the middle between 10 and 100 is about 32, not 55.": lambda: (
            55.0,
            20e12,
            100e12,
        ),
    },
    hint="The ridge is where the slanted part meets the flat one. Left of it, FLOP/s = byte/s × FLOP/byte.",
    tolerance=0.02,
)

add(
    "which_upgrade",
    oracle=lambda: ("bandwidth", "peak", "bandwidth", "neither"),
    mistakes={
        "A ReLU does a quarter of a FLOP per byte: its arithmetic waits for its bytes.": lambda: (
            "peak",
            "peak",
            "bandwidth",
            "neither",
        ),
        "A large matmul does 1365 FLOP per byte, far right of the ridge of 295.": lambda: (
            "bandwidth",
            "bandwidth",
            "bandwidth",
            "neither",
        ),
        "With a batch of 8 each weight is used 8 times: about 8 FLOP per byte, left of the ridge.": lambda: (
            "bandwidth",
            "peak",
            "peak",
            "neither",
        ),
        "The tiny op takes a thousand times as long as its bytes or its FLOPs: it waits for the launch.": lambda: (
            "bandwidth",
            "peak",
            "bandwidth",
            "bandwidth",
        ),
    },
    hint="Compare each intensity with 295. Then compare the time given with what the bytes take.",
)


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

add(
    "bottleneck",
    cases=_POINTS,
    oracle=_bottleneck,
    mistakes={
        "A point above the roof is impossible: look for the mistake before you name a bottleneck.": (
            lambda f, b, s, p, w: _bottleneck(f, b, s, p, w, above=False)
        ),
        "A point far below the roof waits for neither: it reaches less than half of what is attainable.": (
            lambda f, b, s, p, w: _bottleneck(f, b, s, p, w, half=0)
        ),
        "You swapped the two: the larger time is the bottleneck.": lambda f, b, s, p, w: {
            "memory": "compute",
            "compute": "memory",
        }.get(_bottleneck(f, b, s, p, w), _bottleneck(f, b, s, p, w)),
        "You compared with the peak instead of the roof: left of the ridge less is attainable.": (
            lambda f, b, s, p, w: (
                "impossible" if s < f / p else "neither" if f / p < s / 2 else "memory" if b / w > f / p else "compute"
            )
        ),
    },
    hint="Compute both times. The larger one is what the roof allows: compare the measured seconds with it.",
)


def _layer_seconds(
    batch: int, d: int, f: int, peak: float, bandwidth: float, flop: int = 2, item: int = 2, parts: str = "xwy"
) -> tuple[float, float]:
    numbers = {"x": batch * d, "w": d * f, "y": batch * f}
    return flop * batch * d * f / peak, item * sum(numbers[part] for part in parts) / bandwidth


add(
    "layer_seconds",
    cases=tuple(
        (batch, 4096, 16384, peak, bandwidth)
        for batch in (1, 512)
        for peak, bandwidth in ((312e12, 2.039e12), (989.5e12, 3.35e12), (150e9, 30e9))
    ),
    oracle=lambda *a: max(_layer_seconds(*a)),
    mistakes={
        "You added the two times: that is the upper bound, if nothing overlaps. At best the larger one is all.": (
            lambda *a: sum(_layer_seconds(*a))
        ),
        "You took the smaller of the two times: the op is done when both are.": lambda *a: min(_layer_seconds(*a)),
        "A multiply-accumulate is two FLOP: you counted each as one.": lambda *a: max(_layer_seconds(*a, flop=1)),
        "You took 4 byte per number: bfloat16 has 2.": lambda *a: max(_layer_seconds(*a, item=4)),
        "Those are bits: bandwidth is in bytes.": lambda *a: max(_layer_seconds(*a, item=16)),
        "You forgot the write: the output has B × F numbers.": lambda *a: max(_layer_seconds(*a, parts="xw")),
        "You forgot to read the input: it has B × D numbers.": lambda *a: max(_layer_seconds(*a, parts="wy")),
        "That is the arithmetic, without the weights that must be read: a batch of 1 waits for them.": lambda *a: (
            _layer_seconds(*a)[0]
        ),
    },
    hint="FLOPs 2·B·D·F; bytes 2·(B·D + D·F + B·F). Divide each by its rate. Which of the two times counts?",
    tolerance=1e-5,
)

add(
    "above_the_roof",
    oracle=lambda: ("cache", "clock", "dtype", "count"),
    mistakes={
        "Case a: 1 MB stays in the cache from one run to the next. Its roof is that of the cache.": (
            lambda: ("count", "clock", "dtype", "count")
        ),
        "Case b: 20 µs is what a launch takes. The clock stopped before the work was done.": (
            lambda: ("cache", "cache", "dtype", "count")
        ),
        "Case c: 67 TFLOP/s is the float32 rate of the vector unit; with tfloat32 the matrix unit did it.": (
            lambda: ("cache", "clock", "count", "count")
        ),
        "Case d: 6 FLOP per parameter and token are forward and backward. The forward pass has 2.": (
            lambda: ("cache", "clock", "dtype", "clock")
        ),
    },
    hint="A rate is amount over time, and a roof belongs to a unit and a memory. Which of the four is wrong here?",
)


def _distances(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a * a).sum(1, keepdim=True) - 2 * (a @ b.T) + (b * b).sum(1)


def _whole(rows: int, cols: int, dim: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Two tensors of small whole numbers, so that every way to sum them gives the same result."""
    both = torch.arange((rows + cols) * dim).view(-1, dim)
    return tuple(((both * 7 + both // 5) % 9 - 4).float().split((rows, cols)))


add(
    "distances",
    cases=(_whole(40, 60, 32), _whole(64, 64, 128), _whole(1, 50, 16)),
    oracle=_distances,
    mistakes={
        "It still makes every difference, n × m × d numbers, and stores them: expand the square first.": (
            lambda a, b: ((a[:, None] - b[None]) ** 2).sum(-1)
        ),
        "One row at a time is a smaller tensor, and moves as many bytes in all: use a matmul.": lambda a, b: (
            torch.stack([((row - b) ** 2).sum(-1) for row in a])
        ),
        "The middle term is −2·a·b: you left out the 2.": lambda a, b: (
            (a * a).sum(1, keepdim=True) - a @ b.T + (b * b).sum(1)
        ),
        "The middle term is −2·a·b: yours has a plus.": lambda a, b: (
            (a * a).sum(1, keepdim=True) + 2 * (a @ b.T) + (b * b).sum(1)
        ),
        "Those are the distances: the question asks for their squares.": lambda a, b: _distances(a, b).sqrt(),
        "That is the matmul alone: add the squares of both.": lambda a, b: -2 * (a @ b.T),
    },
    hint="Expand the square: |a − b|² = |a|² − 2·a·b + |b|². All products a·b at once are one matmul, a @ b.T.",
    tolerance=1e-4,
    cost="bytes_eager",
)
