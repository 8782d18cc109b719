# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pictures of tiles in shared memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from .. import dtypes
from ..cache import geometry
from ..checks import check_integer
from ..dtypes import DTypeLike
from .svg import BLANK, EDGE, INK, MARGIN, Canvas, Picture, count

MAX_BYTES = 16384

_CHUNK = 16  # bytes of a chunk, which a swizzle permutes, and of a row of an ldmatrix
_LINE = 128  # bytes of 32 banks
_CHUNKS = _LINE // _CHUNK
_MATRIX_ROWS = 8  # of one pass of ldmatrix

_START = 96  # after the offsets of the lines
_CELL_WIDTH = 99
_CELL_HEIGHT = 24
# From the first column to the last: ever darker, to show the order.
_RAMP = ((0xFF, 0xF7, 0xD6), (0x9F, 0xD3, 0xC7), (0x5B, 0x93, 0xCF))


def draw_tile(
    shape: tuple[int, int],
    dtype: DTypeLike,
    swizzle: str,
    *,
    read: tuple[int, int] | None = (0, 0),
) -> Picture:
    """Draws a tile in the banks of shared memory.

    A line is 128 bytes, the 32 banks of 4 bytes. Each 16-byte chunk shows the row and
    column of its first element, with a color for the column. A frame marks the 8 rows
    of 16 bytes of one column that an ``ldmatrix`` reads, with its number of passes.

    Args:
        shape: The rows and columns of the tile.
        dtype: The dtype of the tile.
        swizzle: ``"none"``, ``"32b"``, ``"64b"`` or ``"128b"``.
        read: The row and column of the first element that is read; None for no read.

    Raises:
        TypeError: The dtype is unknown, or the read is not of integers.
        ValueError: The swizzle is unknown, or elements have less than a byte. Rows are
            not a multiple of 16 bytes, or several spans of columns have no multiple of
            8 rows. The tile has more than 16,384 bytes, or the read is outside of it.
    """
    chunks = _place_chunks(shape, dtype, swizzle)
    framed = [] if read is None else _list_read_chunks(shape, dtype, read)
    name = f"{shape[0]} x {shape[1]} {dtypes.mlir_name(dtype)}"
    title = f"Tile of {name}, {_swizzle_note(swizzle)}"
    offsets = {element: offset for offset, element in chunks.items()}
    touched = [offsets[element] for element in framed]
    note = _read_note(framed, touched)
    canvas = Canvas(title, f"Where each 16 bytes of the tile lie in 32 banks. {note}")
    canvas.heading(title, "a line is 128 bytes; in each 16 of them: row, column")
    if note:
        canvas.text(MARGIN, canvas.y, note, "note")
        canvas.y += 24
    _draw_banks(canvas, touched)
    _draw_lines(canvas, chunks, set(touched))
    canvas.y += MARGIN - 8
    return canvas.finish()


