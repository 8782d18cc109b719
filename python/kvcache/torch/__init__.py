# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled functions as operators of PyTorch, and FlashAttention's functions.

Needs PyTorch: ``pip install kvcache[torch]``.
"""

from __future__ import annotations

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"kvcache.torch needs PyTorch: run 'pip install kvcache[torch]' ({error})"
    ) from error

from .flash_attention import flash_attn_varlen_func, flash_attn_with_kvcache
from .operators import op

__all__ = ["flash_attn_varlen_func", "flash_attn_with_kvcache", "op"]
