# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Examples of attention with random elements, for the command ``tune``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import dtypes
from ..cache.params import KVCacheParams
from ..devices.cuda import DeviceArray
from ..ops.attention_operation import Attention
from ..pages.inputs import StepInputs

_RANDOM_BYTES = 1 << 22
"""Bytes of random elements, which larger arrays repeat."""


@dataclass(frozen=True)
class Shape:
    """Sequences of one length in a step.

    Attributes:
        batch: The number of sequences.
        length: Tokens of each sequence, with the new ones.
        new: New tokens of each sequence.
    """

    batch: int
    length: int
    new: int

    @classmethod
    def parse(cls, text: str) -> Shape:
        """Parses ``BATCHxLENGTH`` or ``BATCHxLENGTHxNEW``. Raises ``ValueError``."""
        if not re.fullmatch(r"[1-9]\d{0,8}(x[1-9]\d{0,8}){1,2}", text, re.ASCII):
            raise ValueError(
                f"expects a shape to be BATCHxLENGTH or BATCHxLENGTHxNEW, got {text!r}"
            )
        batch, length, new = (*map(int, text.split("x")), 1)[:3]
        if new > length:
            raise ValueError(f"expects at most LENGTH new tokens, got {text!r}")
        return cls(batch, length, new)

    def __str__(self) -> str:
        return f"{self.batch}x{self.length}x{self.new}"


class SyntheticExample:
    """A call of attention on arrays of a GPU, which live as long as it does."""

    def __init__(self, operation: Attention, shape: Shape, device: int) -> None:
        self._device = device
        self.__name__ = str(shape)
        self._arrays: list[DeviceArray] = []
        self._random = np.random.default_rng(0)
        self._inputs = self._make_inputs(operation.cache.params, shape)
        spec = operation.spec
        rows = shape.batch * shape.new, spec.query_heads
        query_dtype, out_dtype = map(dtypes.dtype, spec.dtypes)
        self._q = self._place(self._draw((*rows, spec.key_dim), query_dtype))
        self._out = self._place(np.zeros((*rows, spec.value_dim), out_dtype))
        self._scale = spec.key_dim**-0.5

    def __call__(self, operation: Attention) -> None:
        """Calls an operation of this shape."""
        operation(self._inputs, 0, self._q, out=self._out, scale=self._scale)

    def _make_inputs(self, params: KVCacheParams, shape: Shape) -> StepInputs:
        columns = -(-shape.length // (params.page_size or 1))
        pages = shape.batch * columns
        blocks = self._draw((pages, *params.shape_per_block), params.storage_dtype)
        scales: tuple[Any, ...] = ()
        if config := params.kvcache_quant_config:
            sizes = (pages, *params.shape_per_scale_block)
            ones = np.ones(sizes, dtypes.dtype(config.scale_dtype))
            scales = (self._place(ones),)
        # Pages of a sequence are anywhere in memory.
        lut = self._random.permutation(pages).astype(np.int32).reshape(-1, columns)
        offsets = np.arange(shape.batch + 1, dtype=np.int32) * shape.new
        lengths = np.full(shape.batch, shape.length - shape.new, np.int32)
        return StepInputs.of(
            blocks=self._place(blocks),
            scales=scales,
            lengths=self._place(lengths),
            lut=self._place(lut),
            row_offsets=self._place(offsets),
            max_seq_length=shape.new,
            max_cache_length=shape.length - shape.new,
        )

    def _draw(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """Random elements: near zero for floats, and any bits for integers."""
        count = _RANDOM_BYTES // dtype.itemsize
        if dtype.kind in "iu":
            drawn = np.frombuffer(self._random.bytes(count * dtype.itemsize), dtype)
        else:
            drawn = self._random.standard_normal(count).astype(dtype)
        return np.resize(drawn, shape)

    def _place(self, array: np.ndarray) -> Any:
        self._arrays.append(DeviceArray(array, self._device, "arrays of an example"))
        return self._arrays[-1].tensor
