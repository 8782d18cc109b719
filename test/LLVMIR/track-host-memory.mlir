// RUN: kvcache-opt %s --kvcache-track-host-memory --split-input-file | FileCheck %s

// Calls of this module may fail, and then free what they have allocated.

// CHECK-DAG:  llvm.func @kvcacheHostAlloc(i64) -> !llvm.ptr
// CHECK-DAG:  llvm.func @kvcacheHostFree(!llvm.ptr)
// CHECK-LABEL: llvm.func @use(
// CHECK:        %[[MEMORY:.*]] = llvm.call @kvcacheHostAlloc(
// CHECK:        llvm.call @kvcacheHostFree(%[[MEMORY]])
module {
  llvm.func @kvcacheCallTVMFFI(!llvm.ptr, !llvm.ptr, !llvm.ptr, i32, !llvm.ptr) -> i32
  llvm.func @malloc(i64) -> !llvm.ptr
  llvm.func @free(!llvm.ptr)
  llvm.func @use(%bytes: i64) {
    %memory = llvm.call @malloc(%bytes) : (i64) -> !llvm.ptr
    llvm.call @free(%memory) : (!llvm.ptr) -> ()
    llvm.return
  }
}

// -----

// This one may run without the runtime.

// CHECK:     llvm.func @malloc(i64) -> !llvm.ptr
// CHECK-NOT: @kvcacheHostAlloc
module {
  llvm.func @malloc(i64) -> !llvm.ptr
  llvm.func @use(%bytes: i64) -> !llvm.ptr {
    %memory = llvm.call @malloc(%bytes) : (i64) -> !llvm.ptr
    llvm.return %memory : !llvm.ptr
  }
}
