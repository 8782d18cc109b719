// RUN: kvcache-opt %s --kvcache-narrow-floats=chip=sm_80 --split-input-file | FileCheck %s

// Chips without `cvt` move bytes and work on two lanes at a time.

// Exponent and mantissa move by one bit, times 2^8; times 141.125 the NaN alone
// is infinite.

// CHECK-LABEL: func.func @e4m3_to_f16(
// CHECK-SAME:      %[[X:.*]]: vector<4xf8E4M3FN>)
// CHECK-DAG:     %[[LOW:.*]] = arith.constant 20800 : i32
// CHECK-DAG:     %[[HIGH:.*]] = arith.constant 29538 : i32
// CHECK-DAG:     %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK-DAG:     %[[SIGNS:.*]] = arith.constant dense<-2147450880> : vector<2xi32>
// CHECK-DAG:     %[[SHIFT:.*]] = arith.constant dense<1> : vector<2xi32>
// CHECK-DAG:     %[[MAGNITUDES:.*]] = arith.constant dense<1065369472> : vector<2xi32>
// CHECK-DAG:     %[[REBIAS:.*]] = arith.constant dense<2.560000e+02> : vector<4xf16>
// CHECK-DAG:     %[[OVERFLOW:.*]] = arith.constant dense<1.411250e+02> : vector<4xf16>
// CHECK-DAG:     %[[MINUS_ZERO:.*]] = arith.constant dense<-0.000000e+00> : vector<4xf16>
// CHECK-DAG:     %[[NOTHING:.*]] = arith.constant dense<0.000000e+00> : vector<4xf16>
// CHECK:         %[[WORDS:.*]] = vector.bitcast %{{.*}} : vector<4xi8> to vector<1xi32>
// CHECK:         %[[WORD:.*]] = vector.extract %[[WORDS]][0]
// CHECK:         %[[LANES01:.*]] = nvvm.prmt <default> %[[LOW]], %[[ZERO]], %[[WORD]]
// CHECK:         %[[LANES23:.*]] = nvvm.prmt <default> %[[HIGH]], %[[ZERO]], %[[WORD]]
// CHECK:         %[[PLACED:.*]] = vector.from_elements %[[LANES01]], %[[LANES23]] : vector<2xi32>
// CHECK:         %[[SIGN:.*]] = arith.andi %[[PLACED]], %[[SIGNS]]
// CHECK:         %[[SHIFTED:.*]] = arith.shrui %[[PLACED]], %[[SHIFT]]
// CHECK:         %[[MAGNITUDE:.*]] = arith.andi %[[SHIFTED]], %[[MAGNITUDES]]
// CHECK:         %[[BITS:.*]] = arith.ori %[[SIGN]], %[[MAGNITUDE]]
// CHECK:         %[[LANES:.*]] = vector.bitcast %[[BITS]] : vector<2xi32> to vector<4xf16>
// CHECK:         %[[NUMBER:.*]] = llvm.intr.fma(%[[LANES]], %[[REBIAS]], %[[MINUS_ZERO]])
// CHECK:         %[[INFINITE:.*]] = llvm.intr.fma(%[[NUMBER]], %[[OVERFLOW]], %[[MINUS_ZERO]])
// CHECK:         %[[RESULT:.*]] = llvm.intr.fma(%[[INFINITE]], %[[NOTHING]], %[[NUMBER]])
// CHECK:         return %[[RESULT]]
func.func @e4m3_to_f16(%x: vector<4xf8E4M3FN>) -> vector<4xf16> {
  %0 = arith.extf %x : vector<4xf8E4M3FN> to vector<4xf16>
  return %0 : vector<4xf16>
}

// -----

// CHECK-LABEL: func.func @e4m3_to_bf16(
// CHECK-DAG:     arith.constant dense<4> : vector<2xi32>
// CHECK-DAG:     arith.constant dense<1.329230e+36> : vector<4xbf16>
// CHECK-COUNT-3: llvm.intr.fma(%{{.*}}) : (vector<4xbf16>, vector<4xbf16>, vector<4xbf16>) -> vector<4xbf16>
func.func @e4m3_to_bf16(%x: vector<4xf8E4M3FN>) -> vector<4xbf16> {
  %0 = arith.extf %x : vector<4xf8E4M3FN> to vector<4xbf16>
  return %0 : vector<4xbf16>
}

// -----

// The upper half of an f16.

// CHECK-LABEL: func.func @e5m2_to_f32(
// CHECK-COUNT-2: nvvm.prmt
// CHECK:         %[[HALVES:.*]] = vector.bitcast %{{.*}} : vector<2xi32> to vector<4xf16>
// CHECK:         %[[RESULT:.*]] = arith.extf %[[HALVES]] : vector<4xf16> to vector<4xf32>
// CHECK:         return %[[RESULT]]
func.func @e5m2_to_f32(%x: vector<4xf8E5M2>) -> vector<4xf32> {
  %0 = arith.extf %x : vector<4xf8E5M2> to vector<4xf32>
  return %0 : vector<4xf32>
}

// -----

// The table holds the upper bytes of 0, 0.5, 1, 1.5, 2, 3, 4 and 6.

// CHECK-LABEL: func.func @f4_to_f16(
// CHECK-SAME:      %[[X:.*]]: vector<4xi8>)
// CHECK-DAG:     %[[TABLE_LOW:.*]] = arith.constant 1044133888 : i32
// CHECK-DAG:     %[[TABLE_HIGH:.*]] = arith.constant 1178878528 : i32
// CHECK-DAG:     %[[ONES:.*]] = arith.constant -2139062144 : i32
// CHECK-DAG:     %[[INDICES:.*]] = arith.constant 30583 : i32
// CHECK-DAG:     %[[ONE:.*]] = arith.constant 1 : i32
// CHECK:         %[[WORDS:.*]] = vector.bitcast %[[X]] : vector<4xi8> to vector<1xi32>
// CHECK:         %[[WORD:.*]] = vector.extract %[[WORDS]][0]
// CHECK:         %[[INDEX:.*]] = arith.andi %[[WORD]], %[[INDICES]]
// CHECK:         %[[MASKS:.*]] = nvvm.prmt <default> %[[WORD]], %[[ONES]], %[[ONES]]
// CHECK:         %[[SHIFTED:.*]] = arith.shli %[[MASKS]], %[[ONE]]
// CHECK:         %[[SIGN:.*]] = arith.andi %[[SHIFTED]], %[[ONES]]
// CHECK:         %[[MAGNITUDE:.*]] = nvvm.prmt <default> %[[INDEX]], %[[TABLE_LOW]], %[[TABLE_HIGH]]
// CHECK:         arith.ori %[[MAGNITUDE]], %[[SIGN]]
func.func @f4_to_f16(%x: vector<4xi8>) -> vector<8xf16> {
  %0 = vector.bitcast %x : vector<4xi8> to vector<8xf4E2M1FN>
  %1 = arith.extf %0 : vector<8xf4E2M1FN> to vector<8xf16>
  return %1 : vector<8xf16>
}

// -----

// Integer arithmetic, from f32.

// CHECK-LABEL: func.func @f16_to_e4m3(
// CHECK-SAME:      %[[X:.*]]: f16)
// CHECK:         %[[SINGLE:.*]] = arith.extf %[[X]] : f16 to f32
// CHECK:         arith.bitcast %[[SINGLE]] : f32 to i32
// CHECK-NOT:     arith.truncf
// CHECK:         return
func.func @f16_to_e4m3(%x: f16) -> f8E4M3FN {
  %0 = arith.truncf %x : f16 to f8E4M3FN
  return %0 : f8E4M3FN
}
