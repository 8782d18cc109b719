// RUN: kvcache-opt %s --kvcache-pack-shared-memory --allow-unregistered-dialect --split-input-file | FileCheck %s

// What takes the largest alignment comes first, then what is used first, each
// as aligned as it was and of the type that it had. The launch gives the size.
// The kernel keeps the names, offsets and bytes.

#wg = #gpu.address_space<workgroup>

module attributes {gpu.container_module} {
  // CHECK-LABEL: func.func @launch
  // CHECK:         %[[BYTES:.*]] = arith.constant 98600 : i32
  // CHECK-NEXT:    gpu.launch_func @kernels::@packs {{.*}} dynamic_shared_memory_size %[[BYTES]]
  func.func @launch(%n: index) {
    gpu.launch_func @kernels::@packs blocks in (%n, %n, %n) threads in (%n, %n, %n)
    return
  }

  // CHECK:       gpu.module @kernels
  // CHECK-NEXT:    memref.global @kvcache_shared : memref<0xi8, #gpu.address_space<workgroup>> {alignment = 1024 : i64}
  // CHECK-NEXT:    gpu.func @packs() kernel attributes {kvcache.dynamic_shared_memory = 98600 : i64, kvcache.shared_arrays = {a = array<i64: 65536, 32768>, b = array<i64: 0, 65536>, halves = array<i64: 98400, 200>, ints = array<i64: 98336, 64>, vectors = array<i64: 98304, 32>}}
  gpu.module @kernels {
    memref.global "private" @a : memref<32768xi8, #wg> = uninitialized {alignment = 1024}
    memref.global "private" @b : memref<65536xi8, #wg> = uninitialized {alignment = 1024}
    memref.global "private" @halves : memref<100xf16, 3> = uninitialized
    memref.global "private" @ints : memref<2x4xindex, #wg> = uninitialized
    memref.global "private" @vectors : memref<1xvector<8xf32>, #wg> = uninitialized
    memref.global "private" @unused : memref<65536xi8, #wg> = uninitialized

    gpu.func @packs() kernel {
      // CHECK-NEXT: %[[BASE:.*]] = memref.get_global @kvcache_shared
      // CHECK-NEXT: %[[AT:.*]] = arith.constant 98336 : index
      // CHECK-NEXT: %[[INTS:.*]] = memref.view %[[BASE]][%[[AT]]][] : memref<0xi8, #{{.*}}> to memref<2x4xindex, #{{.*}}>
      %ints = memref.get_global @ints : memref<2x4xindex, #wg>
      // CHECK-NEXT: %[[BASE:.*]] = memref.get_global @kvcache_shared
      // CHECK-NEXT: %[[AT:.*]] = arith.constant 0 : index
      // CHECK-NEXT: %[[B:.*]] = memref.view %[[BASE]][%[[AT]]][] : memref<0xi8, #{{.*}}> to memref<65536xi8, #{{.*}}>
      %b = memref.get_global @b : memref<65536xi8, #wg>
      // CHECK-NEXT: %[[BASE:.*]] = memref.get_global @kvcache_shared
      // CHECK-NEXT: %[[CAST:.*]] = memref.memory_space_cast %[[BASE]] : memref<0xi8, #{{.*}}> to memref<0xi8, 3>
      // CHECK-NEXT: %[[AT:.*]] = arith.constant 98400 : index
      // CHECK-NEXT: %[[HALVES:.*]] = memref.view %[[CAST]][%[[AT]]][] : memref<0xi8, 3> to memref<100xf16, 3>
      %halves = memref.get_global @halves : memref<100xf16, 3>
      // CHECK-NEXT: %[[BASE:.*]] = memref.get_global @kvcache_shared
      // CHECK-NEXT: %[[AT:.*]] = arith.constant 98304 : index
      // CHECK-NEXT: %[[VECTORS:.*]] = memref.view %[[BASE]][%[[AT]]][] : memref<0xi8, #{{.*}}> to memref<1xvector<8xf32>, #{{.*}}>
      %vectors = memref.get_global @vectors : memref<1xvector<8xf32>, #wg>
      // CHECK-NEXT: %[[BASE:.*]] = memref.get_global @kvcache_shared
      // CHECK-NEXT: %[[AT:.*]] = arith.constant 65536 : index
      // CHECK-NEXT: %[[A:.*]] = memref.view %[[BASE]][%[[AT]]][] : memref<0xi8, #{{.*}}> to memref<32768xi8, #{{.*}}>
      %a = memref.get_global @a : memref<32768xi8, #wg>
      // CHECK-NEXT: "test.use"(%[[INTS]], %[[B]], %[[HALVES]], %[[VECTORS]], %[[A]])
      "test.use"(%ints, %b, %halves, %vectors, %a) : (memref<2x4xindex, #wg>, memref<65536xi8, #wg>, memref<100xf16, 3>, memref<1xvector<8xf32>, #wg>, memref<32768xi8, #wg>) -> ()
      gpu.return
    }
  }
}

// -----

// 48 KB stay as they are, also where another kernel uses the same variable and
// more. Offsets are each kernel's own.

#wg = #gpu.address_space<workgroup>

module attributes {gpu.container_module} {
  // CHECK-LABEL: func.func @launch
  // CHECK:         gpu.launch_func @kernels::@fits blocks in (%{{.*}}) threads in (%{{[^)]*}}){{ *$}}
  func.func @launch(%n: index) {
    gpu.launch_func @kernels::@fits blocks in (%n, %n, %n) threads in (%n, %n, %n)
    return
  }

