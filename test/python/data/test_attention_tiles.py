"""Tests of kvcache.ops.attention on tensor cores, against f64 NumPy."""

import ml_dtypes
import model
import numpy as np
import pytest
from attention_checks import (
    CHIPS,
    FORMATS,
    LAYER,
    SPLITS,
    check,
    check_sparse,
    close,
    close_lse,
    dense,
    fill,
    make_params,
    random_mask,
    run,
)
from edits import edit

import kvcache

SWAP = {"swap_operands": True}
PREFETCH = kvcache.AttentionConfig(schedule="prefetch")
ROLES = kvcache.AttentionConfig(schedule="roles")
SEESAW = kvcache.AttentionConfig(schedule="seesaw")
PAIR = kvcache.AttentionConfig(schedule="pair")
# Sequences of no tokens, of several blocks of rows, of one row, and whose last tile is full.
TILES, TILES_NEW = (30, 0, 131, 63, 3), (70, 1, 5, 1, 0)


@pytest.mark.parametrize(
    "target, format_, heads, group, head_dim, page_size, options",
    [
        (CHIPS[0], "bf16", 1, 4, 128, 16, {}),
        (CHIPS[1], "bf16", 1, 4, 128, 64, {}),
        (CHIPS[2], "f16", 1, 4, 64, 64, {"causal": False}),
        (
            CHIPS[0],
            "f16",
            2,
            3,
            80,
            1,
            {"window": 20, "soft_cap": 3.0, "sinks": True, "tile_rows": 32},
        ),
        (CHIPS[1], "bf16", 1, 7, 96, 32, {"window": 33, "causal": False, "tile_rows": 16}),
        (CHIPS[2], "bf16", 1, 2, 144, 16, {"chunk": 48, "sinks": True, "tile_rows": 128}),
        (CHIPS[0], "bf16", 1, 1, 192, 6, {"value_dim": 128, "chunk": 40, "causal": False}),
        (CHIPS[1], "f16", 1, 40, 32, 128, {"window": 100, "value_dim": 16}),
        (CHIPS[2], "bf16", 1, 96, 16, 48, {"window": 50, "chunk": 64, "tile_rows": 128}),
        (CHIPS[1], "bf16", 1, 2, 256, 64, {"causal": False, "tile_rows": 32}),
        (CHIPS[1], "bf16", 2, 4, 64, 16, {"causal": False, "mask": True}),
        (
            CHIPS[0],
            "f16",
            1,
            3,
            128,
            64,
            {"mask": True, "window": 70, "sinks": True, "tile_rows": 128},
        ),
        (CHIPS[0], "bf16", 1, 4, 64, 16, {**SPLITS, "tile_rows": 64}),
        (
            CHIPS[2],
            "f16",
            2,
            2,
            32,
            16,
            {**SPLITS, "tile_rows": 16, "window": 90, "sinks": True},
        ),
        (CHIPS[1], "bf16", 1, 4, 256, 64, {**SPLITS, "tile_rows": 128, "causal": False}),
        # Two warps can't share their values.
        (CHIPS[0], "bf16", 1, 4, 240, 16, {**SPLITS, "tile_rows": 64}),
        (CHIPS[2], "f16", 1, 4, 144, 16, {**SPLITS, "tile_rows": 16}),
        (CHIPS[0], "bf16", 1, 8, 64, 16, {**SPLITS, "split_rows": 5, "tile_rows": 16}),
        (CHIPS[1], "bf16", 1, 6, 64, 16, {"mask": True, "causal": False, "tile_rows": 32, **SWAP}),
    ],
)
def test_tiles(target, format_, heads, group, head_dim, page_size, options):
    """Tests rows of many thread blocks, partial tiles, and sequences of one row, which may be split."""
    params = make_params(format_, heads, head_dim, page_size)
    check(params, format_, TILES, TILES_NEW, group, target, **options)


