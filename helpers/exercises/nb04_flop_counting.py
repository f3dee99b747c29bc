"""The exercises of notebook 04."""

from collections.abc import Callable

import torch

from helpers.exercises.exercise import function, guess, part, parts, value, whole

# fmt: off

guess("triple_loop", "20 elements, each with 3 multiplications and 2 additions.",
    (120, "One addition too many in each sum: its first product is added to nothing."),
    (60, "You counted the multiplications."),
    (40, "You counted the additions."),
    (80, "A sum of 3 products has 2 additions, not 1."),
    (20, "That is how many elements the result has."),
    (240, "2mnk has the 2 in it already: 2 · 60, less one addition an element."))

guess("silent_ops", "Only x @ x gets a number.",
    (2, "The elementwise ones are not alone: it misses products as well."),
    (3, "Nearly all products are missed, too: those with a vector, and attention's."),
    (4, "One more is missed."),
    (6, "One of them it knows."),
    (0, "Most of them it misses."),
    (1, "That is how many it knows."))

guess("backward_products", "The gradients of w2, of the hidden layer and of w1.",
    (335.5, "That is the rule, twice the forward pass: one of its four products does not run."),
    (167.8, "That is as much as the forward pass, or four products in MACs: three run."),
    (503.3, "That is the rule for the whole step."),
    (369.1, "That is the whole step."),
    (lambda right: 1e6 * right, "In FLOP that is right: the answer is wanted in MFLOP."),
    (335.5e6, "The answer is wanted in MFLOP; and one of the four products of the rule does not run."),
    (134.2, "That is the gradient of w1 alone."),
    (3, "That is how many products run: how many MFLOP do they take?"),
    (402.6, "Twice as much as it should be: 2mnk has multiplications and additions in it."),
    (268.4, "Those are two products of the first layer: x is data and needs no gradient."),
    (lambda right: 1.5 * right, "That has a gradient of x, which is data, and one product of w2 only."),
    (67.1, "That is the second layer alone: the gradient of w1 runs, too."),
    (100.7, "Those are MACs."))

guess("recomputed_step", "Another forward pass: 2 more than without.",
    (12, "Only the forward pass runs again, not the whole step."),
    (10, "The backward pass costs 4; the forward pass, which runs again, costs 2."),
    (6, "Computing again is work."),
    (7, "A forward pass takes 2 FLOPs per parameter per token, not 1."),
    (9, "The forward pass is a third of the step, not half."),
    (16, "The 2 FLOPs of a multiply-add are in it already: 2 + 4, and a forward pass more."),
    (2, "That is only what comes on top."),
    (1024, "Per parameter and token: the number of layers has no part in it."),
    (4, "That is the backward pass alone."))

guess("fused_backward", "It kept no scores, so it computes them again: five products in place of four.",
    *[(percent, "It does not do less arithmetic: it moves fewer bytes.") for percent in range(-100, 0)],
    (0, "One of the products runs again."),
    (20, "One product in five is a quarter more than four."),
    *[(percent, "A third is what a whole forward pass adds to training; here one product runs again.")
      for percent in (30, 33)],
    (50, "That would be both products of the forward pass: the scores alone are computed again."),
    (100, "That would be four products more: one runs again."),
    (lambda right: right / 100, "In percent, please."),
    (1.25, "That is the ratio: by what percentage does it change?"),
    (125, "That is the whole: by what percentage does it change?"))

guess("count_over_rule", "The attention products have no parameters: they add about T / 6D.",
    (3, "To a whole percent, that is right."),
    *[(percent, "In points you are close: T / 6D is 2,048 / 73,728.") for percent in (2, 4)],
    *[(fraction, "The answer is wanted in percent.") for fraction in (0.028, 0.03)],
    (0, "The rule overlooks what has no parameters."),
    (33, "That would be recomputation, and nothing is recomputed."),
    *[(percent, "That is with the attention products halved: here they count in full.") for percent in (1.4, 1.5)],
    *[(percent, "That would be a narrower model, or longer texts.") for percent in (5, 8, 10, 15, 17, 20, 25, 30, 50)],
    (13, "That was GPT-2 small, where T is 1.3 D: here it is 0.17 D."),
    (1, "As a percentage that is too small; if it is the factor, take away the 1."),
    (100, "Neither twice as much nor the whole: a few percent come on top."),
    (200, "Nothing is counted twice: what comes on top is a few percent."),
    (lambda right: -right, "The rule gives less than the count, not more."))

