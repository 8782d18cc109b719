// RUN: kvcache-opt %s --kvcache-tile-attention=chip=sm_90a --cse | FileCheck %s

#kv = #kvcache.params<num_heads = 8, head_size = 128>
#latent = #kvcache.params<num_heads = 1, head_size = 576, is_mla = true>
!scaled = !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 128>
!raw = !kvcache.paged<f8E4M3FN, #latent, page_size = 64>
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
  kvcache.attention %q, %k, %n, %s outs(%out) {causal, config = #kvcache.attention_config<schedule = prefetch>}
      : memref<?x128x576xbf16>, !mla, memref<?xi32>, f32, memref<?x128x512xbf16>
  return
}

// All threads convert elements, which products then read by the async proxy. The bounds of rows are computed before the
// loop, and scales of tokens are multiplied by scores and weights.
// CHECK-LABEL: func.func @converted(
// CHECK-NOT:     kvcache.pipe
// CHECK:         kvcache.alloc_tile : !kvcache.tile<128x128xbf16, swizzle_128b>
// CHECK-NEXT:    %[[KT:.*]] = kvcache.alloc_tile : !kvcache.tile<128x128xbf16, swizzle_128b>
// CHECK-NEXT:    %[[KS:.*]] = kvcache.alloc_tile : !kvcache.tile<1x128xf32>
// CHECK:         %[[VT:.*]] = kvcache.alloc_tile : !kvcache.tile<128x128xbf16, swizzle_128b>
// CHECK:         %[[VS:.*]] = kvcache.alloc_tile : !kvcache.tile<1x128xf32>
// CHECK:         %[[BOUNDS:.*]] = kvcache.map %{{.*}} -> !kvcache.fragment<64xi32, wgmma_acc>
// CHECK:         scf.for {{.*}} iter_args
// CHECK-NEXT:      gpu.barrier
// CHECK:           kvcache.dequantize
// CHECK:           kvcache.tile_store %{{.*}}, %[[KT]]
// CHECK:           kvcache.tile_store %{{.*}}, %[[KS]]
// CHECK:           kvcache.dequantize
// CHECK:           kvcache.tile_store %{{.*}}, %[[VT]]
// CHECK:           kvcache.tile_store %{{.*}}, %[[VS]]
// CHECK:           nvvm.fence.proxy
// CHECK-NEXT:      gpu.barrier
// CHECK:           %[[QK:.*]] = kvcache.fragment_mma %{{.*}}, %[[KT]]
// CHECK-NEXT:      %[[SCORES:.*]] = kvcache.fragment_wait %[[QK]]
// CHECK:           kvcache.map %[[SCORES]] at(
// CHECK:             kvcache.tile_load %[[KS]]
// CHECK:           kvcache.map %{{.*}}, %[[BOUNDS]] at(
// CHECK:           %[[SCALED:.*]] = kvcache.map %[[WEIGHTS:.*]] at(
// CHECK:             kvcache.tile_load %[[VS]]
// CHECK:           %[[P:.*]] = kvcache.to_operand %[[SCALED]] : {{.*}} -> !kvcache.fragment<64x128xbf16, wgmma_a16>
// CHECK:           kvcache.reduce addf %[[WEIGHTS]] from
// CHECK:           kvcache.fragment_mma %[[P]], %[[VT]]
func.func @converted(%q: memref<?x32x128xbf16>, %k: !scaled, %v: !scaled, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  kvcache.attention %q, %k, %v, %n, %s outs(%out) {causal}
      : memref<?x32x128xbf16>, !scaled, !scaled, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// Rows are gathered by ids. Those of the next raw tile are loaded before a tile is converted, and its slot is filled while
// scores are computed.
// CHECK-LABEL: func.func @sparse(
// CHECK:         %[[RAW:.*]] = kvcache.pipe : !kvcache.pipe<2, !kvcache.tile<64x576xf8E4M3FN>>
// CHECK:         %[[ROWS:.*]] = kvcache.alloc_tile : !kvcache.tile<64x576xbf16, swizzle_128b>
// CHECK:         %[[IDS:.*]] = kvcache.alloc_tile : !kvcache.tile<4x64xi32>
// CHECK:         scf.for %[[TILE:.*]] = %c0 to {{.*}} iter_args
// CHECK-NEXT:      gpu.barrier
// CHECK-NOT:       kvcache.produce
// CHECK:           memref.load {{.*}} : memref<?x2048xi32>
// CHECK:           kvcache.consume %[[RAW]][%[[TILE]]]
// CHECK:             kvcache.tile_store %{{.*}}, %[[ROWS]]
// CHECK:           kvcache.tile_store %{{.*}}, %[[IDS]]
// CHECK:           nvvm.fence.proxy
// CHECK-NEXT:      gpu.barrier
// CHECK:           %[[QK:.*]] = kvcache.fragment_mma %{{.*}}, %[[ROWS]]
// CHECK:           kvcache.produce %[[RAW]]
// CHECK:             kvcache.async_gather_tile
// CHECK:           kvcache.fragment_wait %[[QK]]
// CHECK:           kvcache.map %{{.*}} at(
// CHECK:             %[[ID:.*]] = kvcache.tile_load %[[IDS]]
// CHECK:             arith.cmpi sge, %[[ID]], %c0
func.func @sparse(%q: memref<?x128x576xbf16>, %k: !raw, %n: memref<?xi32>, %s: f32, %out: memref<?x128x512xbf16>, %ids: memref<?x2048xi32>) {
  kvcache.attention %q, %k, %n, %s outs(%out) rows %ids
      : memref<?x128x576xbf16>, !raw, memref<?xi32>, f32, memref<?x128x512xbf16>, memref<?x2048xi32>
  return
}
