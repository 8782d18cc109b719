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

llvm.func @pointer() -> !llvm.ptr {
  // expected-error @+1 {{'llvm.mlir.constant' op has the value 2.500000e+00 : f64, which is none of type '!llvm.ptr'}}
  %p = "llvm.mlir.constant"() <{value = 2.5 : f64}> : () -> !llvm.ptr
  llvm.return %p : !llvm.ptr
}

// -----

// expected-error @+1 {{'llvm.mlir.global' op has the value dense<1> : vector<2xi32>, which is none of type 'i32'}}
llvm.mlir.global internal @values(dense<1> : vector<2xi32>) : i32

// -----

llvm.func @address(%v: vector<4xi32>) -> !llvm.ptr {
  // expected-error @+1 {{'llvm.inttoptr' op can't cast 'vector<4xi32>' to '!llvm.ptr'}}
  %p = llvm.inttoptr %v : vector<4xi32> to !llvm.ptr
  llvm.return %p : !llvm.ptr
}

// -----

llvm.mlir.global internal @table(dense<[1, 2]> : tensor<2xi32>) : !llvm.array<2 x i32>

llvm.func @casts(%v: vector<4xi32>, %x: i64) -> vector<4xi64> {
  %p = llvm.inttoptr %x : i64 to !llvm.ptr
  %wide = llvm.zext %v : vector<4xi32> to vector<4xi64>
  llvm.return %wide : vector<4xi64>
}

// -----

llvm.func @lowered(%n: i32) -> !llvm.ptr {
  %p = llvm.alloca %n x !llvm.struct<(i32, vector<4xf32>)> : (i32) -> !llvm.ptr
  llvm.return %p : !llvm.ptr
}
