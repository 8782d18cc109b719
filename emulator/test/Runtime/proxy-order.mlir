// A block stores and releases a flag; another one acquires it and reads by a bulk
// copy. The stores are visible to the copy only if a proxy fence stands between
// them: after the stores and before the flag, or after the flag and before the
// copy. A fence of another thread, or of earlier stores, does not help.

// DEFINE: %{libs} = %kvcache_emulator,%kvcache_runtime,%mlir_lib_dir/libmlir_c_runner_utils.so
// DEFINE: %{case} =
// DEFINE: %{cores} =
// DEFINE: %{run} = env KVCACHE_EMULATOR_THREADS=%{cores} mlir-runner %t.mlir -e %{case} -entry-point-result=void -shared-libs=%{libs} 2>&1 | FileCheck %s -DFILE=%s --check-prefix
// RUN: kvcache-opt %s --kvcache-to-emulator="chip=sm_90a" -o %t.mlir
// REDEFINE: %{cores} = 1
// REDEFINE: %{case} = no_fence
// RUN: not %{run} UNFENCED
// REDEFINE: %{case} = fence_before_the_stores
// RUN: not %{run} UNFENCED
// REDEFINE: %{case} = fence_of_another_block
// RUN: not %{run} UNFENCED
// REDEFINE: %{case} = fence_after_the_release
// RUN: not %{run} UNFENCED
// REDEFINE: %{case} = fence_before_the_flag
// RUN: %{run} FENCED
// REDEFINE: %{case} = fence_after_the_flag
// RUN: %{run} FENCED
// REDEFINE: %{case} = fence_of_one_thread_before_a_barrier
// RUN: %{run} FENCED
// REDEFINE: %{cores} = 4
// REDEFINE: %{case} = fence_of_another_block
// RUN: not %{run} UNFENCED
// REDEFINE: %{case} = fence_after_the_flag
// RUN: %{run} FENCED

module attributes {gpu.container_module} {

gpu.module @kernels {
  llvm.mlir.global internal @tile() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<64 x i8>
  llvm.mlir.global internal @barrier() {addr_space = 3 : i32, alignment = 8 : i64} : i64

  // Block 0 makes fence 4, block 1 stores, and block 2 copies.
  gpu.func @copy(%m: memref<256xi32>, %fence: i32) kernel {
    %b = nvvm.read.ptx.sreg.ctaid.x : i32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %two = llvm.mlir.constant(2 : i32) : i32
    %three = llvm.mlir.constant(3 : i32) : i32
    %four = llvm.mlir.constant(4 : i32) : i32
    %five = llvm.mlir.constant(5 : i32) : i32
    %bytes = llvm.mlir.constant(64 : i32) : i32
    %index = memref.extract_aligned_pointer_as_index %m : memref<256xi32> -> index
    %number = arith.index_cast %index : index to i64
    %g = llvm.inttoptr %number : i64 to !llvm.ptr<1>
    %out = llvm.getelementptr %g[100] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %flag = llvm.getelementptr %g[200] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %barrier = llvm.mlir.addressof @barrier : !llvm.ptr<3>
    %is_fence1 = llvm.icmp "eq" %fence, %one : i32
    %is_fence2 = llvm.icmp "eq" %fence, %two : i32
    %is_fence3 = llvm.icmp "eq" %fence, %three : i32
    %is_fence4 = llvm.icmp "eq" %fence, %four : i32
    %is_fence5 = llvm.icmp "eq" %fence, %five : i32
    %is_first = llvm.icmp "eq" %t, %zero : i32
    %is_other = llvm.icmp "eq" %b, %zero : i32
    %is_writer = llvm.icmp "eq" %b, %one : i32
    scf.if %is_other {
      scf.if %is_fence4 {
        nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.global>}
      }
    } else {
      scf.if %is_writer {
        scf.if %is_first {
          scf.if %is_fence1 {
            nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.global>}
          }
          %values = llvm.mlir.constant(dense<7> : vector<16xi32>) : vector<16xi32>
          llvm.store %values, %g {alignment = 4 : i64} : vector<16xi32>, !llvm.ptr<1>
          scf.if %is_fence2 {
            nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.global>}
          }
          llvm.store %one, %flag atomic syncscope("device") release {alignment = 4 : i64} : i32, !llvm.ptr<1>
          scf.if %is_fence5 {
            nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.global>}
          }
        }
      } else {
        scf.if %is_first {
          scf.while : () -> () {
            %value = llvm.load %flag atomic syncscope("device") acquire {alignment = 4 : i64} : !llvm.ptr<1> -> i32
            %waits = llvm.icmp "eq" %value, %zero : i32
            scf.condition(%waits)
          } do {
            scf.yield
          }
          scf.if %is_fence3 {
            nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.global>}
          }
          nvvm.mbarrier.init %barrier, %one : !llvm.ptr<3>, i32
          nvvm.fence.mbarrier.init
        }
        nvvm.barrier0
        // The last thread of the block.
        %threads = nvvm.read.ptx.sreg.ntid.x : i32
        %next = llvm.add %t, %one : i32
        %is_last = llvm.icmp "eq" %next, %threads : i32
        scf.if %is_last {
          %state = nvvm.mbarrier.arrive.expect_tx %barrier, %bytes : !llvm.ptr<3>, i32 -> i64
          // UNFENCED: [[FILE]]:[[#@LINE+1]]:11: nvvm.cp.async.bulk.shared.cluster.global: thread (0, 0, 0) of block (2, 0, 0) {{.*}} at byte 0 of an allocation of 1024 bytes, which block (1, 0, 0) writes in llvm.store at [[FILE]]:[[#@LINE-31]]:11 without a proxy fence between them (fence.proxy.async)
          nvvm.cp.async.bulk.shared.cluster.global %tile, %g, %barrier, %bytes : !llvm.ptr<3>, !llvm.ptr<1>
          nvvm.mbarrier.try_wait.parity %barrier, %zero, %zero : !llvm.ptr<3>, i32, i32
          %data = llvm.load %tile : !llvm.ptr<3> -> i32
          llvm.store %data, %out : i32, !llvm.ptr<1>
        }
      }
    }
    gpu.return
  }
}

