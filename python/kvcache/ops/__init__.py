# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole-cache operations as functions on arrays: compiled once, called often."""

from __future__ import annotations

import functools
import threading
from typing import Any

import numpy as np

from ..cache.params import KVCacheParams
from ..checks import check_flag, check_instance, check_positive
from ..compilation.compiler import compile as compile_source
from ..compilation.modules import CompiledModule
from ..dtypes import DTypeLike
from ..execution.arrays import Array, Value
from ..execution.runtime import JitModule, jit
from ..pages.inputs import StepInputs
from .append import AppendOptions
from .arguments import check_dense, check_given, check_static, dense_dtype
from .attention import AttentionSpec, Workspaces, make_spec, make_splits
from .sources import (
    LayerSpec,
    append_source,
    attention_source,
    copy_pages_source,
    gather_source,
    merge_states_source,
)

_CACHE = ("blocks", "scales")

Scale = float | Array | None
"""A static scale: a number, or float32 [heads]."""


class Operation:
    """A compiled operation; one of the functions of this module makes it.

    Attributes:
        source: The module's text, before the operation is expanded.
        functions: The names of what it exports.
        target: What it is compiled for, as in ``jit``.
        mutates: The arguments that it writes to.
        bounds_checks: Whether it is compiled with checks, as in ``jit``.
    """

    functions: tuple[str, ...]
    mutates: tuple[str, ...]

    def __init__(
        self, source: str, target: str, spec: Any, bounds_checks: bool
    ) -> None:
        self.source = source
        self.target = target
        self.bounds_checks = bounds_checks
        self._spec = spec

    @functools.cached_property
    def program(self) -> JitModule:
        """The compiled functions."""
        return jit(
            self.source,
            target=self.target,
            bounds_checks=self.bounds_checks,
            cached=True,
        )

    def compile(self, chip: str, format: str = "ptx") -> CompiledModule:
        """The kernels for a chip, as ``kvcache.compile`` gives them."""
        return compile_source(
            self.source,
            target=chip,
            format=format,
            bounds_checks=self.bounds_checks,
            cached=True,
        )

    def _call(self, *arguments: Value) -> None:
        self.program.call(self.functions[0], *arguments)


class _OnLayer(Operation):
    """An operation on the keys and values of a layer, maybe with static scales."""

    def _layer(self) -> LayerSpec:
        """What is said of the layer."""
        spec: LayerSpec = self._spec
        return spec

    def _scales(self, key_scale: Scale, value_scale: Scale) -> tuple[Any, ...]:
        """The static scales as arguments: f32 [heads] each."""
        spec = self._layer()
        given: list[tuple[str, Scale]] = [("key_scale", key_scale)]
        if not spec.params.is_mla:
            given.append(("value_scale", value_scale))
        elif value_scale is not None:
            raise ValueError("a latent cache takes no 'value_scale'")
        for name, scale in given:
            check_given(name, scale, spec.static_scales)
        if not spec.static_scales:
            return ()
        heads = spec.params.n_kv_heads_per_device
        return tuple(
            (
                _repeat(float(scale), heads)
                if isinstance(scale, int | float | np.number)
                else scale
            )
            for _, scale in given
        )


@functools.lru_cache(maxsize=1024)
def _repeat(scale: float, heads: int) -> np.ndarray:
    """A static scale for each head: calls repeat theirs, and only read it."""
    return np.full(heads, scale, np.float32)


