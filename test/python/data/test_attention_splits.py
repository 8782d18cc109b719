"""Tests of split KV in kvcache.ops.attention: a second launch merges splits from a workspace."""

import ml_dtypes
import model
import numpy as np
import pytest
from attention_checks import (
    CHIPS,
    FEW,
    FEW_NEW,
    FORMATS,
    LAYER,
    LAYERS,
    OPTIONS,
    ROUNDING,
    SPLITS,
    check,
    close,
    close_lse,
    dense,
    fill,
    make_params,
    run,
)

import kvcache


@pytest.mark.parametrize("number, options", enumerate(OPTIONS), ids=str)
def test_options_of_splits(number, options):
    target = CHIPS[number % 3]
    check(
        make_params(),
        "f32",
        FEW,
        FEW_NEW,
        2,
        target,
        **options,
        **{**SPLITS, "split_tokens": 3},
    )


@pytest.mark.parametrize("number, format_", enumerate(FORMATS))
def test_formats_of_splits(number, format_):
    dtype = FORMATS[format_][2]
    check(make_params(format_), dtype, FEW, FEW_NEW, 4, CHIPS[number % 3], **SPLITS, tile_rows=0)


@pytest.mark.parametrize("format_, more", [("f32", {}), ("bf16", {"tile_rows": 16})])
@pytest.mark.parametrize("target", CHIPS)
def test_edges_of_splits(target, format_, more):
    """Tests whole splits, one token less or more, and longer splits where there are too many."""
    part = 64 if more else 16  # on tensor cores, a tile
    options = {"split_tokens": part, "max_splits": 3, **more}
    tokens = (
        part - 1,
        part,
        part + 1,
        2 * part,
        2 * part + 1,
        3 * part,
        3 * part + 1,
        6 * part + 1,
    )
    check(
        make_params(format_),
        format_,
        [n - 1 for n in tokens],
        [1] * len(tokens),
        2,
        target,
        **options,
    )


@pytest.mark.parametrize(
    "options",
    [{}, {"target": CHIPS[1]}, {"target": CHIPS[1], **SPLITS, "split_rows": 5}],
    ids=str,
)
def test_a_sequence_alone_and_in_a_batch(options):
    params = make_params("bf16")
    attend = kvcache.ops.attention(params, 8, **options)
    results = []
    for lengths, new in [((33,), (5,)), ((33, 7, 1), (5, 1, 30))]:
        _, inputs = fill(params, "bf16", lengths, new)
        q = np.random.default_rng(3).standard_normal((5, 8, 64)).astype(ml_dtypes.bfloat16)
        rows = np.zeros((len(inputs.tokens), 8, 64), ml_dtypes.bfloat16)
        rows[:5] = q
        out, lse = np.zeros_like(rows), np.zeros(rows.shape[:2], np.float32)
        attend(inputs, LAYER, rows, out=out, lse=lse, scale=0.1)
        results.append((out[:5].tobytes(), lse[:5].tobytes()))
    assert results[0] == results[1]


