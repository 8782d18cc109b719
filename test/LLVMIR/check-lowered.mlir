// RUN: kvcache-opt %s --split-input-file --verify-diagnostics --kvcache-check-lowered

// What translation can't take is an error at its place.

llvm.func @op(%i: i64) -> i64 {
  // expected-error @+1 {{'arith.addi' op has no lowering to LLVM here}}
  %sum = arith.addi %i, %i : i64
  llvm.return %sum : i64
}

// -----

llvm.func @variable(%n: i32) -> !llvm.ptr {
  // expected-error @+1 {{'llvm.alloca' op has elements of 'memref<4xi32>', which is no type of LLVM}}
  %p = llvm.alloca %n x memref<4xi32> : (i32) -> !llvm.ptr
  llvm.return %p : !llvm.ptr
}

// -----

gpu.module @kernels {
  llvm.func @place(%p: !llvm.ptr) -> !llvm.ptr {
    // expected-error @+1 {{'llvm.getelementptr' op has elements of 'index', which is no type of LLVM}}
    %q = llvm.getelementptr %p[1] : (!llvm.ptr) -> !llvm.ptr, index
    llvm.return %q : !llvm.ptr
  }
}

// -----

llvm.func @lowered(%n: i32) -> !llvm.ptr {
  %p = llvm.alloca %n x !llvm.struct<(i32, vector<4xf32>)> : (i32) -> !llvm.ptr
  llvm.return %p : !llvm.ptr
}
