// Reports of kernels that use tensor memory wrongly, one for each rule:
// operands and descriptors of products.
// PTX ISA, "TensorCore 5th Generation Family Instructions".

// RUN: %add_launches %s | kvcache-opt --kvcache-to-emulator="chip=sm_100a" -o %t.mlir
// RUN: %emulator_tests/kvcache-run-cases %t.mlir --shared-libs=%kvcache_emulator,%kvcache_runtime | FileCheck %s -DFILE="<stdin>"

// PRELUDE: tensor-memory.mlir
// PRELUDE: tensor-products.mlir

module attributes {gpu.container_module} {

gpu.module @kernels {
  // LAUNCH: 32 threads
  gpu.func @reserved_bit(%out: memref<1024xi32>) kernel {
    %i = llvm.mlir.constant(0x04020050 : i32) : i32
    %no = llvm.mlir.constant(false) : i1
    %base, %tensor, %a, %b, %bar, %is_first = func.call @begin() : () -> (i32, !llvm.ptr<6>, i64, i64, !llvm.ptr<3>, i1)
    scf.if %is_first {
      // CHECK-LABEL: run @reserved_bit:
      // CHECK: [[FILE]]:[[#@LINE+1]]:7: nvvm.tcgen05.mma: thread (0, 0, 0) of block (0, 0, 0) expects the instruction descriptor to have 0 for bit 6, which is reserved, got 1
      nvvm.tcgen05.mma %tensor, %a, %b, %i, %no {kind = #nvvm.tcgen05_mma_kind<f16>, ctaGroup = #nvvm.cta_group<cta_1>} : (!llvm.ptr<6>, i64, i64, i32, i1)
      nvvm.tcgen05.commit %bar : !llvm.ptr<3>
    }
    func.call @finish(%base, %tensor, %bar) : (i32, !llvm.ptr<6>, !llvm.ptr<3>) -> ()
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @sparsity(%out: memref<1024xi32>) kernel {
    %i = llvm.mlir.constant(0x04020014 : i32) : i32
    %no = llvm.mlir.constant(false) : i1
    %base, %tensor, %a, %b, %bar, %is_first = func.call @begin() : () -> (i32, !llvm.ptr<6>, i64, i64, !llvm.ptr<3>, i1)
    scf.if %is_first {
      // CHECK-LABEL: run @sparsity:
      // CHECK: [[FILE]]:[[#@LINE+1]]:7: nvvm.tcgen05.mma: thread (0, 0, 0) of block (0, 0, 0) expects the instruction descriptor to have 0 for sparsity, got 1
      nvvm.tcgen05.mma %tensor, %a, %b, %i, %no {kind = #nvvm.tcgen05_mma_kind<f16>, ctaGroup = #nvvm.cta_group<cta_1>} : (!llvm.ptr<6>, i64, i64, i32, i1)
      nvvm.tcgen05.commit %bar : !llvm.ptr<3>
    }
    func.call @finish(%base, %tensor, %bar) : (i32, !llvm.ptr<6>, !llvm.ptr<3>) -> ()
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @result_of_integers(%out: memref<1024xi32>) kernel {
    %i = llvm.mlir.constant(0x04020020 : i32) : i32
    %no = llvm.mlir.constant(false) : i1
    %base, %tensor, %a, %b, %bar, %is_first = func.call @begin() : () -> (i32, !llvm.ptr<6>, i64, i64, !llvm.ptr<3>, i1)
    scf.if %is_first {
      // CHECK-LABEL: run @result_of_integers:
      // CHECK: [[FILE]]:[[#@LINE+1]]:7: nvvm.tcgen05.mma: thread (0, 0, 0) of block (0, 0, 0) expects the instruction descriptor to have a type of D that kind f16 has, got code 2
      nvvm.tcgen05.mma %tensor, %a, %b, %i, %no {kind = #nvvm.tcgen05_mma_kind<f16>, ctaGroup = #nvvm.cta_group<cta_1>} : (!llvm.ptr<6>, i64, i64, i32, i1)
      nvvm.tcgen05.commit %bar : !llvm.ptr<3>
    }
    func.call @finish(%base, %tensor, %bar) : (i32, !llvm.ptr<6>, !llvm.ptr<3>) -> ()
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @elements_of_no_kind(%out: memref<1024xi32>) kernel {
    %i = llvm.mlir.constant(0x04020110 : i32) : i32
    %no = llvm.mlir.constant(false) : i1
    %base, %tensor, %a, %b, %bar, %is_first = func.call @begin() : () -> (i32, !llvm.ptr<6>, i64, i64, !llvm.ptr<3>, i1)
    scf.if %is_first {
      // CHECK-LABEL: run @elements_of_no_kind:
      // CHECK: [[FILE]]:[[#@LINE+1]]:7: nvvm.tcgen05.mma: thread (0, 0, 0) of block (0, 0, 0) expects the instruction descriptor to have types of A and B that kind f16 has, got code 2
      nvvm.tcgen05.mma %tensor, %a, %b, %i, %no {kind = #nvvm.tcgen05_mma_kind<f16>, ctaGroup = #nvvm.cta_group<cta_1>} : (!llvm.ptr<6>, i64, i64, i32, i1)
      nvvm.tcgen05.commit %bar : !llvm.ptr<3>
    }
    func.call @finish(%base, %tensor, %bar) : (i32, !llvm.ptr<6>, !llvm.ptr<3>) -> ()
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @odd_m(%out: memref<1024xi32>) kernel {
    %i = llvm.mlir.constant(0x06020010 : i32) : i32
    %no = llvm.mlir.constant(false) : i1
    %base, %tensor, %a, %b, %bar, %is_first = func.call @begin() : () -> (i32, !llvm.ptr<6>, i64, i64, !llvm.ptr<3>, i1)
    scf.if %is_first {
      // CHECK-LABEL: run @odd_m:
      // CHECK: [[FILE]]:[[#@LINE+1]]:7: nvvm.tcgen05.mma: thread (0, 0, 0) of block (0, 0, 0) expects the instruction descriptor to have an M of 64 or 128, got 96
      nvvm.tcgen05.mma %tensor, %a, %b, %i, %no {kind = #nvvm.tcgen05_mma_kind<f16>, ctaGroup = #nvvm.cta_group<cta_1>} : (!llvm.ptr<6>, i64, i64, i32, i1)
      nvvm.tcgen05.commit %bar : !llvm.ptr<3>
    }
    func.call @finish(%base, %tensor, %bar) : (i32, !llvm.ptr<6>, !llvm.ptr<3>) -> ()
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @no_columns(%out: memref<1024xi32>) kernel {
    %i = llvm.mlir.constant(0x04000010 : i32) : i32
    %no = llvm.mlir.constant(false) : i1
    %base, %tensor, %a, %b, %bar, %is_first = func.call @begin() : () -> (i32, !llvm.ptr<6>, i64, i64, !llvm.ptr<3>, i1)
    scf.if %is_first {
      // CHECK-LABEL: run @no_columns:
      // CHECK: [[FILE]]:[[#@LINE+1]]:7: nvvm.tcgen05.mma: thread (0, 0, 0) of block (0, 0, 0) expects the instruction descriptor to have an N from 8 to 256 in steps of 8, got 0
      nvvm.tcgen05.mma %tensor, %a, %b, %i, %no {kind = #nvvm.tcgen05_mma_kind<f16>, ctaGroup = #nvvm.cta_group<cta_1>} : (!llvm.ptr<6>, i64, i64, i32, i1)
      nvvm.tcgen05.commit %bar : !llvm.ptr<3>
    }
    func.call @finish(%base, %tensor, %bar) : (i32, !llvm.ptr<6>, !llvm.ptr<3>) -> ()
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @descriptor_of_wgmma(%out: memref<1024xi32>) kernel {
    %i = llvm.mlir.constant(0x04020010 : i32) : i32
    %no = llvm.mlir.constant(false) : i1
    %base, %tensor, %a, %b, %bar, %is_first = func.call @begin() : () -> (i32, !llvm.ptr<6>, i64, i64, !llvm.ptr<3>, i1)
    scf.if %is_first {
      %version = llvm.mlir.constant(0x0000400000000000 : i64) : i64
      %old = llvm.xor %b, %version : i64
      // CHECK-LABEL: run @descriptor_of_wgmma:
      // CHECK: [[FILE]]:[[#@LINE+1]]:7: nvvm.tcgen05.mma: thread (0, 0, 0) of block (0, 0, 0) has a descriptor of B with reserved bits or a swizzle that tcgen05 doesn't have
      nvvm.tcgen05.mma %tensor, %a, %old, %i, %no {kind = #nvvm.tcgen05_mma_kind<f16>, ctaGroup = #nvvm.cta_group<cta_1>} : (!llvm.ptr<6>, i64, i64, i32, i1)
      nvvm.tcgen05.commit %bar : !llvm.ptr<3>
    }
    func.call @finish(%base, %tensor, %bar) : (i32, !llvm.ptr<6>, !llvm.ptr<3>) -> ()
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @swizzle_of_wide_units(%out: memref<1024xi32>) kernel {
    %i = llvm.mlir.constant(0x04020010 : i32) : i32
    %no = llvm.mlir.constant(false) : i1
    %base, %tensor, %a, %b, %bar, %is_first = func.call @begin() : () -> (i32, !llvm.ptr<6>, i64, i64, !llvm.ptr<3>, i1)
    scf.if %is_first {
      %swizzle = llvm.mlir.constant(0x2000000000000000 : i64) : i64
      %wide = llvm.or %b, %swizzle : i64
      // CHECK-LABEL: run @swizzle_of_wide_units:
      // CHECK: [[FILE]]:[[#@LINE+1]]:7: nvvm.tcgen05.mma: thread (0, 0, 0) of block (0, 0, 0) has a descriptor of B with the swizzle of units of 32 bytes, which is for transposed matrices of 32-bit elements
      nvvm.tcgen05.mma %tensor, %a, %wide, %i, %no {kind = #nvvm.tcgen05_mma_kind<f16>, ctaGroup = #nvvm.cta_group<cta_1>} : (!llvm.ptr<6>, i64, i64, i32, i1)
      nvvm.tcgen05.commit %bar : !llvm.ptr<3>
    }
    func.call @finish(%base, %tensor, %bar) : (i32, !llvm.ptr<6>, !llvm.ptr<3>) -> ()
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @operand_out_of_its_array(%out: memref<1024xi32>) kernel {
    %i = llvm.mlir.constant(0x04020010 : i32) : i32
    %no = llvm.mlir.constant(false) : i1
    %base, %tensor, %a, %b, %bar, %is_first = func.call @begin() : () -> (i32, !llvm.ptr<6>, i64, i64, !llvm.ptr<3>, i1)
    scf.if %is_first {
      %step = llvm.mlir.constant(16 : i64) : i64
      %later = llvm.add %b, %step : i64
      // CHECK-LABEL: run @operand_out_of_its_array:
      // CHECK: [[FILE]]:[[#@LINE+1]]:7: nvvm.tcgen05.mma: thread (0, 0, 0) of block (0, 0, 0) uses {{[0-9]+}} bytes at byte 256 of shared @b, which has 256 bytes
      nvvm.tcgen05.mma %tensor, %a, %later, %i, %no {kind = #nvvm.tcgen05_mma_kind<f16>, ctaGroup = #nvvm.cta_group<cta_1>} : (!llvm.ptr<6>, i64, i64, i32, i1)
      nvvm.tcgen05.commit %bar : !llvm.ptr<3>
    }
    func.call @finish(%base, %tensor, %bar) : (i32, !llvm.ptr<6>, !llvm.ptr<3>) -> ()
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @result_at_a_lane_between(%out: memref<1024xi32>) kernel {
    %i = llvm.mlir.constant(0x04020010 : i32) : i32
    %no = llvm.mlir.constant(false) : i1
    %base, %tensor, %a, %b, %bar, %is_first = func.call @begin() : () -> (i32, !llvm.ptr<6>, i64, i64, !llvm.ptr<3>, i1)
    scf.if %is_first {
      %lane = llvm.getelementptr %tensor[524288] : (!llvm.ptr<6>) -> !llvm.ptr<6>, i8
      // CHECK-LABEL: run @result_at_a_lane_between:
      // CHECK: [[FILE]]:[[#@LINE+1]]:7: nvvm.tcgen05.mma: thread (0, 0, 0) of block (0, 0, 0) expects D of 64 rows to begin at lane 0 or 16, got lane 8, column 448 of tensor memory
      nvvm.tcgen05.mma %lane, %a, %b, %i, %no {kind = #nvvm.tcgen05_mma_kind<f16>, ctaGroup = #nvvm.cta_group<cta_1>} : (!llvm.ptr<6>, i64, i64, i32, i1)
      nvvm.tcgen05.commit %bar : !llvm.ptr<3>
    }
    func.call @finish(%base, %tensor, %bar) : (i32, !llvm.ptr<6>, !llvm.ptr<3>) -> ()
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @result_in_unallocated_columns(%out: memref<1024xi32>) kernel {
    %i = llvm.mlir.constant(0x04020010 : i32) : i32
    %no = llvm.mlir.constant(false) : i1
    %base, %tensor, %a, %b, %bar, %is_first = func.call @begin() : () -> (i32, !llvm.ptr<6>, i64, i64, !llvm.ptr<3>, i1)
    scf.if %is_first {
      %before = llvm.getelementptr %tensor[-4] : (!llvm.ptr<6>) -> !llvm.ptr<6>, i8
      // CHECK-LABEL: run @result_in_unallocated_columns:
      // CHECK: [[FILE]]:[[#@LINE+1]]:7: nvvm.tcgen05.mma: thread (0, 0, 0) of block (0, 0, 0) accesses 8 columns of 16 lanes at lane 0, column 444 of tensor memory, of which column 444 is not allocated
      nvvm.tcgen05.mma %before, %a, %b, %i, %no {kind = #nvvm.tcgen05_mma_kind<f16>, ctaGroup = #nvvm.cta_group<cta_1>} : (!llvm.ptr<6>, i64, i64, i32, i1)
      nvvm.tcgen05.commit %bar : !llvm.ptr<3>
    }
    func.call @finish(%base, %tensor, %bar) : (i32, !llvm.ptr<6>, !llvm.ptr<3>) -> ()
    gpu.return
  }
}

}
