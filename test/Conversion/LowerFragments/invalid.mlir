// RUN: kvcache-opt %s --kvcache-lower-fragments --split-input-file --verify-diagnostics
// RUN: not kvcache-opt %s --convert-kvcache-to-memref --split-input-file 2>&1 | FileCheck %s

// RUN: not kvcache-opt %s --convert-kvcache-checks --split-input-file 2>&1 | FileCheck %s

// CHECK: error: 'kvcache.splat' op with fragments expects GPU code
// CHECK: error: 'kvcache.map' op expects 'kvcache-lower-fragments' to lower it first

!s = !kvcache.fragment<16x16xf32, mma_acc>

func.func @host(%x: f32) {
  // expected-error @below {{'kvcache.splat' op with fragments expects GPU code}}
  %s = kvcache.splat %x : !s
  return
}

// -----

!s = !kvcache.fragment<16x16xf32, mma_acc>

gpu.module @kernels {
  // expected-error @below {{'gpu.func' op expects no fragments as arguments of a kernel}}
  gpu.func @kernel(%s: !s) kernel {
    %y = kvcache.map arith.negf(%s) : !s -> !s
    gpu.return
  }
}

// -----

// Also without an op that uses it.
gpu.module @kernels {
  // expected-error @below {{'gpu.func' op expects no fragments as arguments of a kernel}}
  gpu.func @unused(%s: !kvcache.fragment<16x16xf32, mma_acc>) kernel {
    gpu.return
  }
}

// -----

// expected-error @below {{'func.func' op with fragments expects GPU code}}
func.func private @declared() -> !kvcache.fragment<16x16xf32, mma_acc>

// -----

!tile = !kvcache.tile<128x64xbf16, swizzle_128b>
!fly = !kvcache.in_flight<64x128xf32, wgmma_acc>

gpu.module @kernels {
  gpu.func @chosen_in_flight(%c: i1) kernel {
    %c0 = arith.constant 0 : index
    %k = kvcache.alloc_tile : !tile
    %p = kvcache.fragment_mma %k[%c0, %c0], %k[%c0, %c0] : !tile, !tile -> !fly
    %q = kvcache.fragment_mma %k[%c0, %c0], %k[%c0, %c0] : !tile, !tile -> !fly
    // expected-error @below {{'arith.select' op uses a product in flight, whose registers are not ready before 'kvcache.fragment_wait'}}
    %s = arith.select %c, %p, %q : !fly
    %w = kvcache.fragment_wait %s : !fly
    gpu.return
  }
}

// -----

!s = !kvcache.fragment<16x16xf32, mma_acc>

gpu.module @kernels {
  gpu.func @other(%x: f32) kernel {
    %s = kvcache.splat %x : !s
    // expected-error @below {{'builtin.unrealized_conversion_cast' op has no lowering here for its types and attributes}}
    %y = builtin.unrealized_conversion_cast %s : !s to i32
    gpu.return
  }
}

// -----

!tile = !kvcache.tile<64x64xbf16, swizzle_128b>
!q = !kvcache.fragment<16x32xbf16, mma_a16>

gpu.module @kernels {
  gpu.func @row_is_no_multiple() kernel {
    %c4 = arith.constant 4 : index
    %tile = kvcache.alloc_tile : !tile
    // expected-error @below {{'kvcache.fragment_load' op expects 'tile_row' to be a multiple of 8, got 4}}
    // expected-error @below {{'kvcache.fragment_load' op has no lowering here for its types and attributes}}
    %q = kvcache.fragment_load %tile[%c4, %c4] : !tile -> !q
    gpu.return
  }
}

// -----

!tile = !kvcache.tile<64x64xbf16, swizzle_128b>
!q = !kvcache.fragment<16x32xbf16, mma_a16>
!fly = !kvcache.in_flight<16x16xf32, mma_acc>

