"""Runs OpenVINO's PagedAttention alone: a model of one op, on one thread of the CPU.

The op appends the new keys and values before it attends, so it writes the last tokens of the cache again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import openvino
from openvino import Model, PartialShape, Shape, Tensor, Type, op

BLOCK = 32
"""Tokens of a block, as OpenVINO's op for CPUs has them."""


def _make_empty(type_: Any) -> Any:
    return op.Constant(type_, Shape([0]), [])


def _make_scalar(type_: Any, number: float) -> Any:
    return op.Constant(type_, Shape([]), [number])


def make_model(type_: Any, heads: int, query_heads: int, size: int, scale: float) -> Any:
    """Returns a model whose inputs are those of the op that change with a batch."""
    shapes = {
        "query": (type_, [-1, query_heads * size]),
        "key": (type_, [-1, heads * size]),
        "value": (type_, [-1, heads * size]),
        "key_cache": (type_, [-1, heads, BLOCK, size]),
        "value_cache": (type_, [-1, heads, BLOCK, size]),
        "past_lens": (Type.i32, [-1]),
        "subsequence_begins": (Type.i32, [-1]),
        "block_indices": (Type.i32, [-1]),
        "block_indices_begins": (Type.i32, [-1]),
        "max_context_len": (Type.i32, []),
    }
    inputs = []
    for name, (element, shape) in shapes.items():
        inputs.append(op.Parameter(element, PartialShape(shape)))
        inputs[-1].output(0).get_tensor().set_names({name})
    none, zero = _make_empty(Type.i32), _make_scalar(Type.i32, 0)
    no_floats = _make_empty(Type.f32)
    arguments = [
        *inputs[:-1], _make_scalar(Type.f32, scale),
        zero, no_floats,  # sliding window, slopes of ALiBi
        inputs[-1],
        none, none, none, no_floats,  # aggregated scores, rotation of evicted blocks
        no_floats, zero, zero,  # XAttention
        _make_empty(type_),  # sinks
        zero, none, none, none,  # adaptive eviction
        none, _make_empty(Type.u8), none,  # token types, a bias between queries
    ]  # fmt: skip
    attention = op._PagedAttentionExtension([argument.output(0) for argument in arguments])
    sizes = {"k_head_size": size, "num_k_heads": heads, "v_head_size": size, "num_v_heads": heads}
    for name, number in sizes.items():
        attention.get_rt_info()[name] = number
    return Model([attention.output(0)], inputs, "attention")


def _make_tensor(array: Any) -> Any:
    if array.dtype in (np.float32, np.int32):
        return Tensor(array)
    return Tensor(np.ascontiguousarray(array).view(np.uint16), list(array.shape), Type.bf16)


def _make_blocks(tokens: Any) -> Any:
    """Lays [batch, tokens, heads, size] out in blocks, the last of which zeros fill."""
    batch, count, heads, size = tokens.shape
    padding = np.zeros((batch, -count % BLOCK, heads, size), tokens.dtype)
    padded = np.concatenate([tokens, padding], axis=1)
    return np.ascontiguousarray(padded.reshape(-1, BLOCK, heads, size).swapaxes(1, 2))


class PagedAttention:
    """The op with its inputs, which tensors of OpenVINO share and do not own.

    Args:
        q: The queries of the last tokens of each sequence, [batch, new, query heads, size].
        keys: The tokens of all sequences, [batch, tokens, heads, size]; ``values`` likewise.
        scale: The factor of scores.
    """

    def __init__(self, q: Any, keys: Any, values: Any, scale: float) -> None:
        (batch, new, query_heads, size), (_, tokens, heads, _) = q.shape, keys.shape
        type_ = Type.f32 if q.dtype == np.float32 else Type.bf16
        model = make_model(type_, heads, query_heads, size, scale)
        precision = dict.fromkeys(("KV_CACHE_PRECISION", "INFERENCE_PRECISION_HINT"), type_)
        compiled = openvino.Core().compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": 1, **precision})
        blocks = -(-tokens // BLOCK)
        self._shape = q.shape
        self._inputs = {
            "query": q.reshape(batch * new, -1),
            "key": np.ascontiguousarray(keys[:, tokens - new :]).reshape(batch * new, -1),
            "value": np.ascontiguousarray(values[:, tokens - new :]).reshape(batch * new, -1),
            "key_cache": _make_blocks(keys),
            "value_cache": _make_blocks(values),
            "past_lens": np.full(batch, tokens - new, np.int32),
            "subsequence_begins": np.arange(batch + 1, dtype=np.int32) * new,
            "block_indices": np.arange(batch * blocks, dtype=np.int32),
            "block_indices_begins": np.arange(batch + 1, dtype=np.int32) * blocks,
            "max_context_len": np.array(tokens, np.int32),
        }
        self._request = compiled.create_infer_request()
        for name, array in self._inputs.items():
            self._request.set_tensor(name, _make_tensor(array))

    def run(self) -> None:
        self._request.infer()

    def read(self) -> Any:
        """Returns the last result as f32, in the shape of the queries."""
        data = self._request.get_output_tensor(0).data
        if data.dtype != np.float32:
            data = (data.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
        return data.reshape(self._shape)
