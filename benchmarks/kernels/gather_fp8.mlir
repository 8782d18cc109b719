// Gathers one layer's keys from the paged fp8 cache, dequantized, into a contiguous buffer.
//
//   out[b, t, h, d] = bf16(f32(keys[b, h, t, d]) * scales[b, h, t, d div 64])   for t < cache_length(b), and 0 above
//
// The work of peers/gather_fp8.cu: pages of 16 tokens, 8 KV heads of 128, e4m3, an f32 scale for every 64 elements. A
// block copies 8 tokens, and a thread 8 elements of each of 4 heads; it loads all before it converts any. So 16
// neighbours store 256 bytes in a row: with 16 elements a thread, each of two stores would write half of every sector,
// which took 1.35 times as long on an H200.

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<f8E4M3FN, #kv, page_size = 16, scale = f32, granularity = 64>
!cache = !kvcache.paged<f8E4M3FN, #kv, page_size = 16, scale = f32, granularity = 64>
!out = memref<?x?x8x128xbf16>
!codes = vector<8xf8E4M3FN>
!v = vector<8xbf16>

func.func @gather_fp8(%blocks: memref<?x2x?x16x8x128xf8E4M3FN>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                      %max_seq: i32, %max_cache: i32, %scales: memref<?x2x?x16x8x2xf32>, %layer: index, %out: !out) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c6 = arith.constant 6 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %no_scale = arith.constant 0.0 : f32
  %no_codes = arith.constant dense<0.0> : !codes

  %collection = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq, %max_cache scales %scales
      : memref<?x2x?x16x8x128xf8E4M3FN>, memref<?xi32>, memref<?x?xi32>, memref<?x2x?x16x8x2xf32> -> !collection
  %keys = kvcache.paged_view key %collection[%layer] : !collection
  %batch = memref.dim %out, %c0 : !out
  %tokens = memref.dim %out, %c1 : !out

  scf.parallel (%b, %first) = (%c0, %c0) to (%batch, %tokens) step (%c1, %c8) {
    scf.parallel (%row, %h0, %lane) = (%c0, %c0, %c0) to (%c8, %c2, %c16) step (%c1, %c1, %c1) {
      %t = arith.addi %first, %row : index
      %d = arith.muli %lane, %c8 : index
      %h2 = arith.addi %h0, %c2 : index
      %h4 = arith.addi %h0, %c4 : index
      %h6 = arith.addi %h0, %c6 : index

      %inside = arith.cmpi ult, %t, %tokens : index
      scf.if %inside {
        %length = kvcache.cache_length %keys[%b] : !cache
        %used = arith.cmpi ult, %t, %length : index
        %loaded:8 = scf.if %used -> (!codes, !codes, !codes, !codes, f32, f32, f32, f32) {
          %page = kvcache.page_id %keys[%b, %t] : !cache
          %w0 = kvcache.load_quantized %keys[%b, %h0, %t, %d] page %page : !cache -> !codes
          %w2 = kvcache.load_quantized %keys[%b, %h2, %t, %d] page %page : !cache -> !codes
          %w4 = kvcache.load_quantized %keys[%b, %h4, %t, %d] page %page : !cache -> !codes
          %w6 = kvcache.load_quantized %keys[%b, %h6, %t, %d] page %page : !cache -> !codes
          %x0 = kvcache.load_scale %keys[%b, %h0, %t, %d] : !cache -> f32
          %x2 = kvcache.load_scale %keys[%b, %h2, %t, %d] : !cache -> f32
          %x4 = kvcache.load_scale %keys[%b, %h4, %t, %d] : !cache -> f32
          %x6 = kvcache.load_scale %keys[%b, %h6, %t, %d] : !cache -> f32
          scf.yield %w0, %w2, %w4, %w6, %x0, %x2, %x4, %x6 : !codes, !codes, !codes, !codes, f32, f32, f32, f32
        } else {
          scf.yield %no_codes, %no_codes, %no_codes, %no_codes, %no_scale, %no_scale, %no_scale, %no_scale
              : !codes, !codes, !codes, !codes, f32, f32, f32, f32
        }
        %v0 = kvcache.dequantize %loaded#0, %loaded#4 : !codes, f32 -> !v
        %v2 = kvcache.dequantize %loaded#1, %loaded#5 : !codes, f32 -> !v
        %v4 = kvcache.dequantize %loaded#2, %loaded#6 : !codes, f32 -> !v
        %v6 = kvcache.dequantize %loaded#3, %loaded#7 : !codes, f32 -> !v
        vector.store %v0, %out[%b, %t, %h0, %d] {alignment = 16} : !out, !v
        vector.store %v2, %out[%b, %t, %h2, %d] {alignment = 16} : !out, !v
        vector.store %v4, %out[%b, %t, %h4, %d] {alignment = 16} : !out, !v
        vector.store %v6, %out[%b, %t, %h6, %d] {alignment = 16} : !out, !v
      }
    }
  }
  return
}
