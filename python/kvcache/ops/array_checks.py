# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks of the arrays that operations get in a call."""

from __future__ import annotations

import numpy as np

from ..checks import check_integer
from ..execution.arrays import Array, read_if_integers, read_integers
from ..pages.inputs import StepInputs


def get_sizes(array: object) -> tuple[int, ...]:
    """The sizes of an array; empty for other objects, which the call rejects."""
    return tuple(getattr(array, "shape", ()))


def check_layer(layer: int, blocks: Array) -> None:
    """Raises ``ValueError`` unless ``layer`` is a layer of ``blocks``."""
    check_integer(layer=layer)
    layers = get_sizes(blocks)[2:3]
    if layers and not 0 <= layer < layers[0]:
        raise ValueError(f"expects 'layer' to be in [0, {layers[0]}), got {layer}")


def get_page_sizes(blocks: Array) -> tuple[int, ...]:
    """The number of pages, and of tokens per page, of blocks of all layers or of one.

    Empty for other objects, which the call rejects.
    """
    sizes = get_sizes(blocks)
    return (sizes[0], sizes[-3]) if len(sizes) in (4, 6) else ()


def get_columns(inputs: StepInputs) -> np.ndarray | None:
    """The number of pages of each sequence in the table; None if it can't be read."""
    if inputs.table == "csr":
        starts = read_integers(inputs.table_index)
        return None if starts is None else np.diff(starts.astype(np.int64))
    sizes = get_sizes(inputs.lut)
    batch = get_sizes(inputs.lengths)
    return np.full(batch, sizes[1], np.int64) if len(sizes) == 2 and batch else None


def count_new(inputs: StepInputs) -> np.ndarray | None:
    """The new tokens of each sequence, int64; None if offsets are not in host memory."""
    offsets = inputs.current_offsets
    if not isinstance(offsets, np.ndarray):
        return None
    return np.diff(offsets.astype(np.int64))


def check_table(inputs: StepInputs, blocks: Array) -> None:
    """Raises ``ValueError`` if a sequence has more tokens than its pages of the table.

    Lengths, offsets and indices that are not in host memory are not read.
    """
    check_entries(inputs, blocks, inputs.totals)


def check_entries(
    inputs: StepInputs,
    blocks: Array,
    entries: np.ndarray | None,
    noun: str = "tokens",
) -> None:
    """Raises ``ValueError`` if a sequence uses more entries than its pages have.

    ``entries`` are those of each sequence, int64 [batch]; None if they can't be read.
    """
    sizes, columns = get_page_sizes(blocks), get_columns(inputs)
    if entries is None or columns is None or not entries.size or not sizes:
        return
    lacking = entries - columns * sizes[1]
    sequence = lacking.argmax()
    if lacking[sequence] <= 0:
        return
    raise ValueError(
        f"expects sequence {sequence} to have at most {columns[sequence] * sizes[1]} "
        f"{noun}, those of the {columns[sequence]} pages of its row of 'lut', got "
        f"{entries[sequence]}"
    )


