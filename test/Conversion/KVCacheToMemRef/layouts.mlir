// RUN: kvcache-opt %s --convert-kvcache-to-memref --canonicalize --cse | FileCheck %s

// Offsets in a page have 32 bits where the type proves that they suffice, and an
// access is as aligned as the strides of the type.

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!hnd = !kvcache.paged<bf16, #kv, page_size = 64, layout = hnd>
!open = !kvcache.paged<bf16, #kv, page_size = 64, layout = [token = 256, head = ?]>
!far = !kvcache.paged<bf16, #kv, page_size = 64, layout = [token = 128, head = 1073741824]>
!odd = !kvcache.paged<f8E4M3FN, #kv, page_size = 64, layout = [token = 132, head = 8448]>
!scaled = !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 64, layout = hnd, scale_layout = [token = 2, head = ?]>
!csr = !kvcache.paged<bf16, #kv, page_size = 16, table = csr>
!rows = !kvcache.paged<bf16, #kv, page_size = 1, table = rows>

// CHECK-LABEL: func.func @hnd(
// CHECK-SAME:    %[[H:arg11]]: index, %[[T:arg12]]: index, %[[D:arg13]]: index, %[[PAGE:arg14]]: index)
// CHECK-DAG:     %[[H32:.*]] = arith.index_castui %[[H]] : index to i32
// CHECK-DAG:     %[[D32:.*]] = arith.index_castui %[[D]] : index to i32
// CHECK:         %[[ROW:.*]] = arith.remui %{{.*}}, %c64_i32 : i32
// CHECK:         %[[TOKEN:.*]] = arith.muli %[[ROW]], %c128_i32 overflow<nsw, nuw> : i32
// CHECK:         %[[HEAD:.*]] = arith.muli %[[H32]], %c8192_i32 overflow<nsw, nuw> : i32
// CHECK:         %[[SUM:.*]] = arith.addi %[[TOKEN]], %[[HEAD]] overflow<nsw, nuw> : i32
// CHECK:         arith.addi %[[SUM]], %[[D32]] overflow<nsw, nuw> : i32
// CHECK:         vector.load %{{.*}} {alignment = 16 : i64}
func.func @hnd(%k: !hnd, %b: index, %h: index, %t: index, %d: index, %p: index) -> vector<8xbf16> {
  %v = kvcache.load %k[%b, %h, %t, %d] page %p : !hnd -> vector<8xbf16>
  return %v : vector<8xbf16>
}

// The open stride of heads, the part after that of pages, costs one wide multiplication.
// CHECK-LABEL: func.func @open(
// CHECK-SAME:    %arg0: memref<bf16, strided<[], offset: ?>>, %arg1: i32, %arg2: index, %[[STRIDE:arg3]]: index,
// CHECK-SAME:    %[[H:arg12]]: index, %[[T:arg13]]: index, %[[D:arg14]]: index, %[[PAGE:arg15]]: index)
// CHECK:         %[[TOKEN:.*]] = arith.muli %{{.*}}, %c256_i32 overflow<nsw, nuw> : i32
// CHECK:         %[[HEAD:.*]] = arith.muli %[[H]], %[[STRIDE]] overflow<nsw, nuw> : index
// CHECK:         arith.addi %[[TOKEN]], %{{.*}} overflow<nsw, nuw> : i32
// CHECK:         vector.load %{{.*}} {alignment = 16 : i64}
func.func @open(%k: !open, %b: index, %h: index, %t: index, %d: index, %p: index) -> vector<8xbf16> {
  %v = kvcache.load %k[%b, %h, %t, %d] page %p : !open -> vector<8xbf16>
  return %v : vector<8xbf16>
}

// CHECK-LABEL: func.func @far(
// CHECK:         arith.muli %{{.*}}, %c128_i32 overflow<nsw, nuw> : i32
// CHECK:         arith.muli %{{.*}}, %c1073741824 overflow<nsw, nuw> : index
func.func @far(%k: !far, %b: index, %h: index, %t: index, %d: index, %p: index) -> vector<8xbf16> {
  %v = kvcache.load %k[%b, %h, %t, %d] page %p : !far -> vector<8xbf16>
  return %v : vector<8xbf16>
}

// CHECK-LABEL: func.func @odd(
// CHECK:         vector.load %{{.*}} {alignment = 4 : i64} : memref<?xf8E4M3FN, strided<[1], offset: ?>>, vector<16xf8E4M3FN>
func.func @odd(%k: !odd, %b: index, %h: index, %t: index, %d: index, %p: index) -> vector<16xf8E4M3FN> {
  %v = kvcache.load %k[%b, %h, %t, %d] page %p : !odd -> vector<16xf8E4M3FN>
  return %v : vector<16xf8E4M3FN>
}

