# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The IR in Python: types and attributes of the dialect, and parsed modules.

Types and attributes are values: two with the same text are equal. They can be hashed,
pickled, matched, and changed with ``dataclasses.replace``. Their constructors run the
verifiers of the dialect: an invalid one raises ``CompileError``.
"""

from .attributes import (
    CopyKind,
    CopyKindAttr,
    Eviction,
    EvictionAttr,
    Major,
    MajorAttr,
    ParamsAttr,
    Swizzle,
    SwizzleAttr,
)
from .base import Attribute, Type
from .caches import (
    DYNAMIC,
    CacheType,
    ContinuousCacheType,
    ContinuousCollectionType,
    PagedCacheType,
    PagedCollectionType,
    RowIndicesType,
    ScalesType,
)
from .module import Argument, Function, Module
from .tiles import PipeType, TileType, TMATileType, TokenType

__all__ = [
    "DYNAMIC",
    "Argument",
    "Attribute",
    "CacheType",
    "ContinuousCacheType",
    "ContinuousCollectionType",
    "CopyKind",
    "CopyKindAttr",
    "Eviction",
    "EvictionAttr",
    "Function",
    "Major",
    "MajorAttr",
    "Module",
    "PagedCacheType",
    "PagedCollectionType",
    "ParamsAttr",
    "PipeType",
    "RowIndicesType",
    "ScalesType",
    "Swizzle",
    "SwizzleAttr",
    "TMATileType",
    "TileType",
    "TokenType",
    "Type",
]
