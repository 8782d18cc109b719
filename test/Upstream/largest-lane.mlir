// RUN: mlir-opt %s --convert-vector-to-llvm --convert-func-to-llvm | mlir-translate --mlir-to-llvmir \
// RUN:   | llc -mtriple=x86_64 -mattr=+avx2 | FileCheck %s

// [X86] vector.reduction <maxnumf> compares one lane after the other
//
// llc 22.1 needs 28 instructions for 8 lanes, each of which waits for the one
// before. A tree of shuffles has three steps. The order of signaling NaNs is all
// that forbids it (llvm-project#118730 discusses to give up this order).

// CHECK-LABEL: largest:
// CHECK-COUNT-7: vmaxss
// CHECK-NOT: vmaxps
func.func @largest(%lanes: vector<8xf32>) -> f32 {
  %most = vector.reduction <maxnumf>, %lanes : vector<8xf32> into f32
  return %most : f32
}
