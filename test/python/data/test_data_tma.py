"""Tests of tensor copies written by hand, on the emulator, against plain indexing."""

import numpy as np
import pytest
from quantized_programs import PACKED
from swizzles import SWIZZLES, stored
from tma_copies import BF16, TARGETS, Kind, Memory, Tile, box, compile_copy, create, descriptor_type

import kvcache

targets = pytest.mark.parametrize("target", TARGETS)
lays = pytest.mark.parametrize("swizzle", SWIZZLES)


# Boxes of rows

COPY = "kvcache.tma_load %desc[%d, %h, %row], %barrier[%c0] to %tile : !desc, !barrier -> !tile"
INDICES = "%d: index, %h: index, %row: index"
DTYPES = ["f32", "f16", "bf16", "f8E4M3FN", "f8E5M2", "i8", "f4E2M1FN", "i4"]


def make_kind(dtype, **sizes):
    """The kind of a cache of a format; formats of quantized caches only get scales."""
    quantized = {"i8": ("f32", 32), "f4E2M1FN": ("f8E4M3FN", 16), "i4": ("f16", 32)}
    scale, granularity = quantized.get(dtype, ("", 0))
    return Kind(dtype, scale=scale, granularity=granularity, **sizes)


# Each format and swizzle on one chip: their copies of boxes are the same instruction.
LAYS = [
    (dtype, swizzle, TARGETS[(i + j) % 2])
    for i, dtype in enumerate(DTYPES)
    for j, swizzle in enumerate(SWIZZLES)
]


@pytest.mark.parametrize(("dtype", "swizzle", "target"), LAYS)
def test_boxes_are_zero_outside_of_the_tensor(dtype, swizzle, target):
    kind = make_kind(dtype, head_size=256 if dtype in PACKED else 128)
    memory = Memory(kind)
    stored_type, size = kind.stored
    itemsize = memory.flat.itemsize
    # A swizzled tile may have several chunks; without a swizzle one box is the tile.
    columns = size // 2 if swizzle == "none" else size
    tile = Tile(16, columns, stored_type, swizzle)
    program = compile_copy(
        *(target, kind, tile, descriptor_type((tile.span, 1, 16), stored_type, swizzle)),
        create("create_tma_tile", f"rows = 16, columns = {columns}", swizzle),
        *(COPY, INDICES),
    )
    unit = 16 // itemsize
    for d, h, row in [
        *((0, 0, 0), (unit, 2, 17), (0, 1, -3), (size - unit, 1, 3)),
        *((-unit, 0, memory.num_rows - 5), (0, 0, -16), (0, 0, -(2**31))),
    ]:
        expected = box(memory.rows()[:, h * size : (h + 1) * size], row, d, 16, columns)
        found = memory.load(program, tile, d, h, row)
        assert (found == stored(expected, swizzle)).all(), (d, h, row)


@targets
def test_heads_and_pages_outside_of_the_tensor(target):
    """Chips load zeros and store nothing. The sanitizer reports it as a likely error."""
    kind = Kind(head_size=64)
    memory, tile = Memory(kind), Tile(16, 64, "bf16", "128b")
    made = create("create_tma_tile", "rows = 16", "128b")
    store = "\n      %token = kvcache.tma_store %tile to %desc[%d, %h, %row] : !tile, !desc\n      kvcache.wait %token"
    values = np.ones((16, 64), tile.numpy)
    for sanitize in (True, False):
        descriptor = descriptor_type((64, 1, 16), "bf16", "128b")
        load = compile_copy(target, kind, tile, descriptor, made, COPY, INDICES, sanitize=sanitize)
        stores = compile_copy(
            *(target, kind, tile, descriptor, made, store, INDICES), is_store=True, sanitize=sanitize
        )
        for h, row, dim in [(3, 0, 1), (-1, 0, 1), (0, memory.num_rows, 2), (0, 2**31 - 1, 2)]:
            if sanitize:
                message = f"coordinate {h if dim == 1 else row} of dimension {dim}, which is outside"
                with pytest.raises(kvcache.CheckError, match=message):
                    memory.load(load, tile, 0, h, row)
                if h >= 0:
                    with pytest.raises(kvcache.CheckError, match=message):
                        stores.call("run", *memory.arguments(), values, 0, h, row)
                continue
            assert not memory.load(load, tile, 0, h, row).any()
            if h >= 0:
                before = memory.flat.copy()
                stores.call("run", *memory.arguments(), values, 0, h, row)
                assert (memory.flat.view(np.uint8) == before.view(np.uint8)).all()


