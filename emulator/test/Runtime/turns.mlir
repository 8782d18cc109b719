// Blocks that run in turns (KVCACHE_EMULATOR_BLOCKS): each goes on to its next
// atomic access of global memory, or for a while in a loop. One after the other,
// the first block takes all units of work, and none may wait for a later one.

// DEFINE: %{libs} = %kvcache_emulator,%kvcache_runtime,%mlir_lib_dir/libmlir_c_runner_utils.so
// DEFINE: %{run} = mlir-runner -entry-point-result=void -shared-libs=%{libs} %t.mlir
// RUN: kvcache-opt %s --kvcache-to-emulator="chip=sm_90a" -o %t.mlir
// RUN: %{run} -e units | FileCheck %s --check-prefix=ALONE
// RUN: env KVCACHE_EMULATOR_SEED=3 %{run} -e units | FileCheck %s --check-prefix=ALONE
// RUN: env KVCACHE_EMULATOR_BLOCKS=4 %{run} -e units | FileCheck %s --check-prefix=TURNS
// RUN: env KVCACHE_EMULATOR_BLOCKS=4 KVCACHE_EMULATOR_SEED=3 %{run} -e units | FileCheck %s --check-prefix=TURNS
// RUN: env KVCACHE_EMULATOR_BLOCKS=2 KVCACHE_EMULATOR_SEED=3 %{run} -e units | FileCheck %s --check-prefix=PAIRS
// RUN: env KVCACHE_EMULATOR_BLOCKS=2 %{run} -e waits | FileCheck %s --check-prefix=WAITS
// RUN: env KVCACHE_EMULATOR_BLOCKS=3 KVCACHE_EMULATOR_SEED=1 %{run} -e waits | FileCheck %s --check-prefix=WAITS
// RUN: env KVCACHE_EMULATOR_BLOCKS=2 KVCACHE_EMULATOR_SEED=1 %{run} -e answers | FileCheck %s --check-prefix=ANSWERS
// RUN: not env KVCACHE_EMULATOR_BLOCKS=0 %{run} -e waits 2>&1 | FileCheck %s --check-prefix=WRONG

// WRONG: KVCACHE_EMULATOR_BLOCKS is expected to be a number from 1 to 1024, got '0'

