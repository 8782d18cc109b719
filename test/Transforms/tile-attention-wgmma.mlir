// RUN: kvcache-opt %s --kvcache-tile-attention=chip=sm_90a --cse | FileCheck %s

#latent = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
!mla = !kvcache.paged<bf16, #latent, page_size = 64>

// Two warpgroups compute the scores of the same rows, and half of the values each. A row is key and value, and its slot is
// free after both products.
// CHECK-LABEL: func.func @latent(
// CHECK:         scf.parallel (%[[THREAD:.*]]) = (%c0) to (%c256)
// CHECK:           %[[GROUP:.*]] = arith.divui %[[THREAD]], %c128
// CHECK:           %[[OF_ROWS:.*]] = arith.divui %[[GROUP]], %c2
// CHECK:           %[[R0:.*]] = arith.muli %[[OF_ROWS]], %c64
// CHECK:           nvvm.fence.proxy
// CHECK-NEXT:      gpu.barrier
// CHECK:           scf.for %[[TILE:.*]] = %c0 to %{{.*}} step %c1 iter_args(%[[M:.*]] = %{{.*}}, %[[L:.*]] = %{{.*}}, %[[O:.*]] = %{{.*}}) ->
// CHECK:             kvcache.consume %[[RING:.*]][%[[TILE]]]
// CHECK-NEXT:        ^bb0(%[[ROWS:.*]]: !kvcache.tile
// CHECK:               %[[QK:.*]] = kvcache.fragment_mma %{{.*}}[%[[R0]], %c0], %[[ROWS]][%c0, %c0] {k = 576 : i64} : {{.*}} -> !kvcache.in_flight<64x64xf32, wgmma_acc>
// CHECK:               kvcache.produce %[[RING]]
// CHECK:               kvcache.fragment_wait %[[QK]]
// CHECK:               kvcache.reduce maxnumf %{{.*}} from %[[M]]
// CHECK:               %[[P:.*]] = kvcache.to_operand %{{.*}} -> !kvcache.fragment<64x64xbf16, wgmma_a16>
// CHECK:               %[[HALF:.*]] = arith.remui %[[GROUP]], %c2
// CHECK:               %[[D0:.*]] = arith.muli %[[HALF]], %c256
// CHECK:               %[[PV:.*]] = kvcache.fragment_mma %[[P]], %[[ROWS]][%c0, %[[D0]]] add %{{.*}} {major_b = #kvcache.major<mn_major>} : {{.*}} -> !kvcache.in_flight<64x256xf32, wgmma_acc>
// CHECK:               kvcache.fragment_wait %[[PV]]
// CHECK:           } {kvcache.schedule = #kvcache.schedule<prefetch>}
// CHECK:           kvcache.store_rows %{{.*}} at(%[[R0]], %{{.*}})
func.func @latent(%q: memref<?x128x576xbf16>, %k: !mla, %n: memref<?xi32>, %s: f32, %out: memref<?x128x512xbf16>) {
  kvcache.attention %q, %k, %n, %s outs(%out) {causal}
      : memref<?x128x576xbf16>, !mla, memref<?xi32>, f32, memref<?x128x512xbf16>
  return
}
