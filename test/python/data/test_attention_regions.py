"""Tests of the regions ``score`` and ``mask`` of kvcache.attention, against f64 NumPy."""

import numpy as np
import pytest
from attention_checks import CHIPS, FORMATS, ROUNDING, close, close_lse, dense, fill, make_params
from region_programs import Regions, attend, model

TARGETS = ["cpu", *CHIPS]
DISTANCE = """
  %distance = arith.subi %key, %query : index
  %integer = arith.index_cast %distance : index to i32
  %float = arith.sitofp %integer : i32 to f32
"""


def use_alibi(s, b, h, q, k, slopes):
    return s + slopes[h] * (k - q), k <= q


def use_table(s, b, h, q, k, table):
    return s + table[h, np.clip(k - q + 8, 0, 16)], k == k


def use_cap(s, b, h, q, k):
    return 3 * np.tanh(s / 3), k <= q


def use_prefix(s, b, h, q, k, prefixes):
    return s, (k <= q) | (k < prefixes[b])


def use_documents(s, b, h, q, k, documents):
    return s, (k <= q) & (documents[b, q] == documents[b, k])


def use_globals(s, b, h, q, k):
    return s, (k <= q) & ((q - k < 9) | (k < 2))


def use_window(s, b, h, q, k):
    return s, (k <= q) & (k > q - 9)


def use_chunks(s, b, h, q, k):
    return s, k // 40 == q // 40


def use_documents_in_window(s, b, h, q, k, documents):
    return s, (k <= q) & (k > q - 20) & (documents[b, q] == documents[b, k])


def use_loops(s, b, h, q, k, slopes):
    return s + np.concatenate([[0], np.cumsum(slopes[:2], dtype=float)])[k % 3], k <= q


def use_late_prefix(s, b, h, q, k, prefixes):
    return s, k < prefixes[b] - 20


def use_quotient(s, b, h, q, k, numbers):
    return s, (k < 1) | (numbers[b] < 0)


def use_branches(s, b, h, q, k, slopes):
    """Half of the heads have a bias, and exclude tokens by scores: rows at 0, 1 and 2 see none."""
    biased = np.where(k % 3 == 1, s + slopes[h], s)
    return np.where(h % 2 == 0, biased, np.where(q < 3, -np.inf, s)), (k <= q) & (k + h != q)


SAME_DOCUMENT = """
        %own = memref.load %documents[%sequence, %query] : memref<?x?xi32>
        %other = memref.load %documents[%sequence, %key] : memref<?x?xi32>
        %sees = arith.cmpi eq, %own, %other : i32
        kvcache.yield %sees : i1
        """

