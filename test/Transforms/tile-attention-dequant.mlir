// RUN: kvcache-opt %s --kvcache-tile-attention=chip=sm_90a --cse | FileCheck %s
// RUN: kvcache-opt %s --kvcache-expand-ops="for-gpu chip=sm_90a" --cse | FileCheck %s

#kv = #kvcache.params<num_heads = 8, head_size = 128>
#long = #kvcache.params<num_heads = 8, head_size = 256>
!bytes = !kvcache.paged<f8E4M3FN, #kv, page_size = 64>
!scaled = !kvcache.paged<i8, #kv, page_size = 64, scale = f32, granularity = 64>
!long = !kvcache.paged<f8E5M2, #long, page_size = 64>
!packed = !kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E4M3FN, granularity = 16>
!shifted = !kvcache.paged<i4, #kv, page_size = 64, scale = f16, granularity = 64, zero_point = f16>

// Copies bring stored bytes. Rows of bf16 become f16 by a power of two each, which the factor of products has.
// CHECK-LABEL: func.func @plain(
// CHECK:         %[[QT:.*]] = kvcache.alloc_tile : !kvcache.tile<16x128xf16, swizzle_128b>
// CHECK:         %[[POWERS:.*]] = kvcache.alloc_tile : !kvcache.tile<1x16xf32>
// CHECK:         kvcache.pipe : !kvcache.pipe<2, !kvcache.tile<64x128xf8E4M3FN, swizzle_128b>>
// CHECK-COUNT-4: gpu.shuffle xor
// CHECK:         kvcache.tile_store %{{.*}}, %[[POWERS]]
// CHECK:         vector.shuffle %{{.*}} [0, 1, 4, 5] : vector<8xf16>
// CHECK:         vector.shuffle %{{.*}} [2, 3, 6, 7] : vector<8xf16>
// CHECK:         gpu.barrier
// CHECK:         kvcache.tile_load %[[POWERS]]
// CHECK:         %[[Q:.*]] = kvcache.fragment_load %[[QT]][%{{.*}}, %c0] {paired} : {{.*}} -> !kvcache.fragment<16x128xf16, mma_a16_pairs>
// CHECK:         scf.for
// CHECK-NOT:       gpu.barrier
// CHECK:           kvcache.fragment_mma %[[Q]], %{{.*}} -> !kvcache.in_flight<16x64xf32, mma_acc>
// CHECK:           %[[P:.*]] = kvcache.to_operand %{{.*}} -> !kvcache.fragment<16x64xf16, mma_a16>
// CHECK:           kvcache.fragment_mma %[[P]], %{{.*}} add %{{.*}} {major_b = #kvcache.major<mn_major>} : {{.*}} -> !kvcache.in_flight<16x128xf32, mma_acc_pairs>
// CHECK:         kvcache.store_rows %{{.*}} {alignment = 8 : i64} : !kvcache.fragment<16x128xf32, mma_acc_pairs>
func.func @plain(%q: memref<?x32x128xbf16>, %k: !bytes, %v: !bytes, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  kvcache.attention %q, %k, %v, %n, %s outs(%out) {causal, tile_rows = 16}
      : memref<?x32x128xbf16>, !bytes, !bytes, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// Each group has products of its own. Its scales are multiplied by the products with keys, and by weights. A warp loads
// scales of the next tile while it computes, and stores them before the products with values.
// CHECK-LABEL: func.func @scaled(
// CHECK-NOT:     gpu.shuffle
// CHECK:         %[[KS:.*]] = kvcache.alloc_tile : !kvcache.tile<4x32xf32>
// CHECK:         %[[VS:.*]] = kvcache.alloc_tile : !kvcache.tile<4x32xf32>
// CHECK-COUNT-2: kvcache.load_scale
// CHECK:         gpu.barrier
// CHECK-COUNT-2: nvvm.redux.sync
// CHECK:         scf.for
// CHECK-NEXT:      gpu.barrier
// CHECK-COUNT-2:   kvcache.load_scale
// CHECK:           kvcache.fragment_mma %{{.*}}[%c0{{.*}}, %c0{{.*}}] : {{.*}} -> !kvcache.in_flight<16x32xf32, mma_acc>
// CHECK:           kvcache.fragment_load %[[KS]]{{.*}} {repeated} : {{.*}} -> !kvcache.fragment<16x32xf32, mma_acc>
// CHECK:           kvcache.fragment_mma %{{.*}}[%c0{{.*}}, %c64{{.*}}] : {{.*}} -> !kvcache.in_flight<16x32xf32, mma_acc>
// CHECK:           kvcache.fragment_load %[[KS]]{{.*}} {repeated}
// CHECK:           math.fma
// CHECK:           kvcache.reduce maxnumf
// CHECK-COUNT-2:   kvcache.tile_store %{{.*}}, %[[KS]]
// CHECK-COUNT-2:   kvcache.tile_store %{{.*}}, %[[VS]]
// CHECK:           kvcache.fragment_load %[[VS]]{{.*}} {repeated}
// CHECK:           kvcache.fragment_mma %{{.*}}[%c0{{.*}}, %c0{{.*}}] add {{.*}} -> !kvcache.in_flight<16x64xf32, mma_acc_pairs>
// CHECK:           kvcache.fragment_load %[[VS]]{{.*}} {repeated}
// CHECK:           kvcache.fragment_mma %{{.*}}[%c0{{.*}}, %c64{{.*}}] add {{.*}} -> !kvcache.in_flight<16x64xf32, mma_acc_pairs>
// CHECK:         kvcache.store_rows %{{.*}} at(%{{.*}}, %c0{{.*}})
// CHECK:         kvcache.store_rows %{{.*}} at(%{{.*}}, %c64{{.*}})
func.func @scaled(%q: memref<?x32x128xf16>, %k: !scaled, %v: !scaled, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xf16>) {
  kvcache.attention %q, %k, %v, %n, %s outs(%out) {causal, tile_rows = 16}
      : memref<?x32x128xf16>, !scaled, !scaled, memref<?xi32>, f32, memref<?x32x128xf16>
  return
}

// Longer queries are loaded for the columns of a load of keys.
// CHECK-LABEL: func.func @long_queries(
// CHECK:         kvcache.consume
// CHECK:           %[[Q0:.*]] = kvcache.fragment_load %{{.*}}[%{{.*}}, %c0{{.*}}] {paired} : {{.*}} -> !kvcache.fragment<16x32xf16, mma_a16_pairs>
// CHECK:           %[[S0:.*]] = kvcache.fragment_mma %[[Q0]], %{{.*}}[%c0{{.*}}, %c0{{.*}}] :
// CHECK:           %[[Q1:.*]] = kvcache.fragment_load %{{.*}}[%{{.*}}, %c32{{.*}}] {paired}
// CHECK:           kvcache.fragment_mma %[[Q1]], %{{.*}}[%c0{{.*}}, %c32{{.*}}] add %[[S0]]
func.func @long_queries(%q: memref<?x32x256xf16>, %k: !long, %v: !long, %n: memref<?xi32>, %s: f32, %out: memref<?x32x256xf16>) {
  kvcache.attention %q, %k, %v, %n, %s outs(%out) {causal, tile_rows = 16}
      : memref<?x32x256xf16>, !long, !long, memref<?xi32>, f32, memref<?x32x256xf16>
  return
}

// Elements of 4 bits are multiplied by their scales in registers, which scores and probs then do not have. Queries have
// the order of eight elements of a lane. A warp has the scales of a tile as f16, those of first groups of pairs first.
// CHECK-LABEL: func.func @packed(
// CHECK:         %[[QT:.*]] = kvcache.alloc_tile : !kvcache.tile<16x128xf16, swizzle_128b>
// CHECK:         kvcache.pipe : !kvcache.pipe<2, !kvcache.tile<64x64xi8, swizzle_64b>>
// CHECK:         kvcache.pipe : !kvcache.pipe<2, !kvcache.tile<64x64xi8, swizzle_64b>>
// CHECK:         %[[KS:.*]] = kvcache.alloc_tile : !kvcache.tile<128x8xf16>
// CHECK:         %[[VS:.*]] = kvcache.alloc_tile : !kvcache.tile<128x8xf16>
// CHECK:         %[[STORED:.*]] = kvcache.load_scale {{.*}} -> vector<8xf8E4M3FN>
// CHECK:         vector.bitcast %[[STORED]] : vector<8xf8E4M3FN> to vector<2xi32>
// CHECK:         vector.shuffle %{{.*}} [0, 4] : vector<8xf16>
// CHECK:         vector.shuffle %{{.*}} [1, 5] : vector<8xf16>
// CHECK:         vector.shuffle %{{.*}} [2, 6] : vector<8xf16>
// CHECK:         vector.shuffle %{{.*}} [3, 7] : vector<8xf16>
// CHECK:         %[[Q:.*]] = kvcache.fragment_load %[[QT]][%{{.*}}, %c0] {paired} : {{.*}} -> !kvcache.fragment<16x128xf16, mma_a16_quads>
// CHECK:         scf.for
// CHECK-NEXT:      gpu.barrier
// CHECK:           kvcache.fragment_mma %[[Q]], %{{.*}} scales %[[KS]][%{{.*}}] {packed = f4E2M1FN} : {{.*}} -> !kvcache.in_flight<16x64xf32, mma_acc>
// CHECK:           %[[WIDE:.*]] = arith.extf %{{.*}} : vector<8xf8E4M3FN> to vector<8xf16>
// CHECK:           %[[SCALED:.*]] = arith.mulf %[[WIDE]], %{{.*}} : vector<8xf16>
// CHECK:           %[[EVEN:.*]] = vector.shuffle %[[SCALED]], %[[SCALED]] [0, 2, 4, 6] : vector<8xf16>
// CHECK:           kvcache.tile_store %[[EVEN]], %[[KS]][%{{.*}}, %c0{{.*}}]
// CHECK:           %[[ODD:.*]] = vector.shuffle %[[SCALED]], %[[SCALED]] [1, 3, 5, 7] : vector<8xf16>
// CHECK:           kvcache.tile_store %[[ODD]], %[[KS]][%{{.*}}, %c4{{.*}}]
// CHECK:           %[[P:.*]] = kvcache.to_operand %{{.*}} -> !kvcache.fragment<16x64xf16, mma_a16>
// CHECK:           kvcache.fragment_mma %[[P]], %{{.*}} add %{{.*}} scales %[[VS]][%{{.*}}] {major_b = #kvcache.major<mn_major>, packed = f4E2M1FN} : {{.*}} -> !kvcache.in_flight<16x128xf32, mma_acc_quads>
// CHECK:         kvcache.store_rows %{{.*}} : !kvcache.fragment<16x128xf32, mma_acc_quads>
func.func @packed(%q: memref<?x32x128xbf16>, %k: !packed, %v: !packed, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  kvcache.attention %q, %k, %v, %n, %s outs(%out) {causal, tile_rows = 16}
      : memref<?x32x128xbf16>, !packed, !packed, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// Products have the bits of elements, and scores the sums of queries times zero points. The sums of probs times zero points
// are added to the accumulators of their groups at the end.
// CHECK-LABEL: func.func @shifted(
// CHECK:         %[[QT:.*]] = kvcache.alloc_tile : !kvcache.tile<16x128xf16, swizzle_128b>
// CHECK:         %[[KS:.*]] = kvcache.alloc_tile : !kvcache.tile<4x32xf32>
// CHECK:         %[[VS:.*]] = kvcache.alloc_tile : !kvcache.tile<4x32xf32>
// CHECK:         %[[KZ:.*]] = kvcache.alloc_tile : !kvcache.tile<4x32xf32>
// CHECK:         %[[VZ:.*]] = kvcache.alloc_tile : !kvcache.tile<4x32xf32>
// CHECK:         kvcache.load_scale {{.*}} -> vector<2xf16>
// CHECK:         kvcache.fragment_load %[[QT]][%{{.*}}, %c0{{.*}}] : {{.*}} -> !kvcache.fragment<16x32xf16, mma_acc>
// CHECK:         kvcache.reduce addf %{{.*}} -> !kvcache.fragment<16xf32, mma_acc, partial>
// CHECK:         kvcache.fragment_load %[[QT]][%{{.*}}, %c32{{.*}}] : {{.*}} -> !kvcache.fragment<16x32xf16, mma_acc>
// CHECK:         kvcache.reduce addf %{{.*}} from %{{.*}} -> !kvcache.fragment<16xf32, mma_acc, partial>
// CHECK:         %[[SUM0:.*]] = kvcache.reduce addf %{{.*}} : !kvcache.fragment<16xf32, mma_acc, partial> -> !kvcache.fragment<16xf32, mma_acc>
// CHECK:         %[[S0:.*]] = kvcache.map %[[SUM0]]
// CHECK:         %[[SUM1:.*]] = kvcache.reduce addf %{{.*}} : !kvcache.fragment<16xf32, mma_acc, partial> -> !kvcache.fragment<16xf32, mma_acc>
// CHECK:         %[[S1:.*]] = kvcache.map %[[SUM1]]
// CHECK:         %[[ALL:.*]]:10 = scf.for
// CHECK:           %[[Q0:.*]] = kvcache.fragment_load %[[QT]][%{{.*}}, %c0{{.*}}] {paired} : {{.*}} -> !kvcache.fragment<16x64xf16, mma_a16_quads>
// CHECK:           kvcache.fragment_mma %[[Q0]], %{{.*}}[%c0{{.*}}, %c0{{.*}}] {packed = i4} : {{.*}} -> !kvcache.in_flight<16x32xf32, mma_acc>
// CHECK:           %[[K0:.*]] = kvcache.fragment_load %[[KS]][%{{.*}}, %c0{{.*}}] {repeated}
// CHECK:           %[[SCALED:.*]] = kvcache.map arith.mulf(%{{.*}}, %[[K0]])
// CHECK:           %[[Z0:.*]] = kvcache.fragment_load %[[KZ]][%{{.*}}, %c0{{.*}}] {repeated}
// CHECK:           %[[SCORES:.*]] = kvcache.map math.fma(%[[Z0]], %[[S0]], %[[SCALED]])
// CHECK:           %[[Q1:.*]] = kvcache.fragment_load %[[QT]][%{{.*}}, %c64{{.*}}] {paired} : {{.*}} -> !kvcache.fragment<16x64xf16, mma_a16_quads>
// CHECK:           kvcache.fragment_mma %[[Q1]], %{{.*}}[%c0{{.*}}, %c32{{.*}}] {packed = i4}
// CHECK:           %[[K1:.*]] = kvcache.fragment_load %[[KS]][%{{.*}}, %c0{{.*}}] {repeated}
// CHECK:           %[[SUM:.*]] = kvcache.map math.fma(%{{.*}}, %[[K1]], %[[SCORES]])
// CHECK:           %[[Z1:.*]] = kvcache.fragment_load %[[KZ]][%{{.*}}, %c0{{.*}}] {repeated}
// CHECK:           kvcache.map math.fma(%[[Z1]], %[[S1]], %[[SUM]])
// CHECK:           kvcache.fragment_load %[[VZ]][%{{.*}}, %c0{{.*}}] {repeated}
// CHECK:           kvcache.reduce addf %{{.*}} from %{{.*}} -> !kvcache.fragment<16xf32, mma_acc, partial>
// CHECK:           kvcache.fragment_mma %{{.*}} {major_b = #kvcache.major<mn_major>, packed = i4} : {{.*}} -> !kvcache.in_flight<16x64xf32, mma_acc_quads>
// CHECK:           kvcache.fragment_mma %{{.*}} {major_b = #kvcache.major<mn_major>, packed = i4} : {{.*}} -> !kvcache.in_flight<16x64xf32, mma_acc_quads>
// CHECK:         %[[ADDED:.*]] = kvcache.reduce addf %[[ALL]]#8 : {{.*}} -> !kvcache.fragment<16xf32, mma_acc>
// CHECK:         kvcache.map arith.addf(%{{.*}}, %[[ADDED]]) : !kvcache.fragment<16x64xf32, mma_acc_quads>
func.func @shifted(%q: memref<?x32x128xf16>, %k: !shifted, %v: !shifted, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xf16>) {
  kvcache.attention %q, %k, %v, %n, %s outs(%out) {causal, tile_rows = 16}
      : memref<?x32x128xf16>, !shifted, !shifted, memref<?xi32>, f32, memref<?x32x128xf16>
  return
}
