// RUN: kvcache-opt %s --convert-kvcache-to-memref --canonicalize --cse | FileCheck %s

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!int4 = !kvcache.paged<i4, #kv, page_size = 64, scale = f16, granularity = 32, zero_point = f16>
!kivi = !kvcache.paged<i4, #kv, page_size = 64, scale = f16, zero_point = f16, token_granularity = 32>
!channels = !kvcache.paged<i8, #kv, page_size = 64, scale = f32, token_granularity = 2>

// Zero points follow the scales of a head, at the address of the scales plus 4.
// CHECK-LABEL: func.func @load(
// CHECK:         %[[BYTES:.*]] = vector.load %{{.*}} {alignment = 8 : i64} : memref<?xi8, {{.*}}>, vector<8xi8>
// CHECK:         %[[SCALE:.*]] = memref.load %[[SCALES:.*]][%[[AT:.*]]] : memref<?xf16, {{.*}}>
// CHECK:         %[[NEXT:.*]] = arith.addi %[[AT]], %c4
// CHECK:         %[[ZERO:.*]] = memref.load %[[SCALES]][%[[NEXT]]] : memref<?xf16, {{.*}}>
// CHECK:         %[[LOW:.*]] = arith.andi %[[BYTES]], %{{.*}} : vector<8xi8>
// CHECK:         %[[HIGH:.*]] = arith.shrui %[[BYTES]], %{{.*}} : vector<8xi8>
// CHECK:         %[[ELEMENTS:.*]] = vector.interleave %[[LOW]], %[[HIGH]]
// CHECK:         %[[NUMBERS:.*]] = arith.uitofp %[[ELEMENTS]] : vector<16xi8> to vector<16xf32>
// CHECK:         %[[S:.*]] = arith.extf %[[SCALE]] : f16 to f32
// CHECK:         %[[SS:.*]] = vector.broadcast %[[S]]
// CHECK:         %[[Z:.*]] = arith.extf %[[ZERO]] : f16 to f32
// CHECK:         %[[ZZ:.*]] = vector.broadcast %[[Z]]
// CHECK:         %[[X:.*]] = math.fma %[[NUMBERS]], %[[SS]], %[[ZZ]] : vector<16xf32>
// CHECK:         arith.truncf %[[X]] : vector<16xf32> to vector<16xbf16>
func.func @load(%k: !int4, %b: index, %h: index, %t: index, %d: index) -> vector<16xbf16> {
  %v = kvcache.load %k[%b, %h, %t, %d] : !int4 -> vector<16xbf16>
  return %v : vector<16xbf16>
}

// CHECK-LABEL: func.func @store(
// CHECK-SAME:    %[[V:[^:]*]]: vector<32xf32>
// CHECK-DAG:     %[[LEAST:.*]] = arith.constant 5.96046448E-8 : f32
// CHECK-DAG:     %[[FIFTEEN:.*]] = arith.constant 1.500000e+01 : f32
// CHECK-DAG:     %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
// CHECK:         arith.bitcast %[[V]] : vector<32xf32> to vector<32xi32>
// CHECK:         vector.reduction <minui>, %{{.*}} : vector<32xi32> into i32
// CHECK:         vector.reduction <maxui>, %{{.*}} : vector<32xi32> into i32
// CHECK:         %[[IS_NAN:.*]] = arith.cmpf uno, %[[MIN:.*]], %[[MIN]] : f32
// CHECK:         %[[MAX:.*]] = arith.select %[[IS_NAN]], %[[MIN]], %{{.*}} : f32
// CHECK:         %[[ZERO:.*]] = arith.truncf %{{.*}} : f32 to f16
// CHECK:         %[[OFFSET:.*]] = arith.extf %[[ZERO]] : f16 to f32
// CHECK:         %[[SPAN:.*]] = arith.subf %[[MAX]], %[[OFFSET]] : f32
// CHECK:         %[[STEP:.*]] = arith.divf %[[SPAN]], %[[FIFTEEN]] : f32
// CHECK:         arith.maxnumf %[[STEP]], %[[LEAST]] : f32
// CHECK:         %[[SCALE:.*]] = arith.truncf %{{.*}} : f32 to f16
// CHECK:         %[[WIDTH:.*]] = arith.extf %[[SCALE]] : f16 to f32
// CHECK:         arith.divf %[[ONE]], %[[WIDTH]] : f32
// CHECK:         arith.shli %{{.*}} : vector<16xi8>
// CHECK:         %[[BYTES:.*]] = arith.ori %{{.*}} : vector<16xi8>
// CHECK:         vector.store %[[BYTES]], %{{.*}} {alignment = 16 : i64} : memref<?xi8, {{.*}}>, vector<16xi8>
// CHECK:         memref.store %{{.*}}, %{{.*}} : memref<?xf16, {{.*}}>
// CHECK:         memref.store %{{.*}}, %{{.*}} : memref<?xf16, {{.*}}>
func.func @store(%v: vector<32xf32>, %k: !int4, %b: index, %h: index, %t: index, %d: index) {
  kvcache.store_quantized %v, %k[%b, %h, %t, %d] : vector<32xf32>, !int4
  return
}

