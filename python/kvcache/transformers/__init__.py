# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models of Hugging Face transformers on paged caches, on the CPU and on GPUs.

``install`` registers the attention ``"kvcache"``. Pass a ``PagedCache`` to ``generate``
as ``past_key_values``. Needs ``pip install kvcache[transformers]``.
"""

from __future__ import annotations

try:
    import torch as _torch  # noqa: F401
    from transformers import AttentionInterface, AttentionMaskInterface
except ImportError as error:
    raise ImportError(
        "kvcache.transformers needs PyTorch and transformers: run 'pip install "
        f"kvcache[transformers]' ({error})"
    ) from error

from .attention import NAME, compute_attention, make_mask
from .cache import PagedCache

__all__ = ["NAME", "PagedCache", "install"]


def install() -> None:
    """Makes ``model.set_attn_implementation("kvcache")`` possible."""
    AttentionInterface.register(NAME, compute_attention)
    AttentionMaskInterface.register(NAME, make_mask)
