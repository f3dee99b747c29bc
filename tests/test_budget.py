"""A transformer's budget against a real module, published tables and hand formulas."""

import dataclasses
import doctest

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from helpers import budget
from helpers.budget import MODELS, Transformer
from helpers.roofline import Roofline


class Layer(nn.Module):
    """A layer with grouped heads and, if asked for, a gated MLP, written without the course's formulas."""

    def __init__(self, model):
        super().__init__()
        d, h, kv = model.width, model.hidden, model.kv_width
        self.model = model
        self.norms = nn.ModuleList(nn.LayerNorm(d, bias=False) for _ in range(2))
        self.q, self.k, self.v, self.o, self.up, self.down = (
            nn.Linear(*shape, bias=False) for shape in ((d, d), (d, kv), (d, kv), (d, d), (d, h), (h, d))
        )
        self.gate = nn.Linear(d, h, bias=False) if model.gated else None

    def forward(self, x):
        model, y = self.model, self.norms[0](x)
        size = model.width // model.heads
        q, k, v = (part(y).unflatten(-1, (-1, size)).transpose(1, 2) for part in (self.q, self.k, self.v))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=model.kv_heads != model.heads)
        x = x + self.o(mixed.transpose(1, 2).flatten(2))
        y = self.norms[1](x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y) if self.gate else F.gelu(self.up(y)))


def kept(function, parameters):
    own = {p.untyped_storage().data_ptr() for p in parameters}
    seen = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            seen[storage.data_ptr()] = storage
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        result = function()
    assert result is not None
    return sum(storage.nbytes() for storage in seen.values())


SMALL = Transformer("small", layers=2, width=64, heads=4, vocabulary=50)
GATED = Transformer("gated", layers=2, width=64, heads=8, vocabulary=50, hidden=160, gated=True, tied=False)


@pytest.mark.parametrize("model", [SMALL, GATED], ids=lambda model: model.name)
@pytest.mark.parametrize(("batch", "tokens"), [(1, 16), (3, 32)])
def test_activations_are_those_that_autograd_keeps(model, batch, tokens):
    layer, x = Layer(model), torch.randn(batch, tokens, model.width, requires_grad=True)
    assert kept(lambda: layer(x), layer.parameters()) * model.layers == model.activations(batch, tokens)


def test_recomputation_keeps_inputs_and_one_layer():
    inputs, layer = 4 * 3 * 32 * 64, SMALL.activations(3, 32) / 2
    assert SMALL.activations(3, 32, recompute=True) == 2 * inputs + layer


@pytest.mark.parametrize("model", [SMALL, GATED], ids=lambda model: model.name)
def test_parameters_and_flops_are_those_of_a_module(model):
    layer = Layer(model)
    matrices = sum(p.numel() for p in layer.parameters() if p.dim() == 2)
    assert model.matrices == model.layers * matrices + model.vocabulary * model.width
    x = torch.randn(1, 16, model.width)
    with FlopCounterMode(display=False) as counter:
        layer(x)
    found = counter.get_total_flops()  # it has no rule for fused attention on a CPU
    scores = 4 * 16 * 16 * model.width
    unembedding = 2 * 16 * model.vocabulary * model.width
    assert model.forward_flops(16) == model.layers * (found + scores) + unembedding


@pytest.mark.parametrize(
    ("name", "parameters", "kv"),
    [
        ("GPT-3 175B", 174.6e9, 2 * 96 * 12288 * 2),
        ("Llama 3 8B", 8.03e9, 131_072),
        ("Llama 3 70B", 70.6e9, 327_680),
        ("Llama 3 405B", 405.8e9, 2 * 126 * 8 * 128 * 2),
    ],
)
def test_published_sizes(name, parameters, kv):
    assert MODELS[name].parameters == pytest.approx(parameters, rel=0.002)
    assert MODELS[name].kv_bytes(2) == kv


def test_both_precisions_take_16_bytes_per_parameter():
    for precision in budget.PRECISIONS:
        memory = budget.training(SMALL, 1, 16, precision=precision).memory
        assert memory["parameters"] + memory["gradients"] + memory["optimizer"] == 16 * SMALL.parameters


def test_devices_share_the_states_and_nothing_else():
    one, four = (budget.training(SMALL, 2, 16, devices=n) for n in (1, 4))
    for term in ("parameters", "gradients", "optimizer"):
        assert four.memory[term] == one.memory[term] / 4
    for term in ("activations", "logits"):
        assert four.memory[term] == one.memory[term]
    assert four.flops == one.flops == 3 * 2 * SMALL.forward_flops(16)
    assert one.total == sum(one.memory.values())


