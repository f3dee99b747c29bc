"""The exercises of notebook 07."""

import math
import random
from collections.abc import Callable
from math import ceil, floor, sqrt

from helpers.exercises.exercise import function, value

# fmt: off


def _kept(block: float = 16, item: float = 4) -> Callable[..., float]:
    return lambda layers, width, batch, tokens: layers * block * batch * tokens * width * item


function("layer_activations",
    _kept(), [
    (lambda n, d, b, t: _kept()(1, d, b, t), "That is one layer: each keeps its own."),
    (_kept(12), "You counted the inside of the MLP once: the 4D numbers before the GELU are kept, and those after it."),
    (_kept(13), "You left out queries, keys and values: 3D numbers for each token."),
    (_kept(8), "Half of it: you left out the MLP's 4 + 4, or took 2 bytes; float32 has 4."),
    (_kept(4), "Those are numbers, not bytes, or one number of the 16: float32 has 4 bytes."),
    (_kept(item=32), "Those are bits: a float32 has 4 bytes."),
    (lambda n, d, b, t: _kept()(n, d, 1, t), "That is for one text: multiply by the batch."),
    (lambda n, d, b, t: _kept()(n, d, b, 1), "That is for one token: multiply by the tokens."),
    (lambda n, d, b, t: _kept()(n, 1, b, t), "That leaves out the width: 16 numbers per token and unit of width."),
    (lambda n, d, b, t: _kept()(n, d, b, t) + 4 * n * b * t**2, "The scores are not kept here: the kernel is fused."),
    (_kept(12 * 4), "Those are 12 · 4 numbers: the 12 are parameters per width squared, not what is kept."),
    ],
    cases=[(12, 768, 8, 1024), (2, 128, 4, 64), (96, 12288, 1, 2048)],
    draw=lambda r: (r.randint(2, 96), r.randint(1, 96) * 64, r.randint(2, 32), r.randint(2, 4096)))


def _step(states: float = 16, keep: float = 16, head: float = 1, item: float = 4) -> Callable[..., float]:
    return lambda n, layers, width, vocabulary, batch, tokens: (
        states * n + item * batch * tokens * (keep * layers * width + head * vocabulary))


function("step_memory",
    _step(), [
    (_step(8), "You forgot the optimizer: AdamW keeps two moments, 8 bytes per parameter."),
    (_step(12), "You took 12 bytes per parameter: weight, gradient and two moments are four numbers."),
    (_step(4), "You counted the weights alone: gradients and two moments are as large each."),
    (_step(0), "You forgot weights, gradients and moments: 16 bytes per parameter."),
    (_step(20), "In float32 there is no master copy: 16 bytes per parameter."),
    (_step(keep=0), "You forgot the activations."),
    (_step(head=0), "You forgot the logits: a number for each token and each entry of the vocabulary."),
    (_step(head=2), "You counted the logits twice: here their gradient is not asked for."),
    (_step(item=2), "You took 2 bytes per activation: float32 has 4."),
    (_step(item=1), "You counted numbers, not bytes, of what is kept: float32 has 4."),
    (_step(4, item=1), "Those are numbers: a float32 has 4 bytes."),
    (lambda n, l_, d, v, b, t: 16 * n + 4 * b * t * (16 * d + v), "You counted one layer: each keeps its own."),
    (lambda n, l_, d, v, b, t: _step()(n, l_, d, v, 1, t), "That is for one text: multiply by the batch."),
    (lambda n, l_, d, v, b, t: _step()(n, l_, d, v, b, t) - 4 * b * t * v + 4 * v, "There are logits for every token."),
    (lambda n, l_, d, v, b, t: _step()(n, l_, d, l_ * v, b, t), "The logits come once, after the last layer."),
    ],
    cases=[(124e6, 12, 768, 50257, 8, 1024), (410_240, 2, 128, 64, 8, 64), (1e9, 24, 2048, 32000, 2, 512)],
    draw=lambda r: (r.randint(1, 999) * 10**6, r.randint(2, 96), r.randint(1, 96) * 64, r.randint(100, 99_999),
                    r.randint(2, 32), r.randint(2, 4096)))


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

value("long_cache", _PER_TOKEN * 131_072 / 1e9, [
    (340.0, "That is the printed number: it counts 64 heads for each token, and the cache has 8."),
    (_PER_TOKEN * 131_072 / 2e9, "You counted keys or values, or one byte each: the cache holds both, in 2 bytes."),
    (_PER_TOKEN * 131_072 / 8e9, "You left out the heads: the cache has 8."),
    (_PER_TOKEN * 131_072 / 2**30, "That is in GiB; the question asks for GB."),
    (_PER_TOKEN * 131_072, "That is a number of bytes; the question asks for GB."),
    (_PER_TOKEN * 131_072 / 80e9, "You counted one layer: there are 80."),
    (2 * _PER_TOKEN * 131_072 / 1e9, "Twice too much: 2 bytes each, and 2 for keys and values."),
], unit="GB", tolerance=0.02)

value("same_compute", 70e9 * 1.4e12 / (280e9 * 300e9), [
    (1, "That is the claim: exactly 4 times the data on a quarter of the parameters. How many tokens were it?"),
    (280e9 * 300e9 / (70e9 * 1.4e12), "That is Gopher over Chinchilla; the question asks for Chinchilla over Gopher."),
    (1.4e12 / 300e9, "That is the ratio of the tokens; multiply by that of the parameters."),
    (70e9 / 280e9, "That is the ratio of the parameters; multiply by that of the tokens."),
    (4, "The parameters changed, too: a quarter of them."),
    (1.4e12 / 300e9 * 4, "A quarter of the parameters: divide by 4, do not multiply."),
    (6 * 70e9 * 1.4e12, "That is Chinchilla's budget in FLOP: over Gopher's, please."),
    (16.67, "That is in percent more: how many times Gopher's budget is it?"),
], tolerance=0.01)

_SCORES = 12 * 96 * 12288 * 2048 / (6 * 175e9)  # of GPT-3: attention over all else

value("gpt3_mfu", 24.6e12 * (1 + _SCORES) / 125e12, [
    (0.213, "That is what the table prints, and what 12 · L · D · T gives three times over; once is enough."),
    (24.6 / 125, "You left out attention: 24.6 TFLOP/s are without it."),
    (24.6 / 312 * (1 + _SCORES), "You took an A100; GPT-3 was trained on V100."),
    (24.6 / 15.7 * (1 + _SCORES),
     "You took the vector unit of a V100, 15.7 TFLOP/s; above 1 means a wrong denominator."),
    (24.6 / 28 * (1 + _SCORES), "You took 28 TFLOP/s: the matrix unit of a V100 does 125."),
    (24.6 / 125 / (1 + _SCORES), "Attention comes on top: multiply, do not divide."),
    (24.6 / 125 * _SCORES, "That is attention alone: add the rest."),
    (24.6 / 125 * (1 + 6 * _SCORES), "You compared 12 · L · D · T with N: compare it with 6N."),
    (2460 / 125 * (1 + _SCORES), "That is in percent: a fraction of 1 is asked for."),
], tolerance=0.002, same=dict.fromkeys([
    "scores = 12 * 97 * 12288 * 2048 / (6 * 175000000000.0)", "scores = 12 * 95 * 12288 * 2048 / (6 * 175000000000.0)",
], "one layer of 96 is below the tolerance"))
