// UNSUPPORTED: quick

// Programmatic launches overlap the launch before: their blocks begin before its
// last block has ended, as many as the seed says. What waits, or is ordered in
// another way, gets what the launch before has written.

// DEFINE: %{libs} = %kvcache_emulator,%kvcache_runtime,%mlir_lib_dir/libmlir_c_runner_utils.so,%mlir_lib_dir/libmlir_runner_utils.so
// DEFINE: %{case} =
// DEFINE: %{run} = mlir-runner -entry-point-result=void -shared-libs=%{libs}
// RUN: %add_launches %s | kvcache-opt --kvcache-to-emulator="chip=sm_90a" -o %t.mlir
// RUN: %add_launches %s | kvcache-opt --kvcache-to-emulator="chip=sm_120 sanitize=false" -o %t.plain.mlir
// RUN: %{run} %t.mlir -e main | FileCheck %s
// RUN: env KVCACHE_EMULATOR_SEED=1 %{run} %t.mlir -e main | FileCheck %s
// RUN: env KVCACHE_EMULATOR_SEED=6 KVCACHE_EMULATOR_THREADS=1 %{run} %t.mlir -e main | FileCheck %s
// RUN: env KVCACHE_EMULATOR_SEED=8 KVCACHE_EMULATOR_THREADS=4 %{run} %t.mlir -e main | FileCheck %s
// RUN: %{run} %t.plain.mlir -e main | FileCheck %s
// RUN: env KVCACHE_EMULATOR_SEED=8 %{run} %t.plain.mlir -e main | FileCheck %s

// A block that does not wait reads what was there before, or not.
// RUN: env KVCACHE_EMULATOR_SEED=0 %{run} %t.plain.mlir -e overlap | FileCheck %s --check-prefix=EARLY
// RUN: env KVCACHE_EMULATOR_SEED=6 %{run} %t.plain.mlir -e overlap | FileCheck %s --check-prefix=LATE

// PRELUDE: dependent-launches.mlir

