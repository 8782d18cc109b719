// RUN: kvcache-opt %s --kvcache-expand-fma | FileCheck %s

// Ops of one type share a function.
// CHECK-LABEL: llvm.func @scalars(
// CHECK:         llvm.call @[[FMA:kvcache_fma[_0-9]*]](%{{.*}}) : (f32, f32, f32) -> f32
// CHECK:         llvm.call @[[FMA]](%{{.*}}) : (f32, f32, f32) -> f32
llvm.func @scalars(%a: f32, %b: f32, %c: f32) -> f32 {
  %0 = llvm.intr.fma(%a, %b, %c) : (f32, f32, f32) -> f32
  %1 = llvm.intr.fma(%0, %b, %c) : (f32, f32, f32) -> f32
  llvm.return %1 : f32
}

// CHECK-LABEL: llvm.func @vector(
// CHECK-NOT:     llvm.intr.fma
// CHECK:         llvm.call @[[VECTOR:kvcache_fma[_0-9]*]](%{{.*}}) : (vector<8xf32>, vector<8xf32>, vector<8xf32>) -> vector<8xf32>
llvm.func @vector(%a: vector<8xf32>, %b: vector<8xf32>, %c: vector<8xf32>) -> vector<8xf32> {
  %0 = llvm.intr.fma(%a, %b, %c) : (vector<8xf32>, vector<8xf32>, vector<8xf32>) -> vector<8xf32>
  llvm.return %0 : vector<8xf32>
}

// The C library has these.
// CHECK-LABEL: llvm.func @double(
// CHECK:         llvm.intr.fma
llvm.func @double(%a: f64, %b: f64, %c: f64) -> f64 {
  %0 = llvm.intr.fma(%a, %b, %c) : (f64, f64, f64) -> f64
  llvm.return %0 : f64
}

// CHECK:       llvm.func internal @[[FMA]](%[[A:.*]]: f32, %[[B:.*]]: f32, %[[C:.*]]: f32) -> f32
// CHECK-SAME:      no_inline
// CHECK-DAG:     %[[WIDE_A:.*]] = llvm.fpext %[[A]] : f32 to f64
// CHECK-DAG:     %[[WIDE_B:.*]] = llvm.fpext %[[B]] : f32 to f64
// CHECK-DAG:     %[[WIDE_C:.*]] = llvm.fpext %[[C]] : f32 to f64
// CHECK-DAG:     %[[PRODUCT:.*]] = llvm.fmul %[[WIDE_A]], %[[WIDE_B]] : f64
// CHECK:         %[[SUM:.*]] = llvm.fadd %[[PRODUCT]], %[[WIDE_C]] : f64
// CHECK:         %[[ADDED:.*]] = llvm.fsub %[[SUM]], %[[PRODUCT]] : f64
// CHECK:         %[[ERROR:.*]] = llvm.fadd
// CHECK:         llvm.fcmp "one" %[[ERROR]], %{{.*}} : f64
// CHECK:         %[[ODD:.*]] = llvm.bitcast %{{.*}} : i64 to f64
// CHECK:         %[[RESULT:.*]] = llvm.fptrunc %[[ODD]] : f64 to f32
// CHECK:         llvm.return %[[RESULT]] : f32

// CHECK:       llvm.func internal @[[VECTOR]](
// CHECK:         llvm.fptrunc %{{.*}} : vector<8xf64> to vector<8xf32>
