// RUN: kvcache-opt %s --allow-unregistered-dialect --kvcache-attach-targets=chip=sm_100a --kvcache-choose-copies --kvcache-materialize-descriptors --kvcache-lower-pipes --canonicalize --cse | FileCheck %s
// RUN: kvcache-opt %s --allow-unregistered-dialect --kvcache-attach-targets=chip=sm_100 --kvcache-choose-copies --kvcache-materialize-descriptors --kvcache-lower-pipes --canonicalize --cse | FileCheck %s --check-prefix=BASE

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>
!kt = !kvcache.tile<64x64xbf16, swizzle_128b>
!ring = !kvcache.pipe<2, !kt, producers = 1>

gpu.module @kernels {
  // Roles of a warpgroup set their registers together. Code for several chips does not.
  // CHECK-LABEL: gpu.func @registers(
  // CHECK-SAME:    nvvm.maxnreg = 168
  // CHECK:         %[[WARP:.*]] = arith.index_cast %{{.*}} : i32 to index
  // CHECK:         %[[FEW:.*]] = arith.cmpi ult, %[[WARP]], %c4
  // CHECK:         scf.if %[[FEW]] {
  // CHECK-NEXT:      nvvm.setmaxregister decrease 24
  // CHECK-NEXT:      %[[FIRST:.*]] = arith.cmpi ult, %[[WARP]], %c1
  // CHECK-NEXT:      scf.if %[[FIRST]] {
  // CHECK-NEXT:        "test.copy"
  // CHECK-NEXT:      } else {
  // CHECK-NEXT:        "test.multiply"
  // CHECK-NEXT:      }
  // CHECK-NEXT:    } else {
  // CHECK-NEXT:      nvvm.setmaxregister increase 240
  // CHECK-NEXT:      "test.softmax"
  // CHECK-NEXT:    }
  // BASE-LABEL:  gpu.func @registers(
  // BASE-NOT:      nvvm.setmaxregister
  // BASE:          "test.softmax"
  gpu.func @registers() kernel attributes {known_block_size = array<i32: 384, 1, 1>} {
    kvcache.warp_roles warps [1, 3, 8] registers [24, 24, 240] {
      "test.copy"() : () -> ()
    }, {
      "test.multiply"() : () -> ()
    }, {
      "test.softmax"() : () -> ()
    }
    gpu.return
  }

  // One warp consumes: its products free the slot when they are done.
  // CHECK-LABEL: gpu.func @commit(
  // CHECK:         nvgpu.mbarrier.init %[[BARS:.*]][%c2], %c1
  // CHECK:         nvgpu.mbarrier.init %[[BARS]][%c3], %c1
  // CHECK:         kvcache.tmem_mma
  // CHECK:         %[[ELECTED:.*]] = nvvm.elect.sync
  // CHECK-NEXT:    scf.if %[[ELECTED]] {
  // CHECK-NEXT:      kvcache.tmem_commit %[[BARS]][%{{.*}}]
  // CHECK-NEXT:    }
  // CHECK-NOT:     nvgpu.mbarrier.arrive
  // CHECK:         gpu.return
  gpu.func @commit(%k: !cache, %i: index) kernel attributes {known_block_size = array<i32: 192, 1, 1>} {
    %d = kvcache.tmem_alloc : !kvcache.tmem_tile<64x64xf32>
    %ring = kvcache.pipe : !ring
    kvcache.warp_roles warps [1, 1, 4] {
      kvcache.produce %ring[%i] : !ring {
      ^bb0(%ks: !kt):
        kvcache.async_load_tile %k[%i, %i, %i, %i] to %ks : !cache, !kt
      }
    }, {
      kvcache.consume %ring[%i] commit : !ring {
      ^bb0(%ks: !kt):
        kvcache.tmem_mma %ks[%i, %i], %ks[%i, %i] into %d : !kt, !kt, !kvcache.tmem_tile<64x64xf32>
      }
    }, {
    }
    gpu.return
  }

  // A commit publishes no zeros that the warp has stored: an arrival does.
  // CHECK-LABEL: gpu.func @commit_after_stores(
  // CHECK:         nvgpu.mbarrier.init %[[BARS:.*]][%c2], %c2
  // CHECK:         nvgpu.mbarrier.init %[[BARS]][%c3], %c2
  // CHECK:         kvcache.tmem_mma
  // CHECK:         %[[ELECTED:.*]] = nvvm.elect.sync
  // CHECK-NEXT:    scf.if %[[ELECTED]] {
  // CHECK-NEXT:      nvgpu.mbarrier.arrive %[[BARS]][%[[SLOT:.*]]]
  // CHECK-NEXT:      kvcache.tmem_commit %[[BARS]][%[[SLOT]]]
  // CHECK-NEXT:    }
  gpu.func @commit_after_stores(%k: !cache, %zeros: vector<8xbf16>, %i: index) kernel attributes {known_block_size = array<i32: 192, 1, 1>} {
    %d = kvcache.tmem_alloc : !kvcache.tmem_tile<64x64xf32>
    %ring = kvcache.pipe : !ring
    kvcache.warp_roles warps [1, 1, 4] {
      kvcache.produce %ring[%i] : !ring {
      ^bb0(%ks: !kt):
        kvcache.async_load_tile %k[%i, %i, %i, %i] to %ks : !cache, !kt
      }
    }, {
      kvcache.consume %ring[%i] commit : !ring {
      ^bb0(%ks: !kt):
        kvcache.tile_store %zeros, %ks[%i, %i] : vector<8xbf16>, !kt
        kvcache.tmem_mma %ks[%i, %i], %ks[%i, %i] into %d : !kt, !kt, !kvcache.tmem_tile<64x64xf32>
      }
    }, {
    }
    gpu.return
  }

  // All warps of two roles free a slot, by one lane each.
  // CHECK-LABEL: gpu.func @two_consumers(
  // CHECK:         nvgpu.mbarrier.init %[[BARS:.*]][%c2], %c6
  // CHECK:         "test.first"
  // CHECK:         nvgpu.mbarrier.arrive %[[BARS]]
  // CHECK:         "test.second"
  // CHECK:         nvgpu.mbarrier.arrive %[[BARS]]
  gpu.func @two_consumers(%k: !cache, %i: index) kernel attributes {known_block_size = array<i32: 224, 1, 1>} {
    %ring = kvcache.pipe : !ring
    kvcache.warp_roles warps [1, 2, 4] {
      kvcache.produce %ring[%i] : !ring {
      ^bb0(%ks: !kt):
        kvcache.async_load_tile %k[%i, %i, %i, %i] to %ks : !cache, !kt
      }
    }, {
      kvcache.consume %ring[%i] : !ring {
      ^bb0(%ks: !kt):
        "test.first"(%ks) : (!kt) -> ()
      }
    }, {
      kvcache.consume %ring[%i] : !ring {
      ^bb0(%ks: !kt):
        "test.second"(%ks) : (!kt) -> ()
      }
    }
    gpu.return
  }
}

// CHECK-LABEL: func.func @host(
// CHECK-NEXT:    "test.copy"
// CHECK-NEXT:    "test.multiply"
// CHECK-NEXT:    return
func.func @host() {
  kvcache.warp_roles warps [1, 3] {
    "test.copy"() : () -> ()
  }, {
    "test.multiply"() : () -> ()
  }
  return
}
