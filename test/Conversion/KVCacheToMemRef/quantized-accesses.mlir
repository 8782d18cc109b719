// RUN: kvcache-opt %s --convert-kvcache-to-memref --cse --split-input-file | FileCheck %s --implicit-check-not="{{!kvcache[.]|kvcache[.][a-z_]+ [%a-z]|unrealized}}"

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!fp8 = !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>
!int8 = !kvcache.paged<i8, #kv, page_size = 64, scale = bf16, granularity = 128>
!nvfp4 = !kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E4M3FN, granularity = 16>
!ragged = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 80>, page_size = 64, scale = f32, granularity = 32>

// A hint is of the elements alone.

// CHECK-LABEL: func.func @nontemporal_elements(
// CHECK:         vector.load {{.*}} {alignment = 16 : i64, nontemporal = true} : memref<?xf8E4M3FN,
// CHECK:         memref.load %{{[^]]*}}] : memref<?xf32,
// CHECK:         vector.store {{.*}} {alignment = 16 : i64, nontemporal = true} : memref<?xf8E4M3FN,
// CHECK:         memref.store %{{[^]]*}}] : memref<?xf32,
// CHECK:         vector.load {{.*}} {alignment = 16 : i64, nontemporal = true} : memref<?xf8E4M3FN,
func.func @nontemporal_elements(%k: !fp8, %b: index, %h: index, %t: index, %d: index) -> vector<16xf8E4M3FN> {
  %v = kvcache.load %k[%b, %h, %t, %d] {nontemporal = true} : !fp8 -> vector<32xbf16>
  kvcache.store_quantized %v, %k[%b, %h, %t, %d] {nontemporal = true} : vector<32xbf16>, !fp8
  %w = kvcache.load_quantized %k[%b, %h, %t, %d] {nontemporal = true} : !fp8 -> vector<16xf8E4M3FN>
  return %w : vector<16xf8E4M3FN>
}

// Stored elements are read as they are, and no scale.

// CHECK-LABEL: func.func @load_quantized(
// CHECK:         %[[W:.*]] = vector.load {{.*}} {alignment = 16 : i64} : memref<?xf8E4M3FN, {{.*}}>, vector<16xf8E4M3FN>
// CHECK-NOT:     memref<?xf32
// CHECK:         return %[[W]]
func.func @load_quantized(%k: !fp8, %b: index, %h: index, %t: index, %d: index) -> vector<16xf8E4M3FN> {
  %w = kvcache.load_quantized %k[%b, %h, %t, %d] : !fp8 -> vector<16xf8E4M3FN>
  return %w : vector<16xf8E4M3FN>
}

// CHECK-LABEL: func.func @load_quantized_scalar_of_a_known_page(
// CHECK-SAME:      %[[PAGE:[^:]*]]: index)
// CHECK-NOT:     memref<?xi32
// CHECK:         arith.muli %[[PAGE]],
// CHECK:         %[[W:.*]] = memref.load {{.*}} : memref<?xi8,
// CHECK:         return %[[W]]
func.func @load_quantized_scalar_of_a_known_page(%k: !int8, %b: index, %page: index) -> i8 {
  %w = kvcache.load_quantized %k[%b, %b, %b, %b] page %page : !int8 -> i8
  return %w : i8
}

// CHECK-LABEL: func.func @load_quantized_of_4_bits(
// CHECK:         %[[BYTES:.*]] = vector.load {{.*}} {alignment = 16 : i64} : memref<?xi8, {{.*}}>, vector<16xi8>
// CHECK:         %[[W:.*]] = vector.bitcast %[[BYTES]] : vector<16xi8> to vector<32xf4E2M1FN>
// CHECK:         return %[[W]]
func.func @load_quantized_of_4_bits(%k: !nvfp4, %b: index) -> vector<32xf4E2M1FN> {
  %w = kvcache.load_quantized %k[%b, %b, %b, %b] : !nvfp4 -> vector<32xf4E2M1FN>
  return %w : vector<32xf4E2M1FN>
}

// CHECK-LABEL: func.func @store_of_4_bits(
// CHECK-SAME:      %[[W:[^:]*]]: vector<32xf4E2M1FN>,
// CHECK:         %[[BYTES:.*]] = vector.bitcast %[[W]] : vector<32xf4E2M1FN> to vector<16xi8>
// CHECK:         vector.store %[[BYTES]], {{.*}} {alignment = 16 : i64} : memref<?xi8, {{.*}}>, vector<16xi8>
func.func @store_of_4_bits(%w: vector<32xf4E2M1FN>, %k: !nvfp4, %b: index) {
  kvcache.store %w, %k[%b, %b, %b, %b] : vector<32xf4E2M1FN>, !nvfp4
  return
}

