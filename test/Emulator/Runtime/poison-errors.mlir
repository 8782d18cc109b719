// What the sanitizer says where a value is used that depends on bytes which
// nobody has written, one kernel for each use and each way there. Kernels that
// read such bytes and discard them are in poison.mlir.

// DEFINE: %{libs} = %kvcache_emulator,%kvcache_runtime
// DEFINE: %{case} =
// DEFINE: %{run} = not mlir-runner %t.mlir -e %{case} -entry-point-result=void -shared-libs=%{libs} 2>&1 | FileCheck %s -DFILE=%s --check-prefix
// RUN: kvcache-opt %s --kvcache-to-emulator="chip=sm_100a" -o %t.mlir
// REDEFINE: %{case} = address
// RUN: %{run} ADDRESS
// REDEFINE: %{case} = store
// RUN: %{run} STORE
// REDEFINE: %{case} = arithmetic
// RUN: %{run} ARITHMETIC
// REDEFINE: %{case} = lane_of_a_vector
// RUN: %{run} LANE_OF_A_VECTOR
// REDEFINE: %{case} = shuffled_lanes
// RUN: %{run} SHUFFLED_LANES
// REDEFINE: %{case} = inserted_lane
// RUN: %{run} INSERTED_LANE
// REDEFINE: %{case} = half_of_a_word
// RUN: %{run} HALF_OF_A_WORD
// REDEFINE: %{case} = shifted_bits
// RUN: %{run} SHIFTED_BITS
// REDEFINE: %{case} = product_with_zero
// RUN: %{run} PRODUCT_WITH_ZERO
// REDEFINE: %{case} = chosen_arm
// RUN: %{run} CHOSEN_ARM
// REDEFINE: %{case} = condition_of_a_select
// RUN: %{run} CONDITION_OF_A_SELECT
// REDEFINE: %{case} = switch_on_it
// RUN: %{run} SWITCH_ON_IT
// REDEFINE: %{case} = carried_by_a_loop
// RUN: %{run} CARRIED_BY_A_LOOP
// REDEFINE: %{case} = through_shared_memory
// RUN: %{run} THROUGH_SHARED_MEMORY
// REDEFINE: %{case} = through_a_variable
// RUN: %{run} THROUGH_A_VARIABLE
// REDEFINE: %{case} = packed_pair
// RUN: %{run} PACKED_PAIR
// REDEFINE: %{case} = unpacked_pair
// RUN: %{run} UNPACKED_PAIR
// REDEFINE: %{case} = shuffle
// RUN: %{run} SHUFFLE
// REDEFINE: %{case} = vote
// RUN: %{run} VOTE
// REDEFINE: %{case} = reduction
// RUN: %{run} REDUCTION
// REDEFINE: %{case} = matrix
// RUN: %{run} MATRIX
// REDEFINE: %{case} = product_of_matrices
// RUN: %{run} PRODUCT_OF_MATRICES
// REDEFINE: %{case} = stored_matrix
// RUN: %{run} STORED_MATRIX
// REDEFINE: %{case} = printed
// RUN: %{run} PRINTED
// REDEFINE: %{case} = asserted
// RUN: %{run} ASSERTED
// REDEFINE: %{case} = divisor
// RUN: %{run} DIVISOR
// REDEFINE: %{case} = bulk_copy_out
// RUN: %{run} BULK_COPY_OUT
// REDEFINE: %{case} = bulk_copy_of_what_depends_on_it
// RUN: %{run} BULK_COPY_OF_WHAT_DEPENDS_ON_IT
// REDEFINE: %{case} = copied_by_a_thread
// RUN: %{run} COPIED_BY_A_THREAD
// REDEFINE: %{case} = copied_in_bulk
// RUN: %{run} COPIED_IN_BULK
// REDEFINE: %{case} = passed_to_a_function
// RUN: %{run} PASSED_TO_A_FUNCTION

!out = memref<64xi32>
!two = !llvm.struct<(i32, i32)>
!four = !llvm.struct<(i32, i32, i32, i32)>
!acc = !llvm.struct<(f32, f32, f32, f32)>

