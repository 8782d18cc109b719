# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The keys that queries of FlashAttention's functions see, and changes of their scores."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import torch

from ..ops.arguments import check_factor
from .flash_checks import DTYPES, check_floats

_ALL_KEYS = 2**31 - 1  # more than a sequence has


@dataclass(frozen=True)
class HeadNumbers:
    """The tensors with a number for each head.

    Attributes:
        slopes: The slopes of ALiBi, float32 [heads] or [batch, heads]; None for none.
        sinks: The logits of the sinks, [heads]; None for none.
    """

    slopes: Any
    sinks: Any

    @classmethod
    def of(cls, q: Any, slopes: Any, sinks: Any, batch: int) -> HeadNumbers:
        """Checks FlashAttention's arguments."""
        heads = int(q.shape[-2])
        if slopes is not None:
            check_floats(q, "alibi_slopes", slopes, torch.float32)
            _check_sizes("alibi_slopes", slopes, (heads,), (batch, heads))
        if sinks is not None:
            check_floats(q, "s_aux", sinks, *DTYPES)
            _check_sizes("s_aux", sinks, (heads,))
        return cls(slopes, sinks)

    @property
    def sinks_type(self) -> str:
        return "" if self.sinks is None else DTYPES[self.sinks.dtype]

    def make_logarithms(self, q: Any) -> Any:
        """The logarithms of queries [total, heads, head_dim] without keys, float32."""
        lse = q.new_full(q.shape[:2], -math.inf, dtype=torch.float32)
        return lse if self.sinks is None else lse.copy_(self.sinks)

    def make_arguments(self, batch: int, heads: int) -> dict[str, Any]:
        """The arguments of the operation."""
        arguments = {}
        if self.slopes is not None:
            arguments["slopes"] = self.slopes.expand(batch, heads).contiguous()
        if self.sinks is not None:
            arguments["sinks"] = self.sinks.contiguous()
        return arguments


def _check_sizes(name: str, tensor: Any, *shapes: tuple[int, ...]) -> None:
    if tuple(tensor.shape) not in shapes:
        wanted = " or ".join(str(list(shape)) for shape in shapes)
        raise ValueError(f"expects {name!r} of {wanted}, got {list(tensor.shape)}")


@dataclass(frozen=True)
class Rule:
    """The keys that a query sees, and the changes of its scores.

    Attributes:
        left: The number of keys before its position that a query sees; None for all.
        right: The number of keys after its position that it sees; None for all.
        soft_cap: The bound of scores; None for none.
        has_slopes: Whether distances from its position lower the scores.
        sinks: The type of the logits of sinks; empty for none.
    """

    left: int | None
    right: int | None
    soft_cap: float | None
    has_slopes: bool
    sinks: str

    @classmethod
    def of(cls, causal: bool, window: Any, softcap: float, extra: HeadNumbers) -> Rule:
        """Checks FlashAttention's arguments."""
        if not isinstance(window, tuple | list) or len(window) != 2:
            raise ValueError(f"expects 'window_size' to be two numbers, got {window!r}")
        if not all(isinstance(size, int) and size >= -1 for size in window):
            raise ValueError(
                f"expects 'window_size' of numbers from -1 on, got {tuple(window)}"
            )
        softcap = check_factor("softcap", softcap)
        if softcap < 0:
            raise ValueError(f"expects 'softcap' not to be negative, got {softcap}")
        left, right = (size if 0 <= size < _ALL_KEYS else None for size in window)
        right = 0 if causal else right
        has_slopes = extra.slopes is not None
        return cls(left, right, softcap or None, has_slopes, extra.sinks_type)

    @property
    def has_positions(self) -> bool:
        """Whether the position of a query matters."""
        return self.has_slopes or self.left is not None or self.right is not None

    def for_last_query(self) -> Rule:
        """The rule of queries at the last key, which have no later keys."""
        right = None if self.left is None else 0
        return replace(self, right=right)

    @property
    def options(self) -> dict[str, Any]:
        """The options of ``ops.attention``."""
        options: dict[str, Any] = {"causal": self.right == 0, "soft_cap": self.soft_cap}
        if self.right == 0 and self.left is not None:
            options["window"] = self.left + 1
        elif self.left is not None or self.right:
            options["mask"] = _make_mask(self.left, self.right)
        if self.has_slopes:
            options["score"] = _subtract_distance
            options["arrays"] = {"slopes": "f32[?, ?]"}
        if self.sinks:
            options["sinks"] = self.sinks
        return options


def _make_mask(left: int | None, right: int | None) -> Any:
    def mask(sequence: Any, head: Any, query: Any, key: Any) -> Any:
        seen = True
        if left is not None:
            seen = key >= query - left
        if right is not None:
            seen = (key <= query + right) & seen
        return seen

    return mask


def _subtract_distance(
    s: Any, sequence: Any, head: Any, query: Any, key: Any, slopes: Any
) -> Any:
    return s - slopes[sequence, head] * abs(query - key)
