// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

func.func @splat_type(%x: f16) {
  // expected-error @below {{'kvcache.splat' op failed to verify that 'value' has the element type of 'result'}}
  %y = "kvcache.splat"(%x) : (f16) -> !kvcache.fragment<64x32xf32, wgmma_acc>
  return
}

// -----

func.func @map_c1_none() {
  // expected-error @below {{'kvcache.map' op expects a fragment}}
  %y = "kvcache.map"() <{operandSegmentSizes = array<i32: 0, 0, 0, 0>}> ({
    %x = arith.constant 0.0 : f32
    kvcache.yield %x : f32
  }) : () -> !kvcache.fragment<64x32xf32, wgmma_acc>
  return
}

// -----

func.func @map_c1_shape(%a: !kvcache.fragment<64x64xf32, wgmma_acc>) {
  // expected-error @below {{'kvcache.map' op expects the shape and layout of the result, '!kvcache.fragment<64x32xf32, wgmma_acc>', got '!kvcache.fragment<64x64xf32, wgmma_acc>'}}
  %y = kvcache.map %a : !kvcache.fragment<64x64xf32, wgmma_acc> -> !kvcache.fragment<64x32xf32, wgmma_acc> {
  ^bb0(%e: f32):
    kvcache.yield %e : f32
  }
  return
}

// -----

func.func @map_c1_layout(%a: !kvcache.fragment<16x32xf32, mma_acc>) {
  // expected-error @below {{'kvcache.map' op expects the shape and layout of the result, '!kvcache.fragment<16x32xbf16, mma_a16>', got '!kvcache.fragment<16x32xf32, mma_acc>'}}
  %y = kvcache.map %a : !kvcache.fragment<16x32xf32, mma_acc> -> !kvcache.fragment<16x32xbf16, mma_a16> {
  ^bb0(%e: f32):
    %t = arith.truncf %e : f32 to bf16
    kvcache.yield %t : bf16
  }
  return
}

// -----

func.func @map_c1_rows(%a: !kvcache.fragment<64x32xf32, wgmma_acc>, %b: !kvcache.fragment<16xf32, mma_acc>) {
  // expected-error @below {{'kvcache.map' op expects the shape and layout of the result, '!kvcache.fragment<64x32xf32, wgmma_acc>', got '!kvcache.fragment<16xf32, mma_acc>'}}
  %y = kvcache.map arith.mulf(%a, %b) : !kvcache.fragment<64x32xf32, wgmma_acc>, !kvcache.fragment<16xf32, mma_acc> -> !kvcache.fragment<64x32xf32, wgmma_acc>
  return
}

// -----

func.func @map_c1_columns(%a: !kvcache.fragment<64xf32, wgmma_acc>) {
  // expected-error @below {{'kvcache.map' op expects the result to have columns if a fragment has, and only then, got '!kvcache.fragment<64x32xf32, wgmma_acc>'}}
  %y = kvcache.map %a : !kvcache.fragment<64xf32, wgmma_acc> -> !kvcache.fragment<64x32xf32, wgmma_acc> {
  ^bb0(%e: f32):
    kvcache.yield %e : f32
  }
  return
}

// -----

func.func @map_c2_column(%a: !kvcache.fragment<64x32xf32, wgmma_acc>, %i: index) {
  // expected-error @below {{'kvcache.map' op expects 'at' to have a row, and a column if the result has columns}}
  %y = kvcache.map %a at(%i) : !kvcache.fragment<64x32xf32, wgmma_acc> -> !kvcache.fragment<64x32xf32, wgmma_acc> {
  ^bb0(%e: f32, %r: index):
    kvcache.yield %e : f32
  }
  return
}

// -----

func.func @map_c2_no_column(%a: !kvcache.fragment<64xf32, wgmma_acc>, %i: index) {
  // expected-error @below {{'kvcache.map' op expects 'at' to have a row, and a column if the result has columns}}
  %y = kvcache.map %a at(%i, %i) : !kvcache.fragment<64xf32, wgmma_acc> -> !kvcache.fragment<64xf32, wgmma_acc> {
  ^bb0(%e: f32, %r: index, %c: index):
    kvcache.yield %e : f32
  }
  return
}

