"""The exercises of notebook 07."""

import math
import random
from collections.abc import Callable
from math import ceil, floor
from typing import Any

from helpers.exercises.exercise import exercise, guess, notebook
from helpers.model import Config

notebook("07")

# fmt: off
guess("hours_of_405b", "So where the MFU is known, the account agrees, within what is not known of the time running.",
    (1.25, "So the 70B's came out, with an MFU that is not its own."),
    ((1.1, 10), "That takes an MFU below the one that the paper prints for this very run."),
    ((0.1, 0.9), "That takes an MFU above the one that the paper prints for this very run."))
guess("block_keeps", "Almost every box keeps its input. That of GELU and down is four times as wide.",
    (1, "That is its input or its output: each box keeps its own."),
    (4, "So wide is the hidden tensor: two boxes keep one each, and nearly all others their own input."),
    ((3.5, 8.5), "So much the two wide tensors keep, around the GELU, or less: attention and norms keep, too."),
    (64, "Only GELU and down keep a wide tensor. What two boxes need is kept once, and an addition keeps nothing."),
    (34, "34 is known as a number of bytes, in 16 bits and with dropout: here the unit is the size of the input."))
guess("peak_of_step", "Three tables of 10.24 MB are alive at once, on top of weights, moments and activations.",
    (35.9, "That is the sum: some of its terms are not there yet, and two more tables are."),
    ((1, 35), "Some terms are not there yet. But the loss and its backward pass make tables of their own."),
    *((mb, "Is that the sum and one or two more tables? No weight has its gradient yet.") for mb in (46, 56.4)),
    (31.7, "Did you count one table, the logits? Others of its size are made."),
    (66.6, "That is the sum and three tables: but no weight has its gradient yet, and the logits are gone."),
    (42, "Did you count two tables of that size?"),
    (62.5, "Did you count four tables of that size? The logits are freed before the backward pass."))
guess("recomputed_peak", "What lasts stays, inputs are a sixteenth, and one block at a time is there in full.",
    ((4, 8), "So much is left of the activations that wait. Weights and moments stay, and one block is there in full."),
    (15, "The inputs of all blocks, and then? A block is there in full, beside weights, moments and gradients."),
    ((50, 90), "Of twelve blocks, eleven keep their input alone."))
guess("qlora_of_70b", "35 GB are the blocks' matrices, 4 embedding, head and norms, 3 what learns.",
    (10, "4 bits are half a byte: of 70 billion numbers?"),
    (144, "So it is by LoRA, with frozen weights of 2 bytes."),
    (280, "So many GB are 4 bytes for each weight: here they have 4 bits."),
    ((34, 37), "Those are 4 bits a weight. Scales, embedding, head, and what learns come on top."))
guess("cache_of_card", "3.2 GB: twelve blocks hold all tokens, the others 128 of them.",
    (6.4, "So it would be if every block held all tokens."),
    (0.4, "Did you take one head of keys? There are 8."),
    (26, "Did you count 64 heads? 8 key heads serve them."),
    (1.6, "Keys and values: both are held."))
guess("tokens_that_hide", "2474 is the peak over 400 GB/s: 6N stands on both sides.",
    (1014, "That is enough at 0.41 of the peak."), (19792, "That is for one of a server's eight links."))
guess("gb_of_70b", "218 GB of these are activations, 20.3 · D numbers for each token and block of one text.",
    ((20, 30), "That is what states and tables of the loss take. And the activations?"),
    ((35, 45), "So much it would be if all were recomputed, or if eight GPUs shared a text."),
    (80, "That is what an H100 has, by its datasheet. The activations alone take far more."),
    (15, "Those are the states alone."), (218, "Those are the activations: states and tables of the loss come on top."),
    *((gb, "The states are shared among the 64 GPUs, and a text takes only the GPU that works on it.")
      for gb in (700, (600, 5000))),
    ((440, 500), "Are those activations of 4 bytes? In bfloat16 a number has 2."),
    ((1e11, 1e12), "In GB, please."), ((1e5, 1e6), "In GB, please."))
