// RUN: kvcache-opt %s --verify-roundtrip | FileCheck %s
// RUN: kvcache-opt %s --emit-bytecode | kvcache-opt | FileCheck %s
// RUN: kvcache-opt %s --mlir-print-op-generic | kvcache-opt | FileCheck %s
// RUN: kvcache-opt %s --mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!continuous = !kvcache.continuous<f16, #kv>
!int8 = !kvcache.paged<i8, #kv, page_size = 64, scale = f32, granularity = 128>
!mxfp4 = !kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E8M0FNU, granularity = 32>

// CHECK: #[[$KV:.*]] = #kvcache.params<num_heads = 8, head_size = 128>

// CHECK-LABEL: func.func @load(
// CHECK-SAME:    %[[K:[^:]*]]: !kvcache.paged<bf16, #[[$KV]], page_size = 64>,
// CHECK-SAME:    %[[B:[^:]*]]: index, %[[H:[^:]*]]: index, %[[T:[^:]*]]: index, %[[D:[^:]*]]: index, %[[PAGE:[^:]*]]: index)
// CHECK:         kvcache.load %[[K]][%[[B]], %[[H]], %[[T]], %[[D]]] : [[CACHE:!kvcache.paged<bf16, #kv, page_size = 64>]] -> bf16
// CHECK:         kvcache.load %[[K]][%[[B]], %[[H]], %[[T]], %[[D]]] : [[CACHE]] -> f32
// CHECK:         kvcache.load %[[K]][%[[B]], %[[H]], %[[T]], %[[D]]] : [[CACHE]] -> vector<8xbf16>
// CHECK:         kvcache.load %[[K]][%[[B]], %[[H]], %[[T]], %[[D]]] : [[CACHE]] -> vector<128xf16>
// CHECK:         kvcache.load %[[K]][%[[B]], %[[H]], %[[T]], %[[D]]] page %[[PAGE]] : [[CACHE]] -> vector<8xf8E4M3FN>
// CHECK:         kvcache.load %[[K]][%[[B]], %[[H]], %[[T]], %[[D]]] page %[[PAGE]] {note = "kept"} : [[CACHE]] -> vector<3xbf16>
// GENERIC-LABEL: "func.func"() {{.*}}sym_name = "load"
// GENERIC:         "kvcache.load"(%{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}) <{nontemporal = false, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 0, 0>}> : ({{.*}}) -> bf16
// GENERIC:         "kvcache.load"(%{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}) <{nontemporal = false, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 0, 0>}> : ({{.*}}) -> vector<8xf8E4M3FN>
func.func @load(%k: !cache, %b: index, %h: index, %t: index, %d: index, %page: index) {
  %0 = kvcache.load %k[%b, %h, %t, %d] : !cache -> bf16
  %1 = kvcache.load %k[%b, %h, %t, %d] : !cache -> f32
  %2 = kvcache.load %k[%b, %h, %t, %d] : !cache -> vector<8xbf16>
  %3 = kvcache.load %k[%b, %h, %t, %d] : !cache -> vector<128xf16>
  %4 = kvcache.load %k[%b, %h, %t, %d] page %page : !cache -> vector<8xf8E4M3FN>
  %5 = kvcache.load %k[%b, %h, %t, %d] page %page {note = "kept"} : !cache -> vector<3xbf16>
  return
}

// CHECK-LABEL: func.func @load_from_a_continuous_cache(
// CHECK:         kvcache.load %{{.*}}[{{.*}}] : !kvcache.continuous<f16, #[[$KV]]> -> f16
// CHECK:         kvcache.load %{{.*}}[{{.*}}] page %{{.*}} : !kvcache.continuous<f16, #[[$KV]]> -> vector<4xf32>
func.func @load_from_a_continuous_cache(%k: !continuous, %b: index, %h: index, %t: index, %d: index, %page: index) {
  %0 = kvcache.load %k[%b, %h, %t, %d] : !continuous -> f16
  %1 = kvcache.load %k[%b, %h, %t, %d] page %page : !continuous -> vector<4xf32>
  return
}

