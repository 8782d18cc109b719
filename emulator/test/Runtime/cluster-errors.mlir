// Reports of clusters whose blocks access each other where they
// must not, or without order.

// RUN: %add_launches %s | kvcache-opt --kvcache-to-emulator="chip=sm_90a" -o %t.mlir
// RUN: %emulator_tests/kvcache-run-cases %t.mlir --shared-libs=%kvcache_emulator,%kvcache_runtime | FileCheck %s -DFILE="<stdin>"

module attributes {gpu.container_module} {

gpu.module @kernels {
  llvm.mlir.global internal @bar() {addr_space = 3 : i32, alignment = 8 : i64} : !llvm.array<2 x i64>
  llvm.mlir.global internal @buf() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<64 x i32>

  // The element of the thread in @buf, that in the next block of the cluster,
  // and the rank of that.
  func.func @get_elements() -> (!llvm.ptr<3>, !llvm.ptr<7>, i32) {
    %buf = llvm.mlir.addressof @buf : !llvm.ptr<3>
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
    %peer = llvm.xor %rank, %one : i32
    %mine = llvm.getelementptr %buf[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %theirs = nvvm.mapa %mine, %peer : !llvm.ptr<3> -> !llvm.ptr<7>
    return %mine, %theirs, %peer : !llvm.ptr<3>, !llvm.ptr<7>, i32
  }

  func.func @store(%out: memref<256xi32>, %value: i32) {
    %x = gpu.global_id x
    memref.store %value, %out[%x] : memref<256xi32>
    return
  }

  // An mbarrier for the arrivals of 64 threads.
  func.func @init() {
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
    %zero = llvm.mlir.constant(0 : i32) : i32
    %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
    %bar = llvm.mlir.addressof @bar : !llvm.ptr<3>
    %mine, %theirs, %peer = func.call @get_elements() : () -> (!llvm.ptr<3>, !llvm.ptr<7>, i32)
    %remote = nvvm.mapa %bar, %peer : !llvm.ptr<3> -> !llvm.ptr<7>
    func.call @init() : () -> ()
    nvvm.cluster.arrive {aligned}
    nvvm.cluster.wait {aligned}
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
    %mine, %theirs, %peer = func.call @get_elements() : () -> (!llvm.ptr<3>, !llvm.ptr<7>, i32)
    %one = llvm.mlir.constant(1 : i32) : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %bar = llvm.mlir.addressof @bar : !llvm.ptr<3>
    %remote = nvvm.mapa %bar, %peer : !llvm.ptr<3> -> !llvm.ptr<7>
    func.call @init() : () -> ()
    nvvm.cluster.arrive {aligned}
    nvvm.cluster.wait {aligned}
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
    %mine, %theirs, %peer = func.call @get_elements() : () -> (!llvm.ptr<3>, !llvm.ptr<7>, i32)
    %one = llvm.mlir.constant(1 : i32) : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %bar = llvm.mlir.addressof @bar : !llvm.ptr<3>
    %remote = nvvm.mapa %bar, %peer : !llvm.ptr<3> -> !llvm.ptr<7>
    func.call @init() : () -> ()
    nvvm.cluster.arrive {aligned}
    nvvm.cluster.wait {aligned}
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
    %mine, %theirs, %peer = func.call @get_elements() : () -> (!llvm.ptr<3>, !llvm.ptr<7>, i32)
    %one = llvm.mlir.constant(1 : i32) : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %buf = llvm.mlir.addressof @buf : !llvm.ptr<3>
    %bar = llvm.mlir.addressof @bar : !llvm.ptr<3>
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %bytes = llvm.mlir.constant(16 : i32) : i32
    llvm.store %one, %mine : i32, !llvm.ptr<3>
    func.call @init() : () -> ()
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
    nvvm.cluster.arrive {aligned}
    nvvm.cluster.wait {aligned}
    %to = nvvm.mapa %buf, %peer : !llvm.ptr<3> -> !llvm.ptr<7>
    %far = llvm.getelementptr %to[128] : (!llvm.ptr<7>) -> !llvm.ptr<7>, i8
    %remote = nvvm.mapa %bar, %peer : !llvm.ptr<3> -> !llvm.ptr<7>
    %bits = llvm.ptrtoint %remote : !llvm.ptr<7> to i32
    %is_first = llvm.icmp "eq" %t, %zero : i32
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
    %mine, %theirs, %peer = func.call @get_elements() : () -> (!llvm.ptr<3>, !llvm.ptr<7>, i32)
    %one = llvm.mlir.constant(1 : i32) : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %buf = llvm.mlir.addressof @buf : !llvm.ptr<3>
    %bar = llvm.mlir.addressof @bar : !llvm.ptr<3>
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %bytes = llvm.mlir.constant(16 : i32) : i32
    llvm.store %one, %mine : i32, !llvm.ptr<3>
    func.call @init() : () -> ()
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
    nvvm.cluster.arrive {aligned}
    nvvm.cluster.wait {aligned}
    %to = nvvm.mapa %buf, %peer : !llvm.ptr<3> -> !llvm.ptr<7>
    %far = llvm.getelementptr %to[128] : (!llvm.ptr<7>) -> !llvm.ptr<7>, i8
    %remote = nvvm.mapa %bar, %peer : !llvm.ptr<3> -> !llvm.ptr<7>
    %bits = llvm.ptrtoint %remote : !llvm.ptr<7> to i32
    %barrier = llvm.inttoptr %bits : i32 to !llvm.ptr<3>
    %is_first = llvm.icmp "eq" %t, %zero : i32
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
    %mine, %theirs, %peer = func.call @get_elements() : () -> (!llvm.ptr<3>, !llvm.ptr<7>, i32)
    %one = llvm.mlir.constant(1 : i32) : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %buf = llvm.mlir.addressof @buf : !llvm.ptr<3>
    %bar = llvm.mlir.addressof @bar : !llvm.ptr<3>
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %bytes = llvm.mlir.constant(16 : i32) : i32
    llvm.store %one, %mine : i32, !llvm.ptr<3>
    func.call @init() : () -> ()
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
    nvvm.cluster.arrive {aligned}
    nvvm.cluster.wait {aligned}
    %to = nvvm.mapa %buf, %peer : !llvm.ptr<3> -> !llvm.ptr<7>
    %far = llvm.getelementptr %to[0] : (!llvm.ptr<7>) -> !llvm.ptr<7>, i8
    %remote = nvvm.mapa %bar, %peer : !llvm.ptr<3> -> !llvm.ptr<7>
    %bits = llvm.ptrtoint %remote : !llvm.ptr<7> to i32
    %barrier = llvm.inttoptr %bits : i32 to !llvm.ptr<3>
    %is_first = llvm.icmp "eq" %t, %zero : i32
    scf.if %is_first {
      %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
      %copies = llvm.icmp "eq" %rank, %zero : i32
      scf.if %copies {
        nvvm.cp.async.bulk.shared.cluster.shared.cta %far, %buf, %barrier, %bytes : !llvm.ptr<7>, !llvm.ptr<3>
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
