// RUN: kvcache-opt %s --convert-kvcache-to-memref --cse | FileCheck %s --implicit-check-not="{{!kvcache[.]|kvcache[.][a-z_]+ [%a-z]}}"

// All steps in f32: the largest magnitude, the scale, its limits, 1 for a group
// of zeros and NaN for one that is not finite; then the rounded scale divides.
// Bits of magnitudes order as magnitudes do.

// CHECK-LABEL: func.func @one_group(
// CHECK-SAME:      %[[VALUES:[^:]*]]: vector<32xf32>)
// CHECK:         %[[BITS:.*]] = arith.bitcast %[[VALUES]] : vector<32xf32> to vector<32xi32>
// CHECK:         %[[MASK:.*]] = arith.constant dense<2147483647> : vector<32xi32>
// CHECK:         %[[MAGNITUDES:.*]] = arith.andi %[[BITS]], %[[MASK]]
// CHECK:         %[[AMAX_BITS:.*]] = vector.reduction <maxui>, %[[MAGNITUDES]] : vector<32xi32> into i32
// CHECK:         %[[AMAX:.*]] = arith.bitcast %[[AMAX_BITS]] : i32 to f32
// CHECK:         %[[LARGEST:.*]] = arith.constant 4.480000e+02 : f32
// CHECK:         %[[QUOTIENT:.*]] = arith.divf %[[AMAX]], %[[LARGEST]] : f32
// CHECK:         %[[SMALLEST:.*]] = arith.constant 1.401300e-45 : f32
// CHECK:         %[[CLAMPED:.*]] = arith.maxnumf %[[QUOTIENT]], %[[SMALLEST]] : f32
// CHECK:         %[[NOT_ZERO:.*]] = arith.select %{{.*}}, %{{.*}}, %[[CLAMPED]] : f32
// CHECK-DAG:     %[[NAN:.*]] = arith.constant 0x7FC00000 : f32
// CHECK:         %[[SCALE:.*]] = arith.select %{{.*}}, %[[NOT_ZERO]], %[[NAN]] : f32
// CHECK:         %[[DIVISOR:.*]] = vector.broadcast %[[SCALE]]
// CHECK:         %[[DIVIDED:.*]] = arith.divf %[[VALUES]], %[[DIVISOR]]
// CHECK:         %[[QUANTIZED:.*]] = arith.truncf %[[DIVIDED]] : vector<32xf32> to vector<32xf8E4M3FN>
// CHECK:         return %[[QUANTIZED]], %[[SCALE]]
func.func @one_group(%x: vector<32xf32>) -> (vector<32xf8E4M3FN>, f32) {
  %w, %s = kvcache.quantize %x : vector<32xf32> -> vector<32xf8E4M3FN>, f32
  return %w, %s : vector<32xf8E4M3FN>, f32
}

// Values of 16 bits are multiplied by the reciprocal in two parts, in f32. On a
// CPU, those of bf16 are pairs in integers: of their magnitudes, a shift gives
// one as f32, a mask the other. Codes are joined as pairs, with signs. Rows
// whose scale is tiny or huge are multiplied by a power of two before.

