"""The block and the GPT of the course against PyTorch's own layers and published counts; cards of published models."""

import json

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
PUBLISHED = {
    "GPT-2 small": 124_439_808,
    "GPT-2 medium": 354_823_168,
    "GPT-2 large": 774_030_080,
    "GPT-2 XL": 1_557_611_200,
    "GPT-3 175B": pytest.approx(175e9, rel=0.003),  # Brown et al. 2020, table 2.1: "175.0B"
    "Llama 2 7B": 6_738_415_616,
    "Llama 2 70B": 68_976_648_192,
    "Llama 3 8B": 8_030_261_248,
    "Llama 3 70B": 70_553_706_496,
    "Llama 3 405B": 405_853_388_800,
}


@pytest.mark.parametrize("name", MODELS)
def test_parameters_are_the_published_ones_and_those_of_the_module(name):
    assert name in PUBLISHED, f"say in PUBLISHED how many parameters others count of {name}, and where"
    with torch.device("meta"):
        gpt = GPT(MODELS[name])
    assert sum(p.numel() for p in gpt.parameters()) == MODELS[name].parameters == PUBLISHED[name]
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


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
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
    ],
)
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


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"windows": (0, 8)}, "has no windows; `budget` plans new$"),
        ({"experts": 4, "chosen": 2, "qk_norm": True}, "has no experts and no qk_norm; `budget` plans new$"),
    ],
)
def test_the_module_refuses_what_it_does_not_have(change, words):
    with pytest.raises(ValueError, match=words):
        GPT(Config("new", **SIZES | change))


# The fields of config.json at Hugging Face, as LitGPT's config.py lists them, too.
QWEN3 = {
    "model_type": "qwen3",
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "num_hidden_layers": 28,
    "head_dim": 128,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "vocab_size": 151_936,
    "max_position_embeddings": 40_960,
    "sliding_window": None,
    "tie_word_embeddings": True,
}
MISTRAL = {
    "model_type": "mistral",
    "hidden_size": 4096,
    "intermediate_size": 14_336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 32_000,
    "max_position_embeddings": 32_768,
    "sliding_window": 4096,
    "tie_word_embeddings": False,
}
MIXTRAL = MISTRAL | {"model_type": "mixtral", "sliding_window": None, "num_local_experts": 8, "num_experts_per_tok": 2}
GPT_OSS = {
    "model_type": "gpt_oss",
    "hidden_size": 2880,
    "intermediate_size": 2880,
    "num_hidden_layers": 24,
    "head_dim": 64,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "vocab_size": 201_088,
    "max_position_embeddings": 131_072,
    "sliding_window": 128,
    "num_local_experts": 32,
    "num_experts_per_tok": 4,
    "attention_bias": True,
    "tie_word_embeddings": False,
}
CARDS = {
    "Llama 3.2 1B": {
        "model_type": "llama",
        "hidden_size": 2048,
        "intermediate_size": 8192,
        "num_hidden_layers": 16,
        "head_dim": 64,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "vocab_size": 128_256,
        "max_position_embeddings": 131_072,
        "tie_word_embeddings": True,
        "rope_theta": 500_000.0,
    },
    "Mistral 7B v0.1": MISTRAL,
    "Qwen2.5 7B": {
        "model_type": "qwen2",
        "hidden_size": 3584,
        "intermediate_size": 18_944,
        "num_hidden_layers": 28,
        "num_attention_heads": 28,
        "num_key_value_heads": 4,
        "vocab_size": 152_064,
        "max_position_embeddings": 131_072,
        "sliding_window": 131_072,
        "use_sliding_window": False,
        "max_window_layers": 28,
        "tie_word_embeddings": False,
    },
    "Qwen3 0.6B": QWEN3,
    "Gemma 2 2B": {
        "model_type": "gemma2",
        "hidden_size": 2304,
        "intermediate_size": 9216,
        "num_hidden_layers": 26,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "vocab_size": 256_000,
        "max_position_embeddings": 8192,
        "sliding_window": 4096,
    },
    "Gemma 3 1B": {
        "model_type": "gemma3_text",
        "hidden_size": 1152,
        "intermediate_size": 6912,
        "num_hidden_layers": 26,
        "num_attention_heads": 4,
        "num_key_value_heads": 1,
        "head_dim": 256,
        "vocab_size": 262_144,
        "max_position_embeddings": 32_768,
        "sliding_window": 512,
        "sliding_window_pattern": 6,
    },
    "Mixtral 8x7B": MIXTRAL,
    "Qwen3 30B-A3B": QWEN3
    | {
        "model_type": "qwen3_moe",
        "hidden_size": 2048,
        "intermediate_size": 6144,
        "num_hidden_layers": 48,
        "moe_intermediate_size": 768,
        "num_attention_heads": 32,
        "num_key_value_heads": 4,
        "num_experts": 128,
        "num_experts_per_tok": 8,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
        "tie_word_embeddings": False,
    },
    "gpt-oss 20B": GPT_OSS,
    "gpt-oss 120B": GPT_OSS | {"num_hidden_layers": 36, "num_local_experts": 128},
}