module attributes {gpu.container_module} {

gpu.module @kernels {
  // Each unit gets a bit for the block that takes it.
  gpu.func @take_units(%m: memref<256xi32>) kernel {
    %b = nvvm.read.ptx.sreg.ctaid.x : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %units = llvm.mlir.constant(16 : i32) : i32
    %index = memref.extract_aligned_pointer_as_index %m : memref<256xi32> -> index
    %number = arith.index_cast %index : index to i64
    %g = llvm.inttoptr %number : i64 to !llvm.ptr<1>
    %next = llvm.getelementptr %g[200] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %bit = llvm.shl %one, %b : i32
    scf.while : () -> () {
      %unit = llvm.atomicrmw add %next, %one syncscope("device") monotonic : !llvm.ptr<1>, i32
      %is_unit = llvm.icmp "ult" %unit, %units : i32
      scf.if %is_unit {
        %place = llvm.getelementptr %g[%unit] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
        llvm.store %bit, %place : i32, !llvm.ptr<1>
      }
      scf.condition(%is_unit)
    } do {
      scf.yield
    }
    gpu.return
  }

  // The first block waits for what the last one has to say.
  gpu.func @wait_for_last(%m: memref<256xi32>) kernel {
    %b = nvvm.read.ptx.sreg.ctaid.x : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %said = llvm.mlir.constant(42 : i32) : i32
    %index = memref.extract_aligned_pointer_as_index %m : memref<256xi32> -> index
    %number = arith.index_cast %index : index to i64
    %g = llvm.inttoptr %number : i64 to !llvm.ptr<1>
    %out = llvm.getelementptr %g[100] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %flag = llvm.getelementptr %g[200] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %is_first = llvm.icmp "eq" %b, %zero : i32
    scf.if %is_first {
      scf.while : () -> () {
        %now = llvm.load %flag atomic syncscope("device") acquire {alignment = 4 : i64} : !llvm.ptr<1> -> i32
        %waits = llvm.icmp "eq" %now, %zero : i32
        scf.condition(%waits)
      } do {
        scf.yield
      }
      %value = llvm.load %g : !llvm.ptr<1> -> i32
      llvm.store %value, %out : i32, !llvm.ptr<1>
    } else {
      llvm.store %said, %g : i32, !llvm.ptr<1>
      llvm.store %one, %flag atomic syncscope("device") release {alignment = 4 : i64} : i32, !llvm.ptr<1>
    }
    gpu.return
  }

  // Thread 1 of block 0 reads what thread 0 has written. It is ordered after that by the
  // answer of block 1 only.
  gpu.func @another_block_answers(%m: memref<256xi32>) kernel {
    %b = nvvm.read.ptx.sreg.ctaid.x : i32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %seven = llvm.mlir.constant(7 : i32) : i32
    %index = memref.extract_aligned_pointer_as_index %m : memref<256xi32> -> index
    %number = arith.index_cast %index : index to i64
    %g = llvm.inttoptr %number : i64 to !llvm.ptr<1>
    %out = llvm.getelementptr %g[100] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %flag = llvm.getelementptr %g[200] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %answer = llvm.getelementptr %g[208] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %is_first_block = llvm.icmp "eq" %b, %zero : i32
    %is_first = llvm.icmp "eq" %t, %zero : i32
    scf.if %is_first_block {
      scf.if %is_first {
        llvm.store %seven, %g : i32, !llvm.ptr<1>
        llvm.store %one, %flag atomic syncscope("device") release {alignment = 4 : i64} : i32, !llvm.ptr<1>
      } else {
        scf.while : () -> () {
          %value = llvm.load %answer atomic syncscope("device") acquire {alignment = 4 : i64} : !llvm.ptr<1> -> i32
          %waits = llvm.icmp "eq" %value, %zero : i32
          scf.condition(%waits)
        } do {
          scf.yield
        }
        %value = llvm.load %g : !llvm.ptr<1> -> i32
        llvm.store %value, %out : i32, !llvm.ptr<1>
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
        llvm.store %one, %answer atomic syncscope("device") release {alignment = 4 : i64} : i32, !llvm.ptr<1>
      }
    }
    gpu.return
  }
}

func.func @units() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant 0 : i32
  %m = func.call @make() : () -> memref<256xi32>
  gpu.launch_func @kernels::@take_units blocks in (%c4, %c1, %c1) threads in (%c1, %c1, %c1) args(%m : memref<256xi32>)
  %host = func.call @copy(%m) : (memref<256xi32>) -> memref<256xi32>
  %bits = scf.for %i = %c0 to %c16 step %c1 iter_args(%all = %zero) -> i32 {
    %bit = memref.load %host[%i] : memref<256xi32>
    %more = arith.ori %all, %bit : i32
    scf.yield %more : i32
  }
  // ALONE: {{^}}1
  // PAIRS: {{^}}3
  // TURNS: {{^}}15
  vector.print %bits : i32
  memref.dealloc %host : memref<256xi32>
  return
}

func.func @waits() {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c100 = arith.constant 100 : index
  %m = func.call @make() : () -> memref<256xi32>
  gpu.launch_func @kernels::@wait_for_last blocks in (%c2, %c1, %c1) threads in (%c1, %c1, %c1) args(%m : memref<256xi32>)
  %host = func.call @copy(%m) : (memref<256xi32>) -> memref<256xi32>
  %value = memref.load %host[%c100] : memref<256xi32>
  // WAITS: {{^}}42
  vector.print %value : i32
  memref.dealloc %host : memref<256xi32>
  return
}

func.func @answers() {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c100 = arith.constant 100 : index
  %m = func.call @make() : () -> memref<256xi32>
  gpu.launch_func @kernels::@another_block_answers blocks in (%c2, %c1, %c1) threads in (%c2, %c1, %c1) args(%m : memref<256xi32>)
  %host = func.call @copy(%m) : (memref<256xi32>) -> memref<256xi32>
  %value = memref.load %host[%c100] : memref<256xi32>
  // ANSWERS: {{^}}7
  vector.print %value : i32
  memref.dealloc %host : memref<256xi32>
  return
}

func.func private @copy(%m: memref<256xi32>) -> memref<256xi32> {
  %host = memref.alloc() : memref<256xi32>
  gpu.memcpy %host, %m : memref<256xi32>, memref<256xi32>
  gpu.dealloc %m : memref<256xi32>
  return %host : memref<256xi32>
}

func.func private @make() -> memref<256xi32> {
  %zero = arith.constant 0 : i32
  %m = gpu.alloc() : memref<256xi32>
  gpu.memset %m, %zero : memref<256xi32>, i32
  return %m : memref<256xi32>
}

}
