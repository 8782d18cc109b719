"""Kernels that lack one instruction which synchronizes: the sanitizer finds each.

What may be missing without harm is listed, with the reason.
"""

import ml_dtypes
import numpy as np
import pytest
import test_emulator_examples as examples
import test_tensor_products as products
import wgmma
from devices import with_launcher
from mutants import check, survivors, to_nvvm, with_mutants, without_others
from tensor_products import write_program

import kvcache

# Programs


def copy_keys(program):
    """Sequences that are empty, end in a tile, and fill some."""
    rng = np.random.default_rng(1)
    blocks = examples.random_bits(rng, (7, 2, 1, 64, 8, 128))
    lengths = np.array([0, 130], np.uint32)
    table = rng.permutation(7)[:6].reshape(2, 3).astype(np.uint32)
    out = np.zeros((2, 8, 150, 128), ml_dtypes.bfloat16)
    program.call("copy_keys", blocks, lengths, table, 1, 130, 0, out)
    return out


def gather(name, dtype, size):
    def run(program):
        rng = np.random.default_rng(2)
        blocks = examples.random_bits(rng, (5, 1, 1, 64, 1, size), dtype)
        ids = rng.integers(0, 320, (1, 128), np.int32)
        ids[0, 70:] = -1
        content, rope = (512, 64) if size == 640 else (size, 0)
        outs = [np.zeros((1, 128, content), dtype)]
        if rope:
            outs.append(np.zeros((1, 128, rope), ml_dtypes.bfloat16))
        tables = np.zeros(1, np.uint32), np.zeros((1, 1), np.uint32)
        program.call(name, blocks, *tables, 1, 0, 0, ids, *outs)
        return np.concatenate([out.reshape(-1).view(np.uint8) for out in outs])

    return run


def attend(program):
    """Seven tiles: each of three stages is used again."""
    rng = np.random.default_rng(3)
    blocks = examples.random_numbers(rng, (8, 2, 1, 64, 8, 128))
    lengths, table = np.array([6 * 64 + 5], np.uint32), rng.permutation(8)[None].astype(np.uint32)
    q = examples.random_numbers(rng, (1, 32, 128))
    out = np.zeros_like(q)
    program.call("launch", blocks, lengths, table, 1, 389, 0, examples.SCALE, q, out, 1, 1)
    return out


def attention_source():
    return with_launcher(examples.source("attention_pipe"), "attention_pipe", (128, 1))


def split_row():
    """The arguments of a row of four splits, and its output, which is one of them."""
    rng = np.random.default_rng(5)
    blocks = examples.random_numbers(rng, (4, 2, 1, 16, 1, 64))
    lengths, table = np.array([60], np.uint32), rng.permutation(4)[None].astype(np.uint32)
    q = examples.random_numbers(rng, (1, 4, 64))
    out, lse = np.zeros_like(q), np.zeros((1, 4), np.float32)
    offsets = np.array([0, 1], np.int32)
    return (blocks, lengths, table, 1, 60, 0, q, offsets, out, lse, examples.SCALE), out


def attend_in_splits(program):
    """A row of four splits, which a second launch merges."""
    arguments, out = split_row()
    workspace = np.zeros(4 * 4 * (4 * 66 + 1), np.int8)
    program.call("attention", *arguments, workspace)
    return np.concatenate([out.reshape(-1).view(np.uint8), workspace.view(np.uint8)])


def attend_in_cluster(program):
    """A row of four splits, which a cluster merges."""
    arguments, out = split_row()
    program.call("attention", *arguments)
    return out


def attend_to_parts(size):
    """Parts of two sequences and the rows of one, of up to four tiles."""

    def run(program):
        rng = np.random.default_rng(7)
        blocks = examples.random_numbers(rng, (24, 2, 1, 16, 1, size))
        table = rng.permutation(24)[None].repeat(3, 0).astype(np.uint32)
        q = examples.random_numbers(rng, (13, 4, size))
        out, lse = np.zeros_like(q), np.zeros((13, 4), np.float32)
        workspace = np.zeros(3 * 4 * (4 * (size + 2) + 1) * 4 + 16, np.int8)
        tables = np.array([300, 210, 370], np.uint32), table, 11, 371, 0
        offsets = np.array([0, 1, 12, 13], np.int32)
        program.call("attention", blocks, *tables, q, offsets, out, lse, examples.SCALE, workspace)
        return np.concatenate([out.reshape(-1).view(np.uint8), workspace.view(np.uint8)])

    return run


