# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks of the arguments that several operations share."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .. import dtypes
from ..cache.params import KVCacheParams
from ..checks import check_instance, check_integer
from ..dtypes import DTypeLike
from ..execution.arrays import Array, read_if_integers, read_integers
from ..pages.inputs import StepInputs

_DENSE = dtypes.formats("Wide", bits=(16, 32))
_CONVERTED = (*_DENSE, *dtypes.formats("FP8"))
# Elements of a byte, which static scales may scale.
_BYTES = dtypes.formats("Element", bits=(8,))
# Elements of caches without scales that accesses convert.
_UNSCALED = (*_DENSE, *_BYTES)
_POWERS = dtypes.formats("Power")
_NUMBERS = ("i32", "i64")
_BLOCK_THREADS = range(32, 1024 + 1, 32)
_HEADS_PER_THREAD = range(1, 32 + 1)
_MOST_FACTOR = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Tiling:
    """Hints for the distribution of an operation's work over the threads of a GPU.

    Attributes:
        block_threads: The most threads of a thread block; None if the compiler chooses.
        heads_per_thread: The most heads that a thread loads before it stores one; None
            if the compiler chooses.
    """

    block_threads: int | None = None
    heads_per_thread: int | None = None

    def checked(self) -> Tiling:
        """Returns the checked hints as Python's integers."""
        return Tiling(
            _checked_hint("block_threads", self.block_threads, _BLOCK_THREADS),
            _checked_hint("heads_per_thread", self.heads_per_thread, _HEADS_PER_THREAD),
        )

    @property
    def attributes(self) -> list[str]:
        """The given hints as attributes of an op."""
        hints = {
            "block_threads": self.block_threads,
            "heads_per_thread": self.heads_per_thread,
        }
        return [f"{name} = {hint}" for name, hint in hints.items() if hint is not None]


def _checked_hint(name: str, hint: int | None, values: range) -> int | None:
    if hint is None:
        return None
    check_integer(**{name: hint})
    if int(hint) not in values:
        kind = f"a multiple of {values.step} from" if values.step > 1 else "from"
        raise ValueError(
            f"expects {name!r} to be {kind} {values[0]} to {values[-1]}, got {hint}"
        )
    return int(hint)


def attributes_text(attributes: list[str]) -> str:
    """The attributes of an op, after its operands."""
    return f" {{{', '.join(attributes)}}}" if attributes else ""


def dense_dtype(params: KVCacheParams, dtype: DTypeLike | None) -> str:
    """The MLIR type of new rows and outputs; by default that of the cache, or bf16."""
    check_instance(KVCacheParams, params=params)
    if not params.is_paged:
        raise ValueError("operations on whole caches need a paged cache")
    own = params.dtype_shorthand
    if params.kvcache_quant_config is None and own not in _UNSCALED:
        raise ValueError(
            f"expects a cache of {', '.join(_UNSCALED)} or with scales, got {own}"
        )
    stored = dtypes.dtype(params.dtype)
    if stored.kind == "u":
        raise ValueError(f"expects a cache of signed elements, got {stored.name}")
    if dtype is not None:
        return check_dense("dtype", dtype)
    return own if own in _DENSE else "bf16"


def check_dense(name: str, dtype: DTypeLike) -> str:
    return _check_dtype(name, dtype, _DENSE)


def check_converted(name: str, dtype: DTypeLike) -> str:
    return _check_dtype(name, dtype, _CONVERTED)


def fp8_dtype(name: str, dtype: DTypeLike) -> str:
    return _check_dtype(name, dtype, dtypes.formats("FP8"))


def number_dtype(name: str, dtype: DTypeLike | None) -> str | None:
    """The MLIR type of an optional array of numbers."""
    return None if dtype is None else _check_dtype(name, dtype, _NUMBERS)


def _check_dtype(name: str, dtype: DTypeLike, known: tuple[str, ...]) -> str:
    found = dtypes.mlir_name(dtype)
    if found not in known:
        raise ValueError(
            f"expects {name!r} to be one of {', '.join(known)}, got {found}"
        )
    return found


def check_powers(params: KVCacheParams) -> None:
    config = params.kvcache_quant_config
    scale = dtypes.mlir_name(config.scale_dtype) if config else "no scales"
    if scale not in _POWERS:
        raise ValueError(
            f"expects scales of {', '.join(_POWERS)} with 'power_of_two', got {scale}"
        )


def check_static(params: KVCacheParams, wanted: bool) -> None:
    own = params.dtype_shorthand
    config = params.kvcache_quant_config
    if config is None:
        is_scaled = own in _BYTES
    else:
        is_scaled = config.zero_point_dtype is None
    if wanted and not is_scaled:
        raise ValueError(
            "expects a cache with scales and no zero points, or of fp8 or i8, for "
            f"'static_scales', got {own}"
        )
    if not wanted and config is None and own == "i8":
        raise ValueError("expects 'static_scales' for a cache of i8 without scales")


def check_given(name: str, value: object, wanted: bool) -> None:
    """Raises ``ValueError`` if an argument is missing, or not expected."""
    if (value is not None) != wanted:
        raise ValueError(
            f"expects {'' if wanted else 'no '}{name!r}, as the operation was made "
            f"{'with' if wanted else 'without'} it"
        )


def check_factor(name: str, value: float) -> float:
    """Returns a factor as a float.

    Raises ``ValueError`` for bools, NaN and what is infinite as float32, ``TypeError``
    for what is no number.
    """
    try:
        factor = math.nan if isinstance(value, bool | np.bool_) else float(value)
    except OverflowError:
        factor = math.inf
    except (TypeError, RuntimeError):
        factor = None
    if factor is None or isinstance(value, str | bytes):
        raise TypeError(f"expects {name!r} to be a number, got {value!r}")
    if not abs(factor) <= _MOST_FACTOR:
        range_ = " in the range of float32" if math.isfinite(factor) else ""
        raise ValueError(f"expects {name!r} to be a finite number{range_}, got {value!r}")
    return factor


def check_query_heads(params: KVCacheParams, query_heads: int) -> None:
    heads = params.n_kv_heads_per_device
    if query_heads % heads:
        raise ValueError(
            f"expects 'query_heads' to be a multiple of the cache's heads ({heads}), got "
            f"{query_heads}"
        )


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


def check_table(inputs: StepInputs, blocks: Array) -> None:
    """Raises ``ValueError`` if a sequence has more tokens than its pages of the table.

    Lengths, offsets and indices that are not in host memory are not read.
    """
    sizes, totals, columns = get_page_sizes(blocks), inputs.totals, get_columns(inputs)
    if totals is None or columns is None or not totals.size or not sizes:
        return
    lacking = totals - columns * sizes[1]
    sequence = lacking.argmax()
    if lacking[sequence] <= 0:
        return
    raise ValueError(
        f"expects sequence {sequence} to have at most {columns[sequence] * sizes[1]} "
        f"tokens, those of the {columns[sequence]} pages of its row of 'lut', got "
        f"{totals[sequence]}"
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


def rows_type(
    leading: str, heads: int, elements: int, dtype: str, *, has_open_heads: bool = False
) -> str:
    """The type of dense rows: heads are packed, and other strides are dynamic.

    So a slice of a fused projection needs no copy. With ``has_open_heads``, heads are
    any distance apart.
    """
    open_strides = "?, " * len(leading.split("x"))
    head = "?" if has_open_heads else elements
    return (
        f"memref<{leading}x{heads}x{elements}x{dtype}, "
        f"strided<[{open_strides}{head}, 1]>>"
    )
