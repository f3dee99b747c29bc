"""The exercises of notebook 00."""

import math

from helpers.exercises.exercise import function, value

# fmt: off

value("card_in_gb", 80 * 2**30 / 1e9, [
    (80e9 / 2**30, "You went from GB to GiB. A GiB is the larger unit, so there are more GB than GiB."),
    (80, "That takes GiB and GB for the same thing; they differ by 7.4 %."),
    (80 * 2**30, "That is a number of bytes; the question asks for GB."),
    (80 * 2**33 / 1e9, "That is in bits: a byte has eight, but the question asks for GB (capital B)."),
    (80 * 1.024, "One prefix too few: from bytes to GiB it takes three factors of 1.024, not one."),
    (80 * 1.024**2, "One prefix too few: from bytes to GiB it takes three factors of 1.024, not two."),
    (86, "Nearly: that is rounded to two digits, and three are asked for."),
], unit="GB", tolerance=0.001)

DAY = 24 * 60 * 60

function("tokens_before_deadline",
    lambda n, devices, days, peak, mfu: devices * days * DAY * peak * mfu / (6 * n), [
    (lambda n, c, d, p, u: c * d * DAY * p * u / (2 * n),
     "You forgot the backward pass: 2 FLOPs per parameter and token are the forward pass alone."),
    (lambda n, c, d, p, u: c * d * DAY * p * u / (4 * n),
     "You forgot the forward pass: 4 FLOPs per parameter and token are the backward pass alone."),
    (lambda n, c, d, p, u: c * d * DAY * p * u / (3 * n),
     "Twice too many: is the peak the dense one, as given, and does a token cost 6 FLOPs per parameter?"),
    (lambda n, c, d, p, u: c * d * DAY * p * u / (12 * n),
     "Half too few: the peak is what a device does, so do not halve it, and a token costs 6 FLOPs per parameter."),
    (lambda n, c, d, p, u: c * d * DAY * p * u / n,
     "You left out the 6: one token costs 6 FLOPs for each parameter."),
    (lambda n, c, d, p, u: c * d * p * u / (6 * n),
     "A day has 24 hours of 3600 seconds: FLOP/s times days is not FLOP."),
    (lambda n, c, d, p, u: c * d * 3600 * p * u / (6 * n), "A day has 24 hours: you counted one hour per day."),
    (lambda n, c, d, p, u: c * d * 24 * p * u / (6 * n),
     "An hour has 3600 seconds: you counted the hours of a day as seconds."),
    (lambda n, c, d, p, u: c * d * 1440 * p * u / (6 * n),
     "A minute has 60 seconds: you counted the minutes of a day as seconds."),
    (lambda n, c, d, p, u: c * d * DAY * p / (6 * n),
     "You left out the MFU: that assumes every device runs at its peak."),
    (lambda n, c, d, p, u: c * d * DAY * p / u / (6 * n),
     "You divided by the MFU: it makes the devices slower, not faster."),
    (lambda n, c, d, p, u: d * DAY * p * u / (6 * n),
     "That is what a single device trains: multiply by the number of devices."),
    (lambda n, c, d, p, u: c * d * DAY * p * u / 6 * n,
     "In Python, a / 6 * n divides by 6 and then multiplies by n: put brackets around 6 * n."),
    (lambda n, c, d, p, u: c * d * DAY * p * u, "You found the compute, in FLOP: divide by the cost of one token."),
    (lambda n, c, d, p, u: c * d * DAY * p * u / (8 * n),
     "Recomputation would make it 8 FLOPs per parameter and token; the rule is 6."),
    (lambda n, c, d, p, u: c * DAY * p * u / (6 * n), "That is what one day is enough for: multiply by the days."),
    (lambda n, c, d, p, u: d * DAY * p * u / (6 * n * c), "You divided by the devices: more of them do more."),
    (lambda n, c, d, p, u: c * d * DAY * p * u / 6, "You left out the parameters: a token costs 6 FLOPs for each."),
    (lambda n, c, d, p, u: c * d * DAY * p * 0.5 / (6 * n), "The 0.5 is that of section 2: use `mfu`."),
    (lambda n, c, d, p, u: c * d * DAY * 989.5e12 * u / (6 * n), "The 989.5e12 is the H100 of section 2: use `peak`."),
    (lambda n, c, d, p, u: 6 * n / (c * d * DAY * p * u),
     "That is upside down: tokens are FLOPs delivered over FLOPs per token."),
    ],
    cases=[(7e9, 8, 14, 989.5e12, 0.4), (70e9, 1024, 30, 989.5e12, 0.5), (1e9, 1, 1, 312e12, 0.3)],
    draw=lambda r: (r.randint(1, 400) * 1e9, r.randint(2, 4096), r.randint(2, 300),
                    r.choice((312e12, 989.5e12)), r.uniform(0.1, 0.6)),
    same={"return delivered // (6 * parameters)": "whole tokens are an answer, too"})

