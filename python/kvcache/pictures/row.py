# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pictures of the bytes of a token."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .. import dtypes
from ..cache.params import KVCacheParams
from ..cache.rows import RowLayout
from ..checks import check_instance, check_positive
from .layout import draw_fields, draw_page
from .svg import EDGE, INK, MARGIN, RIGHT, Canvas, Picture, count

MAX_HEAD_BYTES = 8192

_ACCESS = 16  # bytes of the widest access that every chip has
_BYTES = dtypes.formats("Element", bits=(8,))
_LINE = 1024  # bytes of a head in a line of the picture
_MAX_LINES = 8  # of heads; more are left out in the middle

_START = 140  # after the names of the heads
_WIDTH = RIGHT - _START
_BAR = 26  # the height of elements
_STRIP = 16  # the height of scales
_BYTE = 46  # the width of a byte in a magnified chunk

_CONTENT, _ROPE = "#a9cbf5", "#7fcfb0"
_SCALES = ("#fde6c8", "#f6c581")


@dataclass(frozen=True)
class _Segment:
    """Contiguous elements of one dtype in each head; sizes are in bytes."""

    name: str
    dtype: str
    color: str
    start: int
    stop: int

    @property
    def element_size(self) -> float:
        return dtypes.bits(self.dtype) / 8


