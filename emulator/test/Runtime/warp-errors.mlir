// Errors of instructions that the lanes of a warp execute together.

// RUN: %add_launches %s | kvcache-opt --kvcache-to-emulator="chip=sm_90a" -o %t.mlir
// RUN: %emulator_tests/kvcache-run-cases %t.mlir --shared-libs=%kvcache_emulator,%kvcache_runtime,%mlir_lib_dir/libmlir_c_runner_utils.so | FileCheck %s -DSOURCE="<stdin>"

module attributes {gpu.container_module} {

gpu.module @kernels {
  // LAUNCH: 32 threads
  gpu.func @lane_outside_of_its_mask() kernel {
    %mask = arith.constant 0xf0 : i32
    // CHECK-LABEL: run @lane_outside_of_its_mask:
    // CHECK: [[SOURCE]]:[[#@LINE+1]]:5: nvvm.bar.warp.sync: thread (0, 0, 0) of block (0, 0, 0) is lane 0 of its warp, which is not in its mask 0x000000f0
    nvvm.bar.warp.sync %mask : i32
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @unequal_masks() kernel {
    %t = nvvm.read.ptx.sreg.tid.x range <i32, 0, 1024> : i32
    %c4 = arith.constant 4 : i32
    %true = arith.constant true
    %low = arith.constant 0xff : i32
    %all = arith.constant -1 : i32
    %is_low = arith.cmpi ult, %t, %c4 : i32
    %mask = arith.select %is_low, %low, %all : i32
    // CHECK-LABEL: run @unequal_masks:
    // CHECK: [[SOURCE]]:[[#@LINE+1]]:15: nvvm.vote.sync: thread (4, 0, 0) of block (0, 0, 0) has the mask 0xffffffff, while lanes 0 to 3 of warp 0 wait with the mask 0x000000ff
    %ballot = nvvm.vote.sync ballot %mask, %true -> i32
    func.call @use(%ballot) : (i32) -> ()
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @different_instructions() kernel {
    %t = nvvm.read.ptx.sreg.tid.x range <i32, 0, 1024> : i32
    %c5 = arith.constant 5 : i32
    %all = arith.constant -1 : i32
    %is_low = arith.cmpi ult, %t, %c5 : i32
    scf.if %is_low {
      %sum = nvvm.redux.sync add %t, %all : i32 -> i32
      func.call @use(%sum) : (i32) -> ()
    } else {
      // CHECK-LABEL: run @different_instructions:
      // CHECK: [[SOURCE]]:[[#@LINE+1]]:14: nvvm.redux.sync: thread (5, 0, 0) of block (0, 0, 0) has the mask 0xffffffff, while lanes 0 to 4 of warp 0 wait in nvvm.redux.sync at [[SOURCE]]:[[#@LINE-4]]:14 with the mask 0xffffffff
      %max = nvvm.redux.sync max %t, %all : i32 -> i32
      func.call @use(%max) : (i32) -> ()
    }
    gpu.return
  }

  // Lane 0 waits for lane 1, and lane 1 for lane 0.
  // LAUNCH: 32 threads
  gpu.func @masks_that_wait_for_each_other() kernel {
    %t = nvvm.read.ptx.sreg.tid.x range <i32, 0, 1024> : i32
    %c0 = arith.constant 0 : i32
    %three = arith.constant 3 : i32
    %all = arith.constant -1 : i32
    %is_first = arith.cmpi eq, %t, %c0 : i32
    scf.if %is_first {
      %lanes = nvvm.match.sync any %three, %t : i32 -> i32
      func.call @use(%lanes) : (i32) -> ()
    } else {
      // CHECK-LABEL: run @masks_that_wait_for_each_other:
      // CHECK: [[SOURCE]]:[[#@LINE+1]]:7: nvvm.bar.warp.sync: thread (1, 0, 0) of block (0, 0, 0) has the mask 0xffffffff, while lane 0 of warp 0 waits in nvvm.match.sync at [[SOURCE]]:[[#@LINE-4]]:16 with the mask 0x00000003
      nvvm.bar.warp.sync %all : i32
    }
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @inactive_source() kernel {
    %t = nvvm.read.ptx.sreg.tid.x range <i32, 0, 1024> : i32
    %c8 = arith.constant 8 : i32
    %mask = arith.constant 0xff : i32
    %clamp = arith.constant 0x1f : i32
    %is_low = arith.cmpi ult, %t, %c8 : i32
    scf.if %is_low {
      // CHECK-LABEL: run @inactive_source:
      // CHECK: [[SOURCE]]:[[#@LINE+1]]:16: nvvm.shfl.sync: thread (0, 0, 0) of block (0, 0, 0) reads from lane 8 of its warp, which is not in the mask 0x000000ff
      %other = nvvm.shfl.sync bfly %mask, %t, %c8, %clamp : i32 -> i32
      func.call @use(%other) : (i32) -> ()
    }
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @ended_source() kernel {
    %t = nvvm.read.ptx.sreg.tid.x range <i32, 0, 1024> : i32
    %c24 = arith.constant 24 : i32
    %one = arith.constant 1 : i32
    %all = arith.constant -1 : i32
    %clamp = arith.constant 0x1f : i32
    %is_low = arith.cmpi ult, %t, %c24 : i32
    scf.if %is_low {
      // CHECK-LABEL: run @ended_source:
      // CHECK: [[SOURCE]]:[[#@LINE+1]]:16: nvvm.shfl.sync: thread (23, 0, 0) of block (0, 0, 0) reads from lane 24 of its warp, which has ended or is not in the block
      %other = nvvm.shfl.sync down %all, %t, %one, %clamp : i32 -> i32
      func.call @use(%other) : (i32) -> ()
    }
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @missing_lane() kernel {
    %t = nvvm.read.ptx.sreg.tid.x range <i32, 0, 1024> : i32
    %c7 = arith.constant 7 : i32
    %one = arith.constant 1 : i32
    %all = arith.constant -1 : i32
    %clamp = arith.constant 0x1f : i32
    %is_seven = arith.cmpi eq, %t, %c7 : i32
    scf.if %is_seven {
      // CHECK-LABEL: run @missing_lane:
      // CHECK:      deadlock: no thread of block (0, 0, 0) can continue
      // CHECK-NEXT: threads 0 to 6 and 8 to 31 wait in nvvm.shfl.sync at [[SOURCE]]:[[#@LINE+4]]:16 for lane 7 of warp 0, in the mask 0xffffffff
      // CHECK-NEXT: thread 7 waits in nvvm.barrier0 at [[SOURCE]]:[[#@LINE+1]]:7 for barrier 0, which has 1 of 32 threads
      nvvm.barrier0
    } else {
      %other = nvvm.shfl.sync up %all, %t, %one, %clamp : i32 -> i32
      func.call @use(%other) : (i32) -> ()
    }
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @misaligned_row() workgroup(%shared: memref<32x8xi16, #gpu.address_space<workgroup>>) kernel {
    %lane = nvvm.read.ptx.sreg.laneid range <i32, 0, 32> : i32
    %base = memref.extract_aligned_pointer_as_index %shared : memref<32x8xi16, #gpu.address_space<workgroup>> -> index
    %base_i64 = arith.index_cast %base : index to i64
    %start = llvm.inttoptr %base_i64 : i64 to !llvm.ptr<3>
    %row = llvm.getelementptr %start[%lane] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
    // CHECK-LABEL: run @misaligned_row:
    // CHECK: [[SOURCE]]:[[#@LINE+1]]:12: nvvm.ldmatrix: thread (1, 0, 0) of block (0, 0, 0) expects an address at a multiple of 16 bytes, got byte 8 of shared @__wg_misaligned_row_0
    %one = nvvm.ldmatrix %row {num = 1 : i32, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : (!llvm.ptr<3>) -> i32
    func.call @use(%one) : (i32) -> ()
    gpu.return
  }

  // Lanes 8 to 31 give no rows: what they give is not looked at.
  // LAUNCH: 32 threads
  gpu.func @row_outside_of_shared_memory() workgroup(%shared: memref<7x8xi16, #gpu.address_space<workgroup>>) kernel {
    %zero = arith.constant 0 : i32
    %lane = nvvm.read.ptx.sreg.laneid range <i32, 0, 32> : i32
    %base = memref.extract_aligned_pointer_as_index %shared : memref<7x8xi16, #gpu.address_space<workgroup>> -> index
    %base_i64 = arith.index_cast %base : index to i64
    %start = llvm.inttoptr %base_i64 : i64 to !llvm.ptr<3>
    %row = llvm.getelementptr %start[%lane] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, !llvm.array<8 x i16>
    // CHECK-LABEL: run @row_outside_of_shared_memory:
    // CHECK: [[SOURCE]]:[[#@LINE+1]]:5: nvvm.stmatrix: thread (7, 0, 0) of block (0, 0, 0) uses 16 bytes
    nvvm.stmatrix %row, %zero {layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : !llvm.ptr<3>, i32
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @matrix_without_all_lanes() kernel {
    %t = nvvm.read.ptx.sreg.tid.x range <i32, 0, 1024> : i32
    %c30 = arith.constant 30 : i32
    %zero = arith.constant 0 : i32
    %is_low = arith.cmpi ult, %t, %c30 : i32
    scf.if %is_low {
      // CHECK-LABEL: run @matrix_without_all_lanes:
      // CHECK: [[SOURCE]]:[[#@LINE+1]]:12: nvvm.mma.sync: thread (0, 0, 0) of block (0, 0, 0) requires all lanes of its warp, but lanes 30 to 31 of warp 0 have ended or are not in the block
      %d = nvvm.mma.sync A[%zero] B[%zero] C[%zero, %zero]
          {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, shape = #nvvm.shape<m = 8, n = 8, k = 16>,
           multiplicandAPtxType = #nvvm.mma_type<s8>, multiplicandBPtxType = #nvvm.mma_type<s8>,
           intOverflowBehavior = #nvvm.mma_int_overflow<satfinite>}
          : (i32, i32, i32) -> !llvm.struct<(i32, i32)>
      %d0 = llvm.extractvalue %d[0] : !llvm.struct<(i32, i32)>
      func.call @use(%d0) : (i32) -> ()
    }
    gpu.return
  }

  memref.global @sink : memref<i32>

  func.func private @use(%value: i32) {
    %sink = memref.get_global @sink : memref<i32>
    memref.store %value, %sink[] : memref<i32>
    return
  }
}

}
