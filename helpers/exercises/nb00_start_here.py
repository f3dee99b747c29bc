"""The exercises of notebook 00."""

import math

from helpers.exercises.exercise import exercise, guess, notebook

notebook("00")

# fmt: off

guess("published_days", "Meta's 6.4 million GPU-hours for Llama 3 70B, over 15 trillion tokens, shared out over 1024.")

guess("implied_mfu", "It is 50 %, times 144 / 260.",
    (50, "The napkin took 50 %: what makes 144 days 260?"),
    (100 * 144 / 260, "That is the share of the napkin's MFU: take it of the 50 %."),
    ((38, 43), "That is what Meta reports for its largest model."),
    (100 * 0.5 * 260 / 144, "The wrong way round."))

guess("tebibyte", "Each further prefix multiplies by 1.024 again.",
    (2.4, "That is a KiB against a kB."),
    (9.6, "You added 2.4 four times: each prefix multiplies."),
    (7.4, "That is a GiB against a GB."),
    (9.1, "That is how much smaller a TB is than a TiB."),
    (lambda right: 100 + right, "That is the whole TiB: by how much is it more than a TB?"))

guess("dot_product", "A million multiplications, and one addition less, which everyone rounds to 2n.",
    (1e6, "Those are the MACs."),
    (2e-9, "If you mean 2n, with n numbers in each vector: that is right."))

guess("product_and_relu", "The ReLU does an eighth of a FLOP for each byte, the product 256.",
    (2048, "That is the ratio of the FLOPs."),
    (1, "That is the ratio of the bytes."))

guess("largest_model", "640 GB at 16 bytes each, and no room for anything else.",
    (160, "Those are the weights alone."),
    (320, "Those are the weights alone, in 2 bytes each."),
    (80, "The two averages are missing."),
    (53.3, "AdamW keeps two averages."),
    (5, "That is one GPU."))

exercise("card_in_gb", 80 * 2**30 / 1e9, [
    (80e9 / 2**30, "You went from GB to GiB. A GiB is the larger unit, so there are more GB than GiB."),
    (80, "That is still 80: GiB and GB differ by 7.4 % of it."),
    (80 * 2**30, "That is a number of bytes; the question asks for GB."),
    (80 * 1.024, "That is the step from KiB to kB; from GiB to GB it takes three factors of 1.024, not one."),
    (80 * 1.024**4, "One prefix too many: 10 % are a TiB's; from GiB to GB it takes three factors of 1.024."),
    (80 * 1.024**2, "One prefix too few: from GiB to GB it takes three factors of 1.024, not two."),
    (80 * (1.024**3 - 1), "That is the difference alone: add it to the 80."),
    (80 * (2 - 1.024**3), "You took the percentage off: there are more GB than GiB."),
    (87.4, "The 7.4 are per cent: take 7.4 % of the 80."),
    (86, "Nearly: you rounded to two digits, here or on the way, and three are asked for."),
], unit="GB", tolerance=0.001, quantities={"the 80": 80})

DAY = 24 * 60 * 60

exercise("tokens_before_deadline",
    lambda parameters, devices, days, peak, mfu: devices * days * DAY * peak * mfu / (6 * parameters), [
    (lambda n, c, d, p, u: c * d * DAY * p * u / (2 * n),
     "You forgot the backward pass: 2 FLOPs per parameter and token are the forward pass alone."),
    (lambda n, c, d, p, u: c * d * DAY * p * u / n, "You left out the 6 FLOPs for each parameter and token."),
    *[(lambda n, c, d, p, u, day=day: c * d * day * p * u / (6 * n),
       "A day has 24 hours of 3600 seconds: FLOP/s times seconds are FLOPs.") for day in (1, 24, 3600)],
    (lambda n, c, d, p, u: c * d * DAY * p / (6 * n),
     "You left out the MFU: that assumes every device runs at its peak."),
    (lambda n, c, d, p, u: c * d * DAY * p / u / (6 * n),
     "You divided by the MFU: it makes the devices slower, not faster."),
    (lambda n, c, d, p, u: d * DAY * p * u / (6 * n),
     "That is what a single device trains: multiply by the number of devices."),
    (lambda n, c, d, p, u: c * d * DAY * p * u / 6 * n,
     "You multiplied by the parameters, as a / 6 * n does in Python: divide by all of (6 * n)."),
    (lambda n, c, d, p, u: d * DAY * p * u / (6 * n) / c, "More devices train more tokens: multiply by their number."),
    ],
    cases=[(7e9, 8, 14, 989.5e12, 0.4), (70e9, 1024, 30, 989.5e12, 0.5), (1e9, 1, 1, 312e12, 0.3)],
    draw=lambda r: (r.randint(1, 400) * 1e9, r.randint(2, 4096), r.randint(2, 300),
                    r.choice((312e12, 989.5e12)), r.uniform(0.1, 0.6)),
    equivalent_slips={"return delivered // (6 * parameters)": "whole tokens are an answer, too"})

