# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a model's KV cache is like: its sizes, its dtype, and how it is kept."""

from __future__ import annotations

import math
import numbers
import warnings
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from . import dtypes
from .checks import check_integer, check_positive
from .dtypes import DTypeLike

_GIB = 1 << 30
_FLOATS = ("f32", "f16", "bf16", "f8E4M3FN", "f8E5M2")
_QUANTIZED = ("f8E4M3FN", "f8E5M2", "i8", "f4E2M1FN")
_SCALES = ("f32", "f16", "bf16", "f8E8M0FNU", "f8E4M3FN")
_FP4_SCALES = {"f8E4M3FN": 16, "f8E8M0FNU": 32}  # NVFP4 and MX


class KVCacheStrategy(str, Enum):
    """How the cache of a sequence is kept."""

    MODEL_DEFAULT = "model_default"
    """As the model wants it; paged, wherever there is a page size."""

    CONTINUOUS = "continuous"
    """One block for each sequence, as long as the longest. Deprecated: use ``PAGED``."""

    PAGED = "paged"
    """Pages of a fixed number of tokens, found through a lookup table."""

    def kernel_substring(self) -> str:
        """What the names of this strategy's kernels have in common."""
        return "continuous_batching" if self is self.CONTINUOUS else self.value

    def uses_opaque(self) -> bool:
        """Whether kernels take the cache as one value, which is always so."""
        return True


@dataclass(frozen=True)
class KVCacheQuantizationConfig:
    """How a quantized cache is scaled.

    Attributes:
        scale_dtype: Of the scales.
        quantization_granularity: Elements of a head that share a scale.
    """

    scale_dtype: DTypeLike = np.float32
    quantization_granularity: int = 128

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale_dtype", dtypes.dtype(self.scale_dtype))
        check_positive(quantization_granularity=self.quantization_granularity)
        if (name := dtypes.mlir_name(self.scale_dtype)) not in _SCALES:
            raise ValueError(
                f"expects 'scale_dtype' to be one of {', '.join(_SCALES)}, got {name}"
            )


