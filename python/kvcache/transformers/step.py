# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A forward pass of a model on a paged cache."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..pages.inputs import StepInputs
from .compression import EntryStep


@dataclass
class Step:
    """The tokens of a forward pass.

    Attributes:
        inputs: The inputs of the manager; None if all tokens are padding.
        tokens: The indices of the tokens that are not padding, as ``find_tokens`` has
            them, in the memory of the cache; None without padding.
        entries: The inputs of a model with compressed entries.
        layers: The layers that have attended to the tokens already.
    """

    inputs: StepInputs | None
    tokens: Any
    entries: EntryStep | None = None
    layers: set[int] = field(default_factory=set)
