# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How the caches of sequences are kept."""

from __future__ import annotations

from enum import Enum


class KVCacheStrategy(str, Enum):
    """How the cache of a sequence is kept."""

    MODEL_DEFAULT = "model_default"
    """As the model wants it; paged, wherever there is a page size."""

    CONTINUOUS = "continuous"
    """A block as long as the longest sequence for each. Deprecated: use ``PAGED``."""

    PAGED = "paged"
    """Pages of a fixed number of tokens, found through a lookup table."""

    def kernel_substring(self) -> str:
        """What the names of this strategy's kernels have in common."""
        return "continuous_batching" if self is self.CONTINUOUS else self.value

    def uses_opaque(self) -> bool:
        """Whether kernels take the cache as one value, which is always so."""
        return True


def default_strategy(page_size: int | None) -> KVCacheStrategy:
    """The strategy of a cache that names none."""
    if page_size is None:
        return KVCacheStrategy.CONTINUOUS
    return KVCacheStrategy.PAGED


def parse_strategy(strategy: KVCacheStrategy | str) -> KVCacheStrategy:
    """A strategy by its name. Raises ``ValueError`` for another name."""
    try:
        return KVCacheStrategy(strategy)
    except ValueError:
        known = ", ".join(repr(member.value) for member in KVCacheStrategy)
        raise ValueError(
            f"expects 'cache_strategy' to be one of {known}, got {strategy!r}"
        ) from None
