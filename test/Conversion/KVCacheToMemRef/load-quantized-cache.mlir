// RUN: kvcache-opt %s --convert-kvcache-to-memref --cse --split-input-file | FileCheck %s --implicit-check-not="{{!kvcache[.]|kvcache[.][a-z_]+ [%a-z]|unrealized}}"

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!fp8 = !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 32>
!per_head = !kvcache.paged<f8E4M3FN, #kv, page_size = 64, scale = f32, granularity = 128>

// Scales have a base, a page distance and a table of their own. Lanes that lie
// in one group take one scale.

// CHECK-LABEL: func.func @scale_of_the_own_table(
// CHECK-SAME:      %{{[^:]*}}: memref<f8E4M3FN, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: index, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %[[BATCH:[^:]*]]: i32, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %[[SCALES:[^:]*]]: memref<f32, strided<[], offset: ?>>, %[[SCALE_PAGES:[^:]*]]: i32, %[[SCALE_STRIDE:[^:]*]]: index, %[[SLUT:[^:]*]]: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %[[SLUT_STRIDE:[^:]*]]: i32,
// CHECK-SAME:      %[[B:[^:]*]]: index, %[[H:[^:]*]]: index, %[[T:[^:]*]]: index, %[[D:[^:]*]]: index)
// CHECK-DAG:     %[[H32:.*]] = arith.index_castui %[[H]] : index to i32
// CHECK-DAG:     %[[D32:.*]] = arith.index_castui %[[D]] : index to i32
// CHECK-DAG:     %[[T32:.*]] = arith.index_castui %[[T]] : index to i32
// CHECK-DAG:     %[[P:.*]] = arith.constant 64 : i32
// CHECK-DAG:     %[[ROW:.*]] = arith.remui %[[T32]], %[[P]] : i32
// CHECK-DAG:     %[[COLUMN32:.*]] = arith.divui %[[T32]], %[[P]] : i32
// CHECK-DAG:     %[[COLUMN:.*]] = arith.index_castui %[[COLUMN32]] : i32 to index
// CHECK:         %[[VALUES:.*]] = vector.load {{.*}} {alignment = 16 : i64} : memref<?xf8E4M3FN, strided<[1], offset: ?>>, vector<16xf8E4M3FN>
// CHECK:         %[[HG_OR_G:.*]] = arith.constant 32 : i32
// CHECK:         %[[ROW_OFFSET:.*]] = arith.muli %[[ROW]], %[[HG_OR_G]] overflow<nsw, nuw> : i32
// CHECK:         %[[GROUPS:.*]] = arith.constant 4 : i32
// CHECK:         %[[HEAD_OFFSET:.*]] = arith.muli %[[H32]], %[[GROUPS]] overflow<nsw, nuw> : i32
// CHECK:         %[[ROW_AND_HEAD:.*]] = arith.addi %[[ROW_OFFSET]], %[[HEAD_OFFSET]] overflow<nsw, nuw> : i32
// CHECK:         %[[GROUP:.*]] = arith.divui %[[D32]], %[[HG_OR_G]] : i32
// CHECK:         %[[IN_PAGE32:.*]] = arith.addi %[[ROW_AND_HEAD]], %[[GROUP]] overflow<nsw, nuw> : i32
// CHECK:         %[[IN_PAGE:.*]] = arith.index_castui %[[IN_PAGE32]] : i32 to index
// CHECK:         %[[STRIDE:.*]] = arith.index_castui %[[SLUT_STRIDE]] : i32 to index
// CHECK:         %[[ENTRIES:.*]] = arith.muli %{{.*}}, %[[STRIDE]] overflow<nsw, nuw> : index
// CHECK:         %[[SLUT_BASE:.*]], %[[SLUT_OFFSET:.*]] = memref.extract_strided_metadata %[[SLUT]]
// CHECK:         %[[TABLE:.*]] = memref.reinterpret_cast %[[SLUT_BASE]] to offset: [%[[SLUT_OFFSET]]], sizes: [%[[ENTRIES]]], strides: [1]
// CHECK:         %[[TABLE_ROW:.*]] = arith.muli %[[B]], %[[STRIDE]] overflow<nsw, nuw> : index
// CHECK:         %[[ENTRY_INDEX:.*]] = arith.addi %[[TABLE_ROW]], %[[COLUMN]] overflow<nsw, nuw> : index
// CHECK:         %[[ENTRY:.*]] = memref.load %[[TABLE]][%[[ENTRY_INDEX]]]
// CHECK:         %[[PAGE:.*]] = arith.index_castui %[[ENTRY]] : i32 to index
// CHECK:         %[[PAGE_OFFSET:.*]] = arith.muli %[[PAGE]], %[[SCALE_STRIDE]] overflow<nsw, nuw> : index
// CHECK:         %[[POSITION:.*]] = arith.addi %[[PAGE_OFFSET]], %[[IN_PAGE]] overflow<nsw, nuw> : index
// CHECK:         %[[NB:.*]] = arith.index_castui %[[SCALE_PAGES]] : i32 to index
// CHECK:         %[[SIZE:.*]] = arith.muli %[[NB]], %[[SCALE_STRIDE]] overflow<nsw, nuw> : index
// CHECK:         %[[BASE:.*]], %[[OFFSET:.*]] = memref.extract_strided_metadata %[[SCALES]]
// CHECK:         %[[WINDOW:.*]] = memref.reinterpret_cast %[[BASE]] to offset: [%[[OFFSET]]], sizes: [%[[SIZE]]], strides: [1]
// CHECK:         %[[SCALE:.*]] = memref.load %[[WINDOW]][%[[POSITION]]] : memref<?xf32, strided<[1], offset: ?>>
// CHECK:         %[[WIDE:.*]] = arith.extf %[[VALUES]] : vector<16xf8E4M3FN> to vector<16xf32>
// CHECK:         %[[SPREAD:.*]] = vector.broadcast %[[SCALE]] : f32 to vector<16xf32>
// CHECK:         %[[PRODUCT:.*]] = arith.mulf %[[WIDE]], %[[SPREAD]] : vector<16xf32>
// CHECK:         %[[RESULT:.*]] = arith.truncf %[[PRODUCT]] : vector<16xf32> to vector<16xbf16>
// CHECK:         return %[[RESULT]]
func.func @scale_of_the_own_table(%k: !fp8, %b: index, %h: index, %t: index, %d: index) -> vector<16xbf16> {
  %v = kvcache.load %k[%b, %h, %t, %d] : !fp8 -> vector<16xbf16>
  return %v : vector<16xbf16>
}

