// RUN: kvcache-opt %s --verify-roundtrip | FileCheck %s
// RUN: kvcache-opt %s --mlir-print-op-generic | kvcache-opt | FileCheck %s
// RUN: kvcache-opt %s --emit-bytecode | kvcache-opt | FileCheck %s

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>
!continuous = !kvcache.continuous<bf16, #kv>
!nvfp4 = !kvcache.paged<f4E2M1FN, #kv, page_size = 16, scale = f8E4M3FN, granularity = 16>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!bytes = !kvcache.tile<64x64xi8, swizzle_64b>

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

// CHECK-LABEL: func.func @base_alignment(
// CHECK:         kvcache.async_load_tile %{{.*}}[%[[I:.*]], %[[I]], %[[I]], %[[I]]] to %[[KT:.*]] {base_alignment = 64 : i64} : !kvcache.paged<bf16, #kv, page_size = 16>, !kvcache.tile<64x128xbf16, swizzle_128b>
// CHECK:         kvcache.async_load_tile %{{.*}}[%[[I]], %[[I]], %[[I]], %[[I]]] valid %[[I]] to %[[KT]] {base_alignment = 3 : i64} : !kvcache.continuous<bf16, #kv>,
func.func @base_alignment(%k: !cache, %c: !continuous, %kt: !kt, %i: index) {
  %a = kvcache.async_load_tile %k[%i, %i, %i, %i] to %kt {base_alignment = 64} : !cache, !kt
  %b = kvcache.async_load_tile %c[%i, %i, %i, %i] valid %i to %kt {base_alignment = 3} : !continuous, !kt
  return
}

// A 4-bit cache is copied as bytes of two elements each: up to 64 for 128.
// CHECK-LABEL: func.func @half_bytes(
// CHECK:         kvcache.async_load_tile %{{.*}} to %[[KT:.*]] : !kvcache.paged<f4E2M1FN, #kv, page_size = 16, scale = f8E4M3FN, granularity = 16>, !kvcache.tile<64x64xi8, swizzle_64b>
// CHECK:         kvcache.async_gather_tile %{{.*}} to %[[KT]] : !kvcache.paged<f4E2M1FN, #kv, page_size = 16, scale = f8E4M3FN, granularity = 16>, memref<64xi32>, !kvcache.tile<64x64xi8, swizzle_64b>
func.func @half_bytes(%k: !nvfp4, %kt: !bytes, %i: index, %ids: memref<64xi32>) {
  %a = kvcache.async_load_tile %k[%i, %i, %i, %i] to %kt : !nvfp4, !bytes
  %b = kvcache.async_gather_tile %k[%i, %i] rows %ids to %kt : !nvfp4, memref<64xi32>, !bytes
  return
}

