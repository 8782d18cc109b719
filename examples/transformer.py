"""A small language model in plain NumPy, of Llama's kind, with random weights.

It has RMSNorm, rotary positions, grouped-query attention, SwiGLU. The caller provides
attention, with rotations and a cache: `causal_attention` has no cache and recomputes
all.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Attention = Callable[[int, np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""A function of a layer, and queries, keys and values of the new tokens, f32
[tokens, heads, head_size], not rotated. It returns [tokens, query heads, head_size], and
may write to its arguments."""

ROPE_BASE = 10000.0
EPSILON = np.float32(1e-5)


@dataclass(frozen=True)
class Sizes:
    """The sizes of a model; ``mlp`` is the width between the SwiGLU's matrices."""

    layers: int = 4
    hidden: int = 512
    query_heads: int = 8
    kv_heads: int = 2
    head_size: int = 64
    mlp: int = 1408
    vocabulary: int = 512


class Transformer:
    """The model: weights made from a seed, and logits of given tokens."""

    def __init__(self, sizes: Sizes, seed: int) -> None:
        self.sizes = sizes
        rng = np.random.default_rng(seed)
        queries = sizes.query_heads * sizes.head_size
        keys = sizes.kv_heads * sizes.head_size
        shapes = {
            "queries": (sizes.hidden, queries),
            "keys": (sizes.hidden, keys),
            "values": (sizes.hidden, keys),
            "attended": (queries, sizes.hidden),
            "gate": (sizes.hidden, sizes.mlp),
            "up": (sizes.hidden, sizes.mlp),
            "down": (sizes.mlp, sizes.hidden),
        }
        self._layers = [
            {name: _random_matrix(rng, *shape) for name, shape in shapes.items()}
            for _ in range(sizes.layers)
        ]
        self._embedding = rng.standard_normal(
            (sizes.vocabulary, sizes.hidden), np.float32
        )
        self._unembedding = _random_matrix(rng, sizes.hidden, sizes.vocabulary)

    def logits(self, tokens: np.ndarray, attention: Attention) -> np.ndarray:
        """The logits of the next token of each token, f32 [tokens, vocabulary].

        Args:
            tokens: The ids, [tokens]; of several sequences, if ``attention`` supports
                it.
            attention: The attention of a layer's new queries, with the new keys and
                values. It has the position of each token in its sequence.
        """
        x = self._embedding[tokens]
        for layer, weights in enumerate(self._layers):
            x = x + self._attend(layer, weights, normalize(x), attention)
            x = x + _swiglu(weights, normalize(x))
        return normalize(x) @ self._unembedding

    def _attend(
        self,
        layer: int,
        weights: dict[str, np.ndarray],
        x: np.ndarray,
        attention: Attention,
    ) -> np.ndarray:
        queries, keys, values = (
            (x @ weights[name]).reshape(len(x), -1, self.sizes.head_size)
            for name in ("queries", "keys", "values")
        )
        attended = attention(layer, queries, keys, values)
        return attended.reshape(len(x), -1) @ weights["attended"]


def _random_matrix(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """Draws a matrix that keeps the magnitude of its operand."""
    return rng.standard_normal((rows, columns), np.float32) * np.float32(rows**-0.5)


def normalize(x: np.ndarray) -> np.ndarray:
    """Applies RMSNorm to the last dimension, without weights."""
    return x / np.sqrt(np.square(x).mean(axis=-1, keepdims=True) + EPSILON)


def rope_table(positions: int, head_size: int) -> np.ndarray:
    """The cosines and then sines of each position, f32 [positions, head_size]."""
    half = head_size // 2
    angles = np.arange(positions)[:, None] * ROPE_BASE ** (-np.arange(half) / half)
    return np.hstack([np.cos(angles), np.sin(angles)]).astype(np.float32)


def rotate(x: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Applies rotary positions: rotates elements i and i + head_size / 2.

    The elements are [tokens, heads, head_size]; each token has a row of the table.
    """
    cos, sin = np.split(table[:, None], 2, axis=-1)
    a, b = np.split(x, 2, axis=-1)
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)


def _swiglu(weights: dict[str, np.ndarray], x: np.ndarray) -> np.ndarray:
    gate = x @ weights["gate"]
    return (gate / (1 + np.exp(-gate)) * (x @ weights["up"])) @ weights["down"]


def causal_attention(stored: Callable[[np.ndarray], np.ndarray]) -> Attention:
    """Makes attention within one sequence, all of whose tokens are new, in float64.

    Args:
        stored: The rounding of keys and values by a cache's format.
    """

    def attention(
        layer: int, queries: np.ndarray, keys: np.ndarray, values: np.ndarray
    ) -> np.ndarray:
        tokens, heads, head_size = keys.shape
        table = rope_table(tokens, head_size)
        queries, keys = rotate(queries, table), rotate(keys, table)
        grouped = queries.reshape(tokens, heads, -1, head_size).astype(np.float64)
        scores = np.einsum("qhgd,khd->hgqk", grouped, stored(keys)) * head_size**-0.5
        scores[..., ~np.tri(tokens, dtype=bool)] = -np.inf
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        result = np.einsum("hgqk,khd->qhgd", weights, stored(values))
        return result.reshape(queries.shape).astype(queries.dtype)

    return attention
