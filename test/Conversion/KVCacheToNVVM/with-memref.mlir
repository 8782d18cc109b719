// RUN: sed s/CHIP/sm_100a/ %s | kvcache-opt --convert-kvcache-to-nvvm --convert-kvcache-to-memref --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,GATHER4 --implicit-check-not=kvcache.tma_{{[a-su-z]}} --implicit-check-not=!kvcache.tile --implicit-check-not=!kvcache.row_indices --implicit-check-not=kvcache.wait
// RUN: sed s/CHIP/sm_100a/ %s | kvcache-opt --convert-kvcache-to-memref --convert-kvcache-to-nvvm --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,GATHER4 --implicit-check-not=kvcache.tma_{{[a-su-z]}} --implicit-check-not=!kvcache.tile --implicit-check-not=!kvcache.row_indices --implicit-check-not=kvcache.wait
// RUN: sed s/CHIP/sm_90a/ %s | kvcache-opt --convert-kvcache-to-memref --convert-kvcache-to-nvvm --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,ROWS --implicit-check-not=kvcache.tma_{{[a-su-z]}} --implicit-check-not=!kvcache.tile --implicit-check-not=!kvcache.row_indices --implicit-check-not=kvcache.wait

// Before or after the caches' own lowering, the instructions are the same.

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>
!desc = !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
!part = !kvcache.tma_tile<64x1x8xbf16, swizzle_128b>
!row = !kvcache.tma_tile<64x1xbf16, swizzle_128b>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!column = !kvcache.tile<32x64xbf16, swizzle_128b>
!chunk = !kvcache.tile<4x64xbf16, swizzle_128b>
!rows = !kvcache.row_indices<rows = 32, page_size = 16>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