// -----

func.func @map_c2_lane_columns(%a: !kvcache.fragment<64xf32, wgmma_acc>, %i: index) {
  // expected-error @below {{'kvcache.map' op expects a column in 'at' for 'lane_columns'}}
  %y = kvcache.map %a at(%i) {lane_columns} : !kvcache.fragment<64xf32, wgmma_acc> -> !kvcache.fragment<64xf32, wgmma_acc> {
  ^bb0(%e: f32, %r: index, %c: index):
    kvcache.yield %e : f32
  }
  return
}

// -----

func.func @map_c3_lane_columns(%a: !kvcache.fragment<64x32xf32, wgmma_acc>, %i: index) {
  // expected-error @below {{'kvcache.map' op expects the arguments of the region to be 'f32', 'index', 'index', 'index', got 'f32', 'index', 'index'}}
  %y = kvcache.map %a at(%i, %i) {lane_columns} : !kvcache.fragment<64x32xf32, wgmma_acc> -> !kvcache.fragment<64x32xf32, wgmma_acc> {
  ^bb0(%e: f32, %r: index, %c: index):
    kvcache.yield %e : f32
  }
  return
}

// -----

func.func @map_at(%a: !kvcache.fragment<64xf32, wgmma_acc>, %i: index) {
  // expected-error @below {{custom op 'kvcache.map' expects a row, and at most a column}}
  %y = kvcache.map %a at() : !kvcache.fragment<64xf32, wgmma_acc> -> !kvcache.fragment<64xf32, wgmma_acc> {
  ^bb0(%e: f32):
    kvcache.yield %e : f32
  }
  return
}

// -----

func.func @map_c3_arguments(%a: !kvcache.fragment<64x32xf32, wgmma_acc>, %i: index) {
  // expected-error @below {{'kvcache.map' op expects the arguments of the region to be 'f32', 'index', 'index', got 'f32'}}
  %y = kvcache.map %a at(%i, %i) : !kvcache.fragment<64x32xf32, wgmma_acc> -> !kvcache.fragment<64x32xf32, wgmma_acc> {
  ^bb0(%e: f32):
    kvcache.yield %e : f32
  }
  return
}

// -----

func.func @map_c3_result(%a: !kvcache.fragment<64x32xf32, wgmma_acc>, %i: i32) {
  // expected-error @below {{'kvcache.map' op expects the region to yield 'f32', got 'i32'}}
  %y = kvcache.map %a : !kvcache.fragment<64x32xf32, wgmma_acc> -> !kvcache.fragment<64x32xf32, wgmma_acc> {
  ^bb0(%e: f32):
    kvcache.yield %i : i32
  }
  return
}

// -----

func.func @map_c3_end(%a: !kvcache.fragment<64x32xf32, wgmma_acc>) {
  // expected-error @below {{'kvcache.map' op expects the region to end with 'kvcache.yield'}}
  %y = kvcache.map %a : !kvcache.fragment<64x32xf32, wgmma_acc> -> !kvcache.fragment<64x32xf32, wgmma_acc> {
  ^bb0(%e: f32):
    ub.unreachable
  }
  return
}

// -----

func.func @map_c4_store(%a: !kvcache.fragment<64x32xf32, wgmma_acc>, %m: memref<1xf32>, %i: index) {
  %y = kvcache.map %a : !kvcache.fragment<64x32xf32, wgmma_acc> -> !kvcache.fragment<64x32xf32, wgmma_acc> {
  ^bb0(%e: f32):
    // expected-error @below {{'memref.store' op is not allowed in a region of 'kvcache.map', whose ops at most read memory}}
    memref.store %e, %m[%i] : memref<1xf32>
    kvcache.yield %e : f32
  }
  return
}

// -----