@pytest.mark.parametrize("options", [{}, {"rows": True}, {"sinks": True}], ids=str)
def test_one_workspace_for_all(options):
    """Operations of other sizes share a workspace, with any bytes after the counter."""
    params = make_params("bf16")
    workspace = np.full(200_000, -1, np.int8)  # as floats, no numbers
    workspace[:16] = 0
    for lengths, heads, splits in [
        ((40, 7), 2, SPLITS),
        ((9, 70, 30), 4, {"split_tokens": 8}),
    ]:
        new = (1,) * len(lengths)
        _, inputs = fill(params, "bf16", lengths, new)
        given = {**options, **splits, "target": CHIPS[0]}
        ids = np.arange(32, dtype=np.int32)[None].repeat(len(new) + 2, 0)
        arrays = {"rows": ids} if options.get("rows") else {}
        own, shared = (
            run(params, "bf16", inputs, heads // 2, given, 0.1, **arrays, **more)[1]
            for more in ({}, {"workspace": workspace})
        )
        attend = kvcache.ops.attention(params, heads, **given)
        assert attend.workspace_size(len(new)) <= workspace.size and not workspace[:16].any()
        assert own.tobytes() == shared.tobytes() and own.any()


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"tile_rows": 16, "scheduled_blocks": 0},
        {"tile_rows": 16, "scheduled_blocks": 5},
        {"max_splits": 2},
    ],
    ids=str,
)
def test_one_launch_for_several_batches(more):
    """The grid and all operands stay, as in a CUDA graph; lengths, table and offsets change in memory."""
    params = make_params("bf16")
    options = {**SPLITS, **more, "target": CHIPS[1]}
    attend = kvcache.ops.attention(params, 4, **options)
    program = kvcache.jit(attend.source, target=CHIPS[1], meter=True, opt_level=0)
    most, batch, columns, pages = 24, 4, 40, 64
    lengths, table = np.zeros(batch, np.int32), np.zeros((batch, columns), np.int32)
    offsets, blocks = np.zeros(batch + 1, np.int32), None
    q = np.zeros((most, 4, 64), ml_dtypes.bfloat16)
    out, lse = np.zeros_like(q), np.zeros((most, 4), np.float32)
    workspace = np.zeros(attend.workspace_size(batch), np.int8)
    grids = set()
    for old, new in [
        ((37, 0, 70, 9), (1, 5, 2, 1)),
        ((3, 150, 12, 40), (1, 1, 1, 1)),
        ((0, 60, 0, 25), (17, 2, 1, 1)),
    ]:
        _, inputs = fill(params, "bf16", old, new)
        rows = sum(new)
        used = inputs.blocks[0]
        if blocks is None:
            blocks = np.zeros((pages, *used.shape[1:]), used.dtype)
        blocks[: len(used)] = used
        lengths[:], offsets[:] = inputs.lengths, inputs.row_offsets
        own_columns = min(columns, inputs.lut.shape[1])
        table[:, :own_columns] = inputs.lut[:, :own_columns]
        q[:] = 2 * np.random.default_rng(rows).standard_normal(q.shape)
        out[:], lse[:] = 7, 7
        program.call(
            "attention", blocks, lengths, table, most, 512, LAYER, q, offsets, out, lse, 0.125, workspace
        )
        grids.add(tuple(launch.grid for launch in program.launches))
        roles = dense(params, inputs, max(map(sum, zip(old, new))))
        for b, tokens in enumerate(np.add(old, new)):
            own = slice(*map(int, offsets[b : b + 2]))
            keys, values = roles[:, b, :tokens]
            wanted, wanted_lse = model.attend(q[own], keys, values, 0.125)
            assert close(out[own], wanted, ROUNDING["bf16"] * np.abs(values).max())
            assert close_lse(lse[own], wanted_lse)
        assert (out[rows:] == 7).all() and (lse[rows:] == 7).all() and not workspace[:16].any()
    assert len(grids) == 1


@pytest.mark.parametrize(
    "format_, options",
    [
        ("f32", {}),
        ("f32", {"target": CHIPS[2]}),
        ("f32", {"target": CHIPS[2], **SPLITS}),
        ("bf16", {"target": CHIPS[1], "tile_rows": 16, **SPLITS, "scheduled_blocks": 3}),
    ],
)
def test_sequences_without_rows(format_, options):
    """Sequences without rows have slots, but no splits."""
    params = make_params(format_)
    _, inputs = fill(params, format_, (30, 20), (1, 1))
    batch = kvcache.StepInputs.of(
        blocks=inputs.blocks,
        lengths=np.array([3, *inputs.lengths, 5], np.uint32),
        lut=inputs.lut[[0, 0, 1, 1]],
        row_offsets=np.array([0, 0, 1, 2, 2], np.uint32),
    )
    results = []
    for each in (inputs, batch):
        q = np.random.default_rng(3).standard_normal((2, 4, 64))
        q = q.astype(kvcache.dtypes.dtype(format_))
        out, lse = np.zeros_like(q), np.zeros((2, 4), np.float32)
        attend = kvcache.ops.attention(params, 4, **options)
        attend(each, LAYER, q, out=out, lse=lse, scale=0.1)
        results.append((out.tobytes(), lse.tobytes()))
    assert results[0] == results[1]


@pytest.mark.parametrize(
    "more",
    [{}, {"tile_rows": 16}, {"tile_rows": 16, "scheduled_blocks": 3}],
    ids=str,
)
def test_padding_without_sequences(more):
    params = make_params("bf16")
    _, inputs = fill(params, "bf16", (3,), (1,))
    none = kvcache.StepInputs.of(
        blocks=inputs.blocks,
        lengths=inputs.lengths[:0],
        lut=inputs.lut[:0],
        row_offsets=inputs.row_offsets[:1],
    )
    attend = kvcache.ops.attention(
        params, 4, target=CHIPS[0], bounds_checks=True, **SPLITS, **more
    )
    q = np.zeros((5, 4, 64), ml_dtypes.bfloat16)
    out = np.full_like(q, 7)
    attend(none, LAYER, q, out=out, scale=0.1)
    assert (out == 7).all()


