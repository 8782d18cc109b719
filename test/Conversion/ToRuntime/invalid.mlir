// RUN: kvcache-opt %s --kvcache-lower-launches -split-input-file -verify-diagnostics

module attributes {gpu.container_module} {
gpu.binary @kernels [#gpu.object<#nvvm.target<chip = "sm_90a">, "fatbin">]
func.func @operand(%n: index, %m: memref<?xf32>) {
  // expected-error @below {{'gpu.launch_func' op can't pass operand 1 of type 'memref<?xf32>' to kernel @kernels::@nothing}}
  gpu.launch_func @kernels::@nothing blocks in (%n, %n, %n) threads in (%n, %n, %n)
      args(%n : index, %m : memref<?xf32>)
  return
}
}

// -----

module attributes {gpu.container_module} {
gpu.module @kernels {
  gpu.func @nothing() kernel {
    gpu.return
  }
}
func.func @module(%n: index) {
  // expected-error @below {{'gpu.launch_func' op expects @kernels to be a gpu.binary of this module}}
  gpu.launch_func @kernels::@nothing blocks in (%n, %n, %n) threads in (%n, %n, %n)
  return
}
}

// -----

// expected-error @below {{'gpu.binary' op expects objects of PTX, cubins or fat binaries, got offload}}
gpu.binary @kernels [#gpu.object<#nvvm.target<chip = "sm_90a">, offload = "bitcode">]

// -----

// expected-error @below {{'gpu.binary' op expects objects for #nvvm.target, got #rocdl.target}}
gpu.binary @kernels [#gpu.object<#rocdl.target, bin = "code">]

// -----

func.func @gaps(%m: memref<4x4xf32, strided<[8, 1]>>, %n: memref<4x4xf32>) {
  // expected-error @below {{'gpu.memcpy' op expects memory without gaps, got 'memref<4x4xf32, strided<[8, 1]>>'}}
  gpu.memcpy %n, %m : memref<4x4xf32>, memref<4x4xf32, strided<[8, 1]>>
  return
}

// -----

func.func @value(%m: memref<4xf32>, %x: f32) {
  // expected-error @below {{'gpu.memset' op expects elements of one byte, or a constant whose bytes are all the same}}
  gpu.memset %m, %x : memref<4xf32>, f32
  return
}

// -----

func.func @other(%memory: memref<?xf64>, %n: index) {
  // expected-error @below {{'gpu.create_dn_tensor' op has no lowering to calls of the runtime}}
  %t = gpu.create_dn_tensor %memory, %n : index into memref<?xf64>
  return
}