module attributes {gpu.container_module} {

gpu.module @kernels {
  llvm.mlir.global internal @tile() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<512 x i8>
  llvm.mlir.global internal @other() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<512 x i8>
  llvm.mlir.global internal @barrier() {addr_space = 3 : i32, alignment = 8 : i64} : i64

  gpu.func @address(%out: !out) kernel {
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    // ADDRESS: [[FILE]]:[[#@LINE+3]]:{{[0-9]+}}: llvm.store: thread (0, 0, 0) of block (0, 0, 0) computes an address from a value that depends on bytes which nobody had written when llvm.load at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte 0 of shared @tile
    %v = llvm.load %tile : !llvm.ptr<3> -> i32
    %i = arith.index_cast %v : i32 to index
    memref.store %v, %out[%i] : !out
    gpu.return
  }

  gpu.func @store(%out: !out) kernel {
    %c0 = arith.constant 0 : index
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    // STORE: [[FILE]]:[[#@LINE+2]]:{{[0-9]+}}: llvm.store: thread (0, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which nobody had written when llvm.load at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte 0 of shared @tile
    %v = llvm.load %tile : !llvm.ptr<3> -> i32
    memref.store %v, %out[%c0] : !out
    gpu.return
  }

  gpu.func @arithmetic(%out: !out) kernel {
    %c0 = arith.constant 0 : index
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    // ARITHMETIC: [[FILE]]:[[#@LINE+6]]:{{[0-9]+}}: llvm.store: thread (0, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which nobody had written when llvm.load at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte 0 of shared @tile
    %v = llvm.load %tile : !llvm.ptr<3> -> f32
    %double = arith.addf %v, %v : f32
    %square = arith.mulf %double, %double : f32
    %root = math.sqrt %square : f32
    %bits = arith.fptosi %root : f32 to i32
    memref.store %bits, %out[%c0] : !out
    gpu.return
  }

  gpu.func @lane_of_a_vector(%out: !out) kernel {
    %c0 = arith.constant 0 : index
    %one = arith.constant 1 : i32
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    llvm.store %one, %tile : i32, !llvm.ptr<3>
    // LANE_OF_A_VECTOR: [[FILE]]:[[#@LINE+6]]:{{[0-9]+}}: llvm.store: thread (0, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which nobody had written when llvm.load at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte 4 of shared @tile
    %v = llvm.load %tile : !llvm.ptr<3> -> vector<4xi32>
    %sum = arith.addi %v, %v : vector<4xi32>
    %first = vector.extract %sum[0] : i32 from vector<4xi32>
    %last = vector.extract %sum[3] : i32 from vector<4xi32>
    memref.store %first, %out[%c0] : !out
    memref.store %last, %out[%c0] : !out
    gpu.return
  }

  gpu.func @shuffled_lanes(%out: !out) kernel {
    %c0 = arith.constant 0 : index
    %one = arith.constant 1 : i32
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    llvm.store %one, %tile : i32, !llvm.ptr<3>
    // SHUFFLED_LANES: [[FILE]]:[[#@LINE+6]]:{{[0-9]+}}: llvm.store: thread (0, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which nobody had written when llvm.load at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte 4 of shared @tile
    %v = llvm.load %tile : !llvm.ptr<3> -> vector<4xi32>
    %ones = arith.constant dense<1> : vector<4xi32>
    %mixed = vector.shuffle %ones, %v [0, 4, 1, 5] : vector<4xi32>, vector<4xi32>
    %clean = vector.extract_strided_slice %mixed {offsets = [0], sizes = [3], strides = [1]} : vector<4xi32> to vector<3xi32>
    vector.store %clean, %out[%c0] : !out, vector<3xi32>
    vector.store %mixed, %out[%c0] : !out, vector<4xi32>
    gpu.return
  }

  gpu.func @inserted_lane(%out: !out) kernel {
    %c0 = arith.constant 0 : index
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    // INSERTED_LANE: [[FILE]]:[[#@LINE+6]]:{{[0-9]+}}: llvm.store: thread (0, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which nobody had written when llvm.load at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte 0 of shared @tile
    %v = llvm.load %tile : !llvm.ptr<3> -> i32
    %ones = arith.constant dense<1> : vector<4xi32>
    %mixed = vector.insert %v, %ones[2] : i32 into vector<4xi32>
    %first = vector.extract %mixed[1] : i32 from vector<4xi32>
    memref.store %first, %out[%c0] : !out
    vector.store %mixed, %out[%c0] : !out, vector<4xi32>
    gpu.return
  }

  gpu.func @half_of_a_word(%out: !out) kernel {
    %c0 = arith.constant 0 : index
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %half = llvm.mlir.constant(7 : i16) : i16
    llvm.store %half, %tile : i16, !llvm.ptr<3>
    // HALF_OF_A_WORD: [[FILE]]:[[#@LINE+8]]:{{[0-9]+}}: llvm.store: thread (0, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which nobody had written when llvm.load at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte 2 of shared @tile
    %v = llvm.load %tile : !llvm.ptr<3> -> i32
    %low = arith.constant 0xffff : i32
    %clean = arith.andi %v, %low : i32
    memref.store %clean, %out[%c0] : !out
    %pair = llvm.bitcast %v : i32 to vector<2xi16>
    %second = vector.extract %pair[1] : i16 from vector<2xi16>
    %wide = arith.extsi %second : i16 to i32
    memref.store %wide, %out[%c0] : !out
    gpu.return
  }

  gpu.func @shifted_bits(%out: !out) kernel {
    %c0 = arith.constant 0 : index
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %half = llvm.mlir.constant(7 : i16) : i16
    llvm.store %half, %tile : i16, !llvm.ptr<3>
    // SHIFTED_BITS: [[FILE]]:[[#@LINE+6]]:{{[0-9]+}}: llvm.store: thread (0, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which nobody had written when llvm.load at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte 2 of shared @tile
    %v = llvm.load %tile : !llvm.ptr<3> -> i32
    %c16 = arith.constant 16 : i32
    %up = arith.shli %v, %c16 : i32
    memref.store %up, %out[%c0] : !out
    %down = arith.shrui %v, %c16 : i32
    memref.store %down, %out[%c0] : !out
    gpu.return
  }

  gpu.func @product_with_zero(%out: !out) kernel {
    %c0 = arith.constant 0 : index
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    // PRODUCT_WITH_ZERO: [[FILE]]:[[#@LINE+5]]:{{[0-9]+}}: llvm.store: thread (0, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which nobody had written when llvm.load at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte 0 of shared @tile
    %v = llvm.load %tile : !llvm.ptr<3> -> f32
    %zero = arith.constant 0.0 : f32
    %product = arith.mulf %v, %zero : f32
    %bits = arith.bitcast %product : f32 to i32
    memref.store %bits, %out[%c0] : !out
    gpu.return
  }

  gpu.func @chosen_arm(%out: !out) kernel {
    %c0 = arith.constant 0 : index
    %one = arith.constant 1 : i32
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %t = gpu.thread_id x
    // CHOSEN_ARM: [[FILE]]:[[#@LINE+4]]:{{[0-9]+}}: llvm.store: thread (0, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which nobody had written when llvm.load at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte 0 of shared @tile
    %v = llvm.load %tile : !llvm.ptr<3> -> i32
    %is = arith.cmpi eq, %t, %c0 : index
    %chosen = arith.select %is, %v, %one : i32
    memref.store %chosen, %out[%c0] : !out
    gpu.return
  }

  gpu.func @condition_of_a_select(%out: !out) kernel {
    %c0 = arith.constant 0 : index
    %one = arith.constant 1 : i32
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    // CONDITION_OF_A_SELECT: [[FILE]]:[[#@LINE+5]]:{{[0-9]+}}: llvm.store: thread (0, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which nobody had written when llvm.load at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte 0 of shared @tile
    %v = llvm.load %tile : !llvm.ptr<3> -> i32
    %two = arith.constant 2 : i32
    %is = arith.cmpi sgt, %v, %one : i32
    %chosen = arith.select %is, %two, %one : i32
    memref.store %chosen, %out[%c0] : !out
    gpu.return
  }

  gpu.func @switch_on_it(%out: !out) kernel {
    %c0 = arith.constant 0 : index
    %one = arith.constant 1 : i32
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    // SWITCH_ON_IT: [[FILE]]:[[#@LINE+3]]:{{[0-9]+}}: llvm.switch: thread (0, 0, 0) of block (0, 0, 0) branches on a value that depends on bytes which nobody had written when llvm.load at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte 0 of shared @tile
    %v = llvm.load %tile : !llvm.ptr<3> -> i32
    %i = arith.index_cast %v : i32 to index
    scf.index_switch %i
    case 2 {
      memref.store %one, %out[%c0] : !out
      scf.yield
    }
    case 5 {
      memref.store %one, %out[%c0] : !out
      scf.yield
    }
    default {
    }
    gpu.return
  }

  gpu.func @carried_by_a_loop(%out: !out) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %one = arith.constant 1 : i32
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %c3 = arith.constant 3 : index
    // CARRIED_BY_A_LOOP: [[FILE]]:[[#@LINE+8]]:{{[0-9]+}}: llvm.store: thread (0, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which nobody had written when llvm.load at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte 0 of shared @tile
    %v = llvm.load %tile : !llvm.ptr<3> -> i32
    %last, %second = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %v, %b = %one) -> (i32, i32) {
      %sum = arith.addi %b, %one : i32
      scf.yield %sum, %a : i32, i32
    }
    memref.store %last, %out[%c0] : !out
    %next = arith.addi %second, %one : i32
    memref.store %next, %out[%c0] : !out
    gpu.return
  }

  gpu.func @through_shared_memory(%out: !out) kernel {
    %c0 = arith.constant 0 : index
    %one = arith.constant 1 : i32
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %other = llvm.mlir.addressof @other : !llvm.ptr<3>
    llvm.store %one, %tile : i32, !llvm.ptr<3>
    // THROUGH_SHARED_MEMORY: [[FILE]]:[[#@LINE+8]]:{{[0-9]+}}: llvm.store: thread (0, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which nobody had written when llvm.load at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte 4 of shared @tile
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
    // THROUGH_A_VARIABLE: [[FILE]]:[[#@LINE+7]]:{{[0-9]+}}: llvm.store: thread (0, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which nobody had written when llvm.load at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte 0 of shared @tile
    %v = llvm.load %tile : !llvm.ptr<3> -> i32
    memref.store %one, %mine[%c0] : memref<4xi32>
    memref.store %v, %mine[%i] : memref<4xi32>
    %first = memref.load %mine[%t] : memref<4xi32>
    %second = memref.load %mine[%c1] : memref<4xi32>
    memref.store %first, %out[%c0] : !out
    memref.store %second, %out[%c0] : !out
    gpu.return
  }

  gpu.func @packed_pair(%out: !out) kernel {
    %c0 = arith.constant 0 : index
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    // PACKED_PAIR: [[FILE]]:[[#@LINE+8]]:{{[0-9]+}}: llvm.store: thread (0, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which nobody had written when llvm.load at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte 0 of shared @tile
    %v = llvm.load %tile : !llvm.ptr<3> -> f32
    %f = arith.constant 1.0 : f32
    %packed = nvvm.convert.f32x2.to.f16x2 %v, %f {rnd = #nvvm.fp_rnd_mode<rn>} : vector<2xf16>
    %bits = llvm.bitcast %packed : vector<2xf16> to i32
    %low = arith.constant 0xffff : i32
    %lower = arith.andi %bits, %low : i32
    memref.store %lower, %out[%c0] : !out
    memref.store %bits, %out[%c0] : !out
    gpu.return
  }

  gpu.func @unpacked_pair(%out: !out) kernel {
    %c0 = arith.constant 0 : index
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %byte = llvm.mlir.constant(7 : i8) : i8
    llvm.store %byte, %tile : i8, !llvm.ptr<3>
    // UNPACKED_PAIR: [[FILE]]:[[#@LINE+8]]:{{[0-9]+}}: llvm.store: thread (0, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which nobody had written when llvm.load at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte 1 of shared @tile
    %v = llvm.load %tile : !llvm.ptr<3> -> vector<2xi8>
    %pair = nvvm.convert.f8x2.to.f16x2 %v : vector<2xi8> (f8E4M3FN) -> vector<2xf16>
    %first = vector.extract %pair[0] : f16 from vector<2xf16>
    %second = vector.extract %pair[1] : f16 from vector<2xf16>
    %first_i32 = arith.fptosi %first : f16 to i32
    %second_i32 = arith.fptosi %second : f16 to i32
    memref.store %first_i32, %out[%c0] : !out
    memref.store %second_i32, %out[%c0] : !out
    gpu.return
  }

  gpu.func @shuffle(%out: !out) kernel {
    %clamp = arith.constant 31 : i32
    %all = arith.constant -1 : i32
    %one = arith.constant 1 : i32
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %t = gpu.thread_id x
    %l = arith.index_cast %t : index to i32
    %of_lane = llvm.getelementptr %tile[%l] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    // SHUFFLE: [[FILE]]:[[#@LINE+3]]:{{[0-9]+}}: llvm.store: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which nobody had written when llvm.load at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte 4 of shared @tile
    %v = llvm.load %of_lane : !llvm.ptr<3> -> i32
    %got = nvvm.shfl.sync idx %all, %v, %one, %clamp : i32 -> i32
    memref.store %got, %out[%t] : !out
    gpu.return
  }

  gpu.func @vote(%out: !out) kernel {
    %all = arith.constant -1 : i32
    %one = arith.constant 1 : i32
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %t = gpu.thread_id x
    %l = arith.index_cast %t : index to i32
    %of_lane = llvm.getelementptr %tile[%l] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    // VOTE: [[FILE]]:[[#@LINE+4]]:{{[0-9]+}}: llvm.store: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which nobody had written when llvm.load at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte {{[0-9]+}} of shared @tile
    %v = llvm.load %of_lane : !llvm.ptr<3> -> i32
    %is = arith.cmpi eq, %v, %one : i32
    %votes = nvvm.vote.sync ballot %all, %is -> i32
    memref.store %votes, %out[%t] : !out
    gpu.return
  }

  gpu.func @reduction(%out: !out) kernel {
    %all = arith.constant -1 : i32
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %t = gpu.thread_id x
    %l = arith.index_cast %t : index to i32
    %of_lane = llvm.getelementptr %tile[%l] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    // REDUCTION: [[FILE]]:[[#@LINE+3]]:{{[0-9]+}}: llvm.store: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which nobody had written when llvm.load at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte {{[0-9]+}} of shared @tile
    %v = llvm.load %of_lane : !llvm.ptr<3> -> i32
    %sum = nvvm.redux.sync add %v, %all : i32 -> i32
    memref.store %sum, %out[%t] : !out
    gpu.return
  }

  gpu.func @matrix(%out: !out) kernel {
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %t = gpu.thread_id x
    %l = arith.index_cast %t : index to i32
    %row = llvm.getelementptr %tile[%l] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, !llvm.array<16 x i8>
    // MATRIX: [[FILE]]:[[#@LINE+3]]:{{[0-9]+}}: llvm.store: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which nobody had written when nvvm.ldmatrix at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte {{[0-9]+}} of shared @tile
    %a = nvvm.ldmatrix %row {num = 4 : i32, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : (!llvm.ptr<3>) -> !four
    %a0 = llvm.extractvalue %a[0] : !four
    memref.store %a0, %out[%t] : !out
    gpu.return
  }

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
    // PRODUCT_OF_MATRICES: [[FILE]]:[[#@LINE+11]]:{{[0-9]+}}: llvm.store: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which nobody had written when nvvm.ldmatrix at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte {{[0-9]+}} of shared @tile
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

  gpu.func @stored_matrix(%out: !out) kernel {
    %all = arith.constant -1 : i32
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %t = gpu.thread_id x
    %l = arith.index_cast %t : index to i32
    %other = llvm.mlir.addressof @other : !llvm.ptr<3>
    %row = llvm.getelementptr %tile[%l] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, !llvm.array<16 x i8>
    %to = llvm.getelementptr %other[%l] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, !llvm.array<16 x i8>
    // STORED_MATRIX: [[FILE]]:[[#@LINE+5]]:{{[0-9]+}}: llvm.store: thread ({{[0-9]+}}, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which nobody had written when nvvm.ldmatrix at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte {{[0-9]+}} of shared @tile
    %a = nvvm.ldmatrix %row {num = 1 : i32, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : (!llvm.ptr<3>) -> i32
    nvvm.stmatrix %to, %a {layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : !llvm.ptr<3>, i32
    nvvm.bar.warp.sync %all : i32
    %word = llvm.load %other : !llvm.ptr<3> -> i32
    memref.store %word, %out[%t] : !out
    gpu.return
  }

  gpu.func @printed(%out: !out) kernel {
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    // PRINTED: [[FILE]]:[[#@LINE+2]]:{{[0-9]+}}: llvm.store: thread (0, 0, 0) of block (0, 0, 0) stores to a variable whose address is passed on a value that depends on bytes which nobody had written when llvm.load at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte 0 of shared @tile
    %v = llvm.load %tile : !llvm.ptr<3> -> i32
    gpu.printf "%d", %v : i32
    gpu.return
  }

  gpu.func @asserted(%out: !out) kernel {
    %one = arith.constant 1 : i32
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    // ASSERTED: [[FILE]]:[[#@LINE+3]]:{{[0-9]+}}: llvm.cond_br: thread (0, 0, 0) of block (0, 0, 0) branches on a value that depends on bytes which nobody had written when llvm.load at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte 0 of shared @tile
    %v = llvm.load %tile : !llvm.ptr<3> -> i32
    %is = arith.cmpi eq, %v, %one : i32
    cf.assert %is, "is one"
    gpu.return
  }

  gpu.func @divisor(%out: !out) kernel {
    %c0 = arith.constant 0 : index
    %one = arith.constant 1 : i32
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    // DIVISOR: [[FILE]]:[[#@LINE+2]]:{{[0-9]+}}: llvm.cond_br: thread (0, 0, 0) of block (0, 0, 0) branches on a value that depends on bytes which nobody had written when llvm.load at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte 0 of shared @tile
    %v = llvm.load %tile : !llvm.ptr<3> -> i32
    %q = arith.divui %one, %v : i32
    memref.store %q, %out[%c0] : !out
    gpu.return
  }

  gpu.func @bulk_copy_out(%out: !out) kernel {
    %index = memref.extract_aligned_pointer_as_index %out : !out -> index
    %address = arith.index_cast %index : index to i64
    %g = llvm.inttoptr %address : i64 to !llvm.ptr<1>
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %bytes = arith.constant 64 : i32
    %word = llvm.mlir.constant(1 : i32) : i32
    llvm.store %word, %tile : i32, !llvm.ptr<3>
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async>}
    // BULK_COPY_OUT: [[FILE]]:[[#@LINE+1]]:5: nvvm.cp.async.bulk.global.shared.cta: thread (0, 0, 0) of block (0, 0, 0) issues a copy that reads 64 bytes at byte 0 of shared @tile, which nobody has written; the first of these bytes is byte 4 of shared @tile
    nvvm.cp.async.bulk.global.shared.cta %g, %tile, %bytes : !llvm.ptr<1>, !llvm.ptr<3>
    nvvm.cp.async.bulk.commit.group
    nvvm.cp.async.bulk.wait_group 0
    gpu.return
  }

  gpu.func @bulk_copy_of_what_depends_on_it(%out: !out) kernel {
    %index = memref.extract_aligned_pointer_as_index %out : !out -> index
    %address = arith.index_cast %index : index to i64
    %g = llvm.inttoptr %address : i64 to !llvm.ptr<1>
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %bytes = arith.constant 16 : i32
    %other = llvm.mlir.addressof @other : !llvm.ptr<3>
    %v = llvm.load %tile {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
    llvm.store %v, %other {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async>}
    // BULK_COPY_OF_WHAT_DEPENDS_ON_IT: [[FILE]]:[[#@LINE+1]]:5: nvvm.cp.async.bulk.global.shared.cta: thread (0, 0, 0) of block (0, 0, 0) issues a copy that reads 16 bytes at byte 0 of shared @other, which hold a value that depends on bytes which nobody had written when llvm.load at [[FILE]]:[[#@LINE-3]]:10 read them; the first is byte 0 of shared @tile
    nvvm.cp.async.bulk.global.shared.cta %g, %other, %bytes : !llvm.ptr<1>, !llvm.ptr<3>
    nvvm.cp.async.bulk.commit.group
    nvvm.cp.async.bulk.wait_group 0
    gpu.return
  }

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
    // COPIED_BY_A_THREAD: [[FILE]]:[[#@LINE+1]]:5: llvm.store: thread (0, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which nobody had written when nvvm.cp.async.shared.global at [[FILE]]:[[#@LINE-7]]:5 read them; the first is byte 0 of an allocation of 256 bytes
    memref.store %last, %out[%c3] : !out
    gpu.return
  }

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
    // COPIED_IN_BULK: [[FILE]]:[[#@LINE+1]]:5: llvm.store: thread (0, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which nobody had written when nvvm.cp.async.bulk.shared.cluster.global at [[FILE]]:[[#@LINE-4]]:5 read them; the first is byte 0 of an allocation of 256 bytes
    memref.store %v, %out[%c0] : !out
    gpu.return
  }

  // It calls itself: not all calls of it go away.
  func.func private @add(%n: i32, %to: i32) -> i32 {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %is_zero = arith.cmpi eq, %n, %zero : i32
    %count = scf.if %is_zero -> i32 {
      scf.yield %to : i32
    } else {
      %rest = arith.subi %n, %one : i32
      // PASSED_TO_A_FUNCTION: [[FILE]]:[[#@LINE+1]]:16: llvm.call: thread (0, 0, 0) of block (0, 0, 0) passes to a function a value that depends on bytes which nobody had written when llvm.load at [[FILE]]:[[#@LINE+11]]:10 read them; the first is byte 0 of shared @tile
      %below = func.call @add(%rest, %to) : (i32, i32) -> i32
      %all = arith.addi %below, %one : i32
      scf.yield %all : i32
    }
    return %count : i32
  }

  gpu.func @passed_to_a_function(%out: !out) kernel {
    %c0 = arith.constant 0 : index
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %v = llvm.load %tile : !llvm.ptr<3> -> i32
    %three = arith.constant 3 : i32
    %count = func.call @add(%three, %v) : (i32, i32) -> i32
    memref.store %count, %out[%c0] : !out
    gpu.return
  }
}

func.func @address() {
  %c1 = arith.constant 1 : index
  %out = gpu.alloc() : !out
  gpu.launch_func @kernels::@address blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%out : !out)
  return
}

