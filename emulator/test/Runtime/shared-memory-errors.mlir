// Reports of accesses of shared memory, one kernel for each
// rule. Kernels that are like them and right are in shared-memory.mlir.

// RUN: %add_launches %s | kvcache-opt --kvcache-to-emulator="chip=sm_90a" -o %t.mlir
// RUN: %emulator_tests/kvcache-run-cases %t.mlir --shared-libs=%kvcache_emulator,%kvcache_runtime | FileCheck %s -DFILE="<stdin>"

module attributes {gpu.container_module} {

gpu.module @kernels {
  llvm.mlir.global internal @bytes() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<64 x i8>
  llvm.mlir.global internal @barrier() {addr_space = 3 : i32, alignment = 8 : i64} : i64

  // The bytes that a copy writes, and the mbarrier that expects them.
  func.func private @expect_bytes() -> (!llvm.ptr<3>, !llvm.ptr<3>, i32) {
    %to = llvm.mlir.addressof @bytes : !llvm.ptr<3>
    %one = llvm.mlir.constant(1 : i32) : i32
    %barrier = llvm.mlir.addressof @barrier : !llvm.ptr<3>
    %size = llvm.mlir.constant(64 : i32) : i32
    nvvm.mbarrier.init %barrier, %one : !llvm.ptr<3>, i32
    nvvm.fence.mbarrier.init
    nvvm.mbarrier.arrive.expect_tx %barrier, %size : !llvm.ptr<3>, i32
    return %to, %barrier, %size : !llvm.ptr<3>, !llvm.ptr<3>, i32
  }

  // LAUNCH: 2 threads
  gpu.func @writes_without_order() workgroup(%tile: memref<64xi32, #gpu.address_space<workgroup>>) kernel {
    %c0 = arith.constant 0 : index
    %one = arith.constant 1 : i32

    // CHECK-LABEL: run @writes_without_order:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: llvm.store: thread (1, 0, 0) of block (0, 0, 0) writes 4 bytes at byte 0 of shared @__wg_writes_without_order_0, which thread (0, 0, 0) writes in llvm.store at [[FILE]]:[[#@LINE+1]]:5 without order between them (a race)
    memref.store %one, %tile[%c0] : memref<64xi32, #gpu.address_space<workgroup>>
    gpu.return
  }

  // LAUNCH: 2 threads
  gpu.func @read_without_order() workgroup(%tile: memref<64xi32, #gpu.address_space<workgroup>>) kernel {
    %c0 = arith.constant 0 : index
    %t = gpu.thread_id x
    %one = arith.constant 1 : i32
    %is_first = arith.cmpi eq, %t, %c0 : index

    scf.if %is_first {
      memref.store %one, %tile[%c0] : memref<64xi32, #gpu.address_space<workgroup>>
    }
    // CHECK-LABEL: run @read_without_order:
    // CHECK: [[FILE]]:[[#@LINE+1]]:10: llvm.load: thread (1, 0, 0) of block (0, 0, 0) reads 4 bytes at byte 0 of shared @__wg_read_without_order_0, which thread (0, 0, 0) writes in llvm.store at [[FILE]]:[[#@LINE-3]]:7 without order between them (a race)
    %v = memref.load %tile[%c0] : memref<64xi32, #gpu.address_space<workgroup>>
    %c32 = arith.constant 32 : index
    memref.store %v, %tile[%c32] : memref<64xi32, #gpu.address_space<workgroup>>
    gpu.return
  }

  // LAUNCH: 2 threads
  gpu.func @write_of_what_others_read() workgroup(%tile: memref<64xi32, #gpu.address_space<workgroup>>) kernel {
    %c0 = arith.constant 0 : index
    %t = gpu.thread_id x
    %one = arith.constant 1 : i32
    %is_first = arith.cmpi eq, %t, %c0 : index

    scf.if %is_first {
      memref.store %one, %tile[%c0] : memref<64xi32, #gpu.address_space<workgroup>>
    }
    nvvm.barrier0
    %v = memref.load %tile[%c0] : memref<64xi32, #gpu.address_space<workgroup>>
    scf.if %is_first {
      // CHECK-LABEL: run @write_of_what_others_read:
      // CHECK: [[FILE]]:[[#@LINE+1]]:7: llvm.store: thread (0, 0, 0) of block (0, 0, 0) writes 4 bytes at byte 0 of shared @__wg_write_of_what_others_read_0, which thread (1, 0, 0) reads in llvm.load at [[FILE]]:[[#@LINE-3]]:10 without order between them (a race)
      memref.store %v, %tile[%c0] : memref<64xi32, #gpu.address_space<workgroup>>
    }
    gpu.return
  }

  // LAUNCH: 2 threads
  gpu.func @atomic_and_plain() workgroup(%tile: memref<64xi32, #gpu.address_space<workgroup>>) kernel {
    %c0 = arith.constant 0 : index
    %t = gpu.thread_id x
    %one = arith.constant 1 : i32
    %is_first = arith.cmpi eq, %t, %c0 : index

    scf.if %is_first {
      memref.store %one, %tile[%c0] : memref<64xi32, #gpu.address_space<workgroup>>
    }
    nvvm.barrier0
    scf.if %is_first {
      // CHECK-LABEL: run @atomic_and_plain:
      // CHECK: [[FILE]]:[[#@LINE+1]]:14: llvm.atomicrmw: thread (0, 0, 0) of block (0, 0, 0) atomically updates 4 bytes at byte 0 of shared @__wg_atomic_and_plain_0, which thread (1, 0, 0) writes in llvm.store at [[FILE]]:[[#@LINE+3]]:7 without order between them (a race)
      %old = memref.atomic_rmw addi %one, %tile[%c0] : (i32, memref<64xi32, #gpu.address_space<workgroup>>) -> i32
    } else {
      memref.store %one, %tile[%c0] : memref<64xi32, #gpu.address_space<workgroup>>
    }
    gpu.return
  }

  // An atomic update orders nothing: PTX has it without an order.
  // LAUNCH: 2 threads
  gpu.func @flag_without_fences() workgroup(%flag: memref<64xi32, #gpu.address_space<workgroup>>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %t = gpu.thread_id x
    %is_first = arith.cmpi eq, %t, %c0 : index
    scf.if %is_first {
      memref.store %zero, %flag[%c0] : memref<64xi32, #gpu.address_space<workgroup>>
    }
    nvvm.barrier0
    scf.if %is_first {
      scf.while : () -> () {
        %value = memref.atomic_rmw addi %zero, %flag[%c0] : (i32, memref<64xi32, #gpu.address_space<workgroup>>) -> i32
        %again = arith.cmpi eq, %value, %zero : i32
        scf.condition(%again)
      } do {
        scf.yield
      }
      // CHECK-LABEL: run @flag_without_fences:
      // CHECK: [[FILE]]:[[#@LINE+1]]:16: llvm.load: thread (0, 0, 0) of block (0, 0, 0) reads 4 bytes at byte 4 of shared @__wg_flag_without_fences_0, which thread (1, 0, 0) writes in llvm.store at [[FILE]]:[[#@LINE+4]]:7 without order between them (a race)
      %value = memref.load %flag[%c1] : memref<64xi32, #gpu.address_space<workgroup>>
      memref.store %value, %flag[%c1] : memref<64xi32, #gpu.address_space<workgroup>>
    } else {
      memref.store %one, %flag[%c1] : memref<64xi32, #gpu.address_space<workgroup>>
      %old = memref.atomic_rmw addi %one, %flag[%c0] : (i32, memref<64xi32, #gpu.address_space<workgroup>>) -> i32
    }
    gpu.return
  }

  gpu.func @not_written() workgroup(%tile: memref<64xi32, #gpu.address_space<workgroup>>) kernel {
    %t = gpu.thread_id x
    %one = arith.constant 1 : i32

    // CHECK-LABEL: run @not_written:
    // CHECK: [[FILE]]:[[#@LINE+3]]:5: llvm.cond_br: thread (0, 0, 0) of block (0, 0, 0) branches on a value that depends on bytes which were uninitialized when llvm.load at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte 0 of shared @__wg_not_written_0
    %v = memref.load %tile[%t] : memref<64xi32, #gpu.address_space<workgroup>>
    %is_one = arith.cmpi eq, %v, %one : i32
    scf.if %is_one {
      memref.store %one, %tile[%t] : memref<64xi32, #gpu.address_space<workgroup>>
    }
    gpu.return
  }

  gpu.func @partly_written() workgroup(%tile: memref<64xi32, #gpu.address_space<workgroup>>) kernel {
    %c0 = arith.constant 0 : index
    %one = arith.constant 1 : i32

    memref.store %one, %tile[%c0] : memref<64xi32, #gpu.address_space<workgroup>>
    // CHECK-LABEL: run @partly_written:
    // CHECK: [[FILE]]:[[#@LINE+4]]:15: llvm.atomicrmw: thread (0, 0, 0) of block (0, 0, 0) uses a value that depends on bytes which were uninitialized when llvm.load at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte 4 of shared @__wg_partly_written_0
    %v = vector.load %tile[%c0] {alignment = 16 : i64} : memref<64xi32, #gpu.address_space<workgroup>>, vector<4xi32>
    %first = vector.extract %v[0] : i32 from vector<4xi32>
    %second = vector.extract %v[1] : i32 from vector<4xi32>
    %before = memref.atomic_rmw addi %second, %tile[%c0] : (i32, memref<64xi32, #gpu.address_space<workgroup>>) -> i32
    memref.store %first, %tile[%c0] : memref<64xi32, #gpu.address_space<workgroup>>
    gpu.return
  }

  gpu.func @out_of_bounds() workgroup(%tile: memref<64xi32, #gpu.address_space<workgroup>>) kernel {

    %c61 = arith.constant 61 : index
    %v = arith.constant dense<0> : vector<4xi32>
    // CHECK-LABEL: run @out_of_bounds:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: llvm.store: thread (0, 0, 0) of block (0, 0, 0) uses 16 bytes at byte 244 of shared @__wg_out_of_bounds_0, which has 256 bytes
    vector.store %v, %tile[%c61] : memref<64xi32, #gpu.address_space<workgroup>>, vector<4xi32>
    gpu.return
  }

  gpu.func @misaligned() workgroup(%tile: memref<64xi32, #gpu.address_space<workgroup>>) kernel {

    %c1 = arith.constant 1 : index
    %v = arith.constant dense<0> : vector<4xi32>
    // CHECK-LABEL: run @misaligned:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: llvm.store: thread (0, 0, 0) of block (0, 0, 0) expects an address at a multiple of 16 bytes, got byte 4 of shared @__wg_misaligned_0
    vector.store %v, %tile[%c1] {alignment = 16 : i64} : memref<64xi32, #gpu.address_space<workgroup>>, vector<4xi32>
    gpu.return
  }

  gpu.func @part_of_an_mbarrier(%from: !llvm.ptr<1>) kernel {
    %to, %barrier, %size = func.call @expect_bytes() : () -> (!llvm.ptr<3>, !llvm.ptr<3>, i32)

    // CHECK-LABEL: run @part_of_an_mbarrier:
    // CHECK: [[FILE]]:[[#@LINE+1]]:10: llvm.load: thread (0, 0, 0) of block (0, 0, 0) reads 4 bytes at byte 0 of shared @barrier, which is part of an mbarrier
    %v = llvm.load volatile %barrier : !llvm.ptr<3> -> i32
    gpu.return
  }

  gpu.func @read_while_in_flight(%from: !llvm.ptr<1>) kernel {
    %to, %barrier, %size = func.call @expect_bytes() : () -> (!llvm.ptr<3>, !llvm.ptr<3>, i32)
    nvvm.cp.async.bulk.shared.cluster.global %to, %from, %barrier, %size : !llvm.ptr<3>, !llvm.ptr<1>

    // CHECK-LABEL: run @read_while_in_flight:
    // CHECK: [[FILE]]:[[#@LINE+1]]:10: llvm.load: thread (0, 0, 0) of block (0, 0, 0) reads 4 bytes at byte 0 of shared @bytes, which a copy issued by thread (0, 0, 0) in nvvm.cp.async.bulk.shared.cluster.global at [[FILE]]:[[#@LINE-3]]:5 has in flight: its barrier has not completed
    %v = llvm.load volatile %to : !llvm.ptr<3> -> i32
    gpu.return
  }

  // LAUNCH: 2 threads
  gpu.func @read_without_the_wait(%from: !llvm.ptr<1>) kernel {
    %to = llvm.mlir.addressof @bytes : !llvm.ptr<3>
    %one = llvm.mlir.constant(1 : i32) : i32
    %barrier = llvm.mlir.addressof @barrier : !llvm.ptr<3>
    %size = llvm.mlir.constant(64 : i32) : i32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %none = llvm.mlir.constant(0 : i32) : i32
    %is_first = llvm.icmp "eq" %t, %none : i32
    scf.if %is_first {
      nvvm.mbarrier.init %barrier, %one : !llvm.ptr<3>, i32
      nvvm.fence.mbarrier.init
      nvvm.mbarrier.arrive.expect_tx %barrier, %size : !llvm.ptr<3>, i32
      nvvm.cp.async.bulk.shared.cluster.global %to, %from, %barrier, %size : !llvm.ptr<3>, !llvm.ptr<1>
      %zero = llvm.mlir.constant(0 : i32) : i32
      nvvm.mbarrier.try_wait.parity %barrier, %zero, %one : !llvm.ptr<3>, i32, i32
    }
    // Threads converge here, which orders nothing (PTX ISA, "shfl.sync").
    %mask = llvm.mlir.constant(3 : i32) : i32
    %clamp = llvm.mlir.constant(31 : i32) : i32
    %lane = nvvm.shfl.sync idx %mask, %t, %none, %clamp : i32 -> i32
    scf.if %is_first {
    } else {
      // CHECK-LABEL: run @read_without_the_wait:
      // CHECK: [[FILE]]:[[#@LINE+1]]:12: llvm.load: thread (1, 0, 0) of block (0, 0, 0) reads 4 bytes at byte 0 of shared @bytes, which a copy issued by thread (0, 0, 0) in nvvm.cp.async.bulk.shared.cluster.global at [[FILE]]:[[#@LINE-11]]:7 has written, but the thread has not waited for its barrier
      %v = llvm.load volatile %to : !llvm.ptr<3> -> i32
    }
    gpu.return
  }

  // LAUNCH: 2 threads
  gpu.func @copy_over_what_others_read(%from: !llvm.ptr<1>) kernel {
    %to = llvm.mlir.addressof @bytes : !llvm.ptr<3>
    %one = llvm.mlir.constant(1 : i32) : i32
    %barrier = llvm.mlir.addressof @barrier : !llvm.ptr<3>
    %size = llvm.mlir.constant(64 : i32) : i32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %none = llvm.mlir.constant(0 : i32) : i32
    %is_first = llvm.icmp "eq" %t, %none : i32
    scf.if %is_first {
      llvm.store %one, %to : i32, !llvm.ptr<3>
    }
    nvvm.barrier0
    %v = llvm.load volatile %to : !llvm.ptr<3> -> i32
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
    scf.if %is_first {
      nvvm.mbarrier.init %barrier, %one : !llvm.ptr<3>, i32
      nvvm.fence.mbarrier.init
      nvvm.mbarrier.arrive.expect_tx %barrier, %size : !llvm.ptr<3>, i32
      // CHECK-LABEL: run @copy_over_what_others_read:
      // CHECK: [[FILE]]:[[#@LINE+1]]:7: nvvm.cp.async.bulk.shared.cluster.global: thread (0, 0, 0) of block (0, 0, 0) issues a copy that writes 64 bytes at byte 0 of shared @bytes, which thread (1, 0, 0) reads in llvm.load at [[FILE]]:[[#@LINE-7]]:10 without order between them (a race)
      nvvm.cp.async.bulk.shared.cluster.global %to, %from, %barrier, %size : !llvm.ptr<3>, !llvm.ptr<1>
    }
    gpu.return
  }

  gpu.func @copy_over_a_write_without_a_fence(%from: !llvm.ptr<1>) kernel {
    %to, %barrier, %size = func.call @expect_bytes() : () -> (!llvm.ptr<3>, !llvm.ptr<3>, i32)
    %one = llvm.mlir.constant(1 : i32) : i32
    llvm.store %one, %to : i32, !llvm.ptr<3>
    // CHECK-LABEL: run @copy_over_a_write_without_a_fence:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.cp.async.bulk.shared.cluster.global: thread (0, 0, 0) of block (0, 0, 0) issues a copy that writes 64 bytes at byte 0 of shared @bytes, which thread (0, 0, 0) writes in llvm.store at [[FILE]]:[[#@LINE-2]]:5 without a proxy fence between them (fence.proxy.async)
    nvvm.cp.async.bulk.shared.cluster.global %to, %from, %barrier, %size : !llvm.ptr<3>, !llvm.ptr<1>
    gpu.return
  }

  gpu.func @copy_of_a_write_without_a_fence(%from: !llvm.ptr<1>) kernel {
    %to = llvm.mlir.addressof @bytes : !llvm.ptr<3>
    %v = llvm.mlir.constant(dense<1> : vector<4xi32>) : vector<4xi32>
    llvm.store %v, %to : vector<4xi32>, !llvm.ptr<3>
    %sixteen = llvm.mlir.constant(16 : i32) : i32
    // CHECK-LABEL: run @copy_of_a_write_without_a_fence:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.cp.async.bulk.global.shared.cta: thread (0, 0, 0) of block (0, 0, 0) issues a copy that reads 16 bytes at byte 0 of shared @bytes, which thread (0, 0, 0) writes in llvm.store at [[FILE]]:[[#@LINE-3]]:5 without a proxy fence between them (fence.proxy.async)
    nvvm.cp.async.bulk.global.shared.cta %from, %to, %sixteen : !llvm.ptr<1>, !llvm.ptr<3>
    nvvm.cp.async.bulk.commit.group
    gpu.return
  }

  gpu.func @reuse_before_the_wait(%from: !llvm.ptr<1>) kernel {
    %to = llvm.mlir.addressof @bytes : !llvm.ptr<3>
    %one = llvm.mlir.constant(1 : i32) : i32
    %v = llvm.mlir.constant(dense<1> : vector<4xi32>) : vector<4xi32>
    llvm.store %v, %to : vector<4xi32>, !llvm.ptr<3>
    %sixteen = llvm.mlir.constant(16 : i32) : i32
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
    nvvm.cp.async.bulk.global.shared.cta %from, %to, %sixteen : !llvm.ptr<1>, !llvm.ptr<3>
    nvvm.cp.async.bulk.commit.group
    // CHECK-LABEL: run @reuse_before_the_wait:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: llvm.store: thread (0, 0, 0) of block (0, 0, 0) writes 4 bytes at byte 0 of shared @bytes, which a copy issued by thread (0, 0, 0) in nvvm.cp.async.bulk.global.shared.cta at [[FILE]]:[[#@LINE-3]]:5 still reads: no wait for it has completed
    llvm.store %one, %to : i32, !llvm.ptr<3>
    gpu.return
  }

  gpu.func @read_before_the_wait_for_the_group(%from: !llvm.ptr<1>) kernel {
    %to = llvm.mlir.addressof @bytes : !llvm.ptr<3>
    nvvm.cp.async.shared.global %to, %from, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
    nvvm.cp.async.commit.group
    // CHECK-LABEL: run @read_before_the_wait_for_the_group:
    // CHECK: [[FILE]]:[[#@LINE+1]]:10: llvm.load: thread (0, 0, 0) of block (0, 0, 0) reads 4 bytes at byte 0 of shared @bytes, which a copy issued by thread (0, 0, 0) in nvvm.cp.async.shared.global at [[FILE]]:[[#@LINE-3]]:5 has in flight: no wait for it has completed
    %v = llvm.load volatile %to : !llvm.ptr<3> -> i32
    gpu.return
  }

  // LAUNCH: 2 threads
  gpu.func @copy_of_another_thread(%from: !llvm.ptr<1>) kernel {
    %to = llvm.mlir.addressof @bytes : !llvm.ptr<3>
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %none = llvm.mlir.constant(0 : i32) : i32
    %is_first = llvm.icmp "eq" %t, %none : i32
    scf.if %is_first {
      nvvm.cp.async.shared.global %to, %from, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
      nvvm.cp.async.commit.group
      nvvm.cp.async.wait.group 0
    }
    // CHECK-LABEL: run @copy_of_another_thread:
    // CHECK: [[FILE]]:[[#@LINE+1]]:10: llvm.load: thread (1, 0, 0) of block (0, 0, 0) reads 4 bytes at byte 0 of shared @bytes, which a copy issued by thread (0, 0, 0) in nvvm.cp.async.shared.global at [[FILE]]:[[#@LINE-5]]:7 has written, without order between them (a race)
    %v = llvm.load volatile %to : !llvm.ptr<3> -> i32
    gpu.return
  }
}

}
