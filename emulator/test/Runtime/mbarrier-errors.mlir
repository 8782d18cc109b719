// Reports of kernels that use mbarriers wrongly, one for each rule.
// PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier".

// RUN: %add_launches %s | kvcache-opt --kvcache-to-emulator="chip=sm_90a" -o %t.mlir
// RUN: %emulator_tests/kvcache-run-cases %t.mlir --shared-libs=%kvcache_emulator,%kvcache_runtime | FileCheck %s -DFILE="<stdin>"

module attributes {gpu.container_module} {

gpu.module @kernels {
  llvm.mlir.global internal @shared() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<1024 x i8>

  gpu.func @count_of_zero() kernel {
    %b = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %count = llvm.mlir.constant(0 : i32) : i32
    // CHECK-LABEL: run @count_of_zero:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.mbarrier.init: thread (0, 0, 0) of block (0, 0, 0) expects a count from 1 to 2^20 - 1, got 0
    nvvm.mbarrier.init %b, %count : !llvm.ptr<3>, i32
    gpu.return
  }

  gpu.func @count_too_large() kernel {
    %b = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %count = llvm.mlir.constant(0x100000 : i32) : i32
    // CHECK-LABEL: run @count_too_large:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.mbarrier.init: thread (0, 0, 0) of block (0, 0, 0) expects a count from 1 to 2^20 - 1, got 1048576
    nvvm.mbarrier.init %b, %count : !llvm.ptr<3>, i32
    gpu.return
  }

  gpu.func @init_of_a_live_barrier() kernel {
    %b = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %one = llvm.mlir.constant(1 : i32) : i32
    nvvm.mbarrier.init %b, %one : !llvm.ptr<3>, i32
    // CHECK-LABEL: run @init_of_a_live_barrier:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.mbarrier.init: thread (0, 0, 0) of block (0, 0, 0) initializes the mbarrier at byte 0 of shared @shared, which has been initialized at [[FILE]]:[[#@LINE-2]]:5 and not been invalidated since
    nvvm.mbarrier.init %b, %one : !llvm.ptr<3>, i32
    gpu.return
  }

  gpu.func @misaligned() kernel {
    %b = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %one = llvm.mlir.constant(1 : i32) : i32
    %odd = llvm.getelementptr %b[68] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    // CHECK-LABEL: run @misaligned:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.mbarrier.init: thread (0, 0, 0) of block (0, 0, 0) expects an address at a multiple of 8 bytes, got byte 68 of shared @shared
    nvvm.mbarrier.init %odd, %one : !llvm.ptr<3>, i32
    gpu.return
  }

  gpu.func @outside_of_shared_memory() kernel {
    %b = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %one = llvm.mlir.constant(1 : i32) : i32
    %later = llvm.getelementptr %b[4096] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    // CHECK-LABEL: run @outside_of_shared_memory:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.mbarrier.init: thread (0, 0, 0) of block (0, 0, 0) uses 8 bytes at an address outside of the block's shared memory, which has 1024 bytes
    nvvm.mbarrier.init %later, %one : !llvm.ptr<3>, i32
    gpu.return
  }

  gpu.func @not_initialized() kernel {
    %b = llvm.mlir.addressof @shared : !llvm.ptr<3>
    // CHECK-LABEL: run @not_initialized:
    // CHECK: [[FILE]]:[[#@LINE+1]]:10: nvvm.mbarrier.arrive: thread (0, 0, 0) of block (0, 0, 0) uses the mbarrier at byte 0 of shared @shared, which is not initialized
    %s = nvvm.mbarrier.arrive %b : !llvm.ptr<3> -> i64
    gpu.return
  }

  gpu.func @invalidated() kernel {
    %b = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %one = llvm.mlir.constant(1 : i32) : i32
    nvvm.mbarrier.init %b, %one : !llvm.ptr<3>, i32
    nvvm.mbarrier.inval %b : !llvm.ptr<3>
    // CHECK-LABEL: run @invalidated:
    // CHECK: [[FILE]]:[[#@LINE+1]]:10: nvvm.mbarrier.arrive: thread (0, 0, 0) of block (0, 0, 0) uses the mbarrier at byte 0 of shared @shared, which has been invalidated
    %s = nvvm.mbarrier.arrive %b : !llvm.ptr<3> -> i64
    gpu.return
  }

  // LAUNCH: 2 threads
  gpu.func @use_without_a_barrier_after_init() kernel {
    %b = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %one = llvm.mlir.constant(1 : i32) : i32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %is_first = llvm.icmp "eq" %t, %zero : i32
    scf.if %is_first {
      nvvm.mbarrier.init %b, %one : !llvm.ptr<3>, i32
    } else {
      // CHECK-LABEL: run @use_without_a_barrier_after_init:
      // CHECK: [[FILE]]:[[#@LINE+1]]:12: nvvm.mbarrier.arrive: thread (1, 0, 0) of block (0, 0, 0) atomically updates 8 bytes at byte 0 of shared @shared, which thread (0, 0, 0) writes in nvvm.mbarrier.init at [[FILE]]:[[#@LINE-3]]:7 without order between them (a race)
      %s = nvvm.mbarrier.arrive %b : !llvm.ptr<3> -> i64
    }
    gpu.return
  }

  // LAUNCH: 2 threads
  gpu.func @inval_while_a_thread_waits() kernel {
    %b = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %one = llvm.mlir.constant(1 : i32) : i32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %is_first = llvm.icmp "eq" %t, %zero : i32
    scf.if %is_first {
      nvvm.mbarrier.init %b, %one : !llvm.ptr<3>, i32
    }
    nvvm.barrier0
    scf.if %is_first {
      // CHECK-LABEL: run @inval_while_a_thread_waits:
      // CHECK: [[FILE]]:[[#@LINE+1]]:7: nvvm.mbarrier.inval: thread (0, 0, 0) of block (0, 0, 0) invalidates the mbarrier at byte 0 of shared @shared while 1 thread waits for it
      nvvm.mbarrier.inval %b : !llvm.ptr<3>
    } else {
      nvvm.mbarrier.try_wait.parity %b, %zero, %zero : !llvm.ptr<3>, i32, i32
    }
    gpu.return
  }

  gpu.func @arrival_too_many() kernel {
    %b = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %two = llvm.mlir.constant(2 : i32) : i32
    nvvm.mbarrier.init %b, %two : !llvm.ptr<3>, i32
    %three = llvm.mlir.constant(3 : i32) : i32
    // CHECK-LABEL: run @arrival_too_many:
    // CHECK: [[FILE]]:[[#@LINE+1]]:10: nvvm.mbarrier.arrive: thread (0, 0, 0) of block (0, 0, 0) arrives 3 times at the mbarrier at byte 0 of shared @shared, in phase 0, which waits for 2 more of 2 arrivals
    %s = nvvm.mbarrier.arrive %b, %three : !llvm.ptr<3> -> i64
    gpu.return
  }

  gpu.func @arrival_of_none() kernel {
    %b = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %one = llvm.mlir.constant(1 : i32) : i32
    nvvm.mbarrier.init %b, %one : !llvm.ptr<3>, i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    // CHECK-LABEL: run @arrival_of_none:
    // CHECK: [[FILE]]:[[#@LINE+1]]:10: nvvm.mbarrier.arrive: thread (0, 0, 0) of block (0, 0, 0) expects a count from 1 to 2^20 - 1, got 0
    %s = nvvm.mbarrier.arrive %b, %zero : !llvm.ptr<3> -> i64
    gpu.return
  }

  gpu.func @arrival_that_must_not_complete() kernel {
    %b = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %one = llvm.mlir.constant(1 : i32) : i32
    nvvm.mbarrier.init %b, %one : !llvm.ptr<3>, i32
    // CHECK-LABEL: run @arrival_that_must_not_complete:
    // CHECK: [[FILE]]:[[#@LINE+1]]:10: nvvm.mbarrier.arrive.nocomplete: thread (0, 0, 0) of block (0, 0, 0) arrives last in phase 0 of the mbarrier at byte 0 of shared @shared, and must not complete it
    %s = nvvm.mbarrier.arrive.nocomplete %b, %one : !llvm.ptr<3>, i32 -> i64
    gpu.return
  }

  gpu.func @arrival_after_all_have_dropped() kernel {
    %b = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %one = llvm.mlir.constant(1 : i32) : i32
    nvvm.mbarrier.init %b, %one : !llvm.ptr<3>, i32
    %s = nvvm.mbarrier.arrive_drop %b : !llvm.ptr<3> -> i64
    // CHECK-LABEL: run @arrival_after_all_have_dropped:
    // CHECK: [[FILE]]:[[#@LINE+1]]:11: nvvm.mbarrier.arrive: thread (0, 0, 0) of block (0, 0, 0) arrives 1 time at the mbarrier at byte 0 of shared @shared, in phase 1, which waits for 0 more of 0 arrivals
    %s2 = nvvm.mbarrier.arrive %b : !llvm.ptr<3> -> i64
    gpu.return
  }

  gpu.func @too_many_bytes_to_expect() kernel {
    %b = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %one = llvm.mlir.constant(1 : i32) : i32
    nvvm.mbarrier.init %b, %one : !llvm.ptr<3>, i32
    %bytes = llvm.mlir.constant(0x100000 : i32) : i32
    // CHECK-LABEL: run @too_many_bytes_to_expect:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.mbarrier.expect_tx: thread (0, 0, 0) of block (0, 0, 0) expects a number of bytes from 0 to 2^20 - 1, got 1048576
    nvvm.mbarrier.expect_tx %b, %bytes : !llvm.ptr<3>, i32
    gpu.return
  }

  gpu.func @too_many_bytes_in_all() kernel {
    %b = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %one = llvm.mlir.constant(1 : i32) : i32
    nvvm.mbarrier.init %b, %one : !llvm.ptr<3>, i32
    %bytes = llvm.mlir.constant(0xfffff : i32) : i32
    nvvm.mbarrier.expect_tx %b, %bytes : !llvm.ptr<3>, i32
    // CHECK-LABEL: run @too_many_bytes_in_all:
    // CHECK: [[FILE]]:[[#@LINE+1]]:10: nvvm.mbarrier.arrive.expect_tx: thread (0, 0, 0) of block (0, 0, 0) makes the mbarrier at byte 0 of shared @shared wait for 1048576 bytes, which can be 2^20 - 1 at most
    %s = nvvm.mbarrier.arrive.expect_tx %b, %one : !llvm.ptr<3>, i32 -> i64
    gpu.return
  }

  gpu.func @bytes_without_a_copy() kernel {
    %b = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %one = llvm.mlir.constant(1 : i32) : i32
    nvvm.mbarrier.init %b, %one : !llvm.ptr<3>, i32
    %bytes = llvm.mlir.constant(64 : i32) : i32
    %s = nvvm.mbarrier.arrive.expect_tx %b, %bytes : !llvm.ptr<3>, i32 -> i64
    %zero = llvm.mlir.constant(0 : i32) : i32
    // CHECK-LABEL: run @bytes_without_a_copy:
    // CHECK: deadlock: no thread of block (0, 0, 0) can continue
    // CHECK-NEXT: thread 0 waits in nvvm.mbarrier.try_wait.parity at [[FILE]]:[[#@LINE+1]]:5 for the mbarrier at byte 0 of shared @shared, in phase 0, which has 1 of 1 arrivals and 0 of 64 bytes
    nvvm.mbarrier.try_wait.parity %b, %zero, %zero : !llvm.ptr<3>, i32, i32
    gpu.return
  }

  gpu.func @bytes_without_a_wait() kernel {
    %b = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %one = llvm.mlir.constant(1 : i32) : i32
    // CHECK-LABEL: run @bytes_without_a_wait:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.mbarrier.init: thread (0, 0, 0) of block (0, 0, 0) initializes the mbarrier at byte 0 of shared @shared, which has received 0 of 64 bytes in phase 0 when the block ends
    nvvm.mbarrier.init %b, %one : !llvm.ptr<3>, i32
    %bytes = llvm.mlir.constant(64 : i32) : i32
    %s = nvvm.mbarrier.arrive.expect_tx %b, %bytes : !llvm.ptr<3>, i32 -> i64
    gpu.return
  }

  // LAUNCH: 2 threads
  gpu.func @arrival_that_does_not_come() kernel {
    %b = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %two = llvm.mlir.constant(2 : i32) : i32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %is_first = llvm.icmp "eq" %t, %zero : i32
    scf.if %is_first {
      nvvm.mbarrier.init %b, %two : !llvm.ptr<3>, i32
      %s = nvvm.mbarrier.arrive %b : !llvm.ptr<3> -> i64
      // CHECK-LABEL: run @arrival_that_does_not_come:
      // CHECK: deadlock: no thread of block (0, 0, 0) can continue
      // CHECK-NEXT: thread 0 waits in nvvm.mbarrier.try_wait.parity at [[FILE]]:[[#@LINE+2]]:7 for the mbarrier at byte 0 of shared @shared, in phase 0, which has 1 of 2 arrivals and 0 of 0 bytes
      // CHECK-NEXT: thread 1 has ended
      nvvm.mbarrier.try_wait.parity %b, %zero, %zero : !llvm.ptr<3>, i32, i32
    }
    gpu.return
  }

  gpu.func @test_that_never_succeeds() kernel {
    %b = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %one = llvm.mlir.constant(1 : i32) : i32
    nvvm.mbarrier.init %b, %one : !llvm.ptr<3>, i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    scf.while : () -> () {
      // CHECK-LABEL: run @test_that_never_succeeds:
      // CHECK: deadlock: no thread of block (0, 0, 0) can continue
      // CHECK-NEXT: thread 0 waits in nvvm.mbarrier.test.wait at [[FILE]]:[[#@LINE+1]]:15 for the mbarrier at byte 0 of shared @shared, in phase 0, which has 0 of 1 arrivals and 0 of 0 bytes
      %done = nvvm.mbarrier.test.wait %b, %zero : !llvm.ptr<3>, i32 -> i1
      %true = llvm.mlir.constant(true) : i1
      %again = llvm.xor %done, %true : i1
      scf.condition(%again)
    } do {
      scf.yield
    }
    gpu.return
  }

  gpu.func @missed_phase() kernel {
    %b = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %one = llvm.mlir.constant(1 : i32) : i32
    nvvm.mbarrier.init %b, %one : !llvm.ptr<3>, i32
    %s = nvvm.mbarrier.arrive %b : !llvm.ptr<3> -> i64
    %s1 = nvvm.mbarrier.arrive %b : !llvm.ptr<3> -> i64
    // CHECK-LABEL: run @missed_phase:
    // CHECK: [[FILE]]:[[#@LINE+1]]:13: nvvm.mbarrier.test.wait: thread (0, 0, 0) of block (0, 0, 0) waits for phase 0 of the mbarrier at byte 0 of shared @shared, which is in phase 2: it has missed the end of its phase
    %done = nvvm.mbarrier.test.wait %b, %s : !llvm.ptr<3>, i64 -> i1
    gpu.return
  }

  gpu.func @state_of_another_barrier() kernel {
    %b = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %one = llvm.mlir.constant(1 : i32) : i32
    nvvm.mbarrier.init %b, %one : !llvm.ptr<3>, i32
    %s = nvvm.mbarrier.arrive %b : !llvm.ptr<3> -> i64
    %other = llvm.getelementptr %b[8] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    nvvm.mbarrier.init %other, %one : !llvm.ptr<3>, i32
    // CHECK-LABEL: run @state_of_another_barrier:
    // CHECK: [[FILE]]:[[#@LINE+1]]:13: nvvm.mbarrier.test.wait: thread (0, 0, 0) of block (0, 0, 0) waits for the mbarrier at byte 8 of shared @shared with a state that no arrival at it has returned
    %done = nvvm.mbarrier.test.wait %other, %s : !llvm.ptr<3>, i64 -> i1
    gpu.return
  }

  gpu.func @parity_of_two() kernel {
    %b = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %two = llvm.mlir.constant(2 : i32) : i32
    nvvm.mbarrier.init %b, %two : !llvm.ptr<3>, i32
    // CHECK-LABEL: run @parity_of_two:
    // CHECK: [[FILE]]:[[#@LINE+1]]:13: nvvm.mbarrier.try_wait: thread (0, 0, 0) of block (0, 0, 0) expects a parity of 0 or 1, got 2
    %done = nvvm.mbarrier.try_wait %b, %two : !llvm.ptr<3>, i32 -> i1
    gpu.return
  }
}

}
