"""The exercises of notebook 04."""

from collections.abc import Callable

import torch

from helpers.exercises.exercise import function, part, parts, value, whole

# fmt: off

_MAC = "You counted MACs: each is a multiplication and an addition, 2 FLOP."


def _mlp_step(products: float) -> Callable[..., float]:
    return lambda batch, width, hidden: products * 2 * batch * width * hidden


function("mlp_step",
    lambda batch, width, hidden: 10 * batch * width * hidden, [
    (_mlp_step(2.5), _MAC),
    (_mlp_step(2), "You forgot the backward pass: the step is forward and backward."),
    (_mlp_step(1), "That is one product: how many does the whole step have?"),
    (_mlp_step(3), "Three products are the backward pass alone, or six in MACs: how many are there in a step?"),
    (_mlp_step(6), "You counted a gradient of x: x is data, so the first layer needs none."),
    (_mlp_step(4), "You took the backward pass for as dear as the forward: the second layer needs two products."),
    (_mlp_step(7), "You counted one product too often: list the gradients that are needed."),
    (lambda b, w, h: 10 * w * h, "You forgot the batch: that is the step for one example."),
    (lambda b, w, h: 6 * b * (w + h), "A product of b × w and w × h takes 2·b·w·h FLOP: multiply, do not add."),
    ],
    cases=[(64, 512, 2048), (1, 8, 8), (32, 100, 300)],
    draw=lambda r: (r.randint(1, 99), r.randint(1, 999), r.randint(1, 999)),
    same={"backward = 2 * product + product": "the factor is 1"})


def _conv(b: int, i: int, o: int, h: int, w: int, k: int, *, pad: int = 0, lines: int = 1, flop: int = 2) -> float:
    return flop * b * o * (h - k + 1 + pad) * (w - k + 1 + pad) * i * k ** (1 + lines)


