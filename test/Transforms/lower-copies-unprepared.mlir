// RUN: kvcache-opt %s --kvcache-lower-pipes --kvcache-lower-copies --split-input-file --verify-diagnostics

// Copies without what the passes before add, and kinds that a barrier can't serve.

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 16>
!kt = !kvcache.tile<64x128xbf16>

func.func @no_kind(%k: !cache, %i: index, %kt: !kt) {
  // expected-error @below {{'kvcache.async_load_tile' op expects 'copy', which kvcache-choose-copies sets}}
  %t = kvcache.async_load_tile %k[%i, %i, %i, %i] to %kt : !cache, !kt
  kvcache.wait %t
  return
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 16>
!kt = !kvcache.tile<64x128xbf16>

gpu.module @kernels [#nvvm.target<chip = "sm_90a">] {
  gpu.func @no_descriptor(%k: !cache, %i: index) kernel {
    %ring = kvcache.pipe : !kvcache.pipe<2, !kt>
    kvcache.produce %ring[%i] : !kvcache.pipe<2, !kt> {
    ^bb0(%kt: !kt):
      // expected-error @below {{'kvcache.async_load_tile' op expects 'descriptor', which kvcache-materialize-descriptors adds, for tensor_boxes}}
      kvcache.async_load_tile %k[%i, %i, %i, %i] to %kt {copy = #kvcache.copy<tensor_boxes>} : !cache, !kt
    }
    gpu.return
  }
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 16>
!kt = !kvcache.tile<16x64xbf16, swizzle_128b>
!desc = !kvcache.tma_tile<64x1x16x1xbf16, swizzle_128b>

gpu.module @kernels [#nvvm.target<chip = "sm_90a">] {
  gpu.func @two_waits(%k: !cache, %i: index, %desc: !desc, %kt: !kt) kernel {
    // expected-error @below {{'kvcache.async_load_tile' op can't be copied by tensor_boxes: a barrier needs one wait, in the block of the copy}}
    %t = kvcache.async_load_tile %k[%i, %i, %i, %i] to %kt descriptor %desc {copy = #kvcache.copy<tensor_boxes>} : !cache, !kt, !desc
    kvcache.wait %t
    kvcache.wait %t
    gpu.return
  }
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = 16>
!kt = !kvcache.tile<16x64xbf16, swizzle_128b>
!desc = !kvcache.tma_tile<64x1x16x1xbf16, swizzle_128b>

gpu.module @kernels [#nvvm.target<chip = "sm_90a">] {
  gpu.func @multicast_without_clusters(%k: !cache, %i: index, %desc: !desc) kernel {
    %kt = kvcache.alloc_tile : !kt
    // expected-error @below {{'kvcache.async_load_tile' op can't be multicast: the kernel does not state clusters of several blocks ('known_cluster_size')}}
    %t = kvcache.async_load_tile %k[%i, %i, %i, %i] to %kt descriptor %desc {copy = #kvcache.copy<tensor_boxes>, multicast} : !cache, !kt, !desc
    kvcache.wait %t
    gpu.return
  }
}
