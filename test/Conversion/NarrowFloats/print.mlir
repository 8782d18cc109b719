// RUN: kvcache-opt %s --kvcache-to-cpu | FileCheck %s

// Prints show numbers, not bits.

// CHECK-LABEL: llvm.func @prints(
// CHECK-NOT:     @printI64
// CHECK-COUNT-3: llvm.call @printF32
// CHECK-NOT:     llvm.call @print{{[FI]}}
// CHECK:         llvm.return
func.func @prints(%x: bf16, %y: f8E4M3FN, %z: vector<2xf8E8M0FNU>) {
  vector.print %x : bf16
  vector.print %y : f8E4M3FN
  vector.print %z : vector<2xf8E8M0FNU>
  return
}
