# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attributes of the dialect. Roles and extents are plain integers in the IR."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from ..checks import check_flag
from .base import Attribute, integer, member, optional_integer, optional_size


@dataclass(frozen=True, init=False, eq=False)
class ParamsAttr(Attribute):
    """``#kvcache.params``: the shape of a token in a cache.

    Attributes:
        num_heads: The number of heads of keys and values.
        head_size: The number of elements of a head.
        is_mla: Whether a token has one latent row, instead of a key and a value.
    """

    num_heads: int
    head_size: int
    is_mla: bool

    def __init__(self, num_heads: int, head_size: int, is_mla: bool = False) -> None:
        check_flag(is_mla=is_mla)
        self._make(
            num_heads=integer("num_heads", num_heads),
            head_size=integer("head_size", head_size),
            is_mla=bool(is_mla),
        )


@dataclass(frozen=True, init=False, eq=False)
class LayoutAttr(Attribute):
    """``#kvcache.layout``: strides inside the pages of a cache, in stored elements.

    Attributes:
        token_stride: The distance from a token to the next.
        head_stride: The distance from a head to the next, or ``DYNAMIC``; None for one
            head.
        interleave: The number of tokens whose scales share rows; 1 if they don't.
        role_stride: The distance from keys to values; None if it is as aligned as
            tokens and heads.
    """

    token_stride: int
    head_stride: int | None
    interleave: int
    role_stride: int | None

    def __init__(
        self,
        token_stride: int,
        head_stride: int | None = None,
        interleave: int = 1,
        role_stride: int | None = None,
    ) -> None:
        self._make(
            token_stride=integer("token_stride", token_stride),
            head_stride=optional_size("head_stride", head_stride),
            interleave=integer("interleave", interleave),
            role_stride=optional_integer("role_stride", role_stride),
        )


class Swizzle(StrEnum):
    """The layout of a tile in shared memory: the span of its swizzle in bytes."""

    NONE = "none"
    SPAN_32 = "swizzle_32b"
    SPAN_64 = "swizzle_64b"
    SPAN_128 = "swizzle_128b"


@dataclass(frozen=True, init=False, eq=False)
class SwizzleAttr(Attribute):
    """``#kvcache.swizzle<swizzle_128b>``."""

    value: Swizzle

    def __init__(self, value: Swizzle | str) -> None:
        self._make(value=member("value", Swizzle, value))


class Major(StrEnum):
    """The index of a matrix product that runs along the rows of a tile."""

    K = "k_major"
    MN = "mn_major"


@dataclass(frozen=True, init=False, eq=False)
class MajorAttr(Attribute):
    """``#kvcache.major<k_major>``."""

    value: Major

    def __init__(self, value: Major | str) -> None:
        self._make(value=member("value", Major, value))


class Eviction(StrEnum):
    """The eviction priority in the L2 cache."""

    NORMAL = "evict_normal"
    FIRST = "evict_first"
    LAST = "evict_last"


@dataclass(frozen=True, init=False, eq=False)
class EvictionAttr(Attribute):
    """``#kvcache.eviction<evict_first>``."""

    value: Eviction

    def __init__(self, value: Eviction | str) -> None:
        self._make(value=member("value", Eviction, value))


class CopyKind(StrEnum):
    """The kind of instructions that copy into a tile."""

    PLAIN = "plain"
    CP_ASYNC = "cp_async"
    TENSOR_BOXES = "tensor_boxes"
    TENSOR_ROWS = "tensor_rows"
    BULK_ROWS = "bulk_rows"


@dataclass(frozen=True, init=False, eq=False)
class CopyKindAttr(Attribute):
    """``#kvcache.copy<tensor_boxes>``."""

    value: CopyKind

    def __init__(self, value: CopyKind | str) -> None:
        self._make(value=member("value", CopyKind, value))


@dataclass(frozen=True, init=False, eq=False)
class SplitAttr(Attribute):
    """``#kvcache.split<keys = 256, max = 32, rows = 1>``.

    Attributes:
        keys: Keys per split; more if there would be more than ``max`` splits.
        max: The most splits of a query row.
        rows: The most new tokens of a sequence whose queries are split.
    """

    keys: int
    max: int
    rows: int

    def __init__(self, keys: int = 256, max: int = 32, rows: int = 1) -> None:
        self._make(
            keys=integer("keys", keys),
            max=integer("max", max),
            rows=integer("rows", rows),
        )


@dataclass(frozen=True, init=False, eq=False)
class AttentionConfigAttr(Attribute):
    """``#kvcache.attention_config<mma = wgmma, rows = 128>``.

    ``kvcache.AttentionConfig`` has the fields by name, and writes the text.

    Attributes:
        numbers: The fields in the order of the text: numbers of enum cases, 0 and 1 for
            bools, and -1 for a field that is not set. The last ones may be left out.
    """

    numbers: tuple[int, ...]

    def __init__(self, numbers: Sequence[int] = ()) -> None:
        self._make(numbers=tuple(integer("numbers", number) for number in numbers))
