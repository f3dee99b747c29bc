"""The exercises of notebook 07."""

import math
import random
from collections.abc import Callable
from math import ceil, floor, sqrt

from helpers.exercises.exercise import function, guess, value

# fmt: off
guess("block_keeps",
      "Almost every box keeps its input. That of GELU and down is four times as wide; attention keeps four tensors.",
      (1, "That is its input or its output: each stage keeps its own."), (2, "Each stage keeps its own input."),
      (7, "Those are the inputs of the four products: norms, attention and GELU keep theirs, too."),
      (8, "The two hidden tensors alone."), (9, "Products and norms: attention and GELU keep theirs, too."),
      (10, "One for each box? The hidden tensors are four times as wide, and queries, keys and values are three."),
      (12, "The hidden tensor is kept twice, before the GELU and after it."),
      (13, "Attention keeps queries, keys, values and its result: four, not one."),
      (20, "A Llama's block keeps about that: its MLP is gated."),
      (24, "24 · T · D² counts FLOPs: count what is kept."),
      (32, "If that is each tensor twice, as a result and as an input: it is kept once."),
      (34, "34 is known as a number of bytes, in 16 bits and with dropout: here the unit is the size of the input."))
guess("peak_of_step", "At the loss three tables as large as the logits are alive at once.",
      (35.9, "That is the sum: some of its terms are not there yet."),
      (lambda right: right - 10.24, "Did you count two tables of that size?"),
      (lambda right: right + 10.24, "About right for a loop that holds on to its logits."),
      (21.5, "Weights, moments and activations: add the tables that are alive at the loss."),
      (25.7, "If that is the sum without the logits: they are where the peak is."),
      (31.7, "Did you count one table of that size?"),
      (46.2, "That is about the sum and one table more: at the loss there are no gradients of the weights yet."),
      (71.8, "That is twice the sum: only the logits have several tables."),
      (56.4, "The gradients of the weights are not there yet at the loss."),
      (lambda right: 1e6 * right, "Is that in bytes? The unit is MB."))
guess("peak_recomputed", "Weights and moments stay, one block at a time exists in full, and gradients pile up.",
      (33.4 / 16, "That shrinks weights and moments, too: they stay."),
      (33.4 / 12, "A twelfth of everything? Weights and moments stay."),
      (33.4 / 2, "Only the activations shrink, and to far less than half."),
      (7.3, "Weights and moments alone take 7.3 MB."), (14.1, "Two blocks, or all terms? Not all are there at once."),
      (8.1, "Weights and moments take 7.3 MB of that: one block in full and the gradients need more than the rest."),
      *[(more, "Far less of the activations stays: the input of each block, and one block in full.")
        for more in (20, 25, 28)],
      (26.1 / 16, "Those are the inputs alone."), (33.4, "That is the peak without recomputation."),
      (11.84, "That is about what `budget` adds up: temporary results make the rest."),
      (9.57, "Is one of them left out? Weights, moments, gradients, and a whole block that runs again."),
      (7.3 + 26.1 / 16, "And the block that runs again, and the gradients so far?"),
      (11.04, "And the gradients so far?"))
guess("one_user", "A token needs all weights (of the input embedding one row alone) and the cache.",
      (lambda right: 0.98 * right, "Near enough."),
      (lambda right: right / 2, "Half: of one H100, or with two bytes a number."),
      (lambda right: right / 4, "A quarter: of one H100, and with two bytes a number?"),
      (lambda right: 2 * right, "Twice too much: two devices halve the time, and only once."),
      *[(count, "Thousands are for many users: here all weights are read for one token.") for count in (1000, 2797)],
      (24680, "That is how fast the arithmetic is."), (12340, "That is how fast the arithmetic is, on one H100."),
      (lambda right: 1e3 / right, "If these are ms for a token: how many tokens make a second?"),
      (lambda right: 1 / right, "If these are seconds for a token: how many tokens make a second?"))
guess("own_mfu", "Products are nearly all the FLOPs, but other operations take time, too.",
      (1, "Then only products would take any time."), *[(n / 10, "An MFU cannot exceed 1.") for n in range(11, 20)],
      *[(count, "An MFU is a share of 1, not per cent.") for count in range(2, 101)])


def _gated(hidden: float = 4, inputs: float = 1) -> Callable[..., float]:
    return lambda width, f, batch, tokens, item: batch * tokens * (inputs * width + hidden * f) * item


_ENDS = ["The input of gate and up is kept, too.", "",
         "Gate and up share their input, and nothing here keeps the output."]
_COUNTS = {1: "three of the four hidden tensors are missing", 2: "two of the four hidden tensors are missing",
           3: "one of the four hidden tensors is missing", 5: "of the hidden tensors there are four"}
