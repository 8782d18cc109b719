// RUN: kvcache-opt %s --inline | FileCheck %s

// A guard keeps the row from being read: that its offset becomes a constant past
// the rows is no error.

!rows = !kvcache.row_indices<rows = 64, page_size = 32>

func.func private @row_or_offset(%rows: !rows, %offset: index, %n: index) -> index {
  %in = arith.cmpi ult, %offset, %n : index
  %result = scf.if %in -> index {
    %row = kvcache.get_row %rows[%offset] : !rows
    scf.yield %row : index
  } else {
    scf.yield %offset : index
  }
  return %result : index
}

// CHECK-LABEL: func.func @guarded_offset_past_the_rows(
// CHECK-NOT:     call
// CHECK:         return
func.func @guarded_offset_past_the_rows(%rows: !rows, %n: index) -> index {
  %offset = arith.constant 64 : index
  %row = call @row_or_offset(%rows, %offset, %n) : (!rows, index, index) -> index
  return %row : index
}
