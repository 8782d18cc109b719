"""Inputs of the works: sizes, lengths and arrays.

Arrays have the names of the arguments of our functions; bf16 and fp8 are held as their bits. Pages are shuffled, and
only the layer that is used has content.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from collections.abc import Callable

import numpy as np

from . import formats

PAGE_SIZE, HEADS, HEAD_SIZE, GROUP = 16, 8, 128, 64
QUERY_HEADS = 64
LATENT_SIZE = 576
TILE_ROWS = 64
L2_TIMES = 4
"""Inputs are that many times larger than the L2 cache, so that no run finds in it what the last one left."""

Number = int | float
Content = Callable[[tuple[int, ...], np.random.Generator], np.ndarray]

_POOL = 1 << 22
"""Random numbers from which larger arrays are filled."""


@dataclass(frozen=True)
class Sizes:
    """How much there is to do.

    ``context`` is the most tokens that a sequence has; of `append_fp8` the most that it gets, of `sparse_rows` the rows
    that a query selects. ``chunk`` is the tokens of a split of `decode`.
    """

    batch: int = 64
    context: int = 2048
    layers: int = 2
    layer: int = 1
    chunk: int = 512

    def __post_init__(self) -> None:
        for name in ("batch", "context", "layers", "chunk"):
            if getattr(self, name) < 1:
                raise ValueError(f"expects {name} to be positive, got {getattr(self, name)}")
        if not 0 <= self.layer < self.layers:
            raise ValueError(f"expects layer to be from 0 to {self.layers - 1}, got {self.layer}")
        for name in ("context", "chunk"):
            if getattr(self, name) % TILE_ROWS:
                raise ValueError(f"expects {name} to be a multiple of {TILE_ROWS}, got {getattr(self, name)}")

    def filling(self, l2_bytes: int, token_bytes: int) -> Sizes:
        """These sizes with a context that defeats a cache of so many bytes, also with ragged sequences."""
        mean = 0.75  # of ragged sequences, as a part of the context
        tokens = math.ceil(L2_TIMES * l2_bytes / (token_bytes * self.batch * mean))
        return replace(self, context=math.ceil(tokens / TILE_ROWS) * TILE_ROWS)


SMALL = Sizes(batch=4, context=128, layers=2, layer=1, chunk=64)
"""For lengths at the edges, and for the emulator."""

KINDS = ("full", "ragged", "edges")
"""Sequences as long as the context; from half of it on; and 0, 1, a page and a token, and the context."""


@dataclass
class Case:
    """A work's arguments. ``moved_bytes`` counts each byte of the cache that is used, and each of the results, once."""

    kind: str
    sizes: Sizes
    arrays: dict[str, np.ndarray]
    numbers: dict[str, Number]
    outputs: tuple[str, ...]
    moved_bytes: int

    def poison(self) -> None:
        """Sets every bit of the outputs: unwritten bytes are seen."""
        for name in self.outputs:
            self.arrays[name].view(np.uint8).fill(0xFF)