func.func @store() {
  %c1 = arith.constant 1 : index
  %out = gpu.alloc() : !out
  gpu.launch_func @kernels::@store blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%out : !out)
  return
}

func.func @arithmetic() {
  %c1 = arith.constant 1 : index
  %out = gpu.alloc() : !out
  gpu.launch_func @kernels::@arithmetic blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%out : !out)
  return
}

func.func @lane_of_a_vector() {
  %c1 = arith.constant 1 : index
  %out = gpu.alloc() : !out
  gpu.launch_func @kernels::@lane_of_a_vector blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%out : !out)
  return
}

func.func @shuffled_lanes() {
  %c1 = arith.constant 1 : index
  %out = gpu.alloc() : !out
  gpu.launch_func @kernels::@shuffled_lanes blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%out : !out)
  return
}

func.func @inserted_lane() {
  %c1 = arith.constant 1 : index
  %out = gpu.alloc() : !out
  gpu.launch_func @kernels::@inserted_lane blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%out : !out)
  return
}

func.func @half_of_a_word() {
  %c1 = arith.constant 1 : index
  %out = gpu.alloc() : !out
  gpu.launch_func @kernels::@half_of_a_word blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%out : !out)
  return
}

func.func @shifted_bits() {
  %c1 = arith.constant 1 : index
  %out = gpu.alloc() : !out
  gpu.launch_func @kernels::@shifted_bits blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%out : !out)
  return
}