  // CHECK:       gpu.module @kernels
  // CHECK-DAG:     memref.global "private" @both :
  // CHECK-DAG:     memref.global @kvcache_shared
  // CHECK-NOT:     memref.global
  gpu.module @kernels {
    memref.global "private" @both : memref<49152xi8, #wg> = uninitialized {alignment = 1024}
    memref.global "private" @more : memref<16xi8, #wg> = uninitialized {alignment = 1024}

    // CHECK:       gpu.func @fits() kernel {
    // CHECK-NEXT:    %[[BOTH:.*]] = memref.get_global @both
    // CHECK-NEXT:    "test.use"(%[[BOTH]])
    gpu.func @fits() kernel {
      %both = memref.get_global @both : memref<49152xi8, #wg>
      "test.use"(%both) : (memref<49152xi8, #wg>) -> ()
      gpu.return
    }

    // CHECK:       gpu.func @one() kernel attributes {kvcache.dynamic_shared_memory = 49168 : i64, kvcache.shared_arrays = {both = array<i64: 0, 49152>, more = array<i64: 49152, 16>}}
    // CHECK:         %[[AT:.*]] = arith.constant 0 : index
    // CHECK-NEXT:    memref.view %{{.*}}[%[[AT]]][] : {{.*}} to memref<49152xi8,
    // CHECK:         %[[AT:.*]] = arith.constant 49152 : index
    // CHECK-NEXT:    memref.view %{{.*}}[%[[AT]]][] : {{.*}} to memref<16xi8,
    gpu.func @one() kernel {
      scf.execute_region {
        %both = memref.get_global @both : memref<49152xi8, #wg>
        "test.use"(%both) : (memref<49152xi8, #wg>) -> ()
        scf.yield
      }
      %more = memref.get_global @more : memref<16xi8, #wg>
      "test.use"(%more) : (memref<16xi8, #wg>) -> ()
      gpu.return
    }

    // CHECK:       gpu.func @other() kernel attributes {kvcache.dynamic_shared_memory = 50176 : i64, kvcache.shared_arrays = {both = array<i64: 1024, 49152>, more = array<i64: 0, 16>}}
    // CHECK:         %[[AT:.*]] = arith.constant 0 : index
    // CHECK-NEXT:    memref.view %{{.*}}[%[[AT]]][] : {{.*}} to memref<16xi8,
    // CHECK:         %[[AT:.*]] = arith.constant 1024 : index
    // CHECK-NEXT:    memref.view %{{.*}}[%[[AT]]][] : {{.*}} to memref<49152xi8,
    gpu.func @other() kernel {
      %more = memref.get_global @more : memref<16xi8, #wg>
      %both = memref.get_global @both : memref<49152xi8, #wg>
      "test.use"(%more, %both) : (memref<16xi8, #wg>, memref<49152xi8, #wg>) -> ()
      gpu.return
    }
  }
}

// -----

// Attributions, mbarriers, and variables that others see count, but stay.

#wg = #gpu.address_space<workgroup>
!barriers = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 4>

// CHECK-LABEL: gpu.module @attribution
// CHECK:         gpu.func @kernel() workgroup(%{{.*}} : memref<4xf32, {{.*}}>) kernel attributes {kvcache.dynamic_shared_memory = 49152 : i64, {{.*}}}
gpu.module @attribution {
  memref.global "private" @tile : memref<49152xi8, #wg> = uninitialized
  gpu.func @kernel() workgroup(%a: memref<4xf32, #wg>) kernel {
    %tile = memref.get_global @tile : memref<49152xi8, #wg>
    "test.use"(%tile, %a) : (memref<49152xi8, #wg>, memref<4xf32, #wg>) -> ()
    gpu.return
  }
}

// CHECK-LABEL: gpu.module @mbarriers
// CHECK:         gpu.func @kernel() kernel attributes {kvcache.dynamic_shared_memory = 49152 : i64, {{.*}}}
// CHECK:           nvgpu.mbarrier.create
gpu.module @mbarriers {
  memref.global "private" @tile : memref<49152xi8, #wg> = uninitialized
  gpu.func @kernel() kernel {
    %tile = memref.get_global @tile : memref<49152xi8, #wg>
    %barriers = nvgpu.mbarrier.create -> !barriers
    "test.use"(%tile, %barriers) : (memref<49152xi8, #wg>, !barriers) -> ()
    gpu.return
  }
}

// CHECK-LABEL: gpu.module @globals
// CHECK-DAG:     memref.global @public
// CHECK-DAG:     memref.global "private" @page
// CHECK-DAG:     llvm.mlir.global
// CHECK:         gpu.func @kernel() kernel attributes {kvcache.dynamic_shared_memory = 32768 : i64, {{.*}}}
gpu.module @globals {
  memref.global @public : memref<4096xi8, #wg> = uninitialized
  memref.global "private" @page : memref<4096xi8, #wg> = uninitialized {alignment = 4096}
  llvm.mlir.global internal @llvm() {addr_space = 3 : i32} : !llvm.array<12288 x i8>
  memref.global "private" @tile : memref<32768xi8, #wg> = uninitialized
  gpu.func @kernel() kernel {
    %public = memref.get_global @public : memref<4096xi8, #wg>
    %page = memref.get_global @page : memref<4096xi8, #wg>
    %tile = memref.get_global @tile : memref<32768xi8, #wg>
    %llvm = llvm.mlir.addressof @llvm : !llvm.ptr<3>
    "test.use"(%public, %page, %tile, %llvm) : (memref<4096xi8, #wg>, memref<4096xi8, #wg>, memref<32768xi8, #wg>, !llvm.ptr<3>) -> ()
    gpu.return
  }
}

// -----

// Padding can make more than 48 KB of less.

#wg = #gpu.address_space<workgroup>

// CHECK-LABEL: gpu.module @padding
// CHECK:         gpu.func @kernel() kernel attributes {kvcache.dynamic_shared_memory = 48640 : i64, {{.*}}}
gpu.module @padding {
  memref.global "private" @before : memref<256xi8, #wg> = uninitialized
  memref.global "private" @tile : memref<48128xi8, #wg> = uninitialized {alignment = 1024}
  memref.global "private" @after : memref<256xi8, #wg> = uninitialized
  gpu.func @kernel() kernel {
    %before = memref.get_global @before : memref<256xi8, #wg>
    %tile = memref.get_global @tile : memref<48128xi8, #wg>
    %after = memref.get_global @after : memref<256xi8, #wg>
    "test.use"(%before, %tile, %after) : (memref<256xi8, #wg>, memref<48128xi8, #wg>, memref<256xi8, #wg>) -> ()
    gpu.return
  }
}

// -----

// Dynamic shared memory beside little of the static kind is the author's.

#wg = #gpu.address_space<workgroup>

// CHECK-LABEL: gpu.module @dynamic
// CHECK:         gpu.func @kernel() kernel {
// CHECK:           memref.get_global @tile
gpu.module @dynamic {
  memref.global "private" @tile : memref<49152xi8, #wg> = uninitialized
  gpu.func @kernel() kernel {
    %tile = memref.get_global @tile : memref<49152xi8, #wg>
    %dynamic = gpu.dynamic_shared_memory : memref<?xi8, #wg>
    "test.use"(%tile, %dynamic) : (memref<49152xi8, #wg>, memref<?xi8, #wg>) -> ()
    gpu.return
  }
}

// -----

// A name that is taken, and one variable for all kernels.

#wg = #gpu.address_space<workgroup>

// CHECK-LABEL: gpu.module @names
// CHECK:         memref.global @[[NAME:kvcache_shared_.*]] : memref<0xi8, {{.*}}> {alignment = 1024 : i64}
// CHECK:         memref.global "private" @kvcache_shared : memref<16xi8>
// CHECK-NOT:     memref.global
// CHECK:         memref.get_global @[[NAME]]
// CHECK:         memref.get_global @[[NAME]]
gpu.module @names {
  memref.global "private" @kvcache_shared : memref<16xi8> = uninitialized
  memref.global "private" @tile : memref<65536xi8, #wg> = uninitialized
  gpu.func @kernel() kernel {
    %tile = memref.get_global @tile : memref<65536xi8, #wg>
    "test.use"(%tile) : (memref<65536xi8, #wg>) -> ()
    gpu.return
  }
  gpu.func @other() kernel {
    %tile = memref.get_global @tile : memref<65536xi8, #wg>
    "test.use"(%tile) : (memref<65536xi8, #wg>) -> ()
    gpu.return
  }
}

// -----

// A launch of a kernel with a clone for another target gives what the larger of
// the two needs, or what its author gives if that is more.

#wg = #gpu.address_space<workgroup>

module attributes {gpu.container_module} {
  // CHECK-LABEL: gpu.module @kernels
  // CHECK:         gpu.func @kernel() kernel {
  gpu.module @kernels {
    gpu.func @kernel() kernel {
      gpu.return
    }
  }
  // CHECK-LABEL: gpu.module @kernels_0
  // CHECK:         gpu.func @kernel() kernel attributes {kvcache.dynamic_shared_memory = 65536 : i64, {{.*}}}
  gpu.module @kernels_0 attributes {kvcache.clone_of = @kernels} {
    memref.global "private" @tile : memref<65536xi8, #wg> = uninitialized
    gpu.func @kernel() kernel {
      %tile = memref.get_global @tile : memref<65536xi8, #wg>
      "test.use"(%tile) : (memref<65536xi8, #wg>) -> ()
      gpu.return
    }
  }
  // CHECK-LABEL: gpu.module @kernels_1
  // CHECK:         gpu.func @kernel() kernel attributes {kvcache.dynamic_shared_memory = 57344 : i64, {{.*}}}
  gpu.module @kernels_1 attributes {kvcache.clone_of = @kernels} {
    memref.global "private" @tile : memref<57344xi8, #wg> = uninitialized
    gpu.func @kernel() kernel {
      %tile = memref.get_global @tile : memref<57344xi8, #wg>
      "test.use"(%tile) : (memref<57344xi8, #wg>) -> ()
      gpu.return
    }
  }
  // CHECK-LABEL: func.func @launch
  // CHECK:         %[[MORE:.*]] = arith.constant 65537 : i32
  // CHECK:         %[[NEEDED:.*]] = arith.constant 65536 : i32
  // CHECK-NEXT:    gpu.launch_func @kernels::@kernel {{.*}} dynamic_shared_memory_size %[[NEEDED]]
  // CHECK-NEXT:    gpu.launch_func @kernels::@kernel {{.*}} dynamic_shared_memory_size %[[MORE]]
  func.func @launch(%n: index) {
    %more = arith.constant 65537 : i32
    gpu.launch_func @kernels::@kernel blocks in (%n, %n, %n) threads in (%n, %n, %n)
    gpu.launch_func @kernels::@kernel blocks in (%n, %n, %n) threads in (%n, %n, %n) dynamic_shared_memory_size %more
    return
  }
}

// -----

// 113 KiB are half of what blocks on sm_90a share, with a KiB for each block.
// With a byte more, one block is alone on its multiprocessor, and ptxas may take
// all registers, unless the kernel has a bound of its own.

#wg = #gpu.address_space<workgroup>

// CHECK-LABEL: gpu.module @shared
// CHECK:         gpu.func @half()
// CHECK-NOT:       nvvm.minctasm
gpu.module @shared [#nvvm.target<chip = "sm_90a">] {
  memref.global "private" @tile : memref<115712xi8, #wg> = uninitialized
  gpu.func @half() kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %tile = memref.get_global @tile : memref<115712xi8, #wg>
    "test.use"(%tile) : (memref<115712xi8, #wg>) -> ()
    gpu.return
  }
}

// CHECK-LABEL: gpu.module @alone
// CHECK:         gpu.func @more() {{.*}}nvvm.minctasm = 1 : i32
// CHECK:         gpu.func @bounded()
// CHECK-NOT:       nvvm.minctasm
// CHECK-SAME:      nvvm.maxnreg = 96
gpu.module @alone [#nvvm.target<chip = "sm_90a">] {
  memref.global "private" @tile : memref<115713xi8, #wg> = uninitialized
  gpu.func @more() kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %tile = memref.get_global @tile : memref<115713xi8, #wg>
    "test.use"(%tile) : (memref<115713xi8, #wg>) -> ()
    gpu.return
  }
  gpu.func @bounded() kernel attributes {known_block_size = array<i32: 128, 1, 1>, nvvm.maxnreg = 96 : i32} {
    %tile = memref.get_global @tile : memref<115713xi8, #wg>
    "test.use"(%tile) : (memref<115713xi8, #wg>) -> ()
    gpu.return
  }
}
