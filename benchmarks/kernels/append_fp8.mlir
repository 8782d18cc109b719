#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<f8E4M3FN, #kv, page_size = 16, scale = f32, granularity = 64>
!cache = !kvcache.paged<f8E4M3FN, #kv, page_size = 16, scale = f32, granularity = 64>

func.func @append_fp8(%new: memref<2x?x8x128xbf16>, %token_sequences: memref<?xi32>, %token_positions: memref<?xi32>,
                      %blocks: memref<?x2x?x16x8x128xf8E4M3FN>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                      %max_seq: i32, %max_cache: i32, %scales: memref<?x2x?x16x8x2xf32>, %layer: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %tokens = memref.dim %new, %c1 : memref<2x?x8x128xbf16>

  scf.parallel (%i) = (%c0) to (%tokens) step (%c1) {
    scf.parallel (%h, %lane) = (%c0, %c0) to (%c8, %c16) step (%c1, %c1) {
      %collection = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq, %max_cache scales %scales
          : memref<?x2x?x16x8x128xf8E4M3FN>, memref<?xi32>, memref<?x?xi32>, memref<?x2x?x16x8x2xf32> -> !collection
      %keys = kvcache.paged_view key %collection[%layer] : !collection
      %values = kvcache.paged_view value %collection[%layer] : !collection
      %b_i32 = memref.load %token_sequences[%i] : memref<?xi32>
      %t_i32 = memref.load %token_positions[%i] : memref<?xi32>
      %b = arith.index_castui %b_i32 : i32 to index
      %t = arith.index_castui %t_i32 : i32 to index
      %d = arith.muli %lane, %c8 : index
      %key = vector.load %new[%c0, %i, %h, %d] {alignment = 16 : i64} : memref<2x?x8x128xbf16>, vector<8xbf16>
      %value = vector.load %new[%c1, %i, %h, %d] {alignment = 16 : i64} : memref<2x?x8x128xbf16>, vector<8xbf16>
      %key_fp8, %key_scale = kvcache.quantize %key {lanes = 8} : vector<8xbf16> -> vector<8xf8E4M3FN>, f32
      %value_fp8, %value_scale = kvcache.quantize %value {lanes = 8} : vector<8xbf16> -> vector<8xf8E4M3FN>, f32
      kvcache.store %key_fp8, %keys[%b, %h, %t, %d] : vector<8xf8E4M3FN>, !cache
      kvcache.store %value_fp8, %values[%b, %h, %t, %d] : vector<8xf8E4M3FN>, !cache
      %in_group = arith.remui %d, %c64 : index
      %is_first = arith.cmpi eq, %in_group, %c0 : index
      scf.if %is_first {
        kvcache.store_scale %key_scale, %keys[%b, %h, %t, %d] : f32, !cache
        kvcache.store_scale %value_scale, %values[%b, %h, %t, %d] : f32, !cache
      }
    }
  }
  return
}
