// RUN: sed s/CHIP/sm_100a/ %s | kvcache-opt --convert-kvcache-to-nvvm --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,GATHER4,CLUSTER --implicit-check-not=kvcache.tma_{{[a-su-z]}}
// RUN: sed s/CHIP/sm_100/ %s | kvcache-opt --convert-kvcache-to-nvvm --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,GATHER4,BLOCK --implicit-check-not=kvcache.tma_{{[a-su-z]}}
// RUN: sed s/CHIP/sm_120a/ %s | kvcache-opt --convert-kvcache-to-nvvm --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,GATHER4,BLOCK --implicit-check-not=kvcache.tma_{{[a-su-z]}}
// RUN: sed s/CHIP/sm_90a/ %s | kvcache-opt --convert-kvcache-to-nvvm --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,ROWS --implicit-check-not=kvcache.tma_{{[a-su-z]}}

!row = !kvcache.tma_tile<64x1xbf16, swizzle_128b>
!words = !kvcache.tma_tile<64x1xi64>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!chunk = !kvcache.tile<8x64xbf16, swizzle_128b>
!latent = !kvcache.tile<8x512xf8E4M3FN>
!long = !kvcache.tile<256x128xbf16, swizzle_128b>
!longer = !kvcache.tile<260x512xf8E4M3FN>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

