// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{expects rows, and at most columns, got 0 sizes}}
func.func private @c1_no_rows(!kvcache.fragment<f32, wgmma_acc>)

// -----

// expected-error @below {{expects rows, and at most columns, got 3 sizes}}
func.func private @c1_rank(!kvcache.fragment<64x8x8xf32, wgmma_acc>)

// -----

// expected-error @below {{expects wgmma_acc to have 64 rows, got 16}}
func.func private @c1_rows(!kvcache.fragment<16x8xf32, wgmma_acc>)

// -----

// expected-error @below {{expects mma_a16 to have a multiple of 16 columns up to 1024, got 24}}
func.func private @c1_columns(!kvcache.fragment<16x24xbf16, mma_a16>)

// -----

// expected-error @below {{expects mma_acc to have a multiple of 8 columns up to 1024, got 0}}
func.func private @c1_no_columns(!kvcache.fragment<16x0xf32, mma_acc>)

// -----

// expected-error @below {{expects mma_acc to have a multiple of 8 columns up to 1024, got 1032}}
func.func private @c1_too_many(!kvcache.fragment<16x1032xf32, mma_acc>)

// -----

// expected-error @below {{expects floats or signless integers of at most 32 bits as elements, got 'index'}}
func.func private @c2_index(!kvcache.fragment<64x8xindex, wgmma_acc>)

// -----

// expected-error @below {{expects floats or signless integers of at most 32 bits as elements, got 'f64'}}
func.func private @c2_wide(!kvcache.fragment<64x8xf64, wgmma_acc>)

// -----

// expected-error @below {{expects floats or signless integers of at most 32 bits as elements, got 'ui8'}}
func.func private @c2_unsigned(!kvcache.fragment<64x8xui8, wgmma_acc>)

// -----

// expected-error @below {{expects elements of 16 bits in wgmma_a16, got 'f32'}}
func.func private @c2_bits(!kvcache.fragment<64x32xf32, wgmma_a16>)

// -----

// expected-error @below {{expects a partial fragment to have one dimension and an accumulator's layout, got 2 and wgmma_acc}}
func.func private @c3_matrix(!kvcache.fragment<64x8xf32, wgmma_acc, partial>)

// -----

// expected-error @below {{expects a partial fragment to have one dimension and an accumulator's layout, got 1 and wgmma_a16}}
func.func private @c3_operand(!kvcache.fragment<64xbf16, wgmma_a16, partial>)

// -----

// expected-error @below {{failed to parse KVCache_FragmentType parameter 'layout' which is to be a `::mlir::kvcache::FragmentLayout`}}
// expected-error @below {{expected one of [mma_acc, mma_a16, wgmma_acc, wgmma_a16, wgmma_a8, tmem_acc, wgmma_acc_t, mma_a16_pairs, mma_acc_pairs] for which elements of a matrix a thread has, got: wgmma}}
func.func private @layout(!kvcache.fragment<64x8xf32, wgmma>)

// -----

// expected-error @below {{expected 'partial'}}
func.func private @partial(!kvcache.fragment<64xf32, wgmma_acc, whole>)

// -----

// expected-error @below {{expects tmem_acc to have 64 or 128 rows, got 96}}
func.func private @c1_tmem_rows(!kvcache.fragment<96x8xf32, tmem_acc>)

// -----

// expected-error @below {{expects the layout of an accumulator in registers, got tmem_acc}}
func.func private @in_flight_c1_tmem(!kvcache.in_flight<128x8xf32, tmem_acc>)

// -----

// expected-error @below {{expects rows and columns, got one size}}
func.func private @in_flight_c1_rank(!kvcache.in_flight<64xf32, wgmma_acc>)

// -----

// expected-error @below {{expects the layout of an accumulator in registers, got wgmma_a16}}
func.func private @in_flight_c1_layout(!kvcache.in_flight<64x32xbf16, wgmma_a16>)

// -----

// expected-error @below {{expects f32, f16 or i32 as element type, got 'bf16'}}
func.func private @in_flight_c2(!kvcache.in_flight<64x32xbf16, wgmma_acc>)

// -----

func.func @splat_type(%x: f16) {
  // expected-error @below {{'kvcache.splat' op failed to verify that 'value' has the element type of 'result'}}
  %y = "kvcache.splat"(%x) : (f16) -> !kvcache.fragment<64x32xf32, wgmma_acc>
  return
}

// -----