// CHECK-LABEL: func.func @values_of_16_bits(
// CHECK-SAME:      %[[X:[^:]*]]: vector<32xbf16>)
// CHECK:         %[[AMAX_BITS:.*]] = vector.reduction <maxui>, %{{.*}} : vector<32xi16> into i16
// CHECK:         arith.bitcast %[[AMAX_BITS]] : i16 to bf16
// CHECK:         %[[SMALL:.*]] = arith.cmpf olt, %[[S:.*]], %{{.*}} : f32
// CHECK:         %[[LARGE:.*]] = arith.cmpf ogt, %[[S]], %{{.*}} : f32
// CHECK:         %[[IS_ANY:.*]] = arith.ori %[[SMALL]], %[[LARGE]] : i1
// CHECK:         %[[BALANCED:.*]]:2 = scf.if %[[IS_ANY]] -> (vector<32xbf16>, f32) {
// CHECK:           %[[FACTOR:.*]] = arith.select %[[SMALL]]
// CHECK:           arith.mulf %[[S]], %[[FACTOR]] : f32
// CHECK:         } else {
// CHECK-NEXT:      scf.yield %[[X]], %[[S]]
// CHECK:         arith.divf %{{.*}}, %[[BALANCED]]#1 fastmath<afn> : f32
// CHECK-NOT:     arith.divf
// CHECK:         %[[PAIRS:.*]] = vector.bitcast %[[BALANCED]]#0 : vector<32xbf16> to vector<16xi32>
// CHECK:         %[[MAGNITUDES:.*]] = arith.andi %[[PAIRS]], %{{.*}} : vector<16xi32>
// CHECK:         %[[LOW:.*]] = arith.shli %[[MAGNITUDES]], %{{.*}} : vector<16xi32>
// CHECK:         %[[EVEN:.*]] = arith.bitcast %[[LOW]] : vector<16xi32> to vector<16xf32>
// CHECK:         %[[HIGH:.*]] = arith.andi %[[MAGNITUDES]], %{{.*}} : vector<16xi32>
// CHECK:         %[[ODD:.*]] = arith.bitcast %[[HIGH]] : vector<16xi32> to vector<16xf32>
// CHECK:         %[[REST:.*]] = arith.mulf %[[EVEN]], %{{.*}} : vector<16xf32>
// CHECK:         math.fma %[[EVEN]], %{{.*}}, %[[REST]] : vector<16xf32>
// CHECK:         arith.mulf %[[ODD]], %{{.*}} : vector<16xf32>
// CHECK:         arith.shrui %[[PAIRS]], %{{.*}} : vector<16xi32>
// CHECK:         %[[HALVES:.*]] = vector.bitcast %{{.*}} : vector<16xi32> to vector<32xi16>
// CHECK:         %[[CODES:.*]] = arith.trunci %[[HALVES]] : vector<32xi16> to vector<32xi8>
// CHECK:         %[[W:.*]] = arith.bitcast %[[CODES]] : vector<32xi8> to vector<32xf8E4M3FN>
// CHECK:         return %[[W]], %{{.*}}
func.func @values_of_16_bits(%x: vector<32xbf16>) -> (vector<32xf8E4M3FN>, f32) {
  %w, %s = kvcache.quantize %x : vector<32xbf16> -> vector<32xf8E4M3FN>, f32
  return %w, %s : vector<32xf8E4M3FN>, f32
}

// Of 64 values, the low bytes of codes are joined, and then have the signs of
// the high bytes of the values.

// CHECK-LABEL: func.func @two_chunks(
// CHECK:         %[[CODES:.*]] = vector.shuffle %{{.*}}, %{{.*}} [0, 2, 4, {{.*}}, 124, 126] : vector<64xi8>, vector<64xi8>
// CHECK:         %[[SIGNS:.*]] = vector.shuffle %{{.*}}, %{{.*}} [1, 3, 5, {{.*}}, 125, 127] : vector<64xi8>, vector<64xi8>
// CHECK:         %[[BYTES:.*]] = vector.bitcast %{{.*}} : vector<16xi32> to vector<64xi8>
// CHECK:         %[[W:.*]] = arith.bitcast %[[BYTES]] : vector<64xi8> to vector<64xf8E4M3FN>
// CHECK:         return %[[W]], %{{.*}}
func.func @two_chunks(%x: vector<64xbf16>) -> (vector<64xf8E4M3FN>, f32) {
  %w, %s = kvcache.quantize %x : vector<64xbf16> -> vector<64xf8E4M3FN>, f32
  return %w, %s : vector<64xf8E4M3FN>, f32
}

// CHECK-LABEL: func.func @several_groups(
// CHECK-COUNT-3: vector.reduction <maxui>, %{{.*}} : vector<4xi32> into i32
// CHECK:         %[[AMAX_BITS:.*]] = vector.from_elements {{.*}} : vector<3xi32>
// CHECK:         %[[AMAX:.*]] = arith.bitcast %[[AMAX_BITS]] : vector<3xi32> to vector<3xf32>
// CHECK:         arith.divf %[[AMAX]], %{{.*}} : vector<3xf32>
// CHECK:         %[[IS_FINITE:.*]] = arith.cmpf olt, %[[AMAX]], %{{.*}} : vector<3xf32>
// CHECK:         %[[SCALES:.*]] = arith.select %[[IS_FINITE]], {{.*}} : vector<3xi1>, vector<3xf32>
// CHECK:         %[[DIVISORS:.*]] = vector.shuffle %[[SCALES]], %[[SCALES]] [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]
// CHECK:         arith.divf %{{.*}}, %[[DIVISORS]] : vector<12xf32>
// CHECK:         return %{{.*}}, %[[SCALES]]
func.func @several_groups(%x: vector<12xf32>) -> (vector<12xf8E5M2>, vector<3xf32>) {
  %w, %s = kvcache.quantize %x : vector<12xf32> -> vector<12xf8E5M2>, vector<3xf32>
  return %w, %s : vector<12xf8E5M2>, vector<3xf32>
}