class _Append(_OnLayer):
    functions = ("append",)
    mutates = (*_CACHE, "queries")

    def __init__(
        self, source: str, target: str, spec: LayerSpec, bounds_checks: bool
    ) -> None:
        super().__init__(source, target, spec, bounds_checks)
        self._extra = frozenset(spec.options.extra(spec.params.head_dim, ""))

    def __call__(
        self,
        inputs: StepInputs,
        layer: int,
        keys: Array,
        values: Array | None = None,
        queries: Array | None = None,
        device: int = 0,
        *,
        latent_rope: Array | None = None,
        slots: Array | None = None,
        norm: Array | None = None,
        query_norm: Array | None = None,
        rope: Array | None = None,
        positions: Array | None = None,
        key_scale: Scale = None,
        value_scale: Scale = None,
    ) -> None:
        """Writes the pending tokens of a step to a layer.

        What the operation was made for must be given, and nothing else. Keys are normed,
        roped and rounded, in this order; values are rounded.

        Args:
            inputs: Of the manager, or of ``StepInputs.of``.
            layer: In the cache.
            keys: [total, heads, head_dim], in the order of the inputs' tokens; without
                the elements of ``latent_rope``.
            values: The same; None for a latent cache.
            queries: [total, query_heads, head_dim], normed and roped in place.
            device: Whose tensors it writes.
            latent_rope: [total, 1, elements], the last elements of latent rows.
            slots: Where each row goes, page * page_size + offset, [total]; a row with a
                negative one is skipped, but its queries are not. Lengths and table of
                the inputs are not read then. Rows with one slot have no meaning, and are
                an error with ``bounds_checks``.
            norm: The weights of the RMS norm of each head of keys, of the dtype of rows.
            query_norm: The same for queries.
            rope: float32 [positions, elements]: for each position half as many cosines
                as elements are rotated, and then as many sines.
            positions: The row of each token in ``rope``, [total]; unless the operation
                was made with them, that of its place in the sequence.
            key_scale: What keys are divided by, if the operation was made with static
                scales: a number, or float32 [heads].
            value_scale: The same for values; None for a latent cache.
        """
        given = {
            "latent_rope": latent_rope,
            "slots": slots,
            "norm": norm,
            "query_norm": query_norm,
            "rope": rope,
            "positions": positions,
            "queries": queries,
        }
        for name, array in given.items():
            check_given(name, array, name in self._extra)
        dense = (keys,) if values is None else (keys, values)
        if latent_rope is not None:
            dense = (*dense, given.pop("latent_rope"))
        self._call(
            *_collection(inputs, device),
            layer,
            *dense,
            _offsets(inputs),
            *(array for array in given.values() if array is not None),
            *self._scales(key_scale, value_scale),
        )


class _Gather(_OnLayer):
    functions = ("gather",)
    mutates = ("keys", "values")

    def __call__(
        self,
        inputs: StepInputs,
        layer: int,
        keys_out: Array,
        values_out: Array | None = None,
        device: int = 0,
        *,
        output_offsets: Array | None = None,
        key_scale: Scale = None,
        value_scale: Scale = None,
    ) -> None:
        """Copies all tokens, those of this step included, to dense arrays.

        Args:
            inputs: As for ``append``.
            layer: In the cache.
            keys_out: [batch, longest, heads, head_dim]; zeros behind a sequence's end.
                Ragged: [total, heads, head_dim].
            values_out: The same; None for a latent cache.
            device: Whose tensors it reads.
            output_offsets: Ragged: int32 [batch + 1], where the rows of each sequence
                begin in the outputs, and where the last ones end. Zeros follow a
                sequence that has fewer tokens.
            key_scale: What keys are multiplied by, if the operation was made with static
                scales: a number, or float32 [heads].
            value_scale: The same for values; None for a latent cache.
        """
        check_given("output_offsets", output_offsets, self._spec.ragged)
        ragged = () if output_offsets is None else (output_offsets,)
        scales = self._scales(key_scale, value_scale)
        dense = (keys_out,) if values_out is None else (keys_out, values_out)
        self._call(
            *_collection(inputs, device),
            layer,
            *dense,
            _offsets(inputs),
            *ragged,
            *scales,
        )


class _CopyPages(Operation):
    functions = ("copy_pages",)
    mutates = _CACHE

    def __call__(self, inputs: StepInputs, pairs: Array, device: int = 0) -> None:
        """Copies pages: all layers, keys and values, with their scales.

        Args:
            inputs: As for ``append``; their sequences do not matter.
            pairs: int32 [n, 2], from and to; a negative number skips a pair.
            device: Whose tensors it changes.
        """
        self._call(*_collection(inputs, device), pairs)