def _lengths(kind: str, sizes: Sizes, rng: np.random.Generator) -> np.ndarray:
    if kind == "full":
        return np.full(sizes.batch, sizes.context, np.int32)
    if kind == "ragged":
        return rng.integers(sizes.context // 2, sizes.context, sizes.batch, np.int32, endpoint=True)
    return np.resize(np.array([0, 1, PAGE_SIZE + 1, sizes.context], np.int32), sizes.batch)


def _table(sizes: Sizes, tokens: int, rng: np.random.Generator) -> tuple[np.ndarray, int]:
    """A lookup table for sequences of so many tokens, and the number of pages, of which a few are unused."""
    columns = -(-tokens // PAGE_SIZE)
    pages = sizes.batch * columns + 3
    used = rng.permutation(pages)[: sizes.batch * columns]
    return used.astype(np.int32).reshape(sizes.batch, columns), pages


def _bf16_bits(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Any bits, NaNs among them."""
    return rng.integers(0, 1 << 16, shape, np.uint16)


def _normal_bf16(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    return formats.f32_to_bf16(rng.standard_normal(shape, np.float32))


def _codes(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """fp8 numbers without NaNs, whose bits are unspecified."""
    codes = rng.integers(0, 1 << 8, shape, np.uint8)
    return np.where(codes & 0x7F == 0x7F, codes & 0x87, codes)


def _fill(pieces: np.ndarray, content: Content, rng: np.random.Generator) -> None:
    """Fills each element of the first dimension with numbers from somewhere in a pool: gigabytes at copying speed."""
    size = math.prod(pieces.shape[1:])
    pool = content((size + min(pieces.size, _POOL),), rng)
    for piece, start in zip(pieces, rng.integers(0, len(pool) - size, len(pieces), endpoint=True)):
        piece[...] = pool[start : start + size].reshape(piece.shape)


def _scales(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    return rng.uniform(0.001, 0.1, shape).astype(np.float32)


def _small_integers(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """In bf16, and so few and small that sums of thousands are exact."""
    return formats.f32_to_bf16(np.arange(-8, 9, dtype=np.float32))[rng.integers(0, 17, shape, np.uint8)]


def _pages(pages: int, sizes: Sizes, row: tuple[int, ...], dtype: type, content: Content, rng: np.random.Generator
           ) -> np.ndarray:
    """The blocks of a collection, with content in one layer."""
    blocks = np.zeros((pages, 2, sizes.layers, PAGE_SIZE, *row), dtype)
    _fill(blocks[:, :, sizes.layer], content, rng)
    return blocks


def _paged(kind: str, sizes: Sizes, rng: np.random.Generator) -> tuple[dict, dict, int]:
    """Lengths and table of a cache that is read, its numbers, and how many pages it has."""
    lut, pages = _table(sizes, sizes.context, rng)
    arrays = {"lengths": _lengths(kind, sizes, rng), "lut": lut}
    numbers = {"max_seq": 1, "max_cache": sizes.context, "layer": sizes.layer}
    return arrays, numbers, pages


def _gather_output(sizes: Sizes) -> np.ndarray:
    return np.empty((sizes.batch, sizes.context, HEADS, HEAD_SIZE), np.uint16)


def gather(kind: str, sizes: Sizes, rng: np.random.Generator) -> Case:
    arrays, numbers, pages = _paged(kind, sizes, rng)
    arrays["blocks"] = _pages(pages, sizes, (HEADS, HEAD_SIZE), np.uint16, _bf16_bits, rng)
    arrays["out"] = _gather_output(sizes)
    moved = int(arrays["lengths"].sum()) * HEADS * HEAD_SIZE * 2 + arrays["out"].nbytes
    return Case(kind, sizes, arrays, numbers, ("out",), moved)


def gather_fp8(kind: str, sizes: Sizes, rng: np.random.Generator) -> Case:
    arrays, numbers, pages = _paged(kind, sizes, rng)
    groups = (HEADS, HEAD_SIZE // GROUP)
    arrays["blocks"] = _pages(pages, sizes, (HEADS, HEAD_SIZE), np.uint8, _codes, rng)
    arrays["scales"] = _pages(pages, sizes, groups, np.float32, _scales, rng)
    arrays["out"] = _gather_output(sizes)
    token = HEADS * (HEAD_SIZE + 4 * HEAD_SIZE // GROUP)
    moved = int(arrays["lengths"].sum()) * token + arrays["out"].nbytes
    return Case(kind, sizes, arrays, numbers, ("out",), moved)


def append_fp8(kind: str, sizes: Sizes, rng: np.random.Generator) -> Case:
    """Sequences get tokens at positions that begin anywhere in a page."""
    new = _lengths(kind, sizes, rng)
    lengths = rng.integers(0, 3 * PAGE_SIZE, sizes.batch, np.int32)
    lut, pages = _table(sizes, sizes.context + 3 * PAGE_SIZE, rng)
    sequence = np.repeat(np.arange(sizes.batch, dtype=np.int32), new)
    first = np.cumsum(new, dtype=np.int64) - new
    position = (np.arange(len(sequence)) - first[sequence] + lengths[sequence]).astype(np.int32)
    blocks = np.empty((pages, 2, sizes.layers, PAGE_SIZE, HEADS, HEAD_SIZE), np.uint8)
    scales = np.empty((pages, 2, sizes.layers, PAGE_SIZE, HEADS, HEAD_SIZE // GROUP), np.float32)
    tokens = np.empty((2, len(sequence), HEADS, HEAD_SIZE), np.uint16)
    _fill(tokens.reshape(-1, HEADS, HEAD_SIZE), _normal_bf16, rng)
    arrays = {
        "new": tokens,
        "token_sequences": sequence, "token_positions": position, "lengths": lengths, "lut": lut,
        "blocks": blocks, "scales": scales,
    }
    numbers = {"max_seq": sizes.context, "max_cache": int((lengths + new).max()), "layer": sizes.layer}
    written = 2 * len(sequence) * HEADS * (HEAD_SIZE + 4 * HEAD_SIZE // GROUP)
    return Case(kind, sizes, arrays, numbers, ("blocks", "scales"), arrays["new"].nbytes + written)


def decode(kind: str, sizes: Sizes, rng: np.random.Generator) -> Case:
    arrays, numbers, pages = _paged(kind, sizes, rng)
    splits = -(-sizes.context // sizes.chunk)
    group = QUERY_HEADS // HEADS
    arrays["blocks"] = _pages(pages, sizes, (HEADS, HEAD_SIZE), np.uint16, _normal_bf16, rng)
    arrays["q"] = _normal_bf16((sizes.batch, QUERY_HEADS, HEAD_SIZE), rng)
    arrays["part_o"] = np.empty((sizes.batch, HEADS, splits, group, HEAD_SIZE), np.float32)
    arrays["part_ml"] = np.empty((sizes.batch, HEADS, splits, group, 2), np.float32)
    numbers |= {"chunk": sizes.chunk, "scale_log2": math.log2(math.e) / math.sqrt(HEAD_SIZE)}
    results = ("part_o", "part_ml")
    moved = int(arrays["lengths"].sum()) * 2 * HEADS * HEAD_SIZE * 2 + sum(arrays[name].nbytes for name in results)
    return Case(kind, sizes, arrays, numbers, results, moved)


def sparse_rows(kind: str, sizes: Sizes, rng: np.random.Generator) -> Case:
    """Small integers, whose sums are exact in any order. Each row is selected once; -1 fills the lists up."""
    selected = _lengths(kind, sizes, rng)
    pages = -(-sizes.batch * sizes.context // PAGE_SIZE) + 3
    ids = rng.permutation(pages * PAGE_SIZE)[: sizes.batch * sizes.context].astype(np.int32)
    ids = ids.reshape(sizes.batch, sizes.context)
    ids[np.arange(sizes.context) >= selected[:, None]] = -1
    blocks = np.empty((pages, 1, 1, PAGE_SIZE, 1, LATENT_SIZE), np.uint16)
    _fill(blocks, _small_integers, rng)
    arrays = {
        "blocks": blocks,
        # The rows are selected by their ids: neither the lengths nor the table is read.
        "lengths": np.zeros(sizes.batch, np.int32), "lut": np.zeros((sizes.batch, 1), np.int32),
        "ids": ids, "out": np.empty((sizes.batch, LATENT_SIZE // 2), np.float32),
    }
    numbers = {"max_seq": 1, "max_cache": pages * PAGE_SIZE, "layer": 0}
    moved = int(selected.sum()) * LATENT_SIZE * 2 + arrays["out"].nbytes
    return Case(kind, sizes, arrays, numbers, ("out",), moved)
