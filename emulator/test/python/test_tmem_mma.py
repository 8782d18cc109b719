"""kvcache.tmem_mma on the emulator, against products of NumPy in f64."""

import ml_dtypes
import numpy as np
import pytest
from compiled import check_assembled, needs_ptxas
from tmem_products import TensorProduct, jit
from mutants import check

import kvcache

# The types of D, A and B; m and n; the major dimensions, spans and shapes of A and B; k; where they begin; and options.
CASES = {
    "bf16, 64 rows": TensorProduct("f32 bf16 bf16", 64, 64, "k k", (128, 128), ((64, 64), (64, 64)), 64),
    "bf16, 128 rows": TensorProduct("f32 bf16 bf16", 128, 96, "k k", (128, 64), ((128, 64), (96, 96)), 64, ((0, 0), (0, 16)),
                                    piece=32),
    "bf16, parts": TensorProduct("f32 bf16 bf16", 64, 24, "k mn", (64, 32), ((128, 96), (64, 80)), 32, ((32, 48), (24, 48)),
                                 is_dynamic=True, piece=8),
    "bf16, the largest of 64 rows": TensorProduct("f32 bf16 bf16", 64, 512, "k mn", (128, 128), ((64, 32), (32, 576)), 32,
                                                  ((0, 0), (0, 64)), piece=128),
    "bf16, the largest of 128 rows": TensorProduct("f32 bf16 bf16", 128, 512, "k k", (32, 32), ((128, 16), (512, 16)), 16,
                                                   piece=256, adds=False),
    "bf16, MN-major": TensorProduct("f32 bf16 bf16", 128, 48, "mn mn", (128, 64), ((64, 192), (32, 96)), 32, ((32, 64), (0, 32))),
    "bf16, A in tensor memory": TensorProduct("f32 bf16 bf16", 64, 512, "k mn", (0, 128), (None, (32, 512)), 32,
                                              in_registers=True, piece=128),
    "f16, A in tensor memory": TensorProduct("f32 f16 f16", 128, 64, "k mn", (0, 128), (None, (48, 64)), 48, in_registers=True),
    "f16": TensorProduct("f32 f16 f16", 64, 40, "mn k", (64, 128), ((48, 64), (48, 64)), 48, adds=False),
    "e4m3": TensorProduct("f32 f8E4M3FN f8E4M3FN", 128, 64, "k k", (128, 128), ((128, 256), (64, 256)), 192, ((0, 64), (0, 32))),
    "e4m3, MN-major": TensorProduct("f32 f8E4M3FN f8E4M3FN", 64, 128, "k mn", (64, 128), ((64, 64), (64, 256)), 64,
                                    ((0, 0), (0, 128))),
    "e5m2 and e4m3, A in tensor memory": TensorProduct("f32 f8E5M2 f8E4M3FN", 64, 32, "k mn", (0, 32), (None, (96, 64)), 96,
                                                       ((0, 0), (0, 32)), in_registers=True),
    "i8": TensorProduct("i32 i8 i8", 128, 64, "k mn", (128, 64), ((128, 64), (64, 64)), 64),
}


@pytest.mark.parametrize("case", CASES)
def test_products(case):
    product = CASES[case]
    got, want = product.run(jit(product.text()), np.random.default_rng(7))
    np.testing.assert_array_equal(got, want)


def test_parts_up_to_the_end_of_tiles():
    """And one step beyond it, which the bounds checks find."""
    product = CASES["bf16, parts"]
    program = jit(product.text(), bounds_checks=True)
    last = (64, 64), (32, 32)
    got, want = product.run(program, np.random.default_rng(7), last)
    np.testing.assert_array_equal(got, want)
    for what, value, limit, starts in (
        ("a_row", 72, 65, ((72, 64), last[1])),
        ("b_column modulo 16, which must be 0,", 8, 1, (last[0], (32, 24))),
    ):
        with pytest.raises(kvcache.CheckError) as raised:
            product.run(program, np.random.default_rng(7), starts)
        message = str(raised.value)
        assert f"'kvcache.tmem_mma' op {what} is out of range" in message and f"{value} is not in [0, {limit})" in message


