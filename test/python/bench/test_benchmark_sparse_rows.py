"""The sparse rows benchmark's kernel: what it computes, on the CPU and the chips of the emulator."""


import ml_dtypes
import numpy as np
import pytest
from devices import TARGETS
from places import KERNELS

import kvcache

SOURCE = KERNELS / "sparse_rows.mlir"
PAGES, LAYERS, LAYER, PAGE_SIZE, COLUMNS = 5, 2, 1, 16, 576
ROWS = PAGES * PAGE_SIZE
MISSING = [-1, ROWS, -(2**31), 2**31 - 1]


def make_cache(rng):
    """Blocks of small integers, whose sums are exact, and NaNs in the other layer; lengths and a table nobody reads."""
    blocks = np.full((PAGES, 1, LAYERS, PAGE_SIZE, 1, COLUMNS), np.nan, ml_dtypes.bfloat16)
    blocks[:, :, LAYER] = rng.integers(-8, 9, (PAGES, 1, PAGE_SIZE, 1, COLUMNS))
    return blocks, np.zeros(1, np.int32), np.full((1, 1), -1, np.int32)


def expect(blocks, ids):
    rows = blocks[:, 0, LAYER].reshape(ROWS, COLUMNS).astype(np.float32)
    is_row = (ids >= 0) & (ids < ROWS)
    found = np.where(is_row[..., None], rows[np.where(is_row, ids, 0)], 0)
    return found.reshape(*ids.shape, COLUMNS // 2, 2).sum(axis=(1, 3))


@pytest.mark.parametrize("target", ["cpu", *TARGETS])
@pytest.mark.parametrize("tiles", [0, 1, 4])
def test_sums_are_those_of_the_rows(target, tiles):
    rng = np.random.default_rng(tiles)
    blocks, lengths, table = make_cache(rng)
    ids = rng.choice([*range(ROWS), *MISSING], (2, 64 * tiles)).astype(np.int32)
    ids[:, -10:] = -1

    out = np.full((len(ids), COLUMNS // 2), np.nan, np.float32)
    kvcache.jit(SOURCE, target=target).call("sparse_rows", blocks, lengths, table, 1, ROWS, LAYER, ids, out)

    np.testing.assert_array_equal(out, expect(blocks, ids))
