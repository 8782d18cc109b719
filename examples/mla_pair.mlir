// Attention of one query token per sequence over latent rows (a decode step of DeepSeek-V3), for one layer, by pairs of
// thread blocks of Blackwell, which multiply together.
//
//   out[b, n, :] = softmax(scale * q[b, n, :] . rows[b, t, :] over t < cache_length(b)) . rows[b, t, :512]
//
// All query heads share rows of 576 elements, bf16, in pages of 64 tokens. There are a multiple of 128 query heads, 128
// in DeepSeek-V3, and each thread block has 64. Sums are f32, probs are rounded to bf16 before the product with the
// values, and an empty sequence gives zeros.
//
// Launch a grid of (heads / 64, batch) thread blocks of 128 threads in clusters of (2, 1), with 217 KB of dynamic shared
// memory. docs/explanation/pairs-of-thread-blocks.md explains what each thread block copies and computes.
//
//   kvcache-opt examples/mla_pair.mlir --kvcache-to-ptx="chip=sm_100a" --emit-ptx

#mla = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
!collection = !kvcache.paged_collection<bf16, #mla, page_size = 64>
!cache = !kvcache.paged<bf16, #mla, page_size = 64>
!queries_tile = !kvcache.tile<64x576xbf16, swizzle_128b>
!probs_tile = !kvcache.tile<64x64xbf16, swizzle_128b>
!halves = !kvcache.tile<2x64xf32>
// Half of the tokens with all elements, and all tokens with half of the values.
!keys = !kvcache.tile<32x576xbf16, swizzle_128b>
!values = !kvcache.tile<64x256xbf16, swizzle_128b>
!ring = !kvcache.pipe<2, !keys, !values>
// Lanes 0 to 63 have the first half of the tokens or values, and the others the second half.
!scores = !kvcache.tmem_tile<128x32xf32>
!acc = !kvcache.tmem_tile<128x256xf32>
!bars = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>
!blocks = memref<?x1x?x64x1x576xbf16>
!queries = memref<?x?x576xbf16>
!outs = memref<?x?x512xbf16>

