// The attention of one layer in a program on tensors; queries, keys and values are slices of one projection.
// one-shot-bufferize makes views of its memory of them. No tensor is copied, and the cache changes in place.
//
//   kvcache-opt decode_tensors.mlir \
//     --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" \
//     --canonicalize --kvcache-to-ptx=chip=sm_90a

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 16>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>
!rows = tensor<?x8x128xbf16>
!queries = tensor<?x32x128xbf16>
!projection = tensor<?x48x128xbf16>

func.func @decode(%blocks: memref<?x2x?x16x8x128xbf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %max_seq: i32,
                  %max_cache: i32, %layer: index, %qkv: !projection {bufferization.writable = true},
                  %row_offsets: tensor<?xi32>, %rope: tensor<?x128xf32>, %scale: f32, %out: memref<?x32x128xbf16>) {
  %cache = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq, %max_cache
      : memref<?x2x?x16x8x128xbf16>, memref<?xi32>, memref<?x?xi32> -> !collection
  %keys = kvcache.paged_view key %cache[%layer] : !collection
  %values = kvcache.paged_view value %cache[%layer] : !collection

  %c0 = arith.constant 0 : index
  %total = tensor.dim %qkv, %c0 : !projection
  %q = tensor.extract_slice %qkv[0, 0, 0] [%total, 32, 128] [1, 1, 1] : !projection to !queries
  %k = tensor.extract_slice %qkv[0, 32, 0] [%total, 8, 128] [1, 1, 1] : !projection to !rows
  %v = tensor.extract_slice %qkv[0, 40, 0] [%total, 8, 128] [1, 1, 1] : !projection to !rows

  %roped = kvcache.append %k, %v to %keys, %values rows %row_offsets rope %rope queries %q
      : !rows, !rows, !cache, !cache, tensor<?xi32>, tensor<?x128xf32>, !queries -> !queries
  %init = bufferization.to_tensor %out restrict writable : memref<?x32x128xbf16> to !queries
  %attended = kvcache.attention %roped, %keys, %values, %row_offsets, %scale outs(%init) {causal}
      : !queries, !cache, !cache, tensor<?xi32>, f32, !queries -> !queries
  bufferization.materialize_in_destination %attended in restrict writable %out
      : (!queries, memref<?x32x128xbf16>) -> ()
  return
}
