"""Places of fragments: indices, tiles and rows in memory, against NumPy."""

import numpy as np
import pytest
from fragment_programs import DTYPES, TEAMS, Tile, cases, choose_element, draw, fragment, get_columns, get_team, make_scratch, run


@pytest.mark.parametrize("is_opaque", [False, True])
@pytest.mark.parametrize("layout, target", cases())
def test_indices_are_those_of_the_layout(layout, target, is_opaque):
    rows, threads, _ = get_team(layout)
    element = choose_element(layout, "i16", "i8", "i32")
    columns = get_columns(layout, 96)
    type = fragment(layout, rows, columns, element=element)
    index = "arith.index_cast %{} : index to " + element
    thread = "thread %opaque" if is_opaque else ""

    def map_to(name, argument):
        return f"""
      %f_{name} = kvcache.map %splat at(%r0, %k0) {thread} : {type} -> {type} {{
      ^bb0(%e: {element}, %row: index, %column: index):
        %y = {index.format(argument)}
        kvcache.yield %y : {element}
      }}
      kvcache.fragment_store %f_{name}, %{name}[%c0, %c0] {thread} : {type}, !kvcache.tile<{rows}x{columns}x{element}>"""

    body = f"""
      {"%opaque = kvcache.opaque_thread : index" if is_opaque else ""}
      %zero = arith.constant 0 : {element}
      %splat = kvcache.splat %zero : {type}
      {map_to("rows", "row")}{map_to("columns", "column")}"""
    results = dict.fromkeys(("rows", "columns"), ((rows, columns), element))
    found = run(target, threads, {}, results, body, [("r0", "index", 5), ("k0", "index", -7)])
    expected = np.indices((rows, columns))
    np.testing.assert_array_equal(found[0], expected[0] + 5)
    np.testing.assert_array_equal(found[1], expected[1] - 7)


@pytest.mark.parametrize("swizzle", ["none", "swizzle_128b"])
@pytest.mark.parametrize("layout, target", cases())
def test_parts_of_tiles_are_loaded_and_stored(layout, target, swizzle):
    rows, threads, _ = get_team(layout)
    element = choose_element(layout, "bf16", "f8E4M3FN", "f32")
    columns = 64
    array = draw((rows + 8, 2 * columns), DTYPES[element])
    unit = 16 // array.dtype.itemsize
    tile = Tile.of("a", array, swizzle)
    type = fragment(layout, rows, columns, element=element)
    out_type = f"!kvcache.tile<{rows + 8}x{columns}x{element}>"
    body = f"""
      %c8 = arith.constant 8 : index
      %first = arith.constant {unit} : index
      %f = kvcache.fragment_load %a[%c8, %first] : {tile.type} -> {type}
      kvcache.fragment_store %f, %out[%c0, %c0] : {type}, {out_type}
      gpu.barrier
      kvcache.fragment_store %f, %out[%c8, %c0] : {type}, {out_type}"""
    results = {"out": ((rows + 8, columns), element)}
    (out,) = run(target, threads, {"a": array}, results, body, swizzle=swizzle)
    stored = array[8:, unit : unit + columns]
    expected = np.concatenate([stored[:8], stored])
    np.testing.assert_array_equal(out.view(np.uint8), expected.view(np.uint8))


@pytest.mark.parametrize("layout, target", cases())
def test_transposed_parts_are_stored(layout, target):
    rows, threads, _ = get_team(layout)
    element = choose_element(layout, "bf16", "f8E4M3FN", "f32")
    array = draw((rows, 64), DTYPES[element])
    unit = 16 // array.dtype.itemsize
    type, shape = fragment(layout, rows, 64, element=element), (72, rows + unit)
    out_type = Tile("out", shape, element).type
    body = f"""
      %c8 = arith.constant 8 : index
      %first = arith.constant {unit} : index
      %f = kvcache.fragment_load %a[%c0, %c0] : {Tile.of("a", array, "none").type} -> {type}
      kvcache.fragment_store %f, %out[%c0, %first] transposed : {type}, {out_type}
      gpu.barrier
      kvcache.fragment_store %f, %out[%c0, %c0] transposed : {type}, {out_type}
      gpu.barrier
      kvcache.fragment_store %f, %out[%c8, %c0] transposed : {type}, {out_type}
      gpu.barrier
      kvcache.fragment_store %f, %out[%c8, %first] transposed : {type}, {out_type}"""
    (out,) = run(target, threads, {"a": array}, {"out": (shape, element)}, body)
    expected = np.zeros(shape, array.dtype)
    for row, column in ((0, unit), (0, 0), (8, 0), (8, unit)):
        expected[row : row + 64, column : column + rows] = array.T
    np.testing.assert_array_equal(out.view(np.uint8), expected.view(np.uint8))


