// RUN: split-file %s %t
// RUN: mkdir -p %t/toolkit/nvvm/libdevice
// RUN: cp %t/kernel.mlir %t/toolkit/nvvm/libdevice/libdevice.10.bc

// libdevice is read where a kernel calls it, and only there. This one is none.

// RUN: kvcache-opt %t/kernel.mlir "--kvcache-to-ptx=chip=sm_90a toolkit=%t/toolkit" --emit-ptx | FileCheck %s
// RUN: env CUDA_HOME=%t/toolkit CUDA_ROOT=%t/toolkit kvcache-opt %t/kernel.mlir --kvcache-to-ptx=chip=sm_90a --emit-ptx | FileCheck %s
// RUN: not kvcache-opt %t/call.mlir "--kvcache-to-ptx=chip=sm_90a toolkit=%t/toolkit" 2>&1 | FileCheck %s --check-prefix=CALL

// CHECK: .visible .entry kernel(
// CALL:  call.mlir:[[#]]:[[#]]: error: {{.*}}libdevice.10.bc

//--- kernel.mlir
gpu.module @kernels {
  gpu.func @kernel(%m: memref<f32>) kernel {
    gpu.return
  }
}

//--- call.mlir
gpu.module @kernels {
  gpu.func @kernel(%m: memref<f32>) kernel {
    %x = memref.load %m[] : memref<f32>
    %y = math.sin %x : f32
    memref.store %y, %m[] : memref<f32>
    gpu.return
  }
}
