"""Matrices in registers: `map`, `reduce`, tiles and products, against NumPy.

A kernel of one team copies its arguments to tiles, computes fragments, and stores these to tiles, of
which its results are copies.
"""

import re
import subprocess

import ml_dtypes
import numpy as np
import pytest
from edits import edit
from places import OPT

import kvcache

DTYPES = {
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "i32": np.int32,
    "i16": np.int16,
    "i8": np.int8,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
}
TEAMS = {"mma": (16, 32, ("emulator:sm_80", "emulator:sm_120")), "wgmma": (64, 128, ("emulator:sm_90a",))}
# Fragments of tensor memory have 128 rows, or 64.
TMEM_TEAMS = {"tmem_acc": (128, 256, ("emulator:sm_100a",)), "tmem_acc64": (64, 128, ("emulator:sm_103a",))}
# The rows of transposed fragments are the columns of wgmma: 8 to 256.
OTHER_TEAMS = {**TMEM_TEAMS, "wgmma_acc_t": (24, 128, ("emulator:sm_90a",))}
PAIRS = ["mma_a16_pairs", "mma_acc_pairs"]
LAYOUTS = ["mma_acc", "mma_a16", "wgmma_acc", "wgmma_a16", "wgmma_a8", *PAIRS, *OTHER_TEAMS]
SWIZZLES = {32: "swizzle_32b", 64: "swizzle_64b", 128: "swizzle_128b"}


def get_team(layout):
    return OTHER_TEAMS.get(layout) or TEAMS[layout.partition("_")[0]]


