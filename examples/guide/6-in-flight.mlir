// scores[b, h, t] = q[b, h, :] . keys[b, h, t, :]   for t < cache_length(b)
//
// As in 5-lookups.mlir, but a thread loads from four heads before it uses any of them.

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @scores(%blocks: memref<?x2x?x64x8x128xbf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                  %max_seq: i32, %max_cache: i32, %layer: index,
                  %q: memref<?x8x128xbf16>, %scores: memref<?x8x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
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
      %any = arith.cmpi ult, %first, %length : index
      %used = arith.cmpi ult, %t, %length : index
      %is_first = arith.cmpi eq, %lane, %c0 : index
      %stores = arith.andi %is_first, %used : i1
      scf.if %any {  // the same for all threads of a block
        %last = arith.subi %length, %c1 : index
        %near = arith.minui %t, %last : index
        scf.for %h0 = %c0 to %c8 step %c4 {
          %h1 = arith.addi %h0, %c1 : index
          %h2 = arith.addi %h0, %c2 : index
          %h3 = arith.addi %h0, %c3 : index
          %k0 = kvcache.load %keys[%b, %h0, %near, %d] : !cache -> vector<8xf32>
          %k1 = kvcache.load %keys[%b, %h1, %near, %d] : !cache -> vector<8xf32>
          %k2 = kvcache.load %keys[%b, %h2, %near, %d] : !cache -> vector<8xf32>
          %k3 = kvcache.load %keys[%b, %h3, %near, %d] : !cache -> vector<8xf32>
          %s0 = func.call @dot(%q, %b, %h0, %d, %k0)
              : (memref<?x8x128xbf16>, index, index, index, vector<8xf32>) -> f32
          %s1 = func.call @dot(%q, %b, %h1, %d, %k1)
              : (memref<?x8x128xbf16>, index, index, index, vector<8xf32>) -> f32
          %s2 = func.call @dot(%q, %b, %h2, %d, %k2)
              : (memref<?x8x128xbf16>, index, index, index, vector<8xf32>) -> f32
          %s3 = func.call @dot(%q, %b, %h3, %d, %k3)
              : (memref<?x8x128xbf16>, index, index, index, vector<8xf32>) -> f32
          scf.if %stores {
            memref.store %s0, %scores[%b, %h0, %t] : memref<?x8x?xf32>
            memref.store %s1, %scores[%b, %h1, %t] : memref<?x8x?xf32>
            memref.store %s2, %scores[%b, %h2, %t] : memref<?x8x?xf32>
            memref.store %s3, %scores[%b, %h3, %t] : memref<?x8x?xf32>
          }
        }
      }
    }
  }
  return
}

// The dot product of a key with the query of its head: 16 threads have 8 elements each.
func.func private @dot(%q: memref<?x8x128xbf16>, %b: index, %h: index, %d: index, %k: vector<8xf32>) -> f32 {
  %x_raw = vector.load %q[%b, %h, %d] {alignment = 16} : memref<?x8x128xbf16>, vector<8xbf16>
  %x = arith.extf %x_raw : vector<8xbf16> to vector<8xf32>
  %products = arith.mulf %x, %k : vector<8xf32>
  %part = vector.reduction <add>, %products fastmath<reassoc> : vector<8xf32> into f32
  %score = gpu.subgroup_reduce add %part cluster(size = 16) : (f32) -> f32
  return %score : f32
}
