"""The exercises of notebook 00."""

import math
from collections.abc import Callable

from helpers.exercises.exercise import function, value

# fmt: off

value("card_in_gb", 80 * 2**30 / 1e9, [
    (80e9 / 2**30, "You went from GB to GiB. A GiB is the larger unit, so there are more GB than GiB."),
    (80, "That takes GiB and GB for the same thing; they differ by 7.4 %."),
    (80 * 1.024, "That is one factor of 1.024: from 2^30 to 10^9 there are three."),
    (80 * 1.024**2, "Those are two factors of 1.024, as for MiB: from 2^30 to 10^9 there are three."),
    (86, "You rounded too far: three significant digits are asked for."),
    (80 * 2**30, "That is a number of bytes; the question asks for GB."),
    (80 * 2**33 / 1e9, "That is in bits: a byte has eight, but the question asks for GB (capital B)."),
    (80 * 2**30 / 1e6, "Those are MB: a GB is 10^9 bytes."),
    (80 * 1024, "Those are MiB: the question asks for GB."),
], unit="GB", tolerance=0.001)


def _tokens(
    flop: float = 6, hour: float = 3600, day: float = 24, *, mfu: bool = True, all_: bool = True
) -> Callable[..., float]:
    return lambda n, devices, days, peak, share: (
        (devices if all_ else 1) * days * day * hour * peak * (share if mfu else 1) / (flop * n))


function("tokens_before_deadline",
    _tokens(), [
    (_tokens(2), "You forgot the backward pass: 2 FLOP per parameter and token is the forward pass alone."),
    (_tokens(3), "Twice too many: a multiply-add is 2 FLOP, and the peak given is that of one device."),
    (_tokens(12), "Half of it: the peak given is dense already, and a token costs 6 FLOP per parameter."),
    (_tokens(1), "You left out the 6: a token costs 6 FLOP per parameter."),
    (_tokens(hour=1, day=1), "A day has 24 hours of 3600 seconds: FLOP/s times days is not FLOP."),
    (_tokens(hour=1), "An hour has 3600 seconds: the peak is per second."),
    (_tokens(hour=60), "An hour has 3600 seconds, not 60."),
    (_tokens(day=1), "A day has 24 hours: you counted one hour per day."),
    (_tokens(mfu=False), "You left out the MFU: that assumes every device runs at its peak."),
    (lambda n, c, d, p, u: _tokens()(n, c, d, p, 1 / u), "You divided by the MFU: it makes the rate smaller."),
    (_tokens(all_=False), "That is what a single device trains: multiply by the number of devices."),
    (lambda n, *a: _tokens(1)(1, *a), "You found the compute, in FLOP: divide by the cost of one token."),
    (lambda n, *a: _tokens(6)(1, *a), "You left out the parameters: a token costs 6 FLOP for each of them."),
    (lambda n, *a: _tokens(6)(1, *a) * n, "Mind the parentheses: a / 6 * n multiplies by n."),
    (lambda *a: 1 / _tokens()(*a), "That is upside down: the compute over the cost of a token."),
    ],
    cases=[(7e9, 8, 14, 989.5e12, 0.4), (70e9, 1024, 30, 989.5e12, 0.5), (1e9, 1, 1, 312e12, 0.3)],
    draw=lambda r: (r.randint(1, 99) * 1e9, r.randint(2, 999), r.randint(2, 99), r.randint(10, 999) * 1e12,
                    r.choice((0.3, 0.4, 0.6))),
    same={"return delivered // (6 * parameters)": "half a token is nothing"})

function("devices_needed",
    lambda n, memory, each: math.ceil(n * each / memory), [
    (lambda n, memory, each: n * each // memory, "You rounded down: the last few parameters need a device, too."),
    (lambda n, memory, each: max(round(n * each / memory), 1), "Rounded to the nearest, it may be too few: round up."),
    (lambda n, memory, each: round(n * each / memory), "Rounded to the nearest, it may be too few: round up."),
    (lambda n, memory, each: round(n * each / memory + 0.5),
     "Rounding to the nearest is not rounding up: use math.ceil."),
    (lambda n, memory, each: n * each // memory + 1, "Where it fits exactly, that is one too many: use math.ceil."),
    (lambda n, memory, each: n * each / memory, "A device cannot be cut in pieces: round up to a whole number."),
    (lambda n, memory, each: math.ceil(n / memory), "You left out the bytes that each parameter needs."),
    (lambda n, memory, each: math.ceil(n * 2 / memory),
     "You counted the weights alone, at 2 bytes each: gradients and optimizer state need room, too."),
    (lambda n, memory, each: math.ceil(n * 4 / memory), "You took 4 bytes per parameter: per_parameter says how many."),
    (lambda n, memory, each: math.ceil(n * 16 / memory),
     "You took 16 bytes per parameter: per_parameter says how many."),
    (lambda n, memory, each: math.ceil(n * each / memory / 8),
     "Both are in bytes already: there are no bits to convert."),
    (lambda n, memory, each: math.ceil(n * each * 8 / memory),
     "Both are in bytes already: there are no bits to convert."),
    (lambda n, memory, each: math.ceil(n / each / memory), "Each parameter needs that many bytes: multiply."),
    (lambda n, memory, each: math.ceil(memory / (n * each)),
     "That is upside down: bytes needed over bytes of a device."),
    (lambda n, memory, each: math.ceil(n * each / memory * 1e9 / 2**30),
     "Both are in bytes already: no GiB to convert."),
    ],
    cases=[(70e9, 80e9, 16), (40e9, 80e9, 16), (7e9, 80e9, 2), (7e9, 80e9, 16), (15e9, 80e9, 16), (10.4e9, 80e9, 16),
           (7e9, 24e9, 16), (1e9, 80e9, 18)],
    draw=lambda r: (r.randint(1, 700) * 10**9, r.choice((24, 40, 80)) * 10**9, r.choice((2, 4, 12, 16, 18))))
