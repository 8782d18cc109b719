# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The matrix instructions of this processor."""

from __future__ import annotations

import functools

from .. import _native

_WIDEST = {"avx512f", "avx512bw", "avx512vl", "fma"}
_TILES = {"amx-tile", "amx-bf16"}


def choose_mma(opt_level: int) -> str:
    """Returns the option ``mma`` of ``kvcache-to-cpu`` for this processor.

    LLVM's features are those of ``cpuid`` that the operating system has enabled. The
    kernel's permission for tiles is asked for once. Without it, and where LLVM can't
    keep tiles in registers because it does not optimize, products are those of vectors.
    """
    chosen = _find_mma()
    return "fma" if chosen == "amx" and opt_level == 0 else chosen


@functools.cache
def _find_mma() -> str:
    extension = _native.extension()
    _, _, features = extension.host()
    supported = set(features.split("+"))
    if not supported >= _WIDEST:
        return "fma"
    if supported >= _TILES and extension.request_tiles():
        return "amx"
    # Where dot products have half the rate of multiply-adds, there is AVX512-FP16.
    has_fast_dot = "avx512bf16" in supported and "avx512fp16" not in supported
    return "dot" if has_fast_dot else "fma"