func.func @product_with_zero() {
  %c1 = arith.constant 1 : index
  %out = gpu.alloc() : !out
  gpu.launch_func @kernels::@product_with_zero blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%out : !out)
  return
}

func.func @chosen_arm() {
  %c1 = arith.constant 1 : index
  %out = gpu.alloc() : !out
  gpu.launch_func @kernels::@chosen_arm blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%out : !out)
  return
}

func.func @condition_of_a_select() {
  %c1 = arith.constant 1 : index
  %out = gpu.alloc() : !out
  gpu.launch_func @kernels::@condition_of_a_select blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%out : !out)
  return
}

func.func @switch_on_it() {
  %c1 = arith.constant 1 : index
  %out = gpu.alloc() : !out
  gpu.launch_func @kernels::@switch_on_it blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%out : !out)
  return
}

func.func @carried_by_a_loop() {
  %c1 = arith.constant 1 : index
  %out = gpu.alloc() : !out
  gpu.launch_func @kernels::@carried_by_a_loop blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%out : !out)
  return
}

func.func @through_shared_memory() {
  %c1 = arith.constant 1 : index
  %out = gpu.alloc() : !out
  gpu.launch_func @kernels::@through_shared_memory blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%out : !out)
  return
}

func.func @through_a_variable() {
  %c1 = arith.constant 1 : index
  %out = gpu.alloc() : !out
  gpu.launch_func @kernels::@through_a_variable blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%out : !out)
  return
}

