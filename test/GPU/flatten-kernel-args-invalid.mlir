// RUN: kvcache-opt %s --kvcache-flatten-kernel-args --split-input-file --verify-diagnostics

gpu.module @kernels {
  // expected-error @below {{'gpu.func' op expects argument 1 to be a ranked memref, got 'memref<*xf32>'}}
  gpu.func @unranked(%a: memref<4xf32>, %b: memref<*xf32>) kernel {
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @below {{'gpu.func' op expects argument 0 to have a strided layout, got 'memref<4xf32, affine_map<(d0) -> (d0 floordiv 2)>>'}}
  gpu.func @not_strided(%a: memref<4xf32, affine_map<(d0) -> (d0 floordiv 2)>>) kernel {
    gpu.return
  }
}
