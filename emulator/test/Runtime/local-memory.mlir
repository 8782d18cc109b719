// Memory of a thread: what the body of a loop allocates lives as long as the body.

// DEFINE: %{libs} = %kvcache_emulator,%kvcache_runtime,%mlir_lib_dir/libmlir_c_runner_utils.so,%mlir_lib_dir/libmlir_runner_utils.so
// DEFINE: %{run} = mlir-runner -e main -entry-point-result=void -shared-libs=%{libs}
// RUN: kvcache-opt %s --kvcache-to-emulator="chip=sm_90a" | %{run} | FileCheck %s

// CHECK: [499999500000]

module attributes {gpu.container_module} {

gpu.module @kernels {
  gpu.func @allocates_in_a_loop(%n: index, %out: memref<1xindex>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %c0) -> (index) {
      %place = arith.remui %i, %c1 : index
      %memory = memref.alloca() : memref<8xindex>
      memref.store %i, %memory[%place] : memref<8xindex>
      gpu.barrier
      %x = memref.load %memory[%place] : memref<8xindex>
      %next = arith.addi %s, %x : index
      scf.yield %next : index
    }
    memref.store %sum, %out[%c0] : memref<1xindex>
    gpu.return
  }
}

func.func private @printMemrefI64(memref<*xi64>) attributes {llvm.emit_c_interface}

func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 1000000 : index
  %out = gpu.alloc host_shared () : memref<1xindex>
  gpu.launch_func @kernels::@allocates_in_a_loop blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
      args(%n : index, %out : memref<1xindex>)
  %sum = memref.load %out[%c0] : memref<1xindex>
  %sum_i64 = arith.index_cast %sum : index to i64
  %printed = memref.alloc() : memref<1xi64>
  memref.store %sum_i64, %printed[%c0] : memref<1xi64>
  %unranked = memref.cast %printed : memref<1xi64> to memref<*xi64>
  call @printMemrefI64(%unranked) : (memref<*xi64>) -> ()
  return
}
}
