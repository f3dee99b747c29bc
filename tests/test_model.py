"""The block and the GPT of the course against PyTorch's own layers and published counts."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from helpers import model
from helpers.model import GPT, MODELS, Block, Config

GPT2 = Config("GPT-2 like", layers=2, width=64, heads=4, vocabulary=100, context=32)
LLAMA = Config("Llama like", 2, 64, 8, 100, 32, hidden=160, key_heads=2, family="Llama", tied=False)
both = pytest.mark.parametrize("config", [GPT2, LLAMA], ids=lambda config: config.name)


# What transformers counts for gpt2, gpt2-medium, -large, -xl, and the safetensors of meta-llama/*
@pytest.mark.parametrize(("name", "parameters"), [
    ("GPT-2 small", 124_439_808),
    ("GPT-2 medium", 354_823_168),
    ("GPT-2 large", 774_030_080),
    ("GPT-2 XL", 1_557_611_200),
    ("GPT-3 175B", pytest.approx(175e9, rel=0.003)),  # Brown et al. 2020, table 2.1: "175.0B"
    ("Llama 2 7B", 6_738_415_616),
    ("Llama 2 70B", 68_976_648_192),
    ("Llama 3 8B", 8_030_261_248),
    ("Llama 3 70B", 70_553_706_496),
    ("Llama 3 405B", 405_853_388_800),
])  # fmt: skip
def test_parameters_are_the_published_ones_and_those_of_the_module(name, parameters):
    with torch.device("meta"):
        gpt = GPT(MODELS[name])
    assert sum(p.numel() for p in gpt.parameters()) == MODELS[name].parameters == parameters
    assert MODELS[name].name == name


@pytest.mark.parametrize("fused", [True, False])
def test_a_gpt2_block_is_pytorchs_encoder_layer(fused):
    block, x = Block(GPT2), torch.randn(3, 16, 64)
    torchs = nn.TransformerEncoderLayer(
        64, 4, 256, dropout=0.0, batch_first=True, norm_first=True, activation=lambda y: F.gelu(y, approximate="tanh")
    )
    projections = block.query, block.key, block.value
    with torch.no_grad():
        for p in block.parameters():
            p.normal_(std=0.2)  # norms and biases, too
        torchs.self_attn.in_proj_weight.copy_(torch.cat([part.weight for part in projections]))
        torchs.self_attn.in_proj_bias.copy_(torch.cat([part.bias for part in projections]))
    pairs = {"self_attn.out_proj": "output", "linear1": "up", "linear2": "down", "norm1": "norm1", "norm2": "norm2"}
    for theirs, ours in pairs.items():
        torchs.get_submodule(theirs).load_state_dict(block.get_submodule(ours).state_dict())
    mask = nn.Transformer.generate_square_subsequent_mask(16)
    torch.testing.assert_close(block(x, fused=fused), torchs(x, mask, is_causal=True))


def test_rotary_positions_are_products_with_a_unit_complex_number():
    x = torch.randn(2, 5, 3, 8, dtype=torch.float64)
    pairs = torch.complex(x[..., :4], x[..., 4:])
    angles = torch.arange(5)[:, None] * 100.0 ** (-torch.arange(4, dtype=torch.float64) / 4)
    turned = pairs * torch.exp(1j * angles)[:, None]
    expected = torch.cat([turned.real, turned.imag], -1)
    torch.testing.assert_close(model.rotate(x, theta=100.0), expected, rtol=1e-5, atol=1e-5)


def test_a_llama_block_by_hand():
    block, x = Block(LLAMA), torch.randn(1, 4, 64)

    def rms(x, weight):
        return x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt() * weight

    y = rms(x, block.norm1.weight)
    q, k, v = (linear(y).unflatten(-1, (-1, 8)) for linear in (block.query, block.key, block.value))
    q, k = model.rotate(q), model.rotate(k)
    heads = torch.zeros(1, 4, 8, 8)
    for head in range(8):
        for t in range(4):  # four heads share a key head; a token looks back only
            scores = torch.stack([q[0, t, head] @ k[0, s, head // 4] for s in range(t + 1)]) / 8**0.5
            heads[0, t, head] = scores.softmax(0) @ v[0, : t + 1, head // 4]
    x1 = x + block.output(heads.flatten(2))
    y = rms(x1, block.norm2.weight)
    gate = block.gate(y)
    torch.testing.assert_close(block(x), x1 + block.down(gate * torch.sigmoid(gate) * block.up(y)))


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("new", [1, 5])
def test_the_last_tokens_attend_to_the_keys_of_all(fused, new):
    q, k, v = torch.randn(2, 9, 8, 4), torch.randn(2, 9, 2, 4), torch.randn(2, 9, 2, 4)
    found = model.attention(q[:, -new:], k, v, fused=fused)
    torch.testing.assert_close(found, model.attention(q, k, v)[:, -new:])


@both
def test_recomputation_changes_no_gradient(config):
    gpt, ids, gradients = GPT(config), torch.randint(100, (3, 16)), []
    for recompute in (False, True):
        gpt.zero_grad()
        gpt(ids, recompute=recompute).square().sum().backward()
        gradients.append([p.grad for p in gpt.parameters()])
    torch.testing.assert_close(*gradients)


@both
def test_a_gpt_is_causal_and_starts_knowing_nothing(config):
    gpt, ids = GPT(config), torch.randint(100, (3, 16))
    torch.testing.assert_close(gpt(ids)[:, :9], gpt(ids[:, :9]))
    assert F.cross_entropy(gpt(ids).flatten(0, 1), ids.flatten()).item() == pytest.approx(4.605, abs=0.3)  # log 100


SIZES = {"layers": 2, "width": 64, "heads": 4, "vocabulary": 100, "context": 32}


@pytest.mark.parametrize(("change", "error", "words"), [
    ({"width": 63}, ValueError, "without channels heads divide the width, and key heads the heads; got Config"),
    ({"key_heads": 3}, ValueError, "and key heads the heads; got Config"),
    ({"layers": 0}, ValueError, "^layers is a whole number of at least 1, got 0$"),
    ({"vocabulary": -5}, ValueError, "^vocabulary is a whole number of at least 1, got -5$"),
    ({"channels": -1}, ValueError, "^channels is a whole number of at least 0, got -1$"),
    ({"hidden": 10.5}, TypeError, r"^hidden is a whole number, got 10.5 \(float\)$"),
    ({"width": 64.0}, TypeError, r"^width is a whole number, got 64.0 \(float\); write int\(64.0\)$"),
    ({"heads": True}, TypeError, r"^heads is a whole number, got True \(bool\)$"),
    ({"context": float("nan")}, TypeError, r"^context is a whole number, got nan \(float\)$"),
    ({"layers": "2"}, TypeError, r"^layers is a whole number, got '2' \(str\)$"),
    ({"family": "Mamba"}, ValueError, "^no family 'Mamba': take one of GPT-2, Llama$"),
    ({"family": "Llama", "channels": 15}, ValueError, "a head has an even number; got Config"),
    ({"windows": (128,)}, ValueError, "^one window for each of 2 blocks is needed, got 1$"),
    ({"windows": (128, -1)}, ValueError, "^a window is a whole number of at least 0, got -1$"),
    ({"experts": 8}, ValueError, "^each token chooses from 1 to all experts, got 0 of 8$"),
    ({"chosen": 2}, ValueError, "^each token chooses from 1 to all experts, got 2 of 0$"),
])  # fmt: skip
def test_what_no_model_can_be_is_refused(change, error, words):
    with pytest.raises(error, match=words):
        Config("odd", **SIZES | change)


def test_numpys_integers_are_whole_numbers():
    assert Config("numpy", **{name: np.int64(size) for name, size in SIZES.items()}) == Config("numpy", **SIZES)


@pytest.mark.parametrize("family", ["GPT-2", "Llama"])
def test_a_head_may_have_a_width_of_its_own(family):
    config = Config("wide heads", 2, 64, 8, 100, 32, key_heads=2, family=family, channels=16)
    gpt = GPT(config)
    assert gpt.blocks[0].query.weight.shape == (128, 64) and gpt.blocks[0].key.weight.shape == (32, 64)
    assert sum(p.numel() for p in gpt.parameters()) == config.parameters
    ids = torch.randint(100, (3, 16))
    torch.testing.assert_close(gpt(ids)[:, :9], gpt(ids[:, :9]))


@pytest.mark.parametrize(("change", "words"), [
    ({"windows": (0, 8)}, "has no windows; `budget` plans new$"),
    ({"experts": 4, "chosen": 2, "qk_norm": True}, "has no experts and no qk_norm; `budget` plans new$"),
])  # fmt: skip
def test_the_module_refuses_what_it_does_not_have(change, words):
    with pytest.raises(ValueError, match=words):
        GPT(Config("new", **SIZES | change))
