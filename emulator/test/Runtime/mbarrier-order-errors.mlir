// Reports of kernels that arrive at mbarriers and wait for them
// where they should, but for one place.

// RUN: %add_launches %s | kvcache-opt --kvcache-to-emulator="chip=sm_100a" -o %t.mlir
// RUN: %emulator_tests/kvcache-run-cases %t.mlir --shared-libs=%kvcache_emulator,%kvcache_runtime | FileCheck %s -DFILE="<stdin>"

// PRELUDE: tile-barrier.mlir

module attributes {gpu.container_module} {

gpu.module @kernels {
  // LAUNCH: 2 threads
  gpu.func @arrival_without_release(%g: !llvm.ptr<1>) kernel {
    %tile, %b, %is_first = func.call @init_for_all() : () -> (!llvm.ptr<3>, !llvm.ptr<3>, i1)
    %one = llvm.mlir.constant(1 : i32) : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    scf.if %is_first {
      llvm.store %one, %tile : i32, !llvm.ptr<3>
      %s = nvvm.mbarrier.arrive %b {relaxed = true} : !llvm.ptr<3> -> i64
    } else {
      scf.while : () -> () {
        %done = nvvm.mbarrier.try_wait %b, %zero : !llvm.ptr<3>, i32 -> i1
        %true = llvm.mlir.constant(true) : i1
        %again = llvm.xor %done, %true : i1
        scf.condition(%again)
      } do {
        scf.yield
      }
      // CHECK-LABEL: run @arrival_without_release:
      // CHECK: [[FILE]]:[[#@LINE+1]]:16: llvm.load: thread (1, 0, 0) of block (0, 0, 0) reads 4 bytes at byte 0 of shared @tile, which thread (0, 0, 0) writes in llvm.store at [[FILE]]:{{.*}} without order between them (a race)
      %value = llvm.load %tile : !llvm.ptr<3> -> i32
      llvm.store %value, %g : i32, !llvm.ptr<1>
    }
    gpu.return
  }

  // LAUNCH: 2 threads
  gpu.func @wait_without_acquire(%g: !llvm.ptr<1>) kernel {
    %tile, %b, %is_first = func.call @init_for_all() : () -> (!llvm.ptr<3>, !llvm.ptr<3>, i1)
    %one = llvm.mlir.constant(1 : i32) : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    scf.if %is_first {
      llvm.store %one, %tile : i32, !llvm.ptr<3>
      %s = nvvm.mbarrier.arrive %b : !llvm.ptr<3> -> i64
    } else {
      scf.while : () -> () {
        %done = nvvm.mbarrier.try_wait %b, %zero {relaxed = true} : !llvm.ptr<3>, i32 -> i1
        %true = llvm.mlir.constant(true) : i1
        %again = llvm.xor %done, %true : i1
        scf.condition(%again)
      } do {
        scf.yield
      }
      // CHECK-LABEL: run @wait_without_acquire:
      // CHECK: [[FILE]]:[[#@LINE+1]]:16: llvm.load: thread (1, 0, 0) of block (0, 0, 0) reads 4 bytes at byte 0 of shared @tile, which thread (0, 0, 0) writes in llvm.store at [[FILE]]:{{.*}} without order between them (a race)
      %value = llvm.load %tile : !llvm.ptr<3> -> i32
      llvm.store %value, %g : i32, !llvm.ptr<1>
    }
    gpu.return
  }

  // LAUNCH: 2 threads
  gpu.func @no_wait(%g: !llvm.ptr<1>) kernel {
    %tile, %b, %is_first = func.call @init_for_all() : () -> (!llvm.ptr<3>, !llvm.ptr<3>, i1)
    %one = llvm.mlir.constant(1 : i32) : i32
    scf.if %is_first {
      llvm.store %one, %tile : i32, !llvm.ptr<3>
      %s = nvvm.mbarrier.arrive %b : !llvm.ptr<3> -> i64
    } else {
      // CHECK-LABEL: run @no_wait:
      // CHECK: [[FILE]]:[[#@LINE+2]]:7: llvm.store: thread (1, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which were uninitialized, and for which no copy had been issued, when llvm.load at [[FILE]]:[[#@LINE+1]]:16 read them; the first is byte 0 of shared @tile
      %value = llvm.load %tile : !llvm.ptr<3> -> i32
      llvm.store %value, %g : i32, !llvm.ptr<1>
    }
    gpu.return
  }

  // A tile after a copy in phase 0 of the mbarrier, and bytes of it that no copy writes.
  func.func private @begin_phase_1(%g: !llvm.ptr<1>) -> (!llvm.ptr<3>, !llvm.ptr<3>, !llvm.ptr<3>, i1) {
    %tile, %b, %is_first = func.call @init_for_all() : () -> (!llvm.ptr<3>, !llvm.ptr<3>, i1)
    %plain = llvm.getelementptr %tile[64] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %zero = llvm.mlir.constant(0 : i32) : i32
    scf.if %is_first {
      nvvm.cp.async.shared.global %tile, %g, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
      nvvm.cp.async.mbarrier.arrive %b {noinc = true} : !llvm.ptr<3>
    }
    nvvm.mbarrier.try_wait.parity %b, %zero, %zero : !llvm.ptr<3>, i32, i32
    nvvm.barrier0
    return %tile, %plain, %b, %is_first : !llvm.ptr<3>, !llvm.ptr<3>, !llvm.ptr<3>, i1
  }

  // LAUNCH: 2 threads
  gpu.func @store_before_an_arrival_of_copies(%g: !llvm.ptr<1>) kernel {
    %tile, %plain, %b, %is_first = func.call @begin_phase_1(%g) : (!llvm.ptr<1>) -> (!llvm.ptr<3>, !llvm.ptr<3>, !llvm.ptr<3>, i1)
    %one = llvm.mlir.constant(1 : i32) : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    scf.if %is_first {
      nvvm.cp.async.shared.global %tile, %g, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
      llvm.store %one, %plain : i32, !llvm.ptr<3>
      nvvm.cp.async.mbarrier.arrive %b {noinc = true} : !llvm.ptr<3>
    } else {
      nvvm.mbarrier.try_wait.parity %b, %one, %zero : !llvm.ptr<3>, i32, i32
      %copied = llvm.load %tile : !llvm.ptr<3> -> i32
      // CHECK-LABEL: run @store_before_an_arrival_of_copies:
      // CHECK: [[FILE]]:[[#@LINE+1]]:16: llvm.load: thread (1, 0, 0) of block (0, 0, 0) reads 4 bytes at byte 64 of shared @tile, which thread (0, 0, 0) writes in llvm.store at [[FILE]]:{{.*}} without order between them (a race)
      %value = llvm.load %plain : !llvm.ptr<3> -> i32
      llvm.store %value, %g : i32, !llvm.ptr<1>
    }
    gpu.return
  }

  // LAUNCH: 2 threads
  gpu.func @store_after_an_arrival_of_copies(%g: !llvm.ptr<1>) kernel {
    %tile, %plain, %b, %is_first = func.call @begin_phase_1(%g) : (!llvm.ptr<1>) -> (!llvm.ptr<3>, !llvm.ptr<3>, !llvm.ptr<3>, i1)
    %one = llvm.mlir.constant(1 : i32) : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    scf.if %is_first {
      nvvm.cp.async.shared.global %tile, %g, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
      nvvm.cp.async.mbarrier.arrive %b {noinc = true} : !llvm.ptr<3>
      llvm.store %one, %plain : i32, !llvm.ptr<3>
    } else {
      nvvm.mbarrier.try_wait.parity %b, %one, %zero : !llvm.ptr<3>, i32, i32
      %copied = llvm.load %tile : !llvm.ptr<3> -> i32
      // CHECK-LABEL: run @store_after_an_arrival_of_copies:
      // CHECK: [[FILE]]:[[#@LINE+1]]:16: llvm.load: thread (1, 0, 0) of block (0, 0, 0) reads 4 bytes at byte 64 of shared @tile, which thread (0, 0, 0) writes in llvm.store at [[FILE]]:{{.*}} without order between them (a race)
      %value = llvm.load %plain : !llvm.ptr<3> -> i32
      llvm.store %value, %g : i32, !llvm.ptr<1>
    }
    gpu.return
  }

  // LAUNCH: 2 threads
  gpu.func @store_before_copies_waited_for(%g: !llvm.ptr<1>) kernel {
    %tile, %plain, %b, %is_first = func.call @begin_phase_1(%g) : (!llvm.ptr<1>) -> (!llvm.ptr<3>, !llvm.ptr<3>, !llvm.ptr<3>, i1)
    %one = llvm.mlir.constant(1 : i32) : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    scf.if %is_first {
      nvvm.cp.async.shared.global %tile, %g, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
      llvm.store %one, %plain : i32, !llvm.ptr<3>
      nvvm.cp.async.commit.group
      nvvm.cp.async.wait.group 0
      nvvm.cp.async.mbarrier.arrive %b {noinc = true} : !llvm.ptr<3>
    } else {
      nvvm.mbarrier.try_wait.parity %b, %one, %zero : !llvm.ptr<3>, i32, i32
      %copied = llvm.load %tile : !llvm.ptr<3> -> i32
      // CHECK-LABEL: run @store_before_copies_waited_for:
      // CHECK: [[FILE]]:[[#@LINE+1]]:16: llvm.load: thread (1, 0, 0) of block (0, 0, 0) reads 4 bytes at byte 64 of shared @tile, which thread (0, 0, 0) writes in llvm.store at [[FILE]]:{{.*}} without order between them (a race)
      %value = llvm.load %plain : !llvm.ptr<3> -> i32
      llvm.store %value, %g : i32, !llvm.ptr<1>
    }
    gpu.return
  }

  gpu.func @result_of_try_wait_ignored(%g: !llvm.ptr<1>) kernel {
    %tile, %b, %s = func.call @begin_copy(%g) : (!llvm.ptr<1>) -> (!llvm.ptr<3>, !llvm.ptr<3>, i64)
    %zero = llvm.mlir.constant(0 : i32) : i32
    %done = nvvm.mbarrier.try_wait %b, %zero : !llvm.ptr<3>, i32 -> i1
    // CHECK-LABEL: run @result_of_try_wait_ignored:
    // CHECK: [[FILE]]:[[#@LINE+1]]:14: llvm.load: thread (0, 0, 0) of block (0, 0, 0) reads 4 bytes at byte 0 of shared @tile, which a copy issued by thread (0, 0, 0) in nvvm.cp.async.bulk.shared.cluster.global at [[FILE]]:{{.*}} has in flight: its barrier has not completed
    %value = llvm.load %tile : !llvm.ptr<3> -> i32
    llvm.store %value, %g : i32, !llvm.ptr<1>
    gpu.return
  }

  gpu.func @result_of_try_wait_with_limit_ignored(%g: !llvm.ptr<1>) kernel {
    %tile, %b, %s = func.call @begin_copy(%g) : (!llvm.ptr<1>) -> (!llvm.ptr<3>, !llvm.ptr<3>, i64)
    %bytes = llvm.mlir.constant(64 : i32) : i32
    %done = nvvm.mbarrier.try_wait %b, %s, %bytes : !llvm.ptr<3>, i64, i32 -> i1
    // CHECK-LABEL: run @result_of_try_wait_with_limit_ignored:
    // CHECK: [[FILE]]:[[#@LINE+1]]:14: llvm.load: thread (0, 0, 0) of block (0, 0, 0) reads 4 bytes at byte 0 of shared @tile, which a copy issued by thread (0, 0, 0) in nvvm.cp.async.bulk.shared.cluster.global at [[FILE]]:{{.*}} has in flight: its barrier has not completed
    %value = llvm.load %tile : !llvm.ptr<3> -> i32
    llvm.store %value, %g : i32, !llvm.ptr<1>
    gpu.return
  }

  gpu.func @result_of_test_wait_ignored(%g: !llvm.ptr<1>) kernel {
    %tile, %b, %s = func.call @begin_copy(%g) : (!llvm.ptr<1>) -> (!llvm.ptr<3>, !llvm.ptr<3>, i64)
    %done = nvvm.mbarrier.test.wait %b, %s : !llvm.ptr<3>, i64 -> i1
    // CHECK-LABEL: run @result_of_test_wait_ignored:
    // CHECK: [[FILE]]:[[#@LINE+1]]:14: llvm.load: thread (0, 0, 0) of block (0, 0, 0) reads 4 bytes at byte 0 of shared @tile, which a copy issued by thread (0, 0, 0) in nvvm.cp.async.bulk.shared.cluster.global at [[FILE]]:{{.*}} has in flight: its barrier has not completed
    %value = llvm.load %tile : !llvm.ptr<3> -> i32
    llvm.store %value, %g : i32, !llvm.ptr<1>
    gpu.return
  }
}

}
