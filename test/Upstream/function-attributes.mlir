// RUN: not --crash mlir-opt %s --convert-func-to-llvm

// [mlir] --convert-func-to-llvm ends the process on an attribute that llvm.func
// has with another type
//
// mlir-opt 22.1 takes "linkage" of a func.func for that of the llvm.func, and
// casts it without a check. Expected: an error at the function.

func.func @stop() attributes {linkage = 3 : i32} {
  return
}