# What transformers 5.24 counts, on meta, for a model of this card.
@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("Llama 3.2 1B", 1_235_814_400),
        ("Mistral 7B v0.1", 7_241_732_096),
        ("Qwen2.5 7B", 7_615_616_512),
        ("Qwen3 0.6B", 596_049_920),
        ("Gemma 2 2B", 2_614_341_888),
        ("Gemma 3 1B", 999_885_952),
        ("Mixtral 8x7B", 46_702_792_704),
        ("Qwen3 30B-A3B", 30_532_122_624),
        ("gpt-oss 20B", 20_914_757_184),
        ("gpt-oss 120B", 116_829_156_672),
    ],
)
def test_a_card_has_the_parameters_of_the_model(name, parameters):
    config = model.read_config(CARDS[name], name)
    assert (config.name, config.parameters) == (name, parameters)


@pytest.mark.parametrize(
    ("name", "active", "embedding"),
    [
        ("Qwen3 0.6B", 596_049_920, True),  # a dense one uses all
        ("Mixtral 8x7B", 12.9e9, True),
        ("Qwen3 30B-A3B", 3.3e9, True),
        ("gpt-oss 20B", 3.61e9, False),  # their model card leaves out the embedding
        ("gpt-oss 120B", 5.13e9, False),
    ],
)
def test_active_parameters_are_the_published_ones(name, active, embedding):
    config = model.read_config(CARDS[name])
    left_out = 0 if embedding else config.vocabulary * config.width
    assert config.active - left_out == pytest.approx(active, rel=0.02)


@pytest.mark.parametrize(
    ("name", "windows"),
    [
        ("Qwen2.5 7B", ()),
        ("Mixtral 8x7B", ()),
        ("Mistral 7B v0.1", (4096,) * 32),
        ("Gemma 2 2B", (4096, 0) * 13),
        ("Gemma 3 1B", (512, 512, 512, 512, 512, 0) * 4 + (512, 512)),
        ("gpt-oss 20B", (128, 0) * 12),
    ],
)
def test_each_block_has_the_window_of_its_type(name, windows):
    assert model.read_config(CARDS[name]).windows == windows


def test_the_card_says_which_blocks_look_at_all_tokens():
    listed = ["full_attention", "sliding_attention", "sliding_attention"]
    card = GPT_OSS | {"num_hidden_layers": 3, "layer_types": listed}
    assert model.read_config(card).windows == (0, 128, 128)
    late = QWEN3 | {"use_sliding_window": True, "sliding_window": 64, "max_window_layers": 26}
    assert model.read_config(late).windows == (0,) * 26 + (64, 64)


def test_a_card_is_read_from_its_file(tmp_path):
    folder = tmp_path / "Qwen3-0.6B"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(QWEN3), encoding="utf-8")
    found = model.read_config(folder / "config.json")
    assert found == model.read_config(str(folder / "config.json")) == model.read_config(QWEN3, "Qwen3-0.6B")


def test_a_plain_card_is_a_module_too():
    card = MISTRAL | {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "vocab_size": 50}
    config = model.read_config(card | {"head_dim": 16, "sliding_window": None, "num_attention_heads": 8})
    assert sum(p.numel() for p in GPT(config).parameters()) == config.parameters


