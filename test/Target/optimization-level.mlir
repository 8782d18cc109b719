// RUN: kvcache-opt %s "--kvcache-to-ptx=chip=sm_90a opt-level=0" --emit-ptx | FileCheck %s --check-prefix=O0
// RUN: kvcache-opt %s "--kvcache-to-ptx=chip=sm_90a opt-level=2" --emit-ptx | FileCheck %s --check-prefix=O2

// LLVM unrolls at level 2, and doesn't at level 0.

// O0:            .visible .entry sum(
// O0:            bra
// O2:            .visible .entry sum(
// O2-NOT:        bra
// O2-COUNT-4:    ld.global.nc.b32
// O2-NOT:        bra
gpu.module @kernels {
  gpu.func @sum(%in: memref<4xf32>, %out: memref<f32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %zero = arith.constant 0.0 : f32
    %sum = scf.for %i = %c0 to %c4 step %c1 iter_args(%so_far = %zero) -> f32 {
      %x = memref.load %in[%i] : memref<4xf32>
      %next = arith.addf %so_far, %x : f32
      scf.yield %next : f32
    }
    memref.store %sum, %out[] : memref<f32>
    gpu.return
  }
}
