// RUN: kvcache-opt %s --kvcache-tile-attention=chip=sm_90a --cse | FileCheck %s

#latent = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
!mla = !kvcache.paged<bf16, #latent, page_size = 64>

// A warpgroup has every second tile. Its scores take the half that it multiplies later, the rope, and the other half, each
// of which has its own barriers.
// CHECK-LABEL: func.func @latent(
// CHECK:         %[[HALVES:.*]] = kvcache.pipe : !kvcache.pipe<4, !kvcache.tile<64x256xbf16, swizzle_128b>>
// CHECK:         %[[ROPES:.*]] = kvcache.pipe : !kvcache.pipe<2, !kvcache.tile<64x64xbf16, swizzle_128b>>
// CHECK:         arith.divui %{{.*}}, %c128
// CHECK:         %[[LANES:.*]] = nvvm.redux.sync umax
// CHECK-NEXT:    %[[GROUP:.*]] = arith.index_castui %[[LANES]]
// CHECK:         %[[FIRST:.*]] = arith.subi %c2, %[[GROUP]]
// CHECK:         scf.for %{{.*}} = %[[FIRST]] to %[[COUNT:.*]] step %c2 iter_args(
// CHECK:           %[[NUMBER:.*]] = nvvm.redux.sync umax
// CHECK-NEXT:      %[[TILE:.*]] = arith.index_castui %[[NUMBER]]
// CHECK:           %[[BEFORE:.*]] = arith.subi %[[TILE]], %c1
// CHECK:           kvcache.consume %[[HALVES]][
// CHECK:           kvcache.consume %[[HALVES]][
// CHECK-NEXT:      ^bb0(%[[OWN:.*]]: !kvcache.tile
// CHECK:             %[[QK1:.*]] = kvcache.fragment_mma {{.*}}, %[[OWN]][%c0, %c0] {k = 256 : i64}
// CHECK:             kvcache.consume %[[ROPES]][%[[TILE]]]
// CHECK-NEXT:        ^bb0(%[[ROPE:.*]]: !kvcache.tile
// CHECK:               %[[QK2:.*]] = kvcache.fragment_mma {{.*}}, %[[ROPE]][%c0, %c0] add %[[QK1]] {k = 64 : i64}
// CHECK:               kvcache.consume %[[HALVES]][
// CHECK:                 %[[QK3:.*]] = kvcache.fragment_mma {{.*}} add %[[QK2]] {k = 256 : i64}
// CHECK:                 kvcache.fragment_wait %[[QK3]]
//
// In its turn, it multiplies the probs of the tile before, and computes its own meanwhile: they replace the rope.
// CHECK:               nvvm.barrier id = %{{.*}} number_of_threads = %c256_i32
// CHECK:               kvcache.consume %[[ROPES]][%[[BEFORE]]]
// CHECK-NEXT:          ^bb0(%[[PROBS:.*]]: !kvcache.tile
// CHECK:                 kvcache.consume %[[HALVES]][
// CHECK-NEXT:            ^bb0(%[[VALUES:.*]]: !kvcache.tile
// CHECK:                   %[[PV:.*]] = kvcache.fragment_mma %[[PROBS]][%c0, %c0], %[[VALUES]][%c0, %c0] add
// CHECK-NEXT:              kvcache.schedule_fence
// CHECK:                   kvcache.reduce maxnumf
// CHECK:                   %[[P:.*]] = kvcache.to_operand
// CHECK:                   kvcache.fragment_store %[[P]], %[[ROPE]]
// CHECK:                   kvcache.store_rows
// CHECK:                   nvvm.fence.proxy
// CHECK:                   %[[TURN:.*]] = arith.addi %{{.*}}, %c1_i32
// CHECK-NEXT:              nvvm.barrier.arrive id = %[[TURN]] number_of_threads = %c256_i32
// CHECK-NEXT:              kvcache.fragment_wait %[[PV]]
// CHECK:             kvcache.fragment_mma {{.*}}, %[[OWN]][%c0, %c0] add
func.func @latent(%q: memref<?x128x576xbf16>, %k: !mla, %n: memref<?xi32>, %s: f32, %out: memref<?x128x512xbf16>) {
  kvcache.attention %q, %k, %n, %s outs(%out) {causal}
      : memref<?x128x576xbf16>, !mla, memref<?xi32>, f32, memref<?x128x512xbf16>
  return
}
