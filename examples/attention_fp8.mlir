// Attention of one query token per sequence over a paged fp8 cache (a decode step), for one layer.
//
//   out[b, h, :] = softmax(scale * q[b, h, :] . keys[b, h / 4, t, :] over t < cache_length(b)) . values[b, h / 4, t, :]
//
// where keys and values are f8E4M3FN elements times their f32 scales. The rest is as in attention.mlir: the shapes of
// Llama-3-8B, sums in f32, an online softmax, zeros for an empty sequence. append_fp8.mlir fills the cache.
//
// Per token, the 128 elements of a head share a scale: the kernel only converts elements, and multiplies the score by
// the scale of the key, and the weight by that of the value. Per group, 32 elements share a scale, and kvcache.load
// applies it. Both are CPU functions, and kernels to launch with a grid of (8, batch) blocks of 128 threads.
//
//   kvcache-opt examples/attention_fp8.mlir --kvcache-to-ptx="chip=sm_90a" --emit-ptx
//
//   program = kvcache.jit(pathlib.Path("examples/attention_fp8.mlir"), target="cpu")
//   program.call("attention_per_token_cpu", blocks, lengths, lut, max_seq, max_cache, scales, layer, scale, q, out)

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!per_token_collection = !kvcache.paged_collection<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 128>
!per_group_collection = !kvcache.paged_collection<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>
!per_token = !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 128>
!per_group = !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>

!blocks = memref<?x2x?x64x8x128xf8E4M3FN>
!token_scales = memref<?x2x?x64x8x1xf32>
!group_scales = memref<?x2x?x64x8x4xf32>
!lengths = memref<?xi32>
!lut = memref<?x?xi32>
!tokens = memref<?x32x128xbf16>

func.func @attention_per_token_cpu(%blocks: !blocks, %lengths: !lengths, %lut: !lut, %max_seq: i32, %max_cache: i32,
                                   %scales: !token_scales, %layer: index,
                                   %scale: f32, %q: !tokens, %out: !tokens) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant -1.0e30 : f32
  %zeros = arith.constant dense<0.0> : vector<128xf32>

  %collection = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq, %max_cache scales %scales
      : !blocks, !lengths, !lut, !token_scales -> !per_token_collection
  %keys = kvcache.paged_view key %collection[%layer] : !per_token_collection
  %values = kvcache.paged_view value %collection[%layer] : !per_token_collection
  %batch = memref.dim %q, %c0 : !tokens

  scf.for %b = %c0 to %batch step %c1 {
    %length = kvcache.cache_length %keys[%b] : !per_token
    scf.for %head = %c0 to %c32 step %c1 {
      %h = arith.divui %head, %c4 : index
      %query = func.call @load_query_cpu(%q, %scale, %b, %head) : (!tokens, f32, index, index) -> vector<128xf32>
      %max, %sum, %acc = scf.for %t = %c0 to %length step %c1
          iter_args(%old_max = %lowest, %old_sum = %zero, %old_acc = %zeros) -> (f32, f32, vector<128xf32>) {
        %key_fp8 = kvcache.load_quantized %keys[%b, %h, %t, %c0] : !per_token -> vector<128xf8E4M3FN>
        %key_scale = kvcache.load_scale %keys[%b, %h, %t, %c0] : !per_token -> f32
        %value_fp8 = kvcache.load_quantized %values[%b, %h, %t, %c0] : !per_token -> vector<128xf8E4M3FN>
        %value_scale = kvcache.load_scale %values[%b, %h, %t, %c0] : !per_token -> f32
        %key = arith.extf %key_fp8 : vector<128xf8E4M3FN> to vector<128xf32>
        %value = arith.extf %value_fp8 : vector<128xf8E4M3FN> to vector<128xf32>
        %new_max, %new_sum, %new_acc = func.call @attend_cpu(%query, %key, %key_scale, %value, %value_scale,
                                                             %old_max, %old_sum, %old_acc)
            : (vector<128xf32>, vector<128xf32>, f32, vector<128xf32>, f32, f32, f32, vector<128xf32>)
            -> (f32, f32, vector<128xf32>)
        scf.yield %new_max, %new_sum, %new_acc : f32, f32, vector<128xf32>
      }
      func.call @store_mean_cpu(%sum, %acc, %out, %b, %head) : (f32, vector<128xf32>, !tokens, index, index) -> ()
    }
  }
  return
}