_MAC = "You counted MACs: each is a multiplication and an addition, 2 FLOPs."


def _mlp_step(products: float) -> Callable[..., float]:
    return lambda batch, width, hidden: products * 2 * batch * width * hidden


function("mlp_step",
    lambda batch, width, hidden: 10 * batch * width * hidden, [
    (_mlp_step(2.5), _MAC),
    (_mlp_step(2), "You forgot the backward pass: the step is forward and backward."),
    (_mlp_step(1), "That is one product: how many does the whole step have?"),
    (_mlp_step(3), "That is three products, or six in MACs: list those of the whole step, for both layers."),
    (_mlp_step(6), "You counted a gradient of x: x is data, so the first layer needs none."),
    (_mlp_step(4), "You assumed the backward pass costs as much as the forward: the second layer needs two products."),
    (_mlp_step(12), "Those are twelve products: the 2 is in each of them already, and x needs no gradient."),
    *[(_mlp_step(n), f"Those are {n} products: there are two forward, and three gradients.") for n in (7, 8, 9, 10)],
    (_mlp_step(1.5), "Three products in MACs: the backward pass alone, and half of its FLOPs."),
    (lambda b, w, h: 10 * w * h, "You forgot the batch: that is the step for one example."),
    (lambda b, w, h: 12 * w * h, "You forgot the batch, and x needs no gradient."),
    (lambda b, w, h: 4 * w * h, "You forgot the batch, and the backward pass."),
    (lambda b, w, h: 5 * w * h, "You forgot the batch, and counted MACs."),
    (lambda b, w, h: 10 * b * w * w, "Each weight is width × hidden: one of its sides is hidden."),
    *[(lambda b, w, h, n=n: n * b * (w + h), "A product of b × w and w × h takes 2·b·w·h FLOPs: multiply, do not add.")
      for n in (5, 6, 10)],
    (lambda b, w, h: 6 * b * w * h + 4 * w * h, "In one of the parts the batch is missing."),
    (lambda b, w, h: 10 * b * w * h + 4 * w * h, "The update of the weights is no matrix product."),
    (lambda b, w, h: 10 * b * w * h + b * h, "The nonlinearity is not counted."),
    *[(lambda b, w, h, x=x: 10 * b * w * h - b * (w + x * h) - 2 * (x - 1) * w * h,
       "Count 2 for every multiply-add: subtract no addition.") for x in (1, 2)],
    (lambda b, w, h: 2 * b * w * (3 * h + w), "All the products are of one size, 2·batch·width·hidden."),
    (lambda b, w, h: 6 * b * w * h + 4 * b * w * w, "The matrices are width × hidden: none is width × width."),
    (lambda b, w, h: 10 * b * h * h, "Each weight is width × hidden: one of its sides is width."),
    (lambda b, w, h: 4 * b * w * h - b * (w + h), "That is the forward pass alone: count the backward pass, too."),
    ],
    cases=[(64, 512, 2048), (3, 8, 6), (32, 100, 300)],
    draw=lambda r: (r.randint(1, 99), r.randint(1, 999), r.randint(1, 999)),
    same={"backward = 2 * product + product": "the factor is 1"})


def _conv(b: int, i: int, o: int, h: int, w: int, k: int, *, pad: int = 0, lines: int = 1, flop: int = 2) -> float:
    return flop * b * o * (h - k + 1 + pad) * (w - k + 1 + pad) * i * k ** (1 + lines)


def _rule(count: Callable[..., float]) -> Callable[..., float]:
    """As a counter's rule, which is given the shapes of the images and of the weight."""
    return lambda images, weight: count(images[0], images[1], weight[0], images[2], images[3], weight[2])


