// Right kernels that use tensor memory in unusual ways: two threads add to one accumulator, an
// allocation waits for another one, a commit that no thread waits for, registers that are renamed
// before the wait.

// DEFINE: %{libs} = %kvcache_emulator,%kvcache_runtime,%mlir_lib_dir/libmlir_c_runner_utils.so,%mlir_lib_dir/libmlir_runner_utils.so
// DEFINE: %{run} = mlir-runner -e main -entry-point-result=void -shared-libs=%{libs}
// RUN: kvcache-opt %s --kvcache-to-emulator="chip=sm_100a" | %{run} | FileCheck %s
// RUN: kvcache-opt %s --kvcache-to-emulator="chip=sm_103a meter=true" | env KVCACHE_EMULATOR_SEED=5 %{run} | FileCheck %s
// RUN: kvcache-opt %s --kvcache-to-emulator="chip=sm_110a sanitize=false" | %{run} | FileCheck %s

module attributes {gpu.container_module} {

gpu.module @kernels {
  llvm.mlir.global internal @slot() {addr_space = 3 : i32, alignment = 8 : i64} : !llvm.array<4 x i32>
  llvm.mlir.global internal @bars() {addr_space = 3 : i32, alignment = 8 : i64} : !llvm.array<3 x i64>
  llvm.mlir.global internal @a() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<2048 x i8>
  llvm.mlir.global internal @b() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<256 x i8>

  func.func private @fence() {
    nvvm.tcgen05.fence #nvvm.tcgen05_fence<before>
    nvvm.barrier0
    nvvm.tcgen05.fence #nvvm.tcgen05_fence<after>
    return
  }

  // A and B are 1 everywhere (f16), 64 and 8 rows of K of 16.
  func.func private @fill(%t: i32) {
    %a = llvm.mlir.addressof @a : !llvm.ptr<3>
    %b = llvm.mlir.addressof @b : !llvm.ptr<3>
    %c32 = llvm.mlir.constant(32 : i32) : i32
    %ones = llvm.mlir.constant(dense<0x3c003c00> : vector<16xi32>) : vector<16xi32>
    %four = llvm.mlir.constant(0x3c003c003c003c00 : i64) : i64
    %fills = llvm.icmp "ult" %t, %c32 : i32
    scf.if %fills {
      %to_a = llvm.getelementptr %a[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, !llvm.array<64 x i8>
      %to_b = llvm.getelementptr %b[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
      llvm.store %ones, %to_a {alignment = 16 : i64} : vector<16xi32>, !llvm.ptr<3>
      llvm.store %four, %to_b : i64, !llvm.ptr<3>
    }
    return
  }

  func.func private @describe(%tile: !llvm.ptr<3>, %bits: i64) -> i64 {
    %four = llvm.mlir.constant(4 : i64) : i64
    %address = llvm.ptrtoint %tile : !llvm.ptr<3> to i64
    %units = llvm.lshr %address, %four : i64
    %result = llvm.or %bits, %units : i64
    return %result : i64
  }

  // Threads 0 and 32 multiply into one accumulator, the second after the first: products of one
  // shape keep their order, and so it need not wait for the first, only be ordered after its issue.
  // The first commits to two barriers, one of which no thread waits for.
  gpu.func @two_issuers(%out: memref<128xf32>) kernel {
    %slot = llvm.mlir.addressof @slot : !llvm.ptr<3>
    %bars = llvm.mlir.addressof @bars : !llvm.ptr<3>
    %second = llvm.getelementptr %bars[8] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %third = llvm.getelementptr %bars[16] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %n = llvm.mlir.constant(32 : i32) : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %no = llvm.mlir.constant(false) : i1
    %yes = llvm.mlir.constant(true) : i1
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %is_first = llvm.icmp "eq" %t, %zero : i32
    %is_other = llvm.icmp "eq" %t, %n : i32
    %in_first = llvm.icmp "ult" %t, %n : i32
    scf.if %in_first {
      nvvm.tcgen05.alloc %slot, %n : !llvm.ptr<3>, i32
    }
    scf.if %is_first {
      nvvm.mbarrier.init %bars, %one : !llvm.ptr<3>, i32
      nvvm.mbarrier.init %second, %one : !llvm.ptr<3>, i32
      nvvm.mbarrier.init %third, %one : !llvm.ptr<3>, i32
    }
    func.call @fill(%t) : (i32) -> ()
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async>}
    func.call @fence() : () -> ()
    %base = llvm.load %slot : !llvm.ptr<3> -> i32
    %tensor = llvm.inttoptr %base : i32 to !llvm.ptr<6>
    %a_tile = llvm.mlir.addressof @a : !llvm.ptr<3>
    %b_tile = llvm.mlir.addressof @b : !llvm.ptr<3>
    %bits_a = llvm.mlir.constant(0x0000400800400000 : i64) : i64
    %bits_b = llvm.mlir.constant(0x0000400800080000 : i64) : i64
    %a = func.call @describe(%a_tile, %bits_a) : (!llvm.ptr<3>, i64) -> i64
    %b = func.call @describe(%b_tile, %bits_b) : (!llvm.ptr<3>, i64) -> i64
    %i = llvm.mlir.constant(0x04020010 : i32) : i32
    scf.if %is_first {
      nvvm.tcgen05.mma %tensor, %a, %b, %i, %no {kind = #nvvm.tcgen05_mma_kind<f16>, ctaGroup = #nvvm.cta_group<cta_1>} : (!llvm.ptr<6>, i64, i64, i32, i1)
      nvvm.tcgen05.commit %bars : !llvm.ptr<3>
      nvvm.tcgen05.commit %second : !llvm.ptr<3>
    }
    func.call @fence() : () -> ()
    scf.if %is_other {
      nvvm.tcgen05.mma %tensor, %a, %b, %i, %yes {kind = #nvvm.tcgen05_mma_kind<f16>, ctaGroup = #nvvm.cta_group<cta_1>} : (!llvm.ptr<6>, i64, i64, i32, i1)
      nvvm.tcgen05.commit %third : !llvm.ptr<3>
    }
    nvvm.mbarrier.try_wait.parity %bars, %zero, %zero : !llvm.ptr<3>, i32, i32
    nvvm.mbarrier.try_wait.parity %third, %zero, %zero : !llvm.ptr<3>, i32, i32
    nvvm.tcgen05.fence #nvvm.tcgen05_fence<after>
    %five = llvm.mlir.constant(5 : i32) : i32
    %warp = llvm.lshr %t, %five : i32
    %c21 = llvm.mlir.constant(21 : i32) : i32
    %lane = llvm.shl %warp, %c21 : i32
    %place = llvm.add %base, %lane : i32
    %words = llvm.inttoptr %place : i32 to !llvm.ptr<6>
    %r = nvvm.tcgen05.ld %words {shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>} : vector<2xi32>
    // A name for a register, which no instruction reads yet.
    %word = vector.extract %r[1] : i32 from vector<2xi32>
    nvvm.tcgen05.wait #nvvm.tcgen05_wait<load>
    %value = llvm.bitcast %word : i32 to f32
    // Rows of D are in the first half of each quarter.
    %sixteen = llvm.mlir.constant(16 : i32) : i32
    %half = llvm.and %t, %sixteen : i32
    %has_row = llvm.icmp "eq" %half, %zero : i32
    scf.if %has_row {
      %index = arith.index_cast %t : i32 to index
      memref.store %value, %out[%index] : memref<128xf32>
    }
    func.call @fence() : () -> ()
    scf.if %in_first {
      nvvm.tcgen05.dealloc %tensor, %n : !llvm.ptr<6>, i32
      nvvm.tcgen05.relinquish_alloc_permit
    }
    gpu.return
  }

  // Two warps request all columns: the second gets them when the first has given them back.
  gpu.func @in_turn(%out: memref<128xf32>) kernel {
    %slot = llvm.mlir.addressof @slot : !llvm.ptr<3>
    %n = llvm.mlir.constant(512 : i32) : i32
    %five = llvm.mlir.constant(5 : i32) : i32
    %c21 = llvm.mlir.constant(21 : i32) : i32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %all = llvm.mlir.constant(-1 : i32) : i32
    %warp = llvm.lshr %t, %five : i32
    %own = llvm.getelementptr %slot[%warp] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    nvvm.tcgen05.alloc %own, %n : !llvm.ptr<3>, i32
    nvvm.bar.warp.sync %all : i32
    %base = llvm.load %own : !llvm.ptr<3> -> i32
    %lane = llvm.shl %warp, %c21 : i32
    %place = llvm.add %base, %lane : i32
    %tensor = llvm.inttoptr %base : i32 to !llvm.ptr<6>
    %words = llvm.inttoptr %place : i32 to !llvm.ptr<6>
    %number = llvm.uitofp %t : i32 to f32
    %bits = llvm.bitcast %number : f32 to i32
    nvvm.tcgen05.st %words, %bits {shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>} : i32
    nvvm.tcgen05.wait #nvvm.tcgen05_wait<store>
    %r = nvvm.tcgen05.ld %words {shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>} : i32
    nvvm.tcgen05.wait #nvvm.tcgen05_wait<load>
    nvvm.tcgen05.dealloc %tensor, %n : !llvm.ptr<6>, i32
    %value = llvm.bitcast %r : i32 to f32
    %index = arith.index_cast %t : i32 to index
    memref.store %value, %out[%index] : memref<128xf32>
    gpu.return
  }
}

func.func private @printMemrefF32(memref<*xf32>)

func.func @main() {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %none = arith.constant 0.0 : f32
  %out = gpu.alloc host_shared () : memref<128xf32>
  scf.for %i = %c0 to %c128 step %c1 {
    memref.store %none, %out[%i] : memref<128xf32>
  }
  %shown = memref.cast %out : memref<128xf32> to memref<*xf32>
  // Twice the sum of 16 products of 1, in the rows that 64 threads have.
  gpu.launch_func @kernels::@two_issuers blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1)
      args(%out : memref<128xf32>)
  // CHECK: [32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32,
  func.call @printMemrefF32(%shown) : (memref<*xf32>) -> ()
  gpu.launch_func @kernels::@in_turn blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1)
      args(%out : memref<128xf32>)
  // CHECK: [0, 1, 2, 3, 4, {{.*}} 62, 63,
  func.call @printMemrefF32(%shown) : (memref<*xf32>) -> ()
  return
}
}