class _Layout:
    """The positions of the bytes of a row.

    Attributes:
        scale: Pixels per byte, so that a line has the width of the picture.
        lines: Lines per head.
    """

    def __init__(
        self, params: KVCacheParams, padded_depth: int | None, rope_columns: int | None
    ) -> None:
        self.params = params
        self.heads = params.n_kv_heads_per_device
        name = params.dtype_shorthand
        self.head_bytes = params.head_dim * dtypes.bits(name) // 8
        kind = "content" if padded_depth is not None else "elements"
        content = _Segment(kind, name, _CONTENT, 0, padded_depth or self.head_bytes)
        self.segments = [content]
        if padded_depth is not None:
            rope = _Segment("rope", "bf16", _ROPE, padded_depth, self.head_bytes)
            self.segments.append(rope)
        self.element_size = content.element_size
        self.scale = min(_WIDTH / min(self.head_bytes, _LINE), 12.0)
        self.lines = -(-self.head_bytes // _LINE)
        self.row_bytes = self.heads * self.head_bytes

    @property
    def groups(self) -> int:
        """The number of scales of a head."""
        config = self.params.kvcache_quant_config
        if config is None:
            return 0
        return -(-self.params.head_dim // config.quantization_granularity)

    @property
    def numbers(self) -> int:
        """The number of scales of a head, and of the zero points after them."""
        config = self.params.kvcache_quant_config
        has_zero_points = config is not None and config.zero_point_dtype is not None
        return self.groups * (2 if has_zero_points else 1)

    @property
    def scale_size(self) -> int:
        config = self.params.kvcache_quant_config
        return dtypes.dtype(config.scale_dtype).itemsize if config else 0

    def group_bytes(self, group: int) -> tuple[float, float]:
        """The bytes of a head that a scale covers."""
        config = self.params.kvcache_quant_config
        size = config.quantization_granularity * self.element_size if config else 0
        return group * size, min((group + 1) * size, self.head_bytes)


def draw_row(
    params: KVCacheParams | RowLayout,
    *,
    padded_depth: int | None = None,
    rope_columns: int | None = None,
    page_size: int | None = None,
) -> Picture:
    """Draws the bytes of a token in a layer of a cache, on one device.

    Each head shows its elements, with lines every 16 bytes of the row, and below them
    the scales, each under its elements. Then follow the first 16 bytes, magnified, and
    the bytes of a row, a token and a page.

    With a layout, the bytes of a token need not be contiguous: the picture shows the
    bytes of a page, in the order in memory.

    Args:
        params: The parameters of the cache, or rows of fields of ``Layout.from_name``.
        padded_depth: Bytes of the content of an MLA row of one-byte elements, before a
            rope in bf16.
        rope_columns: Elements of that rope; both are given or none is.
        page_size: Tokens per page, for rows of fields only; 64 by default.

    Raises:
        TypeError: The sizes of a rope are not integers.
        ValueError: The cache can't have a rope, or has a layout; the sizes of the rope
            don't add up to ``head_dim``; or heads have more than 8,192 bytes.
    """
    if isinstance(params, RowLayout):
        _check_no_rope(padded_depth, rope_columns)
        return draw_fields(params, 64 if page_size is None else page_size)
    check_instance(KVCacheParams, params=params)
    if page_size is not None:
        raise ValueError("expects 'page_size' only for rows of fields")
    if params.layout is not None or params.scale_layout is not None:
        _check_no_rope(padded_depth, rope_columns)
        return draw_page(params)
    _check_rope(params, padded_depth, rope_columns)
    layout = _Layout(params, padded_depth, rope_columns)
    if layout.head_bytes > MAX_HEAD_BYTES:
        raise ValueError(
            f"expects heads of at most {MAX_HEAD_BYTES:,} bytes in a picture, got "
            f"{layout.head_bytes:,}"
        )
    title = _title(params)
    canvas = Canvas(title, f"{layout.row_bytes:,} bytes. {_note(layout)}.")
    canvas.heading(title, _note(layout))
    _draw_ruler(canvas, layout)
    for head in _shown_heads(layout):
        _draw_head(canvas, layout, head)
    for segment in layout.segments:
        _draw_magnified(canvas, layout, segment)
    _draw_totals(canvas, layout)
    return canvas.finish()


def _check_no_rope(padded_depth: int | None, rope_columns: int | None) -> None:
    if padded_depth is not None or rope_columns is not None:
        raise ValueError(
            "expects 'padded_depth' and 'rope_columns' only for packed rows"
        )


def _check_rope(
    params: KVCacheParams, padded_depth: int | None, rope_columns: int | None
) -> None:
    if padded_depth is None and rope_columns is None:
        return
    if padded_depth is None or rope_columns is None:
        raise ValueError("expects 'padded_depth' and 'rope_columns' together")
    if not params.is_mla or params.dtype_shorthand not in _BYTES:
        kind = "MLA" if params.is_mla else "keys and values"
        raise ValueError(
            "expects a cache of MLA with elements of one byte for a rope, got "
            f"{kind} of {params.dtype_shorthand}"
        )
    check_positive(padded_depth=padded_depth, rope_columns=rope_columns)
    if padded_depth + 2 * rope_columns != params.head_dim:
        raise ValueError(
            f"expects 'padded_depth' + 2 * 'rope_columns' to be 'head_dim' "
            f"({params.head_dim}), got {padded_depth + 2 * rope_columns}"
        )


def _title(params: KVCacheParams) -> str:
    size = f"{params.head_dim} {params.dtype_shorthand}"
    if params.is_mla:
        return f"Latent row of a token: {size}"
    heads = count(params.n_kv_heads_per_device, "head")
    return f"Row of a token: {heads} of {size}"


def _note(layout: _Layout) -> str:
    kinds = "" if layout.params.is_mla else "; keys, and values likewise"
    note = f"in a layer, on a device{kinds}; marks {_ACCESS} bytes apart"
    if config := layout.params.kvcache_quant_config:
        scale = dtypes.mlir_name(config.scale_dtype)
        note += f"; below: {scale} scales, a row of their own"
    return note


def _shown_heads(layout: _Layout) -> list[int]:
    """All heads, or the first ones, -1 for left-out heads, and the last."""
    room = max(_MAX_LINES // layout.lines, 1)
    if layout.heads <= room:
        return list(range(layout.heads))
    return [*range(max(room // 2, 1)), -1, layout.heads - 1]


def _draw_ruler(canvas: Canvas, layout: _Layout) -> None:
    """Numbers the bytes of a head, where the numbers fit."""
    step = _ACCESS
    while step * layout.scale < 44:
        step *= 2
    what = "row" if layout.params.is_mla else "head"
    canvas.text(MARGIN, canvas.y + 4, f"byte of a {what}", "note")
    end = min(layout.head_bytes, _LINE)
    numbered = list(range(0, end + 1, step))
    if (end - numbered[-1]) * layout.scale >= 44:
        numbered.append(end)
    for byte in numbered:
        x = _START + byte * layout.scale
        canvas.text(x, canvas.y + 4, f"{byte:,}", "small soft", "middle")
        canvas.line(x, canvas.y + 8, x, canvas.y + 13, EDGE)
    canvas.y += 16


# --- Heads --------------------------------------------------------------------------


def _draw_head(canvas: Canvas, layout: _Layout, head: int) -> None:
    if head < 0:
        canvas.text(MARGIN, canvas.y + 10, "…")
        canvas.y += 22
        return
    first = head * layout.head_bytes
    for start in range(0, layout.head_bytes, _LINE):
        if start == 0:
            name = "row" if layout.params.is_mla else f"head {head}"
            canvas.text(MARGIN, canvas.y + 12, name)
        canvas.text(MARGIN, canvas.y + 25, f"byte {first + start:,}", "small soft")
        stop = min(start + _LINE, layout.head_bytes)
        _draw_elements(canvas, layout, start, stop, first)
        if layout.groups:
            _draw_scales(canvas, layout, head, start, stop)
        canvas.y += _BAR + 10 + (_STRIP + 4 if layout.groups else 0)


def _draw_elements(
    canvas: Canvas, layout: _Layout, start: int, stop: int, first: int
) -> None:
    """Draws bytes ``start`` to ``stop`` of the head that starts at byte ``first``."""
    top = canvas.y
    for segment in layout.segments:
        left, right = max(segment.start, start), min(segment.stop, stop)
        if left >= right:
            continue
        x, width = _place(layout, left - start, right - start)
        canvas.rect(x, top, width, _BAR, fill=segment.color, rx=3, class_=segment.name)
        number = int((right - left) / segment.element_size)
        size = f"{number:,} {segment.dtype}"
        label = size if segment.name == "elements" else f"{segment.name}, {size}"
        options = (f"{label}: {right - left:,} bytes", label, size)
        _write_inside(canvas, x, top + 17, width, options)
    for byte in range(-(-(first + start) // _ACCESS) * _ACCESS, first + stop, _ACCESS):
        if byte > first + start:
            x, _ = _place(layout, byte - first - start, 0)
            canvas.rect(x - 0.5, top, 1, 5, fill=INK, class_="unit")
            canvas.rect(x - 0.5, top + _BAR - 5, 1, 5, fill=INK)


def _draw_scales(
    canvas: Canvas, layout: _Layout, head: int, start: int, stop: int
) -> None:
    """Draws the scales of these bytes of a head, each as wide as its elements."""
    top = canvas.y + _BAR + 3
    for group in range(layout.groups):
        covered = layout.group_bytes(group)
        left, right = max(covered[0], start), min(covered[1], stop)
        if left >= right:
            continue
        x, width = _place(layout, left - start, right - start)
        index = head * layout.numbers + group
        first = index * layout.scale_size
        last = first + layout.scale_size - 1
        number = f"scale {index:,}"
        place = f"bytes {first:,}–{last:,}" if last > first else f"byte {first:,}"
        with canvas.group("scale", f"{number}: {place} of the row of scales"):
            sizes = x, top, width - 1, _STRIP
            canvas.rect(*sizes, fill=_SCALES[group % 2], rx=2)
            options = (f"{number}: {place}", number, f"{index:,}")
            _write_inside(canvas, x, top + 12, width, options, "small")


def _place(layout: _Layout, start: float, stop: float) -> tuple[float, float]:
    """The position of bytes of a line in the picture, and their width."""
    return _START + start * layout.scale, (stop - start) * layout.scale


def _write_inside(
    canvas: Canvas,
    x: float,
    y: float,
    width: float,
    options: tuple[str, ...],
    style: str = "",
) -> None:
    """Writes the first option that fits into the width, if any."""
    letter = 6.2 if "small" in style else 7.4
    for option in options:
        if len(option) * letter + 4 <= width:
            canvas.text(x + width / 2, y, option, style, "middle")
            return


# --- The first bytes, magnified -----------------------------------------------------


def _draw_magnified(canvas: Canvas, layout: _Layout, segment: _Segment) -> None:
    """Draws the elements in the first 16 bytes of a segment, in the first head."""
    size = min(_ACCESS, segment.stop - segment.start)
    of = f" of the {segment.name}" if len(layout.segments) > 1 else ""
    nibbles = ", the lower four bits first" if segment.element_size < 1 else ""
    canvas.y += 22
    note = f"elements of {segment.dtype}{nibbles}; below: bytes of the row"
    canvas.heading(f"the first {size} bytes{of}", note)
    width = segment.element_size * _BYTE
    for element in range(int(size / segment.element_size)):
        x = _START + element * width
        sizes = x, canvas.y - 6, width - 2, _BAR
        canvas.rect(*sizes, fill=segment.color, rx=3, class_="element")
        style = "small" if segment.element_size < 1 else ""
        canvas.text(x + width / 2 - 1, canvas.y + 11, str(element), style, "middle")
    for byte in range(size):
        x = _START + (byte + 0.5) * _BYTE - 1
        label = f"{segment.start + byte:,}"
        canvas.text(x, canvas.y + 34, label, "small soft", "middle")
    canvas.y += 40


# --- Totals -------------------------------------------------------------------------


def _totals(layout: _Layout) -> Iterator[tuple[str, int, int]]:
    """The lines of the totals: bytes of elements, and of scales."""
    params = layout.params
    elements = layout.row_bytes
    scales = layout.heads * layout.numbers * layout.scale_size
    if params.is_mla:
        yield "a row: a token in a layer", elements, scales
    else:
        yield "a row: keys of a token in a layer", elements, scales
        elements, scales = 2 * elements, 2 * scales
        yield "keys and values", elements, scales
    if params.page_size is None or params.n_layers_per_stage is None:
        return
    _, layers, page_size, *_ = params.shape_per_block
    yield f"a token in {count(layers, 'layer')}", elements * layers, scales * layers
    tokens = layers * page_size
    yield f"a page of {count(page_size, 'token')}", elements * tokens, scales * tokens
    if (devices := params.n_devices_per_stage) > 1:
        tokens *= devices
        yield f"the page on all {devices} devices", elements * tokens, scales * tokens


def _draw_totals(canvas: Canvas, layout: _Layout) -> None:
    canvas.y += 34
    has_scales = layout.groups > 0
    columns = ("elements", "scales", "together") if has_scales else ("elements",)
    canvas.text(MARGIN, canvas.y, "bytes", "heading")
    ends = [420 + 150 * index for index in range(len(columns))]
    for end, column in zip(ends, columns, strict=True):
        canvas.text(end, canvas.y, column, "note", "end")
    canvas.y += 8
    for name, elements, scales in _totals(layout):
        canvas.line(MARGIN, canvas.y, ends[-1], canvas.y, EDGE)
        canvas.text(MARGIN, canvas.y + 17, name, "note")
        sizes = (elements, scales, elements + scales)[: len(columns)]
        for end, size in zip(ends, sizes, strict=True):
            canvas.text(end, canvas.y + 17, f"{size:,}", "", "end")
        canvas.y += 25
    canvas.y += MARGIN - 8