func.func @map_c4_call(%a: !kvcache.fragment<64x32xf32, wgmma_acc>) {
  %y = kvcache.map %a : !kvcache.fragment<64x32xf32, wgmma_acc> -> !kvcache.fragment<64x32xf32, wgmma_acc> {
  ^bb0(%e: f32):
    // expected-error @below {{'func.call' op is not allowed in a region of 'kvcache.map', which contains no calls}}
    %x = func.call @map_c4_other(%e) : (f32) -> f32
    kvcache.yield %x : f32
  }
  return
}
func.func private @map_c4_other(f32) -> f32
func.func private @last() {
  return
}

// -----

func.func @map_c4_fragment(%a: !kvcache.fragment<64x32xf32, wgmma_acc>, %f: f32) {
  %y = kvcache.map %a : !kvcache.fragment<64x32xf32, wgmma_acc> -> !kvcache.fragment<64x32xf32, wgmma_acc> {
  ^bb0(%e: f32):
    // expected-error @below {{'kvcache.splat' op is not allowed in a region of 'kvcache.map', which has no fragments}}
    %x = kvcache.splat %f : !kvcache.fragment<64x32xf32, wgmma_acc>
    kvcache.yield %e : f32
  }
  return
}

// -----

func.func @map_c5_result(%a: !kvcache.fragment<64xf32, wgmma_acc, partial>) {
  // expected-error @below {{'kvcache.map' op expects a partial result for a partial fragment, and only then, got '!kvcache.fragment<64xf32, wgmma_acc>'}}
  %y = kvcache.map %a : !kvcache.fragment<64xf32, wgmma_acc, partial> -> !kvcache.fragment<64xf32, wgmma_acc> {
  ^bb0(%e: f32):
    kvcache.yield %e : f32
  }
  return
}

// -----

func.func @map_c5_no_operand(%a: !kvcache.fragment<64xf32, wgmma_acc>) {
  // expected-error @below {{'kvcache.map' op expects a partial result for a partial fragment, and only then, got '!kvcache.fragment<64xf32, wgmma_acc, partial>'}}
  %y = kvcache.map %a : !kvcache.fragment<64xf32, wgmma_acc> -> !kvcache.fragment<64xf32, wgmma_acc, partial> {
  ^bb0(%e: f32):
    kvcache.yield %e : f32
  }
  return
}

// -----

func.func @map_c5_sum(%a: !kvcache.fragment<64xf32, wgmma_acc, partial>, %b: !kvcache.fragment<64xf32, wgmma_acc>) {
  // expected-error @below {{'kvcache.map' op expects the region to be one 'arith.mulf' of the element of the only partial fragment and another value}}
  %y = kvcache.map arith.addf(%a, %b) : !kvcache.fragment<64xf32, wgmma_acc, partial>, !kvcache.fragment<64xf32, wgmma_acc> -> !kvcache.fragment<64xf32, wgmma_acc, partial>
  return
}

// -----

func.func @map_c5_square(%a: !kvcache.fragment<64xf32, wgmma_acc, partial>) {
  // expected-error @below {{'kvcache.map' op expects the region to be one 'arith.mulf' of the element of the only partial fragment and another value}}
  %y = kvcache.map %a : !kvcache.fragment<64xf32, wgmma_acc, partial> -> !kvcache.fragment<64xf32, wgmma_acc, partial> {
  ^bb0(%e: f32):
    %x = arith.mulf %e, %e : f32
    kvcache.yield %x : f32
  }
  return
}

// -----

func.func @map_c5_two(%a: !kvcache.fragment<64xf32, wgmma_acc, partial>) {
  // expected-error @below {{'kvcache.map' op expects the region to be one 'arith.mulf' of the element of the only partial fragment and another value}}
  %y = kvcache.map arith.mulf(%a, %a) : !kvcache.fragment<64xf32, wgmma_acc, partial>, !kvcache.fragment<64xf32, wgmma_acc, partial> -> !kvcache.fragment<64xf32, wgmma_acc, partial>
  return
}

// -----

func.func @map_unknown_op(%a: !kvcache.fragment<64xf32, wgmma_acc, partial>) {
  // expected-error @below {{custom op 'kvcache.map' expects the name of an op, got 'arith.multiply'}}
  %y = kvcache.map arith.multiply(%a) : !kvcache.fragment<64xf32, wgmma_acc, partial> -> !kvcache.fragment<64xf32, wgmma_acc, partial>
  return
}

