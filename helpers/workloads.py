"""Ops to put under a roof: for each what it costs by formula, and how to run it."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F


@dataclass(frozen=True)
class Workload:
    """An op on inputs of certain shapes: FLOPs and bytes by formula, and `make`, which makes the inputs.

    `make(device)` returns a function without arguments that runs the op once. `memory` is about what that takes, in
    byte. FLOPs by the course's conventions: a matmul is 2mnk, a function such as tanh costs 1 per element. Bytes: each
    input read once, each output written once; for "eager" ops, that for each of the ops they are made of.
    """

    name: str
    shapes: tuple[tuple[int, ...], ...]
    dtype: str
    flops: int
    bytes: int
    memory: int
    make: Callable[[str | torch.device], Callable[[], Any]]

    @property
    def intensity(self) -> float:
        """FLOP per byte."""
        return self.flops / self.bytes


def gelu(x: Tensor) -> Tensor:
    """GELU in its tanh form, as eight eager ops: each reads its inputs from memory and writes its result there."""
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def workloads(
    dtype: str | torch.dtype = torch.float32,
    rows: int = 4096,
    sizes: tuple[int, ...] = (64, 128, 256, 512, 1024, 2048),
) -> tuple[Workload, ...]:
    """The ops of the course with their costs: elementwise ones and reductions on rows × rows, matmuls of many sizes.

    >>> [(work.name, round(work.intensity, 2)) for work in workloads("float32", sizes=(512,))][:3]
    [('ReLU', 0.12), ('GELU, fused', 1.12), ('GELU, eager', 0.11)]

    Attention is 8 heads of rows/4 tokens by 64; the MLP step is forward and backward of rows/16 examples through
    layers of rows/8, rows/2 and rows/8. Raises ValueError for fewer than 64 rows and for what is no floating dtype.
    """
    name = str(dtype).removeprefix("torch.")
    kind = getattr(torch, name, None)
    if not isinstance(kind, torch.dtype) or not kind.is_floating_point or kind.itemsize < 2:
        raise ValueError(f"no workloads in {name}: give a floating-point dtype of 2 bytes or more, such as float32")
    if rows < 64:
        raise ValueError(f"workloads have at least 64 rows, got {rows}")
    square, n, item = (rows, rows), rows * rows, kind.itemsize

    def op(
        name: str, run: Callable[..., Any], shapes: tuple[tuple[int, ...], ...], flops: int, moved: int, held: int = 0
    ) -> Workload:
        def make(device: str | torch.device) -> Callable[[], Any]:
            # Random numbers, written: memory that was never touched is no memory yet.
            inputs = [torch.randn(shape, device=device).to(kind) for shape in shapes]
            return lambda: run(*inputs)

        return Workload(
            name, shapes, str(kind).removeprefix("torch."), flops, moved * item, (held or moved) * item, make
        )

    heads, tokens, width = 8, rows // 4, 64
    batch, narrow, wide = rows // 16, rows // 8, rows // 2
    attention = (1, heads, tokens, width)
    return (
        op("ReLU", torch.relu, (square,), n, 2 * n),
        op("GELU, fused", lambda x: F.gelu(x, approximate="tanh"), (square,), 9 * n, 2 * n),
        # six ops with one input and two with two: 6 × 2 + 2 × 3
        op("GELU, eager", gelu, (square,), 8 * n, 18 * n, 4 * n),
        # the largest of each row, subtract, exp, sum, divide
        op("softmax", lambda x: F.softmax(x, -1), (square,), 5 * n - 2 * rows, 2 * n),
        op("layer norm", lambda x: F.layer_norm(x, x.shape[-1:]), (square,), 6 * n + 2 * rows, 2 * n),
        op("dot", torch.dot, ((n,), (n,)), 2 * n, 2 * n + 1),
        op("matrix-vector", torch.mv, (square, (rows,)), 2 * n, n + 2 * rows),
        *(op(f"matmul {size}", torch.mm, ((size, size),) * 2, 2 * size**3, 3 * size**2) for size in sizes),
        # its two matmuls; the softmax in between is a few per cent
        op(
            "attention",
            F.scaled_dot_product_attention,
            (attention,) * 3,
            4 * heads * tokens**2 * width,
            4 * heads * tokens * width,
        ),
        # two matmuls forward, three backward: the input needs no gradient. Then ReLU, its backward, and the loss.
        op(
            "MLP step",
            _mlp_step,
            ((batch, narrow), (narrow, wide), (wide, narrow)),
            10 * batch * narrow * wide + 2 * batch * wide + batch * narrow - 1,
            batch * narrow + 4 * narrow * wide,
            4 * narrow * wide + 4 * batch * wide,
        ),
    )


def _mlp_step(x: Tensor, first: Tensor, second: Tensor) -> tuple[Tensor, ...]:
    """Both weights' gradients of the sum of a two-layer network's outputs."""
    first, second = first.detach().requires_grad_(), second.detach().requires_grad_()
    return torch.autograd.grad((torch.relu(x @ first) @ second).sum(), (first, second))
