# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The matrix instructions of this processor."""

from __future__ import annotations

from .. import _native
from ..compilation.processors import WIDEST

_TILES = {"amx-tile", "amx-bf16"}


def choose_mma(features: set[str], opt_level: int) -> str:
    """Returns the option ``mma`` of ``kvcache-to-cpu`` for a processor's features.

    LLVM's features are those of ``cpuid`` that the operating system has enabled. The
    kernel is asked for its permission for tiles. Without it, and where LLVM can't keep
    tiles in registers because it does not optimize, products are those of vectors.
    """
    if not features >= WIDEST:
        return "fma"
    if features >= _TILES and _native.extension().request_tiles():
        return "amx" if opt_level else "fma"
    # Where dot products have half the rate of multiply-adds, there is AVX512-FP16.
    has_fast_dot = "avx512bf16" in features and "avx512fp16" not in features
    return "dot" if has_fast_dot else "fma"
