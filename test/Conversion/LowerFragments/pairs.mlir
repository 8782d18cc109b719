// RUN: kvcache-opt %s --kvcache-lower-fragments --canonicalize --cse | FileCheck %s

!s = !kvcache.fragment<64x8xf32, tmem_acc>
!row = !kvcache.fragment<64xf32, tmem_acc>
!share = !kvcache.fragment<64xf32, tmem_acc, partial>

// One instruction adds to two elements of a row. Products are single: ptxas adds to a paired one before it is rounded.
gpu.module @pairs [#nvvm.target<chip = "sm_100a">] {
  // CHECK-LABEL: func.func @map(
  // CHECK-SAME:    %[[X0:[^,]*]]: f32, %[[X1:[^,]*]]: f32, %[[X2:[^,]*]]: f32, %[[X3:[^,]*]]: f32, %[[SHIFT0:[^,]*]]: f32, %[[SHIFT1:[^,]*]]: f32, %[[SCALE:[^,]*]]: f32)
  // CHECK-DAG:     %[[SCALES:.*]] = vector.broadcast %[[SCALE]] : f32 to vector<2xf32>
  // CHECK-DAG:     %[[X01:.*]] = vector.from_elements %[[X0]], %[[X1]] : vector<2xf32>
  // CHECK-DAG:     %[[SHIFTS:.*]] = vector.broadcast %[[SHIFT0]] : f32 to vector<2xf32>
  // CHECK:         %[[Y01:.*]] = math.fma %[[X01]], %[[SCALES]], %[[SHIFTS]] : vector<2xf32>
  // CHECK-DAG:     %[[Y0:.*]] = vector.extract %[[Y01]][0] : f32 from vector<2xf32>
  // CHECK-DAG:     %[[Y1:.*]] = vector.extract %[[Y01]][1] : f32 from vector<2xf32>
  // CHECK:         %[[Z0:.*]] = arith.mulf %[[Y0]], %[[SCALE]] : f32
  // CHECK:         %[[Z1:.*]] = arith.mulf %[[Y1]], %[[SCALE]] : f32
  // CHECK:         %[[Z01:.*]] = vector.from_elements %[[Z0]], %[[Z1]] : vector<2xf32>
  // CHECK:         %[[D01:.*]] = arith.subf %[[Z01]], %[[X01]] : vector<2xf32>
  // CHECK-DAG:     %[[D0:.*]] = vector.extract %[[D01]][0] : f32 from vector<2xf32>
  // CHECK-DAG:     %[[D1:.*]] = vector.extract %[[D01]][1] : f32 from vector<2xf32>
  // CHECK:         vector.broadcast %[[SHIFT1]] : f32 to vector<2xf32>
  // CHECK:         return %[[D0]], %[[D1]], %{{.*}}, %{{.*}} : f32, f32, f32, f32
  func.func @map(%x: !s, %shift: !row, %scale: f32) -> !s {
    %y = kvcache.map %x, %shift : !s, !row -> !s {
    ^bb0(%e: f32, %b: f32):
      %shifted = math.fma %e, %scale, %b : f32
      %scaled = arith.mulf %shifted, %scale : f32
      %less = arith.subf %scaled, %e : f32
      kvcache.yield %less : f32
    }
    return %y : !s
  }

  // What is alike for all elements of a row, and what is no sum, is as on other chips.
  // CHECK-LABEL: func.func @single(
  // CHECK-NOT:     vector
  // CHECK:         return
  func.func @single(%x: !s, %shift: !row, %scale: f32) -> (!s, !row) {
    %y = kvcache.map %x, %shift : !s, !row -> !s {
    ^bb0(%e: f32, %b: f32):
      %sum = arith.addf %b, %scale : f32
      %product = arith.mulf %e, %sum : f32
      kvcache.yield %product : f32
    }
    %z = kvcache.map %shift : !row -> !row {
    ^bb0(%b: f32):
      %sum = arith.addf %b, %scale : f32
      kvcache.yield %sum : f32
    }
    return %y, %z : !s, !row
  }

  // Sums of elements with even and odd numbers; -0 plus a number is the number.
  // CHECK-LABEL: func.func @reduce(
  // CHECK-SAME:    %[[E0:[^,]*]]: f32, %[[E1:[^,]*]]: f32, %{{[^,]*}}: f32, %{{[^,]*}}: f32, %[[SHARE:[^,]*]]: f32, %{{[^,]*}}: f32)
  // CHECK:         %[[NONE:.*]] = arith.constant -0.000000e+00 : f32
  // CHECK:         %[[FIRST:.*]] = vector.from_elements %[[SHARE]], %[[NONE]] : vector<2xf32>
  // CHECK:         %[[E01:.*]] = vector.from_elements %[[E0]], %[[E1]] : vector<2xf32>
  // CHECK:         %[[SUMS:.*]] = arith.addf %[[FIRST]], %[[E01]] : vector<2xf32>
  // CHECK:         %[[BOTH:.*]]:2 = vector.to_elements %[[SUMS]] : vector<2xf32>
  // CHECK:         arith.addf %[[BOTH]]#0, %[[BOTH]]#1 : f32
  func.func @reduce(%s: !s, %shares: !share) -> !share {
    %added = kvcache.reduce addf %s from %shares : !s -> !share
    return %added : !share
  }
}

// The accumulator of a warp takes most of its registers.
gpu.module @warp [#nvvm.target<chip = "sm_100a">] {
  // CHECK-LABEL: func.func @warp(
  // CHECK-NOT:     vector
  // CHECK:         return
  func.func @warp(%s: !kvcache.fragment<16x8xf32, mma_acc>, %shares: !kvcache.fragment<16xf32, mma_acc, partial>)
      -> !kvcache.fragment<16xf32, mma_acc, partial> {
    %added = kvcache.reduce addf %s from %shares
        : !kvcache.fragment<16x8xf32, mma_acc> -> !kvcache.fragment<16xf32, mma_acc, partial>
    return %added : !kvcache.fragment<16xf32, mma_acc, partial>
  }
}

gpu.module @several [#nvvm.target<chip = "sm_100a">, #nvvm.target<chip = "sm_90a">] {
  // CHECK-LABEL: func.func @several_chips(
  // CHECK-NOT:     vector
  // CHECK:         return
  func.func @several_chips(%s: !s, %shares: !share) -> !share {
    %added = kvcache.reduce addf %s from %shares : !s -> !share
    return %added : !share
  }
}
