// The blocks of a cluster run together: they synchronize at its barrier, and access
// each other's shared memory and mbarriers.

// DEFINE: %{libs} = %kvcache_emulator,%kvcache_runtime,%mlir_lib_dir/libmlir_c_runner_utils.so,%mlir_lib_dir/libmlir_runner_utils.so
// DEFINE: %{run} = mlir-runner -e main -entry-point-result=void -shared-libs=%{libs}
// RUN: kvcache-opt %s --kvcache-to-emulator="chip=sm_90a meter=true" -o %t.mlir
// RUN: kvcache-opt %s --kvcache-to-emulator="chip=sm_120 sanitize=false" -o %t.plain.mlir
// RUN: %{run} %t.mlir | FileCheck %s
// RUN: env KVCACHE_EMULATOR_SEED=1 KVCACHE_EMULATOR_THREADS=1 %{run} %t.mlir | FileCheck %s
// RUN: env KVCACHE_EMULATOR_SEED=7 KVCACHE_EMULATOR_THREADS=4 %{run} %t.mlir | FileCheck %s
// RUN: %{run} %t.plain.mlir | FileCheck %s
// RUN: env KVCACHE_EMULATOR_SEED=3 %{run} %t.plain.mlir | FileCheck %s

module attributes {gpu.container_module} {

gpu.module @kernels {
  llvm.mlir.global internal @bar() {addr_space = 3 : i32, alignment = 8 : i64} : !llvm.array<2 x i64>
  llvm.mlir.global internal @buf() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<64 x i32>
  llvm.mlir.global internal @other() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<64 x i32>

  // The number of the thread among those of the grid, its element of @buf, and
  // that in the next block of the cluster.
  func.func @get_elements() -> (i32, i32, !llvm.ptr<3>, !llvm.ptr<7>) {
    %buf = llvm.mlir.addressof @buf : !llvm.ptr<3>
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %b = nvvm.read.ptx.sreg.ctaid.x : i32
    %n = nvvm.read.ptx.sreg.ntid.x : i32
    %base = llvm.mul %b, %n : i32
    %number = llvm.add %base, %t : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
    %ranks = nvvm.read.ptx.sreg.cluster.nctarank : i32
    %next = llvm.add %rank, %one : i32
    %peer = llvm.urem %next, %ranks : i32
    %mine = llvm.getelementptr %buf[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %theirs = nvvm.mapa %mine, %peer : !llvm.ptr<3> -> !llvm.ptr<7>
    return %number, %peer, %mine, %theirs : i32, i32, !llvm.ptr<3>, !llvm.ptr<7>
  }

  func.func @store(%out: memref<256xi32>, %number: i32, %value: i32) {
    %i = arith.index_cast %number : i32 to index
    memref.store %value, %out[%i] : memref<256xi32>
    return
  }

  // An mbarrier for the arrivals of all threads of another block, which may
  // use it after the barrier of the cluster.
  func.func @init(%count: i32) -> (!llvm.ptr<3>) {
    %bar = llvm.mlir.addressof @bar : !llvm.ptr<3>
    %zero = llvm.mlir.constant(0 : i32) : i32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %is_first = llvm.icmp "eq" %t, %zero : i32
    scf.if %is_first {
      nvvm.mbarrier.init %bar, %count : !llvm.ptr<3>, i32
      nvvm.fence.mbarrier.init
    }
    nvvm.cluster.arrive.relaxed {aligned}
    nvvm.cluster.wait {aligned}
    return %bar : !llvm.ptr<3>
  }

  func.func @wait(%bar: !llvm.ptr<3>) {
    %zero = llvm.mlir.constant(0 : i32) : i32
    scf.while : () -> () {
      %done = nvvm.mbarrier.try_wait %bar, %zero {scope = #nvvm.mem_scope<cluster>} : !llvm.ptr<3>, i32 -> i1
      %true = llvm.mlir.constant(true) : i1
      %again = llvm.xor %done, %true : i1
      scf.condition(%again)
    } do {
      scf.yield
    }
    return
  }

  gpu.func @registers(%out: memref<256xi32>) kernel attributes {known_cluster_size = array<i32: 2, 2, 1>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c3 = arith.constant 3 : i32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %x = nvvm.read.ptx.sreg.ctaid.x : i32
    %y = nvvm.read.ptx.sreg.ctaid.y : i32
    %z = nvvm.read.ptx.sreg.ctaid.z : i32
    %isT = arith.cmpi eq, %t, %c0 : i32
    %isX = arith.cmpi eq, %x, %c3 : i32
    %isY = arith.cmpi eq, %y, %c1 : i32
    %isZ = arith.cmpi eq, %z, %c1 : i32
    %isXY = arith.andi %isX, %isY : i1
    %isXYZ = arith.andi %isXY, %isZ : i1
    %is = arith.andi %isXYZ, %isT : i1
    scf.if %is {
      %cx = nvvm.read.ptx.sreg.cluster.ctaid.x : i32
      %cy = nvvm.read.ptx.sreg.cluster.ctaid.y : i32
      %cz = nvvm.read.ptx.sreg.cluster.ctaid.z : i32
      %nx = nvvm.read.ptx.sreg.cluster.nctaid.x : i32
      %ny = nvvm.read.ptx.sreg.cluster.nctaid.y : i32
      %nz = nvvm.read.ptx.sreg.cluster.nctaid.z : i32
      gpu.printf "block %d %d %d of a cluster of %d %d %d\n", %cx, %cy, %cz, %nx, %ny, %nz : i32, i32, i32, i32, i32, i32
      %ix = nvvm.read.ptx.sreg.clusterid.x : i32
      %iy = nvvm.read.ptx.sreg.clusterid.y : i32
      %iz = nvvm.read.ptx.sreg.clusterid.z : i32
      %mx = nvvm.read.ptx.sreg.nclusterid.x : i32
      %my = nvvm.read.ptx.sreg.nclusterid.y : i32
      %mz = nvvm.read.ptx.sreg.nclusterid.z : i32
      gpu.printf "cluster %d %d %d of %d %d %d\n", %ix, %iy, %iz, %mx, %my, %mz : i32, i32, i32, i32, i32, i32
      %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
      %ranks = nvvm.read.ptx.sreg.cluster.nctarank : i32
      %buf = llvm.mlir.addressof @buf : !llvm.ptr<3>
      %own = llvm.ptrtoint %buf : !llvm.ptr<3> to i32
      %first = nvvm.mapa %buf, %c0 : !llvm.ptr<3> -> !llvm.ptr<7>
      %of_first = llvm.ptrtoint %first : !llvm.ptr<7> to i32
      %difference = llvm.sub %own, %of_first : i32
      %there = llvm.inttoptr %of_first : i32 to !llvm.ptr<3>
      %found = llvm.call_intrinsic "llvm.nvvm.getctarank.shared.cluster"(%there) : (!llvm.ptr<3>) -> i32
      gpu.printf "rank %d of %d, addresses %x after those of rank %d\n", %rank, %ranks, %difference, %found : i32, i32, i32, i32
    }
    gpu.return
  }

  // Each thread reads what one of another block has written. The second
  // barrier keeps that block alive; it needs no order of memory for that.
  gpu.func @read_peer(%out: memref<256xi32>) kernel {
    %number, %peer, %mine, %theirs = func.call @get_elements() : () -> (i32, i32, !llvm.ptr<3>, !llvm.ptr<7>)
    llvm.store %number, %mine : i32, !llvm.ptr<3>
    nvvm.cluster.arrive {aligned}
    nvvm.cluster.wait {aligned}
    %value = llvm.load %theirs : !llvm.ptr<7> -> i32
    nvvm.cluster.arrive.relaxed
    func.call @store(%out, %number, %value) : (memref<256xi32>, i32, i32) -> ()
    nvvm.cluster.wait
    gpu.return
  }

  // The same through a pointer to any memory.
  gpu.func @write_peer(%out: memref<256xi32>) kernel {
    %number, %peer, %mine, %theirs = func.call @get_elements() : () -> (i32, i32, !llvm.ptr<3>, !llvm.ptr<7>)
    %generic = llvm.addrspacecast %mine : !llvm.ptr<3> to !llvm.ptr
    %mapped = nvvm.mapa %generic, %peer : !llvm.ptr -> !llvm.ptr
    nvvm.cluster.arrive.relaxed
    nvvm.cluster.wait
    llvm.store %number, %mapped : i32, !llvm.ptr
    nvvm.cluster.arrive
    nvvm.cluster.wait
    %value = llvm.load %mine : !llvm.ptr<3> -> i32
    func.call @store(%out, %number, %value) : (memref<256xi32>, i32, i32) -> ()
    gpu.return
  }

  // Each block waits for the arrivals of the other one, and may end after them.
  gpu.func @remote_arrivals(%out: memref<256xi32>) kernel {
    %number, %peer, %mine, %theirs = func.call @get_elements() : () -> (i32, i32, !llvm.ptr<3>, !llvm.ptr<7>)
    %count = nvvm.read.ptx.sreg.ntid.x : i32
    %bar = func.call @init(%count) : (i32) -> (!llvm.ptr<3>)
    %remote = nvvm.mapa %bar, %peer : !llvm.ptr<3> -> !llvm.ptr<7>
    llvm.store %number, %theirs : i32, !llvm.ptr<7>
    nvvm.mbarrier.arrive %remote {scope = #nvvm.mem_scope<cluster>} : !llvm.ptr<7>
    func.call @wait(%bar) : (!llvm.ptr<3>) -> ()
    %value = llvm.load %mine : !llvm.ptr<3> -> i32
    func.call @store(%out, %number, %value) : (memref<256xi32>, i32, i32) -> ()
    gpu.return
  }

  // Relaxed arrivals order no accesses, but the ends of blocks. A thread drops
  // its arrivals in later phases, expects bytes and completes them.
  gpu.func @relaxed_arrivals(%out: memref<256xi32>) kernel {
    %number, %peer, %mine, %theirs = func.call @get_elements() : () -> (i32, i32, !llvm.ptr<3>, !llvm.ptr<7>)
    llvm.store %number, %mine : i32, !llvm.ptr<3>
    %one = llvm.mlir.constant(1 : i32) : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %bytes = llvm.mlir.constant(48 : i32) : i32
    %count = nvvm.read.ptx.sreg.ntid.x : i32
    %bar = func.call @init(%count) : (i32) -> (!llvm.ptr<3>)
    nvvm.cluster.arrive {aligned}
    nvvm.cluster.wait {aligned}
    %remote = nvvm.mapa %bar, %peer : !llvm.ptr<3> -> !llvm.ptr<7>
    %value = llvm.load %theirs : !llvm.ptr<7> -> i32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %is_first = llvm.icmp "eq" %t, %zero : i32
    scf.if %is_first {
      nvvm.mbarrier.expect_tx %remote, %bytes {scope = #nvvm.mem_scope<cluster>} : !llvm.ptr<7>, i32
      nvvm.mbarrier.arrive_drop %remote, %one {relaxed = true, scope = #nvvm.mem_scope<cluster>} : !llvm.ptr<7>
      nvvm.mbarrier.complete_tx %remote, %bytes {scope = #nvvm.mem_scope<cluster>} : !llvm.ptr<7>, i32
    } else {
      nvvm.mbarrier.arrive %remote {relaxed = true, scope = #nvvm.mem_scope<cluster>} : !llvm.ptr<7>
    }
    func.call @wait(%bar) : (!llvm.ptr<3>) -> ()
    func.call @store(%out, %number, %value) : (memref<256xi32>, i32, i32) -> ()
    gpu.return
  }

  // All threads of the cluster count in the first block, and write through it.
  gpu.func @atomics(%out: memref<256xi32>) kernel {
    %number, %peer, %mine, %theirs = func.call @get_elements() : () -> (i32, i32, !llvm.ptr<3>, !llvm.ptr<7>)
    %zero = llvm.mlir.constant(0 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %buf = llvm.mlir.addressof @buf : !llvm.ptr<3>
    %first = nvvm.mapa %buf, %zero : !llvm.ptr<3> -> !llvm.ptr<7>
    llvm.store %zero, %mine : i32, !llvm.ptr<3>
    nvvm.cluster.arrive
    nvvm.cluster.wait
    %old = llvm.atomicrmw add %first, %one syncscope("cluster") monotonic : !llvm.ptr<7>, i32
    nvvm.cluster.arrive
    nvvm.cluster.wait
    %sum = llvm.load %first : !llvm.ptr<7> -> i32
    nvvm.cluster.arrive
    nvvm.cluster.wait
    func.call @store(%out, %number, %sum) : (memref<256xi32>, i32, i32) -> ()
    gpu.return
  }

  // Data in the other block that a flag there publishes: by a release, or by a relaxed
  // store and fences.
  gpu.func @flags(%out: memref<256xi32>) kernel {
    %number, %peer, %mine, %theirs = func.call @get_elements() : () -> (i32, i32, !llvm.ptr<3>, !llvm.ptr<7>)
    %zero = llvm.mlir.constant(0 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %other = llvm.mlir.addressof @other : !llvm.ptr<3>
    %flag = llvm.getelementptr %other[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %their_flag = nvvm.mapa %flag, %peer : !llvm.ptr<3> -> !llvm.ptr<7>
    llvm.store %zero, %flag : i32, !llvm.ptr<3>
    nvvm.cluster.arrive
    nvvm.cluster.wait
    %bit = llvm.and %t, %one : i32
    %is_odd = llvm.icmp "eq" %bit, %one : i32
    llvm.store %number, %theirs : i32, !llvm.ptr<7>
    scf.if %is_odd {
      nvvm.fence.sc.cluster
      llvm.store %one, %their_flag atomic syncscope("cluster") monotonic {alignment = 4 : i64} : i32, !llvm.ptr<7>
    } else {
      llvm.store %one, %their_flag atomic syncscope("cluster") release {alignment = 4 : i64} : i32, !llvm.ptr<7>
    }
    scf.while : () -> () {
      %f = llvm.load %flag atomic syncscope("cluster") monotonic {alignment = 4 : i64} : !llvm.ptr<3> -> i32
      %again = llvm.icmp "eq" %f, %zero : i32
      scf.condition(%again)
    } do {
      scf.yield
    }
    nvvm.memory.barrier #nvvm.mem_scope<cluster>
    %value = llvm.load %mine : !llvm.ptr<3> -> i32
    func.call @store(%out, %number, %value) : (memref<256xi32>, i32, i32) -> ()
    gpu.return
  }

  // A copy from the shared memory of one block to that of another one, which
  // completes on an mbarrier there.
  gpu.func @copy_to_peer(%out: memref<256xi32>) kernel {
    %number, %peer, %mine, %theirs = func.call @get_elements() : () -> (i32, i32, !llvm.ptr<3>, !llvm.ptr<7>)
    %one = llvm.mlir.constant(1 : i32) : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %bytes = llvm.mlir.constant(256 : i32) : i32
    llvm.store %number, %mine : i32, !llvm.ptr<3>
    %bar = func.call @init(%one) : (i32) -> (!llvm.ptr<3>)
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
    nvvm.cluster.arrive
    nvvm.cluster.wait
    %remote = nvvm.mapa %bar, %peer : !llvm.ptr<3> -> !llvm.ptr<7>
    %bits = llvm.ptrtoint %remote : !llvm.ptr<7> to i32
    %barrier = llvm.inttoptr %bits : i32 to !llvm.ptr<3>
    %buf = llvm.mlir.addressof @buf : !llvm.ptr<3>
    %other = llvm.mlir.addressof @other : !llvm.ptr<3>
    %to = nvvm.mapa %other, %peer : !llvm.ptr<3> -> !llvm.ptr<7>
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %is_first = llvm.icmp "eq" %t, %zero : i32
    scf.if %is_first {
      %state = nvvm.mbarrier.arrive.expect_tx %bar, %bytes : !llvm.ptr<3>, i32 -> i64
      nvvm.cp.async.bulk.shared.cluster.shared.cta %to, %buf, %barrier, %bytes : !llvm.ptr<7>, !llvm.ptr<3>
    }
    func.call @wait(%bar) : (!llvm.ptr<3>) -> ()
    %element = llvm.getelementptr %other[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %value = llvm.load %element : !llvm.ptr<3> -> i32
    // The other block has what this one has copied.
    nvvm.cluster.arrive
    nvvm.cluster.wait
    func.call @store(%out, %number, %value) : (memref<256xi32>, i32, i32) -> ()
    gpu.return
  }

  // Threads that have ended are not waited for.
  gpu.func @ended(%out: memref<256xi32>) kernel {
    %number, %peer, %mine, %theirs = func.call @get_elements() : () -> (i32, i32, !llvm.ptr<3>, !llvm.ptr<7>)
    llvm.store %number, %mine : i32, !llvm.ptr<3>
    func.call @store(%out, %number, %number) : (memref<256xi32>, i32, i32) -> ()
    %c32 = llvm.mlir.constant(32 : i32) : i32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %arrives = llvm.icmp "ult" %t, %c32 : i32
    scf.if %arrives {
      nvvm.cluster.arrive {aligned}
      nvvm.cluster.wait {aligned}
      %value = llvm.load %theirs : !llvm.ptr<7> -> i32
      nvvm.cluster.arrive {aligned}
      nvvm.cluster.wait {aligned}
      func.call @store(%out, %number, %value) : (memref<256xi32>, i32, i32) -> ()
    }
    gpu.return
  }

  // Blocks of different clusters synchronize in global memory.
  gpu.func @clusters_in_turn(%out: memref<256xi32>) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    %c1 = arith.constant 1 : index
    %one = arith.constant 1 : i32
    %old = memref.atomic_rmw addi %one, %out[%c1] : (i32, memref<256xi32>) -> i32
    gpu.return
  }
}

func.func private @printMemrefI32(memref<*xi32>)
memref.global "private" @zeros : memref<256xi32> = dense<0>

func.func @make() -> memref<256xi32> {
  %zeros = memref.get_global @zeros : memref<256xi32>
  %out = gpu.alloc () : memref<256xi32>
  gpu.memcpy %out, %zeros : memref<256xi32>, memref<256xi32>
  return %out : memref<256xi32>
}

// Elements from each block.
func.func @print(%out: memref<256xi32>) {
  %host = memref.alloc() : memref<256xi32>
  gpu.memcpy %host, %out : memref<256xi32>, memref<256xi32>
  %some = memref.subview %host[1] [4] [64] : memref<256xi32> to memref<4xi32, strided<[64], offset: 1>>
  %any = memref.cast %some : memref<4xi32, strided<[64], offset: 1>> to memref<*xi32>
  call @printMemrefI32(%any) : (memref<*xi32>) -> ()
  memref.dealloc %host : memref<256xi32>
  gpu.dealloc %out : memref<256xi32>
  return
}

func.func @main() {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index

  // CHECK: block 1 1 0 of a cluster of 2 2 1
  // CHECK: cluster 1 0 1 of 2 1 2
  // CHECK: rank 3 of 4, addresses 3000000 after those of rank 0
  %m0 = call @make() : () -> memref<256xi32>
  gpu.launch_func @kernels::@registers blocks in (%c4, %c2, %c2) threads in (%c64, %c1, %c1) args(%m0 : memref<256xi32>)
  gpu.dealloc %m0 : memref<256xi32>

  // CHECK: [65, 1, 193, 129]
  %m1 = call @make() : () -> memref<256xi32>
  gpu.launch_func @kernels::@read_peer clusters in (%c2, %c1, %c1) blocks in (%c4, %c1, %c1) threads in (%c64, %c1, %c1) args(%m1 : memref<256xi32>)
  call @print(%m1) : (memref<256xi32>) -> ()

  // CHECK: [193, 1, 65, 129]
  %m2 = call @make() : () -> memref<256xi32>
  gpu.launch_func @kernels::@write_peer clusters in (%c4, %c1, %c1) blocks in (%c4, %c1, %c1) threads in (%c64, %c1, %c1) args(%m2 : memref<256xi32>)
  call @print(%m2) : (memref<256xi32>) -> ()

  // CHECK: [65, 1, 193, 129]
  %m3 = call @make() : () -> memref<256xi32>
  gpu.launch_func @kernels::@remote_arrivals clusters in (%c2, %c1, %c1) blocks in (%c4, %c1, %c1) threads in (%c64, %c1, %c1) args(%m3 : memref<256xi32>)
  call @print(%m3) : (memref<256xi32>) -> ()

  // CHECK: [65, 1, 193, 129]
  %m4 = call @make() : () -> memref<256xi32>
  gpu.launch_func @kernels::@relaxed_arrivals clusters in (%c2, %c1, %c1) blocks in (%c4, %c1, %c1) threads in (%c64, %c1, %c1) args(%m4 : memref<256xi32>)
  call @print(%m4) : (memref<256xi32>) -> ()

  // CHECK: [256, 256, 256, 256]
  %m5 = call @make() : () -> memref<256xi32>
  gpu.launch_func @kernels::@atomics clusters in (%c4, %c1, %c1) blocks in (%c4, %c1, %c1) threads in (%c64, %c1, %c1) args(%m5 : memref<256xi32>)
  call @print(%m5) : (memref<256xi32>) -> ()

  // CHECK: [65, 1, 193, 129]
  %m6 = call @make() : () -> memref<256xi32>
  gpu.launch_func @kernels::@flags clusters in (%c2, %c1, %c1) blocks in (%c4, %c1, %c1) threads in (%c64, %c1, %c1) args(%m6 : memref<256xi32>)
  call @print(%m6) : (memref<256xi32>) -> ()

  // CHECK: [65, 1, 193, 129]
  %m7 = call @make() : () -> memref<256xi32>
  gpu.launch_func @kernels::@copy_to_peer clusters in (%c2, %c1, %c1) blocks in (%c4, %c1, %c1) threads in (%c64, %c1, %c1) args(%m7 : memref<256xi32>)
  call @print(%m7) : (memref<256xi32>) -> ()

  // CHECK: [65, 1, 193, 129]
  %m8 = call @make() : () -> memref<256xi32>
  gpu.launch_func @kernels::@ended clusters in (%c2, %c1, %c1) blocks in (%c4, %c1, %c1) threads in (%c64, %c1, %c1) args(%m8 : memref<256xi32>)
  call @print(%m8) : (memref<256xi32>) -> ()

  // A cluster of one block.
  // CHECK: [1, 65, 129, 193]
  %m9 = call @make() : () -> memref<256xi32>
  gpu.launch_func @kernels::@read_peer blocks in (%c4, %c1, %c1) threads in (%c64, %c1, %c1) args(%m9 : memref<256xi32>)
  call @print(%m9) : (memref<256xi32>) -> ()

  // CHECK: [256, 0, 0, 0]
  %m10 = call @make() : () -> memref<256xi32>
  gpu.launch_func @kernels::@clusters_in_turn blocks in (%c4, %c1, %c1) threads in (%c64, %c1, %c1) args(%m10 : memref<256xi32>)
  call @print(%m10) : (memref<256xi32>) -> ()
  return
}

}
