// Gathers the rows of an MLA cache that a sparse attention has selected, through tiles in shared memory, to a
// contiguous buffer.
//
//   out[q, i, :] = cache[ids[q, i], :]   and 0 if ids[q, i] is not a row of the cache, such as -1
//
// Each query q has a list of row ids, `page * 64 + offset in the page`, as an indexer writes it: in any order, padded
// with -1. The length of a list is a multiple of 64, the rows of a tile. The kernel does not read the lookup table.
// The shapes are those of DeepSeek-V3: one latent row for all heads, 512 elements of content and 64 of rope, in pages
// of 64 tokens. There are three formats of a row:
//
//   @gather_fp8_with_rope   640 bytes: 512 in fp8, and then the rope in bf16
//   @gather_fp8             576 bytes: all elements in fp8
//   @gather_bf16            1152 bytes: all elements in bf16
//
// The compiler chooses the instructions for a tile of 64 rows:
//
//                  sm_100 and newer                sm_90                       sm_80 to sm_89
//   512 + 128 B    16 + 16 gather4                 64 + 64 tensor copies       cp.async of 16 bytes
//   576 B          16 gather4, in a box of i64     64 bulk copies of a row     cp.async of 16 bytes
//   1152 B         16 gather4, in a box of i64     64 tensor copies of a row   cp.async of 16 bytes
//
// One source for CPU and GPU, like key_tile.mlir: one block of (y, x) threads per tile, with x along a row.
//
//   kvcache-opt examples/sparse_mla.mlir --kvcache-to-ptx="chip=sm_100a" --emit-ptx-module=gather_fp8_kernel
//
//   program = kvcache.jit(pathlib.Path("examples/sparse_mla.mlir"), target="cpu")
//   program.call("gather_fp8", blocks, lengths, lut, max_seq, max_cache, layer, ids, out)

#mla_640 = #kvcache.params<num_heads = 1, head_size = 640, is_mla = true>
#mla_576 = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>

// --- 512 fp8 and 64 bf16 ---------------------------------------------------------------------------------------------

!collection_640 = !kvcache.paged_collection<f8E4M3FN, #mla_640, page_size = 64>
!cache_640 = !kvcache.paged<f8E4M3FN, #mla_640, page_size = 64>
!content_tile = !kvcache.tile<64x512xf8E4M3FN>
!rope_tile = !kvcache.tile<64x128xf8E4M3FN, swizzle_128b>

func.func @gather_fp8_with_rope(%blocks: memref<?x1x?x64x1x640xf8E4M3FN>, %lengths: memref<?xi32>,
                                %lut: memref<?x?xi32>, %max_seq: i32, %max_cache: i32, %layer: index,
                                %ids: memref<?x?xi32>, %content: memref<?x?x512xf8E4M3FN>,
                                %rope: memref<?x?x64xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index

  %collection = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq, %max_cache
      : memref<?x1x?x64x1x640xf8E4M3FN>, memref<?xi32>, memref<?x?xi32> -> !collection_640
  %cache = kvcache.paged_view key %collection[%layer] : !collection_640
  %queries = memref.dim %ids, %c0 : memref<?x?xi32>
  %selected = memref.dim %ids, %c1 : memref<?x?xi32>
  %tiles = arith.divui %selected, %c64 : index

  scf.parallel (%q, %i) = (%c0, %c0) to (%queries, %tiles) step (%c1, %c1) {
    scf.parallel (%y, %x) = (%c0, %c0) to (%c8, %c32) step (%c1, %c1) {
      func.call @gather_tile_fp8_with_rope(%cache, %ids, %q, %i, %y, %x, %content, %rope)
          : (!cache_640, memref<?x?xi32>, index, index, index, index, memref<?x?x512xf8E4M3FN>, memref<?x?x64xbf16>)
          -> ()
    }
  }
  return
}

