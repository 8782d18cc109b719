// RUN: kvcache-opt %s --kvcache-plan-attention=chip=sm_80 --kvcache-split-attention --kvcache-tile-attention=chip=sm_80 --cse | FileCheck %s
// RUN: kvcache-opt %s --kvcache-plan-attention=chip=sm_80 --kvcache-split-attention --kvcache-expand-ops="for-gpu chip=sm_80" --cse | FileCheck %s
// RUN: kvcache-opt %s --kvcache-plan-attention=chip=sm_120a --kvcache-split-attention --kvcache-tile-attention=chip=sm_120a --cse | FileCheck %s --check-prefix=TILE120

#kv = #kvcache.params<num_heads = 8, head_size = 128>
#wide = #kvcache.params<num_heads = 8, head_size = 256>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!halves = !kvcache.paged<f16, #kv, page_size = 64>
!wide = !kvcache.paged<bf16, #wide, page_size = 64>

// Each warp has 16 rows. Its queries stay in registers, and the next tiles are copied while it computes.
// CHECK-LABEL: func.func @prompt(
// CHECK-SAME:    %[[Q:.*]]: memref<?x32x128xbf16>, %[[K:.*]]: !kvcache.paged{{.*}}, %[[V:.*]]: !kvcache.paged{{.*}}, %[[N:.*]]: memref<?xi32>, %[[SCALE:.*]]: f32, %[[OUT:.*]]: memref<?x32x128xbf16>, %[[LSE:.*]]: memref<?x32xf32>)
// CHECK:         scf.parallel (%[[THREAD:.*]]) = (%c0) to (%c128)
// CHECK:           %[[QT:.*]] = kvcache.alloc_tile : !kvcache.tile<64x128xbf16, swizzle_128b>
// CHECK:           %[[KEYS:.*]] = kvcache.pipe : !kvcache.pipe<2, !kvcache.tile<64x128xbf16, swizzle_128b>>
// CHECK:           %[[VALUES:.*]] = kvcache.pipe : !kvcache.pipe<2, !kvcache.tile<64x128xbf16, swizzle_128b>>
// CHECK:           %[[WARP:.*]] = arith.divui %[[THREAD]], %c32
// CHECK:           %[[R0:.*]] = arith.muli %[[WARP]], %c16
// CHECK:           kvcache.produce %[[KEYS]][%c0]
// CHECK:           kvcache.produce %[[VALUES]][%c0]
// CHECK:           scf.for %{{.*}} = %[[THREAD]] to %c1024 step %c128
// CHECK:             vector.load %[[Q]]
// CHECK:             arith.xori
// CHECK:             kvcache.tile_store %{{.*}}, %[[QT]]
// CHECK:           gpu.barrier
// CHECK:           %[[ROWS:.*]] = kvcache.fragment_load %[[QT]][%[[R0]], %c0] : {{.*}} -> !kvcache.fragment<16x128xbf16, mma_a16>
// CHECK:           scf.for %[[TILE:.*]] = %c0 to %{{.*}} step %c1 iter_args(%[[M:.*]] = %{{.*}}, %[[L:.*]] = %{{.*}}, %[[O:.*]] = %{{.*}})
// CHECK:             %[[NEXT:.*]] = arith.addi %[[TILE]], %c1
// CHECK:             kvcache.produce %[[KEYS]][%[[NEXT]]]
// CHECK:             kvcache.produce %[[VALUES]][%[[NEXT]]]
// CHECK:             kvcache.consume %[[KEYS]][%[[TILE]]]
// CHECK:               kvcache.fragment_mma %[[ROWS]], %{{.*}} -> !kvcache.in_flight<16x64xf32, mma_acc>
// CHECK:             kvcache.reduce maxnumf %{{.*}} from %[[M]]
// CHECK:             math.fma
// CHECK:             %[[P:.*]] = kvcache.to_operand
// CHECK:             kvcache.consume %[[VALUES]][%[[TILE]]]
// CHECK:               kvcache.fragment_mma %[[P]], %{{.*}} add %{{.*}} {major_b = #kvcache.major<mn_major>}
// CHECK:           } {kvcache.schedule = #kvcache.schedule<prefetch>}
// CHECK:           kvcache.store_rows %{{.*}} at(%[[R0]], %c0{{.*}}) to %[[OUT]] {alignment = 4 : i64}
// CHECK:           kvcache.store_rows %{{.*}} at(%[[R0]]) to %[[LSE]]
func.func @prompt(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %lse: memref<?x32xf32>) {
  kvcache.attention %q, %k, %v, %n, %s outs(%out, %lse) {causal}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?x32xf32>
  return
}