// -----

func.func @map_named_type(%a: f32) {
  // expected-error @below {{custom op 'kvcache.map' expects fragments}}
  %y = kvcache.map arith.negf(%a) : f32 -> !kvcache.fragment<64x32xf32, wgmma_acc>
  return
}

// -----

func.func @map_named_rule(%a: !kvcache.fragment<64x32xf32, wgmma_acc>) {
  // expected-error @below {{'arith.muli' op operand #0 must be signless-integer-like, but got 'f32'}}
  %y = kvcache.map arith.muli(%a, %a) : !kvcache.fragment<64x32xf32, wgmma_acc>, !kvcache.fragment<64x32xf32, wgmma_acc> -> !kvcache.fragment<64x32xf32, wgmma_acc>
  return
}

// -----

func.func @reduce_c1_source(%a: !kvcache.fragment<64xf32, wgmma_acc>) {
  // expected-error @below {{'kvcache.reduce' op expects 'source' to have columns or to be partial, got '!kvcache.fragment<64xf32, wgmma_acc>'}}
  %y = kvcache.reduce addf %a : !kvcache.fragment<64xf32, wgmma_acc> -> !kvcache.fragment<64xf32, wgmma_acc>
  return
}

// -----

func.func @reduce_c1_result(%a: !kvcache.fragment<64x32xf32, wgmma_acc>) {
  // expected-error @below {{'kvcache.reduce' op expects a number for each row of '!kvcache.fragment<64x32xf32, wgmma_acc>', got '!kvcache.fragment<16xf32, mma_acc>'}}
  %y = kvcache.reduce addf %a : !kvcache.fragment<64x32xf32, wgmma_acc> -> !kvcache.fragment<16xf32, mma_acc>
  return
}

// -----

func.func @reduce_c2(%a: !kvcache.fragment<64xf32, wgmma_acc, partial>) {
  // expected-error @below {{'kvcache.reduce' op expects a result that is not partial, because 'source' is}}
  %y = kvcache.reduce addf %a : !kvcache.fragment<64xf32, wgmma_acc, partial> -> !kvcache.fragment<64xf32, wgmma_acc, partial>
  return
}

// -----

func.func @reduce_c3_float(%a: !kvcache.fragment<64x32xf32, wgmma_acc>) {
  // expected-error @below {{'kvcache.reduce' op expects 'kind' to combine elements of 'f32', got addi}}
  %y = kvcache.reduce addi %a : !kvcache.fragment<64x32xf32, wgmma_acc> -> !kvcache.fragment<64xf32, wgmma_acc>
  return
}

// -----

func.func @reduce_c3_lanes(%a: !kvcache.fragment<64x32xbf16, wgmma_acc>) {
  // expected-error @below {{'kvcache.reduce' op expects elements of 32 bits, or a partial result, got 'bf16'}}
  %y = kvcache.reduce maxnumf %a : !kvcache.fragment<64x32xbf16, wgmma_acc> -> !kvcache.fragment<64xbf16, wgmma_acc>
  return
}

// -----

func.func @reduce_c3_integer(%a: !kvcache.fragment<64x32xi32, wgmma_acc>) {
  // expected-error @below {{'kvcache.reduce' op expects 'kind' to combine elements of 'i32', got maxnumf}}
  %y = kvcache.reduce maxnumf %a : !kvcache.fragment<64x32xi32, wgmma_acc> -> !kvcache.fragment<64xi32, wgmma_acc>
  return
}

// -----

func.func @reduce_c4(%a: !kvcache.fragment<64x32xf32, wgmma_acc>, %b: !kvcache.fragment<64xf32, wgmma_acc>) {
  // expected-error @below {{'kvcache.reduce' op expects no 'init', which each lane would add: 'addf' has one only for a partial result}}
  %y = kvcache.reduce addf %a from %b : !kvcache.fragment<64x32xf32, wgmma_acc> -> !kvcache.fragment<64xf32, wgmma_acc>
  return
}

// -----

