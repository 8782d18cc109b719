// A kernel without a target, in a stock mlir-opt.

// RUN: not mlir-opt %s %kvcache_plugin --pass-pipeline="builtin.module(kvcache-serialize-kernels)" 2>&1 | FileCheck %s

// CHECK: foreign-modules.mlir:[[@LINE+1]]:1: error: 'gpu.module' op expects a target, which 'kvcache-attach-targets=chip=sm_90a' sets
gpu.module @kernels {
  gpu.func @kernel() kernel {
    gpu.return
  }
}
