"""The exercises of notebook 04."""

from collections.abc import Callable

import torch

from helpers.exercises.exercise import function, part, parts, value

# fmt: off

_MAC = "You counted MAC: each is a multiplication and an addition, 2 FLOP."


def _mlp_step(products: float) -> Callable[..., float]:
    return lambda batch, width, hidden: products * 2 * batch * width * hidden


function("mlp_step",
    _mlp_step(5), [
    (_mlp_step(2.5), _MAC),
    (_mlp_step(2), "You forgot the backward pass: the step is forward and backward."),
    (_mlp_step(3), "That is the backward pass alone: the step is forward and backward."),
    (_mlp_step(6),
     "You counted a gradient of x (6 FLOP per parameter and token): x is data, so the first layer needs none."),
    (_mlp_step(4),
     "You took the backward pass for as dear as the forward: the second layer needs two products, for "
     "its weight and for its input."),
    ], cases=[(64, 512, 2048), (1, 8, 8), (32, 100, 300)])


def _conv(batch: int, c_in: int, c_out: int, height: int, width: int, kernel: int) -> int:
    return 2 * batch * c_out * (height - kernel + 1) * (width - kernel + 1) * c_in * kernel**2


function("conv_flop",
    _conv, [
    (lambda *sizes: _conv(*sizes) / 2, _MAC),
    (lambda b, i, o, h, w, k: 2 * b * o * h * w * i * k**2,
     "You took the output for as large as the input: without padding it loses kernel − 1 rows and columns."),
    (lambda b, i, o, h, w, k: _conv(b, 1, o, h, w, k),
     "You forgot the input channels: each output element sums over all of them."),
    (lambda b, i, o, h, w, k: _conv(b, i, 1, h, w, k),
     "You forgot the output channels: each of them has a kernel of its own."),
    (lambda b, i, o, h, w, k: (_conv(b, i, o, h, w, k) / k),
     "You took the kernel for a line: it has kernel × kernel weights per channel."),
    (lambda b, i, o, h, w, k: _conv(1, i, o, h, w, k), "You forgot the batch."),
    ], cases=[(1, 3, 64, 32, 32, 5), (8, 64, 128, 28, 20, 3), (2, 4, 6, 9, 7, 1)])

_KINDS = ("MAC", "FLOP")
parts("mac_or_flop",
    a=part("MAC", [("FLOP", "Multiply it out: 3 · 3 · 64 · 64 · 56 · 56 are multiplications alone.")], words=_KINDS),
    b=part("FLOP", [("MAC", "The product 1024³ is 1.07 billion: this number has the additions in it.")], words=_KINDS),
    c=part("MAC", [("FLOP", "The datasheet of a V100 says 125 TFLOP/s, twice this number.")], words=_KINDS),
    d=part("FLOP", [("MAC", "Each of the 175 billion parameters is in one multiply-add per token.")], words=_KINDS))


def _transformer(
    products: float = 24, scores: float = 4, unembedding: float = 2, factor: float = 1
) -> Callable[..., float]:
    def flop(layers: int, width: int, tokens: int, vocabulary: int) -> float:
        layer = products * tokens * width**2 + scores * tokens**2 * width
        return factor * (layers * layer + unembedding * tokens * width * vocabulary)

    return flop


function("transformer_flop",
    _transformer(), [
    (_transformer(factor=0.5), _MAC),
    (_transformer(scores=0), "You forgot the scores: queries times keys and probabilities times values, 4T²D a layer."),
    (_transformer(scores=2),
     "You have half of the attention: there are two products of 2T²D, and a causal mask is not discounted."),
    (_transformer(unembedding=0), "You forgot the unembedding: the last product, D × V for each token."),
    (_transformer(12), "The MLP is four times as wide as the model: 16TD², not 4TD²."),
    (_transformer(22), "You forgot the projection after the attention: D × D for each token."),
    (_transformer(factor=3), "You counted the forward pass three times: forward alone was asked for."),
    ], cases=[(12, 768, 1024, 50257), (24, 1024, 512, 1000), (2, 64, 4096, 100)])


def _training(plain: float, recomputed: float) -> Callable[..., float]:
    return lambda parameters, tokens, recompute: (recomputed if recompute else plain) * parameters * tokens


