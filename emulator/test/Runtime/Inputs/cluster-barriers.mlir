// The mbarrier of a @tile in a cluster.

llvm.mlir.global internal @bar() {addr_space = 3 : i32, alignment = 8 : i64} : !llvm.array<1 x i64>

// The mbarrier of the block, which other blocks may use, and which expects
// bytes; and the tile as shared memory of the cluster.
func.func @init(%bytes: i32) -> (!llvm.ptr<3>, !llvm.ptr<7>) {
  %one = llvm.mlir.constant(1 : i32) : i32
  %bar = llvm.mlir.addressof @bar : !llvm.ptr<3>
  %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
  nvvm.mbarrier.init %bar, %one : !llvm.ptr<3>, i32
  nvvm.fence.mbarrier.init
  %s = nvvm.mbarrier.arrive.expect_tx %bar, %bytes : !llvm.ptr<3>, i32 -> i64
  nvvm.cluster.arrive.relaxed
  nvvm.cluster.wait
  %to = llvm.addrspacecast %tile : !llvm.ptr<3> to !llvm.ptr<7>
  return %bar, %to : !llvm.ptr<3>, !llvm.ptr<7>
}

func.func @wait(%bar: !llvm.ptr<3>) {
  %zero = llvm.mlir.constant(0 : i32) : i32
  nvvm.mbarrier.try_wait.parity %bar, %zero, %zero : !llvm.ptr<3>, i32, i32
  return
}