module attributes {gpu.container_module} {

gpu.module @kernels {
  gpu.func @one_thread_waits_for_all(%m: memref<256xi32>, %out: memref<256xi32>, %flag: memref<1xi32>) kernel {
    %t = gpu.thread_id x
    %i, %mirror = func.call @indices() : () -> (index, index)
    %c0 = arith.constant 0 : index
    %is_first = arith.cmpi eq, %t, %c0 : index
    scf.if %is_first {
      nvvm.griddepcontrol wait
    }
    gpu.barrier
    %v = memref.load %m[%mirror] : memref<256xi32>
    memref.store %v, %out[%i] : memref<256xi32>
    gpu.return
  }

  gpu.func @touch_other_memory(%m: memref<256xi32>, %out: memref<256xi32>, %flag: memref<1xi32>) kernel {
    %i, %mirror = func.call @indices() : () -> (index, index)
    %w = memref.load %out[%i] : memref<256xi32>
    nvvm.griddepcontrol wait
    %v = memref.load %m[%mirror] : memref<256xi32>
    %sum = arith.addi %v, %w : i32
    memref.store %sum, %out[%i] : memref<256xi32>
    gpu.return
  }

  gpu.func @write_and_publish(%m: memref<256xi32>, %out: memref<256xi32>, %flag: memref<1xi32>) kernel {
    %i = func.call @index() : () -> index
    %n = arith.index_cast %i : index to i32
    memref.store %n, %m[%i] : memref<256xi32>
    nvvm.memory.barrier <gpu>
    gpu.barrier
    nvvm.griddepcontrol launch_dependents
    gpu.return
  }

  gpu.func @read_published(%m: memref<256xi32>, %out: memref<256xi32>, %flag: memref<1xi32>) kernel {
    %i, %mirror = func.call @indices() : () -> (index, index)
    %v = memref.load %m[%mirror] : memref<256xi32>
    nvvm.griddepcontrol wait
    memref.store %v, %out[%i] : memref<256xi32>
    gpu.return
  }

  gpu.func @read_after_flag(%m: memref<256xi32>, %out: memref<256xi32>, %flag: memref<1xi32>) kernel {
    %i, %mirror = func.call @indices() : () -> (index, index)
    %index = memref.extract_aligned_pointer_as_index %flag : memref<1xi32> -> index
    %number = arith.index_cast %index : index to i64
    %g = llvm.inttoptr %number : i64 to !llvm.ptr<1>
    %four = llvm.mlir.constant(4 : i32) : i32
    scf.while : () -> () {
      %value = llvm.load %g atomic syncscope("device") acquire {alignment = 4 : i64} : !llvm.ptr<1> -> i32
      %waits = llvm.icmp "ult" %value, %four : i32
      scf.condition(%waits)
    } do {
      scf.yield
    }
    %v = memref.load %m[%mirror] : memref<256xi32>
    nvvm.griddepcontrol wait
    memref.store %v, %out[%i] : memref<256xi32>
    gpu.return
  }

  gpu.func @increment(%m: memref<256xi32>, %out: memref<256xi32>, %flag: memref<1xi32>) kernel {
    %i = func.call @index() : () -> index
    nvvm.griddepcontrol wait
    nvvm.griddepcontrol launch_dependents
    %v = memref.load %m[%i] : memref<256xi32>
    %one = arith.constant 1 : i32
    %w = arith.addi %v, %one : i32
    memref.store %w, %m[%i] : memref<256xi32>
    gpu.return
  }

  gpu.func @read_too_early(%m: memref<256xi32>, %out: memref<256xi32>, %flag: memref<1xi32>) kernel {
    %i, %mirror = func.call @indices() : () -> (index, index)
    %v = memref.load %m[%mirror] : memref<256xi32>
    nvvm.griddepcontrol wait
    memref.store %v, %out[%i] : memref<256xi32>
    gpu.return
  }
}

func.func private @printMemrefI32(memref<*xi32>)

// LAUNCHES @waits: 64 threads, 4 blocks, @write, programmatic @wait_then_read, then @print
// LAUNCHES @waits_after_the_end: 64 threads, 4 blocks, @write_without_dependents, programmatic @wait_then_read, then @print
// LAUNCHES @starts_before_it_waits: 64 threads, 4 blocks, @write, programmatic @start_and_wait, then @print
// LAUNCHES @one_thread_waits_for_all: 64 threads, 4 blocks, @write, programmatic @one_thread_waits_for_all, then @print
// LAUNCHES @touches_other_memory: 64 threads, 4 blocks, @write, programmatic @touch_other_memory, then @print
// LAUNCHES @reads_what_is_published: 64 threads, 4 blocks, @write_and_publish, programmatic @read_published, then @print
// LAUNCHES @reads_after_a_flag: 64 threads, 4 blocks, @raise_flag, programmatic @read_after_flag, then @print
// LAUNCHES @chain: 64 threads, 4 blocks, @write, programmatic @increment, programmatic @increment, programmatic @increment, programmatic @wait_then_read, then @print
// LAUNCHES @reads_two_launches_later: 64 threads, 4 blocks, @write, programmatic @start_and_wait, programmatic @wait_then_read, then @print
// LAUNCHES @no_launch_before: 64 threads, 4 blocks, programmatic @wait_then_read, then @print
// LAUNCHES @not_programmatic: 64 threads, 4 blocks, @write, @read, then @print

// EARLY: [0, 0, 191, 190]
// LATE: [193, 192, 191, 190]
// LAUNCHES @overlap: 64 threads, 4 blocks, @write, programmatic @read_too_early, then @print

func.func @print(%m: memref<256xi32>, %out: memref<256xi32>, %flag: memref<1xi32>) {
  %host = memref.alloc() : memref<256xi32>
  gpu.memcpy %host, %out : memref<256xi32>, memref<256xi32>
  %some = memref.subview %host[62] [4] [1] : memref<256xi32> to memref<4xi32, strided<[1], offset: 62>>
  %any = memref.cast %some : memref<4xi32, strided<[1], offset: 62>> to memref<*xi32>
  func.call @printMemrefI32(%any) : (memref<*xi32>) -> ()
  memref.dealloc %host : memref<256xi32>
  gpu.dealloc %m : memref<256xi32>
  gpu.dealloc %out : memref<256xi32>
  gpu.dealloc %flag : memref<1xi32>
  return
}

func.func @main() {
  // CHECK: [193, 192, 191, 190]
  func.call @waits() : () -> ()
  // CHECK: [193, 192, 191, 190]
  func.call @waits_after_the_end() : () -> ()
  // CHECK: [193, 192, 191, 190]
  func.call @starts_before_it_waits() : () -> ()
  // CHECK: [193, 192, 191, 190]
  func.call @one_thread_waits_for_all() : () -> ()
  // CHECK: [193, 192, 191, 190]
  func.call @touches_other_memory() : () -> ()
  // CHECK: [193, 192, 191, 190]
  func.call @reads_what_is_published() : () -> ()
  // CHECK: [193, 192, 191, 190]
  func.call @reads_after_a_flag() : () -> ()
  // CHECK: [196, 195, 194, 193]
  func.call @chain() : () -> ()
  // CHECK: [193, 192, 191, 190]
  func.call @reads_two_launches_later() : () -> ()
  // CHECK: [0, 0, 0, 0]
  func.call @no_launch_before() : () -> ()
  // CHECK: [62, 63, 64, 65]
  func.call @not_programmatic() : () -> ()
  return
}

}
