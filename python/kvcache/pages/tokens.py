# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Token ids: parsing, and their form in the package."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

_FEW = 16  # tokens of a list that NumPy would take longer to convert

TOKEN = "q"
"""The type code of arrays of token ids."""

TokensOfBatch: TypeAlias = npt.ArrayLike | Sequence[npt.ArrayLike]
"""One token per sequence [batch], k per sequence [batch, k], or a list of arrays."""


class BatchTokens(NamedTuple):
    """Tokens of each sequence of a batch, and their number.

    Attributes:
        ids: The tokens of all sequences, one after another, int64 [total].
        counts: Tokens per sequence, int64 [batch].
        are_single: Whether each sequence gets one token.
    """

    ids: np.ndarray
    counts: np.ndarray
    are_single: bool

    def split(self) -> list[array[int]]:
        """Splits the tokens by sequence."""
        chunks = [array(TOKEN) for _ in self.counts]
        self.add_to(chunks)
        return chunks

    def add_to(self, sequences: Iterable[array[int]]) -> None:
        """Appends to the tokens of each sequence."""
        encoded, start = self.ids.tobytes(), 0
        for tokens, size in zip(sequences, (8 * self.counts).tolist(), strict=True):
            tokens.frombytes(encoded[start : start + size])
            start += size


def parse_tokens(tokens: npt.ArrayLike) -> array[int]:
    """Parses token ids.

    Raises ``TypeError`` unless they are a sequence of integers, and ``ValueError``
    unless all are in [0, 2^63)."""
    if isinstance(tokens, list) and len(tokens) <= _FEW and {*map(type, tokens)} == {int}:
        with suppress(OverflowError):
            few = array(TOKEN, tokens)
            if min(few) >= 0:
                return few
    ids = np.asarray(tokens)
    if ids.shape == (0,):
        return array(TOKEN)
    if ids.ndim != 1 or ids.dtype.kind not in "iu":
        raise TypeError(
            "expects 'tokens' to be a sequence of integers, got an array of "
            f"{ids.dtype} with shape {ids.shape}"
        )
    parsed = array(TOKEN)
    parsed.frombytes(np.ascontiguousarray(_check_ids(ids)).data.cast("B"))
    return parsed


def parse_batch_tokens(tokens: TokensOfBatch, count: int) -> BatchTokens:
    """Parses the tokens of ``count`` sequences.

    Raises ``ValueError`` for another number of sequences, and like ``parse_tokens``.
    """
    try:
        ids = np.asarray(tokens)
    except ValueError:  # sequences have different numbers of tokens
        ids = np.empty((), np.object_)
    if (not ids.size or ids.dtype.kind in "iu") and ids.ndim in (1, 2):
        _check_count(len(ids), count)
        ids = _check_ids(ids if ids.ndim == 2 else ids[:, None])
        each = ids.shape[1]
        return BatchTokens(ids.ravel(), np.full(count, each, np.int64), each == 1)
    if not isinstance(tokens, Sequence) or isinstance(tokens, str | bytes):
        raise TypeError(
            "expects 'tokens' to be integers [batch] or [batch, k], or a sequence of "
            f"tokens for each request, got {tokens!r}"
        )
    _check_count(len(tokens), count)
    chunks = [parse_tokens(each) for each in tokens]
    joined = np.frombuffer(b"".join(chunks), np.int64)
    counts = [len(chunk) for chunk in chunks]
    return BatchTokens(joined, np.array(counts, np.int64), {*counts} == {1})


def encode(tokens: array[int], start: int = 0, stop: int | None = None) -> bytes:
    """Encodes tokens of a range as bytes in their order, 8 bytes each."""
    ordered = tokens[start:stop]
    if sys.byteorder == "little":
        ordered.byteswap()
    return ordered.tobytes()


def count_common(one: bytes, other: bytes) -> int:
    """The number of tokens in the common prefix of two encoded sequences."""
    size = min(len(one), len(other))
    # The first bit that differs; faster than NumPy for the tokens of a page.
    differing = int.from_bytes(one[:size], "big") ^ int.from_bytes(other[:size], "big")
    return (8 * size - differing.bit_length()) // 64


def _check_count(found: int, count: int) -> None:
    if found != count:
        raise ValueError(f"expects tokens for each of {count} requests, got {found}")


def _check_ids(ids: np.ndarray) -> np.ndarray:
    """Checks ids, and converts them to int64; may return the same array."""
    converted = ids.astype(np.int64, copy=False)
    # A negative number was negative before, or too large.
    if converted.size and converted.item(converted.argmin()) < 0:
        raise ValueError(
            "expects 'tokens' to be in [0, 2^63), got "
            f"{ids.min() if ids.min() < 0 else ids.max()}"
        )
    return converted
