# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pictures of the bytes of a page, in their order in memory."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .. import dtypes
from ..cache.layouts import DIMS
from ..cache.params import KVCacheParams
from ..cache.rows import Field, RowLayout
from .svg import INK, MARGIN, RIGHT, Canvas, Picture, count

_START = 150  # after the names of the lines
_HEIGHT = 26
_MAX_LINES = 6  # more lines are left out in the middle
_MAX_BOXES = 8
_GAP = 26  # the width of a gap
_COLORS = {
    "key": "#a9cbf5",
    "value": "#cdb8f0",
    "row": "#a9cbf5",
    "content": "#a9cbf5",
    "rope": "#7fcfb0",
    "scales": "#f6c581",
}


@dataclass(frozen=True)
class _Box:
    """Contiguous bytes of one kind."""

    kind: str
    name: str
    short: str  # the name in its line
    start: int | None
    size: int

    @property
    def tip(self) -> str:
        if self.start is None:
            return f"{self.name}: {count(self.size, 'byte')}"
        return f"{self.name}: bytes {self.start:,}–{self.start + self.size - 1:,}"


@dataclass(frozen=True)
class _Line:
    """A line of boxes in the picture; None stands for left-out boxes."""

    name: str
    boxes: list[_Box | None]


def draw_page(params: KVCacheParams) -> Picture:
    """Draws a page of one layer of a cache with a layout, on one device."""
    text = params.cache_type.partition("layout = ")[2].removesuffix(">")
    title = f"A page of {count(params.shape_per_block[2], 'token')} in one layer"
    canvas = Canvas(title, f"layout = {text}")
    canvas.heading(
        title, f"layout = {text}; bytes from the first key of the layer in this page"
    )
    kinds = ("row",) if params.is_mla else ("key", "value")
    order = params.order_of(params.layout, params.shape_per_block)
    size = params.storage_dtype.itemsize
    _draw_lines(canvas, _list_lines(params.shape_per_block, order, size, kinds))
    if config := params.kvcache_quant_config:
        shape = params.shape_per_scale_block
        order = params.order_of(params.scale_layout, shape)
        name = dtypes.mlir_name(config.scale_dtype)
        canvas.y += 14
        canvas.heading("its scales", f"{name}, a tensor of their own")
        size = dtypes.dtype(config.scale_dtype).itemsize
        _draw_lines(canvas, _list_lines(shape, order, size, ("scales",) * len(kinds)))
    canvas.y += MARGIN - 8
    return canvas.finish()


def draw_fields(layout: RowLayout, page_size: int) -> Picture:
    """Draws a page whose rows have fields."""
    total = layout.page_bytes(page_size)
    title = f"{layout.name}: a page of {count(page_size, 'token')}"
    canvas = Canvas(title, f"{total:,} bytes")
    fields = "; ".join(f"{f.name}: {f.columns} {f.dtype}" for f in layout.fields)
    canvas.heading(title, f"{total:,} bytes; {fields}")
    _draw_lines(canvas, _list_rows(layout, page_size))
    canvas.y += MARGIN - 8
    return canvas.finish()


# --- Lines --------------------------------------------------------------------------


def _list_lines(
    shape: Sequence[int], order: tuple[str, ...], item: int, kinds: tuple[str, ...]
) -> list[_Line | None]:
    """Lists the heads of a page, by the slowest dimension within the page.

    Args:
        shape: The shape of a page, from roles to elements.
        order: The order of the dimensions in memory.
        item: Bytes per element.
        kinds: The names of the roles.
    """
    sizes = dict(zip(DIMS[1:], shape, strict=True))
    strides = {dim: _find_stride(order, order.index(dim), sizes, item) for dim in DIMS}
    inner = [dim for dim in order if dim in ("token", "head") and sizes[dim] > 1]
    first = order.index(inner[0]) if inner else len(order)
    # Values outside of the keys' pages have separate pages, which look alike.
    if order.index("role") > first and len(kinds) > 1:
        inner = [dim for dim in order if dim in (*inner, "role")]
    if not inner:
        inner = ["token"]
    width = sizes["element"] * item

    def make_box(at: dict[str, int]) -> _Box:
        kind = kinds[at.get("role", 0)]
        names = [f"{dim} {at[dim]}" for dim in ("head", "token") if dim in at]
        steps = [strides[dim] for dim in at if at[dim]]
        start = None
        if None not in steps:
            start = sum(index * (strides[dim] or 0) for dim, index in at.items())
        role = ("key", "value")[at["role"]] if "role" in at else ""
        own = next((f"{dim} {at[dim]}" for dim in inner[1:] if dim != "role"), names[0])
        short = f"{role}, {own}" if role else own
        of = f"{role} {kind}" if role and role != kind else kind
        return _Box(kind, f"{of} of " + ", ".join(names), short, start, width)

    def list_boxes(index: int) -> Iterator[_Box]:
        line = {inner[0]: index}
        rest = inner[1:]
        for flat in range(math.prod(sizes[dim] for dim in rest)):
            at = dict(line)
            for dim in reversed(rest):
                flat, at[dim] = divmod(flat, sizes[dim])
            yield make_box(at)

    return [
        (
            None
            if index is None
            else _Line(f"{inner[0]} {index}", _shorten(list_boxes(index)))
        )
        for index in _shorten_range(sizes[inner[0]], _MAX_LINES)
    ]


