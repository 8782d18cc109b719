// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

func.func @store_rows_c1_partial(%a: !kvcache.fragment<64xf32, wgmma_acc, partial>, %i: index, %x: i1, %m: memref<?xf32>) {
  // expected-error @below {{'kvcache.store_rows' op expects a fragment that is not partial, got '!kvcache.fragment<64xf32, wgmma_acc, partial>'}}
  kvcache.store_rows %a at(%i) to %m : !kvcache.fragment<64xf32, wgmma_acc, partial>, memref<?xf32> {
  ^bb0(%r: index):
    kvcache.yield %r, %x : index, i1
  }
  return
}

// -----

func.func @store_rows_c1_column(%a: !kvcache.fragment<64x32xf32, wgmma_acc>, %i: index, %x: i1, %m: memref<?x32xf32>) {
  // expected-error @below {{'kvcache.store_rows' op expects 'at' to have a row, and a column if the fragment has columns}}
  kvcache.store_rows %a at(%i) to %m : !kvcache.fragment<64x32xf32, wgmma_acc>, memref<?x32xf32> {
  ^bb0(%r: index):
    kvcache.yield %r, %x : index, i1
  }
  return
}

// -----

func.func @store_rows_c2(%a: !kvcache.fragment<64x32xf32, wgmma_acc>, %i: index, %x: i1, %m: memref<?x4x32xf32>) {
  // expected-error @below {{'kvcache.store_rows' op expects the region to yield 'index', 'index', 'i1', got 'index', 'i1'}}
  kvcache.store_rows %a at(%i, %i) to %m : !kvcache.fragment<64x32xf32, wgmma_acc>, memref<?x4x32xf32> {
  ^bb0(%r: index):
    kvcache.yield %r, %x : index, i1
  }
  return
}

// -----

func.func @store_rows_c2_rank(%a: !kvcache.fragment<64x32xf32, wgmma_acc>, %i: index, %x: i1, %m: memref<f32>) {
  // expected-error @below {{'kvcache.store_rows' op expects 'memref' to have a dimension of columns, got 'memref<f32>'}}
  kvcache.store_rows %a at(%i, %i) to %m : !kvcache.fragment<64x32xf32, wgmma_acc>, memref<f32> {
  ^bb0(%r: index):
    kvcache.yield %x : i1
  }
  return
}

// -----

func.func @store_rows_c4(%a: !kvcache.fragment<64x32xi32, wgmma_acc>, %i: index, %x: i1, %m: memref<?x32xi16>) {
  // expected-error @below {{'kvcache.store_rows' op expects elements of whole bytes, the same in the fragment and the memref, or f32 that are rounded, got 'i32' and 'i16'}}
  kvcache.store_rows %a at(%i, %i) to %m : !kvcache.fragment<64x32xi32, wgmma_acc>, memref<?x32xi16> {
  ^bb0(%r: index):
    kvcache.yield %r, %x : index, i1
  }
  return
}

// -----

func.func @store_rows_c4_wider(%a: !kvcache.fragment<64x32xf32, wgmma_acc>, %i: index, %x: i1, %m: memref<?x32xf64>) {
  // expected-error @below {{'kvcache.store_rows' op expects elements of whole bytes, the same in the fragment and the memref, or f32 that are rounded, got 'f32' and 'f64'}}
  kvcache.store_rows %a at(%i, %i) to %m : !kvcache.fragment<64x32xf32, wgmma_acc>, memref<?x32xf64> {
  ^bb0(%r: index):
    kvcache.yield %r, %x : index, i1
  }
  return
}

// -----

func.func @store_rows_c4_format(%a: !kvcache.fragment<64x32xf32, wgmma_acc>, %i: index, %x: i1, %m: memref<?x32xf8E4M3FNUZ>) {
  // expected-error @below {{'kvcache.store_rows' op expects elements of whole bytes, the same in the fragment and the memref, or f32 that are rounded, got 'f32' and 'f8E4M3FNUZ'}}
  kvcache.store_rows %a at(%i, %i) to %m : !kvcache.fragment<64x32xf32, wgmma_acc>, memref<?x32xf8E4M3FNUZ> {
  ^bb0(%r: index):
    kvcache.yield %r, %x : index, i1
  }
  return
}

// -----

func.func @store_rows_c4_bits(%a: !kvcache.fragment<64x32xi1, wgmma_acc>, %i: index, %x: i1, %m: memref<?x32xi1>) {
  // expected-error @below {{'kvcache.store_rows' op expects elements of whole bytes, the same in the fragment and the memref, or f32 that are rounded, got 'i1' and 'i1'}}
  kvcache.store_rows %a at(%i, %i) to %m : !kvcache.fragment<64x32xi1, wgmma_acc>, memref<?x32xi1> {
  ^bb0(%r: index):
    kvcache.yield %r, %x : index, i1
  }
  return
}

