// RUN: kvcache-opt %s --kvcache-tile-attention=chip=sm_100a --cse | FileCheck %s

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

// One warp copies, one multiplies, and a warpgroup for each query tile computes its softmax. Tensor memory has the scores
// of both query tiles, and their accumulators.
// CHECK-LABEL: func.func @prompt(
// CHECK:         scf.parallel (%[[THREAD:.*]]) = (%c0) to (%c384)
// CHECK:         %[[QT:.*]] = kvcache.alloc_tile : !kvcache.tile<256x128xbf16, swizzle_128b>
// CHECK:         %[[KEYS:.*]] = kvcache.pipe : !kvcache.pipe<2, !kvcache.tile<128x128xbf16, swizzle_128b>, producers = 1>
// CHECK:         %[[VALUES:.*]] = kvcache.pipe : !kvcache.pipe<2, !kvcache.tile<128x128xbf16, swizzle_128b>, producers = 1>
// CHECK:         %[[TMEM:.*]]:2 = kvcache.tmem_alloc : !kvcache.tmem_tile<128x256xf32>, !kvcache.tmem_tile<128x256xf32>
// CHECK:         %[[BARRIERS:.*]] = nvgpu.mbarrier.create
// CHECK:         nvgpu.mbarrier.init %[[BARRIERS]][%c0], %c1
// CHECK:         nvgpu.mbarrier.init %[[BARRIERS]][%c1], %c1
// CHECK:         nvgpu.mbarrier.init %[[BARRIERS]][%c2], %c4
// CHECK:         nvgpu.mbarrier.init %[[BARRIERS]][%c3], %c4
// CHECK:         gpu.barrier
// CHECK:         kvcache.warp_roles warps [1, 1, 2, 8] registers [56, 56, 56, 224] {
// CHECK:           scf.for
// CHECK:             kvcache.produce %[[KEYS]]
// CHECK:             kvcache.produce %[[VALUES]]
// CHECK:         }, {
//
// The first scores of both, then probs and the next scores of each in turn. Products free what they read.
// CHECK:           kvcache.consume %[[KEYS]][%c0] commit
// CHECK:             kvcache.tmem_mma %[[QT]][%c0, %c0]
// CHECK-NEXT:        kvcache.tmem_commit %[[BARRIERS]][%c0]
// CHECK:             kvcache.tmem_mma %[[QT]][%c128, %c0]
// CHECK-NEXT:        kvcache.tmem_commit %[[BARRIERS]][%c1]
// CHECK:           scf.for %[[TILE:.*]] = %c1 to %[[TILES:.*]] step %c1 {
// CHECK:             kvcache.consume %[[VALUES]][%[[BEFORE:.*]]] commit
// CHECK-NEXT:        ^bb0(%[[VT:.*]]: !kvcache.tile
// CHECK-NEXT:          kvcache.consume %[[KEYS]][%[[TILE]]] commit
// CHECK-NEXT:          ^bb0(%[[KT:.*]]: !kvcache.tile
// CHECK:                 %[[P0:.*]] = kvcache.tmem_view %[[TMEM]]#0[%c0] : {{.*}} -> !kvcache.tmem_tile<128x128xbf16>
// CHECK:                 %[[O0:.*]] = kvcache.tmem_view %[[TMEM]]#1[%c0]
// CHECK:                 nvgpu.mbarrier.try_wait.parity %[[BARRIERS]][%c2]
// CHECK:                 %[[ELECTED:.*]] = nvvm.elect.sync
// CHECK-NEXT:            scf.if %[[ELECTED]] {
// CHECK-NEXT:              kvcache.tmem_mma %[[P0]], %[[VT]][%c0, %c0] into %[[O0]] add %{{.*}} {major_b = #kvcache.major<mn_major>}
// CHECK-NEXT:            }
// CHECK:                 kvcache.tmem_mma %[[QT]][%c0, %c0], %[[KT]]
// CHECK:                 nvgpu.mbarrier.try_wait.parity %[[BARRIERS]][%c3]
// CHECK:                 kvcache.tmem_mma %[[QT]][%c128, %c0], %[[KT]]
// CHECK:           kvcache.consume %[[VALUES]][%{{.*}}] commit
// CHECK:             kvcache.tmem_commit %[[BARRIERS]][%c4]
// CHECK:             kvcache.tmem_commit %[[BARRIERS]][%c5]
// CHECK:         }, {
// CHECK-NEXT:    }, {
//
// A thread has a row. A fifth of the powers are polynomials. Probs replace scores.
// CHECK:           %[[NUMBER:.*]] = arith.index_castui %{{.*}} : i32 to index
// CHECK:           scf.for %[[J:.*]] = %c0 to %[[TILES]] step %c1 iter_args(
// CHECK:             nvgpu.mbarrier.try_wait.parity %[[BARRIERS]][%[[NUMBER]]]
// CHECK:             %[[S:.*]] = kvcache.tmem_view %[[TMEM]]#0[%[[COLUMN:.*]]]
// CHECK:             kvcache.tmem_load %[[S]][%c0] : {{.*}} -> !kvcache.fragment<128x128xf32, tmem_row>
// CHECK:             kvcache.map {{.*}} at(%c0, %c0)
// CHECK:               arith.remui %{{.*}}, %c10
// CHECK:               arith.maximumf
// CHECK:               math.exp2
// CHECK:             %[[P:.*]] = kvcache.tmem_view %[[TMEM]]#0[%[[COLUMN]]] : {{.*}} -> !kvcache.tmem_tile<128x128xbf16>
// CHECK:             kvcache.tmem_store %{{.*}}, %[[P]][%c0]
// CHECK:             kvcache.warp_any
// CHECK:             scf.if
// CHECK:               kvcache.tmem_view %[[TMEM]]#1[%[[COLUMN]]]
// CHECK:             nvgpu.mbarrier.arrive %[[BARRIERS]]
// CHECK:           } {kvcache.schedule = #kvcache.schedule<roles>}
// CHECK:           kvcache.store_rows
func.func @prompt(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  kvcache.attention %q, %k, %v, %n, %s outs(%out) {causal, config = #kvcache.attention_config<schedule = roles>}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}