// On a CPU, two bytes are four elements in an integer.
// CHECK-LABEL: func.func @load_quads(
// CHECK:         %[[BYTES:.*]] = vector.load %{{.*}} : memref<?xi8, {{.*}}>, vector<32xi8>
// CHECK:         %[[WORDS:.*]] = vector.bitcast %[[BYTES]] : vector<32xi8> to vector<16xi16>
// CHECK:         %[[LANES:.*]] = arith.extui %[[WORDS]] : vector<16xi16> to vector<16xi32>
// CHECK:         %[[SECOND:.*]] = arith.shrui %[[LANES]], %{{.*}} : vector<16xi32>
// CHECK:         arith.andi %[[SECOND]], %{{.*}} : vector<16xi32>
// CHECK:         vector.bitcast %{{.*}} : vector<32xi32> to vector<64xbf16>
func.func @load_quads(%k: !int4, %b: index, %h: index, %t: index, %d: index) -> vector<64xbf16> {
  %v = kvcache.load %k[%b, %h, %t, %d] : !int4 -> vector<64xbf16>
  return %v : vector<64xbf16>
}

// The even elements of bf16 are the low halves of bytes. Integers need bounds
// only if those of the smallest or the largest number of a group do.
// CHECK-LABEL: func.func @store_pairs(
// CHECK-SAME:    %[[V:[^:]*]]: vector<32xbf16>
// CHECK-DAG:     %[[SIXTEEN:.*]] = arith.constant dense<1.600000e+01> : vector<16xf32>
// CHECK-DAG:     %[[MOST:.*]] = arith.constant 1.550000e+01 : f32
// CHECK-DAG:     %[[LEAST:.*]] = arith.constant -5.000000e-01 : f32
// CHECK:         %[[LOW:.*]] = arith.cmpf oge, %{{.*}}, %[[LEAST]] : f32
// CHECK:         %[[HIGH:.*]] = arith.cmpf olt, %{{.*}}, %[[MOST]] : f32
// CHECK:         %[[BOUNDED:.*]] = arith.andi %[[LOW]], %[[HIGH]] {early_values} : i1
// CHECK:         %[[ROW:.*]] = scf.if %[[BOUNDED]] -> (vector<32xbf16>) {
// CHECK-NEXT:      scf.yield %[[V]]
// CHECK:           arith.maxnumf
// CHECK:           arith.minnumf
// CHECK:         %[[PAIRS:.*]] = vector.bitcast %[[ROW]] : vector<32xbf16> to vector<16xi32>
// CHECK-NOT:     arith.maxnumf
// CHECK:         %[[ODD:.*]] = arith.mulf %{{.*}}, %[[SIXTEEN]] fastmath<contract> : vector<16xf32>
// CHECK:         %[[SHIFTED:.*]] = arith.addf %[[ODD]], %{{.*}} fastmath<contract> : vector<16xf32>
// CHECK:         %[[BOTH:.*]] = arith.addf %{{.*}}, %[[SHIFTED]] : vector<16xf32>
// CHECK:         %[[BITS:.*]] = arith.bitcast %[[BOTH]] : vector<16xf32> to vector<16xi32>
// CHECK:         %[[BYTES:.*]] = arith.trunci %[[BITS]] : vector<16xi32> to vector<16xi8>
// CHECK:         vector.store %[[BYTES]],
func.func @store_pairs(%v: vector<32xbf16>, %k: !int4, %b: index, %h: index, %t: index, %d: index) {
  kvcache.store_quantized %v, %k[%b, %h, %t, %d] : vector<32xbf16>, !int4
  return
}

// The smallest and the inverted largest numbers of four groups are reduced at
// once. The nibbles of two bytes are in one sum, and bytes of four chunks in a
// lane.
// CHECK-LABEL: func.func @store_chunks(
// CHECK-COUNT-2: arith.minui %{{.*}} : vector<32xi16>
// CHECK-NOT:     arith.maxui %{{.*}} : vector<16xi16>
// CHECK:         %[[RANGES:.*]] = arith.minui %{{.*}} : vector<8xi16>
// CHECK:         %[[FLOATS:.*]] = arith.extf %{{.*}} : vector<8xbf16> to vector<8xf32>
// CHECK:         vector.extract_strided_slice %[[FLOATS]] {offsets = [0], sizes = [4]
// CHECK:         %[[INVERTED:.*]] = vector.extract_strided_slice %[[FLOATS]] {offsets = [4], sizes = [4]
// CHECK:         arith.negf %[[INVERTED]] : vector<4xf32>
// CHECK:         %[[ANY:.*]] = vector.reduction <and>, %{{.*}} : vector<4xi1> into i1
// CHECK:         scf.if %[[ANY]] -> (vector<128xbf16>) {
// CHECK:         %[[BYTES:.*]] = vector.bitcast %{{.*}} : vector<16xi32> to vector<64xi8>
// CHECK:         vector.shuffle %[[BYTES]], %[[BYTES]] [0, 4, 8, 12, 1, 5, 9, 13,
// CHECK:         vector.shuffle %[[BLOCKS:.*]], %[[BLOCKS]] [0, 4, 8, 12, 1, 5, 9, 13,
// CHECK-SAME:      : vector<16xi32>, vector<16xi32>
func.func @store_chunks(%v: vector<128xbf16>, %k: !int4, %b: index, %h: index, %t: index, %d: index) {
  kvcache.store_quantized %v, %k[%b, %h, %t, %d] : vector<128xbf16>, !int4
  return
}

