// Reports of blocks of a cluster that access each other's memory without order, or
// outside of it.

// RUN: %add_launches %s | kvcache-opt --kvcache-to-emulator="chip=sm_90a" -o %t.mlir
// RUN: %emulator_tests/kvcache-run-cases %t.mlir --shared-libs=%kvcache_emulator,%kvcache_runtime | FileCheck %s -DFILE="<stdin>"

// PRELUDE: clusters.mlir

module attributes {gpu.container_module} {

gpu.module @kernels {
  // LAUNCH: 64 threads, 2 blocks, clusters of 2
  gpu.func @relaxed_barrier(%out: memref<256xi32>) kernel {
    %mine, %theirs, %peer = func.call @get_elements() : () -> (!llvm.ptr<3>, !llvm.ptr<7>, i32)
    %one = llvm.mlir.constant(1 : i32) : i32
    llvm.store %one, %mine : i32, !llvm.ptr<3>
    nvvm.cluster.arrive.relaxed {aligned}
    nvvm.cluster.wait {aligned}
    // CHECK-LABEL: run @relaxed_barrier:
    // CHECK: [[FILE]]:[[#@LINE+1]]:14: llvm.load: thread ({{[0-9]+}}, 0, 0) of block ({{[01]}}, 0, 0) reads 4 bytes at byte {{[0-9]+}} of shared @buf of block ({{[01]}}, 0, 0), which thread ({{[0-9]+}}, 0, 0) of block ({{[01]}}, 0, 0) writes in llvm.store at [[FILE]]:{{.*}} without order between them (a race): only synchronization with the scope of the cluster orders threads of different blocks
    %value = llvm.load %theirs : !llvm.ptr<7> -> i32
    nvvm.cluster.arrive {aligned}
    nvvm.cluster.wait {aligned}
    func.call @store(%out, %value) : (memref<256xi32>, i32) -> ()
    gpu.return
  }

  // LAUNCH: 64 threads, 2 blocks, clusters of 2
  gpu.func @fence_of_the_block(%out: memref<256xi32>) kernel {
    %mine, %theirs, %peer = func.call @get_elements() : () -> (!llvm.ptr<3>, !llvm.ptr<7>, i32)
    %one = llvm.mlir.constant(1 : i32) : i32
    llvm.store %one, %mine : i32, !llvm.ptr<3>
    nvvm.memory.barrier #nvvm.mem_scope<cta>
    nvvm.cluster.arrive.relaxed {aligned}
    nvvm.cluster.wait {aligned}
    // CHECK-LABEL: run @fence_of_the_block:
    // CHECK: [[FILE]]:[[#@LINE+1]]:14: llvm.load: thread ({{[0-9]+}}, 0, 0) of block ({{[01]}}, 0, 0) reads 4 bytes at byte {{[0-9]+}} of shared @buf of block ({{[01]}}, 0, 0), which thread ({{[0-9]+}}, 0, 0) of block ({{[01]}}, 0, 0) writes in llvm.store at [[FILE]]:{{.*}} without order between them (a race): only synchronization with the scope of the cluster orders threads of different blocks
    %value = llvm.load %theirs : !llvm.ptr<7> -> i32
    nvvm.cluster.arrive {aligned}
    nvvm.cluster.wait {aligned}
    func.call @store(%out, %value) : (memref<256xi32>, i32) -> ()
    gpu.return
  }

  // LAUNCH: 64 threads, 2 blocks, clusters of 2
  gpu.func @fence_of_mbarriers(%out: memref<256xi32>) kernel {
    %mine, %theirs, %peer = func.call @get_elements() : () -> (!llvm.ptr<3>, !llvm.ptr<7>, i32)
    %one = llvm.mlir.constant(1 : i32) : i32
    llvm.store %one, %mine : i32, !llvm.ptr<3>
    nvvm.fence.mbarrier.init
    nvvm.cluster.arrive.relaxed {aligned}
    nvvm.cluster.wait {aligned}
    // CHECK-LABEL: run @fence_of_mbarriers:
    // CHECK: [[FILE]]:[[#@LINE+1]]:14: llvm.load: thread ({{[0-9]+}}, 0, 0) of block ({{[01]}}, 0, 0) reads 4 bytes at byte {{[0-9]+}} of shared @buf of block ({{[01]}}, 0, 0), which thread ({{[0-9]+}}, 0, 0) of block ({{[01]}}, 0, 0) writes in llvm.store at [[FILE]]:{{.*}} without order between them (a race): only synchronization with the scope of the cluster orders threads of different blocks
    %value = llvm.load %theirs : !llvm.ptr<7> -> i32
    nvvm.cluster.arrive {aligned}
    nvvm.cluster.wait {aligned}
    func.call @store(%out, %value) : (memref<256xi32>, i32) -> ()
    gpu.return
  }

  // LAUNCH: 64 threads, 2 blocks, clusters of 2
  gpu.func @arrival_of_the_block(%out: memref<256xi32>) kernel {
    %mine, %theirs, %bar, %remote = func.call @init_for_peer() : () -> (!llvm.ptr<3>, !llvm.ptr<7>, !llvm.ptr<3>, !llvm.ptr<7>)
    %one = llvm.mlir.constant(1 : i32) : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    llvm.store %one, %theirs : i32, !llvm.ptr<7>
    nvvm.mbarrier.arrive %remote : !llvm.ptr<7>
    scf.while : () -> () {
      %done = nvvm.mbarrier.try_wait %bar, %zero {scope = #nvvm.mem_scope<cluster>} : !llvm.ptr<3>, i32 -> i1
      %true = llvm.mlir.constant(true) : i1
      %again = llvm.xor %done, %true : i1
      scf.condition(%again)
    } do {
      scf.yield
    }
    // CHECK-LABEL: run @arrival_of_the_block:
    // CHECK: [[FILE]]:[[#@LINE+1]]:14: llvm.load: thread ({{[0-9]+}}, 0, 0) of block ({{[01]}}, 0, 0) reads 4 bytes at byte {{[0-9]+}} of shared @buf of block ({{[01]}}, 0, 0), which thread ({{[0-9]+}}, 0, 0) of block ({{[01]}}, 0, 0) writes in llvm.store at [[FILE]]:{{.*}} without order between them (a race): only synchronization with the scope of the cluster orders threads of different blocks
    %value = llvm.load %mine : !llvm.ptr<3> -> i32
    func.call @store(%out, %value) : (memref<256xi32>, i32) -> ()
    gpu.return
  }

  // LAUNCH: 64 threads, 2 blocks, clusters of 2
  gpu.func @wait_of_the_block(%out: memref<256xi32>) kernel {
    %mine, %theirs, %bar, %remote = func.call @init_for_peer() : () -> (!llvm.ptr<3>, !llvm.ptr<7>, !llvm.ptr<3>, !llvm.ptr<7>)
    %one = llvm.mlir.constant(1 : i32) : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    llvm.store %one, %theirs : i32, !llvm.ptr<7>
    nvvm.mbarrier.arrive %remote {scope = #nvvm.mem_scope<cluster>} : !llvm.ptr<7>
    scf.while : () -> () {
      %done = nvvm.mbarrier.try_wait %bar, %zero : !llvm.ptr<3>, i32 -> i1
      %true = llvm.mlir.constant(true) : i1
      %again = llvm.xor %done, %true : i1
      scf.condition(%again)
    } do {
      scf.yield
    }
    // CHECK-LABEL: run @wait_of_the_block:
    // CHECK: [[FILE]]:[[#@LINE+1]]:14: llvm.load: thread ({{[0-9]+}}, 0, 0) of block ({{[01]}}, 0, 0) reads 4 bytes at byte {{[0-9]+}} of shared @buf of block ({{[01]}}, 0, 0), which thread ({{[0-9]+}}, 0, 0) of block ({{[01]}}, 0, 0) writes in llvm.store at [[FILE]]:{{.*}} without order between them (a race): only synchronization with the scope of the cluster orders threads of different blocks
    %value = llvm.load %mine : !llvm.ptr<3> -> i32
    func.call @store(%out, %value) : (memref<256xi32>, i32) -> ()
    gpu.return
  }

  // LAUNCH: 64 threads, 2 blocks, clusters of 2
  gpu.func @race(%out: memref<256xi32>) kernel {
    %mine, %theirs, %peer = func.call @get_elements() : () -> (!llvm.ptr<3>, !llvm.ptr<7>, i32)
    %one = llvm.mlir.constant(1 : i32) : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    llvm.store %zero, %mine : i32, !llvm.ptr<3>
    nvvm.cluster.arrive
    nvvm.cluster.wait
    // CHECK-LABEL: run @race:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: llvm.store: thread ({{[0-9]+}}, 0, 0) of block ({{[01]}}, 0, 0) writes 4 bytes at byte {{[0-9]+}} of shared @buf of block ({{[01]}}, 0, 0), which thread ({{[0-9]+}}, 0, 0) of block ({{[01]}}, 0, 0) reads in llvm.load at [[FILE]]:{{.*}} without order between them (a race): only synchronization with the scope of the cluster orders threads of different blocks
    llvm.store %one, %theirs : i32, !llvm.ptr<7>
    %value = llvm.load %mine : !llvm.ptr<3> -> i32
    nvvm.cluster.arrive {aligned}
    nvvm.cluster.wait {aligned}
    func.call @store(%out, %value) : (memref<256xi32>, i32) -> ()
    gpu.return
  }

  // LAUNCH: 64 threads, 2 blocks, clusters of 2
  gpu.func @unfenced_init(%out: memref<256xi32>) kernel {
    %mine, %theirs, %peer = func.call @get_elements() : () -> (!llvm.ptr<3>, !llvm.ptr<7>, i32)
    %zero = llvm.mlir.constant(0 : i32) : i32
    %bar = llvm.mlir.addressof @bar : !llvm.ptr<3>
    %remote = nvvm.mapa %bar, %peer : !llvm.ptr<3> -> !llvm.ptr<7>
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %is_first = llvm.icmp "eq" %t, %zero : i32
    scf.if %is_first {
      %c64 = llvm.mlir.constant(64 : i32) : i32
      nvvm.mbarrier.init %bar, %c64 : !llvm.ptr<3>, i32
    }
    nvvm.cluster.arrive.relaxed {aligned}
    nvvm.cluster.wait {aligned}
    // CHECK-LABEL: run @unfenced_init:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.mbarrier.arrive: thread ({{[0-9]+}}, 0, 0) of block ({{[01]}}, 0, 0) atomically updates 8 bytes at byte 0 of shared @bar of block ({{[01]}}, 0, 0), which thread (0, 0, 0) of block ({{[01]}}, 0, 0) writes in nvvm.mbarrier.init at [[FILE]]:{{.*}} without order between them (a race): only synchronization with the scope of the cluster orders threads of different blocks
    nvvm.mbarrier.arrive %remote {scope = #nvvm.mem_scope<cluster>} : !llvm.ptr<7>
    scf.while : () -> () {
      %done = nvvm.mbarrier.try_wait %bar, %zero {scope = #nvvm.mem_scope<cluster>} : !llvm.ptr<3>, i32 -> i1
      %true = llvm.mlir.constant(true) : i1
      %again = llvm.xor %done, %true : i1
      scf.condition(%again)
    } do {
      scf.yield
    }
    gpu.return
  }

  // LAUNCH: 64 threads, 2 blocks, clusters of 2
  gpu.func @atomics_of_the_block(%out: memref<256xi32>) kernel {
    %one = llvm.mlir.constant(1 : i32) : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %buf = llvm.mlir.addressof @buf : !llvm.ptr<3>
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %first = nvvm.mapa %buf, %zero : !llvm.ptr<3> -> !llvm.ptr<7>
    %is_first = llvm.icmp "eq" %t, %zero : i32
    scf.if %is_first {
      llvm.store %zero, %buf : i32, !llvm.ptr<3>
    }
    nvvm.cluster.arrive {aligned}
    nvvm.cluster.wait {aligned}
    // CHECK-LABEL: run @atomics_of_the_block:
    // CHECK: [[FILE]]:[[#@LINE+1]]:12: llvm.atomicrmw: thread ({{[0-9]+}}, 0, 0) of block ({{[01]}}, 0, 0) atomically updates 4 bytes at byte 0 of shared @buf of block (0, 0, 0), which thread ({{[0-9]+}}, 0, 0) of block ({{[01]}}, 0, 0) atomically updates in llvm.atomicrmw at [[FILE]]:[[#@LINE+1]]:12 without order between them (a race): only synchronization with the scope of the cluster orders threads of different blocks
    %old = llvm.atomicrmw add %first, %one syncscope("block") monotonic : !llvm.ptr<7>, i32
    nvvm.cluster.arrive {aligned}
    nvvm.cluster.wait {aligned}
    gpu.return
  }

  // LAUNCH: 2 blocks, clusters of 2
  gpu.func @flag_of_the_block(%out: memref<256xi32>) kernel {
    %mine, %theirs, %peer = func.call @get_elements() : () -> (!llvm.ptr<3>, !llvm.ptr<7>, i32)
    %one = llvm.mlir.constant(1 : i32) : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
    %bar = llvm.mlir.addressof @bar : !llvm.ptr<3>
    %their_flag = nvvm.mapa %bar, %peer : !llvm.ptr<3> -> !llvm.ptr<7>
    llvm.store %zero, %mine : i32, !llvm.ptr<3>
    llvm.store %zero, %bar : i32, !llvm.ptr<3>
    nvvm.cluster.arrive {aligned}
    nvvm.cluster.wait {aligned}
    %is_first = llvm.icmp "eq" %rank, %zero : i32
    scf.if %is_first {
      llvm.store %one, %theirs : i32, !llvm.ptr<7>
      llvm.store %one, %their_flag atomic syncscope("cluster") release {alignment = 4 : i64} : i32, !llvm.ptr<7>
    } else {
      scf.while : () -> () {
        %f = llvm.load %bar atomic syncscope("cluster") monotonic {alignment = 4 : i64} : !llvm.ptr<3> -> i32
        %again = llvm.icmp "eq" %f, %zero : i32
        scf.condition(%again)
      } do {
        scf.yield
      }
      nvvm.memory.barrier #nvvm.mem_scope<cta>
      // CHECK-LABEL: run @flag_of_the_block:
      // CHECK: [[FILE]]:[[#@LINE+1]]:16: llvm.load: thread (0, 0, 0) of block (1, 0, 0) reads 4 bytes at byte {{[0-9]+}} of shared @buf of block ({{[01]}}, 0, 0), which thread ({{[0-9]+}}, 0, 0) of block ({{[01]}}, 0, 0) writes in llvm.store at [[FILE]]:{{.*}} without order between them (a race): only synchronization with the scope of the cluster orders threads of different blocks
      %value = llvm.load %mine : !llvm.ptr<3> -> i32
      func.call @store(%out, %value) : (memref<256xi32>, i32) -> ()
    }
    gpu.return
  }

  // LAUNCH: 64 threads, 2 blocks, clusters of 2
  gpu.func @out_of_bounds(%out: memref<256xi32>) kernel {
    %mine, %theirs, %peer = func.call @get_elements() : () -> (!llvm.ptr<3>, !llvm.ptr<7>, i32)
    %one = llvm.mlir.constant(1 : i32) : i32
    nvvm.cluster.arrive {aligned}
    nvvm.cluster.wait {aligned}
    %far = llvm.getelementptr %theirs[256] : (!llvm.ptr<7>) -> !llvm.ptr<7>, i8
    // CHECK-LABEL: run @out_of_bounds:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: llvm.store: thread ({{[0-9]+}}, 0, 0) of block ({{[01]}}, 0, 0) uses 4 bytes at byte {{[0-9]+}} of shared @buf of block ({{[01]}}, 0, 0), which has 256 bytes
    llvm.store %one, %far : i32, !llvm.ptr<7>
    nvvm.cluster.arrive {aligned}
    nvvm.cluster.wait {aligned}
    gpu.return
  }

  // LAUNCH: 64 threads, 2 blocks, clusters of 2
  gpu.func @init_elsewhere(%out: memref<256xi32>) kernel {
    %mine, %theirs, %peer = func.call @get_elements() : () -> (!llvm.ptr<3>, !llvm.ptr<7>, i32)
    %one = llvm.mlir.constant(1 : i32) : i32
    %bar = llvm.mlir.addressof @bar : !llvm.ptr<3>
    %remote = nvvm.mapa %bar, %peer : !llvm.ptr<3> -> !llvm.ptr<7>
    %bits = llvm.ptrtoint %remote : !llvm.ptr<7> to i32
    %address = llvm.inttoptr %bits : i32 to !llvm.ptr<3>
    // CHECK-LABEL: run @init_elsewhere:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.mbarrier.init: thread (0, 0, 0) of block (0, 0, 0) uses 8 bytes at byte 0 of shared @bar of block (1, 0, 0), where the instruction requires shared memory of the thread's own block
    nvvm.mbarrier.init %address, %one : !llvm.ptr<3>, i32
    gpu.return
  }

  // LAUNCH: 64 threads, 2 blocks, clusters of 2
  gpu.func @barrier_in_another_block(%out: memref<256xi32>) kernel {
    %buf, %to, %barrier, %is_first = func.call @fill() : () -> (!llvm.ptr<3>, !llvm.ptr<7>, !llvm.ptr<3>, i1)
    %bar = llvm.mlir.addressof @bar : !llvm.ptr<3>
    %bytes = llvm.mlir.constant(16 : i32) : i32
    %far = llvm.getelementptr %to[128] : (!llvm.ptr<7>) -> !llvm.ptr<7>, i8
    scf.if %is_first {
      // CHECK-LABEL: run @barrier_in_another_block:
      // CHECK: [[FILE]]:[[#@LINE+1]]:7: nvvm.cp.async.bulk.shared.cluster.shared.cta: thread (0, 0, 0) of block (0, 0, 0) copies to shared memory of block (1, 0, 0) with an mbarrier of block (0, 0, 0): both must be in one block
      nvvm.cp.async.bulk.shared.cluster.shared.cta %far, %buf, %bar, %bytes : !llvm.ptr<7>, !llvm.ptr<3>
    }
    nvvm.cluster.arrive {aligned}
    nvvm.cluster.wait {aligned}
    gpu.return
  }

  // LAUNCH: 64 threads, 2 blocks, clusters of 2
  gpu.func @copy_in_flight(%out: memref<256xi32>) kernel {
    %buf, %to, %barrier, %is_first = func.call @fill() : () -> (!llvm.ptr<3>, !llvm.ptr<7>, !llvm.ptr<3>, i1)
    %bytes = llvm.mlir.constant(16 : i32) : i32
    %far = llvm.getelementptr %to[128] : (!llvm.ptr<7>) -> !llvm.ptr<7>, i8
    scf.if %is_first {
      // CHECK-LABEL: run @copy_in_flight:
      // CHECK: [[FILE]]:[[#@LINE+1]]:7: nvvm.cp.async.bulk.shared.cluster.shared.cta: thread (0, 0, 0) of block ({{[01]}}, 0, 0) {{has a copy to|issues a copy that}} {{.*}} in flight when {{the block|block (., 0, 0)}} ends
      nvvm.cp.async.bulk.shared.cluster.shared.cta %far, %buf, %barrier, %bytes : !llvm.ptr<7>, !llvm.ptr<3>
    }
    nvvm.cluster.arrive {aligned}
    nvvm.cluster.wait {aligned}
    gpu.return
  }

  // LAUNCH: 64 threads, 2 blocks, clusters of 2
  gpu.func @copy_to_what_is_read(%out: memref<256xi32>) kernel {
    %buf, %to, %barrier, %is_first = func.call @fill() : () -> (!llvm.ptr<3>, !llvm.ptr<7>, !llvm.ptr<3>, i1)
    %mine, %theirs, %peer = func.call @get_elements() : () -> (!llvm.ptr<3>, !llvm.ptr<7>, i32)
    %zero = llvm.mlir.constant(0 : i32) : i32
    %bytes = llvm.mlir.constant(16 : i32) : i32
    scf.if %is_first {
      %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
      %copies = llvm.icmp "eq" %rank, %zero : i32
      scf.if %copies {
        nvvm.cp.async.bulk.shared.cluster.shared.cta %to, %buf, %barrier, %bytes : !llvm.ptr<7>, !llvm.ptr<3>
      }
    }
    nvvm.cluster.arrive {aligned}
    nvvm.cluster.wait {aligned}
    // CHECK-LABEL: run @copy_to_what_is_read:
    // CHECK: [[FILE]]:[[#@LINE+1]]:14: llvm.load: thread ({{[0-3]}}, 0, 0) of block (1, 0, 0) reads 4 bytes at byte {{[0-9]+}} of shared @buf of block (1, 0, 0), which a copy issued by thread (0, 0, 0) of block (0, 0, 0) in nvvm.cp.async.bulk.shared.cluster.shared.cta at [[FILE]]:[[#@LINE-6]]:9 has in flight: its barrier has not completed
    %value = llvm.load %mine : !llvm.ptr<3> -> i32
    nvvm.cluster.arrive {aligned}
    nvvm.cluster.wait {aligned}
    func.call @store(%out, %value) : (memref<256xi32>, i32) -> ()
    gpu.return
  }

  // LAUNCH: 4 blocks, clusters of 2
  gpu.func @race_of_clusters(%out: memref<256xi32>) kernel {
    %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %c0 = arith.constant 0 : index
    %is_first = llvm.icmp "eq" %rank, %zero : i32
    scf.if %is_first {
      // CHECK-LABEL: run @race_of_clusters:
      // CHECK: [[FILE]]:[[#@LINE+1]]:7: llvm.store: thread (0, 0, 0) of block (2, 0, 0) writes 4 bytes at byte 0 of an allocation of 1024 bytes, which cluster (0, 0, 0) writes in llvm.store at [[FILE]]:[[#@LINE+1]]:7 without order between the clusters (a race)
      memref.store %one, %out[%c0] : memref<256xi32>
    }
    gpu.return
  }

  // LAUNCH: 2 blocks, clusters of 2
  gpu.func @same_value(%out: memref<256xi32>) kernel {
    %one = llvm.mlir.constant(1 : i32) : i32
    %c0 = arith.constant 0 : index
    // CHECK-LABEL: run @same_value:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: llvm.store: thread (0, 0, 0) of block (1, 0, 0) writes 4 bytes at byte 0 of an allocation of 1024 bytes, which thread (0, 0, 0) of block (0, 0, 0) writes in llvm.store at [[FILE]]:[[#@LINE+1]]:5 without order between them (a race): only synchronization with the scope of the cluster orders threads of different blocks
    memref.store %one, %out[%c0] : memref<256xi32>
    gpu.return
  }
}

}