gpu.module @kernels [#nvvm.target<chip = "CHIP">] {
  // CHECK-LABEL: gpu.func @load(
  // CHECK:         %[[MEMORY:.*]] = memref.get_global @kvcache_tile{{.*}} : memref<16384xi8, #gpu.address_space<workgroup>>
  // CHECK:         %[[BYTE:.*]] = memref.extract_aligned_pointer_as_index %[[MEMORY]]
  // CHECK:         nvvm.cp.async.bulk.tensor.shared.cluster.global
  // CHECK:         arith.addi %[[BYTE]], %c8192
  // CHECK:         nvvm.cp.async.bulk.tensor.shared.cluster.global
  gpu.func @load(%desc: !desc, %barrier: !barrier, %i: index) kernel {
    %kt = kvcache.alloc_tile : !kt
    kvcache.tma_load %desc[%i, %i, %i], %barrier[%i] to %kt : !desc, !barrier -> !kt
    gpu.return
  }

  // The second box of a page is 8 rows after the first.
  // CHECK-LABEL: gpu.func @load_rows(
  // CHECK:         %[[ENTRIES:.*]] = vector.load %{{.*}} : {{.*}}, vector<2xi32>
  // CHECK-DAG:     %[[ENTRY_0:.*]] = vector.extract %[[ENTRIES]][0]
  // CHECK-DAG:     %[[PAGE_0:.*]] = arith.index_castui %[[ENTRY_0]]
  // CHECK-DAG:     %[[ROW_0:.*]] = arith.muli %[[PAGE_0]],
  // CHECK-DAG:     %[[ENTRY_1:.*]] = vector.extract %[[ENTRIES]][1]
  // CHECK-DAG:     %[[PAGE_1:.*]] = arith.index_castui %[[ENTRY_1]]
  // CHECK-DAG:     %[[ROW_2:.*]] = arith.muli %[[PAGE_1]],
  // CHECK-DAG:     %[[C2_0:.*]] = arith.index_castui %[[ROW_0]] : index to i32
  // CHECK:         nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, box[%c0_i32, %c0_i32, %[[C2_0]]]
  // CHECK-DAG:     %[[ROW_1:.*]] = arith.addi %[[ROW_0]], %c8
  // CHECK-DAG:     %[[C2_1:.*]] = arith.index_castui %[[ROW_1]] : index to i32
  // CHECK:         nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, box[%c0_i32, %c0_i32, %[[C2_1]]]
  // CHECK-DAG:     %[[C2_2:.*]] = arith.index_castui %[[ROW_2]] : index to i32
  // CHECK:         nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, box[%c0_i32, %c0_i32, %[[C2_2]]]
  // CHECK-DAG:     %[[ROW_3:.*]] = arith.addi %[[ROW_2]], %c8
  // CHECK-DAG:     %[[C2_3:.*]] = arith.index_castui %[[ROW_3]] : index to i32
  // CHECK:         nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, box[%c0_i32, %c0_i32, %[[C2_3]]]
  // CHECK-NOT:     nvvm.cp.async
  // CHECK:         gpu.return
  gpu.func @load_rows(%k: !cache, %desc: !part, %barrier: !barrier, %b: index, %t: index) kernel {
    %c0 = arith.constant 0 : index
    %kt = kvcache.alloc_tile : !column
    %rows = kvcache.populate %k[%b, %t] : !cache -> !rows
    kvcache.tma_load_rows %desc[%c0, %c0] rows %rows, %barrier[%c0] to %kt : !part, !rows, !barrier -> !column
    gpu.return
  }

  // Tiles and rows that are arguments.
  // CHECK-LABEL: gpu.func @arguments(
  // CHECK-SAME:    %[[ROW_0:[^ ]*]]: index{{[^%]*}}, %[[ROW_1:[^ ]*]]: index{{[^%]*}}, %{{[^ ]*}}: memref<i32, strided<[], offset: ?>>{{[^%]*}}, %{{[^ ]*}}: index{{[^%]*}}, %[[MEMORY:[^ ]*]]: memref<4096xi8, #gpu.address_space<workgroup>>
  // CHECK-DAG:     %[[BYTE:.*]] = memref.extract_aligned_pointer_as_index %[[MEMORY]]
  // CHECK-DAG:     %[[C2:.*]] = arith.index_castui %[[ROW_0]] : index to i32
  // CHECK:         nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, box[%c0_i32, %c0_i32, %[[C2]]]
  // CHECK:         arith.index_castui %[[ROW_1]] : index to i32
  gpu.func @arguments(%rows: !rows, %kt: !column, %desc: !part, %barrier: !barrier) {
    %c0 = arith.constant 0 : index
    kvcache.tma_load_rows %desc[%c0, %c0] rows %rows, %barrier[%c0] to %kt : !part, !rows, !barrier -> !column
    gpu.return
  }

  // CHECK-LABEL: gpu.func @gather(
  // GATHER4:       nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}} {isCTAOnly = true, mode = #nvvm.tma_load_mode<tile_gather4>}
  // ROWS-COUNT-4:  nvvm.cp.async.bulk.tensor.shared.cluster.global
  // CHECK-NOT:     nvvm.cp.async
  // CHECK:         gpu.return
  gpu.func @gather(%desc: !row, %barrier: !barrier, %ids: memref<4xi32>) kernel {
    %c0 = arith.constant 0 : index
    %tile = kvcache.alloc_tile : !chunk
    kvcache.tma_gather_tile %desc rows %ids, %barrier[%c0] to %tile : !row, memref<4xi32>, !barrier -> !chunk
    gpu.return
  }

  // CHECK-LABEL: gpu.func @store(
  // CHECK:         nvvm.fence.proxy
  // CHECK-COUNT-2: nvvm.cp.async.bulk.tensor.global.shared.cta
  // CHECK:         nvvm.cp.async.bulk.commit.group
  // CHECK:         nvvm.cp.async.bulk.wait_group 0 {read}
  gpu.func @store(%desc: !desc, %i: index) kernel {
    %kt = kvcache.alloc_tile : !kt
    %tok = kvcache.tma_store %kt to %desc[%i, %i, %i] : !kt, !desc
    kvcache.wait %tok
    gpu.return
  }
}