// CHECK-LABEL: func.func @a_vector_of_one_scale(
// CHECK:         %[[NAN:.*]] = arith.constant 0x7FC00000 : f32
// CHECK:         %[[SCALE:.*]] = arith.select %{{.*}}, %[[NAN]] : f32
// CHECK:         %[[SCALES:.*]] = vector.from_elements %[[SCALE]] : vector<1xf32>
// CHECK:         return %{{.*}}, %[[SCALES]]
func.func @a_vector_of_one_scale(%x: vector<8xf32>) -> (vector<8xf8E4M3FN>, vector<1xf32>) {
  %w, %s = kvcache.quantize %x : vector<8xf32> -> vector<8xf8E4M3FN>, vector<1xf32>
  return %w, %s : vector<8xf8E4M3FN>, vector<1xf32>
}

// CHECK-LABEL: func.func @a_scalar(
// CHECK-SAME:      %[[X:[^:]*]]: f32)
// CHECK:         %[[BITS:.*]] = arith.bitcast %[[X]] : f32 to i32
// CHECK:         %[[MAGNITUDE:.*]] = arith.andi %[[BITS]], %{{.*}} : i32
// CHECK:         %[[AMAX:.*]] = arith.bitcast %[[MAGNITUDE]] : i32 to f32
// CHECK-NOT:     vector.
// CHECK:         arith.divf %[[AMAX]], %{{.*}} : f32
// CHECK-NOT:     vector.
// CHECK:         arith.truncf %{{.*}} : f32 to f8E4M3FN
func.func @a_scalar(%x: f32) -> (f8E4M3FN, f32) {
  %w, %s = kvcache.quantize %x : f32 -> f8E4M3FN, f32
  return %w, %s : f8E4M3FN, f32
}

//===----------------------------------------------------------------------===//
// Quantized types
//===----------------------------------------------------------------------===//

// Within 127 of 0: a sum with 1.5 * 2^23 rounds to nearest even, and its low
// bits are the integer.

// CHECK-LABEL: func.func @integers(
// CHECK:         %[[DIVIDED:.*]] = arith.divf %{{.*}} : vector<8xf32>
// CHECK:         %[[FROM:.*]] = arith.maxnumf %[[DIVIDED]]
// CHECK:         %[[TO:.*]] = arith.minnumf %[[FROM]]
// CHECK:         %[[SHIFTER:.*]] = arith.constant dense<0x4B400000> : vector<8xf32>
// CHECK:         %[[SUM:.*]] = arith.addf %[[TO]], %[[SHIFTER]]
// CHECK:         %[[BITS:.*]] = arith.bitcast %[[SUM]]
// CHECK:         arith.trunci %[[BITS]] : vector<8xi32> to vector<8xi8>
func.func @integers(%x: vector<8xf32>) -> (vector<8xi8>, f32) {
  %w, %s = kvcache.quantize %x : vector<8xf32> -> vector<8xi8>, f32
  return %w, %s : vector<8xi8>, f32
}

// CHECK-LABEL: func.func @floats_of_4_bits(
// CHECK:         %[[LARGEST:.*]] = arith.constant 6.000000e+00 : f32
// CHECK:         arith.divf %{{.*}}, %[[LARGEST]] : f32
// CHECK:         arith.truncf %{{.*}} : vector<16xf32> to vector<16xf4E2M1FN>
func.func @floats_of_4_bits(%x: vector<16xf32>) -> (vector<16xf4E2M1FN>, f8E4M3FN) {
  %w, %s = kvcache.quantize %x : vector<16xf32> -> vector<16xf4E2M1FN>, f8E4M3FN
  return %w, %s : vector<16xf4E2M1FN>, f8E4M3FN
}

//===----------------------------------------------------------------------===//
// Scale types
//===----------------------------------------------------------------------===//

// The scale that divides is the rounded one.