// Threads that share a group find its smallest and its largest value together.
// CHECK-LABEL: gpu.func @quantize_over_lanes(
// CHECK-SAME:    %[[X:[^:]*]]: vector<8xbf16>
// CHECK:         %[[MIN:.*]] = vector.reduction <minimumf>, %[[X]]
// CHECK:         %[[WIDE_MIN:.*]] = arith.extf %[[MIN]] : bf16 to f32
// CHECK:         gpu.subgroup_reduce minimumf %[[WIDE_MIN]] cluster(size = 4) : (f32) -> f32
// CHECK:         %[[MAX:.*]] = vector.reduction <maximumf>, %[[X]]
// CHECK:         %[[WIDE_MAX:.*]] = arith.extf %[[MAX]] : bf16 to f32
// CHECK:         gpu.subgroup_reduce maximumf %[[WIDE_MAX]] cluster(size = 4) : (f32) -> f32
// CHECK:         %[[BYTES:.*]] = arith.ori %{{.*}} : vector<4xi8>
// CHECK:         memref.store %[[BYTES]]
gpu.module @kernels {
  gpu.func @quantize_over_lanes(%x: vector<8xbf16>, %out: memref<vector<4xi8>>,
                                %numbers: memref<2xf16>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %w, %s, %z = kvcache.quantize %x {lanes = 4} : vector<8xbf16> -> vector<8xi4>, f16, f16
    %bytes = vector.bitcast %w : vector<8xi4> to vector<4xi8>
    memref.store %bytes, %out[] : memref<vector<4xi8>>
    memref.store %s, %numbers[%c0] : memref<2xf16>
    memref.store %z, %numbers[%c1] : memref<2xf16>
    gpu.return
  }
}

// The zero points of channels, after the scales of a head.
// CHECK-LABEL: func.func @scales_of_channels(
// CHECK:         %[[ROW:.*]] = arith.remui %{{.*}}, %c64_i32 : i32
// CHECK:         %[[GROUP:.*]] = arith.divui %[[ROW]], %c32_i32 : i32
// CHECK:         arith.muli %[[GROUP]], %c2048_i32
// CHECK:         arith.addi %{{.*}}, %c128 {{.*}} : index
// CHECK:         vector.load %{{.*}} {alignment = 16 : i64} : memref<?xf16, {{.*}}>, vector<8xf16>
func.func @scales_of_channels(%k: !kivi, %b: index, %h: index, %t: index, %d: index) -> vector<8xf16> {
  %z = kvcache.load_scale %k[%b, %h, %t, %d] {zero_point} : !kivi -> vector<8xf16>
  return %z : vector<8xf16>
}

// One lookup for the tokens of a group, whose rows are a row apart.
// CHECK-LABEL: func.func @store_group(
// CHECK-SAME:    %[[V:[^:]*]]: vector<2x4xbf16>
// CHECK-DAG:     %[[FIRST:.*]] = vector.extract %{{.*}}[0]
// CHECK-DAG:     %[[SECOND:.*]] = vector.extract %{{.*}}[1]
// CHECK:         arith.maxui %{{.*}} : vector<4xi16>
// CHECK:         %[[ENTRY:.*]] = memref.load %{{.*}} : memref<?xi32, {{.*}}>
// CHECK:         vector.store %{{.*}}, %[[MEMORY:.*]][%[[AT:.*]]] {alignment = 4 : i64} : memref<?xi8, {{.*}}>, vector<4xi8>
// CHECK:         %[[NEXT:.*]] = arith.addi %[[AT]], %c1024
// CHECK:         vector.store %{{.*}}, %[[MEMORY]][%[[NEXT]]] {alignment = 4 : i64}
// CHECK:         vector.store %{{.*}} : memref<?xf32, {{.*}}>, vector<4xf32>
func.func @store_group(%v: vector<2x4xbf16>, %k: !channels, %b: index, %h: index, %t: index, %d: index) {
  kvcache.store_quantized %v, %k[%b, %h, %t, %d] : vector<2x4xbf16>, !channels
  return
}