func.func @warp_any_c1_columns(%a: !kvcache.fragment<64x8xi1, wgmma_acc>) {
  // expected-error @below {{'kvcache.warp_any' op expects one dimension and i1, not partial, got '!kvcache.fragment<64x8xi1, wgmma_acc>'}}
  %y = kvcache.warp_any %a : !kvcache.fragment<64x8xi1, wgmma_acc>
  return
}

// -----

func.func @warp_any_c1_element(%a: !kvcache.fragment<64xi8, wgmma_acc>) {
  // expected-error @below {{'kvcache.warp_any' op expects one dimension and i1, not partial, got '!kvcache.fragment<64xi8, wgmma_acc>'}}
  %y = kvcache.warp_any %a : !kvcache.fragment<64xi8, wgmma_acc>
  return
}

// -----

func.func @warp_any_c1_partial(%a: !kvcache.fragment<64xi1, wgmma_acc, partial>) {
  // expected-error @below {{'kvcache.warp_any' op expects one dimension and i1, not partial, got '!kvcache.fragment<64xi1, wgmma_acc, partial>'}}
  %y = kvcache.warp_any %a : !kvcache.fragment<64xi1, wgmma_acc, partial>
  return
}

// -----

func.func @to_operand_c1_layout(%a: !kvcache.fragment<64x32xf32, wgmma_acc>) {
  // expected-error @below {{'kvcache.to_operand' op expects an accumulator, and an operand whose threads have the same elements, got '!kvcache.fragment<64x32xf32, wgmma_acc>' and '!kvcache.fragment<64x32xf8E4M3FN, wgmma_a8>'}}
  %y = kvcache.to_operand %a : !kvcache.fragment<64x32xf32, wgmma_acc> -> !kvcache.fragment<64x32xf8E4M3FN, wgmma_a8>
  return
}

// -----

func.func @to_operand_c1_team(%a: !kvcache.fragment<16x32xf32, mma_acc>) {
  // expected-error @below {{'kvcache.to_operand' op expects an accumulator, and an operand whose threads have the same elements, got '!kvcache.fragment<16x32xf32, mma_acc>' and '!kvcache.fragment<64x32xbf16, wgmma_a16>'}}
  %y = kvcache.to_operand %a : !kvcache.fragment<16x32xf32, mma_acc> -> !kvcache.fragment<64x32xbf16, wgmma_a16>
  return
}

// -----

func.func @to_operand_c1_shape(%a: !kvcache.fragment<64x32xf32, wgmma_acc>) {
  // expected-error @below {{'kvcache.to_operand' op expects an accumulator, and an operand whose threads have the same elements, got '!kvcache.fragment<64x32xf32, wgmma_acc>' and '!kvcache.fragment<64x16xbf16, wgmma_a16>'}}
  %y = kvcache.to_operand %a : !kvcache.fragment<64x32xf32, wgmma_acc> -> !kvcache.fragment<64x16xbf16, wgmma_a16>
  return
}

// -----

func.func @to_operand_c1_source(%a: !kvcache.fragment<64x32xbf16, wgmma_a16>) {
  // expected-error @below {{'kvcache.to_operand' op expects an accumulator, and an operand whose threads have the same elements, got '!kvcache.fragment<64x32xbf16, wgmma_a16>' and '!kvcache.fragment<64x32xbf16, wgmma_a16>'}}
  %y = kvcache.to_operand %a : !kvcache.fragment<64x32xbf16, wgmma_a16> -> !kvcache.fragment<64x32xbf16, wgmma_a16>
  return
}

// -----

func.func @to_operand_c2_integer(%a: !kvcache.fragment<64x32xf32, wgmma_acc>) {
  // expected-error @below {{'kvcache.to_operand' op expects floats, of the source f32 or those of the result, got 'f32' and 'i16'}}
  %y = kvcache.to_operand %a : !kvcache.fragment<64x32xf32, wgmma_acc> -> !kvcache.fragment<64x32xi16, wgmma_a16>
  return
}

// -----