@pytest.mark.parametrize("target", CHIPS)
def test_a_call_after_one_that_fails(target):
    """Thread blocks that an error stops leave their splits in the workspace."""
    params = make_params("f32")
    attend = kvcache.ops.attention(params, 4, target=target, bounds_checks=True, **SPLITS)
    _, inputs = fill(params, "f32", (40, 7), (1, 1))
    q = np.random.default_rng(3).standard_normal((2, 4, 64)).astype(np.float32)
    expected, out = np.zeros((2, 2, 4, 64), np.float32)
    attend(inputs, LAYER, q, out=expected, scale=0.1)
    row, page = inputs.lut[0], inputs.lut[0, 1]
    for wrong in range(3):
        row[1] = 10**6 + wrong
        with pytest.raises(kvcache.CheckError, match="page id is out of range"):
            attend(inputs, LAYER, q, out=out, scale=0.1)
    row[1] = page
    attend(inputs, LAYER, q, out=out, scale=0.1)
    assert np.array_equal(out, expected)


@pytest.mark.parametrize(
    "format_, group, is_once",
    [("bf16", 4, True), ("fp8-scaled", 1, True), ("bf16", 8, False)],
)
def test_pages_that_are_read_once_are_evicted_first(format_, group, is_once):
    """Tests one warp that reads a token for all heads; the table and scales stay in L2."""
    attend = kvcache.ops.attention(
        make_params(format_, 8, 128), 8 * group, dtype="bf16", split_tokens=256, tile_rows=0
    )
    kernel, _ = attend.compile("sm_90a").kernels.values()
    assert ("ld.global.cs.v" in kernel.ptx) == is_once
    assert "ld.global.cs.b32" not in kernel.ptx


@pytest.mark.parametrize("format_, more", [("f32", {}), ("bf16", {"tile_rows": 16})])
def test_more_splits_than_layers_of_a_grid(format_, more):
    """A layer of the grid has several splits of each row."""
    options = {"split_tokens": 7, "max_splits": 2**15 + 3, **more}
    check(make_params(format_, 1, 16), format_, (80,), (1,), 1, CHIPS[1], **options)


KIVI = kvcache.KVCacheParams(
    "i4",
    2,
    64,
    page_size=32,
    total_num_layers=LAYERS,
    kvcache_quant_config=kvcache.KVCacheQuantizationConfig("f16", 1, "f16", 8),
    enable_prefix_caching=False,
)


def check_two_caches(both, dtypes, target, options):
    """Checks keys of one cache with values of another, for sequences of one token and of several.

    ``dtypes`` are those of the rows written to them; the first is that of queries.
    """
    sizes = (31, 8, 70), (1, 8, 2)
    dtype = dtypes[0]
    inputs = [fill(*each, *sizes)[1] for each in zip(both, dtypes)]
    arguments, lines, calls = [], [], []
    for number, params in enumerate(both):
        types = {
            "blocks": params.blocks_type,
            "lengths": "memref<?xi32>",
            "table": "memref<?x?xi32>",
            "most": "i32",
            "most_cached": "i32",
        }
        if params.kvcache_quant_config:
            types["scales"] = params.scales_type
        names = [f"%{name}{number}" for name in types]
        arguments += [f"{name}: {type_}" for name, type_ in zip(names, types.values())]
        arrays = ", ".join(type_ for type_ in types.values() if type_ != "i32")
        scales = "".join(f" scales {name}" for name in names[5:])
        lines.append(
            f"%cache{number} = kvcache.paged_collection {', '.join(names[:5])}{scales} : "
            f"{arrays} -> {params.collection_type}"
        )
        role = ("key", "value")[number]
        lines.append(
            f"%{role} = kvcache.paged_view {role} %cache{number}[%layer] : "
            f"{params.collection_type}"
        )
        calls += inputs[number].collection(0)
    size, value_size = (params.head_dim for params in both)
    q_type, out_type = (f"memref<?x4x{n}x{dtype}>" for n in (size, value_size))
    workspace = "workspace %work" if "split" in options else ""
    source = f"""
func.func @attend({", ".join(arguments)}, %layer: index, %q: {q_type},
    %offsets: memref<?xi32>, %out: {out_type}, %lse: memref<?x4xf32>, %work: memref<?xi8>) {{
  %scale = arith.constant 0.1 : f32
  {chr(10).join(lines)}
  kvcache.attention %q, %key, %value, %offsets, %scale outs(%out, %lse) {workspace}
    {{causal{", " * bool(options)}{options}}} : {q_type}, {both[0].cache_type},
    {both[1].cache_type}, memref<?xi32>, f32, {out_type}, memref<?x4xf32>
    {", memref<?xi8>" if workspace else ""}
  return
}}"""
    program = kvcache.jit(source, target=target, opt_level=0)
    total = sum(sizes[1])
    q = np.random.default_rng(3).standard_normal((total, 4, size))
    q = q.astype(kvcache.dtypes.dtype(dtype))
    out = np.zeros((total, 4, value_size), q.dtype)
    lse = np.zeros((total, 4), np.float32)
    offsets = inputs[0].row_offsets.view(np.int32)
    program.call("attend", *calls, LAYER, q, offsets, out, lse, np.zeros(2**17, np.int8))
    keys, values = (dense(*each, 80)[role] for role, each in enumerate(zip(both, inputs)))
    if dtype != "f32":  # on tensor cores, elements are rounded
        keys, values = (x.astype(q.dtype).astype(np.float64) for x in (keys, values))
    window = 40 if "window" in options else None
    for b, tokens in enumerate(np.add(*sizes)):
        rows_ = slice(*map(int, offsets[b : b + 2]))
        own = q[rows_], keys[b, :tokens], values[b, :tokens]
        wanted, wanted_lse = model.attend(*own, 0.1, window=window)
        assert close(out[rows_], wanted, ROUNDING[dtype] * np.abs(values).max())
        assert close_lse(lse[rows_], wanted_lse)


