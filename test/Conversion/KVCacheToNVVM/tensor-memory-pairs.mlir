// RUN: kvcache-opt %s --convert-kvcache-to-nvvm --canonicalize --cse | FileCheck %s

!q = !kvcache.tile<64x128xbf16, swizzle_128b>
!k = !kvcache.tile<32x128xbf16, swizzle_128b>
!v = !kvcache.tile<32x256xbf16, swizzle_128b>
!bars = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

gpu.module @kernels [#nvvm.target<chip = "sm_100a">] {
  func.func private @use(!kvcache.tmem_tile<128x256xf32>)

  // Both blocks allocate, and synchronize after that and before the end.
  // CHECK-LABEL: gpu.func @alloc(
  // CHECK:         scf.if
  // CHECK-NEXT:      nvvm.tcgen05.alloc %{{.*}}, %{{.*}} {group = #nvvm.cta_group<cta_2>} : !llvm.ptr<3>, i32
  // CHECK-NEXT:      nvvm.tcgen05.relinquish_alloc_permit {group = #nvvm.cta_group<cta_2>}
  // CHECK-NEXT:    }
  // CHECK-NEXT:    nvvm.cluster.arrive {aligned}
  // CHECK-NEXT:    nvvm.cluster.wait {aligned}
  // CHECK:         call @use
  // CHECK-NEXT:    nvvm.cluster.arrive {aligned}
  // CHECK-NEXT:    nvvm.cluster.wait {aligned}
  // CHECK-NEXT:    nvvm.tcgen05.fence <after>
  // CHECK-NEXT:    scf.if
  // CHECK:           nvvm.tcgen05.dealloc %{{.*}}, %{{.*}} {group = #nvvm.cta_group<cta_2>} : !llvm.ptr<6>, i32
  gpu.func @alloc() kernel attributes {known_block_size = array<i32: 128, 1, 1>, known_cluster_size = array<i32: 2, 1, 1>} {
    %o = kvcache.tmem_alloc {pair} : !kvcache.tmem_tile<128x256xf32>
    func.call @use(%o) : (!kvcache.tmem_tile<128x256xf32>) -> ()
    gpu.return
  }

  // Each block has 32 columns of B: the instruction 0x08100490 has an M of 128 and an N of 64. A cluster barrier states
  // the cluster.
  // CHECK-LABEL:  gpu.func @shared(
  // CHECK-SAME:     %[[D:[^ :]*]]: !kvcache.tmem_tile<128x32xf32>)
  // CHECK-SAME:     known_cluster_size = array<i32: 1, 2, 1>
  // CHECK-DAG:      %[[FORM:.*]] = arith.constant 135267472 : i32
  // CHECK-DAG:      %[[ADDRESS:.*]] = builtin.unrealized_conversion_cast %[[D]]
  // CHECK-DAG:      %[[TO:.*]] = llvm.inttoptr %[[ADDRESS]] : i32 to !llvm.ptr<6>
  // CHECK-COUNT-8:  nvvm.tcgen05.mma %[[TO]], %{{.*}}, %{{.*}}, %[[FORM]], %{{.*}} {ctaGroup = #nvvm.cta_group<cta_2>, kind = #nvvm.tcgen05_mma_kind<f16>} : (!llvm.ptr<6>, i64, i64, i32, i1)
  // CHECK-NOT:      nvvm.tcgen05.mma
  gpu.func @shared(%q: !q, %k: !k, %d: !kvcache.tmem_tile<128x32xf32>) kernel {
    %c0 = arith.constant 0 : index
    kvcache.cluster_barrier {blocks = 2 : i64}
    kvcache.tmem_mma %q[%c0, %c0], %k[%c0, %c0] into %d {pair} : !q, !k, !kvcache.tmem_tile<128x32xf32>
    gpu.return
  }

  // Two products of 128 columns a block: the second one 128 columns further in D, with B from column 128 on, two chunks of
  // 4096 bytes. Both have the same A. Instruction 0x08410490.
  // CHECK-LABEL:  gpu.func @tensor(
  // CHECK-SAME:     %[[A:[^ ]*]]: !kvcache.tmem_tile<128x16xbf16>, %{{[^ ]*}}: !kvcache.tile<32x256xbf16, swizzle_128b>, %[[D:[^ ]*]]: !kvcache.tmem_tile<128x256xf32>, %[[ADD:[^ ]*]]: i1)
  // CHECK-DAG:      %[[FORM:.*]] = arith.constant 138478736 : i32
  // CHECK-DAG:      %[[C128:.*]] = arith.constant 128 : i32
  // CHECK-DAG:      %[[C8192:.*]] = arith.constant 8192 : index
  // CHECK-DAG:      %[[AT_D:.*]] = builtin.unrealized_conversion_cast %[[D]]
  // CHECK-DAG:      %[[AT_A:.*]] = builtin.unrealized_conversion_cast %[[A]]
  // CHECK-DAG:      %[[TO:.*]] = llvm.inttoptr %[[AT_D]] : i32 to !llvm.ptr<6>
  // CHECK-DAG:      %[[FROM:.*]] = llvm.inttoptr %[[AT_A]] : i32 to !llvm.ptr<6>
  // CHECK:          nvvm.tcgen05.mma %[[TO]], %[[FROM]], %{{.*}}, %[[FORM]], %[[ADD]] {ctaGroup = #nvvm.cta_group<cta_2>
  // CHECK-DAG:      arith.addi %{{.*}}, %[[C8192]] : index
  // CHECK-DAG:      %[[NEXT:.*]] = arith.addi %[[AT_D]], %[[C128]]
  // CHECK-DAG:      %[[NEXT_TO:.*]] = llvm.inttoptr %[[NEXT]] : i32 to !llvm.ptr<6>
  // CHECK:          nvvm.tcgen05.mma %[[NEXT_TO]], %[[FROM]], %{{.*}}, %[[FORM]], %[[ADD]] {ctaGroup = #nvvm.cta_group<cta_2>
  // CHECK-NOT:      nvvm.tcgen05.mma
  gpu.func @tensor(%a: !kvcache.tmem_tile<128x16xbf16>, %v: !v, %d: !kvcache.tmem_tile<128x256xf32>, %add: i1) kernel
      attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    %c0 = arith.constant 0 : index
    kvcache.tmem_mma %a, %v[%c0, %c0] into %d add %add {major_b = #kvcache.major<mn_major>, pair}
        : !kvcache.tmem_tile<128x16xbf16>, !v, !kvcache.tmem_tile<128x256xf32>
    gpu.return
  }

  // CHECK-LABEL:  gpu.func @commit(
  // CHECK:          %[[BOTH:.*]] = arith.constant 3 : i16
  // CHECK:          nvvm.tcgen05.commit %{{.*}}, multicast_mask = %[[BOTH]] {group = #nvvm.cta_group<cta_2>} : !llvm.ptr<3>, i16
  gpu.func @commit(%bars: !bars) kernel attributes {known_cluster_size = array<i32: 1, 2, 1>} {
    %c0 = arith.constant 0 : index
    kvcache.tmem_commit %bars[%c0] {pair} : !bars
    gpu.return
  }
}