@pytest.mark.parametrize(
    "format_, heads, group, head_dim, page_size, options",
    [
        ("bf16", 2, 4, 128, 64, {}),
        ("f16", 1, 3, 64, 16, {"causal": False, "sinks": True}),
        ("bf16", 1, 7, 128, 16, {"window": 33}),
        ("f16", 1, 1, 128, 64, {"window": 150, "soft_cap": 3.0, "causal": False}),
        ("bf16", 1, 32, 80, 48, {"chunk": 48, "value_dim": 64}),
        ("bf16", 1, 40, 32, 128, {"mask": True}),
        ("f16", 1, 96, 64, 16, {"scale": -0.5}),
        ("bf16", 1, 4, 64, 64, {"scale": 3.0}),
        ("bf16", 2, 4, 128, 64, {"config": kvcache.AttentionConfig(schedule="roles", keys=64, stages=3)}),
        ("f16", 1, 4, 96, 64, {"config": kvcache.AttentionConfig(schedule="roles", stages=1)}),
        # A slot is filled again after its values outside the window were cleared.
        ("bf16", 1, 4, 64, 64, {"window": 40, "config": kvcache.AttentionConfig(schedule="roles", keys=32, stages=1)}),
    ],
)
def test_tiles_of_warps_with_roles(format_, heads, group, head_dim, page_size, options):
    """Sequences of one query tile and of several thread blocks, and rows that see no tokens."""
    params = make_params(format_, heads, head_dim, page_size)
    check(params, format_, TILES, TILES_NEW, group, CHIPS[2], **{"config": ROLES, **options})


@pytest.mark.parametrize("token", [1, 6])
def test_nan_stays_nan_in_powers_of_both_ways(token):
    """A key that is not a number, in a column of polynomials or of instructions."""
    params = make_params("bf16", 1, 64, 16)
    manager, inputs = fill(params, "bf16", (0,), (9,))
    manager.blocks[0][inputs.lut[0, 0], 0, LAYER, token] = np.nan
    _, out, _, _ = run(params, "bf16", inputs, 2, {"target": CHIPS[2], "config": ROLES}, 0.1)
    seen = np.isnan(np.asarray(out, np.float32)).all(axis=(1, 2))
    assert seen.tolist() == [row >= token for row in range(9)]
    assert np.isfinite(np.asarray(out[:token], np.float32)).all()


@pytest.mark.parametrize(
    "target, format_, group, head_dim, options",
    [
        (CHIPS[0], "bf16", 4, 256, {"tile_rows": 128}),
        (CHIPS[1], "f16", 4, 64, {"tile_rows": 16, **SPLITS}),
        (CHIPS[1], "bf16", 4, 64, {"soft_cap": 9.0}),
        (CHIPS[1], "f16", 4, 64, {"tile_rows": 64, **SPLITS}),
        (CHIPS[2], "bf16", 3, 128, {"window": 33, "tile_rows": 16}),
        ("emulator:sm_100a", "bf16", 4, 64, {"tile_rows": 128}),
        ("emulator:sm_103a", "f16", 4, 64, {"tile_rows": 64, **SPLITS}),
    ],
)
def test_tiles_of_one_stage(target, format_, group, head_dim, options):
    """A tile is copied when all threads have used the tile before."""
    config = kvcache.AttentionConfig(stages=1)
    check(make_params(format_, 1, head_dim, 16), format_, TILES, TILES_NEW, group, target, config=config, **options)


@pytest.mark.parametrize("scale", [-0.5, 3.0, 0.0])
@pytest.mark.parametrize("format_, options", [("bf16", {}), ("f16", {**SPLITS, "sinks": True})])
def test_scales_of_tiles_of_mma_sync(format_, options, scale):
    """The sign of the scale is that of the queries. Beside the lowest number, a large factor overflows."""
    params = make_params(format_, 1, 64, 16)
    check(params, format_, TILES, TILES_NEW, 4, CHIPS[1], scale=scale, tile_rows=16, **options)


