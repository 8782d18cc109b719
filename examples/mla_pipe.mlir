// Attention of one query token per sequence over latent rows (a decode step of DeepSeek-V3), for one layer, on the
// tensor cores of Hopper, with producer warps.
//
//   out[b, n, :] = softmax(scale * q[b, n, :] . rows[b, t, :] over t < cache_length(b)) . rows[b, t, :512]
//
// All query heads share rows of 576 elements, bf16, in pages of 64 tokens. There are a multiple of 64 query heads, 128
// in DeepSeek-V3. Sums are f32, weights are rounded to bf16 before the product with the values, and an empty sequence
// gives zeros. In NumPy, with all numbers in f32:
//
//   for b in range(len(out)):
//       t = np.arange(lengths[b])
//       rows = blocks[lut[b, t // 64], 0, layer, t % 64, 0]
//       scores = scale * q[b] @ rows.T
//       weights = np.exp(scores - scores.max(1, keepdims=True, initial=-np.inf))
//       out[b] = weights @ rows[:, :512] / np.maximum(weights.sum(1, keepdims=True), 1e-30)
//
// Launch a grid of (heads / 64, batch) blocks of 384 threads with 216 KB of dynamic shared memory: the queries of 64
// heads, and two stages of 64 rows. The first warpgroup only copies, and gives its registers to the other two. Each of
// these computes the scores of all 64 heads, and then half of their values, 128 sums in each thread: one warpgroup has
// no registers for all of them. Only sm_90a has the products, wgmma.
//
//   kvcache-opt examples/mla_pipe.mlir --kvcache-to-ptx="chip=sm_90a" --emit-ptx

#mla = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
!collection = !kvcache.paged_collection<bf16, #mla, page_size = 64>
!cache = !kvcache.paged<bf16, #mla, page_size = 64>
!tile = !kvcache.tile<64x576xbf16, swizzle_128b>
!ring = !kvcache.pipe<2, !tile, producers = 4>
!blocks = memref<?x1x?x64x1x576xbf16>
!queries = memref<?x?x576xbf16>
!outs = memref<?x?x512xbf16>
!pairs = memref<32x2xbf16, strided<[8, 1], offset: ?>>

