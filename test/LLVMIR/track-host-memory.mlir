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

// CHECK-DAG:  llvm.func @kvcacheMemFree(!llvm.ptr) -> i32
// CHECK-LABEL: llvm.func @allocate(
// CHECK-SAME:      %[[BYTES:.*]]: i64, %[[SLOT:.*]]: !llvm.ptr)
// CHECK-NEXT:    %[[STATUS:.*]] = llvm.call @kvcacheMemAlloc(%[[BYTES]], %[[SLOT]])
// CHECK-NEXT:    %[[FREE:.*]] = llvm.mlir.addressof @kvcacheMemFree
// CHECK-NEXT:    llvm.call @kvcacheHostNoteDeviceAlloc(%[[STATUS]], %[[SLOT]], %[[FREE]])
// CHECK-NEXT:    llvm.return %[[STATUS]]
module {
  llvm.func @kvcacheCallTVMFFI(!llvm.ptr, !llvm.ptr, !llvm.ptr, i32, !llvm.ptr) -> i32
  llvm.func @kvcacheMemAlloc(i64, !llvm.ptr) -> i32
  llvm.func @allocate(%bytes: i64, %slot: !llvm.ptr) -> i32 {
    %status = llvm.call @kvcacheMemAlloc(%bytes, %slot) : (i64, !llvm.ptr) -> i32
    llvm.return %status : i32
  }
}

// -----

// CHECK-LABEL: llvm.func @release(
// CHECK-SAME:      %[[MEMORY:.*]]: !llvm.ptr)
// CHECK-NEXT:    llvm.call @kvcacheHostNoteDeviceFree(%[[MEMORY]])
// CHECK-NEXT:    llvm.call @kvcacheMemFree(%[[MEMORY]])
module {
  llvm.func @kvcacheCallTVMFFI(!llvm.ptr, !llvm.ptr, !llvm.ptr, i32, !llvm.ptr) -> i32
  llvm.func @kvcacheMemFree(!llvm.ptr) -> i32
  llvm.func @release(%memory: !llvm.ptr) -> i32 {
    %status = llvm.call @kvcacheMemFree(%memory) : (!llvm.ptr) -> i32
    llvm.return %status : i32
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
