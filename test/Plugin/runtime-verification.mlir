// The checks of upstream's pass are those of ours.

// RUN: mlir-opt %s %kvcache_plugin --generate-runtime-verification | FileCheck %s
// RUN: mlir-opt %s %kvcache_plugin --generate-runtime-verification -o %t.upstream
// RUN: kvcache-opt %s --kvcache-bounds-checks -o %t.ours
// RUN: diff %t.upstream %t.ours

// They lower with the rest.
// RUN: mlir-opt %t.upstream %kvcache_plugin --pass-pipeline="builtin.module(kvcache-to-cpu)" | FileCheck %s --check-prefix=LOWERED

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!rows = !kvcache.row_indices<rows = 128, page_size = 64>
!tile = !kvcache.tile<64x128xbf16>

// CHECK-LABEL: func.func @access(
// CHECK:         kvcache.check %{{.*}} below %{{.*}}, "'kvcache.paged_view' op layer"
// CHECK:         kvcache.paged_view
// CHECK:         kvcache.check %{{.*}} below %{{.*}}, "'kvcache.load' op sequence"
// CHECK:         kvcache.check %{{.*}} below %{{.*}}, "'kvcache.load' op head"
// CHECK:         kvcache.check %{{.*}} below %{{.*}}, "'kvcache.load' op page id"
// CHECK:         kvcache.load
// LOWERED:       llvm.func @access(
// LOWERED:         llvm.call @kvcacheCheckFailed(
func.func @access(%c: !collection, %layer: index, %b: index, %h: index,
                  %t: index, %d: index) -> vector<8xbf16> {
  %k = kvcache.paged_view key %c[%layer] : !collection
  %v = kvcache.load %k[%b, %h, %t, %d] : !cache -> vector<8xbf16>
  return %v : vector<8xbf16>
}

// CHECK-LABEL: func.func @others(
// CHECK:         kvcache.check %{{.*}} below %{{.*}}, "'kvcache.get_row' op row offset"
// CHECK:         kvcache.check %{{.*}} below %{{.*}}, "'kvcache.tma_row' op page of the encoded row id"
// CHECK:         kvcache.check %{{.*}} below %{{.*}}, "'kvcache.col_index' op head"
func.func @others(%k: !cache, %rows: !rows, %offset: index, %id: index,
                  %h: index) -> (index, index, index) {
  %row = kvcache.get_row %rows[%offset] : !rows
  %sparse = kvcache.tma_row %k[%id] : !cache
  %column = kvcache.col_index %k[%h] : !cache
  return %row, %sparse, %column : index, index, index
}

// CHECK-LABEL: func.func @tile(
// CHECK:         kvcache.check %{{.*}} below %{{.*}}, "'kvcache.tile_load' op column"
// CHECK:         kvcache.tile_load
func.func @tile(%row: index, %column: index) -> vector<8xbf16> {
  %kt = kvcache.alloc_tile : !tile
  %v = kvcache.tile_load %kt[%row, %column] : !tile -> vector<8xbf16>
  return %v : vector<8xbf16>
}
