// Passes of LLVM's back end are left out by name: a name that LLVM does not
// know is a warning.

// RUN: kvcache-opt %s --kvcache-to-ptx=chip=sm_90 --verify-diagnostics
// RUN: kvcache-opt %s --kvcache-to-ptx="chip=sm_90 opt-level=1" --verify-diagnostics
// RUN: kvcache-opt %s --kvcache-to-ptx="chip=sm_90 opt-level=0" --verify-diagnostics

gpu.module @kernels {
  gpu.func @kernel(%m: memref<8xf32>) kernel {
    gpu.return
  }
}
