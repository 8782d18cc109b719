// The two kernels of decode.py: append the tokens of a step to a layer of the paged cache, and attend to the layer.
//
//   keys[b, h, cache_length(b) + i, :] = new_keys[row_offsets[b] + i, h, :]           and the same for the values
//   out[row_offsets[b] + i, h, :] = softmax(scale * q[row_offsets[b] + i, h, :] . keys[b, h / group, t, :]
//                                           over t <= cache_length(b) + i) . values[b, h / group, t, :]
//
// for every new token i of sequence b. The batch is ragged, as in append.mlir, and may mix prompts and single tokens.
// In both kernels, cache_length(b) is the number of tokens before this step: append first, then attend.
// One source for CPU and GPU: one block per new token, with one thread per head.
//
//   kvcache-opt examples/decode.mlir --kvcache-to-ptx="chip=sm_90a" --emit-ptx-module=attention_kernel
//
//   program.call("append", *inputs.collection(), layer, new_keys, new_values, inputs.row_offsets)
//   program.call("attention", *inputs.collection(), layer, scale, q, inputs.row_offsets, out)

// The parameters of a model and its cache, which decode.py replaces by its own. For a cache without scales, it also
// removes the scales below, and "_quantized" from the stores.
#kv = #kvcache.params<num_heads = 2, head_size = 64>
!collection = !kvcache.paged_collection<f8E4M3FN, #kv, page_size = 16, scale = f32, granularity = 64>
!cache = !kvcache.paged<f8E4M3FN, #kv, page_size = 16, scale = f32, granularity = 64>
!blocks = memref<?x2x?x16x2x64xf8E4M3FN>
!scales = memref<?x2x?x16x2x1xf32>
!new_rows = memref<?x2x64xf32>
!new_row = vector<64xf32>
!queries = memref<?x8x64xf32>
!head = vector<64xf32>

// The row of the new token i of sequence b among the rows of all sequences, and whether this token exists.
func.func private @new_token(%row_offsets: memref<?xi32>, %b: index, %i: index) -> (index, i1) {
  %c1 = arith.constant 1 : index
  %b_next = arith.addi %b, %c1 : index
  %begin_i32 = memref.load %row_offsets[%b] : memref<?xi32>
  %end_i32 = memref.load %row_offsets[%b_next] : memref<?xi32>
  %begin = arith.index_castui %begin_i32 : i32 to index
  %end = arith.index_castui %end_i32 : i32 to index
  %row = arith.addi %begin, %i : index
  %is_new = arith.cmpi ult, %row, %end : index
  return %row, %is_new : index, i1
}

func.func @append(%blocks: !blocks, %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %max_seq: i32, %max_cache: i32,
                  %scales: !scales, %layer: index,
                  %new_keys: !new_rows, %new_values: !new_rows, %row_offsets: memref<?xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %batch = memref.dim %lengths, %c0 : memref<?xi32>
  %most = arith.index_castui %max_seq : i32 to index
  %heads = memref.dim %new_keys, %c1 : !new_rows

  scf.parallel (%b, %i) = (%c0, %c0) to (%batch, %most) step (%c1, %c1) {
    scf.parallel (%h) = (%c0) to (%heads) step (%c1) {
      %row, %is_new = func.call @new_token(%row_offsets, %b, %i) : (memref<?xi32>, index, index) -> (index, i1)
      scf.if %is_new {
        %key = vector.load %new_keys[%row, %h, %c0] {alignment = 16 : i64} : !new_rows, !new_row
        %value = vector.load %new_values[%row, %h, %c0] {alignment = 16 : i64} : !new_rows, !new_row
        %collection = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq, %max_cache scales %scales
            : !blocks, memref<?xi32>, memref<?x?xi32>, !scales -> !collection
        %keys = kvcache.paged_view key %collection[%layer] : !collection
        %values = kvcache.paged_view value %collection[%layer] : !collection
        %length = kvcache.cache_length %keys[%b] : !cache
        %t = arith.addi %length, %i : index
        kvcache.store_quantized %key, %keys[%b, %h, %t, %c0] : !new_row, !cache
        kvcache.store_quantized %value, %values[%b, %h, %t, %c0] : !new_row, !cache
      }
    }
  }
  return
}

// Online softmax in base 2, as attention.mlir explains.
func.func @attention(%blocks: !blocks, %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %max_seq: i32, %max_cache: i32,
                     %scales: !scales, %layer: index,
                     %scale: f32, %q: !queries, %row_offsets: memref<?xi32>, %out: !queries) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant -1.0e30 : f32
  %zeros = arith.constant dense<0.0> : !head
  %log2e = arith.constant 1.44269504 : f32
  %batch = memref.dim %lengths, %c0 : memref<?xi32>
  %most = arith.index_castui %max_seq : i32 to index
  %heads = memref.dim %q, %c1 : !queries
  %kv_heads = memref.dim %blocks, %c4 : !blocks
  %group = arith.divui %heads, %kv_heads : index

  scf.parallel (%b, %i) = (%c0, %c0) to (%batch, %most) step (%c1, %c1) {
    scf.parallel (%head) = (%c0) to (%heads) step (%c1) {
      %row, %is_new = func.call @new_token(%row_offsets, %b, %i) : (memref<?xi32>, index, index) -> (index, i1)
      scf.if %is_new {
        %h = arith.divui %head, %group : index
        %q_row = vector.load %q[%row, %head, %c0] {alignment = 16 : i64} : !queries, !head
        %scale_log2 = arith.mulf %scale, %log2e : f32
        %factors = vector.broadcast %scale_log2 : f32 to !head
        %query = arith.mulf %q_row, %factors : !head
        %collection = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq, %max_cache scales %scales
            : !blocks, memref<?xi32>, memref<?x?xi32>, !scales -> !collection
        %keys = kvcache.paged_view key %collection[%layer] : !collection
        %values = kvcache.paged_view value %collection[%layer] : !collection
        %length = kvcache.cache_length %keys[%b] : !cache
        %own = arith.addi %length, %i : index
        %end = arith.addi %own, %c1 : index

        %max, %sum, %acc = scf.for %t = %c0 to %end step %c1
            iter_args(%old_max = %lowest, %old_sum = %zero, %old_acc = %zeros) -> (f32, f32, !head) {
          %key = kvcache.load %keys[%b, %h, %t, %c0] : !cache -> !head
          %products = arith.mulf %query, %key : !head
          %score = vector.reduction <add>, %products fastmath<reassoc> : !head into f32

          %new_max = arith.maxnumf %old_max, %score : f32
          %max_change = arith.subf %old_max, %new_max : f32
          %shrink = math.exp2 %max_change : f32
          %distance = arith.subf %score, %new_max : f32
          %weight = math.exp2 %distance : f32

          %value = kvcache.load %values[%b, %h, %t, %c0] : !cache -> !head
          %new_sum = math.fma %old_sum, %shrink, %weight : f32
          %shrinks = vector.broadcast %shrink : f32 to !head
          %weights = vector.broadcast %weight : f32 to !head
          %shrunk_acc = arith.mulf %old_acc, %shrinks : !head
          %new_acc = math.fma %weights, %value, %shrunk_acc : !head
          scf.yield %new_max, %new_sum, %new_acc : f32, f32, !head
        }

        %divisors = vector.broadcast %sum : f32 to !head
        %mean = arith.divf %acc, %divisors : !head
        vector.store %mean, %out[%row, %head, %c0] {alignment = 16 : i64} : !queries, !head
      }
    }
  }
  return
}