// CHECK-LABEL: func.func @scale_of_bf16(
// CHECK:         %[[SMALLEST:.*]] = arith.constant 9.183550e-41 : f32
// CHECK:         arith.maxnumf %{{.*}}, %[[SMALLEST]] : f32
// CHECK-NOT:     arith.minnumf
// CHECK:         %[[SCALE:.*]] = arith.truncf %{{.*}} : f32 to bf16
// CHECK:         %[[WIDE:.*]] = arith.extf %[[SCALE]] : bf16 to f32
// CHECK:         %[[DIVISOR:.*]] = vector.broadcast %[[WIDE]]
// CHECK:         arith.divf %{{.*}}, %[[DIVISOR]] : vector<8xf32>
// CHECK:         return %{{.*}}, %[[SCALE]]
func.func @scale_of_bf16(%x: vector<8xf32>) -> (vector<8xf8E4M3FN>, bf16) {
  %w, %s = kvcache.quantize %x : vector<8xf32> -> vector<8xf8E4M3FN>, bf16
  return %w, %s : vector<8xf8E4M3FN>, bf16
}

// The largest f32 divided by 448 has no f16.

// CHECK-LABEL: func.func @scale_of_f16(
// CHECK:         %[[SMALLEST:.*]] = arith.constant 5.96046448E-8 : f32
// CHECK:         %[[FROM:.*]] = arith.maxnumf %{{.*}}, %[[SMALLEST]] : f32
// CHECK:         %[[LARGEST:.*]] = arith.constant 6.550400e+04 : f32
// CHECK:         arith.minnumf %[[FROM]], %[[LARGEST]] : f32
// CHECK:         arith.truncf %{{.*}} : f32 to f16
func.func @scale_of_f16(%x: vector<8xf32>) -> (vector<8xf8E4M3FN>, f16) {
  %w, %s = kvcache.quantize %x : vector<8xf32> -> vector<8xf8E4M3FN>, f16
  return %w, %s : vector<8xf8E4M3FN>, f16
}

// Up to the next power of two; the conversion saturates at both ends.

// CHECK-LABEL: func.func @scales_of_e8m0(
// CHECK-COUNT-2: math.fma %{{.*}} : vector<2xf32>
// CHECK-NOT:     arith.maxnumf
// CHECK-NOT:     arith.minnumf
// CHECK:         %[[SCALES:.*]] = arith.truncf %{{.*}} upward : vector<2xf32> to vector<2xf8E8M0FNU>
// CHECK:         arith.bitcast %[[SCALES]] : vector<2xf8E8M0FNU> to vector<2xi8>
// CHECK:         %[[WIDE:.*]] = arith.extf %{{.*}} : vector<2xf8E8M0FNU> to vector<2xf32>
// CHECK:         arith.divf %{{.*}}, %[[WIDE]] fastmath<afn> : vector<2xf32>
// CHECK:         return %{{.*}}, %[[SCALES]]
func.func @scales_of_e8m0(%x: vector<64xf16>) -> (vector<64xf4E2M1FN>, vector<2xf8E8M0FNU>) {
  %w, %s = kvcache.quantize %x : vector<64xf16> -> vector<64xf4E2M1FN>, vector<2xf8E8M0FNU>
  return %w, %s : vector<64xf4E2M1FN>, vector<2xf8E8M0FNU>
}

// The scale of the tensor divides those of the groups, and multiplies what the
// values are divided by, unless that gives 0.

// CHECK-LABEL: func.func @tensor_scale(
// CHECK-SAME:      %[[G:[^:]*]]: f32)
// CHECK:         %[[BY_LARGEST:.*]] = arith.divf %{{.*}}, %{{.*}} : vector<2xf32>
// CHECK:         %[[OF_GROUPS:.*]] = vector.broadcast %[[G]] : f32 to vector<2xf32>
// CHECK:         %[[BY_TENSOR:.*]] = arith.divf %[[BY_LARGEST]], %[[OF_GROUPS]] : vector<2xf32>
// CHECK:         %[[SMALLEST:.*]] = arith.constant dense<0.001953125> : vector<2xf32>
// CHECK:         arith.maxnumf %[[BY_TENSOR]], %[[SMALLEST]]
// CHECK:         %[[SCALES:.*]] = arith.truncf %{{.*}} : vector<2xf32> to vector<2xf8E4M3FN>
// CHECK:         %[[WIDE:.*]] = arith.extf %[[SCALES]] : vector<2xf8E4M3FN> to vector<2xf32>
// CHECK:         %[[TIMES_TENSOR:.*]] = arith.mulf %[[WIDE]], %[[OF_GROUPS]] : vector<2xf32>
// CHECK:         %[[IS_ZERO:.*]] = arith.cmpf oeq, %[[TIMES_TENSOR]], %{{.*}} : vector<2xf32>
// CHECK:         %[[DIVISORS:.*]] = arith.select %[[IS_ZERO]], %{{.*}}, %[[TIMES_TENSOR]]
// CHECK:         vector.shuffle %[[DIVISORS]], %[[DIVISORS]]
// CHECK:         return %{{.*}}, %[[SCALES]]
func.func @tensor_scale(%x: vector<32xf32>, %g: f32) -> (vector<32xf4E2M1FN>, vector<2xf8E4M3FN>) {
  %w, %s = kvcache.quantize %x tensor_scale %g : vector<32xf32> -> vector<32xf4E2M1FN>, vector<2xf8E4M3FN>
  return %w, %s : vector<32xf4E2M1FN>, vector<2xf8E4M3FN>
}