def test_recomputation_costs_a_forward_pass():
    plain, again = (budget.training(SMALL, 2, 16, recompute=flag) for flag in (False, True))
    assert again.flops == plain.flops * 4 / 3
    assert again.memory["activations"] < plain.memory["activations"]


def test_decoding_reads_weights_once_and_every_cache():
    model = MODELS["Llama 3 70B"]
    one, many = (budget.decoding(model, batch, 8192, itemsize=1) for batch in (1, 64))
    assert one.memory["KV cache"] == 8192 * 163_840
    assert many.bytes - one.bytes == 63 * 8192 * 163_840
    assert many.flops == 64 * one.flops
    roof = Roofline(1979e12, 3.35e12)
    assert one.bound(roof) == "memory"
    assert max(one.times(roof)) == one.bytes / 3.35e12


@pytest.mark.parametrize(
    ("devices", "recompute", "moved"),
    [
        # passes over 2-byte weights; 2 + 2 + 12 bytes of states read and written; activations and logits there and back
        (1, False, 3 * 2 * 101_504 + 2 * 16 * 101_504 + 2 * (133_120 + 6_400)),
        (4, False, 3 * 2 * 101_504 + 2 * 16 * 101_504 / 4 + 2 * (133_120 + 6_400)),
        (1, True, 4 * 2 * 101_504 + 2 * 16 * 101_504 + 2 * (133_120 + 6_400)),
    ],
)
def test_a_training_step_by_hand(devices, recompute, moved):
    step = budget.training(SMALL, batch=2, tokens=16, devices=devices, recompute=recompute)
    assert SMALL.parameters == 2 * 64 * (4 * 64 + 2 * 256) + 50 * 64 == 101_504
    layer = 2 * 2 * 16 * (64 + 5 * 64 + 2 * 64 + 2 * 256) + 4 * 2 * 16 * (4 + 4)
    assert layer == 66_560
    assert step.memory == {
        "parameters": 2 * 101_504 / devices,
        "gradients": 2 * 101_504 / devices,
        "optimizer": 12 * 101_504 / devices,
        "activations": 2 * 16 * 64 * 2 * 2 + layer if recompute else 2 * layer,
        "logits": 4 * 2 * 16 * 50,
    }
    assert step.bytes == moved
    assert step.flops == (4 if recompute else 3) * 2 * (2 * 101_504 * 16 + 4 * 2 * 64 * 16**2)


@pytest.mark.parametrize("devices", [1, 2])
def test_a_decoding_step_by_hand(devices):
    step = budget.decoding(GATED, batch=3, tokens=5, devices=devices)
    matrices = 2 * 64 * (4 * 64 + 3 * 160) + 50 * 64
    cache = 2 * 2 * 64 * 2  # keys and values, two layers, bfloat16
    assert step.memory == {"weights": 2 * (matrices + 50 * 64) / devices, "KV cache": 3 * 5 * cache / devices}
    assert step.flops == 3 * (2 * matrices + 4 * 2 * 64 * 5) / devices
    assert step.bytes == (2 * matrices + 3 * 5 * cache) / devices  # of the embedding a row a text


def test_the_models_are_those_of_their_papers():
    """Layers, width, heads, vocabulary, hidden, heads for keys and values, gated, tied."""
    assert {name: dataclasses.astuple(model)[1:] for name, model in MODELS.items()} == {
        "GPT-2 small": (12, 768, 12, 50_257, 3072, 12, False, True),
        "GPT-3 175B": (96, 12_288, 96, 50_257, 49_152, 96, False, True),
        "Llama 3 8B": (32, 4096, 32, 128_256, 14_336, 8, True, False),
        "Llama 3 70B": (80, 8192, 64, 128_256, 28_672, 8, True, False),
        "Llama 3 405B": (126, 16_384, 128, 128_256, 53_248, 8, True, False),
    }
    assert all(name == model.name for name, model in MODELS.items())


@pytest.mark.parametrize("field", ["layers", "width", "heads", "vocabulary"])
def test_sizes_are_at_least_1(field):
    least = {"layers": 1, "width": 1, "heads": 1, "vocabulary": 1}
    assert Transformer("least", **least).parameters == 1 + 4 + 8
    with pytest.raises(ValueError, match="least: sizes are at least 1"):
        Transformer("least", **least | {field: 0})


def test_errors_are_sentences():
    with pytest.raises(ValueError, match="the heads share the width evenly"):
        Transformer("odd", layers=1, width=10, heads=3, vocabulary=5)
    with pytest.raises(ValueError, match="no precision 'int4': take one of float32, mixed bfloat16"):
        budget.training(SMALL, 1, 1, precision="int4")


def test_examples():
    assert doctest.testmod(budget).failed == 0
