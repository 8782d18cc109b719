// RUN: kvcache-opt %s -o %t.text
// RUN: kvcache-opt %S/fragments.mlirbc -o %t.bytecode
// RUN: diff %t.text %t.bytecode

module {
  func.func @types(%arg0: !kvcache.fragment<64x32xf8E4M3FN, wgmma_a8>, %arg1: !kvcache.fragment<16xi32, mma_acc, partial>, %arg2: !kvcache.fragment<16x8xi1, mma_acc>, %arg3: !kvcache.in_flight<64x256xi32, wgmma_acc>) {
    return
  }
  func.func @elements(%arg0: !kvcache.fragment<64x128xf32, wgmma_acc>, %arg1: !kvcache.fragment<64xf32, wgmma_acc>, %arg2: !kvcache.fragment<64xf32, wgmma_acc, partial>, %arg3: f32, %arg4: index, %arg5: index) -> (!kvcache.fragment<64x128xf32, wgmma_acc>, !kvcache.fragment<64xf32, wgmma_acc, partial>) {
    %0 = kvcache.splat %arg3 : !kvcache.fragment<64x128xf32, wgmma_acc>
    %1 = kvcache.map %arg0, %arg1 at(%arg4, %arg5) : !kvcache.fragment<64x128xf32, wgmma_acc>, !kvcache.fragment<64xf32, wgmma_acc> -> !kvcache.fragment<64x128xf32, wgmma_acc> {
    ^bb0(%arg6: f32, %arg7: f32, %arg8: index, %arg9: index):
      %11 = arith.cmpi ule, %arg9, %arg8 : index
      %12 = arith.select %11, %arg6, %arg7 : f32
      kvcache.yield %12 : f32
    }
    %2 = kvcache.map %1 at(%arg4, %arg5) {lane_columns} : !kvcache.fragment<64x128xf32, wgmma_acc> -> !kvcache.fragment<64x128xf32, wgmma_acc> {
    ^bb0(%arg6: f32, %arg7: index, %arg8: index, %arg9: index):
      %11 = arith.subi %arg7, %arg8 : index
      %12 = arith.cmpi sle, %arg9, %11 : index
      %13 = arith.select %12, %arg6, %arg3 : f32
      kvcache.yield %13 : f32
    }
    %3 = kvcache.map arith.mulf(%arg2, %arg1) : !kvcache.fragment<64xf32, wgmma_acc, partial>, !kvcache.fragment<64xf32, wgmma_acc> -> !kvcache.fragment<64xf32, wgmma_acc, partial>
    %4 = kvcache.map arith.addf(%0, %arg1) : !kvcache.fragment<64x128xf32, wgmma_acc>, !kvcache.fragment<64xf32, wgmma_acc> -> !kvcache.fragment<64x128xf32, wgmma_acc>
    %5 = kvcache.map %4, %arg1 : !kvcache.fragment<64x128xf32, wgmma_acc>, !kvcache.fragment<64xf32, wgmma_acc> -> !kvcache.fragment<64x128xf32, wgmma_acc> {
    ^bb0(%arg6: f32, %arg7: f32):
      %11 = arith.subf %arg6, %arg7 fastmath<fast> : f32
      kvcache.yield %11 : f32
    }
    %6 = kvcache.map %5, %arg1 : !kvcache.fragment<64x128xf32, wgmma_acc>, !kvcache.fragment<64xf32, wgmma_acc> -> !kvcache.fragment<64x128xf32, wgmma_acc> {
    ^bb0(%arg6: f32, %arg7: f32):
      %11 = arith.subf %arg7, %arg6 : f32
      kvcache.yield %11 : f32
    }
    %7 = kvcache.map %arg1 at(%arg4) {named} : !kvcache.fragment<64xf32, wgmma_acc> -> !kvcache.fragment<64xi32, wgmma_acc> {
    ^bb0(%arg6: f32, %arg7: index):
      %11 = arith.index_cast %arg7 : index to i32
      kvcache.yield %11 : i32
    }
    %8 = kvcache.reduce maxnumf %6 from %arg1 : !kvcache.fragment<64x128xf32, wgmma_acc> -> !kvcache.fragment<64xf32, wgmma_acc>
    %9 = kvcache.reduce addf %6 from %3 : !kvcache.fragment<64x128xf32, wgmma_acc> -> !kvcache.fragment<64xf32, wgmma_acc, partial>
    %10 = kvcache.reduce addf %9 : !kvcache.fragment<64xf32, wgmma_acc, partial> -> !kvcache.fragment<64xf32, wgmma_acc>
    return %1, %9 : !kvcache.fragment<64x128xf32, wgmma_acc>, !kvcache.fragment<64xf32, wgmma_acc, partial>
  }
  func.func @rows(%arg0: !kvcache.fragment<64x128xf32, wgmma_acc>, %arg1: !kvcache.fragment<64xf32, wgmma_acc>, %arg2: index, %arg3: index, %arg4: memref<?x4x128xbf16>, %arg5: memref<?xf32>) {
    %c0 = arith.constant 0 : index
    kvcache.store_rows %arg0 at(%arg2, %c0) to %arg4 {alignment = 4 : i64} : !kvcache.fragment<64x128xf32, wgmma_acc>, memref<?x4x128xbf16> {
    ^bb0(%arg6: index):
      %c4 = arith.constant 4 : index
      %0 = arith.divui %arg6, %c4 : index
      %1 = arith.remui %arg6, %c4 : index
      %2 = arith.cmpi ult, %0, %arg3 : index
      kvcache.yield %0, %1, %2 : index, index, i1
    }
    kvcache.store_rows %arg1 at(%arg2) to %arg5 : !kvcache.fragment<64xf32, wgmma_acc>, memref<?xf32> {
    ^bb0(%arg6: index):
      %0 = arith.cmpi ult, %arg6, %arg3 : index
      kvcache.yield %arg6, %0 : index, i1
    }
    return
  }
  func.func @split(%arg0: !kvcache.fragment<64x128xf32, wgmma_acc>, %arg1: !kvcache.fragment<64xf32, wgmma_acc>, %arg2: index, %arg3: index, %arg4: index, %arg5: memref<?x4x128xf32>, %arg6: memref<?x4x2xf32>) {
    %c0 = arith.constant 0 : index
    kvcache.store_split %arg0, %arg1, %arg1 at(%arg2, %c0) to %arg5, %arg6 {alignment = 8 : i64} : !kvcache.fragment<64x128xf32, wgmma_acc>, !kvcache.fragment<64xf32, wgmma_acc>, memref<?x4x128xf32>, memref<?x4x2xf32> {
    ^bb0(%arg7: index):
      %0 = arith.cmpi ult, %arg7, %arg4 : index
      kvcache.yield %arg3, %arg7, %0 : index, index, i1
    }
    return
  }
  func.func @tiles(%arg0: !kvcache.tile<128x128xbf16, swizzle_128b>, %arg1: index, %arg2: !kvcache.fragment<64x128xbf16, wgmma_a16>) -> !kvcache.fragment<16x128xbf16, mma_a16> {
    kvcache.fragment_store %arg2, %arg0[%arg1, %arg1] : !kvcache.fragment<64x128xbf16, wgmma_a16>, !kvcache.tile<128x128xbf16, swizzle_128b>
    %0 = kvcache.fragment_load %arg0[%arg1, %arg1] : !kvcache.tile<128x128xbf16, swizzle_128b> -> !kvcache.fragment<16x128xbf16, mma_a16>
    return %0 : !kvcache.fragment<16x128xbf16, mma_a16>
  }
  func.func @products(%arg0: !kvcache.tile<128x128xbf16, swizzle_128b>, %arg1: !kvcache.tile<128x128xbf16, swizzle_128b>, %arg2: !kvcache.fragment<16x128xbf16, mma_a16>, %arg3: !kvcache.fragment<64x128xf32, wgmma_acc>, %arg4: index) -> (!kvcache.fragment<64x128xf32, wgmma_acc>, !kvcache.fragment<16x64xf32, mma_acc>) {
    %0 = kvcache.fragment_mma %arg0[%arg4, %arg4], %arg1[%arg4, %arg4] {k = 64 : i64} : !kvcache.tile<128x128xbf16, swizzle_128b>, !kvcache.tile<128x128xbf16, swizzle_128b> -> !kvcache.in_flight<64x128xf32, wgmma_acc>
    %1 = kvcache.fragment_mma %arg0[%arg4, %arg4], %arg1[%arg4, %arg4] add %0 : !kvcache.tile<128x128xbf16, swizzle_128b>, !kvcache.tile<128x128xbf16, swizzle_128b>, !kvcache.in_flight<64x128xf32, wgmma_acc> -> !kvcache.in_flight<64x128xf32, wgmma_acc>
    %2 = kvcache.fragment_wait %1 : !kvcache.in_flight<64x128xf32, wgmma_acc>
    %3 = kvcache.to_operand %2 : !kvcache.fragment<64x128xf32, wgmma_acc> -> !kvcache.fragment<64x128xbf16, wgmma_a16>
    %4 = kvcache.fragment_mma %3, %arg1[%arg4, %arg4] add %arg3 {major_b = #kvcache.major<mn_major>} : !kvcache.fragment<64x128xbf16, wgmma_a16>, !kvcache.tile<128x128xbf16, swizzle_128b>, !kvcache.fragment<64x128xf32, wgmma_acc> -> !kvcache.in_flight<64x128xf32, wgmma_acc>
    %5 = kvcache.fragment_mma %3, %arg1[%arg4, %arg4] {major_b = #kvcache.major<mn_major>} : !kvcache.fragment<64x128xbf16, wgmma_a16>, !kvcache.tile<128x128xbf16, swizzle_128b> -> !kvcache.in_flight<64x128xf32, wgmma_acc>
    %6:2 = kvcache.fragment_wait %4, %5 pending 1 : !kvcache.in_flight<64x128xf32, wgmma_acc>, !kvcache.in_flight<64x128xf32, wgmma_acc>
    %7 = kvcache.fragment_mma %arg2, %arg1[%arg4, %arg4] : !kvcache.fragment<16x128xbf16, mma_a16>, !kvcache.tile<128x128xbf16, swizzle_128b> -> !kvcache.in_flight<16x64xf32, mma_acc>
    %8 = kvcache.fragment_wait %7 : !kvcache.in_flight<16x64xf32, mma_acc>
    return %6#0, %8 : !kvcache.fragment<64x128xf32, wgmma_acc>, !kvcache.fragment<16x64xf32, mma_acc>
  }
  func.func @stored_bytes(%arg0: !kvcache.fragment<16x64xf16, mma_a16_pairs>, %arg1: !kvcache.tile<32x64xf8E4M3FN, swizzle_64b>, %arg2: !kvcache.fragment<16xf32, mma_acc>, %arg3: index) -> !kvcache.fragment<16x64xf32, mma_acc_pairs> {
    %0 = kvcache.fragment_mma %arg0, %arg1[%arg3, %arg3] : !kvcache.fragment<16x64xf16, mma_a16_pairs>, !kvcache.tile<32x64xf8E4M3FN, swizzle_64b> -> !kvcache.in_flight<16x32xf32, mma_acc>
    %1 = kvcache.fragment_wait %0 : !kvcache.in_flight<16x32xf32, mma_acc>
    %2 = kvcache.to_operand %1 : !kvcache.fragment<16x32xf32, mma_acc> -> !kvcache.fragment<16x32xf16, mma_a16>
    %3 = kvcache.fragment_mma %2, %arg1[%arg3, %arg3] {major_b = #kvcache.major<mn_major>} : !kvcache.fragment<16x32xf16, mma_a16>, !kvcache.tile<32x64xf8E4M3FN, swizzle_64b> -> !kvcache.in_flight<16x64xf32, mma_acc_pairs>
    %4 = kvcache.fragment_wait %3 : !kvcache.in_flight<16x64xf32, mma_acc_pairs>
    %5 = kvcache.map arith.mulf(%4, %arg2) : !kvcache.fragment<16x64xf32, mma_acc_pairs>, !kvcache.fragment<16xf32, mma_acc> -> !kvcache.fragment<16x64xf32, mma_acc_pairs>
    return %5 : !kvcache.fragment<16x64xf32, mma_acc_pairs>
  }
  func.func @loads(%arg0: !kvcache.tile<3x64xf32>, %arg1: !kvcache.tile<16x64xf16>, %arg2: index) -> (!kvcache.fragment<16x64xf32, mma_acc>, !kvcache.fragment<16x64xf16, mma_a16_pairs>) {
    %0 = kvcache.fragment_load %arg0[%arg2, %arg2] {repeated} : !kvcache.tile<3x64xf32> -> !kvcache.fragment<16x64xf32, mma_acc>
    %1 = kvcache.fragment_load %arg1[%arg2, %arg2] {paired} : !kvcache.tile<16x64xf16> -> !kvcache.fragment<16x64xf16, mma_a16_pairs>
    return %0, %1 : !kvcache.fragment<16x64xf32, mma_acc>, !kvcache.fragment<16x64xf16, mma_a16_pairs>
  }
  func.func @fence(%arg0: !kvcache.fragment<64xf32, wgmma_acc, partial>) {
    kvcache.schedule_fence %arg0 : !kvcache.fragment<64xf32, wgmma_acc, partial>
    return
  }
  func.func private @schedules() attributes {test.schedules = [#kvcache.schedule<pipelined>, #kvcache.schedule<ping_pong>, #kvcache.schedule<seesaw>, #kvcache.schedule<roles>, #kvcache.schedule<pair>]}
  func.func @transposed(%arg0: !kvcache.tile<16x128xbf16, swizzle_128b>, %arg1: !kvcache.tile<128x128xbf16, swizzle_128b>, %arg2: !kvcache.fragment<16x64xbf16, wgmma_acc_t>, %arg3: !kvcache.tile<64x16xbf16, swizzle_32b>, %arg4: !kvcache.tile<4x16xf32>, %arg5: !kvcache.fragment<16xf32, wgmma_acc_t>, %arg6: index) -> (!kvcache.fragment<16x64xf32, wgmma_acc_t>, !kvcache.fragment<16xf32, wgmma_acc_t>, !kvcache.fragment<16xf32, wgmma_acc_t>) {
    %0 = kvcache.fragment_mma %arg0[%arg6, %arg6], %arg1[%arg6, %arg6] : !kvcache.tile<16x128xbf16, swizzle_128b>, !kvcache.tile<128x128xbf16, swizzle_128b> -> !kvcache.in_flight<16x64xf32, wgmma_acc_t>
    %1 = kvcache.fragment_wait %0 : !kvcache.in_flight<16x64xf32, wgmma_acc_t>
    %2 = kvcache.opaque_thread : index
    %3 = kvcache.reduce maxnumf %1 from %arg5 across %arg4 thread %2 : !kvcache.fragment<16x64xf32, wgmma_acc_t>, !kvcache.tile<4x16xf32> -> !kvcache.fragment<16xf32, wgmma_acc_t>
    %4 = kvcache.reduce addf %1 : !kvcache.fragment<16x64xf32, wgmma_acc_t> -> !kvcache.fragment<16xf32, wgmma_acc_t, partial>
    %5 = kvcache.reduce addf %4 across %arg4 : !kvcache.fragment<16xf32, wgmma_acc_t, partial>, !kvcache.tile<4x16xf32> -> !kvcache.fragment<16xf32, wgmma_acc_t>
    kvcache.fragment_store %arg2, %arg3[%arg6, %arg6] transposed thread %2 : !kvcache.fragment<16x64xbf16, wgmma_acc_t>, !kvcache.tile<64x16xbf16, swizzle_32b>
    return %1, %3, %5 : !kvcache.fragment<16x64xf32, wgmma_acc_t>, !kvcache.fragment<16xf32, wgmma_acc_t>, !kvcache.fragment<16xf32, wgmma_acc_t>
  }
  func.func @threads(%arg0: !kvcache.tile<64x64xbf16, swizzle_128b>, %arg1: !kvcache.fragment<16x64xf32, mma_acc>, %arg2: !kvcache.fragment<16xf32, mma_acc>, %arg3: memref<?x64xf32>, %arg4: memref<?x2xf32>, %arg5: index, %arg6: index) -> !kvcache.fragment<16x64xf32, mma_acc> {
    %0 = kvcache.fragment_load %arg0[%arg5, %arg5] thread %arg6 : !kvcache.tile<64x64xbf16, swizzle_128b> -> !kvcache.fragment<16x64xbf16, mma_a16>
    %1 = kvcache.fragment_mma %0, %arg0[%arg5, %arg5] add %arg1 thread %arg6 : !kvcache.fragment<16x64xbf16, mma_a16>, !kvcache.tile<64x64xbf16, swizzle_128b>, !kvcache.fragment<16x64xf32, mma_acc> -> !kvcache.in_flight<16x64xf32, mma_acc>
    %2 = kvcache.fragment_wait %1 : !kvcache.in_flight<16x64xf32, mma_acc>
    %3 = kvcache.map %2 at(%arg5, %arg5) thread %arg6 : !kvcache.fragment<16x64xf32, mma_acc> -> !kvcache.fragment<16x64xf32, mma_acc> {
    ^bb0(%arg7: f32, %arg8: index, %arg9: index):
      kvcache.yield %arg7 : f32
    }
    kvcache.store_rows %3 at(%arg5, %arg5) to %arg3 thread %arg6 : !kvcache.fragment<16x64xf32, mma_acc>, memref<?x64xf32> {
    ^bb0(%arg7: index):
      %true = arith.constant true
      kvcache.yield %arg7, %true : index, i1
    }
    kvcache.store_split %3, %arg2, %arg2 at(%arg5, %arg5) to %arg3, %arg4 thread %arg6 : !kvcache.fragment<16x64xf32, mma_acc>, !kvcache.fragment<16xf32, mma_acc>, memref<?x64xf32>, memref<?x2xf32> {
    ^bb0(%arg7: index):
      %true = arith.constant true
      kvcache.yield %arg7, %true : index, i1
    }
    return %3 : !kvcache.fragment<16x64xf32, mma_acc>
  }
  func.func @wait_layouts(%arg0: !kvcache.in_flight<64x64xf32, wgmma_acc>, %arg1: !kvcache.in_flight<16x64xf32, wgmma_acc_t>) -> (!kvcache.fragment<64x64xf32, wgmma_acc>, !kvcache.fragment<16x64xf32, wgmma_acc_t>) {
    %0:2 = kvcache.fragment_wait %arg0, %arg1 : !kvcache.in_flight<64x64xf32, wgmma_acc>, !kvcache.in_flight<16x64xf32, wgmma_acc_t>
    return %0#0, %0#1 : !kvcache.fragment<64x64xf32, wgmma_acc>, !kvcache.fragment<16x64xf32, wgmma_acc_t>
  }
  func.func @rows_first(%arg0: !kvcache.fragment<16x64xbf16, mma_a16>, %arg1: !kvcache.tile<64x64xbf16, swizzle_128b>, %arg2: index) -> !kvcache.in_flight<16x64xf32, mma_acc> {
    %0 = kvcache.fragment_mma %arg0, %arg1[%arg2, %arg2] {rows_first} : !kvcache.fragment<16x64xbf16, mma_a16>, !kvcache.tile<64x64xbf16, swizzle_128b> -> !kvcache.in_flight<16x64xf32, mma_acc>
    return %0 : !kvcache.in_flight<16x64xf32, mma_acc>
  }
  func.func @paired(%arg0: !kvcache.tile<16x32xf8E4M3FN>, %arg1: !kvcache.tile<16x32xf16>, %arg2: index) -> !kvcache.in_flight<16x16xf32, mma_acc> {
    %0 = kvcache.fragment_load %arg0[%arg2, %arg2] : !kvcache.tile<16x32xf8E4M3FN> -> !kvcache.fragment<16x32xf16, mma_a16_pairs>
    %1 = kvcache.fragment_mma %0, %arg1[%arg2, %arg2] {paired} : !kvcache.fragment<16x32xf16, mma_a16_pairs>, !kvcache.tile<16x32xf16> -> !kvcache.in_flight<16x16xf32, mma_acc>
    return %1 : !kvcache.in_flight<16x16xf32, mma_acc>
  }
  func.func @packed_elements(%arg0: !kvcache.fragment<16x64xf16, mma_a16_quads>, %arg1: !kvcache.tile<64x32xi8, swizzle_32b>, %arg2: !kvcache.tile<64x8xf16>, %arg3: index) -> !kvcache.fragment<16x64xf32, mma_acc_quads> {
    %0 = kvcache.fragment_mma %arg0, %arg1[%arg3, %arg3] scales %arg2[%arg3] {packed = f4E2M1FN} : !kvcache.fragment<16x64xf16, mma_a16_quads>, !kvcache.tile<64x32xi8, swizzle_32b> scales !kvcache.tile<64x8xf16> -> !kvcache.in_flight<16x64xf32, mma_acc>
    %1 = kvcache.fragment_wait %0 : !kvcache.in_flight<16x64xf32, mma_acc>
    %2 = kvcache.map math.exp2(%1) : !kvcache.fragment<16x64xf32, mma_acc> -> !kvcache.fragment<16x64xf32, mma_acc>
    %3 = kvcache.to_operand %2 : !kvcache.fragment<16x64xf32, mma_acc> -> !kvcache.fragment<16x64xf16, mma_a16>
    %4 = kvcache.fragment_mma %3, %arg1[%arg3, %arg3] scales %arg2[%arg3] {major_b = #kvcache.major<mn_major>, packed = f4E2M1FN} : !kvcache.fragment<16x64xf16, mma_a16>, !kvcache.tile<64x32xi8, swizzle_32b> scales !kvcache.tile<64x8xf16> -> !kvcache.in_flight<16x64xf32, mma_acc_quads>
    %5 = kvcache.fragment_wait %4 : !kvcache.in_flight<16x64xf32, mma_acc_quads>
    return %5 : !kvcache.fragment<16x64xf32, mma_acc_quads>
  }
  func.func @packed_integers(%arg0: !kvcache.fragment<16x64xf16, mma_a16_quads>, %arg1: !kvcache.tile<64x32xi8, swizzle_32b>, %arg2: index) -> !kvcache.in_flight<16x64xf32, mma_acc> {
    %0 = kvcache.fragment_mma %arg0, %arg1[%arg2, %arg2] {packed = i4} : !kvcache.fragment<16x64xf16, mma_a16_quads>, !kvcache.tile<64x32xi8, swizzle_32b> -> !kvcache.in_flight<16x64xf32, mma_acc>
    return %0 : !kvcache.in_flight<16x64xf32, mma_acc>
  }
}

