"""The block card and the pictures of named shapes: their words against the module, the counter and the roofline."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from helpers import counting, draw, units
from helpers.model import MODELS, Block

GPT2, LLAMA = MODELS["GPT-2 small"], MODELS["Llama 3 8B"]


def test_the_card_sums_up_the_block():
    with torch.device("meta"):
        block, x = Block(LLAMA), torch.zeros(2, 512, 4096)
    *_, last = draw.block(LLAMA, 2, 512).words.splitlines()
    parameters, flops = sum(p.numel() for p in block.parameters()), counting.count(block, x, fused=False).flops
    assert last.startswith(f"the block | {units.si(parameters, '')} parameters | {units.si(flops, '')} FLOPs")


def test_a_card_stays_the_same_however_often_it_is_shown():
    card = draw.block(GPT2, 1, 64)
    assert card.png() == card.png()


@pytest.mark.parametrize("upto", range(8))
def test_a_card_tells_no_more_than_the_lessons_so_far(upto):
    words = draw.block(GPT2, 8, 1024, upto=upto).words
    told = {
        2: "view layout",
        3: "b h t s shape",
        4: "1.77 M parameters",
        5: "53.9 MB bytes",
        6: " µs time",
        7: "MB kept",
    }
    assert [lesson for lesson, text in told.items() if text in words] == [n for n in told if n <= upto]


def test_decoding_waits_for_memory_and_one_large_batch_of_texts_for_arithmetic():
    assert "11 of 11 kernels wait for memory, for 100%" in draw.block(LLAMA, 8, 8192, decode=True).alt
    nbytes = 2 * 8 * 8192 * 2 * 1024 + 2 * 2 * 8 * 4096  # keys and values of all tokens, queries, results
    assert f"{units.duration(nbytes / 3.35e12)} time" in draw.block(LLAMA, 8, 8192, decode=True).words
    assert "for 100%" not in draw.block(LLAMA, 8, 8192).alt


@pytest.mark.parametrize("pattern", ["t c, s c -> t s", "b h t c, b h s c -> b h t s", "b t d, d f -> b t f"])
def test_a_box_of_loops_has_the_flops_that_are_counted(pattern):
    sizes = dict(zip("bhtscdf", (2, 3, 4, 5, 6, 7, 8), strict=True))
    inputs, _ = pattern.split("->")
    tensors = [torch.zeros([sizes[name] for name in part.split()]) for part in inputs.split(",")]
    with FlopCounterMode(display=False) as counter:
        torch.einsum(pattern.replace(" ", ""), *tensors)
    assert f"= {units.si(counter.get_total_flops(), 'FLOP')}." in draw.einsum_box(pattern, sizes).alt


def test_what_is_no_box_is_refused():
    with pytest.raises(ValueError, match="a name is summed, and each input brings one of its own"):
        draw.einsum_box("b c, b c -> b c", {"b": 2, "c": 3})


def test_key_heads_stand_under_the_queries_that_they_serve():
    drawing = draw.attention_shapes(GPT2, LLAMA)
    assert "Llama 3 8B: 32 query heads, 8 key heads, each for 4." in drawing.words
    heads = [patch for patch in drawing.figure.axes[0].patches if patch.get_height() == 22]
    assert len(heads) == 12 + 12 + 12 + 32 + 8 + 8
