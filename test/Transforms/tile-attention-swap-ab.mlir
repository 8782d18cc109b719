// RUN: kvcache-opt %s --kvcache-plan-attention=chip=sm_90a --kvcache-split-attention --kvcache-tile-attention=chip=sm_90a --cse | FileCheck %s

#kv = #kvcache.params<num_heads = 8, head_size = 128>
#latent = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!mla = !kvcache.paged<bf16, #latent, page_size = 64>

// A warpgroup computes the scores of all rows. Its warps exchange maxima and weights. A row is key and value, and its slot is
// free after both products. Where a tile is used, and after the loop, the thread's number is opaque.
// CHECK-LABEL: func.func @latent(
// CHECK:         scf.parallel (%{{.*}}) = (%c0) to (%c128)
// CHECK:           %[[Q:.*]] = kvcache.alloc_tile : !kvcache.tile<32x576xbf16, swizzle_128b>
// CHECK:           %[[P:.*]] = kvcache.alloc_tile : !kvcache.tile<64x32xbf16, swizzle_64b>
// CHECK:           %[[SCRATCH:.*]] = kvcache.alloc_tile : !kvcache.tile<4x32xf32>
// CHECK:           nvvm.fence.proxy
// CHECK-NEXT:      gpu.barrier
// CHECK:           scf.for %[[TILE:.*]] = %c0 to %{{.*}} step %c1 iter_args(%[[M:.*]] = %{{.*}}, %[[L:.*]] = %{{.*}}, %[[O:.*]] = %{{.*}}) ->
// CHECK:             kvcache.consume %[[RING:.*]][%[[TILE]]]
// CHECK-NEXT:        ^bb0(%[[ROWS:.*]]: !kvcache.tile
// CHECK:               %[[QK:.*]] = kvcache.fragment_mma %[[Q]][%c0, %c0], %[[ROWS]][%c0, %c0] {k = 576 : i64} : {{.*}} -> !kvcache.in_flight<32x64xf32, wgmma_acc_t>
// CHECK:               kvcache.produce %[[RING]]
// CHECK:               kvcache.fragment_wait %[[QK]]
// CHECK-NEXT:          %[[T:.*]] = kvcache.opaque_thread
// CHECK:               kvcache.reduce maxnumf %{{.*}} from %[[M]] across %[[SCRATCH]] thread %[[T]]
// CHECK:               kvcache.fragment_store %{{.*}}, %[[P]][%c0, %c0] transposed thread %[[T]]
// CHECK-NEXT:          nvvm.fence.proxy
// CHECK-NEXT:          gpu.barrier
// CHECK:               %[[PV:.*]] = kvcache.fragment_mma %[[P]][%c0, %c0], %[[ROWS]][%c0, %c0] add %{{.*}} {k = 64 : i64, major_a = #kvcache.major<mn_major>, major_b = #kvcache.major<mn_major>} : {{.*}} -> !kvcache.in_flight<32x512xf32, wgmma_acc_t>
// CHECK:               kvcache.fragment_wait %[[PV]]
// CHECK:           } {kvcache.schedule = #kvcache.schedule<prefetch>}
// CHECK:           kvcache.reduce addf %{{.*}} across %[[SCRATCH]]
// CHECK-NEXT:      %[[LAST:.*]] = kvcache.opaque_thread
// CHECK:           kvcache.store_rows %{{.*}} thread %[[LAST]] {alignment = 2 : i64}
func.func @latent(%q: memref<?x16x576xbf16>, %k: !mla, %n: memref<?xi32>, %s: f32, %out: memref<?x16x512xbf16>) {
  kvcache.attention %q, %k, %n, %s outs(%out) {causal}
      : memref<?x16x576xbf16>, !mla, memref<?xi32>, f32, memref<?x16x512xbf16>
  return
}

// Values have tiles of their own. Blocks of a persistent kernel store splits.
// CHECK-LABEL: func.func @splits(
// CHECK:         scf.while
// CHECK:         } do {
// CHECK:           %[[T:.*]] = kvcache.opaque_thread
// CHECK-NOT:       kvcache.opaque_thread
// CHECK:           scf.for %{{.*}} iter_args
// CHECK:             kvcache.consume %[[KEYS:.*]][%{{.*}}] : {{.*}} -> !kvcache.fragment<16x64xf32, wgmma_acc_t>
// CHECK:             kvcache.fragment_store %{{.*}} transposed thread %[[T]]
// CHECK:             kvcache.consume %{{.*}} -> !kvcache.fragment<16x128xf32, wgmma_acc_t>
// CHECK:           scf.if
// CHECK:             kvcache.store_rows %{{.*}} thread %[[T]]
// CHECK:             kvcache.store_split %{{.*}} thread %[[T]] {alignment = 4 : i64}
func.func @splits(%w: memref<?xi8>, %q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  kvcache.attention %q, %k, %v, %n, %s outs(%out) workspace %w {causal, config = #kvcache.attention_config<swap_ab = true, rows = 16>}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?xi8>
  return
}

!narrow = !kvcache.paged<f8E4M3FN, #latent, page_size = 64>
!ids = memref<?x?xi32>

// Copies bring raw rows, which threads convert. The next copies start while scores are computed.
// CHECK-LABEL: func.func @converted(
// CHECK:         %[[TILE:.*]] = kvcache.alloc_tile : !kvcache.tile<64x576xbf16, swizzle_128b>
// CHECK:         scf.for %{{.*}} iter_args
// CHECK:           gpu.barrier
// CHECK:           kvcache.tile_store %{{.*}}, %[[TILE]]
// CHECK:           nvvm.fence.proxy
// CHECK-NEXT:      gpu.barrier
// CHECK:           kvcache.fragment_mma %{{.*}}, %[[TILE]]
// CHECK:           kvcache.produce
// CHECK:           kvcache.fragment_wait
// CHECK:           kvcache.fragment_mma %{{.*}}, %[[TILE]]
func.func @converted(%q: memref<?x16x576xbf16>, %k: !narrow, %n: memref<?xi32>, %s: f32, %out: memref<?x16x512xbf16>) {
  kvcache.attention %q, %k, %n, %s outs(%out) {causal}
      : memref<?x16x576xbf16>, !narrow, memref<?xi32>, f32, memref<?x16x512xbf16>
  return
}

// The ids of sparse rows are in a tile, from which copies and masks load them.
// CHECK-LABEL: func.func @sparse(
// CHECK:         %[[IDS:.*]] = kvcache.alloc_tile : !kvcache.tile<3x64xi32>
// CHECK:         scf.for %{{.*}} iter_args
// CHECK:           gpu.barrier
// CHECK:           kvcache.fragment_mma
// CHECK:           kvcache.async_gather_tile
// CHECK:           kvcache.fragment_wait
// CHECK:           kvcache.tile_load %[[IDS]]
// CHECK:           kvcache.fragment_store
func.func @sparse(%q: memref<?x16x576xbf16>, %k: !mla, %n: memref<?xi32>, %s: f32, %out: memref<?x16x512xbf16>, %ids: !ids) {
  kvcache.attention %q, %k, %n, %s outs(%out) rows %ids
      : memref<?x16x576xbf16>, !mla, memref<?xi32>, f32, memref<?x16x512xbf16>, !ids
  return
}
