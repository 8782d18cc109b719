"""The model of a cache: its contents, queries and attention, in plain NumPy.

A cache is a flat array of encodings (unsigned integers) with sizes and distances. The formulas are
those of the documentation, one by one. Nothing is imported from the package; floats are decoded and
rounded by their definition. Indices may be arrays; tables and lengths are unsigned.
"""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np


def unsigned(numbers):
    """Converts 32-bit numbers to unsigned ones, in 64 bits."""
    return np.asarray(numbers).astype(np.int64) & 0xFFFFFFFF


class Blocks(np.ndarray):
    """An array whose elements are never printed, because some may not exist."""

    def __repr__(self):
        return f"<blocks {self.shape}, strides {self.strides}>"

    __str__ = __repr__


@dataclass(frozen=True)
class View:
    """One layer's keys or values. ``base`` is its first element in ``memory``.

    ``page_distance`` counts elements from page to page (block to block).
    """

    memory: np.ndarray
    base: int
    pages: int
    page_distance: int
    page_size: int
    heads: int
    head_size: int
    table: np.ndarray
    lengths: np.ndarray
    max_seq: int
    max_cache: int

    @property
    def row(self):
        """The number of elements in a row."""
        return self.heads * self.head_size

    @property
    def row_distance(self):
        """The rows from page to page: S."""
        return self.page_distance // self.row

    # Queries

    def num_kv_rows(self):
        return (self.pages - 1) * self.row_distance + self.page_size

    def col_index(self, h):
        return h * self.head_size

    def cache_length(self, b):
        return int(unsigned(self.lengths[b]))

    def max_prompt_length(self):
        return int(unsigned(self.max_seq))

    def max_context_length(self):
        return int(unsigned(self.max_cache))

    def empty_cache(self):
        return self.max_context_length() == 0

    def row_index(self, b, t):
        return self.page_id(b, t) * self.row_distance + self.row_in_page(t)

    # Access

    def address(self, b, h, t, d):
        """The index of element (b, h, t, d) in the memory."""
        return (
            self.base
            + self.page_id(b, t) * self.page_distance
            + self.row_in_page(t) * self.row
            + h * self.head_size
            + d
        )

    def read(self, b, h, t, d, width=1):
        """Reads the encodings of ``width`` elements, in a last dimension."""
        first = np.asarray(self.address(b, h, t, d))
        return self.memory[first[..., np.newaxis] + np.arange(width)]

    def write(self, b, h, t, d, encodings):
        first = np.asarray(self.address(b, h, t, d))
        self.memory[first[..., np.newaxis] + np.arange(np.shape(encodings)[-1])] = (
            encodings
        )