func.func @map_c1_none() {
  // expected-error @below {{'kvcache.map' op expects a fragment}}
  %y = "kvcache.map"() <{operandSegmentSizes = array<i32: 0, 0, 0>}> ({
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

func.func @load_c1_element(%t: !kvcache.tile<64x64xf32, swizzle_128b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_load' op expects a fragment of two dimensions with the elements of the tile, whole bytes, got '!kvcache.fragment<64x32xbf16, wgmma_a16>' and '!kvcache.tile<64x64xf32, swizzle_128b>'}}
  %y = kvcache.fragment_load %t[%i, %i] : !kvcache.tile<64x64xf32, swizzle_128b> -> !kvcache.fragment<64x32xbf16, wgmma_a16>
  return
}

// -----

func.func @load_c1_rank(%t: !kvcache.tile<64x64xf32, swizzle_128b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_load' op expects a fragment of two dimensions with the elements of the tile, whole bytes, got '!kvcache.fragment<64xf32, wgmma_acc>' and '!kvcache.tile<64x64xf32, swizzle_128b>'}}
  %y = kvcache.fragment_load %t[%i, %i] : !kvcache.tile<64x64xf32, swizzle_128b> -> !kvcache.fragment<64xf32, wgmma_acc>
  return
}

// -----

func.func @load_c2_size(%t: !kvcache.tile<64x64xbf16, swizzle_128b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_load' op expects 'tile' to have at least 64 rows and 128 columns, got 64 and 64}}
  %y = kvcache.fragment_load %t[%i, %i] : !kvcache.tile<64x64xbf16, swizzle_128b> -> !kvcache.fragment<64x128xbf16, wgmma_a16>
  return
}

// -----

func.func @store_c1_bits(%t: !kvcache.tile<64x64xbf16, swizzle_128b>, %i: index, %a: !kvcache.fragment<64x32xi1, wgmma_acc>) {
  // expected-error @below {{'kvcache.fragment_store' op expects a fragment of two dimensions with the elements of the tile, whole bytes, got '!kvcache.fragment<64x32xi1, wgmma_acc>' and '!kvcache.tile<64x64xbf16, swizzle_128b>'}}
  kvcache.fragment_store %a, %t[%i, %i] : !kvcache.fragment<64x32xi1, wgmma_acc>, !kvcache.tile<64x64xbf16, swizzle_128b>
  return
}

// -----

func.func @store_c2_size(%t: !kvcache.tile<32x64xbf16, swizzle_128b>, %i: index, %a: !kvcache.fragment<64x32xbf16, wgmma_a16>) {
  // expected-error @below {{'kvcache.fragment_store' op expects 'tile' to have at least 64 rows and 32 columns, got 32 and 64}}
  kvcache.fragment_store %a, %t[%i, %i] : !kvcache.fragment<64x32xbf16, wgmma_a16>, !kvcache.tile<32x64xbf16, swizzle_128b>
  return
}

// -----

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

// -----

func.func @mma_c1(%t: !kvcache.tile<64x64xbf16, swizzle_128b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects 'a_row' and 'a_column' if 'a' is a tile, and only then}}
  %y = kvcache.fragment_mma %t, %t[%i, %i] : !kvcache.tile<64x64xbf16, swizzle_128b>, !kvcache.tile<64x64xbf16, swizzle_128b> -> !kvcache.in_flight<64x32xf32, wgmma_acc>
  return
}

// -----

func.func @mma_c1_fragment(%a: !kvcache.fragment<64x32xbf16, wgmma_a16>, %t: !kvcache.tile<64x64xbf16, swizzle_128b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects 'a_row' and 'a_column' if 'a' is a tile, and only then}}
  %y = kvcache.fragment_mma %a[%i, %i], %t[%i, %i] : !kvcache.fragment<64x32xbf16, wgmma_a16>, !kvcache.tile<64x64xbf16, swizzle_128b> -> !kvcache.in_flight<64x32xf32, wgmma_acc>
  return
}

// -----

func.func @mma_c1_k(%a: !kvcache.fragment<64x32xbf16, wgmma_a16>, %t: !kvcache.tile<64x64xbf16, swizzle_128b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects no 'k' and no 'major_a', because 'a' is a fragment}}
  %y = kvcache.fragment_mma %a, %t[%i, %i] {k = 32} : !kvcache.fragment<64x32xbf16, wgmma_a16>, !kvcache.tile<64x64xbf16, swizzle_128b> -> !kvcache.in_flight<64x32xf32, wgmma_acc>
  return
}