func.func @attention_per_group_cpu(%blocks: !blocks, %lengths: !lengths, %lut: !lut, %max_seq: i32, %max_cache: i32,
                                   %scales: !group_scales, %layer: index,
                                   %scale: f32, %q: !tokens, %out: !tokens) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %lowest = arith.constant -1.0e30 : f32
  %zeros = arith.constant dense<0.0> : vector<128xf32>

  %collection = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq, %max_cache scales %scales
      : !blocks, !lengths, !lut, !group_scales -> !per_group_collection
  %keys = kvcache.paged_view key %collection[%layer] : !per_group_collection
  %values = kvcache.paged_view value %collection[%layer] : !per_group_collection
  %batch = memref.dim %q, %c0 : !tokens

  scf.for %b = %c0 to %batch step %c1 {
    %length = kvcache.cache_length %keys[%b] : !per_group
    scf.for %head = %c0 to %c32 step %c1 {
      %h = arith.divui %head, %c4 : index
      %query = func.call @load_query_cpu(%q, %scale, %b, %head) : (!tokens, f32, index, index) -> vector<128xf32>
      %max, %sum, %acc = scf.for %t = %c0 to %length step %c1
          iter_args(%old_max = %lowest, %old_sum = %zero, %old_acc = %zeros) -> (f32, f32, vector<128xf32>) {
        %key = kvcache.load %keys[%b, %h, %t, %c0] : !per_group -> vector<128xf32>
        %value = kvcache.load %values[%b, %h, %t, %c0] : !per_group -> vector<128xf32>
        %new_max, %new_sum, %new_acc = func.call @attend_cpu(%query, %key, %one, %value, %one,
                                                             %old_max, %old_sum, %old_acc)
            : (vector<128xf32>, vector<128xf32>, f32, vector<128xf32>, f32, f32, f32, vector<128xf32>)
            -> (f32, f32, vector<128xf32>)
        scf.yield %new_max, %new_sum, %new_acc : f32, f32, vector<128xf32>
      }
      func.call @store_mean_cpu(%sum, %acc, %out, %b, %head) : (f32, vector<128xf32>, !tokens, index, index) -> ()
    }
  }
  return
}

// The scaled query of a head. Scores are in base 2, so the scale includes the factor log2(e).
func.func private @load_query_cpu(%q: !tokens, %scale: f32, %b: index, %head: index) -> vector<128xf32> {
  %c0 = arith.constant 0 : index
  %log2e = arith.constant 1.44269504 : f32
  %scale_log2 = arith.mulf %scale, %log2e : f32
  %scales = vector.broadcast %scale_log2 : f32 to vector<128xf32>
  %q_raw = vector.load %q[%b, %head, %c0] : !tokens, vector<128xbf16>
  %q_f32 = arith.extf %q_raw : vector<128xbf16> to vector<128xf32>
  %query = arith.mulf %q_f32, %scales : vector<128xf32>
  return %query : vector<128xf32>
}

// Processes one more token. Online softmax over the tokens so far: `max` is the largest score, `sum` the sum of
// 2^(score - max), and `acc` the sum of 2^(score - max) * value. When the maximum grows, `sum` and `acc` scale down.
func.func private @attend_cpu(%query: vector<128xf32>, %key: vector<128xf32>, %key_scale: f32,
                              %value: vector<128xf32>, %value_scale: f32,
                              %max: f32, %sum: f32, %acc: vector<128xf32>) -> (f32, f32, vector<128xf32>) {
  %products = arith.mulf %query, %key : vector<128xf32>
  %dot = vector.reduction <add>, %products fastmath<reassoc> : vector<128xf32> into f32
  %score = arith.mulf %dot, %key_scale : f32

  %new_max = arith.maxnumf %max, %score : f32
  %max_change = arith.subf %max, %new_max : f32
  %shrink = math.exp2 %max_change : f32
  %distance = arith.subf %score, %new_max : f32
  %weight = math.exp2 %distance : f32

  %shrunk_sum = arith.mulf %sum, %shrink : f32
  %new_sum = arith.addf %shrunk_sum, %weight : f32
  %scaled_weight = arith.mulf %weight, %value_scale : f32
  %shrinks = vector.broadcast %shrink : f32 to vector<128xf32>
  %weights = vector.broadcast %scaled_weight : f32 to vector<128xf32>
  %shrunk_acc = arith.mulf %acc, %shrinks : vector<128xf32>
  %new_acc = math.fma %weights, %value, %shrunk_acc : vector<128xf32>
  return %new_max, %new_sum, %new_acc : f32, f32, vector<128xf32>
}