guess("attention_share", "15.3 %: 12 · L · D · T over 6N, in full, also what the causal mask hides.",
    (lambda right: right / 2, "With a causal mask half of that would do: the formula counts in full."),
    (lambda right: right / 3, "Did you count the forward pass alone, beside all of 6N? Backward has twice as much."),
    *((lambda right, times=times: times * right, "The 12 has forward and backward pass in it already.")
      for times in (2, 3)),
    (13.3, "That is its share of both together: asked is the share of 6N."),
    (lambda right: right / 100, "In percent, please."), (1, "So it is for short texts: the share grows with T."),
    (50, "That takes texts more than three times as long: the share grows with T."))
guess("own_step", "How near its kernels come to peak and bandwidth, only a clock can tell.",
    (1, "Then all would run at the best rates of this machine."),
    ((0.01, 0.95), "Faster than predicted? Only where caches serve the bytes."),
    (lambda right: (max(5, 2 * right), 100), "So it would be if most operations took less time than their launch."))


class _Model(Config):
    """One that a verdict shows by its name alone."""

    def __repr__(self) -> str:
        return f"<{self.name}>"


_LLAMA: dict[str, Any] = {"family": "Llama", "tied": False}
_MODELS = [
    _Model("Llama 3 70B", 80, 8192, 64, 128_256, 8192, 28_672, 8, **_LLAMA),
    _Model("Llama 3 405B", 126, 16_384, 128, 128_256, 131_072, 53_248, 8, **_LLAMA),
    _Model("Qwen3 0.6B", 28, 1024, 16, 151_936, 40_960, 3072, 8, "Llama", channels=128),
    _Model("Mixtral 8x7B", 32, 4096, 32, 32_000, 32_768, 14_336, 8, experts=8, chosen=2, **_LLAMA),
]


def _multiplied(config: Config) -> int:
    """The weights that a token is multiplied with."""
    queries, keys = config.heads * config.channels, config.key_heads * config.channels
    mlps = config.experts + 3 * config.hidden * max(config.chosen, 1)
    return config.width * (config.layers * (2 * queries + 2 * keys + mlps) + config.vocabulary)


def _days(
    weights: Callable[[Config], int] = _multiplied,
    wide: Callable[[Config], int] = lambda config: config.heads * config.channels,
    times: int = 12,
    long: Callable[[Config], int] = lambda config: 8192,
    lost: Callable[[float], float] = lambda running: running,
) -> Callable[..., float]:
    def days(config: Config, tokens: float, gpus: int, mfu: float, running: float) -> float:
        flop = (6 * weights(config) + times * config.layers * wide(config) * long(config)) * tokens
        return flop / (gpus * 989.5e12 * mfu * lost(running)) / 86_400

    return days


def _drawn(r: random.Random) -> tuple[Any, ...]:
    experts = r.choice((0, 8))
    sizes: dict[str, Any] = {"width": 128 * r.randint(2, 40), "heads": 8, "key_heads": r.choice((1, 2, 4, 8))}
    sizes |= {"channels": r.choice((64, 128)), "hidden": 128 * r.randint(2, 99), "vocabulary": r.randint(500, 200_000)}
    sizes |= {"experts": experts, "chosen": min(experts, 2), "tied": r.choice((True, False))}
    config = _Model("a model", layers=r.randint(2, 90), context=4096, family="Llama", **sizes)
    return config, r.randint(1, 20) * 1e12, r.randint(8, 9999), r.uniform(0.2, 0.6), r.uniform(0.7, 1)


