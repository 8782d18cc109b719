// RUN: kvcache-opt %s --kvcache-narrow-integers --canonicalize --split-input-file | FileCheck %s
// RUN: kvcache-opt %s --kvcache-narrow-integers --split-input-file --remarks-filter='kvcache-.*' -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK: [Passed] integers | Category:kvcache-narrow-integers | Count={{[1-9].*}}, Remark="operations narrowed or folded"

// A page's row is computed in 32 bits where the ranges of its parts allow it.

// CHECK-LABEL: gpu.func @fits(
// CHECK-DAG:     %[[T:.*]] = gpu.thread_id  x
// CHECK-DAG:     %[[C8:.*]] = arith.constant 8 : i32
// CHECK:         %[[NARROW:.*]] = arith.index_castui %[[T]] : index to i32
// CHECK:         %[[D:.*]] = arith.muli %[[NARROW]], %[[C8]] : i32
// CHECK:         %[[WIDE:.*]] = arith.index_castui %[[D]] : i32 to index
// CHECK:         memref.store %{{.*}}, %{{.*}}[%[[WIDE]]]
gpu.module @m {
  gpu.func @fits(%out: memref<?xf32>, %x: f32) kernel
      attributes {known_block_size = array<i32: 64, 1, 1>} {
    %c8 = arith.constant 8 : index
    %t = gpu.thread_id x
    %d = arith.muli %t, %c8 : index
    memref.store %x, %out[%d] : memref<?xf32>
    gpu.return
  }
}

// -----

// What nothing bounds stays as wide as it is.

// CHECK-LABEL: gpu.func @may_not_fit(
// CHECK-NOT:     index_cast
// CHECK:         arith.muli {{.*}} : index
// CHECK-NOT:     index_cast
// CHECK:         gpu.return
gpu.module @m {
  gpu.func @may_not_fit(%out: memref<?xf32>, %x: f32, %n: index) kernel {
    %c8 = arith.constant 8 : index
    %d = arith.muli %n, %c8 : index
    memref.store %x, %out[%d] : memref<?xf32>
    gpu.return
  }
}

// -----

// What can be but one number is that number, a remainder of what is less than
// the divisor is the dividend, and what follows from them is found as well.

// CHECK-LABEL: gpu.func @known(
// CHECK-DAG:     %[[TRUE:.*]] = arith.constant true
// CHECK-DAG:     %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG:     %[[T:.*]] = gpu.thread_id  x
// CHECK-NOT:     arith.rem
// CHECK:         memref.store %[[TRUE]], %{{.*}}[%[[T]]]
// CHECK:         memref.store %[[TRUE]], %{{.*}}[%[[C0]]]
gpu.module @m {
  gpu.func @known(%out: memref<?xi1>) kernel
      attributes {known_block_size = array<i32: 64, 1, 1>} {
    %c64 = arith.constant 64 : index
    %t = gpu.thread_id x
    %y = gpu.thread_id y
    %row = arith.remui %t, %c64 : index
    %inside = arith.cmpi ult, %row, %c64 : index
    memref.store %inside, %out[%row] : memref<?xi1>
    memref.store %inside, %out[%y] : memref<?xi1>
    gpu.return
  }
}

// -----

// A comparison is as narrow as its operands.

// CHECK-LABEL: gpu.func @compare(
// CHECK:         arith.cmpi ult, {{.*}} : i32
gpu.module @m {
  gpu.func @compare(%lengths: memref<?xi32>, %out: memref<?xi1>) kernel
      attributes {known_block_size = array<i32: 64, 1, 1>} {
    %c0 = arith.constant 0 : index
    %t = gpu.thread_id x
    %n32 = memref.load %lengths[%c0] : memref<?xi32>
    %n = arith.index_castui %n32 : i32 to index
    %inside = arith.cmpi ult, %t, %n : index
    memref.store %inside, %out[%t] : memref<?xi1>
    gpu.return
  }
}

// -----

// A length takes all 32 bits: what compares, divides or shifts it has to be
// unsigned before it is narrow.

// CHECK-LABEL: gpu.func @above_2_to_the_31(
// CHECK-DAG:     %[[A:.*]] = memref.load %{{.*}}[%{{.*}}] : memref<?xi32>
// CHECK-DAG:     %[[B:.*]] = memref.load %{{.*}}[%{{.*}}] : memref<?xi32>
// CHECK-DAG:     arith.maxui %[[A]], %[[B]] : i32
// CHECK-DAG:     arith.minui %[[A]], %[[B]] : i32
// CHECK-DAG:     arith.shrui %[[A]], %{{.*}} : i32
// CHECK-DAG:     arith.cmpi ult, %[[A]], %[[B]] : i32
// CHECK:         gpu.return
gpu.module @m {
  gpu.func @above_2_to_the_31(%lengths: memref<?xi32>, %out: memref<?xindex>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %a32 = memref.load %lengths[%c0] : memref<?xi32>
    %b32 = memref.load %lengths[%c1] : memref<?xi32>
    %a = arith.index_castui %a32 : i32 to index
    %b = arith.index_castui %b32 : i32 to index
    %max = arith.maxsi %a, %b : index
    %min = arith.minsi %a, %b : index
    %half = arith.shrsi %a, %c1 : index
    %less = arith.cmpi slt, %a, %b : index
    %either = arith.select %less, %max, %half : index
    memref.store %either, %out[%c0] : memref<?xindex>
    memref.store %min, %out[%c1] : memref<?xindex>
    gpu.return
  }
}

// -----

// Ranges don't pass through calls: that of `%n` would grow by one number for
// each of the calls that there may be.

// CHECK-LABEL: func.func private @calls_itself(
// CHECK:         arith.subi %{{.*}}, %{{.*}} : i32
gpu.module @recursion {
  func.func private @calls_itself(%n: i32) -> i32 {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %is_zero = arith.cmpi eq, %n, %zero : i32
    %count = scf.if %is_zero -> i32 {
      scf.yield %one : i32
    } else {
      %rest = arith.subi %n, %one : i32
      %below = func.call @calls_itself(%rest) : (i32) -> i32
      scf.yield %below : i32
    }
    return %count : i32
  }

  gpu.func @kernel(%out: memref<?xi32>) kernel {
    %c0 = arith.constant 0 : index
    %three = arith.constant 3 : i32
    %count = func.call @calls_itself(%three) : (i32) -> i32
    memref.store %count, %out[%c0] : memref<?xi32>
    gpu.return
  }
}
