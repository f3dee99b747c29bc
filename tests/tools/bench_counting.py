"""What counting GPT-3 175B costs, forward and backward, beside FlopCounterMode: `python -m tests.tools.bench_counting`.

The model lives on the meta device, so only the counting and PyTorch's own bookkeeping take time. Plain runs, runs
under FlopCounterMode and counts are interleaved; medians are compared.
"""

import statistics
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from helpers import units
from helpers.counting import Cost, count

VOCAB, CONTEXT = 50257, 2048


class Block(nn.Module):
    """Pre-norm attention and MLP."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norms[0](x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norms[1](x)), approximate="tanh"))


class GPT(nn.Module):
    """A decoder with tied embeddings."""

    def __init__(self, layers: int, width: int, heads: int) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCAB, width), nn.Embedding(CONTEXT, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]]
        return F.linear(self.norm(self.blocks(x)), self.tokens.weight)


def training_step(layers: int) -> Callable[[], None]:
    """One forward and backward pass of GPT-3 175B with that many of its 96 layers, on meta."""
    with torch.device("meta"):
        model = GPT(layers, 12288, 96)
        tokens = torch.zeros(1, CONTEXT, dtype=torch.long)

    def step() -> None:
        model.zero_grad()  # drops the gradients of the run before; those of this one remain
        F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()).backward()

    return step


def seconds(run: Callable[[], object]) -> float:
    """Of this process on a CPU core, so that a neighbour does not spoil the comparison."""
    start = time.process_time()
    run()
    return time.process_time() - start


def flop_counter(step: Callable[[], None]) -> int:
    with FlopCounterMode(display=False) as mode:
        step()
    return mode.get_total_flops()


def compare(layers: int, rounds: int) -> tuple[Cost, list[object]]:
    step = training_step(layers)
    cost, theirs = count(step), flop_counter(step)  # and a warm-up
    times = [(seconds(step), seconds(lambda: flop_counter(step)), seconds(lambda: count(step))) for _ in range(rounds)]
    plain, other, ours = (statistics.median(column) for column in zip(*times, strict=True))
    calls = sum(row.calls for row in cost.ops)
    return cost, [
        layers, calls, units.duration(plain), units.duration(other), units.duration(ours), f"{ours / other:.2f}",
        units.si((ours - plain) / calls, "s"), f"{cost.flops / theirs:.4f}",
    ]  # fmt: skip


def main() -> None:
    """Print the table."""
    columns = [
        "layers",
        "ops",
        "plain",
        "FlopCounterMode",
        "count",
        "ratio",
        "added per op",
        "FLOPs ratio",
    ]
    costs, rows = zip(*(compare(layers, rounds=5) for layers in (12, 24, 48, 96)), strict=True)
    print(units.table(columns, rows))
    print(f"\nGPT-3 175B, {CONTEXT} tokens, forward and backward:\n{costs[-1]}")


if __name__ == "__main__":
    main()
