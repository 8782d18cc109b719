// RUN: kvcache-opt %s --kvcache-expand-copies --canonicalize --split-input-file | FileCheck %s --implicit-check-not=kvcache.async --implicit-check-not=kvcache.wait --implicit-check-not=kvcache.setup --implicit-check-not=kvcache.first_warp

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 16>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

// On the CPU one thread copies the 1024 units of 16 bytes.
// CHECK-LABEL: func.func @load(
// CHECK-SAME:    %[[K:.*]]: !kvcache.paged<{{.*}}>, %[[KT:.*]]: !kvcache.tile<{{.*}}>, %[[B:.*]]: index, %[[H:.*]]: index, %[[T:.*]]: index, %[[D:.*]]: index, %[[N:.*]]: index)
// CHECK-DAG:     %[[ZEROS:.*]] = arith.constant dense<0.000000e+00> : vector<8xbf16>
// CHECK:         scf.for %[[I:.*]] = %c0 to %c1024 step %c1 {
// CHECK-DAG:       %[[UNIT:.*]] = arith.remui %[[I]], %c16
// CHECK-DAG:       %[[COLUMN:.*]] = arith.muli %[[UNIT]], %c8
// CHECK-DAG:       %[[ROW:.*]] = arith.divui %[[I]], %c16
// CHECK:           %[[READ:.*]] = arith.cmpi slt, %[[ROW]], %[[N]]
// CHECK:           %[[TOKEN:.*]] = arith.addi %[[T]], %[[ROW]]
// CHECK:           %[[VALUE:.*]] = scf.if %[[READ]]
// CHECK:             %[[ELEMENT:.*]] = arith.addi %[[D]], %[[COLUMN]]
// CHECK:             kvcache.load %[[K]][%[[B]], %[[H]], %[[TOKEN]], %[[ELEMENT]]]
// CHECK:             scf.yield %[[ZEROS]]
// CHECK:           kvcache.tile_store %[[VALUE]], %[[KT]][%[[ROW]], %[[COLUMN]]]
func.func @load(%k: !cache, %kt: !kt, %b: index, %h: index, %t: index, %d: index, %n: index) {
  %tok = kvcache.async_load_tile %k[%b, %h, %t, %d] valid %n to %kt : !cache, !kt
  kvcache.wait %tok
  return
}

// -----

!cache = !kvcache.paged<f8E4M3FN, <num_heads = 1, head_size = 64>, page_size = 16, scale = f32, granularity = 64>
!kt = !kvcache.tile<8x64xf8E4M3FN>

// Row ids outside of the cache, negative ones too, give zeros; a quantized cache
// is copied as it is.
// CHECK-LABEL: func.func @gather(
// CHECK:         %[[ID:.*]] = memref.load
// CHECK-DAG:     %[[PAGES:.*]] = kvcache.extent pages
// CHECK-DAG:     %[[ROWS:.*]] = arith.muli %[[PAGES]], %c16
// CHECK-DAG:     %[[LEAST:.*]] = arith.minsi %[[ROWS]], %c2147483648
// CHECK-DAG:     %[[LIMIT:.*]] = arith.index_castui %[[LEAST]] : index to i32
// CHECK-DAG:     %[[IS_ROW:.*]] = arith.cmpi ult, %[[ID]], %[[LIMIT]] : i32
// CHECK-DAG:     %[[ROW:.*]] = arith.select %[[IS_ROW]], %[[ID]], %c0_i32
// CHECK-DAG:     %[[TOKEN_I32:.*]] = arith.remui %[[ROW]], %c16_i32
// CHECK-DAG:     %[[TOKEN:.*]] = arith.index_castui %[[TOKEN_I32]] : i32 to index
// CHECK-DAG:     %[[PAGE_I32:.*]] = arith.divui %[[ROW]], %c16_i32
// CHECK-DAG:     %[[PAGE:.*]] = arith.index_castui %[[PAGE_I32]] : i32 to index
// CHECK:         kvcache.load_quantized %{{.*}}[%c0, %{{.*}}, %[[TOKEN]], %{{.*}}] page %[[PAGE]]
func.func @gather(%k: !cache, %kt: !kt, %h: index, %d: index, %ids: memref<8xi32>) {
  %tok = kvcache.async_gather_tile %k[%h, %d] rows %ids to %kt : !cache, memref<8xi32>, !kt
  kvcache.wait %tok
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 16>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

// In a kernel all threads take part.
// CHECK-LABEL: gpu.func @threads(
// CHECK-DAG:     %[[THREAD:.*]] = gpu.thread_id x
// CHECK-DAG:     gpu.block_dim z
// CHECK:         scf.for %{{.*}} = %{{.*}} to %c1024 step
// CHECK:           kvcache.load
// CHECK:         gpu.barrier
gpu.module @kernels {
  gpu.func @threads(%k: !cache, %b: index) kernel {
    %c0 = arith.constant 0 : index
    %kt = kvcache.alloc_tile : !kt
    %tok = kvcache.async_load_tile %k[%b, %c0, %c0, %c0] to %kt : !cache, !kt
    kvcache.wait %tok
    gpu.return
  }
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 64>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

// One thread initializes the barriers of the pipe, and of each copy outside of it,
// and one comparison finds the first warp.
// CHECK-LABEL:   gpu.func @pipe_and_copy(
// CHECK:           nvvm.shfl.sync
// CHECK:           scf.if
// CHECK-COUNT-6:     nvgpu.mbarrier.init
// CHECK:             nvvm.fence.mbarrier.init
// CHECK-COUNT-1:     kvcache.tma_prefetch
// CHECK-NOT:       nvgpu.mbarrier.init
// CHECK-NOT:       nvvm.shfl.sync
// CHECK:           gpu.return
gpu.module @kernels [#nvvm.target<chip = "sm_90a">] {
  gpu.func @pipe_and_copy(%k: !cache, %b: index, %h: index, %n: index, %out: memref<?xbf16>, %ids: memref<6xi32>) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %own = kvcache.alloc_tile : !kt
    %rows = kvcache.alloc_tile : !kvcache.tile<6x128xbf16>
    %ring = kvcache.pipe : !kvcache.pipe<2, !kt>
    %tok = kvcache.async_load_tile %k[%b, %h, %c0, %c0] to %own : !cache, !kt
    kvcache.wait %tok
    %g = kvcache.async_gather_tile %k[%h, %c0] rows %ids to %rows : !cache, memref<6xi32>, !kvcache.tile<6x128xbf16>
    kvcache.wait %g
    scf.for %i = %c0 to %n step %c1 {
      %t = arith.muli %i, %c64 : index
      kvcache.produce %ring[%i] : !kvcache.pipe<2, !kt> {
      ^bb0(%ks: !kt):
        kvcache.async_load_tile %k[%b, %h, %t, %c0] to %ks : !cache, !kt
      }
      %v = kvcache.consume %ring[%i] : !kvcache.pipe<2, !kt> -> (bf16) {
      ^bb0(%ks: !kt):
        %x = kvcache.tile_load %ks[%c0, %c0] : !kt -> bf16
        %y = kvcache.tile_load %own[%c0, %c0] : !kt -> bf16
        %z = arith.addf %x, %y : bf16
        kvcache.yield %z : bf16
      }
      memref.store %v, %out[%i] : memref<?xbf16>
      %u = kvcache.tile_load %rows[%c0, %c0] : !kvcache.tile<6x128xbf16> -> bf16
      memref.store %u, %out[%c0] : memref<?xbf16>
    }
    gpu.return
  }
}
