// RUN: kvcache-opt %s --kvcache-lower-x86-vectors | FileCheck %s

// CHECK-LABEL: func.func @dot(
// CHECK:         llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%{{.*}}) : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>
func.func @dot(%acc: vector<16xf32>, %a: vector<32xbf16>, %b: vector<32xbf16>) -> vector<16xf32> {
  %sum = x86vector.avx512.dot %acc, %a, %b : vector<32xbf16> -> vector<16xf32>
  return %sum : vector<16xf32>
}
