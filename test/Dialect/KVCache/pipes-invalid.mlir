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
func.func private @tile_after_producers(!kvcache.pipe<3, !kt, producers = 1, !kt>)

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

func.func @c3_registers_of_consumers_only() {
  // expected-error @below {{'kvcache.pipe' op expects 'producer_registers' and 'consumer_registers' together}}
  %ring = kvcache.pipe {consumer_registers = 240} : !kvcache.pipe<3, !kt, producers = 4>
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

func.func @c3_registers_without_producers() {
  // expected-error @below {{'kvcache.pipe' op with registers expects 'producers' of the pipe to be a multiple of 4, got 0}}
  %ring = kvcache.pipe {producer_registers = 24, consumer_registers = 240} : !kvcache.pipe<3, !kt>
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

func.func @c3_registers_of_half_a_warpgroup() {
  // expected-error @below {{'kvcache.pipe' op with registers expects 'producers' of the pipe to be a multiple of 4, got 2}}
  %ring = kvcache.pipe {producer_registers = 24, consumer_registers = 240} : !kvcache.pipe<3, !kt, producers = 2>
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

func.func @too_few_registers() {
  // expected-error @below {{'kvcache.pipe' op attribute 'producer_registers' failed to satisfy constraint: 64-bit signless integer attribute whose value is a multiple of 8 whose minimum value is 24 whose maximum value is 256}}
  %ring = kvcache.pipe {producer_registers = 16, consumer_registers = 240} : !kvcache.pipe<3, !kt, producers = 4>
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>

func.func @registers_not_by_8() {
  // expected-error @below {{'kvcache.pipe' op attribute 'consumer_registers' failed to satisfy constraint}}
  %ring = kvcache.pipe {producer_registers = 24, consumer_registers = 250} : !kvcache.pipe<3, !kt, producers = 4>
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
!ring = !kvcache.pipe<2, !kt, producers = 1>

func.func @c4_produce_outside_of_roles(%i: index) {
  %ring = kvcache.pipe : !ring
  // expected-error @below {{'kvcache.produce' op expects to be in 'kvcache.warp_roles', as other ops of its pipe are}}
  kvcache.produce %ring[%i] : !ring {
  ^bb0(%ks: !kt):
  }
  kvcache.warp_roles warps [1, 3] {
  }, {
    // expected-note @below {{here is one of them}}
    kvcache.consume %ring[%i] : !ring {
    ^bb0(%ks: !kt):
    }
  }
  return
}

// -----

!kt = !kvcache.tile<64x128xbf16, swizzle_128b>
!ring = !kvcache.pipe<2, !kt, producers = 1>

func.func @c4_consume_outside_of_roles(%i: index) {
  %ring = kvcache.pipe : !ring
  kvcache.warp_roles warps [1, 3] {
    // expected-note @below {{here is one of them}}
    kvcache.produce %ring[%i] : !ring {
    ^bb0(%ks: !kt):
    }
  }, {
  }
  // expected-error @below {{'kvcache.consume' op expects to be in 'kvcache.warp_roles', as other ops of its pipe are}}
  kvcache.consume %ring[%i] : !ring {
  ^bb0(%ks: !kt):
  }
  return
}
