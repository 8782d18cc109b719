# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parameters of the KV cache of a model: sizes, dtype and strategy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import dtypes
from ..checks import check_flag, check_gibibytes, check_integer, check_positive
from ..dtypes import DTypeLike
from .layouts import DIMS, Layout
from .params_rules import (
    check_derived,
    check_layer_ids,
    check_layouts,
    check_parallelism,
    check_reach,
    check_strategy,
    check_swapping,
    count_shares,
)
from .quantization import KVCacheQuantizationConfig
from .reach import Reach, full
from .strategy import KVCacheStrategy, default_strategy, parse_strategy
from .types import CacheFormat, to_layout

if TYPE_CHECKING:
    from .. import ir

_GIB = 1 << 30
_DERIVED = ("n_kv_heads_per_device", "n_layers_per_stage")
_OPTIONAL = (
    "host_kvcache_swap_space_gb",
    "page_size",
    "stage_id",
    "total_num_layers",
)
_FLAGS = ("enable_prefix_caching", "enable_kvcache_swapping_to_host", "is_mla")
_POSITIVE = (
    "n_kv_heads",
    "head_dim",
    "page_size",
    "n_devices",
    "pipeline_parallel_degree",
    "total_num_layers",
)


@dataclass(frozen=True, init=False)
class KVCacheParams:
    """The cache of a model, or of one stage of it.

    Without pipeline parallelism, the devices share the heads. With it, each stage has
    all heads of some of the layers, on its own device.

    Attributes:
        dtype: The dtype of keys and values; a byte holds two values of float4_e2m1fn or
            uint4.
        n_kv_heads: The number of heads of keys and values, over all devices.
        head_dim: The number of elements of a head; for MLA, of the latent row of a
            token.
        enable_prefix_caching: Whether sequences with a common prefix share pages.
        enable_kvcache_swapping_to_host: Whether pages may move to host memory.
        host_kvcache_swap_space_gb: Host memory for these pages, in GiB; only with this flag.
        cache_strategy: The strategy of the cache. By default paged with ``page_size``,
            and otherwise continuous, which is deprecated.
        page_size: Tokens per page.
        n_devices: The number of devices that share the work.
        pipeline_parallel_degree: The number of stages that share the layers.
        stage_id: The stage of this cache, from 0 on.
        total_num_layers: The number of layers of the model.
        kvcache_quant_config: The scales of a quantized cache.
        is_mla: Whether a token has one latent row (multi-head latent attention),
            instead of a key and a value.
        layout: The layout of the elements; packed rows by default. Only for pages.
        scale_layout: The layout of the scales, likewise.
        reach: The tokens of a sequence that later tokens reach; all by default.
        layer_ids: The layers of the model in this cache, if it does not have all. Then
            ``total_num_layers`` is their number.
        n_kv_heads_per_device: Derived: heads on one device, at least 1; 1 for MLA,
            where every device has the latent row.
        n_layers_per_stage: Derived: layers of a stage, at least 1; all without
            pipeline parallelism; None if ``total_num_layers`` is not known.

    The constructor takes derived fields as well, and checks that they follow from the
    others; 0 and None leave them open.

    Raises:
        ValueError: The combination is invalid; the message states the rule.
        TypeError: A value is not a dtype, not a number or not a bool.

    Examples:
        >>> params = KVCacheParams(
        ...     "bf16", n_kv_heads=8, head_dim=128, page_size=16, total_num_layers=32
        ... )
        >>> params.shape_per_block
        [2, 32, 16, 8, 128]
        >>> params.bytes_per_block
        2097152
    """

    dtype: DTypeLike
    n_kv_heads: int
    head_dim: int
    enable_prefix_caching: bool
    enable_kvcache_swapping_to_host: bool
    host_kvcache_swap_space_gb: float | None
    cache_strategy: KVCacheStrategy
    page_size: int | None
    n_devices: int
    pipeline_parallel_degree: int
    stage_id: int | None
    total_num_layers: int | None
    kvcache_quant_config: KVCacheQuantizationConfig | None
    is_mla: bool
    layout: Layout | None
    scale_layout: Layout | None
    reach: Reach
    layer_ids: tuple[int, ...] | None
    # Copies with other fields derive these again.
    n_kv_heads_per_device: int = field(init=False)
    n_layers_per_stage: int | None = field(init=False)

    def __init__(
        self,
        dtype: DTypeLike,
        n_kv_heads: int,
        head_dim: int,
        enable_prefix_caching: bool = False,
        enable_kvcache_swapping_to_host: bool = False,
        host_kvcache_swap_space_gb: float | None = None,
        cache_strategy: KVCacheStrategy | str | None = None,
        page_size: int | None = None,
        n_devices: int = 1,
        pipeline_parallel_degree: int = 1,
        stage_id: int | None = None,
        total_num_layers: int | None = None,
        n_kv_heads_per_device: int = 0,
        n_layers_per_stage: int | None = None,
        kvcache_quant_config: KVCacheQuantizationConfig | None = None,
        is_mla: bool = False,
        layout: Layout | None = None,
        scale_layout: Layout | None = None,
        reach: Reach = full,
        layer_ids: Iterable[int] | None = None,
    ) -> None:
        excluded = ("self", *_DERIVED)
        _set(self, **{k: value for k, value in locals().items() if k not in excluded})
        self._normalize()
        check_strategy(self, is_given=cache_strategy is not None)
        check_layouts(self)
        check_reach(self)
        check_swapping(self)
        check_parallelism(self)
        _set(self, n_kv_heads_per_device=self._divide_heads())
        _set(self, n_layers_per_stage=self._divide_layers())
        check_derived(self, n_kv_heads_per_device, n_layers_per_stage)
        # A cache without a type in the dialect is an error.
        _ = self._type

    @classmethod
    def from_type(cls, type: ir.CacheType | str, **fields: Any) -> KVCacheParams:
        """The parameters of a cache with a given type.

        A type has the distances in a page, but no order of all dimensions. So several
        named layouts may match it, and ``layout`` can choose one.

        Args:
            type: The type of a collection or a view, or its text without aliases, such
                as ``collection_type``.
            fields: More fields, which a type does not have, such as
                ``total_num_layers``. Without ``n_kv_heads``, each device has its own
                heads.

        Raises:
            CompileError: The text is not a type.
            ValueError: The type is not a cache with a dense table, the fields
                contradict it, or a latent cache has several heads.
            TypeError: As for the constructor.
        """
        format_ = CacheFormat.of(type)
        strategy = KVCacheStrategy.PAGED
        if format_.page_size is None:
            strategy = KVCacheStrategy.CONTINUOUS
        config = None
        if format_.scale_dtype and format_.granularity:
            config = KVCacheQuantizationConfig(
                format_.scale_dtype,
                format_.granularity,
                format_.zero_point_dtype,
                format_.token_granularity,
            )
        result = cls(
            **{
                "dtype": format_.dtype,
                "n_kv_heads": format_.n_kv_heads * count_shares(fields, format_),
                "head_dim": format_.head_dim,
                "is_mla": format_.is_mla,
                "page_size": format_.page_size,
                "cache_strategy": strategy,
                "kvcache_quant_config": config,
                "layout": to_layout(format_.layout),
                "scale_layout": to_layout(format_.scale_layout),
                **fields,
            }
        )
        if result._decided_type != format_:
            raise ValueError(
                f"no parameters with these fields make {type}: they make "
                f"{result.collection_type}"
            )
        return result

    def with_layout(
        self, layout: Layout | None, scale_layout: Layout | None = None
    ) -> KVCacheParams:
        """Copies the parameters for a cache in another layout.

        Args:
            layout: A layout of ``Layout.from_name`` or ``describe``; None for packed
                rows.
            scale_layout: The layout of the scales; None for packed ones.

        Raises:
            ValueError: The dialect has no such type: see ``Layout``.
        """
        return replace(self, layout=layout, scale_layout=scale_layout)

    # --- Comparison -----------------------------------------------------------------

    @cached_property
    def _key(self) -> tuple[tuple[Any, ...], int]:
        """The values of the fields, and their hash."""
        values = tuple(getattr(self, each.name) for each in fields(self))
        return values, hash(values)

    def __eq__(self, other: object) -> bool:
        if self.__class__ is not other.__class__:
            return NotImplemented
        assert isinstance(other, KVCacheParams)
        return self._key == other._key

    def __hash__(self) -> int:
        return self._key[1]

    def __getstate__(self) -> dict[str, Any]:
        # Hashes of strings differ between processes.
        return {name: each for name, each in self.__dict__.items() if name != "_key"}

    # --- Fields -------------------------------------------------------------------

    def _normalize(self) -> None:
        """Converts the fields to their declared types."""
        is_scaled = self.kvcache_quant_config is not None
        dtype = dtypes.cached_dtype("dtype", self.dtype, is_scaled=is_scaled)
        _set(self, dtype=dtype)
        if self.cache_strategy is None:
            _set(self, cache_strategy=default_strategy(self.page_size))
        _set(self, cache_strategy=parse_strategy(self.cache_strategy))
        self._normalize_fields(_POSITIVE, check_positive, int)
        self._normalize_fields(["stage_id"], check_integer, int)
        self._normalize_fields(_FLAGS, check_flag, bool)
        space = "host_kvcache_swap_space_gb"
        self._normalize_fields([space], check_gibibytes, float)
        if self.layer_ids is not None:
            self._normalize_layers(tuple(self.layer_ids))
        config = self.kvcache_quant_config
        if not isinstance(config, KVCacheQuantizationConfig | None):
            raise TypeError(
                "expects 'kvcache_quant_config' to be a KVCacheQuantizationConfig, got "
                f"{config!r}"
            )

    def _normalize_fields(
        self, names: Iterable[str], check: Callable[..., None], convert: type
    ) -> None:
        for name in names:
            value = getattr(self, name)
            if value is not None or name not in _OPTIONAL:
                check(**{name: value})
                _set(self, **{name: convert(value)})

    def _normalize_layers(self, layers: tuple[int, ...]) -> None:
        check_layer_ids(self, layers)
        _set(self, layer_ids=tuple(map(int, layers)), total_num_layers=len(layers))

    # --- Derived sizes ------------------------------------------------------------

    def _divide_heads(self) -> int:
        if self.is_mla:
            return 1
        return max(self.n_kv_heads // self.n_devices_per_stage, 1)

    def _divide_layers(self) -> int | None:
        if self.total_num_layers is None:
            return None
        return max(self.total_num_layers // self.pipeline_parallel_degree, 1)

    @property
    def n_devices_per_stage(self) -> int:
        """The number of devices that share the heads of a layer."""
        return self.n_devices if self.pipeline_parallel_degree == 1 else 1

    @property
    def layers(self) -> Sequence[int]:
        """The layers of the model in this cache.

        The last stage has the remainder of an uneven division. Raises ``ValueError`` if
        ``total_num_layers``, or one of several stages, is not given.
        """
        if self.total_num_layers is None or self.n_layers_per_stage is None:
            raise ValueError("the layers of a cache need 'total_num_layers'")
        if self.layer_ids is not None:
            return self.layer_ids
        total, share = self.total_num_layers, self.n_layers_per_stage
        if self.pipeline_parallel_degree == 1:
            return range(total)
        if self.stage_id is None:
            raise ValueError("the layers of a stage need 'stage_id'")
        is_last = self.stage_id == self.pipeline_parallel_degree - 1
        first = min(self.stage_id * share, total)
        return range(first, total if is_last else min(first + share, total))

    @property
    def dtype_shorthand(self) -> str:
        """MLIR's name of the dtype, such as ``"bf16"``; signless for unsigned ones.

        MAX has ``"bf16"``, ``"f8_m4e3fn"``, and ``"f32"`` for all others.
        """
        return dtypes.mlir_name(self.dtype)

    @property
    def storage_dtype(self) -> np.dtype:
        """The dtype of the blocks in memory: ``dtype``, or bytes of two values."""
        dtype = dtypes.dtype(self.dtype)
        return dtype if dtype.kind == "u" else self._type.storage_dtype

    @property
    def static_cache_shape(self) -> tuple[str, str, str, str, str]:
        """The names of the dimensions of a whole cache."""
        return "num_layers", "batch_size", "seq_len", "n_kv_heads", "head_dim"

    @property
    def shape_per_block(self) -> list[int]:
        """The shape of one page on one device: [2, layers, page_size, heads, head_dim].

        The first size is 1 for MLA, and the third is 1 for states. Two values of 4 bits
        count as one: see ``storage_dtype``. The layers are those of ``stage_id`` if
        given, and at least 1. Raises ``ValueError`` without a page size or layers.
        """
        return self._get_shape(self.page_size, self._type.stored_head_dim)

    @property
    def shape_per_scale_block(self) -> list[int]:
        """The shape of the scales of one page; the last size is the scales of a head.

        Zero points follow the scales of a head. Tokens that share scales count as one.
        Raises ``ValueError`` for a cache without scales.
        """
        return self._get_shape(self._type.scale_page_size, self._type.n_scales)

    def _get_shape(self, rows: int | None, width: int) -> list[int]:
        if rows is None:
            raise ValueError("the shape of a page needs 'page_size'")
        if self.n_layers_per_stage is None:
            raise ValueError("the shape of a page needs 'total_num_layers'")
        layers = self.n_layers_per_stage
        if self.stage_id is not None:
            layers = max(len(self.layers), 1)
        tokens = 1 if self.reach.is_state else rows
        return [self._type.n_kinds, layers, tokens, self.n_kv_heads_per_device, width]

    @property
    def bytes_per_block(self) -> int:
        """Bytes of a page, with its scales, on all devices that share its heads."""
        size = math.prod(self.shape_per_block) * self.storage_dtype.itemsize
        if config := self.kvcache_quant_config:
            scale_size = dtypes.dtype(config.scale_dtype).itemsize
            size += math.prod(self.shape_per_scale_block) * scale_size
        return size * self.n_devices_per_stage

    @property
    def n_host_blocks(self) -> int:
        """The number of pages in the swap space; 0 without swapping.

        Raises ``ValueError`` if the space is smaller than a page.
        """
        return self.count_host_pages(self.bytes_per_block)

    def count_host_pages(self, page_bytes: int) -> int:
        """Computes ``n_host_blocks`` for pages of ``page_bytes`` bytes."""
        space = self.host_kvcache_swap_space_gb
        if not self.enable_kvcache_swapping_to_host or space is None:
            return 0
        size = int(space * _GIB)
        if size < page_bytes:
            raise ValueError(
                f"expects 'host_kvcache_swap_space_gb' to hold at least one page of "
                f"{page_bytes} bytes, got {size} bytes"
            )
        return size // page_bytes

    # --- Types of the dialect -----------------------------------------------------

    @property
    def _type(self) -> CacheFormat:
        """The parameters of the types; without a page size while the strategy is open."""
        return CacheFormat.from_params(self)

    @staticmethod
    def order_of(layout: Layout | None, shape: Sequence[int]) -> tuple[str, ...]:
        """The order in memory of the dimensions of ``layouts.DIMS``.

        Args:
            layout: The layout of the elements or of the scales.
            shape: ``shape_per_block``, or ``shape_per_scale_block``.

        Raises:
            ValueError: No named layout has the distances of ``layout``.
        """
        if layout is None:
            return DIMS
        kinds, _, tokens, heads, width = shape
        sizes = {"role": kinds, "token": tokens, "head": heads, "element": width}
        return layout.find_order(sizes)

    @property
    def _decided_type(self) -> CacheFormat:
        is_open = self.cache_strategy is KVCacheStrategy.MODEL_DEFAULT
        if is_open and self.page_size is None:
            raise ValueError(
                "the model's default strategy needs 'page_size', to be a paged one"
            )
        return self._type

    @property
    def is_paged(self) -> bool:
        """Whether kernels use pages, as the model's default does with a page size.

        Raises ``ValueError`` if only the model determines it, as the types do.
        """
        return self._decided_type.page_size is not None

    @property
    def params_attribute(self) -> str:
        """The dialect's ``#kvcache.params`` for the cache of one device."""
        return self._type.params_attribute

    @property
    def collection_type(self) -> str:
        """The dialect's type of the cache of all layers on one device."""
        return self._decided_type.collection

    @property
    def cache_type(self) -> str:
        """The dialect's type of one layer's keys or values on one device."""
        return self._decided_type.view

    @property
    def blocks_type(self) -> str:
        """The memref type of the blocks of a collection, on one device."""
        format_ = self._decided_type
        return format_.blocks(in_order=self.layout is None)

    @property
    def scales_type(self) -> str:
        """The memref type of the scales. Raises ``ValueError`` for a cache without."""
        format_ = self._decided_type
        return format_.scales(in_order=self.scale_layout is None)

    @property
    def layer_blocks_type(self) -> str:
        """The memref type of one layer's keys or values in a tensor of their own."""
        return self._decided_type.layer_blocks()

    @property
    def layer_scales_type(self) -> str:
        """The memref type of their scales. Raises ``ValueError`` for a cache without."""
        return self._decided_type.layer_scales()


def _set(instance: object, **fields: object) -> None:
    """Sets fields of a frozen dataclass."""
    for name, value in fields.items():
        object.__setattr__(instance, name, value)
