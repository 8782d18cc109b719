// RUN: kvcache-opt %s --kvcache-lower-prints | FileCheck %s

// CHECK:       llvm.func @kvcachePrint(!llvm.ptr, ...)
// CHECK:       llvm.mlir.global internal constant @{{.*}}("%lld of %llu: %-8.3f, 100%%\0A\00")

// CHECK-LABEL: func.func @print(
// CHECK-SAME:      %[[I:.*]]: index, %[[N:.*]]: i8, %[[X:.*]]: bf16)
// CHECK-DAG:     %[[I64:.*]] = arith.index_cast %[[I]] : index to i64
// CHECK-DAG:     %[[N64:.*]] = arith.extui %[[N]] : i8 to i64
// CHECK-DAG:     %[[X32:.*]] = arith.extf %[[X]] : bf16 to f32
// CHECK-DAG:     %[[X64:.*]] = arith.extf %[[X32]] : f32 to f64
// CHECK:         llvm.call @kvcachePrint(%{{.*}}, %[[I64]], %[[N64]], %[[X64]]) vararg
func.func @print(%i: index, %n: i8, %x: bf16) {
  gpu.printf "%d of %hhu: %-8.3f, 100%%\n", %i, %n, %x : index, i8, bf16
  return
}

// Those of kernels stay.

// CHECK:       gpu.func @kernel
// CHECK:         gpu.printf "done"
gpu.module @kernels {
  gpu.func @kernel() kernel {
    gpu.printf "done"
    gpu.return
  }
}