func.func @to_operand_c2_source(%a: !kvcache.fragment<64x32xf16, wgmma_acc>) {
  // expected-error @below {{'kvcache.to_operand' op expects floats, of the source f32 or those of the result, got 'f16' and 'bf16'}}
  %y = kvcache.to_operand %a : !kvcache.fragment<64x32xf16, wgmma_acc> -> !kvcache.fragment<64x32xbf16, wgmma_a16>
  return
}

// -----

func.func @reduce_c5_missing(%a: !kvcache.fragment<16x64xf32, wgmma_acc_t>) {
  // expected-error @below {{'kvcache.reduce' op expects 'scratch' if warps share the rows of a result that is not partial, and only then, got '!kvcache.fragment<16xf32, wgmma_acc_t>'}}
  %y = kvcache.reduce addf %a : !kvcache.fragment<16x64xf32, wgmma_acc_t> -> !kvcache.fragment<16xf32, wgmma_acc_t>
  return
}

// -----

func.func @reduce_c5_partial(%a: !kvcache.fragment<16x64xf32, wgmma_acc_t>, %t: !kvcache.tile<4x16xf32>) {
  // expected-error @below {{'kvcache.reduce' op expects 'scratch' if warps share the rows of a result that is not partial, and only then, got '!kvcache.fragment<16xf32, wgmma_acc_t, partial>'}}
  %y = kvcache.reduce addf %a across %t : !kvcache.fragment<16x64xf32, wgmma_acc_t>, !kvcache.tile<4x16xf32> -> !kvcache.fragment<16xf32, wgmma_acc_t, partial>
  return
}

// -----

func.func @reduce_c5_other_layout(%a: !kvcache.fragment<64x32xf32, wgmma_acc>, %t: !kvcache.tile<4x64xf32>) {
  // expected-error @below {{'kvcache.reduce' op expects 'scratch' if warps share the rows of a result that is not partial, and only then, got '!kvcache.fragment<64xf32, wgmma_acc>'}}
  %y = kvcache.reduce addf %a across %t : !kvcache.fragment<64x32xf32, wgmma_acc>, !kvcache.tile<4x64xf32> -> !kvcache.fragment<64xf32, wgmma_acc>
  return
}

// -----

func.func @reduce_c5_type(%a: !kvcache.fragment<16x64xf32, wgmma_acc_t>, %t: !kvcache.tile<4x24xf32>) {
  // expected-error @below {{'kvcache.reduce' op expects 'scratch' to be '!kvcache.tile<4x16xf32>', got '!kvcache.tile<4x24xf32>'}}
  %y = kvcache.reduce addf %a across %t : !kvcache.fragment<16x64xf32, wgmma_acc_t>, !kvcache.tile<4x24xf32> -> !kvcache.fragment<16xf32, wgmma_acc_t>
  return
}

// -----

func.func @to_operand_transposed(%a: !kvcache.fragment<64x64xf32, wgmma_acc_t>) {
  // expected-error @below {{'kvcache.to_operand' op expects an accumulator, and an operand whose threads have the same elements}}
  %y = kvcache.to_operand %a : !kvcache.fragment<64x64xf32, wgmma_acc_t> -> !kvcache.fragment<64x64xbf16, wgmma_a16>
  return
}

// -----

func.func @map_c2_thread(%a: !kvcache.fragment<64xf32, wgmma_acc>, %i: index) {
  // expected-error @below {{'kvcache.map' op expects a row in 'at' for 'thread'}}
  %y = kvcache.map %a thread %i : !kvcache.fragment<64xf32, wgmma_acc> -> !kvcache.fragment<64xf32, wgmma_acc> {
  ^bb0(%e: f32):
    kvcache.yield %e : f32
  }
  return
}

// -----

func.func @reduce_c5_thread(%a: !kvcache.fragment<64x32xf32, wgmma_acc>, %thread: index) {
  // expected-error @below {{'kvcache.reduce' op expects no 'thread' without 'scratch'}}
  %y = kvcache.reduce maxnumf %a thread %thread : !kvcache.fragment<64x32xf32, wgmma_acc> -> !kvcache.fragment<64xf32, wgmma_acc>
  return
}