PING_PONG, PIPELINED = (
    {"config": kvcache.AttentionConfig(rows=rows, schedule=name)} for rows, name in [(128, "ping_pong"), (64, "pipelined")]
)


@pytest.mark.long
@pytest.mark.parametrize(
    "format_, heads, group, head_dim, page_size, options",
    [
        ("bf16", 2, 4, 64, 16, {}),
        ("f16", 1, 5, 128, 64, {"soft_cap": 3.0, "sinks": True, "causal": False}),
        ("bf16", 1, 32, 256, 48, {"sinks": True}),
        ("bf16", 1, 3, 192, 7, {"value_dim": 64, **PIPELINED}),
        ("f16", 1, 4, 144, 16, {"value_dim": 32, "causal": False}),
        # The sign of the scale is that of the queries. Beside the lowest number, a large factor overflows.
        ("bf16", 1, 4, 64, 64, {"scale": -0.5}),
        ("f16", 1, 4, 128, 64, {"scale": 3.0, **PIPELINED}),
        ("bf16", 1, 4, 64, 64, {"scale": 0.0, "sinks": True}),
        ("bf16", 2, 8, 16, 32, {}),
        ("bf16", 1, 4, 64, 16, {"mask": True, "causal": False, **PING_PONG}),
        ("f16", 1, 4, 128, 16, {"mask": True, "soft_cap": 9.0, **PIPELINED}),
        ("bf16", 1, 4, 128, 16, {"config": kvcache.AttentionConfig(keys=80, stages=3)}),
        ("bf16", 1, 4, 128, 16, {"window": 20}),
        ("f16", 2, 3, 64, 64, {"window": 70, "causal": False, **PIPELINED}),
        ("bf16", 1, 2, 256, 32, {"window": 33, "sinks": True}),
        ("bf16", 1, 4, 80, 48, {"chunk": 50}),
        ("f16", 1, 4, 64, 16, {"chunk": 64, "window": 90, "mask": True, **PING_PONG}),
    ],
)
def test_tiles_whose_products_overlap(format_, heads, group, head_dim, page_size, options):
    params = make_params(format_, heads, head_dim, page_size)
    check(params, format_, TILES, TILES_NEW, group, CHIPS[1], **options)


@pytest.mark.long
def test_thread_blocks_without_rows_read_no_mask():
    """The last sequence has a thread block that begins after its rows, and after those of the mask."""
    params, new = make_params("bf16", 1, 64, 16), (31, 2)
    _, inputs = fill(params, "bf16", (30, 40), new)
    mask = random_mask(new)[0][: sum(new)].copy()
    options = {"mask": True, "causal": False, "target": CHIPS[1]}
    results = [
        run(params, "bf16", inputs, 4, {**options, **more}, 0.1, extra=0, mask=mask)
        for more in (PING_PONG, {"target": "cpu"})
    ]
    assert close(results[0][1], results[1][1].astype(np.float64), 0.02)
    assert close_lse(results[0][2], results[1][2])


