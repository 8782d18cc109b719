// RUN: kvcache-opt %s --verify-roundtrip | FileCheck %s
// RUN: kvcache-opt %s --mlir-print-op-generic | kvcache-opt | FileCheck %s
// RUN: kvcache-opt %s --emit-bytecode | kvcache-opt | FileCheck %s
// RUN: kvcache-opt %s --canonicalize --cse | FileCheck %s

!desc = !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
!part = !kvcache.tma_tile<64x1x16xbf16, swizzle_128b>
!matrix = !kvcache.tma_tile<128x64xbf16>
!ragged = !kvcache.tma_tile<64x64x1x1xbf16, swizzle_128b>
!paged = !kvcache.tma_tile<64x1x64x1xbf16, swizzle_128b>
!words = !kvcache.tma_tile<72x1xi64>
!row = !kvcache.tma_tile<64x1xbf16, swizzle_128b>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!plain = !kvcache.tile<64x128xbf16>
!latent = !kvcache.tile<64x576xf8E4M3FN>
!rows = !kvcache.row_indices<rows = 64, page_size = 64>
!two_pages = !kvcache.row_indices<rows = 128, page_size = 64>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 2>

// CHECK-LABEL: func.func @prefetch(
// CHECK-SAME:    %[[DESC:.*]]: !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>)
// CHECK:         kvcache.tma_prefetch %[[DESC]] : !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
func.func @prefetch(%desc: !desc) {
  kvcache.tma_prefetch %desc : !desc
  return
}

// CHECK-LABEL: func.func @expect(
// CHECK-SAME:    %[[BARRIER:.*]]: !nvgpu.mbarrier.group<{{.*}}>, %[[I:.*]]: index, %[[BYTES:.*]]: index)
// CHECK:         kvcache.tma_expect %[[BARRIER]][%[[I]]] bytes %[[BYTES]] : <memorySpace = #gpu.address_space<workgroup>, num_barriers = 2>
func.func @expect(%barrier: !barrier, %i: index, %bytes: index) {
  kvcache.tma_expect %barrier[%i] bytes %bytes : !barrier
  return
}

// CHECK-LABEL: func.func @load(
// CHECK-SAME:    %[[DESC:[^:]*]]: !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>, %[[PAGED:[^:]*]]: !kvcache.tma_tile<64x1x64x1xbf16, swizzle_128b>, %[[MATRIX:[^:]*]]: !kvcache.tma_tile<128x64xbf16>,
// CHECK-SAME:    %[[BARRIER:[^:]*]]: !nvgpu.mbarrier.group<{{.*}}>, %[[KT:[^:]*]]: !kvcache.tile<64x128xbf16, swizzle_128b>, %[[PLAIN:[^:]*]]: !kvcache.tile<64x128xbf16>, %[[I:[^:]*]]: index, %[[D:[^:]*]]: index, %[[H:[^:]*]]: index, %[[ROW:[^:]*]]: index, %[[PAGE:[^:]*]]: index)
// CHECK:         kvcache.tma_load %[[DESC]][%[[D]], %[[H]], %[[ROW]]], %[[BARRIER]][%[[I]]] to %[[KT]] : !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>, <memorySpace = {{.*}}> -> !kvcache.tile<64x128xbf16, swizzle_128b>
// CHECK:         kvcache.tma_load %[[PAGED]][%[[D]], %[[H]], %[[ROW]], %[[PAGE]]], %[[BARRIER]][%[[I]]] to %[[KT]] :
// CHECK:         kvcache.tma_load %[[MATRIX]][%[[D]], %[[ROW]]], %[[BARRIER]][%[[I]]] to %[[PLAIN]] : {{.*}} -> !kvcache.tile<64x128xbf16>
func.func @load(%desc: !desc, %paged: !paged, %matrix: !matrix, %barrier: !barrier, %kt: !kt, %plain: !plain,
                %i: index, %d: index, %h: index, %row: index, %page: index) {
  kvcache.tma_load %desc[%d, %h, %row], %barrier[%i] to %kt : !desc, !barrier -> !kt
  kvcache.tma_load %paged[%d, %h, %row, %page], %barrier[%i] to %kt : !paged, !barrier -> !kt
  kvcache.tma_load %matrix[%d, %row], %barrier[%i] to %plain : !matrix, !barrier -> !plain
  return
}