gpu.module @kernels {
  gpu.func @column_is_outside() kernel {
    %c0 = arith.constant 0 : index
    %c40 = arith.constant 40 : index
    %tile = kvcache.alloc_tile : !tile
    %q = kvcache.fragment_load %tile[%c0, %c0] : !tile -> !q
    // expected-error @below {{'kvcache.fragment_mma' op expects 'b_column' to be from 0 to 32, so that the part is in the tile, got 40}}
    // expected-error @below {{'kvcache.fragment_mma' op has no lowering here for its types and attributes}}
    %s = kvcache.fragment_mma %q, %tile[%c0, %c40] : !q, !tile -> !fly
    gpu.return
  }
}

// -----

func.func @opaque_thread_of_host() -> index {
  // expected-error @below {{'kvcache.opaque_thread' op expects GPU code}}
  %thread = kvcache.opaque_thread : index
  return %thread : index
}

// -----

!s = !kvcache.fragment<16x64xf32, wgmma_acc_t>
!row = !kvcache.fragment<16xf32, wgmma_acc_t>
!scratch = !kvcache.tile<4x16xf32>

gpu.module @kernels {
  gpu.func @two_teams(%x: f32) -> !row attributes {known_block_size = array<i32: 256, 1, 1>} {
    %scratch = kvcache.alloc_tile : !scratch
    %s = kvcache.splat %x : !s
    // expected-error @below {{'kvcache.reduce' op expects a block of 128 threads, which exchange through 'scratch', got 256}}
    %max = kvcache.reduce maxnumf %s across %scratch : !s, !scratch -> !row
    gpu.return %max : !row
  }
}

// -----

!s = !kvcache.fragment<16x64xf32, wgmma_acc_t>
!row = !kvcache.fragment<16xf32, wgmma_acc_t>
!scratch = !kvcache.tile<4x16xf32>

gpu.module @kernels {
  gpu.func @reduce_c6_twice(%x: f32) -> (!row, !row) {
    %scratch = kvcache.alloc_tile : !scratch
    %s = kvcache.splat %x : !s
    %max = kvcache.reduce maxnumf %s across %scratch : !s, !scratch -> !row
    %scaled = kvcache.map arith.mulf(%s, %max) : !s, !row -> !s
    // expected-error @below {{'kvcache.reduce' op expects a barrier after the last 'reduce' through 'scratch'}}
    %sum = kvcache.reduce addf %scaled across %scratch : !s, !scratch -> !row
    gpu.return %max, %sum : !row, !row
  }
}

// -----

!s = !kvcache.fragment<16x64xf32, wgmma_acc_t>
!row = !kvcache.fragment<16xf32, wgmma_acc_t>
!scratch = !kvcache.tile<4x16xf32>

gpu.module @kernels {
  gpu.func @reduce_c6_loop(%x: f32, %first: !row, %n: index) -> !row {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %scratch = kvcache.alloc_tile : !scratch
    %s = kvcache.splat %x : !s
    %max = scf.for %i = %c0 to %n step %c1 iter_args(%row = %first) -> (!row) {
      // expected-error @below {{'kvcache.reduce' op expects a barrier after the last 'reduce' through 'scratch'}}
      %next = kvcache.reduce maxnumf %s from %row across %scratch : !s, !scratch -> !row
      scf.yield %next : !row
    }
    gpu.return %max : !row
  }
}

// -----

!s = !kvcache.fragment<16x64xf32, wgmma_acc_t>
!row = !kvcache.fragment<16xf32, wgmma_acc_t>
!scratch = !kvcache.tile<4x16xf32>

// A store elsewhere is no barrier.
gpu.module @kernels {
  gpu.func @reduce_c6_store_between(%x: f32, %out: memref<?xf32>) -> (!row, !row) {
    %c0 = arith.constant 0 : index
    %scratch = kvcache.alloc_tile : !scratch
    %s = kvcache.splat %x : !s
    %max = kvcache.reduce maxnumf %s across %scratch : !s, !scratch -> !row
    memref.store %x, %out[%c0] : memref<?xf32>
    // expected-error @below {{'kvcache.reduce' op expects a barrier after the last 'reduce' through 'scratch'}}
    %sum = kvcache.reduce addf %s across %scratch : !s, !scratch -> !row
    gpu.return %max, %sum : !row, !row
  }
}

// -----