@pytest.mark.parametrize(
    "target, format_, head_dim, page_size, options",
    [
        (CHIPS[0], "fp8-scaled", 128, 16, {}),
        (CHIPS[1], "int8", 64, 64, {"dtype": "f16", "tile_rows": 16}),
        (CHIPS[2], "nvfp4", 96, 3, {"window": 30, "tile_rows": 128}),
        (CHIPS[1], "mxfp4", 32, 16, {"dtype": "bf16", "causal": False}),
        (CHIPS[0], "int4", 80, 32, {"chunk": 50}),
        (CHIPS[2], "fp8-scaled", 256, 16, {"static_scales": True, "soft_cap": 9.0}),
        (
            CHIPS[1],
            "fp8",
            48,
            5,
            {"dtype": "f16", "value_dim": 16, "static_scales": True, "sinks": True},
        ),
        (CHIPS[0], "fp8-token", 128, 16, {"static_scales": True}),
        (CHIPS[1], "int8-token", 64, 64, {"dtype": "bf16", "window": 33, "tile_rows": 128}),
        (CHIPS[2], "int8-token", 80, 3, {"dtype": "f16", "value_dim": 32, "tile_rows": 16}),
        # Two warpgroups convert tiles of 128 tokens.
        (CHIPS[1], "fp8", 128, 16, {"dtype": "bf16", "static_scales": True}),
        (CHIPS[1], "fp8-scaled", 64, 64, {"soft_cap": 9.0, "chunk": 50}),
        (CHIPS[1], "nvfp4", 128, 5, {"window": 33, "sinks": True}),
        (CHIPS[1], "int4", 96, 16, {"causal": False}),
        # In-register dequantization to f16.
        (CHIPS[0], "fp8", 128, 16, {"dtype": "bf16", "static_scales": True, "tile_rows": 16}),
        (CHIPS[1], "fp8", 64, 64, {"dtype": "f16", "tile_rows": 32, **SPLITS}),
        (CHIPS[0], "fp8-scaled", 64, 5, {"tile_rows": 32, "window": 33, "sinks": True, **SPLITS}),
        (CHIPS[1], "fp8-scaled", 32, 16, {"tile_rows": 16, **SPLITS}),
        (CHIPS[2], "fp8-token", 256, 16, {"tile_rows": 16, "soft_cap": 9.0}),
        (CHIPS[1], "fp8-token", 256, 64, {"tile_rows": 32, **SPLITS}),
        (CHIPS[2], "int8", 64, 64, {"dtype": "bf16", "tile_rows": 32, "value_dim": 32, "chunk": 50}),
        (CHIPS[1], "int8-token", 96, 16, {"dtype": "f16", "tile_rows": 16, **SPLITS}),
        (CHIPS[0], "nvfp4", 128, 16, {"tile_rows": 16, **SPLITS}),
        ("emulator:sm_89", "nvfp4", 64, 5, {"dtype": "f16", "tile_rows": 16, "window": 33, "sinks": True}),
        (CHIPS[1], "nvfp4", 128, 64, {"tile_rows": 32, "static_scales": True, **SPLITS}),
        (CHIPS[1], "nvfp4", 128, 16, {"dtype": "f16", "tile_rows": 16, "value_dim": 64, "chunk": 50}),
        (CHIPS[2], "nvfp4", 256, 16, {"tile_rows": 16, "soft_cap": 9.0, **SPLITS}),
        ("emulator:sm_120a", "nvfp4", 256, 16, {"dtype": "f16", "tile_rows": 32, "causal": False, **SPLITS}),
        *(
            (CHIPS[1], "nvfp4", 64, 16, {"tile_rows": 32, "config": kvcache.AttentionConfig(keys=keys)})
            for keys in (16, 48)
        ),
        (CHIPS[0], "int4-halves", 128, 16, {"tile_rows": 16, **SPLITS}),
        ("emulator:sm_89", "int4-halves", 32, 5, {"dtype": "f16", "tile_rows": 16, "window": 33, "sinks": True}),
        (CHIPS[1], "int4-halves", 128, 64, {"dtype": "f16", "tile_rows": 32, "value_dim": 64, "chunk": 50}),
        (CHIPS[1], "int4-token", 96, 16, {"dtype": "f16", "tile_rows": 16, **SPLITS}),
        (CHIPS[0], "int4-token", 64, 3, {"tile_rows": 32, "soft_cap": 9.0}),
        (CHIPS[2], "int4-token", 256, 16, {"tile_rows": 16, **SPLITS}),
        ("emulator:sm_120a", "int4-token", 192, 16, {"dtype": "f16", "tile_rows": 32, "causal": False, **SPLITS}),
        ("emulator:sm_120a", "mxfp4", 128, 16, {"dtype": "bf16", "tile_rows": 16, **SPLITS}),
        (CHIPS[1], "mxfp4", 96, 16, {"dtype": "f16", "tile_rows": 32, "static_scales": True}),
        (CHIPS[2], "mxfp4", 64, 5, {"dtype": "bf16", "tile_rows": 32, "window": 33, "sinks": True, **SPLITS}),
        # Tiles of other numbers of tokens than 32 lanes load scales of.
        *(
            (CHIPS[1], "int4-halves", 64, 16, {"tile_rows": 32, "config": kvcache.AttentionConfig(keys=keys)})
            for keys in (16, 48)
        ),
        *(
            (CHIPS[1], "fp8-scaled", 64, 16, {"tile_rows": 16, "config": kvcache.AttentionConfig(keys=keys)})
            for keys in (16, 48, 80)
        ),
    ],
)
def test_tiles_of_other_formats(target, format_, head_dim, page_size, options):
    """Elements are rounded to the type of the queries."""
    options = dict(options)
    dtype = options.pop("dtype", FORMATS[format_][2])
    check(
        make_params(format_, 1, head_dim, page_size),
        dtype,
        TILES,
        TILES_NEW,
        3,
        target,
        **options,
    )