_BOTH = "Height and width shrink alike: each loses kernel − 1."
_SQUARE = "The image need not be square."
function("conv_flop",
    _rule(_conv), [(_rule(count), sentence) for count, sentence in [
    (lambda *a: _conv(*a, flop=1), _MAC),
    (lambda *a: _conv(*a, flop=6), "That is a training step: the forward pass alone was asked for."),
    (lambda *a: _conv(*a, flop=4), "Twice as much as it should be: the 2 has the addition in it already."),
    (lambda b, i, o, h, w, k: 2 * b * o * (h - 2) * (w - 2) * i * k**2, "That is right for a kernel of 3 only."),
    (lambda b, i, o, h, w, k: 2 * b * o * h * w * i * k**2,
     "You assumed the output is as large as the input: without padding it loses kernel − 1 rows and columns."),
    *[(lambda *a, pad=pad: _conv(*a, pad=pad), f"The output has height − kernel + 1 rows: yours has {diff}.")
      for pad, diff in ((-1, "one less"), (-2, "two less"), (1, "one more"))],
    (lambda b, i, o, h, w, k: 2 * b * o * (h - k + 1) * w * i * k**2, _BOTH),
    (lambda b, i, o, h, w, k: 2 * b * o * h * (w - k + 1) * i * k**2, _BOTH),
    (lambda b, i, o, h, w, k: 2 * b * o * (h - k + 1) ** 2 * i * k**2, _SQUARE),
    (lambda b, i, o, h, w, k: 2 * b * o * (w - k + 1) ** 2 * i * k**2, _SQUARE),
    (lambda b, i, o, h, w, k: 2 * b * o * (h - 2 * k + 1) * (w - 2 * k + 1) * i * k**2,
     "Height and width lose kernel − 1 each, not 2 · kernel − 1."),
    (lambda b, i, o, h, w, k: 2 * b * o * (h - 2 * (k // 2)) * (w - 2 * (k // 2)) * i * k**2,
     "That is right for an odd kernel only: an even one has no middle."),
    (lambda b, i, o, h, w, k: 2 * b * o * (h + k - 1) * (w + k - 1) * i * k**2,
     "The window stays inside the image: the output is smaller than it, not larger."),
    (lambda b, i, o, h, w, k: _conv(b, 1, o, h, w, k), "You forgot the input channels: each output sums over all."),
    (lambda b, i, o, h, w, k: _conv(b, i, 1, h, w, k), "You forgot the output channels: each has a kernel of its own."),
    (lambda b, i, o, h, w, k: _conv(b, 1, 1, h, w, k), "The channels are missing: c_in and c_out."),
    (lambda b, i, o, h, w, k: 2 * b * o * h * w * k**2, "The input channels are missing, and the output is smaller."),
    (lambda *a: _conv(*a, lines=0), "You treated the kernel as a line: it has kernel × kernel weights per channel."),
    (lambda b, i, o, h, w, k: 2 * _conv(b, i, o, h, w, k, lines=0),
     "The window has kernel × kernel places, not 2 · kernel."),
    (lambda *a: _conv(*a, lines=-1),
     "You forgot the kernel: each output sums kernel × kernel products per input channel."),
    (lambda b, i, o, h, w, k: _conv(1, i, o, h, w, k), "You forgot the batch."),
    (lambda b, i, o, h, w, k: 2 * i * o * k**2, "That is one place of one image: how many does the window visit?"),
    (lambda b, i, o, h, w, k: 2 * b * i * o * k**2, "That is one place: how many places does the window visit?"),
    (lambda b, i, o, h, w, k: 2 * b * o * (h // k) * (w // k) * i * k**2,
     "The kernel moves by one, not by its own size."),
    (lambda b, i, o, h, w, k: 2 * b * o * h * w * i, "The window has kernel × kernel numbers, and moves by one."),
    (lambda b, i, o, h, w, k: b * o * (h - k + 1) * (w - k + 1) * (2 * i * k**2 - 1),
     "That leaves out the first addition of each sum. It is exact, but 2 for every multiply-add is asked for."),
    (lambda b, i, o, h, w, k: b * o * (h - k + 1) * (w - k + 1) * (2 * i * k**2 + 1), "There is no bias here."),
    (lambda b, i, o, h, w, k: b * o * h * w * i * k**2,
     "Those are MACs, and the output is smaller than the input: it loses kernel − 1 rows and columns."),
    (lambda *a: _conv(*a, pad=2), "That is padded by one on each side: here the window stays inside of the image."),
    *[(lambda b, i, o, h, w, k, half=half: 2 * b * o * (half(h - k) + 1) * (half(w - k) + 1) * i * k**2,
       "That moves by two: here it is one step at a time.") for half in (lambda n: n // 2, lambda n: n / 2)],
    (lambda b, i, o, h, w, k: 2 * b * o * (h - k // 2) * (w - k // 2) * i * k**2,
     "That loses the rows of one side: on both sides together it is kernel − 1."),
    (lambda b, i, o, h, w, k: 2 * b * o * (h - k + 1) * i * k**2, "The width is missing: the window moves both ways."),
    (lambda b, i, o, h, w, k: _conv(b, i + o, 1, h, w, k), "Each output sums over c_in: multiply c_in by c_out."),
    (lambda b, i, o, h, w, k: _conv(b, i * i, o, h, w, k), "The input channels count once: c_in."),
    ]],
    cases=[((1, 3, 64, 48), (16, 3, 5, 5)), ((8, 64, 28, 20), (128, 64, 4, 4)), ((2, 4, 9, 7), (6, 4, 3, 3))],
    draw=lambda r: ((r.randint(1, 9), c := r.randint(1, 64), r.randint(9, 40), r.randint(9, 40)),
                    (r.randint(1, 64), c, k := r.randint(2, 7), k)))

_KINDS = ("MAC", "FLOP")
parts("mac_or_flop",
    a=part("MAC", [("FLOP", "Multiply it out: 3 · 3 · 64 · 64 · 56 · 56 are multiplications alone.")], words=_KINDS),
    b=part("FLOP", [("MAC", "The product 1024³ is 1.07 billion: this number has the additions in it.")], words=_KINDS),
    c=part("MAC", [("FLOP", "Two 4 × 4 matrices take 64 multiplications, and as many additions.")], words=_KINDS),
    d=part("FLOP", [("MAC", "Each of the 175 billion parameters is in one multiply-add per token."),
                    ("FLOP/s", "FLOP/s is a rate, and this is a count.")], words=_KINDS))


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
    (_gpt(scores=0), "You forgot the attention products: queries times keys and weights times values, 4T²D a layer."),
    (_gpt(scores=2),
     "You have half of the attention products: there are two of 2T²D, and a causal mask is not discounted."),
    (_gpt(scores=8), "You counted the attention products twice: there are two of 2T²D."),
    *[(_gpt(scores=s), "The attention products are two of 2T²D each, forward.") for s in (1, 3)],
    (_gpt(scores=0, head=4), "You forgot the attention products, and the embedding only looks rows up."),
    (_gpt(28, 0), "The attention products take T² · D, not T · D²: each token looks at T tokens."),
    (lambda n, d, t, v: _gpt(scores=0)(n, d, t, v) + 12 * n * t * d, "12LTD is for one token, and for training."),
    (_gpt(head=6), "The head, too, runs forward only: 2·T·D·V."),
    (lambda n, d, t, v: _gpt(scores=0)(n, d, t, v) + 4 * t**2 * d, "Each layer has attention products of its own."),
    *[(lambda n, d, t, v, s=s: _gpt(scores=0)(n, d, t, v) + s * n * t**2,
       "Each score is a sum over the width: the two products take 2T²D each.") for s in (2, 4)],
    (_gpt(24, 0, 0), "Two things are missing: the attention products, and the head."),
    (_gpt(12, 0, 0), "Those are MACs, and the attention products and the head are missing."),
    (_gpt(12, 2, 0), "The head is missing, and you counted MACs."),
    (_gpt(head=0, all_layers=False), "That is a single layer, without the head."),
    (_gpt(head=0), "You forgot the head: the last product, D × V for each token."),
    (_gpt(head=4), "You counted the embedding, too: looking a row up multiplies nothing."),
    (_gpt(head=1), "You counted the head in MACs: it is 2·T·D·V."),
    *[(lambda n, d, t, v, s=s: _gpt(head=0)(n, d, t, v) + s * d * v, "The head meets each token.") for s in (1, 2)],
    (lambda n, d, t, v: _gpt(8)(n, d, t, v) + 16 * t * d * d, "The MLP, too, is in every layer."),
    (lambda n, d, t, v: _gpt(head=0)(n, d, t, v) + 2 * t * v, "The head is a product with a D × V matrix: 2·T·D·V."),
    (_gpt(0, 0), "That is the head alone: the layers are missing."),
    (_gpt(12), "You have half of each layer's products with weights: 24TD², each multiply-add being 2 FLOPs."),
    (_gpt(16), "You left out 8TD²: the attention's four products, or one of the MLP's two."),
    (_gpt(8), "You forgot the MLP: two products of D × 4D for each token."),
    (_gpt(12, 2), "The layers are in MACs and the head in FLOPs: 2 for every multiply-add."),
    (lambda n, d, t, v: _gpt(head=0)(n, d, t, v) + 2 * d * v * n, "The head comes once, but for each token: 2·T·D·V."),
    (_gpt(14), "Four products of D × D and two of D × 4D are 24TD²: count them once more."),
    (_gpt(22), "You forgot the output after the attention, or one of the others: D × D for each token."),
    (_gpt(18), "You left out three of the D × D: queries, keys, values and output are four products."),
    (_gpt(20), "You left out two of the D × D: queries, keys, values and output are four products."),
    (_gpt(32), "That MLP has three matrices of D × 4D: a GPT's has two."),
    (_gpt(factor=3), "You counted the forward pass three times: forward alone was asked for."),
    (_gpt(scores=0, factor=3), "That is the rule for training: forward alone was asked for, attention in full."),
    (_gpt(scores=12), "12 is the factor of T²D in training: forward it is 4."),
    (_gpt(26), "That is Llama's block: a GPT's has 24TD²."),
    (lambda n, d, t, v: n * (24 * t * d**2 + 4 * t * d) + 2 * t * d * v, "You left a T out of 4T²D."),
    (lambda n, d, t, v: n * (24 * t**2 * d + 4 * t * d**2) + 2 * t * d * v, "T and D are swapped: 24TD² + 4T²D."),
    (lambda n, d, t, v: n * (24 * t * d + 4 * t**2 * d) + 2 * t * d * v, "You left a D out of the weights: 24TD²."),
    (lambda n, d, t, v: n * (24 * t * d**2 + 2 * t * (t + 1) * d) + 2 * t * d * v,
     "That leaves out what the mask hides: here both products count in full."),
    (_gpt(all_layers=False), "That is a single layer: multiply by the number of layers."),
    (lambda n, d, t, v: n * (_gpt()(1, d, t, v)), "The head comes once, after the last layer."),
    (lambda n, d, t, v: _gpt()(n, d, t, v) / t, "That is for one token: there are `tokens` of them."),
    ],
    cases=[(12, 768, 1024, 50257), (24, 1024, 512, 1000), (2, 64, 4096, 100)],
    draw=lambda r: (r.randint(2, 99), r.randint(2, 99) * 64, r.randint(2, 4096), r.randint(100, 99_999)))


def _moe(flop: float = 6) -> Callable[..., float]:
    return lambda shared, experts, size, chosen, tokens: flop * (shared + chosen * size) * tokens


_EXPERTS = "The share of the experts is missing or far too small: chosen · size for each token."
function("moe_training",
    _moe(), [
    (_moe(3), _MAC),
    (_moe(1), "The 6 is missing: 2 FLOPs forward and 4 backward per parameter per token."),
    (_moe(2), "You forgot the backward pass: 2 is the forward alone."),
    (_moe(4), "Forward costs 2 and backward 4 per parameter per token: a step is both."),
    (_moe(8), "That is with recomputation: nothing is recomputed here."),
    (_moe(12), "Twice as much as it should be: the 6 has multiplications and additions in it."),
    (lambda s, e, z, c, t: 6 * (s + e * z) * t, "You counted all experts: a token meets only the chosen ones."),
    (lambda s, e, z, c, t: 6 * (s + (e - c) * z) * t, "Those are the experts that were not chosen."),
    (lambda s, e, z, c, t: 6 * (s + e * c * z) * t,
     "A token meets `chosen` experts: their number in all has no part in it."),
    (lambda s, e, z, c, t: 6 * (s + c * z) * t * c, "`chosen` belongs to `size` alone, and counts once."),
    (lambda s, e, z, c, t: 6 * (s + e * z) * t * c / e, "Every token meets all of `shared`: only experts are chosen."),
    (lambda s, e, z, c, t: 6 * (s + c) * z * t, "`size` is that of an expert: it does not belong to `shared`."),
    (lambda s, e, z, c, t: 6 * (s + e * z / c) * t, "A token meets `chosen` experts: multiply `size` by it."),
    (lambda s, e, z, c, t: 6 * e * z * t, "You counted all experts and forgot the shared parameters."),
    (lambda s, e, z, c, t: 6 * (s + z) * t, "That is one expert: a token meets as many as are chosen."),
    (lambda s, e, z, c, t: 6 * (s + c) * t, _EXPERTS),
    (lambda s, e, z, c, t: 6 * (s + c * z / e) * t, "Do not divide by the experts: `size` is that of one."),
    (lambda s, e, z, c, t: 6 * s * t, _EXPERTS),
    (lambda s, e, z, c, t: 6 * c * z * t,
     "The shared parameters are missing, or not multiplied by the tokens: every token meets them."),
    (lambda s, e, z, c, t: 6 * (s * c + z) * t, "`chosen` says how many experts: it belongs to `size`."),
    (lambda s, e, z, c, t: 6 * (s + c * z) * t / e, "Do not divide by the experts: `size` is that of one."),
    (lambda s, e, z, c, t: 6 * (s + e * z), "That is for one token, and it meets the chosen experts only."),
    (lambda s, e, z, c, t: 8 * (s + e * z) * t, "Nothing is recomputed, and a token meets the chosen experts only."),
    (lambda s, e, z, c, t: 6 * (s + z) * c * t, "The shared parameters are met once, however many experts are chosen."),
    (lambda s, e, z, c, t: 2 * (s + c * z) * t + 4 * (s + e * z) * t,
     "In the backward pass, too, an expert that was not chosen has nothing to do."),
    (lambda s, e, z, c, t: 6 * t * s + c * z, "The 6 and the tokens belong to both terms: parentheses."),
    (lambda s, e, z, c, t: 6 * s + c * z * t, "The 6 and the tokens belong to both terms: parentheses."),
    (lambda s, e, z, c, t: 6 * (s + c * z), "That is for one token."),
    (lambda s, e, z, c, t: 6 * s + 6 * c * z * t, "The shared parameters, too, are multiplied by the tokens."),
    (lambda s, e, z, c, t: 2 * s * t + 6 * c * z * t, "The shared parameters are trained as well: 6 for them, too."),
    (lambda s, e, z, c, t: 6 * s * t + 2 * c * z * t, "The experts are trained as well: the 6 holds for them, too."),
    (lambda s, e, z, c, t: 6 * s * t + c * z * t, "The 6 belongs to both terms: parentheses."),
    (lambda s, e, z, c, t: s * t + 6 * c * z * t, "The 6 belongs to both terms: parentheses."),
    (lambda s, e, z, c, t: 2 * (s + e * z) * t + 4 * (s + c * z) * t,
     "In the forward pass, too, an expert that was not chosen has nothing to do."),
    (lambda s, e, z, c, t: 2 * (s + e * z) * t, "That is the forward pass alone, through all experts."),
    ],
    cases=[(2e9, 8, 5e9, 2, 1e12), (10e9, 64, 1e9, 6, 15e12), (1e9, 16, 5e8, 4, 3e11), (40, 8, 20, 2, 1000)],
    draw=lambda r: (r.randint(1, 99) * 1e9, r.randint(8, 64), r.randint(1, 99) * 1e8, r.randint(2, 7),
                    r.randint(1, 99) * 1e11))


def _mfu(peak: float = 756e12, flop: float = 6, devices: int = 64) -> float:
    return flop * 7e9 * 480_000 / (devices * peak)


parts("audit",
    suspect=part("FLOPs", [
        ("peak", "756 TFLOP/s is the dense peak of this card in bfloat16: with it and 6N, what comes out?"),
        ("seconds", "Nothing speaks against the tokens per second: divide, and compare with 0.56.")],
        words=("FLOPs", "seconds", "peak")),
    mfu=part(_mfu(), [
        (_mfu(flop=8), "That is the report's own figure, 8 FLOPs in place of 6: it counts what is computed again."),
        (_mfu(flop=3), "Half of it: either 3 FLOPs in place of 6, or 1,513 TFLOP/s, which is the sparse peak."),
        (_mfu(1513e12, 3), "A quarter of it: look for two factors of 2, such as MACs and sparsity."),
        (_mfu(flop=12), "Twice as much: either 12 FLOPs in place of 6, or half of a peak that is dense already."),
        (_mfu(flop=2), "You forgot the backward pass: training costs 6 FLOPs per parameter per token."),
        (_mfu(flop=4), "That is the backward pass alone: training costs 6 FLOPs per parameter per token."),
        (_mfu(flop=18), "The 6 has forward and backward in it already: no factor of 3."),
        (_mfu(flop=1), "The 6 is missing: FLOPs per parameter per token."),
        (_mfu(989.5e12), "Wrong card: 989.5 TFLOP/s is the H100 SXM5, and these are for PCIe."),
        (_mfu(989.5e12, 8), "Wrong card, the H100 SXM5; and MFU does not count what is computed again."),
        (_mfu(835.5e12), "Wrong card: 835.5 TFLOP/s is the H100 NVL, and these are for PCIe."),
        (_mfu(1979e12), "Wrong card, and sparse: 1,979 TFLOP/s is the H100 SXM5 with half of the matrix zero."),
        (_mfu(312e12), "Wrong card: 312 TFLOP/s is an A100."),
        *[(_mfu(peak), "Wrong unit: that is the vector unit in float32; bfloat16 matmuls run on the matrix units.")
          for peak in (51.2e12, 67e12)],
        (_mfu(flop=8, devices=1), "You compared with one device, and counted what is computed again."),
        (_mfu(devices=1), "You compared with one device: the tokens per second are those of all together."),
        (_mfu(devices=1) * 64, "The peaks of all devices add up: divide by their number, do not multiply."),
        (0.56 / 3 * 4, "The recomputed part comes off, and not on top."),
        (_mfu() * 6 / 8, "The recomputed part comes off twice: from 0.56 it comes off once."),
        (_mfu(devices=64**2), "You divided by the 64 cards twice."),
        (0.41, "Cut off, or rounded on the way: round once, at the end."),
        (0.4, "Rounded too far: give two digits."),
        (100 * _mfu(), "That is in percent: a fraction of 1 is asked for."),
        (6 * 7e9 * 480_000, "Those are the FLOP/s that the model needs: divide by what all devices could do."),
        (6 * 7e9 * 480_000 / 64, "Those are the FLOP/s of one device: divide by its peak."),
    ], tolerance=1e-2))

_DAY = 8 * 989.5e12 * 86400
_WEEKS = 21 * _DAY
value("three_weeks", _WEEKS, [
    *[(rounded, "Rounded too far: give three digits.") for rounded in (1.4e22, 1.5e22)],
    (7 * _DAY, "That is a third: one week, or eight hours a day."),
    (3 * _DAY, "That is three days."),
    (6 * _DAY, "That is six days, or three at the sparse rate."),
    (_WEEKS / 10, "Ten times too small: check the exponent."),
    (_WEEKS / 1800, "A peak is per second: those are hours; and 1,979 TFLOP/s is the sparse rate."),
    (15 * _DAY, "The cards work at weekends, too."),
    (20 * _DAY, "Three weeks have 21 days."),
    *[(n * _WEEKS, "That has the days of a week, the hours or the minutes twice.") for n in (7, 24, 60)],
    *[(days * _DAY, "Either these are too many days, or too few at the sparse rate.") for days in (28, 30)],
    (_DAY, "That is one day."),
    (2 * _WEEKS, "Twice as much: eight cards, and 1,979 TFLOP/s is the sparse rate, twice the dense one."),
    (4 * _WEEKS, "Four times as much: look for two factors of 2, such as sparsity, 8-bit numbers or 16 cards."),
    (_WEEKS / 2, "Half of it: 989.5 TFLOP/s is dense already, and in FLOPs."),
    (14 * _DAY, "That is two weeks, or one week at the sparse rate."),
    *[(_WEEKS / 989.5 * peak, f"Wrong card: {peak} TFLOP/s is {card}.")
      for peak, card in ((835.5, "the H100 NVL"), (756, "the H100 for PCIe"), (312, "an A100"))],
    *[(part * _WEEKS, "The full dense rate is asked for: no MFU, and half of 1,979 TFLOP/s.") for part in (0.4, 0.8)],
    (_WEEKS / 989.5 * 67, "Wrong unit: 67 TFLOP/s is the vector unit in float32."),
    (_WEEKS / 8, "That is one device: there are eight."),
    (3 * _WEEKS, "The three weeks count twice: 21 days are all of them."),
    (8 * 1000e12 * 21 * 86400, "A rounded peak: half of 1,979 TFLOP/s is asked for."),
    (_WEEKS / 4, "That is a quarter: one device at the sparse rate, perhaps; there are eight, and they are dense."),
    (_WEEKS / 86400, "A peak is per second, and a day has 86 400 of them."),
    (_WEEKS / 24, "You counted one hour a day."),
    (_WEEKS / 3600, "A peak is per second: those are hours."),
    (_WEEKS / 60, "A peak is per second: those are minutes."),
    (8 * 989.5e12, "That is one second of all eight."),
    (8 * 1979e12, "That is one second of all eight, at the sparse rate."),
    (3 * 8 * 989.5e12, "A peak is per second: how many seconds are there in a week?"),
    (_WEEKS / 1e12, "In FLOP, please: those are TFLOP."),
    (2 * _WEEKS / 1e12, "In FLOP, please: those are TFLOP, and at the sparse rate."),
    *[(factor * _WEEKS, "A TFLOP is 1e12 FLOP.") for factor in (1e-3, 1e3)],
], unit="FLOP", tolerance=5e-3)

_LARGE = "You formed the large matrix a @ b: go through the few columns of x @ a instead."
function("low_rank",
    lambda x, w, a, b: x @ w + (x @ a) @ b, [
    (lambda x, w, a, b: x @ (w + a @ b), _LARGE),
    *[(one, "You multiply x by two large matrices: x @ a has few columns, start with that.")
      for one in (lambda x, w, a, b: x @ w + x @ (a @ b), lambda x, w, a, b: x @ w + x @ (a @ b) * 1.0)],
    (lambda x, w, a, b: x @ w + (x @ a) @ b + 0 * x.sum(),
     "You add something that the result does not need: `sum`, for example, begins with a 0."),
    (lambda x, w, a, b: x @ w, "You left out the low-rank part."),
    (lambda x, w, a, b: x @ a @ b, "You left out x @ w."),
    (lambda x, w, a, b: w + a @ b, "You left x out: the whole sum is multiplied by it."),
    (lambda x, w, a, b: x + x @ a @ b, "You left out w: it is x @ w, not x."),
    (lambda x, w, a, b: x @ w + a @ b, "The low-rank part is multiplied by x, too."),
    (lambda x, w, a, b: w + x @ a @ b, "You left x out of x @ w."),
    (lambda x, w, a, b: (x @ w) * (x @ a @ b), "The low-rank part is added, not multiplied."),
    (lambda x, w, a, b: torch.cat([x @ w, x @ a @ b], 1), "Add the two: they have the same shape."),
    (lambda x, w, a, b: torch.stack([row @ w + row @ (a @ b) for row in x]), "For each row a @ b is formed anew."),
    (lambda x, w, a, b: x @ w + x * (a @ b), "Multiply as matrices, by @, not element by element."),
    (lambda x, w, a, b: x @ w + x @ b.T @ a.T, "Take a and b as they are: x @ a first, then @ b."),
    (lambda x, w, a, b: x @ w + x @ a @ b / a.shape[1], "No scale was asked for: add the whole update."),
    (lambda x, w, a, b: (x @ w, x @ a @ b), "Return one tensor: add the two."),
    (lambda x, w, a, b: x @ w.T + (x @ a) @ b, "Take w as it is: F.linear wants a weight that is transposed."),
    (lambda x, w, a, b: x @ w @ a @ b, "The low-rank part is added to w, not applied after it."),
    (lambda x, w, a, b: x @ w - x @ a @ b, "The low-rank part is added."),
    (lambda x, w, a, b: x @ w + 2 * (x @ a @ b), "The low-rank part comes once."),
    (lambda x, w, a, b: x @ w + x @ a @ (b @ w), "The low-rank part is not multiplied by w."),
    *[(lambda x, w, a, b, low=low, back=back: ((x.to(low) @ w.to(low)) + x.to(low) @ a.to(low) @ b.to(low)).to(back),
       "In 16 bits it is no longer the same tensor: stay with float32.")
      for low, back in ((torch.bfloat16, torch.float32), (torch.bfloat16, torch.bfloat16), (torch.half, torch.half))],
    ],
    cases=[(x := torch.tensor([[3.0, -1, 2]]), w := torch.tensor([[2.0, 1, 0], [0, 3, 1], [1, 0, -2]]),
            a := torch.tensor([[1.0, -2], [4, 1], [0, 2]]), b := torch.tensor([[3.0, 1, 0], [-1, 2, 1]])),
           (300 * x, 400 * w, a, b)],  # too large for half precision
    draw=lambda r: (whole(r, 4, n := r.randint(5, 20)), whole(r, n, m := r.randint(5, 20)),
                    whole(r, n, 2), whole(r, 2, m)),
    cost="flops", unit="FLOP",
    at=[tuple(torch.empty(shape, device="meta") for shape in ((4, 64), (64, 64), (64, 2), (2, 64)))])