function("gated_mlp_kept",
    _gated(), [
    (_gated(3), "One of four hidden tensors is missing: SiLU's input, the product's two factors, and down's input."),
    (_gated(2), "Two of four hidden tensors are missing: SiLU's input, the product's two factors, and down's input."),
    (_gated(1), "Of the hidden tensors you kept one: SiLU, the product and down need four between them."),
    (_gated(5), "One hidden tensor too many: what two operations need is kept once."),
    (_gated(4, 2), "Gate and up have the same input: it is kept once, and nothing here keeps the output."),
    (_gated(4, 0), "The input of gate and up is kept, too."),
    (_gated(0), "Those are only the inputs of gate and up: what do SiLU, the product and down need?"),
    (lambda d, f, b, t, i: b * t * (d + 4 * f), "Those are numbers: a number has itemsize bytes."),
    (lambda d, f, b, t, i: t * (d + 4 * f) * i, "That is for one text: multiply by the batch."),
    (lambda d, f, b, t, i: b * (d + 4 * f) * i, "That is for one token: multiply by the tokens."),
    (lambda d, f, b, t, i: b * t * (f + 4 * d) * i, "You swapped width and hidden width."),
    (lambda d, f, b, t, i: 3 * d * f * i, "Those are the parameters: the question is what autograd keeps beside."),
    *[(_gated(tensors, inputs), f"{_ENDS[inputs]} And {_COUNTS[tensors]}.")
      for tensors in (1, 2, 3, 5) for inputs in (0, 2)],
    *[(lambda d, f, b, t, i, own=own: b * t * (d + 4 * f) * i + own * d * f * i,
       "You added parameters: they are left out.") for own in (2, 3)],
    (lambda d, f, b, t, i: b * t * 4 * f * i + d * i, "The input, too, has a row for each token: parentheses?"),
    *[(lambda d, f, b, t, i, own=own: b * t * (d + 4 * f) * own, "A number has itemsize bytes.") for own in (2, 4)],
    (lambda d, f, b, t, i: (d + 4 * f) * i, "That is one token of one text: multiply by the batch and the tokens."),
    *[(lambda d, f, b, t, i, of=of: b * t * (d + 4 * f) * i / of, f"Those are {unit}: return bytes.")
      for unit, of in (("MB", 1e6), ("GB", 1e9), ("bits", 1 / 8))],
    *[(lambda d, f, b, t, i, times=times: b * t * times * d * i,
       "The hidden width is an argument, and not four times the width.") for times in (9, 13, 17)],
    *[(lambda d, f, b, t, i, times=times: b * t * times * d * i, "That is a whole block: take its MLP alone.")
      for times in (16, 20)],
    (lambda d, f, b, t, i: b * t * 6 * d * f, "Those are FLOPs of the products: count what is kept, in bytes."),
    *[(_gated(tensors, inputs), "Gate and up share one input of the width; down's is the product, of the hidden width, "
       "one of four such tensors.") for tensors in (1, 2, 3, 6) for inputs in (3,)],
    (_gated(4, 3), "One input of the width is enough: gate and up share it, and nothing here keeps the output."),
    *[(_gated(more, inputs), "More than four hidden tensors: list five operations, and count each tensor once.")
      for more in (6, 7, 8) for inputs in (0, 1, 2, 9) if (more, inputs) != (8, 2)],
    (lambda d, f, b, t, i: b * t * t * (d + 4 * f) * i, "Nothing here grows with tokens²."),
    *[(lambda d, f, b, t, i, own=own, item=item: b * t * (own * (d + 4 * f) + 3 * d * f) * item(i),
       "Products of width and hidden count FLOPs: what is kept is tensors.")
      for own in (0, 1) for item in (int, lambda i: 1)],
    (lambda d, f, b, t, i: b * t * (d + 4 * f * i), "The input, too, has itemsize bytes a number: parentheses?"),
    (lambda d, f, b, t, i: 2 * b * t * (d + 4 * f) * i,
     "Each tensor is kept once: what two operations need is one tensor."),
    (lambda d, f, b, t, i: b * t * (4 * d + 4 * f) * i,
     "The input is kept once, and nothing here keeps the output."),
    ],
    cases=[(64, 160, 3, 16, 4), (128, 352, 1, 64, 2), (256, 704, 2, 32, 2)],
    draw=lambda r: (r.randint(2, 24) * 8, r.randint(3, 80) * 8, r.randint(2, 8), r.randint(2, 64),
                    r.choice((2, 4))))


def _fit(
    rounded: Callable[[float], float] = floor, *, states: float = 16, shared: bool = True, least: float = 0
) -> Callable[..., float]:
    return lambda memory, devices, n, each: max(
        rounded((memory - states * n / (devices if shared else 1)) / each), least)