@pytest.mark.parametrize(
    "target, format_, group, head_dim, value_dim, options",
    [
        (CHIPS[0], "bf16", 16, 576, 512, {}),
        (CHIPS[1], "f16", 128, 576, 512, {"tile_rows": 16}),
        (CHIPS[2], "bf16", 40, 64, 48, {"causal": False, "sinks": True}),
        (CHIPS[2], "f16", 3, 640, 288, {"window": 30}),
        (CHIPS[1], "fp8", 16, 576, 512, {"dtype": "bf16", "static_scales": True}),
        (CHIPS[0], "fp8-scaled", 20, 112, 96, {"chunk": 40, "soft_cap": 9.0}),
        (CHIPS[2], "fp8-token", 16, 576, 512, {}),
        (CHIPS[0], "int8-token", 16, 64, 32, {"dtype": "f16"}),
        (CHIPS[2], "bf16", 8, 576, 512, {**SPLITS, "tile_rows": 32}),
        (CHIPS[0], "f16", 40, 576, 512, {**SPLITS, "window": 60}),
        (CHIPS[1], "fp8-token", 16, 576, 512, SPLITS),
        # By wgmma, with swapAB for fewer heads.
        (CHIPS[1], "bf16", 12, 576, 512, {**SPLITS, "window": 30, "soft_cap": 9.0, "sinks": True}),
        (CHIPS[1], "bf16", 64, 576, 512, {"page_size": 64}),
        (CHIPS[1], "f16", 128, 576, 512, {"page_size": 64, "window": 30, "sinks": True, **SPLITS}),
        (CHIPS[1], "bf16", 64, 640, 256, {"page_size": 3, "causal": False}),
        (CHIPS[1], "bf16", 64, 80, 48, {"soft_cap": 9.0}),
        (CHIPS[1], "fp8-token", 64, 576, 512, {}),
        (CHIPS[1], "fp8", 64, 640, 512, {"dtype": "bf16", "static_scales": True, "page_size": 8, **SPLITS}),
        # By tcgen05.
        (CHIPS[2], "bf16", 64, 576, 512, {"page_size": 64}),
        (CHIPS[2], "f16", 128, 576, 512, {"page_size": 64, "window": 30, "sinks": True, **SPLITS}),
        (CHIPS[2], "bf16", 64, 640, 256, {"page_size": 3, "causal": False}),
        (CHIPS[2], "bf16", 64, 80, 48, {"soft_cap": 9.0}),
        (CHIPS[2], "fp8-token", 64, 576, 512, {}),
        (CHIPS[2], "fp8", 64, 576, 512, {"dtype": "f16", "static_scales": True}),
        # Warpgroups in turns: any number of tiles, work items that share pipes, soft caps, and as without turns.
        (CHIPS[1], "bf16", 64, 576, 512, {"lengths": (300, 0, 191), "page_size": 64}),
        (CHIPS[1], "f16", 64, 448, 384, {"lengths": (260, 64, 127), "soft_cap": 9.0, "sinks": True}),
        (CHIPS[1], "bf16", 128, 448, 384, {"lengths": (490, 0, 319), "scheduled_blocks": 2, "config": SEESAW, **SPLITS}),
        (CHIPS[1], "bf16", 64, 448, 384, {"lengths": (490, 0, 319), "scheduled_blocks": 0, **SPLITS}),
        (CHIPS[1], "bf16", 64, 448, 384, {"lengths": (300, 0, 191), "config": PREFETCH}),
        # Pairs of thread blocks: any number of tiles, half of the last one, two shares of the heads, and pages of any size.
        (CHIPS[2], "bf16", 128, 576, 512, {"lengths": (300, 0, 191), "page_size": 64, "config": PAIR}),
        (CHIPS[2], "f16", 256, 192, 128, {"lengths": (260, 64, 25), "soft_cap": 9.0, "sinks": True, "config": PAIR}),
        (CHIPS[2], "bf16", 128, 256, 256, {"page_size": 3, "causal": False, "config": PAIR}),
        (CHIPS[2], "bf16", 128, 160, 128, {"lengths": (130, 33, 95), "mask": True, "config": PAIR}),
    ],
)
def test_tiles_of_latent_rows(target, format_, group, head_dim, value_dim, options):
    """A tile is keys and values, and two warps or warpgroups share the accumulators of large values."""
    options = {"value_dim": value_dim, **options}
    dtype = options.pop("dtype", FORMATS[format_][2])
    check(
        make_params(format_, 1, head_dim, options.pop("page_size", 16), mla=True),
        dtype,
        options.pop("lengths", (30, 0, 63)),
        (9 if group < 64 else 3, 1, 2),
        group,
        target,
        **options,
    )