// Groups are quantized one by one; then elements and scales are written, each
// through its own table.

// CHECK-LABEL: func.func @store_quantized(
// CHECK-SAME:      %[[X:[^:]*]]: vector<64xbf16>, %[[BLOCKS:[^:]*]]: memref<f8E4M3FN, strided<[], offset: ?>>, %{{[^:]*}}: i32, %[[PAGE_STRIDE:[^:]*]]: index, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %[[LUT:[^:]*]]: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %[[SCALES:[^:]*]]: memref<f32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %[[SCALE_STRIDE:[^:]*]]: index, %[[SLUT:[^:]*]]: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: i32,
// CHECK:         arith.bitcast %[[X]] : vector<64xbf16> to vector<64xi16>
// CHECK-COUNT-2: vector.reduction <maxui>, %{{.*}} : vector<32xi16> into i16
// CHECK-NOT:     vector.reduction <maxui>
// CHECK:         %[[ONE:.*]] = arith.constant dense<1.000000e+00> : vector<2xf32>
// CHECK:         %[[S:.*]] = arith.select %{{.*}}, %[[ONE]], %{{.*}} : vector<2xi1>, vector<2xf32>
// CHECK:         %[[W:.*]] = arith.bitcast %{{.*}} : vector<64xi8> to vector<64xf8E4M3FN>
// CHECK:         %[[LUT_BASE:.*]], %{{.*}} = memref.extract_strided_metadata %[[LUT]]
// CHECK:         %[[TABLE:.*]] = memref.reinterpret_cast %[[LUT_BASE]]
// CHECK:         memref.load %[[TABLE]]
// CHECK:         %[[BASE:.*]], %{{.*}} = memref.extract_strided_metadata %[[BLOCKS]]
// CHECK:         %[[WINDOW:.*]] = memref.reinterpret_cast %[[BASE]]
// CHECK:         vector.store %[[W]], %[[WINDOW]][%{{.*}}] {alignment = 16 : i64} : memref<?xf8E4M3FN, {{.*}}>, vector<64xf8E4M3FN>
// CHECK:         %[[SLUT_BASE:.*]], %{{.*}} = memref.extract_strided_metadata %[[SLUT]]
// CHECK:         %[[SCALE_TABLE:.*]] = memref.reinterpret_cast %[[SLUT_BASE]]
// CHECK:         memref.load %[[SCALE_TABLE]]
// CHECK:         %[[SCALE_BASE:.*]], %{{.*}} = memref.extract_strided_metadata %[[SCALES]]
// CHECK:         %[[SCALE_WINDOW:.*]] = memref.reinterpret_cast %[[SCALE_BASE]]
// CHECK:         vector.store %[[S]], %[[SCALE_WINDOW]][%{{.*}}] {alignment = 8 : i64} : memref<?xf32, {{.*}}>, vector<2xf32>
func.func @store_quantized(%x: vector<64xbf16>, %k: !fp8, %b: index, %h: index, %t: index, %d: index) {
  kvcache.store_quantized %x, %k[%b, %h, %t, %d] : vector<64xbf16>, !fp8
  return
}

// CHECK-LABEL: func.func @store_quantized_of_one_group_to_known_pages(
// CHECK-SAME:      %[[PAGE:[^:]*]]: index, %[[SCALE_PAGE:[^:]*]]: index)
// CHECK-NOT:     memref<?xi32
// CHECK:         %[[S:.*]] = arith.truncf %{{.*}} : f32 to bf16
// CHECK:         %[[W:.*]] = arith.trunci %{{.*}} : vector<128xi32> to vector<128xi8>
// CHECK:         arith.muli %[[PAGE]],
// CHECK:         vector.store %[[W]],
// CHECK:         arith.muli %[[SCALE_PAGE]],
// CHECK:         memref.store %[[S]],
// CHECK-NOT:     memref<?xi32
// CHECK:         return
func.func @store_quantized_of_one_group_to_known_pages(%x: vector<128xf32>, %k: !int8, %b: index, %page: index,
                                                       %scale_page: index) {
  kvcache.store_quantized %x, %k[%b, %b, %b, %b] page %page scale_page %scale_page : vector<128xf32>, !int8
  return
}

// The last group is 16 elements.

