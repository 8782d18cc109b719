// Reports of kernels that change the number of registers wrongly, one for each rule. PTX ISA, "setmaxnreg".

// RUN: %add_launches %s | kvcache-opt --kvcache-to-emulator="chip=sm_90a" -o %t.mlir
// RUN: %emulator_tests/kvcache-run-cases %t.mlir --shared-libs=%kvcache_emulator,%kvcache_runtime | FileCheck %s -DFILE="<stdin>"

module attributes {gpu.container_module} {

gpu.module @kernels {
  // LAUNCH: 384 threads
  gpu.func @too_many_for_all() kernel attributes {nvvm.maxnreg = 168 : i32} {
    %t = gpu.thread_id x
    %c128 = arith.constant 128 : index
    // 80 + 224 + 224 is more than 3 times 168.
    %gives = arith.cmpi ult, %t, %c128 : index
    scf.if %gives {
      nvvm.setmaxregister decrease 80
    } else {
      // CHECK-LABEL: run @too_many_for_all:
      // CHECK: deadlock: no thread of block (0, 0, 0) can continue
      // CHECK: wait in nvvm.setmaxregister at [[FILE]]:[[# @LINE + 1]]:7 for 1792 registers for warp {{[0-9]+}}, where the block has {{[0-9]+}} that other warps have given back
      nvvm.setmaxregister increase 224
    }
    gpu.return
  }

  // LAUNCH: 128 threads
  gpu.func @no_warp_gives() kernel attributes {nvvm.maxnreg = 168 : i32} {
    // CHECK-LABEL: run @no_warp_gives:
    // CHECK: wait in nvvm.setmaxregister at [[FILE]]:[[# @LINE + 1]]:5 for 256 registers for warp {{[0-3]}}, where the block has 0 that
    nvvm.setmaxregister increase 176
    gpu.return
  }

  // LAUNCH: 128 threads
  gpu.func @half_a_warpgroup_executes_it() kernel attributes {nvvm.maxnreg = 168 : i32} {
    %t = gpu.thread_id x
    %c64 = arith.constant 64 : index
    %is_low = arith.cmpi ult, %t, %c64 : index
    scf.if %is_low {
      // CHECK-LABEL: run @half_a_warpgroup_executes_it:
      // CHECK: [[FILE]]:[[# @LINE + 1]]:7: nvvm.setmaxregister: thread ({{0|32}}, 0, 0) of block (0, 0, 0) has executed it, and warp 2 of its warpgroup has not: all warps of a warpgroup must execute the same one
      nvvm.setmaxregister decrease 24
    }
    gpu.return
  }

  // LAUNCH: 128 threads
  gpu.func @another_one() kernel attributes {nvvm.maxnreg = 168 : i32} {
    %t = gpu.thread_id x
    %c64 = arith.constant 64 : index
    %is_low = arith.cmpi ult, %t, %c64 : index
    scf.if %is_low {
      nvvm.setmaxregister decrease 24
    } else {
      // CHECK-LABEL: run @another_one:
      // CHECK: [[FILE]]:[[# @LINE + 1]]:7: nvvm.setmaxregister: thread (64, 0, 0) of block (0, 0, 0) executes it where warp 0 of its warpgroup has executed nvvm.setmaxregister at [[FILE]]:[[# @LINE - 3]]:7: all warps of a warpgroup must execute the same one
      nvvm.setmaxregister decrease 24
    }
    gpu.return
  }

  // LAUNCH: 128 threads
  gpu.func @half_a_warp() kernel attributes {nvvm.maxnreg = 168 : i32} {
    %t = gpu.thread_id x
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %lane = arith.remui %t, %c32 : index
    %is_low = arith.cmpi ult, %lane, %c16 : index
    scf.if %is_low {
      // CHECK-LABEL: run @half_a_warp:
      // CHECK: [[FILE]]:[[# @LINE + 1]]:7: nvvm.setmaxregister: thread (0, 0, 0) of block (0, 0, 0) requires all lanes of its warp, but lanes 16 to 31 of warp 0 have ended
      nvvm.setmaxregister decrease 24
    }
    gpu.return
  }

  // LAUNCH: 128 threads
  gpu.func @some_have_ended() kernel attributes {nvvm.maxnreg = 168 : i32} {
    %t = gpu.thread_id x
    %c32 = arith.constant 32 : index
    %is_low = arith.cmpi ult, %t, %c32 : index
    cf.cond_br %is_low, ^end, ^others
  ^others:
    // CHECK-LABEL: run @some_have_ended:
    // CHECK: [[FILE]]:[[# @LINE + 1]]:5: nvvm.setmaxregister: thread (32, 0, 0) of block (0, 0, 0) has executed it, and warp 0 of its warpgroup has not: all warps of a warpgroup must execute the same one
    nvvm.setmaxregister decrease 24
    cf.br ^end
  ^end:
    gpu.return
  }

  // LAUNCH: 192 threads
  gpu.func @block_of_six_warps() kernel attributes {nvvm.maxnreg = 168 : i32} {
    // CHECK-LABEL: run @block_of_six_warps:
    // CHECK: [[FILE]]:[[# @LINE + 1]]:5: nvvm.setmaxregister: thread (128, 0, 0) of block (0, 0, 0) requires all 128 threads of warps 4 to 7, but the block has 192 threads
    nvvm.setmaxregister decrease 24
    gpu.return
  }

  // LAUNCH: 128 threads
  gpu.func @again_without_a_barrier() kernel attributes {nvvm.maxnreg = 168 : i32} {
    %all = arith.constant -1 : i32
    nvvm.setmaxregister decrease 40
    nvvm.bar.warp.sync %all : i32
    // CHECK-LABEL: run @again_without_a_barrier:
    // CHECK: [[FILE]]:[[# @LINE + 1]]:5: nvvm.setmaxregister: thread (0, 0, 0) of block (0, 0, 0) executes it without a synchronization of the warpgroup after nvvm.setmaxregister at [[FILE]]:[[# @LINE - 3]]:5, which warp 1 of its warpgroup may not have executed yet
    nvvm.setmaxregister decrease 24
    gpu.return
  }

  // LAUNCH: 128 threads
  gpu.func @increase_to_less() kernel attributes {nvvm.maxnreg = 168 : i32} {
    // CHECK-LABEL: run @increase_to_less:
    // CHECK: [[FILE]]:[[# @LINE + 1]]:5: nvvm.setmaxregister: thread (0, 0, 0) of block (0, 0, 0) increases the number of registers to 160, but the thread has 168
    nvvm.setmaxregister increase 160
    gpu.return
  }

  // LAUNCH: 128 threads
  gpu.func @decrease_to_more() kernel attributes {nvvm.maxnreg = 168 : i32} {
    nvvm.setmaxregister decrease 40
    nvvm.barrier0
    // CHECK-LABEL: run @decrease_to_more:
    // CHECK: [[FILE]]:[[# @LINE + 1]]:5: nvvm.setmaxregister: thread (0, 0, 0) of block (0, 0, 0) decreases the number of registers to 48, but the thread has 40
    nvvm.setmaxregister decrease 48
    gpu.return
  }

  // LAUNCH: 512 threads
  gpu.func @more_than_a_multiprocessor_has() kernel attributes {nvvm.maxnreg = 168 : i32} {
    // CHECK-LABEL: run @more_than_a_multiprocessor_has:
    // CHECK: [[FILE]]:[[# @LINE + 1]]:5: nvvm.setmaxregister: thread (0, 0, 0) of block (0, 0, 0) is in a block of 512 threads that begin with 168 registers each, 86016 in all: a multiprocessor has 65536
    nvvm.setmaxregister decrease 24
    gpu.return
  }

  // LAUNCH: 128 threads
  gpu.func @unknown_number() kernel {
    func.call @decrease() : () -> ()
    gpu.return
  }

  func.func private @decrease() attributes {no_inline} {
    // CHECK-LABEL: run @unknown_number:
    // CHECK: [[FILE]]:[[# @LINE + 1]]:5: nvvm.setmaxregister: thread (0, 0, 0) of block (0, 0, 0) needs the number of registers that threads of the kernel begin with (nvvm.maxnreg, or nvvm.minctasm and the size of blocks)
    nvvm.setmaxregister decrease 24
    return
  }

  // LAUNCH: 128 threads
  gpu.func @number_by_name() kernel attributes {nvvm.maxnreg = 168 : i32} {
    %n = llvm.mlir.constant(20 : i32) : i32
    // CHECK-LABEL: run @number_by_name:
    // CHECK: [[FILE]]:[[# @LINE + 1]]:5: llvm.call_intrinsic: thread (0, 0, 0) of block (0, 0, 0) expects a number of registers that is a multiple of 8 from 24 to 256, got 20
    llvm.call_intrinsic "llvm.nvvm.setmaxnreg.dec.sync.aligned.u32"(%n) : (i32) -> ()
    gpu.return
  }
}
}
