"""The exercises of notebook 07."""

import math
from collections.abc import Callable

from helpers.exercises.exercise import function, value

# fmt: off


def _activations(block: int = 16, itemsize: int = 4, depth: bool = True) -> Callable[..., int]:
    def nbytes(layers: int, width: int, batch: int, tokens: int) -> int:
        return (layers if depth else 1) * block * batch * tokens * width * itemsize

    return nbytes


function("layer_activations",
    _activations(), [
    (_activations(depth=False), "That is one layer: each keeps its own."),
    (_activations(12),
     "You counted the inside of the MLP once: the 4D numbers before the GELU are kept, and those after it."),
    (_activations(13), "You left out queries, keys and values: 3D numbers for each token."),
    (_activations(itemsize=1), "Those are numbers, not bytes: float32 has 4 byte."),
    (_activations(itemsize=2), "The question asks for float32, which has 4 byte; you took 2."),
    (lambda layers, width, batch, tokens: _activations()(layers, width, 1, tokens),
     "That is for one text: multiply by the batch."),
    ], cases=[(12, 768, 8, 1024), (2, 128, 4, 64), (96, 12288, 1, 2048)])


def _step_memory(states: int = 16, keep: int = 16, logits: bool = True) -> Callable[..., float]:
    def nbytes(parameters: float, layers: int, width: int, vocabulary: int, batch: int, tokens: int) -> float:
        kept = keep * layers * width + (vocabulary if logits else 0)
        return states * parameters + 4 * batch * tokens * kept

    return nbytes


function("step_memory",
    _step_memory(), [
    (_step_memory(8), "You forgot the optimizer: AdamW keeps two moments, 8 byte per parameter."),
    (_step_memory(12), "You took 12 byte per parameter: weight, gradient and two moments are four numbers."),
    (_step_memory(0), "You forgot weights, gradients and moments: 16 byte per parameter."),
    (_step_memory(keep=0), "You forgot the activations."),
    (_step_memory(logits=False), "You forgot the logits: a number for each token and each entry of the vocabulary."),
    ], cases=[(124e6, 12, 768, 50257, 8, 1024), (410_240, 2, 128, 64, 8, 64), (1e9, 24, 2048, 32000, 2, 512)])


def _largest_batch(rounded: Callable[[float], float] = math.floor, states: int = 16) -> Callable[..., float]:
    def batch(memory: float, devices: int, parameters: float, per_text: float) -> float:
        room = memory - states * parameters / devices
        return max(rounded(room / per_text), 0)

    return batch


function("largest_batch",
    _largest_batch(), [
    (_largest_batch(math.ceil), "One text more than that fits: round down."),
    (_largest_batch(float), "A batch is a whole number: round down."),
    (_largest_batch(states=0), "You forgot the states: 16 byte per parameter, shared by the devices."),
    (_largest_batch(states=2),
     "You took 2 byte per parameter, the weights alone: gradients and optimizer need their place, too."),
    (lambda memory, devices, parameters, each: max(math.floor((memory - 16 * parameters) / each), 0),
     "You put all the states on each device: here they are shared."),
    (lambda memory, devices, parameters, each: math.floor((memory - 16 * parameters / devices) / each),
     "Nothing fits when the states alone are too large: return 0, not a negative number."),
    ], cases=[(80e9, 8, 8e9, 9.1e9), (80e9, 64, 70e9, 5.5e9), (24e9, 1, 1.3e9, 0.9e9), (80e9, 1, 8e9, 9.1e9)])

_OFFERS = {  # name: (dense bfloat16 FLOP/s, made-up price of an hour in dollars)
    "T4": (65e12, 0.35),
    "L40S": (366.5e12, 1.0),
    "H100": (989.5e12, 3.0),
}


def _cheapest(work: float, days: float, mfu: float, most: float = 1024, by: str = "price") -> str | None:
    found = {}
    for name, (peak, price) in _OFFERS.items():
        hours = work / (peak * mfu) / 3600
        devices = math.ceil(hours / (24 * days))
        if devices <= most:
            found[name] = {"price": hours * price, "hour": price, "devices": devices}[by]
    return min(found, key=found.get) if found else None


function("cheapest_machine",
    lambda work, days, mfu, most: _cheapest(work, days, mfu, most) or "none", [
    (lambda work, days, mfu, most: (_cheapest(work, days, mfu, math.inf)),
     "You did not look at the deadline: some need more devices than there are."),
    (lambda work, days, mfu, most: (_cheapest(work, days, mfu, most, "hour") or "none"),
     "You took the lowest price of an hour: a slower device needs more hours."),
    (lambda work, days, mfu, most: (_cheapest(work, days, mfu, most, "devices") or "none"),
     "You took the fewest devices: the question is what they cost."),
    (lambda work, days, mfu, most: (_cheapest(work, days, mfu, most) or "H100"),
     'Where no offer meets the deadline, say "none".'),
    ],
    cases=[
        (2e22, 60, 0.4, 1024), (1.6e24, 90, 0.4, 1024), (6.3e24, 120, 0.5, 2048), (2e23, 4, 0.4, 1024),
        (1e25, 10, 0.5, 64),
    ])


def _affordable(flop: float = 6, mfu: bool = True, hours: float = 3600, days: float = 1) -> Callable[..., float]:
    def parameters(devices: int, days_: float, peak: float, share: float, tokens_each: float) -> float:
        work = devices * days_ * 24 * hours * peak * (share if mfu else 1) * days
        return math.sqrt(work / (flop * tokens_each))

    return parameters