!s = !kvcache.fragment<16x64xf32, wgmma_acc_t>
!row = !kvcache.fragment<16xf32, wgmma_acc_t>
!scratch = !kvcache.tile<4x16xf32>

gpu.module @kernels {
  gpu.func @reduce_c6_tile_store(%x: f32) -> !row {
    %c0 = arith.constant 0 : index
    %scratch = kvcache.alloc_tile : !scratch
    %s = kvcache.splat %x : !s
    %max = kvcache.reduce maxnumf %s across %scratch : !s, !scratch -> !row
    // expected-error @below {{'kvcache.tile_store' op expects a barrier after the last 'reduce' through 'scratch'}}
    kvcache.tile_store %x, %scratch[%c0, %c0] : f32, !scratch
    gpu.return %max : !row
  }
}

// -----

!s = !kvcache.fragment<16x64xf32, wgmma_acc_t>
!row = !kvcache.fragment<16xf32, wgmma_acc_t>
!scratch = !kvcache.tile<4x16xf32>

gpu.module @kernels {
  gpu.func @reduce_c6_after_branch(%x: f32, %first: !row, %c: i1) -> (!row, !row) {
    %scratch = kvcache.alloc_tile : !scratch
    %s = kvcache.splat %x : !s
    %max = scf.if %c -> (!row) {
      %some = kvcache.reduce maxnumf %s across %scratch : !s, !scratch -> !row
      scf.yield %some : !row
    } else {
      scf.yield %first : !row
    }
    // expected-error @below {{'kvcache.reduce' op expects a barrier after the last 'reduce' through 'scratch'}}
    %sum = kvcache.reduce addf %s across %scratch : !s, !scratch -> !row
    gpu.return %max, %sum : !row, !row
  }
}

// -----

!tile = !kvcache.tile<64x64xbf16, swizzle_128b>
!fly = !kvcache.in_flight<64x64xf32, wgmma_acc>

gpu.module @kernels {
  gpu.func @row_of_wgmma_is_no_multiple() {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %tile = kvcache.alloc_tile : !tile
    // expected-error @below {{'kvcache.fragment_mma' op expects 'a_row' to be a multiple of 8, got 4}}
    // expected-error @below {{'kvcache.fragment_mma' op has no lowering here for its types and attributes}}
    %s = kvcache.fragment_mma %tile[%c4, %c0], %tile[%c0, %c0] : !tile, !tile -> !fly
    gpu.return
  }
}

// -----

!tile = !kvcache.tile<64x64xbf16, swizzle_128b>
!fly = !kvcache.in_flight<64x64xf32, wgmma_acc>

gpu.module @kernels [#nvvm.target<chip = "sm_100a">] {
  gpu.func @chip_without_wgmma() {
    %c0 = arith.constant 0 : index
    %tile = kvcache.alloc_tile : !tile
    // expected-error @below {{'kvcache.fragment_mma' op requires sm_90a for wgmma, but the target is sm_100a}}
    // expected-error @below {{'kvcache.fragment_mma' op has no lowering here for its types and attributes}}
    %s = kvcache.fragment_mma %tile[%c0, %c0], %tile[%c0, %c0] : !tile, !tile -> !fly
    gpu.return
  }
}

// -----

!tile = !kvcache.tile<128x64xbf16, swizzle_128b>
!fly = !kvcache.in_flight<64x128xf32, wgmma_acc>

// (C10) of fragment_mma: a second sum would copy registers of the first.
gpu.module @kernels {
  gpu.func @added_twice() kernel {
    %c0 = arith.constant 0 : index
    %k = kvcache.alloc_tile : !tile
    %p = kvcache.fragment_mma %k[%c0, %c0], %k[%c0, %c0] : !tile, !tile -> !fly
    %q = kvcache.fragment_mma %k[%c0, %c0], %k[%c0, %c0] add %p : !tile, !tile, !fly -> !fly
    // expected-error @below {{'kvcache.fragment_mma' op expects the only use of a product in flight}}
    %r = kvcache.fragment_mma %k[%c0, %c0], %k[%c0, %c0] add %p : !tile, !tile, !fly -> !fly
    %w, %x = kvcache.fragment_wait %q, %r : !fly, !fly
    gpu.return
  }
}