// One group per head: there is nothing to divide.

// CHECK-LABEL: func.func @one_group_per_head(
// CHECK-SAME:      %[[D:[^:]*]]: index)
// CHECK:         %[[D32:.*]] = arith.index_castui %[[D]] : index to i32
// CHECK-NOT:     arith.divui %[[D32]]
// CHECK:         memref.load {{.*}} : memref<?xf32,
// CHECK-NOT:     arith.divui %[[D32]]
// CHECK:         return
func.func @one_group_per_head(%k: !per_head, %b: index, %h: index, %t: index, %d: index) -> vector<16xbf16> {
  %v = kvcache.load %k[%b, %h, %t, %d] : !per_head -> vector<16xbf16>
  return %v : vector<16xbf16>
}

// CHECK-LABEL: func.func @scalar(
// CHECK:         %[[VALUE:.*]] = memref.load {{.*}} : memref<?xf8E4M3FN,
// CHECK:         %[[SCALE:.*]] = memref.load {{.*}} : memref<?xf32,
// CHECK:         %[[WIDE:.*]] = arith.extf %[[VALUE]] : f8E4M3FN to f32
// CHECK:         %[[PRODUCT:.*]] = arith.mulf %[[WIDE]], %[[SCALE]] : f32
// CHECK:         arith.extf %[[PRODUCT]] : f32 to f64
func.func @scalar(%k: !fp8, %b: index) -> f64 {
  %v = kvcache.load %k[%b, %b, %b, %b] : !fp8 -> f64
  return %v : f64
}

// Known pages spare both tables.

// CHECK-LABEL: func.func @known_pages(
// CHECK-SAME:      %{{[^:]*}}: memref<f8E4M3FN, strided<[], offset: ?>>, %{{[^:]*}}: i32, %[[PAGE_STRIDE:[^:]*]]: index, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: memref<f32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %[[SCALE_STRIDE:[^:]*]]: index, %{{[^:]*}}: memref<i32, strided<[], offset: ?>>, %{{[^:]*}}: i32, %{{[^:]*}}: i32,
// CHECK-SAME:      %[[PAGE:[^:]*]]: index, %[[SCALE_PAGE:[^:]*]]: index)
// CHECK-NOT:     memref<?xi32
// CHECK:         arith.muli %[[PAGE]], %[[PAGE_STRIDE]]
// CHECK-NOT:     memref<?xi32
// CHECK:         arith.muli %[[SCALE_PAGE]], %[[SCALE_STRIDE]]
// CHECK-NOT:     memref<?xi32
// CHECK:         return
func.func @known_pages(%k: !fp8, %b: index, %page: index, %scale_page: index) -> vector<16xf32> {
  %v = kvcache.load %k[%b, %b, %b, %b] page %page scale_page %scale_page : !fp8 -> vector<16xf32>
  return %v : vector<16xf32>
}

// Lanes that are whole groups take their scales in one read, as aligned as
// scales are.

