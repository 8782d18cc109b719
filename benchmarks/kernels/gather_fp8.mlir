// Gathers one layer's keys from the paged fp8 cache, dequantized, into a contiguous buffer.
//
//   out[b, t, h, d] = bf16(f32(keys[b, h, t, d]) * scales[b, h, t, d div 64])   for t < cache_length(b), and 0 above
//
// The work of peers/gather_fp8.cu: pages of 16 tokens, 8 KV heads of 128, e4m3, an f32 scale for every 64 elements. A
// block copies 8 tokens, and a thread 8 elements of each half of 2 heads, so that one access reads the scales of both
// halves; it loads all before it converts any. So 8 neighbours store 128 bytes in a row: with 16 elements in a row a
// thread, each of two stores would write half of every sector, which took 1.35 times as long on an H200.

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<f8E4M3FN, #kv, page_size = 16, scale = f32, granularity = 64>
!cache = !kvcache.paged<f8E4M3FN, #kv, page_size = 16, scale = f32, granularity = 64>
!scales = !kvcache.scales<!cache>
!out = memref<?x?x8x128xbf16>
!codes = vector<8xf8E4M3FN>
!pair = vector<2xf32>
!v = vector<8xbf16>

func.func @gather_fp8(%blocks: memref<?x2x?x16x8x128xf8E4M3FN>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                      %max_seq: i32, %max_cache: i32, %scales: memref<?x2x?x16x8x2xf32>, %layer: index, %out: !out) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %no_scales = arith.constant dense<0.0> : !pair
  %no_codes = arith.constant dense<0.0> : !codes

  %collection = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq, %max_cache scales %scales
      : memref<?x2x?x16x8x128xf8E4M3FN>, memref<?xi32>, memref<?x?xi32>, memref<?x2x?x16x8x2xf32> -> !collection
  %keys = kvcache.paged_view key %collection[%layer] : !collection
  %batch = memref.dim %out, %c0 : !out
  %tokens = memref.dim %out, %c1 : !out

  scf.parallel (%b, %first) = (%c0, %c0) to (%batch, %tokens) step (%c1, %c8) {
    scf.parallel (%row, %h0, %lane) = (%c0, %c0, %c0) to (%c8, %c4, %c8) step (%c1, %c1, %c1) {
      %t = arith.addi %first, %row : index
      %h4 = arith.addi %h0, %c4 : index
      %d0 = arith.muli %lane, %c8 : index
      %d1 = arith.addi %d0, %c64 : index

      %inside = arith.cmpi ult, %t, %tokens : index
      scf.if %inside {
        %length = kvcache.cache_length %keys[%b] : !cache
        %used = arith.cmpi ult, %t, %length : index
        %loaded:6 = scf.if %used -> (!codes, !codes, !codes, !codes, !pair, !pair) {
          %page = kvcache.page_id %keys[%b, %t] : !cache
          %w0 = kvcache.load_quantized %keys[%b, %h0, %t, %d0] page %page : !cache -> !codes
          %w1 = kvcache.load_quantized %keys[%b, %h0, %t, %d1] page %page : !cache -> !codes
          %w2 = kvcache.load_quantized %keys[%b, %h4, %t, %d0] page %page : !cache -> !codes
          %w3 = kvcache.load_quantized %keys[%b, %h4, %t, %d1] page %page : !cache -> !codes
          %key_scales = kvcache.scales_view %keys : !cache
          %x0 = kvcache.load %key_scales[%b, %h0, %t, %c0] page %page : !scales -> !pair
          %x4 = kvcache.load %key_scales[%b, %h4, %t, %c0] page %page : !scales -> !pair
          scf.yield %w0, %w1, %w2, %w3, %x0, %x4 : !codes, !codes, !codes, !codes, !pair, !pair
        } else {
          scf.yield %no_codes, %no_codes, %no_codes, %no_codes, %no_scales, %no_scales
              : !codes, !codes, !codes, !codes, !pair, !pair
        }
        %s0, %s1 = vector.to_elements %loaded#4 : !pair
        %s2, %s3 = vector.to_elements %loaded#5 : !pair
        %v0 = kvcache.dequantize %loaded#0, %s0 : !codes, f32 -> !v
        %v1 = kvcache.dequantize %loaded#1, %s1 : !codes, f32 -> !v
        %v2 = kvcache.dequantize %loaded#2, %s2 : !codes, f32 -> !v
        %v3 = kvcache.dequantize %loaded#3, %s3 : !codes, f32 -> !v
        vector.store %v0, %out[%b, %t, %h0, %d0] {alignment = 16} : !out, !v
        vector.store %v1, %out[%b, %t, %h0, %d1] {alignment = 16} : !out, !v
        vector.store %v2, %out[%b, %t, %h4, %d0] {alignment = 16} : !out, !v
        vector.store %v3, %out[%b, %t, %h4, %d1] {alignment = 16} : !out, !v
      }
    }
  }
  return
}
