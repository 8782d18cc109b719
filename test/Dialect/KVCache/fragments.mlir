// RUN: kvcache-opt %s --verify-roundtrip | FileCheck %s
// RUN: kvcache-opt %s --mlir-print-op-generic | kvcache-opt | FileCheck %s
// RUN: kvcache-opt %s --emit-bytecode | kvcache-opt | FileCheck %s

!tile = !kvcache.tile<128x128xbf16, swizzle_128b>
!s = !kvcache.fragment<64x128xf32, wgmma_acc>
!p = !kvcache.fragment<64x128xbf16, wgmma_a16>
!row = !kvcache.fragment<64xf32, wgmma_acc>
!share = !kvcache.fragment<64xf32, wgmma_acc, partial>
!fly = !kvcache.in_flight<64x128xf32, wgmma_acc>
!q1 = !kvcache.fragment<16x128xbf16, mma_a16>
!s1 = !kvcache.fragment<16x64xf32, mma_acc>
!fly1 = !kvcache.in_flight<16x64xf32, mma_acc>

// CHECK-LABEL: func.func @types(
// CHECK-SAME:    !kvcache.fragment<64x32xf8E4M3FN, wgmma_a8>, %{{.*}}: !kvcache.fragment<16xi32, mma_acc, partial>, %{{.*}}: !kvcache.fragment<16x8xi1, mma_acc>, %{{.*}}: !kvcache.in_flight<64x256xi32, wgmma_acc>
func.func @types(%a: !kvcache.fragment<64x32xf8E4M3FN, wgmma_a8>, %b: !kvcache.fragment<16xi32, mma_acc, partial>,
                 %c: !kvcache.fragment<16x8xi1, mma_acc>, %d: !kvcache.in_flight<64x256xi32, wgmma_acc>) {
  return
}

