"""kvcache.tmem_mma of a pair of thread blocks on the emulator, against products of NumPy in f64."""

import numpy as np
import pytest
import test_emulator_examples as examples
from compiled import check_assembled, needs_ptxas
from mutants import check
from tmem_pairs import PairProduct, jit

import kvcache

FENCE = "drop nvvm.tcgen05.fence"
CASES = {
    "scores": PairProduct("f32 bf16 bf16", n=32, k=64),
    "values, A in tensor memory": PairProduct("f32 bf16 bf16", n=256, k=32, is_mn=True, in_tensor_memory=True),
    "values, A in a tile": PairProduct("f32 f16 f16", n=256, k=64, is_mn=True, adds=False),
    "the most columns of an instruction": PairProduct("f32 bf16 bf16", n=128, k=16, span=32, adds=False),
    "a part": PairProduct("f32 bf16 bf16", n=48, k=64, start=(16, 64)),
    "e4m3, MN-major": PairProduct("f32 f8E4M3FN f8E4M3FN", n=64, k=64, is_mn=True, span=64),
    "i8": PairProduct("i32 i8 i8", n=48, k=32, span=32),
}


@pytest.mark.parametrize("case", CASES)
def test_products(case):
    product = CASES[case]
    got, want = product.run(jit(product.write()), np.random.default_rng(7))
    np.testing.assert_array_equal(got, want)


def test_products_with_a_mistake():
    """Every fence, commit and wait is necessary, except those of two stores in a row.

    Before them, nothing was in flight, and the wait and the fence of the second one are enough.
    """
    product = PairProduct("f32 bf16 bf16", n=32, k=32, is_mn=True, in_tensor_memory=True, span=64)

    def run(program):
        got, want = product.run(program, np.random.default_rng(7))
        np.testing.assert_array_equal(got, want)
        return got

    benign = [f"{FENCE} <after 1", f"{FENCE} <after 2", f"{FENCE} <before 1", "drop nvvm.tcgen05.wait <store 1"]
    check(product.write(), "main_kernel", "sm_100a", run, 18, benign)


def test_ops_without_pair_in_a_kernel_with_it_are_refused():
    """The tensor memory of a kernel is of pairs or of single thread blocks."""
    product = CASES["scores"]
    text = product.write().replace("tmem_commit %bars[%c0] {pair}", "tmem_commit %bars[%c0]")
    with pytest.raises(kvcache.CompileError, match="is for cta_1 in a function with tcgen05 for cta_2"):
        product.run(jit(text), np.random.default_rng(7))


def test_issue_without_a_cluster_barrier_is_reported():
    """The issuing thread must not read the tiles of the other thread block before they are filled."""
    product = CASES["scores"]
    before, barrier, after = product.write().partition("kvcache.cluster_barrier {blocks = 2 : i64}")
    text = f"{before}gpu.barrier{after.replace('gpu.terminator', f'{barrier} gpu.terminator')}"
    with pytest.raises(kvcache.CheckError):
        product.run(jit(text), np.random.default_rng(7))


def attend_to_latent_rows(program, tokens):
    """Runs mla_pair for a token of 128 heads."""
    rng = np.random.default_rng(4)
    blocks = examples.random_numbers(rng, (4, 1, 1, 64, 1, 576))
    lengths, table = np.array([tokens], np.uint32), np.array([[2, 0, 3, 1]], np.uint32)
    q = examples.random_numbers(rng, (1, 128, 576))
    out = np.zeros((1, 128, 512), q.dtype)
    program.call("launch", blocks, lengths, table, 1, tokens, 0, examples.SCALE, q, out, 2, 1)
    return out


@pytest.mark.slow
def test_latent_attention_with_a_mistake():
    """Four tiles: each of two stages is used again."""
    benign = [
        # The thread blocks synchronize after their barriers are initialized.
        "drop nvvm.fence.mbarrier.init 1",
        "drop nvvm.fence.mbarrier.init 2",
        "drop nvvm.barrier0 1",
        # No instruction of the thread is in flight, after the fence for the product or the load before.
        f"{FENCE} <after 1",
        f"{FENCE} <after 3",
        # The store that follows has a fence.
        f"{FENCE} <before 2",
        # All threads have waited for the products that read a stage.
        "drop nvvm.bar.warp.sync 1",
        "skip nvvm.mbarrier.try_wait 1",
        "skip nvvm.mbarrier.try_wait 3",
    ]
    check(examples.pair_source(), "mla_pair", "sm_100a", lambda program: attend_to_latent_rows(program, 200), 44, benign)


def attend_in_pairs(program):
    """Three tiles, so that a stage is used again, and accumulators are scaled."""
    rng = np.random.default_rng(4)
    blocks = examples.random_numbers(rng, (10, 1, 1, 16, 1, 192))
    blocks *= np.arange(1, 11).reshape(-1, 1, 1, 1, 1, 1)  # largest scores grow
    lengths, table = np.array([150], np.uint32), np.arange(10, dtype=np.uint32)[None]
    q = examples.random_numbers(rng, (1, 128, 192))
    out, lse = np.zeros((1, 128, 128), q.dtype), np.zeros((1, 128), np.float32)
    tables, offsets = (lengths, table, 1, 151, 0), np.array([0, 1], np.int32)
    program.call("attention", blocks, *tables, q, offsets, out, lse, examples.SCALE)
    return out


@pytest.mark.slow
def test_attention_op_with_a_mistake():
    params = kvcache.KVCacheParams("bf16", 1, 192, page_size=16, total_num_layers=1, is_mla=True)
    operation = kvcache.ops.attention(params, 128, value_dim=128, config=kvcache.AttentionConfig(schedule="pair"))
    benign = [
        # The thread blocks synchronize after their barrier is initialized, and after their queries are stored.
        "drop nvvm.fence.mbarrier.init 2",
        "drop nvvm.barrier0 2",
        # No instruction of the thread is in flight, after the fence for the product or the load before.
        f"{FENCE} <after 1",
        f"{FENCE} <after 3",
        # The store that follows has a fence.
        f"{FENCE} <before 2",
        # All threads have waited for the products that read a stage.
        "drop nvvm.bar.warp.sync 1",
        "skip nvvm.mbarrier.try_wait 2",
    ]
    check(operation.source, "attention_kernel", "sm_100a", attend_in_pairs, 49, benign)


def test_latent_attention_copies_values_twice():
    """Both thread blocks together read 576 elements of each token as a key, and 512 as a value."""
    program = kvcache.jit(examples.pair_source(), target="emulator:sm_100a", opt_level=0, meter=True)
    attend_to_latent_rows(program, tokens=128)
    (launch,) = program.launches
    assert launch.copies["tensor_load"].global_bytes == 128 * (576 + 512) * 2


@needs_ptxas
@pytest.mark.parametrize("case", ["scores", "values, A in tensor memory", "i8"])
def test_ptxas_assembles_products(case, tmp_path):
    check_assembled(CASES[case].write(), "sm_100a", tmp_path)
