"""The exercises of notebook 07."""

import math
import random
from collections.abc import Callable
from math import ceil, floor, sqrt

from helpers.exercises.exercise import function, value

# fmt: off


def _gated(hidden: float = 4, inputs: float = 1) -> Callable[..., float]:
    return lambda width, f, batch, tokens, item: batch * tokens * (inputs * width + hidden * f) * item


function("gated_mlp_kept",
    _gated(), [
    (_gated(3), "One of four hidden tensors is missing: SiLU's input, the product's two factors, and down's input."),
    (_gated(2), "Two of four hidden tensors are missing: SiLU's input, the product's two factors, and down's input."),
    (_gated(1), "Of the hidden tensors you kept one: SiLU, the product and down need four between them."),
    (_gated(5), "One hidden tensor too many: what two operations need is kept once."),
    (_gated(4, 2), "Gate and up have the same input: it is kept once, and the output is kept by nobody here."),
    (_gated(4, 0), "The input of gate and up is kept, too."),
    (_gated(0), "Those are only the inputs of gate and up: what do SiLU, the product and down need?"),
    (lambda d, f, b, t, i: b * t * (d + 4 * f), "Those are numbers: a number has itemsize bytes."),
    (lambda d, f, b, t, i: t * (d + 4 * f) * i, "That is for one text: multiply by the batch."),
    (lambda d, f, b, t, i: b * (d + 4 * f) * i, "That is for one token: multiply by the tokens."),
    (lambda d, f, b, t, i: b * t * (f + 4 * d) * i, "Width and hidden width are exchanged."),
    (lambda d, f, b, t, i: 3 * d * f * i, "Those are the parameters: asked for is what autograd keeps besides them."),
    ],
    cases=[(4096, 14336, 1, 8192, 2), (64, 160, 3, 16, 4), (8192, 28672, 2, 4096, 2)],
    draw=lambda r: (r.randint(2, 96) * 64, r.randint(3, 400) * 32, r.randint(2, 32), r.randint(2, 4096),
                    r.choice((2, 4))))


def _fit(
    rounded: Callable[[float], float] = floor, *, states: float = 16, shared: bool = True, least: float = 0
) -> Callable[..., float]:
    return lambda memory, devices, n, each: max(
        rounded((memory - states * n / (devices if shared else 1)) / each), least)


_MINUS = -math.inf
_ROUND, _ZERO = "A batch is a whole number: round down.", "Nothing fits when the states alone are too large: return 0."
function("largest_batch",
    _fit(), [
    (_fit(ceil), "One text more than that fits: round down."),
    (_fit(round), "Rounded to the nearest, one text more than that may fit: round down."),
    (_fit(float), _ROUND),
    (_fit(least=_MINUS), _ZERO),
    (_fit(int, least=_MINUS), _ZERO),
    (_fit(float, least=_MINUS), f"{_ROUND} And when the states alone are too large, return 0."),
    (_fit(round, least=_MINUS), f"{_ROUND} And when the states alone are too large, return 0."),
    (_fit(least=1), "Nothing fits when the states alone are too large: not even one text."),
    (_fit(states=0), "You forgot the states: 16 bytes per parameter, shared by the devices."),
    (_fit(states=2),
     "You took 2 bytes per parameter, the weights alone: gradients and optimizer need their place, too."),
    (_fit(states=4),
     "You took 4 bytes per parameter, the weights alone: gradients and optimizer need their place, too."),
    (_fit(states=12), "You took 12 bytes per parameter: weight, gradient and two moments are four numbers of 4 bytes."),
    (_fit(shared=False), "You put all the states on each device: here they are shared."),
    (_fit(shared=False, least=_MINUS), "You put all the states on each device; and the number is never below 0."),
    (lambda memory, devices, n, each: max(floor((memory * devices - 16 * n) / each), 0),
     "That is for all the devices together: how many texts fit on one?"),
    (lambda memory, devices, n, each: floor(memory / each - 16 * n / devices),
     "Texts and bytes: take the states off first."),
    ],
    cases=[(80e9, 8, 8e9, 9.1e9), (80e9, 64, 70e9, 5.5e9), (24e9, 1, 1.3e9, 0.9e9), (80e9, 1, 8e9, 9.1e9),
           (64e9, 2, 2e9, 6e9)],
    draw=lambda r: (r.choice((24, 40, 80)) * 10**9, r.choice((1, 2, 4, 8)),
                    r.randint(1, 20) * 10**9, r.randint(7, 99) * 10**8),
    same={"return max(math.floor(room // per_text), 0)": "the quotient is whole already",
          "room = memory - 16 * parameters // devices": "half a byte is nothing"})