@pytest.mark.parametrize(
    "target, format_, heads, group, head_dim, page_size, options",
    [
        # Latent caches, whose `heads` is 0.
        (CHIPS[0], "bf16", 0, 128, 576, 16, {"value_dim": 512}),
        (CHIPS[1], "f16", 0, 16, 576, 64, {"value_dim": 512, **SPLITS, "sinks": True, **SWAP}),
        (CHIPS[2], "bf16", 0, 40, 64, 3, {"value_dim": 48, "soft_cap": 9.0}),
        (CHIPS[2], "bf16", 0, 128, 576, 64, {"value_dim": 512, **SPLITS, "split_rows": 40}),
        (CHIPS[0], "fp8-token", 0, 16, 576, 16, {"value_dim": 512, **SPLITS}),
        (CHIPS[1], "int8-token", 0, 20, 64, 16, {"value_dim": 32, "dtype": "f16"}),
        (CHIPS[2], "nvfp4", 0, 3, 64, 16, {"value_dim": 32}),
        (CHIPS[1], "bf16", 0, 64, 576, 64, {"value_dim": 512}),
        (CHIPS[1], "fp8-token", 0, 128, 576, 16, {"value_dim": 512, **SPLITS}),
        (CHIPS[2], "f16", 0, 64, 576, 64, {"value_dim": 512}),
        (CHIPS[2], "int8-token", 0, 128, 576, 16, {"value_dim": 512, **SPLITS}),
        # Keys and values.
        (CHIPS[0], "bf16", 2, 8, 128, 16, {}),
        (CHIPS[1], "f16", 1, 16, 64, 4, {**SPLITS, "split_rows": 30}),
        (CHIPS[2], "bf16", 2, 3, 80, 16, {"tile_rows": 64, "value_dim": 32}),
        (CHIPS[2], "f16", 1, 96, 64, 32, {"tile_rows": 32, **SPLITS, "sinks": True}),
        (CHIPS[0], "int4", 1, 8, 256, 16, {"tile_rows": 128}),
        (CHIPS[1], "fp8-token", 2, 40, 64, 16, {"tile_rows": 16}),
        (CHIPS[1], "bf16", 1, 3, 192, 8, {"tile_rows": 16, "value_dim": 128}),
        (CHIPS[2], "bf16", 1, 64, 128, 16, SPLITS),
    ],
)
def test_tiles_of_sparse_rows(target, format_, heads, group, head_dim, page_size, options):
    """Rows are gathered by id, or converted; columns are several tiles and a partial one."""
    params = make_params(format_, heads or 1, head_dim, page_size, mla=not heads)
    options = dict(options)
    dtype = options.pop("dtype", FORMATS[format_][2])
    new = (1, 2, 2) if group < 64 else (1, 1, 1)
    check_sparse(params, dtype, group, target, (9, 0, 90), new, columns=91, **options)


