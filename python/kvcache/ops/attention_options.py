# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The source of attention over a paged cache."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .._native import extension
from ..checks import check_flag, check_positive, check_positive_real, check_size
from ..devices import cuda
from ..dtypes import DTypeLike
from ..execution.arrays import Array
from .append_options import float_text
from .arguments import check_dense, check_given, check_query_heads, rows_type
from .array_checks import get_sizes
from .attention_config import AttentionConfig
from .cache_forms import CacheForm
from .regions import ScoreRegions
from .splits import MOST, Splits


@dataclass(frozen=True)
class AttentionSpec:
    """The options of attention, fixed when it is compiled.

    Attributes:
        query_heads: A multiple of the heads of the cache.
        causal: Whether queries see no later tokens.
        window: The most tokens that a query sees, including itself; None for all.
        chunk: Tokens per chunk; a query sees only its chunk. None for no chunks.
        soft_cap: The bound of scores, ``soft_cap * tanh(score / soft_cap)``; None for
            none.
        sinks: The type of a logit of each head that joins the denominator; empty for
            none.
        mask: Whether calls give bits for the tokens that a query sees.
        whole_mask: Whether cached tokens have such bits, too, not only new ones.
        ranges: The number of ranges of tokens that a query sees, which calls give; 0
            for none.
        sinkless_lse: Whether ``lse`` has no sink.
        max_logits: Whether calls give an array for largest scores.
        rows: The type of the rows of the cache that a query sees; empty for none.
        kv_lengths: Whether calls give the number of tokens of each sequence.
        value_dim: The number of elements of a value.
        splits: The options of split KV, or None.
        static_scales: Whether calls give static scales.
        dtypes: The types of queries and outputs.
        config: How kernels compute.
        swap_operands: Whether ``swap_ab`` of the config is only for chips that have it.
        regions: The user's functions of scores and masks.
        key_dim: The number of elements of a key and a query.
        query_rope: The number of last elements of queries in an array of their own.
    """

    query_heads: int
    causal: bool
    window: int | None
    chunk: int | None
    soft_cap: float | None
    sinks: str
    mask: bool
    whole_mask: bool
    ranges: int
    sinkless_lse: bool
    max_logits: bool
    rows: str
    kv_lengths: bool
    value_dim: int
    splits: Splits | None
    static_scales: bool
    dtypes: tuple[str, str]
    config: AttentionConfig
    swap_operands: bool
    regions: ScoreRegions
    key_dim: int
    query_rope: int = 0

    @property
    def scaled_rows(self) -> tuple[str, ...]:
        """The names of the scales of queries and outputs, one for each fp8 type."""
        names = "query_scale", "out_scale"
        return tuple(
            name for name, dtype in zip(names, self.dtypes) if dtype.startswith("f8")
        )

    @property
    def extra(self) -> dict[str, str]:
        """The types of the optional arguments, by name."""
        types = {
            "sinks": f"memref<{self.query_heads}x{self.sinks}>",
            "mask": "memref<?x?xi32>",
            "rows": self.rows,
            "kv_lengths": "memref<?xi32>",
        }
        return {name: type_ for name, type_ in types.items() if getattr(self, name)}

    def count_bytes(self, batch: int) -> int:
        """The bytes of the workspace for ``batch`` sequences; 0 without splits."""
        per_sequence, fixed = self.workspace_bytes
        return batch * per_sequence + fixed

    @cached_property
    def workspace_bytes(self) -> tuple[int, int]:
        """The bytes of the workspace for each sequence, and those for all."""
        if self.splits is None:
            return 0, 0
        sizes = self.query_heads, self.value_dim, self.splits.most, self.splits.rows
        return extension().workspace_bytes(*sizes)


