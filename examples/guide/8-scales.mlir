// scores[b, h, t] = q[b, h, :] . keys[b, h, t, :]   for t < cache_length(b)
//
// As in 5-lookups.mlir, but keys are fp8, with a scale for each head of a token: 8 threads read a row of 128 bytes.
// The scale goes on the score.

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 128>
!cache = !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 128>

func.func @scores(%blocks: memref<?x2x?x64x8x128xf8E4M3FN>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                  %max_seq: i32, %max_cache: i32, %scales: memref<?x2x?x64x8x1xf32>, %layer: index,
                  %q: memref<?x8x128xbf16>, %scores: memref<?x8x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %batch = memref.dim %scores, %c0 : memref<?x8x?xf32>
  %tokens = memref.dim %scores, %c2 : memref<?x8x?xf32>
  %collection = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq, %max_cache scales %scales
      : memref<?x2x?x64x8x128xf8E4M3FN>, memref<?xi32>, memref<?x?xi32>, memref<?x2x?x64x8x1xf32> -> !collection
  %keys = kvcache.paged_view key %collection[%layer] : !collection
  scf.parallel (%b, %first) = (%c0, %c0) to (%batch, %tokens) step (%c1, %c16) {
    scf.parallel (%row, %lane) = (%c0, %c0) to (%c16, %c8) step (%c1, %c1) {
      %t = arith.addi %first, %row : index
      %d = arith.muli %lane, %c16 : index
      %length = kvcache.cache_length %keys[%b] : !cache
      %any = arith.cmpi ult, %first, %length : index
      %used = arith.cmpi ult, %t, %length : index
      %is_first = arith.cmpi eq, %lane, %c0 : index
      %stores = arith.andi %is_first, %used : i1
      scf.if %any {  // the same for all threads of a block
        %last = arith.subi %length, %c1 : index
        %near = arith.minui %t, %last : index
        scf.for %h = %c0 to %c8 step %c1 {
          %k_raw = kvcache.load_quantized %keys[%b, %h, %near, %d] : !cache -> vector<16xf8E4M3FN>
          %scale = kvcache.load_scale %keys[%b, %h, %near, %d] : !cache -> f32
          %k = arith.extf %k_raw : vector<16xf8E4M3FN> to vector<16xf32>
          %x_raw = vector.load %q[%b, %h, %d] {alignment = 16} : memref<?x8x128xbf16>, vector<16xbf16>
          %x = arith.extf %x_raw : vector<16xbf16> to vector<16xf32>
          %products = arith.mulf %x, %k : vector<16xf32>
          %part = vector.reduction <add>, %products fastmath<reassoc> : vector<16xf32> into f32
          %dot = gpu.subgroup_reduce add %part cluster(size = 8) : (f32) -> f32
          %score = arith.mulf %dot, %scale : f32
          scf.if %stores {
            memref.store %score, %scores[%b, %h, %t] : memref<?x8x?xf32>
          }
        }
      }
    }
  }
  return
}
