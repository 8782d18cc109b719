// Allocates and deallocates tensor memory.

llvm.mlir.global internal @slot() {addr_space = 3 : i32, alignment = 8 : i64} : !llvm.array<4 x i32>

// The first warp allocates columns; all get their address.
func.func private @open(%columns: i32) -> i32 {
  %slot = llvm.mlir.addressof @slot : !llvm.ptr<3>
  %t = gpu.thread_id x
  %c32 = arith.constant 32 : index
  %is_first = arith.cmpi ult, %t, %c32 : index
  scf.if %is_first {
    nvvm.tcgen05.alloc %slot, %columns : !llvm.ptr<3>, i32
  }
  nvvm.barrier0
  %base = llvm.load %slot : !llvm.ptr<3> -> i32
  return %base : i32
}

// The first warp gives them back when all are done.
func.func private @close(%base: i32, %columns: i32) {
  %tensor = llvm.inttoptr %base : i32 to !llvm.ptr<6>
  %t = gpu.thread_id x
  %c32 = arith.constant 32 : index
  %is_first = arith.cmpi ult, %t, %c32 : index
  nvvm.tcgen05.fence #nvvm.tcgen05_fence<before>
  nvvm.barrier0
  nvvm.tcgen05.fence #nvvm.tcgen05_fence<after>
  scf.if %is_first {
    nvvm.tcgen05.dealloc %tensor, %columns : !llvm.ptr<6>, i32
  }
  return
}

// Likewise with 64 columns: their address and their pointer.
func.func private @open_64() -> (i32, !llvm.ptr<6>) {
  %columns = llvm.mlir.constant(64 : i32) : i32
  %base = func.call @open(%columns) : (i32) -> i32
  %tensor = llvm.inttoptr %base : i32 to !llvm.ptr<6>
  return %base, %tensor : i32, !llvm.ptr<6>
}

func.func private @close_64(%base: i32) {
  %columns = llvm.mlir.constant(64 : i32) : i32
  func.call @close(%base, %columns) : (i32, i32) -> ()
  return
}
