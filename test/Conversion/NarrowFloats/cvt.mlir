// RUN: kvcache-opt %s --kvcache-narrow-floats | FileCheck %s
// RUN: kvcache-opt %s --kvcache-narrow-floats=chip=sm_80 | FileCheck %s

// A chip with `cvt` converts two lanes at a time.

gpu.module @sm_90a [#nvvm.target<chip = "sm_90a">] {
  // CHECK-LABEL: func.func @e4m3_to_f16(
  // CHECK-SAME:      %[[X:.*]]: vector<4xf8E4M3FN>)
  // CHECK:         %[[BYTES:.*]] = arith.bitcast %[[X]] : vector<4xf8E4M3FN> to vector<4xi8>
  // CHECK:         %[[PAIRS:.*]] = vector.bitcast %[[BYTES]] : vector<4xi8> to vector<2xi16>
  // CHECK:         %[[PAIR0:.*]] = vector.extract %[[PAIRS]][0]
  // CHECK:         %[[PAIR1:.*]] = vector.extract %[[PAIRS]][1]
  // CHECK:         %[[FROM0:.*]] = llvm.bitcast %[[PAIR0]] : i16 to vector<2xi8>
  // CHECK:         %[[TO0:.*]] = nvvm.convert.f8x2.to.f16x2 %[[FROM0]] : vector<2xi8>(f8E4M3FN) -> vector<2xf16>
  // CHECK:         %[[WORD0:.*]] = llvm.bitcast %[[TO0]] : vector<2xf16> to i32
  // CHECK:         %[[FROM1:.*]] = llvm.bitcast %[[PAIR1]] : i16 to vector<2xi8>
  // CHECK:         %[[TO1:.*]] = nvvm.convert.f8x2.to.f16x2 %[[FROM1]] : vector<2xi8>(f8E4M3FN) -> vector<2xf16>
  // CHECK:         %[[WORD1:.*]] = llvm.bitcast %[[TO1]] : vector<2xf16> to i32
  // CHECK:         %[[WORDS:.*]] = vector.from_elements %[[WORD0]], %[[WORD1]] : vector<2xi32>
  // CHECK:         %[[RESULT:.*]] = vector.bitcast %[[WORDS]] : vector<2xi32> to vector<4xf16>
  // CHECK:         return %[[RESULT]] : vector<4xf16>
  func.func @e4m3_to_f16(%x: vector<4xf8E4M3FN>) -> vector<4xf16> {
    %0 = arith.extf %x : vector<4xf8E4M3FN> to vector<4xf16>
    return %0 : vector<4xf16>
  }

  // bf16 holds the f16 exactly, but NVVM has no direct conversion.

  // CHECK-LABEL: func.func @e5m2_to_bf16(
  // CHECK:         nvvm.convert.f8x2.to.f16x2 %{{.*}} : vector<2xi8>(f8E5M2) -> vector<2xf16>
  // CHECK:         %[[HALVES:.*]] = vector.bitcast %{{.*}} : vector<1xi32> to vector<2xf16>
  // CHECK:         %[[SINGLES:.*]] = arith.extf %[[HALVES]] : vector<2xf16> to vector<2xf32>
  // CHECK:         %[[RESULT:.*]] = arith.truncf %[[SINGLES]] : vector<2xf32> to vector<2xbf16>
  // CHECK:         return %[[RESULT]]
  func.func @e5m2_to_bf16(%x: vector<2xf8E5M2>) -> vector<2xbf16> {
    %0 = arith.extf %x : vector<2xf8E5M2> to vector<2xbf16>
    return %0 : vector<2xbf16>
  }

  // A zero is the second lane.

  // CHECK-LABEL: func.func @scalar(
  // CHECK-SAME:      %[[X:.*]]: f8E4M3FN)
  // CHECK:         %[[ZEROS:.*]] = arith.constant dense<0> : vector<2xi8>
  // CHECK:         %[[BYTE:.*]] = arith.bitcast %[[X]] : f8E4M3FN to i8
  // CHECK:         %[[ONE:.*]] = vector.broadcast %[[BYTE]] : i8 to vector<1xi8>
  // CHECK:         vector.insert_strided_slice %[[ONE]], %[[ZEROS]] {offsets = [0], strides = [1]}
  // CHECK:         nvvm.convert.f8x2.to.f16x2
  // CHECK:         %[[LANE:.*]] = vector.extract %{{.*}}[0] : f16 from vector<2xf16>
  // CHECK:         %[[RESULT:.*]] = arith.extf %[[LANE]] : f16 to f32
  // CHECK:         return %[[RESULT]] : f32
  func.func @scalar(%x: f8E4M3FN) -> f32 {
    %0 = arith.extf %x : f8E4M3FN to f32
    return %0 : f32
  }

  // CHECK-LABEL: func.func @odd_vector(
  // CHECK-COUNT-2: nvvm.convert.f8x2.to.f16x2
  // CHECK:         vector.extract_strided_slice %{{.*}} {offsets = [0], sizes = [3], strides = [1]} : vector<4xf16> to vector<3xf16>
  func.func @odd_vector(%x: vector<3xf8E4M3FN>) -> vector<3xf16> {
    %0 = arith.extf %x : vector<3xf8E4M3FN> to vector<3xf16>
    return %0 : vector<3xf16>
  }

  // The first operand goes to the upper byte, where the odd lane is.

  // CHECK-LABEL: func.func @f32_to_e4m3(
  // CHECK-SAME:      %[[X:.*]]: vector<2xf32>)
  // CHECK:         %[[EVEN:.*]] = vector.extract %[[X]][0]
  // CHECK:         %[[ODD:.*]] = vector.extract %[[X]][1]
  // CHECK:         %[[PAIR:.*]] = nvvm.convert.f32x2.to.f8x2 %[[ODD]], %[[EVEN]] {rnd = #nvvm.fp_rnd_mode<rn>, sat = #nvvm.sat_mode<satfinite>} : i16(f8E4M3FN)
  // CHECK:         %[[PAIRS:.*]] = vector.from_elements %[[PAIR]] : vector<1xi16>
  // CHECK:         %[[BYTES:.*]] = vector.bitcast %[[PAIRS]] : vector<1xi16> to vector<2xi8>
  // CHECK:         %[[RESULT:.*]] = arith.bitcast %[[BYTES]] : vector<2xi8> to vector<2xf8E4M3FN>
  // CHECK:         return %[[RESULT]]
  func.func @f32_to_e4m3(%x: vector<2xf32>) -> vector<2xf8E4M3FN> {
    %0 = arith.truncf %x : vector<2xf32> to vector<2xf8E4M3FN>
    return %0 : vector<2xf8E4M3FN>
  }

  // CHECK-LABEL: func.func @f16_to_e5m2(
  // CHECK:         %[[LANES:.*]] = llvm.bitcast %{{.*}} : i32 to vector<2xf16>
  // CHECK:         nvvm.convert.f16x2.to.f8x2 %[[LANES]] : vector<2xf16> -> i16(f8E5M2)
  func.func @f16_to_e5m2(%x: vector<2xf16>) -> vector<2xf8E5M2> {
    %0 = arith.truncf %x : vector<2xf16> to vector<2xf8E5M2>
    return %0 : vector<2xf8E5M2>
  }

  // bf16 is the upper half of f32: a pair is extended in the register that it is
  // in. One number of three has none.

  // CHECK-LABEL: func.func @pairs_of_bf16(
  // CHECK-SAME:      %[[X:.*]]: vector<4xbf16>
  // CHECK-DAG:     %[[SHIFT:.*]] = arith.constant 16 : i32
  // CHECK-DAG:     %[[MASK:.*]] = arith.constant -65536 : i32
  // CHECK:         %[[PAIRS:.*]] = vector.bitcast %[[X]] : vector<4xbf16> to vector<2xi32>
  // CHECK-DAG:     %[[PAIR0:.*]] = vector.extract %[[PAIRS]][0]
  // CHECK-DAG:     %[[PAIR1:.*]] = vector.extract %[[PAIRS]][1]
  // CHECK-DAG:     %[[LANE0:.*]] = arith.shli %[[PAIR0]], %[[SHIFT]] : i32
  // CHECK-DAG:     %[[LANE1:.*]] = arith.andi %[[PAIR0]], %[[MASK]] : i32
  // CHECK-DAG:     %[[LANE2:.*]] = arith.shli %[[PAIR1]], %[[SHIFT]] : i32
  // CHECK-DAG:     %[[LANE3:.*]] = arith.andi %[[PAIR1]], %[[MASK]] : i32
  // CHECK:         %[[LANES:.*]] = vector.from_elements %[[LANE0]], %[[LANE1]], %[[LANE2]], %[[LANE3]] : vector<4xi32>
  // CHECK:         vector.bitcast %[[LANES]] : vector<4xi32> to vector<4xf32>
  func.func @pairs_of_bf16(%x: vector<4xbf16>) -> vector<4xf32> {
    %0 = arith.extf %x : vector<4xbf16> to vector<4xf32>
    return %0 : vector<4xf32>
  }

  // CHECK-LABEL: func.func @three_of_bf16(
  // CHECK:         arith.extf %{{.*}} : vector<3xbf16> to vector<3xf32>
  func.func @three_of_bf16(%x: vector<3xbf16>) -> vector<3xf32> {
    %0 = arith.extf %x : vector<3xbf16> to vector<3xf32>
    return %0 : vector<3xf32>
  }

  // CHECK-LABEL: func.func @bf16_to_e4m3(
  // CHECK:         arith.shli
  // CHECK:         nvvm.convert.f32x2.to.f8x2
  func.func @bf16_to_e4m3(%x: vector<2xbf16>) -> vector<2xf8E4M3FN> {
    %0 = arith.truncf %x : vector<2xbf16> to vector<2xf8E4M3FN>
    return %0 : vector<2xf8E4M3FN>
  }

  // Rounded to odd first, so that `cvt` rounds as if from f64.

  // CHECK-LABEL: func.func @f64_to_e4m3(
  // CHECK:         %[[NEAREST:.*]] = arith.truncf %{{.*}} : f64 to f32
  // CHECK:         %[[BACK:.*]] = arith.extf %[[NEAREST]] : f32 to f64
  // CHECK:         %[[INEXACT:.*]] = arith.cmpf one, %[[BACK]], %{{.*}} : f64
  // CHECK:         arith.select %[[INEXACT]]
  // CHECK:         nvvm.convert.f32x2.to.f8x2
  func.func @f64_to_e4m3(%x: f64) -> f8E4M3FN {
    %0 = arith.truncf %x : f64 to f8E4M3FN
    return %0 : f8E4M3FN
  }

  // CHECK-LABEL: func.func @other_shapes_and_roundings(
  // CHECK-NOT:     nvvm.convert
  // CHECK:         arith.truncf %{{.*}} toward_zero : f32 to f8E4M3FN
  // CHECK-NOT:     nvvm.convert
  func.func @other_shapes_and_roundings(%x: vector<2x4xf32>, %y: vector<[4]xf32>, %z: f32)
      -> (vector<2x4xf8E4M3FN>, vector<[4]xf8E4M3FN>, f8E4M3FN) {
    %0 = arith.truncf %x : vector<2x4xf32> to vector<2x4xf8E4M3FN>
    %1 = arith.truncf %y : vector<[4]xf32> to vector<[4]xf8E4M3FN>
    %2 = arith.truncf %z toward_zero : f32 to f8E4M3FN
    return %0, %1, %2 : vector<2x4xf8E4M3FN>, vector<[4]xf8E4M3FN>, f8E4M3FN
  }
}