// Longer queries are loaded for each MMA.
// CHECK-LABEL: func.func @long_queries(
// CHECK:         kvcache.pipe :
// CHECK:         kvcache.consume
// CHECK:           %[[Q0:.*]] = kvcache.fragment_load %{{.*}}[%{{.*}}, %c0{{.*}}] : {{.*}} -> !kvcache.fragment<16x16xbf16, mma_a16>
// CHECK:           %[[S0:.*]] = kvcache.fragment_mma %[[Q0]], %{{.*}}[%c0{{.*}}, %c0{{.*}}] :
// CHECK:           %[[Q1:.*]] = kvcache.fragment_load %{{.*}}[%{{.*}}, %c16{{.*}}]
// CHECK:           kvcache.fragment_mma %[[Q1]], %{{.*}}[%c0{{.*}}, %c16{{.*}}] add %[[S0]]
func.func @long_queries(%q: memref<?x32x256xbf16>, %k: !wide, %v: !wide, %n: memref<?xi32>, %s: f32, %out: memref<?x32x256xbf16>) {
  kvcache.attention %q, %k, %v, %n, %s outs(%out) {causal}
      : memref<?x32x256xbf16>, !wide, !wide, memref<?xi32>, f32, memref<?x32x256xbf16>
  return
}

// A block with one of several splits stores its sums and, for each row, the exponent and the sum of weights. The
// weights of f16 are at most 2^15.
// Blocks of a persistent kernel do the same.
// TILE120-LABEL: func.func @splits(
// TILE120:         scf.while
// TILE120:           scf.for %{{.*}} iter_args
// TILE120:           scf.if
// TILE120:             kvcache.store_rows
// TILE120:             kvcache.store_split
// CHECK-LABEL: func.func @splits(
// CHECK-SAME:    %[[W:[^:]*]]: memref<?xi8>
// CHECK:         %[[ACC:.*]] = memref.view %[[W]]{{.*}} to memref<?x32x128xf32>
// CHECK:         %[[STATES:.*]] = memref.view %[[W]]{{.*}} to memref<?x32x2xf32>
// CHECK:         scf.if %{{.*}} {
// CHECK:           scf.for %{{.*}} iter_args
// CHECK:             arith.subf %cst{{.*}}, %{{.*}} : f32
// CHECK:           scf.if %{{.*}} {
// CHECK:             kvcache.store_rows %{{.*}} to %{{.*}} {alignment = 4 : i64} : {{.*}}, memref<?x32x128xf16>
// CHECK:           } else {
// CHECK:             kvcache.store_split %{{.*}} to %[[ACC]], %[[STATES]] {alignment = 8 : i64}
// CHECK:         {{kvcache.merge_splits|function = @splits_merge_kernel}}
func.func @splits(%w: memref<?xi8>, %q: memref<?x32x128xf16>, %k: !halves, %v: !halves, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xf16>) {
  kvcache.attention %q, %k, %v, %n, %s outs(%out) workspace %w {causal, split = #kvcache.split<keys = 256, max = 16, rows = 1>}
      : memref<?x32x128xf16>, !halves, !halves, memref<?xi32>, f32, memref<?x32x128xf16>, memref<?xi8>
  return
}

#latent = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
!scaled = !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 128>
!mla = !kvcache.paged<bf16, #latent, page_size = 64>

// Threads convert elements after a barrier. Scales of tokens are multiplied by scores, and by weights that then become
// an operand: the sum of weights is without them.
// CHECK-LABEL: func.func @converted(
// CHECK:         %[[QT:.*]] = kvcache.alloc_tile
// CHECK:         %[[KT:.*]] = kvcache.alloc_tile : !kvcache.tile<64x128xbf16, swizzle_128b>
// CHECK:         %[[KS:.*]] = kvcache.alloc_tile : !kvcache.tile<1x64xf32>
// CHECK:         %[[VT:.*]] = kvcache.alloc_tile : !kvcache.tile<64x128xbf16, swizzle_128b>
// CHECK:         %[[VS:.*]] = kvcache.alloc_tile : !kvcache.tile<1x64xf32>
// CHECK:         scf.for {{.*}} iter_args
// CHECK-NEXT:      gpu.barrier
// CHECK:           kvcache.dequantize
// CHECK:           kvcache.tile_store %{{.*}}, %[[KT]]
// CHECK:           kvcache.dequantize
// CHECK:           kvcache.tile_store %{{.*}}, %[[VT]]
// CHECK:           gpu.barrier
// CHECK:           %[[QK:.*]] = kvcache.fragment_mma %{{.*}}, %[[KT]]
// CHECK:           kvcache.map %{{.*}} at(
// CHECK-NEXT:      ^bb0(%[[E:.*]]: f32, %{{.*}}: index, %[[COLUMN:.*]]: index):
// CHECK-NEXT:        %[[SCALE:.*]] = kvcache.tile_load %[[KS]][%c0{{.*}}, %[[COLUMN]]]
// CHECK-NEXT:        arith.mulf %[[E]], %[[SCALE]] : f32
// CHECK:           math.fma
// CHECK:           math.exp2
// CHECK:           %[[SCALED:.*]] = kvcache.map %[[WEIGHTS:.*]] at(
// CHECK:             kvcache.tile_load %[[VS]]
// CHECK:           %[[P:.*]] = kvcache.to_operand %[[SCALED]]
// CHECK:           kvcache.reduce addf %[[WEIGHTS]] from
// CHECK:           kvcache.fragment_mma %[[P]], %[[VT]]
func.func @converted(%q: memref<?x32x128xbf16>, %k: !scaled, %v: !scaled, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  kvcache.attention %q, %k, %v, %n, %s outs(%out) {causal}
      : memref<?x32x128xbf16>, !scaled, !scaled, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// Latent rows are keys and values: one use of a tile has both products, and two warps share the values of their rows.
// CHECK-LABEL: func.func @latent(
// CHECK:         %[[PIPE:.*]] = kvcache.pipe : !kvcache.pipe<2, !kvcache.tile<16x576xbf16, swizzle_128b>>
// CHECK:         scf.for %[[TILE:.*]] = {{.*}} iter_args
// CHECK:           kvcache.produce %[[PIPE]]
// CHECK:           kvcache.consume %[[PIPE]][%[[TILE]]] : {{.*}} -> (!kvcache.fragment<16xf32, mma_acc>, !kvcache.fragment<16xf32, mma_acc, partial>, !kvcache.fragment<16x256xf32, mma_acc>) {
// CHECK-NEXT:      ^bb0(%[[ROWS:.*]]: !kvcache.tile
// CHECK:             kvcache.fragment_mma %{{.*}}, %[[ROWS]]{{.*}} -> !kvcache.in_flight<16x16xf32, mma_acc>
// CHECK:             kvcache.fragment_mma %{{.*}}, %[[ROWS]]{{.*}} -> !kvcache.in_flight<16x256xf32, mma_acc>
// CHECK:             kvcache.yield
func.func @latent(%q: memref<?x128x576xbf16>, %k: !mla, %n: memref<?xi32>, %s: f32, %out: memref<?x128x512xbf16>) {
  kvcache.attention %q, %k, %n, %s outs(%out) {causal}
      : memref<?x128x576xbf16>, !mla, memref<?xi32>, f32, memref<?x128x512xbf16>
  return
}

// Ids of the next tile wait in registers while products are computed. Scores of ids that are no row's are -inf.
// CHECK-LABEL: func.func @sparse(
// CHECK:         %[[PIPE:.*]] = kvcache.pipe
// CHECK:         %[[IDS:.*]] = kvcache.alloc_tile : !kvcache.tile<3x16xi32>
// CHECK:         kvcache.async_gather_tile
// CHECK:         scf.for {{.*}} iter_args
// CHECK-NEXT:      gpu.barrier
// CHECK:           kvcache.produce %[[PIPE]]
// CHECK:           kvcache.async_gather_tile
// CHECK:           memref.load {{.*}} : memref<?x2048xi32>
// CHECK:           kvcache.consume %[[PIPE]]
// CHECK:             kvcache.map %{{.*}} at(
// CHECK:               %[[ID:.*]] = kvcache.tile_load %[[IDS]]
// CHECK:               arith.cmpi sge, %[[ID]], %c0
// CHECK:               arith.select
// CHECK:           kvcache.tile_store %{{.*}}, %[[IDS]]
func.func @sparse(%q: memref<?x128x576xbf16>, %k: !mla, %n: memref<?xi32>, %s: f32, %out: memref<?x128x512xbf16>, %ids: memref<?x2048xi32>) {
  kvcache.attention %q, %k, %n, %s outs(%out) rows %ids
      : memref<?x128x576xbf16>, !mla, memref<?xi32>, f32, memref<?x128x512xbf16>, memref<?x2048xi32>
  return
}

// Places of long rows are computed again for each work item.
// TILE120-LABEL: func.func @latent_splits(
// TILE120:         scf.while
// TILE120:         } do {
// TILE120:           %[[T:.*]] = kvcache.opaque_thread
// TILE120-NOT:       kvcache.opaque_thread
// TILE120:           scf.for %{{.*}} iter_args
// TILE120:             kvcache.fragment_load %{{.*}} thread %[[T]]
// TILE120:             kvcache.fragment_mma %{{.*}} thread %[[T]]
// TILE120:           kvcache.reduce addf
// TILE120:           kvcache.store_split %{{.*}} thread %[[T]]
// CHECK-LABEL: func.func @latent_splits(
// CHECK:         kvcache.fragment_mma
func.func @latent_splits(%w: memref<?xi8>, %q: memref<?x128x576xbf16>, %k: !mla, %n: memref<?xi32>, %s: f32, %out: memref<?x128x512xbf16>) {
  kvcache.attention %q, %k, %n, %s outs(%out) workspace %w {causal}
      : memref<?x128x576xbf16>, !mla, memref<?xi32>, f32, memref<?x128x512xbf16>, memref<?xi8>
  return
}
