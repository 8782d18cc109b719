// RUN: kvcache-opt %s --kvcache-attach-targets=chip=sm_80 --kvcache-choose-copies --kvcache-materialize-descriptors --kvcache-lower-copies --canonicalize --cse | FileCheck %s

// Threads whose number is known share a tile so that the addresses of each are constants apart.

#kv = #kvcache.params<num_heads = 1, head_size = 576>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>
!ids = memref<64xi32>

gpu.module @kernels {
  // Of a row eight threads take a unit of each chunk, in 16 rows at once. All four ids are read first. Swizzles repeat
  // after eight rows: only the first row's place is computed.
  // CHECK-LABEL: gpu.func @chunks(
  // CHECK-SAME:    %[[IDS:[a-z0-9]+]]: memref<64xi32>
  // CHECK-DAG:     %[[ROW0:.*]] = arith.divui %{{.*}}, %c8
  // CHECK-DAG:     %[[ROW1:.*]] = arith.addi %[[ROW0]], %c16
  // CHECK-DAG:     %[[ROW3:.*]] = arith.addi %[[ROW0]], %c48
  // CHECK-DAG:     memref.load %[[IDS]][%[[ROW0]]]
  // CHECK-DAG:     memref.load %[[IDS]][%[[ROW1]]]
  // CHECK-DAG:     memref.load %[[IDS]][%[[ROW3]]]
  // CHECK-NOT:     memref.load
  // CHECK:         kvcache.tile_offset %{{.*}}[%[[ROW0]], %{{.*}}]
  // CHECK:         %[[TO:.*]] = llvm.inttoptr %{{.*}} : i64 to !llvm.ptr<3>
  // CHECK:         %[[FROM:.*]] = llvm.inttoptr %{{.*}} : i64 to !llvm.ptr<1>
  // CHECK:         nvvm.cp.async.shared.global %[[TO]], %[[FROM]], 16, cache =  cg, %[[BYTES:.*]] :
  // CHECK:         %[[NEXT_FROM:.*]] = llvm.getelementptr %[[FROM]][128]
  // CHECK:         %[[NEXT_TO:.*]] = llvm.getelementptr %[[TO]][8192]
  // CHECK:         nvvm.cp.async.shared.global %[[NEXT_TO]], %[[NEXT_FROM]], 16, cache =  cg, %[[BYTES]] :
  // CHECK-COUNT-7: nvvm.cp.async.shared.global
  // CHECK:         llvm.getelementptr %[[TO]][2048]
  // CHECK-COUNT-27: nvvm.cp.async.shared.global
  // CHECK-NOT:     nvvm.cp.async.shared.global
  // CHECK-NOT:     kvcache.tile_offset
  // CHECK:         gpu.return
  gpu.func @chunks(%k: !cache, %ids: !ids) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %kt = kvcache.alloc_tile : !kvcache.tile<64x576xbf16, swizzle_128b>
    %tok = kvcache.async_gather_tile %k[%c0, %c0] rows %ids to %kt : !cache, !ids, !kvcache.tile<64x576xbf16, swizzle_128b>
    kvcache.wait %tok
    gpu.return
  }

  // A thread takes neighbouring rows where their ids can be read together.
  // CHECK-LABEL: gpu.func @aligned_ids(
  // CHECK:         %[[ROW:.*]] = arith.muli %{{.*}}, %c4
  // CHECK:         vector.load %{{.*}}[%[[ROW]]] {alignment = 16 : i64} : memref<64xi32>, vector<4xi32>
  // CHECK-NOT:     memref.load
  // CHECK-NOT:     vector.load
  // CHECK-COUNT-4: kvcache.tile_offset
  // CHECK-NOT:     kvcache.tile_offset
  // CHECK:         gpu.return
  gpu.func @aligned_ids(%k: !cache, %ids: !ids) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %kt = kvcache.alloc_tile : !kvcache.tile<64x576xbf16, swizzle_128b>
    %aligned = memref.assume_alignment %ids, 16 : !ids
    %tok = kvcache.async_gather_tile %k[%c0, %c0] rows %aligned to %kt : !cache, !ids, !kvcache.tile<64x576xbf16, swizzle_128b>
    kvcache.wait %tok
    gpu.return
  }

  // 48 threads have 12 rows at once: four are left.
  // CHECK-LABEL: gpu.func @rest(
  // CHECK-DAG:     %[[ROW0:.*]] = arith.divui %{{.*}}, %c4
  // CHECK-COUNT-5: nvvm.cp.async.shared.global
  // CHECK:         %[[IS_LEFT:.*]] = arith.cmpi ult, %[[ROW0]], %c4
  // CHECK:         scf.if %[[IS_LEFT]] {
  // CHECK:           arith.addi %[[ROW0]], %c60
  // CHECK:           nvvm.cp.async.shared.global
  // CHECK-NOT:     nvvm.cp.async.shared.global
  // CHECK:         gpu.return
  gpu.func @rest(%k: !cache, %b: index, %n: index) kernel attributes {known_block_size = array<i32: 48, 1, 1>} {
    %c0 = arith.constant 0 : index
    %kt = kvcache.alloc_tile : !kvcache.tile<64x32xbf16, swizzle_64b>
    %tok = kvcache.async_load_tile %k[%b, %c0, %c0, %c0] valid %n to %kt : !cache, !kvcache.tile<64x32xbf16, swizzle_64b>
    kvcache.wait %tok
    gpu.return
  }

  // 32 threads: nine copies for each of 16 rows are too many to write out.
  // CHECK-LABEL:  gpu.func @loop(
  // CHECK:          scf.for %{{.*}} = %c0 to %c64 step %c16 {
  // CHECK-COUNT-36:   nvvm.cp.async.shared.global
  // CHECK-NOT:        nvvm.cp.async.shared.global
  // CHECK:          gpu.return
  gpu.func @loop(%k: !cache, %ids: !ids) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %kt = kvcache.alloc_tile : !kvcache.tile<64x576xbf16, swizzle_128b>
    %tok = kvcache.async_gather_tile %k[%c0, %c0] rows %ids to %kt : !cache, !ids, !kvcache.tile<64x576xbf16, swizzle_128b>
    kvcache.wait %tok
    gpu.return
  }

  // 33 threads share nothing evenly: each goes from unit to unit.
  // CHECK-LABEL: gpu.func @odd(
  // CHECK:         scf.for %{{.*}} = %{{.*}} to %c4608 step %c33 {
  // CHECK:           arith.remui %{{.*}}, %c72
  // CHECK:           nvvm.cp.async.shared.global
  // CHECK-NOT:     nvvm.cp.async.shared.global
  // CHECK:         gpu.return
  gpu.func @odd(%k: !cache, %ids: !ids) kernel attributes {known_block_size = array<i32: 33, 1, 1>} {
    %c0 = arith.constant 0 : index
    %kt = kvcache.alloc_tile : !kvcache.tile<64x576xbf16, swizzle_128b>
    %tok = kvcache.async_gather_tile %k[%c0, %c0] rows %ids to %kt : !cache, !ids, !kvcache.tile<64x576xbf16, swizzle_128b>
    kvcache.wait %tok
    gpu.return
  }
}