class _MergeStates(Operation):
    functions = ("merge_states",)
    mutates = ("out", "lse")

    def __call__(self, outs: Array, lses: Array, out: Array, lse: Array) -> None:
        """Merges the attention over parts of the keys.

        Args:
            outs: [parts, total, heads, head_dim].
            lses: float32 [parts, total, heads]: natural logarithms of the sums of
                exponentials; -inf for a part without keys.
            out: [total, heads, head_dim], written.
            lse: float32 [total, heads], written.
        """
        self._call(outs, lses, out, lse)


class _Attention(_OnLayer):
    functions = ("attention",)
    mutates = ("out", "lse", "workspace")

    def __init__(
        self,
        source: str,
        target: str,
        subject: tuple[KVCacheParams, AttentionSpec],
        bounds_checks: bool,
    ) -> None:
        params, spec = subject
        super().__init__(source, target, spec, bounds_checks)
        self._of_layer = LayerSpec(params, static_scales=spec.static_scales)
        self._no_lse = np.empty((0, spec.query_heads), np.float32)
        self._workspaces = Workspaces(spec, target)

    def _layer(self) -> LayerSpec:
        return self._of_layer

    def workspace_size(self, batch: int) -> int:
        """The bytes of the workspace of so many sequences; 0 if rows are not split."""
        check_positive(batch=batch)
        return int(self._spec.workspace_size(int(batch)))

    def __call__(
        self,
        inputs: StepInputs,
        layer: int,
        q: Array,
        *,
        out: Array,
        lse: Array | None = None,
        scale: float,
        sinks: Array | None = None,
        mask: Array | None = None,
        rows: Array | None = None,
        workspace: Array | None = None,
        key_scale: Scale = None,
        value_scale: Scale = None,
        device: int = 0,
    ) -> None:
        """Attends to all tokens, those of this step included: append them first.

        Args:
            inputs: As for ``append``.
            layer: In the cache.
            q: [total, query_heads, head_dim], in the order of the inputs' tokens.
            out: [total, query_heads, value_dim], written; zeros for what sees no token.
            lse: float32 [total, query_heads], written unless None: the natural logarithm
                of the denominator, -inf for what sees no token.
            scale: What scores are multiplied by.
            sinks: float32 [query_heads], if the operation was made with sinks.
            mask: int32 [total, words], if it was made with a mask: bit j says whether a
                query sees the j-th new token of its sequence. Tokens of earlier steps
                are all seen.
            rows: int32 [total, n], if it was made with rows: page * page_size + offset of
                each token that a query sees; negative ones are skipped.
            workspace: int8 [bytes], if it was made with splits: at least
                ``workspace_size`` of the sequences, zeroed once, and for one call at a
                time; operations may share it. Unless given, the operation keeps one for
                each thread; a GPU needs one in its memory.
            key_scale: What keys are multiplied by, if the operation was made with static
                scales: a number, or float32 [heads].
            value_scale: The same for values; None for a latent cache.
            device: Whose tensors it reads.
        """
        offsets = _offsets(inputs)
        workspaces = self._workspaces.take(workspace, offsets.shape[0] - 1)
        given = {"sinks": sinks, "mask": mask, "rows": rows}
        for name, array in given.items():
            made = name in self._spec.extra
            if (array is not None) != made:
                raise ValueError(
                    f"this operation was made with {name}={made}: expects "
                    f"{'' if made else 'no '}'{name}'"
                )
        more = [array for array in given.values() if array is not None]
        lse = self._no_lse if lse is None else lse
        dense = q, offsets, out, lse, float(scale), *workspaces, *more
        scales = self._scales(key_scale, value_scale)
        self._call(*_collection(inputs, device), layer, *dense, *scales)