class Workspaces:
    """The workspaces of an operation: the caller's, or its own for each stream.

    On the CPU, each thread has one.
    """

    def __init__(self, spec: AttentionSpec, target: str) -> None:
        self._spec = spec
        self._is_on_gpu = target.startswith("cuda")
        self._thread_workspace = threading.local()
        self._lock = threading.Lock()
        self._stream_workspaces: dict[tuple[int, int], list[cuda.DeviceArray]] = {}

    def take(
        self, given: Array | None, batch: int, arrays: Sequence[Array]
    ) -> tuple[Array, ...]:
        """The workspace as arguments; empty without splits.

        The other arrays of the call determine its GPU and stream.
        """
        if self._spec.splits is None:
            check_given("workspace", given, False)
            return ()
        size = self._spec.count_bytes(batch)
        if given is None:
            device = cuda.find_device(arrays) if self._is_on_gpu else 0
            stream = cuda.current_stream(arrays, device) if self._is_on_gpu else 0
            given = self.find(size, device, stream)
        elif (sizes := get_sizes(given)) and sizes[0] < size:
            raise ValueError(
                f"expects 'workspace' to have at least {size} bytes for {batch} "
                f"sequences, got {sizes[0]}"
            )
        return (given,)

    def drop(self) -> None:
        """Drops the workspace of this thread, which a failed call leaves dirty.

        A GPU runs nothing more after an error of a kernel.
        """
        self._thread_workspace.array = None

    def find(self, size: int, device: int, stream: int | None) -> Array:
        """Finds the workspace of a stream of a GPU, or of this thread of the CPU.

        The stream is None for the one of TVM-FFI.
        """
        if not self._is_on_gpu:
            return self._find_on_host(size)
        if stream is None:
            stream = cuda.current_stream((), device)
        return self._find_on_gpu(size, device, stream)

    def _find_on_host(self, size: int) -> Array:
        array = getattr(self._thread_workspace, "array", None)
        if array is None or array.size < size:
            array = self._thread_workspace.array = np.zeros(size, np.int8)
        return array

    def _find_on_gpu(self, size: int, device: int, stream: int) -> Array:
        with self._lock:
            memories = self._stream_workspaces.setdefault((device, stream), [])
            have = memories[-1].tensor.shape[0] if memories else 0
            if have < size:
                # Captured graphs may use the earlier ones, whose sum is smaller than
                # this one.
                zeros = np.zeros(max(size, 2 * have), np.int8)
                memories.append(
                    cuda.DeviceArray(zeros, device, "attention's workspace")
                )
            tensor: Array = memories[-1].tensor
        return tensor


def make_spec(
    cache: CacheForm,
    query_heads: int,
    causal: bool,
    window: int | None,
    chunk: int | None,
    soft_cap: float | None,
    sinks: bool | DTypeLike,
    mask: bool,
    whole_mask: bool,
    ranges: int | None,
    sinkless_lse: bool,
    max_logits: bool,
    rows: bool | str,
    kv_lengths: bool,
    value_dim: int | None,
    splits: Splits | None,
    static_scales: bool,
    dtypes: tuple[str, str],
    config: AttentionConfig,
    swap_operands: bool,
    regions: ScoreRegions,
    query_rope: int | None,
) -> AttentionSpec:
    """Checks the arguments of ``kvcache.ops.attention``."""
    params = cache.params
    check_positive(query_heads=query_heads)
    check_flag(causal=causal, mask=mask, kv_lengths=kv_lengths)
    rows_of_ids = _make_rows(rows, params.n_kv_heads_per_device)
    check_flag(
        whole_mask=whole_mask, sinkless_lse=sinkless_lse, max_logits=max_logits
    )
    if ranges is not None:
        check_size(MOST, ranges=ranges)
    if whole_mask and not mask:
        raise ValueError("expects 'whole_mask' only with 'mask=True'")
    sink_type = _parse_sinks(sinks)
    if sinkless_lse and not sink_type:
        raise ValueError("expects 'sinkless_lse' only with 'sinks'")
    check_query_heads(params, query_heads)
    if window is not None:
        check_size(2**63 - 1, window=window)
    if chunk is not None:
        check_size(2**63 - 1, chunk=chunk)
    if soft_cap is not None:
        check_positive_real(soft_cap=soft_cap)
        if not 2.0**-16 <= soft_cap <= 2.0**16:
            raise ValueError(
                f"expects 'soft_cap' to be between 2^-16 and 2^16, got {soft_cap!r}"
            )
    if config.persistent and splits is None:
        raise ValueError(
            "expects 'persistent' or 'scheduled_blocks' only with 'split_tokens'"
        )
    if rows_of_ids and (window is not None or chunk is not None or mask or ranges):
        raise ValueError("expects no 'window', 'chunk', 'mask' or 'ranges' with 'rows'")
    if rows_of_ids and regions.text:
        raise ValueError("expects no functions of scores and masks with 'rows'")
    if rows_of_ids and kv_lengths:
        raise ValueError("expects no 'kv_lengths' with 'rows', which are the tokens seen")
    if value_dim is None and params.is_mla:
        raise ValueError("attention to a latent cache needs 'value_dim'")
    if query_rope is not None:
        if not params.is_mla:
            raise ValueError("expects 'query_rope' only for a latent cache")
        check_size(cache.row_dim - 1, query_rope=query_rope)
    most = cache.values.head_dim
    value_dim = most if value_dim is None else value_dim
    check_positive(value_dim=value_dim)
    if value_dim > most:
        raise ValueError(
            f"expects 'value_dim' to be at most 'head_dim' ({most}), got {value_dim}"
        )
    return AttentionSpec(
        int(query_heads),
        bool(causal) and not rows_of_ids,
        None if window is None else int(window),
        None if chunk is None else int(chunk),
        None if soft_cap is None else float(soft_cap),
        sink_type,
        bool(mask),
        bool(whole_mask),
        int(ranges or 0),
        bool(sinkless_lse),
        bool(max_logits),
        rows_of_ids,
        bool(kv_lengths),
        int(value_dim),
        splits,
        bool(static_scales),
        dtypes,
        config,
        swap_operands,
        regions,
        cache.row_dim,
        int(query_rope or 0),
    )