exercise("account",
    _days(), [
    (_days(lambda config: config.parameters),
     "You took all parameters. A token is multiplied with `config.matrices`: of experts, it meets the chosen ones."),
    (_days(lambda config: config.active),
     "Embedding and norms multiply no token: take `config.matrices`."),
    (_days(wide=lambda config: config.width),
     "Right where the heads together are as wide as the model. D in 12 · L · D · T stands for heads · channels."),
    (_days(long=lambda config: config.context),
     "The texts have 8192 tokens, whatever the model could read."),
    (_days(times=4), "4 · L · D · T is attention's forward pass alone: backward has twice as much."),
    (_days(times=0), "The attention products are missing: they have no parameters, and 12 · L · D · T FLOP per token."),
    (_days(lost=lambda running: 1 / running), "The run stands still for a part of the time: that makes it longer."),
    (_days(lambda config: config.parameters, times=0),
     "That is 6 FLOP for all parameters: take those that multiply a token, and add the attention products."),
    ],
    terms={"6 FLOP for each weight": _days(times=0), "attention": _days(lambda config: 0)},
    variables=lambda config, tokens, gpus, mfu, running: {"config.matrices": _multiplied(config), "tokens": tokens,
        "config.layers": config.layers, "gpus": gpus, "mfu": mfu, "running": running},
    cases=[(config, 15e12, 1024, 0.41, 0.95) for config in _MODELS] + [(_MODELS[1], 15.6e12, 16_384, 0.41, 0.9)],
    draw=_drawn)

_DONE, _COULD = 6 * 37e9 * 14.8e12, 2.788e6 * 3600 * 989.5e12
exercise("second_run", _DONE / _COULD, [
    (_DONE / _COULD * 671 / 37, "A token meets 37 billion of the parameters. And nothing reaches more than its peak."),
    (_DONE / _COULD / 2, "That is of the peak in float8, in which most products ran: asked is that in bfloat16."),
    (_DONE / _COULD / 3, "That is the forward pass alone: a training run goes backward, too."),
    (_COULD / _DONE, "The wrong way round: what was done, over what could have been."),
    (0.41, "So it was for Llama 3 405B. What do DeepSeek's own hours say?"),
], tolerance=0.02, quantities={"the 6": 6, "the seconds of an hour": 3600})


def _gated(hidden: float = 4, inputs: float = 1) -> Callable[..., float]:
    return lambda width, f, batch, tokens, item: batch * tokens * (inputs * width + hidden * f) * item


exercise("gated_mlp_kept",
    _gated(), [
    *((_gated(hidden), "Of the hidden width something is missing: have you asked SiLU, the product and down?")
      for hidden in (1, 2, 3)),
    *((_gated(*kept), "Gate and up share their input, kept once. Have you asked SiLU, the product and down?")
      for kept in ((1, 2), (2, 2), (2, 3))),
    (_gated(5, 2), "Gate and up share their input, kept once, and one hidden tensor is too many."),
    *((_gated(hidden), "Too many hidden tensors: what two operations need is kept once.") for hidden in (5, 6)),
    (_gated(4, 2), "Gate and up have the same input: it is kept once, and nothing here keeps the output."),
    (_gated(3, 2), "Gate and up have the same input, kept once, and one of the four hidden tensors is missing."),
    (_gated(3, 0), "The input is missing, and a tensor of the hidden width."),
    (_gated(5, 0), "The input is missing, and one hidden tensor is too many: what two operations need is kept once."),
    ],
    terms={"the input": _gated(hidden=0), "what is of the hidden width": _gated(inputs=0)},
    cases=[(64, 160, 3, 16, 4), (128, 352, 1, 64, 2), (256, 704, 2, 32, 2)],
    draw=lambda r: (r.randint(2, 24) * 8, r.randint(3, 80) * 8, r.randint(2, 8), r.randint(2, 64),
                    r.choice((2, 4))))


def _accumulated(
    first: float = 14, later: float = 16, texts: Callable[[int, int], float] = lambda texts, parts: texts // parts
) -> Callable[..., float]:
    return lambda n, every, parts, each: (first if parts == 1 else later) * n + texts(every, parts) * each


