// RUN: sed s/CHIP/sm_90a/ %s | kvcache-opt --convert-kvcache-to-nvvm --canonicalize --cse | FileCheck %s --implicit-check-not=kvcache.tma_{{[a-su-z]}}
// RUN: sed s/CHIP/sm_100a/ %s | kvcache-opt --convert-kvcache-to-nvvm --canonicalize --cse | FileCheck %s --implicit-check-not=kvcache.tma_{{[a-su-z]}}

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!desc = !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

gpu.module @kernels [#nvvm.target<chip = "CHIP">] {
  // What the block wrote is seen, then all chunks are one group.
  // CHECK-LABEL: gpu.func @store(
  // CHECK-SAME:    %[[ARGUMENT:[^:]*]]: !kvcache.tma_tile<{{[^>]*}}>, %[[KT:[^:]*]]: !kvcache.tile<{{[^>]*}}>, %[[D:[^:]*]]: index, %[[H:[^:]*]]: index, %[[ROW:[^:]*]]: index)
  // CHECK:         nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
  // CHECK-NOT:     nvvm.fence
  // CHECK-DAG:     %[[DESC:.*]] = builtin.unrealized_conversion_cast %[[ARGUMENT]]
  // CHECK-DAG:     %[[MEMORY:.*]] = kvcache.tile_memory %[[KT]]
  // CHECK-DAG:     %[[BYTE:.*]] = memref.extract_aligned_pointer_as_index %[[MEMORY]]
  // CHECK-DAG:     %[[NUMBER_0:.*]] = arith.index_cast %[[BYTE]] : index to i64
  // CHECK-DAG:     %[[ADDRESS_0:.*]] = llvm.inttoptr %[[NUMBER_0]] : i64 to !llvm.ptr<3>
  // CHECK-DAG:     %[[C0:.*]] = arith.index_castui %[[D]] : index to i32
  // CHECK-DAG:     %[[C1:.*]] = arith.index_castui %[[H]] : index to i32
  // CHECK-DAG:     %[[C2:.*]] = arith.index_castui %[[ROW]] : index to i32
  // CHECK:         nvvm.cp.async.bulk.tensor.global.shared.cta %[[DESC]], %[[ADDRESS_0]], box[%[[C0]], %[[C1]], %[[C2]]] : !llvm.ptr, <3>
  // CHECK-DAG:     %[[NEXT:.*]] = arith.addi %[[D]], %c64
  // CHECK-DAG:     %[[C0_1:.*]] = arith.index_castui %[[NEXT]] : index to i32
  // CHECK-DAG:     %[[BYTE_1:.*]] = arith.addi %[[BYTE]], %c8192
  // CHECK-DAG:     %[[NUMBER_1:.*]] = arith.index_cast %[[BYTE_1]] : index to i64
  // CHECK-DAG:     %[[ADDRESS_1:.*]] = llvm.inttoptr %[[NUMBER_1]] : i64 to !llvm.ptr<3>
  // CHECK:         nvvm.cp.async.bulk.tensor.global.shared.cta %[[DESC]], %[[ADDRESS_1]], box[%[[C0_1]], %[[C1]], %[[C2]]] : !llvm.ptr, <3>
  // CHECK-NEXT:    nvvm.cp.async.bulk.commit.group
  // CHECK-NEXT:    gpu.barrier
  // CHECK-NEXT:    nvvm.cp.async.bulk.wait_group 0 {read}
  // CHECK-NEXT:    gpu.return
  gpu.func @store(%desc: !desc, %kt: !kt, %d: index, %h: index, %row: index) kernel {
    %tok = kvcache.tma_store %kt to %desc[%d, %h, %row] : !kt, !desc
    gpu.barrier
    kvcache.wait %tok
    gpu.return
  }

  // CHECK-LABEL: gpu.func @policy(
  // CHECK-DAG:     %[[FIRST:.*]] = arith.constant 1364590687093260288 : i64
  // CHECK-COUNT-2: nvvm.cp.async.bulk.tensor.global.shared.cta %{{.*}}] l2_cache_hint = %[[FIRST]] : !llvm.ptr, <3>
  // CHECK:         nvvm.cp.async.bulk.commit.group
  // CHECK-NOT:     nvvm.cp.async.bulk.wait_group
  // CHECK:         gpu.return
  gpu.func @policy(%desc: !desc, %kt: !kt, %i: index) kernel {
    %tok = kvcache.tma_store %kt to %desc[%i, %i, %i] {l2_hint = #kvcache.eviction<evict_first>} : !kt, !desc
    gpu.return
  }

  // Waits for other copies are for `kvcache-expand-copies`.
  // CHECK-LABEL: gpu.func @other_waits(
  // CHECK-SAME:    %[[OTHER:[^ ]*]]: !kvcache.token)
  // CHECK:         %[[LOAD:.*]] = kvcache.async_load_tile
  // CHECK:         nvvm.cp.async.bulk.commit.group
  // CHECK-NEXT:    kvcache.wait %[[LOAD]]
  // CHECK-NEXT:    kvcache.wait %[[OTHER]]
  // CHECK-NEXT:    nvvm.cp.async.bulk.wait_group 0 {read}
  // CHECK-NEXT:    gpu.return
  gpu.func @other_waits(%k: !cache, %desc: !desc, %kt: !kt, %vt: !kt, %i: index, %other: !kvcache.token) {
    %load = kvcache.async_load_tile %k[%i, %i, %i, %i] to %kt : !cache, !kt
    %store = kvcache.tma_store %vt to %desc[%i, %i, %i] : !kt, !desc
    kvcache.wait %load
    kvcache.wait %other
    kvcache.wait %store
    gpu.return
  }
}