def test_products_with_a_mistake():
    """Every fence, commit and wait is necessary, but for those of two stores in a row.

    Before them, nothing was in flight, and the wait and the fence of the second one do for both.
    """
    product = TensorProduct("f32 bf16 bf16", 64, 64, "k mn", (0, 128), (None, (32, 64)), 32, in_registers=True)

    def run(program):
        got, want = product.run(program, np.random.default_rng(7))
        np.testing.assert_array_equal(got, want)
        return got

    fence, wait = "drop nvvm.tcgen05.fence", "drop nvvm.tcgen05.wait"
    benign = [f"{fence} <after 1", f"{fence} <after 2", f"{fence} <before 1", f"{wait} <store 1"]
    check(product.text(), "main_kernel", "sm_100a", run, 10, benign)


def test_a_product_overwrites_the_left_operand_of_the_one_before():
    """Probs in the columns of the scores that follow, as in attention. One commit is for both products."""
    text = """
!t = !kvcache.tile<128x64xbf16, swizzle_128b>
!d = !kvcache.tmem_tile<128x64xf32>
!w = !kvcache.tmem_tile<128x64xbf16>
!bars = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>
func.func @main(%a: memref<128x64xbf16>, %p: memref<128x64xbf16>, %sums: memref<128x64xf32>, %scores: memref<128x64xf32>) {
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%t, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %c64 = arith.constant 64 : index
    %false = arith.constant false
    %is_first = arith.cmpi eq, %t, %c0 : index
    %bars = nvgpu.mbarrier.create -> !bars
    %o, %s = kvcache.tmem_alloc : !d, !d
    %w = kvcache.tmem_view %s[%c0] : !d -> !w
    %tile = kvcache.alloc_tile : !t
    scf.for %c = %c0 to %c64 step %c8 {
      %run = vector.load %a[%t, %c] : memref<128x64xbf16>, vector<8xbf16>
      kvcache.tile_store %run, %tile[%t, %c] : vector<8xbf16>, !t
    }
    %row = vector.load %p[%t, %c0] : memref<128x64xbf16>, vector<64xbf16>
    kvcache.tmem_store %row, %w[%c0] {whole_rows} : vector<64xbf16>, !w
    scf.if %is_first {
      nvgpu.mbarrier.init %bars[%c0], %c1 : !bars
    }
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
    gpu.barrier
    scf.if %is_first {
      kvcache.tmem_mma %w, %tile[%c0, %c0] into %o {major_b = #kvcache.major<mn_major>} : !w, !t, !d
      kvcache.tmem_mma %tile[%c0, %c0], %tile[%c0, %c0] into %s : !t, !t, !d
      kvcache.tmem_commit %bars[%c0] : !bars
    }
    nvgpu.mbarrier.try_wait.parity %bars[%c0], %false, %c1 : !bars
    %x = kvcache.tmem_load %o[%c0] {whole_rows} : !d -> vector<64xf32>
    vector.store %x, %sums[%t, %c0] : memref<128x64xf32>, vector<64xf32>
    %y = kvcache.tmem_load %s[%c0] {whole_rows} : !d -> vector<64xf32>
    vector.store %y, %scores[%t, %c0] : memref<128x64xf32>, vector<64xf32>
    gpu.terminator
  }
  return
}
"""
    program = kvcache.jit(text, target="emulator:sm_100a")
    rng = np.random.default_rng(7)
    a, p = (rng.integers(-2, 3, (128, 64)).astype(ml_dtypes.bfloat16) for _ in range(2))
    sums, scores = np.zeros((2, 128, 64), np.float32)
    program.call("main", a, p, sums, scores)
    wide = a.astype(np.float32)
    np.testing.assert_array_equal(sums, p.astype(np.float32) @ wide[:64])
    np.testing.assert_array_equal(scores, wide @ wide[:64].T)


@needs_ptxas
@pytest.mark.parametrize("case", ["bf16, 128 rows", "bf16, A in tensor memory", "i8"])
def test_ptxas_takes_what_the_emulator_takes(case, tmp_path):
    check_assembled(CASES[case].text(), "sm_100a", tmp_path)
