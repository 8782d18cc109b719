# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Types of tiles, of copies into them, and of descriptors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..dtypes import DTypeLike
from .attributes import Swizzle
from .base import Type, element_type, integer, member, optional_integer, several


@dataclass(frozen=True, init=False, eq=False)
class TileType(Type):
    """``!kvcache.tile``: a tile of a cache in shared memory.

    Attributes:
        rows: The number of rows.
        columns: Elements of a row.
        dtype: MLIR's name of the elements' type.
        swizzle: The layout in memory.
    """

    rows: int
    columns: int
    dtype: str
    swizzle: Swizzle

    def __init__(
        self,
        rows: int,
        columns: int,
        dtype: DTypeLike,
        swizzle: Swizzle | str = Swizzle.NONE,
    ) -> None:
        self._make(
            rows=integer("rows", rows),
            columns=integer("columns", columns),
            dtype=element_type("dtype", dtype),
            swizzle=member("swizzle", Swizzle, swizzle),
        )


@dataclass(frozen=True, init=False, eq=False)
class TmemTileType(Type):
    """``!kvcache.tmem_tile``: a tile in tensor memory.

    Attributes:
        rows: The number of rows.
        columns: Elements of a row.
        dtype: MLIR's name of the elements' type.
    """

    rows: int
    columns: int
    dtype: str

    def __init__(self, rows: int, columns: int, dtype: DTypeLike) -> None:
        self._make(
            rows=integer("rows", rows),
            columns=integer("columns", columns),
            dtype=element_type("dtype", dtype),
        )


@dataclass(frozen=True, init=False, eq=False)
class TokenType(Type):
    """``!kvcache.token``: the token of an asynchronous tile copy."""

    def __init__(self) -> None:
        self._make()


@dataclass(frozen=True, init=False, eq=False)
class PipeType(Type):
    """``!kvcache.pipe``: a pipe of tiles.

    Attributes:
        stages: The number of stages of the ring.
        tiles: The tiles of a stage.
        producers: The number of warps that fill the stages; None if all threads do.
    """

    stages: int
    tiles: tuple[TileType, ...]
    producers: int | None

    def __init__(
        self,
        stages: int,
        tiles: Iterable[TileType | str],
        producers: int | None = None,
    ) -> None:
        # The dialect requires tiles.
        self._make(
            stages=integer("stages", stages),
            tiles=tuple(
                tile if isinstance(tile, Type) else Type.parse(tile)
                for tile in several("tiles", tiles)
            ),
            producers=optional_integer("producers", producers),
        )


@dataclass(frozen=True, init=False, eq=False)
class TMATileType(Type):
    """``!kvcache.tma_tile``: a TMA descriptor (tensor map).

    Attributes:
        box: The sizes of a box, innermost first.
        dtype: MLIR's name of the elements' type.
        swizzle: The layout of a box in shared memory.
        l2_promotion: The minimum number of bytes that the L2 cache fetches; None if not
            given.
    """

    box: tuple[int, ...]
    dtype: str
    swizzle: Swizzle
    l2_promotion: int | None

    def __init__(
        self,
        box: Iterable[int],
        dtype: DTypeLike,
        swizzle: Swizzle | str = Swizzle.NONE,
        l2_promotion: int | None = None,
    ) -> None:
        self._make(
            box=tuple(integer("box", side) for side in several("box", box)),
            dtype=element_type("dtype", dtype),
            swizzle=member("swizzle", Swizzle, swizzle),
            l2_promotion=optional_integer("l2_promotion", l2_promotion),
        )
