# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole-cache operations as functions on arrays: compiled once, called often.

A function of this module returns an operation, such as ``Append``. Call the operation
with ``StepInputs``, a layer and arrays. It is compiled at its first call, and stored on
disk for later processes. Calls with equal arguments return the same operation.

Examples:
    >>> import numpy as np
    >>> import kvcache
    >>> params = kvcache.KVCacheParams(
    ...     "f32", n_kv_heads=1, head_dim=32, page_size=16, total_num_layers=1
    ... )
    >>> step = kvcache.StepInputs.of(
    ...     blocks=np.zeros((4, 2, 1, 16, 1, 32), np.float32),
    ...     lengths=np.array([0], np.int32),
    ...     lut=np.array([[3]], np.int32),
    ...     row_offsets=np.array([0, 2], np.int32),
    ... )
    >>> keys, values = np.ones((2, 2, 1, 32), np.float32)
    >>> kvcache.ops.append(params)(step, 0, keys, values)
    >>> step.blocks[0][3, 0, 0, :3, 0, 0].tolist()
    [1.0, 1.0, 0.0]
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..cache.params import KVCacheParams
from ..checks import check_flag, check_positive
from ..dtypes import DTypeLike
from .append_operation import Append
from .append_options import AppendOptions
from .arguments import Tiling, check_converted, check_dense, check_powers
from .attention_config import AttentionConfig, make_config
from .attention_operation import Attention
from .attention_spec import AttentionSpec, find_rows_type, find_sink_type, find_value_dim
from .cache_forms import FUNCTION_NAMES, CacheForm, check_cache
from .index_scoring import index_scores
from .index_selection import index_rows
from .making import make, remember
from .operations import CopyPages, Gather, MergeStates, Operation
from .pooling import pool
from .regions import Function, ScoreRegions
from .selection import top_rows
from .sources import LayerSpec, MergeSpec, PagesSpec
from .splits import StepBounds, check_unsplit, choose_splits, make_splits

_RESERVED = (*inspect.signature(Attention.__call__).parameters, *FUNCTION_NAMES)

__all__ = [
    "Operation",
    "append",
    "attention",
    "copy_pages",
    "gather",
    "index_rows",
    "index_scores",
    "merge_states",
    "pool",
    "top_rows",
]


