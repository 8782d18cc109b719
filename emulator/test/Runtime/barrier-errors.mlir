// Errors of barriers: the launch fails with the place in the source.

// RUN: %add_launches %s | kvcache-opt --kvcache-to-emulator="chip=sm_90a" -o %t.mlir
// RUN: %emulator_tests/kvcache-run-cases %t.mlir --shared-libs=%kvcache_emulator,%kvcache_runtime,%mlir_lib_dir/libmlir_c_runner_utils.so | FileCheck %s -DSOURCE="<stdin>"

module attributes {gpu.container_module} {

gpu.module @kernels {
  // LAUNCH: 96 threads
  gpu.func @unequal_counts() kernel {
    %t = nvvm.read.ptx.sreg.tid.x range <i32, 0, 1024> : i32
    %c32 = arith.constant 32 : i32
    %c64 = arith.constant 64 : i32
    %id = arith.constant 3 : i32
    %is_first = arith.cmpi ult, %t, %c32 : i32
    scf.if %is_first {
      nvvm.barrier id = %id number_of_threads = %c64
    } else {
      // CHECK-LABEL: run @unequal_counts:
      // CHECK: [[SOURCE]]:[[#@LINE+1]]:7: nvvm.barrier.arrive: thread (32, 0, 0) of block (0, 0, 0) arrives at barrier 3 for 32 threads, but thread (0, 0, 0) has arrived for 64 threads at [[SOURCE]]:[[#@LINE-3]]:7
      nvvm.barrier.arrive id = %id number_of_threads = %c32
    }
    gpu.return
  }

  // LAUNCH: 96 threads
  gpu.func @odd_count() kernel {
    %id = arith.constant 1 : i32
    %c48 = arith.constant 48 : i32
    // CHECK-LABEL: run @odd_count:
    // CHECK: [[SOURCE]]:[[#@LINE+1]]:5: nvvm.barrier: thread (0, 0, 0) of block (0, 0, 0) expects the number of threads to be a positive multiple of 32, got 48
    nvvm.barrier id = %id number_of_threads = %c48
    gpu.return
  }

  // LAUNCH: 96 threads
  gpu.func @no_such_barrier() kernel {
    %id = arith.constant 16 : i32
    // CHECK-LABEL: run @no_such_barrier:
    // CHECK: [[SOURCE]]:[[#@LINE+1]]:5: nvvm.barrier: thread (0, 0, 0) of block (0, 0, 0) expects the number of a barrier below 16, got 16
    nvvm.barrier id = %id
    gpu.return
  }

  // LAUNCH: 96 threads
  gpu.func @mixed_reductions() kernel {
    %t = nvvm.read.ptx.sreg.tid.x range <i32, 0, 1024> : i32
    %c32 = arith.constant 32 : i32
    %is_first = arith.cmpi ult, %t, %c32 : i32
    scf.if %is_first {
      nvvm.barrier0
    } else {
      // CHECK-LABEL: run @mixed_reductions:
      // CHECK: [[SOURCE]]:[[#@LINE+1]]:15: nvvm.barrier: thread (32, 0, 0) of block (0, 0, 0) arrives at barrier 0 for a reduction, but thread (0, 0, 0) has arrived for no reduction at [[SOURCE]]:[[#@LINE-3]]:7
      %none = nvvm.barrier #nvvm.reduction<or> %t -> i32
    }
    gpu.return
  }

  // All lanes of a warp have to execute the same instruction.
  // LAUNCH: 96 threads
  gpu.func @parts_of_a_warp() kernel {
    %t = nvvm.read.ptx.sreg.tid.x range <i32, 0, 1024> : i32
    %c48 = arith.constant 48 : i32
    %is_first = arith.cmpi ult, %t, %c48 : i32
    %zero = arith.constant 0 : i32
    scf.if %is_first {
      nvvm.barrier0
    } else {
      // CHECK-LABEL: run @parts_of_a_warp:
      // CHECK: [[SOURCE]]:[[#@LINE+1]]:7: nvvm.barrier: thread (48, 0, 0) of block (0, 0, 0) arrives at barrier 0, at which lanes 0 to 15 of its warp arrived in another instruction, at [[SOURCE]]:[[#@LINE-3]]:7
      nvvm.barrier id = %zero
    }
    gpu.return
  }

  // LAUNCH: 96 threads
  gpu.func @too_few_threads() kernel {
    %t = nvvm.read.ptx.sreg.tid.x range <i32, 0, 1024> : i32
    %c32 = arith.constant 32 : i32
    %c64 = arith.constant 64 : i32
    %c96 = arith.constant 96 : i32
    %one = arith.constant 1 : i32
    %two = arith.constant 2 : i32
    %is_first = arith.cmpi ult, %t, %c32 : i32
    %is_last = arith.cmpi uge, %t, %c64 : i32
    scf.if %is_last {
    } else {
      scf.if %is_first {
        // CHECK-LABEL: run @too_few_threads:
        // CHECK:      deadlock: no thread of block (0, 0, 0) can continue
        // CHECK-NEXT: threads 0 to 31 wait in nvvm.barrier at [[SOURCE]]:[[#@LINE+1]]:9 for barrier 1, which has 32 of 96 threads
        nvvm.barrier id = %one number_of_threads = %c96
      } else {
        nvvm.barrier.arrive id = %two number_of_threads = %c96
        // CHECK-NEXT: threads 32 to 63 wait in nvvm.barrier at [[SOURCE]]:[[#@LINE+1]]:9 for barrier 2, which has 64 of 96 threads
        nvvm.barrier id = %two number_of_threads = %c96
      }
    }
    // CHECK-NEXT: threads 64 to 95 have ended
    gpu.return
  }

  // LAUNCH: 96 threads
  gpu.func @too_few_lanes() kernel {
    %t = nvvm.read.ptx.sreg.tid.x range <i32, 0, 1024> : i32
    %all = arith.constant -1 : i32
    %c80 = arith.constant 80 : i32
    %is_first = arith.cmpi ult, %t, %c80 : i32
    scf.if %is_first {
      // CHECK-LABEL: run @too_few_lanes:
      // CHECK:      deadlock: no thread of block (0, 0, 0) can continue
      // CHECK-NEXT: threads 0 to 79 wait in nvvm.barrier0 at [[SOURCE]]:[[#@LINE+1]]:7 for barrier 0, which has 80 of 96 threads
      nvvm.barrier0
    } else {
      // CHECK-NEXT: threads 80 to 95 wait in nvvm.bar.warp.sync at [[SOURCE]]:[[#@LINE+1]]:7 for lanes 0 to 15 of warp 2, in the mask 0xffffffff
      nvvm.bar.warp.sync %all : i32
    }
    gpu.return
  }

  // The other lanes are not waited for, since they have ended.
  // LAUNCH: 96 threads
  gpu.func @half_a_warp() kernel {
    %t = nvvm.read.ptx.sreg.tid.x range <i32, 0, 1024> : i32
    %c48 = arith.constant 48 : i32
    %stays = arith.cmpi ult, %t, %c48 : i32
    scf.if %stays {
      // CHECK-LABEL: run @half_a_warp:
      // CHECK: [[SOURCE]]:[[#@LINE+1]]:7: nvvm.barrier0: thread (32, 0, 0) of block (0, 0, 0) arrives at barrier 0, which requires all threads of a warp, but lanes 16 to 31 of warp 1 have ended
      nvvm.barrier0
    }
    gpu.return
  }

  // LAUNCH: 96 threads
  gpu.func @half_a_warp_that_arrives() kernel {
    %t = nvvm.read.ptx.sreg.tid.x range <i32, 0, 1024> : i32
    %c31 = arith.constant 31 : i32
    %one = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %stays = arith.cmpi ne, %t, %c31 : i32
    scf.if %stays {
      // CHECK-LABEL: run @half_a_warp_that_arrives:
      // CHECK: [[SOURCE]]:[[#@LINE+1]]:7: nvvm.barrier.arrive: thread (0, 0, 0) of block (0, 0, 0) arrives at barrier 1, which requires all threads of a warp, but lane 31 of warp 0 has ended
      nvvm.barrier.arrive id = %one number_of_threads = %c64
    }
    gpu.return
  }

  // LAUNCH: 96 threads
  gpu.func @lanes_that_end_after() kernel {
    %t = nvvm.read.ptx.sreg.tid.x range <i32, 0, 1024> : i32
    %one = arith.constant 1 : i32
    %c32 = arith.constant 32 : i32
    %low = arith.constant 0xff : i32
    %c8 = arith.constant 8 : i32
    %stays = arith.cmpi ult, %t, %c8 : i32
    scf.if %stays {
      nvvm.bar.warp.sync %low : i32
      // CHECK-LABEL: run @lanes_that_end_after:
      // CHECK: [[SOURCE]]:[[#@LINE+1]]:7: nvvm.barrier: thread ({{.*}}, 0, 0) of block (0, 0, 0) arrives at barrier 1, which requires all threads of a warp, but lanes 8 to 31 of warp 0 have ended
      nvvm.barrier id = %one number_of_threads = %c32
    }
    gpu.return
  }
}

}