// -----

func.func @mma_c2_wgmma(%a: !kvcache.fragment<16x32xbf16, mma_a16>, %t: !kvcache.tile<64x64xbf16, swizzle_128b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects 'a' to be wgmma_a16 or wgmma_a8 of two dimensions, got '!kvcache.fragment<16x32xbf16, mma_a16>'}}
  %y = kvcache.fragment_mma %a, %t[%i, %i] : !kvcache.fragment<16x32xbf16, mma_a16>, !kvcache.tile<64x64xbf16, swizzle_128b> -> !kvcache.in_flight<64x32xf32, wgmma_acc>
  return
}

// -----

func.func @mma_c2_sync(%a: !kvcache.fragment<64x32xbf16, wgmma_a16>, %t: !kvcache.tile<64x64xbf16, swizzle_128b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects 'a' to be mma_a16 of two dimensions, got '!kvcache.fragment<64x32xbf16, wgmma_a16>'}}
  %y = kvcache.fragment_mma %a, %t[%i, %i] : !kvcache.fragment<64x32xbf16, wgmma_a16>, !kvcache.tile<64x64xbf16, swizzle_128b> -> !kvcache.in_flight<16x32xf32, mma_acc>
  return
}

// -----

func.func @mma_c2_row(%a: !kvcache.fragment<64xbf16, wgmma_a16>, %t: !kvcache.tile<64x64xbf16, swizzle_128b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects 'a' to be wgmma_a16 or wgmma_a8 of two dimensions, got '!kvcache.fragment<64xbf16, wgmma_a16>'}}
  %y = kvcache.fragment_mma %a, %t[%i, %i] : !kvcache.fragment<64xbf16, wgmma_a16>, !kvcache.tile<64x64xbf16, swizzle_128b> -> !kvcache.in_flight<64x32xf32, wgmma_acc>
  return
}

// -----

func.func @mma_c3(%a: !kvcache.fragment<64x32xbf16, wgmma_a16>, %t: !kvcache.tile<64x64xbf16, swizzle_128b>, %o: !kvcache.fragment<16x32xf32, mma_acc>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects 'accumulator' to be '!kvcache.fragment<64x32xf32, wgmma_acc>' or '!kvcache.in_flight<64x32xf32, wgmma_acc>', got '!kvcache.fragment<16x32xf32, mma_acc>'}}
  %y = kvcache.fragment_mma %a, %t[%i, %i] add %o : !kvcache.fragment<64x32xbf16, wgmma_a16>, !kvcache.tile<64x64xbf16, swizzle_128b>, !kvcache.fragment<16x32xf32, mma_acc> -> !kvcache.in_flight<64x32xf32, wgmma_acc>
  return
}

// -----

func.func @mma_c4_types(%a: !kvcache.fragment<64x32xbf16, wgmma_a16>, %t: !kvcache.tile<64x64xf16, swizzle_128b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects bf16, bf16 and f32, f16, f16 and f32 or f16, f8E4M3FN or f8E5M2 twice and f32 or f16, or i8, i8 and i32 as element types, got 'bf16', 'f16' and 'f32'}}
  %y = kvcache.fragment_mma %a, %t[%i, %i] : !kvcache.fragment<64x32xbf16, wgmma_a16>, !kvcache.tile<64x64xf16, swizzle_128b> -> !kvcache.in_flight<64x32xf32, wgmma_acc>
  return
}

// -----

func.func @mma_c4_swizzle(%a: !kvcache.fragment<64x32xbf16, wgmma_a16>, %t: !kvcache.tile<64x64xbf16>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects 'b' to have a swizzle, got '!kvcache.tile<64x64xbf16>'}}
  %y = kvcache.fragment_mma %a, %t[%i, %i] : !kvcache.fragment<64x32xbf16, wgmma_a16>, !kvcache.tile<64x64xbf16> -> !kvcache.in_flight<64x32xf32, wgmma_acc>
  return
}

// -----

func.func @mma_c4_n(%a: !kvcache.fragment<64x32xbf16, wgmma_a16>, %t: !kvcache.tile<264x64xbf16, swizzle_128b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects n, the columns of the product, to be a multiple of 8 from 8 to 256, got 264}}
  %y = kvcache.fragment_mma %a, %t[%i, %i] : !kvcache.fragment<64x32xbf16, wgmma_a16>, !kvcache.tile<264x64xbf16, swizzle_128b> -> !kvcache.in_flight<64x264xf32, wgmma_acc>
  return
}

