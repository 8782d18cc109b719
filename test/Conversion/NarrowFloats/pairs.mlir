// RUN: kvcache-opt %s --kvcache-narrow-floats --split-input-file | FileCheck %s

// Lanes of 4 bits are loaded and stored as bytes: no vector of them is left.

// CHECK-LABEL: func.func @extend(
// CHECK-SAME:      %[[BYTES:.*]]: vector<8xi8>)
// CHECK-NOT:     f4E2M1FN
// CHECK-NOT:     xi4>
// CHECK-DAG:     %[[FOUR:.*]] = arith.constant dense<4> : vector<8xi8>
// CHECK-DAG:     %[[UPPER:.*]] = arith.constant dense<-16> : vector<8xi8>
// CHECK:         %[[EVEN:.*]] = arith.shli %[[BYTES]], %[[FOUR]]
// CHECK:         %[[ODD:.*]] = arith.andi %[[BYTES]], %[[UPPER]]
// CHECK:         %[[LANES:.*]] = vector.interleave %[[EVEN]], %[[ODD]] : vector<8xi8> -> vector<16xi8>
// CHECK:         %[[WIDE:.*]] = arith.extsi %[[LANES]] : vector<16xi8> to vector<16xi32>
// CHECK:         arith.shli %[[WIDE]], %{{.*}}
// CHECK:         arith.mulf
// CHECK-NOT:     arith.select
// CHECK:         return %{{.*}} : vector<16xf32>
func.func @extend(%bytes: vector<8xi8>) -> vector<16xf32> {
  %0 = vector.bitcast %bytes : vector<8xi8> to vector<16xf4E2M1FN>
  %1 = arith.extf %0 : vector<16xf4E2M1FN> to vector<16xf32>
  return %1 : vector<16xf32>
}

// -----

// CHECK-LABEL: func.func @truncate(
// CHECK-NOT:     f4E2M1FN
// CHECK-NOT:     xi4>
// CHECK:         %[[FOUR:.*]] = arith.constant dense<4> : vector<8xi8>
// CHECK:         %[[LANES:.*]] = arith.trunci %{{.*}} : vector<16xi32> to vector<16xi8>
// CHECK:         %[[EVEN:.*]], %[[ODD:.*]] = vector.deinterleave %[[LANES]] : vector<16xi8> -> vector<8xi8>
// CHECK:         %[[UPPER:.*]] = arith.shli %[[ODD]], %[[FOUR]]
// CHECK:         %[[BYTES:.*]] = arith.ori %[[EVEN]], %[[UPPER]]
// CHECK:         return %[[BYTES]] : vector<8xi8>
func.func @truncate(%x: vector<16xf32>) -> vector<8xi8> {
  %0 = arith.truncf %x : vector<16xf32> to vector<16xf4E2M1FN>
  %1 = vector.bitcast %0 : vector<16xf4E2M1FN> to vector<8xi8>
  return %1 : vector<8xi8>
}

// -----

// Other shapes go lane by lane.

// CHECK-LABEL: func.func @other_shapes(
// CHECK-DAG:     arith.bitcast %{{.*}} : f4E2M1FN to i4
// CHECK-DAG:     arith.bitcast %{{.*}} : vector<3xf4E2M1FN> to vector<3xi4>
// CHECK-DAG:     arith.bitcast %{{.*}} : vector<2x4xf4E2M1FN> to vector<2x4xi4>
// CHECK-DAG:     arith.bitcast %{{.*}} : vector<f4E2M1FN> to vector<i4>
// CHECK-DAG:     arith.bitcast %{{.*}} : vector<16xf6E2M3FN> to vector<16xi6>
func.func @other_shapes(%x: f4E2M1FN, %y: vector<3xf4E2M1FN>, %z: vector<2x4xf4E2M1FN>,
                        %u: vector<f4E2M1FN>, %v: vector<16xf6E2M3FN>)
    -> (f32, vector<3xf32>, vector<2x4xf32>, vector<f32>, vector<16xf32>) {
  %0 = arith.extf %x : f4E2M1FN to f32
  %1 = arith.extf %y : vector<3xf4E2M1FN> to vector<3xf32>
  %2 = arith.extf %z : vector<2x4xf4E2M1FN> to vector<2x4xf32>
  %3 = arith.extf %u : vector<f4E2M1FN> to vector<f32>
  %4 = arith.extf %v : vector<16xf6E2M3FN> to vector<16xf32>
  return %0, %1, %2, %3, %4 : f32, vector<3xf32>, vector<2x4xf32>, vector<f32>, vector<16xf32>
}