def _make_rows(rows: bool | str, heads: int) -> str:
    """The type of the rows that queries see; empty for none."""
    if isinstance(rows, str):
        if rows != "heads":
            raise ValueError(
                f"expects 'rows' to be True, False or 'heads', got {rows!r}"
            )
        return f"memref<?x{heads}x?xi32>"
    check_flag(rows=rows)
    return "memref<?x?xi32>" if rows else ""


def _parse_sinks(sinks: bool | DTypeLike) -> str:
    """The MLIR type of sinks, f32 by default; empty for none."""
    if isinstance(sinks, bool | np.bool_):
        return "f32" if sinks else ""
    if isinstance(sinks, int | float | None):
        raise TypeError(f"expects 'sinks' to be True, False or a dtype, got {sinks!r}")
    return check_dense("sinks", sinks)


def attention_arguments(spec: AttentionSpec, scales: dict[str, str]) -> dict[str, str]:
    """The types of the arguments after the collection and the layer, by name."""
    q, out, lse = _types(spec)
    types = {"q": q, "row_offsets": "memref<?xi32>", "out": out, "lse": lse}
    more = {**_outputs(spec), **spec.extra, **scales, **_row_scales(spec)}
    more |= {**_query_rope(spec), **_ranges(spec)}
    return {**types, "scale": "f32", **more, **spec.regions.types}


def attention_op(spec: AttentionSpec, cache: CacheForm, scales: dict[str, str]) -> str:
    """The op over the views; ``scales`` are the types of static scales by name."""
    q, out, lse = _types(spec)
    soft_cap, splits = spec.soft_cap, spec.splits
    given = {
        "window": spec.window,
        "chunk": spec.chunk,
        "soft_cap": None if soft_cap is None else f"{float_text(soft_cap)} : f64",
        "split": splits and str(splits),
        "config": spec.config if spec.config != AttentionConfig() else None,
    }
    flags = "causal", "whole_mask", "sinkless_lse"
    options = [flag for flag in flags if getattr(spec, flag)]
    options += [f"{name} = {value}" for name, value in given.items() if value is not None]
    attributes = f" {{{', '.join(options)}}}" if options else ""
    more = {**spec.extra, **scales, **_row_scales(spec), **_query_rope(spec)}
    outputs = _outputs(spec)
    views = dict(cache.view_types)
    if cache.rope:
        more["rope_cache"] = views.pop("rope_view")
    more |= _ranges(spec)
    # The lengths of the function are those of the cache.
    values = {name: name for name in (*outputs, *more)} | {"rope_cache": "rope_view"}
    front, back = (
        "".join(f" {name.removeprefix('kv_')} %{values[name]}" for name in names)
        for names in (outputs, more)
    )
    types = [q, *views.values(), "memref<?xi32>", "f32", out, lse]
    types += [*outputs.values(), *more.values()]
    return (
        f"kvcache.attention %q, {', '.join(f'%{view}' for view in views)}, %row_offsets, "
        f"%scale outs(%out, %lse){front}{attributes}{spec.regions.text}{back}\n"
        f"      : {', '.join(types)}"
    )


def _outputs(spec: AttentionSpec) -> dict[str, str]:
    """The types of what is written besides ``out`` and ``lse``."""
    maxima = {"max_logits": f"memref<?x{spec.query_heads}xf32>"}
    workspace = {"workspace": "memref<?xi8>"}
    return {**(maxima if spec.max_logits else {}), **(workspace if spec.splits else {})}


def _ranges(spec: AttentionSpec) -> dict[str, str]:
    return {"ranges": f"memref<?x{spec.ranges}x2xi32>"} if spec.ranges else {}


def _row_scales(spec: AttentionSpec) -> dict[str, str]:
    return dict.fromkeys(spec.scaled_rows, f"memref<{spec.query_heads}xf32>")


def _query_rope(spec: AttentionSpec) -> dict[str, str]:
    heads, size = spec.query_heads, spec.query_rope
    type_ = rows_type("?", heads, size, spec.dtypes[0], has_open_heads=True)
    return {"q_rope": type_} if size else {}


def _types(spec: AttentionSpec) -> tuple[str, str, str]:
    heads = spec.query_heads
    query_dtype, out_dtype = spec.dtypes
    q = rows_type(
        "?",
        heads,
        spec.key_dim - spec.query_rope,
        query_dtype,
        has_open_heads=spec.query_rope > 0,
    )
    out = rows_type("?", heads, spec.value_dim, out_dtype)
    return q, out, f"memref<?x{heads}xf32>"