// An open stride of scales is any number of them.
// CHECK-LABEL: func.func @scales(
// CHECK:         vector.load %{{.*}} {alignment = 4 : i64} : memref<?xf32, strided<[1], offset: ?>>, vector<2xf32>
func.func @scales(%k: !scaled, %b: index, %h: index, %t: index, %d: index, %p: index) -> vector<2xf32> {
  %v = kvcache.load_scale %k[%b, %h, %t, %d] scale_page %p : !scaled -> vector<2xf32>
  return %v : vector<2xf32>
}

// CHECK-LABEL: func.func @rows_are_tokens_apart(
// CHECK-SAME:    %[[PAGE_STRIDE:arg2]]: index
// CHECK:         arith.divui %[[PAGE_STRIDE]], %c128 : index
func.func @rows_are_tokens_apart(%k: !hnd, %b: index, %t: index, %p: index) -> index {
  %r = kvcache.row_index %k[%b, %t] page %p : !hnd
  return %r : index
}

// CHECK-LABEL: func.func @columns(
// CHECK-SAME:    %[[STRIDE:arg3]]: index
// CHECK-DAG:     arith.muli %{{.*}}, %c8192 overflow<nsw, nuw> : index
// CHECK-DAG:     arith.muli %{{.*}}, %[[STRIDE]] overflow<nsw, nuw> : index
func.func @columns(%o: !open, %k: !hnd, %h: index) -> (index, index) {
  %r = kvcache.col_index %k[%h] : !hnd
  %s = kvcache.col_index %o[%h] : !open
  return %r, %s : index, index
}

// CHECK-LABEL: func.func @csr(
// CHECK-SAME:    %[[TABLE:arg5]]: memref<i32, strided<[], offset: ?>>, %[[COLUMNS:arg6]]: i32, %[[STARTS:arg7]]: memref<i32, strided<[], offset: ?>>, %arg8: i32, %arg9: i32, %[[B:arg10]]: index, %[[T:arg11]]: index)
// CHECK:         %[[COLUMN:.*]] = arith.divui %{{.*}}, %c16_i32 : i32
// CHECK:         %[[START:.*]] = memref.load %{{.*}}[%[[B]]]
// CHECK:         memref.load
func.func @csr(%k: !csr, %b: index, %t: index) -> index {
  %r = kvcache.page_id %k[%b, %t] : !csr
  return %r : index
}

// CHECK-LABEL: func.func @rows(
// CHECK-SAME:    %arg5: memref<i32, strided<[], offset: ?>>, %arg6: i32, %[[STRIDE:arg7]]: i32, %[[ROWS:arg8]]: memref<i32, strided<[], offset: ?>>, %[[NUM_ROWS:arg9]]: i32,
// CHECK:         memref.load
// CHECK:         memref.load
func.func @rows(%k: !rows, %b: index, %t: index) -> index {
  %r = kvcache.page_id %k[%b, %t] : !rows
  return %r : index
}

// The names of the arguments say which are more than those of packed rows with a
// dense table.

!open_scaled = !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 64, layout = [token = 132, head = ?], scale_layout = [token = 33, head = ?]>

// CHECK-LABEL: func.func @names(
// CHECK-SAME:    kvcache.name = "o.blocks"},
// CHECK-SAME:    kvcache.name = "o.num_pages"},
// CHECK-SAME:    index {kvcache.name = "o.page_stride"},
// CHECK-SAME:    index {kvcache.name = "o.head_stride"},
// CHECK-SAME:    kvcache.name = "o.cache_lengths"},
// CHECK-SAME:    kvcache.name = "o.batch"},
// CHECK-SAME:    kvcache.name = "o.lookup_table"},
// CHECK-SAME:    kvcache.name = "o.table_columns"},
// CHECK-SAME:    kvcache.name = "o.table_stride"},
// CHECK-SAME:    kvcache.name = "o.max_seq_length"},
// CHECK-SAME:    kvcache.name = "o.max_cache_length"},
// CHECK-SAME:    kvcache.name = "o.scales"},
// CHECK-SAME:    index {kvcache.name = "o.scale_page_stride"},
// CHECK-SAME:    index {kvcache.name = "o.scale_head_stride"}
// CHECK-SAME:    kvcache.name = "c.lookup_table"},
// CHECK-SAME:    i32 {kvcache.name = "c.table_columns"},
// CHECK-SAME:    memref<i32, strided<[], offset: ?>> {kvcache.name = "c.table_starts"},
// CHECK-SAME:    kvcache.name = "c.max_seq_length"},
// CHECK-SAME:    kvcache.name = "r.table_columns"},
// CHECK-SAME:    i32 {kvcache.name = "r.table_stride"},
// CHECK-SAME:    memref<i32, strided<[], offset: ?>> {kvcache.name = "r.table_rows"},
// CHECK-SAME:    i32 {kvcache.name = "r.num_table_rows"},
// CHECK-SAME:    kvcache.name = "r.max_seq_length"},
func.func @names(%o: !open_scaled {kvcache.name = "o"}, %c: !csr {kvcache.name = "c"}, %r: !rows {kvcache.name = "r"}) {
  return
}
