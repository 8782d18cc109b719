# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The attention and the mask ``"kvcache"``, which models call."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from transformers.masking_utils import causal_mask_function

from .models import absorb_queries, check_call, check_unchanged, project_values

NAME = "kvcache"
"""The name of the attention."""

_Function = TypeVar("_Function", bound=Callable[..., Any])


def graph_break(function: _Function) -> _Function:
    """Lets ``torch.compile`` call a function outside of its graphs."""
    outside: _Function = torch.compiler.disable(
        function,
        reason="a PagedCache assigns pages in Python, so it can't be in a graph of "
        "torch.compile: leave out fullgraph=True",
    )
    return outside


@dataclass(frozen=True)
class Call:
    """The arguments of a call of attention.

    Attributes:
        query: The queries, [batch, heads, tokens, dim].
        mask: The mask of padding, [batch, all tokens]; None without padding.
        scale: The factor of scores.
        window: The most tokens that a token sees; None for all.
        soft_cap: The bound of scores, or None.
        sinks: The logits of the sinks, f32 [heads], or None.
        chosen: The slots of the tokens that each query sees, as ``IndexKeys.choose``
            returns them; None for all.
    """

    query: Any
    mask: Any
    scale: float
    window: int | None
    soft_cap: float | None
    sinks: Any
    chosen: Any = None


# The arguments of the last ``update``, for the attention after it, and its cache, for
# layers without keys of their own. The last mask of padding, and the mask of one
# element in its place for a model with an indexer.
_thread = threading.local()


def publish_rows(cache: Any, layer: int, keys: Any, values: Any) -> None:
    """Keeps the new rows of a layer for the next call of attention in this thread."""
    _thread.rows = cache, layer, keys, values
    _thread.cache = cache


def get_padding_mask(mask: Any) -> Any:
    """The mask of padding of which ``make_mask`` has made a mask, or else the mask."""
    is_made = mask is not None and mask is getattr(_thread, "stand_in", None)
    return _thread.mask if is_made else mask


def get_last_mask() -> Any:
    """The mask of padding of the pass of this thread; None without padding."""
    return getattr(_thread, "mask", None)


def _acquire_rows(module: Any) -> tuple[Any, int, Any, Any]:
    """The cache, the layer, and its new rows; None for a layer that shares others."""
    rows, _thread.rows = getattr(_thread, "rows", None), None
    if rows is None and getattr(module, "is_kv_shared_layer", False):
        cache = getattr(_thread, "cache", None)
        rows = None if cache is None else (cache, int(module.layer_idx), None, None)
    if rows is None:
        raise ValueError(
            f"the attention {NAME!r} needs a PagedCache: pass one as 'past_key_values', "
            "without use_cache=False"
        )
    return rows


@graph_break
def compute_attention(
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
    **options: Any,
) -> tuple[Any, None]:
    """The attention ``"kvcache"``. Returns [batch, tokens, heads, dim], and no weights."""
    cache, layer, keys, values = _acquire_rows(module)
    check_call(module, dropout, options)
    scale = query.shape[-1] ** -0.5 if scaling is None else float(scaling)
    is_latent = cache.shape.rank is not None
    if not is_latent and keys is not None and cache.shape.entries is None:
        check_unchanged(module, (key, value), (keys, values))
    if is_latent:
        keys, values = torch.cat([keys, values], dim=-1), None
        query = absorb_queries(module, query)
    sinks = None if s_aux is None else s_aux.detach().float().contiguous()
    mask = get_padding_mask(attention_mask)
    chosen = options.get("indices", options.get("block_indices"))
    call = Call(query, mask, scale, sliding_window, softcap, sinks, chosen)
    out = cache.attend(layer, keys, values, call)
    return (project_values(module, out) if is_latent else out), None


@graph_break
def make_mask(
    batch_size: int,
    q_length: int,
    kv_length: int,
    attention_mask: Any = None,
    allow_is_causal_skip: bool = True,
    **options: Any,
) -> Any:
    """The mask ``"kvcache"``: of padding only, and None if the host sees none.

    A model that passes its mask to an indexer gets one of a single element.
    """
    is_causal = options.get("mask_function") is causal_mask_function
    if not allow_is_causal_skip and not is_causal:
        raise ValueError(
            f"the attention {NAME!r} is causal: other masks are not possible"
        )
    if not q_length:
        raise ValueError(
            f"expects tokens after the {kv_length} in the cache, got none: a cache "
            "continues its rows, so reset() it before other prompts"
        )
    _thread.mask = _find_padding(attention_mask, kv_length)
    if allow_is_causal_skip:
        return _thread.mask
    _thread.stand_in = torch.ones(1, 1, 1, 1, dtype=torch.bool)
    return _thread.stand_in


def _find_padding(mask: Any, columns: int) -> Any:
    """The mask of the last columns; None if the host sees no padding."""
    if mask is None:
        return None
    mask = mask[:, -columns:]
    if mask.device.type != "cpu":
        return mask  # a look at its elements would wait for the device
    return None if mask.shape[1] == columns and mask.all() else mask
