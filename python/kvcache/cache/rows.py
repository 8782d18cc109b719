# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rows of fields: caches whose tokens have fields of several dtypes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import dtypes
from ..checks import check_positive


@dataclass(frozen=True)
class Field:
    """A field of every token's row.

    Attributes:
        name: ``"content"``, ``"scales"`` or ``"rope"``.
        dtype: MLIR's name of the elements' type.
        columns: Elements per token.
        pitch: Bytes from a token's field to the next token's.
        offset: Bytes from the start of a page, for a page of 0 tokens.
        offset_per_token: Bytes per token of a page, added to ``offset``.
    """

    name: str
    dtype: str
    columns: int
    pitch: int
    offset: int
    offset_per_token: int = 0

    @property
    def is_packed(self) -> bool:
        """Whether two elements share a byte."""
        return dtypes.bits(self.dtype) == 4

    @property
    def storage(self) -> np.dtype:
        """The type of stored elements: bytes of two elements of 4 bits."""
        return np.dtype(np.int8) if self.is_packed else dtypes.dtype(self.dtype)

    @property
    def stored_columns(self) -> int:
        """Stored elements per token."""
        return self.columns // 2 if self.is_packed else self.columns

    @property
    def nbytes(self) -> int:
        """Bytes per token."""
        return self.stored_columns * self.storage.itemsize


@dataclass(frozen=True)
class FieldView:
    """A field of all tokens of a cache.

    Attributes:
        array: A view of the bytes of the cache, [pages, tokens, 1, columns].
        type: The dialect's type of a view of it, or the memref type for scales.
        memref: The memref type of ``array``.
    """

    array: np.ndarray
    type: str
    memref: str