// CHECK-LABEL: func.func @store(
// CHECK-SAME:    %[[X:[^:]*]]: bf16, %[[V:[^:]*]]: vector<8xbf16>, %[[K:[^:]*]]: !kvcache.paged<bf16, #[[$KV]], page_size = 64>,
// CHECK-SAME:    %[[B:[^:]*]]: index, %[[H:[^:]*]]: index, %[[T:[^:]*]]: index, %[[D:[^:]*]]: index, %[[PAGE:[^:]*]]: index)
// CHECK:         kvcache.store %[[X]], %[[K]][%[[B]], %[[H]], %[[T]], %[[D]]] : bf16, [[CACHE:!kvcache.paged<bf16, #kv, page_size = 64>]]
// CHECK:         kvcache.store %[[V]], %[[K]][%[[B]], %[[H]], %[[T]], %[[D]]] : vector<8xbf16>, [[CACHE]]
// CHECK:         kvcache.store %[[V]], %[[K]][%[[B]], %[[H]], %[[T]], %[[D]]] page %[[PAGE]] {note = "kept"} : vector<8xbf16>, [[CACHE]]
func.func @store(%x: bf16, %v: vector<8xbf16>, %k: !cache, %b: index, %h: index, %t: index, %d: index, %page: index) {
  kvcache.store %x, %k[%b, %h, %t, %d] : bf16, !cache
  kvcache.store %v, %k[%b, %h, %t, %d] : vector<8xbf16>, !cache
  kvcache.store %v, %k[%b, %h, %t, %d] page %page {note = "kept"} : vector<8xbf16>, !cache
  return
}

// The stored values themselves, without their scales.
// CHECK-LABEL: func.func @store_to_a_quantized_cache(
// CHECK:         kvcache.store %{{.*}}, %{{.*}}[{{.*}}] : vector<16xi8>, !kvcache.paged<i8, #[[$KV]], page_size = 64, scale = f32, granularity = 128>
func.func @store_to_a_quantized_cache(%v: vector<16xi8>, %k: !int8, %b: index, %h: index, %t: index, %d: index) {
  kvcache.store %v, %k[%b, %h, %t, %d] : vector<16xi8>, !int8
  return
}

// CHECK-LABEL: func.func @store_to_a_continuous_cache(
// CHECK:         kvcache.store %{{.*}}, %{{.*}}[{{.*}}] : vector<2xf16>, !kvcache.continuous<f16, #[[$KV]]>
func.func @store_to_a_continuous_cache(%v: vector<2xf16>, %k: !continuous, %b: index, %h: index, %t: index,
                                       %d: index) {
  kvcache.store %v, %k[%b, %h, %t, %d] : vector<2xf16>, !continuous
  return
}

// CHECK-LABEL: func.func @block_tile(
// CHECK-SAME:    %[[K:[^:]*]]: !kvcache.paged<bf16, #[[$KV]], page_size = 64>,
// CHECK-SAME:    %[[B:[^:]*]]: index, %[[H:[^:]*]]: index, %[[T:[^:]*]]: index, %[[D:[^:]*]]: index, %[[PAGE:[^:]*]]: index)
// CHECK:         kvcache.block_tile %[[K]][%[[B]], %[[H]], %[[T]], %[[D]]] : [[CACHE:!kvcache.paged<bf16, #kv, page_size = 64>]]
// CHECK-SAME:      -> memref<16x128xbf16, strided<[1024, 1], offset: ?>>
// CHECK:         kvcache.block_tile %[[K]][%[[B]], %[[H]], %[[T]], %[[D]]] page %[[PAGE]] {note = "kept"} : [[CACHE]]
// CHECK-SAME:      -> memref<64x32xbf16, strided<[1024, 1], offset: ?>>
func.func @block_tile(%k: !cache, %b: index, %h: index, %t: index, %d: index, %page: index) {
  %0 = kvcache.block_tile %k[%b, %h, %t, %d] : !cache -> memref<16x128xbf16, strided<[1024, 1], offset: ?>>
  %1 = kvcache.block_tile %k[%b, %h, %t, %d] page %page {note = "kept"}
         : !cache -> memref<64x32xbf16, strided<[1024, 1], offset: ?>>
  return
}

