// Quantizes the bf16 tokens of a step, keys and values, and appends them to one layer of a paged fp8 cache.
//
//   keys[b, h, cache_length(b) + i, :] * their scales = new_keys[row_offsets[b] + i, h, :], rounded
//
// for every new token i of sequence b, and the same for the values; append.mlir describes the arguments. A group of
// elements shares an f32 scale: its largest magnitude divided by 448, the largest number of f8E4M3FN. There are kernels
// for two common group sizes: a head of a token ("per token") and 32 elements ("per group").
// The shapes are those of Llama-3-8B: pages of 64 tokens, 8 KV heads of 128 elements.
//
// Per group, one thread quantizes 32 elements, so one source works for CPU and GPU: @append_per_group. Per token, 16
// lanes of a warp share the 128 elements of a head, 16 bytes each: @append_per_token_cpu is for the CPU, and
// @kernels::@append_per_token for a GPU, launched with a grid of (max_seq, batch) blocks of 16 x 8 threads.
//
//   kvcache-opt examples/append_fp8.mlir --kvcache-to-ptx="chip=sm_90a" --emit-ptx-module=append_per_group_kernel
//
//   program = kvcache.jit(pathlib.Path("examples/append_fp8.mlir"), target="cpu")
//   program.call("append_per_group", blocks, lengths, lut, max_seq, max_cache, scales, layer,
//                new_keys, new_values, row_offsets)

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!per_token_collection = !kvcache.paged_collection<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 128>
!per_group_collection = !kvcache.paged_collection<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>
!per_token = !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 128>
!per_group = !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>

// One block of 8 heads x 4 groups per new token: each thread quantizes one group of the key and one of the value. The
// loops contain the op that creates the collection, so that elements and scales share the page lookup in a kernel, too.
func.func @append_per_group(%blocks: memref<?x2x?x64x8x128xf8E4M3FN>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                            %max_seq: i32, %max_cache: i32, %scales: memref<?x2x?x64x8x4xf32>, %layer: index,
                            %new_keys: memref<?x8x128xbf16>, %new_values: memref<?x8x128xbf16>,
                            %row_offsets: memref<?xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index

  %batch = memref.dim %lengths, %c0 : memref<?xi32>
  %most = arith.index_castui %max_seq : i32 to index

  scf.parallel (%b, %i) = (%c0, %c0) to (%batch, %most) step (%c1, %c1) {
    scf.parallel (%h, %group) = (%c0, %c0) to (%c8, %c4) step (%c1, %c1) {
      %b_next = arith.addi %b, %c1 : index
      %begin_i32 = memref.load %row_offsets[%b] : memref<?xi32>
      %end_i32 = memref.load %row_offsets[%b_next] : memref<?xi32>
      %begin = arith.index_castui %begin_i32 : i32 to index
      %end = arith.index_castui %end_i32 : i32 to index
      %row = arith.addi %begin, %i : index
      %is_new = arith.cmpi ult, %row, %end : index
      scf.if %is_new {
        %d = arith.muli %group, %c32 : index
        %key = vector.load %new_keys[%row, %h, %d] {alignment = 16 : i64}
            : memref<?x8x128xbf16>, vector<32xbf16>
        %value = vector.load %new_values[%row, %h, %d] {alignment = 16 : i64}
            : memref<?x8x128xbf16>, vector<32xbf16>

        %collection = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq, %max_cache scales %scales
            : memref<?x2x?x64x8x128xf8E4M3FN>, memref<?xi32>, memref<?x?xi32>, memref<?x2x?x64x8x4xf32>
            -> !per_group_collection
        %keys = kvcache.paged_view key %collection[%layer] : !per_group_collection
        %values = kvcache.paged_view value %collection[%layer] : !per_group_collection
        %length = kvcache.cache_length %keys[%b] : !per_group
        %t = arith.addi %length, %i : index
        kvcache.store_quantized %key, %keys[%b, %h, %t, %d] : vector<32xbf16>, !per_group
        kvcache.store_quantized %value, %values[%b, %h, %t, %d] : vector<32xbf16>, !per_group
      }
    }
  }
  return
}

