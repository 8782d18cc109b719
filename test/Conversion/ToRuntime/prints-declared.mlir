// RUN: kvcache-opt %s --kvcache-lower-prints | FileCheck %s --implicit-check-not=kvcachePrint_

// A module may declare the runtime's function before.

// CHECK:         llvm.func @kvcachePrint(!llvm.ptr, ...)
// CHECK-NOT:     llvm.func @kvcachePrint
// CHECK-LABEL: func.func @print(
// CHECK:         llvm.call @kvcachePrint(%{{.*}}, %{{.*}}) vararg
llvm.func @kvcachePrint(!llvm.ptr, ...)
func.func @print(%i: i64) {
  gpu.printf "%d", %i : i64
  return
}
