// The last block merges what all blocks have written: the sanitizer finds
// nothing, and what comes out is right, whatever the number of cores and the seed.

// DEFINE: %{libs} = %kvcache_emulator,%kvcache_runtime,%mlir_lib_dir/libmlir_c_runner_utils.so
// DEFINE: %{run} = mlir-runner -e main -entry-point-result=void -shared-libs=%{libs} %t.mlir
// RUN: %add_launches %s | kvcache-opt --kvcache-to-emulator="chip=sm_90a" -o %t.mlir
// RUN: env KVCACHE_EMULATOR_THREADS=1 %{run} | FileCheck %s
// RUN: env KVCACHE_EMULATOR_THREADS=4 %{run} | FileCheck %s
// RUN: env KVCACHE_EMULATOR_THREADS=4 KVCACHE_EMULATOR_SEED=7 %{run} | FileCheck %s

// PRELUDE: last-block.mlir

module attributes {gpu.container_module} {

gpu.module @kernels {
  llvm.mlir.global internal @last() {addr_space = 3 : i32, alignment = 4 : i64} : i32

  // LAUNCH: 4 blocks, then @print
  gpu.func @last_block_merges(%g: !llvm.ptr<1>) kernel {
    %one = llvm.mlir.constant(1 : i32) : i32
    %out, %flag = func.call @store_number(%g) : (!llvm.ptr<1>) -> (!llvm.ptr<1>, !llvm.ptr<1>)
    nvvm.memory.barrier <gpu>
    %before = llvm.atomicrmw add %flag, %one syncscope("device") monotonic : !llvm.ptr<1>, i32
    %is_last = func.call @is_last(%before) : (i32) -> i1
    scf.if %is_last {
      nvvm.memory.barrier <gpu>
      %all = llvm.load %g {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
      %sum = vector.reduction <add>, %all : vector<4xi32> into i32
      llvm.store %sum, %out : i32, !llvm.ptr<1>
    }
    gpu.return
  }

  // LAUNCH: 4 blocks, then @print
  gpu.func @last_block_merges_by_the_ticket(%g: !llvm.ptr<1>) kernel {
    %one = llvm.mlir.constant(1 : i32) : i32
    %out, %flag = func.call @store_number(%g) : (!llvm.ptr<1>) -> (!llvm.ptr<1>, !llvm.ptr<1>)
    %before = llvm.atomicrmw add %flag, %one acq_rel : !llvm.ptr<1>, i32
    %is_last = func.call @is_last(%before) : (i32) -> i1
    scf.if %is_last {
      %all = llvm.load %g {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
      %sum = vector.reduction <add>, %all : vector<4xi32> into i32
      llvm.store %sum, %out : i32, !llvm.ptr<1>
    }
    gpu.return
  }

  // LAUNCH: 4 blocks, then @print
  gpu.func @last_block_merges_by_llvm_fences(%g: !llvm.ptr<1>) kernel {
    %one = llvm.mlir.constant(1 : i32) : i32
    %out, %flag = func.call @store_number(%g) : (!llvm.ptr<1>) -> (!llvm.ptr<1>, !llvm.ptr<1>)
    llvm.fence syncscope("device") release
    %before = llvm.atomicrmw add %flag, %one monotonic : !llvm.ptr<1>, i32
    %is_last = func.call @is_last(%before) : (i32) -> i1
    scf.if %is_last {
      llvm.fence syncscope("device") acquire
      %all = llvm.load %g {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
      %sum = vector.reduction <add>, %all : vector<4xi32> into i32
      llvm.store %sum, %out : i32, !llvm.ptr<1>
    }
    gpu.return
  }

  // LAUNCH: 4 threads, 4 blocks, then @print
  gpu.func @all_threads_merge(%g: !llvm.ptr<1>) kernel {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %b = nvvm.read.ptx.sreg.ctaid.x : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %three = llvm.mlir.constant(3 : i32) : i32
    %out = llvm.getelementptr %g[100] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %flag = llvm.getelementptr %g[200] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %size = nvvm.read.ptx.sreg.ntid.x : i32
    %row = llvm.mul %b, %size : i32
    %i = llvm.add %row, %t : i32
    %at = llvm.getelementptr %g[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %i, %at : i32, !llvm.ptr<1>
    nvvm.barrier0
    %is_first = llvm.icmp "eq" %t, %zero : i32
    %last = llvm.mlir.addressof @last : !llvm.ptr<3>
    scf.if %is_first {
      %ticket = llvm.atomicrmw add %flag, %one acq_rel : !llvm.ptr<1>, i32
      %is_last = llvm.icmp "eq" %ticket, %three : i32
      %word = llvm.zext %is_last : i1 to i32
      llvm.store %word, %last : i32, !llvm.ptr<3>
    }
    nvvm.barrier0
    %word = llvm.load %last : !llvm.ptr<3> -> i32
    %merges = llvm.icmp "ne" %word, %zero : i32
    scf.if %merges {
      %others = llvm.xor %i, %three : i32
      %from = llvm.getelementptr %g[%others] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      %value = llvm.load %from : !llvm.ptr<1> -> i32
      %to = llvm.getelementptr %out[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      llvm.store %value, %to : i32, !llvm.ptr<1>
    }
    gpu.return
  }

  // LAUNCH: 4 threads, 4 blocks, then @print
  gpu.func @all_threads_fence_and_one_takes_the_ticket(%g: !llvm.ptr<1>) kernel {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %b = nvvm.read.ptx.sreg.ctaid.x : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %three = llvm.mlir.constant(3 : i32) : i32
    %out = llvm.getelementptr %g[100] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %flag = llvm.getelementptr %g[200] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %size = nvvm.read.ptx.sreg.ntid.x : i32
    %row = llvm.mul %b, %size : i32
    %i = llvm.add %row, %t : i32
    %at = llvm.getelementptr %g[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %i, %at : i32, !llvm.ptr<1>
    nvvm.memory.barrier <gpu>
    nvvm.barrier0
    %is_first = llvm.icmp "eq" %t, %zero : i32
    %last = llvm.mlir.addressof @last : !llvm.ptr<3>
    scf.if %is_first {
      %ticket = llvm.atomicrmw add %flag, %one monotonic : !llvm.ptr<1>, i32
      %is_last = llvm.icmp "eq" %ticket, %three : i32
      %word = llvm.zext %is_last : i1 to i32
      llvm.store %word, %last : i32, !llvm.ptr<3>
    }
    nvvm.barrier0
    %word = llvm.load %last : !llvm.ptr<3> -> i32
    %merges = llvm.icmp "ne" %word, %zero : i32
    scf.if %merges {
      nvvm.memory.barrier <gpu>
      %others = llvm.xor %i, %three : i32
      %from = llvm.getelementptr %g[%others] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      %value = llvm.load %from : !llvm.ptr<1> -> i32
      %to = llvm.getelementptr %out[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      llvm.store %value, %to : i32, !llvm.ptr<1>
    }
    gpu.return
  }
}

func.func @main() {
  // CHECK: 6
  func.call @last_block_merges() : () -> ()
  // CHECK: 6
  func.call @last_block_merges_by_the_ticket() : () -> ()
  // CHECK: 6
  func.call @last_block_merges_by_llvm_fences() : () -> ()
  // CHECK: 15
  func.call @all_threads_merge() : () -> ()
  // CHECK: 15
  func.call @all_threads_fence_and_one_takes_the_ticket() : () -> ()
  return
}

func.func private @print(%m: memref<256xi32>) {
  %c100 = arith.constant 100 : index
  %host = memref.alloc() : memref<256xi32>
  gpu.memcpy %host, %m : memref<256xi32>, memref<256xi32>
  %value = memref.load %host[%c100] : memref<256xi32>
  vector.print %value : i32
  memref.dealloc %host : memref<256xi32>
  gpu.dealloc %m : memref<256xi32>
  return
}

}
