"""Kernels with multicast copies in clusters, which add keys by column."""

from string import Template

import ml_dtypes
import numpy as np

ROWS, SIZE = 64, 128

SOURCE = Template("""
#kv = #kvcache.params<num_heads = 2, head_size = 128>
!collection = !kvcache.paged_collection<$dtype, #kv, page_size = $page>
!cache = !kvcache.paged<$dtype, #kv, page_size = $page>
!blocks = memref<?x2x?x${page}x2x128x$dtype>
!kt = !kvcache.tile<64x128x$dtype, swizzle_128b>
!ring = !kvcache.pipe<$stages, !kt$producers>

module attributes {gpu.container_module} {
gpu.module @kernels {
  gpu.func @sum_kernel(%blocks: !blocks, %lengths: memref<?xi32>, %table: memref<?x?xi32>, %max: i32,
                       %out: memref<?x?x128xf32>) kernel
      attributes {known_block_size = array<i32: $threads, 1, 1>$cluster} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %threads_of_row = arith.constant 128 : index
    %t = gpu.thread_id x
    %b = gpu.block_id x
    %seq = gpu.block_id y
    %c = kvcache.paged_collection %blocks, %lengths, %table, %max, %max
           : !blocks, memref<?xi32>, memref<?x?xi32> -> !collection
    %k = kvcache.paged_view key %c[%c1] : !collection
    %length_i32 = memref.load %lengths[%seq] : memref<?xi32>
    %length = arith.index_cast %length_i32 : i32 to index
    %tiles = arith.ceildivui %length, %c64 : index
    $body
    gpu.return
  }
}
func.func @sum(%blocks: !blocks, %lengths: memref<?xi32>, %table: memref<?x?xi32>, %max: i32,
               %out: memref<?x?x128xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %threads = arith.constant $threads : index
  %sequences = memref.dim %out, %c0 : memref<?x?x128xf32>
  %each = memref.dim %out, %c1 : memref<?x?x128xf32>
  gpu.launch_func @kernels::@sum_kernel blocks in (%each, %sequences, %c1) threads in (%threads, %c1, %c1)
      args(%blocks : !blocks, %lengths : memref<?xi32>, %table : memref<?x?xi32>, %max : i32, %out : memref<?x?x128xf32>)
  return
}
}
""")

# The sum of a column of a tile, by one thread.
ADD = """
        %y = scf.for %r = %c0 to %c64 step %c1 iter_args(%x = %s) -> f32 {
          %v = kvcache.tile_load %kt[%r, %column] : !kt -> $dtype
          %w = arith.extf %v : $dtype to f32
          %z = arith.addf %x, %w : f32
          scf.yield %z : f32
        }
"""
# Each thread block adds another number.
STORE = """
      %own = arith.index_cast %b : index to i32
      %weight = arith.sitofp %own : i32 to f32
      %result = arith.addf %sum, %weight : f32
      memref.store %result, %out[%seq, %b, %column] : memref<?x?x128xf32>
"""
PRODUCE = """
      %token = arith.muli %i, %c64 : index
      %n = arith.subi %length, %token : index
      kvcache.produce %ring[%i] : !ring {
      ^bb0(%kt: !kt):
        kvcache.async_load_tile %k[%seq, %c1, %token, %c0] valid %n to %kt {$attribute} : !cache, !kt
      }
"""
CONSUME = f"""
      %next = kvcache.consume %ring[%i] : !ring -> f32 {{
      ^bb0(%kt: !kt):
        {ADD}
        kvcache.yield %y : f32
      }}
"""
# All threads copy and add; the first warp copies for the others; one tile that is reused.
BODIES = {
    "pipe": f"""
    %column = arith.remui %t, %threads_of_row : index
    %ring = kvcache.pipe : !ring
    %sum = scf.for %i = %c0 to %tiles step %c1 iter_args(%s = %zero) -> f32 {{
      {PRODUCE}
      {CONSUME}
      scf.yield %next : f32
    }}
    {STORE}
""",
    "producer": f"""
    %warp = arith.constant 32 : index
    %is_producer = arith.cmpi ult, %t, %warp : index
    %column = arith.subi %t, %warp : index
    %ring = kvcache.pipe : !ring
    scf.if %is_producer {{
      scf.for %i = %c0 to %tiles step %c1 {{
        {PRODUCE}
      }}
    }} else {{
      %sum = scf.for %i = %c0 to %tiles step %c1 iter_args(%s = %zero) -> f32 {{
        {CONSUME}
        scf.yield %next : f32
      }}
      {STORE}
    }}
""",
    "tile": f"""
    %column = arith.remui %t, %threads_of_row : index
    %kt = kvcache.alloc_tile : !kt
    %sum = scf.for %i = %c0 to %tiles step %c1 iter_args(%s = %zero) -> f32 {{
      %token = arith.muli %i, %c64 : index
      %n = arith.subi %length, %token : index
      %copied = kvcache.async_load_tile %k[%seq, %c1, %token, %c0] valid %n to %kt {{$attribute}} : !cache, !kt
      kvcache.wait %copied
      {ADD}
      scf.yield %y : f32
    }}
    {STORE}
""",
}


def write(kind, blocks, page=64, stages=2, attribute="multicast", dtype="bf16"):
    """Writes a module with `sum`: each of `blocks` thread blocks of a cluster adds the same tiles."""
    body = Template(BODIES[kind]).substitute(attribute=attribute, dtype=dtype)
    return SOURCE.substitute(
        dtype=dtype,
        page=page,
        stages=stages,
        producers=", producers = 1" if kind == "producer" else "",
        threads=160 if kind == "producer" else 128,
        cluster=f", known_cluster_size = array<i32: {blocks}, 1, 1>" if blocks else "",
        body=body,
    )


def run(program, blocks, page=64):
    """Runs it on sequences that are empty, end in a tile, or fill tiles. Returns the sums, and the expected ones."""
    rng = np.random.default_rng(7)
    lengths = np.array([0, 64, 5 * 64 + 7], np.uint32)
    pages = -(-int(lengths.max()) // page)
    cache = rng.integers(-3, 4, (3 * pages, 2, 2, page, 2, SIZE)).astype(np.float32).astype(ml_dtypes.bfloat16)
    table = rng.permutation(3 * pages).astype(np.uint32).reshape(3, pages)
    blocks_of_row = blocks or 2
    out = np.zeros((3, blocks_of_row, SIZE), np.float32)
    program.call("sum", cache, lengths, table, int(lengths.max()), out)
    keys = cache[:, 0, 1, :, 1].astype(np.float64)
    sums = [keys[table[i]].reshape(-1, SIZE)[:length].sum(0) for i, length in enumerate(lengths)]
    return out, np.array(sums)[:, None] + np.arange(blocks_of_row)[:, None]