@pytest.mark.parametrize("layout", ["mma_acc", "wgmma_acc", "tmem_acc", "tmem_row", "wgmma_acc_t", "mma_acc_pairs", "mma_acc_quads"])
def test_a_row_of_a_tile_is_loaded_for_all_rows(layout):
    rows, threads, targets = get_team(layout)
    columns = get_columns(layout, 48)
    array = draw((3, columns + 16), np.float32)
    type, tile = fragment(layout, rows, columns, element="f32"), Tile.of("a", array, "none").type
    body = f"""
      %row = arith.constant 1 : index
      %column = arith.constant 12 : index
      %f = kvcache.fragment_load %a[%row, %column] {{repeated}} : {tile} -> {type}
      kvcache.fragment_store %f, %out[%c0, %c0] : {type}, !kvcache.tile<{rows}x{columns}xf32>"""
    for target in targets:
        (out,) = run(target, threads, {"a": array}, {"out": ((rows, columns), "f32")}, body)
        np.testing.assert_array_equal(out, np.tile(array[1, 12 : columns + 12], (rows, 1)))


ORDERS = {
    "mma_a16_pairs": np.array([0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15]),
    "mma_a16_quads": np.array([8 * lane + 4 * odd + 2 * step + half
        for step in (0, 1) for half in (0, 1) for lane in range(4) for odd in (0, 1)]),
}


@pytest.mark.parametrize("swizzle", ["none", "swizzle_128b"])
@pytest.mark.parametrize("layout", ORDERS)
def test_paired_columns_are_loaded_in_order(layout, swizzle):
    rows, threads, targets = TEAMS["mma"]
    order = ORDERS[layout]
    first, size = len(order), 96
    columns = size - first
    array = draw((rows, size), np.float16)
    paired = np.zeros((rows, 128), np.float16)
    paired[:, :size] = array[:, (np.arange(0, size, len(order))[:, None] + order).ravel()]
    type, tile = fragment(layout, rows, columns, element="f16"), Tile.of("a", paired, swizzle).type
    body = f"""
      %first = arith.constant {first} : index
      %f = kvcache.fragment_load %a[%c0, %first] {{paired}} : {tile} -> {type}
      kvcache.fragment_store %f, %out[%c0, %c0] : {type}, !kvcache.tile<{rows}x{columns}xf16>"""
    for target in targets:
        (out,) = run(target, threads, {"a": paired}, {"out": ((rows, columns), "f16")}, body, swizzle=swizzle)
        np.testing.assert_array_equal(out, array[:, first:])


