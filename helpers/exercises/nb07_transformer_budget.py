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
    (1014, "That is enough at 0.41 of the peak."), (19792, "That is for one of a server's eight links."),
    *((tokens, "That is off by ten or more: 6N stands on both sides, so divide the peak by the server's 400 GB/s.")
      for tokens in (250, 25_000, 250_000)))
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
], tolerance=0.02, quantities={"the 6": 6, "the 37 billion": (37e9, 671e9), "the tokens": 14.8e12,
    "the GPU-hours": 2.788e6, "the seconds of an hour": 3600, "the peak": 989.5e12})


def _gated(inputs: float, wide: float) -> Callable[..., float]:
    """So many tensors of the width, and of the hidden width."""
    return lambda width, hidden, batch, tokens, itemsize: batch * tokens * (inputs * width + wide * hidden) * itemsize


exercise("gated_mlp_kept",
    _gated(1, 4), [
    *((_gated(1, wide), "Of the hidden width something is missing: SiLU, the product and down each need their inputs.")
      for wide in (1, 2, 3)),
    (_gated(2, 4), "You kept the input of gate and that of up: is it not the same tensor? Or did you keep the output?"),
    (_gated(1, 5), "A hidden tensor too many: what one operation makes and the next one needs is kept once."),
    ],
    terms={"the input": _gated(1, 0), "what is of the hidden width": _gated(0, 4)},
    cases=[(64, 160, 3, 16, 4), (128, 352, 1, 64, 2), (256, 704, 2, 32, 2)],
    draw=lambda r: (r.randint(2, 24) * 8, r.randint(3, 80) * 8, r.randint(2, 8), r.randint(2, 64),
                    r.choice((2, 4))))


def _accumulated(
    first: float = 14, later: float = 16, texts: Callable[[int, int], float] = lambda texts, parts: texts // parts
) -> Callable[..., float]:
    """`first` and `later` are the bytes of a parameter in the first part and in later ones."""
    def peak(parameters: int, texts_of_step: int, parts: int, per_text: int) -> float:
        return (first if parts == 1 else later) * parameters + texts(texts_of_step, parts) * per_text

    return peak


exercise("accumulated_peak",
    lambda parameters, texts, parts, per_text: _accumulated()(parameters, texts, parts, per_text), [
    (_accumulated(14, 14), "At the first loss no gradient is there yet: what is there at the second one?"),
    (_accumulated(16, 16), "With a single part, which gradients are there when it arrives at its loss?"),
    (_accumulated(16, 14), "It is the other way round: do gradients come before the first loss, or after it?"),
    (_accumulated(texts=lambda texts, parts: texts),
     "You took all texts of the step: the parts run one after the other, and each frees what it kept."),
    (lambda parameters, texts, parts, per_text: (12 + 2 * parts) * parameters + texts // parts * per_text,
     "You kept a set of gradients for each part: they are added up into one."),
    *((lambda parameters, texts, parts, per_text, first=first: _accumulated(first)(
        parameters / parts, texts, parts, per_text),
       "You cut the states into parts, too: all weights are there in each part, only the texts are cut.")
      for first in (14, 16)),
    ],
    terms={"the states": _accumulated(texts=lambda texts, parts: 0), "the texts": _accumulated(0, 0)},
    cases=[(1_000_000, 8, 1, 2_000_000), (1_000_000, 8, 2, 2_000_000), (8 * 10**9, 16, 4, 3 * 10**9),
           (1000, 6, 6, 500)],
    draw=lambda r: (r.randint(1, 999) * 1000, (k := r.randint(1, 8)) * r.randint(1, 9), k, r.randint(1, 999) * 1000),
    equivalent_slips={"return states * parameters + texts / parts * per_text": "parts divides texts"})


_PER_TOKEN = 2 * 80 * 8 * 128 * 2  # bytes of cache: Llama 3 70B in bfloat16

def _parts(tables: float = 3, *, cut: Callable[[float], float] = ceil) -> Callable[..., float]:
    """`cut` rounds the number of parts; where not one token fits at a time, none does."""
    def parts(memory: int, held: int, tokens: int, vocabulary: int) -> float:
        at_once = floor((memory - held) / (tables * 4 * vocabulary))
        return cut(tokens / at_once) if at_once >= 1 else math.inf

    return parts