@targets
def test_boxes_without_rows_before_the_cache(target):
    """Chips access its first address for them, and nothing else outside of the cache."""
    kind = Kind(head_size=64, mla=True)
    memory, tile = Memory(kind), Tile(16, 64, "bf16", "128b")
    program = compile_copy(
        *(target, kind, tile, descriptor_type((64, 16, 1, 1), "bf16", "128b")),
        create("create_ragged_tma_tile", "rows = 16", "128b"),
        "kvcache.tma_load %desc[%c0, %missing, %c0, %row], %barrier[%c0] to %tile : !desc, !barrier -> !tile",
        "%missing: index, %row: index",
    )
    *cache, _ = memory.arguments()
    for layer, valid in [(1, 0), (1, 3), (0, 16), (0, 1), (0, 0)]:
        raw = np.full(tile.num_bytes, 77, np.int8)
        if (layer, valid) == (0, 0):
            message = "outside of the tensor, for which GPUs access the first address of the tensor, and it .*reads"
            with pytest.raises(kvcache.CheckError, match=message):
                program.call("run", *cache, layer, raw, 16, 0)
            continue
        program.call("run", *cache, layer, raw, 16 - valid, valid)
        rows = memory.flat.reshape(-1, kind.heads * 64)[layer * memory.page :][:16, :64].copy()
        rows[valid:] = 0
        assert (raw.view(np.uint8) == stored(rows, "128b")).all(), (layer, valid)


@targets
@lays
def test_smaller_boxes_at_rows_of_a_tile(swizzle, target):
    """Two boxes of the rows of a page, in any order."""
    rows = 8
    kind = Kind(page_size=rows)
    span = SWIZZLES[swizzle] // 2
    columns = span if swizzle == "none" else 128
    tile, memory = Tile(2 * rows, columns, "bf16", swizzle), Memory(kind)
    program = compile_copy(
        *(target, kind, tile, descriptor_type((span, 1, rows), "bf16", swizzle)),
        create("create_tma_tile", f"rows = {2 * rows}", swizzle),
        """kvcache.tma_load %desc[%c0, %c2, %row0], %barrier[%c0] to %tile at %at0 : !desc, !barrier -> !tile
      kvcache.tma_load %desc[%c0, %c2, %row1], %barrier[%c0] to %tile at %at1
          {l2_hint = #kvcache.eviction<evict_first>} : !desc, !barrier -> !tile""",
        "%row0: index, %row1: index, %at0: index, %at1: index",
    )
    head = memory.rows()[:, 256 : 256 + columns]
    for at in (0, 8):
        expected = np.concatenate([head[5 : 5 + rows], head[33 : 33 + rows]])
        found = memory.load(program, tile, 5, 33, at, 8 - at)
        assert (found == stored(np.roll(expected, at, axis=0), swizzle)).all()


