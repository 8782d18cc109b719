// RUN: kvcache-opt %s --kvcache-choose-copies --split-input-file --verify-diagnostics
// RUN: kvcache-opt %s --kvcache-materialize-descriptors --kvcache-lower-copies --split-input-file --verify-diagnostics

// A kind that the author sets, and that is not possible: no pass takes it.

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 16>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

gpu.module @kernels [#nvvm.target<chip = "sm_80">] {
  gpu.func @chip(%k: !cache, %i: index, %kt: !kt) kernel {
    // expected-error @below {{'kvcache.async_load_tile' op can't be copied by tensor_boxes: requires sm_90 or newer for TMA, but the target is sm_80}}
    %t = kvcache.async_load_tile %k[%i, %i, %i, %i] to %kt {copy = #kvcache.copy<tensor_boxes>} : !cache, !kt
    kvcache.wait %t
    gpu.return
  }
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 16>
!kt = !kvcache.tile<64x128xbf16>

func.func @host(%k: !cache, %i: index, %kt: !kt) {
  // expected-error @below {{'kvcache.async_load_tile' op can't be copied by cp_async: it is not in a gpu.module with one target}}
  %t = kvcache.async_load_tile %k[%i, %i, %i, %i] to %kt {copy = #kvcache.copy<cp_async>} : !cache, !kt
  kvcache.wait %t
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 16>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

gpu.module @kernels [#nvvm.target<chip = "sm_90a">] {
  gpu.func @swizzle(%k: !cache, %i: index, %ids: memref<64xi32>, %kt: !kt) kernel {
    // expected-error @below {{'kvcache.async_gather_tile' op can't be copied by bulk_rows: the tile has a swizzle}}
    %t = kvcache.async_gather_tile %k[%i, %i] rows %ids to %kt {copy = #kvcache.copy<bulk_rows>} : !cache, memref<64xi32>, !kt
    kvcache.wait %t
    gpu.return
  }
}

// -----

!cache = !kvcache.paged<f8E4M3FN, <num_heads = 1, head_size = 18>, page_size = 16>
!kt = !kvcache.tile<64x16xf8E4M3FN>

gpu.module @kernels [#nvvm.target<chip = "sm_90a">] {
  gpu.func @alignment(%k: !cache, %i: index, %kt: !kt) kernel {
    // expected-error @below {{'kvcache.async_load_tile' op can't be copied by cp_async: rows are aligned to 2 bytes, not to 4}}
    %t = kvcache.async_load_tile %k[%i, %i, %i, %i] to %kt {copy = #kvcache.copy<cp_async>} : !cache, !kt
    kvcache.wait %t
    gpu.return
  }
}
