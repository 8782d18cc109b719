# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The workspaces of attention in an engine that captures graphs."""

from __future__ import annotations

from typing import Any

import torch


class Workspaces:
    """The workspaces of operations, one for each.

    Earlier ones are kept, because graphs may use them.

    Attributes:
        batch: The sequences that a new workspace is for, at least. An engine sets the
            most that its graphs have, before it captures one.
    """

    def __init__(self, batch: int, device: Any) -> None:
        self.batch = batch
        self._device = device
        self._tensors: dict[Any, list[Any]] = {}

    def take(self, operation: Any, batch: int) -> Any:
        """The workspace for ``batch`` sequences, int8; None without splits."""
        tensors = self._tensors.setdefault(operation, [])
        size = operation.workspace_size(max(batch, 1))
        if size and (not tensors or tensors[-1].shape[0] < size):
            size = operation.workspace_size(max(batch, self.batch))
            zeros = torch.zeros(size, dtype=torch.int8, device=self._device)
            tensors.append(zeros)
        return tensors[-1] if tensors else None