def find_missing_page(inputs: StepInputs, layer: int, blocks: Array) -> str:
    """Describes the first page of a sequence that is not in ``blocks``.

    Empty if there is none, or if the tables are not in host memory.
    """
    totals = inputs.totals
    if totals is None:
        return ""
    pages, page_size = get_page_sizes(blocks)
    for sequence, total in enumerate(totals.tolist()):
        entries = _read_entries(inputs, sequence)
        if entries is None:
            return ""
        entries = entries[: -(-total // page_size)]
        missing = np.flatnonzero((entries < 0) | (entries >= pages))
        if missing.size:
            number = int(missing[0])
            return (
                f"sequence {sequence} has page {entries[number]} for tokens from "
                f"{number * page_size} on, and layer {layer} has pages 0 to {pages - 1}"
            )
    return ""


def _read_entries(inputs: StepInputs, sequence: int) -> np.ndarray | None:
    """Reads the pages of a sequence; None if the tables are not in host memory."""
    table = read_integers(inputs.lut)
    if table is None or inputs.table == "dense":
        return None if table is None else table[sequence]
    index = read_integers(inputs.table_index)
    if index is None:
        return None
    if inputs.table == "csr":
        return table[int(index[sequence]) : int(index[sequence + 1])]
    row = int(index[sequence])
    return table[row] if 0 <= row < len(table) else table[:0, 0]


def check_rows(row_offsets: Array | None, **arrays: Array | None) -> None:
    """Raises ``ValueError`` unless arrays have one row per new token.

    If offsets are not in NumPy's memory, all need as many rows as the first. Positions
    have one column, or one element, per token.
    """
    least = None
    if isinstance(row_offsets, np.ndarray) and row_offsets.size:
        least = int(row_offsets[-1]) % 2**32  # as kernels read it
    for name, array in arrays.items():
        sizes = get_sizes(array)
        if not sizes:
            continue
        tokens = sizes[-1] if name == "positions" else sizes[0]
        least = tokens if least is None else least
        if tokens < least:
            raise ValueError(
                f"expects {name!r} to have a row for each of {least} new tokens, got "
                f"{tokens}"
            )


def check_kv_lengths(
    lengths: Array | None,
    inputs: StepInputs,
    page_size: int,
) -> None:
    """Raises ``ValueError`` for lengths beyond the rows or pages of the table.

    If lengths are not in host memory, only the sizes are checked.
    """
    sizes, (batch,) = get_sizes(lengths), get_sizes(inputs.lengths)
    if not sizes:
        return
    if sizes != (batch,):
        raise ValueError(
            f"expects 'kv_lengths' to have a number for each of {batch} sequences, got "
            f"an array of shape {sizes}"
        )
    numbers, columns = read_if_integers(lengths), get_columns(inputs)
    if numbers is None or columns is None:
        return
    rooms = (columns * page_size).tolist()
    for b, (length, most) in enumerate(zip(numbers.tolist(), rooms)):
        if not 0 <= length <= most:
            raise ValueError(
                f"expects 'kv_lengths' to be between 0 and {most}, the tokens of the "
                f"table's pages, got {length} for sequence {b}"
            )


def check_positions(inputs: StepInputs, rope: Array) -> None:
    """Raises ``ValueError`` if ``rope`` lacks the position of a new token."""
    sizes = get_sizes(rope)
    if not sizes or inputs.max_total_length <= (rows := sizes[0]):
        return
    last = int(inputs.positions.max(initial=-1))
    if last >= rows:
        raise ValueError(
            f"expects 'rope' to have a row for position {last}, got {rows} rows"
        )


def check_slots(
    name: str, slots: Array | None, row_offsets: Array | None, blocks: Array
) -> None:
    """Raises ``ValueError`` for a slot beyond those of ``blocks``.

    Negative ones are skipped by kernels.
    Slots that are not in host memory are not read, nor are those of padding.
    """
    numbers, sizes = _read_new(slots, row_offsets), get_page_sizes(blocks)
    if numbers is None or not sizes:
        return
    most = sizes[0] * sizes[1]
    if (largest := int(_as_signed(numbers).max(initial=-1))) >= most:
        raise ValueError(
            f"expects {name!r} to be below {most}, the slots of the cache's {sizes[0]} "
            f"pages, got {largest}"
        )


def check_given_positions(
    positions: Array | None,
    row_offsets: Array | None,
    rope: Array | None,
    slots: Array | None,
) -> None:
    """Raises ``ValueError`` for a position without a row of ``rope``.

    Positions that are not in host memory are not read, nor are those of padding.

    Args:
        positions: The row of ``rope`` for each token, or for each axis and token.
        row_offsets: The offsets of the step, which end before padding.
        rope: The table, [positions, elements].
        slots: Positions of rows with negative slots are not read; None to read all.
    """
    numbers, sizes = _read_new(positions, row_offsets, axis=-1), get_sizes(rope)
    if numbers is None or not sizes or _find_outside(numbers, sizes[0]) is None:
        return
    used = _read_new(slots, row_offsets)
    if used is not None and used.ndim == 1:
        numbers = numbers[..., _as_signed(used) >= 0]
    if (found := _find_outside(numbers, sizes[0])) is not None:
        raise ValueError(
            f"expects 'positions' to be rows of 'rope', in [0, {sizes[0]}), got {found}"
        )


def _find_outside(numbers: np.ndarray, end: int) -> int | None:
    """The smallest or the largest number if it is not in [0, end); otherwise None."""
    if not numbers.size:
        return None
    ends = int(numbers.min()), int(numbers.max())
    return next((number for number in ends if not 0 <= number < end), None)


def _read_new(
    array: Array | None, row_offsets: Array | None, axis: int = 0
) -> np.ndarray | None:
    """The numbers of new tokens, if they and the offsets are in host memory.

    None otherwise, and for arrays that the call rejects. Without offsets, all tokens
    are new.
    """
    numbers = read_if_integers(array)
    if numbers is None or not numbers.ndim:
        return None
    if row_offsets is None:
        return numbers
    if not isinstance(row_offsets, np.ndarray) or not row_offsets.size:
        return None
    total = int(row_offsets[-1]) % 2**32
    return numbers[..., :total] if axis else numbers[:total]


def _as_signed(numbers: np.ndarray) -> np.ndarray:
    """The integers as kernels read them that skip negative ones."""
    if numbers.dtype.kind != "u":
        return numbers
    return numbers.view(numbers.dtype.str.replace("u", "i"))


def check_room(
    inputs: StepInputs, keys: Array, output_offsets: Array | None
) -> None:
    """Raises ``ValueError`` if sequences do not fit into the outputs of ``gather``.

    Lengths and offsets that are not in host memory are not read. Outputs may be for the
    first sequences of the batch only.
    """
    rows, totals = get_sizes(keys), inputs.totals
    offsets = read_if_integers(output_offsets)
    if offsets is not None and (first := int(offsets.min(initial=0))) < 0:
        raise ValueError(f"expects 'output_offsets' not to be negative, got {first}")
    if totals is None or len(rows) < 2:
        return
    if output_offsets is None:
        room = np.full(rows[0], rows[1], np.int64)
    else:
        if offsets is None:
            return
        room = np.diff(np.minimum(offsets.astype(np.int64), rows[0]))
    totals = totals[: len(room)]
    if (lacking := totals > room).any():
        sequence = int(lacking.argmax())
        raise ValueError(
            f"expects the outputs to have room for {totals[sequence]} tokens of sequence "
            f"{sequence}, got {room[sequence]}"
        )


def check_pairs(pairs: Array, blocks: Array | None) -> None:
    """Raises ``ValueError`` for pages that are both read and written, or written twice.

    Pairs that are not in host memory are not read.

    Args:
        pairs: The source and target page of each copy, [n, 2].
        blocks: A page that they lack is an error as well; None for no such check.
    """
    numbers = read_if_integers(pairs)
    if numbers is None or numbers.ndim != 2 or numbers.shape[1] != 2:
        return
    numbers = _as_signed(numbers)
    copied = numbers[(numbers >= 0).all(axis=1)]  # others are skipped
    sources, targets = copied[:, 0], copied[:, 1]
    pages, counts = np.unique(targets, return_counts=True)
    for wrong, fault in (
        (pages[counts > 1], "written twice"),
        (np.intersect1d(sources, pages), "both read and written"),
    ):
        if wrong.size:
            raise ValueError(f"expects no page of 'pairs' to be {fault}, got {wrong[0]}")
    sizes = get_sizes(blocks)
    if sizes and (last := int(copied.max(initial=-1))) >= sizes[0]:
        raise ValueError(
            f"expects the pages of 'pairs' to be below {sizes[0]}, got {last}"
        )


def check_leading(sizes: tuple[int, ...], of: str, **arrays: object) -> None:
    """Raises ``ValueError`` unless the first sizes of arrays are ``sizes``."""
    for name, array in arrays.items():
        own = get_sizes(array)[: len(sizes)]
        if own and own != sizes:
            raise ValueError(
                f"expects {name!r} to have the first sizes of {of}, {list(sizes)}, "
                f"got {list(own)}"
            )
