"""Products of fragments and tiles, against NumPy."""

import ml_dtypes
import numpy as np
import pytest
from fragment_programs import DTYPES, SWIZZLES, TEAMS, Tile, draw, fragment, run


@pytest.mark.parametrize("element", ["bf16", "f16"])
@pytest.mark.parametrize("n, k, major", [(16, 16, "k"), (64, 128, "k"), (128, 64, "mn"), (64, 48, "mn")])
@pytest.mark.parametrize("team, order", [("mma", ""), ("mma", "rows_first"), ("wgmma", "")])
def test_products_of_fragments(team, order, n, k, major, element):
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
    # Of values, rows are first always.
    options = "{major_b = #kvcache.major<mn_major>}" if major == "mn" else f"{{{order}}}"
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


MAJORS = [("k", "k"), ("mn", "mn"), ("mn", "k"), ("k", "mn")]
# Elements of A, B and sums. Only those of 16 bits may be along rows.
PRODUCTS = [(*types, *majors) for types in [("bf16", "bf16", "f32"), ("f16", "f16", "f32"), ("f16", "f16", "f16")] for majors in MAJORS]
PRODUCTS += [("f8E4M3FN", "f8E5M2", "f32", "k", "k"), ("f8E5M2", "f8E4M3FN", "f16", "k", "k"), ("i8", "i8", "i32", "k", "k")]