@targets
@lays
@pytest.mark.parametrize(("page_size", "rows"), [(4, 4), (16, 8), (48, 16), (256, 256)])
def test_boxes_of_a_page(page_size, rows, swizzle, target):
    kind = Kind(page_size=page_size)
    span = 32 if swizzle == "none" else SWIZZLES[swizzle] // 2
    # Several spans need a multiple of 8 rows.
    columns = span if rows < 8 or swizzle == "none" else 64
    tile, memory = Tile(rows, columns, "bf16", swizzle), Memory(kind)
    program = compile_copy(
        *(target, kind, tile, descriptor_type((span, 1, rows, 1), "bf16", swizzle)),
        create("create_paged_tma_tile", f"rows = {rows}, columns = {tile.columns}", swizzle),
        """%row, %page = kvcache.tma_coords %k[%b, %t] : !cache
      kvcache.tma_load %desc[%d, %h, %row, %page], %barrier[%c0] to %tile : !desc, !barrier -> !tile""",
        "%b: index, %h: index, %t: index, %d: index",
    )
    for b, h, t, d in [(0, 0, 0, 0), (1, 2, page_size + 1, 64), (1, 1, 2 * page_size - 1, 96)]:
        # Bytes after the page are not rows.
        page = memory.blocks[memory.lut[b, t // page_size], 1, 1, :, h]
        expected = box(page, t % page_size, d, rows, tile.columns)
        assert (memory.load(program, tile, b, h, t, d) == stored(expected, swizzle)).all()


@lays
@pytest.mark.parametrize("chunks", [1, 3])
@pytest.mark.parametrize("major", ["k", "mn"])
def test_matrices_of_continuous_caches(major, chunks, swizzle):
    """Without a swizzle, three chunks of 16 bytes are one of 48."""
    kind = Kind(page_size=None)
    tile, memory = Tile(16, chunks * SWIZZLES[swizzle] // 2, "bf16", swizzle), Memory(kind)
    # The contiguous index of a wider tile comes in boxes of 8 rows.
    box_rows = 8 if major == "mn" and tile.columns > tile.span else 16
    attributes = "rows = 16"
    if (major, chunks) != ("k", 1):
        attributes += f", columns = {tile.columns}, major = #kvcache.major<{major}_major>"
    copies = "\n      ".join(
        f"%at{at} = arith.constant {at} : index\n      %row{at} = arith.addi %row, %at{at} : index\n"
        f"      kvcache.tma_load %desc[%d, %row{at}], %barrier[%c0] to %tile at %at{at} : !desc, !barrier -> !tile"
        for at in range(0, 16, box_rows)
    )
    program = compile_copy(
        *(TARGETS[chunks == 3], kind, tile, descriptor_type((tile.span, box_rows), "bf16", swizzle)),
        create("create_tma_tile", attributes, swizzle),
        *(copies, "%d: index, %row: index"),
    )
    for d, row in [(0, 0), (352, 7), (128, memory.num_rows - 3), (8, -2)]:
        expected = box(memory.rows(), row, d, 16, tile.columns)
        assert (memory.load(program, tile, d, row) == stored(expected, swizzle)).all()


# Rows through the lookup table


def load_rows(kind, tile, page_rows, target, swizzle, options="", valid=False, pair=False, blocks=1):
    """Loads the rows of `populate` with a descriptor of rows, or a ragged one."""
    rows = tile.rows * (2 if pair else 1)
    page = f", page_size = {kind.page_size}" if kind.page_size else ""
    span = tile.span
    if valid:
        sides, kind_of_box = (span, page_rows, 1, 1), "ragged_tma_tile"
        attributes = f"rows = {page_rows}, columns = {tile.columns}"
    else:
        sides, kind_of_box, attributes = (span, 1, page_rows), "tma_tile", f"rows = {rows}"
    more = " valid %n" if valid else ""
    leads = f" pair_cta leader {'%leads' if blocks == 1 else '%is_first'}" if pair else ""
    parameters = "%b: index, %h: index, %t: index, %d: index, %n: index, %leads: i1"
    return compile_copy(
        *(target, kind, tile, descriptor_type(sides, tile.dtype, swizzle)),
        create(f"create_{kind_of_box}", attributes, swizzle),
        f"""%indices = kvcache.populate %k[%b, %t]{options} : !cache -> !indices
      kvcache.tma_load_rows %desc[%d, %h] rows %indices{more}, %barrier[%c0] to %tile{leads}
          : !desc, !indices, !barrier -> !tile""",
        parameters,
        aliases=f"!indices = !kvcache.row_indices<rows = {rows}{page}>",
        blocks=blocks,
    )


def tokens(memory, b, h, t, d, rows, columns, valid):
    """The expected elements of tokens of a sequence, with zeros from `valid` on."""
    result = np.zeros((rows, columns), memory.flat.dtype)
    for i in range(min(rows, max(valid, 0))):
        row = memory.rows()[memory.row_of(b, t + i)]
        start = h * memory.size + d
        result[i] = row[start : start + columns]
    return result


PAGES = [
    *((1, "128b", 16), (2, "64b", 16), (2, "128b", 16), (3, "128b", 48), (4, "32b", 16)),
    *((8, "none", 32), (16, "64b", 64), (48, "32b", 96), (64, "128b", 64), (256, "none", 128)),
    (256, "128b", 256),
]


@targets
@pytest.mark.parametrize(("page_size", "swizzle", "rows"), PAGES)
def test_rows_of_pages(page_size, swizzle, rows, target):
    kind = Kind(page_size=page_size)
    tile = Tile(rows, 8 if swizzle == "none" else 64, "bf16", swizzle)
    memory = Memory(kind)
    box_rows = min(rows, page_size or rows)
    program = load_rows(kind, tile, box_rows, target, swizzle)
    for b, h, t, d in [(0, 0, 0, 0), (1, 2, rows, 64)]:
        expected = tokens(memory, b, h, t, d, rows, tile.columns, rows)
        found = memory.load(program, tile, b, h, t, d, 0, False)
        assert (found == stored(expected, swizzle)).all()


@targets
@pytest.mark.parametrize(("page_size", "swizzle", "rows"), [*PAGES, (None, "128b", 16)])
def test_rows_up_to_a_valid_one(page_size, swizzle, rows, target):
    kind = Kind(page_size=page_size)
    columns = 8 if swizzle == "none" else 64
    tile, memory = Tile(rows, columns, "bf16", swizzle), Memory(kind)
    program = load_rows(kind, tile, min(rows, page_size or rows), target, swizzle, valid=True)
    for b, h, t, d, n in [(0, 0, 0, 0, rows), (1, 2, rows if page_size else 5, 64, 7), (1, 1, 0, 0, 0)] + [
        (0, 1, 0, 0, n) for n in (-1, 1, rows - 1, rows + 9)
    ]:
        expected = tokens(memory, b, h, t, d, rows, columns, n)
        found = memory.load(program, tile, b, h, t, d, n, False)
        assert (found == stored(expected, swizzle)).all(), n


@targets
@pytest.mark.parametrize(("page_size", "valid"), [(8, False), (8, True), (64, True)])
def test_two_blocks_share_rows(page_size, valid, target):
    kind, tile = Kind(page_size=page_size), Tile(32, 128, "bf16", "128b")
    memory = Memory(kind)
    box_rows = min(32, page_size)
    program = load_rows(kind, tile, box_rows, target, "128b", valid=valid, pair=True)
    for n in (64, 40, 32, 5, 0) if valid else (64,):
        expected = tokens(memory, 1, 1, 64, 0, 64, 128, n)
        for leads in (True, False):
            half = expected[:32] if leads else expected[32:]
            found = memory.load(program, tile, 1, 1, 64, 0, n, leads)
            assert (found == stored(half, "128b")).all(), (n, leads)


@targets
@pytest.mark.parametrize(("page_size", "valid"), [(8, False), (64, True)])
def test_a_cluster_of_two_blocks_shares_rows(page_size, valid, target):
    kind, tile = Kind(page_size=page_size), Tile(32, 128, "bf16", "128b")
    memory = Memory(kind)
    program = load_rows(kind, tile, min(32, page_size), target, "128b", valid=valid, pair=True, blocks=2)
    for n in (64, 40, 5) if valid else (64,):
        expected = tokens(memory, 1, 1, 64, 0, 64, 128, n)
        found = memory.load(program, tile, 1, 1, 64, 0, n, False, blocks=2)
        halves = [stored(half, "128b") for half in (expected[:32], expected[32:])]
        assert (found == np.concatenate(halves)).all(), n


# Rows of any place


def compile_gather(target, kind, tile, box_columns, box_dtype, made, ids="i32", column=False):
    at = "[%column]" if column else ""
    return compile_copy(
        *(target, kind, tile, descriptor_type((box_columns, 1), box_dtype, tile.swizzle), made),
        f"""kvcache.tma_gather_tile %desc{at} rows %ids, %barrier[%c0] to %tile
          : !desc, memref<{tile.rows}x{ids}>, !barrier -> !tile""",
        f"%ids: memref<{tile.rows}x{ids}>, %column: index",
    )


def some_ids(memory, count, dtype=np.int32):
    ids = memory.rng.integers(0, memory.num_rows, count).astype(dtype)
    ids[[1, 2, 5]] = -1, memory.num_rows, np.iinfo(np.int32).min
    if dtype == np.int64:
        ids[6:8] = 2**32 + 3, -(2**63) + 1
    return ids


def gathered(rows, ids, column, columns):
    return np.concatenate([box(rows, int(i), column, 1, columns) for i in ids])


@targets
@pytest.mark.parametrize("swizzle", ["128b", "none"])
@pytest.mark.parametrize("ids", ["i32", "i64"])
def test_gathered_rows(swizzle, ids, target):
    kind = Kind(head_size=64, heads=6)
    columns = 256 if swizzle == "none" else 320
    tile, memory = Tile(16, columns, "bf16", swizzle), Memory(kind)
    attributes = f"tile_height = 16, tile_width = {columns}, tile_stride = 384"
    program = compile_gather(
        *(target, kind, tile, tile.span, "bf16"),
        create("create_gather4_tma_tile", attributes, swizzle),
        *(ids, True),
    )
    rows = some_ids(memory, 16, np.dtype(f"i{int(ids[1:]) // 8}"))
    for column in (0, 64, 128):
        expected = gathered(memory.rows(), rows, column, columns)
        found = memory.load(program, tile, rows, column)
        assert (found == stored(expected, swizzle)).all()


def test_gathered_rows_with_narrow_swizzles():
    """Tests only copies in which one instruction gathers four rows, and rows of 32 bytes are contiguous."""
    kind = Kind(head_size=64, heads=2)
    for swizzle in ("32b", "64b"):
        tile, memory = Tile(8, 128, "bf16", swizzle), Memory(kind)
        made = create("create_gather4_tma_tile", "tile_height = 8, tile_width = 128", swizzle)
        program = compile_gather(TARGETS[1], kind, tile, tile.span, "bf16", made)
        rows = some_ids(memory, 8)
        expected = gathered(memory.rows(), rows, 0, 128)
        assert (memory.load(program, tile, rows, 0) == stored(expected, swizzle)).all()


@targets
@pytest.mark.parametrize(
    ("swizzle", "columns", "stride"),
    [("none", 64, None), ("128b", 64, None), ("128b", 96, None), ("128b", 96, 128), ("none", 192, 200)],
)
def test_gathered_slices_of_rows(swizzle, columns, stride, target):
    """Tests rows of a stride below the cache's: heads, pairs of heads, and other slices."""
    kind = Kind(head_size=64, heads=4)
    tile, memory = Tile(8, columns, "bf16", swizzle), Memory(kind)
    attributes = f"tile_width = {columns}" + (f", tile_stride = {stride}" if stride else "")
    made = create("create_gather4_tma_tile", attributes, swizzle)
    program = compile_gather(target, kind, tile, tile.span, "bf16", made)
    start, stride = memory.base * 256, stride or columns
    parts = memory.flat[start : start + memory.num_rows * stride].reshape(-1, stride)
    rows = some_ids(memory, 8)
    # The last chunk has the following elements of the row, and zeros after the row.
    expected = gathered(parts, rows, 0, -(-columns // tile.span) * tile.span)
    assert (memory.load(program, tile, rows, 0) == stored(expected, swizzle)).all()


@targets
def test_gathered_rows_as_wider_elements(target):
    """Gathers 512 of 576 bytes of fp8 as 64-bit integers; more than 64 gathers are a loop."""
    kind = Kind("f8E4M3FN", 1, 576, 64, mla=True)
    tile, memory = Tile(264, 512, "f8E4M3FN"), Memory(kind)
    attributes = "tile_height = 264, tile_width = 64, tile_stride = 72, dtype = i64"
    made = create("create_gather4_tma_tile", attributes)
    program = compile_gather(target, kind, tile, 64, "i64", made, column=True)
    rows = some_ids(memory, 264)
    for column in (0, 8):
        expected = gathered(memory.rows(), rows, 8 * column, 512)
        assert (memory.load(program, tile, rows, column) == stored(expected, "none")).all()


@targets
def test_four_rows_at_a_time(target):
    """The last chunk is not full, and holds the row's next elements; ids come from `tma_row`."""
    kind = Kind(head_size=64, heads=2)
    tile, memory = Tile(8, 96, "bf16", "128b"), Memory(kind)
    program = compile_copy(
        *(target, kind, tile, descriptor_type((64, 1), "bf16", "128b")),
        create("create_gather4_tma_tile", "tile_width = 96, tile_stride = 128", "128b"),
        """%c4 = arith.constant 4 : index
      %r0 = kvcache.tma_row %k[%e0] : !cache
      %r1 = kvcache.tma_row %k[%e1] : !cache
      kvcache.tma_gather4 %desc[%c0, %r0, %r1, %r0, %r1], %barrier[%c0] to %tile at %c4 : !desc, !barrier -> !tile
      kvcache.tma_gather4 %desc[%c0, %r1, %r1, %r1, %r0], %barrier[%c0] to %tile at %c0
          {l2_hint = #kvcache.eviction<evict_last>} : !desc, !barrier -> !tile""",
        "%e0: index, %e1: index",
    )
    for e0, e1 in [(17, 3), (79, -1), (-1, -7)]:
        r0, r1 = (e if e < 0 else e // 16 * memory.distance + e % 16 for e in (e0, e1))
        expected = gathered(memory.rows(), [r1, r1, r1, r0, r0, r1, r0, r1], 0, 128)
        assert (memory.load(program, tile, e0, e1) == stored(expected, "128b")).all()


# Rope, scales, and a descriptor by hand

ROPE = Kind("f8E4M3FN", 1, 640, 64, mla=True)


@targets
@pytest.mark.parametrize("swizzle", ["none", "128b"])
def test_rope_after_rows(swizzle, target):
    memory = Memory(ROPE)
    rope = memory.rows()[:, 512:].view(BF16)
    tile = Tile(16, 8 if swizzle == "none" else 64, "bf16", swizzle)
    program = compile_copy(
        *(target, ROPE, tile, descriptor_type((tile.span, 1, 16), "bf16", swizzle)),
        create("create_rope_tma_tile", "rows = 16, columns = 64, padded_depth = 512", swizzle),
        *(COPY, INDICES),
    )
    for d, row in [(0, 0), (8, memory.num_rows - 3), (56, 77)]:
        expected = box(rope, row, d, 16, tile.columns)
        assert (memory.load(program, tile, d, 0, row) == stored(expected, swizzle)).all()
    tile = Tile(8, 64, "bf16", swizzle)
    attributes = "tile_height = 8, tile_width = 64, padded_depth = 512"
    made = create("create_rope_gather4_tma_tile", attributes, swizzle)
    program = compile_gather(target, ROPE, tile, 64, "bf16", made)
    rows = some_ids(memory, 8)
    expected = gathered(rope, rows, 0, 64)
    assert (memory.load(program, tile, rows, 0) == stored(expected, swizzle)).all()


@targets
@pytest.mark.parametrize("scale", ["f32", "bf16", "f8E8M0FNU"])
def test_scales_of_tokens(scale, target):
    kind = Kind("f8E4M3FN", 1, 128, 64, mla=True, scale=scale, granularity=128)
    tile, memory = Tile(1, 32, scale), Memory(kind)
    program = compile_copy(
        *(target, kind, tile, descriptor_type((32, 1), scale, "none")),
        """%s = kvcache.scales_view %k : !cache
  %desc = kvcache.create_scale_tma_tile %s {rows = 32} : !kvcache.scales<!cache> -> !desc""",
        """%row, %page = kvcache.scale_tma_coords %k[%b, %t] : !cache
      kvcache.tma_load %desc[%row, %page], %barrier[%c0] to %tile : !desc, !barrier -> !tile""",
        "%b: index, %t: index",
    )
    unit = 16 // tile.numpy.itemsize
    for b, t in [(0, 0), (1, 64 + 19), (0, 127)]:
        page = memory.scales[memory.lut[b, t // 64], 0, 1, :, 0, 0]
        expected = box(page.reshape(1, -1), 0, t % 64 // unit * unit, 1, 32)
        assert (memory.load(program, tile, b, t) == expected.view(np.uint8).reshape(-1)).all()


# Stores


@targets
@lays
@pytest.mark.parametrize("dtype", ["bf16", "f8E4M3FN", "f32"])
def test_stored_tiles(dtype, swizzle, target):
    """Elements outside of the tensor are dropped, and nothing else changes."""
    size = 128 // np.dtype(kvcache.dtypes.dtype(dtype)).itemsize
    kind = Kind(dtype, head_size=size)
    memory = Memory(kind)
    span = SWIZZLES[swizzle] // memory.flat.itemsize
    tile = Tile(16, span if swizzle == "none" else size, dtype, swizzle)
    program = compile_copy(
        *(target, kind, tile, descriptor_type((span, 1, 16), dtype, swizzle)),
        create("create_tma_tile", "rows = 16", swizzle),
        """
      %token = kvcache.tma_store %tile to %desc[%d, %h, %row] : !tile, !desc
      kvcache.wait %token""",
        INDICES,
        is_store=True,
    )
    rng = np.random.default_rng(2)
    unit = 16 // memory.flat.itemsize
    for d, h, row in [(0, 0, 0), (size - unit, 2, 17), (unit, 0, memory.num_rows - 5)]:
        values = rng.integers(0, 256, 16 * tile.columns * tile.numpy.itemsize, np.uint8)
        values = values.view(tile.numpy).reshape(16, -1)
        expected = memory.flat.copy()
        rows = expected.reshape(-1, 3 * size)[memory.base : memory.base + memory.num_rows]
        for i in range(max(0, -row), min(16, memory.num_rows - row)):
            for j in range(max(0, -d), min(tile.columns, size - d)):
                rows[row + i, h * size + d + j] = values[i, j]
        program.call("run", *memory.arguments(), values, d, h, row)
        assert (memory.flat.view(np.uint8) == expected.view(np.uint8)).all()