// -----

func.func @store_rows_c5(%a: !kvcache.fragment<64x32xf32, wgmma_acc>, %i: index, %x: i1, %m: memref<?x32xf32, strided<[64, 2]>>) {
  // expected-error @below {{'kvcache.store_rows' op expects the elements of the last dimension of 'memref' to be side by side, got 'memref<?x32xf32, strided<[64, 2]>>'}}
  kvcache.store_rows %a at(%i, %i) to %m : !kvcache.fragment<64x32xf32, wgmma_acc>, memref<?x32xf32, strided<[64, 2]>> {
  ^bb0(%r: index):
    kvcache.yield %r, %x : index, i1
  }
  return
}

// -----

func.func @store_rows_c6(%a: !kvcache.fragment<64x32xf32, wgmma_acc>, %i: index, %x: i1, %m: memref<?x32xf32>) {
  // expected-error @below {{'kvcache.store_rows' op expects 'alignment' to be a power of two of at most the bytes stored at once (8), got 6}}
  kvcache.store_rows %a at(%i, %i) to %m {alignment = 6 : i64} : !kvcache.fragment<64x32xf32, wgmma_acc>, memref<?x32xf32> {
  ^bb0(%r: index):
    kvcache.yield %r, %x : index, i1
  }
  return
}

// -----

func.func @store_rows_c6_far(%a: !kvcache.fragment<64x32xf32, wgmma_acc>, %i: index, %x: i1, %m: memref<?x32xf32>) {
  // expected-error @below {{'kvcache.store_rows' op expects 'alignment' to be a power of two of at most the bytes stored at once (8), got 16}}
  kvcache.store_rows %a at(%i, %i) to %m {alignment = 16 : i64} : !kvcache.fragment<64x32xf32, wgmma_acc>, memref<?x32xf32> {
  ^bb0(%r: index):
    kvcache.yield %r, %x : index, i1
  }
  return
}

// -----

func.func @store_rows_c3(%a: !kvcache.fragment<64xf32, wgmma_acc>, %i: index, %x: i1, %m: memref<?xf32>, %e: f32) {
  kvcache.store_rows %a at(%i) to %m : !kvcache.fragment<64xf32, wgmma_acc>, memref<?xf32> {
  ^bb0(%r: index):
    // expected-error @below {{'memref.store' op is not allowed in a region of 'kvcache.store_rows', whose ops at most read memory}}
    memref.store %e, %m[%r] : memref<?xf32>
    kvcache.yield %r, %x : index, i1
  }
  return
}

// -----

func.func @store_rows_c2_terminator(%a: !kvcache.fragment<64xf32, wgmma_acc>, %i: index, %x: i1, %m: memref<?xf32>) {
  // expected-error @below {{'kvcache.store_rows' op expects the region to end with 'kvcache.yield'}}
  kvcache.store_rows %a at(%i) to %m : !kvcache.fragment<64xf32, wgmma_acc>, memref<?xf32> {
  ^bb0(%r: index):
    %true = arith.constant true
  }
  return
}

// -----

func.func @store_rows_argument(%a: !kvcache.fragment<64xf32, wgmma_acc>, %i: index, %x: i1, %m: memref<?xf32>) {
  // expected-error @below {{'kvcache.store_rows' op expects the argument of the region to be an index, got 'i32'}}
  kvcache.store_rows %a at(%i) to %m : !kvcache.fragment<64xf32, wgmma_acc>, memref<?xf32> {
  ^bb0(%r: i32):
    kvcache.yield %i, %x : index, i1
  }
  return
}

// -----

func.func @store_split_c1_operand(%a: !kvcache.fragment<16x128xbf16, mma_a16>, %s: !kvcache.fragment<16xbf16, mma_a16>, %i: index, %x: i1, %m: memref<?x128xbf16>, %n: memref<?x2xbf16>) {
  // expected-error @below {{'kvcache.store_split' op expects 'acc' to have the layout of an accumulator, got '!kvcache.fragment<16x128xbf16, mma_a16>'}}
  kvcache.store_split %a, %s, %s at(%i, %i) to %m, %n : !kvcache.fragment<16x128xbf16, mma_a16>, !kvcache.fragment<16xbf16, mma_a16>, memref<?x128xbf16>, memref<?x2xbf16> {
  ^bb0(%row: index):
    kvcache.yield %i, %row, %x : index, index, i1
  }
  return
}

// -----

