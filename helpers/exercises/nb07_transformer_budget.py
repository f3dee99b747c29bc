"""The exercises of notebook 07."""

import math
import random
from collections.abc import Callable
from math import ceil, floor, sqrt

from helpers.exercises.exercise import function, guess, value

# fmt: off
guess("block_keeps",
    "Almost every box keeps its input. That of GELU and down is four times as wide; attention keeps four tensors.",
    (1, "That is its input or its output: each stage keeps its own."),
    (7, "Those are the inputs of the four products: norms, attention and GELU keep theirs, too."),
    (10, "One for each box? The hidden tensors are four times as wide, and queries, keys and values are three."),
    (12, "The hidden tensor is kept twice, before the GELU and after it."),
    (13, "Attention keeps queries, keys, values and its result: four, not one."),
    (34, "34 is known as a number of bytes, in 16 bits and with dropout: here the unit is the size of the input."))
guess("peak_of_step", "At the loss three tables as large as the logits are alive at once.",
    (35.9, "That is the sum: some of its terms are not there yet."),
    (21.5, "Weights, moments and activations: add the tables that are alive at the loss."),
    (31.7, "Did you count one table of that size?"),
    (lambda right: right - 10.24, "Did you count two tables of that size?"),
    (lambda right: right + 10.24, "About right for a loop that holds on to its logits."))
guess("peak_recomputed", "Weights and moments stay, one block at a time exists in full, and gradients pile up.",
    (33.4 / 16, "That shrinks weights and moments, too: they stay."),
    (33.4 / 12, "A twelfth of everything? Weights and moments stay."),
    (33.4 / 2, "Only the activations shrink, and to far less than half."),
    (7.3, "Weights and moments alone take 7.3 MB."),
    (9.57, "Is one of them left out? Weights, moments, gradients, and a whole block that runs again."),
    (7.3 + 26.1 / 16, "And the block that runs again, and the gradients so far?"),
    (11.04, "And the gradients so far?"),
    (33.4, "That is the peak without recomputation."))
guess("one_user", "A token needs all weights (of the input embedding one row alone) and the cache.",
    (lambda right: right / 2, "Half: of one H100, or with two bytes a number."),
    (lambda right: 2 * right, "Twice too much: two devices halve the time, and only once."),
    (1000, "Thousands are for many users: here all weights are read for one token."),
    (24680, "That is how fast the arithmetic is."),
    (lambda right: 1e3 / right, "If these are ms for a token: how many tokens make a second?"))
guess("own_step", "Products are nearly all the FLOPs, but other operations take time, too.",
    (1, "Then only products would take any time."),
    (0.4, "If that is the MFU: the time is the inverse of it, times its prediction."))


def _gated(hidden: float = 4, inputs: float = 1) -> Callable[..., float]:
    return lambda width, f, batch, tokens, item: batch * tokens * (inputs * width + hidden * f) * item


function("gated_mlp_kept",
    _gated(), [
    (_gated(3), "One of four hidden tensors is missing: SiLU's input, the product's two factors, and down's input."),
    (_gated(2), "Two of four hidden tensors are missing: SiLU's input, the product's two factors, and down's input."),
    (_gated(1), "Of the hidden tensors you kept one: SiLU, the product and down need four between them."),
    (_gated(5), "One hidden tensor too many: what two operations need is kept once."),
    (_gated(4, 2), "Gate and up have the same input: it is kept once, and nothing here keeps the output."),
    (_gated(4, 0), "The input of gate and up is kept, too."),
    (_gated(3, 2), "Gate and up have one input, and four hidden tensors are kept."),
    (lambda d, f, b, t, i: b * t * (d + 4 * f), "Those are numbers: a number has itemsize bytes."),
    (lambda d, f, b, t, i: t * (d + 4 * f) * i, "That is for one text: multiply by the batch."),
    (lambda d, f, b, t, i: b * (d + 4 * f) * i, "That is for one token: multiply by the tokens."),
    (lambda d, f, b, t, i: b * t * (f + 4 * d) * i, "You swapped width and hidden width."),
    ],
    cases=[(64, 160, 3, 16, 4), (128, 352, 1, 64, 2), (256, 704, 2, 32, 2)],
    draw=lambda r: (r.randint(2, 24) * 8, r.randint(3, 80) * 8, r.randint(2, 8), r.randint(2, 64),
                    r.choice((2, 4))))