def _find_stride(
    order: tuple[str, ...], index: int, sizes: dict[str, int], item: int
) -> int | None:
    """The bytes from one to the next; None if it depends on the number of pages."""
    inner = order[index + 1 :]
    if "page" in inner:
        return None
    return item * math.prod(sizes[dim] for dim in inner)


def _list_rows(layout: RowLayout, page_size: int) -> list[_Line | None]:
    """Lists the rows of tokens, then the fields after all rows."""
    own = [field for field in layout.fields if not field.offset_per_token]
    trailing = [field for field in layout.fields if field.offset_per_token]

    def make_box(field: Field, token: int) -> _Box:
        start = field.offset + field.offset_per_token * page_size + field.pitch * token
        size = field.nbytes
        name = f"{field.name} of token {token}"
        return _Box(field.name, name, f"token {token}", start, size)

    lines: list[_Line | None] = [
        (
            None
            if token is None
            else _Line(f"token {token}", [make_box(field, token) for field in own])
        )
        for token in _shorten_range(page_size, _MAX_LINES)
    ]
    for field in trailing:
        boxes = (make_box(field, token) for token in range(page_size))
        lines.append(_Line(field.name, _shorten(boxes)))
    return lines


def _shorten_range(size: int, most: int) -> list[int | None]:
    if size <= most:
        return list(range(size))
    return [*range(most - 2), None, size - 1]


def _shorten(boxes: Iterator[_Box]) -> list[_Box | None]:
    every = list(boxes)
    return [
        None if index is None else every[index]
        for index in _shorten_range(len(every), _MAX_BOXES)
    ]


# --- Drawing ------------------------------------------------------------------------


def _draw_lines(canvas: Canvas, lines: list[_Line | None]) -> None:
    for line in lines:
        if line is None:
            canvas.text(MARGIN, canvas.y + 10, "…")
            canvas.y += 22
            continue
        canvas.text(MARGIN, canvas.y + 12, line.name)
        first = line.boxes[0]
        where = "known at run time"
        if first and first.start is not None:
            where = f"byte {first.start:,}"
        canvas.text(MARGIN, canvas.y + 25, where, "small soft")
        _draw_boxes(canvas, line.boxes)
        canvas.y += _HEIGHT + 10


def _draw_boxes(canvas: Canvas, boxes: list[_Box | None]) -> None:
    gaps = sum(box is None for box in boxes)
    whole = sum(box.size for box in boxes if box)
    scale = (RIGHT - _START - gaps * _GAP) / whole
    x = float(_START)
    for box in boxes:
        if box is None:
            canvas.text(x + _GAP / 2, canvas.y + 17, "…", "", "middle")
            x += _GAP
            continue
        width = box.size * scale
        with canvas.group("box", box.tip):
            sizes = x, canvas.y, max(width - 2, 1.0), _HEIGHT
            canvas.rect(
                *sizes, fill=_COLORS[box.kind], rx=3, stroke=INK, stroke_opacity=0.25
            )
            for label in (box.tip, box.name, box.short):
                if len(label) * 6.1 + 4 <= width:
                    canvas.text(x + width / 2, canvas.y + 17, label, "small", "middle")
                    break
        x += width
