// Accesses that leave a variable of shared memory, towards another one or not:
// there is a red zone around each.

// RUN: %add_launches %s | kvcache-opt --kvcache-to-emulator="chip=sm_90a" -o %t.mlir
// RUN: env KVCACHE_EMULATOR_THREADS=1 %emulator_tests/kvcache-run-cases %t.mlir --shared-libs=%kvcache_emulator,%kvcache_runtime | FileCheck %s -DFILE="<stdin>"
// RUN: env KVCACHE_EMULATOR_THREADS=4 %emulator_tests/kvcache-run-cases %t.mlir --shared-libs=%kvcache_emulator,%kvcache_runtime | FileCheck %s -DFILE="<stdin>"

module attributes {gpu.container_module} {

gpu.module @kernels {
  llvm.mlir.global internal @barrier() {addr_space = 3 : i32, alignment = 8 : i64} : i64
  llvm.mlir.global internal @part_a() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<64 x i8>
  llvm.mlir.global internal @part_b() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<64 x i8>
  memref.global "private" @small : memref<8192xi32, #gpu.address_space<workgroup>> = uninitialized
  memref.global "private" @large : memref<16384xi32, #gpu.address_space<workgroup>> = uninitialized

  // LAUNCH: 3 blocks
  gpu.func @store_past_the_end(%memory: memref<256xi32>) kernel {
    %other_b = llvm.mlir.addressof @part_b : !llvm.ptr<3>
    %other_b_value = llvm.mlir.constant(7 : i32) : i32
    llvm.store %other_b_value, %other_b : i32, !llvm.ptr<3>
    %a = llvm.mlir.addressof @part_a : !llvm.ptr<3>
    %one = llvm.mlir.constant(1 : i32) : i32
    %p = llvm.getelementptr %a[64] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    // CHECK-LABEL: run @store_past_the_end:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: llvm.store: thread (0, 0, 0) of block (0, 0, 0) uses 4 bytes at byte 64 of shared @part_a, which has 64 bytes
    llvm.store %one, %p : i32, !llvm.ptr<3>
    gpu.return
  }

  // LAUNCH: 3 blocks
  gpu.func @load_before_the_start(%memory: memref<256xi32>) kernel {
    %other_a = llvm.mlir.addressof @part_a : !llvm.ptr<3>
    %other_a_value = llvm.mlir.constant(7 : i32) : i32
    llvm.store %other_a_value, %other_a : i32, !llvm.ptr<3>
    %b = llvm.mlir.addressof @part_b : !llvm.ptr<3>
    %p = llvm.getelementptr %b[-4] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    // CHECK-LABEL: run @load_before_the_start:
    // CHECK: [[FILE]]:[[#@LINE+1]]:10: llvm.load: thread (0, 0, 0) of block (0, 0, 0) uses 4 bytes at byte -4 of shared @part_b, which has 64 bytes
    %v = llvm.load volatile %p : !llvm.ptr<3> -> i32
    gpu.return
  }

  // LAUNCH: 3 blocks
  gpu.func @load_before_the_first(%memory: memref<256xi32>) kernel {
    %a = llvm.mlir.addressof @part_a : !llvm.ptr<3>
    %p = llvm.getelementptr %a[-4] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    // CHECK-LABEL: run @load_before_the_first:
    // CHECK: [[FILE]]:[[#@LINE+1]]:10: llvm.load: thread (0, 0, 0) of block (0, 0, 0) uses 4 bytes at byte -4 of shared @part_a, which has 64 bytes
    %v = llvm.load volatile %p : !llvm.ptr<3> -> i32
    gpu.return
  }

  // LAUNCH: 3 blocks
  gpu.func @load_after_the_last(%memory: memref<256xi32>) kernel {
    %b = llvm.mlir.addressof @part_b : !llvm.ptr<3>
    %p = llvm.getelementptr %b[1000] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    // CHECK-LABEL: run @load_after_the_last:
    // CHECK: [[FILE]]:[[#@LINE+1]]:10: llvm.load: thread (0, 0, 0) of block (0, 0, 0) uses 4 bytes at byte 1000 of shared @part_b, which has 64 bytes
    %v = llvm.load volatile %p : !llvm.ptr<3> -> i32
    gpu.return
  }

  // LAUNCH: 3 blocks
  gpu.func @wide_store_across_the_end(%memory: memref<256xi32>) kernel {
    %other_b = llvm.mlir.addressof @part_b : !llvm.ptr<3>
    %other_b_value = llvm.mlir.constant(7 : i32) : i32
    llvm.store %other_b_value, %other_b : i32, !llvm.ptr<3>
    %a = llvm.mlir.addressof @part_a : !llvm.ptr<3>
    %zeros = llvm.mlir.constant(dense<0> : vector<4xi32>) : vector<4xi32>
    %p = llvm.getelementptr %a[56] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    // CHECK-LABEL: run @wide_store_across_the_end:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: llvm.store: thread (0, 0, 0) of block (0, 0, 0) uses 16 bytes at byte 56 of shared @part_a, which has 64 bytes
    llvm.store %zeros, %p {alignment = 8 : i64} : vector<4xi32>, !llvm.ptr<3>
    gpu.return
  }

  // LAUNCH: 3 blocks
  gpu.func @atomic_past_the_end(%memory: memref<256xi32>) kernel {
    %other_b = llvm.mlir.addressof @part_b : !llvm.ptr<3>
    %other_b_value = llvm.mlir.constant(7 : i32) : i32
    llvm.store %other_b_value, %other_b : i32, !llvm.ptr<3>
    %a = llvm.mlir.addressof @part_a : !llvm.ptr<3>
    %one = llvm.mlir.constant(1 : i32) : i32
    %p = llvm.getelementptr %a[64] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    // CHECK-LABEL: run @atomic_past_the_end:
    // CHECK: [[FILE]]:[[#@LINE+1]]:12: llvm.atomicrmw: thread (0, 0, 0) of block (0, 0, 0) uses 4 bytes at byte 64 of shared @part_a, which has 64 bytes
    %old = llvm.atomicrmw add %p, %one monotonic : !llvm.ptr<3>, i32
    gpu.return
  }

  // LAUNCH: 3 blocks
  gpu.func @generic_store_past_the_end(%memory: memref<256xi32>) kernel {
    %other_b = llvm.mlir.addressof @part_b : !llvm.ptr<3>
    %other_b_value = llvm.mlir.constant(7 : i32) : i32
    llvm.store %other_b_value, %other_b : i32, !llvm.ptr<3>
    %a = llvm.mlir.addressof @part_a : !llvm.ptr<3>
    %one = llvm.mlir.constant(1 : i32) : i32
    %generic = llvm.addrspacecast %a : !llvm.ptr<3> to !llvm.ptr
    %p = llvm.getelementptr %generic[16] : (!llvm.ptr) -> !llvm.ptr, i32
    // CHECK-LABEL: run @generic_store_past_the_end:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: llvm.store: thread (0, 0, 0) of block (0, 0, 0) uses 4 bytes at byte 64 of shared @part_a, which has 64 bytes
    llvm.store %one, %p : i32, !llvm.ptr
    gpu.return
  }

  // LAUNCH: 3 blocks
  gpu.func @store_at_a_number(%memory: memref<256xi32>) kernel {
    %other_b = llvm.mlir.addressof @part_b : !llvm.ptr<3>
    %other_b_value = llvm.mlir.constant(7 : i32) : i32
    llvm.store %other_b_value, %other_b : i32, !llvm.ptr<3>
    %a = llvm.mlir.addressof @part_a : !llvm.ptr<3>
    %one = llvm.mlir.constant(1 : i32) : i32
    %start = llvm.ptrtoint %a : !llvm.ptr<3> to i32
    %distance = llvm.mlir.constant(68 : i32) : i32
    %place = llvm.add %start, %distance : i32
    %p = llvm.inttoptr %place : i32 to !llvm.ptr<3>
    // CHECK-LABEL: run @store_at_a_number:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: llvm.store: thread (0, 0, 0) of block (0, 0, 0) uses 4 bytes at byte 68 of shared @part_a, which has 64 bytes
    llvm.store %one, %p : i32, !llvm.ptr<3>
    gpu.return
  }

  // LAUNCH: 3 blocks
  gpu.func @thread_copy_past_the_end(%g: !llvm.ptr<1>) kernel {
    %other_b = llvm.mlir.addressof @part_b : !llvm.ptr<3>
    %other_b_value = llvm.mlir.constant(7 : i32) : i32
    llvm.store %other_b_value, %other_b : i32, !llvm.ptr<3>
    %a = llvm.mlir.addressof @part_a : !llvm.ptr<3>
    %p = llvm.getelementptr %a[64] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    // CHECK-LABEL: run @thread_copy_past_the_end:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.cp.async.shared.global: thread (0, 0, 0) of block (0, 0, 0) uses 16 bytes at byte 64 of shared @part_a, which has 64 bytes
    nvvm.cp.async.shared.global %p, %g, 16, cache = ca : !llvm.ptr<3>, !llvm.ptr<1>
    gpu.return
  }

  // LAUNCH: 3 blocks
  gpu.func @bulk_copy_past_the_end(%g: !llvm.ptr<1>) kernel {
    %other_b = llvm.mlir.addressof @part_b : !llvm.ptr<3>
    %other_b_value = llvm.mlir.constant(7 : i32) : i32
    llvm.store %other_b_value, %other_b : i32, !llvm.ptr<3>
    %a = llvm.mlir.addressof @part_a : !llvm.ptr<3>
    %one = llvm.mlir.constant(1 : i32) : i32
    %bar = llvm.mlir.addressof @barrier : !llvm.ptr<3>
    nvvm.mbarrier.init %bar, %one : !llvm.ptr<3>, i32
    nvvm.fence.mbarrier.init
    %bytes = llvm.mlir.constant(128 : i32) : i32
    // CHECK-LABEL: run @bulk_copy_past_the_end:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.cp.async.bulk.shared.cluster.global: thread (0, 0, 0) of block (0, 0, 0) uses 128 bytes at byte 0 of shared @part_a, which has 64 bytes
    nvvm.cp.async.bulk.shared.cluster.global %a, %g, %bar, %bytes : !llvm.ptr<3>, !llvm.ptr<1>
    gpu.return
  }

  // LAUNCH: 3 blocks
  gpu.func @bulk_store_past_the_end(%g: !llvm.ptr<1>) kernel {
    %other_b = llvm.mlir.addressof @part_b : !llvm.ptr<3>
    %other_b_value = llvm.mlir.constant(7 : i32) : i32
    llvm.store %other_b_value, %other_b : i32, !llvm.ptr<3>
    %a = llvm.mlir.addressof @part_a : !llvm.ptr<3>
    %p = llvm.getelementptr %a[48] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %bytes = llvm.mlir.constant(32 : i32) : i32
    // CHECK-LABEL: run @bulk_store_past_the_end:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.cp.async.bulk.global.shared.cta: thread (0, 0, 0) of block (0, 0, 0) uses 32 bytes at byte 48 of shared @part_a, which has 64 bytes
    nvvm.cp.async.bulk.global.shared.cta %g, %p, %bytes : !llvm.ptr<1>, !llvm.ptr<3>
    gpu.return
  }

  // LAUNCH: 3 blocks
  gpu.func @mbarrier_past_the_end(%memory: memref<256xi32>) kernel {
    %other_a = llvm.mlir.addressof @part_a : !llvm.ptr<3>
    %other_a_value = llvm.mlir.constant(7 : i32) : i32
    llvm.store %other_a_value, %other_a : i32, !llvm.ptr<3>
    %other_b = llvm.mlir.addressof @part_b : !llvm.ptr<3>
    %other_b_value = llvm.mlir.constant(7 : i32) : i32
    llvm.store %other_b_value, %other_b : i32, !llvm.ptr<3>
    %one = llvm.mlir.constant(1 : i32) : i32
    %bar = llvm.mlir.addressof @barrier : !llvm.ptr<3>
    %p = llvm.getelementptr %bar[8] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    // CHECK-LABEL: run @mbarrier_past_the_end:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.mbarrier.init: thread (0, 0, 0) of block (0, 0, 0) uses 8 bytes at byte 8 of shared @barrier, which has 8 bytes
    nvvm.mbarrier.init %p, %one : !llvm.ptr<3>, i32
    gpu.return
  }

  // LAUNCH: 32 threads, 3 blocks
  gpu.func @matrix_past_the_end(%memory: memref<256xi32>) kernel {
    %a = llvm.mlir.addressof @part_a : !llvm.ptr<3>
    %lane = nvvm.read.ptx.sreg.laneid range <i32, 0, 32> : i32
    %row = llvm.getelementptr %a[%lane] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, !llvm.array<16 x i8>
    // CHECK-LABEL: run @matrix_past_the_end:
    // CHECK: [[FILE]]:[[#@LINE+1]]:10: nvvm.ldmatrix: thread (4, 0, 0) of block (0, 0, 0) uses 16 bytes at byte 64 of shared @part_a, which has 64 bytes
    %m = nvvm.ldmatrix %row {num = 1 : i32, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : (!llvm.ptr<3>) -> i32
    gpu.return
  }

  // LAUNCH: 3 blocks
  gpu.func @past_the_end_of_packed(%memory: memref<256xi32>) kernel {
    %c0 = arith.constant 0 : index
    %one = arith.constant 1 : i32
    %c8192 = arith.constant 8192 : index
    %small = memref.get_global @small : memref<8192xi32, #gpu.address_space<workgroup>>
    %large = memref.get_global @large : memref<16384xi32, #gpu.address_space<workgroup>>
    memref.store %one, %large[%c0] : memref<16384xi32, #gpu.address_space<workgroup>>
    // CHECK-LABEL: run @past_the_end_of_packed:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: llvm.store: thread (0, 0, 0) of block (0, 0, 0) uses 4 bytes at byte 32768 of shared @small, which has 32768 bytes
    memref.store %one, %small[%c8192] : memref<8192xi32, #gpu.address_space<workgroup>>
    gpu.return
  }

  // LAUNCH: 3 blocks
  gpu.func @before_packed(%memory: memref<256xi32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %one = arith.constant 1 : i32
    %t = gpu.thread_id x
    %before = arith.subi %t, %c1 : index
    %small = memref.get_global @small : memref<8192xi32, #gpu.address_space<workgroup>>
    %large = memref.get_global @large : memref<16384xi32, #gpu.address_space<workgroup>>
    memref.store %one, %small[%c0] : memref<8192xi32, #gpu.address_space<workgroup>>
    // CHECK-LABEL: run @before_packed:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: llvm.store: thread (0, 0, 0) of block (0, 0, 0) uses 4 bytes at byte -4 of shared @large, which has 65536 bytes
    memref.store %one, %large[%before] : memref<16384xi32, #gpu.address_space<workgroup>>
    gpu.return
  }

  // LAUNCH: 3 blocks, 64 bytes of dynamic shared memory
  gpu.func @past_dynamic(%memory: memref<256xi32>) kernel {
    %c16 = arith.constant 16 : index
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : i32
    %a = llvm.mlir.addressof @part_a : !llvm.ptr<3>
    llvm.store %one, %a : i32, !llvm.ptr<3>
    %all = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    %view = memref.view %all[%zero][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<16xi32, #gpu.address_space<workgroup>>
    // CHECK-LABEL: run @past_dynamic:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: llvm.store: thread (0, 0, 0) of block (0, 0, 0) uses 4 bytes at byte 64 of shared @__dynamic_shmem__0, which has 64 bytes
    memref.store %one, %view[%c16] : memref<16xi32, #gpu.address_space<workgroup>>
    gpu.return
  }
}

}
