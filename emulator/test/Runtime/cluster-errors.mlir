// Reports of clusters of a wrong size, and of blocks that have not begun or have ended
// when others access them or wait for them.

// RUN: %add_launches %s | kvcache-opt --kvcache-to-emulator="chip=sm_90a" -o %t.mlir
// RUN: %emulator_tests/kvcache-run-cases %t.mlir --shared-libs=%kvcache_emulator,%kvcache_runtime | FileCheck %s -DFILE="<stdin>"

// PRELUDE: clusters.mlir

module attributes {gpu.container_module} {

gpu.module @kernels {
  // LAUNCH: 64 threads, 2 blocks, clusters of 2
  gpu.func @rank_outside(%out: memref<256xi32>) kernel {
    %buf = llvm.mlir.addressof @buf : !llvm.ptr<3>
    %two = llvm.mlir.constant(2 : i32) : i32
    // CHECK-LABEL: run @rank_outside:
    // CHECK: [[FILE]]:[[#@LINE+1]]:10: nvvm.mapa: thread (0, 0, 0) of block (0, 0, 0) expects the rank of a block of the cluster, below 2, got 2
    %p = nvvm.mapa %buf, %two : !llvm.ptr<3> -> !llvm.ptr<7>
    gpu.return
  }

  // LAUNCH: 64 threads, 2 blocks, clusters of 2
  gpu.func @not_shared(%out: memref<256xi32>) kernel {
    %zero = llvm.mlir.constant(0 : i32) : i32
    %index = memref.extract_aligned_pointer_as_index %out : memref<256xi32> -> index
    %number = arith.index_cast %index : index to i64
    %g = llvm.inttoptr %number : i64 to !llvm.ptr
    // CHECK-LABEL: run @not_shared:
    // CHECK: [[FILE]]:[[#@LINE+1]]:10: nvvm.mapa: thread (0, 0, 0) of block (0, 0, 0) expects an address in shared memory of the cluster
    %p = nvvm.mapa %g, %zero : !llvm.ptr -> !llvm.ptr
    gpu.return
  }

  // LAUNCH: 64 threads, 2 blocks, clusters of 2
  gpu.func @before_the_first_barrier(%out: memref<256xi32>) kernel {
    %mine, %theirs, %peer = func.call @get_elements() : () -> (!llvm.ptr<3>, !llvm.ptr<7>, i32)
    %one = llvm.mlir.constant(1 : i32) : i32
    // CHECK-LABEL: run @before_the_first_barrier:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: llvm.store: thread (0, 0, 0) of block (0, 0, 0) accesses shared memory of block (1, 0, 0), which may not have begun yet: no synchronization orders its beginning before the access (cluster.arrive and cluster.wait)
    llvm.store %one, %theirs : i32, !llvm.ptr<7>
    nvvm.cluster.arrive {aligned}
    nvvm.cluster.wait {aligned}
    gpu.return
  }

  // LAUNCH: 2 blocks, clusters of 2
  gpu.func @after_the_end(%out: memref<256xi32>) kernel {
    %mine, %theirs, %peer = func.call @get_elements() : () -> (!llvm.ptr<3>, !llvm.ptr<7>, i32)
    %one = llvm.mlir.constant(1 : i32) : i32
    %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    llvm.store %one, %mine : i32, !llvm.ptr<3>
    nvvm.cluster.arrive
    nvvm.cluster.wait
    %reads = llvm.icmp "eq" %rank, %zero : i32
    scf.if %reads {
      // CHECK-LABEL: run @after_the_end:
      // CHECK: [[FILE]]:[[#@LINE+1]]:16: llvm.load: thread (0, 0, 0) of block (0, 0, 0) accesses shared memory of block (1, 0, 0), whose threads have all ended
      %value = llvm.load %theirs : !llvm.ptr<7> -> i32
      func.call @store(%out, %value) : (memref<256xi32>, i32) -> ()
    }
    gpu.return
  }

  // LAUNCH: 2 blocks, clusters of 2
  gpu.func @no_last_barrier(%out: memref<256xi32>) kernel {
    %mine, %theirs, %peer = func.call @get_elements() : () -> (!llvm.ptr<3>, !llvm.ptr<7>, i32)
    %one = llvm.mlir.constant(1 : i32) : i32
    %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
    llvm.store %one, %mine : i32, !llvm.ptr<3>
    nvvm.cluster.arrive
    nvvm.cluster.wait
    %reads = llvm.icmp "eq" %rank, %one : i32
    scf.if %reads {
      // CHECK-LABEL: run @no_last_barrier:
      // CHECK: [[FILE]]:[[#@LINE+1]]:16: llvm.load: thread (0, 0, 0) of block (1, 0, 0) accesses shared memory of block (0, 0, 0), whose threads may all have ended by then: no synchronization orders the access before their end
      %value = llvm.load %theirs : !llvm.ptr<7> -> i32
      func.call @store(%out, %value) : (memref<256xi32>, i32) -> ()
    }
    gpu.return
  }

  // LAUNCH: 64 threads, 2 blocks, clusters of 2
  gpu.func @last_arrival_before_the_access(%out: memref<256xi32>) kernel {
    %mine, %theirs, %peer = func.call @get_elements() : () -> (!llvm.ptr<3>, !llvm.ptr<7>, i32)
    %one = llvm.mlir.constant(1 : i32) : i32
    llvm.store %one, %mine : i32, !llvm.ptr<3>
    nvvm.cluster.arrive {aligned}
    nvvm.cluster.wait {aligned}
    nvvm.cluster.arrive {aligned}
    // CHECK-LABEL: run @last_arrival_before_the_access:
    // CHECK: [[FILE]]:[[#@LINE+1]]:14: llvm.load: thread ({{[0-9]+}}, 0, 0) of block ({{[01]}}, 0, 0) accesses shared memory of block ({{[01]}}, 0, 0), whose threads may all have ended by then: no synchronization orders the access before their end
    %value = llvm.load %theirs : !llvm.ptr<7> -> i32
    nvvm.cluster.wait {aligned}
    func.call @store(%out, %value) : (memref<256xi32>, i32) -> ()
    gpu.return
  }

  // LAUNCH: 64 threads, 2 blocks, clusters of 2
  gpu.func @arrival_after_the_end(%out: memref<256xi32>) kernel {
    %mine, %theirs, %bar, %remote = func.call @init_for_peer() : () -> (!llvm.ptr<3>, !llvm.ptr<7>, !llvm.ptr<3>, !llvm.ptr<7>)
    %zero = llvm.mlir.constant(0 : i32) : i32
    %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
    %is_first = llvm.icmp "eq" %rank, %zero : i32
    scf.if %is_first {
      // CHECK-LABEL: run @arrival_after_the_end:
      // CHECK: [[FILE]]:[[#@LINE+1]]:7: nvvm.mbarrier.arrive: thread (0, 0, 0) of block (0, 0, 0) accesses shared memory of block (1, 0, 0), whose threads may all have ended by then: no synchronization orders the access before their end
      nvvm.mbarrier.arrive %remote {scope = #nvvm.mem_scope<cluster>} : !llvm.ptr<7>
    }
    gpu.return
  }

  // LAUNCH: 64 threads, 2 blocks, clusters of 2
  gpu.func @arrives_twice(%out: memref<256xi32>) kernel {
    nvvm.cluster.arrive
    // CHECK-LABEL: run @arrives_twice:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.cluster.arrive: thread (0, 0, 0) of block (0, 0, 0) arrives at the barrier of the cluster again without having waited for its arrival at [[FILE]]:[[#@LINE-2]]:5
    nvvm.cluster.arrive
    nvvm.cluster.wait
    gpu.return
  }

  // LAUNCH: 64 threads, 2 blocks, clusters of 2
  gpu.func @waits_without_arrival(%out: memref<256xi32>) kernel {
    // CHECK-LABEL: run @waits_without_arrival:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.cluster.wait: thread (0, 0, 0) of block (0, 0, 0) waits for the barrier of the cluster without having arrived at it (cluster.arrive)
    nvvm.cluster.wait
    gpu.return
  }

  // LAUNCH: 64 threads, 2 blocks, clusters of 2
  gpu.func @aligned_without_a_lane(%out: memref<256xi32>) kernel {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %is_first = llvm.icmp "eq" %t, %zero : i32
    cf.cond_br %is_first, ^end, ^sync
  ^sync:
    // CHECK-LABEL: run @aligned_without_a_lane:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.cluster.arrive: thread (1, 0, 0) of block (0, 0, 0) requires all threads of its warp, but lane 0 of warp 0 has ended
    nvvm.cluster.arrive {aligned}
    nvvm.cluster.wait {aligned}
    cf.br ^end
  ^end:
    gpu.return
  }

  // LAUNCH: 64 threads, 2 blocks, clusters of 2
  gpu.func @deadlock(%out: memref<256xi32>) kernel {
    %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %is_first = llvm.icmp "eq" %rank, %zero : i32
    // CHECK-LABEL: run @deadlock:
    // CHECK: deadlock: no thread of cluster (0, 0, 0) can continue
    // CHECK-NEXT: threads 0 to 63 of block (0, 0, 0) wait in nvvm.cluster.wait at [[FILE]]:[[#@LINE+4]]:7 for the barrier of the cluster, which has 64 of 128 arrivals
    // CHECK-NEXT: threads 0 to 63 of block (1, 0, 0) wait in nvvm.mbarrier.try_wait.parity at [[FILE]]:[[#@LINE+8]]:7 for the mbarrier at byte 0 of shared @bar of block (1, 0, 0), in phase 0, which has 0 of 64 arrivals and 0 of 0 bytes
    scf.if %is_first {
      nvvm.cluster.arrive
      nvvm.cluster.wait
    } else {
      func.call @init() : () -> ()
      %ticks = llvm.mlir.constant(1000 : i32) : i32
      %bar = llvm.mlir.addressof @bar : !llvm.ptr<3>
      nvvm.mbarrier.try_wait.parity %bar, %zero, %ticks : !llvm.ptr<3>, i32, i32
    }
    gpu.return
  }

  // LAUNCH: 64 threads, 3 blocks, clusters of 2
  gpu.func @uneven_grid(%out: memref<256xi32>) kernel {
    // CHECK-LABEL: run @uneven_grid:
    // CHECK: expects the cluster of kernel @kernels::@uneven_grid to divide the grid, got 2 of 3 blocks along x
    gpu.return
  }

  // LAUNCH: 64 threads, 3 blocks
  gpu.func @uneven_grid_of_the_kernel(%out: memref<256xi32>) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    // CHECK-LABEL: run @uneven_grid_of_the_kernel:
    // CHECK: expects the cluster of kernel @kernels::@uneven_grid_of_the_kernel to divide the grid, got 2 of 3 blocks along x
    gpu.return
  }

  // LAUNCH: 64 threads, 16 blocks, clusters of 16
  gpu.func @too_large(%out: memref<256xi32>) kernel {
    // CHECK-LABEL: run @too_large:
    // CHECK: expects the cluster of kernel @kernels::@too_large to have at most 8 blocks, got 16 x 1 x 1
    gpu.return
  }

  // LAUNCH: 64 threads, 4 blocks, clusters of 4
  gpu.func @another_size(%out: memref<256xi32>) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    // CHECK-LABEL: run @another_size:
    // CHECK: kernel @kernels::@another_size requires clusters of 2 x 1 x 1 blocks, got 4 x 1 x 1
    gpu.return
  }
}

}