@pytest.mark.parametrize("value_format", ["f16", "int8-token", "fp8-scaled", "int4"])
@pytest.mark.parametrize(
    "target, dtype, options",
    [
        ("cpu", "f32", ""),
        (CHIPS[0], "f32", ""),
        (CHIPS[1], "f16", "window = 40"),
        (CHIPS[2], "f32", "split_tokens = 12, max_splits = 4, split_rows = 2"),
    ],
)
def test_keys_and_values_of_other_formats(value_format, target, dtype, options):
    """Tests KIVI's keys, with scales of channels, with values of another cache."""
    dtypes = dtype, FORMATS[value_format][2]
    check_two_caches((KIVI, make_params(value_format)), dtypes, target, options)


GROUPS_OF_7 = kvcache.KVCacheParams(
    "i8",
    2,
    256,
    page_size=16,
    total_num_layers=LAYERS,
    kvcache_quant_config=kvcache.KVCacheQuantizationConfig("f32", 7),
)


@pytest.mark.parametrize(
    "target, options",
    [
        ("cpu", ""),
        (CHIPS[0], ""),
        (CHIPS[1], "split_tokens = 12, max_splits = 4, split_rows = 2"),
    ],
)
@pytest.mark.parametrize(
    "keys, values",
    [
        (make_params("int4", 2, 34), make_params("f32", 2, 17)),
        (make_params("f32", 2, 33), make_params("int4", 2, 16)),
        (make_params("int4", 2, 256), GROUPS_OF_7),
    ],
    ids=["int4-f32", "f32-int4", "int4-int8"],
)
def test_lanes_have_whole_bytes_of_either_cache(keys, values, target, options):
    """Bytes of one cache have two elements, and the other cache has an odd number, or odd groups."""
    check_two_caches((keys, values), ("f32", "f32"), target, options)


@pytest.mark.parametrize("size, value_size", [(192, 128), (64, 160)])
@pytest.mark.parametrize(
    "target, format_, options",
    [
        ("cpu", "bf16", ""),
        (CHIPS[0], "bf16", "tile_rows = 0"),
        (CHIPS[1], "f32", "split_tokens = 12, max_splits = 4, split_rows = 2"),
        (CHIPS[2], "bf16", ""),
        (CHIPS[1], "f16", "tile_rows = 16, split_tokens = 12, max_splits = 4"),
        (CHIPS[0], "fp8-token", "window = 40"),
    ],
)
def test_values_of_other_sizes(target, format_, options, size, value_size):
    """Keys and values have separate caches: DeepSeek's prompts, and longer values."""
    both = make_params(format_, 2, size), make_params(format_, 2, value_size, 32)
    check_two_caches(both, [FORMATS[format_][2]] * 2, target, options)


