// Reports of uses of values that depend on uninitialized bytes,
// after arithmetic, moves of bits and branches.

// RUN: %add_launches %s | kvcache-opt --kvcache-to-emulator="chip=sm_100a" -o %t.mlir
// RUN: %emulator_tests/kvcache-run-cases %t.mlir --shared-libs=%kvcache_emulator,%kvcache_runtime | FileCheck %s -DFILE="<stdin>"

!out = memref<64xi32>

module attributes {gpu.container_module} {

gpu.module @kernels {
  llvm.mlir.global internal @tile() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<512 x i8>

  gpu.func @arithmetic(%out: !out) kernel {
    %c0 = arith.constant 0 : index
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    // CHECK-LABEL: run @arithmetic:
    // CHECK: [[FILE]]:[[#@LINE+6]]:{{[0-9]+}}: llvm.store: thread (0, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which were uninitialized when llvm.load at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte 0 of shared @tile
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
    // CHECK-LABEL: run @lane_of_a_vector:
    // CHECK: [[FILE]]:[[#@LINE+6]]:{{[0-9]+}}: llvm.store: thread (0, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which were uninitialized when llvm.load at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte 4 of shared @tile
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
    // CHECK-LABEL: run @shuffled_lanes:
    // CHECK: [[FILE]]:[[#@LINE+6]]:{{[0-9]+}}: llvm.store: thread (0, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which were uninitialized when llvm.load at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte 4 of shared @tile
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
    // CHECK-LABEL: run @inserted_lane:
    // CHECK: [[FILE]]:[[#@LINE+6]]:{{[0-9]+}}: llvm.store: thread (0, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which were uninitialized when llvm.load at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte 0 of shared @tile
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
    // CHECK-LABEL: run @half_of_a_word:
    // CHECK: [[FILE]]:[[#@LINE+8]]:{{[0-9]+}}: llvm.store: thread (0, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which were uninitialized when llvm.load at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte 2 of shared @tile
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
    // CHECK-LABEL: run @shifted_bits:
    // CHECK: [[FILE]]:[[#@LINE+6]]:{{[0-9]+}}: llvm.store: thread (0, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which were uninitialized when llvm.load at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte 2 of shared @tile
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
    // CHECK-LABEL: run @product_with_zero:
    // CHECK: [[FILE]]:[[#@LINE+5]]:{{[0-9]+}}: llvm.store: thread (0, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which were uninitialized when llvm.load at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte 0 of shared @tile
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
    // CHECK-LABEL: run @chosen_arm:
    // CHECK: [[FILE]]:[[#@LINE+4]]:{{[0-9]+}}: llvm.store: thread (0, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which were uninitialized when llvm.load at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte 0 of shared @tile
    %v = llvm.load %tile : !llvm.ptr<3> -> i32
    %is = arith.cmpi eq, %t, %c0 : index
    %chosen = arith.select %is, %v, %one : i32
    memref.store %chosen, %out[%c0] : !out
    gpu.return
  }

  gpu.func @carried_by_a_loop(%out: !out) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %one = arith.constant 1 : i32
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %c3 = arith.constant 3 : index
    // CHECK-LABEL: run @carried_by_a_loop:
    // CHECK: [[FILE]]:[[#@LINE+8]]:{{[0-9]+}}: llvm.store: thread (0, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which were uninitialized when llvm.load at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte 0 of shared @tile
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

  gpu.func @packed_pair(%out: !out) kernel {
    %c0 = arith.constant 0 : index
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    // CHECK-LABEL: run @packed_pair:
    // CHECK: [[FILE]]:[[#@LINE+8]]:{{[0-9]+}}: llvm.store: thread (0, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which were uninitialized when llvm.load at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte 0 of shared @tile
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
    // CHECK-LABEL: run @unpacked_pair:
    // CHECK: [[FILE]]:[[#@LINE+8]]:{{[0-9]+}}: llvm.store: thread (0, 0, 0) of block (0, 0, 0) stores to global memory a value that depends on bytes which were uninitialized when llvm.load at [[FILE]]:[[#@LINE+1]]:10 read them; the first is byte 1 of shared @tile
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
}

}
