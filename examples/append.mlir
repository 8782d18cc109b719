// Appends the tokens of a step, keys and values, to one layer of the paged cache.
//
//   keys[b, h, cache_length(b) + i, :] = new_keys[row_offsets[b] + i, h, :]
//
// for every new token i of sequence b, and the same for the values. The batch is ragged: the new tokens of sequence b
// are the rows from row_offsets[b] to row_offsets[b + 1], at most max_seq. cache_length(b) is the number of tokens in
// the cache before this step; the caller increases the lengths after all layers have appended. The lookup table must
// have the pages of the new tokens. The shapes are those of Llama-3-8B: pages of 64 tokens, 8 KV heads of 128 elements,
// bf16. One source for CPU and GPU, like gather.mlir: one block of 8 x 16 threads per new token.
//
//   kvcache-opt examples/append.mlir --kvcache-to-ptx="chip=sm_90a" --emit-ptx
//
//   program = kvcache.jit(pathlib.Path("examples/append.mlir"), target="cpu")
//   program.call("append", blocks, lengths, lut, max_seq, max_cache, layer, new_keys, new_values, row_offsets)

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @append(%blocks: memref<?x2x?x64x8x128xbf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                  %max_seq: i32, %max_cache: i32, %layer: index,
                  %new_keys: memref<?x8x128xbf16>, %new_values: memref<?x8x128xbf16>, %row_offsets: memref<?xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index

  %collection = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq, %max_cache
      : memref<?x2x?x64x8x128xbf16>, memref<?xi32>, memref<?x?xi32> -> !collection
  %batch = memref.dim %lengths, %c0 : memref<?xi32>
  %most = arith.index_castui %max_seq : i32 to index

  scf.parallel (%b, %i) = (%c0, %c0) to (%batch, %most) step (%c1, %c1) {
    scf.parallel (%h, %lane) = (%c0, %c0) to (%c8, %c16) step (%c1, %c1) {
      %b_next = arith.addi %b, %c1 : index
      %begin_i32 = memref.load %row_offsets[%b] : memref<?xi32>
      %end_i32 = memref.load %row_offsets[%b_next] : memref<?xi32>
      %begin = arith.index_castui %begin_i32 : i32 to index
      %end = arith.index_castui %end_i32 : i32 to index
      %row = arith.addi %begin, %i : index
      %is_new = arith.cmpi ult, %row, %end : index
      scf.if %is_new {
        %d = arith.muli %lane, %c8 : index
        %key = vector.load %new_keys[%row, %h, %d] {alignment = 16 : i64} : memref<?x8x128xbf16>, vector<8xbf16>
        %value = vector.load %new_values[%row, %h, %d] {alignment = 16 : i64} : memref<?x8x128xbf16>, vector<8xbf16>

        %keys = kvcache.paged_view key %collection[%layer] : !collection
        %values = kvcache.paged_view value %collection[%layer] : !collection
        %length = kvcache.cache_length %keys[%b] : !cache
        %t = arith.addi %length, %i : index
        kvcache.store %key, %keys[%b, %h, %t, %d] : vector<8xbf16>, !cache
        kvcache.store %value, %values[%b, %h, %t, %d] : vector<8xbf16>, !cache
      }
    }
  }
  return
}
