// Copies the keys of one layer from the paged cache through tiles in shared memory to a contiguous buffer.
//
//   out[b, h, t, :] = keys[b, h, t, :]   for t < cache_length(b), and 0 above
//
// The blocks of an attention kernel load their keys in this way. A tile has 64 tokens of a head. Its layout in shared
// memory suits `ldmatrix`, `wgmma` and `tcgen05.mma`: two chunks of 64 columns, with swizzled 128-byte rows. Rows past
// the length are zeros; a tile that has only such rows does not read the lookup table.
// The shapes are those of Llama-3-8B: pages of 64 tokens, 8 KV heads of 128 elements, bf16.
//
// The compiler chooses the instructions for each chip:
//
//   sm_90 and newer   two tensor copies (cp.async.bulk.tensor), issued by one lane, and an mbarrier. The descriptor is
//                     the last parameter of the kernel. A partial tile uses a ragged box, without stores of zeros
//   sm_80 to sm_89    cp.async of 16 bytes by every thread
//
// One source for CPU and GPU, like gather.mlir: one block of 8 x 16 threads per tile. On the CPU, the threads run one
// after the other, and each copies the whole tile before it writes its part, which is correct but slow.
//
//   kvcache-opt examples/key_tile.mlir --kvcache-to-ptx="chip=sm_90a" --emit-ptx
//
//   program = kvcache.jit(pathlib.Path("examples/key_tile.mlir"), target="cpu")
//   program.call("copy_keys", blocks, lengths, lut, max_seq, max_cache, layer, out)

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!tile = !kvcache.tile<64x128xbf16, swizzle_128b>
!v = vector<8xbf16>

func.func @copy_keys(%blocks: memref<?x2x?x64x8x128xbf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                     %max_seq: i32, %max_cache: i32, %layer: index, %out: memref<?x8x?x128xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index

  %collection = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq, %max_cache
      : memref<?x2x?x64x8x128xbf16>, memref<?xi32>, memref<?x?xi32> -> !collection
  %keys = kvcache.paged_view key %collection[%layer] : !collection
  %batch = memref.dim %out, %c0 : memref<?x8x?x128xbf16>
  %tokens = memref.dim %out, %c2 : memref<?x8x?x128xbf16>
  %tiles = arith.ceildivui %tokens, %c64 : index

  scf.parallel (%b, %h, %i) = (%c0, %c0, %c0) to (%batch, %c8, %tiles) step (%c1, %c1, %c1) {
    scf.parallel (%y, %x) = (%c0, %c0) to (%c8, %c16) step (%c1, %c1) {
      func.call @copy_tile(%keys, %b, %h, %i, %y, %x, %out)
          : (!cache, index, index, index, index, index, memref<?x8x?x128xbf16>) -> ()
    }
  }
  return
}

// The work of thread (y, x) for tile i of a head.
func.func private @copy_tile(%keys: !cache, %b: index, %h: index, %i: index, %y: index, %x: index,
                             %out: memref<?x8x?x128xbf16>) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index

  %first = arith.muli %i, %c64 : index
  %length = kvcache.cache_length %keys[%b] : !cache
  %before = arith.minui %first, %length : index
  %valid = arith.subi %length, %before : index

  %tile = kvcache.alloc_tile : !tile
  %copy = kvcache.async_load_tile %keys[%b, %h, %first, %c0] valid %valid to %tile : !cache, !tile
  kvcache.wait %copy

  // 16 adjacent threads write the 256 bytes of a row.
  %tokens = memref.dim %out, %c2 : memref<?x8x?x128xbf16>
  %d = arith.muli %x, %c8 : index
  scf.for %row = %y to %c64 step %c8 {
    %t = arith.addi %first, %row : index
    %inside = arith.cmpi ult, %t, %tokens : index
    scf.if %inside {
      %v = kvcache.tile_load %tile[%row, %d] : !tile -> !v
      vector.store %v, %out[%b, %h, %t, %d] {alignment = 16} : memref<?x8x?x128xbf16>, !v
    }
  }
  return
}
