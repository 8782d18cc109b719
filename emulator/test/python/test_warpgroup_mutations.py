"""Kernels whose warps have roles or take turns, and lack one instruction that synchronizes: the sanitizer finds each.

What may be missing without harm is listed, with the reason.
"""

import numpy as np
import pytest
import test_emulator_examples as examples
from devices import with_launcher
from mutants import check

import kvcache


def attend_in_turns(program):
    """A block of 128 rows, and four tiles of keys and values in two stages each."""
    rng = np.random.default_rng(4)
    blocks = examples.random_numbers(rng, (8, 2, 1, 64, 8, 128))
    lengths, table = np.array([450], np.uint32), rng.permutation(8)[None].astype(np.uint32)
    q = examples.random_numbers(rng, (32, 32, 128))
    out = np.zeros_like(q)
    offsets = np.array([0, 32], np.uint32)
    program.call("launch", blocks, lengths, table, 32, 482, 0, offsets, examples.SCALE, q, out, 1, 1)
    return out


def attend_in_seesaw(program):
    """One block, for the heads of a token that sees five latent tiles: each slot is used again."""
    rng = np.random.default_rng(10)
    blocks = examples.random_numbers(rng, (18, 1, 1, 16, 1, 448))
    lengths, table = np.array([270], np.uint32), rng.permutation(18)[None].astype(np.uint32)
    q = examples.random_numbers(rng, (1, 64, 448))
    out, lse = np.zeros((1, 64, 384), q.dtype), np.zeros((1, 64), np.float32)
    tables, offsets = (lengths, table, 1, 271, 0), np.array([0, 1], np.int32)
    program.call("attention", blocks, *tables, q, offsets, out, lse, examples.SCALE)
    return out


@pytest.mark.long
def test_warpgroups_that_share_scores():
    """Parts of tiles with barriers of their own, turns, and probs in the place of ropes."""
    params = kvcache.KVCacheParams("bf16", 1, 448, page_size=16, total_num_layers=1, is_mla=True)
    operation = kvcache.ops.attention(params, 64, value_dim=384)
    benign = [
        # Before a rope is free: the fence before the turn is of the same threads.
        "drop nvvm.fence.proxy 3",
        "drop nvvm.fence.proxy 5",
        # Scores take no accumulators, and the next products of a group have fences and a commit of their own.
        "drop nvvm.wgmma.fence.aligned 3",
        "drop nvvm.wgmma.fence.aligned 7",
        "drop nvvm.wgmma.commit.group.sync.aligned 1",
        "drop nvvm.wgmma.commit.group.sync.aligned 5",
        # In the branch of `schedule_fence`.
        "drop nvvm.wgmma.wait.group.sync.aligned 7",
        "wait for a group less 7",
        *(f"drop nvvm.bar.warp.sync {number}" for number in range(1, 12, 2)),  # Each warp waits for its products before it frees a stage.
        # Nothing reads the half of the other warpgroup, and copies waited for the slot of its rope.
        "skip nvvm.mbarrier.try_wait 5",
        "skip nvvm.mbarrier.try_wait 17",
    ]
    check(operation.source, "attention_kernel", "sm_90a", attend_in_seesaw, 50, benign)


def attend_by_roles(program):
    """One block, for two query tiles that see five tiles of keys: slots are used again, and accumulators are scaled."""
    rng = np.random.default_rng(11)
    blocks = examples.random_numbers(rng, (10, 2, 1, 64, 1, 64))
    blocks[:, 0] *= np.arange(1, 11).reshape(-1, 1, 1, 1, 1) ** 2  # largest scores grow
    lengths, table = np.array([500], np.uint32), np.arange(10, dtype=np.uint32)[None]
    q = examples.random_numbers(rng, (100, 2, 64))
    out, lse = np.zeros_like(q), np.zeros((100, 2), np.float32)
    tables, offsets = (lengths, table, 100, 600, 0), np.array([0, 100], np.int32)
    program.call("attention", blocks, *tables, q, offsets, out, lse, examples.SCALE)
    return out


# All rows see the last tile: it needs no zeros.
SEEN = ("drop nvvm.fence.proxy 3", "drop nvvm.bar.warp.sync 2")


@pytest.mark.long
@pytest.mark.parametrize("window, syncs, seen, least", [(None, 1, (), 46), (300, 3, SEEN, 48)], ids=["all", "window"])
def test_warps_with_roles(window, syncs, seen, least):
    """Copies, products that free the slots which they read, and the softmax of two query tiles."""
    params = kvcache.KVCacheParams("bf16", 1, 64, page_size=64, total_num_layers=1)
    config = kvcache.AttentionConfig(schedule="roles")
    operation = kvcache.ops.attention(params, 2, window=window, config=config)
    benign = [
        # Barriers of the kernel's beginning follow.
        "drop nvvm.fence.mbarrier.init 1",
        "drop nvvm.barrier0 1",
        # Nothing is in flight yet, or fences of the next access in the thread do for both.
        *(f"drop nvvm.tcgen05.fence <after {number}" for number in (1, 4, 10)),
        *(f"drop nvvm.tcgen05.fence <before {number}" for number in (1, 3)),
        # The wait for stores is of the warp.
        f"drop nvvm.bar.warp.sync {syncs}",
        # No copy waits for the slot of the last values.
        "drop nvvm.tcgen05.commit 9",
        *seen,
    ]
    check(operation.source, "attention_kernel", "sm_100a", attend_by_roles, least, benign)


@pytest.mark.long
def test_warpgroups_in_turns():
    """Turns, of which the last one is only taken, stages, and products in flight across exponentials."""
    source = with_launcher(examples.source("attention_pingpong"), "attention_pingpong", (384, 1))
    benign = [
        # The barrier after the queries does the same.
        "drop nvvm.fence.mbarrier.init 1",
        "drop nvvm.barrier0 1",
        "drop nvvm.barrier 3",
        # Scores take no accumulators, and the fence before them is also before the sums.
        "drop nvvm.wgmma.fence.aligned 2",
        "drop nvvm.wgmma.fence.aligned 3",
        # In the branch of `schedule_fence`.
        "drop nvvm.wgmma.wait.group.sync.aligned 3",
        "wait for a group less 3",
        *(f"drop nvvm.bar.warp.sync {number}" for number in (1, 2, 3, 4)),  # Each warp waits for its products before it frees a stage.
    ]
    check(source, "attention_pingpong", "sm_90a", attend_in_turns, 40, benign)