function("devices_needed",
    lambda n, memory, each: math.ceil(n * each / memory), [
    (lambda n, m, b: n * b // m, "You rounded down: the last parameters need a device, too."),
    (lambda n, m, b: n * b / m, "A device cannot be cut in pieces: round up to a whole number."),
    (lambda n, m, b: round(n * b / m), "You rounded to the nearest: whatever is left over needs a device of its own."),
    (lambda n, m, b: max(1, round(n * b / m)),
     "You rounded to the nearest: whatever is left over needs a device of its own."),
    (lambda n, m, b: n * b // m + 1, "Where the model fills the devices exactly, you bought one too many."),
    (lambda n, m, b: math.ceil(n / m),
     "You counted one byte per parameter: multiply by the bytes that each one needs."),
    (lambda n, m, b: math.ceil(n * 16 / m), "The 16 bytes are those of section 5: use `per_parameter`."),
    (lambda n, m, b: math.ceil(n * 4 / m), "You counted 4 bytes for each parameter: use `per_parameter`."),
    (lambda n, m, b: math.ceil(n * b / 80e9), "The 80 GB are those of section 5: use `memory`."),
    (lambda n, m, b: math.ceil(m / (n * b)), "That is upside down: bytes needed over bytes of one GPU."),
    (lambda n, m, b: math.ceil(n / m) * b, "Round up at the end: you rounded before the bytes were multiplied in."),
    (lambda n, m, b: math.ceil(n * b / 8 / m), "You divided by 8, but these are bytes already, not bits."),
    (lambda n, m, b: math.ceil(n / b / m), "You divided by the bytes of a parameter: more bytes need more devices."),
    ],
    cases=[(7e9, 80e9, 2), (70e9, 80e9, 16), (40e9, 80e9, 16), (15e9, 80e9, 16), (10.4e9, 80e9, 16), (7e9, 24e9, 2)],
    draw=lambda r: (r.randint(1, 700) * 10**9, r.choice((24, 80, 96)) * 10**9, r.choice((2, 4, 8, 12, 18))))

function("fastest_writing",
    lambda n, itemsize, devices, bandwidth: devices * bandwidth / (n * itemsize), [
    (lambda n, i, d, b: n * i / (d * b),
     "Those are the seconds of one token; the question asks for tokens per second."),
    (lambda n, i, d, b: b / (n * i), "That is one device alone: each of them reads only its share of the weights."),
    (lambda n, i, d, b: b / (n * i * d),
     "More devices read their shares at the same time: they make it faster, not slower."),
    (lambda n, i, d, b: d * b / n, "You took each weight for one byte: multiply by `itemsize`."),
    (lambda n, i, d, b: d * b * i / n,
     "More bytes per weight take longer to read: divide by `itemsize`, and mind the brackets in a / (b * c)."),
    (lambda n, i, d, b: d * b / (2 * n), "Weights do not always have 2 bytes: use `itemsize`."),
    (lambda n, i, d, b: n * i / b, "Those are the seconds that one device alone takes for a token."),
    (lambda n, i, d, b: n * i / (d * b) * 1000, "Those are the milliseconds of a token, not tokens per second."),
    (lambda n, i, d, b: d * b / (2 * n * i),
     "That counts 2 for each weight: those would be FLOPs, and here bytes are read, once."),
    (lambda n, i, d, b: d * b / (6 * n * i), "That counts 6 for each weight: those would be the FLOPs of training."),
    (lambda n, i, d, b: d * b / (8 * n * i), "Those would be bits: the bandwidth is in bytes per second already."),
    ],
    cases=[(70e9, 2, 2, 3.35e12), (8e9, 2, 1, 1e12), (8e9, 1, 1, 1e12)],
    draw=lambda r: (r.randint(1000, 4000) + 0.0, r.choice((1, 2, 4)), r.choice((3, 7, 12)), r.uniform(0.1, 8) * 1e12))
