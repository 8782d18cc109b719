"""Elements of fragments: `map`, `reduce`, and tensor memory, against NumPy."""

import numpy as np
import pytest
from fragment_programs import DTYPES, TMEM_TEAMS, draw, fragment, get_columns, get_team, make_scratch, run

import kvcache


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


@pytest.mark.parametrize("layout", ["mma_acc", "wgmma_acc", "tmem_acc", "tmem_row", "wgmma_acc_t"])
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
    """Each warp has neighbouring rows."""
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
    warp_rows = 32 * rows // threads
    expected = np.repeat((array > 0).reshape(-1, warp_rows * 8).any(axis=1), warp_rows)[:, None] * np.ones(8)
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


@pytest.mark.parametrize("barrier", ["", "gpu.barrier"])
def test_reductions_through_a_tile_race_without_a_barrier(barrier):
    """The lowering refuses a next reduction, also in a branch."""
    rows, threads, (target,) = get_team("wgmma_acc_t")
    type, row = fragment("wgmma_acc_t", rows, 64, element="f32"), fragment("wgmma_acc_t", rows, element="f32")
    scratch, across, tile = make_scratch("wgmma_acc_t", "f32")
    array = draw((rows, 64), np.float32)
    body = f"""
      {scratch}
      %f = kvcache.fragment_load %a[%c0, %c0] : !kvcache.tile<{rows}x64xf32> -> {type}
      %max = kvcache.reduce maxnumf %f {across} : {type}{tile} -> {row}
      {barrier}
      %both = scf.if %again -> ({row}) {{
        %min = kvcache.reduce minnumf %f {across} : {type}{tile} -> {row}
        %sum = kvcache.map arith.addf(%max, %min) : {row}, {row} -> {row}
        scf.yield %sum : {row}
      }} else {{
        scf.yield %max : {row}
      }}
      %y = kvcache.map arith.addf(%f, %both) : {type}, {row} -> {type}
      kvcache.fragment_store %y, %out[%c0, %c0] : {type}, !kvcache.tile<{rows}x64xf32>"""
    results = {"out": ((rows, 64), "f32")}

    def reduce(again):
        return run(target, threads, {"a": array}, results, body, [("again", "i1", again)])[0]

    if not barrier:
        with pytest.raises(kvcache.CompileError, match="expects a barrier after the last 'reduce' through 'scratch'"):
            reduce(True)
        return
    np.testing.assert_array_equal(reduce(False), array + array.max(1, keepdims=True))
    np.testing.assert_array_equal(reduce(True), array + (array.max(1, keepdims=True) + array.min(1, keepdims=True)))