exercise("loss_parts",
    lambda memory, held, tokens, vocabulary: _parts()(memory, held, tokens, vocabulary), [
    (_parts(1), "You made room for one table: three of them are alive at once."),
    (lambda memory, held, tokens, vocabulary: math.inf if held + 12 * vocabulary > memory
        else ceil(12 * tokens * vocabulary / (memory - held)),
     "You divided bytes by bytes: but tokens are whole, so the largest part may exceed the average, and not fit."),
    (lambda memory, held, tokens, vocabulary: _parts()(memory, 0, tokens, vocabulary),
     "Your result does not depend on `held`: what is in use already leaves less for the tables."),
    (lambda memory, held, tokens, vocabulary: ceil((held + 12 * tokens * vocabulary) / memory),
     "You cut up what is held as well: it stays whole in each part, only the tables are cut."),
    (_parts(cut=floor), "The tokens that are left over need a part of their own."),
    (_parts(cut=lambda parts: floor(parts) + 1),
     "You add a part for the rest: where the parts come out even, no rest is left."),
    (lambda memory, held, tokens, vocabulary: math.inf if memory - held <= 12 * vocabulary else 0.0,
     "What takes exactly the memory fits.", math.isinf),
    ],
    cases=[(30_000_000, 21_500_000, 512, 5000), (40 * 10**9, (40 - 13) * 10**9, 8192, 128_256), (1000, 500, 10, 12),
           (60_000_000, 21_500_000, 512, 5000), (1000, 900, 10, 12), (900, 1000, 10, 12), (1200, 0, 8, 25),
           (10_000, 1000, 100, 70), (10_000, 9999, 7, 3), (1000, 800, 6, 12), (1144, 1000, 6, 12),
           (1160, 1000, 5, 12)],
    draw=lambda r: (r.randint(1, 99) * 10**6, r.randint(0, 60) * 10**6, r.randint(10, 4000), r.randint(100, 9000)))

_CACHE = _PER_TOKEN * 6000  # of a request, 1.97 GB
exercise("requests_that_fit", 45e9 // _CACHE, [
    (45e9 / 160e6, "That is the page's own count, for 4096 tokens: check its cache of 160 MB."),
    (45e9 / 235e6, "You scaled the page's cache to 6000 tokens: check its 160 MB for 4096 first."),
    (8 * 45e9 / _CACHE, "A factor of 8 is missing in the cache: what has each layer eight of?"),
    (45e9 // (8 * _CACHE), "You took 64 heads: those of the queries. Eight of them share each head of the cache."),
    (45, "If those are the GB left: how often does a cache fit in? It holds keys and values, in 2 bytes each."),
    (45e9 / (4096 * _PER_TOKEN), "That is for 4096 tokens, as on the page: these requests are longer."),
    (80e9 / _CACHE, "You gave all 80 GB to the caches: the weights are there, too."),
    (45e9 / _CACHE, "A request is served whole: is there room for a part of one?"),
], tolerance=1e-3, quantities={"the 80 layers": 80, "the 8 heads": 8, "the 128 numbers": 128, "keys and values": 2,
    "the 2 bytes": 2, "the 6000 tokens": (6000, 4096), "the GB that are left": (45e9, 80e9, 115e9, 45 * 2**30)})

_SCORES = 12 * 96 * 12288 * 2048 / (6 * 175e9)  # of GPT-3: attention over all else

exercise("gpt3_scores", 3, [  # it comes out as 2.98
    (1, "Once is what the formula asks for: what MFU would it give?"),
    (0.202, "That is the MFU with the term once: how many times gives 21.3 %?"),
    (2, "Count all times in which the term is in 21.3 %, from the MFU without it: 24.6 / 125."),
    (0.213 * 125 / 24.6, "That is the ratio of the two MFUs: how many shares of attention make it up?"),
    (0.213 * 125 / 24.6 - 1, "That is what all the added scores make: how large is the share of one?"),
    ((0.213 - 24.6 / 125) / _SCORES, "The share is one of 6N: how large is that difference, as a share of 6N's MFU?"),
    (2.5, "Keep more digits on the way: k is close to a whole number."),
    (2 * (0.213 * 125 / 24.6 - 1) / _SCORES, "6 · L · D · T is half of attention: the formula has 12."),
], tolerance=0.02, equivalent_slips=dict.fromkeys([
    "share = 12 * 97 * 12288 * 2048 / (6 * 175000000000.0)", "share = 12 * 95 * 12288 * 2048 / (6 * 175000000000.0)",
], "one layer of 96 is below the tolerance"))