// CHECK-LABEL: func.func @elements(
func.func @elements(%s: !s, %max: !row, %share: !share, %x: f32, %first: index, %key: index) -> (!s, !share) {
  // CHECK: %[[ZEROS:.*]] = kvcache.splat %{{.*}} : !kvcache.fragment<64x128xf32, wgmma_acc>
  %zeros = kvcache.splat %x : !s
  // CHECK: kvcache.map %{{.*}}, %{{.*}} at(%{{.*}}, %{{.*}}) : !kvcache.fragment<64x128xf32, wgmma_acc>, !kvcache.fragment<64xf32, wgmma_acc> -> !kvcache.fragment<64x128xf32, wgmma_acc> {
  // CHECK-NEXT: ^bb0(%[[E:.*]]: f32, %[[M:.*]]: f32, %[[R:.*]]: index, %[[C:.*]]: index):
  // CHECK-NEXT:   arith.cmpi ule, %[[C]], %[[R]] : index
  // CHECK:        kvcache.yield %{{.*}} : f32
  %y = kvcache.map %s, %max at(%first, %key) : !s, !row -> !s {
  ^bb0(%e: f32, %m: f32, %row: index, %column: index):
    %sees = arith.cmpi ule, %column, %row : index
    %seen = arith.select %sees, %e, %m : f32
    kvcache.yield %seen : f32
  }
  // CHECK: kvcache.map %{{.*}} at(%{{.*}}, %{{.*}}) {lane_columns} : !kvcache.fragment<64x128xf32, wgmma_acc> -> !kvcache.fragment<64x128xf32, wgmma_acc> {
  // CHECK-NEXT: ^bb0(%{{.*}}: f32, %{{.*}}: index, %{{.*}}: index, %{{.*}}: index):
  %z = kvcache.map %y at(%first, %key) {lane_columns} : !s -> !s {
  ^bb0(%e: f32, %row: index, %column: index, %distance: index):
    %bound = arith.subi %row, %column : index
    %sees = arith.cmpi sle, %distance, %bound : index
    %seen = arith.select %sees, %e, %x : f32
    kvcache.yield %seen : f32
  }
  // CHECK: kvcache.map arith.mulf(%{{.*}}, %{{.*}}) : !kvcache.fragment<64xf32, wgmma_acc, partial>, !kvcache.fragment<64xf32, wgmma_acc> -> !kvcache.fragment<64xf32, wgmma_acc, partial>
  %scaled = kvcache.map arith.mulf(%share, %max) : !share, !row -> !share
  // The same, written in full.
  // CHECK: kvcache.map arith.addf(%[[ZEROS]], %{{.*}}) : !kvcache.fragment<64x128xf32, wgmma_acc>, !kvcache.fragment<64xf32, wgmma_acc> -> !kvcache.fragment<64x128xf32, wgmma_acc>
  %sum = kvcache.map %zeros, %max : !s, !row -> !s {
  ^bb0(%e: f32, %m: f32):
    %added = arith.addf %e, %m : f32
    kvcache.yield %added : f32
  }
  // Other orders, flags and indices are written in full.
  // CHECK: kvcache.map %{{.*}}, %{{.*}} : {{.*}} {
  // CHECK:   arith.subf %{{.*}}, %{{.*}} fastmath<fast> : f32
  %fast = kvcache.map %sum, %max : !s, !row -> !s {
  ^bb0(%e: f32, %m: f32):
    %less = arith.subf %e, %m fastmath<fast> : f32
    kvcache.yield %less : f32
  }
  // CHECK: kvcache.map %{{.*}}, %{{.*}} : {{.*}} {
  // CHECK: ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32):
  // CHECK:   arith.subf %[[B]], %[[A]] : f32
  %swapped = kvcache.map %fast, %max : !s, !row -> !s {
  ^bb0(%e: f32, %m: f32):
    %less = arith.subf %m, %e : f32
    kvcache.yield %less : f32
  }
  // CHECK: kvcache.map %{{.*}} at(%{{.*}}) {named} : !kvcache.fragment<64xf32, wgmma_acc> -> !kvcache.fragment<64xi32, wgmma_acc> {
  %rows = kvcache.map %max at(%first) {named} : !row -> !kvcache.fragment<64xi32, wgmma_acc> {
  ^bb0(%m: f32, %row: index):
    %number = arith.index_cast %row : index to i32
    kvcache.yield %number : i32
  }
  // CHECK: %[[MAX:.*]] = kvcache.reduce maxnumf %{{.*}} from %{{.*}} : !kvcache.fragment<64x128xf32, wgmma_acc> -> !kvcache.fragment<64xf32, wgmma_acc>
  %most = kvcache.reduce maxnumf %swapped from %max : !s -> !row
  // CHECK: kvcache.reduce addf %{{.*}} from %{{.*}} : !kvcache.fragment<64x128xf32, wgmma_acc> -> !kvcache.fragment<64xf32, wgmma_acc, partial>
  %shares = kvcache.reduce addf %swapped from %scaled : !s -> !share
  // CHECK: kvcache.reduce addf %{{.*}} : !kvcache.fragment<64xf32, wgmma_acc, partial> -> !kvcache.fragment<64xf32, wgmma_acc>
  %all = kvcache.reduce addf %shares : !share -> !row
  return %y, %shares : !s, !share
}

// CHECK-LABEL: func.func @rows(
func.func @rows(%s: !s, %max: !row, %first: index, %count: index, %out: memref<?x4x128xbf16>, %logs: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  // CHECK: kvcache.store_rows %{{.*}} at(%{{.*}}, %{{.*}}) to %{{.*}} {alignment = 4 : i64} : !kvcache.fragment<64x128xf32, wgmma_acc>, memref<?x4x128xbf16> {
  // CHECK-NEXT: ^bb0(%[[R:.*]]: index):
  // CHECK:        kvcache.yield %{{.*}}, %{{.*}}, %{{.*}} : index, index, i1
  kvcache.store_rows %s at(%first, %c0) to %out {alignment = 4 : i64} : !s, memref<?x4x128xbf16> {
  ^bb0(%row: index):
    %c4 = arith.constant 4 : index
    %token = arith.divui %row, %c4 : index
    %head = arith.remui %row, %c4 : index
    %exists = arith.cmpi ult, %token, %count : index
    kvcache.yield %token, %head, %exists : index, index, i1
  }
  // CHECK: kvcache.store_rows %{{.*}} at(%{{.*}}) to %{{.*}} : !kvcache.fragment<64xf32, wgmma_acc>, memref<?xf32> {
  kvcache.store_rows %max at(%first) to %logs : !row, memref<?xf32> {
  ^bb0(%row: index):
    %exists = arith.cmpi ult, %row, %count : index
    kvcache.yield %row, %exists : index, i1
  }
  return
}

