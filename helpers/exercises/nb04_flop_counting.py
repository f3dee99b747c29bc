"""The exercises of notebook 04."""

import math
from collections.abc import Callable

import torch

from helpers.exercises.exercise import exercise, guess, notebook, part, parts, whole

notebook("04")

# fmt: off

guess("triple_loop", "20 elements, each with 3 multiplications and 2 additions.",
    (120, "One addition too many in each sum: its first product is added to nothing."),
    (60, "You counted the multiplications."),
    (40, "You counted the additions."),
    (20, "That is how many elements the result has."))

guess("own_counter", "All its FLOPs are those of products, for which PyTorch's counter has the same rule.",
    ((50, 99.9), "Which ops should yours lack? Norms, softmax and GELU have no rule in PyTorch's counter, either."),
    (50, "Both count 2 for a multiply-add."), ((100.1, math.inf), "It cannot find more: it has a single rule."))

guess("zeros_of_six", "It has a rule for products of matrices, and none here for anything else, not even for x @ v.",
    (2, "x + x and GELU are two of them. What of products with a vector, and of attention on a CPU?"),
    (3, "Is attention among them, as the count before shows? Then look at the products with a vector."),
    (4, "One is missing: is it a product with a vector, or attention on a CPU?"),
    (6, "x @ x has a rule: 2mnk."), (0, "Look at the two counts above: one product got nothing there."),
    (1, "Attention, as above, or an addition? There are more."))

guess("backward_products", "33.6 for the gradient of w2, 33.6 for that of the hidden layer, 134.2 for that of w1.",
    (134.2, "That is the gradient of w1 alone: the second layer has two more."),
    (335.5, "That is the rule, twice the forward pass: one of its four products does not run."),
    (167.8, "That is as much as the forward pass, or the gradients of the weights alone: three products run."),
    (234.9, "One product does not run: the first layer's, for x, which is data."),
    (268.4, "Those are both of the first layer: one of them does not run, and the second layer has two."),
    (302, "One product does not run, but it is the first layer's: nobody asks for the gradient of x."),
    (369.1, "That is the whole step."),
    (503.3, "That is the whole step by the rule, three times the forward pass."),
    (33.6, "That is one product of the second layer: two more run."),
    (67.1, "Those are the two of the second layer: the first has one, too."),
    (100.7, "Is that half of it, in MACs, or the second layer's three products?"))

guess("attention_products", "4T²D of 24TD² + 4T²D: T / (6D + T).",
    (22.2, "That is their share of the other products: take all of them together."),
    (9.1, "There are two of 2T²D: scores, and weighted sum."),
    (45, "Asked are the two products without parameters, not q k v and output."),
    (50, "That is where T = 6D: here T is less than 2D."),
    (40, "The MLP counts, too: 16TD²."),
    *((share, "That holds for T = D: here T is larger.") for share in (14, 100 / 7)),
    (33, "Is that 8TD² of the 24TD²? Asked are scores and weighted sum, of all products together."))

guess("fused_backward", "It kept no attention weights, so it makes the scores again: five products in place of four.",
    *((percent, "Over all T × T it does more arithmetic: what it saves is bytes.") for percent in (-50, -33, -25, -20)),
    (0, "One of the products runs again."),
    (20, "One product in five is a quarter more than four."),
    (33, "A third is what a whole forward pass adds to training; here one product runs again."))

guess("count_over_rule", "The attention products have no parameters: they add about T / (6D) of the other products.",
    (0, "The rule overlooks what has no parameters."),
    *((percent, "So much do the attention products add: norms, softmax and the like add a little more.")
      for percent in (2.77, 2.78)),
    (1.4, "That is with the attention products halved: here they count in full."),
    *((percent, "That is about the share in GPT-2 small: here T is 0.17 D.") for percent in (13, 18)),
    (16.7, "That is T / D: the other products have 24 D, attention 4 T."),
    (15, "That was GPT-2 small, where T is 1.3 D: here it is 0.17 D."))

guess("block_rate",
    "Its products may run below the best rate, and norms, softmax and GELU take time for hardly a FLOP.",
    ((0.01, 1), "In percent, please."),
    ((1, 30), "Nearly all FLOPs of the block are in large products: what should slow these down so much?"),
    ((97, 101), "Then nothing but products would take time, all of them at the best rate."),
    ((101, math.inf), "Nothing gets beyond the best rate, if that was measured in a quiet moment."))