@dataclass(frozen=True)
class KVCacheParams:
    """The cache of a model, or of one stage of it.

    Without pipeline parallelism the heads are divided over the devices; with it each
    stage has all heads of some of the layers, on a device of its own.

    Attributes:
        dtype: Of keys and values; float4_e2m1fn is kept in bytes, two values in each.
        n_kv_heads: Heads of keys and values, over all devices.
        head_dim: Elements of a head; for MLA those of a token's latent row.
        enable_prefix_caching: Whether sequences that begin alike share pages.
        enable_kvcache_swapping_to_host: Whether pages may move to host memory.
        host_kvcache_swap_space_gb: Host memory for them, in GiB.
        cache_strategy: How the cache of a sequence is kept.
        page_size: Tokens in a page.
        n_devices: Devices that share the work.
        pipeline_parallel_degree: Stages that the layers are divided over.
        stage_id: The stage that this cache belongs to, from 0 on.
        total_num_layers: Layers of the model.
        kvcache_quant_config: The scales of a quantized cache.
        is_mla: Whether the cache has one latent row for a token (multi-head latent
            attention), instead of keys and values.
        n_kv_heads_per_device: Derived: heads on one device, at least 1.
        n_layers_per_stage: Derived: layers of a stage, at least 1; all without
            pipeline parallelism; None if ``total_num_layers`` is not known.

    Raises:
        ValueError: For a wrong combination, with what is wrong and what would do.
        TypeError: For a dtype or a number that is none.
    """

    dtype: DTypeLike
    n_kv_heads: int
    head_dim: int
    enable_prefix_caching: bool = False
    enable_kvcache_swapping_to_host: bool = False
    host_kvcache_swap_space_gb: float | None = None
    cache_strategy: KVCacheStrategy = KVCacheStrategy.PAGED
    page_size: int | None = None
    n_devices: int = 1
    pipeline_parallel_degree: int = 1
    stage_id: int | None = None
    total_num_layers: int | None = None
    kvcache_quant_config: KVCacheQuantizationConfig | None = None
    is_mla: bool = False
    n_kv_heads_per_device: int = field(init=False)
    n_layers_per_stage: int | None = field(init=False)

    def __post_init__(self) -> None:
        self._set(cache_strategy=KVCacheStrategy(self.cache_strategy))
        self._set(dtype=dtypes.dtype(dtypes.mlir_name(self.dtype)))
        self._check_sizes()
        self._check_strategy()
        self._check_swapping()
        self._check_parallelism()
        self._check_quantization()
        self._set(n_kv_heads_per_device=self._divide_heads())
        self._set(n_layers_per_stage=self._divide_layers())

    # The dataclass is frozen for those who use it.
    def _set(self, **fields: object) -> None:
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    # --- Rules --------------------------------------------------------------------

    def _check_sizes(self) -> None:
        check_positive(
            n_kv_heads=self.n_kv_heads,
            head_dim=self.head_dim,
            n_devices=self.n_devices,
            pipeline_parallel_degree=self.pipeline_parallel_degree,
        )
        if self.page_size is not None:
            check_positive(page_size=self.page_size)
        if self.total_num_layers is not None:
            check_positive(total_num_layers=self.total_num_layers)

    def _check_strategy(self) -> None:
        if self.cache_strategy is KVCacheStrategy.CONTINUOUS:
            warnings.warn(
                "KVCacheStrategy.CONTINUOUS is deprecated: use KVCacheStrategy.PAGED",
                DeprecationWarning,
                stacklevel=4,  # the caller of the dataclass's __init__
            )
        is_paged = self.cache_strategy is KVCacheStrategy.PAGED
        if is_paged and self.page_size is None:
            raise ValueError("the paged cache strategy needs 'page_size'")
        if self.enable_prefix_caching and not is_paged:
            raise ValueError(self._only_for_pages("enable_prefix_caching"))
        if self.enable_kvcache_swapping_to_host and not is_paged:
            raise ValueError(self._only_for_pages("enable_kvcache_swapping_to_host"))

    def _only_for_pages(self, name: str) -> str:
        return (
            f"{name!r} is only possible with the paged cache strategy, got "
            f"{self.cache_strategy.value!r}"
        )

    def _check_swapping(self) -> None:
        space = self.host_kvcache_swap_space_gb
        if space is not None:
            if isinstance(space, bool) or not isinstance(space, numbers.Real):
                raise TypeError(
                    f"expects 'host_kvcache_swap_space_gb' to be a number, got {space!r}"
                )
            if not (math.isfinite(space) and space > 0):
                raise ValueError(
                    "expects 'host_kvcache_swap_space_gb' to be positive and finite, "
                    f"got {space!r}"
                )
        if not self.enable_kvcache_swapping_to_host:
            return
        if not self.enable_prefix_caching:
            raise ValueError(
                "'enable_kvcache_swapping_to_host' is only possible with "
                "'enable_prefix_caching'"
            )
        if space is None:
            raise ValueError(
                "'enable_kvcache_swapping_to_host' needs 'host_kvcache_swap_space_gb'"
            )

    def _check_parallelism(self) -> None:
        degree = self.pipeline_parallel_degree
        if degree > 1 and self.total_num_layers is None:
            raise ValueError(
                f"'pipeline_parallel_degree' of {degree} needs 'total_num_layers'"
            )
        if self.stage_id is not None:
            check_integer(stage_id=self.stage_id)
            if not 0 <= self.stage_id < degree:
                raise ValueError(
                    "expects 'stage_id' to be below 'pipeline_parallel_degree' "
                    f"({degree}) and not negative, got {self.stage_id}"
                )
        divided = degree == 1 and not self.is_mla and self.n_kv_heads > self.n_devices
        if divided and self.n_kv_heads % self.n_devices:
            raise ValueError(
                f"expects 'n_kv_heads' ({self.n_kv_heads}) to be a multiple of "
                f"'n_devices' ({self.n_devices}), or not above it"
            )

    def _check_quantization(self) -> None:
        config, name = self.kvcache_quant_config, dtypes.mlir_name(self.dtype)
        known = _FLOATS if config is None else _QUANTIZED
        if name not in known:
            with_scales = "without scales" if config is None else "with scales"
            needed = "; it needs 'kvcache_quant_config'" if name in _QUANTIZED else ""
            raise ValueError(
                f"expects the 'dtype' of a cache {with_scales} to be one of "
                f"{', '.join(known)}, got {name}{needed}"
            )
        if config is None:
            return
        if not isinstance(config, KVCacheQuantizationConfig):
            raise TypeError(
                "expects 'kvcache_quant_config' to be a KVCacheQuantizationConfig, got "
                f"{config!r}"
            )
        if self.cache_strategy is KVCacheStrategy.CONTINUOUS:
            raise ValueError(self._only_for_pages("kvcache_quant_config"))
        if name == "f4E2M1FN":
            self._check_fp4(config)

    def _check_fp4(self, config: KVCacheQuantizationConfig) -> None:
        scale = dtypes.mlir_name(config.scale_dtype)
        if _FP4_SCALES.get(scale) != config.quantization_granularity:
            raise ValueError(
                "expects f4E2M1FN with a granularity of 16 and scales of f8E4M3FN "
                "(NVFP4), or 32 and f8E8M0FNU (MX), got "
                f"{config.quantization_granularity} and {scale}"
            )
        if self.head_dim % 2:
            raise ValueError(
                f"expects 'head_dim' to be even for f4E2M1FN, got {self.head_dim}"
            )

    # --- Derived sizes ------------------------------------------------------------

    def _divide_heads(self) -> int:
        if self.is_mla:
            return 1
        if self.pipeline_parallel_degree > 1:
            return self.n_kv_heads
        return max(self.n_kv_heads // self.n_devices, 1)

    def _divide_layers(self) -> int | None:
        if self.total_num_layers is None:
            return None
        return max(self.total_num_layers // self.pipeline_parallel_degree, 1)

    @property
    def layers(self) -> range:
        """The layers of the model that this cache is for.

        Layers that can't be divided evenly go to the last stage. Raises ``ValueError``
        where ``total_num_layers``, or one of several stages, is not given.
        """
        share = self._needed_layers()
        if self.pipeline_parallel_degree == 1:
            return range(share)
        if self.stage_id is None:
            raise ValueError("the layers of a stage need 'stage_id'")
        total = self.total_num_layers or 0
        is_last = self.stage_id == self.pipeline_parallel_degree - 1
        first = min(self.stage_id * share, total)
        return range(first, total if is_last else min(first + share, total))

    def _needed_layers(self) -> int:
        if self.n_layers_per_stage is None:
            raise ValueError("the shape of a page needs 'total_num_layers'")
        return self.n_layers_per_stage

    @property
    def dtype_shorthand(self) -> str:
        """MLIR's name of the dtype, such as ``"bf16"``."""
        return dtypes.mlir_name(self.dtype)

    @property
    def static_cache_shape(self) -> tuple[str, str, str, str, str]:
        """The names of the dimensions of a whole cache."""
        return "num_layers", "batch_size", "seq_len", "n_kv_heads", "head_dim"

    @property
    def shape_per_block(self) -> list[int]:
        """The shape of one page on one device: [2, layers, page_size, heads, head_dim].

        The first is 1 for MLA. Two values of float4_e2m1fn count as one: see
        ``storage_dtype``. Raises ``ValueError`` without a page size or layers.
        """
        layers = self._needed_layers()
        if self.stage_id is not None:
            layers = max(len(self.layers), 1)
        kinds = 1 if self.is_mla else 2
        packed = 2 if self.dtype_shorthand == "f4E2M1FN" else 1
        row = self.n_kv_heads_per_device, self.head_dim // packed
        return [kinds, layers, self._needed_page_size(), *row]

    @property
    def shape_per_scale_block(self) -> list[int]:
        """The same for a page's scales, whose last is those of a head."""
        config = self._needed_quantization()
        groups = -(-self.head_dim // config.quantization_granularity)
        return [*self.shape_per_block[:-1], groups]

    def _needed_page_size(self) -> int:
        if self.page_size is None:
            raise ValueError("the shape of a page needs 'page_size'")
        return self.page_size

    def _needed_quantization(self) -> KVCacheQuantizationConfig:
        if self.kvcache_quant_config is None:
            raise ValueError("a cache without 'kvcache_quant_config' has no scales")
        return self.kvcache_quant_config

    @property
    def storage_dtype(self) -> np.dtype:
        """What the blocks' memory holds: ``dtype``, or bytes of two fp4 values."""
        packed = self.dtype_shorthand == "f4E2M1FN"
        return np.dtype(np.int8) if packed else dtypes.dtype(self.dtype)

    @property
    def bytes_per_block(self) -> int:
        """Bytes of a page, with its scales, on all devices that share its heads."""
        size = math.prod(self.shape_per_block) * self.storage_dtype.itemsize
        if config := self.kvcache_quant_config:
            scale_size = dtypes.dtype(config.scale_dtype).itemsize
            size += math.prod(self.shape_per_scale_block) * scale_size
        return size * self.n_devices_per_stage

    @property
    def n_devices_per_stage(self) -> int:
        """Devices that share the heads of a layer."""
        return self.n_devices if self.pipeline_parallel_degree == 1 else 1

    @property
    def n_host_blocks(self) -> int:
        """Pages that the swap space holds; 0 without swapping.

        Raises ``ValueError`` where it holds less than one.
        """
        if not self.enable_kvcache_swapping_to_host:
            return 0
        space = int(float(self.host_kvcache_swap_space_gb or 0) * _GIB)
        if space < self.bytes_per_block:
            raise ValueError(
                f"expects 'host_kvcache_swap_space_gb' to hold at least one page of "
                f"{self.bytes_per_block} bytes, got {space} bytes"
            )
        return space // self.bytes_per_block

    # --- Types of the dialect -----------------------------------------------------

    @property
    def is_paged(self) -> bool:
        """Whether kernels see pages: the model's default means pages, given a size.

        Raises ``ValueError`` where only the model would know.
        """
        if self.cache_strategy is KVCacheStrategy.MODEL_DEFAULT:
            if self.page_size is None:
                raise ValueError(
                    "the model's default strategy needs 'page_size'; or say "
                    "KVCacheStrategy.PAGED or CONTINUOUS"
                )
            return True
        return self.cache_strategy is KVCacheStrategy.PAGED

    @property
    def params_attribute(self) -> str:
        """The dialect's ``#kvcache.params`` for the cache of one device."""
        mla = ", is_mla = true" if self.is_mla else ""
        heads = f"num_heads = {self.n_kv_heads_per_device}"
        return f"#kvcache.params<{heads}, head_size = {self.head_dim}{mla}>"

    @property
    def collection_type(self) -> str:
        """The dialect's type of the cache of all layers on one device."""
        return self._cache_type("_collection")

    @property
    def cache_type(self) -> str:
        """The dialect's type of one layer's keys or values on one device."""
        return self._cache_type("")

    def _cache_type(self, suffix: str) -> str:
        fields = f"{self.dtype_shorthand}, {self.params_attribute}"
        if not self.is_paged:
            return f"!kvcache.continuous{suffix}<{fields}>"
        fields += f", page_size = {self.page_size}"
        if config := self.kvcache_quant_config:
            scale = dtypes.mlir_name(config.scale_dtype)
            granularity = config.quantization_granularity
            fields += f", scale = {scale}, granularity = {granularity}"
        return f"!kvcache.paged{suffix}<{fields}>"

    @property
    def blocks_type(self) -> str:
        """The memref of blocks that a collection is made of, on one device."""
        packed = 2 if self.dtype_shorthand == "f4E2M1FN" else 1
        return self._memref_type(self.head_dim // packed, self.storage_dtype)

    @property
    def scales_type(self) -> str:
        """The memref of scales; ``ValueError`` for a cache without."""
        config = self._needed_quantization()
        groups = -(-self.head_dim // config.quantization_granularity)
        return self._memref_type(groups, config.scale_dtype)

    def _memref_type(self, last: int, dtype: DTypeLike) -> str:
        kinds = 1 if self.is_mla else 2
        page_size = self.page_size if self.is_paged else "?"
        shape = f"?x{kinds}x?x{page_size}x{self.n_kv_heads_per_device}x{last}"
        return f"memref<{shape}x{dtypes.mlir_name(dtype)}>"
