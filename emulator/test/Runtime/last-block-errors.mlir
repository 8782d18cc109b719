// Reports of blocks that count themselves and merge what others
// have written, where the counter orders nothing: it takes a release and an
// acquire, or fences on both sides, of all of the device.

// RUN: %add_launches %s | kvcache-opt --kvcache-to-emulator="chip=sm_90a" -o %t.mlir
// RUN: env KVCACHE_EMULATOR_THREADS=1 %emulator_tests/kvcache-run-cases %t.mlir --shared-libs=%kvcache_emulator,%kvcache_runtime | FileCheck %s -DFILE="<stdin>"
// RUN: env KVCACHE_EMULATOR_THREADS=4 %emulator_tests/kvcache-run-cases %t.mlir --shared-libs=%kvcache_emulator,%kvcache_runtime | FileCheck %s -DFILE="<stdin>"
// RUN: env KVCACHE_EMULATOR_BLOCKS=4 KVCACHE_EMULATOR_SEED=0 %emulator_tests/kvcache-run-cases %t.mlir --shared-libs=%kvcache_emulator,%kvcache_runtime | FileCheck %s --check-prefix=TURNS
// RUN: env KVCACHE_EMULATOR_BLOCKS=4 KVCACHE_EMULATOR_SEED=5 %emulator_tests/kvcache-run-cases %t.mlir --shared-libs=%kvcache_emulator,%kvcache_runtime | FileCheck %s --check-prefix=TURNS

// Blocks in turns reach these in another order.
// TURNS-COUNT-10: (a race)

// PRELUDE: last-block.mlir

