# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Types of matrices in registers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from ..checks import check_flag
from ..dtypes import DTypeLike
from .base import Attribute, Type, element_type, integer, member, several


class FragmentLayout(StrEnum):
    """The elements of a matrix that a thread has: those of an operand of a matrix instruction."""

    MMA_ACC = "mma_acc"
    MMA_A16 = "mma_a16"
    WGMMA_ACC = "wgmma_acc"
    WGMMA_A16 = "wgmma_a16"
    WGMMA_A8 = "wgmma_a8"
    TMEM_ACC = "tmem_acc"
    WGMMA_ACC_T = "wgmma_acc_t"
    MMA_A16_PAIRS = "mma_a16_pairs"
    MMA_ACC_PAIRS = "mma_acc_pairs"
    TMEM_ROW = "tmem_row"
    MMA_A16_QUADS = "mma_a16_quads"
    MMA_ACC_QUADS = "mma_acc_quads"


class Schedule(StrEnum):
    """The overlap of the products of a loop over tiles."""

    PIPELINED = "pipelined"
    PING_PONG = "ping_pong"
    PREFETCH = "prefetch"
    SEESAW = "seesaw"
    ROLES = "roles"
    PAIR = "pair"


@dataclass(frozen=True, init=False, eq=False)
class ScheduleAttr(Attribute):
    """``#kvcache.schedule<ping_pong>``."""

    value: Schedule

    def __init__(self, value: Schedule | str) -> None:
        self._make(value=member("value", Schedule, value))


@dataclass(frozen=True, init=False, eq=False)
class FragmentType(Type):
    """``!kvcache.fragment``: a matrix in the registers of a team of threads.

    Attributes:
        shape: Rows and columns, or rows alone for a number of each row.
        dtype: MLIR's name of the elements' type.
        layout: The elements that a thread has.
        partial: Whether each lane that shares a row has a share of its number.
    """

    shape: tuple[int, ...]
    dtype: str
    layout: FragmentLayout
    partial: bool

    def __init__(
        self,
        shape: Iterable[int],
        dtype: DTypeLike,
        layout: FragmentLayout | str,
        partial: bool = False,
    ) -> None:
        check_flag(partial=partial)
        self._make(
            shape=tuple(integer("shape", size) for size in several("shape", shape)),
            dtype=element_type("dtype", dtype),
            layout=member("layout", FragmentLayout, layout),
            partial=bool(partial),
        )


@dataclass(frozen=True, init=False, eq=False)
class InFlightType(Type):
    """``!kvcache.in_flight``: a product of matrices that is being computed.

    Attributes:
        shape: Rows and columns.
        dtype: MLIR's name of the elements' type.
        layout: The layout of the accumulator.
    """

    shape: tuple[int, int]
    dtype: str
    layout: FragmentLayout

    def __init__(
        self, shape: tuple[int, int], dtype: DTypeLike, layout: FragmentLayout | str
    ) -> None:
        sizes = tuple(integer("shape", size) for size in several("shape", shape))
        if len(sizes) != 2:
            raise ValueError(f"expects 'shape' to be rows and columns, got {shape!r}")
        self._make(
            shape=sizes,
            dtype=element_type("dtype", dtype),
            layout=member("layout", FragmentLayout, layout),
        )
