// RUN: kvcache-opt %s --convert-kvcache-to-memref --cse | FileCheck %s --implicit-check-not="{{!kvcache[.]|kvcache[.][a-z_]+ [%a-z]}}"

//===----------------------------------------------------------------------===//
// The product is in the type of the scale, and f32 for those of 8 bits
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func.func @scale_of_f32(
// CHECK-SAME:      %[[W:[^:]*]]: vector<16xf8E4M3FN>, %[[S:[^:]*]]: f32)
// CHECK-NEXT:    %[[VALUES:.*]] = arith.extf %[[W]] : vector<16xf8E4M3FN> to vector<16xf32>
// CHECK-NEXT:    %[[SCALES:.*]] = vector.broadcast %[[S]] : f32 to vector<16xf32>
// CHECK-NEXT:    %[[PRODUCT:.*]] = arith.mulf %[[VALUES]], %[[SCALES]] : vector<16xf32>
// CHECK-NEXT:    %[[RESULT:.*]] = arith.truncf %[[PRODUCT]] : vector<16xf32> to vector<16xbf16>
// CHECK-NEXT:    return %[[RESULT]]
func.func @scale_of_f32(%w: vector<16xf8E4M3FN>, %s: f32) -> vector<16xbf16> {
  %x = kvcache.dequantize %w, %s : vector<16xf8E4M3FN>, f32 -> vector<16xbf16>
  return %x : vector<16xbf16>
}

// CHECK-LABEL: func.func @scale_of_f16(
// CHECK-SAME:      %[[W:[^:]*]]: vector<16xf8E5M2>, %[[S:[^:]*]]: f16)
// CHECK-NEXT:    %[[VALUES:.*]] = arith.extf %[[W]] : vector<16xf8E5M2> to vector<16xf16>
// CHECK-NEXT:    %[[SCALES:.*]] = vector.broadcast %[[S]] : f16 to vector<16xf16>
// CHECK-NEXT:    %[[PRODUCT:.*]] = arith.mulf %[[VALUES]], %[[SCALES]] : vector<16xf16>
// CHECK-NEXT:    %[[RESULT:.*]] = arith.extf %[[PRODUCT]] : vector<16xf16> to vector<16xf32>
// CHECK-NEXT:    return %[[RESULT]]
func.func @scale_of_f16(%w: vector<16xf8E5M2>, %s: f16) -> vector<16xf32> {
  %x = kvcache.dequantize %w, %s : vector<16xf8E5M2>, f16 -> vector<16xf32>
  return %x : vector<16xf32>
}

// Between types of one width by f32.

// CHECK-LABEL: func.func @scale_of_bf16(
// CHECK:         arith.extf %{{.*}} : vector<16xf4E2M1FN> to vector<16xbf16>
// CHECK:         %[[PRODUCT:.*]] = arith.mulf %{{.*}} : vector<16xbf16>
// CHECK:         %[[WIDE:.*]] = arith.extf %[[PRODUCT]] : vector<16xbf16> to vector<16xf32>
// CHECK:         %[[RESULT:.*]] = arith.truncf %[[WIDE]] : vector<16xf32> to vector<16xf16>
// CHECK:         return %[[RESULT]]
func.func @scale_of_bf16(%w: vector<16xf4E2M1FN>, %s: bf16) -> vector<16xf16> {
  %x = kvcache.dequantize %w, %s : vector<16xf4E2M1FN>, bf16 -> vector<16xf16>
  return %x : vector<16xf16>
}

// CHECK-LABEL: func.func @scale_of_e8m0(
// CHECK-SAME:      %[[W:[^:]*]]: vector<32xf4E2M1FN>, %[[S:[^:]*]]: f8E8M0FNU)
// CHECK-DAG:     %[[BITS:.*]] = arith.bitcast %[[S]] : f8E8M0FNU to i8
// CHECK-DAG:     %[[HIDDEN:.*]] = builtin.unrealized_conversion_cast %[[BITS]] : i8 to f8E8M0FNU
// CHECK-DAG:     %[[SCALE:.*]] = arith.extf %[[HIDDEN]] : f8E8M0FNU to f32
// CHECK-DAG:     %[[VALUES:.*]] = arith.extf %[[W]] : vector<32xf4E2M1FN> to vector<32xf32>
// CHECK:         %[[SCALES:.*]] = vector.broadcast %[[SCALE]] : f32 to vector<32xf32>
// CHECK:         %[[PRODUCT:.*]] = arith.mulf %[[VALUES]], %[[SCALES]] : vector<32xf32>
// CHECK:         arith.truncf %[[PRODUCT]] : vector<32xf32> to vector<32xf16>
func.func @scale_of_e8m0(%w: vector<32xf4E2M1FN>, %s: f8E8M0FNU) -> vector<32xf16> {
  %x = kvcache.dequantize %w, %s : vector<32xf4E2M1FN>, f8E8M0FNU -> vector<32xf16>
  return %x : vector<32xf16>
}

// The scale of the tensor multiplies those of the groups first.

// CHECK-LABEL: func.func @tensor_scale(
// CHECK-SAME:      %[[W:[^:]*]]: vector<32xf4E2M1FN>, %[[S:[^:]*]]: vector<2xf8E4M3FN>, %[[G:[^:]*]]: f32)
// CHECK:         %[[OF_GROUPS:.*]] = arith.extf %[[S]] : vector<2xf8E4M3FN> to vector<2xf32>
// CHECK:         %[[OF_TENSOR:.*]] = vector.broadcast %[[G]] : f32 to vector<2xf32>
// CHECK:         %[[SCALES:.*]] = arith.mulf %[[OF_GROUPS]], %[[OF_TENSOR]] : vector<2xf32>
// CHECK:         %[[VALUES:.*]] = arith.extf %[[W]] : vector<32xf4E2M1FN> to vector<32xf32>
// CHECK:         %[[SPREAD:.*]] = vector.shuffle %[[SCALES]], %[[SCALES]] [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]
// CHECK:         arith.mulf %[[VALUES]], %[[SPREAD]] : vector<32xf32>
func.func @tensor_scale(%w: vector<32xf4E2M1FN>, %s: vector<2xf8E4M3FN>, %g: f32) -> vector<32xf32> {
  %x = kvcache.dequantize %w, %s tensor_scale %g : vector<32xf4E2M1FN>, vector<2xf8E4M3FN> -> vector<32xf32>
  return %x : vector<32xf32>
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

// Integers of 8 bits are exact on the way.

// CHECK-LABEL: func.func @integers(
// CHECK-SAME:      %[[W:[^:]*]]: vector<8xi8>, %[[S:[^:]*]]: bf16)
// CHECK-NEXT:    %[[WIDE:.*]] = arith.sitofp %[[W]] : vector<8xi8> to vector<8xf32>
// CHECK-NEXT:    %[[VALUES:.*]] = arith.truncf %[[WIDE]] : vector<8xf32> to vector<8xbf16>
// CHECK-NEXT:    %[[SCALES:.*]] = vector.broadcast %[[S]] : bf16 to vector<8xbf16>
// CHECK-NEXT:    %[[PRODUCT:.*]] = arith.mulf %[[VALUES]], %[[SCALES]] : vector<8xbf16>
// CHECK-NEXT:    return %[[PRODUCT]]
func.func @integers(%w: vector<8xi8>, %s: bf16) -> vector<8xbf16> {
  %x = kvcache.dequantize %w, %s : vector<8xi8>, bf16 -> vector<8xbf16>
  return %x : vector<8xbf16>
}

// CHECK-LABEL: func.func @scalars(
// CHECK-SAME:      %[[W:[^:]*]]: i8, %[[S:[^:]*]]: f32)
// CHECK-NEXT:    %[[VALUE:.*]] = arith.sitofp %[[W]] : i8 to f32
// CHECK-NEXT:    %[[PRODUCT:.*]] = arith.mulf %[[VALUE]], %[[S]] : f32
// CHECK-NEXT:    %[[RESULT:.*]] = arith.extf %[[PRODUCT]] : f32 to f64
// CHECK-NEXT:    return %[[RESULT]]
func.func @scalars(%w: i8, %s: f32) -> f64 {
  %x = kvcache.dequantize %w, %s : i8, f32 -> f64
  return %x : f64
}

// CHECK-LABEL: func.func @one_scale_of_a_vector(
// CHECK-SAME:      %[[W:[^:]*]]: i8, %[[S:[^:]*]]: vector<1xf32>)
// CHECK:         %[[SCALE:.*]] = vector.extract %[[S]][0] : f32 from vector<1xf32>
// CHECK:         arith.mulf %{{.*}}, %[[SCALE]] : f32
func.func @one_scale_of_a_vector(%w: i8, %s: vector<1xf32>) -> f32 {
  %x = kvcache.dequantize %w, %s : i8, vector<1xf32> -> f32
  return %x : f32
}

// A CPU takes four floats of 8 bits out of an integer by shifts. As bf16, they
// are rounded in the high halves of integers, and joined as pairs. NaNs are
// found in the bytes, and are NaNs of bf16.

// CHECK-LABEL: func.func @quads_of_floats(
// CHECK-SAME:      %[[W:[^:]*]]: vector<64xf8E4M3FN>
// CHECK:         %[[BYTES:.*]] = arith.bitcast %[[W]] : vector<64xf8E4M3FN> to vector<64xi8>
// CHECK:         %[[LANES:.*]] = vector.bitcast %[[BYTES]] : vector<64xi8> to vector<16xi32>
// CHECK-NOT:     arith.extf
// CHECK:         %[[PAIRS:.*]] = vector.interleave %{{.*}}, %{{.*}} : vector<16xi32> -> vector<32xi32>
// CHECK:         %[[X:.*]] = vector.bitcast %[[PAIRS]] : vector<32xi32> to vector<64xbf16>
// CHECK:         %[[MAGNITUDES:.*]] = arith.andi %[[BYTES]], %[[MAX:.*]] : vector<64xi8>
// CHECK:         %[[ARE_NANS:.*]] = arith.cmpi eq, %[[MAGNITUDES]], %[[MAX]] : vector<64xi8>
// CHECK:         %[[NANS:.*]] = arith.constant dense<0x7FC0> : vector<64xbf16>
// CHECK:         arith.select %[[ARE_NANS]], %[[NANS]], %[[X]]
func.func @quads_of_floats(%w: vector<64xf8E4M3FN>, %s: f32) -> vector<64xbf16> {
  %x = kvcache.dequantize %w, %s : vector<64xf8E4M3FN>, f32 -> vector<64xbf16>
  return %x : vector<64xbf16>
}

// An instruction widens integers of 8 bits.

// CHECK-LABEL: func.func @widened_integers(
// CHECK:         arith.sitofp %{{.*}} : vector<64xi8> to vector<64xf32>
func.func @widened_integers(%w: vector<64xi8>, %s: vector<2xf32>) -> vector<64xbf16> {
  %x = kvcache.dequantize %w, %s : vector<64xi8>, vector<2xf32> -> vector<64xbf16>
  return %x : vector<64xbf16>
}
