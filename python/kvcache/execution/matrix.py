# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The matrix instructions of this processor."""

from __future__ import annotations

from dataclasses import replace

from .. import _native
from ..compilation.processors import WIDEST, Level

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
        return _limit_mma("amx", opt_level)
    # Where dot products have half the rate of multiply-adds, there is AVX512-FP16.
    has_fast_dot = "avx512bf16" in features and "avx512fp16" not in features
    return "dot" if has_fast_dot else "fma"


def limit_level(level: Level, opt_level: int, threads: int) -> Level:
    """Returns the level with threads, and with matrix instructions that LLVM supports at
    this optimization level."""
    return replace(level, mma=_limit_mma(level.mma, opt_level), threads=threads)


def _limit_mma(mma: str, opt_level: int) -> str:
    return "fma" if mma == "amx" and not opt_level else mma