MERGE = """
func.func @merge(%workspace: memref<?xi8>, %offsets: memref<?xi32>, %out: memref<?x4x24xf32>, %lse: memref<?x4xf32>,
                 %largest: memref<?x4xf32>, %sinks: memref<4xf32>, %scales: memref<2xf32>) {
  kvcache.merge_splits %workspace, %offsets outs(%out, %lse) max_logits %largest sinks %sinks value_scale %scales
      {split = #kvcache.split<max = 5, rows = 3>, exponent_bias = 2.0 : f32} count {
    ^bb0(%sequence: index, %first: index, %rows: index, %i: index):
      %sum = arith.addi %sequence, %i : index
      %five = arith.constant 5 : index
      %one = arith.constant 1 : index
      %rest = arith.remui %sum, %five : index
      %count = arith.addi %rest, %one : index
      kvcache.yield %count : index
    } : memref<?xi8>, memref<?xi32>, memref<?x4x24xf32>, memref<?x4xf32>, memref<?x4xf32>, memref<4xf32>, memref<2xf32>
  return
}
"""


@pytest.mark.parametrize("target", ["cpu", "emulator:sm_80", "emulator:sm_100a"])
def test_merge_splits_of_another_kernel(target):
    """Splits that no attention of the module has stored, with their number from the region."""
    heads, size, most, rows = 4, 24, 5, 3
    counts = [3, 1, 4, 2]  # the third has too many rows to be split
    offsets = np.cumsum([0, *counts], dtype=np.int32)
    rng = np.random.default_rng(5)
    splits = len(counts) * rows * most
    acc = rng.standard_normal((splits, heads, size)).astype(np.float32)
    state = np.stack([rng.uniform(-9, 9, (splits, heads)), rng.uniform(1, 2, (splits, heads))], -1).astype(np.float32)
    workspace = np.concatenate([np.zeros(16, np.int8), acc.view(np.int8).ravel(), state.view(np.int8).ravel()])
    out = np.full((offsets[-1], heads, size), 7, np.float32)
    lse, largest = np.full(out.shape[:2], 7, np.float32), np.full(out.shape[:2], 7, np.float32)
    sinks, scales = rng.standard_normal(heads).astype(np.float32), np.array([0.5, 3], np.float32)
    kvcache.jit(MERGE, target=target).call("merge", workspace, offsets, out, lse, largest, sinks, scales)
    for b, count in enumerate(counts):
        for i in range(count):
            row, number = offsets[b] + i, (b + i) % 5 + 1
            if count > rows or number == 1:
                assert (out[row] == 7).all() and (lse[row] == 7).all() and (largest[row] == 7).all()
                continue
            first = (b * rows + i) * most
            a, s = (x[first : first + number].astype(np.float64) for x in (acc, state))
            exponent = s[..., 0].max(0)
            weights = np.exp2(s[..., 0] - exponent)
            total = (weights * s[..., 1]).sum(0) + np.exp2(np.log2(np.e) * sinks - exponent)
            wanted = (weights[..., None] * a).sum(0) * scales.repeat(2)[:, None] / total[:, None]
            np.testing.assert_allclose(out[row], wanted, rtol=1e-5, atol=1e-5)
            np.testing.assert_allclose(lse[row], np.log(2) * (exponent + np.log2(total)), rtol=1e-5, atol=1e-5)
            np.testing.assert_allclose(largest[row], np.log(2) * (exponent + 2), rtol=1e-6)


@pytest.mark.parametrize("target", ["cpu", "emulator:sm_90a"])
@pytest.mark.parametrize(
    "fault, message",
    [
        ("count", "number of splits that 'count' yields"),
        ("workspace", "number of bytes that attention needs of 'workspace'"),
        ("out", "row of 'out'"),
        (None, None),
    ],
)
def test_merge_splits_checks(target, fault, message):
    source = MERGE.replace("max = 5", "max = 3") if fault == "count" else MERGE
    workspace = np.zeros(16 + 2 * 3 * 5 * 4 * (24 + 2) * 4 - (fault == "workspace"), np.int8)
    rows, heads = np.full((4, 4, 24), 7, np.float32), np.zeros((2, 4, 4), np.float32)
    offsets, sinks, scales = np.array([0, 1, 4], np.int32), np.zeros(4, np.float32), np.ones(2, np.float32)
    program = kvcache.jit(source, target=target, bounds_checks=True, opt_level=0)
    arguments = workspace, offsets, rows[: 3 if fault == "out" else 4], *heads, sinks, scales
    if fault is None:
        return program.call("merge", *arguments)
    with pytest.raises(kvcache.CheckError, match=message):
        program.call("merge", *arguments)
