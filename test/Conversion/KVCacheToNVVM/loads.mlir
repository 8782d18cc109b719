// RUN: sed s/CHIP/sm_90a/ %s | kvcache-opt --convert-kvcache-to-nvvm --canonicalize --cse | FileCheck %s --implicit-check-not=kvcache.tma_{{[a-su-z]}}
// RUN: sed s/CHIP/sm_100a/ %s | kvcache-opt --convert-kvcache-to-nvvm --canonicalize --cse | FileCheck %s --implicit-check-not=kvcache.tma_{{[a-su-z]}}
// RUN: sed s/CHIP/sm_120/ %s | kvcache-opt --convert-kvcache-to-nvvm --canonicalize --cse | FileCheck %s --implicit-check-not=kvcache.tma_{{[a-su-z]}}

!desc = !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
!part = !kvcache.tma_tile<64x1x16xbf16, swizzle_128b>
!paged = !kvcache.tma_tile<128x1x64x1xbf16>
!ragged = !kvcache.tma_tile<64x32x1x1xbf16, swizzle_128b>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!plain = !kvcache.tile<64x128xbf16>
!one_page = !kvcache.row_indices<rows = 64, page_size = 64>
!four_pages = !kvcache.row_indices<rows = 64, page_size = 16>
!pair = !kvcache.row_indices<rows = 128, page_size = 32>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 4>