// -----

func.func @mma_c5_tile(%t: !kvcache.tile<64x64xbf16, swizzle_128b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects 'a' to be a fragment: only wgmma reads A from tiles}}
  %y = kvcache.fragment_mma %t[%i, %i], %t[%i, %i] : !kvcache.tile<64x64xbf16, swizzle_128b>, !kvcache.tile<64x64xbf16, swizzle_128b> -> !kvcache.in_flight<16x32xf32, mma_acc>
  return
}

// -----

func.func @mma_c5_types(%a: !kvcache.fragment<16x32xi16, mma_a16>, %t: !kvcache.tile<64x64xbf16, swizzle_128b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects bf16 or f16 twice, and f32, as element types, got 'i16', 'bf16' and 'f32'}}
  %y = kvcache.fragment_mma %a, %t[%i, %i] : !kvcache.fragment<16x32xi16, mma_a16>, !kvcache.tile<64x64xbf16, swizzle_128b> -> !kvcache.in_flight<16x32xf32, mma_acc>
  return
}

// -----

func.func @mma_c5_n(%a: !kvcache.fragment<16x32xbf16, mma_a16>, %t: !kvcache.tile<64x64xbf16, swizzle_128b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects the result to have a multiple of 16 columns, got 24}}
  %y = kvcache.fragment_mma %a, %t[%i, %i] : !kvcache.fragment<16x32xbf16, mma_a16>, !kvcache.tile<64x64xbf16, swizzle_128b> -> !kvcache.in_flight<16x24xf32, mma_acc>
  return
}

// -----

func.func @mma_c6(%a: !kvcache.fragment<16x32xbf16, mma_a16>, %t: !kvcache.tile<64x64xbf16, swizzle_128b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects 'b' to have at least 80 rows and 32 columns, got 64 and 64}}
  %y = kvcache.fragment_mma %a, %t[%i, %i] : !kvcache.fragment<16x32xbf16, mma_a16>, !kvcache.tile<64x64xbf16, swizzle_128b> -> !kvcache.in_flight<16x80xf32, mma_acc>
  return
}

// -----

func.func @load_c3_repeated(%t: !kvcache.tile<64x64xbf16, swizzle_128b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_load' op expects an accumulator for 'repeated', got '!kvcache.fragment<16x32xbf16, mma_a16>'}}
  %y = kvcache.fragment_load %t[%i, %i] {repeated} : !kvcache.tile<64x64xbf16, swizzle_128b> -> !kvcache.fragment<16x32xbf16, mma_a16>
  return
}

// -----

func.func @load_c3_paired(%t: !kvcache.tile<64x64xbf16, swizzle_128b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_load' op expects mma_a16_pairs for 'paired', got '!kvcache.fragment<16x32xbf16, mma_a16>'}}
  %y = kvcache.fragment_load %t[%i, %i] {paired} : !kvcache.tile<64x64xbf16, swizzle_128b> -> !kvcache.fragment<16x32xbf16, mma_a16>
  return
}

// -----

func.func @mma_c2_pairs(%a: !kvcache.fragment<16x32xf16, mma_a16>, %t: !kvcache.tile<64x64xi8, swizzle_64b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects 'a' to be mma_a16_pairs of two dimensions, got '!kvcache.fragment<16x32xf16, mma_a16>'}}
  %y = kvcache.fragment_mma %a, %t[%i, %i] : !kvcache.fragment<16x32xf16, mma_a16>, !kvcache.tile<64x64xi8, swizzle_64b> -> !kvcache.in_flight<16x32xf32, mma_acc>
  return
}

// -----

func.func @mma_c2_no_pairs(%a: !kvcache.fragment<16x32xf16, mma_a16_pairs>, %t: !kvcache.tile<64x64xf16, swizzle_128b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects 'a' to be mma_a16 of two dimensions, got '!kvcache.fragment<16x32xf16, mma_a16_pairs>'}}
  %y = kvcache.fragment_mma %a, %t[%i, %i] : !kvcache.fragment<16x32xf16, mma_a16_pairs>, !kvcache.tile<64x64xf16, swizzle_128b> -> !kvcache.in_flight<16x32xf32, mma_acc>
  return
}

// -----