// The rope has another element type, so its bytes go to a separate tile, with the swizzle that `ldmatrix` and the
// tensor cores need for bf16.
func.func private @gather_tile_fp8_with_rope(%cache: !cache_640, %ids: memref<?x?xi32>,
                                             %q: index, %i: index, %y: index, %x: index,
                                             %content: memref<?x?x512xf8E4M3FN>, %rope: memref<?x?x64xbf16>) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index

  %first = arith.muli %i, %c64 : index
  %rows = memref.subview %ids[%q, %first] [1, 64] [1, 1]
      : memref<?x?xi32> to memref<64xi32, strided<[1], offset: ?>>
  %content_tile = kvcache.alloc_tile : !content_tile
  %rope_tile = kvcache.alloc_tile : !rope_tile
  %content_copy = kvcache.async_gather_tile %cache[%c0, %c0] rows %rows to %content_tile
      : !cache_640, memref<64xi32, strided<[1], offset: ?>>, !content_tile
  %rope_copy = kvcache.async_gather_tile %cache[%c0, %c512] rows %rows to %rope_tile
      : !cache_640, memref<64xi32, strided<[1], offset: ?>>, !rope_tile
  kvcache.wait %content_copy
  kvcache.wait %rope_copy

  // A warp writes the 512 bytes of one row at a time.
  %d = arith.muli %x, %c16 : index
  scf.for %row = %y to %c64 step %c8 {
    %n = arith.addi %first, %row : index
    %v = kvcache.tile_load %content_tile[%row, %d] : !content_tile -> vector<16xf8E4M3FN>
    vector.store %v, %content[%q, %n, %d] {alignment = 16} : memref<?x?x512xf8E4M3FN>, vector<16xf8E4M3FN>
  }
  // A warp writes the 128 bytes of four rows at a time.
  %y4 = arith.muli %y, %c4 : index
  %part = arith.divui %x, %c8 : index
  %first_row = arith.addi %y4, %part : index
  %unit = arith.remui %x, %c8 : index
  %byte = arith.muli %unit, %c16 : index
  %e = arith.divui %byte, %c2 : index
  scf.for %row = %first_row to %c64 step %c32 {
    %n = arith.addi %first, %row : index
    %bytes = kvcache.tile_load %rope_tile[%row, %byte] : !rope_tile -> vector<16xf8E4M3FN>
    %v = vector.bitcast %bytes : vector<16xf8E4M3FN> to vector<8xbf16>
    vector.store %v, %rope[%q, %n, %e] {alignment = 16} : memref<?x?x64xbf16>, vector<8xbf16>
  }
  return
}

// --- 576 fp8 ---------------------------------------------------------------------------------------------------------

!collection_fp8 = !kvcache.paged_collection<f8E4M3FN, #mla_576, page_size = 64>
!cache_fp8 = !kvcache.paged<f8E4M3FN, #mla_576, page_size = 64>
!tile_fp8 = !kvcache.tile<64x576xf8E4M3FN>

func.func @gather_fp8(%blocks: memref<?x1x?x64x1x576xf8E4M3FN>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                      %max_seq: i32, %max_cache: i32, %layer: index,
                      %ids: memref<?x?xi32>, %out: memref<?x?x576xf8E4M3FN>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c36 = arith.constant 36 : index
  %c64 = arith.constant 64 : index

  %collection = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq, %max_cache
      : memref<?x1x?x64x1x576xf8E4M3FN>, memref<?xi32>, memref<?x?xi32> -> !collection_fp8
  %cache = kvcache.paged_view key %collection[%layer] : !collection_fp8
  %queries = memref.dim %ids, %c0 : memref<?x?xi32>
  %selected = memref.dim %ids, %c1 : memref<?x?xi32>
  %tiles = arith.divui %selected, %c64 : index

  scf.parallel (%q, %i) = (%c0, %c0) to (%queries, %tiles) step (%c1, %c1) {
    scf.parallel (%y, %x) = (%c0, %c0) to (%c8, %c36) step (%c1, %c1) {
      func.call @gather_tile_fp8(%cache, %ids, %q, %i, %y, %x, %out)
          : (!cache_fp8, memref<?x?xi32>, index, index, index, index, memref<?x?x576xf8E4M3FN>) -> ()
    }
  }
  return
}

