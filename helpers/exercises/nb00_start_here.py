"""The exercises of notebook 00."""

import math
from collections.abc import Callable

from helpers.exercises.exercise import function, value

# fmt: off

value("card_in_gb", 80 * 2**30 / 1e9, [
    (80e9 / 2**30, "You went from GB to GiB. A GiB is the larger unit, so there are more GB than GiB."),
    (80, "That takes GiB and GB for the same thing; they differ by 7.4 %."),
    (80 * 2**30, "That is a number of bytes; the question asks for GB."),
    (80 * 2**33 / 1e9, "That is in bits: a byte has eight, but the question asks for GB (capital B)."),
    ], tolerance=0.001)


def _tokens_in(flop_per_token: float = 6, seconds: float = 24 * 60 * 60) -> Callable[..., float]:
    def tokens(parameters: float, devices: int, days: float, peak: float, mfu: float) -> float:
        return devices * days * seconds * peak * mfu / (flop_per_token * parameters)

    return tokens


function("tokens_before_deadline",
    _tokens_in(), [
    (_tokens_in(2), "You forgot the backward pass: 2 FLOP per parameter and token is the forward pass alone."),
    (_tokens_in(3),
     "Twice too many: a multiply-add is 2 FLOP (6 per parameter, not 3), and the peak given is dense already."),
    (_tokens_in(seconds=1), "A day has 24 hours of 3600 seconds: FLOP/s times days is not FLOP."),
    (_tokens_in(seconds=3600), "A day has 24 hours: you counted one hour per day."),
    (lambda n, c, d, p, mfu: _tokens_in()(n, c, d, p, 1),
     "You left out the MFU: that assumes every device runs at its peak."),
    (lambda n, c, d, p, m: _tokens_in()(n, 1, d, p, m),
     "That is what a single device trains: multiply by the number of devices."),
    (lambda n, c, d, p, mfu: (c * d * 86400 * p * mfu),
     "You found the compute, in FLOP: divide by the cost of one token."),
    ], cases=[(7e9, 8, 14, 989.5e12, 0.4), (70e9, 1024, 30, 989.5e12, 0.5), (1e9, 1, 1, 312e12, 0.3)])

function("devices_needed",
    lambda parameters, memory, per_parameter: math.ceil(parameters * per_parameter / memory), [
    (lambda n, m, b: int(n * b // m), "You rounded down: the last few parameters need a device too."),
    (lambda n, m, b: n * b / m, "A device cannot be cut in pieces: round up to a whole number."),
    (lambda n, m, b: math.ceil(n / m),
     "You counted one byte per parameter: multiply by the bytes that each one needs."),
    (lambda n, m, b: math.ceil(n * 2 / m),
     "You counted the weights alone, at 2 byte each: gradients and optimizer state need room too."),
    ], cases=[(70e9, 80e9, 16), (40e9, 80e9, 16), (7e9, 24e9, 16), (1e9, 80e9, 18)])
