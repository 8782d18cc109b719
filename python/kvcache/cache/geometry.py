# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Geometry of TMA descriptors and of tiles in shared memory.

These are the compiler's functions, for hosts that create their own descriptors, and for
tests. Sizes are in elements, except where bytes are named. Dims, strides and boxes are
innermost first, as in CUDA.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .. import _native, dtypes
from ..checks import check_flag, check_integer, check_positive
from ..dtypes import DTypeLike

_MAX_SIZE = 2**48
_SPANS = {"none": 16, "32b": 32, "64b": 64, "128b": 128}

# The sizes of each kind of descriptor besides the dtype, and the optional ones.
_TILE = ("num_heads", "head_size", "num_rows", "rows")
_LAYOUT = ("token_stride", "head_stride")
_SIZES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "tile": (_TILE, ("page_size", "columns", *_LAYOUT)),
    "matrix": (_TILE, ("columns",)),
    "paged": (
        ("num_heads", "head_size", "page_size", "num_pages", "rows", "columns"),
        ("page_stride", *_LAYOUT),
    ),
    "ragged": (_TILE, ("columns", *_LAYOUT)),
    "rope": (
        ("num_heads", "num_rows", "rows", "columns", "padded_depth"),
        ("page_size",),
    ),
    "gather4": (
        ("num_rows", "tile_width"),
        ("tile_stride", "num_heads", "head_size", *_LAYOUT),
    ),
    "rope_gather4": (("num_rows", "tile_width", "padded_depth"), ()),
    "scale": (("page_size", "num_pages", "page_stride", "rows"), ()),
}


@dataclass(frozen=True)
class DescriptorFields:
    """The arguments of ``cuTensorMapEncodeTiled``, except for the address.

    Attributes:
        dtype: The element type of the descriptor.
        dims: The sizes of the tensor.
        strides: The strides of all dimensions except the innermost, which has stride 1.
        box: The sizes of the box that one copy moves.
        swizzle: ``"none"``, ``"32b"``, ``"64b"`` or ``"128b"``.
        offset: Bytes from the base of the cache's view to the tensor.
        broken_limit: The first hardware limit that the descriptor exceeds, or None.
    """

    dtype: np.dtype
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: str
    offset: int
    broken_limit: str | None


def span(swizzle: str) -> int:
    """The span of a swizzle in bytes of a row; 16 without a swizzle."""
    if not isinstance(swizzle, str) or swizzle not in _SPANS:
        known = ", ".join(map(repr, _SPANS))
        raise ValueError(f"unknown swizzle {swizzle!r}; known are {known}")
    return _SPANS[swizzle]


def check_sizes(**sizes: int) -> None:
    """Raises like ``check_positive``, and ``ValueError`` if bytes exceed 64 bits."""
    check_positive(**sizes)
    for name, size in sizes.items():
        if size >= _MAX_SIZE:
            raise ValueError(f"expects {name!r} to be below 2^48, got {size}")


def _bytes(spec: DTypeLike) -> int:
    result = dtypes.dtype(spec)
    if result.name.startswith(("float4_", "float6_")):
        raise ValueError(f"{result.name} has less than a byte: view it as int8")
    return result.itemsize


def swizzle_granularity(dtype: DTypeLike, swizzle: str) -> int:
    """The number of elements in the span of a swizzle, 16 bytes for ``"none"``."""
    return span(swizzle) // _bytes(dtype)


def padded_depth(dtype: DTypeLike, swizzle: str, depth: int) -> int:
    """Rounds ``depth`` up to whole spans of a swizzle."""
    check_sizes(depth=depth)
    return _native.extension().padded_depth(_bytes(dtype), span(swizzle), depth)


def gather4_box_width(dtype: DTypeLike, tile_width: int, swizzle: str) -> int:
    """The elements of a row that one gather4 moves: a span, or the width without a
    swizzle."""
    check_sizes(tile_width=tile_width)
    return _native.extension().gather4_box_width(
        _bytes(dtype), tile_width, span(swizzle)
    )