func.func @store_split_c1_acc(%a: !kvcache.fragment<16xf32, mma_acc>, %s: !kvcache.fragment<16xf32, mma_acc>, %i: index, %x: i1, %m: memref<?x32xf32>, %n: memref<?x2xf32>, %e: f32) {
  // expected-error @below {{'kvcache.store_split' op expects 'acc' to have two dimensions, got '!kvcache.fragment<16xf32, mma_acc>'}}
  kvcache.store_split %a, %s, %s at(%i, %i) to %m, %n : !kvcache.fragment<16xf32, mma_acc>, !kvcache.fragment<16xf32, mma_acc>, memref<?x32xf32>, memref<?x2xf32> {
  ^bb0(%r: index):
    kvcache.yield %r, %x : index, i1
  }
  return
}

// -----

func.func @store_split_c1_rows(%a: !kvcache.fragment<16x32xf32, mma_acc>, %s: !kvcache.fragment<16xf32, mma_acc, partial>, %i: index, %x: i1, %m: memref<?x32xf32>, %n: memref<?x2xf32>, %e: f32) {
  // expected-error @below {{'kvcache.store_split' op expects 'max' and 'sum' to be '!kvcache.fragment<16xf32, mma_acc>', or to have its rows, got '!kvcache.fragment<16xf32, mma_acc, partial>'}}
  kvcache.store_split %a, %s, %s at(%i, %i) to %m, %n : !kvcache.fragment<16x32xf32, mma_acc>, !kvcache.fragment<16xf32, mma_acc, partial>, memref<?x32xf32>, memref<?x2xf32> {
  ^bb0(%r: index):
    kvcache.yield %r, %x : index, i1
  }
  return
}

// -----

func.func @store_split_c1_layout(%a: !kvcache.fragment<16x32xf32, mma_acc>, %s: !kvcache.fragment<64xf32, wgmma_acc>, %i: index, %x: i1, %m: memref<?x32xf32>, %n: memref<?x2xf32>, %e: f32) {
  // expected-error @below {{'kvcache.store_split' op expects 'max' and 'sum' to be '!kvcache.fragment<16xf32, mma_acc>', or to have its rows, got '!kvcache.fragment<64xf32, wgmma_acc>'}}
  kvcache.store_split %a, %s, %s at(%i, %i) to %m, %n : !kvcache.fragment<16x32xf32, mma_acc>, !kvcache.fragment<64xf32, wgmma_acc>, memref<?x32xf32>, memref<?x2xf32> {
  ^bb0(%r: index):
    kvcache.yield %r, %x : index, i1
  }
  return
}

// -----

func.func @store_split_c2_element(%a: !kvcache.fragment<16x32xf32, mma_acc>, %s: !kvcache.fragment<16xf32, mma_acc>, %i: index, %x: i1, %m: memref<?x32xbf16>, %n: memref<?x2xf32>, %e: f32) {
  // expected-error @below {{'kvcache.store_split' op expects 'accs' to have the element type of 'acc', of whole bytes, 'f32', got 'memref<?x32xbf16>'}}
  kvcache.store_split %a, %s, %s at(%i, %i) to %m, %n : !kvcache.fragment<16x32xf32, mma_acc>, !kvcache.fragment<16xf32, mma_acc>, memref<?x32xbf16>, memref<?x2xf32> {
  ^bb0(%r: index):
    kvcache.yield %r, %x : index, i1
  }
  return
}

// -----

func.func @store_split_c2_bits(%a: !kvcache.fragment<16x32xi1, mma_acc>, %s: !kvcache.fragment<16xi1, mma_acc>, %i: index, %x: i1, %m: memref<?x32xi1>, %n: memref<?x2xi1>, %e: f32) {
  // expected-error @below {{'kvcache.store_split' op expects 'accs' to have the element type of 'acc', of whole bytes, 'i1', got 'memref<?x32xi1>'}}
  kvcache.store_split %a, %s, %s at(%i, %i) to %m, %n : !kvcache.fragment<16x32xi1, mma_acc>, !kvcache.fragment<16xi1, mma_acc>, memref<?x32xi1>, memref<?x2xi1> {
  ^bb0(%r: index):
    kvcache.yield %r, %x : index, i1
  }
  return
}

// -----

func.func @store_split_c2_rank_of_states(%a: !kvcache.fragment<16x32xf32, mma_acc>, %s: !kvcache.fragment<16xf32, mma_acc>, %i: index, %x: i1, %m: memref<?x32xf32>, %n: memref<?x4x2xf32>, %e: f32) {
  // expected-error @below {{'kvcache.store_split' op expects 'states' to have the rank of 'accs', and 2 elements in the last dimension, got 'memref<?x4x2xf32>'}}
  kvcache.store_split %a, %s, %s at(%i, %i) to %m, %n : !kvcache.fragment<16x32xf32, mma_acc>, !kvcache.fragment<16xf32, mma_acc>, memref<?x32xf32>, memref<?x4x2xf32> {
  ^bb0(%r: index):
    kvcache.yield %r, %x : index, i1
  }
  return
}

// -----

