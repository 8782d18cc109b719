# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tokens of a sequence that later tokens reach, in the layers of a group.

``reach`` of ``KVCacheParams`` is ``full``, ``state``, ``window(1024, sinks=4)`` or
``chunk(8192)``. The manager frees the pages that no later token reaches.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..checks import check_integer, check_positive


@dataclass(frozen=True)
class Reach:
    """The tokens in a cache that the tokens from a position on can reach.

    ``full``, ``window``, ``chunk`` and ``state`` make them.

    Attributes:
        kind: ``"full"``, ``"window"``, ``"chunk"`` or ``"state"``.
        tokens: The size of a window or chunk; 0 for other kinds.
        sinks: The first tokens of a sequence, which a window always reaches.
    """

    kind: str = "full"
    tokens: int = 0
    sinks: int = 0

    @property
    def is_full(self) -> bool:
        return self.kind == "full"

    @property
    def is_state(self) -> bool:
        return self.kind == "state"

    def first(self, length: int) -> int:
        """The first token after the sinks that tokens from ``length`` on may reach."""
        if self.kind == "window":
            return max(length - self.tokens + 1, 0)
        if self.kind == "chunk":
            return length // self.tokens * self.tokens
        return 0

    def __repr__(self) -> str:
        if self.kind in ("full", "state"):
            return f"kvcache.reach.{self.kind}"
        sinks = f", sinks={self.sinks}" if self.sinks else ""
        return f"kvcache.reach.{self.kind}({self.tokens}{sinks})"


full = Reach()
"""All tokens up to its own."""

state = Reach("state")
"""One block per sequence, which summarizes all tokens so far: a recurrent state."""


def window(tokens: int, *, sinks: int = 0) -> Reach:
    """The last ``tokens``, including its own, and the first ``sinks`` of the sequence."""
    check_positive(tokens=tokens)
    check_integer(sinks=sinks)
    if sinks < 0:
        raise ValueError(f"expects 'sinks' not to be negative, got {sinks}")
    return Reach("window", int(tokens), int(sinks))


def chunk(tokens: int) -> Reach:
    """The tokens of its own chunk; chunks begin at multiples of ``tokens``."""
    check_positive(tokens=tokens)
    return Reach("chunk", int(tokens))