// The token with the largest score adds 1 to the sum, so the sum is below 1 (it is 0) only if there are no tokens.
func.func private @store_mean_cpu(%sum: f32, %acc: vector<128xf32>, %out: !tokens, %b: index, %head: index) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %divisor = arith.maximumf %sum, %one : f32
  %divisors = vector.broadcast %divisor : f32 to vector<128xf32>
  %mean = arith.divf %acc, %divisors : vector<128xf32>
  %result = arith.truncf %mean : vector<128xf32> to vector<128xbf16>
  vector.store %result, %out[%b, %head, %c0] : !tokens, vector<128xbf16>
  return
}

!tile = memref<32x128xf8E4M3FN, strided<[1024, 1], offset: ?>>
!scale_tile = memref<32x1xf32, strided<[8, 1], offset: ?>>
!all_heads = memref<8x4xf32, #gpu.address_space<workgroup>>
!all_accs = memref<8x4x128xf32, #gpu.address_space<workgroup>>
!heads = vector<4xf32>
!row = vector<8xf32>
!accs = vector<32xf32>

// A block computes the 4 query heads of a KV head, 32 tokens at a time. Half-warp i reads the rows i, i + 8, i + 16 and
// i + 24 of a tile, 8 elements of a row per lane. 32 divides the page size, so a tile needs one table lookup.
// Rows past the length, and their scales, are uninitialized, and may contain NaN. The kernel reads the last row of the
// sequence instead, and @attend gives it the weight 0.
// !heads has a number for each of the 4 query heads, !row the 8 elements of a lane, !accs 8 elements for each head.
gpu.module @kernels {
  gpu.func @attention_per_token(%blocks: !blocks, %lengths: !lengths, %lut: !lut, %max_seq: i32, %max_cache: i32,
                                %scales: !token_scales, %layer: index, %scale: f32, %q: !tokens, %out: !tokens)
      workgroup(%all_max: !all_heads {llvm.align = 16 : i64}, %all_sum: !all_heads {llvm.align = 16 : i64},
                %all_acc: !all_accs {llvm.align = 16 : i64})
      kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c24 = arith.constant 24 : index
    %c32 = arith.constant 32 : index
    %lowest = arith.constant dense<-1.0e30> : !heads
    %zero = arith.constant dense<0.0> : !heads
    %zeros = arith.constant dense<0.0> : !accs

    %h = gpu.block_id x
    %b = gpu.block_id y
    %thread = gpu.thread_id x
    %half_warp = arith.divui %thread, %c16 : index
    %lane = arith.remui %thread, %c16 : index
    %d = arith.muli %lane, %c8 : index

    %collection = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq, %max_cache scales %scales
        : !blocks, !lengths, !lut, !token_scales -> !per_token_collection
    %keys = kvcache.paged_view key %collection[%layer] : !per_token_collection
    %values = kvcache.paged_view value %collection[%layer] : !per_token_collection
    %length = kvcache.cache_length %keys[%b] : !per_token
    %query = func.call @load_query(%q, %scale, %b, %h, %d) : (!tokens, f32, index, index, index) -> !accs

    %row1 = arith.addi %half_warp, %c8 : index
    %row2 = arith.addi %half_warp, %c16 : index
    %row3 = arith.addi %half_warp, %c24 : index
    %max, %sum, %acc = scf.for %t = %c0 to %length step %c32
        iter_args(%old_max = %lowest, %old_sum = %zero, %old_acc = %zeros) -> (!heads, !heads, !accs) {
      %left = arith.subi %length, %t : index
      %last = arith.subi %left, %c1 : index
      %r0 = arith.minui %half_warp, %last : index
      %r1 = arith.minui %row1, %last : index
      %r2 = arith.minui %row2, %last : index
      %r3 = arith.minui %row3, %last : index
      %key_tile = kvcache.block_tile %keys[%b, %h, %t, %c0] : !per_token -> !tile
      %value_tile = kvcache.block_tile %values[%b, %h, %t, %c0] : !per_token -> !tile
      %key_scales = kvcache.scales_block_tile %keys[%b, %h, %t, %c0] : !per_token -> !scale_tile
      %value_scales = kvcache.scales_block_tile %values[%b, %h, %t, %c0] : !per_token -> !scale_tile
      %k0, %ks0 = func.call @load_row(%key_tile, %key_scales, %r0, %d)
          : (!tile, !scale_tile, index, index) -> (!row, f32)
      %k1, %ks1 = func.call @load_row(%key_tile, %key_scales, %r1, %d)
          : (!tile, !scale_tile, index, index) -> (!row, f32)
      %k2, %ks2 = func.call @load_row(%key_tile, %key_scales, %r2, %d)
          : (!tile, !scale_tile, index, index) -> (!row, f32)
      %k3, %ks3 = func.call @load_row(%key_tile, %key_scales, %r3, %d)
          : (!tile, !scale_tile, index, index) -> (!row, f32)
      %v0, %vs0 = func.call @load_row(%value_tile, %value_scales, %r0, %d)
          : (!tile, !scale_tile, index, index) -> (!row, f32)
      %v1, %vs1 = func.call @load_row(%value_tile, %value_scales, %r1, %d)
          : (!tile, !scale_tile, index, index) -> (!row, f32)
      %v2, %vs2 = func.call @load_row(%value_tile, %value_scales, %r2, %d)
          : (!tile, !scale_tile, index, index) -> (!row, f32)
      %v3, %vs3 = func.call @load_row(%value_tile, %value_scales, %r3, %d)
          : (!tile, !scale_tile, index, index) -> (!row, f32)
      %new_max, %new_sum, %new_acc = func.call @attend(
          %query, %k0, %k1, %k2, %k3, %ks0, %ks1, %ks2, %ks3, %v0, %v1, %v2, %v3, %vs0, %vs1, %vs2, %vs3,
          %half_warp, %left, %old_max, %old_sum, %old_acc)
          : (!accs, !row, !row, !row, !row, f32, f32, f32, f32, !row, !row, !row, !row, f32, f32, f32, f32,
             index, index, !heads, !heads, !accs) -> (!heads, !heads, !accs)
      scf.yield %new_max, %new_sum, %new_acc : !heads, !heads, !accs
    }
    func.call @combine(%max, %sum, %acc, %all_max, %all_sum, %all_acc, %out, %b, %h, %thread)
        : (!heads, !heads, !accs, !all_heads, !all_heads, !all_accs, !tokens, index, index, index) -> ()
    gpu.return
  }

  gpu.func @attention_per_group(%blocks: !blocks, %lengths: !lengths, %lut: !lut, %max_seq: i32, %max_cache: i32,
                                %scales: !group_scales, %layer: index, %scale: f32, %q: !tokens, %out: !tokens)
      workgroup(%all_max: !all_heads {llvm.align = 16 : i64}, %all_sum: !all_heads {llvm.align = 16 : i64},
                %all_acc: !all_accs {llvm.align = 16 : i64})
      kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c24 = arith.constant 24 : index
    %c32 = arith.constant 32 : index
    %one = arith.constant 1.0 : f32
    %lowest = arith.constant dense<-1.0e30> : !heads
    %zero = arith.constant dense<0.0> : !heads
    %zeros = arith.constant dense<0.0> : !accs

    %h = gpu.block_id x
    %b = gpu.block_id y
    %thread = gpu.thread_id x
    %half_warp = arith.divui %thread, %c16 : index
    %lane = arith.remui %thread, %c16 : index
    %d = arith.muli %lane, %c8 : index

    %collection = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq, %max_cache scales %scales
        : !blocks, !lengths, !lut, !group_scales -> !per_group_collection
    %keys = kvcache.paged_view key %collection[%layer] : !per_group_collection
    %values = kvcache.paged_view value %collection[%layer] : !per_group_collection
    %scales_of_keys = kvcache.scales_view %keys : !per_group
    %length = kvcache.cache_length %keys[%b] : !per_group
    %query = func.call @load_query(%q, %scale, %b, %h, %d) : (!tokens, f32, index, index, index) -> !accs

    %last = arith.subi %length, %c1 : index
    %max, %sum, %acc = scf.for %t = %c0 to %length step %c32
        iter_args(%old_max = %lowest, %old_sum = %zero, %old_acc = %zeros) -> (!heads, !heads, !accs) {
      // Keys and values share a page, and their scales share a page.
      %p = kvcache.page_id %keys[%b, %t] : !per_group
      %sp = kvcache.page_id %scales_of_keys[%b, %t] : !kvcache.scales<!per_group>
      %row0 = arith.addi %t, %half_warp : index
      %row1 = arith.addi %row0, %c8 : index
      %row2 = arith.addi %row0, %c16 : index
      %row3 = arith.addi %row0, %c24 : index
      %t0 = arith.minui %row0, %last : index
      %t1 = arith.minui %row1, %last : index
      %t2 = arith.minui %row2, %last : index
      %t3 = arith.minui %row3, %last : index
      %k0 = kvcache.load %keys[%b, %h, %t0, %d] page %p scale_page %sp : !per_group -> !row
      %k1 = kvcache.load %keys[%b, %h, %t1, %d] page %p scale_page %sp : !per_group -> !row
      %k2 = kvcache.load %keys[%b, %h, %t2, %d] page %p scale_page %sp : !per_group -> !row
      %k3 = kvcache.load %keys[%b, %h, %t3, %d] page %p scale_page %sp : !per_group -> !row
      %v0 = kvcache.load %values[%b, %h, %t0, %d] page %p scale_page %sp : !per_group -> !row
      %v1 = kvcache.load %values[%b, %h, %t1, %d] page %p scale_page %sp : !per_group -> !row
      %v2 = kvcache.load %values[%b, %h, %t2, %d] page %p scale_page %sp : !per_group -> !row
      %v3 = kvcache.load %values[%b, %h, %t3, %d] page %p scale_page %sp : !per_group -> !row
      %left = arith.subi %length, %t : index
      %new_max, %new_sum, %new_acc = func.call @attend(
          %query, %k0, %k1, %k2, %k3, %one, %one, %one, %one, %v0, %v1, %v2, %v3, %one, %one, %one, %one,
          %half_warp, %left, %old_max, %old_sum, %old_acc)
          : (!accs, !row, !row, !row, !row, f32, f32, f32, f32, !row, !row, !row, !row, f32, f32, f32, f32,
             index, index, !heads, !heads, !accs) -> (!heads, !heads, !accs)
      scf.yield %new_max, %new_sum, %new_acc : !heads, !heads, !accs
    }
    func.call @combine(%max, %sum, %acc, %all_max, %all_sum, %all_acc, %out, %b, %h, %thread)
        : (!heads, !heads, !accs, !all_heads, !all_heads, !all_accs, !tokens, index, index, index) -> ()
    gpu.return
  }

  // The scaled elements of a lane of the 4 queries. Scores are in base 2, so the scale includes the factor log2(e).
  func.func private @load_query(%q: !tokens, %scale: f32, %b: index, %h: index, %d: index) -> !accs {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %log2e = arith.constant 1.44269504 : f32
    %head0 = arith.muli %h, %c4 : index
    %head1 = arith.addi %head0, %c1 : index
    %head2 = arith.addi %head0, %c2 : index
    %head3 = arith.addi %head0, %c3 : index
    %q0 = vector.load %q[%b, %head0, %d] {alignment = 16 : i64} : !tokens, vector<8xbf16>
    %q1 = vector.load %q[%b, %head1, %d] {alignment = 16 : i64} : !tokens, vector<8xbf16>
    %q2 = vector.load %q[%b, %head2, %d] {alignment = 16 : i64} : !tokens, vector<8xbf16>
    %q3 = vector.load %q[%b, %head3, %d] {alignment = 16 : i64} : !tokens, vector<8xbf16>
    %q01 = vector.shuffle %q0, %q1 [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]
        : vector<8xbf16>, vector<8xbf16>
    %q23 = vector.shuffle %q2, %q3 [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]
        : vector<8xbf16>, vector<8xbf16>
    %q_raw = vector.shuffle %q01, %q23 [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
                                        16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31]
        : vector<16xbf16>, vector<16xbf16>
    %q_f32 = arith.extf %q_raw : vector<32xbf16> to !accs
    %scale_log2 = arith.mulf %scale, %log2e : f32
    %scales = vector.broadcast %scale_log2 : f32 to !accs
    %query = arith.mulf %q_f32, %scales : !accs
    return %query : !accs
  }

  // The elements of a lane of a row, converted but not scaled, and the scale of the row.
  func.func private @load_row(%tile: !tile, %scales: !scale_tile, %row: index, %d: index) -> (!row, f32) {
    %c0 = arith.constant 0 : index
    %fp8 = vector.load %tile[%row, %d] {alignment = 8 : i64} : !tile, vector<8xf8E4M3FN>
    %scale = memref.load %scales[%row, %c0] : !scale_tile
    %x = arith.extf %fp8 : vector<8xf8E4M3FN> to !row
    return %x, %scale : !row, f32
  }

  // Processes one more tile with `left` valid rows, or all; `row` is the first of the 4 rows of the lane. Like
  // @attend_cpu, for 4 query heads at once.
  func.func private @attend(%query: !accs, %k0: !row, %k1: !row, %k2: !row, %k3: !row,
                            %ks0: f32, %ks1: f32, %ks2: f32, %ks3: f32, %v0: !row, %v1: !row, %v2: !row, %v3: !row,
                            %vs0: f32, %vs1: f32, %vs2: f32, %vs3: f32, %row: index, %left: index,
                            %max: !heads, %sum: !heads, %acc: !accs) -> (!heads, !heads, !accs) {
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c24 = arith.constant 24 : index
    %row1 = arith.addi %row, %c8 : index
    %row2 = arith.addi %row, %c16 : index
    %row3 = arith.addi %row, %c24 : index
    %used0 = arith.cmpi ult, %row, %left : index
    %used1 = arith.cmpi ult, %row1, %left : index
    %used2 = arith.cmpi ult, %row2, %left : index
    %used3 = arith.cmpi ult, %row3, %left : index
    %s0 = func.call @scores(%query, %k0, %ks0, %used0) : (!accs, !row, f32, i1) -> !heads
    %s1 = func.call @scores(%query, %k1, %ks1, %used1) : (!accs, !row, f32, i1) -> !heads
    %s2 = func.call @scores(%query, %k2, %ks2, %used2) : (!accs, !row, f32, i1) -> !heads
    %s3 = func.call @scores(%query, %k3, %ks3, %used3) : (!accs, !row, f32, i1) -> !heads

    %max01 = arith.maximumf %s0, %s1 : !heads
    %max23 = arith.maximumf %s2, %s3 : !heads
    %tile_max = arith.maximumf %max01, %max23 : !heads
    %new_max = arith.maximumf %max, %tile_max : !heads
    %shrink = func.call @weights(%max, %new_max) : (!heads, !heads) -> !heads
    %w0 = func.call @weights(%s0, %new_max) : (!heads, !heads) -> !heads
    %w1 = func.call @weights(%s1, %new_max) : (!heads, !heads) -> !heads
    %w2 = func.call @weights(%s2, %new_max) : (!heads, !heads) -> !heads
    %w3 = func.call @weights(%s3, %new_max) : (!heads, !heads) -> !heads

    %w01 = arith.addf %w0, %w1 : !heads
    %w23 = arith.addf %w2, %w3 : !heads
    %tile_sum = arith.addf %w01, %w23 : !heads
    %new_sum = math.fma %sum, %shrink, %tile_sum : !heads
    %shrinks = func.call @for_each_element(%shrink) : (!heads) -> !accs
    %acc0 = arith.mulf %acc, %shrinks : !accs
    %acc1 = func.call @accumulate(%w0, %v0, %vs0, %acc0) : (!heads, !row, f32, !accs) -> !accs
    %acc2 = func.call @accumulate(%w1, %v1, %vs1, %acc1) : (!heads, !row, f32, !accs) -> !accs
    %acc3 = func.call @accumulate(%w2, %v2, %vs2, %acc2) : (!heads, !row, f32, !accs) -> !accs
    %new_acc = func.call @accumulate(%w3, %v3, %vs3, %acc3) : (!heads, !row, f32, !accs) -> !accs
    return %new_max, %new_sum, %new_acc : !heads, !heads, !accs
  }

  // The scores of a row: 4 dot products, each summed over the 16 lanes of the half-warp; the lowest number if invalid.
  func.func private @scores(%query: !accs, %key: !row, %key_scale: f32, %used: i1) -> !heads {
    %lowest = arith.constant dense<-1.0e30> : !heads
    %keys = func.call @for_each_head(%key) : (!row) -> !accs
    %x = arith.mulf %query, %keys fastmath<contract> : !accs
    %x0 = vector.extract_strided_slice %x {offsets = [0], sizes = [8], strides = [1]} : !accs to !row
    %x1 = vector.extract_strided_slice %x {offsets = [8], sizes = [8], strides = [1]} : !accs to !row
    %x2 = vector.extract_strided_slice %x {offsets = [16], sizes = [8], strides = [1]} : !accs to !row
    %x3 = vector.extract_strided_slice %x {offsets = [24], sizes = [8], strides = [1]} : !accs to !row
    %part0 = vector.reduction <add>, %x0 fastmath<contract> : !row into f32
    %part1 = vector.reduction <add>, %x1 fastmath<contract> : !row into f32
    %part2 = vector.reduction <add>, %x2 fastmath<contract> : !row into f32
    %part3 = vector.reduction <add>, %x3 fastmath<contract> : !row into f32
    %dot0 = gpu.subgroup_reduce add %part0 cluster(size = 16) : (f32) -> f32
    %dot1 = gpu.subgroup_reduce add %part1 cluster(size = 16) : (f32) -> f32
    %dot2 = gpu.subgroup_reduce add %part2 cluster(size = 16) : (f32) -> f32
    %dot3 = gpu.subgroup_reduce add %part3 cluster(size = 16) : (f32) -> f32
    %dots = vector.from_elements %dot0, %dot1, %dot2, %dot3 : !heads
    %key_scales = vector.broadcast %key_scale : f32 to !heads
    %scores = arith.mulf %dots, %key_scales : !heads
    %result = arith.select %used, %scores, %lowest : !heads
    return %result : !heads
  }

  func.func private @weights(%scores: !heads, %max: !heads) -> !heads {
    %distance = arith.subf %scores, %max : !heads
    %weights = math.exp2 %distance : !heads
    return %weights : !heads
  }

  // acc + the values of the row, times the weight of each head.
  func.func private @accumulate(%weight: !heads, %value: !row, %value_scale: f32, %acc: !accs) -> !accs {
    %value_scales = vector.broadcast %value_scale : f32 to !heads
    %scaled = arith.mulf %weight, %value_scales : !heads
    %weights = func.call @for_each_element(%scaled) : (!heads) -> !accs
    %values = func.call @for_each_head(%value) : (!row) -> !accs
    %sum = math.fma %weights, %values, %acc : !accs
    return %sum : !accs
  }

  func.func private @for_each_element(%x: !heads) -> !accs {
    %xs = vector.shuffle %x, %x [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1,
                                 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3] : !heads, !heads
    return %xs : !accs
  }

  func.func private @for_each_head(%x: !row) -> !accs {
    %xs = vector.shuffle %x, %x [0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7,
                                 0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7] : !row, !row
    return %xs : !accs
  }

  // Each half-warp has processed different tokens, and stores its partial results in shared memory. Then each warp
  // combines them for one query head, 4 elements per lane.
  func.func private @combine(%max: !heads, %sum: !heads, %acc: !accs,
                             %all_max: !all_heads, %all_sum: !all_heads, %all_acc: !all_accs,
                             %out: !tokens, %b: index, %h: index, %thread: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %lowest = arith.constant -1.0e30 : f32
    %zeros = arith.constant dense<0.0> : vector<4xf32>

    %half_warp = arith.divui %thread, %c16 : index
    %lane = arith.remui %thread, %c16 : index
    %d = arith.muli %lane, %c8 : index
    %acc0 = vector.extract_strided_slice %acc {offsets = [0], sizes = [8], strides = [1]} : !accs to !row
    %acc1 = vector.extract_strided_slice %acc {offsets = [8], sizes = [8], strides = [1]} : !accs to !row
    %acc2 = vector.extract_strided_slice %acc {offsets = [16], sizes = [8], strides = [1]} : !accs to !row
    %acc3 = vector.extract_strided_slice %acc {offsets = [24], sizes = [8], strides = [1]} : !accs to !row
    vector.store %acc0, %all_acc[%half_warp, %c0, %d] {alignment = 16 : i64} : !all_accs, !row
    vector.store %acc1, %all_acc[%half_warp, %c1, %d] {alignment = 16 : i64} : !all_accs, !row
    vector.store %acc2, %all_acc[%half_warp, %c2, %d] {alignment = 16 : i64} : !all_accs, !row
    vector.store %acc3, %all_acc[%half_warp, %c3, %d] {alignment = 16 : i64} : !all_accs, !row
    %is_first = arith.cmpi eq, %lane, %c0 : index
    scf.if %is_first {
      vector.store %max, %all_max[%half_warp, %c0] {alignment = 16 : i64} : !all_heads, !heads
      vector.store %sum, %all_sum[%half_warp, %c0] {alignment = 16 : i64} : !all_heads, !heads
    }
    gpu.barrier

    %group = arith.divui %thread, %c32 : index
    %warp_lane = arith.remui %thread, %c32 : index
    %e = arith.muli %warp_lane, %c4 : index
    %top = scf.for %i = %c0 to %c8 step %c1 iter_args(%old = %lowest) -> (f32) {
      %m = memref.load %all_max[%i, %group] : !all_heads
      %new = arith.maximumf %old, %m : f32
      scf.yield %new : f32
    }
    %total, %mix = scf.for %i = %c0 to %c8 step %c1
        iter_args(%old_total = %zero, %old_mix = %zeros) -> (f32, vector<4xf32>) {
      %m = memref.load %all_max[%i, %group] : !all_heads
      %s = memref.load %all_sum[%i, %group] : !all_heads
      %part = vector.load %all_acc[%i, %group, %e] {alignment = 16 : i64} : !all_accs, vector<4xf32>
      %distance = arith.subf %m, %top : f32
      %weight = math.exp2 %distance : f32
      %weights = vector.broadcast %weight : f32 to vector<4xf32>
      %new_total = math.fma %s, %weight, %old_total : f32
      %new_mix = math.fma %part, %weights, %old_mix : vector<4xf32>
      scf.yield %new_total, %new_mix : f32, vector<4xf32>
    }

    // As in @store_mean_cpu, the total is below 1 only if there are no tokens.
    %divisor = arith.maximumf %total, %one : f32
    %factor = arith.divf %one, %divisor fastmath<arcp, afn> : f32
    %factors = vector.broadcast %factor : f32 to vector<4xf32>
    %mean = arith.mulf %mix, %factors : vector<4xf32>
    %result = arith.truncf %mean : vector<4xf32> to vector<4xbf16>
    %head0 = arith.muli %h, %c4 : index
    %head = arith.addi %head0, %group : index
    vector.store %result, %out[%b, %head, %e] {alignment = 8 : i64} : !tokens, vector<4xbf16>
    return
  }
}
