// RUN: kvcache-opt %s --kvcache-lower-fragments --canonicalize --cse | FileCheck %s

!codes = !kvcache.tile<16x32xi8, swizzle_32b>
!scales = !kvcache.tile<32x8xf16>
!probs = !kvcache.fragment<16x16xf16, mma_a16>
!values = !kvcache.in_flight<16x32xf32, mma_acc_quads>

gpu.module @products {
  // Keys: a word has eight elements of a row. Two scales of two pairs of groups are those of the lane's half of each pair.
  // Even and odd elements become high bytes, and `prmt` places two of them.
  // CHECK-LABEL: func.func @keys(
  // CHECK-DAG:     %[[SIGNS:.*]] = arith.constant -2139062144 : i32
  // CHECK-DAG:     %[[MAGNITUDES:.*]] = arith.constant 235802126 : i32
  // CHECK-DAG:     %[[PLACES:.*]] = arith.constant 9220 : i32
  // CHECK-DAG:     %[[NEXT:.*]] = arith.constant 13332 : i32
  // CHECK-DAG:     %[[ZERO:.*]] = arith.constant 0 : i32
  // CHECK:         %[[S0:.*]] = kvcache.tile_load %{{.*}} -> vector<2xf16>
  // CHECK:         %[[E0:.*]]:2 = vector.to_elements %[[S0]]
  // CHECK:         %[[S1:.*]] = kvcache.tile_load %{{.*}} -> vector<2xf16>
  // CHECK:         %[[E1:.*]]:2 = vector.to_elements %[[S1]]
  // CHECK:         %[[M:.*]] = nvvm.ldmatrix {{.*}} layout = #nvvm.mma_layout<row>, num = 4
  // CHECK:         %[[W:.*]] = llvm.extractvalue %[[M]][0]
  // CHECK:         %[[PAIR:.*]] = vector.broadcast %[[E0]]#0 : f16 to vector<2xf16>
  // CHECK-DAG:     %[[W4:.*]] = arith.shli %[[W]], %c4_i32 : i32
  // CHECK-DAG:     %[[SIGN:.*]] = arith.andi %[[W4]], %[[SIGNS]] : i32
  // CHECK-DAG:     %[[W1:.*]] = arith.shli %[[W]], %c1_i32 : i32
  // CHECK-DAG:     %[[MAGNITUDE:.*]] = arith.andi %[[W1]], %[[MAGNITUDES]] : i32
  // CHECK:         %[[EVEN:.*]] = arith.ori %[[SIGN]], %[[MAGNITUDE]] : i32
  // CHECK:         %[[FIRST:.*]] = nvvm.prmt <default> %[[PLACES]], %[[EVEN]], %[[ZERO]] : i32
  // CHECK:         vector.broadcast %[[FIRST]] : i32 to vector<1xi32>
  // CHECK:         %[[HALVES:.*]] = vector.bitcast %{{.*}} : vector<1xi32> to vector<2xf16>
  // CHECK:         arith.mulf %[[HALVES]], %[[PAIR]] : vector<2xf16>
  // CHECK:         nvvm.prmt <default> %[[NEXT]], %[[EVEN]], %[[ZERO]] : i32
  // CHECK:         arith.mulf %{{.*}}, %[[PAIR]] : vector<2xf16>
  // CHECK:         %[[ODD_SIGN:.*]] = arith.andi %[[W]], %[[SIGNS]] : i32
  // CHECK:         %[[W3:.*]] = arith.shrui %[[W]], %c3_i32 : i32
  // CHECK:         arith.andi %[[W3]], %[[MAGNITUDES]] : i32
  // CHECK-COUNT-8: nvvm.mma.sync
  // CHECK-NOT:     nvvm.mma.sync
  func.func @keys(%q: !kvcache.fragment<16x64xf16, mma_a16_quads>, %tile: !codes, %scales: !scales, %row: index)
      -> !kvcache.in_flight<16x16xf32, mma_acc> {
    %c0 = arith.constant 0 : index
    %p = kvcache.fragment_mma %q, %tile[%c0, %c0] scales %scales[%row] {packed = f4E2M1FN}
      : !kvcache.fragment<16x64xf16, mma_a16_quads>, !codes scales !scales -> !kvcache.in_flight<16x16xf32, mma_acc>
    return %p : !kvcache.in_flight<16x16xf32, mma_acc>
  }

  // Values: a word has four elements of two tokens, each with its scale. The part has one of two pairs of groups.
  // CHECK-LABEL: func.func @values(
  // CHECK-COUNT-4: kvcache.tile_load %{{.*}} -> vector<1xf16>
  // CHECK:         nvvm.ldmatrix {{.*}} layout = #nvvm.mma_layout<col>, num = 2
  // CHECK:         vector.from_elements %{{.*}}, %{{.*}} : vector<2xf16>
  // CHECK-COUNT-4: arith.mulf %{{.*}} : vector<2xf16>
  // CHECK:         vector.from_elements %{{.*}}, %{{.*}} : vector<2xf16>
  // CHECK-COUNT-4: arith.mulf %{{.*}} : vector<2xf16>
  // CHECK-COUNT-4: nvvm.mma.sync
  // CHECK-NOT:     nvvm.mma.sync
  func.func @values(%probs: !probs, %tile: !codes, %scales: !scales, %row: index, %column: index) -> !values {
    %c0 = arith.constant 0 : index
    %p = kvcache.fragment_mma %probs, %tile[%c0, %column] scales %scales[%row]
      {packed = f4E2M1FN, major_b = #kvcache.major<mn_major>} : !probs, !codes scales !scales -> !values
    return %p : !values
  }

  // Integers are mantissas of f16: elements i and i + 4 are 16 bits apart.
  // CHECK-LABEL: func.func @integers(
  // CHECK-DAG:     %[[MANTISSAS:.*]] = arith.constant 983055 : i32
  // CHECK-NOT:     kvcache.tile_load
  // CHECK:         %[[M:.*]] = nvvm.ldmatrix {{.*}} layout = #nvvm.mma_layout<row>, num = 2
  // CHECK:         %[[W:.*]] = llvm.extractvalue %[[M]][0]
  // CHECK-NOT:     nvvm.prmt
  // CHECK:         arith.andi %[[W]], %[[MANTISSAS]] : i32
  // CHECK:         %[[W4:.*]] = arith.shrui %[[W]], %c4_i32 : i32
  // CHECK:         arith.andi %[[W4]], %[[MANTISSAS]] : i32
  // CHECK:         %[[W8:.*]] = arith.shrui %[[W]], %c8_i32 : i32
  // CHECK:         arith.andi %[[W8]], %[[MANTISSAS]] : i32
  // CHECK:         %[[W12:.*]] = arith.shrui %[[W]], %c12_i32 : i32
  // CHECK:         arith.andi %[[W12]], %[[MANTISSAS]] : i32
  // CHECK-COUNT-4: nvvm.mma.sync
  // CHECK-NOT:     nvvm.mma.sync
  func.func @integers(%q: !kvcache.fragment<16x32xf16, mma_a16_quads>, %tile: !codes)
      -> !kvcache.in_flight<16x16xf32, mma_acc> {
    %c0 = arith.constant 0 : index
    %p = kvcache.fragment_mma %q, %tile[%c0, %c0] {packed = i4}
      : !kvcache.fragment<16x32xf16, mma_a16_quads>, !codes -> !kvcache.in_flight<16x16xf32, mma_acc>
    return %p : !kvcache.in_flight<16x16xf32, mma_acc>
  }

  // Without scales, elements of f4E2M1FN have no products.
  // CHECK-LABEL: func.func @floats(
  // CHECK-NOT:     kvcache.tile_load
  // CHECK:         nvvm.ldmatrix {{.*}} layout = #nvvm.mma_layout<col>, num = 2
  // CHECK-NOT:     arith.mulf
  // CHECK-COUNT-8: nvvm.prmt
  // CHECK-NOT:     arith.mulf
  // CHECK-COUNT-4: nvvm.mma.sync
  // CHECK-NOT:     nvvm.mma.sync
  func.func @floats(%probs: !probs, %tile: !codes, %column: index) -> !values {
    %c0 = arith.constant 0 : index
    %p = kvcache.fragment_mma %probs, %tile[%c0, %column] {packed = f4E2M1FN, major_b = #kvcache.major<mn_major>}
      : !probs, !codes -> !values
    return %p : !values
  }
}
