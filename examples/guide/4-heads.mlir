// scores[b, h, t] = q[b, h, :] . keys[b, h, t, :]   for t < cache_length(b)
//
// 16 neighbouring threads for each token, which take its 8 heads one after the other: one lookup serves all.

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
  %zero = arith.constant 0.0 : f32
  %batch = memref.dim %scores, %c0 : memref<?x8x?xf32>
  %tokens = memref.dim %scores, %c2 : memref<?x8x?xf32>
  %collection = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq, %max_cache
      : memref<?x2x?x64x8x128xbf16>, memref<?xi32>, memref<?x?xi32> -> !collection
  %keys = kvcache.paged_view key %collection[%layer] : !collection
  scf.parallel (%b, %first) = (%c0, %c0) to (%batch, %tokens) step (%c1, %c8) {
    scf.parallel (%row, %lane) = (%c0, %c0) to (%c8, %c16) step (%c1, %c1) {
      %t = arith.addi %first, %row : index
      %d = arith.muli %lane, %c8 : index
      %length = kvcache.cache_length %keys[%b] : !cache
      %used = arith.cmpi ult, %t, %length : index
      %is_first = arith.cmpi eq, %lane, %c0 : index
      %stores = arith.andi %is_first, %used : i1
      scf.for %h = %c0 to %c8 step %c1 {
        %part = scf.if %used -> (f32) {
          %k = kvcache.load %keys[%b, %h, %t, %d] : !cache -> vector<8xf32>
          %x_raw = vector.load %q[%b, %h, %d] {alignment = 16} : memref<?x8x128xbf16>, vector<8xbf16>
          %x = arith.extf %x_raw : vector<8xbf16> to vector<8xf32>
          %products = arith.mulf %x, %k : vector<8xf32>
          %sum = vector.reduction <add>, %products fastmath<reassoc> : vector<8xf32> into f32
          scf.yield %sum : f32
        } else {
          scf.yield %zero : f32
        }
        // All lanes of a warp take part, those past the length as well.
        %score = gpu.subgroup_reduce add %part cluster(size = 16) : (f32) -> f32
        scf.if %stores {
          memref.store %score, %scores[%b, %h, %t] : memref<?x8x?xf32>
        }
      }
    }
  }
  return
}