def _count_passes(offsets: list[int]) -> int:
    """Counts the passes through the banks of a read of 16-byte chunks at ``offsets``.

    A bank returns one of its 4-byte words per pass.
    """
    words = {offset // 4 + word for offset in offsets for word in range(_CHUNK // 4)}
    return max(Counter(word % 32 for word in words).values(), default=0)


def _check_tile(shape: tuple[int, int], dtype: DTypeLike, swizzle: str) -> int:
    """Returns the number of elements of a chunk."""
    per_span = geometry.swizzle_granularity(dtype, swizzle)
    per_chunk = geometry.swizzle_granularity(dtype, "none")
    rows, columns = geometry.check_shape(shape)
    if columns % per_chunk:
        raise ValueError(
            f"expects rows of a multiple of {_CHUNK} bytes, got {columns} columns of "
            f"{dtypes.mlir_name(dtype)}"
        )
    if swizzle != "none" and columns > per_span and rows % 8:
        raise ValueError(
            f"expects a multiple of 8 rows for several chunks of {per_span} columns, "
            f"got {rows}"
        )
    if (size := rows * columns * _CHUNK // per_chunk) > MAX_BYTES:
        raise ValueError(
            f"expects a tile of at most {MAX_BYTES:,} bytes in a picture, got {size:,}"
        )
    return per_chunk


def _place_chunks(
    shape: tuple[int, int], dtype: DTypeLike, swizzle: str
) -> dict[int, tuple[int, int]]:
    """The row and column of each chunk's first element, by its offset in the tile."""
    step = _check_tile(shape, dtype, swizzle)
    return {
        geometry.tile_offset(shape, dtype, swizzle, row, column): (row, column)
        for row in range(shape[0])
        for column in range(0, shape[1], step)
    }


def _list_read_chunks(
    shape: tuple[int, int], dtype: DTypeLike, read: tuple[int, int]
) -> list[tuple[int, int]]:
    """The chunks of an ``ldmatrix``, by their first elements."""
    if not isinstance(read, Sequence) or len(read) != 2:
        raise TypeError(f"expects 'read' to be a row and a column, got {read!r}")
    (rows, columns), (row, column) = shape, read
    check_integer(row=row, column=column)
    per_chunk = geometry.swizzle_granularity(dtype, "none")
    if not 0 <= column < columns or column % per_chunk:
        raise ValueError(
            f"expects the column of 'read' to be a multiple of {per_chunk} below "
            f"{columns}, got {column}"
        )
    if not 0 <= row <= rows - _MATRIX_ROWS:
        raise ValueError(
            f"expects the row of 'read' to have {_MATRIX_ROWS} rows of the tile's "
            f"{rows} from it on, got {row}"
        )
    return [(row + index, column) for index in range(_MATRIX_ROWS)]


def _swizzle_note(swizzle: str) -> str:
    span = f"swizzle of {geometry.span(swizzle)} bytes"
    return "without a swizzle" if swizzle == "none" else span


def _read_note(framed: list[tuple[int, int]], touched: list[int]) -> str:
    """Describes the passes of a read; empty for no read."""
    if not framed:
        return ""
    (first, column), (last, _) = framed[0], framed[-1]
    passes = _count_passes(touched)
    taken = f"{passes} passes" if passes > 1 else "one pass"
    conflicts = count(passes - 1, "bank conflict") if passes > 1 else "no bank conflict"
    return (
        f"framed: an ldmatrix of rows {first} to {last}, 16 bytes from column {column} "
        f"on, takes {taken} through the banks: {conflicts}"
    )


def _draw_banks(canvas: Canvas, touched: list[int]) -> None:
    """Draws the heads of the columns: their banks, and the number of reads of each."""
    reads = Counter(offset % _LINE // _CHUNK for offset in touched)
    for chunk in range(_CHUNKS):
        x = _START + chunk * _CELL_WIDTH + _CELL_WIDTH / 2
        banks = f"banks {4 * chunk}–{4 * chunk + 3}"
        canvas.text(x, canvas.y + 6, banks, "note", "middle")
        if touched:
            times = f"read {reads[chunk]}×" if reads[chunk] else "–"
            canvas.text(x, canvas.y + 22, times, "bank-reads small", "middle")
    canvas.y += 32 if touched else 16


def _draw_lines(
    canvas: Canvas, chunks: dict[int, tuple[int, int]], touched: set[int]
) -> None:
    size = max(chunks) + _CHUNK
    last_column = max(column for _, column in chunks.values())
    for start in range(0, size, _LINE):
        top = canvas.y + start // _LINE * _CELL_HEIGHT
        canvas.text(_START - 10, top + 16, f"{start:,}", "small soft", "end")
        for offset in range(start, start + _LINE, _CHUNK):
            left = _START + (offset - start) // _CHUNK * _CELL_WIDTH
            _draw_chunk(canvas, left, top, chunks.get(offset), last_column)
    # On top of the cells, which would cover half of it.
    for offset in sorted(touched):
        line, place = divmod(offset, _LINE)
        left = _START + place // _CHUNK * _CELL_WIDTH
        _frame(canvas, left, canvas.y + line * _CELL_HEIGHT)
    canvas.y += -(-size // _LINE) * _CELL_HEIGHT + 8


def _draw_chunk(
    canvas: Canvas,
    left: float,
    top: float,
    element: tuple[int, int] | None,
    last_column: int,
) -> None:
    sizes = _CELL_WIDTH - 2, _CELL_HEIGHT - 2
    if element is None:  # padding of a span, or of a line
        canvas.rect(left, top, *sizes, fill=BLANK, stroke=EDGE, rx=3, class_="empty")
        return
    row, column = element
    color = _color(column / max(last_column, 1))
    canvas.rect(left, top, *sizes, fill=color, rx=3, class_="unit")
    canvas.text(left + sizes[0] / 2, top + 15, f"{row}, {column}", "", "middle")


def _color(share: float) -> str:
    """The color at ``share`` of the ramp."""
    step = min(int(share * (len(_RAMP) - 1)), len(_RAMP) - 2)
    rest = share * (len(_RAMP) - 1) - step
    ends = zip(_RAMP[step], _RAMP[step + 1], strict=True)
    mixed = (round(start + (end - start) * rest) for start, end in ends)
    return "#" + "".join(f"{part:02x}" for part in mixed)


def _frame(canvas: Canvas, left: float, top: float) -> None:
    canvas.rect(
        left,
        top,
        _CELL_WIDTH - 2,
        _CELL_HEIGHT - 2,
        fill="none",
        stroke=INK,
        stroke_width=3,
        rx=3,
        class_="read",
    )