// Plain loops, because parallel loops would become a kernel.
func.func @append_per_token_cpu(%blocks: memref<?x2x?x64x8x128xf8E4M3FN>, %lengths: memref<?xi32>,
                                %lut: memref<?x?xi32>, %max_seq: i32, %max_cache: i32,
                                %scales: memref<?x2x?x64x8x1xf32>, %layer: index,
                                %new_keys: memref<?x8x128xbf16>, %new_values: memref<?x8x128xbf16>,
                                %row_offsets: memref<?xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index

  %collection = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq, %max_cache scales %scales
      : memref<?x2x?x64x8x128xf8E4M3FN>, memref<?xi32>, memref<?x?xi32>, memref<?x2x?x64x8x1xf32>
      -> !per_token_collection
  %keys = kvcache.paged_view key %collection[%layer] : !per_token_collection
  %values = kvcache.paged_view value %collection[%layer] : !per_token_collection
  %batch = memref.dim %lengths, %c0 : memref<?xi32>

  scf.for %b = %c0 to %batch step %c1 {
    %b_next = arith.addi %b, %c1 : index
    %begin_i32 = memref.load %row_offsets[%b] : memref<?xi32>
    %end_i32 = memref.load %row_offsets[%b_next] : memref<?xi32>
    %begin = arith.index_castui %begin_i32 : i32 to index
    %end = arith.index_castui %end_i32 : i32 to index
    %length = kvcache.cache_length %keys[%b] : !per_token
    scf.for %row = %begin to %end step %c1 {
      %i = arith.subi %row, %begin : index
      %t = arith.addi %length, %i : index
      scf.for %h = %c0 to %c8 step %c1 {
        %key = vector.load %new_keys[%row, %h, %c0] : memref<?x8x128xbf16>, vector<128xbf16>
        %value = vector.load %new_values[%row, %h, %c0] : memref<?x8x128xbf16>, vector<128xbf16>
        kvcache.store_quantized %key, %keys[%b, %h, %t, %c0] : vector<128xbf16>, !per_token
        kvcache.store_quantized %value, %values[%b, %h, %t, %c0] : vector<128xbf16>, !per_token
      }
    }
  }
  return
}

gpu.module @kernels {
  gpu.func @append_per_token(%blocks: memref<?x2x?x64x8x128xf8E4M3FN>, %lengths: memref<?xi32>,
                             %lut: memref<?x?xi32>, %max_seq: i32, %max_cache: i32,
                             %scales: memref<?x2x?x64x8x1xf32>, %layer: index,
                             %new_keys: memref<?x8x128xbf16>, %new_values: memref<?x8x128xbf16>,
                             %row_offsets: memref<?xi32>)
      kernel attributes {known_block_size = array<i32: 16, 8, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index

    %i = gpu.block_id x
    %b = gpu.block_id y
    %lane = gpu.thread_id x
    %h = gpu.thread_id y
    %d = arith.muli %lane, %c8 : index

    %collection = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq, %max_cache scales %scales
        : memref<?x2x?x64x8x128xf8E4M3FN>, memref<?xi32>, memref<?x?xi32>, memref<?x2x?x64x8x1xf32>
        -> !per_token_collection
    %keys = kvcache.paged_view key %collection[%layer] : !per_token_collection
    %values = kvcache.paged_view value %collection[%layer] : !per_token_collection

    %b_next = arith.addi %b, %c1 : index
    %begin_i32 = memref.load %row_offsets[%b] : memref<?xi32>
    %end_i32 = memref.load %row_offsets[%b_next] : memref<?xi32>
    %begin = arith.index_castui %begin_i32 : i32 to index
    %end = arith.index_castui %end_i32 : i32 to index
    %row = arith.addi %begin, %i : index
    %is_new = arith.cmpi ult, %row, %end : index

    // The block has a single token, so either all lanes of a warp execute `quantize`, or none.
    scf.if %is_new {
      %key = vector.load %new_keys[%row, %h, %d] {alignment = 16 : i64} : memref<?x8x128xbf16>, vector<8xbf16>
      %value = vector.load %new_values[%row, %h, %d] {alignment = 16 : i64} : memref<?x8x128xbf16>, vector<8xbf16>
      %key_fp8, %key_scale = kvcache.quantize %key {lanes = 16} : vector<8xbf16> -> vector<8xf8E4M3FN>, f32
      %value_fp8, %value_scale = kvcache.quantize %value {lanes = 16} : vector<8xbf16> -> vector<8xf8E4M3FN>, f32

      %length = kvcache.cache_length %keys[%b] : !per_token
      %t = arith.addi %length, %i : index
      kvcache.store %key_fp8, %keys[%b, %h, %t, %d] : vector<8xf8E4M3FN>, !per_token
      kvcache.store %value_fp8, %values[%b, %h, %t, %d] : vector<8xf8E4M3FN>, !per_token
      %is_first = arith.cmpi eq, %lane, %c0 : index
      scf.if %is_first {
        kvcache.store_scale %key_scale, %keys[%b, %h, %t, %c0] : f32, !per_token
        kvcache.store_scale %value_scale, %values[%b, %h, %t, %c0] : f32, !per_token
      }
    }
    gpu.return
  }
}
