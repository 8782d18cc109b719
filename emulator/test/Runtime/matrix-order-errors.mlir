// The lanes of a warp read rows of matrices together. Another thread may write bytes of a row when
// it is ordered after the lane that has read these, and the lane itself at any time.

// RUN: %add_launches %s | kvcache-opt --kvcache-to-emulator="chip=sm_90a" -o %t.mlir
// RUN: %emulator_tests/kvcache-run-cases %t.mlir --shared-libs=%kvcache_emulator,%kvcache_runtime --right=own_bytes,own_transposed_bytes,after_a_barrier | FileCheck %s -DFILE="<stdin>"

module attributes {gpu.container_module} {

gpu.module @kernels {
  llvm.mlir.global internal @rows() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<512 x i8>

  // Each lane writes a row of 16 bytes, and gets its address when all have.
  func.func private @fill() -> !llvm.ptr<3> {
    %lane = nvvm.read.ptx.sreg.laneid : i32
    %all = llvm.mlir.constant(-1 : i32) : i32
    %c16 = llvm.mlir.constant(16 : i32) : i32
    %rows = llvm.mlir.addressof @rows : !llvm.ptr<3>
    %offset = llvm.mul %lane, %c16 : i32
    %row = llvm.getelementptr %rows[%offset] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
    %ones = llvm.mlir.constant(dense<1> : vector<4xi32>) : vector<4xi32>
    llvm.store %ones, %row {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
    nvvm.bar.warp.sync %all : i32
    return %row : !llvm.ptr<3>
  }

  // The place of two bytes of a row of the first matrix.
  func.func private @get_place(%row: i32, %byte: i32) -> !llvm.ptr<3> {
    %rows = llvm.mlir.addressof @rows : !llvm.ptr<3>
    %c16 = llvm.mlir.constant(16 : i32) : i32
    %offset = llvm.mul %row, %c16 : i32
    %place = llvm.add %offset, %byte : i32
    %to = llvm.getelementptr %rows[%place] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
    return %to : !llvm.ptr<3>
  }

  // Of a matrix, lane 4 r + i has bytes 4 i to 4 i + 3 of row r: the first of those that the lane has, or one that is `n`
  // lanes after it in the row.
  func.func private @get_bytes(%n: i32) -> !llvm.ptr<3> {
    %lane = nvvm.read.ptx.sreg.laneid : i32
    %c4 = llvm.mlir.constant(4 : i32) : i32
    %r = llvm.udiv %lane, %c4 : i32
    %i = llvm.urem %lane, %c4 : i32
    %next = llvm.add %i, %n : i32
    %piece = llvm.urem %next, %c4 : i32
    %byte = llvm.mul %piece, %c4 : i32
    %to = func.call @get_place(%r, %byte) : (i32, i32) -> !llvm.ptr<3>
    return %to : !llvm.ptr<3>
  }

  // Transposed, it has bytes 2 r and 2 r + 1 of rows 2 i and 2 i + 1.
  func.func private @get_transposed_bytes(%n: i32) -> !llvm.ptr<3> {
    %lane = nvvm.read.ptx.sreg.laneid : i32
    %c2 = llvm.mlir.constant(2 : i32) : i32
    %c4 = llvm.mlir.constant(4 : i32) : i32
    %c8 = llvm.mlir.constant(8 : i32) : i32
    %r = llvm.udiv %lane, %c4 : i32
    %i = llvm.urem %lane, %c4 : i32
    %row = llvm.mul %i, %c2 : i32
    %next = llvm.add %r, %n : i32
    %piece = llvm.urem %next, %c8 : i32
    %byte = llvm.mul %piece, %c2 : i32
    %to = func.call @get_place(%row, %byte) : (i32, i32) -> !llvm.ptr<3>
    return %to : !llvm.ptr<3>
  }

  // LAUNCH: 32 threads
  gpu.func @own_bytes() kernel {
    %zero = llvm.mlir.constant(0 : i16) : i16
    %n = llvm.mlir.constant(0 : i32) : i32
    %address = func.call @fill() : () -> !llvm.ptr<3>
    %d = nvvm.ldmatrix %address {num = 4 : i32, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
    %to = func.call @get_bytes(%n) : (i32) -> !llvm.ptr<3>
    llvm.store %zero, %to : i16, !llvm.ptr<3>
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @own_transposed_bytes() kernel {
    %zero = llvm.mlir.constant(0 : i16) : i16
    %n = llvm.mlir.constant(0 : i32) : i32
    %address = func.call @fill() : () -> !llvm.ptr<3>
    %d = nvvm.ldmatrix %address {num = 4 : i32, layout = #nvvm.mma_layout<col>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
    %to = func.call @get_transposed_bytes(%n) : (i32) -> !llvm.ptr<3>
    llvm.store %zero, %to : i16, !llvm.ptr<3>
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @bytes_of_the_next_lane() kernel {
    %zero = llvm.mlir.constant(0 : i16) : i16
    %n = llvm.mlir.constant(1 : i32) : i32
    %address = func.call @fill() : () -> !llvm.ptr<3>
    %d = nvvm.ldmatrix %address {num = 4 : i32, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
    %to = func.call @get_bytes(%n) : (i32) -> !llvm.ptr<3>
    // CHECK-LABEL: run @bytes_of_the_next_lane:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: llvm.store: thread (30, 0, 0) of block (0, 0, 0) writes 2 bytes at byte 124 of shared @rows, which thread (31, 0, 0) reads in nvvm.ldmatrix at {{.*}} without order between them
    llvm.store %zero, %to : i16, !llvm.ptr<3>
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @transposed_bytes_of_the_next_lane() kernel {
    %zero = llvm.mlir.constant(0 : i16) : i16
    %n = llvm.mlir.constant(1 : i32) : i32
    %address = func.call @fill() : () -> !llvm.ptr<3>
    %d = nvvm.ldmatrix %address {num = 4 : i32, layout = #nvvm.mma_layout<col>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
    %to = func.call @get_transposed_bytes(%n) : (i32) -> !llvm.ptr<3>
    // CHECK-LABEL: run @transposed_bytes_of_the_next_lane:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: llvm.store: thread (30, 0, 0) of block (0, 0, 0) writes 2 bytes at byte 64 of shared @rows, which thread (2, 0, 0) reads in nvvm.ldmatrix at {{.*}} without order between them
    llvm.store %zero, %to : i16, !llvm.ptr<3>
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @after_a_barrier() kernel {
    %zero = llvm.mlir.constant(0 : i16) : i16
    %n = llvm.mlir.constant(1 : i32) : i32
    %address = func.call @fill() : () -> !llvm.ptr<3>
    %d = nvvm.ldmatrix %address {num = 4 : i32, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
    %all = llvm.mlir.constant(-1 : i32) : i32
    nvvm.bar.warp.sync %all : i32
    %to = func.call @get_bytes(%n) : (i32) -> !llvm.ptr<3>
    llvm.store %zero, %to : i16, !llvm.ptr<3>
    gpu.return
  }
}

}
