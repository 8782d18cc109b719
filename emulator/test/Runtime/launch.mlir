// A kernel runs from the command line: over a grid with a block that is no
// multiple of a warp, on memory of the device.

// DEFINE: %{libs} = %kvcache_emulator,%kvcache_runtime,%mlir_lib_dir/libmlir_c_runner_utils.so,%mlir_lib_dir/libmlir_runner_utils.so
// DEFINE: %{run} = mlir-runner -e main -entry-point-result=void -shared-libs=%{libs}
// RUN: kvcache-opt %s --kvcache-to-emulator="chip=sm_80" | %{run} | FileCheck %s
// RUN: kvcache-opt %s --kvcache-to-emulator="chip=sm_90a sanitize=false" | %{run} | FileCheck %s
// RUN: kvcache-opt %s --kvcache-to-emulator="chip=sm_100a meter=true" | env KVCACHE_EMULATOR_SEED=7 %{run} | FileCheck %s

// A launch with clusters needs a chip that has them.
// RUN: kvcache-opt %s --kvcache-to-emulator="chip=sm_89" | not mlir-runner -e clusters -entry-point-result=void -shared-libs=%{libs} 2>&1 | FileCheck %s --check-prefix=CLUSTERS

// CHECK: [0, 1, 2, 10, 11, 12, 20, 21, 22, 30, 31, 32]

module attributes {gpu.container_module} {

gpu.module @kernels {
  gpu.func @number(%out: memref<4x3xi32>) kernel {
    %b = gpu.block_id x
    %t = gpu.thread_id x
    %c10 = arith.constant 10 : index
    %tens = arith.muli %b, %c10 : index
    %sum = arith.addi %tens, %t : index
    %value = arith.index_cast %sum : index to i32
    memref.store %value, %out[%b, %t] : memref<4x3xi32>
    gpu.return
  }
}

func.func private @printMemrefI32(memref<*xi32>)

func.func @main() {
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %device = gpu.alloc() : memref<4x3xi32>
  gpu.launch_func @kernels::@number blocks in (%c4, %c1, %c1) threads in (%c3, %c1, %c1)
      args(%device : memref<4x3xi32>)
  %host = memref.alloc() : memref<4x3xi32>
  gpu.memcpy %host, %device : memref<4x3xi32>, memref<4x3xi32>
  %flat = memref.collapse_shape %host [[0, 1]] : memref<4x3xi32> into memref<12xi32>
  %any = memref.cast %flat : memref<12xi32> to memref<*xi32>
  func.call @printMemrefI32(%any) : (memref<*xi32>) -> ()
  memref.dealloc %host : memref<4x3xi32>
  gpu.dealloc %device : memref<4x3xi32>
  return
}

// CLUSTERS: kernel @kernels::@number is launched with clusters, which sm_89 does not have: they require sm_90 or newer
func.func @clusters() {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %device = gpu.alloc() : memref<4x3xi32>
  gpu.launch_func @kernels::@number clusters in (%c2, %c1, %c1) blocks in (%c4, %c1, %c1)
      threads in (%c3, %c1, %c1) args(%device : memref<4x3xi32>)
  return
}

}
