// RUN: kvcache-opt %s --convert-kvcache-to-memref --cse --split-input-file | FileCheck %s --implicit-check-not="{{!kvcache[.]|kvcache[.][a-z_]+ [%a-z]}}"

!collection = !kvcache.paged_collection<bf16, <num_heads = 8, head_size = 128>, page_size = ?>

// A page of no rows is no reason to divide by zero.

// CHECK-LABEL: func.func @collection(
// CHECK-SAME:      %[[BLOCKS:[^:]*]]: memref<?x2x?x?x8x128xbf16>
// CHECK:         memref.extract_strided_metadata %[[BLOCKS]]
// CHECK:         %[[TOKENS:.*]] = arith.index_castui %{{.*}}#3 : index to i32
// CHECK:         %[[ONE:.*]] = arith.constant 1 : i32
// CHECK:         %[[P:.*]] = arith.maxui %[[TOKENS]], %[[ONE]] : i32
// CHECK:         return %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[P]],
func.func @collection(%blocks: memref<?x2x?x?x8x128xbf16>, %lengths: memref<?xi32>, %lut: memref<?x?xi32>, %max: i32)
    -> !collection {
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
      : memref<?x2x?x?x8x128xbf16>, memref<?xi32>, memref<?x?xi32> -> !collection
  return %c : !collection
}

// -----

!cache = !kvcache.paged<bf16, <num_heads = 8, head_size = 128>, page_size = ?>

// A token is divided by the page size once, however many accesses it has.

// CHECK-LABEL: func.func @loads(
// CHECK-SAME:      %{{[^:]*}}: memref<bf16, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: index, %[[P:[^:]*]]: i32,
// CHECK-SAME:      %[[TOKEN:[^:]*]]: index, %[[D:[^:]*]]: index)
// CHECK-NOT:     arith.{{div|rem}}
// CHECK:         %[[T:.*]] = arith.index_castui %[[TOKEN]] : index to i32
// CHECK:         %[[COLUMN:.*]] = arith.divui %[[T]], %[[P]] : i32
// CHECK:         %[[FIRST:.*]] = arith.muli %[[COLUMN]], %[[P]] overflow<nsw, nuw> : i32
// CHECK:         arith.subi %[[T]], %[[FIRST]] overflow<nsw, nuw> : i32
// CHECK:         arith.index_castui %[[COLUMN]] : i32 to index
// CHECK:         vector.load
// CHECK-NOT:     arith.{{div|rem}}
// CHECK:         vector.load
func.func @loads(%k: !cache, %b: index, %h: index, %t: index, %d: index) -> (vector<8xbf16>, vector<8xbf16>) {
  %v = kvcache.load %k[%b, %h, %t, %d] : !cache -> vector<8xbf16>
  %w = kvcache.load %k[%b, %b, %t, %d] : !cache -> vector<8xbf16>
  return %v, %w : vector<8xbf16>, vector<8xbf16>
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = ?>
!quantized = !kvcache.paged<f8E4M3FN, #kv, page_size = ?, scale = f32, granularity = 128>

// CHECK-LABEL: func.func @page_size(
// CHECK-SAME:      %{{[^:]*}}: index, %[[P:[^:]*]]: i32, %{{[^:]*}}: memref
// CHECK:         %[[SIZE:.*]] = arith.index_castui %[[P]] : i32 to index
// CHECK:         return %[[SIZE]] : index
func.func @page_size(%k: !cache) -> index {
  %size = kvcache.extent page_size %k : !cache
  return %size : index
}

// An encoded row may be that of any of 2^32 pages, which takes a division of 64 bits.

// CHECK-LABEL: func.func @tma_row(
// CHECK-SAME:      %{{[^:]*}}: index, %[[P:[^:]*]]: i32, {{.*}}, %[[ENCODED:[^:]*]]: index)
// CHECK:         %[[SIZE:.*]] = arith.index_castui %[[P]] : i32 to index
// CHECK:         arith.divui %[[ENCODED]], %[[SIZE]] : index
// CHECK:         arith.remui %[[ENCODED]], %[[SIZE]] : index
func.func @tma_row(%k: !cache, %encoded: index) -> index {
  %row = kvcache.tma_row %k[%encoded] : !cache
  return %row : index
}

// The scales have the cache's pages.

// CHECK-LABEL: func.func @scales_view(
// CHECK-SAME:      %{{[^:]*}}: memref<f8E4M3FN, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: index, %[[P:[^:]*]]: i32,
// CHECK:         return %[[P]], %
func.func @scales_view(%k: !quantized) -> !kvcache.scales<!quantized> {
  %s = kvcache.scales_view %k : !quantized
  return %s : !kvcache.scales<!quantized>
}

// CHECK-LABEL: func.func @scales_base(
// CHECK-SAME:      %{{[^:]*}}: memref<f8E4M3FN, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: index, %[[P:[^:]*]]: i32,
// CHECK:         %[[SIZE:.*]] = arith.index_castui %[[P]] : i32 to index
// CHECK:         memref.reinterpret_cast %{{.*}} to offset: [%{{.*}}], sizes: [%{{.*}}, %[[SIZE]], 8, 1], strides: [%{{.*}}, 8, 1, 1]
func.func @scales_base(%k: !quantized) -> memref<?x?x8x1xf32, strided<[?, 8, 1, 1], offset: ?>> {
  %s = kvcache.scales_base %k : !quantized
  return %s : memref<?x?x8x1xf32, strided<[?, 8, 1, 1], offset: ?>>
}
