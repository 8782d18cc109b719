# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""FlashAttention's functions for caches, with its arguments and their meaning."""

from __future__ import annotations

from typing import Any

import torch

from .flash_checks import (
    check_cache,
    check_device,
    check_length,
    check_lengths,
    check_new_rows,
    check_offsets,
    check_queries,
    check_shape,
    narrow,
    parse_table,
    refuse,
)
from .flash_rules import HeadNumbers, Rule
from .flash_steps import (
    PackedKeys,
    Pages,
    Queries,
    append,
    attend,
    make_offsets,
)

_ROTARY = "apply the rotary embedding to 'q' and 'k' before, or use kvcache.ops.append"
_LEFTPAD = "the first key of a sequence is the first of its first page"
_DROPOUT = "attention to a cache has no dropout"


def flash_attn_with_kvcache(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    k: torch.Tensor | None = None,
    v: torch.Tensor | None = None,
    rotary_cos: torch.Tensor | None = None,
    rotary_sin: torch.Tensor | None = None,
    cache_seqlens: int | torch.Tensor | None = None,
    cache_batch_idx: torch.Tensor | None = None,
    cache_leftpad: torch.Tensor | None = None,
    block_table: torch.Tensor | None = None,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    rotary_interleaved: bool = True,
    alibi_slopes: torch.Tensor | None = None,
    num_splits: int = 0,
    return_softmax_lse: bool = False,
    *,
    s_aux: torch.Tensor | None = None,
) -> Any:
    """Attends to a cache after it has appended new keys and values in place.

    The last query is aligned with the last key: query ``i`` of ``n`` is at position
    ``i + keys - n``. All tensors are on one device, a CPU or a GPU, and have no
    gradients. On a GPU, nothing waits for it, so page ids and lengths are not checked.

    Args:
        q: The queries, [batch, seqlen_q, heads, head_dim], of float16, bfloat16 or
            float32.
        k_cache: The keys, [pages, page_size, kv_heads, head_dim] with ``block_table``,
            or [cache_batch, seqlen_cache, kv_heads, head_dim]. Of the dtype of ``q``.
            The elements of a head are contiguous.
        v_cache: The values, as ``k_cache``.
        k: New keys, [batch, seqlen_new, kv_heads, head_dim], stored after
            ``cache_seqlens`` tokens; None for no new keys.
        v: New values, as ``k``.
        rotary_cos: None; others are an error.
        rotary_sin: None; others are an error.
        cache_seqlens: Tokens in the cache before new ones: a number, or int32 or int64
            [batch]. None if the cache is full. It is not changed.
        cache_batch_idx: The index of each sequence in the first dimension of the cache,
            int32 or int64 [batch]. Only without ``block_table``. Two sequences may have
            the same index if they only read.
        cache_leftpad: None; others are an error.
        block_table: The pages of each sequence, int32 or int64 [batch, columns]. Entries
            after its last token may be anything.
        softmax_scale: The factor of scores, ``head_dim ** -0.5`` by default.
        causal: Whether a query sees no later keys.
        window_size: The number of keys before and after its position that a query sees,
            besides the one at it; -1 for all. If a query sees later keys, no sequence
            has fewer keys than queries. On a GPU, that is not checked.
        softcap: The bound of scores; 0 for none.
        rotary_interleaved: Has no effect without rotary embeddings.
        alibi_slopes: The slopes of ALiBi, float32 [heads] or [batch, heads]. A score
            becomes ``score - slope * abs(query position - key position)``. Unless
            causal, no sequence has fewer keys than queries, as for ``window_size``.
        num_splits: On a GPU, the most splits of a sequence's keys in a step of one
            query per sequence; 0 if the operation chooses. Results are the same.
        return_softmax_lse: Whether to return logarithms as well.
        s_aux: The logits of the sinks, [heads], of bfloat16, float16 or float32: each
            joins the denominators of its head. An argument of vLLM's FlashAttention 3.

    Returns:
        The outputs, as ``q``; zeros for a query without keys. With
        ``return_softmax_lse``, also the natural logarithms of the denominators, float32
        [batch, heads, seqlen_q]. The one of a query without keys is the logit of its
        sink, or -inf.

    Raises:
        ValueError: Sizes, dtypes or devices contradict each other, or an argument is not
            supported. In host memory, also a page id that the cache lacks, or a sequence
            without room.
        TypeError: An argument is no tensor.
    """
    refuse("rotary_cos", rotary_cos, None, _ROTARY)
    refuse("rotary_sin", rotary_sin, None, _ROTARY)
    refuse("cache_leftpad", cache_leftpad, None, _LEFTPAD)
    check_queries(q, "[batch, seqlen_q, heads, head_dim]", 4)
    check_cache(q, k_cache=k_cache, v_cache=v_cache)
    batch, rows, heads, _ = q.shape
    new = check_new_rows(q, k_cache, k=k, v=v)
    if block_table is None:
        pages = Pages.from_rows(k_cache, v_cache, cache_batch_idx, batch, new > 0)
    else:
        refuse("cache_batch_idx", cache_batch_idx, None, "'block_table' has the pages")
        pages = Pages(k_cache, v_cache, parse_table(q, block_table, batch))
    before = _expand_lengths(q, cache_seqlens, new, pages.most)
    check_lengths("cache_seqlens", before, new, pages.most)
    after = before + new if new else before
    pages.check_ids(after)
    extra = HeadNumbers.of(q, alibi_slopes, s_aux, batch)
    rule = Rule.of(causal, window_size, softcap, extra)
    inputs = None
    if k is not None and v is not None and new and batch:
        appended = append(pages, before, k, v)
        inputs = appended if new == rows else None
    offsets = make_offsets(batch, rows, q.device)
    queries = Queries(q.reshape(-1, *q.shape[2:]), offsets, rows, new, has_padding=False)
    out, lse = attend(
        queries,
        pages,
        after,
        rule,
        softmax_scale,
        extra,
        num_splits,
        needs_lse=return_softmax_lse,
        inputs=inputs,
    )
    out = out.view(q.shape)
    if not return_softmax_lse:
        return out
    return out, lse.view(batch, rows, heads).transpose(1, 2).contiguous()


