// scores[b, h, t] = q[b, h, :] . keys[b, h, t, :]   for t < cache_length(b)
//
// A thread for each score.

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @scores(%blocks: memref<?x2x?x64x8x128xbf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                  %max_seq: i32, %max_cache: i32, %layer: index,
                  %q: memref<?x8x128xbf16>, %scores: memref<?x8x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c128 = arith.constant 128 : index
  %zero = arith.constant 0.0 : f32
  %batch = memref.dim %scores, %c0 : memref<?x8x?xf32>
  %tokens = memref.dim %scores, %c2 : memref<?x8x?xf32>
  %collection = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq, %max_cache
      : memref<?x2x?x64x8x128xbf16>, memref<?xi32>, memref<?x?xi32> -> !collection
  %keys = kvcache.paged_view key %collection[%layer] : !collection
  scf.parallel (%b, %first) = (%c0, %c0) to (%batch, %tokens) step (%c1, %c16) {  // the grid
    scf.parallel (%h, %row) = (%c0, %c0) to (%c8, %c16) step (%c1, %c1) {         // the block
      %t = arith.addi %first, %row : index
      %length = kvcache.cache_length %keys[%b] : !cache
      %used = arith.cmpi ult, %t, %length : index
      scf.if %used {
        %score = scf.for %d = %c0 to %c128 step %c1 iter_args(%sum = %zero) -> (f32) {
          %k = kvcache.load %keys[%b, %h, %t, %d] : !cache -> f32
          %x_raw = memref.load %q[%b, %h, %d] : memref<?x8x128xbf16>
          %x = arith.extf %x_raw : bf16 to f32
          %next = math.fma %x, %k, %sum : f32
          scf.yield %next : f32
        }
        memref.store %score, %scores[%b, %h, %t] : memref<?x8x?xf32>
      }
    }
  }
  return
}
