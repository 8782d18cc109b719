// RUN: kvcache-opt %s --pass-pipeline="builtin.module(gpu.module(convert-gpu-to-nvvm))" --split-input-file --verify-diagnostics

!desc = !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>

gpu.module @kernels [#nvvm.target<chip = "sm_80">] {
  gpu.func @old_chip(%desc: !desc) kernel {
    // expected-error @below {{'kvcache.tma_prefetch' op requires sm_90 or newer for TMA, but the target is sm_80}}
    // expected-error @below {{'kvcache.tma_prefetch' op has no lowering here for its types and attributes}}
    kvcache.tma_prefetch %desc : !desc
    gpu.return
  }
}

// -----

!desc = !kvcache.tma_tile<64x1x64xbf16, swizzle_128b>

gpu.module @kernels {
  gpu.func @no_chip(%desc: !desc) kernel {
    // expected-error @below {{'kvcache.tma_prefetch' op expects a gpu.module with one target}}
    // expected-error @below {{'kvcache.tma_prefetch' op has no lowering here for its types and attributes}}
    kvcache.tma_prefetch %desc : !desc
    gpu.return
  }
}