def flash_attn_varlen_func(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: torch.Tensor | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
    block_table: torch.Tensor | None = None,
    *,
    s_aux: torch.Tensor | None = None,
) -> Any:
    """Attends for sequences of different lengths, one after another.

    Arguments that ``flash_attn_with_kvcache`` has as well mean the same.

    Args:
        q: The queries, [total_q, heads, head_dim].
        k: The keys, [total_k, kv_heads, head_dim], or [pages, page_size, kv_heads,
            head_dim] with ``block_table``.
        v: The values, as ``k``.
        cu_seqlens_q: The first query of each sequence, and the end of the last one,
            int32 [batch + 1].
        cu_seqlens_k: The first key of each sequence, as ``cu_seqlens_q``. Also with
            ``block_table``, where only the differences count.
        max_seqlen_q: An upper bound of the queries of a sequence.
        max_seqlen_k: An upper bound of the keys of a sequence.
        dropout_p: 0; others are an error.
        softmax_scale: As in ``flash_attn_with_kvcache``.
        causal: As in ``flash_attn_with_kvcache``.
        window_size: As in ``flash_attn_with_kvcache``.
        softcap: As in ``flash_attn_with_kvcache``.
        alibi_slopes: As in ``flash_attn_with_kvcache``.
        deterministic: Has no effect: there is no backward pass.
        return_attn_probs: Whether to return logarithms as well.
        block_table: As in ``flash_attn_with_kvcache``.
        s_aux: As in ``flash_attn_with_kvcache``.

    Returns:
        The outputs, as ``q``. With ``return_attn_probs``, a tuple of the outputs, the
        logarithms, float32 [heads, total_q], and None for the probabilities, which
        FlashAttention returns only with dropout.

    Raises:
        ValueError: As ``flash_attn_with_kvcache``; or offsets decrease, or a bound is too
            small, if they are in host memory.
        TypeError: An argument is no tensor.
    """
    refuse("dropout_p", dropout_p, 0.0, _DROPOUT)
    check_queries(q, "[total_q, heads, head_dim]", 3)
    check_device(q, cu_seqlens_q=cu_seqlens_q, cu_seqlens_k=cu_seqlens_k)
    check_offsets("cu_seqlens_q", cu_seqlens_q, len(q), "max_seqlen_q", max_seqlen_q)
    batch = len(cu_seqlens_q) - 1
    check_shape("cu_seqlens_k", cu_seqlens_k, (batch + 1,))
    keys: Pages | PackedKeys
    if block_table is None:
        check_cache(q, rank=3, k=k, v=v)
        check_offsets("cu_seqlens_k", cu_seqlens_k, len(k), "max_seqlen_k", max_seqlen_k)
        keys = PackedKeys(k, v, cu_seqlens_k.int().contiguous())
    else:
        check_cache(q, k=k, v=v)
        check_offsets("cu_seqlens_k", cu_seqlens_k, None, "max_seqlen_k", max_seqlen_k)
        keys = Pages(k, v, parse_table(q, block_table, batch))
    lengths = narrow(cu_seqlens_k.diff())
    check_lengths("cu_seqlens_k", lengths, 0, keys.most)
    keys.check_ids(lengths)
    extra = HeadNumbers.of(q, alibi_slopes, s_aux, batch)
    rule = Rule.of(causal, window_size, softcap, extra)
    queries = Queries(q, cu_seqlens_q.int().contiguous(), int(max_seqlen_q))
    out, lse = attend(
        queries, keys, lengths, rule, softmax_scale, extra, needs_lse=return_attn_probs
    )
    if not return_attn_probs:
        return out
    return out, lse.transpose(0, 1).contiguous(), None


def _expand_lengths(
    q: torch.Tensor, lengths: int | torch.Tensor | None, new: int, most: int
) -> torch.Tensor:
    """The tokens of each sequence in the cache before new ones, int32 [batch]."""
    batch = q.shape[0]
    if lengths is None or isinstance(lengths, int):
        number = most - new if lengths is None else lengths
        check_length("cache_seqlens", number, new, most)
        return torch.full((batch,), number, dtype=torch.int32, device=q.device)
    check_device(q, cache_seqlens=lengths)
    check_shape("cache_seqlens", lengths, (batch,))
    return narrow(lengths).contiguous()