def _fit(
    rounded: Callable[[float], float] = floor, *, states: float = 16, shared: bool = True, least: float = 0
) -> Callable[..., float]:
    return lambda memory, devices, n, each: max(
        rounded((memory - states * n / (devices if shared else 1)) / each), least)


_ALL = "That is for all the devices together: they share the states, but no text. How many fit on one?"
_ZERO = "Nothing fits when the states alone are too large: return 0."
function("largest_batch",
    _fit(), [
    (_fit(round), "Rounded to the nearest, it may be one more than fits: round down."),
    (_fit(lambda texts: ceil(texts) - 1), "A text that fits exactly counts, too."),
    (_fit(floor, least=-math.inf), _ZERO),
    (_fit(int, least=-math.inf), _ZERO),
    (_fit(float, least=-math.inf),
     "Round down: only whole texts that fit count. And when the states alone are too large, return 0."),
    (_fit(states=0), "You forgot the states: 16 bytes per parameter, shared by the devices."),
    *((_fit(states=kept), "With AdamW a parameter takes 16 bytes: value, gradient and two moments.")
      for kept in (4, 8, 12)),
    (_fit(shared=False), "You put all the states on each device: here they are shared."),
    (lambda memory, devices, *a: devices * _fit()(memory, devices, *a), _ALL),
    (lambda memory, devices, n, each: max(floor((memory * devices - 16 * n) / each), 0), _ALL),
    (lambda memory, devices, n, each: max(floor((memory / devices - 16 * n / devices) / each), 0),
     "Memory is that of each device: only the states are divided."),
    (lambda memory, devices, n, each: max(floor(memory / (16 * n / devices + each)), 0),
     "The states are there once, not once for each text: take them off first."),
    ],
    cases=[(80e9, 8, 8e9, 9.1e9), (80e9, 64, 70e9, 5.5e9), (24e9, 1, 1.3e9, 0.9e9), (80e9, 1, 8e9, 9.1e9),
           (64e9, 2, 2e9, 6e9), (80e9, 2, 1e9, 3e9), (24e9, 4, 4e9, 6e9)],
    draw=lambda r: (r.choice((24, 40, 80)) * 10**9, r.choice((1, 2, 4, 8)),
                    r.randint(1, 20) * 10**9, r.randint(7, 99) * 10**8),
    same={"return max(math.floor(room // per_text), 0)": "the quotient is whole already",
          "room = memory - 16 * parameters // devices": "half a byte is nothing"})

_PEAKS = {"T4": 65e12, "L40S": 366.5e12, "H100": 989.5e12}  # dense FLOP/s
_Offers = dict[str, tuple[float, float]]


def _cheapest(
    offers: _Offers, work: float, days: float, mfu: float, most: float,
    by: Callable[[float, float, int], float] = lambda hours, price, devices: hours * price,
) -> str:
    found = {}
    for name, (peak, price) in offers.items():
        hours = work / (peak * mfu) / 3600
        devices = ceil(hours / (24 * days))
        if devices <= most:
            found[name] = by(hours, price, devices)
    return min(found, key=found.get) if found else "none"


def _prices(t4: float, l40s: float, h100: float) -> _Offers:
    return dict(zip(_PEAKS, zip(_PEAKS.values(), (t4, l40s, h100), strict=True), strict=True))


def _draw_run(r: random.Random) -> tuple[_Offers, float, float, float, int]:
    """A run for which one of the offers needs about as many devices as there are."""
    days, mfu, most = r.choice((1, 7, 90)), r.choice((0.3, 0.4, 0.5)), r.choice((3, 10, 64, 1024))
    work = (most + r.choice((-0.4, 0.01, 0.4, 0.6))) * 86400 * days * r.choice(list(_PEAKS.values())) * mfu
    offers = _prices(r.choice((0.15, 0.35, 0.8)), r.choice((0.7, 1.0, 1.2)), r.choice((1.8, 3.0)))
    return offers, work, days, mfu, most


