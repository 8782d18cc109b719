// RUN: kvcache-opt %s --kvcache-expand-clamps | FileCheck %s

// CHECK-LABEL: func.func @constants(
// CHECK-SAME:    %[[X:.*]]: vector<4xf32>)
// CHECK-DAG:     %[[LEAST:.*]] = arith.constant dense<-1.270000e+02>
// CHECK-DAG:     %[[MOST:.*]] = arith.constant dense<1.270000e+02>
// CHECK:         %[[IS_ABOVE:.*]] = arith.cmpf ogt, %[[X]], %[[LEAST]]
// CHECK:         %[[RAISED:.*]] = arith.select %[[IS_ABOVE]], %[[X]], %[[LEAST]]
// CHECK:         %[[IS_BELOW:.*]] = arith.cmpf olt, %[[RAISED]], %[[MOST]]
// CHECK:         arith.select %[[IS_BELOW]], %[[RAISED]], %[[MOST]]
func.func @constants(%x: vector<4xf32>) -> vector<4xf32> {
  %least = arith.constant dense<-127.0> : vector<4xf32>
  %most = arith.constant dense<127.0> : vector<4xf32>
  %0 = arith.maxnumf %x, %least : vector<4xf32>
  %1 = arith.minnumf %0, %most : vector<4xf32>
  return %1 : vector<4xf32>
}

// A NaN as bound, and two values, give either operand.
// CHECK-LABEL: func.func @others(
// CHECK:         arith.maxnumf
// CHECK:         arith.minnumf
func.func @others(%x: f32, %y: f32) -> f32 {
  %nan = arith.constant 0x7FC00000 : f32
  %0 = arith.maxnumf %x, %nan : f32
  %1 = arith.minnumf %0, %y : f32
  return %1 : f32
}