function("training_flop",
    _training(6, 8), [
    (_training(3, 4), _MAC),
    (_training(2, 4), "You forgot the backward pass: 2 is the forward alone."),
    (_training(4, 6), "The backward pass costs twice the forward: a gradient for the weight and one for the input."),
    (_training(6, 6), "Recomputing costs a second forward pass: 2 more per parameter and token."),
    (_training(6, 12), "Recomputing repeats the forward pass, not the whole step."),
    (_training(8, 8), "Without recomputation there is one forward pass, not two."),
    ], cases=[(175e9, 300e9, False), (70e9, 15e12, True), (124e6, 1e10, True)])


def _run_mfu(peak: float = 756e12, flop: float = 6, shared: bool = True) -> Callable[..., float]:
    def mfu(parameters: float, devices: int, tokens_per_second: float) -> float:
        return flop * parameters * tokens_per_second / ((devices if shared else 1) * peak)

    return mfu


function("run_mfu",
    _run_mfu(), [
    (_run_mfu(flop=3), _MAC),
    (_run_mfu(1513e12),
     "You used the sparse peak: the datasheet's 1,513 TFLOP/s are for matrices that are half zeros."),
    (_run_mfu(989.5e12), "Wrong SKU: 989.5 TFLOP/s is the H100 SXM5, and these cards are for PCIe."),
    (_run_mfu(1979e12), "Wrong SKU, and sparse: 1,979 TFLOP/s is the H100 SXM5 with half of the matrix zero."),
    (_run_mfu(835.5e12), "Wrong SKU: 835.5 TFLOP/s is the H100 NVL, and these cards are for PCIe."),
    (_run_mfu(51e12), "Wrong unit: 51 TFLOP/s is the vector unit in float32; bfloat16 matmuls run on the matrix unit."),
    (_run_mfu(flop=2), "You forgot the backward pass: training costs 6 FLOP per parameter and token."),
    (_run_mfu(shared=False),
     "You compared the total with one device: the tokens per second are those of all devices together."),
    ], cases=[(7e9, 64, 480_000), (70e9, 1024, 700_000), (1.3e9, 8, 350_000)], tolerance=2e-4)

value("two_weeks", 8 * 989.5e12 * 14 * 24 * 60 * 60, [
    (8 * 989.5e12 * 7 * 86400, "That is one week: 60 · 60 · 24 · 7 seconds. Two weeks have 14 days."),
    (8 * 1979e12 * 14 * 86400, "You used the sparse peak, twice the dense one."),
    (8 * 756e12 * 14 * 86400, "Wrong SKU: 756 TFLOP/s is the H100 for PCIe."),
    (989.5e12 * 14 * 86400, "That is one device: there are eight."),
    (8 * 989.5e12 * 14, "A peak is per second, and a day has 86 400 of them."),
    ], tolerance=2e-3)

value("printed_mfu", 0.59 * 77.97e12 / 312e12, [
    (0.59, "That is what was printed: the FLOP/s stay, and the denominator changes."),
    (0.59 * 312 / 77.97, "The ratio is upside down: a larger peak makes a smaller MFU."),
    (0.59 * 77.97 / 624, "You used the sparse peak: 624 TFLOP/s, twice the dense one."),
    (0.59 * 77.97 / 156, "Wrong format: 156 TFLOP/s is for tfloat32, and these matmuls are in bfloat16."),
    (0.59 * 77.97 / 989.5, "Wrong SKU: 989.5 TFLOP/s is an H100, and this was an A100."),
    (0.59 * 77.97e12, "That is the FLOP/s achieved: divide it by the right peak."),
    (77.97 / 312, "You compared the peaks: how much of the right one was reached?"),
    ], tolerance=0.02)


def _whole(rows: int, columns: int) -> torch.Tensor:
    """Small whole numbers, whose products float32 holds exactly, whatever the order of a sum."""
    return (torch.arange(rows * columns) * 7 % 5 - 2.0).reshape(rows, columns)


function("low_rank",
    lambda x, w, a, b: x @ w + (x @ a) @ b, [
    (lambda x, w, a, b: (x @ (w + a @ b)),
     "You formed the large matrix a @ b: go through the few columns of x @ a instead."),
    (lambda x, w, a, b: (x @ w + x @ (a @ b)),
     "You multiply x by two large matrices: x @ a has few columns, so start with that."),
    (lambda x, w, a, b: x @ w, "You left out the low-rank part."),
    (lambda x, w, a, b: x @ a @ b, "You left out x @ w."),
    ],
    cases=[
        (_whole(4, 64), _whole(64, 64), _whole(64, 2), _whole(2, 64)),
        (_whole(16, 32), _whole(32, 48), _whole(32, 3), _whole(3, 48)),
    ],
    cost="flops",
    unit="FLOP")