gpu.module @kernels [#nvvm.target<chip = "CHIP">] {
  // CHECK-LABEL: gpu.func @prefetch(
  // CHECK-SAME:    %[[ARGUMENT:.*]]: !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>)
  // CHECK:         %[[DESC:.*]] = builtin.unrealized_conversion_cast %[[ARGUMENT]] : !kvcache.tma_tile<64x1x64xbf16, swizzle_128b> to !llvm.ptr
  // CHECK-NEXT:    nvvm.prefetch tensormap in_param_space, %[[DESC]] : !llvm.ptr
  gpu.func @prefetch(%desc: !desc) kernel {
    kvcache.tma_prefetch %desc : !desc
    gpu.return
  }

  // CHECK-LABEL: gpu.func @expect(
  // CHECK-SAME:    %[[BARRIERS:.*]]: !nvgpu.mbarrier.group<{{.*}}>, %[[I:.*]]: index, %[[BYTES_INDEX:.*]]: index)
  // CHECK:         %[[ADDRESS:.*]] = nvgpu.mbarrier.get %[[BARRIERS]][%[[I]]]
  // CHECK:         %[[BARRIER:.*]] = llvm.inttoptr %[[ADDRESS]] : i64 to !llvm.ptr<3>
  // CHECK:         %[[BYTES:.*]] = arith.index_castui %[[BYTES_INDEX]] : index to i32
  // CHECK:         nvvm.mbarrier.arrive.expect_tx %[[BARRIER]], %[[BYTES]] : !llvm.ptr<3>, i32
  gpu.func @expect(%barrier: !barrier, %i: index, %bytes: index) kernel {
    kvcache.tma_expect %barrier[%i] bytes %bytes : !barrier
    gpu.return
  }

  // Copy 0 is the one of block 0 of the cluster, copy 1 of block 1: both go to three blocks.
  // CHECK-LABEL: gpu.func @multicast(
  // CHECK-DAG:     %[[MASK:.*]] = arith.constant 7 : i16
  // CHECK-DAG:     %[[OWN:.*]] = nvvm.read.ptx.sreg.cluster.ctarank : i32
  // CHECK-DAG:     %[[RANK:.*]] = arith.index_cast %[[OWN]] : i32 to index
  // CHECK:         %[[IS_FIRST:.*]] = arith.cmpi eq, %[[RANK]], %c0
  // CHECK-NEXT:    scf.if %[[IS_FIRST]] {
  // CHECK:           %[[TO:.*]] = llvm.addrspacecast %{{.*}} : !llvm.ptr<3> to !llvm.ptr<7>
  // CHECK:           nvvm.cp.async.bulk.tensor.shared.cluster.global %[[TO]], {{.*}} multicast_mask = %[[MASK]] : !llvm.ptr<7>, !llvm.ptr
  // CHECK:         %[[IS_SECOND:.*]] = arith.cmpi eq, %[[RANK]], %c1
  // CHECK-NEXT:    scf.if %[[IS_SECOND]] {
  // CHECK:           nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}} multicast_mask = %[[MASK]]
  gpu.func @multicast(%desc: !desc, %barrier: !barrier, %kt: !kt, %i: index) kernel
      attributes {known_cluster_size = array<i32: 3, 1, 1>} {
    kvcache.tma_load %desc[%i, %i, %i], %barrier[%i] to %kt {multicast} : !desc, !barrier -> !kt
    gpu.return
  }

  // The copies of the box at row 16 r are numbers 2 r and 2 r + 1.
  // CHECK-LABEL: gpu.func @multicast_of_boxes(
  // CHECK-SAME:    %[[R:[a-z0-9]*]]: index) kernel
  // CHECK:         %[[BOX:.*]] = arith.divui %[[R]], %c16
  // CHECK:         %[[NUMBER:.*]] = arith.muli %[[BOX]], %c2
  // CHECK:         %[[ISSUER:.*]] = arith.remui %[[NUMBER]], %c4
  // CHECK:         arith.cmpi eq, %{{.*}}, %[[ISSUER]]
  // CHECK:         %[[NEXT:.*]] = arith.addi %[[NUMBER]], %c1
  // CHECK:         arith.remui %[[NEXT]], %c4
  gpu.func @multicast_of_boxes(%desc: !part, %barrier: !barrier, %kt: !kt, %i: index, %r: index) kernel
      attributes {known_cluster_size = array<i32: 2, 2, 1>} {
    kvcache.tma_load %desc[%i, %i, %i], %barrier[%i] to %kt at %r {multicast} : !part, !barrier -> !kt
    gpu.return
  }

  // A copy for each chunk, 64 columns and 64 rows of 128 bytes apart.
  // CHECK-LABEL: gpu.func @chunks(
  // CHECK-SAME:    %[[ARGUMENT:[^:]*]]: !kvcache.tma_tile<{{[^>]*}}>, %[[BARRIERS:[^:]*]]: !nvgpu.{{[^%]*}}%[[KT:[^:]*]]: !kvcache.tile<{{[^>]*}}>, %[[I:[^:]*]]: index, %[[D:[^:]*]]: index, %[[H:[^:]*]]: index, %[[ROW:[^:]*]]: index)
  // CHECK-DAG:     %[[DESC:.*]] = builtin.unrealized_conversion_cast %[[ARGUMENT]]
  // CHECK-DAG:     %[[BARRIER_ADDRESS:.*]] = nvgpu.mbarrier.get %[[BARRIERS]][%[[I]]]
  // CHECK-DAG:     %[[BARRIER:.*]] = llvm.inttoptr %[[BARRIER_ADDRESS]] : i64 to !llvm.ptr<3>
  // CHECK-DAG:     %[[MEMORY:.*]] = kvcache.tile_memory %[[KT]]
  // CHECK-DAG:     %[[BYTE_0:.*]] = memref.extract_aligned_pointer_as_index %[[MEMORY]]
  // CHECK-DAG:     %[[NUMBER_0:.*]] = arith.index_cast %[[BYTE_0]] : index to i64
  // CHECK-DAG:     %[[ADDRESS_0:.*]] = llvm.inttoptr %[[NUMBER_0]] : i64 to !llvm.ptr<3>
  // CHECK-DAG:     %[[C0:.*]] = arith.index_castui %[[D]] : index to i32
  // CHECK-DAG:     %[[C1:.*]] = arith.index_castui %[[H]] : index to i32
  // CHECK-DAG:     %[[C2:.*]] = arith.index_castui %[[ROW]] : index to i32
  // CHECK:         nvvm.cp.async.bulk.tensor.shared.cluster.global %[[ADDRESS_0]], %[[DESC]], %[[BARRIER]], box[%[[C0]], %[[C1]], %[[C2]]] {isCTAOnly = true} : !llvm.ptr<3>, !llvm.ptr
  // CHECK-DAG:     %[[NEXT:.*]] = arith.addi %[[D]], %c64
  // CHECK-DAG:     %[[C0_1:.*]] = arith.index_castui %[[NEXT]] : index to i32
  // CHECK-DAG:     %[[BYTE_1:.*]] = arith.addi %[[BYTE_0]], %c8192
  // CHECK-DAG:     %[[NUMBER_1:.*]] = arith.index_cast %[[BYTE_1]] : index to i64
  // CHECK-DAG:     %[[ADDRESS_1:.*]] = llvm.inttoptr %[[NUMBER_1]] : i64 to !llvm.ptr<3>
  // CHECK:         nvvm.cp.async.bulk.tensor.shared.cluster.global %[[ADDRESS_1]], %[[DESC]], %[[BARRIER]], box[%[[C0_1]], %[[C1]], %[[C2]]] {isCTAOnly = true}
  // CHECK-NOT:     nvvm.cp.async
  // CHECK:         gpu.return
  gpu.func @chunks(%desc: !desc, %barrier: !barrier, %kt: !kt, %i: index, %d: index, %h: index, %row: index) kernel {
    kvcache.tma_load %desc[%d, %h, %row], %barrier[%i] to %kt : !desc, !barrier -> !kt
    gpu.return
  }

  // Without a swizzle the tile is one chunk.
  // CHECK-LABEL: gpu.func @one_chunk(
  // CHECK-SAME:    %[[ROW:[^ ]*]]: index, %[[PAGE:[^ ]*]]: index)
  // CHECK-DAG:     %[[C2:.*]] = arith.index_castui %[[ROW]] : index to i32
  // CHECK-DAG:     %[[C3:.*]] = arith.index_castui %[[PAGE]] : index to i32
  // CHECK:         nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, box[%c0_i32, %c0_i32, %[[C2]], %[[C3]]] {isCTAOnly = true}
  // CHECK-NOT:     nvvm.cp.async
  // CHECK:         gpu.return
  gpu.func @one_chunk(%desc: !paged, %barrier: !barrier, %tile: !plain, %row: index, %page: index) kernel {
    %c0 = arith.constant 0 : index
    kvcache.tma_load %desc[%c0, %c0, %row, %page], %barrier[%c0] to %tile : !paged, !barrier -> !plain
    gpu.return
  }

  // A row of a chunk has 128 bytes.
  // CHECK-LABEL: gpu.func @at_a_row(
  // CHECK-SAME:    %[[KT:[^ ]*]]: !kvcache.tile<{{[^>]*}}>, %[[AT:.*]]: index)
  // CHECK-DAG:     %[[MEMORY:.*]] = kvcache.tile_memory %[[KT]]
  // CHECK-DAG:     %[[BYTE:.*]] = memref.extract_aligned_pointer_as_index %[[MEMORY]]
  // CHECK-DAG:     %[[ROW_BYTE:.*]] = arith.muli %[[AT]], %c128
  // CHECK-DAG:     %[[BYTE_0:.*]] = arith.addi %[[BYTE]], %[[ROW_BYTE]]
  // CHECK-DAG:     %[[NUMBER_0:.*]] = arith.index_cast %[[BYTE_0]]
  // CHECK-DAG:     %[[ADDRESS_0:.*]] = llvm.inttoptr %[[NUMBER_0]]
  // CHECK:         nvvm.cp.async.bulk.tensor.shared.cluster.global %[[ADDRESS_0]], %{{.*}}, box[%c0_i32, %c0_i32, %c0_i32]
  // CHECK-DAG:     %[[OF_CHUNK:.*]] = arith.addi %[[ROW_BYTE]], %c8192
  // CHECK-DAG:     %[[BYTE_1:.*]] = arith.addi %[[BYTE]], %[[OF_CHUNK]]
  // CHECK-DAG:     %[[NUMBER_1:.*]] = arith.index_cast %[[BYTE_1]]
  // CHECK-DAG:     %[[ADDRESS_1:.*]] = llvm.inttoptr %[[NUMBER_1]]
  // CHECK:         nvvm.cp.async.bulk.tensor.shared.cluster.global %[[ADDRESS_1]], %{{.*}}, box[%c64_i32, %c0_i32, %c0_i32]
  gpu.func @at_a_row(%desc: !part, %barrier: !barrier, %kt: !kt, %at: index) kernel {
    %c0 = arith.constant 0 : index
    kvcache.tma_load %desc[%c0, %c0, %c0], %barrier[%c0] to %kt at %at : !part, !barrier -> !kt
    gpu.return
  }

  // 0x1000000000000000, 0x12F0000000000000 and 0x14F0000000000000.
  // CHECK-LABEL: gpu.func @policies(
  // CHECK-DAG:     %[[NORMAL:.*]] = arith.constant 1152921504606846976 : i64
  // CHECK-DAG:     %[[FIRST:.*]] = arith.constant 1364590687093260288 : i64
  // CHECK-DAG:     %[[LAST:.*]] = arith.constant 1508705875169116160 : i64
  // CHECK:         nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, box[%{{.*}}] l2_cache_hint = %[[NORMAL]] {isCTAOnly = true}
  // CHECK:         nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, box[%{{.*}}] l2_cache_hint = %[[FIRST]] {isCTAOnly = true}
  // CHECK:         nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, box[%{{.*}}] l2_cache_hint = %[[LAST]] {isCTAOnly = true}
  gpu.func @policies(%desc: !paged, %barrier: !barrier, %tile: !plain) kernel {
    %c0 = arith.constant 0 : index
    kvcache.tma_load %desc[%c0, %c0, %c0, %c0], %barrier[%c0] to %tile
      {l2_hint = #kvcache.eviction<evict_normal>} : !paged, !barrier -> !plain
    kvcache.tma_load %desc[%c0, %c0, %c0, %c0], %barrier[%c0] to %tile
      {l2_hint = #kvcache.eviction<evict_first>} : !paged, !barrier -> !plain
    kvcache.tma_load %desc[%c0, %c0, %c0, %c0], %barrier[%c0] to %tile
      {l2_hint = #kvcache.eviction<evict_last>} : !paged, !barrier -> !plain
    gpu.return
  }

  // One box of all rows, in each of two chunks.
  // CHECK-LABEL: gpu.func @rows_of_a_page(
  // CHECK-SAME:    %[[ROWS:[^ ]*]]: !kvcache.row_indices<rows = 64, page_size = 64>,
  // CHECK-DAG:     %[[ROW_INDEX:.*]] = kvcache.get_row %[[ROWS]][%c0]
  // CHECK-DAG:     %[[ROW:.*]] = arith.index_castui %[[ROW_INDEX]] : index to i32
  // CHECK:         nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, box[%c0_i32, %[[H:.*]], %[[ROW]]]
  // CHECK:         nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, box[%c64_i32, %[[H]], %[[ROW]]]
  // CHECK-NOT:     nvvm.cp.async
  // CHECK:         gpu.return
  gpu.func @rows_of_a_page(%desc: !desc, %rows: !one_page, %barrier: !barrier, %kt: !kt, %h: index) kernel {
    %c0 = arith.constant 0 : index
    kvcache.tma_load_rows %desc[%c0, %h] rows %rows, %barrier[%c0] to %kt : !desc, !one_page, !barrier -> !kt
    gpu.return
  }

  // Boxes of 16 rows, 2048 bytes apart, each at the row of its page.
  // CHECK-LABEL: gpu.func @rows_of_pages(
  // CHECK-SAME:    %[[ROWS:[^ ]*]]: !kvcache.row_indices<rows = 64, page_size = 16>, {{.*}}, %[[KT:[^ ]*]]: !kvcache.tile<{{[^>]*}}>, %[[H_INDEX:[^ ]*]]: index)
  // CHECK-DAG:     %[[H:.*]] = arith.index_castui %[[H_INDEX]] : index to i32
  // CHECK-DAG:     %[[MEMORY:.*]] = kvcache.tile_memory %[[KT]]
  // CHECK-DAG:     %[[BYTE:.*]] = memref.extract_aligned_pointer_as_index %[[MEMORY]]
  // CHECK-DAG:     %[[ROW_0:.*]] = kvcache.get_row %[[ROWS]][%c0]
  // CHECK-DAG:     %[[CACHE_ROW_0:.*]] = arith.index_castui %[[ROW_0]] : index to i32
  // CHECK:         nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, box[%c0_i32, %[[H]], %[[CACHE_ROW_0]]]
  // CHECK-DAG:     arith.addi %[[BYTE]], %c8192
  // CHECK:         nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, box[%c64_i32, %[[H]], %[[CACHE_ROW_0]]]
  // CHECK-DAG:     %[[ROW_1:.*]] = kvcache.get_row %[[ROWS]][%c16]
  // CHECK-DAG:     %[[CACHE_ROW_1:.*]] = arith.index_castui %[[ROW_1]] : index to i32
  // CHECK-DAG:     %[[BYTE_1:.*]] = arith.addi %[[BYTE]], %c2048
  // CHECK-DAG:     %[[NUMBER_1:.*]] = arith.index_cast %[[BYTE_1]] : index to i64
  // CHECK-DAG:     %[[ADDRESS_1:.*]] = llvm.inttoptr %[[NUMBER_1]]
  // CHECK:         nvvm.cp.async.bulk.tensor.shared.cluster.global %[[ADDRESS_1]], %{{.*}}, box[%c0_i32, %[[H]], %[[CACHE_ROW_1]]]
  // CHECK-DAG:     arith.addi %[[BYTE]], %c10240
  // CHECK:         nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, box[%c64_i32, %[[H]], %[[CACHE_ROW_1]]]
  // CHECK:         kvcache.get_row %[[ROWS]][%c32]
  // CHECK-COUNT-2: nvvm.cp.async.bulk.tensor.shared.cluster.global
  // CHECK:         kvcache.get_row %[[ROWS]][%c48]
  // CHECK-COUNT-2: nvvm.cp.async.bulk.tensor.shared.cluster.global
  // CHECK-NOT:     nvvm.cp.async
  // CHECK:         gpu.return
  gpu.func @rows_of_pages(%desc: !part, %rows: !four_pages, %barrier: !barrier, %kt: !kt, %h: index) kernel {
    %c0 = arith.constant 0 : index
    kvcache.tma_load_rows %desc[%c0, %h] rows %rows, %barrier[%c0] to %kt : !part, !four_pages, !barrier -> !kt
    gpu.return
  }

  // Boxes of 32 rows, v = clamp(valid - 32 p, 0, 32): coordinates
  // (d, 32 - v, h, row + v).
  // CHECK-LABEL: gpu.func @valid_rows(
  // CHECK-SAME:    %[[ROWS:[^ ]*]]: !kvcache.row_indices<rows = 64, page_size = 64>, {{.*}}, %[[H_INDEX:[^ ]*]]: index, %[[N:[^ ]*]]: index)
  // CHECK-DAG:     %[[H:.*]] = arith.index_castui %[[H_INDEX]] : index to i32
  // CHECK-DAG:     %[[ROW_0:.*]] = kvcache.get_row %[[ROWS]][%c0]
  // CHECK-DAG:     %[[MOST_0:.*]] = arith.maxsi %[[N]], %c0
  // CHECK-DAG:     %[[VALID_0:.*]] = arith.minsi %[[MOST_0]], %c32
  // CHECK-DAG:     %[[MISSING_0:.*]] = arith.subi %c32, %[[VALID_0]]
  // CHECK-DAG:     %[[END_0:.*]] = arith.addi %[[ROW_0]], %[[VALID_0]]
  // CHECK-DAG:     %[[C1_0:.*]] = arith.index_castui %[[MISSING_0]] : index to i32
  // CHECK-DAG:     %[[C3_0:.*]] = arith.index_castui %[[END_0]] : index to i32
  // CHECK:         nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, box[%c0_i32, %[[C1_0]], %[[H]], %[[C3_0]]]
  // CHECK:         nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, box[%c64_i32, %[[C1_0]], %[[H]], %[[C3_0]]]
  // CHECK-DAG:     %[[ROW_1:.*]] = kvcache.get_row %[[ROWS]][%c32]
  // CHECK-DAG:     %[[REST:.*]] = arith.{{subi %.*, %c32|addi %.*, %c-32}}
  // CHECK-DAG:     %[[MOST_1:.*]] = arith.maxsi %[[REST]], %c0
  // CHECK-DAG:     %[[VALID_1:.*]] = arith.minsi %[[MOST_1]], %c32
  // CHECK-DAG:     %[[MISSING_1:.*]] = arith.subi %c32, %[[VALID_1]]
  // CHECK-DAG:     %[[END_1:.*]] = arith.addi %[[ROW_1]], %[[VALID_1]]
  // CHECK-DAG:     %[[C1_1:.*]] = arith.index_castui %[[MISSING_1]] : index to i32
  // CHECK-DAG:     %[[C3_1:.*]] = arith.index_castui %[[END_1]] : index to i32
  // CHECK:         nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, box[%c0_i32, %[[C1_1]], %[[H]], %[[C3_1]]]
  // CHECK:         nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, box[%c64_i32, %[[C1_1]], %[[H]], %[[C3_1]]]
  // CHECK-NOT:     nvvm.cp.async
  // CHECK:         gpu.return
  gpu.func @valid_rows(%desc: !ragged, %rows: !one_page, %barrier: !barrier, %kt: !kt, %h: index, %n: index) kernel {
    %c0 = arith.constant 0 : index
    kvcache.tma_load_rows %desc[%c0, %h] rows %rows valid %n, %barrier[%c0] to %kt : !ragged, !one_page, !barrier -> !kt
    gpu.return
  }

  // The peer starts 64 rows later, and counts its valid rows from there.
  // CHECK-LABEL: gpu.func @valid_rows_of_a_pair(
  // CHECK-SAME:    %[[ROWS:[^ ]*]]: !kvcache.row_indices<rows = 128, page_size = 32>, {{.*}}, %[[N:[^ ]*]]: index, %[[LEADS:[^ ]*]]: i1)
  // CHECK-DAG:     %[[OF_LEADER_0:.*]] = kvcache.get_row %[[ROWS]][%c0]
  // CHECK-DAG:     %[[OF_PEER_0:.*]] = kvcache.get_row %[[ROWS]][%c64]
  // CHECK-DAG:     %[[ROW_0:.*]] = arith.select %[[LEADS]], %[[OF_LEADER_0]], %[[OF_PEER_0]]
  // CHECK-DAG:     %[[BEFORE_0:.*]] = arith.select %[[LEADS]], %c0, %c64
  // CHECK-DAG:     %[[REST_0:.*]] = arith.subi %[[N]], %[[BEFORE_0]]
  // CHECK-DAG:     %[[MOST_0:.*]] = arith.maxsi %[[REST_0]], %c0
  // CHECK-DAG:     %[[VALID_0:.*]] = arith.minsi %[[MOST_0]], %c32
  // CHECK-DAG:     arith.addi %[[ROW_0]], %[[VALID_0]]
  // CHECK-COUNT-2: nvvm.cp.async.bulk.tensor.shared.cluster.global
  // CHECK-DAG:     %[[OF_LEADER_1:.*]] = kvcache.get_row %[[ROWS]][%c32]
  // CHECK-DAG:     %[[OF_PEER_1:.*]] = kvcache.get_row %[[ROWS]][%c96]
  // CHECK-DAG:     %[[ROW_1:.*]] = arith.select %[[LEADS]], %[[OF_LEADER_1]], %[[OF_PEER_1]]
  // CHECK-DAG:     %[[BEFORE_1:.*]] = arith.select %[[LEADS]], %c32, %c96
  // CHECK-DAG:     arith.subi %[[N]], %[[BEFORE_1]]
  // CHECK-COUNT-2: nvvm.cp.async.bulk.tensor.shared.cluster.global
  // CHECK-NOT:     nvvm.cp.async
  // CHECK:         gpu.return
  gpu.func @valid_rows_of_a_pair(%desc: !ragged, %rows: !pair, %barrier: !barrier, %kt: !kt, %n: index, %leads: i1) kernel {
    %c0 = arith.constant 0 : index
    kvcache.tma_load_rows %desc[%c0, %c0] rows %rows valid %n, %barrier[%c0] to %kt pair_cta leader %leads
      {l2_hint = #kvcache.eviction<evict_first>} : !ragged, !pair, !barrier -> !kt
    gpu.return
  }
}