@pytest.mark.parametrize("kind", ["open", "continuous"])
@pytest.mark.parametrize(
    "target, format_, options",
    [
        (CHIPS[0], "bf16", {}),
        (CHIPS[1], "bf16", {"window": 40}),
        (CHIPS[2], "fp8", {"tile_rows": 16}),
        (CHIPS[1], "f16", {**SPLITS, "tile_rows": 32}),
    ],
)
def test_tiles_of_other_caches(target, format_, options, kind):
    """Tests open page sizes and continuous caches, against a cache of static pages.

    With a window, tiles begin at other tokens.
    """
    page = 128 if kind == "continuous" else 16
    params = make_params(format_, 2, 64, page)
    dtype = "bf16" if format_ == "fp8" else format_
    manager, inputs = fill(params, dtype, (30, 70), (20, 1))
    attend = kvcache.ops.attention(params, 8, dtype=dtype, target=target, **options)
    q = (
        np.random.default_rng(3)
        .standard_normal((21, 8, 64))
        .astype(kvcache.dtypes.dtype(dtype))
    )
    (expected, out), lse = np.zeros((2, *q.shape), q.dtype), np.zeros(
        (2, 21, 8), np.float32
    )
    attend(inputs, LAYER, q, out=expected, lse=lse[0], scale=0.1)
    source = edit(attend.source, (f"x2x?x{page}x", "x2x?x?x"))
    blocks, lengths, table, *sizes = inputs.collection(0)
    if kind == "open":
        source = edit(source, (f"page_size = {page}", "page_size = ?"))
    else:
        source = edit(
            source,
            (f", page_size = {page}", ""),
            ("kvcache.paged", "kvcache.continuous"),
            ("memref<?x?xi32, strided<[?, 1]>>", "memref<?xi32>"),
        )
        table = np.ascontiguousarray(table[:, 0])
    more = (
        [np.zeros(attend.workspace_size(2), np.int8)] if "split_tokens" in options else []
    )
    offsets = inputs.row_offsets.view(np.int32)
    program = kvcache.jit(source, target=target, opt_level=0)
    program.call(
        "attention",
        blocks,
        lengths,
        table,
        *sizes,
        LAYER,
        q,
        offsets,
        out,
        lse[1],
        0.1,
        *more,
    )
    assert expected.any()
    bound = 2**-8 if "window" in options else 0
    assert close(out, expected.astype(np.float64), bound)
    np.testing.assert_allclose(lse[1], lse[0], rtol=0, atol=1e-5 if bound else 0)