// -----

!tile = !kvcache.tile<128x64xbf16, swizzle_128b>
!fly = !kvcache.in_flight<64x128xf32, wgmma_acc>
!s = !kvcache.fragment<64x128xf32, wgmma_acc>

// (C10): the loop would wait for it again and again.
gpu.module @kernels {
  gpu.func @waited_in_a_loop(%n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %k = kvcache.alloc_tile : !tile
    %p = kvcache.fragment_mma %k[%c0, %c0], %k[%c0, %c0] : !tile, !tile -> !fly
    scf.for %i = %c0 to %n step %c1 {
      // expected-error @below {{'kvcache.fragment_wait' op expects the only use of a product in flight}}
      %w = kvcache.fragment_wait %p : !fly
    }
    gpu.return
  }
}

// -----

!tile = !kvcache.tile<128x64xbf16, swizzle_128b>
!fly = !kvcache.in_flight<64x128xf32, wgmma_acc>
!s = !kvcache.fragment<64x128xf32, wgmma_acc>

// (C10): one use on each path.
gpu.module @kernels {
  gpu.func @waited_in_branches(%c: i1) kernel {
    %c0 = arith.constant 0 : index
    %k = kvcache.alloc_tile : !tile
    %p = kvcache.fragment_mma %k[%c0, %c0], %k[%c0, %c0] : !tile, !tile -> !fly
    %w = scf.if %c -> !s {
      %x = kvcache.fragment_wait %p : !fly
      scf.yield %x : !s
    } else {
      %q = kvcache.fragment_mma %k[%c0, %c0], %k[%c0, %c0] add %p : !tile, !tile, !fly -> !fly
      %y = kvcache.fragment_wait %q : !fly
      scf.yield %y : !s
    }
    gpu.return
  }
}

// -----

!kt = !kvcache.tile<64x64xbf16, swizzle_128b>
!p = !kvcache.fragment<64x64xbf16, wgmma_a16>
!fly = !kvcache.in_flight<64x64xf32, wgmma_acc>

// (C11)
gpu.module @kernels {
  gpu.func @fragment_in_use(%x: bf16) kernel {
    %c0 = arith.constant 0 : index
    %k = kvcache.alloc_tile : !kt
    %p = kvcache.splat %x : !p
    %q = kvcache.fragment_mma %p, %k[%c0, %c0] : !p, !kt -> !fly
    // expected-error @below {{'kvcache.map' op uses the fragment 'a' of a product in flight, before 'kvcache.fragment_wait'}}
    %y = kvcache.map arith.negf(%p) : !p -> !p
    %w = kvcache.fragment_wait %q : !fly
    gpu.return
  }
}

// -----

!kt = !kvcache.tile<64x64xbf16, swizzle_128b>
!ring = !kvcache.pipe<2, !kt, producers = 4>
!fly = !kvcache.in_flight<64x64xf32, wgmma_acc>

// (C12): the slot is free after the region.
gpu.module @kernels {
  gpu.func @slot_in_use() kernel {
    %c0 = arith.constant 0 : index
    %q = kvcache.alloc_tile : !kt
    %ring = kvcache.pipe : !ring
    %fly = kvcache.consume %ring[%c0] : !ring -> !fly {
    ^bb0(%k: !kt):
      %p = kvcache.fragment_mma %q[%c0, %c0], %k[%c0, %c0] : !kt, !kt -> !fly
      // expected-error @below {{'kvcache.yield' op expects no product in flight that reads a tile of its 'kvcache.consume'}}
      kvcache.yield %p : !fly
    }
    %w = kvcache.fragment_wait %fly : !fly
    gpu.return
  }
}

// -----

// A warpgroup shares a fragment.
gpu.module @kernels {
  gpu.func @block_of_a_thread(%x: f32) kernel attributes {known_block_size = array<i32: 1, 1, 1>} {
    // expected-error @below {{'kvcache.splat' op expects a block of a multiple of 128 threads, which share a fragment, got 1}}
    %s = kvcache.splat %x : !kvcache.fragment<64x64xf32, wgmma_acc>
    gpu.return
  }
}
