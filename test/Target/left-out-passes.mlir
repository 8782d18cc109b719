// Passes of LLVM's back end are left out by name: a name that LLVM does not
// have is a warning.

// RUN: kvcache-opt %s --kvcache-to-ptx=chip=sm_90 --verify-diagnostics
// RUN: kvcache-opt %s --kvcache-to-ptx="chip=sm_90 opt-level=1" --verify-diagnostics
// RUN: kvcache-opt %s --kvcache-to-ptx="chip=sm_90 opt-level=0" --verify-diagnostics

// What LLVM says nothing of, as when it has another name for a pass.
// RUN: kvcache-opt %s --kvcache-to-ptx=chip=sm_90 --disable-cgp 2>&1 | FileCheck %s
// CHECK: left-out-passes.mlir:[[#@LINE+3]]:1: warning: LLVM's back end has no pass 'codegenprepare', which compilation leaves out
// CHECK-NOT: has no pass

gpu.module @kernels {
  gpu.func @kernel(%m: memref<8xf32>) kernel {
    gpu.return
  }
}
