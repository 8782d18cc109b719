// Programmatic launches overlap the launch before: their blocks begin before its
// last block has ended, as many as the seed says. What waits, or is ordered in
// another way, gets what the launch before has written.

// DEFINE: %{libs} = %kvcache_emulator,%kvcache_runtime,%mlir_lib_dir/libmlir_c_runner_utils.so,%mlir_lib_dir/libmlir_runner_utils.so
// DEFINE: %{case} =
// DEFINE: %{run} = mlir-runner -entry-point-result=void -shared-libs=%{libs}
// RUN: kvcache-opt %s --kvcache-to-emulator="chip=sm_90a" -o %t.mlir
// RUN: kvcache-opt %s --kvcache-to-emulator="chip=sm_120 sanitize=false" -o %t.plain.mlir
// RUN: %{run} %t.mlir -e main | FileCheck %s
// RUN: env KVCACHE_EMULATOR_SEED=1 %{run} %t.mlir -e main | FileCheck %s
// RUN: env KVCACHE_EMULATOR_SEED=6 KVCACHE_EMULATOR_THREADS=1 %{run} %t.mlir -e main | FileCheck %s
// RUN: env KVCACHE_EMULATOR_SEED=8 KVCACHE_EMULATOR_THREADS=4 %{run} %t.mlir -e main | FileCheck %s
// RUN: %{run} %t.plain.mlir -e main | FileCheck %s
// RUN: env KVCACHE_EMULATOR_SEED=8 %{run} %t.plain.mlir -e main | FileCheck %s

// A block that does not wait reads what was there before, or not.
// RUN: env KVCACHE_EMULATOR_SEED=0 %{run} %t.plain.mlir -e overlap | FileCheck %s --check-prefix=EARLY
// RUN: env KVCACHE_EMULATOR_SEED=6 %{run} %t.plain.mlir -e overlap | FileCheck %s --check-prefix=LATE

