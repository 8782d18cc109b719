"""Tests of TMA geometry: the released reference's numbers, and addresses computed by hand."""

import itertools
import json

import ml_dtypes
import numpy as np
import pytest
from places import ROOT
from swizzles import PATTERNS, SWIZZLES

import kvcache

LINES = [
    json.loads(line)
    for line in (ROOT / "test/python/support/answers/tma_geometry.jsonl").read_text().splitlines()
]
SPANS = [line for line in LINES if "granularity" in line]
FOLDS = [line for line in LINES if "fold" in line]


def get_swizzle(line):
    return line["swizzle"].removeprefix("SWIZZLE_").lower()


def test_every_line_is_of_a_known_kind():
    assert (len(SPANS), len(FOLDS), len(LINES)) == (64, 42, 107)


@pytest.mark.parametrize("line", SPANS, ids=lambda line: "-".join(map(str, line.values())))
def test_spans_agree_with_the_reference(line):
    dtype, swizzle, depth = line["dtype"], get_swizzle(line), line["depth"]
    granularity = kvcache.swizzle_granularity(dtype, swizzle)
    padded = kvcache.padded_depth(dtype, swizzle, depth)
    width = kvcache.gather4_box_width(dtype, depth, swizzle)
    assert granularity * np.dtype(kvcache.dtypes.dtype(dtype)).itemsize == line["swizzle_bytes"]
    assert granularity == line["granularity"]
    assert padded == line["padded_depth"]
    assert padded // granularity == line["num_depth_chunks"]
    assert width == line["gather4_box_width"]
    assert -(-depth // width) == line["gather4_num_col_groups"]


@pytest.mark.parametrize("line", FOLDS, ids=lambda line: "-".join(map(str, line.values())))
def test_folds_agree_with_the_reference(line):
    dtype, rows, page_size = line["dtype"], line["BN"], line["page_size"]
    sizes = {"head_size": line["head_size"], "rows": rows}
    if page_size:
        sizes["page_size"] = page_size
    fields = kvcache.descriptor_fields(
        "tile", dtype=dtype, swizzle="128b", num_heads=2, num_rows=4096, **sizes
    )
    assert fields.box[2] == line["box_rows"]
    assert rows // fields.box[2] == line["num_sub_tiles"]
    chunks = kvcache.folded_chunks(
        dtype, "128b", columns=line["BK"], chunk_inner=line["row_major"], **sizes
    )
    assert chunks == line["fold_chunks"]


def test_scale_windows_agree_with_the_reference():
    (line,) = [line for line in LINES if "scale_align_elems_f32" in line]
    assert kvcache.swizzle_granularity("f32", "none") == line["scale_align_elems_f32"]
    assert kvcache.scale_window("f32", 128) == line["flat_scale_window_f32_128"]
    assert kvcache.scale_window("bf16", 128) == line["flat_scale_window_bf16_128"]


# --- Tiles ------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", ["int8", "bf16", "f32"])
@pytest.mark.parametrize("swizzle", SWIZZLES)
def test_tiles_lie_as_the_hardware_stores_them(swizzle, dtype):
    size = kvcache.dtypes.dtype(dtype).itemsize
    rows, columns = 24, 256 // size
    span = columns * size if swizzle == "none" else SWIZZLES[swizzle]
    seen = set()
    for row, column in itertools.product(range(rows), range(columns)):
        chunk, in_span = divmod(column * size, span)
        plain = chunk * rows * span + row * span + in_span
        line, in_line = divmod(plain, 128)
        unit, in_unit = divmod(in_line, 16)
        stored = line * 128 + 16 * int(PATTERNS[swizzle][line % 8][unit]) + in_unit
        assert kvcache.tile_offset((rows, columns), dtype, swizzle, row, column) == stored
        seen.add(stored)
    assert seen == set(range(0, rows * columns * size, size))


def test_elements_outside_of_a_tile():
    for row, column in [(8, 0), (0, 64), (-1, 0)]:
        with pytest.raises(IndexError, match="of a tile of 8 x 64"):
            kvcache.tile_offset((8, 64), "bf16", "128b", row, column)


# --- Descriptors ------------------------------------------------------------------

H, E, P, NB, NL = 3, 128, 8, 5, 2
PAGE_STRIDE = 2 * NL * P * H * E
NUM_ROWS = (NB - 1) * PAGE_STRIDE // (H * E) + P


def address(fields, *coordinates):
    """The byte of a coordinate, from the base of the view on."""
    strides = 1, *fields.strides
    elements = sum(c * s for c, s in zip(coordinates, strides, strict=True))
    return fields.offset + elements * fields.dtype.itemsize


def element(page, head, token, d):
    """The place in a view of one layer, in bytes of a bf16 cache."""
    return 2 * (page * PAGE_STRIDE + token * H * E + head * E + d)


def cache(**sizes):
    return {"dtype": "bf16", "num_heads": H, "head_size": E, **sizes}


def test_tile():
    sizes = cache(num_rows=NUM_ROWS, rows=64)
    fields = kvcache.descriptor_fields("tile", page_size=P, swizzle="128b", **sizes)
    assert fields.dims == (E, H, NUM_ROWS) and fields.strides == (E, H * E)
    assert fields.box == (64, 1, P) and fields.broken_limit is None
    row = 3 * PAGE_STRIDE // (H * E) + 5
    assert address(fields, 64, 2, row) == element(3, 2, 5, 64)
    for columns, inner in [({}, 8), ({"columns": 96}, 96)]:
        fields = kvcache.descriptor_fields("tile", **sizes, **columns)
        assert fields.box == (inner, 1, 64)
        fields = kvcache.descriptor_fields("tile", swizzle="64b", **sizes, **columns)
        assert fields.box == (32, 1, 64)


def test_matrix():
    sizes = cache(num_rows=100, rows=64)
    fields = kvcache.descriptor_fields("matrix", columns=64, swizzle="64b", **sizes)
    assert fields.dims == (H * E, 100) and fields.strides == (H * E,)
    assert fields.box == (32, 64)
    for columns, inner in [({}, 8), ({"columns": 96}, 96)]:
        fields = kvcache.descriptor_fields("matrix", **sizes, **columns)
        assert fields.box == (inner, 64)


@pytest.mark.parametrize("swizzle", SWIZZLES)
def test_matrix_with_mn_major_rows(swizzle):
    """Boxes of 8 rows, unless one box is as wide as the tile."""
    sizes = cache(num_rows=100, rows=64)
    span = SWIZZLES[swizzle] // 2
    for columns in (span, 2 * span, 3 * span):
        fields = kvcache.descriptor_fields(
            "matrix", columns=columns, swizzle=swizzle, major="mn", **sizes
        )
        is_whole = columns == span or swizzle == "none"
        assert fields.box == (columns if swizzle == "none" else span, 64 if is_whole else 8)
        assert fields.broken_limit is None


def test_paged():
    sizes = cache(page_size=P, num_pages=NB, rows=4, columns=E)
    fields = kvcache.descriptor_fields(
        "paged", page_stride=PAGE_STRIDE, swizzle="128b", **sizes
    )
    assert fields.dims == (E, H, P, NB) and fields.box == (64, 1, 4, 1)
    assert address(fields, 7, 1, 6, 4) == element(4, 1, 6, 7)
    fields = kvcache.descriptor_fields("paged", **sizes)
    assert fields.strides == (E, H * E, P * H * E) and fields.box == (E, 1, 4, 1)


def test_ragged_boxes_end_with_the_valid_rows():
    rows = 16
    fields = kvcache.descriptor_fields(
        "ragged", swizzle="128b", **cache(num_rows=NUM_ROWS, rows=rows)
    )
    assert fields.dims == (E, rows, H, NUM_ROWS + 1) and fields.box == (64, rows, 1, 1)
    for valid in range(rows + 1):
        start = rows - valid, 2, 40 + valid
        for i in range(valid):
            assert start[0] + i < fields.dims[1]
            found = address(fields, 64, start[0] + i, *start[1:])
            assert found == 2 * ((40 + i) * H * E + 2 * E + 64)
        assert start[0] + valid == fields.dims[1]  # the first that is out of bounds


def test_rope_follows_the_content():
    content, rope, row_bytes = 512, 64, 512 + 2 * 64
    fields = kvcache.descriptor_fields(
        "rope", dtype="f8E4M3FN", swizzle="128b", num_heads=1, num_rows=NUM_ROWS,
        rows=64, columns=rope, padded_depth=content, page_size=P,
    )  # fmt: skip
    assert fields.dtype == ml_dtypes.bfloat16 and fields.box == (64, 1, P)
    assert address(fields, 5, 0, 9) == 9 * row_bytes + content + 2 * 5
    fields = kvcache.descriptor_fields(
        "rope_gather4", dtype="f8E4M3FN", num_rows=NUM_ROWS, tile_width=rope,
        padded_depth=content,
    )  # fmt: skip
    assert fields.dims == (rope, NUM_ROWS) and fields.box == (64, 1)
    assert address(fields, 5, 9) == 9 * row_bytes + content + 2 * 5


def test_gather4_may_view_rows_as_another_type():
    fields = kvcache.descriptor_fields("gather4", dtype="int8", num_rows=7, tile_width=576)
    assert fields.box == (576, 1)
    assert fields.broken_limit == "expects box side 0 from 1 to 256, got 576"
    fields = kvcache.descriptor_fields("gather4", dtype="int64", num_rows=7, tile_width=72)
    assert fields.dims == (72, 7) and fields.strides == (72,) and fields.box == (72, 1)
    assert fields.broken_limit is None
    fields = kvcache.descriptor_fields(
        "gather4", dtype="bf16", num_rows=7, tile_width=512, tile_stride=576, swizzle="128b"
    )
    assert fields.dims == (576, 7) and fields.box == (64, 1)
    # A stride below that of the cache's rows: heads, for one.
    fields = kvcache.descriptor_fields("gather4", dtype="bf16", num_rows=7, tile_width=64)
    assert (fields.dims, fields.strides) == ((64, 7), (64,))


def test_scale():
    fields = kvcache.descriptor_fields(
        "scale", dtype="f32", page_size=64, num_pages=9, page_stride=128, rows=32
    )
    assert (fields.dims, fields.strides, fields.box) == ((64, 9), (128,), (32, 1))


@pytest.mark.parametrize(
    "change, message",
    [
        ({"rows": 257}, "expects box side 2 from 1 to 256, got 257"),
        ({"num_rows": 2**31 + 1}, "expects size 2 from 1 to 2^31, got 2147483649"),
        ({"head_size": 60}, "expects stride 1 to be a multiple of 16 bytes, got 120"),
    ],
    ids=["box", "size", "stride"],
)
def test_limits_of_the_hardware(change, message):
    sizes = cache(num_heads=8, num_rows=64, rows=64) | change
    fields = kvcache.descriptor_fields("tile", swizzle="128b", **sizes)
    assert fields.broken_limit == message


def test_limits_of_strides_and_inner_boxes():
    fields = kvcache.descriptor_fields(
        "paged", page_stride=2**40, **cache(page_size=P, num_pages=2, rows=4, columns=4)
    )
    assert fields.broken_limit == "expects stride 3 to be below 2^40 bytes, got 2199023255552"
    fields = kvcache.descriptor_fields(
        "paged", **cache(page_size=P, num_pages=2, rows=4, columns=4)
    )
    assert "multiple of 16 bytes, got 8" in fields.broken_limit
    fields = kvcache.descriptor_fields(
        "rope_gather4", dtype="int8", num_rows=7, tile_width=64, padded_depth=520
    )
    assert fields.broken_limit == "expects stride 1 to be a multiple of 16 bytes, got 648"


@pytest.mark.parametrize(
    "kind, change, message",
    [
        ("tiles", {}, "unknown kind 'tiles'; known are tile, matrix,"),
        ("tile", {"swizzle": "96b"}, "unknown swizzle '96b'; known are 'none'"),
        ("tile", {"rows": 0}, "expects 'rows' to be positive, got 0"),
        ("tile", {"padded_depth": 4}, "tile takes no padded_depth"),
        ("tile", {"head_stride": 4}, "expects 'token_stride' with 'head_stride'"),
        ("ragged", {"token_stride": 256}, "ragged with 'token_stride' needs head_stride"),
        ("paged", {}, "paged needs page_size, num_pages, columns"),
        ("tile", {"major": "m"}, "expects major to be 'k' or 'mn', got 'm'"),
        ("tile", {"major": "mn", "columns": 8}, "only for a matrix with columns"),
        ("matrix", {"major": "mn"}, "only for a matrix with columns"),
        ("tile", {"dtype": "f4E2M1FN"}, "less than a byte: view it as int8"),
    ],
)
def test_bad_arguments(kind, change, message):
    with pytest.raises(ValueError, match=message):
        kvcache.descriptor_fields(kind, **(cache(num_rows=64, rows=64) | change))


def test_sizes_are_integers():
    with pytest.raises(TypeError, match="expects 'rows' to be an integer, got 1.5"):
        kvcache.descriptor_fields("tile", **cache(num_rows=64, rows=1.5))