exercise("devices_needed",
    lambda parameters, memory, per_parameter: math.ceil(parameters * per_parameter / memory), [
    (lambda n, m, b: n * b // m, "You rounded down: the last parameters need a device, too."),
    (lambda n, m, b: round(n * b / m), "You rounded to the nearest: whatever is left over needs a device of its own."),
    (lambda n, m, b: n * b // m + 1, "Where the model fills the devices exactly, you bought one too many."),
    (lambda n, m, b: math.ceil(n / m) * b, "Round up at the end: you rounded before the bytes were multiplied in."),
    (lambda n, m, b: math.ceil(n / m),
     "You counted one byte per parameter: multiply by the bytes that each one needs."),
    (lambda n, m, b: math.ceil(m / (n * b)), "That is upside down: bytes needed over bytes of one GPU."),
    (lambda n, m, b: math.ceil(n * 16 / m), "You took 16 bytes for each parameter: here it is `per_parameter`."),
    (lambda n, m, b: math.ceil(n * b / m / 8) * 8, "How few are enough? They need not be a multiple of 8."),
    ],
    cases=[(7e9, 80e9, 2), (70e9, 80e9, 16), (40e9, 80e9, 16), (15e9, 80e9, 16), (10.1e9, 80e9, 16), (7e9, 24e9, 2),
           (1e9, 80e9, 2), (10_001, 160_000, 16), (8, 15, 2)],
    draw=lambda r: (r.randint(1, 700) * 10**9, r.choice((24, 80, 96)) * 10**9, r.choice((2, 4, 8, 12, 18))))

exercise("fastest_writing",
    lambda parameters, itemsize, devices, bandwidth: devices * bandwidth / (parameters * itemsize), [
    (lambda n, i, d, b: n * i / (d * b),
     "Those are the seconds of one token; the question asks for tokens per second."),
    (lambda n, i, d, b: b / (n * i), "That is one device alone: each of them reads only its share of the weights."),
    (lambda n, i, d, b: b / (n * i * d),
     "More devices read their shares at the same time: they make it faster, not slower."),
    (lambda n, i, d, b: d * b / n, "You took each weight for one byte: multiply by `itemsize`."),
    (lambda n, i, d, b: d * b * i / n,
     "More bytes per weight take longer to read: divide by `itemsize`, and mind the brackets in a / (b * c)."),
    (lambda n, i, d, b: d * b / (2 * n),
     "You divided by 2 for each weight: it has `itemsize` bytes, and FLOPs play no part."),
    (lambda n, i, d, b: d * b / (6 * n), "6 FLOPs are the work of training: here count the bytes that are read."),
    *[(lambda n, i, d, b, turn=turn: turn(d * b / (n * i)), "Do not round: a rate need not be a whole number.")
      for turn in (math.floor, round)],
    ],
    cases=[(70e9, 2, 2, 3.35e12), (8e9, 2, 1, 1e12), (8e9, 1, 1, 1e12), (70e9, 4, 1, 1e11)],
    draw=lambda r: (r.randint(1000, 4000) + 0.0, r.choice((1, 2, 4)), r.choice((3, 7, 12)), r.uniform(0.1, 8) * 1e12))