module attributes {gpu.container_module} {

gpu.module @kernels {
  // LAUNCH: 4 blocks
  gpu.func @no_fence_before_the_last_block_merges(%g: !llvm.ptr<1>) kernel {
    %one = llvm.mlir.constant(1 : i32) : i32
    %out, %flag = func.call @store_number(%g) : (!llvm.ptr<1>) -> (!llvm.ptr<1>, !llvm.ptr<1>)
    %before = llvm.atomicrmw add %flag, %one monotonic : !llvm.ptr<1>, i32
    %is_last = func.call @is_last(%before) : (i32) -> i1
    scf.if %is_last {
      nvvm.memory.barrier <gpu>
      // CHECK-LABEL: run @no_fence_before_the_last_block_merges:
      // CHECK: [[FILE]]:[[#@LINE+1]]:14: llvm.load: thread (0, 0, 0) of block (3, 0, 0) reads 16 bytes at byte 0 of an allocation of 1024 bytes, which block (2, 0, 0) writes in llvm.store at [[FILE]]:{{.*}} without order between the blocks (a race)
      %all = llvm.load %g {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
      %sum = vector.reduction <add>, %all : vector<4xi32> into i32
      llvm.store %sum, %out : i32, !llvm.ptr<1>
    }
    gpu.return
  }

  // LAUNCH: 4 blocks
  gpu.func @no_fence_after_the_ticket_of_the_last_block(%g: !llvm.ptr<1>) kernel {
    %one = llvm.mlir.constant(1 : i32) : i32
    %out, %flag = func.call @store_number(%g) : (!llvm.ptr<1>) -> (!llvm.ptr<1>, !llvm.ptr<1>)
    nvvm.memory.barrier <gpu>
    %before = llvm.atomicrmw add %flag, %one monotonic : !llvm.ptr<1>, i32
    %is_last = func.call @is_last(%before) : (i32) -> i1
    scf.if %is_last {
      // CHECK-LABEL: run @no_fence_after_the_ticket_of_the_last_block:
      // CHECK: [[FILE]]:[[#@LINE+1]]:14: llvm.load: thread (0, 0, 0) of block (3, 0, 0) reads 16 bytes at byte 0 of an allocation of 1024 bytes, which block (2, 0, 0) writes in llvm.store at [[FILE]]:{{.*}} without order between the blocks (a race)
      %all = llvm.load %g {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
      %sum = vector.reduction <add>, %all : vector<4xi32> into i32
      llvm.store %sum, %out : i32, !llvm.ptr<1>
    }
    gpu.return
  }

  // LAUNCH: 4 blocks
  gpu.func @fence_of_the_block_between_blocks(%g: !llvm.ptr<1>) kernel {
    %one = llvm.mlir.constant(1 : i32) : i32
    %out, %flag = func.call @store_number(%g) : (!llvm.ptr<1>) -> (!llvm.ptr<1>, !llvm.ptr<1>)
    nvvm.memory.barrier <cta>
    %before = llvm.atomicrmw add %flag, %one monotonic : !llvm.ptr<1>, i32
    %is_last = func.call @is_last(%before) : (i32) -> i1
    scf.if %is_last {
      nvvm.memory.barrier <cta>
      // CHECK-LABEL: run @fence_of_the_block_between_blocks:
      // CHECK: [[FILE]]:[[#@LINE+1]]:14: llvm.load: thread (0, 0, 0) of block (3, 0, 0) reads 16 bytes at byte 0 of an allocation of 1024 bytes, which block (2, 0, 0) writes in llvm.store at [[FILE]]:{{.*}} without order between the blocks (a race)
      %all = llvm.load %g {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
      %sum = vector.reduction <add>, %all : vector<4xi32> into i32
      llvm.store %sum, %out : i32, !llvm.ptr<1>
    }
    gpu.return
  }

  // LAUNCH: 4 blocks
  gpu.func @fence_of_the_block_in_llvm(%g: !llvm.ptr<1>) kernel {
    %one = llvm.mlir.constant(1 : i32) : i32
    %out, %flag = func.call @store_number(%g) : (!llvm.ptr<1>) -> (!llvm.ptr<1>, !llvm.ptr<1>)
    llvm.fence syncscope("block") acq_rel
    %before = llvm.atomicrmw add %flag, %one monotonic : !llvm.ptr<1>, i32
    %is_last = func.call @is_last(%before) : (i32) -> i1
    scf.if %is_last {
      llvm.fence syncscope("device") acq_rel
      // CHECK-LABEL: run @fence_of_the_block_in_llvm:
      // CHECK: [[FILE]]:[[#@LINE+1]]:14: llvm.load: thread (0, 0, 0) of block (3, 0, 0) reads 16 bytes at byte 0 of an allocation of 1024 bytes, which block (2, 0, 0) writes in llvm.store at [[FILE]]:{{.*}} without order between the blocks (a race)
      %all = llvm.load %g {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
      %sum = vector.reduction <add>, %all : vector<4xi32> into i32
      llvm.store %sum, %out : i32, !llvm.ptr<1>
    }
    gpu.return
  }

  // LAUNCH: 4 blocks
  gpu.func @fence_that_only_acquires(%g: !llvm.ptr<1>) kernel {
    %one = llvm.mlir.constant(1 : i32) : i32
    %out, %flag = func.call @store_number(%g) : (!llvm.ptr<1>) -> (!llvm.ptr<1>, !llvm.ptr<1>)
    llvm.fence syncscope("device") acquire
    %before = llvm.atomicrmw add %flag, %one monotonic : !llvm.ptr<1>, i32
    %is_last = func.call @is_last(%before) : (i32) -> i1
    scf.if %is_last {
      nvvm.memory.barrier <gpu>
      // CHECK-LABEL: run @fence_that_only_acquires:
      // CHECK: [[FILE]]:[[#@LINE+1]]:14: llvm.load: thread (0, 0, 0) of block (3, 0, 0) reads 16 bytes at byte 0 of an allocation of 1024 bytes, which block (2, 0, 0) writes in llvm.store at [[FILE]]:{{.*}} without order between the blocks (a race)
      %all = llvm.load %g {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
      %sum = vector.reduction <add>, %all : vector<4xi32> into i32
      llvm.store %sum, %out : i32, !llvm.ptr<1>
    }
    gpu.return
  }

  // LAUNCH: 4 blocks
  gpu.func @ticket_that_only_acquires(%g: !llvm.ptr<1>) kernel {
    %one = llvm.mlir.constant(1 : i32) : i32
    %out, %flag = func.call @store_number(%g) : (!llvm.ptr<1>) -> (!llvm.ptr<1>, !llvm.ptr<1>)
    %before = llvm.atomicrmw add %flag, %one acquire : !llvm.ptr<1>, i32
    %is_last = func.call @is_last(%before) : (i32) -> i1
    scf.if %is_last {
      // CHECK-LABEL: run @ticket_that_only_acquires:
      // CHECK: [[FILE]]:[[#@LINE+1]]:14: llvm.load: thread (0, 0, 0) of block (3, 0, 0) reads 16 bytes at byte 0 of an allocation of 1024 bytes, which block (2, 0, 0) writes in llvm.store at [[FILE]]:{{.*}} without order between the blocks (a race)
      %all = llvm.load %g {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
      %sum = vector.reduction <add>, %all : vector<4xi32> into i32
      llvm.store %sum, %out : i32, !llvm.ptr<1>
    }
    gpu.return
  }

  // LAUNCH: 4 blocks
  gpu.func @ticket_that_only_releases(%g: !llvm.ptr<1>) kernel {
    %one = llvm.mlir.constant(1 : i32) : i32
    %out, %flag = func.call @store_number(%g) : (!llvm.ptr<1>) -> (!llvm.ptr<1>, !llvm.ptr<1>)
    %before = llvm.atomicrmw add %flag, %one release : !llvm.ptr<1>, i32
    %is_last = func.call @is_last(%before) : (i32) -> i1
    scf.if %is_last {
      // CHECK-LABEL: run @ticket_that_only_releases:
      // CHECK: [[FILE]]:[[#@LINE+1]]:14: llvm.load: thread (0, 0, 0) of block (3, 0, 0) reads 16 bytes at byte 0 of an allocation of 1024 bytes, which block (2, 0, 0) writes in llvm.store at [[FILE]]:{{.*}} without order between the blocks (a race)
      %all = llvm.load %g {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
      %sum = vector.reduction <add>, %all : vector<4xi32> into i32
      llvm.store %sum, %out : i32, !llvm.ptr<1>
    }
    gpu.return
  }

  // LAUNCH: 4 blocks
  gpu.func @ticket_of_the_block(%g: !llvm.ptr<1>) kernel {
    %one = llvm.mlir.constant(1 : i32) : i32
    %out, %flag = func.call @store_number(%g) : (!llvm.ptr<1>) -> (!llvm.ptr<1>, !llvm.ptr<1>)
    // CHECK-LABEL: run @ticket_of_the_block:
    // CHECK: [[FILE]]:[[#@LINE+1]]:15: llvm.atomicrmw: thread (0, 0, 0) of block (1, 0, 0) atomically updates 4 bytes at byte 800 of an allocation of 1024 bytes, which block (0, 0, 0) atomically updates in llvm.atomicrmw at [[FILE]]:[[#@LINE+1]]:15, and one of the two only has the scope of its own block (a race)
    %before = llvm.atomicrmw add %flag, %one syncscope("block") acq_rel : !llvm.ptr<1>, i32
    %is_last = func.call @is_last(%before) : (i32) -> i1
    scf.if %is_last {
      %all = llvm.load %g {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
      %sum = vector.reduction <add>, %all : vector<4xi32> into i32
      llvm.store %sum, %out : i32, !llvm.ptr<1>
    }
    gpu.return
  }

  // LAUNCH: 4 blocks
  gpu.func @split_merged_before_it_is_complete(%g: !llvm.ptr<1>) kernel {
    %b = nvvm.read.ptx.sreg.ctaid.x : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %mine = llvm.getelementptr %g[%b] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %out = llvm.getelementptr %g[100] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %is_merger = llvm.icmp "eq" %b, %zero : i32
    scf.if %is_merger {
      %all = llvm.load %g {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
      %sum = vector.reduction <add>, %all : vector<4xi32> into i32
      llvm.store %sum, %out : i32, !llvm.ptr<1>
    } else {
      // CHECK-LABEL: run @split_merged_before_it_is_complete:
      // CHECK: [[FILE]]:[[#@LINE+1]]:7: llvm.store: thread (0, 0, 0) of block (1, 0, 0) writes 4 bytes at byte 4 of an allocation of 1024 bytes, which block (0, 0, 0) reads in llvm.load at [[FILE]]:[[#@LINE-5]]:14 without order between the blocks (a race)
      llvm.store %b, %mine : i32, !llvm.ptr<1>
    }
    gpu.return
  }

  // LAUNCH: 4 blocks, uninitialized memory
  gpu.func @split_merged_before_any_write(%g: !llvm.ptr<1>) kernel {
    %b = nvvm.read.ptx.sreg.ctaid.x : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %mine = llvm.getelementptr %g[%b] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %out = llvm.getelementptr %g[100] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %is_merger = llvm.icmp "eq" %b, %zero : i32
    scf.if %is_merger {
      // CHECK-LABEL: run @split_merged_before_any_write:
      // CHECK: [[FILE]]:[[#@LINE+3]]:7: llvm.store: thread (0, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which were uninitialized when llvm.load at [[FILE]]:[[#@LINE+1]]:14 read them; the first is byte 0 of an allocation of 1024 bytes
      %all = llvm.load %g {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
      %sum = vector.reduction <add>, %all : vector<4xi32> into i32
      llvm.store %sum, %out : i32, !llvm.ptr<1>
    } else {
      llvm.store %b, %mine : i32, !llvm.ptr<1>
    }
    gpu.return
  }

  // LAUNCH: 2 threads, 2 blocks
  gpu.func @no_barrier_before_the_ticket(%g: !llvm.ptr<1>) kernel {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %b = nvvm.read.ptx.sreg.ctaid.x : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %out = llvm.getelementptr %g[100] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %flag = llvm.getelementptr %g[200] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %at = llvm.getelementptr %g[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %is_writer = llvm.icmp "eq" %b, %zero : i32
    scf.if %is_writer {
      llvm.store %one, %at : i32, !llvm.ptr<1>
    }
    %is_first = llvm.icmp "eq" %t, %zero : i32
    scf.if %is_first {
      %before = llvm.atomicrmw add %flag, %one syncscope("device") acq_rel : !llvm.ptr<1>, i32
    }
    nvvm.barrier0
    %is_reader = llvm.icmp "eq" %b, %one : i32
    scf.if %is_reader {
      // CHECK-LABEL: run @no_barrier_before_the_ticket:
      // CHECK: [[FILE]]:[[#@LINE+1]]:16: llvm.load: thread (1, 0, 0) of block (1, 0, 0) reads 4 bytes at byte 4 of an allocation of 1024 bytes, which block (0, 0, 0) writes in llvm.store at [[FILE]]:[[#@LINE-10]]:7 without order between the blocks (a race)
      %value = llvm.load %at : !llvm.ptr<1> -> i32
      %to = llvm.getelementptr %out[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      llvm.store %value, %to : i32, !llvm.ptr<1>
    }
    gpu.return
  }
}

}
