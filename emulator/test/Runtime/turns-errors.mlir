// Errors that blocks which run one after the other do not show: one block takes
// all units, the last block is the last to count itself, and no block sees a lock
// that another block is about to take. In turns (KVCACHE_EMULATOR_BLOCKS), the
// sanitizer finds them.

// DEFINE: %{run} = %emulator_tests/kvcache-run-cases %t.mlir --shared-libs=%kvcache_emulator,%kvcache_runtime
// RUN: %add_launches %s | kvcache-opt --kvcache-to-emulator="chip=sm_90a" -o %t.mlir
// RUN: %{run} --right=units_that_overlap,last_block_by_number,lock_in_two_steps,store_after_another
// RUN: env KVCACHE_EMULATOR_BLOCKS=4 %{run} | FileCheck %s -DFILE="<stdin>"
// RUN: env KVCACHE_EMULATOR_BLOCKS=4 KVCACHE_EMULATOR_SEED=2 %{run} | FileCheck %s -DFILE="<stdin>"

module attributes {gpu.container_module} {

gpu.module @kernels {
  // A unit writes a number that belongs to the next one.
  // LAUNCH: 4 blocks
  gpu.func @units_that_overlap(%g: !llvm.ptr<1>) kernel {
    %one = llvm.mlir.constant(1 : i32) : i32
    %count = llvm.mlir.constant(16 : i32) : i32
    %queue = llvm.getelementptr %g[200] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    scf.while : () -> () {
      %unit = llvm.atomicrmw add %queue, %one syncscope("device") monotonic : !llvm.ptr<1>, i32
      %is_unit = llvm.icmp "slt" %unit, %count : i32
      scf.if %is_unit {
        %next = llvm.add %unit, %one : i32
        %first = llvm.getelementptr %g[%unit] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
        %second = llvm.getelementptr %g[%next] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
        // CHECK-LABEL: run @units_that_overlap:
        // CHECK: [[FILE]]:{{[0-9]+}}:9: llvm.store: thread (0, 0, 0) of block ({{[0-3]}}, 0, 0) writes 4 bytes at byte {{[0-9]+}} of an allocation of 1024 bytes, which block ({{[0-3]}}, 0, 0) writes in llvm.store at [[FILE]]:{{[0-9]+}}:9 without order between the blocks (a race)
        llvm.store %unit, %first : i32, !llvm.ptr<1>
        llvm.store %unit, %second : i32, !llvm.ptr<1>
      }
      scf.condition(%is_unit)
    } do {
      scf.yield
    }
    gpu.return
  }

  // The block with the highest number merges, whichever is the last.
  // LAUNCH: 4 blocks
  gpu.func @last_block_by_number(%g: !llvm.ptr<1>) kernel {
    %b = nvvm.read.ptx.sreg.ctaid.x : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %three = llvm.mlir.constant(3 : i32) : i32
    %mine = llvm.getelementptr %g[%b] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %out = llvm.getelementptr %g[100] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %flag = llvm.getelementptr %g[200] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    // CHECK-LABEL: run @last_block_by_number:
    // CHECK: thread (0, 0, 0) of block ({{[0-3]}}, 0, 0) {{reads|writes}} {{4|16}} bytes at byte {{[0-9]+}} of an allocation of 1024 bytes, which block ({{[0-3]}}, 0, 0) {{reads|writes}} in llvm.{{load|store}} at [[FILE]]:{{.*}} without order between the blocks (a race)
    llvm.store %b, %mine : i32, !llvm.ptr<1>
    %before = llvm.atomicrmw add %flag, %one syncscope("device") acq_rel : !llvm.ptr<1>, i32
    %is_last = llvm.icmp "eq" %b, %three : i32
    scf.if %is_last {
      %all = llvm.load %g {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
      %sum = vector.reduction <add>, %all : vector<4xi32> into i32
      llvm.store %sum, %out : i32, !llvm.ptr<1>
    }
    gpu.return
  }

  // Between the load and the store, another block may take the lock as well.
  // LAUNCH: 4 blocks
  gpu.func @lock_in_two_steps(%g: !llvm.ptr<1>) kernel {
    %zero = llvm.mlir.constant(0 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %lock = llvm.getelementptr %g[200] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    scf.while : () -> () {
      %taken = llvm.load %lock atomic syncscope("device") acquire {alignment = 4 : i64} : !llvm.ptr<1> -> i32
      %waits = llvm.icmp "ne" %taken, %zero : i32
      scf.condition(%waits)
    } do {
      scf.yield
    }
    llvm.store %one, %lock atomic syncscope("device") monotonic {alignment = 4 : i64} : i32, !llvm.ptr<1>
    // CHECK-LABEL: run @lock_in_two_steps:
    // CHECK: thread (0, 0, 0) of block ({{[0-3]}}, 0, 0) {{reads|writes}} 4 bytes at byte 0 of an allocation of 1024 bytes, which block ({{[0-3]}}, 0, 0) {{reads|writes}} in llvm.{{load|store}} at [[FILE]]:{{.*}} without order between the blocks (a race)
    %old = llvm.load %g : !llvm.ptr<1> -> i32
    %new = llvm.add %old, %one : i32
    llvm.store %new, %g : i32, !llvm.ptr<1>
    llvm.store %zero, %lock atomic syncscope("device") release {alignment = 4 : i64} : i32, !llvm.ptr<1>
    gpu.return
  }

  // The last value of the flag is the first block's, which does not publish what
  // the second one has released by the value before. Without turns, the first
  // one gives up waiting for it.
  // LAUNCH: 3 blocks
  gpu.func @store_after_another(%g: !llvm.ptr<1>) kernel {
    %b = nvvm.read.ptx.sreg.ctaid.x : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %two = llvm.mlir.constant(2 : i32) : i32
    %three = llvm.mlir.constant(3 : i32) : i32
    %flag = llvm.getelementptr %g[200] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %done = llvm.getelementptr %g[201] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %is_first = llvm.icmp "eq" %b, %zero : i32
    %is_second = llvm.icmp "eq" %b, %one : i32
    %is_third = llvm.icmp "eq" %b, %two : i32
    scf.if %is_first {
      llvm.store %one, %flag atomic syncscope("device") release {alignment = 4 : i64} : i32, !llvm.ptr<1>
      func.call @wait_for(%flag, %two) : (!llvm.ptr<1>, i32) -> ()
      llvm.store %three, %flag atomic syncscope("device") release {alignment = 4 : i64} : i32, !llvm.ptr<1>
      llvm.store %one, %done atomic syncscope("device") monotonic {alignment = 4 : i64} : i32, !llvm.ptr<1>
    }
    scf.if %is_second {
      func.call @wait_for(%flag, %one) : (!llvm.ptr<1>, i32) -> ()
      llvm.store %b, %g : i32, !llvm.ptr<1>
      llvm.store %two, %flag atomic syncscope("device") release {alignment = 4 : i64} : i32, !llvm.ptr<1>
    }
    scf.if %is_third {
      func.call @wait_for(%done, %one) : (!llvm.ptr<1>, i32) -> ()
      %last = llvm.load %flag atomic syncscope("device") acquire {alignment = 4 : i64} : !llvm.ptr<1> -> i32
      // CHECK-LABEL: run @store_after_another:
      // CHECK: [[FILE]]:[[#@LINE+1]]:16: llvm.load: thread (0, 0, 0) of block (2, 0, 0) reads 4 bytes at byte 0 of an allocation of 1024 bytes, which block (1, 0, 0) writes in llvm.store at [[FILE]]:{{.*}} without order between the blocks (a race)
      %value = llvm.load %g : !llvm.ptr<1> -> i32
      %out = llvm.getelementptr %g[100] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
      llvm.store %value, %out : i32, !llvm.ptr<1>
    }
    gpu.return
  }

  func.func @wait_for(%flag: !llvm.ptr<1>, %wanted: i32) {
    %zero = llvm.mlir.constant(0 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %most = llvm.mlir.constant(1000 : i32) : i32
    scf.while (%rounds = %zero) : (i32) -> i32 {
      %now = llvm.load %flag atomic syncscope("device") monotonic {alignment = 4 : i64} : !llvm.ptr<1> -> i32
      %is_other = llvm.icmp "ne" %now, %wanted : i32
      %is_early = llvm.icmp "ult" %rounds, %most : i32
      %waits = llvm.and %is_other, %is_early : i1
      scf.condition(%waits) %rounds : i32
    } do {
    ^bb0(%rounds: i32):
      %next = llvm.add %rounds, %one : i32
      scf.yield %next : i32
    }
    return
  }
}

}