// That a page has room for the tile is known at run time.
// CHECK-LABEL: func.func @block_tile_of_pages_of_any_size(
// CHECK:         kvcache.block_tile %{{.*}}[{{.*}}] : !kvcache.paged<bf16, #[[$KV]], page_size = ?> -> memref<48x128xbf16, strided<[1024, 1], offset: ?>>
func.func @block_tile_of_pages_of_any_size(%k: !kvcache.paged<bf16, #kv, page_size = ?>, %b: index, %h: index,
                                           %t: index, %d: index) {
  %0 = kvcache.block_tile %k[%b, %h, %t, %d]
         : !kvcache.paged<bf16, #kv, page_size = ?> -> memref<48x128xbf16, strided<[1024, 1], offset: ?>>
  return
}

// Rows of a continuous cache have no page to stay in.
// CHECK-LABEL: func.func @block_tile_of_a_continuous_cache(
// CHECK:         kvcache.block_tile %{{.*}}[{{.*}}] : !kvcache.continuous<f16, #[[$KV]]> -> memref<48x128xf16, strided<[1024, 1], offset: ?>>
func.func @block_tile_of_a_continuous_cache(%k: !continuous, %b: index, %h: index, %t: index, %d: index) {
  %0 = kvcache.block_tile %k[%b, %h, %t, %d] : !continuous -> memref<48x128xf16, strided<[1024, 1], offset: ?>>
  return
}

// A byte holds two elements.
// CHECK-LABEL: func.func @block_tile_of_4_bit_elements(
// CHECK:         kvcache.block_tile %{{.*}}[{{.*}}] : !kvcache.paged<f4E2M1FN, #[[$KV]], page_size = 64, scale = f8E8M0FNU, granularity = 32>
// CHECK-SAME:      -> memref<16x64xi8, strided<[512, 1], offset: ?>>
func.func @block_tile_of_4_bit_elements(%k: !mxfp4, %b: index, %h: index, %t: index, %d: index) {
  %0 = kvcache.block_tile %k[%b, %h, %t, %d] : !mxfp4 -> memref<16x64xi8, strided<[512, 1], offset: ?>>
  return
}

// CHECK-LABEL: func.func @nontemporal(
// CHECK:         %[[V:.*]] = kvcache.load {{.*}} {nontemporal = true} : {{.*}} -> vector<8xbf16>
// CHECK:         kvcache.store %[[V]], {{.*}} {nontemporal = true} : vector<8xbf16>
// CHECK:         kvcache.load_quantized {{.*}} {nontemporal = true} : {{.*}} -> vector<16xi8>
// CHECK:         kvcache.store_quantized {{.*}} {nontemporal = true} : vector<128xbf16>
// CHECK:         kvcache.load %{{[^]]*}}] : {{.*}} -> bf16
func.func @nontemporal(%k: !cache, %q: !int8, %x: vector<128xbf16>, %b: index, %h: index, %t: index, %d: index) {
  %v = kvcache.load %k[%b, %h, %t, %d] {nontemporal = true} : !cache -> vector<8xbf16>
  kvcache.store %v, %k[%b, %h, %t, %d] {nontemporal = true} : vector<8xbf16>, !cache
  %w = kvcache.load_quantized %q[%b, %h, %t, %d] {nontemporal = true} : !int8 -> vector<16xi8>
  kvcache.store_quantized %x, %q[%b, %h, %t, %d] {nontemporal = true} : vector<128xbf16>, !int8
  %y = kvcache.load %k[%b, %h, %t, %d] {nontemporal = false} : !cache -> bf16
  return
}
