// Kernels that change the number of registers rightly, though not as the simplest ones do. Those that are wrong are in
// registers-errors.mlir.

// DEFINE: %{libs} = %kvcache_emulator,%kvcache_runtime,%mlir_lib_dir/libmlir_c_runner_utils.so
// DEFINE: %{run} = mlir-runner -e main -entry-point-result=void -shared-libs=%{libs}
// RUN: kvcache-opt %s --kvcache-to-emulator="chip=sm_90a" -o %t.mlir
// RUN: %{run} %t.mlir | FileCheck %s
// RUN: env KVCACHE_EMULATOR_SEED=5 %{run} %t.mlir | FileCheck %s
// RUN: kvcache-opt %s --kvcache-to-emulator="chip=sm_100a sanitize=false" | %{run} | FileCheck %s

module attributes {gpu.container_module} {

gpu.module @kernels {
  // One warpgroup gives, and two take: 24 + 240 + 240 is 3 times 168.
  gpu.func @give_and_take() kernel attributes {nvvm.maxnreg = 168 : i32} {
    %t = gpu.thread_id x
    %c256 = arith.constant 256 : index
    %gives = arith.cmpi uge, %t, %c256 : index
    scf.if %gives {
      %n = llvm.mlir.constant(24 : i32) : i32
      llvm.call_intrinsic "llvm.nvvm.setmaxnreg.dec.sync.aligned.u32"(%n) : (i32) -> ()
    } else {
      nvvm.setmaxregister increase 240
    }
    func.call @say(%t) : (index) -> ()
    gpu.return
  }

  // The first gives back what it has taken, and the second one waits for that. The block has so many as fit for one:
  // 65536 / (2 * 256), which is 128.
  gpu.func @take_turns() kernel attributes {known_block_size = array<i32: 256, 1, 1>, nvvm.minctasm = 2 : i32} {
    %t = gpu.thread_id x
    %c128 = arith.constant 128 : index
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %group = arith.constant 128 : i32
    %both = arith.constant 256 : i32
    %is_first = arith.cmpi ult, %t, %c128 : index
    nvvm.setmaxregister decrease 64
    scf.if %is_first {
      nvvm.barrier id = %c1 number_of_threads = %group
      nvvm.setmaxregister increase 192
      nvvm.barrier id = %c1 number_of_threads = %group
      nvvm.setmaxregister decrease 64
      nvvm.barrier id = %c2 number_of_threads = %both
    } else {
      nvvm.barrier id = %c2 number_of_threads = %both
      nvvm.setmaxregister increase 192
    }
    func.call @say(%t) : (index) -> ()
    gpu.return
  }

  // Nothing changes. A number is rounded up to a multiple of 8.
  gpu.func @the_same_number() kernel attributes {nvvm.maxnreg = 61 : i32} {
    %t = gpu.thread_id x
    nvvm.setmaxregister decrease 64
    nvvm.barrier0
    nvvm.setmaxregister increase 64
    func.call @say(%t) : (index) -> ()
    gpu.return
  }

  func.func private @say(%t: index) attributes {no_inline} {
    %c0 = arith.constant 0 : index
    %speaks = arith.cmpi eq, %t, %c0 : index
    scf.if %speaks {
      gpu.printf "done\n"
    }
    return
  }
}

func.func @main() {
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c128 = arith.constant 128 : index
  %c256 = arith.constant 256 : index
  %c384 = arith.constant 384 : index
  // CHECK: done
  gpu.launch_func @kernels::@give_and_take blocks in (%c1, %c1, %c1) threads in (%c384, %c1, %c1)
  // CHECK-NEXT: done
  // CHECK-NEXT: done
  // CHECK-NEXT: done
  gpu.launch_func @kernels::@take_turns blocks in (%c3, %c1, %c1) threads in (%c256, %c1, %c1)
  // CHECK-NEXT: done
  gpu.launch_func @kernels::@the_same_number blocks in (%c1, %c1, %c1) threads in (%c128, %c1, %c1)
  return
}

}