// CHECK-LABEL: func.func @split(
func.func @split(%s: !s, %max: !row, %first: index, %part: index, %count: index, %accs: memref<?x4x128xf32>, %states: memref<?x4x2xf32>) {
  // CHECK: kvcache.store_split %{{.*}}, %{{.*}}, %{{.*}} at(%{{.*}}, %{{.*}}) to %{{.*}}, %{{.*}} {alignment = 8 : i64} : !kvcache.fragment<64x128xf32, wgmma_acc>, !kvcache.fragment<64xf32, wgmma_acc>, memref<?x4x128xf32>, memref<?x4x2xf32> {
  // CHECK-NEXT: ^bb0(%[[R:.*]]: index):
  // CHECK:        kvcache.yield %{{.*}}, %[[R]], %{{.*}} : index, index, i1
  %c0 = arith.constant 0 : index
  kvcache.store_split %s, %max, %max at(%first, %c0) to %accs, %states {alignment = 8 : i64} : !s, !row, memref<?x4x128xf32>, memref<?x4x2xf32> {
  ^bb0(%row: index):
    %exists = arith.cmpi ult, %row, %count : index
    kvcache.yield %part, %row, %exists : index, index, i1
  }
  return
}

// CHECK-LABEL: func.func @tiles(
func.func @tiles(%tile: !tile, %row: index, %p: !p) -> !q1 {
  // CHECK: kvcache.fragment_store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] : !kvcache.fragment<64x128xbf16, wgmma_a16>, !kvcache.tile<128x128xbf16, swizzle_128b>
  kvcache.fragment_store %p, %tile[%row, %row] : !p, !tile
  // CHECK: kvcache.fragment_load %{{.*}}[%{{.*}}, %{{.*}}] : !kvcache.tile<128x128xbf16, swizzle_128b> -> !kvcache.fragment<16x128xbf16, mma_a16>
  %q = kvcache.fragment_load %tile[%row, %row] : !tile -> !q1
  return %q : !q1
}