func.func private @gather_tile_fp8(%cache: !cache_fp8, %ids: memref<?x?xi32>,
                                   %q: index, %i: index, %y: index, %x: index, %out: memref<?x?x576xf8E4M3FN>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index

  %first = arith.muli %i, %c64 : index
  %rows = memref.subview %ids[%q, %first] [1, 64] [1, 1]
      : memref<?x?xi32> to memref<64xi32, strided<[1], offset: ?>>
  %tile = kvcache.alloc_tile : !tile_fp8
  %copy = kvcache.async_gather_tile %cache[%c0, %c0] rows %rows to %tile
      : !cache_fp8, memref<64xi32, strided<[1], offset: ?>>, !tile_fp8
  kvcache.wait %copy

  %d = arith.muli %x, %c16 : index
  scf.for %row = %y to %c64 step %c8 {
    %n = arith.addi %first, %row : index
    %v = kvcache.tile_load %tile[%row, %d] : !tile_fp8 -> vector<16xf8E4M3FN>
    vector.store %v, %out[%q, %n, %d] {alignment = 16} : memref<?x?x576xf8E4M3FN>, vector<16xf8E4M3FN>
  }
  return
}

// --- 576 bf16 --------------------------------------------------------------------------------------------------------

!collection_bf16 = !kvcache.paged_collection<bf16, #mla_576, page_size = 64>
!cache_bf16 = !kvcache.paged<bf16, #mla_576, page_size = 64>
!tile_bf16 = !kvcache.tile<64x576xbf16>

func.func @gather_bf16(%blocks: memref<?x1x?x64x1x576xbf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                       %max_seq: i32, %max_cache: i32, %layer: index,
                       %ids: memref<?x?xi32>, %out: memref<?x?x576xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %c72 = arith.constant 72 : index

  %collection = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq, %max_cache
      : memref<?x1x?x64x1x576xbf16>, memref<?xi32>, memref<?x?xi32> -> !collection_bf16
  %cache = kvcache.paged_view key %collection[%layer] : !collection_bf16
  %queries = memref.dim %ids, %c0 : memref<?x?xi32>
  %selected = memref.dim %ids, %c1 : memref<?x?xi32>
  %tiles = arith.divui %selected, %c64 : index

  scf.parallel (%q, %i) = (%c0, %c0) to (%queries, %tiles) step (%c1, %c1) {
    scf.parallel (%y, %x) = (%c0, %c0) to (%c4, %c72) step (%c1, %c1) {
      func.call @gather_tile_bf16(%cache, %ids, %q, %i, %y, %x, %out)
          : (!cache_bf16, memref<?x?xi32>, index, index, index, index, memref<?x?x576xbf16>) -> ()
    }
  }
  return
}

func.func private @gather_tile_bf16(%cache: !cache_bf16, %ids: memref<?x?xi32>,
                                    %q: index, %i: index, %y: index, %x: index, %out: memref<?x?x576xbf16>) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index

  %first = arith.muli %i, %c64 : index
  %rows = memref.subview %ids[%q, %first] [1, 64] [1, 1]
      : memref<?x?xi32> to memref<64xi32, strided<[1], offset: ?>>
  %tile = kvcache.alloc_tile : !tile_bf16
  %copy = kvcache.async_gather_tile %cache[%c0, %c0] rows %rows to %tile
      : !cache_bf16, memref<64xi32, strided<[1], offset: ?>>, !tile_bf16
  kvcache.wait %copy

  %d = arith.muli %x, %c8 : index
  scf.for %row = %y to %c64 step %c4 {
    %n = arith.addi %first, %row : index
    %v = kvcache.tile_load %tile[%row, %d] : !tile_bf16 -> vector<8xbf16>
    vector.store %v, %out[%q, %n, %d] {alignment = 16} : memref<?x?x576xbf16>, vector<8xbf16>
  }
  return
}
