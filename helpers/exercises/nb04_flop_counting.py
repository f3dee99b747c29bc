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


def _moe(flop: float = 6) -> Callable[..., float]:
    return lambda shared, experts, size, chosen, tokens: flop * (shared + chosen * size) * tokens


function("moe_training",
    _moe(), [
    (_moe(3), _MAC),
    (_moe(2), "You forgot the backward pass: 2 is the forward alone."),
    (_moe(4), "Forward costs 2 and backward 4 per parameter and token: a step is both."),
    (_moe(8), "That is with recomputation: nothing is recomputed here."),
    (lambda s, e, z, c, t: 6 * (s + e * z) * t, "You counted all experts: a token meets only the chosen ones."),
    (lambda s, e, z, c, t: 6 * (s + z) * t, "That is one expert: a token meets as many as are chosen."),
    (lambda s, e, z, c, t: 6 * c * z * t, "You forgot the shared parameters: every token meets them."),
    (lambda s, e, z, c, t: 6 * (s + e * z) * c / e * t, "The shared parameters are not split: all tokens meet them."),
    (lambda s, e, z, c, t: 6 * (s + c * z), "That is for one token."),
    ],
    cases=[(2e9, 8, 5e9, 2, 1e12), (10e9, 64, 1e9, 6, 15e12), (1e9, 16, 5e8, 4, 3e11)],
    draw=lambda r: (r.randint(1, 99) * 1e9, r.randint(8, 64), r.randint(1, 99) * 1e8, r.randint(2, 7),
                    r.randint(1, 99) * 1e11))


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

_WEEKS = 8 * 989.5e12 * 21 * 86400
value("three_weeks", _WEEKS, [
    (8 * 989.5e12 * 7 * 86400, "That is one week."),
    (8 * 1979e12 * 21 * 86400, "Twice too much: 1,979 TFLOP/s is the sparse rate, twice the dense one."),
    (_WEEKS / 2, "Half of it: 989.5 TFLOP/s is dense as it is, do not halve it again."),
    (8 * 1979e12 * 7 * 86400, "That is one week, at the sparse rate."),
    (_WEEKS / 989.5 * 756, "Wrong card: 756 TFLOP/s is the H100 for PCIe."),
    (_WEEKS / 8, "That is one device: there are eight."),
    (8 * 989.5e12 * 21, "A peak is per second, and a day has 86 400 of them."),
    (8 * 989.5e12 * 21 * 3600, "You counted one hour a day."),
    (8 * 989.5e12 * 21 * 24, "A peak is per second: those are hours."),
    (8 * 989.5e12 * 21 * 24 * 60, "A peak is per second: those are minutes."),
    (8 * 989.5e12, "That is one second of all eight."),
    (_WEEKS / 1e12, "In FLOP, please: those are TFLOP."),
    (_WEEKS * 0.4, "The full rate is asked for: no MFU."),
], unit="FLOP", tolerance=2e-3)

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