gpu.module @sm_100a [#nvvm.target<chip = "sm_100a">] {
  // CHECK-LABEL: func.func @f4_to_f16(
  // CHECK-SAME:      %[[X:.*]]: vector<4xi8>)
  // CHECK-NOT:     f4E2M1FN>
  // CHECK:         %[[BYTE:.*]] = vector.extract %[[X]][0]
  // CHECK:         nvvm.convert.f4x2.to.f16x2 %[[BYTE]] : i8(f4E2M1FN) -> vector<2xf16>
  // CHECK-COUNT-3: nvvm.convert.f4x2.to.f16x2
  // CHECK-NOT:     nvvm.convert
  func.func @f4_to_f16(%x: vector<4xi8>) -> vector<8xf16> {
    %0 = vector.bitcast %x : vector<4xi8> to vector<8xf4E2M1FN>
    %1 = arith.extf %0 : vector<8xf4E2M1FN> to vector<8xf16>
    return %1 : vector<8xf16>
  }

  // CHECK-LABEL: func.func @f32_to_f4(
  // CHECK-SAME:      %[[X:.*]]: vector<2xf32>)
  // CHECK-NOT:     f4E2M1FN>
  // CHECK:         %[[EVEN:.*]] = vector.extract %[[X]][0]
  // CHECK:         %[[ODD:.*]] = vector.extract %[[X]][1]
  // CHECK:         %[[BYTE:.*]] = nvvm.convert.f32x2.to.f4x2 %[[ODD]], %[[EVEN]] : i8(f4E2M1FN)
  // CHECK:         %[[BYTES:.*]] = vector.from_elements %[[BYTE]] : vector<1xi8>
  // CHECK:         return %[[BYTES]] : vector<1xi8>
  func.func @f32_to_f4(%x: vector<2xf32>) -> vector<1xi8> {
    %0 = arith.truncf %x : vector<2xf32> to vector<2xf4E2M1FN>
    %1 = vector.bitcast %0 : vector<2xf4E2M1FN> to vector<1xi8>
    return %1 : vector<1xi8>
  }

  // CHECK-LABEL: func.func @odd_f4(
  // CHECK:         arith.bitcast %{{.*}} : vector<3xf4E2M1FN> to vector<3xi4>
  // CHECK:         vector.deinterleave
  // CHECK-COUNT-2: nvvm.convert.f4x2.to.f16x2
  // CHECK-COUNT-2: nvvm.convert.f32x2.to.f4x2
  // CHECK:         vector.interleave
  // CHECK:         arith.bitcast %{{.*}} : vector<3xi4> to vector<3xf4E2M1FN>
  func.func @odd_f4(%x: vector<3xf4E2M1FN>) -> (vector<3xf32>, vector<3xf4E2M1FN>) {
    %0 = arith.extf %x : vector<3xf4E2M1FN> to vector<3xf32>
    %1 = math.sqrt %0 : vector<3xf32>
    %2 = arith.truncf %1 : vector<3xf32> to vector<3xf4E2M1FN>
    return %0, %2 : vector<3xf32>, vector<3xf4E2M1FN>
  }

  // CHECK-LABEL: func.func @f6(
  // CHECK:         nvvm.convert.f6x2.to.f16x2 %{{.*}} : vector<2xi8>(f6E3M2FN) -> vector<2xf16>
  // CHECK:         nvvm.convert.f32x2.to.f6x2 %{{.*}}, %{{.*}} : i16(f6E2M3FN)
  func.func @f6(%x: f6E3M2FN, %y: f32) -> (f16, f6E2M3FN) {
    %0 = arith.extf %x : f6E3M2FN to f16
    %1 = arith.truncf %y : f32 to f6E2M3FN
    return %0, %1 : f16, f6E2M3FN
  }

  // CHECK-LABEL: func.func @e8m0_to_f32(
  // CHECK:         nvvm.convert.f8x2.to.bf16x2 %{{.*}} : vector<2xi8>(f8E8M0FNU) -> vector<2xbf16>
  // CHECK:         arith.extf %{{.*}} : bf16 to f32
  func.func @e8m0_to_f32(%x: f8E8M0FNU) -> f32 {
    %0 = arith.extf %x : f8E8M0FNU to f32
    return %0 : f32
  }

  // `cvt` ignores the sign.

  // CHECK-LABEL: func.func @f32_to_e8m0(
  // CHECK-NOT:     nvvm.convert
  // CHECK:         return
  func.func @f32_to_e8m0(%x: f32) -> f8E8M0FNU {
    %0 = arith.truncf %x upward : f32 to f8E8M0FNU
    return %0 : f8E8M0FNU
  }
}
