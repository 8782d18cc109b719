// Reports of uses of values that depend on uninitialized bytes,
// after memory, copies, other lanes and matrices.

// RUN: %add_launches %s | kvcache-opt --kvcache-to-emulator="chip=sm_100a" -o %t.mlir
// RUN: %emulator_tests/kvcache-run-cases %t.mlir --shared-libs=%kvcache_emulator,%kvcache_runtime | FileCheck %s -DFILE="<stdin>"

!out = memref<64xi32>
!four = !llvm.struct<(i32, i32, i32, i32)>
!acc = !llvm.struct<(f32, f32, f32, f32)>

module attributes {gpu.container_module} {

gpu.module @kernels {
  llvm.mlir.global internal @tile() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<512 x i8>
  llvm.mlir.global internal @other() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<512 x i8>
  llvm.mlir.global internal @barrier() {addr_space = 3 : i32, alignment = 8 : i64} : i64

  gpu.func @through_shared_memory(%out: !out) kernel {
    %c0 = arith.constant 0 : index
    %one = arith.constant 1 : i32
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %other = llvm.mlir.addressof @other : !llvm.ptr<3>
    llvm.store %one, %tile : i32, !llvm.ptr<3>
    // CHECK-LABEL: run @through_shared_memory:
    // CHECK: [[FILE]]:[[#@LINE+8]]:{{[0-9]+}}: llvm.store: thread (0, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which were uninitialized when llvm.load at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte 4 of shared @tile
    %v = llvm.load %tile : !llvm.ptr<3> -> vector<4xi32>
    %next = arith.addi %v, %v : vector<4xi32>
    llvm.store %next, %other {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
    %third = llvm.getelementptr %other[2] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i32
    %back = llvm.load %other : !llvm.ptr<3> -> i32
    %word = llvm.load %third : !llvm.ptr<3> -> i32
    memref.store %back, %out[%c0] : !out
    memref.store %word, %out[%c0] : !out
    gpu.return
  }

  gpu.func @through_a_variable(%out: !out) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %one = arith.constant 1 : i32
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %t = gpu.thread_id x
    %mine = memref.alloca() : memref<4xi32>
    %i = arith.addi %t, %c1 : index
    // CHECK-LABEL: run @through_a_variable:
    // CHECK: [[FILE]]:[[#@LINE+7]]:{{[0-9]+}}: llvm.store: thread (0, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which were uninitialized when llvm.load at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte 0 of shared @tile
    %v = llvm.load %tile : !llvm.ptr<3> -> i32
    memref.store %one, %mine[%c0] : memref<4xi32>
    memref.store %v, %mine[%i] : memref<4xi32>
    %first = memref.load %mine[%t] : memref<4xi32>
    %second = memref.load %mine[%c1] : memref<4xi32>
    memref.store %first, %out[%c0] : !out
    memref.store %second, %out[%c0] : !out
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @shuffle(%out: !out) kernel {
    %clamp = arith.constant 31 : i32
    %all = arith.constant -1 : i32
    %one = arith.constant 1 : i32
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %t = gpu.thread_id x
    %l = arith.index_cast %t : index to i32
    %of_lane = llvm.getelementptr %tile[%l] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    // CHECK-LABEL: run @shuffle:
    // CHECK: [[FILE]]:[[#@LINE+3]]:{{[0-9]+}}: llvm.store: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which were uninitialized when llvm.load at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte 4 of shared @tile
    %v = llvm.load %of_lane : !llvm.ptr<3> -> i32
    %got = nvvm.shfl.sync idx %all, %v, %one, %clamp : i32 -> i32
    memref.store %got, %out[%t] : !out
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @vote(%out: !out) kernel {
    %all = arith.constant -1 : i32
    %one = arith.constant 1 : i32
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %t = gpu.thread_id x
    %l = arith.index_cast %t : index to i32
    %of_lane = llvm.getelementptr %tile[%l] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    // CHECK-LABEL: run @vote:
    // CHECK: [[FILE]]:[[#@LINE+4]]:{{[0-9]+}}: llvm.store: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which were uninitialized when llvm.load at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte {{[0-9]+}} of shared @tile
    %v = llvm.load %of_lane : !llvm.ptr<3> -> i32
    %is = arith.cmpi eq, %v, %one : i32
    %votes = nvvm.vote.sync ballot %all, %is -> i32
    memref.store %votes, %out[%t] : !out
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @reduction(%out: !out) kernel {
    %all = arith.constant -1 : i32
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %t = gpu.thread_id x
    %l = arith.index_cast %t : index to i32
    %of_lane = llvm.getelementptr %tile[%l] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    // CHECK-LABEL: run @reduction:
    // CHECK: [[FILE]]:[[#@LINE+3]]:{{[0-9]+}}: llvm.store: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which were uninitialized when llvm.load at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte {{[0-9]+}} of shared @tile
    %v = llvm.load %of_lane : !llvm.ptr<3> -> i32
    %sum = nvvm.redux.sync add %v, %all : i32 -> i32
    memref.store %sum, %out[%t] : !out
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @matrix(%out: !out) kernel {
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %t = gpu.thread_id x
    %l = arith.index_cast %t : index to i32
    %row = llvm.getelementptr %tile[%l] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, !llvm.array<16 x i8>
    // CHECK-LABEL: run @matrix:
    // CHECK: [[FILE]]:[[#@LINE+3]]:{{[0-9]+}}: llvm.store: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which were uninitialized when nvvm.ldmatrix at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte {{[0-9]+}} of shared @tile
    %a = nvvm.ldmatrix %row {num = 4 : i32, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : (!llvm.ptr<3>) -> !four
    %a0 = llvm.extractvalue %a[0] : !four
    memref.store %a0, %out[%t] : !out
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @product_of_matrices(%out: !out) kernel {
    %all = arith.constant -1 : i32
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %t = gpu.thread_id x
    %l = arith.index_cast %t : index to i32
    %row = llvm.getelementptr %tile[%l] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, !llvm.array<16 x i8>
    %eight = arith.constant 24 : i32
    %is_valid = arith.cmpi ult, %l, %eight : i32
    scf.if %is_valid {
      %zeros = arith.constant dense<0> : vector<4xi32>
      llvm.store %zeros, %row {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
    }
    nvvm.bar.warp.sync %all : i32
    // CHECK-LABEL: run @product_of_matrices:
    // CHECK: [[FILE]]:[[#@LINE+11]]:{{[0-9]+}}: llvm.store: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which were uninitialized when nvvm.ldmatrix at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte {{[0-9]+}} of shared @tile
    %b = nvvm.ldmatrix %row {num = 4 : i32, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : (!llvm.ptr<3>) -> !four
    %b0 = llvm.extractvalue %b[2] : !four
    %b1 = llvm.extractvalue %b[3] : !four
    %h0 = llvm.bitcast %b0 : i32 to vector<2xf16>
    %h1 = llvm.bitcast %b1 : i32 to vector<2xf16>
    %ones = arith.constant dense<0.0> : vector<2xf16>
    %none = arith.constant 0.0 : f32
    %d = nvvm.mma.sync A[%ones, %ones, %ones, %ones] B[%h0, %h1] C[%none, %none, %none, %none] {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, shape = #nvvm.shape<m = 16, n = 8, k = 16>} : (vector<2xf16>, vector<2xf16>, f32) -> !acc
    %d0 = llvm.extractvalue %d[0] : !acc
    %bits = llvm.bitcast %d0 : f32 to i32
    memref.store %bits, %out[%t] : !out
    gpu.return
  }

  // LAUNCH: 32 threads
  gpu.func @stored_matrix(%out: !out) kernel {
    %all = arith.constant -1 : i32
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %t = gpu.thread_id x
    %l = arith.index_cast %t : index to i32
    %other = llvm.mlir.addressof @other : !llvm.ptr<3>
    %row = llvm.getelementptr %tile[%l] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, !llvm.array<16 x i8>
    %to = llvm.getelementptr %other[%l] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, !llvm.array<16 x i8>
    // CHECK-LABEL: run @stored_matrix:
    // CHECK: [[FILE]]:[[#@LINE+5]]:{{[0-9]+}}: llvm.store: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which were uninitialized when nvvm.ldmatrix at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte {{[0-9]+}} of shared @tile
    %a = nvvm.ldmatrix %row {num = 1 : i32, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : (!llvm.ptr<3>) -> i32
    nvvm.stmatrix %to, %a {layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : !llvm.ptr<3>, i32
    nvvm.bar.warp.sync %all : i32
    %word = llvm.load %other : !llvm.ptr<3> -> i32
    memref.store %word, %out[%t] : !out
    gpu.return
  }

  // LAUNCH: uninitialized memory
  gpu.func @copied_by_a_thread(%out: !out) kernel {
    %index = memref.extract_aligned_pointer_as_index %out : !out -> index
    %address = arith.index_cast %index : index to i64
    %g = llvm.inttoptr %address : i64 to !llvm.ptr<1>
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %one = arith.constant 1 : i32
    memref.store %one, %out[%c2] : !out
    nvvm.cp.async.shared.global %tile, %g, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
    nvvm.cp.async.commit.group
    nvvm.cp.async.wait.group 0
    %v = llvm.load %tile {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
    %third = vector.extract %v[2] : i32 from vector<4xi32>
    %last = vector.extract %v[3] : i32 from vector<4xi32>
    memref.store %third, %out[%c0] : !out
    // CHECK-LABEL: run @copied_by_a_thread:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: llvm.store: thread (0, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which were uninitialized when nvvm.cp.async.shared.global at [[FILE]]:[[#@LINE-8]]:5 read them; the first is byte 0 of an allocation of 256 bytes
    memref.store %last, %out[%c3] : !out
    gpu.return
  }

  // LAUNCH: uninitialized memory
  gpu.func @copied_in_bulk(%out: !out) kernel {
    %index = memref.extract_aligned_pointer_as_index %out : !out -> index
    %address = arith.index_cast %index : index to i64
    %g = llvm.inttoptr %address : i64 to !llvm.ptr<1>
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %bytes = arith.constant 64 : i32
    %barrier = llvm.mlir.addressof @barrier : !llvm.ptr<3>
    nvvm.mbarrier.init %barrier, %one : !llvm.ptr<3>, i32
    nvvm.fence.mbarrier.init
    %s = nvvm.mbarrier.arrive.expect_tx %barrier, %bytes : !llvm.ptr<3>, i32 -> i64
    nvvm.cp.async.bulk.shared.cluster.global %tile, %g, %barrier, %bytes : !llvm.ptr<3>, !llvm.ptr<1>
    nvvm.mbarrier.try_wait.parity %barrier, %zero, %zero : !llvm.ptr<3>, i32, i32
    %third = llvm.getelementptr %tile[2] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i32
    %v = llvm.load %third : !llvm.ptr<3> -> i32
    // CHECK-LABEL: run @copied_in_bulk:
    // CHECK: [[FILE]]:[[#@LINE+1]]:5: llvm.store: thread (0, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which were uninitialized when nvvm.cp.async.bulk.shared.cluster.global at [[FILE]]:[[#@LINE-5]]:5 read them; the first is byte 0 of an allocation of 256 bytes
    memref.store %v, %out[%c0] : !out
    gpu.return
  }
}

}
