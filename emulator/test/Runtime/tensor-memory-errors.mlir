// Reports of kernels that use tensor memory wrongly, one for each rule:
// allocations, loads and stores of warps.
// PTX ISA, "TensorCore 5th Generation Family Instructions".

// RUN: %add_launches %s | kvcache-opt --kvcache-to-emulator="chip=sm_100a" -o %t.mlir
// RUN: %emulator_tests/kvcache-run-cases %t.mlir --shared-libs=%kvcache_emulator,%kvcache_runtime | FileCheck %s -DFILE="<stdin>"

// PRELUDE: tensor-memory.mlir

module attributes {gpu.container_module} {

gpu.module @kernels {
  // LAUNCH: 32 threads
  gpu.func @odd_number_of_columns(%out: memref<1024xi32>) kernel {
    %slot = llvm.mlir.addressof @slot : !llvm.ptr<3>
    %n = llvm.mlir.constant(48 : i32) : i32
    // CHECK-LABEL: run @odd_number_of_columns:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.tcgen05.alloc: thread (0, 0, 0) of block (0, 0, 0) expects the number of columns to be a power of two from 32 to 512, got 48
    nvvm.tcgen05.alloc %slot, %n : !llvm.ptr<3>, i32
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @growing_allocation(%out: memref<1024xi32>) kernel {
    %slot = llvm.mlir.addressof @slot : !llvm.ptr<3>
    %n = llvm.mlir.constant(64 : i32) : i32
    %more = llvm.mlir.constant(128 : i32) : i32
    nvvm.tcgen05.alloc %slot, %n : !llvm.ptr<3>, i32
    // CHECK-LABEL: run @growing_allocation:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.tcgen05.alloc: thread (0, 0, 0) of block (0, 0, 0) allocates 128 columns after an allocation of 64: the number must not grow from one to the next
    nvvm.tcgen05.alloc %slot, %more : !llvm.ptr<3>, i32
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @allocation_after_relinquish(%out: memref<1024xi32>) kernel {
    %slot = llvm.mlir.addressof @slot : !llvm.ptr<3>
    %n = llvm.mlir.constant(64 : i32) : i32
    nvvm.tcgen05.relinquish_alloc_permit
    // CHECK-LABEL: run @allocation_after_relinquish:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.tcgen05.alloc: thread (0, 0, 0) of block (0, 0, 0) allocates tensor memory after the block has relinquished the right to (tcgen05.relinquish_alloc_permit)
    nvvm.tcgen05.alloc %slot, %n : !llvm.ptr<3>, i32
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @more_columns_than_there_are(%out: memref<1024xi32>) kernel {
    %slot = llvm.mlir.addressof @slot : !llvm.ptr<3>
    %other = llvm.getelementptr %slot[4] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %n = llvm.mlir.constant(512 : i32) : i32
    nvvm.tcgen05.alloc %slot, %n : !llvm.ptr<3>, i32
    // CHECK-LABEL: run @more_columns_than_there_are:
    // CHECK: deadlock: no thread of block (0, 0, 0) can continue
    // CHECK-NEXT: threads 0 to 31 wait in nvvm.tcgen05.alloc at [[FILE]]:[[#@LINE+1]]:5 for columns of tensor memory, of which 512 of 512 are allocated
    nvvm.tcgen05.alloc %other, %n : !llvm.ptr<3>, i32
    gpu.return
  }

  // LAUNCH: 16 threads
  gpu.func @half_a_warp_allocates(%out: memref<1024xi32>) kernel {
    %slot = llvm.mlir.addressof @slot : !llvm.ptr<3>
    %n = llvm.mlir.constant(64 : i32) : i32
    // CHECK-LABEL: run @half_a_warp_allocates:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.tcgen05.alloc: thread (0, 0, 0) of block (0, 0, 0) requires all lanes of its warp, but lanes 16 to 31 of warp 0 have ended or are not in the block
    nvvm.tcgen05.alloc %slot, %n : !llvm.ptr<3>, i32
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @address_outside_of_shared_memory(%out: memref<1024xi32>) kernel {
    %slot = llvm.mlir.addressof @slot : !llvm.ptr<3>
    %n = llvm.mlir.constant(64 : i32) : i32
    %later = llvm.getelementptr %slot[16] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    // CHECK-LABEL: run @address_outside_of_shared_memory:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.tcgen05.alloc: thread (0, 0, 0) of block (0, 0, 0) uses 4 bytes at byte 16 of shared @slot, which has 16 bytes
    nvvm.tcgen05.alloc %later, %n : !llvm.ptr<3>, i32
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @leak(%out: memref<1024xi32>) kernel {
    %slot = llvm.mlir.addressof @slot : !llvm.ptr<3>
    %n = llvm.mlir.constant(64 : i32) : i32
    // CHECK-LABEL: run @leak:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.tcgen05.alloc: thread (0, 0, 0) of block (0, 0, 0) leaves 64 columns of tensor memory allocated when the block ends (tcgen05.dealloc)
    nvvm.tcgen05.alloc %slot, %n : !llvm.ptr<3>, i32
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @dealloc_of_half(%out: memref<1024xi32>) kernel {
    %base, %tensor = func.call @open_64() : () -> (i32, !llvm.ptr<6>)
    %half = llvm.mlir.constant(32 : i32) : i32
    // CHECK-LABEL: run @dealloc_of_half:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.tcgen05.dealloc: thread (0, 0, 0) of block (0, 0, 0) deallocates 32 columns at lane 0, column 448 of tensor memory, where 64 columns were allocated
    nvvm.tcgen05.dealloc %tensor, %half : !llvm.ptr<6>, i32
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @dealloc_twice(%out: memref<1024xi32>) kernel {
    %n = llvm.mlir.constant(64 : i32) : i32
    %base, %tensor = func.call @open_64() : () -> (i32, !llvm.ptr<6>)
    nvvm.tcgen05.dealloc %tensor, %n : !llvm.ptr<6>, i32
    // CHECK-LABEL: run @dealloc_twice:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.tcgen05.dealloc: thread (0, 0, 0) of block (0, 0, 0) deallocates 64 columns at lane 0, column 448 of tensor memory, where no allocation begins
    nvvm.tcgen05.dealloc %tensor, %n : !llvm.ptr<6>, i32
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @unallocated_columns(%out: memref<1024xi32>) kernel {
    %base, %tensor = func.call @open_64() : () -> (i32, !llvm.ptr<6>)
    %before = llvm.getelementptr %tensor[-2] : (!llvm.ptr<6>) -> !llvm.ptr<6>, i8
    // CHECK-LABEL: run @unallocated_columns:
    // CHECK: [[FILE]]:[[#@LINE+1]]:10: nvvm.tcgen05.ld: thread (0, 0, 0) of block (0, 0, 0) accesses 4 columns of 32 lanes at lane 0, column 446 of tensor memory, of which column 446 is not allocated
    %r = nvvm.tcgen05.ld %before {shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>} : vector<4xi32>
    func.call @close_64(%base) : (i32) -> ()
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @columns_after_the_last(%out: memref<1024xi32>) kernel {
    %base, %tensor = func.call @open_64() : () -> (i32, !llvm.ptr<6>)
    %later = llvm.getelementptr %tensor[62] : (!llvm.ptr<6>) -> !llvm.ptr<6>, i8
    // CHECK-LABEL: run @columns_after_the_last:
    // CHECK: [[FILE]]:[[#@LINE+1]]:10: nvvm.tcgen05.ld: thread (0, 0, 0) of block (0, 0, 0) accesses 4 columns of 32 lanes at lane 0, column 510 of tensor memory, which has 128 lanes of 512 columns
    %r = nvvm.tcgen05.ld %later {shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>} : vector<4xi32>
    func.call @close_64(%base) : (i32) -> ()
    gpu.return
  }

  // LAUNCH: 64 threads
  gpu.func @lanes_of_another_warp(%out: memref<1024xi32>) kernel {
    %base, %tensor = func.call @open_64() : () -> (i32, !llvm.ptr<6>)
    %t = gpu.thread_id x
    %c32 = arith.constant 32 : index
    %is_second = arith.cmpi uge, %t, %c32 : index
    scf.if %is_second {
      // CHECK-LABEL: run @lanes_of_another_warp:
      // CHECK: [[FILE]]:[[#@LINE+1]]:12: nvvm.tcgen05.ld: thread (32, 0, 0) of block (0, 0, 0) accesses tensor memory at lane 0, but warp 1 reaches lanes 32 to 63 only
      %r = nvvm.tcgen05.ld %tensor {shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>} : vector<4xi32>
    }
    func.call @close_64(%base) : (i32) -> ()
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @lanes_of_two_halves(%out: memref<1024xi32>) kernel {
    %base, %tensor = func.call @open_64() : () -> (i32, !llvm.ptr<6>)
    %middle = llvm.getelementptr %tensor[1048576] : (!llvm.ptr<6>) -> !llvm.ptr<6>, i8
    // CHECK-LABEL: run @lanes_of_two_halves:
    // CHECK: [[FILE]]:[[#@LINE+1]]:10: nvvm.tcgen05.ld: thread (0, 0, 0) of block (0, 0, 0) accesses tensor memory at lane 16, which must be a multiple of 32 for this shape
    %r = nvvm.tcgen05.ld %middle {shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>} : vector<4xi32>
    func.call @close_64(%base) : (i32) -> ()
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @addresses_that_differ(%out: memref<1024xi32>) kernel {
    %n = llvm.mlir.constant(64 : i32) : i32
    %base = func.call @open(%n) : (i32) -> i32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %own = llvm.add %base, %t : i32
    %other = llvm.inttoptr %own : i32 to !llvm.ptr<6>
    // CHECK-LABEL: run @addresses_that_differ:
    // CHECK: [[FILE]]:[[#@LINE+1]]:10: nvvm.tcgen05.ld: thread (1, 0, 0) of block (0, 0, 0) gives another address than lane 0: lane 1 of the warp must have the same
    %r = nvvm.tcgen05.ld %other {shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>} : vector<4xi32>
    func.call @close(%base, %n) : (i32, i32) -> ()
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @use_before_the_wait(%out: memref<1024xi32>) kernel {
    %base, %tensor = func.call @open_64() : () -> (i32, !llvm.ptr<6>)
    %v = llvm.mlir.constant(dense<7> : vector<4xi32>) : vector<4xi32>
    nvvm.tcgen05.st %tensor, %v {shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>} : vector<4xi32>
    nvvm.tcgen05.wait #nvvm.tcgen05_wait<store>
    %c0 = arith.constant 0 : index
    %r = nvvm.tcgen05.ld %tensor {shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>} : vector<4xi32>
    // CHECK-LABEL: run @use_before_the_wait:
    // CHECK: [[FILE]]:[[#@LINE+2]]:10: llvm.add: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) uses what a load from tensor memory has in flight: no wait for it has completed (tcgen05.wait load)
    %one = vector.extract %r[0] : i32 from vector<4xi32>
    %x = llvm.add %one, %one : i32
    nvvm.tcgen05.wait #nvvm.tcgen05_wait<load>
    memref.store %x, %out[%c0] : memref<1024xi32>
    func.call @close_64(%base) : (i32) -> ()
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @load_before_the_store_is_done(%out: memref<1024xi32>) kernel {
    %base, %tensor = func.call @open_64() : () -> (i32, !llvm.ptr<6>)
    %v = llvm.mlir.constant(dense<7> : vector<4xi32>) : vector<4xi32>
    nvvm.tcgen05.st %tensor, %v {shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>} : vector<4xi32>
    // CHECK-LABEL: run @load_before_the_store_is_done:
    // CHECK: [[FILE]]:[[#@LINE+1]]:10: nvvm.tcgen05.ld: thread (0, 0, 0) of block (0, 0, 0) reads lane 0, column 448 of tensor memory, which was written in nvvm.tcgen05.st at [[FILE]]:[[#@LINE-2]]:5 by warp 0, and that may still be in flight: its warp has not waited for it (tcgen05.wait store)
    %r = nvvm.tcgen05.ld %tensor {shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>} : vector<4xi32>
    nvvm.tcgen05.wait #nvvm.tcgen05_wait<load>
    func.call @close_64(%base) : (i32) -> ()
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @store_before_the_load_is_done(%out: memref<1024xi32>) kernel {
    %base, %tensor = func.call @open_64() : () -> (i32, !llvm.ptr<6>)
    %v = llvm.mlir.constant(dense<7> : vector<4xi32>) : vector<4xi32>
    nvvm.tcgen05.st %tensor, %v {shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>} : vector<4xi32>
    nvvm.tcgen05.wait #nvvm.tcgen05_wait<store>
    %r = nvvm.tcgen05.ld %tensor {shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>} : vector<4xi32>
    // CHECK-LABEL: run @store_before_the_load_is_done:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.tcgen05.st: thread (0, 0, 0) of block (0, 0, 0) writes lane 0, column 448 of tensor memory, which was read in nvvm.tcgen05.ld at [[FILE]]:[[#@LINE-2]]:10 by warp 0, and that may still be in flight: its warp has not waited for it (tcgen05.wait load)
    nvvm.tcgen05.st %tensor, %v {shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>} : vector<4xi32>
    nvvm.tcgen05.wait #nvvm.tcgen05_wait<load>
    func.call @close_64(%base) : (i32) -> ()
    gpu.return
  }

  // LAUNCH: 160 threads
  gpu.func @no_fence_before(%out: memref<1024xi32>) kernel {
    %base, %tensor = func.call @open_64() : () -> (i32, !llvm.ptr<6>)
    %v = llvm.mlir.constant(dense<7> : vector<4xi32>) : vector<4xi32>
    %t = gpu.thread_id x
    %c32 = arith.constant 32 : index
    %c128 = arith.constant 128 : index
    %is_first = arith.cmpi ult, %t, %c32 : index
    %is_fifth = arith.cmpi uge, %t, %c128 : index
    scf.if %is_first {
      nvvm.tcgen05.st %tensor, %v {shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>} : vector<4xi32>
      nvvm.tcgen05.wait #nvvm.tcgen05_wait<store>
    }
    nvvm.barrier0
    nvvm.tcgen05.fence #nvvm.tcgen05_fence<after>
    scf.if %is_fifth {
      // CHECK-LABEL: run @no_fence_before:
      // CHECK: [[FILE]]:[[#@LINE+1]]:12: nvvm.tcgen05.ld: thread (128, 0, 0) of block (0, 0, 0) reads lane 0, column 448 of tensor memory, which was written in nvvm.tcgen05.st at [[FILE]]:[[#@LINE-7]]:7 by warp 0, and that is not ordered before the access by a fence (tcgen05.fence before), a synchronization and another fence (tcgen05.fence after)
      %r = nvvm.tcgen05.ld %tensor {shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>} : vector<4xi32>
      nvvm.tcgen05.wait #nvvm.tcgen05_wait<load>
    }
    func.call @close_64(%base) : (i32) -> ()
    gpu.return
  }

  // LAUNCH: 160 threads
  gpu.func @no_fence_after(%out: memref<1024xi32>) kernel {
    %base, %tensor = func.call @open_64() : () -> (i32, !llvm.ptr<6>)
    %v = llvm.mlir.constant(dense<7> : vector<4xi32>) : vector<4xi32>
    %t = gpu.thread_id x
    %c32 = arith.constant 32 : index
    %c128 = arith.constant 128 : index
    %is_first = arith.cmpi ult, %t, %c32 : index
    %is_fifth = arith.cmpi uge, %t, %c128 : index
    scf.if %is_first {
      nvvm.tcgen05.st %tensor, %v {shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>} : vector<4xi32>
      nvvm.tcgen05.wait #nvvm.tcgen05_wait<store>
    }
    nvvm.tcgen05.fence #nvvm.tcgen05_fence<before>
    nvvm.barrier0
    scf.if %is_fifth {
      // CHECK-LABEL: run @no_fence_after:
      // CHECK: [[FILE]]:[[#@LINE+1]]:12: nvvm.tcgen05.ld: thread (128, 0, 0) of block (0, 0, 0) reads lane 0, column 448 of tensor memory, which was written in nvvm.tcgen05.st at [[FILE]]:[[#@LINE-7]]:7 by warp 0, and that is not ordered before the access by a fence
      %r = nvvm.tcgen05.ld %tensor {shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>} : vector<4xi32>
      nvvm.tcgen05.wait #nvvm.tcgen05_wait<load>
    }
    func.call @close_64(%base) : (i32) -> ()
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @dealloc_with_a_store_in_flight(%out: memref<1024xi32>) kernel {
    %n = llvm.mlir.constant(64 : i32) : i32
    %base, %tensor = func.call @open_64() : () -> (i32, !llvm.ptr<6>)
    %v = llvm.mlir.constant(dense<7> : vector<4xi32>) : vector<4xi32>
    nvvm.tcgen05.st %tensor, %v {shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>} : vector<4xi32>
    // CHECK-LABEL: run @dealloc_with_a_store_in_flight:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.tcgen05.dealloc: thread (0, 0, 0) of block (0, 0, 0) writes lane 0, column 448 of tensor memory, which was written in nvvm.tcgen05.st at [[FILE]]:[[#@LINE-2]]:5 by warp 0, and that may still be in flight
    nvvm.tcgen05.dealloc %tensor, %n : !llvm.ptr<6>, i32
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @uninitialized_words(%out: memref<1024xi32>) kernel {
    %base, %tensor = func.call @open_64() : () -> (i32, !llvm.ptr<6>)
    %c0 = arith.constant 0 : index
    %r = nvvm.tcgen05.ld %tensor {shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>} : vector<4xi32>
    nvvm.tcgen05.wait #nvvm.tcgen05_wait<load>
    %one = vector.extract %r[0] : i32 from vector<4xi32>
    // CHECK-LABEL: run @uninitialized_words:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: llvm.store: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on words which were uninitialized when nvvm.tcgen05.ld at [[FILE]]:[[#@LINE-4]]:10 read them; the first is lane {{[0-9]+}}, column 448 of tensor memory
    memref.store %one, %out[%c0] : memref<1024xi32>
    func.call @close_64(%base) : (i32) -> ()
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @words_of_an_earlier_allocation(%out: memref<1024xi32>) kernel {
    %n = llvm.mlir.constant(64 : i32) : i32
    %base, %tensor = func.call @open_64() : () -> (i32, !llvm.ptr<6>)
    %v = llvm.mlir.constant(dense<7> : vector<4xi32>) : vector<4xi32>
    nvvm.tcgen05.st %tensor, %v {shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>} : vector<4xi32>
    nvvm.tcgen05.wait #nvvm.tcgen05_wait<store>
    nvvm.tcgen05.dealloc %tensor, %n : !llvm.ptr<6>, i32
    nvvm.barrier0
    %again = func.call @open(%n) : (i32) -> i32
    %c0 = arith.constant 0 : index
    %r = nvvm.tcgen05.ld %tensor {shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>} : vector<4xi32>
    nvvm.tcgen05.wait #nvvm.tcgen05_wait<load>
    %one = vector.extract %r[0] : i32 from vector<4xi32>
    // CHECK-LABEL: run @words_of_an_earlier_allocation:
    // CHECK: llvm.store: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on words which were uninitialized
    memref.store %one, %out[%c0] : memref<1024xi32>
    func.call @close_64(%base) : (i32) -> ()
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @poison_that_a_store_takes_along(%out: memref<1024xi32>) kernel {
    %base, %tensor = func.call @open_64() : () -> (i32, !llvm.ptr<6>)
    %c0 = arith.constant 0 : index
    %u = nvvm.tcgen05.ld %tensor {shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>} : vector<4xi32>
    nvvm.tcgen05.wait #nvvm.tcgen05_wait<load>
    nvvm.tcgen05.st %tensor, %u {shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>} : vector<4xi32>
    nvvm.tcgen05.wait #nvvm.tcgen05_wait<store>
    %r = nvvm.tcgen05.ld %tensor {shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>} : vector<4xi32>
    nvvm.tcgen05.wait #nvvm.tcgen05_wait<load>
    %one = vector.extract %r[0] : i32 from vector<4xi32>
    // CHECK-LABEL: run @poison_that_a_store_takes_along:
    // CHECK: llvm.store: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on words which were uninitialized when nvvm.tcgen05.ld at [[FILE]]:[[#@LINE-8]]:10 read them
    memref.store %one, %out[%c0] : memref<1024xi32>
    func.call @close_64(%base) : (i32) -> ()
    gpu.return
  }
}

}
