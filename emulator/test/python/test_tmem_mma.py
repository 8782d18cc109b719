"""kvcache.tmem_mma on the emulator, against products of NumPy in f64."""

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


@needs_ptxas
@pytest.mark.parametrize("case", ["bf16, 128 rows", "bf16, A in tensor memory", "i8"])
def test_ptxas_takes_what_the_emulator_takes(case, tmp_path):
    check_assembled(CASES[case].text(), "sm_100a", tmp_path)
