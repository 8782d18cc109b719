"""The operators in PyTorch that vLLM's engine needs on a GPU, in place of its compiled ones.

The pack has this file as ``vllm._C_stable_libtorch``.
"""

from __future__ import annotations

import torch

_LIBRARY = torch.library.Library("_C", "FRAGMENT")


def silu_and_mul(out: torch.Tensor, input: torch.Tensor) -> None:
    """Writes silu of the first half of the columns, times the other half."""
    gate, up = input.chunk(2, -1)
    out.copy_(torch.nn.functional.silu(gate) * up)


def _normalize(rows: torch.Tensor, weight: torch.Tensor | None, epsilon: float) -> torch.Tensor:
    values = rows.float()
    values = values * torch.rsqrt(values.square().mean(-1, keepdim=True) + epsilon)
    return values.to(rows.dtype) if weight is None else values.to(rows.dtype) * weight


def rms_norm(out: torch.Tensor, input: torch.Tensor, weight: torch.Tensor | None, epsilon: float) -> None:
    """Writes rows that are divided by their root mean square."""
    out.copy_(_normalize(input, weight, epsilon))


def fused_add_rms_norm(
    input: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor | None, epsilon: float
) -> None:
    """Adds the input to the residual, and writes the sum's normalized rows over the input."""
    residual.add_(input)
    input.copy_(_normalize(residual, weight, epsilon))


for _schema, _function in (
    ("silu_and_mul(Tensor(a!) out, Tensor input) -> ()", silu_and_mul),
    ("rms_norm(Tensor(a!) out, Tensor input, Tensor? weight, float epsilon) -> ()", rms_norm),
    (
        "fused_add_rms_norm(Tensor(a!) input, Tensor(b!) residual, Tensor? weight, float epsilon) -> ()",
        fused_add_rms_norm,
    ),
):
    _LIBRARY.define(_schema)
    _LIBRARY.impl(_schema.partition("(")[0], _function, "CompositeExplicitAutograd")
