// Reports of accesses of global memory, one kernel for each
// rule.

// RUN: %add_launches %s | kvcache-opt --kvcache-to-emulator="chip=sm_90a" -o %t.mlir
// RUN: %emulator_tests/kvcache-run-cases %t.mlir --shared-libs=%kvcache_emulator,%kvcache_runtime | FileCheck %s -DFILE="<stdin>"

module attributes {gpu.container_module} {

gpu.module @kernels {
  llvm.mlir.global internal @bytes() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<64 x i8>
  llvm.mlir.global internal @barrier() {addr_space = 3 : i32, alignment = 8 : i64} : i64
  llvm.mlir.global internal constant @constant(0 : i32) {addr_space = 4 : i32} : i32

  gpu.func @partly_written(%m: memref<16xi32>) kernel {
    %i = arith.constant 1 : index
    %one = arith.constant 1 : i32
    memref.store %one, %m[%i] : memref<16xi32>
    %c0 = arith.constant 0 : index
    // CHECK-LABEL: run @partly_written:
    // CHECK: [[FILE]]:[[#@LINE+2]]:5: llvm.store: thread (0, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which were uninitialized when llvm.load at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte 8 of an allocation of 64 bytes
    %v = vector.load %m[%c0] : memref<16xi32>, vector<4xi32>
    vector.store %v, %m[%c0] : memref<16xi32>, vector<4xi32>
    gpu.return
  }

  gpu.func @freed(%m: memref<16xi32>) kernel {
    %i = arith.constant 4 : index
    // CHECK-LABEL: run @freed:
    // CHECK: [[FILE]]:[[#@LINE+1]]:10: llvm.load: thread (0, 0, 0) of block (0, 0, 0) reads 4 bytes at byte 16 of an allocation of 64 bytes, which has been freed
    %v = memref.load %m[%i] : memref<16xi32>
    memref.store %v, %m[%i] : memref<16xi32>
    gpu.return
  }

  gpu.func @memory_of_the_host(%m: memref<16xi32>) kernel {
    %i = arith.constant 0 : index
    // CHECK-LABEL: run @memory_of_the_host:
    // CHECK: [[FILE]]:[[#@LINE+1]]:10: llvm.load: thread (0, 0, 0) of block (0, 0, 0) reads 4 bytes at 0x{{[0-9a-f]+}}, which is no memory of the device
    %v = memref.load %m[%i] : memref<16xi32>
    memref.store %v, %m[%i] : memref<16xi32>
    gpu.return
  }

  // LAUNCH: uninitialized memory
  gpu.func @not_written(%m: memref<16xi32>) kernel {
    %i = arith.constant 4 : index
    // CHECK-LABEL: run @not_written:
    // CHECK: [[FILE]]:[[#@LINE+2]]:5: llvm.store: thread (0, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which were uninitialized when llvm.load at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte 16 of an allocation of 64 bytes
    %v = memref.load %m[%i] : memref<16xi32>
    memref.store %v, %m[%i] : memref<16xi32>
    gpu.return
  }

  gpu.func @after_the_end(%m: memref<16xi32>) kernel {
    %i = arith.constant 14 : index
    // CHECK-LABEL: run @after_the_end:
    // CHECK: [[FILE]]:[[#@LINE+1]]:10: llvm.load: thread (0, 0, 0) of block (0, 0, 0) reads 16 bytes at byte 56 of an allocation of 64 bytes
    %v = vector.load %m[%i] : memref<16xi32>, vector<4xi32>
    vector.store %v, %m[%i] : memref<16xi32>, vector<4xi32>
    gpu.return
  }

  gpu.func @far_after_the_end(%m: memref<16xi32>) kernel {
    %i = arith.constant 1000 : index
    %one = arith.constant 1 : i32
    // CHECK-LABEL: run @far_after_the_end:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: llvm.store: thread (0, 0, 0) of block (0, 0, 0) writes 4 bytes at byte 4000 of an allocation of 64 bytes
    memref.store %one, %m[%i] : memref<16xi32>
    gpu.return
  }

  gpu.func @before_the_beginning(%m: memref<16xi32>) kernel {
    %i = arith.constant -1 : index
    %one = arith.constant 1 : i32
    // CHECK-LABEL: run @before_the_beginning:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: llvm.store: thread (0, 0, 0) of block (0, 0, 0) writes 4 bytes at byte -4 of an allocation of 64 bytes
    memref.store %one, %m[%i] : memref<16xi32>
    gpu.return
  }

  gpu.func @misaligned(%m: memref<16xi32>) kernel {
    %index = memref.extract_aligned_pointer_as_index %m : memref<16xi32> -> index
    %address = arith.index_cast %index : index to i64
    %p = llvm.inttoptr %address : i64 to !llvm.ptr<1>
    %odd = llvm.getelementptr %p[4] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
    // CHECK-LABEL: run @misaligned:
    // CHECK: [[FILE]]:[[#@LINE+1]]:10: llvm.load: thread (0, 0, 0) of block (0, 0, 0) expects an address at a multiple of 16 bytes, got 0x{{[0-9a-f]+}}4
    %v = llvm.load volatile %odd {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
    gpu.return
  }

  gpu.func @invariant_memory_that_is_written(%m: memref<16xi32>) kernel {
    %index = memref.extract_aligned_pointer_as_index %m : memref<16xi32> -> index
    %address = arith.index_cast %index : index to i64
    %p = llvm.inttoptr %address : i64 to !llvm.ptr<1>
    %one = llvm.mlir.constant(1 : i32) : i32
    llvm.store %one, %p : i32, !llvm.ptr<1>
    // CHECK-LABEL: run @invariant_memory_that_is_written:
    // CHECK: [[FILE]]:[[#@LINE+1]]:10: llvm.load: thread (0, 0, 0) of block (0, 0, 0) reads 4 bytes at byte 0 of an allocation of 64 bytes, which the kernel writes, as memory that is constant during the kernel (ld.global.nc)
    %v = llvm.load %p invariant : !llvm.ptr<1> -> i32
    %next = llvm.getelementptr %p[4] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
    llvm.store %v, %next : i32, !llvm.ptr<1>
    gpu.return
  }

  gpu.func @constant_memory(%m: memref<16xi32>) kernel {
    %p = llvm.mlir.addressof @constant : !llvm.ptr<4>
    %one = llvm.mlir.constant(1 : i32) : i32
    // CHECK-LABEL: run @constant_memory:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: llvm.store: thread (0, 0, 0) of block (0, 0, 0) writes 4 bytes at byte 0 of constant memory of 4 bytes
    llvm.store %one, %p : i32, !llvm.ptr<4>
    gpu.return
  }

  gpu.func @copy_of_what_the_kernel_writes(%m: memref<16xi32>) kernel {
    %index = memref.extract_aligned_pointer_as_index %m : memref<16xi32> -> index
    %address = arith.index_cast %index : index to i64
    %p = llvm.inttoptr %address : i64 to !llvm.ptr<1>
    %one = llvm.mlir.constant(1 : i32) : i32
    %to = llvm.mlir.addressof @bytes : !llvm.ptr<3>
    %barrier = llvm.mlir.addressof @barrier : !llvm.ptr<3>
    %size = llvm.mlir.constant(64 : i32) : i32
    nvvm.mbarrier.init %barrier, %one : !llvm.ptr<3>, i32
    nvvm.fence.mbarrier.init
    %fifth = llvm.getelementptr %p[16] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
    llvm.store %one, %fifth : i32, !llvm.ptr<1>
    // CHECK-LABEL: run @copy_of_what_the_kernel_writes:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.cp.async.bulk.shared.cluster.global: thread (0, 0, 0) of block (0, 0, 0) issues a copy that reads 64 bytes at byte 0 of an allocation of 64 bytes, which thread (0, 0, 0) writes in llvm.store at [[FILE]]:[[#@LINE-2]]:5 without a proxy fence between them (fence.proxy.async); the first of these bytes is byte 16
    nvvm.cp.async.bulk.shared.cluster.global %to, %p, %barrier, %size : !llvm.ptr<3>, !llvm.ptr<1>
    gpu.return
  }

  gpu.func @copy_of_what_is_written_after_a_fence(%m: memref<16xi32>) kernel {
    %index = memref.extract_aligned_pointer_as_index %m : memref<16xi32> -> index
    %address = arith.index_cast %index : index to i64
    %p = llvm.inttoptr %address : i64 to !llvm.ptr<1>
    %one = llvm.mlir.constant(1 : i32) : i32
    %to = llvm.mlir.addressof @bytes : !llvm.ptr<3>
    %barrier = llvm.mlir.addressof @barrier : !llvm.ptr<3>
    %size = llvm.mlir.constant(16 : i32) : i32
    nvvm.mbarrier.init %barrier, %one : !llvm.ptr<3>, i32
    nvvm.fence.mbarrier.init
    llvm.store %one, %p : i32, !llvm.ptr<1>
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.global>}
    %fifth = llvm.getelementptr %p[16] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
    llvm.store %one, %fifth : i32, !llvm.ptr<1>
    // A fence for the other memory is none.
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
    nvvm.cp.async.bulk.shared.cluster.global %to, %p, %barrier, %size : !llvm.ptr<3>, !llvm.ptr<1>
    // CHECK-LABEL: run @copy_of_what_is_written_after_a_fence:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.cp.async.bulk.shared.cluster.global: thread (0, 0, 0) of block (0, 0, 0) issues a copy that reads 16 bytes at byte 16 of an allocation of 64 bytes, which thread (0, 0, 0) writes in llvm.store at [[FILE]]:[[#@LINE-5]]:5 without a proxy fence between them (fence.proxy.async)
    nvvm.cp.async.bulk.shared.cluster.global %to, %fifth, %barrier, %size : !llvm.ptr<3>, !llvm.ptr<1>
    gpu.return
  }
}

func.func @partly_written() {
  %c1 = arith.constant 1 : index
  %m = gpu.alloc() : memref<16xi32>
  %zero = arith.constant 0 : i32
  %front = memref.subview %m[0] [1] [1] : memref<16xi32> to memref<1xi32>
  gpu.memset %front, %zero : memref<1xi32>, i32
  gpu.launch_func @kernels::@partly_written blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%m : memref<16xi32>)
  return
}

func.func @freed() {
  %c1 = arith.constant 1 : index
  %m = gpu.alloc() : memref<16xi32>
  %zero = arith.constant 0 : i32
  gpu.memset %m, %zero : memref<16xi32>, i32
  gpu.dealloc %m : memref<16xi32>
  gpu.launch_func @kernels::@freed blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%m : memref<16xi32>)
  return
}

func.func @memory_of_the_host() {
  %c1 = arith.constant 1 : index
  %m = memref.alloc() : memref<16xi32>
  gpu.launch_func @kernels::@memory_of_the_host blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%m : memref<16xi32>)
  return
}

}