@pytest.mark.parametrize("element", ["f32", "bf16", "f8E4M3FN"])
@pytest.mark.parametrize("layout", ["mma_acc", "wgmma_acc", "tmem_acc", "tmem_row", "wgmma_acc_t", "mma_acc_pairs", "mma_acc_quads"])
def test_rows_are_stored_where_the_region_says(layout, element):
    """Row r below the end is stored as row r / 4 of head r % 4. One lane stores the number of a row."""
    rows, threads, targets = get_team(layout)
    columns, first, count, column = get_columns(layout, 32), 8, rows - 10, 16
    array = draw((rows, columns), np.float32)
    type, row_type = (fragment(layout, *shape, element="f32") for shape in ((rows, columns), (rows,)))
    tokens, width = (first + rows) // 4, columns + column + 8
    out_type, sums_type = f"memref<{tokens}x4x{width}x{element}>", f"memref<{tokens}x4xf32>"
    place = """
      ^bb0(%row: index):
        %c4 = arith.constant 4 : index
        %token = arith.divui %row, %c4 : index
        %head = arith.remui %row, %c4 : index
        %is_stored = arith.cmpi ult, %row, %end : index
        kvcache.yield %token, %head, %is_stored : index, index, i1
      }"""
    scratch, across, tile = make_scratch(layout, "f32")
    body = f"""
      {scratch}
      %end = arith.constant {first + count} : index
      %first = arith.constant {first} : index
      %column = arith.constant {column} : index
      %f = kvcache.fragment_load %a[%c0, %c0] : {Tile.of("a", array, "none").type} -> {type}
      %sums = kvcache.reduce addf %f {across} : {type}{tile} -> {row_type}
      kvcache.store_rows %f at(%first, %column) to %out : {type}, {out_type} {{{place}
      kvcache.store_rows %sums at(%first) to %logs : {row_type}, {sums_type} {{{place}"""
    expected = np.zeros((tokens * 4, width), DTYPES[element])
    expected[first : first + count, column : column + columns] = array[:count].astype(DTYPES[element])
    memrefs = [("out", out_type), ("logs", sums_type)]
    for target in targets:
        out = np.zeros((tokens, 4, width), DTYPES[element])
        logs = np.zeros((tokens, 4), np.float32)
        run(target, threads, {"a": array}, {}, body, [(*memref, given) for memref, given in zip(memrefs, (out, logs))])
        np.testing.assert_array_equal(out.reshape(expected.shape).view(np.uint8), expected.view(np.uint8))
        stored = logs.reshape(-1)[first : first + count]
        np.testing.assert_allclose(stored, array[:count].sum(axis=1), rtol=1e-5, atol=1e-5)
        assert np.count_nonzero(logs) == count


@pytest.mark.parametrize("column", [0, 16])
@pytest.mark.parametrize("layout", ["mma_acc", "wgmma_acc", "wgmma_acc_t", "mma_acc_pairs", "mma_acc_quads"])
def test_split_is_stored_with_the_state_of_its_rows(layout, column):
    """A team whose columns begin at 0 also stores the two numbers of each row."""
    rows, threads, targets = get_team(layout)
    columns, first, count = get_columns(layout, 32), 8, rows - 6
    array = draw((rows, columns), np.float32)
    type, row_type = (fragment(layout, *shape, element="f32") for shape in ((rows, columns), (rows,)))
    tokens, width = (first + rows) // 4, columns + column
    accs_type, states_type = f"memref<{tokens}x4x{width}xf32>", f"memref<{tokens}x4x2xf32>"
    scratch, across, tile = make_scratch(layout, "f32")
    body = f"""
      {scratch}
      %c4 = arith.constant 4 : index
      %end = arith.constant {first + count} : index
      %first = arith.constant {first} : index
      %column = arith.constant {column} : index
      %f = kvcache.fragment_load %a[%c0, %c0] : {Tile.of("a", array, "none").type} -> {type}
      %max = kvcache.reduce maximumf %f {across} : {type}{tile} -> {row_type}
      gpu.barrier
      %sum = kvcache.reduce addf %f {across} : {type}{tile} -> {row_type}
      kvcache.store_split %f, %max, %sum at(%first, %column) to %accs, %states {{alignment = {4 if scratch else 8}}}
          : {type}, {row_type}, {accs_type}, {states_type} {{
      ^bb0(%row: index):
        %token = arith.divui %row, %c4 : index
        %head = arith.remui %row, %c4 : index
        %is_stored = arith.cmpi ult, %row, %end : index
        kvcache.yield %token, %head, %is_stored : index, index, i1
      }}"""
    expected = np.full((tokens * 4, width), 7, np.float32)
    expected[first : first + count, column:] = array[:count]
    for target in targets:
        accs, states = (np.full((tokens, 4, size), 7, np.float32) for size in (width, 2))
        run(target, threads, {"a": array}, {}, body, [("accs", accs_type, accs), ("states", states_type, states)])
        np.testing.assert_array_equal(accs.reshape(expected.shape), expected)
        stored = states.reshape(-1, 2)
        is_stored = np.zeros(len(stored), bool)
        is_stored[first : first + count] = column == 0
        assert (stored[~is_stored] == 7).all()
        if column == 0:
            np.testing.assert_array_equal(stored[is_stored, 0], array[:count].max(axis=1))
            np.testing.assert_allclose(stored[is_stored, 1], array[:count].sum(axis=1), rtol=1e-5, atol=1e-5)
