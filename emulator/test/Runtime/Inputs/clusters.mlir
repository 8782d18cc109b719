// Arrays and mbarriers of clusters of two blocks.

llvm.mlir.global internal @bar() {addr_space = 3 : i32, alignment = 8 : i64} : !llvm.array<2 x i64>
llvm.mlir.global internal @buf() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<64 x i32>

// The element of the thread in @buf, that in the next block of the cluster,
// and the rank of that.
func.func private @get_elements() -> (!llvm.ptr<3>, !llvm.ptr<7>, i32) {
  %buf = llvm.mlir.addressof @buf : !llvm.ptr<3>
  %t = nvvm.read.ptx.sreg.tid.x : i32
  %one = llvm.mlir.constant(1 : i32) : i32
  %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
  %peer = llvm.xor %rank, %one : i32
  %mine = llvm.getelementptr %buf[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
  %theirs = nvvm.mapa %mine, %peer : !llvm.ptr<3> -> !llvm.ptr<7>
  return %mine, %theirs, %peer : !llvm.ptr<3>, !llvm.ptr<7>, i32
}

func.func private @store(%out: memref<256xi32>, %value: i32) {
  %x = gpu.global_id x
  memref.store %value, %out[%x] : memref<256xi32>
  return
}

// An mbarrier for the arrivals of 64 threads.
func.func private @init() {
  %bar = llvm.mlir.addressof @bar : !llvm.ptr<3>
  %zero = llvm.mlir.constant(0 : i32) : i32
  %count = llvm.mlir.constant(64 : i32) : i32
  %t = nvvm.read.ptx.sreg.tid.x : i32
  %is_first = llvm.icmp "eq" %t, %zero : i32
  scf.if %is_first {
    nvvm.mbarrier.init %bar, %count : !llvm.ptr<3>, i32
    nvvm.fence.mbarrier.init
  }
  nvvm.barrier0
  return
}

// Likewise for another block, after a barrier of the cluster: the elements, the mbarrier, and
// that of the next block.
func.func private @init_for_peer() -> (!llvm.ptr<3>, !llvm.ptr<7>, !llvm.ptr<3>, !llvm.ptr<7>) {
  %bar = llvm.mlir.addressof @bar : !llvm.ptr<3>
  %mine, %theirs, %peer = func.call @get_elements() : () -> (!llvm.ptr<3>, !llvm.ptr<7>, i32)
  %remote = nvvm.mapa %bar, %peer : !llvm.ptr<3> -> !llvm.ptr<7>
  func.call @init() : () -> ()
  nvvm.cluster.arrive {aligned}
  nvvm.cluster.wait {aligned}
  return %mine, %theirs, %bar, %remote : !llvm.ptr<3>, !llvm.ptr<7>, !llvm.ptr<3>, !llvm.ptr<7>
}

// An array with the element of each thread, which copies may read; where it is in the next
// block, and the mbarrier there; and whether the thread is the first.
func.func private @fill() -> (!llvm.ptr<3>, !llvm.ptr<7>, !llvm.ptr<3>, i1) {
  %mine, %theirs, %peer = func.call @get_elements() : () -> (!llvm.ptr<3>, !llvm.ptr<7>, i32)
  %one = llvm.mlir.constant(1 : i32) : i32
  %zero = llvm.mlir.constant(0 : i32) : i32
  %buf = llvm.mlir.addressof @buf : !llvm.ptr<3>
  %bar = llvm.mlir.addressof @bar : !llvm.ptr<3>
  %t = nvvm.read.ptx.sreg.tid.x : i32
  llvm.store %one, %mine : i32, !llvm.ptr<3>
  func.call @init() : () -> ()
  nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
  nvvm.cluster.arrive {aligned}
  nvvm.cluster.wait {aligned}
  %to = nvvm.mapa %buf, %peer : !llvm.ptr<3> -> !llvm.ptr<7>
  %remote = nvvm.mapa %bar, %peer : !llvm.ptr<3> -> !llvm.ptr<7>
  %bits = llvm.ptrtoint %remote : !llvm.ptr<7> to i32
  %barrier = llvm.inttoptr %bits : i32 to !llvm.ptr<3>
  %is_first = llvm.icmp "eq" %t, %zero : i32
  return %buf, %to, %barrier, %is_first : !llvm.ptr<3>, !llvm.ptr<7>, !llvm.ptr<3>, i1
}