guess("right_mfu", "312 TFLOP/s are four times 77.97, so it is about a quarter of the published 0.59.",
    (0.59, "That is by the published peak: this one is four times as high."),
    *((percent, "In percent: as a fraction of 1, please.") for percent in (15, 17)),
    (0.17, "That counts the attention products, too: here the count is the published one."),
    (0.3, "That would be half of 0.59, by a peak of 156: 312 is four times 77.97."),
    *((mfu, "That peak is the one with sparsity: half of it is dense.") for mfu in (0.07, 0.0743)),
    (2.38, "A higher peak makes the share smaller."), (1.19, "That is the vector unit in bfloat16."))

_MAC = "You counted MACs: each is a multiplication and an addition, 2 FLOPs."


def _conv(b: int, i: int, o: int, h: int, w: int, k: int) -> int:
    return 2 * b * o * (h - k + 1) * (w - k + 1) * i * k**2


def _rule(count: Callable[..., int]) -> Callable[..., int]:
    """As a counter's rule, which is given the shapes of the images and of the weight."""
    return lambda images, weight: count(images[0], images[1], weight[0], images[2], images[3], weight[2])


exercise("conv_flop",
    _rule(_conv), [(_rule(count), sentence) for count, sentence in [
    (lambda *a: _conv(*a) // 2, _MAC),
    (lambda b, i, o, h, w, k: 2 * b * o * h * w * i * k**2,
     "You assumed the output is as large as the input: without padding it loses kernel − 1 rows and columns."),
    (lambda b, i, o, h, w, k: b * o * h * w * i * k**2,
     "The output is smaller than the input where nothing is padded, and a multiply-add is 2 FLOPs."),
    (lambda b, i, o, h, w, k: b * o * (h - k + 1) * (w - k + 1) * (2 * i * k**2 - 1),
     "That is exact, but the convention is 2 per multiply-add."),
    (lambda b, i, o, h, w, k: 2 * b * o * (h + k - 1) * (w + k - 1) * i * k**2,
     "Nothing is padded here: the window stays inside the image."),
    (lambda b, i, o, h, w, k: 2 * b * o * (h - k) * (w - k) * i * k**2,
     "The output has height − kernel + 1 rows: yours has one less."),
    (lambda b, i, o, h, w, k: 2 * b * o * (h // k) * (w // k) * i * k**2,
     "The kernel moves by one, not by its own size."),
    *((lambda b, i, o, h, w, k, n=n: 2 * b * o * ((h, w)[n] - k + 1) ** 2 * i * k**2, "The image need not be square.")
      for n in (0, 1)),
    (lambda b, i, o, h, w, k: 2 * b * i * o * k**2, "That is one place: how many places does the window visit?"),
    (lambda b, i, o, h, w, k: _conv(b, i, o, h, w, k) // k, "The kernel has k × k places: square its size."),
    (lambda b, i, o, h, w, k: _conv(b, i, o, h, w, k) // k**2, "Each window has k × k places: you counted one."),
    *((lambda b, i, o, h, w, k, n=n: n * b * o * (h - k + 1) * (w - k + 1),
       "That is how many outputs there are: each is a sum over c_in · k · k products.") for n in (1, 2)),
    (lambda b, i, o, h, w, k: _conv(1, i, o, h, w, k), "You forgot the batch."),
    (lambda b, i, o, h, w, k: _conv(b, 1, o, h, w, k), "You forgot the input channels: each output sums over all."),
    (lambda b, i, o, h, w, k: _conv(b, i, 1, h, w, k), "You forgot the output channels: each has a kernel of its own."),
    ]],
    variables=lambda images, weight: {"batch": images[0], "c_in": images[1], "c_out": weight[0], "height": images[2],
                                      "width": images[3], "kernel": weight[2]},
    cases=[(torch.Size((1, 3, 64, 48)), torch.Size((16, 3, 5, 5))),
           (torch.Size((8, 64, 28, 20)), torch.Size((128, 64, 4, 4))),
           (torch.Size((2, 4, 9, 7)), torch.Size((6, 4, 3, 3)))],
    draw=lambda r: (torch.Size((r.randint(1, 9), c := r.randint(1, 64), r.randint(9, 40), r.randint(9, 40))),
                    torch.Size((r.randint(1, 64), c, k := r.randint(2, 7), k))))

def _step(count: Callable[[int, int], float], of_a_product: float = 2) -> Callable[..., float]:
    """So many products as `count` says of the layers and of those that are trained."""
    return lambda layers, frozen, batch, width: count(layers, layers - frozen) * of_a_product * batch * width**2


exercise("finetune_flop",
    _step(lambda n, k: n + 2 * k - 1), [
    (_step(lambda n, k: n + 2 * k - 1, 1), _MAC),
    (_step(lambda n, k: n + 2 * k), "The lowest trained layer passes no gradient on: below it nobody needs one."),
    (lambda n, f, b, w: (n + 2 * (n - f) - (f == 0)) * 2 * b * w**2,
     "The input of the lowest trained layer need not be data: nothing below it learns, so nobody needs its gradient."),
    (_step(lambda n, k: n + k + n - 1),
     "Below the lowest trained layer nobody needs a gradient: frozen layers there have no product backward."),
    (_step(lambda n, k: n + k + n), "Only down to the lowest trained layer must a gradient be passed on."),
    (_step(lambda n, k: 3 * n), "That is the rule of 6, with all trained: which products does nobody need?"),
    (_step(lambda n, k: 3 * n - 1), "That is with all layers trained: frozen ones need no gradient of their weights."),
    (_step(lambda n, k: 3 * k - 1), "The frozen layers run forward, too."),
    ],
    cases=[(2, 0, 1024, 256), (12, 9, 32, 64), (6, 5, 8, 128), (5, 0, 4, 10)],
    terms={"the forward pass": lambda n, f, b, w: 2 * n * b * w**2,
           "the gradients of the weights": lambda n, f, b, w: 2 * (n - f) * b * w**2,
           "what is passed on": lambda n, f, b, w: 2 * (n - f - 1) * b * w**2},
    draw=lambda r: (n := r.randint(2, 30), r.randint(0, n - 1), r.randint(1, 99), r.randint(2, 300)))


def _llama(
    square: float = 4, narrow: float = 4, mlp: float = 6, scores: float = 4, head: float = 2, group: bool = True
) -> Callable[..., float]:
    """`square` T·D², `narrow` T·D·(the keys' width), `mlp` T·D·F and `scores` T²·D in a layer; then the head."""
    def count(n: int, d: int, h: int, kv: int, f: int, t: int, v: int) -> float:
        keys = d * kv / h if group else d
        return n * (square * t * d**2 + narrow * t * d * keys + mlp * t * d * f + scores * t**2 * d) + head * t * d * v

    return count


exercise("llama_flop",
    _llama(), [
    (lambda *a: _llama()(*a) / 2, _MAC),
    (_llama(scores=0), "You forgot the attention products: queries times keys and weights times values, 4T²D a layer."),
    (_llama(scores=2), "You have half of the attention products: there are two of 2T²D, with nothing masked."),
    (lambda n, d, h, kv, f, t, v: _llama(scores=4 * kv / h)(n, d, h, kv, f, t, v),
     "Each head of queries meets every key, however many share one: the attention products stay 4T²D."),
    (_llama(scores=12), "12 is forward and backward together: forward alone it is 4."),
    (lambda n, d, h, kv, f, t, v: _llama(scores=0)(n, d, h, kv, f, t, v) + 4 * n * t * d,
     "The attention products take T² · D, not T · D: each token looks at T tokens."),
    (_llama(group=False), "Keys and values are as wide as key_heads heads, not as all heads."),
    (lambda n, d, h, kv, f, t, v: _llama()(n, d, h, 1, f, t, v) if kv > 1 else -1,
     "There are key_heads heads of keys, not one."),
    ],
    cases=[(32, 4096, 32, 8, 14336, 8192, 128_256), (2, 64, 4, 2, 160, 16, 100), (3, 96, 6, 1, 200, 500, 1000)],
    draw=lambda r: (r.randint(2, 99), (h := (kv := r.randint(1, 8)) * r.randint(2, 6)) * 8 * r.randint(2, 9), h, kv,
                    r.randint(50, 9999), r.randint(2, 4096), r.randint(100, 99_999)),
    terms={"queries and output": _llama(narrow=0, mlp=0, scores=0, head=0),
           "keys and values": _llama(square=0, mlp=0, scores=0, head=0),
           "the MLP": _llama(square=0, narrow=0, scores=0, head=0),
           "attention's two products": _llama(square=0, narrow=0, mlp=0, head=0),
           "the head": _llama(square=0, narrow=0, mlp=0, scores=0)},
    equivalent_slips={"narrow = width * key_heads / heads": "heads divide the width"})

exercise("moe_training",
    lambda shared, experts, size, chosen, tokens: 6 * (shared + chosen * size) * tokens, [
    (lambda s, e, z, c, t: 3 * (s + c * z) * t, _MAC),
    (lambda s, e, z, c, t: 2 * (s + c * z) * t, "You forgot the backward pass: 2 is the forward alone."),
    (lambda s, e, z, c, t: 4 * (s + c * z) * t, "4 is the backward pass alone: the forward pass takes 2 more."),
    (lambda s, e, z, c, t: 8 * (s + c * z) * t, "That is with recomputation: nothing is recomputed here."),
    (lambda s, e, z, c, t: 6 * (s + e * z) * t, "You counted all experts: a token meets only the chosen ones."),
    (lambda s, e, z, c, t: 6 * (s + (e - c) * z) * t, "Those are the experts that a token does not meet."),
    (lambda s, e, z, c, t: 6 * (s + c * z / e) * t, "Nothing is divided by `experts`: `size` is one expert's."),
    (lambda s, e, z, c, t: 6 * s + c * z * t, "6 and the tokens belong to both terms: parentheses."),
    ],
    terms={"what all tokens share": lambda s, e, z, c, t: 6 * s * t,
           "the experts": lambda s, e, z, c, t: 6 * c * z * t},
    cases=[(2e9, 8, 5e9, 2, 1e12), (10e9, 64, 1e9, 6, 15e12), (1e9, 16, 5e8, 4, 3e11), (30, 8, 20, 2, 1000)],
    draw=lambda r: (r.randint(1, 99) * 1e9, r.randint(8, 64), r.randint(1, 99) * 1e8, r.randint(2, 7),
                    r.randint(1, 99) * 1e11))

_MFU = 6 * 7e9 * 470_000 / (64 * 756e12)
parts("audit",
    suspect=part("FLOPs", [
        ("peak", "756 TFLOP/s is the dense peak of this card in bfloat16: with it and 6N, what comes out?"),
        ("seconds", "Nothing speaks against the tokens per second: divide, and compare with 0.54.")],
        words=("FLOPs", "seconds", "peak")),
    mfu=part(_MFU, [(answer, sentence) for exact, sentence in (
        (_MFU / 6 * 8, "That is the report's own figure, 8 FLOPs in place of 6: it counts what is computed again."),
        (_MFU / 2, "Half of it: either 3 FLOPs in place of 6, or 1,513 TFLOP/s, which is the sparse peak."),
        (_MFU * 64, "All 64 devices share the work: divide by 64 peaks."),
        (0.54 * 8 / 6, "The wrong way round: the report counts more FLOPs, so its figure is too high."),
        (_MFU / 3, "2 FLOPs per parameter and token are the forward pass alone: training takes 6."),
        (_MFU * 756 / 989.5, "Wrong card: 989.5 TFLOP/s is the H100 SXM5, and these are for PCIe."),
        (_MFU * 2, "12 FLOPs per parameter and token: the 6 are no MACs, they count both already."),
        (0.42, "Near, but not to two digits: begin with the tokens per second."),
        (0.4, "Close: 0.54 is rounded itself, so begin with the tokens per second."),
        (_MFU / 6 * 4, "4 FLOPs per parameter and token are the backward pass alone: training takes 6."),
        (100 * _MFU, "That is in percent: a fraction of 1 is asked for."),
    ) for answer in (exact, round(exact, 2))], tolerance=1e-2,
    quantities={"the 64 cards": 64, "the 6 FLOPs per parameter and token": 6, "the 7 billion": 7e9}))

exercise("low_rank",
    lambda x, w, a, b: x @ w + (x @ a) @ b, [
    (lambda x, w, a, b: x @ (w + a @ b),
     "You formed the large matrix a @ b: go through the few columns of x @ a instead."),
    (lambda x, w, a, b: x @ w + x @ (a @ b),
     "You multiply x by two large matrices: x @ a has few columns, start with that."),
    (lambda x, w, a, b: x @ w - (x @ a) @ b, "The update is added to the weight, not taken from it."),
    (lambda x, w, a, b: x @ w, "You left out the low-rank part."),
    (lambda x, w, a, b: x @ a @ b, "You left out x @ w."),
    (lambda x, w, a, b: x @ w + a @ b, "The low-rank part is multiplied by x, too."),
    (lambda x, w, a, b: x @ w + x @ a @ b / a.shape[1], "No scale was asked for: add the whole update."),
    ],
    cases=[(x := torch.tensor([[3.0, -1, 2]]), w := torch.tensor([[2.0, 1, 0], [0, 3, 1], [1, 0, -2]]),
            a := torch.tensor([[1.0, -2], [4, 1], [0, 2]]), b := torch.tensor([[3.0, 1, 0], [-1, 2, 1]])),
           (300 * x, 400 * w, a, b)],  # too large for half precision
    draw=lambda r: (whole(r, 4, n := r.randint(5, 20)), whole(r, n, m := r.randint(5, 20)),
                    whole(r, n, 2), whole(r, 2, m)),
    cost="flops", unit="FLOP",
    counted_at=[tuple(torch.empty(shape, device="meta") for shape in ((4, 64), (64, 64), (64, 2), (2, 64)))])
