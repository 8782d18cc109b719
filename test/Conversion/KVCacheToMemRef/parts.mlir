// RUN: kvcache-opt %s --convert-kvcache-to-memref --cse | FileCheck %s --implicit-check-not="{{!kvcache[.]|kvcache[.][a-z_]+ [%a-z]|unrealized}}"

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = ?, layout = [token = 256, head = ?]>
!rows = !kvcache.paged<bf16, #kv, page_size = 64, table = rows>

// CHECK-LABEL: func.func @blocks(
// CHECK-SAME:      %[[BLOCKS:[^:]*]]: memref<bf16, strided<[], offset: ?>>, %[[PAGES:[^:]*]]: i32, %[[LAYERS:[^:]*]]: i32, %[[ROLE:[^:]*]]: index, %[[LAYER:[^:]*]]: index, %[[PAGE:[^:]*]]: index, %[[HEAD:[^:]*]]: index, %[[TOKENS:[^:]*]]: i32,
// CHECK-DAG:     %[[BASE:.*]], %[[OFFSET:.*]] = memref.extract_strided_metadata %[[BLOCKS]]
// CHECK-DAG:     %[[NB:.*]] = arith.index_castui %[[PAGES]] : i32 to index
// CHECK-DAG:     %[[NL:.*]] = arith.index_castui %[[LAYERS]] : i32 to index
// CHECK-DAG:     %[[P:.*]] = arith.index_castui %[[TOKENS]] : i32 to index
// CHECK:         %[[WINDOW:.*]] = memref.reinterpret_cast %[[BASE]] to offset: [%[[OFFSET]]], sizes: [%[[NB]], 2, %[[NL]], %[[P]], 8, 128], strides: [%[[PAGE]], %[[ROLE]], %[[LAYER]], 256, %[[HEAD]], 1]
// CHECK:         return %[[WINDOW]]
func.func @blocks(%c: !collection) -> memref<?x2x?x?x8x128xbf16, strided<[?, ?, ?, 256, ?, 1], offset: ?>> {
  %m = kvcache.blocks %c : !collection
  return %m : memref<?x2x?x?x8x128xbf16, strided<[?, ?, ?, 256, ?, 1], offset: ?>>
}

// CHECK-LABEL: func.func @table_and_lengths(
// CHECK-SAME:      %[[LENGTHS:[^:]*]]: memref<i32, strided<[], offset: ?>>, %[[BATCH:[^:]*]]: i32, %[[TABLE:[^:]*]]: memref<i32, strided<[], offset: ?>>, %[[COLUMNS:[^:]*]]: i32, %[[STRIDE:[^:]*]]: i32, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %[[ROWS:[^:]*]]: i32,
// CHECK-DAG:     %[[NR:.*]] = arith.index_castui %[[ROWS]] : i32 to index
// CHECK-DAG:     %[[NC:.*]] = arith.index_castui %[[COLUMNS]] : i32 to index
// CHECK-DAG:     %[[D:.*]] = arith.index_castui %[[STRIDE]] : i32 to index
// CHECK-DAG:     memref.reinterpret_cast %{{.*}} to offset: [%{{.*}}], sizes: [%[[NR]], %[[NC]]], strides: [%[[D]], 1] : memref<i32> to memref<?x?xi32, strided<[?, 1], offset: ?>>
// CHECK-DAG:     %[[NB:.*]] = arith.index_castui %[[BATCH]] : i32 to index
// CHECK-DAG:     memref.reinterpret_cast %{{.*}} to offset: [%{{.*}}], sizes: [%[[NB]]], strides: [1] : memref<i32> to memref<?xi32, strided<[1], offset: ?>>
func.func @table_and_lengths(%k: !rows) -> (memref<?x?xi32, strided<[?, 1], offset: ?>>, memref<?xi32, strided<[1], offset: ?>>) {
  %t = kvcache.lookup_table %k : !rows
  %l = kvcache.cache_lengths %k : !rows
  return %t, %l : memref<?x?xi32, strided<[?, 1], offset: ?>>, memref<?xi32, strided<[1], offset: ?>>
}
