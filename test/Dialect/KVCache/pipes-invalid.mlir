// RUN: kvcache-opt %s --split-input-file --verify-diagnostics

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

// expected-error @below {{expects 1 to 64 stages, got 0}}
func.func private @c1_no_stage(!kvcache.pipe<0, !kt>)

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

// expected-error @below {{expects 1 to 64 stages, got -1}}
func.func private @c1_negative_stages(!kvcache.pipe<-1, !kt>)

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

// expected-error @below {{expects 1 to 64 stages, got 65}}
func.func private @c1_too_many_stages(!kvcache.pipe<65, !kt>)

// -----

// expected-error @below {{expects at least one tile}}
func.func private @c1_no_tile(!kvcache.pipe<3>)

// -----

// expected-error @below {{expects at least one tile}}
func.func private @c1_no_tile_but_producers(!kvcache.pipe<3, producers = 1>)

// -----

// expected-error @below {{expects a tile type, got 'bf16'}}
func.func private @c1_tiles_of_floats(!kvcache.pipe<3, bf16>)

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

// expected-error @below {{expects a tile type, got 'memref<64x128xbf16>'}}
func.func private @c1_tiles_of_memory(!kvcache.pipe<3, !kt, memref<64x128xbf16>>)

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

// expected-error @below {{expects a tile type, got '!kvcache.pipe<2, !kvcache.tile<64x128xbf16, swizzle_128b>>'}}
func.func private @c1_pipe_of_pipes(!kvcache.pipe<3, !kvcache.pipe<2, !kt>>)

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

// expected-error @below {{expects producers to be positive, got 0}}
func.func private @c2_no_producers(!kvcache.pipe<3, !kt, producers = 0>)

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

// expected-error @below {{expects producers to be 1 to 31 warps, got -1}}
func.func private @c2_negative_producers(!kvcache.pipe<3, !kt, producers = -1>)

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

// expected-error @below {{expects producers to be 1 to 31 warps, got 32}}
func.func private @c2_too_many_producers(!kvcache.pipe<3, !kt, producers = 32>)

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

// expected-error @below {{integer value too large}}
func.func private @producers_of_more_bits(!kvcache.pipe<3, !kt, producers = 99999999999999999999>)

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

// expected-error @below {{expected '>'}}
func.func private @tile_behind_producers(!kvcache.pipe<3, !kt, producers = 1, !kt>)

// -----

// expected-error @below {{expects rows and columns to be positive, got 0x0}}
func.func private @empty_tile(!kvcache.pipe<3, !kvcache.tile<0x0xbf16>>)

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

// expected-error @below {{expected '>'}}
func.func private @missing_comma(!kvcache.pipe<3, !kt !kt>)

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

// expected-error @below {{expected integer value}}
// expected-error @below {{failed to parse KVCache_PipeType parameter 'stages'}}
func.func private @no_stages(!kvcache.pipe<!kt>)

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

// expected-error @below {{expected integer value}}
// expected-error @below {{failed to parse KVCache_PipeType parameter 'stages'}}
func.func private @dynamic_stages(!kvcache.pipe<?, !kt>)

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

// expected-error @below {{integer value too large}}
// expected-error @below {{failed to parse KVCache_PipeType parameter 'stages'}}
func.func private @stages_of_more_bits(!kvcache.pipe<99999999999999999999, !kt>)

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

