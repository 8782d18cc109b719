// Reports of accesses of global memory that need an order and
// have none: between the threads of a block, and between blocks, for which an
// order takes a release and an acquire, or fences on both sides, of all of the
// device.

// RUN: %add_launches %s | kvcache-opt --kvcache-to-emulator="chip=sm_90a" -o %t.mlir
// RUN: env KVCACHE_EMULATOR_THREADS=1 %emulator_tests/kvcache-run-cases %t.mlir --shared-libs=%kvcache_emulator,%kvcache_runtime | FileCheck %s -DFILE="<stdin>"
// RUN: env KVCACHE_EMULATOR_THREADS=4 %emulator_tests/kvcache-run-cases %t.mlir --shared-libs=%kvcache_emulator,%kvcache_runtime | FileCheck %s -DFILE="<stdin>"
// RUN: env KVCACHE_EMULATOR_BLOCKS=4 KVCACHE_EMULATOR_SEED=0 %emulator_tests/kvcache-run-cases %t.mlir --shared-libs=%kvcache_emulator,%kvcache_runtime | FileCheck %s --check-prefix=TURNS
// RUN: env KVCACHE_EMULATOR_BLOCKS=4 KVCACHE_EMULATOR_SEED=5 %emulator_tests/kvcache-run-cases %t.mlir --shared-libs=%kvcache_emulator,%kvcache_runtime | FileCheck %s --check-prefix=TURNS

// Blocks in turns reach these in another order.
// TURNS-COUNT-9: (a race)

