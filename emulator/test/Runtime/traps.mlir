// UNSUPPORTED: quick

// Instructions that end a kernel, or a thread of it.

// RUN: kvcache-opt %s --kvcache-to-emulator="chip=sm_90a" -o %t.mlir
// RUN: %emulator_tests/kvcache-run-cases %t.mlir --right=exits --shared-libs=%kvcache_emulator,%kvcache_runtime,%mlir_lib_dir/libmlir_c_runner_utils.so | FileCheck %s -DFILE=%s

module attributes {gpu.container_module} {

gpu.module @kernels {
  gpu.func @asserts() kernel {
    %t = gpu.thread_id x
    %c2 = arith.constant 2 : index
    %is = arith.cmpi ult, %t, %c2 : index
    // CHECK-LABEL: run @asserts:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: llvm.call: thread (2, 0, 0) of block (0, 0, 0) fails an assertion: {{.*}}traps.mlir:[[#@LINE+1]]: {{.*}}: Assertion `there are two` failed
    cf.assert %is, "there are two"
    gpu.return
  }

  gpu.func @traps() kernel {
    %b = gpu.block_id y
    %c1 = arith.constant 1 : index
    %is = arith.cmpi eq, %b, %c1 : index
    cf.cond_br %is, ^trap, ^end
  ^trap:
    // CHECK-LABEL: run @traps:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: llvm.intr.trap: thread (0, 0, 0) of block (0, 1, 0) traps
    llvm.intr.trap
    cf.br ^end
  ^end:
    gpu.return
  }

  gpu.func @breaks() kernel {
    // CHECK-LABEL: run @breaks:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.breakpoint: thread (0, 0, 0) of block (0, 0, 0) traps
    nvvm.breakpoint
    gpu.return
  }

  gpu.func @sleeps() kernel {
    %long = llvm.mlir.constant(1000001 : i32) : i32
    // CHECK-LABEL: run @sleeps:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.nanosleep: thread (0, 0, 0) of block (0, 0, 0) sleeps for 1000001 ns: a thread can sleep for 1000000 ns at most
    nvvm.nanosleep %long
    gpu.return
  }

  // No thread writes what the thread waits for.
  gpu.func @waits() kernel {
    %short = llvm.mlir.constant(0 : i32) : i32
    cf.br ^again
  ^again:
    // CHECK-LABEL: run @waits:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.nanosleep: thread (0, 0, 0) of block (0, 0, 0) spins without end
    nvvm.nanosleep %short
    cf.br ^again
  }

  // Half of the threads leave; the others see the word that thread 1 writes.
  gpu.func @exits(%word: memref<1xi32>) kernel {
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %one = arith.constant 1 : i32
    %short = llvm.mlir.constant(100 : i32) : i32
    %half = arith.remui %t, %c2 : index
    %leaves = arith.cmpi eq, %half, %c0 : index
    cf.cond_br %leaves, ^leave, ^stay
  ^leave:
    nvvm.exit
    cf.br ^stay
  ^stay:
    %sum = memref.atomic_rmw addi %one, %word[%c0] : (i32, memref<1xi32>) -> i32
    cf.br ^again
  ^again:
    nvvm.nanosleep %short
    %zero = arith.constant 0 : i32
    %now = memref.atomic_rmw addi %zero, %word[%c0] : (i32, memref<1xi32>) -> i32
    %two = arith.constant 2 : i32
    %all = arith.cmpi eq, %now, %two : i32
    cf.cond_br %all, ^end, ^again
  ^end:
    %number = arith.index_cast %t : index to i32
    gpu.printf "thread %d has waited for %d\n", %number, %now : i32, i32
    gpu.return
  }
}

func.func @asserts() {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  gpu.launch_func @kernels::@asserts blocks in (%c1, %c1, %c1) threads in (%c4, %c1, %c1)
  return
}

func.func @traps() {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  gpu.launch_func @kernels::@traps blocks in (%c1, %c4, %c1) threads in (%c4, %c1, %c1)
  return
}

func.func @breaks() {
  %c1 = arith.constant 1 : index
  gpu.launch_func @kernels::@breaks blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
  return
}

func.func @sleeps() {
  %c1 = arith.constant 1 : index
  gpu.launch_func @kernels::@sleeps blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
  return
}

func.func @waits() {
  %c1 = arith.constant 1 : index
  gpu.launch_func @kernels::@waits blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
  return
}

// CHECK-LABEL: run @exits:
// CHECK:      thread 1 has waited for 2
// CHECK-NEXT: thread 3 has waited for 2
// CHECK-NOT:  {{.+}}
func.func @exits() {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0 : i32
  %word = gpu.alloc() : memref<1xi32>
  gpu.memset %word, %zero : memref<1xi32>, i32
  gpu.launch_func @kernels::@exits blocks in (%c1, %c1, %c1) threads in (%c4, %c1, %c1)
      args(%word : memref<1xi32>)
  gpu.dealloc %word : memref<1xi32>
  return
}

}
