// The memory requests of kernels, as a table for each launch.

// DEFINE: %{libs} = %kvcache_emulator,%kvcache_runtime,%mlir_lib_dir/libmlir_c_runner_utils.so
// DEFINE: %{run} = mlir-runner -e main -entry-point-result=void -shared-libs=%{libs}
// RUN: kvcache-opt %s --kvcache-to-emulator="chip=sm_90a meter=true" -o %t.mlir
// RUN: env KVCACHE_EMULATOR_METER=1 %{run} %t.mlir 2>&1 | FileCheck %s --match-full-lines --strict-whitespace
// RUN: env KVCACHE_EMULATOR_METER=1 KVCACHE_EMULATOR_SEED=5 %{run} %t.mlir 2>&1 | FileCheck %s --match-full-lines --strict-whitespace
// RUN: env KVCACHE_EMULATOR_METER=0 %{run} %t.mlir 2>&1 | count 0
// RUN: kvcache-opt %s --kvcache-to-emulator="chip=sm_90a" | env KVCACHE_EMULATOR_METER=1 %{run} 2>&1 | count 0

// Columns of a tile of 32 x 32: 32 words of one bank. Memory of the device
// begins at a sector.

//      CHECK:@kernels::@transpose on sm_90a: 2 x 1 x 1 blocks of 32 x 1 x 1 threads
// CHECK-NEXT:  global read          0 bytes
// CHECK-NEXT:                       0 sectors
// CHECK-NEXT:  global written     256 bytes
// CHECK-NEXT:                       8 sectors
// CHECK-NEXT:  global requests      2
// CHECK-NEXT:  shared requests      4
// CHECK-NEXT:  shared wavefronts  128
// CHECK-NEXT:  bank conflicts     124
//      CHECK:@kernels::@transpose on sm_90a: 1 x 1 x 1 blocks of 32 x 1 x 1 threads
// CHECK-NEXT:  global read          0 bytes
// CHECK-NEXT:                       0 sectors
// CHECK-NEXT:  global written     128 bytes

#shared = #gpu.address_space<workgroup>

module attributes {gpu.container_module} {

gpu.module @kernels {
  gpu.func @transpose(%out: memref<64xf32>) workgroup(%tile: memref<32x32xf32, #shared>) kernel {
    %t = gpu.thread_id x
    %b = gpu.block_id x
    %c32 = arith.constant 32 : index
    %first = arith.muli %b, %c32 : index
    %i = arith.addi %first, %t : index
    %c0 = arith.constant 0 : index
    %one = arith.constant 1.0 : f32
    memref.store %one, %tile[%t, %c0] : memref<32x32xf32, #shared>
    %v = memref.load %tile[%t, %c0] : memref<32x32xf32, #shared>
    memref.store %v, %out[%i] : memref<64xf32>
    gpu.return
  }
}

func.func @main() {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c32 = arith.constant 32 : index
  %out = gpu.alloc() : memref<64xf32>
  gpu.launch_func @kernels::@transpose blocks in (%c2, %c1, %c1) threads in (%c32, %c1, %c1)
      args(%out : memref<64xf32>)
  gpu.launch_func @kernels::@transpose blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1)
      args(%out : memref<64xf32>)
  gpu.dealloc %out : memref<64xf32>
  return
}

}
