// The operands of products in tensor memory, and a barrier. It needs tensor-memory.mlir.

llvm.mlir.global internal @bars() {addr_space = 3 : i32, alignment = 8 : i64} : !llvm.array<1 x i64>
llvm.mlir.global internal @a() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<2048 x i8>
llvm.mlir.global internal @b() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<256 x i8>

// Zeros for A, of 64 rows of 32 bytes, and B, of 8, by 32 threads, and their descriptors: K is
// contiguous, without a swizzle. Units are 8 rows of 16 bytes, the next 16 bytes of K are after
// all rows. And a barrier.
func.func private @fill() -> (i64, i64) {
  %a = llvm.mlir.addressof @a : !llvm.ptr<3>
  %b = llvm.mlir.addressof @b : !llvm.ptr<3>
  %bars = llvm.mlir.addressof @bars : !llvm.ptr<3>
  %t = nvvm.read.ptx.sreg.tid.x : i32
  %zero = llvm.mlir.constant(0 : i32) : i32
  %one = llvm.mlir.constant(1 : i32) : i32
  %c32 = llvm.mlir.constant(32 : i32) : i32
  %zeros = llvm.mlir.constant(dense<0> : vector<16xi32>) : vector<16xi32>
  %none = llvm.mlir.constant(0 : i64) : i64
  %fills = llvm.icmp "ult" %t, %c32 : i32
  scf.if %fills {
    %to_a = llvm.getelementptr %a[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, !llvm.array<64 x i8>
    %to_b = llvm.getelementptr %b[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
    llvm.store %zeros, %to_a {alignment = 16 : i64} : vector<16xi32>, !llvm.ptr<3>
    llvm.store %none, %to_b : i64, !llvm.ptr<3>
  }
  %is_first = llvm.icmp "eq" %t, %zero : i32
  scf.if %is_first {
    nvvm.mbarrier.init %bars, %one : !llvm.ptr<3>, i32
  }
  %bits_a = llvm.mlir.constant(0x0000400800400000 : i64) : i64
  %bits_b = llvm.mlir.constant(0x0000400800080000 : i64) : i64
  %four = llvm.mlir.constant(4 : i64) : i64
  %address_a = llvm.ptrtoint %a : !llvm.ptr<3> to i64
  %address_b = llvm.ptrtoint %b : !llvm.ptr<3> to i64
  %units_a = llvm.lshr %address_a, %four : i64
  %units_b = llvm.lshr %address_b, %four : i64
  %result_a = llvm.or %bits_a, %units_a : i64
  %result_b = llvm.or %bits_b, %units_b : i64
  return %result_a, %result_b : i64, i64
}

func.func private @synchronize() {
  nvvm.tcgen05.fence #nvvm.tcgen05_fence<before>
  nvvm.barrier0
  nvvm.tcgen05.fence #nvvm.tcgen05_fence<after>
  return
}

// All of it: the address and the pointer of 64 columns, the descriptors, the barrier, and whether
// the thread is the first.
func.func private @begin() -> (i32, !llvm.ptr<6>, i64, i64, !llvm.ptr<3>, i1) {
  %base, %tensor = func.call @open_64() : () -> (i32, !llvm.ptr<6>)
  %a, %b = func.call @fill() : () -> (i64, i64)
  nvvm.fence.proxy {kind = #nvvm.proxy_kind<async>}
  func.call @synchronize() : () -> ()
  %bar = llvm.mlir.addressof @bars : !llvm.ptr<3>
  %t = nvvm.read.ptx.sreg.tid.x : i32
  %zero = llvm.mlir.constant(0 : i32) : i32
  %is_first = llvm.icmp "eq" %t, %zero : i32
  return %base, %tensor, %a, %b, %bar, %is_first : i32, !llvm.ptr<6>, i64, i64, !llvm.ptr<3>, i1
}

// The first columns of a product that the barrier waits for.
func.func private @load(%tensor: !llvm.ptr<6>, %bar: !llvm.ptr<3>) -> vector<4xi32> {
  %zero = llvm.mlir.constant(0 : i32) : i32
  nvvm.mbarrier.try_wait.parity %bar, %zero, %zero : !llvm.ptr<3>, i32, i32
  nvvm.tcgen05.fence #nvvm.tcgen05_fence<after>
  %r = nvvm.tcgen05.ld %tensor {shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>} : vector<4xi32>
  nvvm.tcgen05.wait #nvvm.tcgen05_wait<load>
  return %r : vector<4xi32>
}

// Loads from the product, and gives the columns back.
func.func private @finish(%base: i32, %tensor: !llvm.ptr<6>, %bar: !llvm.ptr<3>) {
  %r = func.call @load(%tensor, %bar) : (!llvm.ptr<6>, !llvm.ptr<3>) -> vector<4xi32>
  func.call @close_64(%base) : (i32) -> ()
  return
}