_OFFERS = {"T4": (65e12, 0.35), "L40S": (366.5e12, 1.0), "H100": (989.5e12, 3.0)}  # dense FLOP/s, price an hour


def _cheapest(
    work: float, days: float, mfu: float, most: float, by: str = "price", rounded: Callable[[float], float] = ceil
) -> str:
    found = {}
    for name, (peak, price) in _OFFERS.items():
        hours = work / (peak * mfu) / 3600
        if rounded(hours / (24 * days)) <= most:
            found[name] = {"price": hours * price, "hour": price, "devices": hours}[by]
    return min(found, key=found.get) if found else "none"


def _draw_run(r: random.Random) -> tuple[float, float, float, int]:
    """A run for which one of the offers needs about as many devices as there are."""
    days, mfu, most = r.choice((1, 7, 90)), r.choice((0.3, 0.4, 0.5)), r.choice((3, 10, 64, 1024))
    peak = r.choice((65e12, 366.5e12, 989.5e12))
    return (most + r.choice((-0.4, 0.01, 0.4, 0.6))) * 86400 * days * peak * mfu, days, mfu, most


function("cheapest_machine",
    _cheapest, [
    (lambda work, days, mfu, most: _cheapest(work, days, mfu, math.inf),
     "You did not look at the deadline: some need more devices than there are."),
    (lambda *a: _cheapest(*a, by="hour"), "You took the lowest price of an hour: a slower device needs more hours."),
    (lambda *a: _cheapest(*a, by="devices"), "You took the fewest devices: the question is what they cost."),
    (lambda *a: _cheapest(*a, rounded=floor), "You rounded the devices down: then the run misses the deadline."),
    (lambda *a: _cheapest(*a, rounded=round), "Rounded to the nearest, the devices may be too few: round up."),
    (lambda w, d, m, n: _cheapest(w, d, 1, n), "You left out the MFU: nobody gets the peak."),
    (lambda w, d, m, n: _cheapest(w, d / 24, m, n), "A day has 24 hours."),
    (lambda w, d, m, n: _cheapest(w, d, m, 1024), "You took 1024 devices: `most` says how many there are."),
    (lambda *a: "H100" if _cheapest(*a) == "none" else _cheapest(*a), 'Where no offer meets the deadline, say "none".'),
    (lambda w, d, m, n: _cheapest(w, d, m, n - 1), "Exactly as many devices as there are is allowed."),
    ],
    cases=[(2e22, 60, 0.4, 1024), (1.6e24, 90, 0.4, 1024), (6.3e24, 120, 0.5, 2048), (2e23, 4, 0.4, 1024),
           (1e25, 10, 0.5, 64), (1024.5 * 86400 * 366.5e12 * 0.5, 1, 0.5, 1024),
           (64 * 86400 * 366.5e12 * 0.5, 1, 0.5, 64), (3.01 * 86400 * 366.5e12 * 0.5, 1, 0.5, 3)],
    draw=_draw_run, words=(*_OFFERS, "none"),
    same={"if hours / (24 * days) <= most:": "`most` is a whole number",
          "hours = work // (peak * mfu) / 3600": "half a second is nothing"} | dict.fromkeys([
        "offers = {'T4': (32500000000000.0, 0.35), 'L40S': (366500000000000.0, 1.0), 'H100': (989500000000000.0, 3.0)}",
        "offers = {'T4': (65000000000000.0, 0.7), 'L40S': (366500000000000.0, 1.0), 'H100': (989500000000000.0, 3.0)}",
        "offers = {'T4': (65000000000000.0, 0.35), 'L40S': (366500000000000.0, 0.5), 'H100': (989500000000000.0, 3.0)}",
        "offers = {'T4': (65000000000000.0, 0.35), 'L40S': (366500000000000.0, 1.0), 'H100': (989500000000000.0, 6.0)}",
    ], "the L40S stays the cheapest, and the T4 the one that needs most devices"))