func.func @pipe_of_no_pipe() {
  // expected-error @below {{'kvcache.pipe' op result #0 must be pipe of tiles, but got '!kvcache.tile<64x128xbf16, swizzle_128b>'}}
  %ring = kvcache.pipe : !kt
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @c1_pipe_in_for(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    // expected-error @below {{'kvcache.pipe' op expects not to be in a loop}}
    %ring = kvcache.pipe : !ring
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @c1_pipe_in_while(%n: index, %b: i1) {
  scf.while : () -> () {
    scf.condition(%b)
  } do {
    // expected-error @below {{'kvcache.pipe' op expects not to be in a loop}}
    %ring = kvcache.pipe : !ring
    scf.yield
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @c1_pipe_in_a_loop_of_a_launch(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%dx = %c1, %dy = %c1, %dz = %c1) {
    scf.for %i = %c0 to %n step %c1 {
      // expected-error @below {{'kvcache.pipe' op expects not to be in a loop}}
      %ring = kvcache.pipe : !ring
    }
    gpu.terminator
  }
  return
}

// -----

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

func.func @c1_produce_without_tiles(%i: index) {
  %ring = kvcache.pipe : !ring
  // expected-error @below {{'kvcache.produce' op expects the arguments of the region to be the tiles of '!kvcache.pipe<3, !kvcache.tile<64x128xbf16, swizzle_128b>>', got ()}}
  kvcache.produce %ring[%i] : !ring {
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @c1_produce_with_two_tiles(%i: index) {
  %ring = kvcache.pipe : !ring
  // expected-error @below {{'kvcache.produce' op expects the arguments of the region to be the tiles of '!kvcache.pipe<3, !kvcache.tile<64x128xbf16, swizzle_128b>>', got ('!kvcache.tile<64x128xbf16, swizzle_128b>', '!kvcache.tile<64x128xbf16, swizzle_128b>')}}
  kvcache.produce %ring[%i] : !ring {
  ^bb0(%ks: !kt, %vs: !kt):
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @c1_produce_with_another_tile(%i: index) {
  %ring = kvcache.pipe : !ring
  // expected-error @below {{'kvcache.produce' op expects the arguments of the region to be the tiles of '!kvcache.pipe<3, !kvcache.tile<64x128xbf16, swizzle_128b>>', got ('!kvcache.tile<64x128xbf16>')}}
  kvcache.produce %ring[%i] : !ring {
  ^bb0(%ks: !kvcache.tile<64x128xbf16>):
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @c1_produce_that_yields(%i: index) {
  %ring = kvcache.pipe : !ring
  // expected-error @below {{'kvcache.produce' op expects the region not to yield values}}
  kvcache.produce %ring[%i] : !ring {
  ^bb0(%ks: !kt):
    kvcache.yield %i : index
  }
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @c2_copy_into_a_foreign_tile(%k: !cache, %kt: !kt, %i: index) {
  %ring = kvcache.pipe : !ring
  kvcache.produce %ring[%i] : !ring {
  ^bb0(%ks: !kt):
    // expected-error @below {{'kvcache.async_load_tile' op expects 'tile' to be an argument of the region of 'kvcache.produce'}}
    kvcache.async_load_tile %k[%i, %i, %i, %i] to %kt : !cache, !kt
  }
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @c2_gather_into_a_foreign_tile(%k: !cache, %ids: memref<64xi32>, %i: index) {
  %ring = kvcache.pipe : !ring
  %kt = kvcache.alloc_tile : !kt
  kvcache.produce %ring[%i] : !ring {
  ^bb0(%ks: !kt):
    // expected-error @below {{'kvcache.async_gather_tile' op expects 'tile' to be an argument of the region of 'kvcache.produce'}}
    kvcache.async_gather_tile %k[%i, %i] rows %ids to %kt : !cache, memref<64xi32>, !kt
  }
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @c2_copy_in_a_loop(%k: !cache, %i: index) {
  %ring = kvcache.pipe : !ring
  kvcache.produce %ring[%i] : !ring {
  ^bb0(%ks: !kt):
    // expected-error @below {{'scf.for' op is not allowed in the region of 'kvcache.produce', which may contain only copies and ops that do not write memory}}
    scf.for %j = %i to %i step %i {
      kvcache.async_load_tile %k[%i, %i, %j, %i] to %ks : !cache, !kt
    }
  }
  return
}

// -----

#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>
!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @c2_wait(%k: !cache, %i: index) {
  %ring = kvcache.pipe : !ring
  kvcache.produce %ring[%i] : !ring {
  ^bb0(%ks: !kt):
    %tok = kvcache.async_load_tile %k[%i, %i, %i, %i] to %ks : !cache, !kt
    // expected-error @below {{'kvcache.wait' op is not allowed in the region of 'kvcache.produce', which may contain only copies and ops that do not write memory}}
    kvcache.wait %tok
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @c2_store(%m: memref<4xf32>, %x: f32, %i: index) {
  %ring = kvcache.pipe : !ring
  kvcache.produce %ring[%i] : !ring {
  ^bb0(%ks: !kt):
    // expected-error @below {{'memref.store' op is not allowed in the region of 'kvcache.produce', which may contain only copies and ops that do not write memory}}
    memref.store %x, %m[%i] : memref<4xf32>
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @c2_allocation(%i: index) {
  %ring = kvcache.pipe : !ring
  kvcache.produce %ring[%i] : !ring {
  ^bb0(%ks: !kt):
    // expected-error @below {{'memref.alloc' op is not allowed in the region of 'kvcache.produce', which may contain only copies and ops that do not write memory}}
    %m = memref.alloc() : memref<4xf32>
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @c2_tile(%i: index) {
  %ring = kvcache.pipe : !ring
  kvcache.produce %ring[%i] : !ring {
  ^bb0(%ks: !kt):
    // expected-error @below {{'kvcache.alloc_tile' op is not allowed in the region of 'kvcache.produce', which may contain only copies and ops that do not write memory}}
    %kt = kvcache.alloc_tile : !kt
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @c2_tile_store(%x: bf16, %i: index) {
  %ring = kvcache.pipe : !ring
  kvcache.produce %ring[%i] : !ring {
  ^bb0(%ks: !kt):
    // expected-error @below {{'kvcache.tile_store' op is not allowed in the region of 'kvcache.produce', which may contain only copies and ops that do not write memory}}
    kvcache.tile_store %x, %ks[%i, %i] : bf16, !kt
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @c2_barrier(%i: index) {
  %ring = kvcache.pipe : !ring
  kvcache.produce %ring[%i] : !ring {
  ^bb0(%ks: !kt):
    // expected-error @below {{'gpu.barrier' op is not allowed in the region of 'kvcache.produce', which may contain only copies and ops that do not write memory}}
    gpu.barrier
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @c2_call(%i: index) {
  %ring = kvcache.pipe : !ring
  kvcache.produce %ring[%i] : !ring {
  ^bb0(%ks: !kt):
    // expected-error @below {{'func.call' op is not allowed in the region of 'kvcache.produce', which may contain only copies and ops that do not write memory}}
    func.call @c2_call(%i) : (index) -> ()
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @c2_consume_in_produce(%i: index) {
  %ring = kvcache.pipe : !ring
  kvcache.produce %ring[%i] : !ring {
  ^bb0(%ks: !kt):
    // expected-error @below {{'kvcache.consume' op is not allowed in the region of 'kvcache.produce', which may contain only copies and ops that do not write memory}}
    kvcache.consume %ring[%i] : !ring {
    ^bb0(%vs: !kt):
    }
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @c3_produce_of_an_argument(%ring: !ring, %i: index) {
  // expected-error @below {{'kvcache.produce' op expects 'pipe' to be the result of 'kvcache.pipe' in the same function}}
  kvcache.produce %ring[%i] : !ring {
  ^bb0(%ks: !kt):
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @c3_produce_of_a_carried_pipe(%i: index) {
  %ring = kvcache.pipe : !ring
  scf.for %j = %i to %i step %i iter_args(%carried = %ring) -> (!ring) {
    // expected-error @below {{'kvcache.produce' op expects 'pipe' to be the result of 'kvcache.pipe' in the same function}}
    kvcache.produce %carried[%j] : !ring {
    ^bb0(%ks: !kt):
    }
    scf.yield %carried : !ring
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @c1_consume_with_another_tile(%i: index) {
  %ring = kvcache.pipe : !ring
  // expected-error @below {{'kvcache.consume' op expects the arguments of the region to be the tiles of '!kvcache.pipe<3, !kvcache.tile<64x128xbf16, swizzle_128b>>', got ('index')}}
  kvcache.consume %ring[%i] : !ring {
  ^bb0(%ks: index):
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @c1_consume_without_yield(%i: index) {
  %ring = kvcache.pipe : !ring
  // expected-error @below {{'kvcache.consume' op expects the region to yield ('f32'), got ()}}
  %x = kvcache.consume %ring[%i] : !ring -> (f32) {
  ^bb0(%ks: !kt):
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @c1_consume_without_result(%i: index, %x: f32) {
  %ring = kvcache.pipe : !ring
  // expected-error @below {{'kvcache.consume' op expects the region to yield (), got ('f32')}}
  kvcache.consume %ring[%i] : !ring {
  ^bb0(%ks: !kt):
    kvcache.yield %x : f32
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @c1_consume_of_another_result(%i: index) {
  %ring = kvcache.pipe : !ring
  // expected-error @below {{'kvcache.consume' op expects the region to yield ('f32'), got ('index')}}
  %x = kvcache.consume %ring[%i] : !ring -> (f32) {
  ^bb0(%ks: !kt):
    kvcache.yield %i : index
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @c1_consume_of_too_few_results(%i: index, %x: f32) {
  %ring = kvcache.pipe : !ring
  // expected-error @below {{'kvcache.consume' op expects the region to yield ('f32', 'f32'), got ('f32')}}
  %y:2 = kvcache.consume %ring[%i] : !ring -> (f32, f32) {
  ^bb0(%ks: !kt):
    kvcache.yield %x : f32
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @c2_consume_of_an_argument(%ring: !ring, %i: index) {
  // expected-error @below {{'kvcache.consume' op expects 'pipe' to be the result of 'kvcache.pipe' in the same function}}
  kvcache.consume %ring[%i] : !ring {
  ^bb0(%ks: !kt):
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @c2_consume_of_the_hosts_pipe(%i: index) {
  %c1 = arith.constant 1 : index
  %ring = kvcache.pipe : !ring
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%dx = %c1, %dy = %c1, %dz = %c1) {
    // expected-error @below {{'kvcache.consume' op expects 'pipe' to be the result of 'kvcache.pipe' in the same function}}
    kvcache.consume %ring[%i] : !ring {
    ^bb0(%ks: !kt):
    }
    gpu.terminator
  }
  return
}

// -----

func.func @yield_in_a_function() {
  // expected-error @below {{'kvcache.yield' op expects parent op to be one of 'kvcache.produce, kvcache.consume'}}
  kvcache.yield
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @yield_in_a_branch(%i: index, %b: i1) {
  %ring = kvcache.pipe : !ring
  kvcache.consume %ring[%i] : !ring {
  ^bb0(%ks: !kt):
    scf.if %b {
      // expected-error @below {{'kvcache.yield' op expects parent op to be one of 'kvcache.produce, kvcache.consume'}}
      kvcache.yield
    }
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @another_terminator(%i: index) {
  %ring = kvcache.pipe : !ring
  // expected-error @below {{'kvcache.consume' op expects regions to end with 'kvcache.yield', found 'llvm.unreachable'}}
  // expected-note @below {{the absence of terminator implies 'kvcache.yield'}}
  kvcache.consume %ring[%i] : !ring {
  ^bb0(%ks: !kt):
    llvm.unreachable
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<3, !kt>

func.func @two_blocks(%i: index) {
  %ring = kvcache.pipe : !ring
  // expected-error @below {{'kvcache.consume' op expects region #0 to have 0 or 1 blocks}}
  kvcache.consume %ring[%i] : !ring {
  ^bb0(%ks: !kt):
    cf.br ^bb1
  ^bb1:
    kvcache.yield
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
