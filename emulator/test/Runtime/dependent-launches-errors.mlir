// Reports of programmatic launches: of accesses that are not ordered after
// the launch before, and of launches that no thread waits for. They
// are the same whether launches overlap or not.

// RUN: %add_launches %s | kvcache-opt --kvcache-to-emulator="chip=sm_90a" -o %t.mlir
// RUN: env KVCACHE_EMULATOR_SEED=0 %emulator_tests/kvcache-run-cases %t.mlir --shared-libs=%kvcache_emulator,%kvcache_runtime | FileCheck %s -DFILE="<stdin>"
// RUN: env KVCACHE_EMULATOR_SEED=1 %emulator_tests/kvcache-run-cases %t.mlir --shared-libs=%kvcache_emulator,%kvcache_runtime | FileCheck %s -DFILE="<stdin>"
// RUN: env KVCACHE_EMULATOR_SEED=6 %emulator_tests/kvcache-run-cases %t.mlir --shared-libs=%kvcache_emulator,%kvcache_runtime | FileCheck %s -DFILE="<stdin>"

// PRELUDE: dependent-launches.mlir

module attributes {gpu.container_module} {

gpu.module @kernels {
  memref.global @tile : memref<256xi32, 3>

  gpu.func @read_too_early(%m: memref<256xi32>, %out: memref<256xi32>, %flag: memref<1xi32>) kernel {
    %i, %mirror = func.call @indices() : () -> (index, index)
    // CHECK-LABEL: run @read_too_early:
    // CHECK: [[FILE]]:[[#@LINE+11]]:{{[0-9]+}}: llvm.load: thread ({{[0-9]+}}, 0, 0) of block ({{[0-9]}}, 0, 0) reads 4 bytes at byte {{[0-9]+}} of an allocation of 1024 bytes, which block ({{[0-9]}}, 0, 0) of @kernels::@write writes in llvm.store at [[FILE]]:{{.*}}, a launch that may still run: the thread has not waited for it (griddepcontrol.wait)
    // CHECK-LABEL: run @read_too_early_after_the_end:
    // CHECK: [[FILE]]:[[#@LINE+9]]:{{[0-9]+}}: llvm.load: thread ({{[0-9]+}}, 0, 0) of block ({{[0-9]}}, 0, 0) reads 4 bytes at byte {{[0-9]+}} of an allocation of 1024 bytes, which block ({{[0-9]}}, 0, 0) of @kernels::@write_without_dependents writes in llvm.store at [[FILE]]:{{.*}}, a launch that may still run
    // CHECK-LABEL: run @read_too_early_after_publishing_too_late:
    // CHECK: [[FILE]]:[[#@LINE+7]]:{{[0-9]+}}: llvm.load: thread ({{[0-9]+}}, 0, 0) of block ({{[0-9]}}, 0, 0) reads 4 bytes at byte {{[0-9]+}} of an allocation of 1024 bytes, which block ({{[0-9]}}, 0, 0) of @kernels::@publish_too_late writes in llvm.store
    // CHECK-LABEL: run @read_too_early_after_publishing_by_each_thread:
    // CHECK: [[FILE]]:[[#@LINE+5]]:{{[0-9]+}}: llvm.load: thread ({{[0-9]+}}, 0, 0) of block ({{[0-9]}}, 0, 0) reads 4 bytes at byte {{[0-9]+}} of an allocation of 1024 bytes, which block ({{[0-9]}}, 0, 0) of @kernels::@publish_by_each_thread writes in llvm.store
    // CHECK-LABEL: run @read_too_early_without_fence:
    // CHECK: [[FILE]]:[[#@LINE+3]]:{{[0-9]+}}: llvm.load: thread ({{[0-9]+}}, 0, 0) of block ({{[0-9]}}, 0, 0) reads 4 bytes at byte {{[0-9]+}} of an allocation of 1024 bytes, which block ({{[0-9]}}, 0, 0) of @kernels::@write_without_fence writes in llvm.store
    // CHECK-LABEL: run @read_two_launches_too_early:
    // CHECK: [[FILE]]:[[#@LINE+1]]:{{[0-9]+}}: llvm.load: thread ({{[0-9]+}}, 0, 0) of block ({{[0-9]}}, 0, 0) reads 4 bytes at byte {{[0-9]+}} of an allocation of 1024 bytes, which block ({{[0-9]}}, 0, 0) of @kernels::@write writes in llvm.store
    %v = memref.load %m[%mirror] : memref<256xi32>
    nvvm.griddepcontrol wait
    memref.store %v, %out[%i] : memref<256xi32>
    gpu.return
  }

  gpu.func @publish_too_late(%m: memref<256xi32>, %out: memref<256xi32>, %flag: memref<1xi32>) kernel {
    %i = func.call @index() : () -> index
    %n = arith.index_cast %i : index to i32
    nvvm.griddepcontrol launch_dependents
    memref.store %n, %m[%i] : memref<256xi32>
    nvvm.memory.barrier <gpu>
    gpu.return
  }

  gpu.func @publish_by_each_thread(%m: memref<256xi32>, %out: memref<256xi32>, %flag: memref<1xi32>) kernel {
    %i = func.call @index() : () -> index
    %n = arith.index_cast %i : index to i32
    memref.store %n, %m[%i] : memref<256xi32>
    nvvm.memory.barrier <gpu>
    nvvm.griddepcontrol launch_dependents
    gpu.return
  }

  gpu.func @write_without_fence(%m: memref<256xi32>, %out: memref<256xi32>, %flag: memref<1xi32>) kernel {
    %i = func.call @index() : () -> index
    %n = arith.index_cast %i : index to i32
    memref.store %n, %m[%i] : memref<256xi32>
    gpu.barrier
    nvvm.griddepcontrol launch_dependents
    gpu.return
  }

  gpu.func @write_too_early(%m: memref<256xi32>, %out: memref<256xi32>, %flag: memref<1xi32>) kernel {
    %i, %mirror = func.call @indices() : () -> (index, index)
    %seven = arith.constant 7 : i32
    // CHECK-LABEL: run @write_too_early_after_a_write:
    // CHECK: [[FILE]]:[[#@LINE+3]]:{{[0-9]+}}: llvm.store: thread ({{[0-9]+}}, 0, 0) of block ({{[0-9]}}, 0, 0) writes 4 bytes at byte {{[0-9]+}} of an allocation of 1024 bytes, which block ({{[0-9]}}, 0, 0) of @kernels::@write writes in llvm.store
    // CHECK-LABEL: run @write_too_early_after_a_read:
    // CHECK: [[FILE]]:[[#@LINE+1]]:{{[0-9]+}}: llvm.store: thread ({{[0-9]+}}, 0, 0) of block ({{[0-9]}}, 0, 0) writes 4 bytes at byte {{[0-9]+}} of an allocation of 1024 bytes, which block ({{[0-9]}}, 0, 0) of @kernels::@read reads in llvm.load
    memref.store %seven, %m[%mirror] : memref<256xi32>
    nvvm.griddepcontrol wait
    gpu.return
  }

  gpu.func @one_thread_waits(%m: memref<256xi32>, %out: memref<256xi32>, %flag: memref<1xi32>) kernel {
    %t = gpu.thread_id x
    %i, %mirror = func.call @indices() : () -> (index, index)
    %c0 = arith.constant 0 : index
    %is_first = arith.cmpi eq, %t, %c0 : index
    scf.if %is_first {
      nvvm.griddepcontrol wait
    }
    // CHECK-LABEL: run @other_threads_do_not_wait:
    // CHECK: [[FILE]]:[[#@LINE+1]]:{{[0-9]+}}: llvm.load: thread ({{[0-9]+}}, 0, 0) of block ({{[0-9]}}, 0, 0) reads 4 bytes at byte {{[0-9]+}} of an allocation of 1024 bytes, which block ({{[0-9]}}, 0, 0) of @kernels::@write writes in llvm.store
    %v = memref.load %m[%mirror] : memref<256xi32>
    memref.store %v, %out[%i] : memref<256xi32>
    gpu.return
  }

  gpu.func @copy_too_early(%m: memref<256xi32>, %out: memref<256xi32>, %flag: memref<1xi32>) kernel {
    %i = func.call @index() : () -> index
    %pointer = memref.extract_aligned_pointer_as_index %m : memref<256xi32> -> index
    %at = arith.index_cast %pointer : index to i64
    %from = llvm.inttoptr %at : i64 to !llvm.ptr<1>
    %own = arith.index_cast %i : index to i64
    %piece = llvm.getelementptr %from[%own] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32
    %tile = memref.get_global @tile : memref<256xi32, 3>
    %there = memref.extract_aligned_pointer_as_index %tile : memref<256xi32, 3> -> index
    %here = arith.index_cast %there : index to i64
    %to = llvm.inttoptr %here : i64 to !llvm.ptr<3>
    %slot = llvm.getelementptr %to[%own] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, i32
    // CHECK-LABEL: run @copy_too_early:
    // CHECK: [[FILE]]:[[#@LINE+1]]:{{[0-9]+}}: nvvm.cp.async.shared.global: thread ({{[0-9]+}}, 0, 0) of block ({{[0-9]}}, 0, 0) {{reads|issues a copy that reads}} 4 bytes at byte {{[0-9]+}} of an allocation of 1024 bytes, which block ({{[0-9]}}, 0, 0) of @kernels::@write writes in llvm.store
    nvvm.cp.async.shared.global %slot, %piece, 4, cache = ca : !llvm.ptr<3>, !llvm.ptr<1>
    nvvm.cp.async.commit.group
    nvvm.cp.async.wait.group 0
    nvvm.griddepcontrol wait
    %v = memref.load %tile[%i] : memref<256xi32, 3>
    memref.store %v, %out[%i] : memref<256xi32>
    gpu.return
  }

  gpu.func @read_after_relaxed_flag(%m: memref<256xi32>, %out: memref<256xi32>, %flag: memref<1xi32>) kernel {
    %i, %mirror = func.call @indices() : () -> (index, index)
    %index = memref.extract_aligned_pointer_as_index %flag : memref<1xi32> -> index
    %number = arith.index_cast %index : index to i64
    %g = llvm.inttoptr %number : i64 to !llvm.ptr<1>
    %four = llvm.mlir.constant(4 : i32) : i32
    scf.while : () -> () {
      %value = llvm.load %g atomic syncscope("device") monotonic {alignment = 4 : i64} : !llvm.ptr<1> -> i32
      %waits = llvm.icmp "ult" %value, %four : i32
      scf.condition(%waits)
    } do {
      scf.yield
    }
    // CHECK-LABEL: run @flag_that_orders_nothing:
    // CHECK: [[FILE]]:[[#@LINE+1]]:{{[0-9]+}}: llvm.load: thread ({{[0-9]+}}, 0, 0) of block ({{[0-9]}}, 0, 0) reads 4 bytes at byte {{[0-9]+}} of an allocation of 1024 bytes, which block ({{[0-9]}}, 0, 0) of @kernels::@raise_flag writes in llvm.store
    %v = memref.load %m[%mirror] : memref<256xi32>
    nvvm.griddepcontrol wait
    memref.store %v, %out[%i] : memref<256xi32>
    gpu.return
  }

  gpu.func @wait_then_read_constant(%m: memref<256xi32>, %out: memref<256xi32>, %flag: memref<1xi32>) kernel {
    %t = gpu.thread_id x
    nvvm.griddepcontrol wait
    %index = memref.extract_aligned_pointer_as_index %m : memref<256xi32> -> index
    %number = arith.index_cast %index : index to i64
    %g = llvm.inttoptr %number : i64 to !llvm.ptr<1>
    // CHECK-LABEL: run @written_before_as_constant:
    // CHECK: [[FILE]]:[[#@LINE+1]]:10: llvm.load: thread ({{[0-9]+}}, 0, 0) of block ({{[0-9]+}}, 0, 0) reads 4 bytes at byte 0 of an allocation of 1024 bytes, which block (0, 0, 0) of @kernels::@write writes, as memory that is constant during the kernel (ld.global.nc)
    %v = llvm.load %g invariant : !llvm.ptr<1> -> i32
    memref.store %v, %out[%t] : memref<256xi32>
    gpu.return
  }

  // CHECK-LABEL: run @no_thread_waits:
  // CHECK: [[FILE]]:[[#@LINE+1]]:3: kernel @kernels::@never_wait has a programmatic launch, and none of its threads waits for the launch before (griddepcontrol.wait): later launches may begin before that has ended
  gpu.func @never_wait(%m: memref<256xi32>, %out: memref<256xi32>, %flag: memref<1xi32>) kernel {
    %i = func.call @index() : () -> index
    %seven = arith.constant 7 : i32
    memref.store %seven, %out[%i] : memref<256xi32>
    gpu.return
  }

  gpu.func @fail_late(%m: memref<256xi32>, %out: memref<256xi32>, %flag: memref<1xi32>) kernel {
    %b = gpu.block_id x
    %c3 = arith.constant 3 : index
    %is_last = arith.cmpi eq, %b, %c3 : index
    nvvm.griddepcontrol launch_dependents
    scf.if %is_last {
      // CHECK-LABEL: run @error_of_the_launch_before:
      // CHECK: [[FILE]]:{{[0-9]+}}:3: launch of @kernels::@wait_then_read: in the launch of @kernels::@fail_late before: [[FILE]]:[[#@LINE+1]]:7: llvm.intr.trap: thread ({{[0-9]+}}, 0, 0) of block (3, 0, 0) traps
      llvm.intr.trap
    }
    gpu.return
  }

}

// LAUNCHES @read_too_early: 64 threads, 4 blocks, @write, programmatic @read_too_early
// LAUNCHES @read_too_early_after_the_end: 64 threads, 4 blocks, @write_without_dependents, programmatic @read_too_early
// LAUNCHES @read_too_early_after_publishing_too_late: 64 threads, 4 blocks, @publish_too_late, programmatic @read_too_early
// LAUNCHES @read_too_early_after_publishing_by_each_thread: 64 threads, 4 blocks, @publish_by_each_thread, programmatic @read_too_early
// LAUNCHES @read_too_early_without_fence: 64 threads, 4 blocks, @write_without_fence, programmatic @read_too_early
// LAUNCHES @read_two_launches_too_early: 64 threads, 4 blocks, @write, programmatic @start_and_wait, programmatic @read_too_early
// LAUNCHES @write_too_early_after_a_write: 64 threads, 4 blocks, @write, programmatic @write_too_early
// LAUNCHES @write_too_early_after_a_read: 64 threads, 4 blocks, @read, programmatic @write_too_early
// LAUNCHES @other_threads_do_not_wait: 64 threads, 4 blocks, @write, programmatic @one_thread_waits
// LAUNCHES @copy_too_early: 64 threads, 4 blocks, @write, programmatic @copy_too_early
// LAUNCHES @flag_that_orders_nothing: 64 threads, 4 blocks, @raise_flag, programmatic @read_after_relaxed_flag
// LAUNCHES @written_before_as_constant: 64 threads, 4 blocks, @write, programmatic @wait_then_read_constant
// LAUNCHES @no_thread_waits: 64 threads, 4 blocks, @write, programmatic @never_wait
// LAUNCHES @error_of_the_launch_before: 64 threads, 4 blocks, @fail_late, programmatic @wait_then_read

}