// CHECK-LABEL: func.func @whole_groups(
// CHECK:         vector.load {{.*}} {alignment = 16 : i64} : memref<?xf8E4M3FN, {{.*}}>, vector<64xf8E4M3FN>
// CHECK:         %[[SCALES:.*]] = vector.load {{.*}} {alignment = 8 : i64} : memref<?xf32, {{.*}}>, vector<2xf32>
// CHECK-NOT:     memref<?xf32
// CHECK:         %[[SPREAD:.*]] = vector.shuffle %[[SCALES]], %[[SCALES]] [{{(0, ){32}(1, ){31}1}}]
// CHECK:         arith.mulf %{{.*}}, %[[SPREAD]] : vector<64xf32>
func.func @whole_groups(%k: !fp8, %b: index) -> vector<64xf32> {
  %v = kvcache.load %k[%b, %b, %b, %b] : !fp8 -> vector<64xf32>
  return %v : vector<64xf32>
}

// CHECK-LABEL: func.func @whole_head(
// CHECK:         vector.load {{.*}} {alignment = 16 : i64} : memref<?xf32, {{.*}}>, vector<4xf32>
// CHECK:         vector.shuffle {{.*}} [{{(0, ){32}(1, ){32}(2, ){32}(3, ){31}3}}]
func.func @whole_head(%k: !fp8, %b: index) -> vector<128xf32> {
  %v = kvcache.load %k[%b, %b, %b, %b] : !fp8 -> vector<128xf32>
  return %v : vector<128xf32>
}

// -----

!ragged = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 80>, page_size = 64, scale = f32, granularity = 32>

// The last group of a head may be shorter. A row of scales is 24 of them.

// CHECK-LABEL: func.func @ragged_head(
// CHECK:         vector.load {{.*}} {alignment = 16 : i64} : memref<?xf8E4M3FN, {{.*}}>, vector<80xf8E4M3FN>
// CHECK:         %[[ROW:.*]] = arith.constant 24 : i32
// CHECK:         arith.muli %{{.*}}, %[[ROW]] overflow<nsw, nuw> : i32
// CHECK:         %[[GROUPS:.*]] = arith.constant 3 : i32
// CHECK:         arith.muli %{{.*}}, %[[GROUPS]] overflow<nsw, nuw> : i32
// CHECK:         vector.load {{.*}} {alignment = 4 : i64} : memref<?xf32, {{.*}}>, vector<3xf32>
// CHECK:         vector.shuffle {{.*}} [{{(0, ){32}(1, ){32}(2, ){15}2}}]
func.func @ragged_head(%k: !ragged, %b: index, %d: index) -> vector<80xf32> {
  %v = kvcache.load %k[%b, %b, %b, %d] : !ragged -> vector<80xf32>
  return %v : vector<80xf32>
}

// More than half a head starts at its first element.

// CHECK-LABEL: func.func @most_of_a_ragged_head(
// CHECK:         vector.load {{.*}} {alignment = 4 : i64} : memref<?xf32, {{.*}}>, vector<2xf32>
// CHECK:         vector.shuffle {{.*}} [{{(0, ){32}(1, ){15}1}}]
func.func @most_of_a_ragged_head(%k: !ragged, %b: index, %d: index) -> vector<48xf32> {
  %v = kvcache.load %k[%b, %b, %b, %d] : !ragged -> vector<48xf32>
  return %v : vector<48xf32>
}

// CHECK-LABEL: func.func @part_of_the_ragged_group(
// CHECK:         memref.load {{.*}} : memref<?xf32,
// CHECK-NOT:     memref<?xf32
// CHECK:         vector.broadcast %{{.*}} : f32 to vector<16xf32>
func.func @part_of_the_ragged_group(%k: !ragged, %b: index, %d: index) -> vector<16xf32> {
  %v = kvcache.load %k[%b, %b, %b, %d] : !ragged -> vector<16xf32>
  return %v : vector<16xf32>
}

// -----

!cache = !kvcache.paged<f8E4M3FN, <num_heads = 8, head_size = 96>, page_size = 64, scale = f16, granularity = 24>

// Groups that start anywhere in the lanes: a scale for every 8 of them.