def append(
    params: KVCacheParams,
    target: str = "cpu",
    dtype: DTypeLike | None = None,
    power_of_two: bool = False,
    static_scales: bool = False,
    *,
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
    bounds_checks: bool = False,
) -> _Append:
    """The operation that writes new keys and values.

    With ``norm`` and ``rope``, keys are normed and roped on their way, and with
    ``query_heads`` queries in place, by ``query_norm`` and the same rope.

    Args:
        params: Of the cache, which is paged.
        target: As in ``jit``.
        dtype: Of the new rows, queries and weights of norms: f32, f16 or bf16. Unless
            given, that of the cache; bf16 for one of 8 bits or less.
        power_of_two: Whether scales are powers of two from 1e-4 on, as in FlashMLA's
            caches.
        static_scales: Whether calls give ``key_scale`` and ``value_scale``.
        norm: How many elements of each head of keys are normed, as many as the weights
            have: the first. None for no norm.
        query_norm: The same for queries.
        rope: How many elements of each head are rotated, an even number: the columns of
            the table. None for no rope.
        rope_begin: The first of them.
        interleaved: Whether pairs are neighbours, and not in the two halves of the
            elements.
        epsilon: What is added to the mean of squares of a norm.
        query_heads: Of the queries that calls give, a multiple of the heads of the cache
            on a device. None for no queries.
        latent_rope: How many of the last elements of latent rows are an input of their
            own. None for none.
        slots: The dtype of the slots that calls give, i32 or i64; None for lengths and
            table.
        positions: The dtype of the positions that calls give, i32 or i64; None for the
            places of tokens in their sequences. Slots with rope need positions.
        bounds_checks: As in ``jit``. Also makes slots that repeat an error, in a time
            that grows with the square of the rows.

    Raises:
        ValueError: The cache is not paged or has elements that are not converted, the
            dtype is another one, the cache has no scales of f32, bf16 or f8E8M0FNU
            that could be powers of two, neither scales nor fp8 for static ones, or
            an option does not suit it or another one.
        TypeError: An argument is no number, or no flag.
    """
    check_flag(static_scales=static_scales, bounds_checks=bounds_checks)
    name = dense_dtype(params, dtype)
    check_static(params, static_scales)
    options = AppendOptions(
        power_of_two=power_of_two,
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
    ).checked(params)
    spec = LayerSpec(params, options, static_scales=bool(static_scales))
    return _make(_Append, spec, target, name, bounds_checks)


def gather(
    params: KVCacheParams,
    target: str = "cpu",
    dtype: DTypeLike | None = None,
    ragged: bool = False,
    static_scales: bool = False,
    *,
    bounds_checks: bool = False,
) -> _Gather:
    """The operation that copies sequences to dense arrays, with ``append``'s arguments.

    Args:
        params: As for ``append``.
        target: As in ``jit``.
        dtype: Of the outputs, as for ``append``.
        ragged: Whether the outputs have the tokens of all sequences in a row.
        static_scales: Whether calls give ``key_scale`` and ``value_scale``.
        bounds_checks: As in ``jit``.
    """
    check_flag(ragged=ragged, static_scales=static_scales, bounds_checks=bounds_checks)
    name = dense_dtype(params, dtype)
    check_static(params, static_scales)
    spec = LayerSpec(params, ragged=bool(ragged), static_scales=bool(static_scales))
    return _make(_Gather, spec, target, name, bounds_checks)


def copy_pages(
    params: KVCacheParams, target: str = "cpu", *, bounds_checks: bool = False
) -> _CopyPages:
    """The operation that copies pages.

    ``params`` and ``target`` are as for ``append``, ``bounds_checks`` as in ``jit``.
    """
    check_instance(KVCacheParams, params=params)
    check_flag(bounds_checks=bounds_checks)
    return _make(_CopyPages, params, target, "", bounds_checks)


