// RUN: kvcache-opt %s --kvcache-expand-bf16-truncations --canonicalize | FileCheck %s

// CHECK-LABEL: func.func @vector(
// CHECK-SAME:    %[[X:.*]]: vector<16xf32>)
// CHECK-DAG:     %[[C1:.*]] = arith.constant dense<1> : vector<16xi32>
// CHECK-DAG:     %[[C16:.*]] = arith.constant dense<16> : vector<16xi32>
// CHECK-DAG:     %[[HALF:.*]] = arith.constant dense<32767> : vector<16xi32>
// CHECK-DAG:     %[[NAN:.*]] = arith.constant dense<2143289344> : vector<16xi32>
// CHECK:         %[[BITS:.*]] = arith.bitcast %[[X]] : vector<16xf32> to vector<16xi32>
// CHECK:         %[[SHIFTED:.*]] = arith.shrui %[[BITS]], %[[C16]]
// CHECK:         %[[LAST:.*]] = arith.andi %[[SHIFTED]], %[[C1]]
// CHECK:         %[[RAISED:.*]] = arith.addi %[[BITS]], %[[HALF]]
// CHECK:         %[[ROUNDED:.*]] = arith.addi %[[RAISED]], %[[LAST]]
// CHECK:         %[[IS_NAN:.*]] = arith.cmpf uno, %[[X]], %[[X]]
// CHECK:         %[[ALL:.*]] = arith.select %[[IS_NAN]], %[[NAN]], %[[ROUNDED]]
// CHECK:         %[[WORDS:.*]] = vector.bitcast %[[ALL]] : vector<16xi32> to vector<32xbf16>
// CHECK:         %{{.*}}, %[[ODD:.*]] = vector.deinterleave %[[WORDS]]
// CHECK:         return %[[ODD]]
func.func @vector(%x: vector<16xf32>) -> vector<16xbf16> {
  %0 = arith.truncf %x : vector<16xf32> to vector<16xbf16>
  return %0 : vector<16xbf16>
}

// Scalars, other types and vectors of vectors remain.
// CHECK-LABEL: func.func @others(
// CHECK-COUNT-3: arith.truncf
func.func @others(%x: f32, %y: vector<16xf32>, %z: vector<2x16xf32>)
    -> (bf16, vector<16xf16>, vector<2x16xbf16>) {
  %0 = arith.truncf %x : f32 to bf16
  %1 = arith.truncf %y : vector<16xf32> to vector<16xf16>
  %2 = arith.truncf %z : vector<2x16xf32> to vector<2x16xbf16>
  return %0, %1, %2 : bf16, vector<16xf16>, vector<2x16xbf16>
}