def scale_window(dtype: DTypeLike, rows: int) -> int:
    """The number of scales to copy so that they contain ``rows`` scales with any start.

    A copy starts at a multiple of 16 bytes, so it needs 16 bytes more than the rows.
    """
    check_sizes(rows=rows)
    return _native.extension().scale_window(_bytes(dtype), rows)


def folded_chunks(
    dtype: DTypeLike,
    swizzle: str,
    *,
    head_size: int,
    rows: int,
    columns: int,
    page_size: int | None = None,
    chunk_inner: bool = False,
) -> int:
    """The number of column chunks that one copy moves by an additional dimension, or 1.

    Args:
        dtype: The dtype of the tile.
        swizzle: ``"none"``, ``"32b"``, ``"64b"`` or ``"128b"``.
        head_size: The number of elements of a head.
        rows: Rows of the tile; a copy moves at most ``page_size`` rows of a page.
        columns: Columns of the tile; a chunk has the columns of a span.
        page_size: Tokens per page; None for a cache without pages.
        chunk_inner: Whether the box orders chunks within groups of 8 rows, so that it
            may have fewer rows than the tile.
    """
    check_sizes(head_size=head_size, rows=rows, columns=columns)
    check_flag(chunk_inner=chunk_inner)
    box_rows = rows
    if page_size is not None:
        check_positive(page_size=page_size)
        box_rows = min(rows, page_size)
    sizes = head_size, rows, columns, box_rows, bool(chunk_inner)
    return _native.extension().folded_chunks(_bytes(dtype), span(swizzle), *sizes)


def check_shape(shape: tuple[int, int]) -> tuple[int, int]:
    """Raises ``ValueError`` unless the rows and columns of a tile are two sizes."""
    if not isinstance(shape, Sequence) or len(shape) != 2:
        raise ValueError(f"expects 'shape' to be rows and columns, got {shape!r}")
    rows, columns = shape
    check_sizes(rows=rows, columns=columns)
    return int(rows), int(columns)


def tile_offset(
    shape: tuple[int, int], dtype: DTypeLike, swizzle: str, row: int, column: int
) -> int:
    """The byte offset of an element of a tile in shared memory.

    Args:
        shape: Rows and columns of the tile.
        dtype: The dtype of the tile.
        swizzle: ``"none"``, ``"32b"``, ``"64b"`` or ``"128b"``.
        row: The row of the element, from 0 on.
        column: Its column, from 0 on.

    Raises:
        IndexError: The element is outside of the tile.

    Examples:
        >>> tile_offset((64, 64), "bf16", "none", row=1, column=0)
        128
        >>> tile_offset((64, 64), "bf16", "128b", row=1, column=0)
        144
    """
    rows, columns = check_shape(shape)
    check_integer(row=row, column=column)
    if not (0 <= row < rows and 0 <= column < columns):
        raise IndexError(f"element ({row}, {column}) of a tile of {rows} x {columns}")
    size = _bytes(dtype)
    return _native.extension().tile_offset(
        rows, columns, size, span(swizzle), row, column
    )


