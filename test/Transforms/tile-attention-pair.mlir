// RUN: kvcache-opt %s --kvcache-tile-attention=chip=sm_100a --cse | FileCheck %s

#latent = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
!mla = !kvcache.paged<bf16, #latent, page_size = 64>

// A block copies the keys of half of the tokens, and half of the elements of all values. The pair synchronizes before
// each product, which a thread of block 0 starts. The probs of the second half of the tokens follow the first ones.
// CHECK-LABEL: func.func @latent(
// CHECK:         scf.parallel (%{{.*}}, %[[X:.*]]) = (%c0, %c0) to (%c2, %{{.*}})
// CHECK:         scf.parallel (%[[THREAD:.*]]) = (%c0) to (%c128)
// CHECK:         %[[QT:.*]] = kvcache.alloc_tile : !kvcache.tile<64x576xbf16, swizzle_128b>
// CHECK:         %[[PIPE:.*]] = kvcache.pipe : !kvcache.pipe<2, !kvcache.tile<32x576xbf16, swizzle_128b>, !kvcache.tile<64x256xbf16, swizzle_128b>>
// CHECK:         %[[PROBS:.*]] = kvcache.alloc_tile : !kvcache.tile<128x32xbf16, swizzle_64b>
// CHECK:         %[[NUMBERS:.*]] = kvcache.alloc_tile : !kvcache.tile<1x128xf32>
// CHECK:         %[[RANK:.*]] = arith.remui %{{.*}}, %c2
// CHECK:         %[[HALF:.*]] = arith.divui %[[THREAD]], %c64
// CHECK:         kvcache.produce %[[PIPE]][%c0]
// CHECK-NEXT:    ^bb0(%[[K0:.*]]: !kvcache.tile<32x576xbf16, swizzle_128b>, %[[V0:.*]]: !kvcache.tile<64x256xbf16, swizzle_128b>):
// CHECK:           %[[KEY:.*]] = arith.muli %[[RANK]], %c32
// CHECK:           kvcache.async_load_tile {{.*}} to %[[K0]] {base_alignment = 32 : i64
// CHECK:           %[[VALUE:.*]] = arith.muli %[[RANK]], %c256
// CHECK:           kvcache.async_load_tile {{.*}}, %[[VALUE]]] valid %{{.*}} to %[[V0]] {base_alignment = 64 : i64
// CHECK:         %[[BARRIER:.*]] = nvgpu.mbarrier.create
// CHECK:         %[[IS_ISSUER:.*]] = arith.andi
// CHECK:         nvgpu.mbarrier.init %[[BARRIER]]
// CHECK-NEXT:    nvvm.fence.mbarrier.init
// CHECK:         %[[TMEM:.*]]:2 = kvcache.tmem_alloc {pair} : !kvcache.tmem_tile<128x32xf32>, !kvcache.tmem_tile<128x256xf32>
// CHECK:         scf.for %[[TILE:.*]] = %c0 to %{{.*}} step %c1
// CHECK:           kvcache.consume %[[PIPE]][%[[TILE]]]
// CHECK-NEXT:      ^bb0(%[[KT:.*]]: !kvcache.tile<32x576xbf16, swizzle_128b>, %[[VT:.*]]: !kvcache.tile<64x256xbf16, swizzle_128b>):
// CHECK-NEXT:        kvcache.cluster_barrier {blocks = 2 : i64}
// CHECK-NEXT:        scf.if %[[IS_ISSUER]] {
// CHECK-NEXT:          kvcache.tmem_mma %[[QT]][%c0, %c0], %[[KT]][%c0, %c0] into %[[TMEM]]#0 {pair}
// CHECK-NEXT:          kvcache.tmem_commit %[[BARRIER]][%c0] {pair}
// CHECK:             nvgpu.mbarrier.try_wait.parity %[[BARRIER]][%c0], %false
// CHECK-NEXT:        kvcache.tmem_load %[[TMEM]]#0[%c0] : {{.*}} -> !kvcache.fragment<128x32xf32, tmem_row>
//
// The largest score of a row is that of both threads.
// CHECK:             %[[OWN:.*]] = kvcache.reduce maxnumf
// CHECK:             kvcache.store_rows %[[OWN]]
// CHECK:             gpu.barrier
// CHECK:             %[[LARGEST:.*]] = kvcache.map %[[OWN]]
// CHECK:               kvcache.tile_load %[[NUMBERS]]
// CHECK:             kvcache.fragment_store %{{.*}}, %[[PROBS]][%c0, %c0]
// CHECK-NEXT:        nvvm.fence.proxy
// CHECK:             scf.if
// CHECK:               kvcache.tmem_store %{{.*}}, %[[TMEM]]#1
// CHECK:             kvcache.cluster_barrier {blocks = 2 : i64}
// CHECK:             scf.if %[[IS_ISSUER]] {
// CHECK-NEXT:          kvcache.tmem_mma %[[PROBS]][%c0, %c0], %[[VT]][%c0, %c0] into %[[TMEM]]#1 add %{{.*}} {k = 32 : i64, major_b = #kvcache.major<mn_major>, pair}
// CHECK-NEXT:          kvcache.tmem_mma %[[PROBS]][%c64, %c0], %[[VT]][%c32, %c0] into %[[TMEM]]#1 add %true {k = 32 : i64, major_b = #kvcache.major<mn_major>, pair}
// CHECK-NEXT:          kvcache.tmem_commit %[[BARRIER]][%c0] {pair}
// CHECK:             nvgpu.mbarrier.try_wait.parity %[[BARRIER]][%c0], %true
// CHECK:           kvcache.produce %[[PIPE]]
// CHECK:         } {kvcache.schedule = #kvcache.schedule<pair>}
// CHECK:         kvcache.store_rows
func.func @latent(%q: memref<?x128x576xbf16>, %k: !mla, %n: memref<?xi32>, %s: f32, %out: memref<?x128x512xbf16>) {
  kvcache.attention %q, %k, %n, %s outs(%out) {causal, config = #kvcache.attention_config<schedule = pair>}
      : memref<?x128x576xbf16>, !mla, memref<?xi32>, f32, memref<?x128x512xbf16>
  return
}