func.func private @launch(%fence: i32, %threads: index) {
  %zero = arith.constant 0 : i32
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c100 = arith.constant 100 : index
  %m = gpu.alloc() : memref<256xi32>
  gpu.memset %m, %zero : memref<256xi32>, i32
  gpu.launch_func @kernels::@copy blocks in (%c3, %c1, %c1) threads in (%threads, %c1, %c1)
      args(%m : memref<256xi32>, %fence : i32)
  %host = memref.alloc() : memref<256xi32>
  gpu.memcpy %host, %m : memref<256xi32>, memref<256xi32>
  // FENCED: 7
  %value = memref.load %host[%c100] : memref<256xi32>
  vector.print %value : i32
  memref.dealloc %host : memref<256xi32>
  gpu.dealloc %m : memref<256xi32>
  return
}

func.func @no_fence() {
  %fence = arith.constant 0 : i32
  %threads = arith.constant 1 : index
  func.call @launch(%fence, %threads) : (i32, index) -> ()
  return
}

func.func @fence_before_the_stores() {
  %fence = arith.constant 1 : i32
  %threads = arith.constant 1 : index
  func.call @launch(%fence, %threads) : (i32, index) -> ()
  return
}

func.func @fence_before_the_flag() {
  %fence = arith.constant 2 : i32
  %threads = arith.constant 1 : index
  func.call @launch(%fence, %threads) : (i32, index) -> ()
  return
}

func.func @fence_after_the_flag() {
  %fence = arith.constant 3 : i32
  %threads = arith.constant 1 : index
  func.call @launch(%fence, %threads) : (i32, index) -> ()
  return
}

func.func @fence_of_one_thread_before_a_barrier() {
  %fence = arith.constant 3 : i32
  %threads = arith.constant 32 : index
  func.call @launch(%fence, %threads) : (i32, index) -> ()
  return
}

func.func @fence_of_another_block() {
  %fence = arith.constant 4 : i32
  %threads = arith.constant 1 : index
  func.call @launch(%fence, %threads) : (i32, index) -> ()
  return
}

func.func @fence_after_the_release() {
  %fence = arith.constant 5 : i32
  %threads = arith.constant 1 : index
  func.call @launch(%fence, %threads) : (i32, index) -> ()
  return
}

}
