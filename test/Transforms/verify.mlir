// RUN: not kvcache-opt %s --mlir-very-unsafe-disable-verifier-on-parsing --verify-each=0 --kvcache-verify 2>&1 | FileCheck %s

// CHECK: verify.mlir:[[#@LINE+2]]:[[#]]: error: 'arith.addi' op requires the same type for all operands and results
func.func @unequal(%a: i32, %b: i64) {
  %sum = "arith.addi"(%a, %b) : (i32, i64) -> i32
  return
}
