"""The exercises of notebook 00."""

import math

from helpers.exercises.exercise import exercise, guess, notebook, part, parts

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
    (80e9 / 2**30, "You went from GB to GiB. A GiB is the larger unit, so the same memory is more GB than GiB."),
    (80, "That is still 80, as the datasheet writes it: but a GiB has more bytes than a GB. How many more?"),
    (80 * 1.024, "1.024 is the step from KiB to kB. A GiB is a KiB times 1024, twice over."),
    (80 * 1.024**2, "Two steps of 1.024 lead from MiB to MB: how many lead from GiB to GB?"),
    (80 * (1.024**3 - 1), "That is by how much the two differ: how many GB are it in all?"),
    (80 * (2 - 1.024**3), "You took the difference off: the larger the unit, the smaller the number."),
    (87.4, "You added the 7.4 per cent as if they were GB: they are 7.4 % of the 80."),
], unit="GB", tolerance=0.001, quantities={"the 80": 80})

DAY = 24 * 60 * 60
_FORWARD = "2 FLOPs per parameter and token are the forward pass alone: training goes backward, too."

exercise("tokens_before_deadline",
    lambda parameters, devices, days, peak, mfu: devices * days * DAY * peak * mfu / (6 * parameters), [
    (lambda parameters, devices, days, peak, mfu: devices * days * DAY * peak * mfu / (2 * parameters),
     _FORWARD),
    (lambda parameters, devices, days, peak, mfu: devices * days * peak * mfu / (6 * parameters),
     "`peak` is in FLOPs per second, and `days` are days: as it stands, you trained for as many seconds."),
    (lambda parameters, devices, days, peak, mfu: devices * days * 24 * peak * mfu / (6 * parameters),
     "You have hours: `peak` is in FLOPs per second."),
    (lambda parameters, devices, days, peak, mfu: devices * days * 3600 * peak * mfu / (6 * parameters),
     "3600 seconds are an hour: how many hours has a day?"),
    (lambda parameters, devices, days, peak, mfu: devices * days * DAY * peak / mfu / (6 * parameters),
     "You divided by `mfu`. That is right for the time a run takes; here it is the share of the peak that you get."),
    (lambda parameters, devices, days, peak, mfu: devices * days * DAY * peak * mfu / 6 * parameters,
     "That grows with the parameters: Python reads a / 6 * n as (a / 6) * n."),
    ],
    cases=[(7e9, 8, 14, 989.5e12, 0.4), (70e9, 1024, 30, 989.5e12, 0.5), (1e9, 1, 1, 312e12, 0.3)],
    draw=lambda r: (r.randint(1, 400) * 1e9, r.randint(2, 4096), r.randint(2, 300),
                    r.choice((312e12, 989.5e12)), r.uniform(0.1, 0.6)),
    equivalent_slips={"return delivered // (6 * parameters)": "whole tokens are an answer, too"})

_RUN = {"the 6": 6, "the parameters": (8e9, 70e9), "the tokens": 15e12, "the peak": 989.5e12,
        "the seconds of an hour": 3600}
