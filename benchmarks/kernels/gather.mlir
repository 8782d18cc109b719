// Gathers one layer's keys from the paged cache into a contiguous buffer.
//
//   out[b, t, h, d] = keys[b, h, t, d]   for t < cache_length(b), and 0 above
//
// The work of peers/gather.cu: pages of 16 tokens, 8 KV heads of 128, bf16. A block copies 8 tokens, and a thread 4 x 16
// bytes of one token; it loads all before it stores any. Nontemporal accesses and blocks of 16 tokens took 1.06 times as
// long on an H200.

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 16>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>
!out = memref<?x?x8x128xbf16>
!v = vector<8xbf16>

func.func @gather(%blocks: memref<?x2x?x16x8x128xbf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                  %max_seq: i32, %max_cache: i32, %layer: index, %out: !out) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c6 = arith.constant 6 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant dense<0.0> : !v

  %collection = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq, %max_cache
      : memref<?x2x?x16x8x128xbf16>, memref<?xi32>, memref<?x?xi32> -> !collection
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
        %v:4 = scf.if %used -> (!v, !v, !v, !v) {
          %v0 = kvcache.load %keys[%b, %h0, %t, %d] : !cache -> !v
          %v2 = kvcache.load %keys[%b, %h2, %t, %d] : !cache -> !v
          %v4 = kvcache.load %keys[%b, %h4, %t, %d] : !cache -> !v
          %v6 = kvcache.load %keys[%b, %h6, %t, %d] : !cache -> !v
          scf.yield %v0, %v2, %v4, %v6 : !v, !v, !v, !v
        } else {
          scf.yield %zero, %zero, %zero, %zero : !v, !v, !v, !v
        }
        vector.store %v#0, %out[%b, %t, %h0, %d] {alignment = 16} : !out, !v
        vector.store %v#1, %out[%b, %t, %h2, %d] {alignment = 16} : !out, !v
        vector.store %v#2, %out[%b, %t, %h4, %d] {alignment = 16} : !out, !v
        vector.store %v#3, %out[%b, %t, %h6, %d] {alignment = 16} : !out, !v
      }
    }
  }
  return
}
