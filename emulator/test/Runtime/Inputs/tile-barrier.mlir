// A tile, and an mbarrier for copies to it.

llvm.mlir.global internal @shared() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<256 x i8>
llvm.mlir.global internal @tile() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<1024 x i8>

// The tile and the mbarrier, which expects one arrival.
func.func private @init() -> (!llvm.ptr<3>, !llvm.ptr<3>) {
  %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
  %b = llvm.mlir.addressof @shared : !llvm.ptr<3>
  %one = llvm.mlir.constant(1 : i32) : i32
  nvvm.mbarrier.init %b, %one : !llvm.ptr<3>, i32
  nvvm.fence.mbarrier.init
  return %tile, %b : !llvm.ptr<3>, !llvm.ptr<3>
}

// Both for all threads, and whether the thread is the first.
func.func private @init_for_all() -> (!llvm.ptr<3>, !llvm.ptr<3>, i1) {
  %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
  %b = llvm.mlir.addressof @shared : !llvm.ptr<3>
  %one = llvm.mlir.constant(1 : i32) : i32
  %t = nvvm.read.ptx.sreg.tid.x : i32
  %zero = llvm.mlir.constant(0 : i32) : i32
  %is_first = llvm.icmp "eq" %t, %zero : i32
  scf.if %is_first {
    nvvm.mbarrier.init %b, %one : !llvm.ptr<3>, i32
  }
  nvvm.barrier0
  return %tile, %b, %is_first : !llvm.ptr<3>, !llvm.ptr<3>, i1
}

// Both, with a copy of 64 bytes in flight, and the state of the arrival.
func.func private @begin_copy(%g: !llvm.ptr<1>) -> (!llvm.ptr<3>, !llvm.ptr<3>, i64) {
  %tile, %b = func.call @init() : () -> (!llvm.ptr<3>, !llvm.ptr<3>)
  %bytes = llvm.mlir.constant(64 : i32) : i32
  %s = nvvm.mbarrier.arrive.expect_tx %b, %bytes : !llvm.ptr<3>, i32 -> i64
  nvvm.cp.async.bulk.shared.cluster.global %tile, %g, %b, %bytes : !llvm.ptr<3>, !llvm.ptr<1>
  return %tile, %b, %s : !llvm.ptr<3>, !llvm.ptr<3>, i64
}

// Stores 64 bytes of the tile, which it fills; the caller waits for it.
func.func private @begin_store(%g: !llvm.ptr<1>) -> !llvm.ptr<3> {
  %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
  %bytes = llvm.mlir.constant(64 : i32) : i32
  %values = llvm.mlir.constant(dense<7> : vector<16xi32>) : vector<16xi32>
  llvm.store %values, %tile {alignment = 4 : i64} : vector<16xi32>, !llvm.ptr<3>
  nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
  nvvm.cp.async.bulk.global.shared.cta %g, %tile, %bytes : !llvm.ptr<1>, !llvm.ptr<3>
  nvvm.cp.async.bulk.commit.group
  return %tile : !llvm.ptr<3>
}
