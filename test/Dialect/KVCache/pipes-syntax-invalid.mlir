// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

func.func @unknown_pipe(%i: index) {
  // expected-error @below {{use of undeclared SSA value name}}
  kvcache.produce %ring[%i] : !kvcache.pipe<3, !kt> {
  ^bb0(%ks: !kt):
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @pipe_of_later(%i: index) {
  // expected-error @below {{operand #0 does not dominate this use}}
  kvcache.consume %ring[%i] : !ring {
  ^bb0(%ks: !kt):
  }
  // expected-note @below {{operand defined here (op in the same block)}}
  %ring = kvcache.pipe : !ring
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @pipe_of_a_region_before(%i: index, %b: i1) {
  scf.if %b {
    %ring = kvcache.pipe : !ring
  }
  // expected-error @below {{use of undeclared SSA value name}}
  kvcache.consume %ring[%i] : !ring {
  ^bb0(%ks: !kt):
  }
  return
}

// -----

func.func @index_for_a_pipe(%i: index) {
  // expected-error @below {{'kvcache.produce' op operand #0 must be pipe of tiles, but got 'index'}}
  kvcache.produce %i[%i] : index {
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @second_result_of_a_pipe(%i: index) {
  %ring = kvcache.pipe : !ring
  // expected-error @below {{reference to invalid result number}}
  kvcache.produce %ring#1[%i] : !ring {
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @no_type(%i: index) {
  %ring = kvcache.pipe : !ring
  // expected-error @below {{expected ':'}}
  kvcache.produce %ring[%i] {
  ^bb0(%ks: !kt):
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @type_of_another_pipe(%i: index) {
  // expected-note @below {{prior use here}}
  %ring = kvcache.pipe : !ring
  // expected-error @below {{use of value '%ring' expects different type than prior uses}}
  kvcache.produce %ring[%i] : !kvcache.pipe<2, !kt> {
  ^bb0(%ks: !kt):
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @unknown_index() {
  %ring = kvcache.pipe : !ring
  // expected-error @below {{use of undeclared SSA value name}}
  kvcache.produce %ring[%i] : !ring {
  ^bb0(%ks: !kt):
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @float_for_an_index(%f: f32) {
  %ring = kvcache.pipe : !ring
  // expected-note @-2 {{prior use here}}
  // expected-error @below {{use of value '%f' expects different type than prior uses: 'index' vs 'f32'}}
  kvcache.produce %ring[%f] : !ring {
  ^bb0(%ks: !kt):
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @no_index() {
  %ring = kvcache.pipe : !ring
  // expected-error @below {{expected SSA operand}}
  kvcache.produce %ring[] : !ring {
  ^bb0(%ks: !kt):
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @two_indices(%i: index) {
  %ring = kvcache.pipe : !ring
  // expected-error @below {{expected ']'}}
  kvcache.produce %ring[%i, %i] : !ring {
  ^bb0(%ks: !kt):
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @no_region(%i: index) {
  %ring = kvcache.pipe : !ring
  // expected-error @below {{expected '{' to begin a region}}
  kvcache.consume %ring[%i] : !ring -> (f32)
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @produce_with_results(%i: index) {
  %ring = kvcache.pipe : !ring
  // expected-error @below {{expected '{' to begin a region}}
  kvcache.produce %ring[%i] : !ring -> (f32) {
  ^bb0(%ks: !kt):
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @generic_without_region(%i: index) {
  %ring = kvcache.pipe : !ring
  // expected-error @below {{'kvcache.produce' op requires one region}}
  "kvcache.produce"(%ring, %i) : (!ring, index) -> ()
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @generic_with_empty_region(%i: index) {
  %ring = kvcache.pipe : !ring
  // expected-error @below {{'kvcache.produce' op region #0 ('body') failed to verify constraint: region with 1 blocks}}
  "kvcache.produce"(%ring, %i) ({
  }) : (!ring, index) -> ()
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @generic_with_empty_block(%i: index) {
  %ring = kvcache.pipe : !ring
  // expected-error @below {{'kvcache.produce' op expects a non-empty block}}
  "kvcache.produce"(%ring, %i) ({
  ^bb0(%ks: !kt):
  }) : (!ring, index) -> ()
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

func.func @generic_without_pipe(%i: index) {
  // expected-error @below {{'kvcache.consume' op operand #0 must be pipe of tiles, but got 'index'}}
  "kvcache.consume"(%i, %i) ({
  ^bb0(%ks: !kt):
    "kvcache.yield"() : () -> ()
  }) : (index, index) -> ()
  return
}
