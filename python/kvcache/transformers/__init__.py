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

from ..checks import check_flag
from .attention import NAME, compute_attention, make_mask
from .cache import PagedCache
from .continuous import CONTINUOUS_NAME, compute_continuous_attention

__all__ = ["NAME", "PagedCache", "install"]


def install(continuous: bool = False) -> None:
    """Makes ``model.set_attn_implementation("kvcache")`` possible.

    Args:
        continuous: Whether to replace the attention ``"paged|eager"`` as well, which
            ``model.generate_batch`` accepts for continuous batching. It attends to each
            request alone, on transformers' cache.

    Raises:
        TypeError: ``continuous`` is not a flag.
    """
    check_flag(continuous=continuous)
    AttentionInterface.register(NAME, compute_attention)
    AttentionMaskInterface.register(NAME, make_mask)
    if continuous:
        AttentionInterface.register(CONTINUOUS_NAME, compute_continuous_attention)
