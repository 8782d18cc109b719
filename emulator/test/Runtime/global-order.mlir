// Accesses of global memory that are in order: the sanitizer finds nothing, and
// what comes out is right, whatever the number of cores and the seed.

// DEFINE: %{libs} = %kvcache_emulator,%kvcache_runtime,%mlir_lib_dir/libmlir_c_runner_utils.so
// DEFINE: %{run} = mlir-runner -e main -entry-point-result=void -shared-libs=%{libs} %t.mlir
// RUN: %add_launches %s | kvcache-opt --kvcache-to-emulator="chip=sm_90a" -o %t.mlir
// RUN: env KVCACHE_EMULATOR_THREADS=1 %{run} | FileCheck %s
// RUN: env KVCACHE_EMULATOR_THREADS=4 %{run} | FileCheck %s
// RUN: env KVCACHE_EMULATOR_THREADS=4 KVCACHE_EMULATOR_SEED=7 %{run} | FileCheck %s

module attributes {gpu.container_module} {

gpu.module @kernels {
  llvm.mlir.global internal @tile() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<64 x i8>

  // LAUNCH: 4 threads, 8 blocks, then @print
  gpu.func @counting(%g: !llvm.ptr<1>) kernel {
    %one = llvm.mlir.constant(1 : i32) : i32
    %out = llvm.getelementptr %g[100] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %before = llvm.atomicrmw add %out, %one syncscope("device") monotonic : !llvm.ptr<1>, i32
    gpu.return
  }

  // LAUNCH: 2 blocks, then @print
  gpu.func @flag_with_release_and_acquire(%g: !llvm.ptr<1>) kernel {
    %b = nvvm.read.ptx.sreg.ctaid.x : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %three = llvm.mlir.constant(3 : i32) : i32
    %out = llvm.getelementptr %g[100] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %flag = llvm.getelementptr %g[200] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %is_writer = llvm.icmp "eq" %b, %zero : i32
    scf.if %is_writer {
      llvm.store %three, %g : i32, !llvm.ptr<1>
      llvm.store %one, %flag atomic syncscope("device") release {alignment = 4 : i64} : i32, !llvm.ptr<1>
    } else {
      scf.while : () -> () {
        %value = llvm.load %flag atomic syncscope("device") acquire {alignment = 4 : i64} : !llvm.ptr<1> -> i32
        %waits = llvm.icmp "eq" %value, %zero : i32
        scf.condition(%waits)
      } do {
        scf.yield
      }
      %data = llvm.load %g : !llvm.ptr<1> -> i32
      llvm.store %data, %out : i32, !llvm.ptr<1>
    }
    gpu.return
  }

  // LAUNCH: 2 blocks, then @print
  gpu.func @flag_with_fences(%g: !llvm.ptr<1>) kernel {
    %b = nvvm.read.ptx.sreg.ctaid.x : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %three = llvm.mlir.constant(3 : i32) : i32
    %out = llvm.getelementptr %g[100] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %flag = llvm.getelementptr %g[200] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %is_writer = llvm.icmp "eq" %b, %zero : i32
    scf.if %is_writer {
      llvm.store %three, %g : i32, !llvm.ptr<1>
      nvvm.memory.barrier <gpu>
      llvm.store %one, %flag atomic syncscope("device") monotonic {alignment = 4 : i64} : i32, !llvm.ptr<1>
    } else {
      scf.while : () -> () {
        %value = llvm.load %flag atomic syncscope("device") monotonic {alignment = 4 : i64} : !llvm.ptr<1> -> i32
        %waits = llvm.icmp "eq" %value, %zero : i32
        scf.condition(%waits)
      } do {
        scf.yield
      }
      nvvm.memory.barrier <gpu>
      %data = llvm.load %g : !llvm.ptr<1> -> i32
      llvm.store %data, %out : i32, !llvm.ptr<1>
    }
    gpu.return
  }

  // LAUNCH: 2 blocks, then @print
  gpu.func @volatile_flag_with_fences(%g: !llvm.ptr<1>) kernel {
    %b = nvvm.read.ptx.sreg.ctaid.x : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %three = llvm.mlir.constant(3 : i32) : i32
    %out = llvm.getelementptr %g[100] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %flag = llvm.getelementptr %g[200] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %is_writer = llvm.icmp "eq" %b, %zero : i32
    scf.if %is_writer {
      llvm.store %three, %g : i32, !llvm.ptr<1>
      nvvm.memory.barrier <gpu>
      llvm.store volatile %one, %flag  : i32, !llvm.ptr<1>
    } else {
      scf.while : () -> () {
        %value = llvm.load volatile %flag  : !llvm.ptr<1> -> i32
        %waits = llvm.icmp "eq" %value, %zero : i32
        scf.condition(%waits)
      } do {
        scf.yield
      }
      nvvm.memory.barrier <gpu>
      %data = llvm.load %g : !llvm.ptr<1> -> i32
      llvm.store %data, %out : i32, !llvm.ptr<1>
    }
    gpu.return
  }

  // LAUNCH: 2 threads, then @print
  gpu.func @flag_of_the_block_in_a_block(%g: !llvm.ptr<1>) kernel {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %three = llvm.mlir.constant(3 : i32) : i32
    %out = llvm.getelementptr %g[100] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %flag = llvm.getelementptr %g[200] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %is_writer = llvm.icmp "eq" %t, %zero : i32
    scf.if %is_writer {
      llvm.store %three, %g : i32, !llvm.ptr<1>
      llvm.store %one, %flag atomic syncscope("block") release {alignment = 4 : i64} : i32, !llvm.ptr<1>
    } else {
      scf.while : () -> () {
        %value = llvm.load %flag atomic syncscope("block") acquire {alignment = 4 : i64} : !llvm.ptr<1> -> i32
        %waits = llvm.icmp "eq" %value, %zero : i32
        scf.condition(%waits)
      } do {
        scf.yield
      }
      %data = llvm.load %g : !llvm.ptr<1> -> i32
      llvm.store %data, %out : i32, !llvm.ptr<1>
    }
    gpu.return
  }

  // LAUNCH: 2 threads, 4 blocks, then @print
  gpu.func @lock(%g: !llvm.ptr<1>) kernel {
    %zero = llvm.mlir.constant(0 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %out = llvm.getelementptr %g[100] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %flag = llvm.getelementptr %g[200] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    scf.while : () -> () {
      %pair = llvm.cmpxchg %flag, %zero, %one syncscope("device") acquire monotonic : !llvm.ptr<1>, i32
      %taken = llvm.extractvalue %pair[1] : !llvm.struct<(i32, i1)>
      %yes = llvm.mlir.constant(true) : i1
      %waits = llvm.xor %taken, %yes : i1
      scf.condition(%waits)
    } do {
      scf.yield
    }
    %old = llvm.load %out : !llvm.ptr<1> -> i32
    %new = llvm.add %old, %one : i32
    llvm.store %new, %out : i32, !llvm.ptr<1>
    llvm.store %zero, %flag atomic syncscope("device") release {alignment = 4 : i64} : i32, !llvm.ptr<1>
    gpu.return
  }

  // LAUNCH: 4 blocks, then @print
  gpu.func @handed_on_from_block_to_block(%g: !llvm.ptr<1>) kernel {
    %b = nvvm.read.ptx.sreg.ctaid.x : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %three = llvm.mlir.constant(3 : i32) : i32
    %out = llvm.getelementptr %g[100] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %flag = llvm.getelementptr %g[200] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    // Block 1 acquires the stores of block 0, and releases both to block 2.
    %before = llvm.getelementptr %flag[%b] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %later = llvm.getelementptr %before[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %is_writer = llvm.icmp "eq" %b, %zero : i32
    scf.if %is_writer {
      llvm.store %three, %g : i32, !llvm.ptr<1>
    } else {
      scf.while : () -> () {
        %value = llvm.load %before atomic syncscope("device") acquire {alignment = 4 : i64} : !llvm.ptr<1> -> i32
        %waits = llvm.icmp "eq" %value, %zero : i32
        scf.condition(%waits)
      } do {
        scf.yield
      }
    }
    llvm.store %one, %later atomic syncscope("device") release {alignment = 4 : i64} : i32, !llvm.ptr<1>
    %is_reader = llvm.icmp "eq" %b, %three : i32
    scf.if %is_reader {
      %data = llvm.load %g : !llvm.ptr<1> -> i32
      llvm.store %data, %out : i32, !llvm.ptr<1>
    }
    gpu.return
  }

  // LAUNCH: 3 threads, 2 blocks, then @print
  gpu.func @bytes_of_one_word(%g: !llvm.ptr<1>) kernel {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %b = nvvm.read.ptx.sreg.ctaid.x : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %three = llvm.mlir.constant(3 : i32) : i32
    %out = llvm.getelementptr %g[100] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %row = llvm.mul %b, %three : i32
    %i = llvm.add %row, %t : i32
    %byte = llvm.trunc %one : i32 to i8
    %at = llvm.getelementptr %out[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8
    llvm.store %byte, %at : i8, !llvm.ptr<1>
    gpu.return
  }

  // LAUNCH: 8 threads, 4 blocks, then @print
  gpu.func @reading_the_same(%g: !llvm.ptr<1>) kernel {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %b = nvvm.read.ptx.sreg.ctaid.x : i32
    %out = llvm.getelementptr %g[100] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %size = nvvm.read.ptx.sreg.ntid.x : i32
    %row = llvm.mul %b, %size : i32
    %i = llvm.add %row, %t : i32
    %value = llvm.load %g : !llvm.ptr<1> -> i32
    %sum = llvm.add %value, %i : i32
    %to = llvm.getelementptr %out[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %sum, %to : i32, !llvm.ptr<1>
    gpu.return
  }

  // LAUNCH: 64 threads, then @print
  gpu.func @writing_the_same(%g: !llvm.ptr<1>) kernel {
    %three = llvm.mlir.constant(3 : i32) : i32
    %out = llvm.getelementptr %g[100] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    llvm.store %three, %out : i32, !llvm.ptr<1>
    gpu.return
  }

  // LAUNCH: 4 threads, then @print
  gpu.func @after_a_barrier(%g: !llvm.ptr<1>) kernel {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %three = llvm.mlir.constant(3 : i32) : i32
    %out = llvm.getelementptr %g[100] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %at = llvm.getelementptr %g[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %t, %at : i32, !llvm.ptr<1>
    nvvm.barrier0
    %other = llvm.xor %t, %three : i32
    %from = llvm.getelementptr %g[%other] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %value = llvm.load %from : !llvm.ptr<1> -> i32
    nvvm.barrier0
    llvm.store %value, %at : i32, !llvm.ptr<1>
    %to = llvm.getelementptr %out[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %value, %to : i32, !llvm.ptr<1>
    gpu.return
  }

  gpu.func @of_the_launch_before(%m: memref<256xi32>) kernel {
    %b = nvvm.read.ptx.sreg.ctaid.x : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %three = llvm.mlir.constant(3 : i32) : i32
    %index = memref.extract_aligned_pointer_as_index %m : memref<256xi32> -> index
    %number = arith.index_cast %index : index to i64
    %g = llvm.inttoptr %number : i64 to !llvm.ptr<1>
    %out = llvm.getelementptr %g[100] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %flag = llvm.getelementptr %g[200] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    // Two launches: each block reads what another one wrote in the first.
    %is_second = llvm.load %g : !llvm.ptr<1> -> i32
    %is_first_launch = llvm.icmp "eq" %is_second, %zero : i32
    scf.if %is_first_launch {
      %at = llvm.getelementptr %flag[%b] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      llvm.store %b, %at : i32, !llvm.ptr<1>
    } else {
      %other = llvm.xor %b, %three : i32
      %from = llvm.getelementptr %flag[%other] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      %value = llvm.load %from : !llvm.ptr<1> -> i32
      %to = llvm.getelementptr %out[%b] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      llvm.store %value, %to : i32, !llvm.ptr<1>
    }
    gpu.return
  }

  // LAUNCH: 2 blocks, then @print
  gpu.func @bulk_store_and_flag(%g: !llvm.ptr<1>) kernel {
    %b = nvvm.read.ptx.sreg.ctaid.x : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %out = llvm.getelementptr %g[100] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %flag = llvm.getelementptr %g[200] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %is_writer = llvm.icmp "eq" %b, %zero : i32
    scf.if %is_writer {
      %bytes = llvm.mlir.constant(64 : i32) : i32
      %values = llvm.mlir.constant(dense<7> : vector<16xi32>) : vector<16xi32>
      llvm.store %values, %tile {alignment = 4 : i64} : vector<16xi32>, !llvm.ptr<3>
      nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
      nvvm.cp.async.bulk.global.shared.cta %g, %tile, %bytes : !llvm.ptr<1>, !llvm.ptr<3>
      nvvm.cp.async.bulk.commit.group
      nvvm.cp.async.bulk.wait_group 0
      llvm.store %one, %flag atomic syncscope("device") release {alignment = 4 : i64} : i32, !llvm.ptr<1>
    } else {
      scf.while : () -> () {
        %value = llvm.load %flag atomic syncscope("device") acquire {alignment = 4 : i64} : !llvm.ptr<1> -> i32
        %waits = llvm.icmp "eq" %value, %zero : i32
        scf.condition(%waits)
      } do {
        scf.yield
      }
      %data = llvm.load %g : !llvm.ptr<1> -> i32
      llvm.store %data, %out : i32, !llvm.ptr<1>
    }
    gpu.return
  }
}

func.func @of_the_launch_before() {
  %c1 = arith.constant 1 : index
  %blocks = arith.constant 4 : index
  %threads = arith.constant 1 : index
  %m = func.call @make() : () -> memref<256xi32>
  gpu.launch_func @kernels::@of_the_launch_before blocks in (%blocks, %c1, %c1) threads in (%threads, %c1, %c1) args(%m : memref<256xi32>)
  %ones = arith.constant -1 : i32
  %front = memref.subview %m[0] [1] [1] : memref<256xi32> to memref<1xi32>
  gpu.memset %front, %ones : memref<1xi32>, i32
  gpu.launch_func @kernels::@of_the_launch_before blocks in (%blocks, %c1, %c1) threads in (%threads, %c1, %c1) args(%m : memref<256xi32>)
  func.call @print(%m) : (memref<256xi32>) -> ()
  return
}

func.func @main() {
  // CHECK: 32
  func.call @counting() : () -> ()
  // CHECK: 3
  func.call @flag_with_release_and_acquire() : () -> ()
  // CHECK: 3
  func.call @flag_with_fences() : () -> ()
  // CHECK: 3
  func.call @volatile_flag_with_fences() : () -> ()
  // CHECK: 3
  func.call @flag_of_the_block_in_a_block() : () -> ()
  // CHECK: 8
  func.call @lock() : () -> ()
  // CHECK: 3
  func.call @handed_on_from_block_to_block() : () -> ()
  // CHECK: 16843009
  func.call @bytes_of_one_word() : () -> ()
  // CHECK: 0
  func.call @reading_the_same() : () -> ()
  // CHECK: 3
  func.call @writing_the_same() : () -> ()
  // CHECK: 3
  func.call @after_a_barrier() : () -> ()
  // CHECK: 3
  func.call @of_the_launch_before() : () -> ()
  // CHECK: 7
  func.call @bulk_store_and_flag() : () -> ()
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

func.func private @make() -> memref<256xi32> {
  %zero = arith.constant 0 : i32
  %m = gpu.alloc() : memref<256xi32>
  gpu.memset %m, %zero : memref<256xi32>, i32
  return %m : memref<256xi32>
}

}