module attributes {gpu.container_module} {

gpu.module @kernels {
  gpu.func @write(%m: memref<256xi32>, %out: memref<256xi32>, %flag: memref<1xi32>) kernel {
    %b = gpu.block_id x
    %t = gpu.thread_id x
    %c64 = arith.constant 64 : index
    %base = arith.muli %b, %c64 : index
    %i = arith.addi %base, %t : index
    %n = arith.index_cast %i : index to i32
    nvvm.griddepcontrol launch_dependents
    memref.store %n, %m[%i] : memref<256xi32>
    gpu.return
  }

  gpu.func @wait_then_read(%m: memref<256xi32>, %out: memref<256xi32>, %flag: memref<1xi32>) kernel {
    %b = gpu.block_id x
    %t = gpu.thread_id x
    %c64 = arith.constant 64 : index
    %base = arith.muli %b, %c64 : index
    %i = arith.addi %base, %t : index
    %c255 = arith.constant 255 : index
    %mirror = arith.subi %c255, %i : index
    nvvm.griddepcontrol wait
    %v = memref.load %m[%mirror] : memref<256xi32>
    memref.store %v, %out[%i] : memref<256xi32>
    gpu.return
  }

  gpu.func @write_without_dependents(%m: memref<256xi32>, %out: memref<256xi32>, %flag: memref<1xi32>) kernel {
    %b = gpu.block_id x
    %t = gpu.thread_id x
    %c64 = arith.constant 64 : index
    %base = arith.muli %b, %c64 : index
    %i = arith.addi %base, %t : index
    %n = arith.index_cast %i : index to i32
    memref.store %n, %m[%i] : memref<256xi32>
    gpu.return
  }

  gpu.func @start_and_wait(%m: memref<256xi32>, %out: memref<256xi32>, %flag: memref<1xi32>) kernel {
    %b = gpu.block_id x
    %t = gpu.thread_id x
    %c64 = arith.constant 64 : index
    %base = arith.muli %b, %c64 : index
    %i = arith.addi %base, %t : index
    %c255 = arith.constant 255 : index
    %mirror = arith.subi %c255, %i : index
    nvvm.griddepcontrol launch_dependents
    nvvm.griddepcontrol wait
    %v = memref.load %m[%mirror] : memref<256xi32>
    memref.store %v, %out[%i] : memref<256xi32>
    gpu.return
  }

  gpu.func @one_thread_waits_for_all(%m: memref<256xi32>, %out: memref<256xi32>, %flag: memref<1xi32>) kernel {
    %b = gpu.block_id x
    %t = gpu.thread_id x
    %c64 = arith.constant 64 : index
    %base = arith.muli %b, %c64 : index
    %i = arith.addi %base, %t : index
    %c255 = arith.constant 255 : index
    %mirror = arith.subi %c255, %i : index
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
    %b = gpu.block_id x
    %t = gpu.thread_id x
    %c64 = arith.constant 64 : index
    %base = arith.muli %b, %c64 : index
    %i = arith.addi %base, %t : index
    %c255 = arith.constant 255 : index
    %mirror = arith.subi %c255, %i : index
    %w = memref.load %out[%i] : memref<256xi32>
    nvvm.griddepcontrol wait
    %v = memref.load %m[%mirror] : memref<256xi32>
    %sum = arith.addi %v, %w : i32
    memref.store %sum, %out[%i] : memref<256xi32>
    gpu.return
  }

  gpu.func @write_and_publish(%m: memref<256xi32>, %out: memref<256xi32>, %flag: memref<1xi32>) kernel {
    %b = gpu.block_id x
    %t = gpu.thread_id x
    %c64 = arith.constant 64 : index
    %base = arith.muli %b, %c64 : index
    %i = arith.addi %base, %t : index
    %n = arith.index_cast %i : index to i32
    memref.store %n, %m[%i] : memref<256xi32>
    nvvm.memory.barrier <gpu>
    gpu.barrier
    nvvm.griddepcontrol launch_dependents
    gpu.return
  }

  gpu.func @read_published(%m: memref<256xi32>, %out: memref<256xi32>, %flag: memref<1xi32>) kernel {
    %b = gpu.block_id x
    %t = gpu.thread_id x
    %c64 = arith.constant 64 : index
    %base = arith.muli %b, %c64 : index
    %i = arith.addi %base, %t : index
    %c255 = arith.constant 255 : index
    %mirror = arith.subi %c255, %i : index
    %v = memref.load %m[%mirror] : memref<256xi32>
    nvvm.griddepcontrol wait
    memref.store %v, %out[%i] : memref<256xi32>
    gpu.return
  }

  gpu.func @raise_flag(%m: memref<256xi32>, %out: memref<256xi32>, %flag: memref<1xi32>) kernel {
    %b = gpu.block_id x
    %t = gpu.thread_id x
    %c64 = arith.constant 64 : index
    %base = arith.muli %b, %c64 : index
    %i = arith.addi %base, %t : index
    %n = arith.index_cast %i : index to i32
    nvvm.griddepcontrol launch_dependents
    memref.store %n, %m[%i] : memref<256xi32>
    gpu.barrier
    %index = memref.extract_aligned_pointer_as_index %flag : memref<1xi32> -> index
    %number = arith.index_cast %index : index to i64
    %g = llvm.inttoptr %number : i64 to !llvm.ptr<1>
    %one = llvm.mlir.constant(1 : i32) : i32
    %c0 = arith.constant 0 : index
    %is_first = arith.cmpi eq, %t, %c0 : index
    scf.if %is_first {
      nvvm.memory.barrier <gpu>
      %old = llvm.atomicrmw add %g, %one monotonic : !llvm.ptr<1>, i32
    }
    gpu.return
  }

  gpu.func @read_after_flag(%m: memref<256xi32>, %out: memref<256xi32>, %flag: memref<1xi32>) kernel {
    %b = gpu.block_id x
    %t = gpu.thread_id x
    %c64 = arith.constant 64 : index
    %base = arith.muli %b, %c64 : index
    %i = arith.addi %base, %t : index
    %c255 = arith.constant 255 : index
    %mirror = arith.subi %c255, %i : index
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
    %b = gpu.block_id x
    %t = gpu.thread_id x
    %c64 = arith.constant 64 : index
    %base = arith.muli %b, %c64 : index
    %i = arith.addi %base, %t : index
    nvvm.griddepcontrol wait
    nvvm.griddepcontrol launch_dependents
    %v = memref.load %m[%i] : memref<256xi32>
    %one = arith.constant 1 : i32
    %w = arith.addi %v, %one : i32
    memref.store %w, %m[%i] : memref<256xi32>
    gpu.return
  }

  gpu.func @read(%m: memref<256xi32>, %out: memref<256xi32>, %flag: memref<1xi32>) kernel {
    %b = gpu.block_id x
    %t = gpu.thread_id x
    %c64 = arith.constant 64 : index
    %base = arith.muli %b, %c64 : index
    %i = arith.addi %base, %t : index
    nvvm.griddepcontrol launch_dependents
    %v = memref.load %m[%i] : memref<256xi32>
    memref.store %v, %out[%i] : memref<256xi32>
    gpu.return
  }

  gpu.func @read_too_early(%m: memref<256xi32>, %out: memref<256xi32>, %flag: memref<1xi32>) kernel {
    %b = gpu.block_id x
    %t = gpu.thread_id x
    %c64 = arith.constant 64 : index
    %base = arith.muli %b, %c64 : index
    %i = arith.addi %base, %t : index
    %c255 = arith.constant 255 : index
    %mirror = arith.subi %c255, %i : index
    %v = memref.load %m[%mirror] : memref<256xi32>
    nvvm.griddepcontrol wait
    memref.store %v, %out[%i] : memref<256xi32>
    gpu.return
  }
}

func.func private @printMemrefI32(memref<*xi32>)

func.func @allocate() -> (memref<256xi32>, memref<256xi32>, memref<1xi32>) {
  %zero = arith.constant 0 : i32
  %m = gpu.alloc() : memref<256xi32>
  %out = gpu.alloc() : memref<256xi32>
  %flag = gpu.alloc() : memref<1xi32>
  gpu.memset %m, %zero : memref<256xi32>, i32
  gpu.memset %out, %zero : memref<256xi32>, i32
  gpu.memset %flag, %zero : memref<1xi32>, i32
  return %m, %out, %flag : memref<256xi32>, memref<256xi32>, memref<1xi32>
}

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

func.func @waits() {
  %m, %out, %flag = func.call @allocate() : () -> (memref<256xi32>, memref<256xi32>, memref<1xi32>)
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  gpu.launch_func @kernels::@write blocks in (%c4, %c1, %c1) threads in (%c64, %c1, %c1)
      args(%m : memref<256xi32>, %out : memref<256xi32>, %flag : memref<1xi32>)
  gpu.launch_func @kernels::@wait_then_read blocks in (%c4, %c1, %c1) threads in (%c64, %c1, %c1)
      args(%m : memref<256xi32>, %out : memref<256xi32>, %flag : memref<1xi32>) {kvcache.programmatic}
  func.call @print(%m, %out, %flag) : (memref<256xi32>, memref<256xi32>, memref<1xi32>) -> ()
  return
}

func.func @waits_after_the_end() {
  %m, %out, %flag = func.call @allocate() : () -> (memref<256xi32>, memref<256xi32>, memref<1xi32>)
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  gpu.launch_func @kernels::@write_without_dependents blocks in (%c4, %c1, %c1) threads in (%c64, %c1, %c1)
      args(%m : memref<256xi32>, %out : memref<256xi32>, %flag : memref<1xi32>)
  gpu.launch_func @kernels::@wait_then_read blocks in (%c4, %c1, %c1) threads in (%c64, %c1, %c1)
      args(%m : memref<256xi32>, %out : memref<256xi32>, %flag : memref<1xi32>) {kvcache.programmatic}
  func.call @print(%m, %out, %flag) : (memref<256xi32>, memref<256xi32>, memref<1xi32>) -> ()
  return
}

func.func @starts_before_it_waits() {
  %m, %out, %flag = func.call @allocate() : () -> (memref<256xi32>, memref<256xi32>, memref<1xi32>)
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  gpu.launch_func @kernels::@write blocks in (%c4, %c1, %c1) threads in (%c64, %c1, %c1)
      args(%m : memref<256xi32>, %out : memref<256xi32>, %flag : memref<1xi32>)
  gpu.launch_func @kernels::@start_and_wait blocks in (%c4, %c1, %c1) threads in (%c64, %c1, %c1)
      args(%m : memref<256xi32>, %out : memref<256xi32>, %flag : memref<1xi32>) {kvcache.programmatic}
  func.call @print(%m, %out, %flag) : (memref<256xi32>, memref<256xi32>, memref<1xi32>) -> ()
  return
}

func.func @one_thread_waits_for_all() {
  %m, %out, %flag = func.call @allocate() : () -> (memref<256xi32>, memref<256xi32>, memref<1xi32>)
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  gpu.launch_func @kernels::@write blocks in (%c4, %c1, %c1) threads in (%c64, %c1, %c1)
      args(%m : memref<256xi32>, %out : memref<256xi32>, %flag : memref<1xi32>)
  gpu.launch_func @kernels::@one_thread_waits_for_all blocks in (%c4, %c1, %c1) threads in (%c64, %c1, %c1)
      args(%m : memref<256xi32>, %out : memref<256xi32>, %flag : memref<1xi32>) {kvcache.programmatic}
  func.call @print(%m, %out, %flag) : (memref<256xi32>, memref<256xi32>, memref<1xi32>) -> ()
  return
}

func.func @touches_other_memory() {
  %m, %out, %flag = func.call @allocate() : () -> (memref<256xi32>, memref<256xi32>, memref<1xi32>)
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  gpu.launch_func @kernels::@write blocks in (%c4, %c1, %c1) threads in (%c64, %c1, %c1)
      args(%m : memref<256xi32>, %out : memref<256xi32>, %flag : memref<1xi32>)
  gpu.launch_func @kernels::@touch_other_memory blocks in (%c4, %c1, %c1) threads in (%c64, %c1, %c1)
      args(%m : memref<256xi32>, %out : memref<256xi32>, %flag : memref<1xi32>) {kvcache.programmatic}
  func.call @print(%m, %out, %flag) : (memref<256xi32>, memref<256xi32>, memref<1xi32>) -> ()
  return
}

func.func @reads_what_is_published() {
  %m, %out, %flag = func.call @allocate() : () -> (memref<256xi32>, memref<256xi32>, memref<1xi32>)
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  gpu.launch_func @kernels::@write_and_publish blocks in (%c4, %c1, %c1) threads in (%c64, %c1, %c1)
      args(%m : memref<256xi32>, %out : memref<256xi32>, %flag : memref<1xi32>)
  gpu.launch_func @kernels::@read_published blocks in (%c4, %c1, %c1) threads in (%c64, %c1, %c1)
      args(%m : memref<256xi32>, %out : memref<256xi32>, %flag : memref<1xi32>) {kvcache.programmatic}
  func.call @print(%m, %out, %flag) : (memref<256xi32>, memref<256xi32>, memref<1xi32>) -> ()
  return
}

func.func @reads_after_a_flag() {
  %m, %out, %flag = func.call @allocate() : () -> (memref<256xi32>, memref<256xi32>, memref<1xi32>)
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  gpu.launch_func @kernels::@raise_flag blocks in (%c4, %c1, %c1) threads in (%c64, %c1, %c1)
      args(%m : memref<256xi32>, %out : memref<256xi32>, %flag : memref<1xi32>)
  gpu.launch_func @kernels::@read_after_flag blocks in (%c4, %c1, %c1) threads in (%c64, %c1, %c1)
      args(%m : memref<256xi32>, %out : memref<256xi32>, %flag : memref<1xi32>) {kvcache.programmatic}
  func.call @print(%m, %out, %flag) : (memref<256xi32>, memref<256xi32>, memref<1xi32>) -> ()
  return
}

func.func @chain() {
  %m, %out, %flag = func.call @allocate() : () -> (memref<256xi32>, memref<256xi32>, memref<1xi32>)
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  gpu.launch_func @kernels::@write blocks in (%c4, %c1, %c1) threads in (%c64, %c1, %c1)
      args(%m : memref<256xi32>, %out : memref<256xi32>, %flag : memref<1xi32>)
  gpu.launch_func @kernels::@increment blocks in (%c4, %c1, %c1) threads in (%c64, %c1, %c1)
      args(%m : memref<256xi32>, %out : memref<256xi32>, %flag : memref<1xi32>) {kvcache.programmatic}
  gpu.launch_func @kernels::@increment blocks in (%c4, %c1, %c1) threads in (%c64, %c1, %c1)
      args(%m : memref<256xi32>, %out : memref<256xi32>, %flag : memref<1xi32>) {kvcache.programmatic}
  gpu.launch_func @kernels::@increment blocks in (%c4, %c1, %c1) threads in (%c64, %c1, %c1)
      args(%m : memref<256xi32>, %out : memref<256xi32>, %flag : memref<1xi32>) {kvcache.programmatic}
  gpu.launch_func @kernels::@wait_then_read blocks in (%c4, %c1, %c1) threads in (%c64, %c1, %c1)
      args(%m : memref<256xi32>, %out : memref<256xi32>, %flag : memref<1xi32>) {kvcache.programmatic}
  func.call @print(%m, %out, %flag) : (memref<256xi32>, memref<256xi32>, memref<1xi32>) -> ()
  return
}

func.func @reads_two_launches_later() {
  %m, %out, %flag = func.call @allocate() : () -> (memref<256xi32>, memref<256xi32>, memref<1xi32>)
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  gpu.launch_func @kernels::@write blocks in (%c4, %c1, %c1) threads in (%c64, %c1, %c1)
      args(%m : memref<256xi32>, %out : memref<256xi32>, %flag : memref<1xi32>)
  gpu.launch_func @kernels::@start_and_wait blocks in (%c4, %c1, %c1) threads in (%c64, %c1, %c1)
      args(%m : memref<256xi32>, %out : memref<256xi32>, %flag : memref<1xi32>) {kvcache.programmatic}
  gpu.launch_func @kernels::@wait_then_read blocks in (%c4, %c1, %c1) threads in (%c64, %c1, %c1)
      args(%m : memref<256xi32>, %out : memref<256xi32>, %flag : memref<1xi32>) {kvcache.programmatic}
  func.call @print(%m, %out, %flag) : (memref<256xi32>, memref<256xi32>, memref<1xi32>) -> ()
  return
}

func.func @no_launch_before() {
  %m, %out, %flag = func.call @allocate() : () -> (memref<256xi32>, memref<256xi32>, memref<1xi32>)
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  gpu.launch_func @kernels::@wait_then_read blocks in (%c4, %c1, %c1) threads in (%c64, %c1, %c1)
      args(%m : memref<256xi32>, %out : memref<256xi32>, %flag : memref<1xi32>) {kvcache.programmatic}
  func.call @print(%m, %out, %flag) : (memref<256xi32>, memref<256xi32>, memref<1xi32>) -> ()
  return
}

func.func @not_programmatic() {
  %m, %out, %flag = func.call @allocate() : () -> (memref<256xi32>, memref<256xi32>, memref<1xi32>)
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  gpu.launch_func @kernels::@write blocks in (%c4, %c1, %c1) threads in (%c64, %c1, %c1)
      args(%m : memref<256xi32>, %out : memref<256xi32>, %flag : memref<1xi32>)
  gpu.launch_func @kernels::@read blocks in (%c4, %c1, %c1) threads in (%c64, %c1, %c1)
      args(%m : memref<256xi32>, %out : memref<256xi32>, %flag : memref<1xi32>)
  func.call @print(%m, %out, %flag) : (memref<256xi32>, memref<256xi32>, memref<1xi32>) -> ()
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

// EARLY: [0, 0, 191, 190]
// LATE: [193, 192, 191, 190]
func.func @overlap() {
  %m, %out, %flag = func.call @allocate() : () -> (memref<256xi32>, memref<256xi32>, memref<1xi32>)
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  gpu.launch_func @kernels::@write blocks in (%c4, %c1, %c1) threads in (%c64, %c1, %c1)
      args(%m : memref<256xi32>, %out : memref<256xi32>, %flag : memref<1xi32>)
  gpu.launch_func @kernels::@read_too_early blocks in (%c4, %c1, %c1) threads in (%c64, %c1, %c1)
      args(%m : memref<256xi32>, %out : memref<256xi32>, %flag : memref<1xi32>) {kvcache.programmatic}
  func.call @print(%m, %out, %flag) : (memref<256xi32>, memref<256xi32>, memref<1xi32>) -> ()
  return
}

}