func.func @packed_pair() {
  %c1 = arith.constant 1 : index
  %out = gpu.alloc() : !out
  gpu.launch_func @kernels::@packed_pair blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%out : !out)
  return
}

func.func @unpacked_pair() {
  %c1 = arith.constant 1 : index
  %out = gpu.alloc() : !out
  gpu.launch_func @kernels::@unpacked_pair blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%out : !out)
  return
}

func.func @shuffle() {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %out = gpu.alloc() : !out
  gpu.launch_func @kernels::@shuffle blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%out : !out)
  return
}

func.func @vote() {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %out = gpu.alloc() : !out
  gpu.launch_func @kernels::@vote blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%out : !out)
  return
}

func.func @reduction() {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %out = gpu.alloc() : !out
  gpu.launch_func @kernels::@reduction blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%out : !out)
  return
}

func.func @matrix() {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %out = gpu.alloc() : !out
  gpu.launch_func @kernels::@matrix blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%out : !out)
  return
}

func.func @product_of_matrices() {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %out = gpu.alloc() : !out
  gpu.launch_func @kernels::@product_of_matrices blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%out : !out)
  return
}

func.func @stored_matrix() {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %out = gpu.alloc() : !out
  gpu.launch_func @kernels::@stored_matrix blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%out : !out)
  return
}