@remember
def append(
    params: KVCacheParams,
    target: str = "cpu",
    dtype: DTypeLike | None = None,
    power_of_two: bool = False,
    static_scales: bool = False,
    *,
    least_amax: bool = False,
    norm: int | None = None,
    query_norm: int | None = None,
    rope: int | None = None,
    rope_begin: int = 0,
    interleaved: bool = False,
    epsilon: float = 1e-6,
    query_heads: int | None = None,
    latent_rope: int | None = None,
    slots: DTypeLike | None = None,
    positions: DTypeLike | None = None,
    rope_axes: Sequence[int] | None = None,
    query_dtype: DTypeLike | None = None,
    separate: bool = False,
    value_params: KVCacheParams | None = None,
    rope_params: KVCacheParams | None = None,
    table: str = "dense",
    block_threads: int | None = None,
    bounds_checks: bool = False,
    threads: int | None = None,
) -> Append:
    """The operation that writes new keys and values.

    With ``norm`` and ``rope``, keys are normed and roped before they are stored. With
    ``query_heads``, queries are normed and roped in place, by ``query_norm`` and the
    same rope.

    Args:
        params: The parameters of a paged cache.
        target: As in ``jit``.
        dtype: The type of new rows, queries and weights of norms: f32, f16 or bf16. By
            default that of the cache, or bf16 if its elements have 8 bits or less.
        power_of_two: Whether scales are powers of two of at least 1e-4, as in
            FlashMLA's caches.
        static_scales: Whether calls give ``key_scale`` and ``value_scale``.
        least_amax: Whether ``power_of_two`` has the bound of DeepSeek's index keys: 1e-4
            is the least amax, in place of the least scale.
        norm: The number of first elements of each head of keys that are normed, the
            size of the weights. None for no norm.
        query_norm: As ``norm``, for queries.
        rope: The number of elements of each head that are rotated, even: the columns of
            the table. None for no rope.
        rope_begin: The index of the first rotated element of a head.
        interleaved: Whether rotated pairs are neighbours, not in the two halves of the
            elements.
        epsilon: The number added to the mean of squares of a norm.
        query_heads: The number of heads of the queries in calls, a multiple of the
            heads of the cache on a device. None for no queries.
        latent_rope: The number of last elements of latent rows that are a separate
            input. None for no such input.
        slots: The type of the slots in calls, i32 or i64; None to use lengths and
            table.
        positions: The type of the positions in calls, i32 or i64; None for the
            positions of tokens in their sequences. Slots with rope need positions.
        rope_axes: The axis of each pair of rotated elements, if positions have several
            (M-RoPE), such as ``[0] * 16 + [1] * 24 + [2] * 24`` for time, height and
            width. None for one axis.
        query_dtype: The type of fp8 to which calls quantize queries, into
            ``query_out``. None for queries in place.
        separate: Whether keys and values of a layer have tensors of their own, as in
            ``StepInputs.of(keys=, values=)``.
        value_params: With ``separate``, the parameters of values that differ in dtype,
            ``head_dim``, scales or layout; by default ``params``.
        rope_params: With ``separate``, the parameters of the last elements of latent
            rows, if they have a tensor of their own, as in FlashMLA's cache: f32, f16 or
            bf16. Steps give it as ``values``, and calls give ``latent_rope``. None for
            one tensor of latent rows.
        table: The table of steps: ``"dense"``, ``"csr"`` for ``indptr``, or ``"rows"``
            for ``table_rows``.
        block_threads: On a GPU, the most threads of a thread block: a multiple of 32
            from 32 to 1024; 256 by default. Exceeded if one head needs more threads.
        bounds_checks: As in ``jit``. Repeated slots are errors, too; that check takes
            time quadratic in the rows.
        threads: As in ``jit``.

    Raises:
        ValueError: The cache is not paged, or its elements or the dtype are not
            supported. ``power_of_two`` needs scales of f32, bf16 or f8E8M0FNU, and
            ``static_scales`` scales or fp8. Or options contradict the cache or each
            other.
        TypeError: An argument is not a number, or not a flag.
    """
    check_flag(static_scales=static_scales, bounds_checks=bounds_checks)
    cache = CacheForm.of(params, separate, value_params, table, rope_params)
    name = check_cache(cache, dtype, static_scales)
    options = AppendOptions(
        power_of_two=power_of_two,
        least_amax=least_amax,
        norm=norm,
        query_norm=query_norm,
        rope=rope,
        rope_begin=rope_begin,
        interleaved=interleaved,
        epsilon=epsilon,
        query_heads=query_heads,
        latent_rope=latent_rope,
        slots=slots,
        positions=positions,
        rope_axes=rope_axes,
        query_dtype=query_dtype,
    ).checked(cache)
    if options.power_of_two:
        check_powers(cache.values)
    spec = LayerSpec(
        cache,
        name,
        options,
        static_scales=bool(static_scales),
        tiling=Tiling(block_threads).checked(),
    )
    return make(Append, spec, target, bounds_checks, threads)


