// One layer of a decode step, by an op of the serving engine:
//
//   serve-opt decode.mlir --lower-serve --kvcache-to-ptx=chip=sm_90a

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>
!rows = memref<?x8x128xbf16>
!queries = memref<?x32x128xbf16>

func.func @decode(%blocks: memref<?x2x?x64x8x128xbf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                  %max_seq: i32, %max_cache: i32, %layer: index, %q: !queries, %k: !rows, %v: !rows,
                  %row_offsets: memref<?xi32>, %rope: memref<?x128xf32>, %scale: f32, %out: !queries) {
  %cache = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq, %max_cache
      : memref<?x2x?x64x8x128xbf16>, memref<?xi32>, memref<?x?xi32> -> !collection
  serve.decode %q, %k, %v, %row_offsets, %rope, %scale on %cache[%layer] to %out
      : !queries, !rows, !rows, memref<?xi32>, memref<?x128xf32>, !collection, !queries
  return
}
