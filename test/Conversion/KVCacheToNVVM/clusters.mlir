// RUN: kvcache-opt %s --convert-kvcache-to-nvvm | FileCheck %s

// Barriers become those of the cluster, which the kernel then states. A load is one of another block's shared memory.

!state = !kvcache.tile<16x4xf32>
!bytes = !kvcache.tile<16x32xf8E4M3FN>

gpu.module @kernels [#nvvm.target<chip = "sm_90a">] {
  // CHECK-LABEL: gpu.func @merge(
  // CHECK-SAME:    %[[TILE:.*]]: !kvcache.tile<16x4xf32>, %[[ROW:.*]]: index, %[[RANK:.*]]: index, %{{.*}}: memref<2xf32>) kernel attributes {known_cluster_size = array<i32: 1, 4, 1>}
  // CHECK:         nvvm.cluster.arrive {aligned}
  // CHECK-NEXT:    nvvm.cluster.wait {aligned}
  // CHECK:         %[[OFFSET:.*]] = kvcache.tile_offset %[[TILE]][%[[ROW]], %c0]
  // CHECK:         %[[MEMORY:.*]] = kvcache.tile_memory %[[TILE]]
  // CHECK:         %[[OWN:.*]] = llvm.inttoptr %{{.*}} : i64 to !llvm.ptr<3>
  // CHECK:         %[[NUMBER:.*]] = arith.index_castui %[[RANK]] : index to i32
  // CHECK:         %[[OTHER:.*]] = nvvm.mapa %[[OWN]], %[[NUMBER]] : !llvm.ptr<3> -> !llvm.ptr<7>
  // CHECK:         %[[BYTES:.*]] = llvm.load %[[OTHER]] {alignment = 8 : i64} : !llvm.ptr<7> -> vector<8xi8>
  // CHECK:         vector.bitcast %[[BYTES]] : vector<8xi8> to vector<2xf32>
  // CHECK:         nvvm.cluster.arrive {aligned}
  // CHECK-NEXT:    nvvm.cluster.wait {aligned}
  gpu.func @merge(%tile: !state, %row: index, %rank: index, %out: memref<2xf32>) kernel {
    %c0 = arith.constant 0 : index
    kvcache.cluster_barrier {blocks = 4 : i64}
    %v = kvcache.cluster_load %tile[%row, %c0] rank %rank : !state -> vector<2xf32>
    vector.store %v, %out[%c0] : memref<2xf32>, vector<2xf32>
    kvcache.cluster_barrier {blocks = 4 : i64}
    gpu.return
  }

  // CHECK-LABEL: gpu.func @stated(
  // CHECK-SAME:    known_cluster_size = array<i32: 2, 1, 1>
  // CHECK:         %[[ONE:.*]] = llvm.load %{{.*}} {alignment = 1 : i64} : !llvm.ptr<7> -> vector<1xi8>
  // CHECK:         %[[FLOAT:.*]] = vector.bitcast %[[ONE]] : vector<1xi8> to vector<1xf8E4M3FN>
  // CHECK:         vector.extract %[[FLOAT]][0]
  gpu.func @stated(%tile: !bytes, %row: index, %rank: index, %out: memref<2xf8E4M3FN>) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    %c0 = arith.constant 0 : index
    kvcache.cluster_barrier {blocks = 2 : i64}
    %v = kvcache.cluster_load %tile[%row, %c0] rank %rank : !bytes -> f8E4M3FN
    memref.store %v, %out[%c0] : memref<2xf8E4M3FN>
    gpu.return
  }
}
