"""Tests of compiled code that writes and reads a cache through the tables of a page manager."""

import functools

import ml_dtypes
import numpy as np
import pytest
from programs import Shape, Source

import kvcache

PARAMS = kvcache.KVCacheParams(
    dtype=ml_dtypes.bfloat16,
    n_kv_heads=2,
    head_dim=8,
    page_size=4,
    total_num_layers=2,
    enable_prefix_caching=True,
    enable_kvcache_swapping_to_host=True,
    host_kvcache_swap_space_gb=2**-19,  # four pages
)

# new[row, h, :] follow the sequence's length, as values with the other sign.
APPEND = """  %c2 = arith.constant 2 : index
  %batch = memref.dim %lengths, %c0 : !lengths
  scf.for %b = %c0 to %batch step %c1 {
    %next = arith.addi %b, %c1 : index
    %begin_i32 = memref.load %row_offsets[%b] : memref<?xi32>
    %end_i32 = memref.load %row_offsets[%next] : memref<?xi32>
    %begin = arith.index_castui %begin_i32 : i32 to index
    %end = arith.index_castui %end_i32 : i32 to index
    %length = kvcache.cache_length %k[%b] : !cache
    scf.for %row = %begin to %end step %c1 {
      %i = arith.subi %row, %begin : index
      %t = arith.addi %length, %i : index
      scf.for %h = %c0 to %c2 step %c1 {
        %key = vector.load %new[%row, %h, %c0] : memref<?x2x8xbf16>, vector<8xbf16>
        %value = arith.negf %key : vector<8xbf16>
        kvcache.store %key, %k[%b, %h, %t, %c0] : vector<8xbf16>, !cache
        kvcache.store %value, %v[%b, %h, %t, %c0] : vector<8xbf16>, !cache
      }
    }
  }
  return"""

# out[0 and 1, t, h, :] = keys and values of one sequence, those just appended too.
GATHER = """  %c2 = arith.constant 2 : index
  %tokens = memref.dim %out, %c1 : memref<2x?x2x8xbf16>
  scf.for %t = %c0 to %tokens step %c1 {
    scf.for %h = %c0 to %c2 step %c1 {
      %key = kvcache.load %k[%b, %h, %t, %c0] : !cache -> vector<8xbf16>
      %value = kvcache.load %v[%b, %h, %t, %c0] : !cache -> vector<8xbf16>
      vector.store %key, %out[%c0, %t, %h, %c0] : memref<2x?x2x8xbf16>, vector<8xbf16>
      vector.store %value, %out[%c1, %t, %h, %c0] : memref<2x?x2x8xbf16>, vector<8xbf16>
    }
  }
  return"""


@functools.cache
def compile_programs(target):
    source = Source(Shape("bf16", heads=2, head_size=8, page_size=4), packed=True)
    views = "%k = key, %v = value"
    parameters = ["new: memref<?x2x8xbf16>", "row_offsets: memref<?xi32>"]
    source.add("append", parameters, APPEND, views=views)
    source.add("gather", ["b: index", "out: memref<2x?x2x8xbf16>"], GATHER, views=views)
    for text in (PARAMS.collection_type, PARAMS.cache_type, PARAMS.blocks_type):
        assert text in source.text
    return source.compile(target=target, bounds_checks=True)


def token_rows(tokens, layer):
    """The rows of a model for each token, derived from it, all before it, and the layer."""
    sums = np.cumsum([(7 * i + 3) * (token + 1) for i, token in enumerate(tokens)]) % 97
    rows = sums[:, None, None] + 100 * layer + np.arange(16).reshape(2, 8) / 16
    return rows.astype(ml_dtypes.bfloat16)


class Engine:
    """Runs steps through compiled code, and checks all reads."""

    def __init__(self, target):
        self.program = compile_programs(target)
        self.manager = kvcache.PagedKVCacheManager(
            PARAMS, max_batch_size=3, max_seq_len=16, num_pages=5
        )

    def step(self, *requests):
        manager = self.manager
        inputs = manager.inputs(requests)
        for layer in range(2):
            new = [
                token_rows(manager.tokens(request), layer)[length:]
                for request, length in zip(requests, inputs.lengths)
            ]
            operands = *inputs.collection(), layer
            self.program.call("append", *operands, np.concatenate(new), inputs.row_offsets)
            for b, request in enumerate(requests):
                expected = token_rows(manager.tokens(request), layer)
                out = np.zeros((2, *expected.shape), expected.dtype)
                self.program.call("gather", *operands, b, out)
                np.testing.assert_array_equal(out, [expected, -expected])
        manager.step(requests)


@pytest.mark.parametrize("target", ["cpu", "emulator:sm_90a"])
def test_compiled_code_reads_its_writes(target):
    engine = Engine(target)
    manager = engine.manager
    prompt = [4, 8, 15, 16, 23, 42]
    manager.claim("a", prompt)
    engine.step("a")
    assert manager.claim("b", [*prompt[:5], 7]) == 4
    manager.grow("a", [1])
    engine.step("b", "a")
    manager.fork("a", "c")
    manager.grow("a", [2, 3])
    manager.grow("c", [9])
    engine.step("a", "c")
    manager.swap_out("c")
    manager.grow("b", [5] * 4)
    engine.step("b")
    with pytest.raises(kvcache.OutOfPagesError):
        manager.swap_in("c")
    manager.release("b")
    manager.swap_in("c")
    manager.grow("c", [10])
    engine.step("c")
    manager.release("a")
    assert manager.claim("d", [*prompt, 1, 9, 10]) == 8
    engine.step("d")
