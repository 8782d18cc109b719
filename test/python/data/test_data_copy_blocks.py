"""Tests of copies by blocks of any size and shape."""

import functools

import devices
import numpy as np
import pytest
from swizzles import stored
from tile_copies import BYTES, COLUMNS, HEADS, PAGES, ROWS, make_cache

import kvcache

# Blocks of fewer threads than a warp, of no whole warps, and of two dimensions.

BLOCKS = ((1, 1), (16, 1), (31, 1), (33, 1), (8, 2), (16, 3))


@functools.cache
def compile_kernel(block, target):
    """Compiles `launch` of a kernel that copies 16 tokens and rows, in a pipe and without.

    Without ``block``, its number of threads is unknown."""
    known = f" attributes {{known_block_size = array<i32: {block[0]}, {block[1]}, 1>}}" if block else ""
    memory = f"memref<{BYTES}xi8, #gpu.address_space<workgroup>>"
    source = f"""
#kv = #kvcache.params<num_heads = {HEADS}, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 1>
!cache = !kvcache.paged<bf16, #kv, page_size = 1>
!tile = !kvcache.tile<{ROWS}x{COLUMNS}xbf16, swizzle_128b>
!bulk = !kvcache.tile<{ROWS}x{COLUMNS}xbf16>
!ring = !kvcache.pipe<2, !tile, !bulk>
!memory = {memory}
!blocks = memref<?x2x?x1x{HEADS}x128xbf16>
!raw = memref<{BYTES}xi8>
module attributes {{gpu.container_module}} {{
gpu.module @kernels {{
  gpu.func @copy(%blocks: !blocks, %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %ids: memref<{ROWS}xi32>,
                 %n: index, %dense: !raw, %sparse: !raw, %piped: !raw, %bulk: !raw) kernel{known} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c16 = arith.constant 16 : index
  %bytes = arith.constant {BYTES} : index
    %zero = arith.constant 0 : i32
    %c = kvcache.paged_collection %blocks, %lengths, %lut, %zero, %zero
        : !blocks, memref<?xi32>, memref<?x?xi32> -> !collection
    %k = kvcache.paged_view value %c[%c1] : !collection
    %dense_tile = kvcache.alloc_tile : !tile
    %dense_copy = kvcache.async_load_tile %k[%c1, %c1, %c3, %c0] valid %n to %dense_tile : !cache, !tile
    kvcache.wait %dense_copy
    %sparse_tile = kvcache.alloc_tile : !tile
    %sparse_copy = kvcache.async_gather_tile %k[%c1, %c0] rows %ids to %sparse_tile
        : !cache, memref<{ROWS}xi32>, !tile
    kvcache.wait %sparse_copy
    %dense_bytes = kvcache.tile_memory %dense_tile : !tile -> !memory
    %sparse_bytes = kvcache.tile_memory %sparse_tile : !tile -> !memory
    %x = gpu.thread_id x
    %y = gpu.thread_id y
    %size_x = gpu.block_dim x
    %size_y = gpu.block_dim y
    %before = arith.muli %y, %size_x : index
    %thread = arith.addi %before, %x : index
    %threads = arith.muli %size_x, %size_y : index
    scf.for %i = %thread to %bytes step %threads {{
      %p = memref.load %dense_bytes[%i] : !memory
      memref.store %p, %dense[%i] : !raw
      %q = memref.load %sparse_bytes[%i] : !memory
      memref.store %q, %sparse[%i] : !raw
    }}
    %ring = kvcache.pipe : !ring
    scf.for %slot = %c0 to %c3 step %c1 {{
      kvcache.produce %ring[%slot] : !ring {{
      ^bb0(%to: !tile, %bulk_to: !bulk):
        kvcache.async_load_tile %k[%c1, %c1, %c3, %c0] valid %n to %to : !cache, !tile
        kvcache.async_gather_tile %k[%c1, %c0] rows %ids to %bulk_to : !cache, memref<{ROWS}xi32>, !bulk
      }}
      kvcache.consume %ring[%slot] : !ring {{
      ^bb0(%from: !tile, %bulk_from: !bulk):
        %from_bytes = kvcache.tile_memory %from : !tile -> !memory
        %bulk_bytes = kvcache.tile_memory %bulk_from : !bulk -> !memory
        scf.for %i = %thread to %bytes step %threads {{
          %p = memref.load %from_bytes[%i] : !memory
          memref.store %p, %piped[%i] : !raw
          %q = memref.load %bulk_bytes[%i] : !memory
          memref.store %q, %bulk[%i] : !raw
        }}
        kvcache.yield
      }}
    }}
    gpu.return
  }}
}}
func.func @launch(%blocks: !blocks, %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %ids: memref<{ROWS}xi32>,
                  %n: index, %dense: !raw, %sparse: !raw, %piped: !raw, %bulk: !raw, %x: index, %y: index) {{
  %c1 = arith.constant 1 : index
  gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%x, %y, %c1)
      args(%blocks : !blocks, %lengths : memref<?xi32>, %lut : memref<?x?xi32>, %ids : memref<{ROWS}xi32>,
           %n : index, %dense : !raw, %sparse : !raw, %piped : !raw, %bulk : !raw)
  return
}}
}}
"""
    return kvcache.jit(source, target=target, opt_level=0)


@pytest.mark.parametrize("target", [*devices.TARGETS, "emulator:sm_120a"])
@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.parametrize("block", BLOCKS)
def test_blocks_of_any_size_copy(block, is_known, target):
    blocks, lengths, lut = make_cache(1)
    ids = np.random.default_rng(1).integers(-1, PAGES + 1, ROWS).astype(np.int32)
    valid = 11
    dense, sparse = np.zeros((2, ROWS, COLUMNS), blocks.dtype)
    dense[:valid] = blocks[lut[1, 3 : 3 + valid], 1, 1, 0, 1, :COLUMNS]
    found = (ids >= 0) & (ids < PAGES)
    sparse[found] = blocks[ids[found], 1, 1, 0, 1, :COLUMNS]
    out = np.zeros((4, BYTES), np.int8)
    program = compile_kernel(block if is_known else None, target)
    program.call("launch", blocks, lengths, lut, ids, valid, *out, *block)
    expected = stored(dense, "128b"), stored(sparse, "128b"), stored(dense, "128b"), stored(sparse, "none")
    for name, bytes_found, bytes_expected in zip(("dense", "sparse", "piped", "bulk"), out, expected):
        assert (bytes_found.view(np.uint8) == bytes_expected).all(), name