func.func @store_split_c2_size_of_states(%a: !kvcache.fragment<16x32xf32, mma_acc>, %s: !kvcache.fragment<16xf32, mma_acc>, %i: index, %x: i1, %m: memref<?x32xf32>, %n: memref<?x3xf32>, %e: f32) {
  // expected-error @below {{'kvcache.store_split' op expects 'states' to have the rank of 'accs', and 2 elements in the last dimension, got 'memref<?x3xf32>'}}
  kvcache.store_split %a, %s, %s at(%i, %i) to %m, %n : !kvcache.fragment<16x32xf32, mma_acc>, !kvcache.fragment<16xf32, mma_acc>, memref<?x32xf32>, memref<?x3xf32> {
  ^bb0(%r: index):
    kvcache.yield %r, %x : index, i1
  }
  return
}

// -----

func.func @store_split_c2_strides(%a: !kvcache.fragment<16x32xf32, mma_acc>, %s: !kvcache.fragment<16xf32, mma_acc>, %i: index, %x: i1, %m: memref<?x32xf32>, %n: memref<?x2xf32, strided<[4, 2]>>, %e: f32) {
  // expected-error @below {{'kvcache.store_split' op expects the elements of the last dimension of 'states' to be side by side, got 'memref<?x2xf32, strided<[4, 2]>>'}}
  kvcache.store_split %a, %s, %s at(%i, %i) to %m, %n : !kvcache.fragment<16x32xf32, mma_acc>, !kvcache.fragment<16xf32, mma_acc>, memref<?x32xf32>, memref<?x2xf32, strided<[4, 2]>> {
  ^bb0(%r: index):
    kvcache.yield %r, %x : index, i1
  }
  return
}

// -----

func.func @store_split_c2_no_rank(%a: !kvcache.fragment<16x32xf32, mma_acc>, %s: !kvcache.fragment<16xf32, mma_acc>, %i: index, %x: i1, %m: memref<f32>, %n: memref<?x2xf32>, %e: f32) {
  // expected-error @below {{'kvcache.store_split' op expects the elements of the last dimension of 'accs' to be side by side, got 'memref<f32>'}}
  kvcache.store_split %a, %s, %s at(%i, %i) to %m, %n : !kvcache.fragment<16x32xf32, mma_acc>, !kvcache.fragment<16xf32, mma_acc>, memref<f32>, memref<?x2xf32> {
  ^bb0(%r: index):
    kvcache.yield %r, %x : index, i1
  }
  return
}

// -----

func.func @store_split_c3(%a: !kvcache.fragment<16x32xf32, mma_acc>, %s: !kvcache.fragment<16xf32, mma_acc>, %i: index, %x: i1, %m: memref<?x32xf32>, %n: memref<?x2xf32>, %e: f32) {
  // expected-error @below {{'kvcache.store_split' op expects the region to yield 'index', 'i1', got 'index', 'index', 'i1'}}
  kvcache.store_split %a, %s, %s at(%i, %i) to %m, %n : !kvcache.fragment<16x32xf32, mma_acc>, !kvcache.fragment<16xf32, mma_acc>, memref<?x32xf32>, memref<?x2xf32> {
  ^bb0(%r: index):
    kvcache.yield %r, %r, %x : index, index, i1
  }
  return
}

// -----

func.func @store_split_c5(%a: !kvcache.fragment<16x32xf32, mma_acc>, %s: !kvcache.fragment<16xf32, mma_acc>, %i: index, %x: i1, %m: memref<?x32xf32>, %n: memref<?x2xf32>, %e: f32) {
  // expected-error @below {{'kvcache.store_split' op expects 'alignment' to be a power of two of at most the bytes stored at once (8), got 12}}
  kvcache.store_split %a, %s, %s at(%i, %i) to %m, %n {alignment = 12 : i64} : !kvcache.fragment<16x32xf32, mma_acc>, !kvcache.fragment<16xf32, mma_acc>, memref<?x32xf32>, memref<?x2xf32> {
  ^bb0(%r: index):
    kvcache.yield %r, %x : index, i1
  }
  return
}

// -----

func.func @store_split_c4(%a: !kvcache.fragment<16x32xf32, mma_acc>, %s: !kvcache.fragment<16xf32, mma_acc>, %i: index, %x: i1, %m: memref<?x32xf32>, %n: memref<?x2xf32>, %e: f32) {
  kvcache.store_split %a, %s, %s at(%i, %i) to %m, %n : !kvcache.fragment<16x32xf32, mma_acc>, !kvcache.fragment<16xf32, mma_acc>, memref<?x32xf32>, memref<?x2xf32> {
  ^bb0(%r: index):
    // expected-error @below {{'memref.store' op is not allowed in a region of 'kvcache.store_split', whose ops at most read memory}}
    memref.store %e, %n[%r, %r] : memref<?x2xf32>
    kvcache.yield %r, %x : index, i1
  }
  return
}
