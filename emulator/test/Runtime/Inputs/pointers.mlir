// The pointers to a descriptor and to a tensor.

func.func @get_map(%map: memref<16xi64>) -> !llvm.ptr {
  %i = memref.extract_aligned_pointer_as_index %map : memref<16xi64> -> index
  %n = arith.index_cast %i : index to i64
  %p = llvm.inttoptr %n : i64 to !llvm.ptr
  return %p : !llvm.ptr
}

func.func @get_source(%tensor: memref<8x32xi32>) -> !llvm.ptr<1> {
  %i = memref.extract_aligned_pointer_as_index %tensor : memref<8x32xi32> -> index
  %n = arith.index_cast %i : index to i64
  %p = llvm.inttoptr %n : i64 to !llvm.ptr<1>
  return %p : !llvm.ptr<1>
}