@pytest.mark.parametrize(
    ("card", "words"),
    [
        (
            {"model_type": "deepseek_v3", "kv_lora_rank": 512},
            "the field 'kv_lora_rank' describes latent attention, whose",
        ),
        (
            {"model_type": "mamba", "state_size": 16},
            "the field 'state_size' describes a state-space model, which has no",
        ),
        ({"model_type": "gemma3", "text_config": {"a": 1}}, r"describes a part .* read_config\(card\['text_config"),
        (
            {"model_type": "qwen2_moe", "shared_expert_intermediate_size": 8},
            "'shared_expert_intermediate_size' describes",
        ),
        ({"model_type": "new"}, "the field 'model_type' is 'new'; a Config describes llama, mistral,"),
        ({}, "the field 'model_type' is None; a Config describes llama"),
        (QWEN3 | {"mlp_only_layers": [3]}, "the field 'mlp_only_layers' describes blocks without experts"),
        (CARDS["Qwen3 30B-A3B"] | {"decoder_sparse_step": 2}, "the field 'decoder_sparse_step' is not 1"),
        (QWEN3 | {"layer_types": ["linear_attention"] * 28}, "the field 'layer_types' lists linear_attention; a Con"),
        (
            QWEN3
            | {"layer_types": ["full_attention", "sliding_attention"], "use_sliding_window": True, "sliding_window": 8},
            "one window for each of 28 blocks is needed, got 2",
        ),
        ({name: size for name, size in QWEN3.items() if name != "hidden_size"}, "the field 'hidden_size' is missing"),
        (MIXTRAL | {"num_experts_per_tok": None}, "the field 'num_experts_per_tok' is missing"),
        (QWEN3 | {"vocab_size": -1}, "vocab_size is a whole number of at least 1, got -1"),
    ],
)
def test_what_a_config_has_no_words_for_is_refused_by_its_field(card, words):
    with pytest.raises(ValueError, match=words):
        model.read_config(card)


def test_what_is_no_card_is_refused():
    with pytest.raises(TypeError, match=r"a card is a path to a config\.json, or a dict of what is in it, got list"):
        model.read_config([QWEN3])


def test_gradients_of_a_run_are_the_same_each_time_and_leave_the_generator_alone():
    torch.manual_seed(3)
    first = model.gradients_of_a_run(steps=1)
    drawn = torch.rand(1)
    torch.manual_seed(3)
    assert drawn == torch.rand(1)
    assert torch.equal(first, model.gradients_of_a_run(steps=1))
    d, tokens = 64, 32 * 64
    per_block = 3 * d + d + 4 * d + d  # outputs of q k v, the output, up and down
    assert first.numel() == tokens * (2 * per_block + 128)
    with pytest.raises(ValueError, match="a run has at least one step, got 0"):
        model.gradients_of_a_run(steps=0)


@pytest.mark.parametrize("pairing", ["neighbours", "halves"])
def test_rotary_scores_are_those_of_complex_numbers(pairing):
    torch.manual_seed(0)
    heads, channels, tokens = 3, 8, 5
    x, wq, wk = torch.randn(tokens, 24), torch.randn(24, 24), torch.randn(24, 24)

    def turned(weight):
        vectors = (x @ weight.T).view(tokens, heads, channels)
        left, right = (vectors[..., ::2], vectors[..., 1::2]) if pairing == "neighbours" else vectors.chunk(2, -1)
        speed = 10_000.0 ** (-torch.arange(0, channels, 2) / channels)
        angle = torch.arange(tokens)[:, None, None] * speed
        return torch.complex(left, right) * torch.polar(torch.ones_like(angle), angle)

    expected = torch.einsum("thp,shp->hts", turned(wq), turned(wk).conj()).real
    assert torch.allclose(model.rotary_scores(x, wq, wk, heads, pairing), expected, atol=1e-4)


def test_a_pairing_is_one_of_two():
    with pytest.raises(ValueError, match="a pairing is 'neighbours' or 'halves', got 'pairs'"):
        model.rotary_scores(torch.ones(2, 8), torch.ones(8, 8), torch.ones(8, 8), 2, "pairs")
