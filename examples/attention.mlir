// Attention of one query token per sequence over the paged cache (a decode step), for one layer.
//
//   out[b, h, :] = softmax(scale * q[b, h, :] . keys[b, h / 4, t, :] over t < cache_length(b)) . values[b, h / 4, t, :]
//
// The shapes are those of Llama-3-8B: 32 query heads, 8 KV heads of 128 elements, pages of 64 tokens, bf16. Sums are
// f32; an empty sequence gives zeros. Append the token of this step, and increase its length, before this kernel runs.
// There are two forms, because lanes of a warp exchange values and iterations of a loop do not: @attention_cpu for the
// CPU, and @kernels::@attention for a GPU, launched with a grid of (8, batch) blocks of 128 threads.
//
//   kvcache-opt examples/attention.mlir --kvcache-to-ptx="chip=sm_90a" --emit-ptx
//
//   program = kvcache.jit(pathlib.Path("examples/attention.mlir"), target="cpu")
//   program.call("attention_cpu", blocks, lengths, lut, max_seq, max_cache, layer, scale, q, out)

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!tile = memref<32x128xbf16, strided<[1024, 1], offset: ?>>

// Online softmax over the tokens so far: `max` is the largest score, `sum` the sum of 2^(score - max), and `acc` the
// sum of 2^(score - max) * value. When the maximum grows, the loop scales `sum` and `acc` down. Scores are in base 2,
// so the scale includes the factor log2(e).
func.func @attention_cpu(%blocks: memref<?x2x?x64x8x128xbf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                         %max_seq: i32, %max_cache: i32, %layer: index,
                         %scale: f32, %q: memref<?x32x128xbf16>, %out: memref<?x32x128xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %lowest = arith.constant -1.0e30 : f32
  %zeros = arith.constant dense<0.0> : vector<128xf32>
  %log2e = arith.constant 1.44269504 : f32
  %scale_log2 = arith.mulf %scale, %log2e : f32
  %scales = vector.broadcast %scale_log2 : f32 to vector<128xf32>

  %collection = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq, %max_cache
      : memref<?x2x?x64x8x128xbf16>, memref<?xi32>, memref<?x?xi32> -> !collection
  %keys = kvcache.paged_view key %collection[%layer] : !collection
  %values = kvcache.paged_view value %collection[%layer] : !collection
  %batch = memref.dim %q, %c0 : memref<?x32x128xbf16>

  scf.for %b = %c0 to %batch step %c1 {
    %length = kvcache.cache_length %keys[%b] : !cache
    scf.for %head = %c0 to %c32 step %c1 {
      %h = arith.divui %head, %c4 : index
      %q_raw = vector.load %q[%b, %head, %c0] : memref<?x32x128xbf16>, vector<128xbf16>
      %q_f32 = arith.extf %q_raw : vector<128xbf16> to vector<128xf32>
      %query = arith.mulf %q_f32, %scales : vector<128xf32>

      %max, %sum, %acc = scf.for %t = %c0 to %length step %c1
          iter_args(%old_max = %lowest, %old_sum = %zero, %old_acc = %zeros) -> (f32, f32, vector<128xf32>) {
        %key = kvcache.load %keys[%b, %h, %t, %c0] : !cache -> vector<128xf32>
        %value = kvcache.load %values[%b, %h, %t, %c0] : !cache -> vector<128xf32>
        %products = arith.mulf %query, %key : vector<128xf32>
        %score = vector.reduction <add>, %products fastmath<reassoc> : vector<128xf32> into f32

        %new_max = arith.maxnumf %old_max, %score : f32
        %max_change = arith.subf %old_max, %new_max : f32
        %shrink = math.exp2 %max_change : f32
        %distance = arith.subf %score, %new_max : f32
        %weight = math.exp2 %distance : f32

        %shrunk_sum = arith.mulf %old_sum, %shrink : f32
        %new_sum = arith.addf %shrunk_sum, %weight : f32
        %shrinks = vector.broadcast %shrink : f32 to vector<128xf32>
        %weights = vector.broadcast %weight : f32 to vector<128xf32>
        %shrunk_acc = arith.mulf %old_acc, %shrinks : vector<128xf32>
        %new_acc = math.fma %weights, %value, %shrunk_acc : vector<128xf32>
        scf.yield %new_max, %new_sum, %new_acc : f32, f32, vector<128xf32>
      }

      %any = arith.cmpi ne, %length, %c0 : index
      %divisor = arith.select %any, %sum, %one : f32
      %divisors = vector.broadcast %divisor : f32 to vector<128xf32>
      %mean = arith.divf %acc, %divisors : vector<128xf32>
      %result = arith.truncf %mean : vector<128xf32> to vector<128xbf16>
      vector.store %result, %out[%b, %head, %c0] : memref<?x32x128xbf16>, vector<128xbf16>
    }
  }
  return
}