@pytest.mark.parametrize("element_a, element_b, element, major_a, major_b", PRODUCTS)
@pytest.mark.parametrize("rows, n, k", [(16, 64, 64), (32, 192, 128), (16, 512, 64)])
def test_transposed_products(rows, n, k, element_a, element_b, element, major_a, major_b):
    """wgmma has A as its right operand, and each 64 rows of B as its left one."""
    a = draw((rows, k) if major_a == "k" else (k, rows), DTYPES[element_a])
    b = draw((n, k) if major_b == "k" else (k, n), DTYPES[element_b], 1)
    given = draw((rows, n), DTYPES[element], 2)
    sums = fragment("wgmma_acc_t", rows, n, element=element)
    product = sums.replace("fragment", "in_flight")
    bytes = a.itemsize * min(a.shape[1], b.shape[1])
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
      %twice = kvcache.fragment_wait %second pending 1 : {product}
      %added = kvcache.fragment_wait %third : {product}
      kvcache.fragment_store %twice, %out0[%c0, %c0] : {sums}, !kvcache.tile<{rows}x{n}x{element}>
      kvcache.fragment_store %added, %out1[%c0, %c0] : {sums}, !kvcache.tile<{rows}x{n}x{element}>"""
    results = {f"out{i}": ((rows, n), element) for i in range(2)}
    inputs = {"a": a, "b": b, "c": given}
    twice, added = run("emulator:sm_90a", 128, inputs, results, body, swizzle=swizzle)
    expected = (a if major_a == "k" else a.T).astype(float) @ (b.T if major_b == "k" else b).astype(float)
    # Sums of f16 are rounded, and of f8 elements the hardware keeps fewer bits.
    is_short = element == "f16" or element_a.startswith("f8")
    bounds = {"rtol": 1e-2, "atol": 1e-2 * np.abs(expected).max()} if is_short else {"rtol": 1e-4, "atol": 1e-3}
    np.testing.assert_allclose(twice.astype(float), 2 * expected, **bounds)
    np.testing.assert_allclose(added.astype(float), expected + given.astype(float), **bounds)


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


def order_groups(scales):
    """The scales of rows in the order of `fragment_mma`: those of the first groups of all pairs, then the others."""
    return np.concatenate([scales[:, ::2], scales[:, 1::2]], axis=1)


@pytest.mark.parametrize("n, k, major", [(32, 128, "k"), (16, 64, "k"), (48, 32, "k"), (128, 32, "mn"), (64, 16, "mn"), (32, 48, "mn")])
def test_products_of_elements_of_four_bits(n, k, major):
    """All elements times positive numbers of f8E4M3FN, and 2^-7, are numbers of f16: sums are as exact as those of f16.

    The tile has twice as many elements of a row, and eight more rows. Scales begin at row 3.
    """
    rows, threads, _ = TEAMS["mma"]
    is_k, size = major == "k", k if major == "k" else n
    shape = (n + 8 if is_k else k + 8, 2 * size)
    rng = np.random.default_rng(1)
    codes = rng.permuted(np.resize(np.arange(16, dtype=np.uint8), shape))
    groups = max(shape[1] // 16, 8)
    scales = rng.permuted(np.resize(np.arange(127, dtype=np.uint8), (shape[0] + 3, shape[1] // 16)))
    scales = scales.view(ml_dtypes.float8_e4m3fn).astype(np.float16)
    b = codes.view(ml_dtypes.float4_e2m1fn).astype(np.float64) * scales[3:].astype(np.float64).repeat(16, axis=1) / 128
    packed = (codes[:, ::2] | codes[:, 1::2] << 4).view(np.int8)
    table = np.zeros((shape[0] + 3, groups), np.float16)
    table[:, : scales.shape[1]] = order_groups(scales) * 128
    a, given = draw((rows, k), np.float16, 2), draw((rows, n), np.float32, 3)
    left = fragment("mma_a16_quads" if is_k else "mma_a16", rows, k, element="f16")
    sums = fragment("mma_acc" if is_k else "mma_acc_quads", rows, n, element="f32")
    product = sums.replace("fragment", "in_flight")
    swizzle = SWIZZLES[min(packed.shape[1], 128)]
    tiles = [Tile.of("a", a, "none"), Tile.of("b", packed, swizzle), Tile.of("c", given, "none"), Tile.of("s", table, "none")]
    options = "packed = f4E2M1FN" + ("" if is_k else ", major_b = #kvcache.major<mn_major>")
    body = f"""
      %c3 = arith.constant 3 : index
      %c8 = arith.constant 8 : index
      %c11 = arith.constant 11 : index
      %half = arith.constant {size // 2} : index
      %left = kvcache.fragment_load %a[%c0, %c0] : {tiles[0].type} -> {left}
      %given = kvcache.fragment_load %c[%c0, %c0] : {tiles[2].type} -> {sums}
      %first = kvcache.fragment_mma %left, %b[%c0, %c0] add %given scales %s[%c3] {{{options}}}
        : {left}, {tiles[1].type}, {sums} scales {tiles[3].type} -> {product}
      %second = kvcache.fragment_mma %left, %b[%c8, %half] add %first scales %s[%c11] {{{options}}}
        : {left}, {tiles[1].type}, {product} scales {tiles[3].type} -> {product}
      %added = kvcache.fragment_wait %second : {product}
      kvcache.fragment_store %added, %out[%c0, %c0] : {sums}, !kvcache.tile<{rows}x{n}xf32>"""
    both = b[:-8, :size] + b[8:, size:]
    expected = given + a.astype(float) @ (both.T if is_k else both)
    inputs = {"a": a, "b": packed, "c": given, "s": table}
    for target in ("emulator:sm_80", "emulator:sm_89", "emulator:sm_90a", "emulator:sm_120a"):
        (out,) = run(target, threads, inputs, {"out": ((rows, n), "f32")}, body, swizzle={"b": swizzle})
        np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-6 * np.abs(both).max() * k)


@pytest.mark.parametrize("element", ["i4", "f4E2M1FN"])
@pytest.mark.parametrize("n, k, major", [(32, 128, "k"), (16, 96, "k"), (48, 32, "k"), (96, 32, "mn"), (64, 16, "mn"), (32, 48, "mn")])
def test_products_of_elements_of_four_bits_without_scales(n, k, major, element):
    """The tile has 32 more elements of a row, after which those of the second product begin, and eight more rows."""
    rows, threads, _ = TEAMS["mma"]
    is_k, size = major == "k", k if major == "k" else n
    shape = (n + 8 if is_k else k + 8, size + 32)
    codes = np.random.default_rng(1).permuted(np.resize(np.arange(16, dtype=np.uint8), shape))
    powers = {"i4": 2.0**-24, "f4E2M1FN": 2.0**-14}
    numbers = codes if element == "i4" else codes.view(ml_dtypes.float4_e2m1fn)
    b = numbers.astype(np.float64) * powers[element]
    packed = (codes[:, ::2] | codes[:, 1::2] << 4).view(np.int8)
    swizzle = SWIZZLES.get(packed.shape[1], "none")
    a, given = draw((rows, k), np.float16, 2), draw((rows, n), np.float32, 3) * np.float32(powers[element])
    left = fragment("mma_a16_quads" if is_k else "mma_a16", rows, k, element="f16")
    sums = fragment("mma_acc" if is_k else "mma_acc_quads", rows, n, element="f32")
    product = sums.replace("fragment", "in_flight")
    tiles = [Tile.of("a", a, "none"), Tile.of("b", packed, swizzle), Tile.of("c", given, "none")]
    options = f"packed = {element}" + ("" if is_k else ", major_b = #kvcache.major<mn_major>")
    body = f"""
      %c8 = arith.constant 8 : index
      %c16 = arith.constant 16 : index
      %left = kvcache.fragment_load %a[%c0, %c0] : {tiles[0].type} -> {left}
      %given = kvcache.fragment_load %c[%c0, %c0] : {tiles[2].type} -> {sums}
      %first = kvcache.fragment_mma %left, %b[%c0, %c0] add %given {{{options}}}
        : {left}, {tiles[1].type}, {sums} -> {product}
      %second = kvcache.fragment_mma %left, %b[%c8, %c16] add %first {{{options}}}
        : {left}, {tiles[1].type}, {product} -> {product}
      %added = kvcache.fragment_wait %second : {product}
      kvcache.fragment_store %added, %out[%c0, %c0] : {sums}, !kvcache.tile<{rows}x{n}xf32>"""
    both = b[:-8, :size] + b[8:, 32:]
    expected = given + a.astype(float) @ (both.T if is_k else both)
    inputs = {"a": a, "b": packed, "c": given}
    for target in ("emulator:sm_80", "emulator:sm_89", "emulator:sm_90a", "emulator:sm_120a"):
        (out,) = run(target, threads, inputs, {"out": ((rows, n), "f32")}, body, swizzle={"b": swizzle})
        np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-6 * np.abs(both).max() * k)


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
