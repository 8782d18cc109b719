// The kernels that tests of programmatic launches share. Each thread of 4 blocks of 64 has an element of its own.

func.func private @index() -> index {
  %b = gpu.block_id x
  %t = gpu.thread_id x
  %c64 = arith.constant 64 : index
  %base = arith.muli %b, %c64 : index
  %i = arith.addi %base, %t : index
  return %i : index
}

// The element of the thread, and one that a thread of another block has.
func.func private @indices() -> (index, index) {
  %i = func.call @index() : () -> index
  %c255 = arith.constant 255 : index
  %mirror = arith.subi %c255, %i : index
  return %i, %mirror : index, index
}

gpu.func @write(%m: memref<256xi32>, %out: memref<256xi32>, %flag: memref<1xi32>) kernel {
  %i = func.call @index() : () -> index
  %n = arith.index_cast %i : index to i32
  nvvm.griddepcontrol launch_dependents
  memref.store %n, %m[%i] : memref<256xi32>
  gpu.return
}

gpu.func @wait_then_read(%m: memref<256xi32>, %out: memref<256xi32>, %flag: memref<1xi32>) kernel {
  %i, %mirror = func.call @indices() : () -> (index, index)
  nvvm.griddepcontrol wait
  %v = memref.load %m[%mirror] : memref<256xi32>
  memref.store %v, %out[%i] : memref<256xi32>
  gpu.return
}

gpu.func @write_without_dependents(%m: memref<256xi32>, %out: memref<256xi32>, %flag: memref<1xi32>) kernel {
  %i = func.call @index() : () -> index
  %n = arith.index_cast %i : index to i32
  memref.store %n, %m[%i] : memref<256xi32>
  gpu.return
}

gpu.func @start_and_wait(%m: memref<256xi32>, %out: memref<256xi32>, %flag: memref<1xi32>) kernel {
  %i, %mirror = func.call @indices() : () -> (index, index)
  nvvm.griddepcontrol launch_dependents
  nvvm.griddepcontrol wait
  %v = memref.load %m[%mirror] : memref<256xi32>
  memref.store %v, %out[%i] : memref<256xi32>
  gpu.return
}

gpu.func @raise_flag(%m: memref<256xi32>, %out: memref<256xi32>, %flag: memref<1xi32>) kernel {
  %t = gpu.thread_id x
  %i = func.call @index() : () -> index
  %n = arith.index_cast %i : index to i32
  nvvm.griddepcontrol launch_dependents
  memref.store %n, %m[%i] : memref<256xi32>
  gpu.barrier
  %index = memref.extract_aligned_pointer_as_index %flag : memref<1xi32> -> index
  %number = arith.index_cast %index : index to i64
  %g = llvm.inttoptr %number : i64 to !llvm.ptr<1>
  %one = llvm.mlir.constant(1 : i32) : i32
  %c0 = arith.constant 0 : index
  %is_first = arith.cmpi eq, %t, %c0 : index
  scf.if %is_first {
    nvvm.memory.barrier <gpu>
    %old = llvm.atomicrmw add %g, %one monotonic : !llvm.ptr<1>, i32
  }
  gpu.return
}

gpu.func @read(%m: memref<256xi32>, %out: memref<256xi32>, %flag: memref<1xi32>) kernel {
  %i = func.call @index() : () -> index
  nvvm.griddepcontrol launch_dependents
  %v = memref.load %m[%i] : memref<256xi32>
  memref.store %v, %out[%i] : memref<256xi32>
  gpu.return
}