@remember
def gather(
    params: KVCacheParams,
    target: str = "cpu",
    dtype: DTypeLike | None = None,
    ragged: bool = False,
    static_scales: bool = False,
    *,
    separate: bool = False,
    value_params: KVCacheParams | None = None,
    table: str = "dense",
    block_threads: int | None = None,
    heads_per_thread: int | None = None,
    bounds_checks: bool = False,
    threads: int | None = None,
) -> Gather:
    """The operation that copies sequences to dense arrays, and dequantizes them.

    Args:
        params: As for ``append``.
        target: As in ``jit``.
        dtype: The type of the outputs, as for ``append``.
        ragged: Whether the outputs hold the tokens of all sequences one after another.
        static_scales: Whether calls give ``key_scale`` and ``value_scale``.
        separate: As for ``append``, like ``value_params`` and ``table``.
        value_params: As for ``append``.
        table: As for ``append``.
        block_threads: As for ``append``.
        heads_per_thread: On a GPU, the most heads that a thread loads before it stores
            one: 1 to 32; 4 by default.
        bounds_checks: As in ``jit``.
        threads: As in ``jit``.

    Raises:
        ValueError: As for ``append``.
        TypeError: As for ``append``.
    """
    check_flag(ragged=ragged, static_scales=static_scales, bounds_checks=bounds_checks)
    cache = CacheForm.of(params, separate, value_params, table)
    name = check_cache(cache, dtype, static_scales)
    spec = LayerSpec(
        cache,
        name,
        ragged=bool(ragged),
        static_scales=bool(static_scales),
        tiling=Tiling(block_threads, heads_per_thread).checked(),
    )
    return make(Gather, spec, target, bounds_checks, threads)


@remember
def copy_pages(
    params: KVCacheParams,
    target: str = "cpu",
    *,
    table: str = "dense",
    block_threads: int | None = None,
    bounds_checks: bool = False,
    threads: int | None = None,
) -> CopyPages:
    """The operation that copies pages of all layers, with their scales.

    Args:
        params: As for ``append``.
        target: As in ``jit``.
        table: As for ``append``.
        block_threads: As for ``append``.
        bounds_checks: As in ``jit``.
        threads: As in ``jit``.

    Raises:
        ValueError: The cache is not paged, or an argument is out of range.
    """
    check_flag(bounds_checks=bounds_checks)
    cache = CacheForm.of(params, table=table)
    spec = PagesSpec(cache, Tiling(block_threads).checked())
    return make(CopyPages, spec, target, bounds_checks, threads)


@remember
def merge_states(
    heads: int,
    head_dim: int,
    target: str = "cpu",
    dtype: DTypeLike = "bf16",
    *,
    out_dtype: DTypeLike | None = None,
    block_threads: int | None = None,
    threads: int | None = None,
) -> MergeStates:
    """The operation that merges attention over splits of the keys.

    Args:
        heads: The number of heads of the queries.
        head_dim: The number of elements of a value.
        target: As in ``jit``.
        dtype: The type of the outputs of splits: f32, f16 or bf16.
        out_dtype: The type of merged outputs: ``dtype`` by default, or another one of
            these, or fp8. Calls give ``out_scale`` for fp8.
        block_threads: As for ``append``.
        threads: As in ``jit``.
    """
    check_positive(heads=heads, head_dim=head_dim)
    name = check_dense("dtype", dtype)
    out = name if out_dtype is None else check_converted("out_dtype", out_dtype)
    tiling = Tiling(block_threads).checked()
    spec = MergeSpec(int(heads), int(head_dim), name, out, tiling)
    return make(MergeStates, spec, target, threads=threads)