@dataclass(frozen=True)
class RowLayout:
    """The fields of a latent cache whose page is bytes.

    Attributes:
        name: The name for ``kvcache.Layout.from_name``.
        fields: The content, its scales, and the rope, if there is one.
        granularity: The number of elements of the content that share a scale.
        page_unit: The bytes that divide the distance of pages.
    """

    name: str
    fields: tuple[Field, ...]
    granularity: int
    page_unit: int

    def page_bytes(self, page_size: int) -> int:
        """The distance of pages of ``page_size`` tokens, in bytes."""
        check_positive(page_size=page_size)
        used = max(self._used_bytes(page_size), self._pitch * page_size)
        return -(-used // self.page_unit) * self.page_unit

    def views(self, data: Any, page_size: int | None = None) -> dict[str, FieldView]:
        """Views the fields as arrays over the same bytes, with their types.

        ``"row"`` is the contiguous bytes of a token, as elements of one byte. A gather
        through it copies several fields at once.

        Args:
            data: The bytes of the cache, uint8 [pages, tokens, row bytes] or
                [pages, page bytes]; pages may be further apart.
            page_size: Tokens per page; by default the second of three dimensions.

        Raises:
            TypeError: ``data`` is not an array of bytes.
            ValueError: It is too small for the pages, its bytes are not contiguous, or
                fields are not aligned to their elements.
        """
        pages = np.asarray(data)
        if pages.dtype != np.uint8:
            raise TypeError(f"expects bytes (uint8), got {pages.dtype}")
        if page_size is None:
            if pages.ndim != 3:
                raise ValueError(
                    "expects 'page_size' for pages without a dimension of tokens"
                )
            page_size = pages.shape[1]
        check_positive(page_size=page_size)
        if pages.ndim == 3:
            pages = pages.reshape(len(pages), -1, copy=False)
        if pages.ndim != 2 or (pages.shape[1] > 1 and pages.strides[1] != 1):
            raise ValueError("expects the bytes of a page side by side")
        if pages.shape[1] < (needed := self._used_bytes(page_size)):
            raise ValueError(
                f"expects pages of {needed:,} bytes for {page_size} tokens, got "
                f"{pages.shape[1]:,}"
            )
        fields = (self._row, *self.fields)
        return {field.name: self._view(field, pages, page_size) for field in fields}

    @property
    def _row(self) -> Field:
        """All fields of a token, except fields after all rows."""
        inside = [field for field in self.fields if not field.offset_per_token]
        size = max(field.offset + field.nbytes for field in inside)
        return Field("row", "f8E4M3FN", size, inside[0].pitch, 0)

    @property
    def _pitch(self) -> int:
        """Bytes that a token adds to a page."""
        return max(field.offset_per_token + field.pitch for field in self.fields)

    def _used_bytes(self, page_size: int) -> int:
        return max(
            field.offset
            + field.offset_per_token * page_size
            + field.pitch * (page_size - 1)
            + field.nbytes
            for field in self.fields
        )

    def _view(self, field: Field, pages: np.ndarray, page_size: int) -> FieldView:
        element, columns = field.storage, field.stored_columns
        start = field.offset + field.offset_per_token * page_size
        distance = pages.strides[0]
        for name, size in (
            ("offset", start),
            ("pitch", field.pitch),
            ("page", distance),
        ):
            if size % element.itemsize:
                raise ValueError(
                    f"the {name} of {field.name}, {size} bytes, is not a whole number of "
                    f"{element.name}"
                )
        array = np.ndarray(
            (len(pages), page_size, 1, columns),
            element,
            pages,
            start,
            (distance, field.pitch, field.pitch, element.itemsize),
        )
        array.flags.writeable = pages.flags.writeable
        pitch = field.pitch // element.itemsize
        memref = (
            f"memref<?x{page_size}x1x{columns}x{'i8' if field.is_packed else field.dtype}, "
            f"strided<[?, {pitch}, {pitch}, 1], offset: ?>>"
        )
        return FieldView(array, self._type(field, page_size) or memref, memref)

    def _type(self, field: Field, page_size: int) -> str:
        """The type of a view of the field; empty for scales, part of the content's."""
        if field.name == "scales":
            return ""
        pitch = field.pitch // field.storage.itemsize
        params = f"#kvcache.params<num_heads = 1, head_size = {field.columns}, is_mla = true>"
        text = f"{field.dtype}, {params}, page_size = {page_size}"
        end = f", layout = [token = {pitch}]"
        if field.name == "content":
            scales = next(other for other in self.fields if other.name == "scales")
            scale_pitch = scales.pitch // scales.storage.itemsize
            text += f", scale = {scales.dtype}, granularity = {self.granularity}"
            end += f", scale_layout = [token = {scale_pitch}]"
        return f"!kvcache.paged<{text}{end}>"


LAYOUTS = {
    # FlashMLA's tests/quant.py, for DeepSeek V3.2: 656 bytes a token.
    "FlashMLA-V3.2": RowLayout(
        "FlashMLA-V3.2",
        (
            Field("content", "f8E4M3FN", 512, 656, 0),
            Field("scales", "f32", 4, 656, 512),
            Field("rope", "bf16", 64, 656, 528),
        ),
        granularity=128,
        page_unit=656,
    ),
    # For DeepSeek V4: rows of 576 bytes, then 8 bytes of scales per row.
    "FlashMLA-V4": RowLayout(
        "FlashMLA-V4",
        (
            Field("content", "f8E4M3FN", 448, 576, 0),
            Field("rope", "bf16", 64, 576, 448),
            Field("scales", "f8E8M0FNU", 7, 8, 0, offset_per_token=576),
        ),
        granularity=64,
        page_unit=576,
    ),
    # Index keys of DeepSeek V3.2, as in vLLM, SGLang and DeepGEMM: the keys of a page,
    # then its scales, 132 bytes a token.
    "DeepGEMM-index": RowLayout(
        "DeepGEMM-index",
        (
            Field("content", "f8E4M3FN", 128, 128, 0),
            Field("scales", "f32", 1, 4, 0, offset_per_token=128),
        ),
        granularity=128,
        page_unit=132,
    ),
    # The same keys as MXFP4, as in vLLM on sm_100 and SGLang for DeepSeek V4: 68 bytes a
    # token.
    "DeepGEMM-index-MXFP4": RowLayout(
        "DeepGEMM-index-MXFP4",
        (
            Field("content", "f4E2M1FN", 128, 64, 0),
            Field("scales", "f8E8M0FNU", 4, 4, 0, offset_per_token=64),
        ),
        granularity=32,
        page_unit=68,
    ),
}
"""The layouts of rows of fields, by name."""
