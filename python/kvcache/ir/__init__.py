# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The IR in Python: types and attributes of the dialect, modules, and a builder of
functions.

Types and attributes are values: two with the same text are equal. They can be hashed,
pickled, matched, and changed with ``dataclasses.replace``. Their constructors run the
verifiers of the dialect: an invalid one raises ``CompileError``.
"""

from .attributes import (
    CopyKind,
    CopyKindAttr,
    Eviction,
    AttentionConfigAttr,
    EvictionAttr,
    SplitAttr,
    LayoutAttr,
    Major,
    MajorAttr,
    ParamsAttr,
    Swizzle,
    SwizzleAttr,
)
from .base import DYNAMIC, Attribute, Type
from .builder import FunctionBuilder, Value
from .caches import (
    CacheType,
    ContinuousCacheType,
    ContinuousCollectionType,
    PagedCacheType,
    PagedCollectionType,
    RowIndicesType,
    ScalesType,
    Table,
)
from .fragments import (
    FragmentLayout,
    FragmentType,
    InFlightType,
    Schedule,
    ScheduleAttr,
)
from .module import Argument, Function, Module
from .tiles import PipeType, TileType, TMATileType, TmemTileType, TokenType

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
    "AttentionConfigAttr",
    "EvictionAttr",
    "SplitAttr",
    "FragmentLayout",
    "FragmentType",
    "Function",
    "FunctionBuilder",
    "InFlightType",
    "LayoutAttr",
    "Major",
    "MajorAttr",
    "Module",
    "PagedCacheType",
    "PagedCollectionType",
    "ParamsAttr",
    "PipeType",
    "RowIndicesType",
    "ScalesType",
    "Schedule",
    "ScheduleAttr",
    "Swizzle",
    "SwizzleAttr",
    "TMATileType",
    "Table",
    "TileType",
    "TmemTileType",
    "TokenType",
    "Type",
    "Value",
]
