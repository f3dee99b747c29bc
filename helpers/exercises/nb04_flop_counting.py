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

guess("longer_step", "0.82: 0.393 s over 0.478 s: 24 texts took less time than 16.",
    (1.5, "So it would be if time grew as the work does. What do the tokens per second say?"),
    (1.83, "That is how much faster the tokens went by: of these there are 1.5 times as many."),
    (0.55, "That is the time of one token: there are 1.5 times as many."),
    (1.22, "The other way round: the step on 24 over the step on 16."),
    (1, "Nearly, if each step had the same time: divide the tokens of a step by the rate."))

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

guess("attention_products", "4T²D of 24TD² + 4T²D: T / (6D + T), with D = 768.",
    (22.2, "That is their share of the other products: take all of them together."),
    (9.1, "There are two of 2T²D: scores, and weighted sum."),
    (45, "Asked are the two products without parameters, not q k v and output."),
    (50, "That is where T = 6D: here T is less than 2D."),
    (40, "The MLP counts, too: 16TD²."),
    (100 / 7, "That holds for T = D: here T is larger."),
    (33, "Is that 8TD² of the 24TD²? Asked are scores and weighted sum, of all products together."))

guess("thop_misses",
    "13 %: the head has no attention products, so it is less than in a block. Put back, they make 1.15 times as much.",
    (18, "That is their share of a block: the head at the end comes on top."),
    (15, "So much putting them back adds: asked is their share of the whole."),
    (1, "Norms, softmax and GELU would be less than that: what thop misses is two large products."),
    (50, "That would take T = 6D: here T is less than 2D."))

guess("control", "0.371: (6N + 12LTD) · 102,400 tokens / 0.755 s, over 312 TFLOP/s: 2.2 times the other's 0.17, "
    "if its seconds hold.",
    (0.17, "That is the published run's. This one takes 0.755 s for 100 texts, not 0.393 s for 24."),
    ((0.32, 0.33), "Add the attention products: 6N + 12LTD."),
    (1.48, "That is by 77.97 TFLOP/s: the matrix units reach four times as much."),
    (0.124, "A step goes forward and backward: three times the forward pass."),
    (0.0037, "Did you count one text? A step takes 100."))

guess("fused_backward", "It kept no attention weights, so it makes the scores again: five products in place of four.",
    ((-100, -1), "Over all T × T it does more arithmetic: what it saves is bytes."),
    (0, "One of the products runs again."),
    (20, "One product in five is a quarter more than four."),
    (33, "A third is what a whole forward pass adds to training; here one product runs again."))

guess("count_over_rule", "The attention products have no parameters: they add about T / (6D) of the other products.",
    (0, "The rule overlooks what has no parameters."),
    (2.77, "So much do the attention products add: norms, softmax and the like add a little more."),
    (1.4, "That is with the attention products halved: here they count in full."),
    ((12, 19), "That is about the share in GPT-2 small, where T is 1.3 D: here it is 0.17 D."),
    (16.7, "That is T / D: the other products have 24 D, attention 4 T."))

guess("block_rate",
    "Its products may run below the best rate, and norms, softmax and GELU take time for hardly a FLOP.",
    ((0.01, 1), "In percent, please."),
    ((1, 30), "Nearly all FLOPs of the block are in large products: what should slow these down so much?"),
    ((97, 101), "Then nothing but products would take time, all of them at the best rate."),
    ((101, math.inf), "Nothing gets beyond the best rate, if that was measured in a quiet moment."))
guess("right_mfu",
    "312 TFLOP/s are four times 77.97, which leaves 0.149. The attention products make it 1.15 times that.",
    (0.149, "That is by the right peak. The attention products come on top: 1.15 times as much."),
    (0.129, "The attention products were missing in the count: put back, they make it larger."),
    (0.59, "That is the published one. The right peak is four times as high."),
    (0.686, "That has the attention products, by the published peak: the right one is four times as high."),
    ((10, 100), "In percent: as a fraction of 1, please."),
    ((0.28, 0.36), "Is that half of 0.59, by a peak of 156? 312 is four times 77.97."),
    ((0.072, 0.088), "That peak is the one with sparsity: half of it is dense."),
    ((2.3, 2.8), "A higher peak makes the share smaller."), ((1.1, 1.4), "That is the vector unit in bfloat16."))