// A block computes the 4 query heads of a KV head, 32 tokens at a time. Half-warp i reads the rows i, i + 8, i + 16 and
// i + 24 of a tile, 8 elements of a row per lane. 32 divides the page size, so a tile needs one table lookup. Vectors
// of 4 have one element per query head; vectors of 32 have the 8 elements of a lane for each of the 4 heads.
gpu.module @kernels {
  gpu.func @attention(%blocks: memref<?x2x?x64x8x128xbf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                      %max_seq: i32, %max_cache: i32, %layer: index,
                      %scale: f32, %q: memref<?x32x128xbf16>, %out: memref<?x32x128xbf16>)
      workgroup(%all_max: memref<8x4xf32, #gpu.address_space<workgroup>> {llvm.align = 16 : i64},
                %all_sum: memref<8x4xf32, #gpu.address_space<workgroup>> {llvm.align = 16 : i64},
                %all_acc: memref<8x4x128xf32, #gpu.address_space<workgroup>> {llvm.align = 16 : i64})
      kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c24 = arith.constant 24 : index
    %c32 = arith.constant 32 : index
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %lowest = arith.constant -1.0e30 : f32
    %lowest4 = arith.constant dense<-1.0e30> : vector<4xf32>
    %zero4 = arith.constant dense<0.0> : vector<4xf32>
    %zero32 = arith.constant dense<0.0> : vector<32xf32>
    %no_row = arith.constant dense<0.0> : vector<8xbf16>
    %log2e = arith.constant 1.44269504 : f32

    %h = gpu.block_id x
    %b = gpu.block_id y
    %thread = gpu.thread_id x
    %half_warp = arith.divui %thread, %c16 : index
    %lane = arith.remui %thread, %c16 : index
    %d = arith.muli %lane, %c8 : index

    %collection = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq, %max_cache
        : memref<?x2x?x64x8x128xbf16>, memref<?xi32>, memref<?x?xi32> -> !collection
    %keys = kvcache.paged_view key %collection[%layer] : !collection
    %values = kvcache.paged_view value %collection[%layer] : !collection
    %length = kvcache.cache_length %keys[%b] : !cache

    %head0 = arith.muli %h, %c4 : index
    %head1 = arith.addi %head0, %c1 : index
    %head2 = arith.addi %head0, %c2 : index
    %head3 = arith.addi %head0, %c3 : index
    %q0 = vector.load %q[%b, %head0, %d] {alignment = 16 : i64} : memref<?x32x128xbf16>, vector<8xbf16>
    %q1 = vector.load %q[%b, %head1, %d] {alignment = 16 : i64} : memref<?x32x128xbf16>, vector<8xbf16>
    %q2 = vector.load %q[%b, %head2, %d] {alignment = 16 : i64} : memref<?x32x128xbf16>, vector<8xbf16>
    %q3 = vector.load %q[%b, %head3, %d] {alignment = 16 : i64} : memref<?x32x128xbf16>, vector<8xbf16>
    %q01 = vector.shuffle %q0, %q1 [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]
        : vector<8xbf16>, vector<8xbf16>
    %q23 = vector.shuffle %q2, %q3 [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]
        : vector<8xbf16>, vector<8xbf16>
    %q_raw = vector.shuffle %q01, %q23 [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
                                        16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31]
        : vector<16xbf16>, vector<16xbf16>
    %q_f32 = arith.extf %q_raw : vector<32xbf16> to vector<32xf32>
    %scale_log2 = arith.mulf %scale, %log2e : f32
    %scales = vector.broadcast %scale_log2 : f32 to vector<32xf32>
    %query = arith.mulf %q_f32, %scales : vector<32xf32>

    %row1 = arith.addi %half_warp, %c8 : index
    %row2 = arith.addi %half_warp, %c16 : index
    %row3 = arith.addi %half_warp, %c24 : index
    %max, %sum, %acc = scf.for %t = %c0 to %length step %c32
        iter_args(%old_max = %lowest4, %old_sum = %zero4, %old_acc = %zero32)
        -> (vector<4xf32>, vector<4xf32>, vector<32xf32>) {
      %key_tile = kvcache.block_tile %keys[%b, %h, %t, %c0] : !cache -> !tile
      %value_tile = kvcache.block_tile %values[%b, %h, %t, %c0] : !cache -> !tile
      %k0 = vector.load %key_tile[%half_warp, %d] {alignment = 16 : i64} : !tile, vector<8xbf16>
      %k1 = vector.load %key_tile[%row1, %d] {alignment = 16 : i64} : !tile, vector<8xbf16>
      %k2 = vector.load %key_tile[%row2, %d] {alignment = 16 : i64} : !tile, vector<8xbf16>
      %k3 = vector.load %key_tile[%row3, %d] {alignment = 16 : i64} : !tile, vector<8xbf16>
      %v0_raw = vector.load %value_tile[%half_warp, %d] {alignment = 16 : i64} : !tile, vector<8xbf16>
      %v1_raw = vector.load %value_tile[%row1, %d] {alignment = 16 : i64} : !tile, vector<8xbf16>
      %v2_raw = vector.load %value_tile[%row2, %d] {alignment = 16 : i64} : !tile, vector<8xbf16>
      %v3_raw = vector.load %value_tile[%row3, %d] {alignment = 16 : i64} : !tile, vector<8xbf16>

      // Rows past the length are uninitialized, and may contain NaN.
      %left = arith.subi %length, %t : index
      %used0 = arith.cmpi ult, %half_warp, %left : index
      %used1 = arith.cmpi ult, %row1, %left : index
      %used2 = arith.cmpi ult, %row2, %left : index
      %used3 = arith.cmpi ult, %row3, %left : index
      %v0 = arith.select %used0, %v0_raw, %no_row : vector<8xbf16>
      %v1 = arith.select %used1, %v1_raw, %no_row : vector<8xbf16>
      %v2 = arith.select %used2, %v2_raw, %no_row : vector<8xbf16>
      %v3 = arith.select %used3, %v3_raw, %no_row : vector<8xbf16>
      %s0_raw = func.call @scores(%query, %k0) : (vector<32xf32>, vector<8xbf16>) -> vector<4xf32>
      %s1_raw = func.call @scores(%query, %k1) : (vector<32xf32>, vector<8xbf16>) -> vector<4xf32>
      %s2_raw = func.call @scores(%query, %k2) : (vector<32xf32>, vector<8xbf16>) -> vector<4xf32>
      %s3_raw = func.call @scores(%query, %k3) : (vector<32xf32>, vector<8xbf16>) -> vector<4xf32>
      %s0 = arith.select %used0, %s0_raw, %lowest4 : vector<4xf32>
      %s1 = arith.select %used1, %s1_raw, %lowest4 : vector<4xf32>
      %s2 = arith.select %used2, %s2_raw, %lowest4 : vector<4xf32>
      %s3 = arith.select %used3, %s3_raw, %lowest4 : vector<4xf32>

      %max01 = arith.maximumf %s0, %s1 : vector<4xf32>
      %max23 = arith.maximumf %s2, %s3 : vector<4xf32>
      %tile_max = arith.maximumf %max01, %max23 : vector<4xf32>
      %new_max = arith.maximumf %old_max, %tile_max : vector<4xf32>
      %shrink = func.call @weights(%old_max, %new_max) : (vector<4xf32>, vector<4xf32>) -> vector<4xf32>
      %w0 = func.call @weights(%s0, %new_max) : (vector<4xf32>, vector<4xf32>) -> vector<4xf32>
      %w1 = func.call @weights(%s1, %new_max) : (vector<4xf32>, vector<4xf32>) -> vector<4xf32>
      %w2 = func.call @weights(%s2, %new_max) : (vector<4xf32>, vector<4xf32>) -> vector<4xf32>
      %w3 = func.call @weights(%s3, %new_max) : (vector<4xf32>, vector<4xf32>) -> vector<4xf32>

      %w01 = arith.addf %w0, %w1 : vector<4xf32>
      %w23 = arith.addf %w2, %w3 : vector<4xf32>
      %tile_sum = arith.addf %w01, %w23 : vector<4xf32>
      %new_sum = math.fma %old_sum, %shrink, %tile_sum : vector<4xf32>
      %shrinks = vector.shuffle %shrink, %shrink [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1,
                                                  2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3]
          : vector<4xf32>, vector<4xf32>
      %acc0 = arith.mulf %old_acc, %shrinks : vector<32xf32>
      %acc1 = func.call @accumulate(%w0, %v0, %acc0)
          : (vector<4xf32>, vector<8xbf16>, vector<32xf32>) -> vector<32xf32>
      %acc2 = func.call @accumulate(%w1, %v1, %acc1)
          : (vector<4xf32>, vector<8xbf16>, vector<32xf32>) -> vector<32xf32>
      %acc3 = func.call @accumulate(%w2, %v2, %acc2)
          : (vector<4xf32>, vector<8xbf16>, vector<32xf32>) -> vector<32xf32>
      %new_acc = func.call @accumulate(%w3, %v3, %acc3)
          : (vector<4xf32>, vector<8xbf16>, vector<32xf32>) -> vector<32xf32>
      scf.yield %new_max, %new_sum, %new_acc : vector<4xf32>, vector<4xf32>, vector<32xf32>
    }

    // Each half-warp has processed different tokens: store its partial results in shared memory.
    %acc_0 = vector.extract_strided_slice %acc {offsets = [0], sizes = [8], strides = [1]}
        : vector<32xf32> to vector<8xf32>
    %acc_1 = vector.extract_strided_slice %acc {offsets = [8], sizes = [8], strides = [1]}
        : vector<32xf32> to vector<8xf32>
    %acc_2 = vector.extract_strided_slice %acc {offsets = [16], sizes = [8], strides = [1]}
        : vector<32xf32> to vector<8xf32>
    %acc_3 = vector.extract_strided_slice %acc {offsets = [24], sizes = [8], strides = [1]}
        : vector<32xf32> to vector<8xf32>
    vector.store %acc_0, %all_acc[%half_warp, %c0, %d] {alignment = 16 : i64}
        : memref<8x4x128xf32, #gpu.address_space<workgroup>>, vector<8xf32>
    vector.store %acc_1, %all_acc[%half_warp, %c1, %d] {alignment = 16 : i64}
        : memref<8x4x128xf32, #gpu.address_space<workgroup>>, vector<8xf32>
    vector.store %acc_2, %all_acc[%half_warp, %c2, %d] {alignment = 16 : i64}
        : memref<8x4x128xf32, #gpu.address_space<workgroup>>, vector<8xf32>
    vector.store %acc_3, %all_acc[%half_warp, %c3, %d] {alignment = 16 : i64}
        : memref<8x4x128xf32, #gpu.address_space<workgroup>>, vector<8xf32>
    %is_first = arith.cmpi eq, %lane, %c0 : index
    scf.if %is_first {
      vector.store %max, %all_max[%half_warp, %c0] {alignment = 16 : i64}
          : memref<8x4xf32, #gpu.address_space<workgroup>>, vector<4xf32>
      vector.store %sum, %all_sum[%half_warp, %c0] {alignment = 16 : i64}
          : memref<8x4xf32, #gpu.address_space<workgroup>>, vector<4xf32>
    }
    gpu.barrier

    // Combine the partial results: one query head per warp, 4 of its elements per lane.
    %group = arith.divui %thread, %c32 : index
    %warp_lane = arith.remui %thread, %c32 : index
    %e = arith.muli %warp_lane, %c4 : index
    %top = scf.for %i = %c0 to %c8 step %c1 iter_args(%old = %lowest) -> (f32) {
      %m = memref.load %all_max[%i, %group] : memref<8x4xf32, #gpu.address_space<workgroup>>
      %new = arith.maximumf %old, %m : f32
      scf.yield %new : f32
    }
    %total, %mix = scf.for %i = %c0 to %c8 step %c1
        iter_args(%old_total = %zero, %old_mix = %zero4) -> (f32, vector<4xf32>) {
      %m = memref.load %all_max[%i, %group] : memref<8x4xf32, #gpu.address_space<workgroup>>
      %s = memref.load %all_sum[%i, %group] : memref<8x4xf32, #gpu.address_space<workgroup>>
      %part = vector.load %all_acc[%i, %group, %e] {alignment = 16 : i64}
          : memref<8x4x128xf32, #gpu.address_space<workgroup>>, vector<4xf32>
      %distance = arith.subf %m, %top : f32
      %weight = math.exp2 %distance : f32
      %weights = vector.broadcast %weight : f32 to vector<4xf32>
      %new_total = math.fma %s, %weight, %old_total : f32
      %new_mix = math.fma %part, %weights, %old_mix : vector<4xf32>
      scf.yield %new_total, %new_mix : f32, vector<4xf32>
    }

    %any = arith.cmpi ne, %length, %c0 : index
    %divisor = arith.select %any, %total, %one : f32
    %factor = arith.divf %one, %divisor fastmath<arcp, afn> : f32
    %factors = vector.broadcast %factor : f32 to vector<4xf32>
    %mean = arith.mulf %mix, %factors : vector<4xf32>
    %result = arith.truncf %mean : vector<4xf32> to vector<4xbf16>
    %head = arith.addi %head0, %group : index
    vector.store %result, %out[%b, %head, %e] {alignment = 8 : i64} : memref<?x32x128xbf16>, vector<4xbf16>
    gpu.return
  }

  // The scores of one row: 4 dot products, each summed over the 16 lanes of the half-warp.
  func.func private @scores(%query: vector<32xf32>, %key_raw: vector<8xbf16>) -> vector<4xf32> {
    %key = arith.extf %key_raw : vector<8xbf16> to vector<8xf32>
    %keys = vector.shuffle %key, %key [0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7,
                                       0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7]
        : vector<8xf32>, vector<8xf32>
    %x = arith.mulf %query, %keys fastmath<contract> : vector<32xf32>
    %x0 = vector.extract_strided_slice %x {offsets = [0], sizes = [8], strides = [1]} : vector<32xf32> to vector<8xf32>
    %x1 = vector.extract_strided_slice %x {offsets = [8], sizes = [8], strides = [1]} : vector<32xf32> to vector<8xf32>
    %x2 = vector.extract_strided_slice %x {offsets = [16], sizes = [8], strides = [1]} : vector<32xf32> to vector<8xf32>
    %x3 = vector.extract_strided_slice %x {offsets = [24], sizes = [8], strides = [1]} : vector<32xf32> to vector<8xf32>
    %part0 = vector.reduction <add>, %x0 fastmath<contract> : vector<8xf32> into f32
    %part1 = vector.reduction <add>, %x1 fastmath<contract> : vector<8xf32> into f32
    %part2 = vector.reduction <add>, %x2 fastmath<contract> : vector<8xf32> into f32
    %part3 = vector.reduction <add>, %x3 fastmath<contract> : vector<8xf32> into f32
    %s0 = gpu.subgroup_reduce add %part0 cluster(size = 16) : (f32) -> f32
    %s1 = gpu.subgroup_reduce add %part1 cluster(size = 16) : (f32) -> f32
    %s2 = gpu.subgroup_reduce add %part2 cluster(size = 16) : (f32) -> f32
    %s3 = gpu.subgroup_reduce add %part3 cluster(size = 16) : (f32) -> f32
    %s = vector.from_elements %s0, %s1, %s2, %s3 : vector<4xf32>
    return %s : vector<4xf32>
  }

  func.func private @weights(%scores: vector<4xf32>, %max: vector<4xf32>) -> vector<4xf32> {
    %distance = arith.subf %scores, %max : vector<4xf32>
    %weights = math.exp2 %distance : vector<4xf32>
    return %weights : vector<4xf32>
  }

  // acc + the values of the row, times the weight of each head.
  func.func private @accumulate(%weight: vector<4xf32>, %value_raw: vector<8xbf16>, %acc: vector<32xf32>)
      -> vector<32xf32> {
    %value = arith.extf %value_raw : vector<8xbf16> to vector<8xf32>
    %values = vector.shuffle %value, %value [0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7,
                                             0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7]
        : vector<8xf32>, vector<8xf32>
    %weights = vector.shuffle %weight, %weight [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1,
                                                2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3]
        : vector<4xf32>, vector<4xf32>
    %sum = math.fma %weights, %values, %acc : vector<32xf32>
    return %sum : vector<32xf32>
  }
}