def get_columns(layout, least):
    """At least so many columns that the layout may have."""
    unit = 64 if layout == "wgmma_acc_t" else 8
    return -(-least // unit) * unit


def make_scratch(layout, element):
    """The tile by which warps that share rows reduce: its allocation, and its mention and type in `reduce`."""
    if layout != "wgmma_acc_t":
        return "", "", ""
    type = f"!kvcache.tile<4x{get_team(layout)[0]}x{element}>"
    return f"%scratch = kvcache.alloc_tile : {type}", "across %scratch", f", {type}"


def choose_element(layout, a16, a8, acc):
    """An element type for each kind of layout: operands of 16 and of 8 bits, and accumulators."""
    return a16 if "a16" in layout else a8 if "a8" in layout else acc


def get_element(dtype):
    return next(name for name, known in DTYPES.items() if np.dtype(known) == dtype)


class Tile:
    """A tile of a matrix, and its memref."""

    def __init__(self, name, shape, element, swizzle="none"):
        self.name, self.shape, self.element = name, shape, element
        sides = "x".join(map(str, shape))
        self.memref = f"memref<{sides}x{element}>"
        self.type = f"!kvcache.tile<{sides}x{element}{'' if swizzle == 'none' else f', {swizzle}'}>"

    @classmethod
    def of(cls, name, array, swizzle):
        return cls(name, array.shape, get_element(array.dtype), swizzle)

    def copy(self, to_tile, threads):
        """The text that copies the memref to the tile, or back."""
        name, columns = self.name, self.shape[1]
        if to_tile:
            move = f"""%copied = memref.load %{name}_memory[%copy_row, %copy_column] : {self.memref}
        kvcache.tile_store %copied, %{name}[%copy_row, %copy_column] : {self.element}, {self.type}"""
        else:
            move = f"""%copied = kvcache.tile_load %{name}[%copy_row, %copy_column] : {self.type} -> {self.element}
        memref.store %copied, %{name}_memory[%copy_row, %copy_column] : {self.memref}"""
        return f"""
      %{name}_size = arith.constant {np.prod(self.shape)} : index
      %{name}_columns = arith.constant {columns} : index
      scf.for %copy = %thread to %{name}_size step %threads {{
        %copy_row = arith.divui %copy, %{name}_columns : index
        %copy_column = arith.remui %copy, %{name}_columns : index
        {move}
      }}"""


def run(target, threads, inputs, results, body, arguments=(), swizzle="none", aliases=""):
    """Runs a body that stores fragments to the tiles of results."""
    tiles = [Tile.of(name, array, swizzle) for name, array in inputs.items()]
    outs = [Tile(name, shape, element) for name, (shape, element) in results.items()]
    memrefs = ", ".join(f"%{tile.name}_memory: {tile.memref}" for tile in [*tiles, *outs])
    others = "".join(f", %{name}: {type}" for name, type, _ in arguments)
    passed = ", ".join(
        [f"%{tile.name}_memory : {tile.memref}" for tile in [*tiles, *outs]]
        + [f"%{name} : {type}" for name, type, _ in arguments]
    )
    text = f"""{aliases}
module attributes {{gpu.container_module}} {{
  gpu.module @kernels {{
    gpu.func @kernel({memrefs}{others}) kernel {{
      %thread = gpu.thread_id x
      %threads = arith.constant {threads} : index
      %c0 = arith.constant 0 : index
      {"".join(f'''
      %{tile.name} = kvcache.alloc_tile : {tile.type}''' for tile in [*tiles, *outs])}
      {"".join(tile.copy(True, threads) for tile in tiles)}
      nvvm.fence.proxy {{kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}}
      gpu.barrier
      {body}
      gpu.barrier
      {"".join(tile.copy(False, threads) for tile in outs)}
      gpu.return
    }}
  }}
  func.func @main({memrefs}{others}) {{
    %c1 = arith.constant 1 : index
    %threads = arith.constant {threads} : index
    gpu.launch_func @kernels::@kernel blocks in (%c1, %c1, %c1) threads in (%threads, %c1, %c1) args({passed})
    return
  }}
}}
"""
    if "wgmma" not in text:
        text = "\n".join(line for line in text.splitlines() if "fence.proxy" not in line)
    arrays = [np.zeros(tile.shape, DTYPES[tile.element]) for tile in outs]
    program = kvcache.jit(text, target=target, opt_level=0)
    program.call("main", *inputs.values(), *arrays, *(value for _, _, value in arguments))
    return arrays


def fragment(layout, *shape, element, partial=False):
    sides = "x".join(map(str, shape))
    name = "tmem_acc" if layout in TMEM_TEAMS else layout
    return f"!kvcache.fragment<{sides}x{element}, {name}{', partial' if partial else ''}>"


def cases():
    for layout in LAYOUTS:
        for target in get_team(layout)[2]:
            yield layout, target


def draw(shape, dtype, seed=0):
    numbers = np.random.default_rng(seed).normal(size=shape)
    if np.dtype(dtype).kind in "iu":
        numbers *= 10
    return numbers.astype(dtype)


#
# Places
#


@pytest.mark.parametrize("is_opaque", [False, True])
@pytest.mark.parametrize("layout, target", cases())
def test_indices_are_those_of_the_layout(layout, target, is_opaque):
    rows, threads, _ = get_team(layout)
    element = choose_element(layout, "i16", "i8", "i32")
    columns = get_columns(layout, 96)
    type = fragment(layout, rows, columns, element=element)
    index = "arith.index_cast %{} : index to " + element

    def map_to(name, argument):
        return f"""
      %f_{name} = kvcache.map %splat at(%r0, %k0) : {type} -> {type} {{
      ^bb0(%e: {element}, %row: index, %column: index):
        %y = {index.format(argument)}
        kvcache.yield %y : {element}
      }}
      kvcache.fragment_store %f_{name}, %{name}[%c0, %c0] : {type}, !kvcache.tile<{rows}x{columns}x{element}>"""

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


@pytest.mark.parametrize("layout", ["mma_acc", "wgmma_acc", "tmem_acc", "wgmma_acc_t", "mma_acc_pairs"])
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


@pytest.mark.parametrize("swizzle", ["none", "swizzle_128b"])
def test_paired_columns_are_loaded_in_order(swizzle):
    rows, threads, targets = TEAMS["mma"]
    order = np.array([0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15])
    array = draw((rows, 64), np.float16)
    paired = np.ascontiguousarray(array[:, (np.arange(0, 64, 16)[:, None] + order).ravel()])
    type, tile = fragment("mma_a16_pairs", rows, 48, element="f16"), Tile.of("a", paired, swizzle).type
    body = f"""
      %c16 = arith.constant 16 : index
      %f = kvcache.fragment_load %a[%c0, %c16] {{paired}} : {tile} -> {type}
      kvcache.fragment_store %f, %out[%c0, %c0] : {type}, !kvcache.tile<{rows}x48xf16>"""
    for target in targets:
        (out,) = run(target, threads, {"a": paired}, {"out": ((rows, 48), "f16")}, body, swizzle=swizzle)
        np.testing.assert_array_equal(out, array[:, 16:])


@pytest.mark.parametrize("element", ["f32", "bf16", "f8E4M3FN"])
@pytest.mark.parametrize("layout", ["mma_acc", "wgmma_acc", "tmem_acc", "wgmma_acc_t", "mma_acc_pairs"])
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
@pytest.mark.parametrize("layout", ["mma_acc", "wgmma_acc", "wgmma_acc_t", "mma_acc_pairs"])
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


#
# Elements
#


@pytest.mark.parametrize("layout", ["mma_acc", "wgmma_acc", "wgmma_acc_t"])
def test_map_takes_rows_columns_and_memory(layout):
    rows, threads, targets = get_team(layout)
    columns = get_columns(layout, 32)
    scratch, across, tile = make_scratch(layout, "f32")
    type, row_type = fragment(layout, rows, columns, element="f32"), fragment(layout, rows, element="f32")
    array, biases = draw((rows, columns), np.float32), draw((columns,), np.float32, 1)
    body = f"""
      {scratch}
      %f = kvcache.fragment_load %a[%c0, %c0] : !kvcache.tile<{rows}x{columns}xf32> -> {type}
      %max = kvcache.reduce maximumf %f {across} : {type}{tile} -> {row_type}
      %y = kvcache.map %f, %max at(%c0, %c0) : {type}, {row_type} -> {type} {{
      ^bb0(%e: f32, %most: f32, %row: index, %column: index):
        %less = arith.subf %e, %most : f32
        %bias = memref.load %biases[%column] : memref<{columns}xf32>
        %sees = arith.cmpi ule, %column, %row : index
        %seen = scf.if %sees -> f32 {{
          %sum = arith.addf %less, %bias : f32
          scf.yield %sum : f32
        }} else {{
          scf.yield %scale : f32
        }}
        kvcache.yield %seen : f32
      }}
      %z = kvcache.map arith.mulf(%y, %max) : {type}, {row_type} -> {type}
      kvcache.fragment_store %z, %out[%c0, %c0] : {type}, !kvcache.tile<{rows}x{columns}xf32>"""
    arguments = [("biases", f"memref<{columns}xf32>", biases), ("scale", "f32", 3.5)]
    (out,) = run(targets[0], threads, {"a": array}, {"out": ((rows, columns), "f32")}, body, arguments)
    most = array.max(1, keepdims=True)
    row, column = np.indices(array.shape)
    expected = np.where(column <= row, array - most + biases, np.float32(3.5)) * most
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("layout", ["mma_acc", "wgmma_acc", "tmem_acc", "wgmma_acc_t"])
@pytest.mark.parametrize("kind", ["addf", "maxnumf", "minnumf", "maximumf", "minimumf", "addi", "maxsi", "minsi"])
def test_reduce_combines_rows(layout, kind):
    rows, threads, targets = get_team(layout)
    element, columns = ("i32" if kind.endswith("i") else "f32"), get_columns(layout, 40)
    array = draw((rows, columns), DTYPES[element])
    type, row_type, partial = (
        fragment(layout, rows, columns, element=element),
        fragment(layout, rows, element=element),
        fragment(layout, rows, element=element, partial=True),
    )
    # The second half is combined into shares of the first, and both at the end.
    one = "0" if element == "i32" else "0.0"
    sums = kind in ("addf", "addi")
    neutral = f"arith.constant {one} : {element}" if sums else f"arith.addf %low, %low : {element}"
    if element == "i32" and not sums:
        neutral = f"arith.addi %low, %low : {element}"
    scratch, across, tile = make_scratch(layout, element)
    body = f"""
      {scratch}
      %f = kvcache.fragment_load %a[%c0, %c0] : !kvcache.tile<{rows}x{columns}x{element}> -> {type}
      %first = {neutral}
      %start = kvcache.splat %first : {partial}
      %shares = kvcache.reduce {kind} %f from %start : {type} -> {partial}
      %both = kvcache.reduce {kind} %f from %shares : {type} -> {partial}
      %all = kvcache.reduce {kind} %both {across} : {partial}{tile} -> {row_type}
      gpu.barrier
      %again = kvcache.reduce {kind} %f {"" if sums else "from %all"} {across} : {type}{tile} -> {row_type}
      %zero = arith.constant {one} : {element}
      %zeros = kvcache.splat %zero : {type}
      %y = kvcache.map %zeros, %all, %again at(%c0, %c0) : {type}, {row_type}, {row_type} -> {type} {{
      ^bb0(%e: {element}, %l: {element}, %g: {element}, %row: index, %column: index):
        %is = arith.cmpi eq, %column, %c0 : index
        %s = arith.select %is, %l, %g : {element}
        kvcache.yield %s : {element}
      }}
      kvcache.fragment_store %y, %out[%c0, %c0] : {type}, !kvcache.tile<{rows}x{columns}x{element}>"""
    low = {"max": -1000, "min": 1000}.get(kind[:3], 0)
    arguments = [("low", element, low)]
    (out,) = run(targets[0], threads, {"a": array}, {"out": ((rows, columns), element)}, body, arguments)
    combine = {"add": np.sum, "max": np.max, "min": np.min}[kind[:3]]
    expected = combine(array.astype(float), axis=1)
    twice = 2 * expected if sums else expected
    np.testing.assert_allclose(out[:, 0], twice, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(out[:, 1], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("layout", ["mma_acc", "wgmma_acc", *TMEM_TEAMS])
def test_warp_any_is_true_in_warps_of_a_true_row(layout):
    """Each warp has 16 neighbouring rows."""
    rows, threads, targets = get_team(layout)
    type, flags = fragment(layout, rows, 8, element="f32"), fragment(layout, rows, element="i1")
    array = np.full((rows, 8), -1, np.float32)
    array[rows // 2 + 3, 5] = 1
    body = f"""
      %f = kvcache.fragment_load %a[%c0, %c0] : !kvcache.tile<{rows}x8xf32> -> {type}
      %max = kvcache.reduce maximumf %f : {type} -> {fragment(layout, rows, element="f32")}
      %zero = arith.constant 0.0 : f32
      %flags = kvcache.map %max : {fragment(layout, rows, element="f32")} -> {flags} {{
      ^bb0(%most: f32):
        %is = arith.cmpf ogt, %most, %zero : f32
        kvcache.yield %is : i1
      }}
      %any = kvcache.warp_any %flags : {flags}
      %y = kvcache.map %f : {type} -> {type} {{
      ^bb0(%e: f32):
        %x = arith.uitofp %any : i1 to f32
        kvcache.yield %x : f32
      }}
      kvcache.fragment_store %y, %out[%c0, %c0] : {type}, !kvcache.tile<{rows}x8xf32>"""
    expected = np.repeat((array > 0).reshape(-1, 16 * 8).any(axis=1), 16)[:, None] * np.ones(8)
    for target in targets:
        (out,) = run(target, threads, {"a": array}, {"out": ((rows, 8), "f32")}, body)
        np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("element", ["f32", "bf16", "f16"])
@pytest.mark.parametrize("layout", TMEM_TEAMS)
def test_fragments_pass_through_tensor_memory(layout, element):
    """The halves of the columns change their places."""
    rows, threads, targets = get_team(layout)
    array = draw((rows, 64), DTYPES[element])
    half, whole = fragment(layout, rows, 32, element=element), fragment(layout, rows, 64, element=element)
    tile, memory = f"!kvcache.tile<{rows}x64x{element}>", f"!kvcache.tmem_tile<{rows}x128x{element}>"
    body = f"""
      %c32 = arith.constant 32 : index
      %c40 = arith.constant 40 : index
      %m = kvcache.tmem_alloc : {memory}
      %f = kvcache.fragment_load %a[%c0, %c0] : {tile} -> {half}
      %g = kvcache.fragment_load %a[%c0, %c32] : {tile} -> {half}
      %c72 = arith.constant 72 : index
      kvcache.tmem_store %f, %m[%c72] : {half}, {memory}
      kvcache.tmem_store %g, %m[%c40] : {half}, {memory}
      %y = kvcache.tmem_load %m[%c40] : {memory} -> {whole}
      kvcache.fragment_store %y, %out[%c0, %c0] : {whole}, {tile}"""
    for target in targets:
        (out,) = run(target, threads, {"a": array}, {"out": ((rows, 64), element)}, body)
        expected = np.concatenate([array[:, 32:], array[:, :32]], axis=1)
        np.testing.assert_array_equal(out.view(np.uint8), expected.view(np.uint8))


#
# Products
#


@pytest.mark.parametrize("element", ["bf16", "f16"])
@pytest.mark.parametrize("n, k, major", [(16, 16, "k"), (64, 128, "k"), (128, 64, "mn"), (64, 48, "mn")])
@pytest.mark.parametrize("team", TEAMS)
def test_products_of_fragments(team, n, k, major, element):
    rows, threads, targets = TEAMS[team]
    a, b = draw((rows, k), DTYPES[element]), draw((n, k) if major == "k" else (k, n), DTYPES[element], 1)
    given = draw((rows, n), np.float32, 2)
    columns = b.shape[1] * 2
    swizzle = SWIZZLES[min(128, columns & -columns)]
    wide = 2 * k
    swizzle_a = SWIZZLES[min(128, wide & -wide)]
    if swizzle_a != swizzle:  # Both tiles of a program have one swizzle.
        swizzle = min(swizzle, swizzle_a, key=lambda name: int(name[8:-1]))
    left, sums = fragment(f"{team}_a16", rows, k, element=element), fragment(f"{team}_acc", rows, n, element="f32")
    product = sums.replace("fragment", "in_flight")
    tiles = [Tile.of(name, array, swizzle) for name, array in (("a", a), ("b", b), ("c", given))]
    options = "{major_b = #kvcache.major<mn_major>}" if major == "mn" else ""
    body = f"""
      %left = kvcache.fragment_load %a[%c0, %c0] : {tiles[0].type} -> {left}
      %given = kvcache.fragment_load %c[%c0, %c0] : {tiles[2].type} -> {sums}
      %first = kvcache.fragment_mma %left, %b[%c0, %c0] {options} : {left}, {tiles[1].type} -> {product}
      %second = kvcache.fragment_mma %left, %b[%c0, %c0] add %first {options}
        : {left}, {tiles[1].type}, {product} -> {product}
      %twice = kvcache.fragment_wait %second : {product}
      %third = kvcache.fragment_mma %left, %b[%c0, %c0] add %given {options}
        : {left}, {tiles[1].type}, {sums} -> {product}
      %added = kvcache.fragment_wait %third : {product}
      kvcache.fragment_store %twice, %out0[%c0, %c0] : {sums}, !kvcache.tile<{rows}x{n}xf32>
      kvcache.fragment_store %added, %out1[%c0, %c0] : {sums}, !kvcache.tile<{rows}x{n}xf32>"""
    results = {f"out{i}": ((rows, n), "f32") for i in range(2)}
    for target in targets:
        twice, added = run(target, threads, {"a": a, "b": b, "c": given}, results, body, swizzle=swizzle)
        right = b.astype(float).T if major == "k" else b.astype(float)
        expected = a.astype(float) @ right
        np.testing.assert_allclose(twice, 2 * expected, rtol=1e-4, atol=1e-3)
        np.testing.assert_allclose(added, expected + given, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("element", ["bf16", "f16"])
@pytest.mark.parametrize("major_a, major_b", [("k", "k"), ("mn", "mn"), ("mn", "k"), ("k", "mn")])
@pytest.mark.parametrize("rows, n, k", [(16, 64, 64), (32, 192, 128)])
def test_transposed_products(rows, n, k, major_a, major_b, element):
    """wgmma has A as its right operand, and each 64 rows of B as its left one."""
    a = draw((rows, k) if major_a == "k" else (k, rows), DTYPES[element])
    b = draw((n, k) if major_b == "k" else (k, n), DTYPES[element], 1)
    given = draw((rows, n), np.float32, 2)
    sums = fragment("wgmma_acc_t", rows, n, element="f32")
    product = sums.replace("fragment", "in_flight")
    bytes = 2 * min(a.shape[1], b.shape[1])
    swizzle = SWIZZLES[min(128, bytes & -bytes)]
    tiles = [Tile.of(name, array, swizzle) for name, array in (("a", a), ("b", b), ("c", given))]
    options = f"{{k = {k}, major_a = #kvcache.major<{major_a}_major>, major_b = #kvcache.major<{major_b}_major>}}"
    body = f"""
      %given = kvcache.fragment_load %c[%c0, %c0] : {tiles[2].type} -> {sums}
      %first = kvcache.fragment_mma %a[%c0, %c0], %b[%c0, %c0] {options} : {tiles[0].type}, {tiles[1].type} -> {product}
      %second = kvcache.fragment_mma %a[%c0, %c0], %b[%c0, %c0] add %first {options}
        : {tiles[0].type}, {tiles[1].type}, {product} -> {product}
      %third = kvcache.fragment_mma %a[%c0, %c0], %b[%c0, %c0] add %given {options}
        : {tiles[0].type}, {tiles[1].type}, {sums} -> {product}
      %twice = kvcache.fragment_wait %second pending {n // 64} : {product}
      %added = kvcache.fragment_wait %third : {product}
      kvcache.fragment_store %twice, %out0[%c0, %c0] : {sums}, !kvcache.tile<{rows}x{n}xf32>
      kvcache.fragment_store %added, %out1[%c0, %c0] : {sums}, !kvcache.tile<{rows}x{n}xf32>"""
    results = {f"out{i}": ((rows, n), "f32") for i in range(2)}
    inputs = {"a": a, "b": b, "c": given}
    twice, added = run("emulator:sm_90a", 128, inputs, results, body, swizzle=swizzle)
    expected = (a if major_a == "k" else a.T).astype(float) @ (b.T if major_b == "k" else b).astype(float)
    np.testing.assert_allclose(twice, 2 * expected, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(added, expected + given, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("element", ["f8E4M3FN", "f8E5M2", "i8"])
@pytest.mark.parametrize("n, k, major", [(32, 48, "k"), (16, 128, "k"), (48, 32, "mn"), (128, 16, "mn")])
def test_products_of_stored_bytes(n, k, major, element):
    """All bytes but those that are no numbers, which become f16. The tile has other rows and columns before and after."""
    rows, threads, targets = TEAMS["mma"]
    shape = (n + 8, k + 16) if major == "k" else (k + 8, n + 16)
    b = np.random.default_rng(1).permuted(np.resize(np.arange(256, dtype=np.uint8), shape)).view(DTYPES[element])
    b[~np.isfinite(b.astype(np.float32))] = 0
    a, given, factors = (draw(size, dtype, 2) for size, dtype in (((rows, k), np.float16), ((rows, n), np.float32), ((rows, 8), np.float32)))
    is_k = major == "k"
    left = fragment("mma_a16_pairs" if is_k else "mma_a16", rows, k, element="f16")
    sums = fragment("mma_acc" if is_k else "mma_acc_pairs", rows, n, element="f32")
    row, columns = fragment("mma_acc", rows, element="f32"), fragment("mma_acc", rows, 8, element="f32")
    product = sums.replace("fragment", "in_flight")
    tiles = [Tile.of(name, array, "none") for name, array in (("a", a), ("b", b), ("c", given), ("d", factors))]
    options = "" if is_k else "{major_b = #kvcache.major<mn_major>}"
    body = f"""
      %c8 = arith.constant 8 : index
      %c16 = arith.constant 16 : index
      %left = kvcache.fragment_load %a[%c0, %c0] : {tiles[0].type} -> {left}
      %given = kvcache.fragment_load %c[%c0, %c0] : {tiles[2].type} -> {sums}
      %d_all = kvcache.fragment_load %d[%c0, %c0] : {tiles[3].type} -> {columns}
      %factors = kvcache.reduce addf %d_all : {columns} -> {row}
      %scaled = kvcache.map arith.mulf(%given, %factors) : {sums}, {row} -> {sums}
      %first = kvcache.fragment_mma %left, %b[%c0, %c0] add %scaled {options}
        : {left}, {tiles[1].type}, {sums} -> {product}
      %second = kvcache.fragment_mma %left, %b[%c8, %c16] add %first {options}
        : {left}, {tiles[1].type}, {product} -> {product}
      %added = kvcache.fragment_wait %second : {product}
      kvcache.fragment_store %added, %out[%c0, %c0] : {sums}, !kvcache.tile<{rows}x{n}xf32>"""
    both = b.astype(float)[:-8, :-16] + b.astype(float)[8:, 16:]
    expected = given * factors.sum(1, keepdims=True) + a.astype(float) @ (both.T if is_k else both)
    for target in ("emulator:sm_80", "emulator:sm_89", "emulator:sm_120"):
        inputs = {"a": a, "b": b, "c": given, "d": factors}
        (out,) = run(target, threads, inputs, {"out": ((rows, n), "f32")}, body)
        np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5 * np.abs(both).max() * k)


@pytest.mark.parametrize("keys", [1, 3])
@pytest.mark.parametrize("team", TEAMS)
def test_online_softmax_in_a_loop(team, keys):
    """Causal attention of a team's rows to some tiles of keys, the last of which has half of the rows."""
    rows, threads, targets = TEAMS[team]
    width, size = 64, 32
    q = draw((rows, width), ml_dtypes.bfloat16)
    k, v = (draw((keys * size, width), ml_dtypes.bfloat16, seed) for seed in (1, 2))
    position = keys * size - rows // 2
    acc, left = f"{team}_acc", f"{team}_a16"
    types = f"""
!q = !kvcache.fragment<{rows}x{width}xbf16, {left}>
!s = !kvcache.fragment<{rows}x{size}xf32, {acc}>
!o = !kvcache.fragment<{rows}x{width}xf32, {acc}>
!p = !kvcache.fragment<{rows}x{size}xbf16, {left}>
!row = !kvcache.fragment<{rows}xf32, {acc}>
!share = !kvcache.fragment<{rows}xf32, {acc}, partial>
!qk = !kvcache.in_flight<{rows}x{size}xf32, {acc}>
!pv = !kvcache.in_flight<{rows}x{width}xf32, {acc}>
!tile = !kvcache.tile<{keys * size}x{width}xbf16, swizzle_128b>"""
    body = f"""
      %c1 = arith.constant 1 : index
      %size = arith.constant {size} : index
      %zero = arith.constant 0.0 : f32
      %low = arith.constant -1.0e30 : f32
      %qf = kvcache.fragment_load %q[%c0, %c0] : !kvcache.tile<{rows}x{width}xbf16, swizzle_128b> -> !q
      %m0 = kvcache.splat %low : !row
      %l0 = kvcache.splat %zero : !share
      %o0 = kvcache.splat %zero : !o
      %tiles = arith.constant {keys} : index
      %m, %l, %o = scf.for %j = %c0 to %tiles step %c1
          iter_args(%mj = %m0, %lj = %l0, %oj = %o0) -> (!row, !share, !o) {{
        %key = arith.muli %j, %size : index
        %started = kvcache.fragment_mma %qf, %k[%key, %c0] : !q, !tile -> !qk
        %s = kvcache.fragment_wait %started : !qk
        %x = kvcache.map %s at(%position, %key) : !s -> !s {{
        ^bb0(%e: f32, %row: index, %column: index):
          %sees = arith.cmpi sle, %column, %row : index
          %y = arith.select %sees, %e, %low : f32
          kvcache.yield %y : f32
        }}
        %mn = kvcache.reduce maxnumf %x from %mj : !s -> !row
        %alpha = kvcache.map %mj, %mn : !row, !row -> !row {{
        ^bb0(%old: f32, %new: f32):
          %d = arith.subf %old, %new : f32
          %a = math.exp2 %d : f32
          kvcache.yield %a : f32
        }}
        %probs = kvcache.map %x, %mn : !s, !row -> !s {{
        ^bb0(%e: f32, %most: f32):
          %d = arith.subf %e, %most : f32
          %y = math.exp2 %d : f32
          kvcache.yield %y : f32
        }}
        %ls = kvcache.map arith.mulf(%lj, %alpha) : !share, !row -> !share
        %ln = kvcache.reduce addf %probs from %ls : !s -> !share
        %pb = kvcache.to_operand %probs : !s -> !p
        %os = kvcache.map arith.mulf(%oj, %alpha) : !o, !row -> !o
        %added = kvcache.fragment_mma %pb, %v[%key, %c0] add %os
          {{major_b = #kvcache.major<mn_major>}} : !p, !tile, !o -> !pv
        %on = kvcache.fragment_wait %added : !pv
        scf.yield %mn, %ln, %on : !row, !share, !o
      }}
      %sum = kvcache.reduce addf %l : !share -> !row
      %y = kvcache.map arith.divf(%o, %sum) : !o, !row -> !o
      kvcache.fragment_store %y, %out[%c0, %c0] : !o, !kvcache.tile<{rows}x{width}xf32>"""
    scores = q.astype(float) @ k.astype(float).T
    scores[np.arange(keys * size) > position + np.arange(rows)[:, None]] = -np.inf
    weights = np.exp2(scores - scores.max(1, keepdims=True))
    expected = weights @ v.astype(float) / weights.sum(1, keepdims=True)
    results = {"out": ((rows, width), "f32")}
    for target in targets:
        arguments = [("position", "index", position)]
        (out,) = run(target, threads, {"q": q, "k": k, "v": v}, results, body, arguments, "swizzle_128b", types)
        np.testing.assert_allclose(out, expected, rtol=0.02, atol=0.02)


#
# Schedules
#

LOOP = """
!tile = !kvcache.tile<64x64xbf16, swizzle_128b>
!ring = !kvcache.pipe<2, !tile, producers = 4>
!s = !kvcache.fragment<64x64xf32, wgmma_acc>
!p = !kvcache.fragment<64x64xbf16, wgmma_a16>
!share = !kvcache.fragment<64xf32, wgmma_acc, partial>
!fly = !kvcache.in_flight<64x64xf32, wgmma_acc>
gpu.module @kernels [#nvvm.target<chip = "sm_90a">] {
  gpu.func @kernel(%n: index) kernel attributes {known_block_size = array<i32: 384, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %q = kvcache.alloc_tile : !tile
    %k = kvcache.pipe : !ring
    %v = kvcache.pipe : !ring
    %l0 = kvcache.splat %zero : !share
    %o0 = kvcache.splat %zero : !s
    %thread = gpu.thread_id x
    %l, %o = scf.for %j = %c0 to %n step %c1 iter_args(%lj = %l0, %oj = %o0) -> (!share, !s) {
      %next = arith.addi %j, %c1 : index
      %s = kvcache.consume %k[%j] : !ring -> !s {
      ^bb0(%kt: !tile):
        %started = kvcache.fragment_mma %q[%c0, %c0], %kt[%c0, %c0] : !tile, !tile -> !fly
        %done = kvcache.fragment_wait %started : !fly
        kvcache.yield %done : !s
      }
      %probs = kvcache.map %s : !s -> !s {
      ^bb0(%e: f32):
        %y = math.exp2 %e : f32
        kvcache.yield %y : f32
      }
      %ln = kvcache.reduce addf %probs from %lj : !s -> !share
      %p = kvcache.to_operand %probs : !s -> !p
      %on = kvcache.consume %v[%j] : !ring -> !s {
      ^bb0(%vt: !tile):
        %added = kvcache.fragment_mma %p, %vt[%c0, %c0] add %oj {major_b = #kvcache.major<mn_major>} : !p, !tile, !s -> !fly
        %sums = kvcache.fragment_wait %added : !fly
        kvcache.yield %sums : !s
      }
      scf.yield %ln, %on : !share, !s
    } {kvcache.schedule = #kvcache.schedule<ping_pong>}
    %all = kvcache.fragment_mma %q[%c0, %c0], %q[%c0, %c0] add %o : !tile, !tile, !s -> !fly
    gpu.return
  }
}
"""


# Stores into a tile before the product.
CLEAR = """
        %one = arith.constant 1 : i32
        %zero32 = arith.constant 0 : i32
        %count = arith.constant 256 : i32
        %other = arith.index_cast %n : index to i32
        %is_first = arith.cmpi eq, %j, %c0 : index
        scf.if %is_first {{
          %none = arith.constant 0.0 : bf16
          kvcache.tile_store %none, {tile}[%thread, %c0] : bf16, !tile
          nvvm.fence.proxy {{kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}}
          nvvm.barrier id = {id} number_of_threads = {threads}
        }}
        %added ="""


def test_loops_may_store_into_a_tile_before_its_product():
    text = edit(LOOP, ("%added =", CLEAR.format(tile="%vt", id="%one", threads="%count")))
    command = [OPT, "-", "--kvcache-schedule-attention", "--remarks-filter=kvcache-schedule.*"]
    result = subprocess.run(command, input=text, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "products overlap, in turns" in result.stderr
    # The loop stores into the tile of values before its turn, and begins a turn by another barrier.
    loop = result.stdout.split("scf.for")[1]
    assert re.search(r"kvcache.tile_store.*nvvm.barrier.*nvvm.barrier.*fragment_mma.*fragment_mma", loop, re.DOTALL)


@pytest.mark.parametrize(
    "reason, old, new",
    [
        ("the loop is not from 0 by steps of 1", "%j = %c0 to", "%j = %c1 to"),
        ("the index of a pipe is not that of the loop", "%v[%j]", "%v[%next]"),
        ("keys and values have one pipe", "%v[%j]", "%k[%j]"),
        ("a pipe has one stage", "pipe<2", "pipe<1"),
        ("the loop has 'gpu.barrier'", "%next = ", "gpu.barrier\n%next = "),
        (
            "the loop has 'kvcache.produce'",
            "%next = ",
            "kvcache.produce %k[%j] : !ring {\n^bb0(%x: !tile):\n}\n%next = ",
        ),
        ("something else than the sums uses the accumulator", "%probs = kvcache.map %s :", "%probs = kvcache.map %oj :"),
        (
            "the region of the sums makes their accumulator",
            "%added = kvcache.fragment_mma %p, %vt[%c0, %c0] add %oj",
            "%empty = kvcache.splat %zero : !s\n%added = kvcache.fragment_mma %p, %vt[%c0, %c0] add %empty",
        ),
        ("the sums are not carried to the next tile", "scf.yield %ln, %on", "scf.yield %ln, %probs"),
        (
            "there are more than two products",
            "add %oj {major_b = #kvcache.major<mn_major>} : !p, !tile, !s ->",
            "{major_b = #kvcache.major<mn_major>} : !p, !tile ->",
        ),
        ("there are no scores and sums", "", ""),
        ("a tile has other uses than its product", "%added =", "gpu.printf \"\"\n%added ="),
        # A region may only store into its own tile, and synchronize by a barrier of known threads.
        ("a tile has other uses than its product", "%added =", CLEAR.format(tile="%q", id="%one", threads="%count")),
        ("a tile has other uses than its product", "%added =", CLEAR.format(tile="%vt", id="%one", threads="%other")),
        ("a tile has other uses than its product", "%added =", CLEAR.format(tile="%vt", id="%zero32", threads="%count")),
        ("a tile has other uses than its product", "%sums =", CLEAR.replace("%added", "%sums").format(tile="%vt", id="%one", threads="%count")),
        (
            "a tile's region is no product, its wait and its yield",
            "kvcache.yield %done : !s",
            "kvcache.yield %o0 : !s",
        ),
        ("the kernel has no two warpgroups of consumers", "array<i32: 384", "array<i32: 512"),
        ("warpgroups may have other numbers of tiles", "to %n step", "to %thread step"),
        ("no two named barriers are free", "", ""),
        ("the loop carries no sum of exponentials", "math.exp2", "math.absf"),
    ],
)
def test_loops_without_a_schedule_have_a_reason(reason, old, new):
    text = LOOP
    if reason == "there are no scores and sums":
        start = text.index("      %on = "), text.index("      scf.yield")
        text = edit(text[: start[0]] + text[start[1] :], ("scf.yield %ln, %on", "scf.yield %ln, %oj"))
    elif reason == "no two named barriers are free":
        barriers = [f"%id{i} = arith.constant {i} : i32\nnvvm.barrier id = %id{i}\n" for i in range(2, 16, 2)]
        text = edit(text, ("%thread =", "".join(barriers) + "%thread ="))
    else:
        text = edit(text, (old, new))
    command = [OPT, "-", "--kvcache-schedule-attention", "--remarks-filter=kvcache-schedule.*", "-o", "/dev/null"]
    result = subprocess.run(command, input=text, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert f'Reason="{reason}"' in result.stderr


@pytest.mark.parametrize(
    "changes",
    [
        [("%vt[%c0, %c0] add", "%vt[%ij, %c0] add")],
        [("%ln = ", "%unused = "), ("scf.yield %ln,", "scf.yield %l1,"), ("%thread =", "%l1 = kvcache.reduce addf %e0 from %l0 : !s -> !share\n%thread =")],
    ],
    ids=["of an iteration", "of no iteration"],
)
def test_rotated_loops_carry_values(changes):
    """Regions take what the loop carries, and sums may be those of exponentials before the loop."""
    exponentials = """%e0 = kvcache.map %o0 : !s -> !s {
    ^bb0(%e: f32):
      %y = math.exp2 %e : f32
      kvcache.yield %y : f32
    }
    %thread ="""
    text = edit(
        LOOP,
        ("%thread =", exponentials),
        ("%l, %o =", "%l, %o, %i ="),
        ("%oj = %o0) -> (!share, !s)", "%oj = %o0, %ij = %c0) -> (!share, !s, index)"),
        ("scf.yield %ln, %on : !share, !s", "scf.yield %ln, %on, %ij : !share, !s, index"),
        *changes,
    )
    result = subprocess.run([OPT, "-", "--kvcache-schedule-attention"], input=text, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "pending 1" in result.stdout and "kvcache.schedule_fence" in result.stdout
