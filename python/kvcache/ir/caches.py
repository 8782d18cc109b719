# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Types of caches, of their scales, and of row indices."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ..dtypes import DTypeLike
from .attributes import LayoutAttr, ParamsAttr
from .base import (
    Type,
    element_type,
    integer,
    member,
    optional_element_type,
    optional_integer,
    optional_size,
)


class Table(StrEnum):
    """The form in which a lookup table stores the pages of a sequence."""

    DENSE = "dense"
    CSR = "csr"
    ROWS = "rows"


class CacheType(Type):
    """The type of a cache: a collection of all layers, or a view of one layer's keys or
    values.

    Attributes:
        dtype: MLIR's name of the elements' type.
        params: The number of heads and their size.
        page_size: Tokens per page, or ``DYNAMIC``; None for a continuous cache.
        scale: MLIR's name of the scales' type; None without scales.
        granularity: The number of elements of a head that share a scale, 1 by default;
            None without scales.
        zero_point: MLIR's name of the zero points' type; None without zero points.
        token_granularity: The number of consecutive tokens that share a scale.
        layout: The strides inside pages; None for packed rows.
        scale_layout: The strides of the scales inside pages; None for packed rows.
        table: The form of the lookup table.
    """

    dtype: str
    params: ParamsAttr
    page_size: int | None = None
    scale: str | None = None
    granularity: int | None = None
    layout: LayoutAttr | None = None
    scale_layout: LayoutAttr | None = None
    table: Table = Table.DENSE
    zero_point: str | None = None
    token_granularity: int = 1


@dataclass(frozen=True, init=False, eq=False)
class _PagedType(CacheType):
    dtype: str
    params: ParamsAttr
    page_size: int
    scale: str | None
    granularity: int | None
    layout: LayoutAttr | None
    scale_layout: LayoutAttr | None
    table: Table
    zero_point: str | None
    token_granularity: int

    def __init__(
        self,
        dtype: DTypeLike,
        params: ParamsAttr | str,
        page_size: int,
        scale: DTypeLike | None = None,
        granularity: int | None = None,
        layout: LayoutAttr | str | None = None,
        scale_layout: LayoutAttr | str | None = None,
        table: Table | str = Table.DENSE,
        zero_point: DTypeLike | None = None,
        token_granularity: int = 1,
    ) -> None:
        if scale is not None and granularity is None:
            granularity = 1
        self._make(
            dtype=element_type("dtype", dtype),
            params=_to_params(params),
            page_size=integer("page_size", page_size),
            scale=optional_element_type("scale", scale),
            granularity=optional_integer("granularity", granularity),
            layout=_to_layout(layout),
            scale_layout=_to_layout(scale_layout),
            table=member("table", Table, table),
            zero_point=optional_element_type("zero_point", zero_point),
            token_granularity=integer("token_granularity", token_granularity),
        )


class PagedCollectionType(_PagedType):
    """``!kvcache.paged_collection``: a paged cache of all layers."""


class PagedCacheType(_PagedType):
    """``!kvcache.paged``: a paged cache of one layer's keys or values."""


@dataclass(frozen=True, init=False, eq=False)
class _ContinuousType(CacheType):
    dtype: str
    params: ParamsAttr

    def __init__(self, dtype: DTypeLike, params: ParamsAttr | str) -> None:
        self._make(dtype=element_type("dtype", dtype), params=_to_params(params))


class ContinuousCollectionType(_ContinuousType):
    """``!kvcache.continuous_collection``: a continuous cache of all layers."""


class ContinuousCacheType(_ContinuousType):
    """``!kvcache.continuous``: a continuous cache of one layer's keys or values."""


@dataclass(frozen=True, init=False, eq=False)
class ScalesType(Type):
    """``!kvcache.scales``: a view of the scales of a cache.

    Attributes:
        cache: The type of the cache; if it has no scales, the view has no memory.
    """

    cache: PagedCacheType | ContinuousCacheType

    def __init__(self, cache: PagedCacheType | ContinuousCacheType | str) -> None:
        # The dialect requires a view, not a collection.
        self._make(cache=cache if isinstance(cache, Type) else Type.parse(cache))


@dataclass(frozen=True, init=False, eq=False)
class RowIndicesType(Type):
    """``!kvcache.row_indices``: row indices of consecutive tokens.

    Attributes:
        rows: The number of rows.
        page_size: Tokens in a page, or ``DYNAMIC``; None for a continuous cache.
    """

    rows: int
    page_size: int | None

    def __init__(self, rows: int, page_size: int | None = None) -> None:
        self._make(
            rows=integer("rows", rows),
            page_size=optional_size("page_size", page_size),
        )


def _to_layout(layout: LayoutAttr | str | None) -> LayoutAttr | None:
    return LayoutAttr.parse(layout) if isinstance(layout, str) else layout


def _to_params(params: ParamsAttr | str) -> ParamsAttr:
    return params if isinstance(params, ParamsAttr) else ParamsAttr.parse(params)