@pytest.mark.parametrize("format_", ["nvfp4", "int4-halves", "mxfp4"])
def test_sparse_rows_of_four_bits_are_those_of_the_sequence(format_):
    """Tests all tokens of a sequence as sparse rows, in pages of another order, and rows without a token."""
    params = make_params(format_, 1, 128)
    manager, inputs = fill(params, "bf16", (70,), (1,))
    pages = inputs.lut[0, :5].astype(np.int32)
    slots = (pages[:, None] * 16 + np.arange(16, dtype=np.int32)).ravel()[:71]
    rows_ = np.full((1, 80), -1, np.int32)
    rows_[0, np.random.default_rng(4).permutation(80)[:71]] = slots
    q = np.random.default_rng(3).standard_normal((1, 8, 128)).astype(ml_dtypes.bfloat16)
    results = []
    for options, arrays in (({}, {}), ({"rows": True}, {"rows": rows_})):
        attend = kvcache.ops.attention(params, 8, dtype="bf16", out_dtype="f32", tile_rows=16, causal=False, target=CHIPS[1], **options)
        out, lse = np.zeros((1, 8, 128), np.float32), np.zeros((1, 8), np.float32)
        attend(inputs, LAYER, q, out=out, lse=lse, scale=0.1, **arrays)
        results.append((out, lse))
    (expected, expected_lse), (out, lse) = results
    assert expected.any()
    assert close(out, expected, 2**-10 * np.abs(expected).max())
    np.testing.assert_allclose(lse, expected_lse, rtol=0, atol=1e-5)


def test_f16_probs_do_not_vanish():
    """Tests many probabilities of 2^-27, below the smallest f16, with one of 1."""
    params = make_params("f16", heads=1, head_dim=16)
    manager, inputs = fill(params, "f16", (500,), (1,))
    blocks = manager.blocks[0][:, :, LAYER]
    blocks[:, 0] = 0
    blocks[inputs.lut[0, 0], 0, 0] = 1
    blocks[:, 1] = 1
    blocks[inputs.lut[0, 0], 1, 0] = 0
    q = np.full((1, 4, 16), 1, np.float16)
    out = np.zeros((1, 4, 16), np.float32)
    attend = kvcache.ops.attention(params, 4, dtype="f16", out_dtype="f32", target=CHIPS[1])
    attend(inputs, LAYER, q, out=out, scale=27 * np.log(2) / 16)
    np.testing.assert_allclose(out, 500 * 2.0**-27, rtol=1e-3)


@pytest.mark.parametrize("largest", [-60, 100])
def test_dequantized_tiles_of_any_magnitude(largest):
    """Tests queries beyond f16, and scales of values whose largest comes last, else probabilities vanish."""
    params = make_params("fp8-scaled", heads=1, head_dim=32)
    manager, inputs = fill(params, "bf16", (130,), (1,))
    rng = np.random.default_rng(8)
    elements = rng.integers(0, 64, manager.blocks[0].shape).astype(np.uint8)  # below 2
    manager.blocks[0][...] = (elements | rng.integers(0, 2, elements.shape).astype(np.uint8) << 7).view(manager.blocks[0].dtype)
    scales = manager.scales[0]
    scales[:, 0] = np.float32(2) ** -60 * rng.uniform(0.5, 2, scales[:, 0].shape)
    exponents = np.sort(rng.uniform(-30, 0, 131)) + largest
    rows = inputs.lut[0, np.arange(131) // 16].astype(int), np.arange(131) % 16
    scales[rows[0], 1, LAYER, rows[1], 0] = np.float32(2) ** exponents[:, None] * rng.uniform(0.2, 0.4, (131, 2))
    q = rng.standard_normal((1, 4, 32)) * np.array([2.0**60, 2.0**58, 2.0**-100, 0])[:, None]
    q = q.astype(ml_dtypes.bfloat16)
    out, lse = np.zeros((1, 4, 32), np.float32), np.zeros((1, 4), np.float32)
    attend = kvcache.ops.attention(params, 4, dtype="bf16", out_dtype="f32", tile_rows=16, target=CHIPS[1])
    attend(inputs, LAYER, q, out=out, lse=lse, scale=0.1)
    keys, values = dense(params, inputs, 131)[:, 0]
    wanted, wanted_lse = model.attend(q, keys, values, 0.1)
    assert close(out, wanted, 2**-11 * np.abs(values).max())
    np.testing.assert_allclose(lse, wanted_lse, rtol=0, atol=1e-5)
