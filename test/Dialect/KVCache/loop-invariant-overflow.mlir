// RUN: kvcache-opt %s --loop-invariant-code-motion | FileCheck %s

// The last token overflows: no entry of the table is in range.

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!collection = !kvcache.paged_collection<bf16, #kv, page_size = 64>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!rows = !kvcache.row_indices<rows = 64, page_size = 64>

func.func private @use(!rows)

// CHECK-LABEL: func.func @rows_of_the_largest_base_stay(
// CHECK:         scf.for
// CHECK-NEXT:      kvcache.populate
func.func @rows_of_the_largest_base_stay(%blocks: memref<?x2x?x64x8x128xbf16>, %lengths: memref<4xi32>,
                                         %lut: memref<4x2xi32>, %max: i32, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %base = arith.constant 9223372036854775807 : index
  %c = kvcache.paged_collection %blocks, %lengths, %lut, %max, %max
         : memref<?x2x?x64x8x128xbf16>, memref<4xi32>, memref<4x2xi32> -> !collection
  %k = kvcache.paged_view key %c[%c0] : !collection
  scf.for %i = %c0 to %n step %c1 {
    %rows = kvcache.populate %k[%c0, %base] : !cache -> !rows
    func.call @use(%rows) : (!rows) -> ()
  }
  return
}