module attributes {gpu.container_module} {

gpu.module @kernels {
  llvm.mlir.global internal @tile() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<64 x i8>
  llvm.mlir.global internal @barrier() {addr_space = 3 : i32, alignment = 8 : i64} : i64

  gpu.func @scheduler_that_reads_after_its_entries(%m: memref<256xi32>) kernel {
    %index = memref.extract_aligned_pointer_as_index %m : memref<256xi32> -> index
    %number = arith.index_cast %index : index to i64
    %g = llvm.inttoptr %number : i64 to !llvm.ptr<1>
    %b = nvvm.read.ptx.sreg.ctaid.x : i32
    %mine = llvm.getelementptr %g[%b] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %out = llvm.getelementptr %g[100] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    // The host has written 4 entries for 5 blocks.
    // CHECK-LABEL: run @scheduler_that_reads_after_its_entries:
    // CHECK: [[FILE]]:[[#@LINE+3]]:5: llvm.store: thread (0, 0, 0) of block (4, 0, 0) stores to global memory a value that depends on bytes which were uninitialized when llvm.load at [[FILE]]:[[#@LINE+1]]:14 read them; the first is byte 16 of an allocation of 1024 bytes
    %entry = llvm.load %mine : !llvm.ptr<1> -> i32
    %to = llvm.getelementptr %out[%b] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %entry, %to : i32, !llvm.ptr<1>
    gpu.return
  }

  // LAUNCH: 2 blocks
  gpu.func @flag_without_acquire(%g: !llvm.ptr<1>) kernel {
    %b = nvvm.read.ptx.sreg.ctaid.x : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %mine = llvm.getelementptr %g[%b] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %out = llvm.getelementptr %g[100] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %flag = llvm.getelementptr %g[200] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %is_writer = llvm.icmp "eq" %b, %zero : i32
    scf.if %is_writer {
      llvm.store %one, %g : i32, !llvm.ptr<1>
      llvm.store %one, %flag atomic syncscope("device") release {alignment = 4 : i64} : i32, !llvm.ptr<1>
    } else {
      %seen = scf.while : () -> i32 {
        %value = llvm.load %flag atomic syncscope("device") monotonic {alignment = 4 : i64} : !llvm.ptr<1> -> i32
        %waits = llvm.icmp "eq" %value, %zero : i32
        scf.condition(%waits) %value : i32
      } do {
      ^bb0(%again: i32):
        scf.yield
      }
      llvm.store %seen, %mine : i32, !llvm.ptr<1>
      // CHECK-LABEL: run @flag_without_acquire:
      // CHECK: [[FILE]]:[[#@LINE+1]]:15: llvm.load: thread (0, 0, 0) of block (1, 0, 0) reads 4 bytes at byte 0 of an allocation of 1024 bytes, which block (0, 0, 0) writes in llvm.store at [[FILE]]:{{.*}}:7 without order between the blocks (a race)
      %data = llvm.load %g : !llvm.ptr<1> -> i32
      llvm.store %data, %out : i32, !llvm.ptr<1>
    }
    gpu.return
  }

  // LAUNCH: 2 blocks
  gpu.func @flag_without_release(%g: !llvm.ptr<1>) kernel {
    %b = nvvm.read.ptx.sreg.ctaid.x : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %mine = llvm.getelementptr %g[%b] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %out = llvm.getelementptr %g[100] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %flag = llvm.getelementptr %g[200] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %is_writer = llvm.icmp "eq" %b, %zero : i32
    scf.if %is_writer {
      llvm.store %one, %g : i32, !llvm.ptr<1>
      llvm.store %one, %flag atomic syncscope("device") monotonic {alignment = 4 : i64} : i32, !llvm.ptr<1>
    } else {
      %seen = scf.while : () -> i32 {
        %value = llvm.load %flag atomic syncscope("device") acquire {alignment = 4 : i64} : !llvm.ptr<1> -> i32
        %waits = llvm.icmp "eq" %value, %zero : i32
        scf.condition(%waits) %value : i32
      } do {
      ^bb0(%again: i32):
        scf.yield
      }
      llvm.store %seen, %mine : i32, !llvm.ptr<1>
      // CHECK-LABEL: run @flag_without_release:
      // CHECK: [[FILE]]:[[#@LINE+1]]:15: llvm.load: thread (0, 0, 0) of block (1, 0, 0) reads 4 bytes at byte 0 of an allocation of 1024 bytes, which block (0, 0, 0) writes in llvm.store at [[FILE]]:{{.*}}:7 without order between the blocks (a race)
      %data = llvm.load %g : !llvm.ptr<1> -> i32
      llvm.store %data, %out : i32, !llvm.ptr<1>
    }
    gpu.return
  }

  // LAUNCH: 2 blocks
  gpu.func @flag_that_is_not_atomic(%g: !llvm.ptr<1>) kernel {
    %b = nvvm.read.ptx.sreg.ctaid.x : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %mine = llvm.getelementptr %g[%b] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %out = llvm.getelementptr %g[100] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %flag = llvm.getelementptr %g[200] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %is_writer = llvm.icmp "eq" %b, %zero : i32
    scf.if %is_writer {
      llvm.store %one, %g : i32, !llvm.ptr<1>
      llvm.store %one, %flag  : i32, !llvm.ptr<1>
    } else {
      %seen = scf.while : () -> i32 {
        // CHECK-LABEL: run @flag_that_is_not_atomic:
        // CHECK: [[FILE]]:[[#@LINE+1]]:18: llvm.load: thread (0, 0, 0) of block (1, 0, 0) reads 4 bytes at byte 800 of an allocation of 1024 bytes, which block (0, 0, 0) writes in llvm.store at [[FILE]]:{{.*}}:7 without order between the blocks (a race)
        %value = llvm.load %flag  : !llvm.ptr<1> -> i32
        %waits = llvm.icmp "eq" %value, %zero : i32
        scf.condition(%waits) %value : i32
      } do {
      ^bb0(%again: i32):
        scf.yield
      }
      llvm.store %seen, %mine : i32, !llvm.ptr<1>
      %data = llvm.load %g : !llvm.ptr<1> -> i32
      llvm.store %data, %out : i32, !llvm.ptr<1>
    }
    gpu.return
  }

  // LAUNCH: 2 blocks
  gpu.func @flag_of_the_block(%g: !llvm.ptr<1>) kernel {
    %b = nvvm.read.ptx.sreg.ctaid.x : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %mine = llvm.getelementptr %g[%b] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %out = llvm.getelementptr %g[100] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %flag = llvm.getelementptr %g[200] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %is_writer = llvm.icmp "eq" %b, %zero : i32
    scf.if %is_writer {
      llvm.store %one, %g : i32, !llvm.ptr<1>
      llvm.store %one, %flag atomic syncscope("block") release {alignment = 4 : i64} : i32, !llvm.ptr<1>
    } else {
      %seen = scf.while : () -> i32 {
        // CHECK-LABEL: run @flag_of_the_block:
        // CHECK: [[FILE]]:[[#@LINE+1]]:18: llvm.load: thread (0, 0, 0) of block (1, 0, 0) atomically reads 4 bytes at byte 800 of an allocation of 1024 bytes, which block (0, 0, 0) atomically updates in llvm.store at [[FILE]]:{{.*}}:7, and one of the two only has the scope of its own block (a race)
        %value = llvm.load %flag atomic syncscope("device") acquire {alignment = 4 : i64} : !llvm.ptr<1> -> i32
        %waits = llvm.icmp "eq" %value, %zero : i32
        scf.condition(%waits) %value : i32
      } do {
      ^bb0(%again: i32):
        scf.yield
      }
      llvm.store %seen, %mine : i32, !llvm.ptr<1>
      %data = llvm.load %g : !llvm.ptr<1> -> i32
      llvm.store %data, %out : i32, !llvm.ptr<1>
    }
    gpu.return
  }

  // LAUNCH: 2 blocks
  gpu.func @lock_without_order(%g: !llvm.ptr<1>) kernel {
    %zero = llvm.mlir.constant(0 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %flag = llvm.getelementptr %g[200] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    scf.while : () -> () {
      %pair = llvm.cmpxchg %flag, %zero, %one syncscope("device") monotonic monotonic : !llvm.ptr<1>, i32
      %taken = llvm.extractvalue %pair[1] : !llvm.struct<(i32, i1)>
      %yes = llvm.mlir.constant(true) : i1
      %waits = llvm.xor %taken, %yes : i1
      scf.condition(%waits)
    } do {
      scf.yield
    }
    // CHECK-LABEL: run @lock_without_order:
    // CHECK: [[FILE]]:[[#@LINE+1]]:12: llvm.load: thread (0, 0, 0) of block (1, 0, 0) reads 4 bytes at byte 0 of an allocation of 1024 bytes, which block (0, 0, 0) writes in llvm.store at [[FILE]]:[[#@LINE+3]]:5 without order between the blocks (a race)
    %old = llvm.load %g : !llvm.ptr<1> -> i32
    %new = llvm.add %old, %one : i32
    llvm.store %new, %g : i32, !llvm.ptr<1>
    llvm.store %zero, %flag atomic syncscope("device") monotonic {alignment = 4 : i64} : i32, !llvm.ptr<1>
    gpu.return
  }

  // LAUNCH: 4 blocks
  gpu.func @two_blocks_write_one_place(%g: !llvm.ptr<1>) kernel {
    %b = nvvm.read.ptx.sreg.ctaid.x : i32
    %out = llvm.getelementptr %g[100] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    // CHECK-LABEL: run @two_blocks_write_one_place:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: llvm.store: thread (0, 0, 0) of block (1, 0, 0) writes 4 bytes at byte 400 of an allocation of 1024 bytes, which block (0, 0, 0) writes in llvm.store at [[FILE]]:[[#@LINE+1]]:5 without order between the blocks (a race)
    llvm.store %b, %out : i32, !llvm.ptr<1>
    gpu.return
  }

  // LAUNCH: 4 threads
  gpu.func @two_threads_without_a_barrier(%g: !llvm.ptr<1>) kernel {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %three = llvm.mlir.constant(3 : i32) : i32
    %out = llvm.getelementptr %g[100] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %at = llvm.getelementptr %g[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %t, %at : i32, !llvm.ptr<1>
    %three_less = llvm.xor %t, %three : i32
    %from = llvm.getelementptr %g[%three_less] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    // CHECK-LABEL: run @two_threads_without_a_barrier:
    // CHECK: [[FILE]]:[[#@LINE-4]]:5: llvm.store: thread (2, 0, 0) of block (0, 0, 0) writes 4 bytes at byte 8 of an allocation of 1024 bytes, which thread (1, 0, 0) reads in llvm.load at [[FILE]]:[[#@LINE+1]]:14 without order between them (a race)
    %value = llvm.load %from : !llvm.ptr<1> -> i32
    %to = llvm.getelementptr %out[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %value, %to : i32, !llvm.ptr<1>
    gpu.return
  }

  // LAUNCH: 4 threads
  gpu.func @two_threads_write_one_place(%g: !llvm.ptr<1>) kernel {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %out = llvm.getelementptr %g[100] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    // CHECK-LABEL: run @two_threads_write_one_place:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: llvm.store: thread (1, 0, 0) of block (0, 0, 0) writes 4 bytes at byte 400 of an allocation of 1024 bytes, which thread (0, 0, 0) writes in llvm.store at [[FILE]]:[[#@LINE+1]]:5 without order between them (a race)
    llvm.store %t, %out : i32, !llvm.ptr<1>
    gpu.return
  }

  gpu.func @bulk_store_read_before_it_is_done(%g: !llvm.ptr<1>) kernel {
    %out = llvm.getelementptr %g[100] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %bytes = llvm.mlir.constant(64 : i32) : i32
    %values = llvm.mlir.constant(dense<7> : vector<16xi32>) : vector<16xi32>
    llvm.store %values, %tile {alignment = 4 : i64} : vector<16xi32>, !llvm.ptr<3>
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
    nvvm.cp.async.bulk.global.shared.cta %g, %tile, %bytes : !llvm.ptr<1>, !llvm.ptr<3>
    nvvm.cp.async.bulk.commit.group
    nvvm.cp.async.bulk.wait_group 0 {read}
    // CHECK-LABEL: run @bulk_store_read_before_it_is_done:
    // CHECK: [[FILE]]:[[#@LINE+1]]:14: llvm.load: thread (0, 0, 0) of block (0, 0, 0) reads 4 bytes at byte {{[0-9]+}} of an allocation of {{[0-9]+}} bytes, which a copy issued by thread (0, 0, 0) in nvvm.cp.async.bulk.global.shared.cta at [[FILE]]:[[#@LINE-4]]:5 may still write: no wait for its writes has completed (wait_group without .read)
    %value = llvm.load %g : !llvm.ptr<1> -> i32
    llvm.store %value, %out : i32, !llvm.ptr<1>
    nvvm.cp.async.bulk.wait_group 0
    gpu.return
  }

  // LAUNCH: 2 blocks
  gpu.func @bulk_load_of_what_another_block_writes(%g: !llvm.ptr<1>) kernel {
    %b = nvvm.read.ptx.sreg.ctaid.x : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %barrier = llvm.mlir.addressof @barrier : !llvm.ptr<3>
    %bytes = llvm.mlir.constant(64 : i32) : i32
    %is_writer = llvm.icmp "eq" %b, %zero : i32
    scf.if %is_writer {
      llvm.store %one, %g : i32, !llvm.ptr<1>
    } else {
      nvvm.mbarrier.init %barrier, %one : !llvm.ptr<3>, i32
      nvvm.fence.mbarrier.init
      %state = nvvm.mbarrier.arrive.expect_tx %barrier, %bytes : !llvm.ptr<3>, i32 -> i64
      // CHECK-LABEL: run @bulk_load_of_what_another_block_writes:
      // CHECK: [[FILE]]:[[#@LINE+1]]:7: nvvm.cp.async.bulk.shared.cluster.global: thread (0, 0, 0) of block (1, 0, 0) reads 16 bytes at byte 0 of an allocation of 1024 bytes, which block (0, 0, 0) writes in llvm.store at [[FILE]]:[[#@LINE-6]]:7 without order between the blocks (a race)
      nvvm.cp.async.bulk.shared.cluster.global %tile, %g, %barrier, %bytes : !llvm.ptr<3>, !llvm.ptr<1>
      nvvm.mbarrier.try_wait.parity %barrier, %zero, %zero : !llvm.ptr<3>, i32, i32
    }
    gpu.return
  }
}

func.func @scheduler_that_reads_after_its_entries() {
  %one = arith.constant 1 : index
  %blocks = arith.constant 5 : index
  %zero = arith.constant 0 : i32
  %m = gpu.alloc() : memref<256xi32>
  %front = memref.subview %m[0] [4] [1] : memref<256xi32> to memref<4xi32>
  gpu.memset %front, %zero : memref<4xi32>, i32
  gpu.launch_func @kernels::@scheduler_that_reads_after_its_entries blocks in (%blocks, %one, %one) threads in (%one, %one, %one) args(%m : memref<256xi32>)
  return
}

}