_CHEAP, _DEAR = _prices(0.15, 1.0, 3.0), _prices(0.35, 1.0, 3.0)
function("cheapest_machine",
    _cheapest, [
    (lambda o, w, d, m, n: _cheapest(o, w, d, m, math.inf),
     "You did not look at the deadline: some need more devices than there are."),
    (lambda o, w, d, m, n: _cheapest({(best := _cheapest(o, w, d, m, math.inf)): o[best]}, w, d, m, n),
     "If the cheapest misses the deadline, the next cheapest may not: drop the late ones first."),
    (lambda *a: _cheapest(*a) if _cheapest(*a) != "none" else min([]),
     'Nothing meets the deadline here: return "none" before you take the least.'),
    (lambda *a: _cheapest(*a, by=lambda hours, price, devices: price),
     "The lowest price of an hour wins here: a slower device needs more hours, so multiply by those it needs."),
    (lambda o, w, d, m, n: _cheapest(o, w, d, m, n, lambda hours, price, devices: devices * d * price),
     "You priced the devices, or all their days: only the time that they work costs."),
    (lambda o, w, d, m, n: min(o, key=lambda name: o[name][1]),
     "That goes by the price of an hour alone: what do all the hours cost, and does it meet the deadline?"),
    (lambda *a: _cheapest(*a, by=lambda hours, price, devices: hours),
     "You took the fastest, so the fewest devices: the question is which costs least."),
    (lambda *a: _cheapest(*a, by=lambda hours, price, devices: devices * hours * price),
     "The hours are device-hours already: do not multiply them by the devices."),
    (lambda *a: _cheapest(*a, by=lambda hours, price, devices: ceil(hours) * price),
     "You rounded the hours up: half an hour costs half."),
    (lambda o, w, d, m, n: _cheapest(o, w, d, 1, n), "You left out the MFU: nobody gets the peak."),
    (lambda o, w, d, m, n: _cheapest(o, w, d / 24, m, n), "A day has 24 hours."),
    (lambda o, w, d, m, n: _cheapest(o, w, d / 3600, m, n),
     "You compare hours with seconds: an hour has 3600 of them."),
    (lambda o, w, d, m, n: _cheapest(o, w, d, m, n - 1), "Exactly as many devices as there are is allowed."),
    ],
    cases=[(_CHEAP, 2e22, 60, 0.4, 1024), (_DEAR, 2e22, 60, 0.4, 1024), (_DEAR, 1.6e24, 90, 0.4, 1024),
           (_DEAR, 1e25, 10, 0.5, 64), (_DEAR, 1e18, 30, 0.4, 8), (_DEAR, 1e28, 1, 0.5, 1),
           (_prices(0.8, 0.7, 3.0), 2e22, 60, 0.4, 1024),
           (_DEAR, 1024.5 * 86400 * 366.5e12 * 0.5, 1, 0.5, 1024), (_DEAR, 64 * 86400 * 366.5e12 * 0.5, 1, 0.5, 64),
           (_DEAR, 1e16, 30, 0.4, 8), (_DEAR, 0.9 * 64 * 86400 * 989.5e12, 1, 0.4, 64)],
    draw=_draw_run, words=(*_PEAKS, "none"),
    same={"if hours / (24 * days) <= most:": "`most` is a whole number",
          "hours = work // (peak * mfu) / 3600": "half a second is nothing"})


def _affordable(flop: float = 6, mfu: bool = True, hour: float = 3600, day: float = 24) -> Callable[..., float]:
    return lambda devices, days, peak, share, each: sqrt(
        devices * days * day * hour * peak * (share if mfu else 1) / (flop * each))


function("affordable_model",
    _affordable(), [
    (_affordable(mfu=False), "You left out the MFU: nobody gets the peak."),
    (lambda *a: _affordable()(*a[:3], 1 / a[3], a[4]),
     "You divided by the MFU: it makes the work that gets done less."),
    (_affordable(2), "Training takes 6 FLOP per parameter and token; 2 is the forward pass alone."),
    (_affordable(1), "You left out the 6 FLOP per parameter and token."),
    (_affordable(hour=1), "The peak is per second: an hour has 3600 of them."),
    (_affordable(hour=1, day=1), "The peak is per second: a day has 86 400 of them."),
    (lambda *a: _affordable()(1, *a[1:]), "That is one device: multiply by the devices."),
    (lambda *a: _affordable()(*a) ** 2,
     "Tokens grow with the parameters, so the work goes with N²: take a square root."),
    (lambda *a: sqrt(_affordable()(*a) ** 2 * a[-1]), "You left out the tokens for each parameter."),
    (lambda *a: _affordable()(*a) * a[-1], "That is the number of tokens, or `/ 6 * t` without parentheses."),
    ],
    cases=[(64, 30, 989.5e12, 0.4, 20), (8, 14, 989.5e12, 0.5, 200), (1, 1, 312e12, 0.3, 20)],
    draw=lambda r: (r.randint(2, 999), r.randint(2, 99), r.randint(10, 999) * 1e12,
                    r.choice((0.3, 0.4)), r.randint(5, 300)),
    same={"return math.sqrt(delivered // (6 * tokens_each))": "half a parameter is nothing"})


