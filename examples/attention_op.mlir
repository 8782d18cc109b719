// Attention over a layer of a paged cache by one op: decode steps, prompts, and
// batches of both.

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!rows = memref<?x8x128xbf16>

func.func @attend(%blocks: memref<?x2x?x64x8x128xbf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                  %max_seq: i32, %max_cache: i32, %layer: index,
                  %q: !rows, %row_offsets: memref<?xi32>, %scale: f32, %out: !rows) {
  %collection = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq, %max_cache
      : memref<?x2x?x64x8x128xbf16>, memref<?xi32>, memref<?x?xi32> -> !collection
  %keys = kvcache.paged_view key %collection[%layer] : !collection
  %values = kvcache.paged_view value %collection[%layer] : !collection
  kvcache.attention %q, %keys, %values, %row_offsets, %scale outs(%out) {causal}
      : !rows, !cache, !cache, memref<?xi32>, f32, !rows
  return
}