def _affordable(flop: float = 6, mfu: bool = True, hour: float = 3600, day: float = 24) -> Callable[..., float]:
    return lambda devices, days, peak, share, each: sqrt(
        devices * days * day * hour * peak * (share if mfu else 1) / (flop * each))


function("affordable_model",
    _affordable(), [
    (_affordable(mfu=False), "You left out the MFU: nobody gets the peak."),
    (_affordable(2), "Training takes 6 FLOP per parameter and token; 2 is the forward pass alone."),
    (_affordable(3), "A multiply-add is 2 FLOP: training takes 6 per parameter and token."),
    (_affordable(1), "You left out the 6 FLOP per parameter and token."),
    (_affordable(hour=60), "An hour has 3600 seconds."),
    (_affordable(hour=1), "The peak is per second: an hour has 3600 of them."),
    (_affordable(day=1), "A day has 24 hours."),
    (_affordable(hour=1, day=1), "The peak is per second: a day has 86 400 of them."),
    (lambda *a: _affordable()(*a) ** 2,
     "Tokens grow with the parameters, so the work goes with N²: take a square root."),
    (lambda *a: _affordable()(*a) ** 2 * a[-1], "You left out the tokens: their number grows with the parameters."),
    (lambda *a: _affordable()(*a) * a[-1], "That is the number of tokens; the question asks for parameters."),
    (lambda *a: _affordable()(*a) ** 2 * 6 * a[-1], "Those are the FLOPs delivered: how large a model do they train?"),
    (lambda *a: _affordable()(1, *a[1:]), "That is one device: multiply by the devices."),
    (lambda *a: sqrt(_affordable()(*a) ** 2 * a[-1]), "You left out the tokens for each parameter."),
    ],
    cases=[(64, 30, 989.5e12, 0.4, 20), (8, 14, 989.5e12, 0.5, 200), (1, 1, 312e12, 0.3, 20)],
    draw=lambda r: (r.randint(2, 999), r.randint(2, 99), r.randint(10, 999) * 1e12,
                    r.choice((0.3, 0.4)), r.randint(5, 300)),
    same={"return math.sqrt(delivered // (6 * tokens_each))": "half a parameter is nothing"})


def _served(
    rounded: Callable[[float], float] = floor, *, weights: float = 1, cache: bool = True, least: float = 0
) -> Callable[..., float]:
    return lambda memory, n, item, each, tokens: max(
        rounded((memory - weights * n * item) / (each * (tokens if cache else 1))), least)


function("users_served",
    _served(), [
    (_served(weights=0), "You forgot the weights: they need their place first."),
    (_served(cache=False), "You counted the cache of one token: each user has one for every token."),
    (_served(ceil), "One user more than that fits: round down."),
    (_served(round), "Rounded to the nearest, one user more than that may fit: round down."),
    (_served(float), "Users are whole: round down."),
    (_served(least=_MINUS), "Where the weights alone are too large, nobody fits: return 0."),
    (_served(int, least=_MINUS), "Where the weights alone are too large, nobody fits: return 0."),
    (_served(float, least=_MINUS), "Users are whole: round down. And where the weights are too large, return 0."),
    (_served(least=1), "Where the weights alone are too large, not even one user fits."),
    (_served(weights=2), "The weights are needed once, whatever the number of users."),
    (lambda m, n, i, each, t: max(floor((m - n) / (each * t)), 0), "A parameter has itemsize bytes."),
    (lambda m, n, i, each, t: max(floor((m - n * i) / (each * t * i)), 0), "The cache is given in bytes already."),
    (lambda m, n, i, each, t: max(floor((m - n * i) / each * t), 0),
     "Divide by all that a user needs, tokens and all."),
    (lambda m, n, i, each, t: floor(m / (n * i + each * t)), "The weights are there once for all users."),
    ],
    cases=[(8 * 80e9, 70e9, 2, 327_680, 4096), (4 * 80e9, 70e9, 1, 163_840, 8192), (24e9, 8e9, 1, 65_536, 2048),
           (80e9, 70e9, 2, 327_680, 4096)],
    draw=lambda r: (r.randint(1, 9) * 80 * 10**9, r.choice((8, 70, 405)) * 10**9, r.choice((1, 2)),
                    r.randint(9, 99) * 7919, r.randint(2, 99) * 500),
    same={"return max(math.floor((memory - parameters * itemsize) // (per_token * tokens)), 0)": "whole already"})

