# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The strategies of memory for caches."""

from __future__ import annotations

from enum import Enum


class KVCacheStrategy(str, Enum):
    """How the memory of a cache is divided among sequences: pages, or one block each."""

    MODEL_DEFAULT = "model_default"
    """The model's default; paged with a page size."""

    CONTINUOUS = "continuous"
    """One block per sequence, as long as the longest. Deprecated: use ``PAGED``."""

    PAGED = "paged"
    """Pages of a fixed number of tokens, found through a lookup table."""

    def kernel_substring(self) -> str:
        """The common part of the names of this strategy's kernels."""
        return "continuous_batching" if self is self.CONTINUOUS else self.value

    def uses_opaque(self) -> bool:
        """Whether kernels take the cache as one value; always True."""
        return True


def default_strategy(page_size: int | None) -> KVCacheStrategy:
    """The default strategy of a cache."""
    if page_size is None:
        return KVCacheStrategy.CONTINUOUS
    return KVCacheStrategy.PAGED


def parse_strategy(strategy: KVCacheStrategy | str) -> KVCacheStrategy:
    """Parses the name of a strategy. Raises ``ValueError`` for an unknown name."""
    try:
        return KVCacheStrategy(strategy)
    except ValueError:
        known = ", ".join(repr(member.value) for member in KVCacheStrategy)
        raise ValueError(
            f"expects 'cache_strategy' to be one of {known}, got {strategy!r}"
        ) from None