_MAC = "Those are MACs, as many papers count them: each is a multiplication and an addition, 2 FLOPs."


def _outputs(size: int, kernel: int) -> int:
    """At how many places a window fits into a row."""
    return size - kernel + 1


def _conv(
    images: torch.Size, weight: torch.Size, *,
    places: Callable[[int, int], int] = _outputs, less: int = 0, flops: int = 2,
) -> int:
    """`places` says how many outputs a row has, `less` how many FLOPs are missing in each."""
    (batch, c_in, height, width), (c_out, _, kernel, _) = images, weight
    each = flops * c_in * kernel**2 - less
    return batch * c_out * places(height, kernel) * places(width, kernel) * each


exercise("conv_flop",
    lambda images, weight: _conv(images, weight), [
    (lambda *shapes: _conv(*shapes, flops=1), _MAC),
    (lambda *shapes: _conv(*shapes, places=lambda size, kernel: size),
     "You counted a place for each pixel, as with padding: at the edges that window would reach beyond the image."),
    (lambda *shapes: _conv(*shapes, places=lambda size, kernel: size + kernel - 1),
     "You counted every place that touches the image: here the whole window has to fit inside."),
    (lambda *shapes: _conv(*shapes, places=lambda size, kernel: size - kernel),
     "A window as large as the image fits at one place: by your count at none."),
    (lambda *shapes: _conv(*shapes, places=lambda size, kernel: size // kernel),
     "Your window moves by its own size: it moves one step at a time, so its places overlap."),
    (lambda *shapes: _conv(*shapes, places=lambda size, kernel: 1) // shapes[0][0],
     "That is what one place of the window takes: to how many places does it slide, and over how many images?"),
    (lambda images, weight: images.shape,
     "`images` is a shape already, and `weight` is one, too: numbers to be unpacked, with no tensor behind them."),
    (lambda *shapes: _conv(*shapes, less=1),
     "That is what is really computed: the first product is added to nothing. The convention counts it as added."),
    ],
    variables=lambda images, weight: {
        "batch": images[0], "c_in": images[1], "c_out": weight[0], "height": images[2], "width": images[3],
        "kernel": weight[2], "output rows": _outputs(images[2], weight[2]),
        "output columns": _outputs(images[3], weight[3])},
    cases=[(torch.Size((1, 3, 64, 48)), torch.Size((16, 3, 5, 5))),
           (torch.Size((8, 64, 28, 20)), torch.Size((128, 64, 4, 4))),
           (torch.Size((2, 4, 9, 7)), torch.Size((6, 4, 3, 3)))],
    draw=lambda r: (torch.Size((r.randint(1, 9), c := r.randint(1, 64), r.randint(9, 40), r.randint(9, 40))),
                    torch.Size((r.randint(1, 64), c, k := r.randint(2, 7), k))))


def _step(products: Callable[[int, int], float], flops: float = 2) -> Callable[..., float]:
    """So many products as `products` says of the layers and of those that are trained."""
    return lambda layers, frozen, batch, width: products(layers, layers - frozen) * flops * batch * width**2


exercise("finetune_flop",
    lambda layers, frozen, batch, width: (3 * layers - 2 * frozen - 1) * 2 * batch * width**2, [
    (_step(lambda layers, trained: layers + 2 * trained - 1, 1), _MAC),
    (_step(lambda layers, trained: layers + 2 * trained),
     "You gave each trained layer both gradients: who waits for that of the lowest one's input?"),
    (lambda layers, frozen, batch, width: (layers + 2 * (layers - frozen) - (frozen == 0)) * 2 * batch * width**2,
     "You left out the gradient of the data: with frozen layers below, who waits for that of the lowest trained one?"),
    (_step(lambda layers, trained: layers + trained + layers - 1),
     "You passed the gradient on down to the first layer: below the lowest trained one nobody needs it."),
    (_step(lambda layers, trained: 3 * layers),
     "That is the rule of 6, three products a layer: which of them runs for nobody?"),
    (_step(lambda layers, trained: 3 * layers - 1),
     "That is with all layers trained: a frozen one needs no gradient of its weights."),
    (_step(lambda layers, trained: 3 * trained),
     "You took the rule of 6 for the trained layers alone: the frozen ones run forward, too, and the lowest trained "
     "one passes nothing on."),
    (_step(lambda layers, trained: 3 * trained - 1),
     "You left the frozen layers out: their weights stay, but the data still pass through them."),
    ],
    cases=[(2, 0, 1024, 256), (12, 9, 32, 64), (6, 5, 8, 128), (5, 2, 4, 10)],
    terms={"the forward pass": _step(lambda layers, trained: layers),
           "the gradients of the weights": _step(lambda layers, trained: trained),
           "what is passed on": _step(lambda layers, trained: trained - 1)},
    draw=lambda r: (n := r.randint(2, 30), r.randint(0, n - 1), r.randint(1, 99), r.randint(2, 300)))


def _llama(
    square: float = 4, narrow: float = 4, mlp: float = 6, scores: float = 4, head: float = 2
) -> Callable[..., float]:
    """`square` T·D², `narrow` T·D·(the keys' width), `mlp` T·D·F and `scores` T²·D in a layer; then the head."""
    def count(
        layers: int, width: int, heads: int, key_heads: int, hidden: int, tokens: int, vocabulary: int
    ) -> float:
        keys = width * key_heads / heads
        weights = square * width**2 + narrow * width * keys + mlp * width * hidden
        return layers * (weights * tokens + scores * tokens**2 * width) + head * tokens * width * vocabulary

    return count


exercise("llama_flop",
    _llama(), [
    (_llama(2, 2, 3, 2, 1), _MAC),
    (_llama(scores=2),
     "Half of attention's two products: was one of them left out, or what a mask hides? Here they count in full."),
    (lambda layers, width, heads, key_heads, *rest: _llama(scores=4 * key_heads / heads)(
        layers, width, heads, key_heads, *rest),
     "Shared keys save their products with the weights: but each head of queries still meets every key."),
    (_llama(scores=12), "12 · T² · D is attention in training, forward and backward together."),
    (_llama(square=8, narrow=0), "Keys and values are as wide as their own few heads, not as all heads of queries."),
    (lambda layers, width, heads, key_heads, *rest: _llama()(layers, width, heads, 1, *rest) if key_heads > 1 else -1,
     "You took a single head of keys and values: there are `key_heads` of them."),
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
    (lambda shared, experts, size, chosen, tokens: 3 * (shared + chosen * size) * tokens, _MAC),
    (lambda shared, experts, size, chosen, tokens: 2 * (shared + chosen * size) * tokens,
     "2 FLOPs are the forward pass alone: training goes backward, too."),
    (lambda shared, experts, size, chosen, tokens: 8 * (shared + chosen * size) * tokens,
     "8 is with a second forward pass, where all is recomputed: here nothing is."),
    (lambda shared, experts, size, chosen, tokens: 6 * (shared + experts * size) * tokens,
     "You counted all experts, as one does for memory: which of them does a token meet?"),
    (lambda shared, experts, size, chosen, tokens: 6 * (shared + chosen * size / experts) * tokens,
     "You shared the experts' parameters out: `size` is already what one expert has."),
    (lambda shared, experts, size, chosen, tokens: 6 * shared + chosen * size * tokens,
     "Factors that belong to both terms stand at one of them: a pair of parentheses is missing."),
    ],
    terms={"what all tokens share": lambda shared, experts, size, chosen, tokens: 6 * shared * tokens,
           "the experts": lambda shared, experts, size, chosen, tokens: 6 * chosen * size * tokens},
    cases=[(2e9, 8, 5e9, 2, 1e12), (10e9, 64, 1e9, 6, 15e12), (1e9, 16, 5e8, 4, 3e11), (30, 8, 20, 2, 1000)],
    draw=lambda r: (r.randint(1, 99) * 1e9, r.randint(8, 64), r.randint(1, 99) * 1e8, r.randint(2, 7),
                    r.randint(1, 99) * 1e11))

_MFU = 6 * 7e9 * 470_000 / (64 * 756e12)
parts("audit",
    suspect=part("FLOPs", [
        ("peak", "756 TFLOP/s is the dense peak of this card in bfloat16: with it and 6N, what comes out?"),
        ("seconds", "Nothing speaks against the tokens per second: divide, and compare with 0.54.")],
        words=("FLOPs", "seconds", "peak")),
    mfu=part(_MFU, [
        (_MFU / 6 * 8, "That is the report's own figure: does the model itself need what is computed a second time?"),
        (_MFU / 2, "Half of it: are those 3 FLOPs in place of 6, or the peak with sparsity, twice the dense one?"),
        (0.54 * 8 / 6, "The right factor the wrong way round: the report counts more FLOPs than the model needs."),
        (_MFU / 3, "2 FLOPs per parameter and token are the forward pass alone: the step goes backward, too."),
        (_MFU / 6 * 4, "4 FLOPs per parameter and token are the backward pass alone: the step goes forward, too."),
        (_MFU * 756 / 989.5, "989.5 TFLOP/s is the H100 SXM5, the one that is quoted most: which card is it here?"),
    ], tolerance=1e-2,
    quantities={"the 64 cards": 64, "the 6 FLOPs": 6, "the 7 billion": 7e9, "the 470 000": 470e3, "the peak": 756e12}))

def _adds_nothing(low_rank: Callable[..., torch.Tensor]) -> bool:
    """Whether x @ w remains where a is 0; of a result of another shape that says nothing."""
    x, w = torch.arange(6.0).view(2, 3), torch.arange(9.0).view(3, 3)
    found = low_rank(x, w, torch.zeros(3, 2), torch.ones(2, 3))
    return found.shape != (2, 3) or torch.equal(found, x @ w)


exercise("low_rank",
    lambda x, w, a, b: x @ w + (x @ a) @ b, [
    (lambda x, w, a, b: x @ (w + a @ b),
     "a @ b is as large as w, though it comes from two narrow matrices: does it have to be formed at all?"),
    (lambda x, w, a, b: x @ w + x @ (a @ b),
     "a @ b is as large as w, and x meets both: is there a product that stays narrow?"),
    (lambda x, w, a, b: x @ w + a @ b, "The update belongs to the weight: x is multiplied by it, too."),
    (lambda x, w, a, b: x @ w + x @ a @ b / a.shape[1],
     "You divided the update by its rank, as LoRA's scale does: here the whole of it is added."),
    ],
    terms={"x @ w": lambda x, w, a, b: x @ w, "what a and b add": lambda x, w, a, b: x @ a @ b},
    laws=[(_adds_nothing, "Where all of a is 0, x @ w alone remains. Yours gives something else then.")],
    cases=[(x := torch.tensor([[3.0, -1, 2]]), w := torch.tensor([[2.0, 1, 0], [0, 3, 1], [1, 0, -2]]),
            a := torch.tensor([[1.0, -2], [4, 1], [0, 2]]), b := torch.tensor([[3.0, 1, 0], [-1, 2, 1]])),
           (300 * x, 400 * w, a, b)],  # too large for half precision
    draw=lambda r: (whole(r, 4, n := r.randint(5, 20)), whole(r, n, m := r.randint(5, 20)),
                    whole(r, n, 2), whole(r, 2, m)),
    cost="flops", unit="FLOP",
    counted_at=[tuple(torch.empty(shape, device="meta") for shape in ((4, 64), (64, 64), (64, 2), (2, 64)))])