func.func @mma_c7_half(%a: !kvcache.fragment<16x32xbf16, mma_a16_pairs>, %t: !kvcache.tile<64x64xf8E4M3FN, swizzle_64b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects f16, f8E4M3FN, f8E5M2 or i8, and f32, as element types, got 'bf16', 'f8E4M3FN' and 'f32'}}
  %y = kvcache.fragment_mma %a, %t[%i, %i] : !kvcache.fragment<16x32xbf16, mma_a16_pairs>, !kvcache.tile<64x64xf8E4M3FN, swizzle_64b> -> !kvcache.in_flight<16x32xf32, mma_acc>
  return
}

// -----

func.func @mma_c7_element(%a: !kvcache.fragment<16x32xf16, mma_a16_pairs>, %t: !kvcache.tile<64x64xf8E8M0FNU, swizzle_64b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects f16, f8E4M3FN, f8E5M2 or i8, and f32, as element types, got 'f16', 'f8E8M0FNU' and 'f32'}}
  %y = kvcache.fragment_mma %a, %t[%i, %i] : !kvcache.fragment<16x32xf16, mma_a16_pairs>, !kvcache.tile<64x64xf8E8M0FNU, swizzle_64b> -> !kvcache.in_flight<16x32xf32, mma_acc>
  return
}

// -----

func.func @mma_c7_acc(%a: !kvcache.fragment<16x32xf16, mma_a16>, %t: !kvcache.tile<64x64xi8, swizzle_64b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects the result to be mma_acc_pairs, got '!kvcache.in_flight<16x32xf32, mma_acc>'}}
  %y = kvcache.fragment_mma %a, %t[%i, %i] {major_b = #kvcache.major<mn_major>} : !kvcache.fragment<16x32xf16, mma_a16>, !kvcache.tile<64x64xi8, swizzle_64b> -> !kvcache.in_flight<16x32xf32, mma_acc>
  return
}

// -----

func.func @mma_c7_acc_of_keys(%a: !kvcache.fragment<16x32xf16, mma_a16_pairs>, %t: !kvcache.tile<64x64xi8, swizzle_64b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects the result to be mma_acc, got '!kvcache.in_flight<16x32xf32, mma_acc_pairs>'}}
  %y = kvcache.fragment_mma %a, %t[%i, %i] : !kvcache.fragment<16x32xf16, mma_a16_pairs>, !kvcache.tile<64x64xi8, swizzle_64b> -> !kvcache.in_flight<16x32xf32, mma_acc_pairs>
  return
}

// -----

func.func @wait_none() {
  // expected-error @below {{'kvcache.fragment_wait' op expects a product}}
  "kvcache.fragment_wait"() : () -> ()
  return
}

// -----

func.func @wait_c1(%a: !kvcache.in_flight<64x32xf32, wgmma_acc>, %b: !kvcache.in_flight<16x32xf32, mma_acc>) {
  // expected-error @below {{'kvcache.fragment_wait' op expects products of one instruction}}
  %y:2 = kvcache.fragment_wait %a, %b : !kvcache.in_flight<64x32xf32, wgmma_acc>, !kvcache.in_flight<16x32xf32, mma_acc>
  return
}

// -----

func.func @wait_c2(%b: !kvcache.in_flight<16x32xf32, mma_acc>) {
  // expected-error @below {{'kvcache.fragment_wait' op expects no 'pending' for products of mma.sync, got 1}}
  %y = kvcache.fragment_wait %b pending 1 : !kvcache.in_flight<16x32xf32, mma_acc>
  return
}

// -----

func.func @wait_c2_pairs(%b: !kvcache.in_flight<16x32xf32, mma_acc_pairs>) {
  // expected-error @below {{'kvcache.fragment_wait' op expects no 'pending' for products of mma.sync, got 2}}
  %y = kvcache.fragment_wait %b pending 2 : !kvcache.in_flight<16x32xf32, mma_acc_pairs>
  return
}

// -----

func.func @wait_complete(%a: !kvcache.fragment<64x32xf32, wgmma_acc>) {
  // expected-error @below {{'kvcache.fragment_wait' op operand #0 must be variadic of product of matrices that is being computed, but got '!kvcache.fragment<64x32xf32, wgmma_acc>'}}
  %y = "kvcache.fragment_wait"(%a) : (!kvcache.fragment<64x32xf32, wgmma_acc>) -> !kvcache.fragment<64x32xf32, wgmma_acc>
  return
}

// -----