gpu.module @kernels [#nvvm.target<chip = "CHIP">] {
  // One instruction for four rows of a chunk, or one for each.
  // CHECK-LABEL:  gpu.func @four_rows(
  // CHECK-SAME:     %[[KT:[^ ]*]]: !kvcache.tile<{{[^>]*}}>, %[[C_INDEX:[^ ]*]]: index, %[[R0_INDEX:[^ ]*]]: index, %[[R1_INDEX:[^ ]*]]: index, %[[R2_INDEX:[^ ]*]]: index, %[[R3_INDEX:[^ ]*]]: index, %[[AT:[^ ]*]]: index)
  // CHECK-DAG:      %[[MEMORY:.*]] = kvcache.tile_memory %[[KT]]
  // CHECK-DAG:      %[[BYTE:.*]] = memref.extract_aligned_pointer_as_index %[[MEMORY]]
  // CHECK-DAG:      %[[ROW_BYTE:.*]] = arith.muli %[[AT]], %c128
  // CHECK-DAG:      %[[BYTE_0:.*]] = arith.addi %[[BYTE]], %[[ROW_BYTE]]
  // CHECK-DAG:      %[[NUMBER_0:.*]] = arith.index_cast %[[BYTE_0]] : index to i64
  // CHECK-DAG:      %[[ADDRESS_0:.*]] = llvm.inttoptr %[[NUMBER_0]]
  // CHECK-DAG:      %[[C:.*]] = arith.index_castui %[[C_INDEX]] : index to i32
  // CHECK-DAG:      %[[R0:.*]] = arith.index_castui %[[R0_INDEX]] : index to i32
  // GATHER4-DAG:    %[[R1:.*]] = arith.index_castui %[[R1_INDEX]] : index to i32
  // GATHER4-DAG:    %[[R2:.*]] = arith.index_castui %[[R2_INDEX]] : index to i32
  // GATHER4-DAG:    %[[R3:.*]] = arith.index_castui %[[R3_INDEX]] : index to i32
  // GATHER4:        nvvm.cp.async.bulk.tensor.shared.cluster.global %[[ADDRESS_0]], %{{.*}}, box[%[[C]], %[[R0]], %[[R1]], %[[R2]], %[[R3]]] {isCTAOnly = true, mode = #nvvm.tma_load_mode<tile_gather4>} : !llvm.ptr<3>, !llvm.ptr
  // ROWS:           nvvm.cp.async.bulk.tensor.shared.cluster.global %[[ADDRESS_0]], %{{.*}}, box[%[[C]], %[[R0]]] {isCTAOnly = true} : !llvm.ptr<3>, !llvm.ptr
  // CHECK-DAG:      %[[OF_CHUNK:.*]] = arith.addi %[[ROW_BYTE]], %c8192
  // CHECK-DAG:      %[[BYTE_1:.*]] = arith.addi %[[BYTE]], %[[OF_CHUNK]]
  // CHECK-DAG:      %[[NUMBER_1:.*]] = arith.index_cast %[[BYTE_1]] : index to i64
  // CHECK-DAG:      %[[ADDRESS_1:.*]] = llvm.inttoptr %[[NUMBER_1]]
  // CHECK-DAG:      %[[NEXT:.*]] = arith.addi %[[C_INDEX]], %c64
  // CHECK-DAG:      %[[C_1:.*]] = arith.index_castui %[[NEXT]] : index to i32
  // GATHER4:        nvvm.cp.async.bulk.tensor.shared.cluster.global %[[ADDRESS_1]], %{{.*}}, box[%[[C_1]], %[[R0]], %[[R1]], %[[R2]], %[[R3]]] {isCTAOnly = true, mode = #nvvm.tma_load_mode<tile_gather4>}
  // ROWS:           nvvm.cp.async.bulk.tensor.shared.cluster.global %[[ADDRESS_1]], %{{.*}}, box[%[[C_1]], %[[R0]]]
  // ROWS-DAG:       %[[AT_1:.*]] = arith.addi %[[AT]], %c1
  // ROWS-DAG:       %[[ROW_BYTE_1:.*]] = arith.muli %[[AT_1]], %c128
  // ROWS-DAG:       %[[BYTE_2:.*]] = arith.addi %[[BYTE]], %[[ROW_BYTE_1]]
  // ROWS-DAG:       %[[NUMBER_2:.*]] = arith.index_cast %[[BYTE_2]] : index to i64
  // ROWS-DAG:       %[[ADDRESS_2:.*]] = llvm.inttoptr %[[NUMBER_2]]
  // ROWS-DAG:       %[[R1:.*]] = arith.index_castui %[[R1_INDEX]] : index to i32
  // ROWS:           nvvm.cp.async.bulk.tensor.shared.cluster.global %[[ADDRESS_2]], %{{.*}}, box[%[[C]], %[[R1]]]
  // ROWS:           nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, box[%[[C_1]], %[[R1]]]
  // ROWS-DAG:       arith.addi %[[AT]], %c2
  // ROWS-DAG:       %[[R2:.*]] = arith.index_castui %[[R2_INDEX]] : index to i32
  // ROWS:           nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, box[%[[C]], %[[R2]]]
  // ROWS:           nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, box[%[[C_1]], %[[R2]]]
  // ROWS-DAG:       arith.addi %[[AT]], %c3
  // ROWS-DAG:       %[[R3:.*]] = arith.index_castui %[[R3_INDEX]] : index to i32
  // ROWS:           nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, box[%[[C]], %[[R3]]]
  // ROWS:           nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, box[%[[C_1]], %[[R3]]]
  // CHECK-NOT:      nvvm.cp.async
  // CHECK:          gpu.return
  gpu.func @four_rows(%desc: !row, %barrier: !barrier, %kt: !kt, %c: index, %r0: index, %r1: index, %r2: index, %r3: index, %at: index) kernel {
    %c0 = arith.constant 0 : index
    kvcache.tma_gather4 %desc[%c, %r0, %r1, %r2, %r3], %barrier[%c0] to %kt at %at : !row, !barrier -> !kt
    gpu.return
  }

  // Chips for data centers can write to the cluster's shared memory, and do so
  // where a kernel has clusters.
  // CHECK-LABEL:  gpu.func @four_rows_in_a_cluster(
  // CLUSTER:        %[[ADDRESS:.*]] = llvm.addrspacecast %{{.*}} : !llvm.ptr<3> to !llvm.ptr<7>
  // CLUSTER:        nvvm.cp.async.bulk.tensor.shared.cluster.global %[[ADDRESS]], %{{.*}} {mode = #nvvm.tma_load_mode<tile_gather4>} : !llvm.ptr<7>, !llvm.ptr
  // BLOCK-NOT:      llvm.addrspacecast
  // BLOCK:          nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}} {isCTAOnly = true, mode = #nvvm.tma_load_mode<tile_gather4>} : !llvm.ptr<3>, !llvm.ptr
  // ROWS-NOT:       llvm.addrspacecast
  // ROWS-COUNT-4:   nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}} {isCTAOnly = true} : !llvm.ptr<3>, !llvm.ptr
  // CHECK-NOT:      nvvm.cp.async
  // CHECK:          gpu.return
  gpu.func @four_rows_in_a_cluster(%desc: !row, %barrier: !barrier, %tile: !chunk, %r: index) kernel
      attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    %c0 = arith.constant 0 : index
    kvcache.tma_gather4 %desc[%c0, %r, %r, %r, %r], %barrier[%c0] to %tile at %c0 : !row, !barrier -> !chunk
    gpu.return
  }

  // CHECK-LABEL:  gpu.func @four_rows_in_an_nvvm_cluster(
  // CLUSTER:        nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}} : !llvm.ptr<7>, !llvm.ptr
  // BLOCK:          nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}} : !llvm.ptr<3>, !llvm.ptr
  // CHECK:          gpu.return
  gpu.func @four_rows_in_an_nvvm_cluster(%desc: !row, %barrier: !barrier, %tile: !chunk, %r: index) kernel
      attributes {nvvm.cluster_dim = array<i32: 2, 1, 1>} {
    %c0 = arith.constant 0 : index
    kvcache.tma_gather4 %desc[%c0, %r, %r, %r, %r], %barrier[%c0] to %tile at %c0 : !row, !barrier -> !chunk
    gpu.return
  }

  // CHECK-LABEL:  gpu.func @policy(
  // CHECK-DAG:      %[[LAST:.*]] = arith.constant 1508705875169116160 : i64
  // GATHER4:        nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}] l2_cache_hint = %[[LAST]] {isCTAOnly = true, mode = #nvvm.tma_load_mode<tile_gather4>}
  // ROWS-COUNT-4:   nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}] l2_cache_hint = %[[LAST]] {isCTAOnly = true}
  // CHECK:          gpu.return
  gpu.func @policy(%desc: !row, %barrier: !barrier, %tile: !chunk, %r: index) kernel {
    %c0 = arith.constant 0 : index
    kvcache.tma_gather4 %desc[%c0, %r, %r, %r, %r], %barrier[%c0] to %tile at %c0
      {l2_hint = #kvcache.eviction<evict_last>} : !row, !barrier -> !chunk
    gpu.return
  }

  // Row ids are signed; four rows of 512 bytes are 2048.
  // CHECK-LABEL:  gpu.func @tile(
  // CHECK-SAME:     %[[TILE:[^ ]*]]: !kvcache.tile<{{[^>]*}}>, %[[IDS:[^ ]*]]: memref<8xi32>)
  // CHECK-DAG:      %[[ID_0:.*]] = memref.load %[[IDS]][%c0]
  // CHECK-DAG:      %[[ID_1:.*]] = memref.load %[[IDS]][%c1]
  // CHECK-DAG:      %[[ID_2:.*]] = memref.load %[[IDS]][%c2]
  // CHECK-DAG:      %[[ID_3:.*]] = memref.load %[[IDS]][%c3]
  // CHECK-DAG:      %[[MEMORY:.*]] = kvcache.tile_memory %[[TILE]]
  // CHECK-DAG:      %[[BYTE:.*]] = memref.extract_aligned_pointer_as_index %[[MEMORY]]
  // GATHER4:        nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, box[%c0_i32, %[[ID_0]], %[[ID_1]], %[[ID_2]], %[[ID_3]]] {isCTAOnly = true, mode = #nvvm.tma_load_mode<tile_gather4>}
  // ROWS:           nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, box[%c0_i32, %[[ID_0]]]
  // ROWS:           arith.addi %[[BYTE]], %c512
  // ROWS:           nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, box[%c0_i32, %[[ID_1]]]
  // ROWS:           arith.addi %[[BYTE]], %c1024
  // ROWS:           nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, box[%c0_i32, %[[ID_2]]]
  // ROWS:           arith.addi %[[BYTE]], %c1536
  // ROWS:           nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, box[%c0_i32, %[[ID_3]]]
  // CHECK-DAG:      %[[ID_4:.*]] = memref.load %[[IDS]][%c4]
  // CHECK-DAG:      %[[ID_5:.*]] = memref.load %[[IDS]][%c5]
  // CHECK-DAG:      %[[ID_6:.*]] = memref.load %[[IDS]][%c6]
  // CHECK-DAG:      %[[ID_7:.*]] = memref.load %[[IDS]][%c7]
  // CHECK-DAG:      arith.addi %[[BYTE]], %c2048
  // GATHER4:        nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, box[%c0_i32, %[[ID_4]], %[[ID_5]], %[[ID_6]], %[[ID_7]]]
  // ROWS:           nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, box[%c0_i32, %[[ID_4]]]
  // ROWS-COUNT-3:   nvvm.cp.async.bulk.tensor.shared.cluster.global
  // CHECK-NOT:      nvvm.cp.async
  // CHECK:          gpu.return
  gpu.func @tile(%desc: !words, %barrier: !barrier, %tile: !latent, %ids: memref<8xi32>) kernel {
    %c0 = arith.constant 0 : index
    kvcache.tma_gather_tile %desc rows %ids, %barrier[%c0] to %tile : !words, memref<8xi32>, !barrier -> !latent
    gpu.return
  }

  // From a column on, with ids of 64 bits.
  // CHECK-LABEL:  gpu.func @tile_at_a_column(
  // CHECK-SAME:     %[[IDS:[^ ]*]]: memref<8xi64>, %[[C_INDEX:[^ ]*]]: index)
  // CHECK-DAG:      %[[C:.*]] = arith.index_castui %[[C_INDEX]] : index to i32
  // CHECK-DAG:      %[[WIDE:.*]] = memref.load %[[IDS]][%c0]
  // CHECK-DAG:      %[[ID_INDEX:.*]] = arith.index_cast %[[WIDE]] : i64 to index
  // What 32 bits don't hold is out of bounds, and stays so.
  // CHECK-DAG:      %[[BELOW:.*]] = arith.minsi %[[ID_INDEX]], %c2147483647
  // CHECK-DAG:      %[[ABOVE:.*]] = arith.maxsi %[[BELOW]], %c-1
  // CHECK-DAG:      %[[ID:.*]] = arith.index_castui %[[ABOVE]] : index to i32
  // CHECK:          nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, box[%[[C]], %[[ID]]
  gpu.func @tile_at_a_column(%desc: !words, %barrier: !barrier, %tile: !latent, %ids: memref<8xi64>, %c: index) kernel {
    %c0 = arith.constant 0 : index
    kvcache.tma_gather_tile %desc[%c] rows %ids, %barrier[%c0] to %tile : !words, memref<8xi64>, !barrier -> !latent
    gpu.return
  }

  // More than 64 gathers are a loop over the rows.
  // CHECK-LABEL:  gpu.func @long_tile(
  // CHECK-SAME:     %[[TILE:[^ ]*]]: !kvcache.tile<{{[^>]*}}>, %[[IDS:[^ ]*]]: memref<256xi32>)
  // CHECK:          scf.for %[[I:.*]] = %c0 to %c256 step %c4 {
  // CHECK-DAG:        %[[ID_0:.*]] = memref.load %[[IDS]][%[[I]]]
  // CHECK-DAG:        %[[I_1:.*]] = arith.addi %[[I]], %c1
  // CHECK-DAG:        %[[ID_1:.*]] = memref.load %[[IDS]][%[[I_1]]]
  // CHECK-DAG:        %[[ROW_BYTE:.*]] = arith.muli %[[I]], %c128
  // GATHER4-COUNT-2:  nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}} {isCTAOnly = true, mode = #nvvm.tma_load_mode<tile_gather4>}
  // ROWS-COUNT-8:     nvvm.cp.async.bulk.tensor.shared.cluster.global
  // CHECK-NOT:        nvvm.cp.async
  // CHECK:            }
  // CHECK-NOT:      nvvm.cp.async
  // CHECK:          gpu.return
  gpu.func @long_tile(%desc: !row, %barrier: !barrier, %tile: !long, %ids: memref<256xi32>) kernel {
    %c0 = arith.constant 0 : index
    kvcache.tma_gather_tile %desc rows %ids, %barrier[%c0] to %tile : !row, memref<256xi32>, !barrier -> !long
    gpu.return
  }

  // 65 of them, with one chunk.
  // CHECK-LABEL:  gpu.func @longer_tile(
  // CHECK:          scf.for %{{.*}} = %c0 to %c260 step %c4 {
  // GATHER4-COUNT-1:  nvvm.cp.async.bulk.tensor.shared.cluster.global
  // ROWS-COUNT-4:     nvvm.cp.async.bulk.tensor.shared.cluster.global
  // CHECK-NOT:      nvvm.cp.async
  // CHECK:          gpu.return
  gpu.func @longer_tile(%desc: !words, %barrier: !barrier, %tile: !longer, %ids: memref<260xi32>) kernel {
    %c0 = arith.constant 0 : index
    kvcache.tma_gather_tile %desc rows %ids, %barrier[%c0] to %tile : !words, memref<260xi32>, !barrier -> !longer
    gpu.return
  }
}