//===----------------------------------------------------------------------===//
// Groups over several lanes
//===----------------------------------------------------------------------===//

// Each thread's own part first, then neighbouring threads.

// CHECK-LABEL: gpu.func @lanes(
// CHECK:         %[[OWN:.*]] = vector.reduction <maximumf>, %{{.*}} : vector<8xf32> into f32
// CHECK-NEXT:    %[[AMAX:.*]] = gpu.subgroup_reduce maximumf %[[OWN]] cluster(size = 16) : (f32) -> f32
// CHECK:         arith.divf %[[AMAX]], %{{.*}} : f32
gpu.module @kernels {
  gpu.func @lanes(%x: vector<8xf32>, %values: memref<8xi8>, %scales: memref<1xf32>) kernel {
    %c0 = arith.constant 0 : index
    %w, %s = kvcache.quantize %x {lanes = 16} : vector<8xf32> -> vector<8xi8>, f32
    vector.store %w, %values[%c0] : memref<8xi8>, vector<8xi8>
    memref.store %s, %scales[%c0] : memref<1xf32>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @scalar_lanes(
  // CHECK:         %[[OWN:.*]] = math.absf %{{.*}} : f32
  // CHECK-NEXT:    gpu.subgroup_reduce maximumf %[[OWN]] cluster(size = 32) : (f32) -> f32
  gpu.func @scalar_lanes(%x: f32, %values: memref<1xi8>, %scales: memref<1xf32>) kernel {
    %c0 = arith.constant 0 : index
    %w, %s = kvcache.quantize %x {lanes = 32} : f32 -> i8, f32
    memref.store %w, %values[%c0] : memref<1xi8>
    memref.store %s, %scales[%c0] : memref<1xf32>
    gpu.return
  }
}

// One lane is no cluster, and may run anywhere.

// CHECK-LABEL: func.func @one_lane(
// CHECK-NOT:     gpu.subgroup_reduce
// CHECK:         return
func.func @one_lane(%x: vector<8xf32>) -> (vector<8xi8>, f32) {
  %w, %s = kvcache.quantize %x {lanes = 1} : vector<8xf32> -> vector<8xi8>, f32
  return %w, %s : vector<8xi8>, f32
}

//===----------------------------------------------------------------------===//
// Values of 16 bits in kernels
//===----------------------------------------------------------------------===//

gpu.module @without_divisions {
  // The largest magnitude is found in bf16. Its quotient by 448 is corrected by
  // what a product with the reciprocal leaves.

  // CHECK-LABEL: gpu.func @bf16(
  // CHECK-SAME:      %[[X:[^:]*]]: vector<8xbf16>
  // CHECK-NOT:     arith.divf
  // CHECK:         vector.reduction <maximumf>, %{{.*}} : vector<8xbf16> into bf16
  // CHECK:         %[[AMAX:.*]] = gpu.subgroup_reduce maximumf %{{.*}} cluster(size = 16) : (f32) -> f32
  // CHECK:         %[[NEAR:.*]] = arith.mulf %[[AMAX]], %[[BY_448:.*]] : f32
  // CHECK:         %[[REST:.*]] = math.fma %[[NEAR]], %{{.*}}, %[[AMAX]] : f32
  // CHECK:         math.fma %[[REST]], %[[BY_448]], %[[NEAR]] : f32

  // Scale and values are times 2^64 or 2^-64.

  // CHECK:         %[[DIVISOR:.*]] = arith.mulf %{{.*}}, %[[FACTOR:.*]] : f32
  // CHECK:         arith.truncf %[[FACTOR]] : f32 to bf16
  // CHECK:         %[[BALANCED:.*]] = arith.mulf %[[X]], %{{.*}} : vector<8xbf16>

  // The reciprocal is less than exact by what its second part adds.

  // CHECK:         arith.divf %{{.*}}, %[[DIVISOR]] fastmath<afn> : f32
  // CHECK:         %[[VALUES:.*]] = arith.extf %[[BALANCED]]
  // CHECK:         %[[PRODUCTS:.*]] = arith.mulf %[[VALUES]], %{{.*}} : vector<8xf32>
  // CHECK:         %[[QUOTIENTS:.*]] = math.fma %[[VALUES]], %{{.*}}, %[[PRODUCTS]] : vector<8xf32>
  // CHECK:         arith.truncf %[[QUOTIENTS]] : vector<8xf32> to vector<8xf8E4M3FN>
  gpu.func @bf16(%x: vector<8xbf16>, %values: memref<8xf8E4M3FN>, %scales: memref<1xf32>) kernel {
    %c0 = arith.constant 0 : index
    %w, %s = kvcache.quantize %x {lanes = 16} : vector<8xbf16> -> vector<8xf8E4M3FN>, f32
    vector.store %w, %values[%c0] : memref<8xf8E4M3FN>, vector<8xf8E4M3FN>
    memref.store %s, %scales[%c0] : memref<1xf32>
    gpu.return
  }

  // Scales of f16 are never far from 1, but have limits.

  // CHECK-LABEL: gpu.func @f16(
  // CHECK-SAME:      %[[X:[^:]*]]: vector<8xf16>
  // CHECK:         vector.reduction <maximumf>, %{{.*}} : vector<4xf16> into f16
  // CHECK:         arith.maxnumf %{{.*}} : vector<2xf32>
  // CHECK:         arith.minnumf %{{.*}} : vector<2xf32>
  // CHECK:         arith.cmpf olt, %{{.*}} : vector<2xf32>
  // CHECK:         arith.truncf %{{.*}} : vector<2xf32> to vector<2xf16>
  // CHECK:         arith.divf %{{.*}} fastmath<afn> : vector<2xf32>
  // CHECK:         arith.extf %[[X]] : vector<8xf16> to vector<8xf32>
  // CHECK-NOT:     arith.divf
  // CHECK:         gpu.return
  gpu.func @f16(%x: vector<8xf16>, %values: memref<8xi8>, %scales: memref<2xf16>) kernel {
    %c0 = arith.constant 0 : index
    %w, %s = kvcache.quantize %x : vector<8xf16> -> vector<8xi8>, vector<2xf16>
    vector.store %w, %values[%c0] : memref<8xi8>, vector<8xi8>
    vector.store %s, %scales[%c0] : memref<2xf16>, vector<2xf16>
    gpu.return
  }

  // A tensor's scale may make any number of the divisors, also infinity. It
  // divides the scale alone.

  // CHECK-LABEL: gpu.func @tensor_scale_in_kernel(
  // CHECK-SAME:      %{{[^:]*}}: vector<16xbf16>, %[[G:[^:]*]]: f32
  // CHECK:         arith.divf %{{.*}}, %[[G]] : f32
  // CHECK:         %[[ANY:.*]] = arith.mulf %{{.*}}, %[[G]] : f32
  // CHECK:         %[[NOT_0:.*]] = arith.select %{{.*}}, %{{.*}}, %[[ANY]] : f32
  // CHECK:         %[[BALANCED:.*]] = arith.mulf %[[NOT_0]], %{{.*}} : f32
  // CHECK:         %[[NOT_LESS:.*]] = arith.select %{{.*}}, %{{.*}}, %[[BALANCED]] : f32
  // CHECK:         %[[MOST:.*]] = arith.constant 1.23794004E+27 : f32
  // CHECK:         %[[DIVISOR:.*]] = arith.select %{{.*}}, %{{.*}}, %[[NOT_LESS]] : f32
  // CHECK:         arith.divf %{{.*}}, %[[DIVISOR]] fastmath<afn> : f32
  // CHECK-NOT:     arith.divf
  // CHECK:         gpu.return
  gpu.func @tensor_scale_in_kernel(%x: vector<16xbf16>, %g: f32, %values: memref<16xf4E2M1FN>,
                                   %scales: memref<1xf8E4M3FN>) kernel {
    %c0 = arith.constant 0 : index
    %w, %s = kvcache.quantize %x tensor_scale %g : vector<16xbf16> -> vector<16xf4E2M1FN>, f8E4M3FN
    vector.store %w, %values[%c0] : memref<16xf4E2M1FN>, vector<16xf4E2M1FN>
    memref.store %s, %scales[%c0] : memref<1xf8E4M3FN>
    gpu.return
  }
}