function("conv_flop",
    _conv, [
    (lambda *a: _conv(*a, flop=1), _MAC),
    (lambda b, i, o, h, w, k: 2 * b * o * h * w * i * k**2,
     "You took the output for as large as the input: without padding it loses kernel − 1 rows and columns."),
    (lambda *a: _conv(*a, pad=-1), "The output has height − kernel + 1 rows: the first position counts, too."),
    (lambda *a: _conv(*a, pad=1), "The output has height − kernel + 1 rows: yours has one more."),
    (lambda b, i, o, h, w, k: _conv(b, 1, o, h, w, k), "You forgot the input channels: each output sums over all."),
    (lambda b, i, o, h, w, k: _conv(b, i, 1, h, w, k), "You forgot the output channels: each has a kernel of its own."),
    (lambda *a: _conv(*a, lines=0), "You took the kernel for a line: it has kernel × kernel weights per channel."),
    (lambda *a: _conv(*a, lines=-1),
     "You forgot the kernel: each output sums kernel × kernel products per input channel."),
    (lambda b, i, o, h, w, k: _conv(1, i, o, h, w, k), "You forgot the batch."),
    (lambda b, i, o, h, w, k: 2 * b * o * (h // k) * (w // k) * i * k**2,
     "The kernel moves by one, not by its own size."),
    (lambda b, i, o, h, w, k: b * o * (h - k + 1) * (w - k + 1) * (2 * i * k**2 - 1),
     "That leaves out the first addition of each sum. It is exact, but 2 for every multiply-add is asked for."),
    ],
    cases=[(1, 3, 64, 32, 32, 5), (8, 64, 128, 28, 20, 3), (2, 4, 6, 9, 7, 1)],
    draw=lambda r: (r.randint(1, 9), r.randint(1, 64), r.randint(1, 64), r.randint(9, 40), r.randint(9, 40),
                    r.randint(2, 7)))

_KINDS = ("MAC", "FLOP")
parts("mac_or_flop",
    a=part("MAC", [("FLOP", "Multiply it out: 3 · 3 · 64 · 64 · 56 · 56 are multiplications alone.")], words=_KINDS),
    b=part("FLOP", [("MAC", "The product 1024³ is 1.07 billion: this number has the additions in it.")], words=_KINDS),
    c=part("MAC", [("FLOP", "The datasheet of a V100 says 125 TFLOP/s, twice this number.")], words=_KINDS),
    d=part("FLOP", [("MAC", "Each of the 175 billion parameters is in one multiply-add per token.")], words=_KINDS))


def _gpt(
    products: float = 24, scores: float = 4, head: float = 2, factor: float = 1, *, all_layers: bool = True
) -> Callable[..., float]:
    def flop(layers: int, width: int, tokens: int, vocabulary: int) -> float:
        layer = products * tokens * width**2 + scores * tokens**2 * width
        return factor * ((layers if all_layers else 1) * layer + head * tokens * width * vocabulary)

    return flop


function("transformer_flop",
    _gpt(), [
    (_gpt(factor=0.5), _MAC),
    (_gpt(scores=0), "You forgot the scores: queries times keys and weights times values, 4T²D a layer."),
    (_gpt(scores=2),
     "You have half of the scores: there are two products of 2T²D, and a causal mask is not discounted."),
    (_gpt(scores=8), "You counted the scores twice: there are two products of 2T²D."),
    (_gpt(head=0), "You forgot the unembedding: the last product, D × V for each token."),
    (_gpt(head=4), "You counted embedding and unembedding: looking a row up multiplies nothing."),
    (_gpt(head=1), "You counted the unembedding in MACs: it is 2·T·D·V."),
    (_gpt(12), "The MLP is four times as wide as the model: 16TD², not 4TD²."),
    (_gpt(16), "You left out the attention's own products, 8TD², or one of the MLP's two."),
    (_gpt(8), "You forgot the MLP: two products of D × 4D for each token."),
    (_gpt(22), "You forgot the projection after the attention, or one of the others: D × D for each token."),
    (_gpt(18), "Queries, keys and values are three products of D × D: you counted one for all."),
    (_gpt(factor=3), "You counted the forward pass three times: forward alone was asked for."),
    (_gpt(all_layers=False), "That is a single layer: multiply by the number of layers."),
    (lambda n, d, t, v: n * (_gpt()(1, d, t, v)), "The unembedding comes once, after the last layer."),
    (lambda n, d, t, v: _gpt()(n, d, t, v) / t, "That is for one token: there are `tokens` of them."),
    ],
    cases=[(12, 768, 1024, 50257), (24, 1024, 512, 1000), (2, 64, 4096, 100)],
    draw=lambda r: (r.randint(2, 99), r.randint(2, 99) * 64, r.randint(2, 4096), r.randint(100, 99_999)))


def _training(plain: float, recomputed: float) -> Callable[..., float]:
    return lambda parameters, tokens, recompute: (recomputed if recompute else plain) * parameters * tokens


function("training_flop",
    _training(6, 8), [
    (_training(3, 4), _MAC),
    (_training(2, 4), "You forgot the backward pass: 2 is the forward alone."),
    (_training(2, 2), "You forgot the backward pass: 2 is the forward alone."),
    (_training(4, 6), "The backward pass costs twice the forward: a gradient for the weight and one for the input."),
    (_training(4, 8), "The backward pass costs twice the forward, and it is not repeated."),
    (_training(6, 6), "Recomputing costs a second forward pass: 2 more per parameter and token."),
    (_training(8, 6), "You have the two cases the wrong way round."),
    (_training(6, 7), "The second forward pass costs as much as the first: 2 per parameter and token."),
    (_training(6, 10), "Recomputing repeats the forward pass once: 2 more, not 4."),
    (_training(6, 12), "Recomputing repeats the forward pass, not the whole step."),
    (_training(8, 8), "Without recomputation there is one forward pass, not two."),
    (_training(6e-9, 8e-9), "In FLOP, please: that is a billion times less."),
    ],
    cases=[(175e9, 300e9, False), (70e9, 15e12, True), (124e6, 1e10, True)],
    draw=lambda r: (r.randint(1, 999) * 1e9, r.randint(1, 99) * 1e11, r.random() < 0.5))


def _mfu(peak: float = 756e12, flop: float = 6, shared: bool = True) -> Callable[..., float]:
    return lambda parameters, devices, speed: flop * parameters * speed / ((devices if shared else 1) * peak)


function("run_mfu",
    _mfu(), [
    (_mfu(flop=3), "Half of it: training costs 6 FLOP per parameter and token, and the peak is the dense one."),
    (_mfu(1513e12, 3), "You counted MACs, and used the sparse peak."),
    (_mfu(989.5e12), "Wrong card: 989.5 TFLOP/s is the H100 SXM5, and these are for PCIe."),
    (_mfu(1979e12), "Wrong card, and sparse: 1,979 TFLOP/s is the H100 SXM5 with half of the matrix zero."),
    (_mfu(835.5e12), "Wrong card: 835.5 TFLOP/s is the H100 NVL, and these are for PCIe."),
    (_mfu(312e12), "Wrong card: 312 TFLOP/s is an A100."),
    (_mfu(51e12), "Wrong unit: 51 TFLOP/s is the vector unit in float32; bfloat16 matmuls run on the matrix unit."),
    (_mfu(flop=2), "You forgot the backward pass: training costs 6 FLOP per parameter and token."),
    (_mfu(flop=8), "That is what the hardware does when it recomputes; MFU counts what the model needs, 6."),
    (_mfu(shared=False), "You compared with one device: the tokens per second are those of all together."),
    (lambda n, d, s: 6 * n * s * d / 756e12, "The peaks of all devices add up: divide by their number, too."),
    (lambda n, d, s: 100 * _mfu()(n, d, s), "That is in percent: a fraction of 1 is asked for."),
    (lambda n, d, s: 1 / _mfu()(n, d, s), "That is upside down: what was needed, over what the devices could do."),
    (lambda n, d, s: 6 * n * s, "Those are the FLOP/s achieved: divide by what all devices could do."),
    (lambda n, d, s: 6 * n * s / d, "Those are the FLOP/s of one device: divide by its peak."),
    ],
    cases=[(7e9, 64, 480_000), (70e9, 1024, 700_000), (1.3e9, 8, 350_000)],
    draw=lambda r: (r.randint(1, 99) * 1e9, r.randint(2, 999), r.randint(10, 999) * 1000), tolerance=2e-3)

_WEEKS = 8 * 989.5e12 * 14 * 86400
value("two_weeks", _WEEKS, [
    (8 * 989.5e12 * 7 * 86400,
     "Half of it. Is the factor for the time that of two weeks, and the rate the dense one, not halved again?"),
    (8 * 1979e12 * 14 * 86400,
     "Twice too much: 1,979 TFLOP/s is the sparse rate, twice the dense one. Or did you take four weeks?"),
    (_WEEKS / 989.5 * 756, "Wrong card: 756 TFLOP/s is the H100 for PCIe."),
    (_WEEKS / 8, "That is one device: there are eight."),
    (8 * 989.5e12 * 14, "A peak is per second, and a day has 86 400 of them."),
    (8 * 989.5e12 * 14 * 3600, "You counted one hour a day."),
    (8 * 989.5e12 * 14 * 24, "A peak is per second: those are hours."),
    (8 * 989.5e12 * 14 * 24 * 60, "A peak is per second: those are minutes."),
    (8 * 989.5e12, "That is one second of all eight."),
    (_WEEKS / 1e12, "In FLOP, please: those are TFLOP."),
    (_WEEKS * 0.5 * 0.8, "The full rate is asked for: no MFU."),
], unit="FLOP", tolerance=2e-3)

value("printed_mfu", 0.59 * 77.97e12 / 312e12, [
    (0.59, "That is what was printed: the FLOP/s stay, and the denominator changes."),
    (0.59 * 77.97 / 624, "You used the sparse peak: 624 TFLOP/s, twice the dense one."),
    (0.59 * 77.97 / 156, "Wrong format: 156 TFLOP/s is for tfloat32, and these matmuls are in bfloat16."),
    (0.59 * 77.97 / 19.5,
     "Above 1: the ratio of the peaks is upside down, or 19.5 TFLOP/s, the vector unit's rate, is in it."),
    (0.59 * 77.97 / 989.5, "Wrong card: 989.5 TFLOP/s is an H100, and this was an A100."),
    (59 * 77.97 / 312, "That is in percent: an MFU is a fraction of 1."),
    (0.59 * 77.97e12, "That is the FLOP/s achieved: divide it by the right peak."),
    (77.97 / 312, "You compared the peaks: how much of the right one was reached?"),
    (312 / 77.97, "You compared the peaks: how much of the right one was reached?"),
    (0.59 * 312e12, "That takes 0.59 of the right peak: but it was 0.59 of the wrong one."),
], tolerance=0.02)

function("low_rank",
    lambda x, w, a, b: x @ w + (x @ a) @ b, [
    (lambda x, w, a, b: x @ (w + a @ b),
     "You formed the large matrix a @ b: go through the few columns of x @ a instead."),
    (lambda x, w, a, b: x @ w + x @ (a @ b),
     "You multiply x by two large matrices: x @ a has few columns, start with that."),
    (lambda x, w, a, b: x @ w, "You left out the low-rank part."),
    (lambda x, w, a, b: x @ a @ b, "You left out x @ w."),
    (lambda x, w, a, b: x @ w + a @ b, "The low-rank part is multiplied by x, too."),
    (lambda x, w, a, b: x @ w - x @ a @ b, "The low-rank part is added."),
    ],
    cases=[(torch.arange(256.0).view(4, 64) % 5 - 2, torch.arange(4096.0).view(64, 64) % 7 - 3,
            torch.arange(128.0).view(64, 2) % 3 - 1, torch.arange(128.0).view(2, 64) % 4 - 1)],
    draw=lambda r: (whole(r, 4, n := r.randint(5, 20)), whole(r, n, m := r.randint(5, 20)),
                    whole(r, n, 2), whole(r, 2, m)),
    cost="flops", unit="FLOP",
    at=[tuple(torch.empty(shape, device="meta") for shape in ((4, 64), (64, 64), (64, 2), (2, 64)))])
