// RUN: kvcache-opt %s --convert-kvcache-checks | FileCheck %s

// A declaration that is there already is used, and names that are taken stay.

// CHECK:         llvm.mlir.global internal constant @[[MESSAGE:kvcache_message_.*]]("
// CHECK:         llvm.func @kvcacheCheckFailed(!llvm.ptr, i64, i64) attributes {passthrough = ["noreturn"]}
// CHECK-NOT:     llvm.func @kvcacheCheckFailed
llvm.func @kvcacheCheckFailed(!llvm.ptr, i64, i64) attributes {passthrough = ["noreturn"]}
llvm.mlir.global internal constant @kvcache_message(1 : i32) : i32

// CHECK-LABEL: func.func @check(
// CHECK:         llvm.mlir.addressof @[[MESSAGE]]
func.func @check(%value: index, %bound: index) {
  kvcache.check %value below %bound, "page id"
  return
}
