// One layer's keys of a batch, by an op of the serving engine:
//
//   serve-opt copy_keys.mlir --lower-serve --kvcache-to-ptx=chip=sm_90a

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>

func.func @copy_keys(%blocks: memref<?x2x?x64x8x128xbf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                     %max_seq: i32, %max_cache: i32, %layer: index, %out: memref<?x?x8x128xbf16>) {
  %cache = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq, %max_cache
      : memref<?x2x?x64x8x128xbf16>, memref<?xi32>, memref<?x?xi32> -> !collection
  serve.copy_keys %cache[%layer] to %out : !collection, memref<?x?x8x128xbf16>
  return
}