// CHECK-LABEL: func.func @store_quantized_of_a_ragged_head(
// CHECK:         vector.extract_strided_slice %{{.*}} {offsets = [0], sizes = [32], strides = [1]}
// CHECK:         vector.extract_strided_slice %{{.*}} {offsets = [32], sizes = [32], strides = [1]}
// CHECK:         vector.extract_strided_slice %{{.*}} {offsets = [64], sizes = [16], strides = [1]}
// CHECK:         vector.reduction <maxui>, %{{.*}} : vector<16xi16> into i16
// CHECK:         vector.shuffle {{.*}} [{{(0, ){32}(1, ){32}(2, ){15}2}}]
// CHECK:         vector.store {{.*}} {alignment = 4 : i64} : memref<?xf32, {{.*}}>, vector<3xf32>
func.func @store_quantized_of_a_ragged_head(%x: vector<80xf16>, %k: !ragged, %b: index) {
  kvcache.store_quantized %x, %k[%b, %b, %b, %b] : vector<80xf16>, !ragged
  return
}

// CHECK-LABEL: func.func @store_quantized_of_4_bits(
// CHECK-SAME:      %[[G:[^:]*]]: f32)
// CHECK:         %[[TENSOR:.*]] = vector.broadcast %[[G]] : f32 to vector<8xf32>
// CHECK:         arith.divf %{{.*}}, %[[TENSOR]] : vector<8xf32>
// CHECK:         %[[S:.*]] = arith.truncf %{{.*}} : vector<8xf32> to vector<8xf8E4M3FN>
// CHECK:         %[[W:.*]] = arith.truncf %{{.*}} : vector<128xf32> to vector<128xf4E2M1FN>
// CHECK:         %[[BYTES:.*]] = vector.bitcast %[[W]] : vector<128xf4E2M1FN> to vector<64xi8>
// CHECK:         vector.store %[[BYTES]], {{.*}} {alignment = 16 : i64} : memref<?xi8, {{.*}}>, vector<64xi8>
// CHECK:         vector.store %[[S]], {{.*}} {alignment = 8 : i64} : memref<?xf8E4M3FN, {{.*}}>, vector<8xf8E4M3FN>
func.func @store_quantized_of_4_bits(%x: vector<128xf32>, %k: !nvfp4, %b: index, %g: f32) {
  kvcache.store_quantized %x, %k[%b, %b, %b, %b] tensor_scale %g : vector<128xf32>, !nvfp4
  return
}

// -----

// In GPU code for a chip with 32-byte accesses both are aligned to 32, each by
// its own distances.

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 16>
!cache = !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 16>
!blocks = memref<?x2x?x64x8x128xf8E4M3FN>
!scales = memref<?x2x?x64x8x8xf32>
!open_scales = memref<?x2x?x64x8x8xf32, strided<[?, ?, ?, 64, 8, 1]>>

// CHECK-LABEL: gpu.func @wide_accesses(
// CHECK:         vector.load {{.*}} {alignment = 32 : i64} : {{.*}}, vector<128xf8E4M3FN>
// CHECK:         vector.load {{.*}} {alignment = 32 : i64} : {{.*}}, vector<8xf32>
// CHECK-LABEL: gpu.func @open_distances_of_scales(
// CHECK:         vector.load {{.*}} {alignment = 32 : i64} : {{.*}}, vector<128xf8E4M3FN>
// CHECK:         vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<8xf32>
// CHECK:         vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<8xf32>
gpu.module @sm_100a [#nvvm.target<chip = "sm_100a">] {
  gpu.func @wide_accesses(%blocks: !blocks, %scales: !scales, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                          %b: index, %out: memref<128xf32>) kernel {
    %max = arith.constant 64 : i32
    %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max scales %scales
        : !blocks, memref<?xi32>, memref<?x?xi32>, !scales -> !collection
    %k = kvcache.paged_view key %c[%b] : !collection
    %v = kvcache.load %k[%b, %b, %b, %b] : !cache -> vector<128xf32>
    vector.store %v, %out[%b] : memref<128xf32>, vector<128xf32>
    gpu.return
  }
  gpu.func @open_distances_of_scales(%blocks: !blocks, %scales: !open_scales, %lengths: memref<?xi32>,
                                     %lut: memref<?x?xi32>, %b: index, %out: memref<128xf32>) kernel {
    %max = arith.constant 64 : i32
    %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max scales %scales
        : !blocks, memref<?xi32>, memref<?x?xi32>, !open_scales -> !collection
    %k = kvcache.paged_view key %c[%b] : !collection
    %v = kvcache.load %k[%b, %b, %b, %b] : !cache -> vector<128xf32>
    vector.store %v, %out[%b] : memref<128xf32>, vector<128xf32>
    %s = kvcache.scales_view %k : !cache
    %w = kvcache.load %s[%b, %b, %b, %b] : !kvcache.scales<!cache> -> vector<8xf32>
    vector.store %w, %out[%b] : memref<128xf32>, vector<8xf32>
    gpu.return
  }
}
