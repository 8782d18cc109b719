// Appends bf16 tokens to one layer of a paged fp8 cache, keys and values, and quantizes them.
//
//   cache[kv][b, h, t, d] = new[kv, i, h, d] / scale, rounded to f8E4M3FN,   b = token_sequences[i], t = token_positions[i]
//   scale = the largest magnitude of the 64 elements from d div 64 * 64 on, divided by 448; 1 where that is 0
//
// for every token i. Pages of 16 tokens, 8 KV heads of 128. Keys are first, kv = 0.
//
// A block is a token's keys or values, and a thread 8 elements; eight threads share a scale.

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<f8E4M3FN, #kv, page_size = 16, scale = f32, granularity = 64>
!cache = !kvcache.paged<f8E4M3FN, #kv, page_size = 16, scale = f32, granularity = 64>

func.func @append_fp8(%blocks: memref<?x2x?x16x8x128xf8E4M3FN>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                      %max_seq: i32, %max_cache: i32, %scales: memref<?x2x?x16x8x2xf32>, %layer: index,
                      %new: memref<2x?x8x128xbf16>, %token_sequences: memref<?xi32>, %token_positions: memref<?xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %tokens = memref.dim %new, %c1 : memref<2x?x8x128xbf16>

  scf.parallel (%kv, %i) = (%c0, %c0) to (%c2, %tokens) step (%c1, %c1) {
    scf.parallel (%h, %lane) = (%c0, %c0) to (%c8, %c16) step (%c1, %c1) {
      %collection = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq, %max_cache scales %scales
          : memref<?x2x?x16x8x128xf8E4M3FN>, memref<?xi32>, memref<?x?xi32>, memref<?x2x?x16x8x2xf32> -> !collection
      %keys = kvcache.paged_view key %collection[%layer] : !collection
      %values = kvcache.paged_view value %collection[%layer] : !collection
      %is_key = arith.cmpi eq, %kv, %c0 : index
      %cache = arith.select %is_key, %keys, %values : !cache

      %b_i32 = memref.load %token_sequences[%i] : memref<?xi32>
      %t_i32 = memref.load %token_positions[%i] : memref<?xi32>
      %b = arith.index_castui %b_i32 : i32 to index
      %t = arith.index_castui %t_i32 : i32 to index
      %d = arith.muli %lane, %c8 : index
      %x = vector.load %new[%kv, %i, %h, %d] {alignment = 16 : i64} : memref<2x?x8x128xbf16>, vector<8xbf16>
      %quantized, %scale = kvcache.quantize %x {lanes = 8} : vector<8xbf16> -> vector<8xf8E4M3FN>, f32
      kvcache.store %quantized, %cache[%b, %h, %t, %d] : vector<8xf8E4M3FN>, !cache
      %in_group = arith.remui %lane, %c8 : index
      %is_first = arith.cmpi eq, %in_group, %c0 : index
      scf.if %is_first {
        kvcache.store_scale %scale, %cache[%b, %h, %t, %d] : f32, !cache
      }
    }
  }
  return
}