// CHECK-LABEL: func.func @groups_that_start_anywhere(
// CHECK-SAME:      %[[D:[^:]*]]: index)
// CHECK:         %[[D32:.*]] = arith.index_castui %[[D]] : index to i32
// CHECK:         %[[G:.*]] = arith.constant 24 : i32
// CHECK:         arith.divui %[[D32]], %[[G]] : i32
// CHECK:         %[[FIRST:.*]] = memref.load {{.*}} : memref<?xf16,
// CHECK:         %[[STEP:.*]] = arith.constant 8 : index
// CHECK:         %[[NEXT:.*]] = arith.addi %[[D]], %[[STEP]] overflow<nsw, nuw> : index
// CHECK:         %[[NEXT32:.*]] = arith.index_castui %[[NEXT]] : index to i32
// CHECK:         arith.divui %[[NEXT32]], %[[G]] : i32
// CHECK:         %[[SECOND:.*]] = memref.load {{.*}} : memref<?xf16,
// CHECK-NOT:     memref<?xf16
// CHECK:         %[[SCALES:.*]] = vector.from_elements %[[FIRST]], %[[SECOND]] : vector<2xf16>
// CHECK:         %[[SPREAD:.*]] = vector.shuffle %[[SCALES]], %[[SCALES]] [{{(0, ){8}(1, ){7}1}}]
// CHECK:         %[[PRODUCT:.*]] = arith.mulf %{{.*}}, %[[SPREAD]] : vector<16xf16>
// CHECK:         arith.extf %[[PRODUCT]] : vector<16xf16> to vector<16xf32>
func.func @groups_that_start_anywhere(%k: !cache, %b: index, %d: index) -> vector<16xf32> {
  %v = kvcache.load %k[%b, %b, %b, %d] : !cache -> vector<16xf32>
  return %v : vector<16xf32>
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!nvfp4 = !kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E4M3FN, granularity = 16>
!mxfp4 = !kvcache.paged<f4E2M1FN, #kv, page_size = 64, scale = f8E8M0FNU, granularity = 32>

// Elements of 4 bits are read as bytes, two in each. Scales of 8 bits widen to
// f32, and the scale of the tensor multiplies them.

// CHECK-LABEL: func.func @nvfp4(
// CHECK-SAME:      %[[D:[^:]*]]: index, %[[TENSOR_SCALE:[^:]*]]: f32)
// CHECK:         %[[D32:.*]] = arith.index_castui %[[D]] : index to i32
// CHECK:         %[[TWO:.*]] = arith.constant 2 : i32
// CHECK:         arith.divui %[[D32]], %[[TWO]] : i32
// CHECK:         %[[BYTES:.*]] = vector.load {{.*}} {alignment = 16 : i64} : memref<?xi8, {{.*}}>, vector<16xi8>
// CHECK:         %[[VALUES:.*]] = vector.bitcast %[[BYTES]] : vector<16xi8> to vector<32xf4E2M1FN>
// CHECK:         %[[G:.*]] = arith.constant 16 : i32
// CHECK:         arith.divui %[[D32]], %[[G]] : i32
// CHECK:         %[[SCALES:.*]] = vector.load {{.*}} {alignment = 2 : i64} : memref<?xf8E4M3FN, {{.*}}>, vector<2xf8E4M3FN>
// CHECK:         %[[WIDE_SCALES:.*]] = arith.extf %[[SCALES]] : vector<2xf8E4M3FN> to vector<2xf32>
// CHECK:         %[[OF_TENSOR:.*]] = vector.broadcast %[[TENSOR_SCALE]] : f32 to vector<2xf32>
// CHECK:         %[[BOTH:.*]] = arith.mulf %[[WIDE_SCALES]], %[[OF_TENSOR]] : vector<2xf32>
// CHECK:         %[[WIDE:.*]] = arith.extf %[[VALUES]] : vector<32xf4E2M1FN> to vector<32xf32>
// CHECK:         %[[SPREAD:.*]] = vector.shuffle %[[BOTH]], %[[BOTH]]
// CHECK:         arith.mulf %[[WIDE]], %[[SPREAD]] : vector<32xf32>
func.func @nvfp4(%k: !nvfp4, %b: index, %d: index, %s: f32) -> vector<32xf32> {
  %v = kvcache.load %k[%b, %b, %b, %d] tensor_scale %s : !nvfp4 -> vector<32xf32>
  return %v : vector<32xf32>
}

// CHECK-LABEL: func.func @mxfp4(
// CHECK:         vector.load {{.*}} {alignment = 4 : i64} : memref<?xi8, {{.*}}>, vector<4xi8>
// CHECK:         %[[SCALE:.*]] = memref.load {{.*}} : memref<?xf8E8M0FNU,
// CHECK:         %[[BITS:.*]] = arith.bitcast %[[SCALE]] : f8E8M0FNU to i8
// CHECK:         %[[HIDDEN:.*]] = builtin.unrealized_conversion_cast %[[BITS]] : i8 to f8E8M0FNU
// CHECK:         arith.extf %[[HIDDEN]] : f8E8M0FNU to f32
func.func @mxfp4(%k: !mxfp4, %b: index) -> vector<8xf16> {
  %v = kvcache.load %k[%b, %b, %b, %b] : !mxfp4 -> vector<8xf16>
  return %v : vector<8xf16>
}
