#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// out[b, t, h, d] = keys of one layer [b, h, t, d], through the lookup table
func.func @copy_keys(%blocks: memref<?x2x?x64x8x128xbf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                     %max_seq: i32, %max_cache: i32, %layer: index, %out: memref<?x?x8x128xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %batch = memref.dim %out, %c0 : memref<?x?x8x128xbf16>
  %tokens = memref.dim %out, %c1 : memref<?x?x8x128xbf16>
  %cache = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq, %max_cache
      : memref<?x2x?x64x8x128xbf16>, memref<?xi32>, memref<?x?xi32> -> !collection
  %keys = kvcache.paged_view key %cache[%layer] : !collection
  scf.parallel (%b, %t) = (%c0, %c0) to (%batch, %tokens) step (%c1, %c1) {   // the grid
    scf.parallel (%h, %lane) = (%c0, %c0) to (%c8, %c16) step (%c1, %c1) {    // the block
      %d = arith.muli %lane, %c8 : index
      %v = kvcache.load %keys[%b, %h, %t, %d] : !cache -> vector<8xbf16>
      vector.store %v, %out[%b, %t, %h, %d] {alignment = 16} : memref<?x?x8x128xbf16>, vector<8xbf16>
    }
  }
  return
}
