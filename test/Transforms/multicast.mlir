// RUN: kvcache-opt %s --kvcache-choose-copies --remarks-filter=kvcache-choose-copies -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: kvcache-opt %s --kvcache-choose-copies --kvcache-materialize-descriptors --kvcache-lower-pipes --kvcache-lower-copies --canonicalize --cse | FileCheck %s

// Copies that the blocks of a cluster do for each other.

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<2, !kt>

gpu.module @hopper [#nvvm.target<chip = "sm_90a">] {
  // A warp of each block frees a slot for all blocks, by a lane for each: 2 blocks of 4 warps.
  // REMARK: Remark="copies by tensor_boxes"
  // REMARK: Blocks=2, Remark="copies a share for the blocks of the cluster"
  // CHECK-LABEL: gpu.func @pipe(
  // CHECK:         %[[BARS:.*]] = nvgpu.mbarrier.create -> <{{.*}} num_barriers = 4>
  // CHECK:         nvgpu.mbarrier.init %[[BARS]][%c0], %c1 :
  // CHECK-NEXT:    nvgpu.mbarrier.init %[[BARS]][%c1], %c1 :
  // CHECK-NEXT:    nvgpu.mbarrier.init %[[BARS]][%c2], %c8 :
  // CHECK-NEXT:    nvgpu.mbarrier.init %[[BARS]][%c3], %c8 :
  // CHECK-NEXT:    nvvm.fence.mbarrier.init
  // CHECK:         nvvm.cluster.arrive
  // CHECK-NEXT:    nvvm.cluster.wait
  // CHECK-NOT:     gpu.barrier
  // CHECK:         nvvm.mbarrier.try_wait {{.*}} {scope = #nvvm.mem_scope<cluster>}
  // Each block expects the bytes of its whole tile.
  // CHECK:         kvcache.tma_expect %[[BARS]][%{{.*}}] bytes %c16384
  // CHECK:         kvcache.tma_load {{.*}} at %c0 {multicast}
  // CHECK:         kvcache.tma_load {{.*}} at %c48 {multicast}
  // What has been copied is there in any scope.
  // CHECK:         nvvm.mbarrier.try_wait %{{[^,]*}}, %{{[^,]*}} : !llvm.ptr<3>, i32 -> i1
  // CHECK:         nvvm.bar.warp.sync
  // CHECK:         %[[HAS_BLOCK:.*]] = arith.cmpi slt, %[[LANE:.*]], %c2
  // CHECK:         scf.if %[[HAS_BLOCK]] {
  // CHECK:           %[[EMPTY:.*]] = llvm.inttoptr
  // CHECK:           %[[THERE:.*]] = nvvm.mapa %[[EMPTY]], %{{.*}} : !llvm.ptr<3> -> !llvm.ptr<7>
  // CHECK:           nvvm.mbarrier.arrive %[[THERE]] {scope = #nvvm.mem_scope<cluster>} : !llvm.ptr<7>
  // The last arrival may follow the last use.
  // CHECK:         nvvm.cluster.arrive
  // CHECK-NEXT:    nvvm.cluster.wait
  // CHECK-NEXT:    gpu.return
  gpu.func @pipe(%k: !cache, %b: index, %n: index) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>, known_cluster_size = array<i32: 2, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %ring = kvcache.pipe : !ring
    scf.for %i = %c0 to %n step %c1 {
      %t = arith.muli %i, %c64 : index
      kvcache.produce %ring[%i] : !ring {
      ^bb0(%kt: !kt):
        kvcache.async_load_tile %k[%b, %c0, %t, %c0] to %kt {multicast} : !cache, !kt
      }
      kvcache.consume %ring[%i] : !ring {
      ^bb0(%kt: !kt):
        %x = kvcache.tile_load %kt[%c0, %c0] : !kt -> bf16
        gpu.printf "%f", %x : bf16
      }
    }
    gpu.return
  }

  // Threads of an unknown number free the slot one by one.
  // CHECK-LABEL: gpu.func @threads(
  // CHECK:         kvcache.tma_load
  // CHECK-COUNT-2: nvvm.mbarrier.arrive %{{.*}} {scope = #nvvm.mem_scope<cluster>} : !llvm.ptr<7>
  // CHECK-NOT:     nvvm.mbarrier.arrive
  gpu.func @threads(%k: !cache, %b: index) kernel attributes {known_cluster_size = array<i32: 1, 2, 1>} {
    %c0 = arith.constant 0 : index
    %ring = kvcache.pipe : !ring
    kvcache.produce %ring[%c0] : !ring {
    ^bb0(%kt: !kt):
      kvcache.async_load_tile %k[%b, %c0, %c0, %c0] to %kt {multicast} : !cache, !kt
    }
    kvcache.consume %ring[%c0] : !ring {
    ^bb0(%kt: !kt):
    }
    gpu.return
  }

  // All blocks synchronize before they copy to tiles that threads of any block may still read.
  // CHECK-LABEL: gpu.func @tile(
  // CHECK:         nvvm.cluster.arrive
  // CHECK-NEXT:    nvvm.cluster.wait
  // CHECK:         scf.for
  // CHECK-NEXT:      nvvm.cluster.arrive
  // CHECK-NEXT:      nvvm.cluster.wait
  // CHECK:           kvcache.tma_load {{.*}} {multicast}
  // CHECK:         nvvm.cluster.arrive
  // CHECK-NEXT:    nvvm.cluster.wait
  // CHECK-NEXT:    gpu.return
  gpu.func @tile(%k: !cache, %b: index, %n: index) kernel attributes {known_cluster_size = array<i32: 2, 2, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %kt = kvcache.alloc_tile : !kt
    scf.for %i = %c0 to %n step %c1 {
      %tok = kvcache.async_load_tile %k[%i, %c0, %c0, %c0] to %kt {multicast} : !cache, !kt
      kvcache.wait %tok
      %x = kvcache.tile_load %kt[%c0, %c0] : !kt -> bf16
      gpu.printf "%f", %x : bf16
    }
    gpu.return
  }

  // REMARK: Remark="copies by tensor_boxes"
  // REMARK: Reason="the kernel does not state clusters of several blocks ('known_cluster_size')", Remark="copies the whole tile in each block of the cluster"
  // CHECK-LABEL: gpu.func @without_clusters(
  // CHECK-NOT:     cluster
  // CHECK:         kvcache.tma_load
  // CHECK-NOT:     multicast
  // CHECK:         gpu.return
  gpu.func @without_clusters(%k: !cache, %b: index) kernel {
    %c0 = arith.constant 0 : index
    %kt = kvcache.alloc_tile : !kt
    %tok = kvcache.async_load_tile %k[%b, %c0, %c0, %c0] to %kt {copy = #kvcache.copy<tensor_boxes>, multicast} : !cache, !kt
    kvcache.wait %tok
    gpu.return
  }
}