_FLOPS = 6 * 8e9 * 15e12
parts("napkin_of_another",
    hours_on_the_napkin=part(_FLOPS / (989.5e12 * 0.5) / 3600, [
        (1.3e6, "Those are Meta's: the napkin knows nothing of them."),
        (_FLOPS / (989.5e12 * 0.5) / 3600 / 1024, "Those are the hours of 1024 GPUs: add those of all GPUs."),
        (_FLOPS / (989.5e12 * 0.5) / 86400, "Those are GPU-days."),
        (_FLOPS / 3 / (989.5e12 * 0.5) / 3600, _FORWARD),
    ], tolerance=0.005, quantities=_RUN | {"the MFU": 0.5}),
    mfu_of_the_run=part(100 * _FLOPS / (1.3e6 * 3600 * 989.5e12), [
        (100 * 70e9 * 15e12 * 6 / (6.4e6 * 3600 * 989.5e12), "That is the MFU of the 70B: take this run's numbers."),
        (100 * _FLOPS / (1.3e6 * 3600 * 989.5e12 * 0.5), "That is the share of the napkin's MFU: take it of the peak."),
        (100 * _FLOPS / 3 / (1.3e6 * 3600 * 989.5e12), _FORWARD),
    ], unit="%", tolerance=0.005, quantities=_RUN | {"the GPU-hours": (1.3e6, 6.4e6), "the 50 % of the napkin": 50}),
    equivalent_slips={
        "hours_on_the_napkin = flops / (989500000000000.0 * 0.5) // 3600": "whole hours are an answer, too",
        "hours_on_the_napkin = flops // (989500000000000.0 * 0.5) / 3600": "whole seconds are precise enough"})

exercise("devices_needed",
    lambda parameters, memory, per_parameter: math.ceil(parameters * per_parameter / memory), [
    (lambda parameters, memory, per_parameter: parameters * per_parameter // memory,
     "You rounded down: what is left over when the devices are full needs a device, too."),
    (lambda parameters, memory, per_parameter: round(parameters * per_parameter / memory),
     "You rounded to the nearest: however little is left over, it needs a device of its own."),
    (lambda parameters, memory, per_parameter: parameters * per_parameter // memory + 1,
     "You add one for what is left over. Where the model fills the devices exactly, nothing is."),
    (lambda parameters, memory, per_parameter: math.ceil(parameters / memory) * per_parameter,
     "You rounded up before you multiplied by the bytes, and so multiplied the rounding, too."),
    (lambda parameters, memory, per_parameter: math.ceil(memory / (parameters * per_parameter)),
     "Upside down: you share one GPU among the models. How often do a GPU's bytes go into the model's?"),
    (lambda parameters, memory, per_parameter: math.ceil(parameters * per_parameter / memory / 8) * 8,
     "GPUs are often sold by eights, but how few are enough?"),
    ],
    cases=[(7e9, 80e9, 2), (70e9, 80e9, 16), (40e9, 80e9, 16), (15e9, 80e9, 16), (10.1e9, 80e9, 16), (7e9, 24e9, 2),
           (1e9, 80e9, 2), (10_001, 160_000, 16), (8, 15, 2), (1.8e12, 24e9, 16)],
    draw=lambda r: (r.randint(1, 700) * 10**9, r.choice((24, 80, 96)) * 10**9, r.choice((2, 4, 8, 12, 18))))

exercise("fastest_writing",
    lambda parameters, itemsize, devices, bandwidth: devices * bandwidth / (parameters * itemsize), [
    (lambda parameters, itemsize, devices, bandwidth: parameters * itemsize / (devices * bandwidth),
     "Those are the seconds of one token: how many such tokens fit into a second?"),
    (lambda parameters, itemsize, devices, bandwidth: bandwidth / (parameters * itemsize * devices),
     "More devices made it slower: but each has fewer weights to read, and all read at the same time."),
    (lambda parameters, itemsize, devices, bandwidth: devices * bandwidth * itemsize / parameters,
     "Wider weights made it faster: they have more bytes to read. Mind that a / b * c is (a / b) * c."),
    (lambda parameters, itemsize, devices, bandwidth: devices * bandwidth / (2 * parameters),
     "A weight has `itemsize` bytes. Was the 2 meant as FLOPs? Nothing is asked of arithmetic here."),
    ],
    cases=[(70e9, 2, 2, 3.35e12), (8e9, 2, 1, 1e12), (8e9, 1, 1, 1e12), (70e9, 4, 1, 1e11)],
    draw=lambda r: (r.randint(1000, 4000) + 0.0, r.choice((1, 2, 4)), r.choice((3, 7, 12)), r.uniform(0.1, 8) * 1e12))
