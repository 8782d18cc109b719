# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The attention of transformers' continuous batching, on its own cache."""

from __future__ import annotations

from typing import Any

from ..torch import flash_attn_varlen_func
from .attention import graph_break
from .models import check_call

CONTINUOUS_NAME = "paged|eager"
"""The name of transformers whose attention is replaced: others are not accepted."""


@graph_break
def compute_continuous_attention(
    module: Any,
    query: Any,
    key: Any,
    value: Any,
    attention_mask: Any,
    scaling: float | None = None,
    dropout: float = 0.0,
    sliding_window: int | None = None,
    softcap: float | None = None,
    s_aux: Any = None,
    cache: Any = None,
    **options: Any,
) -> tuple[Any, None]:
    """Attends to each request alone, without the mask of all requests.

    The cache of transformers stores new rows, and gathers those of each request.

    Args:
        module: The attention of the model.
        query: The queries of all requests, [1, heads, tokens, dim].
        key: The new keys, [1, kv_heads, tokens, dim].
        value: The new values, as the keys.
        attention_mask: Not used: each request is causal, perhaps with a window.
        scaling: The factor of scores, ``dim ** -0.5`` by default.
        dropout: 0; others are an error.
        sliding_window: The most tokens that a token sees, or None.
        softcap: The bound of scores, or None.
        s_aux: None; sinks are an error.
        cache: The ``PagedAttentionCache`` of ``generate_batch``.
        options: The other arguments of ``generate_batch``.

    Returns:
        The outputs, [1, tokens, heads, dim], and None for the weights.

    Raises:
        ValueError: There is no such cache, or the model has sinks or is not causal.
    """
    if cache is None:
        raise ValueError(
            f"the attention {CONTINUOUS_NAME!r} needs the cache of generate_batch: for "
            "generate, use 'kvcache' and a PagedCache"
        )
    if s_aux is not None or hasattr(module, "sinks"):
        raise ValueError(f"{type(module).__name__} has sinks: use generate instead")
    options.pop("is_causal", None)  # False, as the mask is causal
    check_call(module, dropout, options)
    key, value = cache.update(
        key_states=key, value_states=value, layer_idx=module.layer_idx, kwargs=options
    )
    q, k, v = (rows.squeeze(0).transpose(0, 1) for rows in (query, key, value))
    out = flash_attn_varlen_func(
        q,
        k,
        v,
        options["cu_seq_lens_q"],
        options["cu_seq_lens_k"],
        options["max_length_q"],
        options["max_length_k"],
        softmax_scale=scaling,
        causal=True,
        window_size=(-1 if sliding_window is None else sliding_window - 1, 0),
        softcap=softcap or 0.0,
    )
    return out.unsqueeze(0), None
