// RUN: kvcache-opt %s --verify-roundtrip | FileCheck %s

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>
!continuous = !kvcache.continuous<bf16, #kv>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

// CHECK-LABEL: func.func @copies(
// CHECK:         kvcache.async_load_tile %{{.*}}[%[[I:.*]], %[[I]], %[[I]], %[[I]]] valid %[[I]] to %[[KT:.*]] : !kvcache.paged<bf16, #kv, page_size = 16>, !kvcache.tile<64x128xbf16, swizzle_128b>
// CHECK:         %[[TOKEN:.*]] = kvcache.async_load_tile %{{.*}}[%[[I]], %[[I]], %[[I]], %[[I]]] to %[[KT]] : !kvcache.continuous<bf16, #kv>,
// CHECK:         kvcache.async_gather_tile %{{.*}}[%[[I]], %[[I]]] rows %{{.*}} to %[[KT]] : !kvcache.paged<bf16, #kv, page_size = 16>, memref<64xi32>,
// CHECK:         kvcache.wait %[[TOKEN]]
func.func @copies(%k: !cache, %c: !continuous, %kt: !kt, %i: index, %ids: memref<64xi32>) {
  %a = kvcache.async_load_tile %k[%i, %i, %i, %i] valid %i to %kt : !cache, !kt
  %b = kvcache.async_load_tile %c[%i, %i, %i, %i] to %kt : !continuous, !kt
  %d = kvcache.async_gather_tile %k[%i, %i] rows %ids to %kt : !cache, memref<64xi32>, !kt
  kvcache.wait %b
  return
}