// CHECK-LABEL: func.func @load_at_a_row(
// CHECK:         kvcache.tma_load %{{.*}}[%[[D:.*]], %[[H:.*]], %[[ROW:.*]]], %{{.*}}[%{{.*}}] to %[[KT:.*]] at %[[AT:.*]] : !kvcache.tma_tile<64x1x16xbf16, swizzle_128b>,
// CHECK:         kvcache.tma_load %{{.*}}[%[[D]], %[[H]], %[[ROW]]], %{{.*}}[%{{.*}}] to %[[KT]] at %[[AT]] {l2_hint = #kvcache.eviction<evict_last>} :
func.func @load_at_a_row(%desc: !part, %barrier: !barrier, %kt: !kt, %i: index, %d: index, %h: index, %row: index, %at: index) {
  kvcache.tma_load %desc[%d, %h, %row], %barrier[%i] to %kt at %at : !part, !barrier -> !kt
  kvcache.tma_load %desc[%d, %h, %row], %barrier[%i] to %kt at %at {l2_hint = #kvcache.eviction<evict_last>} : !part, !barrier -> !kt
  return
}

// CHECK-LABEL: func.func @multicast(
// CHECK:         kvcache.tma_load {{.*}} {multicast} :
// CHECK:         kvcache.tma_load {{.*}} at %{{.*}} {l2_hint = #kvcache.eviction<evict_last>, multicast} :
func.func @multicast(%desc: !desc, %part: !part, %barrier: !barrier, %kt: !kt, %i: index) {
  kvcache.tma_load %desc[%i, %i, %i], %barrier[%i] to %kt {multicast} : !desc, !barrier -> !kt
  kvcache.tma_load %part[%i, %i, %i], %barrier[%i] to %kt at %i {l2_hint = #kvcache.eviction<evict_last>, multicast} : !part, !barrier -> !kt
  return
}

// CHECK-LABEL: func.func @hints(
// CHECK:         kvcache.tma_load {{.*}} {l2_hint = #kvcache.eviction<evict_normal>} :
// CHECK:         kvcache.tma_load_rows {{.*}} {l2_hint = #kvcache.eviction<evict_first>} :
// CHECK:         kvcache.tma_gather4 {{.*}} {l2_hint = #kvcache.eviction<evict_last>} :
// CHECK:         kvcache.tma_gather_tile {{.*}} {l2_hint = #kvcache.eviction<evict_first>} :
// CHECK:         kvcache.tma_store {{.*}} {l2_hint = #kvcache.eviction<evict_normal>} :
func.func @hints(%desc: !desc, %row: !row, %rows: !rows, %ids: memref<64xi32>, %barrier: !barrier, %kt: !kt, %i: index) {
  kvcache.tma_load %desc[%i, %i, %i], %barrier[%i] to %kt {l2_hint = #kvcache.eviction<evict_normal>} : !desc, !barrier -> !kt
  kvcache.tma_load_rows %desc[%i, %i] rows %rows, %barrier[%i] to %kt {l2_hint = #kvcache.eviction<evict_first>}
    : !desc, !rows, !barrier -> !kt
  kvcache.tma_gather4 %row[%i, %i, %i, %i, %i], %barrier[%i] to %kt at %i {l2_hint = #kvcache.eviction<evict_last>}
    : !row, !barrier -> !kt
  kvcache.tma_gather_tile %row rows %ids, %barrier[%i] to %kt {l2_hint = #kvcache.eviction<evict_first>}
    : !row, memref<64xi32>, !barrier -> !kt
  %tok = kvcache.tma_store %kt to %desc[%i, %i, %i] {l2_hint = #kvcache.eviction<evict_normal>} : !kt, !desc
  return
}

// CHECK-LABEL: func.func @load_rows(
// CHECK-SAME:    %[[DESC:[^:]*]]: !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>, %[[RAGGED:[^:]*]]: !kvcache.tma_tile<64x64x1x1xbf16, swizzle_128b>,
// CHECK-SAME:    %[[ROWS:[^:]*]]: !kvcache.row_indices<rows = 64, page_size = 64>, %[[TWO:[^:]*]]: !kvcache.row_indices<rows = 128, page_size = 64>,
// CHECK-SAME:    %[[BARRIER:[^:]*]]: !nvgpu.mbarrier.group<{{.*}}>, %[[KT:[^:]*]]: !kvcache.tile<64x128xbf16, swizzle_128b>, %[[I:[^:]*]]: index, %[[D:[^:]*]]: index, %[[H:[^:]*]]: index, %[[N:[^:]*]]: index, %[[LEADS:[^:]*]]: i1)
// CHECK:         kvcache.tma_load_rows %[[DESC]][%[[D]], %[[H]]] rows %[[ROWS]], %[[BARRIER]][%[[I]]] to %[[KT]] : !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>, !kvcache.row_indices<rows = 64, page_size = 64>, <memorySpace = {{.*}}> -> !kvcache.tile<64x128xbf16, swizzle_128b>
// CHECK:         kvcache.tma_load_rows %[[RAGGED]][%[[D]], %[[H]]] rows %[[ROWS]] valid %[[N]], %[[BARRIER]][%[[I]]] to %[[KT]] :
// CHECK:         kvcache.tma_load_rows %[[DESC]][%[[D]], %[[H]]] rows %[[TWO]], %[[BARRIER]][%[[I]]] to %[[KT]] pair_cta leader %[[LEADS]] :
// CHECK:         kvcache.tma_load_rows %[[RAGGED]][%[[D]], %[[H]]] rows %[[TWO]] valid %[[N]], %[[BARRIER]][%[[I]]] to %[[KT]] pair_cta leader %[[LEADS]] {l2_hint = #kvcache.eviction<evict_first>} :
func.func @load_rows(%desc: !desc, %ragged: !ragged, %rows: !rows, %two: !two_pages, %barrier: !barrier, %kt: !kt,
                     %i: index, %d: index, %h: index, %n: index, %leads: i1) {
  kvcache.tma_load_rows %desc[%d, %h] rows %rows, %barrier[%i] to %kt : !desc, !rows, !barrier -> !kt
  kvcache.tma_load_rows %ragged[%d, %h] rows %rows valid %n, %barrier[%i] to %kt : !ragged, !rows, !barrier -> !kt
  kvcache.tma_load_rows %desc[%d, %h] rows %two, %barrier[%i] to %kt pair_cta leader %leads
    : !desc, !two_pages, !barrier -> !kt
  kvcache.tma_load_rows %ragged[%d, %h] rows %two valid %n, %barrier[%i] to %kt pair_cta leader %leads
    {l2_hint = #kvcache.eviction<evict_first>} : !ragged, !two_pages, !barrier -> !kt
  return
}

// The matrix of a continuous cache has no coordinate for the head.
// CHECK-LABEL: func.func @load_rows_of_a_continuous_cache(
// CHECK:         kvcache.tma_load_rows %{{.*}}[%{{[^,]*}}] rows %{{.*}} : !kvcache.tma_tile<128x64xbf16>, !kvcache.row_indices<rows = 64>,
func.func @load_rows_of_a_continuous_cache(%desc: !matrix, %rows: !kvcache.row_indices<rows = 64>, %barrier: !barrier,
                                           %tile: !plain, %i: index) {
  kvcache.tma_load_rows %desc[%i] rows %rows, %barrier[%i] to %tile
    : !matrix, !kvcache.row_indices<rows = 64>, !barrier -> !plain
  return
}

// CHECK-LABEL: func.func @gather(
// CHECK-SAME:    %[[DESC:[^:]*]]: !kvcache.tma_tile<72x1xi64>, %[[BARRIER:[^:]*]]: !nvgpu.mbarrier.group<{{.*}}>, %[[TILE:[^:]*]]: !kvcache.tile<64x576xf8E4M3FN>, %[[IDS:[^:]*]]: memref<64xi32>, %[[WIDE:[^:]*]]: memref<64xi64>,
// CHECK-SAME:    %[[I:[^:]*]]: index, %[[C:[^:]*]]: index, %[[R0:[^:]*]]: index, %[[R1:[^:]*]]: index, %[[R2:[^:]*]]: index, %[[R3:[^:]*]]: index, %[[AT:[^:]*]]: index)
// CHECK:         kvcache.tma_gather4 %[[DESC]][%[[C]], %[[R0]], %[[R1]], %[[R2]], %[[R3]]], %[[BARRIER]][%[[I]]] to %[[TILE]] at %[[AT]] : !kvcache.tma_tile<72x1xi64>, <memorySpace = {{.*}}> -> !kvcache.tile<64x576xf8E4M3FN>
// CHECK:         kvcache.tma_gather_tile %[[DESC]] rows %[[IDS]], %[[BARRIER]][%[[I]]] to %[[TILE]] : !kvcache.tma_tile<72x1xi64>, memref<64xi32>, <memorySpace = {{.*}}> -> !kvcache.tile<64x576xf8E4M3FN>
// CHECK:         kvcache.tma_gather_tile %[[DESC]][%[[C]]] rows %[[WIDE]], %[[BARRIER]][%[[I]]] to %[[TILE]] : !kvcache.tma_tile<72x1xi64>, memref<64xi64>,
func.func @gather(%desc: !words, %barrier: !barrier, %tile: !latent, %ids: memref<64xi32>, %wide: memref<64xi64>,
                  %i: index, %c: index, %r0: index, %r1: index, %r2: index, %r3: index, %at: index) {
  kvcache.tma_gather4 %desc[%c, %r0, %r1, %r2, %r3], %barrier[%i] to %tile at %at : !words, !barrier -> !latent
  kvcache.tma_gather_tile %desc rows %ids, %barrier[%i] to %tile : !words, memref<64xi32>, !barrier -> !latent
  kvcache.tma_gather_tile %desc[%c] rows %wide, %barrier[%i] to %tile : !words, memref<64xi64>, !barrier -> !latent
  return
}

// CHECK-LABEL: func.func @store(
// CHECK-SAME:    %[[DESC:[^:]*]]: !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>, %[[KT:[^:]*]]: !kvcache.tile<64x128xbf16, swizzle_128b>, %[[D:[^:]*]]: index, %[[H:[^:]*]]: index, %[[ROW:[^:]*]]: index)
// CHECK:         %[[TOKEN:.*]] = kvcache.tma_store %[[KT]] to %[[DESC]][%[[D]], %[[H]], %[[ROW]]] : !kvcache.tile<64x128xbf16, swizzle_128b>, !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
// CHECK:         kvcache.wait %[[TOKEN]]
// CHECK:         kvcache.tma_store %[[KT]] to %[[DESC]][%[[D]], %[[H]], %[[ROW]]] :
func.func @store(%desc: !desc, %kt: !kt, %d: index, %h: index, %row: index) {
  %tok = kvcache.tma_store %kt to %desc[%d, %h, %row] : !kt, !desc
  kvcache.wait %tok
  kvcache.tma_store %kt to %desc[%d, %h, %row] : !kt, !desc
  return
}
