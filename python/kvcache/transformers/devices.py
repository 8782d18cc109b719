# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The device of a model's cache, and the operations for it."""

from __future__ import annotations

from typing import Any

import torch
import transformers

from .. import ops
from ..cache.params import KVCacheParams


def find_device(model: Any, device: Any) -> torch.device:
    """The device of a cache: that of the model, unless one is given.

    Raises ``ValueError`` for a device that is neither a CPU nor a GPU of CUDA.
    """
    if device is None:
        is_model = isinstance(model, transformers.PreTrainedModel)
        device = model.device if is_model else "cpu"
    found = torch.device(device)
    if found.type not in ("cpu", "cuda"):
        raise ValueError(f"expects 'device' to be a CPU or a CUDA device, got {found}")
    if found.type == "cuda" and found.index is None:
        found = torch.device("cuda", torch.cuda.current_device())
    return torch.device("cpu") if found.type == "cpu" else found


def find_target(device: torch.device, target: str | None) -> str:
    """The target of kernels for a device, unless one is given.

    Raises ``ValueError`` for a target that runs in other memory.
    """
    if target is None:
        return device.type
    if str(target).startswith("cuda") != (device.type == "cuda"):
        raise ValueError(
            f"expects 'target' to be for memory of {device}, got {target!r}"
        )
    return target


class Kernels:
    """The operations on a cache, compiled at their first use.

    Args:
        params: The parameters of the cache.
        target: The target, as in ``jit``.
        max_batch_size: The most sequences of a step.
        max_seq_len: The most tokens of a sequence.
    """

    def __init__(
        self, params: KVCacheParams, target: str, max_batch_size: int, max_seq_len: int
    ) -> None:
        self._params, self._target = params, target
        self._bounds = {"max_batch_size": max_batch_size, "max_seq_len": max_seq_len}
        self._made: dict[Any, Any] = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> Kernels:
        return self

    def append(self, dtype: str) -> Any:
        """The operation that appends rows of a type."""
        if dtype not in self._made:
            self._made[dtype] = ops.append(self._params, self._target, dtype)
        return self._made[dtype]

    def attention(self, dtype: str, is_decode: bool, **options: Any) -> Any:
        """Attention for queries of a type; ``options`` are those of ``ops.attention``.

        A decode step on a GPU splits the tokens of a sequence.
        """
        if is_decode:
            options |= self._bounds
        key = dtype, *options.items()
        if key not in self._made:
            self._made[key] = ops.attention(
                self._params, target=self._target, dtype=dtype, **options
            )
        return self._made[key]
