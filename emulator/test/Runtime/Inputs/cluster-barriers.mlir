// The mbarrier of a @tile in a cluster, and what the tile has.

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

// The mbarrier of the block whose rank has this last bit, of the pair: as CUTLASS does, by a bit
// of the address.
func.func @get_barrier_of_pair(%bar: !llvm.ptr<3>, %last: i32) -> !llvm.ptr<3> {
  %others = llvm.mlir.constant(0xfeffffff : i32) : i32
  %c24 = llvm.mlir.constant(24 : i32) : i32
  %address = llvm.ptrtoint %bar : !llvm.ptr<3> to i32
  %even = llvm.and %address, %others : i32
  %bit = llvm.shl %last, %c24 : i32
  %there = llvm.or %even, %bit : i32
  %result = llvm.inttoptr %there : i32 to !llvm.ptr<3>
  return %result : !llvm.ptr<3>
}

// What the tile has, in the rows of the block.
func.func @store(%out: memref<8x64xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
  %b = gpu.block_id x
  scf.for %i = %c0 to %c64 step %c1 {
    %n = arith.index_cast %i : index to i32
    %p = llvm.getelementptr %tile[%n] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %v = llvm.load %p : !llvm.ptr<3> -> i32
    memref.store %v, %out[%b, %i] : memref<8x64xi32>
  }
  return
}