exercise("accumulated_peak",
    _accumulated(), [
    (_accumulated(14, 14), "From the second part on, the gradients of the parts before are there."),
    (_accumulated(16, 16), "In a single part no weight has its gradient yet at the loss."),
    (_accumulated(16, 14), "It is the other way round: with several parts, gradients are there at the loss."),
    *((_accumulated(*states, texts=lambda texts, parts: texts),
       "Only the texts of one part are there at a time.") for states in ((14, 16), (14, 14), (16, 16))),
    *((_accumulated(*states, texts=lambda texts, parts: 1), "A part has texts / parts texts, not one.")
      for states in ((14, 16), (14, 14), (16, 16))),
    (_accumulated(texts=lambda texts, parts: parts), "A part has texts / parts texts."),
    (_accumulated(0, 0), "The states are missing: weights, master copies, moments and, in time, gradients."),
    *((lambda n, texts, parts, each, first=first: first * n + (parts - 1) * 2 * n + texts // parts * each,
       "The gradients are added up: there is one set of them, whatever the number of parts.") for first in (14, 16)),
    ],
    terms={"the states": _accumulated(texts=lambda texts, parts: 0), "the texts": _accumulated(0, 0)},
    cases=[(1_000_000, 8, 1, 2_000_000), (1_000_000, 8, 2, 2_000_000), (8 * 10**9, 16, 4, 3 * 10**9),
           (1000, 6, 6, 500)],
    draw=lambda r: (r.randint(1, 999) * 1000, (k := r.randint(1, 8)) * r.randint(1, 9), k, r.randint(1, 999) * 1000),
    equivalent_slips={"return states * parameters + texts / parts * per_text": "parts divides texts"})


_PER_TOKEN = 2 * 80 * 8 * 128 * 2  # bytes of cache: Llama 3 70B in bfloat16

def _parts(
    tables: float = 3, size: int = 4, *, cut: Callable[[float], float] = ceil, whole: Callable[[float], float] = floor,
    held: float = 1, none: float | None = math.inf,
) -> Callable[..., float | None]:
    def parts(memory: int, used: int, tokens: int, vocabulary: int) -> float | None:
        at_once = whole((memory - held * used) / (tables * size * vocabulary))
        return cut(tokens / at_once) if at_once > 0 else none

    return parts