// A product of a warpgroup has 64 rows, the heads. Warp w has 16 of them, and thread l of the warp has columns
// 8 * j + 2 * (l mod 4) and the next one of rows 16 * w + l / 4 and 8 rows further: a vector of (columns / 8) x 2 x 2.
gpu.module @kernels {
  gpu.func @mla_pipe(%blocks: !blocks, %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %max_seq: i32, %max_cache: i32,
                     %layer: index, %scale: f32, %q: !queries, %out: !outs)
      kernel attributes {known_block_size = array<i32: 384, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %c72 = arith.constant 72 : index
    %c128 = arith.constant 128 : index
    %c256 = arith.constant 256 : index
    %c384 = arith.constant 384 : index
    %units = arith.constant 4608 : index
    %log2e = arith.constant 1.44269504 : f32

    %heads_block = gpu.block_id x
    %b = gpu.block_id y
    %thread = gpu.thread_id x
    %first_head = arith.muli %heads_block, %c64 : index

    %collection = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq, %max_cache
        : !blocks, memref<?xi32>, memref<?x?xi32> -> !collection
    %rows = kvcache.paged_view key %collection[%layer] : !collection
    %length = kvcache.cache_length %rows[%b] : !cache
    %tiles = arith.ceildivui %length, %c64 : index

    %query = kvcache.alloc_tile : !tile
    %ring = kvcache.pipe {producer_registers = 24, consumer_registers = 240} : !ring

    // Threads write the queries, and products read them through another path to memory, the async proxy.
    scf.for %i = %thread to %units step %c384 {
      %row = arith.divui %i, %c72 : index
      %unit = arith.remui %i, %c72 : index
      %column = arith.muli %unit, %c8 : index
      %head = arith.addi %first_head, %row : index
      %x = vector.load %q[%b, %head, %column] {alignment = 16 : i64} : !queries, vector<8xbf16>
      kvcache.tile_store %x, %query[%row, %column] : vector<8xbf16>, !tile
    }
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
    gpu.barrier

    %produces = arith.cmpi ult, %thread, %c128 : index
    scf.if %produces {
      scf.for %i = %c0 to %tiles step %c1 {
        %t = arith.muli %i, %c64 : index
        %left = arith.subi %length, %t : index
        kvcache.produce %ring[%i] : !ring {
        ^bb0(%latent: !tile):
          kvcache.async_load_tile %rows[%b, %c0, %t, %c0] valid %left to %latent : !cache, !tile
        }
      }
    } else {
      %consumer = arith.subi %thread, %c128 : index
      %group = arith.divui %consumer, %c128 : index
      %first_value = arith.muli %group, %c256 : index
      %of_group = arith.remui %consumer, %c128 : index
      %warp = arith.divui %of_group, %c32 : index
      %lane = arith.remui %of_group, %c32 : index
      %quarter = arith.remui %lane, %c4 : index
      %pair = arith.muli %quarter, %c2 : index
      %pair_i32 = arith.index_castui %pair : index to i32
      %pairs = vector.broadcast %pair_i32 : i32 to vector<8x2x2xi32>
      %in_tile = arith.constant dense<[
          [[0, 1], [0, 1]], [[8, 9], [8, 9]], [[16, 17], [16, 17]], [[24, 25], [24, 25]],
          [[32, 33], [32, 33]], [[40, 41], [40, 41]], [[48, 49], [48, 49]], [[56, 57], [56, 57]]]> : vector<8x2x2xi32>
      %tokens = arith.addi %pairs, %in_tile : vector<8x2x2xi32>
      %scale_log2 = arith.mulf %scale, %log2e : f32
      %scales = vector.broadcast %scale_log2 : f32 to vector<8x2x2xf32>
      %masked = arith.constant dense<-1.0e30> : vector<8x2x2xf32>
      %lowest = arith.constant dense<-1.0e30> : vector<2xf32>
      %none = arith.constant dense<0.0> : vector<2xf32>
      %no_mix = arith.constant dense<0.0> : vector<128xf32>

      // An online softmax. Each of 4 threads has a part of a row's sum.
      %max, %lane_sum, %mix = scf.for %i = %c0 to %tiles step %c1
          iter_args(%old_max = %lowest, %old_sum = %none, %old_mix = %no_mix)
          -> (vector<2xf32>, vector<2xf32>, vector<128xf32>) {
        %new_max, %new_sum, %new_mix = kvcache.consume %ring[%i] : !ring
            -> (vector<2xf32>, vector<2xf32>, vector<128xf32>) {
        ^bb0(%latent: !tile):
          %product = kvcache.mma %query[%c0, %c0], %latent[%c0, %c0] : !tile, !tile -> vector<32xf32>
          %raw = kvcache.mma_wait %product : vector<32xf32>
          %t = arith.muli %i, %c64 : index
          %left = arith.subi %length, %t : index
          %left_i32 = arith.index_cast %left : index to i32
          %lefts = vector.broadcast %left_i32 : i32 to vector<8x2x2xi32>
          %used = arith.cmpi slt, %tokens, %lefts : vector<8x2x2xi32>
          %by_row = vector.shape_cast %raw : vector<32xf32> to vector<8x2x2xf32>
          %scaled = arith.mulf %by_row, %scales : vector<8x2x2xf32>
          %scores = arith.select %used, %scaled, %masked : vector<8x2x2xi1>, vector<8x2x2xf32>

          %lane_max = vector.multi_reduction <maximumf>, %scores, %old_max [0, 2] : vector<8x2x2xf32> to vector<2xf32>
          %m0, %m1 = vector.to_elements %lane_max : vector<2xf32>
          %r0 = gpu.subgroup_reduce maximumf %m0 cluster(size = 4) : (f32) -> f32
          %r1 = gpu.subgroup_reduce maximumf %m1 cluster(size = 4) : (f32) -> f32
          %max_so_far = vector.from_elements %r0, %r1 : vector<2xf32>
          %change = arith.subf %old_max, %max_so_far : vector<2xf32>
          %shrink = math.exp2 %change : vector<2xf32>
          %max_column = vector.shape_cast %max_so_far : vector<2xf32> to vector<2x1xf32>
          %maxes = vector.broadcast %max_column : vector<2x1xf32> to vector<8x2x2xf32>
          %distances = arith.subf %scores, %maxes : vector<8x2x2xf32>
          %weights = math.exp2 %distances : vector<8x2x2xf32>
          %shrunk_sum = arith.mulf %old_sum, %shrink : vector<2xf32>
          %sum_so_far = vector.multi_reduction <add>, %weights, %shrunk_sum [0, 2] : vector<8x2x2xf32> to vector<2xf32>

          %shrink_column = vector.shape_cast %shrink : vector<2xf32> to vector<2x1xf32>
          %shrinks = vector.broadcast %shrink_column : vector<2x1xf32> to vector<32x2x2xf32>
          %flat_shrinks = vector.shape_cast %shrinks : vector<32x2x2xf32> to vector<128xf32>
          %shrunk_mix = arith.mulf %old_mix, %flat_shrinks : vector<128xf32>
          %rounded = arith.truncf %weights : vector<8x2x2xf32> to vector<8x2x2xbf16>
          %p = vector.shape_cast %rounded : vector<8x2x2xbf16> to vector<32xbf16>
          %m = kvcache.mma %p, %latent[%c0, %first_value] add %shrunk_mix {major_b = #kvcache.major<mn_major>}
              : vector<32xbf16>, !tile -> vector<128xf32>
          %mix_so_far = kvcache.mma_wait %m : vector<128xf32>
          kvcache.yield %max_so_far, %sum_so_far, %mix_so_far : vector<2xf32>, vector<2xf32>, vector<128xf32>
        }
        scf.yield %new_max, %new_sum, %new_mix : vector<2xf32>, vector<2xf32>, vector<128xf32>
      }

      %s0, %s1 = vector.to_elements %lane_sum : vector<2xf32>
      %sum0 = gpu.subgroup_reduce add %s0 cluster(size = 4) : (f32) -> f32
      %sum1 = gpu.subgroup_reduce add %s1 cluster(size = 4) : (f32) -> f32
      %sum = vector.from_elements %sum0, %sum1 : vector<2xf32>
      %one = arith.constant dense<1.0> : vector<2xf32>
      %is_empty = arith.cmpf oeq, %sum, %none : vector<2xf32>
      %divisor = arith.select %is_empty, %one, %sum : vector<2xi1>, vector<2xf32>
      %divisor_column = vector.shape_cast %divisor : vector<2xf32> to vector<2x1xf32>
      %divisors = vector.broadcast %divisor_column : vector<2x1xf32> to vector<32x2x2xf32>
      %mixes = vector.shape_cast %mix : vector<128xf32> to vector<32x2x2xf32>
      %mean = arith.divf %mixes, %divisors : vector<32x2x2xf32>
      %result = arith.truncf %mean : vector<32x2x2xf32> to vector<32x2x2xbf16>
      %halves = vector.transpose %result, [1, 0, 2] : vector<32x2x2xbf16> to vector<2x32x2xbf16>

      // Pairs of elements of a row, 8 elements apart.
      %batch = memref.dim %out, %c0 : !outs
      %heads = memref.dim %out, %c1 : !outs
      %by_pair = memref.expand_shape %out [[0], [1], [2, 3, 4]] output_shape [%batch, %heads, 64, 4, 2]
          : !outs into memref<?x?x64x4x2xbf16>
      %eighth = arith.divui %first_value, %c8 : index
      %warp_row = arith.muli %warp, %c16 : index
      %lane_row = arith.divui %lane, %c4 : index
      %row = arith.addi %warp_row, %lane_row : index
      %head = arith.addi %first_head, %row : index
      %head8 = arith.addi %head, %c8 : index
      %out0 = memref.subview %by_pair[%b, %head, %eighth, %quarter, 0] [1, 1, 32, 1, 2] [1, 1, 1, 1, 1]
          : memref<?x?x64x4x2xbf16> to !pairs
      %out1 = memref.subview %by_pair[%b, %head8, %eighth, %quarter, 0] [1, 1, 32, 1, 2] [1, 1, 1, 1, 1]
          : memref<?x?x64x4x2xbf16> to !pairs
      %half0 = vector.extract %halves[0] : vector<32x2xbf16> from vector<2x32x2xbf16>
      %half1 = vector.extract %halves[1] : vector<32x2xbf16> from vector<2x32x2xbf16>
      vector.store %half0, %out0[%c0, %c0] {alignment = 4 : i64} : !pairs, vector<32x2xbf16>
      vector.store %half1, %out1[%c0, %c0] {alignment = 4 : i64} : !pairs, vector<32x2xbf16>
    }
    gpu.return
  }
}