func.func @in_flight_map(%a: !kvcache.in_flight<64x32xf32, wgmma_acc>) {
  // expected-error @below {{'kvcache.map' op operand #0 must be variadic of matrix in the registers of a team of threads, but got '!kvcache.in_flight<64x32xf32, wgmma_acc>'}}
  %y = "kvcache.map"(%a) <{operandSegmentSizes = array<i32: 1, 0, 0>}> ({
  ^bb0(%e: f32):
    kvcache.yield %e : f32
  }) : (!kvcache.in_flight<64x32xf32, wgmma_acc>) -> !kvcache.fragment<64x32xf32, wgmma_acc>
  return
}

// -----

func.func @in_flight_store(%a: !kvcache.in_flight<64x32xf32, wgmma_acc>, %t: !kvcache.tile<64x64xf32, swizzle_128b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_store' op operand #0 must be matrix in the registers of a team of threads, but got '!kvcache.in_flight<64x32xf32, wgmma_acc>'}}
  "kvcache.fragment_store"(%a, %t, %i, %i) : (!kvcache.in_flight<64x32xf32, wgmma_acc>, !kvcache.tile<64x64xf32, swizzle_128b>, index, index) -> ()
  return
}

// -----

func.func @fence_c1(%a: !kvcache.fragment<64x32xf32, wgmma_acc>) {
  // expected-error @below {{'kvcache.schedule_fence' op expects one dimension and f32, got '!kvcache.fragment<64x32xf32, wgmma_acc>'}}
  kvcache.schedule_fence %a : !kvcache.fragment<64x32xf32, wgmma_acc>
  return
}

// -----

// expected-error @below {{expects wgmma_acc_t to have a multiple of 8 rows up to 256, got 12}}
func.func private @c1_transposed_rows(!kvcache.fragment<12x64xf32, wgmma_acc_t>)

// -----

// expected-error @below {{expects wgmma_acc_t to have a multiple of 8 rows up to 256, got 264}}
func.func private @c1_transposed_most_rows(!kvcache.fragment<264x64xf32, wgmma_acc_t>)

// -----

// expected-error @below {{expects wgmma_acc_t to have a multiple of 64 columns up to 1024, got 32}}
func.func private @c1_transposed_columns(!kvcache.in_flight<16x32xf32, wgmma_acc_t>)

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

func.func @store_transposed(%a: !kvcache.fragment<16x64xbf16, wgmma_acc_t>, %t: !kvcache.tile<16x64xbf16>, %i: index) {
  // expected-error @below {{'kvcache.fragment_store' op expects 'tile' to have at least 64 rows and 16 columns, got 16 and 64}}
  kvcache.fragment_store %a, %t[%i, %i] transposed : !kvcache.fragment<16x64xbf16, wgmma_acc_t>, !kvcache.tile<16x64xbf16>
  return
}

// -----

func.func @mma_c4_transposed(%a: !kvcache.fragment<64x64xbf16, wgmma_a16>, %t: !kvcache.tile<64x64xbf16, swizzle_128b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects 'a' to be a tile for wgmma_acc_t, got '!kvcache.fragment<64x64xbf16, wgmma_a16>'}}
  %y = kvcache.fragment_mma %a, %t[%i, %i] : !kvcache.fragment<64x64xbf16, wgmma_a16>, !kvcache.tile<64x64xbf16, swizzle_128b> -> !kvcache.in_flight<64x64xf32, wgmma_acc_t>
  return
}

// -----

func.func @mma_c6_transposed(%q: !kvcache.tile<16x64xbf16, swizzle_128b>, %t: !kvcache.tile<64x64xbf16, swizzle_128b>, %i: index) {
  // expected-error @below {{'kvcache.fragment_mma' op expects 'a' to have at least 24 rows and 64 columns, got 16 and 64}}
  %y = kvcache.fragment_mma %q[%i, %i], %t[%i, %i] : !kvcache.tile<16x64xbf16, swizzle_128b>, !kvcache.tile<64x64xbf16, swizzle_128b> -> !kvcache.in_flight<24x64xf32, wgmma_acc_t>
  return
}

// -----

func.func @to_operand_transposed(%a: !kvcache.fragment<64x64xf32, wgmma_acc_t>) {
  // expected-error @below {{'kvcache.to_operand' op expects an accumulator, and an operand whose threads have the same elements}}
  %y = kvcache.to_operand %a : !kvcache.fragment<64x64xf32, wgmma_acc_t> -> !kvcache.fragment<64x64xbf16, wgmma_a16>
  return
}