@remember
def attention(
    params: KVCacheParams,
    query_heads: int,
    causal: bool = True,
    window: int | None = None,
    soft_cap: float | None = None,
    sinks: bool | DTypeLike = False,
    value_dim: int | None = None,
    target: str = "cpu",
    dtype: DTypeLike | None = None,
    mask: bool | Function = False,
    rows: bool | str = False,
    split_tokens: int | None = None,
    max_splits: int | None = None,
    split_rows: int = 1,
    static_scales: bool = False,
    *,
    chunk: int | None = None,
    out_dtype: DTypeLike | None = None,
    tile_rows: int | None = None,
    scheduled_blocks: int | None = None,
    swap_operands: bool | None = None,
    l2_hint: str | None = None,
    config: AttentionConfig | None = None,
    kv_lengths: bool = False,
    whole_mask: bool = False,
    ranges: int | None = None,
    sinkless_lse: bool = False,
    max_logits: bool = False,
    score: Function | None = None,
    arrays: Mapping[str, str] | None = None,
    query_rope: int | None = None,
    separate: bool = False,
    value_params: KVCacheParams | None = None,
    rope_params: KVCacheParams | None = None,
    table: str = "dense",
    max_batch_size: int | None = None,
    max_seq_len: int | None = None,
    bounds_checks: bool = False,
    threads: int | None = None,
) -> Attention:
    """The operation that attends to a layer of the cache.

    Args:
        params: As for ``append``.
        query_heads: The number of heads of queries, a multiple of those of the cache on
            a device.
        causal: Whether a new token sees no later tokens.
        window: The most tokens that a token sees, including itself; None for all.
        soft_cap: The bound of scores, which become ``soft_cap * tanh(score /
            soft_cap)``; from 2^-16 to 2^16. None for no bound.
        sinks: Whether each head has a logit that joins the denominator: False, True for
            f32, or the dtype of the logits, f32, f16 or bf16.
        value_dim: The number of elements of a value, by default ``head_dim`` of its
            parameters. A latent cache needs it: its values are the first elements of
            its rows.
        target: As in ``jit``.
        dtype: The type of queries, as for ``append``, or fp8.
        mask: Whether calls give the new tokens that each query sees, as for trees of
            drafts; usually with ``causal=False``. Or a function ``mask(sequence, head,
            query, key, ...)``, which returns whether the query sees the key. It is
            plain Python and NumPy on numbers, and is traced once.
        rows: Whether calls give the rows of the cache that each query sees, for sparse
            attention. ``causal`` is ignored then. ``"heads"`` for rows of each head of
            the cache.
        split_tokens: On a GPU, tokens per split; None for no splits, or those that
            ``max_batch_size`` and ``max_seq_len`` choose. Thread blocks compute splits,
            and a second launch merges them from a workspace.
        max_splits: The most splits of a query row, by default 32. For more keys, splits
            have more tokens.
        split_rows: The most new tokens of a sequence in a step whose queries are split.
        static_scales: Whether calls give ``key_scale`` and ``value_scale``.
        chunk: Tokens per chunk, from the first token of a sequence on. A token sees
            only its chunk. None for no chunks.
        out_dtype: The type of outputs, as for queries. By default that of the queries,
            or bf16 for fp8 queries.
        tile_rows: On a GPU, the query rows of a thread block on tensor cores: 16, 32,
            64 or 128; 0 for no tensor cores. By default, the operation chooses. With
            ``split_tokens`` or ``rows``, it takes enough for the query heads of a KV
            head, or 0 if they are few. With ``rows``, a thread block has one token.
        scheduled_blocks: On a GPU, with ``split_tokens`` and tensor cores, the thread
            blocks of a persistent kernel, which take one split after the other; 0 for
            one thread block per possible split. By default, the operation chooses.
            Results are the same.
        swap_operands: On sm_90a, whether the MMAs use swapAB: tokens are their rows,
            and the 16 or 32 query rows their columns. By default, only for latent
            caches. Other chips compute without it; ``swap_ab`` of ``config`` raises
            there.
        l2_hint: On a GPU, the eviction priority of the cache in L2: ``"evict_first"``,
            ``"evict_last"`` or ``"evict_normal"``. By default, ``"evict_first"`` if one
            thread block alone reads the tokens of a sequence of at most ``split_rows``
            new tokens. Sequences that share pages may read them again.
        config: Further fields of how kernels compute, such as
            ``AttentionConfig(keys=32)``.
        kv_lengths: Whether calls give the number of tokens of each sequence in the
            cache, which may include those of this step. With ``causal=False``, that is
            cross-attention: a decoder's queries see an encoder's tokens, which may be
            fewer than the queries.
        whole_mask: With ``mask=True``, whether the bits are those of all tokens of a
            sequence, not only of the new ones.
        ranges: The number of ranges of tokens that calls give for each query, such as 1
            for documents, or 2 for a prefix and a window. A query sees no other tokens.
            Tiles of tokens that no query of a thread block sees are not read. None for
            no ranges.
        sinkless_lse: With ``sinks``, whether ``lse`` is the logarithm of a sum without
            the sink. ``merge_states`` needs the sink in it, as it is in the output.
        max_logits: Whether calls give an array for the largest score of each query.
        score: A function ``score(s, sequence, head, query, key, ...)`` as for ``mask``,
            which returns the new score. ``s`` is the product of query and key times
            ``scale``, after ``soft_cap``; ``head`` is the query head; ``query`` and
            ``key`` are positions in the sequence. A score of -inf excludes the key.
        arrays: The type of each array that ``score`` or ``mask`` takes as a further
            parameter, by name: ``{"slopes": "f32[32]", "documents": "i32[?, ?]"}``.
            Calls give these arrays by the same names.
        query_rope: For a latent cache, the number of last elements of queries that
            calls give as an array of their own, ``q_rope``. None for one array.
        separate: As for ``append``, like ``value_params``, ``rope_params`` and
            ``table``.
        value_params: As for ``append``.
        rope_params: As for ``append``. Queries have the elements of both tensors.
        table: As for ``append``.
        max_batch_size: The most sequences of a step, with ``max_seq_len`` in place of
            ``split_tokens``: splits are as long as possible while a step of this size
            gives work to the chip. No call chooses them, so a query has the same bits
            alone and in any batch.
        max_seq_len: The most tokens of a sequence. With ``rows``, the most ids of a
            query.
        bounds_checks: As in ``jit``.
        threads: As in ``jit``.

    Raises:
        ValueError: The cache is not paged, or an argument is out of range.
        TypeError: An argument is not a number, or not a flag, or a function can't be
            traced; the message has the line.
    """
    check_flag(static_scales=static_scales, bounds_checks=bounds_checks)
    given: Any = mask
    if not isinstance(given, bool | np.bool_) and not callable(given):
        raise TypeError(f"expects 'mask' to be a function, True or False, got {given!r}")
    function = given if callable(given) else None
    regions = ScoreRegions()
    if score is not None or function is not None or arrays:
        from .score_regions import trace_regions  # needs time to import

        regions = trace_regions(score, function, arrays, _RESERVED)
    cache = CacheForm.of(params, separate, value_params, table, rope_params)
    name = check_cache(cache, None, static_scales)
    if dtype is not None:
        name = check_converted("dtype", dtype)
    out = "bf16" if name.startswith("f8") else name
    if out_dtype is not None:
        out = check_converted("out_dtype", out_dtype)
    splits = make_splits(split_tokens, max_splits, split_rows)
    if bounds := StepBounds.parse(max_batch_size, max_seq_len):
        check_unsplit(split_tokens, max_splits)
        splits = choose_splits(
            cache.params, query_heads, target, bounds.cut(window, chunk), split_rows
        )
    spec = AttentionSpec(
        cache=cache,
        query_heads=query_heads,
        causal=causal,
        window=window,
        chunk=chunk,
        soft_cap=soft_cap,
        sinks=find_sink_type(sinks),
        mask=False if function else given,
        whole_mask=whole_mask,
        ranges=ranges,
        sinkless_lse=sinkless_lse,
        max_logits=max_logits,
        rows=find_rows_type(rows, params.n_kv_heads_per_device),
        kv_lengths=kv_lengths,
        value_dim=find_value_dim(cache, value_dim),
        splits=splits,
        static_scales=static_scales,
        dtypes=(name, out),
        config=make_config(config, tile_rows, scheduled_blocks, swap_operands, l2_hint),
        swap_operands=bool(swap_operands),
        regions=regions,
        query_rope=query_rope,
    )
    return make(Attention, spec.checked(), target, bounds_checks, threads)
