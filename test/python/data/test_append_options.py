"""Tests of append's options on data: norm, rope, slots, and slices of fused projections."""

import time

import ml_dtypes
import numpy as np
import pytest
from whole_caches import CPU, TARGETS, rms

import kvcache


def rotate(rows, table, positions, begin, interleaved, axes):
    rows, size = rows.copy(), table.shape[1]
    if axes is None:
        cosines, sines = np.split(table[positions][:, None], 2, -1)
    else:  # positions are [axes, rows]
        columns = np.arange(size // 2)
        chosen = positions[np.array(axes)].T
        cosines = table[chosen, columns][:, None]
        sines = table[chosen, columns + size // 2][:, None]
    part = rows[..., begin : begin + size]
    first, second = (
        (part[..., ::2], part[..., 1::2]) if interleaved else np.split(part, 2, -1)
    )
    turned = [first * cosines - second * sines, second * cosines + first * sines]
    rows[..., begin : begin + size] = (
        np.stack(turned, -1).reshape(part.shape)
        if interleaved
        else np.concatenate(turned, -1)
    )
    return rows


QUERY_HEADS = 4
LAYERS = 2
PAGES = 10
LENGTHS, NEW = np.array([20, 0, 3], np.int32), [2, 1, 3]
OFFSETS = np.concatenate([[0], np.cumsum(NEW)]).astype(np.int32)
TOTAL = OFFSETS[-1]
LUT = np.pad(np.array([[4, 2, 9], [0, 9, 9], [7, 9, 9]], np.uint32), ((0, 0), (0, 21)))
PARAMS = kvcache.KVCacheParams("bf16", 2, 64, page_size=16, total_num_layers=LAYERS)
WIDE = kvcache.KVCacheParams("bf16", 2, 256, page_size=16, total_num_layers=LAYERS)
LATENT = kvcache.KVCacheParams(
    "bf16", 1, 96, page_size=16, total_num_layers=LAYERS, is_mla=True
)


def make_inputs(
    params, lengths=LENGTHS, lut=LUT, offsets=OFFSETS, dtype=ml_dtypes.bfloat16
):
    blocks = np.zeros([PAGES, *params.shape_per_block], dtype)
    return kvcache.StepInputs.of(
        blocks=blocks, lengths=lengths, lut=lut, row_offsets=offsets
    )


def draw_arguments(params, options, rng):
    """Draws rows, and the other arguments of an operation with these options."""
    dtype = kvcache.dtypes.dtype(options["dtype"])

    def draw(*shape, dtype=dtype):
        return rng.standard_normal(shape).astype(dtype)

    heads, size, latent = (
        params.n_kv_heads_per_device,
        params.head_dim,
        options.get("latent_rope", 0),
    )
    rows = [draw(TOTAL + 1, heads, size - latent)]
    if not params.is_mla:
        rows.append(draw(TOTAL + 1, heads, size))
    slots = rng.permutation(PAGES * params.page_size)[: TOTAL + 1]
    slots[1] = -1
    axes = [max(options["rope_axes"]) + 1] if "rope_axes" in options else []
    every = {
        "latent_rope": lambda: draw(TOTAL + 1, 1, latent),
        "norm": lambda: draw(options["norm"]),
        "query_norm": lambda: draw(options["query_norm"]),
        "rope": lambda: draw(50, options["rope"], dtype=np.float32),
        "positions": lambda: rng.integers(0, 50, (*axes, TOTAL + 1)).astype(
            kvcache.dtypes.dtype(options["positions"])
        ),
        "slots": lambda: slots.astype(kvcache.dtypes.dtype(options["slots"])),
    }
    given = {name: make() for name, make in every.items() if name in options}
    if "query_heads" in options:
        given["queries"] = draw(TOTAL + 1, QUERY_HEADS, size)
    return rows, given


def transform(rows, options, given, norm, positions):
    """Rows with norm and rope, in f64."""
    rows = rows[:TOTAL].astype(np.float64)
    if norm in given:
        rows = rms(rows, given[norm].astype(np.float64), options.get("epsilon", 1e-6))
    if "rope" in given:
        table = given["rope"].astype(np.float64)
        begin = options.get("rope_begin", 0)
        pairs = options.get("interleaved", False), options.get("rope_axes")
        rows = rotate(rows, table, positions, begin, *pairs)
    return rows


def find_places(params, given):
    """The page and offset of each row; None for a skipped row."""
    if "slots" in given:
        slots = given["slots"][:TOTAL]
        return [
            None if slot < 0 else divmod(slot, params.page_size) for slot in slots.tolist()
        ]
    tokens = [(b, LENGTHS[b] + i) for b in range(3) for i in range(NEW[b])]
    return [(LUT[b, t // 16], t % 16) for b, t in tokens]


ROPE = {"rope": 64, "positions": "i32"}
BOTH = {"query_heads": QUERY_HEADS, "positions": "i32", "epsilon": 1e-3}


@pytest.mark.parametrize("target", [CPU, "emulator:sm_80", "emulator:sm_100a"])
@pytest.mark.parametrize(
    ("params", "options"),
    [
        (PARAMS, {"norm": 64, "query_norm": 64, "query_heads": QUERY_HEADS, "epsilon": 1e-3}),
        (PARAMS, {"norm": 32, "query_norm": 32, "query_heads": QUERY_HEADS, "slots": "i64"}),
        (PARAMS, {"query_norm": 48, "query_heads": QUERY_HEADS}),
        (PARAMS, {"norm": 64, "slots": "i32"}),
        (PARAMS, {"rope": 64}),
        (PARAMS, {"rope": 64, **BOTH}),
        (PARAMS, {"rope": 32, "rope_begin": 16, **BOTH}),
        (PARAMS, {"rope": 64, "interleaved": True, **BOTH, "positions": "i64"}),
        (PARAMS, {"norm": 64, "query_norm": 64, "rope": 16, "rope_begin": 48, "interleaved": True, "slots": "i64", **BOTH}),
        (PARAMS, {"norm": 64, "query_norm": 32, "rope": 32, "rope_begin": 32, "slots": "i32", **BOTH}),
        (PARAMS, {"norm": 64, "query_norm": 64, "rope": 64, "dtype": "bf16", **BOTH}),
        (PARAMS, {"norm": 64, "query_norm": 64, "rope": 64, "dtype": "f16", **BOTH}),
        (PARAMS, {"rope": 64, **BOTH, "rope_axes": [0] * 8 + [1] * 16 + [2] * 8}),
        (PARAMS, {"rope": 64, "interleaved": True, **BOTH, "rope_axes": [0] * 8 + [1] * 12 + [2] * 12}),
        (PARAMS, {"rope": 48, "rope_begin": 16, "slots": "i64", **BOTH, "rope_axes": [0, 2, 1] * 8}),
        (WIDE, {"norm": 256, "rope": 160, **BOTH, "rope_axes": [0, 1, 3] * 26 + [0, 0]}),
        (PARAMS, {"rope": 8, "rope_begin": 3, "interleaved": True, **BOTH}),
        (PARAMS, {"norm": 31, "query_norm": 63, "rope": 64, "interleaved": True, **BOTH}),
        (LATENT, {"latent_rope": 32}),
        (LATENT, {"norm": 64, "latent_rope": 32, "rope": 32, "rope_begin": 64, "interleaved": True, **BOTH}),
        (LATENT, {"norm": 96, "query_norm": 96, "rope": 32, "rope_begin": 64, "slots": "i64", **BOTH}),
    ],
)  # fmt: skip
def test_append_with_options(params, options, target):
    options = {"dtype": "f32"} | options
    append = kvcache.ops.append(params, target, **options)
    rows, given = draw_arguments(params, options, np.random.default_rng(3))
    inputs = make_inputs(params)
    before = {name: array.copy() for name, array in given.items()}
    append(inputs, 1, *rows, **given)
    positions = (
        given["positions"][..., :TOTAL] if "positions" in given else inputs.positions
    )
    bound = {"f32": 2e-6, "f16": 2**-10, "bf16": 2**-8}[options["dtype"]]
    if "queries" in given:
        queries, old = given.pop("queries"), before.pop("queries")
        wanted = transform(old, options, given, "query_norm", positions)
        np.testing.assert_allclose(
            queries[:TOTAL].astype(np.float64), wanted, rtol=bound, atol=bound
        )
        np.testing.assert_array_equal(queries[TOTAL:], old[TOTAL:])
    for name, array in given.items():
        np.testing.assert_array_equal(array, before[name])

    keys = (
        np.concatenate([rows[0], given["latent_rope"]], -1)
        if "latent_rope" in given
        else rows[0]
    )
    written = [transform(keys, options, given, "norm", positions), *rows[1:]]
    blocks = inputs.blocks[0].astype(np.float64)
    expected = np.zeros(blocks.shape)
    for row, place in enumerate(find_places(params, given)):
        if place is not None:
            for role, values in enumerate(written):
                expected[place[0], role, 1, place[1]] = values[row]
    np.testing.assert_allclose(blocks, expected, rtol=2**-8, atol=max(bound, 1e-6))


def test_arrays_may_begin_anywhere_on_the_cpu():
    """Heads of 16 bytes would otherwise be loaded by instructions that need alignment."""
    params = kvcache.KVCacheParams("f32", 2, 4, page_size=16, total_num_layers=LAYERS)
    inputs = make_inputs(params, dtype=np.float32)

    def draw(*shape):
        size = np.prod(shape)
        return (
            np.random.default_rng(size)
            .standard_normal(size + 1)
            .astype(np.float32)[1:]
            .reshape(shape)
        )

    rows = [draw(TOTAL, 2, 4) for _ in range(2)]
    queries, weights = draw(TOTAL, 4, 4), np.ones(5, np.float32)[1:]
    assert all(array.ctypes.data % 16 for array in (*rows, queries, weights))
    expected = rms(queries.astype(np.float64), np.ones(4), 1e-6)
    append = kvcache.ops.append(params, query_norm=4, query_heads=4)
    append(inputs, 1, *rows, queries, query_norm=weights)
    np.testing.assert_allclose(queries, expected, rtol=2e-6, atol=2e-6)
    out = [draw(3, 23, 2, 4) for _ in range(2)]
    kvcache.ops.gather(params)(inputs, 1, *out)
    np.testing.assert_array_equal(out[1][0, 20:22], rows[1][:2])
    attended, lse = draw(TOTAL, 4, 4), draw(TOTAL, 4)
    kvcache.ops.attention(params, 4)(inputs, 1, queries, out=attended, lse=lse, scale=1.0)
    merged = draw(TOTAL, 4, 4)
    kvcache.ops.merge_states(4, 4, dtype="f32")(attended[None], lse[None], merged, lse + 0)
    np.testing.assert_allclose(merged, attended, rtol=1e-6, atol=1e-6)


def project(total, *parts):
    """Slices [total, heads, size] of one array, side by side, as of a fused projection."""
    widths = [heads * size for heads, size in parts]
    fused = np.random.default_rng(7).standard_normal((total, sum(widths))).astype(np.float32)
    pieces = np.split(fused, np.cumsum(widths)[:-1], axis=1)
    return fused, [piece.reshape(total, *part) for piece, part in zip(pieces, parts)]


@pytest.mark.parametrize("target", TARGETS)
def test_slices_of_a_fused_projection(target):
    params = kvcache.KVCacheParams("f32", 2, 32, page_size=16, total_num_layers=LAYERS)
    fused, parts = project(TOTAL, (4, 32), (2, 32), (2, 32))
    q, keys, values = parts
    assert not any(part.flags.c_contiguous or part.flags.owndata for part in parts)
    results, before = [], fused.copy()
    for queries, *rows in (parts, [part.copy() for part in parts]):
        inputs = make_inputs(params, dtype=np.float32)
        append = kvcache.ops.append(params, target, query_norm=32, query_heads=4)
        append(inputs, 1, *rows, queries, query_norm=np.ones(32, np.float32))
        _, (out, *_) = project(TOTAL, (4, 32), (1, 32))
        attend = kvcache.ops.attention(params, 4, target=target)
        attend(inputs, 1, queries, out=out, scale=0.2)
        longest, (gathered, *_) = project(3 * 23, (2, 32), (1, 4))
        gathered = gathered.reshape(3, 23, 2, 32)
        assert np.shares_memory(gathered, longest)
        kvcache.ops.gather(params, target)(inputs, 1, gathered, gathered.copy())
        results.append((queries.copy(), out.copy(), gathered.copy(), inputs.blocks[0]))
    for found, expected in zip(*results, strict=True):
        np.testing.assert_array_equal(found, expected)
    # Only the queries have changed.
    np.testing.assert_array_equal(fused[:, 128:], before[:, 128:])


@pytest.mark.parametrize(
    ("target", "make", "message"),
    [("cpu", lambda rows: rows.repeat(2, 2)[..., :32], "a stride of 32 elements in dimension 1"),
     ("cpu", lambda rows: rows[..., ::2].repeat(2, 2)[::-1], "strides that are not negative"),
     ("cpu", lambda rows: np.lib.stride_tricks.as_strided(rows, strides=(128, 128, 4)), "do not overlap"),
     ("emulator:sm_90a", lambda rows: np.zeros((TOTAL, 65), np.float32)[:, 1:].reshape(TOTAL, 2, 32),
      "data at a multiple of 16 bytes|strides that are multiples of 16 bytes")],
)  # fmt: skip
def test_operations_reject_wrong_rows(target, make, message):
    params = kvcache.KVCacheParams("f32", 2, 32, page_size=16, total_num_layers=LAYERS)
    inputs = make_inputs(params, dtype=np.float32)
    rows = np.ones((TOTAL, 2, 32), np.float32)
    with pytest.raises(ValueError, match=message):
        kvcache.ops.append(params, target)(inputs, 1, make(rows), rows)


@pytest.mark.parametrize("name", ["norm", "rope"])
def test_weights_and_tables_of_a_chip_are_aligned(name):
    params = kvcache.KVCacheParams("f32", 2, 32, page_size=16, total_num_layers=LAYERS)
    inputs, rows = make_inputs(params, dtype=np.float32), np.ones((TOTAL, 2, 32), np.float32)
    shape = (32,) if name == "norm" else (64, 32)
    array = np.ones(np.prod(shape) + 1, np.float32)[1:].reshape(shape)
    kvcache.ops.append(params, CPU, **{name: 32})(inputs, 1, rows, rows, **{name: array})
    with pytest.raises(ValueError, match=f"'{name}'.* data at a multiple of 16 bytes"):
        kvcache.ops.append(params, "emulator:sm_80", **{name: 32})(
            inputs, 1, rows, rows, **{name: array}
        )


@pytest.mark.parametrize("target", [CPU, "emulator:sm_90a"])
@pytest.mark.parametrize(
    ("name", "granularity", "head_dim"),
    [
        ("f8E4M3FN", 16, 64),
        ("f4E2M1FN", 16, 64),
        ("i4", 1, 64),
        ("i4", 3, 48),
        ("i4", 3, 64),
        ("i4", 7, 28),
    ],
)
def test_append_with_norm_and_scales(name, granularity, head_dim, target):
    """Rows of mean square one, weights of one, and angles of zero: no norm or rope changes a bit.

    Halves of 3 elements end inside a byte of 4-bit elements.
    """
    scale = "f8E4M3FN" if name == "f4E2M1FN" else "f32"
    scales = kvcache.KVCacheQuantizationConfig(
        scale, granularity, scale if name == "i4" else None
    )
    params = kvcache.KVCacheParams(
        name, 2, head_dim, page_size=16, total_num_layers=1, kvcache_quant_config=scales
    )
    signs = np.random.default_rng(4).choice([-1.0, 1.0], (2, 4, 2, head_dim)).astype(np.float32)
    written = []
    for options, given in [
        ({}, {}),
        ({"norm": head_dim, "epsilon": 1e-30}, {"norm": np.ones(head_dim, np.float32)}),
        ({"rope": 6}, {"rope": np.tile(np.repeat(np.float32([1, 0]), 3), (4, 1))}),
    ]:
        manager = kvcache.PagedKVCacheManager(
            params, max_batch_size=1, max_seq_len=16, num_pages=1
        )
        manager.claim("r", np.arange(4))
        append = kvcache.ops.append(params, target, "f32", **options)
        append(manager.inputs(["r"]), 0, *signs, **given)
        written.append(
            [tensor.view(np.uint8).copy() for tensor in (*manager.blocks, *manager.scales)]
        )
    assert any(tensor.any() for tensor in written[0])
    for plain, *others in zip(*written):
        for other in others:
            np.testing.assert_array_equal(plain, other)


@pytest.mark.long
@pytest.mark.parametrize("chip", [None, "sm_90a"])
def test_append_of_a_long_head_of_odd_groups_compiles_soon(chip):
    """LLVM took minutes for vectors of all elements that pieces were inserted into."""
    config = kvcache.KVCacheQuantizationConfig("f16", 7, "f16")
    seconds = []
    for size in (288, 576):
        params = kvcache.KVCacheParams(
            "i4", 1, size, page_size=48, total_num_layers=1, is_mla=True, kvcache_quant_config=config
        )
        start = time.process_time()
        append = kvcache.ops.append(params, dtype="bf16", bounds_checks=True, latent_rope=2)
        if chip:
            append.compile(chip)
        seconds.append(time.process_time() - start)
    assert seconds[1] < 8 * seconds[0]


@pytest.mark.slow
def test_emulated_append_of_a_long_head_compiles_soon_when_optimized():
    """LLVM took 38 times as long as without optimization for large blocks of a kernel."""
    config = kvcache.KVCacheQuantizationConfig("f32", 7, "f32")
    params = kvcache.KVCacheParams(
        "i4", 1, 576, page_size=48, total_num_layers=1, is_mla=True, kvcache_quant_config=config
    )
    append = kvcache.ops.append(params, dtype="bf16", bounds_checks=True, latent_rope=2)
    seconds = []
    for opt_level in (0, 2):
        start = time.process_time()
        kvcache.jit(
            append.source, target="emulator:sm_90a", bounds_checks=True, opt_level=opt_level
        )
        seconds.append(time.process_time() - start)
    assert seconds[1] < 16 * seconds[0], seconds


@pytest.mark.parametrize("target", [CPU, "emulator:sm_90a"])
@pytest.mark.parametrize("dtype", ["i32", "i64"])
def test_checks_find_slots_that_repeat_or_are_past_the_end(dtype, target):
    append = kvcache.ops.append(PARAMS, target, "f32", slots=dtype, bounds_checks=True)
    rows = np.ones((2, 5, 2, 64), np.float32)
    inputs = make_inputs(
        PARAMS,
        np.zeros(1, np.int32),
        np.zeros((1, 24), np.uint32),
        np.array([0, 3], np.int32),
    )

    def run(*slots):
        append(inputs, 1, *rows, slots=np.array(slots, dtype.replace("i", "int")))

    # Slots of padding, which are the last two, may be anything.
    run(159, -1, -1, 159, 160)
    expected = np.zeros_like(inputs.blocks[0])
    expected[9, :, 1, 15] = 1
    np.testing.assert_array_equal(inputs.blocks[0], expected)
    edges = np.iinfo(dtype.replace("i", "int"))
    run(edges.min, -1, -2, 0, 0)
    np.testing.assert_array_equal(inputs.blocks[0], expected)
    for past in (160, edges.max):
        with pytest.raises(kvcache.CheckError, match="page"):
            run(-1, -1, past, 0, 0)
        np.testing.assert_array_equal(inputs.blocks[0], expected)
    with pytest.raises(kvcache.CheckError, match=r"slot of two rows is out of range"):
        run(7, 8, 7, 0, 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"norm": 65}, "expects 'norm' to be at most 64, got 65"),
        ({"norm": 0}, "expects 'norm' to be positive, got 0"),
        ({"query_norm": 64}, "expects 'query_heads' with 'query_norm'"),
        ({"query_heads": 4}, "expects 'query_norm', 'rope' or 'query_dtype' with 'query_heads'"),
        ({"query_heads": 3, "rope": 64}, "multiple of the cache's heads [(]2[)], got 3"),
        ({"rope_axes": [0, 1]}, "expects 'rope' and 'positions' with 'rope_axes'"),
        ({"rope_axes": [0] * 31, **ROPE}, "number for each of 32 pairs, got 31"),
        ({"rope_axes": [0] * 31 + [-1], **ROPE}, "'rope_axes' not to be negative, got -1"),
        ({"rope": 33}, "expects 'rope' to be even, got 33"),
        ({"rope": 64, "rope_begin": 2}, "elements 0 to 64 of a row, got 2 to 66"),
        ({"rope": 64, "rope_begin": -2}, "elements 0 to 64 of a row, got -2 to 62"),
        (
            {"interleaved": True},
            "'interleaved', 'rope_begin' and 'positions' only with 'rope'",
        ),
        (
            {"positions": "i64"},
            "'interleaved', 'rope_begin' and 'positions' only with 'rope'",
        ),
        ({"rope": 64, "slots": "i64"}, "expects 'positions' with 'rope' and 'slots'"),
        ({"slots": "i16"}, "expects 'slots' to be one of i32, i64, got i16"),
        ({"latent_rope": 16}, "expects 'latent_rope' only for a latent cache"),
        ({"epsilon": -1.0}, "expects 'epsilon' to be positive and finite, got -1.0"),
        (
            {"params": LATENT, "latent_rope": 96},
            "expects 'latent_rope' to be at most 95, got 96",
        ),
        (
            {"params": LATENT, "latent_rope": 32, "norm": 65},
            "expects 'norm' to be at most 64, got 65",
        ),
        (
            {"params": LATENT, "latent_rope": 32, "rope": 32},
            "elements 64 to 96 of a row, got 0 to 32",
        ),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(ValueError, match=message):
        kvcache.ops.append(**{"params": PARAMS} | options)


@pytest.mark.parametrize(
    "options",
    [
        {"norm": "x"},
        {"rope": 2.0},
        {"rope_axes": 3},
        {"interleaved": 1},
        {"bounds_checks": None},
    ],
)
def test_options_of_wrong_types(options):
    (name,) = options
    with pytest.raises(TypeError, match=f"expects '{name}' to be "):
        kvcache.ops.append(PARAMS, **options)


def test_wrong_calls():
    options = {
        "dtype": "f32",
        "norm": 64,
        "rope": 64,
        "query_heads": QUERY_HEADS,
        "positions": "i32",
    }
    append = kvcache.ops.append(PARAMS, **options)
    rows, given = draw_arguments(PARAMS, options, np.random.default_rng(3))
    inputs = make_inputs(PARAMS)
    for name in given:
        with pytest.raises(
            ValueError, match=f"expects '{name}', as the operation was made with it"
        ):
            append(
                inputs,
                1,
                *rows,
                **{name: None} | {k: v for k, v in given.items() if k != name},
            )
    with pytest.raises(ValueError, match="expects no 'slots', as the operation was made without it"):
        append(inputs, 1, *rows, **given, slots=np.zeros(TOTAL, np.int32))
    with pytest.raises(
        ValueError, match="expects no 'queries', as the operation was made without it"
    ):
        kvcache.ops.append(PARAMS)(inputs, 1, *rows, given["queries"])
    with pytest.raises(
        TypeError, match=r"[(]'positions'[)] expects an array of int32.*got one of int64"
    ):
        append(inputs, 1, *rows, **given | {"positions": np.zeros(TOTAL, np.int64)})
    with pytest.raises(ValueError, match=r"[(]'norm'[)] expects"):
        append(inputs, 1, *rows, **given | {"norm": np.ones(32, np.float32)})