CASES = {
    "alibi": Regions(
        use_alibi,
        DISTANCE
        + """
        %slope = memref.load %slopes[%head] : memref<?xf32>
        %y = math.fma %slope, %float, %s : f32
        kvcache.yield %y : f32
        """,
        types={"slopes": "memref<?xf32>"},
        attributes="{causal}",
    ),
    "table": Regions(
        use_table,
        """
        %c0 = arith.constant 0 : index
        %c8 = arith.constant 8 : index
        %c16 = arith.constant 16 : index
        %distance = arith.subi %key, %query : index
        %moved = arith.addi %distance, %c8 : index
        %low = arith.maxsi %moved, %c0 : index
        %bucket = arith.minsi %low, %c16 : index
        %bias = memref.load %table[%head, %bucket] : memref<?x17xf32>
        %y = arith.addf %s, %bias : f32
        kvcache.yield %y : f32
        """,
        types={"table": "memref<?x17xf32>"},
    ),
    "cap": Regions(
        use_cap,
        """
        %cap = arith.constant 3.0 : f32
        %small = arith.divf %s, %cap : f32
        %bent = math.tanh %small : f32
        %y = arith.mulf %bent, %cap : f32
        kvcache.yield %y : f32
        """,
        attributes="{causal}",
    ),
    # An index comes out of a branch.
    "branched index": Regions(
        lambda s, b, h, q, k, prefixes, documents: (s + documents[b, np.where(prefixes[b] > 0, k, 0)], k <= q),
        """
        %c0 = arith.constant 0 : index
        %zero = arith.constant 0 : i32
        %prefix = memref.load %prefixes[%sequence] : memref<?xi32>
        %some = arith.cmpi sgt, %prefix, %zero : i32
        %index = scf.if %some -> index {
          scf.yield %key : index
        } else {
          scf.yield %c0 : index
        }
        %number = memref.load %documents[%sequence, %index] : memref<?x?xi32>
        %bias = arith.sitofp %number : i32 to f32
        %y = arith.addf %s, %bias : f32
        kvcache.yield %y : f32
        """,
        types={"prefixes": "memref<?xi32>", "documents": "memref<?x?xi32>"},
        attributes="{causal}",
    ),
    "prefix": Regions(
        use_prefix,
        mask="""
        %prefix = memref.load %prefixes[%sequence] : memref<?xi32>
        %end = arith.index_cast %prefix : i32 to index
        %before = arith.cmpi sle, %key, %query : index
        %inside = arith.cmpi slt, %key, %end : index
        %sees = arith.ori %before, %inside : i1
        kvcache.yield %sees : i1
        """,
        types={"prefixes": "memref<?xi32>"},
    ),
    # Rows of sequences of few tokens see none, and do not read any.
    "late prefix": Regions(
        use_late_prefix,
        mask="""
        %c20 = arith.constant 20 : i32
        %prefix = memref.load %prefixes[%sequence] : memref<?xi32>
        %end = arith.subi %prefix, %c20 : i32
        %token = arith.index_cast %key : index to i32
        %sees = arith.cmpi slt, %token, %end : i32
        kvcache.yield %sees : i1
        """,
        types={"prefixes": "memref<?xi32>"},
    ),
    "documents": Regions(
        use_documents,
        mask=SAME_DOCUMENT,
        types={"documents": "memref<?x?xi32>"},
        attributes="{causal}",
    ),
    "documents in a window": Regions(
        use_documents_in_window,
        mask=SAME_DOCUMENT,
        types={"documents": "memref<?x?xi32>"},
        attributes="{causal, window = 20}",
    ),
    # Ops that are not elementwise, and values that are no elements of vectors.
    "loops": Regions(
        use_loops,
        """
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c3 = arith.constant 3 : index
        %half = arith.constant 0.5 : f32
        %count = arith.remui %key, %c3 : index
        %sum = scf.for %i = %c0 to %count step %c1 iter_args(%before = %s) -> f32 {
          %one = memref.subview %slopes[%i] [1] [1] : memref<?xf32> to memref<1xf32, strided<[1], offset: ?>>
          %slope = memref.load %one[%c0] : memref<1xf32, strided<[1], offset: ?>>
          %after = arith.addf %before, %slope : f32
          scf.yield %after : f32
        }
        %pair = vector.broadcast %sum : f32 to vector<2xf32>
        %twice = arith.addf %pair, %pair : vector<2xf32>
        %first = vector.extract %twice[0] : f32 from vector<2xf32>
        %y = arith.mulf %first, %half : f32
        kvcache.yield %y : f32
        """,
        types={"slopes": "memref<?xf32>"},
        attributes="{causal}",
    ),
    "globals": Regions(
        use_globals,
        mask="""
        %c9 = arith.constant 9 : index
        %c2 = arith.constant 2 : index
        %distance = arith.subi %query, %key : index
        %near = arith.cmpi slt, %distance, %c9 : index
        %global = arith.cmpi slt, %key, %c2 : index
        %sees = arith.ori %near, %global : i1
        kvcache.yield %sees : i1
        """,
        attributes="{causal}",
    ),
    "window": Regions(
        use_window,
        mask="""
        %c9 = arith.constant 9 : index
        %first = arith.subi %query, %c9 : index
        %inside = arith.cmpi sgt, %key, %first : index
        %before = arith.cmpi ule, %key, %query : index
        %sees = arith.andi %inside, %before : i1
        kvcache.yield %sees : i1
        """,
    ),
    "chunks": Regions(
        use_chunks,
        mask="""
        %c40 = arith.constant 40 : i32
        %token = arith.index_cast %key : index to i32
        %row = arith.index_cast %query : index to i32
        %other = arith.floordivsi %token, %c40 : i32
        %own = arith.floordivsi %row, %c40 : i32
        %sees = arith.cmpi eq, %own, %other : i32
        kvcache.yield %sees : i1
        """,
    ),
    "quotient": Regions(
        use_quotient,
        mask="""
        %one = arith.constant 1 : i64
        %number = memref.load %numbers[%sequence] : memref<?xi64>
        %divisor = arith.maxsi %number, %one : i64
        %quotient = arith.divsi %number, %divisor : i64
        %token = arith.index_cast %key : index to i64
        %sees = arith.cmpi ult, %token, %quotient : i64
        kvcache.yield %sees : i1
        """,
        types={"numbers": "memref<?xi64>"},
    ),
    "branches": Regions(
        use_branches,
        """
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c2 = arith.constant 2 : index
        %c3 = arith.constant 3 : index
        %none = arith.constant 0xFF800000 : f32
        %odd = arith.remui %head, %c2 : index
        %even = arith.cmpi eq, %odd, %c0 : index
        %y = scf.if %even -> f32 {
          %slope = memref.load %slopes[%head] : memref<?xf32>
          %third = arith.remui %key, %c3 : index
          %one = arith.cmpi eq, %third, %c1 : index
          %sum = arith.addf %s, %slope : f32
          %biased = arith.select %one, %sum, %s : f32
          scf.yield %biased : f32
        } else {
          %early = arith.cmpi slt, %query, %c3 : index
          %rest = arith.select %early, %none, %s : f32
          scf.yield %rest : f32
        }
        kvcache.yield %y : f32
        """,
        """
        %sum = arith.addi %key, %head : index
        %sees = arith.cmpi ne, %sum, %query : index
        kvcache.yield %sees : i1
        """,
        types={"slopes": "memref<?xf32>"},
        attributes="{causal}",
    ),
}


