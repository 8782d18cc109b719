// Reports of kernels that use tensor memory wrongly, one for each rule:
// products, in order with others.
// PTX ISA, "TensorCore 5th Generation Family Instructions".

// RUN: %add_launches %s | kvcache-opt --kvcache-to-emulator="chip=sm_100a" -o %t.mlir
// RUN: %emulator_tests/kvcache-run-cases %t.mlir --shared-libs=%kvcache_emulator,%kvcache_runtime | FileCheck %s -DFILE="<stdin>"

// PRELUDE: tensor-memory.mlir
// PRELUDE: tensor-products.mlir

module attributes {gpu.container_module} {

gpu.module @kernels {
  // LAUNCH: 32 threads
  gpu.func @operand_without_a_proxy_fence(%out: memref<1024xi32>) kernel {
    %n = llvm.mlir.constant(64 : i32) : i32
    %i = llvm.mlir.constant(0x04020010 : i32) : i32
    %no = llvm.mlir.constant(false) : i1
    %zero = llvm.mlir.constant(0 : i32) : i32
    %bar = llvm.mlir.addressof @bars : !llvm.ptr<3>
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %is_first = llvm.icmp "eq" %t, %zero : i32
    %base = func.call @open(%n) : (i32) -> i32
    %a, %b = func.call @fill() : () -> (i64, i64)
    %tensor = llvm.inttoptr %base : i32 to !llvm.ptr<6>
    func.call @synchronize() : () -> ()
    scf.if %is_first {
      // CHECK-LABEL: run @operand_without_a_proxy_fence:
      // CHECK: [[FILE]]:[[#@LINE+1]]:7: nvvm.tcgen05.mma: thread (0, 0, 0) of block (0, 0, 0) issues a product that reads 16 bytes at byte 0 of shared @a, which thread (0, 0, 0) writes in llvm.store at {{.*}} without a proxy fence between them (fence.proxy.async)
      nvvm.tcgen05.mma %tensor, %a, %b, %i, %no {kind = #nvvm.tcgen05_mma_kind<f16>, ctaGroup = #nvvm.cta_group<cta_1>} : (!llvm.ptr<6>, i64, i64, i32, i1)
      nvvm.tcgen05.commit %bar : !llvm.ptr<3>
    }
    func.call @finish(%base, %tensor, %bar) : (i32, !llvm.ptr<6>, !llvm.ptr<3>) -> ()
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @operand_overwritten_in_flight(%out: memref<1024xi32>) kernel {
    %i = llvm.mlir.constant(0x04020010 : i32) : i32
    %no = llvm.mlir.constant(false) : i1
    %zero = llvm.mlir.constant(0 : i32) : i32
    %base, %tensor, %a, %b, %bar, %is_first = func.call @begin() : () -> (i32, !llvm.ptr<6>, i64, i64, !llvm.ptr<3>, i1)
    scf.if %is_first {
      nvvm.tcgen05.mma %tensor, %a, %b, %i, %no {kind = #nvvm.tcgen05_mma_kind<f16>, ctaGroup = #nvvm.cta_group<cta_1>} : (!llvm.ptr<6>, i64, i64, i32, i1)
      nvvm.tcgen05.commit %bar : !llvm.ptr<3>
    }
    %to = llvm.mlir.addressof @a : !llvm.ptr<3>
    scf.if %is_first {
      // CHECK-LABEL: run @operand_overwritten_in_flight:
      // CHECK: [[FILE]]:[[#@LINE+1]]:7: llvm.store: thread (0, 0, 0) of block (0, 0, 0) writes 4 bytes at byte 0 of shared @a, which a product issued by thread (0, 0, 0) in nvvm.tcgen05.mma at [[FILE]]:[[#@LINE-6]]:7 still reads: no wait for it has completed
      llvm.store %zero, %to : i32, !llvm.ptr<3>
    }
    func.call @finish(%base, %tensor, %bar) : (i32, !llvm.ptr<6>, !llvm.ptr<3>) -> ()
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @result_without_a_wait(%out: memref<1024xi32>) kernel {
    %n = llvm.mlir.constant(64 : i32) : i32
    %i = llvm.mlir.constant(0x04020010 : i32) : i32
    %no = llvm.mlir.constant(false) : i1
    %base, %tensor, %a, %b, %bar, %is_first = func.call @begin() : () -> (i32, !llvm.ptr<6>, i64, i64, !llvm.ptr<3>, i1)
    scf.if %is_first {
      nvvm.tcgen05.mma %tensor, %a, %b, %i, %no {kind = #nvvm.tcgen05_mma_kind<f16>, ctaGroup = #nvvm.cta_group<cta_1>} : (!llvm.ptr<6>, i64, i64, i32, i1)
      nvvm.tcgen05.commit %bar : !llvm.ptr<3>
    }
    nvvm.tcgen05.fence #nvvm.tcgen05_fence<after>
    // CHECK-LABEL: run @result_without_a_wait:
    // CHECK: [[FILE]]:[[#@LINE+1]]:10: nvvm.tcgen05.ld: thread (0, 0, 0) of block (0, 0, 0) reads lane 0, column 448 of tensor memory, which was written in nvvm.tcgen05.mma at {{.*}} by thread (0, 0, 0), and that may still be in flight: no commit of its thread has completed (tcgen05.commit)
    %r = nvvm.tcgen05.ld %tensor {shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>} : vector<4xi32>
    nvvm.tcgen05.wait #nvvm.tcgen05_wait<load>
    func.call @close(%base, %n) : (i32, i32) -> ()
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @result_without_a_fence(%out: memref<1024xi32>) kernel {
    %n = llvm.mlir.constant(64 : i32) : i32
    %i = llvm.mlir.constant(0x04020010 : i32) : i32
    %no = llvm.mlir.constant(false) : i1
    %zero = llvm.mlir.constant(0 : i32) : i32
    %base, %tensor, %a, %b, %bar, %is_first = func.call @begin() : () -> (i32, !llvm.ptr<6>, i64, i64, !llvm.ptr<3>, i1)
    scf.if %is_first {
      nvvm.tcgen05.mma %tensor, %a, %b, %i, %no {kind = #nvvm.tcgen05_mma_kind<f16>, ctaGroup = #nvvm.cta_group<cta_1>} : (!llvm.ptr<6>, i64, i64, i32, i1)
      nvvm.tcgen05.commit %bar : !llvm.ptr<3>
    }
    nvvm.mbarrier.try_wait.parity %bar, %zero, %zero : !llvm.ptr<3>, i32, i32
    // CHECK-LABEL: run @result_without_a_fence:
    // CHECK: [[FILE]]:[[#@LINE+1]]:10: nvvm.tcgen05.ld: thread (0, 0, 0) of block (0, 0, 0) reads lane 0, column 448 of tensor memory, which was written in nvvm.tcgen05.mma at {{.*}} by thread (0, 0, 0), and that has completed: the thread has not waited for its commit, or has no fence after the wait (tcgen05.fence after)
    %r = nvvm.tcgen05.ld %tensor {shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>} : vector<4xi32>
    nvvm.tcgen05.wait #nvvm.tcgen05_wait<load>
    func.call @close(%base, %n) : (i32, i32) -> ()
    gpu.return
  }

  // LAUNCH: 64 threads
  gpu.func @commit_of_another_thread(%out: memref<1024xi32>) kernel {
    %n = llvm.mlir.constant(64 : i32) : i32
    %i = llvm.mlir.constant(0x04020010 : i32) : i32
    %no = llvm.mlir.constant(false) : i1
    %zero = llvm.mlir.constant(0 : i32) : i32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %base, %tensor, %a, %b, %bar, %is_first = func.call @begin() : () -> (i32, !llvm.ptr<6>, i64, i64, !llvm.ptr<3>, i1)
    scf.if %is_first {
      nvvm.tcgen05.mma %tensor, %a, %b, %i, %no {kind = #nvvm.tcgen05_mma_kind<f16>, ctaGroup = #nvvm.cta_group<cta_1>} : (!llvm.ptr<6>, i64, i64, i32, i1)
    }
    %c32 = llvm.mlir.constant(32 : i32) : i32
    %is_other = llvm.icmp "eq" %t, %c32 : i32
    scf.if %is_other {
      nvvm.tcgen05.commit %bar : !llvm.ptr<3>
    }
    %is_in_first = llvm.icmp "ult" %t, %c32 : i32
    nvvm.mbarrier.try_wait.parity %bar, %zero, %zero : !llvm.ptr<3>, i32, i32
    nvvm.tcgen05.fence #nvvm.tcgen05_fence<after>
    scf.if %is_in_first {
      // CHECK-LABEL: run @commit_of_another_thread:
      // CHECK: [[FILE]]:[[#@LINE+1]]:12: nvvm.tcgen05.ld: thread (0, 0, 0) of block (0, 0, 0) reads lane 0, column 448 of tensor memory, which was written in nvvm.tcgen05.mma at {{.*}} by thread (0, 0, 0), and that may still be in flight: no commit of its thread has completed (tcgen05.commit)
      %r = nvvm.tcgen05.ld %tensor {shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>} : vector<4xi32>
      nvvm.tcgen05.wait #nvvm.tcgen05_wait<load>
    }
    nvvm.tcgen05.wait #nvvm.tcgen05_wait<load>
    func.call @close(%base, %n) : (i32, i32) -> ()
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @product_without_a_commit(%out: memref<1024xi32>) kernel {
    %i = llvm.mlir.constant(0x04020010 : i32) : i32
    %no = llvm.mlir.constant(false) : i1
    %base, %tensor, %a, %b, %bar, %is_first = func.call @begin() : () -> (i32, !llvm.ptr<6>, i64, i64, !llvm.ptr<3>, i1)
    scf.if %is_first {
      // CHECK-LABEL: run @product_without_a_commit:
      // CHECK: [[FILE]]:[[#@LINE+1]]:7: nvvm.tcgen05.mma: thread (0, 0, 0) of block (0, 0, 0) is in flight when the block ends: no thread has waited for a later commit of the thread (tcgen05.commit)
      nvvm.tcgen05.mma %tensor, %a, %b, %i, %no {kind = #nvvm.tcgen05_mma_kind<f16>, ctaGroup = #nvvm.cta_group<cta_1>} : (!llvm.ptr<6>, i64, i64, i32, i1)
    }
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @commit_without_a_wait(%out: memref<1024xi32>) kernel {
    %i = llvm.mlir.constant(0x04020010 : i32) : i32
    %no = llvm.mlir.constant(false) : i1
    %base, %tensor, %a, %b, %bar, %is_first = func.call @begin() : () -> (i32, !llvm.ptr<6>, i64, i64, !llvm.ptr<3>, i1)
    scf.if %is_first {
      // CHECK-LABEL: run @commit_without_a_wait:
      // CHECK: [[FILE]]:[[#@LINE+1]]:7: nvvm.tcgen05.mma: thread (0, 0, 0) of block (0, 0, 0) is in flight when the block ends: no thread has waited for a later commit of the thread (tcgen05.commit)
      nvvm.tcgen05.mma %tensor, %a, %b, %i, %no {kind = #nvvm.tcgen05_mma_kind<f16>, ctaGroup = #nvvm.cta_group<cta_1>} : (!llvm.ptr<6>, i64, i64, i32, i1)
      nvvm.tcgen05.commit %bar : !llvm.ptr<3>
    }
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @dealloc_with_a_product_in_flight(%out: memref<1024xi32>) kernel {
    %n = llvm.mlir.constant(64 : i32) : i32
    %i = llvm.mlir.constant(0x04020010 : i32) : i32
    %no = llvm.mlir.constant(false) : i1
    %base, %tensor, %a, %b, %bar, %is_first = func.call @begin() : () -> (i32, !llvm.ptr<6>, i64, i64, !llvm.ptr<3>, i1)
    scf.if %is_first {
      nvvm.tcgen05.mma %tensor, %a, %b, %i, %no {kind = #nvvm.tcgen05_mma_kind<f16>, ctaGroup = #nvvm.cta_group<cta_1>} : (!llvm.ptr<6>, i64, i64, i32, i1)
      nvvm.tcgen05.commit %bar : !llvm.ptr<3>
    }
    // CHECK-LABEL: run @dealloc_with_a_product_in_flight:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: nvvm.tcgen05.dealloc: thread (0, 0, 0) of block (0, 0, 0) writes lane 0, column 448 of tensor memory, which was written in nvvm.tcgen05.mma at {{.*}} by thread (0, 0, 0), and that may still be in flight: no commit of its thread has completed (tcgen05.commit)
    nvvm.tcgen05.dealloc %tensor, %n : !llvm.ptr<6>, i32
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @store_without_a_wait(%out: memref<1024xi32>) kernel {
    %n = llvm.mlir.constant(64 : i32) : i32
    %i = llvm.mlir.constant(0x04020010 : i32) : i32
    %no = llvm.mlir.constant(false) : i1
    %zero = llvm.mlir.constant(0 : i32) : i32
    %bar = llvm.mlir.addressof @bars : !llvm.ptr<3>
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %is_first = llvm.icmp "eq" %t, %zero : i32
    %base = func.call @open(%n) : (i32) -> i32
    %a, %b = func.call @fill() : () -> (i64, i64)
    %tensor = llvm.inttoptr %base : i32 to !llvm.ptr<6>
    %v = llvm.mlir.constant(dense<0> : vector<8xi32>) : vector<8xi32>
    nvvm.tcgen05.st %tensor, %v {shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>} : vector<8xi32>
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async>}
    func.call @synchronize() : () -> ()
    scf.if %is_first {
      // CHECK-LABEL: run @store_without_a_wait:
      // CHECK: [[FILE]]:[[#@LINE+1]]:7: nvvm.tcgen05.mma: thread (0, 0, 0) of block (0, 0, 0) writes lane 0, column 448 of tensor memory, which was written in nvvm.tcgen05.st at {{.*}} by warp 0, and that may still be in flight: its warp has not waited for it (tcgen05.wait store)
      nvvm.tcgen05.mma %tensor, %a, %b, %i, %no {kind = #nvvm.tcgen05_mma_kind<f16>, ctaGroup = #nvvm.cta_group<cta_1>} : (!llvm.ptr<6>, i64, i64, i32, i1)
      nvvm.tcgen05.commit %bar : !llvm.ptr<3>
    }
    func.call @finish(%base, %tensor, %bar) : (i32, !llvm.ptr<6>, !llvm.ptr<3>) -> ()
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @factor_from_a_product_in_flight(%out: memref<1024xi32>) kernel {
    %i = llvm.mlir.constant(0x04020010 : i32) : i32
    %no = llvm.mlir.constant(false) : i1
    %base, %tensor, %a, %b, %bar, %is_first = func.call @begin() : () -> (i32, !llvm.ptr<6>, i64, i64, !llvm.ptr<3>, i1)
    scf.if %is_first {
      nvvm.tcgen05.mma %tensor, %a, %b, %i, %no {kind = #nvvm.tcgen05_mma_kind<f16>, ctaGroup = #nvvm.cta_group<cta_1>} : (!llvm.ptr<6>, i64, i64, i32, i1)
      %other = llvm.getelementptr %tensor[32] : (!llvm.ptr<6>) -> !llvm.ptr<6>, i8
      // CHECK-LABEL: run @factor_from_a_product_in_flight:
      // CHECK: [[FILE]]:[[#@LINE+1]]:7: nvvm.tcgen05.mma: thread (0, 0, 0) of block (0, 0, 0) reads lane 0, column 448 of tensor memory, which was written in nvvm.tcgen05.mma at [[FILE]]:[[#@LINE-3]]:7 by thread (0, 0, 0), and that may still be in flight: no commit of its thread has completed (tcgen05.commit)
      nvvm.tcgen05.mma %other, %tensor, %b, %i, %no {kind = #nvvm.tcgen05_mma_kind<f16>, ctaGroup = #nvvm.cta_group<cta_1>} : (!llvm.ptr<6>, !llvm.ptr<6>, i64, i32, i1)
      nvvm.tcgen05.commit %bar : !llvm.ptr<3>
    }
    func.call @finish(%base, %tensor, %bar) : (i32, !llvm.ptr<6>, !llvm.ptr<3>) -> ()
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @accumulators_of_two_shapes(%out: memref<1024xi32>) kernel {
    %i = llvm.mlir.constant(0x04020010 : i32) : i32
    %no = llvm.mlir.constant(false) : i1
    %base, %tensor, %a, %b, %bar, %is_first = func.call @begin() : () -> (i32, !llvm.ptr<6>, i64, i64, !llvm.ptr<3>, i1)
    scf.if %is_first {
      nvvm.tcgen05.mma %tensor, %a, %b, %i, %no {kind = #nvvm.tcgen05_mma_kind<f16>, ctaGroup = #nvvm.cta_group<cta_1>} : (!llvm.ptr<6>, i64, i64, i32, i1)
      %j = llvm.mlir.constant(0x04040010 : i32) : i32
      // CHECK-LABEL: run @accumulators_of_two_shapes:
      // CHECK: [[FILE]]:[[#@LINE+1]]:7: nvvm.tcgen05.mma: thread (0, 0, 0) of block (0, 0, 0) writes lane 0, column 448 of tensor memory, which was written in nvvm.tcgen05.mma at [[FILE]]:[[#@LINE-3]]:7 by thread (0, 0, 0), and that may still be in flight: no commit of its thread has completed (tcgen05.commit)
      nvvm.tcgen05.mma %tensor, %a, %a, %j, %no {kind = #nvvm.tcgen05_mma_kind<f16>, ctaGroup = #nvvm.cta_group<cta_1>} : (!llvm.ptr<6>, i64, i64, i32, i1)
      nvvm.tcgen05.commit %bar : !llvm.ptr<3>
    }
    func.call @finish(%base, %tensor, %bar) : (i32, !llvm.ptr<6>, !llvm.ptr<3>) -> ()
    gpu.return
  }

  // LAUNCH: 64 threads
  gpu.func @accumulator_of_another_thread(%out: memref<1024xi32>) kernel {
    %n = llvm.mlir.constant(64 : i32) : i32
    %i = llvm.mlir.constant(0x04020010 : i32) : i32
    %no = llvm.mlir.constant(false) : i1
    %yes = llvm.mlir.constant(true) : i1
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %base, %tensor, %a, %b, %bar, %is_first = func.call @begin() : () -> (i32, !llvm.ptr<6>, i64, i64, !llvm.ptr<3>, i1)
    scf.if %is_first {
      nvvm.tcgen05.mma %tensor, %a, %b, %i, %no {kind = #nvvm.tcgen05_mma_kind<f16>, ctaGroup = #nvvm.cta_group<cta_1>} : (!llvm.ptr<6>, i64, i64, i32, i1)
      nvvm.tcgen05.commit %bar : !llvm.ptr<3>
    }
    %c32 = llvm.mlir.constant(32 : i32) : i32
    %is_other = llvm.icmp "eq" %t, %c32 : i32
    nvvm.barrier0
    scf.if %is_other {
      // CHECK-LABEL: run @accumulator_of_another_thread:
      // CHECK: [[FILE]]:[[#@LINE+1]]:7: nvvm.tcgen05.mma: thread (32, 0, 0) of block (0, 0, 0) reads lane 0, column 448 of tensor memory, which was written in nvvm.tcgen05.mma at {{.*}} by thread (0, 0, 0), and that may still be in flight: no commit of its thread has completed (tcgen05.commit)
      nvvm.tcgen05.mma %tensor, %a, %b, %i, %yes {kind = #nvvm.tcgen05_mma_kind<f16>, ctaGroup = #nvvm.cta_group<cta_1>} : (!llvm.ptr<6>, i64, i64, i32, i1)
    }
    func.call @close(%base, %n) : (i32, i32) -> ()
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @uninitialized_factor(%out: memref<1024xi32>) kernel {
    %n = llvm.mlir.constant(64 : i32) : i32
    %i = llvm.mlir.constant(0x04020010 : i32) : i32
    %no = llvm.mlir.constant(false) : i1
    %c0 = arith.constant 0 : index
    %base, %tensor, %a, %b, %bar, %is_first = func.call @begin() : () -> (i32, !llvm.ptr<6>, i64, i64, !llvm.ptr<3>, i1)
    scf.if %is_first {
      %words = llvm.getelementptr %tensor[32] : (!llvm.ptr<6>) -> !llvm.ptr<6>, i8
      nvvm.tcgen05.mma %tensor, %words, %b, %i, %no {kind = #nvvm.tcgen05_mma_kind<f16>, ctaGroup = #nvvm.cta_group<cta_1>} : (!llvm.ptr<6>, !llvm.ptr<6>, i64, i32, i1)
      nvvm.tcgen05.commit %bar : !llvm.ptr<3>
    }
    %r = func.call @load(%tensor, %bar) : (!llvm.ptr<6>, !llvm.ptr<3>) -> vector<4xi32>
    %one = vector.extract %r[0] : i32 from vector<4xi32>
    scf.if %is_first {
      // CHECK-LABEL: run @uninitialized_factor:
      // CHECK: llvm.store: thread (0, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on words which were uninitialized when nvvm.tcgen05.mma at {{.*}} read them; the first is lane 0, column 480 of tensor memory
      memref.store %one, %out[%c0] : memref<1024xi32>
    }
    nvvm.tcgen05.wait #nvvm.tcgen05_wait<load>
    func.call @close(%base, %n) : (i32, i32) -> ()
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @rows_without_a_product(%out: memref<1024xi32>) kernel {
    %n = llvm.mlir.constant(64 : i32) : i32
    %i = llvm.mlir.constant(0x04020010 : i32) : i32
    %no = llvm.mlir.constant(false) : i1
    %c0 = arith.constant 0 : index
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %base, %tensor, %a, %b, %bar, %is_first = func.call @begin() : () -> (i32, !llvm.ptr<6>, i64, i64, !llvm.ptr<3>, i1)
    scf.if %is_first {
      nvvm.tcgen05.mma %tensor, %a, %b, %i, %no {kind = #nvvm.tcgen05_mma_kind<f16>, ctaGroup = #nvvm.cta_group<cta_1>} : (!llvm.ptr<6>, i64, i64, i32, i1)
      nvvm.tcgen05.commit %bar : !llvm.ptr<3>
    }
    %r = func.call @load(%tensor, %bar) : (!llvm.ptr<6>, !llvm.ptr<3>) -> vector<4xi32>
    %one = vector.extract %r[0] : i32 from vector<4xi32>
    %last = llvm.mlir.constant(31 : i32) : i32
    %is_last = llvm.icmp "eq" %t, %last : i32
    scf.if %is_last {
      // CHECK-LABEL: run @rows_without_a_product:
      // CHECK: llvm.store: thread (31, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on words which were uninitialized when nvvm.tcgen05.ld at {{.*}} read them; the first is lane 31, column 448 of tensor memory
      memref.store %one, %out[%c0] : memref<1024xi32>
    }
    nvvm.tcgen05.wait #nvvm.tcgen05_wait<load>
    func.call @close(%base, %n) : (i32, i32) -> ()
    gpu.return
  }
}

}