// Another block need not see what this one has stored before the copy.
// REMARK: Remark="copies by tensor_boxes"
// REMARK: Reason="the kernel may store to the cache", Remark="copies the whole tile in each block of the cluster"
// CHECK-LABEL: gpu.func @stores(
// CHECK-NOT:     nvvm.cluster
// CHECK:         nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.global>}
// CHECK:         kvcache.tma_load
// CHECK-NOT:     multicast
// CHECK:         gpu.return
gpu.module @stores [#nvvm.target<chip = "sm_90a">] {
  gpu.func @stores(%k: !cache, %b: index, %x: bf16) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    %c0 = arith.constant 0 : index
    %kt = kvcache.alloc_tile : !kt
    kvcache.store %x, %k[%b, %c0, %c0, %c0] : bf16, !cache
    gpu.barrier
    %tok = kvcache.async_load_tile %k[%b, %c0, %c0, %c0] to %kt {multicast} : !cache, !kt
    kvcache.wait %tok
    gpu.return
  }
}

// REMARK: Remark="copies by cp_async"
// REMARK: Reason="only tensor_boxes can do it, not cp_async", Remark="copies the whole tile in each block of the cluster"
// CHECK-LABEL: gpu.module @ampere
// CHECK-NOT:     multicast
gpu.module @ampere [#nvvm.target<chip = "sm_80">] {
  gpu.func @tile(%k: !cache, %b: index) kernel {
    %c0 = arith.constant 0 : index
    %kt = kvcache.alloc_tile : !kt
    %tok = kvcache.async_load_tile %k[%b, %c0, %c0, %c0] to %kt {multicast} : !cache, !kt
    kvcache.wait %tok
    gpu.return
  }
}

// REMARK: Reason="only tensor_boxes can do it, not plain", Remark="copies the whole tile in each block of the cluster"
// CHECK-LABEL: func.func @host(
// CHECK-NOT:     multicast
func.func @host(%k: !cache, %b: index) {
  %c0 = arith.constant 0 : index
  %kt = kvcache.alloc_tile : !kt
  %tok = kvcache.async_load_tile %k[%b, %c0, %c0, %c0] to %kt {multicast} : !cache, !kt
  kvcache.wait %tok
  return
}
