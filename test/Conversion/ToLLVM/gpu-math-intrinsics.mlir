// RUN: kvcache-opt %s --kvcache-expand-for-llvm | FileCheck %s

// A reciprocal that may be approximate is one instruction.

// CHECK-LABEL: func.func @approximate_reciprocal(
// CHECK-SAME:      %[[X:.*]]: f32)
// CHECK:         %[[Y:.*]] = nvvm.rcp.approx.ftz.f %[[X]] : f32
// CHECK:         return %[[Y]]
func.func @approximate_reciprocal(%x: f32) -> f32 {
  %one = arith.constant 1.0 : f32
  %y = arith.divf %one, %x fastmath<afn> : f32
  return %y : f32
}

// CHECK-LABEL: func.func @other_divisions(
// CHECK-NOT:     nvvm.rcp
// CHECK:         return
func.func @other_divisions(%x: f32, %d: f64, %v: vector<2xf32>) -> (f32, f32, f64, vector<2xf32>) {
  %one = arith.constant 1.0 : f32
  %two = arith.constant 2.0 : f32
  %one_f64 = arith.constant 1.0 : f64
  %ones = arith.constant dense<1.0> : vector<2xf32>
  %exact = arith.divf %one, %x : f32
  %of_two = arith.divf %two, %x fastmath<afn> : f32
  %of_f64 = arith.divf %one_f64, %d fastmath<afn> : f64
  %of_vector = arith.divf %ones, %v fastmath<afn> : vector<2xf32>
  return %exact, %of_two, %of_f64, %of_vector : f32, f32, f64, vector<2xf32>
}

// A vector of several dimensions becomes one of one dimension for math.

// CHECK-LABEL: func.func @of_several_dimensions(
// CHECK-COUNT-2: llvm.call_intrinsic "llvm.fma"{{.*}} -> vector<8xf32>
// CHECK:         llvm.call_intrinsic "llvm.maxnum"{{.*}} -> vector<8xf32>
// CHECK:         llvm.call_intrinsic "llvm.exp2"{{.*}} -> vector<1xf32>
func.func @of_several_dimensions(%a: vector<2x4xf32>, %b: vector<2x2x2xf32>, %c: vector<f32>)
    -> (vector<2x4xf32>, vector<2x2x2xf32>, vector<f32>) {
  %x = math.fma %a, %a, %a : vector<2x4xf32>
  %y = math.fma %b, %b, %b : vector<2x2x2xf32>
  %m = arith.maxnumf %y, %b : vector<2x2x2xf32>
  %z = math.exp2 %c : vector<f32>
  return %x, %m, %z : vector<2x4xf32>, vector<2x2x2xf32>, vector<f32>
}

// CHECK-LABEL: func.func @magnitudes(
// CHECK-COUNT-3: llvm.call_intrinsic "llvm.fabs"
func.func @magnitudes(%a: vector<8xbf16>, %b: f16, %c: f64) -> (vector<8xbf16>, f16, f64) {
  %x = math.absf %a : vector<8xbf16>
  %y = math.absf %b : f16
  %z = math.absf %c : f64
  return %x, %y, %z : vector<8xbf16>, f16, f64
}