_MINUS = -math.inf
_ALL = "That is for all the devices together: they share the states, but each has whole texts. How many fit on one?"
_ROUND = "Round down: only whole texts that fit count."
_ZERO = "Nothing fits when the states alone are too large: return 0."
function("largest_batch",
    _fit(), [
    (_fit(ceil), "That is one more than fits: round down."),
    (_fit(round), "Rounded to the nearest, it may be one more than fits: round down."),
    (_fit(float), _ROUND),
    (_fit(least=_MINUS), _ZERO),
    (_fit(int, least=_MINUS), _ZERO),
    (_fit(float, least=_MINUS), f"{_ROUND} And when the states alone are too large, return 0."),
    (_fit(round, least=_MINUS), f"{_ROUND} And when the states alone are too large, return 0."),
    (_fit(least=1), "Nothing fits when the states alone are too large: not even one text."),
    (_fit(states=0), "You forgot the states: 16 bytes per parameter, shared by the devices."),
    *[(_fit(states=own), f"You took {own} bytes per parameter, the weights alone: add gradients and optimizer.")
      for own in (2, 4)],
    (_fit(states=12), "You took 12 bytes per parameter: weight, gradient and two moments are four numbers of 4 bytes."),
    (_fit(shared=False), "You put all the states on each device: here they are shared."),
    (_fit(shared=False, least=_MINUS), "You put all the states on each device; and the number is never below 0."),
    (_fit(states=8), "You took 8 bytes per parameter: weight, gradient and AdamW's two moments make 16."),
    (_fit(ceil, least=_MINUS), "That is one more than fits: round down. And never fewer than none."),
    (lambda memory, devices, *a: devices * _fit()(memory, devices, *a), _ALL),
    (lambda memory, devices, n, each: max(floor((memory - 16 * n * devices) / each), 0),
     "The devices share the states: divide by their number."),
    (lambda memory, devices, n, each: max(floor((memory / devices - 16 * n / devices) / each), 0),
     "Memory is that of each device: only the states are divided."),
    (lambda memory, devices, n, each: max(floor((memory / devices - 16 * n) / each), 0),
     "Memory is that of each device, and the states are divided."),
    (lambda memory, devices, n, each: max(floor(memory / (16 * n / devices + each)), 0),
     "The states are there once, not once for each text: take them off first."),
    (lambda memory, devices, n, each: max(_fit()(memory, devices, n, each) - 1, 0),
     "That is one too few: the memory may be exactly full."),
    (_fit(lambda texts: ceil(texts) - 1), "A text that fits exactly counts, too."),
    *[(lambda memory, devices, n, each, own=own: max(floor((memory - own * n - (16 - own) * n / devices) / each), 0),
       "All states are shared here: weights and gradients, too.") for own in (2, 4)],
    *[(lambda memory, *a, unit=unit: _fit()(memory * unit, *a), "The memory is in bytes already.")
      for unit in (2**30 / 1e9, 1e9 / 2**30)],
    (lambda memory, devices, n, each: _fit()(memory, devices, n, each) + 1, "That is one more than fits."),
    (lambda *a: (fits := _fit()(*a)) and 2 ** floor(math.log2(fits)), "A batch need not be a power of two."),
    *[(_fit(states=states, least=_MINUS), f"You took {states} bytes per parameter: weight, gradient and AdamW's two "
       "moments make 16. And never fewer than none.") for states in (4, 8, 12, 14, 18, 20)],
    *[(_fit(states=own), f"You took {own} byte{'s' * (own > 1)} per parameter: the statement says 16.")
      for own in (1, 6, 10, 14, 18, 20)],
    (lambda memory, devices, n, each: max(floor((memory * devices - 16 * n / devices) / each), 0),
     "All devices' memory, and one share of the states: take both for one device."),
    *[(lambda memory, devices, n, each, least=least: max(floor((memory * devices - 16 * n) / each), least), _ALL)
      for least in (_MINUS, 0)],
    *[(lambda memory, devices, n, each, least=least: max(
        floor((memory - 16 * n / devices) / (each / devices)), least), _ALL) for least in (_MINUS, 0)],
    (lambda memory, devices, n, each: max(floor((memory - 16 * n / devices) / (each * devices)), 0),
     "A device takes its own texts alone: do not divide by the devices once more."),
    (lambda memory, devices, n, each: memory - 16 * n / devices, "That is the room in bytes: how many texts fit?"),
    (lambda memory, devices, n, each: abs(_fit(least=_MINUS)(memory, devices, n, each)), _ZERO),
    (lambda memory, devices, n, each: 0 if memory < 16 * n else _fit()(memory, devices, n, each),
     "To see whether the states fit, share them, too: a device holds 16 * parameters / devices."),
    *[(lambda memory, devices, n, each, none=none:
       _fit()(memory, devices, n, each) if memory > 16 * n / devices else none, _ZERO) for none in ("none", None, -1)],
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
    by: Callable[..., float] = lambda hours, price, peak, need, days: hours * price,
    need: Callable[[float], float] = ceil, none: str | None = "none",
) -> str | None:
    found = {}
    for name, (peak, price) in offers.items():
        hours = work / (peak * mfu) / 3600
        if need(hours / (24 * days)) <= most:
            found[name] = by(hours, price, peak, ceil(hours / (24 * days)), days)
    return min(found, key=found.get) if found else none


def _paid(offers: _Offers, work: float, mfu: float, name: str | None) -> float | str | None:
    return work / (offers[name][0] * mfu) / 3600 * offers[name][1] if name in offers else name


def _prices(t4: float, l40s: float, h100: float) -> _Offers:
    return dict(zip(_PEAKS, zip(_PEAKS.values(), (t4, l40s, h100), strict=True), strict=True))


def _draw_run(r: random.Random) -> tuple[_Offers, float, float, float, int]:
    """A run for which one of the offers needs about as many devices as there are."""
    days, mfu, most = r.choice((1, 7, 90)), r.choice((0.3, 0.4, 0.5)), r.choice((3, 10, 64, 1024))
    work = (most + r.choice((-0.4, 0.01, 0.4, 0.6))) * 86400 * days * r.choice(list(_PEAKS.values())) * mfu
    offers = _prices(r.choice((0.15, 0.35, 0.8)), r.choice((0.7, 1.0, 1.2)), r.choice((1.8, 3.0)))
    return offers, work, days, mfu, most


_SLOW = ("You take the first that meets the deadline, or the best by another measure: compare the costs of "
         "all that do, at the prices in `offers`.")
_EXACTLY = "Exactly as many devices as there are is allowed."
_NONE = 'Where no offer meets the deadline, return the text "none".'
_CHEAP, _DEAR = _prices(0.15, 1.0, 3.0), _prices(0.35, 1.0, 3.0)
function("cheapest_machine",
    _cheapest, [
    (lambda o, work, days, mfu, most: _cheapest(o, work, days, mfu, math.inf),
     "You did not look at the deadline: some need more devices than there are."),
    (lambda *a: _cheapest(*a, by=lambda hours, price, *_: price),
     "The lowest price of an hour wins here: a slower device needs more hours, so multiply by those it needs."),
    (lambda *a: _cheapest(*a, by=lambda hours, *_: hours),
     "You took the fastest, so the fewest devices: the question is which costs least."),
    (lambda *a: _cheapest(*a, by=lambda hours, price, peak, need, days: need),
     "You took the fewest devices: the question is which costs least."),
    (lambda *a: _cheapest(*a, by=lambda hours, price, peak, need, days: need * hours * price),
     "The hours are device-hours already: do not multiply them by the devices."),
    (lambda o, work, days, mfu, most: _cheapest(o, work, days, mfu, math.inf, by=lambda hours, price, *_: price),
     "That is the lowest price of an hour: how many hours does it take, and does it meet the deadline?"),
    (lambda *a: _cheapest(*a, by=lambda hours, price, peak, need, days: ceil(hours / need / 24) * need * price),
     "You paid for whole days: you pay for the hours that the devices work."),
    *[(lambda *a, own=own, tie=tie: _cheapest(
        *a, by=lambda hours, price, peak, need, days: (ceil(hours / own(a, need)) * own(a, need) * price, tie * peak)),
       "You rounded the hours up: half an hour costs half.")
      for own in (lambda a, _: a[-1], lambda *_: 1, lambda _, need: need) for tie in (0, -1)],
    (lambda o, w, d, m, n: _paid(o, w, m, _cheapest(o, w, d, m, n)), "That is what it costs: return the name alone."),
    (lambda o, w, d, m, n: (best := _cheapest(o, w, d, m, n), _paid(o, w, m, best)), "Return the name alone."),
    (lambda o, w, d, m, n: best if (best := _cheapest(o, w, d, m, n)) == "none" else (_paid(o, w, m, best), best),
     "Return the name alone."),
    (lambda o, *a: _cheapest({name: (price, peak) for name, (peak, price) in o.items()}, *a),
     "Each offer is (peak, price), in this order."),
    (lambda *a: _cheapest(*a, by=lambda hours, price, peak, need, days: need * days * price),
     "That pays all devices equally long, until the deadline perhaps: pay for the hours that they work."),
    (lambda *a: _cheapest(*a, by=lambda hours, price, *_: -hours * price), "That is the most expensive one."),
    (lambda o, *a: max(o, key=lambda name: o[name][1]),
     "You took the highest price of an hour, or one fixed name: compare costs."),
    (lambda *a: _cheapest(*a, by=lambda hours, *_: -hours), _SLOW),
    (lambda *a: _cheapest(*a, need=floor), "You rounded the devices down: then the run misses the deadline."),
    (lambda *a: _cheapest(*a, need=round), "Rounded to the nearest, the devices may be too few: round up."),
    (lambda o, w, d, m, n: _cheapest(o, w, d, 1, n), "You left out the MFU: nobody gets the peak."),
    (lambda o, w, d, m, n: _cheapest(o, w, d, 1 / m, n), "Divide by the MFU: a lower one takes longer."),
    (lambda o, w, d, m, n: _cheapest(o, w, d, 2 * m, n), "You doubled the peak: those in `offers` are dense."),
    (lambda o, w, d, m, n: _cheapest(o, w, d, m * m, n), "You divided by the MFU twice."),
    *[(lambda o, w, d, m, n, times=times: _cheapest(o, w, d / times, m, n),
       "The time is off by its unit: a day has 24 hours, an hour 3600 seconds; and the MFU is a share already.")
      for times in (60, 100)],
    (lambda o, w, d, m, n: _cheapest(o, w, d / 24, m, n), "A day has 24 hours."),
    (lambda o, w, d, m, n: _cheapest(o, w, d / 3600, m, n),
     "You compare hours with seconds: an hour has 3600 of them."),
    (lambda o, w, d, m, n: _cheapest(o, w, d / 86400, m, n),
     "You compare seconds with days: a day has 86 400 of them."),
    (lambda o, w, d, m, n: _cheapest(o, w, d * 3600, m, n),
     "You took hours for seconds: work / (peak · mfu) is in seconds."),
    (lambda o, w, d, m, n: _cheapest(o, w, d, m, 1), "You took one device: `most` says how many there are."),
    (lambda o, w, d, m, n: _cheapest(o, w, d, m, 1024), "You took 1024 devices: `most` says how many there are."),
    (lambda o, *a: _cheapest(_DEAR, *a), "You did not use the prices in `offers`: they change from call to call."),
    (lambda o, *a: _cheapest(_CHEAP, *a), _SLOW),
    (lambda *a: _cheapest(*a, none="H100"), _NONE),
    (lambda *a: _cheapest(*a, none=None), _NONE),
    *[(lambda *a, none=none: _cheapest(*a, none=none), _NONE) for none in ("", "T4", "L40S")],
    (lambda o, w, d, m, n: _cheapest(o, w, d, m, n - 1), _EXACTLY),
    (lambda o, w, d, m, n: _cheapest(o, w, d, m, math.nextafter(n, 0), need=float), _EXACTLY),
    (lambda o, w, d, m, n: "L40S" if _cheapest({"L40S": o["L40S"]}, w, d, m, n) == "L40S" else "none",
     "The L40S is not always the cheapest: compare the prices."),
    (lambda o, w, d, m, n: _cheapest({best: o[best]}, w, d, m, n) if (best := _cheapest(o, w, d, m, math.inf)) else "",
     "If the cheapest misses the deadline, the next cheapest may not: drop the late ones first."),
    (lambda o, *a: _cheapest(o, *a) if all(_cheapest({k: v}, *a) != "none" for k, v in o.items()) else "none",
     "One offer that needs too many devices does not end the search: skip it."),
    (lambda *a: _cheapest(*a) if _cheapest(*a) != "none" else min([]),
     'Nothing meets the deadline here: return "none" before you take the least.'),
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
    (lambda *a: _affordable()(*a) * a[-1], "That is the number of tokens, or `/ 6 * t` without parentheses."),
    (lambda *a: _affordable()(*a) ** 2 * 6 * a[-1], "Those are the FLOPs delivered: how large a model do they train?"),
    (lambda *a: _affordable()(1, *a[1:]), "That is one device: multiply by the devices."),
    (lambda *a: sqrt(_affordable()(*a) ** 2 * a[-1]), "You left out the tokens for each parameter."),
    (_affordable(8), "8 FLOP are those of a run that recomputes: repeated ones are not in an MFU."),
    (_affordable(4), "4 FLOP are the backward pass alone: with the forward pass it is 6."),
    (_affordable(12), "6 FLOP per parameter and token count multiplications and additions already."),
    (lambda *a: _affordable()(*a) / sqrt(a[-1]), "The tokens for each parameter belong under the root."),
    (lambda *a: _affordable()(*a) / sqrt(6 * a[-1]), "All of it belongs under the root."),
    (lambda *a: _affordable()(*a[:4], 20), "You took 20 tokens: tokens_each says how many."),
    (lambda *a: _affordable()(*a) / a[3], "Multiply by the MFU: it makes the peak smaller."),
    (lambda *a: _affordable()(*a) / 1e9, "Those are billions of parameters: return parameters."),
    (lambda *a: (_affordable()(*a) ** 2) ** (1 / 3), "The work goes with N²: take a square root."),
    (lambda *a: _affordable()(a[0], 1, *a[2:]), "That is one day: multiply by the days."),
    (lambda *a: _affordable()(*a) * sqrt(a[3]), "You multiplied by the MFU twice."),
    (lambda *a: _affordable()(*a) * sqrt(6 * a[-1]), "That is the root of the FLOPs: divide by 6 · tokens_each first."),
    (lambda *a: _affordable()(*a) * 6 * a[-1], "Divide by 6 · tokens_each: more tokens leave less for the model."),
    (lambda *a: _affordable()(*a) * 6, "Divide by the 6, do not multiply."),
    *[(lambda d, days, peak, m, each, to=to: d * days * 86400 * peak * m * to(each),
       "Tokens grow with the parameters, so the work goes with N²: take a square root of FLOPs / (6 · tokens_each).")
      for to in (lambda t: 1 / (6 * t * t), lambda t: 6 / t, lambda t: 1 / (6 * t) ** 2)],
    (lambda *a: _affordable()(*a) ** 2 / 2, "Is that `** 1/2`? The power comes first: write `** 0.5`."),
    (lambda *a: _affordable()(*a) / sqrt(6), "The 6 belongs under the root."),
    (lambda *a: _affordable()(1, *a[1:]) / sqrt(a[0]), "More devices do more: multiply by them."),
    ],
    cases=[(64, 30, 989.5e12, 0.4, 20), (8, 14, 989.5e12, 0.5, 200), (1, 1, 312e12, 0.3, 20)],
    draw=lambda r: (r.randint(2, 999), r.randint(2, 99), r.randint(10, 999) * 1e12,
                    r.choice((0.3, 0.4)), r.randint(5, 300)),
    same={"return math.sqrt(delivered // (6 * tokens_each))": "half a parameter is nothing"})


_YEAR = 365.25 * 24 * 3600
_PER_TOKEN = 2 * 80 * 8 * 128 * 2  # bytes of cache: Llama 3 70B in bfloat16

value("gpu_years", 3.14e23 / 125e12 / _YEAR, [
    *[(claim, "That is the claim itself: 28 TFLOP/s is not what the matrix unit of a V100 reaches.")
      for claim in (355, 3.14e23 / 28e12 / _YEAR)],
    *[(3.14e23 / peak / _YEAR, "Take the peak that specs names: 125 TFLOP/s.") for peak in (120e12, 130e12)],
    (3.14e23 / 112e12 / _YEAR, "You took 112 TFLOP/s, the PCIe card's: the one in specs is the SXM2."),
    *[(3.14e23 / peak / _YEAR, "You took the vector unit; matmuls in float16 run on the matrix unit.")
      for peak in (7.8e12, 14e12, 15.7e12, 30e12, 31.4e12)],
    (3.14e23 / 24.6e12 / _YEAR, "The 24.6 TFLOP/s are what a run reached: take the peak."),
    *[(3.14e23 / peak / _YEAR, "That is another GPU: the claim is about a V100.") for peak in (312e12, 989.5e12)],
    *[(3.14e23 / 125e12 / of, f"Those are {unit}; the question asks for years.")
      for unit, of in (("months", _YEAR / 12), ("days", 86400), ("hours", 3600), ("seconds", 1))],
    (355 * 125 / 28, "That is upside down: a faster device needs fewer years."),
    (3.14e23 / (0.213 * 125e12) / _YEAR, "That is at an MFU of 0.213: the question is the peak."),
    *[(3.14e23 / 125e12 / _YEAR * power, "You are off by a power of ten: a TFLOP is 10¹² FLOP.")
      for power in (1e-3, 1e-2, 0.1, 10, 1000)],
    *[(ratio, "That is the ratio of the peaks: how many years is it?") for ratio in (125 / 28, 28 / 125)],
    (_YEAR * 125e12 / 3.14e23, "Upside down: work over rate."), (11055, "Is that from 900e9, its bandwidth?"),
    (355 - 3.14e23 / 125e12 / _YEAR, "That is the difference from the claim: how many years does it take?"),
    *[(times * 3.14e23 / 125e12 / _YEAR, "3.14·10²³ FLOP are all, backward pass included.") for times in (3, 6)],
    (3.14e23 / 125e12 / (365.25 * 24), "The peak is per second: a year has 365.25 · 24 · 3600 of them."),
    *[(peak, "That is a peak: how many years does the training take?") for peak in (125e12, 125, 28, 112, 15.7, 31.4)],
    (2 * 3.14e23 / 125e12 / _YEAR, "That is half the peak, or an MFU of 0.5: take the peak."),
    (3.14e23 / 125e12 / (360 * 86400), "A year has 365.25 days here."),
    (3.14e23 / 125e12 / _YEAR / 1024, "GPU-years are those of one GPU: nothing is shared by 1024."),
    (355 / 125, "355 are years at 28 TFLOP/s: at 125 they are 355 · 28 / 125."),
    (3.14e23 / 250e12 / _YEAR, "Twice the peak: a V100 does not skip zeros, and 125 TFLOP/s count additions, too."),
], tolerance=0.01, same=dict.fromkeys([
    "answer = 3.14e+23 / peak // (365.25 * units.DAY)", "answer = 3.14e+23 // peak / (365.25 * units.DAY)",
], "the fraction lost is below the tolerance"))

_BOTH = "Keys and values: the cache holds both, in 2 bytes each."
_CACHE = _PER_TOKEN * 6000  # of a request, 1.97 GB
value("requests_that_fit", 45e9 // _CACHE, [
    (45e9 / 160e6, "That is the page's own count, for 4096 tokens: check its cache of 160 MB."),
    *[(count, "You took the page's cache, scaled to 6000 tokens: check its 160 MB for 4096.")
      for count in (45e9 / (160e6 * 6000 / 4096), 45e9 // (160e6 * 6000 / 4096), 191, 187, 188)],
    *[(count, "A factor of 8 is missing in the cache: its heads.")
      for count in (45e9 // (160 * 2**20), 8 * 45e9 // _CACHE, 8 * 45e9 / _CACHE)],
    *[(count, "That is for 4096 tokens: these requests have 6000.") for count in (33, 34, 45e9 / (4096 * _PER_TOKEN))],
    *[(count, "That is for 4096 tokens, and with GiB: these have 6000, and a GB is 10⁹ bytes.") for count in (35, 36)],
    *[(count, "The weights take 35 GB of the 80: caches get the rest.") for count in (80e9 // _CACHE, 80e9 / _CACHE)],
    (45e9 // (8 * _CACHE), "You took 64 heads: the cache has 8, each shared by 8 query heads."),
    *[(count, "Requests are whole: round down.") for count in (45e9 / _CACHE, 23)],
    (21, "One fewer than fit: nothing need stay free."),
    (80e9 / 160e6, "You took the page's cache, and forgot the weights of 35 GB."),
    *[(few, "The weights take the 35 GB that the page says, not 70 or 140: 45 GB are left.") for few in (0, 5, -30)],
    *[(count, _BOTH) for count in (2 * 45e9 // _CACHE, 2 * 45e9 / _CACHE)],
    *[(count, "A quarter of the cache: 4 bits are the weights', and the cache holds keys and values, in 2 bytes.")
      for count in (4 * 45e9 / _CACHE, 4 * 45e9 // _CACHE)],
    (2 * 80e9 // _CACHE, "The weights take 35 GB; and the cache holds keys and values, in 2 bytes."),
    *[(cache, "That is the cache of one request: how many fit into 45 GB?")
      for cache in (_CACHE, _CACHE / 1e6, _CACHE / 1e9, _CACHE / 2**30)],
    (80 * 45e9 // _CACHE, "You counted one layer: there are 80."),
    *[(cache, "That is the cache of a request of 4096 tokens, and not 160 MB: how many of 6000 fit into 45 GB?")
      for cache in (4096 * _PER_TOKEN, 4096 * _PER_TOKEN / 1e9, 1.34, 4096 * _PER_TOKEN / 1e6, 1.25, 1.25e9)],
    *[(cache, "That is the cache of one head of 8: how many requests fit?") for cache in (168, 167.8, 1.678e8)],
    *[(cache, "That is the page's cache: it is wrong, and how many requests fit?") for cache in (160, 160e6)],
    (_PER_TOKEN, "That is the cache of one token: how many requests of 6000 fit into 45 GB?"),
    (13, "A request has 6000 tokens in all, not 4096 more."),
    (59, "The weights take 35 GB, and these requests have 6000 tokens."),
    (8 * 22, "A factor of 8 is missing in the cache: its heads."),
    (45e9 // _PER_TOKEN, "You counted the cache of one token: a request has 6000."),
    *[(count, "A GB is 10⁹ bytes, of the memory, too: 45·10⁹ bytes are left.")
      for count in (45 * 2**30 / _CACHE, 45 * 2**30 // _CACHE, (80 * 2**30 - 35e9) // _CACHE, 80 * 2**30 // _CACHE)],
    (80e9 // _CACHE + 35e9 // _CACHE, "Take the weights off, do not add them: 45 GB are left."),
    (35e9 // _CACHE, "You gave the caches the place of the weights: 80 GB less 35 GB are left."),
    (45e9 // (2 * _CACHE), "You took 4 bytes a number, or keys and values twice."),
    *[(ratio, "That is the factor between the two caches: how many requests fit?")
      for ratio in (4096 * _PER_TOKEN / 160e6, 8)],
], tolerance=5e-3)

_SCORES = 12 * 96 * 12288 * 2048 / (6 * 175e9)  # of GPT-3: attention over all else

_NOT = "That is an MFU, with the scores once or not at all. How often were they added for 21.3 %?"
_OVER = "By which share is 21.3 % more than the 19.7 % without scores? Divide that by what the scores add once."
_DIGITS = "Keep more digits than 19.7 and 20.2 have: k is close to a whole number."
value("gpt3_scores", (0.213 * 125 / 24.6 - 1) / _SCORES, [
    (1, "Added once, they give 20.2 %, and 21.3 % is printed."),
    (0, "Without the scores it is 19.7 %: not what is printed."),
    *[(mfu, _NOT) for mfu in (19.7, 20.2, 24.6 / 125 * (1 + _SCORES))],
    *[(twice, "20.2 % has the scores once already: start from the 19.7 % without, and divide by what they add once.")
      for twice in (2, 0.054, (21.3 / 20.2 - 1) / _SCORES)],
    *[(count, _DIGITS) for count in (2.5, 2.7, 2.85, 2.9, 3.1, 3.2)],
    (2.2, "Start from the 19.7 % without scores, and keep more digits."),
    (3 * (0.213 * 125 / 24.6 - 1) / _SCORES, "4 · L · D · T is the forward pass alone: take 12 · L · D · T."),
    ((0.213 * 125 / 24.6 - 1 / 3) / _SCORES, "Take 6N, not 2N: the 24.6 TFLOP/s include the backward pass."),
    (2048 * (0.213 * 125 / 24.6 - 1) / _SCORES, "You left out the T of 12 · L · D · T."),
    (96 * (0.213 * 125 / 24.6 - 1) / _SCORES, "You left out the L of 12 · L · D · T, or counted layers."),
    (2 * (0.213 * 125 / 24.6 - 1) / _SCORES, "You took half the scores: 12 · L · D · T counts them in full."),
    ((0.213 * 125 / 24.6 - 1) / _SCORES / 6, "You compared 12 · L · D · T with N: compare it with 6N."),
    ((0.213 * 125 / 24.6 - 1) / _SCORES / 2, "12 · L · D · T counts forward and backward already: do not double it."),
    (4, "Once too often: did you count the 6N as one, too?"),
    (12, "The question is how often all of 12 · L · D · T was added."),
    (1 / _SCORES, "6N is that many times the scores: by which share is 21.3 % more than the 19.7 % without scores?"),
    ((0.213 - 24.6 / 125) / _SCORES, "You divided a difference of MFUs: divide it by the 19.7 % first."),
    ((0.213 * 125e12 - 24.6e12) / (_SCORES * 6 * 175e9), "Those are tokens per second: divide by 24.6e12 / 6N."),
    (_SCORES * 6 * 175e9, "Those are FLOP per token: how often were they added?"),
    *[(once, "That is what the scores add once: how often were they added?") for once in (_SCORES, 100 * _SCORES)],
    *[(count, _OVER) for count in (1.1, 1.08, 21.3 / 20.2, 1 + _SCORES, 0.213 * 125 / 24.6)],
    *[(more, "If that is from 19.7 % to 21.3 %: divide by what the scores add once.") for more in (1.6, 0.016)],
    (100 * (0.213 * 125 / 24.6 - 1), "That is what all added scores make, in per cent: divide by the share of one."),
    *[(mfu, "That is the printed MFU: how often were the scores added?") for mfu in (21.3, 0.213)],
    (21.3 / (19.7 * _SCORES), "Take the 19.7 of 6N off before you divide."),
    (-3, "They were added, not taken off."),
    (1 / 3, "Upside down: they were added more than once."),
    (0.213 * 125 / 24.6 - 1, "That is what all the added scores make: divide by the share of one."),
], tolerance=0.02, same=dict.fromkeys([
    "share = 12 * 97 * 12288 * 2048 / (6 * 175000000000.0)", "share = 12 * 95 * 12288 * 2048 / (6 * 175000000000.0)",
], "one layer of 96 is below the tolerance"))