func.func @printed() {
  %c1 = arith.constant 1 : index
  %out = gpu.alloc() : !out
  gpu.launch_func @kernels::@printed blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%out : !out)
  return
}

func.func @asserted() {
  %c1 = arith.constant 1 : index
  %out = gpu.alloc() : !out
  gpu.launch_func @kernels::@asserted blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%out : !out)
  return
}

func.func @divisor() {
  %c1 = arith.constant 1 : index
  %out = gpu.alloc() : !out
  gpu.launch_func @kernels::@divisor blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%out : !out)
  return
}

func.func @bulk_copy_out() {
  %c1 = arith.constant 1 : index
  %out = gpu.alloc() : !out
  gpu.launch_func @kernels::@bulk_copy_out blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%out : !out)
  return
}

func.func @bulk_copy_of_what_depends_on_it() {
  %c1 = arith.constant 1 : index
  %out = gpu.alloc() : !out
  gpu.launch_func @kernels::@bulk_copy_of_what_depends_on_it blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%out : !out)
  return
}

func.func @copied_by_a_thread() {
  %c1 = arith.constant 1 : index
  %out = gpu.alloc() : !out
  gpu.launch_func @kernels::@copied_by_a_thread blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%out : !out)
  return
}

func.func @copied_in_bulk() {
  %c1 = arith.constant 1 : index
  %out = gpu.alloc() : !out
  gpu.launch_func @kernels::@copied_in_bulk blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%out : !out)
  return
}

func.func @passed_to_a_function() {
  %c1 = arith.constant 1 : index
  %out = gpu.alloc() : !out
  gpu.launch_func @kernels::@passed_to_a_function blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%out : !out)
  return
}

}
