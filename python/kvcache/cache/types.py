# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The types of a cache in the dialect: their parameters and their text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from .. import dtypes
from .layouts import Distances, Layout
from .strategy import KVCacheStrategy

if TYPE_CHECKING:
    from .. import ir
    from .params import KVCacheParams

_PLAIN = dtypes.formats("Element")
_QUANTIZED = dtypes.formats("Scaled")
_PACKED = dtypes.formats("Scaled", bits=(4,))  # Two elements share a byte.
_WITH_ZERO_POINTS = dtypes.formats("ZeroPoint")
_ZERO_POINTS = dtypes.formats("Scale", bits=(16, 32))
_FP4_GRANULARITIES = {"f8E4M3FN": 16, "f8E8M0FNU": 32}  # NVFP4 and MX

# Offsets in a page take 32 bits.
_MAX_ELEMENTS = 2**31


@dataclass(frozen=True)
class CacheFormat:
    """The parameters of the types of the cache on one device, with the dialect's rules.

    Attributes:
        dtype: MLIR's name of the elements' type.
        n_kv_heads: The number of heads on the device.
        head_dim: The number of elements of a head.
        is_mla: Whether a token has one latent row, instead of a key and a value.
        page_size: Tokens per page; None for a continuous cache.
        scale_dtype: MLIR's name of the scales' type; None without scales.
        granularity: The number of elements of a head that share a scale; None without
            scales.
        layout: The distances of tokens and heads; None for packed rows.
        scale_layout: The distances of scales, likewise.
        zero_point_dtype: MLIR's name of the zero points' type; None without.
        token_granularity: The number of consecutive tokens that share a scale.

    Raises:
        ValueError: The dialect has no such type.
    """

    dtype: str
    n_kv_heads: int
    head_dim: int
    is_mla: bool
    page_size: int | None
    scale_dtype: str | None
    granularity: int | None
    layout: Distances | None = None
    scale_layout: Distances | None = None
    zero_point_dtype: str | None = None
    token_granularity: int = 1

    def __post_init__(self) -> None:
        self._check_sizes()
        self._check_dtype()
        if self._is_packed:
            self._check_pairs()
        self._check_zero_points()
        self._check_token_granularity()
        self._check_interleave()

    @classmethod
    def of(cls, type: ir.CacheType | str) -> CacheFormat:
        """The format of a type, or of its text.

        Raises ``ValueError`` for a dynamic page size, for tables that are not dense, and
        for types that are no caches.
        """
        from .. import ir

        cache = type if isinstance(type, ir.Type) else ir.Type.parse(type)
        if not isinstance(cache, ir.CacheType):
            raise ValueError(f"expects the type of a cache, got {cache}")
        if cache.page_size == ir.DYNAMIC:
            raise ValueError(f"expects a type with a number for page_size, got {cache}")
        if cache.table != ir.Table.DENSE:
            raise ValueError(f"expects a type with a dense table, got {cache}")
        return cls(
            dtype=cache.dtype,
            n_kv_heads=cache.params.num_heads,
            head_dim=cache.params.head_size,
            is_mla=cache.params.is_mla,
            page_size=cache.page_size,
            scale_dtype=cache.scale,
            granularity=cache.granularity,
            layout=_to_distances(cache.layout),
            scale_layout=_to_distances(cache.scale_layout),
            zero_point_dtype=cache.zero_point,
            token_granularity=cache.token_granularity,
        )

    @classmethod
    def from_params(cls, params: KVCacheParams) -> CacheFormat:
        """The format of parameters; without a page size while the strategy is open."""
        config = params.kvcache_quant_config
        is_continuous = params.cache_strategy is KVCacheStrategy.CONTINUOUS
        zero_points = config.zero_point_dtype if config else None
        packed = cls(
            dtype=params.dtype_shorthand,
            n_kv_heads=params.n_kv_heads_per_device,
            head_dim=params.head_dim,
            is_mla=params.is_mla,
            page_size=None if is_continuous else params.page_size,
            scale_dtype=dtypes.mlir_name(config.scale_dtype) if config else None,
            granularity=config.quantization_granularity if config else None,
            zero_point_dtype=None if zero_points is None else dtypes.mlir_name(zero_points),
            token_granularity=config.token_granularity if config else 1,
        )
        layout = scale_layout = None
        if params.layout is not None:
            width, itemsize = packed.stored_head_dim, packed.storage_dtype.itemsize
            layout = packed._place(params.layout, packed.page_size, width, itemsize)
        if params.scale_layout is not None and config is not None:
            width, itemsize = packed.n_scales, dtypes.dtype(config.scale_dtype).itemsize
            rows = packed.scale_page_size
            scale_layout = packed._place(params.scale_layout, rows, width, itemsize)
        return replace(packed, layout=layout, scale_layout=scale_layout)

    def _place(
        self, layout: Layout, rows: int | None, width: int, itemsize: int
    ) -> Distances | None:
        """Computes the distances of ``rows`` rows of ``width`` elements in a page."""
        return layout.compute_distances(
            self.n_kinds, rows or 1, self.n_kv_heads, width, itemsize
        )

    def _check_sizes(self) -> None:
        row = self.n_kv_heads * self.head_dim
        if row >= _MAX_ELEMENTS:
            raise ValueError(
                "expects 'head_dim' times the heads of a device to be below 2^31, got "
                f"{self.head_dim} * {self.n_kv_heads}"
            )
        if self.page_size is not None and self.page_size * row >= _MAX_ELEMENTS:
            raise ValueError(
                "expects 'page_size' times 'head_dim' times the heads of a device to "
                "be below 2^31, got "
                f"{self.page_size} * {self.head_dim} * {self.n_kv_heads}"
            )

    def _check_dtype(self) -> None:
        has_scales = self.scale_dtype is not None
        known = _QUANTIZED if has_scales else _PLAIN
        if self.dtype not in known:
            scales = "with scales" if has_scales else "without scales"
            needs_scales = not has_scales and self.dtype in _QUANTIZED
            hint = "; it needs 'kvcache_quant_config'" if needs_scales else ""
            raise ValueError(
                f"expects the 'dtype' of a cache {scales} to be one of "
                f"{', '.join(known)}, got {self.dtype}{hint}"
            )

    def _check_pairs(self) -> None:
        is_fp4 = self.dtype == "f4E2M1FN"
        if is_fp4 and self.granularity != _FP4_GRANULARITIES.get(
            self.scale_dtype or ""
        ):
            raise ValueError(
                "expects f4E2M1FN with a granularity of 16 and scales of f8E4M3FN "
                "(NVFP4), or 32 and f8E8M0FNU (MX), got "
                f"{self.granularity} and {self.scale_dtype}"
            )
        if self.head_dim % 2:
            raise ValueError(
                f"expects 'head_dim' to be even for {self.dtype}, got {self.head_dim}"
            )

    def _check_zero_points(self) -> None:
        if (self.zero_point_dtype is not None) != (self.dtype in _WITH_ZERO_POINTS):
            raise ValueError(
                f"expects 'zero_point_dtype' for {', '.join(_WITH_ZERO_POINTS)}, and "
                f"for no other 'dtype', got {self.zero_point_dtype} for {self.dtype}"
            )
        if self.zero_point_dtype is None:
            return
        if self.zero_point_dtype != self.scale_dtype:
            raise ValueError(
                f"expects 'zero_point_dtype' to be 'scale_dtype' ({self.scale_dtype}), "
                f"got {self.zero_point_dtype}"
            )
        if self.scale_dtype not in _ZERO_POINTS:
            raise ValueError(
                "expects 'scale_dtype' and 'zero_point_dtype' to be one of "
                f"{', '.join(_ZERO_POINTS)}, got {self.scale_dtype}"
            )

    def _check_token_granularity(self) -> None:
        tokens = self.token_granularity
        if tokens == 1:
            return
        if self.granularity != 1:
            raise ValueError(
                "expects 'quantization_granularity' to be 1 with 'token_granularity', "
                f"got {self.granularity}"
            )
        if self.page_size is not None and self.page_size % tokens:
            raise ValueError(
                f"expects 'token_granularity' to divide 'page_size' ({self.page_size}), "
                f"got {tokens}"
            )

    def _check_interleave(self) -> None:
        if self.layout is not None and self.layout.interleave != 1:
            raise ValueError("only a 'scale_layout' is interleaved")
        tokens = self.scale_layout.interleave if self.scale_layout is not None else 1
        has_own = self.zero_point_dtype is None and self.token_granularity == 1
        if tokens != 1 and not has_own:
            raise ValueError(
                "expects 'interleave' only without zero points and 'token_granularity'"
            )
        if tokens != 1 and ((self.page_size or 1) % tokens or self.n_groups % tokens):
            raise ValueError(
                f"expects 'interleave' to divide 'page_size' ({self.page_size}) and the "
                f"groups of a head ({self.n_groups}), got {tokens}"
            )

    # --- Sizes --------------------------------------------------------------------

    @property
    def n_kinds(self) -> int:
        """The number of roles: 2 for keys and values, 1 for MLA."""
        return 1 if self.is_mla else 2

    @property
    def storage_dtype(self) -> np.dtype:
        """The dtype of the blocks in memory: bytes of two values of 4 bits."""
        return dtypes.dtype("i8" if self._is_packed else self.dtype)

    @property
    def stored_head_dim(self) -> int:
        """Elements of ``storage_dtype`` in a head."""
        return self.head_dim // 2 if self._is_packed else self.head_dim

    @property
    def n_groups(self) -> int:
        """The number of quantization groups of a head.

        Raises ``ValueError`` without scales.
        """
        if self.granularity is None:
            raise ValueError("a cache without 'kvcache_quant_config' has no scales")
        return -(-self.head_dim // self.granularity)

    @property
    def n_scales(self) -> int:
        """The number of scales and zero points of a head. Raises like ``n_groups``."""
        return self.n_groups * (1 if self.zero_point_dtype is None else 2)

    @property
    def scale_page_size(self) -> int | None:
        """The rows of scales in a page; None for a continuous cache."""
        if self.page_size is None:
            return None
        return self.page_size // self.token_granularity

    @property
    def _is_packed(self) -> bool:
        return self.dtype in _PACKED

    # --- Text ---------------------------------------------------------------------

    @property
    def params_attribute(self) -> str:
        """``#kvcache.params``, a part of the types."""
        mla = ", is_mla = true" if self.is_mla else ""
        sizes = f"num_heads = {self.n_kv_heads}, head_size = {self.head_dim}"
        return f"#kvcache.params<{sizes}{mla}>"

    @property
    def collection(self) -> str:
        """The type of the cache of all layers."""
        return self._get_text("_collection")

    @property
    def view(self) -> str:
        """The type of one layer's keys or values."""
        return self._get_text("")

    def _get_text(self, suffix: str) -> str:
        text = f"{self.dtype}, {self.params_attribute}"
        if self.page_size is None:
            return f"!kvcache.continuous{suffix}<{text}>"
        text += f", page_size = {self.page_size}"
        if self.scale_dtype is not None:
            text += f", scale = {self.scale_dtype}, granularity = {self.granularity}"
        if self.zero_point_dtype is not None:
            text += f", zero_point = {self.zero_point_dtype}"
        if self.token_granularity != 1:
            text += f", token_granularity = {self.token_granularity}"
        text += self._get_layout(
            "layout", self.layout, self.page_size, self.stored_head_dim
        )
        if self.scale_layout is not None:
            text += self._get_layout(
                "scale_layout", self.scale_layout, self.scale_page_size, self.n_scales
            )
        return f"!kvcache.paged{suffix}<{text}>"

    def _get_layout(
        self, name: str, distances: Distances | None, rows: int | None, width: int
    ) -> str:
        if distances is None:
            return ""
        token, head, interleave, role = distances
        if distances == Distances(width, (rows or 0) * width):
            return f", {name} = hnd"
        text = f"token = {token}"
        if self.n_kv_heads > 1:
            text += f", head = {'?' if head is None else head}"
        if role is not None:
            text += f", role = {role}"
        if interleave > 1:
            text += f", interleave = {interleave}"
        return f", {name} = [{text}]"

    def blocks(self, *, in_order: bool = True) -> str:
        """The memref type of the blocks of a collection.

        ``in_order`` means that pages, roles and layers are in the order of the type.
        """
        return self._get_memref(
            self.page_size,
            self.stored_head_dim,
            dtypes.mlir_name(self.storage_dtype),
            self.layout,
            in_order,
        )

    def scales(self, *, in_order: bool = True) -> str:
        """The memref type of the scales. Raises ``ValueError`` for a cache without."""
        return self._get_memref(
            self.scale_page_size,
            self.n_scales,
            self.scale_dtype or "",
            self.scale_layout,
            in_order,
        )

    def layer_blocks(self) -> str:
        """The memref type of one layer's keys or values; pages may be anywhere."""
        dtype = dtypes.mlir_name(self.storage_dtype)
        rows = self._get_rows(self.page_size, self.stored_head_dim, dtype)
        return self._get_strided("?x", rows, self.stored_head_dim, self.layout)

    def layer_scales(self) -> str:
        """The memref type of their scales. Raises ``ValueError`` for a cache without."""
        rows = self._get_rows(self.scale_page_size, self.n_scales, self.scale_dtype or "")
        return self._get_strided("?x", rows, self.n_scales, self.scale_layout)

    def _get_memref(
        self,
        tokens: int | None,
        width: int,
        dtype: str,
        layout: Distances | None,
        in_order: bool,
    ) -> str:
        leading, rows = f"?x{self.n_kinds}x?x", self._get_rows(tokens, width, dtype)
        if layout is None and in_order:
            return f"memref<{leading}{rows}>"
        return self._get_strided(leading, rows, width, layout)

    def _get_rows(self, tokens: int | None, width: int, dtype: str) -> str:
        return f"{'?' if tokens is None else tokens}x{self.n_kv_heads}x{width}x{dtype}"

    def _get_strided(
        self, leading: str, rows: str, width: int, layout: Distances | None
    ) -> str:
        token, head, *_ = layout or Distances(self.n_kv_heads * width, width)
        if self.n_kv_heads == 1:
            head = width
        outer = "?, " * leading.count("x")
        distances = f"{outer}{token}, {'?' if head is None else head}, 1"
        return f"memref<{leading}{rows}, strided<[{distances}], offset: ?>>"


def _to_distances(layout: ir.LayoutAttr | None) -> Distances | None:
    if layout is None:
        return None
    from .. import ir

    head = layout.head_stride
    head = None if head == ir.DYNAMIC else head
    return Distances(layout.token_stride, head, layout.interleave, layout.role_stride)


def to_layout(distances: Distances | None) -> Layout | None:
    """The layout with only these distances."""
    if distances is None:
        return None
    return Layout(**distances._asdict())
