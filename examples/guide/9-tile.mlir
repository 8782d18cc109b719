// scores[b, h, t] = q[b, h, :] . keys[b, h, t, :]   for t < cache_length(b)
//
// A block for 64 tokens of a head: their keys are copied to shared memory as a tile, and then a thread for each score.

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!tile = !kvcache.tile<64x128xbf16, swizzle_128b>

func.func @scores(%blocks: memref<?x2x?x64x8x128xbf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                  %max_seq: i32, %max_cache: i32, %layer: index,
                  %q: memref<?x8x128xbf16>, %scores: memref<?x8x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %batch = memref.dim %scores, %c0 : memref<?x8x?xf32>
  %tokens = memref.dim %scores, %c2 : memref<?x8x?xf32>
  %tiles = arith.ceildivui %tokens, %c64 : index
  %collection = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq, %max_cache
      : memref<?x2x?x64x8x128xbf16>, memref<?xi32>, memref<?x?xi32> -> !collection
  %keys = kvcache.paged_view key %collection[%layer] : !collection
  scf.parallel (%b, %h, %i) = (%c0, %c0, %c0) to (%batch, %c8, %tiles) step (%c1, %c1, %c1) {
    scf.parallel (%row) = (%c0) to (%c64) step (%c1) {
      %first = arith.muli %i, %c64 : index
      %length = kvcache.cache_length %keys[%b] : !cache
      %before = arith.minui %first, %length : index
      %valid = arith.subi %length, %before : index
      %tile = kvcache.alloc_tile : !tile
      %copy = kvcache.async_load_tile %keys[%b, %h, %first, %c0] valid %valid to %tile : !cache, !tile
      kvcache.wait %copy
      %used = arith.cmpi ult, %row, %valid : index
      scf.if %used {
        %score = func.call @dot(%q, %b, %h, %tile, %row) : (memref<?x8x128xbf16>, index, index, !tile, index) -> f32
        %t = arith.addi %first, %row : index
        memref.store %score, %scores[%b, %h, %t] : memref<?x8x?xf32>
      }
    }
  }
  return
}

// The dot product of a row of a tile with the query of its head.
func.func private @dot(%q: memref<?x8x128xbf16>, %b: index, %h: index, %tile: !tile, %row: index) -> f32 {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c128 = arith.constant 128 : index
  %zeros = arith.constant dense<0.0> : vector<8xf32>
  %sums = scf.for %d = %c0 to %c128 step %c8 iter_args(%sum = %zeros) -> (vector<8xf32>) {
    %k_raw = kvcache.tile_load %tile[%row, %d] : !tile -> vector<8xbf16>
    %k = arith.extf %k_raw : vector<8xbf16> to vector<8xf32>
    %x_raw = vector.load %q[%b, %h, %d] {alignment = 16} : memref<?x8x128xbf16>, vector<8xbf16>
    %x = arith.extf %x_raw : vector<8xbf16> to vector<8xf32>
    %next = math.fma %x, %k, %sum : vector<8xf32>
    scf.yield %next : vector<8xf32>
  }
  %score = vector.reduction <add>, %sums fastmath<reassoc> : vector<8xf32> into f32
  return %score : f32
}