def make_arrays(regions, heads, tokens):
    """The arrays of regions, for sequences of numbers of tokens."""
    rng = np.random.default_rng(5)
    arrays = {
        "slopes": np.linspace(-0.4, 0.3, heads, dtype=np.float32),
        "table": rng.standard_normal((heads, 17)).astype(np.float32),
        "numbers": np.array([-5, 3, -(2**63)], np.int64)[: len(tokens)],
        "prefixes": np.array([n // 2 + 1 for n in tokens], np.int32),
        # A token after the last of a sequence would be out of bounds.
        "documents": (np.arange(max(tokens)) // 11 + np.zeros((len(tokens), 1))).astype(np.int32),
    }
    return {name: arrays[name] for name in regions.types}


def check(name, target, format_, lengths, new, group, head_dim=64, mla=False, heads=1, unread=0, **options):
    """Compares with the model. The first ``unread`` tokens of each sequence are NaN in the cache."""
    dtype = options.pop("dtype", FORMATS[format_][2])
    regions = CASES[name] if isinstance(name, str) else name
    params = make_params(format_, heads, head_dim, 16, mla)
    manager, inputs = fill(params, dtype, lengths, new)
    tokens = [length + more for length, more in zip(lengths, new)]
    roles = dense(params, inputs, max(tokens))
    if unread:
        manager.blocks[0][inputs.lut[:, : unread // 16].astype(int)] = np.nan
    arrays = make_arrays(regions, group * params.n_kv_heads_per_device, tokens)
    q, out, lse, _ = attend(params, dtype, inputs, group, regions, arrays, options, target)
    size = out.shape[-1]
    for b, count in enumerate(tokens):
        rows = slice(*map(int, inputs.row_offsets[b : b + 2]))
        wanted, wanted_lse = model(
            q[rows].astype(np.float64), roles[0, b, :count], roles[-1, b, :count, :, :size],
            head_dim**-0.5, b, regions, arrays,
        )
        assert close(out[rows], wanted, ROUNDING[dtype] * np.abs(roles[-1]).max())
        assert close_lse(lse[rows], wanted_lse)


# Sequences of a few rows in a page, of one row after two tiles, and of several tiles of rows.
LENGTHS, NEW = (5, 130, 0), (2, 1, 37)
SPLITS = {"split_tokens": 12, "max_splits": 4, "split_rows": 2}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("target", TARGETS)
def test_regions_of_warps(name, target):
    """Tests rows that warps or loops of the CPU compute."""
    check(name, target, "f32", LENGTHS, NEW, 3, head_dim=16)


@pytest.mark.parametrize(
    "target, name, format_, group, options",
    [
        (CHIPS[0], "alibi", "bf16", 4, {}),
        (CHIPS[0], "documents", "bf16", 3, {"tile_rows": 32}),
        (CHIPS[0], "branches", "f16", 2, {"tile_rows": 16, **SPLITS}),
        (CHIPS[0], "branched index", "bf16", 4, {"tile_rows": 16}),
        (CHIPS[1], "branched index", "bf16", 4, {"tile_rows": 64}),
        (CHIPS[1], "table", "f16", 4, {"tile_rows": 128}),
        (CHIPS[1], "branches", "bf16", 3, {"tile_rows": 64}),
        (CHIPS[1], "documents", "bf16", 4, {"tile_rows": 16, "swap_operands": "true"}),
        (CHIPS[1], "alibi", "f16", 4, {"tile_rows": 32, "swap_operands": "true", **SPLITS}),
        (CHIPS[1], "prefix", "bf16", 4, {"tile_rows": 16, "scheduled_blocks": 0, **SPLITS}),
        (CHIPS[0], "late prefix", "bf16", 4, {"tile_rows": 16, **SPLITS}),
        (CHIPS[1], "late prefix", "bf16", 4, {"tile_rows": 64}),
        (CHIPS[1], "late prefix", "bf16", 4, {"tile_rows": 16, "swap_operands": "true"}),
        (CHIPS[2], "late prefix", "bf16", 4, {"tile_rows": 64}),
        (CHIPS[0], "late prefix", "fp8-token", 4, {"tile_rows": 16, **SPLITS}),
        (CHIPS[0], "chunks", "bf16", 4, {"tile_rows": 16, "scheduled_blocks": 3, **SPLITS}),
        (CHIPS[1], "window", "bf16", 2, {"tile_rows": 32, **SPLITS}),
        (CHIPS[2], "chunks", "f16", 1, {"tile_rows": 128}),
        (CHIPS[2], "alibi", "bf16", 4, {"tile_rows": 64}),
        (CHIPS[2], "documents", "f16", 3, {"tile_rows": 128}),
        (CHIPS[2], "globals", "bf16", 4, {"tile_rows": 64, **SPLITS}),
        # In-register dequantization.
        (CHIPS[0], "alibi", "fp8", 3, {"dtype": "f16", "tile_rows": 16, **SPLITS}),
        (CHIPS[1], "documents", "fp8-scaled", 3, {"tile_rows": 32}),
        (CHIPS[2], "branches", "fp8-token", 4, {"tile_rows": 16}),
        (CHIPS[1], "alibi", "nvfp4", 3, {"tile_rows": 16, **SPLITS}),
        (CHIPS[2], "alibi", "int4-halves", 3, {"tile_rows": 16, **SPLITS}),
        (CHIPS[1], "documents", "int4-token", 4, {"tile_rows": 32}),
        (CHIPS[0], "late prefix", "nvfp4", 4, {"dtype": "f16", "tile_rows": 32}),
    ],
)
def test_regions_of_tiles(target, name, format_, group, options):
    check(name, target, format_, LENGTHS, NEW, group, **options)


@pytest.mark.parametrize("target", CHIPS[1:])
def test_blocks_after_the_last_row_load_nothing(target):
    """Tests blocks of one token, of which a sequence has fewer than the grid has."""
    check("documents", target, "bf16", (5, 0, 30), (2, 7, 1), 128, tile_rows=128)


@pytest.mark.parametrize(
    "target, name, options",
    [
        ("cpu", "documents", {}),
        (CHIPS[0], "alibi", SPLITS),
        (CHIPS[1], "documents", {}),
        (CHIPS[1], "branches", SPLITS),
        (CHIPS[2], "alibi", {}),
    ],
)
def test_regions_of_latent_caches(target, name, options):
    check(name, target, "bf16", LENGTHS, NEW, 16, head_dim=64, mla=True, value_dim=48, **options)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("format_", ["f32", "bf16"])
def test_soft_cap_before_region(target, format_):
    """Tests that a region takes scores after the attribute ``soft_cap``."""
    alibi = CASES["alibi"]

    def use_both(s, b, h, q, k, slopes):
        return use_alibi(3 * np.tanh(s / 3), b, h, q, k, slopes)

    both = Regions(use_both, alibi.score, types=alibi.types, attributes="{causal, soft_cap = 3.0}")
    check(both, target, format_, LENGTHS, NEW, 2, head_dim=32)


@pytest.mark.parametrize(
    "target, options",
    [
        ("cpu", {}),
        (CHIPS[0], {"tile_rows": 0, **SPLITS}),
        (CHIPS[0], {"tile_rows": 16, **SPLITS}),
        (CHIPS[1], {"tile_rows": 64}),
        (CHIPS[2], {"tile_rows": 64}),
    ],
    ids=str,
)
@pytest.mark.parametrize("name, unread", [("window", 112), ("chunks", 112)])
def test_region_bounds_what_is_read(name, unread, target, options):
    """Tests that tokens before a window or chunk are not read: NaN would reach all rows of a block."""
    check(name, target, "bf16", (130, 127), (1, 2), 4, unread=unread, **options)


@pytest.mark.parametrize("target", CHIPS)
@pytest.mark.parametrize(
    "name, attribute", [("window", "{causal, window = 9}"), ("chunks", "{chunk = 40}"), ("causal", "{causal}")]
)
def test_regions_copy_what_attributes_copy(name, attribute, target):
    causal = """
        %sees = arith.cmpi sle, %key, %query : index
        kvcache.yield %sees : i1
        """
    params, lengths, new = make_params("bf16", 1, 64, 16), (5, 200), (2, 70)
    _, inputs = fill(params, "bf16", lengths, new)
    copied = []
    for regions in (CASES.get(name, Regions(None, mask=causal)), Regions(None, attributes=attribute)):
        options = {"tile_rows": 64}
        arrays = make_arrays(regions, 4, (7, 270))
        *_, program = attend(params, "bf16", inputs, 4, regions, arrays, options, target, meter=True)
        (launch,) = program.launches
        copied.append(sum(copies.global_bytes for copies in launch.copies.values()))
    assert copied[0] == copied[1] > 0