_YEAR = 365.25 * 24 * 3600
_PER_TOKEN = 2 * 80 * 8 * 128 * 2  # bytes of cache: Llama 3 70B in bfloat16

value("gpu_years", 3.14e23 / 125e12 / _YEAR, [
    (3.14e23 / 28e12 / _YEAR, "That is the claim itself: 28 TFLOP/s is not what the matrix unit of a V100 reaches."),
    (3.14e23 / 112e12 / _YEAR, "That is the card for PCIe, with 112 TFLOP/s; the one in specs is the SXM2."),
    (3.14e23 / 15.7e12 / _YEAR,
     "You took the vector unit in float32, 15.7 TFLOP/s; matmuls in float16 run on the matrix unit."),
    (3.14e23 / 31.4e12 / _YEAR, "You took the vector unit in float16; matmuls in float16 run on the matrix unit."),
    (3.14e23 / 24.6e12 / _YEAR, "The 24.6 TFLOP/s are what a run reached: take the peak."),
    (3.14e23 / 312e12 / _YEAR, "That is an A100. The claim is about a V100."),
    (3.14e23 / 989.5e12 / _YEAR, "That is an H100. The claim is about a V100."),
    (3.14e23 / 125e12 / (24 * 3600), "Those are days; the question asks for years."),
    (3.14e23 / 125e12 / 3600, "Those are hours; the question asks for years."),
    (3.14e23 / 125e12, "Those are seconds; the question asks for years."),
    (355 * 125 / 28, "That is upside down: a faster device needs fewer years."),
], tolerance=0.01, same=dict.fromkeys([
    "answer = 3.14e+23 / peak // (365.25 * units.DAY)", "answer = 3.14e+23 // peak / (365.25 * units.DAY)",
], "the fraction lost is below the tolerance"))

value("requests_that_fit", floor((80e9 - 35e9) / (_PER_TOKEN * 4096)), [
    (45e9 // 160e6, "That is the page's own count: check its cache of 160 MB for 4096 tokens."),
    (280, "That is the printed number: check the page's cache of 160 MB for 4096 tokens."),
    (45e9 // (160 * 2**20), "That is what 160 MiB give: a factor of 8 is missing, the heads of the cache."),
    (45e9 // (_PER_TOKEN / 2 * 4096),
     "You counted keys or values, or one byte each: the cache holds both, in 2 bytes."),
    (80e9 // (_PER_TOKEN * 4096), "You gave all 80 GB to the caches: the weights take 35 GB."),
    (45e9 // (8 * _PER_TOKEN * 4096), "You took 64 heads: the cache has 8, each shared by 8 query heads."),
    (45e9 / (_PER_TOKEN * 4096), "Requests are whole: round down."),
    (34, "One request more than that fits: round down."),
    (45e9 // (_PER_TOKEN / 80 * 4096), "You counted one layer: there are 80."),
    (45e9 // _PER_TOKEN, "You counted the cache of one token: a request has 4096."),
    (45 * 2**30 // (_PER_TOKEN * 4096), "You took GB for GiB: 80 GB are 80·10⁹ bytes."),
])

_SCORES = 12 * 96 * 12288 * 2048 / (6 * 175e9)  # of GPT-3: attention over all else

value("gpt3_scores", (0.213 * 125 / 24.6 - 1) / _SCORES, [
    (1, "Added once, they give 20.2 %, and 21.3 % is printed."),
    (0, "Without the scores it is 19.7 %: not what is printed."),
    (24.6 / 125 * (1 + _SCORES), "That is the MFU with the scores added once. How often were they added for 21.3 %?"),
    (2, "Twice gives 20.8 %, and 21.3 % is printed."),
    (6, "Compare with 6N, not with N."),
    (0.5, "You compared 12 · L · D · T with N: compare it with 6N."),
    (0.213 * 125 / 24.6, "That is the printed MFU over the one without scores: take 1 off, and divide by their share."),
    (0.213 * 125 / 24.6 - 1, "That is what all the added scores make: divide by the share of one."),
], tolerance=0.02, same=dict.fromkeys([
    "share = 12 * 97 * 12288 * 2048 / (6 * 175000000000.0)", "share = 12 * 95 * 12288 * 2048 / (6 * 175000000000.0)",
], "one layer of 96 is below the tolerance"))
