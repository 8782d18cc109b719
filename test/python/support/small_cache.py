"""A small cache, and a step of two sequences in it."""

import numpy as np
import pytest

import kvcache

PARAMS = kvcache.KVCacheParams("f32", 2, 32, page_size=4, total_num_layers=2)
TOTAL = 8


def make_inputs():
    manager = kvcache.PagedKVCacheManager(
        PARAMS, max_batch_size=2, max_seq_len=32, num_pages=8
    )
    manager.claim("a", np.arange(5))
    manager.claim("b", np.arange(3))
    return manager.inputs(["a", "b"])


def rows(count, heads=2):
    return np.zeros((count, heads, 32), np.float32)


TARGETS = pytest.mark.parametrize("target", ["cpu", "emulator:sm_90a"])
