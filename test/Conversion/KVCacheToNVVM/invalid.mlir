// RUN: kvcache-opt %s --convert-kvcache-to-nvvm --split-input-file --verify-diagnostics

!desc = !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>

func.func @host(%desc: !desc) {
  // expected-error @below {{'kvcache.tma_prefetch' op expects GPU code}}
  kvcache.tma_prefetch %desc : !desc
  return
}

// -----

!desc = !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>

gpu.module @kernels {
  gpu.func @no_target(%desc: !desc) kernel {
    // expected-error @below {{'kvcache.tma_prefetch' op expects a gpu.module with one target}}
    kvcache.tma_prefetch %desc : !desc
    gpu.return
  }
}

// -----

!desc = !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>

gpu.module @kernels [#nvvm.target<chip = "sm_90a">, #nvvm.target<chip = "sm_100a">] {
  gpu.func @two_targets(%desc: !desc) kernel {
    // expected-error @below {{'kvcache.tma_prefetch' op expects a gpu.module with one target}}
    kvcache.tma_prefetch %desc : !desc
    gpu.return
  }
}

// -----

!desc = !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>

func.func @launch_that_is_not_outlined(%desc: !desc) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%dx = %c1, %dy = %c1, %dz = %c1) {
    // expected-error @below {{'kvcache.tma_prefetch' op expects a gpu.module with one target}}
    kvcache.tma_prefetch %desc : !desc
    gpu.terminator
  }
  return
}

// -----

!desc = !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>

gpu.module @kernels [#nvvm.target<chip = "sm_80">] {
  gpu.func @prefetch_on_sm_80(%desc: !desc) kernel {
    // expected-error @below {{'kvcache.tma_prefetch' op requires sm_90 or newer for TMA, but the target is sm_80}}
    kvcache.tma_prefetch %desc : !desc
    gpu.return
  }
}

// -----

!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

gpu.module @kernels [#nvvm.target<chip = "sm_80">] {
  gpu.func @expect_on_sm_80(%barrier: !barrier, %i: index) kernel {
    // expected-error @below {{'kvcache.tma_expect' op requires sm_90 or newer for TMA, but the target is sm_80}}
    kvcache.tma_expect %barrier[%i] bytes %i : !barrier
    gpu.return
  }
}

// -----

!desc = !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

gpu.module @kernels [#nvvm.target<chip = "sm_80">] {
  gpu.func @load_on_sm_80(%desc: !desc, %i: index, %barrier: !barrier, %kt: !kt) kernel {
    // expected-error @below {{'kvcache.tma_load' op requires sm_90 or newer for TMA, but the target is sm_80}}
    kvcache.tma_load %desc[%i, %i, %i], %barrier[%i] to %kt : !desc, !barrier -> !kt
    gpu.return
  }
}

// -----

!desc = !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!rows = !kvcache.row_indices<rows = 64, page_size = 64>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

gpu.module @kernels [#nvvm.target<chip = "sm_80">] {
  gpu.func @load_rows_on_sm_80(%desc: !desc, %i: index, %rows: !rows, %barrier: !barrier, %kt: !kt) kernel {
    // expected-error @below {{'kvcache.tma_load_rows' op requires sm_90 or newer for TMA, but the target is sm_80}}
    kvcache.tma_load_rows %desc[%i, %i] rows %rows, %barrier[%i] to %kt : !desc, !rows, !barrier -> !kt
    gpu.return
  }
}

// -----

!row = !kvcache.tma_tile<64x1xbf16, swizzle_128b>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

gpu.module @kernels [#nvvm.target<chip = "sm_80">] {
  gpu.func @gather4_on_sm_80(%row: !row, %i: index, %barrier: !barrier, %kt: !kt) kernel {
    // expected-error @below {{'kvcache.tma_gather4' op requires sm_90 or newer for TMA, but the target is sm_80}}
    kvcache.tma_gather4 %row[%i, %i, %i, %i, %i], %barrier[%i] to %kt at %i : !row, !barrier -> !kt
    gpu.return
  }
}

// -----

!row = !kvcache.tma_tile<64x1xbf16, swizzle_128b>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

gpu.module @kernels [#nvvm.target<chip = "sm_80">] {
  gpu.func @gather_tile_on_sm_80(%row: !row, %ids: memref<64xi32>, %barrier: !barrier, %i: index, %kt: !kt) kernel {
    // expected-error @below {{'kvcache.tma_gather_tile' op requires sm_90 or newer for TMA, but the target is sm_80}}
    kvcache.tma_gather_tile %row rows %ids, %barrier[%i] to %kt : !row, memref<64xi32>, !barrier -> !kt
    gpu.return
  }
}

// -----

!desc = !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

gpu.module @kernels [#nvvm.target<chip = "sm_80">] {
  gpu.func @store_on_sm_80(%kt: !kt, %desc: !desc, %i: index) kernel {
    // expected-error @below {{'kvcache.tma_store' op requires sm_90 or newer for TMA, but the target is sm_80}}
    %tok = kvcache.tma_store %kt to %desc[%i, %i, %i] : !kt, !desc
    gpu.return
  }
}

// -----

!words = !kvcache.tma_tile<72x1xi64>
!latent = !kvcache.tile<64x576xf8E4M3FN>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

gpu.module @kernels [#nvvm.target<chip = "sm_90a">] {
  gpu.func @gather4_of_576_bytes_on_sm_90(%words: !words, %i: index, %barrier: !barrier, %tile: !latent) kernel {
    // expected-error @below {{'kvcache.tma_gather4' op requires sm_100 or newer for gather4, but the target is sm_90a, where copies of single rows need a multiple of 128 bytes, got 576}}
    kvcache.tma_gather4 %words[%i, %i, %i, %i, %i], %barrier[%i] to %tile at %i : !words, !barrier -> !latent
    gpu.return
  }
}

// -----

!words = !kvcache.tma_tile<72x1xi64>
!latent = !kvcache.tile<64x576xf8E4M3FN>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

gpu.module @kernels [#nvvm.target<chip = "sm_90a">] {
  gpu.func @gather_tile_of_576_bytes_on_sm_90(%words: !words, %ids: memref<64xi32>, %barrier: !barrier, %i: index, %tile: !latent) kernel {
    // expected-error @below {{'kvcache.tma_gather_tile' op requires sm_100 or newer for gather4, but the target is sm_90a, where copies of single rows need a multiple of 128 bytes, got 576}}
    kvcache.tma_gather_tile %words rows %ids, %barrier[%i] to %tile : !words, memref<64xi32>, !barrier -> !latent
    gpu.return
  }
}

// -----

!desc = !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

gpu.module @kernels [#nvvm.target<chip = "sm_90a">] {
  gpu.func @c5_multicast_without_clusters(%desc: !desc, %i: index, %barrier: !barrier, %kt: !kt) kernel {
    // expected-error @below {{'kvcache.tma_load' op with 'multicast' requires a kernel that states clusters of several blocks ('known_cluster_size')}}
    kvcache.tma_load %desc[%i, %i, %i], %barrier[%i] to %kt {multicast} : !desc, !barrier -> !kt
    gpu.return
  }
}