def descriptor_fields(
    kind: str,
    *,
    dtype: DTypeLike,
    swizzle: str = "none",
    major: str = "k",
    **sizes: int,
) -> DescriptorFields:
    """The fields of a descriptor of a view of a cache.

    ==============  ==============================================================
    kind            sizes
    ==============  ==============================================================
    tile            num_heads, head_size, num_rows, rows; page_size of a paged
                    cache; columns, 16 bytes of them unless given
    matrix          num_heads, head_size, num_rows, rows; columns as for tile, which
                    ``major="mn"`` needs
    paged           num_heads, head_size, page_size, num_pages, rows, columns;
                    page_stride, in elements, packed unless given
    ragged          num_heads, head_size, num_rows, rows; columns as for tile
    rope            num_heads, num_rows, rows, columns, padded_depth; page_size of a
                    paged cache
    gather4         num_rows, tile_width; tile_stride unless it is the width
    rope_gather4    num_rows, tile_width, padded_depth
    scale           page_size, num_pages, page_stride, rows
    ==============  ==============================================================

    Args:
        kind: See the table; each kind has an op ``kvcache.create_…_tma_tile``. The op
            ``create_tma_tile`` of a continuous cache has the kind matrix.
        dtype: The dtype of the cache; for gather4 that of the descriptor, which may
            differ; for the kind scale that of the scales. Rope is bfloat16.
        swizzle: ``"none"``, ``"32b"``, ``"64b"`` or ``"128b"``.
        major: ``"k"`` or ``"mn"``: the index that runs along the rows of a matrix.
        sizes: The sizes of the table. A cache with a layout needs ``token_stride``, and
            with several heads ``head_stride``, both in elements. That holds for tile,
            paged, which then needs ``page_stride``, ragged, and gather4, which then
            needs ``num_heads`` and ``head_size``. ``num_rows`` counts the rows from the
            first to the last of the view (``kvcache.num_kv_rows``), with a whole number
            of rows between pages. ``rows`` and ``columns`` are those of the tile; a
            swizzled box has the columns of a span. ``padded_depth`` bytes precede the
            rope.

    Raises:
        ValueError: The kind, swizzle or major is unknown, or sizes are missing, not
            positive, or not of this kind. A hardware limit does not raise: see
            ``broken_limit``.
    """
    if not isinstance(kind, str) or kind not in _SIZES:
        raise ValueError(f"unknown kind {kind!r}; known are {', '.join(_SIZES)}")
    if not isinstance(major, str) or major not in ("k", "mn"):
        raise ValueError(f"expects major to be 'k' or 'mn', got {major!r}")
    needed, optional = _SIZES[kind]
    if missing := [name for name in needed if name not in sizes]:
        raise ValueError(f"{kind} needs {', '.join(missing)}")
    if unknown := [name for name in sizes if name not in needed + optional]:
        raise ValueError(f"{kind} takes no {', '.join(unknown)}")
    check_sizes(**sizes)
    # NumPy's integers would overflow.
    sizes = {name: int(size) for name, size in sizes.items()}
    if major == "mn" and (kind != "matrix" or "columns" not in sizes):
        raise ValueError("expects major 'mn' only for a matrix with columns")
    _check_layout(kind, sizes)
    if kind == "paged":
        row = sizes["num_heads"] * sizes["head_size"]
        sizes.setdefault("page_stride", sizes["page_size"] * row)
        check_sizes(page_stride=sizes["page_stride"])
    if kind == "gather4":
        width = sizes.get("token_stride", sizes["tile_width"])
        sizes.setdefault("tile_stride", width)
    if kind.startswith("rope"):
        dtype = "bfloat16"
    elements = [sizes.get(name, 1) for name in ("num_heads", "head_size", "rows")]
    check_sizes(**{"num_heads * head_size * rows": math.prod(elements)})
    values = {**sizes, "element_bytes": _bytes(dtype), "span": span(swizzle)}
    values["mn_major"] = int(major == "mn")
    dims, strides, box, offset, broken = _native.extension().tensor_map(kind, values)
    element = dtypes.dtype(dtype)
    return DescriptorFields(element, dims, strides, box, swizzle, offset, broken)


def _check_layout(kind: str, sizes: Mapping[str, int]) -> None:
    """Raises ``ValueError`` for distances that contradict the other sizes."""
    if "head_stride" in sizes and "token_stride" not in sizes:
        raise ValueError("expects 'token_stride' with 'head_stride'")
    if "token_stride" not in sizes:
        return
    also = {"paged": ("page_stride",), "gather4": ("num_heads", "head_size")}.get(
        kind, ()
    )
    several = ("head_stride",) if sizes.get("num_heads", 1) > 1 else ()
    if missing := [name for name in (*also, *several) if name not in sizes]:
        raise ValueError(f"{kind} with 'token_stride' needs {', '.join(missing)}")