// CHECK-LABEL: func.func @kinds(
// CHECK:         kvcache.async_load_tile {{.*}} {copy = #kvcache.copy<plain>}
// CHECK:         kvcache.async_load_tile {{.*}} {base_alignment = 16 : i64, copy = #kvcache.copy<cp_async>}
// CHECK:         kvcache.async_load_tile {{.*}} {copy = #kvcache.copy<tensor_boxes>}
// CHECK:         kvcache.async_gather_tile {{.*}} {copy = #kvcache.copy<tensor_rows>}
// CHECK:         kvcache.async_gather_tile {{.*}} {copy = #kvcache.copy<bulk_rows>}
func.func @kinds(%k: !cache, %kt: !kt, %i: index, %ids: memref<64xi32>) {
  %a = kvcache.async_load_tile %k[%i, %i, %i, %i] to %kt {copy = #kvcache.copy<plain>} : !cache, !kt
  %b = kvcache.async_load_tile %k[%i, %i, %i, %i] to %kt {base_alignment = 16, copy = #kvcache.copy<cp_async>} : !cache, !kt
  %c = kvcache.async_load_tile %k[%i, %i, %i, %i] to %kt {copy = #kvcache.copy<tensor_boxes>} : !cache, !kt
  %d = kvcache.async_gather_tile %k[%i, %i] rows %ids to %kt {copy = #kvcache.copy<tensor_rows>} : !cache, memref<64xi32>, !kt
  %e = kvcache.async_gather_tile %k[%i, %i] rows %ids to %kt {copy = #kvcache.copy<bulk_rows>} : !cache, memref<64xi32>, !kt
  return
}

// CHECK-LABEL: func.func @hints(
// CHECK:         kvcache.async_load_tile {{.*}} {copy = #kvcache.copy<plain>, l2_hint = #kvcache.eviction<evict_first>}
// CHECK:         kvcache.async_gather_tile {{.*}} {l2_hint = #kvcache.eviction<evict_last>}
func.func @hints(%k: !cache, %kt: !kt, %i: index, %ids: memref<64xi32>) {
  %a = kvcache.async_load_tile %k[%i, %i, %i, %i] to %kt {copy = #kvcache.copy<plain>, l2_hint = #kvcache.eviction<evict_first>} : !cache, !kt
  %b = kvcache.async_gather_tile %k[%i, %i] rows %ids to %kt {l2_hint = #kvcache.eviction<evict_last>} : !cache, memref<64xi32>, !kt
  return
}

// CHECK-LABEL: func.func @multicast(
// CHECK:         kvcache.async_load_tile {{.*}} {multicast} :
// CHECK:         kvcache.async_load_tile {{.*}} {base_alignment = 16 : i64, copy = #kvcache.copy<tensor_boxes>, multicast} :
func.func @multicast(%k: !cache, %kt: !kt, %i: index) {
  %a = kvcache.async_load_tile %k[%i, %i, %i, %i] to %kt {multicast} : !cache, !kt
  %b = kvcache.async_load_tile %k[%i, %i, %i, %i] to %kt {base_alignment = 16, copy = #kvcache.copy<tensor_boxes>, multicast} : !cache, !kt
  return
}

// CHECK-LABEL: func.func @descriptors(
// CHECK:         kvcache.async_load_tile %{{.*}} valid %{{.*}} to %[[KT:.*]] descriptor %[[RAGGED:.*]] {copy = #kvcache.copy<tensor_boxes>} : {{.*}}, !kvcache.tile<64x128xbf16, swizzle_128b>, !kvcache.tma_tile<64x16x1x1xbf16, swizzle_128b>
// CHECK:         kvcache.async_load_tile %{{.*}} to %[[KT]] descriptor %{{.*}} {copy = #kvcache.copy<tensor_boxes>} : {{.*}}, !kvcache.tma_tile<64x1x16x1xbf16, swizzle_128b>
// CHECK:         kvcache.async_gather_tile %{{.*}} to %[[KT]] descriptor %{{.*}} {copy = #kvcache.copy<tensor_rows>} : {{.*}}, memref<64xi32>, {{.*}}, !kvcache.tma_tile<64x1xbf16, swizzle_128b>
func.func @descriptors(%k: !cache, %kt: !kt, %i: index, %ids: memref<64xi32>,
    %ragged: !kvcache.tma_tile<64x16x1x1xbf16, swizzle_128b>, %paged: !kvcache.tma_tile<64x1x16x1xbf16, swizzle_128b>,
    %row: !kvcache.tma_tile<64x1xbf16, swizzle_128b>) {
  %a = kvcache.async_load_tile %k[%i, %i, %i, %i] valid %i to %kt descriptor %ragged {copy = #kvcache.copy<tensor_boxes>}
         : !cache, !kt, !kvcache.tma_tile<64x16x1x1xbf16, swizzle_128b>
  %b = kvcache.async_load_tile %k[%i, %i, %i, %i] to %kt descriptor %paged {copy = #kvcache.copy<tensor_boxes>}
         : !cache, !kt, !kvcache.tma_tile<64x1x16x1xbf16, swizzle_128b>
  %c = kvcache.async_gather_tile %k[%i, %i] rows %ids to %kt descriptor %row {copy = #kvcache.copy<tensor_rows>}
         : !cache, memref<64xi32>, !kt, !kvcache.tma_tile<64x1xbf16, swizzle_128b>
  return
}
