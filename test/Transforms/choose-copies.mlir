// RUN: kvcache-opt %s --kvcache-choose-copies | FileCheck %s
// RUN: kvcache-opt %s --kvcache-choose-copies --kvcache-choose-copies | FileCheck %s
// RUN: kvcache-opt %s --kvcache-choose-copies --remarks-filter=kvcache-choose-copies -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// What the author says, and what the target of each clone can do.

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 16>
!kt = !kvcache.tile<64x128xbf16>

// CHECK-LABEL: gpu.func @of_an_author(
// CHECK:         kvcache.async_load_tile {{.*}} {base_alignment = 16 : i64, copy = #kvcache.copy<plain>}
// CHECK:         kvcache.async_load_tile {{.*}} {base_alignment = 16 : i64, copy = #kvcache.copy<cp_async>}
// CHECK:         kvcache.async_gather_tile {{.*}} {copy = #kvcache.copy<bulk_rows>}
// CHECK:         kvcache.async_load_tile {{.*}} {copy = #kvcache.copy<tensor_boxes>}
// REMARK: Reason="the attribute 'copy' says so", Remark="copies by plain"
// REMARK: Reason="the attribute 'copy' says so", Remark="copies by cp_async"
// REMARK: Reason="the attribute 'copy' says so", Remark="copies by bulk_rows"
// More copies than are fast, but possible.
// REMARK: BoxRows=1, Reason="the attribute 'copy' says so", Remark="copies by tensor_boxes"
gpu.module @sm_90 [#nvvm.target<chip = "sm_90a">] {
  gpu.func @of_an_author(%k: !cache, %i: index, %ids: memref<72xi32>) kernel {
    %c0 = arith.constant 0 : index
    %a = kvcache.alloc_tile : !kt
    %b = kvcache.alloc_tile : !kvcache.tile<72x128xbf16>
    %t0 = kvcache.async_load_tile %k[%i, %i, %i, %c0] to %a {base_alignment = 16, copy = #kvcache.copy<plain>} : !cache, !kt
    kvcache.wait %t0
    %t1 = kvcache.async_load_tile %k[%i, %i, %i, %c0] to %a {base_alignment = 16, copy = #kvcache.copy<cp_async>} : !cache, !kt
    kvcache.wait %t1
    %t2 = kvcache.async_gather_tile %k[%i, %c0] rows %ids to %b {copy = #kvcache.copy<bulk_rows>} : !cache, memref<72xi32>, !kvcache.tile<72x128xbf16>
    kvcache.wait %t2
    %t3 = kvcache.async_load_tile %k[%i, %i, %i, %c0] to %b {copy = #kvcache.copy<tensor_boxes>} : !cache, !kvcache.tile<72x128xbf16>
    kvcache.wait %t3
    gpu.return
  }
}

// Each chip has its own best kind, and a pipe needs no wait.
// CHECK-LABEL: gpu.module @ampere
// CHECK:         kvcache.async_gather_tile {{.*}} {copy = #kvcache.copy<cp_async>}
// REMARK: Reason="requires sm_90 or newer for TMA, but the target is sm_80", Remark="does not copy by tensor_rows"
gpu.module @ampere [#nvvm.target<chip = "sm_80">] {
  gpu.func @in_a_pipe(%k: !cache, %i: index, %ids: memref<64xi32>) kernel {
    %ring = kvcache.pipe : !kvcache.pipe<2, !kt>
    kvcache.produce %ring[%i] : !kvcache.pipe<2, !kt> {
    ^bb0(%kt: !kt):
      %c0 = arith.constant 0 : index
      kvcache.async_gather_tile %k[%c0, %c0] rows %ids to %kt : !cache, memref<64xi32>, !kt
    }
    gpu.return
  }
}
// CHECK-LABEL: gpu.module @blackwell
// CHECK:         kvcache.async_gather_tile {{.*}} {copy = #kvcache.copy<tensor_rows>}
gpu.module @blackwell [#nvvm.target<chip = "sm_100a">] {
  gpu.func @in_a_pipe(%k: !cache, %i: index, %ids: memref<64xi32>) kernel {
    %ring = kvcache.pipe : !kvcache.pipe<2, !kt>
    kvcache.produce %ring[%i] : !kvcache.pipe<2, !kt> {
    ^bb0(%kt: !kt):
      %c0 = arith.constant 0 : index
      kvcache.async_gather_tile %k[%c0, %c0] rows %ids to %kt : !cache, memref<64xi32>, !kt
    }
    gpu.return
  }
  // CHECK-LABEL: gpu.func @not_a_kernel(
  // CHECK:         kvcache.async_load_tile {{.*}} {copy = #kvcache.copy<cp_async>}
  // REMARK: Reason="only a kernel can initialize the barrier of the copy"
  gpu.func @not_a_kernel(%k: !cache, %i: index, %kt: !kt) {
    %c0 = arith.constant 0 : index
    %t = kvcache.async_load_tile %k[%i, %i, %c0, %c0] to %kt : !cache, !kt
    kvcache.wait %t
    gpu.return
  }
  // CHECK-LABEL: gpu.func @layer_of_an_array(
  // CHECK:         kvcache.async_load_tile {{.*}} {copy = #kvcache.copy<cp_async>}
  // REMARK: Reason="the module does not launch the kernel, and 'kvcache.descriptor' can't describe the view"
  gpu.func @layer_of_an_array(%c: !kvcache.paged_collection<bf16, #kv, page_size = 16>, %i: index, %kt: !kt) kernel {
    %c0 = arith.constant 0 : index
    %layer = arith.muli %i, %i : index
    %k = kvcache.paged_view key %c[%layer] : !kvcache.paged_collection<bf16, #kv, page_size = 16>
    %t = kvcache.async_load_tile %k[%i, %i, %c0, %c0] to %kt : !cache, !kt
    kvcache.wait %t
    gpu.return
  }
}
// CHECK-LABEL: gpu.func @without_a_target(
// CHECK:         kvcache.async_load_tile {{.*}} {copy = #kvcache.copy<plain>}
// REMARK: Reason="it is not in a gpu.module with one target", Remark="does not copy by tensor_boxes"
gpu.module @no_target {
  gpu.func @without_a_target(%k: !cache, %i: index, %kt: !kt) kernel {
    %c0 = arith.constant 0 : index
    %t = kvcache.async_load_tile %k[%i, %i, %c0, %c0] to %kt : !cache, !kt
    kvcache.wait %t
    gpu.return
  }
}
// CHECK-LABEL: func.func @on_the_host(
// CHECK:         kvcache.async_load_tile {{.*}} {copy = #kvcache.copy<plain>}
func.func @on_the_host(%k: !cache, %i: index, %kt: !kt) {
  %c0 = arith.constant 0 : index
  %t = kvcache.async_load_tile %k[%i, %i, %c0, %c0] to %kt : !cache, !kt
  kvcache.wait %t
  return
}