exercise("loss_parts",
    _parts(), [
    *((_parts(tables), "Section 4 found three tables alive at the peak: log-probabilities, and two gradients.")
      for tables in (1, 2, 4)),
    (_parts(size=2), "The tables are in float32: 4 bytes a number."),
    (_parts(size=1), "Those are numbers: in float32 each has 4 bytes."),
    (_parts(held=-1), "What is held takes away from the memory."),
    *((_parts(whole=float, cut=cut),
       "Tokens are whole: the largest part may have one more than the average, and no longer fit.")
      for cut in (ceil, floor, lambda parts: floor(parts) + 1)),
    (lambda m, h, t, v: ceil(12 * t * v / (m - h)),
     "Tokens are whole, so the largest part may have more than the average. And the room may be too small for one."),
    (lambda m, h, t, v: math.inf if h + 12 * v > m else ceil(12 * t * v / (m - h)),
     "Tokens are whole: the largest part may have one more than the average, and no longer fit."),
    (_parts(cut=floor), "The tokens left over need a part of their own: round up."),
    (_parts(cut=round), "To the nearest may be a part too few: round up."),
    (_parts(cut=float), "Parts are whole: round up."),
    (_parts(cut=lambda parts: floor(parts) + 1), "Where the parts come out even, none is left over: use math.ceil."),
    (lambda m, h, t, v: math.inf if m - h <= 12 * v else _parts()(m, h, t, v), "What takes exactly the memory fits."),
    (lambda m, h, t, v: ceil(t / ((m - h) // (4 * v))) if m - h >= 12 * v else math.inf,
     "You know that three tables are alive: each token needs room in all three."),
    (lambda m, h, t, v: k if (k := ceil(12 * t * v / max(m - h, 1))) <= t else math.inf,
     "Tokens are whole: the largest part may have one more than the average, and no longer fit."),
    (lambda m, h, t, v: ceil(t / ((m - h) // (12 * v))), "The room may be too small for one token, or negative."),
    (lambda m, h, t, v: ceil((h + 12 * t * v) / m), "What is held stays whole in each part: only the tables are cut."),
    (lambda m, h, t, v: next((k for k in range(1, t + 1) if h + 12 * (t // k) * v <= m), math.inf),
     "The largest part has the average rounded up: t // k forgets the tokens left over."),
    (lambda m, h, t, v: next((k for k in range(1, t + 1) if h + 12 * ceil(t / k) * v < m), math.inf),
     "What takes exactly the memory fits."),
    ],
    cases=[(30_000_000, 21_500_000, 512, 5000), (40 * 10**9, 27 * 10**9, 8192, 128_256), (1000, 500, 10, 12),
           (60_000_000, 21_500_000, 512, 5000), (1000, 900, 10, 12), (900, 1000, 10, 12), (1200, 0, 8, 25),
           (10_000, 1000, 100, 70), (10_000, 9999, 7, 3), (1000, 800, 6, 12), (1144, 1000, 6, 12)],
    draw=lambda r: (r.randint(1, 99) * 10**6, r.randint(0, 60) * 10**6, r.randint(10, 4000), r.randint(100, 9000)))

_CACHE = _PER_TOKEN * 6000  # of a request, 1.97 GB
exercise("requests_that_fit", 45e9 // _CACHE, [
    *((count, "That is the page's own count, for 4096 tokens: check its cache of 160 MB.")
      for count in (280, 281, 45e9 / 160e6)),
    *((count, "You took the page's cache, scaled to 6000 tokens: check its 160 MB for 4096.") for count in (191, 192)),
    (8 * 45e9 // _CACHE, "A factor of 8 is missing in the cache: its heads."),
    (45e9 // (8 * _CACHE), "You took 64 heads: the cache has 8, each shared by 8 query heads."),
    (45e9 // (2 * _CACHE), "A number has 2 bytes here."),
    (45, "If those are the GB left: how often does a cache fit in? It holds keys and values, in 2 bytes each."),
    *((count, "That is for 4096 tokens: these requests have 6000.")
      for count in (45e9 // (4096 * _PER_TOKEN), 45e9 / (4096 * _PER_TOKEN), 34)),
    *((count, "The weights take 35 GB of the 80: caches get the rest.")
      for count in (80e9 // _CACHE, 80e9 / _CACHE, 41)),
    *((count, "Near: compute the cache of 6000 tokens in bytes, and take a GB as 10⁹ bytes.")
      for count in (20, 21, 45 * 2**30 // _CACHE)),
    *((count, "Requests are whole: round down.") for count in (45e9 / _CACHE, 23)),
], tolerance=1e-3)

_SCORES = 12 * 96 * 12288 * 2048 / (6 * 175e9)  # of GPT-3: attention over all else

exercise("gpt3_scores", 3, [  # it comes out as 2.98
    (1, "Added once, they give 20.2 %, and 21.3 % is printed."),
    (4, "That gives 21.9 %."), (0.202, "That is the MFU with the term once: how many times gives 21.3 %?"),
    (2, "Count from the 19.7 % without any: how often does the term fit into what is printed on top?"),
    (0.213 * 125 / 24.6, "That is the ratio of the two MFUs: how many shares of attention make it up?"),
    *((k, "Keep more digits than 19.7 and 20.2 have: k is close to a whole number.") for k in (2.5, 2.9, 3.2)),
    (2 * (0.213 * 125 / 24.6 - 1) / _SCORES, "6 · L · D · T is half of attention: take 12 · L · D · T."),
    (3 * (0.213 * 125 / 24.6 - 1) / _SCORES, "4 · L · D · T is the forward pass alone: take 12 · L · D · T."),
    ((0.213 * 125 / 24.6 - 1) / _SCORES / 6, "You compared 12 · L · D · T with N: compare it with 6N."),
    ((0.213 - 24.6 / 125) / _SCORES, "You divided a difference of MFUs: divide it by the 19.7 % first."),
    (0.213 * 125 / 24.6 - 1, "That is what all the added scores make: divide by the share of one."),
], tolerance=0.02, equivalent_slips=dict.fromkeys([
    "share = 12 * 97 * 12288 * 2048 / (6 * 175000000000.0)", "share = 12 * 95 * 12288 * 2048 / (6 * 175000000000.0)",
], "one layer of 96 is below the tolerance"))