gpu.module @kernels {
  gpu.func @mla_pair(%blocks: !blocks, %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %max_seq: i32, %max_cache: i32,
                     %layer: index, %scale: f32, %q: !queries, %out: !outs)
      kernel attributes {known_block_size = array<i32: 128, 1, 1>, known_cluster_size = array<i32: 2, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c24 = arith.constant 24 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %c72 = arith.constant 72 : index
    %c128 = arith.constant 128 : index
    %c256 = arith.constant 256 : index
    %units = arith.constant 4608 : index
    %ticks = arith.constant 10000000 : index
    %even = arith.constant false
    %odd = arith.constant true
    %log2e = arith.constant 1.44269504 : f32
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %lowest = arith.constant -1.0e30 : f32

    %heads_block = gpu.block_id x
    %b = gpu.block_id y
    %thread = gpu.thread_id x
    %first_head = arith.muli %heads_block, %c64 : index
    %rank = arith.remui %heads_block, %c2 : index
    %first_key = arith.muli %rank, %c32 : index
    %first_value = arith.muli %rank, %c256 : index
    %is_first_thread = arith.cmpi eq, %thread, %c0 : index
    %is_first_block = arith.cmpi eq, %rank, %c0 : index
    %multiplies = arith.andi %is_first_thread, %is_first_block : i1

    %collection = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq, %max_cache
        : !blocks, memref<?xi32>, memref<?x?xi32> -> !collection
    %rows = kvcache.paged_view key %collection[%layer] : !collection
    %length = kvcache.cache_length %rows[%b] : !cache
    %tiles = arith.ceildivui %length, %c64 : index

    %query = kvcache.alloc_tile : !queries_tile
    %probs = kvcache.alloc_tile : !probs_tile
    %row_numbers = kvcache.alloc_tile : !halves
    %ring = kvcache.pipe : !ring
    %bars = nvgpu.mbarrier.create -> !bars
    scf.if %is_first_thread {
      nvgpu.mbarrier.init %bars[%c0], %c1 : !bars
      nvvm.fence.mbarrier.init
    }
    // Both thread blocks synchronize, so that each has initialized its barrier.
    %scores, %acc = kvcache.tmem_alloc {pair} : !scores, !acc

    %stages = arith.minui %tiles, %c2 : index
    scf.for %i = %c0 to %stages step %c1 {
      %t = arith.muli %i, %c64 : index
      %key = arith.addi %t, %first_key : index
      %left = arith.subi %length, %t : index
      %keys_left = arith.subi %left, %first_key : index
      %valid_keys = arith.maxsi %keys_left, %c0 : index
      kvcache.produce %ring[%i] : !ring {
      ^bb0(%keys: !keys, %values: !values):
        kvcache.async_load_tile %rows[%b, %c0, %key, %c0] valid %valid_keys to %keys {base_alignment = 32} : !cache, !keys
        kvcache.async_load_tile %rows[%b, %c0, %t, %first_value] valid %left to %values {base_alignment = 64} : !cache, !values
      }
    }

    // Threads write the queries, and products read them through another path to memory, the async proxy.
    scf.for %i = %thread to %units step %c128 {
      %query_row = arith.divui %i, %c72 : index
      %unit = arith.remui %i, %c72 : index
      %column = arith.muli %unit, %c8 : index
      %query_head = arith.addi %first_head, %query_row : index
      %x = vector.load %q[%b, %query_head, %column] {alignment = 16 : i64} : !queries, vector<8xbf16>
      kvcache.tile_store %x, %query[%query_row, %column] : vector<8xbf16>, !queries_tile
    }
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}

    // A thread has a row, and half of its tokens and values. Another one has the other half.
    %row = arith.remui %thread, %c64 : index
    %half = arith.divui %thread, %c64 : index
    %other = arith.subi %c1, %half : index
    %first_column = arith.muli %half, %c32 : index
    %scale_log2 = arith.mulf %scale, %log2e : f32
    %scales = vector.broadcast %scale_log2 : f32 to vector<32xf32>
    %masked = vector.broadcast %lowest : f32 to vector<32xf32>
    %numbers = vector.step : vector<32xindex>

    %max, %half_sum = scf.for %i = %c0 to %tiles step %c1 iter_args(%old_max = %lowest, %old_sum = %zero) -> (f32, f32) {
      %has_acc = arith.cmpi ne, %i, %c0 : index
      %t = arith.muli %i, %c64 : index
      %left = arith.subi %length, %t : index
      %new_max, %new_sum = kvcache.consume %ring[%i] : !ring -> (f32, f32) {
      ^bb0(%keys: !keys, %values: !values):
        // Both thread blocks have their tiles, and have read the scores before.
        kvcache.cluster_barrier {blocks = 2 : i64}
        scf.if %multiplies {
          kvcache.tmem_mma %query[%c0, %c0], %keys[%c0, %c0] into %scores {pair} : !queries_tile, !keys, !scores
          kvcache.tmem_commit %bars[%c0] {pair} : !bars
        }
        nvgpu.mbarrier.try_wait.parity %bars[%c0], %even, %ticks : !bars
        %products = kvcache.tmem_load %scores[%c0] {whole_rows} : !scores -> vector<32xf32>

        %left_of_half = arith.subi %left, %first_column : index
        %lefts = vector.broadcast %left_of_half : index to vector<32xindex>
        %is_seen = arith.cmpi slt, %numbers, %lefts : vector<32xindex>
        %scaled = arith.mulf %products, %scales : vector<32xf32>
        %seen = arith.select %is_seen, %scaled, %masked : vector<32xi1>, vector<32xf32>

        // The largest score of both halves.
        %own_max = vector.reduction <maximumf>, %seen, %old_max : vector<32xf32> into f32
        kvcache.tile_store %own_max, %row_numbers[%half, %row] : f32, !halves
        gpu.barrier
        %other_max = kvcache.tile_load %row_numbers[%other, %row] : !halves -> f32
        %row_max = arith.maximumf %own_max, %other_max : f32
        %change = arith.subf %old_max, %row_max : f32
        %rescale = math.exp2 %change : f32

        %maxima = vector.broadcast %row_max : f32 to vector<32xf32>
        %distances = arith.subf %seen, %maxima : vector<32xf32>
        %powers = math.exp2 %distances : vector<32xf32>
        %scaled_sum = arith.mulf %old_sum, %rescale : f32
        %sum = vector.reduction <add>, %powers, %scaled_sum : vector<32xf32> into f32
        %rounded = arith.truncf %powers : vector<32xf32> to vector<32xbf16>
        %p0 = vector.extract_strided_slice %rounded {offsets = [0], sizes = [8], strides = [1]} : vector<32xbf16> to vector<8xbf16>
        %p1 = vector.extract_strided_slice %rounded {offsets = [8], sizes = [8], strides = [1]} : vector<32xbf16> to vector<8xbf16>
        %p2 = vector.extract_strided_slice %rounded {offsets = [16], sizes = [8], strides = [1]} : vector<32xbf16> to vector<8xbf16>
        %p3 = vector.extract_strided_slice %rounded {offsets = [24], sizes = [8], strides = [1]} : vector<32xbf16> to vector<8xbf16>
        %column1 = arith.addi %first_column, %c8 : index
        %column2 = arith.addi %first_column, %c16 : index
        %column3 = arith.addi %first_column, %c24 : index
        kvcache.tile_store %p0, %probs[%row, %first_column] : vector<8xbf16>, !probs_tile
        kvcache.tile_store %p1, %probs[%row, %column1] : vector<8xbf16>, !probs_tile
        kvcache.tile_store %p2, %probs[%row, %column2] : vector<8xbf16>, !probs_tile
        kvcache.tile_store %p3, %probs[%row, %column3] : vector<8xbf16>, !probs_tile
        nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}

        scf.if %has_acc {
          %rescales = vector.broadcast %rescale : f32 to vector<32xf32>
          scf.for %c = %c0 to %c256 step %c32 {
            %old = kvcache.tmem_load %acc[%c] {whole_rows} : !acc -> vector<32xf32>
            %new = arith.mulf %old, %rescales : vector<32xf32>
            kvcache.tmem_store %new, %acc[%c] {whole_rows} : vector<32xf32>, !acc
          }
        }
        // Both thread blocks have their probs, and accumulators that are relative to the same maxima.
        kvcache.cluster_barrier {blocks = 2 : i64}
        scf.if %multiplies {
          kvcache.tmem_mma %probs[%c0, %c0], %values[%c0, %c0] into %acc add %has_acc
              {major_b = #kvcache.major<mn_major>, pair} : !probs_tile, !values, !acc
          kvcache.tmem_commit %bars[%c0] {pair} : !bars
        }
        nvgpu.mbarrier.try_wait.parity %bars[%c0], %odd, %ticks : !bars
        kvcache.yield %row_max, %sum : f32, f32
      }
      %next = arith.addi %i, %c2 : index
      %has_next = arith.cmpi ult, %next, %tiles : index
      scf.if %has_next {
        %next_t = arith.muli %next, %c64 : index
        %key = arith.addi %next_t, %first_key : index
        %next_left = arith.subi %length, %next_t : index
        %keys_left = arith.subi %next_left, %first_key : index
        %valid_keys = arith.maxsi %keys_left, %c0 : index
        kvcache.produce %ring[%next] : !ring {
        ^bb0(%keys: !keys, %values: !values):
          kvcache.async_load_tile %rows[%b, %c0, %key, %c0] valid %valid_keys to %keys {base_alignment = 32} : !cache, !keys
          kvcache.async_load_tile %rows[%b, %c0, %next_t, %first_value] valid %next_left to %values {base_alignment = 64}
              : !cache, !values
        }
      }
      scf.yield %new_max, %new_sum : f32, f32
    }

    kvcache.tile_store %half_sum, %row_numbers[%half, %row] : f32, !halves
    gpu.barrier
    %other_sum = kvcache.tile_load %row_numbers[%other, %row] : !halves -> f32
    %row_sum = arith.addf %half_sum, %other_sum : f32
    %has_tiles = arith.cmpi ne, %tiles, %c0 : index
    %divisor = arith.select %has_tiles, %row_sum, %one : f32
    %quotient = arith.divf %one, %divisor : f32
    %quotients = vector.broadcast %quotient : f32 to vector<32xf32>
    %zeros = arith.constant dense<0.0> : vector<32xf32>
    %head = arith.addi %first_head, %row : index
    %first_out = arith.muli %half, %c256 : index
    scf.for %c = %c0 to %c256 step %c32 {
      %sums = scf.if %has_tiles -> vector<32xf32> {
        %loaded = kvcache.tmem_load %acc[%c] {whole_rows} : !acc -> vector<32xf32>
        scf.yield %loaded : vector<32xf32>
      } else {
        scf.yield %zeros : vector<32xf32>
      }
      %mean = arith.mulf %sums, %quotients : vector<32xf32>
      %result = arith.truncf %mean : vector<32xf32> to vector<32xbf16>
      %element = arith.addi %first_out, %c : index
      vector.store %result, %out[%b, %head, %element] {alignment = 16 : i64} : !outs, vector<32xbf16>
    }
    gpu.return
  }
}