class PagedView(View):
    def page_id(self, b, t):
        return unsigned(self.table[b, t // self.page_size])

    def row_in_page(self, t):
        return t % self.page_size

    def tma_row(self, e):
        if e < 0:
            return e
        return (e // self.page_size) * self.row_distance + e % self.page_size

    def tma_coords(self, b, t):
        return t % self.page_size, int(self.page_id(b, t))

    def tokens(self):
        """The number of tokens in the pages of a sequence's row of the table."""
        return self.table.shape[1] * self.page_size

    def get_row(self, b, base, offset, num_rows, alignment):
        """The row of ``base + offset`` after ``populate`` of ``num_rows`` rows."""
        P, S = self.page_size, self.row_distance
        if P >= num_rows:
            if alignment % P == 0:
                return int(self.page_id(b, base)) * S + offset
            return int(self.row_index(b, base)) + offset
        page = unsigned(self.table[b, base // P + offset // P])
        return int(page) * S + offset % P


class ContinuousView(View):
    def page_id(self, b, t):
        return unsigned(self.table[b]) + 0 * t

    def row_in_page(self, t):
        return t

    def tma_row(self, e):
        return e

    def tokens(self):
        return self.page_size

    def get_row(self, b, base, offset, num_rows, alignment):
        return int(self.row_index(b, base)) + offset


@dataclass(frozen=True)
class Cache:
    """All layers of a cache: ``memory[base:]`` as ``[NB, D, NL, P, H, E]``.

    ``distances`` count elements between pages, between keys and values, and between
    layers. ``view_type`` is that of a paged or a continuous cache.
    """

    view_type: type
    memory: np.ndarray
    base: int
    shape: tuple[int, ...]
    distances: tuple[int, int, int]
    table: np.ndarray
    lengths: np.ndarray
    max_seq: int = 0
    max_cache: int = 0

    def view(self, role, layer):
        pages, roles, layers, page_size, heads, head_size = self.shape
        assert role < roles and layer < layers
        return self.view_type(
            self.memory,
            self.base + role * self.distances[1] + layer * self.distances[2],
            pages,
            self.distances[0],
            page_size,
            heads,
            head_size,
            self.table,
            self.lengths,
            self.max_seq,
            self.max_cache,
        )

    def with_memory(self, memory):
        return replace(self, memory=memory)

    def with_tables(self, table, lengths):
        return replace(self, table=table, lengths=lengths)

    def blocks(self, dtype):
        """The argument of a program for the blocks."""
        size = self.memory.itemsize
        row = self.shape[4] * self.shape[5]
        strides = (*self.distances, row, self.shape[5], 1)
        array = np.lib.stride_tricks.as_strided(
            self.memory[self.base :], self.shape, [s * size for s in strides]
        )
        return array.view(dtype).view(Blocks)

    def arguments(self, dtype):
        """The first arguments of every function of a program."""
        return (
            self.blocks(dtype),
            self.lengths,
            self.table,
            self.max_seq,
            self.max_cache,
        )


def PagedCache(*arguments, **named):
    return Cache(PagedView, *arguments, **named)


def ContinuousCache(*arguments, **named):
    return Cache(ContinuousView, *arguments, **named)


# Attention


def masked_scores(
    q, keys, scale, causal=True, window=None, soft_cap=None, bits=None, chunk=None, visible=None
):
    """Computes the scores [new, Hq, tokens] of ``attend`` in f64: -inf of tokens that a row does not see."""
    q, keys = (np.asarray(each, np.float64) for each in (q, keys))
    new, query_heads, _ = q.shape
    tokens, heads, _ = keys.shape
    scores = np.einsum("ihe,the->iht", q, keys.repeat(query_heads // heads, axis=1)) * scale
    if soft_cap is not None:
        scores = soft_cap * np.tanh(scores / soft_cap)
    own = tokens - new + np.arange(new)[:, None]
    t = np.arange(tokens)
    seen = np.ones((new, tokens), bool)
    if causal:
        seen &= t <= own
    if window is not None:
        seen &= t > own - window
    if chunk is not None:
        seen &= t // chunk == own // chunk
    if bits is not None:
        seen[:, tokens - new :] &= bits
    if visible is not None:
        seen &= visible
    return np.where(seen[:, None], scores, -np.inf)


def attend(
    q,
    keys,
    values,
    scale,
    causal=True,
    window=None,
    soft_cap=None,
    sinks=None,
    bits=None,
    chunk=None,
    visible=None,
):
    """Computes attention of the last rows of a sequence in f64, and the logarithms of sums.

    The shapes are q [new, Hq, E] and keys [tokens, H, E]. ``bits``, if given, is [new, new]: the
    new tokens that each row sees; ``visible`` is [new, tokens].
    """
    scores = masked_scores(q, keys, scale, causal, window, soft_cap, bits, chunk, visible)
    new, query_heads, _ = scores.shape
    values = np.asarray(values, np.float64).repeat(query_heads // keys.shape[1], axis=1)
    logits = scores if sinks is None else np.concatenate(
        [scores, np.broadcast_to(sinks[:, None], (new, query_heads, 1))], -1
    )
    largest = logits.max(-1, keepdims=True, initial=-1e9)  # -inf where none is seen
    row_sum = np.exp(logits - largest).sum(-1, keepdims=True)
    out = np.einsum("iht,the->ihe", np.exp(scores - largest) / np.maximum(row_sum, 1e-300), values)
    with np.errstate(divide="ignore"):
        return out, (largest + np.log(row_sum))[..., 0]


# Floats


@dataclass(frozen=True)
class Format:
    """A float format: bits, bits of the mantissa, and the exponent's bias.

    A format without infinities has one NaN per sign, the largest encoding, or none with
    ``nans=False``, and writes to it saturate. f8E5M2 has infinities but saturates, too.
    """

    bits: int
    mantissa: int
    bias: int
    infinities: bool
    saturates: bool
    nans: bool = True

    @property
    def uint(self):
        return np.dtype(f"u{max(self.bits, 8) // 8}")

    @property
    def sign(self):
        return 1 << (self.bits - 1)

    def decode(self, encodings):
        """Decodes encodings to f64, which holds all values except f64's own NaNs."""
        encodings = np.asarray(encodings).astype(np.uint64)
        magnitude = (encodings & np.uint64(self.sign - 1)).astype(np.int64)
        fraction = (magnitude & ((1 << self.mantissa) - 1)).astype(np.float64)
        exponent = magnitude >> self.mantissa
        fraction += np.where(exponent > 0, 2.0**self.mantissa, 0)
        shift = np.maximum(exponent, 1) - self.bias - self.mantissa
        with np.errstate(over="ignore"):
            value = np.ldexp(fraction, shift.astype(np.int32))
        if self.infinities:
            top = ((self.sign - 1) >> self.mantissa) << self.mantissa
            value = np.where(magnitude == top, np.inf, value)
            value = np.where(magnitude > top, np.nan, value)
        elif self.nans:
            value = np.where(magnitude == self.sign - 1, np.nan, value)
        return np.where(encodings & np.uint64(self.sign), -value, value)

    def is_nan(self, encodings):
        return np.isnan(self.decode(encodings))

    def encode(self, values):
        """Encodes f64 values, rounded to nearest even; a NaN's encoding is undefined."""
        values = np.asarray(values, np.float64)
        magnitudes = np.abs(values)
        # Units of the last place; subnormals have that of the smallest numbers.
        finite = np.where(np.isfinite(magnitudes), magnitudes, 1.0)
        exponent = np.frexp(finite)[1] - 1
        unit = np.maximum(exponent, 1 - self.bias) - self.mantissa
        rounded = np.ldexp(np.rint(np.ldexp(finite, -unit)), unit)
        largest = self.largest()
        over = np.isinf(magnitudes) | (rounded > largest)
        rounded = np.where(over, largest, rounded)
        # A number's encoding counts the numbers below it.
        exponent = np.maximum(np.frexp(rounded)[1] - 1, 1 - self.bias)
        exponent = np.where(rounded > 0, exponent, 1 - self.bias)
        steps = np.ldexp(rounded, self.mantissa - exponent).astype(np.int64)
        encodings = steps + (
            (exponent + self.bias - 1).astype(np.int64) << self.mantissa
        )
        if not self.saturates:
            infinity = ((self.sign - 1) >> self.mantissa) << self.mantissa
            encodings = np.where(over, infinity, encodings)
        # The sign of f64 does not fit an int64.
        signs = np.where(np.signbit(values), np.uint64(self.sign), np.uint64(0))
        return (encodings.astype(np.uint64) | signs).astype(self.uint)

    @cache
    def largest(self):
        encoding = self.sign - (2 if self.nans else 1)
        if self.infinities:
            encoding = (((self.sign - 1) >> self.mantissa) << self.mantissa) - 1
        return float(self.decode(encoding))

    @cache
    def smallest(self):
        """The smallest positive number."""
        return float(self.decode(1))

    def round(self, values):
        """Rounds f64 values to the nearest numbers; NaNs stay."""
        is_nan = np.isnan(values)
        rounded = self.decode(self.encode(np.where(is_nan, 0, values)))
        return np.where(is_nan, np.nan, rounded)


FORMATS = {
    "f32": Format(32, 23, 127, infinities=True, saturates=False),
    "f16": Format(16, 10, 15, infinities=True, saturates=False),
    "bf16": Format(16, 7, 127, infinities=True, saturates=False),
    "f8E4M3FN": Format(8, 3, 7, infinities=False, saturates=True),
    "f8E5M2": Format(8, 2, 15, infinities=True, saturates=True),
}
F64 = Format(64, 52, 1023, infinities=True, saturates=False)
