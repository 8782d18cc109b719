// Blocks that each store their number, and count themselves by a ticket.

// Stores the number of the block, and gives the places of the sum and of the counter.
func.func private @store_number(%g: !llvm.ptr<1>) -> (!llvm.ptr<1>, !llvm.ptr<1>) {
  %b = nvvm.read.ptx.sreg.ctaid.x : i32
  %mine = llvm.getelementptr %g[%b] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  %out = llvm.getelementptr %g[100] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
  %flag = llvm.getelementptr %g[200] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
  llvm.store %b, %mine : i32, !llvm.ptr<1>
  return %out, %flag : !llvm.ptr<1>, !llvm.ptr<1>
}

// Whether a ticket is that of the last of four blocks.
func.func private @is_last(%ticket: i32) -> i1 {
  %three = llvm.mlir.constant(3 : i32) : i32
  %is_last = llvm.icmp "eq" %ticket, %three : i32
  return %is_last : i1
}
