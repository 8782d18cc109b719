// RUN: kvcache-opt %s --kvcache-tile-attention=chip=sm_90a --cse | FileCheck %s
// RUN: kvcache-opt %s --kvcache-expand-ops="for-gpu chip=sm_90a" --cse | FileCheck %s

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!halves = !kvcache.paged<f16, #kv, page_size = 64>

// A warpgroup copies, two multiply. The factor of scores is positive: the queries have its sign. It is multiplied
// where the largest score is subtracted.
// CHECK-LABEL: func.func @prompt(
// CHECK-SAME:    %[[Q:.*]]: memref<?x32x128xbf16>, %[[K:.*]]: !kvcache.paged{{.*}}, %[[V:.*]]: !kvcache.paged{{.*}}, %[[N:.*]]: memref<?xi32>, %[[SCALE:.*]]: f32, %[[OUT:.*]]: memref<?x32x128xbf16>, %[[LSE:.*]]: memref<?x32xf32>)
// CHECK:         scf.parallel (%[[THREAD:.*]]) = (%c0) to (%c384)
// CHECK:           %[[QT:.*]] = kvcache.alloc_tile : !kvcache.tile<128x128xbf16, swizzle_128b>
// CHECK:           %[[KEYS:.*]] = kvcache.pipe {consumer_registers = 240 : i64, producer_registers = 24 : i64} : !kvcache.pipe<2, !kvcache.tile<128x128xbf16, swizzle_128b>, producers = 4>
// CHECK:           %[[VALUES:.*]] = kvcache.pipe : !kvcache.pipe<2, !kvcache.tile<128x128xbf16, swizzle_128b>, producers = 4>
// CHECK:           scf.for %{{.*}} = %[[THREAD]] to %c2048 step %c384
// CHECK:             vector.load %[[Q]]
// CHECK:             arith.xori
// CHECK:             kvcache.tile_store %{{.*}}, %[[QT]]
// CHECK:           gpu.barrier
// CHECK:           %[[COPIES:.*]] = arith.cmpi ult, %[[THREAD]], %c128
// CHECK:           scf.if %[[COPIES]] {
// CHECK:             kvcache.produce %[[KEYS]]
// CHECK:               kvcache.async_load_tile %[[K]]
// CHECK:             kvcache.produce %[[VALUES]]
// CHECK:               kvcache.async_load_tile %[[V]]
// CHECK:           } else {
// CHECK:             %[[R0:.*]] = arith.muli %{{.*}}, %c64
// CHECK:             %[[FACTOR:.*]] = kvcache.splat %{{.*}} : !kvcache.fragment<64xf32, wgmma_acc>
// CHECK:             %[[ALL:.*]]:3 = scf.for %[[TILE:.*]] = %c0 to %{{.*}} step %c1 iter_args(%[[M:.*]] = %{{.*}}, %[[L:.*]] = %{{.*}}, %[[O:.*]] = %{{.*}})
// CHECK:               %[[S:.*]] = kvcache.consume %[[KEYS]][%[[TILE]]]
// CHECK:                 kvcache.fragment_mma %[[QT]][%[[R0]], %c0{{.*}}], %{{.*}} {k = 128 : i64}
// CHECK:               %[[LAST:.*]] = arith.cmpi sge, %[[TILE]], %{{.*}} : index
// CHECK:               %[[X:.*]] = scf.if %[[LAST]] -> (!kvcache.fragment<64x128xf32, wgmma_acc>) {
// CHECK:                 %[[ENDS:.*]] = kvcache.map %{{.*}} at(%[[R0]]) : !kvcache.fragment<64xi32, wgmma_acc>
// CHECK:                 kvcache.map %[[S]], %[[ENDS]] at(%[[R0]], %c0
// CHECK:               %[[MAX:.*]] = kvcache.reduce maxnumf %[[X]] from %[[M]]
// CHECK:               %[[SHIFT:.*]] = kvcache.map %[[MAX]], %[[FACTOR]]
// CHECK:               %[[WEIGHTS:.*]] = kvcache.map %[[X]], %[[SHIFT]], %[[FACTOR]]
// CHECK:                 math.fma
// CHECK:                 math.exp2
// CHECK:               %[[P:.*]] = kvcache.to_operand %[[WEIGHTS]]
// CHECK:               %[[RESCALE:.*]] = kvcache.map %[[M]], %[[MAX]], %[[FACTOR]]
// CHECK:               %[[SHARE:.*]] = kvcache.map arith.mulf(%[[L]], %[[RESCALE]])
// CHECK:               %[[SUM:.*]] = kvcache.reduce addf %[[WEIGHTS]] from %[[SHARE]]
// CHECK:               %[[ACC:.*]] = kvcache.map arith.mulf(%[[O]], %[[RESCALE]])
// CHECK:               %[[NEXT:.*]] = kvcache.consume %[[VALUES]][%[[TILE]]]
// CHECK:                 kvcache.fragment_mma %[[P]], %{{.*}} add %[[ACC]]
// CHECK:               scf.yield %[[MAX]], %[[SUM]], %[[NEXT]]
// CHECK:             } {kvcache.schedule = #kvcache.schedule<ping_pong>}
// CHECK:             kvcache.store_rows %{{.*}} at(%[[R0]], %c0{{.*}}) to %[[OUT]] {alignment = 4 : i64}
// CHECK:             kvcache.store_rows %{{.*}} at(%[[R0]]) to %[[LSE]]
func.func @prompt(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %lse: memref<?x32xf32>) {
  kvcache.attention %q, %k, %v, %n, %s outs(%out, %lse) {causal}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>, memref<?x32xf32>
  return
}