function("affordable_model",
    _affordable(), [
    (_affordable(mfu=False), "You left out the MFU: nobody gets the peak."),
    (_affordable(2), "Training takes 6 FLOP per parameter and token; 2 is the forward pass alone."),
    (_affordable(hours=60), "An hour has 3600 seconds."),
    (lambda devices, days, peak, mfu, tokens_each: devices * days * 86400 * peak * mfu / (6 * tokens_each),
     "Tokens grow with the parameters, so the work is 6 · 20 · N²: take a square root."),
    (lambda n, days, peak, mfu, tokens_each: math.sqrt(n * days * 86400 * peak * mfu * tokens_each / 6),
     "That is the number of tokens; the question asks for parameters."),
    ], cases=[(64, 30, 989.5e12, 0.4, 20), (8, 14, 989.5e12, 0.5, 200), (1, 1, 312e12, 0.3, 20)])


def _served(weights: float = 1, cache: int = 1, rounded: Callable[[float], float] = math.floor) -> Callable[..., float]:
    def users(memory: float, parameters: float, itemsize: int, per_token: float, tokens: int) -> float:
        room = memory - weights * parameters * itemsize
        return rounded(room / (per_token * (tokens if cache else 1)))

    return users


function("users_served",
    _served(), [
    (_served(weights=0), "You forgot the weights: they need their place first."),
    (_served(cache=0), "You counted the cache of one token: each user has one for every token."),
    (_served(rounded=math.ceil), "One user more than that fits: round down."),
    (_served(rounded=float), "Users are whole: round down."),
    (lambda memory, n, itemsize, per_token, tokens: math.floor((memory - n * itemsize) / per_token * tokens),
     "That is the cache of a user with a single number per token: multiply, do not divide, by tokens."),
    ], cases=[(8 * 80e9, 70e9, 2, 327_680, 4096), (4 * 80e9, 70e9, 1, 163_840, 8192), (24e9, 8e9, 1, 65_536, 2048)])

_PER_TOKEN = 2 * 80 * 8 * 128 * 2  # byte of cache: Llama 3 70B in bfloat16

value("gpu_years", 3.14e23 / 125e12 / (365.25 * 24 * 3600), [
    (3.14e23 / 28e12 / (365.25 * 24 * 3600),
     "That is the claim itself: 28 TFLOP/s is not what the matrix unit of a V100 reaches."),
    (3.14e23 / 15.7e12 / (365.25 * 24 * 3600),
     "You took the vector unit in float32, 15.7 TFLOP/s; matmuls in float16 run on the matrix unit."),
    (3.14e23 / 312e12 / (365.25 * 24 * 3600), "That is an A100. The claim is about a V100."),
    (3.14e23 / 125e12 / (24 * 3600), "Those are days; the question asks for years."),
    (3.14e23 / 125e12 / 3600, "Those are hours; the question asks for years."),
    ], tolerance=0.01)

value("requests_that_fit", math.floor((80e9 - 35e9) / (_PER_TOKEN * 4096)), [
    (45e9 // 160e6, "That is the page's own count: check its cache of 160 MB for 4096 tokens."),
    (280, "That is the printed number: check the page's cache of 160 MB for 4096 tokens."),
    (45e9 // (160 * 2**20), "That is what 160 MiB give: the page's cache is still a factor of 8 too small."),
    (45e9 // (_PER_TOKEN / 2 * 4096), "You counted keys or values: the cache holds both."),
    (80e9 // (_PER_TOKEN * 4096), "You gave all 80 GB to the caches: the weights take 35 GB."),
    (45e9 // (8 * _PER_TOKEN * 4096), "You took 64 heads: the cache has 8, each shared by 8 query heads."),
    (45e9 / (_PER_TOKEN * 4096), "Requests are whole: round down."),
])

value("long_cache", _PER_TOKEN * 131_072 / 1e9, [
    (8 * _PER_TOKEN * 131_072 / 1e9,
     "That is the claim again: 8192 numbers for each token are 64 heads, and the cache has 8."),
    (340.0, "That is the printed number: it counts 64 heads for each token, and the cache has 8."),
    (_PER_TOKEN * 131_072 / 2e9, "You counted keys or values: the cache holds both."),
    (_PER_TOKEN * 131_072 / 2**30, "That is in GiB; the question asks for GB."),
    (_PER_TOKEN * 131_072, "That is a number of bytes; the question asks for GB."),
    ], tolerance=0.01)

value("same_compute", 70e9 * 1.4e12 / (280e9 * 300e9), [
    (1, "That is the claim: exactly 4 times the data on a quarter of the parameters. How many tokens were it?"),
    (280e9 * 300e9 / (70e9 * 1.4e12), "That is Gopher over Chinchilla; the question asks for Chinchilla over Gopher."),
    (1.4e12 / 300e9, "That is the ratio of the tokens; multiply by that of the parameters."),
    (70e9 / 280e9, "That is the ratio of the parameters; multiply by that of the tokens."),
    ], tolerance=0.01)

_SCORES = 12 * 96 * 12288 * 2048 / (6 * 175e9)  # of GPT-3: attention over all else

value("gpt3_mfu", 24.6e12 * (1 + _SCORES) / 125e12, [
    (0.213, "That is what the table prints, and what 12 · L · D · T gives three times over; once is enough."),
    (24.6 / 125, "You left out attention: 24.6 TFLOP/s are without it."),
    (24.6 / 312 * (1 + _SCORES), "You took an A100; GPT-3 was trained on V100."),
    (24.6 / 15.7 * (1 + _SCORES),
     "You took the vector unit of a V100, 15.7 TFLOP/s; above 1 means a wrong denominator."),
    ], tolerance=0.002)