_YEAR = 365.25 * 24 * 3600
_PER_TOKEN = 2 * 80 * 8 * 128 * 2  # bytes of cache: Llama 3 70B in bfloat16

value("gpu_years", 3.14e23 / 125e12 / _YEAR, [
    (355, "That is the claim itself: 28 TFLOP/s is not what the matrix unit of a V100 reaches."),
    (3.14e23 / 31.4e12 / _YEAR, "You took the vector unit; matmuls in float16 run on the matrix unit."),
    (3.14e23 / 15.7e12 / _YEAR, "You took the vector unit; matmuls in float16 run on the matrix unit."),
    (3.14e23 / 112e12 / _YEAR, "You took 112 TFLOP/s, the PCIe card's: the one in specs is the SXM2."),
    (3.14e23 / 24.6e12 / _YEAR, "The 24.6 TFLOP/s are what a run reached: take the peak."),
    (355 * 125 / 28, "That is upside down: a faster device needs fewer years."),
    (3.14e23 / 125e12 / 86400, "Those are days; the question asks for years."),
    (3.14e23 / 125e12 / 3600, "Those are hours; the question asks for years."),
    (3.14e23 / 125e12, "Those are seconds; the question asks for years."),
], tolerance=0.01, same=dict.fromkeys([
    "answer = 3.14e+23 / peak // (365.25 * units.DAY)", "answer = 3.14e+23 // peak / (365.25 * units.DAY)",
], "the fraction lost is below the tolerance"))

_CACHE = _PER_TOKEN * 6000  # of a request, 1.97 GB
value("requests_that_fit", 45e9 // _CACHE, [
    (45e9 / 160e6, "That is the page's own count, for 4096 tokens: check its cache of 160 MB."),
    *((count, "You took the page's cache, scaled to 6000 tokens: check its 160 MB for 4096.") for count in (191, 192)),
    (8 * 45e9 // _CACHE, "A factor of 8 is missing in the cache: its heads."),
    (45e9 // (8 * _CACHE), "You took 64 heads: the cache has 8, each shared by 8 query heads."),
    (2 * 45e9 // _CACHE, "Keys and values: the cache holds both, in 2 bytes each."),
    (45e9 // (4096 * _PER_TOKEN), "That is for 4096 tokens: these requests have 6000."),
    (80e9 // _CACHE, "The weights take 35 GB of the 80: caches get the rest."),
    (45 * 2**30 // _CACHE, "Near: compute the cache of 6000 tokens in bytes, and take a GB as 10⁹ bytes."),
    (45e9 / _CACHE, "Requests are whole: round down."),
    (23, "Requests are whole: round down."),
], tolerance=5e-3)

_SCORES = 12 * 96 * 12288 * 2048 / (6 * 175e9)  # of GPT-3: attention over all else

value("gpt3_scores", (0.213 * 125 / 24.6 - 1) / _SCORES, [
    (1, "Added once, they give 20.2 %, and 21.3 % is printed."),
    (2, "20.2 % has the scores once already: start from the 19.7 % without, and divide by what they add once."),
    (0.213 * 125 / 24.6, "That is the ratio of the two MFUs: how many shares of attention make it up?"),
    (3.2, "Keep more digits than 19.7 and 20.2 have: k is close to a whole number."),
    (3 * (0.213 * 125 / 24.6 - 1) / _SCORES, "4 · L · D · T is the forward pass alone: take 12 · L · D · T."),
    ((0.213 * 125 / 24.6 - 1) / _SCORES / 6, "You compared 12 · L · D · T with N: compare it with 6N."),
    ((0.213 - 24.6 / 125) / _SCORES, "You divided a difference of MFUs: divide it by the 19.7 % first."),
    (0.213 * 125 / 24.6 - 1, "That is what all the added scores make: divide by the share of one."),
], tolerance=0.02, same=dict.fromkeys([
    "share = 12 * 97 * 12288 * 2048 / (6 * 175000000000.0)", "share = 12 * 95 * 12288 * 2048 / (6 * 175000000000.0)",
], "one layer of 96 is below the tolerance"))