// One warpgroup multiplies, with as many registers as it can use. Weights of f16 are at most 2^15.
// CHECK-LABEL: func.func @halves(
// CHECK:         scf.parallel {{.*}} to (%c256)
// CHECK:         kvcache.pipe : !kvcache.pipe<2, !kvcache.tile<128x128xf16, swizzle_128b>, producers = 4>
// CHECK:         arith.subf %cst{{.*}}, %{{.*}} : f32
// CHECK:         math.fma
// CHECK:         {kvcache.schedule = #kvcache.schedule<pipelined>}
func.func @halves(%q: memref<?x32x128xf16>, %k: !halves, %v: !halves, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xf16>) {
  kvcache.attention %q, %k, %v, %n, %s outs(%out) {config = #kvcache.attention_config<rows = 64, schedule = pipelined>}
      : memref<?x32x128xf16>, !halves, !halves, memref<?xi32>, f32, memref<?x32x128xf16>
  return
}

// A region takes scores in natural units, so that exponents have no factor: queries keep their sign.
// CHECK-LABEL: func.func @region(
// CHECK-NOT:     arith.xori
// CHECK:         kvcache.map %{{.*}}, %{{.*}} at(%{{.*}}, %{{.*}})
// CHECK-NEXT:    ^bb0(%[[E:.*]]: f32, %[[F:.*]]: f32, %{{.*}}: index, %{{.*}}: index):
// CHECK-NEXT:      arith.mulf %[[E]], %[[F]]
// CHECK:           memref.load
// CHECK-NOT:     math.fma
// CHECK:         {kvcache.schedule = #kvcache.schedule<ping_pong>}
func.func @region(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %biases: memref<?xf32>) {
  kvcache.attention %q, %k, %v, %n, %s outs(%out) {causal, config = #kvcache.attention_config<rows = 128, schedule = ping_pong>} score {
  ^bb0(%score: f32, %sequence: index, %head: index, %query: index, %key: index):
    %bias = memref.load %biases[%key] : memref<?xf32>
    %sum = arith.addf %score, %bias : f32
    kvcache.yield %sum : f32
  } : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// The threads that multiply clear the values that precede a window in its first page.
// CHECK-LABEL: func.func @window(
// CHECK:         %[[VALUES:.*]] = kvcache.pipe : {{.*}}, producers = 4>
// CHECK:         scf.for %[[TILE:.*]] = %c0
// The schedule gives tiles with these conditions loops of their own.
// CHECK:           %[[LAST:.*]] = arith.cmpi sge, %[[TILE]], %{{.*}} : index
// CHECK:           %[[BEGIN:.*]] = arith.cmpi slt, %[[TILE]], %{{.*}} : index
// CHECK:           %[[MASKED:.*]] = arith.ori %[[BEGIN]], %[[LAST]] : i1
// CHECK:           scf.if %[[MASKED]]
// CHECK:             %[[ENDS:.*]] = kvcache.map %{{.*}} at(%[[R0:.*]]) : !kvcache.fragment<64xi32, wgmma_acc>
// CHECK:             %[[BEGINS:.*]] = kvcache.map %{{.*}} at(%[[R0]]) : !kvcache.fragment<64xi32, wgmma_acc>
// CHECK:             kvcache.map %{{.*}}, %[[ENDS]], %[[BEGINS]] at(%[[R0]], %c0
// CHECK:           kvcache.consume %[[VALUES]]
// CHECK:             scf.if
// CHECK:               kvcache.tile_store
// CHECK:               nvvm.fence.proxy
// CHECK:               nvvm.barrier id = %c1_i32{{.*}} number_of_threads = %c256_i32
// CHECK:             kvcache.fragment_mma
func.func @window(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  kvcache.attention %q, %k, %v, %n, %s outs(%out) {causal, window = 64}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// Tokens that a region excludes for all rows are no tiles; where it admits all, it computes nothing.
// CHECK-LABEL: func.func @mask(
// CHECK:         scf.if %{{.*}} -> (!kvcache.fragment<64x96xf32, wgmma_acc>) {
// CHECK-NEXT:      kvcache.map %{{.*}} at(%{{.*}}, %{{.*}})
// CHECK-NEXT:      ^bb0(%[[E:.*]]: f32, %{{.*}}: index, %[[KEY:.*]]: index):
// CHECK:             arith.cmpi uge, %[[KEY]]
func.func @mask(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>, %first: index) {
  kvcache.attention %q, %k, %v, %n, %s outs(%out) {causal, config = #kvcache.attention_config<rows = 128, schedule = ping_pong>} mask {
  ^bb0(%sequence: index, %head: index, %query: index, %key: index):
    %sees = arith.cmpi uge, %key, %first : index
    kvcache.yield %sees : i1
  } : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// A soft cap takes a division for each score, and overlaps products. Its code is too large for loops of their own.
// CHECK-LABEL: func.func @soft_cap(
// CHECK:         %[[MASKED:.*]] = arith.cmpi slt, %{{.*}}, %{{.*}} : index
// CHECK-NEXT:    scf.if %[[MASKED]]
// CHECK:         kvcache.schedule = #kvcache.schedule<ping_pong>
func.func @soft_cap(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  kvcache.attention %q, %k, %v, %n, %s outs(%out) {causal, soft_cap = 50.0}
      : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}

// A region may need any number of registers. It overlaps products only on request.
// CHECK-LABEL: func.func @region_by_default(
// CHECK:         kvcache.schedule = #kvcache.schedule<prefetch>
func.func @region_by_default(%q: memref<?x32x128xbf16>, %k: !cache, %v: !cache, %n: memref<?xi32>, %s: f32, %out: memref<?x32x128xbf16>) {
  kvcache.attention %q, %k, %v, %n, %s outs(%out) {causal} mask {
  ^bb0(%sequence: index, %head: index, %query: index, %key: index):
    %sees = arith.cmpi ne, %key, %head : index
    kvcache.yield %sees : i1
  } : memref<?x32x128xbf16>, !cache, !cache, memref<?xi32>, f32, memref<?x32x128xbf16>
  return
}