// CHECK-LABEL: func.func @products(
func.func @products(%q: !tile, %k: !tile, %q1: !q1, %o: !s, %i: index) -> (!s, !s1) {
  // CHECK: kvcache.fragment_mma %{{.*}}[%{{.*}}, %{{.*}}], %{{.*}}[%{{.*}}, %{{.*}}] {k = 64 : i64} : !kvcache.tile<128x128xbf16, swizzle_128b>, !kvcache.tile<128x128xbf16, swizzle_128b> -> !kvcache.in_flight<64x128xf32, wgmma_acc>
  %first = kvcache.fragment_mma %q[%i, %i], %k[%i, %i] {k = 64} : !tile, !tile -> !fly
  // CHECK: kvcache.fragment_mma {{.*}} add %{{.*}} : !kvcache.tile<128x128xbf16, swizzle_128b>, !kvcache.tile<128x128xbf16, swizzle_128b>, !kvcache.in_flight<64x128xf32, wgmma_acc> -> !kvcache.in_flight<64x128xf32, wgmma_acc>
  %second = kvcache.fragment_mma %q[%i, %i], %k[%i, %i] add %first : !tile, !tile, !fly -> !fly
  // CHECK: kvcache.fragment_wait %{{.*}} : !kvcache.in_flight<64x128xf32, wgmma_acc>
  %s = kvcache.fragment_wait %second : !fly
  // CHECK: kvcache.to_operand %{{.*}} : !kvcache.fragment<64x128xf32, wgmma_acc> -> !kvcache.fragment<64x128xbf16, wgmma_a16>
  %p = kvcache.to_operand %s : !s -> !p
  // CHECK: kvcache.fragment_mma %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] add %{{.*}} {major_b = #kvcache.major<mn_major>} : !kvcache.fragment<64x128xbf16, wgmma_a16>, !kvcache.tile<128x128xbf16, swizzle_128b>, !kvcache.fragment<64x128xf32, wgmma_acc> -> !kvcache.in_flight<64x128xf32, wgmma_acc>
  %third = kvcache.fragment_mma %p, %k[%i, %i] add %o {major_b = #kvcache.major<mn_major>} : !p, !tile, !s -> !fly
  %fourth = kvcache.fragment_mma %p, %k[%i, %i] {major_b = #kvcache.major<mn_major>} : !p, !tile -> !fly
  // CHECK: kvcache.fragment_wait %{{.*}}, %{{.*}} pending 1 : !kvcache.in_flight<64x128xf32, wgmma_acc>, !kvcache.in_flight<64x128xf32, wgmma_acc>
  %both:2 = kvcache.fragment_wait %third, %fourth pending 1 : !fly, !fly
  // CHECK: kvcache.fragment_mma %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] : !kvcache.fragment<16x128xbf16, mma_a16>, !kvcache.tile<128x128xbf16, swizzle_128b> -> !kvcache.in_flight<16x64xf32, mma_acc>
  %warp = kvcache.fragment_mma %q1, %k[%i, %i] : !q1, !tile -> !fly1
  %done = kvcache.fragment_wait %warp : !fly1
  return %both#0, %done : !s, !s1
}

// CHECK-LABEL: func.func @stored_bytes(
func.func @stored_bytes(%q: !kvcache.fragment<16x64xf16, mma_a16_pairs>, %tile: !kvcache.tile<32x64xf8E4M3FN, swizzle_64b>,
                        %rows: !kvcache.fragment<16xf32, mma_acc>, %i: index) -> !kvcache.fragment<16x64xf32, mma_acc_pairs> {
  // CHECK: kvcache.fragment_mma %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] : !kvcache.fragment<16x64xf16, mma_a16_pairs>, !kvcache.tile<32x64xf8E4M3FN, swizzle_64b> -> !kvcache.in_flight<16x32xf32, mma_acc>
  %qk = kvcache.fragment_mma %q, %tile[%i, %i]
    : !kvcache.fragment<16x64xf16, mma_a16_pairs>, !kvcache.tile<32x64xf8E4M3FN, swizzle_64b> -> !kvcache.in_flight<16x32xf32, mma_acc>
  %s = kvcache.fragment_wait %qk : !kvcache.in_flight<16x32xf32, mma_acc>
  %p = kvcache.to_operand %s : !kvcache.fragment<16x32xf32, mma_acc> -> !kvcache.fragment<16x32xf16, mma_a16>
  // CHECK: kvcache.fragment_mma %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] {major_b = #kvcache.major<mn_major>} : !kvcache.fragment<16x32xf16, mma_a16>, !kvcache.tile<32x64xf8E4M3FN, swizzle_64b> -> !kvcache.in_flight<16x64xf32, mma_acc_pairs>
  %pv = kvcache.fragment_mma %p, %tile[%i, %i] {major_b = #kvcache.major<mn_major>}
    : !kvcache.fragment<16x32xf16, mma_a16>, !kvcache.tile<32x64xf8E4M3FN, swizzle_64b> -> !kvcache.in_flight<16x64xf32, mma_acc_pairs>
  %o = kvcache.fragment_wait %pv : !kvcache.in_flight<16x64xf32, mma_acc_pairs>
  // The rows of a thread are those of another layout.
  // CHECK: kvcache.map arith.mulf(%{{.*}}, %{{.*}}) : !kvcache.fragment<16x64xf32, mma_acc_pairs>, !kvcache.fragment<16xf32, mma_acc> -> !kvcache.fragment<16x64xf32, mma_acc_pairs>
  %y = kvcache.map arith.mulf(%o, %rows)
    : !kvcache.fragment<16x64xf32, mma_acc_pairs>, !kvcache.fragment<16xf32, mma_acc> -> !kvcache.fragment<16x64xf32, mma_acc_pairs>
  return %y : !kvcache.fragment<16x64xf32, mma_acc_pairs>
}

// CHECK-LABEL: func.func @loads(
// CHECK:         kvcache.fragment_load %{{.*}}[%{{.*}}, %{{.*}}] {repeated} : !kvcache.tile<3x64xf32> -> !kvcache.fragment<16x64xf32, mma_acc>
// CHECK:         kvcache.fragment_load %{{.*}}[%{{.*}}, %{{.*}}] {paired} : !kvcache.tile<16x64xf16> -> !kvcache.fragment<16x64xf16, mma_a16_pairs>
func.func @loads(%scales: !kvcache.tile<3x64xf32>, %rows: !kvcache.tile<16x64xf16>, %i: index)
    -> (!kvcache.fragment<16x64xf32, mma_acc>, !kvcache.fragment<16x64xf16, mma_a16_pairs>) {
  %x = kvcache.fragment_load %scales[%i, %i] {repeated} : !kvcache.tile<3x64xf32> -> !kvcache.fragment<16x64xf32, mma_acc>
  %y = kvcache.fragment_load %rows[%i, %i] {paired} : !kvcache.tile<16x64xf16> -> !kvcache.fragment<16x64xf16, mma_a16_pairs>
  return %x, %y : !kvcache.fragment<16x64xf32, mma_acc>, !kvcache.fragment<16x64xf16, mma_a16_pairs>
}

// CHECK-LABEL: func.func @fence(
// CHECK:         kvcache.schedule_fence %{{.*}} : !kvcache.fragment<64xf32, wgmma_acc, partial>
func.func @fence(%sums: !share) {
  kvcache.schedule_fence %sums : !share
  return
}

// CHECK-LABEL: func.func private @schedules() attributes {
// CHECK-SAME:    test.schedules = [#kvcache.schedule<pipelined>, #kvcache.schedule<ping_pong>, #kvcache.schedule<seesaw>, #kvcache.schedule<roles>, #kvcache.schedule<pair>]
func.func private @schedules() attributes {test.schedules = [#kvcache.schedule<pipelined>, #kvcache.schedule<ping_pong>, #kvcache.schedule<seesaw>, #kvcache.schedule<roles>, #kvcache.schedule<pair>]}

!st = !kvcache.fragment<16x64xf32, wgmma_acc_t>
!wt = !kvcache.fragment<16x64xbf16, wgmma_acc_t>
!rowt = !kvcache.fragment<16xf32, wgmma_acc_t>
!sharet = !kvcache.fragment<16xf32, wgmma_acc_t, partial>
!flyt = !kvcache.in_flight<16x64xf32, wgmma_acc_t>
!qt = !kvcache.tile<16x128xbf16, swizzle_128b>
!pt = !kvcache.tile<64x16xbf16, swizzle_32b>
!scratch = !kvcache.tile<4x16xf32>

// CHECK-LABEL: func.func @transposed(
func.func @transposed(%q: !qt, %k: !tile, %weights: !wt, %p: !pt, %scratch: !scratch, %max: !rowt, %i: index) -> (!st, !rowt, !rowt) {
  // CHECK: kvcache.fragment_mma %{{.*}}[%{{.*}}, %{{.*}}], %{{.*}}[%{{.*}}, %{{.*}}] : !kvcache.tile<16x128xbf16, swizzle_128b>, !kvcache.tile<128x128xbf16, swizzle_128b> -> !kvcache.in_flight<16x64xf32, wgmma_acc_t>
  %started = kvcache.fragment_mma %q[%i, %i], %k[%i, %i] : !qt, !tile -> !flyt
  %s = kvcache.fragment_wait %started : !flyt
  // CHECK: %[[THREAD:.*]] = kvcache.opaque_thread : index
  %thread = kvcache.opaque_thread : index
  // CHECK: kvcache.reduce maxnumf %{{.*}} from %{{.*}} across %{{.*}} thread %[[THREAD]] : !kvcache.fragment<16x64xf32, wgmma_acc_t>, !kvcache.tile<4x16xf32> -> !kvcache.fragment<16xf32, wgmma_acc_t>
  %most = kvcache.reduce maxnumf %s from %max across %scratch thread %thread : !st, !scratch -> !rowt
  %shares = kvcache.reduce addf %s : !st -> !sharet
  // CHECK: kvcache.reduce addf %{{.*}} across %{{.*}} : !kvcache.fragment<16xf32, wgmma_acc_t, partial>, !kvcache.tile<4x16xf32> -> !kvcache.fragment<16xf32, wgmma_acc_t>
  %sum = kvcache.reduce addf %shares across %scratch : !sharet, !scratch -> !rowt
  // CHECK: kvcache.fragment_store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] transposed thread %[[THREAD]] : !kvcache.fragment<16x64xbf16, wgmma_acc_t>, !kvcache.tile<64x16xbf16, swizzle_32b>
  kvcache.fragment_store %weights, %p[%i, %i] transposed thread %thread : !wt, !pt
  return %s, %most, %sum : !st, !rowt, !rowt
}

!places = !kvcache.fragment<16x64xf32, mma_acc>
!placed_row = !kvcache.fragment<16xf32, mma_acc>
!placed_left = !kvcache.fragment<16x64xbf16, mma_a16>
!placed_fly = !kvcache.in_flight<16x64xf32, mma_acc>
!placed_tile = !kvcache.tile<64x64xbf16, swizzle_128b>

// CHECK-LABEL: func.func @threads(
// CHECK-SAME: %[[THREAD:[^:]*]]: index)
func.func @threads(%tile: !placed_tile, %s: !places, %r: !placed_row, %accs: memref<?x64xf32>, %states: memref<?x2xf32>, %i: index, %thread: index) -> !places {
  // CHECK: kvcache.fragment_load %{{.*}}[%{{.*}}, %{{.*}}] thread %[[THREAD]] : !kvcache.tile
  %left = kvcache.fragment_load %tile[%i, %i] thread %thread : !placed_tile -> !placed_left
  // CHECK: kvcache.fragment_mma %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] add %{{.*}} thread %[[THREAD]] : !kvcache.fragment
  %started = kvcache.fragment_mma %left, %tile[%i, %i] add %s thread %thread : !placed_left, !placed_tile, !places -> !placed_fly
  %sums = kvcache.fragment_wait %started : !placed_fly
  // CHECK: kvcache.map %{{.*}} at(%{{.*}}, %{{.*}}) thread %[[THREAD]] : !kvcache.fragment
  %mapped = kvcache.map %sums at(%i, %i) thread %thread : !places -> !places {
  ^bb0(%e: f32, %row: index, %column: index):
    kvcache.yield %e : f32
  }
  // CHECK: kvcache.store_rows %{{.*}} at(%{{.*}}, %{{.*}}) to %{{.*}} thread %[[THREAD]] : !kvcache.fragment
  kvcache.store_rows %mapped at(%i, %i) to %accs thread %thread : !places, memref<?x64xf32> {
  ^bb0(%row: index):
    %true = arith.constant true
    kvcache.yield %row, %true : index, i1
  }
  // CHECK: kvcache.store_split %{{.*}}, %{{.*}}, %{{.*}} at(%{{.*}}, %{{.*}}) to %{{.*}}, %{{.*}} thread %[[THREAD]] : !kvcache.fragment
  kvcache.store_split %mapped, %r, %r at(%i, %i) to %accs, %states thread %thread
      : !places, !placed_row, memref<?x64xf32>, memref<?x2xf32> {
  ^bb0(%row: index):
    %true = arith.constant true
    kvcache.yield %row, %true : index, i1
  }
  return %mapped : !places
}

!flyw = !kvcache.in_flight<64x64xf32, wgmma_acc>
!both = !kvcache.fragment<64x64xf32, wgmma_acc>

// A wait is for all products of one instruction, in any layout.
// CHECK-LABEL: func.func @wait_layouts(
// CHECK:         kvcache.fragment_wait %{{.*}}, %{{.*}} : !kvcache.in_flight<64x64xf32, wgmma_acc>, !kvcache.in_flight<16x64xf32, wgmma_acc_t>
func.func @wait_layouts(%a: !flyw, %b: !flyt) -> (!both, !st) {
  %done:2 = kvcache.fragment_wait %a, %b : !flyw, !flyt
  return %done#0, %done#1 : !both, !st
}

// CHECK-LABEL: func.func @rows_first(
// CHECK:         kvcache.fragment_mma %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] {rows_first} : !kvcache.fragment
func.func @rows_first(%left: !placed_left, %tile: !placed_tile, %i: index) -> !placed_fly {
  %started = kvcache.fragment_mma %left, %tile[%i, %i] {rows_first} : !placed_left, !placed_tile -> !placed_fly
  return %started : !placed_fly
}

// CHECK-LABEL: func.func @paired(
// CHECK:         kvcache.fragment_load %{{.*}}[%{{.*}}, %{{.*}}] : !kvcache.tile<16x32xf8E4M3FN> -> !kvcache.fragment<16x32xf16, mma_a16_pairs>
// CHECK:         kvcache.fragment_mma %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] {paired} : !kvcache.fragment
func.func @paired(%keys: !kvcache.tile<16x32xf8E4M3FN>, %queries: !kvcache.tile<16x32xf16>, %i: index) -> !kvcache.in_flight<16x16xf32, mma_acc> {
  %left = kvcache.fragment_load %keys[%i, %i] : !kvcache.tile<16x32xf8E4M3FN> -> !kvcache.fragment<16x32xf16, mma_a16_pairs>
  %started = kvcache.fragment_mma %left, %queries[%i, %i] {paired}
      : !kvcache.fragment<16x32xf16, mma_a16_pairs>, !kvcache.tile<16x32xf16> -> !kvcache.in_flight<16x16xf32, mma_acc>
  return %started : !kvcache.in_flight<16x16xf32, mma_acc>
}

// CHECK-LABEL: func.func @packed_elements(
func.func @packed_elements(%q: !kvcache.fragment<16x64xf16, mma_a16_quads>, %tile: !kvcache.tile<64x32xi8, swizzle_32b>, %scales: !kvcache.tile<64x8xf16>, %i: index)
    -> !kvcache.fragment<16x64xf32, mma_acc_quads> {
  // CHECK: kvcache.fragment_mma %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] scales %{{.*}}[%{{.*}}] {packed = f4E2M1FN} : !kvcache.fragment<16x64xf16, mma_a16_quads>, !kvcache.tile<64x32xi8, swizzle_32b> scales !kvcache.tile<64x8xf16> -> !kvcache.in_flight<16x64xf32, mma_acc>
  %qk = kvcache.fragment_mma %q, %tile[%i, %i] scales %scales[%i] {packed = f4E2M1FN} : !kvcache.fragment<16x64xf16, mma_a16_quads>, !kvcache.tile<64x32xi8, swizzle_32b> scales !kvcache.tile<64x8xf16> -> !kvcache.in_flight<16x64xf32, mma_acc>
  %s = kvcache.fragment_wait %qk : !kvcache.in_flight<16x64xf32, mma_acc>
  %p = kvcache.map %s : !kvcache.fragment<16x64xf32, mma_acc> -> !kvcache.fragment<16x64xf32, mma_acc> {
  ^bb0(%e: f32):
    %y = math.exp2 %e : f32
    kvcache.yield %y : f32
  }
  %left = kvcache.to_operand %p : !kvcache.fragment<16x64xf32, mma_acc> -> !kvcache.fragment<16x64xf16, mma_a16>
  // CHECK: kvcache.fragment_mma %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] scales %{{.*}}[%{{.*}}] {major_b = #kvcache.major<mn_major>, packed = f4E2M1FN}
  %pv = kvcache.fragment_mma %left, %tile[%i, %i] scales %scales[%i] {major_b = #kvcache.major<mn_major>, packed = f4E2M1FN}
    : !kvcache.fragment<16x64xf16, mma_a16>, !kvcache.tile<64x32xi8, swizzle_32b> scales !kvcache.tile<64x8xf16> -> !kvcache.in_flight<16x64xf32, mma_acc_quads>
  %o = kvcache.fragment_wait %pv : !kvcache.in_flight<16x64xf32, mma_acc_quads>
  return %o : !kvcache.fragment<16x64xf32, mma_acc_quads>
}

// CHECK-LABEL: func.func @packed_integers(
func.func @packed_integers(%q: !kvcache.fragment<16x64xf16, mma_a16_quads>, %tile: !kvcache.tile<64x32xi8, swizzle_32b>, %i: index)
    -> !kvcache.in_flight<16x64xf32, mma_acc> {
  // CHECK: kvcache.fragment_mma %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] {packed = i4} : !kvcache.fragment<16x64xf16, mma_a16_quads>, !kvcache.tile<64x32xi8, swizzle_32b> -> !kvcache.in_flight<16x64xf32, mma_acc>
  %qk = kvcache.fragment_mma %q, %tile[%i, %i] {packed = i4} : !kvcache.fragment<16x64xf16, mma_a16_quads>, !kvcache.tile<64x32xi8, swizzle_32b> -> !kvcache.in_flight<16x64xf32, mma_acc>
  return %qk : !kvcache.in_flight<16x64xf32, mma_acc>
}
