# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Types of caches, of their scales, and of row indices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..dtypes import DTypeLike
from .attributes import ParamsAttr
from .base import Type, element_type, integer, optional_element_type, optional_integer


DYNAMIC = -(2**63)
"""MLIR's number for a size that is known only at run time, ``?`` in text."""


class CacheType(Type):
    """The type of a cache: a collection of all layers, or a view of one layer's keys or
    values.

    Attributes:
        dtype: MLIR's name of the elements' type.
        params: Heads and head size.
        page_size: Tokens in a page, or ``DYNAMIC``; None for a continuous cache.
        scale: MLIR's name of the scales' type; None without scales.
        granularity: Elements of a head that share a scale; None without scales.
    """

    dtype: str
    params: ParamsAttr
    page_size: int | None = None
    scale: str | None = None
    granularity: int | None = None


@dataclass(frozen=True, init=False, eq=False)
class _PagedType(CacheType):
    dtype: str
    params: ParamsAttr
    page_size: int
    scale: str | None
    granularity: int | None

    def __init__(
        self,
        dtype: DTypeLike,
        params: ParamsAttr | str,
        page_size: int,
        scale: DTypeLike | None = None,
        granularity: int | None = None,
    ) -> None:
        self._make(
            dtype=element_type("dtype", dtype),
            params=_to_params(params),
            page_size=integer("page_size", page_size),
            scale=optional_element_type("scale", scale),
            granularity=optional_integer("granularity", granularity),
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
    """``!kvcache.scales``: a view of the scales of a quantized cache.

    Attributes:
        cache: The cache of the scales.
    """

    cache: PagedCacheType

    def __init__(self, cache: PagedCacheType | str) -> None:
        # That it is a cache with scales is a rule of the dialect.
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
            page_size=_to_page_size(page_size),
        )


def _to_page_size(page_size: int | None) -> int | None:
    is_open = isinstance(page_size, int | np.integer) and page_size == DYNAMIC
    return DYNAMIC if is_open else optional_integer("page_size", page_size)


def _to_params(params: ParamsAttr | str) -> ParamsAttr:
    return params if isinstance(params, ParamsAttr) else ParamsAttr.parse(params)
