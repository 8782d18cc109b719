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