def merge_states(
    heads: int, head_dim: int, target: str = "cpu", dtype: DTypeLike = "bf16"
) -> _MergeStates:
    """The operation that merges attention over parts of the keys.

    Args:
        heads: Of the queries.
        head_dim: Elements of a head of the values.
        target: As in ``jit``.
        dtype: Of the outputs: f32, f16 or bf16.
    """
    check_positive(heads=heads, head_dim=head_dim)
    name = check_dense(dtype)
    return _make(_MergeStates, (int(heads), int(head_dim)), target, name)


def attention(
    params: KVCacheParams,
    query_heads: int,
    causal: bool = True,
    window: int | None = None,
    soft_cap: float | None = None,
    sinks: bool = False,
    value_dim: int | None = None,
    target: str = "cpu",
    dtype: DTypeLike | None = None,
    mask: bool = False,
    rows: bool = False,
    split_tokens: int | None = None,
    max_splits: int = 32,
    split_rows: int = 1,
    static_scales: bool = False,
    *,
    bounds_checks: bool = False,
) -> _Attention:
    """The operation that attends to a layer of the cache.

    Args:
        params: As for ``append``.
        query_heads: A multiple of the heads of the cache on a device.
        causal: Whether a new token sees no later ones.
        window: How many tokens a token sees at most: itself and those before it.
        soft_cap: Makes ``soft_cap * tanh(score / soft_cap)`` of each score.
        sinks: Whether each head has a logit that joins the denominator.
        value_dim: Elements of a row that are its value: for a latent cache, the first of
            the row of keys. Unless given, ``head_dim``; a latent cache needs it.
        target: As in ``jit``.
        dtype: Of queries and outputs, as for ``append``.
        mask: Whether calls say which of the new tokens a query sees, as trees of drafts
            need it; usually without ``causal``.
        rows: Whether calls say which rows of the cache a query sees, for sparse
            attention. ``causal`` does not matter then.
        split_tokens: On a GPU, the tokens of a part of what a row sees. Blocks compute
            parts, and the last one merges them from a workspace. None: no parts.
        max_splits: Parts of a row; those of longer ones have more tokens.
        split_rows: Sequences of more rows in a step than these are not split.
        static_scales: Whether calls give ``key_scale`` and ``value_scale``.
        bounds_checks: As in ``jit``.

    Raises:
        ValueError: The cache is not paged, or an argument has no such value.
        TypeError: An argument is no number, or no flag.
    """
    check_flag(static_scales=static_scales, bounds_checks=bounds_checks)
    name = dense_dtype(params, dtype)
    check_static(params, static_scales)
    spec = make_spec(
        params,
        query_heads,
        causal,
        window,
        soft_cap,
        sinks,
        mask,
        rows,
        value_dim,
        make_splits(split_tokens, max_splits, split_rows),
        static_scales,
    )
    return _make(_Attention, (params, spec), target, name, bounds_checks)


# --- Sources ------------------------------------------------------------------------

_lock = threading.Lock()


def _make(
    kind: Any, subject: Any, target: str, dtype: str, bounds_checks: bool = False
) -> Any:
    """One operation for equal arguments, also if threads ask at the same time."""
    with _lock:
        made = _compile(kind, subject, target, dtype, bool(bounds_checks))
        _ = made.program
    return made


@functools.lru_cache(maxsize=None)
def _compile(
    kind: Any, subject: Any, target: str, dtype: str, bounds_checks: bool
) -> Any:
    return kind(_SOURCES[kind](subject, dtype), target, subject, bounds_checks)


_SOURCES: dict[Any, Any] = {
    _Append: append_source,
    _Gather: gather_source,
    _CopyPages: copy_pages_source,
    _MergeStates: merge_states_source,
    _Attention: attention_source,
}


def _collection(inputs: StepInputs, device: int) -> tuple[Any, ...]:
    check_instance(StepInputs, inputs=inputs)
    return inputs.collection(device)


def _offsets(inputs: StepInputs) -> Any:
    offsets = inputs.row_offsets
    return offsets.view(np.int32) if isinstance(offsets, np.ndarray) else offsets