def attend_in_tiles(dtype, size=16, groups=0):
    """One block of rows, which sees four or more tiles of keys and values, perhaps with scales."""

    def run(program):
        rng = np.random.default_rng(6)
        if dtype == np.uint8:
            blocks = rng.integers(0, 256, (14, 2, 1, 16, 1, size // 2), np.uint8)
        else:
            blocks = examples.random_numbers(rng, (14, 2, 1, 16, 1, size)).astype(dtype)
        scales = rng.uniform(0.5, 4, (14, 2, 1, 16, 1, groups)).astype(np.float32)
        lengths, table = np.array([204], np.uint32), rng.permutation(14)[None].astype(np.uint32)
        q = examples.random_numbers(rng, (16, 2, size))
        out, lse = np.zeros_like(q), np.zeros((16, 2), np.float32)
        offsets = np.array([0, 16], np.int32)
        cache = blocks, lengths, table, 16, 220, *([scales] if groups else [])
        program.call("attention", *cache, 0, q, offsets, out, lse, examples.SCALE)
        return out

    return run


def attend_by_ids(dtype, size):
    """One block, for the heads of a token that sees five tiles of rows; some ids are no row's."""

    def run(program):
        rng = np.random.default_rng(9)
        blocks = examples.random_numbers(rng, (19, 1, 1, 16, 1, 64)).astype(dtype)
        ids = rng.permutation(19 * 16)[None, :300].astype(np.int32)
        ids[0, ::7] = -1
        q = examples.random_numbers(rng, (1, 32, 64))
        out, lse = np.zeros((1, 32, size), q.dtype), np.zeros((1, 32), np.float32)
        tables = np.zeros(1, np.uint32), np.zeros((1, 1), np.uint32)
        offsets = np.array([0, 1], np.int32)
        program.call("attention", blocks, *tables, 1, 1, 0, q, offsets, out, lse, examples.SCALE, ids)
        return out

    return run


def attend_to_latent_rows(program):
    """One block, for the heads of a token that sees four tiles of rows."""
    rng = np.random.default_rng(10)
    blocks = examples.random_numbers(rng, (14, 1, 1, 16, 1, 64)).astype(FP8)
    lengths, table = np.array([203], np.uint32), rng.permutation(14)[None].astype(np.uint32)
    q = examples.random_numbers(rng, (1, 64, 64))
    out, lse = np.zeros((1, 64, 64), q.dtype), np.zeros((1, 64), np.float32)
    offsets = np.array([0, 1], np.int32)
    program.call("attention", blocks, lengths, table, 1, 204, 0, q, offsets, out, lse, examples.SCALE)
    return out


STORE_AND_COPY = """
#kv = #kvcache.params<num_heads = 2, head_size = 64>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 16>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>
!blocks = memref<?x2x?x16x2x64xbf16>
!kt = !kvcache.tile<16x64xbf16, swizzle_128b>

func.func @store_and_copy(%blocks: !blocks, %lengths: memref<?xi32>, %table: memref<?x?xi32>,
                          %max: i32, %new: memref<64xbf16>, %out: memref<64xbf16>) {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%i, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %c = kvcache.paged_collection %blocks, %lengths, %table, %max, %max
           : !blocks, memref<?xi32>, memref<?x?xi32> -> !collection
    %k = kvcache.paged_view key %c[%c0] : !collection
    %x = memref.load %new[%i] : memref<64xbf16>
    kvcache.store %x, %k[%c0, %c1, %c1, %i] : bf16, !cache
    gpu.barrier
    %tile = kvcache.alloc_tile : !kt
    %token = kvcache.async_load_tile %k[%c0, %c1, %c0, %c0] to %tile : !cache, !kt
    kvcache.wait %token
    %y = kvcache.tile_load %tile[%c1, %i] : !kt -> bf16
    memref.store %y, %out[%i] : memref<64xbf16>
    gpu.terminator
  }
  return
}
"""


def store_and_copy(program):
    """A token that all threads write, and read again from a tile."""
    rng = np.random.default_rng(4)
    blocks = examples.random_bits(rng, (2, 2, 1, 16, 2, 64))
    new, out = examples.random_bits(rng, (64,)), np.zeros(64, ml_dtypes.bfloat16)
    program.call("store_and_copy", blocks, np.zeros(1, np.uint32), np.ones((1, 1), np.uint32), 16, new, out)
    assert out.tobytes() == new.tobytes()
    return out


# What may be missing

# Each thread reads what it has copied itself.
OWN_BYTES = ["drop nvvm.barrier0 1"]

# The second wait and barrier do what the first have done, and the second group has the
# copies of both.
TWICE = [
    *("drop nvvm.barrier0 1", "drop nvvm.barrier0 2", "drop nvvm.cp.async.commit.group 1"),
    *("drop nvvm.cp.async.wait.group 1", "drop nvvm.cp.async.wait.group 2"),
    *("wait for a group less 1", "wait for a group less 2"),
]

# No copy writes bytes where a thread has written zeros.
USED_ONCE = ["drop nvvm.fence.proxy 1"]

# The first tiles find empty stages, and no thread waits for the last one to be.
BEGIN_AND_END = ["drop nvvm.bar.warp.sync 2"]
TENSOR_COPIES = [*BEGIN_AND_END, "drop nvvm.fence.proxy 1", "skip nvvm.mbarrier.try_wait 1"]
THREAD_COPIES = [*BEGIN_AND_END, "skip nvvm.mbarrier.test.wait 1"]


# Each warp waits for its products of tiles before it frees a stage.
WAITED = ["drop nvvm.bar.warp.sync 1", "drop nvvm.bar.warp.sync 2"]

# The barrier before the first copies, by ids, does the same as the one after the initialization
# of mbarriers; and the one before each tile of ids the same as the arrivals of those that have used a stage.
BEFORE_IDS = ["drop nvvm.barrier0 1", "drop nvvm.bar.warp.sync 1"]
# Products of queries in shared memory follow the barrier before a tile of ids.
QUERIES = "drop nvvm.barrier0 3"

# The barrier after the conversion of a stored tile does the same as the arrivals of those that have converted it.
# Those before the products of its first tile do the same as those after the queries.
CONVERTED = ["drop nvvm.bar.warp.sync 1", "drop nvvm.barrier0 2", "drop nvvm.fence.proxy 1"]

# Those of the second slot, and of the next tile, follow zeros of the first slot as well.
ZEROS = ["drop nvvm.fence.proxy 1", "drop nvvm.fence.proxy 2"]

# The barrier before each work item does the same as the one after the initialization of mbarriers,
# and as the waits for the stages that the first copies of a unit fill.
NEXT_UNIT = ["drop nvvm.barrier0 1"]


@pytest.mark.parametrize("chip", ["sm_80", "sm_90a", "sm_100a"])
def test_tiles_of_keys(chip):
    check(examples.source("key_tile"), "copy_keys_kernel", chip, copy_keys, 3)


@pytest.mark.parametrize(
    ("chip", "benign"),
    [("sm_80", THREAD_COPIES), ("sm_90a", TENSOR_COPIES)],
)
def test_tiles_in_flight(chip, benign):
    check(attention_source(), "attention_pipe", chip, attend, 10, benign)


@pytest.mark.parametrize("chip", ["sm_80", "sm_90a", "sm_100a"])
def test_parts_of_attention(chip):
    """The barrier between the sums of teams and their merge."""
    params = kvcache.KVCacheParams("bf16", 1, 64, page_size=16, total_num_layers=1)
    operation = kvcache.ops.attention(params, 4, split_tokens=16, max_splits=4, tile_rows=0)
    check(operation.source, "attention_merge_kernel", chip, attend_in_splits, 1)


@pytest.mark.parametrize(
    ("chip", "blocks"), [("sm_80", 0), ("sm_80", 2), ("sm_90a", 2), ("sm_100a", 0), ("sm_100a", 2)]
)
def test_parts_of_attention_in_tiles(chip, blocks):
    """Pipes of a part; with a schedule, the barriers around the next unit, and pipes that units share.

    On sm_90a, also maxima, totals and weights of swapped products in shared memory.
    """
    is_swapped = chip == "sm_90a"
    size = 64 if is_swapped else 16
    params = kvcache.KVCacheParams("bf16", 1, size, page_size=16, total_num_layers=1)
    more = {"split_tokens": 192, "max_splits": 4, "swap_operands": is_swapped}
    operation = kvcache.ops.attention(params, 4, tile_rows=32, scheduled_blocks=blocks, **more)
    wait = "test.wait" if chip == "sm_80" else "try_wait"
    benign = []
    if blocks:
        # The barriers of a swapped tile also come between its keys and those that replace them, which are copied
        # while it is multiplied.
        waits = [f"skip nvvm.mbarrier.{wait} {number}" for number in ([1, 2, 4] if is_swapped else [1, 2])]
        benign = [*NEXT_UNIT, *waits, *(WAITED if is_swapped else [])]
    check(operation.source, "attention_kernel", chip, attend_to_parts(size), 18, benign)


@pytest.mark.parametrize("chip", ["sm_90a", "sm_100a"])
def test_splits_that_a_cluster_merges(chip):
    """The barrier before blocks read each other's splits, and the one before they end."""
    params = kvcache.KVCacheParams("bf16", 1, 64, page_size=16, total_num_layers=1)
    config = kvcache.AttentionConfig(keys=16, stages=1, merge="cluster")
    operation = kvcache.ops.attention(params, 4, split_tokens=16, max_splits=4, tile_rows=16, config=config)
    text = to_nvvm(operation.source, chip)
    barriers = [name for name in with_mutants(text, "attention_kernel")[1] if "nvvm.cluster" in name]
    assert len(barriers) == 4  # an arrival and a wait each
    found, missed = survivors(operation.source, "attention_kernel", chip, attend_in_cluster)
    assert not missed.keys() & set(barriers) and found >= len(barriers)


@pytest.mark.parametrize("chip", ["sm_80", "sm_90a"])
@pytest.mark.parametrize(("dtype", "at_least"), [("bf16", 10), ("f8E4M3FN", 3)])
def test_tiles_of_attention(dtype, at_least, chip):
    """The barrier of the queries, and pipes of keys and of values, or tiles that threads fill."""
    params = kvcache.KVCacheParams(dtype, 1, 16, page_size=16, total_num_layers=1)
    operation = kvcache.ops.attention(params, 2, tile_rows=32)
    run = attend_in_tiles(kvcache.dtypes.dtype(dtype))
    check(operation.source, "attention_kernel", chip, run, at_least)


@pytest.mark.parametrize(
    ("dtype", "at_least", "chip"),
    [
        ("bf16", 10, "sm_80"),
        ("bf16", 10, "sm_90a"),
        ("bf16", 10, "sm_100a"),
        ("f8E4M3FN", 10, "sm_80"),
        ("f8E4M3FN", 10, "sm_90a"),
    ],
)
def test_ids_of_attention(dtype, at_least, chip):
    """The barriers between the ids of a tile and what reads them: copies, conversions and the mask.

    On sm_90a, copied tiles have swapped products.
    """
    is_swapped = chip == "sm_90a" and dtype == "bf16"
    size = 64 if is_swapped else 32
    params = kvcache.KVCacheParams(dtype, 1, 64, page_size=16, total_num_layers=1, is_mla=True)
    operation = kvcache.ops.attention(params, 32, rows=True, value_dim=size, dtype="bf16")
    run = attend_by_ids(kvcache.dtypes.dtype(dtype), size)
    wait = "test.wait" if chip == "sm_80" else "try_wait"
    # Of a free slot: raw tiles need it last, and swapped products after they have begun.
    free = 2 if is_swapped or dtype != "bf16" else 1
    benign = [*BEFORE_IDS, f"skip nvvm.mbarrier.{wait} {free}"]
    if chip == "sm_90a" and dtype != "bf16":
        benign += ZEROS
    benign += [QUERIES] if is_swapped else []
    check(operation.source, "attention_kernel", chip, run, at_least, benign)


@pytest.mark.parametrize("dtype", ["f8E4M3FN", "i4"])
@pytest.mark.parametrize("chip", ["sm_80", "sm_90a"])
def test_raw_tiles_that_warps_multiply(dtype, chip):
    """Pipes, the barrier of the queries and their factors, and that of the scales of the next tile."""
    is_int4 = dtype == "i4"
    config = kvcache.KVCacheQuantizationConfig("f32", 32 if is_int4 else 16, "f32" if is_int4 else None)
    params = kvcache.KVCacheParams(dtype, 1, 32, page_size=16, total_num_layers=1, kvcache_quant_config=config)
    operation = kvcache.ops.attention(params, 2, tile_rows=32, dtype="bf16")
    run = attend_in_tiles(np.uint8 if is_int4 else FP8, 32, 2)
    # The barrier before each tile is also between tiles and those that replace them.
    wait = "test.wait" if chip == "sm_80" else "try_wait"
    benign = [*WAITED, *(f"skip nvvm.mbarrier.{wait} {number}" for number in (1, 2))]
    check(operation.source, "attention_kernel", chip, run, 10, benign)


def test_raw_tiles_of_attention():
    """The pipe of raw tiles, and the fence and the barriers between conversions and products."""
    params = kvcache.KVCacheParams("f8E4M3FN", 1, 64, page_size=16, total_num_layers=1, is_mla=True)
    operation = kvcache.ops.attention(params, 64, value_dim=64, dtype="bf16")
    benign = [*CONVERTED, "skip nvvm.mbarrier.try_wait 2"]
    check(operation.source, "attention_kernel", "sm_90a", attend_to_latent_rows, 10, benign)


def test_tiles_of_what_the_kernel_stores():
    kernel = "store_and_copy_kernel"
    # The barrier before the copy orders the start of the kernel as well.
    check(STORE_AND_COPY, kernel, "sm_90a", store_and_copy, 6, ["drop nvvm.barrier0 1"])


def multiply_pages(program):
    rng = np.random.default_rng(8)
    blocks = rng.integers(-2, 3, (4, 2, 1, 64, 2, 64)).astype(np.float32).astype(ml_dtypes.bfloat16)
    out = np.zeros((128, 4), np.float32)
    program.call("pipeline", blocks, np.full(1, 64, np.uint32), np.zeros((1, 1), np.uint32), out)
    keys = blocks[:, 0, 0, :, 1].astype(np.float64)
    rows, columns = wgmma.fragment(8)
    np.testing.assert_array_equal(out, np.einsum("prd,pcd->rc", keys, keys[:, :8])[rows, columns])
    return out


def test_products_in_flight():
    """All but the fences that the ISA does not ask for, between products of one shape: ptxas requires them."""
    benign = [f"drop nvvm.wgmma.fence.aligned {number}" for number in (2, 3, 4)]
    check(wgmma.pipeline(4), "pipeline_kernel", "sm_90a", multiply_pages, 37, benign)


@pytest.mark.parametrize("case", [products.NVFP4, products.PAIRS[-1]], ids=["block", "pair"])
def test_products_in_tensor_memory(case):
    """Scales and products of one block, and of a pair with both of its barriers."""

    def multiply(program):
        return products.call(case, program)[0]

    check(write_program([case.kernel]), case.kernel.name, "sm_100a", multiply, 14)


FP8, BF16 = ml_dtypes.float8_e4m3fn, ml_dtypes.bfloat16


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "dtype", "size", "chip", "benign"),
    [
        ("gather_fp8", FP8, 576, "sm_80", OWN_BYTES),
        ("gather_fp8", FP8, 576, "sm_90a", USED_ONCE),
        ("gather_fp8_with_rope", FP8, 640, "sm_80", TWICE),
        ("gather_fp8_with_rope", FP8, 640, "sm_100a", []),
        ("gather_bf16", BF16, 576, "sm_90a", []),
    ],
)
def test_rows_of_any_place(name, dtype, size, chip, benign):
    source = without_others(examples.source("sparse_mla"), name)
    check(source, f"{name}_kernel", chip, gather(name, dtype, size), 3, benign)
