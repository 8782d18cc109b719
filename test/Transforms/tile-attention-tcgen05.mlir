// RUN: kvcache-opt %s --kvcache-plan-attention=chip=sm_100a --kvcache-split-attention --kvcache-tile-attention=chip=sm_100a --cse | FileCheck %s

#kv = #kvcache.params<num_heads = 8, head_size = 128>
#latent = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!raw = !kvcache.paged<f8E4M3FN, #latent, page_size = 64, scale = f32, granularity = 576>
!mla = !kvcache.paged<f16, #latent, page_size = 64>

// One thread starts products of 128 rows. The next tiles are copied while scores are computed, and all threads wait for
// even and odd phases in turn. The accumulator is scaled where the largest score of a row grows by more than 2^8.
// CHECK-LABEL: func.func @prompt(
// CHECK-SAME:    %[[Q:.*]]: memref<?x32x128xbf16>, %{{.*}}: memref<?x32x128xbf16>)
// CHECK:         scf.parallel (%[[THREAD:.*]]) = (%c0) to (%c256)
// CHECK:           %[[QT:.*]] = kvcache.alloc_tile : !kvcache.tile<128x128xbf16, swizzle_128b>
// CHECK:           %[[KEYS:.*]] = kvcache.pipe : !kvcache.pipe<2, !kvcache.tile<64x128xbf16, swizzle_128b>>
// CHECK:           %[[VALUES:.*]] = kvcache.pipe : !kvcache.pipe<2, !kvcache.tile<64x128xbf16, swizzle_128b>>
// CHECK:           %[[TMEM:.*]]:3 = kvcache.tmem_alloc : !kvcache.tmem_tile<128x64xf32>, !kvcache.tmem_tile<128x64xbf16>, !kvcache.tmem_tile<128x128xf32>
// CHECK:           %[[BARRIER:.*]] = nvgpu.mbarrier.create
// CHECK:           scf.if %[[IS_ISSUER:.*]] {
// CHECK:             nvgpu.mbarrier.init %[[BARRIER]]
// CHECK:           nvvm.fence.proxy
// CHECK-NEXT:      gpu.barrier
// CHECK:           scf.for %[[TILE:.*]] = %c0 to %[[TILES:.*]] step %c1 iter_args(%[[M:.*]] = %{{.*}}, %[[L:.*]] = %{{.*}}) -> (!kvcache.fragment<128xf32, tmem_acc>, !kvcache.fragment<128xf32, tmem_acc, partial>)
// CHECK:             %[[SCORES:.*]] = kvcache.consume %[[KEYS]][%[[TILE]]]
// CHECK-NEXT:        ^bb0(%[[KT:.*]]: !kvcache.tile
// CHECK:               scf.if %[[IS_ISSUER]] {
// CHECK-NEXT:            kvcache.tmem_mma %[[QT]][%c0, %c0], %[[KT]][%c0, %c0] into %[[TMEM]]#0 :
// CHECK-NEXT:            kvcache.tmem_commit %[[BARRIER]]
// CHECK:               kvcache.produce %[[KEYS]]
// CHECK:               kvcache.produce %[[VALUES]]
// CHECK:               nvgpu.mbarrier.try_wait.parity %[[BARRIER]][%c0], %false
// CHECK-NEXT:          kvcache.tmem_load %[[TMEM]]#0[%c0] : {{.*}} -> !kvcache.fragment<128x64xf32, tmem_acc>
// CHECK:             %[[LARGEST:.*]] = kvcache.reduce maxnumf %{{.*}} from %[[M]]
// CHECK:             %[[GROWS:.*]] = kvcache.map %[[LARGEST]], %[[M]], %{{.*}} -> !kvcache.fragment<128xi1, tmem_acc>
// CHECK:               %[[SLACK:.*]] = arith.constant 8.000000e+00 : f32
// CHECK:               arith.cmpf ogt, %{{.*}}, %[[SLACK]]
// CHECK:             %[[MAX:.*]] = kvcache.map %[[LARGEST]], %[[M]], %[[GROWS]]
// CHECK:             %[[FACTORS:.*]] = kvcache.map %[[M]], %[[MAX]]
// CHECK:             kvcache.reduce addf
// CHECK:             %[[ANY:.*]] = kvcache.warp_any %[[GROWS]]
// CHECK:             %[[IS_SCALED:.*]] = arith.andi %[[ANY]], %[[HAS_SUMS:.*]] : i1
// CHECK:             scf.if %[[IS_SCALED]] {
// CHECK:               scf.for %[[COLUMN:.*]] = %c0 to %c128{{.*}} step %c32
// CHECK:                 %[[SUMS:.*]] = kvcache.tmem_load %[[TMEM]]#2[%[[COLUMN]]] : {{.*}} -> !kvcache.fragment<128x32xf32, tmem_acc>
// CHECK:                 %[[SCALED:.*]] = kvcache.map arith.mulf(%[[SUMS]], %[[FACTORS]])
// CHECK:                 kvcache.tmem_store %[[SCALED]], %[[TMEM]]#2[%[[COLUMN]]]
// CHECK:             kvcache.tmem_store %{{.*}}, %[[TMEM]]#1[%c0] : !kvcache.fragment<128x64xbf16, tmem_acc>
// CHECK:             kvcache.consume %[[VALUES]][%[[TILE]]]
// CHECK-NEXT:        ^bb0(%[[VT:.*]]: !kvcache.tile
// CHECK-NEXT:          gpu.barrier
// CHECK-NEXT:          scf.if %[[IS_ISSUER]] {
// CHECK-NEXT:            kvcache.tmem_mma %[[TMEM]]#1, %[[VT]][%c0, %c0] into %[[TMEM]]#2 add %[[HAS_SUMS]] {major_b = #kvcache.major<mn_major>}
// CHECK:               nvgpu.mbarrier.try_wait.parity %[[BARRIER]][%c0], %true
// CHECK:           scf.for %[[FIRST:.*]] = %c0 to %c128{{.*}} step %c64
// CHECK:             kvcache.tmem_load %[[TMEM]]#2[%[[FIRST]]] : {{.*}} -> !kvcache.fragment<128x64xf32, tmem_acc>
// CHECK:             kvcache.splat %{{.*}} : !kvcache.fragment<128x64xf32, tmem_acc>
// CHECK:             kvcache.store_rows %{{.*}} at(%c0, %[[FIRST]])
func.func @prompt(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  kvcache.attention %q, %k, %v, %n, %s outs(%out) {causal}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// One pipe has rows that are keys and values. A persistent kernel allocates tensor memory once. Exact maxima scale the
// accumulator whenever one grows, and weights of f16 are then at most 2^15.
// CHECK-LABEL: func.func @latent(
// CHECK:         = kvcache.pipe
// CHECK-NOT:     = kvcache.pipe
// CHECK:         %[[TMEM:.*]]:3 = kvcache.tmem_alloc : !kvcache.tmem_tile<64x64xf32>, !kvcache.tmem_tile<64x64xf16>, !kvcache.tmem_tile<64x512xf32>
// CHECK:         scf.while
// CHECK:           scf.for
// CHECK:             kvcache.consume %{{.*}} -> (!kvcache.fragment<64xf32, tmem_acc>, !kvcache.fragment<64xf32, tmem_acc, partial>) {
// CHECK-NEXT:        ^bb0(%[[ROWS:.*]]: !kvcache.tile
// CHECK:               kvcache.tmem_mma %{{.*}}, %[[ROWS]]
// CHECK:               arith.cmpf ogt, %{{.*}}, %cst{{.*}} : f32
// CHECK:               arith.subf %cst{{.*}}, %{{.*}} : f32
// CHECK:               kvcache.tmem_mma %[[TMEM]]#1, %[[ROWS]]
// CHECK:           scf.if
// CHECK:             kvcache.store_rows {{.*}} memref<?x128x512xf16>
// CHECK:           } else {
// CHECK:             memref<?x128x512xf32>
func.func @latent(%w: memref<?xi8>, %q: memref<?x128x576xf16>, %k: !mla, %n: memref<?xi32>, %s: f32, %out: memref<?x128x512xf16>, %most: memref<?x128xf32>) {
  kvcache.attention %q, %k, %n, %s outs(%out) max_logits %most workspace %w {causal, split = #kvcache.split<keys = 256, max = 16, rows = 1>}
      : memref<?x128x576xf16>, !mla, memref<?xi32>, f32, memref<?x128x512xf16>, memref<?x128xf32>, memref<?xi8>
  return
}

// Threads convert a raw tile, and the copy of the next one begins while scores are computed. Scales are multiplied by
// scores and by weights, which are rounded then.
// CHECK-LABEL: func.func @converted(
// CHECK:         %[[RAW:.*]] = kvcache.pipe : !kvcache.pipe<2, !kvcache.tile<64x576xf8E4M3FN>>
// CHECK:         %[[ROWS:.*]] = kvcache.alloc_tile : !kvcache.tile<64x576xbf16, swizzle_128b>
// CHECK:         %[[SCALES:.*]] = kvcache.alloc_tile : !kvcache.tile<1x64xf32>
// CHECK:         %[[TMEM:.*]]:3 = kvcache.tmem_alloc
// CHECK:         scf.for %[[TILE:.*]] = %c0 to {{.*}} iter_args
// CHECK-NEXT:      gpu.barrier
// CHECK-NOT:       kvcache.produce
// CHECK:           kvcache.consume %[[RAW]][%[[TILE]]]
// CHECK:             kvcache.tile_store %{{.*}}, %[[ROWS]]
// CHECK:           nvvm.fence.proxy
// CHECK-NEXT:      gpu.barrier
// CHECK:           kvcache.tmem_mma %{{.*}}, %[[ROWS]]{{.*}} into %[[TMEM]]#0
// CHECK:           kvcache.produce %[[RAW]]
// CHECK:           %[[SCORES:.*]] = kvcache.tmem_load %[[TMEM]]#0
// CHECK:           kvcache.map %[[SCORES]] at(
// CHECK:             kvcache.tile_load %[[SCALES]]
// CHECK:           kvcache.reduce addf %[[WEIGHTS:.*]] from
// CHECK:           %[[SCALED:.*]] = kvcache.map %[[WEIGHTS]] at(
// CHECK:             kvcache.tile_load %[[SCALES]]
// CHECK:           %[[ROUNDED:.*]] = kvcache.map arith.truncf(%[[SCALED]])
// CHECK:           kvcache.tmem_store %[[ROUNDED]], %[[TMEM]]#1
// CHECK:           kvcache.tmem_mma %[[TMEM]]#1, %[[ROWS]]{{.*}} into %[[TMEM]]#2
func.func @converted(%q: memref<?x128x576xbf16>, %k: !raw, %n: memref<?xi32>, %s: f32, %out: memref<?x128x512xbf16>) {
  kvcache.attention %q, %k, %n, %s outs(%out) {causal}
      : memref<?x128x576xbf16>, !raw, memref<?xi32>, f32, memref<?x128x512xbf16>
  return
}
